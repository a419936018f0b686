"""Simulate real-time divisible loads on one cluster (papers M and I)."""

import functools
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.given import column, instance, label, number, table
from dlsim.kernel import clock_origin, latest_finish
from dlsim.realtime import events, pieces
from dlsim.realtime.check import check_schedule
from dlsim.realtime.chunks import has_positive_shares, lay_out, span_of, told
from dlsim.realtime.model import Cluster, Policy, Reading, policy_named
from dlsim.realtime.releases import KINDS
from dlsim.realtime.splits import check_partition, rules_of, table_for
from dlsim.realtime.state import (
    BLOCK,
    COUNT_RULES,
    COUNTED,
    TASK,
    Rules,
    fresh_results,
    fresh_state,
)

Floats = NDArray[np.float64]

REQUIRED = ("arrival", "sigma", "deadline")


class Offer(NamedTuple):
    """The deadline a refused task could have had (paper M, section 5: negotiation).

    Attributes
    ----------
    deadline : float
        Smallest relative deadline that is admissible in the state the task met.
    nodes : int
        Nodes it would run on.
    cost : float
        Node time there: W(n) = n E(n) where all nodes start together.
    start, completion : float
        As planned at that instant.
    """

    deadline: float
    nodes: int
    cost: float
    start: float
    completion: float


