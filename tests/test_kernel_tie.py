"""The engine's kernels are the proved formulas: symbols, Fractions, 60 digits, floats."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy as sp

from dlsim import theory
from dlsim.compiled import deadline_with_tolerance, meets_deadline, times_tie
from dlsim.realtime import execution_times
from dlsim.realtime.core import formulas as core
from dlsim.realtime.model import Cluster
from dlsim.theory.symbols import first_share, geometric, share
from tests.scale import LONG, scale_count

EPS = 2.0**-52
NODES = 8
_NAMES = (
    "growth_sums cost_coefficients derivative_coefficients time_on_nodes cost_derivative n_star_of"
    " n_min_of"
)


def plain(function):
    """The Python function that numba compiles, or that runs itself where JIT is off."""
    return getattr(function, "py_func", function)


class Kernels:
    """The uncompiled kernels on any kind of number: lists instead of arrays."""

    def __init__(self, cms, cps, st, sc, nodes=NODES):
        size = nodes + 2
        self.growth = [None] * size
        self.time_per_unit, self.setup_time = [None] * size, [None] * size
        self.min_size = [None] * size
        self.dc_slope, self.dc_offset = [None] * size, [None] * size
        costs = (cms, cps, st, sc)
        plain(core.growth_sums)(cms, cps, self.growth)
        table = (self.time_per_unit, self.setup_time, self.min_size)
        plain(core.cost_coefficients)(self.growth, *costs, *table)
        plain(core.derivative_coefficients)(self.growth, *costs, self.dc_slope, self.dc_offset)

    def time(self, sigma, n):
        return plain(core.time_on_nodes)(sigma, n, self.time_per_unit, self.setup_time)

    def rise_of_cost(self, sigma, n):
        run = plain(core.cost_derivative)
        return run(sigma, n, NODES, False, self.dc_slope, self.dc_offset)


# ------------------------------------------------------------------- symbols

cms, cps, sigma = sp.symbols("C_ms C_ps sigma", positive=True)
st, sc = sp.symbols("ST SC", nonnegative=True)
beta, phi = cps / (cms + cps), st / (sigma * (cms + cps))


class Symbolic:
    """expm1 and log1p for symbols."""

    @staticmethod
    def expm1(x):
        return sp.exp(x) - 1

    @staticmethod
    def log1p(x):
        return sp.log(1 + x)


def test_the_closed_growth_is_the_geometric_sum_for_every_n():
    n, b = sp.Symbol("n", positive=True), sp.Symbol("b", positive=True)
    # Cms = Cps (1 - b)/b, so that 1 + Cms/Cps = 1/b and Cps cancels
    closed = execution_times.growth_closed(n, (1 - b) / b, sp.Integer(1), Symbolic)
    power = sp.exp(-n * sp.log(sp.simplify(1 + (1 - b) / b)))
    assert sp.simplify(power - b**n) == 0
    assert sp.simplify(closed.subs(sp.exp(-n * sp.log(1 + (1 - b) / b)), b**n)
                       - (1 - b**n) / (1 - b)) == 0  # fmt: skip


def test_the_closed_growth_is_the_recursion_on_small_counts():
    for count in range(1, 6):
        closed = execution_times.growth_closed(count, cms, cps, Symbolic)
        assert sp.simplify(closed - sum(beta**k for k in range(count))) == 0


def test_the_predicates_of_the_tolerance_are_exact_on_exact_types():
    due, hair = Fraction(10**7), Fraction(1, 10**9)
    assert plain(meets_deadline)(due, due, due, 0)
    assert not plain(meets_deadline)(due + hair, due, due, 0)
    assert plain(deadline_with_tolerance)(due, due, 0) == due
    assert plain(times_tie)(due, due, due, 0)
    assert not plain(times_tie)(due, due + hair, due, 0)
    assert plain(meets_deadline)(float(due) * (1 + 1e-13), float(due), float(due))


def test_the_fewest_nodes_are_found_from_any_lower_bound():
    """The engine searches upwards from the count of an earlier instant."""
    tables = Kernels(Fraction(3), Fraction(7), Fraction(1, 5), Fraction(2))
    unit, fixed = tables.time_per_unit, tables.setup_time
    run = plain(core.n_min_of)
    time_on_nodes = plain(core.time_on_nodes)
    times = {n: time_on_nodes(Fraction(40), n, unit, fixed) for n in range(1, NODES + 1)}
    top = min(times, key=times.get)
    for n in range(1, top + 1):
        for low in range(1, n + 1):
            assert run(Fraction(0), times[n], Fraction(40), low, top, unit, fixed) == n


def derived(formula):
    """A formula of the theory, in the kernel's letters."""
    letters = {"beta": beta, "phi": phi}
    return formula.subs([(s, letters[s.name]) for s in formula.free_symbols if s.name in letters])


def derived_time(n):
    return st + sc + sigma * (cms + cps) * derived(first_share(sp.Integer(n)))


@pytest.fixture(scope="module")
def symbolic():
    return Kernels(cms, cps, st, sc)


def test_every_kernel_of_a_split_is_tied():
    kernels = {
        name
        for name, value in vars(core).items()
        if plain(value) is not value and value.py_func.__module__ == core.__name__
    }
    assert not kernels or set(_NAMES.split()) <= kernels  # empty where nothing is compiled


