"""The schedulers of moldable jobs at work: booked at once, waiting in line, or by search.

Source: paper C, sections 2 and 7; see `dlsim.cpugpu.nodes`. The search for the least makespan is
a branch and bound over the order of the starts (every schedule without needless waiting can be
laid in it), the ways to run, and the nodes, of which those that look alike count once.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby
from operator import attrgetter, le
from typing import Any, NamedTuple

from dlsim.cpugpu.given import near
from dlsim.cpugpu.nodes import SCHEDULERS, Job, NodePool, Option, Scheduler, device_time, options_of
from dlsim.errors import InputError
from dlsim.kernel import latest_finish

#: Most jobs and nodes of a search, which then takes about a second.
MOST_JOBS = 5
MOST_NODES = 4
#: When each node's (GPU, CPU) is free.
Free = list[tuple[float, float]]


class Booking(NamedTuple):
    """A job with its way to run and its nodes, in the order of booking."""

    job: Job
    option: Option
    nodes: tuple[int, ...]
    predicted: float

    def real(self, pool: NodePool) -> float:
        """Return the time that the job really takes."""
        return pool.time(self.job.cpu, self.job.gpu, self.option.kind, self.option.width)

    def ready(self, free: Free) -> float:
        """Return when all its nodes can serve it."""
        return max(free_at(free, node, self.option.kind) for node in self.nodes)


#: Bookings in their order, each with its start.
Plan = list[tuple[Booking, float]]


def free_at(free: Free, node: int, kind: str) -> float:
    """Return when a node can serve a type."""
    gpu, cpu = free[node]
    return max(gpu, cpu) if kind == "both" else gpu if kind == "gpu" else cpu


def occupy(free: Free, nodes: tuple[int, ...], kind: str, end: float, span: float) -> None:
    """Book nodes until an instant, in place; one that is known already keeps its name."""
    end = next((at for pair in free for at in pair if near(at, end, span)), end)
    for node in nodes:
        gpu, cpu = free[node]
        free[node] = (gpu if kind == "cpu" else end, cpu if kind == "gpu" else end)


def _placed(job: Job, ways: list[Option], free: Free, floor: float) -> Iterator[tuple[float, Any]]:
    """Yield the start of every way to run on the nodes that are free first, and these nodes."""
    order: dict[str, list[int]] = {}
    for way in ways:
        if way.kind not in order:
            instants = [free_at(free, node, way.kind) for node in range(len(free))]
            order[way.kind] = sorted(range(len(free)), key=instants.__getitem__)
        nodes = tuple(order[way.kind][: way.width])
        yield max(floor, free_at(free, nodes[-1], way.kind)), (way, nodes)


def _predicted(plan: Plan, pool: NodePool, now: float) -> Free:
    """Return when devices are expected to be free, knowing what happened until now."""
    free: Free = [(now, now)] * pool.nodes
    for booking, start in plan:
        _, kind, expected = booking.option
        is_running = start <= latest_finish(now, booking.real(pool))
        begun = start if is_running else booking.ready(free)
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
    ways = {job: options_of(job, pool, row) for job in batch}
    longest = sorted(batch, key=lambda job: -min(way.time for way in ways[job]))
    tries = [
        _try(longest if order == "longest" else batch, ways, list(free), weight)
        for weight in row.weights
        for order in row.orders
    ]
    return _first_least(tries, [max(one.predicted for one in bookings) for bookings in tries], now)


def _try(
    batch: list[Job], ways: dict[Job, list[Option]], free: Free, weight: float
) -> list[Booking]:
    bookings, penalty = [], weight / (2 * len(free))
    for job in batch:
        found = list(_placed(job, ways[job], free, job.arrival))
        ends = [start + way.time + penalty * way.width * way.time for start, (way, _) in found]
        start, (way, nodes) = _first_least(found, ends, job.arrival)
        occupy(free, nodes, way.kind, start + way.time, way.time)
        bookings.append(Booking(job, way, nodes, start + way.time))
    return bookings


def run_jobs(jobs: list[Job], pool: NodePool, row: Scheduler) -> Plan:
    """Book batch after batch, or serve lines in order, where all wait behind the head.

    A job starts once all its devices have done those before it.
    """
    plan, unfinished = Plan(), Plan()
    free: Free = [(0.0, 0.0)] * pool.nodes
    heads: dict[object, float] = {}

    def in_line(job: Job) -> Booking:
        ways = options_of(job, pool, row)
        ((_, (way, nodes)),) = _placed(job, ways, free, 0.0)
        return Booking(job, way, nodes, math.nan)

    for now, group in groupby(sorted(jobs, key=attrgetter("arrival")), attrgetter("arrival")):
        if row.line == "none":
            unfinished = [
                (one, start)
                for one, start in unfinished
                if start + one.real(pool) > latest_finish(now, one.real(pool))
            ]
            bookings = iter(_book(list(group), _predicted(unfinished, pool, now), pool, row, now))
        else:
            bookings = map(in_line, group)
        for booking in bookings:
            kind, real = booking.option.kind, booking.real(pool)
            line = {"none": booking.job, "class": kind, "strict": "all"}[row.line]
            start = max(now, heads.get(line, 0.0), booking.ready(free))
            heads[line] = start
            occupy(free, booking.nodes, kind, start + real, real)
            plan.append((booking, start))
            unfinished.append((booking, start))
    return plan


@dataclass
class _Search:
    ways: dict[Job, list[Option]]
    best: float
    plan: Plan
    seen: dict[frozenset[Job], list[tuple[float, ...]]] = field(default_factory=dict)

    def visit(self, left: frozenset[Job], free: Free, plan: Plan) -> None:
        """Extend a partial schedule in every way that can still be better."""
        if not left:
            makespan = max(booking.predicted for booking, _ in plan)
            if makespan < self.best:
                self.best, self.plan = makespan, plan
            return
        last = plan[-1][1] if plan else -math.inf
        clipped = tuple(sorted((max(gpu, last), max(cpu, last)) for gpu, cpu in free))
        if self._bound(left, clipped, last) >= self.best or self._is_dominated(left, clipped):
            return
        for booking, start in sorted(self._next(left, free, last), key=lambda b: b[0].predicted):
            if booking.predicted >= self.best:
                return
            job, way, nodes, end = booking
            after = list(free)
            occupy(after, nodes, way.kind, end, way.time)
            self.visit(left - {job}, after, [*plan, (booking, start)])
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

    def _bound(
        self, left: frozenset[Job], free: tuple[tuple[float, float], ...], last: float
    ) -> float:
        longest = max(max(last, j.arrival) + min(w.time for w in self.ways[j]) for j in left)
        spread = sum(map(sum, free)) + sum(min(map(device_time, self.ways[j])) for j in left)
        return max(longest, spread / (2 * len(free)), max(map(max, free)))

    def _next(
        self, left: frozenset[Job], free: Free, last: float
    ) -> Iterator[tuple[Booking, float]]:
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
                        yield Booking(job, way, nodes, start + way.time), start


def search_best(jobs: list[Job], pool: NodePool, row: Scheduler) -> Plan:
    """Find a schedule with the least makespan; all arrivals and realised times are known."""
    if len(jobs) > MOST_JOBS or pool.nodes > MOST_NODES:
        raise InputError(
            f"an exhaustive search takes at most {MOST_JOBS} jobs on {MOST_NODES} nodes, got "
            f"{len(jobs)} on {pool.nodes}; compare with lower_bound instead"
        )
    known = [job._replace(cpu_estimate=job.cpu, gpu_estimate=job.gpu) for job in jobs]
    area = replace(SCHEDULERS["area"], types=row.types, counts=row.counts)
    first = run_jobs(known, pool, area)
    ways = {job: options_of(job, pool, row) for job in known}
    search = _Search(ways, max(booking.predicted for booking, _ in first), first)
    search.visit(frozenset(known), [(0.0, 0.0)] * pool.nodes, [])
    return search.plan
