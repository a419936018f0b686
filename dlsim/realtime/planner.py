"""The compiled admission test and event loop of real-time divisible loads.

One planner serves every policy with admission control. It rests on three facts, each
checked against the plain twin in the tests:

* free nodes are counted, never listed: sorted (time, count) blocks of running tasks, so
  that cost does not depend on the size of the cluster;
* n_min never falls as time goes on, so a task's count is searched upwards from its last;
* planning again without a newcomer gives the plan in force again (paper M's default
  reading). So the plan in force is followed up to the first instant at which the newcomer
  enters it, and only what comes later is planned anew. Where a reading breaks this fact
  (cost derivative with order_when=once or without overtaking), all is planned anew.

Source: paper M, section 5, MCDF() and Schedulability_Test(); line numbers cite them.
"""

from typing import NamedTuple

import numpy as np

from dlsim.kernel import kernel, latest_finish, meets, same_instant
from dlsim.realtime.partition import cost_derivative, duration, fastest, fewest

# Shell sort: sub-quadratic, and an insertion sort on the short queues of every day.
_GAPS = (4193, 1577, 701, 301, 132, 57, 23, 10, 4, 1)


class Rules(NamedTuple):
    """A policy under a reading, as the planner's switches.

    Attributes
    ----------
    nodes : int
        N.
    cms, st : float
        Costs of a transmission, for the shared link.
    edf, dc : bool
        Rank by absolute deadline, by cost derivative; neither: by static keys.
    strict, once, infinite_top : bool
        No overtaking; sort once per test; DC infinite at n = N.
    all_nodes, best, frozen : bool
        Reserve all nodes; run on min(N, N*) of them; n_min at arrival for good.
    shared : bool
        One link across tasks.
    by_policy, commit, test_first : bool
        Readings of a batch and of coinciding instants.
    negotiate : float
        Accept offers up to this multiple of the deadline; 0 = no negotiation.
    """

    nodes: int
    cms: float
    st: float
    edf: bool
    dc: bool
    strict: bool
    once: bool
    infinite_top: bool
    all_nodes: bool
    best: bool
    frozen: bool
    shared: bool
    by_policy: bool
    commit: bool
    test_first: bool
    negotiate: float


#: What the planner knows per task: absolute times and sizes (`due` moves when an offer is
#: accepted), static rank, latest finish that meets `due`, N*, and the node count at the
#: first test with its duration (a lower bound of n_min; the count itself where it is fixed).
TASK = np.dtype(
    [(name, "f8") for name in ("arrival", "sigma", "due", "key", "limit", "length")]
    + [("top", "i8"), ("low", "i8")]
)
#: Nodes that become idle at a time: a running block or a planned completion.
BLOCK = np.dtype([("time", "f8"), ("nodes", "i8")])
#: A placed task; `rank` is what it was sorted by at its start.
ENTRY = np.dtype([("task", "i8"), ("nodes", "i8"), ("start", "f8"), ("end", "f8"), ("rank", "f8")])
#: A task still to be placed, with its count and duration at the latest instant looked at.
TODO = np.dtype([("task", "i8"), ("nodes", "i8"), ("time", "f8"), ("rank", "f8")])
#: Idle nodes; first and end of the running blocks; first and end of the plan in force;
#: when the link becomes free.
HEAD = np.dtype([(k, "i8") for k in ("idle", "block", "stop", "first", "last")] + [("link", "f8")])


class State(NamedTuple):
    """What the head node knows: running blocks, the plan in force, room to plan in.

    Attributes
    ----------
    head : recarray of HEAD, shape (1,)
        Counters.
    blocks : recarray of BLOCK, shape (m + 2,)
        Running blocks, sorted by time.
    plan : recarray of ENTRY, shape (2, m + 2)
        Row 0 is the plan in force, row 1 the one being made.
    todo : recarray of TODO, shape (m + 2,)
        Tasks still to be placed in this test.
    heap : recarray of BLOCK, shape (m + 2,)
        Planned completions, a binary heap.
    """

    head: np.recarray
    blocks: np.recarray
    plan: np.recarray
    todo: np.recarray
    heap: np.recarray


