"""The Grid simulator: hand cases of every rule, properties, plug-in functions, Table 1."""

import sys
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import reading as reading_module
from dlsim.bricks import (
    INPUT_SWITCHES,
    Environment,
    Policy,
    Reading,
    best_server,
    model,
    simulate,
)  # fmt: skip
from dlsim.bricks.workload import random_environment, sort_options
from dlsim.errors import InputError
from tests.helpers.bricks_environments import TWO_REGIONS, environments, grid, policies, readings
from tests.helpers.scale import LONG, scale_count

EXAMPLES = settings(max_examples=scale_count(60, LONG, least=10), deadline=None)
DAY = 86_400.0


# ---------------------------------------------------------------- what a monitor reports

#: Server of 100 Mops/s; a client job 1..6 and one 6..11, background 2 s at 0.5 (before the
#: first: 0.5..1 -> 50 Mops = 0.5 s) and at 3.25 (behind both: 11..11.5).
BUSY = {"background": [[0.5, 3.25]], "background_work": 50.0, "server_load": 0.25}


def seen_at(time, load, probe, predictor="last", **more):
    """Load that a policy is shown at a time, by the estimate of work 100 (1 + Load)."""
    rows = [(1.0, 0, 0, 500, 99), (1.0, 0, 0, 500, 99), (time, 0, 0, 100, 99)]
    out = simulate(grid([100.0], rows, **(BUSY | more)), "Greedy", Reading(load, probe, predictor))
    out.check()
    assert out.requests["end"].tolist()[:2] == [6.0, 11.0]
    return out.attempts["estimate"].iloc[-1] - 1


@pytest.mark.parametrize(
    ("load", "time", "value"),
    [
        ("clients", 3.0, 2.25),  # probe at 2: two jobs
        ("clients", 7.9, 2.25),  # probe at 6, when the first is served: not yet gone
        ("clients", 8.0, 1.25),
        ("clients", 12.0, 0.25),  # probe at 12
        ("queue", 3.0, 2.0),  # no external load on top
        ("queue", 4.0, 3.0),  # the background job of 3.25 waits too
        ("queue", 11.9, 2.0),  # probe at 10: the second and the background job
        ("queue", 12.0, 0.0),
        ("util", 1.9, 0.0),  # probe at 0: no period yet
        ("util", 2.0, 0.75),  # 0.5..2 of 0..2
        ("util", 5.0, 1.0),
        ("util", 12.0, 0.75),  # 10..11.5
        ("util", 14.0, 0.0),
        ("ext", 5.0, 0.25),
    ],
)
def test_load_of_the_last_probe(load, time, value):
    assert seen_at(time, load, probe=2.0) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    ("load", "time", "value"),
    [("clients", 6.0, 1.25), ("queue", 3.25, 3.0), ("queue", 11.25, 1.0), ("util", 2.5, 1.0),
     ("util", 11.0, 1.0), ("util", 12.5, 0.5)],
)  # fmt: skip
def test_a_perfect_observer_needs_no_probe(load, time, value):
    assert seen_at(time, load, 2.0, "perfect") == pytest.approx(value, abs=1e-12)


def test_a_load_trace_slows_a_server_and_is_seen():
    # load 1 up to 4 s, then 0: 100 Mops/s give 50; 300 Mops from 1 s on: 150 by 4 s, 1.5 s more
    rows = [(1.0, 0, 0, 300, 99), (6.0, 0, 0, 100, 99)]
    env = grid([100.0], rows, step=4.0, load_traces=[[1.0, 0.0]], server_load=9.0)
    out = simulate(env, "Greedy", Reading(load="ext", probe=3.0))
    out.check()
    assert out.requests["end"].tolist() == [5.5, 7.0]
    assert out.attempts["estimate"].tolist() == [6.0, 1.0]  # probes at 0 and at 6
    assert simulate(env, "Greedy", Reading(load="clients")).attempts["estimate"][0] == 6.0


def test_a_load_trace_of_one_step_holds_for_ever():
    # load 3: 100 Mops/s give 25, so that 50 Mops take 2 s, before the end of the step and after
    env = grid([100.0], [(1.0, 0, 0, 50, 99), (60.0, 0, 0, 50, 99)], load_traces=[[3.0]])
    out = simulate(env, "Greedy", Reading(load="ext"))
    out.check()
    assert out.requests["end"].tolist() == [3.0, 62.0]
    assert out.attempts["estimate"].tolist() == [2.0, 2.0]


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


