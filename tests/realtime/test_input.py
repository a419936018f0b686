"""What cannot be used is refused by an InputError that names it, never by a raw exception.

``tests/test_validate.py`` gives every number of every public function all kinds of values.
"""

import math
import warnings
from functools import partial
from itertools import product

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
    model,
    shares,
    simulate,
    split_load,
    total_cost,
    workload,
)
from dlsim.realtime.core import nodes as node_rules
from dlsim.realtime.core import splits
from dlsim.realtime.model import MAX_CLUSTER_NODES
from tests.helpers.refusals import refuses_each

C = Cluster(nodes=2, cms=1, cps=1)
TASKS = pd.DataFrame(
    {"arrival": [0.0, 0.0, 0.0], "sigma": [6.0, 18, 6], "deadline": [10.0, 64, 16]}
)
THREE = Cluster(nodes=3, cms=1, cps=10)
LABELLED = pd.DataFrame(
    {"arrival": [0.0, 0, 1], "sigma": [6.0, 18, 6], "deadline": [900.0, 900, 900]},
    index=["a", "b", "c"],
)
USERS = LABELLED.assign(user_nodes=[1, 2, 3])
#: A policy of each partition that knows no set-up times.
WITHOUT_SETUP = ("FIFO-DLT", "FIDO-I", "EDDO-II", "FIFO-EXACT", "EDF-EXACT-N")
IN_ROUNDS = [name for name in POLICIES if "UMR" in name]


def fails(*_):
    raise KeyError("weight")


def run(tasks=TASKS, cluster=C, policy="MCDF", **options):
    return simulate(tasks, cluster, policy, **options)


def ordered(order):
    return simulate(TASKS, C, Policy(order, "min"))


def edf(nodes, partition="opr", **options):
    return Policy("edf", nodes, partition, **options)


def offered(task):
    return simulate(TASKS, C, "FIFOMN").offer(task)


OVERLAPPING = pd.IntervalIndex.from_tuples([(0, 2), (1, 3), (2, 4)])
TASK_TABLES = [
    ([[0, 1, 2]], r"tasks must be a pandas DataFrame .*got list"),
    (pd.concat([TASKS, TASKS["sigma"]], axis=1), r"column sigma appears twice; give"),
    *[(TASKS.drop(columns=name), f"{name} not found") for name in TASKS],
    (TASKS.assign(arrival=[3, 2, 3]), r"task 1 .*sort_values"),
    (TASKS.set_axis([5, 6, 7]).assign(sigma=[1, 0, 1]), r"sigma of task 6 must be a finite"),
    (TASKS.set_axis([5, 6, 5]), r"label 5 of tasks appears twice; give every row its own"),
    (TASKS.set_axis(pd.Index([[5], [6], [7]], dtype=object)), r"must be hashable.*reset_index"),
    (TASKS.set_axis(OVERLAPPING), r"that overlap"),
]  # fmt: skip

