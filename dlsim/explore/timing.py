"""One load on n nodes: why more nodes can be slower.

Source: paper M, sections 3 to 5 (execution time E(n), cost W(n), fewest nodes n_min).
"""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlsim.compiled import meets_deadline
from dlsim.errors import InputError
from dlsim.explore.controls import Slider, StopSlider
from dlsim.explore.panel import panel
from dlsim.explore.pictures import new_figure, set_title
from dlsim.realtime import (
    SWITCHES,
    Cluster,
    Reading,
    execution_time,
    fastest_nodes,
    fewest_nodes,
    simulate,
    total_cost,
)
from dlsim.study.plots import (
    INK,
    bar_legend_entry,
    draw_bars,
    draw_chunks,
    draw_set_ups,
    legend_above,
    line_legend_entry,
    name_rows,
)

#: Most nodes whose rows can be read in the picture.
MAX_NODES = 10

_STOPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
#: Settings of a cluster's speeds.
UNIT_TIMES = (
    StopSlider("cms", "time to send a unit Cms", _STOPS, 10.0),
    StopSlider("cps", "time to compute a unit Cps", (*_STOPS, 1000), 10.0),
)

_DEFINITIONS = {
    "set-up": "the time that starting to send (ST) or to compute (SC) costs once per node",
    "link": "the head node sends to one node after the other over this one link",
    "fewest in time": "the fewest nodes with which the load meets its deadline (n_min)",
    "fastest": "the number of nodes with which the load ends first (n*)",
    "share below 0": "the formula for equal finish gives this node a share of 0 or less: with so "
    "many nodes it is no schedule",
    "execution time E(n)": "from the first send to the last end, on n nodes",
    "cost W(n)": "n times E(n): node time that no other load can use",
}


@panel(
    "One load on n nodes",
    Slider("used", "nodes used n", 1, MAX_NODES, 1, 3),
    Slider("nodes", "nodes of the cluster N", 1, MAX_NODES, 1, 10),
    Slider("sigma", "size of the load σ", 1.0, 400.0, 1.0, 100.0),
    Slider("deadline", "deadline D", 10.0, 5000.0, 10.0, 1300.0),
    Slider("st", "set-up to send ST", 0.0, 100.0, 1.0, 40.0),
    Slider("sc", "set-up to compute SC", 0.0, 100.0, 1.0, 20.0),
    settings=UNIT_TIMES,
    switches={"an_nodes": SWITCHES["an_nodes"]},
    labels=Reading.labels(),
    words=_DEFINITIONS,
)
def timing(
    nodes: int,
    used: int,
    sigma: float,
    deadline: float,
    cms: float,
    cps: float,
    st: float,
    sc: float,
    reading: dict[str, str],
) -> tuple[Figure, str]:
    """Draw the timing diagram of one load, and execution time and cost over the nodes."""
    if used > nodes:
        remedy = "use fewer nodes, or give the cluster more"
        raise InputError(f"used must be at most nodes={nodes}, got {used}: {remedy}")
    cluster = Cluster(nodes, cms, cps, st, sc)
    chunks = _chunks_of(
        sigma, deadline, Cluster(used, cms, cps, st, sc), Reading.from_switches(reading)
    )
    times = [execution_time(sigma, n, cluster) for n in range(1, nodes + 1)]
    costs = [total_cost(sigma, n, cluster) for n in range(1, nodes + 1)]
    fastest, fewest = fastest_nodes(sigma, cluster), fewest_nodes(sigma, deadline, cluster)

    figure = new_figure(1.35, 0.82, 0.1, 0.3, wspace=0.24, hspace=0.52)
    grid = figure.add_gridspec(2, 2, height_ratios=[1.5, 1])
    diagram = figure.add_subplot(grid[0, :])
    _draw_timing_diagram(diagram, chunks, deadline, st, sc)
    names = {"fewest in time": fewest, "fastest": fastest, "used": len(chunks)}
    marked = {name: n for name, n in names.items() if n}
    time_axes, cost_axes = (figure.add_subplot(grid[1, column]) for column in (0, 1))
    _draw_curve(time_axes, times, fastest, len(chunks), marked)
    set_title(time_axes, "execution time E(n)")
    time_axes.axhline(deadline, color=INK["vermillion"], linewidth=1.6)
    _draw_curve(cost_axes, costs, fastest, len(chunks), marked)
    set_title(cost_axes, "cost W(n) = n E(n), node time")
    return figure, _sentence(chunks, deadline, times, fastest, fewest)


