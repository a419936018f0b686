"""Paper S's reduction: best throughput = independence number, and Lemma 1 both ways."""

import itertools
import os

import networkx as nx
import numpy as np
import pytest

from dlsim.errors import InputError, ScheduleError
from dlsim.steady import Allocation, solve_program
from dlsim.steady.independent_set import independent_set_platform, largest_independent_set

#: 1: all 52 graphs of up to 5 vertices; 4: the 156 graphs of 6 vertices as well (paper scale).
VERTICES = 6 if float(os.environ.get("DLSIM_TEST_SCALE", "1")) >= 4 else 5
GRAPHS = [
    nx.convert_node_labels_to_integers(graph)
    for graph in nx.graph_atlas_g()
    if 1 <= len(graph) <= VERTICES
]


def independence_number(graph):
    """Largest edge-free subset of vertices, by trying every subset."""
    edges = {frozenset(edge) for edge in graph.edges}
    return max(
        len(chosen)
        for size in range(len(graph) + 1)
        for chosen in itertools.combinations(graph, size)
        if not any(frozenset(pair) in edges for pair in itertools.combinations(chosen, 2))
    )


def test_the_optimum_is_the_independence_number():
    for graph in GRAPHS:
        best = solve_program(independent_set_platform(graph))
        assert best.objective == pytest.approx(independence_number(graph), abs=1e-6), graph.edges


def test_the_schedule_names_an_independent_set():
    for graph in GRAPHS:
        chosen = largest_independent_set(graph)
        assert not graph.subgraph(chosen).edges
        assert len(chosen) == independence_number(graph)


def test_lemma_1_routes_share_a_link_exactly_where_there_is_an_edge():
    for graph in GRAPHS:
        routes = independent_set_platform(graph).routes
        for i, j in itertools.combinations(range(len(graph)), 2):
            shared = set(routes[0, i + 1]) & set(routes[0, j + 1])
            assert bool(shared) == graph.has_edge(i, j)


def test_an_independent_set_is_a_valid_allocation_and_another_set_is_not():
    graph = nx.path_graph(4)
    p = independent_set_platform(graph)

    def throughput(vertices):
        work, connections = np.zeros((5, 5)), np.zeros((5, 5))
        for v in vertices:
            work[0, v + 1] = connections[0, v + 1] = 1
        allocation = Allocation(p, work, connections)
        allocation.check()
        return allocation.objective

    assert throughput({0, 2}) == throughput({1, 3}) == 2
    with pytest.raises(ScheduleError, match=r"\(6d\) link common 2"):
        throughput({1, 2})


@pytest.mark.parametrize(
    "graph", [nx.Graph(), nx.DiGraph([(0, 1)]), nx.Graph([(0, 0)]), nx.MultiGraph([(0, 1)])]
)
def test_what_is_no_simple_graph_is_refused(graph):
    with pytest.raises(InputError, match="graph"):
        independent_set_platform(graph)
