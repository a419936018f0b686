"""Validity of the chunks of a schedule from the model's definition; a part of `check_schedule`.

A check reads the tables of a schedule as plain arrays (`ScheduleArrays`, `Chunks`). The rules for
chunks are those of `dlsim.realtime.core.check_chunks`.
"""

import functools
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from types import SimpleNamespace
from typing import Any, NamedTuple, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.compiled import CORES, time_offset
from dlsim.realtime.core import check_chunks as rules
from dlsim.realtime.formulas import opr_table, span_of, time_table
from dlsim.realtime.model import IN_ROUNDS, SPLIT_KINDS, Indices, state_view
from dlsim.rounding import MAX_ULPS, RELATIVE_ROUNDING, TABLE_ULPS, times_equal
from dlsim.rules import TestedRule
from dlsim.validate import Floats

#: Kinds that each partition may end in.
_ENDS_IN = {
    "opr": ("opr",), "equal": ("equal",), "pieces": ("pieces",), "dlt": ("remodel",),
    "I": ("remodel", "equal finish"), "II": ("remodel", "equal finish"),
    "exact": ("optimum",), "exact-n": ("optimum",), "umr": ("rounds",),
    "umr-iit": ("rounds from releases",),
}  # fmt: skip
#: Kinds whose estimate is the completion of their chunks.
_PLANNED_BY_CHUNKS = ("pieces", "rounds from releases", "own")
#: The constraint of paper I under which a partition uses equal finish.
_CONSTRAINTS = {"I": 1, "II": 2}

#: Chunks beyond this number are computed and checked in batches of about so many, which a cache
#: of a processor holds.
CHUNKS_PER_BATCH = 50_000
#: Checking so many tasks or chunks uncompiled takes about as long as simulating one task so.
CHECKED_PER_TASK = 10


class Chunks(NamedTuple):
    """The chunks of whole tasks.

    Attributes
    ----------
    rows : array of int
        The tasks, as rows of `ScheduleArrays`.
    task_and_node : array of int, one row per chunk
        The task of each chunk, as a place in `rows`, and its node; a task that is not there has the
        place behind the last, and a node that is no whole number is -1.
    times : array of float, one row per chunk
        Columns alpha, send_start, send_end and compute_end.
    labels : Index, optional
        The label of every chunk's task; None for that of its row.
    """

    rows: Indices
    task_and_node: Indices
    times: Floats
    labels: pd.Index | None = None

    @classmethod
    def from_table(cls, table: pd.DataFrame, index: pd.Index) -> Self:
        """Read a table of chunks; `index` holds the labels of all tasks."""
        labels = pd.Index(table["task"])
        task = index.get_indexer(labels)
        task[task < 0] = len(index)
        given = table["node"].to_numpy(dtype=float)
        with np.errstate(invalid="ignore"):
            node = given.astype(np.int64)
        node[node != given] = -1
        times = table[["alpha", "send_start", "send_end", "compute_end"]].to_numpy(dtype=float)
        return cls(np.arange(len(index)), np.column_stack([task, node]), times, labels)

    def laid_out(self) -> Indices:
        """Return the rows in an order in which the chunks of every task stand together.

        That is the order of the table where they do, or else that of the tasks' first sends.
        """
        task, rows = self.task_and_node[:, rules.TASK_COLUMN], np.arange(len(self.times))
        if np.count_nonzero(np.diff(task, prepend=-1)) == len(np.unique(task)):
            return rows
        begun = np.full(len(self.rows) + 1, np.inf)
        np.minimum.at(begun, task, self.times[:, rules.SEND_START])
        return np.lexsort((rows, task, begun[task]))


