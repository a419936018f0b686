"""Validity of a schedule from the model's definition alone, independent of the engine.

Every rule is the model of papers M (sections 3 and 4) and I (section 3) or a switch of the
recorded reading. No rule depends on how the planner came to its decisions.
"""

import functools
import heapq
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import TOL, time_offset
from dlsim.errors import ScheduleError
from dlsim.realtime.execution_times import fastest_counts, time_table
from dlsim.realtime.model import IN_ROUNDS, SPLIT_KINDS, StateView, describe_run
from dlsim.realtime.schedule_arrays import (
    Chunks,
    Indices,
    RuleResult,
    ScheduleArrays,
    ScheduleLike,
    group_rows,
    require_rules,
)
from dlsim.rounding import (
    MAX_ULPS,
    RELATIVE_ROUNDING,
    not_after,
    overrun,
    time_tolerance,
    times_equal,
)
from dlsim.validate import Floats, unwrap_scalar

#: Kinds that each partition may end in.
_ENDS_IN = {
    "opr": ("opr",), "equal": ("equal",), "pieces": ("pieces",), "dlt": ("remodel",),
    "I": ("remodel", "equal finish"), "II": ("remodel", "equal finish"),
    "exact": ("optimum",), "exact-n": ("optimum",), "umr": ("rounds",),
    "umr-iit": ("rounds from releases",),
}  # fmt: skip
#: Kinds whose estimate is the completion of their chunks.
_PLANNED_BY_CHUNKS = ("pieces", "rounds from releases", "own")


def _input_rules(s: ScheduleArrays) -> Iterator[RuleResult]:
    submitted = s.submitted
    if submitted is None:
        return
    rows = submitted.labels.get_indexer(s.index)
    once = np.bincount(rows[rows >= 0], minlength=len(submitted.labels)) == 1
    yield "every task that arrived is in the table, once", submitted.labels, once
    yield "the table keeps the tasks in their order", s.index, rows == np.arange(len(rows))
    yield "a task keeps its arrival", s.index, s.arrival == submitted.arrival
    yield "a task keeps its size", s.index, s.sigma == submitted.sigma
    most = s.negotiate * submitted.deadline
    offered = ~s.refused & (s.deadline > 0) & (s.negotiate > 0)
    offered &= s.deadline <= most + time_tolerance(most, s.arrival + most)
    asked = s.deadline == submitted.deadline
    yield "a deadline is the one asked for or an offer within the factor", s.index, asked | offered


def _task_rules(s: ScheduleArrays) -> Iterator[RuleResult]:
    index, ran, refused, n = s.index, s.ran, s.refused, s.nodes
    blank = ~ran & (n == 0) & np.isnan(s.estimate) & np.isnan(s.completion)
    none = "a task that does not run has no start, nodes, estimate or completion"
    yield none, index, ran | blank
    endless = np.isinf([s.start, s.estimate, s.completion]).any(axis=0)
    yield "a task's times are finite", index, ~endless
    yield "a refused task does not run", index, ~refused | blank
    yield "a refused task does not miss", index, ~refused | ~s.missed
    may_drop = not s.policy.admission and s.reading.late == "drop"
    yield "an admitted task runs", index, refused | ran | (s.missed & may_drop)
    yield "without admission control no task is refused", index, ~refused | s.policy.admission
    yield "a task runs on 1..N nodes", index, ~ran | ((n >= 1) & (n <= s.cluster.nodes))
    in_time = not_after(s.arrival, s.start, s.scale)
    yield "no task starts before it arrives", index, ~ran | in_time
    late = overrun(s.completion, s.arrival, s.deadline)
    doubt = time_tolerance(s.deadline, s.completion)
    told_so = (s.missed == (late > 0)) | (np.abs(late) <= doubt) | (np.isnan(late) & s.missed)
    yield "missed means completion after the deadline", index, refused | told_so
    guarded = ran & (s.policy.admission or may_drop)
    yield "a guaranteed task meets its deadline", index, ~guarded | (late <= doubt)
    if s.policy.partition in ("opr", "equal"):
        span = s.table.setup_time[n] + s.sigma * s.table.time_per_unit[n]
        even = s.policy.partition == "equal"  # n sends in turn, after releases that count as one
        loose = MAX_ULPS + even * s.cluster.nodes, even * time_tolerance(s.scale, s.estimate)
        ends_then = times_equal(s.start + span, s.completion, span, *loose)
        yield "completion is start + E(sigma, n)", index, ~ran | ends_then
        same = times_equal(s.estimate, s.completion, span, *loose)
        yield "estimate is the completion", index, ~ran | same
    else:
        span = RELATIVE_ROUNDING * (s.estimate - s.start)
        safe = not_after(s.completion - span, s.estimate, s.scale)
        yield "no task is complete after its estimate", index, ~ran | safe
        by_chunks = np.isin(s.kind, [SPLIT_KINDS.index(kind) for kind in _PLANNED_BY_CHUNKS])
        loose = MAX_ULPS + s.cluster.nodes, time_tolerance(s.scale, s.estimate)
        same = times_equal(s.estimate, s.completion, s.estimate - s.start, *loose)
        yield "estimate is the completion", index, ~ran | ~by_chunks | same
        later = overrun(s.estimate, s.arrival, s.deadline)
        promised = later <= time_tolerance(s.deadline, s.estimate)
        yield "a guaranteed task's estimate meets its deadline", index, ~guarded | promised
    yield from _count_rules(s)
    yield from _work_conserving_rules(s)
    line = np.flatnonzero(ran)
    yield from _order_rules(s, line[np.argsort(s.start[line], kind="stable")])


