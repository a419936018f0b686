r"""Claims of the papers as data, and the one rule that turns numbers into the verdict on one.

A row of data/claims.toml says on which side of which threshold a statistic lies, at every
point of a grid (shares are fractions: 1 point is 0.01). Its direction gives a *region*:

=========  ===========================================  ======================
direction  region of the statistic                      default margin
=========  ===========================================  ======================
above      beyond the margin                            0
below      under the margin                             0
dramatic   beyond the margin                            10 points
marginal   nearer to 0 than the margin                  2 points
close      at most the margin away from 0               5 points
same       range over the grid at most the margin       2 points
about      within a fifth of the printed number         0 (widens the region)
between    from the first to the second printed number  0 (widens the region)
=========  ===========================================  ======================

Every point of the grid is *beyond* (its 95 % interval lies wholly in the region), *on
the other side* (wholly outside) or *undecided*. Where the region comes from numbers that
the paper prints (about, between), an interval that meets it is enough. The verdict is
*holds* if all points are beyond, *holds in part* if some are and none is on the other
side, and *differs* otherwise. A theorem takes the status of its statement.
"""

import importlib
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import (
    StrPath,
    fields_of,
    placed,
    read_csv,
    read_tables,
    shared_file,
    shared_folder,
)
from dlsim.given import MOST, number, option, table

#: Every direction with its default margin.
MARGINS = {
    "above": 0.0, "below": 0.0, "dramatic": 0.10, "marginal": 0.02,
    "close": 0.05, "same": 0.02, "about": 0.0, "between": 0.0,
}  # fmt: skip
#: How many numbers a direction compares with.
PRINTED = {"about": 1, "between": 2}

WHOSE = ("authors' measurement", "authors' statement", "theorem", "quoted")
KINDS = ("measured", "theorem")
#: The four verdicts and their symbols, best first.
SYMBOLS = {"holds": "✓", "holds in part": "◐", "differs": "✗", "cannot be checked": "–"}

#: The columns of a scorecard.
COLUMNS = "id paper where whose claim printed measured verdict reason figure".split()

#: Units of shares, which are kept as fractions.
_HUNDREDTHS = ("%", "points")

