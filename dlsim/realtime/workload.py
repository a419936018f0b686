"""Where tasks come from: the papers' generators, CSV tables, job logs.

Every function returns a table with the columns arrival, sigma and deadline (relative),
indexed by ``task`` and sorted by arrival; equal arrivals are one batch. Its ``attrs``
say where it comes from, in plain values: ``source``, ``load`` (nominal),
``realised_load``, ``horizon``, ``seed`` and ``reading`` (the switches used).

Every purpose has a random stream of its own and every task its own draws, so that
workloads which differ in one respect share the draws of the others.

Source: paper M, section 6.1 (`mcdf`); X. Lin, Y. Lu, J. Deogun, S. Goddard, "Enhancing
Real-time Scheduling of Divisible Loads by Utilizing Inserted Idle Time" (paper I), section
5.1 (`dcratio`); what they leave open is a switch of `SWITCHES`.
"""

import functools
import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.special import ndtr

from dlsim import files, joblog, validate
from dlsim.compiled import TOL
from dlsim.errors import InputError
from dlsim.reading import BaseReading, switch
from dlsim.realtime import model
from dlsim.realtime.formulas import least_times, opr_table
from dlsim.realtime.model import Cluster
from dlsim.user_code import calling_user_code, load_user_code, names_user_code
from dlsim.validate import Floats, Seed, instance, mapping, one_of, random_streams, require_positive

__all__ = [
    "SWITCHES", "dcratio", "draw_sizes", "from_csv", "from_swf", "load_laws", "mcdf",
    "mean_least_time", "realised_load", "scale_law", "split_reading", "user_split",
]  # fmt: skip

#: Most tasks at one arrival point (paper M: U{1..10}), and their mean number.
MAX_BATCH, MEAN_BATCH = 10, 5.5
#: Most pairs of size and deadline that are drawn at once to find those that fit.
PAIRS_PER_DRAW = 1_000_000
#: Smallest size under ``size="clip"``, as a share of the mean.
FLOOR = 0.01
#: Most tasks of one workload, so that a slip in load or horizon does not fill the memory.
MAX_WORKLOAD_TASKS = 50_000_000

#: In the order of their seeds.
RANDOM_STREAMS = ("arrivals", "batches", "sizes", "deadlines", "user_nodes", "law")

#: What becomes of normal draws that are not positive, by the switch ``size``.
_POSITIVE: dict[str, Callable[[Floats, float], Floats]] = {
    "resample": lambda draws, mean: draws[draws > 0],
    "abs": lambda draws, mean: np.maximum(np.abs(draws), np.finfo(float).tiny),
    "clip": lambda draws, mean: np.maximum(draws, FLOOR * mean),
}

#: All laws of the sizes by name; a user's own law is a function of a generator and a count.
SIZE_LAWS = (*_POSITIVE, "uniform")
Law = str | Callable[[Generator, int], Any]
#: Sizes drawn from a user's law to estimate the mean execution time.
LAW_SAMPLE = 100_000


@dataclass(frozen=True)
class TaskDraw(BaseReading):
    """What paper M leaves open about its tasks: keyword arguments of `mcdf`."""

    batch: str = switch(
        ("literal", "scaled", "single"),
        label="arrivals in batches: as printed, scaled to the load, or single tasks",
        reads="workload:mcdf",
    )
    interval: str = switch(
        ("exponential", "poisson"),
        label="times between arrivals: exponential, or Poisson",
        reads="workload:_draw_arrival_points",
    )
    size: Law = switch(
        ("resample", "abs", "clip"),
        label="sizes that are not positive: drawn again, made positive, or raised",
        reads="workload:draw_sizes",
        is_open=True,
    )
    base: str = switch(
        ("actual", "nominal"),
        label="load counts the mean time: over the law of the sizes, or at the mean size",
        reads="workload:mcdf",
    )
    deadline: str = switch(
        ("minmax", "largest"),
        label="deadlines reach: from the least time to that on one node, or to the largest",
        reads="workload:mcdf",
    )
    setup: str = switch(
        ("regenerate", "same_tasks"),
        label="tasks are drawn: for the set-up costs, or as if there were none",
        reads="workload:mcdf",
    )


