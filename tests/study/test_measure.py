"""Measures: points and their names, steps, what a claim needs, and every claim measured."""

import importlib

import numpy as np
import pandas as pd
import pytest

from dlsim.study.claims import load_claims
from dlsim.study.measure import (
    MEASURES,
    difference_to,
    differences,
    name_points,
    negate_interval,
    pivot_policies,
    points,
    ratio,
    trend,
    with_exact_bounds,
    with_medians,
)
from dlsim.study.results import paper_letters
from dlsim.study.stats import summary
from tests.helpers.intervals import student

PAPERS = [name.replace("-", "_") for name in paper_letters().values()]
ENDS = ["estimate", "low", "high"]


@pytest.fixture(autouse=True)
def _claims():
    for paper in PAPERS:
        importlib.import_module(f"dlsim.papers.{paper}")


def values():
    index = pd.MultiIndex.from_product([[60.0, 90.0], range(4)], names=["interval", "replicate"])
    table = pd.DataFrame(np.random.default_rng(2).random((8, 3)), index, columns=["a", "b", "c"])
    return table.assign(d=0.1)


def test_points_are_the_means_of_columns_place_by_place():
    table = values()
    table.iloc[0, 2] = np.nan
    got = points(table, ["interval"])
    assert got["point"].tolist()[:3] == ["a, interval 60", "a, interval 90", "b, interval 60"]
    for row in got.to_dict("records"):
        wanted = student(table.loc[row["interval"], row["what"]])
        assert [row[name] for name in ENDS] == pytest.approx(wanted, nan_ok=True)
        assert row["n"] == 4
    rows = table.reset_index().melt(["interval", "replicate"], var_name="policy", value_name="x")
    again = summary(rows, ["policy", "interval"], "x")
    pd.testing.assert_frame_equal(got[ENDS], again[ENDS])
    alone = points(table.loc[60.0])
    assert alone["point"].tolist() == ["a", "b", "c", "d"]
    assert alone[ENDS].iloc[3].tolist() == [0.1] * 3


def test_one_replicate_has_no_interval_and_none_has_no_point():
    one = points(values().query("replicate == 0"), ["interval"])
    assert one["estimate"].notna().all()
    assert one[["low", "high"]].isna().all().all()
    assert points(values().iloc[:0], ["interval"]).empty
    assert points(values()[[]], ["interval"]).empty


def test_names_of_points_are_short_where_the_value_says_enough():
    table = pd.DataFrame({"what": ["x"], "clusters": [5], "kind": ["Tiers"], "load": [0.30000]})
    assert name_points(table, list(table))["point"].tolist() == ["x, K 5, Tiers, load 0.3"]
    assert name_points(table, ["load"], "lead")["point"].tolist() == ["lead, load 0.3"]
    assert name_points(table, [], "all loads")["point"].tolist() == ["all loads"]


def test_a_trend_is_a_slope_times_the_axis_by_hand():
    index = pd.MultiIndex.from_product([[2, 1, 4], [0, 1]], names=["tau", "replicate"])
    table = pd.DataFrame({"gain": [3.0, 5, 1, 2, 10, 20]}, index=index)
    slopes = [np.polyfit([1, 2, 4], ys, 1)[0] * 3 for ys in ([1, 3, 10], [2, 5, 20])]
    row = trend(table, "tau").iloc[0]
    assert row["point"] == "gain over tau"
    assert row["values"].tolist() == pytest.approx(slopes)
    assert (row["estimate"], row["steps"], row["wrong"]) == (pytest.approx(sum(slopes) / 2), 2, 0)
    short = trend(table.drop((4, 1)), "tau").iloc[0]  # a run without all levels has no slope
    assert np.isnan(short["values"]).tolist() == [False, True]
    two = pd.concat({"a": table, "b": -table}, names=["kind"])
    falling = trend(two, "tau").set_index("kind")
    assert falling["wrong"].to_dict() == {"a": 0, "b": 2}
    assert falling.loc["b", "estimate"] == pytest.approx(-row["estimate"])
    other = trend(pd.concat({"b": table, "a": -table}, names=["kind"]), "tau")
    assert other["kind"].tolist() == ["b", "a"]  # as they stand in the table
    level = table.assign(gain=[5.0, 5, 5, 5, 4, 4])  # 5, 5, 4 along tau: one of two steps falls
    assert trend(level, "tau")["wrong"].tolist() == [1]
    assert trend(pd.concat({"a": level}, names=["kind"]), "tau")["wrong"].tolist() == [1]


def test_differences_leads_and_ratios_by_hand():
    runs = {"replicate": [0, 0, 1, 1], "policy": ["a", "b"] * 2, "ratio": [0.1, 0.4, 0.2, 0.3]}
    frame = pd.DataFrame(runs | {"load": 1.0})
    table = pivot_policies(frame, ["load"])
    assert differences(table, {"less": ("b", "a")})["less"].tolist() == pytest.approx([0.3, 0.1])
    assert difference_to(table, "a", ["b"])["b"].tolist() == pytest.approx([0.3, 0.1])
    counts = pd.DataFrame({"load": 1.0, "replicate": [0, 1], "of": [2.0, 4.0], "all": [0.1, 0.3]})
    assert ratio(counts, "of", "all", ["load"])["estimate"].item() == pytest.approx(6 / 0.4)
    ends = pd.DataFrame({"estimate": [0.2], "low": [0.1], "high": [0.4]})
    assert negate_interval(ends, 1.0)[ENDS].iloc[0].tolist() == pytest.approx([0.8, 0.6, 0.9])


def test_runs_that_are_equal_have_the_interval_of_their_median():
    """Ten equal runs lie on one side of their median with 2**-9."""
    table = points(values().loc[60.0].drop(columns="c"))
    assert with_medians(table)["values"].notna().all()  # four runs: 88 %
    ten = pd.DataFrame({"replicate": range(10), "varies": np.arange(10.0), "same": 0.5})
    found = with_medians(points(ten)).set_index("point")
    assert found.loc["same", [*ENDS]].tolist() == [0.5] * 3
    assert (found.loc["same", "values"], len(found.loc["varies", "values"])) == (None, 10)
    one = pd.concat([points(ten[["replicate", "same"]])] * 27, ignore_index=True)
    assert with_medians(one)["values"].notna().all()  # (1 - 2**-9)**27 = 94.9 %
    assert with_medians(one.iloc[:26])["values"].isna().all()  # 95.04 %


def test_shares_that_never_vary_are_those_of_their_cases():
    """Three runs of which none, some, or one is known; the last point has no total."""
    rows = [np.zeros(3), np.array([0.0, 0.0, 0.5]), np.zeros(1), None, np.zeros(3)]
    table = pd.DataFrame({"estimate": 0.0, "values": rows}, index=[3, 1, 4, 0, 2])
    total = pd.Series([90.0, 90, 30, 60, np.nan], index=table.index)
    found = with_exact_bounds(table, total)
    assert found["total"].fillna(-1).tolist() == [90, -1, -1, 60, -1]
    assert [row is None for row in found["values"]] == [True, False, False, True, False]


def test_every_claim_is_measured_or_says_why_not():
    known = {claim.id: claim for claim in load_claims()}
    assert set(MEASURES) <= set(known)
    for claim in known.values():
        assert claim.id in MEASURES or claim.statement or claim.reason, claim.id
