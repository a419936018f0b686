"""The schedulability test of MCDF, which decides for every order and every rule for nodes.

`schedulability_test` plans a newcomer and all tasks that wait anew, from instant to instant at
which nodes become free. The newcomer is admitted if all of them meet their deadlines. Where tasks
are served one after another by a rank that does not change with time, `line_admission` decides
faster.

Source: paper M, section 5, Schedulability_Test(), whose line numbers are cited.
"""

import numpy as np

from dlsim.compiled import compiled, deadline_with_tolerance, times_tie
from dlsim.realtime.core.node_rules import FEWEST, NEVER, next_deadline, nodes_wanted
from dlsim.realtime.core.orders import DEADLINE_ORDER, MCDF_ORDER, USER_ORDER, rank_at
from dlsim.realtime.core.placement import place_task
from dlsim.realtime.core.state import (
    CALLS_USER,
    begin_plan,
    copy_block,
    copy_plan,
    is_due,
    next_release,
    next_running,
    remove_planned_end,
    set_pending,
    sort_pending,
)


@compiled
def next_rank_change(newcomer, count, tasks, rules, state):
    """Return the smallest later deadline of a newcomer at which its place in EDF order changes."""
    later, span, due = np.inf, state.counters.span, tasks[newcomer].due
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
def add_released(t, floor, state):
    """Add the nodes that running and planned tasks release by t to `state.idle_nodes`."""
    planning, pool = state.planning, state.idle_nodes
    while True:
        running = next_running(state)
        planned = state.planned_ends[0].time if planning.planned_count > 0 else np.inf
        time = min(running, planned)
        if time == np.inf or not is_due(time, t, state.counters.span):
            return
        if planned < running:
            nodes = state.planned_ends[0].nodes
            remove_planned_end(state)
        else:
            nodes = state.running[planning.next_block].nodes
            planning.next_block += 1
        time, k = max(floor, time), planning.idle_groups
        while k > 0 and pool[k - 1].time > time:  # a piece may end before it is added
            copy_block(pool[k - 1], k, pool)
            k -= 1
        pool[k].time, pool[k].nodes = time, nodes
        planning.idle_groups += 1
        planning.idle += nodes


@compiled
def delay_releases(floor, state):
    """Let no idle node be used before an instant."""
    for g in range(state.planning.idle_groups):
        state.idle_nodes[g].time = max(state.idle_nodes[g].time, floor)


@compiled
def choose_idle_nodes(n, state):
    """Move the n idle nodes that were released first to the chosen ones."""
    idle, chosen, planning, span = (
        state.idle_nodes,
        state.chosen_nodes,
        state.planning,
        state.counters.span,
    )
    filled, used = 0, 0
    planning.idle -= n
    while n > 0:
        nodes, time = min(n, idle[used].nodes), idle[used].time
        if filled > 0 and times_tie(time, chosen[filled - 1].time, span):
            chosen[filled - 1].nodes += nodes
        else:
            chosen[filled].time, chosen[filled].nodes = time, nodes
            filled += 1
        idle[used].nodes -= nodes
        n -= nodes
        used += idle[used].nodes == 0
    for g in range(used, planning.idle_groups):
        copy_block(idle[g], g - used, idle)
    planning.chosen_groups = filled
    planning.idle_groups -= used


@compiled(inline=True)
def count_nodes(newcomer, task, t, low, waiting, tasks, rules, state, table):
    """Return how many of the idle nodes a task takes at t (`node_rules.nodes_wanted`).

    If an offer to the newcomer is sought, return also the smallest later deadline at which its
    number would change.
    """
    idle, groups, pool = state.planning.idle, state.planning.idle_groups, state.idle_nodes
    asked, later = rules.offers and task == newcomer, np.inf
    n = nodes_wanted(task, t, low, idle, groups, pool, waiting, asked, tasks, rules, state, table)
    if asked:
        later = next_deadline(task, t, n, rules.nodes, groups, pool, tasks, rules, table)
    return n, later