def test_the_mean_of_ten_probes_does_not_depend_on_earlier_decisions():
    """A job in 13..18 is seen at 14, 16 and 18: three of the ten probes at 12, 14, .., 30."""
    rows = [(13.0, 0, 0, 500, 99), (30.5, 0, 0, 0, 99), (31.0, 0, 0, 100, 99)]
    for some in (rows, rows[::2]):
        out = simulate(grid([100.0], some), "Greedy", Reading("clients", 2.0, "mean"))
        assert out.attempts["estimate"].iloc[-1] == pytest.approx(1.3)


def test_a_users_predictor_sees_ten_probes_of_links_and_servers():
    shapes = []

    def watch(window):
        shapes.append(window.shape)
        return window[:, -1]

    simulate(grid([100.0], [(12.0, 1, 0, 1, 99)]), "Greedy", Reading("ext", 1.0, watch))
    assert shapes == [(5, min(k, 10)) for k in range(1, 14)]


# ---------------------------------------------------------------- Load Correction for links


def test_links_are_corrected_while_a_transfer_is_under_way():
    # 750 Mbit take 10 s; correction halves the prediction for requests meanwhile
    rows = [(0.0, 750, 0, 0, 99), (5.0, 750, 0, 0, 99), (20.0, 750, 0, 0, 99)]
    plain = simulate(grid([100.0], rows), "Greedy")
    assert plain.attempts["estimate"].tolist() == [10, 10, 10]
    more = simulate(grid([100.0], rows), Policy(correct_links=True))
    assert more.attempts["estimate"].tolist() == [10, 20, 10]
    assert (more.requests["completion"] == plain.requests["completion"]).all()


def test_a_result_under_way_counts_on_the_way_back():
    # the result of the first is under way from 1 s to 11 s, on LAN down too (same domain)
    rows = [(0.0, 0, 750, 100, 99), (0.5, 0, 750, 0, 99), (2.0, 0, 750, 0, 99)]
    out = simulate(grid([100.0], rows), Policy(correct_links=True), Reading(load="ext"))
    # the second too is served at 1 s and sent back until 11 s
    assert out.attempts["estimate"].tolist() == [11, 10, 30]


# ---------------------------------------------------------------- packets share links


def test_two_transfers_take_turns_on_a_shared_link():
    # 30 Mbit each in packets of 10 over 10 Mbit/s, LAN up then LAN down: packets leave LAN up
    # at 1..6 s, the odd ones of the first request; each passes LAN down a second later
    rows = [(0.0, 30, 0, 0, 99), (0.0, 30, 0, 0, 99)]
    out = simulate(grid([1.0], rows, traces=10.0), "Greedy", Reading(network="packet"))
    assert out.requests["arrived"].tolist() == [6, 7]
    out.check()


def test_other_users_packets_come_first():
    # 20 Mbit of others at 0 and at 2.5 s on LAN up, 10 Mbit/s: 0..2 and, behind the first
    # packet (2..3), 3..5; the second packet 5..6
    env = grid(
        [1.0],
        [(0.0, 20, 0, 0, 99)],
        traces=10.0,
        link_background=[[0.0, 2.5], [], [], []],
        link_data=20.0,
    )
    out = simulate(env, "Greedy", Reading(network="packet"))
    assert out.requests["arrived"].tolist() == [7]


def test_fluid_transfers_get_what_others_leave():
    # others keep LAN up busy 4 s of the first 10 (40 Mbit at 10 Mbit/s): 6 Mbit/s are left
    env = grid(
        [1.0],
        [(0.0, 30, 0, 0, 99), (20.0, 30, 0, 0, 99)],
        traces=10.0,
        link_background=[[0.0], [], [], []],
        link_data=40.0,
    )
    out = simulate(env, "Greedy")
    assert out.requests["arrived"].tolist() == [5, 23]
    out.check()


# ---------------------------------------------------------------- fallbacks, cost, results


def test_slack_lets_a_server_accept_what_is_late():
    rows = [(0.0, 750, 750, 4_000, 59)]
    fallbacks = [
        simulate(grid([100.0], rows), Policy(max_fallbacks=1, fallback_slack=slack)).requests[
            "fallbacks"
        ][0]
        for slack in (0.0, 0.5, 1.0)
    ]
    assert fallbacks == [1, 1, 0]


