"""What cannot be used is refused by an InputError that names it, never by a raw exception."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.realtime import (
    Cluster,
    Policy,
    Reading,
    execution_time,
    fastest_nodes,
    fewest_nodes,
    shares,
    simulate,
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


@pytest.mark.parametrize("negotiate", ["x", None, 2 + 0j, [2.0], True, 10**400])
def test_a_negotiation_factor_is_a_number(negotiate):
    with pytest.raises(InputError, match=r"negotiate must be 0 \(off\) or a factor of at least 1"):
        simulate(TASKS, C, "MCDF", negotiate=negotiate)


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


@pytest.mark.parametrize(
    "sigma", ["a", math.nan, math.inf, 0, -1.0, None, [6], 6 + 0j, True, 10**400, np.ones(2)]
)
def test_what_is_no_size(sigma):
    of_one = (lambda: shares(sigma, 1, C), lambda: fastest_nodes(sigma, C))
    of_many = (
        lambda: execution_time(sigma, 1, C),
        lambda: fewest_nodes(sigma, 9, C),
        lambda: total_cost(sigma, 1, C),
    )
    for call in of_one if np.ndim(sigma) else of_one + of_many:
        with pytest.raises(InputError, match="sigma must be a finite size above 0, got"):
            call()


@pytest.mark.parametrize("n", ["a", math.nan, math.inf, 0, 3, 1.5, None, [1], 1 + 0j, True])
def test_what_is_no_number_of_nodes(n):
    for function in (shares,) if np.ndim(n) else (execution_time, shares, total_cost):
        with pytest.raises(InputError, match=r"n must be a whole number in 1\.\.2, got"):
            function(6, n, C)


@pytest.mark.parametrize("n", [2, 2.0, np.int64(2), np.float64(2)])
def test_whole_numbers_of_any_type_are_counts(n):
    assert shares(6, n, C).tolist() == shares(6, 2, C).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert execution_time(6, n, C) == 8
    assert total_cost(6, n, C) == 16


@pytest.mark.parametrize("value", [math.nan, "x", None, 1j, True, 10**400])
def test_a_budget_and_a_start_are_times(value):
    with pytest.raises(InputError, match="budget must be a time"):
        fewest_nodes(6, value, C)
    with pytest.raises(InputError, match="start must be a finite time"):
        fewest_nodes(6, 9, C, start=value)


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
        Reading.of(switches)


@pytest.mark.parametrize("nodes", [10**9, MAX_CLUSTER_NODES + 1, 1e12])
def test_a_cluster_has_an_end(nodes):
    most = MAX_CLUSTER_NODES
    with pytest.raises(InputError, match=rf"nodes must be .* at most {most}: memory grows"):
        Cluster(nodes=nodes)
    assert Cluster(nodes=MAX_CLUSTER_NODES).nodes == 10_000_000


@pytest.mark.parametrize("nodes", [10**400, "16", None, math.inf, 4 + 0j, [4]])
def test_nodes_are_a_whole_number(nodes):
    with pytest.raises(InputError, match="nodes must be a whole number of at least 1"):
        Cluster(nodes=nodes)


@pytest.mark.parametrize("name", ["cms", "cps", "st", "sc"])
@pytest.mark.parametrize("value", ["1", None, 1j, 10**400, math.nan, -1, [1.0]])
def test_costs_are_finite_times(name, value):
    with pytest.raises(InputError, match=f"{name} must be a finite time of at least 0"):
        Cluster(**{name: value})


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


def test_windows_have_a_row_and_pieces_no_kinds():
    s = simulate(TASKS, C, "MCDF")
    for rows in (0, -1, np.nan, "x", None):
        with pytest.raises(InputError, match="rows must be a number of at least 1, got"):
            next(s.chunk_batches(rows))
    s = simulate(TASKS.assign(user_nodes=2), C, "EDF-US", Reading(split="piece"))
    with pytest.raises(InputError, match="split='all'"):
        s.kinds  # noqa: B018


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
