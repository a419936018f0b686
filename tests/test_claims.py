"""One rule judges every claim: regions, intervals at their edges, families, theorems, the file."""

import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.errors import InputError
from dlsim.papers import bricks
from dlsim.study.claims import (
    MARGINS,
    STRONGER,
    SYMBOLS,
    Claim,
    Verdict,
    agreement,
    headline,
    intervals,
    judge_claim,
    judge_points,
    load_claims,
    read_scorecard,
    reference_of,
    scorecard,
    theorem_status,
    words_for_readers,
)
from dlsim.study.verdict_text import with_sentences
from tests.scale import LONG, scale_count

NAN = math.nan


def claim(direction="above", **more):
    fields = {
        "id": "p-1",
        "paper": "p",
        "where": "1",
        "whose": "authors' measurement",
        "text": "It is.",
        "statistic": "s",
        "points": "g",
        "direction": direction,
    }
    return Claim(**(fields | more))


def points(*rows, **columns):
    """Rows (low, high) or (estimate, low, high)."""
    rows = [row if len(row) == 3 else (sum(row) / 2, *row) for row in rows]
    frame = pd.DataFrame(rows, columns=["estimate", "low", "high"])
    frame.insert(0, "point", [f"point {i}" for i in range(len(rows))])
    return frame.assign(**columns)


def word(direction, *rows, **more):
    return judge_points(points(*rows), claim(direction, **more)).word


# Every direction at one point. Thresholds: the rule of dlsim/study/claims.py.
ONE_POINT = [
    ("above", {}, (0.01, 0.03), "holds"),
    ("above", {}, (-0.01, 0.03), "undecided"),
    ("above", {}, (-0.03, -0.01), "contrary"),
    ("above", {}, (0.0, 0.0), "contrary"),  # an exact tie is not a lead
    ("above", {}, (0.0, 0.1), "undecided"),
    ("above", {"margin": 0.99}, (0.991, 1.0), "holds"),
    ("above", {"margin": 0.99}, (0.98, 1.0), "undecided"),
    ("below", {}, (-0.03, -0.01), "holds"),
    ("below", {"margin": 0.07}, (0.01, 0.05), "holds"),
    ("below", {"margin": 0.07}, (0.08, 0.09), "contrary"),
    ("dramatic", {}, (0.11, 0.2), "holds"),
    ("dramatic", {}, (0.09, 0.2), "undecided"),
    ("marginal", {}, (-0.019, 0.019), "holds"),
    ("marginal", {}, (0.019, 0.021), "undecided"),
    ("marginal", {}, (-0.05, -0.04), "contrary"),
    ("marginal", {}, (-0.05, 0.05), "undecided"),  # noise shows no equality
    ("close", {}, (-0.05, 0.05), "holds"),
    ("close", {}, (0.04, 0.06), "undecided"),
    ("close", {}, (0.051, 0.06), "contrary"),
    ("close", {"margin": 0.0}, (0.0, 0.0), "holds"),
    ("about", {"printed": (0.1,)}, (0.081, 0.119), "holds"),
    ("about", {"printed": (0.1,)}, (0.07, 0.085), "undecided"),
    ("about", {"printed": (0.1,)}, (0.06, 0.079), "contrary"),
    ("about", {"printed": (0.1,)}, (0.0, 1.0), "undecided"),  # compatible, but uninformative
    ("about", {"printed": (1.98,)}, (0.67, 4.12), "undecided"),
    ("about", {"printed": (-0.1,)}, (-0.11, -0.1), "holds"),
    ("about", {"printed": (-0.1,)}, (-0.2, -0.13), "contrary"),
    ("between", {"printed": (0.12, 0.16)}, (0.13, 0.15), "holds"),
    ("between", {"printed": (0.12, 0.16)}, (0.155, 0.2), "undecided"),
    ("between", {"printed": (0.12, 0.16)}, (0.17, 0.2), "contrary"),
    ("between", {"printed": (0.12, 0.16), "margin": 0.02}, (0.15, 0.175), "holds"),
]


