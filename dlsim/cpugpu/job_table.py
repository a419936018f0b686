"""The table of jobs that paper C's engines run, and the helpers of their checks."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.compiled import deadline_with_tolerance
from dlsim.cpugpu.history import History
from dlsim.cpugpu.jobs import CLASSES, JobView
from dlsim.cpugpu.model import POLICY_RULES, Machine, Policy, Reading
from dlsim.errors import InputError, ScheduleError
from dlsim.rounding import not_after
from dlsim.user_code import calling_user_code
from dlsim.validate import Floats, column, or_default, require_table, unwrap_scalar

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


def first_label(labels: Sequence[Any] | pd.Index, flags: Any) -> Any:
    """Return the label of the first row that is flagged, as it prints best."""
    return unwrap_scalar(labels[int(np.argmax(flags))])


def declared_times(jobs: pd.DataFrame, cls: str, realised: Floats, only: bool = False) -> Floats:
    """Return the declared times of a class; the realised ones where there is no column.

    With `only`, a declared time without a realised one is refused.
    """
    name = f"{cls}_estimate"
    if name not in jobs:
        return realised
    declared = time_column("jobs", jobs, name, positive=True, absent=True)
    is_missing = ~np.isnan(realised) & np.isnan(declared)
    is_without_version = np.isnan(realised) & ~np.isnan(declared)
    odd = is_missing | (only & is_without_version)
    if odd.any():
        where, there = (", and only there", "one of them") if only else ("", "none")
        job = first_label(jobs.index, odd)
        what = f"must be given where {cls}_time is{where}; job {job!r} has {there}"
        raise InputError(f"jobs: {name} {what}")
    return declared


@dataclass(frozen=True, eq=False)
class JobTable:
    """The jobs as the engine runs them, and the number of devices of each class.

    Attributes
    ----------
    labels : Index of length jobs
        The labels of the jobs in the user's table.
    arrival : ndarray of float, shape (jobs,)
        Arrival times, ascending.
    app_names : Index
        The names of the applications.
    app : ndarray of int, shape (jobs,)
        The place of each job's application in `app_names`.
    declared, realised : ndarray of float, shape (jobs, 2)
        Declared and realised run times on a GPU and on a CPU, NaN without a version.
    has_version : ndarray of bool, shape (jobs, 2)
        Whether a job has a version for a class of which the machine has devices.
    gpus, cpus : int
        Number of devices of each class.
    """

    labels: pd.Index
    arrival: Floats
    app_names: pd.Index
    app: NDArray[np.int64]
    declared: Floats
    has_version: NDArray[np.bool_]
    realised: Floats
    gpus: int
    cpus: int

    @functools.cached_property
    def preferred(self) -> NDArray[np.int64]:
        """The class with the smaller declared time of each job, 0 for GPUs, also on a tie."""
        return np.nanargmin(self.declared, axis=1)

    def job_views(self) -> Iterator[JobView]:
        """Yield the jobs as a policy sees them, in queue order."""
        columns = zip(self.app_names[self.app].tolist(), *self.declared.T.tolist(), strict=True)
        for job, (app, gpu, cpu) in enumerate(columns):
            if gpu != gpu:
                yield JobView(job, app, {"cpu": cpu})
            elif cpu != cpu:
                yield JobView(job, app, {"gpu": gpu})
            else:
                yield JobView(job, app, {"gpu": gpu, "cpu": cpu})

    @functools.cached_property
    def times(self) -> Floats:
        """Realised time of each job on each device."""
        return np.repeat(self.realised, (self.gpus, self.cpus), axis=1)


def require_single_labels(what: str, rows: pd.DataFrame) -> None:
    """Refuse labels of several levels, or none, by which another table could not name a row."""
    if rows.index.nlevels > 1 or rows.index.hasnans:
        raise InputError(
            f"{what} must have one label per row, got {rows.index.tolist()[:3]!r}; "
            "reset_index() makes columns of them and numbers the rows"
        )


def number_applications(apps: pd.Series) -> tuple[NDArray[np.int64], pd.Index]:
    """Return the number of each application's name, and the names; a history knows no other."""
    rule = "app must be the name of an application"
    with calling_user_code(rule):  # what cannot be hashed
        app, app_names = pd.factorize(apps, use_na_sentinel=False)
    for name in app_names:
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{rule}, got {name!r}")
    return app, app_names


