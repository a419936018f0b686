"""The CPU-GPU engine and its peers decide alike: the benchmark compares equal work."""

import pandas as pd
import pytest

from tests.verification.benchmarks import cpugpu


@pytest.mark.parametrize("policy", cpugpu.POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_peers_decide_like_the_engine(policy, seed):
    table = pd.DataFrame(cpugpu.race(seed, 2000, 1, [policy]))
    peers = [name for name, own in cpugpu.PEERS.items() if policy in own]
    assert list(table["engine"]) == ["dlsim", *peers]
    assert table["ratio"][0] == 1
    known = table["engine"] != "plain Python"
    exact = table[known | (policy != "mct")]  # its sums forget what is late
    assert (exact["devices_differ"] == 0).all()
    assert (exact["max_time_difference"] < 1e-9).all()
    assert (table["jobs_per_second"] > 0).all()


def test_queues_are_neither_empty_nor_endless():
    jobs = cpugpu.first_jobs(400)
    device, start, _ = cpugpu.dlsim_engine(jobs, "mct")
    waits = start - jobs["arrival"].to_numpy()
    assert len(set(device)) == 4
    assert 0 < (waits > 0).mean()


def test_every_policy_has_a_speed():
    table = pd.DataFrame(cpugpu.speed(tasks=200, sizes=(0.1, 1)))
    assert set(table["policy"]) == {*cpugpu.ONLINE, *cpugpu.SWITCHED}
    assert (table.iloc[:, 2:] > 0).all(axis=None)
