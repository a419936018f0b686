"""Pictures: the look of every figure, and what seaborn does not draw.

Colours are those of M. Okabe and K. Ito, "Color Universal Design" (2008), without
their yellow, which is too light for a line. A policy is told apart by colour, marker
and dash, so that a figure survives colour blindness and a black-and-white print.

A paired comparison has differences within runs, with intervals for all at once.

A timing diagram shows when each node receives data, computes, and is idle.
A bar is light and hatched while data is sent, solid while it is computed, and blank
space is idle time. The head node's link is a row of its own, on top: under a reading that lets
several tasks send at once its bars lie in lanes one below the other, and the row says so.
For pictures that must be there before one waits for them one collection holds all bars of a look
(`draw_bars`), which draws several times faster: hatches are made anew for each shape.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from colorsys import hls_to_rgb
from textwrap import shorten
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import ListedColormap, to_rgb, to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path
from numpy.typing import ArrayLike

from dlsim.errors import InputError
from dlsim.study.claims import VERDICTS, load_claims
from dlsim.study.measure import difference_to, pivot_policies, points
from dlsim.study.plain_text import show_tables_without_formulas, shown_label
from dlsim.study.stats import INTERVAL_ENDS, family
from dlsim.validate import number, one_of, require_table

# ------------------------------------------------------------------ one look for every figure

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

#: More colours for pictures of many policies: P. Tol, "Colour Schemes" (2021), the muted scheme.
MORE_INK = {"indigo": "#332288", "wine": "#882255", "olive": "#999933", "teal": "#44AA99"}

#: Named dashes of the house, as matplotlib line styles.
DASHES: dict[str, Any] = {
    "solid": "-",
    "dashed": (0, (5, 2)),
    "dotted": (0, (1, 1.4)),
    "dashdot": (0, (6, 2, 1.4, 2)),
    "long": (0, (9, 2.5)),
}


class Style(NamedTuple):
    """How one policy is drawn, everywhere and for ever."""

    color: str
    marker: str
    dash: Any


# Order of the rows = order of every legend.
_STYLE_TABLE = """
MCDF          black      D solid   | FIFOMN        blue       o solid
EDFMN         vermillion o solid   | FIFOAN        sky        s dashed
EDFAN         orange     s dashed  | FIFOANNA      green      ^ dotted
EDFANNA       pink       ^ dotted  | FIFO-OPR-MN   blue       o long
FIFO-DLT      black      s solid   | FIDO-I        sky        v dashed
FIDO-II       green      D solid   | FIFO-EXACT    indigo     ^ dashdot
FIFO-EXACT-N  vermillion ^ long    | FIFO-US       olive      v dotted
FIFO-UMR-MN   pink       o dashdot | FIFO-UMR-IIT  teal       s long
EDF-OPR-MN    vermillion o long    | EDF-DLT       black      s dashed
EDDO-I        orange     v dashed  | EDDO-II       pink       D solid
EDF-EXACT     wine       ^ dashdot | EDF-EXACT-N   green      ^ long
EDF-US        olive      v dashed  | EDF-UMR-MN    indigo     o dashdot
EDF-UMR-IIT   teal       s dashed  | LP            black      o dotted
FIFO-OPR-FRAG orange     o dotted  | FIFO-EQ-MN    wine       v dotted
EDF-OPR-FRAG  sky        o dotted  | EDF-EQ-MN     blue       v dotted
MILP          black      s long    | G             vermillion s solid
LPR           sky        v dotted  | LPRG          blue       D dashed
LPRR          green      o solid   | history       black      o solid
cpu-only      indigo     v long    | gpu-only      blue       ^ long
preferred     green      s dashed  | round-robin   orange     D dotted
mct           vermillion s dashdot | torque        pink       v dashdot
torque-strict pink       v solid   | rsc           sky        D dashdot
rsc-strict    sky        D solid   | rsa           sky        D dotted
asjf          wine       ^ solid   | ideal         black      ^ dotted
Greedy        black      v solid   | D-0.5         vermillion D dashed
D-0.6         orange     ^ dashed  | D-0.7         green      D dashed
D-0.8         sky        o dashed  | D-0.9         blue       s dashed
"""


#: Every named policy with its style, in the order of the legends.
STYLES: dict[str, Style] = {
    name: Style((INK | MORE_INK)[ink], marker, DASHES[dash])
    for cell in _STYLE_TABLE.strip().replace("\n", "|").split("|")
    for name, ink, marker, dash in [cell.split()]
}
# Markers that no named policy uses: an unnamed one never looks like a named one.
_SPARE_MARKERS = ("P", "X", "*", "h", "p", "<", ">", "d")


def style_of(policy: str) -> Style:
    """Return the style of a policy: its row, or one derived from its name.

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

    >>> policy_order(["zeta", "EDFAN", "MCDF", "EDFAN"])
    ['MCDF', 'EDFAN', 'zeta']
    """
    rank = {name: i for i, name in enumerate(STYLES)}
    return sorted(set(map(str, names)), key=lambda name: (rank.get(name, len(rank)), name))


#: Colours of policies that a user adds, which no policy of a paper has.
OWN_INK = ("#7B3FA0", "#8B5A2B", "#A51C4B", "#5A7302")


def _own_styles(names: Iterable[str]) -> dict[str, Style]:
    """Give each policy of a user a colour of its own, as long as there are enough."""
    own = [name for name in names if name not in STYLES]
    return {
        name: style_of(name)._replace(color=OWN_INK[k % len(OWN_INK)]) for k, name in enumerate(own)
    }


def policy_style(policies: Iterable[Any]) -> dict[str, Any]:
    """Return the keywords by which seaborn draws one line per policy in its colour for life.

    Parameters
    ----------
    policies : iterable of str
        The column of policies, or their names. One that no paper has gets a colour of its own.

    Returns
    -------
    dict
        hue, style (both "policy"), hue_order, style_order, palette, markers and dashes, for
        ``seaborn.lineplot`` and ``seaborn.relplot``.
    """
    names = policy_order(policies)
    styles = {name: STYLES[name] for name in names if name in STYLES} | _own_styles(names)
    return {
        "hue": "policy",
        "style": "policy",
        "hue_order": names,
        "style_order": names,
        "palette": {name: styles[name].color for name in names},
        "markers": {name: styles[name].marker for name in names},
        "dashes": {
            name: "" if styles[name].dash == "-" else styles[name].dash[1] for name in names
        },
    }


def student_interval(values: Any) -> tuple[float, float]:
    """Return Student's 95 % interval of a mean: ``errorbar=student_interval`` of seaborn."""
    from scipy.special import stdtrit

    sample = np.asarray(values, dtype=float)
    mean, n = float(sample.mean()), len(sample)
    if n < 2:
        return mean, mean
    half_width = stdtrit(n - 1, 0.975) * sample.std(ddof=1) / np.sqrt(n)
    return mean - half_width, mean + half_width


