"""The engine of paper B against hand cases and an event-by-event twin, switch by switch."""

import functools
import itertools
import random
import traceback
from dataclasses import fields, replace
from pathlib import Path

import networkx as nx
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
from tests.helpers.bricks_environments import TWO_REGIONS, grid
from tests.helpers.scale import LONG, scale_count
from tests.twins import bricks as twin

# ---------------------------------------------------------------- two simulators, one shape


def by_engine(env, policy, reading):
    return told_by(simulate(env, policy, reading=reading))


def told_by(out):
    table = out.requests
    return list(zip(table["server"], table["fallbacks"], table["completion"], strict=True))


def by_twin(env, policy, reading):
    return told_of(twin.simulate(env, find_policy(policy), reading))


def told_of(requests):
    return [(r.server, r.fallbacks, r.completion) for r in requests]


SIMULATORS = pytest.mark.parametrize("run", [by_engine, by_twin])


# ---------------------------------------------------------------- hand cases (exact)


@SIMULATORS
def test_one_request_on_idle_links(run):
    env = grid([300.0], [(0, 750, 1500, 300_000, 1030)])
    assert run(env, Policy("greedy"), Reading()) == [(0, 0, 1030.0)]
    out = simulate(env, Policy("greedy"))
    assert not out.requests["missed"].any()
    late = grid([300.0], [(0, 750, 1500, 300_000, 1029.999)])
    assert simulate(late, Policy("greedy")).failure_rate > 0


@SIMULATORS
@pytest.mark.parametrize(
    ("time", "data", "end"), [(0, 1250, 15.0), (0, 1000, 10.0), (5, 600, 12.0), (25, 100, 27.0)]
)
@pytest.mark.parametrize("steps", [2, 9])
def test_transfer_follows_its_trace_and_holds_the_last_value(run, time, data, end, steps):
    row = [100.0] + [50.0] * (steps - 1)
    there = grid([1.0], [(time, data, 0, 0, 99)], row)
    assert run(there, "Greedy", Reading()) == [(0, 0, end)]
    back = grid([1.0], [(time, 0, data, 0, 99)], row)
    assert run(back, "Greedy", Reading()) == [(0, 0, end)]


@SIMULATORS
@pytest.mark.parametrize(
    ("policy", "server"),
    [
        (Policy("deadline", opt=1.0), 1),
        (Policy("deadline", opt=0.8), 1),  # Diff = 0 qualifies
        (Policy("deadline", opt=0.79), 2),
        (Policy("deadline", opt=0.5), 3),
        (Policy("deadline", opt=0.3), 3),  # none fits
        (Policy("greedy"), 3),
    ],
)
@pytest.mark.parametrize("start", [0.0, 0.1, 86_399.7])
def test_deadline_takes_the_slowest_that_fits(run, policy, server, start):
    performance = [100.0, 200.0, 300.0, 500.0]
    env = grid(performance, [(start, 750, 750, 60_000, start + 400)])
    time = 20 + 60_000 / performance[server]
    ((chosen, fallbacks, completion),) = run(env, policy, Reading())
    assert (chosen, fallbacks) == (server, 0)
    assert completion == pytest.approx(start + time, rel=1e-12)


@SIMULATORS
@pytest.mark.parametrize(
    ("correct", "done"),
    [(False, [(0, 100.0), (0, 200.0), (0, 300.0)]), (True, [(0, 100.0), (0, 200.0), (1, 202.0)])],
)
def test_load_correction_sees_what_a_blind_monitor_does_not(run, correct, done):
    env = grid([200.0, 100.0], [(t, 0, 0, 20_000, 999) for t in range(3)])
    policy = Policy("greedy", load_correction=correct, pload=1)
    found = run(env, policy, Reading(load="ext"))
    assert [(server, end) for server, _, end in found] == done


