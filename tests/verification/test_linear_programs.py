"""Optima, bounds and fair levels are those that SciPy's linear programs find.

The exact twins of the fast tests hold the same results; here the twins themselves, and what has
no twin, are held by a solver that knows nothing of their formulas.
"""

import itertools
import random
from fractions import Fraction as Q

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from dlsim.realtime.star import split_unequal
from dlsim.steady import Platform, bound, max_min_fair, solve, solve_program
from tests.helpers.scale import LONG, scale_count, some_of
from tests.helpers.steady_platforms import as_instance
from tests.realtime.test_partition_inserted import pools
from tests.realtime.test_star import check_times, orders_of, random_nodes
from tests.steady.test_program import CLOSE, random_platforms
from tests.twins import splits
from tests.twins.realtime import Costs

# ---------------------------------------------------------------- loads on nodes released apart


def greedy(costs: Costs, sigma: Q, r: list[Q], end: Q) -> Q:
    """Return the load that the nodes can process by an instant, each taking all it can."""
    return sum(splits.filled(costs, sigma, r, end)) * sigma


def by_bisection(costs: Costs, sigma: Q, r: list[Q]) -> Q:
    """Return the completion of the optimum to 1e-18."""
    low, high = r[0], r[0] + sigma * (costs.cms + costs.cps)
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (low, middle) if greedy(costs, sigma, r, middle) >= sigma else (middle, high)
    return high


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


def least(costs: Costs, sigma: Q, r: list[Q], orders) -> float:
    return min(by_program(costs, sigma, [r[i] for i in order]) for order in orders)


def test_the_optimum_is_the_linear_programs():
    count = scale_count(60)
    for costs, sigma, r in pools("program", count):
        prefixes = [range(m) for m in range(1, len(r) + 1)]
        wanted = least(costs, sigma, r, prefixes)
        assert float(splits.optimum(costs, sigma, r)) == pytest.approx(wanted, rel=1e-9)


def test_no_other_order_and_no_other_nodes_are_better():
    for costs, sigma, r in pools("permutations", scale_count(12), most=4):
        n = len(r)
        orders = [o for m in range(1, n + 1) for o in itertools.permutations(range(n), m)]
        wanted = least(costs, sigma, r, orders)
        assert float(splits.optimum(costs, sigma, r)) == pytest.approx(wanted, rel=1e-9)


def test_the_optimum_is_found_by_bisection():
    for costs, sigma, r in pools("bisection", scale_count(150), tau=False):
        e = splits.optimum(costs, sigma, r)
        assert greedy(costs, sigma, r, e) == sigma
        assert abs(e - by_bisection(costs, sigma, r)) <= Q(1, 10**15) * max(1, e)


def test_what_is_proved_of_remodel_and_optimum():
    """Optimum <= real finish <= estimate <= r_n + E(n); the optimum never rises with n."""
    strict = rises = 0
    for costs, sigma, r in pools("chain", scale_count(400), tau=False):
        E, e = costs.E(sigma, len(r)), splits.optimum(costs, sigma, r)
        shares, estimate = splits.remodel(costs, sigma, r)
        assert sum(shares) == 1
        chunks = splits.sent_in_turn(costs, sigma, shares, r)
        ends = [c.compute_end for c in chunks]
        assert e <= max(ends) <= estimate <= r[-1] + E
        assert (estimate == r[-1] + E) == (r[0] == r[-1] or costs.cps == 0)
        strict += e < max(ends) < estimate
        values = [splits.optimum(costs, sigma, r[:n]) for n in range(1, len(r) + 1)]
        assert values == sorted(values, reverse=True)
        remodels = [splits.remodel(costs, sigma, r[:n])[1] for n in range(1, len(r) + 1)]
        rises += remodels != sorted(remodels, reverse=True)
    print(f"strict {strict}, estimates that rise with n {rises}")
    assert strict > 0
    assert rises > 0


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


def test_rounds_take_what_the_formula_says():
    """Makespan of the instalments, and of the same from different release times."""
    source, earlier = random.Random("rounds"), 0
    for _ in range(scale_count(150)):
        n, most = source.randint(1, 6), source.randint(1, 6)
        cms, cps, st, sc = (Q(source.randint(k, 20), source.randint(1, 6)) for k in (1, 0, 0, 0))
        costs = Costs(n, cms, cps, st, sc)
        if source.random() < 0.2:
            costs.cps = n * cms  # theta = 1
        sigma = Q(source.randint(1, 100), 4)
        rounds = splits.chosen_rounds(costs, sigma, n, most)
        sizes = splits.instalments(costs, sigma, n, rounds)
        assert n * sum(sizes) == sigma
        assert min(sizes) > 0
        for more in range(rounds + 1, most + 1):
            assert min(splits.instalments(costs, sigma, n, more)) <= 0
        span = splits.makespan(costs, sigma, n, rounds, sizes[0])
        chunks = splits.sent_in_rounds(costs, sigma, sizes, [Q(0)] * n)
        assert max(c.compute_end for c in chunks) == span
        r = sorted(Q(source.randint(0, 40), 4) for _ in range(n))
        end = max(c.compute_end for c in splits.sent_in_rounds(costs, sigma, sizes, r))
        assert end <= r[-1] + span
        earlier += end < r[-1] + span
    assert earlier > 0


