"""One load on nodes that become free one after another, in four ways.

Source: paper I, sections 3 and 4 (inserted idle time, the remodel); the optimum of one round is
that of Chuprat and Baruah (2008).
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlsim.explore.controls import NumberList, Slider
from dlsim.explore.panel import panel
from dlsim.explore.pictures import new_figure, set_title
from dlsim.realtime import Cluster, LoadSplit, split_load
from dlsim.study.plots import (
    INK,
    bar_legend_entry,
    draw_bars,
    legend_above,
    line_legend_entry,
    name_rows,
)

#: Most nodes whose rows can be told apart in four pictures.
MOST_RELEASES = 6
#: Rounds of sending of the last way.
SENDING_ROUNDS = 4
#: Partition of every way, by what stands above its picture.
WAYS = {
    "wait for the last node": "opr",
    "paper I: late nodes as slow ones": "dlt",
    "optimum of one round": "exact",
    "four rounds from the first node on": "umr-iit",
}

_DEFINITIONS = {
    "wait for the last node": "all nodes start together, when the last of them is free",
    "late nodes as slow ones": "each node starts when it is free; its share is that of a slower "
    "node that is free at once (the remodel)",
    "optimum of one round": "each node starts when it is free, and all end together",
    "four rounds": "every node is sent four chunks, one after another, from the first free node on",
    "inserted idle time": "the time that free nodes wait for the last one",
    "a black mark": "from here on the node is free",
}


@panel(
    "Inserted idle time: what waiting for the last node costs",
    NumberList("free_at", "nodes become free at", (0.0, 14.0, 26.0, 36.0), 0.0, 1e6, MOST_RELEASES),
    Slider("size", "load size", 1.0, 200.0, 1.0, 40.0),
    Slider("send", "time to send a unit", 0.1, 10.0, 0.1, 1.0),
    Slider("compute", "time to compute a unit", 0.1, 20.0, 0.1, 4.0),
    words=_DEFINITIONS,
)
def idle_time(
    free_at: Sequence[float], size: float, send: float, compute: float, reading: Mapping[str, str]
) -> tuple[Figure, str]:
    """Draw one load in four ways, one below the other, with a row per node."""
    release = sorted(free_at)
    cluster = Cluster(nodes=len(release), cms=send, cps=compute)
    splits = {
        name: split_load(size, release, cluster, way, SENDING_ROUNDS if way == "umr-iit" else 1)
        for name, way in WAYS.items()
    }
    until = 1.02 * max(split.completion for split in splits.values())
    figure = new_figure(0.62, 0.42, 0.1, 0.36, hspace=0.42)
    panels = figure.subplots(len(WAYS))
    for ax, (name, split) in zip(panels, splits.items(), strict=True):
        _draw_split(ax, split, release, until)
        set_title(ax, f"{name}: ends at {split.completion:.5g}")
        if ax is not panels[-1]:
            ax.tick_params(axis="x", labelbottom=False)
    panels[-1].set_xlabel("time", labelpad=1)
    keys = [
        bar_legend_entry("send", "receives", INK["blue"]),
        bar_legend_entry("compute", "computes", INK["blue"]),
        line_legend_entry("becomes free", marker="|", color="black", linestyle="none", ms=9, mew=2),
    ]
    legend_above(panels[0], keys, 8)
    return figure, _sentence(splits, release)


def _draw_split(ax: Axes, split: LoadSplit, release: Sequence[float], until: float) -> None:
    """Draw when each node receives and computes, and when it becomes free."""
    begin, sent, end = map(np.atleast_2d, (split.send_start, split.send_end, split.compute_end))
    # a node computes a chunk once it has received it and is done with the one before
    start = np.maximum(sent, np.vstack([np.zeros_like(end[:1]), end[:-1]]))
    nodes = np.arange(begin.shape[1])
    rows = np.tile(nodes, len(begin))
    draw_bars(ax, rows, begin.ravel(), sent.ravel(), INK["blue"], "send")
    draw_bars(ax, rows, start.ravel(), end.ravel(), INK["blue"], "compute")
    ax.plot(release, range(len(release)), "k|", ms=9, mew=2, zorder=5)
    name_rows(ax, [f"node {node + 1}" for node in range(len(release))], 0, until, fontsize=8)


def _sentence(splits: Mapping[str, LoadSplit], release: Sequence[float]) -> str:
    """Say what waiting for the last node costs against the best of the other ways."""
    ends = {name: split.completion for name, split in splits.items()}
    waiting, *others = ends
    best = min(others, key=lambda name: ends[name])
    idle = math.fsum(release[-1] - time for time in release)
    text = f"Waiting for the last node inserts {idle:.4g} of idle time, and the load ends at "
    text += f"{ends[waiting]:.5g}"
    if ends[best] < ends[waiting] * (1 - 1e-9):
        later = 100 * (ends[waiting] / ends[best] - 1)
        text += (
            f", {later:.3g} % later than in the best of the other ways ({best}: {ends[best]:.5g})"
        )
    return text + "."
