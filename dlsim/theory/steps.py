"""The parts of a derivation: a step, a fact, and how they are written."""

import html
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import sympy as sp

from dlsim.theory.zero import ProofError, UndecidedError, is_zero


class Step(NamedTuple):
    """One line of a derivation: how it was checked, its formula in LaTeX without dollars, why."""

    kind: str
    tex: str
    why: str


class Fact(NamedTuple):
    """An expression whose sign is known: assumed, or shown by an earlier step."""

    expr: Any
    strict: bool


def tex(expr: Any) -> str:
    """Return an expression as LaTeX."""
    return expr if isinstance(expr, str) else str(sp.latex(expr, ln_notation=True))


def signed(expr: Any, strict: bool) -> str:
    """Return "expr > 0" or, not strict, "expr >= 0" as LaTeX."""
    return f"{tex(expr)} {'>' if strict else chr(92) + 'ge'} 0"


def matches(a: Any, b: Any) -> bool:
    """Tell whether two expressions are one; undecided counts as no."""
    if a == b:
        return True
    if a.free_symbols != b.free_symbols:
        return False
    try:
        return is_zero(a - b)
    except UndecidedError:
        return False


def known(facts: Iterable[Fact], expr: Any) -> list[Fact]:
    """Return the facts that state the sign of an expression."""
    expr = sp.sympify(expr)
    return [fact for fact in facts if matches(fact.expr, expr)]


def certified(
    form: Any, given: Mapping[Any, Any], facts: Iterable[Fact], why: str, strict: bool
) -> Any:
    """Return a certificate in plain terms, once each letter stands for a fact."""
    facts = list(facts)
    for letter, expr in given.items():
        if letter.is_integer or not letter.is_nonnegative:
            raise ProofError(f"{why}: the letter {letter} must be a positive or >= 0 real")
        if not any(f.strict or not letter.is_positive for f in known(facts, expr)):
            raise ProofError(f"{why}: the sign of {expr} is not known yet")
    if not (form.is_positive or (form.is_nonnegative and not strict)):
        raise ProofError(f"{why}: {form} is not made of positive parts")
    return form.subs(dict(given), simultaneous=True)


def _evident(fact: Fact) -> bool:
    """Tell whether a sign follows from the ranges of the symbols alone."""
    return bool(fact.expr.is_positive or (fact.expr.is_nonnegative and not fact.strict))


def fresh(symbol: Any, premises: Iterable[Fact], why: str) -> None:
    """Refuse an induction or integration variable that a premise restricts."""
    for premise in premises:
        if symbol in premise.expr.free_symbols and not _evident(premise):
            raise ProofError(f"{why}: {symbol} is not free, {premise.expr} is assumed")


def instantiable(point: Mapping[Any, Any], premises: Iterable[Fact], facts: Iterable[Fact]) -> None:
    """Refuse a point outside the range of a symbol, or where a premise is not known to hold."""
    facts = list(facts)
    for symbol, value in point.items():
        value = sp.sympify(value)
        may_be_0 = symbol.is_nonnegative and not symbol.is_positive
        inside = value.is_positive or (may_be_0 and value.is_nonnegative)
        if not inside or (symbol.is_integer and not value.is_integer):
            raise ProofError(f"{value} is outside the range of {symbol}")
    for premise in premises:
        moved = sorted(map(str, premise.expr.free_symbols & set(point)))
        there = Fact(premise.expr.subs(dict(point), simultaneous=True), premise.strict)
        if not moved or _evident(there):
            continue
        if not any(f.strict or not there.strict for f in known(facts, there.expr)):
            raise ProofError(
                f"{premise.expr} is assumed of {', '.join(moved)}: show {there.expr} first"
            )


def html_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table of texts; dollars are typeset by the notebook."""
    style = "text-align:left;vertical-align:top"

    def line(tag: str, cells: Iterable[str]) -> str:
        return "".join(f"<{tag} style='{style}'>{html.escape(cell)}</{tag}>" for cell in cells)

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', columns)}</tr></thead><tbody>{body}</tbody></table>"