class ScheduleArrays:
    """The tables of a `dlsim.realtime.Schedule` as arrays, read once."""

    def __init__(self, result: Any) -> None:
        self.result, tasks = result, result.tasks
        self.cluster, self.policy, self.reading = result.cluster, result.policy, result.reading
        self.submitted, self.negotiate, self.index = result.submitted, result.negotiate, tasks.index
        given = "arrival", "sigma", "deadline"
        self.arrival, self.sigma, self.deadline = float_columns(tasks, *given)
        times = "start", "estimate", "completion"
        self.start, self.estimate, self.completion = float_columns(tasks, *times)
        self.nodes = tasks["nodes"].to_numpy()
        self.refused = ~np.asarray(tasks["admitted"], dtype=bool)
        self.missed = np.asarray(tasks["missed"], dtype=bool)
        self.ran = ~np.isnan(self.start)
        #: How every task was split, a place in SPLIT_KINDS, and in how many rounds; -1 if unknown.
        self.kind, self.rounds = np.full(len(self.index), -1), np.ones(len(self.index), np.int64)
        if (runs := result.runs) is not None:
            if runs.index.equals(self.index):
                self.kind, self.rounds = (runs[k].to_numpy() for k in ("kind", "rounds"))
            else:
                rows = runs.index.get_indexer(self.index)
                self.kind, self.rounds = (np.append(runs[k], -1)[rows] for k in ("kind", "rounds"))
        self.table = time_table(self.cluster, self.policy.partition)
        #: The duration that tells two instants apart, and where the engine's clock begins.
        self.scale, self.origin = span_of(self.sigma, self.table), time_offset(self.arrival)

    @functools.cached_property
    def chunks(self) -> Chunks:
        """All chunks."""
        return Chunks.from_table(self.result.chunks, self.index)

    @functools.cached_property
    def is_large(self) -> bool:
        """Whether the chunks are too many to be kept, and are computed batch by batch."""
        kept = "chunks" in vars(self.result) or self.result.parts is not None
        return not kept and bool((self.nodes * self.rounds)[self.ran].sum() > CHUNKS_PER_BATCH)

    def chunk_batches(self) -> Iterator[Chunks]:
        """Yield all chunks, whole tasks in order of dispatch."""
        if not self.is_large:
            yield self.chunks
            return
        for found in self.result.chunk_arrays(CHUNKS_PER_BATCH):
            yield Chunks(found.tasks, found.task_and_node, found.times)

    @functools.cached_property
    def latest_send_ends(self) -> Floats:
        """When the last send of every task ends; NaN without a chunk."""
        found = np.full(len(self.index) + 1, np.nan)
        for chunks in self.chunk_batches():
            rows = np.append(chunks.rows, len(self.index))[chunks.task_and_node[:, 0]]
            np.fmax.at(found, rows, chunks.times[:, rules.SEND_END])
        return found[:-1]

    @functools.cached_property
    def columns(self) -> rules.TaskColumns:
        """The columns of tasks as the core takes them."""
        return _task_columns(self)

    @functools.cached_property
    def model(self) -> rules.Model:
        """What holds for the whole schedule, as the core takes it."""
        return _model(self)

    @functools.cached_property
    def positive(self) -> NDArray[np.bool_]:
        """Whether the optimal partitioning rule gives a task positive shares."""
        least = opr_table(self.cluster).min_size[self.nodes]
        return np.asarray((self.sigma > least) | (self.nodes == 0))


def float_columns(table: pd.DataFrame, *names: str) -> list[Floats]:
    """Return columns of a table as floats."""
    return [np.ascontiguousarray(table[name].to_numpy(dtype=float)) for name in names]


# --- what the rules read --------------------------------------------------------------------------


def _read_only(*columns: NDArray[Any]) -> list[NDArray[Any]]:
    """Return views that cannot be written, which are one type for the compiler."""
    views = [column.view() for column in columns]
    for view in views:
        view.flags.writeable = False
    return views


def _whole_numbers(column: NDArray[Any]) -> Indices:
    """Return whole numbers, and -1 for every other."""
    if column.dtype == np.int64:
        return np.ascontiguousarray(column)
    whole = column.astype(np.int64)
    return np.where(whole == column, whole, -1)


