"""The engine of paper B against hand cases and an event-by-event twin, switch by switch."""

import functools
import itertools
import math
import random
import traceback
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dlsim.bricks import REFUSE, SWITCHES, Environment, Policy, Reading, simulate, topology
from dlsim.bricks.environment import MAX_UNCOMPILED_ARRIVALS
from dlsim.bricks.model import ALGORITHMS, LOADS, PREDICTORS, find_policy
from dlsim.bricks.simulate import configure, uncompiled_microseconds
from dlsim.compiled import CORES
from dlsim.errors import InputError
from dlsim.record import NamedRecord
from tests.helpers.bricks_environments import TWO_REGIONS, draw_environment, grid
from tests.helpers.scale import LONG, scale_count
from tests.twins import bricks as twin

# ---------------------------------------------------------------- two simulators, one shape


def by_engine(env, policy, reading):
    out = simulate(env, policy, reading)
    out.check()
    table = out.requests
    return list(zip(table["server"], table["fallbacks"], table["completion"], strict=True))


def by_twin(env, policy, reading):
    requests = twin.simulate(env, find_policy(policy), reading)
    return [(r.server, r.fallbacks, r.completion) for r in requests]


# ---------------------------------------------------------------- hand cases

EXT = Reading("ext")
PACKETS = Reading(network="packet")
#: Four requests of 10 s on 100 Mops/s.
TENS = [(0, 0, 0, 1000, 99), (0, 0, 0, 1000, 50), (0, 0, 0, 1000, 20), (1, 0, 0, 1000, 15)]
#: Data there, then as much back, over links of 100 Mbit/s for 10 s and of 50 ever after.
TRANSFERS = [
    (time, *data, 0, 99)
    for time, size in ((0, 1250), (0, 1000), (5, 600), (25, 100))
    for data in ((size, 0), (0, size))
]
TRANSFERRED = [(0, 0, end) for end in (15, 15, 10, 10, 12, 12, 27, 27)]
#: Input there after 10 s, 40 s of work, result back in 10 s: 60 s, of which 50 are left at the
#: arrival. Refused with a deadline below 60; counted from the arrival, T_send is in it twice,
#: so that below 70. The one server is chosen again and again.
SIXTY = (0, 750, 750, 4_000)
#: Others' transfers on LAN up alone.
LAN_UP = [[], [], []]


def at(start, opt, server):
    """Deadline with servers of 100 to 500 Mops/s for work of 60 Gops: 620, 320, 220 or 140 s."""
    performance = [100.0, 200.0, 300.0, 500.0]
    rows, policy = [(start, 750, 750, 60_000, start + 400)], Policy("deadline", opt=opt)
    return (
        performance,
        rows,
        {},
        policy,
        None,
        [(server, 0, start + 20 + 6e4 / performance[server])],
    )


def late(most, due, fallbacks, strict=True, time="at_submit", slack=0.0):
    reading = Reading(fallback_strict=strict, fallback_time=time)
    policy = Policy(max_fallbacks=most, fallback_slack=slack)
    return [100.0], [(*SIXTY, due)], {}, policy, reading, [(0, fallbacks, 60 + 10 * fallbacks)]


