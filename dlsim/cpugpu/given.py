"""What the engines of paper C take in, or refuse: jobs and times, schedules that break a rule."""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dlsim.compiled import latest_finish
from dlsim.cpugpu.history import History
from dlsim.cpugpu.jobs import CLASSES, JobView
from dlsim.cpugpu.model import WITH_TARGET, Machine, Policy, Reading
from dlsim.errors import InputError, ScheduleError
from dlsim.rounding import not_after
from dlsim.validate import Floats, column, or_default, require_table, unwrap_scalar, user_code

#: Columns of the times on either class; all that a table of jobs needs.
VERSIONS = ("cpu_time", "gpu_time")
REQUIRED = ("app", "arrival", *VERSIONS)


def time_column(
    what: str, rows: pd.DataFrame, name: str, positive: bool = False, absent: bool = False
) -> Floats:
    """Return a column of times as floats; NaN where `absent` allows it (no such version)."""
    rule = "a finite positive time" if positive else "a finite time of at least 0"
    rule += ", or empty where there is no such version" if absent else ""
    return column(
        f"{what}: {name}",
        rows[name],
        above=positive,
        absent=absent,
        rule=rule,
        row="row",
        labels=rows.index,
    )


def first_of(labels: Sequence[Any] | pd.Index, flags: Any) -> Any:
    """Return the label of the first row that is flagged, as it prints best."""
    return unwrap_scalar(labels[int(np.argmax(flags))])


def estimates_of(jobs: pd.DataFrame, cls: str, real: Floats, only: bool = False) -> Floats:
    """Return the declared times of a class; the realised ones where there is no column."""
    name = f"{cls}_estimate"
    if name not in jobs:
        return real
    told = time_column("jobs", jobs, name, positive=True, absent=True)
    odd = np.isnan(told) & ~np.isnan(real) | only & ~np.isnan(told) & np.isnan(real)
    if odd.any():
        where, has = (", and only there", "one of them") if only else ("", "none")
        job = first_of(jobs.index, odd)
        what = f"must be given where {cls}_time is{where}; job {job!r} has {has}"
        raise InputError(f"jobs: {name} {what}")
    return told


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
        return np.nanargmin(self.told, axis=1)

    @functools.cached_property
    def items(self) -> tuple[JobView, ...]:
        """The jobs as a policy sees them."""
        declared = [
            {"gpu": gpu, "cpu": cpu}
            if gpu == gpu and cpu == cpu
            else ({"gpu": gpu} if gpu == gpu else {"cpu": cpu})
            for gpu, cpu in self.told.tolist()
        ]
        apps = self.names[self.app].tolist()
        return tuple(map(JobView, range(len(apps)), apps, declared))

    @functools.cached_property
    def times(self) -> Floats:
        """Realised time of each job on each device."""
        each = np.repeat(self.real, (self.gpus, self.cpus), axis=1)
        return each if self.extra is None else each + self.extra


def need_names(what: str, rows: pd.DataFrame) -> None:
    """Refuse labels of several levels, or none, by which another table could not name a row."""
    if rows.index.nlevels > 1 or rows.index.hasnans:
        raise InputError(
            f"{what} must have one label per row, got {rows.index.tolist()[:3]!r}; "
            "reset_index() makes columns of them and numbers the rows"
        )


def numbered(apps: pd.Series) -> tuple[NDArray[np.int64], pd.Index]:
    """Return the number of each application's name, and the names; a history knows no other."""
    rule = "app must be the name of an application"
    with user_code(rule):  # what cannot be hashed
        app, names = pd.factorize(apps, use_na_sentinel=False)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{rule}, got {name!r}")
    return app, names


