"""Graphs of networkx: deterministic shortest routes, pruning, trees of processors."""

import math
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations, islice
from typing import NamedTuple

import networkx as nx
import numpy as np

from dlsim.errors import InputError
from dlsim.steady.routes import Routes, require_pair_memory, to_list
from dlsim.validate import number

#: Most nodes of a graph that a message names.
MOST_NODES_SHOWN = 10


def check_graph(graph: nx.Graph, routers: Sequence[Hashable]) -> None:
    """Raise InputError for a graph that is not simple, or a router that is not in it."""
    if not isinstance(graph, nx.Graph) or graph.is_directed() or graph.is_multigraph():
        raise InputError(f"the graph must be simple and undirected, got {graph}; use nx.Graph(g)")
    require_pair_memory(len(to_list("routers", routers)), len(graph))
    for router in routers:
        if router not in graph:
            raise InputError(f"router {router!r} is no node of {graph}; {_known_nodes(graph)}")


def _known_nodes(graph: nx.Graph) -> str:
    """Return the first nodes of a graph as part of a message."""
    nodes = ", ".join(repr(node) for node in islice(graph, MOST_NODES_SHOWN)) or "none"
    return f"known nodes: {nodes}{', ...' * (len(graph) > MOST_NODES_SHOWN)}"


class _ShortestPaths(NamedTuple):
    """Shortest paths from one router: the parent and the hops of every node that it reaches."""

    parent: dict[Hashable, Hashable]
    hops: dict[Hashable, int]


def _shortest_paths(graph: nx.Graph, routers: Sequence[Hashable]) -> dict[Hashable, _ShortestPaths]:
    """Return the shortest paths from every router.

    Of several paths to a node the one whose nodes come first in the graph's order is taken:
    neighbours are visited in that order, and the first path found is kept.
    """
    place = {node: number for number, node in enumerate(graph)}
    neighbours = {node: sorted(graph[node], key=place.__getitem__) for node in graph}
    paths = {}
    for router in routers:
        if router in paths:
            continue
        found = _ShortestPaths({router: router}, {router: 0})
        queue = deque([router])
        while queue:
            node = queue.popleft()
            for neighbour in neighbours[node]:
                if neighbour not in found.hops:
                    found.parent[neighbour] = node
                    found.hops[neighbour] = found.hops[node] + 1
                    queue.append(neighbour)
        paths[router] = found
    return paths


def shortest_routes(
    graph: nx.Graph, routers: Sequence[Hashable], labels: Iterable[Hashable]
) -> Routes:
    """Return the route of fewest hops of every pair of clusters; the way back is its reverse.

    Of several routes the first in the graph's order of nodes is taken, read from the cluster of
    the smaller number. `labels` are those of the links, in the order of the edges.

    >>> shortest_routes(nx.cycle_graph(4), [0, 2], range(4))
    {(0, 1): (0, 2), (1, 0): (2, 0)}
    """
    check_graph(graph, routers)
    paths = _shortest_paths(graph, routers)
    link_between = {}
    for label, (start, end) in zip(labels, graph.edges, strict=True):
        link_between[start, end] = link_between[end, start] = label
    routes = Routes()
    for k, to in combinations(range(len(routers)), 2):
        root, node = routers[k], routers[to]
        parent = paths[root].parent
        if node not in parent:
            continue
        way_back = []
        while node != root:
            way_back.append(link_between[node, parent[node]])
            node = parent[node]
        routes[k, to], routes[to, k] = tuple(way_back[::-1]), tuple(way_back)
    return routes


def prune(graph: nx.Graph, routers: Sequence[Hashable]) -> nx.Graph:
    """Delete the nodes that lie on no shortest path between two clusters (6.1)."""
    check_graph(graph, routers)
    paths, nodes = _shortest_paths(graph, routers), list(graph)
    rows = [[path.hops.get(node, np.inf) for node in nodes] for path in paths.values()]
    hops = np.array(rows, dtype=float).reshape(len(paths), len(nodes))
    between_routers = hops[:, [nodes.index(router) for router in paths]]
    kept = np.array([node in paths for node in nodes], dtype=bool)
    for to_nodes, to_routers in zip(hops, between_routers, strict=True):
        is_joined = np.isfinite(to_routers)
        others = np.flatnonzero(~kept)
        over_node = to_nodes[others] + hops[np.ix_(is_joined, others)]
        kept[others] = (over_node <= to_routers[is_joined, None]).any(axis=0)
    small = nx.Graph()  # not graph.subgraph: its order is that of a set
    small.add_nodes_from(node for node, keep in zip(graph.nodes.items(), kept, strict=True) if keep)
    small.add_edges_from(
        (u, v, edge) for u, v, edge in graph.edges(data=True) if u in small and v in small
    )
    return small


def equivalent_speed(
    tree: nx.Graph, master: Hashable, data: float = 1.0, work: float = 1.0
) -> float:
    r"""Return the speed of a single processor that does as much work as a tree of processors.

    Paper S, section 2, which cites C. Banino et al., "Scheduling strategies for master-slave
    tasking on heterogeneous processor platforms", IEEE TPDS 15(4), 2004: in steady state a node
    feeds its children one at a time in the order of their links, fastest first, whatever their
    speeds:

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
    is_plain = isinstance(tree, nx.Graph) and not tree.is_directed() and len(tree)
    if not is_plain or not nx.is_tree(tree):
        raise InputError(f"the site must be a tree, got {tree}")
    if master not in tree:
        raise InputError(f"master {master!r} is no node of the tree; {_known_nodes(tree)}")
    data = float(number("data", data))
    work = float(number("work", work, above=True))
    speed = {v: float(number(f"speed of node {v!r}", tree.nodes[v].get("speed"))) for v in tree}
    children = nx.dfs_successors(tree, master)
    for node in nx.dfs_postorder_nodes(tree, master):
        offers = []  # of each child: time to send one load unit, units that it computes per time
        for child in children.get(node, ()):
            edge = f"bandwidth of edge {node!r} - {child!r}"
            bandwidth = float(number(edge, tree[node][child].get("bandwidth")))
            slowest = math.inf if data else 0.0
            offers.append((data / bandwidth if bandwidth else slowest, speed[child] / work))
        time_left, units = 1.0, 0.0
        for send_time, most in sorted(offers):
            sent = min(most, time_left / send_time) if send_time else most
            units += sent
            time_left = max(0.0, time_left - sent * send_time) if sent else time_left
        speed[node] += work * units
    return speed[master]
