"""The admission test where tasks are served one after another by a static rank.

Paper I's policies, paper M's all-nodes policies, and any static order without overtaking.
A task takes the nodes that are released first; who follows finds the others no earlier, so
a test plans from the newcomer's place on and leaves what is before it. Nodes count in
groups of one release time (`State.pool`), so that the cost does not grow with N.

With ``commit="last"`` a waiting task may have begun on its first nodes; its releases move
with every test, and all is planned anew. With backfill the instants of paper M's test are
walked instead of the line.

Arguments as in `dlsim.realtime.planner`; `known` is a count that must not be searched.

Source: paper I, sections 4.2 to 4.5, and its reference [6] as the authors' later simulator
has it: the fewest n with r_n + E(n) <= A + D.
"""

import numpy as np

from dlsim.kernel import kernel, latest_finish, same_instant
from dlsim.realtime.demand import has_fixed_count, longest, rank_of, runs_on, sent_by
from dlsim.realtime.partition import duration, fewest
from dlsim.realtime.releases import (
    EQUAL,
    EVEN,
    OPR,
    OPTIMUM,
    PIECES,
    REMODEL,
    ROUNDS,
    ROUNDS_EARLY,
    constraint_one,
    constraint_two,
    fewest_in_rounds,
    idle_sum,
    optimum,
    reach_of,
    remodelled_time,
    rounds_time,
    spread,
)
from dlsim.realtime.state import (
    CAPACITY,
    FIRST,
    FRAGMENT,
    IDLE,
    NEGATIVE,
    SCAN,
    SECOND,
    SINGLE,
    absorb,
    fill_todo,
    goes_before,
    insert_block,
    next_instant,
    pop,
    push,
    record,
    sort_todo,
)

# Places in `PARTITIONS`.
_EQUAL, _PIECES, _DLT, _I, _II, _UMR, _UMR_EARLY = 1, 2, 3, 4, 5, 8, 9


@kernel(inline=True)
def next_release(floor, idle, block, size, s):  # type: ignore[no-untyped-def]
    """Take the group of nodes that is released next off idle nodes, blocks or heap.

    Returns
    -------
    time : float
        Its release, at least `floor`; inf where no node is left.
    nodes : int
        How many.
    idle, block, size : int
        What remains.
    """
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
    """Look for the fewest nodes in before+1..total, all released by `time`, that are in time.

    Returns
    -------
    n : int
        0 if none of these counts meets the deadline.
    later : float
        Smallest deadline at which a smaller count of these would meet it.
    """
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
    """Return the deadline at which one node less than n would do, or all of them where n = 0.

    Parameters
    ----------
    pool : recarray of (time, nodes)
        Release times of `total` nodes in `groups` entries, the first n among them.
    groups, total, n : int
        As above; the n-th node is in the last group.
    i, q, r, c
        As everywhere.

    Returns
    -------
    float
        inf where n = 1.
    """
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
    """Take the nodes of a task off those released first; find their number unless known.

    Returns
    -------
    n, groups : int
        Nodes, 0 where no number meets the deadline; entries of the pool.
    idle, block, size : int
        What remains.
    later : float
        Smallest later deadline at which the number would change, if `asked`.
    """
    n, groups, total, later, whole = known, 0, 0, np.inf, idle > 0
    head, run, closed, part = 0.0, 0, 0.0, r.cms / (r.cms + r.cps)
    one, found = q[i], False
    while not found:
        time, nodes, idle, block, size = next_release(floor, idle, block, size, s)
        if nodes == 0:
            break
        if groups > 0 and same_instant(time, s.pool[groups - 1].time):
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
            if nodes > 0 and same_instant(another, time):
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


@kernel
def has_later_release(time, idle, block, size, s):  # type: ignore[no-untyped-def]
    """Tell whether a node that is not taken is released after `time`.

    Returns
    -------
    bool
        False where all are idle by then.
    """
    if block < s.head[0].stop:
        latest = s.blocks[s.head[0].stop - 1].time
        if latest > time and not same_instant(latest, time):
            return True
    for k in range(size):
        if s.heap[k].time > time and not same_instant(s.heap[k].time, time):
            return True
    return False


@kernel
def marks_of(i, n, groups, block, size, q, r, s):  # type: ignore[no-untyped-def]
    """Note what the counters of paper I see in a pool (Table 1).

    Returns
    -------
    int
        Bits IDLE, FIRST, SECOND, NEGATIVE, SINGLE.
    """
    if n == 1 and not r.single:
        return 0
    if groups == 1 and not (r.every and has_later_release(s.pool[0].time, 0, block, size, s)):
        return 0
    w = q[i].sigma * (r.cms + r.cps)
    last = s.pool[groups - 1].time
    end = last + (w - idle_sum(s.pool, groups)) / n
    positive = end > last and not same_instant(end, last)
    first = constraint_one(s.pool, groups, q[i].sigma * r.cms, r.skip_ties)
    second = constraint_two(s.pool, groups, end, r.cms / (r.cms + r.cps), r.skip_ties)
    marks = IDLE
    if not positive:
        return marks | (NEGATIVE if first or second else 0) | single_before(groups, s)
    return marks | FIRST * first | SECOND * second | single_before(groups, s)


