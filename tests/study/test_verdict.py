"""The sentences about verdicts are made from rows of numbers."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd

from dlsim.study.claims import judge_claim, load_claims, read_scorecard, reference_of
from dlsim.study.verdict import (
    describe_count,
    describe_point,
    describe_readings,
    describe_reason,
    describe_threshold,
    explain,
    with_sentences,
)

KNOWN = {claim.id: claim for claim in load_claims()}
#: Names of points in tables of results, and the words that readers see.
POINTS = {
    "EDFMN, load 0.1": "EDFMN at load 0.1",
    "load 0.2": "load 0.2",
    "nearest, load 0.9": (
        "the closer of FIFOAN and EDFAN against the closer of FIFOMN and EDFMN at load 0.9"
    ),
    "setup 20 against setup 10, load 0.3": "set-up cost 20 against set-up cost 10 at load 0.3",
    "vary_cms, value 5": "Cms varied, Cms/Cps = 5",
    "mean excess, queue 3": "mean excess of queues of 3 tasks",
    "more admitted, load 0.1": "load 0.1",
    "lost, Tiers, K 5 to 25": "connections that LPR leaves unopened, Tiers platforms, K 5 to 25",
    "random 0.1, Table 1": "random 0.1, Table 1",
    "fall, case start-ups, noise 10 %": "case start-ups, noise 10 %",
    "both, gpus 8": "both, GPUs: 8",
    "L/F over opt, interval 120": "L/F along Opt from 0.5 to 0.9, Int = 120 minutes",
}


def test_points_are_named_in_words():
    assert {name: describe_point(name) for name in POINTS} == POINTS


ASKED = [
    ("above", 0.0, (), "more than 0 points."),
    ("dramatic", 0.1, (), "more than 10 points (our margin)."),
    ("below", 0.07, (0.07,), "less than 7 points."),  # as the paper prints
    ("marginal", 0.02, (), "a size below 2 points (our margin)."),
    ("close", 0.0, (), "exactly 0 points."),
    ("close", 0.02, (), "a size of at most 2 points (our margin)."),
    ("between", 0.0, (0.12, 0.16), "12 to 16 points."),
    (
        "about", 0.1, (0.1,),
        "9 to 11 points (our margin: 10 % of the printed number), with the printed number in "
        "the interval.",
    ),
]  # fmt: skip


def test_what_a_claim_asks_for_says_which_margin_is_ours():
    for direction, margin, printed, said in ASKED:
        claim = replace(KNOWN["mcdf-1"], direction=direction, margin=margin, printed=printed)
        assert describe_threshold(claim) == f"The claim asks for {said}"
    own = replace(KNOWN["mcdf-1"], within=(-math.inf, 0.5))
    assert describe_threshold(own) == "Your rule asks for at most 50 points."


COUNTED = [
    ("supported", (4, 0, 0), "at all 4 points"),
    ("partly supported", (14, 6, 0), "at 14 of 20 points"),
    ("stronger than claimed", (0, 0, 2), "at all 2 points"),
    ("inconclusive", (0, 6, 0), "at all 6 points"),
    ("mixed", (5, 1, 4), "(supported at 5, contradicted at 4 of 10 points)"),
    ("contradicted", (0, 0, 1), ""),  # a single point needs no count
    ("not checkable", (0, 0, 0), ""),
]


def test_a_verdict_carries_its_count():
    for word, counts, said in COUNTED:
        row = dict(zip(("for", "open", "against"), counts, strict=True))
        assert describe_count(row | {"points": sum(counts), "verdict": word}) == said


def test_how_firmly_a_verdict_holds_is_counted_over_the_shipped_readings():
    for paper in ("mcdf", "bricks"):
        table = pd.read_csv(reference_of(paper).with_name(f"{paper}-readings.csv"), dtype=str)
        cells = table.set_index("claim").fillna("").T.to_dict("list")
        shown = with_sentences(read_scorecard(reference_of(paper))).set_index("id")
        for name, row in shown.iterrows():
            words = [cell.rstrip("0123456789/ ") for cell in cells.get(name, [])]
            checked = len(words) - words.count("not checkable")
            so = f"so under {words.count(row['verdict'])} of {checked} readings"
            expected = so if checked and row["verdict"] != "not checkable" else ""
            assert row["readings"] == expected, name


def test_a_changed_or_a_quick_experiment_says_nothing_of_readings():
    row = read_scorecard(reference_of("mcdf")).iloc[0].to_dict()
    claim = KNOWN[row["id"]]
    assert describe_readings(claim, row).startswith("so under ")
    assert describe_readings(claim, row | {"experiment": "changed"}) == ""
    assert describe_readings(claim, row | {"scale": "quick"}) == ""
    # beside a quick verdict stands that at full scale, and its readings
    quick = row | {"scale": "quick", "reference": row["verdict"], "verdict": "inconclusive"}
    assert describe_readings(claim, quick) == describe_readings(claim, row)


def test_a_reply_of_the_authors_stands_beside_the_verdict():
    assert not any(claim.reply for claim in KNOWN.values())  # none is known today
    reply = "We counted work, not tasks (A. Author, 2026-11-29, by e-mail)."
    claim = replace(KNOWN["mcdf-18"], reply=reply)
    row = judge_claim(claim).row
    assert describe_reason(claim, row).endswith(f"The authors' reply: {reply}")
    assert reply in explain(claim, row)


def test_an_undecided_about_claim_says_how_far_the_number_is():
    claim = KNOWN["steady-state-4a"]
    for low, high, said in (
        (1.9998, 2.0014, "ends 1 % beside the printed number"),  # (1.9998 - 1.98) / 1.98
        (0.99, 1.782, "ends 10 % beside the printed number"),  # (1.98 - 1.782) / 1.98
        (1.9, 2.5, ""),  # it contains the number
    ):
        points = pd.DataFrame({"point": ["p"], "estimate": [low], "low": [low], "high": [high]})
        verdict = judge_claim(claim, points)
        assert verdict.word == "inconclusive"
        reason = describe_reason(claim, verdict.row)
        assert said in reason
        assert ("beside the printed number" in reason) == bool(said)
        assert ("more runs are not likely to decide" in reason) == (low == 1.9998)


def test_every_notebook_states_the_same_rule():
    """The rule that `dlsim.study.claims` applies, in the words of notebook 90."""
    rule = re.compile(r"A claim is \*supported\* if .*?\*contradicted\* if it is refuted\.")
    texts = {}
    for path in Path("notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        for cell in cells:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and "partly supported" in text:
                texts[path.stem] = rule.findall(text)
    names = ["20-mcdf", "30-inserted-idle-time", "40-steady-state", "50-cpu-gpu", "60-bricks"]
    assert sorted(texts) == [*names, "90-scorecard"]
    assert all(found == texts["90-scorecard"] != [] for found in texts.values())
