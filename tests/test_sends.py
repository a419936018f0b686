"""Loads in several rounds and on unequal nodes, against other programs and all orders."""

from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import pytest
from numpy.random import SeedSequence
from scipy.optimize import linprog

from dlsim.errors import InputError
from dlsim.papers.inserted_idle_time import cells
from dlsim.realtime import Cluster, clairvoyant_bound, split_load
from dlsim.realtime.sends import rounds_limit, split_in_rounds, split_unequal


def most_by(end, release, cms, cps):
    """Return the most data that are computed by `end`, as flows between releases."""
    clock = np.unique([*(r for r in release if r < end), end])
    length, n, k = np.diff(clock), len(release), len(clock) - 1
    names = [(kind, i, h) for kind in "sc" for i in range(n) for h in range(k)]
    rows, limits = [], []

    def add(limit, wanted):
        rows.append([wanted(*name) for name in names])
        limits.append(limit)

    for h in range(k):
        add(length[h], lambda kind, i, g, h=h: cms * (kind == "s" and g == h))
        for i in range(n):
            add(length[h], lambda kind, j, g, h=h, i=i: cps * (kind == "c" and (j, g) == (i, h)))
            add(
                0,
                lambda kind, j, g, h=h, i=i: ((kind == "c") - (kind == "s")) * (j == i and g <= h),
            )
    bounds = [(0, None if release[i] <= clock[h] else 0) for _, i, h in names]
    gain = [-float(kind == "c") for kind, *_ in names]
    return -linprog(gain, rows, limits, bounds=bounds).fun


def instances(name, count):
    for seed in range(count):
        rng = np.random.default_rng([len(name), seed])
        n = int(rng.integers(1, 6))
        release = np.sort(rng.integers(0, 40, n)).astype(float)
        cms, cps = float(rng.integers(1, 6)), float(rng.integers(1, 30))
        yield float(rng.integers(1, 9)), release, Cluster(n, cms, cps), int(rng.integers(1, 4))


def test_limit_is_the_largest_flow():
    for sigma, release, c, _ in instances("limit", 24):
        limits = rounds_limit(sigma, release[::-1], c)
        for n in range(1, len(release) + 1):
            assert most_by(limits[n - 1], release[:n], c.cms, c.cps) == pytest.approx(sigma)


def least_end(who, sigma, release, cms, cps):
    """Solve for the sizes alone: what is sent from one send on, and computed after another."""
    count = len(who)
    rows, limits = [], []
    for k in range(count):
        for last in range(k, count):
            sizes = [cms[who[h]] * (k <= h <= last) for h in range(count)]
            for h in range(last, count):
                sizes[h] += cps[who[h]] * (who[h] == who[last])
            rows.append([*sizes, -1.0])
            limits.append(-release[who[k]])
    gain = [*[0.0] * count, 1.0]
    return linprog(gain, rows, limits, [[*[1.0] * count, 0.0]], [sigma]).fun


def test_rounds_are_the_best_of_their_order_and_come_near_the_limit():
    for sigma, release, c, rounds in instances("rounds", 12):
        found = split_in_rounds(sigma, release, c, rounds)
        limit, n = rounds_limit(sigma, release, c)[-1], found.sends["node"].max() + 1
        used, costs = release[:n], (np.full(n, c.cms), np.full(n, c.cps))
        who = [i for r in np.unique(used) for _ in range(rounds) for i in range(sum(used <= r))]
        assert found.completion == pytest.approx(least_end(who, sigma, used, *costs))
        assert found.bound == limit <= found.completion * (1 + 1e-12)
        assert found.sends["share"].sum() == pytest.approx(1)
        assert found.completion <= split_load(sigma, release, c).completion * (1 + 1e-9)
        twice = split_in_rounds(sigma, release, c, 2 * rounds).completion
        assert twice <= found.completion * (1 + 1e-9)
    many = [split_in_rounds(4, [0, 5, 5, 60], Cluster(4, 2, 9), m).completion for m in (1, 8, 32)]
    limit = rounds_limit(4, [0, 5, 5, 60], Cluster(4, 2, 9))[-1]
    assert (many[0] - limit) / 20 > (many[1] - limit) / 4 > many[2] - limit > 0


def test_rounds_by_hand():
    # one node: it computes from the first datum on. Two at once, link-bound: the link decides
    assert rounds_limit(6, [3], Cluster(1, 2, 5)).tolist() == [33]
    assert rounds_limit(6, [0, 0], Cluster(2, 3, 4)).tolist() == [24, 18]
    assert rounds_limit(6, [1, 0], Cluster(2, 3, 0)).tolist() == [18, 18]
    # two rounds on one node, cms = cps = 1: a third, then two, of which the first hides the second
    one = split_in_rounds(6, [0], Cluster(1, 1, 1), 2)
    assert one.completion == pytest.approx(9)
    assert one.sends["share"].tolist() == pytest.approx([1 / 2, 1 / 2])


def unequal(rng, n, late):
    release = rng.integers(0, 30, n) if late else 0
    return pd.DataFrame({
        "cms": rng.integers(1, 9, n), "cps": rng.integers(1, 40, n), "release": release,
    })  # fmt: skip


def in_order(nodes, who, sigma):
    """Return when nodes end together, each share from the one before: a_b (t_b + c_b) = a_a c_a."""
    cms, cps = nodes["cms"].to_numpy(), nodes["cps"].to_numpy()
    shares = [1.0]
    for a, b in pairwise(who):
        shares.append(shares[-1] * cps[a] / (cms[b] + cps[b]))
    first = who[0]
    return sigma * (cms[first] + cps[first]) / sum(shares)


