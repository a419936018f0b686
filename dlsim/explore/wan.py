"""A heuristic's flows over a wide-area platform, beside those of the optimum.

Source: paper S (steady state), sections 3 to 6.
"""

import functools
import itertools
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from dlsim.explore.controls import Menu, Slider, StopSlider
from dlsim.explore.panel import panel
from dlsim.explore.pictures import new_figure
from dlsim.steady import METHODS, SWITCHES, Allocation, Platform, Reading, bound, solve, topology
from dlsim.study.plots import INK, draw_boxes, style_of

#: Methods that answer with a schedule; the first is the default.
SCHEDULE_METHODS = (
    "LPRG",
    *(name for name, method in METHODS.items() if not method.is_relaxed and name != "LPRG"),
    "LPRG+polish",
    "LPRR+polish",
)
#: Nodes of the branch-and-bound tree after which the search for the optimum ends.
MAX_SEARCH_NODES = 1
MAX_CLUSTERS = 10
#: A Tiers-like network of the paper's kind, small enough for a picture.
TIERS: dict[str, Any] = {"wan": 8, "mans": 4, "man": 3, "RW": 3, "RM": 2, "RMW": 1}
#: Means of the paper's Table 2 for random graphs, with few connections.
RANDOM: dict[str, Any] = {"gateway": 250.0, "bandwidth": 10.0, "max_connect": 5.0}
#: The real network "Abilene" in the package topohub.
ABILENE = "topozoo/Abilene"
#: The chain: speeds of its clusters in turn, their own links, and the links between them.
CHAIN_SPEEDS, CHAIN_GATEWAY = (10.0, 2.0), 20.0
CHAIN_LINK = {"bandwidth": 3.0, "max_connect": 2}
WAN_NETWORKS = ("Tiers-like", "random", "Abilene", "chain")
LINK_INK = {"unused": "#B5B5B5", "in use": INK["blue"], "full": INK["vermillion"]}
#: Smallest share of its speed at which a cluster counts as computing for others.
MIN_SHARE_FOR_OTHERS = 1e-6
#: Links shorter than this have their numbers so far above them, in points.
SHORT_LINK, ASIDE_POINTS = 40.0, 10.0
#: How a text stands in the middle of its place.
CENTERED: dict[str, Any] = {"ha": "center", "va": "center"}

_DEFINITIONS = {
    "G, LPR, LPRG, LPRR": "the paper's heuristics: greedy; the relaxed program rounded down; "
    "the same, then greedy on what is left; rounded at random",
    "MILP": "the mixed integer linear program: the optimum, or the best that was found",
    "+polish": "the data rates are solved for once more, with the connections as they are",
    "relaxed bound": "no schedule is better: the optimum if connections could be halved",
    "work / priority": "units of load computed per time for an application, over its priority; "
    "the smallest of them is the objective",
    "connections": "a link carries at most so many at once, each with its own bandwidth",
    "1/2": "one of the two connections of the link is open",
    "chain": "clusters in a row with speeds 10, 2, 10, 2, ... and two connections of bandwidth 3 "
    "between neighbours",
}


@panel(
    "Many applications on a wide-area platform: a heuristic beside the optimum",
    Menu("network", "network", WAN_NETWORKS),
    Slider("clusters", "clusters", 2, MAX_CLUSTERS, 1, 6),
    Slider("seed", "seed", 0, 99, 1, 78),
    StopSlider("bandwidth", "links faster, times", (0.1, 0.2, 0.5, 1, 2, 5, 10), 1.0),
    Slider("connections", "connections per link, at most", 0, 10, 1, 10),
    Menu("method", "method", SCHEDULE_METHODS),
    switches={**SWITCHES, **topology.SWITCHES},
    labels=Reading.labels() | topology.PlatformDraw.labels(),
    words=_DEFINITIONS,
)
def wan(
    network: str,
    clusters: int,
    seed: int,
    bandwidth: float,
    connections: int,
    method: str,
    reading: dict[str, str],
) -> tuple[Figure, str]:
    """Draw a platform with the flows of a heuristic, beside those of the optimum."""
    switches = {name: value for name, value in reading.items() if name in SWITCHES}
    table2 = reading.get("table2", topology.SWITCHES["table2"][0])
    rules = Reading.from_switches(switches)
    platform = make_platform(network, clusters, seed, bandwidth, connections, table2)
    best = best_allocation(platform, tuple(sorted(switches.items())))
    shown = best if method == "MILP" else solve(platform, method, rules, "python", seed=seed)
    relaxed = bound(platform)

    figure = new_figure(0.55, 0.66, 0.1, 0.22)
    rows = figure.add_gridspec(2, 1, height_ratios=[1.75, 1], hspace=0.16)
    maps = rows[0].subgridspec(1, 2, wspace=0.04)
    bars = rows[1].subgridspec(1, 2, width_ratios=[4, 1])
    name = "optimum" if best.is_proved else "best found"
    links = link_use(shown)
    _draw_map(figure.add_subplot(maps[0]), shown, links, f"{method}: {shown.objective:.4g}")
    best_links = links if best is shown else link_use(best)
    _draw_map(figure.add_subplot(maps[1]), best, best_links, f"{name}: {best.objective:.4g}")
    _draw_bars(figure.add_subplot(bars[0]), shown, best, relaxed, name)
    figure.legend(handles=_map_legend(), loc="lower center", ncols=4, columnspacing=1.2)
    return figure, _sentence(shown, best, relaxed, links)


