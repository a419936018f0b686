"""Tables of results as LaTeX that fits a column of a paper: pivoted, with rounded numbers."""

import math
from typing import Any

import pandas as pd

from dlsim.study.stats import ENDS

#: Columns of a table of estimates that are no place of a point, or only name it.
_MEASURED = frozenset((*ENDS, "least", "most", "n", "values", "point", "group", "part"))
#: Most values of a column that become columns of the LaTeX table.
MAX_COLUMNS_ACROSS = 6
#: Significant digits of an interval's half width, and of a number that has none.
DIGITS_OF_HALF_WIDTH, DIGITS = 2, 3


def _decimals(value: float, digits: int) -> int:
    """Return how many decimals leave a number so many significant digits.

    >>> _decimals(0.0181, 2), _decimals(12.3, 2), _decimals(1234.0, 2)
    (3, 0, 0)
    """
    return max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0


def write_rounded(value: float) -> str:
    """Write a number with three significant digits, from 100 on as a whole number.

    >>> write_rounded(0.04567), write_rounded(8489.78), write_rounded(10.0)
    ('0.0457', '8490', '10')
    """
    return f"{value:.0f}" if 100 <= abs(value) < 1e9 else f"{value:.{DIGITS}g}"


def write_estimate(estimate: float, low: float, high: float) -> str:
    r"""Write an estimate with its interval, rounded to two digits of the half width.

    An interval that is not the same on both sides stands in brackets.

    >>> print(write_estimate(0.44319, 0.42513, 0.46125))
    $0.443 \pm 0.018$
    >>> print(write_estimate(0.2, 0.05, 0.29))
    $0.20$ [$0.05$, $0.29$]
    >>> print(write_estimate(0.2, float("nan"), float("nan")))
    $0.2$
    """
    half = (high - low) / 2
    if math.isnan(estimate):
        return "--"
    if not half > 0:
        return f"${write_rounded(estimate)}$"
    places = _decimals(half, DIGITS_OF_HALF_WIDTH)
    number = f"${estimate:.{places}f}"
    if f"{high - estimate:.{places}f}" == f"{estimate - low:.{places}f}":
        return rf"{number} \pm {half:.{places}f}$"
    return f"{number}$ [${low:.{places}f}$, ${high:.{places}f}$]"


def _write_plain(value: Any) -> Any:
    is_number = isinstance(value, float) and not math.isnan(value)
    return f"${write_rounded(value)}$" if is_number else _escape(value)


def _escape(value: object) -> str:
    """Return a text as LaTeX shows it."""
    text = "" if isinstance(value, float) and math.isnan(value) else str(value)
    signs = {one: "\\" + one for one in "&%$#_{}"}
    signs |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(signs.get(character, character) for character in text)


def latex_table(frame: pd.DataFrame) -> str:
    """Return a table as LaTeX for the package booktabs.

    In a table of estimates the interval stands beside each number, places that are the same in
    all rows are left out, and the place with the fewest values (at most `MAX_COLUMNS_ACROSS`)
    becomes the columns. Other tables keep their shape.
    """
    if not set(ENDS) <= set(frame.columns):
        shown = frame.drop(columns="values", errors="ignore").map(_write_plain)
        return shown.rename(columns=_escape).to_latex(index=False)
    places = _places(frame)
    cells = [write_estimate(*row) for row in frame[list(ENDS)].itertuples(index=False)]
    table = frame[places].map(_write_place).rename(columns=_escape).assign(estimate=cells)
    counts = {_escape(name): frame[name].nunique() for name in places}
    across = min(counts, key=lambda name: counts[name], default="")
    rest = [name for name in counts if name != across]
    if not rest or counts[across] > MAX_COLUMNS_ACROSS or table.duplicated(list(counts)).any():
        return table.to_latex(index=False)
    rows, columns = table[rest].drop_duplicates(), list(table[across].drop_duplicates())
    wide = table.pivot(index=rest, columns=across, values="estimate").fillna("--")
    wide = wide[columns].rename_axis(columns=None).reset_index()
    return rows.merge(wide, on=rest).to_latex(index=False)


def _places(frame: pd.DataFrame) -> list[str]:
    """Return the columns that say which point a row is of.

    They are the columns before the estimate and those of texts; then as many further ones as tell
    all rows apart. A column that is the same in all rows is left out.
    """
    names = [name for name in frame.columns if name not in _MEASURED and frame[name].nunique() > 1]
    before = frame.columns[: frame.columns.get_loc("estimate")]
    texts = frame.select_dtypes(exclude="number").columns
    places = [name for name in names if name in before or name in texts]
    for name in names:
        is_enough = bool(places) and not frame.duplicated(places).any()
        if name not in places and not is_enough:
            places.append(name)
    return places


def _write_place(value: object) -> str:
    return _escape(f"{value:g}" if isinstance(value, float) else value)
