"""The compiled admission test and event loop of real-time divisible loads.

One planner serves every policy with admission control. It rests on two facts, each checked
against the plain twin in the tests:

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

from dlsim.kernel import kernel, latest_finish, meets, same_instant
from dlsim.realtime.partition import cost_derivative, duration, fastest, fewest
from dlsim.realtime.state import (
    absorb,
    fill_todo,
    goes_before,
    next_instant,
    pop,
    push,
    sort_todo,
)


@kernel
def rank_of(i, n, q, r, c):  # type: ignore[no-untyped-def]
    """Return the rank of a task that would run on n nodes, smallest first.

    Returns
    -------
    float
        Minus DC, absolute deadline, or the static key.
    """
    if r.dc:
        return -cost_derivative(q[i].sigma, n, r.nodes, r.infinite_top, c.slope, c.rise)
    return q[i].due if r.edf else q[i].key


@kernel
def runs_on(i, n, q, r):  # type: ignore[no-untyped-def]
    """Return how many nodes receive a chunk of a task that reserves n.

    Returns
    -------
    int
        n; min(N, N*) for all-nodes policies under ``an_nodes="best"``.
    """
    return q[i].top if r.all_nodes and r.best else n


@kernel
def sent_by(i, n, t, q, r):  # type: ignore[no-untyped-def]
    """Return when the last send of a task ends, had it nothing to wait for.

    Returns
    -------
    float
        start + sigma Cms + n ST.
    """
    return t + q[i].sigma * r.cms + runs_on(i, n, q, r) * r.st


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
    return sent_by(i, n, t, q, r)


@kernel
def update_count(i, t, n, time, q, r, c):  # type: ignore[no-untyped-def]
    """Return a task's count and duration if it started at t; count 0 if none (l.8-10).

    Returns
    -------
    n : int
        n_min(t), or 0 where no count meets the deadline.
    time : float
        E(n).
    """
    if t + time <= q[i].limit:
        return n, time
    if r.all_nodes or r.frozen:
        return 0, time
    n = fewest(t, q[i].limit, q[i].sigma, n, q[i].top, c.unit, c.fixed)
    return n, duration(q[i].sigma, n, c.unit, c.fixed)


@kernel
def next_due(i, t, n, time, q, r, c):  # type: ignore[no-untyped-def]
    """Return the smallest later deadline at which the count at t would change.

    Returns
    -------
    float
        An absolute deadline, or inf.
    """
    if n == 0:
        if r.all_nodes or r.frozen:
            return t + time
        return t + duration(q[i].sigma, q[i].top, c.unit, c.fixed)
    if n == 1 or r.all_nodes or r.frozen:
        return np.inf
    return t + duration(q[i].sigma, n - 1, c.unit, c.fixed)


@kernel(inline=True)
def follow(x, now, q, r, s, c):  # type: ignore[no-untyped-def]
    """Walk the plan in force to the first instant at which newcomer x enters it.

    Returns
    -------
    ok : bool
        False if x can no longer meet its deadline.
    t, link : float
        Where planning goes on.
    idle, block, size : int
        Nodes idle there, next running block, size of the heap.
    cursor : int
        First entry of the plan in force that is planned anew.
    later : float
        Smallest later deadline of x that would change an answer on the way.
    """
    idle, block, cursor, stop = s.head[0].idle, s.head[0].block, s.head[0].first, s.head[0].last
    link, size, t, later = s.head[0].link, 0, now, np.inf
    n, time = q[x].low, q[x].length
    if idle == 0 or (r.shared and link > t):
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
                s.plan[0, cursor].start <= t or same_instant(s.plan[0, cursor].start, t)
            )
            ahead = cursor < stop and goes_before(
                rank, x, s.plan[0, cursor].rank, s.plan[0, cursor].task
            )
            if turn and (ahead or not here):
                turn = False
                if ahead and r.edf:  # a tie that x wins by its index ends beyond the tolerance
                    due = s.plan[0, cursor].rank
                    later = min(later, due if due > rank else latest_finish(due))
                head = ahead or cursor == stop
                if (r.strict and head) or (not r.strict and not blocked and n <= idle):
                    return True, t, link, idle, block, size, cursor, later
            if not here:
                break
            nodes = s.plan[0, cursor].nodes
            idle -= nodes
            size = push(s.heap, size, s.plan[0, cursor].end, nodes)
            if r.shared:
                entry = s.plan[0, cursor]
                link = max(link, sent_by(entry.task, nodes, entry.start, q, r))
                blocked = link > t and not same_instant(link, t)
            cursor += 1
        t = next_instant(t, idle, link, block, size, r.shared, s)


@kernel(inline=True)
def replan(x, t, link, idle, block, size, todo, slot, later, q, r, s, c):  # type: ignore[no-untyped-def]
    """Place all of todo from instant t on, or find that a deadline breaks (l.6-26).

    Returns
    -------
    ok : bool
        Whether every deadline holds; if so row 1 of the plan is complete.
    later : float
        As above, for every instant visited while x was waiting.
    """
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
                        blocked = link > t and not same_instant(link, t)
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
def replan_in_line(x, t, link, idle, block, size, todo, slot, later, q, r, s, c):  # type: ignore[no-untyped-def]
    """Place all of todo one after another in rank order: `replan` without overtaking.

    Only the head of the line can start, so only its count is looked at; the newcomer is
    the head when this is called. Static ranks only.

    Returns
    -------
    ok : bool
        Whether every deadline holds; if so row 1 of the plan is complete.
    later : float
        Smallest later deadline of x that would change an answer.
    """
    for k in range(todo):
        i, n, time = s.todo[k].task, s.todo[k].nodes, s.todo[k].time
        while True:
            idle, block, size = absorb(t, idle, block, size, s)
            n, time = update_count(i, t, n, time, q, r, c)
            if i == x:
                later = min(later, next_due(i, t, n, time, q, r, c))
            if n == 0:
                return False, later
            if n <= idle and not (r.shared and link > t and not same_instant(link, t)):
                break
            t = next_instant(t, idle, link, block, size, r.shared, s)
        link = max(link, place(i, n, t, time, s.todo[k].rank, slot, q, r, s))
        slot, idle = slot + 1, idle - n
        size = push(s.heap, size, t + time, n)
    s.head[0].last = slot
    return True, later


@kernel(inline=True)
def admit(x, now, q, r, s, c):  # type: ignore[no-untyped-def]
    """Test newcomer x at `now`; put the new plan in force if all deadlines hold.

    Returns
    -------
    ok : bool
        Whether x is admitted.
    later : float
        Smallest later deadline of x at which the answer could differ.
    """
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
        if idle == 0 or (r.shared and link > t):
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
    if r.strict and not r.dc:  # the newcomer leads what follows it in the plan
        for k in range(todo):
            s.todo[k].rank = rank_of(s.todo[k].task, 0, q, r, c)
        ok, later = replan_in_line(
            x, t, link, idle, block, size, todo, cursor - first, later, q, r, s, c
        )
    else:
        ok, later = replan(x, t, link, idle, block, size, todo, cursor - first, later, q, r, s, c)
    if not ok:
        return False, later
    for k in range(s.head[0].last):
        s.plan[0, k] = s.plan[1, k]
    s.head[0].first = 0
    return True, later


@kernel(inline=True)
def prepare(x, now, due, q, r, c):  # type: ignore[no-untyped-def]
    """Set a newcomer's deadline and its count at the instant of its test.

    Returns
    -------
    bool
        Whether some count meets the deadline if started at once.
    """
    q[x].due, q[x].limit = due, latest_finish(due)
    q[x].top = fastest(q[x].sigma, c.least, r.nodes)
    if r.all_nodes:
        q[x].low = r.nodes
        q[x].length = duration(q[x].sigma, q[x].top if r.best else r.nodes, c.unit, c.fixed)
        return meets(now + q[x].length, due)
    q[x].low = fewest(now, q[x].limit, q[x].sigma, 1, q[x].top, c.unit, c.fixed)
    q[x].length = duration(q[x].sigma, max(1, q[x].low), c.unit, c.fixed)
    return q[x].low > 0


@kernel(inline=True)
def decide(x, now, due, q, r, s, c):  # type: ignore[no-untyped-def]
    """Test newcomer x with a given deadline.

    Returns
    -------
    ok : bool
        Whether x is admitted; its plan is then in force.
    later : float
        Smallest later deadline at which the answer could differ.
    """
    if not prepare(x, now, due, q, r, c):
        if r.all_nodes:
            return False, now + q[x].length
        return False, now + duration(q[x].sigma, q[x].top, c.unit, c.fixed)
    ok, later = admit(x, now, q, r, s, c)
    if r.frozen and not r.all_nodes and q[x].low > 1:
        later = min(later, now + duration(q[x].sigma, q[x].low - 1, c.unit, c.fixed))
    return ok, later


@kernel
def earliest(x, now, q, r, c):  # type: ignore[no-untyped-def]
    """Return the smallest absolute deadline that a task could meet if started at once.

    Returns
    -------
    float
        ``now + E`` on the nodes the policy would use at most.
    """
    n = fastest(q[x].sigma, c.least, r.nodes)
    if r.all_nodes and not r.best:
        n = r.nodes
    return now + duration(q[x].sigma, n, c.unit, c.fixed)


@kernel(inline=True)
def dispatch(now, inclusive, q, r, s, nodes, start, end):  # type: ignore[no-untyped-def]
    """Start every planned task whose time has come; it cannot be moved any more (l.3-9)."""
    while s.head[0].first < s.head[0].last:
        k = s.head[0].first
        i, t, n = s.plan[0, k].task, s.plan[0, k].start, s.plan[0, k].nodes
        tie = same_instant(t, now)
        if not (tie and inclusive) and not (t < now and not tie):
            break
        s.head[0].idle, s.head[0].block, _ = absorb(t, s.head[0].idle, s.head[0].block, 0, s)
        s.head[0].idle -= n
        j = s.head[0].stop
        while j > s.head[0].block and s.blocks[j - 1].time > s.plan[0, k].end:
            s.blocks[j] = s.blocks[j - 1]
            j -= 1
        s.blocks[j].time, s.blocks[j].nodes = s.plan[0, k].end, n
        s.head[0].stop += 1
        s.head[0].link = max(s.head[0].link, sent_by(i, n, t, q, r))
        nodes[i], start[i], end[i] = runs_on(i, n, q, r), t, s.plan[0, k].end
        s.head[0].first += 1
    if now < np.inf:
        s.head[0].idle, s.head[0].block, _ = absorb(now, s.head[0].idle, s.head[0].block, 0, s)


@kernel(inline=True)
def batch_order(i, j, now, members, q, r, s, c):  # type: ignore[no-untyped-def]
    """Write the order in which the tasks i..j-1 of one instant are tested."""
    for k in range(i, j):
        fill_todo(k - i, k, 0, 0.0, 0.0, s)
        if r.by_policy:
            feasible = prepare(k, now, q[k].due, q, r, c)
            rank = np.inf if r.dc and not feasible else rank_of(k, q[k].low, q, r, c)
            s.todo[k - i].rank = rank
    if r.by_policy:
        sort_todo(j - i, s)
    for k in range(j - i):
        members[k] = s.todo[k].task


@kernel
def run(q, r, s, members, probe, deadline, admitted, nodes, start, end, c):  # type: ignore[no-untyped-def]
    """Simulate a policy with admission control over all arrivals, then drain (MCDF()).

    Negotiation: the answer to a deadline changes only where some count n_min(t_k) changes
    or, in EDF order, at another task's deadline, and each test returns the next such
    deadline; so the first that is admitted is the smallest one.

    Returns
    -------
    float
        The offer to `probe`, nan if there is none.
    """
    size, i, answer = len(q), 0, np.nan
    while i < size:
        now, j = q[i].arrival, i + 1
        while j < size and q[j].arrival == now:
            j += 1
        dispatch(now, not r.test_first, q, r, s, nodes, start, end)
        batch_order(i, j, now, members, q, r, s, c)
        for k in range(j - i):
            x = members[k]
            given, ceiling, bargains = deadline[x], now + r.negotiate * deadline[x], x == probe
            if bargains:
                given, ceiling = earliest(x, now, q, r, c) - now, np.inf
            while True:
                admitted[x], due = decide(x, now, now + given, q, r, s, c)
                if admitted[x]:
                    deadline[x] = given
                    break
                if not bargains and r.negotiate > 0:
                    due, bargains = earliest(x, now, q, r, c), True
                elif not due > now + given:
                    due = np.nextafter(now + given, np.inf)
                if not bargains or due == np.inf or not meets(due, ceiling):
                    break
                given = due - now
                while now + given < due:  # so that arrival + deadline reproduces it
                    given = np.nextafter(given, np.inf)
            if x == probe:  # what it would get is known; nobody else matters
                answer, j = given if admitted[x] else np.nan, size
                break
            if r.commit:
                dispatch(now, True, q, r, s, nodes, start, end)
        i = j
    dispatch(np.inf, True, q, r, s, nodes, start, end)
    return answer


@kernel
def run_all_admitted(q, r, waiting, drop, nodes, start, end, c):  # type: ignore[no-untyped-def]
    """Simulate all-nodes policies without admission control (FIFOANNA, EDFANNA).

    The cluster is a single server: whenever it is free, the first in rank among those
    that have arrived starts, late or not.
    """
    size = len(q)
    length, i, now = 0, 0, -np.inf
    while i < size or length > 0:
        if length == 0:
            now = max(now, q[i].arrival)
        while i < size:
            tie = same_instant(q[i].arrival, now)
            if not (tie and (length == 0 or r.test_first)) and not (q[i].arrival < now and not tie):
                break
            stop = i + 1
            while stop < size and q[stop].arrival == q[i].arrival:
                stop += 1
            for k in range(i, stop):
                length = push(waiting, length, q[k].key, k)
            i = stop
        x = waiting[0].nodes  # the second field breaks ties: here the table order
        length = pop(waiting, length)
        n = fastest(q[x].sigma, c.least, r.nodes) if r.best else r.nodes
        finish = now + duration(q[x].sigma, n, c.unit, c.fixed)
        if drop and not meets(finish, q[x].due):
            continue
        nodes[x], start[x], end[x] = n, now, finish
        # by the formula for n > N* the last send may end after the task
        now = max(finish, now + q[x].sigma * r.cms + n * r.st) if r.shared else finish


@kernel
def mark_missed(due, end, admitted, missed):  # type: ignore[no-untyped-def]
    """Mark the admitted tasks that did not finish by their deadline."""
    for i in range(len(due)):
        missed[i] = admitted[i] and not meets(end[i], due[i])
