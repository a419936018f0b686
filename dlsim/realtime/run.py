"""One run: a policy under a reading as the kernel's rules, and the loop that decides.

A simulation knows when its nodes are released because it planned it; the head node of a real
cluster is told (`plan_at_instant`).
"""

from collections import namedtuple
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import clock_origin, latest_finish
from dlsim.errors import InputError
from dlsim.realtime import model
from dlsim.realtime.core import node_rules, orders, splits
from dlsim.realtime.model import Cluster, Policy, Reading
from dlsim.realtime.partition import TimeTable, span_of, time_table
from dlsim.realtime.schedule_arrays import TaskTable
from dlsim.realtime.speeds import core_for
from dlsim.realtime.user_rules import raise_rule_error, wrap_user_rules
from dlsim.validate import Floats, require_memory

#: Bytes that a run takes per task and per node, at least.
TASK_BYTES, NODE_BYTES = 130, 60


class Run(NamedTuple):
    """What the kernel leaves of a run."""

    origin: float  # the times of `done` are counted from here
    deadline: Floats
    admitted: NDArray[np.bool_]
    done: dict[str, Any]  # by the names of RESULT, or as `run_in_opr_loop` has it
    offer: float
    counts: NDArray[np.int64] | None
    offers: NDArray[Any] | None  # to every task that was refused, by the names of OFFER


def deadline_ranks(due: Floats, span: float) -> Floats:
    """Number deadlines from the smallest up; those that are one instant share a number."""
    order = np.argsort(due, kind="stable")
    inner = due[order]
    apart = inner[1:] > latest_finish(inner[:-1], span)
    ranks = np.empty(len(due))
    ranks[order] = np.concatenate([[0], np.cumsum(apart)])[: len(due)]
    return ranks


def order_code(policy: Policy) -> int:
    """Return how the core orders tasks: by a key of the table, or by a rule of its own."""
    if policy.order_key is not None:
        return orders.USER_ORDER if policy.is_timed else orders.STATIC_ORDER
    return model.CORE_ORDERS[model.ORDERS[str(policy.order)].key]


def node_code(policy: Policy) -> int:
    """Return how the core finds a task's number of nodes."""
    if callable(policy.nodes):
        return node_rules.USER_NODES
    code = model.NODE_RULES[policy.nodes].code
    if code != node_rules.FEWEST:
        return code
    if callable(policy.partition):
        return node_rules.FEWEST_BY_SHARES
    return model.PARTITIONS[policy.partition].fewest


def partition_code(policy: Policy) -> int:
    """Return how the core splits a load."""
    if callable(policy.partition):
        return splits.BY_USER
    return model.PARTITIONS[policy.partition].code


def _switches(
    cluster: Cluster, policy: Policy, reading: Reading, negotiate: float = 0.0, offers: bool = False
) -> dict[str, Any]:
    """Return a policy under a reading as the core's switches; the reading's by their rules."""
    every = policy.nodes == "all"
    switches = reading.rules()
    may_pass = policy.overtake or reading.backfill == "on"
    switches["strict"] = switches["strict"] or every or not may_pass
    switches["frozen"] = switches["frozen"] and not every
    is_static = policy.order != "dc" and (switches["strict"] or policy.partition != "opr")
    in_line = policy.has_user_rules or policy.nodes in ("all", "fragment") or is_static
    known: dict[str, Any] = {name: float(cost) for name, cost in vars(cluster).items()}
    return known | {
        "nodes": int(cluster.nodes),
        "negotiate": float(negotiate),
        "order": order_code(policy),
        "node_rule": node_code(policy),
        "partition": partition_code(policy),
        "rounds": 0 if policy.rounds == "best" else int(policy.rounds),
        "all_nodes": every,
        "in_line": in_line,
        "offers": offers,
        "user": wrap_user_rules(policy),
        "has_user_rules": policy.has_user_rules,
        **switches,
    }


