"""Servers of several slots, queues by deadline, failures; schedulers that wait, refuse, copy."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.bricks import REFUSE, Batch, Environment, Reading, Scheduler, Wait, run_many, simulate
from dlsim.bricks.replayed import Replay, replay
from dlsim.bricks.workload import arrivals, failures
from dlsim.errors import InputError, ScheduleError
from tests.bricks_environments import environments, readings, schedulers
from tests.scale import LONG, SCALE
from tests.test_bricks_engine import grid

#: Four jobs of 10 s on 100 Mops/s, the later the more urgent.
URGENT = [(0, 0, 0, 1000, 99), (0, 0, 0, 1000, 50), (0, 0, 0, 1000, 20), (1, 0, 0, 1000, 15)]


def queue(rows, performance=(100.0,), slots=1, order="fcfs", down=(), **more):
    """Servers of one domain; `down` are pairs of times of server 0."""
    env = grid(list(performance), rows, **more)
    table = env.servers.assign(slots=slots, queue=order)
    down = pd.DataFrame([(0, *pair) for pair in down], columns=["server", "start", "end"])
    return replace(env, servers=table, failures=down)


def run(env, scheduler=None, reading=None):
    out = simulate(env, scheduler, reading)
    out.check()
    return out


def times(out, *names):
    table = out.requests[list(names)].to_numpy(dtype=float).tolist()
    return [[None if math.isnan(x) else x for x in row] for row in table]


@pytest.mark.parametrize(("slots", "order", "ends"), [
    (1, "fcfs", [10, 20, 30, 40]), (1, "edf", [10, 40, 30, 20]), (2, "fcfs", [10, 10, 20, 20]),
    (3, "edf", [10, 10, 10, 20]), (9, "fcfs", [10, 10, 10, 11]),
])  # fmt: skip
def test_slots_and_deadlines_by_hand(slots, order, ends):
    assert run(queue(URGENT, slots=slots, order=order)).requests["end"].tolist() == ends


def test_other_users_wait_behind_every_deadline():
    """A background job of 10 s at 0.5 waits for the client of 1; first come, it is first."""
    more = {"background": [[0.5]], "background_work": 1000.0}
    rows = [(0, 0, 0, 1000, 99), (1, 0, 0, 1000, 99)]
    assert run(queue(rows, order="edf", **more)).requests["end"].tolist() == [10, 20]
    assert run(queue(rows, **more, down=[(500, 501)])).requests["end"].tolist() == [10, 30]


@pytest.mark.parametrize(("how", "found"), [
    # down from 15 to 17: the second has run for 5 s, two wait
    ("restart", [[0, 10, 10], [17, 27, 27], [27, 37, 37], [37, 47, 47]]),
    ("lose", [[0, 10, 10], [10, None, math.inf], [None, None, math.inf], [None, None, math.inf]]),
    # the next probe is at 20
    ("resubmit", [[0, 10, 10], [20, 30, 30], [30, 40, 40], [40, 50, 50]]),
])  # fmt: skip
def test_failures_by_hand(how, found):
    env = queue(URGENT, down=[(15, 17)], on_failure=how)
    out = run(env, reading=Reading(probe=5.0))
    assert times(out, "start", "end", "completion") == found
    assert out.fate.tolist() == ["returned"] + ["lost" if how == "lose" else "returned"] * 3


def test_the_end_of_a_job_comes_before_a_failure_of_the_same_instant():
    out = run(queue(URGENT[:2], down=[(10, 12)], on_failure="lose"))
    assert out.requests["completion"].tolist() == [10, math.inf]


def test_a_server_that_is_down_is_avoided_from_the_next_probe_on():
    rows = [(t, 0, 0, 100, t + 50) for t in (0.0, 3.0, 7.0, 13.0)]
    out = run(queue(rows, (100.0, 50.0), down=[(2, 12)]), reading=Reading("ext", probe=5.0))
    assert out.requests["server"].tolist() == [0, 0, 1, 1]
    assert out.requests["end"].tolist() == [1, 13, 9, 15]  # not yet seen to be up at 13


def test_load_is_per_slot():
    """Three jobs on two slots are a Load of 1.5; Load Correction adds them once more."""
    rows = [*[(0, 0, 0, 1000, 99)] * 3, (6, 0, 0, 100, 99)]
    out = run(queue(rows, slots=2), Scheduler(load_correction=True), Reading(probe=5.0))
    assert out.attempts["estimate"].tolist()[-1] == 1 * (1 + 1.5 + 1.5)
    queued = run(queue(rows, slots=2), reading=Reading("util", probe=5.0))
    assert queued.attempts["estimate"].tolist()[-1] == 2


@pytest.mark.parametrize(("slots", "rho"), [(1, 0.6), (2, 0.8), (5, 0.8)])
def test_the_wait_of_m_m_c_is_erlangs(slots, rho):
    """Erlang C: P(wait) and the mean wait P / (c mu - lambda), as Poisson arrivals see them."""
    rate, service, horizon, means = slots * rho / 10.0, 10.0, 40_000.0, []
    for seed in range(max(10, round(12 * SCALE))):
        stream = np.random.default_rng([seed, slots])
        come = arrivals(rate, horizon, stream)
        work = 100 * stream.exponential(service, len(come))
        rows = [(t, 0, 0, w, t) for t, w in zip(come, work, strict=True)]
        table = simulate(queue(rows, slots=slots, down=[(1e7, 2e7)])).requests
        means.append((table["start"] - table["arrived"]).mean())
    a = slots * rho
    last = a**slots / math.factorial(slots) / (1 - rho)
    waits = last / (sum(a**k / math.factorial(k) for k in range(slots)) + last)
    theory = waits * service / (slots * (1 - rho))
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    assert abs(np.mean(means) - theory) < 4.5 * error
    assert error < 0.2 * theory


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_the_wait_of_d_d_c(slots):
    """A job every second, each of `slots` seconds: nobody waits; half a second faster, k / 2 do."""
    rows = [(float(k), 0, 0, 100 * slots, k) for k in range(60)]
    out = run(queue(rows, slots=slots))
    assert (out.requests["start"] == out.requests["arrived"]).all()
    rows = [(k / 2, 0, 0, 100 * slots, k) for k in range(40)]
    wait = run(queue(rows, slots=slots)).requests
    lag = [k // slots * slots - (k // slots * slots) / 2 - (k % slots) / 2 for k in range(40)]
    starts = (wait["start"] - wait["arrived"]).to_numpy()
    assert starts[::slots] == pytest.approx(lag[::slots])


@settings(max_examples=max(15, round(60 * LONG)), deadline=None)
@given(environments(), schedulers(), readings())
def test_followed_job_by_job_or_known_in_advance_is_the_same(env, scheduler, reading):
    """A failure that comes when all is done makes no difference but in how queues are followed."""
    if (reading.load, reading.predictor) == ("util", "perfect"):
        reading = replace(reading, predictor="last")
    late = pd.DataFrame({"server": [0], "start": [1e9], "end": [2e9]})
    one, two = (simulate(e, scheduler, reading) for e in (env, replace(env, failures=late)))
    names = ["server", "fallbacks", "missed"]
    pd.testing.assert_frame_equal(one.requests[names], two.requests[names])
    pd.testing.assert_frame_equal(one.requests, two.requests, rtol=1e-12, atol=1e-9)
    two.check()


@settings(max_examples=max(15, round(60 * LONG)), deadline=None)
@given(environments(), st.integers(1, 4), st.sampled_from(["fcfs", "edf"]))
def test_no_slot_is_idle_while_somebody_waits(env, slots, order):
    env = replace(env, servers=env.servers.assign(slots=slots, queue=order))
    table = run(env).requests
    for _, rows in table.groupby("server"):
        for row in rows.itertuples():
            busy = (rows["start"] < row.start) & (rows["end"] > row.start)
            assert busy.sum() < slots
            if len(env.background.times) == 0 and row.start > row.arrived:
                assert (rows["end"] == row.start).any()


# ---------------------------------------------------------------- waiting, refusing, copying


def test_a_scheduler_waits_for_a_probe_or_a_time_and_refuses():
    def careful(view):
        if view.row == 3:
            return REFUSE
        if view.asked == 0:
            return Wait()
        return Wait(view.now + 2.5) if view.asked == 1 and view.row == 1 else 0

    out = run(queue(URGENT), Scheduler(careful), Reading(probe=5.0))
    assert out.fate.tolist() == ["returned"] * 3 + ["refused"]
    assert times(out, "submitted", "end") == [[5, 15], [7.5, 35], [5, 25], [None, None]]
    assert (out.failure_rate, out.mean_cost) == (0.5, 100.0)
    assert out.requests["missed"].tolist() == [False, False, True, True]


@pytest.mark.parametrize(("copies", "ends", "fates", "second"), [
    # both servers take 10 and 20 s; the second copy of the first request runs out, or ends at 10
    ("run_out", [10, 20], ["returned"] * 4, [20, 40]),
    ("cancel", [10, 20], ["returned"] * 2 + ["cancelled"] * 2, [10, 20]),
])  # fmt: skip
def test_the_first_result_counts(copies, ends, fates, second):
    out = run(queue(URGENT[:2], (100.0, 50.0)), Scheduler(lambda view: [0, 1], copies=copies))
    assert out.requests["completion"].tolist() == ends
    assert out.copies["fate"].tolist() == fates
    assert out.copies["end"].tolist()[2:] == second
    assert out.cost == 150.0  # both servers ran something of each


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_copy_that_leaves_when_it_would_begin_has_not_begun(order):
    """Both results are back at 10, of which the first frees the third server for the second."""
    out = run(
        queue(URGENT[:2], (100.0, 100.0, 20.0)),
        Scheduler(lambda view: [order[view.row], 2], copies="cancel"),
    )
    assert out.requests["completion"].tolist() == [10, 10]
    assert out.requests["cost"].tolist() == [100 + 20, 100]
    with pytest.raises(ScheduleError, match="the cost is the performance of the servers"):
        replace(out, requests=out.requests.assign(cost=120.0)).check()


def test_a_copy_that_ran_before_a_failure_has_begun():
    """It began at 0, and again at 10, when the result of the other copy was back."""
    env = queue(URGENT[:1], (20.0, 100.0), down=[(5, 10)])
    out = run(env, Scheduler(lambda view: [0, 1], copies="cancel"))
    assert (out.copies["fate"].tolist(), out.cost) == (["cancelled", "returned"], 120)


def test_copies_that_were_not_accepted_are_no_load():
    """The second server turns the first request away at 10 s, when its result has been back."""
    slow = np.array([[100.0] * 4, [10.0] * 4])[:, :, None]
    env = grid([100.0, 100.0], [(0, 100, 0, 100, 5), (20, 100, 0, 100, 99)])
    env = replace(env, servers=env.servers.assign(domain=[0, 1]), traces=slow)
    out = run(env, Scheduler(lambda view: [0, 1], max_fallbacks=1), Reading(probe=5.0))
    assert out.copies["fate"].tolist() == ["returned", "returned", "cancelled", "returned"]
    assert out.attempts["estimate"].tolist()[-1] == 10 + 1


def test_a_copy_saves_what_a_failure_took():
    env = queue(URGENT[:1], (100.0, 50.0), down=[(5, 50)], on_failure="lose")
    assert run(env).fate.tolist() == ["lost"]
    out = run(env, Scheduler(lambda view: [0, 1]))
    assert out.requests[["server", "completion"]].values.tolist() == [[1, 20]]
    assert out.copies["fate"].tolist() == ["lost", "returned"]


def test_a_batch_is_one_call_for_all_that_came():
    sizes = []

    def fastest(view):
        sizes.append((view.now, view.row.tolist(), view.estimates.shape))
        return np.where(view.row == 1, -1, view.estimates.argmin(axis=1))

    rows = [(t, 0, 0, 100, 99) for t in (0.0, 1.0, 4.0, 5.0, 7.0)]
    out = run(queue(rows, (100.0, 50.0)), Scheduler(Batch(fastest, every=5.0)))
    assert sizes == [(0, [0], (1, 2)), (5, [1, 2, 3], (3, 2)), (10, [4], (1, 2))]
    assert out.attempts["submitted"].tolist() == [0, 5, 5, 10]
    assert out.fate.tolist() == ["returned", "refused", "returned", "returned", "returned"]


@pytest.mark.parametrize(("every", "then"), [(5.0, 5), (0.0, 60)])
def test_a_batch_leaves_a_request_to_the_next_round(every, then):
    """Or, where it has none, to the next probe."""
    seen = []

    def choose(view):
        seen.append(view.now)
        return [-2 if view.now == 0 else 0]

    out = run(queue([(0, 0, 0, 100, 99)]), Scheduler(Batch(choose, every)))
    assert seen == [0, then]
    assert out.requests["completion"].tolist() == [then + 1]


@pytest.mark.parametrize(
    "answer", [0, [0], [0, 0, 1], [0, 0, -3], [0, 0, 0.5], [0, 0, "one"], [0, 0, 0, 0], None]
)
def test_an_answer_of_a_batch_that_cannot_be_used(answer):
    rule = r"must return an array of shape \(3,\), each entry the row of a server, 0\.\.0"
    with pytest.raises(InputError, match=rule):
        simulate(queue(URGENT), Scheduler(Batch(lambda view: answer)))


def test_a_batch_of_one_is_the_scheduler_itself():
    env = Environment.random(2, 5, horizon=3600.0, domains=3)
    greedy = Batch(lambda view: view.estimates.argmin(axis=1))
    single = Scheduler(lambda view: int(view.estimates.argmin()))
    one, two = run_many(env, [single, Scheduler(greedy)])
    pd.testing.assert_frame_equal(one.requests, two.requests)


@pytest.mark.parametrize(("answer", "said"), [
    ([], "a list of different rows"), ([0, 0], "a list of different rows"), ([0, 7], "rows"),
    (Wait(-1), r"Wait\(until\) must be a finite time after now, which is 0.0, .*, got -1"),
    (Wait(math.inf), "finite time after now"),
    (None, "REFUSE"), ("REFUSE", "REFUSE"),
])  # fmt: skip
def test_an_answer_that_cannot_be_used(answer, said):
    with pytest.raises(InputError, match=said):
        simulate(queue(URGENT), Scheduler(lambda view: answer))


def test_who_waits_for_ever_is_stopped(monkeypatch):
    monkeypatch.setattr("dlsim.bricks.engine.MOST_WAITS", 10)
    with pytest.raises(InputError, match="put off 10 times; choose a server, or REFUSE"):
        simulate(queue(URGENT), Scheduler(lambda view: Wait()))
    with pytest.raises(InputError, match="request 2 has been put off 10 times; refuse it"):
        simulate(queue(URGENT), Scheduler(Batch(lambda view: np.where(view.row == 2, -2, 0))))


@pytest.mark.parametrize(("parts", "said"), [
    ({"servers": {"slots": 0}}, "slots of row 0"), ({"servers": {"slots": 1.5}}, "slots of row 0"),
    ({"servers": {"queue": "lifo"}}, "queue of row 0"), ({"on_failure": "hope"}, "on_failure"),
    ({"failures": [(1, 0, 5)]}, "server of row 0 must be .* below 1, the number of servers"),
    ({"failures": [(0, 5, 5)]}, "after it starts"),
    ({"failures": [(0, 1, 5), (0, 5, 9)]}, "sort and merge"),
])  # fmt: skip
def test_a_server_that_cannot_be(parts, said):
    env, more = grid([100.0], URGENT), dict(parts)
    if "servers" in parts:
        more["servers"] = env.servers.assign(**parts["servers"])
    if "failures" in parts:
        more["failures"] = pd.DataFrame(parts["failures"], columns=["server", "start", "end"])
    with pytest.raises(InputError, match=said):
        replace(env, **more)


def test_a_law_of_failures_is_drawn_server_by_server():
    table = failures(40, 1e6, 900.0, 100.0, seed=3)
    spans = table["end"] - table["start"]
    assert spans.mean() == pytest.approx(100, rel=0.05)
    assert spans.sum() / 40e6 == pytest.approx(0.1, rel=0.05)  # down / (up + down)
    few = failures(2, 1e6, 900.0, 100.0, seed=3)
    pd.testing.assert_frame_equal(few, table[table["server"] < 2])
    weibull = failures(40, 1e6, 900.0, 100.0, seed=3, law="weibull", shape=0.7)
    assert (weibull["end"] - weibull["start"]).mean() == pytest.approx(100, rel=0.1)


# ---------------------------------------------------------------- the check


@pytest.mark.parametrize(("column", "change", "rule"), [
    ("start", 1.0, "a job starts when a slot is free"), ("end", 0.5, "a job ends when its work"),
])  # fmt: skip
def test_the_check_replays_what_servers_did(column, change, rule):
    out = run(queue(URGENT, slots=2, order="edf", down=[(12, 14)]))
    table = out.requests.astype(float)
    row = table["start"].idxmax()
    table.loc[row, column] += change
    if column == "end":
        table.loc[row, "completion"] += change
    with pytest.raises(ScheduleError, match=rule):
        replace(out, requests=table.astype({"server": int})).check()


@pytest.mark.parametrize("how", ["restart", "lose", "resubmit"])
@pytest.mark.parametrize("slots", [1, 2])
def test_what_the_replay_leaves_out_makes_no_difference(monkeypatch, slots, how):
    """Of 300 jobs of others of half a second, most meet nobody; the plain replay does them all."""
    found, joined, usual = [], [], Replay.join

    def spy(*given):
        found.append(replay(*given))
        return found[-1]

    monkeypatch.setattr("dlsim.bricks.check.replay", spy)
    monkeypatch.setattr(Replay, "join", lambda *given: joined.append(1) or usual(*given))
    come = np.sort(np.random.default_rng(1).random(300) * 600).round(2)
    rows = [(t, 0, 0, 700, 2 * t) for t in (0.5, 3.0, 100.0, 101.0, 104.0, 250.0, 400.0)]
    more = {"background": [come], "background_work": 50.0, "on_failure": how}
    env = queue(rows, slots=slots, order="edf", down=[(105, 110), (251, 270), (300, 301)], **more)
    out = run(env)
    few = len(joined)
    monkeypatch.setattr(Replay, "has_room", lambda self: False)
    out.check()
    assert len(joined) > 4 * few
    np.testing.assert_array_equal(*found)


def test_an_accepted_job_was_promised_a_time():
    out = run(queue(URGENT, slots=2))
    with pytest.raises(ScheduleError):
        replace(out, attempts=out.attempts.assign(promised=np.nan)).check()


@pytest.mark.parametrize("changed", [
    {"on_failure": "restart"}, {"failures": None}, {"slots": 1}, {"queue": "fcfs"},
])  # fmt: skip
def test_the_check_knows_another_server(changed):
    rows = [*URGENT, (1.5, 0, 0, 1000, 12)]
    env = queue(rows, slots=2, order="edf", down=[(5, 7)], on_failure="resubmit")
    out = run(env, reading=Reading(probe=2.0))
    env = out.environment
    if {"slots", "queue"} & set(changed):
        changed = {"servers": env.servers.assign(**changed)}
    with pytest.raises(ScheduleError):
        replace(out, environment=replace(env, **changed)).check()


def test_the_check_knows_who_may_refuse_and_copy():
    env = queue(URGENT[:2], (100.0, 50.0))
    refused = run(env, Scheduler(lambda view: REFUSE if view.row else 0))
    with pytest.raises(ScheduleError, match="every request is complete"):
        replace(refused, scheduler=Scheduler()).check()
    out = run(env, Scheduler(lambda view: [0, 1], copies="cancel"))
    with pytest.raises(ScheduleError):
        replace(out, scheduler=replace(out.scheduler, copies="run_out")).check()
    late = out.copies.assign(end=out.copies["end"] + (out.copies["fate"] == "cancelled"))
    with pytest.raises(ScheduleError, match="leaves its server when the first result is back"):
        replace(out, copies=late).check()
