"""The result of a method: work and connections, checked against (6).

Also the periodic schedule of an allocation (3.2), in exact arithmetic: the numbers of the platform
are then those of their shortest decimal texts, so that 0.1 is 1/10.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from dlsim.errors import InputError, ScheduleError
from dlsim.steady import relaxation
from dlsim.steady.check import check_allocation, find_violations, to_fraction
from dlsim.steady.model import Floats, Method, Platform, Reading
from dlsim.validate import Seed, whole

#: An objective within this of a proven bound, relative, is the optimum.
PROVED_TOLERANCE = 1e-6
#: Work this near to a whole number of units, relative, counts as that number.
UNIT_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Period:
    """A periodic schedule (3.2): what every resource does in each period of a fixed length.

    In a period each cluster computes `units` of data that is its own or arrived in the
    period before, and sends the data that other clusters compute in the next period. Nothing is
    computed in the first period, and nothing is sent in the last.

    Parameters
    ----------
    platform : Platform
        Of the schedule.
    length : int
        Time T_p of one period.
    units : ndarray of int (Python's, as objects), shape (A, K)
        Load units of each application computed by each cluster in a period.
    connections : ndarray of int, shape (K, K)
        Kept open.
    """

    platform: Platform
    length: int
    units: Any
    connections: Any

    def __post_init__(self) -> None:
        units = np.array(self.units, dtype=object)
        vars(self).update(units=units, connections=np.array(self.connections))

    @property
    def work(self) -> Any:
        """Return the load units per time as Fractions, shape (A, K)."""
        return self.units * Fraction(1, self.length)

    @property
    def objective(self) -> Fraction:
        """Return the least work / priority over applications that count, as a Fraction (5)."""
        values = [
            sum(done / to_fraction(pi) for done, pi in zip(row, pis, strict=True) if pi > 0)
            for row, pis in zip(self.work, self.platform.priorities.tolist(), strict=True)
        ]
        return min(v for v, counts in zip(values, self.platform.is_counted, strict=True) if counts)

    def check(self) -> None:
        """Check (6) exactly."""
        check_allocation(self.platform, self.work, self.connections)

    def completed(self, periods: int) -> Any:
        """Return the load units completed in n >= 1 periods: (n - 1) T_p alpha_k, shape (A,)."""
        return self.units.sum(axis=1) * (whole("periods", periods, 1, math.inf) - 1)

    def simulate(self, periods: int) -> pd.DataFrame:
        """Run the schedule and check every link and cluster in every period, exactly.

        Rows where something is sent or computed: period (from 1), application, cluster, sent (to
        the cluster) and computed (there), in whole load units.
        """
        n, nothing = whole("periods", periods, 1, math.inf), np.zeros_like(self.units)
        away = np.arange(self.platform.clusters) != self.platform.origin[:, None]
        sites, apps = self.platform.names
        stock, table, share = nothing.copy(), [], Fraction(1, self.length)
        for period in range(1, n + 1):
            sent = np.where(away, self.units, 0) if period < n else nothing
            computed = self.units if period > 1 else nothing
            there = np.where(away, stock, self.units)
            for a, to in np.argwhere(computed > there):
                what = f"{sites[to]} computes {computed[a, to]} units of {apps[a]}"
                raise ScheduleError(f"period {period}: {what} but holds {there[a, to]}")
            for amounts, is_sending in ((computed, False), (sent, True)):
                for row in find_violations(
                    self.platform, amounts * share, self.connections, is_exact=True
                ):
                    if row.is_sending == is_sending:
                        why = f"{row.name}: {row.used} > {row.limit}"
                        raise ScheduleError(f"period {period}: {why}")
            for a, to in zip(*np.nonzero((sent + computed) > 0), strict=True):
                table.append((period, a, to, sent[a, to], computed[a, to]))
            stock = stock + sent - np.where(away, computed, 0)
        return pd.DataFrame(table, columns=["period", "application", "cluster", "sent", "computed"])


def _nearby_fractions(work: list[Any], denominator: int) -> list[Fraction]:
    """Return the work as fractions of small denominators within rounding error, or rounded down."""
    near = [Fraction(x).limit_denominator(denominator) for x in work]
    if all(
        abs(f - Fraction(x)) <= UNIT_TOLERANCE * max(1.0, x)
        for f, x in zip(near, work, strict=True)
    ):
        if math.lcm(*(f.denominator for f in near)) <= max(denominator**2, 1):
            return near
    return [Fraction(_whole_units(x, denominator), denominator) for x in work]


def _whole_units(work: float | Fraction, period: int) -> int:
    """Return the whole load units of a period, rounded down after rounding errors are removed."""
    amount = Fraction(work) * period
    near = round(amount)
    return near if abs(amount - near) <= UNIT_TOLERANCE * max(1, near) else math.floor(amount)


@dataclass(frozen=True, eq=False)
class Allocation:
    """How much of each application every cluster computes per unit of time.

    Parameters
    ----------
    platform : Platform
        What it is an allocation of.
    work : ndarray, shape (A, K)
        Load units per time (the paper's alpha); Fractions make the check exact.
    connections : ndarray, shape (K, K)
        Connections opened from k to l (the paper's beta).
    method : Method, optional
        How it was found; None for an allocation that no method of `solve` found.
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
    method: Method | None = None
    seed: Seed = 0
    reading: Reading = field(default_factory=Reading)
    is_relaxed: bool = False
    upper: float = np.inf

    def __post_init__(self) -> None:
        vars(self).update(work=np.array(self.work), connections=np.array(self.connections))

    @property
    def name(self) -> str:
        """Return the name of the method, "" without one."""
        return self.method.name if self.method else ""

    @property
    def values(self) -> Floats:
        """Return work / priority summed over clusters, shape (A,); 0 where work does not count."""
        return (self.work * self.platform.inverse_priority).sum(axis=1)

    @property
    def objective(self) -> float:
        """Return the least work / priority over applications of positive priority (5)."""
        return float(self.values[self.platform.is_counted].min())

    @property
    def ratio(self) -> float:
        """Return the objective over the proven bound of the relaxed program; 1 where both are 0."""
        top = relaxation.bound(self.platform)
        return self.objective / top if top > 0 else 1.0

    @property
    def gap(self) -> float:
        """Return how far the optimum may lie above the objective: upper / objective - 1.

        The gap is 0 where the optimum is 0.
        """
        if self.upper <= self.objective:
            return 0.0
        return self.upper / self.objective - 1 if self.objective > 0 else np.inf

    @property
    def is_proved(self) -> bool:
        """Return whether the method proved that no whole-number allocation is better."""
        return self.gap <= PROVED_TOLERANCE

    def summary(self) -> "pd.Series[float]":
        """Return the measures of the allocation, under the name of the method.

        Returns
        -------
        Series
            ``objective``
                Least work / priority over the applications (5), load units per time; more is
                better.
            ``ratio``
                The objective over the bound of the relaxed program, 0 to 1; more is better. The
                figures of paper S show it.
            ``worst_work``
                Work of the worst-served application, load units per time; more is better.
            ``total_work``
                Work of all applications, load units per time; more is better.
            ``connections``
                Connections opened.
            ``speed_used``
                Part of the speed of all clusters that computes, 0 to 1.
            ``gateway_used``
                Part of the bandwidth of the clusters' own links that carries data, 0 to 1.
            ``links_used``
                Part of the connections that the backbone links admit that is open, 0 to 1, over
                the links that have a limit.
        """
        platform, work = self.platform, np.asarray(self.work, dtype=float)
        opened = np.asarray(self.connections, dtype=float)
        each = work.sum(axis=1)
        worst = np.argmin(np.where(platform.is_counted, self.values.astype(float), np.inf))
        capacity = platform.links["max_connect"].to_numpy()
        limited = np.isfinite(capacity)
        on_links = platform.tables.load_on_links(opened[tuple(platform.tables.pairs.T)])
        sent = compute_flows(platform, work)[0]
        measures = {
            "objective": self.objective,
            "ratio": self.ratio,
            "worst_work": each[worst],
            "total_work": each.sum(),
            "connections": opened.sum(),
            "speed_used": _part(platform.work @ each, platform.speed),
            "gateway_used": _part(2 * sent.sum(), platform.gateway),
            "links_used": _part(on_links[: len(capacity)][limited].sum(), capacity[limited]),
        }
        return pd.Series(measures, name=self.name, dtype=float)

    def check(self) -> None:
        """Check every constraint of (6) and of the limits, from their definitions alone.

        Rows have a relative slack of 1e-9, none where the work is in Fractions; a ScheduleError
        names the first that does not hold.
        """
        check_allocation(self.platform, self.work, self.connections, self.is_relaxed)

    def periodic(self, period: int | None = None, denominator: int = 1000) -> Period:
        """Reconstruct a periodic schedule (3.2), checked against (6) in exact arithmetic.

        Parameters
        ----------
        period : int, optional
            Time T_p; work per period is rounded down to whole load units. By default the
            least common multiple of the denominators of the work.
        denominator : int
            Largest denominator of a work without `period`. Where no such fractions are within
            rounding error, or their common multiple is above its square, the work is rounded down
            to whole parts of 1 / `denominator`.
        """
        if period is not None:
            period = whole("period", period, 1, math.inf)
        platform, connections = self.platform, np.asarray(self.connections)
        if (connections != np.floor(connections)).any():
            what = "a period needs whole connections"
            raise InputError(f"{what}; solve with MILP or a heuristic first")
        self.check()
        flat = [x if isinstance(x, Fraction) else float(x) for x in self.work.ravel()]
        if period is None:
            shares = _nearby_fractions(flat, whole("denominator", denominator))
            length = math.lcm(*(f.denominator for f in shares))
            amounts = [int(f * length) for f in shares]
        else:
            length = period
            amounts = [_whole_units(x, length) for x in flat]
        units = np.array([*amounts, None], dtype=object)[:-1].reshape(self.work.shape)
        fitting = units.copy()  # reduced in every row that rounding errors put above its limit
        for row in find_violations(
            platform, units * Fraction(1, length), connections, is_exact=True
        ):
            for cell in row.cells:  # rows only add up: one pass leaves none above
                most = math.floor(units[cell] * Fraction(row.limit) / row.used)
                fitting[cell] = min(fitting[cell], most)
        schedule = Period(platform, length, fitting, connections)
        schedule.check()
        return schedule


def _part(used: float, available: Floats) -> float:
    """Return the part of a resource that is used, 0 where there is none."""
    total = float(available.sum())
    return float(used) / total if total > 0 else 0.0


def compute_flows(platform: Platform, work: Floats) -> tuple[Floats, Floats]:
    """Return the data sent from k to l, shape (K, K), and the connections that each route fills."""
    sent = np.zeros((platform.clusters, platform.clusters))
    np.add.at(sent, platform.origin, work * platform.data[:, None])
    np.fill_diagonal(sent, 0.0)
    routed = tuple(platform.tables.pairs.T)
    one = platform.tables.bandwidth[routed]
    return sent, np.divide(sent[routed], one, out=np.zeros(len(one)), where=one > 0)


def least_connections(platform: Platform, work: Floats) -> Floats:
    """Return the least connections, as real numbers, that carry the work."""
    return platform.tables.to_matrix(compute_flows(platform, work)[1])


def scale_to_feasible(platform: Platform, work: Floats, connections: Any = None) -> Floats:
    """Return work scaled down, row by row, where it exceeds (6) by rounding errors.

    Parameters
    ----------
    platform : Platform
        The platform with its limits.
    work : ndarray, shape (A, K)
        Load units per time.
    connections : array_like, shape (K, K), optional
        Connections opened from k to l; without them the capacities of the links limit the work.
    """
    tables = platform.tables
    work = np.maximum(work, 0.0)
    factor = np.ones_like(work)

    def shrink(cells: Any, used: Any, limit: Any) -> None:
        used, limit = np.broadcast_arrays(np.asarray(used, float), np.asarray(limit, float))
        ratio = np.divide(limit, used, out=np.ones(used.shape), where=used > limit)
        factor[cells] = np.minimum(factor[cells], ratio)

    sent, filled = compute_flows(platform, work)
    cost = work * platform.work[:, None]
    shrink(..., np.broadcast_to(cost.sum(axis=0), work.shape), platform.speed)
    for cap in platform.limits.shares:
        held = np.flatnonzero(np.isin(platform.origin, cap.origins))
        shrink(
            (held, cap.cluster),
            cost[held, cap.cluster].sum(),
            cap.share * platform.speed[cap.cluster],
        )
    busy = sent.sum(axis=0) + sent.sum(axis=1)
    through = np.divide(
        platform.gateway, busy, out=np.ones(platform.clusters), where=busy > platform.gateway
    )
    room = np.minimum.outer(through, through)
    routed = tuple(tables.pairs.T)
    if connections is None:
        used = tables.load_on_links(filled)
        left = np.divide(
            tables.capacity, used, out=np.ones(len(used)), where=used > tables.capacity
        )
        ways = tables.min_over_links(left)
    else:
        opened = np.asarray(connections, dtype=float)[routed]
        ways = np.divide(opened, filled, out=np.ones(len(filled)), where=filled > opened)
    room[routed] = np.minimum(room[routed], ways)
    room[np.arange(platform.clusters), np.arange(platform.clusters)] = 1.0
    moved = np.where(platform.data[:, None] > 0, room[platform.origin], 1.0)
    return work * np.minimum(factor, moved)
