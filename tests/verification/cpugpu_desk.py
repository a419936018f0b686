"""The CPU-GPU engine written a second time: lists, searched and summed anew for every decision.

Pure functions of a state decide; a desk follows them; a loop goes from instant to instant. It
shares the words with dlsim (`JobView`, `Policy`), and neither queues, nor the history, nor any
rule.
"""

import math
import statistics
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dlsim.compiled import TOL, deadline_with_tolerance, time_offset
from dlsim.cpugpu import Decision, JobView
from dlsim.errors import InputError

NEWEST = 0.3


class Running(NamedTuple):
    """A job on a device."""

    item: JobView
    start: float


class SchedulerState:
    """Queues and devices as lists."""

    def __init__(self, devices, history):
        self.now, self.history, self.devices = 0.0, history, devices
        self.classes = tuple(name[:3] for name in devices)
        self.running = [None] * len(devices)
        self.queues, self.main = [[] for _ in devices], []

    def free(self):
        """Return the devices that run nothing and have an empty sub-queue."""
        pairs = enumerate(zip(self.running, self.queues, strict=True))
        return [d for d, (job, queue) in pairs if job is None and not queue]


@dataclass
class Record:
    """What is known of one application on one device class."""

    assigned: int = 0
    elsewhere: int = 0
    times: list[float] = field(default_factory=list)
    mean: float = 0.0
    spread: float = 0.0

    @property
    def count(self):
        """Number of measured runs."""
        return len(self.times)

    @property
    def std(self):
        """Population standard deviation of the measured runs; NaN without any."""
        return math.sqrt(self.spread / len(self.times)) if self.times else math.nan

    def add(self, seconds):
        """Take one more run into account."""
        self.times.append(seconds)
        delta = seconds - self.mean
        self.mean += delta / len(self.times)
        self.spread += delta * (seconds - self.mean)

    def expected(self, estimate="mean"):
        """Return a statistic of the measured runs."""
        if not self.times:
            return math.nan
        if estimate == "median":
            return statistics.median(self.times)
        if estimate == "ewma":
            average = self.times[0]
            for seconds in self.times[1:]:
                average += NEWEST * (seconds - average)
            return average
        return self.mean

    def copy(self):
        """Return an independent copy."""
        return Record(self.assigned, self.elsewhere, self.times.copy(), self.mean, self.spread)


#: What a pair that was never seen looks like.
UNSEEN = Record()


class History:
    """Run times per application and device class."""

    def __init__(self):
        self._records: dict[tuple[str, str], Record] = {}

    def record(self, app, cls):
        """Return what is known of an application on a class, not to be changed."""
        return self._records.get((app, cls), UNSEEN)

    def assign(self, app, cls):
        """Note that a job was assigned to a class (rule 2)."""
        own = self._own(app, cls)
        own.assigned, own.elsewhere = own.assigned + 1, 0
        other = self._records.get((app, "cpu" if cls == "gpu" else "gpu"))
        if other is not None:
            other.elsewhere += 1

    def withdraw(self, app, cls):
        """Take an assignment back: its device broke before the job was done."""
        own = self._own(app, cls)
        own.assigned = max(0, own.assigned - 1)

    def measure(self, app, cls, seconds):
        """Note the time of a run that was assigned before (rule 5)."""
        self._own(app, cls).add(seconds)

    def add(self, app, cls, seconds):
        """Note a whole run: assigned and measured."""
        self.measure(app, cls, seconds)
        self.assign(app, cls)

    def average(self, cls, estimate="mean"):
        """Return the mean expected time of a class's measured applications, NaN without any."""
        known = [
            r.expected(estimate)
            for (_, kind), r in self._records.items()
            if kind == cls and r.times
        ]
        return math.fsum(known) / len(known) if known else math.nan

    def copy(self):
        """Return an independent copy."""
        other = History()
        other._records = {key: record.copy() for key, record in self._records.items()}
        return other

    def _own(self, app, cls):
        return self._records.setdefault((app, cls), Record())


