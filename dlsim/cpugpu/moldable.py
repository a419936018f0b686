"""Jobs on several nodes, each a CPU and a GPU: which type, how many nodes, and when.

Source: paper C, the "second problem" of sections 2 and 7; see `dlsim.cpugpu.nodes` for what its
sources leave open. Jobs are booked at once, wait in line, or all schedules are searched for the
least makespan: a branch and bound over the order of the starts (every schedule without needless
waiting can be laid in it), the ways to run, and the nodes, of which those that look alike count
once.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, groupby, product
from operator import attrgetter, le
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.cpugpu.given import apart, before, hold, near, together
from dlsim.cpugpu.model import Measures
from dlsim.cpugpu.nodes import SCHEDULERS, Job, NodePool, Option, Scheduler, jobs_of, lower_bound
from dlsim.errors import InputError
from dlsim.given import named, usual
from dlsim.kernel import clock_origin, latest_finish
from dlsim.rounding import not_after

__all__ = ["SCHEDULERS", "MoldableSchedule", "NodePool", "Scheduler", "lower_bound", "run_moldable"]

#: Most jobs and nodes of a search, which then takes about a second.
MOST_JOBS, MOST_NODES = 5, 4
#: When each node's (GPU, CPU) is free.
Free = list[tuple[float, float]]


class Booking(NamedTuple):
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
Plan = list[Booking]


def _free_at(free: Free, nodes: tuple[int, ...], kind: str) -> float:
    """Return when all of these nodes can serve a type."""
    if kind == "both":
        return max(max(free[node]) for node in nodes)
    return max(free[node][kind == "cpu"] for node in nodes)


def _occupy(free: Free, nodes: tuple[int, ...], kind: str, end: float, span: float) -> None:
    """Book nodes until an instant, in place; one that is known already keeps its name."""
    end = next((at for pair in free for at in pair if near(at, end, span)), end)
    for node in nodes:
        gpu, cpu = free[node]
        free[node] = (gpu if kind == "cpu" else end, cpu if kind == "gpu" else end)


def _placed(job: Job, ways: list[Option], free: Free, floor: float) -> Iterator[Booking]:
    """Yield every way to run on the nodes that are free first, with its start."""
    order: dict[str, list[int]] = {}
    for way in ways:
        if way.kind not in order:
            instants = [_free_at(free, (node,), way.kind) for node in range(len(free))]
            order[way.kind] = sorted(range(len(free)), key=instants.__getitem__)
        nodes = tuple(order[way.kind][: way.width])
        start = max(floor, _free_at(free, nodes[-1:], way.kind))
        yield Booking(job, way, nodes, start + way.time, start)


def _first_least(found: list[Any], finishes: list[float], now: float) -> Any:
    """Return the first of those with the least finish, up to the one tolerance."""
    least = min(finishes)
    limit = latest_finish(least, least - now)
    return next(one for one, at in zip(found, finishes, strict=True) if at <= limit)


def _book(batch: list[Job], free: Free, pool: NodePool, row: Scheduler, now: float) -> Plan:
    """Book a batch on the devices as they are expected to be free: the best of all tries."""
    ways = {job: row.options(job, pool) for job in batch}
    longest, tries = sorted(batch, key=lambda job: -min(way.time for way in ways[job])), []
    for weight, order in product(row.weights, row.orders):
        tries.append(list[Booking]())
        instants, penalty = list(free), weight / (2 * len(free))
        for job in longest if order == "longest" else batch:
            found = list(_placed(job, ways[job], instants, job.arrival))
            ends = [one.predicted + penalty * one.way.width * one.way.time for one in found]
            best = _first_least(found, ends, job.arrival)
            _occupy(instants, best.nodes, best.way.kind, best.predicted, best.way.time)
            tries[-1].append(best)
    return _first_least(tries, [max(one.predicted for one in plan) for plan in tries], now)


def _run(jobs: list[Job], pool: NodePool, row: Scheduler) -> Plan:
    """Book batch after batch, or serve lines in order, where all wait behind the head.

    A job starts once all its devices have done those before it.
    """
    plan, unfinished = Plan(), Plan()
    free: Free = [(0.0, 0.0)] * pool.nodes
    heads: dict[object, float] = {}

    def in_line(job: Job) -> Booking:
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

    def later(left: frozenset[Job], free: Free, last: float) -> Iterator[Booking]:
        """All bookings that start no earlier than the last one."""
        for job in sorted(left):
            for way in ways[job]:
                alike = set()
                for nodes in combinations(range(len(free)), way.width):
                    key = tuple(sorted(free[node] for node in nodes))
                    start = max(job.arrival, _free_at(free, nodes, way.kind))
                    if key not in alike and start >= last:
                        yield Booking(job, way, nodes, start + way.time, start)
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
) -> "MoldableSchedule":
    """Schedule jobs on nodes with a CPU and a GPU each, without preemption.

    Parameters
    ----------
    jobs : DataFrame
        As in `dlsim.cpugpu.nodes.jobs_of`; jobs of one arrival instant are one batch.
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
    pool = usual("pool", pool, NodePool)
    name, row = named("scheduler", scheduler, SCHEDULERS, lambda row: "own")
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
    given = jobs[[c for c in ("app", "cpu_time", "gpu_time") if c in jobs]]
    given = given.assign(requested=jobs.get("nodes", 1))
    for c in ("cpu", "gpu"):
        given[f"{c}_estimate"] = jobs.get(f"{c}_estimate", jobs[f"{c}_time"])
    used = pd.DataFrame(uses, columns=["job", "node", "device", "start", "end"])
    return MoldableSchedule(given.join(table), used, pool, row, name)


