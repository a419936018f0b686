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
from dlsim.realtime.core.nodes import FRAGMENT, NEVER, next_deadline, nodes_wanted
from dlsim.realtime.core.orders import DEADLINE_ORDER, precedes
from dlsim.realtime.core.placement import place_task, release_nodes
from dlsim.realtime.core.splits import PIECES
from dlsim.realtime.core.state import (
    ADMITTED,
    AFTER_PLAN,
    ARRIVAL,
    IIT_COLUMNS,
    IN_FORCE,
    NEW,
    PLANNED,
    REPLANNED,
    RTGRID,
    RUNNING,
    add_planned_end,
    begin_plan,
    copy_block,
    copy_plan,
    insert_block,
    is_due,
    next_running,
    note_deadline,
    remove_planned_end,
    seeks_offer,
)

#: From this many waiting tasks on, the node releases after the whole plan are remembered.
LONG_QUEUE = 8


# --- the nodes of one task ------------------------------------------------------------------------


@compiled(inline=True)
def take_next_release(floor, state):
    """Take the nodes that are released next: idle ones, of a running task, or of a planned one.

    Return when they are released, and how many there are: 0 if none is left.
    """
    planning, idle = state.planning, state.idle.size
    if idle.nodes > 0:
        nodes = idle.nodes
        idle.nodes = 0
        return floor, nodes
    running = next_running(state)
    if planning.planned_count > 0 and state.planned_ends[0].time < running:
        time, nodes = state.planned_ends[0].time, state.planned_ends[0].nodes
        remove_planned_end(state)
        return max(time, floor), nodes
    if running == np.inf:
        return np.inf, 0
    planning.next_block += 1
    return max(running, floor), state.running[planning.row, planning.next_block - 1].nodes


@compiled(inline=True)
def choose_next_release(floor, state):
    """Add the nodes that are released next to the chosen ones; tell whether there are any."""
    pool, size = state.chosen.releases, state.chosen.size
    time, nodes = take_next_release(floor, state)
    if nodes == 0:
        return False
    last = size.groups - 1
    if last >= 0 and times_tie(time, pool[last].time, state.counters.span):
        pool[last].nodes += nodes
    else:
        pool[last + 1].time, pool[last + 1].nodes = time, nodes
        size.groups += 1
    size.nodes += nodes
    return True


@compiled
def choose_rest_of_instant(floor, state):
    """Add the nodes that are released at the instant of the last group of the chosen ones."""
    last = state.chosen.releases[state.chosen.size.groups - 1]
    while True:
        time, nodes = take_next_release(floor, state)
        if nodes == 0:
            return
        if not times_tie(time, last.time, state.counters.span):
            add_planned_end(time, nodes, state)
            return
        last.nodes += nodes
        state.chosen.size.nodes += nodes


@compiled(inline=True)
def begin_choice(state):
    """Begin to choose nodes; return how many are idle."""
    state.chosen.size.groups = state.chosen.size.nodes = 0
    return state.idle.size.nodes


@compiled(inline=True)
def give_back_surplus(n, idle, state):
    """Give back the chosen nodes beyond n: they stay idle, or are released when planned.

    `idle` is how many nodes were idle before.
    """
    size = state.chosen.size
    last, surplus = state.chosen.releases[size.groups - 1], size.nodes - n
    if surplus > 0:
        if size.groups == 1 and size.nodes == idle:
            state.idle.size.nodes = surplus
        else:
            add_planned_end(last.time, surplus, state)
        last.nodes -= surplus


@compiled(inline=True)
def choose_known_number(n, floor, state):
    """Choose the n nodes that are released first."""
    idle = begin_choice(state)
    while state.chosen.size.nodes < n and choose_next_release(floor, state):
        pass
    give_back_surplus(n, idle, state)


@compiled(inline=True)
def choose_nodes_wanted(task, floor, state):
    """Choose the nodes that are released first, as many as a task wants; 0 if never in time.

    Return the number. If an offer to the task is sought, note the deadlines at which it would
    change.
    """
    idle, chosen, size = begin_choice(state), state.chosen, state.chosen.size
    low, seeks = state.tasks[task].n_min, seeks_offer(task, state)
    while True:
        if not choose_next_release(floor, state):
            return 0
        time = chosen.releases[size.groups - 1].time
        n = nodes_wanted(task, time, low, 0, chosen, state)
        if seeks:
            note_deadline(next_deadline(task, time, n, size.nodes, chosen, state), state)
        elif n == NEVER:
            return 0
        if n != NEVER:  # else nodes that are released later may serve an offer
            low = n
            if n <= size.nodes:
                break
    if state.rules.node_rule == FRAGMENT:
        choose_rest_of_instant(floor, state)
        n = max(n, min(size.nodes, state.tasks[task].n_star))
    give_back_surplus(n, idle, state)
    return n


