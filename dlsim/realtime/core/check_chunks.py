"""The rules for the chunks of a schedule, each in a function; a part of `Schedule.check`.

`check_chunks` reads the chunks task by task, in order of dispatch and transmission, and notes for
every rule the first chunk that breaks it. A rule says what holds by the model of papers M (sections
3 and 4) and I (section 3); no rule calls the kernels that decide or that build chunks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import TOL, compiled
from dlsim.realtime.core.splits import EQUAL, EQUAL_FINISH, OPTIMUM, PIECES, REMODEL, ROUNDS

#: The rules in words, in the order in which a broken one is reported.
CHUNK_RULES = (
    "every chunk is one of a task in the table",
    "every chunk is on a node of the cluster, 0..N-1",
    "a chunk's share and times are finite",
    "the shares of a task sum to 1",
    "a task has one chunk per node",
    "a task's chunks go to distinct nodes",
    "a send takes ST + alpha sigma Cms",
    "a node computes SC + alpha sigma Cps once it has received",
    "the first send starts with the task",
    "all nodes of a task finish together",
    "a node is sent its share when it is released, not before",
    "a share is sent as soon as node and link are free",
    "a task is split by its policy's partition",
    "every share is positive",
    "shares are those of the policy's own partition",
    "equal shares are equal",
    "all nodes of an optimally split task finish together",
    "equal finish leaves no inserted idle time",
    "shares are those of the heterogeneous remodel",
    "the estimate is r_n + sigma Cms + alpha_n sigma Cps",
    "equal finish is used only where the constraint holds",
    "equal finish is used wherever the constraint holds",
    "rounds grow so that no node waits",
    "no fewer nodes could have met the deadline",
    "no fewer nodes would have met the deadline",
    "a task is complete when its last node is",
    "no node serves two chunks at once",
    "the head node sends one chunk at a time",
    "no node serves two chunks at once",
    "the head node sends one chunk at a time",
)
#: Places of the rules.
(IN_TABLE, ON_NODE, FINITE, SUM, COUNT, DISTINCT, SEND, COMPUTE, FIRST_SEND, TOGETHER) = range(10)
(RELEASED, PROMPT, PARTITION, POSITIVE_SHARE, OWN_SHARES, EVEN, OPTIMAL, NO_IDLE) = range(10, 18)
(CHAINED, PLANNED_END, MISUSED, UNUSED, GROWN, LEAST_LOAD, LEAST_NODES, LAST_NODE) = range(18, 26)
(NODE_FREE, LINK_FREE, NODE_FREE_BEFORE, LINK_FREE_BEFORE) = range(26, 30)
#: Rules of a chunk alone; if one is broken, no other is tested.
RULES_OF_ENTRIES = (IN_TABLE, ON_NODE, FINITE)
#: Place of a rule's first chunk if none breaks it.
UNBROKEN = 2**62
#: Columns of the times of chunks, and of the tasks and nodes.
ALPHA, SEND_START, SEND_END, COMPUTE_END = range(4)
TASK_COLUMN, NODE_COLUMN = range(2)
#: What `Model.fewest` asks for: no rule, the fewest nodes by load, or by E(n).
NO_RULE, BY_LOAD, BY_TIME = range(3)
#: The relative error of one rounding, twice over.
EPS = 2.0**-52


class Model(NamedTuple):
    """What holds for the whole schedule: cluster, policy, reading and tolerances."""

    size: int  # how many tasks the table has
    nodes: int
    cms: float
    cps: float
    st: float
    sc: float
    origin: float  # where the engine's clock begins
    scale: float  # the duration that tells two instants apart
    relative: float  # allowed error of a recomputed duration
    ulps: int  # allowed roundings of the clock for a recomputed time
    table_ulps: int  # and for a time in a table
    admission: bool
    drops: bool  # a late task may be dropped
    together: bool  # partition "opr": nodes start and finish together
    even: bool  # partition "equal"
    in_rounds: bool
    pieces: bool
    shared: bool  # one task at a time uses the link
    by_node: bool  # a node is released when it has computed, not with its task
    remodels: bool  # partitions "dlt", "I", "II"
    constraint: int  # 1 or 2 for partitions "I" and "II", else 0
    fewest: int  # NO_RULE, BY_LOAD or BY_TIME
    skips_empty: bool  # chunks whose share is not positive occupy neither node nor link
    kinds: NDArray[np.bool_]  # by kind, whether the policy's partition may split so
    planned_by_chunks: NDArray[np.bool_]  # by kind, whether estimates are ends of chunks
    time_per_unit: NDArray[np.float64]  # of the partition's `TimeTable`
    setup_time: NDArray[np.float64]
    optimal_time_per_unit: NDArray[np.float64]  # of the optimal partitioning rule


class TaskColumns(NamedTuple):
    """Columns of all tasks, and whether a chunk of the task was seen."""

    ran: NDArray[np.bool_]
    refused: NDArray[np.bool_]
    missed: NDArray[np.bool_]
    nodes: NDArray[np.int64]
    rounds: NDArray[np.int64]
    kind: NDArray[np.int64]
    arrival: NDArray[np.float64]
    sigma: NDArray[np.float64]
    deadline: NDArray[np.float64]
    start: NDArray[np.float64]
    estimate: NDArray[np.float64]
    completion: NDArray[np.float64]
    has_chunks: NDArray[np.bool_]


class ChunkColumns(NamedTuple):
    """Chunks of whole tasks; those of a task stand together, as they are sent."""

    rows: NDArray[np.int64]  # of the tasks, in `TaskColumns`
    task_and_node: NDArray[np.int64]  # the task is a place in `rows`
    times: NDArray[np.float64]  # alpha, send_start, send_end, compute_end
    table_row: NDArray[np.int64]  # of each chunk in the table of chunks


class ChunkNotes(NamedTuple):
    """What is noted of every chunk of a batch. The row before is -1 if there is none."""

    release: NDArray[np.float64]  # when the chunk's node was released for its task
    begun: NDArray[np.float64]  # when the task's first send begins
    slack: NDArray[np.float64]  # the rounding error of the chunk's end
    earlier: NDArray[np.int64]  # the row before of the same task on the same node
    on_node: NDArray[np.int64]  # the row before on the same node, in order of sends
    on_link: NDArray[np.int64]  # the row before on the link, in order of sends


class NodeNotes(NamedTuple):
    """What is noted of every node, from batch to batch; the link stands behind the last node."""

    released: NDArray[np.float64]  # the latest release by any task so far
    busy: NDArray[np.float64]  # the end of all chunks, or sends, of earlier batches
    row: NDArray[np.int64]  # the latest row on the node
    last_sent: NDArray[np.int64]  # the row that is sent last


class Task(NamedTuple):
    """One task and its chunks, which are the rows from `first` to `end` - 1."""

    first: int
    end: int
    n: int
    rounds: int
    kind: int
    sigma: float
    start: float
    estimate: float
    completion: float
    due: float
    ulps: int  # allowed roundings of a time that is a sum over its sends
    slack: float  # of a release


class Chunk(NamedTuple):
    """One chunk of a task."""

    row: int
    place: int  # within the task
    alpha: float
    load: float
    send_start: float
    send_end: float
    compute_end: float
    release: float
    earlier: int


# --- tolerances, as in `dlsim.rounding` -----------------------------------------------------------


@compiled(inline=True)
def is_equal(first, second, span, ulps, slack, model):
    """Tell whether two times are equal up to rounding."""
    clock = ulps * EPS * max(abs(first), abs(second))
    return abs(first - second) <= clock + slack + model.relative * abs(span)


@compiled(inline=True)
def is_not_after(first, second, model):
    """Tell whether the first time is at most the second, up to rounding."""
    nearer = min(abs(first), abs(second))
    return first <= second + (TOL * model.scale + model.table_ulps * EPS * nearer)


@compiled(inline=True)
def note_chunk(holds, rule, row, chunks, broken):
    """Note the chunk of a rule that does not hold, if it stands before the one noted so far."""
    if not holds:
        broken[rule] = min(broken[rule], chunks.table_row[row])


# --- reading tasks and chunks ---------------------------------------------------------------------


@compiled(inline=True)
def read_task(row, first, end, tasks, model):
    """Return the task in row row."""
    n, start, estimate = tasks.nodes[row], tasks.start[row], tasks.estimate[row]
    clock = TOL * model.scale + model.table_ulps * EPS * abs(estimate)
    return Task(
        first,
        end,
        n,
        tasks.rounds[row],
        tasks.kind[row],
        tasks.sigma[row],
        start,
        estimate,
        tasks.completion[row],
        tasks.arrival[row] + tasks.deadline[row],
        model.ulps + n * max(tasks.rounds[row], 1),
        model.relative * (estimate - start) + clock,
    )


@compiled(inline=True)
def read_chunk(row, one, chunks, notes):
    """Return the chunk in a row, of a task."""
    return Chunk(
        row,
        row - one.first,
        chunks.times[row, ALPHA],
        chunks.times[row, ALPHA] * one.sigma,
        chunks.times[row, SEND_START],
        chunks.times[row, SEND_END],
        chunks.times[row, COMPUTE_END],
        notes.release[row],
        notes.earlier[row],
    )


@compiled(inline=True)
def look_back(row, one, chunks, model, nodes, notes):
    """Note of a chunk what its node did before.

    A node is released when all tasks before it on that node have given it back, but no earlier than
    the task's own start.
    """
    node, before = chunks.task_and_node[row, NODE_COLUMN], -1
    gives_back = chunks.times[row, COMPUTE_END] if model.by_node else one.estimate
    if nodes.row[node] >= one.first:
        before = nodes.row[node]
        notes.release[row] = notes.release[before]
    else:
        notes.release[row] = max(nodes.released[node], one.start)
    notes.earlier[row] = before
    nodes.released[node] = max(nodes.released[node], gives_back)
    nodes.row[node] = row


# --- rules of every task --------------------------------------------------------------------------


@compiled(inline=True)
def check_entry(row, chunks, model, broken):
    """Check that a chunk is of a task and on a node that are there, at finite times."""
    task, node = chunks.task_and_node[row, TASK_COLUMN], chunks.task_and_node[row, NODE_COLUMN]
    note_chunk(task < model.size, IN_TABLE, row, chunks, broken)
    note_chunk(0 <= node < model.nodes, ON_NODE, row, chunks, broken)
    total = 0.0
    for column in range(4):
        total += 0.0 * chunks.times[row, column]  # NaN for what is not finite
    note_chunk(total == 0, FINITE, row, chunks, broken)


@compiled(inline=True)
def shares_sum_to_one(total, one, model):
    """Tell whether the shares are the whole load.

    An optimum's shares are differences between instants of the engine's clock.
    """
    clock = one.ulps * EPS * (one.estimate - model.origin) * (1.0 if one.kind == OPTIMUM else 0.0)
    slack = clock / (one.sigma * (model.cms + model.cps))
    return is_equal(total, 1.0, 1.0, model.ulps, slack, model)


@compiled(inline=True)
def send_takes_its_time(chunk, model):
    """Tell whether a send takes ST + alpha sigma Cms."""
    send = model.st + chunk.load * model.cms
    return is_equal(chunk.send_start + send, chunk.send_end, send, model.ulps, 0.0, model)


@compiled(inline=True)
def node_computes_at_once(chunk, chunks, model):
    """Tell whether a node computes once it has received the chunk and computed those before."""
    compute, begin = model.sc + chunk.load * model.cps, chunk.send_end
    if chunk.earlier >= 0:
        begin = max(begin, chunks.times[chunk.earlier, COMPUTE_END])
    return is_equal(begin + compute, chunk.compute_end, compute, model.ulps, 0.0, model)


@compiled(inline=True)
def ends_with_all_nodes(chunk, one, model):
    """Tell whether a node finishes with all others of its task (paper M, section 4)."""
    span = one.completion - one.start
    return is_equal(chunk.compute_end, one.completion, span, one.ulps, 0.0, model)


@compiled(inline=True)
def check_plain_rules(one, chunks, model, nodes, notes, broken):
    """Check shares, nodes, sends and computations; return the end of the last chunk."""
    total, visits, begun, last = 0.0, 0, np.inf, -np.inf
    for row in range(one.first, one.end):
        look_back(row, one, chunks, model, nodes, notes)
        chunk = read_chunk(row, one, chunks, notes)
        total += chunk.alpha
        visits += chunk.earlier < 0
        begun, last = min(begun, chunk.send_start), max(last, chunk.compute_end)
        note_chunk(send_takes_its_time(chunk, model), SEND, row, chunks, broken)
        note_chunk(node_computes_at_once(chunk, chunks, model), COMPUTE, row, chunks, broken)
        if model.together:
            note_chunk(ends_with_all_nodes(chunk, one, model), TOGETHER, row, chunks, broken)
    note_chunk(shares_sum_to_one(total, one, model), SUM, one.first, chunks, broken)
    note_chunk(one.end - one.first == one.n * one.rounds, COUNT, one.first, chunks, broken)
    note_chunk(visits == one.n, DISTINCT, one.first, chunks, broken)
    starts = is_equal(begun, one.start, 0.0, model.ulps, 0.0, model)
    note_chunk(starts, FIRST_SEND, one.first, chunks, broken)
    return last


# --- rules of nodes that are released one by one (paper I), or in rounds --------------------------


@compiled(inline=True)
def is_sent_promptly(chunk, one, chunks, model):
    """Tell whether a share is sent as soon as node and link are free."""
    waits = one.start if chunk.place == 0 else chunks.times[chunk.row - 1, SEND_END]
    if model.pieces and not model.shared:
        waits = chunk.release
    elif one.kind != EQUAL and one.kind != ROUNDS:
        waits = max(waits, chunk.release)
    return is_equal(chunk.send_start, waits, 0.0, model.ulps, one.slack, model)


@compiled(inline=True)
def share_is_equal(chunk, one, model):
    """Tell whether a share is that of every node, where the split is even."""
    is_even = one.kind == EQUAL or one.kind == PIECES
    return not is_even or is_equal(chunk.load * one.n, one.sigma, one.sigma, model.ulps, 0.0, model)


@compiled(inline=True)
def ends_with_the_task(chunk, one, model):
    """Tell whether a node of an optimally split task ends with all others."""
    is_optimal = one.kind == EQUAL_FINISH or one.kind == OPTIMUM
    return not is_optimal or is_equal(
        chunk.compute_end, one.estimate, 0.0, one.ulps, one.slack, model
    )


@compiled(inline=True)
def leaves_no_idle_time(chunk, one, model):
    """Tell whether a node under equal finish receives as soon as it is released."""
    return one.kind != EQUAL_FINISH or is_equal(
        chunk.send_start, chunk.release, 0.0, model.ulps, one.slack, model
    )


@compiled(inline=True)
def round_has_grown(chunk, one, chunks, model):
    """Tell whether a node receives its next chunk when it has computed the one before."""
    if chunk.place < one.n:
        return True
    before = chunks.times[chunk.earlier if chunk.earlier >= 0 else chunk.row, ALPHA] * one.sigma
    ahead = before * model.cps / (one.n * model.cms) + (model.sc / one.n - model.st) / model.cms
    return is_equal(chunk.load, ahead, one.sigma, model.ulps, 0.0, model)


@compiled(inline=True)
def no_fewer_would_do(chunk, one, model):
    """Tell whether the nodes up to this one, from its release on, would miss the deadline."""
    m = min(chunk.place + 1, one.n)
    end = chunk.release + model.setup_time[m] + one.sigma * model.time_per_unit[m]
    return not (m < one.n and end <= one.due - one.slack)


@compiled(inline=True)
def check_release_rules(one, last_end, chunks, model, notes, broken):
    """Check the rules of nodes that are released one by one, or in rounds."""
    note_chunk(model.kinds[one.kind], PARTITION, one.first, chunks, broken)
    for row in range(one.first, one.end):
        chunk = read_chunk(row, one, chunks, notes)
        released = chunk.release - one.slack <= chunk.send_start
        note_chunk(released, RELEASED, row, chunks, broken)
        note_chunk(is_sent_promptly(chunk, one, chunks, model), PROMPT, row, chunks, broken)
        note_chunk(chunk.alpha > 0, POSITIVE_SHARE, row, chunks, broken)
        note_chunk(share_is_equal(chunk, one, model), EVEN, row, chunks, broken)
        note_chunk(ends_with_the_task(chunk, one, model), OPTIMAL, row, chunks, broken)
        note_chunk(leaves_no_idle_time(chunk, one, model), NO_IDLE, row, chunks, broken)
        if model.in_rounds:
            note_chunk(round_has_grown(chunk, one, chunks, model), GROWN, row, chunks, broken)
        if model.fewest == BY_TIME:
            note_chunk(no_fewer_would_do(chunk, one, model), LEAST_NODES, row, chunks, broken)
    if model.remodels:
        check_remodel(one, chunks, model, notes, broken)
    if model.fewest == BY_LOAD:
        note_chunk(no_fewer_could_do(one, model, notes), LEAST_LOAD, one.first, chunks, broken)
    ends = is_equal(last_end, one.completion, 0.0, one.ulps, one.slack, model)
    note_chunk(ends, LAST_NODE, one.first, chunks, broken)


@compiled
def no_fewer_could_do(one, model, notes):
    """Tell whether the nodes but the last cannot take the load by its deadline (greedy fill)."""
    per_unit, data, link, rounding = model.cms + model.cps, 0.0, -np.inf, 0.0
    for row in range(one.first, one.end):
        rounding += one.slack
        if row - one.first == one.n - 1:
            continue
        start = max(notes.release[row], link)
        load = max(0.0, one.due - start) / per_unit
        data += load
        link = start + load * model.cms
    return data < one.sigma * (1 + model.relative) + rounding / per_unit


@compiled(inline=True)
def check_remodel(one, chunks, model, notes, broken):
    """Check the remodel's shares and estimate by [6], and when partitions I and II use it."""
    last = -np.inf
    for row in range(one.first, one.end):
        last = max(last, notes.release[row])
    if one.kind == REMODEL:
        check_remodelled_shares(one, last, chunks, model, notes, broken)
    if model.constraint > 0:
        check_constraint(one, last, chunks, model, notes, broken)


