"""Where jobs come from: mixes of applications, noise, CSV files of times, tables of a user.

No table of the run times behind paper C or its sources is public; the mixes are laws that
match what is published of them, and a CSV of measured times takes their place.
"""

import functools
import math
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

from dlsim import files
from dlsim.cpugpu.model import CLASSES, JobView, Machine
from dlsim.errors import InputError
from dlsim.user_code import calling_user_code
from dlsim.validate import (
    Floats,
    Seed,
    column,
    number,
    one_of,
    or_default,
    random_streams,
    require_memory,
    require_table,
    unwrap_scalar,
    whole,
)

#: Columns of the times on either class; all that a table of jobs needs.
VERSIONS = ("cpu_time", "gpu_time")
REQUIRED = ("app", "arrival", *VERSIONS)
#: Columns that a table of jobs may have; `batch` is read by `dlsim.cpugpu.learn` alone.
JOB_COLUMNS = ("cpu_estimate", "gpu_estimate", "batch")


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


#: Time of an application without noise on the base class, seconds: log-uniform between these.
BASE, BASES = (2.0, 60.0), ("cpu", "gpu")
#: Purposes of random numbers; each has a stream of its own.
PURPOSES = ("applications", "single", "choice", "noise", "outliers", "declared", "arrivals")
#: Most applications and most jobs of one draw.
MOST = 10_000_000


def _log_uniform(stream: Generator, size: int, low: float, high: float) -> Floats:
    return np.asarray(np.exp(math.log(low) + math.log(high / low) * stream.random(size)))


def _lee(stream: Generator, size: int) -> Floats:
    logs = math.log(2.5) - 0.25 + math.sqrt(0.5) * stream.standard_normal(size)
    return np.asarray(np.clip(np.exp(logs), 0.5, 15.0))


def _transfer(stream: Generator, size: int) -> Floats:
    return _log_uniform(stream, size, 2.0, 50.0) / _log_uniform(stream, size, 1.0, 20.0)


#: How much faster the GPU is (CPU time over GPU time), by mix. ``lee``: log-normal with
#: mean 2.5, clipped to .5-15 (mean of V. Lee et al., ISCA 2010, [3] of paper C);
#: ``transfer``: a kernel gain of 2-50 over a factor of 1-20 for the copies (C. Gregg,
#: K. Hazelwood, ISPASS 2011), both log-uniform; the rest log-uniform.
MIXES: dict[str, Callable[[Generator, int], Floats]] = {
    "lee": _lee,
    "transfer": _transfer,
    "wide": partial(_log_uniform, low=0.5, high=50.0),
    "gpuheavy": partial(_log_uniform, low=5.0, high=50.0),
    "balanced": partial(_log_uniform, low=1 / 3, high=3.0),
}


def applications(
    mix: str = "lee", count: int = 12, seed: Seed = 0, single: float = 0.0, base: str = "cpu"
) -> pd.DataFrame:
    """Draw applications of a named mix: run time on either class, without noise.

    Parameters
    ----------
    mix : str
        A name of `MIXES`: the law of CPU time over GPU time.
    count : int
        How many applications.
    seed : int or SeedSequence
        Root of the random numbers.
    single : float
        Part of the applications that lose one of their two versions, drawn at random.
    base : {"cpu", "gpu"}
        The class with times log-uniform over `BASE`; the gain gives those of the other class.

    Returns
    -------
    DataFrame
        Columns cpu_time, gpu_time (seconds, NaN: no version); index ``app``: a00, a01, ...

    Raises
    ------
    InputError
        For an unknown mix or a number out of range.
    """
    one_of("mix", mix, MIXES)
    one_of("base", base, BASES)
    count = whole("count", count, 1, MOST)
    number("single", single, high=1.0)
    draws = random_streams(seed, PURPOSES)
    time = _log_uniform(draws["applications"], count, *BASE)
    gain = MIXES[mix](draws["applications"], count)
    cpu, gpu = (time, time / gain) if base == "cpu" else (time * gain, time)
    chance, side = draws["single"].random((2, count))
    cpu = np.where((chance < single) & (side < 0.5), np.nan, cpu)
    gpu = np.where((chance < single) & (side >= 0.5), np.nan, gpu)
    names = pd.Index([f"a{i:02d}" for i in range(count)], name="app")
    return pd.DataFrame({"cpu_time": cpu, "gpu_time": gpu}, index=names)


@dataclass(frozen=True)
class Noise:
    """How run times scatter around those of an application, and how wrong declared times are.

    A run takes its application's time times a log-normal factor of mean 1, and sometimes times
    `factor`.

    Parameters
    ----------
    cv : float
        Coefficient of variation of the log-normal factor.
    outliers : float
        Probability that a run also takes `factor` times as long.
    factor : float
        How many times as long such a run takes.
    error : float
        Declared times are wrong by a factor drawn uniformly from 1 - error .. 1 + error.

    Raises
    ------
    InputError
        For a number out of range.
    """

    cv: float = 0.1
    outliers: float = 0.02
    factor: float = 5.0
    error: float = 0.0

    def __post_init__(self) -> None:
        vars(self).update(
            cv=number("cv", self.cv, high=10.0),
            outliers=number("outliers", self.outliers, high=1.0),
            factor=number("factor", self.factor, above=True),
            error=number("error", self.error, high=0.999),
        )


