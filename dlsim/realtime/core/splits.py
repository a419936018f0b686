r"""How one load is split over nodes: one function per split.

On nodes that start together: the optimal partitioning rule (OPR), equal shares, several rounds.
On nodes as they are released: pieces of equal size, the remodel of reference [6] of paper I, the
equal-finish split of paper I under Constraint 1 or 2, the true optimum, rounds, a user's shares.
`dlsim.realtime.core.chunks` computes the loads of the nodes.

Source: paper M, section 4; paper I, sections 4.2 to 4.5.
"""

from dlsim.compiled import compiled, times_tie
from dlsim.realtime.core.formulas import (
    constraint_one,
    constraint_two,
    idle_sum,
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


@compiled(inline=True)
def receiving_nodes(task, n, state):
    """Return how many of its n nodes receive a chunk of a task."""
    return state.tasks[task].n_star if state.rules.all_nodes and state.rules.best else n


@compiled
def time_in_rounds(task, n, state):
    """Return how long a task occupies n nodes that start together in rounds, and the rounds."""
    return rounds_time(state.tasks[task].sigma, n, state.rules.rounds, state.rules)


@compiled(inline=True)
def time_from_common_start(task, n, state):
    """Return how long a task occupies n nodes that start together."""
    if state.rules.in_rounds:
        time, _ = time_in_rounds(task, n, state)
        return time
    table, served = state.table, receiving_nodes(task, n, state)
    return time_on_nodes(state.tasks[task].sigma, served, table.time_per_unit, table.setup_time)


@compiled(inline=True)
def n_min_from(t, task, low, state):
    """Return n_min, the fewest nodes that start together at t and meet the deadline, or 0.

    It is at least `low`. In rounds the time does not fall throughout as n rises: every n is tried.
    """
    one, table = state.tasks[task], state.table
    if not state.rules.in_rounds:
        unit, setup = table.time_per_unit, table.setup_time
        return n_min_of(t, one.due_tol, one.sigma, low, one.n_star, unit, setup)
    for n in range(low, state.rules.nodes + 1):
        time, _ = time_in_rounds(task, n, state)
        if t + time <= one.due_tol:
            return n
    return 0


# --- the splits -----------------------------------------------------------------------------------
# Each splits a task over n nodes of a pool. It returns how the load is split, in how many rounds,
# when the task starts and is planned to end, how many of its nodes receive data, and how many
# groups of releases these fill.


@compiled(inline=True)
def split_at_last_release(task, n, pool, state):
    """Split by the optimal partitioning rule or equally, once the last node is released."""
    groups = pool.size.groups
    last = pool.releases[groups - 1].time
    return state.rules.partition, 1, last, last + time_from_common_start(task, n, state), n, groups


@compiled
def split_in_pieces(task, n, pool, state):
    """Give each node an equal piece as a task of its own (User Split)."""
    groups = pool.size.groups
    end = pool.releases[groups - 1].time + time_from_common_start(task, n, state)
    return PIECES, 1, pool.releases[0].time, end, n, groups


@compiled
def split_by_remodel(task, n, pool, state):
    """Split by the heterogeneous remodel of [6]."""
    rules, table, sigma = state.rules, state.table, state.tasks[task].sigma
    releases, groups = pool.releases, pool.size.groups
    time = time_on_nodes(sigma, n, table.time_per_unit, table.setup_time)
    if groups > 1:
        time = min(time, remodelled_time(releases, groups, sigma, rules.cms, rules.cps, time))
    return REMODEL, 1, releases[0].time, releases[groups - 1].time + time, n, groups


@compiled
def split_by_equal_finish(task, n, pool, state):
    """Split by equal finish where Constraint 1 (I) or 2 (II) holds, else by the remodel.

    The equal-finish split is that of paper I, eqs. (2)-(4);
    `dlsim.realtime.core.chunks.fill_equal_finish_loads` writes its loads.
    """
    rules, sigma = state.rules, state.tasks[task].sigma
    releases, groups = pool.releases, pool.size.groups
    last = releases[groups - 1].time
    if groups > 1:
        each = sigma * (rules.cms + rules.cps) / n
        end = last + (sigma * (rules.cms + rules.cps) - idle_sum(releases, groups)) / n
        if end > last and not times_tie(end, last, each):
            if rules.partition == BY_I:
                holds = constraint_one(releases, groups, sigma * rules.cms, False)
            else:
                holds = constraint_two(releases, groups, end, rules.send_part, False)
            if holds:
                return EQUAL_FINISH, 1, releases[0].time, end, n, groups
    return split_by_remodel(task, n, pool, state)


@compiled(inline=True)
def split_by_optimum(task, pool, state):
    """Split so that the last of the nodes ends as early as one round allows."""
    releases, groups, sigma = pool.releases, pool.size.groups, state.tasks[task].sigma
    unit = state.table.time_per_unit
    end, n, filled = optimal_completion(releases, groups, sigma, state.rules.send_part, unit)
    return OPTIMUM, 1, releases[0].time, end, n, filled


@compiled
def split_in_rounds(task, n, pool, state):
    """Split by UMR: from the last release on, or from each node's own on."""
    time, rounds = time_in_rounds(task, n, state)
    groups = pool.size.groups
    last = pool.releases[groups - 1].time
    if state.rules.partition == BY_UMR:
        return ROUNDS, rounds, last, last + time, n, groups
    return ROUNDS_EARLY, rounds, pool.releases[0].time, last + time, n, groups


@compiled
def split_by_user(n, pool):
    """Split by a user's shares; the task ends when its chunks do."""
    releases, groups = pool.releases, pool.size.groups
    return USER_SHARES, 1, releases[0].time, releases[groups - 1].time, n, groups


@compiled(inline=True)
def choose_split(task, n, pool, state):
    """Split a task over n nodes of a pool by the policy's partition; see above."""
    partition = state.rules.partition
    if partition == BY_OPR or partition == BY_EQUAL:
        return split_at_last_release(task, n, pool, state)
    if partition == BY_PIECES:
        return split_in_pieces(task, n, pool, state)
    if partition == BY_DLT:
        return split_by_remodel(task, n, pool, state)
    if partition == BY_I or partition == BY_II:
        return split_by_equal_finish(task, n, pool, state)
    if state.rules.in_rounds:
        return split_in_rounds(task, n, pool, state)
    if partition == BY_USER:
        return split_by_user(n, pool)
    if partition == BY_EXACT or partition == BY_EXACT_N:
        return split_by_optimum(task, pool, state)
    raise ValueError("no partition has this code")


@compiled(inline=True)
def split_on_common_release(task, n, release, state):
    """Split a task over nodes that are released together, where this is as by the OPR rule."""
    kind, table = OPTIMUM, state.table
    if state.rules.partition == BY_OPR:
        kind = OPR
    elif state.rules.partition <= BY_II:
        kind = REMODEL
    sigma, served = state.tasks[task].sigma, receiving_nodes(task, n, state)
    end = release + time_on_nodes(sigma, served, table.time_per_unit, table.setup_time)
    return kind, 1, release, end


@compiled
def ends_together(kind, groups):
    """Tell whether a task is split as by the optimal partitioning rule."""
    return kind == OPR or (groups == 1 and REMODEL <= kind <= OPTIMUM)


@compiled(inline=True)
def ends_node_by_node(kind, even, rules):
    """Tell whether each node of a task is released at its own end; `even`: all end together."""
    return kind == PIECES or (rules.finish and not even)


@compiled(inline=True)
def ends_with_its_chunks(kind, rules):
    """Tell whether the chunks of a task say when it ends: no formula does."""
    return kind == ROUNDS_EARLY or kind == USER_SHARES or (kind == PIECES and rules.shared)
