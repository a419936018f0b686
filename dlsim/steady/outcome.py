"""What a method answers: work and connections, checked against (6) word by word."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlsim.given import Seed
from dlsim.steady import relaxation
from dlsim.steady.check import verify
from dlsim.steady.model import Floats, Platform, Reading
from dlsim.steady.period import Period, reconstruct

#: An objective within this of a proven bound, relative, is the optimum.
PROVED = 1e-6


@dataclass(frozen=True, eq=False)
class Allocation:
    """How much of each application every cluster computes per time.

    Parameters
    ----------
    platform : Platform
        What it is an allocation of.
    work : ndarray, shape (A, K)
        Load units per time (the paper's alpha); Fractions make the check exact.
    connections : ndarray, shape (K, K)
        Connections opened from k to l (the paper's beta).
    method : str
        How it was found.
    seed : int or SeedSequence
        Of the method, as given.
    reading : Reading
        How the paper was read.
    is_relaxed : bool
        Whether connections may be real numbers, as in the linear program.
    upper : float
        The best upper bound of the whole-number optimum that the method proved;
        infinite where it proves none.
    """

    platform: Platform
    work: Any
    connections: Any
    method: str = ""
    seed: Seed = 0
    reading: Reading = field(default_factory=Reading)
    is_relaxed: bool = False
    upper: float = np.inf

    @property
    def values(self) -> Floats:
        """Return work over priority summed over clusters, shape (A,); 0 for what does not count."""
        return (self.work * self.platform.worth).sum(axis=1)

    @property
    def objective(self) -> float:
        """Return the least work / priority over applications of positive priority (5)."""
        return float(self.values[self.platform.counted].min())

    @property
    def ratio(self) -> float:
        """Return the objective over the proven bound of the relaxed program; 1 where both are 0."""
        top = relaxation.bound(self.platform)
        return self.objective / top if top > 0 else 1.0

    @property
    def gap(self) -> float:
        """Return how far the optimum may lie above: upper / objective - 1, 0 for an optimum 0."""
        if self.upper <= self.objective:
            return 0.0
        return self.upper / self.objective - 1 if self.objective > 0 else np.inf

    @property
    def is_proved(self) -> bool:
        """Return whether the method proved that no whole-number allocation is better."""
        return self.gap <= PROVED

    def check(self) -> None:
        """Check every constraint of (6) and of the limits, from their definitions alone.

        Rows have a relative slack of 1e-9, none where the work is in Fractions; a ScheduleError
        names the first that does not hold.
        """
        verify(self.platform, self.work, self.connections, self.is_relaxed)

    def periodic(self, period: int | None = None, denominator: int = 1000) -> Period:
        """Reconstruct a periodic schedule (3.2), checked against (6) in exact arithmetic.

        Parameters
        ----------
        period : int, optional
            Time T_p; work per period is rounded down to whole load units. By default the
            least common multiple of the denominators of the work.
        denominator : int
            Largest denominator of a work without `period`; rounded down where no such
            fraction is within rounding error.
        """
        return reconstruct(self, period, denominator)


def _carried(p: Platform, work: Floats) -> tuple[Floats, Floats]:
    """Return the data sent from k to l, shape (K, K), and the connections each route fills."""
    sent = np.zeros((p.clusters, p.clusters))
    np.add.at(sent, p.origin, work * p.data[:, None])
    np.fill_diagonal(sent, 0.0)
    routed = tuple(p.tables.pairs.T)
    one = p.tables.bandwidth[routed]
    return sent, np.divide(sent[routed], one, out=np.zeros(len(one)), where=one > 0)


def least_connections(p: Platform, work: Floats) -> Floats:
    """Return the least connections, as real numbers, that carry the work."""
    return np.asarray(p.tables.spread(_carried(p, work)[1]))


def trim(platform: Platform, work: Floats, connections: Any = None) -> Floats:
    """Shrink work that exceeds (6) by rounding error, row by row."""
    p, t = platform, platform.tables
    work = np.maximum(work, 0.0)
    factor = np.ones_like(work)

    def shrink(cells: Any, used: Any, limit: Any) -> None:
        used, limit = np.broadcast_arrays(np.asarray(used, float), np.asarray(limit, float))
        ratio = np.divide(limit, used, out=np.ones(used.shape), where=used > limit)
        factor[cells] = np.minimum(factor[cells], ratio)

    sent, filled = _carried(p, work)
    cost = work * p.work[:, None]
    shrink(..., np.broadcast_to(cost.sum(axis=0), work.shape), p.speed)
    for cap in p.limits.shares:
        held = np.flatnonzero(np.isin(p.origin, cap.origins))
        shrink((held, cap.cluster), cost[held, cap.cluster].sum(), cap.share * p.speed[cap.cluster])
    busy = sent.sum(axis=0) + sent.sum(axis=1)
    through = np.divide(p.gateway, busy, out=np.ones(p.clusters), where=busy > p.gateway)
    room = np.minimum.outer(through, through)
    routed = tuple(t.pairs.T)
    if connections is None:
        used = t.load(filled)
        left = np.divide(t.capacity, used, out=np.ones(len(used)), where=used > t.capacity)
        ways = t.least(left)
    else:
        opened = np.asarray(connections, dtype=float)[routed]
        ways = np.divide(opened, filled, out=np.ones(len(filled)), where=filled > opened)
    room[routed] = np.minimum(room[routed], ways)
    room[np.arange(p.clusters), np.arange(p.clusters)] = 1.0
    moved = np.where(p.data[:, None] > 0, room[p.origin], 1.0)
    return work * np.minimum(factor, moved)
