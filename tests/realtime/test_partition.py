"""What the formulas of paper M say, against the same formulas on Fractions.

``tests/verification`` compares up to 10,000 nodes with 60 digits (`test_float_accuracy`), and the
kernels themselves on symbols and Fractions (`test_kernel_tie`).
"""

import math
import random
from fractions import Fraction as Q

import numpy as np
import pytest

from dlsim.realtime import Cluster, execution_time, fastest_nodes, fewest_nodes, shares, total_cost
from dlsim.realtime import formulas as p
from tests.helpers.scale import SCALE, scale_count
from tests.twins.realtime import Costs

EPS = 2.0**-52


def exact(cluster: Cluster) -> Costs:
    """Return the same cluster on Fractions; the floats are taken as they are."""
    return Costs(cluster.nodes, *(Q(x) for x in (cluster.cms, cluster.cps, cluster.st, cluster.sc)))


def random_clusters(seed: str, count: int) -> list[Cluster]:
    """Draw clusters over 18 orders of magnitude of cms/cps, with and without set-up."""
    source = random.Random(seed)
    found = []
    while len(found) < count:
        cms, cps = (source.choice([0, 10 ** source.uniform(-9, 9), 1, 10, 100]) for _ in range(2))
        start_up, set_up = (source.choice([0, 0, 10 ** source.uniform(-3, 3)]) for _ in range(2))
        if cms + cps > 0:
            found.append(Cluster(source.randint(1, 12), cms, cps, start_up, set_up))
    return found


def bound(n: int, cluster: Cluster) -> float:
    """Return the relative error the module owns up to."""
    return EPS * (4 + (n / 4 if cluster.st else 0))


# --- anchors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("st_", "n", "time", "derivative"), [(50, 2, 499.29, 270.27), (150, 3, 626.20, 738.79)]
)
def test_the_authors_later_simulator(st_, n, time, derivative):
    # facts that the unit tests of the authors' later simulator hold, rounded to 0.01
    cluster = Cluster(4, cms=1, cps=20, st=st_, sc=101)
    assert round(execution_time(30, n, cluster), 2) == time
    difference = total_cost(30, n + 1, cluster) - total_cost(30, n, cluster)
    assert round(difference, 2) == derivative
    assert fewest_nodes(30, math.ceil(time), cluster) == n


def test_hand_case_with_set_up():
    # Cms=Cps=1, ST=3, SC=2, sigma=21: by hand from (4.11), (4.12)
    cluster = Cluster(4, 1, 1, 3, 2)
    times = [execution_time(21, n, cluster) for n in (1, 2, 3, 4)]
    assert times == pytest.approx([47, 35, 233 / 7, 171 / 5], rel=4 * EPS)
    assert shares(21, 3, cluster) == pytest.approx([33 / 49, 13 / 49, 3 / 49], rel=1e-14)
    assert shares(21, 4, cluster)[-1] == pytest.approx(-4 / 105, rel=1e-13)
    assert fastest_nodes(21, cluster) == 3


# --- floats against exact arithmetic -----------------------------------------------------------


def test_execution_times_cost_derivatives_and_shares():
    for cluster in random_clusters("times", scale_count(300)):
        costs, sigma = exact(cluster), random.Random(repr(cluster)).choice([1, 100, 0.37, 1e4])
        table = p.opr_table(cluster)
        for n in range(1, cluster.nodes + 1):
            wanted, more = costs.E(Q(sigma), n), costs.W(Q(sigma), n + 1)
            derivative = table.dc_offset[n] + sigma * table.dc_slope[n]
            assert abs(Q(derivative) - (more - n * wanted)) <= 1e-13 * more, (cluster, sigma, n)
            error = abs(Q(execution_time(sigma, n, cluster)) - wanted)
            assert error <= bound(n, cluster) * wanted, (cluster, sigma, n, float(error / wanted))
            alpha, wanted_alpha = shares(sigma, n, cluster), costs.shares(Q(sigma), n)
            scale = max(1, *(abs(float(a)) for a in wanted_alpha))
            worst = max(abs(a - float(b)) for a, b in zip(alpha, wanted_alpha, strict=True))
            assert worst <= 1e-13 * n * scale, (cluster, sigma, n)


def test_the_fastest_count():
    for cluster in random_clusters("fastest", scale_count(200)):
        costs = exact(cluster)
        for sigma in (0.5, 20.0, 300.0):
            n = fastest_nodes(sigma, cluster)
            last = [costs.shares(Q(sigma), k)[-1] for k in range(1, cluster.nodes + 1)]
            if min(map(abs, last)) > 1e-12:
                assert n == costs.fastest(Q(sigma)), (cluster, sigma)
            times = [costs.E(Q(sigma), k) for k in range(1, cluster.nodes + 1)]
            assert times[n - 1] <= min(times) * (1 + Q(1e-12))


