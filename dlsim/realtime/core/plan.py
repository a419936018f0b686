"""The admission tests where a task may pass a waiting one, or ranks change with time.

All tasks that wait are planned anew, from instant to instant at which nodes become free.

Source: paper M, section 5, MCDF() and Schedulability_Test(); line numbers cite them.
"""

import numpy as np

from dlsim.compiled import compiled, latest_finish, same_instant
from dlsim.realtime.core import demand, state
from dlsim.realtime.core.line import all_at_release, fewest_carrying, next_optimum, search


@compiled
def count_at(i, t, idle, groups, waiting, asked, q, r, s, c):
    """Return the nodes a task would take if it started at t: more than are idle if none yet.

    -1 where it never could.
    """
    one, later = q[i], np.inf
    if demand.counts_itself(r):
        n = one.low
        if r.counts and not r.frozen:
            n = int(demand.ask(r.own, 2, i, 0, t, idle, waiting, q, r, c))
        elif not r.frozen:
            demand.fill_releases(groups, s.free, s.release)
            n = demand.fewest_own(i, idle, q, r, s, c)
            if n == 0 and t < one.limit and idle < r.nodes:
                n = r.nodes + 1
        return (n if n > 0 else -1), later
    if r.part == state.BY_OWN:  # with all nodes
        return r.nodes, later
    if r.method == state.CAPACITY and not r.frozen:
        part = r.cms / (r.cms + r.cps)
        n, total, g = fewest_carrying(s.free, groups, one.limit, one.sigma, part, c.unit)
        if asked and g > 0:
            later = next_optimum(s.free, g, total, n, i, q, r, c)
        waits = idle < r.nodes and (t < one.limit or asked)
        return (n if n > 0 else r.nodes + 1 if waits else -1), later
    n, later = search(i, t, 0, r.nodes, asked, q, r, c)
    if r.method == state.FRAGMENT and 0 < n <= idle:
        n = max(n, min(idle, one.top))
    return (n if n > 0 else -1), later


@compiled
def next_rank(x, todo, q, r, s):
    """Return the smallest later deadline of x at which its place among todo could change."""
    later = np.inf
    if r.edf:
        for k in range(todo):
            due = q[s.todo[k].task].due
            if s.todo[k].task != x and not latest_finish(due, s.head[0].span) <= q[x].due:
                later = min(later, due if due > q[x].due else latest_finish(due, s.head[0].span))
    return later


@compiled
def absorb_groups(t, floor, groups, idle, block, size, s):
    """Move to `State.free` what is released by t."""
    while True:
        running = s.blocks[block].time if block < s.head[0].stop else np.inf
        planned = s.heap[0].time if size > 0 else np.inf
        time = min(running, planned)
        if time == np.inf or not state.has_come(time, t, s.head[0].span):
            return groups, idle, block, size
        if planned < running:
            nodes = s.heap[0].nodes
            size = state.pop(s.heap, size)
        else:
            nodes = s.blocks[block].nodes
            block += 1
        time, k = max(floor, time), groups
        while k > 0 and s.free[k - 1].time > time:  # a piece may end before it is absorbed
            s.free[k] = s.free[k - 1]
            k -= 1
        s.free[k].time, s.free[k].nodes = time, nodes
        groups, idle = groups + 1, idle + nodes


@compiled
def take(n, groups, s):
    """Move the n nodes released first from `State.free` to `State.pool`; count both."""
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


@compiled
def order_at(x, t, idle, groups, todo, q, r, s, c):
    """Order all tasks that wait by their ranks at t; tell whether all can still be in time.

    Return also the smallest later deadline of the newcomer x at which its number of nodes at t
    would change.
    """
    later = np.inf
    for k in range(todo):
        i = s.todo[k].task
        n, beyond = count_at(i, t, idle, groups, todo, r.offers and i == x, q, r, s, c)
        if i == x:
            later = beyond
        if n < 0:
            return False, later
        s.todo[k].rank = demand.rank_at(i, min(n, r.nodes), t, idle, todo, q, r, c)
    state.sort_todo(0, todo, s)
    return not demand.has_failed(r.own), later


@compiled
def admit_anew(x, now, q, r, s, c):
    """Test newcomer x: plan all tasks that wait anew; put the plan in force if all are in time."""
    first, stop, link = s.head[0].first, s.head[0].last, s.head[0].link
    todo, slot, size, block = stop - first + 1, 0, 0, s.head[0].block
    for k in range(todo):
        i = s.plan[0, first + k - 1].task if k else x
        state.fill_todo(k, i, 0, 0.0, demand.rank_of(i, 0, q, r, c), s)
    state.sort_todo(0, todo, s)
    unsorted = r.timed or r.dc
    together = r.part == state.BY_OPR or r.part == state.BY_EQUAL or r.part == state.BY_UMR
    later = next_rank(x, todo, q, r, s)
    groups, idle = 0, s.head[0].idle
    if idle > 0:
        s.free[0].time, s.free[0].nodes = now, idle
        groups = 1
    t = now
    if idle == 0 or (r.shared and not state.has_come(link, t, s.head[0].span)):
        t = max(t, state.next_instant(t, idle, link, block, size, r.shared, s))
    while True:
        groups, idle, block, size = absorb_groups(t, now, groups, idle, block, size, s)
        if unsorted:
            ok, beyond = order_at(x, t, idle, groups, todo, q, r, s, c)
            later = min(later, beyond)
            if not ok:
                return False, later
            unsorted = not r.once
        kept, blocked = 0, False
        for k in range(todo):
            i = s.todo[k].task
            floor = max(now, link) if r.shared else now
            if together:
                floor = max(floor, t)
            for g in range(groups):
                s.free[g].time = max(s.free[g].time, floor)
            asked = r.offers and i == x
            n, beyond = count_at(i, t, idle, groups, kept + todo - k, asked, q, r, s, c)
            if i == x:
                later = min(later, beyond)
            if n < 0:
                return False, later
            if n > idle or blocked:
                blocked = blocked or r.strict
                s.todo[kept] = s.todo[k]
                kept += 1
                continue
            filled, groups = take(n, groups, s)
            idle -= n
            size, link = demand.assign(
                True, i, n, filled, slot, size, link, s.todo[k].rank, 0, q, r, s, c
            )  # fmt: skip
            unsure = r.counts or r.part == state.BY_OWN or all_at_release(r)
            unsure = unsure or (r.part == state.BY_PIECES and r.shared)
            if (unsure and s.plan[1, slot].end > q[i].limit) or demand.has_failed(r.own):
                return False, min(later, s.plan[1, slot].end) if i == x else later
            slot += 1
            blocked = r.shared and not state.has_come(link, t, s.head[0].span)
            groups, idle, block, size = absorb_groups(t, now, groups, idle, block, size, s)
        todo = kept
        if todo == 0:
            state.move_plan(s.plan[1, :slot], s.plan[0, first:])
            s.head[0].last = first + slot
            return True, later
        t = state.next_instant(t, idle, link, block, size, r.shared, s)
