"""The periodic schedule of paper S, 3.2: exact numbers, rounding down, simulation."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.errors import ScheduleError
from dlsim.steady import Allocation, Limits, Period, Platform, Share, solve, to_fraction
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import scale_count
from tests.helpers.steady_platforms import draw_platform, pair, shared_link


def case_a():
    """One connection in case A of the specification: work (5; 2, 7/3)."""
    return Allocation(pair(), np.array([[5, 0], [7 / 3, 2]]), np.array([[0, 0], [1, 0]]))


def test_case_a_by_hand():
    schedule = case_a().periodic()
    assert schedule.length == 3
    assert schedule.units.tolist() == [[15, 0], [7, 6]]
    assert schedule.work.tolist() == [[5, 0], [Fraction(7, 3), 2]]
    assert schedule.objective == Fraction(13, 3)
    assert schedule.completed(4).tolist() == [45, 39]


def test_the_simulation_completes_what_the_formula_says():
    table = case_a().periodic().simulate(4)
    assert table.groupby("application")["computed"].sum().tolist() == [45, 39]
    # the first period computes nothing, the last sends nothing
    assert table.groupby("period")["computed"].sum().tolist() == [0, 28, 28, 28]
    assert table.groupby("period")["sent"].sum().tolist() == [7, 7, 7, 0]
    assert case_a().periodic().simulate(1).empty


def test_a_chosen_period_rounds_down():
    for period, units in ((1, [5, 2, 2]), (2, [10, 4, 4]), (3, [15, 7, 6])):
        schedule = case_a().periodic(period)
        assert schedule.length == period
        assert schedule.units[[0, 1, 1], [0, 0, 1]].tolist() == units


def test_what_has_no_small_denominator_is_rounded_down_to_one_over_d():
    p = pair()
    a = Allocation(p, np.array([[np.pi, 0], [0.0, 2**0.5]]), np.zeros((2, 2), dtype=int))
    schedule = a.periodic(denominator=100)
    assert schedule.length == 100
    assert schedule.units.tolist() == [[314, 0], [0, 141]]
    assert a.periodic(denominator=50).units.tolist() == [[157, 0], [0, 70]]


def one_site(speed, work):
    """Return an allocation of one site without links."""
    links = pd.DataFrame({"bandwidth": [], "max_connect": []})
    p = Platform([speed], [1], links, {}, [1], [1], [1])
    return Allocation(p, np.array([[work]]), np.zeros((1, 1)))


def test_decimals_are_read_as_written():
    assert to_fraction(0.1) == Fraction(1, 10)
    assert to_fraction(1e-7) == Fraction(1, 10**7)
    # the float 0.3 is below 3/10: read in binary, three tenths of a unit would not fit
    schedule = one_site(0.3, 0.3).periodic()
    assert (schedule.length, schedule.units.tolist()) == (10, [[3]])


def test_a_work_that_rounding_put_above_a_limit_is_cut_to_whole_units_below_it():
    for speed, work, period, units in ((0.9999999999, 1.0, 10, 9), (1e12, 1e12 + 500, 1, 10**12)):
        a = one_site(speed, work)
        a.check()
        assert a.periodic(period).units.tolist() == [[units]]


def test_large_units_lose_no_more_than_rounding():
    for seed, unit in itertools.product(range(scale_count(8)), (1e3, 1e6, 1e9)):
        p = draw_platform(seed, exact=False)
        fast = p.links.assign(bandwidth=p.links["bandwidth"] * unit)
        p = replace(p, speed=p.speed * unit, gateway=p.gateway * unit, links=fast)
        for method, period in itertools.product(("G", "LPRG"), (None, 100)):
            a = solve(p, method)
            schedule = a.periodic(period)
            schedule.check()
            most = 2 / schedule.length + 1e-8 * a.work
            assert (a.work - schedule.work.astype(float) <= most).all()


def test_two_applications_of_one_cluster_share_a_connection_exactly():
    base = pair((0, 9), gateway=30)
    p = replace(base, data=(1, 2), origin=(0, 0))
    schedule = solve(p, "MILP").periodic()
    assert schedule.objective == 2
    assert schedule.simulate(3)["computed"].sum() == 2 * 4 * schedule.length


@settings(max_examples=scale_count(60), deadline=None)
@given(st.integers(0, 500), st.integers(1, 400), st.sampled_from(["G", "LPRG", "LPRR"]))
def test_any_allocation_any_period(seed, period, method):
    p = draw_platform(seed, exact=False)
    a = solve(p, method)
    schedule = a.periodic(period)
    schedule.check()
    assert (schedule.units >= 0).all()
    # each work loses less than one unit, but for the unit that rounding error may cost
    lost = a.work * period - schedule.units.astype(float)
    assert lost.min() >= -1e-6
    assert lost.max() < 2
    counted = np.flatnonzero(p.is_counted)
    worst = max(
        sum(2 / period * p.inverse_priority[k, to] for to in range(p.clusters)) for k in counted
    )
    assert float(schedule.objective) >= a.objective - worst
    done = schedule.simulate(3).groupby("application")["computed"].sum()
    assert done.reindex(range(p.applications), fill_value=0).tolist() == list(schedule.completed(3))


# ------------------------------------------------- what the checks catch, one by one


def period_of(units, connections=((0, 0), (1, 0)), platform=None, length=3):
    units = np.array(units, dtype=object)
    return Period(platform or pair(), length, units, np.array(connections))


def test_the_simulation_sees_every_overload():
    share = replace(pair(), limits=Limits((Share(0, (1,), 0.1),)))
    for schedule, message in (
        (period_of([[25, 0], [7, 6]]), r"\(6b\) speed of cluster 0: 32/3 > 10"),
        (period_of([[15, 0], [10, 6]]), r"\(6e\) route 1 -> 0: 10/3 > 3"),
        (period_of([[15, 0], [7, 6]], [[0, 1], [2, 0]]), r"\(6d\) link 0: 3 > 2"),
        (period_of([[0, 0], [7, 0]], platform=pair(gateway=2)),
         r"\(6c\) gateway of cluster 0: 7/3 > 2"),
        (period_of([[0, 0], [4, 0]], platform=share), r"share of \(1,\) in cluster 0: 4/3 > 1"),
    ):  # fmt: skip
        with pytest.raises(ScheduleError, match=r"period [12]: " + message):
            schedule.simulate(3)
        with pytest.raises(ScheduleError):
            schedule.check()


def test_the_least_overload_is_seen():
    schedule = period_of([[15, 0], [9 * 10**12 + 1, 0]], length=3 * 10**12)
    for look in (schedule.check, lambda: schedule.simulate(2)):
        with pytest.raises(ScheduleError, match=r"\(6e\) route 1 -> 0"):
            look()
    period_of([[15, 0], [9 * 10**12, 0]], length=3 * 10**12).check()


test_bad_input_is_refused = refuses_each([
    (lambda: case_a().periodic(0), "period must be a whole number"),
    (lambda: case_a().periodic(denominator=0), "denominator must be"),
    (lambda: case_a().periodic().simulate(0), "periods must be"),
    (lambda: case_a().periodic().completed(True), "periods must be"),
    (lambda: solve(shared_link(), "LP").periodic(), "whole connections"),
])  # fmt: skip


def test_an_allocation_that_breaks_a_rule_has_no_period():
    with pytest.raises(ScheduleError, match="speed of cluster 0"):
        replace(case_a(), work=np.array([[9.0, 0], [2, 2]])).periodic()
