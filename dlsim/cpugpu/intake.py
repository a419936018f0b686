"""What `dlsim.cpugpu.simulate` takes in: jobs, a reading, what is known; or refuses."""

import functools
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dlsim.cpugpu.given import estimates_of, time_column
from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import CLASSES, Item, Machine, Policy, Reading
from dlsim.errors import InputError
from dlsim.given import Floats, column, instance, table, usual

REQUIRED = ("app", "arrival", "cpu_time", "gpu_time")


@dataclass(frozen=True, eq=False)
class Given:
    """The jobs as the engine runs them, and how many devices there are; columns are GPU and CPU.

    `app` is the number of each job's own of `names`; `told` are declared times, `has` says whether
    there is a version for a class of the machine, `real` are realised times, and `extra` is what
    each device adds to them, if any does.
    """

    labels: pd.Index
    arrival: Floats
    names: pd.Index
    app: NDArray[np.int64]
    told: Floats
    has: NDArray[np.bool_]
    real: Floats
    extra: Floats | None
    gpus: int
    cpus: int

    @functools.cached_property
    def preferred(self) -> NDArray[np.int64]:
        """The class with the smaller declared time of each job, 0 for GPUs, also on a tie."""
        slower = np.where(self.has.all(axis=1), self.told[:, 0] > self.told[:, 1], ~self.has[:, 0])
        return slower.astype(np.int64)

    @functools.cached_property
    def items(self) -> tuple[Item, ...]:
        """The jobs as a policy sees them."""
        told = [
            {cls: time for cls, time, has in zip(CLASSES, *row, strict=True) if has}
            for row in zip(self.told.tolist(), self.has.tolist(), strict=True)
        ]
        rows = zip(self.app.tolist(), told, strict=True)
        return tuple(Item(j, self.names[app], own) for j, (app, own) in enumerate(rows))

    @functools.cached_property
    def times(self) -> Floats:
        """Realised time of each job on each device."""
        each = np.repeat(self.real, (self.gpus, self.cpus), axis=1)
        return each if self.extra is None else each + self.extra


def checked(jobs: pd.DataFrame, machine: Machine, extra: ArrayLike | None = None) -> Given:
    """Take a table of jobs in (see `simulate`), refusing what cannot be run on a machine."""
    instance("machine", machine, Machine)
    table("jobs", jobs, REQUIRED, empty=False)
    arrival = time_column("jobs", jobs, "arrival")
    if (np.diff(arrival) < 0).any():
        late = jobs.index[1:][np.diff(arrival) < 0][0]
        raise InputError(f"jobs must be sorted by arrival; job {late!r} comes too late")
    app, names = pd.factorize(jobs["app"], use_na_sentinel=False)
    blank = [name for name in names if not isinstance(name, str) or not name.strip()]
    if blank:
        raise InputError(f"app must be the name of an application, got {blank[0]!r}")
    times = [time_column("jobs", jobs, f"{c}_time", positive=True, absent=True) for c in CLASSES]
    told = np.stack([estimates_of(jobs, c, own) for c, own in zip(CLASSES, times, strict=True)], 1)
    real = np.stack(times, 1)
    versions = ~np.isnan(real)
    has = versions & np.array([machine.count(c) > 0 for c in CLASSES])
    if not (has[:, 0] | has[:, 1]).all():
        j = int(np.argmin(has.any(axis=1)))
        there = " and ".join(c for c, version in zip(CLASSES, versions[j], strict=True) if version)
        raise InputError(
            f"job {jobs.index[j]!r} ({names[app[j]]}) has a version for {there or 'no'}"
            f" device only, and the machine has {machine.gpus} GPUs and {machine.cpus} CPUs"
        )
    shape, more = (len(jobs), machine.gpus + machine.cpus), None
    if extra is not None:
        more = column("extra", extra, rule="a finite time of at least 0 for each job and device")
        if more.shape != shape:
            raise InputError(
                f"extra must hold a time for each job and device, shape {shape}; "
                f"got shape {more.shape}"
            )
    names = pd.Index(names, dtype="str")
    return Given(jobs.index, arrival, names, app, np.where(has, told, np.nan), has,
                 real, more, machine.gpus, machine.cpus)  # fmt: skip


def check_targets(given: Given, policy: Policy, name: str) -> None:
    """Refuse jobs without a version for the one class that a policy uses."""
    if policy.rule in ("fifo", "strict") and policy.target != "preferred":
        has = given.has[:, CLASSES.index(policy.target)]
        if not has.all():
            j = int(np.argmin(has))
            raise InputError(
                f"policy {name} runs everything on a {policy.target}, and job {given.labels[j]!r} "
                f"({given.names[given.app[j]]}) has no version for one on this machine; "
                "use preferred"
            )


def need_known(reading: Reading | None, history: History | None) -> tuple[Reading, History]:
    """Return a reading, and a copy of what is known at the start."""
    reading = usual("reading", reading, Reading, "; see Reading.of(mapping)")
    return reading, usual("history", history, History, "; see Store.history()").copy()