#: What the status of a statement of `dlsim.theory` means for a claim.
STATUS = {
    "proved": "holds",
    "corrected": "holds in part",
    "argued": "holds in part",
    "refuted": "differs",
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
    grid: str
    direction: str
    margin: float = math.nan
    printed: tuple[float, ...] = ()
    unit: str = "%"
    reason: str = ""
    kind: str = "measured"
    statement: str = ""
    figure: str = ""

    def __post_init__(self) -> None:
        """Refuse a claim that could not be judged, and fill in the default margin."""
        for name, options in (("whose", WHOSE), ("kind", KINDS), ("direction", tuple(MARGINS))):
            option(f"claim {self.id}: {name}", getattr(self, name), options)
        if self.id.rpartition("-")[0] != self.paper:
            self._refuse(f"id must be '{self.paper}-<number>'", self.id)
        needed = PRINTED.get(self.direction)
        if needed and (len(self.printed) != needed or list(self.printed) != sorted(self.printed)):
            self._refuse(f"'{self.direction}' needs {needed} printed in rising order", self.printed)
        if self.kind == "theorem" and not self.statement:
            self._refuse("a theorem needs the key of its statement", self.statement)
        if math.isnan(self.margin):
            object.__setattr__(self, "margin", MARGINS[self.direction])

    def _refuse(self, rule: str, value: object) -> None:
        raise InputError(f"claim {self.id}: {rule}; got {value!r}")

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


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    rule = "a number or a list of numbers"
    each = value if isinstance(value, list) else [value]
    return tuple(float(number(name, one, -MOST, rule=rule)) for one in each)


_FIELDS = fields_of(Claim, printed=_numbers, margin=partial(number, low=-MOST, rule="a number"))


def load_claims(paper: str | None = None, path: StrPath | None = None) -> list[Claim]:
    """Read the claims of one paper or of all."""
    path = shared_file("data/claims.toml") if path is None else path
    rows = read_tables(path, {"claim": _FIELDS}).get("claim")
    if not rows:
        raise InputError(f"{path}: must hold [[claim]] tables")
    claims = [placed(os.fspath(path), Claim, **row) for row in rows]
    twice = [name for name, count in Counter(c.id for c in claims).items() if count > 1]
    if twice:
        raise InputError(f"{path}: claim {twice[0]!r} is there twice; ids must differ")
    papers = list(dict.fromkeys(c.paper for c in claims))
    if paper is not None and paper not in papers:
        raise InputError(f"claims are known of {', '.join(papers)}; got {paper!r}")
    return [c for c in claims if paper in (None, c.paper)]


@dataclass(frozen=True)
class Verdict:
    """What became of a claim: a word of `SYMBOLS`, the reason, the point that fits it `weakest`."""

    claim: Claim
    word: str
    reason: str
    statistic: str = ""
    weakest: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        option("a verdict", self.word, SYMBOLS)

    def __str__(self) -> str:
        return self.word

    @property
    def symbol(self) -> str:
        """The verdict as one sign, for where colour is not enough."""
        return SYMBOLS[self.word]

    @property
    def sentence(self) -> str:
        """The claim, its verdict, and what was measured, for a reader."""
        found = f" Measured: {self.statistic}." if self.statistic else ""
        claim = self.claim
        return f"{self.symbol} **{claim.id} {self.word}**: {claim.text}{found} {self.reason}"


def _number(value: float, unit: str) -> str:
    """Write a number without its unit: two decimals for shares, four digits otherwise."""
    if math.isnan(value):
        return "?"
    if unit in _HUNDREDTHS:
        text = f"{100 * value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"


def _span(low: float, high: float, unit: str) -> str:
    ends = dict.fromkeys((_number(low, unit), _number(high, unit)))
    return f"{' to '.join(ends)} {unit}".strip()


def _range(points: pd.DataFrame) -> "pd.Series[Any]":
    """Turn one part of a grid into one point, the range of its estimates.

    The range is at least the widest gap between two intervals, 0 if all overlap, and
    at most the distance from the lowest to the highest end. One point has no range.
    """
    low, high = points["low"], points["high"]
    spread = points["estimate"].max(skipna=False) - points["estimate"].min(skipna=False)
    gap = max(0.0, low.max(skipna=False) - high.min(skipna=False))
    row = {"point": points["part"].iloc[0], "estimate": spread, "low": gap}
    row["high"] = high.max(skipna=False) - low.min(skipna=False)
    if len(points) < 2:
        row |= dict.fromkeys(("estimate", "low", "high"), math.nan)
    return pd.Series(row)


def _sides(points: pd.DataFrame, claim: Claim) -> list[str]:
    """Say where every interval lies: beyond, other side or undecided."""
    low, high, (least, greatest) = points["low"], points["high"], claim.region
    if claim.direction == "same":
        beyond, other = points["estimate"] <= claim.margin, low > claim.margin
    else:
        known = low.notna() & high.notna()
        other = known & ((high < least) | (low > greatest))
        beyond = (least < low) & (high < greatest)
        if claim.direction == "close":
            beyond = (least <= low) & (high <= greatest)
        elif claim.direction in PRINTED:
            beyond = known & ~other
    return np.select([beyond, other], ["beyond", "other side"], "undecided").tolist()


def _checked(points: pd.DataFrame, claim: Claim) -> pd.DataFrame:
    numbers = ["estimate", "low", "high"]
    frame = table(f"points of claim {claim.id}", points, ("point", *numbers), unique=False)
    frame = frame.reset_index(drop=True)
    frame[numbers] = frame[numbers].astype(float).replace([math.inf, -math.inf], math.nan)
    crossed = frame[frame["low"] > frame["high"]]
    if len(crossed):
        raise InputError(
            f"claim {claim.id}: low must not exceed high, as at {crossed['point'].iloc[0]}"
        )
    if "part" not in frame:
        frame["part"] = "the grid"
    if claim.direction != "same":
        return frame
    return pd.DataFrame([_range(part) for _, part in frame.groupby("part", sort=False)])


def _weakest(points: pd.DataFrame, sides: list[str], claim: Claim) -> int:
    """Return the position of the point that speaks most against the claim."""
    least, greatest = claim.region
    low, high = points["low"].to_numpy(float), points["high"].to_numpy(float)
    slack = np.fmin(low - least, greatest - high)
    rank = np.array([("other side", "undecided", "beyond").index(side) for side in sides])
    return int(np.lexsort((slack, rank))[0])


def _said(points: pd.DataFrame, row: Mapping[str, Any], claim: Claim, runs: object) -> str:
    """Describe the estimates: their extent, and the point that fits least."""
    unit = claim.unit
    text = f"{_number(row['estimate'], unit)} {unit}".strip()
    text += f" [{_number(row['low'], unit)}, {_number(row['high'], unit)}]"
    if len(points) > 1:
        span = _span(points["estimate"].min(), points["estimate"].max(), unit)
        text = f"{span}; weakest at {row['point']}: {text}"
    return f"{text}; {runs} runs" if runs is not None else text


def judge(points: pd.DataFrame, claim: Claim) -> Verdict:
    """Judge a measured claim by the one rule (see the module).

    There is one row per grid point: ``point`` (its name), ``estimate``, ``low``, ``high`` (95 %
    interval; NaN where it is unknown, which leaves the point undecided). Optional are ``part``,
    which splits the grid of a "same" claim into ranges of their own, and ``n``, the number of
    replicates.
    """
    if points.empty:
        return Verdict(claim, "cannot be checked", "No point of the grid was run.")
    frame = _checked(points, claim)
    sides = _sides(frame, claim)
    weakest: Any = frame.iloc[_weakest(frame, sides, claim)].to_dict()
    if frame[["low", "high"]].isna().any(axis=1).all():
        what = "No point has an interval: give it two runs or more."
        return Verdict(claim, "cannot be checked", what, weakest=weakest)
    count = Counter(sides)
    if count["beyond"] == len(sides):
        word = "holds"
    elif count["beyond"] and not count["other side"]:
        word = "holds in part"
    else:
        word = "differs"
    runs = int(points["n"].min()) if "n" in points else None
    names = {"beyond": "as claimed", "undecided": "undecided", "other side": "on the other side"}
    counts = ", ".join(f"{count[side]} {name}" for side, name in names.items() if count[side])
    reason = f"Of {len(sides)} point{'s' * (len(sides) > 1)}: {counts}."
    return Verdict(claim, word, reason, _said(frame, weakest, claim, runs), weakest)


def theorem_status(key: str) -> tuple[str, str]:
    """Return the verdict that the status of a statement of `dlsim.theory` means, and the reason."""
    theory = importlib.import_module("dlsim.theory")
    found = [row for row in theory.statements() if row.key == key]
    if not found:
        return "cannot be checked", f"The theory module does not hold statement {key} yet."
    status, gap = found[0].status, found[0].gap
    return STATUS[status], f"Statement {key} is {status}{': ' * bool(gap)}{gap}."


def verdict_of(claim: Claim, points: pd.DataFrame | None = None) -> Verdict:
    """Judge a theorem by its statement where that is held, any other claim by its numbers."""
    if claim.kind == "theorem":
        word, reason = theorem_status(claim.statement)
        if word != "cannot be checked":
            if points is None:
                return Verdict(claim, word, reason)
            done = judge(points, claim)
            return Verdict(claim, word, reason, done.statistic, done.weakest)
    if points is None:
        return Verdict(claim, "cannot be checked", claim.reason or "It was not measured.")
    return judge(points, claim)


def _printed(claim: Claim) -> str:
    numbers = " to ".join(_number(number, claim.unit) for number in claim.printed)
    return f"{numbers} {claim.unit}".strip() if numbers else ""


def scorecard(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Tabulate verdicts, one row per claim; all columns are text."""
    rows = [
        (
            v.claim.id, v.claim.paper, v.claim.where, v.claim.whose, v.claim.text,
            _printed(v.claim), v.statistic, v.word, v.reason, v.claim.figure,
        )
        for v in verdicts
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=COLUMNS, dtype=object)


def reference_of(paper: str) -> Path:
    """Return the place of a paper's scorecard at its own scale."""
    return shared_folder("data") / "reference" / paper / f"{paper}-claims.csv"


def checked_scorecard(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Return a scorecard; refuse a table without its columns, or with a fifth verdict."""
    for word in table(f"rows of {what}", frame, COLUMNS, unique=False)["verdict"]:
        option(f"{what}: a verdict", word, SYMBOLS)
    return frame


def read_scorecard(path: StrPath) -> pd.DataFrame:
    """Read the scorecard of a paper back, every field as text; refuse what is none."""
    frame = read_csv(path, dict.fromkeys(COLUMNS, "any"))
    return checked_scorecard(frame, os.fspath(path))


def headline(verdicts: Iterable[object]) -> str:
    """Count verdicts, or their words, in the one line that opens the report.

    >>> headline(["holds", "holds", "differs"])
    '3 claims: 2 hold, 0 in part, 1 differs, 0 cannot be checked'
    """
    words = [str(verdict) for verdict in verdicts]
    count = Counter(words)
    return (
        f"{len(words)} claim{'s' * (len(words) != 1)}: "
        f"{count['holds']} hold{'s' * (count['holds'] == 1)}, {count['holds in part']} in part, "
        f"{count['differs']} differ{'s' * (count['differs'] == 1)}, "
        f"{count['cannot be checked']} cannot be checked"
    )
