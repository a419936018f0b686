"""Platforms and graphs: deterministic shortest routes, pruning, networkx in and out, trees."""

import itertools
import math
from collections.abc import Hashable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order

from dlsim.errors import InputError
from dlsim.given import instance, number, option
from dlsim.steady.model import Platform
from dlsim.steady.routes import Routes, link_type, listed, need_pairs


def _check_graph(graph: nx.Graph, routers: Sequence[Hashable]) -> None:
    if not isinstance(graph, nx.Graph) or graph.is_directed() or graph.is_multigraph():
        raise InputError(f"the graph must be simple and undirected, got {graph}")
    need_pairs(len(listed("routers", routers)), len(graph))
    for router in routers:
        if router not in graph:
            raise InputError(f"router {router!r} is no node of {graph}")


#: Hops where no path leads.
FAR = 2**13


class _Trees:
    """For every router the parent of each node on its smallest shortest path, and the hops."""

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
            # neighbours are seen in the graph's order: the first path found is the smallest
            parent[:] = breadth_first_order(near, root)[1]
        lost = self.parent < 0
        self.parent = jump = np.where(lost, np.arange(n, dtype=np.int32), self.parent)
        self.hops = (~lost).astype(np.int16)
        while (further := np.take_along_axis(self.hops, jump, 1)).any():
            self.hops += further
            jump = np.take_along_axis(jump, jump, 1)
        lost[np.arange(len(self.roots)), self.roots] = False
        self.hops[lost] = FAR
        at = np.searchsorted(key[order], np.arange(n) * n + self.parent)
        edges = np.tile(np.arange(len(u), dtype=np.int32), 2)[order]
        self.link = edges.take(at, mode="clip") if len(u) else at


def shortest_routes(graph: nx.Graph, routers: Sequence[Hashable], labels: pd.Index) -> Routes:
    """Return every pair's links of fewest hops, the way back the same reversed.

    Of several the first in the graph's order of nodes, read from the cluster of the smaller
    number; `labels` are those of the links, in the order of the edges.

    >>> shortest_routes(nx.cycle_graph(4), [0, 2], pd.RangeIndex(4))
    {(0, 1): (0, 2), (1, 0): (2, 0)}
    """
    _check_graph(graph, routers)
    trees, clusters = _Trees(graph, routers), len(routers)
    hops = trees.hops[:, trees.roots][np.ix_(trees.root, trees.root)]
    joined = (hops < FAR) & ~np.eye(clusters, dtype=bool)
    pairs = np.stack([ends.astype(np.int32) for ends in np.nonzero(joined)], axis=1)
    start = np.append(0, np.cumsum(hops[joined], dtype=np.int64))
    link = np.empty(start[-1], dtype=link_type(len(labels)))
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