def _count_rules(s: ScheduleArrays) -> Iterator[RuleResult]:
    index, ran, n = s.index, s.ran, s.nodes
    if s.policy.partition == "opr":
        formula = s.policy.nodes == "all" and s.reading.an_nodes == "all"
        yield "every share is positive", index, s.positive | formula
    if s.policy.nodes == "user" and s.submitted is not None:
        yield (
            "a user's task runs on the nodes asked for",
            index,
            ~ran | (n == s.submitted.requested),
        )
    elif s.policy.nodes == "all" and s.policy.partition == "exact":
        rule = "an all-nodes task runs on all nodes that are free before it ends"
        yield rule, index, _uses_all_free_nodes(s)
    elif s.policy.nodes == "all":
        wanted = (
            fastest_counts(s.sigma, s.table) if s.reading.an_nodes == "best" else s.cluster.nodes
        )
        yield "an all-nodes task runs on all nodes (or N*)", index, ~ran | (n == wanted)
    elif s.policy.nodes == "min" and s.policy.partition in ("opr", "equal"):
        fewer = np.maximum(n - 1, 1)
        since = s.start if s.reading.mn_count == "at_start" else s.arrival
        time = s.table.setup_time[fewer] + s.sigma * s.table.time_per_unit[fewer]
        late = overrun(since, s.arrival, s.deadline) + time
        # half of what the engine allows, so that neither's rounding matters
        enough = (n > 1) & (late <= TOL / 2 * s.deadline - _clock_resolution(s, since))
        yield "no fewer nodes would have met the deadline", index, ~ran | ~enough


def _uses_all_free_nodes(s: ScheduleArrays) -> list[bool]:
    """Tell for every task whether other tasks held the nodes that it did not use until it ended."""
    assert s.result.runs is not None
    left, good = (s.cluster.nodes - s.nodes) * (s.cluster.cps > 0), [True] * len(s.index)
    turn = np.argsort(s.result.runs["turn"].to_numpy(), kind="stable")[np.count_nonzero(~s.ran) :]
    for place in np.flatnonzero(left[turn] > 0).tolist():
        i, before = turn[place], turn[max(0, place - s.cluster.nodes) : place]
        held = not_after(s.completion[i], s.estimate[before], s.scale)
        good[i] = int(s.nodes[before][held].sum()) >= left[i]
    return good


def _clock_resolution(s: ScheduleArrays, at: Floats) -> Floats:
    """Return the rounding error of instants in the table; the engine's own clock is finer."""
    return np.spacing(np.abs(at)) * (time_offset(s.arrival) > 0)


def _link_free_times(s: ScheduleArrays) -> Floats:
    """Return when the last send of each task ends if tasks share the link, else -inf."""
    if s.reading.link != "shared":
        return np.full(len(s.index), -np.inf)
    if s.policy.partition not in ("opr", "equal"):
        return functools.reduce(np.fmax, (k.over(np.fmax, k.send_end) for k in s.chunk_batches()))
    return s.start + (s.sigma * s.cluster.cms + s.nodes * s.cluster.st)


