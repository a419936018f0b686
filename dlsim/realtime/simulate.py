"""One run: a policy under a reading as the kernel's rules, and the loop that decides.

`run_policy` simulates all arrivals. `plan_at_instant` tests tasks on nodes whose releases are
given, as the head node of a real cluster does.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import deadline_with_tolerance, time_offset, zero_recarray
from dlsim.errors import InputError
from dlsim.realtime import model
from dlsim.realtime.core import node_rules, orders, splits
from dlsim.realtime.core_versions import core_for
from dlsim.realtime.formulas import TimeTable, span_of, time_table
from dlsim.realtime.model import Cluster, Policy, Reading
from dlsim.realtime.schedule_arrays import TaskTable
from dlsim.realtime.user_rules import wrap_user_rules
from dlsim.validate import Floats, require_memory

#: Bytes that a run takes per task and per node, at least.
TASK_BYTES, NODE_BYTES = 130, 60


class Run(NamedTuple):
    """The results of a run, as arrays."""

    origin: float  # the times of `done` are counted from here
    deadline: Floats
    admitted: NDArray[np.bool_]
    done: Any  # records of RESULT
    offer: float
    counts: NDArray[np.int64] | None


def deadline_ranks(due: Floats, span: float) -> Floats:
    """Number deadlines from the smallest up; those that are one instant share a number."""
    order = np.argsort(due, kind="stable")
    inner = due[order]
    apart = inner[1:] > deadline_with_tolerance(inner[:-1], span)
    ranks = np.empty(len(due))
    ranks[order] = np.concatenate([[0], np.cumsum(apart)])[: len(due)]
    return ranks


def order_code(policy: Policy) -> int:
    """Return the code of the policy's order in `dlsim.realtime.core.orders`."""
    if policy.order_key is not None:
        return orders.USER_ORDER if policy.is_timed else orders.STATIC_ORDER
    return model.CORE_ORDERS[model.ORDERS[str(policy.order)].key]


def node_code(policy: Policy) -> int:
    """Return the code of the policy's rule for nodes in `dlsim.realtime.core.node_rules`."""
    if callable(policy.nodes):
        return node_rules.USER_NODES
    code = model.NODE_RULES[policy.nodes].code
    if code != node_rules.FEWEST:
        return code
    if callable(policy.partition):
        return node_rules.FEWEST_BY_SHARES
    return model.PARTITIONS[policy.partition].fewest


def partition_code(policy: Policy) -> int:
    """Return the code of the policy's partition in `dlsim.realtime.core.splits`."""
    if callable(policy.partition):
        return splits.BY_USER
    return model.PARTITIONS[policy.partition].code


def make_rules(
    cluster: Cluster,
    policy: Policy,
    reading: Reading,
    negotiate: float = 0.0,
    offers: bool = False,
    labels: Any = (),
) -> SimpleNamespace:
    """Return a policy under a reading on a cluster, by the names of `core.state.RULE_RECORD`.

    `labels` are those of the tasks; errors of a user's functions name them.
    """
    every = policy.nodes == "all"
    switches = reading.rules()
    may_pass = policy.overtake or reading.backfill == "on"
    switches["strict"] = switches["strict"] or every or not may_pass
    switches["frozen"] = switches["frozen"] and not every
    is_static = policy.order != "dc" and (switches["strict"] or policy.partition != "opr")
    in_line = policy.has_user_rules or policy.nodes in ("all", "fragment") or is_static
    order, node_rule, partition = order_code(policy), node_code(policy), partition_code(policy)
    nodes_at_arrival = node_rule in (node_rules.EVERY_NODE, node_rules.REQUESTED)
    fixed_nodes = nodes_at_arrival or switches["frozen"]
    is_timed = order in (orders.MCDF_ORDER, orders.USER_ORDER)
    in_rounds = partition in (splits.BY_UMR, splits.BY_UMR_IIT)
    in_pieces_on_one_link = partition == splits.BY_PIECES and switches["shared"]
    cms, cps, st, sc = (float(cost) for cost in (cluster.cms, cluster.cps, cluster.st, cluster.sc))
    return SimpleNamespace(
        cms=cms,
        cps=cps,
        st=st,
        sc=sc,
        send_part=cms / (cms + cps),
        negotiate=float(negotiate),
        nodes=int(cluster.nodes),
        order=order,
        node_rule=node_rule,
        partition=partition,
        rounds=0 if policy.rounds == "best" else int(policy.rounds),
        all_nodes=every,
        in_line=in_line,
        tested_in_line=in_line and switches["strict"] and not policy.has_user_rules,
        has_user_rules=policy.has_user_rules,
        is_timed=is_timed,
        in_rounds=in_rounds,
        from_one_instant=partition in (splits.BY_OPR, splits.BY_EQUAL, splits.BY_UMR),
        nodes_at_arrival=nodes_at_arrival,
        n_min_at_arrival=fixed_nodes or is_timed or in_rounds or switches["by_policy"],
        fixed_nodes=fixed_nodes,
        asks_user=node_rule in (node_rules.USER_NODES, node_rules.FEWEST_BY_SHARES),
        ends_by_chunks=(
            node_rule == node_rules.USER_NODES
            or partition == splits.BY_USER
            or in_pieces_on_one_link
        ),
        offers=offers,
        user=wrap_user_rules(policy, labels),
        **switches,
    )


def fits_opr_loop(rules: Any) -> bool:
    """Tell whether `dlsim.realtime.core.opr_loop.run_opr` decides all that the rules ask for."""
    has_plain_rules = (
        rules.partition == splits.BY_OPR
        and rules.node_rule == node_rules.FEWEST
        and rules.order in (orders.STATIC_ORDER, orders.DEADLINE_ORDER)
    )
    in_line = rules.tested_in_line and not rules.frozen and rules.st == 0
    has_batches = rules.by_policy or rules.commit or rules.test_first
    is_barred = has_batches or rules.last or rules.offers or rules.cps == 0
    return has_plain_rules and in_line and not is_barred


