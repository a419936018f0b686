"""The panel of wide-area flows: hand cases, exact twins, labels and bars against allocations."""

import itertools
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from matplotlib.transforms import Bbox

from dlsim import explore
from dlsim.errors import InputError
from dlsim.explore import flows
from dlsim.explore.flows import METHODS, chain, funnel, platform_of
from dlsim.steady import Reading, bound, solve, verify
from tests.scale import SCALE, deep
from tests.steady_platforms import as_instance
from tests.test_explore_panel import Draws
from tests.twins import steady as twin

PANEL = explore.wan

CHAIN = {"network": "chain by hand"}
DRAWN = ("Tiers-like", "random")


def draw(**given):
    """The words on one line, two maps, the bars."""
    figure = PANEL.update(**PANEL.values(**given))
    left, right, bars = figure.axes
    return " ".join(figure.get_suptitle().split()), left, right, bars


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
    ("speeds", "method", "reading", "value", "best"),
    [
        ((10, 2), "LPRG", {}, 6, 6),
        ((10, 2), "G", {}, 4, 6),
        ((10, 2), "G", {"local_amount": "prose"}, 6, 6),
        ((10, 2), "LPR", {}, 5, 6),
        ((10, 2), "MILP", {}, 6, 6),
        ((10, 0), "G", {}, 4, 5),
        ((10, 0), "G", {"stuck": "rest"}, 0, 5),
        ((10, 0), "LPR", {}, 3, 5),
        ((10, 0), "LPRG", {}, 5, 5),
    ],
)
def test_two_clusters_by_hand(speeds, method, reading, value, best):
    """Cases A and C: one link of two connections of bandwidth 3, own links of 20."""
    words, left, right, _ = draw(**CHAIN, speeds=speeds, method=method, reading=reading)
    assert said(words) == (value, best, best)
    assert words.startswith(f"{method} gives its worst-served application {value:g}, ")
    assert left.get_title() == f"{method}: {value:g}"
    assert right.get_title() == f"optimum: {best:g}"


def test_connection_cannot_be_halved_by_hand():
    """Case E: two clusters without speed share one connection of 4: relaxed 2, whole 0."""
    words, _, right, bars = draw(network="one connection for two")
    assert words == (
        "LPRG gives its worst-served application 0, the optimum 0 (relaxed bound 2); links "
        "with all connections open: 1 of 3."
    )
    assert "1/1" in fractions_on(right)
    assert [tick.get_text() for tick in bars.get_xticklabels()] == ["0", "1"]
    assert bars.get_ylim()[1] > 2


def test_link_carries_what_is_used_of_what_is_allowed():
    words, left, right, _ = draw(**CHAIN, speeds=(10, 2), method="LPR")
    assert fractions_on(left) == ["1/2"]
    assert fractions_on(right) == ["2/2"]
    assert words.endswith("; links with all connections open: 0 of 1.")


def test_sliders_change_links_only():
    p = platform_of("chain by hand", 8, 0, (10.0, 2.0), 1.0, 10)
    q = platform_of("chain by hand", 8, 0, (10.0, 2.0), 2.0, 1)
    assert p.links["bandwidth"].tolist() == [3]
    assert (q.links["bandwidth"].tolist(), q.links["max_connect"].tolist()) == ([6], [1])
    assert np.array_equal(p.speed, q.speed)
    assert np.array_equal(p.gateway, q.gateway)
    none = draw(**CHAIN, connections=0)[0]
    assert none.startswith("LPRG gives its worst-served application 2, 100 % of the optimum's 2 ")


# ------------------------------------------------------------------------ against exact twins


