"""The engine's kernels are the proved formulas, on symbols and Fractions."""

from fractions import Fraction

import pytest
import sympy as sp

from dlsim import theory
from dlsim.compiled import deadline_with_tolerance, meets_deadline, times_tie
from dlsim.realtime import formulas
from dlsim.realtime.core import formulas as core
from dlsim.theory.symbols import first_share, geometric, share
from tests.helpers.scale import LONG

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
    closed = formulas.growth_closed(n, (1 - b) / b, sp.Integer(1), Symbolic)
    power = sp.exp(-n * sp.log(sp.simplify(1 + (1 - b) / b)))
    assert sp.simplify(power - b**n) == 0
    assert sp.simplify(closed.subs(sp.exp(-n * sp.log(1 + (1 - b) / b)), b**n)
                       - (1 - b**n) / (1 - b)) == 0  # fmt: skip


def test_the_closed_growth_is_the_recursion_on_small_counts():
    for count in range(1, 6):
        closed = formulas.growth_closed(count, cms, cps, Symbolic)
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


# ------------------------------------------------------------------- Fractions


def exact_time(case, n):
    """E(n) from the recurrence (4.7)-(4.11) alone, in Fractions."""
    one_cms, one_cps, one_st, one_sc, size = case
    w = one_cms + one_cps
    b, f = one_cps / w, one_st / (size * w)
    # sum of a_1 b^(j-1) - f (1 + ... + b^(j-2)) over j is 1
    powers = [b**j for j in range(n)]
    lost = sum(sum(powers[:j], Fraction(0)) for j in range(n)) * f
    return one_st + one_sc + size * w * (1 + lost) / sum(powers)
