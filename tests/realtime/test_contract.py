"""What `simulate` of papers M and I shares with the other engines: columns, records, summaries."""

import math

import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.realtime import POLICIES, Cluster, Policy, Reading, simulate
from dlsim.record import Derived, find_record
from tests.helpers.strategies import ALL_ROWS, seeded

TWO = Cluster(nodes=2, cms=1, cps=1)
#: E(1) = 2 sigma, E(2) = 4/3 sigma; under FIFOMN the first two are admitted.
TASKS = pd.DataFrame({"arrival": [0, 0, 0], "sigma": [6, 18, 6], "deadline": [10, 64, 16]})


def shortest_first(tasks):
    """Return the size of every task."""
    return tasks["sigma"]


# --- columns of tasks -----------------------------------------------------------------------------


def test_a_column_of_pieces_that_nothing_reads_is_refused_unless_it_is_ignored():
    pieces, reading = TASKS.assign(user_nodes=2, owner="me"), Reading(split="piece")
    with pytest.raises(InputError, match="column 'owner'"):
        simulate(pieces, TWO, "EDF-US", reading)
    simulate(pieces, TWO, "EDF-US", reading, ignore=["owner"]).check()


def test_an_order_of_ones_own_sees_the_columns_that_are_ignored():
    """By hand: the last task runs from 0 to 8, the second to 32."""
    policy = Policy(lambda tasks: tasks["weight"], "all")
    later = TASKS.assign(weight=[3, 2, 1], deadline=100)
    s = simulate(later, TWO, policy, ignore=["weight"])
    assert s.tasks["start"].tolist() == [32.0, 8.0, 0.0]


# --- records --------------------------------------------------------------------------------------


def test_words_that_are_not_given_are_made_from_the_rules():
    shown = [
        Policy(shortest_first, "min"),
        Policy("edf", "min", overtake=True),
        Policy("edf", "all", admission=False),
        Policy("edf", "min", "umr", rounds="best"),
    ]
    assert [policy.name for policy in shown] == [
        "shortest_first-min-opr",
        "edf-min-opr-overtake",
        "edf-all-opr-no-admission",
        "edf-min-umr-best-rounds",
    ]
    assert all(isinstance(policy.text, Derived) and policy.text.strip() for policy in shown)
    assert find_record("policy", shown[1], POLICIES)[0] == "EDFMN"  # the same rules


def test_no_two_policies_that_decide_differently_get_one_derived_name():
    rules = ({**vars(row), "name": Derived(), "text": Derived()} for row in ALL_ROWS.values())
    made = {Policy(**each) for each in rules}
    assert len({policy.name for policy in made}) == len(made)


# --- summaries ------------------------------------------------------------------------------------


def test_a_summary_by_hand():
    """FIFOMN: 6 units on two nodes, 0 to 8; 18 on one, 8 to 44; 6 would need 44 + 8."""
    found = simulate(TASKS, TWO, "FIFOMN").summary()
    assert found.name == "FIFOMN"
    assert found.drop(["s_iits", "opt_iits", "opt_iits_ii"]).to_dict() == pytest.approx(
        {
            "tasks": 3,
            "admitted": 2,
            "missed": 0,
            "reject_ratio": 1 / 3,
            "work_reject_ratio": 6 / 30,
            "miss_ratio": 0,
            "mean_wait": (0 + 8) / 2,
            "total_cost": 2 * 8 + 36,
            "utilisation": (6 + 18) / (2 * 44),
        }
    )
    late = simulate(TASKS, TWO, "FIFOANNA").summary()  # 0 to 8, to 32, to 40: the last is late
    found = late[["admitted", "missed", "mean_wait", "utilisation"]].tolist()
    assert found == [3, 1, 40 / 3, 30 / 80]


@pytest.mark.parametrize("name", POLICIES)
def test_summaries_are_the_comparison_and_agree_with_the_tables(name):
    _, instance = seeded(("summary", name), 12)
    s = instance.fit(name).simulate(name)
    tasks, found = s.tasks, s.summary()
    ran = tasks.dropna(subset="start")
    assert found["admitted"] == tasks["admitted"].sum()
    assert found["missed"] == (tasks["missed"] & tasks["admitted"]).sum()
    assert found["total_cost"] == pytest.approx(s.total_cost)
    if len(ran):  # a chunk is computed after its set-up
        spent = (s.chunks["alpha"] * s.chunks["task"].map(tasks["sigma"])).sum() * s.cluster.cps
        offered = s.cluster.nodes * (ran["completion"].max() - tasks["arrival"].min())
        assert found["utilisation"] == pytest.approx(spent / offered)
        assert 0 <= found["utilisation"] <= 1 + 1e-12
    together = s.policy.partition in ("opr", "equal", "umr")
    counted = ["s_iits", "opt_iits", "opt_iits_ii"]
    assert found[counted].isna().all() == together
    if not together:
        assert found[counted].tolist() == s.counts.loc["admitted", counted].tolist()


def test_a_summary_of_no_task_is_blank():
    found = simulate(TASKS.iloc[:0], TWO, "MCDF").summary()
    assert found[["tasks", "admitted", "total_cost"]].tolist() == [0, 0, 0]
    assert all(math.isnan(found[name]) for name in ("reject_ratio", "mean_wait", "utilisation"))
