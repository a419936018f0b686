"""Results are the same bytes as when they were frozen (`tests/golden`).

A test that fails here found a result that moved: explain it and freeze anew, or undo it.
"""

import pytest

from tests.golden import blocks, bricks_runs, realtime_runs, steady_runs, versions
from tests.golden.engines import ENGINES
from tests.scale import SCALE

#: Another solver may return another optimal vertex; optima are compared with any.
COMPARED = [name for name in ENGINES if name != "steady" or versions.is_frozen_solver()]
#: Engines that have a compiled and an uncompiled core.
TWO_SPEEDS = {"realtime": realtime_runs.run, "bricks": bricks_runs.run, "steady": steady_runs.run}
#: Parts in which the runs of an engine are compared, so that processes can share them.
PARTS = 4


def numbers(part):
    """Return the numbers of the runs of a part: all in CI, else some (`tests.scale`)."""
    return range(part, blocks.RUNS, PARTS)[:: round(1 / min(SCALE, 1))]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("engine", COMPARED)
def test_random_runs_decide_as_before(engine, part):
    frozen = blocks.frozen(engine)
    assert len(frozen) == blocks.RUNS
    for number in numbers(part):
        assert f"# {number} {ENGINES[engine](number)}" == frozen[number]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("speed", ["compiled", "python"])
@pytest.mark.parametrize("engine", [name for name in TWO_SPEEDS if name in COMPARED])
def test_both_speeds_decide_alike(engine, speed, part):
    frozen = blocks.frozen(engine)
    for number in numbers(part):
        assert f"# {number} {TWO_SPEEDS[engine](number, speed)}" == frozen[number]


@pytest.mark.parametrize("part", range(PARTS))
def test_optima_are_as_before_with_any_solver(part):
    frozen = blocks.frozen("steady")
    for number in numbers(part)[::5]:
        head, was = frozen[number].split("\n")[:2]
        now = ENGINES["steady"](number).split("\n")[1]
        (best, bound), (best_was, bound_was) = (map(float, t.split(" of ")) for t in (now, was))
        assert bound == pytest.approx(bound_was, rel=1e-7)
        method = head.split()[2].partition("+")[0]
        if method in ("LP", "MILP"):
            assert best == pytest.approx(best_was, rel=1e-7)