@compiled(inline=True)
def check_remodelled_shares(one, last, chunks, model, notes, broken):
    """Check the shares of the heterogeneous remodel, and its estimate."""
    time, before = one.sigma * model.optimal_time_per_unit[one.n], 0.0
    for row in range(one.first, one.end):
        load = chunks.times[row, ALPHA] * one.sigma
        chi = model.cps * time / (time + (last - notes.release[row]))
        chained = row == one.first or is_equal(
            load * (model.cms + chi), before, time, model.ulps, one.slack, model
        )
        note_chunk(chained, CHAINED, row, chunks, broken)
        before = load * chi
        if row - one.first == one.n - 1:
            end = last + one.sigma * model.cms + load * model.cps
            planned = is_equal(end, one.estimate, 0.0, model.ulps, one.slack, model)
            note_chunk(planned, PLANNED_END, row, chunks, broken)


@compiled(inline=True)
def check_constraint(one, last, chunks, model, notes, broken):
    """Check that equal finish is used where Constraint 1 or 2 holds, and nowhere else.

    A constraint holds if every node is released once the node before has all its data.
    """
    idle = 0.0
    for row in range(one.first, one.end):
        idle += last - notes.release[row]
    end = last + (one.sigma * (model.cms + model.cps) - idle) / one.n
    short = wide = False
    for row in range(one.first + 1, one.end):
        send = one.sigma * model.cms
        if model.constraint == 2:
            send = (end - notes.release[row - 1]) * model.cms / (model.cms + model.cps)
        gap = notes.release[row] - notes.release[row - 1] - send
        short = short or gap < -one.slack
        wide = wide or not gap >= one.slack
    note_chunk(not (one.kind == EQUAL_FINISH and short), MISUSED, one.first, chunks, broken)
    could_use = one.kind == REMODEL and one.n > 1 and end > last + one.slack and not wide
    note_chunk(not could_use, UNUSED, one.first, chunks, broken)


