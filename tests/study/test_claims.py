"""One rule judges every claim: regions, intervals at their edges, families, theorems, the file."""

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.errors import InputError
from dlsim.study.claims import (
    VERDICTS,
    Claim,
    Verdict,
    agreement,
    headline,
    intervals,
    judge_claim,
    judge_intervals,
    judge_points,
    load_claims,
    read_scorecard,
    reference_of,
    tabulate,
    theorem_status,
    word_of_counts,
)
from dlsim.study.verdict import (
    describe_measured,
    describe_reason,
    describe_rule,
    with_sentences,
    write_number,
    write_numbers,
)
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import LONG, scale_count

NAN = math.nan


def claim(direction="above", **more):
    about = {"id": "p-1", "paper": "p", "where": "1", "whose": "authors' measurement"}
    about |= {"text": "It is.", "statistic": "s", "points": "g", "direction": direction}
    return Claim(**(about | more))


def points(*rows, **columns):
    """Rows (low, high) or (estimate, low, high)."""
    rows = [row if len(row) == 3 else (sum(row) / 2, *row) for row in rows]
    frame = pd.DataFrame(rows, columns=["estimate", "low", "high"])
    frame.insert(0, "point", [f"point {i}" for i in range(len(rows))])
    return frame.assign(**columns)


def word(direction, *rows, **more):
    return judge_points(points(*rows), claim(direction, **more)).word


#: Every direction at one point: margin and printed numbers, the interval, the verdict.
ONE_POINT = [
    ("above", {}, (0.01, 0.03), "supported"),
    ("above", {}, (-0.03, -0.01), "contradicted"),
    ("above", {}, (0.0, 0.0), "contradicted"),  # an exact tie is not a lead
    ("above", {}, (0.0, 0.1), "inconclusive"),
    ("above", {"margin": 0.99}, (0.991, 1.0), "supported"),
    ("below", {"margin": 0.07}, (0.01, 0.05), "supported"),
    ("below", {"margin": 0.07}, (0.08, 0.09), "contradicted"),
    ("dramatic", {}, (0.11, 0.2), "supported"),
    ("marginal", {}, (-0.019, 0.019), "supported"),
    ("marginal", {}, (0.019, 0.021), "inconclusive"),
    ("marginal", {}, (-0.05, -0.04), "contradicted"),
    ("marginal", {}, (-0.05, 0.05), "inconclusive"),  # noise shows no equality
    ("close", {}, (-0.05, 0.05), "supported"),
    ("close", {}, (0.051, 0.06), "contradicted"),
    ("close", {"margin": 0.0}, (0.0, 0.0), "supported"),
    ("about", {"printed": (0.1,)}, (0.09, 0.11), "supported"),  # a tenth away
    ("about", {"printed": (0.1,)}, (0.089, 0.101), "inconclusive"),
    ("about", {"printed": (0.1,)}, (0.104, 0.109), "supported"),  # 10.4 % may be printed as 10 %
    ("about", {"printed": (0.1,)}, (0.106, 0.109), "inconclusive"),  # near, but not that number
    ("about", {"printed": (2.5,)}, (2.551, 2.6), "inconclusive"),
    ("about", {"printed": (0.1,)}, (0.06, 0.089), "contradicted"),
    ("about", {"printed": (0.1,)}, (0.0, 1.0), "inconclusive"),  # compatible, but uninformative
    ("about", {"printed": (-0.1,)}, (-0.11, -0.1), "supported"),
    ("between", {"printed": (0.12, 0.16)}, (0.155, 0.2), "inconclusive"),
    ("between", {"printed": (0.12, 0.16)}, (0.17, 0.2), "contradicted"),
    ("between", {"printed": (0.12, 0.16), "margin": 0.02}, (0.15, 0.175), "supported"),
]


def test_the_verdict_on_one_point():
    for direction, more, row, expected in ONE_POINT:
        assert word(direction, row, **more) == expected, (direction, more, row)


