"""Networks of paper S, 6.1: routes, pruning, Tiers-like and random graphs, their numbers."""

import itertools
import sys
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import SeedSequence

from dlsim.errors import InputError
from dlsim.steady import Limits, Platform, solve, topology
from dlsim.steady.graphs import prune, shortest_routes
from dlsim.steady.topology import tiers_graph
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import scale_count

UNIT = {name: (1, 1, 1) for name in ("speed", "gateway", "priority", "work", "data")}


def graphs(most=8):
    """Small graphs, connected or not, whose nodes are in no sorted order."""

    @st.composite
    def build(draw):
        nodes = draw(st.permutations(range(draw(st.integers(2, most)))))
        pairs = list(itertools.combinations(nodes, 2))
        graph = nx.Graph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from(draw(st.lists(st.sampled_from(pairs), unique=True)))
        routers = draw(st.lists(st.sampled_from(nodes), min_size=2, max_size=4))
        return graph, routers

    return build()


# ---------------------------------------------------------------------- routes


def node_paths(graph, routers):
    """The nodes of every route."""
    edges, found = list(graph.edges), {}
    for (k, to), route in shortest_routes(graph, routers, pd.RangeIndex(len(edges))).items():
        found[k, to] = [routers[k]]
        for u, v in (edges[i] for i in route):
            found[k, to].append(v if u == found[k, to][-1] else u)
        assert found[k, to][-1] == routers[to]
    return found


@settings(max_examples=scale_count(150), deadline=None)
@given(graphs())
def test_routes_are_the_first_shortest_paths_and_symmetric(case):
    graph, routers = case
    order = {node: i for i, node in enumerate(graph)}
    routes = node_paths(graph, routers)
    for k, to in itertools.combinations(range(len(routers)), 2):
        ends = routers[k], routers[to]
        if not nx.has_path(graph, *ends):
            assert not {(k, to), (to, k)} & set(routes)
            continue
        paths = nx.all_shortest_paths(graph, *ends)
        assert routes[k, to] == min(paths, key=lambda path: [order[node] for node in path])
        assert routes[to, k] == routes[k, to][::-1]


@settings(max_examples=scale_count(150), deadline=None)
@given(graphs())
def test_pruning_keeps_what_lies_on_a_shortest_path_and_every_route(case):
    graph, routers = case
    kept = set(routers)
    for ends in itertools.combinations(routers, 2):
        if nx.has_path(graph, *ends):
            kept |= set().union(*nx.all_shortest_paths(graph, *ends))
    small = prune(graph, routers)
    assert set(small) == kept
    assert list(small) == [node for node in graph if node in kept]
    assert node_paths(small, routers) == node_paths(graph, routers)


def test_clusters_on_one_router_need_no_link():
    graph = nx.Graph([(0, 1, {"bandwidth": 3.0, "max_connect": 2})])
    p = Platform.from_graph(graph, [0, 0, 1], **UNIT)
    assert p.routes[0, 1] == ()
    assert p.routes[0, 2] == p.routes[1, 2] == (0,)
    assert np.isinf(p.connection_bandwidth(0, 1))


