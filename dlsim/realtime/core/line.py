"""The admission test where tasks are served one after another by a static rank.

Paper I's policies, paper M's all-nodes policies, and any static order without overtaking.
A task takes the nodes that are released first; who follows finds the others no earlier, so
a test plans from the newcomer's place on and leaves what is before it. Nodes count in
groups of one release time (`State.pool`): 65,536 nodes that end together cost 1.6 times what
16 cost; with ``release="finish"`` nodes that end at different instants are groups of their own,
and 16,384 cost some 15 times.

With ``commit="last"`` a waiting task may have begun on its first nodes; its releases move
with every test, and all is planned anew. `dlsim.realtime.core.plan` has the tests where
others may pass.

Source: paper I, sections 4.2 to 4.5, and its reference [6] as the authors' later simulator
has it: the fewest n with r_n + E(n) <= A + D.
"""

import numpy as np

from dlsim.compiled import compiled, latest_finish, same_instant
from dlsim.realtime.core import demand, partition, state
from dlsim.realtime.core.partition import duration, fewest

#: Behind fewer tasks a newcomer is planned by planning them again.
LONG = 8


@compiled(inline=True)
def next_release(floor, idle, block, size, s):
    """Take the group of nodes that is released next off idle nodes, blocks or heap."""
    if idle > 0:
        return floor, idle, 0, block, size
    running = s.blocks[block].time if block < s.head[0].stop else np.inf
    if size > 0 and s.heap[0].time < running:
        time, nodes = s.heap[0].time, s.heap[0].nodes
        return max(time, floor), nodes, 0, block, state.pop(s.heap, size)
    if running == np.inf:
        return np.inf, 0, 0, block, size
    return max(running, floor), s.blocks[block].nodes, 0, block + 1, size


@compiled
def all_at_release(r):
    """Tell whether a task takes all nodes as they are released: its optimum says when it ends."""
    return r.all_nodes and r.part == state.BY_EXACT