@dataclass(frozen=True)
class RatioDraw(BaseReading):
    """What paper I leaves open about its tasks: keyword arguments of `dcratio`."""

    size: Law = switch(
        ("resample", "clip", "abs", "uniform"),
        label="sizes that are not positive: drawn again, raised, made positive; or uniform",
        reads="workload:draw_sizes",
        is_open=True,
    )
    deadline: str = switch(
        ("clamp", "scaled", "redraw_both"),
        label="a deadline that no task could meet: raised, scaled, or drawn again with the size",
        reads="workload:dcratio",
    )


@dataclass(frozen=True)
class UserDraw(BaseReading):
    """What paper I leaves open about User Split: a keyword argument of `user_split`."""

    n_min: str = switch(
        ("text", "code"),
        label="fewest nodes that a user may ask for: by the text, or by the pseudocode",
        reads="workload:user_split",
        touches=lambda policy: policy.nodes == "user",
    )


#: The switches of every function that draws, with their options, the default first.
SWITCHES = {
    "mcdf": TaskDraw.switches(),
    "dcratio": RatioDraw.switches(),
    "user_split": UserDraw.switches(),
}


def load_laws(switches: Mapping[str, Any]) -> dict[str, Any]:
    """Return switches in which a text ``FILE.py:name`` is the function that it names.

    A sweep then knows the law by what it does, and computes anew when the file changes.

    Raises
    ------
    InputError
        If there is no such file, or no function of this name in it.
    """
    found = dict(mapping("reading", switches))
    law = found.get("size")
    if names_user_code(law):
        found["size"] = load_user_code("size", str(law))
        if not callable(found["size"]):
            raise InputError(f"size {law!r} must be a function of a generator and a count")
    return found


def scale_law(size: Law, factor: float) -> Law:
    """Return a user's law whose sizes are `factor` times as large; a name is returned as it is.

    A law that has a name is scaled by its `mean`.

    >>> law = scale_law(lambda generator, count: np.full(count, 3.0), 2)
    >>> law(np.random.default_rng(0), 2).tolist()
    [6.0, 6.0]
    """
    if not callable(size):
        return size

    @functools.wraps(size)
    def scaled(generator: Generator, count: int) -> Any:
        return factor * np.asarray(size(generator, count))

    return scaled


def split_reading(switches: Mapping[str, Any], *generators: str) -> tuple[dict[str, Any], ...]:
    """Sort a mixed mapping into switches of the engine and of each generator.

    Parameters
    ----------
    switches : mapping of str to str
        Fields of `dlsim.realtime.Reading` and switches of the generators, in any order. The law of
        the sizes, ``size``, may also be a function, or a text ``FILE.py:name``.
    *generators : str
        Keys of `SWITCHES`. Generators may share a switch: it goes to each that knows
        the option.

    Returns
    -------
    tuple of dict of str to str
        For ``Reading.from_switches(...)``, then one for each generator: ``mcdf(..., **its)``.

    Raises
    ------
    InputError
        For an unknown generator, switch or option; the message names the known ones.

    Examples
    --------
    >>> split_reading({"size": "uniform", "link": "shared"}, "dcratio", "user_split")
    ({'link': 'shared'}, {'size': 'uniform'}, {})
    """
    for generator in generators:
        one_of("generator", generator, SWITCHES)
    tables = [model.SWITCHES, *(SWITCHES[generator] for generator in generators)]
    switches = load_laws(mapping("switches", switches))
    own = {"size"} if callable(switches.get("size")) else set()
    _require_options(switches, own, tables)
    return tuple(
        {k: v for k, v in switches.items() if k in table and (k in own or v in table[k])}
        for table in tables
    )


def _require_options(
    switches: Mapping[str, Any], own: Collection[str], tables: Sequence[Mapping[str, Any]]
) -> None:
    """Refuse a switch that is in no table, or an option that none has; `own` may be anything."""
    known = dict.fromkeys(name for table in tables for name in table)
    for name, value in switches.items():
        one_of("switch", name, known)
        if name not in own:
            options = (option for table in tables for option in table.get(name, ()))
            one_of(name, value, dict.fromkeys(options))


def _check_switches(switches: dict[str, Any], generator: str) -> None:
    """Refuse unknown options; a user's law is recorded by its name."""
    named = {name: value for name, value in switches.items() if not callable(value)}
    split_reading(named, generator)
    switches.update({k: getattr(v, "__name__", k) for k, v in switches.items() if callable(v)})


