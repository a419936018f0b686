"""What a notebook calls: start, judge, save, the scorecard, the map of readings."""

import math
import re
from html import unescape

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
from dlsim.study.claims import beside_reference, load_claims, read_scorecard
from dlsim.study.readings import by_reading, list_changes
from dlsim.study.session import name_reading
from dlsim.study.verdict import POINT_COLUMNS
from tests.helpers.intervals import student

LOADS = (0.1, 0.5, 1.0)


@pytest.fixture
def out(tmp_path, monkeypatch):
    """Start paper M in a folder of the test, and leave no session behind.

    Frames that are made up here stand for those of the shipped experiments.
    """
    monkeypatch.setattr("dlsim.study.fingerprint._shipped", lambda paper, scale: None)
    start("mcdf", out=str(tmp_path / "results"))
    yield tmp_path / "results"
    session._OPEN.clear()
    plt.close("all")


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"paper": "mdcf"}, "the paper must be one of .*did you mean mcdf"),
        ({"scale": "huge"}, "scale must be one of quick, full; got 'huge'"),
        ({"runs": -1}, "runs must be a whole number .*-1"),
        ({"jobs": 1.5}, "jobs must be a whole number .*1.5"),
        ({"seed": -1}, "seed must be a whole number .*-1"),
        ({"reading": {"lnik": "shared"}}, "a switch of the reading .*did you mean link"),
        ({"reading": {"link": "both"}}, "reading: link must be one of .*'both'"),
        ({"reading": "link=shared"}, "reading must be a mapping"),
    ],
)
def test_start_refuses_what_cannot_be(tmp_path, given, message):
    with pytest.raises(InputError, match=message):
        start(**{"paper": "mcdf", "out": str(tmp_path / "results")} | given)


def test_what_needs_a_paper_asks_for_start():
    with pytest.raises(InputError, match=r'call start\("mcdf"\)'):
        judge("mcdf-1")


# ------------------------------------------------------------------ judge


def test_made_up_frames_are_supported_and_contradicted(out):
    assert "mcdf-1 is supported" in judge("mcdf-1", all_policies(0.5))
    assert "mcdf-1 is contradicted" in judge("mcdf-1", all_policies(0.1))
    some = judge(["mcdf-2", "mcdf-4a"], all_policies(0.5))
    assert some.count("\n\n") == 3  # a rule and a verdict each
    assert "mcdf-2 is contradicted" in some  # half of the deadlines are missed, not 99 %
    assert some._repr_markdown_() == str(some)


def test_the_verdict_is_said_in_plain_words(out):
    """One comparison at each of three loads: the best rival decides, 30 points from MCDF."""
    said = judge("mcdf-1", all_policies(0.5))
    rule, verdict = said.split("\n\n")
    head = "✓ **mcdf-1 is supported at all 3 points.** *MCDF outperforms six other FIFO"
    assert verdict.startswith(head)
    assert rule.startswith("Measured: share of tasks that each rival refuses")
    assert "The claim asks for more than 0 points." in rule
    assert rule.endswith("(3 comparisons, 8 runs).")
    assert "Of 3 comparisons 3 support the claim." in said
    assert "Closest to failing: " in said
    [number] = re.findall(r"load [\d.]+, ([\d.]+) points \(95 %: [\d.]+ to [\d.]+\)", said)
    assert float(number) == pytest.approx(30, abs=0.5)
    said = judge("mcdf-1", all_policies(0.1, EDFAN=0.1))
    assert "Of 3 comparisons 3 contradict the claim." in said
    assert "Furthest from the claim: " in said
    said = judge("mcdf-2", all_policies(0.995, EDFANNA=0.9))
    assert "Printed: 99 %." in said
    assert "The claim asks for more than 99 %." in said  # as printed: no margin of ours
    assert "Of 6 comparisons 3 support the claim, 3 contradict it." in said
    rows = all_policies(0.5)
    noise = 0.001 * np.random.default_rng(3).standard_normal(len(rows))
    said = judge("mcdf-1", rows.assign(ratio=rows["ratio"].where(rows["load"] < 1, 0.2 + noise)))
    assert "mcdf-1 is partly supported" in said
    assert "Of 3 comparisons 2 support the claim, 1 shows nothing." in said
    assert "With so few runs only effects above 0." in said
    assert "would be noticed (in 4 of 5 cases)" in said


