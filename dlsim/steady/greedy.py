"""Heuristic G of paper S, section 5.1: the arrays of a platform, and runs of greedy steps.

One step is in `core/greedy.py`. LPRG allocates what LPR leaves by the same steps.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from dlsim.compiled import CORES
from dlsim.steady.core.greedy import (
    ALL_TURNS,
    EXHAUSTED,
    STEP_COUNT,
    GreedyNetwork,
    GreedyRules,
    GreedyTrace,
    Remaining,
)
from dlsim.steady.model import Floats, Ints, Platform, Reading, SolveOptions
from dlsim.steady.result import Allocation, scale_to_feasible

#: Work (A, K) and whole connections (K, K).
WorkAndConnections = tuple[Floats, Ints]

#: Turns of G times clusters that "auto" takes uncompiled, in about a second. Most platforms that
#: Table 1 draws with 20 clusters need fewer; thin connections may make it a million turns.
UNCOMPILED_TURNS = 200_000


def build_network(platform: Platform) -> GreedyNetwork:
    """Return the arrays of a platform that the greedy kernel takes."""
    tables, caps = platform.tables, platform.limits.shares
    caps_cluster = [cap.cluster for cap in caps]
    cluster = np.append(np.arange(platform.clusters), caps_cluster).astype(np.int64)
    # the row of a cluster's speed comes before those of the caps on parts of it
    by_cluster = np.argsort(cluster, kind="stable")
    is_limited = np.ones((len(cluster), platform.applications), dtype=bool)
    for row, cap in enumerate(caps, start=platform.clusters):
        is_limited[row] = np.isin(platform.origin, cap.origins)
    speed = np.append(platform.speed, [cap.share * platform.speed[cap.cluster] for cap in caps])
    route_of_place = np.repeat(np.arange(len(tables.pairs)), np.diff(tables.start))
    by_link = np.argsort(tables.link, kind="stable")
    links = np.arange(len(tables.capacity) + 1)
    return GreedyNetwork(
        origin=platform.origin,
        priority=np.array(platform.priorities),
        largest_priority=platform.priorities.max(axis=1),
        work_per_unit=np.array(platform.work),
        data_per_unit=np.array(platform.data),
        first_speed_row=np.searchsorted(cluster[by_cluster], np.arange(platform.clusters + 1)),
        is_limited=is_limited[by_cluster],
        connection_bandwidth=tables.bandwidth,
        route_number=tables.route.astype(np.int64),
        first_link=tables.start,
        route_links=tables.link.astype(np.int64),
        first_route=np.searchsorted(tables.link[by_link], links),
        link_routes=route_of_place[by_link],
        speed=speed[by_cluster],
        gateway=np.array(platform.gateway),
    )


def subtract_allocation(
    platform: Platform, network: GreedyNetwork, work: Floats, connections: Ints
) -> Remaining:
    """Return the resources that an allocation leaves of a platform."""
    tables, clusters = platform.tables, np.arange(platform.clusters)
    sent = work * network.data_per_unit[:, None] * (clusters != network.origin[:, None])
    gateway = network.gateway - sent.sum(axis=0)
    np.subtract.at(gateway, network.origin, sent.sum(axis=1))
    gateway[gateway <= EXHAUSTED * network.gateway] = 0.0
    cluster_of_row = np.repeat(clusters, np.diff(network.first_speed_row))
    done = (work.T * network.work_per_unit)[cluster_of_row]
    speed = network.speed - (network.is_limited * done).sum(axis=1)
    speed[speed <= EXHAUSTED * network.speed] = 0.0
    opened = connections[tuple(tables.pairs.T)].astype(float)
    connections_left = tables.capacity - tables.load_on_links(opened)
    return Remaining(
        speed=speed,
        gateway=gateway,
        connections_left=connections_left,
        full_links=tables.sum_over_links((connections_left < 1).astype(float)).astype(np.int64),
        work=work.copy(),
        connections=connections.astype(np.int64),
        share=np.zeros(platform.applications),
        is_active=network.largest_priority > 0,
        benefit=np.zeros(platform.clusters),
        counters=np.zeros(2, dtype=np.int64),
    )


class GreedyRun(NamedTuple):
    """The allocation of heuristic G, the number of its steps, and the first of them."""

    work: Floats
    connections: Ints
    steps: int
    trace: pd.DataFrame


def run_greedy(
    platform: Platform,
    reading: Reading,
    start: WorkAndConnections | None = None,
    traced: int = 0,
    engine: str = "auto",
) -> GreedyRun:
    """Allocate by greedy steps (5.1), from nothing or from an allocation.

    The first `traced` steps are returned as a table: application, cluster, amount. For `engine`
    see `dlsim.steady.solve`.
    """
    network = build_network(platform)
    work, connections = start or (
        np.zeros((platform.applications, platform.clusters)),
        np.zeros((platform.clusters, platform.clusters), dtype=np.int64),
    )
    remaining = subtract_allocation(platform, network, work, connections)
    if reading.lprg_start == "lpr":
        remaining.share[:] = (work * platform.inverse_priority).sum(axis=1)
    applications, clusters = np.zeros((2, traced), dtype=np.int64)
    trace = GreedyTrace(applications, clusters, np.zeros(traced))
    rules = GreedyRules(reading.local_amount == "prose", reading.stuck == "rest")
    last_turn, is_done = ALL_TURNS, False
    if engine == "auto":  # it continues with the compiled core
        last_turn = UNCOMPILED_TURNS // platform.clusters
    while not is_done:
        with CORES["steady"].at_speed(engine, platform.applications * platform.clusters) as core:
            is_done = core.greedy.allocate_greedily(network, remaining, rules, trace, last_turn)
        engine, last_turn = "compiled", ALL_TURNS
    steps = int(remaining.counters[STEP_COUNT])
    table = pd.DataFrame(trace._asdict()).head(steps)
    return GreedyRun(remaining.work, remaining.connections, steps, table)


def fill_greedily(
    platform: Platform,
    reading: Reading,
    start: WorkAndConnections | None = None,
    engine: str = "auto",
) -> WorkAndConnections:
    """Return the result of greedy steps, from nothing (G) or from an allocation (LPRG)."""
    run = run_greedy(platform, reading, start, engine=engine)
    return scale_to_feasible(platform, run.work, run.connections), run.connections


def find_g(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation of heuristic G (5.1)."""
    return Allocation(platform, *fill_greedily(platform, options.reading, engine=options.engine))
