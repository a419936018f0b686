"""The loop of real-time divisible loads: arrivals, tests, offers, dispatch.

Source: paper M, section 5, MCDF(), whose line numbers are cited.
"""

import numpy as np

from dlsim.compiled import compiled, meets_deadline, times_tie
from dlsim.realtime.core.admission import schedulability_test
from dlsim.realtime.core.formulas import n_star_of, time_on_nodes
from dlsim.realtime.core.idle_times import count_iits
from dlsim.realtime.core.line import admit_in_line
from dlsim.realtime.core.nodes import earliest_deadline, init_newcomer
from dlsim.realtime.core.orders import rank_at, sort_pending
from dlsim.realtime.core.placement import compute_ends, opr_send_end
from dlsim.realtime.core.splits import (
    ends_node_by_node,
    ends_together,
    receiving_nodes,
    time_from_common_start,
)
from dlsim.realtime.core.state import (
    DISPATCHED,
    IN_FORCE,
    KEPT,
    PLANNED,
    RUNNING,
    copy_plan,
    idle_at,
    insert_block,
    insert_completions,
    note_deadline,
    pop,
    push,
    set_pending,
)

# --- dispatch -------------------------------------------------------------------------------------


@compiled(inline=True)
def take_nodes(n, start, state):
    """Take the nodes that are released first off the idle and running ones to the chosen ones."""
    counters, pool, groups = state.counters, state.chosen.releases, 0
    while n > 0:
        if counters.idle > 0:
            time, nodes = start, min(n, counters.idle)
            counters.idle -= nodes
        else:
            block = state.running[RUNNING, counters.first_running]
            time, nodes = max(block.time, start), min(n, block.nodes)
            block.nodes -= nodes
            counters.first_running += block.nodes == 0
        n -= nodes
        pool[groups].time, pool[groups].nodes = time, nodes
        groups += 1
    state.chosen.size.groups = groups


@compiled(inline=True)
def start_task(entry, results, state):
    """Start a planned task: take its nodes and the link, and write what becomes of it."""
    counters, task = state.counters, entry.task
    even = ends_together(entry.kind, 1 if entry.start == entry.ready else 2)
    take_nodes(entry.nodes, entry.start, state)
    completion, per_node = entry.end, ends_node_by_node(entry.kind, even, state.rules)
    if even:
        sent = opr_send_end(task, entry.nodes, entry.start, state)
    else:
        completion, sent = compute_ends(entry, per_node, state)
    counters.link_free = max(counters.link_free, sent)
    if per_node:
        insert_completions(entry.nodes, state)
    else:
        insert_block(entry.end, entry.nodes, counters, state.running[RUNNING])
    result = results[task]
    result.nodes = receiving_nodes(task, entry.nodes, state)
    result.turn, result.kind, result.rounds = counters.dispatched, entry.kind, entry.rounds
    result.start, result.estimate, result.end = entry.start, entry.end, completion
    counters.dispatched += 1


@compiled(inline=True)
def dispatch(now, inclusive, results, state):
    """Start all planned tasks that are due: s_1, or r_n under ``commit="last"`` (l.3-9, Fig. 2).

    Tasks are started in the order of the plan, since a task may use nodes that one ahead of it
    releases.
    """
    counters, rules = state.counters, state.rules
    while counters.first_planned < counters.end_planned:
        entry = state.plan[PLANNED, counters.first_planned]
        t = entry.ready if rules.last else entry.start
        tie = times_tie(t, now, counters.span)
        if not (tie and inclusive) and not (t < now and not tie):
            break
        counters.first_planned += 1
        start_task(entry, results, state)
        count_iits(DISPATCHED, entry.iit_flags, 1, state)
        count_iits(IN_FORCE, entry.iit_flags, -1, state)
    if now < np.inf and not (rules.last and rules.in_line):
        counters.idle, counters.first_running = idle_at(now, state)


# --- admission ------------------------------------------------------------------------------------


@compiled(inline=True)
def rank_of_newcomer(task, now, state):
    """Return the rank of a task of a batch, as if it was tested first; inf if it is impossible."""
    possible = init_newcomer(task, now, state.tasks[task].due, state)
    n = state.tasks[task].n_min
    if state.rules.ranks_change and not (possible and n > 0):
        return np.inf
    idle, _ = idle_at(now, state)
    return rank_at(task, n, now, idle, 1, state)


@compiled(inline=True)
def sort_batch(first, end, now, state):
    """Write the order in which the tasks first..end-1, which arrive together, are tested."""
    for task in range(first, end):
        rank = rank_of_newcomer(task, now, state) if state.rules.by_policy else 0.0
        set_pending(task - first, task, 0, rank, state)
    if state.rules.by_policy:
        sort_pending(0, end - first, state)
    for k in range(end - first):
        state.batch[k] = state.pending[k].task


@compiled(inline=True)
def note_deadlines_alone(task, now, possible, state):
    """Note the later deadlines at which a newcomer could meet it alone, or has another n_min."""
    rules, n_min = state.rules, state.tasks[task].n_min
    if not possible:
        note_deadline(earliest_deadline(task, now, state), state)
    elif rules.frozen and not rules.nodes_at_arrival and n_min > 1:
        note_deadline(now + time_from_common_start(task, n_min - 1, state), state)


