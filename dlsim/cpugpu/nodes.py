"""Jobs on several nodes, each a CPU and a GPU: which type, how many nodes, and when.

Source: paper C, the "second problem" of sections 2 and 7, from V. Ravi, M. Becchi,
W. Jiang, G. Agrawal, S. Chakradhar, "Scheduling Concurrent Applications on a Cluster of
CPU-GPU Nodes" (CCGrid 2012). Neither text prints a model: how a job speeds up with nodes,
what both devices of a node give together, and the flexible schedulers are our reading.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    """

    nodes: int = 4
    counts: tuple[int, ...] = (1, 2, 4)
    exponent: float = 0.9
    both: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", whole("nodes", self.nodes, 1, 10_000))
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
        one = {"cpu": cpu, "gpu": gpu}
        alone = one[kind] if kind in one else 1 / (self.both * (1 / cpu + 1 / gpu))
        return float(alone / count**self.exponent)


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


def options_of(job: Job, pool: NodePool, scheduler: Scheduler, real: bool = False) -> list[Option]:
    """List the ways to run a job that a scheduler considers."""
    cpu, gpu = (job.cpu, job.gpu) if real else (job.cpu_estimate, job.gpu_estimate)
    kinds = {"preferred": (job.preferred,), "one": TYPES[:2], "any": TYPES}[scheduler.types]
    counts = (job.nodes,) if scheduler.counts == "requested" else pool.counts
    found = [Option(n, kind, pool.time(cpu, gpu, kind, n)) for n in counts for kind in kinds]
    return [option for option in found if not np.isnan(option.time)]


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
    ways = [options_of(job, pool, SCHEDULERS["flexible"], real=True) for job in rows]
    longest = max(
        job.arrival + min(way.time for way in own) for job, own in zip(rows, ways, strict=True)
    )
    spread = sum(min(device_time(way) for way in own) for own in ways) / (2 * pool.nodes)
    return max(longest, min(job.arrival for job in rows) + spread)


def device_time(option: Option) -> float:
    """Return the device time that a way to run a job takes."""
    return option.width * option.time * (2 if option.kind == "both" else 1)