def share_interval(values: Any) -> tuple[float, float]:
    """Return Student's 95 % interval of a mean share, cut to 0 and 1, beyond which no share is."""
    low, high = student_interval(values)
    return max(0.0, low), min(1.0, high)


def use_style() -> None:
    """Set the theme of all figures (seaborn over matplotlib), and how tables are shown."""
    sns.set_theme(
        context="notebook",
        style="whitegrid",
        palette=list(INK.values()),
        rc={
            "figure.figsize": (6.4, 4.0),
            "figure.dpi": 110,
            "savefig.dpi": 150,
            "figure.constrained_layout.use": True,
            "svg.hashsalt": "dlsim",
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.labelsize": 10,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "legend.fontsize": 9,
            "legend.frameon": False,
            "axes.edgecolor": "#444444",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "grid.color": "#E2E2E2",
            "grid.linewidth": 0.8,
            "lines.linewidth": 1.7,
            "lines.markersize": 5.5,
            "hatch.linewidth": 0.6,
        },
    )
    show_tables_without_formulas()


# ------------------------------------------------------------------ points and verdicts

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
        text = f": {shorten(claim.text, 60, placeholder=' ...')}" if claim and with_text else ""
        names.append(f"{claim.number}{text}" if claim else name)
    return names


# ------------------------------------------------------------------ paired comparisons of policies

