"""NP-completeness as a program: maximum independent set, solved as a steady state.

Paper S, appendix: from a graph a platform is built whose best throughput is the size of
a largest set of vertices without an edge. Indices are the corrected ones: link l_{j+1} of
cluster i leads from the j-th to the (j + 1)-th shared link on its route, and a vertex
without edges has one direct link.
"""

from collections.abc import Hashable

import networkx as nx
import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.steady.model import Platform
from dlsim.steady.program import solve_program


def _require_simple(graph: nx.Graph) -> None:
    """Raise InputError for a graph that is not simple, or that has no vertex."""
    if graph.is_directed() or graph.is_multigraph() or nx.number_of_selfloops(graph):
        raise InputError(
            f"the graph must be simple and undirected, without loops, got {graph}; use nx.Graph(g) "
            "and remove its loops (nx.selfloop_edges)"
        )
    if not len(graph):
        raise InputError("the graph must have at least one vertex, got none")


def independent_set_platform(graph: nx.Graph) -> Platform:
    """Build the platform of a graph: cluster 0 holds the work, cluster i stands for a vertex.

    >>> list(independent_set_platform(nx.path_graph(2)).routes[0, 1])
    ['own 1.1', 'common 1', 'own 1.2']
    """
    _require_simple(graph)
    vertex_number = {vertex: i for i, vertex in enumerate(graph, start=1)}
    ends = {f"common {k}": (f"Q{k}a", f"Q{k}b") for k in range(1, len(graph.edges) + 1)}
    routes: dict[tuple[int, int], list[str]] = {}
    for vertex, i in vertex_number.items():
        shared = [k for k, edge in enumerate(graph.edges, start=1) if vertex in edge]
        stops = ["C0", *(f"Q{k}{side}" for k in shared for side in "ab"), f"C{i}"]
        own = [f"own {i}.{j}" for j in range(1, len(shared) + 2)]
        ends.update(zip(own, zip(stops[::2], stops[1::2], strict=True), strict=True))
        common = [f"common {k}" for k in shared]
        routes[0, i] = [link for pair in zip(own, common, strict=False) for link in pair] + own[-1:]
    n = len(vertex_number)
    links = pd.DataFrame.from_dict(ends, orient="index", columns=["start", "end"])
    unit = np.ones(n + 1)
    links = links.assign(bandwidth=1.0, max_connect=1)
    return Platform([0, *[1] * n], [n, *[1] * n], links, routes, [1, *[0] * n], unit, unit)


def largest_independent_set(graph: nx.Graph) -> set[Hashable]:
    """Find a largest independent set by scheduling on the platform of the graph.

    >>> len(largest_independent_set(nx.cycle_graph(5)))
    2
    """
    best = solve_program(independent_set_platform(graph))
    return {v for i, v in enumerate(graph, start=1) if best.work[0, i] > 0.5}
