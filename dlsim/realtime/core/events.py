"""The loops of real-time divisible loads: arrivals, tests, offers, dispatch.

In `run`, which knows every rule, `passing` is None where nobody passes another in line, `asked`
where only the run itself is wanted: what else there is is not compiled then. `run_opr` decides as
it does, bit for bit, who is served in line by the optimal partitioning rule, and little else: the
nodes of a task start and end together, and E(n) falls throughout (no set-up times), so that a
sorted list of releases (time, nodes) tells all that a plan leaves over. Who comes last is planned
from it, however many wait.

Source: paper M, section 5, MCDF(); line numbers cite it.
"""

import numpy as np

from dlsim.compiled import compiled, latest_finish, meets, same_instant
from dlsim.realtime.core import state
from dlsim.realtime.core.demand import earliest, has_failed, idle_at, longest, prepare, rank_at
from dlsim.realtime.core.line import admit_in_line, dispatch
from dlsim.realtime.core.partition import duration, fastest, fewest
from dlsim.realtime.core.plan import admit_anew

#: Up to so many nodes all are tried at once: a processor does that without a branch.
FEW = 32


@compiled(inline=True)
def batch_order(i, j, now, members, q, r, s, c):
    """Write the order in which the tasks i..j-1 of one instant are tested."""
    for k in range(i, j):
        state.fill_todo(k - i, k, 0, 0.0, 0.0, s)
        if r.by_policy:
            feasible = prepare(k, now, q[k].due, q, r, s, c) and q[k].low > 0
            rank = np.inf
            if feasible or not (r.dc or r.timed):
                rank = rank_at(k, q[k].low, now, idle_at(now, s), 1, q, r, c)
            s.todo[k - i].rank = rank
    if r.by_policy:
        state.sort_todo(0, j - i, s)
    for k in range(j - i):
        members[k] = s.todo[k].task


@compiled
def withdraw(x, given, first, last, asked, kept, s):
    """Note what the plan in force holds for x, and put the plan before it in force again."""
    for k in range(s.head[0].first, s.head[0].last):
        entry = s.plan[0, k]
        if entry.task == x:
            asked[x].deadline, asked[x].nodes = given, entry.nodes
            asked[x].start, asked[x].end = entry.start, entry.end
    state.move_plan(kept[first:last], s.plan[0, first:])
    s.head[0].first, s.head[0].last = first, last
    s.rest_head[0].last = -1  # what the plan leaves over is found again


@compiled
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
                elif possible:
                    ok, due = admit_anew(x, now, q, r, s, c)
                    if has_failed(r.own):
                        return answer
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
                            state.move_plan(s.plan[0, first:last], kept[first:])
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


@compiled
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
                length = state.push(waiting, length, q[k].key, k)
            i = stop
        x = waiting[0].nodes  # the second field breaks ties: here the table order
        length = state.pop(waiting, length)
        n = fastest(q[x].sigma, c.least, r.nodes) if r.best else r.nodes
        finish = now + duration(q[x].sigma, n, c.unit, c.fixed)
        if drop and not meets(finish, q[x].due, q[x].due - q[x].arrival):
            continue
        d[x].nodes, d[x].start, d[x].estimate, d[x].end, d[x].turn = n, now, finish, finish, turn
        turn += 1
        # by the formula for n > N* the last send may end after the task
        now = max(finish, now + q[x].sigma * r.cms + n * r.st) if r.shared else finish


@compiled(inline=True)
def occupy(first, stop, n, start, end, time, nodes):
    """Give the n nodes of a list that are released first to a task; return its new bounds."""
    total = 0
    while total < n:
        total += nodes[first]
        first += 1
    if total > n:
        first -= 1
        time[first], nodes[first] = start, total - n
    if stop == len(nodes):
        for k in range(first, stop):
            time[k - first], nodes[k - first] = time[k], nodes[k]
        first, stop = 0, stop - first
    k = stop
    while k > first and time[k - 1] > end:
        time[k], nodes[k] = time[k - 1], nodes[k - 1]
        k -= 1
    time[k], nodes[k] = end, n
    return first, stop + 1


@compiled(inline=True)
def unite(now, first, stop, time, nodes):
    """Make one group of the nodes of a list that are idle by now; return its first."""
    while stop - first > 1 and time[first + 1] <= now:
        first += 1
        nodes[first] += nodes[first - 1]
    return first


