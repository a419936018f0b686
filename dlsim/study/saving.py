"""Save the numbers behind a picture, and the picture, with the shipped numbers in grey.

A quick run has wide intervals and cannot show what was found at full scale. Each of its pictures
therefore shows both: what the run measured in colours, and behind it the shipped means with their
95 % intervals in grey.

A picture says by itself which numbers it shows. A drawn point belongs to the row of the table whose
place it stands at and whose estimate it shows (or a hundred times of it, in percent), and the
points of a line belong to rows that differ only in what is along the axis. Behind each such line
come the shipped rows of the same places. What is not recognised has nothing in grey behind it.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dlsim.files import read_csv
from dlsim.study.claims import reference_of
from dlsim.study.fingerprint import name_experiment
from dlsim.study.results import LATEX_VARIABLE, places_of
from dlsim.study.session import current, has_rows, note_missing
from dlsim.study.stats import ENDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

CAPTION = (
    "Grey lines, bars and hatched bands: full scale, as shipped with dlsim "
    "(means with 95 % intervals)"
)
LINE, BAND, HATCH = "0.6", "0.85", "0.75"
#: What a picture may show instead of an estimate: itself, or percent.
UNITS = (1.0, 100.0)
#: How close a drawn number must be to that of the table, which has twelve digits.
TOLERANCE = 1e-9
#: A point may stand this part of the way to the next place aside of its own.
ASIDE = 0.45


def save(
    name: str,
    table: pd.DataFrame | None = None,
    figure: Any = None,
    formats: Sequence[str] = (),
    latex: bool = False,
    policies: Iterable[str] = (),
    needs: str = "",
    within: tuple[float, float] | None = None,
) -> None:
    """Write the numbers behind a picture, and the picture, under an id of data/figures.toml.

    Parameters
    ----------
    name : str
        Name of the files: results/.../data/<name>.csv and .../figures/<name>.png.
    table : DataFrame, optional
        The numbers; a column ``values`` of replicates is left out.
    figure : Figure, Axes or a seaborn grid, optional
        The picture; by default the current figure of pyplot, if this cell made it. It is shown in
        the notebook and closed: a change after `save` needs another `save` with the figure.
        It is left out, with a line that says so, where the table has no rows. In a smaller run
        than that at full scale the numbers that dlsim ships stand in grey behind its own.
    formats : sequence of {"svg", "pdf"}
        Further formats of the picture.
    latex : bool
        Whether the table is written as data/<name>.tex, too: pivoted, with rounded numbers, so that
        it fits a column of a paper (`dlsim.study.results.latex_table`).
    policies : iterable of str
        Labels that the table's column ``policy`` should have; a line says which are missing.
    needs : str
        What the line about an empty table says, such as "the set-up cost 0 in setups".
    within : tuple of two float, optional
        The least and the greatest number that can be, in the unit of the table, such as (0, 1) for
        shares. An interval in grey ends there.
    """
    import matplotlib.pyplot as plt

    here = current()
    results = here.folder_of_results
    if figure is None and plt.get_fignums() and plt.gcf().number not in here.earlier_figures:
        figure = plt.gcf()
    if table is not None and not has_rows(table, name, needs):
        if figure is not None:
            plt.close(getattr(figure, "figure", figure))
        return
    drawn = getattr(figure, "figure", figure)
    if table is not None:
        path = results.table(name, table)
        if latex or os.environ.get(LATEX_VARIABLE):
            results.latex(name, table)
        if drawn is not None:
            draw_shipped(path, drawn, within)
    if drawn is not None:
        results.figure(name, drawn, formats)
    if table is not None and policies:
        note_missing(table, policies)


def draw_shipped(table: Path, figure: "Figure", within: tuple[float, float] | None = None) -> None:
    """Draw the shipped numbers behind a picture of the table that was just written.

    Nothing is drawn at full scale, for another experiment than the shipped one, or where no table
    with the same columns is shipped. A picture that is written again gets nothing more.
    """
    here = current()
    if CAPTION in [text.get_text() for text in figure.texts]:
        return
    reference = reference_of(here.paper).with_name(table.name)
    if here.scale == "full" or not reference.is_file() or name_experiment([None]) == "changed":
        return
    own, shipped = read_csv(table, {}), read_csv(reference, {})
    if not set(ENDS) <= set(own.columns) or set(own.columns) != set(shipped.columns):
        return
    keys = list(dict.fromkeys([*places_of(own), *places_of(shipped)]))
    for frame in (own, shipped):
        frame[keys] = frame[keys].astype(object).where(frame[keys].notna(), "")
    if within:
        shipped[["low", "high"]] = shipped[["low", "high"]].clip(*within)
    shipped, used, has_drawn = shipped.drop_duplicates(keys), set[tuple[Any, ...]](), False
    for ax in figure.axes:
        for line in list(ax.lines):
            for unit in UNITS:
                rows = _rows_of(ax, line, own, keys, unit, used)
                if rows is not None:
                    found = rows[keys].merge(shipped, "left", keys)[list(ENDS)]
                    has_drawn |= _draw_behind(ax, line, unit * found.to_numpy(dtype=float))
                    break
    if has_drawn:
        figure.text(0.01, -0.01, CAPTION, color="0.35", fontsize=9, va="top")


def _rows_of(
    ax: "Axes",
    line: "Line2D",
    table: pd.DataFrame,
    keys: list[str],
    unit: float,
    used: set[tuple[Any, ...]],
) -> pd.DataFrame | None:
    """Return the rows of a table that a line shows, point by point; None if it shows none."""
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    x, y = x[np.isfinite(y)], y[np.isfinite(y)]
    is_mark = line.get_marker() in ("_", "|")  # the ends of an interval
    if is_mark or not len(y) or line.get_transform() != ax.transData:
        return None
    estimates = unit * table["estimate"].to_numpy()
    equal, unknown = np.isclose(y[:, None], estimates, TOLERANCE, TOLERANCE), np.isnan(estimates)
    shows = equal | unknown
    if not equal.any() or not shows.any(axis=1).all():
        return None
    for along in keys:
        shows_here = shows & _stand_at(ax, x, table[along])
        others = table[[key for key in keys if key != along]].apply(tuple, axis=1)
        for rest in dict.fromkeys(others[shows_here.any(axis=0)]):
            fits = shows_here & (others == rest).to_numpy()
            rows = table.iloc[fits.argmax(axis=1)]
            name = (along, *rest, *rows[along])
            is_whole = fits.any(axis=1).all() and rows[along].is_unique
            if is_whole and 2 * rows["estimate"].count() > len(rows) and name not in used:
                used.add(name)
                return rows
    return None


def _stand_at(ax: "Axes", x: Any, column: "pd.Series[Any]") -> Any:
    """Tell which points stand at the place of which row along the axis, or a little aside."""
    categories = getattr(ax.xaxis.get_units(), "_mapping", {})
    number_of = {value: _number(value, categories) for value in column.unique()}
    where = column.map(number_of).to_numpy(dtype=float)
    scale = ax.xaxis.get_transform().transform
    known = np.unique(scale(where[np.isfinite(where)]))
    step = np.diff(known).min() if len(known) > 1 else 1.0
    return np.abs(scale(x)[:, None] - scale(where)) < ASIDE * step


def _number(value: Any, categories: dict[str, int]) -> float:
    """Return where a value of a column stands along an axis; NaN if it stands nowhere."""
    is_number = isinstance(value, int | float)
    if categories:
        names = (str(value), f"{value:g}") if is_number else (str(value),)
        return next((float(categories[name]) for name in names if name in categories), np.nan)
    return float(value) if is_number else np.nan


def _draw_behind(ax: "Axes", line: "Line2D", numbers: Any) -> bool:
    """Draw means with intervals at the places of a line, behind all; tell if there are any.

    The axes grow where a mean lies beyond them; an interval may be cut off.
    """
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    x = x[np.isfinite(y)]
    mean, low, high = numbers.T
    if not np.isfinite(mean).any():
        return False
    limits = sorted(ax.get_ylim())
    if line.get_linestyle() in ("None", "", " "):
        ax.vlines(x, low, high, color=BAND, linewidth=6, zorder=0.7)
        ax.plot(x, mean, "_", color=LINE, markersize=8, markeredgewidth=1.5, zorder=0.8)
    else:
        # hatched, because the band of a black line is grey, too
        band: dict[str, Any] = {
            "facecolor": "none",
            "edgecolor": HATCH,
            "hatch": "//////",
            "linewidth": 0,
        }
        ax.fill_between(x, low, high, zorder=0.7, **band)
        look: dict[str, Any] = {"marker": line.get_marker(), "linestyle": line.get_linestyle()}
        ax.plot(x, mean, color=LINE, linewidth=1.2, markersize=3, zorder=0.8, **look)
    least, most = min(limits[0], np.nanmin(mean)), max(limits[1], np.nanmax(mean))
    ax.set_ylim((most, least) if ax.yaxis_inverted() else (least, most))
    return True
