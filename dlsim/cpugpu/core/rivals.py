"""What the five rules are compared with, and Hadoop's own schedulers.

Sources: the rivals that paper C names in sections 6 and 7, and those of the papers it takes
them from. RSC (with its neighbours RSA and RSC-strict) and ASJF are only named there: what
they do here is our reading. Fair and capacity: section 4 and Hadoop's documentation.
"""

import numpy as np

from dlsim.cpugpu.core.queues import first_free, preferred
from dlsim.cpugpu.core.rules import choose, five, rule_4
from dlsim.cpugpu.core.state import (
    ALWAYS,
    BY_FIFO,
    BY_MCT,
    BY_TURN,
    CPU,
    FIFO,
    FIVE,
    GPU,
    MCT,
    NEVER,
    NOBODY,
    OWN,
    PREFERRED,
    SHARE,
    SHORTEST,
    SPEED_UP,
    STRICT,
    TAKEN,
    TURN,
)  # fmt: skip
from dlsim.cpugpu.core.sums import first_from, last, sum_before
from dlsim.kernel import TOL, kernel


@kernel(inline=True)
def mct(w, r, s):
    """Every job, as it arrives, where it completes earliest (M. Maheswaran et al., HCW 1999)."""
    j = s.lines[w.column.shape[0]].head
    if j < 0:
        return False
    rule_4(j, w.told[j, GPU], w.told[j, CPU], w, r, s)
    s.head[0].word = BY_MCT
    return True


@kernel(inline=True)
def fifo(w, r, s):
    """One first-come queue per class; a job waits for the class it is meant for."""
    for c in range(2):
        own = r.target == PREFERRED
        d, j = first_free(c, w, s), s.lines[w.column.shape[0] + (c if own else 0)].head
        if d >= 0 and j >= 0 and (own or r.target == c):
            return choose(j, d, BY_FIFO, s)
    return False


@kernel(inline=True)
def strict(w, r, s):
    """TORQUE with one queue: nobody passes its head, which waits for its class."""
    j = s.lines[w.column.shape[0]].head
    if j < 0:
        return False
    d = first_free(preferred(j, w) if r.target == PREFERRED else r.target, w, s)
    return d >= 0 and choose(j, d, BY_FIFO, s)


@kernel(inline=True)
def round_robin(w, r, s):
    """Blind round robin: the i-th job to device i mod n, or the next that has a version."""
    j, n = s.lines[w.column.shape[0]].head, w.column.shape[0]
    if j < 0:
        return False
    d = w.number[j] % n
    while not w.has[j, int(d >= w.gpus)]:
        d = (d + 1) % n
    return choose(j, d, BY_TURN, s)


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
            return choose(w.order[0, first], d, OWN, s)
        rank = last(s.sets[1 - c])
        if rank < 0 or r.take == NEVER or not w.has[w.order[0, rank], c]:
            continue
        j = w.order[0, rank]
        m = w.gpus if c == CPU else w.column.shape[0] - w.gpus
        gain = max(w.told[j, GPU], w.told[j, CPU]) / min(w.told[j, GPU], w.told[j, CPU])
        if r.take == ALWAYS or gain * m <= s.lines[w.column.shape[0]].count * (1 + TOL):
            return choose(j, d, TAKEN, s)
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
            return choose(w.order[c, rank], d, OWN, s)
        rank = first_from(s.sets[2 + c], 0)
        if rank < 0:
            continue
        m, running = _work_left(o, w, s)
        while rank >= 0:
            j = w.order[c, rank]
            ahead = running + sum_before(s.tree[o], w.rank[o, j])
            if w.told[j, c] < (ahead / m + w.told[j, o]) * (1 - TOL):
                return choose(j, d, TAKEN, s)
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
    return d >= 0 and found >= 0 and choose(s.lines[first + found].head, d, BY_FIFO, s)


@kernel(inline=True)
def decide(w, r, s):
    """Write the next decision into the head; False if nothing can be decided now."""
    if r.rule == FIVE:
        return five(w, r, s)
    if r.rule == MCT:
        return mct(w, r, s)
    if r.rule == FIFO:
        return fifo(w, r, s)
    if r.rule == STRICT:
        return strict(w, r, s)
    if r.rule == TURN:
        return round_robin(w, r, s)
    if r.rule == SPEED_UP:
        return speed_up(w, r, s)
    if r.rule == SHORTEST:
        return shortest(w, r, s)
    return r.rule == SHARE and shared(w, r, s)
