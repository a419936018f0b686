"""Statements about the papers: what each claims, and the derivation that shows it."""

import csv
import functools
import importlib
import inspect
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from dlsim.errors import InputError
from dlsim.files import shared_file
from dlsim.theory.relations import Iff, ProofError, Proposition, to_latex, to_text
from dlsim.theory.steps import Line, iff, show, shows

#: Where the statements are, in reading order; importing a module enters its statements.
MODULES = ("paper_m", "paper_i", "remodel", "bounds", "paper_s", "paper_b")
#: What a statement can turn out to be.
STATUSES = {
    "proved": "proved as printed",
    "corrected": "proved after a correction",
    "ours": "proved, printed nowhere",
    "notation": "a slip of notation",
    "refuted": "refuted",
}
Derive = Callable[..., list[Line]]


@dataclass(frozen=True)
class Statement:
    """What a paper claims, or what we claim about it, and its derivation.

    Attributes
    ----------
    key, words : str
        A short name, such as ``"5.1"``, and the statement in words.
    goals, hypotheses : tuple of Proposition
        What is shown, and what may be taken for granted.
    derive : callable
        Takes the goals, and returns the lines that show them.
    status, gap : str
        What was found (a key of `STATUSES`), and what the print lacks or has wrong.
    place : str
        Initial of the paper (M, I, S, B) and where it stands there, or what it is about.
    errata : tuple of int
        The numbers of the errata that it decides.
    weaker : str
        What is printed but not shown here, if something is.
    """

    key: str
    words: str
    goals: tuple[Proposition, ...]
    hypotheses: tuple[Proposition, ...]
    derive: Derive
    status: str
    gap: str
    place: str
    errata: tuple[int, ...]
    weaker: str

    @property
    def remarks(self) -> str:
        """What the print lacks or has wrong, and what is printed but not shown."""
        weaker = f"weaker than print: {self.weaker}" if self.weaker else ""
        return "; ".join(filter(None, (self.gap, weaker)))

    def prove(
        self,
        goals: Iterable[Proposition] | None = None,
        allowed: Iterable[Proposition] | None = None,
    ) -> "Proof":
        """Run the derivation, and check that every goal is shown on the hypotheses alone.

        Other `goals`, or other hypotheses that are `allowed`, take the place of the statement's. A
        `ProofError` names a step that does not hold, a goal that is not shown, or a hypothesis that
        is not needed.
        """
        wanted = self.goals if goals is None else tuple(goals)
        permitted = set(self.hypotheses if allowed is None else allowed)
        if [type(goal) for goal in wanted] != [type(goal) for goal in self.goals]:
            raise ProofError(f"{self.key}: the goals are not {len(self.goals)} claims of its form")
        began = time.perf_counter()
        try:
            lines = [line for line in self.derive(*wanted) if line.given <= permitted]
            shown = [_find(goal, lines) for goal in wanted]
        except ProofError as error:
            raise ProofError(f"{self.key}: {error}") from None
        unused = permitted - set().union(*(line.given for line in shown))
        if unused:
            raise ProofError(f"{self.key}: not needed: {', '.join(map(str, unused))}")
        return Proof(self, shown, time.perf_counter() - began)

    def __str__(self) -> str:
        remarks = f" ({self.remarks})" if self.remarks else ""
        return f"{self.key:<9} {self.status:<9} {self.place}: {self.words}{remarks}"


def _find(goal: Proposition, lines: Iterable[Line]) -> Line:
    """Return the line that shows a goal, the one that claims just it first."""
    for line in sorted(lines, key=lambda one: one.claim != goal):
        if shows(line.claim, goal):
            return line
    raise ProofError(f"{goal} is not shown")


# ------------------------------------------------------------------ derivations as text