def fresh_state(tasks: int, nodes: int) -> State:
    """Return the state of an idle cluster with room for all tasks at once.

    Parameters
    ----------
    tasks : int
        Length of the task table.
    nodes : int
        N.

    Returns
    -------
    State
        All nodes idle, nothing planned.
    """
    room = tasks + 2

    def empty(shape: int | tuple[int, int], dtype: np.dtype) -> np.recarray:
        return np.empty(shape, dtype).view(np.recarray)

    head = np.zeros(1, HEAD).view(np.recarray)
    head["idle"] = nodes
    return State(
        head, empty(room, BLOCK), empty((2, room), ENTRY), empty(room, TODO), empty(room, BLOCK)
    )


@kernel
def fill_todo(k, task, nodes, time, rank, s):  # type: ignore[no-untyped-def]
    """Write one task still to be placed.

    Parameters
    ----------
    k, task, nodes : int
        Position, task, its node count.
    time, rank : float
        Its duration and rank.
    s : State
        Row k of `todo` is written.
    """
    one = s.todo[k]
    one.task, one.nodes, one.time, one.rank = task, nodes, time, rank


@kernel
def push(heap, size, time, nodes):  # type: ignore[no-untyped-def]
    """Add (time, nodes) to a binary heap of `size` entries; return the new size.

    Parameters
    ----------
    heap : recarray of BLOCK
        Smallest time on top; equal times by `nodes`.
    size : int
        Entries in use.
    time, nodes : float, int
        What to add.

    Returns
    -------
    int
        ``size + 1``.
    """
    i = size
    while i > 0:
        above = heap[(i - 1) // 2]
        if above.time < time or (above.time == time and above.nodes <= nodes):
            break
        heap[i] = above
        i = (i - 1) // 2
    heap[i].time, heap[i].nodes = time, nodes
    return size + 1


@kernel
def pop(heap, size):  # type: ignore[no-untyped-def]
    """Remove the top of a binary heap; return the new size.

    Parameters
    ----------
    heap : recarray of BLOCK
        Smallest time on top; equal times by `nodes`.
    size : int
        Entries in use, at least 1.

    Returns
    -------
    int
        ``size - 1``.
    """
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
        heap[i] = heap[k]
        i = k
    heap[i].time, heap[i].nodes = time, nodes
    return size


@kernel
def absorb(t, idle, block, size, s):  # type: ignore[no-untyped-def]
    """Count as idle what is free by t, of running blocks and planned completions.

    Parameters
    ----------
    t : float
        Decision instant.
    idle, block, size : int
        Idle nodes, next running block, size of the heap.
    s : State
        Blocks and heap.

    Returns
    -------
    idle, block, size : int
        The same, at t.
    """
    stop = s.head[0].stop
    while block < stop and (s.blocks[block].time <= t or same_instant(s.blocks[block].time, t)):
        idle += s.blocks[block].nodes
        block += 1
    while size > 0 and (s.heap[0].time <= t or same_instant(s.heap[0].time, t)):
        idle += s.heap[0].nodes
        size = pop(s.heap, size)
    return idle, block, size


@kernel
def next_instant(t, idle, link, block, size, shared, s):  # type: ignore[no-untyped-def]
    """Return the next decision instant t_k after t, or inf (l.25 k++).

    Parameters
    ----------
    t : float
        Current instant.
    idle : int
        Nodes idle at t.
    link : float
        When the link becomes free.
    block, size : int
        Next running block, size of the heap.
    shared : bool
        Whether the link floors the instant.
    s : State
        Blocks and heap.

    Returns
    -------
    float
        A strictly later instant.
    """
    if shared and idle > 0 and link > t and not same_instant(link, t):
        return link
    free = s.blocks[block].time if block < s.head[0].stop else np.inf
    if size > 0 and s.heap[0].time < free:
        free = s.heap[0].time
    return max(free, link) if shared else free


@kernel
def sort_todo(size, s):  # type: ignore[no-untyped-def]
    """Order the tasks still to be placed by rank, ties by table order (l.12).

    Parameters
    ----------
    size : int
        Number of tasks.
    s : State
        The todo columns.
    """
    for gap in _GAPS:
        for i in range(gap, size):
            one = s.todo[i]
            task, nodes, time, rank = one.task, one.nodes, one.time, one.rank
            j = i
            while j >= gap and (
                s.todo[j - gap].rank > rank
                or (s.todo[j - gap].rank == rank and s.todo[j - gap].task > task)
            ):
                s.todo[j] = s.todo[j - gap]
                j -= gap
            fill_todo(j, task, nodes, time, rank, s)


@kernel
def rank_of(i, n, q, r, unit, fixed):  # type: ignore[no-untyped-def]
    """Return the rank of a task that would run on n nodes, smallest first.

    Parameters
    ----------
    i, n : int
        Task and its count.
    q : recarray of TASK
        Task columns.
    r : Rules
        Order.
    unit, fixed : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    float
        Minus DC, absolute deadline, or the static key.
    """
    if r.dc:
        return -cost_derivative(q[i].sigma, n, r.nodes, r.infinite_top, unit, fixed)
    return q[i].due if r.edf else q[i].key


@kernel
def runs_on(i, n, q, r):  # type: ignore[no-untyped-def]
    """Return how many nodes receive a chunk of a task that reserves n.

    Parameters
    ----------
    i, n : int
        Task and reserved nodes.
    q, r : recarray of TASK, Rules
        Columns, switches.

    Returns
    -------
    int
        n; min(N, N*) for all-nodes policies under ``an_nodes="best"``.
    """
    return q[i].top if r.all_nodes and r.best else n


@kernel
def sent_by(i, n, t, q, r):  # type: ignore[no-untyped-def]
    """Return when the last send of a task ends, had it nothing to wait for.

    Parameters
    ----------
    i, n : int
        Task and reserved nodes.
    t : float
        Start.
    q, r : recarray of TASK, Rules
        Columns, costs of the link.

    Returns
    -------
    float
        start + sigma Cms + n ST.
    """
    return t + q[i].sigma * r.cms + runs_on(i, n, q, r) * r.st


@kernel
def place(i, n, t, length, rank, slot, q, r, s):  # type: ignore[no-untyped-def]
    """Write one placement into the new plan; return when its last send ends (l.15-20).

    Parameters
    ----------
    i, n : int
        Task and node count.
    t, length, rank : float
        Start, execution time, rank at the start.
    slot : int
        Position in the new plan.
    q : recarray of TASK
        Task columns.
    r : Rules
        Link costs.
    s : State
        Row 1 of the plan is written.

    Returns
    -------
    float
        When the link is free of this task.
    """
    entry = s.plan[1, slot]
    entry.task, entry.nodes, entry.start, entry.end, entry.rank = i, n, t, t + length, rank
    return sent_by(i, n, t, q, r)


@kernel
def update_count(i, t, n, time, q, r, unit, fixed):  # type: ignore[no-untyped-def]
    """Return a task's count and duration if it started at t; count 0 if none (l.8-10).

    Parameters
    ----------
    i : int
        Task.
    t : float
        Decision instant.
    n, time : int, float
        Its count and duration at an earlier instant.
    q : recarray of TASK
        Task columns.
    r : Rules
        Whether the count is fixed.
    unit, fixed : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    n : int
        n_min(t), or 0 where no count meets the deadline.
    time : float
        E(n).
    """
    if t + time <= q[i].limit:
        return n, time
    if r.all_nodes or r.frozen:
        return 0, time
    n = fewest(t, q[i].limit, q[i].sigma, n, q[i].top, unit, fixed)
    return n, duration(q[i].sigma, n, unit, fixed)


@kernel
def next_due(i, t, n, time, q, r, unit, fixed):  # type: ignore[no-untyped-def]
    """Return the smallest later deadline at which the count at t would change.

    Parameters
    ----------
    i : int
        Task.
    t : float
        Decision instant.
    n, time : int, float
        Its count (0 = infeasible) and fixed duration.
    q : recarray of TASK
        Task columns.
    r : Rules
        Whether the count is fixed.
    unit, fixed : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    float
        An absolute deadline, or inf.
    """
    if n == 0:
        if r.all_nodes or r.frozen:
            return t + time
        return t + duration(q[i].sigma, q[i].top, unit, fixed)
    if n == 1 or r.all_nodes or r.frozen:
        return np.inf
    return t + duration(q[i].sigma, n - 1, unit, fixed)


@kernel(inline=True)
def follow(x, now, q, r, s, unit, fixed):  # type: ignore[no-untyped-def]
    """Walk the plan in force to the first instant at which newcomer x enters it.

    Parameters
    ----------
    x : int
        Newcomer.
    now : float
        Instant of the test.
    q, r, s : recarray of TASK, Rules, State
        Columns, switches, and the state, whose heap is written.
    unit, fixed : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    ok : bool
        False if x can no longer meet its deadline.
    t, link : float
        Where planning goes on.
    idle, block, size : int
        Nodes idle there, next running block, size of the heap.
    cursor : int
        First entry of the plan in force that is planned anew.
    later : float
        Smallest later deadline of x that would change an answer on the way.
    """
    idle, block, cursor, stop = s.head[0].idle, s.head[0].block, s.head[0].first, s.head[0].last
    link, size, t, later = s.head[0].link, 0, now, np.inf
    n, time = q[x].low, q[x].length
    if idle == 0 or (r.shared and link > t):
        t = max(t, next_instant(t, idle, link, block, size, r.shared, s))
    while True:
        idle, block, size = absorb(t, idle, block, size, s)
        n, time = update_count(x, t, n, time, q, r, unit, fixed)
        later = min(later, next_due(x, t, n, time, q, r, unit, fixed))
        if n == 0:
            return False, t, link, idle, block, size, cursor, later
        rank, turn, blocked = rank_of(x, n, q, r, unit, fixed), True, False
        while True:
            here = cursor < stop and (
                s.plan[0, cursor].start <= t or same_instant(s.plan[0, cursor].start, t)
            )
            ahead = cursor < stop and (
                rank < s.plan[0, cursor].rank
                or (rank == s.plan[0, cursor].rank and x < s.plan[0, cursor].task)
            )
            if turn and (ahead or not here):
                turn = False
                if ahead and r.edf:
                    later = min(later, s.plan[0, cursor].rank)
                head = ahead or cursor == stop
                if (r.strict and head) or (not r.strict and not blocked and n <= idle):
                    return True, t, link, idle, block, size, cursor, later
            if not here:
                break
            nodes = s.plan[0, cursor].nodes
            idle -= nodes
            size = push(s.heap, size, s.plan[0, cursor].end, nodes)
            if r.shared:
                entry = s.plan[0, cursor]
                link = max(link, sent_by(entry.task, nodes, entry.start, q, r))
                blocked = link > t and not same_instant(link, t)
            cursor += 1
        t = next_instant(t, idle, link, block, size, r.shared, s)


@kernel(inline=True)
def replan(x, t, link, idle, block, size, todo, slot, later, q, r, s, unit, fixed):  # type: ignore[no-untyped-def]
    """Place all of todo from instant t on, or find that a deadline breaks (l.6-26).

    Parameters
    ----------
    x : int
        Newcomer, among the tasks of todo.
    t, link : float
        First decision instant; when the link becomes free.
    idle, block, size : int
        Nodes idle at t, next running block, size of the heap.
    todo, slot : int
        Number of tasks to place; first free slot of the new plan.
    later : float
        Smallest later deadline of x that would change an answer, so far.
    q, r, s : recarray of TASK, Rules, State
        Columns, switches, state.
    unit, fixed : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    ok : bool
        Whether every deadline holds; if so row 1 of the plan is complete.
    later : float
        As above, for every instant visited while x was waiting.
    """
    waiting, unsorted, smallest, calm = True, True, 0, -np.inf
    while True:
        idle, block, size = absorb(t, idle, block, size, s)
        # where nothing fits and no count changes: on to the next instant
        if waiting or smallest <= idle or t >= calm:
            for k in range(todo):
                i = s.todo[k].task
                n, time = update_count(i, t, s.todo[k].nodes, s.todo[k].time, q, r, unit, fixed)
                if i == x:
                    later = min(later, next_due(i, t, n, time, q, r, unit, fixed))
                if n == 0:
                    return False, later
                unsorted = unsorted or (r.dc and not r.once and n != s.todo[k].nodes)
                s.todo[k].nodes, s.todo[k].time = n, time
            if unsorted:
                for k in range(todo):
                    s.todo[k].rank = rank_of(s.todo[k].task, s.todo[k].nodes, q, r, unit, fixed)
                sort_todo(todo, s)
                unsorted = False
            kept, blocked, smallest, calm = 0, False, r.nodes + 1, np.inf
            for k in range(todo):
                i, n, time = s.todo[k].task, s.todo[k].nodes, s.todo[k].time
                if n <= idle and not blocked:
                    ends = place(i, n, t, time, s.todo[k].rank, slot, q, r, s)
                    slot, idle = slot + 1, idle - n
                    size = push(s.heap, size, t + time, n)
                    waiting = waiting and i != x
                    if r.shared:
                        link = max(link, ends)
                        blocked = link > t and not same_instant(link, t)
                    continue
                blocked = blocked or r.strict
                smallest, calm = min(smallest, n), min(calm, q[i].limit - time)
                s.todo[kept] = s.todo[k]
                kept += 1
            todo = kept
            if todo == 0:
                s.head[0].last = slot
                return True, later
        t = next_instant(t, idle, link, block, size, r.shared, s)


@kernel(inline=True)
def replan_in_line(x, t, link, idle, block, size, todo, slot, later, q, r, s, unit, fixed):  # type: ignore[no-untyped-def]
    """Place all of todo one after another in rank order: `replan` without overtaking.

    Only the head of the line can start, so only its count is looked at; the newcomer is
    the head when this is called. Static ranks only.

    Parameters
    ----------
    x, t, link, idle, block, size, todo, slot, later, q, r, s, unit, fixed
        As in `replan`.

    Returns
    -------
    ok : bool
        Whether every deadline holds; if so row 1 of the plan is complete.
    later : float
        Smallest later deadline of x that would change an answer.
    """
    for k in range(todo):
        i, n, time = s.todo[k].task, s.todo[k].nodes, s.todo[k].time
        while True:
            idle, block, size = absorb(t, idle, block, size, s)
            n, time = update_count(i, t, n, time, q, r, unit, fixed)
            if i == x:
                later = min(later, next_due(i, t, n, time, q, r, unit, fixed))
            if n == 0:
                return False, later
            if n <= idle and not (r.shared and link > t and not same_instant(link, t)):
                break
            t = next_instant(t, idle, link, block, size, r.shared, s)
        link = max(link, place(i, n, t, time, s.todo[k].rank, slot, q, r, s))
        slot, idle = slot + 1, idle - n
        size = push(s.heap, size, t + time, n)
    s.head[0].last = slot
    return True, later


@kernel(inline=True)
def admit(x, now, q, r, s, unit, fixed):  # type: ignore[no-untyped-def]
    """Test newcomer x at `now`; put the new plan in force if all deadlines hold.

    Parameters
    ----------
    x : int
        Newcomer, prepared by `prepare`.
    now : float
        Instant of the test.
    q, r, s : recarray of TASK, Rules, State
        Columns, switches, state; untouched but for scratch columns on refusal.
    unit, fixed : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    ok : bool
        Whether x is admitted.
    later : float
        Smallest later deadline of x at which the answer could differ.
    """
    first, stop = s.head[0].first, s.head[0].last
    if r.dc and (r.strict or r.once):  # planning again may change the plan in force
        t, link, idle, block, size, cursor, later = (
            now,
            s.head[0].link,
            s.head[0].idle,
            s.head[0].block,
            0,
            first,
            np.inf,
        )
        if idle == 0 or (r.shared and link > t):
            t = max(t, next_instant(t, idle, link, block, size, r.shared, s))
    else:
        ok, t, link, idle, block, size, cursor, later = follow(x, now, q, r, s, unit, fixed)
        if not ok:
            return False, later
    for k in range(first, cursor):
        s.plan[1, k - first] = s.plan[0, k]
    todo = stop - cursor + 1
    for k in range(todo):
        i = s.plan[0, cursor + k - 1].task if k else x
        fill_todo(k, i, q[i].low, q[i].length, 0.0, s)
    if r.strict and not r.dc:  # the newcomer leads what follows it in the plan
        for k in range(todo):
            s.todo[k].rank = rank_of(s.todo[k].task, 0, q, r, unit, fixed)
        ok, later = replan_in_line(
            x, t, link, idle, block, size, todo, cursor - first, later, q, r, s, unit, fixed
        )
    else:
        ok, later = replan(
            x, t, link, idle, block, size, todo, cursor - first, later, q, r, s, unit, fixed
        )
    if not ok:
        return False, later
    for k in range(s.head[0].last):
        s.plan[0, k] = s.plan[1, k]
    s.head[0].first = 0
    return True, later


@kernel(inline=True)
def prepare(x, now, due, q, r, unit, fixed, least):  # type: ignore[no-untyped-def]
    """Set a newcomer's deadline and its count at the instant of its test.

    Parameters
    ----------
    x : int
        Newcomer.
    now, due : float
        Instant of the test, absolute deadline.
    q, r : recarray of TASK, Rules
        Columns (row x is written), switches.
    unit, fixed, least : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    bool
        Whether some count meets the deadline if started at once.
    """
    q[x].due, q[x].limit = due, latest_finish(due)
    q[x].top = fastest(q[x].sigma, least, r.nodes)
    if r.all_nodes:
        q[x].low = r.nodes
        q[x].length = duration(q[x].sigma, q[x].top if r.best else r.nodes, unit, fixed)
        return meets(now + q[x].length, due)
    q[x].low = fewest(now, q[x].limit, q[x].sigma, 1, q[x].top, unit, fixed)
    q[x].length = duration(q[x].sigma, max(1, q[x].low), unit, fixed)
    return q[x].low > 0


@kernel(inline=True)
def decide(x, now, due, q, r, s, unit, fixed, least):  # type: ignore[no-untyped-def]
    """Test newcomer x with a given deadline.

    Parameters
    ----------
    x : int
        Newcomer.
    now, due : float
        Instant of the test, absolute deadline.
    q, r, s : recarray of TASK, Rules, State
        Columns, switches, state.
    unit, fixed, least : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    ok : bool
        Whether x is admitted; its plan is then in force.
    later : float
        Smallest later deadline at which the answer could differ.
    """
    if not prepare(x, now, due, q, r, unit, fixed, least):
        if r.all_nodes:
            return False, now + q[x].length
        return False, now + duration(q[x].sigma, q[x].top, unit, fixed)
    ok, later = admit(x, now, q, r, s, unit, fixed)
    if r.frozen and not r.all_nodes and q[x].low > 1:
        later = min(later, now + duration(q[x].sigma, q[x].low - 1, unit, fixed))
    return ok, later


@kernel
def earliest(x, now, q, r, unit, fixed, least):  # type: ignore[no-untyped-def]
    """Return the smallest absolute deadline that a task could meet if started at once.

    Parameters
    ----------
    x : int
        Task.
    now : float
        Instant of its test.
    q, r : recarray of TASK, Rules
        Columns, switches.
    unit, fixed, least : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    float
        ``now + E`` on the nodes the policy would use at most.
    """
    n = fastest(q[x].sigma, least, r.nodes)
    if r.all_nodes and not r.best:
        n = r.nodes
    return now + duration(q[x].sigma, n, unit, fixed)


@kernel(inline=True)
def dispatch(now, inclusive, q, r, s, nodes, start, end):  # type: ignore[no-untyped-def]
    """Start every planned task whose time has come; it cannot be moved any more (l.3-9).

    Parameters
    ----------
    now : float
        Current time.
    inclusive : bool
        Whether a start that coincides with `now` has come.
    q, r, s : recarray of TASK, Rules, State
        Columns, switches, state.
    nodes, start, end : ndarray, shape (m,)
        Output per task.
    """
    while s.head[0].first < s.head[0].last:
        k = s.head[0].first
        i, t, n = s.plan[0, k].task, s.plan[0, k].start, s.plan[0, k].nodes
        tie = same_instant(t, now)
        if not (tie and inclusive) and not (t < now and not tie):
            break
        s.head[0].idle, s.head[0].block, _ = absorb(t, s.head[0].idle, s.head[0].block, 0, s)
        s.head[0].idle -= n
        j = s.head[0].stop
        while j > s.head[0].block and s.blocks[j - 1].time > s.plan[0, k].end:
            s.blocks[j] = s.blocks[j - 1]
            j -= 1
        s.blocks[j].time, s.blocks[j].nodes = s.plan[0, k].end, n
        s.head[0].stop += 1
        s.head[0].link = max(s.head[0].link, sent_by(i, n, t, q, r))
        nodes[i], start[i], end[i] = runs_on(i, n, q, r), t, s.plan[0, k].end
        s.head[0].first += 1
    if now < np.inf:
        s.head[0].idle, s.head[0].block, _ = absorb(now, s.head[0].idle, s.head[0].block, 0, s)


@kernel(inline=True)
def batch_order(i, j, now, members, q, r, s, unit, fixed, least):  # type: ignore[no-untyped-def]
    """Write the order in which the tasks i..j-1 of one instant are tested.

    Parameters
    ----------
    i, j : int
        First and end of the batch.
    now : float
        Its instant.
    members : ndarray of int
        Output, the first j - i entries.
    q, r, s : recarray of TASK, Rules, State
        Columns, switches; the todo columns serve to sort.
    unit, fixed, least : ndarray
        Coefficients of a `Table`.
    """
    for k in range(i, j):
        fill_todo(k - i, k, 0, 0.0, 0.0, s)
        if r.by_policy:
            feasible = prepare(k, now, q[k].due, q, r, unit, fixed, least)
            rank = np.inf if r.dc and not feasible else rank_of(k, q[k].low, q, r, unit, fixed)
            s.todo[k - i].rank = rank
    if r.by_policy:
        sort_todo(j - i, s)
    for k in range(j - i):
        members[k] = s.todo[k].task


@kernel
def run(q, r, s, members, probe, deadline, admitted, nodes, start, end, unit, fixed, least):  # type: ignore[no-untyped-def]
    """Simulate a policy with admission control over all arrivals, then drain (MCDF()).

    Negotiation: the answer to a deadline changes only where some count n_min(t_k) changes
    or, in EDF order, at another task's deadline, and each test returns the next such
    deadline; so the first that is admitted is the smallest one.

    Parameters
    ----------
    q, r, s : recarray of TASK, Rules, State
        Columns, switches, fresh state.
    members : ndarray of int, shape (m,)
        Room for the order of a batch.
    probe : int
        Refused task at which to stop with an offer, or -1.
    deadline : ndarray of float, shape (m,)
        Relative deadlines; an accepted offer replaces its entry.
    admitted, nodes, start, end : ndarray, shape (m,)
        Output per task.
    unit, fixed, least : ndarray
        Coefficients of a `Table`.

    Returns
    -------
    float
        The offer to `probe`, nan if there is none.
    """
    size, i = len(q), 0
    while i < size:
        now, j = q[i].arrival, i + 1
        while j < size and q[j].arrival == now:
            j += 1
        dispatch(now, not r.test_first, q, r, s, nodes, start, end)
        batch_order(i, j, now, members, q, r, s, unit, fixed, least)
        for k in range(j - i):
            x = members[k]
            given, ceiling, bargains = deadline[x], now + r.negotiate * deadline[x], x == probe
            if bargains:
                given, ceiling = earliest(x, now, q, r, unit, fixed, least) - now, np.inf
            while True:
                admitted[x], due = decide(x, now, now + given, q, r, s, unit, fixed, least)
                if admitted[x]:
                    deadline[x] = given
                    break
                if not bargains and r.negotiate > 0:
                    due, bargains = earliest(x, now, q, r, unit, fixed, least), True
                if not bargains or not due <= ceiling or due == np.inf:
                    break
                given = due - now
                while now + given < due:  # so that arrival + deadline reproduces it
                    given = np.nextafter(given, np.inf)
            if x == probe:
                dispatch(np.inf, True, q, r, s, nodes, start, end)
                return given if admitted[x] else np.nan
            if r.commit:
                dispatch(now, True, q, r, s, nodes, start, end)
        i = j
    dispatch(np.inf, True, q, r, s, nodes, start, end)
    return np.nan


@kernel
def run_all_admitted(q, r, waiting, drop, nodes, start, end, unit, fixed, least):  # type: ignore[no-untyped-def]
    """Simulate all-nodes policies without admission control (FIFOANNA, EDFANNA).

    The cluster is a single server: whenever it is free, the first in rank among those
    that have arrived starts, late or not.

    Parameters
    ----------
    q, r : recarray of TASK, Rules
        Columns, switches.
    waiting : recarray of BLOCK, shape (m,)
        Room for the queue, a heap of (rank, task).
    drop : bool
        Whether a task that is sure to be late at its turn is dropped.
    nodes, start, end : ndarray, shape (m,)
        Output per task; untouched where dropped.
    unit, fixed, least : ndarray
        Coefficients of a `Table`.
    """
    size = len(q)
    length, i, now = 0, 0, -np.inf
    while i < size or length > 0:
        if length == 0:
            now = max(now, q[i].arrival)
        while i < size:
            tie = same_instant(q[i].arrival, now)
            if not (tie and (length == 0 or r.test_first)) and not (q[i].arrival < now and not tie):
                break
            stop = i + 1
            while stop < size and q[stop].arrival == q[i].arrival:
                stop += 1
            for k in range(i, stop):
                rank = q[k].due if r.edf else q[k].key
                length = push(waiting, length, rank, k)
            i = stop
        x = waiting[0].nodes  # the second field breaks ties: here the table order
        length = pop(waiting, length)
        n = fastest(q[x].sigma, least, r.nodes) if r.best else r.nodes
        finish = now + duration(q[x].sigma, n, unit, fixed)
        if drop and not meets(finish, q[x].due):
            continue
        nodes[x], start[x], end[x] = n, now, finish
        # by the formula for n > N* the last send may end after the task
        now = max(finish, now + q[x].sigma * r.cms + n * r.st) if r.shared else finish


@kernel
def mark_missed(due, end, admitted, missed):  # type: ignore[no-untyped-def]
    """Mark the admitted tasks that did not finish by their deadline.

    Parameters
    ----------
    due, end : ndarray of float, shape (m,)
        Absolute deadlines; completions, nan where dropped.
    admitted, missed : ndarray of bool, shape (m,)
        Input and output.
    """
    for i in range(len(due)):
        missed[i] = admitted[i] and not meets(end[i], due[i])
