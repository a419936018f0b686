"""Optima and fair levels are those that SciPy's linear programs find.

The exact twins of the fast tests hold the same results; here the twins themselves, and what has
no twin, are held by a solver that knows nothing of their formulas.
"""

import itertools
from fractions import Fraction as Q

import numpy as np
import pytest
from scipy.optimize import linprog

from dlsim.steady import max_min_fair, solve_program
from tests.helpers.scale import LONG, scale_count
from tests.helpers.steady_platforms import as_instance
from tests.realtime.test_partition_inserted import pools
from tests.steady.test_program import CLOSE, random_platforms
from tests.twins import splits
from tests.twins.realtime import Costs

# ---------------------------------------------------------------- loads on nodes released apart


def by_program(costs: Costs, sigma: Q, r: list[Q]) -> float:
    """Return the least completion when exactly these nodes are served in this order (HiGHS).

    Variables are the loads x_i, the beginnings s_i of the sends and the end.
    """
    n, tau, w = len(r), float(costs.cms), float(costs.cms + costs.cps)
    rows, bounds = [], [(0, None)] * n + [(float(t), None) for t in r] + [(0, None)]
    for i in range(n):
        finish = np.zeros(2 * n + 1)
        finish[[i, n + i, 2 * n]] = w, 1, -1
        rows.append(finish)
        if i:
            after = np.zeros(2 * n + 1)
            after[[i - 1, n + i - 1, n + i]] = tau, 1, -1
            rows.append(after)
    load = np.r_[np.ones(n), np.zeros(n + 1)][None]
    cost = np.r_[np.zeros(2 * n), 1]
    answer = linprog(cost, np.array(rows), np.zeros(len(rows)), load, [float(sigma)], bounds)
    assert answer.status == 0
    return float(answer.fun)


def test_the_optimum_is_that_of_linear_programs_over_all_orders():
    for costs, sigma, r in pools("permutations", scale_count(12), most=4):
        n = len(r)
        orders = [o for m in range(1, n + 1) for o in itertools.permutations(range(n), m)]
        wanted = min(by_program(costs, sigma, [r[i] for i in order]) for order in orders)
        assert float(splits.optimum(costs, sigma, r)) == pytest.approx(wanted, rel=1e-9)


def test_equal_finish_is_the_optimum_where_a_constraint_holds():
    met = {1: 0, 2: 0}
    for costs, sigma, r in pools("constraints", scale_count(600), most=4):
        one, two = (splits.is_met(costs, sigma, r, which) for which in (1, 2))
        assert two or not one  # nested with the guard
        shares, e = splits.equal_finish(costs, sigma, r)
        if two:
            assert e == splits.optimum(costs, sigma, r)
            assert shares == splits.filled(costs, sigma, r, e)
            ends = [c.compute_end for c in splits.sent_in_turn(costs, sigma, shares, r)]
            assert ends == [e] * len(r)
        met[1], met[2] = met[1] + (one and len(r) > 1), met[2] + (two and len(r) > 1)
    assert 0 < met[1] < met[2]


def test_the_constraints_are_nested_only_with_the_guard():
    # sigma = tau = 1, chi = 1/10: Constraint 1 holds, alpha_1 = 37/11 breaks Constraint 2
    costs, r = Costs(3, Q(1), Q(1, 10), Q(0), Q(0)), [Q(0), Q(1), Q(9)]
    assert splits.constraint(costs, Q(1), r, 1)
    assert not splits.constraint(costs, Q(1), r, 2)
    assert splits.equal_finish(costs, Q(1), r)[0][0] == Q(37, 11)


# ---------------------------------------------------------------- paper S


def lexicographic(p, connections):
    """Values of the applications, sorted, by one program per application and level."""
    inst, apps = as_instance(p), np.flatnonzero(p.is_counted)
    cells = [
        (a, to)
        for a in apps
        for to in range(p.clusters)
        if p.inverse_priority[a, to] and (to == p.origin[a] or (p.origin[a], to) in p.routes)
    ]
    rows, limits = [], []

    def add(terms, limit):
        rows.append([terms.get(cell, 0.0) for cell in cells])
        limits.append(float(limit))

    for k in range(p.clusters):
        add({(a, to): p.work[a] for a, to in cells if to == k}, p.speed[k])
        add(
            {(a, to): p.data[a] for a, to in cells if (p.origin[a] == k) != (to == k)}, p.gateway[k]
        )
        for to in range(p.clusters):
            if p.routes.get((k, to)):
                most = connections[k, to] * float(inst.one(k, to))
                add({(a, m): p.data[a] for a, m in cells if p.origin[a] == k and m == to}, most)
    for s in p.limits.shares:
        held = {c: p.work[c[0]] for c in cells if c[1] == s.cluster and p.origin[c[0]] in s.origins}
        add(held, s.share * p.speed[s.cluster])

    def best(goals, held, others):
        """Largest t with value >= t for the goals, at least the level for the others."""
        top = [
            [-p.inverse_priority[a, to] if a == b else 0.0 for a, to in cells]
            + [1.0 if b in goals else 0.0]
            for b in apps
        ]
        levels = [0.0 if b in goals else -(held[b] if b in held else others) for b in apps]
        answer = linprog(
            [0.0] * len(cells) + [-1.0],
            A_ub=[*top, *([*row, 0.0] for row in rows)],
            b_ub=[*(x + 1e-9 for x in levels), *limits],
        )
        assert answer.status == 0, answer.message
        return -answer.fun

    held = {}
    while len(held) < len(apps):
        free = [a for a in apps if a not in held]
        level = best(free, held, 0.0)
        full = [a for a in free if best([a], held, level) <= level + 1e-6]
        held |= dict.fromkeys(full, level)
    return sorted(held.values())


def test_max_min_fairness_is_lexicographic():
    raised = 0
    for p in random_platforms(25, max(LONG, 0.3), clusters=3, apps=3):
        best = solve_program(p)
        level = max_min_fair(p, best.connections)
        values = np.sort(level.values[p.is_counted])
        assert values == pytest.approx(lexicographic(p, best.connections), rel=1e-4, abs=1e-4)
        assert level.objective == pytest.approx(best.objective, rel=CLOSE, abs=CLOSE)
        raised += values[-1] > values[0] + 1e-3
    assert raised >= 5
