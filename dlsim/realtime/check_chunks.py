"""Validity of the chunks of a schedule from the model's definition; a part of `check_schedule`.

A check reads the tables of a schedule as plain arrays (`ScheduleArrays`, `Chunks`).
"""

import copy
import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.compiled import time_offset
from dlsim.realtime.formulas import opr_table, span_of, time_table
from dlsim.realtime.model import IN_ROUNDS, SPLIT_KINDS, Indices, StateView
from dlsim.rounding import MAX_ULPS, RELATIVE_ROUNDING, not_after, time_tolerance, times_equal
from dlsim.rules import TestedRule
from dlsim.validate import Floats

#: Kinds that each partition may end in.
_ENDS_IN = {
    "opr": ("opr",), "equal": ("equal",), "pieces": ("pieces",), "dlt": ("remodel",),
    "I": ("remodel", "equal finish"), "II": ("remodel", "equal finish"),
    "exact": ("optimum",), "exact-n": ("optimum",), "umr": ("rounds",),
    "umr-iit": ("rounds from releases",),
}  # fmt: skip


#: Chunks beyond this number are computed and checked in batches of about so many, which a cache
#: of a processor holds.
CHUNKS_PER_BATCH = 50_000


class Groups(NamedTuple):
    """Rows with equal keys."""

    place: Indices  # within the group
    before: Indices  # the row before, or itself
    first: Indices


def sort_rows(*keys: NDArray[Any]) -> Indices:
    """Return the order of rows by keys, as `numpy.lexsort` does; rows in order need no sorting."""
    less = np.zeros(max(0, len(keys[0]) - 1), dtype=bool)
    equal = ~less
    for key in reversed(keys):
        less |= equal & (key[:-1] < key[1:])
        equal &= key[:-1] == key[1:]
    return np.arange(len(keys[0])) if (less | equal).all() else np.lexsort(keys)


def group_rows(*keys: NDArray[Any], order: Indices | None = None) -> Groups:
    """Group rows by keys, in their own order within a group; in `order` they stand together."""
    order = np.lexsort(keys) if order is None else order
    new, here = np.zeros(len(order), dtype=bool), np.arange(len(order))
    new[:1] = True
    for key in keys:
        sorted_key = key[order]
        new[1:] |= sorted_key[1:] != sorted_key[:-1]
    if new.all():
        return Groups(np.zeros_like(here), here, here)  # every row is alone
    begin = np.maximum.accumulate(np.where(new, here, 0))
    place, before, first = np.empty_like(here), np.empty_like(here), np.empty_like(here)
    place[order], before[order], first[order] = here - begin, order[here - ~new], order[begin]
    return Groups(place, before, first)