@compiled(inline=True)
def test_deadline(task, now, deadline, state):
    """Test a newcomer with a deadline; return whether it is admitted.

    If an offer is sought, `planning.later` is the next deadline to test. The answer changes only
    where some number of nodes changes or, in EDF order, at another task's deadline. It is the
    smallest such deadline, so that the first one that is admitted is the smallest.
    """
    rules, planning, admitted = state.rules, state.planning, False
    planning.newcomer, planning.later = task, np.inf
    possible = init_newcomer(task, now, now + deadline, state)
    if rules.tested_in_line:  # an impossible task too: Table 1 counts the tasks ahead of it
        admitted = admit_in_line(task, now, state)
    elif possible:
        admitted = schedulability_test(task, now, state)
    if rules.offers:
        note_deadlines_alone(task, now, possible, state)
        if not planning.later > now + deadline:
            planning.later = np.nextafter(now + deadline, np.inf)
    return admitted and possible


@compiled
def undo_admission(newcomer, deadline, first, end, offers, state):
    """Offer a newcomer the deadline that was tested, and put the previous plan in force."""
    counters, offers[newcomer] = state.counters, deadline
    copy_plan(state.plan[KEPT, first:end], state.plan[PLANNED, first:])
    counters.first_planned, counters.end_planned = first, end
    state.counters_after_plan.end_planned = -1  # what the plan leaves is found again


@compiled
def duration_until(due, now):
    """Return the shortest deadline that reproduces an instant when it is added to the arrival."""
    duration = due - now
    while now + duration < due:
        duration = np.nextafter(duration, np.inf)
    return duration


@compiled(inline=True)
def admit_newcomer(task, now, offered_task, deadline, offers, state):
    """Admit a newcomer, with its own deadline or the smallest one that it may accept, or refuse it.

    With `offers`, a refused task gets its offer there and is not held to it. Return whether it is
    admitted.
    """
    negotiate, asked = state.rules.negotiate, deadline[task]
    ceiling, bargains, for_offer = now + negotiate * asked, task == offered_task, False
    first, end = state.counters.first_planned, state.counters.end_planned
    if bargains:
        asked, ceiling = earliest_deadline(task, now, state) - now, np.inf
    while True:
        if test_deadline(task, now, asked, state):
            if for_offer:
                undo_admission(task, asked, first, end, offers, state)
                return False
            deadline[task] = asked
            return True
        if not state.rules.offers:
            return False
        due = state.planning.later
        if not bargains and negotiate > 0:
            due, bargains = earliest_deadline(task, now, state), True
        if bargains and due < np.inf and meets_deadline(due, ceiling, ceiling - now):
            asked = duration_until(due, now)
            continue
        if for_offer or len(offers) == 0:
            return False
        copy_plan(state.plan[PLANNED, first:end], state.plan[KEPT, first:])
        asked, ceiling = earliest_deadline(task, now, state) - now, np.inf
        bargains = for_offer = True


@compiled
def run_admission(deadline, admitted, results, offered_task, offers, state):
    """Simulate a policy with admission control over all arrivals, then drain (MCDF()).

    Return the offer to `offered_task`, nan if there is none. With `offers`, all refused tasks get
    offers; see `admit_newcomer`.
    """
    tasks, rules = state.tasks, state.rules
    size, i, offer = len(tasks), 0, np.nan
    while True:
        now, end = tasks[i].arrival if i < size else np.inf, i + 1
        dispatch(now, i == size or not rules.test_first, results, state)
        if i == size:
            return offer
        while end < size and tasks[end].arrival == now:
            end += 1
        sort_batch(i, end, now, state)
        for k in range(end - i):
            task = state.batch[k]
            admitted[task] = admit_newcomer(task, now, offered_task, deadline, offers, state)
            if task == offered_task:  # no later task matters
                offer, end = deadline[task] if admitted[task] else np.nan, size
                break
            if rules.commit:
                dispatch(now, True, results, state)
        i = end


# --- no admission control -------------------------------------------------------------------------


@compiled
def queue_arrivals(added, length, now, waiting, state):
    """Add the tasks that have arrived by now to a heap (rank, place); return both numbers.

    `added` tasks have been added before, and `length` wait.
    """
    tasks, size = state.tasks, len(state.tasks)
    while added < size:
        arrival = tasks[added].arrival
        tie = times_tie(arrival, now, state.counters.span)
        if not (tie and (length == 0 or state.rules.test_first)) and not (
            arrival < now and not tie
        ):
            break
        while added < size and tasks[added].arrival == arrival:
            length = push(waiting, length, tasks[added].rank, tasks[added].place)
            added += 1
    return added, length


@compiled
def run_all_admitted(waiting, drop, results, state):
    """Simulate all-nodes policies without admission control (FIFOANNA, EDFANNA).

    The cluster is a single server: whenever it is free, the first in rank among the tasks that
    have arrived starts, late or not.
    """
    tasks, rules, table = state.tasks, state.rules, state.table
    length, i, now, turn, size = 0, 0, -np.inf, 0, len(tasks)
    for task in range(size):
        state.batch[tasks[task].place] = task
    while i < size or length > 0:
        if length == 0:
            now = max(now, tasks[i].arrival)
        i, length = queue_arrivals(i, length, now, waiting, state)
        task = state.batch[waiting[0].nodes]
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
