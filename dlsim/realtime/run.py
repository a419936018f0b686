"""One run: a policy under a reading as the kernel's rules, and the loop that decides.

A simulation knows when its nodes are released because it planned it; the head node of a real
cluster is told (`plan`).
"""

from collections import namedtuple
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import clock_origin, latest_finish, records
from dlsim.errors import InputError
from dlsim.given import Floats, need_memory
from dlsim.realtime import model
from dlsim.realtime.core import events, state
from dlsim.realtime.core.partition import OPR
from dlsim.realtime.core.state import BY_OWN
from dlsim.realtime.evidence import Given
from dlsim.realtime.model import Cluster, Policy, Reading
from dlsim.realtime.own import blame, own_rules
from dlsim.realtime.partition import Table, span_of, table_for

#: Bytes that a run takes per task and per node, at least.
TASK_BYTES, NODE_BYTES = 130, 60


class Run(NamedTuple):
    """What the kernel leaves of a run."""

    origin: float  # the times of `done` are counted from here
    deadline: Floats
    admitted: NDArray[np.bool_]
    done: dict[str, Any]  # by the names of RESULT, or as `_run_plain` has it
    offer: float
    counts: NDArray[np.int64] | None
    offers: NDArray[Any] | None  # to every task that was refused, by the names of OFFER


def places(due: Floats, span: float) -> Floats:
    """Number deadlines from the smallest up; those that are one instant share a number."""
    order = np.argsort(due, kind="stable")
    inner = due[order]
    apart = inner[1:] > latest_finish(inner[:-1], span)
    places = np.empty(len(due))
    places[order] = np.concatenate([[0], np.cumsum(apart)])[: len(due)]
    return places


def _switches(
    cluster: Cluster, policy: Policy, reading: Reading, negotiate: float = 0.0, offers: bool = False
) -> dict[str, Any]:
    """Return a policy under a reading as the planner's switches; the reading's by their rules."""
    backfill, every = reading.backfill == "on", policy.nodes == "all"
    switches = reading.rules()
    strict = switches["strict"] or every or not (policy.overtake or backfill)
    switches |= {"strict": strict, "frozen": switches["frozen"] and not every}
    part, method = BY_OWN, state.FEWEST
    if not callable(policy.partition):
        part = list(model.PARTITIONS).index(policy.partition)
        method = state.CAPACITY if policy.partition == "exact-n" else method
        method = state.SCAN if policy.partition in model.IN_ROUNDS else method
    takes_turns = policy.order != "dc" and (strict or policy.partition != "opr")
    known = {name: float(cost) for name, cost in vars(cluster).items()}
    known |= {"nodes": int(cluster.nodes), "negotiate": float(negotiate)}
    return known | {
        "edf": policy.order == "edf", "dc": policy.order == "dc", "all_nodes": every, "part": part,
        "in_line": policy.is_own or policy.nodes in ("all", "fragment") or takes_turns,
        "method": state.FRAGMENT if policy.nodes == "fragment" else method,
        "rounds": 0 if policy.rounds == "best" else int(policy.rounds),
        "offers": offers, "own": own_rules(policy), "mine": policy.is_own, "timed": policy.is_timed,
        "counts": callable(policy.nodes), **switches,
    }  # fmt: skip


Rules: Any = namedtuple("Rules", _switches(Cluster(), model.POLICIES["MCDF"], Reading()))  # type: ignore[misc]


def rules_of(*given: Any, **offers: Any) -> Any:
    """Return a policy under a reading as the planner knows it."""
    return Rules(**_switches(*given, **offers))


def is_plain(rules: Any) -> bool:
    """Tell whether `dlsim.realtime.core.events.run_opr` decides all that the rules ask for."""
    in_line = rules.in_line and rules.strict and not (rules.all_nodes or rules.frozen)
    usual = rules.part == state.BY_OPR and rules.method == state.FEWEST and rules.st == 0
    batches = rules.by_policy or rules.commit or rules.test_first
    other = rules.mine or rules.last or rules.offers or rules.cps == 0
    return in_line and usual and not (batches or other)


def _waits(rules: Any) -> bool:
    """Tell whether nobody passes another in line."""
    return bool(rules.in_line and rules.strict and not rules.mine)


def _test(offers: Any, q: Any, rules: Any, s: Any, *more: Any) -> float:
    """Admit tasks or refuse them as they arrive; see `dlsim.realtime.core.events.run`."""
    passing, kept, members = None if _waits(rules) else True, None, np.empty(len(q), np.int64)
    if offers is not None:
        offers["deadline"], kept = np.nan, records(len(q) + 2, state.ENTRY)
    return float(events.run(passing, offers, kept, q, rules, s, members, *more))


def _run_plain(
    given: Given, arrival: Floats, rules: Any, span: float, table: Table
) -> dict[str, Any]:
    """Return what became of tasks under plain rules, all as estimated, by the names of RESULT.

    The order of dispatch is a list of rows; kind and number of rounds are those of all tasks.
    """
    m = len(arrival)
    rooms = 3, 2 * min(m, rules.nodes) + 2
    (start, end), (nodes, order) = np.empty((2, m)), np.empty((2, m), dtype=np.int64)
    ran = events.run_opr(
        arrival, given.sigma, given.deadline, given.key, rules.edf, rules.cms, rules.shared, span,
        table.unit, table.fixed, np.empty(rooms), np.empty(rooms, dtype=np.int64),
        records(m + 1, state.ENTRY, blank=False), order, start, end, nodes,
    )  # fmt: skip
    done = {"start": start, "estimate": end, "end": end, "nodes": nodes, "order": order[:ran]}
    return done | {"kind": OPR, "rounds": 1}


