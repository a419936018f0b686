"""The result of a run: tables of all tasks and chunks, and the measures of the papers."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.compiled import CLOCK_DIVISOR, deadline_with_tolerance, time_offset, zero_recarray
from dlsim.errors import InputError, ScheduleError
from dlsim.realtime.check import check_schedule
from dlsim.realtime.core.state import IIT_COLUMNS, IIT_COUNT_RULES
from dlsim.realtime.formulas import span_of, time_table
from dlsim.realtime.model import (
    STARTS_TOGETHER,
    Cluster,
    Indices,
    Policy,
    Reading,
    TaskTable,
    describe_run,
)
from dlsim.realtime.split import Rules, core_for
from dlsim.validate import Floats, number, unwrap_scalar


class Run(NamedTuple):
    """The results of a run, as arrays."""

    origin: float  # the times of `done` are counted from here
    deadline: Floats
    admitted: NDArray[np.bool_]
    done: Any  # records of RESULT
    offers: Floats  # the deadlines offered to refused tasks; empty where no offer is asked for
    offer: float = np.nan  # the deadline offered to the one task that is asked about
    counts: NDArray[np.int64] | None = None


class Offer(NamedTuple):
    """The deadline with which a refused task would be admitted (paper M, section 5: negotiation).

    Attributes
    ----------
    deadline : float
        Smallest relative deadline with which the test at the task's arrival admits it.
    nodes : int
        Number of nodes that the task would run on.
    cost : float
        Node time of the task; W(n) = n E(n) if all nodes start together.
    start, completion : float
        Start and completion, as that test plans them.
    """

    deadline: float
    nodes: int
    cost: float
    start: float
    completion: float


class ChunkArrays(NamedTuple):
    """Chunks of whole tasks, in order of dispatch and transmission.

    Attributes
    ----------
    tasks : array of int
        The tasks, as rows of `Schedule.tasks`.
    task_and_node : array of int, one row per chunk
        The task of each chunk, as a place in `tasks`, and its node, from 0.
    times : array of float, one row per chunk
        Columns alpha, send_start, send_end and compute_end of `Schedule.chunks`.
    """

    tasks: Indices
    task_and_node: Indices
    times: Floats


@dataclass(frozen=True)
class Schedule:
    """The result of a run, as tables.

    Attributes
    ----------
    tasks : DataFrame
        Columns arrival, sigma, deadline, admitted, start, nodes, estimate, completion, missed,
        indexed as the input; NaN, 0 and False for a refused task. With negotiation the deadline
        is the one agreed on. The estimate is the planned completion; if the policy uses nodes as
        they are released, the real completion may be earlier.
    cluster : Cluster
        The cluster that the tasks ran on.
    policy : Policy
        The policy that decided; `name` is its name in legends.
    reading : Reading
        How ambiguous sentences of the paper were understood.
    negotiate : float
        The factor up to which refused tasks accepted a longer deadline; 0 for none.
    submitted : NamedTuple, optional
        The tasks as they were given, with which `check` compares the result: arrays arrival,
        sigma, deadline (as requested), key (rank in a static order), requested (user_nodes, or
        0), and labels.
    runs : DataFrame, optional
        How every task ran: turn (order of dispatch, -1 for none), kind (place in
        `dlsim.realtime.model.SPLIT_KINDS`) and rounds; began and until, its start and estimate
        on a clock that starts near the first arrival, so that floats hold them more precisely.
    counted : ndarray of int, shape (5, 4), optional
        The numbers of `counts`; None if `counts` computes them at its first use, or refuses.
    parts : Schedule, optional
        Under ``split="piece"`` the schedule of the pieces, each a task.
    rerun : callable, optional
        Repeats the run, with options of `dlsim.realtime.simulate.run_policy`.
    """

    tasks: pd.DataFrame
    cluster: Cluster
    policy: Policy
    name: str
    reading: Reading
    negotiate: float = 0.0
    submitted: TaskTable | None = field(default=None, repr=False)
    runs: pd.DataFrame | None = field(default=None, repr=False)
    counted: NDArray[np.int64] | None = field(default=None, repr=False)
    parts: "Schedule | None" = field(default=None, repr=False)
    rerun: Callable[..., Run] | None = field(default=None, repr=False)

    @classmethod
    def from_run(cls, run: Run, submitted: TaskTable, **fields: Any) -> Self:
        """Make the tables of a run; a task misses its deadline if it ends after the deadline."""
        done, origin = run.done, run.origin
        arrival = submitted.arrival - origin if origin > 0 else submitted.arrival
        missed = run.admitted & ~(done["end"] - arrival <= run.deadline)
        few = np.flatnonzero(missed)  # these may still be in time within the tolerance
        due = arrival[few] + run.deadline[few]
        limit = deadline_with_tolerance(due, due - arrival[few])
        if fields["policy"].partition != "opr":  # the end is a sum: one rounding for each chunk
            sums = done["nodes"][few] * done["rounds"][few]
            limit += sums * np.finfo(float).eps * np.abs(due)
        missed[few] = ~(done["end"][few] <= limit)
        columns = {
            "arrival": submitted.arrival.copy(),
            "sigma": submitted.sigma.copy(),
            "deadline": run.deadline,
            "admitted": run.admitted,
            "start": origin + done["start"],
            "nodes": done["nodes"].copy(),
            "estimate": origin + done["estimate"],
            "completion": origin + done["end"],
            "missed": missed,
        }
        # not copied: no other table holds these arrays
        tasks: Any = functools.partial(pd.DataFrame, columns, index=submitted.labels, copy=False)
        runs: Any = functools.partial(_run_table, done, submitted.labels)
        return cls(tasks, submitted=submitted, runs=runs, counted=run.counts, **fields)

    @classmethod
    def merge_pieces(cls, parts: Self, submitted: TaskTable, **fields: Any) -> Self:
        """Merge the schedule of pieces, each of which is a task there, into one row per task."""
        how = {"start": "min", "nodes": "sum", "estimate": "max", "completion": "max"}
        found = parts.tasks.groupby(submitted.owners).agg(how | {"missed": "any"})
        columns = {
            "arrival": submitted.arrival,
            "sigma": submitted.sigma,
            "deadline": submitted.deadline,
            "admitted": found["nodes"] > 0,
            **found,
        }
        tasks = pd.DataFrame(columns).set_axis(submitted.labels)
        return cls(tasks, submitted=submitted, parts=parts, **fields)

    @functools.cached_property
    def chunks(self) -> pd.DataFrame:
        """One row per task, round and node: task node alpha send_start send_end compute_end.

        Rows are in order of dispatch and transmission. Nodes are numbered from 0; a task takes the
        idle nodes with the lowest numbers.
        """
        if self.parts is None:
            return _chunk_table(self, next(_build_chunks(self)))
        assert self.submitted is not None
        chunks = self.parts.chunks.copy()
        rows = self.submitted.owners[chunks["task"].to_numpy()]
        chunks["alpha"] /= self.submitted.requested[rows]
        chunks["task"] = self.submitted.labels.to_numpy()[rows]
        return chunks

    def chunk_batches(self, rows: float = np.inf) -> Iterator[pd.DataFrame]:
        """Yield the chunks as tables of whole tasks, of about `rows` rows each, in order.

        The schedule of a log may have more chunks than memory holds: each table is built when the
        iteration reaches it. If `chunks` was computed before, it is the only table.
        """
        number("rows", rows, 1, np.inf)
        if self.parts is not None or "chunks" in vars(self):
            yield self.chunks
        else:
            yield from (_chunk_table(self, found) for found in self.chunk_arrays(rows))

    def chunk_arrays(self, rows: float) -> Iterator[ChunkArrays]:
        """Yield the chunks of `chunk_batches` as arrays, without labels, computed anew.

        Not for a schedule whose tasks were admitted piece by piece: its parts have the chunks.
        """
        return _build_chunks(self, rows)

    @functools.cached_property
    def counts(self) -> pd.DataFrame:
        """How often nodes were released at different instants, and how often a constraint held.

        One row per counting rule: admitted (each admitted task in its own test), arrival (the
        newcomer of every test that found nodes for it), replanned (every task planned in every
        test), dispatched (each plan carried out), rtgrid (as admitted, but by the rule of the
        authors' program: Constraint 1 holds iff exactly one node is released before r_n;
        Constraint 2 is not counted). Columns s_iits, opt_iits and opt_iits_ii are those of Table 1
        of paper I: a constraint is counted if it holds and (3)-(4) give positive shares. Column
        non_positive: how often a constraint held as printed although a share is not positive.
        Only for policies that serve in line.

        Two releases are different instants if they lie further apart than 1e-12 of the time of the
        least load on one node, and 1e-12 / 1024 of the instant. A shorter gap is a rounding, such
        as that between nodes that finish together; a longer one is counted, however short it is.
        """
        counted = self.counted
        if counted is None and self.rerun is not None:
            counted = self.rerun(count_iits=True).counts
        if counted is None:
            raise InputError(
                "counts are kept for policies that serve in line, such as FIFO-DLT, without "
                f"backfill and split='piece'; got {describe_run(self.name, self.reading)}"
            )
        rules = pd.Index(IIT_COUNT_RULES, name="rule")
        table = pd.DataFrame(counted.copy(), rules, list(IIT_COLUMNS), dtype="Int64")
        table.loc["rtgrid", "opt_iits_ii"] = pd.NA
        return table

    @property
    def reject_ratio(self) -> float:
        """Refused tasks per arrived task (paper M, section 6); a task counts by refused pieces."""
        return _mean(self._refused())

    @property
    def work_reject_ratio(self) -> float:
        """Refused data per arrived data, which counts big tasks more; MCDF favours them."""
        return _mean(self._refused(), self._column("sigma"))

    def _column(self, name: str) -> Any:
        """Return a column of `tasks`, without building the table."""
        tasks = vars(self)["tasks"]
        return tasks.args[0][name] if callable(tasks) else tasks[name].to_numpy()

    def _refused(self) -> Floats:
        """Return the refused part of every task: 0 or 1 unless pieces are admitted one by one."""
        if self.parts is not None:
            assert self.submitted is not None
            return np.asarray(1 - self.tasks["nodes"].to_numpy() / self.submitted.requested)
        return np.asarray(~self._column("admitted"), dtype=float)

    @property
    def miss_ratio(self) -> float:
        """Tasks that missed their deadline per arrived task (paper M, section 6)."""
        return _mean(self._column("missed").astype(float))

    @property
    def stretch(self) -> pd.Series:
        """Agreed deadline over the requested one; 1 unless the task negotiated."""
        assert self.submitted is not None
        return self.tasks["deadline"] / self.submitted.deadline

    @property
    def total_cost(self) -> float:
        """Node time of all tasks that ran: the sum of W(n); a task occupies all nodes from s_1."""
        span = self.tasks["completion"] - self.tasks["start"]
        return float((span * self.tasks["nodes"]).sum())

    def summary(self) -> pd.Series:
        """Return the measures that papers M and I print, under the name of the policy.

        Returns
        -------
        Series of float
            - ``tasks``, ``admitted``, ``missed``: tasks that arrived, that were admitted (more
              is better), and that missed their deadlines (fewer is better).
            - ``reject_ratio``: refused tasks per arrived task, in 0..1; less is better (paper M,
              section 6; paper I, section 5). ``work_reject_ratio``: the same of the data.
            - ``miss_ratio``: tasks that missed their deadlines per arrived task, in 0..1; less is
              better (paper M, section 6, for policies that refuse no task).
            - ``mean_wait``: mean time from arrival to start of the tasks that ran, in the unit of
              time of the tasks; less is better.
            - ``total_cost``: node time of the tasks that ran, in nodes times the unit of time; for
              the same admitted tasks, less is better (paper M, section 5).
            - ``utilisation``: the part of the time of all nodes, from the first arrival to the last
              completion, in which they compute, without set-ups, in 0..1; more is better.
            - ``s_iits``, ``opt_iits``, ``opt_iits_ii``: admitted tasks whose nodes were released at
              different instants, and those among them for which Constraint 1 or 2 of paper I held
              (Table 1; `counts`, row ``admitted``). They describe a workload: neither is better.
              NaN for policies whose nodes start together or that do not serve in line.

            A measure of no task is NaN.

        Examples
        --------
        >>> from dlsim.realtime import Cluster, simulate
        >>> tasks = pd.DataFrame({"arrival": [0, 0, 0], "sigma": [6, 18, 6],
        ...                       "deadline": [10, 64, 16]})
        >>> cluster = Cluster(nodes=2, cms=1, cps=1)
        >>> names = ["FIFOMN", "MCDF"]
        >>> table = pd.DataFrame([simulate(tasks, cluster, p).summary() for p in names])
        >>> table[["admitted", "reject_ratio", "mean_wait", "total_cost"]].round(3)
                admitted  reject_ratio  mean_wait  total_cost
        FIFOMN       2.0         0.333        4.0        52.0
        MCDF         2.0         0.333        4.0        32.0
        """
        tasks = self.tasks
        ran = tasks[tasks["start"].notna()]
        span = ran["completion"].max() - tasks["arrival"].min()
        done = self._column("sigma") * (1 - self._refused()) * tasks["start"].notna().to_numpy()
        computing = self.cluster.cps * done.sum()
        measures = {
            "tasks": len(tasks),
            "admitted": tasks["admitted"].sum(),
            "missed": tasks["missed"].sum(),
            "reject_ratio": self.reject_ratio,
            "work_reject_ratio": self.work_reject_ratio,
            "miss_ratio": self.miss_ratio,
            "mean_wait": (ran["start"] - ran["arrival"]).mean(),
            "total_cost": self.total_cost,
            "utilisation": computing / (self.cluster.nodes * span),
        }
        constraints = IIT_COLUMNS[:3]
        if self.counted is None or self.policy.partition in STARTS_TOGETHER:
            measures |= dict.fromkeys(constraints, np.nan)
        else:
            measures |= self.counts.loc["admitted", list(constraints)]
        return pd.Series(measures, name=self.name, dtype=float)

    def check(self, strict: bool = False) -> None:
        """Check the schedule against the definition of the model, or raise ScheduleError.

        `strict` also refuses non-positive shares, which ``an_nodes="all"`` allows.
        """
        check_schedule(self, strict=strict)

    def offer(self, task: object) -> Offer | None:
        """Find the smallest deadline with which a refused task (its label) would be admitted.

        The run is repeated up to the test of that task, which is then tested with other deadlines;
        its key in a user's static order stays the same. The result is None if no deadline is
        admissible: a newcomer that starts at once may take nodes that a waiting task needs.
        """
        index = self.tasks.index
        row: Any = index.get_loc(task) if pd.api.types.is_hashable(task) and task in index else None
        if not isinstance(row, int | np.integer):  # a slice for a part of a label
            raise InputError(f"task {task!r} is not in the schedule; use a label of s.tasks.index")
        if self.tasks["admitted"].iloc[row]:
            raise InputError(f"task {task!r} was admitted; only a refused task gets an offer")
        if self.parts is not None:
            raise InputError("offers are made to whole tasks; use the reading split='all'")
        assert self.rerun is not None
        run = self.rerun(offered_task=int(row))
        if np.isnan(run.offer):
            return None
        start, estimate, end = (float(run.done[k][row]) for k in ("start", "estimate", "end"))
        nodes = int(run.done["nodes"][row])
        cost = nodes * (estimate - start)
        return Offer(run.offer, nodes, cost, run.origin + start, run.origin + end)


class _CachedTable:
    """A field that holds a table, or the function that builds it at the first access."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, schedule: Schedule | None, owner: type) -> Any:
        known: dict[str, Any] = {self.name: None} if schedule is None else vars(schedule)
        if callable(known[self.name]):
            known[self.name] = known[self.name]()
        return known[self.name]

    def __set__(self, schedule: Schedule, table: Any) -> None:
        vars(schedule)[self.name] = table


