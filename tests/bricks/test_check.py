"""GridResult.check accepts what the engine makes and names the rule that a changed one breaks."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.bricks import Environment, Policy, Reading, simulate
from dlsim.bricks.check import _data_moved, _serve_queue
from dlsim.errors import ScheduleError
from tests.helpers.bricks_environments import environments
from tests.helpers.scale import scale_count


@pytest.fixture(scope="module")
def outcome():
    """Two servers, three domains; request 0 falls back once; background on both servers."""
    env = Environment(
        servers=pd.DataFrame({"domain": [0, 1], "performance": [100.0, 200.0]}),
        clients=pd.DataFrame({"domain": [0, 2]}),
        traces=np.full((3, 4, 3), [10.0, 20.0, 40.0]),
        step=4.0,
        requests=pd.DataFrame(
            {
                "arrival": [0.0, 0.0, 1.0, 2.0],
                "client": [0, 1, 1, 0],
                "send": 40.0,
                "recv": 20.0,
                "work": [400.0, 800.0, 200.0, 600.0],
                "due": [7.5, 60.0, 60.0, 60.0],
            },
            index=["a", "b", "c", "d"],
        ),
        background=[[1.0, 9.0], [0.5, 8.0, 8.5]],
    )
    out = simulate(env, Policy("greedy", load_correction=True, max_fallbacks=1))
    assert out.requests["fallbacks"].tolist() == [1, 0, 0, 0]
    assert out.requests["server"].nunique() == 2
    out.check()
    return out


def with_table(outcome, name, table):
    """A result with another table."""
    made = copy.copy(outcome)
    vars(made)[name] = table
    return made


def broken(outcome, table, rows, column, value):
    frame = getattr(outcome, table).copy()
    change = value(frame.loc[rows, column]) if callable(value) else value
    if isinstance(change, float):
        frame[column] = frame[column].astype(float)
    frame.loc[rows, column] = change
    return with_table(outcome, table, frame)


def attempt(outcome, request, turn):
    rows = np.flatnonzero(outcome.attempts["request"] == request)
    return outcome.attempts.index[rows[turn]]


CHANGES = [
    ("completion", np.nan, "every request is complete"),
    ("fallbacks", 3, "submitted once, and once per fallback"),
    ("server", lambda s: 1 - s, "holds the server of the last submission"),
    ("arrived", lambda t: t - 0.5, "holds the arrived of the last submission"),
    ("submitted", lambda t: t + 0.5, "holds the submitted of the last submission"),
    ("missed", lambda m: not m, "missed means completion after the deadline"),
    ("cost", 150.0, "the cost is the performance of the server"),
    ("start", lambda t: t - 30, "arrived comes before start"),
    ("start", lambda t: t + 30, "start comes before end"),
    ("end", lambda t: t + 60, "end comes before completion"),
    ("completion", lambda t: t + 0.01, "a result is sent as fast as"),
    ("completion", lambda t: t - 0.01, "a result is sent as fast as"),
    ("start", lambda t: t + 0.01, "a job starts when all that came before it is done"),
]


@pytest.mark.parametrize(("column", "value", "rule"), CHANGES)
def test_check_names_the_broken_rule(outcome, column, value, rule):
    with pytest.raises(ScheduleError, match=rule):
        broken(outcome, "requests", "b", column, value).check()


def test_a_service_that_is_too_short_or_too_long(outcome):
    for change in (-0.01, 0.01):
        out = broken(outcome, "requests", "b", "end", lambda t, c=change: t + c)
        out = broken(out, "requests", "b", "completion", lambda t, c=change: t + c)
        with pytest.raises(ScheduleError, match="a job ends when its work is done"):
            out.check()


ATTEMPTS = [
    ("a", 0, "request", "z", "every submission is of a request"),
    ("a", 0, "accepted", True, "accepted by exactly one server"),
    ("b", 0, "accepted", False, "accepted by exactly one server"),
    ("a", 0, "server", 7, "a request goes to a server"),
    ("a", 0, "server", 2, "a request goes to a server"),  # they are 0 and 1
    ("a", 0, "submitted", 0.25, "submitted when it comes and when it falls back"),
    ("a", 0, "promised", 7.0, "accepts unless eq. .6. and .7. hold"),
    ("b", 0, "promised", 90.0, "accepts unless eq. .6. and .7. hold"),
    ("b", 0, "promised", 1.0, "promises no less than its backlog"),
]


@pytest.mark.parametrize(("request_", "turn", "column", "value", "rule"), ATTEMPTS)
def test_check_names_the_broken_rule_of_a_submission(outcome, request_, turn, column, value, rule):
    with pytest.raises(ScheduleError, match=rule):
        broken(outcome, "attempts", attempt(outcome, request_, turn), column, value).check()


def test_an_input_faster_or_slower_than_its_trace(outcome):
    for change in (-0.01, 0.01):
        row = attempt(outcome, "a", 0)
        out = broken(outcome, "attempts", row, "arrived", lambda t, c=change: t + c)
        again = attempt(outcome, "a", 1)
        out = broken(out, "attempts", again, "submitted", out.attempts.loc[row, "arrived"])
        out = broken(out, "requests", "a", "submitted", out.attempts.loc[row, "arrived"])
        order = out.attempts.sort_values("submitted", kind="stable", ignore_index=True)
        with pytest.raises(ScheduleError, match="an input is sent as fast as"):
            with_table(out, "attempts", order).check()


def test_lost_doubled_and_reordered_requests(outcome):
    for table in (
        outcome.requests.iloc[1:],
        outcome.requests.iloc[[0, 0, 1, 2, 3]],
        outcome.requests.iloc[::-1],
    ):
        with pytest.raises(ScheduleError, match="in the table, once, in order"):
            replace(outcome, requests=table).check()
    for rows in (outcome.attempts.iloc[1:], outcome.attempts.iloc[[0, *range(5)]]):
        with pytest.raises(ScheduleError, match="submitted once, and once per fallback"):
            with_table(outcome, "attempts", rows).check()


def test_rules_of_the_scheduler_and_the_reading(outcome):
    with pytest.raises(ScheduleError, match="falls back at most 0 times"):
        replace(outcome, policy=Policy()).check()
    with pytest.raises(ScheduleError, match="accepts unless"):
        replace(outcome, policy=replace(outcome.policy, fallback_slack=99.0)).check()
    with pytest.raises(ScheduleError, match="accepts unless"):
        replace(outcome, policy=replace(outcome.policy, max_fallbacks=3)).check()
    twice = outcome.attempts["server"].where(outcome.attempts["request"] != "a", 0)
    assert not twice.equals(outcome.attempts["server"]) or (twice == 0).sum() >= 2
    same = simulate(outcome.environment, Policy("greedy", max_fallbacks=1), Reading(load="ext"))
    assert same.attempts.query("request == 'a'")["server"].nunique() == 1
    with pytest.raises(ScheduleError, match="no server is asked twice"):
        replace(same, policy=replace(same.policy, exclude_rejecting=True)).check()


def test_packets_are_held_to_every_link(outcome):
    reading = Reading(network="packet")
    out = simulate(outcome.environment, outcome.policy, reading)
    out.check()
    later = broken(out, "requests", "b", "completion", lambda t: t + 5)
    later.check()  # packets wait; only each link by itself bounds them
    early = broken(out, "requests", "b", "completion", out.requests.loc["b", "end"] + 0.4)
    with pytest.raises(ScheduleError, match="a result is sent no faster than its traces"):
        early.check()


def test_a_job_that_overtakes():
    """Two jobs that change places in a queue keep its sums, but not its order."""
    rows = {"arrival": [0.0, 1.0, 2.0], "client": 0, "send": 0.0, "recv": 0.0, "work": 400.0}
    env = Environment(
        servers=pd.DataFrame({"domain": [0], "performance": [100.0]}),
        clients=pd.DataFrame({"domain": [0]}),
        traces=np.ones((1, 4, 1)),
        step=1.0,
        requests=pd.DataFrame(rows | {"due": 99.0}),
    )
    out = simulate(env, "Greedy")
    out.check()
    table = out.requests.copy()
    swapped = table.loc[[0, 2, 1], ["start", "end", "completion"]].to_numpy()
    table[["start", "end", "completion"]] = swapped
    with pytest.raises(ScheduleError, match="one client job at a time, in order of arrival"):
        replace(out, requests=table).check()


# ---------------------------------------------------------------- its own arithmetic


@settings(max_examples=scale_count(100, least=20), deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=3),
    st.integers(0, 40), st.integers(0, 40),
)  # fmt: skip
def test_moved_is_the_integral(rows, start, span):
    """In quarters of a second, step 2 s, summed one by one."""
    rates = np.array(rows, dtype=float)
    total = sum(
        min(row[min(int(q / 8), 2)] for row in rows) / 4 for q in range(start, start + span)
    )
    moved = _data_moved(rates, np.arange(len(rows)), 2.0, start / 4, (start + span) / 4)
    assert moved == pytest.approx(total, abs=1e-9)


@settings(max_examples=scale_count(60, least=20), deadline=None)
@given(environments())
def test_the_closed_form_of_a_queue_is_the_recursion(env):
    """One server's queue, job by job, on the scale of Mops where the speed is constant."""
    times = np.sort(env.requests["arrival"].to_numpy())
    work = env.requests["work"].to_numpy()
    starts, ends = _serve_queue(replace(env, load_traces=None), 0, times, work)
    speed = float(env.servers["performance"][0])
    jobs = env.background
    theirs = [(t, 0, float(jobs.sizes[0])) for t in jobs.times[: jobs.first[1]]]
    free, found = 0.0, []
    for time, mine, size in sorted(
        theirs + [(t, 1 + k, w) for k, (t, w) in enumerate(zip(times, work, strict=True))]
    ):
        begin = max(free, time)
        free = begin + size / speed
        if mine:
            found.append((begin * speed, free * speed))
    assert np.column_stack([starts, ends]) == pytest.approx(np.array(found), abs=1e-6)


