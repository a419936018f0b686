"""Estimates with confidence intervals, over replicates and over pairs of replicates.

All intervals are Student's t intervals over independent replicates. Two policies that met
the same workloads are compared pair by pair: what the workloads have in common cancels.

A NaN is never dropped in silence: one NaN replicate makes the estimate and its interval
NaN. One replicate has an estimate and no interval (NaN); replicates that are all equal
have an interval of width zero.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dlsim.errors import InputError
from dlsim.given import number

RESULT = ("estimate", "low", "high", "n")


class Interval(NamedTuple):
    """An estimate and its confidence interval."""

    estimate: float
    low: float
    high: float
    n: int


def _names(columns: str | Sequence[str]) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def _check(frame: pd.DataFrame, columns: Sequence[str], groups: Sequence[str]) -> None:
    for name in columns:
        if name not in frame:
            known = ", ".join(map(str, frame.columns))
            raise InputError(f"the frame has no column {name!r}; it has {known}")
        if columns.count(name) > 1 or (name in groups and name in RESULT):
            raise InputError(f"column {name!r} has two meanings here: rename it, or name it once")


def _numbers(values: pd.Series) -> pd.Series:
    try:
        return values.astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(f"column {values.name!r} must hold numbers: {error}") from error


def _grouped(values: pd.Series, keys: pd.DataFrame) -> Any:
    by = [keys[name] for name in keys] or [pd.Series(0, index=values.index)]
    return values.groupby(by, sort=False, dropna=False)


def _half(spread: Any, n: Any, level: float) -> Any:
    """Return half the width of Student's t interval of means with a standard deviation."""
    rule = "between 0 and 1, such as 0.95"
    level = float(number("level", level, 0, 1, above=True, below=True, rule=rule))
    return stdtrit(n - 1.0, (1 + level) / 2) * spread / np.sqrt(n)


def column_means(values: pd.DataFrame, level: float = 0.95) -> pd.DataFrame:
    """Estimate the mean of every column: one row per column, in their order."""
    x, n = values.to_numpy(dtype=float), len(values)
    equal = (x == x[0]).all(axis=0)
    mean = np.where(equal, x[0], x.mean(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = x.std(axis=0, ddof=1) if n > 1 else np.full(len(mean), np.nan)
    half = _half(np.where(equal & (n > 1), 0.0, spread), n, level)
    return pd.DataFrame(dict(zip(RESULT, (mean, mean - half, mean + half, n), strict=True)))


def _intervals(values: pd.Series, keys: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return `keys`, estimate, low, high, n: one row per group, in order of appearance."""
    table = _grouped(values, keys).agg(["mean", "std", "min", "max", "size", "count"])
    equal = table["min"] == table["max"]
    mean = table["mean"].where(~equal, table["min"]).where(table["count"] == table["size"])
    spread = table["std"].where(~equal | (table["size"] < 2), 0.0)
    half = _half(spread, table["size"], level)
    columns = (mean, mean - half, mean + half, table["size"])
    result = pd.DataFrame(dict(zip(RESULT, columns, strict=True)))
    return result.reset_index(drop=keys.columns.empty)


def mean_interval(values: Any, level: float = 0.95) -> Interval:
    """Estimate a mean from independent values.

    >>> mean_interval([1.0, 2.0, 3.0]).n
    3
    """
    sample = _numbers(pd.Series(np.ravel(values), name="values"))
    table = _intervals(sample, pd.DataFrame(index=sample.index), level)
    if table.empty:
        return Interval(np.nan, np.nan, np.nan, 0)
    estimate, low, high, n = table.iloc[0]
    return Interval(float(estimate), float(low), float(high), int(n))


def summary(
    frame: pd.DataFrame, by: str | Sequence[str], column: str, level: float = 0.95
) -> pd.DataFrame:
    """Estimate the mean of a column per group of rows."""
    names = _names(by)
    _check(frame, [*names, column], names)
    return _intervals(_numbers(frame[column]), frame[names], level)


def _pairs(
    frame: pd.DataFrame, column: str, by: str, a: Any, b: Any, at: list[str], pair: list[str]
) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return the columns `at` and both sides' values: one row per pair."""
    keys, sides = [*at, *pair], []
    _check(frame, [column, by, *keys], at)
    for value in (a, b):
        side = frame.loc[frame[by] == value, [*keys, column]]
        if side.empty:
            known = ", ".join(map(repr, frame[by].unique()))
            raise InputError(f"no row has {by} = {value!r}; there are {known}")
        if side.duplicated(keys).any():
            raise InputError(
                f"several rows have {by} = {value!r} and the same {', '.join(keys)}: name in `at`"
                " the other columns of the grid, in `pair` what marks a pair"
            )
        sides.append(side)
    for one, other in (sides, sides[::-1]):
        both = one[keys].merge(other[keys], on=keys, how="left", indicator=True)
        for row in both[both["_merge"] != "both"].to_dict("records"):
            where = ", ".join(f"{name} = {row[name]!r}" for name in keys)
            raise InputError(f"only one of {by} = {a!r} and {b!r} has a row at {where}: run both")
    both = sides[0].merge(sides[1], on=keys, suffixes=(" a", " b"))
    return both[at], *(_numbers(both[f"{column} {side}"]) for side in "ab")


def paired_difference(
    frame: pd.DataFrame, column: str, by: str, a: Any, b: Any, at: str | Sequence[str] = (),
    pair: str | Sequence[str] = ("replicate",), level: float = 0.95,
) -> pd.DataFrame:  # fmt: skip
    """Estimate how much larger a column is for one policy than for another, pair by pair."""
    keys, left, right = _pairs(frame, column, by, a, b, _names(at), _names(pair))
    return _intervals(left - right, keys, level)


def relative_reduction(
    frame: pd.DataFrame, column: str, by: str, a: Any, b: Any, at: str | Sequence[str] = (),
    pair: str | Sequence[str] = ("replicate",), level: float = 0.95,
) -> pd.DataFrame:  # fmt: skip
    r"""Estimate by which fraction a column is smaller for one policy than for another.

    .. math:: 1 - \bar a / \bar b, \qquad
              \text{from the residuals } (a_i - (\bar a / \bar b)\, b_i) / \bar b

    by the delta method: their standard error is that of the ratio of the means.
    """
    keys, left, right = _pairs(frame, column, by, a, b, _names(at), _names(pair))
    below = _grouped(right, keys).transform("mean").replace(0.0, np.nan)
    ratio = _grouped(left, keys).transform("mean") / below
    # The residuals of a group have mean 0, so that these values have the estimate as mean.
    return _intervals(1 - ratio - (left - ratio * right) / below, keys, level)