@SIMULATORS
def test_background_jobs_wait_in_the_same_line(run):
    env = grid([100.0], [(10.2, 0, 0, 100, 99)], background=[[9.9, 10.0]], background_work=50.0)
    ((_, _, end),) = run(env, "Greedy", Reading())
    assert end == pytest.approx(11.9, rel=1e-12)


@SIMULATORS
@pytest.mark.parametrize(("network", "end"), [("packet", 1.3), ("fluid", 1.0)])
def test_packets_pass_four_links_one_by_one(run, network, end):
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
    ((_, _, done),) = run(env, "Greedy", Reading(network=network))
    assert done == pytest.approx(end, rel=1e-12)


# Input there after 10 s, 40 s of work, result back in 10 s: 60 s, of which 50 are left at the
# arrival. Refused with a deadline below 60; counted from the arrival, T_send is in it twice,
# so that below 70. The one server is chosen again and again.
@SIMULATORS
@pytest.mark.parametrize(
    ("most", "strict", "time", "deadline", "fallbacks"),
    [
        (0, True, "at_submit", 59, 0),
        (0, False, "at_submit", 59, 0),
        (1, True, "at_submit", 59, 1),
        (1, False, "at_submit", 59, 2),
        (3, True, "at_submit", 59, 3),
        (3, True, "at_submit", 60, 0),
        (3, True, "at_arrival", 60, 3),
        (3, True, "at_arrival", 70, 0),
    ],
)
def test_fallback_counts(run, most, strict, time, deadline, fallbacks):
    env = grid([100.0], [(0, 750, 750, 4_000, deadline)])
    reading = Reading(fallback_strict=strict, fallback_time=time)
    policy = Policy("greedy", max_fallbacks=most)
    ((_, found, end),) = run(env, policy, reading)
    assert (found, end) == (fallbacks, pytest.approx(60.0 + 10 * fallbacks, rel=1e-12))


@SIMULATORS
@pytest.mark.parametrize(("exclude", "server"), [(False, 0), (True, 1)])
def test_the_rejecting_server_may_be_excluded(run, exclude, server):
    env = grid([100.0, 50.0], [(0, 750, 750, 4_000, 59)])
    policy = Policy("greedy", max_fallbacks=1, exclude_rejecting=exclude)
    ((found, fallbacks, _),) = run(env, policy, Reading())
    assert (found, fallbacks) == (server, 1)


# A job of 0.7 s from 0.1 on ends at the float before 0.8, where a probe, a tolerance early, still
# counts it until 0.8: at 1.6 it has 1e-16 s less than it had, and no server is busy less than 0.
@SIMULATORS
def test_no_server_is_busy_for_less_than_no_time(run):
    env = grid([100.0], [(2, 0, 0, 100, 9)], background=[[0.1]], background_work=70.0)
    reading = Reading(load="util", probe=0.8, predictor=lambda values: values[:, -1])
    assert run(env, "Greedy", reading) == [(0, 0, 3.0)]


# ---------------------------------------------------------------- random instances


