"""The code of notebook 61-bricks-beyond: by hand, by brute force, against the engine."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.bricks import Environment, Policy, Reading, simulate
from tests.helpers.bricks_environments import grid
from tests.verification.notebook_code import defined_in

beyond = defined_in("61-bricks-beyond")


def send_to(plan):
    """Make the policy that sends every request where a plan says."""
    return Policy(lambda view: int(plan[view.row]))


# ----------------------------------------------------------------------- the bound


def test_windows_by_hand():
    # 10 Mbit/s until 10, then 40: 200 Mbit sent from 0 arrive at 12.5; 80 come back by 30 if sent
    # by 28; 1000 Mops take 10 s or 5 s
    env = grid([100.0, 200.0], [(0.0, 200.0, 80.0, 1000.0, 30.0)], traces=[10.0, 40.0])
    arrives, latest, span = beyond.find_windows(env)
    assert arrives[0] == pytest.approx([12.5, 12.5], rel=1e-6)
    assert latest[0] == pytest.approx([28.0, 28.0], rel=1e-6)
    assert span[0].tolist() == [10.0, 5.0]


def test_bound_by_hand():
    # four jobs of 100 s on the cheap server or 50 s on the dear one, all from 0 to 100: one fits on
    # the cheap server and two on the dear one, so that one fails whatever it costs
    env = grid([10.0, 20.0], [(0.0, 0, 0, 1000.0, 100.0)] * 4)
    lines, _ = beyond.bound_failures(env, (0.001, 0.01, 0.1), step=50.0)
    assert beyond.least_failure(env, lines, 20.0) == 0.25
    # at the cost of the cheap server alone only one can be in time
    assert beyond.least_failure(env, lines, 10.0) == 0.75
    assert beyond.least_failure(env, lines, 15.0) == 0.25
    # a job for which both are too slow fails at any cost
    late = grid([10.0, 20.0], [(0.0, 0, 0, 1000.0, 100.0), (0.0, 0, 0, 1000.0, 49.0)])
    assert beyond.least_failure(late, beyond.bound_failures(late)[0], 1e9) == 0.5


@pytest.mark.parametrize("seed", range(4))
def test_no_plan_at_all_is_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for now in np.sort(rng.uniform(0, 20, 5)).round(1):
        rows.append((now, *rng.integers(0, 200, 2), 1000.0, now + rng.integers(15, 40)))
    env = grid([50.0, 100.0, 150.0], rows)
    (lines, shares), found = beyond.bound_failures(env, (0.001, 0.004, 0.02), step=2.0), []
    for plan in itertools.product(range(3), repeat=5):
        o = simulate(env, send_to(plan))
        assert beyond.least_failure(env, lines, o.mean_cost) <= o.failure_rate
        found.append(o.failure_rate)
    seer = simulate(env, send_to(beyond.plan_ahead(env, shares)))
    assert min(found) <= seer.failure_rate <= min(found) + 0.2  # it may miss one request


def test_any_prices_prove_something_true():
    rng = np.random.default_rng(3)
    for _ in range(50):
        row, limit = np.array([0, 0, 1, 1]), np.array([1.0, 1.0, 3.0, 2.0])
        matrix = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [2, 0, 3, 0], [0, 1, 0, 2]], float)
        gain = rng.normal(size=4)
        best = max(
            gain @ x for x in itertools.product((0, 0.5, 1), repeat=4)
            if (matrix @ x <= limit + 1e-12).all()
        )  # fmt: skip
        assert beyond.prove_bound(matrix, limit, gain, row, rng.exponential(size=4)) >= best - 1e-12


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 9), st.floats(0.1, 9)), min_size=1, max_size=6),
       st.floats(0.01, 99))  # fmt: skip
def test_filled_has_one_level(pairs, more):
    jobs, speed = np.array(pairs).T
    shares = beyond.level(jobs, speed, more)
    level = (jobs + more * shares) / speed
    assert shares.sum() == pytest.approx(1)
    assert (shares >= -1e-9).all()
    used = shares > 1e-9
    assert level[used] == pytest.approx(level[used].max(), rel=1e-6)
    assert (level[~used] >= level[used].max() * (1 - 1e-6)).all()


def test_random_feasible_and_best_of_by_hand():
    # a job of 100 Mops due in 1.5 s: only servers of 100 and 200 are in time; of all three the
    # best is that of 200
    rows = [(10.0 * k, 0, 0, 100.0, 10 * k + 1.5) for k in range(60)]
    env = grid([50.0, 100.0, 200.0], rows)
    some = simulate(env, Policy(beyond.random_feasible)).requests["server"]
    assert set(some) == {1, 2}
    assert 15 < (some == 1).sum() < 45
    assert set(simulate(env, Policy(beyond.best_of(3))).requests["server"]) == {2}
    # of two drawn the slowest is never the better one; the middle one is in a third of the pairs
    pair = simulate(env, Policy(beyond.best_of(2))).requests["server"]
    assert set(pair) == {1, 2}
    assert 8 < (pair == 1).sum() < 32


def test_errors_that_knows_nothing_is_deadline():
    env = Environment.random(0, 60, horizon=6 * 3600.0)
    for seed_fallbacks in (0, 3):
        own = simulate(env, Policy(beyond.server_errors(knows=()), max_fallbacks=seed_fallbacks))
        plain = simulate(env, Policy("deadline", opt=1.0, max_fallbacks=seed_fallbacks))
        pd.testing.assert_frame_equal(own.requests, plain.requests)


def test_a_herd_at_one_server():
    # one server: all choose alike. A job of 20 s comes every 30 s; with Load Correction a probe
    # finds what is left of one. Then the first of a herd comes Exp(1/30) after the probe, and a
    # Poisson number until the next one, 300 s after it; a job that needs more than 50 s is late.
    rows = [(30.0 * k, 0, 0, 2000.0, 30 * k + 50.0) for k in range(400)]
    fresh = simulate(grid([100.0], rows), Policy(load_correction=True))
    found = [beyond.expected_failure(fresh, 300.0, 0.0, np.random.default_rng(k)) for k in range(8)]
    rates, alike = zip(*found, strict=True)
    assert set(alike) == {1.0}
    rng, late, members = np.random.default_rng(1), 0, 0
    for _ in range(4000):
        begin, done = rng.exponential(30.0) % 300, max(0.0, 20 - 30 * rng.random())
        followers = rng.random(rng.poisson((300 - begin) / 30))
        for arrival in [begin, *np.sort(begin + (300 - begin) * followers)]:
            done = max(done, arrival) + 20
            late, members = late + (done - arrival > 50), members + 1
    assert np.mean(rates) == pytest.approx(late / members, rel=0.05)


def spied(algorithm, seen, *names):
    """The same algorithm; its memory is noted after every decision."""

    def choose(view):
        server = algorithm(view)
        seen.append([np.copy(view.memory[name]).tolist() for name in names])
        return server

    return choose


def test_target_failure_moves_by_what_comes_back():
    # one server: jobs of 1 s; the deadlines of the first two are missed, of the third not
    rows = [(0.0, 0, 0, 100, 0.5), (2.0, 0, 0, 100, 2.5), (4.0, 0, 0, 100, 9), (6.0, 0, 0, 1, 9)]
    seen = []
    algorithm = spied(beyond.target_failure(0.25, gain=0.1, start=0.7), seen, "opt")
    out = simulate(grid([100.0], rows), Policy(algorithm))
    assert out.requests["missed"].tolist() == [True, True, False, False]
    assert np.ravel(seen) == pytest.approx([0.7, 0.625, 0.55, 0.575], rel=1e-12)


def test_target_failure_stays_in_bounds():
    for due, bound in ((0.1, 0.05), (9.0, 1.0)):
        rows = [(2.0 * k, 0, 0, 100, 2 * k + due) for k in range(40)]
        seen = []
        algorithm = spied(beyond.target_failure(0.5, gain=0.2), seen, "opt")
        simulate(grid([100.0], rows), Policy(algorithm))
        assert seen[-1] == [bound]


def test_commitments_see_what_a_blind_monitor_does_not():
    # section 3.2: two jobs on the fast server, one on the slow one; and then the fourth
    # starts on the fast one at 200 (300) rather than on the slow one at 202 (402)
    rows = [(float(t), 0, 0, 20_000, 100.0) for t in range(4)]
    out = simulate(grid([200.0, 100.0], rows), Policy(beyond.server_errors()), Reading(load="ext"))
    assert out.requests["completion"].tolist() == [100, 200, 202, 300]
    out.check()


def test_errors_are_learnt_per_server():
    # load traces halve server 0, which is estimated at 100/9 s and takes twice that; server 1
    # takes 10 s. Step 4 prefers the slower one while m * 100/9 <= 20, m = 2 - 0.875^n: n <= 12
    rows = [(30.0 * k, 0, 0, 1000, 30 * k + 20) for k in range(40)]
    seen = []
    algorithm = spied(beyond.server_errors(spread=0.0), seen, "mean")
    out = simulate(grid([90.0, 100.0], rows, load_traces=[[1.0], [0.0]]), Policy(algorithm))
    assert out.requests["server"].tolist() == [0] * 13 + [1] * 27
    assert seen[-1][0] == pytest.approx([2 - 0.875**13, 1], rel=1e-9)


def test_a_rejection_is_an_observation():
    # server 1 (50 Mops/s) has other users' work until 100; the request, estimated at 20 s, hears
    # on arrival at 0 that it would be done at 120, six times as late: m = 1 + 0.125 * 5,
    # d = 0.25 * 5, and the server is busy until 100. Server 0 is too slow for the deadline.
    rows = [(0.0, 0, 0, 1000, 30.0), (50.0, 0, 0, 100, 1000.0)]
    seen = []
    algorithm = spied(beyond.server_errors(spread=0.0), seen, "mean", "deviation", "free")
    env = grid([10.0, 50.0], rows, background=[[], [0.0]], background_work=5000.0)
    out = simulate(env, Policy(algorithm, max_fallbacks=1))
    out.check()
    assert out.attempts["promised"].tolist()[:2] == [120.0, 100.0]
    assert out.attempts["server"].tolist()[:2] == [1, 0]
    mean, deviation, free = seen[1]
    assert mean == pytest.approx([1, 1.625], rel=1e-12)
    assert deviation == pytest.approx([0, 1.25], rel=1e-12)
    assert free == pytest.approx([0, 100], rel=1e-12)


def test_a_link_at_rest_teaches_nothing():
    """No result can come back over it: server and estimate say that it takes for ever.

    The input that is sent at 9.5 arrives at 10, when a probe sees no throughput; the one that is
    submitted at 12 is sent all the same, and its result is back after 20.
    """
    rows = [(9.5, 37.5, 10, 100, 99), (12.0, 0, 10, 100, 99), (30.0, 0, 10, 100, 99)]
    seen, env = [], grid([100.0, 90.0], rows, traces=[75.0, 0.0, 75.0])
    algorithm = spied(beyond.server_errors(), seen, "mean", "deviation", "free")
    out = simulate(env, Policy(algorithm, max_fallbacks=2), Reading(probe=5.0))
    out.check()
    assert np.isinf(out.attempts["promised"]).tolist()[0]
    assert np.isinf(out.attempts["estimate"]).any()
    assert np.isfinite(seen).all()
    assert seen[-1][:2] == [[1, 1], [0, 0]]


# ----------------------------------------------------------------------- fronts and bills


def test_the_front_is_the_lower_hull():
    rows = pd.DataFrame({"cost": [1.0, 2.0, 3.0, 2.0], "failure": [0.4, 0.3, 0.0, 0.9]})
    assert beyond.read_front(rows, 2.0) == (pytest.approx(0.2), True)
    assert beyond.read_front(rows, 0.5) == (pytest.approx(0.4), False)
    assert beyond.read_front(rows, 9.0) == (pytest.approx(0.0), False)


def test_bills_of_a_hand_case():
    rows = [(0.0, 0, 0, 12_000.0, 100.0), (1.0, 0, 0, 36_000.0, 100.0)]
    o = simulate(grid([1200.0], rows), "Greedy")
    # the second arrives while the first (0 to 10 s) is served: one waits there
    assert beyond.count_waiting(o.requests).tolist() == [0, 1]
    bill = beyond.bill_all(o)
    assert bill["speed of the server"] == pytest.approx(4)
    assert bill["per second, as speed"] == pytest.approx(1)
    assert bill["per second, premium"] == pytest.approx(2)
    assert bill["per second, spot"] == pytest.approx((12 + 2 * 36) / 48)


def test_a_buyer_takes_the_cheapest_server_in_time():
    # 20, 10 and 5 seconds of work: with a premium for speed the slowest in time is cheapest
    dues = {0.0: 30.0, 1000.0: 1015.0, 2000.0: 2001.0}
    env = grid([100.0, 200.0, 400.0], [(at, 0, 0, 2000.0, due) for at, due in dues.items()])
    o = simulate(env, Policy(beyond.cheapest("per second, premium")))
    assert o.requests["server"].tolist() == [0, 1, 2]
