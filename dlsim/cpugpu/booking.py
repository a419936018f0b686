"""The schedulers of moldable jobs at work: booked at once, or waiting in line.

Source: paper C, sections 2 and 7; see `dlsim.cpugpu.nodes`.
"""

from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from dlsim.cpugpu.given import near
from dlsim.cpugpu.nodes import Job, NodePool, Option, Scheduler, options_of
from dlsim.kernel import latest_finish

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