BEYOND, UNDECIDED, OTHER = (0.1, 0.2), (-0.1, 0.2), (-0.2, -0.1)


def test_a_point_without_an_interval_is_open():
    assert word("above", BEYOND, (NAN, NAN)) == "partly supported"
    assert word("above", BEYOND, (-math.inf, math.inf)) == "partly supported"
    assert word("above", (NAN, NAN), (NAN, NAN)) == "not checkable"  # one run has no interval
    assert word("above") == "not checkable"


SOME = st.lists(st.sampled_from([BEYOND, UNDECIDED, OTHER]), min_size=1, max_size=6)


@settings(max_examples=scale_count(200, LONG), deadline=None)
@given(SOME, st.randoms())
def test_the_verdict_on_a_family_of_points(rows, random):
    words = {
        (True, False): "partly supported",
        (True, True): "mixed",
        (False, True): "contradicted",
        (False, False): "inconclusive",
    }
    whole = all(row == BEYOND for row in rows)
    expected = "supported" if whole else words[BEYOND in rows, OTHER in rows]
    assert word("above", *rows) == expected
    shuffled = random.sample(rows, len(rows))
    assert word("above", *shuffled) == expected
    mirrored = [(-high, -low) for low, high in rows]
    assert word("below", *mirrored) == expected


def test_all_points_at_once_need_more_than_each_alone():
    # t with 9 degrees: 2.26 of one point, 4.69 of forty (Sidak), in standard errors
    row, open_one = (0.03, 0.03 - 2.26e-2, 0.03 + 2.26e-2), (0.0, -0.0226, 0.0226)
    assert judge_points(points(row, n=10), claim()).word == "supported"
    # each alone is enough
    assert judge_points(points(*[row] * 40, n=10), claim()).word == "supported"
    assert judge_points(points(*[row] * 39, open_one, n=10), claim()).word == "inconclusive"
    wide = intervals(points(*[row] * 40, n=10), claim())
    expected = scipy.stats.t.ppf((1 + 0.95 ** (1 / 40)) / 2, 9) / scipy.stats.t.ppf(0.975, 9)
    assert ((0.03 - wide["least"]) / (0.03 - wide["low"])).to_numpy() == pytest.approx(expected)


def decided_by(supporting, against):
    """The verdict by the sentence of the rule, in fractions: a tenth of the decided points."""
    decided = supporting + against
    if not decided:
        return "inconclusive"
    for_it, against_it = Fraction(supporting, decided), Fraction(against, decided)
    tenth = Fraction(1, 10)
    if for_it >= tenth and against_it >= tenth:
        return "mixed"
    return "partly supported" if for_it > against_it else "contradicted"


def test_fewer_than_a_tenth_of_the_decided_points_do_not_make_a_verdict_mixed():
    for counts in itertools.product(range(31), repeat=2):
        assert word_of_counts(*counts) == decided_by(*counts), counts


def test_a_margin_of_ours_shows_the_verdict_at_half_and_at_twice_of_it():
    one = claim("dramatic", unit="%")  # more than 10 %
    row = judge_points(points((0.06, 0.15)), one).row
    words = [row[name] for name in ("verdict", "half", "twice")]
    assert words == ["inconclusive", "supported", "contradicted"]
    said = describe_reason(one, row)
    assert "The verdict would be supported at half, contradicted at twice our margin." in said
    row = judge_points(points((0.3, 0.4)), one).row
    said = describe_reason(one, row)
    assert said.endswith("The verdict would be the same at half and at twice our margin.")
    # a margin that the paper prints, or one beyond what can be measured
    row = judge_points(points((0.991, 1.0)), claim(margin=0.99, printed=(0.99,))).row
    assert row["half"] == row["twice"] == ""
    row = judge_points(points((0.6, 0.7)), claim(margin=0.5, range=(0.0, 1.0))).row
    assert (row["half"], row["twice"]) == ("supported", "")


