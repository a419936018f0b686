"""The schedulability test of MCDF, which decides for every order and every rule for nodes.

`schedulability_test` plans a newcomer and all tasks that wait anew, from instant to instant at
which nodes become free. The newcomer is admitted if all of them meet their deadlines. Where tasks
are served one after another by a rank that does not change with time, `dlsim.realtime.core.line`
decides faster.

Source: paper M, section 5, Schedulability_Test(), whose line numbers are cited.
"""

import numpy as np

from dlsim.compiled import compiled, deadline_with_tolerance, times_tie
from dlsim.realtime.core.nodes import FEWEST, NEVER, next_deadline, nodes_wanted
from dlsim.realtime.core.orders import DEADLINE_ORDER, MCDF_ORDER, USER_ORDER, rank_at, sort_pending
from dlsim.realtime.core.placement import place_task
from dlsim.realtime.core.state import (
    CALLS_USER,
    NEW,
    PLANNED,
    begin_plan,
    copy_block,
    copy_plan,
    is_due,
    next_release,
    next_running,
    note_deadline,
    remove_planned_end,
    seeks_offer,
    set_pending,
)


@compiled
def note_rank_changes(newcomer, state):
    """Note the later deadlines of a newcomer at which its place in EDF order changes."""
    tasks, span, due = state.tasks, state.counters.span, state.tasks[newcomer].due
    if not (state.rules.offers and state.rules.order == DEADLINE_ORDER):
        return
    for k in range(state.planning.end_pending):
        task = state.pending[k].task
        other = tasks[task].due
        beyond = deadline_with_tolerance(other, span)
        if task != newcomer and not beyond <= due:
            note_deadline(other if other > due else beyond, state)


# --- idle nodes at an instant ---------------------------------------------------------------------


@compiled
def add_idle(time, nodes, state):
    """Add nodes to the idle ones, which are sorted by release."""
    pool, size = state.idle.releases, state.idle.size
    k = size.groups
    while k > 0 and pool[k - 1].time > time:  # a piece may end before it is added
        copy_block(pool[k - 1], k, pool)
        k -= 1
    pool[k].time, pool[k].nodes = time, nodes
    size.groups += 1
    size.nodes += nodes


@compiled
def add_released(t, floor, state):
    """Add the nodes that running and planned tasks release by t to the idle ones."""
    planning = state.planning
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
            nodes = state.running[planning.row, planning.next_block].nodes
            planning.next_block += 1
        add_idle(max(floor, time), nodes, state)


@compiled(inline=True)
def delay_idle_nodes(t, now, state):
    """Let no idle node be used before the link is free or, for tasks of one start, before t."""
    floor = max(now, state.planning.link_free) if state.rules.shared else now
    if state.rules.from_one_instant:
        floor = max(floor, t)
    for g in range(state.idle.size.groups):
        state.idle.releases[g].time = max(state.idle.releases[g].time, floor)


@compiled
def choose_idle_nodes(n, state):
    """Move the n idle nodes that were released first to the chosen ones."""
    idle, chosen, span = state.idle.releases, state.chosen.releases, state.counters.span
    groups, filled, used = state.idle.size.groups, 0, 0
    state.idle.size.nodes -= n
    state.chosen.size.nodes = n
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
    for g in range(used, groups):
        copy_block(idle[g], g - used, idle)
    state.chosen.size.groups, state.idle.size.groups = filled, groups - used


# --- the test -------------------------------------------------------------------------------------


@compiled(inline=True)
def count_nodes(task, t, low, waiting, state):
    """Return how many of the idle nodes a task takes at t (`nodes.nodes_wanted`).

    If an offer to the task is sought, note the deadline at which its number would change.
    """
    n = nodes_wanted(task, t, low, waiting, state.idle, state)
    if seeks_offer(task, state):
        note_deadline(next_deadline(task, t, n, state.rules.nodes, state.idle, state), state)
    return n


@compiled(inline=True)
def order_pending(t, state):
    """Order the tasks that wait by their ranks at t; tell whether all can still be in time.

    Ranks by the cost derivative change with the numbers of nodes alone.
    """
    rules, planning = state.rules, state.planning
    first, end, idle = planning.first_pending, planning.end_pending, state.idle.size.nodes
    waiting, changes = end - first, planning.placed == 0 or rules.order == USER_ORDER
    for k in range(first, end):
        one = state.pending[k]
        n = count_nodes(one.task, t, one.nodes, waiting, state)
        if n == NEVER:
            return False
        if CALLS_USER and rules.order == USER_ORDER:
            one.rank = rank_at(one.task, min(n, rules.nodes), t, idle, waiting, state)
        changes = changes or n != one.nodes
        if rules.node_rule == FEWEST:
            one.nodes = n
    if changes:
        for k in range(first, end if rules.order == MCDF_ORDER else first):
            one = state.pending[k]
            one.rank = rank_at(one.task, one.nodes, t, idle, waiting, state)
        sort_pending(first, end, state)
    return True


