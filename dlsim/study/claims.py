"""Claims of the papers as data, and the one rule that turns numbers into a verdict.

A row of data/claims.toml says on which side of which threshold a statistic lies, at every
point (shares are fractions: 1 percentage point is 0.01). The direction of the claim
gives the *region* in which the statistic must lie (`MARGINS`).

A point is *for* the claim if its interval lies wholly in the region, *against* it if the interval
lies wholly outside, and *open* otherwise; for a region with two ends this is a test of
equivalence. "About" a number asks in addition that the interval contains that number, as far as its
printed digits tell it. The verdict on its points, a family of comparisons, is

- *supported* if every point is for it, each by its own 95 % interval (an intersection of tests,
  which needs no correction);

otherwise, by intervals that cover all points of the family at once with probability 95 %,

- *inconclusive* if no point is decided, that is, for or against it,
- *contradicted* if fewer than a tenth of the decided points are for it,
- *partly supported* if fewer than a tenth of the decided points are against it,
- *mixed* otherwise.

So a further point against a claim never makes its verdict milder.
A claim is *stronger than claimed* if every point is against it because it exceeds the paper's
number in the paper's favour. The verdict on a theorem is the status of its statement in
`dlsim.theory`.
"""

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dlsim import files
from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.study.stats import ENDS, INTERVAL_ENDS, LEVEL, family, share_bounds
from dlsim.validate import MAX_MAGNITUDE, did_you_mean, number, one_of, require_table

#: Every direction with its default margin.
MARGINS = {
    "above": 0.0,  # the region lies above the margin
    "below": 0.0,  # below the margin
    "dramatic": 0.10,  # above the margin
    "marginal": 0.02,  # nearer to 0 than the margin
    "close": 0.05,  # at most the margin away from 0
    "about": 0.1,  # at most this part of the printed number away from it
    "between": 0.0,  # from the first to the second printed number; the margin widens the region
}
#: The sides of a claim that a point can be on.
SIDES = ("for", "open", "against")
WHOSE = ("authors' measurement", "authors' statement", "theorem", "quoted")
CLAIM_KINDS = ("measured", "theorem")


class VerdictWord(NamedTuple):
    """How readers see a verdict: the symbol and the word say the same without the colour."""

    symbol: str
    color: str  # of the background
    meaning: str


#: Every word of a verdict, in the order of bars and legends.
VERDICTS = {
    "supported": VerdictWord(
        "✓", "#BFE3D6",
        "Every comparison that the claim makes comes out as claimed (each with 95 % confidence).",
    ),
    "partly supported": VerdictWord(
        "◐", "#E3EFB4",
        "Of the comparisons that are decided, more than nine in ten come out as claimed. "
        "Of a theorem: not true as printed, proved with a correction that is named.",
    ),
    "mixed": VerdictWord(
        "◪", "#F6E7A8",
        "At least a tenth of the decided comparisons comes out as claimed, a tenth otherwise.",
    ),
    "contradicted": VerdictWord(
        "✗", "#F2B999",
        "Of the comparisons that are decided, more than nine in ten come out otherwise.",
    ),
    "inconclusive": VerdictWord(
        "?", "#DCE3F2",
        "With this number of runs the intervals are too wide to say.",
    ),
    "not checkable": VerdictWord(
        "–", "#E4E4E4",
        "The paper does not say enough to measure it, or it is not about numbers.",
    ),
    "stronger than claimed": VerdictWord(
        "↑", "#C9DFF5",
        "The measurement exceeds the paper's number, in the paper's favour.",
    ),
}  # fmt: skip

#: The columns of a verdict, with the kind of value that `files.read_csv` reads (data/README.md
#: says what they hold).
COLUMNS = {
    "id": "text",
    "verdict": "text",
    **dict.fromkeys(("for", "open", "against", "points", "runs"), "whole"),
    "what": "any",
    **dict.fromkeys(("estimate", "low", "high"), "number or blank"),
    **dict.fromkeys(("smallest", "largest", "detectable"), "number or blank"),
    **dict.fromkeys(("none", "cases", "steps", "wrong"), "number or blank"),
    **dict.fromkeys(("median", "outlier", "mean_without"), "number or blank"),
    **dict.fromkeys(
        ("half", "twice", "outlier_at", "unit", "scale", "sample", "experiment", "reason"), "any"
    ),
}
#: Directions of claims that compare with printed numbers, and with how many.
PRINTED = {"about": 1, "between": 2}
#: Units of shares, which are kept as fractions.
SHARE_UNITS = ("%", "points")
#: On which side of the printed number the measured one would be even better for the paper.
FAVOURS = ("", "more", "less")

