"""One task on chosen nodes: its place in a plan, when its nodes are released, and its chunks."""

from dlsim.compiled import compiled
from dlsim.realtime.core.node_rules import fill_releases
from dlsim.realtime.core.splits import (
    BY_DLT,
    BY_OPR,
    BY_UMR,
    EQUAL,
    OPR,
    PIECES,
    ROUNDS,
    ROUNDS_EARLY,
    USER_SHARES,
    choose_split,
    chunk_times,
    ends_together,
    receiving_nodes,
    split_on_common_release,
)
from dlsim.realtime.core.state import CALLS_USER, add_planned_end, is_due
from dlsim.realtime.core.user_rules import fill_user_shares


@compiled
def opr_send_end(task, n, start, tasks, rules):
    """Return when the last send of a task ends if its sends follow each other."""
    sends = receiving_nodes(task, n, tasks, rules)
    return start + tasks[task].sigma * rules.cms + sends * rules.st


@compiled
def compute_chunks(entry, tasks, rules, state, table):
    """Compute the chunks of a planned task on the nodes of `state.release` into `state.chunks`.

    Return when the task is computed and when its last send ends.
    """
    sigma, costs = tasks[entry.task].sigma, (rules.cms, rules.cps, rules.st, rules.sc)
    release, chunks = state.release, state.chunks
    if CALLS_USER and entry.kind == USER_SHARES:
        fill_user_shares(entry.task, sigma, release, entry.nodes, rules, table, chunks, 0)
    return chunk_times(
        entry.kind,
        release,
        entry.nodes,
        sigma,
        entry.rounds,
        entry.end,
        costs,
        table.time_per_unit,
        table.first_share_offset,
        rules.shared,
        chunks,
        0,
    )


@compiled
def compute_ends(entry, groups, per_node, tasks, rules, state, table):
    """Return when a task on the chosen nodes is computed, and when its last send ends.

    If its nodes end `per_node`, write when into the first of `HeadNodeState.node_completions`.
    """
    n = entry.nodes
    fill_releases(groups, state.chosen_nodes, state.release)
    completion, sent = compute_chunks(entry, tasks, rules, state, table)
    for k in range(n if per_node else 0):
        one = state.node_completions[k]
        one.time, one.nodes = state.chunks[(entry.rounds - 1) * n + k, 3], 1
    return completion, sent


@compiled(inline=True)
def release_nodes(entry, is_new, has_successor, tasks, rules, state, table):
    """Release the chosen nodes of a planned task, and the link, to the tasks behind it.

    If no later task needs the nodes (`has_successor`), only the completion of a new task is
    computed, where its chunks decide it.
    """
    kind, planning = entry.kind, state.planning
    groups = planning.chosen_groups
    even = ends_together(kind, groups)
    per_node = kind == PIECES or (rules.finish and not even)
    ends_by_chunks = (
        kind == ROUNDS_EARLY or kind == USER_SHARES or (kind == PIECES and rules.shared)
    )
    needs_ends = has_successor and (per_node or (rules.shared and not even))
    if needs_ends or (is_new and ends_by_chunks):
        completion, sent = compute_ends(entry, groups, per_node, tasks, rules, state, table)
        if is_new and ends_by_chunks:
            entry.end = completion
    else:
        sent = opr_send_end(entry.task, entry.nodes, entry.start, tasks, rules)
    if not has_successor:
        return
    if rules.shared:
        planning.link_free = max(planning.link_free, sent)
    if not per_node:
        add_planned_end(entry.end, entry.nodes, state)
        return
    for k in range(entry.nodes - 1, -1, -1):  # mostly ever later: a push costs least
        one = state.node_completions[k]
        add_planned_end(one.time, one.nodes, state)


@compiled(inline=True)
def place_task(task, n, place, rank, has_successor, tasks, rules, state, table):
    """Split a task over the chosen nodes, write it into the new plan and release its nodes."""
    pool, groups = state.chosen_nodes, state.planning.chosen_groups
    used, filled = n, groups
    if rules.partition == BY_OPR or (groups == 1 and BY_DLT <= rules.partition < BY_UMR):
        last = pool[groups - 1].time
        kind, rounds, start, end = split_on_common_release(task, n, last, tasks, rules, table)
    else:
        kind, rounds, start, end, used, filled = choose_split(
            task, n, groups, pool, tasks, rules, table
        )
    for g in range(filled, groups):
        add_planned_end(pool[g].time, pool[g].nodes, state)
    entry = state.plan[1, place]
    entry.task, entry.nodes, entry.start, entry.end, entry.rank = task, used, start, end, rank
    entry.ready, entry.kind, entry.rounds = pool[filled - 1].time, kind, rounds
    entry.iit_flags = 0
    state.planning.chosen_groups = filled
    release_nodes(entry, True, has_successor, tasks, rules, state, table)


# --- chunks of a finished run ---------------------------------------------------------------------


@compiled
def choose_nodes(start, n, early, span, free, chosen, release):
    """Find n nodes for a task: the lowest idle ones, then those that are released first."""
    found = 0
    for node in range(len(free)):
        if found < n and is_due(free[node], start, span):
            chosen[found], release[found] = node, start
            found += 1
    if found < n and not early:
        return False
    after, last = start, -1  # in order of (free, node)
    while found < n:
        best = -1
        for node in range(len(free)):
            time = free[node]
            if is_due(time, start, span):
                continue
            passed = time < after or (time == after and node <= last)
            if not passed and (best < 0 or time < free[best]):
                best = node
        if best < 0:
            return False
        after, last = free[best], best
        chosen[found], release[found] = best, free[best]
        found += 1
    return True


@compiled
def fill_chunks(
    runs, first, times, rules, table, span, node_free, chosen, release, task_and_node, chunks
):
    """Fill one row per chunk, task by task in order of dispatch; return a task that lacks nodes.

    Return -1 if every task finds its nodes.
    """
    costs = (rules.cms, rules.cps, rules.st, rules.sc)
    for task in range(len(runs)):
        n, kind, rounds = runs[task, 0], runs[task, 1], runs[task, 2]
        sigma, start, end = times[task, 0], times[task, 1], times[task, 2]
        early = kind != OPR and kind != EQUAL and kind != ROUNDS
        if not choose_nodes(start, n, early, span, node_free, chosen, release):
            return task
        first_row = first[task]
        if CALLS_USER and kind == USER_SHARES:
            fill_user_shares(task, sigma, release, n, rules, table, chunks, first_row)
        chunk_times(
            kind,
            release,
            n,
            sigma,
            rounds,
            end,
            costs,
            table.time_per_unit,
            table.first_share_offset,
            rules.shared,
            chunks,
            first_row,
        )
        for row in range(first_row, first_row + n * rounds):
            task_and_node[row, 0], task_and_node[row, 1] = task, chosen[(row - first_row) % n]
        for k in range(n):
            per_node = kind == PIECES or (rules.finish and kind != OPR)
            node_free[chosen[k]] = chunks[first_row + (rounds - 1) * n + k, 3] if per_node else end
    return -1