def _normal_below(bound: Floats, mean: float) -> tuple[Floats, Floats]:
    """Mass and first moment of Normal(mean, mean) below each bound."""
    z = (bound - mean) / mean
    with np.errstate(over="ignore"):
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return ndtr(z), mean * (ndtr(z) - density)


def _uniform_below(bound: Floats, mean: float) -> tuple[Floats, Floats]:
    """Mass and first moment of U(0, 2 mean) below each bound."""
    top = np.clip(bound, 0.0, 2 * mean)
    mass = top / (2 * mean)
    return mass, mass * top / 2


def mean_least_time(cluster: Cluster, mean: float = 100.0, size: str = "resample") -> float:
    r"""Average minimum execution time of a task over the law of its size (paper M, 6.1).

    .. math:: \bar{E} = \mathbb{E}\,\mathcal{E}(\sigma, \min(N, N^*(\sigma)))

    E is affine in the size between the thresholds of N*, so that the mass and the
    first moment of the law on each piece give the expectation exactly. With one unit of time
    per unit of data it is the mean of the resampled law (footnote 1):

    >>> round(mean_least_time(Cluster(nodes=1, cms=0.5, cps=0.5)), 2)
    128.76
    """
    instance("cluster", cluster, Cluster)
    (mean,) = require_positive(mean=mean)
    one_of("size", size, SIZE_LAWS)
    table, top = opr_table(cluster), cluster.nodes + 1
    floor = FLOOR * mean if size == "clip" else 0.0
    edges = np.maximum(np.append(table.min_size[1:top], np.inf), floor)
    below = _uniform_below if size == "uniform" else _normal_below
    mass, moment = (np.diff(part) for part in below(edges, mean))
    if size == "abs":
        left, negative = (np.diff(part) for part in _normal_below(-edges, mean))
        mass, moment = mass - left, moment + negative
    total = float(table.setup_time[1:top] @ mass + table.time_per_unit[1:top] @ moment)
    if size == "clip":
        total += float(ndtr(FLOOR - 1) * least_times(floor, cluster))
    return total / float(ndtr(1.0)) if size == "resample" else total


def _draw_arrival_points(stream: Generator, mean: float, horizon: float, interval: str) -> Floats:
    """Draw arrival points at a mean interval up to the horizon, the first after one interval."""
    gaps, reached = np.empty(0), np.zeros(1)
    while reached[-1] < horizon:
        size = len(gaps) or int(1.1 * horizon / mean) + 100
        if interval == "poisson":
            more = stream.poisson(mean, size).astype(float)
        else:
            more = mean * stream.standard_exponential(size)
        gaps = np.concatenate([gaps, more])
        reached = np.cumsum(gaps)
    return reached[reached < horizon]


def draw_sizes(
    stream: Generator, count: int, mean: float = 100.0, size: Law = "resample"
) -> Floats:
    """Draw data sizes by a law; no draw beyond the last one needed is taken from the stream.

    Parameters
    ----------
    stream : numpy.random.Generator
        Where the random numbers come from.
    count : int
        How many sizes.
    mean : float
        Mean of the normal law and its standard deviation, as for `mcdf`; half the upper end of the
        uniform one. A user's law does not depend on it.
    size : str or callable
        A name of `SIZE_LAWS`: how draws of N(mean, mean) are made positive, or "uniform": U(0,
        2 mean) instead. Or a user's law, as for `mcdf`.

    Returns
    -------
    ndarray of float, shape (count,)
        Sizes above 0.

    Raises
    ------
    InputError
        For a user's law that fails or returns something else than `count` sizes above 0.
    """
    if callable(size):
        name = getattr(size, "__name__", "size")
        rule = f"law {name}(generator, {count}) must return {count} sizes above 0"
        with calling_user_code(rule):
            drawn = size(stream, count)
        if np.shape(drawn) != (count,):
            raise InputError(f"{rule}; got {type(drawn).__name__} of shape {np.shape(drawn)}")
        return np.asarray(validate.column(f"size by law {name}", drawn, above=True))
    if size == "uniform":
        return 2 * mean * (1 - stream.random(count))
    drawn = np.empty(0)
    while len(drawn) < count:
        draws = mean + mean * stream.standard_normal(count - len(drawn))
        drawn = np.concatenate([drawn, _POSITIVE[size](draws, mean)])
    return drawn


