"""Statements about the papers and their errata as data, and the verb that proves a statement.

What a statement says is a row of data/theory.toml; its proof is a function tied to its key.
"""

import html
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple

from dlsim.errors import InputError
from dlsim.files import read_tables, shared_file
from dlsim.given import items, option, text, whole
from dlsim.theory.claim import Claim, Goal, Relation, differ, expanded, holds, written
from dlsim.theory.derivation import Derivation, Step
from dlsim.theory.zero import ProofError

#: What a statement can turn out to be: proved as a paper prints it; ours, printed nowhere; a
#: correction of what is printed, or of its notation alone; a counterexample to what is printed.
STATUSES = {
    "proved": "proved as printed", "ours": "proved, ours", "corrected": "after a correction",
    "notation": "notation", "refuted": "refuted",
}  # fmt: skip

Proof = Callable[[Derivation], None]


def html_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table of texts; dollars are typeset by the notebook."""
    style = "text-align:left;vertical-align:top"

    def line(tag: str, cells: Iterable[str]) -> str:
        return "".join(f"<{tag} style='{style}'>{html.escape(cell)}</{tag}>" for cell in cells)

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', columns)}</tr></thead><tbody>{body}</tbody></table>"


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
    status : {"proved", "ours", "corrected", "notation", "refuted"}
        What its derivation establishes.
    assumptions : str
        What the symbols stand for and which values they take.
    errata : tuple of int
        Numbers of the errata it decides.
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
    mutants: Mapping[str, Mapping[Any, Any]] = field(repr=False)
    proof: Proof = field(repr=False)
    goals: tuple[Goal, ...] = ()
    where: Mapping[Any, Any] = field(default_factory=dict)
    exists: Mapping[Any, Any] = field(default_factory=dict)
    witness: tuple[Mapping[Any, Any], ...] = ({},)

    def expanded(self, changed: Mapping[Any, Any] | None = None) -> tuple[Goal, ...]:
        """Return the goals in plain terms; a mutant changes a definition or a goal's claim."""
        changed = changed or {}
        where = {name: changed.get(name, meaning) for name, meaning in self.where.items()}

        def plain(claim: Any) -> Any:
            return claim.map(lambda side: expanded(side, where))

        return tuple(
            Goal(plain(changed.get(i, goal.claim)), tuple(map(plain, goal.given)))
            for i, goal in enumerate(self.goals)
        )

    def derivation(self, changed: Mapping[Any, Any] | None = None) -> Derivation:
        """Return the steps of the proof, unless one fails; `finish` then checks the goals."""
        derivation = Derivation(self.expanded(changed), self.exists, cite=cited)
        self.proof(derivation)
        derivation.finish()
        return derivation

    def prove(self, changed: Mapping[Any, Any] | None = None) -> "Proven":
        """Run the proof and check that it reaches its goals, hypotheses and citations included.

        A mutant changes definitions, by their symbols, or claims of goals, by their numbers.
        """
        if self.key in _ACTIVE:
            raise ProofError(f"{self.key} rests on itself: {' -> '.join([*_ACTIVE, self.key])}")
        _ACTIVE.append(self.key)
        try:
            derivation = self.derivation(changed)
            self._consistent()
            for key in dict.fromkeys(derivation.cited):
                if key not in _SOUND:
                    _BOOK[key].prove()
        except ProofError as error:
            if str(error).startswith(f"{self.key}: "):
                raise
            raise type(error)(f"{self.key}: {error}") from None
        finally:
            _ACTIVE.pop()
        if not changed:
            _SOUND.add(self.key)
        names = {
            plain.claim: goal.claim.tex()
            for plain, goal in zip(self.expanded(), self.goals, strict=True)
        }
        steps = (s._replace(tex=names.get(s.claim, s.tex)) for s in derivation.steps)
        return Proven(self, tuple(steps), tuple(derivation.cited))

    def _consistent(self) -> None:
        """Check that every goal's hypotheses hold together at one of the witness points."""
        for goal in self.expanded():
            if not any(all(holds(p, point) for p in goal.given) for point in self.witness):
                raise ProofError(
                    f"no witness point shows that {goal.claim.tex()} speaks of anything"
                )

    def _repr_html_(self) -> str:
        """Render as one row of the table of statements."""
        return Listing([self])._repr_html_()


#: What kinds of steps are called where their own word is not the clearest.
_HEADINGS = {"assumption": "given", "refutation": "not identical"}


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
            (str(i), _HEADINGS.get(kind, kind), rf"$\displaystyle {formula}$" * bool(formula), why)
            for i, (kind, _, formula, why) in enumerate(self.steps, start=1)
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

    COLUMNS: tuple[str, ...] = ("key", "status", "source", "claim")

    def rows(self) -> list[tuple[str, ...]]:
        """Return key, status, source and claim of each."""
        every = [getattr(item, "statement", item) for item in self]
        return [(s.key, s.status, s.source, s.claim) for s in every]

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


class Erratum(NamedTuple):
    """One place where a paper and the proofs differ.

    Attributes
    ----------
    number : int
        1 to 36.
    severity : {"A", "B", "C", "-"}
        A changes a result or a proof; B is a wrong formula whose meaning is clear; C is
        cosmetic; "-" adds what the print does not say.
    where : str
        Paper and place: M mcdf, I inserted-idle-time, S steady-state, B bricks.
    printed, correct, proof, consequence : str
        What is printed, what it should be, why, and what the engine does.
    keys : tuple of str
        Keys of the statements that decide it.
    """

    number: int
    severity: str
    where: str
    printed: str
    correct: str
    proof: str
    consequence: str
    keys: tuple[str, ...] = ()