@kernel
def single_before(groups, s):  # type: ignore[no-untyped-def]
    """Return SINGLE if exactly one node of the pool is released before the last.

    Returns
    -------
    int
        SINGLE or 0.
    """
    return SINGLE if groups == 2 and s.pool[0].nodes == 1 else 0


@kernel
def fill_releases(groups, s):  # type: ignore[no-untyped-def]
    """Write a pool node by node."""
    k = 0
    for g in range(groups):
        for _ in range(s.pool[g].nodes):
            s.release[k] = s.pool[g].time
            k += 1


@kernel
def divide(i, n, groups, q, r, s, c):  # type: ignore[no-untyped-def]
    """Choose how a task is split over the nodes of the pool, and until when it lasts.

    Returns
    -------
    kind, rounds : int
        Index into `KINDS`; rounds.
    start, end : float
        s_1 and the estimated completion.
    n, groups : int
        Nodes that receive data, and entries of the pool that they fill.
    """
    sigma, first, last = q[i].sigma, s.pool[0].time, s.pool[groups - 1].time
    if r.part == 0:
        return OPR, 1, last, last + longest(i, n, q, r, c), n, groups
    if r.part == _EQUAL:
        return EQUAL, 1, last, last + longest(i, n, q, r, c), n, groups
    if r.part == _PIECES:
        return PIECES, 1, first, last + longest(i, n, q, r, c), n, groups
    if r.part == _UMR or r.part == _UMR_EARLY:
        time, rounds = rounds_time(sigma, n, r.rounds, r.cms, r.cps, r.st, r.sc)
        kind = ROUNDS if r.part == _UMR else ROUNDS_EARLY
        return kind, rounds, (last if r.part == _UMR else first), last + time, n, groups
    part = r.cms / (r.cms + r.cps)
    if r.part != _DLT and r.part != _I and r.part != _II:
        end, n, groups = optimum(s.pool, groups, sigma, part, c.unit)
        return OPTIMUM, 1, first, end, n, groups
    time = duration(sigma, n, c.unit, c.fixed)
    if groups > 1 and r.part != _DLT:
        end = last + (sigma * (r.cms + r.cps) - idle_sum(s.pool, groups)) / n
        if end > last and not same_instant(end, last):
            if r.part == _I:
                holds = constraint_one(s.pool, groups, sigma * r.cms, False)
            else:
                holds = constraint_two(s.pool, groups, end, part, False)
            if holds:
                return EVEN, 1, first, end, n, groups
    if groups > 1:
        time = min(time, remodelled_time(s.pool, groups, sigma, r.cms, r.cps, time))
    return REMODEL, 1, first, last + time, n, groups


@kernel
def lay(i, kind, rounds, n, end, q, r, s, c):  # type: ignore[no-untyped-def]
    """Lay a task out on the nodes of `State.release` into `State.rows`.

    Returns
    -------
    completion, link : float
        Finish of the last node and end of the last send.
    """
    costs = (r.cms, r.cps, r.st, r.sc)
    return spread(
        kind, s.release, n, q[i].sigma, rounds, end, costs, c.unit, c.lead, r.shared, s.rows, 0
    )


@kernel
def ends_together(kind, groups):  # type: ignore[no-untyped-def]
    """Tell whether a task is laid out as by the optimal partitioning rule.

    Parameters
    ----------
    kind : int
        What it is split by.
    groups : int
        Different release times of its nodes.

    Returns
    -------
    bool
        Its nodes then all finish at the planned completion.
    """
    return kind == OPR or (groups == 1 and REMODEL <= kind <= OPTIMUM)


