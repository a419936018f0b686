"""One rule judges every claim: regions, intervals at their edges, grids, theorems, the file."""

import contextlib
import math
import sys
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.errors import DlsimError, InputError
from dlsim.study.claims import (
    MARGINS,
    SYMBOLS,
    Claim,
    Verdict,
    headline,
    judge,
    load_claims,
    scorecard,
    theorem_status,
    verdict_of,
)

NAN = math.nan


def claim(direction="above", **more):
    fields = {
        "id": "p-1", "paper": "p", "where": "1", "whose": "authors' measurement", "text": "It is.",
        "statistic": "s", "grid": "g", "direction": direction,
    }  # fmt: skip
    return Claim(**(fields | more))


def points(*rows, **columns):
    """Rows (low, high) or (estimate, low, high)."""
    rows = [row if len(row) == 3 else (sum(row) / 2, *row) for row in rows]
    frame = pd.DataFrame(rows, columns=["estimate", "low", "high"])
    frame.insert(0, "point", [f"point {i}" for i in range(len(rows))])
    return frame.assign(**columns)


def word(direction, *rows, **more):
    return judge(points(*rows), claim(direction, **more)).word


# Every direction at one grid point. Thresholds: the design's verdict rule.
ONE_POINT = [
    ("above", {}, (0.01, 0.03), "holds"),
    ("above", {}, (-0.01, 0.03), "differs"),  # undecided, and no point shows it
    ("above", {}, (-0.03, -0.01), "differs"),
    ("above", {}, (0.0, 0.0), "differs"),  # a tie is not a lead
    ("above", {"margin": 0.99}, (0.991, 1.0), "holds"),
    ("above", {"margin": 0.99}, (0.98, 1.0), "differs"),
    ("below", {}, (-0.03, -0.01), "holds"),
    ("below", {"margin": 0.07}, (0.01, 0.05), "holds"),
    ("below", {"margin": 0.07}, (0.08, 0.09), "differs"),
    ("dramatic", {}, (0.11, 0.2), "holds"),
    ("dramatic", {}, (0.09, 0.2), "differs"),
    ("marginal", {}, (-0.019, 0.019), "holds"),
    ("marginal", {}, (0.019, 0.021), "differs"),
    ("marginal", {}, (-0.05, -0.04), "differs"),
    ("close", {}, (-0.05, 0.05), "holds"),
    ("close", {}, (0.04, 0.06), "differs"),
    ("close", {"margin": 0.0}, (0.0, 0.0), "holds"),
    ("about", {"printed": (0.1,)}, (0.07, 0.085), "holds"),  # meets [0.08, 0.12]
    ("about", {"printed": (0.1,)}, (0.06, 0.079), "differs"),
    ("about", {"printed": (0.1,)}, (0.0, 1.0), "holds"),  # compatible, if uninformative
    ("about", {"printed": (-0.1,)}, (-0.11, -0.1), "holds"),
    ("about", {"printed": (-0.1,)}, (-0.2, -0.13), "differs"),
    ("between", {"printed": (0.12, 0.16)}, (0.155, 0.2), "holds"),
    ("between", {"printed": (0.12, 0.16)}, (0.17, 0.2), "differs"),
    ("between", {"printed": (0.12, 0.16), "margin": 0.02}, (0.17, 0.2), "holds"),
]


@pytest.mark.parametrize(("direction", "more", "row", "expected"), ONE_POINT)
def test_one_point(direction, more, row, expected):
    assert word(direction, row, **more) == expected


BEYOND, UNDECIDED, OTHER = (0.1, 0.2), (-0.1, 0.2), (-0.2, -0.1)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([BEYOND, BEYOND], "holds"),
        ([BEYOND, UNDECIDED], "holds in part"),
        ([BEYOND, UNDECIDED, OTHER], "differs"),
        ([UNDECIDED, UNDECIDED], "differs"),
        ([OTHER], "differs"),
        ([BEYOND, (NAN, NAN)], "holds in part"),  # a point without an interval is undecided
        ([BEYOND, (-math.inf, math.inf)], "holds in part"),
        ([(NAN, NAN), (NAN, NAN)], "cannot be checked"),  # one run has no interval at all
        ([], "cannot be checked"),
    ],
)
def test_grid(rows, expected):
    assert word("above", *rows) == expected