def draw_environment(source, data=False, loads=False):
    """A small environment: equal servers, equal times and exact fits are frequent."""
    pick, whole = source.choice, source.randint
    domains = whole(1, 3)
    general = source.random() < 0.3
    routers = whole(1, 3)
    parents = [whole(0, router - 1) for router in range(1, routers)]
    parents += [whole(0, routers - 1) for _ in range(domains)]
    tree = nx.Graph(enumerate(parents, start=1))
    made = topology.from_graph(tree, range(routers, routers + domains)) if general else None
    step, steps = pick([0.1, 1.0, 2.5, 10.0]), whole(1, 40)
    levels = pick([[50], [10, 20, 50], [5, 50, 51.3], [0, 10, 100]])
    shape = (len(made.links), steps) if general else (domains, 4, steps)
    traces = np.array([pick(levels) for _ in range(int(np.prod(shape)))], float).reshape(shape)
    traces[..., -1] = np.maximum(traces[..., -1], 10)
    servers = [(whole(0, domains - 1), pick([50, 100, 100, 200, 300])) for _ in range(whole(1, 5))]
    clients = [whole(0, domains - 1) for _ in range(whole(1, 3))]
    now, rows = 0.0, []
    for _ in range(whole(1, 14)):
        now += pick([0, 0, whole(0, 40) / 4, source.random() * 5])
        send, recv = (pick([0, 10, 100, 25.5, whole(0, 400) / 4]) for _ in range(2))
        work = pick([0, 100, 1000, 1000, whole(1, 4000)])
        best = (send + recv) / 50 + work / pick(servers)[1]
        deadline = now + best * pick([0.5, 1, 1.25, 2, 3, 5])
        rows.append((now, whole(0, len(clients) - 1), send, recv, work, deadline))
    columns = ["arrival", "client", "send", "recv", "work", "due"]
    background, background_work = arrivals_of(source, len(servers), 50)
    more = {}
    if data:
        more["link_background"], more["link_data"] = arrivals_of(source, traces.size // steps, 10)
    if loads:
        more["load_traces"] = np.array(
            [[pick([0, 0.1, 1, 0.25]) for _ in range(steps)] for _ in servers]
        )
    return Environment(
        servers=pd.DataFrame(servers, columns=["domain", "performance"]),
        clients=pd.DataFrame({"domain": clients}),
        traces=traces,
        step=step,
        requests=pd.DataFrame(rows, columns=columns),
        background=background,
        background_work=background_work,
        server_load=pick([0.0, 0.1, 0.3]),
        paths=made,
        packet=pick([1.0, 10.0, 7.5, 64.0]),
        **more,
    )


def arrivals_of(source, queues, size):
    """Arrival times per queue, many of them at whole seconds, and sizes."""
    horizon, gap = source.choice([0, 10, 100]), source.choice([0.5, 2, 10])
    count = int(horizon / gap)
    grid = source.random() < 0.5
    draws = [[source.random() * horizon for _ in range(count)] for _ in range(queues)]
    times = [sorted(float(round(t)) if grid else t for t in row) for row in draws]
    if source.random() < 0.5:
        return times, float(size)
    return times, [[float(source.randint(0, 2 * size)) for _ in row] for row in times]


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


def are_the_same(wanted, found, case):
    """Server, fallbacks and completion of every request, at the twin and at the engine."""
    for row, (a, b) in enumerate(zip(wanted, found, strict=True)):
        assert a[:2] == b[:2], f"request {row}: twin {a}, engine {b}; {case}"
        assert a[2] == pytest.approx(b[2], rel=1e-9), f"request {row}; {case}"


def test_every_switch_of_the_engine_is_compared():
    assert set(OF_READING) | {"cost"} == {field.name for field in fields(Reading)}
    words = {field.name for field in fields(NamedRecord)}
    assert set(OF_POLICY) == {field.name for field in fields(Policy)} - words


TABLES = {"policy": OF_POLICY, "reading": OF_READING, "world": OF_ENVIRONMENT}
ALONE = [
    (kind, name, option)
    for kind, table in TABLES.items()
    for name, options in table.items()
    for option in dict.fromkeys(options)
]


def told(value):
    return getattr(value, "__name__", str(value))


#: What has to be on for a switch to act.
NEEDS = {
    "opt": {"algorithm": "deadline"},
    "pload": {"load_correction": True},
    "corrected_until": {"load_correction": True},
    "exclude_rejecting": {"max_fallbacks": 3},
}


def alone(name, seed):
    """A drawn environment and a base of switches on which one of them can act."""
    source = random.Random(repr((name, seed)))
    policy = {"algorithm": source.choice(list(ALGORITHMS)), "opt": 0.8}
    policy |= {"max_fallbacks": 2, **NEEDS.get(name, {})}
    return source, policy, {"probe": source.choice([0.5, 1.0, 5.0])}


@pytest.mark.parametrize(("kind", "name", "option"), ALONE, ids=told)
def test_engine_equals_twin_switch_by_switch(kind, name, option):
    for seed in range(scale_count(6, LONG)):
        source, policy, reading = alone(name, seed)
        base = {"policy": policy, "reading": reading, "world": {}}
        base[kind][name] = option
        env = draw_environment(source, **base["world"])
        agree(env, base["policy"], base["reading"])


@functools.cache
def run_with(kind, name, option, seed):
    """A run of the twin with one option."""
    source, policy, reading = alone(name, seed)
    base = {"policy": policy, "reading": reading}
    base[kind][name] = option
    case = (Policy(**base["policy"]), Reading(**base["reading"]))
    return by_twin(draw_environment(source), *case)


def changes(kind, name, option, seed):
    """Whether an option other than the default makes another run."""
    usual = TABLES[kind][name][0]
    return run_with(kind, name, usual, seed) != run_with(kind, name, option, seed)


@pytest.mark.parametrize(
    ("kind", "name", "option"),
    [case for case in ALONE if case[0] != "world" and case[2] != TABLES[case[0]][case[1]][0]],
    ids=told,
)
def test_every_option_acts_on_these_instances(kind, name, option):
    assert any(changes(kind, name, option, seed) for seed in range(40))


@pytest.mark.parametrize("block", range(10))
def test_engine_equals_twin_on_random_combinations(block):
    for seed in range(scale_count(30, LONG, least=3)):
        source = random.Random(repr(("any", block, seed)))
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


@pytest.mark.parametrize(
    ("packet", "lan"), [(100.0, SLOW), (2.0, FAST), *((0.3, lan) for lan in (SLOW, FAST, ALIKE))]
)
def test_trains_of_packets_meet_as_the_twin_says(packet, lan):
    """Trains longer than a block, over slow and fast first links, alone and in each other's way."""
    sizes = {"data_range": (0.0, 300.0), "work_range": (0.0, 4e3), "wan": (200.0, 400.0)}
    env = Environment.random(1, 2, horizon=600.0, domains=3, lan=lan, packet=packet, **sizes)
    agree(env, {"algorithm": "deadline", "max_fallbacks": 2}, {"network": "packet"})


@pytest.mark.parametrize("packet", [1.0, 0.37, 10.0])
def test_packets_of_a_path_that_has_a_link_twice(packet):
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
        packet=packet,
    )
    agree(env, {"max_fallbacks": 1}, {"network": "packet"})


