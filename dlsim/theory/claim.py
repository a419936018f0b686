"""Claims as formulas: relations, equivalences, and goals with their hypotheses.

A claim is printed from itself, so that what is read is what was proved. Free symbols are
quantified over their domains; `over` binds the index of a hypothesis about a whole sequence.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import sympy as sp
from sympy.core.function import AppliedUndef, FunctionClass
from sympy.printing.pretty.pretty_symbology import greek_unicode

from dlsim.theory.zero import ProofError, is_zero

_TEX = {"=": "=", ">": ">", ">=": r"\ge", "<": "<", "<=": r"\le", "!=": r"\not\equiv"}
NEGATED = {">": ">=", ">=": ">"}


def tex(expr: Any) -> str:
    """Return an expression as LaTeX."""
    return expr if isinstance(expr, str) else str(sp.latex(expr, ln_notation=True))


class Relation(NamedTuple):
    """Two expressions and how they compare; "!=" means not identical, not everywhere unequal."""

    left: Any
    op: str
    right: Any
    over: Any = None

    @property
    def sign(self) -> str:
        """Return what is said of the gap: that it is = 0, > 0, >= 0, or != 0 somewhere."""
        return {"<": ">", "<=": ">="}.get(self.op, self.op)

    @property
    def gap(self) -> Any:
        """Return the difference of the sides, the greater minus the smaller."""
        return self.right - self.left if self.op[0] == "<" else self.left - self.right

    @property
    def free(self) -> set[Any]:
        """Return the symbols that an instance may change."""
        return (self.left.free_symbols | self.right.free_symbols) - self.bound

    @property
    def bound(self) -> set[Any]:
        """Return the indices that the relation speaks of all at once: none, one or several."""
        return set(self.over if isinstance(self.over, tuple) else [self.over]) - {None}

    @property
    def negated(self) -> "Relation":
        """Return the opposite of an inequality."""
        if self.sign not in NEGATED or self.over is not None:
            raise ProofError(f"{self.tex()} has no opposite that is an inequality")
        return Relation(sp.S.Zero, NEGATED[self.sign], self.gap)

    def map(self, change: Callable[[Any], Any]) -> "Relation":
        """Return the same relation between changed sides."""
        return Relation(change(self.left), self.op, change(self.right), self.over)

    def tex(self) -> str:
        """Return LaTeX."""
        indices = ", ".join(sorted(map(tex, self.bound)))
        every = rf"\ \ \forall {indices}" if indices else ""
        return f"{tex(self.left)} {_TEX[self.op]} {tex(self.right)}{every}"

    def text(self) -> str:
        """Return it as SymPy's pretty printer writes it."""
        if self.op == "!=":
            return f"not identical:\n{_pretty(self.left)}\n{_pretty(self.right)}"
        op = "==" if self.op == "=" else self.op
        return _pretty(sp.Rel(self.left, self.right, op, evaluate=False))


class Iff(NamedTuple):
    """Two relations of which each implies the other."""

    left: Relation
    right: Relation

    @property
    def ways(self) -> "list[Iff]":
        """Return it read from each side, and of inequalities by the opposites of both."""
        both = [self, Iff(self.right, self.left)]
        return both + [Iff(a.negated, b.negated) for a, b in both if self.left.sign != "="]

    @property
    def free(self) -> set[Any]:
        """Return the symbols that an instance may change."""
        return self.left.free | self.right.free

    def map(self, change: Callable[[Any], Any]) -> "Iff":
        """Return the equivalence of changed relations."""
        return Iff(self.left.map(change), self.right.map(change))

    def tex(self) -> str:
        """Return LaTeX."""
        return rf"{self.left.tex()} \iff {self.right.tex()}"

    def text(self) -> str:
        """Return it as SymPy's pretty printer writes it."""
        return f"{self.left.text()}\n  if and only if\n{self.right.text()}"


Claim = Relation | Iff


def sides(claim: Claim) -> tuple[Relation, ...]:
    """Return the relations of a claim."""
    return (claim,) if isinstance(claim, Relation) else (claim.left, claim.right)


