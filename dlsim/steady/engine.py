"""One verb for every method of paper S, ``solve(platform, "LPRG+polish")``, and its heuristics.

G starts from nothing (5.1). LPR, LPRG and LPRR round the relaxed program (5.2). Beyond the paper,
LPRR may round several routes between two solutions and keep the best of several runs.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.given import Seed, generator, instance, need_memory, option, usual, whole
from dlsim.steady.core.greedy import DUST, Left, Network, Trace, serve
from dlsim.steady.model import Floats, Ints, Platform, Reading
from dlsim.steady.outcome import Allocation, least_connections, trim
from dlsim.steady.program import MOST_NODES, fair, polish, seconds, solve_program
from dlsim.steady.relaxation import ReducedProgram, bound, relaxed, unfixed

Found = tuple[Floats, Ints]

#: The paper's heuristics in the order of the legends, the cheap ones first.
HEURISTICS = ("G", "LPR", "LPRG", "LPRR")
#: A relaxed connection this close to a whole number is that number.
SNAP = 1e-6
#: How far the present solution may pass a fixed value and still count as within it.
WITHIN = 1e-9
#: Where the first solution has more cells, those without work become columns when needed.
FEW = 2048
#: The methods by name.
METHODS: tuple[str, ...] = ("LP", "MILP", *HEURISTICS)
#: What may follow a name, with its meaning.
SUFFIXES: dict[str, str] = {
    "least": "round a relaxed optimum with the fewest connections",
    "polish": "keep the whole connections and solve for the best work",
    "fair": "as polish, then raise the others above the least, one level after another",
}
#: Bytes that a method takes at least per application and cluster.
CELL, MIXED_CELL = 150, 500
#: The suffixes that a method does not take.
_WITHOUT = {"LP": {"polish"}, "MILP": {"least"}, "G": {"least"}}


def split_method(method: str) -> tuple[str, set[str]]:
    """Return a method's name and suffixes."""
    if not isinstance(method, str):
        raise InputError(f"method must be a name such as 'LPRG+polish', got {method!r}")
    name, *suffixes = method.split("+")
    option("method", name, METHODS)
    taken = tuple(s for s in SUFFIXES if s not in _WITHOUT.get(name, ()))
    for suffix in suffixes:
        option(f"suffix of {name}", suffix, taken)
    return name, set(suffixes)


def solve(
    platform: Platform, method: str = "LPRG", seed: Seed = 0, reading: Reading | None = None, *,
    batch: int = 1, runs: int = 1, most_nodes: int = MOST_NODES, most_seconds: float = math.inf,
) -> Allocation:  # fmt: skip
    """Find a steady state by one of the paper's methods.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    method : str
        LP (the relaxed program, an upper bound with broken connections), MILP (the optimum,
        or the best that is found, never below a heuristic), G, LPR, LPRG or LPRR, then any
        suffixes: ``+least`` (not G, MILP), ``+polish`` (not LP), ``+fair`` (see `SUFFIXES`).
    seed : int or SeedSequence
        Of LPRR's draws; the others draw nothing.
    reading : Reading, optional
        How the paper is understood; the default reading if None.
    batch : int
        Routes that LPRR rounds between two solutions; 1 in the paper.
    runs : int
        Runs of LPRR, the best of which is kept; 1 in the paper.
    most_nodes, most_seconds
        Where the search of MILP ends, as in `solve_program`.

    Returns
    -------
    Allocation
        Checked against (6) and the limits.

    Raises
    ------
    InputError
        For an unknown method or suffix, or another argument that cannot be used.
    StudyError
        If a program is not solved.

    Examples
    --------
    Two clusters of speed 10 and 2 behind one link of two connections of bandwidth 3:

    >>> import pandas as pd
    >>> link = pd.DataFrame({"bandwidth": [3.0], "max_connect": [2]})
    >>> routes = {(0, 1): [0], (1, 0): [0]}
    >>> p = Platform((10, 2), (20, 20), link, routes, (1, 1), (1, 1), (1, 1))
    >>> [round(solve(p, method).objective, 6) for method in ("LP", "G", "LPR", "LPRG")]
    [6.0, 4.0, 5.0, 6.0]
    """
    name, suffixes = split_method(method)
    reading = usual("reading", reading, Reading)
    instance("platform", platform, Platform)
    if not isinstance(seed, np.random.SeedSequence):
        seed = whole("seed", seed, 0, np.inf)
    batch, runs = whole("batch", batch), whole("runs", runs)
    most_nodes, most_seconds = whole("most_nodes", most_nodes, 0), seconds(most_seconds)
    apps, clusters = platform.applications, platform.clusters
    size = (MIXED_CELL if name == "MILP" else CELL) * apps * clusters
    what = f"{name} for {apps:,} applications on {clusters:,} clusters"
    need_memory(what, size, "solve a smaller platform")
    if "least" in suffixes:
        reading = replace(reading, vertex="least_connections")
    if name == "LP":
        work = trim(platform, relaxed(platform, reading.vertex == "least_connections").work)
        least = least_connections(platform, work)
        found = Allocation(platform, work, least, is_relaxed=True, upper=bound(platform))
    elif name == "MILP":
        start = best_start(platform, seed, reading, batch, runs)
        found = solve_program(platform, True, start, most_nodes, most_seconds)
    else:
        found = Allocation(platform, *heuristic(name, platform, seed, reading, batch, runs))
    if suffixes & {"fair", "polish"}:  # better work for the same connections, where there is one
        better = fair if "fair" in suffixes else polish
        other = better(platform, None if found.is_relaxed else found.connections)
        if better is fair or other.objective > found.objective:
            found = replace(other, upper=found.upper)
    found = replace(found, method=method, seed=seed, reading=reading)
    found.check()
    return found


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


