"""The heuristics of paper S against hand cases, their twin, brute force and the programs."""

import itertools
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.compiled import CORES, Core
from dlsim.errors import InputError, ScheduleError
from dlsim.steady import (
    METHODS,
    SUFFIXES,
    Method,
    Platform,
    Reading,
    ReducedProgram,
    bound,
    greedy,
    rounding,
    solve,
)
from dlsim.steady.greedy import run_greedy
from dlsim.steady.rounding import (
    RandomisedRounding,
    round_connections_down,
    round_down,
    round_randomly,
    split_connections,
)
from dlsim.steady.samples import sample_platform
from dlsim.validate import child_seed
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import ENOUGH, LONG, scale_count
from tests.helpers.steady_platforms import (
    alone,
    as_instance,
    draw_extreme,
    draw_platform,
    light_data,
    pair,
    platforms,
    shared_link,
)
from tests.twins import steady_heuristics as twin
from tests.verification.benchmarks.steady_peers import Program

#: What rounding explains, relative, where the linear programs are solved to 1e-9.
ROUNDING = 1e-7
READINGS = {
    "printed, rest": Reading(stuck="rest"),
    "prose": Reading(local_amount="prose"),
    "printed, prose": Reading(),
}

CASES = {"A": pair(), "C": pair((10, 0)), "D": alone(), "E": shared_link()}
#: Objective of each method, and of greedy under each reading. LPRR draws: see its law.
HAND = {
    "A": {"LP": 6, "MILP": 6, "LPR": 5, "LPRG": 6, "G": (4, 6, 4)},
    "C": {"LP": 5, "MILP": 5, "LPR": 3, "LPRG": 5, "G": (0, 4, 4)},
    "D": {"LP": 1, "MILP": 1, "LPR": 1, "LPRG": 1, "G": (1, 1, 1)},
    "E": {"LP": 2, "MILP": 0, "LPR": 0, "LPRG": 0, "G": (0, 0, 0)},
}
#: Probability of each objective of LPRR.
LAWS = {"A": {5: 2 / 3, 6: 1 / 3}, "C": {3: 1 / 3, 5: 2 / 3}, "D": {1: 1}, "E": {0: 1}}

# ---------------------------------------------------------------- hand cases


@pytest.mark.parametrize("case", CASES)
def test_hand_case(case):
    of_greedy = HAND[case]["G"]
    for reading, value in zip(READINGS.values(), of_greedy, strict=True):
        assert solve(CASES[case], "G", reading=reading).objective == pytest.approx(value)
    for method, value in (HAND[case] | {"G": of_greedy[-1]}).items():
        suffixes = ("", "+least") if "least" in METHODS[method].allowed_suffixes else ("",)
        for suffix in suffixes:
            found = solve(CASES[case], method + suffix)
            assert found.objective == pytest.approx(value, abs=1e-8), found.name


def test_greedy_divides_a_lone_cluster():
    """Applications of one cluster that nothing else limits share it: 12 / (1 + 2 * 3 + 1)."""
    links = pd.DataFrame({"bandwidth": [], "max_connect": []})
    p = Platform([12], [1], links, {}, [1, 3, 1], [1, 2, 1], [1, 1, 1], origin=[0, 0, 0])
    for reading in READINGS.values():
        np.testing.assert_allclose(solve(p, "G", reading).values, 12 / 8, rtol=1e-8)


class Script:
    """A generator that replays choices and then takes the first of every new one."""

    def __init__(self, script):
        self.script, self.widths = list(script), []

    def _choice(self, width):
        at = len(self.widths)
        self.widths.append(width)
        if at == len(self.script):
            self.script.append(0)
        return self.script[at]

    def integers(self, high):
        return self._choice(high)

    def random(self):
        return (1.0, 0.0)[self._choice(2)]


