"""Platforms, readings, files, the check of (6), and sites reduced to one speed."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.errors import InputError, ScheduleError
from dlsim.steady import Allocation, Limits, Network, Platform, Share, bound, polish, solve_program
from dlsim.steady.check import find_violations
from dlsim.steady.result import scale_to_feasible
from dlsim.steady.routes import check_routes, require_pair_memory
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import scale_count
from tests.helpers.steady_platforms import draw_platform, pair, platforms
from tests.twins.steady_rows import rows_of


def fields(**change):
    """Fields of a platform of two clusters behind one link."""
    link = pd.DataFrame({"bandwidth": [3.0], "max_connect": [2]})
    return {
        "speed": [10, 2],
        "gateway": [20, 20],
        "links": link,
        "routes": {(0, 1): [0], (1, 0): [0]},
        "priority": [1, 1],
        "work": [1, 1],
        "data": [1, 1],
    } | change


def links(**change):
    return pd.DataFrame({"bandwidth": [3.0], "max_connect": [2.0]} | change)


# ------------------------------------------------------------------- bad input


def test_what_is_no_platform_is_refused():
    """Numbers of each kind are tried in `test_validate`."""
    for change, message in (
        ({"speed": []}, "speed must list at least one cluster"),
        ({"speed": [1, -1]}, r"speed\[1\] must be a finite number of at least 0, got -1"),
        ({"speed": 3}, "speed must be a list of numbers, got 3"),
        ({"gateway": [1, 2, 3]}, "gateway must have 2 entries, got 3"),
        ({"links": pd.DataFrame({"bandwidth": [1.0]})}, "max_connect not found among bandwidth"),
        ({"links": pd.concat([links(), links()])}, "label 0 of links appears twice"),
        ({"links": [3.0]}, "links must be a pandas DataFrame"),
        ({"routes": {(0, 1): ["x"]}}, "route 0 -> 1 must join two clusters over known links"),
        ({"routes": {(0, 1): [[0]]}}, r"known links; got \[0\]"),
        ({"routes": {(0, 2): [0]}}, "route 0 -> 2"),
        ({"routes": {(1, 1): [0]}}, "route 1 -> 1"),
        ({"routes": {(0, 1): [0, 0]}}, "pass each link once"),
        ({"routes": {(0, 1): 0}}, r"route \(0, 1\) must be a list, got 0"),
        ({"routes": {(0.0, 1.0): [0]}}, r"pairs of clusters, got \(0.0, 1.0\)"),
        ({"routes": [(0, 1)]}, "routes must map pairs of clusters to links"),
        ({"data": [1]}, "data must have 2 entries, got 1"),
        ({"work": [1]}, "work must have 2 entries"),
        ({"priority": [1]}, "priority must have 2 or 2 x 2 entries, got 1"),
        ({"priority": [[1, 2, 3]] * 2}, "priority must have 2 or 2 x 2 entries, got 2 x 3"),
        ({"priority": [0, 0]}, r"at least one application, got \[0. 0.\]"),
        ({"origin": [0]}, "origin must name one of 2 clusters for each of 2 applications"),
        ({"origin": [0, 2]}, "origin must name"),
        ({"origin": ["a", 0]}, "origin must name"),
        ({"origin": 0}, "origin must be a list, got 0"),
        ({"router": ["a"]}, "router must name 2 routers"),
        ({"router": 5}, "router must be a list, got 5"),
        ({"limits": Limits((Share(5, (0,), 0.1),))}, "must name clusters 0 to 1"),
        ({"limits": Limits((Share(0, (5,), 0.1),))}, "must name clusters 0 to 1"),
        ({"limits": Limits(pairs={(0, 7): 1})}, "limits.pairs must name two clusters"),
        ({"limits": None}, "limits must be a Limits, got None"),
    ):
        with pytest.raises(InputError, match=message):
            Platform(**fields(**change))


test_what_is_no_limit_is_refused = refuses_each([
    (lambda: Share(0, (), 0.5), "at least one origin"),
    (lambda: Share(0, 1, 0.5), "origins of a share cap must be a list, got 1"),
    (lambda: Share(0, (0.5,), 0.5), "origins of a share cap must be a whole number"),
    (lambda: Share(0, "01", 0.5), "origins of a share cap must be a list, got '01'"),
    (lambda: Share(0, (0,), 1.5), "share must be a number from 0 to 1, got 1.5"),
    (lambda: check_routes({(0, -1): ["x"]}, pd.Index(["x"]), 2, ["a", "b"]), "route a -> -1 must"),
    (lambda: require_pair_memory(1, 10**15), "1 clusters on 1,000,000,000,000,000 routers"),
    (lambda: require_pair_memory(10**9, 1), "1,000,000,000 clusters on 1 routers"),
    (lambda: Limits(pairs={(0, 1, 1): 1}), r"pairs of clusters, got \(0, 1, 1\)"),
    (lambda: Limits((0.1,)), "limits.shares must be a Share, got 0.1"),
    (lambda: Limits(pairs={(0, 1): True}), "limits.pairs must be a number of at least 0, got True"),
    (lambda: Limits(pairs={0: 1}), "limits.pairs must be named by pairs of clusters, got 0"),
])  # fmt: skip


def test_frozen_objects_keep_their_own_lists():
    speed, router, routes, caps = [10, 2], ["a", "b"], {(0, 1): [0], (1, 0): [0]}, {(0, 1): 1}
    origins, work = [0], np.array([[4.0, 0.0], [0.0, 2.0]])
    limits = Limits([Share(0, origins, 1)], caps)
    p = Platform(**fields(speed=speed, router=router, routes=routes, limits=limits))
    found = Allocation(p, work, np.zeros((2, 2), dtype=int))
    speed[0], work[0, 0] = 99, 99
    router.append("c")
    routes[0, 1].append(7)
    routes.clear()
    caps.clear()
    origins.append(1)
    found.check()
    assert (p.speed.tolist(), p.router, dict(p.routes)) == (
        [10, 2],
        ("a", "b"),
        {(0, 1): (0,), (1, 0): (0,)},
    )
    assert p.limits == Limits((Share(0, (0,), 1),), {(0, 1): 1})
    assert found.objective == 2


def test_no_pair_is_no_limit():
    assert replace(pair(), limits=Limits(pairs={})).limits == Limits()


def test_a_limited_pair_is_one_more_link_of_its_routes():
    """Three clusters behind one link: 0 and 1, and 0 and 2, are limited, 1 and 2 are not."""
    routes, three = {(2, 0): [0], (1, 0): [0], (0, 1): [0], (1, 2): [0]}, [1, 1, 1]
    limits = Limits(pairs={(0, 1): 4, (2, 0): 5, (0, 2): 6, (1, 2): math.inf})
    tables = Platform(three, three, links(), routes, *[three] * 3, limits=limits).tables
    assert tables.pairs.tolist() == [[0, 1], [1, 0], [1, 2], [2, 0]]
    assert [tables.links_of(route).tolist() for route in range(4)] == [[0, 1], [0, 1], [0], [0, 2]]
    assert tables.capacity.tolist() == [2, 4, 5]
    assert tables.bandwidth.tolist() == [[math.inf, 3, 0], [3, math.inf, 3], [3, 0, math.inf]]


def test_broken_connections_are_rounded_down_with_a_warning():
    with pytest.warns(UserWarning, match=r"max_connect is rounded down .* 2\.7") as caught:
        p = Platform(**fields(links=links(bandwidth=[3.0, 3.0], max_connect=[2, 2.7])))
    assert p.links["max_connect"].tolist() == [2, 2]
    assert caught[0].filename == __file__
    for most, kept in ((1.5, 1), ({(0, 1): 1.5}, {(0, 1): 1})):
        with pytest.warns(UserWarning, match=r"limits\.pairs is rounded down .* 1\.5") as caught:
            assert Limits(pairs=most).pairs == kept
        assert caught[0].filename == __file__
    assert bound(p) == pytest.approx(bound(Platform(**fields())))


def test_the_numbers_cannot_be_changed_afterwards():
    with pytest.raises(ValueError, match="read-only"):
        pair().speed[0] = 5


# --------------------------------------------------------- degenerate but defined

#: What a platform of speeds 10 and 2 is changed to, and the optimum: 2 at home, 6 together.
DEGENERATE = [
    ({"routes": {}, "links": links().iloc[:0]}, 2),
    ({"links": links(max_connect=[0])}, 2),
    ({"links": links(bandwidth=[0.0])}, 2),
    ({"routes": {(0, 1): [], (1, 0): []}, "limits": Limits(pairs=0)}, 6),
    # no data need a route, but no connection
    ({"data": [0, 0], "gateway": [0, 0], "links": links(max_connect=[0])}, 6),
    ({"data": [0, 0], "routes": {}}, 2),
    ({"links": links(max_connect=[np.inf], bandwidth=[0.5])}, 6),
    ({"priority": [1, 0]}, 12),  # priority 0 counts for nothing
]


@pytest.mark.parametrize(("change", "optimum"), DEGENERATE)
def test_what_is_degenerate_is_defined(change, optimum):
    p = Platform(**fields(**change))
    best = solve_program(p)
    best.check()
    assert (best.objective, bound(p)) == (pytest.approx(optimum), pytest.approx(optimum))


# ------------------------------------------------------ the check, rule by rule


def allocation(work=((5, 0), (1, 2)), connections=((0, 0), (1, 0)), **change):
    more = {"is_relaxed": change.pop("is_relaxed", False)}
    return Allocation(
        Platform(**fields(**change)), np.array(work, float), np.array(connections), **more
    )


def test_every_broken_rule_is_named():
    for bad, message in (
        (allocation(((8, 0), (2.1, 2))), r"\(6b\) speed of cluster 0: 10\.1 exceeds 10"),
        (allocation(gateway=[20, 0.9]), r"\(6c\) gateway of cluster 1: 1 exceeds 0\.9"),
        (allocation(gateway=[0.9, 20]), r"\(6c\) gateway of cluster 0: 1 exceeds 0\.9"),
        (allocation(connections=((0, 1), (2, 0))), r"\(6d\) link 0: 3 exceeds 2"),
        (allocation(((5, 0), (3.1, 2))), r"\(6e\) route 1 -> 0: 3\.1 exceeds 3"),
        (allocation(((5, 1), (1, 1))), r"\(6e\) route 0 -> 1: 1 exceeds 0"),
        (allocation(((-1, 0), (1, 2))), r"\(6f\)"),
        (allocation(((np.nan, 0), (1, 2))), r"\(6f\)"),
        (allocation(connections=((0, 0), (-1, 0))), r"\(6g\)"),
        (allocation(connections=((0, 0), (1.5, 0))), r"\(6g\): connections must be whole"),
        (allocation(routes={(0, 1): [0]}), r"work of cluster 1 without a route: 1 exceeds 0"),
        (allocation(routes={(0, 1): [0], (1, 0): []}), r"connections 1 -> 0 without a link"),
        (allocation(limits=Limits(pairs=0)), "connections between 1 and 0|0 and 1: 1 exceeds 0"),
        (allocation(limits=Limits((Share(0, (0, 1), 0.5),))),
         r"share of \(0, 1\) in cluster 0: 6 exceeds 5"),
        (allocation(((5, 0),)), "work, connections must be"),
    ):  # fmt: skip
        with pytest.raises(ScheduleError, match=message):
            bad.check()


def test_rows_are_checked_in_their_own_units():
    """A part in a million too much is refused, whatever the size of the numbers."""
    for unit in (1e-12, 1.0, 1e12):
        scaled = {
            "speed": [10 * unit, 2 * unit],
            "gateway": [20 * unit, 20 * unit],
            "links": links(bandwidth=[3 * unit]),
        }
        work = np.array([[7.0, 0.0], [3.0, 2.0]]) * unit
        allocation(work, **scaled).check()
        for cell, words in (((1, 0), "6b|6e"), ((0, 0), "6b"), ((1, 1), "6b")):
            much = work.copy()
            much[cell] *= 1 + 1e-6
            with pytest.raises(ScheduleError, match=words):
                allocation(much, **scaled).check()


def test_a_valid_allocation_passes():
    allocation().check()
    allocation(connections=((0, 0), (0.5, 0)), is_relaxed=True).check()
    assert allocation().objective == 3
    assert allocation().ratio == pytest.approx(0.5)


@settings(max_examples=scale_count(100), deadline=None)
@given(platforms(), st.integers(0, 1000), st.booleans())
def test_what_is_broken_is_what_the_twin_finds_row_by_row(p, seed, is_exact):
    rng = np.random.default_rng(seed)
    work = rng.choice([0, 0, 0.25, 1.5, 8], (p.applications, p.clusters))
    opened = rng.choice([0, 0, 1, 4], (p.clusters, p.clusters))
    if is_exact:
        work = np.array([[Fraction(x) for x in row] for row in work.tolist()], dtype=object)
    found = {row.name: row for row in find_violations(p, work, opened, is_exact)}
    expected = {
        row.name: row
        for row in rows_of(p, work, opened, is_exact)
        if row.used > row.limit * (1 if is_exact else 1 + 1e-9)
    }
    # connections of two clusters are said once for each way that carries some
    loud = {name for name in expected if name.startswith("connections between")}
    assert set(expected) - loud <= set(found) <= set(expected)
    assert len(loud) <= 2 * len(loud & set(found))
    for name, row in found.items():
        twin = expected[name]
        assert (row.used, row.limit) == pytest.approx((twin.used, twin.limit), rel=1e-12)
        assert {tuple(map(int, cell)) for cell in row.cells} == set(twin.cells)
        assert row.is_sending == twin.is_sending


@settings(max_examples=scale_count(60), deadline=None)
@given(st.integers(0, 1000), st.floats(1.0, 3.0))
def test_trim_meets_every_row_and_only_shrinks(seed, factor):
    p = draw_platform(seed, exact=False)
    best = solve_program(p)
    swollen = best.work * factor
    work = scale_to_feasible(p, swollen, best.connections)
    assert (work <= swollen).all()
    Allocation(p, work, best.connections).check()
    assert scale_to_feasible(p, best.work / 2, best.connections) == pytest.approx(best.work / 2)
    relaxed = scale_to_feasible(p, swollen)
    for row in find_violations(p, relaxed, np.full(best.connections.shape, 10**9), is_exact=False):
        assert not row.cells


# ----------------------------------------------------------------- links and graphs


def test_a_graph_needs_the_ends_of_its_links():
    with pytest.raises(InputError, match="start and end"):
        pair().to_graph()
    both = pd.DataFrame(
        {"bandwidth": 1.0, "max_connect": 1, "start": ["a", "b"], "end": ["b", "a"]}
    )
    p = Platform(**fields(links=both, router=["a", "b"]))
    with pytest.raises(InputError, match="two links join"):
        p.to_graph()


def test_priorities_are_inverted():
    p = Platform(**fields(speed=[2, 2]))
    assert polish(p, np.zeros((2, 2))).objective == 2
    assert replace(p, priority=[1, 2]).inverse_priority.tolist() == [[1, 1], [0.5, 0.5]]


def test_columns_of_links_that_are_not_known_are_refused():
    links = pair().links.assign(max_conect=3)
    with pytest.raises(InputError, match=r"'max_conect' .* mean max_connect\?"):
        replace(pair(), links=links)
    with pytest.raises(InputError, match="links have a column 'max_conect'"):
        Network(["a", "b"], [20, 20], links, pair().routes)
    for kept in (
        replace(pair(), links=links, ignore=["max_conect"]),
        Network(["a", "b"], [20, 20], links, pair().routes, ignore=["max_conect"]),
    ):
        assert list(kept.links) == ["bandwidth", "max_connect"]
        assert list(replace(kept, gateway=[1, 1]).links) == ["bandwidth", "max_connect"]
