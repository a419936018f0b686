"""Simulate real-time divisible loads on one cluster (papers M and I).

`simulate` checks its input and `run_policy` simulates all arrivals. `plan_at_instant` tests tasks
on nodes whose releases are given, as the head node of a real cluster does.
"""

import functools
from collections.abc import Collection, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.compiled import deadline_with_tolerance, time_offset, zero_recarray
from dlsim.errors import InputError
from dlsim.realtime import model
from dlsim.realtime.core import nodes as node_rules
from dlsim.realtime.core import orders, splits
from dlsim.realtime.formulas import TimeTable, span_of, time_table
from dlsim.realtime.model import POLICIES, Cluster, Policy, Reading, TaskTable
from dlsim.realtime.result import Run, Schedule
from dlsim.realtime.split import Rules, core_for
from dlsim.record import find_record
from dlsim.user_code import calling_user_code
from dlsim.validate import (
    Floats,
    column,
    instance,
    number,
    or_default,
    refuse_unknown_columns,
    require_memory,
    require_table,
)

#: Bytes that a run takes per task and per node, at least.
TASK_BYTES, NODE_BYTES = 130, 60


def simulate(
    tasks: pd.DataFrame,
    cluster: Cluster,
    policy: str | Policy,
    reading: Reading | None = None,
    engine: str = "auto",
    *,
    negotiate: float = 0.0,
    ignore: Collection[str] = (),
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
        A name of `POLICIES`, a `Policy` of your own, or its name as ``FILE.py:name`` or
        ``module:name``.
    reading : Reading, optional
        How ambiguous sentences are understood; default `Reading()`.
    engine : {"auto", "compiled", "python"}
        The same decisions at two speeds: compiled, which takes some 20 s once per version, or
        uncompiled, as "auto" takes small work and functions of a user.
    negotiate : float
        0 for no negotiation; x >= 1: a refused task accepts the smallest admissible
        deadline if it is at most x times its own.
    ignore : collection of str
        More columns of `tasks`, which dlsim does not read; an order(tasks) of your own sees them.

    Returns
    -------
    Schedule
        Tables of what was decided; `Schedule.check` verifies them.

    Raises
    ------
    InputError
        For tasks, a policy, a reading or a factor that cannot be used, and for a column of `tasks`
        that is neither known nor in `ignore`.

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
    reading = or_default("reading", reading, Reading, "; see Reading.from_switches(mapping)")
    rule = "0 (off) or a factor of at least 1"
    if number("negotiate", negotiate, rule=rule):
        number("negotiate", negotiate, 1, rule=rule)
    name, chosen = find_record("policy", policy, POLICIES)
    model.check_partition(chosen.partition, chosen.rounds, cluster)
    given = _read_tasks(tasks, chosen, cluster, ignore)
    about: dict[str, Any] = {"cluster": cluster, "policy": chosen, "name": name, "reading": reading}
    if chosen.partition == "pieces" and reading.split == "piece":
        if negotiate > 0:
            raise InputError("negotiate needs whole tasks; use the reading split='all'")
        pieces = tasks.iloc[given.owners].reset_index(drop=True)
        pieces = pieces.assign(sigma=pieces["sigma"] / pieces["user_nodes"], user_nodes=1)
        whole = replace(reading, split="all")
        inner = simulate(pieces, cluster, chosen, whole, engine, ignore=ignore)
        return Schedule.merge_pieces(inner, given, **about)
    setup = RunSetup(given, cluster, chosen, reading, float(negotiate), engine)
    about.update(negotiate=setup.negotiate, rerun=functools.partial(run_policy, setup))
    return Schedule.from_run(run_policy(setup), given, **about)


def _read_tasks(
    tasks: pd.DataFrame, policy: Policy, cluster: Cluster, ignore: Collection[str]
) -> TaskTable:
    """Return the columns that are simulated, or refuse the table."""
    arrival, sigma, deadline = model.sorted_columns(tasks)
    known_columns = (*model.TASK_COLUMNS, "user_nodes")
    refuse_unknown_columns("tasks", tasks.columns, known_columns, ignore)
    wanted = np.zeros(len(tasks), dtype=np.int64)
    if policy.nodes == "user":
        if "user_nodes" not in tasks.columns:
            raise InputError(
                "nodes='user' (User Split) needs a column user_nodes; "
                "workload.user_split(tasks, cluster) draws one"
            )
        known: Any = {"is_whole": True, "row": "task", "labels": tasks.index}
        counts = require_table("tasks", tasks, ["user_nodes"])["user_nodes"]
        wanted = column("user_nodes", counts, 1, cluster.nodes, **known)
    return TaskTable(arrival, sigma, deadline, _static_ranks(tasks, policy), wanted, tasks.index)


def _static_ranks(tasks: pd.DataFrame, policy: Policy) -> Floats:
    """Return the rank of every task in a static order; without one, its arrival."""
    if policy.order_key is None or policy.is_timed:
        return tasks["arrival"].to_numpy(dtype=np.float64)
    rule = (
        f"order function {getattr(policy.order_key, '__name__', 'order')} must return one number "
        f"per task, shape ({len(tasks)},) without NaN"
    )
    with calling_user_code(rule):
        keys = np.array(policy.order_key(tasks))
        keys = keys if keys.dtype.kind in "cmMSU" else keys.astype(np.float64)
    if keys.dtype != np.float64 or keys.shape != (len(tasks),) or np.isnan(keys).any():
        raise InputError(f"{rule}; got {keys.dtype} of shape {keys.shape}")
    # compared exactly: two infinite keys are a tie
    return np.unique(keys, return_inverse=True)[1].astype(np.float64)


# --- one run


class RunSetup(NamedTuple):
    """What a run is given."""

    tasks: TaskTable
    cluster: Cluster
    policy: Policy
    reading: Reading
    negotiate: float
    engine: str


def run_policy(setup: RunSetup, offered_task: int = -1, count_iits: bool = False) -> Run:
    """Simulate tasks under a policy.

    With an `offered_task`, the run ends with the test of that row, which gets an offer. Table 1 is
    counted for every policy only with `count_iits`: the loop that counts is slower than `opr_loop`.
    """
    given, cluster, policy = setup.tasks, setup.cluster, setup.policy
    count = len(given.arrival)
    what = f"a run of {count:,} tasks on {cluster.nodes:,} nodes"
    memory = TASK_BYTES * count + NODE_BYTES * cluster.nodes
    require_memory(what, memory, "simulate fewer tasks at once")
    makes_offers = setup.negotiate > 0 or offered_task >= 0
    if policy.has_user_rules and makes_offers:
        what = model.describe_run(policy.name, setup.reading)
        raise InputError(
            f"no offers are made by functions of a user ({what}): at which deadline they change"
            " their mind is not known; use a policy by name, or an order(tasks)"
        )
    table = time_table(cluster, policy.partition)
    rules = Rules(cluster, policy, setup.reading, setup.negotiate, makes_offers, given.labels)
    origin, span = time_offset(given.arrival), span_of(given.sigma, table)
    with core_for(policy, setup.engine, count) as core:
        tasks = _task_records(core, setup, origin, span)
        run = _fresh_run(core, given.deadline, origin)
        if policy.admission and fits_opr_loop(rules) and not count_iits:
            _run_in_opr_loop(core, tasks, run, rules, span, table)
            return run._replace(admitted=run.done["nodes"] > 0)
        state = core.state.fresh_state(tasks, rules, table, span)
        if not policy.admission:
            waiting = zero_recarray(count, core.state.NODE_BLOCK)
            drop = setup.reading.late == "drop"
            if rules.order == orders.DEADLINE_ORDER:
                tasks["rank"] = deadline_ranks(tasks["due"], span)
            core.loop.run_all_admitted(waiting, drop, run.done, state)
            return run
        offer = run_admission_loop(core, run, state, offered_task)
        counts = state.counts[: core.state.IN_FORCE] if rules.tested_in_line else None
    return run._replace(offer=offer, counts=counts)


def _task_records(core: SimpleNamespace, setup: RunSetup, origin: float, span: float) -> Any:
    """Return the tasks as records of the core, on a clock that begins at `origin`."""
    given, key = setup.tasks, setup.tasks.key
    arrival = given.arrival - origin if origin > 0 else given.arrival
    if setup.policy.order_key is not None and span > 1:
        # ranks of a static order are no instants: however long tasks last, two are never one
        key = key * span
    due = arrival + given.deadline
    return core.orders.fresh_tasks(arrival, given.sigma, due, key, given.requested)


def _fresh_run(core: SimpleNamespace, deadline: Floats, origin: float) -> Run:
    """Return the results of a run before its first test: none is refused, none has run."""
    count = len(deadline)
    admitted, offers = np.ones(count, dtype=bool), np.empty(0)
    return Run(origin, deadline.copy(), admitted, core.state.fresh_results(count), offers)


def fits_opr_loop(rules: Any) -> bool:
    """Tell whether `dlsim.realtime.core.opr_loop.run_opr` decides all that the rules ask for."""
    needed = (
        rules.partition == splits.BY_OPR,
        rules.node_rule == node_rules.FEWEST,
        rules.order in (orders.STATIC_ORDER, orders.DEADLINE_ORDER),
        rules.tested_in_line,
        rules.st == 0,
        rules.cps > 0,
    )
    barred = (
        rules.frozen,
        rules.by_policy,
        rules.commit,
        rules.test_first,
        rules.last,
        rules.offers,
    )
    return all(needed) and not any(barred)


def run_admission_loop(
    core: SimpleNamespace, run: Run, state: Any, offered_task: int = -1
) -> float:
    """Admit or refuse tasks as they arrive; see `dlsim.realtime.core.loop.run_admission`."""
    run.offers[:] = np.nan
    given = run.deadline, run.admitted, run.done, offered_task, run.offers, state
    return float(core.loop.run_admission(*given))


def _run_in_opr_loop(
    core: SimpleNamespace, tasks: Any, run: Run, rules: Any, span: float, table: TimeTable
) -> None:
    """Write the results of tasks under plain rules; see `dlsim.realtime.core.opr_loop.run_opr`."""
    count = len(tasks)
    lists = zero_recarray((3, 2 * min(count, rules.nodes) + 2), core.state.NODE_BLOCK)
    waiting, order = zero_recarray(count + 1, core.state.ENTRY), np.empty(count, dtype=np.int64)
    known = core.state.rules_record(rules)
    core.opr_loop.run_opr(tasks, run.done, known, span, table, lists, waiting, order)


def deadline_ranks(due: Floats, span: float) -> Floats:
    """Number deadlines from the smallest up; those that are one instant share a number."""
    order = np.argsort(due, kind="stable")
    inner = due[order]
    apart = inner[1:] > deadline_with_tolerance(inner[:-1], span)
    ranks = np.empty(len(due))
    ranks[order] = np.concatenate([[0], np.cumsum(apart)])[: len(due)]
    return ranks


# --- one instant


class InstantPlan(NamedTuple):
    """The plan of tasks that are tested at one instant; times count from it.

    A task is admitted if it meets its deadline and all tasks admitted before it still meet theirs.
    `start` is that of its first node. A refused task has NaN as start and estimate, 0 nodes, and as
    `offer` the smallest deadline that it would meet (NaN if there is none).
    """

    admitted: NDArray[np.bool_]
    start: Floats
    estimate: Floats
    nodes: NDArray[np.int64]
    offer: Floats


def require_online(policy: Policy, cluster: Cluster) -> None:
    """Refuse a policy that makes no promise, or needs more than a size and a deadline."""
    if (
        not policy.admission
        or policy.order_key is not None
        or policy.has_user_rules
        or policy.nodes == "user"
    ):
        raise InputError(
            "a promise needs admission control, an order of the papers and nodes that the policy "
            f"chooses; got {policy}: use EDF-OPR-MN, EDF-DLT or EDF-EXACT-N"
        )
    model.check_partition(policy.partition, policy.rounds, cluster)


def plan_at_instant(
    sigma: Sequence[float],
    deadline: Sequence[float],
    release: Sequence[float],
    cluster: Cluster,
    policy: Policy,
    reading: Reading,
    link: float = 0.0,
    engine: str = "auto",
) -> InstantPlan:
    """Test tasks one after another at one instant, on N nodes that may still be busy.

    All waiting tasks, and a newcomer behind them, arrive now in a run of the simulator's own loop
    (paper M, section 5; paper I, section 4). Deadlines, releases (0 or less: the node is idle) and
    the time at which the head node's `link` becomes free count from now.
    """
    m, table = len(sigma), time_table(cluster, policy.partition)
    rules, sizes = Rules(cluster, policy, reading, offers=True), np.array(sigma, dtype=float)
    asked = np.array(deadline, dtype=float)
    with core_for(policy, engine, m) as core:
        run = _fresh_run(core, asked, 0.0)._replace(offers=np.empty(m))
        tasks = core.orders.fresh_tasks(0.0, sizes, asked, np.arange(m), 0)
        s = core.state.fresh_state(tasks, rules, table, span_of(sizes, table), cluster.nodes)
        later = np.sort([time for time in release if time > 0])
        counters, busy = s.counters, len(later)
        counters.idle, counters.end_running = cluster.nodes - busy, busy
        counters.link_free = max(link, 0)
        running = s.running[core.state.RUNNING, :busy]
        running.time, running.nodes = later, 1
        run_admission_loop(core, run, s)
    found = run.done["start"], run.done["estimate"], run.done["nodes"], run.offers
    return InstantPlan(run.admitted, *map(np.ascontiguousarray, found))