#: What the status of a statement of `dlsim.theory` means for a claim.
VERDICT_OF_STATUS = {
    **dict.fromkeys(("proved", "ours"), "supported"),
    **dict.fromkeys(("corrected", "notation"), "partly supported"),
    "refuted": "contradicted",
}
#: What a point may have beside its estimate, as a mean that one value dominates has.
_BESIDE = ("median", "outlier", "outlier_at", "mean_without")
#: The numbers of a claim that was not measured.
_NOT_MEASURED: dict[str, Any] = {
    name: {"whole": 0, "number or blank": math.nan}.get(kind, "") for name, kind in COLUMNS.items()
}


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper, as data."""

    id: str
    paper: str
    where: str
    whose: str
    text: str
    statistic: str
    points: str  # in words: where the statistic is compared
    direction: str
    margin: float = math.nan
    printed: tuple[float, ...] = ()
    unit: str = "%"
    reason: str = ""
    kind: str = "measured"
    statement: str = ""
    figure: str = ""
    range: tuple[float, ...] = ()  # the ends of what the statistic can be
    favour: str = ""  # one of `FAVOURS`
    reply: str = ""  # what the authors of the paper answered, with date and place
    within: tuple[float, ...] = ()  # the region of a reader's own rule, in place of the claim's
    quote: str = ""  # the paper's own words, where they are few

    @property
    def number(self) -> str:
        """The number of the claim among those of its paper."""
        return self.id.rpartition("-")[2]

    def __post_init__(self) -> None:
        """Refuse a claim that could not be judged, and fill in the default margin."""
        known = {"whose": WHOSE, "kind": CLAIM_KINDS, "favour": FAVOURS, "direction": MARGINS}
        for name, options in known.items():
            one_of(f"claim {self.id}: {name}", getattr(self, name), options)
        if self.id.rpartition("-")[0] != self.paper:
            self._refuse(f"id must be '{self.paper}-<number>'", self.id)
        needed = PRINTED.get(self.direction)
        if needed and (len(self.printed) != needed or list(self.printed) != sorted(self.printed)):
            self._refuse(f"'{self.direction}' needs {needed} printed in rising order", self.printed)
        if self.range and (len(self.range) != 2 or self.range[0] >= self.range[1]):
            self._refuse("range must be the least and the greatest possible value", self.range)
        if self.kind == "theorem" and not self.statement:
            self._refuse("a theorem needs the key of its statement", self.statement)
        if math.isnan(self.margin):
            object.__setattr__(self, "margin", MARGINS[self.direction])

    @property
    def has_our_margin(self) -> bool:
        """Whether the margin is ours, rather than a number that the paper prints."""
        return bool(self.margin) and self.margin not in self.printed and not self.within

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit of the printed number; a share is printed in percent."""
        digits = -int(Decimal(str(self.printed[0])).as_tuple().exponent)
        return 0.5 * 10.0 ** -max(digits, 2 if self.unit in SHARE_UNITS else 0)

    def _refuse(self, rule: str, value: object) -> None:
        raise InputError(f"claim {self.id}: {rule}; got {value!r}")

    @property
    def region(self) -> tuple[float, float]:
        """Where the statistic must lie, as (least, greatest)."""
        if self.within:
            return self.within[0], self.within[1]
        if self.direction == "about":
            [number] = self.printed
            half = self.margin * abs(number)
            return number - half, number + half
        if self.direction == "between":
            return self.printed[0] - self.margin, self.printed[1] + self.margin
        if self.direction == "below":
            return -math.inf, self.margin
        half_line = self.direction in ("above", "dramatic")
        return (self.margin, math.inf) if half_line else (-self.margin, self.margin)


def _to_numbers(name: str, value: Any) -> tuple[float, ...]:
    rule = "a number or a list of numbers"
    each = value if isinstance(value, list) else [value]
    return tuple(float(number(name, one, -MAX_MAGNITUDE, rule=rule)) for one in each)