def lightest_routes(
    graph: nx.Graph, routers: Sequence[Hashable]
) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Return every pair's links of least weight, by name; where no edge is directed both ways.

    >>> arcs = nx.DiGraph([(0, 1, {"name": "a"}), (1, 2, {"name": "b"}), (2, 0, {"name": "c"})])
    >>> lightest_routes(arcs, [0, 2])
    {(0, 1): ('a', 'b'), (1, 0): ('c',)}
    """
    need_pairs(len(routers), len(graph))
    routes = {}
    for k, root in enumerate(routers):
        paths = nx.single_source_dijkstra_path(graph, root)
        for to in range(0 if graph.is_directed() else k + 1, len(routers)):
            if to != k and (path := paths.get(routers[to])):
                way = tuple(graph.edges[edge]["name"] for edge in itertools.pairwise(path))
                routes[k, to] = way
                if not graph.is_directed():
                    routes[to, k] = way[::-1]
    return routes


def prune(graph: nx.Graph, routers: Sequence[Hashable]) -> nx.Graph:
    """Delete the nodes that lie on no shortest path between two clusters (6.1)."""
    _check_graph(graph, routers)
    trees = _Trees(graph, routers)
    kept = np.zeros(len(graph), dtype=bool)
    kept[trees.roots] = True
    for hops in trees.hops:
        rest, between = np.flatnonzero(~kept), hops[trees.roots]
        inside = hops[rest] + trees.hops[:, rest] <= between[:, None]
        kept[rest] = inside[between < FAR].any(axis=0)
    small = nx.Graph()  # not graph.subgraph: its order is that of a set
    small.add_nodes_from(node for node, keep in zip(graph.nodes.items(), kept, strict=True) if keep)
    small.add_edges_from(
        (u, v, edge) for u, v, edge in graph.edges(data=True) if u in small and v in small
    )
    return small


def from_graph(graph: nx.Graph, routers: Sequence[Hashable], **fields: Any) -> Platform:
    """Build a platform on a graph of routers, with `shortest_routes`.

    Parameters
    ----------
    graph : networkx.Graph
        Every edge carries bandwidth and max_connect.
    routers : sequence of nodes
        Of each cluster.
    **fields
        speed, gateway, priority, work, data, and optionally origin and limits, of `Platform`.

    Returns
    -------
    Platform
        Links are numbered in the order of the edges; columns start and end name their
        nodes. A graph of `to_graph` that has the same edges and routers as then, whatever
        they carry now, keeps the labels and order of its links and its routes.

    Raises
    ------
    InputError
        For an edge without its two numbers, and as `shortest_routes` and `Platform`.

    Examples
    --------
    >>> g = nx.path_graph(3)
    >>> nx.set_edge_attributes(g, 2.0, "bandwidth")
    >>> nx.set_edge_attributes(g, 1, "max_connect")
    >>> unit = {name: [1, 1] for name in ("speed", "gateway", "priority", "work", "data")}
    >>> from_graph(g, [0, 2], **unit).routes[1, 0]
    (1, 0)
    """
    _check_graph(graph, routers)
    for u, v, edge in graph.edges(data=True):
        if not {"bandwidth", "max_connect"} <= set(edge):
            raise InputError(f"edge {u!r} - {v!r} must carry bandwidth and max_connect; got {edge}")
    is_old = {"links", "routes", "routers"} <= set(graph.graph)
    if is_old:  # of `to_graph`; does it still have its edges and these routers?
        before = {frozenset((u, v)) for _, u, v in graph.graph["links"]}
        is_old = before == {frozenset(edge) for edge in graph.edges}
        is_old = is_old and list(routers) == list(graph.graph["routers"])
    named = graph.graph["links"] if is_old else [[i, *edge] for i, edge in enumerate(graph.edges)]
    numbers = ["bandwidth", "max_connect"]
    table = [(u, v, *(graph.edges[u, v][name] for name in numbers)) for _, u, v in named]
    labels = [label for label, _, _ in named]
    links = pd.DataFrame(table, columns=["start", "end", *numbers], index=labels)
    routes: Any = {(k, to): way for k, to, way in graph.graph["routes"]} if is_old else None
    if routes is None:
        routes = shortest_routes(graph, routers, links.index)
    return Platform(links=links, routes=routes, router=tuple(routers), **fields)


def to_graph(platform: Platform) -> nx.Graph:
    """Return the graph of a platform's routers.

    Parameters
    ----------
    platform : Platform
        Whose links name their ends (columns start and end).

    Returns
    -------
    networkx.Graph
        Edges carry bandwidth, max_connect and link (the label); nodes that clusters sit
        on carry clusters, a list of their numbers. The graph carries, for `from_graph`,
        links (lists of label, start and end), routes (lists of from, to and labels) and
        routers (of each cluster), in the platform's order.

    Raises
    ------
    InputError
        For links without ends, clusters without routers, or two links between the same.
    """
    links, router = instance("platform", platform, Platform).links, platform.router
    if not {"start", "end"} <= set(links.columns) or router is None:
        has = f"got links with {', '.join(map(str, platform.links))}, router {platform.router}"
        raise InputError(f"a graph needs links with the columns start and end, and router; {has}")
    graph = nx.Graph()
    rows = links[["start", "end", "bandwidth", "max_connect"]]
    for label, u, v, bandwidth, most in rows.itertuples():
        if graph.has_edge(u, v):
            raise InputError(f"two links join {u!r} and {v!r}; a graph holds one, merge them")
        graph.add_edge(u, v, bandwidth=bandwidth, max_connect=most, link=label)
    for k, node in enumerate(router):
        graph.add_node(node)
        graph.nodes[node].setdefault("clusters", []).append(k)
    ends = links.index.tolist(), links["start"].tolist(), links["end"].tolist()
    graph.graph["links"] = [list(names) for names in zip(*ends, strict=True)]
    graph.graph["routes"] = [[k, to, list(way)] for (k, to), way in platform.routes.items()]
    graph.graph["routers"] = list(router)
    return graph


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
    option("ports", ports, ("one", "many"))
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