def test_no_server_is_excluded_when_all_have_rejected():
    rows = [(0.0, 75, 0, 1000, 5)]
    out = simulate(grid([100.0, 80.0], rows), Policy(max_fallbacks=3, exclude_rejecting=True))
    assert out.attempts["server"].tolist() == [0, 1, 0, 0]
    out.check()


def test_deadline_passes_over_a_server_that_has_rejected():
    # 800 Mops take 8 or 10 s, and 100 take 1 or 1.25: each is due at 10, the slower one is nearer
    rows = [(0.0, 0, 0, 800, 10), (0.0, 0, 0, 100, 10)]
    policy = Policy("deadline", opt=1.0, max_fallbacks=1, exclude_rejecting=True)
    out = simulate(grid([100.0, 80.0], rows), policy, Reading("ext"))
    out.check()
    assert out.attempts["server"].tolist() == [1, 1, 0]  # the second would wait until 10
    assert out.requests["end"].tolist() == [10.0, 1.0]


def test_costs_lateness_and_drain():
    rows = [(0.0, 0, 0, 1000, 10), (0.0, 0, 0, 3000, 10), (0.0, 0, 0, 100, 10)]
    env = grid([100.0, 50.0], rows, horizon=20.0)
    out = simulate(env, Policy(load_correction=True, pload=10), Reading("ext", cost="mean"))
    assert out.requests["server"].tolist() == [0, 1, 0]
    assert out.requests["completion"].tolist() == [10, 60, 11]
    assert out.failure_rate == 2 / 3
    assert out.cost == out.mean_cost == 250 / 3
    weighted = simulate(env, out.policy, Reading("ext", cost="work_weighted"))
    assert weighted.cost == out.work_weighted_cost == (100 * 1100 + 50 * 3000) / 4100
    assert out.lateness == (50 + 1) / 2
    assert out.drain_time == 40


def test_no_request_at_all():
    out = simulate(grid([100.0], []), "Greedy")
    out.check()
    assert np.isnan([out.failure_rate, out.cost, out.lateness]).all()
    assert out.attempts.empty


# ---------------------------------------------------------------- the end of a trace


def test_the_last_value_of_a_trace_is_held():
    # 2 entries of 10 s: 10 and 30 Mbit/s, then 30 for ever
    rows = [(5.0, 100, 0, 0, 99), (100.0, 300, 300, 0, 999)]
    out = simulate(grid([100.0], rows, traces=[10.0, 30.0]), "Greedy", Reading(probe=1.0))
    assert out.requests["completion"].tolist() == [5 + 5 + 50 / 30, 120]
    assert out.attempts["estimate"].tolist() == [10, 20]
    out.check()


# ---------------------------------------------------------------- plain functions of a user


def greedy(view):
    return best_server(view, view.estimates, -np.inf)


def deadline(view):
    return best_server(view, view.estimates, (view.due - view.now) * view.opt)


@EXAMPLES
@given(environments(), policies(), readings())
def test_greedy_and_deadline_as_plain_functions(env, policy, reading):
    own = {"greedy": greedy, "deadline": deadline}[policy.algorithm]
    theirs = simulate(env, replace(policy, algorithm=own), reading)
    ours = simulate(env, policy, reading)
    pd.testing.assert_frame_equal(ours.requests, theirs.requests, check_exact=True)
    pd.testing.assert_frame_equal(ours.attempts, theirs.attempts, check_exact=True)


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


def test_a_predictor_of_two_arguments_is_given_the_whole_past():
    """Fifteen probes, one a second; the trace counts the seconds."""
    seen = []

    def trend(past, times):
        seen.append((past.copy(), times.copy()))
        return past[:, -1]

    rows = [(t, 1, 0, 1, 99) for t in (0.0, 14.0)]
    env = grid([100.0], rows, traces=np.arange(1.0, 99), step=1.0)
    simulate(env, "Greedy", Reading("ext", 1.0, trend))
    assert [len(times) for _, times in seen] == list(range(1, 16))
    past, times = seen[-1]
    assert times.tolist() == list(range(15))
    assert past.tolist() == [list(range(1, 16))] * 4 + [[0.0] * 15]