@kernel(inline=True)
def settle(i, n, groups, slot, size, link, rank, marks, q, r, s, c):  # type: ignore[no-untyped-def]
    """Split a task over the pool, write its placement, release its nodes on the heap.

    Returns
    -------
    size : int
        Entries of the heap.
    link : float
        When the link is free of this task.
    """
    if r.part == 0:  # not left to `divide`: a call with all that state costs 0.1 us
        start = s.pool[groups - 1].time
        kind, rounds, used, filled = OPR, 1, n, groups
        end = start + duration(q[i].sigma, runs_on(i, n, q, r), c.unit, c.fixed)
    elif groups == 1 and _DLT <= r.part < _UMR:  # released together: as OPR
        start = s.pool[0].time
        kind, rounds, used, filled = (REMODEL if r.part <= _II else OPTIMUM), 1, n, groups
        end = start + duration(q[i].sigma, n, c.unit, c.fixed)
    else:
        kind, rounds, start, end, used, filled = divide(i, n, groups, q, r, s, c)
    for g in range(filled, groups):
        size = push(s.heap, size, s.pool[g].time, s.pool[g].nodes)
    even = ends_together(kind, filled)
    own = kind == PIECES or (r.finish and not even)
    if own or kind == ROUNDS_EARLY or (r.shared and not even):
        fill_releases(filled, s)
        completion, sent = lay(i, kind, rounds, used, end, q, r, s, c)
        if kind == ROUNDS_EARLY or (kind == PIECES and r.shared):
            end = completion
    else:
        sent = sent_by(i, used, start, q, r)
    if r.shared:
        link = max(link, sent)
    entry = s.plan[1, slot]
    entry.task, entry.nodes, entry.start, entry.end, entry.rank = i, used, start, end, rank
    entry.ready, entry.kind, entry.rounds = s.pool[filled - 1].time, kind, rounds
    entry.marks = marks
    if own:
        for k in range(used):
            size = push(s.heap, size, s.rows[(rounds - 1) * used + k, 3], 1)
    else:
        size = push(s.heap, size, end, used)
    return size, link


@kernel
def tally(rule, marks, s):  # type: ignore[no-untyped-def]
    """Count what was marked, by one counting rule (a row of `COUNT_RULES`)."""
    if marks > 0:
        s.counts[rule, 0] += 1
        s.counts[rule, 1] += (marks & (SINGLE if rule == 4 else FIRST)) > 0
        s.counts[rule, 2] += (marks & SECOND) > 0
        s.counts[rule, 3] += (marks & NEGATIVE) > 0


@kernel(inline=True)
def admit_in_line(x, now, q, r, s, c):  # type: ignore[no-untyped-def]
    """Test newcomer x at `now`; put the new plan in force if all deadlines hold.

    Returns
    -------
    ok : bool
        Whether x is admitted.
    later : float
        Smallest later deadline of x at which the answer could differ.
    """
    pos, stop, link = s.head[0].first, s.head[0].last, s.head[0].link
    idle, block, size, slot = s.head[0].idle, s.head[0].block, 0, 0
    base, rank, waits, seen, later = pos, rank_of(x, 0, q, r, c), True, 0, np.inf
    while waits or pos < stop:
        i, key, known, marks = x, rank, 0, 0
        if not (
            waits
            and (pos == stop or goes_before(rank, x, s.plan[0, pos].rank, s.plan[0, pos].task))
        ):
            entry = s.plan[0, pos]
            i, key = entry.task, entry.rank
            if waits and not r.last:
                known, marks = entry.nodes, entry.marks
            pos += 1
        elif pos < stop and r.edf:  # a tie that x wins by its index ends beyond the tolerance
            due = s.plan[0, pos].rank
            later = min(later, due if due > rank else latest_finish(due))
        if i == x:
            waits = False
            base = s.head[0].first if r.last else pos
        floor = max(now, link) if r.shared else now
        n, groups, idle, block, size, beyond = gather(
            i, known, floor, idle, block, size, r.offers and i == x, q, r, s, c
        )
        if i == x:
            later = min(later, beyond)
        if n == 0:
            return False, later
        if known > 0:  # as planned before: only its nodes and the link are taken
            even = ends_together(entry.kind, groups)
            own = entry.kind == PIECES or (r.finish and not even)
            if own or (r.shared and not even):
                fill_releases(groups, s)
                _, sent = lay(i, entry.kind, entry.rounds, n, entry.end, q, r, s, c)
            else:
                sent = sent_by(i, n, entry.start, q, r)
            if r.shared:
                link = max(link, sent)
            if own:
                for k in range(n):
                    size = push(s.heap, size, s.rows[(entry.rounds - 1) * n + k, 3], 1)
            else:
                size = push(s.heap, size, entry.end, n)
            if entry.start == entry.ready and (groups > 1 or marks > 0):  # early nodes idled on
                marks = marks_of(i, n, groups, block, size, q, r, s)
            s.plan[1, slot].marks = marks
            slot += 1
            tally(2, marks, s)
            continue
        if groups > 1 or r.every:
            marks = marks_of(i, n, groups, block, size, q, r, s)
        size, link = settle(i, n, groups, slot, size, link, key, marks, q, r, s, c)
        tally(2, marks, s)
        if i == x:
            tally(1, marks, s)
        if s.plan[1, slot].kind == PIECES and r.shared and s.plan[1, slot].end > q[i].limit:
            return False, min(later, s.plan[1, slot].end) if i == x else later
        slot += 1
        if i == x:
            seen = marks
    first = s.head[0].first
    for k in range(slot):
        if first + k < base:
            s.plan[0, first + k].marks = s.plan[1, k].marks
        else:
            s.plan[0, first + k] = s.plan[1, k]
    s.head[0].last = first + slot
    tally(0, seen, s)
    tally(4, seen, s)
    return True, later