def _work_conserving_rules(s: ScheduleArrays) -> Iterator[RuleResult]:
    """Yield whether every task that an idle cluster could serve in time is served."""
    serial = s.policy.partition == "pieces" and s.reading.link == "shared"
    asks = callable(s.policy.nodes) or callable(s.policy.partition)
    if s.policy.partition in IN_ROUNDS or serial or asks:  # no formula that is not the engine's
        return
    n: Any = s.cluster.nodes
    if s.policy.nodes == "user" and s.submitted is not None:
        n = s.submitted.requested
    elif s.policy.nodes != "all" or s.reading.an_nodes == "best":
        n = fastest_counts(s.sigma, s.table)
    factor = max(1.0, s.negotiate) if s.policy.admission else 1.0  # only refused tasks negotiate
    possible = s.table.setup_time[n] + s.sigma * s.table.time_per_unit[n] <= factor * s.deadline
    ends = np.where(s.ran, np.fmax(s.estimate, _link_free_times(s)), -np.inf)
    busy = np.concatenate([[-np.inf], np.maximum.accumulate(ends)])
    before: Indices = np.arange(len(ends))
    if s.reading.batch_order == "policy" or not s.policy.admission:  # any of one instant first
        last = s.arrival + time_tolerance(s.scale, s.arrival)
        before = np.searchsorted(s.arrival, last, side="right")
    taken = busy[before] > s.arrival - _clock_resolution(s, s.arrival)
    served = "a task that finds the cluster idle and can meet its deadline is served"
    yield served, s.index, s.ran | ~possible | taken


def _order_rules(s: ScheduleArrays, line: Indices) -> Iterator[RuleResult]:
    """Yield whether tasks start in time and in order; `line` holds the tasks that ran, by start."""
    start, arrival, index = s.start[line], s.arrival[line], s.index[line]
    estimate, sent = s.estimate[line], _link_free_times(s)[line]
    early = s.policy.partition not in ("opr", "equal", "umr")
    if s.policy.nodes == "all" and not early:
        before = np.concatenate([[-np.inf], np.fmax(estimate, sent)])[: len(line)]
        alone = not_after(before, start, s.scale)
        yield "all-nodes tasks run one after another", index, alone
        prompt = not_after(start, np.maximum(before, arrival), s.scale)
        yield "the cluster does not idle while a task waits", index, prompt
    else:
        instants = [estimate, sent]
        if early or s.reading.release == "finish":
            instants += [k.compute_end for k in s.chunk_batches()]
        timed = s.policy.order == "dc" or s.policy.has_user_rules
        if timed or s.reading.commit == "last":  # a newcomer may move starts
            instants.append(s.arrival)
        free = np.sort(np.concatenate([[-np.inf], *instants]))
        last = free[np.searchsorted(free, start + time_tolerance(s.scale, start), side="right") - 1]
        prompt = not_after(start, np.maximum(last, arrival), s.scale)
        yield "a task starts on arrival or when nodes or the link get free", index, prompt
    passes = s.policy.overtake or s.reading.backfill == "on"
    strict = s.policy.nodes == "all" or not passes or s.reading.mn_order == "strict"
    if not strict or s.policy.order == "dc" or s.policy.is_timed:
        return
    passed = "no task passes a waiting task of smaller rank"
    if s.policy.order == "fifo":
        line = np.sort(line)
        behind = not_after(np.maximum.accumulate(s.start[line]), s.start[line], s.scale)
        yield "tasks start in the order of arrival", s.index[line], behind
    elif s.policy.order == "edf":  # equal deadlines are told apart by nothing but rounding
        due = arrival + s.deadline[line]
        slack = RELATIVE_ROUNDING * s.deadline[line] + time_tolerance(s.scale, due)
        yield passed, index, _keeps_rank_order(start, arrival, due, slack, line, s.scale)
    elif s.submitted is not None:
        exactly = s.submitted.key[line], np.zeros(len(line))
        yield passed, index, _keeps_rank_order(start, arrival, *exactly, line, s.scale)


