"""Graphs of networkx: deterministic shortest routes, pruning, graphs of tables of links."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from itertools import combinations, islice
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.steady.routes import LINK_ENDS, LINK_NUMBERS, Routes, require_pair_memory, to_list
from dlsim.validate import require_table

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
    for router in dict.fromkeys(routers):
        found = paths[router] = _ShortestPaths({router: router}, {router: 0})
        edges = nx.generic_bfs_edges(graph, router, neighbors=neighbours.__getitem__)
        for parent, node in edges:
            found.parent[node], found.hops[node] = parent, found.hops[parent] + 1
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


def routes_from_links(
    links: pd.DataFrame, routers: Sequence[Any], failed_links: Collection[Any] = ()
) -> tuple[pd.DataFrame, Routes]:
    """Return the links that have not failed, in the order of their graph, and shortest routes."""
    table = require_table("links", links, LINK_NUMBERS + LINK_ENDS)
    ends = [table[end].tolist() for end in LINK_ENDS]
    graph = nx.Graph()
    for name, start, end in zip(links.index, *ends, strict=True):
        if pd.isna(start) or pd.isna(end):
            raise InputError(f"link {name!r} needs start and end, as no routes are given")
        if graph.has_edge(start, end):
            what = "joins two routers that a link joins already; merge them"
            raise InputError(f"link {name!r} {what}")
        graph.add_edge(start, end, name=name)
    graph.add_nodes_from(to_list("router", routers))
    # failed links are removed afterwards, so that the order of nodes does not depend on them
    graph.remove_edges_from(
        [(u, v) for u, v, name in graph.edges(data="name") if name in failed_links]
    )
    u, v, names = ([edge[i] for edge in graph.edges(data="name")] for i in range(3))
    ordered = links.loc[names].assign(start=u, end=v)
    return ordered, shortest_routes(graph, routers, ordered.index)
