"""Jobs on several nodes, each a CPU and a GPU: which type, how many nodes, and when.

Source: paper C, the "second problem" of sections 2 and 7, from V. Ravi, M. Becchi,
W. Jiang, G. Agrawal, S. Chakradhar, "Scheduling Concurrent Applications on a Cluster of
CPU-GPU Nodes" (CCGrid 2012). Neither text prints a model: how a job speeds up with nodes,
what both devices of a node give together, and the flexible schedulers are our reading.

Jobs are booked at once, wait in line, or all schedules are searched for the least makespan: a
branch and bound over the order of the starts (every schedule without needless waiting can be
laid in it), the ways to run, and the nodes, of which those that look alike count once.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, groupby, product
from operator import attrgetter, le
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.compiled import clock_origin, latest_finish
from dlsim.cpugpu.job_table import (
    VERSIONS,
    busy_shares,
    declared_times,
    do_not_overlap,
    find_earliest,
    first_label,
    is_same_instant,
    previous_in_lane,
    require,
    require_single_labels,
    same_instants,
    time_column,
)
from dlsim.cpugpu.model import MOST_COUNT, JobMetrics
from dlsim.errors import InputError
from dlsim.rounding import not_after
from dlsim.validate import (
    column,
    find_row,
    flag,
    number,
    one_of,
    or_default,
    require_table,
    user_code,
    whole,
)

__all__ = ["SCHEDULERS", "MoldableResult", "NodePool", "Scheduler", "lower_bound", "run_moldable"]

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
        own = vars(self)
        own["nodes"] = whole("nodes", self.nodes, 1, 10_000)
        if self.times is not None:
            times = _need_times(self.times)
            own.update(times=times, counts=tuple({n for _, n in times}))
        if isinstance(self.counts, str) or not isinstance(self.counts, Sequence):
            raise InputError(f"counts must be a list of numbers of nodes, got {self.counts!r}")
        counts = sorted({whole("counts", n, 1, MOST_COUNT) for n in self.counts})
        usable = tuple(n for n in counts if n <= self.nodes)
        if not usable:
            raise InputError(
                f"counts must hold a number of at most {self.nodes} nodes, got {self.counts!r}"
            )
        own.update(
            counts=usable,
            exponent=number("exponent", self.exponent, 0, 1),
            both=number("both", self.both, 0, 1, above=True),
        )

    def time(self, cpu: float, gpu: float, kind: str, count: int) -> float:
        """Return how long a job of these times on one node takes; NaN without a version."""
        one_of("kind", kind, TYPES)
        count = whole("count", count, 1, MOST_COUNT)
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
        require_table("times", times, ("type", "nodes", "time"), unique=False)
        with user_code("type of times must be the name of one"):  # what cannot be hashed
            times = require_table("times", times.set_index(["type", "nodes"]), ("time",))["time"]
    found: dict[Any, float] = {}
    for key, time in times.items():
        if not isinstance(key, tuple) or len(key) != 2:
            raise InputError(f'times must name type and nodes as ("gpu", 2), got {key!r}')
        way = one_of("type of times", key[0], TYPES), whole("nodes of times", key[1], 1, MOST_COUNT)
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
        one_of("types", self.types, TYPE_RULES)
        one_of("counts", self.counts, COUNT_RULES)
        one_of("line", self.line, LINES)
        for name in ("weights", "orders"):
            if not isinstance(getattr(self, name), tuple) or not getattr(self, name):
                raise InputError(f"{name} must be a tuple, not empty; got {getattr(self, name)!r}")
        for weight in self.weights:
            number("weights", weight)
        for order in self.orders:
            one_of("orders", order, ORDERS)
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
    require_single_labels("jobs", require_table("jobs", jobs, VERSIONS, empty=False))
    columns = {name: time_column("jobs", jobs, name, True, True) for name in VERSIONS}
    if (none := np.isnan([*columns.values()]).all(axis=0)).any():
        row = first_label(jobs.index, none)
        raise InputError(f"jobs: row {row!r} must have a cpu_time or a gpu_time")
    arrival = time_column("jobs", jobs, "arrival") if "arrival" in jobs else np.zeros(len(jobs))
    estimates = [declared_times(jobs, name[:3], real, True) for name, real in columns.items()]
    asked = jobs["nodes"] if "nodes" in jobs else np.ones(len(jobs))
    of_job: Any = {"is_whole": True, "row": "job", "labels": jobs.index}
    nodes = column("nodes", asked, 1, MOST_COUNT, **of_job)
    if (other := ~np.isin(nodes, pool.counts)).any():
        raise InputError(
            f"nodes of job {first_label(jobs.index, other)!r} must be one of the pool's counts, "
            f"{', '.join(map(str, pool.counts))}; got {nodes[other][0]}"
        )
    rows = np.column_stack([arrival, *columns.values(), *estimates]).tolist()
    both = zip(rows, nodes.tolist(), strict=True)
    return [Job._make((i, *row, count)) for i, (row, count) in enumerate(both)]


def lower_bound(jobs: pd.DataFrame, pool: NodePool | None = None) -> float:
    """Return a makespan that no schedule can beat, for queues beyond exhaustive search."""
    pool = or_default("pool", pool, NodePool)
    rows = jobs_of(jobs, pool)
    ways = [SCHEDULERS["flexible"].options(job, pool, real=True) for job in rows]
    longest = max(
        job.arrival + min(way.time for way in own) for job, own in zip(rows, ways, strict=True)
    )
    spread = sum(min(way.area for way in own) for own in ways) / (2 * pool.nodes)
    return max(longest, min(job.arrival for job in rows) + spread)


#: Most jobs and nodes of a search, which then takes about a second.
MOST_JOBS, MOST_NODES = 5, 4
#: When each node's (GPU, CPU) is free.
Free = list[tuple[float, float]]


class Reservation(NamedTuple):
    """A job with its way to run, its nodes, the end that is expected, and its start."""

    job: Job
    way: Option
    nodes: tuple[int, ...]
    predicted: float
    start: float = math.nan

    def time(self, pool: NodePool) -> float:
        """Return how long the job really takes."""
        return pool.time(self.job.cpu, self.job.gpu, self.way.kind, self.way.width)


#: Bookings in their order.
Plan = list[Reservation]


def _free_at(free: Free, nodes: tuple[int, ...], kind: str) -> float:
    """Return when all of these nodes can serve a type."""
    if kind == "both":
        return max(max(free[node]) for node in nodes)
    return max(free[node][kind == "cpu"] for node in nodes)


def _occupy(free: Free, nodes: tuple[int, ...], kind: str, end: float, span: float) -> None:
    """Book nodes until an instant, in place; one that is known already keeps its name."""
    end = next((at for pair in free for at in pair if is_same_instant(at, end, span)), end)
    for node in nodes:
        gpu, cpu = free[node]
        free[node] = (gpu if kind == "cpu" else end, cpu if kind == "gpu" else end)


def _placed(job: Job, ways: list[Option], free: Free, floor: float) -> Iterator[Reservation]:
    """Yield every way to run on the nodes that are free first, with its start."""
    order: dict[str, list[int]] = {}
    for way in ways:
        if way.kind not in order:
            instants = [_free_at(free, (node,), way.kind) for node in range(len(free))]
            order[way.kind] = sorted(range(len(free)), key=instants.__getitem__)
        nodes = tuple(order[way.kind][: way.width])
        start = max(floor, _free_at(free, nodes[-1:], way.kind))
        yield Reservation(job, way, nodes, start + way.time, start)


def _book(batch: list[Job], free: Free, pool: NodePool, row: Scheduler, now: float) -> Plan:
    """Book a batch on the devices as they are expected to be free: the best of all tries."""
    ways = {job: row.options(job, pool) for job in batch}
    longest, tries = sorted(batch, key=lambda job: -min(way.time for way in ways[job])), []
    for weight, order in product(row.weights, row.orders):
        tries.append(list[Reservation]())
        instants, penalty = list(free), weight / (2 * len(free))
        for job in longest if order == "longest" else batch:
            found = list(_placed(job, ways[job], instants, job.arrival))
            ends = [one.predicted + penalty * one.way.width * one.way.time for one in found]
            best = found[find_earliest(ends, job.arrival)]
            _occupy(instants, best.nodes, best.way.kind, best.predicted, best.way.time)
            tries[-1].append(best)
    return tries[find_earliest([max(one.predicted for one in plan) for plan in tries], now)]


def _run(jobs: list[Job], pool: NodePool, row: Scheduler) -> Plan:
    """Book batch after batch, or serve lines in order, where all wait behind the head.

    A job starts once all its devices have done those before it.
    """
    plan, unfinished = Plan(), Plan()
    free: Free = [(0.0, 0.0)] * pool.nodes
    heads: dict[object, float] = {}

    def in_line(job: Job) -> Reservation:
        (booking,) = _placed(job, row.options(job, pool), free, 0.0)
        return booking._replace(predicted=math.nan)

    for now, group in groupby(sorted(jobs, key=attrgetter("arrival")), attrgetter("arrival")):
        batch = list(group)
        bookings: Any = map(in_line, batch)
        if row.line == "none":
            left = ((one, one.time(pool)) for one in unfinished)
            unfinished = [one for one, time in left if one.start + time > latest_finish(now, time)]
            told: Free = [(now, now)] * pool.nodes  # knowing what happened until now
            for one in unfinished:
                (_, kind, expected), nodes = one.way, one.nodes
                is_running = one.start <= latest_finish(now, one.time(pool))
                begun = one.start if is_running else _free_at(told, nodes, kind)
                _occupy(told, nodes, kind, max(now, begun + expected), expected)
            bookings = _book(batch, told, pool, row, now)
        for booking in bookings:
            kind, nodes, time = booking.way.kind, booking.nodes, booking.time(pool)
            line = {"none": booking.job, "class": kind, "strict": "all"}[row.line]
            heads[line] = max(now, heads.get(line, 0.0), _free_at(free, nodes, kind))
            _occupy(free, nodes, kind, heads[line] + time, time)
            plan.append(booking._replace(start=heads[line]))
            unfinished.append(plan[-1])
    return plan


def _search(jobs: list[Job], pool: NodePool, row: Scheduler) -> Plan:
    """Find a schedule with the least makespan; all arrivals and realised times are known."""
    if len(jobs) > MOST_JOBS or pool.nodes > MOST_NODES:
        raise InputError(
            f"an exhaustive search takes at most {MOST_JOBS} jobs on {MOST_NODES} nodes, got "
            f"{len(jobs)} on {pool.nodes}; compare with lower_bound instead"
        )
    jobs = [job._replace(cpu_estimate=job.cpu, gpu_estimate=job.gpu) for job in jobs]
    area = replace(SCHEDULERS["area"], types=row.types, counts=row.counts)
    best = _run(jobs, pool, area)
    least = max(one.predicted for one in best)
    ways = {job: row.options(job, pool) for job in jobs}
    quickest = {job: min(way.time for way in own) for job, own in ways.items()}
    smallest = {job: min(way.area for way in own) for job, own in ways.items()}
    seen: dict[frozenset[Job], list[tuple[float, ...]]] = {}

    def later(left: frozenset[Job], free: Free, last: float) -> Iterator[Reservation]:
        """All bookings that start no earlier than the last one."""
        for job in sorted(left):
            for way in ways[job]:
                alike = set()
                for nodes in combinations(range(len(free)), way.width):
                    key = tuple(sorted(free[node] for node in nodes))
                    start = max(job.arrival, _free_at(free, nodes, way.kind))
                    if key not in alike and start >= last:
                        yield Reservation(job, way, nodes, start + way.time, start)
                    alike.add(key)

    def visit(left: frozenset[Job], free: Free, plan: Plan) -> None:
        """Extend a partial schedule in every way that can still be better."""
        nonlocal best, least
        if not left:
            makespan = max(one.predicted for one in plan)
            best, least = (plan, makespan) if makespan < least else (best, least)
            return
        last = plan[-1].start if plan else -math.inf
        clipped = sorted((max(gpu, last), max(cpu, last)) for gpu, cpu in free)
        longest = max(max(last, job.arrival) + quickest[job] for job in left)
        spread = sum(map(sum, clipped)) + sum(smallest[job] for job in left)
        known, instants = seen.setdefault(left, []), tuple(at for node in clipped for at in node)
        if max(longest, spread / (2 * len(free)), *instants) >= least:
            return
        if any(all(map(le, other, instants)) for other in known):
            return  # the same jobs were left before, with every device free as early
        known.append(instants)
        for booking in sorted(later(left, free, last), key=attrgetter("predicted")):
            if booking.predicted >= least:
                return
            after, (job, way, nodes, end, _) = list(free), booking
            _occupy(after, nodes, way.kind, end, way.time)
            visit(left - {job}, after, [*plan, booking])
            if len(left) == 1:  # it ends first of all that the last job can do
                return

    visit(frozenset(jobs), [(0.0, 0.0)] * pool.nodes, [])
    return best


def run_moldable(
    jobs: pd.DataFrame, pool: NodePool | None = None, scheduler: str | Scheduler = "flexible"
) -> "MoldableResult":
    """Schedule jobs on nodes with a CPU and a GPU each, without preemption.

    Parameters
    ----------
    jobs : DataFrame
        Columns cpu_time, gpu_time (realised on one node; NaN: no version), and where given
        arrival (0), nodes (asked for; 1), cpu_estimate, gpu_estimate (declared). Jobs of one
        arrival instant are one batch.
    pool : NodePool, optional
        The nodes.
    scheduler : str or Scheduler
        A name of `SCHEDULERS`, or a row of one's own.

    Returns
    -------
    MoldableSchedule
        Tables; its `check` tests the model's rules.

    Raises
    ------
    InputError
        For a row that cannot be used, an unknown scheduler, or a search that is too big.

    Examples
    --------
    >>> jobs = pd.DataFrame({"cpu_time": [8.0, 8.0], "gpu_time": [4.0, 4.0]})
    >>> run_moldable(jobs, NodePool(1), "mct").jobs["type"].tolist()
    ['gpu', 'gpu']
    """
    pool = or_default("pool", pool, NodePool)
    name, row = find_row("scheduler", scheduler, SCHEDULERS, lambda row: "own")
    read = jobs_of(jobs, pool)
    origin = clock_origin(np.sort([job.arrival for job in read]))
    read = [job._replace(arrival=job.arrival - origin) for job in read]
    rows, uses = [], []
    for one in (_search if row.search else _run)(read, pool, row):
        job, (width, kind, _), nodes, predicted, start = one
        end, label = start + one.time(pool), jobs.index[job.place]
        instants = [origin + at for at in (job.arrival, start, end, predicted)]
        rows.append((label, kind, width, *instants, start - job.arrival, end - job.arrival))
        for node, device in product(nodes, ("gpu", "cpu") if kind == "both" else (kind,)):
            uses.append((label, node, device, *instants[1:3]))
    columns = ["type", "nodes", "arrival", "start", "end", "predicted", "wait", "completion"]
    table = pd.DataFrame(rows, columns=["job", *columns]).set_index("job")
    table.index.name = jobs.index.name
    asked = jobs[[c for c in ("app", "cpu_time", "gpu_time") if c in jobs]].assign(
        requested=jobs.get("nodes", 1),
        cpu_estimate=jobs.get("cpu_estimate", jobs["cpu_time"]),
        gpu_estimate=jobs.get("gpu_estimate", jobs["gpu_time"]),
    )
    used = pd.DataFrame(uses, columns=["job", "node", "device", "start", "end"])
    return MoldableResult(asked.join(table), used, pool, row, name)


@dataclass(frozen=True, eq=False)
class MoldableResult(JobMetrics):
    """Who ran where and when.

    `jobs` has app (where given), cpu_time, gpu_time, requested, cpu_estimate, gpu_estimate,
    type, nodes, arrival, start, end, predicted (finish expected at booking), wait, completion
    (since arrival); `uses` a row per job and device: job, node, device, start, end.
    """

    jobs: pd.DataFrame
    uses: pd.DataFrame
    pool: NodePool
    scheduler: Scheduler
    name: str

    @property
    def busy(self) -> pd.Series:
        """Return the busy time of all CPUs and of all GPUs, as a share of the makespan."""
        return busy_shares(self.uses, ("gpu", "cpu"), self.pool.nodes * self.makespan)

    def check(self) -> None:
        """Check the schedule against the model, independently of the scheduler."""
        jobs, uses, pool, row = self.jobs, self.uses, self.pool, self.scheduler
        labels, users, start = list(jobs.index), uses["job"].tolist(), jobs["start"].to_numpy()
        cpu, gpu = (time_column("jobs", jobs, name, True, True) for name in VERSIONS)
        ways = zip(cpu, gpu, jobs["type"], jobs["nodes"], strict=True)
        times = np.array([pool.time(*way) for way in ways])
        span = float((jobs["completion"] - jobs["wait"]).min())  # tells two instants apart
        require("a job runs where it has a version", ~np.isnan(times), labels)
        require("a job takes its time", same_instants(start + times, jobs["end"], times), labels)
        early = not_after(jobs["arrival"], start, times)
        require("no job starts before it arrives", early, labels)
        if row.counts == "requested":
            require("a job gets the nodes asked for", jobs["nodes"] == jobs["requested"], labels)
        of_pool = jobs["nodes"].isin(pool.counts)
        require("a job runs on a number of nodes of the pool", of_pool, labels)
        if row.types != "any":
            require("a job runs on one type", jobs["type"].isin(("cpu", "gpu")), labels)
        if row.types == "preferred":
            names = "cpu_estimate", "gpu_estimate"
            cpu, gpu = (time_column("jobs", jobs, name, True, True) for name in names)
            faster = np.where((cpu < gpu) | np.isnan(gpu), "cpu", "gpu")
            require("a job runs on the type that its user names", jobs["type"] == faster, labels)

        found: dict[Any, list[tuple[int, str]]] = {label: [] for label in labels}
        for label, *place in uses[["job", "node", "device"]].itertuples(index=False, name=None):
            found.setdefault(label, []).append(tuple(place))
        wanted = dict(zip(labels, zip(jobs["type"], jobs["nodes"], strict=True), strict=True))
        full = []
        for label, held in found.items():
            kind, count = wanted.get(label, ("", 0))
            on = {node for node, _ in held}
            whole = sorted(product(on, ("cpu", "gpu") if kind == "both" else (kind,)))
            full.append(len(on) == count and on <= set(range(pool.nodes)) and sorted(held) == whole)
        require("a job holds its devices on distinct nodes of the pool", full, list(found))
        spans = jobs.loc[uses["job"], ["start", "end"]].to_numpy() == uses[["start", "end"]]
        require("a job holds its devices while it runs", spans.all(axis=1), users)
        lanes = uses.groupby(["node", "device"]).ngroup()
        alone = do_not_overlap(lanes, uses["start"], uses["end"], span)
        require("a device serves one job at a time", alone, users)

        line = jobs.sort_values("arrival", kind="stable")
        if row.line != "none":
            ahead = previous_in_lane(
                (line["type"] == "gpu") & (row.line == "class"), line["start"], -np.inf
            )
            require("a line is served in order", not_after(ahead, line["start"], span))
        instants = np.sort(np.concatenate([jobs["end"], jobs["arrival"]]))
        after = np.searchsorted(instants, start).clip(1, len(instants) - 1)
        prompt = [same_instants(start, instants[at], span) for at in (after - 1, after)]
        require("a job starts when it arrives or another ends", np.any(prompt, axis=0))
