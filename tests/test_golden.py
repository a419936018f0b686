"""Results are the same bytes as when they were frozen (`tests/golden`).

A test that fails here found a result that moved: explain it and freeze anew, or undo it. The
README's command compares some 90 of the 2,000 runs of every engine, half of them at each speed
(of the Grid, 20 uncompiled: they take long), and `.ci/run` all of them, compiled; with
DLSIM_TEST_SCALE all of them are compared, at both speeds.
"""

import math

import pytest

from tests.golden import blocks, bricks_runs, cpugpu_runs, realtime_runs, steady_runs, versions
from tests.helpers.scale import TRIES_ALL

#: How an engine runs at each of its speeds.
SPEEDS = {
    (name, speed): lambda number, run=module.run, speed=speed: run(number, speed)
    for name, module in [("realtime", realtime_runs), ("bricks", bricks_runs),
                         ("steady", steady_runs)]
    for speed in ("compiled", "python")
} | {("cpugpu", "python"): cpugpu_runs.run}  # fmt: skip
#: Another solver may return another optimal vertex; optima are compared with any.
COMPARED = [key for key in SPEEDS if key[0] != "steady" or versions.is_frozen_solver()]
#: Every so many runs are compared: primes, for what a run is often depends on its number.
STEP = {"one speed": 23, "two speeds": 43, "slow": 97, "optima": 101}


def numbers(step, first=0):
    """Return the numbers of the runs that are compared: all of them, or evenly chosen ones."""
    return range(blocks.RUNS) if TRIES_ALL else range(first, blocks.RUNS, step)


@pytest.mark.parametrize(("engine", "speed"), COMPARED)
def test_random_runs_decide_as_before(engine, speed):
    frozen = blocks.frozen(engine)
    assert len(frozen) == blocks.RUNS
    kind = {("bricks", "python"): "slow", ("cpugpu", "python"): "one speed"}
    step = STEP[kind.get((engine, speed), "two speeds")]
    for number in numbers(step, first=0 if speed == "compiled" else step // 2):
        assert f"# {number} {SPEEDS[engine, speed](number)}" == frozen[number]


def test_results_do_not_depend_on_how_python_adds(monkeypatch):
    """From 3.12 on, `sum` of floats carries along what is rounded off."""

    def exact(values, start=0):
        values = list(values)
        return math.fsum(values) if {float} == {*map(type, values)} else plain_sum(values, start)

    plain_sum, frozen = sum, blocks.frozen("cpugpu")
    numbers = [n for n, text in enumerate(frozen) if text.split()[2] == "chunks"]
    monkeypatch.setattr("builtins.sum", exact)
    assert [f"# {n} {cpugpu_runs.run(n)}" for n in numbers] == [frozen[n] for n in numbers]


def test_optima_are_as_before_with_any_solver():
    frozen = blocks.frozen("steady")
    for number in numbers(STEP["optima"]):
        head, was = frozen[number].split("\n")[:2]
        now = steady_runs.run(number).split("\n")[1]
        (best, bound), (best_was, bound_was) = (map(float, t.split(" of ")) for t in (now, was))
        assert bound == pytest.approx(bound_was, rel=1e-7)
        method = head.split()[2].partition("+")[0]
        if method in ("LP", "MILP"):
            assert best == pytest.approx(best_was, rel=1e-7)