_FIELDS = files.field_rules(
    Claim,
    printed=_to_numbers,
    range=_to_numbers,
    margin=partial(number, low=-MAX_MAGNITUDE, rule="a number"),
)
del _FIELDS["within?"]  # it comes from a call of `dlsim.study.judge`, not from a file


def _read_claims(path: StrPath) -> tuple[Claim, ...]:
    rows = files.read_tables(path, {"claim": _FIELDS}).get("claim")
    if not rows:
        raise InputError(f"{path}: must hold [[claim]] tables")
    claims = tuple(files.located(os.fspath(path), Claim, **row) for row in rows)
    twice = [name for name, count in Counter(c.id for c in claims).items() if count > 1]
    if twice:
        raise InputError(f"{path}: claim {twice[0]!r} is there twice; ids must differ")
    return claims


@cache
def _shipped_claims() -> tuple[Claim, ...]:
    """Read data/claims.toml once, since every verdict looks its claim up."""
    return _read_claims(files.shared_file("data/claims.toml"))


def load_claims(paper: str | None = None, path: StrPath | None = None) -> list[Claim]:
    """Read the claims of one paper or of all, by default from data/claims.toml."""
    claims = _shipped_claims() if path is None else _read_claims(path)
    papers = list(dict.fromkeys(c.paper for c in claims))
    if paper is not None and paper not in papers:
        known = f"claims are known of {', '.join(papers)}"
        raise InputError(f"{known}; got {paper!r}{did_you_mean(paper, papers)}")
    return [c for c in claims if paper in (None, c.paper)]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim: one word, and the numbers that it rests on."""

    claim: Claim
    word: str  # of `VERDICTS`
    reason: str = ""  # why it could not be measured, where the claim does not say so
    #: Values of `COLUMNS`, if anything was measured.
    numbers: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    #: The points as `intervals` returns them; None if nothing was measured.
    intervals: pd.DataFrame | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        one_of("a verdict", self.word, VERDICTS)

    def __str__(self) -> str:
        return self.word

    @property
    def row(self) -> dict[str, Any]:
        """The verdict as a row of a scorecard."""
        about = {"id": self.claim.id, "verdict": self.word, "unit": self.claim.unit}
        blank = _NOT_MEASURED | {"experiment": "as shipped"}
        return {**blank, **self.numbers, **about, "reason": self.reason}

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of comparisons for the claim, open, and against it."""
        return tuple(self.row[side] for side in SIDES)


def _check_points(points: pd.DataFrame, claim: Claim) -> pd.DataFrame:
    numbers = list(ENDS)
    frame = require_table(f"points of claim {claim.id}", points, ("point", *numbers), unique=False)
    frame = frame.reset_index(drop=True)
    frame[numbers] = frame[numbers].astype(float).replace([math.inf, -math.inf], math.nan)
    crossed = frame.loc[frame["low"] > frame["high"], ["point", "low", "high"]]
    for place, low, high in crossed.itertuples(index=False):
        raise InputError(
            f"claim {claim.id}: low must not exceed high, as {low} > {high} at {place}"
        )
    filled: dict[str, Any] = {"n": math.inf, "values": None, "total": math.nan}
    frame = frame.assign(**{name: filled[name] for name in filled if name not in frame})
    frame["values"] = frame["values"].astype(object).where(frame["values"].notna(), None)
    return frame


def intervals(points: pd.DataFrame, claim: Claim) -> pd.DataFrame:
    """Compute two intervals of every point: for it alone, and for all points at once.

    If a point has replicates (``values``), `dlsim.study.stats.family` resamples them. If it is a
    share of a ``total``, its bounds are exact. Otherwise the given interval is taken to be
    Student's of ``n`` replicates. Intervals are cut to the range of the claim.

    The result has the points with ``low`` and ``high`` (one point alone, 95 %), ``least`` and
    ``most`` (all points at once, 95 %), and ``se``, the standard error.
    """
    frame = _with_student_intervals(_check_points(points, claim))
    is_sampled = frame["values"].notna().to_numpy()
    if is_sampled.any():
        resampled = family(list(frame.loc[is_sampled, "values"]))
        frame.loc[is_sampled, [*INTERVAL_ENDS, "se"]] = resampled[[*INTERVAL_ENDS, "se"]].to_numpy()
    is_share = frame["total"].notna().to_numpy()
    if is_share.any():
        frame.loc[is_share, INTERVAL_ENDS] = _exact_bounds(frame[is_share], len(frame))
    if claim.range:
        frame[INTERVAL_ENDS] = frame[INTERVAL_ENDS].clip(*claim.range)
    return frame


