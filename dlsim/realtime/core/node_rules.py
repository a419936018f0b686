"""How many nodes a task takes: one function for each rule, and what a newcomer brings.

Every rule is asked at an instant t for which a pool of nodes is free: how many nodes does the
task take if it starts at t? The answer is a number that may exceed the pool, so that the task
waits for more nodes, or NEVER where its deadline can no longer be met. n_min never falls as time
goes on; so a number that was found is the lower bound of the next search.

Source: paper M, section 5, l.8-10 of Schedulability_Test(); paper I, sections 4.2 to 4.5, and
its reference [6] as the authors' later simulator has it: the fewest n with r_n + E(n) <= A + D.
"""

import numpy as np

from dlsim.compiled import compiled, deadline_with_tolerance
from dlsim.realtime.core.formulas import n_star_of, optimal_completion, send_fraction, time_on_nodes
from dlsim.realtime.core.orders import set_rank
from dlsim.realtime.core.splits import (
    BY_EXACT,
    BY_USER,
    USER_SHARES,
    chunk_times,
    n_min_from,
    time_from_common_start,
    time_in_rounds,
)
from dlsim.realtime.core.state import CALLS_USER, idle_at
from dlsim.realtime.core.user_rules import NODES_RULE, ask_rule, fill_user_shares

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


@compiled
def fixed_nodes(task, t, idle, groups, pool, tasks, rules, table):
    """Return the number that was known at arrival, while E(n) meets the deadline."""
    one = tasks[task]
    if rules.asks_user:
        return one.n_min if one.n_min > 0 else NEVER
    if rules.partition == BY_USER:
        return one.n_min
    if rules.partition == BY_EXACT and rules.all_nodes:  # its optimum says when the task ends
        if one.n_min <= idle and optimum_on(task, groups, pool, tasks, rules, table) > one.due_tol:
            return NEVER
        return one.n_min
    if one.n_min == 0 or t + one.duration > one.due_tol:
        return NEVER
    if rules.node_rule == FRAGMENT and one.n_min <= idle:
        return max(one.n_min, min(idle, one.n_star))
    return one.n_min


@compiled(inline=True)
def n_min_at(task, t, low, tasks, rules, table):
    """Return n_min, the fewest nodes that meet the deadline from t on; they are at least `low`."""
    n = n_min_from(t, task, max(1, low), tasks, rules, table)
    return n if n > 0 else NEVER


@compiled
def fewest_nodes_by_optimum(task, t, idle, groups, pool, asked, tasks, rules, table):
    """Return the fewest nodes of a pool whose true optimum meets the deadline."""
    one, part = tasks[task], rules.send_part
    n, _ = count_carrying(pool, groups, one.due_tol, one.sigma, part, table.time_per_unit)
    if n > 0:
        return n
    # an offer may be met by all nodes, where the deadline asked for has passed
    waits = idle < rules.nodes and (t < one.due_tol or asked)
    return rules.nodes + 1 if waits else NEVER


def fewest_nodes_by_shares(task, nodes, tasks, rules, state, table):
    """Return the fewest nodes of `state.release` that are in time by a user's shares, or 0."""
    one, costs = tasks[task], (rules.cms, rules.cps, rules.st, rules.sc)
    for n in range(1, nodes + 1):
        fill_user_shares(task, one.sigma, state.release, n, rules, table, state.chunks, 0)
        completion, _ = chunk_times(
            USER_SHARES,
            state.release,
            n,
            one.sigma,
            1,
            0.0,
            costs,
            table.time_per_unit,
            table.first_share_offset,
            rules.shared,
            state.chunks,
            0,
        )
        if completion <= one.due_tol:
            return n
    return 0


def nodes_by_user(task, t, idle, groups, pool, waiting, tasks, rules, state, table):
    """Return the number that a user's function or shares ask for at t."""
    if rules.node_rule == USER_NODES:
        n = int(ask_rule(NODES_RULE, task, 0, t, idle, waiting, tasks, rules, table))
        return n if n > 0 else NEVER
    fill_releases(groups, pool, state.release)
    n = fewest_nodes_by_shares(task, idle, tasks, rules, state, table)
    if n > 0:
        return n
    return rules.nodes + 1 if t < tasks[task].due_tol and idle < rules.nodes else NEVER


