"""The panel of herding: its points against plain runs, what is drawn against the requests."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import LineCollection, QuadMesh

from dlsim import explore
from dlsim.bricks import Environment, Reading, Scheduler, simulate
from dlsim.bricks.herding import expected_failure
from dlsim.errors import InputError
from dlsim.explore.herds import Grid, failures, outcomes
from tests.scale import SCALE

PANEL = explore.herding


def draw(**given):
    """The words on one line, the servers, the curve."""
    figure = PANEL.update(**PANEL.values(**given))
    return " ".join(figure.get_suptitle().split()), *figure.axes


def drawn_again(seed=0, interval=60.0, servers=20, **more):
    """The environment of a picture, by the generator alone: half of the nodes are servers."""
    env = Environment.random(
        np.random.SeedSequence(seed, spawn_key=(0,)), interval,
        horizon=10 * 3600, domains=4, nodes=(servers // 2, servers // 2), **more,
    )  # fmt: skip
    assert len(env.servers) == len(env.clients) == servers
    return env


def late(env, scheduler, reading):
    """Percent of requests back after their deadline."""
    o = simulate(env, scheduler, reading)
    o.check()
    return 100 * (o.requests["completion"] > env.requests["deadline"]).mean(), o


# ------------------------------------------------------------------------ against plain runs


@pytest.mark.parametrize(
    ("given", "kind", "opt"),
    [
        ({"probe": 300.0, "seed": 3, "servers": 8}, {"algorithm": "greedy"}, 0.0),
        (
            {"policy": "Deadline", "opt": 0.6, "correction": True, "interval": 45.0},
            {"algorithm": "deadline", "opt": 0.6}, 0.6,
        ),
    ],
)  # fmt: skip
def test_sentence_is_what_plain_runs_say(given, kind, opt):
    probe = given.get("probe", 800.0)
    env = drawn_again(**{k: given[k] for k in ("seed", "servers", "interval") if k in given})
    bare, o = late(env, Scheduler(**kind), Reading(probe=probe))
    counted, other = late(env, Scheduler(**kind, load_correction=True), Reading(probe=probe))
    if given.get("correction"):
        o = other
    herd = max(Counter((t // probe, s) for t, s in o.requests[["submitted", "server"]].values)
               .values())  # fmt: skip
    told = re.fullmatch(
        rf"(\S+) (with|without) Load Correction, probes every {probe:g} s: between two of them up "
        rf"to {herd} requests? goe?s? to one server; late of {len(env.requests)}: (\S+) %(.*?), "
        r"(with|without) it (\S+) %(.*)\.",
        draw(**given)[0],
    )
    assert told[1] == ("Greedy" if not opt else f"D-{opt:g}")
    both = {told[2]: told[3], told[5]: told[6]}
    assert both == {"without": f"{bare:.3g}", "with": f"{counted:.3g}"}
    formula = {told[2]: told[4], told[5]: told[7]}
    assert formula["with"] == ""
    fresh = simulate(env, Scheduler(**kind, load_correction=True), Reading())
    probes = (15.0, 60.0, 200.0, 800.0, 3600.0) if probe == 800 else (probe,)
    table = expected_failure(fresh, probes, opt, given.get("seed", 0)).set_index("probe")
    assert formula["without"] == f" (formula: {100 * table['expected'][probe]:.3g} %)"


def test_the_formula_meets_what_is_measured():
    """Over three seeds, as tests/test_bricks_yardstick.py asks of the formula itself."""
    for policy in ("Greedy", "D-0.7"):
        found = [failures(Grid(policy, 60.0, 40, seed), (60.0, 800.0)) for seed in range(3)]
        for probe in (60.0, 800.0):
            bare, _, told = np.mean([one[probe] for one in found], axis=0)
            assert abs(bare - told) < 6


def test_herds_grow_with_the_probe_interval_and_load_correction_ends_them():
    told = failures(Grid("Greedy", 60.0, 20, 1), (15.0, 800.0, 3600.0))
    bare, counted, formula = np.transpose([told[probe] for probe in sorted(told)])
    assert np.all(np.diff(bare) > 5)
    assert np.all(np.diff(formula) > 5)
    assert np.all(counted < bare)


# ------------------------------------------------------------------------ what must always hold


@given(
    st.sampled_from(["Deadline", "Greedy"]), st.booleans(), st.sampled_from([15.0, 600.0, 3600.0]),
    st.sampled_from([30.0, 150.0]), st.sampled_from([4, 12, 40]), st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=int(6 * SCALE), deadline=None)
def test_marks_and_queues_are_the_runs(policy, correction, probe, interval, servers, seed):
    given = {"policy": policy, "correction": correction, "probe": probe, "interval": interval,
             "servers": servers, "seed": seed}  # fmt: skip
    words, left, right = draw(**given)
    grid = Grid("Greedy" if policy == "Greedy" else "D-0.7", interval, servers, seed)
    o = outcomes(grid, probe)[correction]
    speeds = o.environment.servers["performance"]
    rank = speeds.rank(method="first", ascending=False).astype(int) - 1
    begin, end = (60 * edge for edge in left.get_xlim())
    assert end - begin == pytest.approx(min(max(8 * probe, 3600), 8 * 3600))
    seen = o.requests[(o.requests["submitted"] >= begin) & (o.requests["submitted"] < end)]
    in_time, missed = (line.get_xydata() for line in left.lines)
    for part, marks in ((~seen["missed"], in_time), (seen["missed"], missed)):
        rows = seen[part]
        assert marks == pytest.approx(np.c_[rows["submitted"] / 60, rank[rows["server"]]])
    (mesh,) = [one for one in left.collections if isinstance(one, QuadMesh)]
    counts, edges = mesh.get_array(), np.linspace(begin, end, 161)
    for column in (0, 80, 159):
        now = (edges[column] + edges[column + 1]) / 2
        there = o.requests[(o.requests["arrived"] <= now) & (o.requests["end"] > now)]
        wanted = rank[there["server"]].value_counts().reindex(range(servers), fill_value=0)
        assert counts[:, column].tolist() == wanted.tolist()
    lines = [one for one in left.collections if isinstance(one, LineCollection)]
    minutes = [60 * segment[0, 0] for one in lines for segment in one.get_segments()]
    assert all(abs(at / probe - round(at / probe)) < 1e-9 for at in minutes)
    assert bool(minutes) == (probe > 15)
    low, high = right.get_ylim()
    assert all(low <= y <= high for line in right.lines for y in line.get_ydata())
    assert str(len(o.requests)) in words


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, options in PANEL.switches.items() for value in options[1:]],
)
def test_switch_changes_a_point(name, value):
    plain = Grid("Greedy", 30.0, 8, 0)
    for probe in (800.0, 60.0):
        one, other = (
            failures(grid, (probe,))[probe][:2]
            for grid in (plain, plain._replace(reading=((name, value),)))
        )
        if one.tolist() != other.tolist():
            return
    pytest.fail(f"{name}={value} changes no picture")


def test_the_formula_is_left_out_where_it_is_not_meant():
    words, _, right = draw(reading={"load": "queue"})
    assert "formula" not in words
    assert "formula, nothing fitted" not in [line.get_label() for line in right.lines]
    assert "formula" in draw(reading={"server_load": 0.3})[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"servers": 41}, "between 4 and 40"),
        ({"probe": 5.0}, "between 15 and 3600"),
        ({"correction": "maybe"}, "must be one of"),
        ({"reading": {"network": "packet"}}, "switch of herding must be one of"),
    ],
)
def test_bad_values_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        PANEL.figure(**given)


def test_words_lie_inside_and_bytes_are_the_same():
    given = {"servers": 40, "probe": 3600.0, "interval": 30.0}
    figure, png = PANEL.drawn(**given)
    assert PANEL.drawn(**given)[1] == png
    renderer, (width, height) = figure.canvas.get_renderer(), figure.canvas.get_width_height()
    left, right = figure.axes
    legends = [*figure.legends[0].get_texts(), *right.get_legend().get_texts()]
    for text in (*legends, left._left_title, left.yaxis.label, right.xaxis.label):
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0, text.get_text()
        assert box.x1 <= width, text.get_text()
        assert box.y0 >= 0, text.get_text()
        assert box.y1 <= height, text.get_text()
    edge = right.get_window_extent(renderer).x0
    assert left._left_title.get_window_extent(renderer).x1 < edge
