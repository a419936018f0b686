"""No decision depends on when the clock began or on the unit of time: exact twins decide.

Every instance is told on shifted clocks and in other units; arrivals stay exact floats, or the
clock is left out. The twins work on Fractions, so that a tie is a tie on every clock.
``pytest -s`` prints the counts; DLSIM_TEST_SCALE multiplies them.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import ScheduleError
from dlsim.kernel import clock_origin
from dlsim.realtime import Cluster, simulate
from tests.strategies import ROWS, ROWS_I, SCALE, Instance, any_reading, seeded, seeded_for

#: (shift, unit): where the clock begins, and one second in the new unit.
CLOCKS = [
    (0, 1), (1e6, 1), (2**30, 1), (1e12, 1), (0, 1e-9), (0, 2**-10), (0, 1e9), (2**30, 2**-10),
]  # fmt: skip


# --- real-time loads ----------------------------------------------------------------------


def told_anew(instance: Instance, shift, unit) -> Instance | None:
    """The same instance on another clock; None where a float cannot hold an arrival there."""
    shift, unit = Fraction(shift), Fraction(unit)
    rows = [(a * unit + shift, sigma, d * unit) for a, sigma, d in instance.rows]
    if shift and any(Fraction(float(a)) != a for a, _, _ in rows):
        return None
    cms, cps, st, sc = (x * unit for x in instance[1:5])
    return instance._replace(rows=rows, cms=cms, cps=cps, st=st, sc=sc)


def wrong(records, s, shift, unit):
    """The tasks that the engine decides or times unlike the twin of the first clock."""
    found = []
    for task, row in zip(records, s.tasks.itertuples(), strict=True):
        same = (task.admitted, task.nodes, task.missed) == (row.admitted, row.nodes, row.missed)
        for name in ("start", "completion"):
            exact, value = getattr(task, name), getattr(row, name)
            if exact is None or math.isnan(value):
                same = same and exact is None and math.isnan(value)
                continue
            there = Fraction(exact) * Fraction(unit)
            loss = there / 10**9 + 2 * Fraction(float(np.spacing(value)))
            same = same and abs(Fraction(value) - Fraction(shift) - there) <= loss
        if not same:
            found.append((task, row))
    return found


@pytest.mark.parametrize("policy", [*ROWS, *ROWS_I])
def test_real_time_decisions_do_not_depend_on_the_clock(policy):
    count, runs = round(5 * SCALE), 0
    for k in range(count):
        if policy in ROWS:
            source, instance = seeded(("clock", policy, k))
            reading = any_reading(source.choice)
        else:
            _, instance, reading = seeded_for(policy, ("clock", k))
        records = instance.exact(policy, reading)
        for shift, unit in CLOCKS:
            other = told_anew(instance, shift, unit)
            if other is None:
                continue
            s = other.simulate(policy, reading)
            assert wrong(records, s, shift, unit) == [], (k, shift, unit, reading, instance)
            arrival = [float(a) for a, _, _ in other.rows]
            assert s.tasks["arrival"].tolist() == arrival
            s.check()
            runs += 1
    print(f"{policy}: {count} instances, {runs} clocks")
    assert runs > 4 * count


def late_task(deadline, arrival=1.7e12):
    table = pd.DataFrame({"arrival": [arrival], "sigma": [1.0], "deadline": [deadline]})
    return simulate(table, Cluster(1, 0.0, 100.0), "MCDF")


def test_a_task_that_cannot_be_in_time_is_refused_in_epoch_milliseconds_too():
    assert not late_task(99.0).tasks["admitted"].any()
    s = late_task(100.0)
    assert s.tasks["admitted"].all()
    assert s.tasks["completion"].tolist() == [1.7e12 + 100]
    s.check()


@pytest.mark.parametrize("arrival", [0.0, 1e6, 2.0**30, 1.7e12])
def test_the_check_sees_an_admitted_task_that_ends_late(arrival):
    s = late_task(100.0, arrival)
    forged = replace(
        s, tasks=s.tasks.assign(deadline=99.0), given=s.given._replace(deadline=np.array([99.0]))
    )
    with pytest.raises(ScheduleError, match=r"missed means|meets its deadline"):
        forged.check()
    with pytest.raises(ScheduleError, match="meets its deadline"):
        replace(forged, tasks=forged.tasks.assign(missed=True)).check()


def test_the_check_knows_a_missed_deadline_without_admission_on_a_late_clock():
    table = pd.DataFrame({"arrival": [1.7e12] * 2, "sigma": [1.0] * 2, "deadline": [100.0, 199.0]})
    s = simulate(table, Cluster(1, 0.0, 100.0), "FIFOANNA")
    assert s.tasks["missed"].tolist() == [False, True]
    s.check()
    with pytest.raises(ScheduleError, match="missed means completion after the deadline"):
        replace(s, tasks=s.tasks.assign(missed=False)).check()


def test_the_origin_loses_nothing():
    rng = np.random.default_rng(0)
    for _ in range(round(500 * SCALE)):
        span, first = 10 ** rng.uniform(-9, 9), 10 ** rng.uniform(-9, 13)
        arrival = np.sort(first + span * rng.random(rng.integers(1, 20)))
        origin = clock_origin(arrival)
        after = arrival - origin
        assert 0 <= origin <= arrival[0]
        assert (origin + after == arrival).all()
        exact = [Fraction(a) - Fraction(origin) for a in arrival.tolist()]
        assert [Fraction(a) for a in after.tolist()] == exact
        assert after[-1] <= 4 * (arrival[-1] - arrival[0]) + np.spacing(arrival[-1])