@pytest.mark.parametrize(("direction", "more", "row", "expected"), ONE_POINT)
def test_one_point(direction, more, row, expected):
    assert word(direction, row, **more) == expected


BEYOND, UNDECIDED, OTHER = (0.1, 0.2), (-0.1, 0.2), (-0.2, -0.1)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([BEYOND, BEYOND], "holds"),
        ([BEYOND, UNDECIDED], "in part"),
        ([BEYOND, UNDECIDED, OTHER], "mixed"),
        ([OTHER, UNDECIDED], "contrary"),
        ([UNDECIDED, UNDECIDED], "undecided"),
        ([OTHER], "contrary"),
        ([BEYOND, (NAN, NAN)], "in part"),  # a point without an interval is open
        ([BEYOND, (-math.inf, math.inf)], "in part"),
        ([(NAN, NAN), (NAN, NAN)], "cannot be checked"),  # one run has no interval at all
        ([], "cannot be checked"),
    ],
)
def test_a_family_of_points(rows, expected):
    assert word("above", *rows) == expected


SOME = st.lists(st.sampled_from([BEYOND, UNDECIDED, OTHER]), min_size=1, max_size=6)


@settings(max_examples=scale_count(200, LONG), deadline=None)
@given(SOME, st.randoms())
def test_the_rule_in_its_own_words(rows, random):
    words = {
        (True, False): "in part",
        (True, True): "mixed",
        (False, True): "contrary",
        (False, False): "undecided",
    }
    whole = all(row == BEYOND for row in rows)
    expected = "holds" if whole else words[BEYOND in rows, OTHER in rows]
    assert word("above", *rows) == expected
    shuffled = random.sample(rows, len(rows))
    assert word("above", *shuffled) == expected
    mirrored = [(-high, -low) for low, high in rows]
    assert word("below", *mirrored) == expected


def test_all_points_at_once_need_more_than_each_alone():
    # t with 9 degrees: 2.26 of one point, 4.69 of forty (Sidak), in standard errors
    row, open_one = (0.03, 0.03 - 2.26e-2, 0.03 + 2.26e-2), (0.0, -0.0226, 0.0226)
    assert judge_points(points(row, n=10), claim()).word == "holds"
    assert judge_points(points(*[row] * 40, n=10), claim()).word == "holds"  # each alone is enough
    assert judge_points(points(*[row] * 39, open_one, n=10), claim()).word == "undecided"
    wide = intervals(points(*[row] * 40, n=10), claim())
    expected = scipy.stats.t.ppf((1 + 0.95 ** (1 / 40)) / 2, 9) / scipy.stats.t.ppf(0.975, 9)
    assert ((0.03 - wide["least"]) / (0.03 - wide["low"])).to_numpy() == pytest.approx(expected)


def test_replicates_are_judged_by_their_family():
    values = np.random.default_rng(5).normal(0.5, 0.1, (10, 3))
    frame = points(*[(0.0, 0.1)] * 3, values=list(values.T), n=10)  # those ends are not used
    assert judge_points(frame.assign(estimate=values.mean(axis=0)), claim()).word == "holds"
    verdict = judge_points(frame.assign(estimate=values.mean(axis=0)), claim(margin=0.52))
    assert verdict.word == "undecided"
    assert verdict.points == "0 for, 3 open, 0 against, of 3"
    assert "would show an effect of" in verdict.reason


def test_equal_replicates_show_nothing_unless_they_are_counted():
    frame = points((0.0, 0.0), values=[np.zeros(10)], n=10)
    assert judge_points(frame, claim("close", margin=0.01)).word == "cannot be checked"
    few, many = (frame.assign(total=total, values=None) for total in (100, 10_000))
    # of 100 up to 3.6 % are possible
    assert judge_points(few, claim("close", margin=0.01)).word == "undecided"
    assert judge_points(many, claim("close", margin=0.01)).word == "holds"


