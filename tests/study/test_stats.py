"""Intervals against scipy.stats and hand cases."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from dlsim.files import shared_folder
from dlsim.study.stats import (
    BOOTSTRAP_RESAMPLES,
    family,
    relative_reduction,
    share_bounds,
    skewed_quantile,
    summary,
)
from tests.helpers.intervals import student
from tests.helpers.refusals import refuses_each

SAMPLES = arrays(float, st.integers(2, 12), elements=st.floats(-1e3, 1e3, width=32))


def long(a, b, load=1.0):
    rows = [("A", load, r, value) for r, value in enumerate(a)]
    rows += [("B", load, r, value) for r, value in enumerate(b)]
    return pd.DataFrame(rows, columns=["policy", "load", "replicate", "reject"])


def reduce(frame, **options):
    return relative_reduction(frame, "reject", "policy", "A", "B", **options)


def ends(row):
    return [row.estimate, row.low, row.high]


# ---------------------------------------------------------------------- one sample


def interval_of(values):
    """Estimate the mean of one sample."""
    frame = pd.DataFrame({"x": values}, dtype=float)
    return next(summary(frame, [], "x").itertuples(index=False))


def test_hand_case():
    # mean 2, s = 1, t(2 degrees, 0.975) = 4.3027 (printed tables): 2 +- 4.3027 / sqrt(3)
    assert interval_of([1, 2, 3]) == pytest.approx((2, -0.48414, 4.48414, 3), abs=1e-5)


@given(SAMPLES)
def test_an_interval_is_scipys(values):
    ours = interval_of(values)
    if np.ptp(values) == 0:
        assert ours == (values[0], values[0], values[0], len(values))
        return
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    slack = 1e-9 * (1 + np.abs(values).max())
    assert ours[:3] == pytest.approx((values.mean(), *theirs), rel=1e-9, abs=slack)


def test_degenerate_samples_are_defined():
    assert interval_of([0.1, 0.1, 0.1]) == (0.1, 0.1, 0.1, 3)
    one = interval_of([4.0])
    assert (one.estimate, one.n) == (4.0, 1)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    interval = interval_of([1.0, math.nan, 1.0])
    assert np.isnan(interval[:3]).all()
    assert interval.n == 3


# ------------------------------------------------------------------------- summary


def test_summary_is_an_interval_per_group_in_order_of_appearance():
    rng = np.random.default_rng(2)
    keys = [(load, policy) for load in (2.0, 0.5, 1.0) for policy in ("B", "A")]
    rows = [(*key, rng.random()) for _ in range(4) for key in keys]
    frame = pd.DataFrame(rows, columns=["load", "policy", "reject"])
    table = summary(frame, ["load", "policy"], "reject")
    assert list(table.columns) == ["load", "policy", "estimate", "low", "high", "n"]
    assert list(zip(table.load, table.policy, strict=True)) == keys
    for row in table.itertuples():
        values = frame.reject[(frame.load == row.load) & (frame.policy == row.policy)]
        assert ends(row) == pytest.approx(student(values))
    assert summary(frame, [], "reject").n.tolist() == [24]


def test_nan_spoils_its_own_group_only_and_a_group_may_be_called_nan():
    frame = pd.DataFrame({"g": ["a", "a", None, None], "x": [1.0, math.nan, 2.0, 4.0]})
    table = summary(frame, "g", "x")
    assert table.n.tolist() == [2, 2]
    assert math.isnan(table.estimate[0])
    assert table.estimate[1] == 3


# ----------------------------------------------------------------------- pairs


def test_pairs_are_matched_by_key_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(3)
    frame = pd.concat([long(rng.random(6), rng.random(6), load) for load in (2.0, 1.0)])
    mixed = frame.sample(frac=1, random_state=0)
    table = reduce(frame, at="load").drop(columns="values")
    assert table.load.tolist() == [2.0, 1.0]
    again = reduce(mixed, at=["load"]).set_index("load").loc[[2.0, 1.0]].reset_index()[[*table]]
    pd.testing.assert_frame_equal(table, again)


def test_columns_may_be_called_like_our_own_words():
    frame = long([1.0, 2.0], [3.0, 5.0]).rename(columns={"reject": "value", "load": "a"})
    table = relative_reduction(frame, "value", "policy", "A", "B", at="a")
    assert table.estimate.tolist() == [1 - 1.5 / 4]


# -------------------------------------------------------------- relative reduction


def test_relative_reduction_by_hand():
    # means 1.5 and 3, ratio 1/2; residuals (1 - 1, 2 - 2) are 0: exactly half, width 0
    assert ends(reduce(long([1, 2], [2, 4])).iloc[0]) == [0.5, 0.5, 0.5]
    # means 2 and 4; residuals (1 - 2, 3 - 2) / 4 = -+1/4, s = sqrt(2)/4, s/sqrt(2) = 1/4,
    # t(1 degree, 0.975) = 12.706 (printed tables)
    row = reduce(long([1, 3], [4, 4])).iloc[0]
    assert ends(row) == pytest.approx([0.5, 0.5 - 12.706 / 4, 0.5 + 12.706 / 4], abs=1e-3)
    assert np.isnan(ends(reduce(long([1, 2], [0, 0])).iloc[0])).all()  # of nothing


def test_relative_reduction_agrees_with_the_jackknife():
    rng = np.random.default_rng(6)
    b = 0.3 + 0.02 * rng.standard_normal(40)
    a = 0.9 * b + 0.004 * rng.standard_normal(40)
    row = reduce(long(a, b)).iloc[0]
    out = [1 - np.delete(a, i).mean() / np.delete(b, i).mean() for i in range(40)]
    error = math.sqrt(39 / 40 * np.sum((out - np.mean(out)) ** 2))
    half = stats.t.ppf(0.975, 39) * error
    assert row.estimate == pytest.approx(1 - a.mean() / b.mean(), rel=1e-12)
    assert (row.high - row.low) / 2 == pytest.approx(half, rel=0.01)


# ------------------------------------------------------------------------ refusals


TWO_LOADS = pd.concat([long([1, 2, 3], [4, 5, 6], load) for load in (1.0, 2.0)])
RENAMED = TWO_LOADS.rename(columns={"load": "n"})
test_refusals_name_the_value_and_the_remedy = refuses_each(
    [
        (lambda: reduce(TWO_LOADS), "policy = 'A' and 'B' each need one row per replicate: run"),
        (lambda: reduce(TWO_LOADS.iloc[:-1], at="load"), "one row per load, replicate"),
        (lambda: reduce(TWO_LOADS, at="lod"), "lod not found among policy, load"),
        (lambda: reduce(TWO_LOADS, at=["load", "policy"]), "'policy' has two meanings"),
        (lambda: summary(RENAMED, "n", "reject"), "two meanings"),
        (lambda: summary(TWO_LOADS, "load", "policy"), "'policy' must hold numbers"),
    ]
)


# ------------------------------------------------------------------ families


def _by_hand(samples, level=0.95):
    """Bootstrap-t and max-t in plain loops over the resamples of rows.

    Beyond an end are as many of them as at 95 %, or more.
    """
    x = np.column_stack(samples)
    n, tail, count = len(x), (1 - level) / 2, BOOTSTRAP_RESAMPLES * (5 if level == 0.99 else 1)
    draws = np.random.default_rng([n, count]).multinomial(n, np.full(n, 1 / n), size=count)
    found = []
    for often in draws:
        rows = np.repeat(x, often, axis=0)
        with np.errstate(divide="ignore"):
            apart = rows.mean(axis=0) - x.mean(axis=0)
            t = apart / (rows.std(axis=0) / np.sqrt(n - 1))
        found.append(t * n / (n - 1))
    found, k = np.array(found), int(tail * (count - 1))
    ordered = np.sort(found, axis=0)
    student = stats.t.ppf(1 - tail, n - 1)
    low, high = np.minimum(ordered[k], -student), np.maximum(ordered[-1 - k], student)
    bound = skewed_quantile(n, (1 - level ** (1 / x.shape[1])) / 2)
    least = np.minimum(np.maximum(np.sort(found.min(axis=1))[k], -bound), low)
    most = np.maximum(np.minimum(np.sort(found.max(axis=1))[-1 - k], bound), high)
    mean, error = x.mean(axis=0), stats.sem(x)
    return np.column_stack([mean - q * error for q in (high, low, most, least)])


@pytest.mark.parametrize(("n", "level"), [(5, 0.95), (12, 0.8), (12, 0.99)])
def test_a_family_by_hand(n, level):
    rng = np.random.default_rng(n)
    samples = [rng.exponential(size=n), rng.normal(3, 2, n), rng.normal(size=n) ** 3]
    found = family(samples, level)[["low", "high", "least", "most"]].to_numpy()
    assert found == pytest.approx(_by_hand(samples, level), rel=1e-9)


@pytest.mark.parametrize(("n", "tail"), [(5, 0.05), (12, 0.001)])
def test_the_bound_for_skewed_replicates(n, tail):
    law = stats.lognorm(1)
    rows = law.rvs((200_000, n), random_state=99)
    t = stats.ttest_1samp(rows, law.mean(), axis=1).statistic
    assert (t < -skewed_quantile(n, tail)).mean() == pytest.approx(tail, rel=0.2)
    assert skewed_quantile(80, tail) == skewed_quantile(30, tail) < skewed_quantile(29, tail)


def test_few_replicates_and_ties_have_students_intervals():
    few, ties = [0.1, 0.4, 0.5], [0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0]
    found = family([few, ties])
    for row, sample in zip(found.itertuples(), (few, ties), strict=True):
        for level, ends in ((0.95, (row.low, row.high)), (0.95**0.5, (row.least, row.most))):
            error = stats.sem(sample)
            known = stats.t.interval(level, len(sample) - 1, np.mean(sample), error)
            assert ends == pytest.approx(known)


def test_ties_that_lean_to_one_side_are_wide_on_that_of_the_long_tail():
    rare = np.array([0.0] * 7 + [1.0, 0.0, 2.0])
    right, left = family([rare, rare]).iloc[0], family([-rare, -rare]).iloc[0]
    student = stats.t.ppf([0.975, (1 + 0.95**0.5) / 2], 9) * right["se"]
    near = (right["estimate"] - right[["low", "least"]]).tolist()
    assert near == pytest.approx(student.tolist())
    reach = [skewed_quantile(10, 0.025), skewed_quantile(10, (1 - 0.95**0.5) / 2)]
    wide = (right[["high", "most"]] - right["estimate"]) / right["se"]
    assert wide.tolist() == pytest.approx(reach)
    assert (-left[["high", "low", "most", "least"]]).tolist() == pytest.approx(
        right[["low", "high", "least", "most"]].tolist()
    )


def test_a_family_moves_and_grows_with_its_unit():
    samples = list(np.random.default_rng(4).exponential(size=(6, 9)))
    ends = ["estimate", "low", "high", "least", "most"]
    here = family(samples)[ends].to_numpy()
    there = family([1000 + 1e-6 * sample for sample in samples])[ends].to_numpy()
    assert (there - 1000) * 1e6 == pytest.approx(here, rel=1e-4)
    mirrored = family([-sample for sample in samples])
    assert -mirrored["most"].to_numpy() == pytest.approx(here[:, 3], rel=1e-9)


def test_nothing_is_known_of_equal_or_missing_replicates():
    found = family([[1.0, 1.0, 1.0], [2.0], [1.0, np.nan, 2.0], [1.0, 2.0, 3.0]])
    assert found[["low", "high", "least", "most"]].isna().all(axis=1).tolist() == [1, 1, 1, 0]
    assert found["estimate"].tolist()[:2] == [1.0, 2.0]
    assert family([]).empty


def test_bounds_of_shares_are_exact():
    for count, total in ((0, 10), (3, 10), (10, 10), (0, 100_000)):
        for level, found in (
            (0.95, share_bounds(count, total)),
            (0.95 ** (1 / 7), share_bounds(count, total, points=7)),
        ):
            known = stats.binomtest(count, total).proportion_ci(level, "exact")
            assert tuple(map(float, found)) == pytest.approx((known.low, known.high))


def test_the_shipped_calibration_has_every_row_within_five_percent():
    table = pd.read_csv(shared_folder("data") / "reference" / "suite" / "suite-calibration.csv")
    laws = ["normal", "skewed to the right", "skewed to the left", "with ties", "rare counts"]
    grid = [laws, [1, 12, 60, 160], [0.0, 0.5, 0.9], [5, 10, 20]]
    rows = table[["law", "points", "correlation", "runs"]].itertuples(index=False, name=None)
    assert set(rows) == set(pd.MultiIndex.from_product(grid))
    most = stats.binom.ppf(0.9995, table["draws"], 0.05) / table["draws"]
    assert (table["contradicted"] <= most).all()
    assert (table["supported"] <= most).all()