# --- exclusion ------------------------------------------------------------------------------------


@compiled(inline=True)
def are_of_one_task(row, other, chunks):
    """Tell whether two chunks are of one task."""
    return chunks.task_and_node[row, TASK_COLUMN] == chunks.task_and_node[other, TASK_COLUMN]


@compiled(inline=True)
def comes_first(row, other, column, chunks, notes):
    """Tell whether a row comes before another in order of sends; on the link, task by task."""
    start, other_start = chunks.times[row, SEND_START], chunks.times[other, SEND_START]
    if column == SEND_END and not are_of_one_task(row, other, chunks):
        start, other_start = notes.begun[row], notes.begun[other]
    return start < other_start or (start == other_start and row < other)


@compiled(inline=True)
def check_turn(now, then, column, chunks, model, notes, broken):
    """Check that a chunk is over when the next one in line is sent; -1 stands for no chunk."""
    if now < 0 or then < 0:
        return
    is_on_node = column == COMPUTE_END
    # in rounds a node receives the next chunk while it computes
    if is_on_node and model.in_rounds and are_of_one_task(now, then, chunks):
        return
    end = chunks.times[now, column] - notes.slack[now]
    is_over = is_not_after(end, chunks.times[then, SEND_START], model)
    note_chunk(is_over, NODE_FREE if is_on_node else LINK_FREE, now, chunks, broken)


