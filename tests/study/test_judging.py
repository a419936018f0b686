"""What a notebook calls: start, judge, save, the scorecard, the map of readings."""

import math
import re
from html import unescape
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.papers import mcdf
from dlsim.study import (
    claim_points,
    judge,
    map_of_readings,
    plot_claim,
    policy_style,
    save,
    session,
    share_interval,
    show_scorecard,
    start,
    student_interval,
    sweep,
)
from dlsim.study.claims import beside_reference, judge_intervals, load_claims, read_scorecard
from dlsim.study.readings import by_reading, list_changes
from dlsim.study.session import name_reading
from dlsim.study.verdict import POINT_COLUMNS
from tests.helpers.intervals import student
from tests.helpers.refusals import refuses_each

LOADS = (0.1, 0.5, 1.0)


@pytest.fixture
def out(tmp_path, monkeypatch):
    """Start paper M in a folder of the test.

    Frames that are made up here stand for those of the shipped experiments.
    """
    monkeypatch.setattr("dlsim.study.fingerprint._shipped", lambda paper, scale: None)
    start("mcdf", out=str(tmp_path / "results"))
    return tmp_path / "results"


def frame(**ratios):
    """Reject ratios by policy at every load, with a little noise from run to run."""
    rng = np.random.default_rng(1)
    rows = [
        {"load": load, "setup": 0, "replicate": k, "policy": policy, "tasks": 1000}
        | {"ratio": ratio + 0.001 * rng.standard_normal()}
        for load in LOADS
        for k in range(8)
        for policy, ratio in ratios.items()
    ]
    return pd.DataFrame(rows)


def all_policies(rivals, ours=0.2, **more):
    """Frames in which MCDF refuses `ours` and each of its rivals what is said."""
    return frame(**dict.fromkeys(mcdf.POLICIES, rivals) | {"MCDF": ours} | more)


# ------------------------------------------------------------------ start


def test_start_says_the_sizes_of_the_scale_and_sets_what_sweeps_take(out):
    size = start("mcdf", out=str(out), runs=3, seed=7, jobs=1)
    assert (size.runs, size.horizon, size.pools) == (3, 100_000.0, 40)
    found = sweep(lambda a, seed: {"entropy": seed.entropy}, {"a": [1, 2]})
    assert len(found) == 2 * 3
    assert set(found["entropy"]) == {7}
    assert start("mcdf", out=str(out)).runs == 10


def refused_start(**given):
    """Return a call of `start` that is refused before anything is written."""

    def call():
        try:
            start(**{"paper": "mcdf", "out": "nowhere"} | given)
        finally:
            assert not Path("nowhere").exists()

    return call


test_start_refuses_what_cannot_be = refuses_each(
    [
        (refused_start(paper="mdcf"), "the paper must be one of .*did you mean mcdf"),
        (refused_start(scale="huge"), "scale must be one of quick, full; got 'huge'"),
        (refused_start(runs=-1), "runs must be a whole number .*-1"),
        (refused_start(jobs=1.5), "jobs must be a whole number .*1.5"),
        (refused_start(seed=-1), "seed must be a whole number .*-1"),
        (refused_start(reading={"lnik": "shared"}), "a switch of the reading .*did you mean link"),
        (refused_start(reading={"link": "both"}), "reading: link must be one of .*'both'"),
        (refused_start(reading="link=shared"), "reading must be a mapping"),
        (lambda: judge("mcdf-1"), r'call start\("mcdf"\)'),
    ]
)


# ------------------------------------------------------------------ judge


def test_made_up_frames_are_supported_and_contradicted(out):
    assert "mcdf-1 is supported" in judge("mcdf-1", all_policies(0.5))
    assert "mcdf-1 is contradicted" in judge("mcdf-1", all_policies(0.1))
    some = judge(["mcdf-2", "mcdf-4a"], all_policies(0.5))
    assert some.count("\n\n") == 3  # a rule and a verdict each
    assert "mcdf-2 is contradicted" in some  # half of the deadlines are missed, not 99 %
    assert some._repr_markdown_() == str(some)
    # a policy of the user that would lead MCDF at every load changes nothing
    assert "mcdf-1 is supported" in judge("mcdf-1", all_policies(0.5, mine=0.0))
    assert set(claim_points("mcdf-1")["what"]) == set(mcdf.POLICIES) - {"MCDF"}


