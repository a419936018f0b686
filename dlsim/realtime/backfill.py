"""The admission test where whoever fits may pass: instants are walked instead of the line.

Arguments as in `dlsim.realtime.planner`.

Source: paper M, section 5, its test with paper I's partitions; all is planned anew.
"""

import numpy as np

from dlsim.kernel import kernel, latest_finish, same_instant
from dlsim.realtime.demand import has_fixed_count, rank_of
from dlsim.realtime.gather import next_optimum, reach, search
from dlsim.realtime.releases import (
    PIECES,
)
from dlsim.realtime.settle import settle
from dlsim.realtime.state import (
    CAPACITY,
    FRAGMENT,
    fill_todo,
    next_instant,
    pop,
    sort_todo,
)


@kernel
def backfill_count(i, t, idle, groups, asked, q, r, s, c):  # type: ignore[no-untyped-def]
    """Return the nodes a task would take if it started at t: 0 none yet, -1 never."""
    one, later = q[i], np.inf
    if r.method == CAPACITY and not r.frozen:
        head, run, closed, total, g, n = 0.0, 0, 0.0, 0, 0, 0
        part = r.cms / (r.cms + r.cps)
        while n == 0 and g < groups:
            before, total = total, total + s.free[g].nodes
            time = s.free[g].time
            if time < one.limit:
                n, head, run, closed = reach(
                    one.limit, head, run, closed, time, before, total, one.sigma, part, c.unit
                )
            g += 1
        if asked and g > 0:
            later = next_optimum(s.free, g, total, n, i, q, r, c)
        return (n if n > 0 else 0 if t < one.limit and idle < r.nodes else -1), later
    if has_fixed_count(i, q, r):
        n = one.low if t + one.length <= one.limit else 0
        later = np.inf if n > 0 else t + one.length
    else:
        n, later = search(i, t, 0, r.nodes, q, r, c)
    if n == 0:
        return -1, later
    if n > idle:
        return 0, later
    return (max(n, min(idle, one.top)) if r.method == FRAGMENT else n), later


@kernel
def next_rank(x, todo, q, r, s):  # type: ignore[no-untyped-def]
    """Return the smallest later deadline of x at which its place among todo could change."""
    later = np.inf
    if r.edf:
        for k in range(todo):
            due = q[s.todo[k].task].due
            if s.todo[k].task != x and not latest_finish(due, s.head[0].span) <= q[x].due:
                later = min(later, due if due > q[x].due else latest_finish(due, s.head[0].span))
    return later


@kernel
def absorb_groups(t, floor, groups, idle, block, size, s):  # type: ignore[no-untyped-def]
    """Move to `State.free` what is released by t."""
    while True:
        running = s.blocks[block].time if block < s.head[0].stop else np.inf
        planned = s.heap[0].time if size > 0 else np.inf
        time = min(running, planned)
        if time == np.inf or not (time <= t or same_instant(time, t, s.head[0].span)):
            return groups, idle, block, size
        if planned < running:
            nodes = s.heap[0].nodes
            size = pop(s.heap, size)
        else:
            nodes = s.blocks[block].nodes
            block += 1
        time, k = max(floor, time), groups
        while k > 0 and s.free[k - 1].time > time:  # a piece may end before it is absorbed
            s.free[k] = s.free[k - 1]
            k -= 1
        s.free[k].time, s.free[k].nodes = time, nodes
        groups, idle = groups + 1, idle + nodes


@kernel
def take(n, groups, s):  # type: ignore[no-untyped-def]
    """Move the n nodes released first from `State.free` to `State.pool`.

    Returns
    -------
    filled, groups : int
        Entries of the pool and of the free groups.
    """
    filled, used = 0, 0
    while n > 0:
        nodes, time = min(n, s.free[used].nodes), s.free[used].time
        if filled > 0 and same_instant(time, s.pool[filled - 1].time, s.head[0].span):
            s.pool[filled - 1].nodes += nodes
        else:
            s.pool[filled].time, s.pool[filled].nodes = time, nodes
            filled += 1
        s.free[used].nodes -= nodes
        n -= nodes
        used += s.free[used].nodes == 0
    for g in range(used, groups):
        s.free[g - used] = s.free[g]
    return filled, groups - used


@kernel
def admit_with_backfill(x, now, q, r, s, c):  # type: ignore[no-untyped-def]
    """Test newcomer x where whoever fits may pass; all is planned anew."""
    first, stop, link = s.head[0].first, s.head[0].last, s.head[0].link
    todo, slot, size, block = stop - first + 1, 0, 0, s.head[0].block
    for k in range(todo):
        i = s.plan[0, first + k - 1].task if k else x
        fill_todo(k, i, 0, 0.0, rank_of(i, 0, q, r, c), s)
    sort_todo(todo, s)
    later = next_rank(x, todo, q, r, s)
    groups, idle = 0, s.head[0].idle
    if idle > 0:
        s.free[0].time, s.free[0].nodes = now, idle
        groups = 1
    t = now
    if idle == 0 or (r.shared and link > t and not same_instant(link, t, s.head[0].span)):
        t = max(t, next_instant(t, idle, link, block, size, r.shared, s))
    while True:
        groups, idle, block, size = absorb_groups(t, now, groups, idle, block, size, s)
        kept, blocked = 0, False
        for k in range(todo):
            i = s.todo[k].task
            floor = max(now, link) if r.shared else now
            for g in range(groups):
                s.free[g].time = max(s.free[g].time, floor)
            asked = r.offers and i == x
            n, beyond = backfill_count(i, t, idle, groups, asked, q, r, s, c)
            if i == x:
                later = min(later, beyond)
            if n < 0:
                return False, later
            if n == 0 or blocked:
                s.todo[kept] = s.todo[k]
                kept += 1
                continue
            filled, groups = take(n, groups, s)
            idle -= n
            size, link = settle(i, n, filled, slot, size, link, s.todo[k].rank, 0, q, r, s, c)
            if s.plan[1, slot].kind == PIECES and r.shared and s.plan[1, slot].end > q[i].limit:
                return False, min(later, s.plan[1, slot].end) if i == x else later
            slot += 1
            blocked = r.shared and link > t and not same_instant(link, t, s.head[0].span)
            groups, idle, block, size = absorb_groups(t, now, groups, idle, block, size, s)
        todo = kept
        if todo == 0:
            for k in range(slot):
                s.plan[0, k] = s.plan[1, k]
            s.head[0].first, s.head[0].last = 0, slot
            return True, later
        t = next_instant(t, idle, link, block, size, r.shared, s)
