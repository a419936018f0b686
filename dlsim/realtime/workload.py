"""Where tasks come from: paper M's generator, CSV tables, job logs.

Every function returns a table with the columns arrival, sigma and deadline (relative),
indexed by ``task`` and sorted by arrival; equal arrivals are one batch. Its ``attrs``
say where it comes from, in plain values: ``source``, ``load`` (nominal),
``realised_load``, ``horizon``, ``seed`` and ``reading`` (the switches used).

Source: paper M, section 6.1; what it leaves open is a switch of `SWITCHES`.
"""

import math
import operator
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import PCG64, Generator, SeedSequence
from scipy.special import ndtr

from dlsim import files
from dlsim.errors import InputError
from dlsim.realtime import model
from dlsim.realtime.model import Cluster, choose
from dlsim.realtime.partition import Floats, least_times, table_of

Seed = int | SeedSequence

#: Every switch of `mcdf` with its options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {
    "batch": ("literal", "scaled", "single"),
    "interval": ("exponential", "poisson"),
    "size": ("resample", "abs", "clip"),
    "base": ("actual", "nominal"),
    "deadline": ("minmax", "largest"),
    "setup": ("regenerate", "same_tasks"),
}

#: Most tasks at one arrival point (paper M: U{1..10}), and their mean number.
BATCH_MOST, BATCH_MEAN = 10, 5.5
#: Smallest size under ``size="clip"``, as a share of the mean.
FLOOR = 0.01
#: Most tasks of one workload, so that a slip in load or horizon does not fill the memory.
MOST_TASKS = 50_000_000
#: Largest parameter, and number in a task from a job log, so that sums stay finite.
MOST_VALUE = 1e100

_PURPOSES = ("arrivals", "batches", "sizes", "deadlines")

#: What becomes of normal draws that are not positive, by the switch ``size``.
_POSITIVE: dict[str, Callable[[Floats, float], Floats]] = {
    "resample": lambda draws, mean: draws[draws > 0],
    "abs": lambda draws, mean: np.maximum(np.abs(draws), np.finfo(float).tiny),
    "clip": lambda draws, mean: np.maximum(draws, FLOOR * mean),
}