#: Servers, requests, more of the environment, policy, reading; server, fallbacks and completion
#: of each request.
HAND = {
    "one request on idle links": (
        [300.0], [(0, 750, 1500, 300_000, 1030)], {}, "Greedy", None, [(0, 0, 1030)]),
    **{f"a trace of {steps} steps holds its last value": (
        [1.0], TRANSFERS, {"traces": [100.0] + [50.0] * (steps - 1)}, "Greedy", None, TRANSFERRED)
       for steps in (2, 9)},
    # --- the choice
    **{f"the slowest server that fits {opt} of the time from {start}": at(start, opt, server)
       for start, opt, server in ((0.0, 1.0, 1), (0.0, 0.79, 2), (0.0, 0.5, 3), (0.0, 0.3, 3),
                                  (0.0, 0.8, 1), (0.1, 0.8, 1), (86_399.7, 0.8, 1))},
    "greedy takes the fastest": (
        [100.0, 500.0], [(0, 750, 750, 60_000, 400)], {}, "Greedy", None, [(1, 0, 140)]),
    "a blind monitor sees no load": (
        [200.0, 100.0], [(t, 0, 0, 20_000, 999) for t in range(3)], {}, "Greedy", EXT,
        [(0, 0, 100), (0, 0, 200), (0, 0, 300)]),
    "load correction sees it": (
        [200.0, 100.0], [(t, 0, 0, 20_000, 999) for t in range(3)], {}, "Greedy L/x", EXT,
        [(0, 0, 100), (0, 0, 200), (1, 0, 202)]),
    # --- queues
    "first come, first served": (
        [100.0], TENS, {}, "Greedy", None, [(0, 0, end) for end in (10, 20, 30, 40)]),
    "background jobs wait in the same line": (
        [100.0], [(10.2, 0, 0, 100, 99)], {"background": [[9.9, 10.0]], "background_work": 50.0},
        "Greedy", None, [(0, 0, 11.9)]),
    # load 1 up to 4 s, then 0: 100 Mops/s give 50; 300 Mops from 1 s on: 150 by 4 s, 1.5 s more
    "a load trace slows a server": (
        [100.0], [(1, 0, 0, 300, 99), (6, 0, 0, 100, 99)],
        {"step": 4.0, "load_traces": [[1.0, 0.0]], "server_load": 9.0}, "Greedy", EXT,
        [(0, 0, 5.5), (0, 0, 7)]),
    # load 3: 100 Mops/s give 25, so that 50 Mops take 2 s, before the end of the step and after
    "a load trace of one step holds for ever": (
        [100.0], [(1, 0, 0, 50, 99), (60, 0, 0, 50, 99)], {"load_traces": [[3.0]]}, "Greedy", EXT,
        [(0, 0, 3), (0, 0, 62)]),
    # a job of 0.7 s from 0.1 on ends at the float before 0.8, where a probe, a tolerance early,
    # still counts it until 0.8: at 1.6 it has 1e-16 s less than it had
    "no server is busy for less than no time": (
        [100.0], [(2, 0, 0, 100, 9)], {"background": [[0.1]], "background_work": 70.0}, "Greedy",
        Reading("util", 0.8, lambda values: values[:, -1]), [(0, 0, 3)]),
    # --- packets and other users' data
    # 30 Mbit each in packets of 10 over 10 Mbit/s, LAN up then LAN down: packets leave LAN up
    # at 1..6 s, the odd ones of the first request; each passes LAN down a second later
    "two transfers take turns on a shared link": (
        [1.0], [(0, 30, 0, 0, 99)] * 2, {"traces": 10.0}, "Greedy", PACKETS,
        [(0, 0, 6), (0, 0, 7)]),
    # 20 Mbit of others at 0 and at 2.5 s on LAN up, 10 Mbit/s: 0..2 and, behind the first
    # packet (2..3), 3..5; the second packet 5..6
    "other users' packets come first": (
        [1.0], [(0, 20, 0, 0, 99)],
        {"traces": 10.0, "link_background": [[0.0, 2.5], *LAN_UP], "link_data": 20.0},
        "Greedy", PACKETS, [(0, 0, 7)]),
    # the same, and one packet: it passes LAN down alone, 3..4
    "other users' packets delay those on their own link": (
        [1.0], [(0, 10, 0, 0, 99)],
        {"traces": 10.0, "link_background": [[0.0, 2.5], *LAN_UP], "link_data": 20.0},
        "Greedy", PACKETS, [(0, 0, 4)]),
    # at 2 s the first has been served, and its result takes LAN up before the third packet of the
    # second's input, which is offered then: 2..3 and LAN down 3..4
    "what a service sends comes before the packets of later requests": (
        [1.0], [(0, 0, 10, 2, 99), (0, 40, 0, 0, 99)], {"traces": 10.0}, "Greedy", PACKETS,
        [(0, 0, 4), (0, 0, 6)]),
    # packets of 0.1 in turn, those of the first at 0, 0.3 and 0.6; a fourth would leave at 0.9
    "a rounding makes no packet": (
        [1.0], [(0, size, 0, 0, 99) for size in (0.1 + 0.2, 0.4, 0.4)],
        {"traces": 1.0, "packet": 0.1}, "Greedy", PACKETS, [(0, 0, 0.8), (0, 0, 1.1), (0, 0, 1.2)]),
    # others keep LAN up busy 4 s of the first 10 (40 Mbit at 10 Mbit/s): 6 Mbit/s are left
    "fluid transfers get what others leave": (
        [1.0], [(0, 30, 0, 0, 99), (20, 30, 0, 0, 99)],
        {"traces": 10.0, "link_background": [[0.0], *LAN_UP], "link_data": 40.0},
        "Greedy", None, [(0, 0, 5), (0, 0, 23)]),
    # --- fallbacks
    **{f"fallback {k}": late(*given) for k, given in enumerate([
        (0, 59, 0), (0, 59, 0, False), (1, 59, 1), (1, 59, 2, False), (3, 59, 3), (3, 60, 0),
        (3, 60, 3, True, "at_arrival"), (3, 70, 0, True, "at_arrival"),
        (1, 59, 1, True, "at_submit", 0.5), (1, 59, 0, True, "at_submit", 1.0)])},
    "the rejecting server may be asked again": (
        [100.0, 50.0], [(*SIXTY, 59)], {}, "Greedy x/F", None, [(0, 1, 70)]),
    "the rejecting server may be excluded": (
        [100.0, 50.0], [(*SIXTY, 59)], {}, Policy(max_fallbacks=1, exclude_rejecting=True), None,
        [(1, 1, 110)]),
    # a second there for each of four submissions, to the servers 0, 1, 0 and 0
    "no server is excluded when all have rejected": (
        [100.0, 80.0], [(0, 75, 0, 1000, 5)], {}, Policy(max_fallbacks=3, exclude_rejecting=True),
        None, [(0, 3, 14)]),
    # 800 Mops take 8 or 10 s, and 100 take 1 or 1.25: each is due at 10, the slower one is nearer;
    # there the second would wait until 10
    "deadline passes over a server that has rejected": (
        [100.0, 80.0], [(0, 0, 0, 800, 10), (0, 0, 0, 100, 10)], {},
        Policy("deadline", opt=1.0, max_fallbacks=1, exclude_rejecting=True), EXT,
        [(1, 0, 10), (0, 1, 1)]),
    # --- refusing
    "a function refuses": (
        [100.0], TENS, {}, Policy(lambda view: REFUSE if view.row == 2 else 0), None,
        [(0, 0, 10), (0, 0, 20), (-1, 0, math.inf), (0, 0, 30)]),
    # the second would end at 20, and is due at 15: it is sent back, and refused
    "a function refuses what has fallen back": (
        [100.0], [(0, 0, 0, 1000, 99), (0, 0, 0, 1000, 15)], {},
        Policy(lambda view: REFUSE if view.fallbacks else 0, max_fallbacks=1), None,
        [(0, 0, 10), (-1, 1, math.inf)]),
}  # fmt: skip


