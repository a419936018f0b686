"""The loop of real-time divisible loads: arrivals, tests, offers, dispatch.

Source: paper M, section 5, MCDF(), whose line numbers are cited.
"""

import numpy as np

from dlsim.compiled import compiled, meets_deadline, same_instant
from dlsim.realtime.core.admission import schedulability_test
from dlsim.realtime.core.formulas import n_star_of, time_on_nodes
from dlsim.realtime.core.idle_times import count_iits
from dlsim.realtime.core.line_admission import admit_in_line
from dlsim.realtime.core.node_rules import ALL_NODES, REQUESTED, earliest_deadline, init_newcomer
from dlsim.realtime.core.orders import MCDF_ORDER, USER_ORDER, rank_at
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
from dlsim.realtime.core.user_rules import has_failed


@compiled
def take_nodes(n, start, state):
    """Take the nodes that are released first off the idle and running ones; return the groups."""
    counters, pool, groups = state.counters[0], state.chosen_nodes, 0
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
def dispatch(now, inclusive, results, tasks, rules, state, table):
    """Start all planned tasks that are due: s_1, or r_n under ``commit="last"`` (l.3-9, Fig. 2).

    Tasks are started in the order of the plan, since a task may use nodes that one ahead of it
    releases.
    """
    counters = state.counters[0]
    while counters.first_planned < counters.end_planned:
        entry = state.plan[0, counters.first_planned]
        t = entry.ready if rules.last else entry.start
        tie = same_instant(t, now, counters.span)
        if not (tie and inclusive) and not (t < now and not tie):
            break
        task, n, kind, rounds = entry.task, entry.nodes, entry.kind, entry.rounds
        even = ends_together(kind, 1 if entry.start == entry.ready else 2)
        counters.first_planned += 1
        groups = take_nodes(n, entry.start, state)
        completion, per_node = entry.end, kind == PIECES or (rules.finish and not even)
        if even:
            sent = opr_send_end(task, n, entry.start, tasks, rules)
        else:
            completion, sent, count = compute_ends(
                task, kind, rounds, n, groups, entry.end, per_node, tasks, rules, state, table
            )
        counters.link_free = max(counters.link_free, sent)
        if per_node:
            insert_completions(count, state)
        else:
            insert_block(entry.end, n, state)
        count_iits(DISPATCHED, entry.iit_flags, 1, state)
        count_iits(IN_FORCE, entry.iit_flags, -1, state)
        result = results[task]
        result.nodes = receiving_nodes(task, n, tasks, rules)
        result.turn, result.kind, result.rounds = counters.dispatched, kind, rounds
        result.start, result.estimate, result.end = entry.start, entry.end, completion
        counters.dispatched += 1
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
            is_timed = rules.order == MCDF_ORDER or rules.order == USER_ORDER
            if (possible and n > 0) or not is_timed:
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
    counters = state.counters[0]
    for k in range(counters.first_planned, counters.end_planned):
        entry = state.plan[0, k]
        if entry.task == newcomer:
            offers[newcomer].deadline, offers[newcomer].nodes = deadline, entry.nodes
            offers[newcomer].start, offers[newcomer].end = entry.start, entry.end
    copy_plan(kept[first:end], state.plan[0, first:])
    counters.first_planned, counters.end_planned = first, end
    state.counters_after_plan[0].end_planned = -1  # what the plan leaves is found again


@compiled
def run_admission(
    overtaking,
    offers,
    kept,
    tasks,
    rules,
    state,
    members,
    offered_task,
    deadline,
    admitted,
    results,
    table,
):
    """Simulate a policy with admission control over all arrivals, then drain (MCDF()).

    Return the offer to `offered_task`, nan if there is none. The answer to a deadline changes
    only where some number of nodes changes or, in EDF order, at another task's deadline; each
    test returns the next such deadline, so that the first one that is admitted is the smallest.
    With `offers`, every refused task gets its offer there and is not held to it, except tasks
    whose number of nodes there is below 0. `overtaking` is None where tasks are served in line,
    `offers` None where none are asked for: the rest is then not compiled.
    """
    size, i, answer = len(tasks), 0, np.nan
    while True:
        now, j = tasks[i].arrival if i < size else np.inf, i + 1
        dispatch(now, i == size or not rules.test_first, results, tasks, rules, state, table)
        if i == size:
            return answer
        while j < size and tasks[j].arrival == now:
            j += 1
        sort_batch(i, j, now, members, tasks, rules, state, table)
        for k in range(j - i):
            task = members[k]
            given, ceiling = deadline[task], now + rules.negotiate * deadline[task]
            bargains, for_offers = task == offered_task, False
            first, end = state.counters[0].first_planned, state.counters[0].end_planned
            if bargains:
                given = earliest_deadline(task, now, tasks, rules, table) - now
                ceiling = np.inf
            while True:
                possible = init_newcomer(task, now, now + given, tasks, rules, state, table)
                ok, due = False, np.inf
                if (
                    overtaking is None
                ):  # an impossible task too: Table 1 counts the tasks ahead of it
                    ok, due = admit_in_line(task, now, tasks, rules, state, table)
                elif possible:
                    ok, due = schedulability_test(task, now, tasks, rules, state, table)
                    if has_failed(rules.user):
                        return answer
                admitted[task] = ok and possible
                n_min = tasks[task].n_min
                has_fixed_nodes = rules.node_rule == ALL_NODES or rules.node_rule == REQUESTED
                if not possible:
                    due = min(due, earliest_deadline(task, now, tasks, rules, table))
                elif rules.frozen and not has_fixed_nodes and n_min > 1:
                    time = time_from_common_start(task, n_min - 1, tasks, rules, table)
                    due = min(due, now + time)
                if offers is not None:
                    if admitted[task] and for_offers:
                        undo_admission(task, given, first, end, offers, kept, state)
                        admitted[task] = False
                        break
                if admitted[task]:
                    deadline[task] = given
                    break
                if not bargains and rules.negotiate > 0:
                    due, bargains = earliest_deadline(task, now, tasks, rules, table), True
                elif not due > now + given:
                    due = np.nextafter(now + given, np.inf)
                if not bargains or due == np.inf or not meets_deadline(due, ceiling, ceiling - now):
                    if offers is not None:
                        if not for_offers and offers[task].nodes == 0:
                            copy_plan(state.plan[0, first:end], kept[first:])
                            given = earliest_deadline(task, now, tasks, rules, table) - now
                            ceiling, bargains, for_offers = np.inf, True, True
                            continue
                    break
                given = due - now
                while now + given < due:  # so that arrival + deadline reproduces it
                    given = np.nextafter(given, np.inf)
            if task == offered_task:  # its offer is known; no later task matters
                answer, j = given if admitted[task] else np.nan, size
                break
            if rules.commit:
                dispatch(now, True, results, tasks, rules, state, table)
        i = j


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
            tie = same_instant(arrival, now, span)
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
