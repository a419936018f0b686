"""A derivation: steps that were each checked when they were written down.

A step is an identity, the sign of an expression (by a certificate: an identical form
whose every part has a stated sign), an induction, an exact computation, a refutation,
or plain prose. Prose makes the whole derivation *argued*; nothing else is trusted.
"""

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


class Derivation:
    """Checked steps from assumptions to a claim; every method adds one step or raises ProofError.

    `why` is always the reason; a method that shows a sign returns the expression, now a fact.

    Attributes
    ----------
    steps : list of Step
        What was shown so far.
    facts : list of Fact
        Expressions of known sign, quantified over the symbols that no premise mentions.
    premises : list of Fact
        The facts that were assumed or cited, not shown here.
    cited : list of str
        Keys of other statements that a step uses.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.facts: list[Fact] = []
        self.premises: list[Fact] = []
        self.cited: list[str] = []

    @property
    def outcome(self) -> str:
        """Return what the steps amount to: argued, refuted or shown."""
        kinds = {step.kind for step in self.steps}
        if "prose" in kinds:
            return "argued"
        return "refuted" if "refutation" in kinds else "shown"

    def _add(self, kind: str, formula: str, why: str) -> None:
        self.steps.append(Step(kind, formula, why))

    def _presume(self, expr: Any, strict: bool) -> None:
        self.premises.append(Fact(sp.sympify(expr), strict))
        self.facts.append(self.premises[-1])

    def assume(self, expr: Any, why: str = "", strict: bool = True) -> None:
        """Write down an assumption: `expr` is positive (or, not strict, >= 0)."""
        self._presume(expr, strict)
        self._add("assumption", signed(expr, strict), why)

    def equal(self, left: Any, right: Any, why: str, show: str = "") -> Any:
        """Show an identity and return its right side; `show` is LaTeX of an unwieldy left side."""
        right = sp.sympify(right)
        if not is_zero(sp.sympify(left) - right):
            raise ProofError(f"{why}: {left} is not identical to {right}")
        self._add("identity", f"{show or tex(left)} = {tex(right)}", why)
        return right

    def differ(self, left: Any, right: Any, why: str) -> None:
        """Show that two expressions are not identical (an exact point tells them apart)."""
        if is_zero(sp.sympify(left) - right):
            raise ProofError(f"{why}: {left} is identical to {right}")
        self._add("refutation", f"{tex(left)} \\ne {tex(right)}", why)

    def correct(self, printed: Any, true: Any, why: str) -> None:
        """Show that a printed form is not the true one, which the other steps establish."""
        self.differ(printed, true, why)
        self.steps[-1] = self.steps[-1]._replace(kind="exact")

    def _certificate(self, form: Any, given: Mapping[Any, Any], why: str, strict: bool) -> Any:
        return certified(sp.sympify(form), given, self.facts, why, strict)

    def positive(
        self, expr: Any, form: Any, why: str, given: Mapping[Any, Any] | None = None, show: str = ""
    ) -> Any:
        """Show expr > 0 by certificate: an identical form whose every part has a sign.

        The form has sums, products and quotients of symbols with a sign, and letters of `given`
        that stand for facts, expressions of known sign; `show` is LaTeX of the expression.
        """
        return self._sign(expr, form, why, given, show, strict=True)

    def nonnegative(
        self, expr: Any, form: Any, why: str, given: Mapping[Any, Any] | None = None, show: str = ""
    ) -> Any:
        """Show expr >= 0 by certificate, as `positive`."""
        return self._sign(expr, form, why, given, show, strict=False)

    def _sign(self, expr: Any, form: Any, why: str, given: Any, show: str, strict: bool) -> Any:
        expr, plain = sp.sympify(expr), self._certificate(form, given or {}, why, strict)
        if not is_zero(expr - plain):
            raise ProofError(f"{why}: {expr} is not identical to {plain}")
        left = show or tex(expr)
        middle = "" if left == tex(plain) else f" = {tex(plain)}"
        self.facts.append(Fact(expr, strict))
        self._add("sign", signed(left + middle, strict), why)
        return expr

    def lemma(self, key: str, why: str, expr: Any = None, strict: bool = True) -> Any:
        """Use another statement, `expr` a fact by it; `Statement.prove` checks that it is one."""
        if expr is not None:
            whole = sp.sympify(expr)
            if (whole.is_positive if strict else whole.is_nonnegative) is False:
                raise ProofError(f"{why}: {expr} cannot have the sign that {key} is cited for")
            self._presume(whole, strict)
        formula = "" if expr is None else signed(expr, strict)
        self._add("lemma", formula, f"{why} [{key}]" if expr is None else f"{why}, by [{key}]")
        self.cited.append(key)
        return expr

    def at(self, fact: Any, point: Mapping[Any, Any], why: str = "") -> Any:
        """Use a fact at another point: counts stay positive integers, reals positive.

        The point must lie inside the range of every symbol and premise; no reason leaves no line.
        """
        found = known(self.facts, fact)
        if not found:
            raise ProofError(f"{fact} has no known sign: show it first")
        instantiable(point, self.premises, self.facts)
        expr = sp.sympify(fact).subs(dict(point), simultaneous=True)
        self.facts.append(Fact(expr, any(f.strict for f in found)))
        if why:
            self._add("sign", signed(expr, self.facts[-1].strict), why)
        return expr

    def induct(self, total: Any, term: Any, n: Any, why: str) -> Any:
        """Show the closed form S(n) of a sum from 1 by induction: S(n + 1) - S(n) = a(n + 1)."""
        total, term = sp.sympify(total), sp.sympify(term)
        if not is_zero(total.subs(n, 1) - term.subs(n, 1)):
            raise ProofError(f"{why}: the sum is wrong at {n} = 1")
        if not is_zero(total.subs(n, n + 1) - total - term.subs(n, n + 1)):
            raise ProofError(f"{why}: the sum does not grow by its next term {term}")
        index = sp.Symbol("l", integer=True, positive=True)
        left = rf"\sum_{{l=1}}^{{{n}}} \left({tex(term.subs(n, index))}\right)"
        self._add("induction", f"{left} = {tex(total)}", why)
        return total

    def grows(
        self, expr: Any, n: Any, base: Any, step: Any, why: str,
        given: Mapping[Any, Any] | None = None, factor: Any = 0, strict: bool = True,
    ) -> Any:  # fmt: skip
        """Show a sign for all n >= 1 by induction: E(1) and E(n + 1) - factor E(n).

        `base` and `step` are certificates of E(1) and of E(n + 1) - (1 + factor) E(n), a
        non-negative `factor`; no premise may restrict n. `strict` claims > 0 rather than >= 0.
        """
        fresh(n, self.premises, why)
        expr, given = sp.sympify(expr), given or {}
        plain = self._certificate(base, given, why, strict)
        rest = self._certificate(step, given, why, strict=False)
        if not sp.sympify(factor).is_nonnegative:
            raise ProofError(f"{why}: the factor {factor} has no sign")
        if not is_zero(expr.subs(n, 1) - plain):
            raise ProofError(f"{why}: the value at {n} = 1 is not {plain}")
        if not is_zero(expr.subs(n, n + 1) - (1 + factor) * expr - rest):
            raise ProofError(f"{why}: the step is not {rest}")
        self.facts.append(Fact(expr, strict))
        self._add("induction", signed(expr, strict), why)
        return expr

    def climbs(
        self, expr: Any, u: Any, slope: Any, why: str, given: Mapping[Any, Any] | None = None
    ) -> Any:
        """Show E(u) > 0 for all u > 0: E(0) = 0 and E' > 0 (mean value theorem).

        A `u` that may be 0 gives E >= 0; `slope` is the certificate of the derivative's sign.
        """
        fresh(u, self.premises, why)
        expr = sp.sympify(expr)
        strict = bool(u.is_positive)
        plain = self._certificate(slope, given or {}, why, strict)
        if not is_zero(expr.subs(u, 0)):
            raise ProofError(f"{why}: the value at {u} = 0 is not 0")
        if not is_zero(sp.diff(expr, u) - plain):
            raise ProofError(f"{why}: the derivative is not {plain}")
        self.facts.append(Fact(expr, strict))
        self._add("sign", signed(expr, strict), why)
        return expr

    def exact(self, condition: Any, formula: str, why: str) -> None:
        """Show a fact about given numbers: exact arithmetic, or a finite enumeration.

        An order between logarithms is SymPy's, which computes until the sign is certain.
        """
        if not (condition is True or condition == sp.true):
            raise ProofError(f"{why}: {formula} does not hold")
        self._add("exact", formula, why)

    def refute(self, condition: Any, formula: str, why: str) -> None:
        """Show a counterexample to the printed claim."""
        self.exact(condition, formula, why)
        self.steps[-1] = self.steps[-1]._replace(kind="refutation")

    def argue(self, text: str) -> None:
        """Add a step in prose; the derivation is then *argued* and names its gap."""
        self._add("prose", "", text)