NETWORKS = {
    "Tiers": lambda seed: topology.tiers(8, seed=seed),
    "random": lambda seed: topology.random(8, 0.3, seed=seed),
    "hub": lambda seed: topology.hub("topozoo/Abilene", seed=seed),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_the_graph_of_a_platform_has_its_links_and_routers(network):
    if network == "hub":
        pytest.importorskip("topohub")
    p = NETWORKS[network](1)
    graph = p.to_graph()
    edges = {frozenset(edge[:2]): edge[2] for edge in graph.edges(data=True)}
    assert len(edges) == len(p.links)
    for label, link in p.links.iterrows():
        sizes = {name: link[name] for name in ("bandwidth", "max_connect")}
        assert edges[frozenset((link["start"], link["end"]))] == {"link": label} | sizes
    assert [graph.nodes[node]["clusters"] for node in p.router] == [[k] for k in range(p.clusters)]
    names = ("speed", "gateway", "priority", "work", "data", "origin", "limits")
    numbers = {name: getattr(p, name) for name in names}
    again = Platform.from_graph(graph, p.router, **numbers)
    lengths = {pair: len(route) for pair, route in p.routes.items()}
    assert {pair: len(route) for pair, route in again.routes.items()} == lengths


# -------------------------------------------------------------- Tiers-like networks


def test_the_network_has_the_papers_size_and_is_connected():
    graph = tiers_graph(seed=3)
    assert len(graph) == 40 + 30 * 20
    assert nx.is_connected(graph)


@pytest.mark.parametrize(("RW", "RM", "RMW"), [(1, 1, 1), (4, 3, 2), (6, 5, 3)])
def test_redundancies(RW, RM, RMW):
    graph = tiers_graph(seed=1, wan=12, mans=5, man=8, RW=RW, RM=RM, RMW=RMW)
    parts = [range(12), *(range(12 + 8 * i, 20 + 8 * i) for i in range(5))]
    for part, least in zip(parts, [RW, *[RM] * 5], strict=True):
        inner = graph.subgraph(part)
        assert nx.is_connected(inner)
        assert min(dict(inner.degree).values()) >= least
        if least == 1:
            assert nx.is_tree(inner)
    for part in parts[1:]:
        doors = [(u, v) for u in part for v in graph[u] if v not in part]
        assert len(doors) == RMW
        assert len({u for u, _ in doors}) == len({v for _, v in doors}) == RMW
        assert all(v < 12 for _, v in doors)


def test_a_minimum_spanning_tree_joins_the_points():
    places = np.random.default_rng(5).random((30, 2))
    far = np.linalg.norm(places[:, None] - places[None], axis=2)
    tree = nx.minimum_spanning_tree(nx.from_numpy_array(far))
    assert topology._join_nearest(places, 1) == {tuple(sorted(edge)) for edge in tree.edges}


def test_a_tiers_platform_is_the_pruned_network():
    p, whole = topology.tiers(8, seed=4), tiers_graph(seed=4)
    small = prune(whole, p.router)
    assert {frozenset(e) for e in p.to_graph().edges} == {frozenset(e) for e in small.edges}
    assert len(small) < len(whole) / 4


# ------------------------------------------------------- what a graph itself carries


def two_sites():
    """The hand case of two sites and a router between them: LP 6, G 4, LPR 5, LPRG 6."""
    graph = nx.Graph()
    graph.add_node("lyon", speed=10, gateway=20.0)
    graph.add_node("nice", speed=2, gateway=20.0)
    graph.add_edge("lyon", "alps", bandwidth=3, max_connect=2)
    graph.add_edge("alps", "nice", bandwidth=10, max_connect=10)
    return graph


def test_nodes_with_a_speed_are_clusters():
    p = Platform.from_graph(two_sites())
    assert [solve(p, m).objective for m in ("G", "LPR", "LPRG")] == pytest.approx([4, 5, 6])
    assert p.names[0] == ["lyon", "nice"]
    assert p.router == ("lyon", "nice")
    assert dict(p.routes) == {(0, 1): (0, 1), (1, 0): (1, 0)}
    assert p.priority.tolist() == p.work.tolist() == p.data.tolist() == [1, 1]
    assert p.links[["start", "end"]].to_numpy().tolist() == [["lyon", "alps"], ["nice", "alps"]]


def test_nodes_carry_applications_and_arguments_take_their_place():
    graph = two_sites()
    graph.nodes["lyon"].update(priority=2, work=4, data=0.5)
    graph.nodes["nice"].update(priority=0)
    p = Platform.from_graph(graph, speed=[7, 8], limits=Limits(pairs=1))
    assert (p.speed.tolist(), p.gateway.tolist(), p.limits.pairs) == ([7, 8], [20, 20], 1)
    assert p.priority.tolist() == [2, 0]
    assert p.work.tolist() == [4, 1]
    assert p.data.tolist() == [0.5, 1]
    turned = Platform.from_graph(graph, ["nice", "lyon", "nice"], site_names=["a", "b", "c"])
    assert turned.speed.tolist() == [2, 10, 2]
    assert turned.names[0] == ["a", "b", "c"]
    assert turned.routes[0, 2] == ()


def test_a_refusal_names_the_node_or_edge():
    for change, message in (
        (lambda g: g.nodes["lyon"].pop("gateway"), "node 'lyon' must carry speed and gateway"),
        (lambda g: g.nodes["nice"].update(speed="fast"), "speed of node 'nice' must be .* 'fast'"),
        (lambda g: g.nodes["nice"].update(work=0), "work must be above 0 for each application"),
        (lambda g: g.edges["lyon", "alps"].pop("max_connect"), "edge 'lyon' - 'alps' must carry"),
        (lambda g: g.edges["lyon", "alps"].update(bandwidth="quick"),
         r"bandwidth of edge \('lyon', 'alps'\) must be a finite number of .* got 'quick'"),
        (lambda g: g.edges["lyon", "alps"].update(max_connect=-1),
         r"max_connect of edge \('lyon', 'alps'\) must be .* \(inf for no limit\), got -1"),
        (lambda g: g.add_node(0, speed=1, gateway=1) or g.add_node("0", speed=1, gateway=1),
         "site_names must have different names, got '0' twice"),
    ):  # fmt: skip
        graph = two_sites()
        change(graph)
        with pytest.raises(InputError, match=message):
            Platform.from_graph(graph)


# ------------------------------------------------------------------ random graphs


def test_extremes_of_connectivity():
    assert topology.random(6, 0.0).routes == {}
    assert {len(route) for route in topology.random(6, 1.0).routes.values()} == {1}
    alone = topology.random(1)
    assert solve(alone, "LPRG").objective == pytest.approx(alone.speed[0])


# ------------------------------------------------------------------------ seeds


def same(p, q):
    names = ("speed", "gateway", "priority", "work", "data")
    equal = [np.array_equal(getattr(p, name), getattr(q, name)) for name in names]
    return p.routes == q.routes and p.links.equals(q.links) and all(equal)


def test_a_seed_names_one_platform():
    child = SeedSequence(5).spawn(1)[0]
    for make in (partial(topology.tiers, wan=8, mans=3, man=5), topology.random):
        assert same(make(8, seed=5), make(8, seed=SeedSequence(5)))
        assert same(make(8, seed=child), make(8, seed=child))
        for other in (6, child):
            assert not same(make(8, seed=5), make(8, seed=other))


def test_purposes_draw_apart():
    few, many = (topology.random(10, density, seed=3) for density in (0.1, 0.9))
    assert len(few.links) < len(many.links)
    assert few.speed.tolist() == many.speed.tolist()
    one, het = (topology.random(10, seed=3, table2=reading) for reading in ("one", "het"))
    assert one.links.equals(het.links)
    assert one.speed.tolist() == het.speed.tolist()


# ----------------------------------------------------------------- real networks


def test_real_networks():
    pytest.importorskip("topohub")
    whole = topology.hub("topozoo/Abilene")
    assert (whole.clusters, len(whole.links)) == (11, 14)
    assert len(whole.routes) == 110
    some = topology.hub("sndlib/germany50", clusters=6, seed=2)
    assert some.clusters == 6
    assert len(some.links) < 88
    solve(some, "LPRG").check()
    with pytest.raises(InputError, match="no network 'topozoo/Cogentco'; names"):
        topology.hub("topozoo/Cogentco")


def test_without_topohub_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "topohub", None)
    with pytest.raises(InputError, match=r"pip install 'dlsim\[topologies\]'"):
        topology.hub("topozoo/Abilene")


