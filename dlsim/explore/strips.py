"""Bars drawn together: the pictures of a panel must be there before one waits for them.

The looks are those of `dlsim.study.gantt`, hatched while data is sent and solid while it
is computed; one collection holds all bars of a look, which draws several times faster
than as many bars of their own: hatches are made anew for each shape.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgba_array
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.path import Path
from numpy.typing import ArrayLike

from dlsim.study.style import INK

#: How bars are filled: opacity, and the keywords of their collection. An outline is drawn
#: around what is only planned, crosses over what cannot be.
LOOKS: dict[str, tuple[float, dict[str, Any]]] = {
    "send": (0.35, {"hatch": "////", "edgecolors": "#333333", "linewidths": 0.5}),
    "many sends": (0.35, {"edgecolors": "#333333", "linewidths": 0.2}),
    "compute": (0.95, {"edgecolors": "#333333", "linewidths": 0.5}),
    "planned send": (0.12, {"hatch": "////", "edgecolors": "#999999", "linewidths": 0.5}),
    "planned": (0.28, {"edgecolors": "#555555", "linewidths": 0.7, "linestyles": ":"}),
    "waits": (0.35, {"hatch": "xx", "edgecolors": INK["orange"], "linewidths": 0.0}),
    "booked": (0.25, {"hatch": "..", "edgecolors": "#888888", "linewidths": 0.0}),
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
    shapes = [Path(part.reshape(-1, 2), np.tile(_BOX, len(part))) for part in
              (corners[which.ravel() == k] for k in range(len(inks)))]  # fmt: skip
    ax.add_collection(PathCollection(shapes, facecolors=inks, zorder=2, **look), autolim=False)


def draw_bars(
    ax: Axes, rows: ArrayLike, start: ArrayLike, end: ArrayLike, color: Any, look: str,
    height: float = 0.72,
) -> None:  # fmt: skip
    """Draw horizontal bars of a look."""
    y, left, right = (np.asarray(values, dtype=float) for values in (rows, start, end))
    opacity, keywords = LOOKS[look]
    faces = to_rgba_array(color, opacity)
    draw_boxes(ax, left, right, y - height / 2, y + height / 2, faces, **keywords)


def draw_chunks(
    ax: Axes, rows: ArrayLike, times: Sequence[ArrayLike], color: Any,
    looks: Sequence[str] = ("send", "compute"), height: float = 0.72,
) -> None:  # fmt: skip
    """Draw chunks: begin and end of sending in one look, of computing in another."""
    for k, look in enumerate(looks):
        draw_bars(ax, rows, times[2 * k], times[2 * k + 1], color, look, height)


def key(look: str, label: str, color: str = "#777777") -> Patch:
    """Make the legend entry of a look."""
    opacity, words = LOOKS[look]
    return Patch(
        facecolor=to_rgba_array(color, opacity)[0], edgecolor=words["edgecolors"],
        hatch=words.get("hatch"), linewidth=words["linewidths"],
        linestyle=words.get("linestyles", "-"), label=label,
    )  # fmt: skip


def mark(label: str, **look: Any) -> Line2D:
    """Make the legend entry of a line or a marker."""
    return Line2D([], [], label=label, **look)


def legend_above(ax: Axes, keys: list[Any]) -> None:
    """Put a legend of one line above the axes, at the right."""
    ax.legend(
        handles=keys, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(keys), fontsize=8,
        handlelength=1.6, columnspacing=1.2, borderpad=0.1,
    )  # fmt: skip


def name_rows(ax: Axes, names: list[str], left: float, right: float) -> None:
    """Label the rows of a timing diagram, the first on top, and set its limits."""
    ax.set_yticks(range(len(names)), names, fontsize=8 if len(names) < 14 else 6.5)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(left, right)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
