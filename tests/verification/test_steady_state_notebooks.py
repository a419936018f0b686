"""The code of notebooks 40 and 41, by hand; both executed at a small size."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.random import SeedSequence

from dlsim.errors import InputError
from dlsim.files import suite_notebooks
from dlsim.papers.packets import execute_periods
from dlsim.steady import Allocation, Platform, Reading, bound, solve
from dlsim.steady.rounding import WHOLE_TOLERANCE, RandomisedRounding, round_randomly
from dlsim.steady.samples import crossed_platform, rounding_seed, sample_platform
from dlsim.validate import random_generator
from tests.helpers.steady_platforms import draw_platform, pair
from tests.verification.notebook_code import defined_in

paper = defined_in("40-steady-state")
beyond = defined_in("41-steady-state-beyond")
LINK = pd.DataFrame({"bandwidth": [3.0], "max_connect": [2]})


def seed_of(replicate):
    return SeedSequence(0, spawn_key=(replicate,))


def two_clusters():
    """Two clusters of speed 10 and 2 behind one link, the example of `solve`."""
    routes = {(0, 1): [0], (1, 0): [0]}
    return Platform((10, 2), (20, 20), LINK, routes, (1, 1), (1, 1), (1, 1))


# ----------------------------------------------------------------------- 40, by hand


def case_of_the_paper():
    """Speeds 10 and 2, bandwidth 3, two connections: relaxed, rounded, two refinements."""
    platform = pair()
    relaxed = Allocation(
        platform, np.array([[6.0, 0], [4, 2]]), np.array([[0, 0], [4 / 3, 0]]), is_relaxed=True
    )
    opened = np.array([[0, 0], [1, 0]])
    rounded = Allocation(platform, np.array([[6.0, 0], [3, 2]]), opened)
    selfish = Allocation(platform, np.array([[7.0, 0], [3, 2]]), opened)
    fair = Allocation(platform, np.array([[6.0, 0], [4, 2]]), 2 * opened)
    return platform, relaxed, rounded, selfish, fair


def test_rounding_down_loses_a_quarter():
    platform, relaxed, rounded, selfish, fair = case_of_the_paper()
    for one in (relaxed, rounded, selfish, fair):
        one.check()
    used = relaxed.connections[tuple(platform.tables.pairs.T)]
    assert paper.part_lost(platform, used, rounded) == pytest.approx(1 / 4)
    assert paper.part_below_one(used) == 0
    assert paper.part_taken_at_home(platform, rounded, selfish) == pytest.approx(1)
    assert paper.part_taken_at_home(platform, rounded, fair) == 0


def test_outcomes_of_g_and_lprg_exclude_each_other():
    outcomes = ["G is ahead", "tie at the bound", "tie below it", "LPRG is ahead"]
    for numbers in ("Table 1", "Table 2", "Table 1, connections x 16"):
        for seed in map(seed_of, range(3)):
            row = paper.compare_greedy("Tiers-like", numbers, 8, seed)
            assert sum(row[name] for name in outcomes) == 1
            if numbers.endswith("16"):
                continue
            platform = crossed_platform("Tiers-like", numbers, 8, seed)
            top, draws = bound(platform), rounding_seed(seed)
            g, lprg = (solve(platform, name, seed=draws).objective / top for name in ("G", "LPRG"))
            assert row["G is ahead"] == (g - lprg > 1e-6)
            assert row["tie at the bound"] == (min(g, lprg) > 1 - 1e-6)


def test_a_bottleneck_gets_no_more_without_all_other_applications():
    """Where one decides, the bound of its application alone is the bound of the platform."""
    found = 0
    for seed in map(seed_of, range(6)):
        if paper.compare_greedy("random 0.4", "Table 1", 8, seed)["a bottleneck"]:
            platform, found = crossed_platform("random 0.4", "Table 1", 8, seed), found + 1
            alone = [
                bound(replace(platform, priority=platform.priority * (np.arange(8) == k)))
                for k in range(8)
            ]
            assert min(alone) == pytest.approx(bound(platform), rel=1e-6)
    assert found


def test_ratios_ignore_rounding_error():
    assert paper.over_bound(3.0000000001, 3.0) == 1
    assert paper.over_bound(0.0, 0.0) == 1
    assert paper.over_bound(1.0, 3.0) == 0.333333


def test_vertices_are_those_of_the_reading():
    rows = {
        name: pd.DataFrame(
            paper.round_at_vertices("Tiers", 8, 0.0, 4, seed_of(0), reading={"vertex": name})
        )
        for name in ("solver", "least_connections")
    }
    assert rows["solver"]["vertex"].tolist() == [0, 1, 2, 3]
    assert rows["solver"]["LPR"].nunique() > 1
    platform, rules = sample_platform("Tiers", 8, seed_of(0)), Reading(vertex="least_connections")
    [one] = rows["least_connections"].to_dict("records")
    for name in ("G", "LPR", "LPRG"):
        wanted = solve(platform, name, reading=rules).objective / bound(platform)
        assert one[name] == pytest.approx(wanted, abs=1e-6)


def test_programs_are_those_of_the_paper(monkeypatch):
    """One, and one after every route that LPRR fixes; K squared only if all are used."""
    row = paper.solve_by_all(8, "Tiers", 1, 1, seed_of(1))
    platform = sample_platform("Tiers", 8, seed_of(1))
    solve_again, again = RandomisedRounding.solve, []
    monkeypatch.setattr(RandomisedRounding, "solve", lambda one: again.append(solve_again(one)))
    done = round_randomly(platform, random_generator(rounding_seed(seed_of(1)), 0))
    programs = 1 + sum(used > WHOLE_TOLERANCE for _, used, _ in done.order)
    assert row["programs"] == programs >= 1 + len(again)
    value = solve(platform, "LPRR", seed=rounding_seed(seed_of(1))).objective
    assert row["LPRR"] == round(value / bound(platform), 6)
    larger = paper.solve_by_all(8, "Tiers", 2, 1, seed_of(1))  # no LPRR, but the exact search
    assert np.isnan(larger["LPRR"])
    assert larger["MILP"] == row["MILP"]


def test_connectivities_take_turns_at_what_is_costly():
    run = [
        [
            c
            for c in range(1, 9)
            if paper.solve_by_all(5, "random", 4, 4, seed_of(r), c / 10)["LPRR"] >= 0
        ]
        for r in range(4)
    ]
    assert run == [[4, 8], [3, 7], [2, 6], [1, 5]]


def test_an_optimum_is_found_from_any_start():
    platform = pair()
    best = paper.search_optimum(
        platform, [solve(platform, "G"), solve(platform, "LPR")], seed_of(0)
    )
    assert best.objective == pytest.approx(6)
    assert best.is_proved


def test_the_ends_of_a_run_cost_one_period():
    frame = pd.DataFrame(paper.run_periods("random", 5, seed_of(0)))
    assert frame["ends"].tolist() == pytest.approx((1 / frame["count"]).tolist())
    assert (frame["kept"] <= 1 - 1 / frame["count"] + 1e-6).all()
    longest = frame[frame["count"] == frame["count"].max()].set_index("length")["kept"]
    assert longest.is_monotonic_increasing  # longer periods round less away


def test_one_outlier_gives_back_what_it_came_from():
    for n, others, one in ((10, 0.9, 4.0), (29_298, 0.996, 5393.0)):
        values = np.r_[np.full(n - 1, others), one]
        found = paper.one_outlier(n, values.mean(), values.std(ddof=1))
        assert found["if one is apart: others"] == pytest.approx(others)
        assert found["that one"] == pytest.approx(one)
        assert found["largest >="] <= one
    printed = paper.one_outlier(29_298, 1.18, 31.5)
    assert printed["if one is apart: others"] < 1 < 5000 < printed["that one"] < 5500
    # of 1, 1, 1, 5: mean 2, standard deviation 2
    assert list(paper.one_outlier(4, 2.0, 2.0).values()) == pytest.approx([1, 5, 3.5])


def test_variance_between_vertices_by_hand():
    # two platforms, two vertices each: within .02 and 0, between them .08
    rows = pd.DataFrame(
        {
            "kind": "Tiers",
            "clusters": 5,
            "connectivity": 0.0,
            "replicate": [0, 0, 1, 1],
            "vertex": [0, 1, 0, 1],
            "G": 0.5,
            "LPRG": [0.4, 0.6, 0.9, 0.9],
        }
    )
    found = paper.effect_of_vertex(rows, "LPRG")
    assert found["share"] == pytest.approx(0.01 / (0.01 + 0.08))
    assert found["spread"] == pytest.approx(0.1)
    assert found["flips"] == 0.5


# ----------------------------------------------------------------------- 41, by hand


def test_execution_by_hand():
    # cluster 1 sends 4 of its 6 units per time: 40 a period of 10 in packets of 2. Its own link
    # (20) passes one in 0.1, the two connections together (6) in 1/3, the other's link in 0.1:
    # the last is there after 0.1 + 20/3 + 0.1. Cluster 0 then has done 6.87 of its own 6 time units
    # and computes 40 at speed 10
    period = solve(two_clusters(), "MILP").periodic(10)
    assert period.units.tolist() == [[60, 0], [40, 20]]
    outcome, reached, longest = execute_periods(period, 12)
    outcome.check()
    arrives = 0.1 + 20 / 3 + 0.1
    assert longest == pytest.approx((arrives + 4) / 10)
    assert reached == pytest.approx(1)
    # over the backbone alone the same bandwidth; a latency of a tenth of a period comes on top
    assert execute_periods(period, 12, "backbone").longest == pytest.approx(longest)
    late = execute_periods(period, 12, latency=0.1).longest
    assert late == pytest.approx((1 + arrives + 4) / 10)


def test_execution_shows_a_promise_that_cannot_be_kept():
    # twice as much as the connections carry, behind the back of the check
    good = solve(two_clusters(), "MILP").periodic(10)
    units = good.units.copy()
    units[1] = [80, 20]
    broken = type(good)(good.platform, 10, units, good.connections)
    assert execute_periods(broken, 20).reached < 0.95
    with pytest.raises(InputError, match="network must be one of connections, backbone"):
        execute_periods(good, 2, "wire")


def test_all_work_at_home_needs_no_network():
    work = np.array([[Fraction(5), Fraction(0)], [Fraction(0), Fraction(2)]])
    allocation = Allocation(two_clusters(), work, np.zeros((2, 2), dtype=int))
    assert execute_periods(allocation.periodic(1), 6)[1:] == (1, 1)


def test_limits_bind():
    free = sample_platform("Tiers", 6, seed_of(0))
    for rule in ("none", "4 per pair", "1 per pair", "10 % for others", "both"):
        limited = replace(free, limits=beyond.limits_of(rule, 6))
        allocation = solve(limited, "LPRG")
        cost = allocation.work * limited.work[:, None]
        both = allocation.connections + allocation.connections.T
        if "pair" in rule or rule == "both":
            assert both.max() <= (4 if rule.startswith("4") else 1)
        if rule in ("10 % for others", "both"):
            others = cost.sum(axis=0) - np.diag(cost)
            assert (others <= 0.1 * limited.speed * (1 + 1e-9)).all()
        assert bound(limited) <= bound(free) * (1 + 1e-8)


def test_a_slower_link_cuts_the_flow_in_proportion():
    platform, *_, fair = case_of_the_paper()
    assert beyond.delivered(platform, fair) == pytest.approx(6)
    # link of bandwidth 3 at a third of it: two connections carry 2 of the 4 units
    slow = platform.links.assign(bandwidth=platform.links["bandwidth"] / 3)
    assert beyond.delivered(replace(platform, links=slow), fair) == pytest.approx(4)
    # a twentieth of the link of cluster 0: a quarter of the flow
    narrow = replace(platform, gateway=platform.gateway * [1 / 20, 1])
    assert beyond.delivered(narrow, fair) == pytest.approx(3)


def test_drift_is_stationary_and_correlated():
    walk = beyond.drift(4000, 12, np.random.default_rng(3))
    assert walk.std(axis=1) == pytest.approx(np.full(12, beyond.DECADES), rel=0.06)
    between = [np.corrcoef(walk[t], walk[t + 1])[0, 1] for t in range(11)]
    assert between == pytest.approx(np.full(11, beyond.MEMORY), abs=0.02)


def test_knowing_more_delivers_no_less_on_the_same_connections():
    rows = pd.concat(
        [pd.DataFrame(beyond.adapt(8, 12, seed_of(r))).assign(replicate=r) for r in range(2)]
    )
    wide = rows.pivot(index=["replicate", "period"], columns="policy", values="ratio")
    assert (wide["new work only"] >= wide["frozen"] - 1e-6).all()
    assert (wide <= 1).all().all()
    first = wide.xs(1, level="period")
    assert (first["frozen"] == first["this period's"]).all()


def test_flows_add_up():
    platform = sample_platform("Tiers", 6, seed_of(1))
    allocation = solve(platform, "LPRG")
    links, busy = beyond.flows_of(allocation)
    assert (links["opened"] <= links["max_connect"]).all()
    assert (busy.sum(axis=0) <= 1 + 1e-9).all()
    sent = allocation.work * platform.data[:, None]
    hops = sum(len(route) * sent[pair_] for pair_, route in platform.routes.items())
    assert links["data"].sum() == pytest.approx(hops)


def test_randomised_rounding_leaves_speed_idle_that_greedy_steps_hand_out():
    """Why users wait longer under LPRR although its objective is as good."""
    used = {name: [] for name in beyond.SERVING}
    for seed in map(seed_of, range(6)):
        platform = sample_platform("Tiers", 5, seed)
        for name, shares in used.items():
            work = solve(platform, name, seed=rounding_seed(seed)).work
            shares.append(float((work * platform.work[:, None]).sum() / platform.speed.sum()))
    assert used["G"] == pytest.approx([1] * 6)
    assert used["LPRG"] == pytest.approx([1] * 6)
    assert np.mean(used["LPRR"]) < 0.5


# ------------------------------------------------------- 41 and 66: the day of a broker


def test_both_notebooks_draw_the_same_day():
    texts = []
    for name in ("41-steady-state-beyond", "66-your-platform"):
        book = json.loads(suite_notebooks()[name].read_text("utf-8"))
        cells = ("".join(cell["source"]) for cell in book["cells"])
        texts.append([text for text in cells if "def draw_day(" in text])
    assert len(texts[0]) == 1
    assert texts[0] == texts[1]


def test_a_day_completes_and_repeats():
    p = draw_platform(11, False, clusters=5, limited=False, odd=0.0)
    short = {"count": 12, "hours": 6.0, "load": 0.5}
    runs = [beyond.serve_day(p, name, 2, Reading(), **short) for name in ("G", "LPRG", "G")]
    tables = [run.applications for run in runs]
    pd.testing.assert_frame_equal(tables[0], tables[2], check_exact=True)
    fixed = ["origin", "priority", "load", "arrival"]
    pd.testing.assert_frame_equal(tables[0][fixed], tables[1][fixed], check_exact=True)
    assert runs[0].summary()["submitted"] == 12
    assert runs[0].summary()["completed"] > 0
    assert 0 < runs[0].summary()["ratio"] <= 1 + 1e-9
    other = beyond.serve_day(p, "G", 3, Reading(), **short).applications
    assert not tables[0]["arrival"].equals(other["arrival"])


def events_by_site(events):
    """Return (hour, event, speed or None) of every site, in the order of the events."""
    found = {}
    for hour, event, arguments in events:
        if event != "submit":
            found.setdefault(arguments[0], []).append((hour, event, *arguments[1:]))
    return found


def test_sites_of_a_day_are_away_and_slow_down_as_documented():
    """Half of the sites are away for 1 to 4 hours; every 2 hours each delivers 50 to 100 %."""
    count = 400
    no_links = pd.DataFrame({"bandwidth": [], "max_connect": []}, dtype=float)
    speeds = np.arange(1.0, count + 1)
    p = Platform(speeds, speeds, no_links, {}, [1], [1], [1], origin=[0])
    sites = events_by_site(beyond.draw_day(p, 0, hours=24.0, count=1, load=0.5))
    away, parts = [], []
    for speed, events in zip(speeds, sites.values(), strict=True):
        assert events[0] == (0, "register", speed)
        leaves = [event[0] for event in events if event[1] == "withdraw"]
        returns = [event for event in events[1:] if event[1] == "register"]
        assert [one[2] for one in returns] == [speed] * len(leaves)
        gone = [(leave, back[0]) for leave, back in zip(leaves, returns, strict=True)]
        away += gone
        shifts = [event for event in events if event[1] == "deliver"]
        here = [t for t in range(0, 24, 2) if not any(start <= t <= end for start, end in gone)]
        assert [event[0] for event in shifts] == here
        parts += [event[2] / speed for event in shifts]
    assert abs(len(away) - count / 2) <= 4 * math.sqrt(count / 4)
    left, lasted = np.array(away)[:, 0], np.diff(away).ravel()
    assert (left >= 0).all()
    assert 1 <= lasted.min() < 1.1
    assert 3.9 < lasted.max() <= 4
    assert lasted.mean() == pytest.approx(2.5, abs=4 * 3 / math.sqrt(12 * len(away)))
    assert (left + lasted <= 24).all()
    # uniform before 24 less the time away
    assert (left / (24 - lasted)).mean() == pytest.approx(0.5, abs=4 / math.sqrt(12 * len(away)))
    assert 0.5 <= min(parts) < 0.51
    assert 0.99 < max(parts) <= 1
    assert np.mean(parts) == pytest.approx(0.75, abs=4 * 0.5 / math.sqrt(12 * len(parts)))


def test_a_day_offers_the_load_it_says():
    p = draw_platform(11, False, clusters=5, limited=False, odd=0.0)
    events = beyond.draw_day(p, 0, hours=24.0, count=400, load=0.3)
    submitted = [arguments for _, event, arguments in events if event == "submit"]
    assert len(submitted) == 400
    offered = sum(load * work for _, _, load, _, work, _ in submitted)
    # a lognormal of deviation 1 of its logarithm has deviation sqrt(e - 1) = 1.31 times the mean
    assert offered / (p.speed.sum() * 24) == pytest.approx(0.3, rel=4 * 1.31 / 20)


@pytest.mark.parametrize("bad", [{"load": 0}, {"hours": "many"}, {"seed": -1}])
def test_a_day_refuses_nonsense(bad):
    usual = {"seed": 0, "hours": 24.0, "load": 0.5, "count": 40}
    with pytest.raises(InputError, match=f"{next(iter(bad))} must be"):
        beyond.draw_day(pair(), **usual | bad)
