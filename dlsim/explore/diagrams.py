"""One load on a cluster: why more nodes can be slower (paper M, sections 3 to 5)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlsim.errors import InputError
from dlsim.explore.panel import Panel, Slider, new_figure, say
from dlsim.explore.strips import draw_bars, draw_chunks, key, legend_above, mark, name_rows
from dlsim.kernel import meets
from dlsim.realtime import SWITCHES, Cluster, Reading, simulate
from dlsim.realtime.partition import execution_time, fastest_nodes, fewest_nodes, total_cost
from dlsim.study.style import INK

#: Most nodes that the panel draws.
MOST = 16


def _draw_chunks(ax: Axes, chunks: pd.DataFrame, deadline: float) -> None:
    """Draw sends and computations row by row, and what no node could do in another look."""
    rows, end = np.arange(1, len(chunks) + 1), float(chunks["compute_end"].max())
    start, sent, done = (
        chunks[name].to_numpy(dtype=float) for name in ("send_start", "send_end", "compute_end")
    )
    real = chunks["alpha"].to_numpy() > 0
    for part, ink, looks in (
        (real, "blue", ("send", "compute")), (~real, "vermillion", ("impossible", "impossible")),
    ):  # fmt: skip
        times = [values[part] for values in (start, sent, sent, done)]
        draw_bars(ax, 0 * rows[part], times[0], times[1], INK[ink], looks[0])
        draw_chunks(ax, rows[part], times, INK[ink], looks)
    right = 1.04 * max(end, deadline if deadline < 2 * end else 0.0)
    ax.axvline(end, color="#333333", linestyle="--", linewidth=1.2, zorder=3)
    ax.axvline(deadline, color=INK["vermillion"], linewidth=1.6, zorder=3)
    shares = zip(rows, 100 * chunks["alpha"], strict=True)
    name_rows(ax, ["link", *(f"node {row}: {share:.3g} %" for row, share in shares)], 0, right)
    ax.set_xlabel("time", labelpad=1)


def _draw_curve(
    ax: Axes, values: list[float], best: int, ran: int, names: dict[str, int], label: str
) -> None:
    """Draw E or W over the number of nodes; hollow where the formula is no schedule."""
    n = np.arange(1, len(values) + 1)
    ax.plot(n[:best], values[:best], "o-", color=INK["blue"], zorder=3)
    ax.plot(n[best - 1 :], values[best - 1 :], ":", color=INK["vermillion"], zorder=2)
    ax.plot(n[best:], values[best:], "o", color=INK["vermillion"], mfc="white", zorder=3)
    ax.plot(ran, values[ran - 1], "o", color=INK["black"], mfc="none", ms=13, mew=1.6, zorder=4)
    ticks = sorted({1, len(values), *names.values()})
    words = {tick: [name if at == tick else "" for name, at in names.items()] for tick in ticks}
    ax.set_xticks(ticks, ["\n".join([str(tick), *words[tick]]).rstrip() for tick in ticks])
    ax.set_xlim(0.3, len(values) + 0.7)
    ax.margins(y=0.15)
    ax.locator_params(axis="y", nbins=5)
    ax.set_title(label, loc="left", fontsize=10, y=1.0)


def update(
    nodes: int, used: int, sigma: float, deadline: float, cms: float, cps: float, st: float,
    sc: float, reading: dict[str, str],
) -> Figure:  # fmt: skip
    """Draw the timing diagram of one load, and execution time and cost over the nodes."""
    if used > nodes:
        remedy = "use fewer nodes, or give the cluster more"
        raise InputError(f"used must be at most nodes={nodes}, got {used}: {remedy}")
    cluster = Cluster(nodes, cms, cps, st, sc)
    # what the engine does where all nodes serve every task
    task = pd.DataFrame({"arrival": [0.0], "sigma": [sigma], "deadline": [deadline]})
    chunks = simulate(task, Cluster(used, cms, cps, st, sc), "FIFOANNA", Reading.of(reading)).chunks
    n, end = len(chunks), float(chunks["compute_end"].max())
    best, least = fastest_nodes(sigma, cluster), fewest_nodes(sigma, deadline, cluster)
    figure = new_figure(8.4, 5.6, (1.25, 0.75, 0.15, 0.78), wspace=0.28, hspace=0.45)
    grid = figure.add_gridspec(2, 2, height_ratios=[1.25, 1])
    top = figure.add_subplot(grid[0, :])
    _draw_chunks(top, chunks, deadline)
    keys = [
        key("send", "sending", INK["blue"]), key("compute", "computing its share", INK["blue"]),
        mark("all done", color="#333333", linestyle="--"),
        mark("deadline", color=INK["vermillion"]),
    ]  # fmt: skip
    if n > best:
        keys.insert(2, key("impossible", "share below 0", INK["vermillion"]))
    legend_above(top, keys)
    names = {"fewest in time": least, "fastest": best, "used": n}
    names = {name: at for name, at in names.items() if at}
    every = [execution_time(sigma, k, cluster) for k in range(1, nodes + 1)]
    costs = [total_cost(sigma, k, cluster) for k in range(1, nodes + 1)]
    times, below = (figure.add_subplot(grid[1, column]) for column in (0, 1))
    _draw_curve(times, every, best, n, names, "execution time E(n)")
    times.axhline(deadline, color=INK["vermillion"], linewidth=1.6)
    _draw_curve(below, costs, best, n, names, "cost W(n) = n E(n), node time")
    verdict = "in time" if meets(end, deadline, deadline) else "too late"
    few = f"{least} would do" if least else f"no number of the {nodes} would do"
    words = f"On {n} of {nodes} nodes the load ends at {end:.4g}, {verdict}: {few}"
    words += f", {best} {'is' if best == 1 else 'are'} the fastest ({every[best - 1]:.4g})."
    if n > best:
        count = int((chunks["alpha"] <= 0).sum())
        words += (
            " Beyond that a further set-up costs more than the share it takes over: "
            f"{count} {'share comes' if count == 1 else 'shares come'} out at or below zero."
        )
    say(figure, words)
    return figure


PANEL = Panel(
    "timing",
    "One load on n nodes: who sends, who computes, and why more nodes can be slower",
    update,
    (
        Slider("used", 1, MOST, 1, 3, "nodes used n"),
        Slider("nodes", 1, MOST, 1, 10, "cluster's nodes N"),
        Slider("sigma", 1.0, 400.0, 1.0, 100.0, "size σ"),
        Slider("deadline", 10.0, 5000.0, 10.0, 1300.0, "deadline D"),
        Slider("cms", 0.1, 100.0, 0.05, 10.0, "sending a unit Cms", log=True),
        Slider("cps", 0.1, 1000.0, 0.05, 10.0, "computing a unit Cps", log=True),
        Slider("st", 0.0, 100.0, 1.0, 40.0, "set-up to send ST"),
        Slider("sc", 0.0, 100.0, 1.0, 20.0, "set-up to compute SC"),
    ),
    {"an_nodes": SWITCHES["an_nodes"]},
    (Reading,),
)
