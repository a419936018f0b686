"""The engine's kernels are the proved formulas, on symbols: each term for each number of nodes.

The tests of ``tests/realtime`` hold the same kernels to exact twins, number by number.
"""

import itertools
import types
from fractions import Fraction
from types import SimpleNamespace

import pytest
import sympy as sp

from dlsim import compiled as compiled_module
from dlsim import theory
from dlsim.realtime import formulas
from dlsim.realtime.core import formulas as core
from dlsim.realtime.core import splits
from dlsim.theory.symbols import first_share, geometric, share
from tests.helpers.scale import LONG, scale_count
from tests.realtime.test_partition_inserted import pools
from tests.twins import splits as splits_of_twin

NODES = 8


def plain_kernels(*modules):
    """Return the modules' kernels uncompiled, each calling the others uncompiled too."""
    names = dict(vars(compiled_module))
    for module in modules:
        names |= vars(module)
    for name, value in list(names.items()):
        function = getattr(value, "py_func", value)  # itself where nothing is compiled
        if function is not value:
            names[name] = types.FunctionType(function.__code__, names, name)
            names[name].__defaults__ = function.__defaults__
    return SimpleNamespace(**names)


K = plain_kernels(core, splits)


class Kernels:
    """The tables of the uncompiled kernels on any kind of number: lists instead of arrays."""

    def __init__(self, cms, cps, st, sc):
        size = NODES + 2
        self.growth = [None] * size
        self.time_per_unit, self.setup_time = [None] * size, [None] * size
        self.min_size = [None] * size
        self.dc_slope, self.dc_offset = [None] * size, [None] * size
        costs = (cms, cps, st, sc)
        K.growth_sums(cms, cps, self.growth)
        table = (self.time_per_unit, self.setup_time, self.min_size)
        K.cost_coefficients(self.growth, *costs, *table)
        K.derivative_coefficients(self.growth, *costs, self.dc_slope, self.dc_offset)

    def time(self, sigma, n):
        return K.time_on_nodes(sigma, n, self.time_per_unit, self.setup_time)

    def rise_of_cost(self, sigma, n):
        return K.cost_derivative(sigma, n, NODES, False, self.dc_slope, self.dc_offset)


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
    power = sp.exp(-n * sp.log(1 + (1 - b) / b))
    assert sp.simplify(sp.exp(-n * sp.log(sp.simplify(1 + (1 - b) / b))) - b**n) == 0
    assert sp.simplify(closed.subs(power, b**n) - (1 - b**n) / (1 - b)) == 0


def derived(formula):
    """A formula of the theory, in the kernel's letters."""
    letters = {"beta": beta, "phi": phi}
    return formula.subs([(s, letters[s.name]) for s in formula.free_symbols if s.name in letters])


def derived_time(n):
    return st + sc + sigma * (cms + cps) * derived(first_share(sp.Integer(n)))


@pytest.fixture(scope="module")
def symbolic():
    return Kernels(cms, cps, st, sc)


@pytest.mark.parametrize("n", range(1, NODES + 1 if LONG >= 1 else NODES - 1))
def test_times_and_costs_are_those_of_the_theory(symbolic, n):
    assert theory.is_zero(symbolic.growth[n] - derived(geometric(sp.Integer(n))))
    assert theory.is_zero(symbolic.time(sigma, n) - derived_time(n))
    assert not theory.is_zero(symbolic.time(sigma, n) - derived_time(n).subs(st, 2 * st))
    difference = (n + 1) * derived_time(n + 1) - n * derived_time(n)
    assert theory.is_zero(symbolic.rise_of_cost(sigma, n) - difference)


@pytest.mark.parametrize("n", range(2, NODES + 1 if LONG >= 1 else NODES - 1))
def test_the_least_size_makes_the_last_share_zero(symbolic, n):
    assert symbolic.min_size[1] == 0
    last = derived(share(sp.Integer(n), first_share(sp.Integer(n))))
    positive = sp.Symbol("c", positive=True)
    limit = symbolic.min_size[n].subs(st, positive)
    assert theory.is_zero(last.subs(st, positive).subs(sigma, limit))


# --- nodes released one by one ------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 5))
def test_remodelled_time_and_idle_sum_are_those_of_the_statements(n):
    """Statement 6, and equation (2) of paper I."""
    r, whole = sp.symbols("r_1:5", nonnegative=True)[:n], sp.Symbol("E", positive=True)
    pool = [SimpleNamespace(time=time, nodes=1) for time in r]
    found = K.remodelled_time(pool, n, sigma, cms, cps, whole)
    chi = [cps * whole / (whole + r[-1] - x) for x in r]
    product = sp.prod(x / (cms + x) for x in chi)
    assert theory.is_zero(found - sigma * cms / (1 - product))
    assert not theory.is_zero(found - sigma * cms / (1 + product))
    assert theory.is_zero(K.idle_sum(pool, n) - (n * r[-1] - sum(r)))


def test_the_optimum_serves_the_nodes_that_are_released_before_it():
    """Exactly, in fractions, the optimum of the twin."""
    fewer = 0
    for costs, size, r in pools("kernel", scale_count(600)):
        if costs.cps:
            pool = [SimpleNamespace(time=time, nodes=1) for time in r]
            unit = Kernels(costs.cms, costs.cps, Fraction(0), Fraction(0)).time_per_unit
            part = costs.cms / (costs.cms + costs.cps)
            end, nodes, _ = K.optimal_completion(pool, len(r), size, part, unit)
            assert end == splits_of_twin.optimum(costs, size, r)
            assert r[nodes - 1] < end
            assert nodes == len(r) or r[nodes] >= end
            fewer += nodes < len(r)
    assert fewer > 0


@pytest.mark.parametrize(("n", "rounds"), list(itertools.product((1, 2, 4), (1, 2, 3, 5))))
@pytest.mark.parametrize("ratio", [1, 3, 8])
def test_instalments_carry_the_load_and_no_node_waits(n, rounds, ratio):
    tau, chi = sp.Integer(2), sp.Integer(2 * ratio)  # theta below, at and above 1
    costs = SimpleNamespace(cms=tau, cps=chi, st=st, sc=sc)
    c = [K.instalment(j, sigma, n, rounds, costs) for j in range(rounds)]
    assert theory.is_zero(n * sum(c) - sigma)
    for one, two in itertools.pairwise(c):
        assert theory.is_zero(sc + chi * one - n * (st + tau * two))
        assert not theory.is_zero(sc + chi * one - n * (st + tau * one))