Rules: Any = namedtuple("Rules", _switches(Cluster(), model.POLICIES["MCDF"], Reading()))  # type: ignore[misc]


def make_rules(*given: Any, **offers: Any) -> Any:
    """Return a policy under a reading as the core knows it."""
    return Rules(**_switches(*given, **offers))


def fits_opr_loop(rules: Any) -> bool:
    """Tell whether `dlsim.realtime.core.opr_loop.run_opr` decides all that the rules ask for."""
    usual = rules.partition == splits.BY_OPR and rules.node_rule == node_rules.FEWEST
    usual = usual and rules.order in (orders.STATIC_ORDER, orders.DEADLINE_ORDER)
    in_line = is_served_in_line(rules) and not rules.frozen and rules.st == 0
    batches = rules.by_policy or rules.commit or rules.test_first
    return usual and in_line and not (batches or rules.last or rules.offers or rules.cps == 0)


def is_served_in_line(rules: Any) -> bool:
    """Tell whether no task passes another that waits."""
    return bool(rules.in_line and rules.strict and not rules.has_user_rules)


def run_admission_loop(
    core: SimpleNamespace, offers: Any, tasks: Any, rules: Any, s: Any, *more: Any
) -> float:
    """Admit or refuse tasks as they arrive; see `dlsim.realtime.core.loop.run_admission`."""
    overtaking, kept = None if is_served_in_line(rules) else True, None
    members = np.empty(len(tasks), np.int64)
    if offers is not None:
        offers["deadline"], kept = np.nan, core.state.records(len(tasks) + 2, core.state.ENTRY)
    return float(core.loop.run_admission(overtaking, offers, kept, tasks, rules, s, members, *more))


def run_in_opr_loop(
    core: SimpleNamespace,
    given: TaskTable,
    arrival: Floats,
    rules: Any,
    span: float,
    table: TimeTable,
) -> dict[str, Any]:
    """Return what became of tasks under plain rules, all as estimated, by the names of RESULT.

    The order of dispatch is a list of rows; kind and number of rounds are those of all tasks.
    """
    m = len(arrival)
    rooms = 3, 2 * min(m, rules.nodes) + 2
    waiting = core.state.records(m + 1, core.state.ENTRY, blank=False)
    (start, end), (nodes, order) = np.empty((2, m)), np.empty((2, m), dtype=np.int64)
    ran = core.opr_loop.run_opr(
        arrival,
        given.sigma,
        given.deadline,
        given.key,
        rules.order == orders.DEADLINE_ORDER,
        rules.cms,
        rules.shared,
        span,
        table.time_per_unit,
        table.setup_time,
        np.empty(rooms),
        np.empty(rooms, dtype=np.int64),
        waiting,
        order,
        start,
        end,
        nodes,
    )
    done = {"start": start, "estimate": end, "end": end, "nodes": nodes, "order": order[:ran]}
    return done | {"kind": splits.OPR, "rounds": 1}