@dataclass(frozen=True)
class Schedule:
    """What a policy did with every task; plain tables.

    Attributes
    ----------
    tasks : DataFrame
        arrival sigma deadline admitted start nodes estimate completion missed, indexed
        as the input; NaN, 0 and False where a task was refused. With negotiation the
        deadline is the one agreed on. The estimate is the completion as planned; where
        nodes are used as they are released the real one may be earlier.
    cluster : Cluster
        Where it ran.
    policy : Policy
        Who decided, and `name`, its legend name.
    reading : Reading
        How the paper was understood.
    negotiate : float
        The factor up to which refused tasks accepted a longer deadline; 0 for none.
    given : NamedTuple, optional
        The tasks as they came, which `check` compares with: arrays arrival, sigma,
        deadline (as asked for), key (rank of a static order) and wanted (user_nodes, or
        0), and labels.
    runs : DataFrame, optional
        How every task ran: turn (order of dispatch, -1 for none), kind (place in
        `dlsim.realtime.releases.KINDS`) and rounds; began and until, its start and estimate
        on a clock that begins by the first arrival, where a float holds them finer.
    counted : ndarray of int, shape (5, 4), optional
        Behind `counts`.
    parts : Schedule, optional
        Under ``split="piece"`` the schedule of the pieces, each a task.
    """

    tasks: pd.DataFrame
    cluster: Cluster
    policy: Policy
    name: str
    reading: Reading
    negotiate: float = 0.0
    given: "_Given | None" = field(default=None, repr=False)
    runs: pd.DataFrame | None = field(default=None, repr=False)
    counted: NDArray[np.int64] | None = field(default=None, repr=False)
    parts: "Schedule | None" = field(default=None, repr=False)

    @functools.cached_property
    def chunks(self) -> pd.DataFrame:
        """One row per task, round and node: task node alpha send_start send_end compute_end.

        Returns
        -------
        DataFrame
            In order of dispatch and transmission; nodes are numbered from 0 and any
            idle one serves, here the lowest.
        """
        if self.parts is not None:
            return pieces.chunks_of(self)
        runs = _fresh_runs(self.tasks) if self.runs is None else self.runs
        under = told(self.name, self.reading)
        return lay_out(self.tasks, runs, self.cluster, self.policy, self.reading, under)

    @property
    def kinds(self) -> pd.Series:
        """What each task was split by: opr, remodel, equal finish, ...; NaN where refused."""
        assert self.runs is not None
        names = pd.Series(KINDS, dtype=object).reindex(self.runs["kind"])
        return names.set_axis(self.tasks.index).where(self.tasks["start"].notna()).rename("kind")

    @property
    def counts(self) -> pd.DataFrame:
        """How often nodes were released at different instants, and a constraint held.

        Returns
        -------
        DataFrame
            A row per counting rule: admitted (each admitted task in its own test),
            arrival (the newcomer of every test that found nodes for it), replanned (every
            task planned in every test), dispatched (each plan carried out), rtgrid (as
            admitted, but the authors' own counter: Constraint 1 is taken to hold iff
            exactly one node is released before r_n; it has no counter for Constraint 2).
            Columns s_iits, opt_iits and opt_iits_ii of Table 1 of paper I: a constraint
            counts where (3)-(4) give positive shares; non_positive, how often one held
            as printed with a share that is not.

        Raises
        ------
        InputError
            For policies that do not serve in line.
        """
        if self.counted is None:
            raise InputError(
                "counts are kept for policies that serve in line, such as FIFO-DLT, without "
                f"backfill and split='piece'; got {told(self.name, self.reading)}"
            )
        frame = pd.DataFrame(self.counted, index=pd.Index(COUNT_RULES, name="rule"))
        frame = frame.set_axis(list(COUNTED), axis=1).astype("Int64")
        frame.loc["rtgrid", "opt_iits_ii"] = pd.NA
        return frame

    @property
    def reject_ratio(self) -> float:
        """Refused tasks per arrived task (paper M, section 6); of pieces by fractions."""
        return _ratio(self._refused(), np.ones(len(self.tasks)))

    @property
    def work_reject_ratio(self) -> float:
        """Refused data per arrived data: MCDF favours big tasks, and counting hides it."""
        return _ratio(self._refused(), self.tasks["sigma"].to_numpy())

    def _refused(self) -> Floats:
        """Refused part of every task, 0 or 1 unless its pieces are admitted one by one."""
        if self.parts is not None:
            return pieces.refused_part(self)
        return np.asarray(~self.tasks["admitted"].to_numpy(), dtype=float)

    @property
    def miss_ratio(self) -> float:
        """Tasks that missed their deadline per arrived task (paper M, section 6)."""
        return _ratio(self.tasks["missed"].to_numpy(dtype=float), np.ones(len(self.tasks)))

    @property
    def is_physical(self) -> bool:
        """Whether every share is positive; only ``an_nodes="all"`` can make it False."""
        if self.policy.partition != "opr":
            return bool((self.chunks["alpha"] > 0).all())
        return bool(has_positive_shares(self.tasks, self.cluster).all())

    @property
    def stretch(self) -> pd.Series:
        """Deadline agreed on over the one asked for; not 1 only after negotiation."""
        assert self.given is not None
        return self.tasks["deadline"] / self.given.deadline

    @property
    def total_cost(self) -> float:
        """Node time of all tasks that ran: the sum of W(n), nodes counted from s_1 on."""
        span = self.tasks["completion"] - self.tasks["start"]
        return float((span * self.tasks["nodes"]).sum())

    def check(self, strict: bool = False) -> None:
        """Verify the schedule from the model's definition alone.

        Parameters
        ----------
        strict : bool
            Also refuse non-positive shares, which ``an_nodes="all"`` lets through.

        Raises
        ------
        ScheduleError
            Naming the first violated rule.
        """
        check_schedule(self, strict=strict)

    def offer(self, task: object) -> Offer | None:
        """Find the smallest deadline with which a refused task would be admitted.

        The run is repeated up to the test of that task, so the state is the one it met.
        A static user order keeps its key.

        Parameters
        ----------
        task : index label
            A refused task.

        Returns
        -------
        Offer or None
            None where no deadline at all is admissible (a newcomer that fits at once
            may take nodes that a waiting task cannot do without).

        Raises
        ------
        InputError
            For an unknown task or one that was admitted.
        """
        if not pd.api.types.is_hashable(task) or task not in self.tasks.index:
            raise InputError(f"task {task!r} is not in the schedule; use a label of s.tasks.index")
        row = int(np.flatnonzero(self.tasks.index == task)[0])
        if self.tasks["admitted"].iloc[row]:
            raise InputError(f"task {task!r} was admitted; only a refused task gets an offer")
        assert self.given is not None
        if self.parts is not None:
            raise InputError("offers are made to whole tasks; use the reading split='all'")
        run = _run(self.given, self.cluster, self.policy, self.reading, self.negotiate, row)
        if np.isnan(run.offer):
            return None
        one = run.done[row]
        cost = one.nodes * (one.estimate - one.start)
        start, end = float(run.origin + one.start), float(run.origin + one.end)
        return Offer(run.offer, int(one.nodes), float(cost), start, end)


def _ratio(part: Floats, weight: Floats) -> float:
    return float((part * weight).sum() / weight.sum()) if len(weight) else np.nan


def _fresh_runs(tasks: pd.DataFrame) -> pd.DataFrame:
    plain_run = {"turn": -1, "kind": 0, "rounds": 1, "began": np.nan, "until": np.nan}
    return pd.DataFrame(plain_run, index=tasks.index)


class _Given(NamedTuple):
    arrival: Floats
    sigma: Floats
    deadline: Floats
    key: Floats
    wanted: NDArray[np.int64]
    labels: pd.Index


class _Run(NamedTuple):
    origin: float  # the times of `done` are counted from here
    deadline: Floats
    admitted: NDArray[np.bool_]
    missed: NDArray[np.bool_]
    done: np.recarray
    offer: float
    counts: NDArray[np.int64] | None


