"""Nodes with a CPU and a GPU each, jobs that can use several, and what a scheduler decides.

Source: paper C, the "second problem" of sections 2 and 7, from V. Ravi, M. Becchi,
W. Jiang, G. Agrawal, S. Chakradhar, "Scheduling Concurrent Applications on a Cluster of
CPU-GPU Nodes" (CCGrid 2012). Neither text prints a model: how a job speeds up with nodes,
what both devices of a node give together, and the flexible schedulers are our reading.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.cpugpu.given import MOST_COUNT, estimates_of, time_column
from dlsim.errors import InputError
from dlsim.given import flag, number, option, table, whole

#: What a job can run on, in the order that decides the last tie.
TYPES = ("gpu", "cpu", "both")

TYPE_RULES = ("preferred", "one", "any")
COUNT_RULES = ("requested", "any")
LINES = ("none", "class", "strict")
ORDERS = ("queue", "longest")


@dataclass(frozen=True)
class NodePool:
    r"""Equal nodes with a CPU and a GPU each, and what several of them give a job.

    .. math:: t(n) = t(1) / n^{e}, \qquad
              t_{both}(n) = \Bigl( c \bigl( 1/t_{cpu}(n) + 1/t_{gpu}(n) \bigr) \Bigr)^{-1}

    Parameters
    ----------
    nodes : int
        N.
    counts : tuple of int
        Numbers of nodes that a job can use; those beyond N are left out.
    exponent : float
        e in 0..1: 1 for a perfect speed-up.
    both : float
        c in 0..1: what is left of the joint rate of the CPUs and GPUs of n nodes.
    times : mapping of (str, int) to float or DataFrame, optional
        Instead of both formulas: the time of a job by type ("cpu", "gpu", "both") and number
        of nodes, such as one that was measured; a table has the columns type, nodes and time.
        A job whose times on one node are others takes as many times as long; of "both" it is
        :math:`1 / (1/t_{cpu}(1) + 1/t_{gpu}(1))` that counts. `counts` are then those of the
        table, and what is not in it is not run.

    Examples
    --------
    >>> pool = NodePool(2, times={("gpu", 1): 4, ("gpu", 2): 3, ("cpu", 1): 10})
    >>> pool.time(20, 8, "gpu", 2), pool.time(20, 8, "cpu", 2)
    (6.0, nan)
    """

    nodes: int = 4
    counts: tuple[int, ...] = (1, 2, 4)
    exponent: float = 0.9
    both: float = 0.95
    times: Mapping[tuple[str, int], float] | pd.DataFrame | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", whole("nodes", self.nodes, 1, 10_000))
        if self.times is not None:
            times = _need_times(self.times)
            object.__setattr__(self, "times", times)
            object.__setattr__(self, "counts", tuple({n for _, n in times}))
        if isinstance(self.counts, str) or not isinstance(self.counts, Sequence):
            raise InputError(f"counts must be a list of numbers of nodes, got {self.counts!r}")
        counts = sorted({whole("counts", n, 1, MOST_COUNT) for n in self.counts})
        usable = tuple(n for n in counts if n <= self.nodes)
        if not usable:
            raise InputError(
                f"counts must hold a number of at most {self.nodes} nodes, got {self.counts!r}"
            )
        object.__setattr__(self, "counts", usable)
        number("exponent", self.exponent, 0, 1)
        number("both", self.both, 0, 1, above=True)

    def time(self, cpu: float, gpu: float, kind: str, count: int) -> float:
        """Return how long a job of these times on one node takes; NaN without a version."""
        for name, time in (("cpu", cpu), ("gpu", gpu)):
            if time == time:
                number(f"the time on a {name}", time, above=True)
        one, joint = {"cpu": cpu, "gpu": gpu}, 1.0 if self.times is not None else self.both
        alone = one[kind] if kind in one else 1 / (joint * (1 / cpu + 1 / gpu))
        if self.times is not None:
            return float(alone * self._parts.get((kind, count), math.nan))
        return float(alone / count**self.exponent)

    @cached_property
    def _parts(self) -> dict[tuple[str, int], float]:
        """What is left of a job's time on one node, by the table of times."""
        times: Any = self.times
        one = {kind: float(times.get((kind, 1), math.nan)) for kind in ("cpu", "gpu")}
        one["both"] = 1 / (1 / one["cpu"] + 1 / one["gpu"])
        return {(kind, n): time / one[kind] for (kind, n), time in times.items()}


