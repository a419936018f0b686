"""What cannot be used is refused by an InputError that names it, never by a raw exception."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.realtime import (
    POLICIES,
    Cluster,
    Policy,
    Reading,
    execution_time,
    fastest_nodes,
    fewest_nodes,
    shares,
    simulate,
    split_load,
    total_cost,
    workload,
)
from dlsim.realtime.model import MAX_CLUSTER_NODES

C = Cluster(nodes=2, cms=1, cps=1)
TASKS = pd.DataFrame(
    {"arrival": [0.0, 0.0, 0.0], "sigma": [6.0, 18, 6], "deadline": [10.0, 64, 16]}
)


def fails(*_: object) -> None:
    raise KeyError("weight")


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ([[0, 1, 2]], r"tasks must be a pandas DataFrame .*got list"),
        ({"arrival": [0]}, r"tasks must be a pandas DataFrame .*got dict"),
        (None, r"tasks must be a pandas DataFrame .*got NoneType"),
        (TASKS["sigma"], r"tasks must be a pandas DataFrame .*got Series"),
        (pd.concat([TASKS, TASKS["sigma"]], axis=1), r"column sigma appears twice; give"),
        (TASKS.assign(sigma=[6 + 1j, 18, 6]), r"sigma of task 0 must be a finite .*6\+1j"),
        (TASKS.assign(sigma=pd.Series([6 + 1j, 1, 2], dtype=object)), r"sigma of task 0 .*6\+1j"),
        (TASKS.assign(arrival=pd.Timestamp("2005-01-01")), r"arrival of task 0 must .*Timestamp"),
        (TASKS.assign(deadline=["x", 1, 2]), r"deadline of task 0 must be .*got 'x'"),
        (TASKS.assign(deadline=pd.Series([10**400, 1, 2], dtype=object)), r"deadline of task 0"),
        (TASKS.set_axis([5, 6, 7]).assign(sigma=[1, 0, 1]), r"sigma of task 6 must be a finite"),
        (TASKS.set_axis([5, 6, 5]), r"label 5 of tasks appears twice; give every row its own"),
        (TASKS.set_axis(pd.Index([[5], [6], [7]], dtype=object)), r"must be hashable.*reset_index"),
        (TASKS.set_axis(pd.IntervalIndex.from_tuples([(0, 2), (1, 3), (2, 4)])), r"that overlap"),
    ],
)  # fmt: skip
def test_what_is_no_task_table(tasks, said):
    with pytest.raises(InputError, match=said):
        simulate(tasks, C, "MCDF")


@pytest.mark.parametrize("cluster", [16, None, {"nodes": 2}, "C"])
def test_what_is_no_cluster(cluster):
    for call in (
        lambda: simulate(TASKS, cluster, "MCDF"),
        lambda: execution_time(6, 1, cluster),
        lambda: shares(6, 1, cluster),
        lambda: fastest_nodes(6, cluster),
        lambda: fewest_nodes(6, 9, cluster),
        lambda: total_cost(6, 1, cluster),
        lambda: workload.mean_least_time(cluster),
        lambda: workload.realised_load(TASKS, cluster, 1.0),
        lambda: workload.from_swf("log", cluster),
    ):
        with pytest.raises(InputError, match="cluster must be a Cluster, got"):
            call()


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (lambda t: ["a", "b", "c"], "number per task"),
        (lambda t: ["1", "2", "3"], "number per task"),
        (lambda t: t["sigma"] * 1j, "complex"),
        (lambda t: None, "got"),
        (lambda t: [[1], [2, 3], 4], "got ValueError"),
        (lambda t: t["weight"], "got KeyError: 'weight'"),
        (fails, "order function fails must return one number per task.*KeyError"),
        (lambda t: pd.to_datetime(t["arrival"]), "datetime64"),
    ],
)
def test_an_order_that_gives_no_numbers(order, said):
    with pytest.raises(InputError, match=said):
        simulate(TASKS, C, Policy(order, "min"))


@pytest.mark.parametrize(
    ("keys", "starts"),
    [
        ([0, math.inf, 1e300], [0, 8, 4]),
        ([0, math.inf, math.inf], [0, 4, 8]),
        ([0, 1, -math.inf], [4, 8, 0]),
        ([math.inf, -math.inf, -math.inf], [8, 0, 4]),
    ],
)
def test_infinite_keys_are_compared_exactly(keys, starts):
    # N=2, Cms=Cps=1: E(2) = 4 each, one after another from 0
    table = TASKS.assign(sigma=3.0, deadline=40.0)
    s = simulate(table, C, Policy(lambda tasks: keys, "all"))
    s.check()
    assert s.tasks["start"].tolist() == pytest.approx(starts)


@pytest.mark.parametrize("task", [[1], {"a": 1}, 99, "x", None])
def test_an_offer_for_what_is_no_label(task):
    with pytest.raises(InputError, match=r"is not in the schedule; use a label"):
        simulate(TASKS, C, "FIFOMN").offer(task)


def test_an_endless_budget_needs_one_node_and_an_endless_start_is_none():
    assert fewest_nodes(6, math.inf, C) == 1
    assert fewest_nodes(6, -math.inf, C) == 0
    with pytest.raises(InputError, match="start must be a finite time, got inf"):
        fewest_nodes(6, 9, C, start=math.inf)


@pytest.mark.parametrize("name", ["admission", "overtake"])
@pytest.mark.parametrize("value", ["no", "yes", 1, 0, None])
def test_a_policys_flags_are_true_or_false(name, value):
    with pytest.raises(InputError, match=f"{name} must be True or False, got {value!r}"):
        Policy("edf", "all", **{name: value})


@pytest.mark.parametrize("order", [["edf"], None, 3, np.array(["edf", "fifo"])])
def test_what_is_no_order(order):
    with pytest.raises(InputError, match="order must be one of fifo, edf, dc"):
        Policy(order, "min")


@pytest.mark.parametrize("policy", [["MCDF"], None, 3, {}])
def test_what_is_no_policy(policy):
    with pytest.raises(InputError, match="policy must be one of MCDF"):
        simulate(TASKS, C, policy)


@pytest.mark.parametrize("switches", [None, 5, "link", [("link", "shared")]])
def test_switches_are_a_mapping(switches):
    with pytest.raises(InputError, match="switches must be a mapping"):
        Reading.from_switches(switches)


@pytest.mark.parametrize("nodes", [10**9, MAX_CLUSTER_NODES + 1, 1e12])
def test_a_cluster_has_an_end(nodes):
    most = MAX_CLUSTER_NODES
    with pytest.raises(InputError, match=rf"nodes must be .* at most {most}: memory grows"):
        Cluster(nodes=nodes)
    assert Cluster(nodes=MAX_CLUSTER_NODES).nodes == 10_000_000


@pytest.mark.parametrize("cps", [1e-3, 1e-6, 1e-50, 1e-100])
@pytest.mark.parametrize("size", ["resample", "abs", "clip"])
def test_thresholds_out_of_reach_overflow_in_silence(cps, size):
    # beyond N* = 1 every threshold is infinite or far out in the tail, where nothing weighs
    many, one = (Cluster(nodes, 1.0, cps, st=1.0) for nodes in (400, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mean = workload.mean_least_time(many, 100.0, size)
    assert mean == pytest.approx(workload.mean_least_time(one, 100.0, size), rel=1e-3)


@pytest.mark.parametrize(
    "labels",
    [[("a", 1), ("b", 2), ("c", 3)], [("a", 1, 1), ("b", 2, 2), ("c", 3, 3)], [0, 1, math.nan]],
)
def test_an_offer_is_made_to_any_label(labels):
    index = pd.Index(labels, dtype=object, tupleize_cols=False)
    assert simulate(TASKS.set_axis(index), C, "FIFOMN").offer(labels[-1]).deadline == 20


def test_a_part_of_a_label_is_none():
    s = simulate(TASKS.set_axis(pd.MultiIndex.from_product([["a"], [1, 2, 3]])), C, "FIFOMN")
    assert s.offer(("a", 3)).deadline == 20
    with pytest.raises(InputError, match="task 'a' is not in the schedule"):
        s.offer("a")


def test_sizes_counts_and_budgets_have_one_shape():
    with pytest.raises(InputError, match=r"sigma\[1\] must be a finite size above 0, got \[2\]"):
        execution_time([1, [2]], 1, C)
    for call in (execution_time, total_cost, fewest_nodes):
        with pytest.raises(InputError, match=r"arrays that broadcast; .*\(2,\) .*\(3,\)"):
            call([1, 2], [1, 2, 1], C)


def test_batches_of_chunks_have_a_row():
    s = simulate(TASKS, C, "MCDF")
    for rows in (0, -1, np.nan, "x", None):
        with pytest.raises(InputError, match="rows must be a number of at least 1, got"):
            next(s.chunk_batches(rows))


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        (None, "tasks must be a pandas DataFrame"),
        (TASKS.drop(columns="sigma"), "sigma not found among arrival, deadline"),
        (TASKS.assign(sigma=[1, -1, 1]), "sigma of task 1 must be a finite number above 0, got -1"),
        (TASKS.assign(sigma=["a", 1, 1]), "sigma of task 0 must be a finite number above 0"),
        (pd.concat([TASKS, TASKS], axis=1), "column sigma appears twice"),
    ],
)
def test_what_has_no_load(tasks, said):
    with pytest.raises(InputError, match=said):
        workload.realised_load(tasks, C, 1.0)


def test_a_law_that_fails_is_named():
    with pytest.raises(InputError, match=r"law fails\(generator, .*KeyError: 'weight'"):
        workload.mcdf(C, 0.5, 1e4, size=fails)
    with pytest.raises(InputError, match="switches must be a mapping"):
        workload.split_reading("link")


# --- paper I's policies ---------------------------------------------------------------------------

THREE = Cluster(nodes=3, cms=1, cps=10)
LABELLED = pd.DataFrame(
    {"arrival": [0.0, 0, 1], "sigma": [6.0, 18, 6], "deadline": [900.0, 900, 900]},
    index=["a", "b", "c"],
)
USERS = LABELLED.assign(user_nodes=[1, 2, 3])
WITHOUT_SETUP = [
    name
    for name, row in POLICIES.items()
    if row.partition in ("dlt", "I", "II", "exact", "exact-n")
]
IN_ROUNDS = [name for name in POLICIES if "UMR" in name]


@pytest.mark.parametrize(
    "policy", ["FIFO-US", "EDF-US", Policy(lambda t: t["sigma"], "user", "pieces")]
)
def test_a_user_split_needs_the_users_counts(policy):
    with pytest.raises(InputError, match=r"user_nodes.*workload\.user_split"):
        simulate(LABELLED, THREE, policy)
    with pytest.raises(InputError, match=r"user_nodes.*workload\.user_split"):
        simulate(LABELLED.iloc[:0], THREE, policy)


def test_a_column_of_users_counts_stands_once():
    with pytest.raises(InputError, match="column user_nodes appears twice"):
        simulate(pd.concat([USERS, USERS[["user_nodes"]]], axis=1), THREE, "FIFO-US")


@pytest.mark.parametrize("value", [0, -1, 4, 1.5, math.nan, math.inf, None, "two", 10**400])
def test_a_users_count_is_a_whole_number_of_nodes(value):
    table = USERS.astype({"user_nodes": object})
    table.loc["b", "user_nodes"] = value
    with pytest.raises(InputError, match="user_nodes") as caught:
        simulate(table, THREE, "FIFO-US")
    if isinstance(value, int | float) and abs(value) < 10**300:
        assert "'b'" in str(caught.value)
        assert "1..3" in str(caught.value)
        assert str(value) in str(caught.value)


@pytest.mark.parametrize("policy", ["MCDF", "EDF-DLT", "FIFO-UMR-MN"])
def test_others_do_not_read_the_users_counts(policy):
    wild = LABELLED.assign(user_nodes=["x", -1, math.nan])
    pd.testing.assert_frame_equal(
        simulate(wild, THREE, policy).tasks, simulate(LABELLED, THREE, policy).tasks
    )


@pytest.mark.parametrize("policy", WITHOUT_SETUP)
@pytest.mark.parametrize(("cost", "value"), [("st", 0.5), ("sc", 2.0)])
def test_partitions_from_release_times_know_no_set_up(policy, cost, value):
    cluster = Cluster(3, 1, 10, **{cost: value})
    with pytest.raises(InputError, match=rf"{cost} ?= ?{value}") as caught:
        simulate(LABELLED, cluster, policy)
    assert "0" in str(caught.value)


@pytest.mark.parametrize("policy", IN_ROUNDS)
def test_rounds_need_a_link_that_takes_time(policy):
    with pytest.raises(InputError, match="cms"):
        simulate(LABELLED, Cluster(3, 0, 10), policy)


@pytest.mark.parametrize("partition", ["umr", "umr-iit"])
def test_the_best_number_of_rounds_needs_a_set_up_time(partition):
    policy = Policy("edf", "min", partition, rounds="best")
    with pytest.raises(InputError, match=r"best.*(st|ST)"):
        simulate(LABELLED, THREE, policy)
    for cost in ("st", "sc"):
        simulate(LABELLED, Cluster(3, 1, 10, **{cost: 0.25}), policy).check()


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
        simulate(LABELLED, THREE, "EDF-DTL")
    assert all(name in str(caught.value) for name in POLICIES)


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
        Reading.from_switches({switch: value})


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
    s = simulate(USERS, THREE, policy, Reading.from_switches(reading))
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
