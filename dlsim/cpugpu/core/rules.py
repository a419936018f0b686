"""Who decides what: the five rules of paper C (section 5), their rivals, Hadoop's schedulers.

A job leaves the main queue under one of these words:

- ``R2``: its application was never assigned to the class of the free device;
- ``R2*``: the same, with a free device of either class, which the paper does not cover;
- ``R3``: the free device is its faster one; ``R3*``: a device of either class is free;
- ``R4``: it finishes sooner on the slower, free device;
- ``R4q``: it does not, and joins the sub-queue of a busy device, from which rule 1 starts it;
- ``R0``: nothing is measured yet, though all was tried: the first free device, GPUs first;
- ``steal``: moved between sub-queues at the end (`Policy.steal`; the paper never does).

The rivals are those that paper C names in sections 6 and 7, and those of the papers it takes
them from. RSC (with its neighbours RSA and RSC-strict) and ASJF are only named there: what
they do here is our reading. Fair and capacity: section 4 and Hadoop's documentation.
"""

import numpy as np

from dlsim.cpugpu.core import state
from dlsim.cpugpu.core.queues import expected, first_free, guess, least_known, preferred, versions
from dlsim.cpugpu.core.state import CPU, GPU, NOBODY
from dlsim.cpugpu.core.sums import first_from, last, sum_before
from dlsim.kernel import TOL, kernel, latest_finish


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
    instant, stand_in = s.head[0].now, guess(c, r, s) if r.rule == state.FIVE else 0.0
    if j >= 0:
        time = s.known[w.app[j], c].time if r.rule == state.FIVE else w.told[j, c]
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
    word = state.R3S if on_gpu >= 0 and on_cpu >= 0 else state.R3
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
        choose(j, found, state.R4 if free else state.R4Q, s)
    s.head[0].foretold = True
    return True


@kernel(inline=True)
def _is_untried(a, c, r, s):
    known = s.known[a, c]
    return known.assigned < r.samples or (r.again > 0 and known.elsewhere >= r.again)


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
    if found >= 0 and r.bound > 0:  # not for a trifle of the known work that waits
        least, head = least_known(w.app[j], versions(j, w), s), s.head[0]
        if 0 < least < r.bound * (head.high + head.low):
            return NOBODY
    return found


@kernel(inline=True)
def _place_unmeasured(j, w, r, s):
    """Place a job of which nothing is measured though every class at hand was tried.

    No free device has a version: the first of those that are ready soonest.
    """
    for c in range(2):
        d = first_free(c, w, s)
        if d >= 0 and w.has[j, c]:
            return choose(j, d, state.R0, s)
    least = np.inf
    for d in range(w.column.shape[0]):
        if w.has[j, int(d >= w.gpus)]:
            least = min(least, ready(d, w, r, s))
    limit = latest_finish(least, least - s.head[0].now)
    d = 0
    while not (w.has[j, int(d >= w.gpus)] and ready(d, w, r, s) <= limit):
        d += 1
    return choose(j, d, state.R0, s)


@kernel(inline=True)
def _steal(w, r, s):
    """Move the last job of a sub-queue to a free device where it should finish sooner.

    The most that is gained counts, up to the one tolerance, then the first device.
    """
    now, least, slack = s.head[0].now, np.inf, 0.0
    found, device, line = NOBODY, NOBODY, NOBODY
    for turn in range(2):
        for there in range(w.column.shape[0]):
            j = s.lines[there].tail
            if j < 0:
                continue
            end = ready(there, w, r, s)
            for c in range(2):
                d, here = first_free(c, w, s), now + expected(j, c, w, s)
                if d < 0 or not latest_finish(here, end - now) < end:
                    continue
                if turn == 0 and here - end < least:
                    least, slack = here - end, latest_finish(end, end - now) - end
                if turn == 1 and here - end <= least + slack and (found < 0 or d < device):
                    found, device, line = j, d, there
    if found < 0:
        return False
    rule_3(found, expected(found, GPU, w, s), expected(found, CPU, w, s), w, r, s)
    choose(found, device, state.STEAL, s)
    s.head[0].line, s.head[0].foretold = line, True
    return True


@kernel(inline=True)
def five(j, w, r, s):
    """Decide the head of the main queue by the five rules; not while every device is busy."""
    gpu, cpu = first_free(GPU, w, s), first_free(CPU, w, s)
    if gpu < 0 and cpu < 0:
        return False
    if j < 0:
        return r.steal and _steal(w, r, s)
    d = rule_2(j, w, r, s)
    if d >= 0:
        return choose(j, d, state.R2S if gpu >= 0 and cpu >= 0 else state.R2, s)
    on_gpu, on_cpu = expected(j, GPU, w, s), expected(j, CPU, w, s)
    if np.isnan(on_gpu) and np.isnan(on_cpu):
        return _place_unmeasured(j, w, r, s)
    return rule_4(j, on_gpu, on_cpu, w, r, s)


@kernel(inline=True)
def mct(j, w, r, s):
    """Every job, as it arrives, where it completes earliest (M. Maheswaran et al., HCW 1999)."""
    rule_4(j, w.told[j, GPU], w.told[j, CPU], w, r, s)
    s.head[0].word = state.BY_MCT
    return True


