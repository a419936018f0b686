"""Sentences about verdicts, for notebooks, pages and the command line.

A scorecard keeps short texts, so that tables of results stay comparable with earlier ones. Readers
see the sentences that this module makes of them.
"""

import re
from pathlib import Path

import pandas as pd

from dlsim.study.claims import (
    PRINTED,
    SHOWN_SYMBOLS,
    SHOWN_WORDS,
    STRONGER,
    Claim,
    Verdict,
    load_claims,
    read_scorecard,
    reference_of,
    words_for_readers,
    write_numbers,
)

#: The text of measured numbers: their extent and the worst point, if there are several, then its
#: estimate and 95 % interval, the number of runs, and a remark.
_MEASURED = re.compile(
    r"(?:(?P<extent>[^;]+); weakest at (?P<point>.+?): )?"
    r"(?P<estimate>[-\d.,e+?]+ ?[^\[;]*?) ?\[(?P<low>.+?), (?P<high>.+?)\]"
    r"(?:; (?P<runs>\d+) runs)?(?:; (?P<beside>.+))?"
)
#: Parts of the names of points, and the words that readers see instead.
_POINTS = {
    r"^nearest\b": "the closer of FIFOAN and EDFAN against the closer of FIFOMN and EDFMN",
    r"^vary_cms\b": "Cms varied",
    r"^vary_cps\b": "Cps varied",
    r"\bvalue (?=\d)": "Cms/Cps = ",
    r"\bsetup (?=\d)": "set-up cost ",
    r"^mean excess, queue (\d+)": r"mean excess of queues of \1 tasks",
    r"^queues beaten, queue (\d+)": r"share of queues of \1 tasks with a cheaper order",
    r"^more admitted, ": "",
    r", axis ": " over the axis ",
    r"^lost, ": "connections that LPR leaves unopened, ",
    r"^more than 10%, ": "cases in which LPR leaves more than 10 % of the connections unopened, ",
    r"^ends, ": "first and last period, ",
    r"\b(Tiers|random)(?=,|$)": r"\1 platforms",
    r"^fall, (?=mix|case)": "",
    r"\bwrong (?=\d)": "first sample wrong by a factor of ",
    r"\bshare 0\.0625": "one core of 16 busy",
    r"\bshare 0\.125": "one core of 8 busy",
    r"\bgpus (?=\d)": "GPUs: ",
    r"\bengines (?=\d)": "copy engines: ",
    r" over opt\b": " along Opt from 0.5 to 0.9",
    r"\binterval (\d+)": r"Int = \1 minutes",
    r"\bnodes (\d+)": r"\1 nodes",
    r", load (?=\d)": " at load ",
}
#: The versions of paper B's schedulers, as the names of points have them.
_VERSIONS = "L/x is with Load Correction, x/F with Fallback, L/F with both, x/x with neither"
#: Texts of the reason for a verdict, and the sentences that readers see instead.
_REASONS = {
    r"Asked, in our reading: .+?\. (?=\d+ for)": "",  # said beside the measured number
    r"\d+ for, \d+ open, \d+ against, of \d+\. ?": "",  # said by `describe_comparisons`
    r"These runs would show an effect of (.+?) at every open point \(power 80 %\)\.": (
        r"With so few runs only effects above \1 would be noticed (in 4 of 5 cases)."
    ),
    r"So few runs could have shown no effect at all\.": "So few runs show no effect at all.",
    r"None at all at (\d+) of (\d+) points, in up to (\S+) cases\.": (
        r"At \1 of \2 points no case occurred among up to \3."
    ),
    r"Of (\d+) steps to a neighbour (\d+) go the other way\.": (
        r"Of \1 steps from one point to the next \2 go the other way."
    ),
}


def describe_comparisons(points: str, word: str = "") -> str:
    """Say how many comparisons of a claim support it; `word` is the verdict that readers see.

    >>> describe_comparisons("2 for, 7 open, 13 against, of 22")
    'Of 22 comparisons 2 support the claim, 13 contradict it, 7 show nothing.'
    """
    counts = re.fullmatch(r"(\d+) for, (\d+) open, (\d+) against, of (\d+)", points)
    if not counts:
        return ""
    supporting, undecided, against, total = map(int, counts.groups())
    if word == STRONGER:
        return f"Of {total} comparisons {total} exceed the paper's number in its favour."
    if total == 1:
        verb = "shows nothing" if undecided else "contradicts" if against else "supports"
        return f"The one comparison {verb}{' the claim' * (not undecided)}."
    parts = [
        f"{number} {verb}{'s' * (number == 1)} {what}"
        for number, verb, what in (
            (supporting, "support", "the claim"),
            (against, "contradict", "it" if supporting else "the claim"),
            (undecided, "show", "nothing"),
        )
        if number
    ]
    return f"Of {total} comparisons {', '.join(parts)}."


