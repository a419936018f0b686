"""The engine and its peers decide alike: the benchmark compares equal work."""

import numpy as np
import pandas as pd
import pytest

from dlsim.realtime import Cluster, execution_time
from tests.benchmarks import peers, realtime

#: Relative difference in time that rounding explains (sums of a few hundred terms).
ROUNDING = 5e-12


@pytest.mark.parametrize("name", peers.PEERS)
@pytest.mark.parametrize(
    ("nodes", "load", "dc_ratio"),
    [(16, 0.8, 2), (16, 2.0, 2), (16, 2.0, 20), (5, 0.8, 2), (1, 1.0, 3)],
)
def test_peer_decides_like_the_engine(name, nodes, load, dc_ratio):
    cluster = Cluster(nodes, 1.0, 100.0)
    for seed in range(3):
        tasks = realtime.realtime_workload(300, seed, cluster, load, dc_ratio)
        ours = realtime.dlsim_engine(tasks, cluster)
        differ, apart = realtime.difference(ours, peers.PEERS[name](tasks, cluster))
        assert differ == 0
        assert apart < ROUNDING
        assert 0 < (ours[0] == 0).sum() < len(tasks)
        assert (ours[1] > tasks["arrival"]).any()


def test_difference_sees_decisions_and_times():
    ours = np.array([2, 0, 1]), np.array([1.0, np.nan, 4.0]), np.array([3.0, np.nan, 8.0])
    theirs = np.array([2, 1, 1]), np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 10.0])
    assert realtime.difference(ours, theirs) == (1, 0.25)
    assert realtime.difference(ours, ours) == (0, 0.0)


def test_workload_follows_paper_i():
    cluster = realtime.BASELINE
    tasks = realtime.realtime_workload(50_000, seed=1)
    typical = execution_time(200, 16, cluster)
    # normal(200, 200) given that it is positive has mean 200 (1 + phi(1) / Phi(1)) = 257.52
    assert tasks["sigma"].mean() == pytest.approx(257.52, rel=0.02)
    assert np.diff(tasks["arrival"]).mean() == pytest.approx(typical / 0.8, rel=0.02)
    least = tasks["sigma"].map(lambda sigma: execution_time(sigma, 16, cluster))
    clamped = np.isclose(tasks["deadline"], least, rtol=1e-14)
    assert 0.05 < clamped.mean() < 0.5
    assert tasks.loc[~clamped, "deadline"].between(typical, 3 * typical).all()
    assert (tasks["deadline"] >= least * (1 - 1e-14)).all()
    again = realtime.realtime_workload(50_000, seed=1)
    pd.testing.assert_frame_equal(tasks, again, check_exact=True)
    assert not tasks.equals(realtime.realtime_workload(50_000, seed=2))


def test_race_has_a_row_per_engine():
    frame = realtime.run(tasks=200, seed=3, repeats=1)
    assert list(frame["engine"]) == list(realtime.ENGINES)
    assert frame["ratio"][0] == 1
    assert (frame["decisions_differ"] == 0).all()
    assert (frame["max_time_difference"] < ROUNDING).all()
    assert (frame["tasks_per_second"] > 0).all()


def test_present_counts_half_open_intervals():
    assert (
        realtime.present(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0]), np.array([1.0, 9.0])) == 1
    )


def test_report_names_the_machine_and_every_table():
    text = realtime.report(tasks=50, repeats=1)
    assert "simpy" in text.splitlines()[0]
    assert text.count("us_per_task") == 3
