"""The Grid simulator: monitors, predictors, queues, functions of a user, properties, Table 1."""

import itertools
import math
import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import reading as reading_module
from dlsim.bricks import (
    INPUT_SWITCHES,
    REFUSE,
    Environment,
    Policy,
    Reading,
    best_server,
    model,
    simulate,
)  # fmt: skip
from dlsim.bricks.core import state
from dlsim.bricks.core.servers import serve_equal_jobs
from dlsim.bricks.workload import random_environment, sort_options
from dlsim.errors import ScheduleError
from tests.helpers.bricks_environments import TWO_REGIONS, environments, grid, policies, readings
from tests.helpers.scale import LONG, scale_count

EXAMPLES = settings(max_examples=scale_count(60, LONG, least=10), deadline=None)
DAY = 86_400.0


def run(env, policy="Greedy", reading=None):
    out = simulate(env, policy, reading)
    out.check()
    return out


def same(first, second):
    """The same bytes."""
    for name in ("requests", "attempts"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name), check_exact=True)


# ---------------------------------------------------------------- what a monitor reports

#: Server of 100 Mops/s; a client job 1..6 and one 6..11, background 2 s at 0.5 (before the
#: first: 0.5..1 -> 50 Mops = 0.5 s) and at 3.25 (behind both: 11..11.5).
BUSY = {"background": [[0.5, 3.25]], "background_work": 50.0, "server_load": 0.25}
#: Load that a policy is shown at a time, with a probe every 2 s: that of the last one.
SEEN = {
    # two jobs at the probe of 2; one is served at the probe of 6, not yet gone
    ("clients", "last"): {3.0: 2.25, 7.9: 2.25, 8.0: 1.25, 12.0: 0.25},
    # no external load on top; the background job of 3.25 waits too; at 10 it and the second
    ("queue", "last"): {3.0: 2.0, 4.0: 3.0, 11.9: 2.0, 12.0: 0.0},
    # no period before the probe of 0; busy 0.5..2 of 0..2, 10..11.5 of 10..12
    ("util", "last"): {1.9: 0.0, 2.0: 0.75, 5.0: 1.0, 12.0: 0.75, 14.0: 0.0},
    ("ext", "last"): {5.0: 0.25},
    # a perfect observer needs no probe
    ("clients", "perfect"): {6.0: 1.25},
    ("queue", "perfect"): {3.25: 3.0, 11.25: 1.0},
    ("util", "perfect"): {2.5: 1.0, 11.0: 1.0, 12.5: 0.5},
}


@pytest.mark.parametrize(("load", "predictor"), SEEN)
def test_the_load_that_is_seen(load, predictor):
    """By the estimate of work of one second, which is 1 + Load."""
    found = {}
    for time in SEEN[load, predictor]:
        rows = [(1.0, 0, 0, 500, 99), (1.0, 0, 0, 500, 99), (time, 0, 0, 100, 99)]
        out = run(grid([100.0], rows, **BUSY), "Greedy", Reading(load, 2.0, predictor))
        assert out.requests["end"].tolist()[:2] == [6.0, 11.0]
        found[time] = out.attempts["estimate"].iloc[-1] - 1
    assert found == pytest.approx(SEEN[load, predictor], abs=1e-12)


