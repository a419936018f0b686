"""Paired comparisons, against SciPy's paired test and the intervals of claims."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dlsim.study import compare, plot_comparison
from dlsim.study.claims import Claim, intervals
from dlsim.study.measure import difference_to, pivot_policies, points
from tests.helpers.refusals import refuses_each


def made_up_runs(replicates, loads=(0.1, 0.5)):
    """Return ratios of three policies that share the noise of their workload."""
    rng, rows = np.random.default_rng(7), []
    for load in loads:
        for replicate in range(replicates):
            common = rng.normal(0.3 + load / 2, 0.1)
            for policy, gain in (("EDFMN", 0.0), ("FIFOMN", 0.02), ("mine", -0.03)):
                rows.append((load, replicate, policy, common + gain + rng.normal(0, 0.004)))
    return pd.DataFrame(rows, columns=["load", "replicate", "policy", "ratio"])


def test_few_runs_have_the_interval_of_scipys_paired_test():
    runs = made_up_runs(4)
    found = compare(runs, "policy", "ratio").set_index(["policy", "load"])
    assert list(found.columns) == ["chosen", "estimate", "low", "high", "least", "most", "n"]
    for (rival, load), row in found.iterrows():
        at = runs[runs["load"] == load].set_index("policy")["ratio"]
        paired = stats.ttest_rel(at["mine"], at[rival])
        low, high = paired.confidence_interval(0.95)
        mean = at["mine"].mean() - at[rival].mean()
        assert row["estimate"] == pytest.approx(mean, rel=1e-12)
        assert (row["low"], row["high"]) == pytest.approx((low, high), rel=1e-9)
        # Sidak's level for four differences
        low, high = paired.confidence_interval(0.95 ** (1 / 4))
        assert (row["least"], row["most"]) == pytest.approx((low, high), rel=1e-9)
    assert list(found.index) == [(r, at) for r in ("EDFMN", "FIFOMN") for at in (0.1, 0.5)]


def test_intervals_are_those_by_which_a_claim_is_judged():
    runs = made_up_runs(10)
    found = compare(runs, "policy", "ratio", chosen="EDFMN")
    claim = Claim("mine-1", "mine", "here", "authors' statement", "t", "s", "p", "above")
    others = difference_to(pivot_policies(runs, ["load"]), "EDFMN", ["FIFOMN", "mine"])
    judged = intervals(points(-others, ["load"]), claim)
    ends = ["estimate", "low", "high", "least", "most"]
    pd.testing.assert_frame_equal(found[ends], judged[ends])


def test_the_chosen_policy_is_the_last_and_points_are_the_columns_before_replicate():
    runs = made_up_runs(3).assign(late=0.5)
    pd.testing.assert_frame_equal(
        compare(runs, "policy", "ratio"),
        compare(runs, "policy", "ratio", chosen="mine", at=["load"]),
    )
    swapped = compare(runs, "policy", "ratio", chosen="FIFOMN")
    mine = swapped[swapped["policy"] == "mine"]["estimate"].to_numpy()
    back = compare(runs, "policy", "ratio")
    assert mine == pytest.approx(-back[back["policy"] == "FIFOMN"]["estimate"].to_numpy())


def test_equal_differences_have_no_ends():
    """Two runs that differ by exactly the same do not say how much a third may differ."""
    rows = [
        {"replicate": replicate, "policy": policy, "ratio": ratio}
        for replicate in range(6)
        for policy, ratio in (("EDFMN", 0.5), ("mine", 0.25))
    ]
    found = compare(pd.DataFrame(rows), "policy", "ratio")
    assert found["estimate"].item() == -0.25
    assert found[["low", "high", "least", "most"]].isna().all(axis=None)
    assert plot_comparison(found).get_ylabel() == "mine minus rival"


RUNS = made_up_runs(3)


def compared(runs=RUNS, value="ratio", **options):
    return lambda: compare(runs, "policy", value, **options)


test_what_cannot_be_compared_is_refused = refuses_each(
    [
        (compared(RUNS[RUNS["policy"] == "mine"]), "at least two policies to compare; got"),
        (compared(chosen="FIFOMM"), "chosen policy must be one of .*did you mean FIFOMN"),
        (compared(RUNS.iloc[:-1]), r"runs are missing of \['mine'\]"),
        (compared(at=[]), "one row per replicate, policy: name the other"),
        (compared(value="cost"), "cost not found among load, replicate"),
    ]
)


def test_every_difference_is_a_mark_with_its_interval():
    found = compare(made_up_runs(10), "policy", "ratio")
    ax = plot_comparison(found)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["FIFOMN", "EDFMN"]
    assert ax.get_xlabel() == "load"
    drawn = [segment for part in ax.collections for segment in part.get_segments()]
    wanted = found[["least", "most"]].to_numpy()
    assert sorted(tuple(segment[:, 1]) for segment in drawn) == [
        pytest.approx(tuple(row)) for row in sorted(map(tuple, wanted))
    ]


def test_texts_along_the_axis_are_shown_as_text():
    runs = made_up_runs(3).drop(columns="load").assign(log="$a$")
    runs = runs[["log", "replicate", "policy", "ratio"]].iloc[:9]
    ax = plot_comparison(compare(runs, "policy", "ratio"))
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [r"\$a\$"]
