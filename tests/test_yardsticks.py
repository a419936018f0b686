"""What is left in papers S and C: schedules executed, gaps, the price of learning."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.random import SeedSequence

from dlsim.errors import InputError
from dlsim.papers.steady_state import cells as of_s
from dlsim.papers.steady_state.claims import by_vertex
from dlsim.papers.steady_state.executed import execute
from dlsim.steady import Allocation, Platform, solve

LINK = pd.DataFrame({"bandwidth": [3.0], "max_connect": [2]})


def two(**more):
    """Two clusters of speed 10 and 2 behind one link, the example of `solve`."""
    routes = {(0, 1): [0], (1, 0): [0]}
    return Platform((10, 2), (20, 20), LINK, routes, (1, 1), (1, 1), (1, 1), **more)


def test_execution_by_hand():
    # cluster 1 sends 4 of its 6 units per time: 40 a period of 10 in packets of 2. Its own link
    # (20) passes one in 0.1, the two connections together (6) in 1/3, the other's link in 0.1:
    # the last is there after 0.1 + 20/3 + 0.1. Cluster 0 then has done 6.87 of its own 6 time units
    # and computes 40 at speed 10
    period = solve(two(), "MILP").periodic(10)
    assert period.units.tolist() == [[60, 0], [40, 20]]
    done = execute(period, 12, packets=20)
    done.outcome.check()
    arrives = 0.1 + 20 / 3 + 0.1
    assert done.longest == pytest.approx((arrives + 4) / 10)
    assert done.reached == pytest.approx(1)
    # over the backbone alone the same bandwidth; a latency of a tenth of a period comes on top
    assert execute(period, 12, "backbone", 20).longest == pytest.approx(done.longest)
    late = execute(period, 12, packets=20, latency=0.1)
    assert late.longest == pytest.approx((1 + arrives + 4) / 10)


def test_execution_shows_a_promise_that_cannot_be_kept():
    # twice as much as the connections carry, behind the back of the check
    good = solve(two(), "MILP").periodic(10)
    units = good.units.copy()
    units[1] = [80, 20]
    broken = type(good)(good.platform, 10, units, good.connections)
    assert execute(broken, 20).reached < 0.95
    with pytest.raises(InputError, match="network must be one of connections, backbone"):
        execute(good, 2, "wire")


def test_all_work_at_home_needs_no_network():
    work = np.array([[Fraction(5), Fraction(0)], [Fraction(0), Fraction(2)]])
    a = Allocation(two(), work, np.zeros((2, 2), dtype=int))
    done = execute(a.periodic(1), 6)
    assert (done.reached, done.longest) == (1, 1)


@pytest.mark.parametrize("kind", ["Tiers", "random"])
def test_executed_schedules_reach_what_is_promised(kind):
    how = {"length": 100, "periods": 20, "method": "LPRG", "switches": {}}
    rows = of_s.executed(kind, 8, seed=SeedSequence(5, spawn_key=(0,)), **how)
    assert len(rows) == len(of_s.EXECUTIONS)
    assert min(row["reached"] for row in rows if row["how"].startswith("connections")) > 0.99


def test_variance_between_vertices_by_hand():
    # two platforms, two vertices each: within 2 (.1)^2 / 1 / 2 = .02 and 0, between .08 - of means
    rows = pd.DataFrame({
        "kind": "Tiers", "clusters": 5, "connectivity": 0.0, "replicate": [0, 0, 1, 1],
        "vertex": [0, 1, 0, 1], "G": 0.5, "LPRG": [0.4, 0.6, 0.9, 0.9],
    })  # fmt: skip
    found = by_vertex(rows, "LPRG")
    assert found["share"] == pytest.approx(0.01 / (0.01 + 0.08))
    assert found["spread"] == pytest.approx(0.1)
    assert found["flips"] == 0.5