def run_admission_loop(
    core: SimpleNamespace,
    tasks: Any,
    deadline: Floats,
    admitted: NDArray[np.bool_],
    results: Any,
    offered_task: int,
    offers: Any,
    rules: Any,
    state: Any,
    table: TimeTable,
) -> float:
    """Admit or refuse tasks as they arrive; see `dlsim.realtime.core.loop.run_admission`."""
    offers["deadline"] = np.nan
    kept = zero_recarray(len(tasks) + 2 if len(offers) else 0, core.state.ENTRY)
    members, known = np.empty(len(tasks), np.int64), core.state.rules_record(rules)
    offer = core.loop.run_admission(
        tasks, deadline, admitted, results, offered_task, offers, kept, members, known, state, table
    )
    return float(offer)


def run_in_opr_loop(
    core: SimpleNamespace, tasks: Any, results: Any, rules: Any, span: float, table: TimeTable
) -> None:
    """Write the results of tasks under plain rules; see `dlsim.realtime.core.opr_loop.run_opr`."""
    count = len(tasks)
    lists = zero_recarray((3, 2 * min(count, rules.nodes) + 2), core.state.NODE_BLOCK)
    waiting, order = zero_recarray(count + 1, core.state.ENTRY), np.empty(count, dtype=np.int64)
    known = core.state.rules_record(rules)
    core.opr_loop.run_opr(tasks, results, known, span, table, lists, waiting, order)


def run_policy(
    given: TaskTable,
    cluster: Cluster,
    policy: Policy,
    reading: Reading,
    negotiate: float,
    offered_task: int = -1,
    count_iits: bool = False,
    engine: str = "auto",
) -> Run:
    """Simulate tasks under a policy.

    With an `offered_task`, the run ends with the test of that row, which gets an offer. Table 1 is
    counted for every policy only with `count_iits`: the loop that counts is slower than `opr_loop`.
    """
    count = len(given.arrival)
    what = f"a run of {count:,} tasks on {cluster.nodes:,} nodes"
    memory = TASK_BYTES * count + NODE_BYTES * cluster.nodes
    require_memory(what, memory, "simulate fewer tasks at once")
    table = time_table(cluster, policy.partition)
    makes_offers = negotiate > 0 or offered_task >= 0
    if policy.has_user_rules and makes_offers:
        what = model.describe_run(model.find_policy(policy)[0], reading)
        raise InputError(
            f"no offers are made by functions of a user ({what}): at which deadline they change"
            " their mind is not known; use a policy by name, or an order(tasks)"
        )
    rules = make_rules(cluster, policy, reading, negotiate, makes_offers, given.labels)
    origin, span = time_offset(given.arrival), span_of(given.sigma, table)
    arrival = given.arrival - origin if origin > 0 else given.arrival
    if policy.order_key is not None and span > 1:
        # ranks of a static order are no instants: however long tasks last, two are never one
        given = given._replace(key=given.key * span)
    with core_for(policy, engine, count) as core:
        tasks, results = zero_recarray(count, core.state.TASK), core.state.fresh_results(count)
        tasks["arrival"], tasks["sigma"] = arrival, given.sigma
        tasks["due"] = arrival + given.deadline
        tasks["rank"], tasks["requested"] = given.key, given.requested
        deadline, admitted = given.deadline.copy(), np.ones(count, dtype=bool)
        offer, counts = np.nan, None
        offers = zero_recarray(0, core.state.OFFER)
        if policy.admission and fits_opr_loop(rules) and not count_iits:
            run_in_opr_loop(core, tasks, results, rules, span, table)
            admitted = results["nodes"] > 0
        elif policy.admission:
            state = core.state.fresh_state(count, rules, span)
            offer = run_admission_loop(
                core, tasks, deadline, admitted, results, offered_task, offers, rules, state, table
            )
            if rules.tested_in_line:
                counts = state.counts[: core.state.IN_FORCE]
        else:
            waiting = zero_recarray(count, core.state.NODE_BLOCK)
            if rules.order == orders.DEADLINE_ORDER:
                tasks["rank"] = deadline_ranks(arrival + given.deadline, span)
            drop = reading.late == "drop"
            known = core.state.rules_record(rules)
            core.loop.run_all_admitted(tasks, known, waiting, drop, span, results, table)
    return Run(origin, deadline, admitted, results, offer, counts)


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
    rules, sizes = make_rules(cluster, policy, reading, offers=True), np.array(sigma, dtype=float)
    asked, admitted = np.array(deadline, dtype=float), np.ones(m, dtype=bool)
    with core_for(policy, engine, m) as core:
        state = core.state
        results = state.fresh_results(m)
        tasks, offers = zero_recarray(m, state.TASK), zero_recarray(m, state.OFFER)
        tasks["sigma"], tasks["due"], tasks["rank"] = sizes, asked, np.arange(m)
        s = state.fresh_state(m + cluster.nodes, rules, span_of(sizes, table))
        later = np.sort([time for time in release if time > 0])
        counters, busy = s.counters, len(later)
        counters.idle, counters.end_running = cluster.nodes - busy, busy
        counters.link_free = max(link, 0)
        s.running["time"][:busy], s.running["nodes"][:busy] = later, 1
        run_admission_loop(core, tasks, asked, admitted, results, -1, offers, rules, s, table)
    found = results["start"], results["estimate"], results["nodes"], offers["deadline"]
    return InstantPlan(admitted, *map(np.ascontiguousarray, found))