def test_the_members_of_a_group_speak_as_one():
    frame = points(BEYOND, BEYOND, BEYOND, OTHER, group=[1, 1, 2, 2])
    verdict = judge_points(frame, claim())
    assert (verdict.word, verdict.counts) == ("mixed", (1, 0, 1))
    open_one = judge_points(points(BEYOND, UNDECIDED, BEYOND, group=[1, 1, 2]), claim())
    assert (open_one.word, open_one.counts) == ("in part", (1, 1, 0))


def test_no_interval_leaves_the_range_of_the_quantity():
    frame = points((0.387, 1.113), values=[[0.4, 0.8, 1.05]], n=3).assign(estimate=0.75)
    cut = intervals(frame, claim(range=(0.0, 1.0)))
    assert cut[["low", "high", "least", "most"]].to_numpy().tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize(
    ("estimates", "half", "expected"),
    [
        ([0.10, 0.11, 0.12], 0.001, "in part"),  # the first and the last may be farther apart
        ([0.10, 0.11, 0.115], 0.001, "holds"),
        ([0.10, 0.13], 0.001, "contrary"),
        ([0.10, 0.12], 0.01, "undecided"),
        ([0.10], 0.01, "cannot be checked"),  # one point has no range
    ],
)
def test_same_asks_of_any_two_points_whether_they_are_equivalent(estimates, half, expected):
    frame = points(*[(e, e - half, e + half) for e in estimates])
    assert judge_points(frame, claim("same", margin=0.0200001)).word == expected


def test_same_is_judged_part_by_part_on_pairs_of_replicates():
    noise = np.random.default_rng(1).normal(0, 0.1, 10)
    rows = [e + noise for e in (0.1, 0.11, 0.5, 0.525)]  # what they have in common cancels
    jitter = np.random.default_rng(2).normal(0, 1e-4, (4, 10))
    frame = points(*[(0.0, 1.0)] * 4, values=list(rows + jitter), n=10)
    frame["estimate"] = [row.mean() for row in frame["values"]]
    verdict = judge_points(frame.assign(part=["L=0.1", "L=0.1", "L=1", "L=1"]), claim("same"))
    assert (verdict.word, verdict.counts) == ("mixed", (1, 0, 1))
    assert "weakest at point 3 against point 2" in verdict.statistic
    assert judge_points(frame, claim("same")).counts == (1, 0, 5)


def test_a_trend_counts_the_steps_that_go_the_other_way():
    frame = points(BEYOND, steps=[9], wrong=[2])
    assert "Of 9 steps to a neighbour 2 go the other way." in judge_points(frame, claim()).reason


def test_the_text_names_the_weakest_point_its_interval_and_the_runs():
    verdict = judge_points(points((0.02, 0.04), (0.01, 0.05), n=[10, 9]), claim(unit="points"))
    assert verdict.reason == "2 for, 0 open, 0 against, of 2."
    assert verdict.statistic == "3 points; weakest at point 1: 3 points [1, 5]; 9 runs"
    one = judge_points(points((0.2, 0.4)), claim("dramatic", unit="%"))
    assert one.statistic == "30 % [20, 40]"
    assert one.reason == "Asked, in our reading: more than 10 %. 1 for, 0 open, 0 against, of 1."
    other = judge_points(points(BEYOND, UNDECIDED, OTHER), claim(unit="s"))
    assert "weakest at point 2: -0.15 s [-0.2, -0.1]" in other.statistic


@pytest.mark.parametrize(
    ("estimate", "unit", "text"),
    [
        (0.12345, "%", "12.35 %"), (1.0, "%", "100 %"), (-0.00001, "points", "0 points"),
        (331800.4, "time units", "331,800 time units"), (0.00012345, "s", "0.0001234 s"),
        (1.5e20, "", "1.5e+20"), (12.0, "", "12"),
    ],
)  # fmt: skip
def test_numbers_are_written_for_people(estimate, unit, text):
    said = judge_points(points((estimate, estimate)), claim(unit=unit)).statistic
    assert said.startswith(f"{text} [")