MEAN = Reading("clients", 2.0, "mean")
TEN, ONE = (0, 0, 1000, 99), (0, 0, 100, 99)
#: Servers, requests, more of the environment, policy, reading; the estimate of each submission.
ESTIMATES = {
    # probes at 0 and at 6
    "a load trace": (
        [100.0], [(1, 0, 0, 300, 99), (6, 0, 0, 100, 99)],
        {"step": 4.0, "load_traces": [[1.0, 0.0]], "server_load": 9.0}, "Greedy",
        Reading("ext", 3.0), [6, 1]),
    "a load trace of one step": (
        [100.0], [(1, 0, 0, 50, 99), (60, 0, 0, 50, 99)], {"load_traces": [[3.0]]}, "Greedy",
        Reading("ext"), [2, 2]),
    "the last value of a link is held": (
        [100.0], [(5, 100, 0, 0, 99), (100, 300, 300, 0, 999)], {"traces": [10.0, 30.0]},
        "Greedy", Reading(probe=1.0), [10, 20]),
    # 750 Mbit take 10 s; correction halves the prediction for requests meanwhile
    "links without correction": (
        [100.0], [(t, 750, 0, 0, 99) for t in (0, 5, 20)], {}, "Greedy", None, [10, 10, 10]),
    "links are corrected while a transfer is under way": (
        [100.0], [(t, 750, 0, 0, 99) for t in (0, 5, 20)], {}, Policy(correct_links=True), None,
        [10, 20, 10]),
    # the results of the first two are under way from 1 s to 11 s, on LAN down too (same domain)
    "a result under way counts on the way back": (
        [100.0], [(0, 0, 750, 100, 99), (0.5, 0, 750, 0, 99), (2, 0, 750, 0, 99)], {},
        Policy(correct_links=True), Reading("ext"), [11, 10, 30]),
    # a job in 13..18 is seen at 14, 16 and 18: three of the ten probes at 12, 14, .., 30
    "a mean of ten probes": (
        [100.0], [(13, 0, 0, 500, 99), (30.5, 0, 0, 0, 99), (31, *ONE)], {}, "Greedy", MEAN,
        [5, 0, 1.3]),
    "a mean of ten probes without a decision before": (
        [100.0], [(13, 0, 0, 500, 99), (31, *ONE)], {}, "Greedy", MEAN, [5, 1.3]),
    # a probe every 60 s, so that an instant is 6e-11 s long; the job at 61 is told Load
    **{f"a probe and a job that comes {change} s later, {load}": (
        [100.0], [(60 + change, *TEN), (61, *ONE)], {}, "Greedy", Reading(load), [10, 1 + seen])
       for load in ("clients", "queue")
       for change, seen in ((-2e-10, 1), (-3e-11, 0), (0.0, 0), (3e-11, 0))},
    **{f"a probe and a job that ends {change} s later, {load}": (
        [100.0], [(50 + change, *TEN), (61, *ONE)], {}, "Greedy", Reading(load), [10, 1 + seen])
       for load in ("clients", "queue")
       for change, seen in ((-2e-10, 0), (-3e-11, 1), (0.0, 1), (3e-11, 1))},
    **{f"a probe and a decision {change} s later": (
        [100.0], [(50, 0, 0, 10_000, 999), (60 + change, *ONE)], {}, "Greedy", None,
        [100, 1 + seen])
       for change, seen in ((-2e-10, 0), (-3e-11, 1), (0.0, 1))},
}  # fmt: skip


def test_estimates_by_hand():
    for case, (performance, rows, more, policy, reading, wanted) in ESTIMATES.items():
        out = run(grid(performance, rows, **more), policy, reading)
        assert out.attempts["estimate"].tolist() == pytest.approx(wanted, rel=1e-12), case


def series_of(values, predictor, at):
    """Predicted throughput of a link whose trace changes every second, probed as often."""
    env = grid([100.0], [(at, 60, 0, 0, 99)], traces=values, step=1.0)
    out = simulate(env, "Greedy", Reading("ext", 1.0, predictor))
    return 60 / out.attempts["estimate"].iloc[0]


def test_predictors_by_hand():
    values = [10.0, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120]
    assert series_of(values, "last", 11.5) == pytest.approx(120)
    assert series_of(values, "mean", 11.5) == pytest.approx(np.mean(values[2:]))
    assert series_of(values, "mean", 1.5) == pytest.approx(15)
    assert series_of(values, "perfect", 3.5) == pytest.approx(40)
    # rising all the time, the last value errs least; alternating, a mean does
    assert series_of(values, "adaptive", 11.5) == pytest.approx(120)
    assert series_of([10.0, 30.0] * 10, "adaptive", 19.5) == pytest.approx(20, abs=1.0)
    assert series_of([10.0, 30.0] * 10, lambda window: window.max(axis=1), 1.5) == 30