# ---------------------------------------------------------------- a load on unequal nodes


def least_finish_by_program(order, sigma, nodes):
    """Minimise the finish of nodes that are all sent to, in this order, from time 0 on."""
    count, rows, limits = len(order), [], []
    for k in range(count):
        sent = [nodes["cms"][order[h]] * (h <= k) for h in range(count)]
        sent[k] += nodes["cps"][order[k]]
        rows.append([*sent, -1.0])
        limits.append(-nodes["sc"][order[k]] - nodes["st"][list(order[: k + 1])].sum())
    gain = [*[0.0] * count, 1.0]
    return linprog(gain, rows, limits, [[*[1.0] * count, 0.0]], [sigma]).fun


def test_the_best_of_all_orders_is_that_of_linear_programs():
    rng, left_out = np.random.default_rng(1), 0
    for _ in range(scale_count(40)):
        nodes = random_nodes(rng, int(rng.integers(1, 5)), releases=False)
        sigma = float(rng.integers(1, 4))
        found = split_unequal(sigma, nodes, "best")
        check_times(found, sigma, nodes)
        ends = [least_finish_by_program(order, sigma, nodes) for order in orders_of(len(nodes))]
        assert found.finish == pytest.approx(min(ends))
        left_out += len(found.order) < len(nodes)
    assert left_out > 0


# ---------------------------------------------------------------- paper S


def lp_bound(speed, gateway, links, routes, homes):
    """Solve the relaxed program by SciPy: alpha of app a on site l, connections per route, t."""
    sites, apps = len(speed), len(homes)
    cells = list(itertools.product(range(apps), range(sites)))
    column = {cell: 1 + i for i, cell in enumerate(cells)}
    opened = {pair: 1 + len(cells) + i for i, pair in enumerate(routes)}
    rows, limits = [], []

    def row(limit, terms):
        rows.append(np.zeros(1 + len(cells) + len(opened)))
        for at, value in terms:
            rows[-1][at] += value
        limits.append(limit)

    for a in range(apps):  # t is at most the value of every application
        row(0, [(0, homes[a]["priority"])] + [(column[a, k], -1) for k in range(sites)])
    for k in range(sites):
        row(speed[k], [(column[a, k], homes[a]["work"]) for a in range(apps)])
        away = [(a, to) for a, to in cells if a != to]
        row(gateway[k], [(column[a, to], homes[a]["data"]) for a, to in away if k in (to, a)])
    for k, to in itertools.permutations(range(sites), 2):
        sent = [(column[k, to], homes[k]["data"])]
        if (k, to) in routes:
            one = min(links[name][0] for name in routes[k, to])
            row(0, [*sent, (opened[k, to], -one)])
        else:
            row(0, [(at, 1) for at, _ in sent])
    for name, (_, most) in links.items():
        row(most, [(at, 1) for pair, at in opened.items() if name in routes[pair]])
    goal = np.zeros(len(rows[0]))
    goal[0] = -1
    return -linprog(goal, np.array(rows), limits, method="highs").fun


def draw_network(seed):
    """Return a network whose nodes and edges carry its numbers, and its bound."""
    rng, names = np.random.default_rng(seed), [f"n{i}" for i in range(7)]
    fields, graph, homes = ("speed", "gateway", "priority", "work", "data"), nx.Graph(), []
    for i, name in enumerate(names):
        graph.add_node(name)
        if i % 2 == 0:
            homes.append(dict(zip(fields, rng.uniform(1, 20, 5).tolist(), strict=True)))
            graph.nodes[name].update(homes[-1])
    links = {}
    for pair in itertools.combinations(names, 2):
        if rng.random() < 0.4:
            links[frozenset(pair)] = float(rng.uniform(0.5, 6)), int(rng.integers(0, 5))
            numbers = zip(("bandwidth", "max_connect"), links[frozenset(pair)], strict=True)
            graph.add_edge(*pair, **dict(numbers))
    routes = {}
    for (k, u), (to, v) in itertools.permutations(enumerate(names[::2]), 2):
        if nx.has_path(graph, u, v):
            path = min(nx.all_shortest_paths(graph, *sorted((u, v))))
            routes[k, to] = [frozenset(edge) for edge in itertools.pairwise(path)]
    speed, gateway = ([home[name] for home in homes] for name in ("speed", "gateway"))
    return graph, lp_bound(speed, gateway, links, routes, homes)


@pytest.mark.parametrize("seed", some_of(range(24)))
def test_the_bound_of_a_drawn_network_is_scipys(seed):
    graph, expected = draw_network(seed)
    p = Platform.from_graph(graph)
    assert bound(p) == pytest.approx(expected, rel=1e-7)
    for method in ("G+fair", "LPRG"):
        assert solve(p, method).objective <= expected * (1 + 1e-7)


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
