r"""How one load is split over nodes: one function per split, and the chunks that follow.

On nodes that start together: the optimal partitioning rule (OPR), equal shares, several rounds.
On nodes as they are released: pieces of equal size, the remodel of reference [6] of paper I, the
equal-finish split of paper I under Constraint 1 or 2, the true optimum, rounds, a user's shares.

Source: paper M, section 4; paper I, sections 4.2 to 4.5.
"""

from dlsim.compiled import compiled, times_tie
from dlsim.realtime.core.formulas import (
    constraint_one,
    constraint_two,
    idle_sum,
    instalment,
    n_min_of,
    optimal_completion,
    remodelled_time,
    rounds_time,
    time_on_nodes,
)

#: How a policy splits loads, a user's function last.
BY_OPR, BY_EQUAL, BY_PIECES, BY_DLT, BY_I, BY_II, BY_EXACT, BY_EXACT_N = range(8)
BY_UMR, BY_UMR_IIT, BY_USER = range(8, 11)
#: Codes of `dlsim.realtime.model.PARTITIONS`.
PARTITION_CODES = range(BY_USER)
#: How a load was split, after a constraint was tested; places in `model.SPLIT_KINDS`.
OPR, EQUAL, PIECES, REMODEL, EQUAL_FINISH, OPTIMUM, ROUNDS, ROUNDS_EARLY, USER_SHARES = range(9)


@compiled
def receiving_nodes(task, n, tasks, rules):
    """Return how many of its n nodes receive a chunk of a task."""
    return tasks[task].n_star if rules.all_nodes and rules.best else n


@compiled
def time_in_rounds(task, n, tasks, rules):
    """Return how long a task occupies n nodes that start together in rounds, and the rounds."""
    sigma = tasks[task].sigma
    return rounds_time(sigma, n, rules.rounds, rules.cms, rules.cps, rules.st, rules.sc)


@compiled
def time_from_common_start(task, n, tasks, rules, table):
    """Return how long a task occupies n nodes that start together."""
    if rules.in_rounds:
        time, _ = time_in_rounds(task, n, tasks, rules)
        return time
    served = receiving_nodes(task, n, tasks, rules)
    return time_on_nodes(tasks[task].sigma, served, table.time_per_unit, table.setup_time)


@compiled
def n_min_from(t, task, low, tasks, rules, table):
    """Return n_min, the fewest nodes that start together at t and meet the deadline, or 0.

    It is at least `low`. In rounds the time does not fall throughout as n rises: every n is tried.
    """
    one = tasks[task]
    if not rules.in_rounds:
        unit, setup = table.time_per_unit, table.setup_time
        return n_min_of(t, one.due_tol, one.sigma, low, one.n_star, unit, setup)
    for n in range(low, rules.nodes + 1):
        time, _ = time_in_rounds(task, n, tasks, rules)
        if t + time <= one.due_tol:
            return n
    return 0


# --- the splits -----------------------------------------------------------------------------------
# Each returns how the load is split, in how many rounds, when the task starts and is planned to
# end, how many of its nodes receive data, and how many groups of releases these fill.


@compiled
def split_at_last_release(task, n, groups, pool, tasks, rules, table):
    """Split by the optimal partitioning rule or equally, once the last node is released."""
    last = pool[groups - 1].time
    end = last + time_from_common_start(task, n, tasks, rules, table)
    return rules.partition, 1, last, end, n, groups


@compiled
def split_in_pieces(task, n, groups, pool, tasks, rules, table):
    """Give each node an equal piece as a task of its own (User Split)."""
    end = pool[groups - 1].time + time_from_common_start(task, n, tasks, rules, table)
    return PIECES, 1, pool[0].time, end, n, groups


@compiled
def split_by_remodel(task, n, groups, pool, tasks, rules, table):
    """Split by the heterogeneous remodel of [6]."""
    sigma, last = tasks[task].sigma, pool[groups - 1].time
    time = time_on_nodes(sigma, n, table.time_per_unit, table.setup_time)
    if groups > 1:
        time = min(time, remodelled_time(pool, groups, sigma, rules.cms, rules.cps, time))
    return REMODEL, 1, pool[0].time, last + time, n, groups