def chain_platform(clusters: int) -> Platform:
    """Return clusters in a row, each joined to the next by the link `CHAIN_LINK`."""
    graph = nx.path_graph(clusters)
    nx.set_edge_attributes(graph, {edge: dict(CHAIN_LINK) for edge in graph.edges})
    return Platform.from_graph(
        graph,
        range(clusters),
        speed=np.resize(CHAIN_SPEEDS, clusters),
        gateway=np.full(clusters, CHAIN_GATEWAY),
        **{name: np.ones(clusters) for name in ("priority", "work", "data")},
    )


@functools.lru_cache(maxsize=64)
def make_platform(
    network: str, clusters: int, seed: int, bandwidth: float, connections: int, table2: str
) -> Platform:
    """Return a platform of a network; its links are made faster and limited as the sliders say."""
    if network == "chain":
        platform = chain_platform(clusters)
    elif network == "Abilene":
        platform = topology.hub(ABILENE, clusters, seed)
    elif network == "random":
        platform = topology.random(clusters, seed=seed, table2=table2, **RANDOM)
    else:
        platform = topology.tiers(clusters, seed, **TIERS)
    links = platform.links.assign(
        bandwidth=bandwidth * platform.links["bandwidth"],
        max_connect=np.minimum(platform.links["max_connect"], connections),
    )
    return replace(platform, links=links)


@functools.lru_cache(maxsize=64)
def best_allocation(platform: Platform, switches: tuple[tuple[str, str], ...]) -> Allocation:
    """Return the optimum, or the best schedule found at the root of the search."""
    rules = Reading.from_switches(dict(switches))
    return solve(platform, "MILP", rules, "python", most_nodes=MAX_SEARCH_NODES)


@functools.lru_cache(maxsize=64)
def place_routers(platform: Platform) -> dict[Any, Any]:
    """Return where the routers are drawn: a spring layout whose crowded parts are spread out."""
    graph = platform.to_graph()
    firsts = [next(iter(part)) for part in nx.connected_components(graph)]
    graph.add_edges_from(itertools.pairwise(firsts))  # or parts without a link drift far away
    layout = nx.spring_layout(graph, iterations=200, seed=0)
    spots = np.array(list(layout.values()))
    spots /= np.maximum(np.ptp(spots, axis=0), 1e-9)
    ranks = spots.argsort(axis=0).argsort(axis=0) / len(spots)
    return dict(zip(layout, spots + ranks, strict=True))


def link_use(allocation: Allocation) -> pd.DataFrame:
    """Return the platform's links with the connections opened on each and the data it carries."""
    platform = allocation.platform
    used = [
        (link, allocation.connections[pair], allocation.work[pair] * platform.data[pair[0]])
        for pair, route in platform.routes.items()
        for link in route
    ]
    sums = pd.DataFrame(used, columns=["link", "opened", "data"]).groupby("link").sum()
    links = platform.links.join(sums).fillna({"opened": 0, "data": 0.0}).astype({"opened": int})
    is_full = links["opened"] >= links["max_connect"]
    state = np.where(is_full, "full", "in use")
    return links.assign(state=np.where(links["opened"] > 0, state, "unused"))


def work_for_others(allocation: Allocation) -> "np.ndarray[Any, Any]":
    """Return the share of each cluster's speed at which it computes for other clusters."""
    platform = allocation.platform
    rate = allocation.work * platform.work[:, None]
    foreign = rate.sum(axis=0) - np.diag(rate)
    zeros = np.zeros_like(foreign)
    return np.divide(foreign, platform.speed, out=zeros, where=platform.speed > 0)