@pytest.mark.parametrize("block", range(4))
def test_many_servers_of_few_kinds_are_chosen_among_as_the_twin_does(block):
    """Ties among slow, fast and near servers, whose order changes with every job."""
    for seed in range(scale_count(3, LONG, least=1)):
        source = random.Random(repr(("order", block, seed)))
        sizes = {"domains": source.choice([3, 12]), "data_range": source.choice([(0, 0), (1, 900)])}
        work = source.choice([(0.0, 0.0), (500.0, 5e4), (1e4, 1e4)])
        drawn = Environment.random(seed, 2, horizon=600.0, work_range=work, **sizes)
        speeds = [source.choice([100, 200, 400]) for _ in drawn.servers.index]
        env = replace(drawn, servers=drawn.servers.assign(performance=speeds), traces=drawn.rates)
        policy = draw({k: v for k, v in OF_POLICY.items() if k != "algorithm"}, source, 0.3)
        reading = draw({k: OF_READING[k] for k in ("load", "probe", "predictor")}, source, 0.7)
        algorithm = source.choice(list(ALGORITHMS))
        agree(env, {**policy, "algorithm": algorithm}, reading)


@pytest.mark.parametrize("block", range(8))
def test_refusing_is_as_the_twin_says(block):
    for seed in range(scale_count(10, LONG, least=4)):
        source = random.Random(repr(("fussy", block, seed)))
        env = draw_environment(source, loads=source.random() < 0.3)
        policy = Policy(**{**draw(OF_POLICY, source), "algorithm": fussy})
        reading = Reading(**draw(OF_READING, source, 0.6))
        out, wanted = simulate(env, policy, reading), twin.simulate(env, policy, reading)
        out.check()
        is_refused = out.requests["server"] < 0
        assert is_refused.tolist() == [one.status == "refused" for one in wanted]
        are_the_same(told_of(wanted), told_by(out), (policy, reading))