def test_the_shipped_verdicts_follow_from_the_shipped_points():
    """Words, numbers of points, and the words at other margins, of every measured claim."""
    checked = 0
    for paper in dict.fromkeys(one.paper for one in load_claims()):
        place = reference_of(paper)
        table = pd.read_csv(place.with_name(f"{paper}-points.csv"))
        card = read_scorecard(place).set_index("id")
        for one in load_claims(paper):
            rows = table[table["claim"] == one.id].reset_index(drop=True)
            if rows.empty or one.kind == "theorem":
                continue
            if rows["group"].isna().all():
                rows = rows.drop(columns="group")
            nothing = {"total": np.nan, "se": np.nan}
            row, kept = judge_intervals(rows.assign(**nothing), one).row, card.loc[one.id]
            names = ["verdict", "for", "open", "against", "points", "half", "twice", "what"]
            assert [row[name] for name in names] == [kept[name] for name in names], one.id
            checked += 1
    assert checked > 90


def test_replicates_are_judged_by_their_family():
    values = np.random.default_rng(5).normal(0.5, 0.1, (10, 3))
    frame = points(*[(0.0, 0.1)] * 3, values=list(values.T), n=10)  # those ends are not used
    assert judge_points(frame.assign(estimate=values.mean(axis=0)), claim()).word == "supported"
    verdict = judge_points(frame.assign(estimate=values.mean(axis=0)), claim(margin=0.52))
    assert verdict.word == "inconclusive"
    assert verdict.counts == (0, 3, 0)
    assert 0 < verdict.row["detectable"] < 1


def test_equal_replicates_show_nothing_unless_they_are_counted():
    frame = points((0.0, 0.0), values=[np.zeros(10)], n=10)
    assert judge_points(frame, claim("close", margin=0.01)).word == "inconclusive"
    unknown = points((math.nan, math.nan), values=[np.full(10, math.nan)], n=10)
    assert judge_points(unknown, claim("close", margin=0.01)).word == "not checkable"
    few, many = (frame.assign(total=total, values=None) for total in (100, 10_000))
    # of 100 up to 3.6 % are possible
    assert judge_points(few, claim("close", margin=0.01)).word == "inconclusive"
    assert judge_points(many, claim("close", margin=0.01)).word == "supported"


def test_the_members_of_a_group_speak_as_one():
    frame = points(BEYOND, BEYOND, BEYOND, OTHER, group=[1, 1, 2, 2])
    verdict = judge_points(frame, claim())
    assert (verdict.word, verdict.counts) == ("mixed", (1, 0, 1))
    open_one = judge_points(points(BEYOND, UNDECIDED, BEYOND, group=[1, 1, 2]), claim())
    assert (open_one.word, open_one.counts) == ("partly supported", (1, 1, 0))


def test_no_interval_leaves_the_range_of_the_quantity():
    frame = points((0.387, 1.113), values=[[0.4, 0.8, 1.05]], n=3).assign(estimate=0.75)
    cut = intervals(frame, claim(range=(0.0, 1.0)))
    assert cut[["low", "high", "least", "most"]].to_numpy().tolist() == [[0, 1, 0, 1]]


def test_a_trend_counts_the_steps_that_go_the_other_way():
    frame = points(BEYOND, steps=[9], wrong=[2])
    verdict = judge_points(frame, claim())
    assert (verdict.row["steps"], verdict.row["wrong"]) == (9, 2)
    assert "Of 9 steps from one point to the next 2 go" in describe_reason(claim(), verdict.row)


