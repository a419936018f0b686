"""The code of notebooks 40 and 41, by hand."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.random import SeedSequence

from dlsim.errors import InputError
from dlsim.files import suite_notebooks
from dlsim.papers.packets import execute_periods
from dlsim.steady import Allocation, Platform, solve
from tests.helpers.steady_platforms import pair
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


def test_ratios_ignore_rounding_error():
    assert paper.over_bound(3.0000000001, 3.0) == 1
    assert paper.over_bound(0.0, 0.0) == 1
    assert paper.over_bound(1.0, 3.0) == 0.333333


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


# ------------------------------------------------------- 41 and 66: the day of a broker


def test_both_notebooks_draw_the_same_day():
    texts = []
    for name in ("41-steady-state-beyond", "66-your-platform"):
        book = json.loads(suite_notebooks()[name].read_text("utf-8"))
        cells = ("".join(cell["source"]) for cell in book["cells"])
        texts.append([text for text in cells if "def draw_day(" in text])
    assert len(texts[0]) == 1
    assert texts[0] == texts[1]


@pytest.mark.parametrize("bad", [{"load": 0}, {"hours": "many"}, {"seed": -1}])
def test_a_day_refuses_nonsense(bad):
    usual = {"seed": 0, "hours": 24.0, "load": 0.5, "count": 40}
    with pytest.raises(InputError, match=f"{next(iter(bad))} must be"):
        beyond.draw_day(pair(), **usual | bad)