#: How far apart the marks of two rivals stand, as a share of the step along the axis.
DODGE = 0.05


def compare(
    runs: pd.DataFrame, by: str, column: str, chosen: Any = None, at: Sequence[str] | None = None
) -> pd.DataFrame:
    """Compare one policy with every other, run by run.

    Policies that met the same random workloads are subtracted within each replicate, so that the
    variation of the workloads cancels. The intervals are those by which claims are judged
    (`dlsim.study.stats.family`).

    Parameters
    ----------
    runs : DataFrame
        What `sweep` returned: the columns of the points, ``replicate``, `by` and `column`.
    by : str
        The column that names the policies, such as "policy".
    column : str
        What is compared, such as "ratio".
    chosen : optional
        The policy that is compared with every other: a value of `by`; default: the last in the
        order of the rows.
    at : sequence of str, optional
        The other columns of the points: one difference for each of their combinations; default:
        the columns before ``replicate``.

    Returns
    -------
    DataFrame
        One row per rival and point: ``chosen``; `by`, the rival; the columns of `at`; ``estimate``,
        the mean of `column` under `chosen` minus that under the rival, in the unit of `column`;
        ``low`` and ``high``, its 95 % interval alone; ``least`` and ``most``, the 95 % intervals
        that hold for all rows at once; ``n``, the number of runs. The ends are NaN where the
        difference is the same in all runs: then the runs do not say how much it varies.

    Raises
    ------
    InputError
        For a column or policy that is not there, fewer than two policies, or a policy that lacks
        a run of another or has one twice.

    Examples
    --------
    >>> runs = pd.DataFrame({"replicate": [0, 0, 1, 1, 2, 2], "policy": ["EDFMN", "mine"] * 3,
    ...                      "ratio": [0.50, 0.40, 0.54, 0.42, 0.58, 0.50]})
    >>> compare(runs, "policy", "ratio").round(3)
      chosen policy  estimate   low  high  least  most  n
    0   mine  EDFMN      -0.1 -0.15 -0.05  -0.15 -0.05  3
    """
    require_table("runs", runs, ["replicate", by, column], unique=False)
    if at is None:
        at = [str(name) for name in runs.columns[: list(runs.columns).index("replicate")]]
        at = [name for name in at if name != by]
    require_table("runs", runs, at, unique=False)
    names = list(dict.fromkeys(runs[by]))
    if len(names) < 2:
        raise InputError(f"{by} must name at least two policies to compare; got {names}")
    chosen = names[-1] if chosen is None else one_of(f"chosen {by}", chosen, names)
    keys = [*at, "replicate", by]
    if runs.duplicated(keys).any():
        places = ", ".join(keys)
        raise InputError(f"runs must have one row per {places}: name the other columns in at")
    wide = pivot_policies(runs, at, column, by)[names]
    if wide.isna().to_numpy().any():
        lacking = [name for name in names if wide[name].isna().any()]
        raise InputError(f"every {by} must have run at every point; runs are missing of {lacking}")
    found = points(difference_to(wide, chosen, [one for one in names if one != chosen]) * -1, at)
    found = found.assign(chosen=chosen, **family(list(found["values"]))[INTERVAL_ENDS])
    found = found.rename(columns={"what": by})
    return found[["chosen", by, *at, "estimate", *INTERVAL_ENDS, "n"]]