@pytest.mark.parametrize("case", HAND)
def test_both_simulators_do_what_is_worked_out_by_hand(case):
    performance, rows, more, policy, reading, wanted = HAND[case]
    env = grid(performance, rows, **more)
    are_the_same(wanted, by_engine(env, policy, reading or Reading()), "engine", 1e-12)
    are_the_same(wanted, by_twin(env, policy, reading or Reading()), "twin", 1e-12)


@pytest.mark.parametrize(("network", "end"), [("packet", 1.3), ("fluid", 1.0)])
def test_packets_pass_four_links_one_by_one(network, end):
    env = Environment(
        servers=pd.DataFrame({"domain": [1], "performance": [1.0]}),
        clients=pd.DataFrame({"domain": [0]}),
        traces=np.full((2, 4, 1), 100.0),
        step=10.0,
        requests=pd.DataFrame(
            {"arrival": [0.0], "client": 0, "send": 100.0, "recv": 0.0, "work": 0.0, "due": 9.0}
        ),
        packet=10.0,
    )
    for run in (by_engine, by_twin):
        are_the_same([(0, 0, end)], run(env, "Greedy", Reading(network=network)), run, 1e-12)


@pytest.mark.parametrize("network", SWITCHES["network"])
def test_a_path_of_no_link_takes_no_time(network):
    """Work of 2 s, while the other's data are under way for 3 s; the twin knows no such path."""
    names, hops = pd.DataFrame({"name": ["there"]}), np.array([0])
    table = {"arrival": 0.0, "client": [0, 1], "send": 30.0, "recv": 5.0, "work": 2.0, "due": 9.0}
    env = Environment(
        servers=pd.DataFrame({"domain": [0], "performance": [1.0]}),
        clients=pd.DataFrame({"domain": [0, 1]}),
        traces=np.full((1, 1), 10.0),
        step=10.0,
        requests=pd.DataFrame(table),
        paths=topology.Topology(names, 2, np.array([0, 0, 0, 1, 1]), hops),
    )
    assert by_engine(env, "Greedy", Reading(network=network)) == [(0, 0, 2), (0, 0, 5)]


