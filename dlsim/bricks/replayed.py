"""What servers of several slots, by deadline and with failures must do: replayed for the check.

Arithmetic of its own: events in a sorted list, services on the scale of the Mops that a server
could have worked. Others' jobs that a free slot has done before anybody else comes are left out.
"""

import heapq
import math
from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np

from dlsim.bricks.environment import Environment
from dlsim.given import Floats
from dlsim.kernel import CLOCK, TOL
from dlsim.rounding import ROUNDING

# At one instant: other users' jobs, what ends, failures, repairs, who is taken out, who arrives.
OTHERS, ENDS, FAILS, REPAIRED, TAKEN, ARRIVES = range(6)
# What is found of a visitor: when he began last, ended, was lost, and what he was told on arrival.
BEGUN, ENDED, LOST, TOLD = range(4)


class Visit(NamedTuple):
    """A client job at a server: when it came, what it asks for, and when it was taken out."""

    arrived: float
    work: float
    due: float
    taken: float  # inf: it stayed
    accepted: bool


def clock_of(env: Environment) -> float:
    """Return where the clock of the queues begins: load traces begin at 0."""
    return env.origin if env.load_traces is None else 0.0


def speeds_of(env: Environment, server: int) -> tuple[Floats, Floats, Floats]:
    """Return the speeds of a server, from when on each holds, and the Mops up to then."""
    speeds: Floats = np.array([env.servers["performance"].iloc[server]], dtype=float)
    if env.load_traces is not None:
        speeds = speeds / (1 + env.load_traces[server])
    worked = np.concatenate([[0.0], np.cumsum(speeds[:-1] * env.step)])
    return speeds, np.asarray(env.step * np.arange(len(speeds))), np.asarray(worked)


def capacity(env: Environment, server: int, times: Floats) -> Floats:
    """Return the Mops that a server could have worked from 0 up to each time."""
    speeds, edges, worked = speeds_of(env, server)
    at = np.maximum(0, np.searchsorted(edges, times, side="right") - 1)
    return np.asarray(worked[at] + (times - edges[at]) * speeds[at])


def alone(could: Floats, sizes: Floats) -> list[int]:
    """Return for each of others' jobs the last one up to it that finds those before it done.

    One slot has them all to itself, in closed form; several would be empty no later.
    """
    total, first = np.cumsum(sizes), np.arange(len(sizes))
    done = (total + np.maximum.accumulate(could - (total - sizes)))[:-1]
    first[1:] *= could[1:] > done + ROUNDING * (1 + np.abs(done))
    return [*np.maximum.accumulate(first).tolist(), len(sizes)]