def plot_comparison(comparison: pd.DataFrame, x: str | None = None, ax: Axes | None = None) -> Axes:
    """Draw what `compare` returned: a dot per difference, with the intervals that hold at once.

    Parameters
    ----------
    comparison : DataFrame
        A result of `compare`, or some of its rows.
    x : str, optional
        The column along the axis; default: the first that is no policy. There is one colour per
        rival; without such a column the rivals stand side by side.
    ax : Axes, optional
        Where to draw; default: a new figure.

    Returns
    -------
    Axes
        Above the line at 0 the chosen policy has the larger value.
    """
    require_table("comparison", comparison, ["chosen", "estimate", *INTERVAL_ENDS], unique=False)
    names = [str(name) for name in comparison.columns]
    by, *places = names[1 : names.index("estimate")]
    x = (places[0] if places else by) if x is None else one_of("x", x, [by, *places])
    ax = axes_of(ax)
    levels = list(dict.fromkeys(comparison[x]))
    is_number = pd.api.types.is_numeric_dtype(comparison[x])
    position = comparison[x] if is_number else comparison[x].map(levels.index)
    look = policy_style(comparison[by])
    rivals = look["hue_order"]
    step = np.diff(np.unique(position)).min() if len(levels) > 1 else 1.0
    for place, rival in enumerate(rivals):
        rows = comparison[comparison[by].astype(str) == rival]
        middle = rows["estimate"]
        aside = 0.0 if x == by else DODGE * step * (place - (len(rivals) - 1) / 2)
        ax.errorbar(
            position[rows.index] + aside,
            middle,
            rows[["least", "most"]].sub(middle, axis=0).abs().fillna(0).to_numpy().T,
            fmt=look["markers"][rival],
            color=look["palette"][rival],
            capsize=2,
            label=shown_label(rival),
        )
    ax.axhline(0, color="0.4", lw=1, ls="--", zorder=0)
    if not is_number:
        ax.set_xticks(range(len(levels)), [shown_label(level) for level in levels])
    chosen = shown_label(comparison["chosen"].iloc[0])
    ax.set(xlabel=shown_label(x), ylabel=f"{chosen} minus rival")
    if x != by:
        ax.legend(title="rival", loc="center left", bbox_to_anchor=(1.01, 0.5))
    return ax


# ------------------------------------------------------------------ timing diagrams

#: What a table of chunks must have: one row per chunk, times absolute.
CHUNK_COLUMNS = ("task", "node", "alpha", "send_start", "send_end", "compute_end")
_TIMES = ["send_start", "send_end", "compute_start", "compute_end"]
_HEIGHT, _LANE = 0.72, 0.3
# Red, green and blue in the lightness of a colour (ITU-R BT.601), and where white is legible.
_LIGHTNESS, _DARK = (0.299, 0.587, 0.114), 0.4


def _check_chunks(chunks: pd.DataFrame) -> pd.DataFrame:
    """Return the chunks with `compute_start`; raise InputError for an invalid chunk."""
    require_table("chunks", chunks, CHUNK_COLUMNS, empty=False, unique=False)
    frame = chunks.assign(compute_start=chunks.get("compute_start", chunks["send_end"]))
    times = frame[_TIMES].to_numpy(dtype=float)
    begin, sent, start, end = times.T
    for at in np.flatnonzero(~np.isfinite(times).all(axis=1) | (sent < begin) | (end < start)):
        task, node = (frame[name].iloc[at] for name in ("task", "node"))
        raise InputError(
            f"chunk of task {task} on node {node}: times must be finite and in the order "
            f"send_start, send_end, compute_end; got {[*map(float, times[at, [0, 1, 3]])]}; "
            "a schedule with negative shares cannot be drawn"
        )
    return frame.reset_index(drop=True)


def _node_rows(chunks: pd.DataFrame, nodes: int | Sequence[Any] | None) -> list[Any]:
    """List the nodes to draw, top to bottom; idle ones are kept."""
    used = list(pd.unique(chunks["node"]))
    if nodes is None:
        return sorted(used, key=lambda node: (isinstance(node, str), node))
    if isinstance(nodes, int):
        first = int(nodes in used and 0 not in used)
        nodes = range(first, nodes + first)
    for node in (node for node in used if node not in nodes):
        known = f"the nodes drawn are {', '.join(map(str, nodes)) or 'none'}: draw more"
        raise InputError(f"chunks lie on node {node}; {known}")
    return list(nodes)


def lanes_of(start: Any, end: Any) -> "np.ndarray[Any, Any]":
    """Give each interval the first lane that is free, in order of start."""
    free: list[float] = []
    lanes = np.zeros(len(start), dtype=int)
    for i in np.argsort(start, kind="stable"):
        lane = next((j for j, time in enumerate(free) if time <= start[i]), len(free))
        free[lane : lane + 1] = [end[i]]
        lanes[i] = lane
    return lanes