SIDES = st.lists(st.sampled_from([BEYOND, UNDECIDED, OTHER]), min_size=1, max_size=6)


@settings(max_examples=200, deadline=None)
@given(SIDES, st.randoms())
def test_the_rule_in_its_own_words(rows, random):
    if all(row == BEYOND for row in rows):
        expected = "holds"
    elif BEYOND in rows and OTHER not in rows:
        expected = "holds in part"
    else:
        expected = "differs"
    assert word("above", *rows) == expected
    shuffled = random.sample(rows, len(rows))
    assert word("above", *shuffled) == expected
    mirrored = [(-high, -low) for low, high in rows]
    assert word("below", *mirrored) == expected


@pytest.mark.parametrize(
    ("estimates", "half", "expected"),
    [
        ([0.10, 0.11, 0.12], 0.01, "holds"),  # range of the estimates: exactly 2 points
        ([0.10, 0.13], 0.001, "differs"),  # the intervals are 2.8 points apart
        ([0.10, 0.13], 0.01, "differs"),  # undecided: no point shows it
        ([0.10], 0.01, "cannot be checked"),  # one point has no range
    ],
)
def test_same_is_a_range_over_the_grid(estimates, half, expected):
    frame = points(*[(e, e - half, e + half) for e in estimates])
    assert judge(frame, claim("same", margin=0.0200001)).word == expected


def test_same_is_judged_part_by_part():
    frame = points(*[(e, e - 0.005, e + 0.005) for e in (0.1, 0.11, 0.5, 0.525)])
    verdict = judge(frame.assign(part=["L=0.1", "L=0.1", "L=1", "L=1"]), claim("same"))
    assert verdict.word == "holds in part"  # range 1 point; range 2.5, at least 1.5
    assert verdict.reason == "Of 2 points: 1 as claimed, 1 undecided."
    assert "L=1" in verdict.statistic
    assert judge(frame, claim("same")).word == "differs"  # one range of 42.5 points over all


def test_the_text_names_the_weakest_point_its_interval_and_the_runs():
    verdict = judge(points((0.02, 0.04), (0.01, 0.05), n=[10, 9]), claim(unit="points"))
    assert verdict.reason == "Of 2 points: 2 as claimed."
    assert verdict.statistic == "3 points; weakest at point 1: 3 points [1, 5]; 9 runs"
    one = judge(points((0.2, 0.4)), claim("dramatic", unit="%"))
    assert one.statistic == "30 % [20, 40]"
    assert one.reason == "Of 1 point: 1 as claimed."
    other = judge(points(BEYOND, UNDECIDED, OTHER), claim(unit="s"))
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
    said = judge(points((estimate, estimate)), claim(unit=unit)).statistic
    assert said.startswith(f"{text} [")


def test_points_are_checked():
    with pytest.raises(InputError, match="high not found"):
        judge(points((0, 1)).drop(columns="high"), claim())
    with pytest.raises(InputError, match="low must not exceed high, as at point 0"):
        judge(points((0.5, 1.0, 0.0)), claim())


# ------------------------------------------------------------------ theorems


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("proved", "holds"),
        ("corrected", "holds in part"),
        ("argued", "holds in part"),
        ("refuted", "differs"),
    ],
)
def test_a_theorem_takes_its_statements_status(monkeypatch, status, expected):
    rows = [
        SimpleNamespace(key="5.10", status="proved"),
        SimpleNamespace(key="5.1", status=status, gap="needs ST > 0"),
    ]
    theory = SimpleNamespace(statements=lambda: rows)
    monkeypatch.setitem(sys.modules, "dlsim.theory", theory)
    assert theorem_status("5.1") == (expected, f"Statement 5.1 is {status}: needs ST > 0.")
    theorem = claim(kind="theorem", statement="5.1")
    assert verdict_of(theorem, points(OTHER)).word == expected  # not its numbers
    assert theorem_status("5")[0] == "cannot be checked"  # a prefix is not the statement


