"""The heuristics of paper S, section 5: greedy steps (G), and rounding the relaxed program.

LPR rounds its connections down, LPRG gives what is left by greedy steps, LPRR rounds one route
after another at random. Beyond the paper, LPRR may round several routes between two solutions.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from dlsim.steady.allocation import scale_to_feasible
from dlsim.steady.core.greedy import (
    ALL_TURNS,
    EXHAUSTED,
    STEP_COUNT,
    GreedyNetwork,
    GreedyTrace,
    Remaining,
)
from dlsim.steady.model import Floats, Ints, Platform, Reading
from dlsim.steady.relaxation import ReducedProgram, relaxed_program
from dlsim.steady.speeds import first_turns, greedy_core

#: Work (A, K) and whole connections (K, K).
WorkAndConnections = tuple[Floats, Ints]

#: A relaxed connection this close to a whole number is that number.
WHOLE_TOLERANCE = 1e-6
#: How far the present solution may pass a fixed value and still count as within it.
FIT_TOLERANCE = 1e-9
#: LPRR on more cells than that adds columns when they are needed: on all 2,500 cells of 50
#: clusters it takes 6 to 22 times as long, on those of 90 clusters 10 to 42 times.
SMALL_LP_CELLS = 2048


def build_network(platform: Platform) -> GreedyNetwork:
    """Return a platform as the arrays of the greedy kernel."""
    p, tables, caps = platform, platform.tables, platform.limits.shares
    caps_cluster = [cap.cluster for cap in caps]
    cluster = np.append(np.arange(p.clusters), caps_cluster).astype(np.int64)
    by_cluster = np.argsort(cluster, kind="stable")  # of each its speed, then caps on parts of it
    is_limited = np.ones((len(cluster), p.applications), dtype=bool)
    for row, cap in enumerate(caps, start=p.clusters):
        is_limited[row] = np.isin(p.origin, cap.origins)
    speed = np.append(p.speed, [cap.share * p.speed[cap.cluster] for cap in caps])
    route_of_place = np.repeat(np.arange(len(tables.pairs)), np.diff(tables.start))
    by_link = np.argsort(tables.link, kind="stable")
    links = np.arange(len(tables.capacity) + 1)
    return GreedyNetwork(
        origin=p.origin,
        priority=np.array(p.priorities),
        largest_priority=p.priorities.max(axis=1),
        work_per_unit=np.array(p.work),
        data_per_unit=np.array(p.data),
        first_speed_row=np.searchsorted(cluster[by_cluster], np.arange(p.clusters + 1)),
        is_limited=is_limited[by_cluster],
        connection_bandwidth=tables.bandwidth,
        route_number=tables.route.astype(np.int64),
        first_link=tables.start,
        route_links=tables.link.astype(np.int64),
        first_route=np.searchsorted(tables.link[by_link], links),
        link_routes=route_of_place[by_link],
        speed=speed[by_cluster],
        gateway=np.array(p.gateway),
    )


def subtract_allocation(
    platform: Platform, network: GreedyNetwork, work: Floats, connections: Ints
) -> Remaining:
    """Return what an allocation leaves of a platform."""
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
    """What heuristic G did, and its first steps."""

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
    p, network = platform, build_network(platform)
    work, connections = start or (
        np.zeros((p.applications, p.clusters)),
        np.zeros((p.clusters, p.clusters), dtype=np.int64),
    )
    remaining = subtract_allocation(p, network, work, connections)
    if reading.lprg_start == "lpr":
        remaining.share[:] = (work * p.inverse_priority).sum(axis=1)
    applications, clusters = np.zeros((2, traced), dtype=np.int64)
    trace = GreedyTrace(applications, clusters, np.zeros(traced))
    as_in_prose, takes_rest = reading.local_amount == "prose", reading.stuck == "rest"
    last_turn, is_done = first_turns(platform, engine), False
    while not is_done:
        with greedy_core(platform, engine) as core:
            is_done = core.greedy.allocate_greedily(
                network, remaining, trace, as_in_prose, takes_rest, last_turn
            )
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
    """Return what greedy steps allocate, from nothing (G) or from an allocation (LPRG)."""
    run = run_greedy(platform, reading, start, engine=engine)
    return scale_to_feasible(platform, run.work, run.connections), run.connections


def split_connections(usage: Floats) -> tuple[Floats, Floats]:
    """Split relaxed connections into whole numbers and the fractions that are left."""
    nearest = np.rint(usage)
    snapped = np.where(np.abs(usage - nearest) <= WHOLE_TOLERANCE, nearest, usage)
    whole_part = np.floor(snapped)
    return whole_part, snapped - whole_part


def round_connections_down(platform: Platform, work: Floats, usage: Floats) -> WorkAndConnections:
    r"""Round relaxed connections down (LPR, section 5.2.1).

    .. math:: \hat\beta = \lfloor\tilde\beta\rfloor,\quad
        \hat\alpha = \min\{\tilde\alpha, \hat\beta g / \delta\}
    """
    p = platform
    opened, _ = split_connections(usage)
    kept = np.ones((p.clusters, p.clusters))
    part = np.divide(opened, usage, out=np.ones(len(usage)), where=usage > opened)
    kept[tuple(p.tables.pairs.T)] = part
    kept_of_work = np.where(p.data[:, None] > 0, kept[p.origin], 1.0)
    return work * kept_of_work, p.tables.to_matrix(opened.astype(np.int64))


def round_down(platform: Platform, program: ReducedProgram) -> WorkAndConnections:
    """Return what rounding down leaves of the optimum that a program is at (LPR)."""
    work, connections = round_connections_down(platform, program.work, program.connections_used)
    return scale_to_feasible(platform, work, connections), connections


class RandomisedRounding:
    """A relaxed solution in which routes are fixed one after another (LPRR).

    Attributes
    ----------
    program : ReducedProgram
        With the routes fixed so far.
    order : list of (int, float, int)
        Route, relaxed connections and whole connections, as they were fixed.
    is_optimal : bool
        Whether the values fixed since the last solution leave it an optimum.
    """

    def __init__(self, platform: Platform, least_connections: bool) -> None:
        self.platform, self.least_connections = platform, least_connections
        solved = relaxed_program(platform, least_connections)
        if len(solved.cells) > SMALL_LP_CELLS:
            self.program = solved.narrow()
        else:
            self.program = ReducedProgram(platform)
            self.program.solve(least_connections)
        self.order: list[tuple[int, float, int]] = []
        self._fixed_values = np.zeros(len(self.program.fixed), dtype=np.int64)
        self._refresh()

    @property
    def work(self) -> Floats:
        """Return the work of the last solution."""
        return self.program.work

    @property
    def connections(self) -> Ints:
        """Return the connections fixed, shape (K, K)."""
        return self.platform.tables.to_matrix(self._fixed_values)

    def solve(self) -> None:
        """Solve the program again."""
        self.program.solve(self.least_connections)
        self._refresh()

    def _refresh(self) -> None:
        free_usage = np.where(self.program.fixed, 0.0, self.program.connections_used)
        self._free_load = self.platform.tables.load_on_links(free_usage)
        self.is_optimal = True

    def free_routes(self, used_above: float) -> Ints:
        """Return the routes that are not fixed and use more of a connection."""
        return np.flatnonzero(~self.program.fixed & (self.program.connections_used > used_above))

    def fix_route(self, route: int, wanted: int) -> None:
        """Fix a route to the connections wanted, or to as many as its links have left."""
        links, used = (
            self.platform.tables.links_of(route),
            float(self.program.connections_used[route]),
        )
        value = int(min(wanted, self.program.capacity_left[links].min()))
        self.program.fix_route(route, value)
        self._free_load[links] = self._free_load[links] - used
        fits = (self._free_load[links] <= self.program.capacity_left[links] + FIT_TOLERANCE).all()
        # a fixed value takes solutions away and adds none: where this one stays it stays optimal
        self.is_optimal &= bool(fits) and used <= value + FIT_TOLERANCE
        self._fixed_values[route] = value
        self.order.append((route, used, value))


def round_randomly(
    platform: Platform, rng: np.random.Generator, batch: int = 1, least_connections: bool = False
) -> RandomisedRounding:
    """Round the relaxed program route by route, at random (LPRR, section 5.2.3).

    Rounding ends when no route that is not fixed uses any connection; those get none. The program
    is solved again only where the values fixed since then cut its solution off.
    """
    rounding = RandomisedRounding(platform, least_connections)
    while True:
        candidates = rounding.free_routes(WHOLE_TOLERANCE)
        if not len(candidates):
            tiny = rounding.free_routes(0.0)
            if not len(tiny):
                return rounding
            for route in map(int, tiny):
                rounding.fix_route(route, 0)
        for _ in range(min(batch, len(candidates))):
            place = int(rng.integers(len(candidates)))
            route = int(candidates[place])
            candidates = np.delete(candidates, place)
            whole_part, fraction = split_connections(rounding.program.connections_used[route])
            rounding.fix_route(route, int(whole_part) + int(rng.random() < fraction))
        if not rounding.is_optimal:
            rounding.solve()
