"""The admission tests: whether all deadlines are met if a newcomer joins the waiting tasks.

`schedulability_test` decides for every order and rule: it plans all tasks that wait anew, from
instant to instant at which nodes become free. `admit_in_line` decides where tasks are served one
after another by a rank that does not change with time. A task then takes the nodes that are
released first, and the tasks behind it find the others no earlier: the test begins at the
newcomer's place, and at the end of a long queue it costs the same however long that is.

The two differ where nodes of one task end one by one (pieces). In line, a task behind may take
such a node as soon as it ends. The general test looks at the next task only at the instant at
which the one ahead has all its nodes, and asks for its deadline from then on; so it refuses some
tasks that a line serves.

Source: paper M, section 5, Schedulability_Test(), whose line numbers are cited; paper I,
sections 4.2 to 4.5.
"""

import numpy as np

from dlsim.compiled import compiled, latest_finish, same_instant
from dlsim.realtime.core.idle_times import count_iits, find_iit_flags
from dlsim.realtime.core.node_rules import (
    FEWEST,
    FRAGMENT,
    NEVER,
    USER_NODES,
    next_deadline,
    nodes_wanted,
)
from dlsim.realtime.core.orders import DEADLINE_ORDER, MCDF_ORDER, USER_ORDER, line_rank, rank_at
from dlsim.realtime.core.placement import place_task, release_nodes
from dlsim.realtime.core.splits import BY_PIECES, BY_USER, PIECES, starts_together
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
    next_release,
    pop,
    precedes,
    push,
    set_pending,
    sort_pending,
)
from dlsim.realtime.core.user_rules import has_failed

#: Of a queue of at least this many tasks it is remembered which nodes its plan leaves.
LONG_QUEUE = 8


# --- the general test -----------------------------------------------------------------------------


@compiled
def next_rank_change(newcomer, count, tasks, rules, state):
    """Return the smallest later deadline of a newcomer at which its place in EDF order changes."""
    later, span, due = np.inf, state.counters[0].span, tasks[newcomer].due
    if rules.offers and rules.order == DEADLINE_ORDER:
        for k in range(count):
            other = tasks[state.pending[k].task].due
            if state.pending[k].task != newcomer and not latest_finish(other, span) <= due:
                later = min(later, other if other > due else latest_finish(other, span))
    return later


@compiled
def add_released(t, floor, groups, idle, block, size, state):
    """Add the nodes that running and planned tasks release by t to `state.idle_nodes`."""
    counters, pool = state.counters[0], state.idle_nodes
    while True:
        running = state.running[block].time if block < counters.end_running else np.inf
        planned = state.planned_ends[0].time if size > 0 else np.inf
        time = min(running, planned)
        if time == np.inf or not is_due(time, t, counters.span):
            return groups, idle, block, size
        if planned < running:
            nodes = state.planned_ends[0].nodes
            size = pop(state.planned_ends, size)
        else:
            nodes = state.running[block].nodes
            block += 1
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
    link, idle, block = counters.link_free, counters.idle, counters.first_running
    first, end = 0, counters.end_planned - counters.first_planned + 1
    place, groups, size, t = 0, 0, 0, now
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
    if idle == 0 or (rules.shared and not is_due(link, t, counters.span)):
        t = max(t, next_release(t, idle, link, block, size, rules.shared, state))
    while True:
        groups, idle, block, size = add_released(t, now, groups, idle, block, size, state)
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
            floor = max(now, link) if rules.shared else now
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
            size, link = place_task(
                True, task, n, filled, place, one.rank, size, link, tasks, rules, state, table
            )
            entry = state.plan[1, place]
            if (uncertain and entry.end > tasks[task].due_tol) or has_failed(rules.user):
                return False, min(later, entry.end) if task == newcomer else later
            place += 1
            blocked = rules.shared and not is_due(link, t, counters.span)
            groups, idle, block, size = add_released(t, now, groups, idle, block, size, state)
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
        t = next_release(t, idle, link, block, size, rules.shared, state)


# --- the test of tasks that are served in line ----------------------------------------------------


@compiled(inline=True)
def take_next_release(floor, idle, block, size, state):
    """Take the nodes that are released next: idle ones, of a running task, or of a planned one."""
    if idle > 0:
        return floor, idle, 0, block, size
    counters = state.counters[0]
    running = state.running[block].time if block < counters.end_running else np.inf
    if size > 0 and state.planned_ends[0].time < running:
        time, nodes = state.planned_ends[0].time, state.planned_ends[0].nodes
        return max(time, floor), nodes, 0, block, pop(state.planned_ends, size)
    if running == np.inf:
        return np.inf, 0, 0, block, size
    return max(running, floor), state.running[block].nodes, 0, block + 1, size


@compiled(inline=True)
def take_rest_of_instant(floor, groups, idle, block, size, state):
    """Add the nodes that are released at the instant of the last group; return their number."""
    last, added = state.chosen_nodes[groups - 1], 0
    while True:
        time, nodes, idle, block, size = take_next_release(floor, idle, block, size, state)
        if nodes > 0 and same_instant(time, last.time, state.counters[0].span):
            last.nodes += nodes
            added += nodes
            continue
        if nodes > 0:
            size = push(state.planned_ends, size, time, nodes)
        return added, idle, block, size