def _need_times(times: Any) -> dict[tuple[str, int], float]:
    """Return a table of times as a mapping, refusing a type whose time on one node it lacks."""
    if not isinstance(times, Mapping):
        table("times", times, ("type", "nodes", "time"), unique=False)
        times = table("times", times.set_index(["type", "nodes"]), ("time",))["time"]
    found: dict[Any, float] = {}
    for key, time in times.items():
        if not isinstance(key, tuple) or len(key) != 2:
            raise InputError(f'times must name type and nodes as ("gpu", 2), got {key!r}')
        way = option("type of times", key[0], TYPES), whole("nodes of times", key[1], 1, MOST_COUNT)
        found[way] = float(number(f"times of {way!r}", time, above=True))
    if not found:
        raise InputError("times must hold a time of a type on 1 node at least, got none")
    for kind, n in found:
        one = [(cls, 1) for cls in ("cpu", "gpu") if kind in (cls, "both")]
        if not set(one) <= set(found):
            raise InputError(
                f"times must hold {', '.join(map(str, one))}, by which {kind} on {n} is scaled to "
                f"jobs of other times; got {', '.join(map(str, found))}"
            )
    return found


class Job(NamedTuple):
    """A row of the table of jobs."""

    place: int
    arrival: float
    cpu: float
    gpu: float
    cpu_estimate: float
    gpu_estimate: float
    nodes: int

    @property
    def preferred(self) -> str:
        """The type with the smaller declared time, the GPU on a tie."""
        cpu, gpu = self.cpu_estimate, self.gpu_estimate
        return "cpu" if np.isnan(gpu) or cpu < gpu else "gpu"


class Option(NamedTuple):
    """A way to run a job."""

    width: int
    kind: str
    time: float

    @property
    def area(self) -> float:
        """The device time that it takes."""
        return self.width * self.time * (2 if self.kind == "both" else 1)


@dataclass(frozen=True)
class Scheduler:
    r"""What a scheduler of problem 2 decides, as data.

    Parameters
    ----------
    types : {"preferred", "one", "any"}
        The type with the smaller time on one node, which the user names; the CPU or the
        GPU; or both together as well.
    counts : {"requested", "any"}
        The number of nodes that the job asks for, or any of the pool's.
    line : {"none", "class", "strict"}
        Whether a job is booked on nodes at once, or waits in line for whatever nodes get
        free first: a line per type, or one for all.
    weights : tuple of float
        :math:`\lambda`: the least completion + lambda area / (2N) is chosen, area being
        nodes times time; of several weights, that with the least makespan of the batch.
    orders : tuple of {"queue", "longest"}
        Orders in which a batch is booked; of several, that with the least makespan.
    search : bool
        Exhaustive: the least makespan of all schedules, all jobs and times known.
    """

    types: str = "any"
    counts: str = "any"
    line: str = "none"
    weights: tuple[float, ...] = (0.0,)
    orders: tuple[str, ...] = ("queue",)
    search: bool = False

    def __post_init__(self) -> None:
        option("types", self.types, TYPE_RULES)
        option("counts", self.counts, COUNT_RULES)
        option("line", self.line, LINES)
        for name in ("weights", "orders"):
            if not isinstance(getattr(self, name), tuple) or not getattr(self, name):
                raise InputError(f"{name} must be a tuple, not empty; got {getattr(self, name)!r}")
        for weight in self.weights:
            number("weights", weight)
        for order in self.orders:
            option("orders", order, ORDERS)
        if self.line != "none" and (self.types, self.counts) != ("preferred", "requested"):
            raise InputError(
                f"line={self.line!r} needs types='preferred' and counts='requested'; got "
                f"{self.types!r} and {self.counts!r}: who waits in line chooses nothing"
            )
        flag("search", self.search)

    def options(self, job: Job, pool: NodePool, real: bool = False) -> list[Option]:
        """List the ways to run a job that are considered, by its declared or `real` times."""
        cpu, gpu = (job.cpu, job.gpu) if real else (job.cpu_estimate, job.gpu_estimate)
        kinds = {"preferred": (job.preferred,), "one": TYPES[:2], "any": TYPES}[self.types]
        counts = (job.nodes,) if self.counts == "requested" else pool.counts
        found = [Option(n, kind, pool.time(cpu, gpu, kind, n)) for n in counts for kind in kinds]
        found = [option for option in found if not np.isnan(option.time)]
        if not found:
            ways = f"{' or '.join(kinds)} on {' or '.join(map(str, counts))} nodes"
            raise InputError(f"times must say how long row {job.place} of jobs takes: {ways}")
        return found


