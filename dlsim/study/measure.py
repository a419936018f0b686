"""Measures: from the tidy frame of a sweep to the points that a claim is judged at.

The module of each paper has a table of its claims: on which frames, by which function and with
which options a claim is measured (`on`, `measure_claims`). The function returns one row per point:
``point`` (its name), ``estimate``, ``low``, ``high`` (95 % interval over replicates), ``n``, the
``values`` of the replicates, whose mean is the estimate, and the place of the point. Policies that
met the same workload are compared by the difference within each replicate.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.study.stats import ENDS, LEVEL, column_means, reduction, summary
from dlsim.validate import format_value

#: Columns whose value says enough, or that have a shorter name.
_SHORT = {"clusters": "K", "heterogeneity": "", "kind": "", "numbers": "", "what": ""}


class Measure(NamedTuple):
    """How a claim is measured: the names of frames, a function of them, and its options."""

    frames: tuple[str, ...]
    of_frames: Callable[..., pd.DataFrame | None]
    options: Mapping[str, Any]
    readings: bool = True

    def function(self, **frames: pd.DataFrame) -> pd.DataFrame | None:
        """Return the points of the claim from frames by their names, None without any."""
        return self.of_frames(*(frames[name] for name in self.frames), **self.options)


#: Every measure by the id of its claim, known once the module of the paper is imported.
MEASURES: dict[str, Measure] = {}


def on(
    frames: str, function: Callable[..., pd.DataFrame | None], readings: bool = True, **options: Any
) -> Measure:
    """Return a row of a paper's table of measures.

    Parameters
    ----------
    frames : str
        The names of the frames that the claim is measured on, with blanks between, as
        `dlsim.study.judge` and `dlsim.study.map_of_readings` are given them; the function takes
        the frames in this order.
    function : callable
        Returns the points of the claim, None where there is nothing to measure.
    readings : bool
        Whether the map of readings has a row for the claim.
    **options
        Further arguments of the function.
    """
    return Measure(tuple(frames.split()), function, options, readings)


def measure_claims(paper: str, table: Mapping[str, Measure]) -> None:
    """Register the measures of a paper's claims, by the numbers of the claims."""
    MEASURES.update({f"{paper}-{number}": measure for number, measure in table.items()})


def pivot_policies(
    frame: pd.DataFrame,
    by: Sequence[str],
    column: str = "ratio",
    columns: str | Sequence[str] = "policy",
) -> pd.DataFrame:
    """Pivot a sweep's frame to one column per policy, one row per point and replicate."""
    columns = columns if isinstance(columns, str) else list(columns)
    return frame.pivot(index=[*by, "replicate"], columns=columns, values=column)


def name_points(table: pd.DataFrame, by: Sequence[str], what: str = "") -> pd.DataFrame:
    """Name the points of a table of estimates after their place."""
    names = []
    for row in table.to_dict("records"):  # of all columns: older pandas has no record of none
        place = [f"{_SHORT.get(name, name)} {format_value(row[name])}".strip() for name in by]
        names.append(", ".join([what, *place] if what else place))
    return table.assign(point=pd.Series(names, index=table.index, dtype=object))


def estimates(frame: pd.DataFrame, by: Sequence[str], column: str) -> pd.DataFrame:
    """Estimate one column of a tidy frame at every point."""
    return name_points(summary(frame, list(by), column, samples=True), by)


