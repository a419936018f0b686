"""The five rules of paper C (section 5).

A job leaves the main queue under one of these words:

- ``R2``: its application was never assigned to the class of the free device;
- ``R2*``: the same, with a free device of either class, which the paper does not cover;
- ``R3``: the free device is its faster one; ``R3*``: a device of either class is free;
- ``R4``: it finishes sooner on the slower, free device;
- ``R4q``: it does not, and joins the sub-queue of a busy device, from which rule 1 starts it;
- ``R0``: nothing is measured yet, though all was tried: the first free device, GPUs first;
- ``steal``: moved between sub-queues at the end (`Policy.steal`; the paper never does).
"""

import numpy as np

from dlsim.cpugpu.core.known import expected, guess, is_measured
from dlsim.cpugpu.core.queues import first_free, least_known, versions_of  # fmt: skip
from dlsim.cpugpu.core.state import (
    CPU,
    FIVE,
    GPU,
    NOBODY,
    R0,
    R2,
    R2S,
    R3,
    R3S,
    R4,
    R4Q,
    STEAL,
)  # fmt: skip
from dlsim.kernel import kernel, latest_finish


@kernel(inline=True)
def choose(j, d, word, s):
    """Note a decision; True, as there is one."""
    head = s.head[0]
    head.job, head.on, head.word, head.line, head.foretold = j, d, word, NOBODY, False
    return True


@kernel(inline=True)
def ready(d, w, r, s):
    """Rule 3: when a device will have done what it runs and all of its sub-queue."""
    c, j, line = int(d >= w.gpus), s.devices[d].job, s.lines[d]
    instant, stand_in = s.head[0].now, guess(c, r, s) if r.rule == FIVE else 0.0
    if j >= 0:
        time = s.known[w.app[j], c].time if r.rule == FIVE else w.told[j, c]
        time = stand_in if np.isnan(time) else time
        instant = max(instant, s.jobs[j].start + time)
    if line.unknown > 0:
        instant += line.unknown * stand_in
    return instant + (line.high + line.low)


@kernel(inline=True)
def rule_3(j, gpu, cpu, w, r, s):
    """Rule 3: predict the finish of a job on every device from its time on either class."""
    for d in range(w.column.shape[0]):
        s.finishes[j, d] = ready(d, w, r, s) + (cpu if d >= w.gpus else gpu)


@kernel(inline=True)
def rule_4(j, gpu, cpu, w, r, s):
    """Rule 4: to the slower free device if the job finishes sooner there, else to a sub-queue.

    A free device that is not slower is taken at once; a tie of finishes goes to the preferred
    class, then to the first device.
    """
    rule_3(j, gpu, cpu, w, r, s)
    fastest = cpu if np.isnan(gpu) or cpu < gpu else gpu
    on_gpu, on_cpu = first_free(GPU, w, s), first_free(CPU, w, s)
    word = R3S if on_gpu >= 0 and on_cpu >= 0 else R3
    if on_gpu >= 0 and gpu == fastest:
        choose(j, on_gpu, word, s)
    elif on_cpu >= 0 and cpu == fastest:
        choose(j, on_cpu, word, s)
    else:
        least = np.inf
        for d in range(w.column.shape[0]):
            least = s.finishes[j, d] if s.finishes[j, d] < least else least
        limit, found, best = latest_finish(least, least - s.head[0].now), NOBODY, np.inf
        for d in range(w.column.shape[0]):
            time = cpu if d >= w.gpus else gpu
            if s.finishes[j, d] <= limit and (found < 0 or time < best):
                found, best = d, time
        free = s.devices[found].job < 0 and s.lines[found].count == 0
        choose(j, found, R4 if free else R4Q, s)
    s.head[0].foretold = True
    return True


@kernel(inline=True)
def _is_untried(a, c, r, s):
    known = s.known[a, c]
    return known.assigned < r.samples or (r.again > 0 and known.elsewhere >= r.again)


@kernel(inline=True)
def _is_trifle(j, w, r, s):
    """Tell whether the least known time is under `Rules.bound` of the known work waiting."""
    least, head = least_known(w.app[j], versions_of(j, w), s), s.head[0]
    return 0 < least < r.bound * (head.high + head.low)


@kernel(inline=True)
def rule_2(j, w, r, s):
    """Rule 2: a class that was never assigned this application gets it; -1 if there is none."""
    gpu, cpu = first_free(GPU, w, s), first_free(CPU, w, s)
    if gpu >= 0 and cpu >= 0 and w.has[j, GPU] and w.has[j, CPU] and r.best:
        return NOBODY
    found = NOBODY
    if cpu >= 0 and w.has[j, CPU] and _is_untried(w.app[j], CPU, r, s):
        found = cpu
    if gpu >= 0 and w.has[j, GPU] and _is_untried(w.app[j], GPU, r, s):
        found = gpu
    return NOBODY if found >= 0 and r.bound > 0 and _is_trifle(j, w, r, s) else found


@kernel(inline=True)
def _place_unmeasured(j, w, r, s):
    """Place a job of which nothing is measured though every class at hand was tried.

    No free device has a version: the first of those that are ready soonest.
    """
    for c in range(2):
        d = first_free(c, w, s)
        if d >= 0 and w.has[j, c]:
            return choose(j, d, R0, s)
    least = np.inf
    for d in range(w.column.shape[0]):
        if w.has[j, int(d >= w.gpus)]:
            least = min(least, ready(d, w, r, s))
    limit = latest_finish(least, least - s.head[0].now)
    d = 0
    while not (w.has[j, int(d >= w.gpus)] and ready(d, w, r, s) <= limit):
        d += 1
    return choose(j, d, R0, s)


@kernel(inline=True)
def _steal(w, r, s):
    """Move the last job of a sub-queue to a free device where it should finish sooner."""
    now, best = s.head[0].now, np.inf
    found, device, line = NOBODY, NOBODY, NOBODY
    for there in range(w.column.shape[0]):
        j = s.lines[there].tail
        if j < 0:
            continue
        end = ready(there, w, r, s)
        for c in range(2):
            d, here = first_free(c, w, s), now + expected(j, c, w, s)
            if d < 0 or not latest_finish(here, end - now) < end:
                continue
            if found < 0 or here - end < best or (here - end == best and d < device):
                found, device, line, best = j, d, there, here - end
    if found < 0:
        return False
    rule_3(found, expected(found, GPU, w, s), expected(found, CPU, w, s), w, r, s)
    choose(found, device, STEAL, s)
    s.head[0].line, s.head[0].foretold = line, True
    return True


@kernel(inline=True)
def five(w, r, s):
    """Decide the head of the main queue by the five rules; not while every device is busy."""
    j = s.lines[w.column.shape[0]].head
    gpu, cpu = first_free(GPU, w, s), first_free(CPU, w, s)
    if gpu < 0 and cpu < 0:
        return False
    if j < 0:
        return r.steal and _steal(w, r, s)
    d = rule_2(j, w, r, s)
    if d >= 0:
        return choose(j, d, R2S if gpu >= 0 and cpu >= 0 else R2, s)
    if not is_measured(j, w, s):
        return _place_unmeasured(j, w, r, s)
    return rule_4(j, expected(j, GPU, w, s), expected(j, CPU, w, s), w, r, s)