class Derivation:
    """Lines with all that they rest on; it prints itself as a numbered list.

    The `shown` lines stand at the end. What the lines in `known` rest on is not printed again.
    Lines that claim the same on the same hypotheses have one number.
    """

    def __init__(self, *shown: Line, known: Iterable[Line] = ()) -> None:
        self.shown = shown
        self.lines: list[Line] = []
        self._known = set(known)
        self._numbers: dict[tuple[Proposition, frozenset[Proposition]], int] = {}
        for line in shown:
            self._number(line)

    def _number(self, line: Line) -> int:
        """Return the number of a line, which is entered after its sources."""
        fact = (line.claim, line.given)
        if fact not in self._numbers:
            for source, _ in self._sources(line):
                self._number(source)
        if fact not in self._numbers:
            self.lines.append(line)
            self._numbers[fact] = len(self.lines)
        return self._numbers[fact]

    def _sources(self, line: Line) -> tuple[tuple[Line, Any], ...]:
        return () if line in self._known else line.sources

    def _rows(self, write: Callable[[Any], str]) -> Iterator[tuple[int, str, str, str]]:
        """Yield number, claim, reason, and "from which lines, times what"."""
        for number, line in enumerate(self.lines, start=1):
            parts = []
            for source, times in self._sources(line):
                factor = "" if isinstance(times, str) or times == 1 else f" times {write(times)}"
                parts.append(f"({self._number(source)}){factor}")
            why = "shown above" if line in self._known else line.why
            yield number, write(line.claim), why, f"; from {', '.join(parts)}" if parts else ""

    def __str__(self) -> str:
        rows = self._rows(to_text)
        return "\n".join(
            f"{number:5d}. {claim}\n       {why}{by}" for number, claim, why, by in rows
        )

    def _repr_markdown_(self) -> str:
        rows = self._rows(_formula)
        return "\n".join(
            f"{number}. {claim} — {_plain(why)}{by}" for number, claim, why, by in rows
        )


def _plain(text: str) -> str:
    """Return plain text so that Markdown shows it as it is."""
    return re.sub(r"([|*_<])", r"\\\1", text)


def _formula(value: Any) -> str:
    """Return a claim or an expression as inline LaTeX."""
    return f"${to_latex(value)}$"


class Proof(Derivation):
    """The derivation of a statement, and how long it took."""

    def __init__(self, statement: Statement, shown: Iterable[Line], seconds: float) -> None:
        super().__init__(*shown)
        self.statement, self.seconds = statement, seconds

    def __str__(self) -> str:
        return f"{self.statement}\n{super().__str__()}"

    def _repr_markdown_(self) -> str:
        one = self.statement
        remarks = f" ({_plain(one.remarks)})" if one.remarks else ""
        goals = " and ".join(_formula(line.claim) for line in self.shown)
        under = ", ".join(map(_formula, one.hypotheses))
        head = f"`{one.key}` ({one.place}; {STATUSES[one.status]}): {_plain(one.words)}{remarks}"
        shown = f"Shown: {goals}{f' if {under}' if under else ''}"
        return "\n\n".join([head, super()._repr_markdown_(), shown])


_Record = TypeVar("_Record")


class RecordList(list[_Record]):
    """A list of records that prints one per line."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    __repr__ = __str__


def markdown_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table in Markdown."""
    head = list(columns)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


class Statements(RecordList[Statement]):
    """Statements; in a notebook a table."""

    def _repr_markdown_(self) -> str:
        rows = [
            (f"`{one.key}`", one.place, one.status, _plain(f"{one.words} {one.remarks}".strip()))
            for one in self
        ]
        return markdown_table(["key", "where", "status", "statement"], rows)


class Proofs(RecordList[Proof]):
    """Proofs; in a notebook one derivation after the other."""

    @property
    def statuses(self) -> dict[str, str]:
        """The status of each key."""
        return {proof.statement.key: proof.statement.status for proof in self}

    def _repr_markdown_(self) -> str:
        return "\n\n".join(proof._repr_markdown_() for proof in self)

    def summary(self) -> str:
        """Return one line per statement, and how many have which status."""
        lines = [
            f"{proof.statement.key:<9} {proof.statement.status:<9} {proof.seconds:5.2f} s "
            f"{len(proof.lines):3d} lines  {proof.statement.place}"
            f"{' (weaker than print)' if proof.statement.weaker else ''}"
            for proof in self
        ]
        count = Counter(self.statuses.values())
        parts = [f"{count[status]} {words}" for status, words in STATUSES.items() if count[status]]
        noun = "statement" if len(self) == 1 else "statements"
        return "\n".join([*lines, f"{len(self)} {noun}: {'; '.join(parts)}"])


