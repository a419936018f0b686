"""How a load is split: against Fractions, 80-digit decimals, and exactly on Fractions."""

import decimal
import math
import random
from decimal import Decimal
from fractions import Fraction as Q

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.realtime import Cluster, execution_time, fastest_nodes, fewest_nodes, shares, total_cost
from dlsim.realtime import formulas as p
from dlsim.realtime.core import formulas as core
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


def test_execution_times_and_shares():
    count = 0
    for cluster in random_clusters("times", scale_count(300)):
        costs, sigma = exact(cluster), random.Random(repr(cluster)).choice([1, 100, 0.37, 1e4])
        for n in range(1, cluster.nodes + 1):
            wanted = costs.E(Q(sigma), n)
            error = abs(Q(execution_time(sigma, n, cluster)) - wanted)
            assert error <= bound(n, cluster) * wanted, (cluster, sigma, n, float(error / wanted))
            alpha, wanted_alpha = shares(sigma, n, cluster), costs.shares(Q(sigma), n)
            scale = max(1, *(abs(float(a)) for a in wanted_alpha))
            worst = max(abs(a - float(b)) for a, b in zip(alpha, wanted_alpha, strict=True))
            assert worst <= 1e-13 * n * scale, (cluster, sigma, n)
            count += 1
    print(f"{count} execution times")


def _reference(cluster: Cluster, sigma: float, n: int) -> Decimal:
    """Compute E in 80 digits from the closed form (4.12); limits at beta = 0 and 1."""
    cms, cps, start_up, set_up, size = (
        Decimal(x) for x in (cluster.cms, cluster.cps, cluster.st, cluster.sc, sigma)
    )
    w = cms + cps
    if cms == 0:
        growth, before = Decimal(n), Decimal(n * (n - 1)) / 2
    elif cps == 0:
        growth, before = Decimal(1), Decimal(n - 1)
    else:
        growth = (1 - (cps / w) ** n) * w / cms
        before = (n - growth) * w / cms
    return start_up + set_up + size * w / growth + start_up * before / growth


@pytest.mark.parametrize("start_up", [0.0, 0.001, 7.0])
@pytest.mark.parametrize(
    ("cms", "cps"),
    [(1, 100), (10, 10), (1e-9, 100), (1e-3, 1), (100, 1), (0.1, 0.3), (0, 5), (5, 0)],
)
def test_accuracy_up_to_ten_thousand_nodes(cms, cps, start_up):
    cluster, worst = Cluster(10_000, cms, cps, start_up, start_up / 2), 0.0
    with decimal.localcontext(prec=80):
        for n in [*range(1, 40), 64, 100, 256, 999, 1000, 4096, 9999, 10_000]:
            for sigma in (0.3, 100.0):
                wanted = _reference(cluster, sigma, n)
                error = abs(Decimal(execution_time(sigma, n, cluster)) - wanted) / wanted
                worst = max(worst, float(error) / bound(n, cluster))
    print(f"worst error: {worst:.2f} of the bound")
    assert worst <= 1


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
    print(f"{count} thresholds")
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
    print(f"{count} budgets, {infeasible} infeasible")
    assert 0 < infeasible < count


def test_no_count_sends_faster_than_the_link():
    # E(n) = sigma Cms / (1 - beta^n) > sigma Cms: erratum 2, gamma <= 0
    cluster = Cluster(50, cms=2, cps=3)
    assert fewest_nodes(10, 20.0, cluster) == 0
    assert fewest_nodes(10, 20.01, cluster) == 15
    assert fewest_nodes(10, -1.0, cluster) == 0


