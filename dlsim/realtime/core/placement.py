"""One task on chosen nodes: its place in a plan, and when its nodes and the link are released."""

from dlsim.compiled import compiled
from dlsim.realtime.core.chunks import compute_chunks
from dlsim.realtime.core.nodes import fill_releases
from dlsim.realtime.core.splits import (
    BY_DLT,
    BY_OPR,
    BY_UMR,
    choose_split,
    ends_node_by_node,
    ends_together,
    ends_with_its_chunks,
    receiving_nodes,
    split_on_common_release,
)
from dlsim.realtime.core.state import NEW, add_planned_end


@compiled(inline=True)
def opr_send_end(task, n, start, state):
    """Return when the last send of a task ends if its sends follow each other."""
    rules, sends = state.rules, receiving_nodes(task, n, state)
    return start + state.tasks[task].sigma * rules.cms + sends * rules.st


@compiled
def compute_ends(entry, per_node, state):
    """Return when a task on the chosen nodes is computed, and when its last send ends.

    If its nodes end `per_node`, write when into the first of `HeadNodeState.node_completions`.
    """
    n = entry.nodes
    fill_releases(state.chosen, state.release)
    completion, sent = compute_chunks(entry, state.chunks, state)
    for k in range(n if per_node else 0):
        one = state.node_completions[k]
        one.time, one.nodes = state.chunks[(entry.rounds - 1) * n + k, 3], 1
    return completion, sent


@compiled(inline=True)
def add_ends(entry, per_node, state):
    """Let the nodes of a planned task be released at its end, or each at its own."""
    if not per_node:
        add_planned_end(entry.end, entry.nodes, state)
        return
    for k in range(entry.nodes - 1, -1, -1):  # mostly ever later: a push costs least
        one = state.node_completions[k]
        add_planned_end(one.time, one.nodes, state)


@compiled(inline=True)
def release_nodes(entry, is_new, has_successor, state):
    """Release the chosen nodes of a planned task, and the link, to the tasks behind it.

    If no later task needs the nodes (`has_successor`), only the completion of a new task is
    computed, where its chunks decide it.
    """
    rules, planning = state.rules, state.planning
    even = ends_together(entry.kind, state.chosen.size.groups)
    per_node = ends_node_by_node(entry.kind, even, rules)
    sets_end = is_new and ends_with_its_chunks(entry.kind, rules)
    if sets_end or (has_successor and (per_node or (rules.shared and not even))):
        completion, sent = compute_ends(entry, per_node, state)
        if sets_end:
            entry.end = completion
    else:
        sent = opr_send_end(entry.task, entry.nodes, entry.start, state)
    if has_successor:
        if rules.shared:
            planning.link_free = max(planning.link_free, sent)
        add_ends(entry, per_node, state)


@compiled(inline=True)
def place_task(task, n, place, rank, has_successor, state):
    """Split a task over the chosen nodes, write it into the new plan and release its nodes."""
    pool, size, partition = state.chosen.releases, state.chosen.size, state.rules.partition
    groups = size.groups
    used, filled = n, groups
    if partition == BY_OPR or (groups == 1 and BY_DLT <= partition < BY_UMR):
        last = pool[groups - 1].time
        kind, rounds, start, end = split_on_common_release(task, n, last, state)
    else:
        kind, rounds, start, end, used, filled = choose_split(task, n, state.chosen, state)
    for g in range(filled, groups):
        add_planned_end(pool[g].time, pool[g].nodes, state)
    entry = state.plan[NEW, place]
    entry.task, entry.nodes, entry.start, entry.end, entry.rank = task, used, start, end, rank
    entry.ready, entry.kind, entry.rounds = pool[filled - 1].time, kind, rounds
    entry.iit_flags = 0
    size.groups = filled
    release_nodes(entry, True, has_successor, state)
