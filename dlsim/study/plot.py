"""Pictures that seaborn does not draw: the points of a claim, and the map of verdicts."""

from collections.abc import Iterable
from textwrap import shorten
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from dlsim.study.claims import VERDICTS, load_claims
from dlsim.study.plain_text import shown_label
from dlsim.study.style import style_of

#: Most readings of a map that shows the texts of the claims.
FEW_READINGS = 8


def axes_of(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return plt.subplots(figsize=size, layout="constrained")[1]


def plot_points(points: pd.DataFrame, x: str, unit: str, edge: float) -> Axes:
    """Draw the points of a claim with the intervals that hold all of them at once.

    There is a line per value of ``what``. The dashed line at `edge` is the end of the region in
    which the claim is true.
    """
    ax, scale = axes_of(None), 100.0 if unit in ("points", "%") else 1.0
    for what, rows in points.groupby("what", sort=False):
        middle, least, most = (scale * rows[name] for name in ("estimate", "least", "most"))
        look: dict[str, Any] = {"fmt": "o-", "capsize": 2, "color": style_of(str(what)).color}
        look["label"] = shown_label(what)
        ax.errorbar(rows[x], middle, [middle - least, most - middle], **look)
    ax.axhline(edge * scale, color="0.4", lw=1, ls="--", zorder=0)
    ax.set(xlabel=x, ylabel=unit)
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))  # beside the axes
    return ax


def plot_verdict_map(frame: pd.DataFrame, counts: pd.DataFrame) -> Axes:
    """Draw which reading supports which claim: colour, symbol and count in every cell.

    Few readings are columns beside the texts of the claims. More than `FEW_READINGS` are rows, and
    the claims are columns named by their numbers, so that the picture fits a page.

    Rows of the tables are ids of claims, columns readings. A cell is the word of a verdict, or a
    text beside its symbol, such as the number of points that support the claim.
    """
    words = list(VERDICTS)
    codes = frame.map(words.index)
    symbols = frame.map(lambda word: VERDICTS[word].symbol)
    texts = (symbols + " " + counts).map(str.strip)
    is_small = frame.shape[1] <= FEW_READINGS
    names = _names_of_claims(frame.index, with_text=is_small)
    readings = [str(name) for name in frame.columns]
    longest = max(map(len, readings))
    if is_small:
        size = 5.0 + 0.6 * len(readings), 1.5 + 0.08 * longest + 0.3 * len(names)
        row_names, column_names = names, readings
    else:
        codes, texts = codes.T, texts.T
        size = 0.4 + 0.08 * longest + 0.55 * len(names), 1.5 + 0.3 * len(readings)
        row_names, column_names = readings, names
    ax = axes_of(None, size)
    sns.heatmap(
        codes,
        annot=texts,
        fmt="",
        annot_kws={"size": 9, "color": "#222222"},
        cmap=ListedColormap([one.color for one in VERDICTS.values()]),
        vmin=0,
        vmax=len(words) - 1,
        linewidths=1.5,
        cbar=False,
        xticklabels=True,
        yticklabels=True,
        ax=ax,
    )
    ax.set(xlabel="" if is_small else "claim", ylabel="")
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    ax.set_xticks(ax.get_xticks(), column_names, rotation=90 if is_small else 0)
    ax.set_yticks(ax.get_yticks(), row_names, rotation=0)
    ax.tick_params(length=0)
    ax.legend(
        handles=[
            Patch(color=one.color, label=f"{one.symbol} {word}") for word, one in VERDICTS.items()
        ],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.02),
        ncols=2 if is_small else 3,
    )
    return ax


def _names_of_claims(ids: Iterable[object], with_text: bool) -> list[str]:
    """Return the numbers of claims in their papers, with the beginnings of their texts or not."""
    known = {claim.id: claim for claim in load_claims()}
    names = []
    for name in map(str, ids):
        claim = known.get(name)
        text = f": {shorten(claim.sentence, 60, placeholder=' ...')}" if claim and with_text else ""
        names.append(f"{claim.number}{text}" if claim else name)
    return names