#: Instants that are one within 1e-12 of the duration at hand, and the next ones that are not.
TIES = {
    # a background job and a request, both of 10 s; the request comes at 1
    "a background job comes first": (
        lambda t: grid([100.0], [(1, 0, 0, 1000, 99)], background=[[1 + t]], background_work=1e3),
        Policy(), {-2e-11: (0, 21), -5e-12: (0, 21), 0.0: (0, 21), 5e-12: (0, 21), 2e-11: (0, 11)}),
    # estimates of 10 s and of nearly 10 s below a target of 20 s
    "of equally near servers deadline takes the first": (
        lambda t: grid([100.0 / (1 + t), 100.0], [(0, 0, 0, 1000, 20)]), Policy("deadline"),
        {-3e-12: (1, 10), -3e-13: (0, 10), 0.0: (0, 10), 3e-13: (0, 10), 3e-12: (0, 10)}),
}  # fmt: skip


@pytest.mark.parametrize("case", TIES)
def test_instants_that_are_one(case):
    make, policy, wanted = TIES[case]
    for change, (server, end) in wanted.items():
        found = by_engine(make(change), policy, Reading())
        assert found == [(server, 0, pytest.approx(end, abs=1e-9))], change


# ---------------------------------------------------------------- random instances


def mean_of_two(window):
    return window[:, -2:].mean(axis=1)


def least_promised(view):
    return int(np.argmin(view.scheduled / view.performance))


def fussy(view):
    """Refuses what is late, and every fifth."""
    if view.estimates.min() > view.due - view.now or view.row % 5 == 4:
        return REFUSE
    return least_promised(view)


OF_POLICY = {
    "algorithm": (*ALGORITHMS, least_promised),
    "opt": (0.3, 0.5, 0.79, 0.8, 1.0),
    "load_correction": (False, True),
    "pload": (1.0, 0.5, 2.0),
    "max_fallbacks": (0, 1, 3),
    "exclude_rejecting": (False, True),
    "correct_links": (False, True),
    "fallback_slack": (0.0, 2.0, 10.0),
}
OF_READING = {
    **{name: options for name, options in SWITCHES.items() if name != "cost"},
    "predictor": (*SWITCHES["predictor"], mean_of_two),
    "probe": (1.0, 0.5, 5.0, 7.3, 60.0),
}
OF_ENVIRONMENT = {"data": (False, True), "loads": (False, True)}


