"""Loads split over nodes with different release times, and in rounds (paper I).

``tests/verification/test_linear_programs.py`` holds the twin of the true optimum to other solvers.
"""

import random
from fractions import Fraction as Q
from types import SimpleNamespace

import numpy as np
import pytest

from dlsim.realtime import Cluster, split_load
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
def test_a_split_in_rounds_is_the_twins(partition):
    source = random.Random(f"split {partition}")
    for costs, sigma, r in pools(f"rounds {partition}", scale_count(40)):
        for rounds in (1, 4, "best"):
            costs.st = Q(source.choice([0, 1, Q(1, 4)]) if rounds != "best" else 1)
            costs.sc = Q(source.choice([0, 1, Q(1, 2)]))
            same_split(costs, sigma, r, partition, rounds)


def test_hand_case_with_a_negative_share():
    # r = (0, 10), sigma = tau = 1, chi = 3: Constraint 1 holds and yet (3)-(4) = (7/4, -3/4)
    cluster = Cluster(2, 1, 3)
    for partition in ("I", "II"):
        assert split_load(1, [0, 10], cluster, partition).kind == "remodel"
    exact = split_load(1, [0, 10], cluster, "exact")
    assert exact.alpha == pytest.approx([1.0])
    assert exact.completion == pytest.approx(4.0)


def test_the_optimum_splits_where_sending_takes_nearly_all_the_time():
    """The last shares are far below a rounding of the clock, and still shares."""
    for seed in range(scale_count(100)):
        rng = np.random.default_rng(seed)
        n, cps = int(rng.integers(2, 10)), float(rng.choice([0.25, 0.1, 1.0]))
        release = np.sort(rng.random(n) * rng.choice([0.1, 1.0, 2.0, 10.0])).round(2)
        s = split_load(1.0, release, Cluster(n, 30.0, cps), "exact")
        assert (s.alpha > 0).all(), seed
        assert s.alpha.sum() == pytest.approx(1, rel=1e-13), seed
        assert s.compute_end == pytest.approx(s.completion, rel=1e-13), seed
        begins = np.maximum(s.release, np.concatenate([[-np.inf], s.send_end[:-1]]))
        assert s.send_start.tolist() == begins.tolist(), seed
        busy = s.send_start[1:] > s.release[1:]
        ratio = (s.alpha[1:] / s.alpha[:-1])[busy]
        assert ratio == pytest.approx(cps / (30 + cps), rel=1e-9), seed


def test_releases_in_any_order_are_inserted_among_those_in_order():
    """Whatever their order is: falling, rising, mixed, with equal times."""
    rules = SimpleNamespace(**dict.fromkeys(RULE_RECORD.names, 0))
    rules.nodes, rules.finish, rules.rounds = 40, True, 1
    for seed in range(scale_count(40)):
        rng = np.random.default_rng(seed)
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
            assert sorted(found) == sorted(known), seed
            assert [time for time, _ in found] == sorted(time for time, _ in known), seed
