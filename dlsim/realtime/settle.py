"""How a task is split over the nodes it takes, and when each is released again.

Arguments as in `dlsim.realtime.planner`.

Source: paper I, sections 4.2 to 4.5.
"""

from dlsim.kernel import kernel, same_instant
from dlsim.realtime.demand import longest, runs_on, sent_by
from dlsim.realtime.partition import duration
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
    idle_sum,
    optimum,
    remodelled_time,
    rounds_time,
    spread,
)
from dlsim.realtime.state import (
    push,
)

# Places in `PARTITIONS`.
_EQUAL, _PIECES, _DLT, _I, _II, _UMR, _UMR_EARLY = 1, 2, 3, 4, 5, 8, 9


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
    """Choose how a task is split over the nodes of the pool, and until when it lasts."""
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
        each = sigma * (r.cms + r.cps) / n
        end = last + (sigma * (r.cms + r.cps) - idle_sum(s.pool, groups)) / n
        if end > last and not same_instant(end, last, each):
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
    """Lay a task out on the nodes of `State.release` into `State.rows`."""
    costs = (r.cms, r.cps, r.st, r.sc)
    return spread(
        kind, s.release, n, q[i].sigma, rounds, end, costs, c.unit, c.lead, r.shared, s.rows, 0
    )


@kernel
def ends_together(kind, groups):  # type: ignore[no-untyped-def]
    """Tell whether a task is laid out as by the optimal partitioning rule."""
    return kind == OPR or (groups == 1 and REMODEL <= kind <= OPTIMUM)


@kernel(inline=True)
def settle(i, n, groups, slot, size, link, rank, marks, q, r, s, c):  # type: ignore[no-untyped-def]
    """Split a task over the pool, write its placement, release its nodes on the heap."""
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