@compiled(inline=True)
def line_up(row, column, chunks, model, nodes, notes, broken):
    """Put a chunk in line, in order of sends, and compare it with its neighbours there.

    The line is that of the chunk's node, which it leaves at its COMPUTE_END, or that of the link,
    which it leaves at its SEND_END.
    """
    place, ahead = model.nodes, notes.on_link
    if column == COMPUTE_END:
        place, ahead = chunks.task_and_node[row, NODE_COLUMN], notes.on_node
    after, before = -1, nodes.last_sent[place]
    while before >= 0 and comes_first(row, before, column, chunks, notes):
        after, before = before, ahead[before]
    ahead[row] = before
    if after < 0:
        nodes.last_sent[place] = row
    else:
        ahead[after] = row
    check_turn(before, row, column, chunks, model, notes, broken)
    check_turn(row, after, column, chunks, model, notes, broken)


@compiled(inline=True)
def check_exclusion(one, chunks, model, nodes, notes, broken):
    """Check that a node serves one chunk at a time, and that the link carries one."""
    begun, span = np.inf, model.relative * (one.completion - one.start)
    for row in range(one.first, one.end):
        if not model.skips_empty or chunks.times[row, ALPHA] > 0:
            begun = min(begun, chunks.times[row, SEND_START])
    link = model.nodes
    if not model.shared:
        nodes.last_sent[link] = -1  # every task has a link of its own
    for row in range(one.first, one.end):
        notes.begun[row] = begun
        notes.slack[row] = span + one.ulps * EPS * abs(chunks.times[row, COMPUTE_END])
        node, sent = chunks.task_and_node[row, NODE_COLUMN], chunks.times[row, SEND_START]
        is_free = is_not_after(nodes.busy[node], sent, model)
        note_chunk(is_free, NODE_FREE_BEFORE, row, chunks, broken)
        is_free = not model.shared or is_not_after(nodes.busy[link], sent, model)
        note_chunk(is_free, LINK_FREE_BEFORE, row, chunks, broken)
        if model.skips_empty and not chunks.times[row, ALPHA] > 0:
            continue
        line_up(row, COMPUTE_END, chunks, model, nodes, notes, broken)
        if model.shared or not model.pieces:  # else every piece has a link of its own
            line_up(row, SEND_END, chunks, model, nodes, notes, broken)