def test_the_verdict_is_said_in_plain_words(out):
    """One comparison at each of three loads: the best rival decides, 30 points from MCDF."""
    rule, verdict = judge("mcdf-1", all_policies(0.5)).split("\n\n")
    assert rule.endswith("(3 comparisons, 8 runs).")
    assert verdict.startswith("✓ **mcdf-1 is supported at all 3 points.** *MCDF outperforms six")
    assert "Closest to failing: " in verdict
    [number] = re.findall(r"load [\d.]+, ([\d.]+) points \(95 %: [\d.]+ to [\d.]+\)", verdict)
    assert float(number) == pytest.approx(30, abs=0.5)
    assert "Furthest from the claim: " in judge("mcdf-1", all_policies(0.1, EDFAN=0.1))
    said = judge("mcdf-2", all_policies(0.995, EDFANNA=0.9))
    assert "Of 6 comparisons 3 support the claim, 3 contradict it." in said
    rows = all_policies(0.5)
    noise = 0.001 * np.random.default_rng(3).standard_normal(len(rows))
    said = judge("mcdf-1", rows.assign(ratio=rows["ratio"].where(rows["load"] < 1, 0.2 + noise)))
    assert "mcdf-1 is partly supported" in said
    assert "Of 3 comparisons 2 support the claim, 1 shows nothing." in said
    assert "With so few runs only effects above 0." in said


def test_a_reader_judges_by_another_rule_and_the_scorecard_keeps_ours(out):
    """MCDF refuses 30 points fewer than each of its rivals at every load."""
    rows = all_policies(0.5)
    judge("mcdf-1", rows)
    rule, verdict = judge("mcdf-1", rows, within=(0.25, 0.35)).split("\n\n")
    assert "Your rule asks for 25 to 35 points." in rule
    assert verdict.startswith("✓ **By your rule mcdf-1 is supported at all 3 points.**")
    assert "our margin" not in rule + verdict
    said = judge("mcdf-1", rows, within=(0.35, math.inf))
    assert "By your rule mcdf-1 is contradicted at all 3 points." in said
    assert session.current().verdicts["mcdf-1"].word == "supported"
    assert session.current().verdicts["mcdf-1"].claim.within == ()
    said = judge("mcdf-5a", rows, within=(0.05, 0.15))  # printed 10 %, here 60 %
    assert "By your rule mcdf-5a is contradicted at all 2 points." in said
    assert "Printed: 10 %." in said
    assert "mcdf-5a" not in session.current().verdicts
    for bad in ((0.35, 0.25), (0.3, 0.3), (0.1,), (0.1, 0.2, 0.3), (math.nan, 1.0)):
        with pytest.raises(InputError, match="within must be two numbers, the smaller one first"):
            judge("mcdf-1", rows, within=bad)


def test_points_are_differences_on_the_same_tasks_and_drawn_with_all_intervals(out):
    rows = all_policies(0.5)
    judge("mcdf-1", rows)
    points = claim_points("mcdf-1")
    at = rows[rows["load"] == 0.5].pivot(index="replicate", columns="policy", values="ratio")
    wanted = student(at["EDFMN"] - at["MCDF"])
    found = points.set_index("point").loc["EDFMN, load 0.5", "estimate"]
    assert found == pytest.approx(wanted[0])
    assert (points["least"] <= points["low"]).all()
    assert (points["most"] >= points["high"]).all()
    ax = plot_claim("mcdf-1", x="load", what="EDFMN")
    [bars] = [c for c in ax.containers if c.has_yerr]
    ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
    one = points[points["what"] == "EDFMN"]
    assert ends == pytest.approx(100 * one[["least", "most"]].to_numpy())


def test_a_policy_that_was_taken_out_leaves_its_claims_unchecked(out):
    rows = all_policies(0.5)
    said = judge("mcdf-2", rows[rows["policy"] != "EDFANNA"])
    assert "mcdf-2 is not checkable" in said
    assert "EDFANNA" in said


def test_frames_are_given_in_order_or_by_name(out):
    main = all_policies(0.5)
    half = main.assign(ratio=main["ratio"] + 0.2)
    by_name = judge(["mcdf-18", "mcdf-1"], main=main, half=half)
    assert "\n\n".join(by_name.split("\n\n")[:2]) == judge("mcdf-18", main, half)
    assert "mcdf-18 is contradicted" in by_name
    with pytest.raises(InputError, match=r"mcdf-18 is measured on main, half: call judge"):
        judge("mcdf-18", main)
    with pytest.raises(InputError, match="mcdf-1 is measured on main"):
        judge("mcdf-1", main, half)
    with pytest.raises(InputError, match="a claim must be one of mcdf-1"):
        judge("mcdf-99", main)


# ------------------------------------------------------------------ results


def test_save_writes_the_numbers_and_the_current_picture_once(out):
    table = pd.DataFrame({"policy": ["a_b"], "ratio": [0.5], "values": [np.ones(3)]})
    plt.plot([1, 2])
    save("mcdf-one", table, formats=["svg"], latex=True)
    save("mcdf-two", table)  # the picture was saved
    names = sorted(path.name for path in (out / "figures").iterdir())
    # beside the drawing that comes with dlsim
    assert names == ["mcdf-fig1.svg", "mcdf-one.png", "mcdf-one.svg"]
    assert (out / "data" / "mcdf-two.csv").read_text() == "policy,ratio\na_b,0.5\n"
    assert r"a\_b" in (out / "data" / "mcdf-one.tex").read_text()
    _, ax = plt.subplots()
    save("mcdf-three", figure=ax)
    assert (out / "figures" / "mcdf-three.png").exists()
    with pytest.raises(InputError, match="a format must be one of"):
        save("mcdf-four", figure=ax, formats=["tiff"])


