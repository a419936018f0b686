"""How many nodes a task takes: one function for each rule, and what a newcomer brings.

Every rule is asked at an instant t for which a pool of nodes is free: how many nodes does the
task take if it starts at t? The answer is a number that may exceed the pool, so that the task
waits for more nodes, or NEVER where its deadline can no longer be met. n_min never falls as time
goes on; so a number that was found is the lower bound of the next search.

Source: paper M, section 5, l.8-10 of Schedulability_Test(); paper I, sections 4.2 to 4.5, and
its reference [6] as the authors' later simulator has it: the fewest n with r_n + E(n) <= A + D.
"""

import numpy as np

from dlsim.compiled import compiled, deadline_with_tolerance, zero_recarray
from dlsim.realtime.core.chunks import compute_chunks
from dlsim.realtime.core.formulas import n_star_of, optimal_completion, send_fraction, time_on_nodes
from dlsim.realtime.core.orders import set_rank
from dlsim.realtime.core.splits import (
    BY_EXACT,
    BY_USER,
    USER_SHARES,
    n_min_from,
    time_from_common_start,
    time_in_rounds,
)
from dlsim.realtime.core.state import CALLS_USER, ENTRY, idle_at, seeks_offer
from dlsim.realtime.core.user_rules import NODES_RULE, ask_rule

#: The rules: all nodes; the user's number; the fewest by E(n); the fewest, and all that are idle
#: then ([9] of paper I); the fewest by the true optimum; by UMR; by a user's shares; a user's
#: function.
EVERY_NODE, REQUESTED, FEWEST, FRAGMENT, FEWEST_BY_OPTIMUM = range(5)
FEWEST_IN_ROUNDS, FEWEST_BY_SHARES, USER_NODES = range(5, 8)
#: Codes of `dlsim.realtime.model.NODE_RULES` and of the fewest nodes under a partition.
NODE_RULE_CODES = range(FEWEST_BY_SHARES)
#: The answer of a task that cannot meet its deadline at t, nor later.
NEVER = -1


# --- the rules ------------------------------------------------------------------------------------


@compiled(inline=True)
def fixed_nodes(task, t, pool, state):
    """Return the number that was known at arrival, while E(n) meets the deadline."""
    one, rules, idle = state.tasks[task], state.rules, pool.size.nodes
    if rules.asks_user:
        return one.n_min if one.n_min > 0 else NEVER
    if rules.partition == BY_USER:
        return one.n_min
    if rules.partition == BY_EXACT and rules.all_nodes:  # its optimum says when the task ends
        is_late = one.n_min <= idle and optimum_on(task, pool, state) > one.due_tol
        return NEVER if is_late else one.n_min
    if one.n_min == 0 or t + one.duration > one.due_tol:
        return NEVER
    if rules.node_rule == FRAGMENT:
        return with_idle_nodes(one.n_min, task, idle, state)
    return one.n_min


@compiled(inline=True)
def with_idle_nodes(n, task, idle, state):
    """Return n or, where so many nodes are idle, all idle ones on which the task is faster."""
    return max(n, min(idle, state.tasks[task].n_star)) if 0 < n <= idle else n


@compiled(inline=True)
def n_min_at(task, t, low, state):
    """Return n_min, the fewest nodes that meet the deadline from t on; they are at least `low`."""
    n = n_min_from(t, task, max(1, low), state)
    return n if n > 0 else NEVER


@compiled(inline=True)
def fewest_nodes_by_optimum(task, t, pool, state):
    """Return the fewest nodes of a pool whose true optimum meets the deadline."""
    one, rules = state.tasks[task], state.rules
    n, _ = count_carrying(pool, one.due_tol, one.sigma, rules.send_part, state.table.time_per_unit)
    if n > 0:
        return n
    # an offer may be met by all nodes, where the deadline asked for has passed
    waits = pool.size.nodes < rules.nodes and (t < one.due_tol or seeks_offer(task, state))
    return rules.nodes + 1 if waits else NEVER


def fewest_nodes_by_shares(task, nodes, state):
    """Return the fewest nodes of `state.release` that are in time by a user's shares, or 0."""
    entry = zero_recarray(1, ENTRY)[0]
    entry.task, entry.kind, entry.rounds = task, USER_SHARES, 1
    for n in range(1, nodes + 1):
        entry.nodes = n
        completion, _ = compute_chunks(entry, state.chunks, state)
        if completion <= state.tasks[task].due_tol:
            return n
    return 0