def test_a_reader_judges_by_another_rule_and_the_scorecard_keeps_ours(out):
    """MCDF refuses 30 points fewer than each of its rivals at every load."""
    rows = all_policies(0.5)
    judge("mcdf-1", rows)
    said = judge("mcdf-1", rows, within=(0.25, 0.35))
    rule, verdict = said.split("\n\n")
    assert "Your rule asks for 25 to 35 points." in rule
    assert verdict.startswith("✓ **By your rule mcdf-1 is supported at all 3 points.**")
    assert "our margin" not in said
    said = judge("mcdf-1", rows, within=(0.35, math.inf))
    assert "Your rule asks for at least 35 points." in said
    assert "By your rule mcdf-1 is contradicted at all 3 points." in said
    assert session.current().verdicts["mcdf-1"].word == "supported"
    assert session.current().verdicts["mcdf-1"].claim.within == ()
    for bad in ((0.35, 0.25), (0.3, 0.3), (0.1,), (0.1, 0.2, 0.3), (math.nan, 1.0)):
        with pytest.raises(InputError, match="within must be two numbers, the smaller one first"):
            judge("mcdf-1", rows, within=bad)


def test_a_rule_of_ones_own_keeps_the_printed_number(out):
    """mcdf-5a: printed 10 %, here 60 %."""
    said = judge("mcdf-5a", all_policies(0.5), within=(0.05, 0.15))
    assert "Your rule asks for 5 to 15 %." in said
    assert "By your rule mcdf-5a is contradicted at all 2 points." in said
    assert "Printed: 10 %." in said
    assert "mcdf-5a" not in session.current().verdicts


def test_points_are_differences_on_the_same_tasks(out):
    rows = all_policies(0.5)
    judge("mcdf-1", rows)
    points = claim_points("mcdf-1").set_index("point")
    at = rows[rows["load"] == 0.5].pivot(index="replicate", columns="policy", values="ratio")
    wanted = student(at["EDFMN"] - at["MCDF"])
    assert points.loc["EDFMN, load 0.5", "estimate"] == pytest.approx(wanted[0])
    assert (points["least"] <= points["low"]).all()
    assert (points["most"] >= points["high"]).all()


def test_a_policy_of_the_user_changes_no_verdict(out):
    """It would lead MCDF at every load."""
    rows = all_policies(0.5, mine=0.0)
    assert "mcdf-1 is supported" in judge("mcdf-1", rows)
    assert set(claim_points("mcdf-1")["what"]) == set(mcdf.POLICIES) - {"MCDF"}


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


def test_the_picture_of_a_claim_has_its_simultaneous_intervals(out):
    judge("mcdf-1", all_policies(0.5))
    ax = plot_claim("mcdf-1", x="load", what="EDFMN")
    points = claim_points("mcdf-1")
    one = points[points["what"] == "EDFMN"]
    [bars] = [c for c in ax.containers if c.has_yerr]
    ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
    assert ends == pytest.approx(100 * one[["least", "most"]].to_numpy())


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


def verdict_from(points, least):
    """Judge a claim "above" from its published points, by the rule as data/README.md has it."""

    def sides(low, high):
        side = np.select([points[low] > least, points[high] <= least], [1, -1], 0)
        by_group = pd.Series(side).groupby(
            points["group"].astype(object).fillna(points["point"]).to_numpy()
        )
        return by_group.apply(lambda group: -1 if -1 in set(group) else group.min())

    alone, at_once = sides("low", "high"), sides("least", "most")
    if (alone == 1).all():
        return "supported"
    supporting, against = (at_once == 1).sum(), (at_once == -1).sum()
    if supporting + against == 0:
        return "inconclusive"
    if supporting < (supporting + against) / 10:
        return "contradicted"
    return "partly supported" if against < (supporting + against) / 10 else "mixed"


