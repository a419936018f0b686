"""The kernels of nodes released one by one are the proved formulas, on symbols and Fractions."""

import itertools
import random
import types
from fractions import Fraction as Q
from types import SimpleNamespace

import pytest
import sympy as sp

from dlsim import compiled as compiled_module
from dlsim import theory
from dlsim.realtime.core import chunks, formulas, splits
from dlsim.realtime.core.splits import (
    EQUAL,
    EQUAL_FINISH,
    OPR,
    OPTIMUM,
    PIECES,
    REMODEL,
    ROUNDS,
    ROUNDS_EARLY,
)
from tests.helpers.scale import scale_count
from tests.verification.test_kernel_tie import _NAMES, Kernels, cms, cps, exact_time, plain, sigma


def plain_kernels(*modules):
    """Return the modules' kernels uncompiled, each calling the others uncompiled too."""
    names = dict(vars(compiled_module))
    for module in modules:
        names |= vars(module)
    for name, value in list(names.items()):
        if plain(value) is not value:
            names[name] = types.FunctionType(plain(value).__code__, names, name)
            names[name].__defaults__ = plain(value).__defaults__
    return SimpleNamespace(**names)


K = plain_kernels(formulas, splits, chunks)


def costs_of(tau, chi, st, sc, shared=False):
    """The costs as the kernels read them."""
    return SimpleNamespace(cms=tau, cps=chi, st=st, sc=sc, shared=shared)


def pool(times, nodes=None):
    """Nodes released at some instants, a node each unless told."""
    nodes = nodes or [1] * len(times)
    return [SimpleNamespace(time=t, nodes=m) for t, m in zip(times, nodes, strict=True)]


def test_every_kernel_is_tied():
    own = {
        name
        for module in (formulas, splits, chunks)
        for name, value in vars(module).items()
        if plain(value) is not value and value.py_func.__module__ == module.__name__
    }
    chosen = {name for name in own if name.startswith("split_")}  # held by the twins
    assert own - chosen == set(_NAMES.split()) | {
        "remodelled_time", "idle_sum", "constraint_one", "constraint_two", "load_completed_by",
        "send_fraction",
        "optimal_completion", "instalment", "first_round_chunk", "rounds_time",
        "fill_loads", "fill_sends", "scale_shares", "compute_chunks",
        "choose_nodes", "fill_chunks",
        "fill_n_min", "fill_opr_loads", "fill_equal_loads",
        "fill_equal_finish_loads", "fill_remodel_loads", "fill_optimum_loads", "fill_round_loads",
        "receiving_nodes", "time_in_rounds", "time_from_common_start", "n_min_from",
        "choose_split", "ends_together", "ends_node_by_node", "ends_with_its_chunks",
    }  # fmt: skip


# --- symbols -------------------------------------------------------------------------------------

RELEASES = sp.symbols("r_1:5", nonnegative=True)
E = sp.Symbol("E", positive=True)


@pytest.mark.parametrize("n", range(1, 5))
def test_the_remodelled_time_is_statement_6_closed(n):
    r = RELEASES[:n]
    found = K.remodelled_time(pool(r), n, sigma, cms, cps, E)
    chi = [cps * E / (E + r[-1] - x) for x in r]
    product = sp.prod(x / (cms + x) for x in chi)
    assert theory.is_zero(found - sigma * cms / (1 - product))
    assert not theory.is_zero(found - sigma * cms / (1 + product))


@pytest.mark.parametrize("n", range(1, 5))
def test_the_idle_sum_is_that_of_equation_2(n):
    r = RELEASES[:n]
    assert theory.is_zero(K.idle_sum(pool(r), n) - (n * r[-1] - sum(r)))