def rule_1(state):
    """Rule 1: a free device takes the next job of its sub-queue."""
    for device, queue in enumerate(state.queues):
        if queue and state.running[device] is None:
            return device
    return None


def rule_2(state, policy, reading):
    """Rule 2: a class that was never assigned this application gets it, to fill the history."""
    item, free = state.main[0], state.free()
    several = len({state.classes[d] for d in free}) > 1
    if several and len(item.declared) > 1 and reading.both_free == "best":
        return None
    for device in free:
        cls = state.classes[device]
        if cls in item.declared and _is_untried(state.history.record(item.app, cls), policy):
            if policy.bound and _is_trifle(state, item, policy, reading):
                return None
            return Decision(item.job, device, "R2*" if several else "R2")
    return None


def _is_untried(record, policy):
    again = policy.re_explore > 0 and record.elsewhere >= policy.re_explore
    return record.assigned < policy.min_samples or again


def _is_trifle(state, item, policy, reading):
    """Tell whether the least known time is under `Policy.bound` of the known work waiting."""
    expect = learned(state, policy, reading)
    least = [min(_known(one, expect).values(), default=0.0) for one in state.main]
    part = policy.bound * math.fsum(least)
    return 0 < least[0] < part - TOL * part


def learned(state, policy, reading):
    """Return what the history expects of a run: (job, class) to time, NaN where never measured."""
    history, estimate, k = state.history, policy.estimate, reading.deviations

    def expect(item, cls):
        record = history.record(item.app, cls)
        time = record.expected(estimate)
        return time + k * record.std if k and record.times else time

    return expect


def declared(item, cls):
    """Return the declared run time of a job on a class."""
    return item.declared.get(cls, math.nan)


def _known(item, expect):
    times = {cls: expect(item, cls) for cls in ("gpu", "cpu") if cls in item.declared}
    return {cls: time for cls, time in times.items() if time == time}


def _guess(state, cls, policy, reading):
    """Return the time assumed for a run that was never measured (`unknown_remaining`)."""
    if reading.unknown_remaining == "avg":
        average = state.history.average(cls, policy.estimate)
        return 0.0 if math.isnan(average) else average
    return 0.0 if reading.unknown_remaining == "zero" else math.inf


def ready(state, device, expect, policy, reading):
    """Rule 3: when a device will have done what it runs and all of its sub-queue."""
    cls, job, instant = state.classes[device], state.running[device], state.now
    if job is not None:
        time = expect(job.item, cls)
        time = _guess(state, cls, policy, reading) if time != time else time
        instant = max(instant, job.start + time)
    for item in state.queues[device]:
        time = expect(item, cls)
        instant += _guess(state, cls, policy, reading) if time != time else time
    return instant


def rule_3(state, item, expect, policy, reading):
    """Rule 3: predicted finish of a job on every device, sub-queues included."""
    times = _known(item, expect)
    return tuple(
        ready(state, d, expect, policy, reading) + times[cls] if cls in times else math.nan
        for d, cls in enumerate(state.classes)
    )


def rule_4(state, item, expect, finishes):
    """Rule 4: to the slower free device if the job finishes sooner there, else to a sub-queue.

    A free device that is not slower is taken at once; a tie of finishes goes to the
    preferred class, then to the first device.
    """
    times, free = _known(item, expect), state.free()
    fastest = min(times.values())
    fast = {cls for cls, time in times.items() if time - fastest <= TOL * fastest}
    for device in free:
        if state.classes[device] in fast:
            several = len({state.classes[d] for d in free}) > 1
            return Decision(item.job, device, "R3*" if several else "R3", finishes)
    least = min(finish for finish in finishes if finish == finish)
    limit = deadline_with_tolerance(least, least - state.now)
    tied = [d for d, finish in enumerate(finishes) if finish <= limit]
    device = min(tied, key=lambda d: (state.classes[d] not in fast, d))
    return Decision(item.job, device, "R4" if device in free else "R4q", finishes)


