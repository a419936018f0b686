"""Statements about the papers as data, and the verb that proves them."""

import html
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dlsim.errors import InputError
from dlsim.theory.derivation import Derivation
from dlsim.theory.steps import Step, html_table
from dlsim.theory.zero import ProofError

#: What a statement can turn out to be, with the outcome its derivation must have.
STATUSES = {"proved": "shown", "corrected": "shown", "refuted": "refuted", "argued": "argued"}

Proof = Callable[..., None]


@dataclass(frozen=True)
class Statement:
    """A claim of a paper, or about one, with its proof and what must not be provable.

    Attributes
    ----------
    key : str
        Short name, such as ``"5.1"``.
    source : str
        Paper and equation, theorem or section.
    claim : str
        The claim as it is proved (or, refuted, as it is printed): text with LaTeX.
    status : {"proved", "corrected", "refuted", "argued"}
        What its derivation establishes.
    assumptions : str
        What the symbols stand for and which values they take.
    errata : tuple of int
        Errata it decides (`dlsim.theory.errata`).
    gap : str
        What the print lacks or has wrong, in plain words; empty where it is proved.
    mutants : mapping of str to mapping
        Wrong variants by name: keyword arguments of the proof that must make it fail.
    proof : callable
        Writes the steps into a `Derivation`.
    """

    key: str
    source: str
    claim: str
    status: str
    assumptions: str
    errata: tuple[int, ...]
    gap: str
    mutants: Mapping[str, Mapping[str, Any]] = field(repr=False)
    proof: Proof = field(repr=False)

    def prove(self, **changed: Any) -> "Proven":
        """Run the proof, with a mutant's changes, and check that it establishes the status."""
        derivation = Derivation()
        try:
            self.proof(derivation, **changed)
        except ProofError as error:
            raise type(error)(f"{self.key}: {error}") from None
        if derivation.outcome != STATUSES[self.status]:
            raise ProofError(f"{self.key} is {self.status}, its steps are {derivation.outcome}")
        for key in derivation.cited:
            if _BOOK[key].status not in ("proved", "corrected"):
                raise ProofError(f"{self.key} uses {key}, which is {_BOOK[key].status}")
        return Proven(self, tuple(derivation.steps), tuple(derivation.cited))

    def _repr_html_(self) -> str:
        """Render as one row of the table of statements."""
        return Listing([self])._repr_html_()


_HEADINGS = {
    "assumption": "given",
    "lemma": "lemma",
    "identity": "identity",
    "sign": "sign",
    "induction": "induction",
    "exact": "exact",
    "refutation": "counterexample",
    "prose": "argument",
}


@dataclass(frozen=True)
class Proven:
    """A statement with the steps that establish its status; renders line by line.

    Each step was checked when it was added; `cited` are the statements that the steps use.
    """

    statement: Statement
    steps: tuple[Step, ...]
    cited: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return the statement's key."""
        return self.statement.key

    @property
    def status(self) -> str:
        """Return the statement's status."""
        return self.statement.status

    def _repr_html_(self) -> str:
        """Render claim, assumptions and steps; a notebook typesets the formulas."""
        s = self.statement
        rows = [
            (
                str(i),
                _HEADINGS[step.kind],
                f"$\\displaystyle {step.tex}$" * bool(step.tex),
                step.why,
            )
            for i, step in enumerate(self.steps, start=1)
        ]
        head = (
            f"<p><b>{html.escape(s.key)}</b> ({html.escape(s.source)}): "
            f"<b>{s.status}</b><br>{html.escape(s.claim)}<br>"
            f"<i>{html.escape(s.assumptions)}</i></p>"
        )
        return head + html_table(("", "", "", "because"), rows)

    def _repr_latex_(self) -> str:
        """Render the formulas as one aligned block."""
        lines = [rf"& {step.tex} && \text{{{step.kind}}}" for step in self.steps if step.tex]
        return "$$\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}$$"


class Listing(tuple[Any, ...]):
    """A tuple of statements or of proven ones, with a table for text and notebook."""

    COLUMNS = ("key", "status", "source", "claim")

    def rows(self) -> list[tuple[str, ...]]:
        """Return key, status, source and claim of each."""
        statements = [getattr(item, "statement", item) for item in self]
        return [(s.key, s.status, s.source, s.claim) for s in statements]

    @property
    def statuses(self) -> dict[str, str]:
        """Return the status of each statement by key."""
        return {item.key: item.status for item in self}

    def __str__(self) -> str:
        """Return a plain table: key, status, source."""
        rows = [row[:3] for row in self.rows()]
        width = [max([len(row[i]) for row in rows], default=0) for i in (0, 1)]
        return "\n".join(f"{k:<{width[0]}}  {s:<{width[1]}}  {source}" for k, s, source in rows)

    def _repr_html_(self) -> str:
        """Render derivations one below the other, bare statements as a table."""
        if self and all(isinstance(item, Proven) for item in self):
            return "<hr>".join(item._repr_html_() for item in self)
        return html_table(self.COLUMNS, self.rows())


_BOOK: dict[str, Statement] = {}


def statement(
    key: str,
    source: str,
    claim: str,
    mutants: Mapping[str, Mapping[str, Any]],
    status: str = "proved",
    given: str = "",
    errata: tuple[int, ...] = (),
    gap: str = "",
) -> Callable[[Proof], Proof]:
    """Enter a proof into the book under its key; the fields are those of a `Statement`.

    `given` are the assumptions; without words of its own the gap names the errata.
    """

    def enter(proof: Proof) -> Proof:
        if key in _BOOK or status not in STATUSES or not mutants:
            raise InputError(f"statement {key!r} needs a key of its own, a status and a mutant")
        found = ", ".join(map(str, errata))
        words = "" if status == "proved" else gap or f"erratum {found}"
        _BOOK[key] = Statement(key, source, claim, status, given, errata, words, mutants, proof)
        return proof

    return enter


def matching(keys: str | Iterable[str] = ()) -> Listing:
    """Return the statements whose key is, or else starts with, one of the given ones."""
    wanted = [keys] if isinstance(keys, str) else list(keys)
    found: set[str] = set(_BOOK) if not wanted else set()
    for key in wanted:
        hits = {name for name in _BOOK if name == key or name.startswith(key)}
        if not hits:
            raise InputError(f"no statement begins with {key!r}; known: {', '.join(_BOOK)}")
        found |= hits
    return Listing(s for name, s in _BOOK.items() if name in found)
