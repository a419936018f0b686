"""One load on unequal nodes: hand cases, equal nodes, all orders in exact arithmetic."""

from fractions import Fraction
from functools import partial
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest

from dlsim.realtime import Cluster, execution_time, fastest_nodes, shares, split_load
from dlsim.realtime.star import MOST_SEARCHED_NODES, split_unequal
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import scale_count

COSTS = ("cms", "cps", "st", "sc", "release")


def random_nodes(rng, count, start_ups=True, releases=True):
    """Draw nodes whose costs are small whole numbers."""
    columns = {
        "cms": rng.integers(0, 9, count),
        "cps": rng.integers(1, 40, count),
        "st": rng.integers(0, 12, count) * start_ups,
        "sc": rng.integers(0, 30, count) * start_ups,
        "release": rng.integers(0, 40, count) * releases,
    }
    return pd.DataFrame(columns)


def orders_of(count):
    """Return all sequences of at least one of so many nodes."""
    sizes = range(1, count + 1)
    return [order for size in sizes for order in permutations(range(count), size)]


def check_times(found, sigma, nodes):
    """Check the split from the model: one send at a time, all nodes finish together."""
    link = -np.inf
    for k, node in enumerate(found.order):
        row, load = nodes.loc[nodes.index[node]], found.share[k] * sigma
        assert found.send_start[k] == pytest.approx(max(link, row["release"]))
        link = found.send_end[k]
        assert link == pytest.approx(found.send_start[k] + row["st"] + load * row["cms"])
        assert found.compute_end[k] == pytest.approx(link + row["sc"] + load * row["cps"])
        assert found.compute_end[k] == pytest.approx(found.finish)
    assert found.share.min() > 0
    assert found.share.sum() == pytest.approx(1)
    assert len(set(found.order.tolist())) == len(found.order)


def test_two_nodes_by_hand():
    # T = 14: the first gets (14 - 1 - 1) / 3 = 4 by 5, the second, from 5 on, (14 - 6) / 2 = 4
    nodes = pd.DataFrame({"cms": [1, 1], "cps": [2, 1], "st": [1, 1], "sc": [1, 0]})
    found = split_unequal(8, nodes)
    assert found.order.tolist() == [0, 1]
    assert found.share.tolist() == [0.5, 0.5]
    assert found.send_start.tolist() == [0, 5]
    assert found.send_end.tolist() == [5, 10]
    assert found.compute_end.tolist() == [14, 14]
    assert found.finish == 14


def test_a_node_whose_start_up_lasts_too_long_is_left_out():
    # alone the first node finishes at 2 + 3 = 5, before the second could begin to compute
    nodes = pd.DataFrame({"cms": [1, 1], "cps": [1.5, 1], "sc": [0, 9]})
    for order in (None, [0, 1], [1, 0], "best"):
        found = split_unequal(2, nodes, order)
        assert found.order.tolist() == [0]
        assert found.finish == 5


def finish_in_fractions(order, sigma, nodes):
    """Return when nodes finish together, by trying which of them wait for the link.

    None where one of them gets no positive share.
    """
    rows = [[Fraction(int(nodes[name][i])) for name in COSTS] for i in order]
    for waits in product((False, True), repeat=len(order) - 1):
        link, loads, is_link_later = (Fraction(0), Fraction(0)), [], []
        for (cms, cps, st, sc, release), wait in zip(rows, (False, *waits), strict=True):
            start = link if wait else (release, Fraction(0))  # a + b T
            is_link_later.append((link, release))
            w = cms + cps
            load = ((-start[0] - st - sc) / w, (1 - start[1]) / w)
            loads.append(load)
            link = start[0] + st + load[0] * cms, start[1] + load[1] * cms
        end = (sigma - sum(a for a, _ in loads)) / sum(b for _, b in loads)
        good = all(
            (link[0] + link[1] * end > release) == wait
            for (link, release), wait in zip(is_link_later[1:], waits, strict=True)
        )
        if good:
            return end if all(a + b * end > 0 for a, b in loads) else None
    raise AssertionError("no pattern of waits is consistent")


@pytest.mark.parametrize("start_ups", [False, True])
def test_all_orders_in_fractions(start_ups):
    rng, searched = np.random.default_rng(2), 0
    for _ in range(scale_count(60)):
        nodes = random_nodes(rng, int(rng.integers(1, 5)), start_ups)
        sigma = Fraction(int(rng.integers(1, 60)), 4)
        ends = {order: finish_in_fractions(order, sigma, nodes) for order in orders_of(len(nodes))}
        for order, end in ends.items():
            found = split_unequal(float(sigma), nodes, order)
            check_times(found, float(sigma), nodes)
            assert set(found.order.tolist()) <= set(order)
            if end is not None:
                assert found.order.tolist() == list(order)
                assert found.finish == pytest.approx(float(end), rel=1e-12)
            else:
                assert len(found.order) < len(order)
        best = split_unequal(float(sigma), nodes, "best")
        check_times(best, float(sigma), nodes)
        possible = [end for end in ends.values() if end is not None]
        assert best.finish == pytest.approx(float(min(possible)), rel=1e-12)
        whole = [end for order, end in ends.items() if end and len(order) == len(nodes)]
        searched += len(set(whole)) > 1
    assert searched > 10