def _keeps_rank_order(
    start: Floats, arrival: Floats, rank: Floats, slack: Floats, line: Indices, scale: float
) -> list[bool]:
    """Tell of each start, in order, whether no task of smaller rank waited then, up to slack."""
    known = arrival + time_tolerance(scale, arrival)
    coming, waiting = np.argsort(known, kind="stable")[::-1].tolist(), list[Any]()
    waiter = list(zip(rank.tolist(), line.tolist(), start.tolist(), strict=True))
    least = zip((rank - slack).tolist(), np.where(slack == 0, line, -1).tolist(), strict=True)
    until, known, good = start + time_tolerance(scale, start), known.tolist(), list[bool]()
    for now, end, bound in zip(start.tolist(), until.tolist(), least, strict=True):
        while coming and known[coming[-1]] < now:
            heapq.heappush(waiting, waiter[coming.pop()])
        while waiting and waiting[0][2] <= end:  # starts too
            heapq.heappop(waiting)
        good.append(not waiting or waiting[0][:2] >= bound)
    return good


def _chunk_rules(s: ScheduleArrays) -> Iterator[RuleResult]:
    has_chunks = np.zeros(len(s.index), dtype=bool)
    released, busy = np.full((2, s.cluster.nodes), -np.inf)
    sent = np.array([-np.inf])
    for k in s.chunk_batches():
        yield from k.rules(s.cluster.nodes)
        has_chunks |= k.total() > 0
        if not s.is_large:
            yield "a task that runs has chunks", s.index, ~s.ran | has_chunks
        yield from _rules_of_batch(s, k, released)
        if s.is_large:
            yield from _exclusion_rules_of_batch(s, k, busy, sent)
    if s.is_large:
        yield "a task that runs has chunks", s.index, ~s.ran | has_chunks


def _exclusion_rules_of_batch(
    s: ScheduleArrays, k: Chunks, busy: Floats, sent: Floats
) -> Iterator[RuleResult]:
    """Yield whether nodes and link are free when a batch uses them; keep when they become free."""
    slack = _end_slack(s, k)
    free = not_after(busy[k.node], k.send_start, s.scale)
    yield "no node serves two chunks at once", k.labels, free
    np.maximum.at(busy, k.node, k.compute_end - slack)
    if s.reading.link == "shared":
        free = not_after(sent[0], k.send_start, s.scale)
        yield "the head node sends one chunk at a time", k.labels, free
        sent[0] = max(sent[0], (k.send_end - slack).max())


def _rules_of_batch(s: ScheduleArrays, k: Chunks, released: Floats) -> Iterator[RuleResult]:
    c, present, task = s.cluster, k.names, k.task
    # an optimum's shares are differences between instants of the engine's clock
    clock = (MAX_ULPS + c.nodes) * np.finfo(float).eps * (s.estimate - time_offset(s.arrival))
    clock *= s.kind == SPLIT_KINDS.index("optimum")
    sums = times_equal(k.total(k.alpha), 1.0, 1.0, slack=clock / (s.sigma * (c.cms + c.cps)))
    yield "the shares of a task sum to 1", present, sums[k.tasks]
    whole = k.total() == s.nodes * s.rounds
    yield "a task has one chunk per node", present, whole[k.tasks]
    visits = k.total(k.by_node.place == 0)
    yield "a task's chunks go to distinct nodes", present, (visits == s.nodes)[k.tasks]
    load = k.alpha * s.sigma[task]
    send, compute = c.st + load * c.cms, c.sc + load * c.cps
    sent = times_equal(k.send_start + send, k.send_end, send)
    yield "a send takes ST + alpha sigma Cms", k.labels, sent
    busy = np.where(k.by_node.place > 0, k.compute_end[k.by_node.before], -np.inf)
    done = times_equal(np.fmax(k.send_end, busy) + compute, k.compute_end, compute)
    yield "a node computes SC + alpha sigma Cps once it has received", k.labels, done
    first = times_equal(k.over(np.fmin, k.send_start), s.start, 0.0)
    yield "the first send starts with the task", present, first[k.tasks]
    if s.policy.partition == "opr":
        ends, span = s.completion[task], (s.completion - s.start)[task]
        together = times_equal(k.compute_end, ends, span, MAX_ULPS + c.nodes)
        yield "all nodes of a task finish together", k.labels, together
        if not s.positive.all():
            k = Chunks(k.table[k.alpha > 0], k.index)
    else:
        yield from _release_rules(s, k, released)
    yield from _exclusion_rules(s, k)