@dataclass(frozen=True, eq=False)
class MoldableSchedule(Measures):
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
        spans = self.uses["end"] - self.uses["start"]
        total = spans.groupby(self.uses["device"]).sum().reindex(["gpu", "cpu"], fill_value=0.0)
        return (total / (self.pool.nodes * self.makespan)).rename("busy")

    def check(self) -> None:
        """Check the schedule against the model, independently of the scheduler."""
        jobs, uses, pool, row = self.jobs, self.uses, self.pool, self.scheduler
        labels, users, start = list(jobs.index), uses["job"].tolist(), jobs["start"].to_numpy()
        ways = jobs[["cpu_time", "gpu_time", "type", "nodes"]].to_numpy().tolist()
        times = np.array([pool.time(*way) for way in ways])
        span = float((jobs["completion"] - jobs["wait"]).min())  # tells two instants apart
        hold("a job runs where it has a version", ~np.isnan(times), labels)
        hold("a job takes its time", together(start + times, jobs["end"], times), labels)
        early = not_after(jobs["arrival"], start, times)
        hold("no job starts before it arrives", early, labels)
        if row.counts == "requested":
            hold("a job gets the nodes asked for", jobs["nodes"] == jobs["requested"], labels)
        of_pool = jobs["nodes"].isin(pool.counts)
        hold("a job runs on a number of nodes of the pool", of_pool, labels)
        if row.types != "any":
            hold("a job runs on one type", jobs["type"].isin(("cpu", "gpu")), labels)
        if row.types == "preferred":
            cpu, gpu = jobs["cpu_estimate"], jobs["gpu_estimate"]
            faster = np.where((cpu < gpu) | gpu.isna(), "cpu", "gpu")
            hold("a job runs on the type that its user names", jobs["type"] == faster, labels)

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
        hold("a job holds its devices on distinct nodes of the pool", full, list(found))
        spans = jobs.loc[uses["job"], ["start", "end"]].to_numpy() == uses[["start", "end"]]
        hold("a job holds its devices while it runs", spans.all(axis=1), users)
        lanes = uses.groupby(["node", "device"]).ngroup()
        alone = apart(lanes, uses["start"], uses["end"], span)
        hold("a device serves one job at a time", alone, users)

        line = jobs.sort_values("arrival", kind="stable")
        if row.line != "none":
            ahead = before((line["type"] == "gpu") & (row.line == "class"), line["start"], -np.inf)
            hold("a line is served in order", not_after(ahead, line["start"], span))
        instants = np.sort(np.concatenate([jobs["end"], jobs["arrival"]]))
        after = np.searchsorted(instants, start).clip(1, len(instants) - 1)
        prompt = [together(start, instants[at], span) for at in (after - 1, after)]
        hold("a job starts when it arrives or another ends", np.any(prompt, axis=0))