def rule_5(history, item, cls, seconds):
    """Rule 5: the run time of a finished job enters the history: mean and deviation."""
    history.measure(item.app, cls, seconds)


def _untold(state, item, policy, reading):
    """Place a job of which nothing is measured though every class at hand was tried."""
    fits = [d for d, cls in enumerate(state.classes) if cls in item.declared]
    for device in state.free():
        if device in fits:
            return Decision(item.job, device, "R0")
    expect = learned(state, policy, reading)
    each = {d: ready(state, d, expect, policy, reading) for d in fits}
    limit = deadline_with_tolerance(min(each.values()), min(each.values()) - state.now)
    device = next(d for d in fits if each[d] <= limit)
    return Decision(item.job, device, "R0")


def _steal(state, policy, reading):
    """Move the last job of a sub-queue to a free device where it should finish sooner."""
    expect, found = learned(state, policy, reading), []
    for queue, there in zip(state.queues, range(len(state.queues)), strict=True):
        for device in state.free() if queue else ():
            item = queue[-1]
            here = state.now + expect(item, state.classes[device])
            end = ready(state, there, expect, policy, reading)
            sooner = deadline_with_tolerance(here, here - state.now) < end
            if state.classes[device] in item.declared and sooner:
                found.append((here - end, end, device, item))
    if not found:
        return None
    least, end = min(one[:2] for one in found)
    if math.isinf(end):  # every end here is as much sooner as any other
        as_good = [one for one in found if math.isinf(one[0])]
    else:
        slack = deadline_with_tolerance(end, end - state.now) - end
        as_good = [one for one in found if one[0] <= least + slack]
    *_, device, item = min(as_good, key=lambda one: one[2])
    return Decision(item.job, device, "steal", rule_3(state, item, expect, policy, reading))


def five(state, policy, reading):
    """Decide the head of the main queue by the five rules; None while every device is busy."""
    if not state.free():
        return None
    if not state.main:
        return _steal(state, policy, reading) if policy.steal else None
    found = rule_2(state, policy, reading)
    if found is not None:
        return found
    item, expect = state.main[0], learned(state, policy, reading)
    if not _known(item, expect):
        return _untold(state, item, policy, reading)
    return rule_4(state, item, expect, rule_3(state, item, expect, policy, reading))


def mct(state, policy, reading):
    """Every job, as it arrives, where it completes earliest (M. Maheswaran et al., HCW 1999)."""
    if not state.main:
        return None
    item = state.main[0]
    finishes = rule_3(state, item, declared, policy, reading)
    return rule_4(state, item, declared, finishes)._replace(rule="mct")


def fifo(state, policy, reading):
    """One first-come queue per class; a job waits for the class it is meant for."""
    for device in state.free() if state.main else ():
        cls = state.classes[device]
        if policy.target == cls:
            return Decision(state.main[0].job, device, "fifo")
        if policy.target == "preferred":
            for item in state.main:
                if item.preferred == cls:
                    return Decision(item.job, device, "fifo")
    return None


def strict(state, policy, reading):
    """TORQUE with one queue: no job passes its head, which waits for its class."""
    for item in state.main[:1]:
        target = item.preferred if policy.target == "preferred" else policy.target
        for device in (d for d in state.free() if state.classes[d] == target):
            return Decision(item.job, device, "fifo")
    return None


def round_robin(state, policy, reading):
    """Blind round robin: the i-th job to device i mod n, or the next that has a version."""
    if not state.main:
        return None
    item, n = state.main[0], len(state.classes)
    turns = ((item.job + step) % n for step in range(n))
    device = next(d for d in turns if state.classes[d] in item.declared)
    return Decision(item.job, device, "turn")


def speed_up_of(item):
    """Return how much faster the preferred class is, by declared times."""
    times = item.declared.values()
    return max(times) / min(times) if len(item.declared) > 1 else math.inf


