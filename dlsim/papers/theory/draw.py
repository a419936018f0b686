"""Timing diagrams, the reduction's graphs and the counterexamples, from computed numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import networkx as nx
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlsim.papers.theory.study import Study, split
from dlsim.realtime import Cluster
from dlsim.steady.program import solve_program
from dlsim.steady.reduction import instance, largest_independent_set
from dlsim.study.gantt import plot_gantt, plot_timing, task_colors
from dlsim.study.plot import axes_of
from dlsim.study.study import keep
from dlsim.study.style import INK

#: A graph with a triangle, a path and a vertex of its own.
EDGES = ((1, 2), (1, 3), (2, 3), (3, 4), (4, 5))
VERTICES = 6


def fig2(study: Study, n: int = 3, ax: Axes | None = None) -> Axes:
    """Figure 2 of paper M from computed shares: one load on n nodes, no set-up cost."""
    chunks = split(study.sigma, n, study.bare)
    return keep(study, "mcdf-fig2", plot_timing(chunks, ax=ax), chunks)


def fig3(study: Study, n: int = 3, ax: Axes | None = None) -> Axes:
    """Figure 3 of paper M from computed shares: the same with set-up costs."""
    chunks = split(study.sigma, n, study.cluster)
    return keep(study, "mcdf-fig3", plot_timing(chunks, ax=ax), chunks)


def graph() -> nx.Graph:
    """Return the graph of Figures 6 and 7: a triangle, a path, a vertex of its own."""
    example = nx.Graph(EDGES)
    example.add_node(VERTICES)
    return example


def fig6(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 6 of paper S: a graph, with a largest independent set found by scheduling."""
    ax, example = axes_of(ax, (4.6, 3.2)), graph()
    chosen = largest_independent_set(example)
    place = nx.circular_layout(example)
    nx.draw_networkx(
        example, place, ax=ax, labels={v: f"$V_{v}$" for v in example}, node_size=620,
        node_color=[INK["sky"] if v in chosen else "white" for v in example],
        edgecolors="#333333",
    )  # fmt: skip
    names = {edge: f"$e_{k}$" for k, edge in enumerate(example.edges, start=1)}
    nx.draw_networkx_edge_labels(example, place, names, ax=ax)
    ax.set_axis_off()
    ax.set_title(f"largest independent set: {len(chosen)} of {len(example)} vertices")
    return keep(study, "steady-state-fig6", ax)


def _places(links: pd.DataFrame, routes: Mapping[tuple[int, int], Sequence[Any]]) -> dict[str, Any]:
    """Place cluster 0 on the left, routers by their edge, the other clusters on the right."""
    routers = sorted({name for name in (*links["start"], *links["end"]) if name[0] == "Q"})
    rows = sorted({name[1:-1] for name in routers}, key=int)
    top = max(len(rows), len(routes)) - 1
    row = {name: top * (1 - i / max(len(rows) - 1, 1)) for i, name in enumerate(rows)}
    place = {name: (1.3 if name[-1] == "a" else 2.1, row[name[1:-1]]) for name in routers}
    far = [i for (_, i), route in routes.items() if len(route) > 1]
    step = top / max(len(far) - 1, 1)
    right = {f"C{i}": (3.6, top - k * step) for k, i in enumerate(far)}
    # a vertex without edges has one link of its own, drawn below the routers
    alone = [i for (_, i), route in routes.items() if len(route) == 1]
    below = {f"C{i}": (3.6, -1.0 - k) for k, i in enumerate(alone)}
    return {**place, "C0": (0.0, top / 2), **right, **below}