@compiled
def split_by_equal_finish(task, n, groups, pool, tasks, rules, table):
    """Split by equal finish where Constraint 1 (I) or 2 (II) holds, else by the remodel.

    The equal-finish split is that of paper I, eqs. (2)-(4); `fill_equal_finish_loads` writes its
    loads.
    """
    sigma, last = tasks[task].sigma, pool[groups - 1].time
    if groups > 1:
        each = sigma * (rules.cms + rules.cps) / n
        end = last + (sigma * (rules.cms + rules.cps) - idle_sum(pool, groups)) / n
        if end > last and not times_tie(end, last, each):
            if rules.partition == BY_I:
                holds = constraint_one(pool, groups, sigma * rules.cms, False)
            else:
                holds = constraint_two(pool, groups, end, rules.send_part, False)
            if holds:
                return EQUAL_FINISH, 1, pool[0].time, end, n, groups
    return split_by_remodel(task, n, groups, pool, tasks, rules, table)


@compiled
def split_by_optimum(task, groups, pool, tasks, rules, table):
    """Split so that the last of the nodes ends as early as one round allows."""
    sigma, part = tasks[task].sigma, rules.send_part
    end, n, filled = optimal_completion(pool, groups, sigma, part, table.time_per_unit)
    return OPTIMUM, 1, pool[0].time, end, n, filled


@compiled
def split_in_rounds(task, n, groups, pool, tasks, rules):
    """Split by UMR: from the last release on, or from each node's own on."""
    time, rounds = time_in_rounds(task, n, tasks, rules)
    last = pool[groups - 1].time
    if rules.partition == BY_UMR:
        return ROUNDS, rounds, last, last + time, n, groups
    return ROUNDS_EARLY, rounds, pool[0].time, last + time, n, groups


@compiled
def choose_split(task, n, groups, pool, tasks, rules, table):
    """Split a task over the nodes of a pool by the policy's partition; see above."""
    if rules.partition == BY_OPR or rules.partition == BY_EQUAL:
        return split_at_last_release(task, n, groups, pool, tasks, rules, table)
    if rules.partition == BY_PIECES:
        return split_in_pieces(task, n, groups, pool, tasks, rules, table)
    if rules.partition == BY_DLT:
        return split_by_remodel(task, n, groups, pool, tasks, rules, table)
    if rules.partition == BY_I or rules.partition == BY_II:
        return split_by_equal_finish(task, n, groups, pool, tasks, rules, table)
    if rules.in_rounds:
        return split_in_rounds(task, n, groups, pool, tasks, rules)
    if rules.partition == BY_USER:  # it ends when its chunks do
        return USER_SHARES, 1, pool[0].time, pool[groups - 1].time, n, groups
    if rules.partition == BY_EXACT or rules.partition == BY_EXACT_N:
        return split_by_optimum(task, groups, pool, tasks, rules, table)
    raise ValueError("no partition has this code")


@compiled
def split_on_common_release(task, n, release, tasks, rules, table):
    """Split a task over nodes that are released together, where this is as by the OPR rule."""
    kind = OPTIMUM
    if rules.partition == BY_OPR:
        kind = OPR
    elif rules.partition <= BY_II:
        kind = REMODEL
    n_used = receiving_nodes(task, n, tasks, rules)
    end = release + time_on_nodes(tasks[task].sigma, n_used, table.time_per_unit, table.setup_time)
    return kind, 1, release, end


@compiled
def ends_together(kind, groups):
    """Tell whether a task is split as by the optimal partitioning rule."""
    return kind == OPR or (groups == 1 and REMODEL <= kind <= OPTIMUM)


# --- loads of the nodes, in order of transmission -------------------------------------------------


@compiled
def fill_opr_loads(n, sigma, cms, cps, st, time_per_unit, first_share_offset, chunks, first_row):
    """Write the loads of the optimal partitioning rule (paper M, eqs. 4.5 and 4.11)."""
    w = cms + cps
    load = (first_share_offset[n] + sigma * time_per_unit[n]) / w
    for i in range(n):
        chunks[first_row + i, 0] = load
        load = load * (cps / w) - st / w


@compiled
def fill_equal_loads(n, sigma, chunks, first_row):
    """Write equal loads."""
    for i in range(n):
        chunks[first_row + i, 0] = sigma / n


