"""The panel of two policies says what the hand cases of papers M and I say."""

import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import explore
from dlsim.explore.schedules import describe_test, draw_tasks, run_up_to
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