class _ChunkArrays:
    """What its task and its node say about every chunk, where nodes are released one by one.

    When a node is released follows from the chunks alone: when the task before it on that node
    gives it back, but no earlier than the task's own start.
    """

    def __init__(self, s: ScheduleArrays, k: Chunks, released: Floats) -> None:
        task = k.task
        self.n, self.sigma, self.start, self.estimate, self.kind = (
            x[task] for x in (s.nodes, s.sigma, s.start, s.estimate, s.kind)
        )
        self.load, self.due = k.alpha * self.sigma, (s.arrival + s.deadline)[task]
        self.is_later = k.by_task.place > 0  # a chunk of its task was sent before
        self.is_final = k.by_task.place == self.n - 1
        self.release = np.maximum(_node_free_times(s, k, released), self.start)
        self.slack_of_task = RELATIVE_ROUNDING * (s.estimate - s.start) + time_tolerance(
            s.scale, s.estimate
        )
        self.slack = self.slack_of_task[task]

    def split_by(self, *kinds: str) -> NDArray[np.bool_]:
        """Tell which chunks are of a task that was split in one of these ways."""
        return np.isin(self.kind, [SPLIT_KINDS.index(kind) for kind in kinds])


def _node_free_times(s: ScheduleArrays, k: Chunks, released: Floats) -> Floats:
    """Return when the task before releases the node of each chunk; -inf without a task before.

    `released` holds these times by node for the chunks before, and is updated.
    """
    ends = s.estimate[k.task]
    if s.reading.release == "finish" or s.policy.partition == "pieces":
        ends = np.full(len(ends), -np.inf)
        np.maximum.at(ends, k.by_node.first, k.compute_end)
    visit, held = np.flatnonzero(k.by_node.place == 0), np.full(len(ends), -np.inf)
    on_node = group_rows(k.node[visit])
    earlier = np.full(len(visit), -np.inf)
    if s.is_large:
        earlier = released[k.node[visit]]
        np.maximum.at(released, k.node[visit], ends[visit])
    held[visit] = np.where(on_node.place > 0, ends[visit][on_node.before], earlier)
    return held[k.by_node.first]


def _release_rules(s: ScheduleArrays, k: Chunks, released: Floats) -> Iterator[RuleResult]:
    """What must hold where nodes are released one by one (paper I), or in rounds."""
    x, c, index = _ChunkArrays(s, k, released), s.cluster, k.labels
    free = x.release - x.slack <= k.send_start
    yield "a node is sent its share when it is released, not before", index, free
    before = np.where(x.is_later, k.send_end[k.by_task.before], x.start)
    waits = np.where(x.split_by("equal", "rounds"), before, np.maximum(before, x.release))
    if s.policy.partition == "pieces" and s.reading.link == "per_task":
        waits = x.release
    prompt = times_equal(k.send_start, waits, 0.0, slack=x.slack)
    yield "a share is sent as soon as node and link are free", index, prompt
    own = callable(s.policy.partition)
    fits = x.split_by(*(("own",) if own else _ENDS_IN[str(s.policy.partition)]))
    yield "a task is split by its policy's partition", index, fits
    yield "every share is positive", index, k.alpha > 0
    if own:
        yield "shares are those of the policy's own partition", index, _user_shares(s, k, x)
    even = times_equal(x.load * x.n, x.sigma, x.sigma)
    yield "equal shares are equal", index, ~x.split_by("equal", "pieces") | even
    ends = times_equal(k.compute_end, x.estimate, 0.0, MAX_ULPS + c.nodes, x.slack)
    optimal = x.split_by("equal finish", "optimum")
    yield "all nodes of an optimally split task finish together", index, ~optimal | ends
    prompt = times_equal(k.send_start, x.release, 0.0, slack=x.slack)
    idle = x.split_by("equal finish") & ~prompt
    yield "equal finish leaves no inserted idle time", index, ~idle
    if s.policy.partition in ("dlt", "I", "II"):
        yield from _remodel_rules(s, k, x)
    if s.policy.partition in IN_ROUNDS:
        first = k.by_task.place < x.n
        before = k.alpha[k.by_node.before] * x.sigma
        ahead = before * c.cps / (x.n * c.cms) + (c.sc / x.n - c.st) / c.cms
        grown = times_equal(x.load, ahead, x.sigma)
        yield "rounds grow so that no node waits", index, first | grown
    yield from _fewest_nodes_rules(s, k, x)
    ulps, slack = MAX_ULPS + c.nodes, x.slack_of_task
    together = times_equal(k.over(np.fmax, k.compute_end), s.completion, 0.0, ulps, slack)
    yield "a task is complete when its last node is", k.names, together[k.tasks]