def join_points(parts: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Put tables of points below each other, each point under the name of its table."""
    tables = [table.assign(point=f"{name}, " + table["point"]) for name, table in parts.items()]
    return pd.concat(tables, ignore_index=True)


def points(values: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Estimate every column of paired values at every point."""
    flat = values if "replicate" in values else values.reset_index()
    columns = [str(name) for name in flat if name not in (*by, "replicate")]
    groups: Any = flat.groupby(list(by), sort=False) if by else [((), flat)]
    parts = [
        column_means(rows[columns]).assign(
            values=list(rows[columns].to_numpy(float).T),
            what=columns,
            **dict(zip(by, place, strict=True)),
        )
        for place, rows in groups
        if len(rows) and columns
    ]
    if not parts:
        return pd.DataFrame(columns=["what", *by, *ENDS, "n", "values", "point"])
    table = pd.concat(parts, ignore_index=True)
    place = table["what"].map(columns.index)
    table = table.loc[place.sort_values(kind="stable").index].reset_index(drop=True)
    return name_points(table, ["what", *by])


def mark_exact(table: pd.DataFrame) -> pd.DataFrame:
    """Give points that are known without error an interval of width 0."""
    return table.assign(low=table["estimate"], high=table["estimate"], values=None)


def with_medians(table: pd.DataFrame) -> pd.DataFrame:
    """Give points whose runs are all equal the interval of the median over the runs.

    Equal runs say nothing of their spread. But the median lies between the least and the greatest
    of n independent runs with probability 1 - 2^(1 - n), whatever their distribution. Runs are
    counted, not the cases in them, which come in clusters. There is no interval where so few runs
    do not hold all points of the table at once with 95 %.
    """
    n = table["n"].astype(float)
    is_sure = (1 - 2 ** (1 - n)) ** len(table) >= LEVEL
    equal = is_sure & table["values"].map(lambda row: np.ptp(row) == 0).astype(bool)
    return table.assign(values=table["values"].astype(object).where(~equal, None))


def with_exact_bounds(table: pd.DataFrame, total: "pd.Series[Any]") -> pd.DataFrame:
    """Give points that are shares of a total of independent cases exact bounds if no run varies.

    `total` has the index of the table, NaN where there is none; where runs do vary, they tell
    more than the count. One run says nothing of how they vary.
    """
    same = table["values"].map(lambda row: row is None or (len(row) > 1 and np.ptp(row) == 0))
    same = same.astype(bool) & total.notna()
    return table.assign(
        total=total.where(same), values=table["values"].astype(object).where(~same, None)
    )


def differences(table: pd.DataFrame, pairs: Mapping[str, tuple[Any, Any]]) -> pd.DataFrame:
    """Subtract columns of paired values: for every name the first minus the second."""
    return pd.DataFrame({name: table[a] - table[b] for name, (a, b) in pairs.items()})


def difference_to(table: pd.DataFrame, policy: str, over: Sequence[str]) -> pd.DataFrame:
    """Subtract the column of `policy` from those of its rivals, the columns `over`."""
    return table[list(over)].sub(table[policy], axis=0)


def slope_over(table: pd.DataFrame, over: str) -> pd.DataFrame:
    """Return how much each column rises over a whole axis, a level of the index, per replicate.

    It is the least-squares slope times the length of the axis, NaN where a level is missing.
    """
    levels = np.array(sorted(table.index.unique(over)), dtype=float)
    apart = levels - levels.mean()
    squares = float(apart @ apart) or math.nan  # one level has no slope
    weights = pd.Series(apart * np.ptp(levels) / squares, index=levels)
    scale = weights.loc[table.index.get_level_values(over).astype(float)].to_numpy()
    rest = [str(name) for name in table.index.names if name != over]
    groups = table.mul(scale, axis=0).groupby(rest, sort=False)
    is_whole = groups.count().eq(groups.size(), axis=0) & (groups.count() == len(levels))
    return groups.sum().where(is_whole)


def trend(table: pd.DataFrame, over: str, text: str = "{what} over {over}") -> pd.DataFrame:
    """Estimate the `slope_over` of each column over an axis.

    ``steps`` counts neighbours along it and ``wrong`` those whose means fall. An empty table has
    no points.
    """
    by = [str(name) for name in table.index.names if name not in (over, "replicate")]
    if table.empty:
        return points(table, by)
    means = table.groupby([over, *by]).mean()
    falls = means.groupby(by).diff() if by else means.diff()
    names = {what: text.format(what=what, over=over) for what in table}
    wrong = (falls < 0).groupby(by).sum() if by else (falls < 0).sum().to_frame().T
    made = points(slope_over(table, over).rename(columns=names), by)
    flat = wrong.rename(columns=names).reset_index() if by else wrong.rename(columns=names)
    falling = flat.melt(by, var_name="what", value_name="wrong")
    return made.merge(falling, on=["what", *by]).assign(steps=table.index.unique(over).size - 1)


def negate_interval(table: pd.DataFrame, about: float = 0.0) -> pd.DataFrame:
    """Turn a saving x into an excess -x, or into the ratio 1 - x."""
    ends = zip(ENDS, ("estimate", "high", "low"), strict=True)
    other = {"values": [about - row for row in table["values"]]} if "values" in table else {}
    return table.assign(**{name: about - table[end] for name, end in ends}, **other)


def ratio(
    frame: pd.DataFrame, numerator: str, denominator: str, by: Sequence[str], less: float = 0.0
) -> pd.DataFrame:
    """Estimate the mean of one column over the mean of another at every point, less a number."""
    saved = reduction(frame[numerator], frame[denominator], frame[list(by)])
    return negate_interval(saved, 1.0 - less)
