"""What a history knows of run times: count, mean, deviation, copies."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlsim.cpugpu import History
from tests.helpers.cpugpu_queues import knowing

TIMES = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=30)


@given(TIMES)
def test_count_mean_and_population_deviation(times):
    row = knowing(*(("A", "gpu", time) for time in times)).record("A", "gpu")
    assert row.count == row.assigned == len(times)
    assert row.mean == pytest.approx(statistics.fmean(times), rel=1e-12)
    assert row.std == pytest.approx(statistics.pstdev(times), rel=1e-6, abs=1e-6)
    assert row.expected("median") == statistics.median(times)


def test_what_was_never_seen_is_unknown():
    row = History().record("A", "gpu")
    assert (row.assigned, row.count) == (0, 0)
    assert all(math.isnan(row.expected(name)) for name in ("mean", "median", "ewma"))
    assert math.isnan(row.std)
    assert math.isnan(History().average("gpu"))


def test_a_copy_is_independent():
    history = knowing(("A", "gpu", 1.0))
    other = history.copy()
    other.add("A", "gpu", 3.0)
    other.add("B", "cpu", 3.0)
    assert history.record("A", "gpu").times == [1.0]
    assert len(history.table()) == 1
    assert other.record("A", "gpu").mean == 2


def test_the_medians_of_a_history_and_its_copy_are_those_of_their_runs():
    def median_of(history):
        return statistics.median(history.record("A", "gpu").times)

    known, draw = History(), random.Random(3)
    for _ in range(500):
        known.add("A", "gpu", draw.random() + 0.5)
        assert known.expected("A", "gpu", "median") == median_of(known)
    copy = known.copy()
    copy.add("A", "gpu", 1.0)
    known.add("A", "gpu", 2.0)
    for one in (known, copy):
        assert one.record("A", "gpu").expected("median") == median_of(one)
