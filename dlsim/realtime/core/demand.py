"""What one task asks for: its rank, how many nodes, for how long, how the load is laid out.

Source: paper M, section 5; paper I, sections 4.2 to 4.5.
"""

import numpy as np

from dlsim.compiled import call_at, compiled, latest_finish, same_instant
from dlsim.realtime.core import partition, state
from dlsim.realtime.core.partition import cost_derivative, duration, fastest, fewest

#: By how much the sum of shares of one's own may miss 1.
SUM = 1e-9
#: On fewer nodes a task is laid out node by node.
MANY = 64


@compiled
def rank_of(i, n, q, r, c):
    """Return the rank of a task that would run on n nodes, smallest first."""
    if r.dc:
        return -cost_derivative(q[i].sigma, n, r.nodes, r.infinite_top, c.slope, c.rise)
    return q[i].due if r.edf else q[i].key


@compiled
def has_failed(own):
    """Tell whether a rule of one's own has returned what it must not."""
    return own.fault[0] > 0


@compiled
def ask(own, kind, i, n, t, idle, waiting, q, r, c):
    """Return what an order (kind 1) or a rule for the number of nodes (2) of one's own says."""
    if not own.rules[kind - 1]:
        return 0.0
    if r.method == state.SCAN:
        least, _ = partition.fewest_in_rounds(
            t, q[i].limit, q[i].sigma, 1, r.nodes, r.rounds, r.cms, r.cps, r.st, r.sc
        )
    else:
        least = fewest(t, q[i].limit, q[i].sigma, 1, q[i].top, c.unit, c.fixed)
    costs = (float(r.nodes), r.cms, r.cps, r.st, r.sc)
    given = (int(i), int(n), float(t), int(least), int(idle), int(waiting), q, costs, c)
    found = call_at(own.rules[kind - 1], given)  # the types are those of `dlsim.realtime.own`
    good = found == found
    if kind == 2:
        good = 0 <= found <= r.nodes and found == np.floor(found)
        if good and r.part != state.BY_OWN and r.method != state.SCAN:
            found = min(found, q[i].top)
    if good:
        return found
    if own.fault[0] == 0:
        own.fault[0], own.fault[1], own.fault[2], own.fault[3], own.fault[4] = kind, i, t, n, found
    return 0.0


@compiled
def rank_at(i, n, t, idle, waiting, q, r, c):
    """Return the rank at t of a task that would run on n nodes from then on."""
    if r.timed:
        return ask(r.own, 1, i, n, t, idle, waiting, q, r, c)
    return rank_of(i, n, q, r, c)


@compiled
def fill_shares(own, i, sigma, release, n, costs, c, out, base):
    """Write the shares of a partition of one's own; none where a table only says so."""
    if not own.rules[2]:
        return
    given = (float(sigma), release, int(n), costs, c, out, int(base))
    total = call_at(own.rules[2], given)
    good = abs(total - 1) <= SUM
    if not good and own.fault[0] == 0:
        own.fault[0], own.fault[1], own.fault[3], own.fault[4] = 3, i, n, total
    for k in range(base, base + n):
        out[k, 0] = out[k, 0] / total if good else 1 / n


@compiled
def runs_on(i, n, q, r):
    """Return how many nodes receive a chunk of a task that reserves n."""
    return q[i].top if r.all_nodes and r.best else n


@compiled
def sent_by(i, n, t, q, r):
    """Return when the last send of a task ends, had it nothing to wait for."""
    return t + q[i].sigma * r.cms + runs_on(i, n, q, r) * r.st


@compiled
def update_count(i, t, n, time, q, r, c):
    """Return a task's count and duration if it started at t; count 0 if none (l.8-10)."""
    if t + time <= q[i].limit:
        return n, time
    if r.all_nodes or r.frozen:
        return 0, time
    n = fewest(t, q[i].limit, q[i].sigma, n, q[i].top, c.unit, c.fixed)
    return n, duration(q[i].sigma, n, c.unit, c.fixed)


