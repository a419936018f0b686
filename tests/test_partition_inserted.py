"""Loads split over nodes with different release times, and in rounds (paper I).

The true optimum is held to linear programs, to bisection and to its closed forms.
"""

import itertools
import random
from fractions import Fraction as Q
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog

from dlsim.realtime import Cluster, execution_time, split_load
from dlsim.realtime.core.formulas import optimal_completion, remodelled_time
from dlsim.realtime.core.splits import OPTIMUM, REMODEL, chunk_times, ends_in_groups
from dlsim.realtime.core.state import NODE_BLOCK, fresh_state, insert_completions
from dlsim.realtime.execution_times import time_table
from tests.scale import scale_count
from tests.twins import inserted, splits
from tests.twins.realtime import Costs

# --- instances and oracles ---------------------------------------------------------------------


def pools(seed: str, count: int, most: int = 6, tau: bool = True):
    """Draw (costs, sigma, r): quarters, with ties, or generic; the spread goes with E(1)."""
    source = random.Random(seed)
    for _ in range(count):
        n = source.randint(1, most)
        cms = Q(source.choice([1, 1, 2, Q(1, 2), 5] + [0] * (not tau)))
        cps = Q(source.choice([0, 1, 3, 10, 100, Q(7, 3)] if cms else [1, 3, 10]))
        sigma = Q(source.randint(1, 60), source.choice([1, 3, 4]))
        spread = max(1, int(4 * sigma * (cms + cps) * source.choice([Q(1, 20), Q(1, 4), 1, 2])))
        unit = source.choice([1, 4, 7])
        r = sorted(Q(source.randint(0, spread), unit) for _ in range(n))
        if source.random() < 0.3:
            r[-1] = r[0]
            r.sort()
        yield Costs(n, cms, cps, Q(0), Q(0)), sigma, r


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


# --- the twin's own ground ------------------------------------------------------------------------


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


# --- the package's own split ------------------------------------------------------------------


def same_split(costs: Costs, sigma: Q, r: list[Q], partition: str, rounds: object = 1) -> None:
    """Hold `split_load` to the twin: serving nodes, shares, times, estimate, completion."""
    twin = inserted.Twin(costs, "fifo", "min", partition, rounds)
    chunks, estimate = twin.split(sigma, r)
    cluster = Cluster(costs.nodes, *(float(x) for x in (costs.cms, costs.cps, costs.st, costs.sc)))
    found = split_load(float(sigma), [float(t) for t in r], cluster, partition, rounds)
    for name in ("alpha", "send_start", "send_end", "compute_end"):
        wanted = [float(getattr(c, name)) for c in chunks]
        assert np.ravel(getattr(found, name)) == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert found.estimate == pytest.approx(float(estimate), rel=1e-9)
    assert found.completion == pytest.approx(float(max(c.compute_end for c in chunks)), rel=1e-9)
    assert found.completion <= found.estimate * (1 + 1e-12)


@pytest.mark.parametrize("partition", ["opr", "equal", "dlt", "I", "II", "exact"])
def test_a_split_is_the_twins(partition):
    for costs, sigma, r in pools(f"split {partition}", scale_count(150), tau=False):
        if costs.cps or partition == "equal":  # with Cps = 0 the first node does it all
            same_split(costs, sigma, r, partition)


@pytest.mark.parametrize("partition", ["umr", "umr-iit"])
@pytest.mark.parametrize("rounds", [1, 4, "best"])
def test_a_split_in_rounds_is_the_twins(partition, rounds):
    source = random.Random(f"split {partition} {rounds}")
    for costs, sigma, r in pools(f"rounds {partition}", scale_count(40)):
        costs.st = Q(source.choice([0, 1, Q(1, 4)]) if rounds != "best" else 1)
        costs.sc = Q(source.choice([0, 1, Q(1, 2)]))
        same_split(costs, sigma, r, partition, rounds)


def test_equal_release_times_make_the_remodel_opr():
    for n in (1, 2, 5):
        cluster = Cluster(n, 1, 10)
        for partition in ("dlt", "I", "exact"):
            found = split_load(7.0, [3.0] * n, cluster, partition)
            assert found.estimate == pytest.approx(3 + execution_time(7.0, n, cluster), rel=1e-12)
            whole = split_load(7.0, [3.0] * n, cluster, "opr")
            assert found.alpha == pytest.approx(whole.alpha, rel=1e-12)


def test_hand_case_with_a_negative_share():
    # r = (0, 10), sigma = tau = 1, chi = 3: Constraint 1 holds and yet (3)-(4) = (7/4, -3/4)
    cluster = Cluster(2, 1, 3)
    remodel = split_load(1, [0, 10], cluster, "dlt")
    for partition in ("I", "II"):
        found = split_load(1, [0, 10], cluster, partition)
        assert found.kind == "remodel"
        assert found.alpha.tolist() == remodel.alpha.tolist()
    exact = split_load(1, [0, 10], cluster, "exact")
    assert exact.alpha == pytest.approx([1.0])
    assert exact.completion == pytest.approx(4.0)