@compiled(inline=True)
def first_fit(now, floor, sigma, limit, span, first, time, nodes, unit, fixed):
    """Return the fewest nodes of a list that are in time, 0 if none, and when they start."""
    n, top, total, start = 1, len(unit) - 2, 0, floor
    while True:
        release = time[first]
        if release > start and not same_instant(release, start if total else now, span):
            start = release
        total += nodes[first]
        first += 1
        if not start + duration(sigma, top, unit, fixed) <= limit:
            return 0, start
        if top <= FEW:
            n = 1
            for k in range(1, top):
                n += not start + duration(sigma, k, unit, fixed) <= limit
        else:
            n = fewest(start, limit, sigma, n, top, unit, fixed)
        if n <= total:
            return n, start


@compiled
def run_opr(
    arrival, sigma, deadline, key, edf, cms, shared, span, unit, fixed, times, counts, plan,
    order, start, end, nodes,
):  # fmt: skip
    """Simulate all arrivals; return how many of `order` ran, in order of dispatch.

    Three lists of releases: what the plan in force leaves over; what the first `known` of
    `order` did; one in the making. Who gets before others is planned from the second, with
    those behind him, in `plan`.
    """
    size, top, known, first, last = len(arrival), len(unit) - 2, 0, 0, 0
    left, ran, made = times[0], times[1], times[2]
    left_nodes, ran_nodes, made_nodes = counts[0], counts[1], counts[2]
    left[0] = ran[0] = now = link = ran_link = -np.inf
    left_nodes[0] = ran_nodes[0] = top
    a, b, i, j = 0, 1, 0, 1  # the bounds of the first two
    for x in range(size):
        start[x], end[x], nodes[x] = np.nan, np.nan, 0
        if arrival[x] > now:
            now = arrival[x]
            while first < last:
                if not state.has_come(start[order[first]], now, span):
                    break
                first += 1
        due = now + deadline[x]
        limit = latest_finish(due, due - now)
        if not now + duration(sigma[x], top, unit, fixed) <= limit:
            continue
        place, rank = last, due if edf else key[x]
        while place > first:
            y = order[place - 1]
            if not state.goes_before(rank, x, arrival[y] + deadline[y] if edf else key[y], y, span):
                break
            place -= 1
        if place == last:
            if first == last:
                a = unite(now, a, b, left, left_nodes)
            floor = max(now, link) if shared else now
            n, t = first_fit(
                now, floor, sigma[x], limit, span, a, left, left_nodes, unit, fixed
            )  # fmt: skip
            if n > 0:
                start[x], end[x], nodes[x] = t, t + duration(sigma[x], n, unit, fixed), n
                a, b = occupy(a, b, n, t, end[x], left, left_nodes)
                link = max(link, t + sigma[x] * cms)
                order[last] = x
                last += 1
            continue
        while known < first:
            y = order[known]
            i, j = occupy(i, j, nodes[y], start[y], end[y], ran, ran_nodes)
            ran_link = max(ran_link, start[y] + sigma[y] * cms)
            known += 1
        i = unite(now, i, j, ran, ran_nodes)
        for k in range(i, j):
            made[k - i], made_nodes[k - i] = ran[k], ran_nodes[k]
        f, g, sent, p = 0, j - i, ran_link, first
        while p <= last:
            y = x if p == place else order[p - (p > place)]
            n, t = nodes[y], start[y]
            if p >= place:
                due = arrival[y] + deadline[y]
                limit, floor = latest_finish(due, due - arrival[y]), max(now, sent)
                n, t = first_fit(
                    now, floor if shared else now, sigma[y], limit, span, f, made, made_nodes,
                    unit, fixed,
                )  # fmt: skip
                if n == 0:
                    break
            one, until = plan[p], t + duration(sigma[y], n, unit, fixed)
            one.task, one.nodes, one.start, one.end = y, n, t, until
            f, g = occupy(f, g, n, t, until, made, made_nodes)
            sent = max(sent, t + sigma[y] * cms)
            p += 1
        if p <= last:
            continue
        last += 1
        for p in range(place, last):
            one = plan[p]
            order[p], y = one.task, one.task
            start[y], end[y], nodes[y] = one.start, one.end, one.nodes
        left, made, left_nodes, made_nodes = made, left, made_nodes, left_nodes
        a, b, link = f, g, sent
    return last
