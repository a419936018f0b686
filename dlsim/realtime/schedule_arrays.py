"""The tables of a schedule as plain arrays, as a check reads them."""

import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import ScheduleError
from dlsim.realtime.formulas import opr_table, span_of, time_table
from dlsim.realtime.model import Cluster, Indices, Policy, Reading
from dlsim.validate import Floats, unwrap_scalar

#: Chunks beyond this number are computed and checked in batches of about so many.
CHUNKS_PER_BATCH = 1_000_000
#: A rule in words, the labels of the rows that it is about, and for each whether it holds.
RuleResult = tuple[str, pd.Index, Any]


class TaskTable(NamedTuple):
    """The tasks as submitted: columns, ranks of a static order, requested nodes, labels."""

    arrival: Floats
    sigma: Floats
    deadline: Floats
    key: Floats
    requested: NDArray[np.int64]
    labels: pd.Index

    @property
    def owners(self) -> Indices:
        """The row of the task that each of its pieces belongs to (``split="piece"``)."""
        return np.repeat(np.arange(len(self.requested)), self.requested)


class ScheduleLike(Protocol):
    """The parts of a `dlsim.realtime.Schedule` that a check may read."""

    @property
    def tasks(self) -> pd.DataFrame: ...
    @property
    def chunks(self) -> pd.DataFrame: ...
    def chunk_batches(self, rows: float) -> Iterator[pd.DataFrame]: ...
    @property
    def runs(self) -> pd.DataFrame | None: ...
    @property
    def submitted(self) -> TaskTable | None: ...
    @property
    def parts(self) -> "ScheduleLike | None": ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def name(self) -> str: ...
    @property
    def reading(self) -> Reading: ...
    @property
    def negotiate(self) -> float: ...


class Groups(NamedTuple):
    """Rows with equal keys."""

    place: Indices  # within the group
    before: Indices  # the row before, or itself
    first: Indices


def group_rows(*keys: NDArray[Any]) -> Groups:
    """Group rows by keys, in their own order within a group."""
    order = np.lexsort(keys)
    new, here = np.ones(len(order), dtype=bool), np.arange(len(order))
    new[1:] = np.any([key[order[1:]] != key[order[:-1]] for key in keys], axis=0)
    begin = np.maximum.accumulate(np.where(new, here, 0))
    found: NDArray[np.int64] = np.empty((3, len(order)), dtype=np.int64)
    found[:, order] = here - begin, order[here - ~new], order[begin]
    return Groups(*found)


class Chunks:
    """The chunks of a schedule as arrays; `task` is the row of a chunk's task."""

    def __init__(self, table: pd.DataFrame, index: pd.Index) -> None:
        self.table, self.index = table, index
        self.labels, self.size = pd.Index(table["task"]), len(index)
        rows = index.get_indexer(self.labels)
        self.task = np.where(rows < 0, self.size, rows)  # of no task: behind the last
        node = table["node"].to_numpy()
        short = node.astype(np.int16)  # is sorted in linear time
        self.node = short if (short == node).all() else node
        columns = "alpha", "send_start", "send_end", "compute_end"
        self.alpha, self.send_start, self.send_end, self.compute_end = float_columns(
            table, *columns
        )

    @functools.cached_property
    def by_task(self) -> Groups:
        """Chunks of one task, as they are sent."""
        new = np.flatnonzero(np.diff(self.task, prepend=-1))
        if len(new) > np.count_nonzero(self.total()) + (self.task == self.size).any():
            return group_rows(self.task)
        here, at = np.arange(len(self.task)), np.zeros(len(self.task), dtype=np.int64)
        at[new] = new  # one task after another, as they are laid out: nothing to sort
        first = np.maximum.accumulate(at)
        return Groups(here - first, np.maximum(here - 1, first), first)

    @functools.cached_property
    def by_node(self) -> Groups:
        """What each node gets of a task: one chunk, or one per round."""
        return group_rows(self.node, self.task)

    @functools.cached_property
    def tasks(self) -> Indices:
        """The tasks that have chunks, by their first."""
        return self.task[self.by_task.place == 0]

    @functools.cached_property
    def names(self) -> pd.Index:
        """The labels of `tasks`."""
        return self.labels[self.by_task.place == 0]

    def rules(self, nodes: int) -> Iterator[RuleResult]:
        """Yield the rules for every chunk whatever the model; `nodes` are those of the cluster."""
        yield "every chunk is one of a task in the table", self.labels, self.task < self.size
        there = (self.node >= 0) & (self.node < nodes) & (self.node % 1 == 0)
        yield "every chunk is on a node of the cluster, 0..N-1", self.labels, there
        values = self.alpha, self.send_start, self.send_end, self.compute_end
        yield "a chunk's share and times are finite", self.labels, np.isfinite(values).all(axis=0)

    def total(self, values: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the sum over each task, or how many chunks it has."""
        return np.bincount(self.task, values, self.size + 1)[: self.size]

    def reduce_by_task(self, ufunc: np.ufunc, values: Floats) -> Floats:
        """Reduce the values of each task by a ufunc such as `fmax`; NaN if it has no chunk."""
        found = np.full(self.size + 1, np.nan)
        ufunc.at(found, self.task, values)
        return found[: self.size]


class ScheduleArrays:
    """The tables of a schedule as arrays, read once."""

    def __init__(self, result: ScheduleLike) -> None:
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
        #: The duration that tells two instants apart.
        self.scale = span_of(self.sigma, self.table)

    @functools.cached_property
    def chunks(self) -> Chunks:
        return Chunks(self.result.chunks, self.index)

    @functools.cached_property
    def is_large(self) -> bool:
        """Whether the chunks are too many to be kept, and are computed batch by batch."""
        kept = "chunks" in vars(self.result) or self.result.parts is not None
        return not kept and bool((self.nodes * self.rounds)[self.ran].sum() > CHUNKS_PER_BATCH)

    def chunk_batches(self) -> Iterator[Chunks]:
        """Yield all chunks, whole tasks in order of dispatch."""
        if self.is_large:
            yield from (
                Chunks(table, self.index) for table in self.result.chunk_batches(CHUNKS_PER_BATCH)
            )
        else:
            yield self.chunks

    @functools.cached_property
    def positive(self) -> NDArray[np.bool_]:
        """Whether the optimal partitioning rule gives a task positive shares."""
        least = opr_table(self.cluster).min_size[self.nodes]
        return np.asarray((self.sigma > least) | (self.nodes == 0))


def require_rules(rules: Iterable[RuleResult], where: str) -> None:
    """Raise ScheduleError for the first broken rule; `where` names the run in the message."""
    with np.errstate(all="ignore"):  # a NaN breaks every rule that compares it
        for rule, labels, holds in rules:
            good = np.asarray(holds, dtype=bool)
            if not good.all():
                task = unwrap_scalar(labels[int(np.argmin(good))])
                raise ScheduleError(f"{rule}: broken by task {task!r} ({where})")


def float_columns(table: pd.DataFrame, *names: str) -> list[Floats]:
    """Return columns of a table as floats."""
    return [np.ascontiguousarray(table[name].to_numpy(dtype=float)) for name in names]
