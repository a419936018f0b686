"""What is left in papers S and C: schedules executed, gaps, the price of learning."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.random import SeedSequence

from dlsim.cpugpu import Machine, simulate, workload
from dlsim.errors import InputError
from dlsim.papers.cpu_gpu import cells as of_c
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


SETTING = of_c.Setting(1, 1, 6, 12, 4, 0.1, 0.02, 5.0)
SEED = SeedSequence(2, spawn_key=(1,))


@pytest.mark.parametrize("arrivals", ["batch", "online"])
def test_no_rule_is_below_the_least(arrivals):
    how = {"policies": ("history", "mct", "rsc"), "setting": SETTING, "switches": {}, "seed": SEED}
    for length in (7, 40):
        rows = of_c.gap("lee", arrivals, length, short=8, **how)
        assert min(row["over"] for row in rows) >= -1e-9
    # the bound is no more than the optimum
    rows = [of_c.gap("lee", arrivals, 7, short=short, **how) for short in (8, 0)]
    assert all(a["over"] <= b["over"] + 1e-9 for a, b in zip(*rows, strict=True))


def test_regret_from_its_definition():
    how = {"batches": 3, "policies": ("history",), "setting": SETTING, "switches": {}, "seed": SEED}
    rows = of_c.regret("lee", **how)
    table = workload.applications("lee", 6, SEED)
    noise = {"cv": 0.1, "outliers": 0.02, "factor": 5.0}
    jobs = workload.draw(table, 12, SEED, batches=3, **noise)
    lost, first, history = 0.0, None, None
    for row, (_, part) in zip(rows, jobs.groupby("batch"), strict=True):
        known = simulate(part, Machine(), "history", of_c.History.exact(table)).makespan
        cold = simulate(part, Machine(), "history", history)
        lost, history, first = lost + cold.makespan - known, cold.history, first or known
        assert row["regret"] == pytest.approx(lost / first)
    gaps = (table["cpu_time"] - table["gpu_time"]).abs()
    assert [row["jobs"] for row in rows] == [12, 24, 36]
    assert rows[0]["bound"] == pytest.approx(gaps.sum() / first)  # two runs each: explored once
    assert rows[2]["bound"] > rows[1]["bound"] > rows[0]["bound"]