class Replay:
    """One server, from its queue's rules alone."""

    def __init__(self, env: Environment, server: int, visitors: int, times: Floats) -> None:
        """Begin with nobody there; others' jobs come at times, or an instant before."""
        self.times = times.tolist()
        self.found, self.left = np.full((4, visitors), math.nan), visitors
        self.slots, self.is_edf = int(env.slots[server]), bool(env.is_edf[server])
        self.speeds, self.edges, self.worked = (x.tolist() for x in speeds_of(env, server))
        self.how, self.down = env.on_failure, math.inf
        self.waiting = list[tuple[Any, ...]]()
        self.running = dict[int, tuple[float, float, float]]()

    def has_room(self) -> bool:
        """Tell whether none of others' jobs is there, and a slot is free for them alone."""
        is_free = len(self.running) < self.slots and min(self.running, default=0) >= 0
        return self.down == math.inf and not self.waiting and is_free

    def note(self, what: int, who: int, time: float) -> None:
        """Write down what became of a visitor; other users' jobs have negative numbers."""
        if who >= 0:
            self.found[what, who] = time
            self.left -= what in (ENDED, LOST)

    def end(self, start: float, work: float) -> float:
        """Return when work that starts at a time is done."""
        at = max(0, bisect_right(self.edges, start) - 1)
        goal = self.worked[at] + (start - self.edges[at]) * self.speeds[at] + work
        k = max(at, bisect_right(self.worked, goal) - 1)
        if k == at:
            return start + work / self.speeds[at]
        return self.edges[k] + (goal - self.worked[k]) / self.speeds[k]

    def backlog(self, now: float, due: float) -> float:
        """Return when a job would begin if nobody came any more and nothing failed."""
        base = now if self.down == math.inf else self.down
        free = [base] * (self.slots - len(self.running))
        for start, work, end in self.running.values():
            free.append(self.end(base, work) if start == math.inf else end)
        heapq.heapify(free)
        for key, _, work in sorted(self.waiting):
            if not self.is_edf or key[0] <= due:
                heapq.heapreplace(free, self.end(free[0], work))
        return free[0]

    def begin(self, now: float, who: int, work: float) -> None:
        """Let a job begin, or begin again."""
        self.running[who] = now, work, self.end(now, work)
        self.note(BEGUN, who, now)

    def fill(self, now: float) -> None:
        """Let who is next begin."""
        while self.down == math.inf and self.waiting and len(self.running) < self.slots:
            _, who, work = heapq.heappop(self.waiting)
            self.begin(now if who >= 0 else max(now, self.times[-1 - who]), who, work)

    def fail(self, now: float, repair: float) -> None:
        """Take the server down."""
        self.down = repair
        for who, (_, work, _) in list(self.running.items()):
            if self.how == "restart" or (self.how == "resubmit" and who < 0):
                self.running[who] = math.inf, work, math.inf
            else:
                del self.running[who]
                self.note(LOST, who, now)
        if self.how != "restart":
            for _, who, _ in self.waiting:
                self.note(LOST, who, now)
            self.waiting = [x for x in self.waiting if x[1] < 0 and self.how == "resubmit"]
            heapq.heapify(self.waiting)

    def repair(self, now: float) -> None:
        """Let the server begin again."""
        self.down = math.inf
        for who, (_, work, _) in self.running.items():
            self.begin(now, who, work)

    def finish(self, now: float) -> None:
        """Let who has been served by now leave."""
        for who in [who for who, run in self.running.items() if run[2] == now]:
            del self.running[who]
            self.note(ENDED, who, now)

    def take(self, who: int) -> None:
        """Take a visitor out who waits or runs."""
        if self.running.pop(who, None) or any(x[1] == who for x in self.waiting):
            self.waiting = [x for x in self.waiting if x[1] != who]
            heapq.heapify(self.waiting)
            self.left -= 1

    def join(self, now: float, who: int, work: float, due: float) -> None:
        """Put a job in line; those of others come first at an instant, and last by deadline."""
        key = (due if self.is_edf else 0.0, now, who >= 0, abs(who))
        heapq.heappush(self.waiting, (key, who, work))


def replay(env: Environment, server: int, visits: list[Visit]) -> Floats:
    """Return when visitors began last, ended, were lost, and what they were told on arrival.

    A row for each of these, a column per visitor; NaN for what did not come to pass.
    """
    clock = clock_of(env)
    times = env.background.of(server) - clock
    one = Replay(env, server, len(visits), times)
    sizes = np.broadcast_to(env.background.sizes_of(server), times.shape)
    speed = float(env.servers["performance"].iloc[server])
    early = np.maximum.accumulate(times - TOL * (sizes / speed + np.abs(times) / CLOCK))
    first, others = alone(capacity(env, server, early), sizes), [*early.tolist(), math.inf]
    down = (env.downtimes.of(server) - clock).tolist()
    events = [(time, FAILS + k % 2, k) for k, time in enumerate(down)]
    for k, visit in enumerate(visits):
        events.append((visit.arrived, ARRIVES, k))
        if visit.accepted and visit.taken < math.inf:
            events.append((visit.taken, TAKEN, k))
    heapq.heapify(events)
    at = 0
    while one.left > 0:
        following = events[0] if events else (math.inf, ARRIVES, -1)
        if one.has_room():
            come = bisect_right(others, following[0], at)
            at = max(at, first[come - 1]) if come > at else at
        time, kind, k = min((others[at], OTHERS, at), following)
        soonest = min((run[2] for run in one.running.values()), default=math.inf)
        if soonest < math.inf and (
            (soonest, ENDS) <= (time, kind)
            or (kind == FAILS and soonest <= time + TOL * (1 + abs(time) / CLOCK))
        ):
            one.finish(soonest)
            one.fill(soonest)
            continue
        if time == math.inf:
            break
        is_lost = one.down < math.inf and one.how != "restart"
        if kind == OTHERS:
            at += 1
            if not (is_lost and one.how == "lose"):
                one.join(time, -1 - k, float(sizes[k]), math.inf)
        else:
            heapq.heappop(events)
        if kind == FAILS:
            one.fail(time, down[k + 1])
        elif kind == REPAIRED:
            one.repair(time)
        elif kind == TAKEN:
            one.take(k)
        elif kind == ARRIVES:
            visit = visits[k]
            one.note(TOLD, k, one.backlog(time, visit.due))
            if is_lost or not visit.accepted:
                one.left -= 1
            else:
                one.join(time, k, visit.work, visit.due)
        one.fill(time)
    return one.found