# --------------------------------------------------------------------- bad input


test_what_is_no_network_is_refused = refuses_each([
    (lambda: topology.tiers(700), r"clusters must be a whole number in 1\.\.640, got 700"),
    (lambda: topology.tiers(5, RW=-1), "RW must be a whole number"),
    (lambda: topology.tiers(5, RX=1), "parameter of tiers must be one of wan"),
    (lambda: topology.random(5, table2="both"), "table2 must be one of one, het"),
    (lambda: prune(nx.DiGraph([(0, 1)]), [0]), "simple and undirected, .*; use nx.Graph"),
    (lambda: prune(nx.path_graph(2), [5]), "router 5 is no node .*; known nodes: 0, 1$"),
    (lambda: prune(nx.path_graph(11), [11]), "known nodes: 0, 1, .* 9, ...$"),
    (lambda: prune(nx.path_graph(2), 5), "routers must be a list, got 5"),
    (lambda: Platform.from_graph([(0, 1)], [0], **UNIT), "simple and undirected"),
    (lambda: Platform.from_graph(nx.path_graph(3), [0, 1, 2], **UNIT), "edge 0 - 1 must carry"),
    (lambda: Platform.from_graph(nx.path_graph(3)), "no node of .* carries a speed; give"),
    (lambda: Platform.from_graph(two_sites(), ["lyon", "alps"]), "node 'alps' must carry"),
])  # fmt: skip


def test_many_links_are_told_apart():
    count = 2**16 + 2
    graph = nx.path_graph(count)
    nx.set_edge_attributes(graph, 2.0, "bandwidth")
    nx.set_edge_attributes(graph, 1, "max_connect")
    graph.edges[count - 2, count - 1]["bandwidth"] = 0.5
    unit = {name: [1, 1] for name in ("speed", "gateway", "priority", "work", "data")}
    p = Platform.from_graph(graph, [count - 4, count - 1], **unit)
    assert p.routes[0, 1] == (count - 4, count - 3, count - 2)
    assert p.connection_bandwidth(0, 1) == p.tables.bandwidth[0, 1] == 0.5
