"""The panel of deadlines on the Grid: its points against plain runs, the twin, its bars."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.path import Path

from dlsim import explore
from dlsim.bricks import Environment, Policy, Reading, simulate
from dlsim.errors import InputError
from dlsim.explore.grid import (
    OPTS,
    GridSetting,
    cost_and_failure,
    count_by_server,
    draw_environment,
    run_on_grid,
)
from tests.helpers.bricks_environments import grid
from tests.helpers.scale import scale_count

PANEL = explore.grid

PLAIN = GridSetting(60.0, 0, 1, False, 60.0)


def draw(**given):
    """Return the sentence, the axes of the curve, and those of the servers."""
    figure, sentence = PANEL.picture(**given)
    return sentence, *figure.axes


def drawn_again(setting):
    """The environment of a setting, by the generator alone."""
    size = {"horizon": 24 * 3600, "domains": 2, "nodes": (8, 8)}
    return Environment.random(setting.seed, setting.interval, **size)


def by_hand(env, scheduler, reading):
    """Cost and failure rate from the requests' own rows, and how many there are."""
    o = simulate(env, scheduler, reading)
    o.check()
    missed = o.requests["completion"] > env.requests["due"]
    costs = env.servers["performance"].to_numpy()[o.requests["server"]]
    return costs.mean(), 100 * missed.mean(), len(missed)


def lines(ax):
    """Points of every line of the curve by its label."""
    return {line.get_label(): line.get_xydata() for line in ax.lines}


def bars_of(collection):
    """The boxes of a collection that holds one shape with all of them."""
    (shape,) = collection.get_paths()
    return [Path(corners) for corners in shape.vertices.reshape(-1, 5, 2)]


# ------------------------------------------------------------------------ against plain runs


@pytest.mark.parametrize(
    ("given", "scheduler", "other"),
    [
        (
            {"opt": 0.5, "fallbacks": 2, "correction": True, "probe": 300.0},
            Policy("deadline", opt=0.5, load_correction=True, max_fallbacks=2),
            Policy("greedy", load_correction=True, max_fallbacks=2),
        ),
        (
            {"policy": "Greedy", "fallbacks": 0, "probe": 900.0},
            Policy("greedy"),
            Policy("deadline", opt=0.7),
        ),
    ],
)
def test_sentence_is_what_plain_runs_say(given, scheduler, other):
    words = draw(**given, interval=45.0, seed=3)[0]
    env = drawn_again(PLAIN._replace(interval=45.0, seed=3))
    reading = Reading(probe=given["probe"])
    cost, failure, count = by_hand(env, scheduler, reading)
    assert f": {failure:.3g} % of {count} requests late at a cost of {cost:.4g} Mops/s;" in words
    cost, failure, _ = by_hand(env, other, reading)
    assert words.endswith(f": {failure:.3g} % at {cost:.4g}.")


def test_curve_holds_every_opt_and_the_chosen_point():
    _, left, _ = draw(opt=0.75, fallbacks=1)
    found = lines(left)
    env = drawn_again(PLAIN)
    kinds = [Policy("deadline", opt=opt, max_fallbacks=1) for opt in OPTS]
    wanted = [by_hand(env, kind, Reading())[:2] for kind in kinds]
    assert found["Deadline"] == pytest.approx(np.array(wanted))
    assert found["Greedy"][0] == pytest.approx(
        by_hand(env, Policy("greedy", max_fallbacks=1), Reading())[:2]
    )
    for label, fallbacks in (("as chosen", 1), ("without either", 0)):
        kind = Policy("deadline", opt=0.75, max_fallbacks=fallbacks)
        assert found[label][0] == pytest.approx(by_hand(env, kind, Reading())[:2])
    shown = [t.get_text() for t in left.texts if t.get_text()]
    assert shown == [f"{opt:g}" for opt in OPTS]


# ------------------------------------------------------------------------ what must always hold


@given(
    st.sampled_from(["Deadline", "Greedy"]), st.sampled_from([0.1, 0.55, 0.7, 1.0]),
    st.integers(0, 5), st.booleans(), st.sampled_from([15.0, 600.0, 3600.0]),
    st.sampled_from([30.0, 150.0]), st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=scale_count(8), deadline=None)
def test_bars_count_every_request_once(policy, opt, fallbacks, correction, probe, interval, seed):
    words, left, right = draw(
        policy=policy, opt=opt, fallbacks=fallbacks, correction=correction, probe=probe,
        interval=interval, seed=seed,
    )  # fmt: skip
    name = "Greedy" if policy == "Greedy" else f"D-{opt:g}"
    setting = GridSetting(interval, seed, fallbacks, correction, probe)
    o = run_on_grid(name, setting)
    met, missed, refused = (
        [path.get_extents().height for path in bars_of(group)] for group in right.collections
    )
    assert sum(met) + sum(missed) == len(o.environment.requests)
    assert sum(missed) == (o.requests["completion"] > o.environment.requests["due"]).sum()
    assert sum(refused) == o.requests["fallbacks"].sum()
    speeds = [float(tick.get_text()) for tick in right.get_xticklabels()]
    assert speeds == sorted(speeds)
    assert max(np.add(np.add(met, missed), refused)) < right.get_ylim()[1]
    cost, failure = cost_and_failure(name, setting)
    assert lines(left)["as chosen"][0] == pytest.approx([cost, failure])
    assert min(o.environment.servers["performance"]) <= cost <= 500
    told = re.search(r": (\S+) % of (\d+) requests late at a cost of (\S+) Mops/s", words)
    assert float(told[1]) == pytest.approx(failure, rel=1e-2, abs=1e-9)
    assert float(told[3]) == pytest.approx(cost, rel=1e-3)
    low, high = left.get_ylim()
    assert all(low <= y <= high for points in lines(left).values() for _, y in points)


def test_servers_by_hand():
    """Two servers, three jobs of 20 Gops at 0, 1, 2 all to the fast one: 100, 200, 300 s."""
    rows = [(0, 0, 0, 20_000, 150), (1, 0, 0, 20_000, 250), (2, 0, 0, 20_000, 250)]
    env = grid([200, 100], rows)
    table = count_by_server(simulate(env, Policy("greedy"), Reading(load="ext")))
    assert table.to_dict("list") == {
        "performance": [100, 200], "in time": [0, 2], "late": [0, 1], "refused": [0, 0],
    }  # fmt: skip
    own = count_by_server(simulate(env, Policy("greedy", max_fallbacks=1), Reading(load="ext")))
    assert own["refused"].tolist() == [0, 1]


# ------------------------------------------------------------------------ readings, refusals


def test_no_request_is_refused_with_the_way_out():
    with pytest.raises(InputError, match="interval must be shorter"):
        draw_environment(5e7, 0)
