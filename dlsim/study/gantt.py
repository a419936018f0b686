"""Timing diagrams of any schedule: when each node receives data, computes, and is idle.

A bar is light and hatched while data is sent, solid while it is computed, and blank
space is idle time. The head node's link is a row of its own, on top: under a reading that lets
several tasks send at once its bars lie in lanes one below the other, and the row says so.

For pictures that must be there before one waits for them one collection holds all bars of a look
(`draw_bars`), which draws several times faster: hatches are made anew for each shape.
"""

from collections.abc import Mapping, Sequence
from colorsys import hls_to_rgb
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb, to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path
from numpy.typing import ArrayLike

from dlsim.errors import InputError
from dlsim.study.plain_text import shown_label
from dlsim.study.plot import axes_of
from dlsim.study.style import INK
from dlsim.validate import number, require_table

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
            lanes = lanes_of(*times[:2])
            count = int(lanes.max()) + 1
            height = max(_HEIGHT / count, _LANE)
            places = _HEIGHT / 2 - count * height + (lanes + 0.5) * height
            draw_bars(ax, places, times[0], times[1], inks, "send", height)
            top = min(top, _HEIGHT / 2 - count * height - 0.2)
            if count > 1:
                labels[0] = "a link per task"
        wide = (right - since) * 0.012
        for task, row, start, end in zip(frame["task"], rows, *times[2:], strict=True):
            start, end = max(start, since), min(end, right)
            if end - start > wide * (1 + len(str(task))):
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
    rows, color = range(1, len(frame) + 1), task_colors([0])[0]
    times: Any = frame[_TIMES].to_numpy(dtype=float).T
    draw_bars(ax, np.zeros(len(frame)), times[0], times[1], color, "send")
    draw_chunks(ax, rows, times, color)
    for row, begin, setup in (
        (np.zeros(len(frame)), times[0], st),
        (rows, times[0], st),
        (rows, times[2], sc),
    ):
        if setup:
            draw_bars(ax, row, begin, begin + setup, "black", "set-up")
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
    opacity, keywords = LOOKS[look]
    faces = to_rgba_array(color, opacity)
    draw_boxes(ax, left, right, y - height / 2, y + height / 2, faces, **keywords)


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


def bar_legend_entry(look: str, label: str, color: str = "#777777") -> Patch:
    """Make the legend entry of a look."""
    opacity, words = LOOKS[look]
    return Patch(
        facecolor=to_rgba_array(color, opacity)[0],
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
