"""The admission tests where a task may pass a waiting one, or ranks change with time.

Paper M's test rests on two facts, each checked against the plain twin in the tests:

* n_min never falls as time goes on, so a task's count is searched upwards from its last;
* planning again without a newcomer gives the plan in force again (paper M's default
  reading). So the plan in force is followed up to the first instant at which the newcomer
  enters it, and only what comes later is planned anew. Where a reading breaks this fact
  (cost derivative with order_when=once or without overtaking), all is planned anew; so it is
  where whoever fits may pass on nodes as they are released (paper I's partitions), and where
  rules of one's own are asked.

Source: paper M, section 5, MCDF() and Schedulability_Test(); line numbers cite them.
"""

import numpy as np

from dlsim.compiled import compiled, latest_finish, same_instant
from dlsim.realtime.core import demand, state
from dlsim.realtime.core.line import all_at_release, fewest_carrying, next_optimum, search


@compiled(inline=True)
def follow(x, now, q, r, s, c):
    """Walk the plan in force to the first instant at which newcomer x enters it."""
    idle, block, cursor, stop = s.head[0].idle, s.head[0].block, s.head[0].first, s.head[0].last
    link, size, t, later = s.head[0].link, 0, now, np.inf
    n, time, span = q[x].low, q[x].length, s.head[0].span
    if idle == 0 or (r.shared and not state.has_come(link, t, span)):
        t = max(t, state.next_instant(t, idle, link, block, size, r.shared, s))
    if r.dc and (r.strict or r.once):  # planning again may change the plan in force
        return True, t, link, idle, block, size, cursor, later
    while True:
        idle, block, size = state.absorb(t, idle, block, size, s)
        turn, rank, blocked = r.offers or n <= idle, 0.0, False
        if turn:  # at fewer idle nodes x stays out, and its count never falls
            n, time = demand.update_count(x, t, n, time, q, r, c)
            later = min(later, demand.next_due(x, t, n, time, q, r, c))
            if n == 0:
                return False, t, link, idle, block, size, cursor, later
            rank = demand.rank_of(x, n, q, r, c)
        while True:
            entry = s.plan[0, cursor]
            here = cursor < stop and state.has_come(entry.start, t, span)
            ahead = (
                turn and cursor < stop and state.goes_before(rank, x, entry.rank, entry.task, span)
            )
            if turn and (ahead or not here):
                turn = False
                if ahead and r.edf:  # a tie that x wins by its index ends beyond the tolerance
                    due = entry.rank
                    later = min(later, due if due > rank else latest_finish(due, span))
                if not blocked and n <= idle:
                    return True, t, link, idle, block, size, cursor, later
            if not here:
                break
            idle -= entry.nodes
            size = state.push(s.heap, size, entry.end, entry.nodes)
            if r.shared:
                link = max(link, demand.sent_by(entry.task, entry.nodes, entry.start, q, r))
                blocked = not state.has_come(link, t, span)
            cursor += 1
        t = state.next_instant(t, idle, link, block, size, r.shared, s)


@compiled(inline=True)
def recount(k, x, t, later, q, r, s, c):
    """Return a waiting task's count and duration at t, and when the newcomer's would change."""
    i = s.todo[k].task
    n, time = demand.update_count(i, t, s.todo[k].nodes, s.todo[k].time, q, r, c)
    return n, time, min(later, demand.next_due(i, t, n, time, q, r, c)) if i == x else later