@compiled
def next_due(i, t, n, time, q, r, c):
    """Return the smallest later deadline at which the count at t would change."""
    if n == 0:
        if r.all_nodes or r.frozen:
            return t + time
        return t + duration(q[i].sigma, q[i].top, c.unit, c.fixed)
    if n == 1 or r.all_nodes or r.frozen:
        return np.inf
    return t + duration(q[i].sigma, n - 1, c.unit, c.fixed)


@compiled
def has_fixed_count(i, q, r):
    """Tell whether a task's nodes are not searched at its start."""
    return r.all_nodes or r.frozen or q[i].wanted > 0


@compiled
def longest(i, n, q, r, c):
    """Return how long a task occupies n nodes that start together."""
    if r.method == state.SCAN:
        return partition.rounds_time(q[i].sigma, n, r.rounds, r.cms, r.cps, r.st, r.sc)[0]
    return duration(q[i].sigma, runs_on(i, n, q, r), c.unit, c.fixed)


@compiled
def fewest_own(i, most, q, r, s, c):
    """Return the fewest nodes of `State.release` that are in time by shares of one's own, or 0."""
    for n in range(1, most + 1):
        completion, _ = lay(i, partition.OWN, 1, n, 0.0, q, r, s, c)
        if completion <= q[i].limit or has_failed(r.own):
            return n
    return 0


@compiled
def idle_at(now, s):
    """Return how many nodes are idle at an instant, those counted that end by then."""
    idle, _, _ = state.absorb(now, s.head[0].idle, s.head[0].block, 0, s)
    return idle


@compiled
def counts_itself(r):
    """Tell whether the number of nodes follows from a rule or a partition of one's own."""
    return r.counts or (r.part == state.BY_OWN and not r.all_nodes)


@compiled(inline=True)
def prepare(x, now, due, q, r, s, c):
    """Set a newcomer's deadline and its count at the instant of its test."""
    one = q[x]
    one.due, one.limit = due, latest_finish(due, due - now)
    one.top = fastest(one.sigma, c.least, r.nodes)
    if counts_itself(r):
        one.low = 0
        if r.counts:
            one.low = int(ask(r.own, 2, x, 0, now, idle_at(now, s), 1, q, r, c))
        elif r.frozen or r.by_policy:
            s.release[:] = now
            one.low = fewest_own(x, r.nodes, q, r, s, c)
        return True
    if r.all_nodes or one.wanted > 0:
        one.low = r.nodes if r.all_nodes else one.wanted
        if r.part == state.BY_EXACT:  # without computing the first node has all of it
            one.low = one.top
        one.length = longest(x, one.low, q, r, c)
        return now + one.length <= one.limit
    if r.method == state.SCAN:
        one.low, _ = partition.fewest_in_rounds(
            now, one.limit, one.sigma, 1, r.nodes, r.rounds, r.cms, r.cps, r.st, r.sc
        )
    else:
        one.low = fewest(now, one.limit, one.sigma, 1, one.top, c.unit, c.fixed)
    one.length = longest(x, max(1, one.low), q, r, c)
    return one.low > 0


@compiled
def earliest(x, now, q, r, c):
    """Return the smallest absolute deadline that a task could meet if started at once."""
    if r.method == state.SCAN:
        _, least = partition.fewest_in_rounds(
            now, -np.inf, q[x].sigma, 1, r.nodes, r.rounds, r.cms, r.cps, r.st, r.sc
        )
        return now + least
    n = fastest(q[x].sigma, c.least, r.nodes)
    if r.all_nodes and not r.best:
        n = r.nodes
    elif q[x].wanted > 0:
        n = q[x].wanted
    return now + duration(q[x].sigma, n, c.unit, c.fixed)


@compiled
def fill_releases(groups, pool, release):
    """Write a pool node by node; return how many there are."""
    n = 0
    for g in range(groups):
        for k in range(n, n + pool[g].nodes):
            release[k] = pool[g].time
        n += pool[g].nodes
    return n