# ---------------------------------------------------------------- estimates


def changed_estimate(out, row, change):
    tries = out.attempts.copy()
    tries.loc[row, "estimate"] = change(tries.loc[row, "estimate"])
    return with_table(out, "attempts", tries)


@pytest.mark.parametrize("load", ["clients", "ext"])
@pytest.mark.parametrize("change", [lambda t: t - 0.01, lambda t: t + 0.01], ids=["low", "high"])
def test_an_estimate_that_is_off(outcome, load, change):
    policy = replace(outcome.policy, load_correction=False)  # corrected, ties are lenient
    out = simulate(outcome.environment, policy, Reading(load=load))
    out.check()
    for row in out.attempts.index:
        with pytest.raises(ScheduleError, match=r"no estimate is (below|above) the transfers"):
            changed_estimate(out, row, change).check()


def test_an_estimate_that_forgets_a_load_a_job_or_a_way(outcome):
    """Every mistake is one that a policy could make: it is worth a whole term of eq. (2)."""
    later = outcome.environment.requests.assign(
        arrival=[0.0, 0.5, 12.0, 20.0], work=4000.0, due=500.0
    )
    env = replace(outcome.environment, requests=later, horizon=None)
    out = simulate(env, Policy("greedy", load_correction=True), Reading(probe=1.0))
    out.check()
    for forgetful in (
        replace(out, policy=replace(out.policy, load_correction=False)),
        replace(out, reading=Reading(load="ext", probe=1.0)),
        replace(out, environment=replace(env, server_load=0.5)),
        replace(out, reading=Reading(probe=100.0)),
    ):
        with pytest.raises(ScheduleError, match="no estimate is"):
            forgetful.check()


@pytest.mark.parametrize("load", ["util", "queue"])
def test_estimates_under_loads_that_tables_do_not_tell(outcome, load):
    out = simulate(outcome.environment, outcome.policy, Reading(load=load))
    out.check()
    changed_estimate(out, 0, lambda t: t + 0.5).check()
    with pytest.raises(ScheduleError, match="no estimate is below the transfers"):
        changed_estimate(out, 0, lambda t: t / 2).check()
    blind = simulate(outcome.environment, outcome.policy, Reading(load=load, predictor="mean"))
    blind.check()
    with pytest.raises(ScheduleError, match="no estimate is below the work alone"):
        changed_estimate(blind, 0, lambda t: 0.1).check()


@pytest.mark.parametrize(
    ("table", "column"),
    [("requests", name) for name in ("server", "fallbacks", "completion", "missed", "cost", "end")]
    + [("attempts", name) for name in ("request", "estimate", "promised", "accepted")],
)
def test_a_missing_column(outcome, table, column):
    lacking = with_table(outcome, table, getattr(outcome, table).drop(columns=column))
    with pytest.raises(ScheduleError, match=f"table {table} needs the column {column}"):
        lacking.check()