def ends(claims: Iterable[Claim]) -> list[Any]:
    """Return the sides of all relations of claims."""
    return [end for c in claims for side in sides(c) for end in (side.left, side.right)]


def one_letter_each(exprs: Iterable[Any], why: str) -> None:
    """Refuse letters, or sequences, that look alike but have different ranges or meanings."""
    names: dict[Any, Any] = {}
    for part in set().union(*(expr.atoms(sp.Symbol, AppliedUndef) for expr in exprs)):
        letter = part if part.is_Symbol else part.func
        if names.setdefault((part.is_Symbol, str(letter)), letter) != letter:
            raise ProofError(f"{why}: {letter} is the name of two letters")


class Goal(NamedTuple):
    """A claim and the hypotheses under which it holds."""

    claim: Claim
    given: tuple[Relation, ...] = ()


#: How a terminal writes what reasons write in LaTeX.
_PLAIN = {
    r"\\(?:tfrac|frac)\{([^{}]*)\}\{([^{}]*)\}": r"\1/\2", r"\\tfrac(\d)(\d)": r"\1/\2",
    r"\\mathcal\{(\w)\}|\\mathcal (\w)|\\text\{([^{}]*)\}": r"\1\2\3",
    r"\\hat ?\{?(\w)\}?": "\\1\u0302", r"\\iff": "iff", r"\\tilde\\beta": "β̃", r"\\lceil": "⌈",
    r"\\rceil": "⌉", r"\\ln": "ln", r"\\sqrt": "√", r"\\le(?![a-z])": "≤", r"\\ge(?![a-z])": "≥",
    r"\\ne(?![a-z])": "≠", r"\\cap": "∩", r"\\sum": "∑", r"\\prod": "∏", r"\\infty": "∞",
    r"\\in(?![a-z])": "in", r"\\to(?![a-z])": "→", r"\\dots": "...", r"\\([{}])": r"\1",
    r"\\[,; ]": " ", r"[$]|(?<=[_^])\{|(?<=\w)\}": "",
}  # fmt: skip


def plain(text: str) -> str:
    """Return a reason as a terminal can show it: letters and signs for LaTeX's commands."""
    for pattern, shown in _PLAIN.items():
        text = re.sub(pattern, shown, text)
    return re.sub(r"\\([A-Za-z]+)", lambda found: greek_unicode.get(found[1], found[1]), text)


def _pretty(expr: Any) -> str:
    return str(sp.pretty(expr, use_unicode=True, wrap_line=False))


def _relation(op: str) -> Callable[..., Relation]:
    def make(left: Any, right: Any, over: Any = None) -> Relation:
        return Relation(sp.sympify(left), op, sp.sympify(right), over)

    return make


eq, gt, ge, lt, le = map(_relation, ("=", ">", ">=", "<", "<="))
differ = _relation("!=")


def under(claim: Claim, *given: Relation) -> Goal:
    """Return a goal with hypotheses of its own."""
    return Goal(claim, given)


def sequence(name: str, **assumptions: bool) -> Any:
    """Return a sequence that nothing is known of, written with its index below."""
    made = sp.Function(name, **assumptions)
    made._latex = _latex(sp.latex(sp.Symbol(name)), slice(None), slice(0))
    return made


def _latex(letter: str, below: slice, behind: slice) -> Callable[..., str]:
    """Return how a function prints itself or its power: some arguments below, others behind."""

    def latex(self: Any, printer: Any, exp: Any = None) -> str:
        low, rest = (", ".join(map(printer._print, self.args[part])) for part in (below, behind))
        power = f"^{{{exp}}}" if exp else ""
        return letter + (f"_{{{low}}}" if low else "") + power + (f"({rest})" if rest else "")

    return latex


def _function(name: str, latex: Any, **members: Any) -> Any:
    """Return a function that is equal to no other one of its name."""
    return FunctionClass(name, (AppliedUndef,), {"nargs": None, "_latex": latex, **members})


