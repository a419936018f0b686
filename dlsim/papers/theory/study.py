"""One load on one cluster: what is computed from it, timing diagrams, graphs, counterexamples."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import ceil, log
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from dlsim.realtime import Cluster, shares
from dlsim.realtime.core.formulas import duration
from dlsim.realtime.partition import execution_time, fastest_nodes, fewest_nodes, table_of
from dlsim.steady.program import solve_program
from dlsim.steady.reduction import instance, largest_independent_set
from dlsim.study import study
from dlsim.study.plot import axes_of, boxed
from dlsim.study.study import keep
from dlsim.study.style import INK

#: A graph with a triangle, a path and a vertex of its own.
EDGES = ((1, 2), (1, 3), (2, 3), (3, 4), (4, 5))
VERTICES = 6


@dataclass(frozen=True)
class Study(study.Study):
    """One load on one cluster: `dlsim.study.study.Study`, whose runs are random loads.

    Parameters
    ----------
    nodes, cms, cps, st, sc : int, float, float, float, float
        The cluster of the curves.
    sigma, budget : float
        Size of the load, and the time it is given.
    """

    nodes: int = 12
    cms: float = 10.0
    cps: float = 10.0
    st: float = 20.0
    sc: float = 20.0
    sigma: float = 100.0
    budget: float = 1200.0

    KEY, SCALES = "theory", study.scales("theory")

    def check(self) -> None:
        """Refuse what cannot be drawn before anything is."""
        fastest_nodes(self.sigma, self.cluster)

    @functools.cached_property
    def cluster(self) -> Cluster:
        """The cluster with set-up costs."""
        return Cluster(self.nodes, self.cms, self.cps, self.st, self.sc)

    @functools.cached_property
    def bare(self) -> Cluster:
        """The same cluster without them."""
        return Cluster(self.nodes, self.cms, self.cps)

    @functools.cached_property
    def most(self) -> int:
        """N*, the fastest number of nodes: the last whose shares are all positive."""
        return fastest_nodes(self.sigma, self.cluster)

    @functools.cached_property
    def least(self) -> int:
        """The fewest nodes that meet the budget; 0 = there are none."""
        return fewest_nodes(self.sigma, self.budget, self.cluster)


def split(sigma: float, n: int, cluster: Cluster) -> pd.DataFrame:
    """Lay out one load on n equal nodes: sends in turn, a common end (paper M, section 4)."""
    alpha = shares(sigma, n, cluster)
    sent = np.cumsum(cluster.st + alpha * sigma * cluster.cms)
    return pd.DataFrame({
        "task": 0, "node": np.arange(1, n + 1), "alpha": alpha,
        "send_start": np.r_[0.0, sent[:-1]], "send_end": sent,
        "compute_end": sent + cluster.sc + alpha * sigma * cluster.cps,
    })  # fmt: skip


def curves(study: Study) -> pd.DataFrame:
    """Tabulate E, the cost W, the first share B and the last one for n = 1..N."""
    counts, one, sigma = range(1, study.nodes + 1), study.cluster, study.sigma
    time = np.array([execution_time(sigma, n, one) for n in counts])
    return pd.DataFrame({
        "n": counts, "E": time, "W": np.array(counts) * time,
        "B": (time - one.st - one.sc) / (sigma * (one.cms + one.cps)),
        "last_share": [shares(sigma, n, one)[-1] for n in counts],
        "E_without": [execution_time(sigma, n, study.bare) for n in counts],
    })  # fmt: skip


def _reference(cluster: Cluster, sigma: float, n: int) -> Decimal:
    """Return E(n) to sixty digits and more."""
    cms, cps, st, sc, size = map(Decimal, (cluster.cms, cluster.cps, cluster.st, cluster.sc, sigma))
    w = cms + cps
    growth = (1 - (cps / w) ** n) * w / cms
    return st + sc + (st * (n - growth) * w / cms + size * w) / growth


def accuracy(nodes: int, st: float, sigma: float = 1.0) -> pd.DataFrame:
    """Measure the relative error of E(n) over nine decades of Cms/Cps."""
    rows = []
    for ratio in 10.0 ** np.linspace(-9, 0, 37):
        one = Cluster(nodes, 100.0 * ratio, 100.0, st)
        table, w = table_of(one), one.cms + one.cps
        b, f = one.cps / w, one.st / (sigma * w)
        whole = (1 - b + nodes * f) / (1 - b**nodes) - f / (1 - b)
        found = (duration(sigma, nodes, table.unit, table.fixed), one.st + sigma * w * whole)
        with localcontext(prec=90):
            want = _reference(one, sigma, nodes)
            errors = [float(abs(Decimal(float(v)) - want) / want) for v in found]
        rows.append((ratio, *errors))
    return pd.DataFrame(rows, columns=["ratio", "engine", "printed"])


def deadlines(study: Study) -> pd.DataFrame:
    """Count how often each rule finds n where the deadline is exactly start + E(n)."""
    rng, one, rows = np.random.default_rng(study.seed), Cluster(16, 1.0, 100.0), []
    loads, beta = study.size.runs, 100.0 / 101.0
    sizes, starts = rng.uniform(50, 500, loads), rng.uniform(0, 1e7, loads)
    for size, start, n in zip(sizes, starts, rng.integers(1, 17, loads), strict=True):
        budget = (start + execution_time(size, int(n), one)) - start
        gamma = 1 - size * one.cms / budget
        rows.append((fewest_nodes(size, budget, one, start) - n, ceil(log(gamma) / log(beta)) - n))
    more = pd.DataFrame(rows, columns=["scan with one tolerance", "ceil(ln gamma / ln beta)"])
    found = {"n": more == 0, "n + 1": more == 1, "other": (more != 0) & (more != 1)}
    table = pd.DataFrame({name: hit.mean() for name, hit in found.items()}).rename_axis("rule")
    study.table("deadlines", table)
    return table


def reduction(study: Study) -> pd.DataFrame:
    """Compare best throughput and independence number over all small graphs."""
    rows = []
    for example in nx.graph_atlas_g():
        if 1 <= len(example) <= study.size.vertices:
            platform = instance(example)
            true = max(map(len, nx.find_cliques(nx.complement(example))))
            best, bound = (solve_program(platform, whole).objective for whole in (True, False))
            above = bound / true
            rows.append((len(example), abs(best - true) < 1e-6, above > 1 + 1e-6, above))
    frame = pd.DataFrame(rows, columns=["vertices", "agree", "above", "ratio"])
    table = frame.groupby("vertices").agg(
        graphs=("agree", "size"), agree=("agree", "sum"), relaxation_above=("above", "sum"),
        worst_ratio=("ratio", "max"),
    )  # fmt: skip
    study.table("reduction", table)
    return table


def graph() -> nx.Graph:
    """Return the graph of Figures 6 and 7: a triangle, a path, a vertex of its own."""
    example = nx.Graph(EDGES)
    example.add_node(VERTICES)
    return example


def fig6(study: Study, example: nx.Graph, ax: Axes | None = None) -> Axes:
    """Figure 6 of paper S: a graph, with a largest independent set found by scheduling."""
    ax = axes_of(ax, (4.6, 3.2))
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


def fig7(study: Study, example: nx.Graph, ax: Axes | None = None) -> Axes:
    """Figure 7 of paper S: the platform built from the graph, with corrected indices."""
    ax, platform = axes_of(ax, (6.8, 4.6)), instance(example)
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
        text = f"$C^{name[1:]}$" if name[0] == "C" else f"$Q_{name[1:-1]}^{name[-1]}$"
        boxed(ax, x, y, text, edge="#333333", fontsize=9)
    heights = [y for _, y in place.values()]
    ax.set(xlim=(-0.4, 4.0), ylim=(min(heights) - 0.6, max(heights) + 0.6))
    ax.set_axis_off()
    ax.set_title(f"best throughput: {best.objective:g} (one connection per link)")
    return keep(study, "steady-state-fig7", ax, platform.links.rename_axis("link"))


def placed(plan: Sequence[tuple[str, float, float, Sequence[int]]]) -> pd.DataFrame:
    """Lay out tasks (name, size, start, nodes) on two unit nodes."""
    unit, frames = Cluster(2, 1.0, 1.0), []
    for name, size, start, nodes in plan:
        chunks = split(size, len(nodes), unit).assign(task=name, node=list(nodes))
        chunks[["send_start", "send_end", "compute_end"]] += start
        frames.append(chunks)
    return pd.concat(frames, ignore_index=True)