def split_reading(switches: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Sort a mixed mapping into switches of the engine and switches of the workload.

    Parameters
    ----------
    switches : mapping of str to str
        Fields of `dlsim.realtime.Reading` and keys of `SWITCHES`, in any order.

    Returns
    -------
    reading, workload : dict of str to str
        For ``Reading.of(reading)`` and for ``mcdf(..., **workload)``.

    Raises
    ------
    InputError
        For an unknown switch or value; the message names the known ones.
    """
    known = model.SWITCHES | SWITCHES
    for name, value in switches.items():
        choose("switch", name, tuple(known))
        choose(name, value, known[name])
    workload = {name: value for name, value in switches.items() if name in SWITCHES}
    return {k: v for k, v in switches.items() if k not in workload}, workload


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (isinstance(value, int | float | np.number) and 0 < value < MOST_VALUE):
            raise InputError(f"{name} must be a number above 0 and below 1e100, got {value!r}")


def _streams(seed: Seed) -> dict[str, Generator]:
    """Return one generator per purpose, the same for the same seed."""
    if not isinstance(seed, SeedSequence):
        try:
            seed = SeedSequence(operator.index(seed))
        except (TypeError, ValueError):
            raise InputError(f"seed must be a whole number of at least 0, got {seed!r}") from None
    # not seed.spawn: it counts its calls, and the second would differ from the first
    keys = [(*seed.spawn_key, number) for number in range(len(_PURPOSES))]
    children = [SeedSequence(seed.entropy, spawn_key=k, pool_size=seed.pool_size) for k in keys]
    return dict(zip(_PURPOSES, map(Generator, map(PCG64, children)), strict=True))


def _plain(seed: Seed) -> int | dict[str, Any]:
    if isinstance(seed, SeedSequence):
        return {"entropy": seed.entropy, "spawn_key": list(seed.spawn_key)}
    return operator.index(seed)


def _normal_below(bound: Floats, mean: float) -> tuple[Floats, Floats]:
    """Mass and first moment of Normal(mean, mean) below each bound."""
    z = (bound - mean) / mean
    with np.errstate(over="ignore"):
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return ndtr(z), mean * (ndtr(z) - density)


def mean_least_time(cluster: Cluster, mean: float = 100.0, size: str = "resample") -> float:
    r"""Average minimum execution time of a task over the law of its size.

    .. math:: \bar{E} = \mathbb{E}\,\mathcal{E}(\sigma, \min(N, N^*(\sigma)))

    E is affine in the size between the thresholds of N*, so that the mass and the
    first moment of the normal law on each piece give the expectation exactly.

    Parameters
    ----------
    cluster : Cluster
        Nodes and costs.
    mean : float
        Mean and standard deviation of the normal law before it is made positive.
    size : {"resample", "abs", "clip"}
        How it is made positive, as in `mcdf`.

    Returns
    -------
    float
        Time.

    Raises
    ------
    InputError
        For a mean that is not positive, or an unknown `size`.

    References
    ----------
    Paper M, section 6.1 and footnote 1.

    Examples
    --------
    One unit of data takes one unit of time: the mean of the resampled law.

    >>> round(mean_least_time(Cluster(nodes=1, cms=0.5, cps=0.5)), 2)
    128.76
    """
    _positive(mean=mean)
    choose("size", size, SWITCHES["size"])
    table, top = table_of(cluster), cluster.nodes + 1
    floor = FLOOR * mean if size == "clip" else 0.0
    edges = np.maximum(np.append(table.least[1:top], np.inf), floor)
    mass, moment = (np.diff(part) for part in _normal_below(edges, mean))
    if size == "abs":
        left, negative = (np.diff(part) for part in _normal_below(-edges, mean))
        mass, moment = mass - left, moment + negative
    total = float(table.fixed[1:top] @ mass + table.unit[1:top] @ moment)
    if size == "clip":
        total += float(ndtr(FLOOR - 1) * least_times(floor, cluster))
    return total / float(ndtr(1.0)) if size == "resample" else total


def _points(stream: Generator, mean: float, horizon: float, interval: str) -> Floats:
    """Draw arrival points below the horizon, the first after one interval."""
    gaps = np.empty(0)
    size = int(1.1 * horizon / mean) + 100
    while True:
        if interval == "poisson":
            more = stream.poisson(mean, size).astype(float)
        else:
            more = mean * stream.standard_exponential(size)
        gaps = np.concatenate([gaps, more])
        points = np.cumsum(gaps)
        if points[-1] >= horizon:
            return points[points < horizon]
        size = len(gaps)


def _sizes(stream: Generator, count: int, mean: float, size: str) -> Floats:
    sizes = np.empty(0)
    while len(sizes) < count:
        draws = mean + mean * stream.standard_normal(count - len(sizes))
        sizes = np.concatenate([sizes, _POSITIVE[size](draws, mean)])
    return sizes


def _deadlines(stream: Generator, sigma: Floats, cluster: Cluster, deadline: str) -> Floats:
    table, n = table_of(cluster), cluster.nodes
    low, high = least_times(sigma, cluster), table.fixed[1] + sigma * table.unit[1]
    if deadline == "largest":  # E falls, then rises in n
        high = np.maximum(high, table.fixed[n] + sigma * table.unit[n])
    return np.asarray(low + (high - low) * stream.random(len(sigma)))


def _frame(arrival: Any, sigma: Any, deadline: Any) -> pd.DataFrame:
    columns = {"arrival": arrival, "sigma": sigma, "deadline": deadline}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(arrival), name="task"))


def _signed(tasks: pd.DataFrame, source: files.StrPath, **known: Any) -> pd.DataFrame:
    """Say in the attrs where tasks come from."""
    tasks.attrs.update(dict.fromkeys(("load", "realised_load", "horizon", "seed")))
    tasks.attrs.update({"source": os.fspath(source), "reading": {}, **known})
    return tasks


def _mean_interval(
    cluster: Cluster, load: float, horizon: float, mean: float, switches: Mapping[str, str]
) -> float:
    """Return the mean time between two arrival points (paper M, section 6.1)."""
    if switches["base"] == "actual":
        average = mean_least_time(cluster, mean, switches["size"])
    else:
        average = float(least_times(mean, cluster))
    interval = average / load * (BATCH_MEAN if switches["batch"] == "scaled" else 1)
    reach = horizon + (switches["interval"] == "poisson")  # intervals of 0 do not get on
    if not reach * BATCH_MEAN < MOST_TASKS * interval or not interval < 1e18:
        what = f"load {load!r} gives a mean interval of {interval:.3g} in a horizon of {horizon!r}"
        raise InputError(f"{what}; choose values that make at most {MOST_TASKS} tasks")
    return interval


def mcdf(
    cluster: Cluster,
    load: float,
    horizon: float = 1_000_000.0,
    seed: Seed = 0,
    *,
    mean: float = 100.0,
    batch: str = "literal",
    interval: str = "exponential",
    size: str = "resample",
    base: str = "actual",
    deadline: str = "minmax",
    setup: str = "regenerate",
) -> pd.DataFrame:
    r"""Draw the workload of paper M: batches of normal sizes with uniform deadlines.

    Arrivals, batch sizes, data sizes and deadlines have random streams of their own, so
    that workloads which differ in one switch, in load or in set-up costs share the
    draws of the others, and a shorter horizon is the beginning of a longer one.

    Parameters
    ----------
    cluster : Cluster
        Nodes and costs; they set the execution times behind load and deadlines.
    load : float
        Nominal system load L. What is realised is about 5.5 L with
        ``batch="literal"``; it stands in ``attrs["realised_load"]``.
    horizon : float
        Arrivals fall in (0, horizon); with ``interval="poisson"`` 0 is possible.
    seed : int or numpy.random.SeedSequence
        Same seed, same bytes; a SeedSequence is not changed.
    mean : float
        Mean of the data sizes before they are made positive, and standard deviation.
    batch : {"literal", "scaled", "single"}
        U{1..10} tasks at points :math:`\bar{E}/L` apart, as the text has it; at points
        :math:`5.5 \bar{E}/L` apart, so that the realised load is L; or one task a point.
    interval : {"exponential", "poisson"}
        A Poisson process, or intervals that themselves are Poisson distributed.
    size : {"resample", "abs", "clip"}
        What happens to draws of N(mean, mean) that are not positive: drawn again,
        absolute value, or raised to `FLOOR` * mean, as is every draw below it.
    base : {"actual", "nominal"}
        :math:`\bar{E}` over the law of the sizes (`mean_least_time`), or E at the mean.
    deadline : {"minmax", "largest"}
        U[min E, E(1)], or up to the largest E(n) of all n <= N.
    setup : {"regenerate", "same_tasks"}
        Tasks drawn for the cluster as it is, or as if ST = SC = 0, so that the costs
        are met only when the tasks run.

    Returns
    -------
    DataFrame
        The tasks (module docstring). ``attrs["realised_load"]`` is for `cluster` as it
        is, whatever `setup` says.

    Raises
    ------
    InputError
        For a value out of range or an unknown option.

    References
    ----------
    Paper M, section 6.1 and footnote 1.
    """
    _positive(load=load, horizon=horizon, mean=mean)
    load, horizon, mean = float(load), float(horizon), float(mean)
    switches = {"batch": batch, "interval": interval, "size": size}
    switches |= {"base": base, "deadline": deadline, "setup": setup}
    split_reading(switches)
    drawn = cluster if setup == "regenerate" else replace(cluster, st=0.0, sc=0.0)
    gap = _mean_interval(drawn, load, horizon, mean, switches)
    streams = _streams(seed)
    points = _points(streams["arrivals"], gap, horizon, interval)
    counts = streams["batches"].integers(1, BATCH_MOST, size=len(points), endpoint=True)
    arrival = points if batch == "single" else np.repeat(points, counts)
    sigma = _sizes(streams["sizes"], len(arrival), mean, size)
    tasks = _frame(arrival, sigma, _deadlines(streams["deadlines"], sigma, drawn, deadline))
    real = realised_load(tasks, cluster, horizon)
    known = {"load": load, "realised_load": real, "horizon": horizon, "seed": _plain(seed)}
    return _signed(tasks, "paper M, section 6.1", reading=switches, **known)


def realised_load(tasks: pd.DataFrame, cluster: Cluster, horizon: float) -> float:
    """Load that a set of tasks really is, by paper M's own definition.

    Parameters
    ----------
    tasks : DataFrame
        With a column sigma.
    cluster : Cluster
        Nodes and costs.
    horizon : float
        Length of the time in which the tasks arrive.

    Returns
    -------
    float
        Sum of the minimum execution times E(min(N, N*)) over the horizon.

    Raises
    ------
    InputError
        For a horizon that is not positive.

    References
    ----------
    Paper M, section 6.1, first sentence.
    """
    _positive(horizon=horizon)
    return float(least_times(tasks["sigma"], cluster).sum()) / float(horizon)


def from_csv(path: files.StrPath) -> pd.DataFrame:
    """Read tasks from a CSV file with the columns arrival, sigma and deadline.

    Parameters
    ----------
    path : path
        Plain or gzip; sorted by arrival. A column ``task`` gives the ids (whole
        numbers where all of them are, else text), otherwise tasks count from 0. Further
        columns are kept, for an order of one's own.

    Returns
    -------
    DataFrame
        The tasks (module docstring). ``attrs``: load, realised load and seed are None,
        because a table names neither cluster nor law; horizon is the last arrival.

    Raises
    ------
    InputError
        For a size or deadline that is not positive, a negative or falling arrival, an
        id used twice, no task at all, or a broken file; names file, line and field.
    """
    wanted = {"arrival": "nonnegative", "sigma": "positive", "deadline": "positive"}
    tasks = files.read_csv(path, wanted, {"task": "text"}, ascending="arrival", unique="task")
    if tasks.empty:
        raise InputError(f"{os.fspath(path)}: holds no task; give one line per task")
    ids = tasks.pop("task") if "task" in tasks else range(len(tasks))
    whole = all(re.fullmatch("0|[1-9][0-9]{0,14}", str(name)) for name in ids)
    tasks.index = pd.Index(ids, dtype=np.int64 if whole else object, name="task")
    tasks = tasks[[*wanted, *(name for name in tasks if name not in wanted)]]
    return _signed(tasks, path, horizon=float(tasks["arrival"].iloc[-1]), skipped={})


def _why_skipped(jobs: pd.DataFrame, processors: pd.Series, tasks: pd.DataFrame) -> pd.Series:
    """Say for every job of a log why it is no task; "" where it is one."""
    why = pd.Series("", index=jobs.index, dtype=object)
    for reason, bad in (  # the first one counts
        ("part of a job (status 2, 3 or 4)", jobs["status"].isin((2, 3, 4))),
        ("no submit time", jobs["submit"] < 0),
        ("run time not above 0", jobs["run_time"] <= 0),
        ("no processors", processors <= 0),
        ("value out of range", (tasks > MOST_VALUE).any(axis=1) | (tasks["sigma"] == 0)),
    ):
        why[bad & (why == "")] = reason
    return why


def _job_index(numbers: pd.Series, notes: list[str]) -> pd.Index:
    if numbers.is_unique and ((numbers % 1 == 0) & (numbers.abs() < 2**53)).all():
        return pd.Index(numbers.astype(np.int64), name="task")
    notes.append("job numbers are not different whole numbers; tasks are counted from 0")
    return pd.RangeIndex(len(numbers), name="task")


def from_swf(
    path: files.StrPath,
    cluster: Cluster,
    *,
    work_per_unit: float | None = None,
    dc_ratio: float = 2.0,
    time_scale: float = 1.0,
    max_jobs: int | None = None,
    seed: Seed = 0,
    limit: int = files.LIMIT,
) -> pd.DataFrame:
    r"""Make divisible tasks of the jobs of a log in the Standard Workload Format.

    A log knows neither data sizes nor deadlines; how a job becomes a task is this rule:

    - arrival = (submit time - that of the first usable job) * `time_scale`;
    - sigma = processors * run time / `work_per_unit`, with the allocated processors,
      or the requested ones where those are unknown;
    - deadline = U[0.5, 1.5] * `dc_ratio` * E, but never below E, the minimum execution
      time E(sigma, min(N, N*)) on `cluster`.

    Jobs without run time, processors or submit time, lines for a part of a job (status
    2, 3, 4) and numbers beyond `MOST_VALUE` are skipped and counted. Log and cluster are
    not matched otherwise: the realised load is what follows.

    Parameters
    ----------
    path : path
        Plain or gzip.
    cluster : Cluster
        Where the tasks are to run.
    work_per_unit : float, optional
        Processor-seconds of the log that are one unit of data. Default ``cluster.cps``:
        a task then costs the nodes as much computation as the job took, and its
        transmission comes on top. Must be given where cps = 0.
    dc_ratio : float
        Mean deadline over minimum execution time (the authors' later DCRatio).
    time_scale : float
        Factor on the times between arrivals; 0.5 doubles the load.
    max_jobs : int, optional
        Only the first so many usable jobs; the others count as skipped.
    seed : int or numpy.random.SeedSequence
        For the deadlines; every line of the log has its own draw, whatever is skipped.
    limit : int
        Most bytes read, after decompression.

    Returns
    -------
    DataFrame
        The tasks (module docstring), by job number; counted from 0 where job numbers
        are not different whole numbers, which ``attrs["notes"]`` then says.
        ``attrs["skipped"]`` maps reasons to numbers of jobs, ``attrs["notes"]`` lists
        oddities of the log. The horizon is the last arrival; the nominal load is None,
        and so is the realised one where all tasks arrive at once.

    Raises
    ------
    InputError
        For a parameter out of range, a broken file (names file, line and field) or a
        log without one usable job.

    References
    ----------
    Deadlines: the authors' later simulator, as told in section 5.1 of X. Lin, J. Deogun,
    Y. Lu, S. Goddard, "Real-Time Divisible Load Scheduling with Inserted Idle Times"
    (paper I). The rest is this suite's.
    """
    unit = cluster.cps if work_per_unit is None else work_per_unit
    rule = {"work_per_unit": unit, "dc_ratio": dc_ratio, "time_scale": time_scale}
    _positive(**rule)
    if max_jobs is not None and not (isinstance(max_jobs, int) and max_jobs >= 1):
        raise InputError(f"max_jobs must be a whole number of at least 1, got {max_jobs!r}")
    jobs, _, notes = files.read_swf(path, limit)
    draws = 0.5 + _streams(seed)["deadlines"].random(len(jobs))
    processors = jobs["processors"].where(jobs["processors"] > 0, jobs["processors_requested"])
    with np.errstate(over="ignore"):
        sigma = processors * jobs["run_time"] / unit
        least = least_times(sigma, cluster)
        deadline = least * np.maximum(1.0, dc_ratio * draws)
        tasks = _frame(jobs["submit"] * time_scale, sigma, deadline)
    why = _why_skipped(jobs, processors, tasks)
    order = jobs["submit"][why == ""].sort_values(kind="stable").index
    if order.empty:
        counts = ", ".join(f"{reason}: {n}" for reason, n in why.value_counts().items())
        raise InputError(f"{os.fspath(path)}: no job that could be a task ({counts})")
    tasks = tasks.loc[order[:max_jobs]]
    why[order[len(tasks) :]] = "beyond max_jobs"
    tasks["arrival"] -= tasks["arrival"].iloc[0]
    tasks.index = _job_index(jobs["job"][tasks.index], notes)
    horizon = float(tasks["arrival"].iloc[-1])
    lasts = horizon > 1 / MOST_VALUE
    return _signed(
        tasks,
        path,
        realised_load=realised_load(tasks, cluster, horizon) if lasts else None,
        horizon=horizon,
        seed=_plain(seed),
        reading={**{name: float(value) for name, value in rule.items()}, "max_jobs": max_jobs},
        skipped={str(k): int(n) for k, n in why[why != ""].value_counts().items()},
        notes=notes,
    )
