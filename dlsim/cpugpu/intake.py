"""What `dlsim.cpugpu.simulate` takes in: jobs, a reading, what is known; or refuses."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from dlsim.cpugpu.given import estimates_of, time_column
from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import CLASSES, Item, Machine, Policy, Reading, class_of
from dlsim.errors import InputError
from dlsim.given import Floats, column, instance, table, usual

REQUIRED = ("app", "arrival", "cpu_time", "gpu_time")


class Given(NamedTuple):
    """The jobs as the engine runs them."""

    labels: pd.Index
    items: tuple[Item, ...]
    arrival: Floats
    times: Floats


def _extra(extra: ArrayLike | None, shape: tuple[int, int]) -> Floats:
    if extra is None:
        return np.zeros(shape)
    array = column("extra", extra, rule="a finite time of at least 0 for each job and device")
    if array.shape != shape:
        raise InputError(f"extra must hold a time for each job and device, shape {shape}; "
                         f"got shape {array.shape}")  # fmt: skip
    return array


def checked(jobs: pd.DataFrame, machine: Machine, extra: ArrayLike | None = None) -> Given:
    """Take a table of jobs in (see `simulate`), refusing what cannot be run on a machine."""
    instance("machine", machine, Machine)
    table("jobs", jobs, REQUIRED, empty=False)
    arrival = time_column("jobs", jobs, "arrival")
    if (np.diff(arrival) < 0).any():
        late = jobs.index[1:][np.diff(arrival) < 0][0]
        raise InputError(f"jobs must be sorted by arrival; job {late!r} comes too late")
    apps = jobs["app"].tolist()
    blank = [app for app in apps if not isinstance(app, str) or not app.strip()]
    if blank:
        raise InputError(f"app must be the name of an application, got {blank[0]!r}")
    real = {c: time_column("jobs", jobs, f"{c}_time", positive=True, absent=True) for c in CLASSES}
    told = {c: estimates_of(jobs, c, real[c]) for c in CLASSES}
    items = []
    for j, app in enumerate(apps):
        versions = [c for c in CLASSES if real[c][j] == real[c][j]]
        here = {c: float(told[c][j]) for c in versions if machine.count(c)}
        if not here:
            raise InputError(
                f"job {jobs.index[j]!r} ({app}) has a version for {' and '.join(versions) or 'no'}"
                f" device only, and the machine has {machine.gpus} GPUs and {machine.cpus} CPUs"
            )
        items.append(Item(j, app, here))
    classes = [class_of(device) for device in machine.devices]
    times = np.column_stack([real[c] for c in classes])
    return Given(jobs.index, tuple(items), arrival, times + _extra(extra, times.shape))


def check_targets(given: Given, policy: Policy, name: str) -> None:
    """Refuse jobs without a version for the one class that a policy uses."""
    if policy.rule in ("fifo", "strict") and policy.target != "preferred":
        for item in given.items:
            if policy.target not in item.declared:
                raise InputError(
                    f"policy {name} runs everything on a {policy.target}, and job "
                    f"{given.labels[item.job]!r} ({item.app}) has no version for one on this "
                    "machine; use preferred"
                )


def need_known(reading: Reading | None, history: History | None) -> tuple[Reading, History]:
    """Return a reading, and a copy of what is known at the start."""
    reading = usual("reading", reading, Reading, "; see Reading.of(mapping)")
    return reading, usual("history", history, History, "; see Store.history()").copy()
