"""Rules of one's own in the compiled engine: an order, a number of nodes, a partition.

A function that `numba.njit` has decorated is called at its address: the engine is compiled once,
for all of them and for none, a new function in half a second, and a call costs 0.1 us. (An engine
compiled for each function would cost nothing per call, and a quarter of a minute first.) A plain
function is called back in Python, which takes some 15 us. A study is told of policies and workloads
of one's own by name, in place of a paper's.
"""

import functools
import importlib
import runpy
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pandas as pd
from numba.extending import is_jitted

from dlsim.errors import InputError
from dlsim.given import Floats, table, theirs
from dlsim.realtime import model
from dlsim.realtime.core.state import TASK
from dlsim.realtime.model import RULES, Cluster, Policy, StateView, TaskView
from dlsim.realtime.partition import Table
from dlsim.realtime.workload import realised_load


class Own(NamedTuple):
    """Rules of one's own as the engine calls them; `fault` is what one of them did wrong."""

    rules: Any  # by RULES, where each is to be called; 0 for none
    fault: Floats  # place in RULES + 1, task, time or size, number of nodes, what was returned


#: Functions that can be called at any time; who is used least is forgotten.
MOST = 1024
#: What plain functions have raised, until it is told.
RAISED: list[BaseException] = []


def _guarded(function: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """Keep what a plain function raises: nothing may fly through compiled code."""

    def call(*given: Any) -> Any:
        try:
            found = np.array(function(*given), dtype=np.float64, ndmin=1).ravel()
            return found if kind == "partition" else np.array([found.item()])
        except BaseException as error:
            RAISED.append(error)
            return np.array([np.nan])

    return call


def _called(function: Callable[..., Any], kind: str) -> Any:
    """Return what compiled code can call, told n too: the rule, or what calls it back in Python."""
    rule: Callable[..., Any] = function
    if kind == "nodes":
        rule = lambda task, n, t, state: function(task, t, state)  # noqa: E731
    if is_jitted(function):
        return numba.njit(rule) if kind == "nodes" else rule
    guarded = _guarded(rule, kind)

    def order(task, n, t, state):  # type: ignore[no-untyped-def]
        with numba.objmode(found="float64[:]"):
            found = guarded(task, n, t, state)
        return found[0]

    def partition(sigma, release, state):  # type: ignore[no-untyped-def]
        with numba.objmode(found="float64[:]"):
            found = guarded(sigma, release, state)
        return found

    return numba.njit(partition if kind == "partition" else order)


def _pointer(kind: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of the engine's signature that asks a rule; NaN where it fails."""

    def ask(i, n, t, fewest, idle, waiting, q, costs, c):  # type: ignore[no-untyped-def]
        one, (nodes, cms, cps, st, sc) = q[i], costs
        given = one.due - one.arrival
        task = TaskView(one.arrival, one.sigma, given, one.due, one.requested, fewest)
        state = StateView(
            idle, waiting, int(nodes), cms, cps, st, sc, c.unit, c.fixed, c.slope, c.rise
        )
        try:
            return float(rule(task, n, t, state))
        except Exception:
            return np.nan

    def share(sigma, release, n, costs, c, out, base):  # type: ignore[no-untyped-def]
        nodes, cms, cps, st, sc = costs
        state = StateView(n, 0, int(nodes), cms, cps, st, sc, c.unit, c.fixed, c.slope, c.rise)
        total, least = 0.0, np.inf
        try:
            found = rule(sigma, release[:n].copy(), state)
            if len(found) != n:
                return np.nan
            for k in range(n):
                out[base + k, 0] = found[k]
                total += found[k]
                least = min(least, found[k])
        except Exception:
            return np.nan
        return total if least > 0 else np.nan

    return share if kind == "partition" else ask


@functools.cache
def _signature(kind: str) -> Any:
    """Return how the engine calls such a rule."""
    column = np.empty(0)
    column.flags.writeable = False
    table, costs = numba.typeof(Table(*[column] * len(Table._fields))), (0.0,) * 5
    given: Any = (0, 0, 0.0, 0, 0, 0, np.zeros(0, TASK), costs, None)
    if kind == "partition":
        given = (0.0, np.empty(0), 0, costs, None, np.empty((0, 4)), 0)
    return numba.float64(*(table if x is None else numba.typeof(x) for x in given))


@functools.lru_cache(MOST)
def _compiled(kind: str, function: Callable[..., Any]) -> Any:
    """Return a rule as the engine calls it."""
    pointer = _pointer(kind, _called(function, kind))
    if numba.config.DISABLE_JIT:
        return pointer
    try:
        return numba.cfunc(_signature(kind))(pointer)
    except Exception as error:  # numba's own are of many kinds
        name, (names, returns) = getattr(function, "__name__", kind), RULES[kind]
        why = " ".join(str(error).split())[:300]
        raise InputError(
            f"{kind} function {name}({', '.join(names)}) cannot be compiled to return {returns}:"
            f" {why}; without numba.njit it is called in Python"
        ) from error


def own_rules(policy: Policy) -> Own:
    """Return the rules of one's own of a policy."""
    if policy.is_own:
        RAISED.clear()
    own = (policy.is_timed and policy.order_key, policy.nodes, policy.partition)
    found = [
        _compiled(kind, one) if callable(one) else None
        for kind, one in zip(RULES, own, strict=True)
    ]
    rules: Any = found
    if not numba.config.DISABLE_JIT:
        rules = np.array([one.address if one else 0 for one in found], dtype=np.int64)
    return Own(rules, np.zeros(5))


def blame(own: Own, policy: Policy, labels: Any, release: Floats) -> None:
    """Raise what a rule did wrong, if one did."""
    if not own.fault[0]:
        return
    kind = list(RULES)[int(own.fault[0]) - 1]
    function, (names, returns) = getattr(policy, kind), RULES[kind]
    if kind == "order":
        function = policy.order_key
    name, task = getattr(function, "__name__", kind), labels[int(own.fault[1])]
    n, found = int(own.fault[3]), own.fault[4]
    if RAISED and not isinstance(RAISED[0], Exception):
        raise RAISED[0]
    got: Any = f"{found:g}"
    if RAISED:
        got = f"{type(RAISED[0]).__name__}: {RAISED[0]}"
    elif kind == "partition":
        got = f"shares with the sum {found:g}" if found == found else "something else"
        got += f" for {n} nodes released at {np.round(release[:n], 6).tolist()[:8]}"
    where = f"for task {task!r}" + (f" at {own.fault[2]:g}" if kind != "partition" else "")
    raise InputError(
        f"{kind} function {name}({', '.join(names)}) must return {returns}; {where} it gave {got}"
    ) from (RAISED[0] if RAISED else None)


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
        name, policy = model.policy_named(one)
        label = label or name
        if not isinstance(label, str) or label in chosen:
            raise InputError(f"policy {label!r} must have a label of its own; name it LABEL=policy")
        if label in known and policy.admission != model.POLICIES[label].admission:
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
    if not callable(one) or model.takes(one) < 4:
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
    name = f"workload {getattr(workload, '__name__', 'workload')}"
    with theirs(f"{name} must return a table of tasks"):
        tasks = workload(cluster, load, horizon, seed, **known)
    tasks = table(f"tasks of {name}", tasks, model.COLUMNS, empty=False).copy()
    tasks.attrs = {"realised_load": realised_load(tasks, cluster, horizon), "horizon": horizon}
    return tasks
