"""The five rules of paper C (section 5) and the rules of its rivals, one function each.

A rule is a function of the `SchedulerState`, the policy and the reading; it returns the next
decision, or None if nothing can be decided now. `dlsim.cpugpu.model.POLICY_RULES` names these
functions; a user's own rule has the same form. Rule 1 (a device serves its sub-queue first) and
rule 5 (a finished run enters the history) hold under every policy: `dlsim.cpugpu.scheduler`. A job
leaves the main queue under one of these words:

- ``R2``: its application was never assigned to the class of the free device;
- ``R2*``: the same, with a free device of either class, which the paper does not cover;
- ``R3``: the free device is its faster one; ``R3*``: a device of either class is free;
- ``R4``: it finishes sooner on the slower, free device;
- ``R4q``: it does not, and joins the sub-queue of a busy device, from which rule 1 starts it;
- ``R0``: nothing is measured yet, though all was tried: the first free device, GPUs first;
- ``steal``: it moves between sub-queues at the end (`Policy.steal`; the paper never does).

The rivals are those that paper C names in sections 6 and 7, and those of the papers it takes
them from. RSC (with its neighbours RSA and RSC-strict) and ASJF are only named there: what
they do here is our reading.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dlsim.compiled import TOL, deadline_with_tolerance
from dlsim.cpugpu.model import CLASSES, OTHER_CLASS, JobView, Policy, Reading
from dlsim.cpugpu.queues import (
    ByPreferredClass,
    BySpeedUp,
    ByTime,
    ByVersions,
    FreeDevices,
    SchedulerState,
)


class Decision(NamedTuple):
    """A job that leaves the main queue, or moves between sub-queues.

    Attributes
    ----------
    job, device : int
        `JobView.job`; place in `SchedulerState.devices` of the device whose sub-queue it joins.
    rule : str
        Why: a word of this module, or the policy's own.
    predicted_finish : tuple of float
        Predicted finish on every device, NaN where none was predicted; empty where the
        policy predicts nothing.
    """

    job: int
    device: int
    rule: str
    predicted_finish: tuple[float, ...] = ()


#: A policy's decision: the next job to move, or None if nothing can be decided now.
Decide = Callable[[SchedulerState, Policy, Reading], Decision | None]


# --- what is expected of runs -------------------------------------------------------------------


def expected_times(
    state: SchedulerState, job: JobView, policy: Policy, reading: Reading
) -> dict[str, float]:
    """Return the expected time of a job by class, for the classes where one is known."""
    found = {}
    for cls in job.declared:
        time = state.history.expected(job.app, cls, policy.estimate, reading.deviations)
        if time == time:
            found[cls] = time
    return found


def unknown_time(state: SchedulerState, cls: str, policy: Policy, reading: Reading) -> float:
    """Return the assumed time of a run that was never measured (`Reading.unknown_remaining`)."""
    if reading.unknown_remaining != "avg":
        return math.inf if reading.unknown_remaining == "inf" else 0.0
    average = state.history.average(cls, policy.estimate)
    return average if average == average else 0.0


# --- the five rules -----------------------------------------------------------------------------


def rule_2(
    state: SchedulerState, job: JobView, free: FreeDevices, policy: Policy, reading: Reading
) -> int | None:
    """Rule 2: return a free device of a class that was never assigned this application.

    `Policy.min_samples` and `Policy.re_explore` make it try a class again.
    """
    if reading.both_free == "best" and len(job.declared) > 1 and None not in free.values():
        return None
    for cls, device in free.items():
        if device is None or cls not in job.declared:
            continue
        record = state.history.record(job.app, cls)
        is_due = 0 < policy.re_explore <= record.elsewhere
        if record.assigned < policy.min_samples or is_due:
            is_trifle = policy.bound > 0 and _is_trifle(state, job, policy, reading)
            return None if is_trifle else device
    return None


def _is_trifle(state: SchedulerState, job: JobView, policy: Policy, reading: Reading) -> bool:
    """Tell whether a job is a small part of the known work that waits (`Policy.bound`).

    A job that is exactly this part, up to rounding, is none.
    """

    def least_known(app: str, classes: tuple[str, ...]) -> float:
        expected, how = state.history.expected, (policy.estimate, reading.deviations)
        times = (expected(app, cls, *how) for cls in classes)
        return min((time for time in times if time == time), default=0.0)

    waiting = state.main.view(ByVersions).counts.items()
    work = math.fsum(count * least_known(app, classes) for (app, classes), count in waiting)
    return 0 < least_known(job.app, tuple(job.declared)) < policy.bound * work * (1 - TOL)


def rule_3(
    state: SchedulerState, times: dict[str, float], policy: Policy, reading: Reading
) -> tuple[float, ...]:
    """Rule 3: predict the finish of a job on every device, from its expected times by class.

    The device first ends its running job and its sub-queue, in their expected times.
    """
    now, expected, finishes = state.now, state.history.expected, []
    estimate, deviations = policy.estimate, reading.deviations
    for cls in CLASSES:
        time = times.get(cls, math.nan)
        for device in state.members[cls]:
            ready, running = now, state.running[device]
            if running is not None:
                left = expected(running.app, cls, estimate, deviations)
                if left != left:
                    left = unknown_time(state, cls, policy, reading)
                if state.started[device] + left > now:
                    ready = state.started[device] + left
            if state.queues[device]:
                ready = _end_of_sub_queue(state, device, ready, policy, reading)
            finishes.append(ready + time)
    return tuple(finishes)


def _end_of_sub_queue(
    state: SchedulerState, device: int, start: float, policy: Policy, reading: Reading
) -> float:
    """Return when the sub-queue of a device is expected to be done if it starts at an instant."""
    cls, expected = state.classes[device], state.history.expected
    estimate, deviations = policy.estimate, reading.deviations
    times = [expected(job.app, cls, estimate, deviations) for job in state.queues[device]]
    known_times = [time for time in times if time == time]
    unknown_jobs = len(times) - len(known_times)
    if unknown_jobs:
        start += unknown_jobs * unknown_time(state, cls, policy, reading)
    return start + math.fsum(known_times)


def declared_finishes(state: SchedulerState, times: dict[str, float]) -> tuple[float, ...]:
    """Predict the finish of a job on every device as in rule 3, but by declared times alone."""
    now, finishes = state.now, []
    for cls in CLASSES:
        time = times.get(cls, math.nan)
        for device in state.members[cls]:
            ready, running = now, state.running[device]
            if running is not None and state.started[device] + running.declared[cls] > now:
                ready = state.started[device] + running.declared[cls]
            finishes.append(ready + state.queues[device].declared_work + time)
    return tuple(finishes)


def rule_4(
    state: SchedulerState, free: FreeDevices, times: dict[str, float], finishes: tuple[float, ...]
) -> tuple[int, str]:
    """Rule 4: choose the slower free device if the job finishes sooner there, else a sub-queue.

    A free device of the faster class is chosen at once (logged as R3). A tie of finishes goes to
    the preferred class, then to the first device; where the times of both classes are equal, each
    is the faster one. Return the device and the word for the log.
    """
    fastest = min(times.values()) * (1 + TOL)
    for cls, device in free.items():
        if device is not None and times.get(cls, math.inf) <= fastest:
            return device, "R3" if None in free.values() else "R3*"
    earliest = min([finish for finish in finishes if finish == finish])
    limit = deadline_with_tolerance(earliest, earliest - state.now)
    tied = [device for device, finish in enumerate(finishes) if finish <= limit]
    chosen = tied[0]
    if len(tied) > 1:
        chosen = min(tied, key=lambda device: times[state.classes[device]] > fastest)
    return chosen, "R4" if state.running[chosen] is None else "R4q"


def history_rule(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
    """Decide the head of the main queue by the five rules, while a device is free."""
    if not state.main:
        return _steal(state, policy, reading) if policy.steal else None
    job, free = state.main.head, state.free_by_class()
    device = rule_2(state, job, free, policy, reading)
    if device is not None:
        return Decision(job.job, device, "R2" if None in free.values() else "R2*")
    times = expected_times(state, job, policy, reading)
    if not times:
        return _place_unmeasured(state, job, free, policy, reading)
    finishes = rule_3(state, times, policy, reading)
    device, word = rule_4(state, free, times, finishes)
    return Decision(job.job, device, word, finishes)


def _place_unmeasured(
    state: SchedulerState, job: JobView, free: FreeDevices, policy: Policy, reading: Reading
) -> Decision:
    """Place a job without a measured time although each of its classes was tried.

    It goes to the first free device that has a version, else to the first that is ready soonest.
    """
    for cls, device in free.items():
        if device is not None and cls in job.declared:
            return Decision(job.job, device, "R0")
    ready = rule_3(state, dict.fromkeys(CLASSES, 0.0), policy, reading)
    able = [d for d, cls in enumerate(state.classes) if cls in job.declared]
    least = min(ready[d] for d in able)
    limit = deadline_with_tolerance(least, least - state.now)
    return Decision(job.job, next(d for d in able if ready[d] <= limit), "R0")


class _Gain(NamedTuple):
    """The gain of moving the last job of a sub-queue to a free device."""

    later: float
    end: float
    job: JobView
    device: int


def _gains(state: SchedulerState, policy: Policy, reading: Reading) -> Iterator[_Gain]:
    """Yield the moves of a sub-queue's last job that should make it finish sooner.

    The end there may be infinite (`Reading.unknown_remaining`); then any end here is sooner.
    """
    ready = rule_3(state, dict.fromkeys(CLASSES, 0.0), policy, reading)
    for queue, end in zip(state.queues, ready, strict=True):
        if not queue:
            continue
        job = queue[-1]
        for cls, time in expected_times(state, job, policy, reading).items():
            device, here = state.first_free(cls), state.now + time
            if device is not None and deadline_with_tolerance(here, time) < end:
                yield _Gain(here - end, end, job, device)


def _steal(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
    """Move the last job of a sub-queue to a free device where it should finish sooner.

    The move with the largest gain is made; of equal gains (within the tolerance) the first device.
    All infinite gains are equal.
    """
    gains = list(_gains(state, policy, reading))
    if not gains:
        return None
    best = min(gains, key=lambda gain: gain.later)
    slack = 0.0
    if best.end < math.inf:
        slack = deadline_with_tolerance(best.end, best.end - state.now) - best.end
    as_good = [gain for gain in gains if gain.later <= best.later + slack]
    found = min(as_good, key=lambda gain: gain.device)
    times = expected_times(state, found.job, policy, reading)
    return Decision(found.job.job, found.device, "steal", rule_3(state, times, policy, reading))


# --- the rivals ---------------------------------------------------------------------------------


def minimum_completion_time(
    state: SchedulerState, policy: Policy, reading: Reading
) -> Decision | None:
    """MCT: assign every job, as it arrives, where it completes earliest.

    M. Maheswaran et al., HCW 1999.
    """
    if not state.main:
        return None
    job = state.main.head
    finishes = declared_finishes(state, job.declared)
    device, _ = rule_4(state, state.free_by_class(), job.declared, finishes)
    return Decision(job.job, device, "mct", finishes)


def first_come(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
    """FIFO: one first-come queue per class; a job waits for its class (`Policy.target`)."""
    for cls in CLASSES:
        device = state.first_free(cls)
        if device is None:
            continue
        queue = state.main
        if policy.target == "preferred":
            queue = state.main.view(ByPreferredClass).queues[cls]
        if queue and policy.target in ("preferred", cls):
            return Decision(queue.head.job, device, "fifo")
    return None


def head_of_line(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
    """TORQUE with one queue: no job passes its head, which waits for its class."""
    if not state.main:
        return None
    job = state.main.head
    device = state.first_free(job.preferred if policy.target == "preferred" else policy.target)
    return None if device is None else Decision(job.job, device, "fifo")


def round_robin(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
    """Blind round robin: the i-th job to device i mod n, or the next that has a version."""
    if not state.main:
        return None
    job, count = state.main.head, len(state.devices)
    turns = ((job.job + step) % count for step in range(count))
    device = next(d for d in turns if state.classes[d] in job.declared)
    return Decision(job.job, device, "turn")


def by_speed_up(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
    """RSC and its kin: best speed-up first, and an idle device may take from the tail.

    Our reading of "Relative Speedup based policy with Conservative assignment" (paper C,
    section 7): one queue per preferred class. A device whose own queue is empty looks at the
    job of least speed-up of the other queue and takes it if that is <= q/m, q jobs waiting
    there, itself included, m devices of that class.
    """
    queues = state.main.view(BySpeedUp).queues
    for cls in CLASSES:
        device, other = state.first_free(cls), OTHER_CLASS[cls]
        if device is None:
            continue
        if queues[cls]:
            *_, job = queues[cls][-1]
            return Decision(job.job, device, "own")
        if not queues[other] or policy.cross_class == "never":
            continue
        *_, job = queues[other][0]
        if cls in job.declared:
            most = len(state.main) * (1 + TOL)
            is_small = job.speed_up * len(state.members[other]) <= most
            if is_small or policy.cross_class == "always":
                return Decision(job.job, device, "taken")
    return None


def shortest_first(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
    """ASJF: shortest first, and an idle device takes what it would finish sooner.

    Our reading of "Adaptive Shortest Job First" (paper C, section 7): one queue per preferred
    class. A device whose own queue is empty scans the other one by the time here, shortest
    first, and takes the first job that finishes here strictly before its estimated finish
    there: (remaining work of the running jobs + all jobs ahead of it)/m + its own time there,
    m devices of that class.
    """
    waiting = state.main.view(ByTime)
    for cls in CLASSES:
        device, other = state.first_free(cls), OTHER_CLASS[cls]
        if device is None:
            continue
        if waiting.queues[cls]:
            *_, job = waiting.queues[cls][-1]
            return Decision(job.job, device, "own")
        if not waiting.elsewhere[cls]:
            continue
        running = _work_left(state, other)
        for *_, job in reversed(waiting.elsewhere[cls]):
            ahead = (running + waiting.work_before(job)) / len(state.members[other])
            if job.declared[cls] < (ahead + job.declared[other]) * (1 - TOL):
                return Decision(job.job, device, "taken")
    return None


def _work_left(state: SchedulerState, cls: str) -> float:
    """Return the declared work left of the jobs that run on a class."""
    left = 0.0
    for device in state.members[cls]:
        running = state.running[device]
        if running is not None:
            left += max(0.0, state.started[device] + running.declared[cls] - state.now)
    return left
