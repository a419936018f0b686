"""Who computes what, and when: what waits, what is on its way, which workers are there.

The planner knows no clock, no thread and no network; all that is decided, it decides, by the
simulator's own admission test (`dlsim.realtime.run.plan`) on costs that were measured. Times are
seconds since the epoch.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from operator import attrgetter

import numpy as np

from dlsim.errors import InputError
from dlsim.live.costs import Costs, Sample
from dlsim.live.job import Chunk, Job, Promise, Task, Worker, load_of
from dlsim.realtime import Cluster, Policy, Reading, split_load
from dlsim.realtime.run import Plan, plan

#: A start that is planned within so many seconds is now.
SOON = 0.002
#: A chunk whose time is over is expected to take this part of its time yet.
OVERDUE = 0.1
#: What came off its plan is planned anew for an end that is later by this factor.
PLAY = 1.1
#: A chunk is a straggler beyond so many times its expected time, and beyond half as much again
#: as the slowest that was measured.
STRAGGLES, BEYOND = 2.0, 1.5
#: A load fails whose chunk was on so many workers that went.
MOST_TRIES = 5


class CutError(Exception):
    """A load, the argument, that cannot be cut: its file was changed, say."""


class Planner:
    """The plan of a head; `say` gets sentences, `keep` what a load was divided into."""

    def __init__(
        self, policy: Policy, reading: Reading, quantile: float, say: Callable[[str], object],
        keep: Callable[[Job, list[Chunk]], object],
    ) -> None:  # fmt: skip
        self.policy, self.reading, self.quantile = policy, reading, quantile
        self.partition, self.say, self.keep = str(policy.partition), say, keep
        self.costs: dict[str, Costs] = defaultdict(Costs)
        self.workers: dict[str, Worker] = {}
        self.waiting: list[Task] = []
        self.to_send: list[Chunk] = []
        self.running: dict[Chunk, Job] = {}
        self.sending: dict[Job, float] = {}  # until when each load takes the link, as planned

    def warm(self) -> None:
        """Compile and import what plans, before anything is promised."""
        one, costs = Cluster(1), Costs()
        for k in range(6):
            costs.add(Sample("ab"[k % 2], 1.0, 1.0, 1.0 + k))
        costs.slowest()
        plan([1.0], [1.0], [0.0], one, self.policy, self.reading)
        split_load(1.0, [0.0], one, self.partition, self.policy.rounds)

    def margin(self, costs: Costs) -> float:
        """Return the factor that makes fitted times a promise."""
        return costs.margin(len(self.workers), self.partition, self.quantile)

    def cluster(self, costs: Costs, margin: float = 1.0) -> Cluster:
        """Return the cluster that was measured, all times stretched."""
        one = costs.cluster(len(self.workers), self.partition)
        return Cluster(one.nodes, *(margin * cost for cost in (one.cms, one.cps, one.st, one.sc)))

    def _link(self, now: float) -> float:
        """Return when the link is expected to be free, from now on."""
        return max([0.0, *(end - now for end in self.sending.values())])

    # -------------------------------------------------------------- what is promised

    def promise(self, newcomer: Task, now: float) -> Promise:
        """Test a newcomer behind all that wait."""
        found, margin = self._planned(now, newcomer)
        if self._relaxed(found, now):
            found, margin = self._planned(now, newcomer)
        is_kept, offer = bool(found.admitted[-1]), float(found.offer[-1])
        told = int(found.nodes[-1]), float(found.estimate[-1]), margin
        return Promise(is_kept, *told, math.nan if is_kept else offer)

    def _planned(
        self, now: float, newcomer: Task | None = None, is_likely: bool = False
    ) -> tuple[Plan, float]:
        """Test all that wait, in the order of their last plan, and a newcomer behind them.

        What is likely is planned without a margin, for the deadlines that were told. Loads of
        several functions are measured in the newest one's units, by the dearer of sending and
        computing: never too short.
        """
        self.waiting.sort(key=attrgetter("start"))
        tasks = [*self.waiting, *([newcomer] if newcomer else [])]
        margins = {
            costs: 1.0 if is_likely else self.margin(costs)
            for costs in dict.fromkeys(task.job.costs for task in tasks)
        }
        slow = {costs: self.cluster(costs, margin) for costs, margin in margins.items()}
        last = tasks[-1].job.costs
        base, dearer = slow[last], {}
        for costs, own in slow.items():
            pairs = (own.cms, base.cms), (own.cps, base.cps)
            dearer[costs] = max(a / b for a, b in pairs if b > 0)
        setups = {name: max(getattr(c, name) for c in slow.values()) for name in ("st", "sc")}
        cluster = Cluster(base.nodes, base.cms, base.cps, **setups)
        sizes = [task.size * dearer[task.job.costs] for task in tasks]
        left = [max((t.job.told if is_likely else t.due) - now, SOON) for t in tasks]
        release = [self._release(worker, now) for worker in self.workers.values()]
        found = plan(sizes, left, release, cluster, self.policy, self.reading, self._link(now))
        return found, margins[last]

    def _release(self, worker: Worker, now: float) -> float:
        """Return when a worker is expected to be free, from now on."""
        held = [c for c in (worker.chunk, *self.to_send) if c and c.worker is worker]
        rest = OVERDUE * sum(c.planned[2] - c.planned[0] for c in held)
        return max(worker.free - now, rest) if held else 0.0

    def _relaxed(self, found: Plan, now: float) -> bool:
        """Let those that came off their plan be planned later; tell whether there are any.

        A promise is broken where not even the fitted times, without a margin, keep it; that, and
        which end is expected instead, is said at once.
        """
        late = np.flatnonzero(~found.admitted[: len(self.waiting)]).tolist()
        if late:
            likely, _ = self._planned(now, is_likely=True)
        for k in late:
            task, later = self.waiting[k], float(found.offer[k])
            job, told = task.job, task.job.told
            task.due = now + PLAY * (later if later < math.inf else job.deadline)
            if not likely.admitted[k] and task.due > told:
                job.broken.append((now, task.due))
                self.say(
                    f"load {job.number}: its deadline of {job.deadline:.3g} s cannot be kept; it "
                    f"will be done by {task.due - job.arrival:.3g} s"
                )
        return bool(late)

    # -------------------------------------------------------------- what starts

    def step(self, now: float) -> float:
        """Start what is to start now; return in how many seconds something else is."""
        wake = self._watch(now)
        if not self.waiting or not self.workers:
            return wake
        found, _ = self._planned(now)
        if self._relaxed(found, now):
            return 0.0
        for task, start in zip(self.waiting, found.start.tolist(), strict=True):
            task.start = now + start
        first = int(np.argmin(found.start))
        if self.waiting[first].start > now + SOON:
            return min(wake, self.waiting[first].start - now)
        self._dispatch(self.waiting.pop(first), int(found.nodes[first]), now)
        return 0.0

    def _dispatch(self, task: Task, nodes: int, now: float) -> None:
        """Divide a load over the workers that are free first, and queue its chunks."""
        job, costs = task.job, task.job.costs
        cluster, margin = self.cluster(costs), self.margin(costs)
        link = self._link(now)
        free = {w: max(self._release(w, now), link) for w in self.workers.values()}
        chosen = sorted(free, key=free.__getitem__)[:nodes]
        times = [free[worker] for worker in chosen]
        while True:
            try:
                split = split_load(
                    task.load.size, times, cluster, self.partition, self.policy.rounds
                )
                break
            except InputError:  # a node that would get nothing: one less does
                if len(times) == 1:
                    raise
                times = times[:-1]
        order = np.argsort(split.send_start, axis=None, kind="stable")
        shares, *planned = (
            np.ravel(x)[order]
            for x in (split.alpha, split.send_start, split.send_end, split.compute_end)
        )
        places = (order % split.alpha.shape[-1]).tolist()
        chunks, slack = [], max(STRAGGLES, BEYOND * costs.worst())
        try:
            pieces = task.load.cut(shares.tolist())
        except Exception as error:  # whatever a load of one's own raises
            raise CutError(job) from error
        for k, piece in enumerate(pieces):
            if piece:
                worker, at = chosen[places[k]], tuple(now + float(times[k]) for times in planned)
                chunk = Chunk((*task.key, k), piece, worker, at, tries=task.tries)  # type: ignore[arg-type]
                chunk.limit = slack * costs.computing(piece.units)
                chunks.append(chunk)
                worker.free = now + margin * float(planned[2][k])
        if not task.key:
            job.begun, job.expected = now, now + float(split.completion)
        self.sending = {one: end for one, end in self.sending.items() if end > now}
        self.sending[job] = now + margin * float(planned[1].max())
        job.open += len(chunks) - 1
        job.sent += chunks
        self.running.update(dict.fromkeys(chunks, job))
        self.to_send += chunks
        self.keep(job, chunks)

    def _watch(self, now: float) -> float:
        """Flag stragglers, run them elsewhere where that helps; return when to look again."""
        wake = math.inf
        for chunk, job in list(self.running.items()):
            if math.isnan(chunk.sent) or chunk.is_straggler or chunk.is_over:
                continue
            if now < chunk.sent + chunk.limit:
                wake = min(wake, chunk.sent + chunk.limit - now)
                continue
            expected = job.costs.computing(chunk.piece.units)
            chunk.is_straggler = True
            self.say(f"load {job.number}: a chunk straggles on {chunk.worker.address}")
            idle = [w for w in self.workers.values() if not self._release(w, now)]
            if idle and now + expected <= job.told:
                at = (now, now, now + expected)
                again = Chunk(chunk.key, chunk.piece, idle[0], at, tries=chunk.tries + 1)
                self.running[again] = job
                job.sent.append(again)
                self.to_send.insert(0, again)
        return wake

    # -------------------------------------------------------------- what happens

    def next(self, now: float) -> tuple[Chunk, Job] | None:
        """Return the next chunk to send, if there is one whose worker is idle."""
        chunk = next((c for c in self.to_send if c.worker.chunk is None), None)
        if chunk is None:
            return None
        self.to_send.remove(chunk)
        chunk.worker.chunk, chunk.sent_from = chunk, now
        return chunk, self.running[chunk]

    def free(self, chunk: Chunk, job: Job, now: float) -> bool:
        """Let a worker be free of a chunk; tell whether it is the first of its place to end."""
        is_first = not (chunk.is_over or chunk.key in job.done or job.future.done())
        worker, chunk.computed = chunk.worker, now
        chunk.close()
        self.running.pop(chunk, None)
        if worker.chunk is chunk:
            worker.chunk = None
            if not any(c.worker is worker for c in self.to_send):
                worker.free = now
        return is_first

    def join(self, address: str) -> None:
        """Plan with a worker that came."""
        self.workers.setdefault(address, Worker(address))

    def lose(self, address: str) -> list[Job]:
        """Plan anew what a worker that is gone had to do; return the loads that are given up."""
        worker = self.workers.pop(address, None)
        held = [c for c in self.running if c.worker is worker]
        self.to_send = [c for c in self.to_send if c.worker is not worker]
        jobs, given_up = [self.running.pop(chunk) for chunk in held], []
        lost = [(c, job) for c, job in zip(held, jobs, strict=True) if not c.is_over]
        if worker is not None:
            self.say(f"{address} is gone; {len(lost)} chunks are planned anew on the others")
        for chunk, job in lost:
            load, tries = load_of(chunk.piece), chunk.tries + (not math.isnan(chunk.sent_from))
            chunk.close()
            another = any(c.key == chunk.key for c, own in self.running.items() if own is job)
            if another or chunk.key in job.done or job.future.done():
                continue
            if tries >= MOST_TRIES:
                given_up.append(job)
            self.waiting.append(Task(job, load, job.told, chunk.key, -math.inf, tries))
        return given_up

    def forget(self, job: Job) -> None:
        """Drop what is left of a load; the link is free of it but for what is being sent."""
        self.waiting = [task for task in self.waiting if task.job is not job]
        self.to_send = [c for c in self.to_send if self.running.get(c) is not job]
        for chunk in [c for c, own in self.running.items() if own is job]:
            chunk.close()
            if chunk.worker.chunk is not chunk:
                self.running.pop(chunk)
        left = [c for c, own in self.running.items() if own is job and math.isnan(c.sent)]
        self.sending[job] = max((c.planned[1] for c in left), default=0.0)
