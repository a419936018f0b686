"""Lay a schedule out as chunks: which node receives which share, and when."""

from dlsim.kernel import kernel
from dlsim.realtime.core.demand import fill_shares
from dlsim.realtime.core.partition import BEST, EQUAL, OPR, OWN, PIECES, ROUNDS, spread
from dlsim.realtime.core.rounds import fill_sizes
from dlsim.realtime.core.state import has_come


@kernel
def choose_nodes(start, n, early, span, free, chosen, release):
    """Find n nodes for a task: the lowest idle ones, then those that are released first."""
    found = 0
    for node in range(len(free)):
        if found < n and has_come(free[node], start, span):
            chosen[found], release[found] = node, start
            found += 1
    if found < n and not early:
        return False
    after, last = start, -1  # in order of (free, node)
    while found < n:
        best = -1
        for node in range(len(free)):
            time = free[node]
            if has_come(time, start, span):
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


@kernel
def fill_chunks(
    mine, runs, first, times, costs, c, own, span, free, chosen, release, room, ints, out
):  # fmt: skip
    r"""Fill one row per chunk, task by task in order of dispatch; `mine` are rules of one's own."""
    shared, finish = own
    for task in range(len(runs)):
        n, kind, rounds = runs[task, 0], runs[task, 1], runs[task, 2]
        size, start, end = times[task, 0], times[task, 1], times[task, 2]
        early = kind != OPR and kind != EQUAL and kind != ROUNDS
        if not choose_nodes(start, n, early, span, free, chosen, release):
            return task
        base = first[task]
        if kind == OWN:
            fill_shares(mine, task, size, release, n, (float(len(free)), *costs), c, out, base)
        elif kind == BEST:
            fill_sizes(size, release, n, rounds, costs[0], costs[1], room, out, base)
        spread(kind, release, n, size, rounds, end, costs, c.unit, c.lead, shared, out, base)
        for row in range(base, base + n * rounds):
            ints[row, 0], ints[row, 1] = task, chosen[(row - base) % n]
        for k in range(n):
            single = kind == PIECES or (finish and kind != OPR)
            free[chosen[k]] = out[base + (rounds - 1) * n + k, 3] if single else end
    return -1
