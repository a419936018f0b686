"""The event loop of real-time divisible loads: arrivals, tests, offers, dispatch.

`passing` is None where nobody passes another in line, `asked` where only the run itself is wanted:
what else there is is not compiled then.

Source: paper M, section 5, MCDF(); line numbers cite it.
"""

import numpy as np

from dlsim.kernel import kernel, meets, same_instant
from dlsim.realtime.core.demand import earliest, has_failed, idle_at, longest, prepare, rank_at
from dlsim.realtime.core.line import admit_in_line, dispatch
from dlsim.realtime.core.partition import duration, fastest
from dlsim.realtime.core.plan import admit, admit_anew
from dlsim.realtime.core.state import fill_todo, move_plan, pop, push, sort_todo


@kernel(inline=True)
def batch_order(i, j, now, members, q, r, s, c):
    """Write the order in which the tasks i..j-1 of one instant are tested."""
    for k in range(i, j):
        fill_todo(k - i, k, 0, 0.0, 0.0, s)
        if r.by_policy:
            feasible = prepare(k, now, q[k].due, q, r, s, c) and q[k].low > 0
            rank = np.inf
            if feasible or not (r.dc or r.timed):
                rank = rank_at(k, q[k].low, now, idle_at(now, s), 1, q, r, c)
            s.todo[k - i].rank = rank
    if r.by_policy:
        sort_todo(0, j - i, s)
    for k in range(j - i):
        members[k] = s.todo[k].task


@kernel
def withdraw(x, given, first, last, asked, kept, s):
    """Note what the plan in force holds for x, and put the plan before it in force again."""
    for k in range(s.head[0].first, s.head[0].last):
        entry = s.plan[0, k]
        if entry.task == x:
            asked[x].deadline, asked[x].nodes = given, entry.nodes
            asked[x].start, asked[x].end = entry.start, entry.end
    move_plan(kept[first:last], s.plan[0, first:])
    s.head[0].first, s.head[0].last = first, last
    s.rest_head[0].last = -1  # what the plan leaves over is found again


@kernel
def run(passing, asked, kept, q, r, s, members, probe, deadline, admitted, d, c):
    """Simulate a policy with admission control over all arrivals, then drain (MCDF()).

    Returns the offer to `probe`, nan if there is none: the answer to a deadline changes only
    where some count n_min(t_k) changes or, in EDF order, at another task's deadline, and each
    test returns the next such deadline; so the first that is admitted is the smallest one.
    With `asked`, whoever is refused gets his offer there, and is not held to it; nobody whose
    number of nodes is below 0.
    """
    size, i, answer = len(q), 0, np.nan
    while True:
        now, j = q[i].arrival if i < size else np.inf, i + 1
        dispatch(now, i == size or not r.test_first, d, q, r, s, c)
        if i == size:
            return answer
        while j < size and q[j].arrival == now:
            j += 1
        batch_order(i, j, now, members, q, r, s, c)
        for k in range(j - i):
            x = members[k]
            given, ceiling, bargains = deadline[x], now + r.negotiate * deadline[x], x == probe
            first, last, asks = s.head[0].first, s.head[0].last, False
            if bargains:
                given, ceiling = earliest(x, now, q, r, c) - now, np.inf
            while True:
                possible, ok, due = prepare(x, now, now + given, q, r, s, c), False, np.inf
                if passing is None:  # a hopeless one too: who is before it is planned, and counted
                    ok, due = admit_in_line(x, now, q, r, s, c)
                elif r.in_line:
                    ok, due = admit_anew(x, now, q, r, s, c)
                    if has_failed(r.own):
                        return answer
                elif possible:
                    ok, due = admit(x, now, q, r, s, c)
                admitted[x] = ok and possible
                if not possible:
                    due = min(due, earliest(x, now, q, r, c))
                elif r.frozen and not r.all_nodes and q[x].wanted == 0 and q[x].low > 1:
                    due = min(due, now + longest(x, q[x].low - 1, q, r, c))
                if asked is not None:
                    if admitted[x] and asks:
                        withdraw(x, given, first, last, asked, kept, s)
                        admitted[x] = False
                        break
                if admitted[x]:
                    deadline[x] = given
                    break
                if not bargains and r.negotiate > 0:
                    due, bargains = earliest(x, now, q, r, c), True
                elif not due > now + given:
                    due = np.nextafter(now + given, np.inf)
                if not bargains or due == np.inf or not meets(due, ceiling, ceiling - now):
                    if asked is not None:
                        if not asks and asked[x].nodes == 0:
                            move_plan(s.plan[0, first:last], kept[first:])
                            given, ceiling = earliest(x, now, q, r, c) - now, np.inf
                            bargains = asks = True
                            continue
                    break
                given = due - now
                while now + given < due:  # so that arrival + deadline reproduces it
                    given = np.nextafter(given, np.inf)
            if x == probe:  # what it would get is known; nobody else matters
                answer, j = given if admitted[x] else np.nan, size
                break
            if r.commit:
                dispatch(now, True, d, q, r, s, c)
        i = j


@kernel
def run_all_admitted(q, r, waiting, drop, span, d, c):
    """Simulate all-nodes policies without admission control (FIFOANNA, EDFANNA).

    The cluster is a single server: whenever it is free, the first in rank among those
    that have arrived starts, late or not.
    """
    size = len(q)
    length, i, now, turn = 0, 0, -np.inf, 0
    while i < size or length > 0:
        if length == 0:
            now = max(now, q[i].arrival)
        while i < size:
            tie = same_instant(q[i].arrival, now, span)
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
        if drop and not meets(finish, q[x].due, q[x].due - q[x].arrival):
            continue
        d[x].nodes, d[x].start, d[x].estimate, d[x].end, d[x].turn = n, now, finish, finish, turn
        turn += 1
        # by the formula for n > N* the last send may end after the task
        now = max(finish, now + q[x].sigma * r.cms + n * r.st) if r.shared else finish
