"""What paper I's policies cannot use is refused by an InputError: value, rule, remedy."""

import math

import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.realtime import POLICIES, Cluster, Policy, Reading, simulate, split_load

C = Cluster(nodes=3, cms=1, cps=10)
TASKS = pd.DataFrame(
    {"arrival": [0.0, 0, 1], "sigma": [6.0, 18, 6], "deadline": [900.0, 900, 900]},
    index=["a", "b", "c"],
)
USERS = TASKS.assign(user_nodes=[1, 2, 3])
WITHOUT_SETUP = [
    name
    for name, row in POLICIES.items()
    if row.partition in ("dlt", "I", "II", "exact", "exact-n")
]
IN_ROUNDS = [name for name in POLICIES if "UMR" in name]


def test_the_names_are_those_asked_for():
    assert len(WITHOUT_SETUP) == 10
    assert len(IN_ROUNDS) == 4


# --- the table --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", ["FIFO-US", "EDF-US", Policy(lambda t: t["sigma"], "user", "pieces")]
)
def test_a_user_split_needs_the_users_counts(policy):
    with pytest.raises(InputError, match=r"user_nodes.*workload\.user_split"):
        simulate(TASKS, C, policy)
    with pytest.raises(InputError, match=r"user_nodes.*workload\.user_split"):
        simulate(TASKS.iloc[:0], C, policy)


def test_a_column_of_users_counts_stands_once():
    with pytest.raises(InputError, match="column user_nodes appears twice"):
        simulate(pd.concat([USERS, USERS[["user_nodes"]]], axis=1), C, "FIFO-US")


@pytest.mark.parametrize("value", [0, -1, 4, 1.5, math.nan, math.inf, None, "two", 10**400])
def test_a_users_count_is_a_whole_number_of_nodes(value):
    table = USERS.astype({"user_nodes": object})
    table.loc["b", "user_nodes"] = value
    with pytest.raises(InputError, match="user_nodes") as caught:
        simulate(table, C, "FIFO-US")
    if isinstance(value, int | float) and abs(value) < 10**300:
        assert "'b'" in str(caught.value)
        assert "1..3" in str(caught.value)
        assert str(value) in str(caught.value)


@pytest.mark.parametrize("kind", [int, float, "Int64", "int8"])
def test_whole_numbers_of_any_type_are_counts(kind):
    s = simulate(USERS.astype({"user_nodes": kind}), C, "FIFO-US")
    assert s.tasks["nodes"].tolist() == [1, 2, 3]
    s.check()


@pytest.mark.parametrize("policy", ["MCDF", "EDF-DLT", "FIFO-UMR-MN"])
def test_others_do_not_read_the_users_counts(policy):
    wild = TASKS.assign(user_nodes=["x", -1, math.nan])
    pd.testing.assert_frame_equal(simulate(wild, C, policy).tasks, simulate(TASKS, C, policy).tasks)


# --- the cluster ------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", WITHOUT_SETUP)
@pytest.mark.parametrize(("cost", "value"), [("st", 0.5), ("sc", 2.0)])
def test_partitions_from_release_times_know_no_set_up(policy, cost, value):
    cluster = Cluster(3, 1, 10, **{cost: value})
    with pytest.raises(InputError, match=rf"{cost} ?= ?{value}") as caught:
        simulate(TASKS, cluster, policy)
    assert "0" in str(caught.value)


@pytest.mark.parametrize("policy", IN_ROUNDS)
def test_rounds_need_a_link_that_takes_time(policy):
    with pytest.raises(InputError, match="cms"):
        simulate(TASKS, Cluster(3, 0, 10), policy)


@pytest.mark.parametrize("partition", ["umr", "umr-iit"])
def test_the_best_number_of_rounds_needs_a_set_up_time(partition):
    policy = Policy("edf", "min", partition, rounds="best")
    with pytest.raises(InputError, match=r"best.*(st|ST)"):
        simulate(TASKS, C, policy)
    for cost in ("st", "sc"):
        simulate(TASKS, Cluster(3, 1, 10, **{cost: 0.25}), policy).check()


# --- policies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("partition", ["umr", "umr-iit"])
@pytest.mark.parametrize("rounds", [0, -1, 2.5, "many", None, True, math.nan, math.inf, [4]])
def test_what_is_no_number_of_rounds(partition, rounds):
    with pytest.raises(InputError, match=r"rounds must be .*'best'") as caught:
        Policy("edf", "min", partition, rounds=rounds)
    assert repr(rounds) in str(caught.value)


