"""Where jobs come from: named mixes of applications, noise, CSV tables of measured times.

No table of the run times behind paper C or its sources is public; the mixes are laws that
match what is published of them, and a CSV of measured times takes their place.
"""

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from dlsim import files
from dlsim.cpugpu.job_table import REQUIRED, VERSIONS, time_column
from dlsim.errors import InputError
from dlsim.user_code import calling_user_code
from dlsim.validate import (
    Floats,
    Seed,
    number,
    one_of,
    random_streams,
    require_memory,
    require_table,
    whole,
)

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


def random_jobs(
    table: pd.DataFrame,
    jobs: int = 24,
    seed: Seed = 0,
    cv: float = 0.1,
    outliers: float = 0.02,
    factor: float = 5.0,
    error: float = 0.0,
    batches: int = 1,
    interval: float = 0.0,
) -> pd.DataFrame:
    r"""Draw jobs: applications chosen uniformly, noise on every run, batches that arrive.

    A run takes its application's time times a log-normal factor of mean 1 and
    coefficient of variation `cv`, and times `factor` with probability `outliers`; both
    are drawn for each job and class, so that every policy meets the same noise.

    Parameters
    ----------
    table : DataFrame
        Of `applications` or `read_applications`.
    jobs : int
        Jobs of each batch.
    seed : int or SeedSequence
        Root of the random numbers.
    cv, outliers, factor : float
        Noise of the realised times.
    error : float
        Declared times are wrong by a factor drawn uniformly from 1 - error .. 1 + error.
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
    number("cv", cv, high=10.0)
    number("outliers", outliers, high=1.0)
    number("interval", interval)
    number("factor", factor, above=True)
    number("error", error, high=0.999)
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
    variance = math.log1p(cv * cv)
    noise = np.exp(math.sqrt(variance) * draws["noise"].standard_normal((2, n)) - variance / 2)
    spike = np.where(draws["outliers"].random((2, n)) < outliers, factor, 1.0)
    wrong = 1.0 + error * (2.0 * draws["declared"].random((2, n)) - 1.0)
    columns |= zip(VERSIONS, true * noise * spike, strict=True)
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
