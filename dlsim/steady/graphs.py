"""Platforms and graphs: deterministic shortest routes, pruning, networkx in and out."""

import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.steady.model import Pair, Platform


def _check_graph(graph: nx.Graph, routers: Sequence[Hashable]) -> None:
    if not isinstance(graph, nx.Graph) or graph.is_directed() or graph.is_multigraph():
        raise InputError(f"the graph must be simple and undirected, got {graph}")
    unknown = [router for router in routers if router not in graph]
    if unknown:
        raise InputError(f"router {unknown[0]!r} is no node of {graph}")


def _trees(graph: nx.Graph, roots: Iterable[Hashable]) -> dict[Hashable, dict[Any, Any]]:
    """Return for every root the parent of each node on its smallest shortest path."""
    order = {node: i for i, node in enumerate(graph)}
    near = {node: sorted(graph[node], key=order.__getitem__) for node in graph}
    trees = {}
    for root in roots:
        parent, level = {root: root}, [root]
        while level:
            found = {other: node for node in level[::-1] for other in near[node][::-1]}
            reached = dict.fromkeys(other for node in level for other in near[node])
            level = [other for other in reached if other not in parent]
            parent.update((other, found[other]) for other in level)
        trees[root] = parent
    return trees


def _path(parent: dict[Any, Any], node: Any) -> list[Any]:
    path = [node]
    while parent[path[-1]] != path[-1]:
        path.append(parent[path[-1]])
    return path[::-1]


def shortest_routes(graph: nx.Graph, routers: Sequence[Hashable]) -> dict[Pair, list[Any]]:
    """Return every pair's path of nodes of fewest hops, the way back the same reversed.

    Of several the first in the graph's order, read from the cluster of the smaller number.

    >>> shortest_routes(nx.cycle_graph(4), [0, 2])
    {(0, 1): [0, 1, 2], (1, 0): [2, 1, 0]}
    """
    _check_graph(graph, routers)
    trees = _trees(graph, dict.fromkeys(routers))
    routes: dict[Pair, list[Any]] = {}
    for k, to in itertools.combinations(range(len(routers)), 2):
        if routers[to] in trees[routers[k]]:
            path = _path(trees[routers[k]], routers[to])
            routes[k, to], routes[to, k] = path, path[::-1]
    return routes


def prune(graph: nx.Graph, routers: Sequence[Hashable]) -> nx.Graph:
    """Delete the nodes that lie on no shortest path between two clusters (6.1)."""
    _check_graph(graph, routers)
    number = {node: i for i, node in enumerate(graph)}
    hops = np.full((len(routers), len(graph)), np.inf)
    for k, router in enumerate(routers):
        found = nx.single_source_shortest_path_length(graph, router)
        hops[k, [number[node] for node in found]] = list(found.values())
    kept = np.zeros(len(graph), dtype=bool)
    ends = [number[router] for router in routers]
    kept[ends] = True
    for k in range(len(routers)):
        between = hops[k, ends]
        inside = hops[k] + hops <= between[:, None]
        kept |= (inside & np.isfinite(between)[:, None]).any(axis=0)
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
        speed, gateway, priority, work, data, and optionally origin and limits, of
        `Platform`.

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
    if _is_unchanged(graph, routers):
        named, ways = graph.graph["links"], graph.graph["routes"]
        routes = {(k, to): route for k, to, route in ways}
    else:
        named = [[i, *edge] for i, edge in enumerate(graph.edges)]
        number = {frozenset(edge): i for i, edge in enumerate(graph.edges)}
        routes = {
            pair: [number[frozenset(hop)] for hop in itertools.pairwise(path)]
            for pair, path in shortest_routes(graph, routers).items()
        }
    table = [
        (u, v, graph.edges[u, v]["bandwidth"], graph.edges[u, v]["max_connect"])
        for _, u, v in named
    ]
    columns = ["start", "end", "bandwidth", "max_connect"]
    links = pd.DataFrame(table, columns=columns, index=[label for label, _, _ in named])
    return Platform(links=links, routes=routes, router=tuple(routers), **fields)


def _is_unchanged(graph: nx.Graph, routers: Sequence[Hashable]) -> bool:
    """Return whether a graph of `to_graph` still has its edges and these routers."""
    if not {"links", "routes", "routers"} <= set(graph.graph):
        return False
    before = {frozenset((u, v)) for _, u, v in graph.graph["links"]}
    now = {frozenset(edge) for edge in graph.edges}
    return before == now and list(routers) == list(graph.graph["routers"])


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
    links, router = platform.links, platform.router
    if not {"start", "end"} <= set(links.columns) or router is None:
        raise InputError("a graph needs links with the columns start and end, and router")
    graph = nx.Graph()
    ends = zip(links["start"], links["end"], links.index, strict=True)
    for (u, v, label), bandwidth, most in zip(
        ends, links["bandwidth"], links["max_connect"], strict=True
    ):
        if graph.has_edge(u, v):
            raise InputError(f"two links join {u!r} and {v!r}; a graph holds one, merge them")
        graph.add_edge(u, v, bandwidth=bandwidth, max_connect=most, link=label)
    for k, node in enumerate(router):
        graph.add_node(node)
        graph.nodes[node].setdefault("clusters", []).append(k)
    ends = zip(links.index.tolist(), links["start"].tolist(), links["end"].tolist(), strict=True)
    graph.graph["links"] = [list(names) for names in ends]
    graph.graph["routes"] = [[k, to, list(way)] for (k, to), way in platform.routes.items()]
    graph.graph["routers"] = list(router)
    return graph
