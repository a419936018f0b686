"""One look for every figure: theme, palette, and a style per policy for life.

Colours are those of M. Okabe and K. Ito, "Color Universal Design" (2008), without
their yellow, which is too light for a line. A policy is told apart by colour, marker
and dash, so that a figure survives colour blindness and a black-and-white print.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from dlsim.errors import InputError
from dlsim.study.claims import SYMBOLS

#: Named colours of the house.
INK = {
    "black": "#000000",
    "blue": "#0072B2",
    "sky": "#56B4E9",
    "green": "#009E73",
    "vermillion": "#D55E00",
    "orange": "#E69F00",
    "pink": "#CC79A7",
}

#: Named dashes of the house, as matplotlib line styles.
DASHES: dict[str, Any] = {
    "solid": "-",
    "dashed": (0, (5, 2)),
    "dotted": (0, (1, 1.4)),
    "dashdot": (0, (6, 2, 1.4, 2)),
    "long": (0, (9, 2.5)),
}

#: Background of a verdict; the symbol and the word say the same without colour.
VERDICT_INK = {
    "holds": "#BFE3D6",
    "holds in part": "#F6E7A8",
    "differs": "#F2B999",
    "cannot be checked": "#E4E4E4",
}


class Style(NamedTuple):
    """How one policy is drawn, everywhere and for ever."""

    color: str
    marker: str
    dash: Any


# Order of the rows = order of every legend. FIFO policies are cold, EDF policies warm.
_TABLE = """
MCDF          black      D solid   | FIFOMN        blue       o solid
EDFMN         vermillion o solid   | FIFOAN        sky        s dashed
EDFAN         orange     s dashed  | FIFOANNA      green      ^ dotted
EDFANNA       pink       ^ dotted  | FIFO-OPR-MN   blue       o long
FIFO-DLT      black      s solid   | FIDO-I        sky        v dashed
FIDO-II       green      D solid   | FIFO-EXACT    blue       ^ dashdot
FIFO-EXACT-N  sky        ^ long    | FIFO-US       blue       v dotted
FIFO-UMR-MN   green      o dashdot | FIFO-UMR-IIT  green      s long
EDF-OPR-MN    vermillion o long    | EDF-DLT       black      s dashed
EDDO-I        orange     v dashed  | EDDO-II       pink       D solid
EDF-EXACT     vermillion ^ dashdot | EDF-EXACT-N   orange     ^ long
EDF-US        vermillion v dotted  | EDF-UMR-MN    pink       o dashdot
EDF-UMR-IIT   pink       s long    | LP            black      o dotted
FIFO-OPR-FRAG sky        o dotted  | FIFO-EQ-MN    green      v dotted
EDF-OPR-FRAG  orange     o dotted  | EDF-EQ-MN     pink       v dotted
MILP          black      s long    | G             vermillion s solid
LPR           sky        v dotted  | LPRG          blue       D dashed
LPRR          green      o solid   | history       black      o solid
cpu-only      sky        v long    | gpu-only      blue       ^ long
preferred     green      s dashed  | round-robin   orange     D dotted
mct           vermillion s dashdot | torque        pink       v dashdot
torque-strict pink       v solid   | rsc           sky        D dashdot
rsc-strict    sky        D solid   | rsa           sky        D dotted
asjf          orange     ^ solid   | ideal         black      ^ dotted
Greedy        black      v solid   | D-0.5         vermillion D dashed
D-0.6         orange     ^ dashed  | D-0.7         green      D dashed
D-0.8         sky        o dashed  | D-0.9         blue       s dashed
"""


def _styles() -> dict[str, Style]:
    rows = (cell.split() for line in _TABLE.splitlines() for cell in line.split("|") if cell)
    return {
        name: Style(INK[ink], marker, DASHES[dash])
        for name, ink, marker, dash in (row for row in rows if row)
    }


#: Every named policy with its style, in the order of the legends.
STYLES: dict[str, Style] = _styles()
#: Every named policy with its colour.
PALETTE: dict[str, str] = {name: style.color for name, style in STYLES.items()}
# A legend of more policies than this stands beside the axes.
_MOST_INSIDE = 4
# Markers that no named policy uses: an unnamed one never looks like a named one.
_SPARE_MARKERS = ("P", "X", "*", "h", "p", "<", ">", "d")


def style_of(policy: str) -> Style:
    """Return the style of a policy: its row, or one derived from its name.

    Examples
    --------
    >>> style_of("MCDF").color
    '#000000'
    >>> style_of("my own policy") == style_of("my own policy")
    True
    """
    if policy in STYLES:
        return STYLES[policy]
    number = int.from_bytes(hashlib.sha256(policy.encode()).digest()[:8], "big")
    number, color = divmod(number, len(INK))
    number, marker = divmod(number, len(_SPARE_MARKERS))
    dash = number % len(DASHES)
    return Style(list(INK.values())[color], _SPARE_MARKERS[marker], list(DASHES.values())[dash])


def policy_order(names: Iterable[str]) -> list[str]:
    """Sort policy names for a legend: the table's order, then the alphabet.

    Examples
    --------
    >>> policy_order(["zeta", "EDFAN", "MCDF", "EDFAN"])
    ['MCDF', 'EDFAN', 'zeta']
    """
    rank = {name: i for i, name in enumerate(STYLES)}
    return sorted(set(map(str, names)), key=lambda name: (rank.get(name, len(rank)), name))


def as_category(names: "pd.Series[Any] | Sequence[str]") -> "pd.Categorical[Any]":
    """Turn a column of policy names into a categorical in legend order."""
    texts = [str(name) for name in names]
    return pd.Categorical(texts, categories=policy_order(texts), ordered=True)


def use() -> None:
    """Set the one theme of all figures (seaborn over matplotlib), for this process."""
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette=list(INK.values()),
        rc={
            "figure.figsize": (6.4, 4.0),
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "savefig.dpi": 150,
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.labelsize": 10,
            "axes.edgecolor": "#444444",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.color": "#E2E2E2",
            "grid.linewidth": 0.8,
            "lines.linewidth": 1.7,
            "lines.markersize": 5.5,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "hatch.linewidth": 0.6,
            "svg.hashsalt": "dlsim",
        },
    )


def axes_of(ax: Axes | None, size: tuple[float, float] | None = None) -> Axes:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return plt.subplots(figsize=size, layout="constrained")[1]


def need_columns(frame: pd.DataFrame, columns: Iterable[str], what: str) -> None:
    """Refuse a table that lacks a column."""
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise InputError(
            f"{what} needs the columns {', '.join(missing)}; it has {', '.join(map(str, frame))}"
        )


def policy_lines(
    frame: pd.DataFrame,
    x: str,
    y: str = "estimate",
    *,
    low: str = "low",
    high: str = "high",
    policy: str = "policy",
    interval: str = "band",
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw one mean line per policy with its interval, in the fixed order and style."""
    need_columns(frame, (policy, x, y), "a table of policy lines")
    if interval not in ("band", "bar", "none"):
        raise InputError(f"interval must be one of band, bar, none; got {interval!r}")
    if frame.empty:
        raise InputError("a table of policy lines must have rows, got none: run the sweep first")
    ax = axes_of(ax)
    known = interval != "none" and low in frame.columns and high in frame.columns
    for name in policy_order(frame[policy]):
        rows = frame[frame[policy].astype(str) == name].sort_values(x)
        color, marker, dash = style_of(name)
        ax.plot(
            rows[x], rows[y], color=color, marker=marker, linestyle=dash, label=name,
            markeredgecolor="white", markeredgewidth=0.6, zorder=3,
        )  # fmt: skip
        if known and interval == "band":
            ax.fill_between(rows[x], rows[low], rows[high], color=color, alpha=0.15, linewidth=0)
        elif known:
            spread = np.abs([rows[y] - rows[low], rows[high] - rows[y]])
            ax.errorbar(
                rows[x], rows[y], yerr=spread, fmt="none", ecolor=color, elinewidth=1, capsize=2.5
            )
    ax.set(xlabel=x, ylabel=y)
    if legend:
        crowded = frame[policy].nunique() > _MOST_INSIDE
        place: dict[str, Any] = (
            {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)} if crowded else {}
        )
        ax.legend(handlelength=3.2, **place)
    return ax