def test_the_row_names_the_weakest_point_its_interval_and_the_runs():
    row = judge_points(points((0.02, 0.04), (0.01, 0.05), n=[10, 9]), claim(unit="points")).row
    assert [row[name] for name in ("for", "open", "against", "points", "runs")] == [2, 0, 0, 2, 9]
    assert (row["what"], row["low"], row["high"]) == ("point 1", 0.01, 0.05)
    assert [row["smallest"], row["largest"], row["estimate"]] == pytest.approx([0.03] * 3)
    said = describe_rule(claim(unit="points"), row)
    assert said.endswith("more than 0 points. Points: g (2 comparisons, 9 runs).")
    row = judge_points(points(BEYOND, UNDECIDED, OTHER), claim(unit="s")).row
    assert (row["what"], row["low"], row["high"]) == ("point 2", -0.2, -0.1)
    row = judge_points(points((0.2, 0.4), (0.5, 0.9), (0.1, 0.3)), claim()).row
    assert [row["smallest"], row["largest"]] == pytest.approx([0.2, 0.7])


#: Points of a claim, and the one that lies nearest to either bound.
NEAREST = [
    ("below", [(-4, -2), (-1.5, -0.5), (-9, -1)], "point 1"),  # ends 0.5 below the bound 0
    ("below", [(-1, -0.25), (1, 3), (0.5, 4)], "point 2"),  # against it, and ends highest
    ("marginal", [(-0.015, 0), (-0.01, 0.019), (0, 0.001)], "point 1"),  # 0.001 from 0.02
    ("marginal", [(-0.018, 0), (-0.01, 0.017), (0, 0.001)], "point 0"),  # 0.002 from -0.02
]


def test_the_point_named_is_the_nearest_to_either_bound():
    for direction, rows, named in NEAREST:
        assert judge_points(points(*rows), claim(direction)).row["what"] == named, rows


WRITTEN = [
    (0.12345, "%", "12.35 %"), (1.0, "%", "100 %"), (-0.00001, "points", "0 points"),
    (331800.4, "time units", "331,800 time units"), (0.00012345, "s", "0.0001234 s"),
    (1000.0, "s", "1,000 s"), (-1000.0, "s", "-1,000 s"), (999.9, "s", "999.9 s"),
    (1.5e20, "", "1.5e+20"), (12.0, "", "12"),
]  # fmt: skip


def test_numbers_are_written_for_people():
    for estimate, unit, text in WRITTEN:
        assert write_numbers(unit, estimate) == text
        assert write_number(estimate, unit) == text.partition(" ")[0]


test_what_is_no_point_no_verdict_and_no_paper_is_refused = refuses_each(
    [
        (lambda: judge_points(points((0, 1)).drop(columns="high"), claim()), "high not found"),
        (lambda: judge_points(points((0.5, 1.0, 0.0)), claim()), "as 1.0 > 0.0 at point 0"),
        (lambda: Verdict(claim(), "maybe", ""), "got 'maybe'"),
        (lambda: load_claims("mdcf"), "claims are known of mcdf"),
    ]
)


# ------------------------------------------------------------------ theorems