def test_a_users_predictor_sees_ten_probes_or_with_two_arguments_the_whole_past():
    """A probe of four links and a server a second, at 0..80; the trace counts the seconds."""
    shapes, seen = [], []

    def watch(window):
        shapes.append(window.shape)
        return window[:, -1]

    def trend(past, times):
        assert not past.flags.writeable
        seen.append((past.copy(), times.copy()))
        return past[:, -1]

    rows = [(t, 1, 0, 1, 99) for t in (0.0, 80.0)]
    env = grid([100.0], rows, traces=np.arange(1.0, 99), step=1.0)
    for predictor in (watch, trend):
        simulate(env, "Greedy", Reading("ext", 1.0, predictor))
    assert shapes == [(5, min(k, 10)) for k in range(1, 82)]
    assert [len(times) for _, times in seen] == list(range(1, 82))
    past, times = seen[-1]
    assert times.tolist() == list(range(81))
    assert past.tolist() == [list(range(1, 82))] * 4 + [[0.0] * 81]


def test_the_times_of_probes_count_from_the_origin_of_the_clock():
    seen = []

    def note(past, times):
        seen.append(times)
        return past[:, -1]

    env = grid([100.0], [(1e6, 1, 0, 1, 2e6)])
    simulate(env, "Greedy", Reading("ext", 1e5, note))
    assert seen[-1].tolist() == [1e5 * k - 1e6 for k in range(11)]


def test_what_cannot_be_reached_is_no_tie_with_what_can():
    """A link predicted at zero makes an infinite estimate; relative slack of inf is inf."""
    traces = np.full((2, 4, 2), 40.0)
    traces[1, 2, 0] = 0.0  # WAN up of domain 1, at the probe of time 0
    one = {"arrival": [0.0], "client": 0, "send": 0.0, "recv": 40.0, "work": 100.0, "due": 1.5}
    env = Environment(
        servers=pd.DataFrame({"domain": [1, 0, 0], "performance": 100.0}),
        clients=pd.DataFrame({"domain": [0]}),
        traces=traces,
        step=1.0,
        requests=pd.DataFrame(one),
    )
    for algorithm in ("greedy", "deadline", greedy, deadline):
        out = simulate(env, Policy(algorithm))
        assert out.requests["server"].tolist() == [1]
        assert out.attempts["estimate"].tolist() == [2.0]


# ---------------------------------------------------------------- queues, measures, refusing


@pytest.mark.parametrize("load", [0.05, 0.4, 0.9, 1.5])
def test_jobs_that_no_queue_depends_on_are_skipped_without_a_difference(load):
    """The recursion of Lindley, job by job, gives the same bits."""
    stream = np.random.default_rng(5)
    cases = itertools.product((0.1, 3.0, 0.0, 1e-12), (0, 1, 64, 65, 128, 700), (0.0, 1e6))
    for service, jobs, begin in cases:
        times = begin + np.cumsum(stream.exponential(max(service, 0.1) / load, jobs))
        first = times[0] if jobs else begin
        for free in (first, first + 20 * service, first + 200 * service, first - 1.0):
            expected = free
            for time in times.tolist():
                expected = max(expected, time) + service
            assert serve_equal_jobs(times, service, free) == expected, (service, jobs, begin)


def test_costs_lateness_and_drain():
    rows = [(0.0, 0, 0, 1000, 10), (0.0, 0, 0, 3000, 10), (0.0, 0, 0, 100, 10)]
    env = grid([100.0, 50.0], rows, horizon=20.0)
    out = run(env, Policy(load_correction=True, pload=10), Reading("ext", cost="mean"))
    assert out.requests["server"].tolist() == [0, 1, 0]
    assert out.requests["completion"].tolist() == [10, 60, 11]
    assert out.failure_rate == 2 / 3
    assert out.cost == out.mean_cost == 250 / 3
    weighted = simulate(env, out.policy, Reading("ext", cost="work_weighted"))
    assert weighted.cost == out.work_weighted_cost == (100 * 1100 + 50 * 3000) / 4100
    assert out.lateness == (50 + 1) / 2
    assert out.drain_time == 40


