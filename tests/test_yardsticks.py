"""What is left in paper C: gaps, the price of learning."""

import pytest
from numpy.random import SeedSequence

from dlsim.cpugpu import Machine, simulate, workload
from dlsim.papers.cpu_gpu import cells as of_c

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