@given(st.lists(st.integers(0, 12), min_size=1, max_size=3), st.integers(0, 3))
@settings(max_examples=int(10 * SCALE), deadline=None)
def test_optimum_and_bound_are_exact(speeds, connections):
    p = platform_of("chain by hand", 8, 0, tuple(map(float, speeds)), 1.0, connections)
    words = draw(**CHAIN, speeds=speeds, connections=connections, method="MILP")[0]
    value, best, top = said(words)
    assert value == best == pytest.approx(float(twin.brute_force(as_instance(p))), rel=1e-3)
    assert top == pytest.approx(float(twin.relaxed(as_instance(p))[0]), rel=1e-3)


def test_funnel_is_exact():
    assert twin.brute_force(as_instance(funnel())) == 0
    assert twin.relaxed(as_instance(funnel()))[0] == 2


# ------------------------------------------------------------------------ what must always hold


@given(
    st.sampled_from(DRAWN), st.integers(3, 10), st.integers(0, 99), st.sampled_from(METHODS),
    st.sampled_from([0.1, 1.0, 10.0]), st.integers(0, 10),
)  # fmt: skip
@settings(max_examples=int(14 * SCALE), deadline=None)
def test_picture_is_the_allocations(network, clusters, seed, method, bandwidth, connections):
    given = {
        "network": network, "clusters": clusters, "seed": seed, "method": method,
        "bandwidth": bandwidth, "connections": connections,
    }  # fmt: skip
    words, left, right, bars = draw(**given)
    p = platform_of(network, clusters, seed, (10.0, 2.0), bandwidth, connections)
    best = flows._optimum(p, ())
    a = best if method == "MILP" else solve(p, method, seed)
    for found, ax in ((a, left), (best, right)):
        verify(p, found.work, found.connections, False)
        allowed = p.links["max_connect"]
        shown = [(n, allowed[link]) for link, n in opened(found).items() if n or len(allowed) <= 8]
        assert fractions_on(ax) == sorted(f"{n}/{most:g}" for n, most in shown)
        assert all(n <= most for n, most in shown)
    counted = np.flatnonzero(p.counted)
    heights = [[bar.get_height() for bar in group] for group in bars.containers]
    for found, group in zip((a, best), heights, strict=True):
        own = [sum(found.work[k, to] for to in range(clusters)) / p.priority[k] for k in counted]
        assert group == pytest.approx(own)
        assert found.objective == pytest.approx(min(own))
    value, optimum, top = said(words)
    assert value <= optimum * (1 + 1e-3) <= top * (1 + 2e-3)
    assert value == pytest.approx(a.objective, rel=1e-3)
    assert top == pytest.approx(bound(p), rel=1e-3)


def test_links_are_as_wide_as_what_they_carry():
    """Speeds 10, 2, 0: widths grow with the data, which only the links between them carry."""
    p = chain((10.0, 2.0, 0.0))
    a = solve(p, "MILP")
    _, _, right, _ = draw(**CHAIN, speeds=(10, 2, 0))
    (lines,) = [c for c in right.collections if isinstance(c, LineCollection)]
    data = [
        sum(a.work[k, to] for (k, to), way in p.routes.items() if link in way)
        for link in p.links.index
    ]
    widths = lines.get_linewidths()
    assert min(data) > 0
    assert np.argsort(widths).tolist() == np.argsort(data).tolist()
    assert (np.array(widths) - 0.8) ** 2 / np.array(data) == pytest.approx(25 / max(data))


def hidden(ax, renderer):
    """Pairs of texts of a map that lie on each other by more than two pixels each way."""
    texts = [text for text in ax.texts if text.get_text()]
    both = itertools.combinations([text.get_window_extent(renderer) for text in texts], 2)
    parts = [Bbox.intersection(one, other) for one, other in both]
    return sum(part is not None and min(part.width, part.height) > 2 for part in parts)