#: What is called, and the words of its refusal.
REFUSED = [
    *[(lambda t=table: run(t), words) for table, words in TASK_TABLES],
    # --- clusters
    (lambda: Cluster(nodes=MAX_CLUSTER_NODES + 1),
     f"nodes must be .* at most {MAX_CLUSTER_NODES}: memory grows"),
    (lambda: Cluster(cms=0, cps=0), "cms"),
    *[(lambda call=call: call({"nodes": 2}), "cluster must be a Cluster, got")
      for call in (
          lambda cluster: run(cluster=cluster),
          lambda cluster: execution_time(6, 1, cluster),
          lambda cluster: shares(6, 1, cluster),
          lambda cluster: fastest_nodes(6, cluster),
          lambda cluster: fewest_nodes(6, 9, cluster),
          lambda cluster: total_cost(6, 1, cluster),
          workload.mean_least_time,
          lambda cluster: workload.realised_load(TASKS, cluster, 1.0),
          lambda cluster: workload.from_swf("log", cluster))],
    # --- policies and orders
    (lambda: run(policy="MDCF"), ".*".join([*POLICIES, "MDCF"])),
    *[(lambda o=o: Policy(o, "min"), "order must be one of fifo") for o in (["edf"], "lifo")],
    (lambda: ordered(lambda t: ["1", "2", "3"]), "number per task"),
    (lambda: ordered(lambda t: [1.0, math.nan, 2.0]), "one number per task"),
    (lambda: ordered(lambda t: t[["sigma", "deadline"]]), "one number per task"),
    (lambda: ordered(lambda t: t["sigma"] * 1j), "complex"),
    (lambda: ordered(fails), "order function fails must return one number per task.*KeyError"),
    (lambda: ordered(lambda t: pd.to_datetime(t["arrival"])), "datetime64"),
    *[(lambda n=name, v=value: edf("all", **{n: v}), f"{name} must be True or False, got {value!r}")
      for name in ("admission", "overtake") for value in ("no", 1)],
    (lambda: edf("some"), "fragment, user; got 'some'"),
    (lambda: edf("user"), "pieces"),
    (lambda: edf("min", "pieces"), "nodes='user'"),
    (lambda: edf("fragment", "dlt"), "opr"),
    (lambda: edf("fragment", "pieces"), "user"),
    *[(lambda n=nodes: edf(n, "exact-n"), "nodes='min'")
      for nodes in ("all", "fragment", lambda task, t, state: 1)],
    *[(lambda p=partition: edf("all", p), f"'opr' or 'exact', got '{partition}'")
      for partition in ("equal", "dlt", "I", "II", "umr", "umr-iit")],
    *[(lambda r=row: edf(*r, admission=False), "admission")
      for row in (("min",), ("min", "dlt"), ("fragment",), ("user", "pieces"))],
    (lambda: Policy("dc", "all"), "dc"),
    (lambda: Policy("dc", "min", "dlt"), "opr"),
    (lambda: Policy("dc", "fragment"), "min"),
    (lambda: edf("min", "III"), "umr-iit; got 'III'"),
    # --- records of rules
    *[(lambda g=given: model.Order(**g, name="sjf", text="the smallest first"), words)
      for given, words in (
          ({"key": None}, "order 'sjf' needs a key, a function; got None"),
          ({"key": fails, "when": "instant"}, r"needs a key\(task, n, t, state\)"),
          ({"key": fails, "when": "never"}, "when"),
          ({"key": lambda task, n: 1}, "it takes 2 arguments"))],
    *[(lambda r=record: r(name="half", text="in two"), "(code|fewest) of .*half.* one of 0, 1, 2")
      for record in (partial(model.NodeRule, node_rules.USER_NODES),
                     partial(model.Partition, splits.BY_USER),
                     partial(model.Partition, splits.BY_OPR, fewest=99))],
    *[(lambda r=record: r(name="half"), "text of a .* must be a text that is not blank")
      for record in (partial(model.Order, fails), partial(model.NodeRule, node_rules.FEWEST),
                     partial(model.Partition, splits.BY_OPR))],
    (lambda: model.index_by_name("rule for nodes", *[model.NODE_RULES["min"]] * 2),
     "every rule for nodes must have a name of its own"),
    # --- rounds
    (lambda: edf("min", "umr", rounds="many"), "rounds must be 'best' or .*'many'"),
    *[(lambda p=partition, r=rounds: edf("min", p, rounds=r),
       rf"rounds must be 1 .*{partition}.*got {rounds!r}")
      for partition, rounds in (("opr", 0), ("dlt", 2), ("exact-n", 2), ("equal", "best"))],
    *[(lambda p=policy: run(LABELLED, Cluster(3, 0, 10), p), "cms") for policy in IN_ROUNDS],
    *[(lambda p=p: run(LABELLED, THREE, edf("min", p, rounds="best")), r"best.*(st|ST)")
      for p in ("umr", "umr-iit")],
    (lambda: split_load(1, [0], Cluster(4, 1, 1), "exact", rounds=3),
     "rounds must be 1 for partition 'exact', got 3"),
    # --- release times without set-up
    *[(lambda p=policy, c=cost, v=value: run(LABELLED, Cluster(3, 1, 10, **{c: v}), p),
       rf"{cost} ?= ?{value}.*0|0.*{cost} ?= ?{value}")
      for policy in WITHOUT_SETUP for cost, value in (("st", 0.5), ("sc", 2.0))],
    *[(lambda p=p, c=c: split_load(1, [0] * 8, c, p), rf"{p}.* gives a node the share .*'exact'")
      for p, c in (("opr", Cluster(8, 10, 10, 20)), ("opr", Cluster(8, 1, 0)),
                   ("dlt", Cluster(8, 1, 0)), ("I", Cluster(8, 1, 0)))],
    *[(lambda r=r: split_load(1, r, Cluster(4, 1, 1)), r"release must hold 1\.\.4 finite times")
      for r in ("abc", [], [[0, 1]])],
    # --- nodes that users ask for
    *[(lambda t=table: run(t, THREE, "FIFO-US"), r"user_nodes.*workload\.user_split")
      for table in (LABELLED, LABELLED.iloc[:0])],
    (lambda: run(pd.concat([USERS, USERS[["user_nodes"]]], axis=1), THREE, "FIFO-US"),
     "column user_nodes appears twice"),
    (lambda: run(USERS.assign(user_nodes=[1, 4, 1]), THREE, "FIFO-US"),
     r"user_nodes of task 'b' .*1\.\.3.*4"),
    # --- readings, negotiation, offers, counts
    (lambda: Reading.from_switches("link"), "switches must be a mapping"),
    (lambda: run(negotiate=0.5), "negotiate"),
    *[(lambda t=t: offered(t), "is not in the schedule; use a label") for t in ([1], 99)],
    (lambda: run().offer(0), "admitted"),
    *[(lambda p=policy, s=switches: run(USERS, THREE, p, reading=Reading(**s)).counts, "counts")
      for policy, switches in (("MCDF", {}), ("FIFOMN", {}), ("EDFANNA", {}),
                               ("EDF-DLT", {"backfill": "on"}), ("FIFO-US", {"split": "piece"}))],
    (lambda: next(run().chunk_batches(0)), "rows must be a number of at least 1, got"),
    # --- formulas
    *[(lambda f=f: f(0.0, 1, C), "sigma") for f in (shares, total_cost)],
    *[(lambda f=f: f(1.0, 3, C), r"1\.\.2") for f in (execution_time, shares, total_cost)],
    (lambda: fewest_nodes(0.0, 10.0, C), "sigma"),
    (lambda: fastest_nodes(-1.0, C), "sigma"),
    *[(lambda f=f: f([1, 2], [1, 2, 1], C), r"arrays that broadcast; .*\(2,\) .*\(3,\)")
      for f in (execution_time, total_cost, fewest_nodes)],
    (lambda: execution_time([1, 0], 1, C), r"sigma\[1\] must be a finite size above 0, got 0"),
    (lambda: total_cost(1, [[2, 5]], C), r"n\[0, 1\] must be a whole number in 1\.\.2, got 5"),
    (lambda: fewest_nodes(1, [math.nan], C), r"budget\[0\] must be a time"),
    # --- workloads
    *[(lambda t=table: workload.realised_load(t, C, 1.0), words)
      for table, words in (
          (None, "tasks must be a pandas DataFrame"),
          (TASKS.drop(columns="sigma"), "sigma not found among arrival, deadline"),
          (TASKS.assign(sigma=[1, -1, 1]), "sigma of task 1 must be .* above 0, got -1"),
          (pd.concat([TASKS, TASKS], axis=1), "column sigma appears twice"))],
    (lambda: workload.mcdf(C, 0.5, 1e4, size=fails), r"law fails\(generator, .*KeyError: 'weight'"),
    (lambda: workload.split_reading("link"), "switches must be a mapping"),
]  # fmt: skip
test_what_cannot_be_used_is_refused = refuses_each(REFUSED)