@compiled(inline=True)
def nodes_wanted(task, t, low, idle, groups, pool, waiting, asked, tasks, rules, state, table):
    """Return how many nodes a task takes if it starts at t; more than are idle to wait; NEVER.

    The pool holds the releases of the idle nodes, `low` is a lower bound of n_min, `waiting` how
    many tasks are still to be planned, and `asked` tells whether an offer is sought.
    """
    if rules.fixed_nodes:
        return fixed_nodes(task, t, idle, groups, pool, tasks, rules, table)
    if rules.node_rule == FEWEST:
        return n_min_at(task, t, low, tasks, rules, table)
    if rules.node_rule == FEWEST_IN_ROUNDS:
        return n_min_at(task, t, 1, tasks, rules, table)
    if rules.node_rule == FRAGMENT:
        n = n_min_at(task, t, low, tasks, rules, table)
        return max(n, min(idle, tasks[task].n_star)) if 0 < n <= idle else n
    if rules.node_rule == FEWEST_BY_OPTIMUM:
        return fewest_nodes_by_optimum(task, t, idle, groups, pool, asked, tasks, rules, table)
    if CALLS_USER and rules.asks_user:
        return nodes_by_user(task, t, idle, groups, pool, waiting, tasks, rules, state, table)
    raise ValueError("no rule for nodes has this code")


@compiled
def next_deadline(task, t, n, most, groups, pool, tasks, rules, table):
    """Return the smallest later deadline at which a rule's answer n at t would change.

    Only answers of up to `most` nodes count.
    """
    one = tasks[task]
    if rules.fixed_nodes:
        if n != NEVER or one.n_min > most:
            return np.inf
        if rules.partition == BY_EXACT and rules.all_nodes:
            return optimum_on(task, groups, pool, tasks, rules, table)
        return t + one.duration
    if rules.node_rule == FEWEST_BY_OPTIMUM:
        return next_optimum(task, n, groups, pool, tasks, rules, table)
    if rules.node_rule == FEWEST_IN_ROUNDS:
        fewer = most if n == NEVER else min(n - 1, most)
        return t + least_time_in_rounds(task, fewer, tasks, rules)
    if rules.node_rule == FRAGMENT and n != NEVER:  # the idle nodes beyond n_min change nothing
        n = n_min_at(task, t, 1, tasks, rules, table)
    fewer = min(one.n_star if n == NEVER else n - 1, most)
    if fewer == 0:
        return np.inf
    return t + time_on_nodes(one.sigma, fewer, table.time_per_unit, table.setup_time)


@compiled
def least_time_in_rounds(task, most, tasks, rules):
    """Return the least time of a task in rounds on 1..most nodes that start together."""
    least = np.inf
    for n in range(1, most + 1):
        time, _ = time_in_rounds(task, n, tasks, rules)
        least = min(least, time)
    return least


# --- the true optimum on a pool -------------------------------------------------------------------


@compiled
def optimum_on(task, groups, pool, tasks, rules, table):
    """Return the earliest completion of a task in one round on the nodes of a pool."""
    sigma, part = tasks[task].sigma, rules.send_part
    end, _, _ = optimal_completion(pool, groups, sigma, part, table.time_per_unit)
    return end


@compiled
def add_group(due, head, run, closed, time, before, total, sigma, part, time_per_unit):
    """Add a group to nodes that are filled up to a deadline; find where they carry the load.

    `head`, `run` and `closed` are the release and the nodes of the run of sends in progress and
    the data of the runs before it; the group releases the nodes before+1..total at `time`.
    Return the fewest nodes that carry sigma, 0 if none of these, and the three with the group.
    """
    if run > 0 and time > head + (due - head) * send_fraction(run, part, time_per_unit):
        closed = closed + (due - head) / time_per_unit[run]
        run = 0
    if run == 0:
        head = time
    count = total - before
    if not closed + (due - head) / time_per_unit[run + count] >= sigma:
        return 0, head, run + count, closed
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if closed + (due - head) / time_per_unit[run + middle] >= sigma:
            high = middle
        else:
            low = middle
    return before + high, head, run + high, closed


