"""The least makespan of moldable jobs, by search over all schedules.

Every schedule without needless waiting can be laid job by job in the order of the starts;
branch and bound over that order, the ways to run, and the nodes (those that look alike
count once).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from operator import le

from dlsim.cpugpu.booking import Booking, Free, Plan, free_at, occupy, run_booked
from dlsim.cpugpu.nodes import SCHEDULERS, Job, NodePool, Option, Scheduler, device_time, options_of
from dlsim.errors import InputError

#: Most jobs and nodes of a search, which then takes about a second.
MOST_JOBS = 5
MOST_NODES = 4


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