def draw(table, source, often=0.5):
    """Choose for every switch; the default (the first option) as often as not.

    Each is drawn by its name, so that one switch more moves no other.
    """
    seed, chosen = source.random(), {}
    for name, options in table.items():
        own = random.Random(repr((seed, name)))
        chosen[name] = options[0] if own.random() < often else own.choice(options)
    return chosen


def agree(env, policy, reading):
    case = (env, Policy(**policy), Reading(**reading))
    are_the_same(by_twin(*case), by_engine(*case), case[1:])


def are_the_same(wanted, found, case, rel=1e-9):
    """Server, fallbacks and completion of every request, at the twin and at the engine."""
    for row, (a, b) in enumerate(zip(wanted, found, strict=True)):
        assert a[:2] == b[:2], f"request {row}: wanted {a}, found {b}; {case}"
        assert a[2] == pytest.approx(b[2], rel=rel), f"request {row}; {case}"


def test_every_switch_of_the_engine_is_compared():
    assert set(OF_READING) | {"cost"} == {field.name for field in fields(Reading)}
    words = {field.name for field in fields(NamedRecord)}
    assert set(OF_POLICY) == {field.name for field in fields(Policy)} - words


#: What has to be on for a switch to act.
NEEDS = {
    "opt": {"algorithm": "deadline"},
    "pload": {"load_correction": True},
    "corrected_until": {"load_correction": True},
    "exclude_rejecting": {"max_fallbacks": 3},
}


def alone(name, option, seed):
    """A drawn environment, and a policy and a reading in which a switch can act."""
    source = random.Random(repr((name, seed)))
    policy = {"algorithm": source.choice(list(ALGORITHMS)), "opt": 0.8}
    policy |= {"max_fallbacks": 2, **NEEDS.get(name, {})}
    reading = {"probe": source.choice([0.5, 1.0, 5.0])}
    (policy if name in OF_POLICY else reading)[name] = option
    return draw_environment(source), Policy(**policy), Reading(**reading)


@pytest.mark.parametrize("name", [*OF_POLICY, *OF_READING])
def test_every_option_makes_another_run_and_that_of_the_twin(name):
    """The engine is compared where an option other than the default decides something."""
    usual, *others = (OF_POLICY | OF_READING)[name]
    plain = functools.cache(lambda seed: by_twin(*alone(name, usual, seed)))
    for option in dict.fromkeys(others):
        acted = 0
        for seed in range(40):
            case = alone(name, option, seed)
            wanted = by_twin(*case)
            if wanted != plain(seed):
                are_the_same(wanted, by_engine(*case), (option, seed, *case[1:]))
                acted += 1
            if acted == scale_count(6, LONG, least=2):
                break
        assert acted, f"no instance shows {name}={option}"


@pytest.mark.parametrize("part", range(2))
def test_engine_equals_twin_on_random_combinations(part):
    for seed in range(scale_count(150, LONG)):
        source = random.Random(repr(("any", part, seed)))
        policy, reading = draw(OF_POLICY, source), draw(OF_READING, source)
        env = draw_environment(source, **draw(OF_ENVIRONMENT, source, often=0.7))
        agree(env, policy, reading)


@pytest.mark.parametrize(
    ("drawn", "reading"),
    [
        ({}, {}),
        ({"server_background": "trace"}, {"load": "util", "predictor": "adaptive"}),
        ({"link_background": "data"}, {"network": "packet", "load": "queue"}),
        ({"link_background": "data", "topology": TWO_REGIONS}, {"probe": 7.0}),
    ],
)
def test_engine_equals_twin_on_drawn_environments(drawn, reading):
    sizes = {"work_range": (1e3, 3e5), "packet": 50.0, "link_data": 100.0}
    env = Environment.random(3, 5, horizon=1200.0, domains=4, **sizes, **drawn)
    policy = {"algorithm": "deadline", "opt": 0.8, "max_fallbacks": 2, "load_correction": True}
    agree(env, policy, reading)