# --- what a long plan leaves ----------------------------------------------------------------------


@compiled(inline=True)
def follows_plan(newcomer, now, state):
    """Tell whether a newcomer is served after a plan whose node releases are remembered."""
    counters, after, tasks = state.counters, state.counters_after_plan, state.tasks
    if after.end_planned != counters.end_planned:
        return False
    if counters.first_planned == counters.end_planned:
        return False
    last, rank = state.plan[PLANNED, counters.end_planned - 1], tasks[newcomer].rank
    if precedes(rank, newcomer, last.rank, last.task, tasks, counters.span):
        return False
    if after.first_running == after.end_running:
        return True
    return not is_due(state.running[AFTER_PLAN, after.first_running].time, now, counters.span)


@compiled
def find_flags_again(entry, state):
    """Return the flags of a task whose nodes are chosen as planned before.

    If it has all its nodes at its start, early ones have idled on since, so that its releases have
    moved.
    """
    if entry.start == entry.ready and (state.chosen.size.groups > 1 or entry.iit_flags > 0):
        return find_iit_flags(entry.task, entry.nodes, state)
    return entry.iit_flags


@compiled
def count_plan_in_force(now, state):
    """Count the plan in force as planned in one more test; return the flags of its first task.

    Early nodes of the first task go on idling, so that its releases have moved; the tasks behind
    it find what they found before.
    """
    counters = state.counters
    entry = state.plan[PLANNED, counters.first_planned]
    flags = entry.iit_flags
    if entry.start == entry.ready:
        begin_plan(False, state)
        floor = max(now, counters.link_free) if state.rules.shared else now
        choose_known_number(entry.nodes, floor, state)
        add_planned_end(entry.end, entry.nodes, state)
        flags = find_flags_again(entry, state)
    for k in range(len(IIT_COLUMNS)):
        state.counts[REPLANNED, k] += state.counts[IN_FORCE, k]
    count_iits(REPLANNED, entry.iit_flags, -1, state)
    count_iits(REPLANNED, flags, 1, state)
    return flags


@compiled
def keep_after_plan(state):
    """Remember the releases after a plan: running blocks that it has not used, planned ends."""
    counters, after, planning = state.counters, state.counters_after_plan, state.planning
    running, left = state.running[RUNNING], state.running[AFTER_PLAN]
    if planning.row == AFTER_PLAN:
        after.first_running = planning.next_block
    else:
        after.first_running, after.end_running = 0, planning.end_block - planning.next_block
        for j in range(after.end_running):
            copy_block(running[planning.next_block + j], j, left)
        for k in range(len(IIT_COLUMNS)):
            state.counts[IN_FORCE, k] = 0
        for k in range(counters.first_planned, counters.end_planned):
            count_iits(IN_FORCE, state.plan[PLANNED, k].iit_flags, 1, state)
    while planning.planned_count > 0:
        time, nodes = state.planned_ends[0].time, state.planned_ends[0].nodes
        remove_planned_end(state)
        insert_block(time, nodes, after, left)
    after.end_planned, after.link_free = counters.end_planned, planning.link_free


# --- the test -------------------------------------------------------------------------------------


@compiled(inline=True)
def keep_task(entry, place, now, state):
    """Take the nodes and the link of a task ahead of the newcomer, as planned before."""
    floor = max(now, state.planning.link_free) if state.rules.shared else now
    choose_known_number(entry.nodes, floor, state)
    release_nodes(entry, False, True, state)
    flags = find_flags_again(entry, state)
    state.plan[NEW, place].iit_flags = flags
    count_iits(REPLANNED, flags, 1, state)