def _task_columns(schedule: ScheduleArrays) -> rules.TaskColumns:
    """Return the columns of tasks that the rules read."""
    flags = schedule.ran, schedule.refused, schedule.missed
    numbers = map(_whole_numbers, (schedule.nodes, schedule.rounds, schedule.kind))
    names = "arrival", "sigma", "deadline", "start", "estimate", "completion"
    times = (getattr(schedule, name) for name in names)
    has_chunks = np.zeros(len(schedule.index), dtype=bool)
    return rules.TaskColumns._make([*_read_only(*flags, *numbers, *times), has_chunks])


def _fewest_nodes_rule(schedule: ScheduleArrays) -> int:
    """Return by which rule no fewer nodes, in order of release, would have met a deadline."""
    policy, reading = schedule.policy, schedule.reading
    plain = reading.mn_count == "at_start" and reading.backfill == "off"
    known = policy.partition not in IN_ROUNDS and not callable(policy.partition)
    if policy.nodes != "min" or not plain or not known:
        return rules.NO_RULE
    return rules.BY_LOAD if policy.partition == "exact-n" else rules.BY_TIME


def _among(kinds: Collection[str]) -> NDArray[np.bool_]:
    """Tell of each kind whether it is one of some; the last entry is that of no kind."""
    return np.array([*(kind in kinds for kind in SPLIT_KINDS), False])


def _model(schedule: ScheduleArrays) -> rules.Model:
    """Return what holds for the whole schedule, as the rules read it."""
    cluster, partition = schedule.cluster, schedule.policy.partition
    kinds = ("own",) if callable(partition) else _ENDS_IN[partition]
    by_node = schedule.reading.release == "finish" or partition == "pieces"
    optimal = time_table(cluster, "opr").time_per_unit
    tables = _read_only(schedule.table.time_per_unit, schedule.table.setup_time, optimal)
    return rules.Model(
        size=len(schedule.index),
        nodes=cluster.nodes,
        cms=float(cluster.cms),
        cps=float(cluster.cps),
        st=float(cluster.st),
        sc=float(cluster.sc),
        origin=float(schedule.origin),
        scale=float(schedule.scale),
        relative=RELATIVE_ROUNDING,
        ulps=MAX_ULPS,
        table_ulps=TABLE_ULPS,
        admission=schedule.policy.admission,
        drops=not schedule.policy.admission and schedule.reading.late == "drop",
        together=partition == "opr",
        even=partition == "equal",
        in_rounds=partition in IN_ROUNDS,
        pieces=partition == "pieces",
        shared=schedule.reading.link == "shared",
        by_node=by_node,
        remodels=partition in ("dlt", "I", "II"),
        constraint=0 if callable(partition) else _CONSTRAINTS.get(partition, 0),
        fewest=_fewest_nodes_rule(schedule),
        skips_empty=False,
        kinds=_among(kinds),
        planned_by_chunks=_among(_PLANNED_BY_CHUNKS),
        time_per_unit=tables[0],
        setup_time=tables[1],
        optimal_time_per_unit=tables[2],
    )


def fresh_node_notes(nodes: int) -> rules.NodeNotes:
    """Return the notes of nodes and a link that no chunk has used."""
    times, rows = np.full((2, nodes + 1), -np.inf), np.full((2, nodes + 1), -1)
    return rules.NodeNotes(*times, *rows)


def fresh_chunk_notes(size: int) -> rules.ChunkNotes:
    """Return room for notes of a batch of chunks."""
    floats, rows = np.empty((3, size)), np.empty((3, size), dtype=np.int64)
    return rules.ChunkNotes(*floats, *rows)


