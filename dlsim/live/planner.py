"""Decides which loads are promised, when they start, on how many workers, and in which pieces.

The planner uses no cluster and no clock. Loads are promised by the admission test of the simulator
(`dlsim.realtime.simulate.plan_at_instant`; paper M, section 5, and paper I, section 4) with the
measured costs. By default loads are computed one after another, each cut into pieces that idle
workers pull. Under a policy of papers M and I a load is cut into one piece per worker.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter

import numpy as np

from dlsim.live.calibration import MeasuredCosts, margin
from dlsim.live.job import Job, Piece, Promise
from dlsim.live.loads import Load
from dlsim.realtime import POLICIES, Cluster, Policy, Reading, split_load
from dlsim.realtime.model import WITHOUT_SETUP
from dlsim.realtime.simulate import InstantPlan, plan_at_instant, require_online
from dlsim.record import find_record

#: The name of the policy under which idle workers pull pieces, and the policy that tests it: a load
#: takes every worker as soon as that is free, so that all its workers end together.
PULL, PULL_TEST = "pull", Policy("edf", "all", "exact")
#: Pieces per worker, and the largest share of a load's time that their start-ups may take.
PIECES_PER_WORKER, MAX_START_UP_SHARE = 10, 0.1
#: Pieces that a worker holds at once, so that it does not wait for the head.
PIECES_AT_ONCE = 2
#: Shares of a load that the rounds of its sample take; the first round starts the workers.
SAMPLE_SHARES = (0.004, 0.016, 0.08)
#: Longest intended seconds of a piece, by round of the sample.
SAMPLE_SECONDS = (math.inf, 0.3, 2.0)
#: A start that is planned within this many seconds is due; deadlines are at least this far away.
SOON = 0.002
#: Factor on the best possible end with which a load is planned if its promise cannot be kept.
RELAXED = 1.1


class Planner:
    """The plan of a head, under "pull" or a policy of papers M and I that has an admission test."""

    def __init__(self, policy: str | Policy, quantile: float) -> None:
        self.is_pulled = isinstance(policy, str) and policy == PULL
        given = PULL_TEST if self.is_pulled else policy
        _, self.policy = find_record("policy", given, POLICIES)
        require_online(self.policy, Cluster())
        self.partition = str(self.policy.partition)
        self.has_start_up = self.partition not in WITHOUT_SETUP
        self.quantile = quantile
        self.workers = 0
        self.waiting: list[Job] = []
        self.running: list[Job] = []

    # --- expected times ---------------------------------------------------------------------------

    def piece_count(self, costs: MeasuredCosts, units: float) -> int:
        """Return the number of pieces of a load that idle workers pull."""
        fit = costs.fit()
        affordable = math.inf
        if fit.start_up > 0:
            affordable = MAX_START_UP_SHARE * fit.per_unit * units / fit.start_up
        return int(max(1, self.workers, min(PIECES_PER_WORKER * self.workers, affordable)))

    def cut_into_pieces(self, job: Job, ranges: Sequence[tuple[int, int]]) -> None:
        """Cut ranges of a load into the pieces to send."""
        units = sum(stop - start for start, stop in ranges)
        workers = max(1, self.workers)
        count = self.piece_count(job.costs, units) if self.is_pulled else workers
        job.to_send = cut_ranges(job.load, ranges, decreasing_sizes(units, count, workers))
        sizes = [piece.units for piece in job.to_send]
        even = sum(job.costs.fit().time(size) for size in sizes) / workers
        job.imbalance = job.costs.mean_seconds(sizes, workers) / even

    def expected_work(self, job: Job) -> float:
        """Return the expected seconds that a load which waits occupies one worker after another."""
        fit = job.costs.fit()
        return job.imbalance * sum(fit.time(piece.units) for piece in job.to_send)

    def _work_left(self, job: Job, now: float) -> float:
        """Return the expected work left of a running load: as planned, as far as pieces allow."""
        fit = job.costs.fit()
        unfinished = [fit.time(piece.units) for piece in job.on_cluster + job.to_send]
        planned = job.work - job.workers * max(0.0, now - job.began)
        least, most = sum(unfinished[job.workers :]), job.imbalance * sum(unfinished)
        return min(max(planned, least), most)

    def _releases(self, now: float, with_margin: bool) -> list[float]:
        """Return in how many seconds each worker is expected to be free of running loads."""
        free = [0.0] * self.workers
        for job in self.running:
            factor = margin(job.ratios, self.quantile) if with_margin else 1.0
            pieces = len(job.on_cluster) + len(job.to_send)
            count = min(pieces, job.workers, self.workers)
            free.sort()
            end = common_end(factor * self._work_left(job, now), free[:count])
            free[:count] = [max(end, one, SOON) for one in free[:count]]
        return free

    # --- promises ---------------------------------------------------------------------------------

    def promise(self, job: Job, now: float) -> Promise:
        """Return the promise of a load, tested together with all waiting loads."""
        if not self.workers:
            return Promise(False)
        jobs = [*self.waiting, job]
        found, elapsed = self._plan(jobs, now), now - job.arrival
        if not found.admitted[-1]:
            return Promise(False, offer=elapsed + float(found.offer[-1]))
        end = float(found.estimate[-1])
        if self.is_pulled:
            expected = float(self._test(jobs, now, with_margin=False).estimate[-1])
        else:
            expected = end / margin(job.ratios, self.quantile)
        # not before loads that are planned before it, so that the order of the plan stays
        end = max(end, *(one.due - now for one in jobs[:-1] if one.due <= job.due), 0.0)
        return Promise(True, elapsed + end, elapsed + expected, int(found.nodes[-1]))

    def _plan(self, jobs: Sequence[Job], now: float) -> InstantPlan:
        """Test all waiting loads, and perhaps a newcomer; those that fail are planned for later."""
        found = self._test(jobs, now)
        if found.admitted[: len(self.waiting)].all():
            return found
        for job, admitted, offer in zip(self.waiting, found.admitted, found.offer, strict=False):
            if not admitted:
                best = float(offer) if math.isfinite(offer) else job.due - now + job.deadline
                job.due = max(job.due, now + RELAXED * best)
        return self._test(jobs, now)

    def _test(self, jobs: Sequence[Job], now: float, with_margin: bool = True) -> InstantPlan:
        """Run the admission test on loads in this order; all units are seconds, from now on."""
        factors = [margin(job.ratios, self.quantile) if with_margin else 1.0 for job in jobs]
        left = [max(job.due - now, SOON) for job in jobs]
        if self.is_pulled:
            cluster, link = Cluster(self.workers, cms=0.0, cps=1.0), "per_task"
            works = [self.expected_work(job) for job in jobs]
        else:
            cluster, link = self._cluster([job.costs for job in jobs]), "shared"
            works = [self._compute_seconds(job) for job in jobs]
        sizes = [max(factor * work, SOON) for factor, work in zip(factors, works, strict=True)]
        releases = self._releases(now, with_margin)
        return plan_at_instant(
            sizes, left, releases, cluster, self.policy, Reading(link=link), engine="python"
        )

    def admit(self, job: Job, promise: Promise) -> None:
        """Add a promised load to the waiting loads."""
        job.promise, job.due = promise, job.arrival + promise.end
        self.waiting.append(job)

    # --- starting loads ---------------------------------------------------------------------------

    def _start_next(self, now: float) -> Job | None:
        """Start the waiting load that is due first, or that a policy of the papers starts now."""
        if not self.waiting:
            return None
        if self.is_pulled:
            job = min(self.waiting, key=attrgetter("due"))
            job.workers = self.workers
        else:
            found = self._plan(self.waiting, now)
            starts = np.where(found.admitted, found.start, 0.0)  # a load that is late starts now
            first = int(np.argmin(starts))
            if starts[first] > SOON:
                return None
            job = self.waiting[first]
            job.workers = int(found.nodes[first]) or self.workers
        job.work = self.expected_work(job)
        releases = sorted(self._releases(now, with_margin=False))[: job.workers]
        job.started, job.began = now - job.arrival, now + sum(releases) / len(releases)
        job.planned_seconds = common_end(job.work, releases)
        if not self.is_pulled:
            job.to_send = self._one_piece_per_worker(job, releases)
        self.waiting.remove(job)
        self.running.append(job)
        return job

    def next_piece(self, now: float) -> tuple[Job, Piece] | None:
        """Return the next piece to send, of the first load that has one, or None."""
        at_once = PIECES_AT_ONCE if self.is_pulled else 1
        if sum(len(job.on_cluster) for job in self.running) >= at_once * self.workers:
            return None
        unsent = (job for job in self.running if job.to_send)
        job = next(unsent, None) or self._start_next(now)
        if job is None:
            return None
        piece = job.to_send.pop(0)
        job.on_cluster.append(piece)
        return job, piece

    def remove(self, job: Job) -> None:
        """Remove a load from the plan."""
        for jobs in (self.waiting, self.running):
            if job in jobs:
                jobs.remove(job)
        job.to_send.clear()

    # --- a policy of the papers: one piece per worker ---------------------------------------------

    def _compute_seconds(self, job: Job) -> float:
        """Return the seconds in which one worker computes a load, without start-up."""
        units = sum(piece.units for piece in job.to_send)
        return job.costs.fit(self.has_start_up).per_unit * units

    def _cluster(self, costs: Sequence[MeasuredCosts]) -> Cluster:
        """Return a cluster on which a unit is a second of computing, with the highest costs."""
        sending = [one.fit(self.has_start_up, is_sending=True) for one in costs]
        occupied = [one.fit(self.has_start_up) for one in costs]
        ratios = [one.per_unit / all_.per_unit for one, all_ in zip(sending, occupied, strict=True)]
        cms = min(max(ratios), 1.0)
        st = max(one.start_up for one in sending)
        sc = max(max(0.0, one.start_up - st) for one in occupied)
        return Cluster(self.workers, cms, max(1.0 - cms, 1e-9), st, sc)

    def _one_piece_per_worker(self, job: Job, releases: Sequence[float]) -> list[Piece]:
        """Cut a load as its policy splits it over workers that are free at these times."""
        cluster = self._cluster([job.costs])
        size = max(self._compute_seconds(job), SOON)
        split = split_load(size, releases, cluster, self.partition, self.policy.rounds)
        units = sum(piece.units for piece in job.to_send)
        ranges = join_ranges((piece.start, piece.stop) for piece in job.to_send)
        sizes = (np.ravel(split.alpha) * units).tolist()
        return cut_ranges(job.load, ranges, sizes, is_sorted=False)


def common_end(work: float, releases: Sequence[float]) -> float:
    """Return the common end of all workers, each of which takes its share of `work` once free.

    >>> common_end(10, [0, 0]), common_end(10, [0, 4]), common_end(10, [0, 20])
    (5.0, 7.0, 10.0)
    """
    times = np.sort(np.array(releases, dtype=float))
    return float(((work + np.cumsum(times)) / np.arange(1, len(times) + 1)).min())


def join_ranges(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges of units in order, with adjacent ranges joined."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], stop
        else:
            joined.append((start, stop))
    return joined


def decreasing_sizes(units: float, count: int, workers: int) -> list[float]:
    """Return sizes of pieces that decrease linearly from round to round, with the given sum.

    Trapezoid self-scheduling: T. H. Tzeng and L. M. Ni, IEEE Transactions on Parallel and
    Distributed Systems 4(1), 1993.

    >>> decreasing_sizes(60, 6, 2)
    [15.0, 15.0, 10.0, 10.0, 5.0, 5.0]
    """
    rounds = -(-count // workers)
    weights = [rounds - k // workers for k in range(count)]
    return [units * weight / sum(weights) for weight in weights]


def cut_ranges(
    load: Load, ranges: Sequence[tuple[int, int]], sizes: Sequence[float], is_sorted: bool = True
) -> list[Piece]:
    """Cut ranges of a load into pieces of about these sizes; sorted ones come largest first."""
    if load.is_parts:
        return [Piece(k, k + 1) for start, end in ranges for k in range(start, end)]
    wanted, pieces = iter(sizes), []
    shortest = min(sizes, default=1) / 2
    for start, end in ranges:
        while start < end:
            stop = min(start + max(1, round(next(wanted, end - start))), load.size)
            stop = min(end, max(start + 1, load.boundary(stop)))
            if end - stop < shortest:  # too short for a piece of its own
                stop = end
            pieces.append(Piece(start, stop))
            start = stop
    return sorted(pieces, key=lambda piece: -piece.units) if is_sorted else pieces


def sample_places(load: Load, workers: int) -> list[list[tuple[int, int]]]:
    """Return, for each round of the sample, a range within which each worker gets a piece."""
    rounds = len(SAMPLE_SHARES)
    count = rounds * workers
    grid = sorted({load.boundary(load.size * k // count) for k in range(count)} | {load.size})
    cells = list(pairwise(grid))
    if len(cells) < count:  # few records: the first rounds get what there is
        return [cells[k * workers : (k + 1) * workers] for k in range(rounds)]
    return [cells[k::rounds] for k in range(rounds)]


def sample_piece(
    load: Load, place: tuple[int, int], round_: int, workers: int, costs: MeasuredCosts
) -> Piece:
    """Return a worker's piece in a round of the sample: a share of the load, or a time at most."""
    units = SAMPLE_SHARES[round_] * load.size / workers
    if costs.pieces:
        units = min(units, SAMPLE_SECONDS[round_] / costs.computing_per_unit())
    start, end = place
    size = 1 if load.is_parts else max(1, int(units))
    stop = min(end, max(start + 1, load.boundary(start + size)))
    return Piece(start, stop, is_sample=True, is_warm_up=round_ == 0)