@compiled(inline=True)
def search(i, time, before, total, asked, q, r, c):
    """Look for the fewest nodes in before+1..total, all released by `time`, that are in time."""
    one, later = q[i], np.inf
    if demand.has_fixed_count(i, q, r):
        n = one.low if before < one.low <= total else 0
        if n > 0 and time + one.length > one.limit and not all_at_release(r):
            return 0, time + one.length
        return n, later
    low, high = max(before + 1, one.low), total
    if r.method == state.SCAN:
        n, least = partition.fewest_in_rounds(
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
    if asked and fails > before:
        later = time + duration(one.sigma, fails, c.unit, c.fixed)
    return n, later


@compiled
def reach(limit, head, run, closed, time, before, total, sigma, part, unit):
    """Add a group to nodes that are filled up to a limit; find where they carry the load.

    `head`, `run` and `closed` are the release and the nodes of the run of sends in progress and
    the data of the runs before it; the group releases the nodes before+1..total at `time`.
    Return the fewest nodes that carry sigma, 0 if none of these, and the three with the group.
    """
    if run > 0 and time > head + (limit - head) * partition.reach_of(run, part, unit):
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


@compiled
def fewest_carrying(pool, groups, limit, sigma, part, unit):
    """Return the fewest nodes of a pool that carry sigma, or 0; nodes and groups looked at."""
    head, run, closed, total, g, n = 0.0, 0, 0.0, 0, 0, 0
    while n == 0 and g < groups:
        before, total = total, total + pool[g].nodes
        if pool[g].time < limit:
            n, head, run, closed = reach(
                limit, head, run, closed, pool[g].time, before, total, sigma, part, unit
            )
        g += 1
    return n, total, g


@compiled
def next_optimum(pool, groups, total, n, i, q, r, c):
    """Return the deadline at which one node less than n would do, or all of them where n = 0."""
    if n == 1:
        return np.inf
    last = pool[groups - 1].nodes
    if n > 0:
        pool[groups - 1].nodes = last - (total - n) - 1
    filled = groups - 1 if pool[groups - 1].nodes == 0 else groups
    end, _, _ = partition.optimum(pool, filled, q[i].sigma, r.cms / (r.cms + r.cps), c.unit)
    pool[groups - 1].nodes = last
    return end


@compiled(inline=True)
def reserve(i, known, floor, idle, block, size, asked, q, r, s, c):
    """Take the nodes of a task off those released first; find their number unless known."""
    n, groups, total, later, whole = known, 0, 0, np.inf, idle > 0
    head, run, closed, part = 0.0, 0, 0.0, r.cms / (r.cms + r.cps)
    one, found = q[i], False
    while not found:
        time, nodes, idle, block, size = next_release(floor, idle, block, size, s)
        if nodes == 0:
            break
        if groups > 0 and same_instant(time, s.pool[groups - 1].time, s.head[0].span):
            time = s.pool[groups - 1].time
            s.pool[groups - 1].nodes += nodes
            whole = False
        else:
            s.pool[groups].time, s.pool[groups].nodes = time, nodes
            groups += 1
        before, total = total, total + nodes
        if known > 0:
            found = total >= known
        elif r.method == state.CAPACITY and not r.frozen:
            if time < one.limit:
                n, head, run, closed = reach(
                    one.limit, head, run, closed, time, before, total, one.sigma, part, c.unit
                )
            elif not asked:
                break
            found = n > 0
        else:
            n, beyond = search(i, time, before, total, asked, q, r, c)
            later, found = min(later, beyond), n > 0
            fixed = demand.has_fixed_count(i, q, r)
            scan = r.method == state.SCAN
            if not found and (total >= one.low if fixed else not scan and total >= one.top):
                break
            if not found and not asked and not fixed and not scan:
                if time + duration(one.sigma, one.top, c.unit, c.fixed) > one.limit:
                    break
    if found and known == 0 and all_at_release(r):
        end, _, _ = partition.optimum(s.pool, groups, one.sigma, part, c.unit)
        if end > one.limit:
            found, later = False, end
    if not found:
        if asked and r.method == state.CAPACITY and not r.frozen:
            later = next_optimum(s.pool, groups, total, 0, i, q, r, c)
        return 0, groups, idle, block, size, later
    if r.method == state.FRAGMENT and known == 0:
        time = s.pool[groups - 1].time
        while True:
            another, nodes, idle, block, size = next_release(floor, idle, block, size, s)
            if nodes > 0 and same_instant(another, time, s.head[0].span):
                s.pool[groups - 1].nodes += nodes
                total, whole = total + nodes, False
                continue
            if nodes > 0:
                size = state.push(s.heap, size, another, nodes)
            break
        n = max(n, min(total, one.top))
    if asked and r.method == state.CAPACITY and not r.frozen:
        later = next_optimum(s.pool, groups, total, n, i, q, r, c)
    if total > n:
        if groups == 1 and whole:
            idle = total - n
        else:
            size = state.push(s.heap, size, s.pool[groups - 1].time, total - n)
        s.pool[groups - 1].nodes -= total - n
    return n, groups, idle, block, size, later


@compiled
def has_later_release(time, block, size, s):
    """Tell whether a node that is not taken is released after `time`."""
    stop, span = s.head[0].stop, s.head[0].span
    if block < stop and not state.has_come(s.blocks[stop - 1].time, time, span):
        return True
    for k in range(size):
        if not state.has_come(s.heap[k].time, time, span):
            return True
    return False


@compiled
def marks_of(i, n, groups, block, size, q, r, s):
    """Note what the counters of paper I see in a pool (Table 1)."""
    if n == 1 and not r.single:
        return 0
    if groups == 1 and not (r.every and has_later_release(s.pool[0].time, block, size, s)):
        return 0
    w = q[i].sigma * (r.cms + r.cps)
    last = s.pool[groups - 1].time
    end = last + (w - partition.idle_sum(s.pool, groups)) / n
    positive = end > last and not same_instant(end, last, w / n)
    first = partition.constraint_one(s.pool, groups, q[i].sigma * r.cms, r.skip_ties)
    second = partition.constraint_two(s.pool, groups, end, r.cms / (r.cms + r.cps), r.skip_ties)
    marks = state.IDLE | state.SINGLE * (groups == 2 and s.pool[0].nodes == 1)
    if not positive:
        return marks | state.NEGATIVE * (first or second)
    return marks | state.FIRST * first | state.SECOND * second


@compiled
def tally(rule, marks, times, s):
    """Count what was marked, by one counting rule (a row of `COUNT_RULES`)."""
    if marks > 0:
        s.counts[rule, 0] += times
        s.counts[rule, 1] += times * ((marks & (state.SINGLE if rule == 4 else state.FIRST)) > 0)
        s.counts[rule, 2] += times * ((marks & state.SECOND) > 0)
        s.counts[rule, 3] += times * ((marks & state.NEGATIVE) > 0)


@compiled(inline=True)
def comes_last(x, now, q, r, s, c):
    """Tell whether x would be served after all of a plan of which `State.rest` is known."""
    head, rest, span = s.head[0], s.rest_head[0], s.head[0].span
    if rest.last != head.last or head.first == head.last:
        return False
    last = s.plan[0, head.last - 1]
    if state.goes_before(demand.rank_of(x, 0, q, r, c), x, last.rank, last.task, span):
        return False
    return rest.block == rest.stop or not state.has_come(s.rest[rest.block].time, now, span)


@compiled
def count_planned(now, q, r, s, c):
    """Count who waits in one more test; return what the first of them shows in it.

    Early nodes of the first go on idling, so that its releases are others than before; who
    follows finds what he found.
    """
    entry, head = s.plan[0, s.head[0].first], s.head[0]
    marks = entry.marks
    if entry.start == entry.ready:
        floor = max(now, head.link) if r.shared else now
        n, groups, _, block, size, _ = reserve(
            entry.task, entry.nodes, floor, head.idle, head.block, 0, False, q, r, s, c
        )
        if groups > 1 or marks > 0:
            size = state.push(s.heap, size, entry.end, n)
            marks = marks_of(entry.task, n, groups, block, size, q, r, s)
    for k in range(len(state.COUNTED)):
        s.counts[2, k] += s.counts[state.PLANNED, k]
    tally(2, entry.marks, -1, s)
    tally(2, marks, 1, s)
    return marks


@compiled
def rest_of(s):
    """Return the state in which all of the plan in force has run."""
    return state.State(
        s.rest_head, s.rest, s.plan, s.todo, s.heap, s.pool, s.free, s.own, s.release, s.rows,
        s.counts, s.rest_head, s.rest,
    )  # fmt: skip


@compiled
def keep_rest(block, size, link, behind, s):
    """Remember what a new plan leaves over: `block` and what follows, and the heap."""
    head, rest = s.head[0], s.rest_head[0]
    if behind:
        rest.block = block
    else:
        rest.block, rest.stop = 0, head.stop - block
        for j in range(rest.stop):
            state.move_block(j, s.blocks[block + j], s.rest)
        for k in range(len(state.COUNTED)):
            s.counts[state.PLANNED, k] = 0
        for k in range(head.first, head.last):
            tally(state.PLANNED, s.plan[0, k].marks, 1, s)
    while size > 0:
        time, nodes = s.heap[0].time, s.heap[0].nodes
        size = state.pop(s.heap, size)
        state.insert_block(time, nodes, rest_of(s))
    rest.first, rest.last, rest.link = head.last, head.last, link


@compiled(inline=True)
def admit_in_line(x, now, q, r, s, c):
    """Test newcomer x at `now`, and plan who comes after it; put it in force if deadlines hold.

    Who comes last behind many is planned from what they leave over. That does not change while
    the first of them waits: the cost does not depend on how many they are.
    """
    head, rest, behind, shown = s.head[0], s.rest_head[0], comes_last(x, now, q, r, s, c), 0
    if behind:
        shown, s = count_planned(now, q, r, s, c), rest_of(s)
    first, pos, stop, link = s.head[0].first, s.head[0].first, s.head[0].last, s.head[0].link
    idle, block, size, slot = s.head[0].idle, s.head[0].block, 0, 0
    base, rank, waits, seen, later = pos, demand.rank_of(x, 0, q, r, c), True, 0, np.inf
    span = s.head[0].span
    while waits or pos < stop:
        i, key, known, marks, entry = x, rank, 0, 0, s.plan[0, pos]
        if waits and (pos == stop or state.goes_before(rank, x, entry.rank, entry.task, span)):
            waits, base = False, first if r.last else pos
            if pos < stop and r.edf:  # a tie that x wins by its index ends beyond the tolerance
                due = entry.rank
                later = min(later, due if due > rank else latest_finish(due, span))
        else:
            i, key = entry.task, entry.rank
            if waits and not r.last:
                known, marks = entry.nodes, entry.marks
            pos += 1
        more = behind or waits or pos < stop or stop - first + 1 >= LONG
        floor = max(now, link) if r.shared else now
        n, groups, idle, block, size, beyond = reserve(
            i, known, floor, idle, block, size, r.offers and i == x, q, r, s, c
        )
        if i == x:
            later = min(later, beyond)
        if n == 0:
            return False, later
        if known > 0:  # as planned before: only its nodes and the link are taken
            size, link, _ = demand.vacate(
                False, more, i, entry.kind, entry.rounds, n, groups, entry.start, entry.end, size,
                link, q, r, s, c,
            )  # fmt: skip
            if entry.start == entry.ready and (groups > 1 or marks > 0):  # early nodes idled on
                marks = marks_of(i, n, groups, block, size, q, r, s)
            s.plan[1, slot].marks = marks
            slot += 1
            tally(2, marks, 1, s)
            continue
        if groups > 1 or r.every:
            marks = marks_of(i, n, groups, block, size, q, r, s)
        size, link = demand.assign(more, i, n, groups, slot, size, link, key, marks, q, r, s, c)
        tally(2, marks, 1, s)
        if i == x:
            tally(1, marks, 1, s)
        end = s.plan[1, slot].end
        if s.plan[1, slot].kind == partition.PIECES and r.shared and end > q[i].limit:
            return False, min(later, end) if i == x else later
        slot += 1
        if i == x:
            seen = marks
    for k in range(base - first):
        s.plan[0, first + k].marks = s.plan[1, k].marks
    state.move_plan(s.plan[1, base - first : slot], s.plan[0, base:])
    s.head[0].last = first + slot
    tally(0, seen, 1, s)
    tally(4, seen, 1, s)
    if behind:
        head.last = rest.last
        for k, times in ((head.first, -1), (head.last - 1, 1)):
            tally(state.PLANNED, s.plan[0, k].marks, times, s)
        s.plan[0, head.first].marks = shown
        tally(state.PLANNED, shown, 1, s)
    else:
        rest.last = -1
    if behind or (head.last - head.first >= LONG and not r.last and idle == 0):
        keep_rest(block, size, link, behind, s)
    return True, later


@compiled(inline=True)
def dispatch(now, inclusive, d, q, r, s, c):
    """Start all whose time has come, s_1 or r_n under ``commit="last"``, for good (l.3-9, Fig. 2).

    Nobody is fixed before those ahead of him: his nodes may be theirs, given back.
    """
    head = s.head[0]
    while head.first < head.last:
        entry = s.plan[0, head.first]
        t = entry.ready if r.last else entry.start
        tie = same_instant(t, now, head.span)
        if not (tie and inclusive) and not (t < now and not tie):
            break
        i, n, left, groups = entry.task, entry.nodes, entry.nodes, 0
        even = demand.ends_together(entry.kind, 1 if entry.start == entry.ready else 2)
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
            s.pool[groups].time, s.pool[groups].nodes = time, nodes
            groups += 1
        kind, rounds, completion = entry.kind, entry.rounds, entry.end
        own = kind == partition.PIECES or (r.finish and not even)
        if even:
            sent = demand.sent_by(i, n, entry.start, q, r)
        else:
            completion, sent, count = demand.ends(
                i, kind, rounds, n, groups, entry.end, own, q, r, s, c
            )
        head.link = max(head.link, sent)
        if own:
            state.insert_own(count, s)
        else:
            state.insert_block(entry.end, n, s)
        tally(3, entry.marks, 1, s)
        tally(state.PLANNED, entry.marks, -1, s)
        d[i].nodes, d[i].turn = demand.runs_on(i, n, q, r), head.done
        d[i].kind, d[i].rounds = kind, rounds
        d[i].start, d[i].estimate, d[i].end = entry.start, entry.end, completion
        head.done += 1
    if now < np.inf and not (r.last and r.in_line):
        head.idle, head.block, _ = state.absorb(now, head.idle, head.block, 0, s)
