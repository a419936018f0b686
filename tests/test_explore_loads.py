"""The panels of one cluster say what the hand cases of papers M and I say."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import explore
from dlsim.errors import InputError
from dlsim.explore import loads, rivals
from dlsim.explore.panel import Choice, Slider
from dlsim.realtime import Cluster, Reading, simulate
from dlsim.study.gantt import lanes_of
from tests.scale import SCALE
from tests.test_explore_panel import Draws, draws_or_says_why_not

MANY = max(4, int(6 * SCALE))


def words(name, **given):
    return explore.__getattr__(name).figure(**given).get_suptitle().replace("\n", " ")


# ------------------------------------------------------------------ one load (M)

#: N = 4, Cms = Cps = 1, ST = 3, SC = 2, sigma = 21: E = 47, 35, 233/7, 171/5 (by hand).
C2 = {"nodes": 4, "sigma": 21.0, "cms": 1.0, "cps": 1.0, "st": 3.0, "sc": 2.0}
TIMES = [47.0, 35.0, float(Fraction(233, 7)), float(Fraction(171, 5))]


@pytest.mark.parametrize(
    ("used", "deadline", "said"),
    [
        (1, 50.0, "On 1 of 4 nodes the load ends at 47, in time: 1 would do, 3 are the fastest"),
        (1, 46.0, "ends at 47, too late: 2 would do, 3 are the fastest (33.29)."),
        (2, 34.0, "ends at 35, too late: 3 would do, 3 are the fastest (33.29)."),
        (3, 33.0, "ends at 33.29, too late: no number of the 4 would do, 3 are the fastest"),
        (4, 34.0, "ends at 34.2, too late: 3 would do, 3 are the fastest (33.29). Beyond that"),
        (4, 35.0, "in time: 2 would do, 3 are the fastest (33.29). Beyond that a further set-up "
                  "costs more than the share it takes over: 1 share comes out at or below zero."),
    ],
)  # fmt: skip
def test_timing_of_the_hand_case(used, deadline, said):
    assert said in words("timing", used=used, deadline=deadline, **C2)


def test_timing_draws_both_curves_and_the_shares():
    figure = explore.timing.figure(used=4, deadline=34.0, **C2)
    diagram, time, cost = figure.axes
    shares = [text.get_text() for text in diagram.get_yticklabels()]
    # alpha = (73, 29, 7, -4) / 105
    by_hand = ["node 1: 69.5 %", "node 2: 27.6 %", "node 3: 6.67 %", "node 4: -3.81 %"]
    assert shares == ["link", *by_hand]
    drawn = {tuple(line.get_xdata()): line.get_ydata() for line in time.lines[:3]}
    assert drawn[(1, 2, 3)] == pytest.approx(TIMES[:3])
    assert drawn[(4,)] == pytest.approx(TIMES[3:])  # hollow: a formula, no schedule
    node_time = np.concatenate([cost.lines[0].get_ydata(), cost.lines[2].get_ydata()])
    assert node_time == pytest.approx(np.multiply(TIMES, [1, 2, 3, 4]))
    labels = [label.get_text().split() for label in time.get_xticklabels()]
    assert ["3", "fewest", "in", "time", "fastest"] in labels
    assert ["4", "used"] in labels


def test_the_reading_of_all_nodes_leaves_the_slow_ones_out():
    assert "On 3 of 4 nodes the load ends at 33.29" in words(
        "timing", used=4, deadline=34.0, reading={"an_nodes": "best"}, **C2
    )


def test_more_nodes_used_than_there_are_is_refused():
    with pytest.raises(InputError, match="used must be at most nodes=2, got 3"):
        explore.timing.figure(nodes=2, used=3)


# -------------------------------------------------------- two policies (M, C3)

#: N = 2, Cms = Cps = 1, a batch at 0 (spelled as sizes and deadlines).
C3 = {
    "source": "my lists", "nodes": 2, "cms": 1.0, "cps": 1.0, "step": 3, "arrival": (0, 0, 0),
    "sigma": (6, 18, 6), "deadline": (10, 64, 16),
}  # fmt: skip
BATCH = pd.DataFrame(
    {"arrival": [0.0] * 3, "sigma": [6.0, 18.0, 6.0], "deadline": [10.0, 64.0, 16.0]},
    index=[1, 2, 3],
)
TWO = Cluster(2, 1.0, 1.0)


def decisions(figure):
    return [ax.get_title("left").replace("\n", " ") for ax in figure.axes]


@pytest.mark.parametrize(
    ("policy", "step", "said"),
    [
        ("MCDF", 1, "task 1 is accepted: it starts at 0 on 2 nodes and ends at 8, due 10."),
        ("MCDF", 2, "task 2, due 64, is refused: it and waiting task 1 cannot both end in time"),
        ("MCDF", 3, "task 3 is accepted: it starts at 8 on 2 nodes and ends at 16, due 16."),
        ("FIFOMN", 2, "task 2 is accepted: it starts at 8 on 1 node and ends at 44, due 64."),
        ("FIFOMN", 3, "task 3, due 16, is refused: it and waiting task 2 cannot both end in "
                      "time; due 20 it would start at 8 on 1 and end at 20."),
        ("EDFMN", 3, "task 3 is accepted: it starts at 8 on 2 nodes and ends at 16, due 16."),
        ("FIFOANNA", 3, "nobody is asked: task 3 starts at 32 on 2 nodes and ends at 40, due 16 - "
                        "too late."),
    ],
)  # fmt: skip
def test_the_walk_through_the_hand_case(policy, step, said):
    figure = explore.schedules.figure(left=policy, right="EDFMN", **C3 | {"step": step})
    assert said in decisions(figure)[0]


def test_the_walk_counts_what_got_in():
    said = words("schedules", left="MCDF", right="EDFMN", **C3)
    assert said == (
        "Test 3 of 3, at time 0: MCDF has accepted 2 (12 of data), EDFMN has accepted 3 "
        "(30 of data)."
    )


def test_beyond_the_last_test_nothing_changes():
    assert words("schedules", **C3 | {"step": 24}) == words("schedules", **C3)


def test_a_task_that_could_not_run_even_alone():
    tasks = pd.DataFrame(
        {"arrival": [0.0, 1.0], "sigma": [18.0, 6.0], "deadline": [30.0, 8.5]}, index=[1, 2]
    )  # by hand: task 1 takes both nodes from 0 to 24; task 2 is due at 9.5
    s, why = rivals.walk(tasks, 2, TWO, "FIFOMN", Reading())
    assert not s.tasks.loc[2, "admitted"]
    assert (why.alone, why.rival) == (False, None)
    assert "even were nobody waiting, it could not end in time" in rivals.told(s, why)
    # at the earliest on both nodes from 24 on, or on one: 24 + 8, counted from arrival 1
    assert why.offer.deadline == pytest.approx(31.0)


def test_a_rival_is_named_in_the_order_of_service():
    _, why = rivals.walk(BATCH, 3, TWO, "FIFOMN", Reading())
    assert (why.alone, why.rival) == (True, 2)
    # the same without that task: the newcomer gets in
    assert simulate(BATCH.loc[[1, 3]], TWO, "FIFOMN").tasks.loc[3, "admitted"]


@pytest.mark.parametrize(
    "reading", [{"mn_count": "frozen"}, {"split": "piece"}, {"link": "shared"}]
)
@pytest.mark.parametrize("policy", ["FIFO-US", "FIFOMN"])
def test_what_is_not_known_is_not_said(policy, reading):
    tasks = rivals.tasks_of("paper I", Cluster(4, 10.0, 10.0), 8, 2.0, 1, ((), (), ()), {})
    for step in range(3, len(tasks) + 1):
        s, why = rivals.walk(tasks, step, Cluster(4, 10.0, 10.0), policy, Reading.of(reading))
        assert rivals.told(s, why).endswith(".")
        if why is not None and why.rival is not None:
            assert s.tasks.loc[why.rival, "admitted"]


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="lists of one length, got 2, 3 and 3 numbers"):
        explore.schedules.figure(**C3 | {"arrival": (0, 0)})


@settings(max_examples=MANY, deadline=None)
@given(seed=st.integers(0, 99), load=st.floats(0.3, 3.0), nodes=st.integers(1, 6))
def test_every_test_of_a_walk_is_the_one_of_the_whole_run(seed, load, nodes):
    cluster = Cluster(nodes, 10.0, 10.0)
    tasks = rivals.tasks_of("paper M", cluster, 10, load, seed, ((), (), ()), {})
    for policy in ("MCDF", "FIFOMN"):
        whole = simulate(tasks, cluster, policy).tasks
        for step in range(1, len(tasks) + 1):
            s, why = rivals.walk(tasks, step, cluster, policy, Reading())
            task = tasks.index[step - 1]
            assert s.tasks.loc[task, "admitted"] == whole.loc[task, "admitted"]
            assert (why is None) == s.tasks.loc[task, "admitted"]
            if why is not None and why.offer is not None:
                longer = tasks.head(step).copy()
                longer.loc[task, "deadline"] = why.offer.deadline * (1 + 1e-9)
                assert simulate(longer, cluster, policy).tasks.loc[task, "admitted"]


# ------------------------------------------------------ inserted idle times (I)


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        (  # tau = 1, chi = 3, sigma = 14: case 2
            (0.0, 21.0),
            {
                "opr": (53, 53), "dlt": (Fraction(424, 11), Fraction(529, 11)),
                "I": (Fraction(77, 2),) * 2, "II": (Fraction(77, 2),) * 2,
                "exact": (Fraction(77, 2),) * 2,
            },
        ),
        (  # case 3: Constraint 1 fails, Constraint 2 holds
            (12.0, 0.0),
            {"opr": (44, 44), "II": (34, 34), "exact": (34, 34)},
        ),
    ],
)  # fmt: skip
def test_partitions_of_the_hand_cases(release, expected):
    rows = loads.splits_of(release, 14.0, 60.0, 1.0, 3.0, 2)
    table = loads.table_of(rows, 60.0)
    for partition, (completion, estimate) in expected.items():
        assert table.loc[partition, "completion"] == pytest.approx(float(completion), rel=1e-12)
        assert table.loc[partition, "estimate"] == pytest.approx(float(estimate), rel=1e-12)
        gain = float(expected["opr"][0]) - float(completion)
        assert table.loc[partition, "gain"] == pytest.approx(gain, abs=1e-9)


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ((0, 21), "Nodes wait 21 in all for the last of them. Waiting ends at 53, the remodel at "
                  "38.545, the true optimum at 38.5, 14.5 earlier. Constraints I and II hold."),
        ((0, 12), "the true optimum at 34, 10 earlier. Constraint II holds, Constraint I does "
                  "not."),
        ((5, 5), "Nodes wait 0 in all for the last of them. Waiting ends at 37, the remodel at 37, "
                 "the true optimum at 37, 0 earlier. All nodes are free at once"),
        ((0, 1), "Neither constraint holds, so FIDO falls back on the remodel."),
    ],
)  # fmt: skip
def test_idle_times_in_words(release, said):
    assert said in words("idle_times", release=release, sigma=14.0, cps=3.0)


def test_fewest_nodes_are_no_more_than_the_deadline_asks_for():
    # sigma = 14, tau + chi = 4: one node from 0 ends at 56
    for deadline, nodes in ((56.0, 1), (55.9, 2), (38.5, 2), (10.0, 2)):
        rows = loads.splits_of((0.0, 21.0), 14.0, deadline, 1.0, 3.0, 2)
        table = loads.table_of(rows, deadline)
        assert table.loc["exact-n", "nodes"] == nodes
        assert table.loc["exact-n", "in_time"] == (deadline >= 38.5)


def test_the_test_judges_the_estimate():
    figure = explore.idle_times.figure(release=(0, 21), sigma=14.0, cps=3.0, deadline=40.0)
    labels = [text.get_text() for text in figure.axes[0].texts]
    assert labels[3] == "✗ 38.545 (est. 48.091), +14.5"  # really done at 38.5
    assert labels[6] == "✓ 38.5, +14.5"
    free = explore.idle_times.figure(
        release=(0, 21), sigma=14.0, cps=3.0, deadline=40.0, reading={"release": "finish"}
    )
    labels = [text.get_text() for text in free.axes[0].texts]
    assert labels[3] == "✗ 38.545, +14.5"


@settings(max_examples=MANY, deadline=None)
@given(
    release=st.lists(st.just(0.0) | st.floats(1e-9, 100), min_size=1, max_size=8),
    sigma=st.floats(1, 200),
    cms=st.floats(0.1, 10), cps=st.floats(0.1, 100), rounds=st.integers(1, 8),
)  # fmt: skip
def test_no_single_round_beats_the_optimum(release, sigma, cms, cps, rounds):
    table = loads.table_of(loads.splits_of(tuple(release), sigma, 50.0, cms, cps, rounds), 50.0)
    single = table.drop(index=["umr", "umr-iit", "pieces"])
    best = float(table.loc["exact", "completion"])
    assert (single["completion"] >= best * (1 - 1e-9)).all()
    assert (table["estimate"] >= table["completion"] * (1 - 1e-9)).all()
    assert table.loc["opr", "gain"] == 0


# --------------------------------------------------------------- any parameters


def values(control):
    if isinstance(control, Choice):
        return st.sampled_from(tuple(control.options))
    if isinstance(control, Slider):
        whole = isinstance(control.default, int)
        return (st.integers if whole else st.floats)(control.low, control.high)
    return st.lists(st.floats(control.low, min(control.high, 1e4)), min_size=1, max_size=4)


def anything(panel):
    switches = {k: st.sampled_from(v) for k, v in panel.switches.items()}
    controls = {control.name: values(control) for control in panel.controls}
    return st.fixed_dictionaries(
        {}, optional=controls | {"reading": st.fixed_dictionaries({}, optional=switches)}
    )


@pytest.mark.parametrize("name", ["timing", "idle_times", "schedules"])
def test_any_values_draw_or_are_refused(name):
    panel = explore.__getattr__(name)

    @settings(max_examples=MANY, deadline=None)
    @given(anything(panel))
    def draw(chosen):
        draws_or_says_why_not(Draws(panel), chosen)

    draw()


def test_bars_of_one_lane_do_not_overlap():
    start, end = np.array([0.0, 1.0, 2.0, 2.0]), np.array([2.0, 3.0, 4.0, 2.0])
    assert lanes_of(start, end).tolist() == [0, 1, 0, 2]