def test_what_cannot_be_reached_is_no_tie_with_what_can():
    """A link predicted at zero makes an infinite estimate; relative slack of inf is inf."""
    traces = np.full((2, 4, 2), 40.0)
    traces[1, 2, 0] = 0.0  # WAN up of domain 1, at the probe of time 0
    env = Environment(
        servers=pd.DataFrame({"domain": [1, 0, 0], "performance": 100.0}),
        clients=pd.DataFrame({"domain": [0]}),
        traces=traces,
        step=1.0,
        requests=pd.DataFrame(
            {"arrival": [0.0], "client": 0, "send": 0.0, "recv": 40.0, "work": 100.0, "due": 1.5}
        ),
    )
    for algorithm in ("greedy", "deadline", greedy, deadline):
        out = simulate(env, Policy(algorithm))
        assert out.requests["server"].tolist() == [1]
        assert out.attempts["estimate"].tolist() == [2.0]


# ---------------------------------------------------------------- properties


@EXAMPLES
@given(environments(), policies(), readings())
def test_every_outcome_is_valid_and_the_same_again(env, policy, reading):
    out = simulate(env, policy, reading)
    out.check()
    again = simulate(env, policy, reading)
    pd.testing.assert_frame_equal(out.requests, again.requests, check_exact=True)


@EXAMPLES
@given(environments(most=1), st.lists(st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0]), min_size=2))
def test_the_chosen_estimate_does_not_fall_as_opt_grows(env, opts):
    chosen = [
        simulate(env, Policy("deadline", opt=opt)).attempts["estimate"][0] for opt in sorted(opts)
    ]
    assert chosen == sorted(chosen)


@EXAMPLES
@given(environments(), policies())
def test_what_is_not_used_does_not_matter(env, policy):
    """Opt without Deadline, pload without a correction, exclusion without a fallback."""
    unused = replace(
        policy, algorithm="greedy", load_correction=False, correct_links=False, max_fallbacks=0
    )
    plain = simulate(env, "Greedy")
    assert simulate(env, unused).requests.equals(plain.requests)


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


@pytest.mark.parametrize("options", [
    {"server_background": "trace"}, {"link_background": "data", "link_data": 1000.0},
    {"deadline_communication": False}, {"trace_std": 0.5}, {"trace_method": "paxson"},
    {"interval_scope": "system"}, {"domains": 2, "nodes": (2, 2)},
    {"topology": TWO_REGIONS},
])  # fmt: skip
def test_every_option_of_the_workload_runs_and_is_valid(options):
    env = Environment.random(1, 60, horizon=7200.0, **options)
    for network in ("fluid", "packet"):
        out = simulate(env, Policy("deadline", opt=0.7, max_fallbacks=2), Reading(network=network))
        out.check()


# ---------------------------------------------------------------- progress


def test_a_run_of_several_steps_says_how_far_it_is(monkeypatch):
    told = []
    module = sys.modules[simulate.__module__]
    monkeypatch.setattr(module, "progress_bar", lambda label, total: nullcontext(told.append))
    env = Environment.random(0, 2, horizon=1800.0, packet=1.0)
    simulate(env, "Greedy", Reading(network="packet"))
    assert told == sorted(told)
    assert 0 < told[-1] <= len(env.requests)


# ---------------------------------------------------------------- registries


@pytest.mark.parametrize(
    ("registry", "simulate_it"),
    [
        ("ALGORITHMS", lambda env: simulate(env, Policy("strange"))),
        ("LOADS", lambda env: simulate(env, "Greedy", Reading("strange"))),
        ("PREDICTORS", lambda env: simulate(env, "Greedy", Reading(predictor="strange"))),
    ],
)
def test_a_method_that_no_kernel_handles_is_refused(monkeypatch, registry, simulate_it):
    """A record alone makes no method: the kernel that dispatches it says so."""
    methods = getattr(model, registry)
    monkeypatch.setattr(model, "one_of", lambda name, value, options: value)
    monkeypatch.setattr(reading_module, "one_of", lambda name, value, options: value)
    monkeypatch.setitem(methods, "strange", model.RegistryEntry("strange", 99, "Strange"))
    with pytest.raises(ValueError, match="has this code"):
        simulate_it(grid([100.0], [(0, 0, 0, 100, 9)]))


def test_an_unknown_method_is_refused_with_those_that_are_known():
    for registry in (model.ALGORITHMS, model.LOADS, model.PREDICTORS):
        rule = f"{registry.kind} must be one of {', '.join(registry)}"
        with pytest.raises(InputError, match=rule):
            registry.code_of("strange")
        assert len({method.code for method in registry.values()}) == len(registry)
