"""The Grid simulator and its peers decide alike: the benchmark compares equal work."""

import numpy as np
import pytest

from dlsim.bricks import Environment, Policy
from tests.verification.benchmarks import bricks, bricks_peers

#: Relative difference in time that rounding explains.
ROUNDING = 1e-9

SCHEDULERS = [
    Policy(),
    Policy("deadline", opt=0.7),
    Policy("deadline", opt=0.9, load_correction=True, pload=0.5, max_fallbacks=3),
    Policy("greedy", max_fallbacks=1),
]


@pytest.fixture(scope="module")
def crowd():
    """Two domains of few servers, many requests in half an hour: queues and fallbacks."""
    return Environment.random(3, 2, domains=2, nodes=(5, 6), horizon=1800.0)


@pytest.mark.parametrize("policy", SCHEDULERS, ids=lambda policy: policy.name)
@pytest.mark.parametrize("name", bricks_peers.PEERS)
def test_peer_decides_like_the_engine(crowd, name, policy):
    ours = bricks.dlsim_engine(crowd, policy)
    theirs = bricks_peers.PEERS[name](crowd, policy)
    differ, apart = bricks.difference(ours, theirs)
    assert differ == 0
    assert apart < ROUNDING
    assert len(np.unique(ours[0])) > 1
    assert (ours[1].sum() > 0) == (policy.max_fallbacks > 0)


def test_difference_sees_decisions_and_times():
    ours = np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([2.0, 4.0, 8.0])
    theirs = np.array([0, 2, 1]), np.array([0, 0, 0]), np.array([2.0, 5.0, 8.0])
    assert bricks.difference(ours, theirs) == (2, 0.25)
    assert bricks.difference(ours, ours) == (0, 0.0)


@pytest.mark.parametrize("tasks", [100, 500])  # without a request, and with two
def test_a_race_has_a_row_for_every_engine(tasks):
    rows = list(bricks.race(0, tasks))
    assert [row["engine"] for row in rows] == list(bricks.ENGINES)
    assert {row["decisions_differ"] for row in rows} == {0}


def test_every_part_has_its_rows():
    assert [row["case"] for row in bricks.cost_of_readings(0, 100)] == list(bricks.CASES)
    few, many = (row["nodes"] for row in bricks.cost_against_nodes(0, 100))
    assert many > 5 * few