def _with_student_intervals(frame: pd.DataFrame) -> pd.DataFrame:
    """Widen Student's interval of every point to one that holds for all points at once."""
    mean = frame["estimate"]
    degrees = (frame["n"].astype(float) - 1).clip(lower=1)
    alone = stdtrit(degrees, (1 + LEVEL) / 2)
    at_once = stdtrit(degrees, 1 - (1 - LEVEL ** (1 / len(frame))) / 2)
    return frame.assign(
        se=(frame["high"] - frame["low"]) / (2 * alone),
        least=mean + (frame["low"] - mean) * at_once / alone,
        most=mean + (frame["high"] - mean) * at_once / alone,
    )


def _exact_bounds(shares: pd.DataFrame, points: int) -> Any:
    """Return low, high, least and most of shares of a total, one row per share."""
    total = shares["total"].astype(float)
    count = (shares["estimate"] * total).round()
    bounds = [share_bounds(count, total, points=m) for m in (1, points)]
    return np.column_stack([*bounds[0], *bounds[1]])


def _sides(low: Any, high: Any, claim: Claim) -> Any:
    """Return "for" for intervals inside the region, "against" outside, and "open" across."""
    least, greatest = claim.region
    if claim.within or claim.direction in ("close", *PRINTED):
        inside, outside = (least <= low) & (high <= greatest), (high < least) | (low > greatest)
        if claim.direction == "about" and not claim.within:
            [number] = claim.printed
            inside &= (low <= number + claim.rounding) & (high >= number - claim.rounding)
    else:
        inside, outside = (least < low) & (high < greatest), (high <= least) | (low >= greatest)
    return np.select([inside, outside], ["for", "against"], "open")


def _merge_groups(sides: Any, groups: "pd.Series[Any]") -> list[str]:
    """Return one side per group: "for" if all members are, "against" if any is."""
    merged = []
    for _, members in pd.Series(sides).groupby(groups.to_numpy(), sort=False):
        if (members == "against").any():
            merged.append("against")
        else:
            merged.append("for" if (members == "for").all() else "open")
    return merged


def word_of_counts(supporting: int, against: int) -> str:
    """Return the verdict where not all points are for a claim: by its decided points."""
    decided = supporting + against
    if not decided:
        return "inconclusive"
    if 10 * supporting < decided:
        return "contradicted"
    return "partly supported" if 10 * against < decided else "mixed"


def _exceeds(points: pd.DataFrame, claim: Claim) -> bool:
    """Tell whether all estimates are beyond the paper's number, in the paper's favour."""
    least, greatest = claim.region
    estimate = points["estimate"]
    if claim.favour == "more":
        return bool((estimate > greatest).all())
    return bool(claim.favour) and bool((estimate < least).all())


def _find_worst_point(frame: pd.DataFrame, sides: Any, claim: Claim) -> int:
    """Return the position of the point that speaks most against the claim."""
    least, greatest = claim.region
    low, high = frame["low"].to_numpy(float), frame["high"].to_numpy(float)
    slack = np.fmin(low - least, greatest - high)
    rank = np.array([("against", "open", "for").index(side) for side in sides])
    return int(np.lexsort((slack, rank))[0])


def _smallest_effect(frame: pd.DataFrame, sides: Any) -> float:
    """Return the effect that these runs would show at every open point with probability 80 %."""
    some = frame[(np.asarray(sides) == "open") & (frame["se"] > 0)]
    if some.empty:
        return math.nan
    degrees = (some["n"].astype(float) - 1).clip(lower=1)
    return float(((some["most"] - some["least"]) / 2 + stdtrit(degrees, 0.8) * some["se"]).max())


@cache
def _statements() -> dict[str, tuple[str, str]]:
    """Return what the derivations of `dlsim.theory` found, and the gap, by the statement's key."""
    rules = {"key": "text", "status": "text", "gap": "any"}
    rows = files.read_csv(files.shared_file("data/statements.csv"), rules)
    return {row["key"]: (row["status"], row["gap"]) for _, row in rows.iterrows()}