class Chunks:
    """The chunks of some tasks as arrays; `task` is the place of a chunk's task among them.

    `labels` are those of every chunk's task, `size` is the number of tasks, and the columns of
    `times` are alpha, send_start, send_end and compute_end.
    """

    def __init__(
        self, labels: pd.Index, size: int, task: Indices, node: NDArray[Any], times: Floats
    ) -> None:
        self.labels, self.size, self.task = labels, size, task
        short = node.astype(np.int16)  # is sorted in linear time
        self.node = short if (short == node).all() else node
        self.times = np.ascontiguousarray(times.T)
        self.alpha, self.send_start, self.send_end, self.compute_end = self.times

    @classmethod
    def from_table(cls, table: pd.DataFrame, index: pd.Index) -> Self:
        """Read a table of chunks; `index` holds the labels of all tasks."""
        labels = pd.Index(table["task"])
        rows = index.get_indexer(labels)
        task = np.where(rows < 0, len(index), rows)  # of no task: behind the last
        times = table[["alpha", "send_start", "send_end", "compute_end"]].to_numpy(dtype=float)
        return cls(labels, len(index), task, table["node"].to_numpy(), times)

    def select(self, some: NDArray[np.bool_]) -> "Chunks":
        """Return some of the chunks."""
        columns = self.task[some], self.node[some], self.times[:, some].T
        return Chunks(self.labels[some], self.size, *columns)

    @functools.cached_property
    def is_laid_out(self) -> bool:
        """Whether the chunks of every task stand together, so that nothing is to be sorted."""
        begun = np.count_nonzero(np.diff(self.task, prepend=-1))
        return bool(begun == np.count_nonzero(np.bincount(self.task)))

    @functools.cached_property
    def node_order(self) -> Indices:
        """The chunks node by node, those of a node as they are laid out."""
        return np.argsort(self.node, kind="stable")

    @functools.cached_property
    def by_task(self) -> Groups:
        """Chunks of one task, as they are sent."""
        if not self.is_laid_out:
            return group_rows(self.task)
        new = np.flatnonzero(np.diff(self.task, prepend=-1))
        here, at = np.arange(len(self.task)), np.zeros(len(self.task), dtype=np.int64)
        at[new] = new
        first = np.maximum.accumulate(at)
        return Groups(here - first, np.maximum(here - 1, first), first)

    @functools.cached_property
    def by_node(self) -> Groups:
        """What each node gets of a task: one chunk, or one per round."""
        by_node = self.node_order if self.is_laid_out else None
        return group_rows(self.node, self.task, order=by_node)

    @functools.cached_property
    def tasks(self) -> Indices:
        """The tasks that have chunks, by their first."""
        return self.task[self.by_task.place == 0]

    @functools.cached_property
    def names(self) -> pd.Index:
        """The labels of `tasks`."""
        return self.labels[self.by_task.place == 0]

    def rules(self, nodes: int) -> Iterator[TestedRule]:
        """Yield the rules for every chunk whatever the model; `nodes` are those of the cluster."""
        yield "every chunk is one of a task in the table", self.labels, self.task < self.size
        there = (self.node >= 0) & (self.node < nodes) & (self.node % 1 == 0)
        yield "every chunk is on a node of the cluster, 0..N-1", self.labels, there
        finite = np.isfinite(self.times).all(axis=0)
        yield "a chunk's share and times are finite", self.labels, finite

    def total(self, values: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the sum over each task, or how many chunks it has."""
        return np.bincount(self.task, values, self.size + 1)[: self.size]

    def reduce_by_task(self, ufunc: np.ufunc, values: Floats) -> Floats:
        """Reduce the values of each task by a ufunc such as `fmax`; NaN if it has no chunk."""
        found = np.full(self.size + 1, np.nan)
        if self.is_laid_out and len(values):
            first = np.flatnonzero(self.by_task.place == 0)
            found[self.task[first]] = ufunc.reduceat(values, first)
        else:
            ufunc.at(found, self.task, values)
        return found[: self.size]


#: What `ScheduleArrays` holds of every task.
_PER_TASK = (
    "arrival", "sigma", "deadline", "start", "estimate", "completion", "nodes", "refused",
    "missed", "ran", "kind", "rounds",
)  # fmt: skip


class ScheduleArrays:
    """The tables of a `dlsim.realtime.Schedule` as arrays, read once."""

    def __init__(self, result: Any) -> None:
        self.result, tasks = result, result.tasks
        self.cluster, self.policy, self.reading = result.cluster, result.policy, result.reading
        self.submitted, self.negotiate, self.index = result.submitted, result.negotiate, tasks.index
        self.arrival, self.sigma, self.deadline = float_columns(
            tasks, "arrival", "sigma", "deadline"
        )
        times = "start", "estimate", "completion"
        self.start, self.estimate, self.completion = float_columns(tasks, *times)
        self.nodes = tasks["nodes"].to_numpy()
        self.refused = ~np.asarray(tasks["admitted"], dtype=bool)
        self.missed = np.asarray(tasks["missed"], dtype=bool)
        self.ran = ~np.isnan(self.start)
        #: How every task was split, a place in SPLIT_KINDS, and in how many rounds; -1 if unknown.
        self.kind, self.rounds = np.full(len(self.index), -1), np.ones(len(self.index), np.int64)
        if (runs := result.runs) is not None:
            rows = runs.index.get_indexer(self.index)
            self.kind, self.rounds = (np.append(runs[k], -1)[rows] for k in ("kind", "rounds"))
        self.table = time_table(self.cluster, self.policy.partition)
        #: The duration that tells two instants apart, and where the engine's clock begins.
        self.scale, self.origin = span_of(self.sigma, self.table), time_offset(self.arrival)

    @property
    def roundings(self) -> Indices:
        """How often the clock of a task's instants is rounded: once per chunk.

        A task sends its chunks in turn, nodes times rounds of them, and each send is one addition,
        whose error is at most half a unit in the last place.
        """
        return self.nodes * np.maximum(self.rounds, 1)

    def cut(self, rows: Indices) -> "ScheduleArrays":
        """Return the arrays of some tasks alone, beside what holds for the whole schedule."""
        part = copy.copy(self)
        part.index = self.index.take(rows)
        for name in _PER_TASK:
            setattr(part, name, getattr(self, name)[rows])
        vars(part).pop("positive", None)
        return part

    @functools.cached_property
    def chunks(self) -> Chunks:
        """All chunks."""
        return Chunks.from_table(self.result.chunks, self.index)

    @functools.cached_property
    def is_large(self) -> bool:
        """Whether the chunks are too many to be kept, and are computed batch by batch."""
        kept = "chunks" in vars(self.result) or self.result.parts is not None
        return not kept and bool((self.nodes * self.rounds)[self.ran].sum() > CHUNKS_PER_BATCH)

    def chunk_batches(self) -> Iterator[tuple[Indices, Chunks]]:
        """Yield all chunks, whole tasks in order of dispatch, and before them their tasks' rows."""
        if not self.is_large:
            yield np.arange(len(self.index)), self.chunks
            return
        for found in self.result.chunk_arrays(CHUNKS_PER_BATCH):
            labels = self.index.take(found.tasks[found.task])
            columns = found.task, found.node, found.times
            yield found.tasks, Chunks(labels, len(found.tasks), *columns)

    def reduce_chunks(self, column: str) -> Floats:
        """Return the largest entry in a column of the chunks, task by task."""
        found = np.full(len(self.index), np.nan)
        for rows, chunks in self.chunk_batches():
            found[rows] = chunks.reduce_by_task(np.fmax, getattr(chunks, column))
        return found

    @functools.cached_property
    def positive(self) -> NDArray[np.bool_]:
        """Whether the optimal partitioning rule gives a task positive shares."""
        least = opr_table(self.cluster).min_size[self.nodes]
        return np.asarray((self.sigma > least) | (self.nodes == 0))


def float_columns(table: pd.DataFrame, *names: str) -> list[Floats]:
    """Return columns of a table as floats."""
    return [np.ascontiguousarray(table[name].to_numpy(dtype=float)) for name in names]


def chunk_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    """Yield the rules for the chunks of all tasks: shares, times, order and exclusion."""
    has_chunks = np.zeros(len(schedule.index), dtype=bool)
    released, busy = np.full((2, schedule.cluster.nodes), -np.inf)
    sent = np.array([-np.inf])
    for rows, chunks in schedule.chunk_batches():
        yield from chunks.rules(schedule.cluster.nodes)
        has_chunks[rows] = chunks.total() > 0
        if not schedule.is_large:
            yield "a task that runs has chunks", schedule.index, ~schedule.ran | has_chunks
            yield from _rules_of_batch(schedule, chunks, released)
            continue
        part = schedule.cut(rows)
        yield from _rules_of_batch(part, chunks, released)
        yield from _exclusion_rules_of_batch(part, chunks, busy, sent)
    if schedule.is_large:
        yield "a task that runs has chunks", schedule.index, ~schedule.ran | has_chunks


def _exclusion_rules_of_batch(
    schedule: ScheduleArrays, chunks: Chunks, busy: Floats, sent: Floats
) -> Iterator[TestedRule]:
    """Yield whether nodes and link are free when a batch uses them; keep when they become free."""
    slack = _end_slack(schedule, chunks)
    free = not_after(busy[chunks.node], chunks.send_start, schedule.scale)
    yield "no node serves two chunks at once", chunks.labels, free
    np.maximum.at(busy, chunks.node, chunks.compute_end - slack)
    if schedule.reading.link == "shared":
        free = not_after(sent[0], chunks.send_start, schedule.scale)
        yield "the head node sends one chunk at a time", chunks.labels, free
        sent[0] = max(sent[0], (chunks.send_end - slack).max())


def _rules_of_batch(
    schedule: ScheduleArrays, chunks: Chunks, released: Floats
) -> Iterator[TestedRule]:
    cluster, present, task, sent_chunks = schedule.cluster, chunks.names, chunks.task, chunks
    # an optimum's shares are differences between instants of the engine's clock
    instants = schedule.estimate - schedule.origin
    clock = (MAX_ULPS + schedule.roundings) * np.finfo(float).eps * instants
    clock *= schedule.kind == SPLIT_KINDS.index("optimum")
    slack = clock / (schedule.sigma * (cluster.cms + cluster.cps))
    sums = times_equal(chunks.total(chunks.alpha), 1.0, 1.0, slack=slack)
    yield "the shares of a task sum to 1", present, sums[chunks.tasks]
    whole = chunks.total() == schedule.nodes * schedule.rounds
    yield "a task has one chunk per node", present, whole[chunks.tasks]
    visits = chunks.total(chunks.by_node.place == 0)
    yield "a task's chunks go to distinct nodes", present, (visits == schedule.nodes)[chunks.tasks]
    load = chunks.alpha * schedule.sigma[task]
    send, compute = cluster.st + load * cluster.cms, cluster.sc + load * cluster.cps
    sent = times_equal(chunks.send_start + send, chunks.send_end, send)
    yield "a send takes ST + alpha sigma Cms", chunks.labels, sent
    busy = np.where(chunks.by_node.place > 0, chunks.compute_end[chunks.by_node.before], -np.inf)
    done = times_equal(np.fmax(chunks.send_end, busy) + compute, chunks.compute_end, compute)
    yield "a node computes SC + alpha sigma Cps once it has received", chunks.labels, done
    first = times_equal(chunks.reduce_by_task(np.fmin, chunks.send_start), schedule.start, 0.0)
    yield "the first send starts with the task", present, first[chunks.tasks]
    if schedule.policy.partition == "opr":
        ends, span = schedule.completion[task], (schedule.completion - schedule.start)[task]
        ulps = (MAX_ULPS + schedule.roundings)[task]
        together = times_equal(chunks.compute_end, ends, span, ulps)
        yield "all nodes of a task finish together", chunks.labels, together
        if not schedule.positive.all():
            sent_chunks = chunks.select(chunks.alpha > 0)
    else:
        yield from _release_rules(schedule, chunks, released)
    yield from _exclusion_rules(schedule, sent_chunks)


class _ChunkArrays:
    """Arrays of what every chunk's task and node say, where nodes are released one by one.

    When a node is released follows from the chunks alone: when the task before it on that node
    gives it back, but no earlier than the task's own start.
    """

    def __init__(self, schedule: ScheduleArrays, chunks: Chunks, released: Floats) -> None:
        task = chunks.task
        self.n, self.sigma, self.start, self.estimate, self.kind = (
            getattr(schedule, name)[task]
            for name in ("nodes", "sigma", "start", "estimate", "kind")
        )
        self.load = chunks.alpha * self.sigma
        self.due = (schedule.arrival + schedule.deadline)[task]
        self.is_later = chunks.by_task.place > 0  # a chunk of its task was sent before
        self.is_final = chunks.by_task.place == self.n - 1
        self.release = np.maximum(_node_free_times(schedule, chunks, released), self.start)
        clock = time_tolerance(schedule.scale, schedule.estimate)
        self.slack_of_task = RELATIVE_ROUNDING * (schedule.estimate - schedule.start) + clock
        self.slack = self.slack_of_task[task]

    def split_by(self, *kinds: str) -> NDArray[np.bool_]:
        """Tell which chunks are of a task that was split in one of these ways."""
        return np.array([*(kind in kinds for kind in SPLIT_KINDS), False])[self.kind]


def _node_free_times(schedule: ScheduleArrays, chunks: Chunks, released: Floats) -> Floats:
    """Return when the task before releases the node of each chunk; -inf without a task before.

    `released` holds these times by node for the chunks before, and is updated.
    """
    ends = schedule.estimate[chunks.task]
    if schedule.reading.release == "finish" or schedule.policy.partition == "pieces":
        ends = np.full(len(ends), -np.inf)
        np.maximum.at(ends, chunks.by_node.first, chunks.compute_end)
    visit, free_times = np.flatnonzero(chunks.by_node.place == 0), np.full(len(ends), -np.inf)
    in_order = chunks.node_order if len(visit) == len(chunks.node) else None
    on_node = group_rows(chunks.node[visit], order=in_order)
    earlier = np.full(len(visit), -np.inf)
    if schedule.is_large:
        earlier = released[chunks.node[visit]]
        np.maximum.at(released, chunks.node[visit], ends[visit])
    free_times[visit] = np.where(on_node.place > 0, ends[visit][on_node.before], earlier)
    return free_times[chunks.by_node.first]


def _release_rules(
    schedule: ScheduleArrays, chunks: Chunks, released: Floats
) -> Iterator[TestedRule]:
    """Yield the rules for nodes that are released one by one (paper I), or in rounds."""
    per_chunk = _ChunkArrays(schedule, chunks, released)
    cluster, index = schedule.cluster, chunks.labels
    free = per_chunk.release - per_chunk.slack <= chunks.send_start
    yield "a node is sent its share when it is released, not before", index, free
    before = np.where(per_chunk.is_later, chunks.send_end[chunks.by_task.before], per_chunk.start)
    waits = np.where(
        per_chunk.split_by("equal", "rounds"), before, np.maximum(before, per_chunk.release)
    )
    if schedule.policy.partition == "pieces" and schedule.reading.link == "per_task":
        waits = per_chunk.release
    prompt = times_equal(chunks.send_start, waits, 0.0, slack=per_chunk.slack)
    yield "a share is sent as soon as node and link are free", index, prompt
    is_user_partition = callable(schedule.policy.partition)
    kinds = ("own",) if is_user_partition else _ENDS_IN[str(schedule.policy.partition)]
    fits = per_chunk.split_by(*kinds)
    yield "a task is split by its policy's partition", index, fits
    yield "every share is positive", index, chunks.alpha > 0
    if is_user_partition:
        yield (
            "shares are those of the policy's own partition",
            index,
            _user_shares(schedule, chunks, per_chunk),
        )
    even = times_equal(per_chunk.load * per_chunk.n, per_chunk.sigma, per_chunk.sigma)
    yield "equal shares are equal", index, ~per_chunk.split_by("equal", "pieces") | even
    ulps = MAX_ULPS + schedule.roundings
    ends = times_equal(
        chunks.compute_end, per_chunk.estimate, 0.0, ulps[chunks.task], per_chunk.slack
    )
    optimal = per_chunk.split_by("equal finish", "optimum")
    yield "all nodes of an optimally split task finish together", index, ~optimal | ends
    prompt = times_equal(chunks.send_start, per_chunk.release, 0.0, slack=per_chunk.slack)
    idle = per_chunk.split_by("equal finish") & ~prompt
    yield "equal finish leaves no inserted idle time", index, ~idle
    if schedule.policy.partition in ("dlt", "I", "II"):
        yield from _remodel_rules(schedule, chunks, per_chunk)
    if schedule.policy.partition in IN_ROUNDS:
        first = chunks.by_task.place < per_chunk.n
        before = chunks.alpha[chunks.by_node.before] * per_chunk.sigma
        ahead = (
            before * cluster.cps / (per_chunk.n * cluster.cms)
            + (cluster.sc / per_chunk.n - cluster.st) / cluster.cms
        )
        grown = times_equal(per_chunk.load, ahead, per_chunk.sigma)
        yield "rounds grow so that no node waits", index, first | grown
    yield from _fewest_nodes_rules(schedule, chunks, per_chunk)
    last_end, slack = chunks.reduce_by_task(np.fmax, chunks.compute_end), per_chunk.slack_of_task
    together = times_equal(last_end, schedule.completion, 0.0, ulps, slack)
    yield "a task is complete when its last node is", chunks.names, together[chunks.tasks]


def _user_shares(
    schedule: ScheduleArrays, chunks: Chunks, per_chunk: _ChunkArrays
) -> NDArray[np.bool_]:
    """Tell whether a user's partition, called again task by task, returns the same shares."""
    cluster, given = schedule.cluster, np.empty(len(chunks.task))
    table = time_table(cluster, "opr")
    origin, ask = schedule.origin, cast(Callable[..., Any], schedule.policy.partition)
    for first, n in zip(
        np.flatnonzero(chunks.by_task.place == 0),
        per_chunk.n[chunks.by_task.place == 0],
        strict=True,
    ):
        rows = slice(first, first + n)
        state = StateView(
            int(n),
            0,
            cluster.nodes,
            cluster.cms,
            cluster.cps,
            cluster.st,
            cluster.sc,
            *table[:2],
            *table[3:5],
        )
        given[rows] = ask(float(per_chunk.sigma[first]), per_chunk.release[rows] - origin, state)
    return times_equal(chunks.alpha, given, 1.0, slack=RELATIVE_ROUNDING)


def _remodel_rules(
    schedule: ScheduleArrays, chunks: Chunks, per_chunk: _ChunkArrays
) -> Iterator[TestedRule]:
    """Yield the remodel's rules: shares and estimate by [6], and when I and II use it."""
    cluster, index, task = schedule.cluster, chunks.labels, chunks.task
    last = chunks.reduce_by_task(np.fmax, per_chunk.release)[task]
    send = per_chunk.sigma * cluster.cms
    time = per_chunk.sigma * time_table(cluster, "opr").time_per_unit[per_chunk.n]
    chi = cluster.cps * time / (time + (last - per_chunk.release))
    remodelled, before = per_chunk.split_by("remodel"), chunks.by_task.before
    chained = times_equal(
        per_chunk.load * (cluster.cms + chi),
        (per_chunk.load * chi)[before],
        time,
        slack=per_chunk.slack,
    )
    holds = ~remodelled | ~per_chunk.is_later | chained
    yield "shares are those of the heterogeneous remodel", index, holds
    planned = times_equal(
        last + send + per_chunk.load * cluster.cps, per_chunk.estimate, 0.0, slack=per_chunk.slack
    )
    holds = ~remodelled | ~per_chunk.is_final | planned
    yield "the estimate is r_n + sigma Cms + alpha_n sigma Cps", index, holds
    if schedule.policy.partition == "dlt":
        return
    idle_before = chunks.total(last - per_chunk.release)[task]
    work = per_chunk.sigma * (cluster.cms + cluster.cps)
    end = last + (work - idle_before) / per_chunk.n
    if schedule.policy.partition == "II":
        send = (end - per_chunk.release) * cluster.cms / (cluster.cms + cluster.cps)
    # released this long after the node before has all its data
    gap = per_chunk.release - per_chunk.release[before] - send[before]
    short, wide = (
        chunks.total(per_chunk.is_later & holds)[task] > 0
        for holds in (gap < -per_chunk.slack, ~(gap >= per_chunk.slack))
    )
    misused = per_chunk.split_by("equal finish") & short
    yield "equal finish is used only where the constraint holds", index, ~misused
    unused = remodelled & (per_chunk.n > 1) & (end > last + per_chunk.slack) & ~wide
    yield "equal finish is used wherever the constraint holds", index, ~unused


def _fewest_nodes_rules(
    schedule: ScheduleArrays, chunks: Chunks, per_chunk: _ChunkArrays
) -> Iterator[TestedRule]:
    """Yield whether no fewer nodes, in order of release, would have met the deadline."""
    plain = schedule.reading.mn_count == "at_start" and schedule.reading.backfill == "off"
    known = schedule.policy.partition not in IN_ROUNDS and not callable(schedule.policy.partition)
    if schedule.policy.nodes != "min" or not plain or not known:
        return
    if schedule.policy.partition == "exact-n":
        per_unit = schedule.cluster.cms + schedule.cluster.cps
        rounding = chunks.total(per_chunk.slack) / per_unit
        needed = schedule.sigma * (1 + RELATIVE_ROUNDING) + rounding
        due, fewer = schedule.arrival + schedule.deadline, ~per_chunk.is_final
        few = _load_within(schedule, chunks, per_chunk, fewer, due) < needed[chunks.tasks]
        yield "no fewer nodes could have met the deadline", chunks.names, few
        return
    m = np.minimum(chunks.by_task.place + 1, per_chunk.n)
    ends = (
        per_chunk.release
        + schedule.table.setup_time[m]
        + per_chunk.sigma * schedule.table.time_per_unit[m]
    )
    early = (m < per_chunk.n) & (ends <= per_chunk.due - per_chunk.slack)
    yield "no fewer nodes would have met the deadline", chunks.labels, ~early


def _load_within(
    schedule: ScheduleArrays,
    chunks: Chunks,
    per_chunk: _ChunkArrays,
    some: NDArray[np.bool_],
    ends: Floats,
) -> Floats:
    """Return how much data of each task the nodes of some chunks take by its end (greedy fill)."""
    cluster, place = schedule.cluster, chunks.by_task.place[some]
    by_place = np.flatnonzero(some)[np.argsort(place, kind="stable")]
    data, link = np.zeros(len(ends)), np.full(len(ends), -np.inf)
    for sent in np.split(by_place, np.cumsum(np.bincount(place))):  # at most one chunk of a task
        task = chunks.task[sent]
        start = np.maximum(per_chunk.release[sent], link[task])
        load = np.maximum(0.0, ends[task] - start) / (cluster.cms + cluster.cps)
        data[task] += load
        link[task] = start + load * cluster.cms
    return data[chunks.tasks]


def _end_slack(schedule: ScheduleArrays, chunks: Chunks) -> Floats:
    """Return the rounding error of each chunk's end, a sum over the chunks sent before."""
    clock = (MAX_ULPS + schedule.roundings) * np.finfo(float).eps
    span = RELATIVE_ROUNDING * (schedule.completion - schedule.start)
    return np.asarray(span[chunks.task] + clock[chunks.task] * np.abs(chunks.compute_end))


def _exclusion_rules(schedule: ScheduleArrays, chunks: Chunks) -> Iterator[TestedRule]:
    slack = _end_slack(schedule, chunks)
    order = chunks.node_order
    order = order[sort_rows(chunks.send_start[order], chunks.node[order])]
    now, then = order[:-1], order[1:]
    other = chunks.node[now] != chunks.node[then]
    if schedule.policy.partition in IN_ROUNDS:  # it receives the next chunk while it computes
        other |= chunks.task[now] == chunks.task[then]
    free = other | not_after(
        (chunks.compute_end - slack)[now], chunks.send_start[then], schedule.scale
    )
    yield "no node serves two chunks at once", chunks.labels[now], free
    begun = chunks.reduce_by_task(np.fmin, chunks.send_start)[chunks.task]
    order = sort_rows(chunks.send_start, chunks.by_task.first, begun)
    now, then = order[:-1], order[1:]
    same_task = (chunks.task[now] == chunks.task[then]) & (schedule.policy.partition != "pieces")
    other = ~same_task & (schedule.reading.link != "shared")
    free = other | not_after(
        (chunks.send_end - slack)[now], chunks.send_start[then], schedule.scale
    )
    yield "the head node sends one chunk at a time", chunks.labels[now], free