def nodes_by_user(task, t, waiting, pool, state):
    """Return the number that a user's function or shares ask for at t."""
    rules, idle = state.rules, pool.size.nodes
    if rules.node_rule == USER_NODES:
        n = int(ask_rule(NODES_RULE, task, 0, t, idle, waiting, state))
        return n if n > 0 else NEVER
    fill_releases(pool, state.release)
    n = fewest_nodes_by_shares(task, idle, state)
    if n > 0:
        return n
    return rules.nodes + 1 if t < state.tasks[task].due_tol and idle < rules.nodes else NEVER


@compiled(inline=True)
def nodes_wanted(task, t, low, waiting, pool, state):
    """Return how many nodes a task takes if it starts at t; more than are idle to wait; NEVER.

    The pool holds the idle nodes, `low` is a lower bound of n_min, and `waiting` is how many tasks
    are still to be planned.
    """
    rules = state.rules
    if rules.fixed_nodes:
        return fixed_nodes(task, t, pool, state)
    if rules.node_rule == FEWEST:
        return n_min_at(task, t, low, state)
    if rules.node_rule == FEWEST_IN_ROUNDS:
        return n_min_at(task, t, 1, state)
    if rules.node_rule == FRAGMENT:
        return with_idle_nodes(n_min_at(task, t, low, state), task, pool.size.nodes, state)
    if rules.node_rule == FEWEST_BY_OPTIMUM:
        return fewest_nodes_by_optimum(task, t, pool, state)
    if CALLS_USER and rules.asks_user:
        return nodes_by_user(task, t, waiting, pool, state)
    raise ValueError("no rule for nodes has this code")


# --- the next deadline of an offer ----------------------------------------------------------------


@compiled
def next_deadline_of_fixed(task, t, pool, state):
    """Return the smallest deadline that a task meets on its fixed number of nodes from t on."""
    if state.rules.partition == BY_EXACT and state.rules.all_nodes:
        return optimum_on(task, pool, state)
    return t + state.tasks[task].duration


@compiled
def next_deadline(task, t, n, most, pool, state):
    """Return the smallest later deadline at which a rule's answer n at t would change.

    Only answers of up to `most` nodes count.
    """
    one, rules, table = state.tasks[task], state.rules, state.table
    if rules.fixed_nodes:
        is_late = n == NEVER and one.n_min <= most
        return next_deadline_of_fixed(task, t, pool, state) if is_late else np.inf
    if rules.node_rule == FEWEST_BY_OPTIMUM:
        return next_optimum(task, n, pool, state)
    if rules.node_rule == FEWEST_IN_ROUNDS:
        fewer = most if n == NEVER else min(n - 1, most)
        return t + least_time_in_rounds(task, fewer, state)
    if rules.node_rule == FRAGMENT and n != NEVER:  # the idle nodes beyond n_min change nothing
        n = n_min_at(task, t, 1, state)
    fewer = min(one.n_star if n == NEVER else n - 1, most)
    if fewer == 0:
        return np.inf
    return t + time_on_nodes(one.sigma, fewer, table.time_per_unit, table.setup_time)


@compiled
def least_time_in_rounds(task, most, state):
    """Return the least time of a task in rounds on 1..most nodes that start together."""
    least = np.inf
    for n in range(1, most + 1):
        time, _ = time_in_rounds(task, n, state)
        least = min(least, time)
    return least


# --- the true optimum on a pool -------------------------------------------------------------------


@compiled
def optimum_on(task, pool, state):
    """Return the earliest completion of a task in one round on the nodes of a pool."""
    sigma, part, unit = state.tasks[task].sigma, state.rules.send_part, state.table.time_per_unit
    end, _, _ = optimal_completion(pool.releases, pool.size.groups, sigma, part, unit)
    return end


@compiled
def fewest_that_carry(sigma, closed, window, run, count, time_per_unit):
    """Return the fewest of `count` nodes that carry a load within a window, or 0.

    They follow `run` nodes in one run of sends; the runs before it carry `closed`.
    """
    if not closed + window / time_per_unit[run + count] >= sigma:
        return 0
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if closed + window / time_per_unit[run + middle] >= sigma:
            high = middle
        else:
            low = middle
    return high