def recursive(
    name: str, first: Callable[..., Any], step: Callable[..., Any], start: int = 1,
    **assumptions: bool,
) -> Any:  # fmt: skip
    """Return a sequence given by its first term and by what follows a term.

    Its terms may depend on more than the index. Every letter in what defines it is an argument
    that is not written, so that an instance of a claim is one of its meaning.
    """
    count = first.__code__.co_argcount
    k, before, *places = (sp.Dummy(real=True) for _ in range(count + 2))
    base, following = sp.sympify(first(*places)), step(k, before, *places)
    at_first = {k: sp.Dummy(integer=True, positive=start > 0, nonnegative=True)}
    after = following.xreplace({**at_first, before: sp.Dummy(**assumptions)})
    if not all(getattr(term, f"is_{kind}") for term in (base, after) for kind in assumptions):
        raise ProofError(f"{name}: its terms are not known to be {' and '.join(assumptions)}")
    defines = sp.Tuple(base, following)
    letters = sorted(defines.free_symbols - {k, before, *places}, key=str)

    def at(args: tuple[Any, ...]) -> dict[Any, Any]:
        return dict(zip([*places, *letters], args, strict=True))

    @cache
    def unfolded(index: Any, *args: Any) -> Any:
        if index == start:
            return base.xreplace(at(args))
        if not (index - 1 - start).is_nonnegative:
            raise ValueError(index)
        return following.xreplace({**at(args), k: index - 1, before: made(index - 1, *args)})

    def evaluated(cls: Any, index: Any, *args: Any) -> Any:
        follows = index.as_coeff_Add()[0] == 1 and (index - 1 - start).is_nonnegative
        return unfolded(index, *args) if index in (start, start + 1) or follows else None

    def text(self: Any, printer: Any) -> Any:
        return printer._print(sp.Function(name)(*self.args[: count + 1]))

    made = _function(
        name, _latex(name, slice(1), slice(1, count + 1)), eval=classmethod(evaluated),
        unfolded=staticmethod(unfolded), _pretty=text, _sympystr=text,
        behind={term.func for term in defines.atoms(AppliedUndef)}, start=start,
        **{f"is_{kind}": holds for kind, holds in assumptions.items()},
    )  # fmt: skip
    return lambda *args: made(*args, *letters)


def computed(name: str, function: Callable[..., Any]) -> Any:
    """Return a function of exact numbers that only a computation evaluates."""
    latex = _latex(rf"\operatorname{{{name}}}", slice(0), slice(None))
    return _function(name, latex, computes=staticmethod(function))


def total(term: Callable[[Any], Any], upto: Any, index: str = "l") -> Any:
    """Return the sum of the first terms of a sequence."""
    each = sp.Symbol(index, integer=True, positive=True)
    return sp.Sum(term(each), (each, 1, upto))


def expanded(expr: Any, where: Mapping[Any, Any]) -> Any:
    """Replace every defined name by what it stands for; the last definitions may use none."""
    for name, meaning in where.items():
        meaning = sp.sympify(meaning)
        if isinstance(name, AppliedUndef):
            expr = expr.replace(name.func, sp.Lambda(name.args, meaning))
        else:
            expr = expr.xreplace({name: meaning})
    for name in where:
        if expr.has(name if name.is_Symbol else name.func):
            raise ProofError(f"{name} is defined before what it is used in")
    return expr


_SIGNS = ("real", "integer", "nonnegative", "positive")


def _may_be(expr: Any, name: Any, value: Any) -> bool:
    """Tell whether what a witness says of a letter or a sequence lies in its range."""
    if isinstance(name, sp.Symbol):
        pairs = [(name, sp.sympify(value))]
    else:
        terms = (term for term in expr.atoms(AppliedUndef) if term.func == name)
        pairs = [(term, sp.sympify(value(*term.args))) for term in terms]
    return all(
        getattr(number, f"is_{sign}") or (sign == "real" and number.is_real is None)
        for letter, number in pairs for sign in _SIGNS if getattr(letter, f"is_{sign}")
    )  # fmt: skip