@kernel
def backfill_count(i, t, idle, groups, asked, q, r, s, c):  # type: ignore[no-untyped-def]
    """Return the nodes a task would take if it started at t: 0 none yet, -1 never.

    Parameters
    ----------
    i : int
        Task.
    t : float
        Instant.
    idle, groups : int
        Nodes idle by then, in so many groups of `State.free`.
    asked : bool
        Whether `later` is wanted.
    q, r, s, c
        As everywhere.

    Returns
    -------
    n : int
        Count.
    later : float
        Smallest later deadline at which it would change.
    """
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
    """Return the smallest later deadline of x at which its place among todo could change.

    Returns
    -------
    float
        inf unless the order is by deadline.
    """
    later = np.inf
    if r.edf:
        for k in range(todo):
            due = q[s.todo[k].task].due
            if s.todo[k].task != x and not latest_finish(due) <= q[x].due:
                later = min(later, due if due > q[x].due else latest_finish(due))
    return later


@kernel
def absorb_groups(t, floor, groups, idle, block, size, s):  # type: ignore[no-untyped-def]
    """Move to `State.free` what is released by t.

    Returns
    -------
    groups, idle, block, size : int
        The same, at t.
    """
    while True:
        running = s.blocks[block].time if block < s.head[0].stop else np.inf
        planned = s.heap[0].time if size > 0 else np.inf
        time = min(running, planned)
        if time == np.inf or not (time <= t or same_instant(time, t)):
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
        if filled > 0 and same_instant(time, s.pool[filled - 1].time):
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
    """Test newcomer x where whoever fits may pass; all is planned anew.

    Returns
    -------
    ok : bool
        Whether x is admitted.
    later : float
        Smallest later deadline of x at which the answer could differ.
    """
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
    if idle == 0 or (r.shared and link > t and not same_instant(link, t)):
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
            blocked = r.shared and link > t and not same_instant(link, t)
            groups, idle, block, size = absorb_groups(t, now, groups, idle, block, size, s)
        todo = kept
        if todo == 0:
            for k in range(slot):
                s.plan[0, k] = s.plan[1, k]
            s.head[0].first, s.head[0].last = 0, slot
            return True, later
        t = next_instant(t, idle, link, block, size, r.shared, s)


@kernel(inline=True)
def hold(now, d, q, r, s, c):  # type: ignore[no-untyped-def]
    """Start the first task of the plan on the nodes released first; it is fixed now (Fig. 2)."""
    entry, head = s.plan[0, s.head[0].first], s.head[0]
    i, n, left, k = entry.task, entry.nodes, entry.nodes, 0
    even = ends_together(entry.kind, 1 if entry.start == entry.ready else 2)
    head.first += 1
    while left > 0:
        if head.idle > 0:
            time, nodes = entry.start, min(left, head.idle)
            head.idle -= nodes
        else:
            one = s.blocks[head.block]
            time, nodes = max(one.time, entry.start), min(left, one.nodes)
            one.nodes -= nodes
            head.block += one.nodes == 0
        left -= nodes
        if not even:
            for _ in range(nodes):
                s.release[k] = time
                k += 1
    if even:
        completion, sent = entry.end, sent_by(i, n, entry.start, q, r)
    else:
        completion, sent = lay(i, entry.kind, entry.rounds, n, entry.end, q, r, s, c)
    head.link = max(head.link, sent)
    if entry.kind == PIECES or (r.finish and not even):
        for k in range(n):
            insert_block(s.rows[(entry.rounds - 1) * n + k, 3], 1, s)
    else:
        insert_block(entry.end, n, s)
    tally(3, entry.marks, s)
    record(
        i, runs_on(i, n, q, r), entry.start, entry.end, completion, entry.kind, entry.rounds, d, s
    )


@kernel(inline=True)
def dispatch_in_line(now, inclusive, d, q, r, s, c):  # type: ignore[no-untyped-def]
    """Start every planned task whose time has come: s_1, or r_n under ``commit="last"``.

    Nobody is fixed before those ahead of him: his nodes may be theirs, given back.
    """
    while s.head[0].first < s.head[0].last:
        entry = s.plan[0, s.head[0].first]
        t = entry.ready if r.last else entry.start
        tie = same_instant(t, now)
        if not (tie and inclusive) and not (t < now and not tie):
            break
        hold(now, d, q, r, s, c)
    if now < np.inf and not r.last:
        s.head[0].idle, s.head[0].block, _ = absorb(now, s.head[0].idle, s.head[0].block, 0, s)
