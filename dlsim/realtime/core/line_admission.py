"""The admission test of tasks that are served in line, by a rank that does not change with time.

FIFO and EDF of paper I, and the all-nodes policies. A task takes the nodes that are released first,
and the tasks behind it find the others no earlier. So the test begins at the newcomer's place, and
at the end of a long queue it costs the same however long that is.

It differs from `admission.schedulability_test` where nodes of one task end one by one (pieces).
Here a task behind may take such a node as soon as it ends. The general test looks at the next task
only at the instant at which the one ahead has all its nodes, and requires its deadline from then
on; so it refuses some tasks that a line serves.

Source: paper I, sections 4.2 to 4.5.
"""

import numpy as np

from dlsim.compiled import compiled, deadline_with_tolerance, same_instant
from dlsim.realtime.core.idle_times import count_iits, find_iit_flags
from dlsim.realtime.core.node_rules import FRAGMENT, NEVER, next_deadline, nodes_wanted
from dlsim.realtime.core.orders import DEADLINE_ORDER, line_rank
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
    copy_block,
    copy_plan,
    insert_block,
    is_due,
    pop,
    precedes,
    push,
)

#: From this many waiting tasks on, the node releases after the whole plan are remembered.
LONG_QUEUE = 8


@compiled(inline=True)
def take_next_release(floor, idle, next_block, planned_count, state):
    """Take the nodes that are released next: idle ones, of a running task, or of a planned one."""
    if idle > 0:
        return floor, idle, 0, next_block, planned_count
    counters = state.counters[0]
    running = state.running[next_block].time if next_block < counters.end_running else np.inf
    if planned_count > 0 and state.planned_ends[0].time < running:
        time, nodes = state.planned_ends[0].time, state.planned_ends[0].nodes
        return max(time, floor), nodes, 0, next_block, pop(state.planned_ends, planned_count)
    if running == np.inf:
        return np.inf, 0, 0, next_block, planned_count
    return max(running, floor), state.running[next_block].nodes, 0, next_block + 1, planned_count


@compiled(inline=True)
def take_rest_of_instant(floor, groups, idle, next_block, planned_count, state):
    """Add the nodes that are released at the instant of the last group; return their number."""
    last, added = state.chosen_nodes[groups - 1], 0
    while True:
        time, nodes, idle, next_block, planned_count = take_next_release(
            floor, idle, next_block, planned_count, state
        )
        if nodes > 0 and same_instant(time, last.time, state.counters[0].span):
            last.nodes += nodes
            added += nodes
            continue
        if nodes > 0:
            planned_count = push(state.planned_ends, planned_count, time, nodes)
        return added, idle, next_block, planned_count


@compiled(inline=True)
def reserve_nodes(
    task, known, floor, idle, next_block, planned_count, asked, tasks, rules, state, table
):
    """Take the nodes that are released first, as many as a task wants; 0 if it is never in time.

    A `known` number above 0 is not searched. Return the number, the groups of releases, what is
    left, and the smallest later deadline at which the answer could change.
    """
    pool, span = state.chosen_nodes, state.counters[0].span
    n, groups, total, later, were_idle = known, 0, 0, np.inf, idle > 0
    low = tasks[task].n_min
    while True:
        time, nodes, idle, next_block, planned_count = take_next_release(
            floor, idle, next_block, planned_count, state
        )
        if nodes == 0:
            return 0, groups, idle, next_block, planned_count, later
        if groups > 0 and same_instant(time, pool[groups - 1].time, span):
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
                return 0, groups, idle, next_block, planned_count, later
            if n == NEVER:  # nodes that are released later may serve an offer
                n = rules.nodes + 1
            else:
                low = n
        if n <= total:
            break
    if rules.node_rule == FRAGMENT and known == 0:
        added, idle, next_block, planned_count = take_rest_of_instant(
            floor, groups, idle, next_block, planned_count, state
        )
        total, were_idle = total + added, were_idle and added == 0
        n = max(n, min(total, tasks[task].n_star))
    if total > n:  # the others stay idle, or are released when planned
        if groups == 1 and were_idle:
            idle = total - n
        else:
            planned_count = push(
                state.planned_ends, planned_count, pool[groups - 1].time, total - n
            )
        pool[groups - 1].nodes -= total - n
    return n, groups, idle, next_block, planned_count, later


