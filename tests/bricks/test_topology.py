"""LAN and WAN trees: which links a transfer crosses, from graphs and hand cases."""

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlsim.bricks import Environment, topology
from tests.helpers.bricks_environments import TWO_REGIONS
from tests.helpers.refusals import refuses_each


def names(made, source, target):
    return made.links["name"].iloc[list(made.path(source, target))].tolist()


def hops(made, pair):
    """Start, end and kind of the links between two domains."""
    return [tuple(made.links.loc[link, ["start", "end", "kind"]]) for link in made.path(*pair)]


def test_two_level_tree_crosses_lan_wan_core_wan_lan():
    made = topology.two_level(3)
    assert names(made, 1, 1) == ["1 LAN up", "1 LAN down"]
    assert names(made, 2, 0) == ["2 LAN up", "2 WAN up", "0 WAN down", "0 LAN down"]
    assert made.links["kind"].tolist() == ["lan", "lan", "wan", "wan"] * 3
    # link 4 d + k belongs to entry [d, k] of traces of shape (domains, 4, steps)
    assert made.links["name"][4 * 2 + 3] == "2 WAN down"


def test_two_level_is_the_tree_that_its_name_says():
    for domains in (1, 2, 5):
        made = topology.two_level(domains)
        core = 2 * domains
        above = [v + 1 if v % 2 == 0 else core for v in range(core)]
        general = topology.from_graph(nx.Graph(enumerate(above)), range(0, core, 2))
        for pair in itertools.product(range(domains), repeat=2):
            assert hops(made, pair) == hops(general, pair), (domains, pair)


def kinds(made, source, target):
    return made.links["kind"].iloc[list(made.path(source, target))].tolist()


def test_regional_link_is_not_crossed_within_the_region():
    assert kinds(TWO_REGIONS, 0, 1) == ["lan", "wan", "wan", "lan"]
    assert kinds(TWO_REGIONS, 0, 2) == ["lan", *["wan"] * 4, "lan"]
    assert kinds(TWO_REGIONS, 3, 3) == ["lan", "lan"]


@given(st.data())
def test_paths_are_the_shortest_ways_through_the_graph(data):
    above = [data.draw(st.integers(0, router - 1)) for router in range(1, 7)]
    hosts = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=7))
    parents = [-1, *above, *hosts]
    leaves = range(7, 7 + len(hosts))
    made = topology.from_graph(nx.Graph(enumerate(parents[1:], start=1)), leaves)
    graph = nx.DiGraph()
    for link, (start, end) in enumerate(zip(made.links["start"], made.links["end"], strict=True)):
        graph.add_edge(start, end, link=link)
    assert len(graph.edges) == len(made.links) == 2 * (len(parents) - 1)
    for (a, source), (b, target) in itertools.product(enumerate(leaves), repeat=2):
        there = [source, parents[source], source]
        way = there if a == b else nx.shortest_path(graph, source, target)
        wanted = [graph.edges[edge]["link"] for edge in itertools.pairwise(way)]
        assert list(made.path(a, b)) == wanted
        first, hops = made.by_target
        pair = b * made.domains + a
        assert hops[first[pair] : first[pair + 1]].tolist() == wanted


RANGES = {"lan": (50, 100), "wan": (500, 1000)}


def test_means_fill_their_ranges():
    made = topology.two_level(500)
    means = topology.draw_means(made, 3, **RANGES)
    for kind, (low, high) in RANGES.items():
        drawn = means[(made.links["kind"] == kind).to_numpy()]
        assert low <= drawn.min() < low + 0.02 * (high - low)
        assert high - 0.02 * (high - low) < drawn.max() <= high
        # 1000 uniform draws: standard error of the mean (high - low) / sqrt(12000)
        assert abs(drawn.mean() - (low + high) / 2) < 4 * (high - low) / 12000**0.5
    again = topology.draw_means(made, 3, **RANGES)
    assert again.tobytes() == means.tobytes()
    assert not np.array_equal(means, topology.draw_means(made, 4, **RANGES))
    fewer = topology.draw_means(topology.two_level(7), 3, **RANGES)
    assert np.array_equal(fewer, means[: len(fewer)])


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
def test_every_second_node_is_a_server(counts):
    servers, clients = topology.alternate_nodes(counts)
    assert len(clients) - len(servers) in (0, 1)
    both = np.bincount(np.concatenate([servers, clients]), minlength=len(counts))
    assert both.tolist() == counts
    for domain in range(len(counts)):
        assert abs((servers == domain).sum() - (clients == domain).sum()) <= 1


# ------------------------------------------------------------------ a graph of one's own


