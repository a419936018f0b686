"""Graphs of networkx: deterministic shortest routes, pruning, trees of processors."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from dlsim.errors import InputError
from dlsim.steady.routes import Routes, require_pair_memory, to_list
from dlsim.validate import number, one_of


def check_graph(graph: nx.Graph, routers: Sequence[Hashable]) -> None:
    """Raise InputError for a graph that is not simple, or a router that is not in it."""
    if not isinstance(graph, nx.Graph) or graph.is_directed() or graph.is_multigraph():
        raise InputError(f"the graph must be simple and undirected, got {graph}")
    require_pair_memory(len(to_list("routers", routers)), len(graph))
    for router in routers:
        if router not in graph:
            raise InputError(f"router {router!r} is no node of {graph}")


#: Hops of a node that no path reaches.
UNREACHABLE_HOPS = 2**13


class _Trees:
    """Shortest paths from every router: the parent of each node, and its hops.

    Of several shortest paths the one whose nodes come first in the graph's order is taken.
    """

    def __init__(self, graph: nx.Graph, routers: Sequence[Hashable]) -> None:
        place = {node: i for i, node in enumerate(graph)}
        n, ends = len(place), np.array([(place[u], place[v]) for u, v in graph.edges], dtype=int)
        u, v = ends.reshape(-1, 2).T
        homes = [place[router] for router in routers]
        self.roots, root = np.unique(np.array(homes, dtype=np.int32), return_inverse=True)
        self.root = root.astype(np.int32)
        key = np.append(u * n + v, v * n + u)
        order = np.argsort(key, kind="stable")
        near = csr_array((np.ones(len(key)), np.divmod(key[order], n)), shape=(n, n))
        self.parent = np.empty((len(self.roots), n), dtype=np.int32)
        for root, parent in zip(self.roots, self.parent, strict=True):
            # neighbours are visited in the graph's order, so the first path found is taken
            parent[:] = breadth_first_order(near, root)[1]
        lost = self.parent < 0
        self.parent = jump = np.where(lost, np.arange(n, dtype=np.int32), self.parent)
        self.hops = (~lost).astype(np.int16)
        while (further := np.take_along_axis(self.hops, jump, 1)).any():
            self.hops += further
            jump = np.take_along_axis(jump, jump, 1)
        lost[np.arange(len(self.roots)), self.roots] = False
        self.hops[lost] = UNREACHABLE_HOPS
        at = np.searchsorted(key[order], np.arange(n) * n + self.parent)
        edges = np.tile(np.arange(len(u), dtype=np.int32), 2)[order]
        self.link = edges.take(at, mode="clip") if len(u) else at


def shortest_routes(graph: nx.Graph, routers: Sequence[Hashable], labels: pd.Index) -> Routes:
    """Return the route of fewest hops of every pair of clusters; the way back is its reverse.

    Of several routes the first in the graph's order of nodes is taken, read from the cluster of
    the smaller number. `labels` are those of the links, in the order of the edges.

    >>> shortest_routes(nx.cycle_graph(4), [0, 2], pd.RangeIndex(4))
    {(0, 1): (0, 2), (1, 0): (2, 0)}
    """
    check_graph(graph, routers)
    trees, clusters = _Trees(graph, routers), len(routers)
    hops = trees.hops[:, trees.roots][np.ix_(trees.root, trees.root)]
    joined = (hops < UNREACHABLE_HOPS) & ~np.eye(clusters, dtype=bool)
    pairs = np.stack([ends.astype(np.int32) for ends in np.nonzero(joined)], axis=1)
    start = np.append(0, np.cumsum(hops[joined], dtype=np.int64))
    link = np.empty(start[-1], dtype=np.int32)
    number = np.empty((clusters, clusters), dtype=np.int32)
    number[joined] = np.arange(len(pairs))
    k, to = pairs[pairs[:, 0] < pairs[:, 1]].T
    forth, back = number[k, to], number[to, k]
    order = np.stack([forth, back], axis=1).ravel()
    tree: Any = trees.root[k]
    at, left = trees.roots[trees.root[to]], hops[k, to]
    last, first = start[forth + 1] - 1, start[back]
    while (some := left > 0).any():
        tree, at, left, last, first = (x[some] for x in (tree, at, left, last, first))
        link[last] = link[first] = trees.link[tree, at]
        at, left, last, first = trees.parent[tree, at], left - 1, last - 1, first + 1
    return Routes(labels, clusters, pairs, start, link, order)


def prune(graph: nx.Graph, routers: Sequence[Hashable]) -> nx.Graph:
    """Delete the nodes that lie on no shortest path between two clusters (6.1)."""
    check_graph(graph, routers)
    trees = _Trees(graph, routers)
    kept = np.zeros(len(graph), dtype=bool)
    kept[trees.roots] = True
    for hops in trees.hops:
        rest, between = np.flatnonzero(~kept), hops[trees.roots]
        inside = hops[rest] + trees.hops[:, rest] <= between[:, None]
        kept[rest] = inside[between < UNREACHABLE_HOPS].any(axis=0)
    small = nx.Graph()  # not graph.subgraph: its order is that of a set
    small.add_nodes_from(node for node, keep in zip(graph.nodes.items(), kept, strict=True) if keep)
    small.add_edges_from(
        (u, v, edge) for u, v, edge in graph.edges(data=True) if u in small and v in small
    )
    return small


def equivalent_speed(
    tree: nx.Graph, master: Hashable, data: float = 1.0, work: float = 1.0, ports: str = "one"
) -> float:
    r"""Return the speed of the one processor that does what a tree of processors does.

    Paper S, section 2, which cites C. Banino et al., "Scheduling strategies for master-slave
    tasking on heterogeneous processor platforms", IEEE TPDS 15(4), 2004: in steady state a node
    feeds its children in the order of their links, fastest first, whatever their speeds. With one
    port it spends :math:`\sum_j x_j \delta / b_j \le 1` of its time on sending:

    .. math:: S = s + w \max \{\textstyle\sum_j x_j : \sum_j x_j \delta / b_j \le 1,\;
        0 \le x_j \le S_j / w\}

    Parameters
    ----------
    tree : networkx.Graph
        Nodes carry speed (work per time), edges carry bandwidth (data per time). A star is
        a tree of depth 1.
    master : node
        The root, which holds all data (the front-end processor).
    data, work : float
        Of one load unit: the equivalent speed depends on their ratio.
    ports : {"one", "many"}
        Whether a node sends to one child at a time, or to all at once, each as fast as
        its link allows.

    Returns
    -------
    float
        Work per time, for `Platform.speed`.

    Raises
    ------
    InputError
        For a graph that is not a tree, an unknown master, a missing or negative number.

    Examples
    --------
    A master of speed 1 whose link of bandwidth 3 keeps a worker of speed 2 busy for two
    thirds of its time; the third left feeds a worker on a link of bandwidth 1.5:

    >>> star = nx.Graph()
    >>> star.add_nodes_from(["m", "a", "b"], speed=1)
    >>> star.nodes["a"]["speed"] = 2
    >>> star.add_edge("m", "a", bandwidth=3)
    >>> star.add_edge("m", "b", bandwidth=1.5)
    >>> equivalent_speed(star, "m")
    3.5
    """
    one_of("ports", ports, ("one", "many"))
    is_plain = isinstance(tree, nx.Graph) and not tree.is_directed() and len(tree)
    if not is_plain or not nx.is_tree(tree):
        raise InputError(f"the site must be a tree, got {tree}")
    if master not in tree:
        raise InputError(f"master {master!r} is no node of the tree")
    data = float(number("data", data))
    work = float(number("work", work, above=True))
    speed = {v: float(number(f"speed of node {v!r}", tree.nodes[v].get("speed"))) for v in tree}
    children = nx.dfs_successors(tree, master)
    for node in nx.dfs_postorder_nodes(tree, master):
        offers = sorted(
            (data / b if b else math.inf if data else 0.0, speed[child] / work)
            for child in children.get(node, ())
            for edge in [f"bandwidth of edge {node!r} - {child!r}"]
            for b in [float(number(edge, tree[node][child].get("bandwidth")))]
        )
        left, total = 1.0, 0.0
        for cost, most in offers:
            units = min(most, left / cost) if cost else most
            total += units
            if ports == "one" and units:
                left = max(0.0, left - units * cost)
        speed[node] += work * total
    return speed[master]
