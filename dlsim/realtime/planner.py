"""The admission test where a task may pass a waiting one, or ranks change with time (paper M).

It rests on two facts, each checked against the plain twin in the tests:

* n_min never falls as time goes on, so a task's count is searched upwards from its last;
* planning again without a newcomer gives the plan in force again (paper M's default
  reading). So the plan in force is followed up to the first instant at which the newcomer
  enters it, and only what comes later is planned anew. Where a reading breaks this fact
  (cost derivative with order_when=once or without overtaking), all is planned anew.

Arguments have the same names everywhere: ``x`` newcomer, ``i`` task, ``n`` its node count and
``time`` its duration, ``t`` decision instant, ``link`` when the link becomes free, ``idle`` nodes,
``block`` next running block, ``size`` entries of the heap of planned completions, ``later``
smallest later deadline of the newcomer at which an answer on the way could change; ``q`` the
tasks (TASK), ``r`` the `Rules`, ``s`` the `State`, ``c`` the `Table` of E(n).

Source: paper M, section 5, MCDF() and Schedulability_Test(); line numbers cite them.
"""

import numpy as np

from dlsim.kernel import kernel, latest_finish, same_instant
from dlsim.realtime.demand import next_due, rank_of, sent_by, update_count
from dlsim.realtime.state import absorb, fill_todo, goes_before, next_instant, push, sort_todo


@kernel
def place(i, n, t, length, rank, slot, q, r, s):  # type: ignore[no-untyped-def]
    """Write one placement into the new plan; return when its last send ends (l.15-20).

    Returns
    -------
    float
        When the link is free of this task.
    """
    entry = s.plan[1, slot]
    entry.task, entry.nodes, entry.start, entry.end, entry.rank = i, n, t, t + length, rank
    entry.ready, entry.kind, entry.rounds, entry.marks = t, 0, 1, 0
    return sent_by(i, n, t, q, r)


@kernel(inline=True)
def follow(x, now, q, r, s, c):  # type: ignore[no-untyped-def]
    """Walk the plan in force to the first instant at which newcomer x enters it."""
    idle, block, cursor, stop = s.head[0].idle, s.head[0].block, s.head[0].first, s.head[0].last
    link, size, t, later = s.head[0].link, 0, now, np.inf
    n, time = q[x].low, q[x].length
    if idle == 0 or (r.shared and link > t and not same_instant(link, t, s.head[0].span)):
        t = max(t, next_instant(t, idle, link, block, size, r.shared, s))
    while True:
        idle, block, size = absorb(t, idle, block, size, s)
        n, time = update_count(x, t, n, time, q, r, c)
        later = min(later, next_due(x, t, n, time, q, r, c))
        if n == 0:
            return False, t, link, idle, block, size, cursor, later
        rank, turn, blocked = rank_of(x, n, q, r, c), True, False
        while True:
            here = cursor < stop and (
                s.plan[0, cursor].start <= t
                or same_instant(s.plan[0, cursor].start, t, s.head[0].span)
            )
            ahead = cursor < stop and goes_before(
                rank, x, s.plan[0, cursor].rank, s.plan[0, cursor].task, s.head[0].span
            )
            if turn and (ahead or not here):
                turn = False
                if ahead and r.edf:  # a tie that x wins by its index ends beyond the tolerance
                    due = s.plan[0, cursor].rank
                    later = min(later, due if due > rank else latest_finish(due, s.head[0].span))
                if not blocked and n <= idle:
                    return True, t, link, idle, block, size, cursor, later
            if not here:
                break
            nodes = s.plan[0, cursor].nodes
            idle -= nodes
            size = push(s.heap, size, s.plan[0, cursor].end, nodes)
            if r.shared:
                entry = s.plan[0, cursor]
                link = max(link, sent_by(entry.task, nodes, entry.start, q, r))
                blocked = link > t and not same_instant(link, t, s.head[0].span)
            cursor += 1
        t = next_instant(t, idle, link, block, size, r.shared, s)


@kernel(inline=True)
def replan(x, t, link, idle, block, size, todo, slot, later, q, r, s, c):  # type: ignore[no-untyped-def]
    """Place all of todo from instant t on, or find that a deadline breaks (l.6-26)."""
    waiting, unsorted, smallest, calm = True, True, 0, -np.inf
    while True:
        idle, block, size = absorb(t, idle, block, size, s)
        # where nothing fits and no count changes: on to the next instant
        if waiting or smallest <= idle or t >= calm:
            for k in range(todo):
                i = s.todo[k].task
                n, time = update_count(i, t, s.todo[k].nodes, s.todo[k].time, q, r, c)
                if i == x:
                    later = min(later, next_due(i, t, n, time, q, r, c))
                if n == 0:
                    return False, later
                unsorted = unsorted or (r.dc and not r.once and n != s.todo[k].nodes)
                s.todo[k].nodes, s.todo[k].time = n, time
            if unsorted:
                for k in range(todo):
                    s.todo[k].rank = rank_of(s.todo[k].task, s.todo[k].nodes, q, r, c)
                sort_todo(todo, s)
                unsorted = False
            kept, blocked, smallest, calm = 0, False, r.nodes + 1, np.inf
            for k in range(todo):
                i, n, time = s.todo[k].task, s.todo[k].nodes, s.todo[k].time
                if n <= idle and not blocked:
                    ends = place(i, n, t, time, s.todo[k].rank, slot, q, r, s)
                    slot, idle = slot + 1, idle - n
                    size = push(s.heap, size, t + time, n)
                    waiting = waiting and i != x
                    if r.shared:
                        link = max(link, ends)
                        blocked = link > t and not same_instant(link, t, s.head[0].span)
                    continue
                blocked = blocked or r.strict
                smallest, calm = min(smallest, n), min(calm, q[i].limit - time)
                s.todo[kept] = s.todo[k]
                kept += 1
            todo = kept
            if todo == 0:
                s.head[0].last = slot
                return True, later
        t = next_instant(t, idle, link, block, size, r.shared, s)


@kernel(inline=True)
def admit(x, now, q, r, s, c):  # type: ignore[no-untyped-def]
    """Test newcomer x at `now`; put the new plan in force if all deadlines hold."""
    first, stop = s.head[0].first, s.head[0].last
    if r.dc and (r.strict or r.once):  # planning again may change the plan in force
        t, link, idle, block, size, cursor, later = (
            now,
            s.head[0].link,
            s.head[0].idle,
            s.head[0].block,
            0,
            first,
            np.inf,
        )
        if idle == 0 or (r.shared and link > t and not same_instant(link, t, s.head[0].span)):
            t = max(t, next_instant(t, idle, link, block, size, r.shared, s))
    else:
        ok, t, link, idle, block, size, cursor, later = follow(x, now, q, r, s, c)
        if not ok:
            return False, later
    for k in range(first, cursor):
        s.plan[1, k - first] = s.plan[0, k]
    todo = stop - cursor + 1
    for k in range(todo):
        i = s.plan[0, cursor + k - 1].task if k else x
        fill_todo(k, i, q[i].low, q[i].length, 0.0, s)
    ok, later = replan(x, t, link, idle, block, size, todo, cursor - first, later, q, r, s, c)
    if not ok:
        return False, later
    for k in range(s.head[0].last):
        s.plan[0, k] = s.plan[1, k]
    s.head[0].first = 0
    return True, later