def rule_core(size: int) -> AbstractContextManager[SimpleNamespace]:
    """Return the modules of the core, compiled or not, for rules of so many tasks or chunks."""
    return CORES["realtime"].at_speed("auto", size // CHECKED_PER_TASK)


# --- the rules ------------------------------------------------------------------------------------


def chunk_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    """Yield the rules for the chunks of all tasks: shares, times, order and exclusion."""
    nodes, notes = fresh_node_notes(schedule.cluster.nodes), fresh_chunk_notes(0)
    for chunks in schedule.chunk_batches():
        if len(chunks.times) > len(notes.release):
            notes = fresh_chunk_notes(len(chunks.times))
        broken = first_broken(schedule, chunks, nodes, notes)
        yield from _broken_rules(schedule, chunks, broken[: len(rules.RULES_OF_ENTRIES)])
        if not schedule.is_large:
            yield _has_chunks_rule(schedule)
        yield from _broken_rules(schedule, chunks, broken)
    if schedule.is_large:
        yield _has_chunks_rule(schedule)


def first_broken(
    schedule: ScheduleArrays, chunks: Chunks, nodes: rules.NodeNotes, notes: rules.ChunkNotes
) -> Indices:
    """Return the first chunk that breaks each rule, as its row in the table of chunks."""
    model, columns = schedule.model, _chunk_columns(chunks)
    if model.together:
        model = model._replace(skips_empty=not bool(schedule.positive[chunks.rows].all()))
    broken = np.full(len(rules.CHUNK_RULES), rules.UNBROKEN)
    with rule_core(len(chunks.times)) as core:
        core.check_chunks.check_chunks(columns, schedule.columns, model, nodes, notes, broken)
    if callable(schedule.policy.partition) and (broken[: rules.OWN_SHARES] == rules.UNBROKEN).all():
        broken[rules.OWN_SHARES] = _first_other_share(schedule, columns, notes.release)
    return broken


def _chunk_columns(chunks: Chunks) -> rules.ChunkColumns:
    """Return the columns of chunks that the rules read, task by task."""
    order: Any = slice(None)
    table_row = np.arange(len(chunks.times))
    if chunks.labels is not None:
        order = table_row = chunks.laid_out()
    columns = chunks.rows, chunks.task_and_node[order], chunks.times[order], table_row
    return rules.ChunkColumns(*_read_only(*map(np.ascontiguousarray, columns)))


def _broken_rules(
    schedule: ScheduleArrays, chunks: Chunks, broken: Indices
) -> Iterator[TestedRule]:
    """Yield every rule that a chunk breaks, with the label of the first one's task."""
    for rule in np.flatnonzero(broken != rules.UNBROKEN):
        first = slice(broken[rule], broken[rule] + 1)
        if chunks.labels is not None:
            label = chunks.labels[first]
        else:
            label = schedule.index.take(chunks.rows[chunks.task_and_node[first, rules.TASK_COLUMN]])
        yield rules.CHUNK_RULES[rule], label, np.zeros(1, dtype=bool)


def _has_chunks_rule(schedule: ScheduleArrays) -> TestedRule:
    """Return the rule whether every task that runs has chunks."""
    has_chunks = schedule.columns.has_chunks
    return "a task that runs has chunks", schedule.index, ~schedule.ran | has_chunks


def _first_other_share(
    schedule: ScheduleArrays, chunks: rules.ChunkColumns, release: Floats
) -> int:
    """Return the first row whose share a user's partition, called again, does not return."""
    cluster, table = schedule.cluster, time_table(schedule.cluster, "opr")
    ask = cast(Callable[..., Any], schedule.policy.partition)
    task, given = chunks.task_and_node[:, rules.TASK_COLUMN], np.empty(len(chunks.times))
    for first in np.flatnonzero(np.diff(task, prepend=-1)):
        row = chunks.rows[task[first]]
        n = int(schedule.nodes[row])
        state = state_view(cluster, table, n, 0)
        sent = slice(first, first + n)
        given[sent] = ask(float(schedule.sigma[row]), release[sent] - schedule.origin, state)
    same = times_equal(chunks.times[:, rules.ALPHA], given, 1.0, slack=RELATIVE_ROUNDING)
    return int(chunks.table_row[~same].min(initial=rules.UNBROKEN))