def _user_shares(s: ScheduleArrays, k: Chunks, x: _ChunkArrays) -> NDArray[np.bool_]:
    """Tell whether a user's partition, called again task by task, returns the same shares."""
    c, table, given = s.cluster, time_table(s.cluster, "opr"), np.empty(len(k.task))
    origin, ask = time_offset(s.arrival), cast(Callable[..., Any], s.policy.partition)
    for first, n in zip(
        np.flatnonzero(k.by_task.place == 0), x.n[k.by_task.place == 0], strict=True
    ):
        rows = slice(first, first + n)
        state = StateView(int(n), 0, c.nodes, c.cms, c.cps, c.st, c.sc, *table[:2], *table[3:5])
        given[rows] = ask(float(x.sigma[first]), x.release[rows] - origin, state)
    return times_equal(k.alpha, given, 1.0, slack=RELATIVE_ROUNDING)


def _remodel_rules(s: ScheduleArrays, k: Chunks, x: _ChunkArrays) -> Iterator[RuleResult]:
    """Yield the remodel's rules: shares and estimate by [6], and when I and II use it."""
    c, index, task = s.cluster, k.labels, k.task
    last = k.over(np.fmax, x.release)[task]
    send, time = x.sigma * c.cms, x.sigma * time_table(c, "opr").time_per_unit[x.n]
    chi = c.cps * time / (time + (last - x.release))
    remodelled, before = x.split_by("remodel"), k.by_task.before
    chained = times_equal(x.load * (c.cms + chi), (x.load * chi)[before], time, slack=x.slack)
    holds = ~remodelled | ~x.is_later | chained
    yield "shares are those of the heterogeneous remodel", index, holds
    planned = times_equal(last + send + x.load * c.cps, x.estimate, 0.0, slack=x.slack)
    holds = ~remodelled | ~x.is_final | planned
    yield "the estimate is r_n + sigma Cms + alpha_n sigma Cps", index, holds
    if s.policy.partition == "dlt":
        return
    end = last + (x.sigma * (c.cms + c.cps) - k.total(last - x.release)[task]) / x.n
    if s.policy.partition == "II":
        send = (end - x.release) * c.cms / (c.cms + c.cps)
    # released this long after the node before has all its data
    gap = x.release - x.release[before] - send[before]
    short, wide = (
        k.total(x.is_later & holds)[task] > 0 for holds in (gap < -x.slack, ~(gap >= x.slack))
    )
    misused = x.split_by("equal finish") & short
    yield "equal finish is used only where the constraint holds", index, ~misused
    unused = remodelled & (x.n > 1) & (end > last + x.slack) & ~wide
    yield "equal finish is used wherever the constraint holds", index, ~unused


def _fewest_nodes_rules(s: ScheduleArrays, k: Chunks, x: _ChunkArrays) -> Iterator[RuleResult]:
    """No fewer nodes would have done, in order of release."""
    plain = s.reading.mn_count == "at_start" and s.reading.backfill == "off"
    known = s.policy.partition not in IN_ROUNDS and not callable(s.policy.partition)
    if s.policy.nodes != "min" or not plain or not known:
        return
    if s.policy.partition == "exact-n":
        needed = s.sigma * (1 + RELATIVE_ROUNDING) + k.total(x.slack) / (
            s.cluster.cms + s.cluster.cps
        )
        few = _load_within(s, k, x, ~x.is_final, s.arrival + s.deadline) < needed[k.tasks]
        yield "no fewer nodes could have met the deadline", k.names, few
        return
    m = np.minimum(k.by_task.place + 1, x.n)
    ends = x.release + s.table.setup_time[m] + x.sigma * s.table.time_per_unit[m]
    early = (m < x.n) & (ends <= x.due - x.slack)
    yield "no fewer nodes would have met the deadline", k.labels, ~early


