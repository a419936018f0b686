"""The schedulability test of MCDF, which decides for every order and every rule for nodes.

`schedulability_test` plans a newcomer and all tasks that wait anew, from instant to instant at
which nodes become free. The newcomer is admitted if all of them meet their deadlines. Where tasks
are served one after another by a rank that does not change with time, `line_admission` decides
faster.

Source: paper M, section 5, Schedulability_Test(), whose line numbers are cited.
"""

import numpy as np

from dlsim.compiled import compiled, deadline_with_tolerance, same_instant
from dlsim.realtime.core.node_rules import FEWEST, NEVER, USER_NODES, next_deadline, nodes_wanted
from dlsim.realtime.core.orders import DEADLINE_ORDER, MCDF_ORDER, USER_ORDER, line_rank, rank_at
from dlsim.realtime.core.placement import place_task
from dlsim.realtime.core.splits import BY_PIECES, BY_USER, starts_together
from dlsim.realtime.core.state import (
    copy_block,
    copy_plan,
    is_due,
    next_release,
    pop,
    set_pending,
    sort_pending,
)
from dlsim.realtime.core.user_rules import has_failed


@compiled
def next_rank_change(newcomer, count, tasks, rules, state):
    """Return the smallest later deadline of a newcomer at which its place in EDF order changes."""
    later, span, due = np.inf, state.counters[0].span, tasks[newcomer].due
    if rules.offers and rules.order == DEADLINE_ORDER:
        for k in range(count):
            other = tasks[state.pending[k].task].due
            if (
                state.pending[k].task != newcomer
                and not deadline_with_tolerance(other, span) <= due
            ):
                later = min(later, other if other > due else deadline_with_tolerance(other, span))
    return later


@compiled
def add_released(t, floor, groups, idle, next_block, planned_count, state):
    """Add the nodes that running and planned tasks release by t to `state.idle_nodes`."""
    counters, pool = state.counters[0], state.idle_nodes
    while True:
        running = state.running[next_block].time if next_block < counters.end_running else np.inf
        planned = state.planned_ends[0].time if planned_count > 0 else np.inf
        time = min(running, planned)
        if time == np.inf or not is_due(time, t, counters.span):
            return groups, idle, next_block, planned_count
        if planned < running:
            nodes = state.planned_ends[0].nodes
            planned_count = pop(state.planned_ends, planned_count)
        else:
            nodes = state.running[next_block].nodes
            next_block += 1
        time, k = max(floor, time), groups
        while k > 0 and pool[k - 1].time > time:  # a piece may end before it is added
            copy_block(pool[k - 1], k, pool)
            k -= 1
        pool[k].time, pool[k].nodes = time, nodes
        groups, idle = groups + 1, idle + nodes


@compiled
def delay_releases(floor, groups, state):
    """Let no idle node be used before an instant."""
    for g in range(groups):
        state.idle_nodes[g].time = max(state.idle_nodes[g].time, floor)


@compiled
def choose_idle_nodes(n, groups, state):
    """Move the n idle nodes that were released first to the chosen ones; count both's groups."""
    idle, chosen = state.idle_nodes, state.chosen_nodes
    filled, used = 0, 0
    while n > 0:
        nodes, time = min(n, idle[used].nodes), idle[used].time
        if filled > 0 and same_instant(time, chosen[filled - 1].time, state.counters[0].span):
            chosen[filled - 1].nodes += nodes
        else:
            chosen[filled].time, chosen[filled].nodes = time, nodes
            filled += 1
        idle[used].nodes -= nodes
        n -= nodes
        used += idle[used].nodes == 0
    for g in range(used, groups):
        copy_block(idle[g], g - used, idle)
    return filled, groups - used


@compiled(inline=True)
def order_pending(newcomer, t, is_new, idle, groups, first, end, tasks, rules, state, table):
    """Order the tasks that wait by their ranks at t; tell whether all can still be in time.

    Return also the smallest later deadline of the newcomer at which its number of nodes at t
    would change. Ranks by the cost derivative change with the numbers of nodes alone.
    """
    later, changes = np.inf, is_new or rules.order == USER_ORDER
    for k in range(first, end):
        one = state.pending[k]
        asked = rules.offers and one.task == newcomer
        n = nodes_wanted(
            one.task,
            t,
            one.nodes,
            idle,
            groups,
            state.idle_nodes,
            end - first,
            asked,
            tasks,
            rules,
            state,
            table,
        )
        if asked:
            later = next_deadline(
                newcomer, t, n, rules.nodes, groups, state.idle_nodes, tasks, rules, table
            )
        if n == NEVER:
            return False, later
        if rules.order == USER_ORDER:
            on = min(n, rules.nodes)
            one.rank = rank_at(one.task, on, t, idle, end - first, tasks, rules, table)
        changes = changes or n != one.nodes
        if rules.node_rule == FEWEST:
            one.nodes = n
    if changes:
        for k in range(first, end if rules.order == MCDF_ORDER else first):
            one = state.pending[k]
            one.rank = rank_at(one.task, one.nodes, t, idle, end - first, tasks, rules, table)
        sort_pending(first, end, state)
    return not has_failed(rules.user), later


