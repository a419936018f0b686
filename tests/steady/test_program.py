"""Program (6) of paper S: hand cases, an exact twin, brute force, limits."""

import math
from dataclasses import replace
from fractions import Fraction

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.errors import InputError, ScheduleError, StudyError
from dlsim.steady import (
    Allocation,
    Limits,
    Platform,
    ReducedProgram,
    Share,
    bound,
    max_min_fair,
    polish,
    relaxation,
    solve,
    solve_program,
    topology,
)
from dlsim.steady.independent_set import independent_set_platform
from dlsim.steady.lp_rows import LpRows
from dlsim.steady.relaxation import certify_bound
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import ENOUGH, LONG, scale_count
from tests.helpers.steady_platforms import (
    alone,
    as_instance,
    draw_platform,
    draw_wide,
    pair,
    platforms,
    shared_link,
)
from tests.twins import steady as twin

#: What a solver's tolerance of 1e-9 explains, relative to the rows' own units.
CLOSE = 1e-7


def random_platforms(count, scale=LONG, **options):
    return [draw_platform(seed, **options) for seed in range(int(count * scale))]


# ---------------------------------------------------------------- hand cases


@pytest.mark.parametrize(
    ("platform", "relaxed", "whole"),
    [
        (pair(), 6, 6),
        (pair((10, 0)), 5, 5),
        (alone(), 1, 1),
        (shared_link(), 2, 0),
        (independent_set_platform(nx.path_graph(3)), 2, 2),
        (independent_set_platform(nx.cycle_graph(5)), 2.5, 2),
        (independent_set_platform(nx.complete_graph(4)), 2, 1),
    ],
    ids=["A", "C", "D", "E", "P3", "C5", "K4"],
)
def test_hand_cases(platform, relaxed, whole):
    assert solve_program(platform, integer=False).objective == pytest.approx(relaxed)
    assert bound(platform) == pytest.approx(relaxed)
    assert ReducedProgram(platform).solve() == pytest.approx(relaxed)
    best = solve_program(platform)
    assert best.objective == pytest.approx(whole, abs=1e-9)
    # the search proves it also where the bound is not met
    assert (best.is_proved, best.gap) == (True, pytest.approx(0, abs=CLOSE))
    assert best.ratio == pytest.approx(whole / relaxed)
    assert best.connections.dtype == np.int64


# -------------------------------------------------------- the exact twin


def test_twin_solves_a_textbook_program():
    # Hillier and Lieberman, Wyndor Glass: 3x + 5y, x <= 4, 2y <= 12, 3x + 2y <= 18
    assert twin.simplex([3, 5], [[1, 0], [0, 2], [3, 2]], [4, 12, 18]) == (36, [2, 6])
    assert twin.simplex([1], [[-1]], [1])[0] == math.inf


def test_both_forms_and_the_bound_meet_the_exact_optimum():
    for p in random_platforms(60, clusters=4, apps=3):
        exact = float(twin.relaxed(as_instance(p))[0])
        assert ReducedProgram(p).solve() == pytest.approx(exact, rel=CLOSE, abs=CLOSE)
        full = solve_program(p, integer=False)
        full.check()
        assert full.objective == pytest.approx(exact, rel=CLOSE, abs=CLOSE)
        assert exact <= bound(p) <= exact * (1 + CLOSE) + CLOSE


