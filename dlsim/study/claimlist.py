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
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from dlsim.errors import InputError
from dlsim.files import StrPath, read_toml, shared_file

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
    """One sentence of a paper, as data.

    Parameters
    ----------
    id : str
        ``"<paper>-<number>"``.
    paper : str
        Key of the paper, such as ``"mcdf"``.
    where : str
        Section and figure.
    whose : str
        One of `WHOSE`.
    text : str
        The sentence in our own words.
    statistic, grid : str
        What is measured, and at which points, in words.
    direction : str
        A key of `MARGINS`.
    margin : float, optional
        Threshold on the axis of the statistic; the direction's default otherwise.
    printed : tuple of float
        The numbers that the prose gives, if any; one for about, two for between.
    unit : str
        ``"%"`` or ``"points"`` for shares and their differences, which are kept as
        fractions; otherwise the word behind the number.
    measure : str
        Name of the measuring function in the paper's module; "" where there is none.
    reason : str
        Why the claim cannot be checked; needed where nothing measures or proves it.
    kind : str
        One of `KINDS`.
    statement : str
        Key of the statement of `dlsim.theory` that a theorem takes its status from.
    figure : str
        Id of the figure that shows it, or "".

    Raises
    ------
    InputError
        For a field that breaks a rule; the message names the claim.
    """

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
            if getattr(self, name) not in options:
                self._refuse(f"{name} must be one of {', '.join(options)}", getattr(self, name))
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


def _is_number(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return number and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


def _typed(row: Mapping[str, Any], name: str, path: StrPath) -> Any:
    """Return one field of a row of claims.toml, refused by name if ill-typed."""
    value = row[name]
    if name == "printed":
        numbers = value if isinstance(value, list) else [value]
        good, wanted = all(map(_is_number, numbers)), "a number or a list of numbers"
    elif name == "margin":
        good, wanted = _is_number(value), "a number"
    else:
        good, wanted = isinstance(value, str), "a text"
    if not good:
        what = f"{name} must be {wanted}, got {value!r}"
        raise InputError(f"{path}, claim {row.get('id', '?')!r}: {what}")
    return tuple(map(float, numbers)) if name == "printed" else value


def _claim(row: Mapping[str, Any], path: StrPath) -> Claim:
    known = [f.name for f in fields(Claim)]
    needed = [f.name for f in fields(Claim) if f.default is MISSING]
    for problem, names in (
        ("unknown field", [name for name in row if name not in known]),
        ("missing field", [name for name in needed if name not in row]),
    ):
        if names:
            what = f"{problem} {names[0]}; the fields are {', '.join(known)}"
            raise InputError(f"{path}, claim {row.get('id', '?')!r}: {what}")
    typed = {name: _typed(row, name, path) for name in row}
    try:
        return Claim(**typed)
    except InputError as error:
        raise InputError(f"{path}, {error}") from error


def load_claims(paper: str | None = None, path: StrPath | None = None) -> list[Claim]:
    """Read the claims of one paper or of all.

    Parameters
    ----------
    paper : str, optional
        Key of the paper; all papers otherwise.
    path : path, optional
        Another file of claims than the suite's own data/claims.toml.

    Returns
    -------
    list of Claim
        In the order of the file.

    Raises
    ------
    InputError
        For an unknown paper, or a row that is not a claim; names file, claim, field.
    """
    path = shared_file("data/claims.toml") if path is None else path
    rows = read_toml(path).get("claim")
    if not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
        raise InputError(f"{path}: must hold [[claim]] tables")
    claims = [_claim(row, path) for row in rows]
    twice = [name for name, count in Counter(c.id for c in claims).items() if count > 1]
    if twice:
        raise InputError(f"{path}: claim {twice[0]!r} is there twice; ids must differ")
    papers = list(dict.fromkeys(c.paper for c in claims))
    if paper is not None and paper not in papers:
        raise InputError(f"claims are known of {', '.join(papers)}; got {paper!r}")
    return [c for c in claims if paper in (None, c.paper)]