def theorem_status(key: str) -> tuple[str, str]:
    """Return what was found of a statement of `dlsim.theory` ("" if it has none), and the gap."""
    return _statements().get(key, ("", ""))


def judge_points(points: pd.DataFrame, claim: Claim) -> Verdict:
    """Judge a measured claim by the rule in the docstring of the module.

    Parameters
    ----------
    points : DataFrame
        One row per point: ``point`` (its name), ``estimate``, ``low`` and ``high`` (95 %
        interval; NaN if it is unknown, which leaves the point open). Optional columns:
        ``values``, the replicates; ``total``, of which the estimate is a share; ``n``, the number
        of replicates; ``group``: the points of a group count as one; ``steps`` and ``wrong``, the
        numbers of steps between neighbours along a trend, and of those that go in the wrong
        direction; ``median``, ``outlier`` (the largest value), ``outlier_at`` (where that is) and
        ``mean_without`` it.
    claim : Claim
        The claim.
    """
    if points.empty:
        return Verdict(claim, "not checkable", "No point was run.", intervals=points)
    runs = int(points["n"].min()) if "n" in points else 0
    return judge_intervals(intervals(points, claim), claim, runs)


def judge_intervals(frame: pd.DataFrame, claim: Claim, runs: int = 0) -> Verdict:
    """Judge a claim by its points with their intervals, as `intervals` returns them.

    Where the margin is ours, the verdict says what it would be at half and at twice the margin.
    """
    word, chosen, merged = _choose_sides(frame, claim)
    count = Counter(merged)
    worst_point: Any = frame.iloc[_find_worst_point(frame, chosen, claim)].to_dict()
    numbers = {name: worst_point[name] for name in (*ENDS, *_BESIDE) if name in worst_point}
    numbers |= {"what": worst_point["point"], "runs": runs}
    numbers |= {"smallest": frame["estimate"].min(), "largest": frame["estimate"].max()}
    if frame[["low", "high"]].isna().any(axis=1).all():
        what = (
            "No point has an interval: give it more runs (two at least; more where all are equal)."
        )
        is_measured = bool(frame["estimate"].notna().any())
        return Verdict(
            claim, "inconclusive" if is_measured else "not checkable", what, numbers, frame
        )
    numbers |= {side: count[side] for side in SIDES} | {"points": count.total()}
    numbers |= _count_notes(frame)
    if count["open"]:
        numbers["detectable"] = _smallest_effect(frame, chosen)
    for name, other in _other_margins(claim).items():
        numbers[name] = _choose_sides(frame, other)[0]
    return Verdict(claim, word, "", numbers, frame)


def _groups(frame: pd.DataFrame) -> "pd.Series[Any]":
    """Return the numbers of the comparisons that the points belong to."""
    return frame["group"] if "group" in frame else pd.Series(frame.index, index=frame.index)


def _choose_sides(frame: pd.DataFrame, claim: Claim) -> tuple[str, Any, list[str]]:
    """Return the verdict, the side of every point that it rests on, and of every comparison."""
    alone = _sides(frame["low"], frame["high"], claim)
    at_once = _sides(frame["least"], frame["most"], claim)
    merged_alone, merged = (_merge_groups(sides, _groups(frame)) for sides in (alone, at_once))
    if set(merged_alone) == {"for"}:
        return "supported", alone, merged_alone
    word = word_of_counts(merged.count("for"), merged.count("against"))
    if word == "contradicted" and set(merged) == {"against"} and _exceeds(frame, claim):
        word = "stronger than claimed"
    return word, at_once, merged


def _other_margins(claim: Claim) -> dict[str, Claim]:
    """Return the claim with half and with twice a margin of ours, where that can be."""
    if not claim.has_our_margin:
        return {}
    both = {"half": 0.5, "twice": 2.0}
    claims = {name: replace(claim, margin=factor * claim.margin) for name, factor in both.items()}
    least, greatest = claim.range or (-math.inf, math.inf)
    can_be = {
        name: one.region[0] < greatest and one.region[1] > least for name, one in claims.items()
    }
    return {name: one for name, one in claims.items() if can_be[name]}