# ---------------------------------------------------------------- both speeds


def same_bytes_at_both_speeds(env, policy, reading):
    """The uncompiled core gives what the compiled one gives, without a warning of numpy's."""
    fast, plain = (simulate(env, policy, reading, engine) for engine in ("compiled", "python"))
    pd.testing.assert_frame_equal(fast.requests, plain.requests, check_exact=True)
    pd.testing.assert_frame_equal(fast.attempts, plain.attempts, check_exact=True)


def test_both_speeds_give_the_same_bytes_where_links_stand_still():
    """Every built-in method where links are at 0 for a while, with all mechanisms."""
    rows = [(t, 40, 60, 900, 40 + t) for t in range(0, 12, 2)]
    env = grid([100.0, 60.0], rows, [0.0, 20.0, 0.0, 50.0], step=3.0, background=[[1.0], []])
    for algorithm, network in itertools.product(ALGORITHMS, SWITCHES["network"]):
        policy = Policy(algorithm, 0.9, True, 1.0, 2, True, True)
        for load, predictor in zip(LOADS, PREDICTORS, strict=True):
            reading = Reading(load=load, probe=2.0, predictor=predictor, network=network)
            same_bytes_at_both_speeds(env, policy, reading)


@pytest.mark.parametrize("load", LOADS)
def test_background_jobs_of_one_size_are_served_as_jobs_that_each_have_it(load):
    """Jobs of one size are mostly skipped, jobs that each have a size are served one by one."""
    for seed in range(scale_count(12)):
        source = random.Random(seed)
        drawn = draw_environment(source)
        times = [
            sorted(source.randint(0, 400) / 10 for _ in range(300)) for _ in drawn.servers.index
        ]
        size = source.choice([1.0, 5.0, 12.3])
        each = [[size] * len(row) for row in times]
        fast, plain = (
            simulate(
                replace(drawn, background=times, background_work=sizes),
                "Greedy",
                Reading(load=load, probe=2.0),
            )
            for sizes in (size, each)
        )
        pd.testing.assert_frame_equal(fast.requests, plain.requests, check_exact=True)
        pd.testing.assert_frame_equal(fast.attempts, plain.attempts, check_exact=True)


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


@pytest.mark.parametrize("engine", ["compiled", "python"])
def test_what_a_users_function_raises_keeps_its_traceback(engine):
    """Functions are called directly at both speeds: the error is theirs, with its own lines."""

    def fails(view):
        return {}[view.row]

    env = grid([100.0], [(0, 10, 10, 100, 99)])
    for policy, reading in (
        (Policy(fails), Reading()),
        (Policy(), Reading(predictor=lambda values: {}[len(values)])),
    ):
        with pytest.raises(InputError, match="KeyError") as caught:
            simulate(env, policy, reading, engine)
        cause = caught.value.__cause__
        assert isinstance(cause, KeyError)
        assert Path(traceback.extract_tb(cause.__traceback__)[-1].filename) == Path(__file__)


@pytest.mark.parametrize(("hours", "is_small"), [(1, True), (24, False)])
def test_auto_runs_an_hour_uncompiled_and_a_day_compiled(hours, is_small):
    """An hour of the paper's servers takes .2 s uncompiled, a day 3 s."""
    env = Environment.random(0, 60.0, horizon=3600.0 * hours).arrays
    work = uncompiled_microseconds(env, configure(Policy(), Reading()))
    assert (work <= CORES["bricks"].work) is is_small