class Errata(Listing):
    """All errata, as a tuple with a table for text and notebook."""

    COLUMNS = ("#", "where", "printed", "correct", "proof", "consequence", "statements")

    def rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the table."""
        return [(f"{e.number} {e.severity}", *e[2:7], ", ".join(e.keys)) for e in self]

    def __str__(self) -> str:
        """Return one line per erratum: number, place, the statements that decide it."""
        return "\n".join(f"{row[0]:<5} {row[1]:<34} {row[-1]}" for row in self.rows())


_TEXTS = read_tables(
    shared_file("data/theory.toml"),
    {
        "letters": dict.fromkeys(("id", "mean"), text),
        "statement": {
            **dict.fromkeys(("id", "source", "given?", "gap?"), text),
            "status?": partial(option, options=STATUSES), "letters?": items, "errata?": items,
        },
        "erratum": {"number": whole, **dict.fromkeys(Erratum._fields[1:-1], text)},
    },
)  # fmt: skip
_LETTERS = {row["id"]: row["mean"] for row in _TEXTS["letters"]}
#: What every statement says, by its key.
STATED = {row["id"]: row for row in _TEXTS["statement"]}
_BOOK: dict[str, Statement] = {}


#: The statements that are being proved, and those that were.
_ACTIVE: list[str] = []
_SOUND: set[str] = set()


def statement(
    key: str, mutants: Mapping[str, Mapping[Any, Any]], goals: Iterable[Goal | Claim] = (),
    given: Iterable[Relation] = (), where: Mapping[Any, Any] | None = None,
    exists: Mapping[Any, Iterable[Any]] | None = None, refutes: Relation | None = None,
    witness: Mapping[Any, Any] | tuple[Mapping[Any, Any], ...] = ({},),
) -> Callable[[Proof], Proof]:  # fmt: skip
    """Enter a proof into the book under the key of a statement of data/theory.toml.

    What it says are its goals, each under the hypotheses given; of a claim it refutes the last
    goal is the opposite. What its letters stand for is data; without words of its own the gap
    names the errata.
    """
    if refutes is not None:
        wrong = differ(refutes.left, refutes.right) if refutes.op == "=" else refutes.negated
        goals = (*goals, wrong)
    points = (witness,) if isinstance(witness, Mapping) else witness
    every = tuple(
        Goal(goal.claim, (*given, *goal.given)) if isinstance(goal, Goal) else Goal(goal, (*given,))
        for goal in goals
    )

    def enter(proof: Proof) -> Proof:
        if key in _BOOK or key not in STATED or not mutants or not every:
            raise InputError(f"statement {key!r} needs a row of its own, a goal and a mutant")
        row = STATED[key]
        status, errata = row.get("status", "proved"), tuple(row.get("errata", ()))
        assumed = "".join(_LETTERS[one] for one in row.get("letters", ())) + row.get("given", "")
        found = f"erratum {', '.join(map(str, errata))}"
        gap = "" if status in ("proved", "ours") else row.get("gap", found)
        claim = written(every, where or {}, exists or {})
        if refutes is not None:
            claim = f"Printed: ${refutes.tex()}$. But {claim}"
        fields = (key, row["source"], claim, status, assumed, errata, gap, mutants, proof)
        _BOOK[key] = Statement(*fields, every, where or {}, dict(exists or {}), points)
        return proof

    return enter


def cited(key: str, goal: int) -> Goal:
    """Return a goal of another statement, for a proof that uses it."""
    if key not in _BOOK:
        raise ProofError(f"there is no statement {key}")
    found = _BOOK[key]
    if found.status == "refuted" or found.exists or goal >= len(found.goals):
        raise ProofError(f"{key} has no goal {goal} that may be cited")
    return found.expanded()[goal]


def errata() -> Errata:
    """Return the 36 things found in the papers: printed, correct, proof, consequence.

    Examples
    --------
    >>> errata()[0].keys
    ('4.7-4.10',)
    """
    return Errata(
        Erratum(**row, keys=tuple(s.key for s in statements() if row["number"] in s.errata))
        for row in _TEXTS["erratum"]
    )


def statements(keys: str | Iterable[str] = ()) -> Listing:
    """Return the statements, without running their proofs.

    Parameters
    ----------
    keys : str or iterable of str
        Keys or prefixes; none means all.

    Examples
    --------
    >>> [s.status for s in statements("5.2")]
    ['proved', 'refuted', 'corrected', 'corrected']
    """
    wanted = [keys] if isinstance(keys, str) else list(keys)
    found: set[str] = set(_BOOK) if not wanted else set()
    for key in wanted:
        hits = {name for name in _BOOK if name == key or name.startswith(key)}
        if not hits:
            near = get_close_matches(key.lower(), [name.lower() for name in _BOOK], 3, 0.5)
            meant = [name for name in _BOOK if name.lower() in near]
            hint = f"; did you mean {' or '.join(meant)}?" if meant else ""
            raise InputError(f"no statement begins with {key!r}{hint}; known: {', '.join(_BOOK)}")
        found |= hits
    return Listing(s for name, s in _BOOK.items() if name in found)