def verdict_heat(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw which reading supports which claim: colour and symbol in every cell."""
    words = list(SYMBOLS)
    unknown = sorted(set(frame.to_numpy().ravel()) - set(words), key=str)
    if frame.empty or unknown:
        found = f"got {unknown[0]!r}" if unknown else "got an empty table"
        raise InputError(f"every cell must be one of {', '.join(words)}; {found}")
    rows, columns = frame.shape
    label = max(len(str(name)) for name in frame.columns)
    ax = axes_of(ax, (2.2 + 0.42 * columns, 1.3 + 0.08 * label + 0.3 * rows))
    codes = frame.map(words.index).to_numpy(dtype=float)
    sns.heatmap(
        codes, ax=ax, cmap=ListedColormap(list(VERDICT_INK.values())), vmin=0, vmax=len(words) - 1,
        annot=frame.map(SYMBOLS.__getitem__).to_numpy(), fmt="", cbar=False,
        linewidths=1.5, linecolor="white", annot_kws={"color": "#222222", "size": 11},
    )  # fmt: skip
    ax.set_xticks(np.arange(columns) + 0.5, list(map(str, frame.columns)), rotation=90)
    ax.set_yticks(np.arange(rows) + 0.5, list(map(str, frame.index)), rotation=0)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    keys = [Patch(color=VERDICT_INK[word], label=f"{SYMBOLS[word]} {word}") for word in words]
    ax.legend(
        handles=keys, loc="upper center", bbox_to_anchor=(0.5, -0.02),
        ncols=2 if columns < 12 else len(words), columnspacing=1.2, handlelength=1.2,
    )  # fmt: skip
    return ax