def speed_up(state, policy, reading):
    """RSC and its kin: best speed-up first, and an idle device may take from the tail.

    Our reading of "Relative Speedup based policy with Conservative assignment" (paper C,
    section 7): one queue per preferred class. A device whose own queue is empty looks at
    the job of least speed-up s of the other queue and takes it if s <= q/m, q jobs
    waiting there, itself included, m devices of that class.
    """
    ranked = sorted(state.main, key=lambda item: (-speed_up_of(item), item.job))
    for device in state.free():
        cls = state.classes[device]
        own = [item for item in ranked if item.preferred == cls]
        if own:
            return Decision(own[0].job, device, "own")
        if ranked and policy.cross_class != "never" and cls in ranked[-1].declared:
            m = len(state.classes) - state.classes.count(cls)
            few = speed_up_of(ranked[-1]) * m <= len(ranked) * (1 + TOL)
            if few or policy.cross_class == "always":
                return Decision(ranked[-1].job, device, "taken")
    return None


def shortest(state, policy, reading):
    """ASJF: shortest first, and an idle device takes what it would finish sooner.

    Our reading of "Adaptive Shortest Job First" (paper C, section 7): one queue per
    preferred class. A device whose own queue is empty scans the other one by the time
    here, shortest first, and takes the first job that finishes here strictly before its
    estimated finish there: (remaining work of the running jobs + all jobs ahead of it)/m
    + its own time, m devices of that class.
    """
    for device in state.free():
        cls = state.classes[device]
        own = [item for item in state.main if item.preferred == cls]
        if own:
            item = min(own, key=lambda one: (one.declared[cls], one.job))
            return Decision(item.job, device, "own")
        for item in _sooner_here(state, cls):
            return Decision(item.job, device, "taken")
    return None


def _sooner_here(state, cls):
    """Return the jobs of the other queue that a device of this class should finish first."""
    other = "cpu" if cls == "gpu" else "gpu"
    m, ahead = state.classes.count(other), 0.0
    for kind, job in zip(state.classes, state.running, strict=True):
        if kind == other and job is not None:
            ahead += max(0.0, job.start + job.item.declared[other] - state.now)
    found = []
    for item in sorted(state.main, key=lambda one: (one.declared[other], one.job)):
        there = ahead / m + item.declared[other]
        ahead += item.declared[other]
        if item.declared.get(cls, math.inf) < there * (1 - TOL):
            found.append(item)
    return sorted(found, key=lambda one: (one.declared[cls], one.job))


DECIDE = {
    "history": five,
    "mct": mct,
    "fifo": fifo,
    "strict": strict,
    "round-robin": round_robin,
    "speed-up": speed_up,
    "shortest": shortest,
}


class Move(NamedTuple):
    """A decision that was followed, when, and the how manieth it was."""

    decision: Decision
    when: float
    turn: int