def _wanted(tasks: pd.DataFrame, policy: Policy, cluster: Cluster) -> NDArray[np.int64]:
    """Return the nodes that users ask for, 0 under policies that do not let them."""
    if policy.nodes != "user":
        return np.zeros(len(tasks), dtype=np.int64)
    if "user_nodes" not in tasks.columns:
        raise InputError(
            "nodes='user' (User Split) needs a column user_nodes; "
            "workload.user_split(tasks, cluster) draws one"
        )
    wanted = tasks["user_nodes"]
    return column(
        "user_nodes", wanted, 1, cluster.nodes, is_whole=True, row="task", labels=tasks.index
    )


def _checked(tasks: pd.DataFrame, policy: Policy, cluster: Cluster) -> _Given:
    """Return the columns that are simulated, or refuse the table."""
    labels = table("tasks", tasks, REQUIRED).index
    arrival = column(
        "arrival", tasks["arrival"], rule="finite and at least 0", row="task", labels=labels
    )
    sigma, deadline = (
        column(name, tasks[name], above=True, rule="finite and above 0", row="task", labels=labels)
        for name in REQUIRED[1:]
    )
    back = np.diff(arrival) < 0
    if back.any():
        task = label(tasks.index[int(np.argmax(back)) + 1])
        raise InputError(
            f"arrivals must not decrease, but task {task!r} arrives before the one above it; "
            "use tasks.sort_values('arrival', kind='stable')"
        )
    wanted = _wanted(tasks, policy, cluster)
    return _Given(arrival, sigma, deadline, _keys(tasks, policy), wanted, tasks.index)


def _keys(tasks: pd.DataFrame, policy: Policy) -> Floats:
    if not callable(policy.order):
        return np.arange(len(tasks), dtype=np.float64)
    rule = (
        f"order function {getattr(policy.order, '__name__', 'order')} must return one number "
        f"per task, shape ({len(tasks)},) without NaN"
    )
    try:
        keys = np.array(policy.order(tasks))
        keys = keys if keys.dtype.kind in "cmMSU" else keys.astype(np.float64)
    except Exception as error:  # whatever a user's function raises
        raise InputError(f"{rule}; got {type(error).__name__}: {error}") from error
    if keys.dtype != np.float64 or keys.shape != (len(tasks),) or np.isnan(keys).any():
        raise InputError(f"{rule}; got {keys.dtype} of shape {keys.shape}")
    # compared exactly: two infinite keys are a tie
    return np.unique(keys, return_inverse=True)[1].astype(np.float64)


def _places(due: Floats, span: float) -> Floats:
    """Number deadlines from the smallest up; those that are one instant share a number."""
    order = np.argsort(due, kind="stable")
    inner = due[order]
    apart = inner[1:] > latest_finish(inner[:-1], span)
    places = np.empty(len(due))
    places[order] = np.concatenate([[0], np.cumsum(apart)])[: len(due)]
    return places


def _rules(cluster: Cluster, policy: Policy, reading: Reading, negotiate: float) -> Rules:
    backfill = reading.backfill == "on" and policy.nodes != "all"
    strict = not (policy.overtake or backfill) or reading.mn_order == "strict"
    static = policy.order != "dc"
    return rules_of(cluster, policy.partition, policy.rounds, policy.nodes)._replace(
        edf=policy.order == "edf",
        dc=policy.order == "dc",
        strict=strict or policy.nodes == "all",
        in_line=policy.nodes in ("all", "fragment")
        or (static and (strict or policy.partition != "opr")),
        once=reading.order_when == "once",
        infinite_top=reading.dc_at_N == "inf",
        best=reading.an_nodes == "best",
        frozen=reading.mn_count == "frozen" and policy.nodes != "all",
        shared=reading.link == "shared",
        by_policy=reading.batch_order == "policy",
        commit=reading.batch_commit == "commit",
        test_first=reading.same_time == "test",
        negotiate=float(negotiate),
        last=reading.commit == "last",
        finish=reading.release == "finish",
        every=reading.scope == "all",
        skip_ties=reading.ties == "skip",
        single=reading.count_single == "yes",
    )  # fmt: skip