def test_a_refused_request_has_no_server_and_no_cost():
    rows = [(0, *TEN), (0, *TEN), (1, *TEN)]
    out = run(grid([100.0], rows), Policy(lambda view: REFUSE if view.row == 1 else 0))
    assert out.requests.loc[1, ["submitted", "arrived", "start", "end", "cost"]].isna().all()
    assert (out.requests["completion"][1], out.requests["missed"][1]) == (math.inf, True)
    assert (out.failure_rate, out.mean_cost) == (1 / 3, 100.0)
    assert out.attempts["request"].tolist() == [0, 2]
    vars(out)["policy"] = Policy()  # which may not refuse
    with pytest.raises(ScheduleError, match="every request is complete"):
        out.check()


def test_no_request_at_all():
    out = run(grid([100.0], []))
    measures = (out.failure_rate, out.cost, out.work_weighted_cost, out.lateness)
    assert np.isnan(measures).all()
    assert out.drain_time == 0
    assert out.attempts.empty


# ---------------------------------------------------------------- plain functions of a user


def greedy(view):
    return best_server(view, view.estimates, -np.inf)


def deadline(view):
    return best_server(view, view.estimates, (view.due - view.now) * view.opt)


@EXAMPLES
@given(environments(), policies(), readings())
def test_every_outcome_is_valid_and_that_of_a_plain_function(env, policy, reading):
    ours = run(env, policy, reading)
    same(ours, simulate(env, policy, reading))
    own = {"greedy": greedy, "deadline": deadline}[policy.algorithm]
    same(ours, simulate(env, replace(policy, algorithm=own), reading))


def test_a_view_shows_what_is_known_and_no_more():
    seen = []

    def watch(view):
        seen.append(
            (
                view.row,
                view.now,
                view.returned.tolist(),
                np.isfinite(view.completion).tolist(),
                view.scheduled.tolist(),
                (view.server >= 0).tolist(),
                view.memory.setdefault("calls", 0),
            )
        )
        view.memory["calls"] += 1
        return 1

    rows = [(0.0, 0, 0, 100, 99), (0.5, 0, 0, 100, 99), (1.5, 0, 0, 100, 99)]
    for _ in range(2):  # the memory is empty again
        seen.clear()
        simulate(grid([100.0, 100.0], rows), Policy(watch))
        assert seen == [
            (0, 0.0, [], [False], [0, 0], [False], 0),
            (1, 0.5, [], [False, False], [0, 1], [True, False], 1),
            (2, 1.5, [0], [True, False, False], [0, 1], [True, True, False], 2),
        ]


def test_a_view_by_hand():
    """The second server would end the first request too late: at 1.25 s, it falls back."""
    views = []

    def watch(view):
        views.append(view)
        return int(len(views) == 1)

    env = grid([100.0, 50.0], [(0.25, 75, 150, 1000, 20), (0.5, 0, 0, 100, 99)], server_load=0.25)
    policy = Policy(watch, 0.4, max_fallbacks=1, exclude_rejecting=True)
    promised = simulate(env, policy, Reading("ext")).attempts["promised"]
    wanted = {
        "row": 0, "now": 1.25, "send": 75, "recv": 150, "work": 1000, "due": 20, "opt": 0.4,
        "fallbacks": 1, "promised": promised[0], "estimates": [15.5, 28], "sending": [1, 1],
        "receiving": [2, 2], "performance": [100, 50], "load": [0.25, 0.25], "scheduled": [1, 0],
        "excluded": [False, True], "submitted": [0.25, 0.5], "server": [1, 0], "returned": [],
    }  # fmt: skip
    assert {name: np.asarray(getattr(views[2], name)).tolist() for name in wanted} == wanted
    assert np.isnan(views[2].completion).tolist() == [True, True]
    assert views[2].requests.arrival.tolist() == [0.25, 0.5]
    assert [math.isnan(view.promised) for view in views] == [True, True, False]
    kept = [(view.sending.tolist(), view.estimates.tolist()) for view in views[:2]]
    assert kept == [([1, 1], [15.5, 28]), ([0, 0], [1.25, 2.5])]


