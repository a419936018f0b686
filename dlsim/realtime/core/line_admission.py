"""The admission test of tasks that are served in line, by a rank that does not change with time.

FIFO and EDF of paper I, and the all-nodes policies. A task takes the nodes that are released first,
and the tasks behind it find the others no earlier. So the test begins at the newcomer's place, and
at the end of a long queue it costs the same however long that is. With queues of hundreds of tasks
it is 28 to 210 times as fast as the general test, but not for EDF-US under
``batch_commit="commit"``.

It decides as `admission.schedulability_test` does, except where nodes of one task end one by one
(pieces). Here a task behind may take such a node as soon as it ends. The general test looks at the
next task only at the instant at which the one ahead has all its nodes, and requires its deadline
from then on; so it refuses some tasks that a line serves.

Source: paper I, sections 4.2 to 4.5.
"""

import numpy as np

from dlsim.compiled import compiled, deadline_with_tolerance, times_tie
from dlsim.realtime.core.idle_times import count_iits, find_iit_flags
from dlsim.realtime.core.node_rules import FRAGMENT, NEVER, next_deadline, nodes_wanted
from dlsim.realtime.core.orders import DEADLINE_ORDER
from dlsim.realtime.core.placement import place_task, release_nodes
from dlsim.realtime.core.splits import PIECES
from dlsim.realtime.core.state import (
    ADMITTED,
    ARRIVAL,
    IIT_COLUMNS,
    IN_FORCE,
    REPLANNED,
    RTGRID,
    HeadNodeState,
    add_planned_end,
    begin_plan,
    copy_block,
    copy_plan,
    insert_block,
    is_due,
    next_running,
    precedes,
    remove_planned_end,
)

#: From this many waiting tasks on, the node releases after the whole plan are remembered.
LONG_QUEUE = 8


@compiled(inline=True)
def take_next_release(floor, state):
    """Take the nodes that are released next: idle ones, of a running task, or of a planned one.

    Return when they are released, and how many there are: 0 if none is left.
    """
    planning = state.planning
    if planning.idle > 0:
        nodes = planning.idle
        planning.idle = 0
        return floor, nodes
    running = next_running(state)
    if planning.planned_count > 0 and state.planned_ends[0].time < running:
        time, nodes = state.planned_ends[0].time, state.planned_ends[0].nodes
        remove_planned_end(state)
        return max(time, floor), nodes
    if running == np.inf:
        return np.inf, 0
    planning.next_block += 1
    return max(running, floor), state.running[planning.next_block - 1].nodes


@compiled
def take_rest_of_instant(floor, state):
    """Add the nodes that are released at the instant of the last group; return their number."""
    last, added = state.chosen_nodes[state.planning.chosen_groups - 1], 0
    while True:
        time, nodes = take_next_release(floor, state)
        if nodes > 0 and times_tie(time, last.time, state.counters.span):
            last.nodes += nodes
            added += nodes
            continue
        if nodes > 0:
            add_planned_end(time, nodes, state)
        return added


@compiled(inline=True)
def reserve_nodes(task, known, floor, asked, tasks, rules, state, table):
    """Take the nodes that are released first, as many as a task wants; 0 if it is never in time.

    A `known` number above 0 is not searched. Return the number, and the smallest later deadline at
    which the answer could change.
    """
    pool, planning, span = state.chosen_nodes, state.planning, state.counters.span
    n, groups, total, later, were_idle = known, 0, 0, np.inf, planning.idle > 0
    low = tasks[task].n_min
    while True:
        time, nodes = take_next_release(floor, state)
        if nodes == 0:
            return 0, later
        if groups > 0 and times_tie(time, pool[groups - 1].time, span):
            time = pool[groups - 1].time
            pool[groups - 1].nodes += nodes
            were_idle = False
        else:
            pool[groups].time, pool[groups].nodes = time, nodes
            groups += 1
        total += nodes
        if known == 0:
            n = nodes_wanted(
                task, time, low, total, groups, pool, 0, asked, tasks, rules, state, table
            )
            if asked:
                beyond = next_deadline(task, time, n, total, groups, pool, tasks, rules, table)
                later = min(later, beyond)
            elif n == NEVER:
                return 0, later
            if n == NEVER:  # nodes that are released later may serve an offer
                n = rules.nodes + 1
            else:
                low = n
        if n <= total:
            break
    planning.chosen_groups = groups
    if rules.node_rule == FRAGMENT and known == 0:
        added = take_rest_of_instant(floor, state)
        total, were_idle = total + added, were_idle and added == 0
        n = max(n, min(total, tasks[task].n_star))
    if total > n:  # the others stay idle, or are released when planned
        if groups == 1 and were_idle:
            planning.idle = total - n
        else:
            add_planned_end(pool[groups - 1].time, total - n, state)
        pool[groups - 1].nodes -= total - n
    return n, later