def random_jobs(
    table: pd.DataFrame,
    jobs: int = 24,
    seed: Seed = 0,
    noise: Noise | None = None,
    *,
    batches: int = 1,
    interval: float = 0.0,
) -> pd.DataFrame:
    """Draw jobs: applications chosen uniformly, noise on every run, batches that arrive.

    The noise is drawn for each job and class, so that every policy meets the same.

    Parameters
    ----------
    table : DataFrame
        Of `applications` or `read_applications`.
    jobs : int
        Jobs of each batch.
    seed : int or SeedSequence
        Root of the random numbers.
    noise : Noise, optional
        Noise of the realised and errors of the declared times; default `Noise()`.
    batches : int
        Number of batches.
    interval : float
        Mean of the exponential times between batches; the first arrives at 0.

    Returns
    -------
    DataFrame
        Columns app, arrival, cpu_time, gpu_time (realised), cpu_estimate, gpu_estimate
        (declared) and batch; index ``job``.

    Raises
    ------
    InputError
        For a table or a number that cannot be used.
    """
    require_table("applications", table, VERSIONS, empty=False)
    jobs, batches = whole("jobs", jobs, 1, MOST), whole("batches", batches, 1, MOST)
    noise = or_default("noise", noise, Noise)
    number("interval", interval)
    n, draws = jobs * batches, random_streams(seed, PURPOSES)
    require_memory("the jobs", 100.0 * n, "draw fewer jobs or batches")
    chosen = draws["choice"].integers(len(table), size=n)
    gaps = interval * draws["arrivals"].standard_exponential(batches)
    arrival = np.repeat(np.concatenate([[0.0], np.cumsum(gaps[1:])]), jobs)
    columns: dict[str, Any] = {"app": table.index.to_numpy()[chosen], "arrival": arrival}
    true = np.array(
        [
            time_column("applications", table, name, positive=True, absent=True)[chosen]
            for name in VERSIONS
        ]
    )
    variance = math.log1p(noise.cv * noise.cv)
    scatter = np.exp(math.sqrt(variance) * draws["noise"].standard_normal((2, n)) - variance / 2)
    spike = np.where(draws["outliers"].random((2, n)) < noise.outliers, noise.factor, 1.0)
    wrong = 1.0 + noise.error * (2.0 * draws["declared"].random((2, n)) - 1.0)
    columns |= zip(VERSIONS, true * scatter * spike, strict=True)
    columns |= zip(("cpu_estimate", "gpu_estimate"), true * wrong, strict=True)
    columns["batch"] = np.repeat(np.arange(batches), jobs)
    return pd.DataFrame(columns, index=pd.RangeIndex(n, name="job"))


def jobs_in_order(table: pd.DataFrame, apps: list[str]) -> pd.DataFrame:
    """Return one job per name, in that order, at time 0 and without noise."""
    require_table("applications", table, VERSIONS, empty=False)
    with calling_user_code("apps must be a list of names of applications"):
        for app in (apps := list(apps)):
            if app not in table.index:
                known = ", ".join(map(str, table.index))
                raise InputError(f"unknown application {app!r}; the table has {known}")
    times = table.loc[apps, list(VERSIONS)].reset_index(drop=True).rename_axis("job")
    return times.assign(app=apps, arrival=0.0)[list(REQUIRED)]


def read_applications(path: files.StrPath) -> pd.DataFrame:
    """Read measured applications, as of `applications`, from a CSV file (plain or gzip).

    Columns app, cpu_time, gpu_time in seconds; an empty field: no version for that class; further
    columns are kept. Refuses a time that is not positive, and an application without any version
    or named twice.
    """
    where = os.fspath(path)
    times = dict.fromkeys(VERSIONS, "positive or blank")
    table = files.read_csv(path, {"app": "text", **times}, unique="app")
    if table.empty:
        raise InputError(f"{where}: holds no application; give one line per application")
    table = table.set_index("app")
    empty = table[list(times)].isna().all(axis=1)
    if empty.any():
        raise InputError(f"{where}: application {empty.idxmax()!r} has no version; give a time")
    return table


# --- the table of jobs that is run ----------------------------------------------------------------


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

    def select(self, places: NDArray[np.int64]) -> "JobTable":
        """Return the table of some of the jobs, by their places."""
        columns = ("labels", "arrival", "app", "declared", "has_version", "realised")
        return replace(self, **{name: getattr(self, name)[places] for name in columns})

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


def read_job_table(jobs: pd.DataFrame, machine: Machine, ignore: Collection[str] = ()) -> JobTable:
    """Read a user's table of jobs (see `simulate`); refuse a job that the machine cannot run."""
    require_table("jobs", jobs, REQUIRED, optional=JOB_COLUMNS, ignore=ignore, empty=False)
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
        labels=jobs.index,
        arrival=arrival,
        app_names=app_names,
        app=app,
        declared=np.where(has_version, declared, np.nan),
        has_version=has_version,
        realised=realised,
        gpus=machine.gpus,
        cpus=machine.cpus,
    )