def test_the_estimate_may_rise_with_more_nodes():
    """The hazard: r_n + Ehat(n) is no monotone function of n; the optimum is."""
    cluster, r = Cluster(3, 1, 3), [0.0, 1.0, 40.0]
    remodel = [split_load(5, r[:n], cluster, "dlt").estimate for n in (1, 2, 3)]
    exact = [split_load(5, r[:n], cluster, "exact").estimate for n in (1, 2, 3)]
    assert remodel[1] < remodel[0] < remodel[2]
    assert exact == sorted(exact, reverse=True)


@pytest.mark.parametrize("seed", range(200))
def test_the_optimum_splits_where_sending_takes_nearly_all_the_time(seed):
    """The last shares are far below a rounding of the clock, and still shares."""
    rng = np.random.default_rng(seed)
    n, cps = int(rng.integers(2, 10)), float(rng.choice([0.25, 0.1, 1.0]))
    release = np.sort(rng.random(n) * rng.choice([0.1, 1.0, 2.0, 10.0])).round(2)
    s = split_load(1.0, release, Cluster(n, 30.0, cps), "exact")
    assert (s.alpha > 0).all()
    assert s.alpha.sum() == pytest.approx(1, rel=1e-13)
    assert s.compute_end == pytest.approx(s.completion, rel=1e-13)
    begins = np.maximum(s.release, np.concatenate([[-np.inf], s.send_end[:-1]]))
    assert s.send_start.tolist() == begins.tolist()
    busy = s.send_start[1:] > s.release[1:]
    ratio = (s.alpha[1:] / s.alpha[:-1])[busy]
    assert ratio == pytest.approx(cps / (30 + cps), rel=1e-9)


@pytest.mark.parametrize("kind", [REMODEL, OPTIMUM])
@pytest.mark.parametrize("seed", range(100))
def test_a_task_ends_group_by_group_as_it_does_node_by_node(kind, seed):
    rng = np.random.default_rng(seed)
    nodes = rng.integers(1, 60, int(rng.integers(1, 12)))
    cms, cps = float(rng.choice([0, 0.01, 1, 30])), float(rng.choice([1e-3, 1, 100, 1000]))
    if cms > 0 and kind == REMODEL and seed % 9 == 0:
        cps = 0.0
    n, groups, sigma = int(nodes.sum()), len(nodes), float(rng.choice([1.0, 200.0]))
    table = time_table(Cluster(n, cms, cps), "dlt")
    unit, lead = table.time_per_unit, table.first_share_offset
    pool = np.empty(groups, NODE_BLOCK).view(np.recarray)
    pool.time = np.sort(rng.random(groups)) * rng.choice([0.1, 10, 100])
    pool.nodes = nodes
    end = pool.time[-1] + remodelled_time(pool, groups, sigma, cms, cps, sigma * unit[n])
    if kind == OPTIMUM:
        end, n, groups = optimal_completion(pool, groups, sigma, cms / (cms + cps), unit)
    release, rows = np.repeat(pool.time, nodes), np.empty((n, 4))
    costs = (cms, cps, 0.0, 0.0)
    wanted = chunk_times(kind, release, n, sigma, 1, end, costs, unit, lead, False, rows, 0)
    own = np.empty(n, NODE_BLOCK).view(np.recarray)
    *found, count = ends_in_groups(
        kind, pool, groups, n, sigma, end, cms, cps, unit, kind == REMODEL, 0.0, own
    )  # fmt: skip
    assert found == pytest.approx(wanted, rel=1e-12)
    assert (count > 0) == (kind == REMODEL)
    single = np.repeat(own.time[:count], own.nodes[:count])
    np.testing.assert_allclose(single, rows[: len(single), 3], rtol=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_releases_in_any_order_are_inserted_among_those_in_order(seed):
    """Whatever runs they are made of: falling, rising, many short ones, equal times."""
    rng = np.random.default_rng(seed)
    rules = SimpleNamespace(nodes=40, finish=True, partition=0, rounds=1)
    s = fresh_state(3, rules, 1.0)
    s.counters["idle"] = 0
    known = []
    while len(known) < 60:
        steps = rng.integers(-3, 4, int(rng.integers(1, 20))) * rng.choice([1, 0, -1])
        steps = np.sort(steps) if seed % 3 == 0 else steps
        new = [(float(t), k) for k, t in enumerate(rng.integers(0, 30) + np.cumsum(steps))]
        for k, (time, nodes) in enumerate(new):
            s.node_completions[k]["time"], s.node_completions[k]["nodes"] = time, nodes
        insert_completions(len(new), s)
        known += new
        begin, end = s.counters["first_running"], s.counters["end_running"]
        found = [(float(b["time"]), int(b["nodes"])) for b in s.running[begin:end]]
        assert sorted(found) == sorted(known)
        assert [time for time, _ in found] == sorted(time for time, _ in known)
