"""Estimates with confidence intervals, over replicates and over pairs of replicates.

Curves are drawn with Student's t intervals over independent replicates. Two policies that
ran on the same workloads are compared pair by pair, so that the variation of the workloads
cancels. A NaN is never dropped silently: one NaN replicate makes the estimate and its interval
NaN. A single replicate gives an estimate and no interval (NaN); replicates that are all equal
give an interval of width zero.

Claims are judged by the stricter intervals of `family`: for one point and for all points of a
family at once, and without the assumption that replicates are normally distributed.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv, stdtrit

from dlsim.errors import InputError
from dlsim.validate import require_table

#: An estimate and the ends of its interval: columns of every table of estimates.
ENDS = ("estimate", "low", "high")
#: The ends of the intervals of `family`: of one point alone, then of all points at once.
INTERVAL_ENDS = ["low", "high", "least", "most"]
#: Probability that an interval covers the true value.
LEVEL = 0.95


def _names(columns: str | Sequence[str]) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns)


def _check(frame: pd.DataFrame, columns: Sequence[str], groups: Sequence[str]) -> None:
    require_table("rows", frame, columns, unique=False)
    for name in columns:
        if columns.count(name) > 1 or (name in groups and name in (*ENDS, "n")):
            raise InputError(f"column {name!r} has two meanings here: rename it, or name it once")


def _numbers(values: pd.Series) -> pd.Series:
    try:
        return values.astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(f"column {values.name!r} must hold numbers: {error}") from error


def _group_values(values: pd.Series, keys: pd.DataFrame) -> Any:
    by = [keys[name] for name in keys] or [pd.Series(0, index=values.index)]
    return values.groupby(by, sort=False, dropna=False)


def _student(mean: Any, spread: Any, n: Any) -> pd.DataFrame:
    """Return Student's t intervals of means with a standard deviation."""
    half = stdtrit(n - 1.0, (1 + LEVEL) / 2) * spread / np.sqrt(n)
    return pd.DataFrame({"estimate": mean, "low": mean - half, "high": mean + half, "n": n})


#: Fewest replicates that are resampled, and number of resamples per family.
MIN_RESAMPLED, BOOTSTRAP_RESAMPLES = 5, 2000
#: Most replicates for which quantiles of lognormal samples are simulated, and the samples drawn.
MAX_SKEWED, SKEWED_DRAWS = 30, 400_000
#: A sample with a smaller share of distinct values has ties: many of its resamples are constant.
MIN_DISTINCT_SHARE = 0.75


@lru_cache(maxsize=64)
def _weights(n: int, count: int) -> Any:
    """Return how often each of n replicates is drawn, divided by n: one column per resample."""
    often = np.random.default_rng([n, count]).multinomial(n, np.full(n, 1 / n), size=count)
    return np.ascontiguousarray(often.T / n)


