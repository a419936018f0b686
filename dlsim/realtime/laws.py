"""What workloads are made of: random streams, sizes, arrival points, signed tables.

Every purpose has a random stream of its own and every task its own draws, so that
workloads which differ in one respect share the draws of the others.
"""

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from scipy.special import ndtr

from dlsim import files
from dlsim.errors import InputError
from dlsim.given import column, option, positive
from dlsim.realtime.model import Cluster
from dlsim.realtime.partition import Floats, least_times, table_of

#: Smallest size under ``size="clip"``, as a share of the mean.
FLOOR = 0.01
#: Most tasks of one workload, so that a slip in load or horizon does not fill the memory.
MOST_TASKS = 50_000_000

#: In the order of their seeds.
PURPOSES = ("arrivals", "batches", "sizes", "deadlines", "user_nodes", "law")

#: What becomes of normal draws that are not positive, by the switch ``size``.
_POSITIVE: dict[str, Callable[[Floats, float], Floats]] = {
    "resample": lambda draws, mean: draws[draws > 0],
    "abs": lambda draws, mean: np.maximum(np.abs(draws), np.finfo(float).tiny),
    "clip": lambda draws, mean: np.maximum(draws, FLOOR * mean),
}

#: Every law of the sizes, and one of the user's own: so many sizes from a generator.
SIZES = (*_POSITIVE, "uniform")
Law = str | Callable[[Generator, int], Any]
#: Sizes of a law of one's own that stand for it where its mean least time is asked for.
SAMPLE = 100_000


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
    (mean,) = positive(mean=mean)
    option("size", size, SIZES)
    table, top = table_of(cluster), cluster.nodes + 1
    floor = FLOOR * mean if size == "clip" else 0.0
    edges = np.maximum(np.append(table.least[1:top], np.inf), floor)
    below = _uniform_below if size == "uniform" else _normal_below
    mass, moment = (np.diff(part) for part in below(edges, mean))
    if size == "abs":
        left, negative = (np.diff(part) for part in _normal_below(-edges, mean))
        mass, moment = mass - left, moment + negative
    total = float(table.fixed[1:top] @ mass + table.unit[1:top] @ moment)
    if size == "clip":
        total += float(ndtr(FLOOR - 1) * least_times(floor, cluster))
    return total / float(ndtr(1.0)) if size == "resample" else total


def points(stream: Generator, mean: float, horizon: float, interval: str) -> Floats:
    """Draw arrival points at a mean interval up to the horizon, the first after one interval."""
    gaps = np.empty(0)
    size = int(1.1 * horizon / mean) + 100
    while True:
        if interval == "poisson":
            more = stream.poisson(mean, size).astype(float)
        else:
            more = mean * stream.standard_exponential(size)
        gaps = np.concatenate([gaps, more])
        reached = np.cumsum(gaps)
        if reached[-1] >= horizon:
            return reached[reached < horizon]
        size = len(gaps)


def sizes(stream: Generator, count: int, mean: float, size: Law) -> Floats:
    """Draw data sizes; no draw beyond the last one needed is taken from the stream.

    `size` says how draws of N(mean, mean) are made positive, or "uniform": U(0, 2 mean) instead;
    or it is a function that draws them itself.
    """
    if callable(size):
        name = getattr(size, "__name__", "size")
        rule = f"law {name}(generator, {count}) must return {count} sizes above 0"
        drawn = size(stream, count)
        if np.shape(drawn) != (count,):
            raise InputError(f"{rule}; got {type(drawn).__name__} of shape {np.shape(drawn)}")
        return np.asarray(column(f"size by law {name}", drawn, above=True))
    if size == "uniform":
        return 2 * mean * (1 - stream.random(count))
    drawn = np.empty(0)
    while len(drawn) < count:
        draws = mean + mean * stream.standard_normal(count - len(drawn))
        drawn = np.concatenate([drawn, _POSITIVE[size](draws, mean)])
    return drawn


def check_interval(interval: float, load: float, horizon: float, per_point: float = 1.0) -> None:
    """Refuse a mean interval that makes too many tasks, or none that a float can tell."""
    if not horizon * per_point < MOST_TASKS * interval or not interval < 1e18:
        what = f"load {load!r} gives a mean interval of {interval:.3g} in a horizon of {horizon!r}"
        raise InputError(f"{what}; choose values that make at most {MOST_TASKS} tasks")


def frame(arrival: Any, sigma: Any, deadline: Any) -> pd.DataFrame:
    """Return a task table, counted from 0."""
    columns = {"arrival": arrival, "sigma": sigma, "deadline": deadline}
    return pd.DataFrame(columns, index=pd.RangeIndex(len(arrival), name="task"))


def signed(tasks: pd.DataFrame, source: files.StrPath, **known: Any) -> pd.DataFrame:
    """Say in the attrs where tasks come from."""
    tasks.attrs.update(dict.fromkeys(("load", "realised_load", "horizon", "seed")))
    tasks.attrs.update({"source": os.fspath(source), "reading": {}, **known})
    return tasks


def realised_load(tasks: pd.DataFrame, cluster: Cluster, horizon: float) -> float:
    """Load that a set of tasks really is, by paper M's own definition (section 6.1)."""
    (horizon,) = positive(horizon=horizon)
    return float(least_times(tasks["sigma"], cluster).sum()) / horizon
