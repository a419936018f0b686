"""Which nodes a task takes where those released first serve first: how many, and when.

Nodes count in groups of one release time (`State.pool`), so that the cost does not grow with N.
Arguments as in `dlsim.realtime.planner`; `known` is a count that must not be searched.

Source: paper I, sections 4.2 to 4.5, and its reference [6] as the authors' later simulator
has it: the fewest n with r_n + E(n) <= A + D.
"""

import numpy as np

from dlsim.kernel import kernel, same_instant
from dlsim.realtime.demand import has_fixed_count
from dlsim.realtime.partition import duration, fewest
from dlsim.realtime.releases import (
    fewest_in_rounds,
    optimum,
    reach_of,
)
from dlsim.realtime.state import (
    CAPACITY,
    FRAGMENT,
    SCAN,
    pop,
    push,
)


@kernel(inline=True)
def next_release(floor, idle, block, size, s):  # type: ignore[no-untyped-def]
    """Take the group of nodes that is released next off idle nodes, blocks or heap."""
    if idle > 0:
        return floor, idle, 0, block, size
    running = s.blocks[block].time if block < s.head[0].stop else np.inf
    if size > 0 and s.heap[0].time < running:
        time, nodes = s.heap[0].time, s.heap[0].nodes
        return max(time, floor), nodes, 0, block, pop(s.heap, size)
    if running == np.inf:
        return np.inf, 0, 0, block, size
    return max(running, floor), s.blocks[block].nodes, 0, block + 1, size


@kernel(inline=True)
def search(i, time, before, total, q, r, c):  # type: ignore[no-untyped-def]
    """Look for the fewest nodes in before+1..total, all released by `time`, that are in time."""
    one, later = q[i], np.inf
    if has_fixed_count(i, q, r):
        n = one.low if before < one.low <= total else 0
        if n > 0 and time + one.length > one.limit:
            return 0, time + one.length
        return n, later
    low, high = max(before + 1, one.low), total
    if r.method == SCAN:
        n, least = fewest_in_rounds(
            time, one.limit, one.sigma, before + 1, high, r.rounds, r.cms, r.cps, r.st, r.sc
        )
        return n, time + least
    high = min(high, one.top)
    if high <= before:
        return 0, later
    n = 0
    if low <= high and time + (c.fixed[high] + one.sigma * c.unit[high]) <= one.limit:
        n = fewest(time, one.limit, one.sigma, low, high, c.unit, c.fixed)
    fails = n - 1 if n > 0 else high
    if fails > before:
        later = time + duration(one.sigma, fails, c.unit, c.fixed)
    return n, later


@kernel
def reach(limit, head, run, closed, time, before, total, sigma, part, unit):  # type: ignore[no-untyped-def]
    """Add a group to nodes that are filled up to a limit; find where they carry the load.

    Parameters
    ----------
    limit : float
        Latest finish.
    head, run, closed : float, int, float
        Release and nodes of the run of sends in progress, data of the runs before it.
    time : float
        Release of the nodes before+1..total.
    before, total : int
        Nodes before the group and with it.
    sigma, part : float
        Data size, and Cms / (Cms + Cps).
    unit : ndarray
        Time per unit of data by number of nodes.

    Returns
    -------
    n : int
        Fewest nodes that carry sigma, 0 if none of these.
    head, run, closed
        With the whole group.
    """
    if run > 0 and time > head + (limit - head) * reach_of(run, part, unit):
        closed = closed + (limit - head) / unit[run]
        run = 0
    if run == 0:
        head = time
    count = total - before
    if not closed + (limit - head) / unit[run + count] >= sigma:
        return 0, head, run + count, closed
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if closed + (limit - head) / unit[run + middle] >= sigma:
            high = middle
        else:
            low = middle
    return before + high, head, run + high, closed


@kernel
def next_optimum(pool, groups, total, n, i, q, r, c):  # type: ignore[no-untyped-def]
    """Return the deadline at which one node less than n would do, or all of them where n = 0."""
    if n == 1:
        return np.inf
    last = pool[groups - 1].nodes
    if n > 0:
        pool[groups - 1].nodes = last - (total - n) - 1
    filled = groups - 1 if pool[groups - 1].nodes == 0 else groups
    end, _, _ = optimum(pool, filled, q[i].sigma, r.cms / (r.cms + r.cps), c.unit)
    pool[groups - 1].nodes = last
    return end


@kernel(inline=True)
def gather(i, known, floor, idle, block, size, asked, q, r, s, c):  # type: ignore[no-untyped-def]
    """Take the nodes of a task off those released first; find their number unless known."""
    n, groups, total, later, whole = known, 0, 0, np.inf, idle > 0
    head, run, closed, part = 0.0, 0, 0.0, r.cms / (r.cms + r.cps)
    one, found = q[i], False
    while not found:
        time, nodes, idle, block, size = next_release(floor, idle, block, size, s)
        if nodes == 0:
            break
        if groups > 0 and same_instant(time, s.pool[groups - 1].time, s.head[0].span):
            time = s.pool[groups - 1].time
            s.pool[groups - 1].nodes += nodes
            whole = False
        else:
            s.pool[groups].time, s.pool[groups].nodes = time, nodes
            groups += 1
        before, total = total, total + nodes
        if known > 0:
            found = total >= known
        elif r.method == CAPACITY and not r.frozen:
            if time < one.limit:
                n, head, run, closed = reach(
                    one.limit, head, run, closed, time, before, total, one.sigma, part, c.unit
                )
            elif not asked:
                break
            found = n > 0
        else:
            n, beyond = search(i, time, before, total, q, r, c)
            later, found = min(later, beyond), n > 0
            fixed = has_fixed_count(i, q, r)
            if not found and (total >= one.low if fixed else r.method != SCAN and total >= one.top):
                break
            if not found and not asked and not fixed and r.method != SCAN:
                if time + duration(one.sigma, one.top, c.unit, c.fixed) > one.limit:
                    break
    if not found:
        if asked and r.method == CAPACITY and not r.frozen:
            later = next_optimum(s.pool, groups, total, 0, i, q, r, c)
        return 0, groups, idle, block, size, later
    if r.method == FRAGMENT and known == 0:
        time = s.pool[groups - 1].time
        while True:
            another, nodes, idle, block, size = next_release(floor, idle, block, size, s)
            if nodes > 0 and same_instant(another, time, s.head[0].span):
                s.pool[groups - 1].nodes += nodes
                total, whole = total + nodes, False
                continue
            if nodes > 0:
                size = push(s.heap, size, another, nodes)
            break
        n = max(n, min(total, one.top))
    if asked and r.method == CAPACITY and not r.frozen:
        later = next_optimum(s.pool, groups, total, n, i, q, r, c)
    if total > n:
        if groups == 1 and whole:
            idle = total - n
        else:
            size = push(s.heap, size, s.pool[groups - 1].time, total - n)
        s.pool[groups - 1].nodes -= total - n
    return n, groups, idle, block, size, later