def describe_threshold(claim: Claim) -> str:
    """Say which values of the statistic are on the side of a claim."""
    if claim.direction in PRINTED:
        asked = write_numbers(claim.unit, *claim.region)
    else:
        words = {
            "above": "more than",
            "dramatic": "more than",
            "below": "less than",
            "marginal": "a size below",
            "close": "a size of at most" if claim.margin else "exactly",
            "same": "no two farther apart than",
        }
        asked = f"{words[claim.direction]} {write_numbers(claim.unit, claim.margin)}"
    has_margin = bool(claim.margin) and claim.direction not in PRINTED
    return f"The claim asks for {asked}{' (in our reading)' * has_margin}."


def describe_point(name: str) -> str:
    """Say which comparison a point is, from its name in a table of results.

    >>> describe_point("EDFMN, setup 5, load 0.1")
    'EDFMN, set-up cost 5 at load 0.1'
    """
    for text, words in _POINTS.items():
        name = re.sub(text, words, name)
    return name


def describe_measured(claim: Claim, measured: str, word: str) -> str:
    """Say what was measured, what the claim asks for, and which point decides.

    The numbers are `measured`, as a scorecard has them; `word` is the verdict that readers see.
    """
    found = _MEASURED.fullmatch(measured)
    if not found:
        return measured
    parts = found.groupdict("")
    is_wide = parts["low"] != parts["high"]
    number = parts["estimate"].strip() + f" (95 %: {parts['low']} to {parts['high']})" * is_wide
    sentences = [f"Measured: {claim.statistic}.", describe_threshold(claim)]
    if parts["point"]:
        nearest = {
            "supported": "Closest to failing",
            STRONGER: "Furthest beyond the paper's number",
        }.get(word, "Furthest from the claim")
        point = describe_point(parts["point"])
        sentences.append(f"All comparisons: {parts['extent']}. {nearest}: {point}, {number}.")
        sentences += [f"{_VERSIONS}."] * bool(re.search(r"\b[xL]/[xF]", point))
    else:
        sentences.append(f"It is {number}.")
    beside = parts["beside"]
    sentences += [f"{beside[0].upper()}{beside[1:]}."] if beside else []
    sentences += [f"Runs: {parts['runs']}."] * bool(parts["runs"])
    return " ".join(sentences)


def describe_reason(points: str, reason: str, word: str = "") -> str:
    """Say how many comparisons support a claim, and what else the reason of its verdict says."""
    for text, sentence in _REASONS.items():
        reason = re.sub(text, sentence, reason)
    return f"{describe_comparisons(points, word)} {reason}".strip()


def with_sentences(card: pd.DataFrame) -> pd.DataFrame:
    """Return a scorecard with the words and sentences that readers see."""
    known = {claim.id: claim for claim in load_claims()}
    shown = card.assign(verdict=words_for_readers(card), reference=_shown_references(card))
    rows = shown.to_dict("records")
    for row in rows:
        row["reason"] = describe_reason(row["points"], row["reason"], row["verdict"])
        claim = known.get(row["id"])
        if claim is not None:
            row["claim"] = claim.sentence
            row["measured"] = describe_measured(claim, row["measured"], row["verdict"])
    return pd.DataFrame(rows, index=card.index, columns=shown.columns)


def _shown_references(card: pd.DataFrame) -> list[str]:
    """Return the words that readers see for the verdicts at full scale."""
    shipped = [reference_of(paper) for paper in card["paper"].unique()]
    stronger = set()
    for reference in map(read_scorecard, filter(Path.exists, shipped)):
        stronger |= set(reference["id"][words_for_readers(reference) == STRONGER])
    return [
        STRONGER if word == "contrary" and name in stronger else SHOWN_WORDS.get(word, "")
        for name, word in zip(card["id"], card["reference"], strict=True)
    ]


def explain(verdict: Verdict) -> str:
    """Say in Markdown what became of a claim, and which number decides it."""
    claim, word = verdict.claim, verdict.word_for_readers
    head = f"{SHOWN_SYMBOLS[word]} **{claim.id} is {word}.** *{claim.sentence}*"
    printed = f"Printed: {write_numbers(claim.unit, *claim.printed)}." if claim.printed else ""
    measured = describe_measured(claim, verdict.statistic, word)
    reason = describe_reason(verdict.points, verdict.reason, word)
    return " ".join(filter(None, [head, printed, measured, reason]))