def test_points_are_checked():
    with pytest.raises(InputError, match="high not found"):
        judge_points(points((0, 1)).drop(columns="high"), claim())
    with pytest.raises(InputError, match=r"low must not exceed high, as 1.0 > 0.0 at point 0"):
        judge_points(points((0.5, 1.0, 0.0)), claim())


def test_a_net_count_cannot_exceed_those_that_differ():
    one = claim(range=(-1.0, 1.0))
    frame = points((0.0, 0.0), total=1000, discordant=3, values=None)
    assert judge_points(frame, one).word == "undecided"
    with pytest.raises(InputError, match="more cases differ in net than are discordant"):
        judge_points(frame.assign(estimate=-0.3, low=-0.3, high=-0.3), one)


# ------------------------------------------------------------------ theorems


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("proved", "holds"),
        ("corrected", "in part"),
        ("ours", "holds"),
        ("notation", "in part"),
        ("refuted", "contrary"),
    ],
)
def test_a_theorem_takes_its_statements_status(monkeypatch, status, expected):
    rows = [
        SimpleNamespace(key="5.10", status="proved"),
        SimpleNamespace(key="5.1", status=status, gap="needs ST > 0"),
    ]
    theory = SimpleNamespace(statements=lambda: rows)
    monkeypatch.setitem(sys.modules, "dlsim.theory", theory)
    word = "proved" if status == "ours" else status
    assert theorem_status("5.1") == (expected, f"Statement 5.1 is {word}: needs ST > 0.")
    theorem = claim(kind="theorem", statement="5.1")
    assert judge_claim(theorem, points(OTHER)).word == expected  # not its numbers
    assert theorem_status("5")[0] == "cannot be checked"  # a prefix is not the statement


def test_without_the_statement_numbers_decide_if_there_are_any(monkeypatch):
    monkeypatch.setitem(sys.modules, "dlsim.theory", SimpleNamespace(statements=list))
    assert theorem_status("5.1") == (
        "cannot be checked",
        "The theory module does not hold statement 5.1 yet.",
    )
    theorem = claim(kind="theorem", statement="5.1")
    assert judge_claim(theorem).word == "cannot be checked"
    assert judge_claim(theorem, points(BEYOND)).word == "holds"


def test_a_claim_without_a_measure_says_why():
    verdict = judge_claim(claim(reason="The testbed is not public."))
    assert (verdict.word, verdict.reason) == ("cannot be checked", "The testbed is not public.")
    assert judge_claim(claim()).word == "cannot be checked"


# ---------------------------------------------------------- scorecard, headline


def test_scorecard_and_headline():
    about = claim("about", printed=(0.1,), figure="p-fig1")
    verdicts = [judge_points(points((0.1, 0.11)), about), Verdict(claim(), "contrary", "No.")]
    card = scorecard(verdicts)
    assert list(card["verdict"]) == ["holds", "contrary"]
    assert list(card["printed"]) == ["10 %", ""]
    assert card.loc[0, "measured"] == "10.5 % [10, 11]"
    assert card.loc[0, "figure"] == "p-fig1"
    assert all(isinstance(cell, str) for cell in card.to_numpy().ravel())
    assert list(words_for_readers(card)) == ["supported", "contradicted"]
    assert scorecard([]).columns.equals(card.columns)
    text = "1 supported, 0 partly supported, 0 mixed, 1 contradicted, 0 inconclusive"
    assert headline(words_for_readers(card)) == f"2 claims: {text}, 0 not checkable"
    assert headline(["mixed"]).startswith("1 claim: 0 supported, 0 partly supported, 1 mixed, ")
    assert headline([STRONGER]).endswith(", 0 not checkable, 1 stronger than claimed")


