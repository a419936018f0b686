"""Policies and workloads of one's own that a study is told of by name, in place of a paper's."""

import importlib
import runpy
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import pandas as pd

from dlsim.errors import InputError
from dlsim.given import table
from dlsim.realtime.model import POLICIES, Cluster, Policy, policy_named
from dlsim.realtime.workload import realised_load


def found(what: str, text: str) -> Any:
    """Return what a text such as ``module:name`` or ``folder/file.py:name`` names."""
    place, _, name = text.rpartition(":")
    rule = f"{what} {text!r} must be module:name or FILE.py:name"
    try:
        if not (place and name):
            raise ValueError("there is no colon between two names")
        if place.endswith(".py"):
            return runpy.run_path(place, run_name=Path(place).stem)[name]
        return getattr(importlib.import_module(place), name)
    except Exception as error:  # whatever the user's file does
        raise InputError(f"{rule}; {type(error).__name__}: {error}") from error


def policies_of(given: Any, known: Sequence[str]) -> dict[str, Policy]:
    """Return policies by their labels: those `known` are replaced, all others are added.

    Given are policies, names of them, or ``LABEL=policy``, or a mapping of labels to these.
    """
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
        raise InputError(f"policies must be a list or a mapping of labels, got {given!r}")
    rows = given.items() if isinstance(given, Mapping) else ((None, one) for one in given)
    chosen: dict[str, Policy] = {}
    for label, one in rows:
        if label is None and isinstance(one, str) and "=" in one:
            label, _, one = one.partition("=")
        if isinstance(one, str) and ":" in one:
            label, one = label or one.rpartition(":")[2], found("policy", one)
        name, policy = policy_named(one)
        label = label or name
        if not isinstance(label, str) or label in chosen:
            raise InputError(f"policy {label!r} must have a label of its own; name it LABEL=policy")
        if label in known and policy.admission != POLICIES[label].admission:
            raise InputError(
                f"policy {name} cannot stand for {label}: one has admission control, one has not; "
                "choose another label"
            )
        chosen[label] = policy
    return chosen


def workload_of(given: Any) -> Callable[..., Any] | None:
    """Return a workload of one's own, None for the paper's."""
    one = found("workload", given) if isinstance(given, str) and given else given
    if not one:
        return None
    if not callable(one) or len(signature(one).parameters) < 4:
        raise InputError(
            "workload must be a function (cluster, load, horizon, seed) that returns tasks; got"
            f" {one!r}"
        )
    return one


def drawn_by(
    workload: Callable[..., Any], cluster: Cluster, load: float, horizon: float, seed: Any,
    **law: Any,
) -> pd.DataFrame:  # fmt: skip
    """Draw tasks by a workload of one's own, which is told what else it names, such as mean."""
    known = {k: v for k, v in law.items() if k in signature(workload).parameters}
    tasks = workload(cluster, load, horizon, seed, **known)
    name = f"tasks of workload {getattr(workload, '__name__', 'workload')}"
    tasks = table(name, tasks, ("arrival", "sigma", "deadline"), empty=False).copy()
    tasks.attrs = {"realised_load": realised_load(tasks, cluster, horizon), "horizon": horizon}
    return tasks