def read_job_table(jobs: pd.DataFrame, machine: Machine) -> JobTable:
    """Read a user's table of jobs (see `simulate`); refuse a job that the machine cannot run."""
    require_table("jobs", jobs, REQUIRED, empty=False)
    arrival = time_column("jobs", jobs, "arrival")
    if (late := np.diff(arrival) < 0).any():
        job = first_label(jobs.index[1:], late)
        raise InputError(f"jobs must be sorted by arrival; job {job!r} comes too late")
    app, app_names = number_applications(jobs["app"])
    times = [time_column("jobs", jobs, f"{c}_time", positive=True, absent=True) for c in CLASSES]
    declared = np.stack(
        [declared_times(jobs, c, own) for c, own in zip(CLASSES, times, strict=True)], 1
    )
    realised = np.stack(times, 1)
    versions = ~np.isnan(realised)
    has_version = versions & np.array([machine.count(c) > 0 for c in CLASSES])
    if not (has_version[:, 0] | has_version[:, 1]).all():
        j = int(np.argmin(has_version.any(axis=1)))
        there = " and ".join(c for c, version in zip(CLASSES, versions[j], strict=True) if version)
        job = unwrap_scalar(jobs.index[j])
        raise InputError(
            f"job {job!r} ({app_names[app[j]]}) has a version for {there or 'no'}"
            f" device only, and the machine has {machine.gpus} GPUs and {machine.cpus} CPUs"
        )
    app_names = pd.Index(app_names, dtype="str")
    return JobTable(
        jobs.index,
        arrival,
        app_names,
        app,
        np.where(has_version, declared, np.nan),
        has_version,
        realised,
        machine.gpus,
        machine.cpus,
    )


def require_target_versions(table: JobTable, policy: Policy, name: str) -> None:
    """Refuse jobs without a version for the one class that a policy uses."""
    has_target = not callable(policy.rule) and "target" in POLICY_RULES[policy.rule].options
    if has_target and policy.target != "preferred":
        has_version = table.has_version[:, CLASSES.index(policy.target)]
        if not has_version.all():
            j = int(np.argmin(has_version))
            job = unwrap_scalar(table.labels[j])
            raise InputError(
                f"policy {name} runs everything on a {policy.target}, and job "
                f"{job!r} ({table.app_names[table.app[j]]}) has no version for one "
                "on this machine; use preferred"
            )


def require_reading_and_history(
    reading: Reading | None, history: History | None
) -> tuple[Reading, History]:
    """Return a reading, and a copy of the history at the start."""
    reading = or_default("reading", reading, Reading, "; see Reading.from_switches(mapping)")
    return reading, or_default(
        "history", history, History, "; see HistoryDatabase.history()"
    ).copy()


def is_simultaneous(first: Any, second: Any, span: Any) -> bool:
    """Tell whether two instants are equal at the time scale `span`; also for Fractions."""
    return bool(max(first, second) <= deadline_with_tolerance(min(first, second), span))


def table_times_equal(first: Any, second: Any, span: Any) -> Any:
    """Tell elementwise whether two instants are equal at the time scale `span`.

    Checks use this rule; it is independent of the engine's tolerance.
    """
    return not_after(first, second, span) & not_after(second, first, span)


def find_earliest(finishes: Sequence[float], now: float) -> int:
    """Return the first place of the least finish, within the tolerance; NaN entries are skipped."""
    least = min(at for at in finishes if at == at)
    limit = deadline_with_tolerance(least, least - now)
    return next(place for place, at in enumerate(finishes) if at <= limit)


def previous_in_lane(lanes: Any, values: Any, first: float) -> Floats:
    """Return for each row the value of the row before it in its lane, or `first` without one."""
    own = pd.Series(np.asarray(values, dtype=float)).groupby(np.asarray(lanes))
    return own.shift(fill_value=first).to_numpy()


def do_not_overlap(lanes: Any, start: Any, end: Any, span: Any) -> NDArray[np.bool_]:
    """Tell for each run whether the run before it in its lane has ended when it starts."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    order = np.lexsort((end, start))
    good = np.ones(len(order), dtype=bool)
    over = previous_in_lane(np.asarray(lanes)[order], end[order], -np.inf)
    good[order] = not_after(over, start[order], span)
    return good


def require(rule: str, good: Any, labels: Sequence[Any] | pd.Index | None = None) -> None:
    """Refuse a schedule that breaks a rule, naming the first of `labels` where it is not `good`."""
    broken = ~np.atleast_1d(np.asarray(good, dtype=bool))
    if broken.any():
        where = "" if labels is None else f": broken by {first_label(labels, broken)!r}"
        raise ScheduleError(f"{rule}{where}")