# built at the first access: a sweep needs only ratios, most other uses need only `tasks`
Schedule.tasks = _CachedTable("tasks")  # type: ignore[assignment]
Schedule.runs = _CachedTable("runs")  # type: ignore[assignment]


def _run_table(done: Any, labels: pd.Index) -> pd.DataFrame:
    """Return the table `Schedule.runs`: how every task ran."""
    more = {name: done[name] for name in ("turn", "kind", "rounds")}
    more |= {"began": done["start"], "until": done["estimate"]}
    return pd.DataFrame(more, index=labels)


def _mean(part: Floats, weights: Floats | None = None) -> float:
    return float(np.average(part, weights=weights)) if len(part) else np.nan


def planned_tasks(core: SimpleNamespace, how: Indices, times: Floats) -> tuple[Any, Any]:
    """Return tasks that ran as records of the core, and how they ran as planned entries.

    `how` has the nodes, kind and rounds of each task, `times` its size, start and estimate.
    """
    tasks = zero_recarray(len(how), core.state.TASK)
    planned = zero_recarray(len(how), core.state.ENTRY)
    tasks["sigma"], planned["task"] = times[:, 0], np.arange(len(how))
    planned["nodes"], planned["kind"], planned["rounds"] = how.T
    planned["start"], planned["end"] = times[:, 1], times[:, 2]
    return tasks, planned