@compiled(inline=True)
def order_pending(newcomer, t, is_new, first, end, tasks, rules, state, table):
    """Order the tasks that wait by their ranks at t; tell whether all can still be in time.

    Return also the smallest later deadline of the newcomer at which its number of nodes at t
    would change. Ranks by the cost derivative change with the numbers of nodes alone.
    """
    later, changes = np.inf, is_new or rules.order == USER_ORDER
    idle, waiting = state.planning.idle, end - first
    for k in range(first, end):
        one = state.pending[k]
        n, beyond = count_nodes(
            newcomer, one.task, t, one.nodes, waiting, tasks, rules, state, table
        )
        later = min(later, beyond)
        if n == NEVER:
            return False, later
        if CALLS_USER and rules.order == USER_ORDER:
            on = min(n, rules.nodes)
            one.rank = rank_at(one.task, on, t, idle, waiting, tasks, rules, table)
        changes = changes or n != one.nodes
        if rules.node_rule == FEWEST:
            one.nodes = n
    if changes:
        for k in range(first, end if rules.order == MCDF_ORDER else first):
            one = state.pending[k]
            one.rank = rank_at(one.task, one.nodes, t, idle, waiting, tasks, rules, table)
        sort_pending(first, end, state)
    return True, later


@compiled(inline=True)
def begin_test(newcomer, now, tasks, rules, state):
    """Begin a plan of a newcomer and all tasks that wait; return their number, and its instant."""
    counters, planning = state.counters, state.planning
    count = counters.end_planned - counters.first_planned + 1
    for k in range(count):
        task = state.plan[0, counters.first_planned + k - 1].task if k else newcomer
        set_pending(k, task, tasks[task].n_min, tasks[task].rank, state)
    sort_pending(0, count, state)
    begin_plan(state)
    planning.idle_groups = 0
    if planning.idle > 0:
        state.idle_nodes[0].time, state.idle_nodes[0].nodes = now, planning.idle
        planning.idle_groups = 1
    t = now
    waits_for_link = rules.shared and not is_due(planning.link_free, now, counters.span)
    if planning.idle == 0 or waits_for_link:
        t = max(now, next_release(now, rules.shared, state))
    return count, t


@compiled
def schedulability_test(newcomer, now, tasks, rules, state, table):
    """Test a newcomer: plan all tasks that wait anew; put the plan in force if all are in time.

    Return whether it is admitted, and the smallest later deadline at which the answer could
    change.
    """
    counters, planning = state.counters, state.planning
    end, t = begin_test(newcomer, now, tasks, rules, state)
    later = next_rank_change(newcomer, end, tasks, rules, state)
    first, place, needs_order = 0, 0, rules.is_timed
    looks_at_all = rules.offers or rules.has_user_rules
    while True:
        add_released(t, now, state)
        if needs_order:
            is_new = first == 0 and place == 0
            ok, beyond = order_pending(newcomer, t, is_new, first, end, tasks, rules, state, table)
            later = min(later, beyond)
            if not ok:
                return False, later
            needs_order = not rules.once
        kept, blocked, k = first, False, first
        while k < end and (looks_at_all or (planning.idle > 0 and not blocked)):
            one = state.pending[k]
            task = one.task
            floor = max(now, planning.link_free) if rules.shared else now
            delay_releases(max(floor, t) if rules.from_one_instant else floor, state)
            waiting = kept - first + end - k
            n, beyond = count_nodes(
                newcomer, task, t, one.nodes, waiting, tasks, rules, state, table
            )
            later = min(later, beyond)
            if n == NEVER:
                return False, later
            if rules.node_rule == FEWEST:
                one.nodes = n
            k += 1
            if n > planning.idle or blocked:
                blocked = blocked or rules.strict
                set_pending(kept, task, one.nodes, one.rank, state)
                kept += 1
                continue
            choose_idle_nodes(n, state)
            place_task(task, n, place, one.rank, True, tasks, rules, state, table)
            completion = state.plan[1, place].end
            is_late = rules.ends_by_chunks and completion > tasks[task].due_tol
            if is_late:
                return False, min(later, completion) if task == newcomer else later
            place += 1
            blocked = rules.shared and not is_due(planning.link_free, t, counters.span)
            add_released(t, now, state)
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
        t = next_release(t, rules.shared, state)
