"""The periodic schedule of an allocation (paper S, 3.2), in exact arithmetic.

Numbers of the platform are read as their shortest decimal text: 0.1 is 1/10.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError, ScheduleError
from dlsim.given import whole
from dlsim.steady.check import broken, exact, verify
from dlsim.steady.model import Platform

#: A work this near to a whole number of units, relative, is that number.
SNAP = 1e-9


@dataclass(frozen=True, eq=False)
class Period:
    """What every resource does in each period of a fixed length.

    In a period each cluster computes `units` of data that is its own or arrived in the
    period before, and sends what other clusters compute in the next. The first period
    computes nothing, the last sends nothing.

    Parameters
    ----------
    platform : Platform
        Of the schedule.
    length : int
        Time T_p of one period.
    units : ndarray of int (Python's, as objects), shape (A, K)
        Whole load units of each application computed by each cluster in a period.
    connections : ndarray of int, shape (K, K)
        Kept open.
    """

    platform: Platform
    length: int
    units: NDArray[np.object_]
    connections: Any

    @property
    def work(self) -> NDArray[np.object_]:
        """Return the load units per time as Fractions, shape (A, K)."""
        return self.units * Fraction(1, self.length)

    @property
    def objective(self) -> Fraction:
        """Return the least work / priority over applications that count, exactly (5)."""
        values = [
            sum(done / exact(pi) for done, pi in zip(row, pis, strict=True) if pi > 0)
            for row, pis in zip(self.work, self.platform.priorities.tolist(), strict=True)
        ]
        return min(v for v, counts in zip(values, self.platform.counted, strict=True) if counts)

    def check(self) -> None:
        """Check (6) exactly."""
        verify(self.platform, self.work, self.connections)

    def completed(self, periods: int) -> NDArray[np.object_]:
        """Return the load units that n >= 1 periods complete, (n - 1) T_p alpha_k, shape (A,)."""
        return self.units.sum(axis=1) * (whole("periods", periods, 1, math.inf) - 1)

    def simulate(self, periods: int) -> pd.DataFrame:
        """Run the schedule and check every link and cluster in every period, exactly.

        Rows where something is sent or computed: period (from 1), application, cluster, sent (to
        the cluster) and computed (there), in whole load units.
        """
        n, nothing = whole("periods", periods, 1, math.inf), np.zeros_like(self.units)
        away = np.arange(self.platform.clusters) != self.platform.origin[:, None]
        stock, table = nothing.copy(), []
        for period in range(1, n + 1):
            sent = np.where(away, self.units, 0) if period < n else nothing
            computed = self.units if period > 1 else nothing
            _within(self, period, sent, computed, np.where(away, stock, self.units))
            for a, to in zip(*np.nonzero((sent + computed) > 0), strict=True):
                table.append((period, a, to, sent[a, to], computed[a, to]))
            stock = stock + sent - np.where(away, computed, 0)
        return pd.DataFrame(table, columns=["period", "application", "cluster", "sent", "computed"])


def _within(schedule: Period, period: int, sent: Any, computed: Any, there: Any) -> None:
    """Check one period: data that is there, time of clusters, gateways and routes, links."""
    if (computed > there).any():
        a, to = np.argwhere(computed > there)[0]
        raise ScheduleError(
            f"period {period}: cluster {to} computes {computed[a, to]} units of application {a} "
            f"but holds {there[a, to]}"
        )
    share = Fraction(1, schedule.length)
    p, opened = schedule.platform, schedule.connections
    for amounts, is_sending in ((computed, False), (sent, True)):
        for row in broken(p, amounts * share, opened, is_exact=True):
            if row.is_sending == is_sending:
                raise ScheduleError(f"period {period}: {row.name}: {row.used} > {row.limit}")


def _fractions(work: list[Any], denominator: int) -> list[Fraction]:
    """Return every work as a near fraction of small denominator, or all rounded down."""
    near = [Fraction(x).limit_denominator(denominator) for x in work]
    if all(abs(f - Fraction(x)) <= SNAP * max(1.0, x) for f, x in zip(near, work, strict=True)):
        if math.lcm(*(f.denominator for f in near)) <= max(denominator**2, 1):
            return near
    return [Fraction(_units(x, denominator), denominator) for x in work]


def _units(work: float | Fraction, period: int) -> int:
    """Return the whole load units of a period, rounded down but for rounding error."""
    amount = Fraction(work) * period
    whole = round(amount)
    return whole if abs(amount - whole) <= SNAP * max(1, whole) else math.floor(amount)


def reconstruct(allocation: Any, period: int | None = None, denominator: int = 1000) -> Period:
    """Reconstruct a periodic schedule; see `Allocation.periodic`."""
    if period is not None:
        period = whole("period", period, 1, math.inf)
    p, work = allocation.platform, allocation.work
    connections = np.asarray(allocation.connections)
    if (connections != np.floor(connections)).any():
        raise InputError("a period needs whole connections; solve with MILP or a heuristic first")
    allocation.check()
    flat = [x if isinstance(x, Fraction) else float(x) for x in work.ravel()]
    if period is None:
        shares = _fractions(flat, whole("denominator", denominator))
        period = math.lcm(*(f.denominator for f in shares))
        amounts = [int(f * period) for f in shares]
    else:
        amounts = [_units(x, period) for x in flat]
    units = np.array(amounts, dtype=object).reshape(work.shape)
    schedule = Period(p, period, _valid(p, units, period, connections), connections)
    schedule.check()
    return schedule


def _valid(p: Platform, units: Any, period: int, connections: Any) -> Any:
    """Shrink the cells of each row that rounding error put above its limit to fit it.

    Rows only add up, so that one pass leaves none above: a cell of several takes the least.
    """
    fitting = units.copy()
    for row in broken(p, units * Fraction(1, period), connections, is_exact=True):
        for cell in row.cells:
            most = math.floor(units[cell] * Fraction(row.limit) / row.used)
            fitting[cell] = min(fitting[cell], most)
    return fitting
