"""What the head node knows while it plans, as arrays: queues, running blocks, instants.

Free nodes are counted, never listed: sorted (time, count) blocks of running tasks. The cost
follows the number of blocks, not of nodes: one a task, or one a node that ends by itself.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import compiled, records, same_instant
from dlsim.realtime.core.partition import MOST_ROUNDS

Records = NDArray[np.void]

# Shell sort: sub-quadratic, and an insertion sort on the short queues of every day.
_GAPS = (4193, 1577, 701, 301, 132, 57, 23, 10, 4, 1)

#: Sorted runs of releases are inserted one by one, more of them merged before.
FEW_RUNS = 4

#: How a policy splits loads: places in `dlsim.realtime.model.PARTITIONS`.
BY_OPR, BY_EQUAL, BY_PIECES, BY_DLT, BY_I, BY_II, BY_EXACT, BY_EXACT_N = range(8)
BY_UMR, BY_UMR_IIT, BY_OWN = range(8, 11)
#: How a task's number of nodes is found; see `dlsim.realtime.run.Rules`.
FEWEST, FRAGMENT, CAPACITY, SCAN = range(4)

#: Bits of an entry's `marks`: nodes released at different instants; Constraints 1 and 2 of
#: paper I under them; a constraint that holds with a share <= 0; one node before r_n.
IDLE, FIRST, SECOND, NEGATIVE, SINGLE = 1, 2, 4, 8, 16

#: Counting rules of `Schedule.counts`, the rows, and what they count, the columns.
COUNT_RULES = ("admitted", "arrival", "replanned", "dispatched", "rtgrid")
COUNTED = ("s_iits", "opt_iits", "opt_iits_ii", "non_positive")
#: The row below them: what is marked in the plan in force, where `State.rest` is of it.
PLANNED = len(COUNT_RULES)


#: What the planner knows per task: absolute times and sizes (`due` moves when an offer is
#: accepted), static rank, latest finish that meets `due`, N*, the node count at the first
#: test with its duration (a lower bound of n_min; the count itself where it is fixed), and
#: the nodes that its user asks for.
TASK = np.dtype(
    [(name, "f8") for name in ("arrival", "sigma", "due", "key", "limit", "length")]
    + [(name, "i8") for name in ("top", "low", "wanted")]
)
#: Nodes that become idle at a time: a running block or a planned completion.
BLOCK = np.dtype([("time", "f8"), ("nodes", "i8")])
#: A placed task; `rank` is what it was sorted by at its start, `ready` when the last of its
#: nodes is released, `kind` what it is split by, `marks` what the counters saw.
ENTRY = np.dtype(
    [("task", "i8"), ("nodes", "i8")]
    + [(name, "f8") for name in ("start", "end", "rank", "ready")]
    + [(name, "i8") for name in ("kind", "rounds", "marks")]
)
#: A task still to be placed, with its count and duration at the latest instant looked at.
PENDING = np.dtype([("task", "i8"), ("nodes", "i8"), ("time", "f8"), ("rank", "f8")])
#: Idle nodes; first and end of the running blocks; first and end of the plan in force;
#: tasks dispatched; when the link becomes free; the scale of the tolerance between instants.
HEAD = np.dtype(
    [(k, "i8") for k in ("idle", "block", "stop", "first", "last", "done")]
    + [("link", "f8"), ("span", "f8")]
)
#: What a refused task is offered: its smallest admissible deadline, and how it would run.
OFFER = np.dtype([("deadline", "f8"), ("nodes", "i8"), ("start", "f8"), ("end", "f8")])
#: What became of a task; `turn` is its place in the order of dispatch.
RESULT = np.dtype(
    [(name, "f8") for name in ("start", "estimate", "end")]
    + [(name, "i8") for name in ("nodes", "kind", "rounds", "turn")]
)


class State(NamedTuple):
    """What the head node knows: running blocks, the plan in force, room to plan in."""

    head: Records  # counters (HEAD)
    blocks: Records  # running blocks, sorted by time
    plan: Records  # row 0 is the plan in force, row 1 the one being made
    todo: Records  # tasks still to be placed in this test
    heap: Records  # planned completions, a binary heap
    pool: Records  # release times of the task being placed,
    free: Records  # of the nodes idle at an instant,
    own: Records  # when the nodes of a task that end by themselves do, mostly ever earlier
    release: NDArray[np.float64]  # and node by node
    rows: NDArray[np.float64]  # its chunks
    counts: NDArray[np.int64]  # what the counters saw, by `COUNT_RULES`, `PLANNED`, `COUNTED`
    rest_head: Records  # what the plan leaves over, if its `last` is that of `head`; the link
    rest: Records  # when nodes are released once all of the plan has run, sorted by time


def fresh_state(tasks: int, rules: Any, span: float) -> State:
    """Return the state of an idle cluster with room for all tasks at once."""
    room, n = tasks + 2, rules.nodes
    single = rules.finish or rules.part == BY_PIECES  # node by node
    groups = 2 * n + 2 if single else room
    pool = min(n, 4 * groups) + 2
    head, rest_head = records(1, HEAD), records(1, HEAD)
    head["idle"], head["span"], rest_head["span"], rest_head["last"] = n, span, span, -1
    one_by_one = n if rules.part > BY_OPR else 0
    return State(
        head, records(groups, BLOCK), records((2, room), ENTRY), records(room, PENDING),
        records(pool, BLOCK), records(pool, BLOCK), records(pool, BLOCK), records(pool, BLOCK),
        np.empty(one_by_one), np.empty((one_by_one * (rules.rounds or MOST_ROUNDS), 4)),
        np.zeros((PLANNED + 1, len(COUNTED)), dtype=np.int64), rest_head, records(2 * pool, BLOCK),
    )  # fmt: skip


def fresh_results(tasks: int) -> Records:
    """Return the results of tasks none of which has run."""
    results = records(tasks, RESULT)
    results["start"] = results["estimate"] = results["end"] = np.nan
    results["turn"] = -1
    results["rounds"] = 1
    return results


@compiled
def fill_todo(k, task, nodes, time, rank, s):
    """Write one task still to be placed."""
    one = s.todo[k]
    one.task, one.nodes, one.time, one.rank = task, nodes, time, rank


@compiled
def move_block(i, block, blocks):
    """Write a block field by field: a record as a whole is copied byte by byte."""
    blocks[i].time, blocks[i].nodes = block.time, block.nodes


@compiled
def move_plan(entries, to):
    """Write places of a plan over others, field by field."""
    for k in range(len(entries)):
        a, b = to[k], entries[k]
        a.task, a.nodes, a.start, a.end, a.rank = b.task, b.nodes, b.start, b.end, b.rank
        a.ready, a.kind, a.rounds, a.marks = b.ready, b.kind, b.rounds, b.marks


@compiled
def push(heap, size, time, nodes):
    """Add (time, nodes) to a binary heap of `size` entries; return the new size."""
    i = size
    while i > 0:
        above = heap[(i - 1) // 2]
        if above.time < time or (above.time == time and above.nodes <= nodes):
            break
        move_block(i, above, heap)
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
        move_block(i, heap[k], heap)
        i = k
    heap[i].time, heap[i].nodes = time, nodes
    return size


@compiled(inline=True)
def has_come(time, t, span):
    """Tell whether an instant is t or before it, up to the one tolerance."""
    return time <= t or same_instant(time, t, span)


@compiled(inline=True)
def absorb(t, idle, block, size, s):
    """Count as idle what is free by t, of running blocks and planned completions."""
    stop, span = s.head[0].stop, s.head[0].span
    while block < stop and has_come(s.blocks[block].time, t, span):
        idle += s.blocks[block].nodes
        block += 1
    while size > 0 and has_come(s.heap[0].time, t, span):
        idle += s.heap[0].nodes
        size = pop(s.heap, size)
    return idle, block, size


@compiled
def next_instant(t, idle, link, block, size, shared, s):
    """Return the next decision instant t_k after t, or inf (l.25 k++)."""
    if shared and idle > 0 and not has_come(link, t, s.head[0].span):
        return link
    free = s.blocks[block].time if block < s.head[0].stop else np.inf
    if size > 0 and s.heap[0].time < free:
        free = s.heap[0].time
    return max(free, link) if shared else free


@compiled
def goes_before(rank, i, other, j, span):
    """Tell whether task i of a rank is served before task j of another, ties by table order.

    Ranks that are one up to the one tolerance are a tie: equal deadlines and equal cost
    derivatives are often reached by different roundings.
    """
    if rank == other or (abs(rank - other) < np.inf and same_instant(rank, other, span)):
        return i < j
    return rank < other


@compiled
def sort_todo(first, stop, s):
    """Order some tasks still to be placed by rank, ties by table order (l.12)."""
    span = s.head[0].span
    for gap in _GAPS:
        for i in range(first + gap, stop):
            one = s.todo[i]
            task, nodes, time, rank = one.task, one.nodes, one.time, one.rank
            j = i
            while j >= first + gap:
                other = s.todo[j - gap]
                if not goes_before(rank, task, other.rank, other.task, span):
                    break
                fill_todo(j, other.task, other.nodes, other.time, other.rank, s)
                j -= gap
            fill_todo(j, task, nodes, time, rank, s)


@compiled
def make_room(blocks, s):
    """Move the running blocks to the front where there is no room for more at the end."""
    head = s.head[0]
    if head.stop + blocks > len(s.blocks):
        for j in range(head.block, head.stop):
            move_block(j - head.block, s.blocks[j], s.blocks)
        head.stop -= head.block
        head.block = 0


@compiled
def insert_block(time, nodes, s):
    """Add a running block."""
    make_room(1, s)
    head = s.head[0]
    j = head.stop
    while j > head.block and s.blocks[j - 1].time > time:
        move_block(j, s.blocks[j - 1], s.blocks)
        j -= 1
    s.blocks[j].time, s.blocks[j].nodes = time, nodes
    head.stop += 1


@compiled
def end_of_run(first, count, blocks):
    """Return where blocks cease to fall, or all to rise, that do so from a place on."""
    end = first + 1
    while end < count and blocks[end].time <= blocks[end - 1].time:
        end += 1
    if end == first + 1:
        while end < count and blocks[end].time > blocks[end - 1].time:
            end += 1
    return end


@compiled
def runs_in(count, blocks, ends):
    """Write where runs of blocks end, and return how many there are; turn those that rise."""
    first, runs = 0, 0
    while first < count:
        end = end_of_run(first, count, blocks)
        i, j = first, end - 1
        while i < j and blocks[i].time < blocks[j].time:
            time, nodes = blocks[i].time, blocks[i].nodes
            move_block(i, blocks[j], blocks)
            blocks[j].time, blocks[j].nodes = time, nodes
            i, j = i + 1, j - 1
        ends[runs].nodes = first = end
        runs += 1
    return runs


@compiled
def merge_runs(count, blocks, other):
    """Merge blocks into others, each falling run with the next one."""
    first = 0
    while first < count:
        middle = end_of_run(first, count, blocks)
        last = end_of_run(middle, count, blocks) if middle < count else count
        i, j = first, middle
        for k in range(first, last):
            if j == last or (i < middle and blocks[i].time >= blocks[j].time):
                move_block(k, blocks[i], other)
                i += 1
            else:
                move_block(k, blocks[j], other)
                j += 1
        first = last


@compiled
def insert_own(count, s):
    """Add running blocks: the first of `State.own`, run by run."""
    own, other, head, blocks, k = s.own, s.heap, s.head[0], s.blocks, 0
    runs = runs_in(count, own, other)
    while runs > FEW_RUNS:
        merge_runs(count, own, other)
        own, other = other, own
        runs = runs_in(count, own, other)
    make_room(count, s)
    for run in range(runs):
        last, i = other[run].nodes, head.stop - 1
        head.stop += last - k
        while i >= head.block and blocks[i].time > own[last - 1].time:
            if blocks[i].time > own[k].time:
                move_block(i + last - k, blocks[i], blocks)
                i -= 1
            else:
                move_block(i + last - k, own[k], blocks)
                k += 1
        while k < last:
            move_block(i + last - k, own[k], blocks)
            k += 1