def task_colors(tasks: Sequence[Any]) -> dict[Any, Any]:
    """Give each task a colour of its own, in order of first appearance."""
    names, colors = list(dict.fromkeys(tasks)), list(sns.color_palette("colorblind", 10))
    # beyond ten: hues a golden section of the circle apart never come back
    colors += [
        hls_to_rgb(0.618034 * k % 1, (0.35, 0.55, 0.75)[k % 3], 0.6)
        for k in range(len(names) - len(colors))
    ]
    return dict(zip(names, colors, strict=False))


def legible_on(color: Any) -> str:
    """Return the ink of a text on a colour."""
    return "white" if float(np.dot(to_rgb(color), _LIGHTNESS)) < _DARK else "black"


def _draw_link(ax: Axes, start: Any, end: Any, inks: list[Any]) -> tuple[int, float]:
    """Draw the sends in the row of the link; return their number of lanes, and the upper end."""
    lanes = lanes_of(start, end)
    count = int(lanes.max()) + 1
    height = max(_HEIGHT / count, _LANE)
    upper = _HEIGHT / 2 - count * height
    draw_bars(ax, upper + (lanes + 0.5) * height, start, end, inks, "send", height)
    return count, upper


def _mark_deadline(ax: Axes, due: float, rows: "pd.Series[Any]", color: Any) -> None:
    """Mark the absolute deadline of a task, over the rows it uses."""
    top, bottom = rows.min() - 0.5, rows.max() + 0.5
    ax.plot([due, due], [top, bottom], color=color, linewidth=1.6, zorder=3)
    edge: dict[str, Any] = {"markeredgecolor": "#333333", "markeredgewidth": 0.5}
    ax.plot(due, top, "v", color=color, markersize=6, zorder=4, clip_on=False, **edge)


def name_rows(
    ax: Axes, names: list[str], left: float, right: float, top: float = -0.6, **look: Any
) -> None:
    """Label the rows of a timing diagram, the first on top, and set its limits."""
    ax.set_yticks(range(len(names)), names, **look)
    ax.set_ylim(len(names) - 0.4, top)
    ax.set_xlim(left, right)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)