def _draw_map(ax: Axes, allocation: Allocation, links: pd.DataFrame, title: str) -> None:
    """Draw links by the data they carry and clusters by their speed."""
    platform = allocation.platform
    places = place_routers(platform)
    ends = [(places[u], places[v]) for u, v in zip(links["start"], links["end"], strict=True)]
    most = max(float(links["data"].max()) if len(links) else 0.0, 1e-9)
    widths = 0.8 + 4 * np.sqrt(links["data"] / most)
    inks = [LINK_INK[state] for state in links["state"]]
    ax.add_collection(LineCollection(ends, linewidths=widths, colors=inks, zorder=1))
    clusters = set(platform.router)
    routers = np.array([spot for node, spot in places.items() if node not in clusters])
    ax.plot(*routers.reshape(-1, 2).T, "o", ms=3, color="#777777", zorder=2)
    ax.margins(0.08)
    ax.autoscale_view()
    _write_connections(ax, ends, links)
    spots = np.array([places[node] for node in platform.router])
    sizes = 90 + 130 * platform.speed / max(platform.speed.max(), 1e-9)
    fills = [
        INK["orange"] if share > MIN_SHARE_FOR_OTHERS else "white"
        for share in work_for_others(allocation)
    ]
    look: dict[str, Any] = {"s": sizes, "c": fills, "edgecolors": "#222222", "linewidths": 1.2}
    ax.scatter(spots[:, 0], spots[:, 1], zorder=3, **look)
    for k, (x, y) in enumerate(spots):
        ax.text(x, y, str(k), fontsize=8.5, zorder=5, **CENTERED)
    ax.set_title(title, pad=2, y=1.0)
    ax.axis("off")


def _write_connections(ax: Axes, ends: list[tuple[Any, Any]], links: pd.DataFrame) -> None:
    """Write open and allowed connections on every link in use, beside it if it is short."""
    plate = {"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.85}
    to_points = ax.transData + ax.figure.dpi_scale_trans.inverted()
    for pair, opened, allowed in zip(ends, links["opened"], links["max_connect"], strict=True):
        if not opened:
            continue
        start, end = 72 * to_points.transform(pair)
        along, up = end - start
        length = max(float(np.hypot(along, up)), 1e-9)
        aside = np.copysign(ASIDE_POINTS / length, along) * np.array([-up, along])
        text = f"{opened}/{allowed:g}"
        look: dict[str, Any] = {"fontsize": 8, "zorder": 4, "bbox": plate, **CENTERED}
        place = aside if length < SHORT_LINK else (0.0, 0.0)
        ax.annotate(text, np.mean(pair, axis=0), place, textcoords="offset points", **look)


def _draw_bars(
    ax: Axes, shown: Allocation, best: Allocation, relaxed: float, best_name: str
) -> None:
    """Draw the throughput of every application, by the heuristic and in the optimum."""
    counted = np.flatnonzero(shown.platform.is_counted)
    places = np.arange(len(counted))
    color = INK["green"] if shown.name == "MILP" else style_of(shown.name.split("+")[0]).color
    ax.axhline(shown.objective, color=color, lw=1.6, zorder=3)
    ax.axhline(best.objective, color="#333333", lw=1.2, ls="--", zorder=3)
    entries: list[Any] = [
        ax.axhline(relaxed, color="#333333", lw=1.2, ls=":", zorder=3, label="relaxed bound")
    ]
    for allocation, shift, ink, label, hatch in (
        (shown, -0.2, color, shown.name, None),
        (best, 0.2, "#C8C8C8", best_name, "////"),
    ):
        left, heights = places + shift - 0.19, allocation.values[counted]
        look: dict[str, Any] = {"hatch": hatch, "edgecolors": "#333333", "linewidths": 0.6}
        draw_boxes(ax, left, left + 0.38, 0 * heights, heights, ink, **look)
        entries.append(Patch(fc=ink, hatch=hatch, ec="#333333", lw=0.6, label=label))
    values = np.concatenate([shown.values[counted], best.values[counted], [relaxed, 1e-9]])
    top = min(values.max(), 4 * relaxed) if relaxed > 0 else values.max()
    ax.set_ylim(0, 1.08 * top)  # a bar that is much higher than the bound is cut
    ax.set_xlim(-0.6, len(counted) - 0.4)
    ax.set_xticks(places, [str(k) for k in counted])
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.set(xlabel="application; lines: the worst-served one", ylabel="work / priority")
    ax.xaxis.labelpad = 0
    ax.grid(visible=False, axis="x")
    ax.legend(handles=entries, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _map_legend() -> list[Line2D]:
    """Return the legend entries of the maps."""
    words = {
        "unused": "link unused",
        "in use": "link in use (open/allowed)",
        "full": "all connections open",
    }
    lines = [Line2D([], [], color=ink, lw=3, label=words[state]) for state, ink in LINK_INK.items()]
    look: dict[str, Any] = {"ls": "", "marker": "o", "ms": 8, "mfc": INK["orange"]}
    return [*lines, Line2D([], [], mec="#222222", label="computes for others", **look)]


def _sentence(shown: Allocation, best: Allocation, relaxed: float, links: pd.DataFrame) -> str:
    """Describe the throughput of the worst-served application, by heuristic and in the optimum."""
    value = f"{best.objective:.4g}" if best.is_proved else f"at least {best.objective:.4g}"
    comparison = f"the optimum {value}"
    if best.objective > 0:
        comparison = f"{100 * shown.objective / best.objective:.3g} % of the optimum's {value}"
    full = int((links["state"] == "full").sum())
    return (
        f"{shown.name} gives its worst-served application {shown.objective:.4g}, {comparison} "
        f"(relaxed bound {relaxed:.4g}); links with all connections open: {full} of {len(links)}."
    )