def _run(
    given: _Given, cluster: Cluster, policy: Policy, reading: Reading,
    negotiate: float, probe: int = -1,
) -> _Run:  # fmt: skip
    m, deadline = len(given.arrival), given.deadline.copy()
    table = table_for(cluster, policy.partition)
    rules = _rules(cluster, policy, reading, negotiate)
    rules = rules._replace(offers=negotiate > 0 or probe >= 0)
    origin = clock_origin(given.arrival)
    arrival, span = given.arrival - origin, span_of(given.sigma, table)
    q = np.empty(m, TASK).view(np.recarray)
    q.arrival, q.sigma, q.due, q.key = arrival, given.sigma, arrival + deadline, given.key
    q.wanted = given.wanted
    admitted, done, offer, counts = np.ones(m, dtype=bool), fresh_results(m), np.nan, None
    if policy.admission:
        state, members = fresh_state(m, rules, span), np.empty(m, dtype=np.int64)
        waits = rules.in_line and rules.strict
        run = functools.partial(events.run, None if waits else True, q, rules, state)
        offer = run(members, probe, deadline, admitted, done, table)
        counts = state.counts if waits else None
    else:
        waiting = np.empty(m, BLOCK).view(np.recarray)
        if rules.edf:
            q.key = _places(arrival + deadline, span)
        events.run_all_admitted(q, rules, waiting, reading.late == "drop", span, done, table)
    missed = np.zeros(m, dtype=bool)
    events.mark_missed(arrival, deadline, done["end"], admitted, missed)
    return _Run(origin, deadline, admitted, missed, done, offer, counts)


def simulate(
    tasks: pd.DataFrame,
    cluster: Cluster,
    policy: str | Policy,
    reading: Reading | None = None,
    negotiate: float = 0.0,
) -> Schedule:
    """Schedule divisible tasks as they arrive, under one policy and one reading.

    Parameters
    ----------
    tasks : DataFrame
        Columns arrival, sigma, deadline (relative), and user_nodes for User Split; index
        = task id. Sorted by arrival; tasks with one arrival time are one batch.
    cluster : Cluster
        Nodes and costs.
    policy : str or Policy
        A name of `POLICIES` or a row of one's own.
    reading : Reading, optional
        How ambiguous sentences are understood; default `Reading()`.
    negotiate : float
        0 for no negotiation; x >= 1: a refused task accepts the smallest admissible
        deadline if it is at most x times its own.

    Returns
    -------
    Schedule
        Tables of what was decided; `Schedule.check` verifies them.

    Raises
    ------
    InputError
        For tasks, a policy, a reading or a factor that cannot be used.

    References
    ----------
    Paper M, section 5 (MCDF and its schedulability test) and section 6.2 (rivals);
    paper I, section 4 (Figure 2), and its references [5], [6], [9].

    Examples
    --------
    >>> tasks = pd.DataFrame({"arrival": [0, 0, 0], "sigma": [6, 18, 6],
    ...                       "deadline": [10, 64, 16]})
    >>> s = simulate(tasks, Cluster(nodes=2, cms=1, cps=1), "FIFOMN")
    >>> s.tasks[["admitted", "start", "nodes", "completion"]].values.tolist()
    [[True, 0.0, 2, 8.0], [True, 8.0, 1, 44.0], [False, nan, 0, nan]]
    >>> s.offer(2).deadline
    20.0
    """
    instance("cluster", cluster, Cluster)
    reading = Reading() if reading is None else reading
    instance("reading", reading, Reading, "; see Reading.of(mapping)")
    rule = "0 (off) or a factor of at least 1"
    if number("negotiate", negotiate, rule=rule):
        number("negotiate", negotiate, 1, rule=rule)
    name, policy = policy_named(policy)
    check_partition(policy.partition, policy.rounds, cluster)
    given = _checked(tasks, policy, cluster)
    if policy.partition == "pieces" and reading.split == "piece":
        if negotiate > 0:
            raise InputError("negotiate needs whole tasks; use the reading split='all'")
        inner = simulate(pieces.cut(tasks), cluster, policy, replace(reading, split="all"))
        table = pieces.join(inner, given, pieces.owners(given.wanted))
        return Schedule(table, cluster, policy, name, reading, 0.0, given, parts=inner)
    run = _run(given, cluster, policy, reading, negotiate)
    done, start = run.done, run.origin + run.done["start"]
    columns = {
        "arrival": given.arrival, "sigma": given.sigma, "deadline": run.deadline,
        "admitted": run.admitted, "start": start, "nodes": done["nodes"],
        "estimate": run.origin + done["estimate"], "completion": run.origin + done["end"],
        "missed": run.missed,
    }  # fmt: skip
    table = pd.DataFrame(columns, index=tasks.index)
    runs = pd.DataFrame({k: done[k] for k in ("turn", "kind", "rounds")}, index=tasks.index)
    runs = runs.assign(began=done["start"], until=done["estimate"])
    schedule = (table, cluster, policy, name, reading, float(negotiate), given, runs)
    return Schedule(*schedule, run.counts)