@kernel(inline=True)
def fifo(w, r, s):
    """One first-come queue per class; a job waits for the class it is meant for."""
    for c in range(2):
        own = r.target == state.PREFERRED
        d, j = first_free(c, w, s), s.lines[w.column.shape[0] + (c if own else 0)].head
        if d >= 0 and j >= 0 and (own or r.target == c):
            return choose(j, d, state.BY_FIFO, s)
    return False


@kernel(inline=True)
def strict(j, w, r, s):
    """TORQUE with one queue: nobody passes its head, which waits for its class."""
    d = first_free(preferred(j, w) if r.target == state.PREFERRED else r.target, w, s)
    return d >= 0 and choose(j, d, state.BY_FIFO, s)


@kernel(inline=True)
def round_robin(j, w, s):
    """Blind round robin: the i-th job to device i mod n, or the next that has a version."""
    n = w.column.shape[0]
    d = w.number[j] % n
    while not w.has[j, int(d >= w.gpus)]:
        d = (d + 1) % n
    return choose(j, d, state.BY_TURN, s)


@kernel(inline=True)
def speed_up(w, r, s):
    """RSC and its kin: best speed-up first, and an idle device may take from the tail.

    Our reading of "Relative Speedup based policy with Conservative assignment" (paper C,
    section 7): one queue per preferred class. A device whose own queue is empty looks at the
    job of least speed-up of the other queue and takes it if that is <= q/m, q jobs waiting
    there, itself included, m devices of that class.
    """
    for c in range(2):
        d, first = first_free(c, w, s), first_from(s.sets[c], 0)
        if d < 0:
            continue
        if first >= 0:
            return choose(w.order[0, first], d, state.OWN, s)
        rank = last(s.sets[1 - c])
        if rank < 0 or r.take == state.NEVER or not w.has[w.order[0, rank], c]:
            continue
        j = w.order[0, rank]
        m = w.gpus if c == CPU else w.column.shape[0] - w.gpus
        gain = max(w.told[j, GPU], w.told[j, CPU]) / min(w.told[j, GPU], w.told[j, CPU])
        if r.take == state.ALWAYS or gain * m <= s.lines[w.column.shape[0]].count * (1 + TOL):
            return choose(j, d, state.TAKEN, s)
    return False


@kernel(inline=True)
def shortest(w, r, s):
    """ASJF: shortest first, and an idle device takes what it would finish sooner.

    Our reading of "Adaptive Shortest Job First" (paper C, section 7): one queue per preferred
    class. A device whose own queue is empty scans the other one by the time here, shortest
    first, and takes the first job that finishes here strictly before its estimated finish
    there: (remaining work of the running jobs + all jobs ahead of it)/m + its own time there,
    m devices of that class.
    """
    for c in range(2):
        d, rank, o = first_free(c, w, s), first_from(s.sets[c], 0), 1 - c
        if d < 0:
            continue
        if rank >= 0:
            return choose(w.order[c, rank], d, state.OWN, s)
        rank = first_from(s.sets[2 + c], 0)
        if rank < 0:
            continue
        m, running = _work_left(o, w, s)
        while rank >= 0:
            j = w.order[c, rank]
            ahead = running + sum_before(s.tree[o], w.rank[o, j])
            if w.told[j, c] < (ahead / m + w.told[j, o]) * (1 - TOL):
                return choose(j, d, state.TAKEN, s)
            rank = first_from(s.sets[2 + c], rank + 1)
    return False


@kernel(inline=True)
def _work_left(c, w, s):
    """Return how many devices a class has, and the declared work left of what they run."""
    left = 0.0
    first, end = (w.gpus, w.column.shape[0]) if c == CPU else (0, w.gpus)
    for d in range(first, end):
        j = s.devices[d].job
        if j >= 0:
            left += max(0.0, s.jobs[j].start + w.told[j, c] - s.head[0].now)
    return end - first, left


@kernel(inline=True)
def shared(w, r, s):
    """Hadoop's fair and capacity: who has the fewest running per weight; the first of equals."""
    d, first = first_free(CPU, w, s), w.column.shape[0]
    found, least = NOBODY, np.inf
    for a in range(w.pool.shape[0]):
        if s.lines[first + a].head >= 0:
            part = s.busy[w.pool[a]] / w.weight[a]
            if found < 0 or part < least:
                found, least = a, part
    return d >= 0 and found >= 0 and choose(s.lines[first + found].head, d, state.BY_FIFO, s)


@kernel(inline=True)
def decide(w, r, s):
    """Write the next decision into the head; False if nothing can be decided now."""
    j = s.lines[w.column.shape[0]].head  # of the main queue, where there is just one
    if r.rule == state.FIVE:
        return five(j, w, r, s)
    if r.rule == state.MCT:
        return j >= 0 and mct(j, w, r, s)
    if r.rule == state.FIFO:
        return fifo(w, r, s)
    if r.rule == state.STRICT:
        return j >= 0 and strict(j, w, r, s)
    if r.rule == state.TURN:
        return j >= 0 and round_robin(j, w, s)
    if r.rule == state.SPEED_UP:
        return speed_up(w, r, s)
    if r.rule == state.SHORTEST:
        return shortest(w, r, s)
    return r.rule == state.SHARE and shared(w, r, s)