def _build_chunks(schedule: Schedule, rows: float = np.inf) -> Iterator[ChunkArrays]:
    """Yield the chunks of all tasks that ran, as whole tasks of about `rows` chunks together."""
    tasks, runs = schedule.tasks, schedule.runs
    ran = np.flatnonzero(tasks["start"].notna().to_numpy())
    if runs is None:
        fresh = {"turn": -1, "kind": 0, "rounds": 1, "began": np.nan, "until": np.nan}
        runs = pd.DataFrame(fresh, index=tasks.index)
    elif not runs.index.equals(tasks.index):
        runs = runs.loc[tasks.index.take(ran)].reindex(tasks.index)
    turn = runs["turn"] if schedule.policy.partition != "opr" else tasks["start"]
    order = ran[np.argsort(turn.to_numpy()[ran], stable=True)]

    def column(table: pd.DataFrame, name: str) -> Any:
        return table[name].to_numpy()[order]

    how, times = np.empty((len(order), 3), dtype=np.int64), np.empty((len(order), 3))
    how[:, 0] = column(tasks, "nodes")
    how[:, 1], how[:, 2] = column(runs, "kind"), column(runs, "rounds")
    counts = how[:, 0] * how[:, 2]
    times[:, 0] = column(tasks, "sigma")
    origin = time_offset(tasks["arrival"].to_numpy(dtype=float))
    is_finer = True  # unless the table is changed
    for place, fine, told in ((1, "began", "start"), (2, "until", "estimate")):
        exact, rounded = column(runs, fine), column(tasks, told)
        agree = origin + exact == rounded
        times[:, place] = np.where(agree, exact, rounded - origin)
        is_finer = is_finer and bool(agree.all())
    cluster, table = schedule.cluster, time_table(schedule.cluster, schedule.policy.partition)
    span = span_of(tasks["sigma"].to_numpy(dtype=float), table)
    if not is_finer:  # a table knows no instant more exactly
        span += origin / CLOCK_DIVISOR
    chosen = np.empty(cluster.nodes, dtype=np.int64)
    node_free = np.full(cluster.nodes, -np.inf)
    window = np.cumsum(counts) // rows
    cuts = [0, *(np.flatnonzero(np.diff(window)) + 1).tolist(), len(how)]
    for begin, end in pairwise(cuts):
        part = slice(begin, end)
        size, first = counts[part].sum(), np.cumsum(counts[part]) - counts[part]
        task_and_node, out = np.empty((size, 2), dtype=np.int64), np.empty((size, 4))
        with core_for(schedule.policy, "auto", end - begin) as core:
            labels = tasks.index.take(order[part]).to_numpy()
            rules = Rules(cluster, schedule.policy, schedule.reading, labels=labels)
            known, planned = planned_tasks(core, how[part], times[part])
            # no task is planned: the state has room for none
            state = core.state.fresh_state(known[:0], rules, table, span)._replace(tasks=known)
            bad = core.chunks.fill_chunks(
                planned, first, node_free, chosen, task_and_node, out, state
            )
        if bad >= 0:
            label, began = unwrap_scalar(labels[bad]), origin + times[begin + bad, 1]
            raise ScheduleError(
                f"a task starts on idle nodes: broken by task {label!r} "
                f"({describe_run(schedule.name, schedule.reading)}), which starts on "
                f"{how[begin + bad, 0]} nodes at {began} when fewer are idle"
            )
        if origin != 0:
            out[:, 1:] += origin
        yield ChunkArrays(order[part], task_and_node, out)


def _chunk_table(schedule: Schedule, found: ChunkArrays) -> pd.DataFrame:
    """Return chunks under the labels of their tasks."""
    names = ["alpha", "send_start", "send_end", "compute_end"]
    chunks = pd.DataFrame(found.times, columns=names)
    task, node = found.task_and_node.T
    chunks.insert(0, "node", node)
    labels = schedule.tasks.index.take(found.tasks).to_numpy()
    chunks.insert(0, "task", labels[task])
    return chunks
