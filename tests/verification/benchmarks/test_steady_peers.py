"""The steady-state methods and their peers answer alike: the benchmark compares equal work."""

import numpy as np
import pandas as pd
import pytest

from dlsim.steady import Reading, bound, solve
from dlsim.steady.greedy import run_greedy
from tests.helpers.steady_platforms import draw_platform
from tests.verification.benchmarks import steady, steady_peers


def test_peer_program_has_the_bound():
    for seed in range(12):
        p = draw_platform(seed, False, clusters=4, odd=0.1)
        found = steady_peers.Program(p).solve({})
        assert found.objective == pytest.approx(bound(p), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", steady.NETWORKS)
def test_plain_greedy_is_the_same(name):
    for seed in range(4):
        p = steady.NETWORKS[name](8, seed)
        work, steps = steady_peers.greedy(p)
        ours = run_greedy(p, Reading())
        assert steps == ours.steps
        np.testing.assert_allclose(ours.work, work, rtol=1e-9, atol=1e-9 * work.max())


@pytest.mark.parametrize("name", steady.NETWORKS)
def test_peer_rounding_is_feasible_and_as_good(name):
    """Both draw from the same law on one vertex; over seeds their means are near."""
    ours, theirs = [], []
    for seed in range(6):
        p = steady.NETWORKS[name](6, seed)
        top = bound(p)
        best = solve(p, "MILP").objective
        for draw in range(3):
            value, _, ended = steady_peers.lprr(p, draw)
            assert ended
            assert value <= best * (1 + 1e-6)
            theirs.append(value / top)
            ours.append(solve(p, "LPRR", seed=draw).ratio)
    assert np.mean(ours) >= np.mean(theirs) - 0.1


def test_tables_have_their_rows():
    race = pd.DataFrame(steady.lprr_race(sizes=(5,), sample=2, whole=4))
    assert len(race) == len(steady.NETWORKS)
    assert race["peer_value"].isna().all()
    assert (race["ratio"] > 0).all()
    whole = pd.DataFrame(steady.lprr_race(sizes=(5,)))
    assert (whole["peer_value"] <= 1 + 1e-6).all()
    greedy = pd.DataFrame(steady.greedy_race(sizes=(5,), repeats=1))
    assert (greedy["steps_differ"] == 0).all()
    assert (greedy["max_difference"] < 1e-9).all()
    (wide,) = steady.wide(networks={"small": lambda seed: steady.tiers_like(12, seed)})
    assert 0 < wide["held_MB"] < wide["peak_MB"] < 100
    assert wide["part_of_bound"] == pytest.approx(1, abs=1e-6)
