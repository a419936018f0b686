"""Claims of the papers as data, and the one rule that turns numbers into a verdict.

A row of data/claims.toml says on which side of which threshold a statistic lies, at every
point (shares are fractions: 1 percentage point is 0.01). The direction of the claim
gives the *region* in which the statistic must lie (`MARGINS`).

A point is *for* the claim if its interval lies wholly in the region, *against* it if the interval
lies wholly outside, and *open* otherwise; for a region with two ends this is a test of
equivalence. The verdict on its points, a family of comparisons, is

- *holds* if every point is for it, each by its own 95 % interval (an intersection of tests,
  which needs no correction);

otherwise, by intervals that cover all points of the family at once with probability 95 %,

- *contrary* if a point is against it and none for it, *mixed* if there are both,
- *in part* if a point is for it and none against it, *undecided* if there is neither.

The verdict on a theorem is the status of its statement in `dlsim.theory`.

The data hold these words, so that tables of results stay comparable with earlier ones. Readers
see the words of `SHOWN_WORDS`: supported, partly supported, mixed, contradicted, inconclusive,
not checkable. A claim is *stronger than claimed* if every point is against it because it exceeds
the paper's number in the paper's favour.
"""

import importlib
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from dlsim import files
from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.study.stats import ENDS, LEVEL, family, share_bounds
from dlsim.validate import MAX_MAGNITUDE, did_you_mean, number, one_of, require_table

#: Every direction with its default margin.
MARGINS = {
    "above": 0.0,  # the region lies above the margin
    "below": 0.0,  # below the margin
    "dramatic": 0.10,  # above the margin
    "marginal": 0.02,  # nearer to 0 than the margin
    "close": 0.05,  # at most the margin away from 0
    "same": 0.02,  # any two points at most the margin apart
    "about": 0.0,  # within a fifth of the printed number; the margin widens the region
    "between": 0.0,  # from the first to the second printed number; the margin widens the region
}
#: The sides of a claim that a point can be on.
SIDES = ("for", "open", "against")
#: How many printed numbers a direction compares with.
PRINTED = {"about": 1, "between": 2}

WHOSE = ("authors' measurement", "authors' statement", "theorem", "quoted")
CLAIM_KINDS = ("measured", "theorem")


class VerdictWord(NamedTuple):
    """How readers see a verdict: the symbol and the word say the same without the colour."""

    shown: str
    symbol: str
    color: str  # of the background
    meaning: str


#: The verdicts by the words of the data, best first.
VERDICT_WORDS = {
    "holds": VerdictWord(
        "supported", "✓", "#BFE3D6",
        "Every comparison that the claim makes comes out as claimed (each with 95 % confidence).",
    ),
    "in part": VerdictWord(
        "partly supported", "◐", "#E3EFB4",
        "Some comparisons come out as claimed, and none is shown to be otherwise.",
    ),
    "mixed": VerdictWord(
        "mixed", "◪", "#F6E7A8",
        "Some comparisons come out as claimed, and others are shown to be otherwise.",
    ),
    "contrary": VerdictWord(
        "contradicted", "✗", "#F2B999",
        "Some comparisons are shown to be otherwise, and none comes out as claimed.",
    ),
    "undecided": VerdictWord(
        "inconclusive", "?", "#DCE3F2",
        "With this number of runs the intervals are too wide to say.",
    ),
    "cannot be checked": VerdictWord(
        "not checkable", "–", "#E4E4E4",
        "The paper does not say enough to measure it, or it is not about numbers.",
    ),
}  # fmt: skip
#: Shown in place of "contradicted" if the measured number exceeds the paper's in its favour.
STRONGER = "stronger than claimed"
#: Every word that readers see, in the order of bars and legends.
SHOWN = {one.shown: one for one in VERDICT_WORDS.values()}
SHOWN[STRONGER] = VerdictWord(
    STRONGER, "↑", "#C9DFF5", "The measurement exceeds the paper's number, in the paper's favour."
)
SYMBOLS = {word: one.symbol for word, one in VERDICT_WORDS.items()}
SHOWN_WORDS = {word: one.shown for word, one in VERDICT_WORDS.items()}
SHOWN_SYMBOLS = {word: one.symbol for word, one in SHOWN.items()}
#: On which side of the printed number the measured one would be even better for the paper.
FAVOURS = ("", "more", "less")