@compiled(inline=True)
def begin_test(newcomer, now, state):
    """Begin a plan of a newcomer and all tasks that wait; return its first instant."""
    tasks, counters, planning = state.tasks, state.counters, state.planning
    count = counters.end_planned - counters.first_planned + 1
    for k in range(count):
        task = state.plan[PLANNED, counters.first_planned + k - 1].task if k else newcomer
        set_pending(k, task, tasks[task].n_min, tasks[task].rank, state)
    sort_pending(0, count, state)
    planning.first_pending, planning.end_pending, planning.placed = 0, count, 0
    begin_plan(False, state)
    idle = state.idle.size
    idle.groups = 0
    if idle.nodes > 0:
        state.idle.releases[0].time, state.idle.releases[0].nodes = now, idle.nodes
        idle.groups = 1
    waits_for_link = state.rules.shared and not is_due(planning.link_free, now, counters.span)
    if idle.nodes == 0 or waits_for_link:
        return max(now, next_release(now, state))
    return now


@compiled(inline=True)
def place_on_idle_nodes(task, n, rank, state):
    """Place a task on n idle nodes; tell whether it is in time where only its chunks say so."""
    rules, planning, due = state.rules, state.planning, state.tasks[task].due_tol
    choose_idle_nodes(n, state)
    place_task(task, n, planning.placed, rank, True, state)
    completion = state.plan[NEW, planning.placed].end
    planning.placed += 1
    if not rules.ends_by_chunks or completion <= due:
        return True
    if task == planning.newcomer:
        note_deadline(completion, state)
    return False


@compiled
def move_to_those_not_looked_at(kept, looked_at, state):
    """Move the tasks that still wait, up to `kept`, to those that were not looked at."""
    planning = state.planning
    placed = looked_at - kept
    while placed > 0 and kept > planning.first_pending:
        kept -= 1
        one = state.pending[kept]
        set_pending(kept + placed, one.task, one.nodes, one.rank, state)
    planning.first_pending += placed


@compiled(inline=True)
def may_look_further(blocked, state):
    """Tell whether the next task that waits is asked for its nodes; for offers, always."""
    rules = state.rules
    return rules.offers or rules.has_user_rules or (state.idle.size.nodes > 0 and not blocked)


@compiled(inline=True)
def place_pending(t, now, state):
    """Place the tasks that can start at t, in order; tell whether all can still be in time."""
    rules, planning, idle = state.rules, state.planning, state.idle.size
    first, end = planning.first_pending, planning.end_pending
    kept, blocked, k = first, False, first
    while k < end and may_look_further(blocked, state):
        one = state.pending[k]
        task = one.task
        delay_idle_nodes(t, now, state)
        n = count_nodes(task, t, one.nodes, kept - first + end - k, state)
        if n == NEVER:
            return False
        if rules.node_rule == FEWEST:
            one.nodes = n
        k += 1
        if n > idle.nodes or blocked:
            blocked = blocked or rules.strict
            set_pending(kept, task, one.nodes, one.rank, state)
            kept += 1
            continue
        if not place_on_idle_nodes(task, n, one.rank, state):
            return False
        blocked = rules.shared and not is_due(planning.link_free, t, state.counters.span)
        add_released(t, now, state)
    move_to_those_not_looked_at(kept, k, state)
    return True


@compiled
def schedulability_test(newcomer, now, state):
    """Test a newcomer: plan all tasks that wait anew; put the plan in force if all are in time.

    Return whether it is admitted.
    """
    counters, planning = state.counters, state.planning
    t, needs_order = begin_test(newcomer, now, state), state.rules.ranks_change
    note_rank_changes(newcomer, state)
    while True:
        add_released(t, now, state)
        if needs_order and not order_pending(t, state):
            return False
        needs_order = needs_order and not state.rules.once
        if not place_pending(t, now, state):
            return False
        if planning.first_pending == planning.end_pending:
            placed = state.plan[NEW, : planning.placed]
            copy_plan(placed, state.plan[PLANNED, counters.first_planned :])
            counters.end_planned = counters.first_planned + planning.placed
            return True
        t = next_release(t, state)