def test_without_the_statement_numbers_decide_if_there_are_any(monkeypatch):
    monkeypatch.setitem(sys.modules, "dlsim.theory", SimpleNamespace(statements=list))
    assert theorem_status("5.1") == (
        "cannot be checked", "The theory module does not hold statement 5.1 yet.",
    )  # fmt: skip
    theorem = claim(kind="theorem", statement="5.1")
    assert verdict_of(theorem).word == "cannot be checked"
    assert verdict_of(theorem, points(BEYOND)).word == "holds"


def test_a_claim_without_a_measure_says_why():
    verdict = verdict_of(claim(reason="The testbed is not public."))
    assert (verdict.word, verdict.reason) == ("cannot be checked", "The testbed is not public.")
    assert verdict_of(claim()).word == "cannot be checked"


# ---------------------------------------------------------- scorecard, headline


def test_scorecard_and_headline():
    about = claim("about", printed=(0.1,), figure="p-fig1")
    verdicts = [judge(points((0.1, 0.11)), about), Verdict(claim(), "differs", "No.")]
    card = scorecard(verdicts)
    assert list(card["verdict"]) == ["holds", "differs"]
    assert list(card["printed"]) == ["10 %", ""]
    assert card.loc[0, "measured"] == "10.5 % [10, 11]"
    assert card.loc[0, "figure"] == "p-fig1"
    assert all(isinstance(cell, str) for cell in card.to_numpy().ravel())
    text = "2 claims: 1 holds, 0 in part, 1 differs, 0 cannot be checked"
    assert headline(verdicts) == headline(card["verdict"]) == text
    assert scorecard([]).columns.equals(card.columns)
    # the form that the report promises
    words = ["holds"] * 35 + ["holds in part"] * 3 + ["differs"] + ["cannot be checked"] * 2
    assert headline(words) == "41 claims: 35 hold, 3 in part, 1 differs, 2 cannot be checked"


def test_verdicts_are_four_words_with_four_symbols():
    assert len(SYMBOLS) == len(set(SYMBOLS.values())) == 4
    assert Verdict(claim(), "holds", "").symbol == SYMBOLS["holds"]
    with pytest.raises(InputError, match="got 'maybe'"):
        Verdict(claim(), "maybe", "")


# ------------------------------------------------------------------- the file


def test_paper_m_has_its_nineteen_claims():
    claims = load_claims("mcdf")
    ids = [f"mcdf-{i}" for i in range(1, 20)]
    ids[4:5] = ["mcdf-5a", "mcdf-5b"]  # "10 % less" can be read in two ways
    assert [c.id for c in claims] == ids
    for c in claims:
        assert c.text.endswith(".")
        assert c.statistic
        assert c.grid
    assert set(c.paper for c in load_claims()) >= {"mcdf"}
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
grid = "g"
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
        ('unit = "s"', 'kind = "theorem"', "key of its statement"),
        ('unit = "s"', 'units = "s"', "no field is called 'units'; known: id"),
        ("[[claim]]", "[claim]", r"claim must be written as \[\[claim\]\]"),
        ('grid = "g"', "grid = g", "line 9"),
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


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(ROW) - 1), st.binary(min_size=0, max_size=3))
def test_mutated_files_are_read_or_refused(tmp_path_factory, at, patch):
    path = tmp_path_factory.getbasetemp() / "mutated.toml"
    data = ROW.encode()
    path.write_bytes(data[:at] + patch + data[at + 1 :])
    with contextlib.suppress(DlsimError):
        load_claims(path=path)