@compiled(inline=True)
def reserve_nodes(task, known, floor, idle, block, size, asked, tasks, rules, state, table):
    """Take the nodes that are released first, as many as a task wants; 0 if it is never in time.

    A `known` number above 0 is not searched. Return the number, the groups of releases, what is
    left, and the smallest later deadline at which the answer could change.
    """
    pool, span = state.chosen_nodes, state.counters[0].span
    n, groups, total, later, were_idle = known, 0, 0, np.inf, idle > 0
    low = tasks[task].n_min
    while True:
        time, nodes, idle, block, size = take_next_release(floor, idle, block, size, state)
        if nodes == 0:
            return 0, groups, idle, block, size, later
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
                return 0, groups, idle, block, size, later
            if n == NEVER:  # nodes that are released later may serve an offer
                n = rules.nodes + 1
            else:
                low = n
        if n <= total:
            break
    if rules.node_rule == FRAGMENT and known == 0:
        added, idle, block, size = take_rest_of_instant(floor, groups, idle, block, size, state)
        total, were_idle = total + added, were_idle and added == 0
        n = max(n, min(total, tasks[task].n_star))
    if total > n:  # the others stay idle, or are released when planned
        if groups == 1 and were_idle:
            idle = total - n
        else:
            size = push(state.planned_ends, size, pool[groups - 1].time, total - n)
        pool[groups - 1].nodes -= total - n
    return n, groups, idle, block, size, later


@compiled(inline=True)
def follows_plan(newcomer, now, tasks, rules, state):
    """Tell whether a newcomer is served after a plan of which it is known what it leaves."""
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
        n, groups, _, block, size, _ = reserve_nodes(
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
            size = push(state.planned_ends, size, entry.end, n)
            flags = find_iit_flags(entry.task, n, groups, block, size, tasks, rules, state)
    for k in range(len(IIT_COLUMNS)):
        state.counts[REPLANNED, k] += state.counts[IN_FORCE, k]
    count_iits(REPLANNED, entry.iit_flags, -1, state)
    count_iits(REPLANNED, flags, 1, state)
    return flags


@compiled
def keep_after_plan(block, size, link, follows, state):
    """Remember what a new plan leaves: the blocks from `block` on, and the planned ends."""
    counters, after = state.counters[0], state.counters_after_plan[0]
    if follows:
        after.first_running = block
    else:
        after.first_running, after.end_running = 0, counters.end_running - block
        for j in range(after.end_running):
            copy_block(state.running[block + j], j, state.after_plan)
        for k in range(len(IIT_COLUMNS)):
            state.counts[IN_FORCE, k] = 0
        for k in range(counters.first_planned, counters.end_planned):
            count_iits(IN_FORCE, state.plan[0, k].iit_flags, 1, state)
    while size > 0:
        time, nodes = state.planned_ends[0].time, state.planned_ends[0].nodes
        size = pop(state.planned_ends, size)
        insert_block(time, nodes, after_plan_state(state))
    after.first_planned = after.end_planned = counters.end_planned
    after.link_free = link


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
    link, idle, block = counters.link_free, counters.idle, counters.first_running
    position, base, size, place, later = first, first, 0, 0, np.inf
    rank, waits, newcomer_flags = line_rank(newcomer, tasks, rules), True, 0
    while waits or position < end:
        entry = state.plan[0, position]
        task, task_rank, known, flags = newcomer, rank, 0, 0
        if waits and (position == end or precedes(rank, newcomer, entry.rank, entry.task, span)):
            waits, base = False, first if rules.last else position
            if position < end and rules.order == DEADLINE_ORDER:
                # a tie that the newcomer wins by its index ends beyond the tolerance
                due = entry.rank
                later = min(later, due if due > rank else latest_finish(due, span))
        else:
            task, task_rank = entry.task, entry.rank
            if waits and not rules.last:
                known, flags = entry.nodes, entry.iit_flags
            position += 1
        has_successor = follows or waits or position < end or end - first + 1 >= LONG_QUEUE
        floor = max(now, link) if rules.shared else now
        n, groups, idle, block, size, beyond = reserve_nodes(
            task,
            known,
            floor,
            idle,
            block,
            size,
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
            size, link, _ = release_nodes(
                False,
                has_successor,
                task,
                entry.kind,
                entry.rounds,
                n,
                groups,
                entry.start,
                entry.end,
                size,
                link,
                tasks,
                rules,
                state,
                table,
            )
            if entry.start == entry.ready and (groups > 1 or flags > 0):  # early nodes idled on
                flags = find_iit_flags(task, n, groups, block, size, tasks, rules, state)
        else:
            if groups > 1 or rules.every:
                flags = find_iit_flags(task, n, groups, block, size, tasks, rules, state)
            size, link = place_task(
                has_successor,
                task,
                n,
                groups,
                place,
                task_rank,
                size,
                link,
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
        keep_after_plan(block, size, link, follows, state)
    return True, later