def test_fastest_link_first_is_best_among_nodes_that_are_free():
    rng = np.random.default_rng(1)
    for _ in range(6):
        nodes = unequal(rng, int(rng.integers(2, 6)), False)
        ends = [in_order(nodes, who, 3.0) for who in permutations(nodes.index)]
        some = [in_order(nodes, who, 3.0) for who in permutations(nodes.index, len(nodes) - 1)]
        found = split_unequal(3.0, nodes)
        assert found.completion == pytest.approx(min(ends)) == pytest.approx(found.bound)
        assert min(ends) <= min(some)
        slow = list(nodes["cms"].argsort(kind="stable"))[::-1]
        assert split_unequal(3.0, nodes, slow).completion <= in_order(nodes, slow, 3.0) + 1e-9


def test_all_orders_with_release_times():
    rng, better = np.random.default_rng(2), {"link": 0, "release": 0}
    for _ in range(5):
        nodes = unequal(rng, 3, True)
        costs = (nodes[c].to_numpy() for c in ("release", "cms", "cps"))
        release, cms, cps = costs
        tried = [who for m in (1, 2, 3) for who in permutations(range(3), m)]
        least = min(least_end(who, 2.0, release, cms, cps) for who in tried)
        found = split_unequal(2.0, nodes)
        assert found.completion == pytest.approx(least)
        assert found.bound <= least * (1 + 1e-12)
        for order in better:
            end = split_unequal(2.0, nodes, order).completion
            assert end >= least * (1 - 1e-9)
            better[order] += end > least * (1 + 1e-6)
    assert min(better.values()) > 0  # neither rule is always best


def test_a_share_may_be_best_that_is_not_all_a_node_can_do():
    # slow link first: it must be off the link when the fast nodes are released at 4, and not after
    nodes = pd.DataFrame({"cms": [4, 0.1, 0.1], "cps": [1, 1, 1], "release": [0, 4, 4]})
    found = split_unequal(4.0, nodes, [0, 1, 2])
    assert found.sends["send_end"][0] == pytest.approx(4)
    assert found.sends["compute_end"][0] < found.completion - 0.1


def test_equal_nodes_are_split_as_ever():
    for sigma, release, c, _ in instances("equal", 4):
        nodes = pd.DataFrame({"cms": c.cms, "cps": c.cps, "release": release})
        plain = split_load(sigma, release, c).completion
        assert split_unequal(sigma, nodes).completion == pytest.approx(plain)


def test_no_number_of_rounds_refuses_less_than_any_planner_must():
    setting = cells.Setting(4, 100.0, 200.0, 2.0, 100_000.0)
    how = {"setting": setting, "switches": {}, "seed": SeedSequence(3)}
    tasks, cluster, *_ = cells.drawn(setting, 1.0, 8.0, {}, SeedSequence(3))
    rows = {(r["nodes"], r["rounds"]): r["ratio"] for r in cells.in_rounds(1.0, 8.0, 2.0, **how)}
    least = clairvoyant_bound(tasks, cluster, "umr").ratio
    assert 0 < least <= min(rows.values()) < 1
    # one task at a time on an idle cluster: refused only if all nodes at once are too slow
    ends = [rounds_limit(sigma, [0] * 4, cluster)[-1] for sigma in tasks["sigma"]]
    assert (ends > tasks["deadline"]).mean() <= rows["all", "any number of rounds"]


TWO = pd.DataFrame({"cms": [1.0, 2.0], "cps": [1.0, 1.0]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rounds_limit(1, [0], Cluster(1, st=1)), "no set-up times; got st=1"),
        (lambda: rounds_limit(1, [0, 1], Cluster(1)), r"1\.\.1 finite times, one per node"),
        (lambda: rounds_limit(0, [0], Cluster(1)), "finite size above 0"),
        (lambda: rounds_limit(1, [np.nan], Cluster(1)), "release"),
        (lambda: split_in_rounds(1, [0], Cluster(1), 65), r"whole number in 1\.\.64"),
        (lambda: split_in_rounds(1, range(200), Cluster(200, 1, 10**6)), "at most 20000 sends"),
        (lambda: split_unequal(1, TWO.assign(cms=0, cps=0)), "cms \\+ cps above 0"),
        (lambda: split_unequal(1, TWO, "speed"), "order must be one of best, link, release"),
        (lambda: split_unequal(1, TWO, [0, 0]), "at most once"),
        (lambda: split_unequal(1, TWO, [2]), "node of the order"),
        (lambda: split_unequal(1, TWO, []), "one at least"),
        (lambda: split_unequal(1, TWO, [0.5]), r"node of the order\[0\] must be a whole .*got 0.5"),
        (lambda: split_unequal(1, TWO, ["a"]), "must be a whole number"),
        (lambda: split_unequal(1, TWO, 1), "one at least"),
        (lambda: split_unequal(1, TWO, None), "must be a whole number"),
        (lambda: rounds_limit(1, pd.to_datetime(["2005-01-01"]), Cluster(1)), "release must hold"),
        (lambda: rounds_limit(1, 0, Cluster(1)), "release must hold"),
        (lambda: split_in_rounds(1, [[0]], Cluster(1)), "release must hold"),
        (lambda: split_in_rounds(1, ["a"], Cluster(1)), "release must hold"),
        (lambda: split_unequal(1, TWO.assign(cms=-1)), "cms"),
        (
            lambda: split_unequal(1, pd.DataFrame([[1] * 4], columns=[*TWO, *["release"] * 2])),
            "column release appears twice",
        ),
        (
            lambda: split_unequal(1, pd.DataFrame({"cms": [1] * 6, "cps": 1, "release": range(6)})),
            "at most 5 nodes are tried, got 6",
        ),
    ],
)
def test_refusals_say_what_to_do(call, message):
    with pytest.raises(InputError, match=message):
        call()
