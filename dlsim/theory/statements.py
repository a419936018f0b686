"""Statements about the papers: what each claims, and the derivation that shows it."""

import importlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

import sympy as sp

from dlsim.errors import InputError
from dlsim.theory.contents import CONTENTS, STATUSES
from dlsim.theory.relations import Iff, ProofError, Proposition, latex, to_text
from dlsim.theory.steps import Line, iff, show, shows

#: Where the statements are, in reading order; importing a module enters its statements.
MODULES = (
    "paper_m",
    "paper_m_theorems",
    "paper_i",
    "remodel",
    "multi_round",
    "bounds",
    "paper_s",
    "paper_b",
)
Derive = Callable[..., list[Line]]


@dataclass(frozen=True)
class Statement:
    """What a paper claims, or what we claim about it, and its derivation.

    Attributes
    ----------
    key : str
        Short name, such as ``"5.1"``.
    place : str
        Initial of the paper (M, I, S, B) and where it stands there, or what it is about.
    words : str
        The statement in words.
    status : {"proved", "corrected", "ours", "notation", "refuted"}
        What its derivation establishes about the print.
    gap : str
        What the print lacks or has wrong; empty where it is proved.
    errata : tuple of int
        The numbers of the errata that it decides.
    goals, hypotheses : tuple of Proposition
        What is shown, and what may be taken for granted.
    derive : callable
        Takes the goals, and returns the lines that show them.
    """

    key: str
    place: str
    words: str
    status: str
    gap: str
    errata: tuple[int, ...]
    goals: tuple[Proposition, ...]
    hypotheses: tuple[Proposition, ...]
    derive: Derive = field(repr=False)

    def prove(
        self,
        goals: Iterable[Proposition] | None = None,
        allowed: Iterable[Proposition] | None = None,
    ) -> "Proof":
        """Run the derivation, and check that every goal is shown on the hypotheses alone.

        Parameters
        ----------
        goals, allowed : iterable of Proposition, optional
            Other goals, and hypotheses that a goal may rest on (default: those of the statement).

        Raises
        ------
        ProofError
            If a step does not hold, a goal is not shown, or a hypothesis is not needed.
        """
        wanted = self.goals if goals is None else tuple(goals)
        permitted = set(self.hypotheses if allowed is None else allowed)
        if [type(goal) for goal in wanted] != [type(goal) for goal in self.goals]:
            raise ProofError(f"{self.key}: the goals are not {len(self.goals)} claims of its form")
        began = time.perf_counter()
        try:
            lines = self.derive(*wanted)
            shown = [self._shown(goal, lines, permitted) for goal in wanted]
        except ProofError as error:
            raise ProofError(f"{self.key}: {error}") from None
        unused = permitted - set().union(*(line.given for line in shown))
        if unused:
            raise ProofError(f"{self.key}: not needed: {', '.join(map(str, unused))}")
        return Proof(self, shown, time.perf_counter() - began)

    def _shown(self, goal: Proposition, lines: Iterable[Line], permitted: set[Proposition]) -> Line:
        """Return the line that shows a goal."""
        fitting = [line for line in lines if line.given <= permitted]
        for line in sorted(fitting, key=lambda one: one.claim != goal):
            if shows(line.claim, goal):
                return line
        raise ProofError(f"{goal} is not shown")

    def __str__(self) -> str:
        gap = f" ({self.gap})" if self.gap else ""
        return f"{self.key:<9} {self.status:<9} {self.place}: {self.words}{gap}"


class Derivation:
    """Lines with all that they rest on; it prints itself as a numbered list.

    Parameters
    ----------
    *shown : Line
        The lines to end with.
    known : iterable of Line
        Lines that stand above already; what they rest on is not printed again.
    """

    def __init__(self, *shown: Line, known: Iterable[Line] = ()) -> None:
        self.shown = shown
        self._known = set(known)
        self._first: dict[tuple[Proposition, frozenset[Proposition]], Line] = {}
        self._places: dict[Line, Line] = {}
        for line in shown:
            self._visit(line)

    def _visit(self, line: Line) -> None:
        """Note, for a line, the first one that claims the same on the same hypotheses."""
        if line in self._places:
            return
        fact = (line.claim, line.given)
        if fact not in self._first:
            for source, _ in self._sources(line):
                self._visit(source)
            self._first.setdefault(fact, line)
        self._places[line] = self._first[fact]

    def _sources(self, line: Line) -> tuple[tuple[Line, Any], ...]:
        return () if line in self._known else line.sources

    @property
    def lines(self) -> list[Line]:
        """All lines, each after its sources; no fact stands twice."""
        return list(dict.fromkeys(self._places.values()))

    def _rows(self, write: Callable[[Any], str]) -> Iterator[tuple[int, str, str, str]]:
        """Yield number, claim, reason, and "from which lines, times what"."""
        number = {line: place for place, line in enumerate(self.lines, start=1)}
        for line, place in number.items():
            parts = []
            for source, times in self._sources(line):
                factor = "" if isinstance(times, str) or times == 1 else f" times {write(times)}"
                parts.append(f"({number[self._places[source]]}){factor}")
            why = "shown above" if line in self._known else line.why
            yield place, write(line.claim), why, f"; from {', '.join(parts)}" if parts else ""

    def __str__(self) -> str:
        rows = self._rows(to_text)
        return "\n".join(f"{place:5d}. {claim}\n       {why}{by}" for place, claim, why, by in rows)

    def _repr_markdown_(self) -> str:
        rows = self._rows(to_markdown)
        return "\n".join(
            f"{place}. {claim} — {as_markdown(why)}{by}" for place, claim, why, by in rows
        )