SLOW, FAST, ALIKE = (50.0, 100.0), (500.0, 1000.0), (200.0, 200.0)


@pytest.mark.parametrize(("packet", "lan"), [(100.0, SLOW), (0.3, SLOW), (0.3, FAST), (0.3, ALIKE)])
def test_trains_of_packets_meet_as_the_twin_says(packet, lan):
    """Trains longer than a block, over slow and fast first links, alone and in each other's way."""
    sizes = {"data_range": (0.0, 300.0), "work_range": (0.0, 4e3), "wan": (200.0, 400.0)}
    env = Environment.random(1, 2, horizon=300.0, domains=3, lan=lan, packet=packet, **sizes)
    agree(env, {"algorithm": "deadline", "max_fallbacks": 2}, {"network": "packet"})


def test_packets_of_a_path_that_has_a_link_twice():
    """Throughputs are drawn: on round ones packets tie, up to roundings that differ."""
    hops = [(0, 0, [0]), (0, 1, [0, 1, 0, 2]), (1, 0, [2, 1, 2]), (1, 1, [1, 1])]
    names = pd.DataFrame({"name": ["first", "second", "third"]})
    first = np.cumsum([0, *(len(links) for *_, links in hops)])
    paths = topology.Topology(names, 2, first, np.concatenate([links for *_, links in hops]))
    requests = [(t + c / 7, c, 40.0, 60.0, 200.0, t + 9) for c in (0, 1) for t in (0.0, 0.53, 7.1)]
    columns = ["arrival", "client", "send", "recv", "work", "due"]
    env = Environment(
        servers=pd.DataFrame({"domain": [0, 1], "performance": [100.0, 90.0]}),
        clients=pd.DataFrame({"domain": [0, 1]}),
        traces=np.random.default_rng(0).uniform(10, 50, (3, 3)),
        step=4.0,
        requests=pd.DataFrame(sorted(requests), columns=columns),
        paths=paths,
    )
    for packet in (1.0, 0.37, 10.0):
        agree(replace(env, packet=packet), {"max_fallbacks": 1}, {"network": "packet"})


def test_many_servers_of_few_kinds_are_chosen_among_as_the_twin_does():
    """Ties among slow, fast and near servers, whose order changes with every job."""
    for seed in range(scale_count(12, LONG, least=4)):
        source = random.Random(repr(("order", seed)))
        sizes = {"domains": source.choice([3, 12]), "data_range": source.choice([(0, 0), (1, 900)])}
        work = source.choice([(0.0, 0.0), (500.0, 5e4), (1e4, 1e4)])
        drawn = Environment.random(seed, 2, horizon=600.0, work_range=work, **sizes)
        speeds = [source.choice([100, 200, 400]) for _ in drawn.servers.index]
        env = replace(drawn, servers=drawn.servers.assign(performance=speeds), traces=drawn.rates)
        policy = draw({k: v for k, v in OF_POLICY.items() if k != "algorithm"}, source, 0.3)
        reading = draw({k: OF_READING[k] for k in ("load", "probe", "predictor")}, source, 0.7)
        algorithm = source.choice(list(ALGORITHMS))
        agree(env, {**policy, "algorithm": algorithm}, reading)


def test_refusing_is_as_the_twin_says():
    for seed in range(scale_count(80, LONG)):
        source = random.Random(repr(("fussy", seed)))
        env = draw_environment(source, loads=source.random() < 0.3)
        agree(env, {**draw(OF_POLICY, source), "algorithm": fussy}, draw(OF_READING, source, 0.6))


# ---------------------------------------------------------------- both speeds


def same_bytes(first, second):
    for name in ("requests", "attempts"):
        pd.testing.assert_frame_equal(getattr(first, name), getattr(second, name), check_exact=True)