@pytest.mark.parametrize(("clusters", "seeds"), [
    (5, range(4)), pytest.param(8, range(6), marks=deep), (10, (0, 1, 4)),
])  # fmt: skip
def test_labels_hide_neither_each_other_nor_clusters(clusters, seeds):
    draws = Draws(PANEL)
    for network, seed in itertools.product(DRAWN, seeds):
        draws(network=network, clusters=clusters, seed=seed)
        renderer = draws.figure.canvas.get_renderer()
        found = [hidden(ax, renderer) for ax in draws.figure.axes[:2]]
        assert max(found) <= (clusters > 5), (network, seed)  # where short links are many


def test_labels_by_hand_give_way():
    """Two links on each other: the second label goes where the first is not, along its link."""
    link, size = [[0.0, 0.0], [1000.0, 0.0]], [30.0, 10.0]
    spots = flows._apart(np.array([link, link]), np.array([size, size]), np.empty((0, 4)))
    assert spots.tolist() == [[420.0, 0.0], [500.0, 0.0]]
    box = np.array([[0.0, 0.0, 30.0, 2000.0]])  # a wall over the whole of a short link: beside it
    short = np.array([[[0.0, 0.0], [10.0, 0.0]]])
    aside = flows._apart(short, np.array([size]), np.vstack([box, [0.0, 0.0, 60.0, 12.0]]))
    assert abs(aside[0, 1]) == 8.0


@pytest.mark.parametrize("network", DRAWN)
def test_places_differ_and_are_the_same_twice(network):
    p = platform_of(network, 10, 4, (10.0, 2.0), 1.0, 10)
    places, again = flows._places(p), flows._places.__wrapped__(p)
    assert list(places) == list(again)
    spots = np.array(list(places.values()))
    assert np.array_equal(spots, list(again.values()))
    far = np.linalg.norm(spots[:, None] - spots[None], axis=2)
    assert far[~np.eye(len(far), dtype=bool)].min() > 0.05
    assert nx.Graph(p.links[["start", "end"]].to_numpy().tolist()).nodes <= set(places)


# ------------------------------------------------------------------------ readings, refusals


@pytest.mark.parametrize(
    ("name", "value", "method"),
    [
        ("vertex", "least_connections", "LPR"),
        ("lprg_start", "zero", "LPRG"),
        ("local_amount", "prose", "G"),
        ("stuck", "rest", "G"),
    ],
)
def test_switch_changes_a_picture(name, value, method):
    reading = Reading.of({name: value})
    platforms = [
        *(platform_of("Tiers-like", 8, seed, (10.0, 2.0), 1.0, 10) for seed in range(20)),
        chain((10.0, 0.0)),
    ]
    pairs = (
        (solve(p, method).objective, solve(p, method, 0, reading).objective) for p in platforms
    )
    assert any(abs(plain - other) > 1e-6 * plain for plain, other in pairs)


def test_heterogeneous_table_changes_the_random_platform():
    plain, other = (draw(network="random", reading=r)[0] for r in ({}, {"table2": "het"}))
    assert plain != other


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clusters": 11}, "between 3 and 10"),
        ({"method": "LP"}, "must be one of"),
        ({"speeds": [-1]}, "between 0"),
        ({"reading": {"stuck": "never"}}, "must be one of"),
        ({"network": "torus"}, "must be one of"),
    ],
)
def test_bad_platforms_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        PANEL.figure(**given)


def test_real_network_is_drawn():
    pytest.importorskip("topohub")
    assert "worst-served" in draw(network="Abilene", clusters=10)[0]


def test_real_network_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "topohub", None)
    with pytest.raises(InputError, match="pip install"):
        PANEL.figure(network="Abilene", clusters=10, seed=98)


def test_words_lie_inside_and_bytes_are_the_same():
    figure, png = PANEL.drawn(clusters=10, seed=20)
    assert PANEL.drawn(clusters=10, seed=20)[1] == png
    renderer, width = figure.canvas.get_renderer(), figure.canvas.get_width_height()[0]
    for text in (figure._suptitle, *(ax.title for ax in figure.axes), *figure.axes[0].texts):
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0, text.get_text()
        assert box.x1 <= width, text.get_text()
