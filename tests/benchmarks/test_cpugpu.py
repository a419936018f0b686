"""The CPU-GPU engine and its SimPy model decide alike: the benchmark compares equal work."""

import pandas as pd
import pytest

from tests.benchmarks import cpugpu


@pytest.mark.parametrize("policy", cpugpu.POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_simpy_decides_like_the_engine(policy, seed):
    table = pd.DataFrame(cpugpu.race(seed, 2000, 1, [policy]))
    assert list(table["engine"]) == list(cpugpu.ENGINES)
    assert table["ratio"][0] == 1
    assert (table["devices_differ"] == 0).all()
    assert (table["max_time_difference"] < 1e-9).all()
    assert (table["jobs_per_second"] > 0).all()


def test_queues_are_neither_empty_nor_endless():
    jobs = cpugpu.first_jobs(400)
    device, start, _ = cpugpu.dlsim_engine(jobs, "mct")
    waits = start - jobs["arrival"].to_numpy()
    assert len(set(device)) == 4
    assert 0 < (waits > 0).mean()


def test_the_learning_study_is_timed():
    (row,) = cpugpu.study(replicates=1)
    assert row["batches_run"] >= row["policies"]
    assert row["wall_seconds"] > 0