def test_both_speeds_give_the_same_bytes_where_links_stand_still():
    """Every built-in method where links are at 0 for a while, with all mechanisms."""
    rows = [(t, 40, 60, 900, 40 + t) for t in range(0, 12, 2)]
    env = grid([100.0, 60.0], rows, [0.0, 20.0, 0.0, 50.0], step=3.0, background=[[1.0], []])
    for algorithm, network in itertools.product(ALGORITHMS, SWITCHES["network"]):
        policy = Policy(algorithm, 0.9, True, 1.0, 2, True, True)
        for load, predictor in zip(LOADS, PREDICTORS, strict=True):
            reading = Reading(load=load, probe=2.0, predictor=predictor, network=network)
            same_bytes(*(simulate(env, policy, reading, one) for one in ("compiled", "python")))


@pytest.mark.parametrize("network", SWITCHES["network"])
def test_a_run_begins_with_whatever_room_for_events(network, monkeypatch):
    """The heaps grow; uncompiled, since no compiled array has bounds."""
    rows = [(t / 4, 30, 20, 100, 99) for t in range(40)]
    env, reading = grid([100.0, 60.0], rows, packet=10.0), Reading(network=network)
    usual = simulate(env, "Greedy", reading, "python")
    monkeypatch.setattr(CORES["bricks"].python.state, "FIRST_EVENTS", 1)
    same_bytes(usual, simulate(env, "Greedy", reading, "python"))


def test_background_jobs_of_one_size_are_served_as_jobs_that_each_have_it():
    """Jobs of one size are mostly skipped, jobs that each have a size are served one by one."""
    for seed, load in itertools.product(range(scale_count(12)), LOADS):
        source = random.Random(seed)
        env, reading = draw_environment(source), Reading(load=load, probe=2.0)
        times = [sorted(source.randint(0, 400) / 10 for _ in range(300)) for _ in env.servers.index]
        size = source.choice([1.0, 5.0, 12.3])
        busy = [
            replace(env, background=times, background_work=work)
            for work in (size, [[size] * len(row) for row in times])
        ]
        same_bytes(*(simulate(one, "Greedy", reading) for one in busy))


def test_other_users_data_take_the_same_of_links_at_both_speeds():
    env = Environment.random(3, 60.0, horizon=120.0, domains=2, link_background="data")
    core = CORES["bricks"]
    assert 1000 < len(env.link_background.times) <= MAX_UNCOMPILED_ARRIVALS
    left = [
        modules.network.available_throughput(env.rates, env.step, env.link_background)
        for modules in (core.compiled, core.python)
    ]
    np.testing.assert_array_equal(*left)
    np.testing.assert_array_equal(env.available_rates, left[0])


def test_what_a_users_function_raises_keeps_its_traceback():
    """Functions are called directly at both speeds: the error is theirs, with its own lines."""

    def fails(view):
        return {}[view.row]

    env = grid([100.0], [(0, 10, 10, 100, 99)])
    blind = Reading(predictor=lambda values: {}[len(values)])
    own = [(Policy(fails), Reading()), (Policy(), blind)]
    for case, engine in itertools.product(own, ("compiled", "python")):
        with pytest.raises(InputError, match="KeyError") as caught:
            simulate(env, *case, engine)
        cause = caught.value.__cause__
        assert isinstance(cause, KeyError)
        assert Path(traceback.extract_tb(cause.__traceback__)[-1].filename) == Path(__file__)


def test_auto_runs_an_hour_uncompiled_and_a_day_compiled():
    """An hour of the paper's servers takes .2 s uncompiled, a day 3 s."""
    hour, day = (
        uncompiled_microseconds(
            Environment.random(0, 60.0, horizon=3600.0 * hours).arrays,
            configure(Policy(), Reading()),
        )
        for hours in (1, 24)
    )
    assert hour <= CORES["bricks"].work < day