class Desk:
    """Queues, devices and history under one policy."""

    def __init__(self, machine, policy, reading, history, decide=None, watch=None):
        rule = policy.rule
        self.decide = decide or (rule if callable(rule) else DECIDE[rule])
        self.policy, self.reading, self.watch = policy, reading, watch
        self.state = SchedulerState(machine.devices, history)
        self.moves: dict[int, Move] = {}
        self._turns = 0

    def arrive(self, now, items):
        """Put jobs at the end of the main queue."""
        self.state.now = now
        self.state.main.extend(items)

    def complete(self, now, device, seconds):
        """Take a finished job off its device; its time enters the history (rule 5)."""
        state, job = self.state, self._taken_off(now, device)
        rule_5(state.history, job.item, state.classes[device], seconds)

    def dispatch(self, now):
        """Follow rule 1 and the policy until nothing more can be decided."""
        state, started = self.state, []
        state.now = now
        while True:
            device = rule_1(state)
            if device is not None:
                item = state.queues[device].pop(0)
                state.running[device] = Running(item, now)
                started.append((device, item))
                continue
            decision = self.decide(state, self.policy, self.reading)
            if decision is None:
                return started
            self._follow(decision)

    def _taken_off(self, now, device):
        job = self.state.running[device]
        if job is None:
            raise InputError(f"{self.state.devices[device]} runs nothing that could end")
        self.state.now, self.state.running[device] = now, None
        return job

    def _follow(self, decision):
        state = self.state
        if self.watch is not None:
            self.watch(state, decision)
        item = self._withdrawn(decision)
        cls = state.classes[decision.device]
        if cls not in item.declared:
            raise InputError(f"job {item.job} ({item.app}) has no version for a {cls}")
        state.queues[decision.device].append(item)
        state.history.assign(item.app, cls)
        self.moves[item.job] = Move(decision, state.now, self._turns)
        self._turns += 1

    def _withdrawn(self, decision):
        for queue in [self.state.main, *self.state.queues]:
            for place, item in enumerate(queue):
                if item.job == decision.job:
                    return queue.pop(place)
        raise InputError(f"the policy moved job {decision.job!r}, which does not wait")


class Trace(NamedTuple):
    """What happened to each job, in queue order; times count from `time_offset`."""

    time_offset: float
    device: list[int]
    start: list[float]
    end: list[float]
    moves: dict[int, Move]


class Devices:
    """What runs where until when; CPUs slow down beside running GPU jobs (`gpu_cpu_share`)."""

    def __init__(self, machine, share):
        self.gpus, self.cpus, self.share = machine.gpus, machine.cpus, share
        self.end = [math.inf] * (machine.gpus + machine.cpus)
        self.rate, self.since = 1.0, 0.0

    def begin(self, device, now, time):
        slow = device >= self.gpus and self.share > 0
        self.end[device] = now + (time / self.rate if slow else time)

    def settle(self, now):
        """Let the CPUs go on at the speed that the running GPU jobs leave them."""
        if self.share == 0 or self.cpus == 0:
            return
        busy = sum(end < math.inf for end in self.end[: self.gpus])
        rate = 1.0 - self.share * busy / self.cpus
        if rate != self.rate:
            for d in range(self.gpus, len(self.end)):
                self.end[d] = now + (self.end[d] - now) * self.rate / rate
            self.rate = rate

    def due(self, until):
        """Take off what ends by an instant, in order of its end."""
        done = [d for d, end in enumerate(self.end) if end <= until]
        return sorted(done, key=lambda d: (self.end[d], d))


def play(given, machine, policy, reading, history, decide=None):
    """Run the event loop: completions, arrivals, then decisions, instant by instant."""
    offset = time_offset(given.arrival)
    arrival, times = (given.arrival - offset).tolist(), given.times.tolist()
    span = float(np.nanmin(given.times))
    desk = Desk(machine, policy, reading, history, decide)
    views = list(given.job_views())
    n, coming, left = len(views), 0, len(views)
    trace = Trace(offset, [-1] * n, [math.nan] * n, [math.nan] * n, desk.moves)
    devices = Devices(machine, reading.gpu_cpu_share)
    while left:
        first = min(min(devices.end), arrival[coming] if coming < n else math.inf)
        limit, now = deadline_with_tolerance(first, span), first
        for d in devices.due(limit):
            job, now = desk.state.running[d], devices.end[d]
            if job is not None:
                trace.end[job.item.job] = now
                seconds = now - job.start if devices.share else times[job.item.job][d]
                desk.complete(now, d, seconds)
            devices.end[d], left = math.inf, left - 1
        batch = []
        while coming < n and arrival[coming] <= limit:
            batch.append(views[coming])
            now, coming = max(now, arrival[coming]), coming + 1
        desk.arrive(now, batch)
        devices.settle(now)
        for d, item in desk.dispatch(now):
            trace.device[item.job], trace.start[item.job] = d, now
            devices.begin(d, now, times[item.job][d])
        devices.settle(now)
    return trace