@compiled(inline=True)
def place_new(task, rank, place, has_successor, now, state):
    """Plan a task on the nodes that are released first; tell whether it is in time."""
    rules, planning = state.rules, state.planning
    floor = max(now, planning.link_free) if rules.shared else now
    n, flags, new = choose_nodes_wanted(task, floor, state), 0, state.plan[NEW, place]
    if n == 0:
        return False
    if state.chosen.size.groups > 1 or rules.every:
        flags = find_iit_flags(task, n, state)
    place_task(task, n, place, rank, has_successor, state)
    new.iit_flags = flags
    count_iits(REPLANNED, flags, 1, state)
    if task == planning.newcomer:
        count_iits(ARRIVAL, flags, 1, state)
    if not (new.kind == PIECES and rules.shared) or new.end <= state.tasks[task].due_tol:
        return True
    if task == planning.newcomer:
        note_deadline(new.end, state)
    return False


@compiled(inline=True)
def comes_next(newcomer, position, state):
    """Tell whether a newcomer is served before the task at a position of the plan in force."""
    if position == state.counters.end_planned:
        return True
    entry, rank = state.plan[PLANNED, position], state.tasks[newcomer].rank
    return precedes(rank, newcomer, entry.rank, entry.task, state.tasks, state.counters.span)


@compiled(inline=True)
def note_rank_change(newcomer, position, state):
    """Note the later deadline of a newcomer at which it is served behind the task it precedes."""
    is_last = position == state.counters.end_planned
    if state.rules.offers and state.rules.order == DEADLINE_ORDER and not is_last:
        due, rank = state.plan[PLANNED, position].rank, state.tasks[newcomer].rank
        # a tie that the newcomer wins by its place ends beyond the tolerance
        beyond = deadline_with_tolerance(due, state.counters.span)
        note_deadline(due if due > rank else beyond, state)


@compiled(inline=True)
def put_in_force(first, kept, place, newcomer_place, state):
    """Put the new plan in force from `first` on: `kept` tasks keep their places, get new flags."""
    old, new = state.plan[PLANNED], state.plan[NEW]
    for k in range(kept):
        old[first + k].iit_flags = new[k].iit_flags
    copy_plan(new[kept:place], old[first + kept :])
    state.counters.end_planned = first + place
    flags = new[newcomer_place].iit_flags
    count_iits(ADMITTED, flags, 1, state)
    count_iits(RTGRID, flags, 1, state)


@compiled(inline=True)
def remember_plan(follows, first_flags, state):
    """Remember what the plan in force leaves if it is long; `first_flags` are of its first task."""
    counters, after = state.counters, state.counters_after_plan
    if follows:
        first, last = counters.first_planned, counters.end_planned - 1
        count_iits(IN_FORCE, state.plan[PLANNED, first].iit_flags, -1, state)
        count_iits(IN_FORCE, state.plan[PLANNED, last].iit_flags, 1, state)
        state.plan[PLANNED, first].iit_flags = first_flags
        count_iits(IN_FORCE, first_flags, 1, state)
    else:
        after.end_planned = -1
    is_long = counters.end_planned - counters.first_planned >= LONG_QUEUE
    if follows or (is_long and not state.rules.last and state.idle.size.nodes == 0):
        keep_after_plan(state)


@compiled(inline=True)
def admit_in_line(newcomer, now, state):
    """Test a newcomer that is served in line; put the new plan in force if all are in time.

    Return whether it is admitted. Tasks ahead keep their places; unless ``commit="last"``, when a
    waiting task may have begun on its first nodes and all are planned anew.
    """
    tasks, counters, last = state.tasks, state.counters, state.rules.last
    follows, first_flags = follows_plan(newcomer, now, state), 0
    if follows:
        first_flags = count_plan_in_force(now, state)
    begin_plan(follows, state)
    end = counters.end_planned
    first = end if follows else counters.first_planned
    is_long = follows or end - first + 1 >= LONG_QUEUE
    position, place, kept, newcomer_place, waits = first, 0, 0, 0, True
    while waits or position < end:
        entry = state.plan[PLANNED, position]
        task, rank = entry.task, entry.rank
        if waits and comes_next(newcomer, position, state):
            task, rank, newcomer_place, waits = newcomer, tasks[newcomer].rank, place, False
            note_rank_change(newcomer, position, state)
        else:
            position += 1
        if waits and not last:
            keep_task(entry, place, now, state)
            kept += 1
        elif not place_new(task, rank, place, waits or position < end or is_long, now, state):
            return False
        place += 1
    put_in_force(first, kept, place, newcomer_place, state)
    remember_plan(follows, first_flags, state)
    return True
