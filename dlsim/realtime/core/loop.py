"""The loop of real-time divisible loads: arrivals, tests, offers, dispatch.

Source: paper M, section 5, MCDF(), whose line numbers are cited.
"""

import numpy as np

from dlsim.compiled import compiled, meets_deadline, times_tie
from dlsim.realtime.core.admission import schedulability_test
from dlsim.realtime.core.formulas import n_star_of, time_on_nodes
from dlsim.realtime.core.idle_times import count_iits
from dlsim.realtime.core.line_admission import admit_in_line
from dlsim.realtime.core.node_rules import earliest_deadline, init_newcomer
from dlsim.realtime.core.orders import rank_at
from dlsim.realtime.core.placement import compute_ends, opr_send_end
from dlsim.realtime.core.splits import (
    PIECES,
    ends_together,
    receiving_nodes,
    time_from_common_start,
)
from dlsim.realtime.core.state import (
    DISPATCHED,
    IN_FORCE,
    copy_plan,
    idle_at,
    insert_block,
    insert_completions,
    pop,
    push,
    set_pending,
    sort_pending,
)


@compiled
def take_nodes(n, start, state):
    """Take the nodes that are released first off the idle and running ones; return the groups."""
    counters, pool, groups = state.counters, state.chosen_nodes, 0
    while n > 0:
        if counters.idle > 0:
            time, nodes = start, min(n, counters.idle)
            counters.idle -= nodes
        else:
            block = state.running[counters.first_running]
            time, nodes = max(block.time, start), min(n, block.nodes)
            block.nodes -= nodes
            counters.first_running += block.nodes == 0
        n -= nodes
        pool[groups].time, pool[groups].nodes = time, nodes
        groups += 1
    return groups


@compiled(inline=True)
def start_task(entry, results, tasks, rules, state, table):
    """Start a planned task: take its nodes and the link, and write what becomes of it."""
    counters, task, kind = state.counters, entry.task, entry.kind
    even = ends_together(kind, 1 if entry.start == entry.ready else 2)
    groups = take_nodes(entry.nodes, entry.start, state)
    completion, per_node = entry.end, kind == PIECES or (rules.finish and not even)
    if even:
        sent = opr_send_end(task, entry.nodes, entry.start, tasks, rules)
    else:
        completion, sent = compute_ends(entry, groups, per_node, tasks, rules, state, table)
    counters.link_free = max(counters.link_free, sent)
    if per_node:
        insert_completions(entry.nodes, state)
    else:
        insert_block(entry.end, entry.nodes, counters, state.running)
    result = results[task]
    result.nodes = receiving_nodes(task, entry.nodes, tasks, rules)
    result.turn, result.kind, result.rounds = counters.dispatched, kind, entry.rounds
    result.start, result.estimate, result.end = entry.start, entry.end, completion
    counters.dispatched += 1


@compiled(inline=True)
def dispatch(now, inclusive, results, tasks, rules, state, table):
    """Start all planned tasks that are due: s_1, or r_n under ``commit="last"`` (l.3-9, Fig. 2).

    Tasks are started in the order of the plan, since a task may use nodes that one ahead of it
    releases.
    """
    counters = state.counters
    while counters.first_planned < counters.end_planned:
        entry = state.plan[0, counters.first_planned]
        t = entry.ready if rules.last else entry.start
        tie = times_tie(t, now, counters.span)
        if not (tie and inclusive) and not (t < now and not tie):
            break
        counters.first_planned += 1
        start_task(entry, results, tasks, rules, state, table)
        count_iits(DISPATCHED, entry.iit_flags, 1, state)
        count_iits(IN_FORCE, entry.iit_flags, -1, state)
    if now < np.inf and not (rules.last and rules.in_line):
        counters.idle, counters.first_running = idle_at(now, state)


@compiled(inline=True)
def sort_batch(first, end, now, members, tasks, rules, state, table):
    """Write the order in which the tasks first..end-1, which arrive together, are tested."""
    for task in range(first, end):
        set_pending(task - first, task, 0, 0.0, state)
        if rules.by_policy:
            due = tasks[task].due
            possible = init_newcomer(task, now, due, tasks, rules, state, table)
            n, rank = tasks[task].n_min, np.inf
            if (possible and n > 0) or not rules.is_timed:
                idle, _ = idle_at(now, state)
                rank = rank_at(task, n, now, idle, 1, tasks, rules, table)
            state.pending[task - first].rank = rank
    if rules.by_policy:
        sort_pending(0, end - first, state)
    for k in range(end - first):
        members[k] = state.pending[k].task


@compiled
def undo_admission(newcomer, deadline, first, end, offers, kept, state):
    """Record the offer to a newcomer that the plan holds, and put the previous plan in force."""
    counters = state.counters
    for k in range(counters.first_planned, counters.end_planned):
        entry = state.plan[0, k]
        if entry.task == newcomer:
            offers[newcomer].deadline, offers[newcomer].nodes = deadline, entry.nodes
            offers[newcomer].start, offers[newcomer].end = entry.start, entry.end
    copy_plan(kept[first:end], state.plan[0, first:])
    counters.first_planned, counters.end_planned = first, end
    state.counters_after_plan.end_planned = -1  # what the plan leaves is found again