@pytest.mark.parametrize(
    ("direction", "printed", "favour", "estimates", "shown"),
    [
        ("about", (0.1,), "more", (0.2, 0.3), STRONGER),  # beyond 12 % at every point
        ("about", (0.1,), "more", (0.01, 0.3), "contradicted"),
        ("about", (0.1,), "more", (0.01, 0.02), "contradicted"),
        ("about", (0.1,), "more", (0.1, 0.3), "mixed"),
        ("about", (0.1,), "", (0.2, 0.3), "contradicted"),
        ("about", (0.1,), "less", (0.2, 0.3), "contradicted"),
        ("between", (0.1, 0.2), "less", (0.01, 0.05), STRONGER),
        ("between", (0.1, 0.2), "less", (-0.05, 0.05), STRONGER),
        ("between", (0.1, 0.2), "more", (12.0, 13.0), STRONGER),
    ],
)
@pytest.mark.parametrize("unit", ["points", "times"])
def test_a_claim_that_is_exceeded_in_its_favour_is_shown_as_stronger(
    direction, printed, favour, estimates, shown, unit
):
    about = claim(direction, printed=printed, favour=favour, unit=unit)
    verdict = judge_points(points(*((value, value + 0.001) for value in estimates)), about)
    assert verdict.word_for_readers == shown
    # the scorecard keeps the word of the data
    assert scorecard([verdict]).loc[0, "verdict"] == ("mixed" if shown == "mixed" else "contrary")


def test_the_claims_of_paper_m_that_are_exceeded_are_shown_as_stronger():
    """Printed: 10 %; measured: 28.8 to 32.5 %."""
    card = read_scorecard(reference_of("mcdf")).set_index("id", drop=False)
    shown = words_for_readers(card)
    assert [name for name in card.index if shown[name] == STRONGER] == ["mcdf-5a", "mcdf-5b"]
    reasons = with_sentences(card)["reason"]
    assert reasons["mcdf-5a"].startswith(
        "Of 2 comparisons 2 exceed the paper's number in its favour."
    )
    assert "contradict" not in reasons["mcdf-5b"]
    assert reasons["mcdf-4a"].startswith("Of 20 comparisons 20 contradict the claim.")


def test_sentences_that_readers_see_stand_alone():
    """A claim is no half sentence; points are named in words, not by columns of a frame."""
    for one in load_claims():
        assert "..." not in one.sentence, one.id
        assert one.sentence.endswith("."), one.id
    for paper in dict.fromkeys(one.paper for one in load_claims()):
        told = with_sentences(read_scorecard(reference_of(paper)))["measured"].str.cat(sep=" ")
        assert not re.search(r"nearest, load|vary_c|lost, |over opt|\bends, |setup \d", told)


@pytest.mark.parametrize(
    ("quick", "full", "expected"),
    [
        ("holds", "holds", "agrees"), ("undecided", "undecided", "agrees"),
        ("undecided", "holds", "undecided at this size"),
        ("cannot be checked", "holds", "not checked at this size"),
        ("contrary", "undecided", "more than at full scale"),
        ("contrary", "in part", "CONTRADICTS"), ("in part", "contrary", "CONTRADICTS"),
        ("holds", "mixed", "CONTRADICTS"), ("mixed", "contrary", "agrees in part"),
        ("in part", "mixed", "agrees in part"), ("holds", "", ""),
    ],
)  # fmt: skip
def test_a_verdict_is_compared_with_that_at_full_scale(quick, full, expected):
    assert agreement(quick, full) == expected


def test_verdicts_are_six_words_with_six_symbols():
    assert len(SYMBOLS) == len(set(SYMBOLS.values())) == 6
    with pytest.raises(InputError, match="got 'maybe'"):
        Verdict(claim(), "maybe", "")


# ------------------------------------------------------------------- the file


