"""The panel of wide-area flows: hand cases, exact twins, labels and bars against allocations."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import explore
from dlsim.errors import InputError
from dlsim.explore.wan import SCHEDULE_METHODS, best_allocation, make_platform
from dlsim.steady import bound, check_allocation, solve
from tests.helpers.scale import scale_count
from tests.helpers.steady_platforms import as_instance
from tests.twins import steady as twin

PANEL = explore.wan

CHAIN = {"network": "chain", "clusters": 2}
DRAWN = ("Tiers-like", "random")


def draw(**given):
    """Return the sentence, the axes of the two maps, and those of the bars."""
    figure, sentence = PANEL.picture(**given)
    return sentence, *figure.axes


def said(words):
    """Objective, optimum and bound of the sentence."""
    numbers = [w.strip("(),;%.") for w in words.replace("optimum's", "").split()]
    floats = [float(n) for n in numbers if n.replace(".", "", 1).replace("e+", "").isdigit()]
    return floats[0], floats[2] if "%" in words else floats[1], floats[3 if "%" in words else 2]


def opened(a):
    """Connections on every link, counted route by route."""
    return {
        link: int(
            sum(a.connections[pair] for pair, way in a.platform.routes.items() if link in way)
        )
        for link in a.platform.links.index
    }


def fractions_on(ax):
    """The labels used/allowed of a map."""
    return sorted(text.get_text() for text in ax.texts if "/" in text.get_text())


# ------------------------------------------------------------------------ hand cases


@pytest.mark.parametrize(
    ("method", "reading", "value"),
    [
        ("LPRG", {}, 6),
        ("G", {}, 4),
        ("G", {"local_amount": "prose"}, 6),
        ("LPR", {}, 5),
        ("MILP", {}, 6),
    ],
)
def test_two_clusters_by_hand(method, reading, value):
    """Speeds 10 and 2, one link of two connections of bandwidth 3, own links of 20."""
    words, left, right, _ = draw(**CHAIN, method=method, reading=reading)
    assert said(words) == (value, 6, 6)
    assert words.startswith(f"{method} gives its worst-served application {value:g}, ")
    assert left.get_title() == f"{method}: {value:g}"
    assert right.get_title() == "optimum: 6"


def test_link_carries_what_is_used_of_what_is_allowed():
    words, left, right, _ = draw(**CHAIN, method="LPR")
    assert fractions_on(left) == ["1/2"]
    assert fractions_on(right) == ["2/2"]
    assert words.endswith("; links with all connections open: 0 of 1.")


def test_sliders_change_links_only():
    p = make_platform("chain", 2, 0, 1.0, 10, "one")
    q = make_platform("chain", 2, 0, 2.0, 1, "one")
    assert p.links["bandwidth"].tolist() == [3]
    assert (q.links["bandwidth"].tolist(), q.links["max_connect"].tolist()) == ([6], [1])
    assert np.array_equal(p.speed, q.speed)
    assert np.array_equal(p.gateway, q.gateway)
    none = draw(**CHAIN, connections=0)[0]
    assert none.startswith("LPRG gives its worst-served application 2, 100 % of the optimum's 2 ")


# ------------------------------------------------------------------------ against exact twins


@pytest.mark.parametrize("connections", [0, 1, 2])
@pytest.mark.parametrize("clusters", [2, 3])
def test_optimum_and_bound_are_exact(clusters, connections):
    p = make_platform("chain", clusters, 0, 1.0, connections, "one")
    given = {"network": "chain", "clusters": clusters, "connections": connections}
    value, best, top = said(draw(**given, method="MILP")[0])
    assert value == best == pytest.approx(float(twin.brute_force(as_instance(p))), rel=1e-3)
    assert top == pytest.approx(float(twin.relaxed(as_instance(p))[0]), rel=1e-3)


# ------------------------------------------------------------------------ what must always hold


@given(
    st.sampled_from(DRAWN),
    st.integers(3, 10),
    st.integers(0, 99),
    st.sampled_from(SCHEDULE_METHODS),
    st.sampled_from([0.1, 1.0, 10.0]),
    st.integers(0, 10),
)
@settings(max_examples=scale_count(14), deadline=None)
def test_picture_is_the_allocations(network, clusters, seed, method, bandwidth, connections):
    given = {
        "network": network, "clusters": clusters, "seed": seed, "method": method,
        "bandwidth": bandwidth, "connections": connections,
    }  # fmt: skip
    words, left, right, bars = draw(**given)
    p = make_platform(network, clusters, seed, bandwidth, connections, "one")
    best = best_allocation(p, ())
    a = best if method == "MILP" else solve(p, method, seed=seed)
    for found, ax in ((a, left), (best, right)):
        check_allocation(p, found.work, found.connections, False)
        allowed = p.links["max_connect"]
        shown = [(n, allowed[link]) for link, n in opened(found).items() if n]
        assert fractions_on(ax) == sorted(f"{n}/{most:g}" for n, most in shown)
        assert all(n <= most for n, most in shown)
    counted = np.flatnonzero(p.is_counted)
    heights = [  # the boxes of a collection are one shape of five corners each
        np.ptp(group.get_paths()[0].vertices.reshape(-1, 5, 2)[:, :, 1], axis=1)
        for group in bars.collections
    ]
    for found, group in zip((a, best), heights, strict=True):
        own = [sum(found.work[k, to] for to in range(clusters)) / p.priority[k] for k in counted]
        assert group == pytest.approx(own)
        assert found.objective == pytest.approx(min(own))
    value, optimum, top = said(words)
    assert value <= optimum * (1 + 1e-3) <= top * (1 + 2e-3)
    assert value == pytest.approx(a.objective, rel=1e-3)
    assert top == pytest.approx(bound(p), rel=1e-3)


# ------------------------------------------------------------------------ readings, refusals


def test_real_network_is_drawn():
    pytest.importorskip("topohub")
    assert "worst-served" in draw(network="Abilene", clusters=10)[0]


def test_real_network_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "topohub", None)
    with pytest.raises(InputError, match="pip install"):
        PANEL.picture(network="Abilene", clusters=10, seed=98)
