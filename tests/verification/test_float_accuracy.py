"""Paper M's formulas in floats: how exact the engine's are, and how wrong those printed are.

``tests/realtime/test_partition.py`` holds the engine's own bounds; here are the errors of (4.12) as
printed and of the logarithm for n_min, against 60 digits and Fractions.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dlsim.compiled import deadline_with_tolerance, meets_deadline
from dlsim.realtime import formulas
from dlsim.realtime.core import formulas as core
from dlsim.realtime.model import Cluster
from tests.helpers.scale import scale_count
from tests.verification.test_kernel_tie import EPS, Kernels, exact_time


def closed_time(costs, size, n):
    """(4.12), (4.13) in 60 digits; the sum of G_i is (n - G_n)/(1 - beta)."""
    c, p, s, d = (mpmath.mpf(float(v)) for v in costs)
    w = c + p
    growth = -mpmath.expm1(-n * mpmath.log1p(c / p)) * w / c
    return s + d + (s * (n - growth) * w / c + mpmath.mpf(float(size)) * w) / growth


def test_sixty_digits():
    with mpmath.workdps(60):
        for costs in ((1, 100, 0, 0), (1e-6, 100, 1, 0.5), (10, 10, 20, 20), (3, 1e-3, 1, 0)):
            k = Kernels(*map(mpmath.mpf, costs), nodes=40)
            for n in (1, 2, 7, 40):
                want = closed_time(costs, 77, n)
                assert abs(k.time(mpmath.mpf(77), n) - want) <= mpmath.mpf(10) ** -50 * want


RATIOS = 10.0 ** np.linspace(-9, 0, 19)


COUNTS = (1, 2, 3, 5, 10, 31, 100, 256, 1000, 3162, 9999, 10000)


def errors(setup, ratio, cps_=100.0):
    """Relative error of E in eps: engine and printed formula, for every n of COUNTS."""
    costs = (cps_ * ratio, cps_, *setup)
    table = formulas.opr_table.__wrapped__(Cluster(max(COUNTS), *costs))
    for n, size in itertools.product(COUNTS, (1.0, 77.7, 1e5)):
        want = closed_time(costs, size, n)
        found = core.time_on_nodes(size, n, table.time_per_unit, table.setup_time)
        w = costs[0] + cps_
        b = cps_ / w
        f = setup[0] / (size * w)
        print_ = (1 - b) / (1 - b**n) + n * f / (1 - b**n) - f / (1 - b) if b < 1 else math.nan
        printed = sum(setup) + size * w * print_
        yield n, *(float(abs(mpmath.mpf(v) - want) / want) / EPS for v in (found, printed))


def test_without_setup_four_eps_over_nine_decades():
    with mpmath.workdps(60):
        found = [row for ratio in RATIOS for row in errors((0.0, 0.0), ratio)]
    assert max(engine for _, engine, _ in found) <= 4
    # the printed formula loses half its digits at the end of the range
    assert max(printed for *_, printed in found) > 1e7


@pytest.mark.parametrize("setup", [(1.0, 0.0), (0.3, 25.0), (400.0, 0.0)])
def test_with_setup_a_quarter_eps_per_node(setup):
    with mpmath.workdps(60):
        found = [row for ratio in RATIOS for row in errors(setup, ratio)]
        found += [row for ratio in RATIOS[::3] for row in errors(setup, ratio, 7.3)]
    assert [row for row in found if row[1] > row[0] / 4 + 4] == []
    # the printed formula (4.12) has at most one digit left
    assert max(printed for *_, printed in found) > 0.04 / EPS


TRIALS = scale_count(4000)


def exact_deadlines(setup, seed):
    """Loads that start at t and are due exactly when their m-th E ends: (cluster, ...)."""
    rng = np.random.default_rng(seed)
    for _ in range(TRIALS):
        one = Cluster(16, 1.0, float(rng.choice([1.0, 10.0, 100.0])), *setup)
        size, t = float(rng.uniform(50, 500)), float(rng.uniform(0, 1e7))
        top = formulas.fastest_nodes(size, one)
        n = int(rng.integers(1, top + 1))
        before = formulas.execution_time(size, max(n - 1, 1), one)
        time = formulas.execution_time(size, n, one)
        # one node less must be late by more than rounding at 1e7 can hide
        if n == 1 or before - time > 1e-3:
            yield one, size, t, n, time


@pytest.mark.parametrize("setup", [(0.0, 0.0), (1.0, 2.0)], ids=["no set-up", "set-up"])
def test_a_deadline_at_the_very_end_is_met_by_just_that_many_nodes(setup):
    found = 0
    for one, size, t, n, time in exact_deadlines(setup, 1):
        found += 1
        due = t + time
        assert meets_deadline(t + time, due, time)
        assert formulas.fewest_nodes(size, due - t, one, start=t) == n
        table = formulas.opr_table(one)
        top = formulas.fastest_nodes(size, one)
        args = (size, 1, top, table.time_per_unit, table.setup_time)
        assert core.n_min_of(t, deadline_with_tolerance(due, time), *args) == n
        # and a deadline that is really earlier is not met by n
        assert core.n_min_of(t, deadline_with_tolerance(due - 5e-4, time), *args) != n
    assert found > TRIALS / 2


def logarithm(size, budget, one):
    """Paper M's ceil(ln gamma / ln beta), in floats; None where gamma is not positive."""
    gamma = 1 - size * one.cms / budget
    if gamma <= 0:
        return None
    return math.ceil(math.log(gamma) / math.log(one.cps / (one.cms + one.cps)))


def test_the_logarithm_is_wrong_about_half_the_time():
    """Budget A + D - s at deadlines A + D = s + E(n), the start s anywhere up to 1e7."""
    rows = list(exact_deadlines((0.0, 0.0), 2))
    logs = [(logarithm(size, (t + time) - t, one), n) for one, size, t, n, time in rows]
    assert 0.4 < sum(found == n + 1 for found, n in logs) / len(rows) < 0.6
    # at time 0 the budget is E(n) itself, and the rounding of two logarithms still shows
    logs = [(logarithm(size, time, one), n) for one, size, _, n, time in rows]
    assert 0.05 < sum(found == n + 1 for found, n in logs) / len(rows) < 0.3
    exact = [
        exact_time((*map(Fraction, (one.cms, one.cps, 0, 0)), Fraction(size)), n) > Fraction(time)
        for one, size, _, n, time in rows[:500]
    ]
    # even exact arithmetic refuses about half of them: the deadline itself was rounded
    assert 0.3 < sum(exact) / len(exact) < 0.7


def test_a_budget_below_the_floor_is_infeasible_not_an_error():
    """Statement 4.6inf: Delta = sigma Cms has gamma = 0; one node more never helps."""
    one = Cluster(4096, 1.0, 1.0)
    assert formulas.fewest_nodes(100.0, 100.0 - 1e-6, one) == 0
    assert logarithm(100.0, 99.0, one) is None
    assert formulas.fewest_nodes(100.0, 201.0, one) == 1
