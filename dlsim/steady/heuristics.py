"""The heuristics of paper S, section 5: greedy steps (G), and rounding the relaxed program.

LPR rounds the connections down (`round_down`), LPRG allocates what LPR leaves by greedy steps
(`fill_greedily`), LPRR rounds one route after another at random (`round_randomly`; it draws the
connections of one route in `draw_whole_connections`). All three start from one optimal vertex, that
of `relaxed_program`. Beyond the paper, LPRR may round several routes between two solutions. One
step of G is in `core/greedy.py`.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from dlsim.compiled import CORES
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

#: Work (A, K) and whole connections (K, K).
WorkAndConnections = tuple[Floats, Ints]

#: A relaxed connection this close to a whole number is that number.
WHOLE_TOLERANCE = 1e-6
#: How far the present solution may pass a fixed value and still count as within it.
FIT_TOLERANCE = 1e-9

#: Turns of G times clusters that "auto" takes uncompiled, in about a second; the platforms drawn by
#: Table 1 need at most 150,000 on 20 clusters, one with thin connections may need a million turns.
UNCOMPILED_TURNS = 200_000


def build_network(platform: Platform) -> GreedyNetwork:
    """Return the arrays of a platform that the greedy kernel takes."""
    tables, caps = platform.tables, platform.limits.shares
    caps_cluster = [cap.cluster for cap in caps]
    cluster = np.append(np.arange(platform.clusters), caps_cluster).astype(np.int64)
    by_cluster = np.argsort(cluster, kind="stable")  # of each its speed, then caps on parts of it
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
    as_in_prose, takes_rest = reading.local_amount == "prose", reading.stuck == "rest"
    last_turn, is_done = ALL_TURNS, False
    if engine == "auto":  # it continues with the compiled core
        last_turn = UNCOMPILED_TURNS // platform.clusters
    while not is_done:
        with CORES["steady"].at_speed(engine, platform.applications * platform.clusters) as core:
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
    """Return the result of greedy steps, from nothing (G) or from an allocation (LPRG)."""
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
    opened, _ = split_connections(usage)
    kept = np.ones((platform.clusters, platform.clusters))
    part = np.divide(opened, usage, out=np.ones(len(usage)), where=usage > opened)
    kept[tuple(platform.tables.pairs.T)] = part
    kept_of_work = np.where(platform.data[:, None] > 0, kept[platform.origin], 1.0)
    return work * kept_of_work, platform.tables.to_matrix(opened.astype(np.int64))


def round_down(platform: Platform, program: ReducedProgram) -> WorkAndConnections:
    """Return the optimum of a solved program with its connections rounded down (LPR)."""
    work, connections = round_connections_down(platform, program.work, program.connections_used)
    return scale_to_feasible(platform, work, connections), connections


class RandomisedRounding:
    """A relaxed solution in which routes are fixed one after another (LPRR).

    The first solution is that of `relaxed_program`, at every size of platform. Every further
    program is solved from the basis of the last one, and has few columns (`ReducedProgram.narrow`).

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
        self.program = relaxed_program(platform, least_connections).narrow()
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
        links = self.platform.tables.links_of(route)
        used = float(self.program.connections_used[route])
        value = int(min(wanted, self.program.capacity_left[links].min()))
        self.program.fix_route(route, value)
        self._free_load[links] = self._free_load[links] - used
        fits = (self._free_load[links] <= self.program.capacity_left[links] + FIT_TOLERANCE).all()
        # fixing a value only excludes solutions: one that is not excluded stays optimal
        self.is_optimal &= bool(fits) and used <= value + FIT_TOLERANCE
        self._fixed_values[route] = value
        self.order.append((route, used, value))


def draw_whole_connections(usage: float, rng: np.random.Generator) -> int:
    r"""Return the whole connections of one route: the rounding of LPRR (section 5.2.3).

    Relaxed connections are rounded up with the probability of their fraction, else down:
    :math:`\hat\beta = \lfloor\tilde\beta\rfloor + 1` with probability
    :math:`\tilde\beta - \lfloor\tilde\beta\rfloor`. One number is drawn.
    """
    whole_part, fraction = split_connections(np.asarray(usage))
    return int(whole_part) + int(rng.random() < fraction)


def round_randomly(
    platform: Platform, rng: np.random.Generator, batch: int = 1, least_connections: bool = False
) -> RandomisedRounding:
    """Round the relaxed program route by route, at random (LPRR, section 5.2.3).

    One route after another is drawn from those that are not fixed and use connections, and is
    fixed at the number of `draw_whole_connections`, as far as its links have connections left.
    Rounding ends when no route that is not fixed uses any connection; those routes get none. The
    program is solved again only where the values fixed since its last solution exclude it.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    rng : Generator
        Draws the routes and the rounding.
    batch : int
        Most routes that are fixed between two solutions; 1 in the paper.
    least_connections : bool
        Whether each solution is an optimum with the fewest connections.
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
            usage = float(rounding.program.connections_used[route])
            rounding.fix_route(route, draw_whole_connections(usage, rng))
        if not rounding.is_optimal:
            rounding.solve()