def _load_within(
    s: ScheduleArrays, k: Chunks, x: _ChunkArrays, some: NDArray[np.bool_], ends: Floats
) -> Floats:
    """Data of each task that nodes of some chunks can take by its end (the greedy fill)."""
    c, until, data, link = s.cluster, ends.tolist(), [0.0] * len(ends), [-np.inf] * len(ends)
    for i, time in zip(k.task[some].tolist(), x.release[some].tolist(), strict=True):
        start = max(time, link[i])
        load = max(0.0, until[i] - start) / (c.cms + c.cps)
        data[i], link[i] = data[i] + load, start + load * c.cms
    return np.array(data)[k.tasks]


def _end_slack(s: ScheduleArrays, k: Chunks) -> Floats:
    """What rounds a chunk's end: a node's last instant is a sum over the chunks sent before."""
    clock = (MAX_ULPS + s.cluster.nodes) * np.finfo(float).eps * np.abs(k.compute_end)
    return np.asarray(RELATIVE_ROUNDING * (s.completion - s.start)[k.task] + clock)


def _exclusion_rules(s: ScheduleArrays, k: Chunks) -> Iterator[RuleResult]:
    slack = _end_slack(s, k)
    order = np.lexsort((k.send_start, k.node))
    now, then = order[:-1], order[1:]
    other = k.node[now] != k.node[then]
    if s.policy.partition in IN_ROUNDS:  # it receives the next chunk while it computes
        other |= k.task[now] == k.task[then]
    free = other | not_after((k.compute_end - slack)[now], k.send_start[then], s.scale)
    yield "no node serves two chunks at once", k.labels[now], free
    order = np.lexsort((k.send_start, k.by_task.first, k.over(np.fmin, k.send_start)[k.task]))
    now, then = order[:-1], order[1:]
    own = (k.task[now] == k.task[then]) & (s.policy.partition != "pieces")
    other = ~own & (s.reading.link != "shared")
    free = other | not_after((k.send_end - slack)[now], k.send_start[then], s.scale)
    yield "the head node sends one chunk at a time", k.labels[now], free


def _piece_rules(s: ScheduleArrays) -> Iterator[RuleResult]:
    """Yield whether the tables of a task are those of its pieces, admitted one by one."""
    assert s.submitted is not None
    assert s.result.parts is not None
    k, parts, owners = s.chunks, s.result.parts, s.submitted.owners
    served = times_equal(k.total(k.alpha), s.nodes / s.submitted.requested, 1.0)
    yield "a task's pieces are those that were admitted", s.index, served
    by_task, words = parts.tasks.groupby(owners), "a task is complete when its last piece is"
    for name, how, rule in (
        ("completion", "max", words),
        ("start", "min", "a task starts with its first piece"),
        ("estimate", "max", "a task's estimate is that of its last piece"),
        ("nodes", "sum", "a task has a node for every piece that was admitted"),
        ("admitted", "any", "a task is admitted if one of its pieces is"),
        ("missed", "any", "a task misses its deadline if one of its pieces does"),
    ):
        found, wanted = (x.to_numpy(float) for x in (s.result.tasks[name], by_task[name].agg(how)))
        yield rule, s.index, (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    inner, same = Chunks(parts.chunks, parts.tasks.index), np.zeros(len(k.task), dtype=bool)
    if len(inner.task) == len(same):
        same = k.task == np.append(owners, -1)[inner.task]
        same &= k.alpha == inner.alpha / np.append(s.submitted.requested, 1)[k.task]
        for name in ("node", "send_start", "send_end", "compute_end"):
            same &= getattr(k, name) == getattr(inner, name)
    yield "a task's chunks are those of its pieces", k.labels, same


def check_schedule(result: ScheduleLike, strict: bool = False) -> None:
    """Raise at the first rule that a schedule breaks."""
    if result.parts is not None:
        check_schedule(result.parts)
    s = ScheduleArrays(result)
    where = describe_run(result.name, s.reading)
    if strict and s.policy.partition == "opr" and not s.positive.all():
        task = unwrap_scalar(s.index[~s.positive][0])
        raise ScheduleError(
            f"every share is positive: broken by task {task!r} ({where}),"
            " whose n exceeds N*; E(N) is then a formula, not a schedule (reading an_nodes='best'"
            " avoids it)"
        )
    rooms = (_task_rules, _chunk_rules) if result.parts is None else (_piece_rules,)
    require_rules(chain.from_iterable(rules(s) for rules in (_input_rules, *rooms)), where)