@compiled
def fill_equal_finish_loads(release, n, sigma, cms, cps, chunks, first_row):
    """Write the loads of the equal-finish split (paper I, eqs. 3-4).

    Each node works from its release on, and all nodes finish together.
    """
    w, last, waits = cms + cps, release[n - 1], 0 * sigma
    for i in range(n):
        waits += last - release[i]
    common = (sigma * w - waits) / n
    for i in range(n):
        chunks[first_row + i, 0] = (common + (last - release[i])) / w


@compiled
def fill_remodel_loads(release, n, sigma, cms, cps, time_per_unit, chunks, first_row):
    """Write the loads of the heterogeneous remodel of [6]."""
    last, time = release[n - 1], sigma * time_per_unit[n]
    total, passed = 0 * sigma, 1 + 0 * sigma
    for i in range(n):
        chi = cps * time / (time + (last - release[i]))
        total += passed / (cms + chi)
        passed *= chi / (cms + chi)
    chi = cps * time / (time + (last - release[0]))
    load = sigma / total / (cms + chi)
    for i in range(n):
        chunks[first_row + i, 0] = load
        if i + 1 < n:
            ahead = cps * time / (time + (last - release[i + 1]))
            load, chi = load * chi / (cms + ahead), ahead


@compiled
def fill_optimum_loads(release, n, end, cms, cps, chunks, first_row):
    """Write the loads with which every node computes until `end`."""
    w, clock, load = cms + cps, release[0], 0 * end
    for i in range(n):
        # behind another send: w * load = end - clock without the difference
        is_behind = i > 0 and release[i] <= clock
        clock = max(clock, release[i])
        load = load * (cps / w) if is_behind else (end - clock) / w
        chunks[first_row + i, 0] = load
        clock = clock + load * cms


@compiled
def fill_round_loads(n, sigma, rounds, cms, cps, st, sc, chunks, first_row):
    """Write the loads of UMR, round by round."""
    for j in range(rounds):
        load = instalment(j, sigma, n, rounds, cms, cps, st, sc)
        for i in range(n):
            chunks[first_row + j * n + i, 0] = load


@compiled
def chunk_times(
    kind,
    release,
    n,
    sigma,
    rounds,
    end,
    costs,
    time_per_unit,
    first_share_offset,
    shared,
    chunks,
    first_row,
):
    """Write share, begin and end of the send, and end of the computation, of every chunk.

    In order of transmission; shares of a user's own stand in `chunks` already. Return when the
    task is computed and when its last send ends.
    """
    cms, cps, st, sc = costs
    if kind == OPR:
        fill_opr_loads(n, sigma, cms, cps, st, time_per_unit, first_share_offset, chunks, first_row)
    elif kind == EQUAL or kind == PIECES:
        fill_equal_loads(n, sigma, chunks, first_row)
    elif kind == EQUAL_FINISH:
        fill_equal_finish_loads(release, n, sigma, cms, cps, chunks, first_row)
    elif kind == REMODEL:
        fill_remodel_loads(release, n, sigma, cms, cps, time_per_unit, chunks, first_row)
    elif kind == OPTIMUM:
        fill_optimum_loads(release, n, end, cms, cps, chunks, first_row)
    elif kind == ROUNDS or kind == ROUNDS_EARLY:
        fill_round_loads(n, sigma, rounds, cms, cps, st, sc, chunks, first_row)
    else:
        for i in range(n):
            chunks[first_row + i, 0] = chunks[first_row + i, 0] * sigma
    together = kind == OPR or kind == EQUAL or kind == ROUNDS
    clock = release[n - 1] if together else release[0]
    completion = clock
    for j in range(rounds):
        for i in range(n):
            row = first_row + j * n + i
            if kind == PIECES and not shared:
                clock = release[i]
            elif not together:
                clock = max(clock, release[i])
            load = chunks[row, 0]
            chunks[row, 0], chunks[row, 1] = load / sigma, clock
            clock = clock + (st + load * cms)
            begins = clock if j == 0 else max(clock, chunks[row - n, 3])
            chunks[row, 2], chunks[row, 3] = clock, begins + (sc + load * cps)
            completion = max(completion, chunks[row, 3])
    return completion, clock