@compiled
def ends_by_chunks(rules):
    """Tell whether only the chunks of a task say when it ends."""
    serial = rules.partition == BY_PIECES and rules.shared
    return rules.node_rule == USER_NODES or rules.partition == BY_USER or serial


@compiled
def schedulability_test(newcomer, now, tasks, rules, state, table):
    """Test a newcomer: plan all tasks that wait anew; put the plan in force if all are in time.

    Return whether it is admitted, and the smallest later deadline at which the answer could
    change.
    """
    counters = state.counters[0]
    link_free, idle, next_block = counters.link_free, counters.idle, counters.first_running
    first, end = 0, counters.end_planned - counters.first_planned + 1
    place, groups, planned_count, t = 0, 0, 0, now
    for k in range(end):
        task = state.plan[0, counters.first_planned + k - 1].task if k else newcomer
        set_pending(k, task, tasks[task].n_min, line_rank(task, tasks, rules), state)
    sort_pending(first, end, state)
    is_timed = rules.order == MCDF_ORDER or rules.order == USER_ORDER
    needs_order, uncertain = is_timed, ends_by_chunks(rules)
    counts_all = rules.offers or rules.has_user_rules
    later = next_rank_change(newcomer, end, tasks, rules, state)
    if idle > 0:
        state.idle_nodes[0].time, state.idle_nodes[0].nodes = now, idle
        groups = 1
    if idle == 0 or (rules.shared and not is_due(link_free, t, counters.span)):
        t = max(t, next_release(t, idle, link_free, next_block, planned_count, rules.shared, state))
    while True:
        groups, idle, next_block, planned_count = add_released(
            t, now, groups, idle, next_block, planned_count, state
        )
        if needs_order:
            ok, beyond = order_pending(
                newcomer,
                t,
                first == 0 and place == 0,
                idle,
                groups,
                first,
                end,
                tasks,
                rules,
                state,
                table,
            )
            later = min(later, beyond)
            if not ok:
                return False, later
            needs_order = not rules.once
        kept, blocked, k = first, False, first
        while k < end and (counts_all or (idle > 0 and not blocked)):
            one = state.pending[k]
            task, asked = one.task, rules.offers and one.task == newcomer
            floor = max(now, link_free) if rules.shared else now
            delay_releases(
                max(floor, t) if starts_together(rules.partition) else floor, groups, state
            )
            n = nodes_wanted(
                task,
                t,
                one.nodes,
                idle,
                groups,
                state.idle_nodes,
                kept - first + end - k,
                asked,
                tasks,
                rules,
                state,
                table,
            )
            if asked:
                beyond = next_deadline(
                    task, t, n, rules.nodes, groups, state.idle_nodes, tasks, rules, table
                )
                later = min(later, beyond)
            if n == NEVER:
                return False, later
            if rules.node_rule == FEWEST:
                one.nodes = n
            k += 1
            if n > idle or blocked:
                blocked = blocked or rules.strict
                set_pending(kept, task, one.nodes, one.rank, state)
                kept += 1
                continue
            filled, groups = choose_idle_nodes(n, groups, state)
            idle -= n
            planned_count, link_free = place_task(
                True,
                task,
                n,
                filled,
                place,
                one.rank,
                planned_count,
                link_free,
                tasks,
                rules,
                state,
                table,
            )
            entry = state.plan[1, place]
            if (uncertain and entry.end > tasks[task].due_tol) or has_failed(rules.user):
                return False, min(later, entry.end) if task == newcomer else later
            place += 1
            blocked = rules.shared and not is_due(link_free, t, counters.span)
            groups, idle, next_block, planned_count = add_released(
                t, now, groups, idle, next_block, planned_count, state
            )
        placed = k - kept
        while placed > 0 and kept > first:  # tasks that wait move up to those not looked at
            kept -= 1
            one = state.pending[kept]
            set_pending(kept + placed, one.task, one.nodes, one.rank, state)
        first += placed
        if first == end:
            copy_plan(state.plan[1, :place], state.plan[0, counters.first_planned :])
            counters.end_planned = counters.first_planned + place
            return True, later
        t = next_release(t, idle, link_free, next_block, planned_count, rules.shared, state)