#: Of each status of a statement: the verdict, and what is said of it.
STATUSES = {
    "proved": ("supported", "is proved"),
    "ours": ("supported", "is proved"),
    "corrected": ("partly supported", "does not hold as printed; it is proved with a correction"),
    "notation": ("partly supported", "is proved; what is printed has other symbols than it needs"),
    "refuted": ("contradicted", "is refuted"),
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_theorem_takes_its_statements_status(monkeypatch, status):
    verdict, found = STATUSES[status]
    rows = {"5.10": ("proved", ""), "5.1": (status, "needs ST > 0")}
    monkeypatch.setattr("dlsim.study.claims._statements", lambda: rows)
    theorem = claim(kind="theorem", statement="5.1")
    judged = judge_claim(theorem, points(OTHER))
    assert judged.word == verdict  # not its numbers
    said = describe_reason(theorem, judged.row)
    assert said.startswith("The one comparison contradicts the claim. ")
    assert said.endswith(f"Statement 5.1 {found}: needs ST > 0.")
    assert theorem_status("5") == ("", "")  # a prefix is not the statement


def test_without_the_statement_numbers_decide_if_there_are_any(monkeypatch):
    monkeypatch.setattr("dlsim.study.claims._statements", dict)
    theorem = claim(kind="theorem", statement="5.1")
    assert judge_claim(theorem).word == "not checkable"
    assert judge_claim(theorem, points(BEYOND)).word == "supported"


def test_every_theorem_of_the_papers_has_its_statement():
    theorems = [one for one in load_claims() if one.kind == "theorem"]
    assert theorems
    assert all(theorem_status(one.statement)[0] for one in theorems)


def test_a_claim_without_a_measure_says_why():
    one = claim(reason="The testbed is not public.")
    verdict = judge_claim(one)
    assert verdict.word == "not checkable"
    assert describe_reason(one, verdict.row) == "The testbed is not public."
    assert describe_measured(one, verdict.row) == ""
    assert describe_reason(claim(), judge_claim(claim()).row) == "It was not measured."
    empty = judge_points(points(BEYOND)[:0], claim())
    assert describe_reason(claim(), empty.row) == "No point was run."


# ---------------------------------------------------------- scorecard, headline


def test_a_scorecard_is_read_as_it_was_written(tmp_path):
    """One row per verdict: numbers stay numbers, and what was not measured stays blank."""
    first, second = load_claims("mcdf")[:2]
    verdicts = [
        judge_points(points((0.1, 0.11), n=7), first),
        Verdict(second, "not checkable", "No."),
    ]
    card = tabulate(verdicts, scale="quick", sample="quick scale, seed 3", experiment="changed")
    assert card["verdict"].tolist() == ["supported", "not checkable"]
    assert card["points"].tolist() == [1, 0]
    assert card["runs"].tolist() == [7, 0]
    assert set(card["sample"]) == {"quick scale, seed 3"}
    path = tmp_path / "card.csv"
    card.to_csv(path, index=False)
    pd.testing.assert_frame_equal(read_scorecard(path), card, check_dtype=False)
    path.write_text(path.read_text().replace(first.id, "mcdf-99"))
    with pytest.raises(InputError, match=r"card\.csv: a claim must be one of .*'mcdf-99'"):
        read_scorecard(path)
    assert tabulate([]).columns.equals(card.columns)


def test_the_headline_counts_verdicts():
    assert len(VERDICTS) == len({one.symbol for one in VERDICTS.values()})
    text = "1 supported, 0 partly supported, 0 mixed, 1 contradicted, 0 inconclusive"
    assert headline(["supported", "contradicted"]) == f"2 claims: {text}, 0 not checkable"
    said = headline(["stronger than claimed"])
    assert said.endswith(", 0 not checkable, 1 stronger than claimed")


#: Claims, the estimates of their points (intervals of width 0.001), and the verdict.
EXCEEDED = [
    ("about", (0.1,), "more", (0.2, 0.3), "stronger than claimed"),  # beyond 12 % everywhere
    ("about", (0.1,), "more", (0.01, 0.3), "contradicted"),
    ("about", (0.1,), "more", (0.01, 0.02), "contradicted"),
    ("about", (0.1,), "more", (0.1, 0.3), "mixed"),
    ("about", (0.1,), "", (0.2, 0.3), "contradicted"),
    ("about", (0.1,), "less", (0.2, 0.3), "contradicted"),
    ("between", (0.1, 0.2), "less", (-0.05, 0.05), "stronger than claimed"),
    ("between", (0.1, 0.2), "more", (12.0, 13.0), "stronger than claimed"),
]


@pytest.mark.parametrize("unit", ["points", "times"])
def test_a_claim_that_is_exceeded_in_its_favour_is_shown_as_stronger(unit):
    for direction, printed, favour, estimates, shown in EXCEEDED:
        about = claim(direction, printed=printed, favour=favour, unit=unit)
        verdict = judge_points(points(*((value, value + 0.001) for value in estimates)), about)
        assert verdict.word == shown, (direction, favour, estimates)
        said = describe_reason(about, verdict.row)
        assert ("in its favour" in said) == (shown == "stronger than claimed"), said


def test_a_tie_with_the_printed_number_does_not_exceed_it():
    beyond = {"less": (0.125, 0.1875), "more": (0.375, 0.5)}
    for direction, favour in (("above", "less"), ("below", "more")):
        about = claim(direction, margin=0.25, printed=(0.25,), favour=favour)
        assert judge_points(points((0.25, 0.25)), about).word == "contradicted"
        assert judge_points(points(beyond[favour]), about).word == "stronger than claimed"


def test_points_are_named_in_words_not_by_columns_of_a_frame():
    for paper in dict.fromkeys(one.paper for one in load_claims()):
        told = with_sentences(read_scorecard(reference_of(paper)))["measured"].str.cat(sep=" ")
        assert not re.search(r"nearest, load|vary_c|lost, |over opt|\bends, |setup \d", told)


#: The verdict at quick scale, that at full scale, and how they agree.
AGREEMENTS = [
    ("inconclusive", "inconclusive", "agrees"),
    ("inconclusive", "supported", "inconclusive at this size"),
    ("not checkable", "supported", "not checked at this size"),
    ("contradicted", "inconclusive", "more than at full scale"),
    ("contradicted", "partly supported", "CONTRADICTS"),
    ("supported", "mixed", "CONTRADICTS"),
    ("mixed", "contradicted", "agrees in part"),
    ("partly supported", "mixed", "agrees in part"),
    ("supported", "", ""),
    ("stronger than claimed", "supported", "CONTRADICTS"),
    ("stronger than claimed", "contradicted", "agrees in part"),
]


def test_a_verdict_is_compared_with_that_at_full_scale():
    for quick, full, expected in AGREEMENTS:
        assert agreement(quick, full) == expected, (quick, full)


# ------------------------------------------------------------------- the file


def test_the_claims_of_a_paper_are_in_the_order_of_their_numbers():
    """A letter follows the number of a claim that can be read in several ways."""
    # sentences of the sources that paper C does not have were claims once
    gone = {"cpu-gpu": {2, 9}}
    for paper in {claim.paper for claim in load_claims()}:
        ids = [claim.id for claim in load_claims(paper)]
        numbers = [int(re.fullmatch(rf"{paper}-(\d+)[a-z]?", one)[1]) for one in ids]
        assert numbers == sorted(numbers)
        assert set(numbers) == set(range(1, max(numbers) + 1)) - gone.get(paper, set())
        assert len(set(ids)) == len(ids)


def test_every_claim_is_told_in_our_words_and_has_few_of_the_paper():
    for one in load_claims():
        assert "..." not in one.text, one.id
        assert one.text.endswith("."), one.id
        assert one.statistic, one.id
        assert one.points, one.id
        assert 0 < len(one.quote.split()) <= 25, one.id


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


WRONG_ROWS = [
    ('direction = "about"', 'direction = "near"', "direction must be one of above"),
    ('direction = "about"', 'direction = "between"', "needs 2 printed"),
    ("printed = 3", "printed = nan", "printed must be a number or a list"),
    ("printed = 3", "margin = inf", "margin must be a number"),
    ("printed = 3", "", "needs 1 printed"),
    ('whose = "quoted"', 'whose = "mine"', "whose must be one of"),
    ('id = "p-1"', 'id = "q-1"', "id must be 'p-<number>'"),
    ('unit = "s"', "range = [1, 0]", "range must be the least and the greatest"),
    ('unit = "s"', 'kind = "theorem"', "key of its statement"),
    ('unit = "s"', "within = [1, 2]", "no field is called 'within'"),
    ("[[claim]]", "[claim]", r"claim must be written as \[\[claim\]\]"),
    (ROW, ROW + ROW, "'p-1' is there twice"),
]


def test_a_bad_row_is_refused_by_name(tmp_path):
    path = tmp_path / "claims.toml"
    path.write_text(ROW)
    [good] = load_claims(path=path)
    assert good.printed == (3.0,)
    for old, new, message in WRONG_ROWS:
        path.write_text(ROW.replace(old, new))
        with pytest.raises(InputError, match=message):
            load_claims(path=path)