@compiled
def note_batch(chunks, model, nodes, notes):
    """Note until when the chunks of a batch occupy nodes and link."""
    link = model.nodes
    for row in range(len(chunks.table_row)):
        node, slack = chunks.task_and_node[row, NODE_COLUMN], notes.slack[row]
        nodes.busy[node] = max(nodes.busy[node], chunks.times[row, COMPUTE_END] - slack)
        nodes.busy[link] = max(nodes.busy[link], chunks.times[row, SEND_END] - slack)


# --- all rules ------------------------------------------------------------------------------------


@compiled
def check_chunks(chunks, tasks, model, nodes, notes, broken):
    """Note the place of the first chunk that breaks each rule, in a batch of whole tasks."""
    count = len(chunks.table_row)
    for row in range(count):
        check_entry(row, chunks, model, broken)
    for rule in RULES_OF_ENTRIES:
        if broken[rule] != UNBROKEN:
            return
    for node in range(model.nodes):
        nodes.row[node] = nodes.last_sent[node] = -1
    nodes.last_sent[model.nodes] = -1
    first = 0
    while first < count:
        task, end = chunks.task_and_node[first, TASK_COLUMN], first + 1
        while end < count and chunks.task_and_node[end, TASK_COLUMN] == task:
            end += 1
        i = chunks.rows[task]
        tasks.has_chunks[i] = True
        one = read_task(i, first, end, tasks, model)
        last_end = check_plain_rules(one, chunks, model, nodes, notes, broken)
        if not model.together:
            check_release_rules(one, last_end, chunks, model, notes, broken)
        check_exclusion(one, chunks, model, nodes, notes, broken)
        first = end
    note_batch(chunks, model, nodes, notes)