def _chunks_of(sigma: float, deadline: float, cluster: Cluster, reading: Reading) -> pd.DataFrame:
    """Return the chunks of one load on all nodes of a cluster."""
    task = pd.DataFrame({"arrival": [0.0], "sigma": [sigma], "deadline": [deadline]})
    return simulate(task, cluster, "FIFOANNA", reading, engine="python").chunks


def _draw_timing_diagram(
    ax: Axes, chunks: pd.DataFrame, deadline: float, st: float, sc: float
) -> None:
    """Draw when each node receives and computes; shares of 0 or less look different."""
    rows = np.arange(1, len(chunks) + 1)
    send_start, send_end, compute_end = (
        chunks[name].to_numpy(float) for name in ("send_start", "send_end", "compute_end")
    )
    possible = chunks["alpha"].to_numpy() > 0
    for part, color, looks in (
        (possible, INK["blue"], ("send", "compute")),
        (~possible, INK["vermillion"], ("impossible", "impossible")),
    ):
        times = [values[part] for values in (send_start, send_end, send_end, compute_end)]
        draw_bars(ax, 0 * rows[part], times[0], times[1], color, looks[0])
        draw_chunks(ax, rows[part], times, color, looks)
    draw_set_ups(ax, rows[possible], send_start[possible], send_end[possible], st, sc)
    end = float(compute_end.max())
    ax.axvline(end, color="#333333", linestyle="--", linewidth=1.2, zorder=3)
    ax.axvline(deadline, color=INK["vermillion"], linewidth=1.6, zorder=3)
    shares = [f"node {n}: {100 * alpha:.3g} %" for n, alpha in enumerate(chunks["alpha"], 1)]
    right = 1.04 * max(end, deadline if deadline < 2 * end else 0.0)
    name_rows(ax, ["link", *shares], 0, right, fontsize=8.5)
    ax.set_xlabel("time", labelpad=1)
    legend_above(ax, _legend_entries(bool(st or sc), bool((~possible).any())), 8.5)


def _legend_entries(has_set_up: bool, has_impossible: bool) -> list[Any]:
    entries = [
        bar_legend_entry("send", "sending", INK["blue"]),
        bar_legend_entry("compute", "computing", INK["blue"]),
    ]
    if has_set_up:
        entries.insert(0, bar_legend_entry("set-up", "set-up", "black"))
    if has_impossible:
        entries.append(bar_legend_entry("impossible", "share below 0", INK["vermillion"]))
    return [
        *entries,
        line_legend_entry("end", color="#333333", linestyle="--"),
        line_legend_entry("deadline", color=INK["vermillion"]),
    ]


def _draw_curve(
    ax: Axes, values: list[float], fastest: int, used: int, marked: dict[str, int]
) -> None:
    """Draw E or W over the number of nodes; hollow where the formula is no schedule."""
    n = np.arange(1, len(values) + 1)
    ax.plot(n[:fastest], values[:fastest], "o-", ms=4, color=INK["blue"], zorder=3)
    ax.plot(n[fastest - 1 :], values[fastest - 1 :], ":", color=INK["vermillion"], zorder=2)
    ax.plot(
        n[fastest:], values[fastest:], "o", ms=4, color=INK["vermillion"], mfc="white", zorder=3
    )
    ax.plot(used, values[used - 1], "o", color=INK["black"], mfc="none", ms=10, mew=1.6, zorder=4)
    ticks = sorted({1, len(values), *marked.values()})
    labels = []
    for tick in ticks:  # each name has a line of its own, so that neighbours do not overlap
        lines = [name if n == tick else "" for name, n in marked.items()]
        labels.append("\n".join([str(tick), *lines]).rstrip())
    ax.set_xticks(ticks, labels)
    ax.set_xlim(0.3, len(values) + 0.7)
    ax.margins(y=0.15)
    ax.locator_params(axis="y", nbins=4)


def _sentence(
    chunks: pd.DataFrame, deadline: float, times: list[float], fastest: int, fewest: int | None
) -> str:
    """Say when the load ends, whether that is in time, and which numbers of nodes are better."""
    n, end = len(chunks), float(chunks["compute_end"].max())
    verdict = "in time" if meets_deadline(end, deadline, deadline) else "too late"
    enough = f"{fewest} would do" if fewest else f"no number of the {len(times)} would do"
    verb = "is" if fastest == 1 else "are"
    text = f"On {n} of {len(times)} nodes the load ends at {end:.4g}, {verdict}: {enough}, "
    text += f"{fastest} {verb} the fastest ({times[fastest - 1]:.4g})."
    if n > fastest:
        count = int((chunks["alpha"] <= 0).sum())
        shares = "1 share comes" if count == 1 else f"{count} shares come"
        text += f" Beyond {fastest} one more set-up costs more than the share it takes over: "
        text += f"{shares} out at or below zero."
    return text
