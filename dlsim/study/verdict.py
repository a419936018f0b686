"""Judge the sentences of a paper on the frames of a notebook, and say the verdicts in sentences.

A verdict is a row of numbers and one word (`dlsim.study.claims.COLUMNS`). Sentences are made from
it here, when it is shown, and nowhere else.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from dlsim import files
from dlsim.errors import InputError
from dlsim.study import claims, session
from dlsim.study.claims import (
    SHARE_UNITS,
    VERDICTS,
    Claim,
    Verdict,
    load_claims,
    reference_of,
    theorem_status,
)
from dlsim.study.fingerprint import name_experiment
from dlsim.study.measure import MEASURES, Measure
from dlsim.study.plain_text import shown_table
from dlsim.study.stats import INTERVAL_ENDS
from dlsim.validate import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas.io.formats.style import Styler

VerdictRow = Mapping[str, Any]


#: What parts of the names of points mean, if their name alone does not say it. A part that is
#: empty is left out.
_PARTS = {
    "nearest": "the closer of FIFOAN and EDFAN against the closer of FIFOMN and EDFMN",
    "vary_cms": "Cms varied",
    "vary_cps": "Cps varied",
    "mean excess": "mean excess of queues",
    "queues beaten": "share with a cheaper order among queues",
    "more admitted": "",
    "fall": "",
    "lost": "connections that LPR leaves unopened",
    "more than 10%": "cases in which LPR leaves more than 10 % of the connections unopened",
    "ends": "first and last period",
    "Tiers": "Tiers platforms",
    "random": "random platforms",
    "share 0.00625": "a thread that takes a tenth of one core of 16",
    "share 0.0125": "a thread that takes a tenth of one core of 8",
    "L/F over opt": "L/F along Opt from 0.5 to 0.9",
    "L/x over opt": "L/x along Opt from 0.5 to 0.9",
    "x/F over opt": "x/F along Opt from 0.5 to 0.9",
    "x/x over opt": "x/x along Opt from 0.5 to 0.9",
}  # fmt: skip
#: How the place of a point is said, by the column that has it. A place that begins with a blank
#: goes on with the part before it.
_PLACES = {
    "setup": "set-up cost {}",
    "value": "Cms/Cps = {}",
    "queue": " of {} tasks",
    "wrong": "first sample wrong by a factor of {}",
    "gpus": "GPUs: {}",
    "engines": "copy engines: {}",
    "interval": "Int = {} minutes",
    "nodes": "{} nodes",
    "load": " at load {}",
    "axis": " over the axis {}",
}
#: What was found of a statement of `dlsim.theory`, by its status.
_STATUS_SAID = {
    **dict.fromkeys(("proved", "ours"), "is proved"),
    "corrected": "does not hold as printed; it is proved with a correction",
    "notation": "is proved; what is printed has other symbols than it needs",
    "refuted": "is refuted",
}
#: The versions of paper B's schedulers, as the names of points have them.
_VERSIONS = ("L/x", "x/F", "L/F", "x/x")
_VERSIONS_MEAN = "L/x is with Load Correction, x/F with Fallback, L/F with both, x/x with neither."


def write_number(value: float, unit: str) -> str:
    """Write a number without its unit: a share as percent with two decimals, else four digits."""
    if math.isnan(value):
        return "?"
    if unit in SHARE_UNITS:
        text = f"{100 * value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def write_numbers(unit: str, *values: float) -> str:
    """Write one number, or several from the first to the last, with their unit."""
    numbers = " to ".join(dict.fromkeys(write_number(value, unit) for value in values))
    return f"{numbers} {unit}".strip() if values else ""


def describe_point(name: str) -> str:
    """Say which comparison a point is.

    >>> describe_point("EDFMN, setup 5, load 0.1")
    'EDFMN, set-up cost 5 at load 0.1'
    """
    return " against ".join(map(_describe_place, name.split(" against ")))


def _describe_place(name: str) -> str:
    words = ""
    for part in name.split(", "):
        column, _, value = part.partition(" ")
        text = _PARTS.get(part, part)
        if part not in _PARTS and column in _PLACES:
            text = _PLACES[column].format(value)
            if not words and text.startswith(" "):  # there is nothing to go on with
                text = part
        words += text if text.startswith(" ") or not words else f", {text}" * bool(text)
    return words


def describe_comparisons(row: VerdictRow) -> str:
    """Say how many comparisons of a claim support it.

    >>> counts = {"for": 2, "open": 7, "against": 13, "verdict": "mixed"}
    >>> describe_comparisons(counts)
    'Of 22 comparisons 2 support the claim, 13 contradict it, 7 show nothing.'
    """
    supporting, undecided, against = (int(row[side]) for side in ("for", "open", "against"))
    total = supporting + undecided + against
    if not total:
        return ""
    if row["verdict"] == "stronger than claimed":
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
    """Say which values of the statistic are on the side of a claim.

    >>> from dlsim.study.claims import load_claims
    >>> known = {one.id: one for one in load_claims()}
    >>> describe_threshold(known["mcdf-10"])
    'The claim asks for more than 10 points (our margin).'
    """
    if claim.within:
        least, greatest = claim.within
        asked = write_numbers(claim.unit, *claim.within)
        if math.isinf(greatest):
            asked = f"at least {write_numbers(claim.unit, least)}"
        elif math.isinf(least):
            asked = f"at most {write_numbers(claim.unit, greatest)}"
        return f"Your rule asks for {asked}."
    margin = write_numbers(claim.unit, claim.margin)
    asked = {
        "above": f"more than {margin}",
        "dramatic": f"more than {margin}",
        "below": f"less than {margin}",
        "marginal": f"a size below {margin}",
        "close": f"a size of at most {margin}" if claim.margin else f"exactly {margin}",
    }.get(claim.direction) or write_numbers(claim.unit, *claim.region)
    if claim.direction == "about":
        return (
            f"The claim asks for {asked} (our margin: {100 * claim.margin:g} % of the printed "
            "number), with the printed number in the interval."
        )
    return f"The claim asks for {asked}{' (our margin)' * claim.has_our_margin}."


def describe_other_margins(row: VerdictRow) -> str:
    """Say what the verdict would be at half and at twice a margin of ours."""
    words = {name: row[name] for name in ("half", "twice") if row[name]}
    if not words:
        return ""
    if set(words.values()) == {row["verdict"]}:
        return f"The verdict would be the same at {' and at '.join(words)} our margin."
    said = ", ".join(f"{word} at {name}" for name, word in words.items())
    return f"The verdict would be {said} our margin."


def describe_rule(claim: Claim, row: VerdictRow) -> str:
    """Say what was measured, what the claim asks for, and at how many points."""
    where = f"Points: {claim.points}"
    if row["points"]:
        comparisons = "comparison" if row["points"] == 1 else "comparisons"
        runs = f", {row['runs']} runs" if row["runs"] else ""
        where += f" ({row['points']} {comparisons}{runs})"
    return f"Measured: {claim.statistic}. {describe_threshold(claim)} {where}."


def describe_measured(claim: Claim, row: VerdictRow) -> str:
    """Say what came out, and which point decides."""
    if not row["points"] or row["verdict"] == "not checkable":
        return ""
    unit = claim.unit
    low, high = write_number(row["low"], unit), write_number(row["high"], unit)
    number = write_numbers(unit, row["estimate"]) + f" (95 %: {low} to {high})" * (low != high)
    said = []
    if row["points"] > 1 or row["smallest"] < row["largest"]:
        nearest = {
            "supported": "Closest to failing",
            "stronger than claimed": "Furthest beyond the paper's number",
        }.get(row["verdict"], "Furthest from the claim")
        extent = write_numbers(unit, row["smallest"], row["largest"])
        where = f"{nearest}: {describe_point(row['what'])}, {number}."
        said += [f"All comparisons: {extent}. {where}"]
        said += [_VERSIONS_MEAN] * any(name in row["what"] for name in _VERSIONS)
    else:
        said.append(f"The measured number is {number}.")
    if not math.isnan(row["median"]):
        said.append(
            f"Median {write_number(row['median'], unit)}, largest "
            f"{write_number(row['outlier'], unit)} at {row['outlier_at']}, mean without it "
            f"{write_number(row['mean_without'], unit)}."
        )
    return " ".join(said)


def describe_reason(claim: Claim, row: VerdictRow) -> str:
    """Say how many comparisons support a claim, and what else its verdict rests on."""
    said = [describe_comparisons(row)]
    status, gap = theorem_status(claim.statement) if claim.kind == "theorem" else ("", "")
    if status:
        found = _STATUS_SAID[status]
        said.append(f"Statement {claim.statement} {found}{f': {gap}' * bool(gap)}.")
    elif row["verdict"] == "not checkable":
        said.append(row["reason"] or claim.reason or "It was not measured.")
    else:
        said += _describe_notes(claim, row)
    said += [f"The authors' reply: {claim.reply}"] * bool(claim.reply)
    return " ".join(filter(None, said))


def _describe_notes(claim: Claim, row: VerdictRow) -> list[str]:
    """Say which effects would be seen, where no case occurred, and how a trend goes."""
    notes = [_describe_distance(claim, row)]
    if not math.isnan(row["detectable"]) and "more runs" not in notes[0]:
        effect = write_numbers(claim.unit, row["detectable"])
        notes.append(
            f"With so few runs only effects above {effect} would be noticed (in 4 of 5 cases)."
        )
    if row["none"] > 0:
        notes.append(
            f"At {row['none']:.0f} of {row['points']} points no case occurred among up to "
            f"{row['cases']:,.0f}."
        )
    if row["steps"] > 0:
        notes.append(
            f"Of {row['steps']:.0f} steps from one point to the next {row['wrong']:.0f} go the "
            "other way."
        )
    return [*notes, describe_other_margins(row)]


def _describe_distance(claim: Claim, row: VerdictRow) -> str:
    """Say how far the interval of an undecided "about" claim ends from the printed number."""
    if claim.direction != "about" or claim.within or row["verdict"] != "inconclusive":
        return ""
    [printed], low, high = claim.printed, row["low"], row["high"]
    apart = max(low - printed, printed - high)
    if not apart > claim.rounding:
        return ""
    said = (
        f"The interval ends {100 * apart / abs(printed):.2g} % beside the printed number, which it "
        "would have to contain to support the claim"
    )
    least, greatest = claim.region
    if least <= low and high <= greatest:
        said += "; all of it lies within our margin, so that more runs are not likely to decide"
    return f"{said}."


def describe_count(row: VerdictRow) -> str:
    """Say at how many points the word of a verdict is true; blank for a single point.

    >>> row = {"verdict": "contradicted", "for": 1, "open": 3, "against": 32, "points": 36}
    >>> describe_count(row)
    'at 32 of 36 points'
    """
    word, points = row["verdict"], row["points"]
    if points < 2 or word == "not checkable":
        return ""
    if word == "mixed":
        return f"(supported at {row['for']}, contradicted at {row['against']} of {points} points)"
    side = {"contradicted": "against", "stronger than claimed": "against", "inconclusive": "open"}
    count = row[side.get(word, "for")]
    return f"at {'all' if count == points else f'{count} of'} {points} points"


@cache
def _verdicts_under_readings(paper: str) -> "dict[str, Counter[str]]":
    """Count the verdicts on every claim of a paper under the readings of the shipped map."""
    place = reference_of(paper).with_name(f"{paper}-readings-intervals.csv")
    if not place.exists():
        return {}
    rules = {"id": "text", "reading": "any", "verdict": "text"}
    rows = files.read_csv(place, rules)
    rows = rows[rows["verdict"] != "not checkable"]
    return {str(name): Counter(words) for name, words in rows.groupby("id")["verdict"]}


def describe_readings(claim: Claim, row: VerdictRow) -> str:
    """Say under how many readings the verdict at full scale is the same; blank if not known."""
    word = row.get("reference") or (row["verdict"] if row["scale"] == "full" else "")
    words = _verdicts_under_readings(claim.paper).get(claim.id)
    if not (word and words) or row["experiment"] != "as shipped" or word == "not checkable":
        return ""
    return f"so under {words[word]} of {words.total()} readings"


#: The texts that `sentences` makes.
_TEXTS = ("claim", "printed", "whose_experiment", "counted", "readings", "measured", "reason")


def sentences(claim: Claim, row: VerdictRow) -> dict[str, str]:
    """Return the texts of a verdict; they are blank where nothing was measured."""
    measured = describe_measured(claim, row)
    return {
        "claim": claim.text,
        "printed": write_numbers(claim.unit, *claim.printed),
        "whose_experiment": "your experiment:" if row["experiment"] == "changed" else "",
        "counted": "" if claim.kind == "theorem" else describe_count(row),
        "readings": describe_readings(claim, row),
        "measured": f"{describe_rule(claim, row)} {measured}" if measured else "",
        "reason": describe_reason(claim, row),
    }


def explain(claim: Claim, row: VerdictRow) -> str:
    """Say in Markdown what was asked, what became of a claim, and which number decides it."""
    texts, measured = sentences(claim, row), describe_measured(claim, row)
    symbol = VERDICTS[row["verdict"]].symbol
    rule = f"{texts['whose_experiment'].capitalize()} ".lstrip()
    rule += "By your rule " if claim.within else ""
    word = f"{row['verdict']} {texts['counted']}".strip()
    head = f"{symbol} **{rule}{claim.id} is {word}.** *{texts['claim']}*"
    quote = f'The paper: "{claim.quote}"' if claim.quote else ""
    printed = f"Printed: {texts['printed']}." if texts["printed"] else ""
    verdict = " ".join(filter(None, [head, quote, printed, measured, texts["reason"]]))
    return f"{describe_rule(claim, row)}\n\n{verdict}" if measured else verdict


def with_sentences(card: pd.DataFrame) -> pd.DataFrame:
    """Add to verdicts what claims.toml says of each claim, and the sentences that readers see."""
    known = {claim.id: claim for claim in load_claims()}
    rows: list[dict[str, Any]] = []
    for row in card.to_dict("records"):
        claim, numbers = known[row["id"]], {str(name): value for name, value in row.items()}
        about = {"where": claim.where, "whose": claim.whose, "figure": claim.figure}
        about["quote"] = claim.quote
        rows.append({**numbers, **about, **sentences(claim, numbers)})
    columns = dict.fromkeys([*card, "where", "whose", "figure", "quote", *_TEXTS])
    return pd.DataFrame(rows, index=card.index, columns=list(columns))


def style_table(frame: pd.DataFrame) -> "Styler":
    """Show a table of texts, which stand at the left."""
    props = [("text-align", "left"), ("vertical-align", "top")]
    styles: Any = [{"selector": "th, td", "props": props}]
    return shown_table(frame).hide().set_table_styles(styles)


# ------------------------------------------------------------------ judging and keeping verdicts


class MarkdownText(str):
    """A text that a notebook shows as Markdown."""

    def _repr_markdown_(self) -> str:
        return str(self)


#: Columns of the points of a claim that could not be measured.
NO_POINTS = ("point", "what", "estimate", *INTERVAL_ENDS, "n")


def find_claim(name: str) -> Claim:
    """Return a claim of the current paper, by its id."""
    known = {one.id: one for one in claims.load_claims(session.current().paper)}
    return known[one_of("a claim", name, known)]


def without_own_policies(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the rows of policies that the paper does not have."""
    known = getattr(session.current().module, "POLICIES", None)
    if known is None or "policy" not in frame:
        return frame
    return frame[frame["policy"].isin(list(known))]


