"""The heuristics of paper S, section 5.

G starts from nothing (5.1). LPR, LPRG and LPRR round the relaxed program (5.2). Beyond the
paper, LPRR may round several routes between two solutions and keep the best of several
runs.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dlsim.given import Seed, generator
from dlsim.steady.greedy import run_greedy
from dlsim.steady.model import Floats, Ints, Platform, Reading
from dlsim.steady.outcome import trim
from dlsim.steady.relaxation import ReducedProgram, relaxed, unfixed

Found = tuple[Floats, Ints]

#: A relaxed connection this close to a whole number is that number.
SNAP = 1e-6
#: How far the present solution may pass a fixed value and still count as within it.
WITHIN = 1e-9
#: Where the first solution has more cells, those without work become columns when needed.
FEW = 2048


def split_connections(usage: Floats) -> tuple[Floats, Floats]:
    """Split relaxed connections into whole numbers and the fractions that are left."""
    near = np.rint(usage)
    snapped = np.where(np.abs(usage - near) <= SNAP, near, usage)
    whole = np.floor(snapped)
    return whole, snapped - whole


def round_off(p: Platform, work: Floats, usage: Floats) -> tuple[Floats, Ints]:
    r"""Round relaxed connections down (LPR, section 5.2.1).

    .. math:: \hat\beta = \lfloor\tilde\beta\rfloor,\quad
        \hat\alpha = \min\{\tilde\alpha, \hat\beta g / \delta\}
    """
    whole, _ = split_connections(usage)
    kept = np.ones((p.clusters, p.clusters))
    kept[tuple(p.tables.pairs.T)] = np.divide(
        whole, usage, out=np.ones(len(usage)), where=usage > whole
    )
    moved = np.where(p.data[:, None] > 0, kept[p.origin], 1.0)
    return work * moved, p.tables.spread(whole.astype(np.int64))


@dataclass(frozen=True, eq=False)
class Rounding:
    """What LPRR did."""

    work: Floats
    connections: Ints
    order: list[tuple[int, float, int]]
    programs: int


class _Rounds:
    """A relaxed solution in which routes are fixed one after another."""

    def __init__(self, p: Platform, least: bool) -> None:
        self.p, self.least = p, least
        self.program = unfixed(p, least)
        if len(self.program.cells) > FEW:
            self.program = self.program.narrowed()
        self.values = np.zeros(len(self.program.fixed), dtype=np.int64)
        self.order: list[tuple[int, float, int]] = []
        self.solves = 1
        self.look()

    def solve(self) -> None:
        self.program.solve(self.least)
        self.solves += 1
        self.look()

    def look(self) -> None:
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
    rounds = _Rounds(p, least)
    while True:
        candidates = rounds.open()
        if not len(candidates):
            tiny = rounds.open(0.0)
            if not len(tiny):
                break
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
    connections = p.tables.spread(rounds.values)
    return Rounding(rounds.program.work, connections, rounds.order, rounds.solves)


def _is_least(reading: Reading) -> bool:
    return reading.vertex == "least_connections"


def served(p: Platform, reading: Reading, start: Found | None = None) -> Found:
    """Allocate step by step, from nothing or from an allocation."""
    done = run_greedy(p, reading, start)
    return trim(p, done.work, done.connections), done.connections


def rounded(p: Platform, program: ReducedProgram) -> Found:
    """Round the optimum that a program is at down."""
    work, connections = round_off(p, program.work, program.usage)
    return trim(p, work, connections), connections


def greedy(p: Platform, seed: Seed, reading: Reading, **_: int) -> Found:
    """Allocate step by step (G, section 5.1)."""
    return served(p, reading)


def round_down(p: Platform, seed: Seed, reading: Reading, **_: int) -> Found:
    """Round the relaxed program down (LPR, section 5.2.1)."""
    return rounded(p, relaxed(p, _is_least(reading)))


def reclaim(p: Platform, seed: Seed, reading: Reading, **_: int) -> Found:
    """Round down, then allocate what is left step by step (LPRG, section 5.2.2)."""
    return served(p, reading, round_down(p, seed, reading))


def round_randomly(
    p: Platform, seed: Seed, reading: Reading, batch: int = 1, runs: int = 1
) -> Found:
    """Round route by route at random, and keep the best run (LPRR, section 5.2.3)."""
    best, value = None, -np.inf
    for run in range(runs):
        done = randomised_rounding(p, generator(seed, run), batch, _is_least(reading))
        work = trim(p, done.work, done.connections)
        got = float((work * p.worth).sum(axis=1)[p.counted].min())
        if best is None or got > value:
            best, value = (work, done.connections), got
    assert best is not None
    return best


#: The paper's heuristics by name.
HEURISTICS: dict[str, Callable[..., Found]] = {
    "G": greedy,
    "LPR": round_down,
    "LPRG": reclaim,
    "LPRR": round_randomly,
}