def crowded(seed, clusters=3, links=3, most=2):
    """A platform whose routes share few links with few connections."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"bandwidth": rng.choice([1.0, 2, 3, 5], links)})
    table["max_connect"] = rng.integers(1, most + 1, links)
    pairs = [(k, to) for k in range(clusters) for to in range(clusters) if k != to]
    routes = {
        pair: rng.choice(links, rng.integers(1, 3), replace=False).tolist()
        for pair in pairs
        if rng.random() < 0.8
    }
    return Platform(
        rng.choice([0.0, 1, 2, 10], clusters),
        rng.choice([4.0, 8, 20], clusters),
        table,
        routes,
        rng.choice([1.0, 1, 2], clusters),
        rng.choice([1.0, 2], clusters),
        np.ones(clusters),
        limits=Limits(pairs=int(rng.integers(1, 3)) if rng.random() < 0.3 else None),
    )


def test_the_mixed_program_is_what_trying_everything_finds():
    drawn = random_platforms(40, clusters=3, apps=3, odd=0.2)
    for p in drawn + [crowded(seed) for seed in range(scale_count(60, LONG))]:
        exact = float(twin.brute_force(as_instance(p)))
        best = solve_program(p)
        assert best.objective == pytest.approx(exact, rel=CLOSE, abs=CLOSE)
        assert best.is_proved
        assert exact <= best.upper + CLOSE


def test_the_mixed_program_is_right_where_a_load_has_little_data():
    """Half of the applications need at most 1e-3 of a connection, down to 1e-10."""
    for seed in range(scale_count(60, LONG)):
        p, rng = crowded(seed), np.random.default_rng(seed)
        light = 10 ** rng.uniform(-10, -3, p.applications)
        p = replace(p, data=np.where(rng.random(p.applications) < 0.5, light, p.data))
        exact = float(twin.brute_force(as_instance(p)))
        assert solve(p, "MILP").objective == pytest.approx(exact, rel=CLOSE, abs=CLOSE)


def test_some_of_these_platforms_have_a_gap_and_some_are_limited():
    tight = [crowded(seed) for seed in range(24)]
    short = [p for p in tight if solve_program(p).objective < bound(p) * (1 - 1e-3)]
    assert len(short) >= 4
    assert any(solve_program(p).objective > 0 for p in short)
    drawn = random_platforms(40, ENOUGH, clusters=3, apps=3, odd=0.2)
    assert sum(bool(p.limits.shares) for p in drawn) >= 10
    assert sum(p.priority.ndim == 2 for p in drawn) >= 10
    assert sum(not p.routes.get(k, True) for p in drawn for k in p.routes) >= 5


@settings(max_examples=scale_count(60, LONG), deadline=None)
@given(platforms(3))
def test_bound_relaxed_and_mixed_on_degenerate_platforms(p):
    exact = twin.relaxed(as_instance(p))[0]
    top, relaxed, whole = bound(p), solve_program(p, integer=False), solve_program(p)
    assert Fraction(top) >= exact
    assert float(exact) == pytest.approx(top, rel=1e-6, abs=1e-9)
    assert relaxed.objective == pytest.approx(float(exact), rel=1e-6, abs=1e-9)
    assert whole.objective <= relaxed.objective * (1 + 1e-6) + 1e-9
    for allocation in (relaxed, whole, max_min_fair(p), max_min_fair(p, whole.connections)):
        allocation.check()
        assert allocation.objective <= top * (1 + 1e-12)


# ---------------------------------------------------- certified, whatever the solver


@settings(max_examples=scale_count(100, LONG), deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 2), st.integers(0, 100))
def test_a_bound_from_any_duals_is_a_bound(seed, noise, case):
    p = draw_platform(case, clusters=3, apps=3)
    program, rng = ReducedProgram(p), np.random.default_rng(seed)
    program.solve()
    duals = program.duals() * rng.uniform(1 - min(noise, 1), 1 + noise, len(program.limit))
    fairness = int(p.is_counted.sum())
    top = certify_bound(program.matrix, program.limit, duals, fairness)
    assert Fraction(top * program.rows.objective_unit) >= twin.relaxed(as_instance(p))[0]


def test_no_duals_at_all_prove_a_weak_bound():
    program = ReducedProgram(pair())
    top = certify_bound(program.matrix, program.limit, np.zeros(len(program.limit)), 2)
    assert top * program.rows.objective_unit >= 6


# ------------------------------------------- numbers that span many decades


def test_a_cell_that_could_be_worth_a_thousand_scales_is_measured_in_those():
    """4500 at home beside an objective of 2: the unit is 2000, and one of it is the bound."""
    p = pair(speed=(1, 4500), gateway=1)
    rows = LpRows.from_platform(p)
    assert rows.objective_unit == 2 == pytest.approx(bound(p))
    assert rows.unit.tolist() == [1, 1, 1, 2000]
    assert rows.is_capped.tolist() == [False, False, False, True]
    assert rows.max_alone.tolist() == [2, 2001]


def test_wide_priorities_are_solved_by_every_method():
    for seed in (144, *range(scale_count(10, LONG))):
        p = draw_wide(seed)
        top = bound(p)
        for method in ("LP+least", "LPR+least", "LPRR+least", "LP+fair", "G+fair", "LPRG+fair"):
            a = solve(p, method)
            a.check()
            assert a.objective <= top
            if method.startswith("LP+"):
                assert a.objective >= top * (1 - 1e-4) - 1e-7


def fail_from_the_second_on(monkeypatch):
    """Let the first solution of a program succeed and the next one fail."""
    solved, calls = ReducedProgram.solve, iter([True, False])

    def once(self, least=False):
        if next(calls):
            return solved(self, least)
        raise StudyError("not solved")

    monkeypatch.setattr(ReducedProgram, "solve", once)


def test_a_round_of_fairness_that_fails_leaves_the_levels_before_it(monkeypatch):
    p = Platform([1, 10], [20, 20], pair().links, {}, [1, 1], [1, 1], [1, 1])
    assert max_min_fair(p).values == pytest.approx([1, 10])
    fail_from_the_second_on(monkeypatch)
    values = max_min_fair(p).values
    assert values[0] == pytest.approx(1)
    assert 1 - 1e-9 <= values[1] <= 10


def test_a_loose_bound_is_proved_anew_and_never_refused(monkeypatch):
    p = pair()
    tries = iter([True, True, False])

    def loose(*given):
        return certify_bound(*given) * (2 if next(tries) else 1)

    monkeypatch.setattr(relaxation, "certify_bound", loose)
    assert bound(p) == pytest.approx(6)
    monkeypatch.setattr(relaxation, "certify_bound", lambda *given: certify_bound(*given) * 2)
    assert bound(pair()) == pytest.approx(12)
    fail_from_the_second_on(monkeypatch)
    assert bound(pair()) == pytest.approx(12)


# ------------------------------------------------- nothing depends on the vertex


def test_another_optimum_is_found_where_rounding_put_the_objective_above_it():
    """An objective 1.5e-9 too large, as a tolerance of 1e-9 lets it be, is out of reach."""
    for p in random_platforms(12, 1, exact=False):
        plain, above = ReducedProgram(p), ReducedProgram(p)
        plain.solve()
        above.solve()
        above.objective *= 1 + 1.5e-9
        before = plain.work
        for program in (plain, above):
            program.move_to_random_optimum(np.random.default_rng(1))
        assert above.work == pytest.approx(plain.work, rel=1e-6, abs=CLOSE)
        assert plain.work != pytest.approx(before, rel=1e-6, abs=CLOSE)


def test_fewest_connections_keep_the_objective():
    saved = 0
    for p in random_platforms(40, max(LONG, 0.3), exact=False):
        program = ReducedProgram(p)
        first, used = program.solve(), program.connections_used.sum()
        assert program.solve(least_connections=True) == pytest.approx(first, rel=CLOSE)
        least = Allocation(p, program.work, program.connections, is_relaxed=True)
        assert least.objective == pytest.approx(first, rel=1e-6, abs=CLOSE)
        assert program.connections_used.sum() <= used + CLOSE
        saved += program.connections_used.sum() < used - 0.1
        assert program.solve() == pytest.approx(first, rel=CLOSE)
    assert saved >= 5


# --------------------------------------------------------- columns as they are needed


def many_kinds(count):
    wide = [draw_wide(seed) for seed in range(scale_count(count, LONG))]
    return wide + random_platforms(count, clusters=6, odd=0.3) + random_platforms(count, apps=7)


def test_cells_are_priced_by_their_columns():
    for p in many_kinds(10):
        program = ReducedProgram(p)
        duals = np.random.default_rng(1).random(len(program.limit))
        duals[np.isinf(program.limit)] = 0
        priced = program.matrix.T @ duals
        np.testing.assert_allclose(
            program.rows.price_columns(duals), priced[1:], rtol=1e-9, atol=1e-12
        )


def test_a_narrow_program_finds_the_same_optimum():
    """Also where routes are fixed: cells that the first solution did not use may then help."""
    left_out = added = 0
    for seed, p in enumerate(many_kinds(20)):
        plain, rng = ReducedProgram(p), np.random.default_rng(seed)
        plain.solve()
        narrow = plain.narrow()
        first = len(narrow.cells)
        assert narrow.solve() == pytest.approx(plain.objective, rel=CLOSE, abs=1e-9)
        for route in rng.permutation(len(p.tables.pairs))[:4]:
            most = int(min(plain.capacity_left[p.tables.links_of(route)].min(), 3))
            value = int(rng.integers(0, most + 1))
            for program in (plain, narrow):
                program.fix_route(route, value)
            assert narrow.solve() == pytest.approx(plain.solve(), rel=CLOSE, abs=1e-9)
        values = [program.solve(least_connections=True) for program in (plain, narrow)]
        assert values[0] == pytest.approx(values[1], rel=CLOSE, abs=1e-9)
        # where priorities span five decades 1e-9 of the objective is 0.3 % of connections
        used = [program.connections_used.sum() for program in (plain, narrow)]
        assert used[0] == pytest.approx(used[1], rel=5e-3, abs=1e-5)
        left_out += len(narrow.cells) < len(narrow.rows.app)
        added += len(narrow.cells) > first
    assert min(left_out, added) >= 10 * LONG


def test_a_wide_network_is_rounded_on_few_of_its_cells():
    p = topology.tiers(40, seed=1)
    program = ReducedProgram(p)
    value = program.solve()
    assert value <= bound(p) <= value * (1 + 1e-8)
    narrow = program.narrow()
    assert narrow.solve() == pytest.approx(value, rel=1e-9)
    assert len(narrow.cells) < 0.1 * len(narrow.rows.app)
    for method in ("LP", "LPRG", "LPRR+polish"):
        found = solve(p, method)
        found.check()
        assert found.objective <= bound(p) * (1 + 1e-9)


# -------------------------------------------------------------- fixing routes


def test_the_first_route_fills_connections_like_any_other():
    """The only route, number 0: two connections of bandwidth 3, and speed 1 at home."""
    p = Platform([1, 10], [20, 20], pair().links, {(0, 1): [0]}, [1], [1], [1], origin=[0])
    for connections, best in ((0, 1), (1, 4), (2, 7)):
        program = ReducedProgram(p)
        assert program.solve() == pytest.approx(7)
        assert program.connections_used.tolist() == pytest.approx([2])
        assert program.work.tolist() == [pytest.approx([1, 6])]
        program.fix_route(0, connections)
        assert program.solve() == pytest.approx(best)
        assert program.connections_used.tolist() == pytest.approx([connections])


def test_a_fixed_route_reserves_its_connections_used_or_not():
    program = ReducedProgram(pair((2, 10), gateway=20, bandwidth=3, most=2))
    assert program.solve() == pytest.approx(6)
    forth, back = (program.platform.tables.route[k, 1 - k] for k in (0, 1))
    program.fix_route(back, 1)
    assert program.capacity_left.tolist() == [1]
    assert program.solve() == pytest.approx(5)
    program.fix_route(forth, 0)
    assert program.solve() == pytest.approx(2)
    assert program.connections_used[forth] == 0
    assert program.connections.tolist() == [
        [0, 0],
        [pytest.approx(program.connections_used[back]), 0],
    ]


def test_a_route_is_fixed_once_to_what_there_is_room_for():
    program = ReducedProgram(pair())
    for value in (-1, 3, 0.5):
        with pytest.raises(InputError, match="whole number from 0 to 2"):
            program.fix_route(0, value)
    program.fix_route(0, 1)
    with pytest.raises(InputError, match="once"):
        program.fix_route(0, 1)


def test_fixing_one_by_one_is_polishing_at_once():
    for seed, p in enumerate(random_platforms(40, apps=5)):
        rng, program = np.random.default_rng(seed), ReducedProgram(p)
        connections = np.zeros((p.clusters, p.clusters), dtype=int)
        for r, (k, to) in enumerate(p.tables.pairs):
            most = int(program.capacity_left[p.tables.links_of(r)].min())
            connections[k, to] = rng.integers(0, most + 1)
            program.fix_route(r, connections[k, to])
        best = polish(p, connections)
        assert best.objective == pytest.approx(program.solve(), rel=CLOSE, abs=CLOSE)
        p_exact = as_instance(p)
        opened = {route: int(connections[route]) for route in p.routes}
        exact = float(twin.relaxed(p_exact, opened)[0])
        assert best.objective == pytest.approx(exact, rel=CLOSE, abs=CLOSE)


ONE_WAY = Platform((1, 1), (1, 1), pair().links, {(0, 1): [0]}, (1, 1), (1, 1), (1, 1))
test_what_is_no_problem_is_refused = refuses_each([
    (lambda: bound(3), "platform must be a Platform, got 3"),
    (lambda: ReducedProgram(None), "platform must be a Platform, got None"),
    (lambda: solve_program(None), "platform must be a Platform, got None"),
    (lambda: max_min_fair("p"), "platform must be a Platform, got 'p'"),
    (lambda: solve_program(pair(), start=3), "start must be an Allocation, got 3"),
    (lambda: polish(pair(), None), "connections must be a table of whole numbers, got None"),
    (lambda: polish(pair(), [[0, 0.5], [0, 0]]), "whole numbers"),
    (lambda: polish(pair(), [[0, 0], [-1, 0]]), "at least 0"),
    (lambda: polish(pair(), [[0]]), "connections must have 2 x 2 entries, got 1 x 1"),
    (lambda: polish(ONE_WAY, [[0, 0], [1, 0]]), "connections 1 -> 0 must have a route with a link"),
])  # fmt: skip


def test_polish_refuses_connections_that_break_a_rule():
    with pytest.raises(ScheduleError, match=r"\(6d\) link 0: 9 exceeds 2"):
        polish(pair(), [[0, 9], [0, 0]])


def test_an_application_that_can_do_nothing_proves_the_bound_zero():
    for seed in range(scale_count(30, LONG)):
        p = draw_platform(seed, exact=False, clusters=5)
        speed = np.where(np.arange(5) == p.origin[0], 0.0, p.speed)
        routes = {pair: way for pair, way in p.routes.items() if p.origin[0] not in pair}
        p = replace(p, speed=speed, routes=routes)
        if p.is_counted[0]:
            assert bound(p) == 0
            assert solve(p, "G").ratio == solve(p, "LP").ratio == 1
            best = solve_program(p)
            assert (best.objective, best.ratio, best.gap, best.is_proved) == (0, 1, 0, True)


# ---------------------------------------------------------------- mixed program


def test_a_start_at_the_bound_is_proved_without_a_search(monkeypatch):
    p = pair()
    start = polish(p, [[0, 0], [2, 0]])
    monkeypatch.delattr("dlsim.steady.program.make_solver")
    best = solve_program(p, start=start)
    assert best.objective == pytest.approx(6)
    assert best.is_proved
    with pytest.raises(ScheduleError, match="speed of cluster"):
        solve_program(p, start=replace(start, work=2 * start.work))


def test_a_search_cut_short_says_how_far_it_is():
    # the Petersen graph: every relaxed vertex counts 1/2, so 5; independence number 4
    p = independent_set_platform(nx.petersen_graph())
    start = polish(p, np.zeros((11, 11)))
    cut, full = (solve_program(p, start=start, most_nodes=n) for n in (0, 100))
    assert (start.objective, start.is_proved) == (0, False)
    assert full.objective == pytest.approx(4)
    assert full.is_proved
    assert 0 <= cut.objective <= 4 + CLOSE
    assert cut.upper >= 4 - CLOSE
    assert bound(p) == pytest.approx(5)


def test_a_search_cut_short_keeps_its_start_and_its_gap():
    p = independent_set_platform(nx.petersen_graph())
    found = solve(p, "MILP", most_nodes=0)
    found.check()
    assert found.objective >= solve(p, "LPRR").objective
    assert found.gap == pytest.approx(found.upper / found.objective - 1)
    assert solve(p, "MILP").is_proved


def test_twenty_clusters_are_solved_with_proof():
    for p in (topology.tiers(20, seed=1), topology.random(20, 0.2, max_connect=5, seed=1)):
        best = solve_program(p)
        best.check()
        assert best.is_proved


# ------------------------------------------------------------ limits and pairs


def test_a_share_of_a_cluster_is_capped():
    p = pair((10, 10), most=9, gateway=100)
    capped = replace(p, priority=(1, 3), limits=Limits((Share(0, (1,), 0.2),)))
    # application 1 wants 15 of 20; it gets its own 10 and 2 of cluster 0
    assert solve_program(capped).objective == pytest.approx(4)
    assert bound(capped) == pytest.approx(4)


def test_connections_of_a_pair_are_capped_both_ways_together():
    p = pair(most=9, bandwidth=1, gateway=100)
    capped = replace(p, limits=Limits(pairs={(1, 0): 2}))
    assert solve_program(p).objective == pytest.approx(6)
    assert solve_program(capped).objective == pytest.approx(4)
    assert bound(capped) == pytest.approx(4)


def test_priorities_per_pair():
    p = pair((10, 10), most=9, gateway=100)
    near = replace(p, priority=[[1, 4], [0, 1]])
    # work of A0 at home counts 1 and away 1/4; work of A1 counts on cluster 1 only
    best = solve_program(near)
    assert best.objective == pytest.approx(10)
    assert best.work[1, 0] == 0
    assert best.values == pytest.approx([10, 10])


def test_applications_of_one_cluster_share_its_connections():
    p = pair((0, 8), most=2, gateway=100)
    both = replace(p, data=(1, 2), origin=(0, 0))
    # two connections of 3 carry t + 2t = 6
    best = solve_program(both)
    assert best.objective == pytest.approx(2)
    assert best.connections.tolist() == [[0, 2], [0, 0]]


def test_solvers_write_nothing_on_standard_output(capfd):
    platform = topology.random(6, 0.5, seed=1)
    for method in ("LP", "MILP", "LPRR"):
        assert solve(platform, method, seed=0).objective > 0
    assert capfd.readouterr() == ("", "")
