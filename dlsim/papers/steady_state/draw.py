"""Paper S's drawings: platforms, topologies, flows; what its tables print and we drew."""

import functools
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from dlsim.errors import InputError
from dlsim.given import child
from dlsim.papers.steady_state import cells
from dlsim.papers.steady_state.cells import of_kind, printed_table, rounding
from dlsim.papers.steady_state.study import Study
from dlsim.steady import Allocation, Platform, bound, solve, topology
from dlsim.steady.graphs import prune
from dlsim.study.plot import axes_of, boxed, panels, tiles
from dlsim.study.style import INK, style_of

Places = Mapping[Any, Any]
#: Links: nothing on them, in use, all connections open.
LINKS = {"free": "#B5B5B5", "used": INK["blue"], "full": INK["vermillion"]}
_PLATE = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.8}
#: The real network of `fig_wan`, and how many of its nodes are clusters.
REAL, REAL_CLUSTERS = "sndlib/germany50", 20


def fig1(study: Study, p: Platform, ax: Axes | None = None) -> Axes:
    """Figure 1 redrawn: clusters behind routers, joined by backbone links."""
    ax, graph, router = axes_of(ax, (7.6, 4.6)), p.to_graph(), list(p.router)
    places = nx.kamada_kawai_layout(graph)
    centre = np.mean(list(places.values()), axis=0)
    nx.draw_networkx_edges(graph, places, ax=ax, width=1.6, edge_color="0.6")
    nx.draw_networkx_nodes(graph, places, ax=ax, node_size=70, node_color="white",
                           edgecolors=INK["blue"], linewidths=1.5)  # fmt: skip
    for k, node in enumerate(router):
        away = places[node] - centre
        spot = places[node] + 0.42 * away / (np.linalg.norm(away) + 1e-9)
        ax.plot(*zip(places[node], spot, strict=True), color=INK["vermillion"], lw=2.5, zorder=1)
        text = f"$C^{{{k}}}$, speed {p.speed[k]:,.0f}\nlink {p.gateway[k]:,.0f}"
        boxed(ax, spot[0], spot[1], text, 0.35, fontsize=8)
    ax.set_title(
        f"{p.clusters} clusters, {len(graph)} routers, {len(p.links)} backbone links "
        "(orange: a cluster's own link, kbit/s)"
    )
    ax.margins(0.18)
    ax.axis("off")
    return study.keep("fig1", ax, p.links.reset_index(names="link"))


def notation() -> Platform:
    """Return the platform of Figure 2: two clusters, three routers, two links between them."""
    graph = nx.path_graph(["router k", "router", "router l"])
    graph.edges["router k", "router"].update(bandwidth=3.0, max_connect=2)
    graph.edges["router", "router l"].update(bandwidth=5.0, max_connect=4)
    one = {name: [1.0, 1.0] for name in ("priority", "work", "data")}
    ends = {"speed": [10.0, 2.0], "gateway": [20.0, 20.0]}
    return Platform.from_graph(graph, ["router k", "router l"], **ends, **one)


def fig2(study: Study, p: Platform, ax: Axes | None = None) -> Axes:
    """Figure 2 redrawn: what the symbols name, on a platform with numbers."""
    ax = axes_of(ax, (8.4, 3.2))
    x = (0.0, 1.0, 2.4, 3.8, 4.8)
    ends = [f"$C^{n}_{{master}}$\n$s_{n}$ = {v:g}" for n, v in zip("kl", p.speed, strict=True)]
    boxes = (ends[0], "$C^k_{router}$", "router", "$C^l_{router}$", ends[1])
    gates = [f"$g_{n}$ = {v:g}" for n, v in zip("kl", p.gateway, strict=True)]
    links = [
        f"$l_{i}$: bw = {bw:g}\nmax-connect($l_{i}$) = {most:g}"
        for i, bw, most in p.links[["bandwidth", "max_connect"]].itertuples()
    ]
    for at, text in zip(x, boxes, strict=True):
        boxed(ax, at, 0, text, 0.35)
    for (a, b), text in zip(pairwise(x), (gates[0], *links, gates[1]), strict=True):
        own = text in gates
        color, wide = (INK["vermillion"], 3) if own else ("0.5", 2)
        ax.plot([a, b], [0, 0], color=color, lw=wide, zorder=1)
        ax.text((a + b) / 2, -0.34 if own else -0.42, text, ha="center", fontsize=9)
    route, one = ", ".join(f"l_{i}" for i in p.routes[0, 1]), p.connection_bandwidth(0, 1)
    ax.annotate("", (x[3], 0.5), (x[1], 0.5), arrowprops={"arrowstyle": "->", "color": "0.3"})
    text = rf"$L_{{k,l}} = \{{{route}\}}$,  $g_{{k,l}} = \min bw$ = {one:g} per connection"
    ax.text(x[2], 0.58, text, ha="center")
    ax.set(xlim=(-0.6, 5.4), ylim=(-0.75, 0.95))
    ax.axis("off")
    return study.keep("fig2", ax, p.links.reset_index(names="link"))