def ring_with_leaves():
    """Three routers in a ring, a domain behind each."""
    return nx.Graph([("p", "q"), ("q", "r"), ("r", "p"), ("a", "p"), ("b", "q"), ("c", "r")])


def test_a_graph_makes_two_links_of_every_edge():
    made = topology.from_graph(ring_with_leaves())
    assert made.domains == 3  # a, b, c: the vertices with a single edge
    assert len(made.links) == 12
    assert made.links["name"][:2].tolist() == ["p - q", "q - p"]
    assert names(made, 0, 0) == ["a - p", "p - a"]
    assert names(made, 0, 1) == ["a - p", "p - q", "q - b"]
    assert names(made, 2, 0) == ["c - r", "r - p", "p - a"]
    assert kinds(made, 1, 2) == ["lan", "wan", "lan"]
    assert made.to_graph().edges["q", "b"]["link"] == made.path(0, 1)[-1]


def test_kinds_and_domains_of_a_graph_may_be_given():
    graph = nx.Graph([("a", "p"), ("p", "q"), ("q", "b"), ("q", "c")])
    graph.edges["p", "q"]["kind"] = "lan"
    made = topology.from_graph(graph, ["b", "a"])  # c is a domain of nothing
    assert made.domains == 2
    assert names(made, 0, 1) == ["b - q", "q - p", "p - a"]
    assert kinds(made, 0, 1) == ["lan", "lan", "lan"]
    assert made.links["kind"].tolist()[-2:] == ["wan", "wan"]  # of q - c


@pytest.mark.parametrize("made", [topology.two_level(4), TWO_REGIONS])
def test_the_graph_of_a_tree_makes_the_same_paths_again(made):
    graph = made.to_graph()
    leaves = [made.links["start"][made.path(d, d)[0]] for d in range(made.domains)]
    again = topology.from_graph(graph.to_undirected(), leaves)
    for pair in itertools.product(range(made.domains), repeat=2):
        assert hops(made, pair) == hops(again, pair)


BARE = replace(TWO_REGIONS, links=TWO_REGIONS.links[["name"]])
GRAPHS = [
    (nx.Graph(), None, "graph must have an edge, got none"),
    (nx.DiGraph([("a", "p")]), None, "graph must be undirected and simple"),
    (nx.Graph([("a", "p"), ("b", "q")]), None, "graph must be connected, but no path leads to"),
    (nx.Graph([("a", "a"), ("a", "b")]), None, "vertex 'a' must not be joined to itself"),
    (nx.cycle_graph(3), None, "the graph needs a domain: a vertex with a single edge"),
    (ring_with_leaves(), ["a", "x"], "domain 'x' must be a vertex of the graph"),
    (ring_with_leaves(), ["a", "a"], "domain 'a' must be .* named once"),
    (ring_with_leaves(), ["p"], "domain 'p' must be .* put a router before it"),
    (nx.Graph([("a", "b", {"kind": "dsl"})]), None, "kind of edge 'a' - 'b' must be one of"),
    ("a-b", None, "graph must be a Graph, got 'a-b'"),
]
REFUSED = [
    *[(lambda g=given: topology.from_graph(*g), words) for *given, words in GRAPHS],
    (lambda: topology.two_level(0), "domains"),
    (lambda: topology.two_level(10**6), "hops"),
    (lambda: topology.alternate_nodes([2, -1]), "counts"),
    (lambda: topology.alternate_nodes(5), "counts must be a list of whole numbers, got 5"),
    (lambda: topology.draw_means([50.0], 0, **RANGES), "topology must be a Topology, got"),
    *[(lambda r=ranges: topology.draw_means(topology.two_level(2), 0, **RANGES | r),
       next(iter(ranges)))
      for ranges in ({"lan": (0, 1)}, {"wan": (5, 4)}, {"lan": (1, np.inf)})],
    (lambda: topology.draw_means(BARE, 0, **RANGES), "kind"),
    (lambda: BARE.to_graph(), "a graph needs links with start and end; they have name"),
]  # fmt: skip

test_what_makes_no_network_is_refused = refuses_each(REFUSED)


def test_an_environment_is_drawn_on_a_graph_of_ones_own():
    made = topology.from_graph(ring_with_leaves())
    env = Environment.random(1, 60, topology=made, horizon=3600.0)
    assert env.topology is made
    assert len(env.rates) == 12
    means = pd.Series(env.rates.mean(axis=1)).groupby(made.links["kind"]).mean()
    assert 50 * 0.8 < means["lan"] < 100 * 1.2  # the ranges of Table 1, and the noise of a day
    assert 500 * 0.8 < means["wan"] < 1000 * 1.2
