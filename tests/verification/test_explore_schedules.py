"""The panel of two policies says what the hand cases of papers M and I say."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import explore
from dlsim.explore.schedules import describe_test, draw_tasks, keep_apart, run_up_to
from dlsim.realtime import Cluster, Reading, simulate
from tests.helpers.scale import scale_count

MANY = scale_count(6, least=4)

#: Paper M's third hand case: a batch of three tasks at time 0.
BATCH = pd.DataFrame(
    {"arrival": [0.0] * 3, "sigma": [6.0, 18.0, 6.0], "deadline": [10.0, 64.0, 16.0]},
    index=[1, 2, 3],
)
TWO = Cluster(2, 1.0, 1.0)


@pytest.mark.parametrize(
    ("policy", "step", "said"),
    [
        ("MCDF", 1, "task 1 is accepted: it starts at 0 on 2 nodes and ends at 8, due 10."),
        ("MCDF", 2, "task 2, due 64, is refused; no deadline would be accepted."),
        ("MCDF", 3, "task 3 is accepted: it starts at 8 on 2 nodes and ends at 16, due 16."),
        ("FIFOMN", 2, "task 2 is accepted: it starts at 8 on 1 node and ends at 44, due 64."),
        ("FIFOMN", 3, "task 3, due 16, is refused; if due 20, it would start at 8 on 1 node and "
                      "end at 20."),
        ("EDFMN", 3, "task 3 is accepted: it starts at 8 on 2 nodes and ends at 16, due 16."),
        ("FIFOANNA", 3, "without an admission test, task 3 starts at 32 on 2 nodes and ends at "
                        "40, due 16, too late."),
    ],
)  # fmt: skip
def test_the_tests_of_the_hand_case(policy, step, said):
    assert describe_test(run_up_to(BATCH, step, TWO, policy, Reading())) == said


def test_the_sentence_counts_what_was_accepted():
    figure, sentence = explore.schedules.picture(step=3, seed=4)
    policies = sentence.split(": ", 1)[1].split(", ")
    tasks = draw_tasks("paper M", Cluster(6, 10.0, 10.0), 12, 1.0, 4, {}).head(3)
    for name, ax, said in zip(("MCDF", "FIFOMN"), figure.axes, policies, strict=True):
        run = simulate(tasks, Cluster(6, 10.0, 10.0), name).tasks
        size = tasks["sigma"][run["admitted"]].sum()
        count = int(run["admitted"].sum())
        assert said.rstrip(".") == f"{name} has accepted {count} ({size:.4g} of data)"
        assert ax.get_title("left").startswith(f"{name}: task 3")


@pytest.mark.parametrize(
    ("times", "places"),
    [
        ([0, 0, 0, 10], [0, 2, 4, 10]),  # a batch, then one alone
        ([0, 0, 0, 5], [0, 2, 4, 6]),  # the batch reaches beyond the next arrival
        ([0, 3, 6], [0, 3, 6]),
        ([], []),
    ],
)
def test_marks_two_apart_by_hand(times, places):
    assert keep_apart(np.array(times, float), 2.0).tolist() == places


@pytest.mark.parametrize("given", [{}, {"count": 24, "step": 24}, {"source": "paper I"}])
def test_every_answer_can_be_counted(given):
    figure, sentence = explore.schedules.picture(**given)
    dots = 4.0 * figure.dpi / 72  # more than half a mark of 5 points lies free
    for ax, accepted in zip(figure.axes, re.findall(r"accepted (\d+)", sentence), strict=True):
        marks = {line.get_marker(): line.get_xydata() for line in ax.lines}
        assert len(marks["o"]) == int(accepted)
        assert len(marks["o"]) + len(marks["x"]) == given.get("count", 12)
        places = np.sort(ax.transData.transform(np.vstack([marks["o"], marks["x"]]))[:, 0])
        assert np.diff(places).min() > dots


def test_beyond_the_last_test_nothing_changes():
    opened = [explore.schedules.screen_picture(step=step) for step in (12, 24)]
    assert opened[0] == opened[1]


def test_the_deadline_that_would_be_accepted_by_hand():
    tasks = pd.DataFrame(
        {"arrival": [0.0, 1.0], "sigma": [18.0, 6.0], "deadline": [30.0, 8.5]}, index=[1, 2]
    )  # by hand: task 1 takes both nodes from 0 to 24; task 2 is due at 9.5
    schedule = run_up_to(tasks, 2, TWO, "FIFOMN", Reading())
    # at the earliest on both nodes from 24 on: 24 + 8
    assert describe_test(schedule) == (
        "task 2, due 9.5, is refused; if due 32, it would start at 24 on 2 nodes and end at 32."
    )


def test_the_pieces_of_a_task_get_no_offer():
    cluster, reading = Cluster(4, 10.0, 10.0), Reading.from_switches({"split": "piece"})
    tasks = draw_tasks("paper I", cluster, 8, 2.0, 1, {})
    said = [
        describe_test(run_up_to(tasks, step, cluster, "FIFO-US", reading))
        for step in range(1, len(tasks) + 1)
    ]
    assert any(one.endswith(" is refused.") for one in said)
    assert not any("would be accepted" in one or "it would" in one for one in said)


@settings(max_examples=MANY, deadline=None)
@given(seed=st.integers(0, 99), load=st.floats(0.3, 3.0), nodes=st.integers(1, 6))
def test_every_test_of_a_walk_is_the_one_of_the_whole_run(seed, load, nodes):
    cluster = Cluster(nodes, 10.0, 10.0)
    tasks = draw_tasks("paper M", cluster, 10, load, seed, {})
    for policy in ("MCDF", "FIFOMN"):
        whole = simulate(tasks, cluster, policy).tasks
        for step in range(1, len(tasks) + 1):
            schedule = run_up_to(tasks, step, cluster, policy, Reading())
            task = tasks.index[step - 1]
            assert schedule.tasks.loc[task, "admitted"] == whole.loc[task, "admitted"]
            words = re.search(r"if due (\S+), it would", describe_test(schedule))
            if words:
                longer = tasks.head(step).copy()
                longer.loc[task, "deadline"] = (
                    float(words[1]) * (1 + 1e-4) - longer.loc[task, "arrival"]
                )
                assert simulate(longer, cluster, policy).tasks.loc[task, "admitted"]
