"""The best schedules of few tasks against brute force, and who plans without the future."""

import itertools
import random

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.realtime import Cluster, clairvoyant_bound, simulate, workload
from dlsim.realtime.optimum import LADDER, ladder, least_end, offline_optimum, online_best
from tests.scale import LONG, SCALE
from tests.strategies import seeded
from tests.twins import splits


def brute(instance, partition, count):
    """Try all sets of tasks, orders, numbers of nodes, and nodes themselves."""
    best, nodes = 0, range(instance.nodes)
    some = [who for n in range(1, instance.nodes + 1) for who in itertools.combinations(nodes, n)]
    for size in range(count, 0, -1):
        for order in itertools.permutations(range(count), size):
            for chosen in itertools.product(some, repeat=size):
                if served(instance, partition, order, chosen):
                    return size
    return best


def served(instance, partition, order, chosen):
    free = [0] * instance.nodes
    for task, who in zip(order, chosen, strict=True):
        arrival, sigma, deadline = instance.rows[task]
        release = sorted(max(arrival, free[k]) for k in who)
        if partition == "opr":
            end = release[-1] + instance.costs.E(sigma, len(who))
        else:
            end = splits.optimum(instance.costs, sigma, release)
            if end <= release[-1]:
                return False
        if end > arrival + deadline:
            return False
        for k in who:
            free[k] = end
    return True


@pytest.mark.parametrize("partition", ["opr", "exact"])
def test_no_schedule_is_better_by_brute_force(partition):
    tried = 0
    for seed in range(round(60 * LONG)):
        _, instance = seeded(("optimum", seed), most=4)
        instance = instance._replace(nodes=min(instance.nodes, 2), st=0, cps=instance.cps or 1)
        if partition == "exact":
            instance = instance._replace(sc=0)
        known = (instance.table, instance.cluster, partition)
        found = offline_optimum(*known)
        assert found.is_proved
        assert found.value == brute(instance, partition, len(instance.rows))
        tried += found.value < len(instance.rows)
    assert tried > 3


def test_the_rungs_of_the_ladder_are_in_order():
    """Bound, optimum on nodes as released, optimum together; nobody online is better."""
    for seed in range(round(25 * LONG)):
        cluster = Cluster(4, (1, 8)[seed % 2], 100)
        tasks = workload.dcratio(cluster, 1.0, 200_000, seed, mean=200, dc_ratio=3).iloc[:7]
        found = ladder(tasks, cluster)
        assert list(found) == ["bound", *LADDER]
        assert found["bound"] <= found["optimum, EXACT"] + 1e-12
        assert found["optimum, EXACT"] <= found["optimum, OPR"] + 1e-12
        for rung in found:
            limit = "optimum, EXACT" if "EXACT" in rung or "DLT" in rung else "optimum, OPR"
            assert found[rung] >= found[limit] - 1e-12 or rung in ("bound", "optimum, EXACT")


@pytest.mark.parametrize("plan", ["soonest", "cheapest"])
def test_on_one_node_first_come_first_served_is_the_engine(plan):
    cluster = Cluster(1, 1, 9)
    for seed in range(round(20 * SCALE)):
        tasks = workload.dcratio(cluster, 1.0, 100_000, seed, mean=20, dc_ratio=3).iloc[:9]
        engine = simulate(tasks, cluster, "FIFO-OPR-MN").tasks["admitted"].sum()
        assert online_best(tasks, cluster, order="fifo", plan=plan) == engine


def test_the_end_of_one_round_is_the_exact_twins():
    source = random.Random(5)
    for seed in range(round(200 * SCALE)):
        _, instance = seeded(("end", seed), most=1)
        costs = instance._replace(st=0, sc=0, cps=instance.cps or 1).costs
        release = sorted(source.randrange(0, 64) / 4 for _ in range(source.randint(1, 4)))
        sigma = instance.rows[0][1]
        exact = splits.optimum(costs, sigma, [type(sigma)(time) for time in release])
        found = least_end(release, float(sigma), float(costs.cms), float(costs.cps))
        assert found == pytest.approx(float(exact), rel=1e-9)


def test_work_is_counted_by_size():
    tasks = pd.DataFrame({"arrival": [0, 0], "sigma": [1.0, 5.0], "deadline": [4.0, 10.0]})
    cluster = Cluster(1, 1, 1)
    assert offline_optimum(tasks, cluster, work=True).value == 5
    assert offline_optimum(tasks, cluster).value == 1
    assert clairvoyant_bound(tasks, cluster, "opr", work=True).value >= 5


@pytest.mark.parametrize("partition", ["opr", "exact"])
def test_a_late_clock_changes_nothing(partition):
    # three tasks of which two fit: N=2, cms=cps=1, E(2) = 4 each, until 8
    tasks = pd.DataFrame({"arrival": [0.0, 0, 0.5], "sigma": 3.0, "deadline": [8.0, 8, 7.5]})
    late = tasks.assign(arrival=tasks["arrival"] + 1.7e12)
    for some in (tasks, late):
        found = offline_optimum(some, Cluster(2, 1, 1), partition)
        assert (found.value, found.is_proved) == (2, True)
        assert online_best(some, Cluster(2, 1, 1), partition) == 2


def test_an_end_far_from_zero_is_found():
    # one node: its release and sigma (cms + cps); a float knows no instant nearer there
    assert least_end([1.7e12], 3.0, 0.1, 0.2) == pytest.approx(1.7e12 + 0.9, rel=1e-15)
    assert least_end([1.7e12, 1.7e12 + 0.3], 3.0, 0.1, 0.2) < 1.7e12 + 0.9


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"partition": "dlt"}, "partition must be one of"),
        ({"nodes": "few"}, "nodes must be one of"),
        ({"tasks": None}, "tasks must be a pandas DataFrame"),
        ({"cluster": Cluster(5, 1, 1)}, "at most 10 tasks on 4 nodes"),
        ({"cluster": Cluster(2, 1, 1, 1), "partition": "exact"}, "set-up"),
    ],
)
def test_refusals(changed, words):
    tasks = pd.DataFrame({"arrival": [0.0], "sigma": [3.0], "deadline": [4.0]})
    with pytest.raises(InputError, match=words):
        offline_optimum(**{"tasks": tasks, "cluster": Cluster(2, 1, 1)} | changed)
    with pytest.raises(InputError, match="order must be one of"):
        online_best(tasks, Cluster(2, 1, 1), order="dc")


def test_of_no_tasks_no_share_is_known():
    found = ladder(pd.DataFrame({"arrival": [], "sigma": [], "deadline": []}), Cluster(2, 1, 1))
    assert np.isnan(list(found.values())).all()