@pytest.mark.parametrize("paper", sorted({claim.paper for claim in load_claims()}))
def test_the_claims_of_a_paper_are_numbered_without_a_gap(paper):
    """A letter follows the number of a claim that can be read in several ways."""
    claims = load_claims(paper)
    numbers = [re.fullmatch(rf"{paper}-(\d+)([a-z]?)", claim.id) for claim in claims]
    assert all(numbers)
    by_number = [int(found[1]) for found in numbers]
    assert by_number == sorted(by_number)
    assert set(by_number) == set(range(1, max(by_number) + 1))
    assert len({claim.id for claim in claims}) == len(claims)
    for claim in claims:
        assert claim.text.endswith(".")
        assert claim.statistic
        assert claim.points
        assert claim.paper == paper


def test_an_unknown_paper_is_refused_with_a_hint():
    with pytest.raises(InputError, match="claims are known of mcdf"):
        load_claims("mdcf")


ROW = """
[[claim]]
id = "p-1"
paper = "p"
where = "1"
whose = "quoted"
text = "It is."
statistic = "s"
points = "g"
direction = "about"
printed = 3
unit = "s"
"""


def test_a_row_is_read_with_its_types(tmp_path):
    path = tmp_path / "claims.toml"
    path.write_text(ROW)
    (read,) = load_claims(path=path)
    assert read.printed == (3.0,)
    assert read.margin == MARGINS["about"] == 0
    assert read.region == pytest.approx((2.4, 3.6))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('direction = "about"', 'direction = "near"', "direction must be one of above"),
        ('direction = "about"', "", "direction is missing; it needs id"),
        ('direction = "about"', 'direction = "between"', "needs 2 printed"),
        ("printed = 3", "printed = nan", "printed must be a number or a list"),
        ("printed = 3", "printed = true", "printed must be"),
        ("printed = 3", 'printed = "3"', "printed must be"),
        ("printed = 3", "margin = inf", "margin must be a number"),
        ("printed = 3", "", "needs 1 printed"),
        ('whose = "quoted"', 'whose = "mine"', "whose must be one of"),
        ('id = "p-1"', 'id = "q-1"', "id must be 'p-<number>'"),
        ('id = "p-1"', "id = 1", "id must be a text, got 1"),
        ('unit = "s"', "range = [1, 0]", "range must be the least and the greatest"),
        ('unit = "s"', 'kind = "theorem"', "key of its statement"),
        ('unit = "s"', 'units = "s"', "no field is called 'units'; known: id"),
        ("[[claim]]", "[claim]", r"claim must be written as \[\[claim\]\]"),
        ('points = "g"', "points = g", "line 9"),
    ],
)
def test_a_bad_row_is_refused_by_name(tmp_path, old, new, message):
    path = tmp_path / "claims.toml"
    path.write_text(ROW.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_claims(path=path)


def test_ids_differ(tmp_path):
    path = tmp_path / "claims.toml"
    path.write_text(ROW + ROW)
    with pytest.raises(InputError, match="'p-1' is there twice"):
        load_claims(path=path)


@pytest.mark.parametrize(("gain", "differ"), [(0.0, 0), (0.1, 2), (-0.2, 4)])
def test_an_equal_gain_in_every_run_is_bounded_by_the_requests(gain, differ):
    """Two runs of ten requests: so many of the twenty are decided otherwise at least."""
    rows = [
        {"interval": 60, "replicate": k, "policy": "Greedy", "corrected": corrected}
        | {"fallbacks": most, "failure": 0.5 - gain * corrected, "requests": 10}
        for k in range(2)
        for corrected in (0, 1)
        for most in (0, 1)
    ]
    points = bricks.gains_of_correction(pd.DataFrame(rows))
    assert points["estimate"].tolist() == pytest.approx([gain] * 2)
    assert points["discordant"].tolist() == [differ] * 2
    [claim] = [one for one in load_claims("bricks") if one.id == "bricks-2b"]
    found = judge_claim(claim, points).intervals
    # two-sided exact bounds of a binomial share at 95 %, as if all went the same way
    most = scipy.stats.binomtest(differ, 20).proportion_ci(method="exact").high
    assert found["high"].tolist() == pytest.approx([most] * 2)
    assert found["low"].tolist() == pytest.approx([-most] * 2)