#: The columns of a scorecard.
SCORECARD_COLUMNS = (
    "id paper where whose claim printed measured points verdict reason figure reference agreement"
).split()
#: Units of shares, which are kept as fractions.
_SHARE_UNITS = ("%", "points")

#: What the status of a statement of `dlsim.theory` means for a claim.
VERDICT_OF_STATUS = {
    **dict.fromkeys(("proved", "ours"), "holds"),
    **dict.fromkeys(("corrected", "notation"), "in part"),
    "refuted": "contrary",
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
    shown: str = ""  # the sentence that readers see, where `text` does not stand alone

    @property
    def number(self) -> str:
        """The number of the claim among those of its paper."""
        return self.id.rpartition("-")[2]

    @property
    def sentence(self) -> str:
        """The sentence that readers see; tables of results keep `text`."""
        return self.shown or self.text

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

    def _refuse(self, rule: str, value: object) -> None:
        raise InputError(f"claim {self.id}: {rule}; got {value!r}")

    @property
    def threshold(self) -> str:
        """The condition on the statistic by direction and margin, in words."""
        words = {"above": "more than", "dramatic": "more than", "below": "less than"}
        words |= {"marginal": "nearer to 0 than", "close": "within", "same": "no two farther than"}
        margin = write_numbers(self.unit, self.margin)
        return f"{words.get(self.direction, self.direction)} {margin}"

    @property
    def region(self) -> tuple[float, float]:
        """Where the statistic must lie, as (least, greatest)."""
        if self.direction in PRINTED:
            first, last = self.printed[0], self.printed[-1]
            ends = (first, last) if self.direction == "between" else (0.8 * first, 1.2 * first)
            return min(ends) - self.margin, max(ends) + self.margin
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
    """The verdict on a claim, with its reason."""

    claim: Claim
    word: str  # of `SYMBOLS`
    reason: str  # in sentences
    statistic: str = ""  # the measured numbers, as text
    counts: tuple[int, ...] = ()  # the numbers of points for the claim, open, and against it
    #: The row of `intervals` that speaks most against the claim.
    worst_point: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    #: The fewest replicates of a point, 0 where they are not known.
    runs: int = field(default=0, compare=False, repr=False)
    #: The points as `intervals` returns them; None if nothing was measured.
    intervals: pd.DataFrame | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        one_of("a verdict", self.word, SYMBOLS)

    def __str__(self) -> str:
        return self.word

    @property
    def points(self) -> str:
        """How many points are for the claim, open, and against it."""
        return _describe_counts(self.counts)

    @property
    def word_for_readers(self) -> str:
        """The word that readers see."""
        return word_for_readers(self.claim, self.word, self.points, self.statistic)


def _describe_counts(counts: tuple[int, ...]) -> str:
    named = [f"{number} {side}" for number, side in zip(counts, SIDES, strict=False)]
    return f"{', '.join(named)}, of {sum(counts)}" if counts else ""


def write_number(value: float, unit: str) -> str:
    """Write a number without its unit: a share as percent with two decimals, else four digits."""
    if math.isnan(value):
        return "?"
    if unit in _SHARE_UNITS:
        text = f"{100 * value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def write_numbers(unit: str, *values: float) -> str:
    """Write one number, or several from the first to the last, with their unit."""
    numbers = " to ".join(dict.fromkeys(write_number(value, unit) for value in values))
    return f"{numbers} {unit}".strip() if values else ""


def word_for_readers(claim: Claim, word: str, points: str, measured: str) -> str:
    """Return the word that readers see for a verdict, from the texts of a row of a scorecard."""
    extent = re.match(r"[-\d.,e+]+( to [-\d.,e+]+)?", measured)
    all_against = word == "contrary" and points.startswith("0 for, 0 open")
    if not (claim.favour and extent and all_against):
        return SHOWN_WORDS[word]
    ends = [float(number.replace(",", "")) for number in extent[0].split(" to ")]
    scale = 100 if claim.unit in _SHARE_UNITS else 1
    least, greatest = (scale * end for end in claim.region)
    exceeds = min(ends) > greatest if claim.favour == "more" else max(ends) < least
    return STRONGER if exceeds else SHOWN_WORDS[word]


def words_for_readers(card: pd.DataFrame) -> "pd.Series[str]":
    """Return the words that readers see for the verdicts of a scorecard, row by row."""
    known = {claim.id: claim for claim in load_claims()}
    rows = card[["id", "verdict", "points", "measured"]].astype(str).to_numpy().tolist()
    words = [
        word_for_readers(known[name], *row) if name in known else SHOWN_WORDS[row[0]]
        for name, *row in rows
    ]
    return pd.Series(words, index=card.index, dtype=object)


def _pairwise_differences(points: pd.DataFrame) -> pd.DataFrame:
    """Return the differences of any two points of one part."""
    rows: list[Any] = []
    for (_, a), (_, b) in combinations(points.iterrows(), 2):
        row: dict[str, Any] = {"point": f"{b['point']} against {a['point']}"}
        row["estimate"] = mean = b["estimate"] - a["estimate"]
        row["low"] = mean - math.hypot(b["estimate"] - b["low"], a["high"] - a["estimate"])
        row["high"] = mean + math.hypot(b["high"] - b["estimate"], a["estimate"] - a["low"])
        row["n"], one, other = min(a["n"], b["n"]), a["values"], b["values"]
        if one is not None and other is not None and len(one) == len(other):
            row["values"] = np.asarray(other) - np.asarray(one)
        rows.append(row)
    if not rows:  # one point has no range
        nothing = dict.fromkeys(ENDS, math.nan)
        rows = [{"point": points["part"].iloc[0], **nothing}]
    return pd.DataFrame(rows)


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
    filled: dict[str, Any] = {
        "part": "the grid",
        "n": math.inf,
        "values": None,
        "total": math.nan,
        "discordant": 0,
    }
    frame = frame.assign(**{name: filled[name] for name in filled if name not in frame})
    frame["values"] = frame["values"].astype(object).where(frame["values"].notna(), None)
    if claim.direction == "same":
        parts = [_pairwise_differences(part) for _, part in frame.groupby("part", sort=False)]
        frame = pd.concat(parts, ignore_index=True)
        frame = frame.reindex(columns=["point", *numbers, "n", "values", "total", "discordant"])
    return frame


def intervals(points: pd.DataFrame, claim: Claim) -> pd.DataFrame:
    """Compute two intervals of every point: for it alone, and for all points at once.

    If a point has replicates (``values``), `dlsim.study.stats.family` resamples them. If it is a
    share of a ``total``, its bounds are exact; a share that can be negative is a net share, and
    ``discordant`` counts the cases that differ in either direction. Otherwise the given interval is
    taken to be Student's of ``n`` replicates. Intervals are cut to the range of the claim.

    The result has the points with ``low`` and ``high`` (one point alone, 95 %), ``least`` and
    ``most`` (all points at once, 95 %), and ``se``, the standard error.
    """
    frame = _with_student_intervals(_check_points(points, claim))
    ends = ["low", "high", "least", "most"]
    is_sampled = frame["values"].notna().to_numpy()
    if is_sampled.any():
        resampled = family(list(frame.loc[is_sampled, "values"]))
        frame.loc[is_sampled, [*ends, "se"]] = resampled[[*ends, "se"]].to_numpy()
    is_share = frame["total"].notna().to_numpy()
    if is_share.any():
        frame.loc[is_share, ends] = _exact_bounds(frame[is_share], len(frame), claim)
    if claim.range:
        frame[ends] = frame[ends].clip(*claim.range)
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


def _exact_bounds(shares: pd.DataFrame, points: int, claim: Claim) -> Any:
    """Return low, high, least and most of shares of a total, one row per share."""
    total = shares["total"].astype(float)
    count = (shares["estimate"].abs() * total).round()
    is_net = bool(claim.range) and claim.range[0] < 0
    if is_net:
        if (count > shares["discordant"]).any():
            raise InputError(f"claim {claim.id}: more cases differ in net than are discordant")
        count = shares["discordant"]
    bounds = [share_bounds(count, total, points=m) for m in (1, points)]
    if is_net:  # as if all cases that differ did so in the same direction
        bounds = [(-high, high) for _, high in bounds]
    return np.column_stack([*bounds[0], *bounds[1]])


def _sides(low: Any, high: Any, claim: Claim) -> Any:
    """Return "for" for intervals inside the region, "against" outside, and "open" across."""
    least, greatest = claim.region
    if claim.direction in ("close", "same", *PRINTED):
        inside, outside = (least <= low) & (high <= greatest), (high < least) | (low > greatest)
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


def _choose_word(alone: list[str], at_once: list[str]) -> str:
    if set(alone) == {"for"}:
        return "holds"
    if "against" in at_once:
        return "mixed" if "for" in at_once else "contrary"
    return "in part" if "for" in at_once else "undecided"


def _find_worst_point(frame: pd.DataFrame, sides: Any, claim: Claim) -> int:
    """Return the position of the point that speaks most against the claim."""
    least, greatest = claim.region
    low, high = frame["low"].to_numpy(float), frame["high"].to_numpy(float)
    slack = np.fmin(low - least, greatest - high)
    rank = np.array([("against", "open", "for").index(side) for side in sides])
    return int(np.lexsort((slack, rank))[0])


def _describe_estimates(
    points: pd.DataFrame, row: Mapping[str, Any], claim: Claim, runs: int
) -> str:
    """Describe the estimates: least and greatest, and the point that fits the claim least."""
    unit, all_of_them = claim.unit, points["estimate"]
    text = write_numbers(unit, row["estimate"])
    text += f" [{write_number(row['low'], unit)}, {write_number(row['high'], unit)}]"
    if len(points) > 1:
        extent = write_numbers(unit, all_of_them.min(), all_of_them.max())
        text = f"{extent}; weakest at {row['point']}: {text}"
    text = f"{text}; {runs} runs" if runs else text
    return f"{text}; {row['beside']}" if row.get("beside") else text


def _smallest_effect(frame: pd.DataFrame, sides: Any) -> float:
    """Return the effect that these runs would show at every open point with probability 80 %."""
    some = frame[(np.asarray(sides) == "open") & (frame["se"] > 0)]
    if some.empty:
        return math.nan
    degrees = (some["n"].astype(float) - 1).clip(lower=1)
    effect = ((some["most"] - some["least"]) / 2 + stdtrit(degrees, 0.8) * some["se"]).max()
    return float(effect) if math.isfinite(effect) else math.inf


def _describe_power(effect: float, claim: Claim) -> str:
    """Say which effect these runs would have shown; return no text if no point is open."""
    if math.isnan(effect):
        return ""
    if math.isinf(effect):
        return " So few runs could have shown no effect at all."
    what = write_numbers(claim.unit, effect)
    return f" These runs would show an effect of {what} at every open point (power 80 %)."


def judge_points(points: pd.DataFrame, claim: Claim) -> Verdict:
    """Judge a measured claim by the rule in the docstring of the module.

    Parameters
    ----------
    points : DataFrame
        One row per point: ``point`` (its name), ``estimate``, ``low`` and ``high`` (95 %
        interval; NaN if it is unknown, which leaves the point open). Optional columns:
        ``values``, the replicates; ``total``, of which the estimate is a share; ``n``, the number
        of replicates; ``group``: the points of a group count as one; ``part``: a "same" claim
        compares points of one part only; ``beside``, a text shown beside the numbers; ``steps``
        and ``wrong``, the numbers of steps between neighbours along a trend, and of those that go
        in the wrong direction.
    claim : Claim
        The claim.
    """
    if points.empty:
        return Verdict(claim, "cannot be checked", "No point was run.", intervals=points)
    frame = intervals(points, claim)
    alone = _sides(frame["low"], frame["high"], claim)
    at_once = _sides(frame["least"], frame["most"], claim)
    groups = frame["group"] if "group" in frame else pd.Series(frame.index)
    word = _choose_word(_merge_groups(alone, groups), _merge_groups(at_once, groups))
    sides = alone if word == "holds" or len(frame) == 1 else at_once
    worst_point: Any = frame.iloc[_find_worst_point(frame, sides, claim)].to_dict()
    runs = int(points["n"].min()) if "n" in points else 0
    known: dict[str, Any] = {"worst_point": worst_point, "runs": runs, "intervals": frame}
    if frame[["low", "high"]].isna().any(axis=1).all():
        what = "No point has an interval: give it two runs or more, that are not all equal."
        return Verdict(claim, "cannot be checked", what, **known)
    count = Counter(_merge_groups(sides, groups))
    counts = tuple(count[side] for side in SIDES)
    power = _describe_power(_smallest_effect(frame, sides), claim) if count["open"] else ""
    reason = f"{_describe_counts(counts)}.{power}{_describe_notes(frame)}"
    if claim.margin and claim.direction not in PRINTED:
        reason = f"Asked, in our reading: {claim.threshold}. {reason}"
    statistic = _describe_estimates(frame, worst_point, claim, runs)
    return Verdict(claim, word, reason, statistic, counts, **known)


def _describe_notes(frame: pd.DataFrame) -> str:
    """Say at how many points no case occurred, and how many steps of a trend go the other way."""
    notes = ""
    none = frame["total"].notna() & (frame["estimate"] == 0) & (frame["discordant"] == 0)
    if none.any():
        most = f"{frame.loc[none, 'total'].max():,.0f}"
        notes += f" None at all at {none.sum()} of {len(frame)} points, in up to {most} cases."
    if "steps" in frame:
        wrong, steps = int(frame["wrong"].sum()), int(frame["steps"].sum())
        notes += f" Of {steps} steps to a neighbour {wrong} go the other way."
    return notes


def theorem_status(key: str) -> tuple[str, str]:
    """Return the verdict that the status of a statement of `dlsim.theory` means, and the reason."""
    theory = importlib.import_module("dlsim.theory")
    found = [row for row in theory.statements() if row.key == key]
    if not found:
        return "cannot be checked", f"The theory module does not hold statement {key} yet."
    status, gap = found[0].status, found[0].gap
    word = "proved" if status == "ours" else status
    return VERDICT_OF_STATUS[status], f"Statement {key} is {word}{': ' * bool(gap)}{gap}."


def judge_claim(claim: Claim, points: pd.DataFrame | None = None) -> Verdict:
    """Judge a theorem by its statement if `dlsim.theory` has it, any other claim by its numbers."""
    if points is None:
        done = Verdict(claim, "cannot be checked", claim.reason or "It was not measured.")
    else:
        done = judge_points(points, claim)
    if claim.kind == "theorem":
        word, reason = theorem_status(claim.statement)
        if word != "cannot be checked":
            return replace(done, word=word, reason=reason)
    return done


def agreement(word: str, reference: str) -> str:
    """Compare a verdict with that at full scale.

    Two verdicts contradict each other if one has evidence for a claim and the other only evidence
    against it, or if one finds every point for it and the other some points against it.
    """
    open_words = ("undecided", "cannot be checked")
    if not reference or word == reference:
        return "agrees" if reference else ""
    if word in open_words:
        return f"{word.removeprefix('cannot be ')} at this size".replace("checked", "not checked")
    if reference in open_words:
        return "more than at full scale"
    two = {word, reference}
    against = "contrary" in two and two & {"holds", "in part"}
    return "CONTRADICTS" if against or two == {"holds", "mixed"} else "agrees in part"


def scorecard(verdicts: Iterable[Verdict], beside: pd.DataFrame | None = None) -> pd.DataFrame:
    """Tabulate verdicts, one row per claim, and compare them with those of scorecard `beside`.

    All columns are text.
    """
    known = {} if beside is None else dict(zip(beside["id"], beside["verdict"], strict=True))
    rows = [
        (
            v.claim.id,
            v.claim.paper,
            v.claim.where,
            v.claim.whose,
            v.claim.text,
            write_numbers(v.claim.unit, *v.claim.printed),
            v.statistic,
            v.points,
            v.word,
            v.reason,
            v.claim.figure,
            known.get(v.claim.id, ""),
            agreement(v.word, known.get(v.claim.id, "")),
        )
        for v in verdicts
    ]
    return pd.DataFrame(rows, columns=SCORECARD_COLUMNS, dtype=object)


def reference_of(paper: str) -> Path:
    """Return the path of the scorecard of a paper at full scale."""
    return files.shared_folder("data") / "reference" / paper / f"{paper}-claims.csv"


def read_scorecard(path: StrPath) -> pd.DataFrame:
    """Read the scorecard of a paper, every field as text; refuse any other table."""
    frame = files.read_csv(path, dict.fromkeys(SCORECARD_COLUMNS, "any"))
    for word in frame["verdict"]:
        one_of(f"{os.fspath(path)}: a verdict", word, SYMBOLS)
    return frame


def headline(words: Iterable[str]) -> str:
    """Count verdicts in one line, by the words that readers see.

    >>> headline(["supported", "supported", "contradicted"])
    '3 claims: 2 supported, 0 partly supported, 0 mixed, 1 contradicted, 0 inconclusive, 0 not checkable'
    """  # noqa: E501
    count = Counter(words)
    shown = [word for word in SHOWN_SYMBOLS if word != STRONGER or count[word]]
    counted = ", ".join(f"{count[word]} {word}" for word in shown)
    total = count.total()
    return f"{total} claim{'s' * (total != 1)}: {counted}"
