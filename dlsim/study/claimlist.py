r"""Claims of the papers as data: one row of data/claims.toml each.

A measured claim says on which side of which threshold a statistic lies, at every
point of a grid. Its direction gives a *region* of the number line:

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

Shares are fractions: 1 point is 0.01.
"""

import math
import os
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlsim.errors import InputError
from dlsim.files import StrPath, fields_of, placed, read_tables, shared_file
from dlsim.given import MOST, number, option

#: Every direction with its default margin.
MARGINS = {
    "above": 0.0, "below": 0.0, "dramatic": 0.10, "marginal": 0.02,
    "close": 0.05, "same": 0.02, "about": 0.0, "between": 0.0,
}  # fmt: skip
#: How many numbers a direction compares with.
PRINTED = {"about": 1, "between": 2}

WHOSE = ("authors' measurement", "authors' statement", "theorem", "quoted")
KINDS = ("measured", "theorem")


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
    measure: str = ""
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
        if not (self.measure or self.statement or self.reason):
            self._refuse("without a measure the reason must be given", self.reason)
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