@pytest.mark.parametrize("partition", ["opr", "dlt", "I", "II", "exact", "exact-n", "equal"])
@pytest.mark.parametrize("rounds", [0, 2, "best"])
def test_one_round_is_one_round(partition, rounds):
    with pytest.raises(InputError, match=rf"rounds must be 1 .*{partition}.*got {rounds!r}"):
        Policy("edf", "min", partition, rounds=rounds)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"nodes": "user"}, "pieces"),
        ({"nodes": "min", "partition": "pieces"}, "nodes='user'"),
        ({"nodes": "user", "partition": "dlt"}, "pieces"),
        ({"nodes": "fragment", "partition": "dlt"}, "opr"),
        ({"nodes": "fragment", "partition": "pieces"}, "user"),
        ({"nodes": "all", "partition": "exact-n"}, "nodes='min'"),
        *[({"nodes": nodes, "partition": "exact-n"}, "nodes='min'")
          for nodes in ("fragment", lambda task, t, state: 1)],
        *[({"nodes": "all", "partition": name}, f"'opr' or 'exact', got '{name}'")
          for name in ("equal", "dlt", "I", "II", "umr", "umr-iit")],
        ({"nodes": "min", "partition": "dlt", "admission": False}, "admission"),
        ({"nodes": "fragment", "admission": False}, "admission"),
        ({"nodes": "user", "partition": "pieces", "admission": False}, "admission"),
        ({"order": "dc", "nodes": "min", "partition": "dlt"}, "opr"),
        ({"order": "dc", "nodes": "fragment"}, "min"),
        ({"nodes": "some"}, "fragment, user; got 'some'"),
        ({"nodes": "min", "partition": "III"}, "umr-iit; got 'III'"),
        ({"nodes": "min", "partition": None}, "partition must be one of"),
    ],
)  # fmt: skip
def test_combinations_without_a_meaning(row, said):
    with pytest.raises(InputError, match=said):
        Policy(**{"order": "edf"} | row)


def test_an_unknown_name_gets_the_known_ones():
    with pytest.raises(InputError) as caught:
        simulate(TASKS, C, "EDF-DTL")
    assert all(name in str(caught.value) for name in POLICIES)


# --- readings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("switch", "options"),
    [
        ("release", "estimate, finish"),
        ("commit", "first, last"),
        ("backfill", "off, on"),
        ("split", "all, piece"),
        ("scope", "chosen, all"),
        ("ties", "fail, skip"),
        ("count_single", "no, yes"),
    ],
)
@pytest.mark.parametrize("value", ["some", True, None, 1])
def test_an_unknown_value_of_a_switch(switch, options, value):
    with pytest.raises(InputError, match=rf"{switch} must be one of {options}; got {value!r}"):
        Reading.of({switch: value})


@pytest.mark.parametrize(
    ("policy", "reading"),
    [
        ("MCDF", {}),
        ("FIFOMN", {}),
        ("EDFANNA", {}),
        ("EDF-DLT", {"backfill": "on"}),
        ("FIFO-US", {"split": "piece"}),
    ],
)
def test_counts_belong_to_policies_that_plan_in_line(policy, reading):
    s = simulate(USERS, C, policy, Reading.of(reading))
    with pytest.raises(InputError, match="counts"):
        _ = s.counts


@pytest.mark.parametrize(
    ("partition", "cluster"),
    [("opr", Cluster(8, 10, 10, 20)), *[(name, Cluster(8, 1, 0)) for name in ("opr", "dlt", "I")]],
)
def test_a_split_without_positive_shares_is_refused(partition, cluster):
    with pytest.raises(InputError, match=rf"{partition}.* gives a node the share .*'exact'"):
        split_load(1, [0] * 8, cluster, partition)


@pytest.mark.parametrize("release", [None, 5, "abc", [1, "x"], [], [[0, 1]], [0, float("nan")]])
def test_what_are_no_release_times(release):
    with pytest.raises(InputError, match=r"release must hold 1\.\.4 finite times") as caught:
        split_load(1, release, Cluster(4, 1, 1))
    assert repr(release) in str(caught.value)


def test_a_split_in_one_round_has_no_rounds():
    with pytest.raises(InputError, match="rounds must be 1 for partition 'exact', got 3"):
        split_load(1, [0], Cluster(4, 1, 1), "exact", rounds=3)