def checked(jobs: pd.DataFrame, machine: Machine, extra: ArrayLike | None = None) -> Given:
    """Take a table of jobs in (see `simulate`), refusing what cannot be run on a machine."""
    require_table("jobs", jobs, REQUIRED, empty=False)
    arrival = time_column("jobs", jobs, "arrival")
    if (late := np.diff(arrival) < 0).any():
        job = first_of(jobs.index[1:], late)
        raise InputError(f"jobs must be sorted by arrival; job {job!r} comes too late")
    app, names = numbered(jobs["app"])
    times = [time_column("jobs", jobs, f"{c}_time", positive=True, absent=True) for c in CLASSES]
    told = np.stack([estimates_of(jobs, c, own) for c, own in zip(CLASSES, times, strict=True)], 1)
    real = np.stack(times, 1)
    versions = ~np.isnan(real)
    has = versions & np.array([machine.count(c) > 0 for c in CLASSES])
    if not (has[:, 0] | has[:, 1]).all():
        j = int(np.argmin(has.any(axis=1)))
        there = " and ".join(c for c, version in zip(CLASSES, versions[j], strict=True) if version)
        job = unwrap_scalar(jobs.index[j])
        raise InputError(
            f"job {job!r} ({names[app[j]]}) has a version for {there or 'no'}"
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
    return Given(
        jobs.index,
        arrival,
        names,
        app,
        np.where(has, told, np.nan),
        has,
        real,
        more,
        machine.gpus,
        machine.cpus,
    )


def check_targets(given: Given, policy: Policy, name: str) -> None:
    """Refuse jobs without a version for the one class that a policy uses."""
    if policy.rule in WITH_TARGET and policy.target != "preferred":
        has = given.has[:, CLASSES.index(policy.target)]
        if not has.all():
            j = int(np.argmin(has))
            job = unwrap_scalar(given.labels[j])
            raise InputError(
                f"policy {name} runs everything on a {policy.target}, and job "
                f"{job!r} ({given.names[given.app[j]]}) has no version for one "
                "on this machine; use preferred"
            )


def need_known(reading: Reading | None, history: History | None) -> tuple[Reading, History]:
    """Return a reading, and a copy of what is known at the start."""
    reading = or_default("reading", reading, Reading, "; see Reading.of(mapping)")
    return reading, or_default(
        "history", history, History, "; see HistoryDatabase.history()"
    ).copy()


def near(a: Any, b: Any, span: Any) -> bool:
    """Tell whether two times are one instant, for a duration at hand; also on Fractions."""
    return bool(max(a, b) <= latest_finish(min(a, b), span))


def together(a: Any, b: Any, span: Any) -> Any:
    """Tell elementwise whether instants are one, for a duration at hand: a check's own rule."""
    return not_after(a, b, span) & not_after(b, a, span)


def first_least(finishes: Sequence[float], now: float) -> int:
    """Return the first place of the least finish, up to the one tolerance; NaN is none."""
    least = min(at for at in finishes if at == at)
    limit = latest_finish(least, least - now)
    return next(place for place, at in enumerate(finishes) if at <= limit)


def before(lanes: Any, values: Any, first: float) -> Floats:
    """Return for each row the value of the one before in its lane; `first` where there is none."""
    own = pd.Series(np.asarray(values, dtype=float)).groupby(np.asarray(lanes))
    return own.shift(fill_value=first).to_numpy()


def busy_shares(runs: pd.DataFrame, devices: Iterable[str], span: float) -> pd.Series:
    """Return how long each device was busy with runs, as a share of a span."""
    busy = (runs["end"] - runs["start"]).groupby(runs["device"]).sum()
    return (busy.reindex(list(devices), fill_value=0.0) / span).rename("busy")


def apart(lanes: Any, start: Any, end: Any, span: Any) -> NDArray[np.bool_]:
    """Tell of each run whether the one before in its lane is over when it starts."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    order = np.lexsort((end, start))
    good = np.ones(len(order), dtype=bool)
    over = before(np.asarray(lanes)[order], end[order], -np.inf)
    good[order] = not_after(over, start[order], span)
    return good


def hold(rule: str, good: Any, labels: Sequence[Any] | pd.Index | None = None) -> None:
    """Refuse a schedule that breaks a rule, naming the first of `labels` where it is not `good`."""
    broken = ~np.atleast_1d(np.asarray(good, dtype=bool))
    if broken.any():
        who = "" if labels is None else f": broken by {first_of(labels, broken)!r}"
        raise ScheduleError(f"{rule}{who}")
