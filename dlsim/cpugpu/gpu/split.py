"""Split a divisible work over devices, once or round after round by the measured rates.

Source: paper C, section 2, the configuration optimiser: "which will collect the running result
to dynamically adjust the environment settings and ensure a balanced load. As the computation
continues, the result will move closer to the ideal curve." Our reading: the next share of a
device is proportional to its measured rate. The fixed point is equal finish, the one-round
condition of divisible-load theory (papers M and I).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.compiled import TOL
from dlsim.cpugpu.check import require, table_times_equal
from dlsim.cpugpu.model import MOST_COUNT
from dlsim.errors import InputError
from dlsim.rounding import RELATIVE_ROUNDING, add_in_order, not_after
from dlsim.user_code import calling_user_code
from dlsim.validate import number, or_default, random_generator, whole


class EqualFinish(NamedTuple):
    """Shares of a divisible work, 0 for a device that would only start after the end T."""

    shares: list[Any]
    time: Any


def _devices(fixed: Sequence[Any], unit: Sequence[Any]) -> list[tuple[Any, Any]]:
    with calling_user_code("fixed and unit must be lists of numbers"):
        fixed, unit = list(fixed), list(unit)
    if len(fixed) != len(unit) or not unit:
        raise InputError(
            f"fixed and unit must have one entry per device; got {len(fixed)} and {len(unit)}"
        )
    for a, b in zip(fixed, unit, strict=True):
        number("fixed", a)
        number("unit", b, above=True)
    return list(zip(fixed, unit, strict=True))


def ideal_split(work: Any, fixed: Sequence[Any], unit: Sequence[Any]) -> EqualFinish:
    r"""Split a work so that all devices that take part finish together.

    .. math:: T = \frac{W + \sum_i a_i / b_i}{\sum_i 1 / b_i}, \qquad x_i = (T - a_i) / b_i

    over the devices with :math:`a_i < T`: the ideal curve of the optimiser.

    Parameters
    ----------
    work : float or Fraction
        W, positive.
    fixed, unit : sequence of float or Fraction
        A share x takes device i the time a_i + b_i x.

    Returns
    -------
    EqualFinish
        Shares and time; exact on Fractions.

    Raises
    ------
    InputError
        For a work or unit time that is not positive, or lists of different length.

    Examples
    --------
    >>> ideal_split(40, [2, 0], [1, 3])
    EqualFinish(shares=[29.5, 10.5], time=31.5)
    """
    number("work", work, above=True)
    devices = _devices(fixed, unit)
    taken, slope, finish = work, 0, None
    for a, b in sorted(devices):
        if finish is not None and a >= finish:
            break
        taken, slope = taken + a / b, slope + 1 / b
        finish = taken / slope
    shares = [max(finish - a, 0) / b for a, b in devices]
    return EqualFinish(shares, finish)


def amdahl_bound(parallel: Any, processors: Any) -> Any:
    r"""Bound the speed-up of a work of which a part p runs on n processors (Amdahl), at least 1.

    .. math:: S(p, n) = 1 / (1 - p + p / n)

    Paper C, section 3: "increased parallelism will only increase the performance of parallel
    code sections". It is `ideal_split` of p with the start-up 1 - p on every device; n may be
    infinite, and S is then for p = 1.

    >>> amdahl_bound(0.5, 4)
    1.6
    """
    number("parallel", parallel, 0, 1)
    number("processors", processors, 1, high=math.inf)
    rest = 1 - parallel + parallel / processors
    return 1 / rest if rest else math.inf


@dataclass(frozen=True)
class Adjustment:
    r"""How shares follow the measured rates, and the noise of the measurements.

    Parameters
    ----------
    damping : float
        :math:`\lambda` in [0, 1): how much of the old share is kept.
    least : float
        A share below it is given back for good, to the other devices in proportion; at
        most an equal share.
    noise : float
        Coefficient of variation of the log-normal noise (mean 1) of every measured time.
    seed : int
        Of the noise.

    Raises
    ------
    InputError
        For a value that is not allowed.
    """

    damping: Any = 0
    least: Any = 0
    noise: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        still = "a number of at least 0 and below 1, with which the shares would never move"
        number("damping", self.damping, 0, 1, below=True, rule=still)
        number("least", self.least)
        number("noise", self.noise)
        whole("seed", self.seed, 0, math.inf)

    def factors(self, rounds: int, devices: int) -> Any:
        """Return by what every measured time is multiplied, a row per round."""
        if not self.noise:
            return [[1] * devices] * rounds
        variance = np.log1p(self.noise * self.noise)
        normal = random_generator(self.seed).standard_normal((rounds, devices))
        return np.exp(np.sqrt(variance) * normal - variance / 2).tolist()

    def next_shares(self, work: Any, share: Sequence[Any], time: Sequence[Any]) -> list[Any]:
        """Return the next shares of a work, from the shares and times of a round."""
        rate = [x / t if x else 0 for x, t in zip(share, time, strict=True)]
        rates, kept = add_in_order(rate), self.damping
        moved = [
            kept * x + (1 - kept) * (work * r / rates) for x, r in zip(share, rate, strict=True)
        ]
        if not self.least:  # ever smaller, but not none, however many rounds there are
            return [x or math.ulp(0.0) for x in moved]
        moved = [x if x >= self.least * (1 - TOL) else 0 for x in moved]
        total = add_in_order(moved)
        return [work * x / total for x in moved]


@dataclass(frozen=True, eq=False)
class Adaptation:
    """The rounds of the optimiser."""

    rounds: pd.DataFrame
    work: Any
    fixed: list[Any]
    unit: list[Any]
    adjustment: Adjustment

    @property
    def makespans(self) -> pd.Series:
        """Return the time of each round, that of its slowest device."""
        return self.rounds.groupby("round")["time"].max().rename("makespan")

    @property
    def ideal(self) -> EqualFinish:
        """Return the split with equal finish, which no round can beat without noise."""
        return ideal_split(self.work, self.fixed, self.unit)

    def check(self) -> None:
        """Check shares, times and the rule of adjustment."""
        share, time = (
            self.rounds.pivot(index="round", columns="device", values=name).astype(float)
            for name in ("share", "time")
        )
        work, rule = float(self.work), self.adjustment
        damping, least = float(rule.damping), float(rule.least)
        rounds = list(share.index)
        require("no share is negative", (share >= 0).all(axis=1), rounds)
        sums = table_times_equal(share.sum(axis=1), work, 4 * work)
        require("the shares of a round are the whole work", sums, rounds)
        require("a device without a share takes no time", ((share > 0) | (time == 0)).all(axis=1))
        if not rule.noise:
            true = share * np.array(self.unit, float) + np.array(self.fixed, float)
            kept = (table_times_equal(time, true, 4 * true) | (share == 0)).all(axis=1)
            require("a share x takes a + b x", kept, rounds)
            best = float(self.ideal.time)
            beaten = not_after(best, time.max(axis=1), 4 * best)
            require("no round beats equal finish", beaten, rounds)
        rate = (share / time).fillna(0.0)
        wanted = work * rate.div(rate.sum(axis=1), axis=0)
        moved = damping * share + (1 - damping) * wanted
        moved = moved.where(moved >= least * (1 - RELATIVE_ROUNDING), 0.0)
        moved = work * moved.div(moved.sum(axis=1), axis=0)
        follows = table_times_equal(moved.iloc[:-1], share.iloc[1:], 4 * work).all(axis=1)
        require("the next shares follow the measured rates", follows, rounds[1:])


def adapt_split(
    work: Any,
    fixed: Sequence[Any],
    unit: Sequence[Any],
    rounds: int = 10,
    start: Sequence[Any] | None = None,
    adjustment: Adjustment | None = None,
) -> Adaptation:
    r"""Adjust shares round after round to the measured rates :math:`x_i / t_i`.

    .. math:: x_i' = \lambda x_i + (1 - \lambda)\, W \frac{x_i / t_i}{\sum_j x_j / t_j}

    Taken literally (``least=0``) a device whose start-up a_i exceeds the ideal T keeps an
    ever smaller share and goes on to cost a_i: the rounds then approach max(T, a_i), not T.

    Parameters
    ----------
    work : float or Fraction
        W of every round, positive.
    fixed, unit : sequence of float or Fraction
        A share x takes device i the time a_i + b_i x; a share of 0 takes none.
    rounds : int
        How many.
    start : sequence, optional
        First shares, positive, with sum W; equal by default. A share of 0 would never be
        measured again.
    adjustment : Adjustment, optional
        How the shares follow the rates; default at once, and without noise.

    Returns
    -------
    Adaptation
        Table of rounds; exact on Fractions where there is no noise.

    Raises
    ------
    InputError
        For a value that is not allowed.

    Examples
    --------
    >>> adapt_split(40, [0, 0], [1, 3], rounds=2).makespans.tolist()
    [60.0, 30.0]
    """
    number("work", work, above=True)
    rule = or_default("adjustment", adjustment, Adjustment)
    devices, rows = _devices(fixed, unit), []
    share = _first_shares(work, len(devices), start)
    if rule.least * len(devices) > work * (1 + TOL):
        raise InputError(
            f"least must be at most an equal share, {work / len(devices)}; got {rule.least!r}"
        )
    factors = rule.factors(whole("rounds", rounds, 1, MOST_COUNT), len(devices))
    for turn, factor in enumerate(factors):
        each = zip(devices, share, factor, strict=True)
        time = [(a + b * x) * f if x else 0 for (a, b), x, f in each]
        rows += [(turn, i, x, t) for i, (x, t) in enumerate(zip(share, time, strict=True))]
        share = rule.next_shares(work, share, time)
    table = pd.DataFrame(rows, columns=["round", "device", "share", "time"])
    return Adaptation(table, work, list(fixed), list(unit), rule)


def _first_shares(work: Any, devices: int, start: Sequence[Any] | None) -> list[Any]:
    """Return the first shares: equal ones, or a user's."""
    if start is None:
        return [work / devices] * devices
    with calling_user_code("start must be a list of shares"):
        share = list(start)
    for x in share:
        number("start", x, above=True)
    is_whole = table_times_equal(float(add_in_order(share)), float(work), 4 * float(work))
    if len(share) != devices or not is_whole:
        raise InputError(
            f"start must hold {devices} positive shares with sum {work}; got {share!r}"
        )
    return share
