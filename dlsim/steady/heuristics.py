"""The heuristics of paper S, section 5.

G starts from nothing (5.1). LPR, LPRG and LPRR round the relaxed program (5.2). Beyond the
paper, LPRR may round several routes between two solutions and keep the best of several
runs.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from dlsim.given import Seed, generator
from dlsim.steady.core.greedy import DUST, Left, Network, Trace, serve
from dlsim.steady.model import Floats, Ints, Platform, Reading
from dlsim.steady.outcome import trim
from dlsim.steady.relaxation import ReducedProgram, relaxed, unfixed

Found = tuple[Floats, Ints]

#: The paper's heuristics.
HEURISTICS = ("G", "LPR", "LPRG", "LPRR")
#: A relaxed connection this close to a whole number is that number.
SNAP = 1e-6
#: How far the present solution may pass a fixed value and still count as within it.
WITHIN = 1e-9
#: Where the first solution has more cells, those without work become columns when needed.
FEW = 2048


def _network(p: Platform) -> Network:
    """Lay a platform out for the kernel."""
    t, caps = p.tables, p.limits.shares
    cluster = np.append(np.arange(p.clusters), [cap.cluster for cap in caps]).astype(np.int64)
    by_cluster = np.argsort(cluster, kind="stable")  # of each its speed, then caps on parts of it
    whose = np.ones((len(cluster), p.applications), dtype=bool)
    for row, cap in enumerate(caps, start=p.clusters):
        whose[row] = np.isin(p.origin, cap.origins)
    speeds = np.append(p.speed, [cap.share * p.speed[cap.cluster] for cap in caps])[by_cluster]
    rows_of = np.searchsorted(cluster[by_cluster], np.arange(p.clusters + 1))
    route_of_place = np.repeat(np.arange(len(t.pairs)), np.diff(t.start))
    order = np.argsort(t.link, kind="stable")
    link_of = np.searchsorted(t.link[order], np.arange(len(t.capacity) + 1))
    return Network(
        p.origin, np.array(p.priorities), p.priorities.max(axis=1), np.array(p.work),
        np.array(p.data), rows_of, whose[by_cluster], t.bandwidth, t.route.astype(np.int64),
        t.start, t.link.astype(np.int32), link_of, route_of_place[order], speeds,
        np.array(p.gateway),
    )  # fmt: skip


def _unused(net: Network, capacity: Floats, work: Floats, connections: Ints) -> Left:
    away = np.arange(len(net.route)) != net.origin[:, None]
    sent = work * net.data[:, None] * away
    gateway = net.gateway_first - sent.sum(axis=0)
    np.subtract.at(gateway, net.origin, sent.sum(axis=1))
    cluster = np.repeat(np.arange(len(net.route)), np.diff(net.rows_of))
    row = net.row_first - (net.member * (work.T * net.weight)[cluster]).sum(axis=1)
    k, to = np.nonzero(net.route >= 0)
    opened = np.zeros(len(net.start) - 1)
    opened[net.route[k, to]] = connections[k, to]
    route_of_place = np.repeat(np.arange(len(opened)), np.diff(net.start))
    link = capacity - np.bincount(net.link, opened[route_of_place], len(capacity))
    full = np.bincount(route_of_place, link[net.link] < 1, len(opened)).astype(np.int64)
    row[row <= DUST * net.row_first] = 0.0
    gateway[gateway <= DUST * net.gateway_first] = 0.0
    apps, rows = len(net.origin), len(row)
    return Left(
        row, gateway, link, full, work.copy(), connections.astype(np.int64),
        np.zeros(apps), net.highest > 0, np.zeros(len(net.route)),
        np.zeros(apps), np.zeros(rows), np.zeros(rows), np.zeros(rows),
    )  # fmt: skip


class Served(NamedTuple):
    """What heuristic G did."""

    work: Floats
    connections: Ints
    steps: int
    trace: pd.DataFrame


def run_greedy(
    p: Platform, reading: Reading, start: Found | None = None, traced: int = 0
) -> Served:
    """Allocate step by step (section 5.1), from nothing or from an allocation."""
    net, pairs = _network(p), (p.clusters, p.clusters)
    work, connections = start or (np.zeros((p.applications, p.clusters)), np.zeros(pairs, np.int64))
    left = _unused(net, p.tables.capacity, work, connections)
    if reading.lprg_start == "lpr":
        left.share[:] = (work * p.worth).sum(axis=1)
    whole = np.zeros(traced, dtype=np.int64)
    trace = Trace(whole, whole.copy(), np.zeros(traced))
    prose, rest = reading.local_amount == "prose", reading.stuck == "rest"
    steps = int(serve(net, left, trace, prose, rest))
    return Served(left.work, left.connections, steps, pd.DataFrame(trace._asdict()).head(steps))


def split_connections(usage: Floats) -> tuple[Floats, Floats]:
    """Split relaxed connections into whole numbers and the fractions that are left."""
    near = np.rint(usage)
    snapped = np.where(np.abs(usage - near) <= SNAP, near, usage)
    whole = np.floor(snapped)
    return whole, snapped - whole


def round_off(p: Platform, work: Floats, usage: Floats) -> Found:
    r"""Round relaxed connections down (LPR, section 5.2.1).

    .. math:: \hat\beta = \lfloor\tilde\beta\rfloor,\quad
        \hat\alpha = \min\{\tilde\alpha, \hat\beta g / \delta\}
    """
    whole, _ = split_connections(usage)
    kept = np.ones((p.clusters, p.clusters))
    part = np.divide(whole, usage, out=np.ones(len(usage)), where=usage > whole)
    kept[tuple(p.tables.pairs.T)] = part
    moved = np.where(p.data[:, None] > 0, kept[p.origin], 1.0)
    return work * moved, p.tables.spread(whole.astype(np.int64))


class Rounding:
    """A relaxed solution in which routes are fixed one after another (LPRR)."""

    def __init__(self, p: Platform, least: bool) -> None:
        self.p, self.least = p, least
        self.program = unfixed(p, least)
        if len(self.program.cells) > FEW:
            self.program = self.program.narrowed()
        self.values = np.zeros(len(self.program.fixed), dtype=np.int64)
        self.order: list[tuple[int, float, int]] = []
        self.programs = 1
        self._look()

    @property
    def work(self) -> Floats:
        """Return the work of the last program solved."""
        return self.program.work

    @property
    def connections(self) -> Ints:
        """Return the connections fixed, shape (K, K)."""
        return np.asarray(self.p.tables.spread(self.values))

    def solve(self) -> None:
        """Solve the program again."""
        self.program.solve(self.least)
        self.programs += 1
        self._look()

    def _look(self) -> None:
        free = np.where(self.program.fixed, 0.0, self.program.usage)
        self.load = self.p.tables.load(free)
        self.holds = True

    def open(self, least: float = SNAP) -> Ints:
        """Return the routes that are not fixed and use more of a connection."""
        return np.flatnonzero(~self.program.fixed & (self.program.usage > least))

    def fix(self, r: int, value: float) -> None:
        """Fix a route as far as the room goes, which takes solutions away and adds none."""
        links, used = self.p.tables.links_of(r), float(self.program.usage[r])
        fixed = int(min(value, self.program.room[links].min()))
        self.program.fix(r, fixed)
        self.load[links] = self.load[links] - used
        fits = (self.load[links] <= self.program.room[links] + WITHIN).all()
        self.holds &= bool(fits) and used <= fixed + WITHIN
        self.values[r] = fixed
        self.order.append((r, used, fixed))


def randomised_rounding(
    p: Platform, rng: np.random.Generator, batch: int = 1, least: bool = False
) -> Rounding:
    """Round the relaxed program route by route, at random (LPRR, section 5.2.3).

    It ends when no route that is not fixed uses any connection; those get none, and the
    solution stays optimal. The program is solved again only where the values fixed cut
    the present solution off.
    """
    rounds = Rounding(p, least)
    while True:
        candidates = rounds.open()
        if not len(candidates):
            tiny = rounds.open(0.0)
            if not len(tiny):
                return rounds
            for r in map(int, tiny):
                rounds.fix(r, 0)
        for _ in range(min(batch, len(candidates))):
            at = int(rng.integers(len(candidates)))
            r = int(candidates[at])
            candidates = np.delete(candidates, at)
            whole, fraction = split_connections(rounds.program.usage[r])
            rounds.fix(r, int(whole) + int(rng.random() < fraction))
        if not rounds.holds:
            rounds.solve()


def served(p: Platform, reading: Reading, start: Found | None = None) -> Found:
    """Allocate step by step, from nothing or from an allocation."""
    done = run_greedy(p, reading, start)
    return trim(p, done.work, done.connections), done.connections


def rounded(p: Platform, program: ReducedProgram) -> Found:
    """Round the optimum that a program is at down."""
    work, connections = round_off(p, program.work, program.usage)
    return trim(p, work, connections), connections


def heuristic(
    name: str, p: Platform, seed: Seed, reading: Reading, batch: int = 1, runs: int = 1
) -> Found:
    """Allocate by one of `HEURISTICS`; of several runs of LPRR the best is kept."""
    least = reading.vertex == "least_connections"
    if name != "LPRR":
        start = None if name == "G" else rounded(p, relaxed(p, least))
        return start if start and name == "LPR" else served(p, reading, start)
    rounds = (randomised_rounding(p, generator(seed, k), batch, least) for k in range(runs))
    found = ((trim(p, done.work, done.connections), done.connections) for done in rounds)
    return max(found, key=lambda one: (one[0] * p.worth).sum(axis=1)[p.counted].min())