@compiled
def count_carrying(pool, due, sigma, part, time_per_unit):
    """Return the fewest nodes of a pool that carry sigma by a deadline, or 0; and their groups."""
    groups = pool.size.groups
    head, run, closed, before = 0.0, 0, 0.0, 0
    for g in range(groups):
        time, count = pool.releases[g].time, pool.releases[g].nodes
        if time < due:
            if run > 0 and time > head + (due - head) * send_fraction(run, part, time_per_unit):
                closed = closed + (due - head) / time_per_unit[run]
                run = 0
            if run == 0:
                head = time
            n = fewest_that_carry(sigma, closed, due - head, run, count, time_per_unit)
            if n > 0:
                return before + n, g + 1
            run += count
        before += count
    return 0, groups


@compiled
def next_optimum(task, n, pool, state):
    """Return the deadline at which one node less than n would do, or all where n do not."""
    one, size = state.tasks[task], pool.size
    if n == 1 or size.groups == 0:
        return np.inf
    unit, groups = state.table.time_per_unit, size.groups
    found, g = count_carrying(pool, one.due_tol, one.sigma, state.rules.send_part, unit)
    if found == 0:
        return optimum_on(task, pool, state)
    total = 0
    for k in range(g):
        total += pool.releases[k].nodes
    last = pool.releases[g - 1]
    nodes = last.nodes
    last.nodes = nodes - (total - found) - 1
    size.groups = g - 1 if last.nodes == 0 else g
    end = optimum_on(task, pool, state)
    last.nodes, size.groups = nodes, groups
    return end


# --- a newcomer -----------------------------------------------------------------------------------


@compiled
def fill_releases(pool, release):
    """Write the releases of a pool node by node; return how many there are."""
    n = 0
    for g in range(pool.size.groups):
        group = pool.releases[g]
        for k in range(n, n + group.nodes):
            release[k] = group.time
        n += group.nodes
    return n


def nodes_by_user_at_arrival(task, now, state):
    """Return the number that a user's function, or shares, ask for at a newcomer's test, or 0."""
    rules = state.rules
    if rules.node_rule == USER_NODES:
        idle, _ = idle_at(now, state)
        return int(ask_rule(NODES_RULE, task, 0, now, idle, 1, state))
    if rules.frozen or rules.by_policy:
        state.release[:] = now
        return fewest_nodes_by_shares(task, rules.nodes, state)
    return 0


@compiled(inline=True)
def could_meet_alone(task, now, state):
    """Tell whether a task could meet its deadline alone, by E(n), which falls up to N*."""
    one, unit, setup = state.tasks[task], state.table.time_per_unit, state.table.setup_time
    slowest = time_on_nodes(one.sigma, 1, unit, setup)
    fastest = time_on_nodes(one.sigma, one.n_star, unit, setup)
    return now + min(slowest, fastest) <= one.due_tol


@compiled(inline=True)
def init_newcomer(task, now, due, state):
    """Set a newcomer's deadline and its nodes at its test; tell whether it could meet it alone."""
    one, rules = state.tasks[task], state.rules
    one.due, one.due_tol = due, deadline_with_tolerance(due, due - now)
    set_rank(task, state)
    one.n_star = n_star_of(one.sigma, state.table.min_size, rules.nodes)
    if CALLS_USER and rules.asks_user:
        one.n_min = nodes_by_user_at_arrival(task, now, state)
        return True
    if rules.nodes_at_arrival:
        one.n_min = rules.nodes if rules.node_rule == EVERY_NODE else one.requested
        if rules.partition == BY_EXACT:  # if computing is free, the first node has all of it
            one.n_min = one.n_star
        one.duration = time_from_common_start(task, one.n_min, state)
        return now + one.duration <= one.due_tol
    if not rules.n_min_at_arrival:
        one.n_min = 1  # a lower bound: the number is found when the task is planned
        return could_meet_alone(task, now, state)
    one.n_min = n_min_from(now, task, 1, state)
    one.duration = time_from_common_start(task, max(1, one.n_min), state)
    return one.n_min > 0


@compiled
def earliest_deadline(task, now, state):
    """Return the smallest absolute deadline that a task could meet if it started now, alone."""
    one, rules, table = state.tasks[task], state.rules, state.table
    if rules.in_rounds:
        return now + least_time_in_rounds(task, rules.nodes, state)
    n = n_star_of(one.sigma, table.min_size, rules.nodes)
    if rules.all_nodes and not rules.best:
        n = rules.nodes
    elif rules.node_rule == REQUESTED:
        n = one.requested
    return now + time_on_nodes(one.sigma, n, table.time_per_unit, table.setup_time)