#: TORQUE waits for its type, strictly in line or in a line per type; MCT chooses the type
#: and keeps the nodes asked for (mct-any: both devices of a node too); the rest also mould.
SCHEDULERS: dict[str, Scheduler] = {
    "torque-strict": Scheduler("preferred", "requested", "strict"),
    "torque": Scheduler("preferred", "requested", "class"),
    "mct": Scheduler("one", "requested"),
    "mct-any": Scheduler("any", "requested"),
    "flexible": Scheduler(),
    "area": Scheduler(weights=(0.0, 0.25, 0.5, 1.0, 2.0), orders=ORDERS),
    "exhaustive": Scheduler(search=True),
}


def jobs_of(jobs: pd.DataFrame, pool: NodePool) -> list[Job]:
    """Read a table of jobs."""
    table("jobs", jobs, ("cpu_time", "gpu_time"), empty=False)
    columns = {
        name: time_column("jobs", jobs, name, True, True) for name in ("cpu_time", "gpu_time")
    }
    none = np.isnan(columns["cpu_time"]) & np.isnan(columns["gpu_time"])
    if none.any():
        raise InputError(
            f"jobs: row {jobs.index[int(np.argmax(none))]!r} must have a cpu_time or a gpu_time"
        )
    arrival = time_column("jobs", jobs, "arrival") if "arrival" in jobs else np.zeros(len(jobs))
    estimates = [estimates_of(jobs, name[:3], real, True) for name, real in columns.items()]
    asked = jobs["nodes"].tolist() if "nodes" in jobs else [1] * len(jobs)
    nodes = []
    for label, wanted in zip(jobs.index, asked, strict=True):
        nodes.append(count := whole(f"nodes of job {label!r}", wanted, 1, MOST_COUNT))
        if count not in pool.counts:
            raise InputError(
                f"nodes of job {label!r} must be one of the pool's counts, "
                f"{', '.join(map(str, pool.counts))}; got {count}"
            )
    rows = np.column_stack([arrival, *columns.values(), *estimates]).tolist()
    both = zip(rows, nodes, strict=True)
    return [Job._make((i, *row, count)) for i, (row, count) in enumerate(both)]


def lower_bound(jobs: pd.DataFrame, pool: NodePool | None = None) -> float:
    """Return a makespan that no schedule can beat, for queues beyond exhaustive search."""
    pool = NodePool() if pool is None else pool
    rows = jobs_of(jobs, pool)
    ways = [SCHEDULERS["flexible"].options(job, pool, real=True) for job in rows]
    longest = max(
        job.arrival + min(way.time for way in own) for job, own in zip(rows, ways, strict=True)
    )
    spread = sum(min(way.area for way in own) for own in ways) / (2 * pool.nodes)
    return max(longest, min(job.arrival for job in rows) + spread)
