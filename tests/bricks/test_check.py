"""GridResult.check accepts what the engine makes and names the rule that a changed one breaks."""

import copy
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlsim.bricks import Environment, Policy, Reading, simulate
from dlsim.errors import ScheduleError
from tests.helpers.bricks_environments import grid


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


def broken(outcome, table, rows, **changes):
    """A result with other entries in some columns: values, or functions of the old ones."""
    frame = getattr(outcome, table).copy()
    for column, value in changes.items():
        change = value(frame.loc[rows, column]) if callable(value) else value
        if isinstance(change, float):
            frame[column] = frame[column].astype(float)
        frame.loc[rows, column] = change
    return with_table(outcome, table, frame)


def attempt(outcome, request, turn):
    rows = np.flatnonzero(outcome.attempts["request"] == request)
    return outcome.attempts.index[rows[turn]]


def refuses(rule, result):
    with pytest.raises(ScheduleError, match=rule):
        result.check()


def plus(seconds):
    return lambda t: t + seconds


CHANGES = [
    ("completion", np.nan, "every request is complete"),
    ("fallbacks", 3, "submitted once, and once per fallback"),
    ("server", lambda s: 1 - s, "holds the server of the last submission"),
    ("arrived", plus(-0.5), "holds the arrived of the last submission"),
    ("submitted", plus(0.5), "holds the submitted of the last submission"),
    ("missed", lambda m: not m, "missed means completion after the deadline"),
    ("cost", 150.0, "the cost is the performance of the server"),
    ("start", plus(-30), "arrived comes before start"),
    ("start", plus(30), "start comes before end"),
    ("end", plus(60), "end comes before completion"),
    ("completion", plus(0.01), "a result is sent as fast as"),
    ("completion", plus(-0.01), "a result is sent as fast as"),
    ("start", plus(0.01), "a job starts when all that came before it is done"),
]


@pytest.mark.parametrize(("column", "value", "rule"), CHANGES)
def test_check_names_the_broken_rule(outcome, column, value, rule):
    refuses(rule, broken(outcome, "requests", "b", **{column: value}))


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
    refuses(rule, broken(outcome, "attempts", attempt(outcome, request_, turn), **{column: value}))


@pytest.mark.parametrize("change", [-0.01, 0.01])
def test_a_service_or_an_input_that_is_too_short_or_too_long(outcome, change):
    out = broken(outcome, "requests", "b", end=plus(change), completion=plus(change))
    refuses("a job ends when its work is done", out)
    first = attempt(outcome, "a", 0)
    out = broken(outcome, "attempts", first, arrived=plus(change))
    time = out.attempts.loc[first, "arrived"]
    out = broken(out, "attempts", attempt(outcome, "a", 1), submitted=time)
    out = broken(out, "requests", "a", submitted=time)
    order = out.attempts.sort_values("submitted", kind="stable", ignore_index=True)
    refuses("an input is sent as fast as", with_table(out, "attempts", order))


def test_lost_doubled_and_reordered_requests(outcome):
    for table in (
        outcome.requests.iloc[1:],
        outcome.requests.iloc[[0, 0, 1, 2, 3]],
        outcome.requests.iloc[::-1],
    ):
        refuses("in the table, once, in order", replace(outcome, requests=table))
    for rows in (outcome.attempts.iloc[1:], outcome.attempts.iloc[[0, *range(5)]]):
        refuses("submitted once, and once per fallback", with_table(outcome, "attempts", rows))


def test_rules_of_the_scheduler_and_the_reading(outcome):
    refuses("falls back at most 0 times", replace(outcome, policy=Policy()))
    for change in ({"fallback_slack": 99.0}, {"max_fallbacks": 3}):
        refuses("accepts unless", replace(outcome, policy=replace(outcome.policy, **change)))
    same = simulate(outcome.environment, Policy("greedy", max_fallbacks=1), Reading(load="ext"))
    assert same.attempts.query("request == 'a'")["server"].nunique() == 1
    strict = replace(same.policy, exclude_rejecting=True)
    refuses("no server is asked twice", replace(same, policy=strict))


def test_packets_are_held_to_every_link(outcome):
    out = simulate(outcome.environment, outcome.policy, Reading(network="packet"))
    out.check()
    # packets wait; only each link by itself bounds them
    broken(out, "requests", "b", completion=plus(5)).check()
    early = broken(out, "requests", "b", completion=out.requests.loc["b", "end"] + 0.4)
    refuses("a result is sent no faster than its traces", early)


def test_a_job_that_overtakes():
    """Two jobs that change places in a queue keep its sums, but not its order."""
    out = simulate(grid([100.0], [(time, 0, 0, 400, 99) for time in (0, 1, 2)]), "Greedy")
    out.check()
    table = out.requests.copy()
    swapped = table.loc[[0, 2, 1], ["start", "end", "completion"]].to_numpy()
    table[["start", "end", "completion"]] = swapped
    refuses("one client job at a time, in order of arrival", replace(out, requests=table))


# ---------------------------------------------------------------- estimates


@pytest.mark.parametrize("load", ["clients", "ext"])
def test_an_estimate_that_is_off(outcome, load):
    policy = replace(outcome.policy, load_correction=False)  # corrected, ties are lenient
    out = simulate(outcome.environment, policy, Reading(load=load))
    out.check()
    for row, (change, word) in itertools.product(
        out.attempts.index, ((-0.01, "below"), (0.01, "above"))
    ):
        off = broken(out, "attempts", row, estimate=plus(change))
        refuses(f"no estimate is {word} the transfers", off)


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
        refuses("no estimate is", forgetful)


@pytest.mark.parametrize("load", ["util", "queue"])
def test_estimates_under_loads_that_tables_do_not_tell(outcome, load):
    out, blind = (
        simulate(outcome.environment, outcome.policy, Reading(load=load, predictor=predictor))
        for predictor in ("last", "mean")
    )
    blind.check()
    broken(out, "attempts", 0, estimate=plus(0.5)).check()
    half = broken(out, "attempts", 0, estimate=lambda t: t / 2)
    refuses("no estimate is below the transfers", half)
    refuses("no estimate is below the work alone", broken(blind, "attempts", 0, estimate=0.1))


@pytest.mark.parametrize(("table", "column"), [("requests", "server"), ("attempts", "promised")])
def test_a_missing_column(outcome, table, column):
    lacking = with_table(outcome, table, getattr(outcome, table).drop(columns=column))
    refuses(f"table {table} needs the column {column}", lacking)
