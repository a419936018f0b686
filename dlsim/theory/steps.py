"""The parts of a derivation: a step, a fact, and how they are written."""

import html
from collections.abc import Iterable
from typing import Any, NamedTuple

import sympy as sp

from dlsim.theory.zero import UndecidedError, is_zero


class Step(NamedTuple):
    """One line of a derivation.

    Attributes
    ----------
    kind : {"assumption", "lemma", "identity", "sign", "induction", "exact", "refutation", "prose"}
        How it was checked.
    tex : str
        The formula, in LaTeX without dollars; may be empty.
    why : str
        The reason, in words.
    """

    kind: str
    tex: str
    why: str


class Fact(NamedTuple):
    """An expression whose sign is known: assumed, or shown by an earlier step."""

    expr: Any
    strict: bool


def tex(expr: Any) -> str:
    """Return an expression as LaTeX.

    Parameters
    ----------
    expr : sympy expression or str
        A string is taken as LaTeX already.

    Returns
    -------
    str
        LaTeX without dollars.
    """
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


def html_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table of texts; dollars are typeset by the notebook.

    Parameters
    ----------
    columns : iterable of str
        Headings.
    rows : iterable of iterable of str
        Cells.

    Returns
    -------
    str
        HTML, everything escaped.
    """
    style = "text-align:left;vertical-align:top"

    def line(tag: str, cells: Iterable[str]) -> str:
        return "".join(f"<{tag} style='{style}'>{html.escape(cell)}</{tag}>" for cell in cells)

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', columns)}</tr></thead><tbody>{body}</tbody></table>"