@compiled(inline=True)
def test_deadline(task, now, deadline, tasks, rules, state, table):
    """Test a newcomer with a deadline; return whether it is admitted, and the next one to test.

    The answer changes only where some number of nodes changes or, in EDF order, at another task's
    deadline. The next one to test is the smallest such deadline, so that the first one that is
    admitted is the smallest.
    """
    possible = init_newcomer(task, now, now + deadline, tasks, rules, state, table)
    admitted, due = False, np.inf
    if rules.tested_in_line:  # an impossible task too: Table 1 counts the tasks ahead of it
        admitted, due = admit_in_line(task, now, tasks, rules, state, table)
    elif possible:
        admitted, due = schedulability_test(task, now, tasks, rules, state, table)
    n_min = tasks[task].n_min
    if not possible:
        due = min(due, earliest_deadline(task, now, tasks, rules, table))
    elif rules.frozen and not rules.nodes_at_arrival and n_min > 1:
        due = min(due, now + time_from_common_start(task, n_min - 1, tasks, rules, table))
    if not due > now + deadline:
        due = np.nextafter(now + deadline, np.inf)
    return admitted and possible, due


@compiled(inline=True)
def admit_newcomer(task, now, offered_task, deadline, offers, kept, tasks, rules, state, table):
    """Admit a newcomer, with its own deadline or the smallest one that it may accept, or refuse it.

    With `offers`, a refused task gets its offer there and is not held to it, except tasks whose
    number of nodes there is below 0. Return whether it is admitted.
    """
    asked, ceiling = deadline[task], now + rules.negotiate * deadline[task]
    bargains, for_offer = task == offered_task, False
    first, end = state.counters.first_planned, state.counters.end_planned
    if bargains:
        asked, ceiling = earliest_deadline(task, now, tasks, rules, table) - now, np.inf
    while True:
        admitted, due = test_deadline(task, now, asked, tasks, rules, state, table)
        if admitted and for_offer:
            undo_admission(task, asked, first, end, offers, kept, state)
            return False
        if admitted:
            deadline[task] = asked
            return True
        if not bargains and rules.negotiate > 0:
            due, bargains = earliest_deadline(task, now, tasks, rules, table), True
        if not bargains or due == np.inf or not meets_deadline(due, ceiling, ceiling - now):
            if len(offers) == 0 or for_offer or offers[task].nodes < 0:
                return False
            copy_plan(state.plan[0, first:end], kept[first:])
            due, ceiling = earliest_deadline(task, now, tasks, rules, table), np.inf
            asked, bargains, for_offer = due - now, True, True
            continue
        asked = due - now
        while now + asked < due:  # so that arrival + deadline reproduces it
            asked = np.nextafter(asked, np.inf)


@compiled
def run_admission(
    tasks, deadline, admitted, results, offered_task, offers, kept, members, rules, state, table
):
    """Simulate a policy with admission control over all arrivals, then drain (MCDF()).

    Return the offer to `offered_task`, nan if there is none. With `offers`, all refused tasks get
    offers; see `admit_newcomer`.
    """
    size, i, offer = len(tasks), 0, np.nan
    while True:
        now, end = tasks[i].arrival if i < size else np.inf, i + 1
        dispatch(now, i == size or not rules.test_first, results, tasks, rules, state, table)
        if i == size:
            return offer
        while end < size and tasks[end].arrival == now:
            end += 1
        sort_batch(i, end, now, members, tasks, rules, state, table)
        for k in range(end - i):
            task = members[k]
            admitted[task] = admit_newcomer(
                task, now, offered_task, deadline, offers, kept, tasks, rules, state, table
            )
            if task == offered_task:  # no later task matters
                offer, end = deadline[task] if admitted[task] else np.nan, size
                break
            if rules.commit:
                dispatch(now, True, results, tasks, rules, state, table)
        i = end


@compiled
def run_all_admitted(tasks, rules, waiting, drop, span, results, table):
    """Simulate all-nodes policies without admission control (FIFOANNA, EDFANNA).

    The cluster is a single server: whenever it is free, the first in rank among the tasks that
    have arrived starts, late or not.
    """
    size = len(tasks)
    length, i, now, turn = 0, 0, -np.inf, 0
    while i < size or length > 0:
        if length == 0:
            now = max(now, tasks[i].arrival)
        while i < size:
            arrival = tasks[i].arrival
            tie = times_tie(arrival, now, span)
            if not (tie and (length == 0 or rules.test_first)) and not (arrival < now and not tie):
                break
            end = i + 1
            while end < size and tasks[end].arrival == arrival:
                end += 1
            for task in range(i, end):
                length = push(waiting, length, tasks[task].rank, task)
            i = end
        task = waiting[0].nodes  # the second field breaks ties: here the table order
        one, result = tasks[task], results[task]
        length = pop(waiting, length)
        n = n_star_of(one.sigma, table.min_size, rules.nodes) if rules.best else rules.nodes
        finish = now + time_on_nodes(one.sigma, n, table.time_per_unit, table.setup_time)
        if drop and not meets_deadline(finish, one.due, one.due - one.arrival):
            continue
        result.nodes, result.start, result.turn = n, now, turn
        result.estimate = result.end = finish
        turn += 1
        # by the formula for n > N* the last send may end after the task
        sent = now + one.sigma * rules.cms + n * rules.st
        now = max(finish, sent) if rules.shared else finish