@compiled
def count_carrying(pool, groups, due, sigma, part, time_per_unit):
    """Return the fewest nodes of a pool that carry sigma by a deadline, or 0; and their groups."""
    head, run, closed, total, g, n = 0.0, 0, 0.0, 0, 0, 0
    while n == 0 and g < groups:
        before, total = total, total + pool[g].nodes
        if pool[g].time < due:
            n, head, run, closed = add_group(
                due, head, run, closed, pool[g].time, before, total, sigma, part, time_per_unit
            )
        g += 1
    return n, g


@compiled
def next_optimum(task, n, groups, pool, tasks, rules, table):
    """Return the deadline at which one node less than n would do, or all where n do not."""
    one, part = tasks[task], rules.send_part
    if n == 1 or groups == 0:
        return np.inf
    found, g = count_carrying(pool, groups, one.due_tol, one.sigma, part, table.time_per_unit)
    if found == 0:
        return optimum_on(task, groups, pool, tasks, rules, table)
    total = 0
    for k in range(g):
        total += pool[k].nodes
    last = pool[g - 1].nodes
    pool[g - 1].nodes = last - (total - found) - 1
    filled = g - 1 if pool[g - 1].nodes == 0 else g
    end = optimum_on(task, filled, pool, tasks, rules, table)
    pool[g - 1].nodes = last
    return end


# --- a newcomer -----------------------------------------------------------------------------------


@compiled
def fill_releases(groups, pool, release):
    """Write the releases of a pool node by node; return how many there are."""
    n = 0
    for g in range(groups):
        for k in range(n, n + pool[g].nodes):
            release[k] = pool[g].time
        n += pool[g].nodes
    return n


@compiled(inline=True)
def init_newcomer(task, now, due, tasks, rules, state, table):
    """Set a newcomer's deadline and its nodes at its test; tell whether it could meet it alone."""
    one = tasks[task]
    one.due, one.due_tol = due, deadline_with_tolerance(due, due - now)
    set_rank(task, tasks, rules)
    one.n_star = n_star_of(one.sigma, table.min_size, rules.nodes)
    if CALLS_USER and rules.asks_user:
        one.n_min = 0
        if rules.node_rule == USER_NODES:
            idle, _ = idle_at(now, state)
            one.n_min = int(ask_rule(NODES_RULE, task, 0, now, idle, 1, tasks, rules, table))
        elif rules.frozen or rules.by_policy:
            state.release[:] = now
            one.n_min = fewest_nodes_by_shares(task, rules.nodes, tasks, rules, state, table)
        return True
    if rules.nodes_at_arrival:
        one.n_min = rules.nodes if rules.node_rule == EVERY_NODE else one.requested
        if rules.partition == BY_EXACT:  # if computing is free, the first node has all of it
            one.n_min = one.n_star
        one.duration = time_from_common_start(task, one.n_min, tasks, rules, table)
        return now + one.duration <= one.due_tol
    if not rules.n_min_at_arrival:
        one.n_min = 1  # a lower bound: the number is found when the task is planned
        unit, setup = table.time_per_unit, table.setup_time
        least = min(
            time_on_nodes(one.sigma, 1, unit, setup),
            time_on_nodes(one.sigma, one.n_star, unit, setup),
        )
        return now + least <= one.due_tol
    one.n_min = n_min_from(now, task, 1, tasks, rules, table)
    one.duration = time_from_common_start(task, max(1, one.n_min), tasks, rules, table)
    return one.n_min > 0


@compiled
def earliest_deadline(task, now, tasks, rules, table):
    """Return the smallest absolute deadline that a task could meet if it started now, alone."""
    one = tasks[task]
    if rules.in_rounds:
        return now + least_time_in_rounds(task, rules.nodes, tasks, rules)
    n = n_star_of(one.sigma, table.min_size, rules.nodes)
    if rules.all_nodes and not rules.best:
        n = rules.nodes
    elif rules.node_rule == REQUESTED:
        n = one.requested
    return now + time_on_nodes(one.sigma, n, table.time_per_unit, table.setup_time)