@compiled
def divide(i, n, groups, q, r, s, c):
    """Choose how a task is split over the nodes of the pool, and until when it lasts."""
    sigma, first, last = q[i].sigma, s.pool[0].time, s.pool[groups - 1].time
    if r.part <= state.BY_PIECES:  # OPR, EQUAL or PIECES, numbered alike
        start = first if r.part == state.BY_PIECES else last
        return r.part, 1, start, last + longest(i, n, q, r, c), n, groups
    if r.part == state.BY_OWN:
        return partition.OWN, 1, first, last, n, groups
    if r.part == state.BY_UMR or r.part == state.BY_UMR_IIT:
        time, rounds = partition.rounds_time(sigma, n, r.rounds, r.cms, r.cps, r.st, r.sc)
        if r.part == state.BY_UMR:
            return partition.ROUNDS, rounds, last, last + time, n, groups
        return partition.ROUNDS_EARLY, rounds, first, last + time, n, groups
    part = r.cms / (r.cms + r.cps)
    if r.part != state.BY_DLT and r.part != state.BY_I and r.part != state.BY_II:
        end, n, groups = partition.optimum(s.pool, groups, sigma, part, c.unit)
        return partition.OPTIMUM, 1, first, end, n, groups
    time = duration(sigma, n, c.unit, c.fixed)
    if groups > 1 and r.part != state.BY_DLT:
        each = sigma * (r.cms + r.cps) / n
        end = last + (sigma * (r.cms + r.cps) - partition.idle_sum(s.pool, groups)) / n
        if end > last and not same_instant(end, last, each):
            if r.part == state.BY_I:
                holds = partition.constraint_one(s.pool, groups, sigma * r.cms, False)
            else:
                holds = partition.constraint_two(s.pool, groups, end, part, False)
            if holds:
                return partition.EVEN, 1, first, end, n, groups
    if groups > 1:
        time = min(time, partition.remodelled_time(s.pool, groups, sigma, r.cms, r.cps, time))
    return partition.REMODEL, 1, first, last + time, n, groups


@compiled
def lay(i, kind, rounds, n, end, q, r, s, c):
    """Lay a task out on the nodes of `State.release` into `State.rows`."""
    costs = (r.cms, r.cps, r.st, r.sc)
    if kind == partition.OWN:
        given = (float(r.nodes), r.cms, r.cps, r.st, r.sc)
        fill_shares(r.own, i, q[i].sigma, s.release, n, given, c, s.rows, 0)
    return partition.spread(
        kind, s.release, n, q[i].sigma, rounds, end, costs, c.unit, c.lead, r.shared, s.rows, 0
    )


@compiled
def ends(i, kind, rounds, n, groups, end, own, q, r, s, c):
    """Return when a task on the nodes of the pool is computed, and when its last send ends.

    Where its nodes are its `own`, released for themselves, `State.own` says when; return in how
    many places. Few nodes are laid out one by one, in `State.rows`.
    """
    if n > MANY and (kind == partition.REMODEL or (kind == partition.OPTIMUM and not own)):
        return partition.ends_in_groups(
            kind, s.pool, groups, n, q[i].sigma, end, r.cms, r.cps, c.unit, own, s.head[0].span,
            s.own,
        )  # fmt: skip
    fill_releases(groups, s.pool, s.release)
    completion, sent = lay(i, kind, rounds, n, end, q, r, s, c)
    for k in range(n if own else 0):
        s.own[k].time, s.own[k].nodes = s.rows[(rounds - 1) * n + k, 3], 1
    return completion, sent, n


@compiled
def ends_together(kind, groups):
    """Tell whether a task is laid out as by the optimal partitioning rule."""
    return kind == partition.OPR or (groups == 1 and partition.REMODEL <= kind <= partition.OPTIMUM)


