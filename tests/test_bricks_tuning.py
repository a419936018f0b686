"""Automatic tuning of Opt: what the tuners do by hand, and that they learn."""

import numpy as np
import pandas as pd
import pytest

from dlsim.bricks import Environment, Reading, Scheduler, simulate
from dlsim.bricks.tuning import LEAST_OPT, server_errors, target_failure
from dlsim.errors import InputError
from tests.test_bricks_engine import grid


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
    algorithm = spied(target_failure(0.25, gain=0.1, start=0.7), seen, "opt")
    out = simulate(grid([100.0], rows), Scheduler(algorithm))
    assert out.requests["missed"].tolist() == [True, True, False, False]
    assert np.ravel(seen) == pytest.approx([0.7, 0.625, 0.55, 0.575], rel=1e-12)


def test_target_failure_stays_in_bounds():
    for due, bound in ((0.1, LEAST_OPT), (9.0, 1.0)):
        rows = [(2.0 * k, 0, 0, 100, 2 * k + due) for k in range(40)]
        seen = []
        algorithm = spied(target_failure(0.5, gain=0.2), seen, "opt")
        simulate(grid([100.0], rows), Scheduler(algorithm))
        assert seen[-1] == [bound]


def test_commitments_see_what_a_blind_monitor_does_not():
    # section 3.2: two jobs on the fast server, one on the slow one; and then the fourth
    # starts on the fast one at 200 (300) rather than on the slow one at 202 (402)
    rows = [(float(t), 0, 0, 20_000, 100.0) for t in range(4)]
    out = simulate(grid([200.0, 100.0], rows), Scheduler(server_errors()), Reading(load="ext"))
    assert out.requests["completion"].tolist() == [100, 200, 202, 300]
    out.check()


def test_errors_are_learnt_per_server():
    # load traces halve server 0, which is estimated at 100/9 s and takes twice that; server 1
    # takes 10 s. Step 4 prefers the slower one while m * 100/9 <= 20, m = 2 - 0.875^n: n <= 12
    rows = [(30.0 * k, 0, 0, 1000, 30 * k + 20) for k in range(40)]
    seen = []
    algorithm = spied(server_errors(spread=0.0), seen, "mean")
    out = simulate(grid([90.0, 100.0], rows, load_traces=[[1.0], [0.0]]), Scheduler(algorithm))
    assert out.requests["server"].tolist() == [0] * 13 + [1] * 27
    assert seen[-1][0] == pytest.approx([2 - 0.875**13, 1], rel=1e-9)


def test_a_fallback_frees_the_commitment():
    # the input takes 10 s instead of 1: refused on arrival, and submitted again
    rows = [(0.0, 75, 0, 1000, 12.0), (30.0, 0, 0, 100, 99.0)]
    seen = []
    algorithm = spied(server_errors(), seen, "free")
    env = grid([100.0], rows, traces=[75.0, 7.5], step=0.5)
    out = simulate(env, Scheduler(algorithm, max_fallbacks=1))
    out.check()
    assert out.requests["fallbacks"].tolist() == [1, 0]
    assert len(seen) == 3


def test_a_rejection_is_an_observation():
    # server 1 (50 Mops/s) has other users' work until 100; the request, estimated at 20 s, hears
    # on arrival at 0 that it would be done at 120, six times as late: m = 1 + 0.125 * 5,
    # d = 0.25 * 5, and the server is busy until 100. Server 0 is too slow for the deadline.
    rows = [(0.0, 0, 0, 1000, 30.0), (50.0, 0, 0, 100, 1000.0)]
    seen = []
    algorithm = spied(server_errors(spread=0.0), seen, "mean", "deviation", "free")
    env = grid([10.0, 50.0], rows, background=[[], [0.0]], background_work=5000.0)
    out = simulate(env, Scheduler(algorithm, max_fallbacks=1))
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
    algorithm = spied(server_errors(), seen, "mean", "deviation", "free")
    out = simulate(env, Scheduler(algorithm, max_fallbacks=2), Reading(probe=5.0))
    out.check()
    assert np.isinf(out.attempts["promised"]).tolist()[0]
    assert np.isinf(out.attempts["estimate"]).any()
    assert np.isfinite(seen).all()
    assert seen[-1][:2] == [[1, 1], [0, 0]]


def test_a_scheduler_is_told_what_the_rejecting_server_promised():
    env, seen, told = Environment.random(0, 30, horizon=6 * 3600.0, domains=3), [], []
    learns = spied(server_errors(), seen, "mean", "deviation", "free")

    def choose(view):
        told.append(view.promised)
        return learns(view)

    out = simulate(env, Scheduler(choose, max_fallbacks=1))
    out.check()
    assert np.isfinite(seen).all()
    before = out.attempts.groupby("request")["promised"].shift()
    assert before.notna().any()
    assert pd.Series(told).equals(before.rename(None))


@pytest.mark.parametrize(
    "algorithm", [target_failure(), server_errors(), server_errors(target=0.05)],
    ids=lambda algorithm: algorithm.__name__,
)  # fmt: skip
def test_tuners_run_on_table_1_and_are_the_same_again(algorithm):
    env = Environment.random(4, 60, horizon=4 * 3600.0)
    scheduler = Scheduler(algorithm, max_fallbacks=1)
    out = simulate(env, scheduler)
    out.check()
    again = simulate(env, scheduler)
    pd.testing.assert_frame_equal(out.requests, again.requests, check_exact=True)
    assert out.scheduler.name.startswith(algorithm.__name__)


def test_feedback_settles_near_its_target():
    # where Opt = 0.5 fails less often than one in five, and Opt = 1 more often
    env = Environment.random(2, 60, horizon=48 * 3600.0)
    rates = [simulate(env, Scheduler("deadline", opt=opt)).failure_rate for opt in (0.5, 1.0)]
    assert rates[0] < 0.2 < rates[1]
    tuned = simulate(env, Scheduler(target_failure(0.2))).failure_rate
    assert abs(tuned - 0.2) < 0.05


@pytest.mark.parametrize("make", [
    lambda: target_failure(0), lambda: target_failure(1.5), lambda: target_failure(0.1, gain=0),
    lambda: target_failure(start=2), lambda: server_errors(-1), lambda: server_errors(target=1),
    lambda: server_errors("1"),
])  # fmt: skip
def test_bad_arguments(make):
    with pytest.raises(InputError, match="must be"):
        make()