def as_markdown(text: str) -> str:
    """Return plain text so that Markdown shows it as it is."""
    return re.sub(r"([|*_<])", r"\\\1", text)


def to_markdown(value: Any) -> str:
    """Return a claim or an expression as inline LaTeX."""
    return f"${value.latex() if hasattr(value, 'latex') else latex(sp.sympify(value))}$"


class Proof(Derivation):
    """The derivation of a statement, and how long it took."""

    def __init__(self, statement: Statement, shown: Iterable[Line], seconds: float) -> None:
        super().__init__(*shown)
        self.statement = statement
        self.seconds = seconds

    def __str__(self) -> str:
        return f"{self.statement}\n{super().__str__()}"

    def _repr_markdown_(self) -> str:
        one = self.statement
        gap = f" ({as_markdown(one.gap)})" if one.gap else ""
        goals = " and ".join(to_markdown(line.claim) for line in self.shown)
        under = ", ".join(to_markdown(claim) for claim in one.hypotheses)
        parts = [
            f"`{one.key}` ({one.place}; {STATUSES[one.status]}): {as_markdown(one.words)}{gap}",
            super()._repr_markdown_(),
            f"Shown: {goals}{f' if {under}' if under else ''}",
        ]
        return "\n\n".join(parts)


_Record = TypeVar("_Record")


class RecordList(list[_Record]):
    """A list of records that prints one per line."""

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def __repr__(self) -> str:
        return str(self)


class Statements(RecordList[Statement]):
    """Statements; in a notebook a table."""

    def _repr_markdown_(self) -> str:
        head = ["| key | where | status | statement |", "|---|---|---|---|"]
        words = [as_markdown(f"{one.words} {one.gap}".strip()) for one in self]
        rows = [
            f"| `{one.key}` | {one.place} | {one.status} | {text} |"
            for one, text in zip(self, words, strict=True)
        ]
        return "\n".join(head + rows)


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
            for proof in self
        ]
        count = Counter(self.statuses.values())
        parts = [f"{count[status]} {words}" for status, words in STATUSES.items() if count[status]]
        noun = "statement" if len(self) == 1 else "statements"
        return "\n".join([*lines, f"{len(self)} {noun}: {'; '.join(parts)}"])


_STATEMENTS: dict[str, Statement] = {}


def statement(
    key: str, *, goals: Iterable[Proposition], hypotheses: Iterable[Line] = ()
) -> Callable[[Derive], Derive]:
    """Enter a derivation as the proof of a statement; its docstring is the statement in words.

    Where the statement is printed and what was found stands in `dlsim.theory.contents`. The
    hypotheses are lines made by `assume`; the derivation uses them as they are.
    """

    def enter(derive: Derive) -> Derive:
        status, errata, place, gap = CONTENTS[key]
        words = " ".join((derive.__doc__ or "").split())
        assumed = tuple(line.claim for line in hypotheses)
        _STATEMENTS[key] = Statement(
            key, place, words, status, gap, errata, tuple(goals), assumed, derive
        )
        return derive

    return enter


def one_step_statement(
    key: str, words: str, goals: Mapping[Any, Any], hypotheses: Iterable[Line] = ()
) -> None:
    """Enter a statement each goal of which is shown by one step of algebra.

    Parameters
    ----------
    key, words : str
        The key, and the statement in words.
    goals : mapping of Proposition to str or tuple
        Each goal and the reason; with it, in a tuple, the lines that it follows from and what each
        is multiplied by, or what one side of an equivalence is multiplied by.
    hypotheses : iterable of Line
        Lines made by `assume`.
    """

    def derive(*wanted: Any) -> list[Line]:
        lines = []
        for goal, reason in zip(wanted, goals.values(), strict=True):
            why, times = reason if isinstance(reason, tuple) else (reason, None)
            step = iff if isinstance(goal, Iff) else show
            lines.append(step(goal, why) if times is None else step(goal, why, times))
        return lines

    derive.__doc__ = words
    statement(key, goals=goals, hypotheses=hypotheses)(derive)


def lemma(key: str) -> tuple[Line, ...]:
    """Return one line per goal of another statement, each under the hypotheses it rests on."""
    if key not in _LEMMAS:
        shown = _STATEMENTS[key].prove().shown
        _LEMMAS[key] = tuple(Line(one.claim, f"by statement {key}", (), one.given) for one in shown)
    return _LEMMAS[key]


_LEMMAS: dict[str, tuple[Line, ...]] = {}


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
        Keys or their beginnings, such as ``"5.1"`` or ``"U."``; none means all.

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
