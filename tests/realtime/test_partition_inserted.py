"""Loads split over nodes with different release times, and in rounds (paper I).

``tests/verification/test_linear_programs.py`` holds the twin of the true optimum to other solvers.
"""

import random
from fractions import Fraction as Q
from types import SimpleNamespace

import numpy as np
import pytest

from dlsim.realtime import Cluster, execution_time, split_load
from dlsim.realtime.core.orders import fresh_tasks
from dlsim.realtime.core.state import RULE_RECORD, RUNNING, fresh_state, insert_completions
from tests.helpers.scale import scale_count
from tests.twins import inserted
from tests.twins.realtime import Costs

# --- instances ---------------------------------------------------------------------


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


@pytest.mark.parametrize("seed", range(60))
def test_releases_in_any_order_are_inserted_among_those_in_order(seed):
    """Whatever their order is: falling, rising, mixed, with equal times."""
    rng = np.random.default_rng(seed)
    rules = SimpleNamespace(**dict.fromkeys(RULE_RECORD.names, 0))
    rules.nodes, rules.finish, rules.rounds = 40, True, 1
    s = fresh_state(fresh_tasks(*np.ones((5, 3))), rules, None, 1.0)
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
        found = [(float(b["time"]), int(b["nodes"])) for b in s.running[RUNNING, begin:end]]
        assert sorted(found) == sorted(known)
        assert [time for time, _ in found] == sorted(time for time, _ in known)