def run_policy(
    given: TaskTable,
    cluster: Cluster,
    policy: Policy,
    reading: Reading,
    negotiate: float,
    probe: int = -1,
    count: bool = False,
    ask: Any = None,
    engine: str = "auto",
) -> Run:
    """Simulate tasks; with a `probe`, up to the test of that row, which gets an offer.

    With `ask`, a flag per task, the refused tasks among these get one. Table 1 is counted under
    plain rules only with `count`: the loop that counts is slower.
    """
    m, deadline = len(given.arrival), given.deadline.copy()
    what = f"a run of {m:,} tasks on {cluster.nodes:,} nodes"
    require_memory(
        what, TASK_BYTES * m + NODE_BYTES * cluster.nodes, "simulate fewer tasks at once"
    )
    table = time_table(cluster, policy.partition)
    offers_any = negotiate > 0 or probe >= 0 or ask is not None
    if policy.has_user_rules and offers_any:
        what = model.under(model.find_policy(policy)[0], reading)
        raise InputError(
            f"no offers are made by functions of a user ({what}): at which deadline they change"
            " their mind is not known; use a policy by name, or an order(tasks)"
        )
    rules = make_rules(cluster, policy, reading, negotiate, offers_any)
    origin = clock_origin(given.arrival)
    arrival = given.arrival - origin if origin > 0 else given.arrival
    span, offer, counts, offers = span_of(given.sigma, table), np.nan, None, None
    admitted = np.ones(m, dtype=bool)
    if policy.order_key is not None and span > 1:
        # ranks of a static order are no instants: however long tasks last, two are never one
        given = given._replace(key=given.key * span)
    with core_for(policy, engine, m) as core:
        if policy.admission and fits_opr_loop(rules) and not (count or ask is not None):
            done = run_in_opr_loop(core, given, arrival, rules, span, table)
            admitted = done["nodes"] > 0
        else:
            tasks, results = core.state.records(m, core.state.TASK), core.state.fresh_results(m)
            tasks["arrival"], tasks["sigma"], tasks["due"] = (
                arrival,
                given.sigma,
                arrival + deadline,
            )
            tasks["rank"], tasks["requested"] = given.key, given.wanted
            if policy.admission:
                s = core.state.fresh_state(m, rules, span)
                if ask is not None:
                    offers = core.state.records(m, core.state.OFFER)
                    offers["nodes"] = np.where(ask, 0, -1)
                offer = run_admission_loop(
                    core, offers, tasks, rules, s, probe, deadline, admitted, results, table
                )
                counts = s.counts[: core.state.IN_FORCE] if is_served_in_line(rules) else None
                if rules.has_user_rules:
                    raise_rule_error(rules.user, policy, given.labels, s.release)
            else:
                waiting, drop = core.state.records(m, core.state.NODE_BLOCK), reading.late == "drop"
                if rules.order == orders.DEADLINE_ORDER:
                    tasks["rank"] = deadline_ranks(arrival + deadline, span)
                core.loop.run_all_admitted(tasks, rules, waiting, drop, span, results, table)
            done = {
                name: np.ascontiguousarray(results[name]) for name in core.state.RESULT.names or ()
            }
    return Run(origin, deadline, admitted, done, offer, counts, offers)


class InstantPlan(NamedTuple):
    """What becomes of tasks that are planned at one instant; times count from it.

    Each is admitted if its deadline holds, those of all before it being kept; refused, it has no
    start (of its first node) and estimate (NaN), no nodes, and the smallest deadline that would
    hold as offer (NaN where none would).
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

    All that wait, and a newcomer behind them, arrive now in a run of the simulator's own loop
    (paper M, section 5; paper I, section 4). Deadlines, releases (0 or less: idle) and when the
    head node's link is free count from now on.
    """
    m, table = len(sigma), time_table(cluster, policy.partition)
    rules, sizes = make_rules(cluster, policy, reading, offers=True), np.array(sigma, dtype=float)
    asked, admitted = np.array(deadline, dtype=float), np.ones(m, dtype=bool)
    with core_for(policy, engine, m) as core:
        state = core.state
        results = state.fresh_results(m)
        tasks, offers = state.records(m, state.TASK), state.records(m, state.OFFER)
        tasks["sigma"], tasks["due"], tasks["rank"] = sizes, asked, np.arange(m)
        s = state.fresh_state(m + cluster.nodes, rules, span_of(sizes, table))
        later = np.sort([time for time in release if time > 0])
        counters, busy = s.counters[0], len(later)
        counters["idle"], counters["end_running"] = cluster.nodes - busy, busy
        counters["link_free"] = max(link, 0)
        s.running["time"][:busy], s.running["nodes"][:busy] = later, 1
        run_admission_loop(core, offers, tasks, rules, s, -1, asked, admitted, results, table)
    found = results["start"], results["estimate"], results["nodes"], offers["deadline"]
    return InstantPlan(admitted, *map(np.ascontiguousarray, found))