@settings(deadline=None, derandomize=True, max_examples=scale_count(100, least=1))
@given(
    nodes=st.integers(1, 40),
    cms=st.floats(1e-3, 1e3),
    cps=st.floats(1e-3, 1e3),
    start_up=st.sampled_from([0.0, 0.1, 5.0]),
    sigma=st.floats(0.1, 1e3),
)
def test_time_falls_up_to_the_fastest_count_and_cost_always_rises(nodes, cms, cps, start_up, sigma):
    cluster = Cluster(nodes, cms, cps, start_up, start_up)
    top = fastest_nodes(sigma, cluster)
    times = np.array([execution_time(sigma, n, cluster) for n in range(1, nodes + 1)])
    assert (np.diff(times[:top]) <= 1e-14 * times[0]).all()
    assert (np.diff(times[top - 1 :]) >= -1e-14 * times.max()).all()
    assert (np.diff(times * np.arange(1, nodes + 1)) > -1e-14 * times[0] * nodes).all()
    assert shares(sigma, top, cluster).min() > 0 or top == 1


def test_many_minimum_times_at_once():
    sizes = np.random.default_rng(1).uniform(0.1, 500, 200)
    for cluster in random_clusters("many", 40):
        wanted = [execution_time(s, fastest_nodes(s, cluster), cluster) for s in sizes]
        assert p.least_times(sizes, cluster).tolist() == wanted


# --- the same kernels, exactly --------------------------------------------------------------------


def plain(function):
    """Return the source of a kernel, uncompiled."""
    return getattr(function, "py_func", function)


def fraction_table(costs: Costs) -> p.TimeTable:
    """Fill a table by the package's own recursions, on Fractions."""
    growth, *columns, lead = (np.empty(costs.nodes + 2, dtype=object) for _ in range(7))
    numbers = costs.cms, costs.cps, costs.st, costs.sc
    plain(core.growth_sums)(costs.cms, costs.cps, growth)
    plain(core.cost_coefficients)(growth, *numbers, *columns[:3])
    plain(core.derivative_coefficients)(growth, *numbers, *columns[3:])
    lead[:] = columns[1] - costs.st - costs.sc  # exact here, and only on floats worth a column
    return p.TimeTable(*columns, lead)


def test_the_kernels_are_exact_on_fractions():
    source, count = random.Random("exact"), 0
    for _ in range(scale_count(150)):
        nodes = source.randint(1, 7)
        cms, start_up, set_up = (Q(source.randint(0, 20), source.randint(1, 7)) for _ in range(3))
        costs = Costs(nodes, cms, Q(source.randint(1, 20), source.randint(1, 7)), start_up, set_up)
        table = fraction_table(costs)
        some = Q(source.randint(1, 90), source.randint(1, 9))
        for sigma in (some, table.min_size[nodes] or Q(1)):
            times = [costs.E(sigma, n) for n in range(1, nodes + 2)]
            top = plain(core.n_star_of)(sigma, table.min_size, nodes)
            assert top == costs.fastest(sigma)
            for n, time in enumerate(times[:nodes], 1):
                coefficients = table.time_per_unit, table.setup_time
                assert plain(core.time_on_nodes)(sigma, n, *coefficients) == time
                derivative = plain(core.cost_derivative)(
                    sigma, n, nodes, False, table.dc_slope, table.dc_offset
                )
                assert derivative == (n + 1) * times[n] - n * time
                for start in (Q(0), Q(17, 3)):
                    for due in (start + time, start + time - Q(1, 10**9)):
                        wanted = costs.n_min(sigma, start, due)
                        found = plain(core.n_min_of)(
                            start, due, sigma, 1, top, table.time_per_unit, table.setup_time
                        )
                        assert found == (0 if wanted > nodes else wanted)
                        count += 1
    print(f"{count} exact decisions")


def test_equal_derivatives_are_equal_numbers():
    # with Cms = 0 and no set-up W(n) = sigma Cps for every n: every DC is exactly 0
    table = p.opr_table(Cluster(12, cms=0, cps=20))
    assert (table.dc_slope[1:-1] == 0).all()
    assert (table.dc_offset == 0).all()


def test_the_derivative_is_infinite_at_the_top_where_asked():
    table = p.opr_table(Cluster(3, 1, 1))
    for n, infinite in [(2, False), (3, True)]:
        found = core.cost_derivative(5.0, n, 3, True, table.dc_slope, table.dc_offset)
        assert math.isinf(found) == infinite


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
