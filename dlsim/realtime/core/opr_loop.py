"""A loop of its own for the plainest policies: in line, fewest nodes, OPR, no set-up times.

EDF-OPR-MN and FIFO-OPR-MN of paper I. The nodes of a task start and end together, and E(n) falls
throughout, so that a sorted list of releases (time, nodes) tells all that a plan leaves. It
decides as `dlsim.realtime.core.loop.run_admission` does, bit for bit, with neither offers nor
Table 1. On paper I's workload (10,000 tasks, N = 16) it runs at 0.8 to 1.1 of the speed of C++
with -O3, the general loop at 0.4 to 0.5: this loop alone holds the floor of one half.
"""

import numpy as np

from dlsim.compiled import compiled, deadline_with_tolerance, same_instant
from dlsim.realtime.core.formulas import n_min_of, time_on_nodes
from dlsim.realtime.core.state import is_due, precedes

#: Up to this many nodes, all numbers are tried: a processor does that without a branch.
MAX_NODES_TRIED = 32


@compiled(inline=True)
def give_nodes(first, stop, n, start, end, time, nodes):
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
def join_idle(now, first, stop, time, nodes):
    """Make one group of the nodes of a list that are idle by now; return its first."""
    while stop - first > 1 and time[first + 1] <= now:
        first += 1
        nodes[first] += nodes[first - 1]
    return first


@compiled(inline=True)
def first_fit(now, floor, sigma, limit, span, first, time, nodes, time_per_unit, setup_time):
    """Return the fewest nodes of a list that are in time, 0 if none, and when they start."""
    n, top, total, start = 1, len(time_per_unit) - 2, 0, floor
    while True:
        release = time[first]
        if release > start and not same_instant(release, start if total else now, span):
            start = release
        total += nodes[first]
        first += 1
        if not start + time_on_nodes(sigma, top, time_per_unit, setup_time) <= limit:
            return 0, start
        if top <= MAX_NODES_TRIED:
            n = 1
            for k in range(1, top):
                n += not start + time_on_nodes(sigma, k, time_per_unit, setup_time) <= limit
        else:
            n = n_min_of(start, limit, sigma, n, top, time_per_unit, setup_time)
        if n <= total:
            return n, start


@compiled
def run_opr(
    arrival,
    sigma,
    deadline,
    key,
    edf,
    cms,
    shared,
    span,
    time_per_unit,
    setup_time,
    times,
    counts,
    plan,
    order,
    start,
    end,
    nodes,
):
    """Simulate all arrivals; return how many of `order` ran, in order of dispatch.

    Three lists of releases: what the plan in force leaves over; what the first `known` of
    `order` did; one in the making. A newcomer that is served before others is planned
    with them from the second list, in `plan`.
    """
    size, top, known, first, last = len(arrival), len(time_per_unit) - 2, 0, 0, 0
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
                if not is_due(start[order[first]], now, span):
                    break
                first += 1
        due = now + deadline[x]
        limit = deadline_with_tolerance(due, due - now)
        if not now + time_on_nodes(sigma[x], top, time_per_unit, setup_time) <= limit:
            continue
        place, rank = last, due if edf else key[x]
        while place > first:
            y = order[place - 1]
            if not precedes(rank, x, arrival[y] + deadline[y] if edf else key[y], y, span):
                break
            place -= 1
        if place == last:
            if first == last:
                a = join_idle(now, a, b, left, left_nodes)
            floor = max(now, link) if shared else now
            n, t = first_fit(
                now, floor, sigma[x], limit, span, a, left, left_nodes, time_per_unit, setup_time
            )
            if n > 0:
                start[x], end[x], nodes[x] = (
                    t,
                    t + time_on_nodes(sigma[x], n, time_per_unit, setup_time),
                    n,
                )
                a, b = give_nodes(a, b, n, t, end[x], left, left_nodes)
                link = max(link, t + sigma[x] * cms)
                order[last] = x
                last += 1
            continue
        while known < first:
            y = order[known]
            i, j = give_nodes(i, j, nodes[y], start[y], end[y], ran, ran_nodes)
            ran_link = max(ran_link, start[y] + sigma[y] * cms)
            known += 1
        i = join_idle(now, i, j, ran, ran_nodes)
        for k in range(i, j):
            made[k - i], made_nodes[k - i] = ran[k], ran_nodes[k]
        f, g, sent, p = 0, j - i, ran_link, first
        while p <= last:
            y = x if p == place else order[p - (p > place)]
            n, t = nodes[y], start[y]
            if p >= place:
                due = arrival[y] + deadline[y]
                limit, floor = deadline_with_tolerance(due, due - arrival[y]), max(now, sent)
                n, t = first_fit(
                    now,
                    floor if shared else now,
                    sigma[y],
                    limit,
                    span,
                    f,
                    made,
                    made_nodes,
                    time_per_unit,
                    setup_time,
                )
                if n == 0:
                    break
            one, until = plan[p], t + time_on_nodes(sigma[y], n, time_per_unit, setup_time)
            one.task, one.nodes, one.start, one.end = y, n, t, until
            f, g = give_nodes(f, g, n, t, until, made, made_nodes)
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
