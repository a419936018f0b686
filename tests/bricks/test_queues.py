"""Queues, first come, first served, by hand and by Erlang; policies that refuse."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

from dlsim.bricks import REFUSE, Policy, Reading, simulate
from dlsim.bricks.core.servers import serve_equal_jobs
from dlsim.errors import ScheduleError
from tests.helpers.bricks_environments import environments, grid
from tests.helpers.scale import LONG, scale_count

#: Four jobs of 10 s on 100 Mops/s.
ROWS = [(0, 0, 0, 1000, 99), (0, 0, 0, 1000, 50), (0, 0, 0, 1000, 20), (1, 0, 0, 1000, 15)]


def run(env, policy="Greedy"):
    out = simulate(env, policy)
    out.check()
    return out


def test_first_come_first_served_by_hand():
    assert run(grid([100.0], ROWS)).requests["end"].tolist() == [10, 20, 30, 40]


def test_other_users_wait_in_the_same_line():
    """A background job of 10 s at 0.5 comes before the client of 1."""
    more = {"background": [[0.5]], "background_work": 1000.0}
    rows = [(0, 0, 0, 1000, 99), (1, 0, 0, 1000, 99)]
    assert run(grid([100.0], rows, **more)).requests["end"].tolist() == [10, 30]


@pytest.mark.parametrize("service", [0.1, 3.0, 0.0, 1e-12])
@pytest.mark.parametrize("load", [0.05, 0.4, 0.9, 1.5])
def test_jobs_that_no_queue_depends_on_are_skipped_without_a_difference(load, service):
    """The recursion of Lindley, job by job, gives the same bits."""
    stream = np.random.default_rng(5)
    for jobs, begin in itertools.product((0, 1, 64, 65, 128, 700), (0.0, 1e6)):
        times = begin + np.cumsum(stream.exponential(max(service, 0.1) / load, jobs))
        first = times[0] if jobs else begin
        for free in (first, first + 20 * service, first + 200 * service, first - 1.0):
            expected = free
            for time in times.tolist():
                expected = max(expected, time) + service
            assert serve_equal_jobs(times, service, free) == expected


def test_the_wait_of_d_d_1():
    """A job every second, each of a second: none waits; half a second faster, k / 2 do."""
    out = run(grid([100.0], [(float(k), 0, 0, 100, k) for k in range(60)]))
    assert (out.requests["start"] == out.requests["arrived"]).all()
    wait = run(grid([100.0], [(k / 2, 0, 0, 100, k) for k in range(40)])).requests
    assert (wait["start"] - wait["arrived"]).tolist() == [k / 2 for k in range(40)]


@settings(max_examples=scale_count(60, LONG, least=15), deadline=None)
@given(environments())
def test_no_server_is_idle_while_a_request_waits(env):
    table = run(env).requests
    for _, rows in table.groupby("server"):
        for row in rows.itertuples():
            assert not ((rows["start"] < row.start) & (rows["end"] > row.start)).any()
            if len(env.background.times) == 0 and row.start > row.arrived:
                assert (rows["end"] == row.start).any()


# ---------------------------------------------------------------- ties, within 1e-12 of a duration


@pytest.mark.parametrize(
    ("arrival", "end"),
    [(1 - 2e-11, 21), (1 - 5e-12, 21), (1.0, 21), (1 + 5e-12, 21), (1 + 2e-11, 11)],
)
def test_of_two_jobs_at_one_instant_the_background_job_comes_first(arrival, end):
    """Both of 10 s, so that arrivals are one instant up to 1e-11 s; the client's is 1."""
    more = {"background": [[arrival]], "background_work": 1000.0}
    out = run(grid([100.0], [(1, 0, 0, 1000, 99)], **more))
    assert out.requests["end"].tolist() == pytest.approx([end], abs=1e-9)


@pytest.mark.parametrize("load", ["clients", "queue"])
@pytest.mark.parametrize(
    ("change", "seen"), [(60 - 2e-10, 1), (60 - 3e-11, 0), (60.0, 0), (60 + 3e-11, 0)]
)
def test_a_probe_does_not_see_a_job_that_arrives_at_its_instant(load, change, seen):
    """A probe of every 60 s: an instant is 6e-11 s long. The job at 61 is told Load."""
    rows = [(change, 0, 0, 1000, 99), (61, 0, 0, 100, 99)]
    out = simulate(grid([100.0], rows), "Greedy", Reading(load))
    assert out.attempts["estimate"].tolist() == [10, 1 + seen]


@pytest.mark.parametrize("load", ["clients", "queue"])
@pytest.mark.parametrize(("change", "seen"), [(-2e-10, 0), (-3e-11, 1), (0.0, 1), (3e-11, 1)])
def test_a_probe_sees_a_job_that_ends_at_its_instant(load, change, seen):
    rows = [(50 + change, 0, 0, 1000, 99), (61, 0, 0, 100, 99)]
    out = simulate(grid([100.0], rows), "Greedy", Reading(load))
    assert out.attempts["estimate"].tolist() == [10, 1 + seen]


@pytest.mark.parametrize(("change", "seen"), [(-2e-10, 0), (-3e-11, 1), (0.0, 1)])
def test_a_request_at_the_instant_of_a_probe_knows_it(change, seen):
    rows = [(50, 0, 0, 10_000, 999), (60 + change, 0, 0, 100, 99)]
    out = simulate(grid([100.0], rows), "Greedy")
    assert out.attempts["estimate"].tolist() == [100, 1 + seen]


@pytest.mark.parametrize(
    ("factor", "server"), [(1 - 3e-12, 1), (1 - 3e-13, 0), (1.0, 0), (1 + 3e-13, 0), (1 + 3e-12, 0)]
)
def test_of_equally_near_servers_deadline_takes_the_first(factor, server):
    """Estimates of 10 s and of nearly 10 s below a target of 20 s: 1e-11 s is a tie."""
    env = grid([100.0 / factor, 100.0], [(0, 0, 0, 1000, 20)])
    assert simulate(env, Policy("deadline")).requests["server"].tolist() == [server]


# ---------------------------------------------------------------- refusing


def test_a_scheduler_refuses():
    out = run(grid([100.0], ROWS), Policy(lambda view: REFUSE if view.row == 2 else 0))
    assert out.requests["server"].tolist() == [0, 0, -1, 0]
    assert out.requests["completion"].tolist() == [10, 20, math.inf, 30]
    assert out.requests.loc[2, ["submitted", "arrived", "start", "end", "cost"]].isna().all()
    assert out.requests["missed"].tolist() == [False, False, True, True]
    assert (out.failure_rate, out.mean_cost) == (0.5, 100.0)
    assert out.attempts["request"].tolist() == [0, 1, 3]


def test_a_scheduler_refuses_what_has_fallen_back():
    """The second request would end at 20, and is due at 15: it is sent back, and refused."""
    rows = [(0, 0, 0, 1000, 99), (0, 0, 0, 1000, 15)]
    policy = Policy(lambda view: REFUSE if view.fallbacks else 0, max_fallbacks=1)
    out = run(grid([100.0], rows), policy)
    assert out.requests["completion"].tolist() == [10, math.inf]
    assert out.requests["fallbacks"].tolist() == [0, 1]
    assert out.attempts["accepted"].tolist() == [True, False]


def test_the_check_knows_which_servers_may_refuse():
    refused = run(grid([100.0], ROWS[:2]), Policy(lambda view: REFUSE if view.row else 0))
    vars(refused)["policy"] = Policy()
    with pytest.raises(ScheduleError, match="every request is complete"):
        refused.check()