@compiled(inline=True)
def follows_plan(newcomer, now, tasks, rules, state):
    """Tell whether a newcomer is served after a plan whose node releases are remembered."""
    counters, after = state.counters[0], state.counters_after_plan[0]
    if after.end_planned != counters.end_planned:
        return False
    if counters.first_planned == counters.end_planned:
        return False
    last, rank = state.plan[0, counters.end_planned - 1], line_rank(newcomer, tasks, rules)
    if precedes(rank, newcomer, last.rank, last.task, counters.span):
        return False
    if after.first_running == after.end_running:
        return True
    return not is_due(state.after_plan[after.first_running].time, now, counters.span)


@compiled
def after_plan_state(state):
    """Return the state in which the whole plan in force has run."""
    return HeadNodeState(
        state.counters_after_plan,
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


@compiled
def count_plan_in_force(now, tasks, rules, state, table):
    """Count the plan in force as planned in one more test; return the flags of its first task.

    Early nodes of the first task go on idling, so that its releases have moved; the tasks behind
    it find what they found before.
    """
    counters = state.counters[0]
    entry = state.plan[0, counters.first_planned]
    flags = entry.iit_flags
    if entry.start == entry.ready:
        floor = max(now, counters.link_free) if rules.shared else now
        n, groups, _, next_block, planned_count, _ = reserve_nodes(
            entry.task,
            entry.nodes,
            floor,
            counters.idle,
            counters.first_running,
            0,
            False,
            tasks,
            rules,
            state,
            table,
        )
        if groups > 1 or flags > 0:
            planned_count = push(state.planned_ends, planned_count, entry.end, n)
            flags = find_iit_flags(
                entry.task, n, groups, next_block, planned_count, tasks, rules, state
            )
    for k in range(len(IIT_COLUMNS)):
        state.counts[REPLANNED, k] += state.counts[IN_FORCE, k]
    count_iits(REPLANNED, entry.iit_flags, -1, state)
    count_iits(REPLANNED, flags, 1, state)
    return flags


@compiled
def keep_after_plan(next_block, planned_count, link_free, follows, state):
    """Remember the releases after a new plan: the blocks from `next_block` on and planned ends."""
    counters, after = state.counters[0], state.counters_after_plan[0]
    if follows:
        after.first_running = next_block
    else:
        after.first_running, after.end_running = 0, counters.end_running - next_block
        for j in range(after.end_running):
            copy_block(state.running[next_block + j], j, state.after_plan)
        for k in range(len(IIT_COLUMNS)):
            state.counts[IN_FORCE, k] = 0
        for k in range(counters.first_planned, counters.end_planned):
            count_iits(IN_FORCE, state.plan[0, k].iit_flags, 1, state)
    while planned_count > 0:
        time, nodes = state.planned_ends[0].time, state.planned_ends[0].nodes
        planned_count = pop(state.planned_ends, planned_count)
        insert_block(time, nodes, after_plan_state(state))
    after.first_planned = after.end_planned = counters.end_planned
    after.link_free = link_free


@compiled(inline=True)
def admit_in_line(newcomer, now, tasks, rules, state, table):
    """Test a newcomer that is served in line; put the new plan in force if all are in time.

    Return whether it is admitted, and the smallest later deadline at which the answer could
    change. Tasks ahead keep their places; unless ``commit="last"``, when a waiting task may have
    begun on its first nodes and all are planned anew.
    """
    in_force, after = state.counters[0], state.counters_after_plan[0]
    follows, first_flags = follows_plan(newcomer, now, tasks, rules, state), 0
    if follows:
        first_flags = count_plan_in_force(now, tasks, rules, state, table)
        state = after_plan_state(state)
    counters = state.counters[0]
    first, end, span = counters.first_planned, counters.end_planned, counters.span
    link_free, idle, next_block = counters.link_free, counters.idle, counters.first_running
    position, base, planned_count, place, later = first, first, 0, 0, np.inf
    rank, waits, newcomer_flags = line_rank(newcomer, tasks, rules), True, 0
    while waits or position < end:
        entry = state.plan[0, position]
        task, task_rank, known, flags = newcomer, rank, 0, 0
        if waits and (position == end or precedes(rank, newcomer, entry.rank, entry.task, span)):
            waits, base = False, first if rules.last else position
            if position < end and rules.order == DEADLINE_ORDER:
                # a tie that the newcomer wins by its index ends beyond the tolerance
                due = entry.rank
                later = min(later, due if due > rank else deadline_with_tolerance(due, span))
        else:
            task, task_rank = entry.task, entry.rank
            if waits and not rules.last:
                known, flags = entry.nodes, entry.iit_flags
            position += 1
        has_successor = follows or waits or position < end or end - first + 1 >= LONG_QUEUE
        floor = max(now, link_free) if rules.shared else now
        n, groups, idle, next_block, planned_count, beyond = reserve_nodes(
            task,
            known,
            floor,
            idle,
            next_block,
            planned_count,
            rules.offers and task == newcomer,
            tasks,
            rules,
            state,
            table,
        )
        later = min(later, beyond)
        if n == 0:
            return False, later
        if known > 0:  # as planned before: only its nodes and the link are taken
            planned_count, link_free, _ = release_nodes(
                False,
                has_successor,
                task,
                entry.kind,
                entry.rounds,
                n,
                groups,
                entry.start,
                entry.end,
                planned_count,
                link_free,
                tasks,
                rules,
                state,
                table,
            )
            if entry.start == entry.ready and (groups > 1 or flags > 0):  # early nodes idled on
                flags = find_iit_flags(
                    task, n, groups, next_block, planned_count, tasks, rules, state
                )
        else:
            if groups > 1 or rules.every:
                flags = find_iit_flags(
                    task, n, groups, next_block, planned_count, tasks, rules, state
                )
            planned_count, link_free = place_task(
                has_successor,
                task,
                n,
                groups,
                place,
                task_rank,
                planned_count,
                link_free,
                tasks,
                rules,
                state,
                table,
            )
        new = state.plan[1, place]
        new.iit_flags = flags
        count_iits(REPLANNED, flags, 1, state)
        if task == newcomer:
            newcomer_flags = flags
            count_iits(ARRIVAL, flags, 1, state)
        if known == 0 and new.kind == PIECES and rules.shared and new.end > tasks[task].due_tol:
            return False, min(later, new.end) if task == newcomer else later
        place += 1
    for k in range(base - first):
        state.plan[0, first + k].iit_flags = state.plan[1, k].iit_flags
    copy_plan(state.plan[1, base - first : place], state.plan[0, base:])
    counters.end_planned = first + place
    count_iits(ADMITTED, newcomer_flags, 1, state)
    count_iits(RTGRID, newcomer_flags, 1, state)
    if follows:
        in_force.end_planned = after.end_planned
        for k, times in ((in_force.first_planned, -1), (in_force.end_planned - 1, 1)):
            count_iits(IN_FORCE, state.plan[0, k].iit_flags, times, state)
        state.plan[0, in_force.first_planned].iit_flags = first_flags
        count_iits(IN_FORCE, first_flags, 1, state)
    else:
        after.end_planned = -1
    is_long = in_force.end_planned - in_force.first_planned >= LONG_QUEUE
    if follows or (is_long and not rules.last and idle == 0):
        keep_after_plan(next_block, planned_count, link_free, follows, state)
    return True, later
