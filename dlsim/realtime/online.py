"""The admission test at one instant of a real cluster: who waits, when each node is released.

A simulation knows when its nodes are released because it planned it; a head node is told. So its
test is a run of the simulator's own loop in which all that wait, and a newcomer behind them,
arrive now, on nodes that are still busy (paper M, section 5; paper I, section 4).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.kernel import records
from dlsim.realtime import model
from dlsim.realtime.core import events, state
from dlsim.realtime.model import Cluster, Policy, Reading
from dlsim.realtime.partition import Floats, span_of, table_for
from dlsim.realtime.run import rules_of


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

    Deadlines, releases (0 or less: idle) and when the head node's link is free count from now on.
    """
    m, table = len(sigma), table_for(cluster, policy.partition, policy.rounds)
    rules, sizes = rules_of(cluster, policy, reading, offers=True), np.array(sigma, dtype=float)
    q, results, offers = records(m, state.TASK), state.fresh_results(m), records(m, state.OFFER)
    asked, admitted = np.array(deadline, dtype=float), np.ones(m, dtype=bool)
    q["sigma"], q["due"], q["key"] = sizes, asked, np.arange(m)
    offers["deadline"] = np.nan
    s = state.fresh_state(m + cluster.nodes, rules, span_of(sizes, table))
    later = np.sort([time for time in release if time > 0])
    head = s.head[0]
    head["idle"], head["stop"], head["link"] = cluster.nodes - len(later), len(later), max(link, 0)
    s.blocks["time"][: len(later)], s.blocks["nodes"][: len(later)] = later, 1
    passing = None if rules.in_line and rules.strict else True
    kept, members = records(m + 2, state.ENTRY), np.empty(m, dtype=np.int64)
    events.run(passing, offers, kept, q, rules, s, members, -1, asked, admitted, results, table)
    columns: Any = (np.ascontiguousarray(results[name]) for name in ("start", "estimate", "nodes"))
    start, estimate, nodes = columns
    return Plan(admitted, start, estimate, nodes, np.ascontiguousarray(offers["deadline"]))