#: Estimates, the target, servers that are excluded, and the server that is chosen; instants are
#: one within 1e-12 of the time that is estimated.
CHOICES = [
    ([10 * (1 + 3e-13), 10], -math.inf, [], 0),
    ([10 * (1 + 3e-12), 10], -math.inf, [], 1),
    ([10 * (1 - 3e-13), 10], 20, [], 0),
    ([10 * (1 - 3e-12), 10], 20, [], 1),
    ([10 * (1 + 3e-13), 5], 10, [], 0),
    ([10 * (1 + 3e-12), 5], 10, [], 1),
    ([5, 10, 7], -math.inf, [0], 2),
    ([5, 10, 7], 8, [2], 0),
]


@pytest.mark.parametrize(("estimates", "target", "excluded", "chosen"), CHOICES)
def test_the_best_server_of_given_estimates(estimates, target, excluded, chosen):
    places = np.arange(len(estimates))
    view = SimpleNamespace(now=0.0, excluded=np.isin(places, excluded))
    assert best_server(view, np.array(estimates), target) == chosen


def test_a_view_shows_results_in_the_order_of_their_returns():
    """On servers of 10 and 100 Mops/s the first request takes 10 s, the second 1 s."""
    seen = []

    def watch(view):
        seen.append((view.returned.tolist(), view.completion.tolist()[:-1]))
        return view.row % 2

    rows = [(t, 0, 0, 100, 99) for t in (0.0, 0.0, 2.0, 12.0)]
    simulate(grid([10.0, 100.0], rows), Policy(watch))
    assert seen[-1] == ([1, 0], [10.0, 1.0, pytest.approx(math.nan, nan_ok=True)])


def reached(thing):
    """Every number that a policy can come by from a view, whatever it is a part of."""
    todo, met, found = [thing], {}, set()
    while todo:
        one = todo.pop()
        if id(one) in met:
            continue
        met[id(one)] = one
        if isinstance(one, np.ndarray):
            names = one.dtype.names
            for part in [one[name] for name in names] if names else [one]:
                found |= set(np.asarray(part, dtype=float).ravel().tolist())
            todo += [one.base] * (one.base is not None)
        elif isinstance(one, (float, int, np.number)):
            found.add(float(one))
        elif isinstance(one, (tuple, list)):
            todo += one
        elif isinstance(one, dict):
            todo += [*one, *one.values()]
        elif hasattr(one, "__dict__"):
            todo += vars(one).values()
    return found


def test_a_scheduler_that_cheats_finds_nothing_of_what_is_to_come():
    """Every number of a later request, trace or arrival is one that occurs nowhere else."""
    n, calls = 12, []
    marks = 1000.0 + np.arange(n)[:, None] * 10 + np.arange(5)  # of request k: 1000 + 10 k ...
    rows = [(3.0 * k, *marks[k, 1:4], 5000.0 + k) for k in range(n)]
    # 777 to come in the link's trace from 60 s on, 888 in the load's, 999 and 666 of other users
    env = grid(
        [100.0, 120.0],
        rows,
        traces=[*[40.0] * 6, 777.0],
        background=[[1.0, 999.0], []],
        background_work=[[3.0, 666.0], []],
        load_traces=[[0.0] * 6 + [888.0]] * 2,
        link_background=[[1.0], [999.5], [], []],
        link_data=2.0,
    )

    def cheat(view):
        found = reached(view)
        calls.append(view.row)
        later = {float(x) for k in range(view.row + 1, n) for x in (*rows[k][1:], rows[k][0])}
        assert not found & (later | {777.0, 888.0, 999.0, 666.0, 999.5})
        assert {*rows[view.row][1:], view.now} <= found  # of the request at hand it finds all
        assert [len(x) for x in (*view.requests, view.server, view.completion)] == [
            len(set(calls))
        ] * 8
        for one in (view.estimates, view.load, view.scheduled, view.excluded, view.server):
            base = one if one.base is None else one.base
            base.flags.writeable = True
            base[:] = np.zeros(1, base.dtype)[0]  # of its own copies only
        return 1

    out = simulate(env, Policy(cheat), Reading("util"))
    out.check()
    assert calls == list(range(n))
    honest = simulate(env, Policy(lambda view: 1), Reading("util"))
    pd.testing.assert_frame_equal(out.requests, honest.requests, check_exact=True)