def test_the_largest_cluster():
    assert Cluster(nodes=MAX_CLUSTER_NODES).nodes == 10_000_000


def test_an_endless_budget_needs_one_node():
    assert fewest_nodes(6, math.inf, C) == 1
    assert fewest_nodes(6, -math.inf, C) == 0


def test_thresholds_out_of_reach_overflow_in_silence():
    # beyond N* = 1 every threshold is infinite or far out in the tail, where nothing weighs
    for cps, size in product([1e-3, 1e-50, 1e-100], ["resample", "abs", "clip"]):
        many, one = (Cluster(nodes, 1.0, cps, st=1.0) for nodes in (400, 1))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mean = workload.mean_least_time(many, 100.0, size)
        assert mean == pytest.approx(workload.mean_least_time(one, 100.0, size), rel=1e-3), cps


def test_an_offer_is_made_to_any_label_and_not_to_a_part_of_one():
    for labels in ([("a", 1), ("b", 2), ("c", 3)], [("a", 1, 1), ("b", 2, 2), 3], [0, 1, math.nan]):
        index = pd.Index(labels, dtype=object, tupleize_cols=False)
        assert simulate(TASKS.set_axis(index), C, "FIFOMN").offer(labels[-1]).deadline == 20
    s = simulate(TASKS.set_axis(pd.MultiIndex.from_product([["a"], [1, 2, 3]])), C, "FIFOMN")
    assert s.offer(("a", 3)).deadline == 20
    with pytest.raises(InputError, match="task 'a' is not in the schedule"):
        s.offer("a")


@pytest.mark.parametrize("policy", ["MCDF", "EDF-DLT", "FIFO-UMR-MN"])
def test_others_do_not_read_the_users_counts(policy):
    wild = LABELLED.assign(user_nodes=["x", -1, math.nan])
    pd.testing.assert_frame_equal(
        simulate(wild, THREE, policy).tasks, simulate(LABELLED, THREE, policy).tasks
    )