def plot_gantt(
    chunks: pd.DataFrame,
    nodes: int | Sequence[Any] | None = None,
    link: bool = True,
    until: float | None = None,
    tasks: pd.DataFrame | None = None,
    colors: Mapping[Any, Any] | None = None,
    ax: Axes | None = None,
    since: float = 0.0,
) -> Axes:
    """Draw a schedule: one row per node, one colour per task, the link on top.

    With `tasks` come their deadlines and, where they have the column `admitted`, a last row with
    those that were refused, each where it arrived.
    """
    frame = _check_chunks(chunks)
    names, first = _node_rows(frame, nodes), int(link)
    due: dict[Any, float] = {}
    if tasks is not None:
        require_table("tasks", tasks, ("arrival", "deadline"), unique=False)
        due = dict((tasks["arrival"] + tasks["deadline"]).astype(float))
    if until is None:  # room for deadlines, but not for remote ones
        last = float(frame["compute_end"].max())
        near = [due[task] for task in set(frame["task"]) & set(due) if due[task] < 1.3 * last]
        until = max([last, *near]) * 1.02
    right = float(number("until", until, above=True, rule="a time above 0"))
    refused = _refused(tasks, since, right)
    labels = [shown_label(node if isinstance(node, str) else f"node {node}") for node in names]
    labels = ["link"] * first + labels + ["refused"] * bool(len(refused))
    ax = axes_of(ax, (7.2, 1.1 + 0.3 * len(labels)))
    frame = frame[(frame["send_start"] < right) & (frame["compute_end"] > since)]
    rows = frame["node"].map({node: first + i for i, node in enumerate(names)})
    ink_of = dict(colors or task_colors(list(frame["task"])))
    inks, top = list(frame["task"].map(ink_of)), -0.75
    if len(frame):
        times: Any = frame[_TIMES].to_numpy(dtype=float).T
        draw_chunks(ax, rows, times, inks)
        if link:
            lanes, upper = _draw_link(ax, times[0], times[1], inks)
            top = min(top, upper - 0.2)
            labels[0] = "a link per task" if lanes > 1 else "link"
        spans, letter = times[2:].clip(since, right).T, (right - since) * 0.012
        for task, row, (start, end) in zip(frame["task"], rows, spans, strict=True):
            if end - start > letter * (1 + len(str(task))):
                look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 8, "zorder": 4}
                name = shown_label(task)
                ax.text((start + end) / 2, row, name, color=legible_on(ink_of[task]), **look)
        for task, used in rows.groupby(frame["task"]):
            if since <= due.get(task, np.inf) <= right:
                _mark_deadline(ax, due[task], used, ink_of[task])
    name_rows(ax, labels, since, right, top)
    for arrival, tasks_text in refused.items():
        spot, name = (arrival, len(labels) - 1), shown_label(tasks_text)
        ax.plot(*spot, "x", color=INK["vermillion"], ms=6, mew=1.6)
        ax.annotate(name, spot, (6, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_xlabel("time")
    keys = [bar_legend_entry("send", "sending"), bar_legend_entry("compute", "computing")]
    legend_above(
        ax, keys + [line_legend_entry("deadline", color="#555555", marker="v")] * bool(due)
    )
    return ax


def _refused(tasks: pd.DataFrame | None, since: float, until: float) -> dict[float, str]:
    """Name the tasks that were refused between two times by their arrival, close ones as one."""
    found: dict[float, str] = {}
    if tasks is not None and "admitted" in tasks:
        came = tasks.loc[~tasks["admitted"].astype(bool), "arrival"].astype(float).sort_values()
        for task, arrival in came[came.between(since, until)].items():
            last = next(reversed(found), -np.inf)
            near = arrival - last <= 0.02 * (until - since)
            found[last if near else arrival] = f"{found[last]}, {task}" if near else str(task)
    return found


def plot_timing(chunks: pd.DataFrame, st: float = 0.0, sc: float = 0.0) -> Axes:
    """Draw the timing diagram of one task, all chunks ending together (paper M, Figures 2, 3).

    The set-up of a transmission `st` and that of a computation `sc` are parts of the chunks' times.
    """
    frame = _check_chunks(chunks).sort_values("send_start", kind="stable").reset_index(drop=True)
    if frame["task"].nunique() > 1:
        ids = list(pd.unique(frame["task"]))
        raise InputError(f"a timing diagram shows one task, got {ids}: select one of them")
    ax = axes_of(None, (7.2, 1.3 + 0.42 * (len(frame) + 1)))
    rows, color = np.arange(1, len(frame) + 1), task_colors([0])[0]
    times: Any = frame[_TIMES].to_numpy(dtype=float).T
    draw_bars(ax, 0 * rows, times[0], times[1], color, "send")
    draw_chunks(ax, rows, times, color)
    draw_set_ups(ax, rows, times[0], times[2], st, sc)
    begin, last = float(times[0].min()), float(times[3].max())
    ax.axvline(last, color="#333333", linestyle="--", linewidth=1)
    parts = zip(rows, frame["alpha"], strict=True)
    shares = (rf"$P_{{{j}}}$: $\alpha_{{{j}}} = {alpha:.3g}$" for j, alpha in parts)
    name_rows(ax, ["$P_0$ (link)", *shares], begin, last + 0.03 * (last - begin), -0.6)
    ax.set_xlabel("time")
    keys = [bar_legend_entry("set-up", "set-up", "black")] * bool(st or sc)
    keys += [
        bar_legend_entry("send", "sending", color),
        bar_legend_entry("compute", "computing", color),
    ]
    legend_above(
        ax, [*keys, line_legend_entry(f"all end at {last:,.5g}", color="#333333", ls="--", lw=1)]
    )
    return ax


#: How bars are filled: opacity, and the keywords of their collection. Planned bars have an
#: outline, impossible ones are crossed out.
LOOKS: dict[str, tuple[float, dict[str, Any]]] = {
    "send": (0.35, {"hatch": "////", "edgecolors": "#333333", "linewidths": 0.5}),
    "many sends": (0.35, {"edgecolors": "#333333", "linewidths": 0.2}),
    "compute": (0.95, {"edgecolors": "#333333", "linewidths": 0.5}),
    "set-up": (0.85, {"edgecolors": "#333333", "linewidths": 0.5}),
    "planned send": (0.12, {"hatch": "////", "edgecolors": "#999999", "linewidths": 0.5}),
    "planned": (0.28, {"edgecolors": "#555555", "linewidths": 0.7, "linestyles": ":"}),
    "impossible": (0.25, {"hatch": "xxxx", "edgecolors": INK["vermillion"], "linewidths": 1.0}),
}
#: How the pen goes around a box.
_BOX = np.array([Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY], Path.code_type)


def draw_boxes(
    ax: Axes, left: Any, right: Any, low: Any, high: Any, color: Any, **look: Any
) -> None:
    """Draw boxes, those of a colour as one shape; the axes keep their limits."""
    corners = np.stack([left, low, right, low, right, high, left, high, left, low], axis=1)
    faces = np.broadcast_to(to_rgba_array(color), (len(corners), 4))
    inks, which = np.unique(faces, axis=0, return_inverse=True)
    shapes = [
        Path(part.reshape(-1, 2), np.tile(_BOX, len(part)))
        for part in (corners[which.ravel() == k] for k in range(len(inks)))
    ]
    ax.add_collection(PathCollection(shapes, facecolors=inks, zorder=2, **look), autolim=False)


def draw_bars(
    ax: Axes,
    rows: ArrayLike,
    start: ArrayLike,
    end: ArrayLike,
    color: Any,
    look: str,
    height: float = _HEIGHT,
) -> None:
    """Draw horizontal bars of a look."""
    y, left, right = (np.asarray(values, dtype=float) for values in (rows, start, end))
    faces = _faces_of(look, color)
    draw_boxes(ax, left, right, y - height / 2, y + height / 2, faces, **LOOKS[look][1])


def _faces_of(look: str, color: Any) -> "np.ndarray[Any, Any]":
    """Return the faces of a look, opaque under a hatch: in SVG a hatch is as pale as its face."""
    opacity, words = LOOKS[look]
    faces = to_rgba_array(color, opacity)
    if "hatch" in words:
        faces[:, :3] = 1 - opacity * (1 - faces[:, :3])  # as the color looks on white
        faces[:, 3] = 1.0
    return faces


def draw_chunks(
    ax: Axes,
    rows: ArrayLike,
    times: Sequence[ArrayLike],
    color: Any,
    looks: Sequence[str] = ("send", "compute"),
) -> None:
    """Draw chunks: begin and end of sending in one look, of computing in another."""
    for k, look in enumerate(looks):
        draw_bars(ax, rows, times[2 * k], times[2 * k + 1], color, look)


def draw_set_ups(ax: Axes, rows: Any, send_start: Any, start: Any, st: float, sc: float) -> None:
    """Draw the set-up of every send, on the link and on its node, and that of every computation."""
    sends, computations = (send_start, st), (start, sc)
    for at, (begin, set_up) in ((0 * rows, sends), (rows, sends), (rows, computations)):
        if set_up:
            draw_bars(ax, at, begin, begin + set_up, "black", "set-up")


def bar_legend_entry(look: str, label: str, color: str = "#777777") -> Patch:
    """Make the legend entry of a look."""
    words = LOOKS[look][1]
    return Patch(
        facecolor=_faces_of(look, color)[0],
        edgecolor=words["edgecolors"],
        hatch=words.get("hatch"),
        linewidth=words["linewidths"],
        linestyle=words.get("linestyles", "-"),
        label=label,
    )


def line_legend_entry(label: str, **look: Any) -> Line2D:
    """Make the legend entry of a line or a marker."""
    return Line2D([], [], label=label, **look)


def legend_above(ax: Axes, keys: list[Any], size: float = 8) -> None:
    """Put a legend of one line above the axes, at the right."""
    ax.legend(
        handles=keys,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=len(keys),
        fontsize=size,
        handlelength=1.6,
        columnspacing=1.2,
        borderpad=0.1,
    )
