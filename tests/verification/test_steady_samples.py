"""The platforms that paper S evaluates, held against its Tables 1 and 2."""

import networkx as nx
import numpy as np
import pytest
from numpy.random import SeedSequence

from dlsim.errors import InputError
from dlsim.steady import topology
from dlsim.steady.graphs import prune
from dlsim.steady.samples import (
    MIDDLE,
    PRINTED_SIZES,
    _combination,
    crossed_platform,
    printed_table,
    sample_platform,
    table_steps,
    tiers_network,
)
from dlsim.study.session import read_scales


def seed_of(replicate):
    return SeedSequence(0, spawn_key=(replicate,))


def test_strata_are_those_of_the_tables():
    assert table_steps(1, "K") == tuple(range(5, 90, 2))
    assert table_steps(2, "K") == tuple(range(5, 76, 10))
    assert table_steps(2, "connectivity") == pytest.approx(np.arange(1, 9) / 10)
    assert table_steps(2, "heterogeneity") == (0.4, 0.6, 0.8)
    scale = read_scales("steady-state")["full"]
    assert tuple(scale["tiers_clusters"]) == table_steps(1, "K")
    assert tuple(scale["random_clusters"]) == table_steps(2, "K")
    assert tuple(scale["connectivities"]) == table_steps(2, "connectivity")
    # 100 topologies x 43 x 10 are not the printed 29,298
    assert PRINTED_SIZES["Tiers"] < 100 * 43 * 10


def test_the_generator_draws_what_table_1_prints():
    printed = printed_table(1).set_index("parameter")
    bandwidth = tuple(printed.loc["bandwidth", ["first", "second"]])
    assert bandwidth == (topology.BANDWIDTH_MEDIAN, 10**topology.BANDWIDTH_DECADES)
    assert tuple(printed.loc["speed", ["first", "second"]]) == topology.SPEED_RANGE
    for name in ("max_connect", "data", "work", "priority"):
        assert tuple(printed.loc[name, ["first", "second"]]) == topology.SIZE_RANGE
    platform = sample_platform("Tiers", 40, seed_of(0))
    logs = np.log10(platform.links["bandwidth"])
    assert logs.mean() == pytest.approx(np.log10(2000), abs=4 / np.sqrt(len(logs)))
    assert logs.std() == pytest.approx(1, abs=4 / np.sqrt(len(logs)))
    assert set(platform.links["max_connect"]) == set(range(1, 11))


def test_375_replicates_visit_every_combination_of_table_2_once():
    every = [tuple(_combination(0.3, seed_of(r)).values()) for r in range(375)]
    assert len(set(every)) == 375
    assert _combination(0.3, seed_of(375)) == _combination(0.3, seed_of(0))
    at_once = {tuple(_combination(c / 10, seed_of(0)).values()) for c in range(1, 9)}
    assert len(at_once) == 8


def test_random_platforms_keep_to_their_combination():
    means = _combination(0.5, seed_of(3))
    platform = sample_platform("random", 20, seed_of(3), 0.5)
    spread = means["heterogeneity"]
    for values, name in ((platform.gateway, "gateway"), (platform.links["bandwidth"], "bandwidth")):
        assert (abs(values / means[name] - 1) <= spread + 1e-12).all()
        assert abs(values / means[name] - 1).max() > 0.5 * spread
    assert (platform.priority == 1).all()
    other = sample_platform("random", 20, seed_of(3), 0.5, table2="het")
    assert len(set(other.priority)) == 20


def test_a_replicate_is_a_topology_and_its_numbers():
    graph, routers = tiers_network(9, seed_of(4))
    again, more = tiers_network(12, seed_of(104))
    assert nx.utils.graphs_equal(graph, again)
    assert set(routers) < set(more)
    assert not nx.utils.graphs_equal(graph, tiers_network(9, seed_of(5))[0])
    one, other = (sample_platform("Tiers", 9, seed_of(r)) for r in (4, 104))
    assert one.router == other.router == tuple(routers)
    assert one.routes == other.routes
    assert not set(one.gateway) & set(other.gateway)
    assert len(one.links) == prune(graph, routers).number_of_edges()


def test_crossed_platforms_differ_in_one_thing():
    one, two = (crossed_platform("trees", n, 6, seed_of(1)) for n in ("Table 1", "Table 2"))
    assert one.routes == two.routes
    assert nx.is_forest(one.to_graph())
    assert (abs(two.gateway / MIDDLE["gateway"] - 1) <= MIDDLE["heterogeneity"]).all()
    full = crossed_platform("random 0.8", "Table 2", 6, seed_of(1))
    assert full.routes == topology.random(6, 0.8, seed=seed_of(1)).routes


def test_unknown_kinds_are_refused():
    with pytest.raises(InputError, match="kind must be one of Tiers, random; got 'tiers'"):
        sample_platform("tiers", 5, seed_of(0))
    with pytest.raises(InputError, match="numbers must be one of Table 1, Table 2"):
        crossed_platform("trees", "Table 3", 5, seed_of(0))