# ---------------------------------------------------------------- properties


@EXAMPLES
@given(environments(most=1), st.lists(st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0]), min_size=2))
def test_the_chosen_estimate_does_not_fall_as_opt_grows(env, opts):
    chosen = [
        simulate(env, Policy("deadline", opt=opt)).attempts["estimate"][0] for opt in sorted(opts)
    ]
    assert chosen == sorted(chosen)


# ---------------------------------------------------------------- the workload


def test_one_purpose_changes_and_the_others_stay():
    base = random_environment(3, *sort_options({"horizon": 7200.0}))
    for options in (
        {"interval": 90},
        {"H": 0.5},
        {"server_load": 0.3},
        {"work_range": INPUT_SWITCHES["work_range"][1]},
    ):
        other = random_environment(3, *sort_options({"horizon": 7200.0} | options))
        assert other["servers"].equals(base["servers"])
        changed = {
            "traces": (other["traces"] != base["traces"]).any(),
            "times": not np.array_equal(other["requests"]["arrival"], base["requests"]["arrival"]),
            "work": not np.array_equal(other["requests"]["work"], base["requests"]["work"]),
            "background": not np.array_equal(other["background"].times, base["background"].times),
        }
        own = {"interval": {"times", "work"}, "H": {"traces"}, "server_load": {"background"}}
        assert {k for k, yes in changed.items() if yes} == own.get(next(iter(options)), {"work"})


def test_every_option_of_the_workload_runs_and_is_valid():
    policy = Policy("deadline", opt=0.7, max_fallbacks=2)
    for options in (
        {"server_background": "trace", "deadline_communication": False, "trace_std": 0.5},
        {"link_background": "data", "link_data": 1000.0, "trace_method": "paxson"},
        {"interval_scope": "system", "domains": 2, "nodes": (2, 2)},
        {"topology": TWO_REGIONS},
    ):
        env = Environment.random(1, 60, horizon=3600.0, **options)
        for network in ("fluid", "packet"):
            run(env, policy, Reading(network=network))


def test_a_run_of_several_steps_says_how_far_it_is(monkeypatch):
    told = []
    module = sys.modules[simulate.__module__]
    monkeypatch.setattr(module, "progress_bar", lambda label, total: nullcontext(told.append))
    env = Environment.random(0, 2, horizon=900.0, packet=1.0)
    simulate(env, "Greedy", Reading(network="packet"))
    assert told == sorted(told)
    assert 0 < told[-1] <= len(env.requests)


# ---------------------------------------------------------------- registries


def test_a_method_that_no_kernel_handles_is_refused(monkeypatch):
    """A record alone makes no method: the kernel that dispatches it says so."""
    monkeypatch.setattr(model, "one_of", lambda name, value, options: value)
    monkeypatch.setattr(reading_module, "one_of", lambda name, value, options: value)
    algorithm = model.Algorithm(99, "Strange", "a server")
    for table, entry in (model.ALGORITHMS, algorithm), (model.LOADS, 99), (model.PREDICTORS, 99):
        monkeypatch.setitem(table, "strange", entry)
    env = grid([100.0], [(0, 0, 0, 100, 9)])
    for policy, reading in (
        (Policy("strange"), None),
        ("Greedy", Reading("strange")),
        ("Greedy", Reading(predictor="strange")),
    ):
        with pytest.raises(ValueError, match="has this code"):
            simulate(env, policy, reading)


def test_no_two_methods_have_the_same_code():
    algorithms = {name: algorithm.code for name, algorithm in model.ALGORITHMS.items()}
    for codes in (algorithms, model.LOADS, model.PREDICTORS):
        assert len({state.USER, *codes.values()}) == 1 + len(codes)