def holds(relation: Relation, point: Mapping[Any, Any]) -> bool:
    """Tell whether a hypothesis is true at a witness, exactly; sequences are given as functions.

    Counts that the witness does not name are 3, other reals 1/2.
    """
    gap, others = relation.gap, relation.free - set(point)
    usual = {s: sp.Integer(3) if s.is_integer else sp.Rational(1, 2) for s in others}
    # twice: only where counts are known it shows what a sum holds
    for name, value in [*point.items(), *usual.items()] * 2:
        if not _may_be(gap, name, value):
            return False
        gap = gap.replace(name, value) if isinstance(name, type) else gap.subs(name, value)
        gap = gap.doit()
    if relation.sign == "=":
        return is_zero(gap)
    gap = sp.cancel(gap)
    return bool(gap.is_positive if relation.sign == ">" else gap.is_nonnegative)


#: How the ranges of letters are written, the narrowest first.
_WRITTEN = {
    ("integer", "positive"): r"{} \in \{{1, 2, \dots\}}", ("positive",): "{} > 0",
    ("integer", "nonnegative"): r"{} \in \{{0, 1, \dots\}}", ("nonnegative",): r"{} \ge 0",
    ("integer",): r"{} \in \mathbb{{Z}}", ("real",): r"{} \in \mathbb{{R}}",
}  # fmt: skip


def _letter(name: Any) -> Any:
    """Return the letter of a sequence, or a letter itself."""
    return sp.Symbol(name.__name__) if isinstance(name, type) else name


def ranges(exprs: Iterable[Any], besides: Iterable[Any]) -> str:
    """Return the ranges of the letters and sequences in expressions, as SymPy may use them."""
    found: dict[str, set[str]] = {}
    for expr in exprs:
        for letter in expr.free_symbols | expr.atoms(AppliedUndef):
            name = letter.func if isinstance(letter, AppliedUndef) else letter
            has = [kind for kind in _WRITTEN if all(getattr(letter, f"is_{k}") for k in kind)]
            if has and name not in besides and not hasattr(name, "unfolded"):
                found.setdefault(_WRITTEN[has[0]], set()).add(tex(_letter(name)))
    return ", ".join(
        f"${shown.format(', '.join(sorted(found[shown])))}$"
        for shown in _WRITTEN.values() if shown in found
    )  # fmt: skip


def written(goals: Iterable[Goal], where: Mapping[Any, Any], exists: Mapping[Any, Any]) -> str:
    """Return claims as text with LaTeX: hypotheses, goals, names, the ranges of all letters."""
    goals = tuple(goals)
    shared: dict[tuple[Relation, ...], list[str]] = {}
    for goal in goals:
        shared.setdefault(goal.given, []).append(f"${goal.claim.tex()}$")
    some = ", ".join(
        f"${tex(root)} > 0$ (of ${', '.join(tex(_letter(name)) for name in of)}$ alone)"
        for root, of in exists.items()
    )
    start = f"There is {some} such that: " if some else ""
    parts = []
    for given, claims in shared.items():
        premises = ", ".join(f"${relation.tex()}$" for relation in given)
        parts.append(("If " + premises + " then " if premises else "") + ", ".join(claims))
    names = ", ".join(f"${tex(name)} = {tex(meaning)}$" for name, meaning in where.items())
    exprs = ends(claim for goal in goals for claim in (goal.claim, *goal.given))
    exprs += map(sp.sympify, where.values())
    one_letter_each([*exprs, *(name for name in where if name.is_Symbol)], "what is printed")
    domain = ranges(exprs, {name if name.is_Symbol else name.func for name in (*where, *exists)})
    told = (f", where {names}" if names else "") + (f"; for all {domain}" if domain else "")
    return start + "; ".join(parts) + told


def as_claim(what: Any) -> Claim:
    """Read an expression as the claim that it is positive."""
    return what if isinstance(what, Relation | Iff) else gt(what, 0)
