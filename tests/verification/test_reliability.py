"""How many decisions of each engine were held against its twin, and how many of them at a tie.

``pytest -s`` prints the counts; DLSIM_TEST_SCALE multiplies them.
"""

import random
from collections import Counter

import numpy as np
import pytest

from tests.bricks.test_twin import OF_ENVIRONMENT, OF_POLICY, OF_READING, draw, draw_environment
from tests.bricks.test_twin import agree as agree_grid
from tests.cpugpu.test_engine import agree, both
from tests.helpers.cpugpu_queues import ONLINE, queue, runnable
from tests.helpers.scale import LONG, scale_count
from tests.helpers.steady_platforms import draw_platform
from tests.helpers.strategies import (
    IN_LINE,
    ROWS,
    ROWS_I,
    any_reading,
    differences,
    seeded,
    seeded_for,
)
from tests.steady.test_heuristics import READINGS, same_steps


def coinciding(instants):
    """How many of these exact instants are another one's too."""
    return sum(n for n in Counter(instants).values() if n > 1)


def realtime(rng):
    """One instance of paper M's kind or paper I's; ties: tasks that end at their deadline."""
    if rng.random() < 0.5:
        policy = rng.choice(sorted(ROWS))
        _, instance = seeded(rng.random())
        reading = any_reading(rng.choice)
    else:
        policy = rng.choice(sorted(set(IN_LINE) - SLOW))
        _, instance, reading = seeded_for(policy, rng.random())
    records = instance.exact(policy, reading)
    s = instance.simulate(policy, reading)
    assert differences(records, s) == [], (policy, reading, instance)
    s.check()
    ends = [getattr(r, "estimate", None) or r.completion for r in records]
    due = [row[0] + row[2] for row in instance.rows]
    return len(records), sum(end == limit for end, limit in zip(ends, due, strict=True))


def cpu_gpu(rng):
    """One queue; ties: jobs that end or arrive as another does, exactly."""
    name, q = rng.choice(ONLINE), queue(rng)
    if not runnable(q, name):
        return 0, 0
    r, exact = both(q, name)
    agree(r, exact)
    ends, arrivals = [job.end for job in exact.jobs], {job.arrival for job in exact.jobs}
    return len(exact.jobs), coinciding([*ends, *arrivals])


def wide_area(rng):
    """One platform under the greedy heuristic; ties: clusters of the same speed."""
    p = draw_platform(rng.randrange(2**31), rng.random() < 0.5, rng.randint(1, 5))
    return same_steps(p, READINGS[rng.choice(sorted(READINGS))]), coinciding(p.speed.tolist())


def grid(rng):
    """One Grid; ties: requests of the same instant, exactly."""
    policy, reading = draw(OF_POLICY, rng), draw(OF_READING, rng)
    env = draw_environment(rng, **draw(OF_ENVIRONMENT, rng, often=0.7))
    agree_grid(env, policy, reading)
    return len(env.requests), coinciding(env.requests["arrival"].tolist())


#: Rows whose exact twin tries 64 numbers of rounds.
SLOW = {name for name, row in ROWS_I.items() if row.rounds == "best"}
ENGINES = [(realtime, 400), (cpu_gpu, 600), (wide_area, 1000), (grid, 300)]


@pytest.mark.parametrize(("engine", "count"), ENGINES, ids=[e.__name__ for e, _ in ENGINES])
def test_no_decision_differs_from_the_twins_and_ties_are_among_them(engine, count):
    rng = random.Random(engine.__name__)
    found = np.array([engine(rng) for _ in range(scale_count(count, LONG, least=20))])
    decisions, tied = found.sum(axis=0)
    print(f"{engine.__name__}: {len(found)} instances, {decisions} decisions, {tied} at a tie")
    assert decisions > 0
    assert tied > 0