def tiers_places(graph: nx.Graph, seed: int, wan: int = 40, man: int = 20) -> dict[int, Any]:
    """Place a two-level network: the wide area in the middle, the others around it."""
    core = nx.spring_layout(graph.subgraph(range(wan)), seed=seed)
    places = dict(core)
    groups = [range(first, first + man) for first in range(wan, len(graph), man)]

    def bearing(group: range) -> float:
        doors = {v for u in group for v in graph[u] if v < wan}
        return float(np.arctan2(*np.mean([core[v] for v in doors], axis=0)[::-1]))

    for k, group in enumerate(sorted(groups, key=bearing)):
        angle = 2 * np.pi * k / len(groups) - np.pi
        middle = (1.75 + 0.45 * (k % 2)) * np.array([np.cos(angle), np.sin(angle)])
        inner = nx.spring_layout(graph.subgraph(group), seed=seed, scale=0.19)
        places.update({node: middle + spot for node, spot in inner.items()})
    return places


def fig3(study: Study, graph: nx.Graph, routers: Sequence[Any]) -> Axes:
    """Figure 3: a Tiers-like topology in full, and pruned to the routes between clusters."""
    axes = panels(None, 2, (11, 5.4))
    small, places = prune(graph, routers), tiers_places(graph, study.seed)
    for ax, shown, title in zip(axes, (graph, small), ("in full", "pruned"), strict=True):
        plain = [node for node in shown if node not in set(routers)]
        nx.draw_networkx_edges(shown, places, ax=ax, width=0.6, edge_color="0.6")
        for nodes, size, ink, what in (
            (plain, 9, "sky", "another node"), (routers, 34, "vermillion", "a cluster's router")
        ):  # fmt: skip
            nx.draw_networkx_nodes(shown, places, nodes, size, INK[ink], ax=ax, label=what)
        ax.set_title(f"{title}: {len(shown)} nodes, {shown.number_of_edges()} links")
        ax.set_aspect("equal")
        ax.axis("off")
    axes[-1].set_xlim(axes[0].get_xlim())
    axes[-1].legend(loc="lower right")
    return study.keep("fig3", axes[0], pd.DataFrame(small.edges, columns=["start", "end"]))


@functools.lru_cache(maxsize=8)
def flows(a: Allocation) -> tuple[pd.DataFrame, Any]:
    """Return what an allocation puts on every link and whose work every cluster does."""
    p = a.platform
    used = [
        (link, a.connections[pair], a.work[pair] * p.data[pair[0]])
        for pair, route in p.routes.items()
        for link in route
    ]
    sums = pd.DataFrame(used, columns=["link", "opened", "data"]).groupby("link").sum()
    table = p.links.join(sums).fillna({"opened": 0, "data": 0.0}).astype({"opened": int})
    cost = a.work * p.work[:, None]
    return table, np.divide(cost, p.speed, out=np.zeros_like(cost), where=p.speed > 0)


def draw_links(ax: Axes, a: Allocation, places: Places) -> pd.DataFrame:
    """Draw links by the data they carry and the connections they have left; return them."""
    table, router = flows(a)[0], set(a.platform.router)
    most = max(float(table["data"].max()) if len(table) else 0.0, 1e-9)
    ends = [(places[u], places[v]) for u, v in zip(table["start"], table["end"], strict=True)]
    full = np.where(table["opened"] >= table["max_connect"], "full", "used")
    inks = [LINKS[state] for state in np.where(table["opened"] > 0, full, "free")]
    widths = 0.8 + 5 * np.sqrt(table["data"] / most)
    ax.add_collection(LineCollection(ends, linewidths=widths, colors=inks, zorder=1))
    plain = np.array([places[node] for node in places if node not in router])
    ax.plot(*plain.reshape(-1, 2).T, "o", ms=3, color="#777777", zorder=2)
    return table


def link_keys(**words: str) -> list[Line2D]:
    """Make the legend entries of links, with other words for some of them."""
    words = {"free": "unused", "used": "in use", "full": "all connections open", **words}
    return [Line2D([], [], color=LINKS[state], lw=3, label=words[state]) for state in LINKS]


