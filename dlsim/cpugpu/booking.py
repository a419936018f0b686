"""The schedulers of moldable jobs at work: booked at once, waiting in line, or by search.

Source: paper C, sections 2 and 7; see `dlsim.cpugpu.nodes`. The search for the least makespan is
a branch and bound over the order of the starts (every schedule without needless waiting can be
laid in it), the ways to run, and the nodes, of which those that look alike count once.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby
from operator import le
from typing import Any, NamedTuple

import numpy as np

from dlsim.cpugpu.given import near
from dlsim.cpugpu.nodes import SCHEDULERS, Job, NodePool, Option, Scheduler, device_time, options_of
from dlsim.errors import InputError
from dlsim.kernel import latest_finish

#: Most jobs and nodes of a search, which then takes about a second.
MOST_JOBS = 5
MOST_NODES = 4
#: When each node's (GPU, CPU) is free.
Free = list[tuple[float, float]]
#: Bookings in their order, and when each of them starts.
Plan = tuple[list["Booking"], list[float]]


class Booking(NamedTuple):
    """A job with its way to run and its nodes, in the order of booking."""

    job: Job
    option: Option
    nodes: tuple[int, ...]
    predicted: float


def free_at(free: Free, node: int, kind: str) -> float:
    """Return when a node can serve a type."""
    gpu, cpu = free[node]
    return {"gpu": gpu, "cpu": cpu, "both": max(gpu, cpu)}[kind]


def occupy(free: Free, nodes: tuple[int, ...], kind: str, end: float, span: float) -> None:
    """Book nodes until an instant, in place; one that is known already keeps its name."""
    end = next((at for pair in free for at in pair if near(at, end, span)), end)
    for node in nodes:
        gpu, cpu = free[node]
        free[node] = (gpu if kind == "cpu" else end, cpu if kind == "gpu" else end)


def _place(free: Free, option: Option, floor: float) -> tuple[float, tuple[int, ...]]:
    """Return the start on the nodes that are free first, and these nodes."""
    order = sorted(range(len(free)), key=lambda node: (free_at(free, node, option.kind), node))
    nodes = tuple(order[: option.width])
    return max(floor, free_at(free, nodes[-1], option.kind)), nodes


def _predicted(booked: list[Booking], starts: list[float], pool: NodePool, now: float) -> Free:
    """Return when devices are expected to be free, knowing what happened until now."""
    free: Free = [(now, now)] * pool.nodes
    for booking, start in zip(booked, starts, strict=True):
        job, (count, kind, expected) = booking.job, booking.option
        time = pool.time(job.cpu, job.gpu, kind, count)
        if start + time > latest_finish(now, time):
            is_running = start <= latest_finish(now, time)
            begun = start if is_running else max(free_at(free, n, kind) for n in booking.nodes)
            occupy(free, booking.nodes, kind, max(now, begun + expected), expected)
    return free


def _first_least(found: list[Any], finishes: list[float], now: float) -> Any:
    """Return the first of those with the least finish, up to the one tolerance."""
    least = min(finishes)
    limit = latest_finish(least, least - now)
    return next(one for one, at in zip(found, finishes, strict=True) if at <= limit)


def _book(
    batch: list[Job], free: Free, pool: NodePool, row: Scheduler, now: float
) -> list[Booking]:
    """Book a batch on the devices as they are expected to be free: the best of all tries."""
    tries = [
        _try(batch, list(free), pool, row, weight, order)
        for weight in row.weights
        for order in row.orders
    ]
    return _first_least(tries, [max(one.predicted for one in bookings) for bookings in tries], now)


def _try(
    batch: list[Job], free: Free, pool: NodePool, row: Scheduler, weight: float, order: str
) -> list[Booking]:
    ways = {job: options_of(job, pool, row) for job in batch}
    if order == "longest":
        batch = sorted(batch, key=lambda job: -min(way.time for way in ways[job]))
    bookings = []
    for job in batch:
        found = [(way, *_place(free, way, job.arrival)) for way in ways[job]]
        penalty = weight / (2 * pool.nodes)
        ends = [start + way.time + penalty * way.width * way.time for way, start, _ in found]
        way, start, nodes = _first_least(found, ends, job.arrival)
        occupy(free, nodes, way.kind, start + way.time, way.time)
        bookings.append(Booking(job, way, nodes, start + way.time))
    return bookings


def run_booked(jobs: list[Job], pool: NodePool, row: Scheduler) -> Plan:
    """Book batch after batch; a job starts once all its devices have done those before it."""
    booked: list[Booking] = []
    starts: list[float] = []
    free: Free = [(0.0, 0.0)] * pool.nodes
    line = sorted(jobs, key=lambda job: job.arrival)
    for now, group in groupby(line, key=lambda job: job.arrival):
        for booking in _book(list(group), _predicted(booked, starts, pool, now), pool, row, now):
            job, (count, kind, _) = booking.job, booking.option
            start = max(now, *(free_at(free, node, kind) for node in booking.nodes))
            time = pool.time(job.cpu, job.gpu, kind, count)
            occupy(free, booking.nodes, kind, start + time, time)
            booked.append(booking)
            starts.append(start)
    return booked, starts


def run_line(jobs: list[Job], pool: NodePool, row: Scheduler) -> Plan:
    """Serve lines in order: the head waits for its nodes, and all behind it wait for the head."""
    booked, starts = list[Booking](), list[float]()
    free: Free = [(0.0, 0.0)] * pool.nodes
    heads: dict[str, float] = {}
    for job in sorted(jobs, key=lambda job: job.arrival):
        (way,) = options_of(job, pool, row)
        line = way.kind if row.line == "class" else "all"
        start, nodes = _place(free, way, max(job.arrival, heads.get(line, 0.0)))
        heads[line] = start
        real = pool.time(job.cpu, job.gpu, way.kind, way.width)
        occupy(free, nodes, way.kind, start + real, real)
        booked.append(Booking(job, way, nodes, np.nan))
        starts.append(start)
    return booked, starts


@dataclass
class _Search:
    pool: NodePool
    ways: dict[Job, list[Option]]
    best: float
    plan: Plan
    seen: dict[frozenset[Job], list[tuple[float, ...]]] = field(default_factory=dict)

    def visit(self, left: frozenset[Job], free: Free, last: float, bookings: list[Booking]) -> None:
        """Extend a partial schedule in every way that can still be better."""
        if not left:
            self._keep(bookings)
            return
        clipped = tuple(sorted((max(gpu, last), max(cpu, last)) for gpu, cpu in free))
        if self._bound(left, clipped, last) >= self.best or self._is_dominated(left, clipped):
            return
        for start, booking in sorted(self._next(left, free, last), key=lambda b: b[1].predicted):
            if booking.predicted >= self.best:
                return
            after = list(free)
            occupy(
                after, booking.nodes, booking.option.kind, booking.predicted, booking.option.time
            )
            self.visit(left - {booking.job}, after, start, [*bookings, booking])
            if len(left) == 1:  # it ends first of all that the last job can do
                return

    def _is_dominated(self, left: frozenset[Job], clipped: tuple[tuple[float, float], ...]) -> bool:
        """Tell whether the same jobs were left before, with every device free as early."""
        state = tuple(instant for node in clipped for instant in node)
        known = self.seen.setdefault(left, [])
        if any(all(map(le, other, state)) for other in known):
            return True
        known.append(state)
        return False

    def _keep(self, bookings: list[Booking]) -> None:
        makespan = max(booking.predicted for booking in bookings)
        if makespan < self.best:
            self.best = makespan
            self.plan = bookings, starts_of(bookings, self.pool)

    def _bound(
        self, left: frozenset[Job], free: tuple[tuple[float, float], ...], last: float
    ) -> float:
        longest = max(max(last, j.arrival) + min(w.time for w in self.ways[j]) for j in left)
        spread = sum(map(sum, free)) + sum(min(map(device_time, self.ways[j])) for j in left)
        return max(longest, spread / (2 * len(free)), max(map(max, free)))

    def _next(
        self, left: frozenset[Job], free: Free, last: float
    ) -> Iterator[tuple[float, Booking]]:
        """All bookings that start no earlier than the last one."""
        for job in sorted(left):
            for way in self.ways[job]:
                alike = set()
                for nodes in combinations(range(len(free)), way.width):
                    key = tuple(sorted(free[node] for node in nodes))
                    if key in alike:
                        continue
                    alike.add(key)
                    start = max(job.arrival, *(free_at(free, node, way.kind) for node in nodes))
                    if start >= last:
                        yield start, Booking(job, way, nodes, start + way.time)


def starts_of(bookings: list[Booking], pool: NodePool) -> list[float]:
    """Return when bookings start that are laid one after another."""
    free: Free = [(0.0, 0.0)] * pool.nodes
    starts = []
    for job, way, nodes, _ in bookings:
        start = max(job.arrival, *(free_at(free, node, way.kind) for node in nodes))
        occupy(free, nodes, way.kind, start + way.time, way.time)
        starts.append(start)
    return starts


def search_best(jobs: list[Job], pool: NodePool, row: Scheduler) -> Plan:
    """Find a schedule with the least makespan; all arrivals and realised times are known."""
    if len(jobs) > MOST_JOBS or pool.nodes > MOST_NODES:
        raise InputError(
            f"an exhaustive search takes at most {MOST_JOBS} jobs on {MOST_NODES} nodes, got "
            f"{len(jobs)} on {pool.nodes}; compare with lower_bound instead"
        )
    known = [job._replace(cpu_estimate=job.cpu, gpu_estimate=job.gpu) for job in jobs]
    ways = {job: options_of(job, pool, row) for job in known}
    area = SCHEDULERS["area"]
    first = run_booked(known, pool, replace(area, types=row.types, counts=row.counts))
    search = _Search(pool, ways, max(b.predicted for b in first[0]), first)
    search.visit(frozenset(known), [(0.0, 0.0)] * pool.nodes, -math.inf, [])
    return search.plan