@pytest.mark.parametrize(("n", "rounds"), list(itertools.product((1, 2, 4), (1, 2, 3, 5))))
@pytest.mark.parametrize("ratio", [1, 3, 8])
def test_instalments_carry_the_load_and_no_node_waits(n, rounds, ratio):
    st, sc = sp.symbols("ST SC", nonnegative=True)
    tau, chi = sp.Integer(2), sp.Integer(2 * ratio)  # theta below, at and above 1
    costs = costs_of(tau, chi, st, sc)
    c = [K.instalment(j, sigma, n, rounds, costs) for j in range(rounds)]
    assert theory.is_zero(n * sum(c) - sigma)
    for one, two in itertools.pairwise(c):  # no node waits
        assert theory.is_zero(sc + chi * one - n * (st + tau * two))
        assert not theory.is_zero(sc + chi * one - n * (st + tau * one))


# --- Fractions -----------------------------------------------------------------------------------


def draws(count, seed):
    """Clusters, sizes and release times, as Fractions: (tau, chi, sigma, r)."""
    source = random.Random(seed)
    for _ in range(scale_count(count)):
        tau, chi = Q(source.randint(1, 8), 2), Q(source.randint(1, 60), 2)
        size, n = Q(source.randint(1, 80), 4), source.randint(1, 5)
        steps = [Q(source.choice([0, 1, source.randint(1, 60)]), 4) for _ in range(n)]
        yield tau, chi, size, list(itertools.accumulate(steps))


def laid(kind, tau, chi, size, r, rounds=1, end=None, st=Q(0), sc=Q(0), shared=False):
    """Rows (alpha, send_start, send_end, compute_end) and what `fill_sends` returns."""
    n, out = len(r), [[None] * 4 for _ in range(len(r) * rounds)]
    table = Kernels(tau, chi, st, sc, nodes=n)
    table.first_share_offset = [Q(0)] * (n + 2)  # without set-up times
    entry = SimpleNamespace(kind=kind, nodes=n, rounds=rounds, end=end)
    rules, rows = costs_of(tau, chi, st, sc, shared), Grid(out)
    K.fill_loads(entry, size, r, rules, table, rows)
    return out, K.fill_sends(entry, size, r, rules, rows)


class Grid:
    """Rows that are written as a two-dimensional array is."""

    def __init__(self, rows):
        self.rows = rows

    def __setitem__(self, place, value):
        self.rows[place[0]][place[1]] = value

    def __getitem__(self, place):
        return self.rows[place[0]][place[1]]


def test_equal_finish_is_statement_1_3_4():
    met = 0
    for tau, chi, size, r in draws(1000, 1):
        w, n = tau + chi, len(r)
        e = (sum(r) + size * w) / n
        rows, (end, _) = laid(EQUAL_FINISH, tau, chi, size, r)
        assert [row[0] for row in rows] == [(e - x) / (size * w) for x in r]
        assert sum(row[0] for row in rows) == 1
        two = K.constraint_two(pool(r), n, e, tau / w, False)
        assert two == all(x + (e - x) * tau / w <= y for x, y in itertools.pairwise(r))
        one = K.constraint_one(pool(r), n, size * tau, False)
        assert one == all(y - x >= size * tau for x, y in itertools.pairwise(r))
        if two and e > r[-1]:  # 1.C1C2: no node waits, all end at e
            assert [row[1] for row in rows] == r
            assert {row[3] for row in rows} == {e} == {end}
            met += n > 1
    assert met > 0


def test_the_remodel_is_statements_6_rec_6_ehate_and_6_safe():
    idle = 0
    for tau, chi, size, r in draws(200, 2):
        n = len(r)
        whole = exact_time((tau, chi, Q(0), Q(0), size), n)
        rows, (end, _) = laid(REMODEL, tau, chi, size, r)
        alpha = [row[0] for row in rows]
        each = [chi * whole / (whole + r[-1] - x) for x in r]
        assert sum(alpha) == 1
        for i in range(n - 1):
            assert alpha[i + 1] * (tau + each[i + 1]) == alpha[i] * each[i]
        promised = K.remodelled_time(pool(r), n, size, tau, chi, whole)
        assert promised == size * tau + alpha[-1] * size * chi
        assert promised <= whole  # 6.EhatE
        assert end <= r[-1] + promised  # 6.safe
        idle += r[0] < r[-1] and promised < whole
    assert idle > 0