def _studentized(samples: Any, count: int) -> Any:
    """Return the t statistics of resamples of columns: one row per point, a column per resample."""
    n, apart = samples.shape[1], samples - samples.mean(axis=1, keepdims=True)
    weights = _weights(n, count)
    t = apart @ weights
    squared = apart**2 @ weights
    squared -= t**2
    flat = squared <= 1e-18 * (apart**2).mean(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        t /= np.sqrt(squared, out=squared)
    if flat.any():
        np.copysign(np.inf, apart @ weights, out=t, where=flat)
    # wider by n / (n - 1), so that families of five skewed replicates keep their level: notebook 90
    t *= n / np.sqrt(n - 1)
    return t


@lru_cache(maxsize=MAX_SKEWED)
def _simulate_lognormal_t(n: int) -> Any:
    """Return the lowest tenth of simulated t statistics of n lognormal replicates, ascending."""
    rng, parts = np.random.default_rng(n), []
    for _ in range(8):
        rows = np.exp(rng.standard_normal((SKEWED_DRAWS // 8, n)))
        parts.append((rows.mean(axis=1) - np.exp(0.5)) / (rows.std(axis=1, ddof=1) / np.sqrt(n)))
    return np.sort(np.concatenate(parts))[: SKEWED_DRAWS // 10]


def skewed_quantile(n: int, tail: float) -> float:
    """Return the negated lower quantile, at probability `tail`, of t of n lognormal replicates.

    For more than 30 replicates it returns that of 30, which is larger: the value falls with n.
    """
    return float(-_simulate_lognormal_t(min(n, MAX_SKEWED))[int(tail * SKEWED_DRAWS)])


def _ends(t: Any, tail: float) -> tuple[Any, Any]:
    """Return the quantiles of each row with probability `tail` below, and above."""
    k = int(tail * (t.shape[-1] - 1))
    ordered = np.partition(t, (k, t.shape[-1] - 1 - k))
    return ordered[..., k], ordered[..., -1 - k]


def family(samples: Sequence[Any], level: float = LEVEL) -> pd.DataFrame:
    r"""Return intervals of the means of a family of samples: each alone, and all at once.

    Samples with the same number of replicates are resampled together, replicate i of one with
    replicate i of the others, so that the correlation of the points is kept. The intervals of a
    point are

    .. math:: [\bar x - q_+ s/\sqrt n, \quad \bar x - q_- s/\sqrt n],

    where :math:`q_\pm` are quantiles of the studentized means of resamples (bootstrap-t), and at
    least Student's. For all points at once they are quantiles of the largest and the smallest of
    these means (max-t), but at most those that lognormal replicates (skewness 6) would need at
    Sidak's level: otherwise one outlier at one point would widen the intervals of all others.
    Samples of fewer than five replicates, and samples with ties, take Student's quantiles, for all
    points at once at Sidak's level; skewed samples with ties take the lognormal quantiles on the
    side of the long tail. Samples without any spread have ends NaN.

    Columns of the result: estimate, low, high (one point alone, with probability `level`), least,
    most (all at once), se, n; one row per sample.
    """
    rows = [np.asarray(sample, dtype=float) for sample in samples]
    n, m, tail = np.array([len(row) for row in rows]), max(1, len(rows)), (1 - level) / 2
    equal = np.array([len(row) > 0 and bool((row == row[0]).all()) for row in rows], dtype=bool)
    mean = np.array([row[0] if same else row.mean() for row, same in zip(rows, equal, strict=True)])
    spread = [row.std(ddof=1) if len(row) > 1 else np.nan for row in rows]
    error = np.array(spread) / np.sqrt(n)
    known = np.isfinite(error) & ~equal
    degrees, sidak = np.maximum(n, 2) - 1.0, (1 + level ** (1 / m)) / 2
    alone, at_once = stdtrit(degrees, 1 - tail), stdtrit(degrees, sidak)
    low, high, least, most = -alone, alone.copy(), -at_once, at_once.copy()
    tied = np.array(
        [len(np.unique(row)) < MIN_DISTINCT_SHARE * len(row) for row in rows], dtype=bool
    )
    for k in np.flatnonzero(known & tied & (n >= MIN_RESAMPLED)):
        one, all_of_them = skewed_quantile(n[k], tail), skewed_quantile(n[k], 1 - sidak)
        third = ((rows[k] - mean[k]) ** 3).sum()  # positive if the long tail is on the right
        if third > 0:
            low[k], least[k] = -one, -all_of_them
        elif third < 0:
            high[k], most[k] = one, all_of_them
    drawn = known & ~tied & (n >= MIN_RESAMPLED)
    if drawn.any():
        count = BOOTSTRAP_RESAMPLES * max(1, round(0.05 / (1 - level)))
        places = [np.flatnonzero(drawn & (n == size)) for size in np.unique(n[drawn])]
        t = np.concatenate([_studentized(np.stack([rows[k] for k in p]), count) for p in places])
        drawn = np.concatenate(places)
        below, above = _ends(t, tail)
        low[drawn], high[drawn] = np.minimum(low[drawn], below), np.maximum(high[drawn], above)
        below, above = _ends(t.min(axis=0), tail)[0], _ends(t.max(axis=0), tail)[1]
        bound = np.array([skewed_quantile(k, 1 - sidak) for k in n[drawn]])
        least[drawn] = np.minimum(low[drawn], np.maximum(below, -bound))
        most[drawn] = np.maximum(high[drawn], np.minimum(above, bound))
    ends = {"low": high, "high": low, "least": most, "most": least}
    table = {name: np.where(known, mean - q * error, np.nan) for name, q in ends.items()}
    return pd.DataFrame({"estimate": mean, **table, "se": error, "n": n})


def share_bounds(count: Any, total: Any, points: int = 1) -> tuple[Any, Any]:
    """Return the exact (Clopper-Pearson) bounds of shares, for `points` of them at once.

    >>> low, high = share_bounds(0, 100)
    >>> print(low, round(float(high), 4))
    0.0 0.0362
    """
    k, n = np.asarray(count, dtype=float), np.asarray(total, dtype=float)
    tail = (1 - LEVEL ** (1 / points)) / 2
    low = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), n - k + 1, tail), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1e-9), 1 - tail), 1.0)
    return low, high