def test_a_last_share_of_exactly_zero_is_no_share():
    # Cms=Cps=1, ST=1: l_n = (1/2) sum_{i<n} sum_{j<=i} 2^j = 1, 4, 11, 26, ... for n = 2, 3, ...
    cluster = Cluster(6, 1, 1, 1, 0)
    for n, size in [(2, 1.0), (3, 4.0), (4, 11.0), (5, 26.0)]:
        assert exact(cluster).shares(Q(size), n)[-1] == 0
        assert fastest_nodes(size, cluster) == n - 1
        assert fastest_nodes(math.nextafter(size, math.inf), cluster) == n


# --- n_min --------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.0, 3.7, 1e7])
def test_deadlines_of_exactly_the_execution_time(start):
    """A deadline of the engine's own E(n) is met with n, at any absolute time."""
    count = 0
    for cluster in random_clusters(f"thresholds {start}", scale_count(250)):
        costs, source = exact(cluster), random.Random(repr(cluster))
        for sigma in (100.0, source.uniform(1, 1000)):
            top = fastest_nodes(sigma, cluster)
            for n in range(1, top + 1):
                time = execution_time(sigma, n, cluster)
                slack = 1e-11 * (start + time + 1)
                if n > 1 and costs.E(Q(sigma), n - 1) - Q(time) <= slack:
                    continue
                assert fewest_nodes(sigma, time, cluster, start) == n, (cluster, sigma, n)
                short = fewest_nodes(sigma, time - 2 * slack, cluster, start)
                assert short == 0 or short > n, (cluster, sigma, n)
                count += 1
    assert count > 1000 * min(1, SCALE)


def test_the_fewest_nodes_are_found_by_trying():
    count = infeasible = 0
    for cluster in random_clusters("fewest", scale_count(300)):
        costs, source = exact(cluster), random.Random(repr(cluster))
        for _ in range(8):
            sigma, start = source.uniform(0.1, 300), source.choice([0.0, source.uniform(0, 1e4)])
            budget = execution_time(sigma, 1, cluster) * source.uniform(0.02, 1.1)
            due = Q(start) + Q(budget)
            times = [Q(start) + costs.E(Q(sigma), n) for n in range(1, cluster.nodes + 1)]
            if any(abs(t - due) <= 1e-11 * max(1, due) for t in times):
                continue
            n = fewest_nodes(sigma, budget, cluster, start)
            fits = [k for k, t in enumerate(times, 1) if t <= due]
            assert n == (fits[0] if fits else 0), (cluster, sigma, budget, start)
            count, infeasible = count + 1, infeasible + (n == 0)
    assert 0 < infeasible < count


def test_no_count_sends_faster_than_the_link():
    # E(n) = sigma Cms / (1 - beta^n) > sigma Cms: erratum 2, gamma <= 0
    cluster = Cluster(50, cms=2, cps=3)
    assert fewest_nodes(10, 20.0, cluster) == 0
    assert fewest_nodes(10, 20.01, cluster) == 15
    assert fewest_nodes(10, -1.0, cluster) == 0


def test_many_minimum_times_at_once():
    sizes = np.random.default_rng(1).uniform(0.1, 500, 200)
    for cluster in random_clusters("many", 40):
        wanted = [execution_time(s, fastest_nodes(s, cluster), cluster) for s in sizes]
        assert p.least_times(sizes, cluster).tolist() == wanted


def test_equal_derivatives_are_equal_numbers():
    # with Cms = 0 and no set-up W(n) = sigma Cps for every n: every DC is exactly 0
    table = p.opr_table(Cluster(12, cms=0, cps=20))
    assert (table.dc_slope[1:-1] == 0).all()
    assert (table.dc_offset == 0).all()


# --- arrays ----------------------------------------------------------------


def test_arrays_broadcast_and_scalars_stay_scalars():
    cluster, sizes, counts = Cluster(4, 1, 20, 50, 101), [30, 40.5], [[1], [2], [4]]
    for function in (execution_time, total_cost):
        table = function(sizes, counts, cluster)
        assert table.shape == (3, 2)
        assert table.tolist() == [[function(s, n, cluster) for s in sizes] for [n] in counts]
        assert type(function(30, 2, cluster)) is float
    budgets, starts = [[300.0], [499.3], [800.0], [math.inf]], [0.0, 1e9]
    table = fewest_nodes(sizes, budgets, cluster, starts)
    each = [
        [fewest_nodes(*row, cluster, t) for *row, t in zip(sizes, 2 * b, starts, strict=True)]
        for b in budgets
    ]
    assert table.tolist() == each
    assert type(fewest_nodes(30, 500, cluster)) is int