def cuts(n):
    """Every cut of n nodes in a row into runs, as (first, length) pairs."""
    for breaks in itertools.product((False, True), repeat=n - 1):
        heads = [0, *(i + 1 for i, cut in enumerate(breaks) if cut)]
        yield [(a, b - a) for a, b in itertools.pairwise([*heads, n])]


def test_the_optimum_is_the_greatest_bound_of_opt_blk():
    """Every cut bounds the end of the serving nodes from below, and one is attained."""
    waiting = fewer = 0
    for tau, chi, size, r in draws(200, 3):
        beta, part = chi / (tau + chi), tau / (tau + chi)
        unit = Kernels(tau, chi, Q(0), Q(0), nodes=len(r)).time_per_unit
        for m in range(1, len(r) + 1):
            assert K.send_fraction(m, part, unit) == 1 - beta**m
        end, nodes, _ = K.optimal_completion(pool(r), len(r), size, part, unit)
        bounds = []
        for cut in cuts(nodes):
            w = [(r[h], 1 - beta**m) for h, m in cut]
            bounds.append((size * tau + sum(x * y for x, y in w)) / sum(y for _, y in w))
        assert end == max(bounds)
        assert r[nodes - 1] < end
        assert nodes == len(r) or r[nodes] >= end  # every node that could help serves
        rows, (found, _) = laid(OPTIMUM, tau, chi, size, r[:nodes], end=end)
        assert sum(row[0] for row in rows) == 1
        assert min(row[0] for row in rows) > 0
        assert {row[3] for row in rows} == {end} == {found}
        assert K.load_completed_by(pool(r), len(r), end, part, unit) == size
        waiting += any(row[1] > x for row, x in zip(rows, r, strict=False))
        fewer += nodes < len(r)
    assert waiting > 0
    assert fewer > 0


def test_rounds_take_as_long_as_their_chunks():
    several = 0
    for tau, chi, size, r in draws(120, 4):
        n, st, sc = len(r), Q(1, 4), Q(1, 2)
        costs = costs_of(tau, chi, st, sc)
        for wanted in (1, 2, 4):
            time, rounds = K.rounds_time(size, n, wanted, costs)
            c = [K.instalment(j, size, n, rounds, costs) for j in range(rounds)]
            assert min(c) > 0
            assert time == n * (st + tau * c[0]) + rounds * sc + chi * size / n
            assert K.first_round_chunk(size, n, rounds, costs) == c[0]
            if rounds < wanted:  # one more would leave a chunk of nothing
                more = [K.instalment(j, size, n, rounds + 1, costs) for j in range(rounds + 1)]
                assert min(more) <= Q(1, 10**12) * size / n
            rows, (end, _) = laid(ROUNDS, tau, chi, size, [Q(0)] * n, rounds, st=st, sc=sc)
            assert end == time
            early, _ = laid(ROUNDS_EARLY, tau, chi, size, r, rounds, st=st, sc=sc)
            assert [row[0] for row in early] == [row[0] for row in rows]
            several += rounds > 1
    assert several > 0


def test_equal_shares_and_pieces():
    for tau, chi, size, r in draws(60, 5):
        n, last = len(r), r[-1]
        rows, (end, _) = laid(EQUAL, tau, chi, size, r)
        assert {row[0] for row in rows} == {Q(1, n)}
        assert end == last + size * tau + size * chi / n
        rows, (end, _) = laid(PIECES, tau, chi, size, r)
        assert [row[3] for row in rows] == [x + (tau + chi) * size / n for x in r]


def test_opr_is_the_recurrence_4_7_to_4_11():
    for tau, chi, size, r in draws(60, 6):
        n = len(r)
        out, _ = laid(OPR, tau, chi, size, r)
        whole = exact_time((tau, chi, Q(0), Q(0), size), n)
        assert {row[3] for row in out} == {r[-1] + whole}
