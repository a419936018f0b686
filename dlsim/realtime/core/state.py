"""The state of the head node while it plans, as arrays: running tasks and the plan in force.

Idle nodes are counted, not listed: sorted blocks (time, nodes) say when nodes are released. The
cost of a test follows the number of blocks, not the number of nodes: one block for each task, or
one for each node that ends by itself.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import compiled, is_compiling, times_tie, zero_recarray
from dlsim.realtime.core.formulas import MOST_ROUNDS
from dlsim.realtime.core.splits import BY_OPR, BY_PIECES

RecordArray = NDArray[np.void]

#: Whether this core calls functions of a user: only an uncompiled one can.
CALLS_USER = not is_compiling()

#: Counting rules of `Schedule.counts`, the rows, and what they count, the columns.
IIT_COUNT_RULES = ("admitted", "arrival", "replanned", "dispatched", "rtgrid")
IIT_COLUMNS = ("s_iits", "opt_iits", "opt_iits_ii", "non_positive")
#: Places of the rows; the last row, below the counting rules, counts the plan in force.
ADMITTED, ARRIVAL, REPLANNED, DISPATCHED, RTGRID, IN_FORCE = range(6)

#: Rows of `HeadNodeState.plan`: the plan in force, the one that is being made, and the one that
#: was in force before an offer was tried.
PLANNED, NEW, KEPT = range(3)
#: Rows of `HeadNodeState.running`: when running tasks release nodes; when nodes are released after
#: the whole plan in force.
RUNNING, AFTER_PLAN = range(2)

#: A task. Instants are absolute; `due` moves when an offer is accepted. `due_tol` is the latest
#: completion that meets `due`, `rank` the rank in a static order, `n_star` N*, `n_min` the fewest
#: nodes at the task's test (its fixed number, or 1 where no rule asks for it), `duration` how long
#: it occupies these, `requested` the number of nodes that its user asks for, and `place` its place
#: among tasks of equal rank.
TASK = np.dtype(
    [(name, "f8") for name in ("arrival", "sigma", "due", "rank", "due_tol", "duration")]
    + [(name, "i8") for name in ("n_star", "n_min", "requested", "place")]
)
#: Nodes that are released at a time.
NODE_BLOCK = np.dtype([("time", "f8"), ("nodes", "i8")])
#: How many groups of releases a pool has, and how many nodes.
POOL_SIZE = np.dtype([("groups", "i8"), ("nodes", "i8")])
#: A planned task; `rank` is the rank at its start, `ready` the instant at which the last of its
#: nodes is released, `kind` how it is split, and `iit_flags` what Table 1 counts.
ENTRY = np.dtype(
    [("task", "i8"), ("nodes", "i8")]
    + [(name, "f8") for name in ("start", "end", "rank", "ready")]
    + [(name, "i8") for name in ("kind", "rounds", "iit_flags")]
)
#: A task that is still to be planned, with the nodes it took at the latest instant looked at.
PENDING = np.dtype([("task", "i8"), ("nodes", "i8"), ("rank", "f8")])
#: Idle nodes; first and end of the running blocks; first and end of the plan in force; how many
#: tasks are dispatched; when the link becomes free; the scale of the tolerance between instants.
COUNTERS = np.dtype(
    [
        (name, "i8")
        for name in ("idle", "first_running", "end_running", "first_planned", "end_planned")
    ]
    + [("dispatched", "i8"), ("link_free", "f8"), ("span", "f8")]
)
#: How far a plan in the making has come: the row of `running` that it begins with, the first of
#: its blocks that the plan has not used, and their end; the number of `planned_ends`; first and end
#: of the `pending` tasks, and how many are placed; when the link becomes free. Then the `newcomer`
#: that is tested, and the smallest `later` deadline of it at which the answer could change (only
#: where offers are sought).
PLANNING = np.dtype(
    [(name, "i8") for name in ("row", "next_block", "end_block", "planned_count")]
    + [(name, "i8") for name in ("first_pending", "end_pending", "placed", "newcomer")]
    + [("link_free", "f8"), ("later", "f8")]
)
#: A policy under a reading on a cluster; `dlsim.realtime.split.Rules` fills it.
RULE_RECORD = np.dtype(
    [(name, "f8") for name in ("cms", "cps", "st", "sc", "send_part", "negotiate")]
    + [(name, "i8") for name in ("nodes", "order", "node_rule", "partition", "rounds")]
    # of the policy
    + [(name, "?") for name in ("all_nodes", "in_line", "tested_in_line", "has_user_rules")]
    + [(name, "?") for name in ("ranks_change", "in_rounds", "from_one_instant", "fixed_nodes")]
    + [(name, "?") for name in ("nodes_at_arrival", "n_min_at_arrival")]
    + [(name, "?") for name in ("asks_user", "ends_by_chunks", "offers")]
    # of the reading
    + [(name, "?") for name in ("best", "strict", "frozen", "infinite_top", "once", "shared")]
    + [(name, "?") for name in ("by_policy", "commit", "test_first", "finish", "last")]
    + [(name, "?") for name in ("every", "skip_ties", "single")]
)
#: What became of a task; `turn` is its place in the order of dispatch.
RESULT = np.dtype(
    [(name, "f8") for name in ("start", "estimate", "end")]
    + [(name, "i8") for name in ("nodes", "kind", "rounds", "turn")]
)


class Pool(NamedTuple):
    """Nodes by their releases: groups (time, nodes), in order of release."""

    releases: RecordArray  # NODE_BLOCK
    size: np.record  # POOL_SIZE


class HeadNodeState(NamedTuple):
    """What the head node knows: tasks, rules, running tasks, the plan in force, arrays to plan in.

    Every kernel that plans takes it as its last argument.
    """

    tasks: RecordArray  # TASK
    rules: Any  # RULE_RECORD, or the same names with the functions of a user
    table: Any  # dlsim.realtime.formulas.TimeTable
    counters: np.record  # COUNTERS
    counters_after_plan: np.record  # COUNTERS after the whole plan, if `end_planned` agrees
    planning: np.record  # PLANNING
    running: RecordArray  # when nodes are released, sorted by time; rows RUNNING and AFTER_PLAN
    plan: RecordArray  # rows PLANNED, NEW and KEPT
    pending: RecordArray  # tasks that are still to be planned in this test
    planned_ends: RecordArray  # when nodes of planned tasks are released, a binary heap
    chosen: Pool  # the nodes of the task that is being placed
    idle: Pool  # the nodes that are idle at an instant; in line only their number
    node_completions: RecordArray  # ends of the nodes of a task, where each ends by itself
    release: NDArray[np.float64]  # releases of the chosen nodes, node by node
    chunks: NDArray[np.float64]  # the chunks of the task that is being placed
    counts: NDArray[np.int64]  # by `IIT_COUNT_RULES` and `IN_FORCE`, and `IIT_COLUMNS`
    batch: NDArray[np.int64]  # the tasks that arrive together, in the order of their tests


def rules_record(rules: Any) -> Any:
    """Return a policy under a reading as the kernels take it: compiled ones, as a record."""
    if CALLS_USER:
        return rules
    values = tuple(getattr(rules, name) for name in RULE_RECORD.names or ())
    return np.array([values], RULE_RECORD).view(np.recarray)[0]


def fresh_state(
    tasks: RecordArray, rules: Any, table: Any, span: float, busy: int = 0
) -> HeadNodeState:
    """Return the state of a cluster with room for all tasks at once, and for `busy` nodes more."""
    room, n = len(tasks) + busy + 2, rules.nodes
    node_by_node = rules.finish or rules.partition == BY_PIECES
    blocks = 2 * n + 2 if node_by_node else room
    groups = min(n, 4 * blocks) + 2
    counters, after_plan = zero_recarray(2, COUNTERS)
    counters.idle, counters.span = n, span
    after_plan.span, after_plan.end_planned = span, -1
    single = n if rules.partition > BY_OPR else 0
    chosen, idle = map(Pool, zero_recarray((2, groups), NODE_BLOCK), zero_recarray(2, POOL_SIZE))
    return HeadNodeState(
        tasks=tasks,
        rules=rules_record(rules),
        table=table,
        counters=counters,
        counters_after_plan=after_plan,
        planning=zero_recarray(1, PLANNING)[0],
        running=zero_recarray((2, max(blocks, 2 * groups)), NODE_BLOCK),
        plan=zero_recarray((3 if rules.offers else 2, room), ENTRY),
        pending=zero_recarray(room, PENDING),
        planned_ends=zero_recarray(groups, NODE_BLOCK),
        chosen=chosen,
        idle=idle,
        node_completions=zero_recarray(groups, NODE_BLOCK),
        release=np.empty(n),
        chunks=np.empty((single * (rules.rounds or MOST_ROUNDS), 4)),
        counts=np.zeros((IN_FORCE + 1, len(IIT_COLUMNS)), dtype=np.int64),
        batch=np.empty(room, dtype=np.int64),
    )


def fresh_results(tasks: int) -> RecordArray:
    """Return the results of tasks none of which has run."""
    fresh = zero_recarray(1, RESULT)
    fresh["start"] = fresh["estimate"] = fresh["end"] = np.nan
    fresh["turn"] = -1
    fresh["rounds"] = 1
    return np.repeat(fresh, tasks)  # faster than setting field by field


# --- copies ---------------------------------------------------------------------------------------


@compiled(inline=True)
def set_pending(place, task, nodes, rank, state):
    """Write one task that is still to be planned."""
    one = state.pending[place]
    one.task, one.nodes, one.rank = task, nodes, rank


@compiled
def copy_block(block, place, blocks):
    """Copy a block to a place, field by field: a whole record is copied byte by byte."""
    blocks[place].time, blocks[place].nodes = block.time, block.nodes


@compiled
def copy_plan(entries, to):
    """Copy planned tasks over others, field by field."""
    for k in range(len(entries)):
        new, old = to[k], entries[k]
        new.task, new.nodes, new.start, new.end = old.task, old.nodes, old.start, old.end
        new.rank, new.ready, new.kind = old.rank, old.ready, old.kind
        new.rounds, new.iit_flags = old.rounds, old.iit_flags


# --- a binary heap of releases --------------------------------------------------------------------


@compiled
def push(heap, size, time, nodes):
    """Add (time, nodes) to a binary heap of `size` entries; return the new size."""
    i = size
    while i > 0:
        above = heap[(i - 1) // 2]
        if above.time < time or (above.time == time and above.nodes <= nodes):
            break
        copy_block(above, i, heap)
        i = (i - 1) // 2
    heap[i].time, heap[i].nodes = time, nodes
    return size + 1


@compiled
def pop(heap, size):
    """Remove the top of a binary heap; return the new size."""
    size -= 1
    time, nodes, i = heap[size].time, heap[size].nodes, 0
    while 2 * i + 1 < size:
        k = 2 * i + 1
        if k + 1 < size and (
            heap[k + 1].time < heap[k].time
            or (heap[k + 1].time == heap[k].time and heap[k + 1].nodes < heap[k].nodes)
        ):
            k += 1
        if heap[k].time > time or (heap[k].time == time and heap[k].nodes >= nodes):
            break
        copy_block(heap[k], i, heap)
        i = k
    heap[i].time, heap[i].nodes = time, nodes
    return size


# --- a plan in the making -------------------------------------------------------------------------


@compiled(inline=True)
def is_due(time, t, span):
    """Tell whether an instant is t or before it, up to the one tolerance."""
    return time <= t or times_tie(time, t, span)


@compiled(inline=True)
def idle_at(now, state):
    """Return how many nodes are idle at an instant, and the first block that is released later."""
    counters, running = state.counters, state.running[RUNNING]
    idle, block = counters.idle, counters.first_running
    while block < counters.end_running and is_due(running[block].time, now, counters.span):
        idle += running[block].nodes
        block += 1
    return idle, block


@compiled(inline=True)
def begin_plan(is_after_plan, state):
    """Begin a plan: with what the tasks ahead leave of idle nodes, running blocks and the link.

    The tasks ahead are those that are dispatched or, after the plan, all in the plan in force.
    """
    planning = state.planning
    counters = state.counters_after_plan if is_after_plan else state.counters
    planning.row = AFTER_PLAN if is_after_plan else RUNNING
    planning.next_block, planning.end_block = counters.first_running, counters.end_running
    planning.planned_count, planning.link_free = 0, counters.link_free
    state.idle.size.nodes = counters.idle


@compiled(inline=True)
def next_running(state):
    """Return when a running task releases nodes that the plan in the making has not used."""
    planning = state.planning
    if planning.next_block == planning.end_block:
        return np.inf
    return state.running[planning.row, planning.next_block].time


@compiled
def next_release(t, state):
    """Return the next instant after t at which a task may start, or inf (l.25 k++)."""
    planning, free = state.planning, next_running(state)
    shared, link_free = state.rules.shared, planning.link_free
    if shared and state.idle.size.nodes > 0 and not is_due(link_free, t, state.counters.span):
        return link_free
    if planning.planned_count > 0 and state.planned_ends[0].time < free:
        free = state.planned_ends[0].time
    return max(free, link_free) if shared else free


@compiled(inline=True)
def add_planned_end(time, nodes, state):
    """Let nodes be released by the plan in the making."""
    planning = state.planning
    planning.planned_count = push(state.planned_ends, planning.planned_count, time, nodes)


@compiled(inline=True)
def remove_planned_end(state):
    """Remove the next release by the plan in the making."""
    state.planning.planned_count = pop(state.planned_ends, state.planning.planned_count)


@compiled(inline=True)
def seeks_offer(task, state):
    """Tell whether a task is the newcomer, and an offer to it is sought."""
    return state.rules.offers and task == state.planning.newcomer


@compiled(inline=True)
def note_deadline(due, state):
    """Note a later deadline of the newcomer at which the answer to it could change."""
    state.planning.later = min(state.planning.later, due)


# --- running blocks -------------------------------------------------------------------------------


@compiled
def make_room(blocks, counters, running):
    """Move the running blocks to the front where there is no room for more at the end."""
    if counters.end_running + blocks > len(running):
        for j in range(counters.first_running, counters.end_running):
            copy_block(running[j], j - counters.first_running, running)
        counters.end_running -= counters.first_running
        counters.first_running = 0


@compiled
def insert_block(time, nodes, counters, running):
    """Add a running block, counted by `counters`."""
    make_room(1, counters, running)
    j = counters.end_running
    while j > counters.first_running and running[j - 1].time > time:
        copy_block(running[j - 1], j, running)
        j -= 1
    running[j].time, running[j].nodes = time, nodes
    counters.end_running += 1


@compiled
def insert_completions(count, state):
    """Add running blocks: the first of `HeadNodeState.node_completions`, which are sorted here."""
    new, heap, size = state.node_completions, state.planned_ends, 0
    for k in range(count):
        size = push(heap, size, new[k].time, new[k].nodes)
    for k in range(count):
        copy_block(heap[0], k, new)
        size = pop(heap, size)
    counters, running = state.counters, state.running[RUNNING]
    make_room(count, counters, running)
    i = counters.end_running - 1
    counters.end_running += count
    while count > 0:  # from the latest block on
        if i >= counters.first_running and running[i].time > new[count - 1].time:
            copy_block(running[i], i + count, running)
            i -= 1
        else:
            count -= 1
            copy_block(new[count], i + count + 1, running)