def _unused(p: Platform, net: Network, work: Floats, connections: Ints) -> Left:
    t = p.tables
    away = np.arange(len(net.route)) != net.origin[:, None]
    sent = work * net.data[:, None] * away
    gateway = net.gateway_first - sent.sum(axis=0)
    np.subtract.at(gateway, net.origin, sent.sum(axis=1))
    cluster = np.repeat(np.arange(len(net.route)), np.diff(net.rows_of))
    row = net.row_first - (net.member * (work.T * net.weight)[cluster]).sum(axis=1)
    link = t.capacity - t.load(connections[tuple(t.pairs.T)].astype(float))
    full = t.total((link < 1).astype(float)).astype(np.int64)
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
    left = _unused(p, net, work, connections)
    if reading.lprg_start == "lpr":
        left.share[:] = (work * p.worth).sum(axis=1)
    applications, clusters = np.zeros((2, traced), dtype=np.int64)
    trace = Trace(applications, clusters, np.zeros(traced))
    prose, rest = reading.local_amount == "prose", reading.stuck == "rest"
    steps = int(serve(net, left, trace, prose, rest))
    return Served(left.work, left.connections, steps, pd.DataFrame(trace._asdict()).head(steps))


def split_connections(usage: Floats) -> tuple[Floats, Floats]:
    """Split relaxed connections into whole numbers and the fractions that are left."""
    near = np.rint(usage)
    snapped = np.where(np.abs(usage - near) <= SNAP, near, usage)
    down = np.floor(snapped)
    return down, snapped - down


def round_off(p: Platform, work: Floats, usage: Floats) -> Found:
    r"""Round relaxed connections down (LPR, section 5.2.1).

    .. math:: \hat\beta = \lfloor\tilde\beta\rfloor,\quad
        \hat\alpha = \min\{\tilde\alpha, \hat\beta g / \delta\}
    """
    opened, _ = split_connections(usage)
    kept = np.ones((p.clusters, p.clusters))
    part = np.divide(opened, usage, out=np.ones(len(usage)), where=usage > opened)
    kept[tuple(p.tables.pairs.T)] = part
    moved = np.where(p.data[:, None] > 0, kept[p.origin], 1.0)
    return work * moved, p.tables.spread(opened.astype(np.int64))


class Rounding:
    """A relaxed solution in which routes are fixed one after another (LPRR)."""

    def __init__(self, p: Platform, least: bool) -> None:
        self.p, self.least = p, least
        self.program = unfixed(p, least)
        if len(self.program.cells) > FEW:
            self.program = self.program.narrowed()
        self.values = np.zeros(len(self.program.fixed), dtype=np.int64)
        self.order: list[tuple[int, float, int]] = []
        self._look()

    @property
    def work(self) -> Floats:
        """Return the work of the last program solved."""
        return self.program.work

    @property
    def connections(self) -> Ints:
        """Return the connections fixed, shape (K, K)."""
        return self.p.tables.spread(self.values)

    def solve(self) -> None:
        """Solve the program again."""
        self.program.solve(self.least)
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
            down, fraction = split_connections(rounds.program.usage[r])
            rounds.fix(r, int(down) + int(rng.random() < fraction))
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


def best_start(
    p: Platform, seed: Seed, reading: Reading, batch: int = 1, runs: int = 1
) -> Allocation:
    """Return the best allocation of G, LPRG and LPRR, as found and with its best work.

    LPRR is run as asked for, and with eight routes between two solutions.
    """
    found = []
    for name, routes, repeats in (
        ("LPRR", 8, 1),
        ("LPRR", batch, runs),
        ("LPRG", 1, 1),
        ("G", 1, 1),
    ):
        work, connections = heuristic(name, p, seed, reading, routes, repeats)
        found += [polish(p, connections), Allocation(p, work, connections)]
    return max(found, key=lambda one: one.objective)