@compiled(inline=True)
def vacate(fresh, more, i, kind, rounds, n, groups, start, end, size, link, q, r, s, c):
    """Release the nodes of a task on the heap; return its size, the link, and a `fresh` end.

    Where nobody comes after him who takes `more` nodes, only a fresh end is found.
    """
    even, count = ends_together(kind, groups), 0
    own = kind == partition.PIECES or (r.finish and not even)
    late = kind == partition.ROUNDS_EARLY or (kind == partition.PIECES and r.shared)
    late = late or kind == partition.OWN
    if (more and (own or (r.shared and not even))) or (fresh and late):
        completion, sent, count = ends(i, kind, rounds, n, groups, end, own, q, r, s, c)
        if fresh and late:
            end = completion
    else:
        sent = sent_by(i, n, start, q, r)
    if not more:
        return size, link, end
    if r.shared:
        link = max(link, sent)
    if not own:
        return state.push(s.heap, size, end, n), link, end
    for k in range(count - 1, -1, -1):  # mostly ever later: a push costs least
        size = state.push(s.heap, size, s.own[k].time, s.own[k].nodes)
    return size, link, end


@compiled(inline=True)
def assign(more, i, n, groups, slot, size, link, rank, marks, q, r, s, c):
    """Split a task over the pool, write its placement, release its nodes on the heap."""
    if r.part == state.BY_OPR or (groups == 1 and state.BY_DLT <= r.part < state.BY_UMR):  # as OPR
        # not left to `divide`: a call with all that state costs 0.1 us
        kind = partition.REMODEL if r.part <= state.BY_II else partition.OPTIMUM
        kind = partition.OPR if r.part == state.BY_OPR else kind
        start, rounds, used, filled = s.pool[groups - 1].time, 1, n, groups
        end = start + duration(q[i].sigma, runs_on(i, n, q, r), c.unit, c.fixed)
    else:
        kind, rounds, start, end, used, filled = divide(i, n, groups, q, r, s, c)
    for g in range(filled, groups):
        size = state.push(s.heap, size, s.pool[g].time, s.pool[g].nodes)
    size, link, end = vacate(
        True, more, i, kind, rounds, used, filled, start, end, size, link, q, r, s, c
    )  # fmt: skip
    entry = s.plan[1, slot]
    entry.task, entry.nodes, entry.start, entry.end, entry.rank = i, used, start, end, rank
    entry.ready, entry.kind, entry.rounds = s.pool[filled - 1].time, kind, rounds
    entry.marks = marks
    return size, link


@compiled
def choose_nodes(start, n, early, span, free, chosen, release):
    """Find n nodes for a task: the lowest idle ones, then those that are released first."""
    found = 0
    for node in range(len(free)):
        if found < n and state.has_come(free[node], start, span):
            chosen[found], release[found] = node, start
            found += 1
    if found < n and not early:
        return False
    after, last = start, -1  # in order of (free, node)
    while found < n:
        best = -1
        for node in range(len(free)):
            time = free[node]
            if state.has_come(time, start, span):
                continue
            passed = time < after or (time == after and node <= last)
            if not passed and (best < 0 or time < free[best]):
                best = node
        if best < 0:
            return False
        after, last = free[best], best
        chosen[found], release[found] = best, free[best]
        found += 1
    return True


@compiled
def fill_chunks(
    mine, runs, first, times, costs, c, own, span, free, chosen, release, ints, out
):  # fmt: skip
    r"""Fill one row per chunk, task by task in order of dispatch; `mine` are rules of one's own."""
    shared, finish = own
    for task in range(len(runs)):
        n, kind, rounds = runs[task, 0], runs[task, 1], runs[task, 2]
        size, start, end = times[task, 0], times[task, 1], times[task, 2]
        early = kind != partition.OPR and kind != partition.EQUAL and kind != partition.ROUNDS
        if not choose_nodes(start, n, early, span, free, chosen, release):
            return task
        base = first[task]
        if kind == partition.OWN:
            fill_shares(mine, task, size, release, n, (float(len(free)), *costs), c, out, base)
        partition.spread(
            kind, release, n, size, rounds, end, costs, c.unit, c.lead, shared, out, base
        )
        for row in range(base, base + n * rounds):
            ints[row, 0], ints[row, 1] = task, chosen[(row - base) % n]
        for k in range(n):
            single = kind == partition.PIECES or (finish and kind != partition.OPR)
            free[chosen[k]] = out[base + (rounds - 1) * n + k, 3] if single else end
    return -1
