"""`explore.wan`: a heuristic's flows over a wide-area platform beside the exact optimum.

Source: paper S (steady-state), sections 3 to 6.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from dlsim.explore.panel import Choice, Numbers, Slider, new_figure, panel, say
from dlsim.given import Floats
from dlsim.papers.steady_state.cells import SWITCHES, TIE, split_switches
from dlsim.papers.steady_state.draw import draw_links, flows, link_keys
from dlsim.steady import METHODS as ALL_METHODS
from dlsim.steady import Allocation, Platform, Reading, bound, solve, topology
from dlsim.steady.engine import split_method
from dlsim.study.style import INK, style_of

#: What may be drawn: every method that answers with a schedule, and two of them polished.
METHODS = (
    "LPRG",
    *(name for name, known in ALL_METHODS.items() if not known.is_relaxed and name != "LPRG"),
    "LPRG+polish",
    "LPRR+polish",
)
#: Networks that are drawn at random.
DRAWN = ("Tiers-like", "random", "Abilene")
#: Where the search for the optimum ends; from there on the relaxed bound stands for it.
NODES = 1
#: A Tiers-like network of the paper's kind, small enough for a picture.
TIERS: dict[str, Any] = {"wan": 8, "mans": 4, "man": 3, "RW": 3, "RM": 2, "RMW": 1}
#: Means of Table 2 for the random graphs, the connections few.
RANDOM: dict[str, Any] = {"gateway": 250.0, "bandwidth": 10.0, "max_connect": 5.0}
#: The real network, of the package topohub.
REAL = "topozoo/Abilene"
#: A link of the platforms made by hand: bandwidth of a connection, connections; and the
#: bandwidth of every cluster's own link.
HAND, GATEWAY = {"bandwidth": 3.0, "max_connect": 2}, 20.0
_MOST = 10
#: Where a label may stand along its link, and beside it, the best places first.
ALONG, ASIDE = (0.42, 0.5, 0.58, 0.34, 0.66, 0.26, 0.74, 0.2, 0.8), (0.0, 1.0, -1.0)
_PLATE: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85}
_MIDDLE: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10, "in_layout": False}


def chain(speeds: Sequence[float]) -> Platform:
    """Return clusters in a row, each joined to the next by a link of `HAND`."""
    count = len(speeds)
    graph = nx.path_graph(count)
    nx.set_edge_attributes(graph, {edge: dict(HAND) for edge in graph.edges})
    ones = {name: np.ones(count) for name in ("priority", "work", "data")}
    return Platform.from_graph(
        graph, range(count), speed=speeds, gateway=np.full(count, GATEWAY), **ones
    )


def funnel() -> Platform:
    """Return two clusters without speed that need one connection of one link to a third."""
    graph = nx.Graph([(0, "in"), (1, "in"), ("in", 2)])
    nx.set_edge_attributes(graph, 4.0, "bandwidth")
    nx.set_edge_attributes(graph, 9, "max_connect")
    graph.edges["in", 2]["max_connect"] = 1
    ones = {name: np.ones(3) for name in ("work", "data")}
    ones |= {"speed": np.array([0.0, 0.0, 10.0]), "priority": np.array([1.0, 1.0, 0.0])}
    return Platform.from_graph(graph, range(3), gateway=np.full(3, 20.0), **ones)


#: Platforms by name: (clusters, seed, speeds, table2) to a platform.
NETWORKS: dict[str, Callable[[int, int, Sequence[float], str], Platform]] = {
    "Tiers-like": lambda k, seed, speeds, table2: topology.tiers(k, seed, **TIERS),
    "random": lambda k, seed, speeds, two: topology.random(k, seed=seed, table2=two, **RANDOM),
    "Abilene": lambda k, seed, speeds, table2: topology.hub(REAL, k, seed),
    "chain by hand": lambda k, seed, speeds, table2: chain(speeds),
    "one connection for two": lambda k, seed, speeds, table2: funnel(),
}


@functools.lru_cache(maxsize=64)
def platform_of(
    network: str, clusters: int, seed: int, speeds: tuple[float, ...], bandwidth: float,
    connections: int, table2: str = "one",
) -> Platform:  # fmt: skip
    """Make a platform and change its links."""
    p = NETWORKS[network](clusters, seed, speeds, table2)
    links = p.links.assign(
        bandwidth=bandwidth * p.links["bandwidth"],
        max_connect=np.minimum(p.links["max_connect"], connections),
    )
    return replace(p, links=links)


@functools.lru_cache(maxsize=64)
def _places(p: Platform) -> dict[Any, Any]:
    """Return where the routers are drawn; parts that no path joins lie side by side."""
    graph, places, right = p.to_graph(), dict[Any, Any](), 0.0
    for part in nx.connected_components(graph):
        nodes = [node for node in graph if node in part]
        alone = nx.Graph()  # in the order of these nodes, not in that of a set
        alone.add_nodes_from(nodes)
        alone.add_edges_from((u, v) for u, v in graph.edges if u in part)
        own = nx.spring_layout(alone, iterations=300, seed=0, method="force")
        spots = np.array([own[node] for node in nodes])
        # half the way to equal steps: what is crowded opens, and who is at the left of whom stays
        spots /= np.maximum(np.ptp(spots, axis=0), 1e-9)
        spots += spots.argsort(axis=0).argsort(axis=0) / len(nodes)
        spots *= math.sqrt(len(nodes)) / 2
        spots -= spots.min(axis=0)
        places |= dict(zip(nodes, spots + np.array([right, 0.0]), strict=True))
        right += float(spots[:, 0].max()) + 1.0
    return places


def _depends_on(switch: str, values: Mapping[str, Any]) -> bool:
    """Tell whether the method shown depends on a switch of the reading."""
    return switch in split_method(values["method"])[0].switches


@functools.lru_cache(maxsize=64)
def _optimum(p: Platform, switches: tuple[tuple[str, str], ...]) -> Allocation:
    return solve(p, "MILP", reading=split_switches(dict(switches))[0], most_nodes=NODES)


def _apart(ends: Floats, sizes: Floats, taken: Floats) -> Floats:
    """Return where labels on links hide least of each other and of the boxes taken, in pixels.

    Of the places along a link, and beside it, the first that hides least, short links first;
    shapes: ends (links, 2, 2), sizes (links, 2), taken (boxes, 4) with centre and size.
    """
    spots = ends.mean(axis=1)
    for k in np.argsort(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1), kind="stable"):
        start, way = ends[k, 0], ends[k, 1] - ends[k, 0]
        across = np.array([-way[1], way[0]]) / max(float(np.linalg.norm(way)), 1e-9)
        aside = np.multiply.outer(ASIDE, across * (sizes[k] / 2 + 3))
        places = (start + np.multiply.outer(ALONG, way) + aside[:, None]).reshape(-1, 2)
        both = (sizes[k] + taken[:, 2:]) / 2 - np.abs(places[:, None] - taken[:, :2])
        spots[k] = places[np.clip(both, 0, None).prod(axis=2).sum(axis=1).round(6).argmin()]
        taken = np.vstack([taken, [*spots[k], *sizes[k]]])
    return spots


def _map(ax: Axes, a: Allocation, title: str) -> pd.DataFrame:
    """Draw links by the data they carry and the connections they have left; return them."""
    p, places, (_, busy) = a.platform, _places(a.platform), flows(a)
    table = draw_links(ax, a, places)
    others = busy.sum(axis=0) - np.diag(busy)
    fills = [INK["orange"] if share > TIE else "white" for share in others]
    spots = np.array([places[node] for node in p.router])
    size = 110 + 190 * p.speed / max(p.speed.max(), 1e-9)
    look: Any = {"s": size, "c": fills, "edgecolors": "#222222", "linewidths": 1.2}
    ax.scatter(spots[:, 0], spots[:, 1], zorder=3, **look)
    for k, (x, y) in enumerate(spots):
        ax.text(x, y, str(k), zorder=5, **_MIDDLE)
    ax.set_title(title, fontsize=11, pad=3, y=1.0)
    ax.margins(0.08)
    ax.axis("off")
    shown = table[(table["opened"] > 0) | (len(table) <= 8)]
    if shown.empty:
        return table
    texts = [f"{row.opened}/{row.max_connect:g}" for row in shown.itertuples()]
    ax.autoscale_view()
    point, to_pixels = ax.figure.dpi / 72, ax.transData
    ends = np.array([places[end] for end in shown[["start", "end"]].to_numpy(object).ravel()])
    circles = np.sqrt(size)[:, None] * point * np.ones(2)
    letters = np.array([[6.4 * len(text) + 1, 11.0] for text in texts]) * point
    taken = np.hstack([to_pixels.transform(spots), circles])
    at = _apart(to_pixels.transform(ends).reshape(-1, 2, 2), letters, taken)
    for text, (x, y) in zip(texts, to_pixels.inverted().transform(at), strict=True):
        ax.text(x, y, text, zorder=4, bbox=_PLATE, **_MIDDLE)
    return table


def _bars(ax: Axes, a: Allocation, best: Allocation, top: float) -> None:
    counted = np.flatnonzero(a.platform.counted)
    at = np.arange(len(counted))
    ink = style_of(a.method.split("+")[0]).color if a.method != "MILP" else INK["green"]
    name = "optimum" if best.is_proved else "best found"
    values = np.concatenate([a.values[counted], best.values[counted]])
    # bars are cut well above the bound, below lonely giants
    highest = max(float(values.max(initial=0.0)), top, 1e-9)
    high = 1.08 * (min(highest, 4 * top) if top > 0 else highest)
    looks = (a, -0.2, ink, a.method, ""), (best, 0.2, "#C8C8C8", name, "////")
    for one, shift, color, label, hatch in looks:
        ax.bar(at + shift, one.values[counted], 0.38, edgecolor="#333333", lw=0.6, color=color,
               label=label, hatch=hatch)  # fmt: skip
        for x, value in zip(at + shift, one.values[counted], strict=True):
            if value > high:
                look = {**_MIDDLE, "va": "top", "rotation": 90}
                ax.text(x, 0.97 * high, f"{value:.4g}", bbox=_PLATE, **look)
    ax.axhline(a.objective, color=ink, lw=1.6)
    ax.axhline(best.objective, color="#333333", lw=1.2, ls="--")
    ax.axhline(top, color="#333333", lw=1.2, ls=":", label="relaxed bound")
    ax.set_ylim(0, high)
    ax.set_xticks(at, [str(k) for k in counted])
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.set(xlabel="application; lines: the worst-served one", ylabel="work / priority")
    ax.grid(visible=False, axis="x")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


@panel(
    "Many applications on a wide-area platform: a heuristic beside the optimum",
    Choice("network", tuple(NETWORKS), "network"),
    Slider("clusters", 3, _MOST, 1, 8, "clusters"),
    Slider("seed", 0, 99, 1, 1, "seed"),
    Numbers("speeds", (10.0, 2.0), "speeds of the chain", 0.0, 1e6, _MOST),
    Slider("bandwidth", 0.1, 10.0, 0, 1.0, "links faster, times"),
    Slider("connections", 0, _MOST, 1, _MOST, "connections, at most"),
    Choice("method", METHODS, "method"),
    switches=SWITCHES, explained=(Reading, topology.random),
    live={
        "clusters": lambda v: v["network"] in DRAWN,
        "seed": lambda v: v["network"] in DRAWN or v["method"].startswith("LPRR"),
        "speeds": lambda v: bool(v["network"] == "chain by hand"),
        "table2": lambda v: bool(v["network"] == "random"),
        **{
            switch: functools.partial(_depends_on, switch)
            for switch in ("local_amount", "stuck", "lprg_start")
        },
    },
)  # fmt: skip
def wan(
    network: str, clusters: int, seed: int, speeds: tuple[float, ...], bandwidth: float,
    connections: int, method: str, reading: Mapping[str, str],
) -> Figure:  # fmt: skip
    """Draw a platform with the flows of a heuristic, beside those of the optimum."""
    rules, drawn = split_switches(reading)
    p = platform_of(network, clusters, seed, speeds, bandwidth, connections, **drawn)
    best = _optimum(p, tuple(sorted(rules.changes().items())))
    a = best if method == "MILP" else solve(p, method, seed, rules)
    top = bound(p)
    figure = new_figure(9.4, 6.0, (0.85, 1.0, 1.65, 0.3), wspace=0.03, hspace=0.04)
    heights = [2.3, 1]
    grid = figure.add_gridspec(2, 2, height_ratios=heights)
    maps = figure.add_gridspec(2, 2, height_ratios=heights, left=0.01, right=0.99)
    word = "optimum" if best.is_proved else "best found at the root of the search"
    table = _map(figure.add_subplot(maps[0, 0]), a, f"{method}: {a.objective:.4g}")
    _map(figure.add_subplot(maps[0, 1]), best, f"{word}: {best.objective:.4g}")
    _bars(figure.add_subplot(grid[1, :]), a, best, top)
    works = Line2D([], [], ls="", marker="o", ms=8, mfc=INK["orange"], mec="#222222",
                   label="computes for others (larger: faster)")  # fmt: skip
    keys = [*link_keys(used="in use (used/allowed)"), works]
    figure.legend(handles=keys, loc="lower center", ncols=4)
    full = int(((table["opened"] >= table["max_connect"]) & (table["opened"] > 0)).sum())
    words = f"{a.method} gives its worst-served application {a.objective:.4g}"
    other = f"{best.objective:.4g}" if best.is_proved else f"at least {best.objective:.4g}"
    part = f"the optimum {other}"
    if best.objective > 0:
        part = f"{100 * a.objective / best.objective:.3g} % of the optimum's {other}"
    links = f"links with all connections open: {full} of {len(table)}"
    say(figure, f"{words}, {part} (relaxed bound {top:.4g}); {links}.")
    return figure