def _check_interval(interval: float, load: float, horizon: float, per_point: float = 1.0) -> None:
    """Refuse a mean interval that makes too many tasks, or none that a float can tell."""
    if not horizon * per_point < MAX_WORKLOAD_TASKS * interval or not interval < 1e18:
        what = f"load {load!r} gives a mean interval of {interval:.3g} in a horizon of {horizon!r}"
        raise InputError(f"{what}; choose values that make at most {MAX_WORKLOAD_TASKS} tasks")


def _task_frame(arrival: Any, sigma: Any, deadline: Any) -> pd.DataFrame:
    """Return a task table, counted from 0."""
    columns = {"arrival": arrival, "sigma": sigma, "deadline": deadline}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(arrival), name="task"))


def _with_attrs(
    tasks: pd.DataFrame,
    source: files.StrPath,
    horizon: float,
    cluster: Cluster | None = None,
    seed: Seed | None = None,
    **known: Any,
) -> pd.DataFrame:
    """Say in the attrs where tasks come from."""
    real = (
        realised_load(tasks, cluster, horizon)
        if cluster and horizon >= validate.MIN_MAGNITUDE
        else None
    )
    drawn = None if seed is None else validate.seed_record(seed)
    tasks.attrs.update({"load": None, "realised_load": real, "horizon": horizon, "seed": drawn})
    tasks.attrs.update({"source": os.fspath(source), "reading": {}, **known})
    return tasks


def realised_load(tasks: pd.DataFrame, cluster: Cluster, horizon: float) -> float:
    """Return the least times of all tasks over the horizon: the load by paper M's section 6.1."""
    instance("cluster", cluster, Cluster)
    (horizon,) = require_positive(horizon=horizon)
    (sigma,) = model.task_columns(tasks, ["sigma"], unique=False)
    return float(least_times(sigma, cluster).sum()) / horizon


def _time_on_all_nodes(sigma: float | Floats, cluster: Cluster) -> Floats:
    """Return E(sigma, N) of one or many sizes."""
    table, n = opr_table(cluster), cluster.nodes
    return np.asarray(table.setup_time[n] + sigma * table.time_per_unit[n])