# ------------------------------------------------------------------ entering and finding statements

_STATEMENTS: dict[str, Statement] = {}


def statement(
    key: str, hypotheses: Iterable[Line] = (), goals: Iterable[Proposition] | None = None
) -> Callable[[Derive], Derive]:
    """Enter a derivation as the proof of a statement.

    Its docstring is the statement in words, and the defaults of its arguments are the `goals`. The
    hypotheses are lines made by `assume`, which the derivation uses as they are. Where the
    statement is printed and what was found stands in ``data/statements.csv``.
    """

    def enter(derive: Derive) -> Derive:
        words = " ".join((derive.__doc__ or "").split())
        defaults = (one.default for one in inspect.signature(derive).parameters.values())
        claims = tuple(goals or defaults), tuple(line.claim for line in hypotheses)
        _STATEMENTS[key] = Statement(key, words, *claims, derive, **_contents()[key])
        return derive

    return enter


@functools.cache
def _contents() -> dict[str, dict[str, Any]]:
    """Return where each statement is printed and what was found, by its key."""
    with shared_file("data/statements.csv").open(encoding="utf-8", newline="") as file:
        rows = {row.pop("key"): row for row in csv.DictReader(file)}
    return {
        key: {**row, "errata": tuple(map(int, row["errata"].split()))} for key, row in rows.items()
    }


def one_step_statement(
    key: str, words: str, goals: Mapping[Any, Any], hypotheses: Iterable[Line] = ()
) -> None:
    """Enter a statement each goal of which is shown by one step of algebra.

    `goals` maps each goal to the reason; with it, in a tuple, go the lines that it follows from and
    what each is multiplied by, or what one side of an equivalence is multiplied by.
    """

    def derive(*wanted: Any) -> list[Line]:
        reasons = [one if isinstance(one, tuple) else (one,) for one in goals.values()]
        pairs = zip(wanted, reasons, strict=True)
        return [(iff if isinstance(goal, Iff) else show)(goal, *one) for goal, one in pairs]

    derive.__doc__ = words
    statement(key, hypotheses, goals)(derive)


@functools.cache
def lemma(key: str) -> tuple[Line, ...]:
    """Return one line per goal of another statement, each under the hypotheses it rests on."""
    shown = _STATEMENTS[key].prove().shown
    return tuple(Line(one.claim, f"by statement {key}", (), one.given) for one in shown)


def statements(keys: str | Iterable[str] = ()) -> Statements:
    """Return the statements that a key or the beginning of one matches; none means all.

    Raises
    ------
    InputError
        For a key that matches nothing, with those that are like it.
    """
    for module in MODULES:
        importlib.import_module(f"dlsim.theory.{module}")
    wanted = [keys] if isinstance(keys, str) else list(keys)
    found: dict[str, Statement] = {}
    for key in wanted:
        matches = [one for one in _STATEMENTS if one.startswith(key)]
        if not matches or not key:
            close = ", ".join(get_close_matches(key, _STATEMENTS, 1))
            hint = f"did you mean {close}?" if close else f"there are {', '.join(_STATEMENTS)}"
            raise InputError(f"no statement has the key {key!r}: {hint}")
        found |= {one: _STATEMENTS[one] for one in matches}
    return Statements(found.values() if wanted else _STATEMENTS.values())


def prove(keys: str | Iterable[str] = ()) -> Proofs:
    """Run the derivations of all statements that a key or the beginning of one matches.

    Parameters
    ----------
    keys : str or iterable of str
        Keys or their beginnings, such as ``"5.1"`` or ``"Y."``; none means all.

    Returns
    -------
    Proofs
        One per statement, with its lines; they print themselves.

    Raises
    ------
    InputError
        For a key that matches nothing.
    ProofError
        If a step does not hold.

    Examples
    --------
    >>> prove("5.1").statuses
    {'5.1': 'proved'}
    """
    return Proofs(one.prove() for one in statements(keys))