def _arguments(
    claim: Claim, measure: Measure, frames: Sequence[Any], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Give a measure the frames that it names; refuse a call that lacks one."""
    names = measure.frames
    given = dict(zip(names, frames, strict=False)) | {k: v for k, v in named.items() if k in names}
    if len(frames) > len(names) or given.keys() != set(names):
        call = f"judge({claim.id!r}, {', '.join(f'{name}=...' for name in names)})"
        raise InputError(f"{claim.id} is measured on {', '.join(names) or 'no frame'}: call {call}")
    return {
        name: without_own_policies(one) if isinstance(one, pd.DataFrame) else one
        for name, one in given.items()
    }


def measure_claim(
    claim: Claim, frames: Sequence[Any] = (), named: Mapping[str, Any] | None = None
) -> Verdict:
    """Measure a claim on frames and judge it."""
    if claim.id not in MEASURES:
        return claims.judge_claim(claim)
    measure = MEASURES[claim.id]
    arguments = _arguments(claim, measure, frames, named or {})
    try:
        points = measure.function(**arguments)
    except KeyError as error:
        reason = f"The frame has no {error.args[0]!r}, on which this claim is measured."
        return Verdict(claim, "not checkable", reason)
    verdict = claims.judge_claim(claim, points)
    experiment = name_experiment(arguments.values()) if arguments else "as shipped"
    return replace(verdict, numbers={**verdict.numbers, "experiment": experiment})


def _by_readers_rule(claim: Claim, within: Sequence[float]) -> Claim:
    """Return a claim whose statistic must lie between two numbers that a reader gives."""
    if len(within) != 2 or not within[0] < within[1]:  # NaN is no end either
        raise InputError(f"within must be two numbers, the smaller one first; got {within!r}")
    return replace(claim, favour="", within=(float(within[0]), float(within[1])))


def judge(
    names: str | Sequence[str],
    *frames: pd.DataFrame,
    within: Sequence[float] | None = None,
    **named: pd.DataFrame,
) -> MarkdownText:
    """Judge claims of the paper on frames, keep the verdicts, and return them in words.

    Rows of a user's own policies are left out: they are no part of what the paper claims.

    Parameters
    ----------
    names : str or sequence of str
        Ids of claims in data/claims.toml, such as "mcdf-1".
    *frames, **named : DataFrame
        What the claims are measured on: the frames that the measure of the claim (a function of
        dlsim/papers/<paper>.py) has as parameters, in order or by name. A frame that a claim
        does not use may be named.
    within : two float, optional
        A rule of your own: where the statistic must lie, in the unit of the claim (a fraction for
        shares, 0.05 for five percent; ``math.inf`` for no end). Such a verdict says so, and is no
        part of the scorecard.

    Returns
    -------
    MarkdownText
        Two paragraphs per claim: what was measured, what the claim asks for, and at how many
        points; then the verdict, the sentence, and the number that decides.

    Raises
    ------
    InputError
        For an unknown claim, frames that its measure does not take, or a rule that is no range.
    """
    here, paragraphs = session.current(), []
    for name in [names] if isinstance(names, str) else names:
        claim = find_claim(name)
        if within is None:
            here.verdicts[name] = verdict = measure_claim(claim, frames, named)
            paragraphs.append(explain(claim, verdict.row))
        else:
            yours = _by_readers_rule(claim, within)
            verdict = measure_claim(yours, frames, named)
            paragraphs.append(explain(yours, verdict.row))
    return MarkdownText("\n\n".join(paragraphs))


def claim_points(name: str) -> pd.DataFrame:
    """Return the points of a claim as they were judged.

    Columns: the place of the point, ``estimate``, ``low`` and ``high`` (95 % for one point alone),
    ``least`` and ``most`` (95 % for all points of the claim at once). There is no row where the
    claim could not be measured.
    """
    known = session.current().verdicts
    points = known[one_of("a claim that was judged", name, known)].intervals
    if points is None:
        return pd.DataFrame(columns=NO_POINTS)
    missing = [name for name in NO_POINTS if name not in points]
    return points.reindex(columns=[*points, *missing]) if points.empty else points.copy()


def plot_claim(name: str, x: str, **place: Any) -> "Axes":
    """Draw the points that a claim was judged by, with the intervals that hold all of them at once.

    The dashed line is the end of what the claim says.

    Parameters
    ----------
    name : str
        Id of a claim that was judged.
    x : str
        The column of `claim_points` along the axis; there is a line per value of ``what``.
    **place
        Values of further columns, of which only these rows are drawn: ``setup=5``.
    """
    from dlsim.study import plots

    claim, table = find_claim(name), claim_points(name)
    for column, value in place.items():
        table = table[table[column] == value]
    edge = claim.margin if claim.direction not in claims.PRINTED else claim.printed[0]
    return plots.plot_points(table, x, claim.unit, edge)


#: Columns of the points by which claims were judged (data/README.md says what they hold).
POINT_COLUMNS = ("claim", "point", "group", "estimate", *INTERVAL_ENDS, "n")


def collect_claim_points() -> pd.DataFrame:
    """Return the points by which the claims of the paper were judged, in the order of judging."""
    tables = [claim_points(name).assign(claim=name) for name in session.current().verdicts]
    tables = [table for table in tables if len(table)]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
    return table.reindex(columns=POINT_COLUMNS).replace({"n": {math.inf: math.nan}})