def run_policy(
    given: Given, cluster: Cluster, policy: Policy, reading: Reading,
    negotiate: float, probe: int = -1, count: bool = False, ask: Any = None,
) -> Run:  # fmt: skip
    """Simulate tasks; with a `probe`, up to the test of that row, which gets an offer.

    With `ask`, a flag per task, those of them who are refused get one.
    Under plain rules nothing is counted unless asked for: the loop that counts is slower.
    """
    m, deadline = len(given.arrival), given.deadline.copy()
    what = f"a run of {m:,} tasks on {cluster.nodes:,} nodes"
    need_memory(what, TASK_BYTES * m + NODE_BYTES * cluster.nodes, "simulate fewer tasks at once")
    table = table_for(cluster, policy.partition)
    offers_any = negotiate > 0 or probe >= 0 or ask is not None
    if policy.is_own and offers_any:
        what = model.under(model.policy_named(policy)[0], reading)
        raise InputError(
            f"no offers are made by functions of one's own ({what}): at which deadline they change"
            " their mind is not known; use a policy by name, or an order(tasks)"
        )
    rules = rules_of(cluster, policy, reading, negotiate, offers_any)
    origin = clock_origin(given.arrival)
    arrival = given.arrival - origin if origin > 0 else given.arrival
    span, offer, counts, offers = span_of(given.sigma, table), np.nan, None, None
    admitted = np.ones(m, dtype=bool)
    if callable(policy.order) and span > 1:
        # ranks of a static order are no instants: however long tasks last, two are never one
        given = given._replace(key=given.key * span)
    if policy.admission and is_plain(rules) and not (count or ask is not None):
        done = _run_plain(given, arrival, rules, span, table)
        admitted = done["nodes"] > 0
    else:
        q, results = records(m, state.TASK), state.fresh_results(m)
        q["arrival"], q["sigma"], q["due"] = arrival, given.sigma, arrival + deadline
        q["key"], q["wanted"] = given.key, given.wanted
        if policy.admission:
            s = state.fresh_state(m, rules, span)
            if ask is not None:
                offers = records(m, state.OFFER)
                offers["nodes"] = np.where(ask, 0, -1)
            offer = _test(offers, q, rules, s, probe, deadline, admitted, results, table)
            counts = s.counts[: state.PLANNED] if _waits(rules) else None
            if rules.mine:
                blame(rules.own, policy, given.labels, s.release)
        else:
            waiting, drop = records(m, state.BLOCK), reading.late == "drop"
            if rules.edf:
                q["key"] = places(arrival + deadline, span)
            events.run_all_admitted(q, rules, waiting, drop, span, results, table)
        done = {name: np.ascontiguousarray(results[name]) for name in state.RESULT.names or ()}
    return Run(origin, deadline, admitted, done, offer, counts, offers)


class Plan(NamedTuple):
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


def need_online(policy: Policy, cluster: Cluster) -> None:
    """Refuse a policy that makes no promise, or needs more than a size and a deadline."""
    if not policy.admission or callable(policy.order) or policy.is_own or policy.nodes == "user":
        raise InputError(
            "a promise needs admission control, an order of the papers and nodes that the policy "
            f"chooses; got {policy}: use EDF-OPR-MN, EDF-DLT or EDF-EXACT-N"
        )
    model.check_partition(policy.partition, policy.rounds, cluster)


def plan(
    sigma: Sequence[float], deadline: Sequence[float], release: Sequence[float], cluster: Cluster,
    policy: Policy, reading: Reading, link: float = 0.0,
) -> Plan:  # fmt: skip
    """Test tasks one after another at one instant, on N nodes that may still be busy.

    All that wait, and a newcomer behind them, arrive now in a run of the simulator's own loop
    (paper M, section 5; paper I, section 4). Deadlines, releases (0 or less: idle) and when the
    head node's link is free count from now on.
    """
    m, table = len(sigma), table_for(cluster, policy.partition)
    rules, sizes = rules_of(cluster, policy, reading, offers=True), np.array(sigma, dtype=float)
    q, results, offers = records(m, state.TASK), state.fresh_results(m), records(m, state.OFFER)
    asked, admitted = np.array(deadline, dtype=float), np.ones(m, dtype=bool)
    q["sigma"], q["due"], q["key"] = sizes, asked, np.arange(m)
    s = state.fresh_state(m + cluster.nodes, rules, span_of(sizes, table))
    later = np.sort([time for time in release if time > 0])
    head = s.head[0]
    head["idle"], head["stop"], head["link"] = cluster.nodes - len(later), len(later), max(link, 0)
    s.blocks["time"][: len(later)], s.blocks["nodes"][: len(later)] = later, 1
    _test(offers, q, rules, s, -1, asked, admitted, results, table)
    found = results["start"], results["estimate"], results["nodes"], offers["deadline"]
    return Plan(admitted, *map(np.ascontiguousarray, found))