@compiled(inline=True)
def replan(x, t, link, idle, block, size, todo, slot, later, q, r, s, c):
    """Place all of todo from instant t on, or find that a deadline breaks (l.6-26)."""
    waiting, unsorted, smallest, calm, first = r.offers, True, 0, -np.inf, 0
    while True:
        idle, block, size = state.absorb(t, idle, block, size, s)
        # where nothing fits and no count changes: on to the next instant
        if waiting or smallest <= idle or t >= calm:
            if r.offers or (r.dc and (unsorted or not r.once)):
                for k in range(first, todo):
                    i = s.todo[k].task
                    n, time, later = recount(k, x, t, later, q, r, s, c)
                    if n == 0:
                        return False, later
                    unsorted = unsorted or n != s.todo[k].nodes
                    s.todo[k].nodes, s.todo[k].time = n, time
            if unsorted:
                for k in range(first, todo):
                    s.todo[k].rank = demand.rank_of(s.todo[k].task, s.todo[k].nodes, q, r, c)
                state.sort_todo(first, todo, s)
                unsorted = False
            kept, blocked, smallest, calm, k = first, False, r.nodes + 1, np.inf, first
            # who fails now fails later too: nobody is looked at once nothing is left
            while k < todo and (r.offers or (idle > 0 and not blocked)):
                i = s.todo[k].task
                n, time, later = recount(k, x, t, later, q, r, s, c)
                if n == 0:
                    return False, later
                k += 1
                if n <= idle and not blocked:  # l.15-20
                    one = s.plan[1, slot]
                    one.task, one.nodes, one.start, one.end = i, n, t, t + time
                    one.rank, one.ready = s.todo[k - 1].rank, t
                    one.kind, one.rounds, one.marks = 0, 1, 0
                    slot, idle = slot + 1, idle - n
                    size = state.push(s.heap, size, t + time, n)
                    waiting = waiting and i != x
                    if r.shared:
                        link = max(link, demand.sent_by(i, n, t, q, r))
                        blocked = not state.has_come(link, t, s.head[0].span)
                    continue
                blocked = blocked or r.strict
                smallest, calm = min(smallest, n), min(calm, q[i].limit - time)
                state.fill_todo(kept, i, n, time, s.todo[k - 1].rank, s)
                kept += 1
            if k < todo:
                smallest = 0
            placed = k - kept
            while placed > 0 and kept > first:  # who stays moves up to those not looked at
                kept -= 1
                stays = s.todo[kept]
                state.fill_todo(
                    kept + placed, stays.task, stays.nodes, stays.time, stays.rank, s
                )  # fmt: skip
            first += placed
            if first == todo:
                s.head[0].last = slot
                return True, later
        t = state.next_instant(t, idle, link, block, size, r.shared, s)


@compiled(inline=True)
def admit(x, now, q, r, s, c):
    """Test newcomer x at `now`; put the new plan in force if all deadlines hold."""
    ok, t, link, idle, block, size, cursor, later = follow(x, now, q, r, s, c)
    if not ok:
        return False, later
    todo = s.head[0].last - cursor + 1
    for k in range(todo):
        i = s.plan[0, cursor + k - 1].task if k else x
        state.fill_todo(k, i, q[i].low, q[i].length, 0.0, s)
    ok, later = replan(x, t, link, idle, block, size, todo, cursor, later, q, r, s, c)
    if not ok:
        return False, later
    state.move_plan(s.plan[1, cursor : s.head[0].last], s.plan[0, cursor:])
    return True, later


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
        return (n if n > 0 else r.nodes + 1 if t < one.limit and idle < r.nodes else -1), later
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
def order_at(t, idle, groups, todo, q, r, s, c):
    """Count and order all who wait as a rule of one's own has it at t; tell if nobody is late."""
    for k in range(todo):
        i = s.todo[k].task
        n, _ = count_at(i, t, idle, groups, todo, False, q, r, s, c)
        if n < 0:
            return False
        s.todo[k].rank = demand.rank_at(i, min(n, r.nodes), t, idle, todo, q, r, c)
    state.sort_todo(0, todo, s)
    return not demand.has_failed(r.own)


@compiled
def admit_anew(x, now, q, r, s, c):
    """Test newcomer x where whoever fits may pass, or by rules of one's own; plan all anew."""
    first, stop, link = s.head[0].first, s.head[0].last, s.head[0].link
    todo, slot, size, block = stop - first + 1, 0, 0, s.head[0].block
    for k in range(todo):
        i = s.plan[0, first + k - 1].task if k else x
        state.fill_todo(k, i, 0, 0.0, demand.rank_of(i, 0, q, r, c), s)
    state.sort_todo(0, todo, s)
    unsorted = r.timed
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
            if not order_at(t, idle, groups, todo, q, r, s, c):
                return False, later
            unsorted = not r.once
        kept, blocked = 0, False
        for k in range(todo):
            i = s.todo[k].task
            floor = max(now, link) if r.shared else now
            if r.mine and together:
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
