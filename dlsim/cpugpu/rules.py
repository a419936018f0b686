"""The five rules of paper C (section 5), each a pure function of what a scheduler sees.

A job leaves the main queue under one of these words:

- ``R2``: its application was never assigned to the class of the free device;
- ``R2*``: the same, with a free device of either class, which the paper does not cover;
- ``R3``: the free device is its faster one; ``R3*``: a device of either class is free;
- ``R4``: it finishes sooner on the slower, free device;
- ``R4q``: it does not, and joins the sub-queue of a busy device, from which rule 1 starts it;
- ``R0``: nothing is measured yet, though all was tried: the first free device, GPUs first;
- ``steal``: moved between sub-queues at the end (`Policy.steal`; the paper never does).
"""

import math
from collections.abc import Callable

from dlsim.cpugpu.history import History, Record
from dlsim.cpugpu.model import Decision, Item, Policy, Reading, State
from dlsim.kernel import latest_finish

#: Expected run time of a job on a class; NaN where nothing is known.
Expect = Callable[[Item, str], float]


def rule_1(state: State) -> int | None:
    """Rule 1: a free device takes the next job of its sub-queue."""
    for device, queue in enumerate(state.queues):
        if queue and state.running[device] is None:
            return device
    return None


def rule_2(state: State, policy: Policy, reading: Reading) -> Decision | None:
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


def _is_untried(record: Record, policy: Policy) -> bool:
    again = policy.re_explore > 0 and record.elsewhere >= policy.re_explore
    return record.assigned < policy.min_samples or again


def _is_trifle(state: State, item: Item, policy: Policy, reading: Reading) -> bool:
    """Tell whether the least known time is under `Policy.bound` of the known work waiting."""
    expect = learned(state, policy, reading)
    least = [min(_known(one, expect).values(), default=0.0) for one in state.main]
    return 0 < least[0] < policy.bound * math.fsum(least)


def learned(state: State, policy: Policy, reading: Reading) -> Expect:
    """Return what the history expects of a run: (job, class) to time, NaN where never measured."""
    history, estimate, k = state.history, policy.estimate, reading.deviations

    def expect(item: Item, cls: str) -> float:
        record = history.record(item.app, cls)
        time = record.expected(estimate)
        return time + k * record.std if k and record.times else time

    return expect


def declared(item: Item, cls: str) -> float:
    """Return the declared run time of a job on a class."""
    return item.declared.get(cls, math.nan)


def _known(item: Item, expect: Expect) -> dict[str, float]:
    times = {cls: expect(item, cls) for cls in ("gpu", "cpu") if cls in item.declared}
    return {cls: time for cls, time in times.items() if time == time}


def _guess(state: State, cls: str, policy: Policy, reading: Reading) -> float:
    """Return the time assumed for a run that was never measured (`unknown_remaining`)."""
    if reading.unknown_remaining == "avg":
        average = state.history.average(cls, policy.estimate)
        return 0.0 if math.isnan(average) else average
    return 0.0 if reading.unknown_remaining == "zero" else math.inf


def ready(state: State, device: int, expect: Expect, policy: Policy, reading: Reading) -> float:
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


def rule_3(
    state: State, item: Item, expect: Expect, policy: Policy, reading: Reading
) -> tuple[float, ...]:
    """Rule 3: predicted finish of a job on every device, sub-queues included."""
    times = _known(item, expect)
    return tuple(
        ready(state, d, expect, policy, reading) + times[cls] if cls in times else math.nan
        for d, cls in enumerate(state.classes)
    )


def rule_4(state: State, item: Item, expect: Expect, finishes: tuple[float, ...]) -> Decision:
    """Rule 4: to the slower free device if the job finishes sooner there, else to a sub-queue.

    A free device that is not slower is taken at once; a tie of finishes goes to the
    preferred class, then to the first device.
    """
    times, free = _known(item, expect), state.free()
    fastest = min(times.values())
    for device in free:
        if times.get(state.classes[device]) == fastest:
            several = len({state.classes[d] for d in free}) > 1
            return Decision(item.job, device, "R3*" if several else "R3", finishes)
    least = min(finish for finish in finishes if finish == finish)
    limit = latest_finish(least, least - state.now)
    tied = [d for d, finish in enumerate(finishes) if finish <= limit]
    device = min(tied, key=lambda d: (times[state.classes[d]], d))
    return Decision(item.job, device, "R4" if device in free else "R4q", finishes)


def rule_5(history: History, item: Item, cls: str, seconds: float) -> None:
    """Rule 5: the run time of a finished job enters the history: mean and deviation."""
    history.measure(item.app, cls, seconds)


def _untold(state: State, item: Item, policy: Policy, reading: Reading) -> Decision:
    """Place a job of which nothing is measured though every class at hand was tried."""
    fits = [d for d, cls in enumerate(state.classes) if cls in item.declared]
    for device in state.free():
        if device in fits:
            return Decision(item.job, device, "R0")
    expect = learned(state, policy, reading)
    device = min(fits, key=lambda d: (ready(state, d, expect, policy, reading), d))
    return Decision(item.job, device, "R0")


def _steal(state: State, policy: Policy, reading: Reading) -> Decision | None:
    """Move the last job of a sub-queue to a free device where it should finish sooner."""
    expect, found = learned(state, policy, reading), []
    for queue, there in zip(state.queues, range(len(state.queues)), strict=True):
        for device in state.free() if queue else ():
            item = queue[-1]
            here = state.now + expect(item, state.classes[device])
            end = ready(state, there, expect, policy, reading)
            sooner = latest_finish(here, end - state.now) < end
            if state.classes[device] in item.declared and sooner:
                found.append((here - end, device, item))
    if not found:
        return None
    _, device, item = min(found, key=lambda one: one[:2])
    return Decision(item.job, device, "steal", rule_3(state, item, expect, policy, reading))


def five(state: State, policy: Policy, reading: Reading) -> Decision | None:
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