@compiled
def follows_plan(newcomer, now, tasks, state):
    """Tell whether a newcomer is served after a plan whose node releases are remembered."""
    counters, after = state.counters, state.counters_after_plan
    if after.end_planned != counters.end_planned:
        return False
    if counters.first_planned == counters.end_planned:
        return False
    last, rank = state.plan[0, counters.end_planned - 1], tasks[newcomer].rank
    if precedes(rank, newcomer, last.rank, last.task, counters.span):
        return False
    if after.first_running == after.end_running:
        return True
    return not is_due(state.after_plan[after.first_running].time, now, counters.span)


@compiled
def find_flags_again(entry, n, tasks, rules, state):
    """Return the flags of a task whose nodes are taken as planned before.

    If it has all its nodes at its start, early ones have idled on since, so that its releases have
    moved.
    """
    if entry.start == entry.ready and (state.planning.chosen_groups > 1 or entry.iit_flags > 0):
        return find_iit_flags(entry.task, n, tasks, rules, state)
    return entry.iit_flags


@compiled
def count_plan_in_force(now, tasks, rules, state, table):
    """Count the plan in force as planned in one more test; return the flags of its first task.

    Early nodes of the first task go on idling, so that its releases have moved; the tasks behind
    it find what they found before.
    """
    counters = state.counters
    entry = state.plan[0, counters.first_planned]
    flags = entry.iit_flags
    if entry.start == entry.ready:
        begin_plan(state)
        floor = max(now, counters.link_free) if rules.shared else now
        n, _ = reserve_nodes(entry.task, entry.nodes, floor, False, tasks, rules, state, table)
        add_planned_end(entry.end, n, state)
        flags = find_flags_again(entry, n, tasks, rules, state)
    for k in range(len(IIT_COLUMNS)):
        state.counts[REPLANNED, k] += state.counts[IN_FORCE, k]
    count_iits(REPLANNED, entry.iit_flags, -1, state)
    count_iits(REPLANNED, flags, 1, state)
    return flags


@compiled
def keep_after_plan(follows, state):
    """Remember the releases after a new plan: running blocks that it has not used, planned ends."""
    counters, after, planning = state.counters, state.counters_after_plan, state.planning
    if follows:
        after.first_running = planning.next_block
    else:
        after.first_running, after.end_running = 0, counters.end_running - planning.next_block
        for j in range(after.end_running):
            copy_block(state.running[planning.next_block + j], j, state.after_plan)
        for k in range(len(IIT_COLUMNS)):
            state.counts[IN_FORCE, k] = 0
        for k in range(counters.first_planned, counters.end_planned):
            count_iits(IN_FORCE, state.plan[0, k].iit_flags, 1, state)
    while planning.planned_count > 0:
        time, nodes = state.planned_ends[0].time, state.planned_ends[0].nodes
        remove_planned_end(state)
        insert_block(time, nodes, after, state.after_plan)
    after.first_planned = after.end_planned = counters.end_planned
    after.link_free = planning.link_free


@compiled
def put_in_force(first, base, place, newcomer_flags, state):
    """Put the new plan in force: tasks ahead of `base` keep their places, and get new flags."""
    for k in range(base - first):
        state.plan[0, first + k].iit_flags = state.plan[1, k].iit_flags
    copy_plan(state.plan[1, base - first : place], state.plan[0, base:])
    state.counters.end_planned = first + place
    count_iits(ADMITTED, newcomer_flags, 1, state)
    count_iits(RTGRID, newcomer_flags, 1, state)