def outcomes(p, batch=1, least=False):
    """Probability of every objective of LPRR, by trying every draw."""
    law, waiting = defaultdict(float), [[]]
    while waiting:
        rng = Script(waiting.pop())
        given_length = len(rng.script)
        done = round_randomly(p, rng, batch, least)
        for at in range(given_length, len(rng.script)):
            waiting += [[*rng.script[:at], c] for c in range(1, rng.widths[at])]
        chance = 1.0
        for at, (_, used, _) in enumerate(done.order[: len(rng.widths) // 2]):
            _, fraction = split_connections(np.array(used))
            chance /= rng.widths[2 * at]
            chance *= fraction if rng.script[2 * at + 1] else 1 - fraction
        if chance > 0:
            work = (done.work * p.inverse_priority).sum(axis=1)
            law[round(float(work[p.is_counted].min()), 6)] += float(chance)
    return dict(law)


@pytest.mark.parametrize("case", CASES)
def test_law_of_lprr(case):
    for least in (False, True):
        assert outcomes(CASES[case], least=least) == pytest.approx(LAWS[case], abs=1e-6)


# ------------------------------------------------------------- twin of greedy


def same_steps(p, reading):
    """Compare the steps of both kernels and of the twin; return their number."""
    alpha, beta, steps = twin.greedy(as_instance(p), reading.local_amount, reading.stuck)
    ours = run_greedy(p, reading, traced=len(steps) + 1, engine="compiled")
    plain = run_greedy(p, reading, traced=len(steps) + 1, engine="python")
    pd.testing.assert_frame_equal(ours.trace, plain.trace, check_exact=True)
    assert (ours.work.tobytes(), ours.steps) == (plain.work.tobytes(), plain.steps)
    assert ours.connections.tolist() == beta
    np.testing.assert_allclose(ours.work, np.array(alpha, float), rtol=1e-9, atol=1e-9)
    table = ours.trace
    assert list(zip(table["application"], table["cluster"], strict=True)) == [
        step[:2] for step in steps
    ]
    units = np.array([float(step[2]) for step in steps])
    np.testing.assert_allclose(table["amount"], units, rtol=1e-9, atol=1e-9)
    return len(steps)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", READINGS)
def test_greedy_takes_the_steps_of_its_twin(name, exact):
    steps = 0
    count = scale_count(60)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        clusters = int(rng.integers(1, 6))
        apps = None if rng.random() < 0.6 else int(rng.integers(1, 7))
        steps += same_steps(draw_platform(seed, exact, clusters, apps), READINGS[name])
    assert steps > 5 * count


@pytest.mark.parametrize("name", READINGS)
def test_lprg_reclaims_what_its_twin_does(name):
    moved = 0
    for seed, start in itertools.product(range(scale_count(25)), ("lpr", "zero")):
        p = draw_platform(seed, seed % 2 == 0)
        reading = replace(READINGS[name], lprg_start=start)
        program = ReducedProgram(p)
        program.solve()
        work, connections = round_connections_down(p, program.work, program.connections_used)
        plain = as_instance(p)
        alpha = [[Fraction(float(x)) for x in row] for row in program.work]
        kept, beta = twin.round_off(plain, alpha)
        assert connections.tolist() == beta
        np.testing.assert_allclose(work, np.array(kept, float), rtol=1e-12, atol=1e-12)
        held = [[Fraction(float(x)) for x in row] for row in work]
        alpha, beta, steps = twin.greedy(
            plain, reading.local_amount, reading.stuck, (held, beta), start == "lpr"
        )
        ours = run_greedy(p, reading, (work, connections), traced=len(steps) + 1)
        moved += len(steps)
        assert ours.steps == len(steps)
        assert ours.connections.tolist() == beta
        np.testing.assert_allclose(ours.work, np.array(alpha, float), rtol=1e-7, atol=1e-7)
    assert moved > 40


#: Three tenths and their sum as floats, which differ by a rounding.
TENTHS, SUM_OF_TENTHS = 0.3, 0.1 + 0.1 + 0.1
KERNELS = CORES["steady"].python.greedy


@pytest.mark.parametrize(
    ("shares", "priorities", "selected"),
    [
        ([TENTHS, SUM_OF_TENTHS], [1, 2], 1),
        ([SUM_OF_TENTHS, TENTHS], [1, 1], 0),
        ([TENTHS, SUM_OF_TENTHS], [1, 1], 0),
        ([0.1, TENTHS], [1, 2], 0),
    ],
)
def test_shares_that_differ_by_a_rounding_are_a_tie(shares, priorities, selected):
    remaining = SimpleNamespace(is_active=[True, True], share=shares)
    network = SimpleNamespace(largest_priority=priorities)
    assert KERNELS.select_application(network, remaining) == selected


@pytest.mark.parametrize(
    ("shares", "active", "available", "amount"),
    [
        ([0.0, 0.0], [True, True], 4.0, 2.0),
        ([0.0, 0.0], [True, False], 4.0, 4.0),
        ([1.0, 3.0], [True, True], 1.0, 1.0),  # both at 2.5 would take from the second
        ([1.0, 1.0], [True, True], 1e-30, 1e-30),  # less than a rounding of the shares
        ([1.0 + 1e-13, 1.0], [True, True], 1e-14, 1e-14),  # a tie: the other is not served first
    ],
)
def test_what_is_left_at_a_home_brings_its_applications_to_equal_shares(
    shares, active, available, amount
):
    ones = np.ones(2)
    network = SimpleNamespace(origin=[0, 0], work_per_unit=ones, priority=np.ones((2, 1)))
    remaining = SimpleNamespace(benefit=[available], is_active=active, share=np.array(shares))
    assert KERNELS.equal_rest(network, remaining, 0) == amount


def test_several_connections_at_once_are_as_many_as_the_work_needs():
    """8 connections of 1 would carry 4 units; the other cluster computes 3.25, of 2 data each."""
    p = replace(pair((10.0, 3.25), bandwidth=1, most=9), data=[2, 2])
    network = greedy.build_network(p)
    nothing = np.zeros((2, 2)), np.zeros((2, 2), dtype=int)
    remaining = greedy.subtract_allocation(p, network, *nothing)
    assert KERNELS.bundle_connections(network, remaining, 0, 1, 8.0) == (3.25, 7)


def test_a_load_of_no_data_passes_a_connection_whole():
    p = replace(pair((0, 10), priority=(1, 0)), data=[0, 1])
    assert [solve(p, name).objective for name in ("LP", "G")] == pytest.approx([10, 10])


def test_greedy_ends_where_steps_are_tiny():
    """Steps of the printed size would be 2e12."""
    p = pair((1e6, 1e6), bandwidth=1e-6)
    found = run_greedy(p, Reading())
    assert found.steps < 2**22
    assert found.work.sum() == pytest.approx(2e6)


@pytest.mark.parametrize("name", READINGS)
def test_greedy_goes_on_compiled_where_it_stops_uncompiled(monkeypatch, name):
    for seed, turns in itertools.product(range(3), (0, 1, 2, 7, 1000)):
        monkeypatch.setitem(CORES, "steady", Core("dlsim.steady.core", 10**6, 3))
        p = draw_platform(seed, seed % 2 == 0, clusters=3)
        whole = run_greedy(p, READINGS[name], traced=100, engine="python")
        monkeypatch.setattr(greedy, "UNCOMPILED_TURNS", turns * p.clusters)
        parts = run_greedy(p, READINGS[name], traced=100)
        pd.testing.assert_frame_equal(whole.trace, parts.trace, check_exact=True)
        assert (whole.work.tobytes(), whole.steps) == (parts.work.tobytes(), parts.steps)


def uneven_platform(seed):
    """Two to four clusters whose numbers lie up to 1e18 apart."""
    rng = np.random.default_rng(seed)
    clusters, links = rng.integers(2, 5), rng.integers(1, 5)

    def draw(n, low, high):
        return rng.integers(low, high, n) * 10.0 ** rng.choice([0, 0, 0, 0, -9, 9, -6, 6], n)

    table = pd.DataFrame({"bandwidth": draw(links, 1, 6), "max_connect": rng.integers(1, 8, links)})
    table.loc[rng.integers(0, links), "max_connect"] = 10 ** rng.integers(0, 13)
    routes = {
        (k, to): rng.choice(links, rng.integers(1, min(links, 3) + 1), replace=False).tolist()
        for k in range(clusters)
        for to in range(clusters)
        if k != to and rng.random() < 0.8
    }
    speed, gateway = draw(clusters, 0, 50), draw(clusters, 1, 50)
    priority = [1, *rng.integers(0, 4, clusters - 1)]
    work, data = draw(clusters, 1, 2), draw(clusters, 1, 2)
    return Platform(speed, gateway, table, routes, priority, work, data)


@pytest.mark.parametrize(
    ("method", "name"), [*(("G", name) for name in READINGS), ("LPRG", "printed, prose")]
)
def test_greedy_ends_on_very_uneven_platforms(method, name):
    for seed in range(scale_count(20, LONG)):
        p = uneven_platform(seed)
        a = solve(p, method, reading=READINGS[name])
        a.check()
        assert a.objective <= bound(p) * (1 + ROUNDING)


def test_many_steps_at_once_are_nearly_as_fair():
    links = pd.DataFrame({"bandwidth": [3e-12, 4e-12], "max_connect": [2, 2]})
    routes = {(0, 2): [0], (1, 2): [1], (2, 0): [0], (2, 1): [1]}
    p = Platform([30.0, 7.0, 20.0], [1e3] * 3, links, routes, [1, 1, 1], [1, 2, 1], [1, 1, 1])
    found = run_greedy(p, Reading())
    assert found.work.sum(axis=1) == pytest.approx([30, 3.5, 20], rel=1e-6)


# ------------------------------------------------------- twin of LPRR, programs


class Recorded(ReducedProgram):
    """A program that keeps every solution with the number of routes fixed before."""

    def solve(self, least_connections=False):
        value = super().solve(least_connections)
        self.__dict__.setdefault("log", {})[int(self.fixed.sum())] = (value, self.work)
        return value

    def narrow(self):
        narrow = super().narrow()
        narrow.log = self.log
        return narrow


@pytest.fixture
def recorded(monkeypatch):
    """Let LPRR keep every solution of its program."""

    def solve_recorded(p, least):
        program = Recorded(p)
        program.solve(least)
        return program

    monkeypatch.setattr(rounding, "relaxed_program", solve_recorded)


@pytest.mark.parametrize(("batch", "least"), [(1, False), (3, True)])
@pytest.mark.usefixtures("recorded")
def test_lprr_rounds_as_its_twin(batch, least):
    """The last solution has the value of the full program with every connection fixed."""
    skipped = fixed = 0
    for seed in range(scale_count(30, ENOUGH)):
        p = draw_platform(seed, seed % 2 == 0, clusters=5)
        done = round_randomly(p, np.random.default_rng(seed), batch, least)
        log = done.program.log
        plain, at_all, program = as_instance(p), [], Program(p)

        def relaxed(values, at_all=at_all, log=log, program=program):
            at_all.append(len(values))
            last = max(n for n in log if n <= len(values))
            value, work = log[last]
            best = program.solve(values).objective
            assert value == pytest.approx(best, rel=ROUNDING, abs=ROUNDING)
            return [[Fraction(float(x)) for x in row] for row in work]

        values, _, order = twin.randomised(plain, relaxed, np.random.default_rng(seed), batch)
        pairs = [tuple(map(int, route)) for route in p.tables.pairs]
        assert [(pairs[r], v) for r, _, v in done.order] == order
        assert {route: done.connections[route] for route in pairs} == values
        got = (done.work * p.inverse_priority).sum(axis=1)[p.is_counted].min()
        assert got == pytest.approx(program.solve(values).objective, rel=ROUNDING, abs=ROUNDING)
        skipped += len(at_all) - len(log)
        fixed += len(order)
    assert fixed > 30
    assert skipped > 0


@pytest.mark.parametrize("kind", ["Tiers", "random"])
def test_lprr_starts_from_the_vertex_of_the_relaxation(kind):
    """Before a route is fixed, and after the program is solved again: work and connections.

    The twin is the program of all cells, solved once. Sizes are those around 2,048 cells, where
    LPRR once went over to another vertex.
    """
    for number, clusters in enumerate(
        np.linspace(40, 50, scale_count(14, LONG, least=2), dtype=int)
    ):
        p = sample_platform(kind, int(clusters), child_seed(0, number))
        twin_program = ReducedProgram(replace(p))
        twin_program.solve()
        start = RandomisedRounding(p, least_connections=False)
        assert len(start.program.cells) < len(twin_program.cells) / 2
        for _ in range(2):
            np.testing.assert_allclose(start.work, twin_program.work, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(
                start.program.connections, twin_program.connections, rtol=1e-9, atol=1e-9
            )
            start.solve()
        lpr, (work, connections) = solve(p, "LPR"), round_down(p, start.program)
        np.testing.assert_allclose(work, lpr.work, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(connections, lpr.connections)


# ------------------------------------------------------------------ order of methods

#: Every method whose answer is a schedule, alone and with every suffix and all suffixes together.
SCHEDULES = [
    "+".join([name, *suffixes])
    for name, method in METHODS.items()
    if not method.is_relaxed and name != "MILP"
    for suffixes in {(): 0, **{(one,): 0 for one in method.allowed_suffixes},
                     method.allowed_suffixes: 0}
]  # fmt: skip


@settings(max_examples=scale_count(60, LONG), deadline=None)
@given(platforms(), st.integers(0, 2**32))
def test_bound_optimum_heuristics(p, seed):
    top = bound(p)
    optimum = solve(p, "MILP").objective
    assert optimum <= top * (1 + ROUNDING) + ROUNDING
    assert solve(p, "LP").objective == pytest.approx(top, rel=ROUNDING, abs=ROUNDING)
    for method in SCHEDULES:
        found = solve(p, method, seed=seed)
        assert found.objective <= optimum * (1 + ROUNDING) + ROUNDING
        assert found.name == method


def test_the_optimum_of_a_load_with_little_data():
    values = {"LP": 1.001, "MILP": 1.001, "G": 1.001, "LPR": 0.001, "LPRG": 1.001, "LPRR": 0.001}
    found = {name: solve(light_data(), name) for name in values}
    assert {name: round(a.objective, 6) for name, a in found.items()} == values
    assert found["MILP"].is_proved


def test_milp_is_never_below_a_heuristic_on_extreme_platforms():
    """However short its search is: the first of the platforms are also tried without one."""
    above, count = 0, scale_count(100, LONG)
    for seed in range(count):
        p = draw_extreme(seed)
        best = solve(p, "MILP", seed=seed)
        others = [solve(p, name, seed=seed).objective for name in ("G", "LPR", "LPRG", "LPRR")]
        assert best.objective >= max(others)
        assert best.objective <= best.upper * (1 + ROUNDING)
        assert best.upper <= bound(p)
        if seed < count / 3:
            assert solve(p, "MILP", seed=seed, most_nodes=0).objective >= max(others)
        above += best.objective > max(others) * (1 + 1e-3)
    assert above >= count / 40


@settings(max_examples=scale_count(60, LONG), deadline=None)
@given(platforms(), st.sampled_from(list(READINGS)), st.sampled_from(["lpr", "zero"]))
def test_reclaiming_and_polishing_do_no_harm(p, name, start):
    reading = Reading(READINGS[name].local_amount, READINGS[name].stuck, lprg_start=start)
    for plain in ("G", "LPR", "LPRG", "LPRR"):
        found, better = solve(p, plain, reading), solve(p, plain + "+polish", reading)
        assert better.objective >= found.objective
        assert better.connections.tolist() == found.connections.tolist()
    less, more = solve(p, "LPR", reading), solve(p, "LPRG", reading)
    assert (more.work >= less.work * (1 - 1e-9)).all()
    assert (more.connections >= less.connections).all()


# ------------------------------------------------------------- registry of methods


def test_every_method_answers_and_takes_its_suffixes():
    for name, record in METHODS.items():
        for suffix in ("", *record.allowed_suffixes):
            found = solve(pair(), f"{name}+{suffix}" if suffix else name)
            assert found.is_relaxed == record.is_relaxed
            assert (found.reading.vertex == "least_connections") == (suffix == "least")
        for suffix in set(SUFFIXES) - set(record.allowed_suffixes):
            with pytest.raises(InputError, match=f"suffix of {name} must be one of"):
                solve(pair(), f"{name}+{suffix}")


def half_of_greedy(platform):
    """Return half of the work of G, and its connections."""
    found = solve(platform, "G")
    return found.work / 2, found.connections


def test_suffixes_are_applied_once_and_in_one_order():
    method = solve(pair(), "LPRG+polish+least+polish").method
    assert (method.name, method.suffixes) == ("LPRG+least+polish", ("least", "polish"))
    assert METHODS["LPRG"].followed_by("polish").followed_by("least") == method
    assert solve(pair(), method).name == method.name


# ------------------------------------------------------------- methods of one's own

MINE = """
from dlsim.steady import Method, solve

def mine(platform):
    return [[6, 0], [3, 2]], [[0, 0], [1, 0]]

row = Method(mine, name="another name", text="one connection")
"""


def answer(work, connections=((0, 0), (0, 0))):
    """Return a method that gives this answer for every platform."""

    def mine(platform):
        return work, connections

    return mine


def test_a_method_from_a_file(tmp_path, monkeypatch):
    """A connection of bandwidth 3 leaves 2 + 3 units for the second application."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own+file.py").write_text(MINE)
    for name in ("mine", "row", "mine+polish", "mine+polish+fair"):
        found = solve(pair(), f"own+file.py:{name}")
        assert found.name == found.summary().name == name
        assert found.objective == pytest.approx(5)
        assert found.connections.tolist() == [[0, 0], [1, 0]]
        assert found.connections.dtype == np.int64


def test_a_method_of_ones_own_gets_the_options_it_asks_for():
    def mine(platform, factor=1, *, options):
        seen.append((factor, options))
        return solve(platform, "G")

    seen, reading = [], Reading(stuck="rest")
    found = solve(pair(), mine, reading, "python", seed=3, most_nodes=4)
    assert found.name == "mine"
    assert found.reading == reading
    assert [factor for factor, _ in seen] == [1]
    assert vars(seen[0][1]) == {"seed": 3, "reading": reading, "engine": "python", "most_nodes": 4}


NOTHING = [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (answer([[1, 0]]), "work of method 'mine' must have 2 x 2 entries, got 1 x 2"),
        (answer([[-1, 0], [0, 0]]), "work of method 'mine'.* at least 0, got -1"),
        (answer(NOTHING, [[0, -1], [0, 0]]), "connections of method 'mine'.* got -1"),
        (answer(NOTHING, [0, 1]), "connections of method 'mine' must have 2 x 2 entries"),
        (answer(NOTHING, [[0, 0.5], [0, 0]]),
         "connections of method 'mine' must be whole numbers, got 0.5 from cluster 0 to 1"),
        (lambda p: None, "method '<lambda>' must return work and connections, or an Allocation"),
        (lambda p: solve(alone(), "G"), "got an Allocation of another platform"),
        (lambda p: solve(p, "LP"), "connections of method '<lambda>' must be whole numbers"),
        ("nowhere.py:mine", "there is no file nowhere.py"),
        *((name, "must be one of") for name in ("lprg", "LPRG+polished", "LPRG+", "+polish", 3)),
        (replace(METHODS["G"], find=half_of_greedy), "a name of its own"),
    ],
)  # fmt: skip
def test_what_is_no_answer_or_no_method_is_refused(method, words):
    with pytest.raises(InputError, match=words):
        solve(pair(), method)


test_what_is_no_record_of_a_method_is_refused = refuses_each([
    (lambda: Method("G"), "find of a Method must be a function of a platform"),
    (lambda: Method(half_of_greedy, suffixes=("least",)), "suffix of half_of_greedy must be"),
    (lambda: Method(half_of_greedy).followed_by("best"), "suffix of half_of_greedy must be"),
])  # fmt: skip


def test_an_answer_that_breaks_the_program_is_refused():
    """Each rule is tried in `test_model`."""
    with pytest.raises(ScheduleError, match=r"\(6e\) route 1 -> 0: 4 exceeds 3"):
        solve(pair(), answer([[0, 0], [4, 0]], [[0, 0], [1, 0]]))


# ----------------------------------------------------------------------- summary


def test_summary_by_hand():
    """Sites of speed 10 and 2, gateways 20; site 0 computes 3 units over one of two connections."""
    found = solve(pair(), answer([[6, 0], [3, 2]], [[0, 0], [1, 0]]))
    summary = found.summary()
    assert summary.to_dict() == {
        "objective": 5,
        "ratio": pytest.approx(5 / 6),
        "worst_work": 5,
        "total_work": 11,
        "connections": 1,
        "speed_used": pytest.approx(11 / 12),
        "gateway_used": pytest.approx(6 / 40),
        "links_used": 0.5,
    }
    weighted = solve(replace(pair(), priority=[1, 4], work=[1, 2]), answer([[5, 0], [0, 1]]))
    assert weighted.summary()[["objective", "worst_work", "speed_used"]].tolist() == [
        0.25, 1, pytest.approx(7 / 12)
    ]  # fmt: skip


# --------------------------------------------------------------------- interface


def test_an_allocation_keeps_its_seed():
    seed = np.random.SeedSequence(3, spawn_key=(1,))
    kept = solve(pair(), "LPRR", seed=seed)
    assert kept.seed is seed
    assert (solve(pair(), "LPRR", seed=kept.seed).connections == kept.connections).all()
    assert solve(pair(), "LPRR", seed=np.int64(7)).seed == 7


def test_same_seed_same_allocation():
    """Also in a second run on a platform, which keeps what the first has found."""
    for number in range(2):
        p = draw_platform(number, False, clusters=6, odd=0.0)
        for method in METHODS:
            first, *others = [solve(q, method, seed=5) for q in (p, p, replace(p))]
            for other in others:
                np.testing.assert_array_equal(first.work, other.work)
                np.testing.assert_array_equal(first.connections, other.connections)