def _count_notes(frame: pd.DataFrame) -> dict[str, float]:
    """Count comparisons in which no case occurred, and steps of a trend in the other direction."""
    empty = frame["total"].notna() & (frame["estimate"] == 0)
    none = int(empty.groupby(_groups(frame).to_numpy()).all().sum())
    notes = {"none": none, "cases": frame.loc[empty, "total"].max()} if none else {}
    if "steps" in frame:
        notes |= {name: int(frame[name].sum()) for name in ("steps", "wrong")}
    return notes


def judge_claim(claim: Claim, points: pd.DataFrame | None = None) -> Verdict:
    """Judge a theorem by its statement if `dlsim.theory` has it, any other claim by its numbers."""
    done = Verdict(claim, "not checkable") if points is None else judge_points(points, claim)
    is_proof = claim.kind == "theorem" and not claim.within
    status = theorem_status(claim.statement)[0] if is_proof else ""
    return replace(done, word=VERDICT_OF_STATUS[status], reason="") if status else done


def agreement(word: str, reference: str) -> str:
    """Compare a verdict with that at full scale.

    Two verdicts contradict each other if one has evidence for a claim and the other only evidence
    against it, or if one finds every point for it and the other some points against it.
    """
    if not reference or word == reference:
        return "agrees" if reference else ""
    if word in ("inconclusive", "not checkable"):
        return f"{word.replace('checkable', 'checked')} at this size"
    if reference in ("inconclusive", "not checkable"):
        return "more than at full scale"
    two = {word, reference}
    is_against = two & {"contradicted", "stronger than claimed"}
    is_apart = is_against and two & {"supported", "partly supported"}
    return "CONTRADICTS" if is_apart or two == {"supported", "mixed"} else "agrees in part"


def tabulate(verdicts: Iterable[Verdict], **about: str) -> pd.DataFrame:
    """Tabulate verdicts, one row per claim; `about` are values of all rows, such as the scale."""
    return pd.DataFrame([v.row | about for v in verdicts], columns=list(COLUMNS))


def reference_of(paper: str) -> Path:
    """Return the path of the scorecard of a paper at full scale."""
    return files.shared_folder("data") / "reference" / paper / f"{paper}-claims.csv"


def read_scorecard(path: StrPath) -> pd.DataFrame:
    """Read the scorecard of a paper; refuse any other table."""
    frame = files.read_csv(path, COLUMNS, unique="id")
    known = [claim.id for claim in load_claims()]
    for name, word in zip(frame["id"], frame["verdict"], strict=True):
        one_of(f"{os.fspath(path)}: a verdict", word, VERDICTS)
        one_of(f"{os.fspath(path)}: a claim", name, known)
    return frame[list(COLUMNS)]


def beside_reference(card: pd.DataFrame) -> pd.DataFrame:
    """Add to verdicts their paper, and to those of a quick run the verdicts at full scale.

    ``agreement`` says whether the two agree; both are blank for a run that is no quick run of what
    dlsim ships.
    """
    papers = {claim.id: claim.paper for claim in load_claims()}
    card = card.assign(paper=card["id"].map(papers), reference="")
    is_beside = (card["scale"] == "quick") & (card["experiment"] == "as shipped")
    for paper in card.loc[is_beside, "paper"].unique():
        if reference_of(paper).exists():
            shipped = read_scorecard(reference_of(paper)).set_index("id")["verdict"]
            rows = is_beside & (card["paper"] == paper)
            card.loc[rows, "reference"] = card.loc[rows, "id"].map(shipped).fillna("")
    both = zip(card["verdict"], card["reference"], strict=True)
    return card.assign(agreement=[agreement(*pair) for pair in both])


def headline(words: Iterable[str]) -> str:
    """Count verdicts in one line.

    >>> headline(["supported", "supported", "contradicted"])
    '3 claims: 2 supported, 0 partly supported, 0 mixed, 1 contradicted, 0 inconclusive, 0 not checkable'
    """  # noqa: E501
    count = Counter(words)
    shown = [word for word in VERDICTS if word != "stronger than claimed" or count[word]]
    counted = ", ".join(f"{count[word]} {word}" for word in shown)
    total = count.total()
    return f"{total} claim{'s' * (total != 1)}: {counted}"
