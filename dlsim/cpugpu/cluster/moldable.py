"""Jobs on several nodes with a CPU and a GPU each: choose device type, number of nodes and start.

Source: paper C, the "second problem" of sections 2 and 7, from V. Ravi, M. Becchi,
W. Jiang, G. Agrawal, S. Chakradhar, "Scheduling Concurrent Applications on a Cluster of
CPU-GPU Nodes" (CCGrid 2012). Neither text prints a model: how a job speeds up with nodes, how
fast both devices of a node are together, and the flexible schedulers are our reading.

A policy reserves nodes for jobs when they arrive, lets jobs wait in queues, or searches all
schedules for the least makespan. The search is a branch and bound over the order of the starts
(every schedule without needless waiting follows from an order), the configurations and the nodes;
of nodes that are free at the same times it tries one.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby, product
from operator import attrgetter, le
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.compiled import deadline_with_tolerance, time_offset
from dlsim.cpugpu.check import do_not_overlap, previous_in_lane, require, table_times_equal
from dlsim.cpugpu.model import MOST_COUNT, JobMetrics, changed_fields, is_simultaneous
from dlsim.cpugpu.workload import (
    VERSIONS,
    declared_times,
    first_label,
    require_single_labels,
    time_column,
)
from dlsim.errors import InputError
from dlsim.record import NamedRecord, find_record, require_names
from dlsim.rounding import not_after
from dlsim.validate import column, flag, instance, number, one_of, require_table, whole

#: Device types that a job can run on, in the order that decides the last tie.
TYPES = ("gpu", "cpu", "both")

TYPE_RULES = ("preferred", "one", "any")
COUNT_RULES = ("requested", "any")
QUEUE_RULES = ("none", "class", "strict")
BATCH_ORDERS = ("queue", "longest")


@dataclass(frozen=True)
class NodePool:
    r"""Equal nodes with a CPU and a GPU each, and the time of a job on several of them.

    .. math:: t(n) = t(1) / n^{e}, \qquad
              t_{both}(n) = \Bigl( c \bigl( 1/t_{cpu}(n) + 1/t_{gpu}(n) \bigr) \Bigr)^{-1}

    Parameters
    ----------
    nodes : int
        N, the number of nodes.
    counts : tuple of int
        Numbers of nodes that a job can use; those above N are left out.
    exponent : float
        e in 0..1: 1 for a perfect speed-up.
    both : float
        c in 0..1: the part of the summed rates of its CPUs and GPUs that a job reaches on both.

    Examples
    --------
    >>> pool = NodePool(4, exponent=1.0, both=1.0)
    >>> pool.time(8, 8, "gpu", 4), pool.time(8, 8, "both", 1)
    (2.0, 4.0)
    """

    nodes: int = 4
    counts: tuple[int, ...] = (1, 2, 4)
    exponent: float = 0.9
    both: float = 0.95

    def __post_init__(self) -> None:
        own = vars(self)
        own["nodes"] = whole("nodes", self.nodes, 1, 10_000)
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
        on_one_node = {"cpu": cpu, "gpu": gpu, "both": 1 / (self.both * (1 / cpu + 1 / gpu))}
        return float(on_one_node[kind] / count**self.exponent)


class MoldableJob(NamedTuple):
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


class Configuration(NamedTuple):
    """Device type and number of nodes that a job may use, with the time that it then takes."""

    width: int
    kind: str
    time: float

    @property
    def area(self) -> float:
        """The device time that the job takes."""
        return self.width * self.time * (2 if self.kind == "both" else 1)


@dataclass(frozen=True)
class MoldablePolicy(NamedRecord):
    r"""A policy of the second problem: what it may choose, and by which rule.

    Parameters
    ----------
    types : {"preferred", "one", "any"}
        The types that it may choose: the one with the smaller time on one node, which the user
        names; the CPU or the GPU; or also both together.
    counts : {"requested", "any"}
        The number of nodes that the job asks for, or any number of `NodePool.counts`.
    queue : {"none", "class", "strict"}
        Whether nodes are reserved for a job at its arrival, or the job waits in a queue for the
        nodes that become free first: a queue per type, or one for all jobs.
    weights : tuple of float
        :math:`\lambda`: the configuration with the least completion + lambda area / (2N) is
        chosen, the area being nodes times time; of several weights, the one with the least
        makespan of the batch.
    orders : tuple of {"queue", "longest"}
        Orders in which nodes are reserved for a batch; of several, the one with the least makespan.
    search : bool
        Whether to search all schedules for the least makespan, with all jobs and times known.
    name, text : str, optional
        The name in legends and tables, and one sentence that says what the policy does; derived
        from the other fields where they are not given.
    """

    types: str = "any"
    counts: str = "any"
    queue: str = "none"
    weights: tuple[float, ...] = (0.0,)
    orders: tuple[str, ...] = ("queue",)
    search: bool = False

    def __post_init__(self) -> None:
        one_of("types", self.types, TYPE_RULES)
        one_of("counts", self.counts, COUNT_RULES)
        one_of("queue", self.queue, QUEUE_RULES)
        for name in ("weights", "orders"):
            if not isinstance(getattr(self, name), tuple) or not getattr(self, name):
                raise InputError(f"{name} must be a tuple, not empty; got {getattr(self, name)!r}")
        for weight in self.weights:
            number("weights", weight)
        for order in self.orders:
            one_of("orders", order, BATCH_ORDERS)
        if self.queue != "none" and (self.types, self.counts) != ("preferred", "requested"):
            raise InputError(
                f"queue={self.queue!r} needs types='preferred' and counts='requested'; got "
                f"{self.types!r} and {self.counts!r}: a job in a queue has no choice"
            )
        flag("search", self.search)
        changes = changed_fields(self)
        self.settle_words(
            lambda: ", ".join(["flexible", *changes]),
            lambda: f"chooses type, number of nodes and start by {', '.join(changes) or 'default'}",
        )

    def options(self, job: MoldableJob, pool: NodePool) -> list[Configuration]:
        """List the configurations that are considered for a job, by declared times."""
        cpu, gpu = job.cpu_estimate, job.gpu_estimate
        kinds = {"preferred": (job.preferred,), "one": TYPES[:2], "any": TYPES}[self.types]
        counts = (job.nodes,) if self.counts == "requested" else pool.counts
        found = [
            Configuration(n, kind, pool.time(cpu, gpu, kind, n)) for n in counts for kind in kinds
        ]
        return [config for config in found if not np.isnan(config.time)]


#: The policies of the second problem by name.
MOLDABLE_POLICIES: dict[str, MoldablePolicy] = {
    policy.name: policy
    for policy in (
        MoldablePolicy(
            "preferred",
            "requested",
            "strict",
            name="torque-strict",
            text="TORQUE: jobs wait for their type in one queue",
        ),
        MoldablePolicy(
            "preferred",
            "requested",
            "class",
            name="torque",
            text="TORQUE: jobs wait for their type in a queue per type",
        ),
        MoldablePolicy(
            "one", "requested", name="mct", text="the type that completes the job earliest"
        ),
        MoldablePolicy(
            "any", "requested", name="mct-any", text="as mct, or both devices of the nodes together"
        ),
        MoldablePolicy(
            name="flexible", text="the type and the number of nodes with the earliest completion"
        ),
        MoldablePolicy(
            weights=(0.0, 0.25, 0.5, 1.0, 2.0),
            orders=BATCH_ORDERS,
            name="area",
            text="as flexible, of several weights of the device time the one that ends first",
        ),
        MoldablePolicy(
            search=True, name="exhaustive", text="searches all schedules for the least makespan"
        ),
    )
}
require_names(MOLDABLE_POLICIES)


#: Columns that a table of moldable jobs may have; app and batch are not read.
MOLDABLE_COLUMNS = ("arrival", "nodes", "cpu_estimate", "gpu_estimate", "app", "batch")


def read_moldable_jobs(
    jobs: pd.DataFrame, pool: NodePool, ignore: Collection[str] = ()
) -> list[MoldableJob]:
    """Read a table of jobs."""
    require_table("jobs", jobs, VERSIONS, optional=MOLDABLE_COLUMNS, ignore=ignore, empty=False)
    require_single_labels("jobs", jobs)
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
    return [MoldableJob._make((i, *row, count)) for i, (row, count) in enumerate(both)]


#: Most jobs and nodes of a search; a search of this size takes about a second.
MOST_JOBS_TO_SEARCH, MOST_NODES_TO_SEARCH = 5, 4
#: When each node's (GPU, CPU) is free.
FreeTimes = list[tuple[float, float]]


class Reservation(NamedTuple):
    """A job with its configuration, its nodes, its expected end and its start."""

    job: MoldableJob
    config: Configuration
    nodes: tuple[int, ...]
    predicted: float
    start: float = math.nan

    def time(self, pool: NodePool) -> float:
        """Return how long the job really takes."""
        return pool.time(self.job.cpu, self.job.gpu, self.config.kind, self.config.width)


#: Reservations in the order in which they were made.
Reservations = list[Reservation]


def _free_time(free: FreeTimes, nodes: tuple[int, ...], kind: str) -> float:
    """Return when all of these nodes can serve a type."""
    if kind == "both":
        return max(max(free[node]) for node in nodes)
    return max(free[node][kind == "cpu"] for node in nodes)


def _occupy_nodes(
    free: FreeTimes, nodes: tuple[int, ...], kind: str, end: float, span: float
) -> None:
    """Reserve devices of nodes until an instant, in place.

    An end that is the same instant as a known one, up to rounding, takes the known value, so that
    nodes that are free together compare equal.
    """
    known = (at for pair in free for at in pair)
    end = next((at for at in known if is_simultaneous(at, end, span)), end)
    for node in nodes:
        gpu, cpu = free[node]
        free[node] = (gpu if kind == "cpu" else end, cpu if kind == "gpu" else end)


def _placements(
    job: MoldableJob, configs: list[Configuration], free: FreeTimes, earliest: float
) -> Iterator[Reservation]:
    """Yield a reservation of each configuration on the nodes that are free first."""
    order: dict[str, list[int]] = {}
    for config in configs:
        if config.kind not in order:
            instants = [_free_time(free, (node,), config.kind) for node in range(len(free))]
            order[config.kind] = sorted(range(len(free)), key=instants.__getitem__)
        nodes = tuple(order[config.kind][: config.width])
        start = max(earliest, _free_time(free, nodes[-1:], config.kind))
        yield Reservation(job, config, nodes, start + config.time, start)


def find_earliest(finishes: Sequence[float], now: float) -> int:
    """Return the first place of the least finish, within the tolerance; NaN entries are skipped."""
    least = min(at for at in finishes if at == at)
    limit = deadline_with_tolerance(least, least - now)
    return next(place for place, at in enumerate(finishes) if at <= limit)


def _reserve_batch(
    batch: list[MoldableJob], free: FreeTimes, pool: NodePool, policy: MoldablePolicy, now: float
) -> Reservations:
    """Reserve devices for a batch by the weight and the order with the least makespan."""
    configs = {job: policy.options(job, pool) for job in batch}
    shortest = {job: min(config.time for config in own) for job, own in configs.items()}
    orders = {"queue": batch, "longest": sorted(batch, key=lambda job: -shortest[job])}
    plans = []
    for weight, order in product(policy.weights, policy.orders):
        plan, planned_free = Reservations(), list(free)
        penalty = weight / (2 * len(free))
        for job in orders[order]:
            found = list(_placements(job, configs[job], planned_free, job.arrival))
            costs = [one.predicted + penalty * one.config.width * one.config.time for one in found]
            best = found[find_earliest(costs, job.arrival)]
            config = best.config
            _occupy_nodes(planned_free, best.nodes, config.kind, best.predicted, config.time)
            plan.append(best)
        plans.append(plan)
    makespans = [max(one.predicted for one in plan) for plan in plans]
    return plans[find_earliest(makespans, now)]


def _expected_free(unfinished: Reservations, pool: NodePool, now: float) -> FreeTimes:
    """Return when devices are expected to be free, by declared times and the starts so far."""
    free: FreeTimes = [(now, now)] * pool.nodes
    for one in unfinished:
        kind, expected = one.config.kind, one.config.time
        is_running = one.start <= deadline_with_tolerance(now, one.time(pool))
        start = one.start if is_running else _free_time(free, one.nodes, kind)
        _occupy_nodes(free, one.nodes, kind, max(now, start + expected), expected)
    return free


def _run_batches(jobs: list[MoldableJob], pool: NodePool, policy: MoldablePolicy) -> Reservations:
    """Reserve devices for batch after batch, or serve queues in order.

    A job starts once all its devices have done the jobs before it. In a queue no job starts
    before the one ahead of it.
    """
    done, unfinished = Reservations(), Reservations()
    free: FreeTimes = [(0.0, 0.0)] * pool.nodes
    last_start: dict[object, float] = {}

    def take_next_nodes(job: MoldableJob) -> Reservation:
        (reservation,) = _placements(job, policy.options(job, pool), free, 0.0)
        return reservation._replace(predicted=math.nan)

    for now, group in groupby(sorted(jobs, key=attrgetter("arrival")), attrgetter("arrival")):
        batch = list(group)
        reservations: Any = map(take_next_nodes, batch)
        if policy.queue == "none":
            pairs = [(one, one.time(pool)) for one in unfinished]
            unfinished = [
                one for one, time in pairs if one.start + time > deadline_with_tolerance(now, time)
            ]
            expected_free = _expected_free(unfinished, pool, now)
            reservations = _reserve_batch(batch, expected_free, pool, policy, now)
        for one in reservations:
            kind, time = one.config.kind, one.time(pool)
            name = {"none": one.job, "class": kind, "strict": "all"}[policy.queue]
            start = max(now, last_start.get(name, 0.0), _free_time(free, one.nodes, kind))
            last_start[name] = start
            _occupy_nodes(free, one.nodes, kind, start + time, time)
            done.append(one._replace(start=start))
            unfinished.append(done[-1])
    return done


def _search(jobs: list[MoldableJob], pool: NodePool, policy: MoldablePolicy) -> Reservations:
    """Find a schedule with the least makespan; all arrivals and realised times are known."""
    if len(jobs) > MOST_JOBS_TO_SEARCH or pool.nodes > MOST_NODES_TO_SEARCH:
        raise InputError(
            f"an exhaustive search takes at most {MOST_JOBS_TO_SEARCH} jobs on "
            f"{MOST_NODES_TO_SEARCH} nodes, got {len(jobs)} on {pool.nodes}; "
            "use policy 'area' for more"
        )
    jobs = [job._replace(cpu_estimate=job.cpu, gpu_estimate=job.gpu) for job in jobs]
    known = MOLDABLE_POLICIES["area"]
    area = MoldablePolicy(policy.types, policy.counts, weights=known.weights, orders=known.orders)
    best = _run_batches(jobs, pool, area)
    least = max(one.predicted for one in best)
    configs = {job: policy.options(job, pool) for job in jobs}
    quickest = {job: min(config.time for config in own) for job, own in configs.items()}
    smallest = {job: min(config.area for config in own) for job, own in configs.items()}
    seen: dict[frozenset[MoldableJob], list[tuple[float, ...]]] = {}

    def later(left: frozenset[MoldableJob], free: FreeTimes, last: float) -> Iterator[Reservation]:
        """Yield all reservations that start no earlier than the last one."""
        for job in sorted(left):
            for config in configs[job]:
                alike = set()
                for nodes in combinations(range(len(free)), config.width):
                    key = tuple(sorted(free[node] for node in nodes))
                    start = max(job.arrival, _free_time(free, nodes, config.kind))
                    if key not in alike and start >= last:
                        yield Reservation(job, config, nodes, start + config.time, start)
                    alike.add(key)

    def visit(left: frozenset[MoldableJob], free: FreeTimes, plan: Reservations) -> None:
        """Extend a partial schedule in every way that can still be better."""
        nonlocal best, least
        if not left:
            makespan = max(one.predicted for one in plan)
            best, least = (plan, makespan) if makespan < least else (best, least)
            return
        last = plan[-1].start if plan else -math.inf
        free_later = sorted((max(gpu, last), max(cpu, last)) for gpu, cpu in free)
        instants = tuple(at for node in free_later for at in node)
        longest_job = max(max(last, job.arrival) + quickest[job] for job in left)
        work = math.fsum((*instants, *(smallest[job] for job in left)))
        if max(longest_job, work / (2 * len(free)), *instants) >= least:
            return
        known = seen.setdefault(left, [])
        if any(all(map(le, other, instants)) for other in known):
            return  # a plan visited before left the same jobs, and every device free as early
        known.append(instants)
        for reservation in sorted(later(left, free, last), key=attrgetter("predicted")):
            if reservation.predicted >= least:
                return
            after, (job, config, nodes, end, _) = list(free), reservation
            _occupy_nodes(after, nodes, config.kind, end, config.time)
            visit(left - {job}, after, [*plan, reservation])
            if len(left) == 1:  # the earliest end of the last job was tried
                return

    visit(frozenset(jobs), [(0.0, 0.0)] * pool.nodes, [])
    return best


def run_moldable(
    jobs: pd.DataFrame,
    pool: NodePool,
    policy: str | MoldablePolicy,
    *,
    ignore: Collection[str] = (),
) -> "MoldableResult":
    """Schedule jobs on nodes with a CPU and a GPU each, without preemption.

    Parameters
    ----------
    jobs : DataFrame
        Columns cpu_time, gpu_time (realised on one node; NaN: no version), and where given
        arrival (0), nodes (asked for; 1), cpu_estimate, gpu_estimate (declared) and app. Jobs of
        one arrival instant are one batch.
    pool : NodePool
        The nodes.
    policy : str or MoldablePolicy
        A name of `MOLDABLE_POLICIES`, a record, or ``FILE.py:name``.
    ignore : collection of str
        Further columns of `jobs`, which are not read.

    Returns
    -------
    MoldableResult
        Tables of jobs and of the devices that they used; `check` tests the rules of the model.

    Raises
    ------
    InputError
        For a row that cannot be used, an unknown policy, or a search that is too big.

    Examples
    --------
    >>> jobs = pd.DataFrame({"cpu_time": [8.0, 8.0], "gpu_time": [4.0, 4.0]})
    >>> run_moldable(jobs, NodePool(1), "mct").jobs["type"].tolist()
    ['gpu', 'gpu']
    """
    instance("pool", pool, NodePool)
    name, chosen = find_record("policy", policy, MOLDABLE_POLICIES)
    job_rows = read_moldable_jobs(jobs, pool, ignore)
    offset = time_offset(np.sort([job.arrival for job in job_rows]))
    job_rows = [job._replace(arrival=job.arrival - offset) for job in job_rows]
    run = _search if chosen.search else _run_batches
    rows, uses = [], []
    for reservation in run(job_rows, pool, chosen):
        job, (width, kind, _), nodes, predicted, start = reservation
        completion, label = start + reservation.time(pool), jobs.index[job.place]
        instants = [offset + at for at in (job.arrival, start, completion, predicted)]
        wait, response = start - job.arrival, completion - job.arrival
        rows.append((label, kind, width, *instants, wait, response))
        for node, device in product(nodes, ("gpu", "cpu") if kind == "both" else (kind,)):
            uses.append((label, node, device, *instants[1:3]))
    columns = ["type", "nodes", "arrival", "start", "completion", "predicted", "wait", "response"]
    table = pd.DataFrame(rows, columns=["job", *columns]).set_index("job")
    table.index.name = jobs.index.name
    asked = jobs[[c for c in ("app", "cpu_time", "gpu_time") if c in jobs]].assign(
        requested=jobs.get("nodes", 1),
        cpu_estimate=jobs.get("cpu_estimate", jobs["cpu_time"]),
        gpu_estimate=jobs.get("gpu_estimate", jobs["gpu_time"]),
    )
    used = pd.DataFrame(uses, columns=["job", "node", "device", "start", "end"])
    return MoldableResult(asked.join(table), used, pool, chosen, name)


@dataclass(frozen=True, eq=False)
class MoldableResult(JobMetrics):
    """The start, completion and devices of every job.

    `jobs` has app (if given), cpu_time, gpu_time, requested, cpu_estimate, gpu_estimate,
    type, nodes, arrival, start, completion, predicted (finish expected at the reservation), wait
    and response (from the arrival to the start, and to the completion). `uses` has a row per job
    and device: job, node, device, and the start and end of the use.
    """

    jobs: pd.DataFrame
    uses: pd.DataFrame
    pool: NodePool
    policy: MoldablePolicy
    name: str

    def check(self) -> None:
        """Check the schedule against the model, independently of the policy."""
        jobs, pool, row = self.jobs, self.pool, self.policy
        labels, start = list(jobs.index), jobs["start"].to_numpy()
        cpu, gpu = (time_column("jobs", jobs, name, True, True) for name in VERSIONS)
        configs = zip(cpu, gpu, jobs["type"], jobs["nodes"], strict=True)
        times = np.array([pool.time(*config) for config in configs])
        span = float((jobs["response"] - jobs["wait"]).min())  # tells two instants apart
        require("a job runs where it has a version", ~np.isnan(times), labels)
        takes_its_time = table_times_equal(start + times, jobs["completion"], times)
        require("a job takes its time", takes_its_time, labels)
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

        self._check_uses(span)
        by_arrival = jobs.sort_values("arrival", kind="stable")
        if row.queue != "none":
            ahead = previous_in_lane(
                (by_arrival["type"] == "gpu") & (row.queue == "class"), by_arrival["start"], -np.inf
            )
            require("a queue is served in order", not_after(ahead, by_arrival["start"], span))
        instants = np.sort(np.concatenate([jobs["completion"], jobs["arrival"]]))
        after = np.searchsorted(instants, start).clip(1, len(instants) - 1)
        prompt = [table_times_equal(start, instants[at], span) for at in (after - 1, after)]
        require("a job starts when it arrives or another ends", np.any(prompt, axis=0))

    def _check_uses(self, span: float) -> None:
        """Check the devices that the jobs hold."""
        jobs, uses, pool = self.jobs, self.uses, self.pool
        labels, users = list(jobs.index), uses["job"].tolist()
        found: dict[Any, list[tuple[int, str]]] = {label: [] for label in labels}
        for label, *place in uses[["job", "node", "device"]].itertuples(index=False, name=None):
            found.setdefault(label, []).append(tuple(place))
        wanted = dict(zip(labels, zip(jobs["type"], jobs["nodes"], strict=True), strict=True))
        is_complete = []
        for label, occupied in found.items():
            kind, count = wanted.get(label, ("", 0))
            nodes = {node for node, _ in occupied}
            needed = sorted(product(nodes, ("cpu", "gpu") if kind == "both" else (kind,)))
            is_in_pool = nodes <= set(range(pool.nodes))
            is_complete.append(len(nodes) == count and is_in_pool and sorted(occupied) == needed)
        require("a job holds its devices on distinct nodes of the pool", is_complete, list(found))
        spans = jobs.loc[uses["job"], ["start", "completion"]].to_numpy() == uses[["start", "end"]]
        require("a job holds its devices while it runs", spans.all(axis=1), users)
        lanes = uses.groupby(["node", "device"]).ngroup()
        alone = do_not_overlap(lanes, uses["start"], uses["end"], span)
        require("a device serves one job at a time", alone, users)