def fig7(study: Study, ax: Axes | None = None) -> Axes:
    """Figure 7 of paper S: the platform built from the graph, with corrected indices."""
    ax, platform = axes_of(ax, (6.8, 4.6)), instance(graph())
    best, place = solve_program(platform), _places(platform.links, platform.routes)
    used = [route for pair, route in platform.routes.items() if best.connections[pair] > 0]
    busy = {link for route in used for link in route}
    for name, (start, end) in platform.links[["start", "end"]].iterrows():
        common = str(name).startswith("common")
        bend = 0 if common else 0.45 if start[0] == end[0] == "C" else 0.08
        ax.annotate("", place[end], place[start], arrowprops={
            "arrowstyle": "-", "linewidth": 3.4 if common else 1.2,
            "color": INK["blue"] if name in busy else "#BBBBBB",
            "connectionstyle": f"arc3,rad={bend}",
        })  # fmt: skip
    for name, (x, y) in place.items():
        box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "#333333"}
        text = f"$C^{name[1:]}$" if name[0] == "C" else f"$Q_{name[1:-1]}^{name[-1]}$"
        ax.text(x, y, text, ha="center", va="center", fontsize=9, bbox=box, zorder=5)
    heights = [y for _, y in place.values()]
    ax.set(xlim=(-0.4, 4.0), ylim=(min(heights) - 0.6, max(heights) + 0.6))
    ax.set_axis_off()
    ax.set_title(f"best throughput: {best.objective:g} (one connection per link)")
    return keep(study, "steady-state-fig7", ax, platform.links.rename_axis("link"))


def _placed(plan: Sequence[tuple[str, float, float, Sequence[int]]]) -> pd.DataFrame:
    """Lay out tasks (name, size, start, nodes) on two unit nodes."""
    unit, frames = Cluster(2, 1.0, 1.0), []
    for name, size, start, nodes in plan:
        chunks = split(size, len(nodes), unit).assign(task=name, node=list(nodes))
        chunks[["send_start", "send_end", "compute_end"]] += start
        frames.append(chunks)
    return pd.concat(frames, ignore_index=True)


def fig_order(study: Study) -> Figure:
    """Draw the counterexample to the order rule: cost 32 in decreasing DC, 30 otherwise."""
    figure, axes = plt.subplots(2, 1, figsize=(7.2, 4.6), layout="constrained")
    tasks = pd.DataFrame({"arrival": 0.0, "deadline": [17.0, 32.0, 19.0]}, index=["1", "2", "3"])
    colors = task_colors(list(tasks.index))
    plans = {
        "decreasing DC: 12 + 12 + 8 = 32": [
            ("2", 6, 0, [1]), ("3", 6, 0, [2]), ("1", 3, 12, [1, 2]),
        ],
        "in the order 1, 2, 3: 6 + 12 + 12 = 30": [
            ("1", 3, 0, [1]), ("2", 6, 0, [2]), ("3", 6, 6, [1]),
        ],
    }  # fmt: skip
    for ax, (title, plan) in zip(axes, plans.items(), strict=True):
        plot_gantt(_placed(plan), nodes=2, link=False, until=34, tasks=tasks, colors=colors, ax=ax)
        ax.set_title(title, loc="left")
    study.results.figure("theory-order", figure)
    return figure


def fig_release(study: Study, ax: Axes | None = None) -> Axes:
    """Draw the counterexample to paper I's Theorem 3: the end lies before node 2 is free."""
    ax = axes_of(ax, (7.2, 2.2))
    plot_gantt(_placed([("1", 1, 0, [1])]), nodes=[1, 2], link=False, until=6, ax=ax)
    ax.barh(1, 5, color="#EEEEEE", hatch="xx", edgecolor="#999999", zorder=1)
    ax.axvline(3.5, color=INK["vermillion"], linestyle="--")
    ax.text(3.55, 0, r"(3), (4): end 7/2, $\alpha_2 = -3/4$", va="center", fontsize=9)
    ax.text(5.05, 1, r"free at $r_2 = 5$", va="center", fontsize=9)
    ax.set_title("Both constraints hold; node 1 alone ends at 2", loc="left")
    return study.keep("release", ax)
