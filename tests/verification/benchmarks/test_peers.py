"""The engine and its peers decide alike: the benchmark compares equal work."""

import numpy as np
import pandas as pd
import pytest

from dlsim.realtime import Cluster, workload
from tests.verification.benchmarks import parts, peers, realtime

#: Relative difference in time that rounding explains (sums of a few hundred terms).
ROUNDING = 5e-12


#: nodes, load, DCRatio
SETTINGS = [(16, 0.8, 2), (16, 2.0, 2), (16, 2.0, 20), (5, 0.8, 2), (1, 1.0, 3)]
RACERS = [(policy, name) for policy, row in peers.PEERS.items() for name in row]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(("policy", "name"), RACERS)
def test_peer_decides_like_the_engine(policy, name, setting):
    nodes, load, dc_ratio = setting
    cluster, engines = Cluster(nodes, 1.0, 100.0), realtime.ENGINES[policy]
    for seed in range(3):
        tasks = realtime.first_tasks(300, seed, cluster, load, dc_ratio)
        ours, theirs = (engines[one](tasks, cluster) for one in ("dlsim", name))
        differ, apart = realtime.difference(ours, theirs)
        assert differ == 0
        assert apart < ROUNDING
        assert 0 < (ours[0] == 0).sum() < len(tasks)


@pytest.mark.parametrize("name", peers.PEERS["EDF-DLT"])
def test_early_nodes_get_the_larger_part(name):
    # N = 2, tau = 1, chi = 3: the second task finds its nodes free at 0 and 21; alpha =
    # (53/77, 24/77), the nodes finish at 424/11 and 423/11, before the estimate 529/11
    columns = ["arrival", "sigma", "deadline"]
    tasks = pd.DataFrame([(0, 5.25, 21), (0, 14, 54), (1, 7, 60)], columns=columns)
    nodes, start, end = peers.PEERS["EDF-DLT"][name](tasks, Cluster(2, 1.0, 3.0))
    assert nodes.tolist() == [1, 2, 0]
    assert start[:2].tolist() == [0, 0]
    assert end[:2] == pytest.approx([21, 424 / 11], rel=1e-14)
    parts = peers.shares([0, 21], 14, peers.unit_times(Cluster(2, 1.0, 3.0)), 1.0)
    assert parts == pytest.approx([53 / 77, 24 / 77], rel=1e-14)


def test_difference_sees_decisions_and_times():
    ours = np.array([2, 0, 1]), np.array([1.0, np.nan, 4.0]), np.array([3.0, np.nan, 8.0])
    theirs = np.array([2, 1, 1]), np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0, 10.0])
    assert realtime.difference(ours, theirs) == (1, 0.25)
    assert realtime.difference(ours, ours) == (0, 0.0)


def test_tasks_are_the_first_of_paper_i():
    for count in (1, 50, 2000):
        tasks = realtime.first_tasks(count, seed=1)
        assert len(tasks) == count
        longer = workload.dcratio(realtime.BASELINE, 0.8, 1e7, 1)
        pd.testing.assert_frame_equal(tasks, longer.head(count), check_exact=True)


@pytest.mark.parametrize("policy", realtime.RULES)
def test_race_has_a_row_per_engine(policy):
    frame = pd.DataFrame(realtime.race(3, 200, 1, [policy]))
    assert list(frame["engine"]) == list(realtime.ENGINES[policy])
    assert frame["ratio"][0] == 1
    assert (frame["decisions_differ"] == 0).all()
    assert (frame["max_time_difference"] < ROUNDING).all()
    assert (frame["tasks_per_second"] > 0).all()


def test_present_counts_half_open_intervals():
    assert (
        realtime.present(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0]), np.array([1.0, 9.0])) == 1
    )


def test_longer_lines_cost_more_or_less():
    frame = pd.DataFrame(realtime.long_queues(0, 60))
    assert (frame["us_per_task"] > 0).all()
    assert frame["waiting"].max() > 3 * frame["waiting"].min()


def test_clusters_of_every_size_are_measured():
    frame = pd.DataFrame(realtime.many_nodes(0, 20))
    assert list(frame["N"]) == [16, 1024, 65_536, 16, 1024, 16_384]
    assert (frame["nodes_per_task"] > frame["N"] / 8).all()


@pytest.mark.parametrize(("word", "code"), [("--version", 0), ("nothing", 2)])
def test_the_command_line_is_measured_in_a_process_of_its_own(word, code, capfd):
    row = parts.run_dlsim(word)
    assert row["exit"] == code
    assert 0 < row["cpu_seconds"]
    assert 10 < row["peak_MB"] < 1000