@pytest.mark.parametrize("n", range(1, NODES + 1 if LONG >= 1 else NODES - 1))
class TestSymbols:
    def test_growth(self, symbolic, n):
        assert theory.is_zero(symbolic.growth[n] - derived(geometric(sp.Integer(n))))

    def test_execution_time(self, symbolic, n):
        assert theory.is_zero(symbolic.time(sigma, n) - derived_time(n))

    def test_cost_derivative(self, symbolic, n):
        difference = (n + 1) * derived_time(n + 1) - n * derived_time(n)
        assert theory.is_zero(symbolic.rise_of_cost(sigma, n) - difference)

    def test_least_size_makes_the_last_share_zero(self, symbolic, n):
        last = derived(share(sp.Integer(n), first_share(sp.Integer(n))))
        at_least = symbolic.min_size[n]
        if n == 1:
            assert at_least == 0
        else:
            positive = sp.Symbol("c", positive=True)
            limit = at_least.subs(st, positive)
            assert theory.is_zero(last.subs(st, positive).subs(sigma, limit))

    def test_a_wrong_formula_would_be_seen(self, symbolic, n):
        wrong = derived_time(n).subs(st, 2 * st)
        assert not theory.is_zero(symbolic.time(sigma, n) - wrong)


def test_engine_constants_at_the_ends_of_beta():
    """Shares are equal without transmission time, and one without computing."""
    free_link, free_cpu = Kernels(0, cps, st, sc, 4), Kernels(cms, 0 * cms, 0 * st, sc, 4)
    for n in range(1, 5):
        even = cps * sigma / n + sc + st + st * sp.Rational(n - 1, 2)
        assert theory.is_zero(free_link.time(sigma, n) - even)
        assert free_cpu.growth[n] == 1


# ----------------------------------------------------------- Fractions and 60 digits

CASES = [
    tuple(Fraction(v) for v in case)
    for case in itertools.product((1, "1/3"), (1, 20, "5/2"), (0, 3, "1/7"), (0, 2), (21, "1/2"))
]


def exact_time(case, n):
    """E(n) from the recurrence (4.7)-(4.11) alone, in Fractions."""
    one_cms, one_cps, one_st, one_sc, size = case
    w = one_cms + one_cps
    b, f = one_cps / w, one_st / (size * w)
    # sum of a_1 b^(j-1) - f (1 + ... + b^(j-2)) over j is 1
    powers = [b**j for j in range(n)]
    lost = sum(sum(powers[:j], Fraction(0)) for j in range(n)) * f
    return one_st + one_sc + size * w * (1 + lost) / sum(powers)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_fractions_are_exact(case):
    *costs, size = case
    k = Kernels(*costs)
    times = [exact_time(case, n) for n in range(1, NODES + 2)]
    for n in range(1, NODES + 1):
        assert k.time(size, n) == times[n - 1]
        assert k.rise_of_cost(size, n) == (n + 1) * times[n] - n * times[n - 1]
    best = min(range(1, NODES + 1), key=lambda n: times[n - 1])
    assert plain(core.n_star_of)(size, k.min_size, NODES) == best
    for wanted in range(1, best + 1):
        for budget in (times[wanted - 1], times[wanted - 1] - Fraction(1, 10**9)):
            fits = [n for n in range(1, best + 1) if times[n - 1] <= budget]
            found = plain(core.n_min_of)(0, budget, size, 1, best, k.time_per_unit, k.setup_time)
            assert found == (fits[0] if fits else 0)


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


def test_floats_compiled_and_plain_agree_with_fractions():
    for case in CASES:
        *costs, size = case
        cluster = Cluster(NODES, *map(float, costs))
        table = execution_times.opr_table(cluster)
        for n in range(1, NODES + 1):
            want = float(exact_time(case, n))
            found = core.time_on_nodes(float(size), n, table.time_per_unit, table.setup_time)
            assert found == pytest.approx(want, rel=8 * EPS)


# ------------------------------------------------------------------ accuracy

RATIOS = 10.0 ** np.linspace(-9, 0, 19)
COUNTS = (1, 2, 3, 5, 10, 31, 100, 256, 1000, 3162, 9999, 10000)


def errors(setup, ratio, cps_=100.0):
    """Relative error of E in eps: engine and printed formula, for every n of COUNTS."""
    costs = (cps_ * ratio, cps_, *setup)
    table = execution_times.opr_table.__wrapped__(Cluster(max(COUNTS), *costs))
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


# ------------------------------------------------------------- exact deadlines

TRIALS = scale_count(4000)


def exact_deadlines(setup, seed):
    """Loads that start at t and are due exactly when their m-th E ends: (cluster, ...)."""
    rng = np.random.default_rng(seed)
    for _ in range(TRIALS):
        one = Cluster(16, 1.0, float(rng.choice([1.0, 10.0, 100.0])), *setup)
        size, t = float(rng.uniform(50, 500)), float(rng.uniform(0, 1e7))
        top = execution_times.fastest_nodes(size, one)
        n = int(rng.integers(1, top + 1))
        before = execution_times.execution_time(size, max(n - 1, 1), one)
        time = execution_times.execution_time(size, n, one)
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
        assert execution_times.fewest_nodes(size, due - t, one, start=t) == n
        table = execution_times.opr_table(one)
        top = execution_times.fastest_nodes(size, one)
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
    assert execution_times.fewest_nodes(100.0, 100.0 - 1e-6, one) == 0
    assert logarithm(100.0, 99.0, one) is None
    assert execution_times.fewest_nodes(100.0, 201.0, one) == 1