def _map(ax: Axes, a: Allocation, places: Places, title: str) -> tuple[pd.DataFrame, Any]:
    """Draw links, and clusters by speed and by what they do for others; return both."""
    p, (_, busy), table = a.platform, flows(a), draw_links(ax, a, places)
    others = busy.sum(axis=0) - np.diag(busy)
    spots = np.array([places[node] for node in p.router])
    size = 60 + 320 * p.speed / p.speed.max()
    look: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": 1, "edgecolor": "white"}
    drawn = ax.scatter(spots[:, 0], spots[:, 1], s=size, c=others, zorder=3, **look)
    for k, spot in enumerate(spots):
        ax.annotate(str(k), spot, (7, 7), textcoords="offset points", fontsize=9, bbox=_PLATE)
    ax.figure.colorbar(drawn, ax=ax, label="speed at work for others", shrink=0.75, pad=0.01)
    below: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.02), "fontsize": "small"}
    ax.legend(handles=link_keys(), ncols=3, **below)
    ax.set(title=title)
    ax.margins(0.06)
    ax.axis("off")
    return table, busy


def fig_flows(study: Study, a: Allocation) -> Axes:
    """Beyond the paper: a platform with its flows, and whose work each cluster does."""
    axes, p = panels(None, 2, (12.5, 5.4), sharey=False, width_ratios=(1.2, 1)), a.platform
    places = nx.kamada_kawai_layout(p.to_graph())
    table, busy = _map(axes[0], a, places, f"{a.method}: {a.objective:.3g}, bound {bound(p):.3g}")
    shown = pd.DataFrame(np.where(busy > 0, 100 * busy, np.nan))
    tiles(shown, shown.map("{:.0f}".format), "viridis", (0, 100), axes[1], size=8).grid(False)
    title = "% of the speed of cluster l"
    axes[1].set(xlabel="done by cluster l", ylabel="application of cluster k", title=title)
    return study.keep("flows", axes[0], table.reset_index(names="link"))


def fig_wan(study: Study, name: str = REAL, clusters: int = REAL_CLUSTERS) -> pd.DataFrame | None:
    """Beyond the paper: draw, and return, how every method does on a real wide-area network."""
    seed, (reading, _) = child(study.seed, 0), cells.split_switches(study.switches)
    try:
        p = topology.hub(name, clusters, seed)
    except InputError as error:
        if "pip install" not in str(error):
            raise
        print(f"No picture of a real network: {error}")
        return None
    axes = panels(None, 2, (11.5, 5), sharey=False, width_ratios=(1.5, 1))
    methods = ("G", "LPR", "LPRG", "LPRR", "LPRG+polish", "MILP")
    found = {m: solve(p, m, rounding(seed), reading) for m in methods}
    best = max(found, key=lambda m: found[m].objective)
    import topohub

    # where its nodes lie, or a layout where they carry no places
    graph, every = p.to_graph(), {one["id"]: one.get("pos") for one in topohub.get(name)["nodes"]}
    known = all(every.get(node) is not None for node in graph)
    places = {node: every[node] for node in graph} if known else nx.kamada_kawai_layout(graph)
    _map(axes[0], found[best], places, f"{name}, {clusters} clusters: {best}")
    table = pd.DataFrame({"policy": methods, "ratio": [round(found[m].ratio, 9) for m in methods]})
    colors = [style_of(m.split("+")[0]).color for m in methods]
    bars = axes[1].barh(table["policy"], table["ratio"], color=colors)
    axes[1].bar_label(bars, fmt="{:.2f}", padding=3)
    axes[1].invert_yaxis()
    axes[1].set(xlabel="objective / bound", xlim=(0, 1.12))
    study.keep("wan", axes[0], table)
    return table


def drawn(study: Study, number: int) -> dict[str, Any]:
    """Return the numbers of the first five of the study's largest platforms, by parameter."""
    kind, sizes = {1: ("Tiers", study.size.tiers_clusters),
                   2: ("random", study.size.random_clusters)}[number]  # fmt: skip
    some = [of_kind(kind, max(sizes), child(study.seed, r)) for r in range(5)]
    return {
        name: np.concatenate([p.links[name] if name in p.links else getattr(p, name) for p in some])
        for name in ("bandwidth", "gateway", "speed", "max_connect", "data", "work", "priority")
    }


def parameters(study: Study, number: int) -> pd.DataFrame:
    """Table 1 or 2: what is printed, and the numbers of the study's platforms."""
    table = printed_table(number).set_index("parameter")
    found = {name: np.quantile(x, (0, 0.5, 1)) for name, x in drawn(study, number).items()}
    columns = ["least drawn", "median drawn", "largest drawn"]
    table = table.join(pd.DataFrame.from_dict(found, "index", columns=columns))
    study.table(f"table{number}", table.reset_index())
    return table