@pytest.mark.parametrize("ratio", [0.1, 0.19, 0.2, 0.5])
def test_verdicts_follow_from_the_published_points(out, ratio):
    judge(["mcdf-1", "mcdf-2", "mcdf-4a", "mcdf-4b"], all_policies(ratio))
    show_scorecard()
    points = pd.read_csv(out / "data" / "mcdf-points.csv")
    assert list(points) == [*POINT_COLUMNS]
    card = pd.read_csv(out / "data" / "mcdf-claims.csv", index_col="id")
    for claim, least in (("mcdf-1", 0), ("mcdf-2", 0.99), ("mcdf-4a", 0), ("mcdf-4b", 0)):
        rows = points[points["claim"] == claim].reset_index(drop=True)
        assert verdict_from(rows, least) == card.loc[claim, "verdict"], claim
    assert len(points[points["claim"] == "mcdf-1"]) == 18  # six policies at three loads


# ------------------------------------------------------------------ readings

FEW_SWITCHES = {name: mcdf.SWITCHES[name] for name in ("link", "late")}


def test_readings_differ_in_one_switch():
    switches = {"link": ("own", "shared"), "span": ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0))}
    changes = list(list_changes(switches))
    assert changes == [("link", "shared"), ("span", (3.0, 4.0)), ("span", (5.0, 6.0))]
    assert [name_reading(dict([one])) for one in changes[:2]] == ["link=shared", "span=3-4"]
    own = {"link": "shared", "span": [3, 4]}
    assert list(list_changes(switches, own)) == [("link", "own"), *_spans((1.0, 2.0), (5.0, 6.0))]


def _spans(*values):
    return [("span", value) for value in values]


def test_the_map_of_all_readings_runs_each_once(out, monkeypatch):
    monkeypatch.setattr(mcdf, "SWITCHES", FEW_SWITCHES)
    start("mcdf", out=str(out), scale="full")
    frames, asked = {"main": all_policies(0.5)}, []
    judge("mcdf-1", frames["main"])

    def run(switch, value, touched):
        asked.append((switch, value))
        assert touched == (["FIFOANNA", "EDFANNA"] if switch == "late" else [*mcdf.POLICIES])
        return {"main": all_policies(0.1)} if switch == "link" else {}

    table = map_of_readings(run, frames)
    assert asked == list(list_changes(mcdf.SWITCHES)) == [("link", "shared"), ("late", "drop")]
    assert table.loc["mcdf-1", "late=drop"] == "supported 3/3"  # on the frames of the notebook
    assert table.loc["mcdf-1", "default"] == "supported 3/3"
    assert table.loc["mcdf-1", "link=shared"] == "contradicted 0/3"
    assert set(table.loc["mcdf-10"]) == {"not checkable"}  # no frame of Figure 10 was given
    assert "mcdf-19" not in table.index  # readings do not matter to it
    assert (out / "figures" / "mcdf-readings.png").exists()
    numbers = pd.read_csv(out / "data" / "mcdf-readings-intervals.csv")
    words, counts = by_reading(numbers)
    assert (words.loc["mcdf-1", "default"], counts.loc["mcdf-1", "default"]) == ("supported", "3/3")
    assert words.index.equals(table.index)
    assert list(words) == list(table)


def test_the_notebooks_own_reading_comes_first(tmp_path, monkeypatch):
    monkeypatch.setattr(mcdf, "SWITCHES", FEW_SWITCHES)
    start("mcdf", out=str(tmp_path / "r"), scale="full", reading={"late": "drop"})
    table = map_of_readings(lambda *change: {}, {"main": all_policies(0.5)})
    assert list(table) == ["late=drop", "link=shared", "late=run"]


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


def test_an_interval_of_a_share_ends_where_no_share_is():
    few, most = [0.0, 0.0, 0.1], [0.9, 1.0, 1.0]
    assert student(few)[1] < 0
    assert student(most)[2] > 1
    assert share_interval(few) == pytest.approx((0, student(few)[2]))
    assert share_interval(most) == pytest.approx((student(most)[1], 1))