def mcdf(
    cluster: Cluster,
    load: float,
    horizon: float = 1_000_000.0,
    seed: Seed = 0,
    *,
    mean: float = 100.0,
    batch: str = "literal",
    interval: str = "exponential",
    size: Law = "resample",
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
        Mean of the data sizes before they are made positive, and standard deviation. A user's law
        does not depend on it (`scale_law`); with ``base="nominal"`` it is the size at which E is.
    batch : {"literal", "scaled", "single"}
        U{1..10} tasks at points :math:`\bar{E}/L` apart, as the text has it; at points
        :math:`5.5 \bar{E}/L` apart, so that the realised load is L; or one task a point.
    interval : {"exponential", "poisson"}
        A Poisson process, or intervals that themselves are Poisson distributed.
    size : {"resample", "abs", "clip"} or callable
        What happens to draws of N(mean, mean) that are not positive: drawn again,
        absolute value, or raised to 0.01 * mean, as is every draw below it. Or a user's
        law, ``size(generator, count)``: so many sizes, drawn from that generator, such as
        ``lambda rng, n: rng.pareto(2.5, n) + 1``.
    base : {"actual", "nominal"}
        :math:`\bar{E}` over the law of the sizes (`mean_least_time`; of a user's law over a
        sample, from a random stream of its own), or E at the mean.
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
    instance("cluster", cluster, Cluster)
    load, horizon, mean = require_positive(load=load, horizon=horizon, mean=mean)
    switches: dict[str, Any] = {"batch": batch, "interval": interval, "size": size}
    switches |= {"base": base, "deadline": deadline, "setup": setup}
    _check_switches(switches, "mcdf")
    drawn = cluster if setup == "regenerate" else replace(cluster, st=0.0, sc=0.0)
    draws = random_streams(seed, RANDOM_STREAMS)
    if base == "nominal":
        average = float(least_times(mean, drawn))
    elif callable(size):
        sample = draw_sizes(draws["law"], LAW_SAMPLE, mean, size)
        average = float(least_times(sample, drawn).mean())
    else:
        average = mean_least_time(drawn, mean, size)
    gap = average / load * (MEAN_BATCH if batch == "scaled" else 1)
    stuck = interval == "poisson"  # intervals of 0 do not get on
    _check_interval(gap, load, horizon, MEAN_BATCH * (1 + stuck / horizon))
    at = _draw_arrival_points(draws["arrivals"], gap, horizon, interval)
    counts = draws["batches"].integers(1, MAX_BATCH, size=len(at), endpoint=True)
    arrival = at if batch == "single" else np.repeat(at, counts)
    sigma = draw_sizes(draws["sizes"], len(arrival), mean, size)
    table = opr_table(drawn)
    low, high = least_times(sigma, drawn), table.setup_time[1] + sigma * table.time_per_unit[1]
    if deadline == "largest":  # E falls, then rises in n
        high = np.maximum(high, _time_on_all_nodes(sigma, drawn))
    due = low + (high - low) * draws["deadlines"].random(len(sigma))
    tasks, source = _task_frame(arrival, sigma, due), "paper M, section 6.1"
    return _with_attrs(tasks, source, horizon, cluster, seed, load=load, reading=switches)


def _draw_fitting_pairs(
    draws: Mapping[str, Generator],
    count: int,
    mean: float,
    size: Law,
    scale: float,
    cluster: Cluster,
) -> tuple[Floats, Floats]:
    """Draw sizes and deadlines U[.5, 1.5] * scale in pairs; the first that fit are kept."""
    kept, drawn, have = [np.empty((2, 0))], 0, 0
    while have < count:
        if drawn > MAX_WORKLOAD_TASKS + 100 * count:
            raise InputError(
                f"deadline='redraw_both' found {have} pairs with D >= E among {drawn}, of {count} "
                "to find; use a larger dc_ratio, or deadline='clamp'"
            )
        more = min(max(count - have, 1000), PAIRS_PER_DRAW)
        sigma = draw_sizes(draws["sizes"], more, mean, size)
        pairs = np.stack([sigma, scale * (0.5 + draws["deadlines"].random(more))])
        kept.append(pairs[:, pairs[1] >= least_times(sigma, cluster)])
        drawn, have = drawn + more, have + kept[-1].shape[1]
    sigma, deadline = np.concatenate(kept, axis=1)[:, :count]
    return sigma, deadline


def dcratio(
    cluster: Cluster,
    load: float,
    horizon: float = 10_000_000.0,
    seed: Seed = 0,
    *,
    mean: float = 200.0,
    dc_ratio: float = 2.0,
    size: Law = "resample",
    deadline: str = "clamp",
) -> pd.DataFrame:
    r"""Draw the workload of paper I: single arrivals, deadlines around DCRatio times E.

    .. math:: 1/\lambda = \mathcal{E}(Avg\sigma, N) / SystemLoad, \qquad
              AvgD = DCRatio \cdot \mathcal{E}(Avg\sigma, N)

    The random streams are those of `mcdf`.

    Parameters
    ----------
    cluster, seed
        As in `mcdf`.
    load : float
        Nominal SystemLoad. What is realised is about 1.29 times that with
        ``size="resample"``, because the positive part of N(200, 200) has the mean
        257.5; it stands in ``attrs["realised_load"]``.
    horizon : float
        TotalSimulationTime; arrivals fall in (0, horizon).
    mean : float
        Avg sigma: mean of the sizes before they are made positive, and standard
        deviation of the normal law.
    dc_ratio : float
        Mean deadline over the execution time E(Avg sigma, N).
    size : {"resample", "clip", "abs", "uniform"} or callable
        What happens to draws of N(mean, mean) that are not positive: drawn again,
        raised to 0.01 * mean, as is every draw below it, or absolute value. "uniform"
        is U(0, 2 mean), the continuous form of the uniform 1..2 Avg - 1 that the
        authors' later simulator draws. Or a user's law, as for `mcdf`.
    deadline : {"clamp", "scaled", "redraw_both"}
        How D >= E(sigma, min(N, N*)) comes about: U[.5, 1.5] AvgD raised to it (drawing
        D alone again would never end for a large task); U[.5, 1.5] DCRatio E(sigma, N)
        raised to it, as the later simulator has it (from DCRatio 2 on nothing is
        raised where ST = 0); or size and deadline drawn again together.

    Returns
    -------
    DataFrame
        The tasks (module docstring); ``attrs`` has ``mean`` and ``dc_ratio`` too.

    Raises
    ------
    InputError
        As `mcdf`; with ``deadline="redraw_both"`` also where hardly any pair fits.

    References
    ----------
    Paper I, section 5.1; the formulas for SystemLoad and 1/lambda are misprinted there.
    """
    instance("cluster", cluster, Cluster)
    values = {"load": load, "horizon": horizon, "mean": mean, "dc_ratio": dc_ratio}
    load, horizon, mean, dc_ratio = require_positive(**values)
    switches: dict[str, Any] = {"size": size, "deadline": deadline}
    _check_switches(switches, "dcratio")
    typical, draws = float(_time_on_all_nodes(mean, cluster)), random_streams(seed, RANDOM_STREAMS)
    _check_interval(typical / load, load, horizon)
    arrival = _draw_arrival_points(draws["arrivals"], typical / load, horizon, "exponential")
    count, scale = len(arrival), dc_ratio * typical
    if deadline == "redraw_both":
        sigma, due = _draw_fitting_pairs(draws, count, mean, size, scale, cluster)
    else:
        sigma = draw_sizes(draws["sizes"], count, mean, size)
        scales = scale if deadline == "clamp" else dc_ratio * _time_on_all_nodes(sigma, cluster)
        due = scales * (0.5 + draws["deadlines"].random(count))
        due = np.maximum(due, least_times(sigma, cluster))
    tasks, source = _task_frame(arrival, sigma, due), "paper I, section 5.1"
    known = {"load": load, "reading": switches, "mean": mean, "dc_ratio": dc_ratio}
    return _with_attrs(tasks, source, horizon, cluster, seed, **known)


def user_split(
    tasks: pd.DataFrame, cluster: Cluster, seed: Seed = 0, n_min: str = "text"
) -> pd.DataFrame:
    r"""Draw the number of equal pieces into which a user cuts each task (User Split).

    .. math:: N_{min} = \left\lceil \frac{\sigma C_{ps}}{D - \sigma C_{ms}} \right\rceil,
              \qquad n \sim U\{N_{min}, \dots, N - 1\}

    and n = N where N_min >= N or the denominator is not positive; N_min is at least 1.
    A quotient above a whole number by no more than `dlsim.compiled.TOL` in time is that
    number. Every row has its own draw, from a random stream of this purpose alone.

    Parameters
    ----------
    tasks : DataFrame
        With the columns sigma and deadline; not changed.
    cluster, seed
        As in `mcdf`; set-up costs do not count, and the seed may be that of the workload.
    n_min : {"text", "code"}
        The formula above, or :math:`D - \sigma C_{ms} - C_{ps}` in its denominator, as
        the authors' later simulator has it.

    Returns
    -------
    DataFrame
        The same table with a whole-number column ``user_nodes`` in 1..N; ``attrs`` has
        ``user_seed``, and ``n_min`` in its ``reading``.

    Raises
    ------
    InputError
        For a missing column, a size or deadline that is not positive, an unknown
        option or a seed that is none.

    References
    ----------
    User Split: [5] of paper I, as the authors' later simulator has it.

    Examples
    --------
    >>> tasks = pd.DataFrame({"arrival": [0.0, 0.0], "sigma": [6.0, 6.0], "deadline": [9.0, 7.0]})
    >>> user_split(tasks, Cluster(nodes=3, cms=1.0, cps=1.0))["user_nodes"].tolist()
    [2, 3]
    """
    one_of("n_min", n_min, SWITCHES["user_split"]["n_min"])
    instance("cluster", cluster, Cluster)
    sigma, deadline = model.task_columns(tasks, ("sigma", "deadline"), unique=False)
    nodes, slack = cluster.nodes, TOL * deadline
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        spare = deadline - sigma * cluster.cms - (cluster.cps if n_min == "code" else 0.0)
        fewest = np.clip(np.ceil(sigma * cluster.cps / (spare + slack)), 1, nodes)
    low = np.where(spare > slack, fewest, nodes)
    place = random_streams(seed, RANDOM_STREAMS)["user_nodes"].random(len(tasks))
    count = low + np.floor(place * (nodes - low))
    split = tasks.assign(user_nodes=count.astype(np.int64))
    reading = {**tasks.attrs.get("reading", {}), "n_min": n_min}
    split.attrs = {**tasks.attrs, "reading": reading, "user_seed": validate.seed_record(seed)}
    return split


def from_csv(path: files.StrPath) -> pd.DataFrame:
    """Read tasks from a CSV file with the columns arrival, sigma and deadline."""
    wanted = {"arrival": "nonnegative", "sigma": "positive", "deadline": "positive"}
    tasks = files.read_csv(path, wanted, {"task": "text"}, ascending="arrival", unique="task")
    if tasks.empty:
        raise InputError(f"{os.fspath(path)}: holds no task; give one line per task")
    ids = tasks.pop("task") if "task" in tasks else range(len(tasks))
    numbered = all(re.fullmatch("0|[1-9][0-9]{0,14}", str(name)) for name in ids)
    labels = [int(name) for name in ids] if numbered else list(ids)
    tasks.index = pd.Index(labels, dtype=np.int64 if numbered else object, name="task")
    tasks = tasks[[*wanted, *(name for name in tasks if name not in wanted)]]
    return _with_attrs(tasks, path, float(tasks["arrival"].iloc[-1]), skipped={})


def from_swf(
    path: files.StrPath,
    cluster: Cluster,
    *,
    work_per_unit: float | None = None,
    dc_ratio: float = 2.0,
    time_scale: float = 1.0,
    max_jobs: int | None = None,
    seed: Seed = 0,
    limit: int = files.MAX_LOG_BYTES,
) -> pd.DataFrame:
    """Make divisible tasks of the jobs of a log in the Standard Workload Format.

    A log knows neither data sizes nor deadlines; how a job becomes a task is this rule:

    - arrival = (submit time - that of the first usable job) * `time_scale`;
    - sigma = processors * run time / `work_per_unit`, with the allocated processors,
      or the requested ones where those are unknown;
    - deadline = U[0.5, 1.5] * `dc_ratio` * E, but never below E, the minimum execution
      time E(sigma, min(N, N*)) on `cluster`: around the task's own least time, as in the later
      simulator of the authors of paper I, whose section 5.1 takes one mean for all tasks.

    Jobs without run time, processors or submit time, lines for a part of a job (status
    2, 3, 4) and numbers outside the range of `dlsim.validate` are skipped and counted. Log and
    cluster are not matched otherwise: the realised load is what follows.
    """
    instance("cluster", cluster, Cluster)
    unit = cluster.cps if work_per_unit is None else work_per_unit
    rule = {"work_per_unit": unit, "dc_ratio": dc_ratio, "time_scale": time_scale}
    unit, dc_ratio, time_scale = require_positive(**rule)
    max_jobs = None if max_jobs is None else validate.whole("max_jobs", max_jobs)
    jobs, _, notes = joblog.read_swf(path, limit)
    draws = 0.5 + random_streams(seed, RANDOM_STREAMS)["deadlines"].random(len(jobs))
    processors = joblog.processors_of_jobs(jobs)
    with np.errstate(over="ignore"):
        sigma = processors * jobs["run_time"] / unit
        least = least_times(sigma, cluster)
        deadline = least * np.maximum(1.0, dc_ratio * draws)
        tasks = _task_frame(jobs["submit"] * time_scale, sigma, deadline)
    fits = validate.in_range(tasks).all(axis=1) & (tasks["sigma"] != 0)
    reasons = {**joblog.reasons_against(jobs, processors), "value out of range": ~fits}
    why = joblog.first_reason(reasons, jobs.index)
    order = joblog.order_usable(path, jobs["submit"], why, "task")
    why[order[len(order[:max_jobs]) :]] = "beyond max_jobs"
    skipped = joblog.count_reasons(why)
    tasks = tasks.loc[order[:max_jobs]]
    tasks["arrival"] -= tasks["arrival"].iloc[0]
    numbers = jobs["job"][tasks.index]
    if numbers.is_unique and ((numbers % 1 == 0) & (numbers.abs() < 2**53)).all():
        tasks.index = pd.Index(numbers.astype(np.int64), name="task")
    else:
        notes.append("job numbers are not different whole numbers; tasks are counted from 0")
        tasks.index = pd.RangeIndex(len(numbers), name="task")
    horizon = float(tasks["arrival"].iloc[-1])
    reading = {**{name: float(value) for name, value in rule.items()}, "max_jobs": max_jobs}
    known = {"reading": reading, "skipped": skipped, "notes": notes}
    return _with_attrs(tasks, path, horizon, cluster, seed, **known)