@compiled(inline=True)
def admit_in_line(newcomer, now, tasks, rules, state, table):
    """Test a newcomer that is served in line; put the new plan in force if all are in time.

    Return whether it is admitted, and the smallest later deadline at which the answer could
    change. Tasks ahead keep their places; unless ``commit="last"``, when a waiting task may have
    begun on its first nodes and all are planned anew.
    """
    in_force, after = state.counters, state.counters_after_plan
    follows, first_flags = follows_plan(newcomer, now, tasks, state), 0
    if follows:
        first_flags = count_plan_in_force(now, tasks, rules, state, table)
        state = HeadNodeState(  # in which the whole plan in force has run
            state.counters_after_plan,
            state.planning,
            state.after_plan,
            state.plan,
            state.pending,
            state.planned_ends,
            state.chosen_nodes,
            state.idle_nodes,
            state.node_completions,
            state.release,
            state.chunks,
            state.counts,
            state.counters_after_plan,
            state.after_plan,
        )
    counters, planning = state.counters, state.planning
    begin_plan(state)
    first, end, span = counters.first_planned, counters.end_planned, counters.span
    position, base, place, later = first, first, 0, np.inf
    rank, waits, newcomer_flags = tasks[newcomer].rank, True, 0
    while waits or position < end:
        entry = state.plan[0, position]
        is_newcomer = waits and (
            position == end or precedes(rank, newcomer, entry.rank, entry.task, span)
        )
        is_kept = waits and not is_newcomer and not rules.last  # its nodes are known
        if is_newcomer:
            waits, base = False, first if rules.last else position
            if position < end and rules.order == DEADLINE_ORDER:
                # a tie that the newcomer wins by its index ends beyond the tolerance
                due = entry.rank
                later = min(later, due if due > rank else deadline_with_tolerance(due, span))
        else:
            position += 1
        task = newcomer if is_newcomer else entry.task
        has_successor = follows or waits or position < end or end - first + 1 >= LONG_QUEUE
        floor = max(now, planning.link_free) if rules.shared else now
        known, asked = entry.nodes if is_kept else 0, rules.offers and is_newcomer
        n, beyond = reserve_nodes(task, known, floor, asked, tasks, rules, state, table)
        later = min(later, beyond)
        if n == 0:
            return False, later
        flags, new = 0, state.plan[1, place]
        if is_kept:  # as planned before: only its nodes and the link are taken
            release_nodes(entry, False, has_successor, tasks, rules, state, table)
            flags = find_flags_again(entry, n, tasks, rules, state)
        else:
            if planning.chosen_groups > 1 or rules.every:
                flags = find_iit_flags(task, n, tasks, rules, state)
            task_rank = rank if is_newcomer else entry.rank
            place_task(task, n, place, task_rank, has_successor, tasks, rules, state, table)
        new.iit_flags = flags
        count_iits(REPLANNED, flags, 1, state)
        if is_newcomer:
            newcomer_flags = flags
            count_iits(ARRIVAL, flags, 1, state)
        ends_by_chunks = not is_kept and new.kind == PIECES and rules.shared
        if ends_by_chunks and new.end > tasks[task].due_tol:
            return False, min(later, new.end) if is_newcomer else later
        place += 1
    put_in_force(first, base, place, newcomer_flags, state)
    if follows:
        in_force.end_planned = after.end_planned
        for k, times in ((in_force.first_planned, -1), (in_force.end_planned - 1, 1)):
            count_iits(IN_FORCE, state.plan[0, k].iit_flags, times, state)
        state.plan[0, in_force.first_planned].iit_flags = first_flags
        count_iits(IN_FORCE, first_flags, 1, state)
    else:
        after.end_planned = -1
    is_long = in_force.end_planned - in_force.first_planned >= LONG_QUEUE
    if follows or (is_long and not rules.last and planning.idle == 0):
        keep_after_plan(follows, state)
    return True, later