def test_the_scorecard_has_every_claim_and_says_what_was_not_judged(out):
    judge("mcdf-1", all_policies(0.5))
    shown = show_scorecard("whose").data
    card = beside_reference(read_scorecard(out / "data" / "mcdf-claims.csv")).set_index("id")
    assert sorted(card.index) == sorted(claim.id for claim in load_claims("mcdf"))
    assert card.loc["mcdf-1", "verdict"] == "supported"
    assert card.loc["mcdf-1", "agreement"] == "CONTRADICTS"  # made up, unlike the reference
    assert card.loc["mcdf-6", "verdict"] == "not checkable"
    assert card.loc["mcdf-19", "verdict"] == "supported"  # needs no frame
    assert "authors' measurement" in unescape(shown)


@pytest.mark.parametrize("ratio", [0.1, 0.2, 0.5])
def test_verdicts_follow_from_the_published_points(out, ratio):
    known = {claim.id: claim for claim in load_claims("mcdf")}
    judge(["mcdf-1", "mcdf-2", "mcdf-4a", "mcdf-4b"], all_policies(ratio))
    show_scorecard()
    points = pd.read_csv(out / "data" / "mcdf-points.csv")
    assert list(points) == [*POINT_COLUMNS]
    card = pd.read_csv(out / "data" / "mcdf-claims.csv", index_col="id")
    for claim, rows in points.groupby("claim"):
        given = rows.reset_index(drop=True).dropna(axis=1, how="all")
        again = judge_intervals(given.assign(total=math.nan, se=math.nan), known[claim])
        assert again.word == card.loc[claim, "verdict"], claim
    assert len(points[points["claim"] == "mcdf-1"]) == 18  # six policies at three loads


# ------------------------------------------------------------------ readings

FEW_SWITCHES = {name: mcdf.SWITCHES[name] for name in ("link", "late")}


def test_readings_differ_in_one_switch():
    switches = {"link": ("own", "shared"), "span": ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0))}
    changes = list(list_changes(switches))
    assert changes == [("link", "shared"), ("span", (3.0, 4.0)), ("span", (5.0, 6.0))]
    assert [name_reading(dict([one])) for one in changes[:2]] == ["link=shared", "span=3-4"]
    assert name_reading({}) == "default"
    others = [("link", "own"), ("span", (1.0, 2.0)), ("span", (5.0, 6.0))]
    assert list(list_changes(switches, {"link": "shared", "span": [3, 4]})) == others


def test_the_map_has_the_notebooks_own_reading_first_and_runs_each_other_once(out, monkeypatch):
    monkeypatch.setattr(mcdf, "SWITCHES", FEW_SWITCHES)
    start("mcdf", out=str(out), scale="full", reading={"late": "drop"})
    frames, asked = {"main": all_policies(0.5)}, []
    judge("mcdf-1", frames["main"])

    def run(switch, value, touched):
        asked.append((switch, value))
        assert touched == (["FIFOANNA", "EDFANNA"] if switch == "late" else [*mcdf.POLICIES])
        return {"main": all_policies(0.1)} if switch == "link" else {}

    table = map_of_readings(run, frames)
    assert asked == [("link", "shared"), ("late", "run")]
    assert table.loc["mcdf-1"].to_dict() == {
        "late=drop": "supported 3/3",
        "link=shared": "contradicted 0/3",
        "late=run": "supported 3/3",  # on the frames of the notebook
    }
    assert set(table.loc["mcdf-10"]) == {"not checkable"}  # no frame of Figure 10 was given
    assert "mcdf-19" not in table.index  # readings do not matter to it
    assert (out / "figures" / "mcdf-readings.png").exists()
    words, counts = by_reading(pd.read_csv(out / "data" / "mcdf-readings-intervals.csv"))
    assert (words + " " + counts).loc["mcdf-1"].to_dict() == table.loc["mcdf-1"].to_dict()
    assert words.index.equals(table.index)


# ------------------------------------------------------------------ pictures


def test_a_policy_of_the_user_has_a_colour_of_its_own():
    look = policy_style(["mine", "EDFAN", "MCDF", "yours", "EDFAN"])
    assert look["hue_order"] == ["MCDF", "EDFAN", "mine", "yours"]
    assert len(set(look["palette"].values())) == 4
    papers = set(policy_style(mcdf.POLICIES)["palette"].values())
    assert not papers & {look["palette"]["mine"], look["palette"]["yours"]}


def test_intervals_of_pictures_are_those_of_the_tables():
    values = [0.1, 0.4, 0.2, 0.9]
    assert student_interval(values) == pytest.approx(student(values)[1:])
    assert student_interval([0.5]) == (0.5, 0.5)  # a single run has no width to draw
    few, most = [0.0, 0.0, 0.1], [0.9, 1.0, 1.0]  # a share ends where no share is
    assert share_interval(few) == pytest.approx((0, student(few)[2]))
    assert share_interval(most) == pytest.approx((student(most)[1], 1))