@pytest.mark.parametrize("start_up", [0.0, 2.0])
def test_equal_nodes_finish_as_by_the_optimal_partitioning_rule(start_up):
    rng = np.random.default_rng(3)
    for _ in range(scale_count(40)):
        count, sigma = int(rng.integers(1, 30)), float(rng.integers(1, 60))
        costs = float(rng.integers(1, 9)), float(rng.integers(1, 60))
        cluster = Cluster(count, *costs, start_up, start_up / 4)
        nodes = pd.DataFrame(
            {"cms": cluster.cms, "cps": cluster.cps, "st": cluster.st, "sc": cluster.sc},
            index=range(count),
        )
        found, used = split_unequal(sigma, nodes), fastest_nodes(sigma, cluster)
        assert found.order.tolist() == list(range(used))
        assert found.finish == pytest.approx(execution_time(sigma, used, cluster))
        np.testing.assert_allclose(found.share, shares(sigma, used, cluster), atol=1e-12)


def test_equal_nodes_with_release_times_are_split_by_the_optimum():
    rng = np.random.default_rng(4)
    for _ in range(scale_count(40)):
        release = np.sort(rng.integers(0, 200, int(rng.integers(1, 9)))).astype(float)
        cluster = Cluster(len(release), float(rng.integers(1, 9)), float(rng.integers(1, 60)))
        nodes = pd.DataFrame({"cms": cluster.cms, "cps": cluster.cps, "release": release})
        found, known = split_unequal(7.0, nodes), split_load(7.0, release, cluster, "exact")
        assert found.finish == pytest.approx(known.completion)
        np.testing.assert_allclose(found.share, known.alpha, atol=1e-9)
        np.testing.assert_allclose(found.send_end, known.send_end)


def test_the_fastest_link_is_first_among_nodes_that_are_free():
    rng = np.random.default_rng(5)
    nodes = random_nodes(rng, MOST_SEARCHED_NODES, start_ups=False, releases=False)
    nodes["cms"] = rng.permutation(range(1, 9))
    best = split_unequal(30, nodes, "best")
    assert best.order.tolist() == nodes["cms"].argsort().tolist()
    assert split_unequal(30, nodes, nodes["cps"].argsort()).finish > best.finish


def test_the_clock_may_begin_anywhere():
    nodes = random_nodes(np.random.default_rng(6), 4)
    late = nodes.assign(release=nodes["release"] + 2.0**40)
    one, other = split_unequal(9, nodes, "best"), split_unequal(9, late, "best")
    assert one.order.tolist() == other.order.tolist()
    assert one.share.tolist() == other.share.tolist()
    assert other.finish == pytest.approx(one.finish + 2.0**40, rel=1e-15)
    unnamed = nodes.set_axis(list("abcd"))
    assert split_unequal(9, unnamed, [3, 0]).order.tolist() == [3, 0]


TWO = pd.DataFrame({"cms": [1.0, 2.0], "cps": [1.0, 1.0]})
TWICE = pd.DataFrame([[1] * 4], columns=["cms", "cps", "release", "release"])
REFUSED = [
    ((0, TWO), "sigma must be a finite size above 0"),
    ((1, None), "nodes must be a pandas DataFrame"),
    ((1, TWO[["cms"]]), "nodes need the columns cms, cps"),
    ((1, TWICE), "column release appears twice"),
    ((1, TWO.iloc[:0]), "at least one row"),
    ((1, TWO.assign(cms=0, cps=0)), r"cms \+ cps above 0"),
    ((1, TWO.assign(cms=-1)), "cms of node 0 must be"),
    ((1, TWO.assign(release="a")), "release of node 0 must be"),
    ((1, TWO, "speed"), "order must be one of best"),
    ((1, TWO, [0, 0]), "at most once"),
    ((1, TWO, []), "one at least"),
    ((1, TWO, [2]), r"node of the order\[0\] must be a whole number"),
    ((1, pd.concat([TWO] * 5, ignore_index=True), "best"),
     "at most 8 nodes are tried, got 10 nodes: give an order"),
]  # fmt: skip
test_refusals_say_what_to_do = refuses_each(
    [(partial(split_unequal, *given), words) for given, words in REFUSED]
)