def column_means(values: pd.DataFrame) -> pd.DataFrame:
    """Estimate the mean of every column: one row per column, in their order."""
    x, n = values.to_numpy(dtype=float), len(values)
    equal = (x == x[0]).all(axis=0)
    mean = np.where(equal, x[0], x.mean(axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = x.std(axis=0, ddof=1) if n > 1 else np.full(len(mean), np.nan)
    return _student(mean, np.where(equal & (n > 1), 0.0, spread), n)


def _intervals(values: pd.Series, keys: pd.DataFrame, samples: bool) -> pd.DataFrame:
    """Return `keys`, estimate, low, high, n (and values): one row per group, in their order."""
    table = _group_values(values, keys).agg(["mean", "std", "min", "max", "size", "count"])
    equal = table["min"] == table["max"]
    mean = table["mean"].where(~equal, table["min"]).where(table["count"] == table["size"])
    spread = table["std"].where(~equal | (table["size"] < 2), 0.0)
    result = _student(mean, spread, table["size"])
    if samples:
        result["values"] = [rows.to_numpy(float) for _, rows in _group_values(values, keys)]
    return result.reset_index(drop=keys.columns.empty)


def summary(
    frame: pd.DataFrame, by: str | Sequence[str], column: str, samples: bool = False
) -> pd.DataFrame:
    """Estimate the mean of a column per group of rows; with `samples`, keep their ``values``."""
    names = _names(by)
    _check(frame, [*names, column], names)
    return _intervals(_numbers(frame[column]), frame[names], samples)


def reduction(values: pd.Series, reference: pd.Series, keys: pd.DataFrame) -> pd.DataFrame:
    r"""Estimate by which fraction values are smaller than a reference, in pairs, for each group.

    .. math:: 1 - \bar a / \bar b, \qquad
              \text{from the residuals } (a_i - (\bar a / \bar b)\, b_i) / \bar b

    Here a are the values and b the reference; `keys` group the rows. The standard error of these
    residuals is that of the ratio of the means (delta method).
    """
    left, right = _numbers(values), _numbers(reference)
    below = _group_values(right, keys).transform("mean").replace(0.0, np.nan)
    ratio = _group_values(left, keys).transform("mean") / below
    # The residuals of a group have mean 0, so the mean of these values is the estimate.
    return _intervals(1 - ratio - (left - ratio * right) / below, keys, samples=True)


def relative_reduction(
    frame: pd.DataFrame,
    column: str,
    by: str,
    value: Any,
    reference: Any,
    at: str | Sequence[str] = (),
) -> pd.DataFrame:
    """Estimate the `reduction` of a column from a reference policy to another, in pairs of runs.

    Parameters
    ----------
    frame : DataFrame
        A tidy frame with the columns `column`, `by`, ``replicate`` and those of `at`.
    column : str
        What is compared, such as "makespan".
    by : str
        The column that names the policy.
    value, reference
        The two values of `by` that are compared: 1 - value / reference is estimated.
    at : str or sequence of str
        The other columns of the points: one estimate for each of their combinations.

    Raises
    ------
    InputError
        If a policy has no row, several rows of one replicate, or a row without its partner.
    """
    places = _names(at)
    keys = [*places, "replicate"]
    _check(frame, [column, by, *keys], places)
    one, other = (frame.loc[frame[by] == name, [*keys, column]] for name in (value, reference))
    both = one.merge(other, on=keys, suffixes=(" value", " reference"))
    is_unique = not (one.duplicated(keys).any() or other.duplicated(keys).any())
    if both.empty or not (is_unique and len(one) == len(other) == len(both)):
        what = f"{by} = {value!r} and {reference!r} each need one row per {', '.join(keys)}"
        raise InputError(f"{what}: run both, and name in `at` the other columns of the points")
    return reduction(both[f"{column} value"], both[f"{column} reference"], both[places])
