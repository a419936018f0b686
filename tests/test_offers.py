"""All offers at once are those made one by one, and no shorter deadline would be admitted."""

import numpy as np
import pytest

from dlsim.realtime import Cluster, Reading, simulate, workload
from tests.scale import SCALE, scale_count
from tests.strategies import ROWS_I, seeded_for


def test_offers_are_kept_and_nothing_shorter_would_be():
    cluster = Cluster(16, 1, 100)
    tasks = workload.dcratio(cluster, 1.2, 300_000, seed=5)
    s = simulate(tasks, cluster, "EDF-DLT")
    offers = s.offers()
    some = offers.index[:: max(1, len(offers) // 6)]
    assert len(some) > 3
    for task in some:
        for factor, admitted in ((1.0, True), (0.999, False)):
            due = offers.loc[task, "deadline"] * factor
            asked = tasks["deadline"].where(tasks.index != task, due)
            again = simulate(tasks.assign(deadline=asked), cluster, "EDF-DLT")
            assert again.tasks.loc[task, "admitted"] == admitted


@pytest.mark.parametrize("policy", ["MCDF", "EDFMN", "FIFOMN", "EDFAN"])
@pytest.mark.parametrize("reading", ["order_when=each_tk", "link=shared", "order_when=once"])
def test_all_offers_at_once_of_paper_m(policy, reading):
    cluster = Cluster(10, 10.0, 10.0, 1.0, 1.0)
    tasks = workload.mcdf(cluster, 2.5, seed=3, horizon=60_000)
    s = simulate(tasks, cluster, policy, Reading.from_switches(dict([reading.split("=")])))
    offers = s.offers()
    assert len(offers) > 5
    for task, row in offers.iterrows():
        one = s.offer(task)
        assert (one is None) == np.isnan(row["deadline"])
        if one is not None:
            assert row["deadline"] == one.deadline
            assert row[["nodes", "start"]].tolist() == [one.nodes, one.start]


@pytest.mark.parametrize("policy", ROWS_I)
def test_all_offers_at_once_are_those_made_one_by_one(policy):
    found = 0
    for k in range(scale_count(30)):
        _, instance, reading = seeded_for(policy, ("all offers", k))
        s = instance.simulate(policy, reading | {"split": "all"})
        offers = s.offers()
        assert offers.index.tolist() == s.tasks.index[~s.tasks["admitted"]].tolist()
        for task, row in offers.iterrows():
            one = s.offer(task)
            assert (one is None) == np.isnan(row["deadline"])
            if one is not None:
                found += 1
                assert row["deadline"] == one.deadline, (policy, reading, instance, task)
                assert row[["nodes", "start"]].tolist() == [one.nodes, one.start]
    assert SCALE < 1 or found > 5
