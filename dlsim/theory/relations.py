"""What a line of a derivation claims: a relation, an equivalence, or a relation for every index."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.latex import LatexPrinter
from sympy.printing.printer import Printer
from sympy.printing.str import StrPrinter

from dlsim.errors import InputError
from dlsim.theory.expressions import ProofError, expression_of, is_symbol

# ------------------------------------------------------------------ printing


class _Latex(LatexPrinter):
    """SymPy's LaTeX, with the values of a sequence written as the papers do: r_j."""

    def _print_Subs(self, expr: sp.Subs) -> str:
        return rf"\left[{self._print(expr.expr)}\right]_{{{_values_put_in(self, expr)}}}"

    def _print_Function(self, expr: sp.Function, exp: Any = None) -> str:
        if not isinstance(expr, AppliedUndef):
            return str(super()._print_Function(expr, exp))
        name = self._hprint_Function(expr.func.__name__)
        arguments = ",".join(self._print(argument) for argument in expr.args)
        text = f"{name}_{{{arguments}}}" if arguments else name
        return text if exp is None else f"{text}^{{{exp}}}"


class _Text(StrPrinter):
    """SymPy's plain text, with derivatives and values put in as they are read aloud."""

    def _print_Subs(self, expr: sp.Subs) -> str:
        return f"[{self._print(expr.expr)} at {_values_put_in(self, expr)}]"

    def _print_Dummy(self, expr: sp.Dummy) -> str:
        return str(expr.name)

    def _print_Derivative(self, expr: sp.Derivative) -> str:
        return f"d/d{self._print(expr.variables[0])} [{self._print(expr.expr)}]"


def _values_put_in(printer: Printer, expr: sp.Subs) -> str:
    pairs = zip(expr.variables, expr.point, strict=True)
    return ", ".join(f"{printer._print(old)} = {printer._print(new)}" for old, new in pairs)


#: How relations and claims are written in text and in LaTeX.
_IN_TEXT = {"iff": "  iff  ", "range": "  ({} = {}, ..., {})"}
_IN_LATEX = {
    ">=": r"\ge", "<=": r"\le",
    "iff": r" \quad\Leftrightarrow\quad ", "range": r" \quad ({} = {}, \dots, {})",
}  # fmt: skip


def to_text(value: Any) -> str:
    """Return an expression or a claim as plain text."""
    if isinstance(value, Proposition):
        return value.write(to_text, _IN_TEXT)
    return str(_Text().doprint(value)) if isinstance(value, sp.Basic) else str(value)


def to_latex(value: Any) -> str:
    """Return an expression or a claim as LaTeX."""
    if isinstance(value, Proposition):
        return value.write(to_latex, _IN_LATEX)
    return str(_Latex({"ln_notation": True}).doprint(sp.sympify(value)))


# ------------------------------------------------------------------ claims


class Proposition(ABC):
    """What a line can claim; it prints itself in text and in LaTeX."""

    @property
    @abstractmethod
    def sides(self) -> tuple[sp.Expr, ...]:
        """All expressions in it."""

    @abstractmethod
    def subs(self, values: Mapping[Any, Any]) -> Any:
        """Replace symbols, all at once, but not the index of a range."""

    @abstractmethod
    def write(self, to_string: Callable[[Any], str], notation: Mapping[str, str]) -> str:
        """Return it as a string, given how expressions and signs are written."""

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """The symbols that neither a sum nor a range binds."""
        return set().union(*(side.free_symbols for side in self.sides))

    @property
    def bound_symbols(self) -> set[sp.Symbol]:
        """The indices of sums and of a range, and what is put in or differentiated by."""
        kinds = (sp.Sum, sp.Subs, sp.Derivative)
        binding = set().union(*(side.atoms(*kinds) for side in self.sides))
        return {symbol for part in binding for symbol in part.variables}

    def __str__(self) -> str:
        return to_text(self)

    def _repr_latex_(self) -> str:
        return f"${to_latex(self)}$"


#: The signs of relations.
SIGNS = ("=", ">", ">=", "<", "<=")


def _require_relations(*relations: Any) -> None:
    for relation in relations:
        if type(relation) is not Relation:
            raise InputError(f"{relation!r} is no relation: make it by eq, gt, ge, lt or le")


@dataclass(frozen=True)
class Relation(Proposition):
    """``left sign right``, with the sign ``=``, ``>``, ``>=``, ``<`` or ``<=``."""

    left: sp.Expr
    sign: str
    right: sp.Expr

    def __post_init__(self) -> None:
        if type(self.sign) is not str or self.sign not in SIGNS:
            raise InputError(f"{self.sign!r} is no sign: one of {', '.join(SIGNS)}")
        object.__setattr__(self, "left", expression_of(self.left))
        object.__setattr__(self, "right", expression_of(self.right))

    @property
    def gap(self) -> sp.Expr:
        """The difference that is 0, positive or not negative."""
        difference = self.left - self.right
        return -difference if self.sign in ("<", "<=") else difference

    @property
    def kind(self) -> str:
        """What the gap is: ``=``, ``>`` or ``>=`` zero."""
        return self.sign.replace("<", ">")

    @property
    def negated(self) -> "Relation":
        """The relation that holds exactly where this inequality does not."""
        if self.sign == "=":
            raise ProofError(f"the negation of {self} is no single relation")
        negated = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
        return Relation(self.left, negated[self.sign], self.right)

    @property
    def sides(self) -> tuple[sp.Expr, ...]:
        return self.left, self.right

    def subs(self, values: Mapping[Any, Any]) -> "Relation":
        left, right = (side.subs(values, simultaneous=True) for side in self.sides)
        return Relation(left, self.sign, right)

    def write(self, to_string: Callable[[Any], str], notation: Mapping[str, str]) -> str:
        left, right = map(to_string, self.sides)
        return f"{left} {notation.get(self.sign, self.sign)} {right}"


@dataclass(frozen=True)
class Iff(Proposition):
    """Two relations of which both hold or neither."""

    first: Relation
    second: Relation

    def __post_init__(self) -> None:
        _require_relations(self.first, self.second)

    @property
    def sides(self) -> tuple[sp.Expr, ...]:
        return self.first.sides + self.second.sides

    def subs(self, values: Mapping[Any, Any]) -> "Iff":
        return Iff(self.first.subs(values), self.second.subs(values))

    def write(self, to_string: Callable[[Any], str], notation: Mapping[str, str]) -> str:
        return f"{to_string(self.first)}{notation['iff']}{to_string(self.second)}"


@dataclass(frozen=True)
class Every(Proposition):
    """A relation for each whole `index` from `low` to `high`, both included."""

    relation: Relation
    index: sp.Symbol
    low: sp.Expr
    high: sp.Expr

    def __post_init__(self) -> None:
        _require_relations(self.relation)
        if not is_symbol(self.index):
            raise InputError(f"{self.index!r} is no index: give a symbol")
        object.__setattr__(self, "low", expression_of(self.low))
        object.__setattr__(self, "high", expression_of(self.high))

    @property
    def span(self) -> tuple[sp.Symbol, sp.Expr, sp.Expr]:
        """Index, first and last, as `sympy.Sum` takes them."""
        return self.index, self.low, self.high

    @property
    def sides(self) -> tuple[sp.Expr, ...]:
        return (*self.relation.sides, self.low, self.high)

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        inside: set[sp.Symbol] = self.relation.free_symbols - {self.index}
        return inside | self.low.free_symbols | self.high.free_symbols

    @property
    def bound_symbols(self) -> set[sp.Symbol]:
        return super().bound_symbols | {self.index}

    def subs(self, values: Mapping[Any, Any]) -> "Every":
        values = {old: new for old, new in values.items() if old != self.index}
        low, high = (end.subs(values, simultaneous=True) for end in (self.low, self.high))
        return Every(self.relation.subs(values), self.index, low, high)

    def write(self, to_string: Callable[[Any], str], notation: Mapping[str, str]) -> str:
        ends = map(to_string, (self.index, self.low, self.high))
        return to_string(self.relation) + notation["range"].format(*ends)


def eq(left: Any, right: Any) -> Relation:
    """Return left = right."""
    return Relation(left, "=", right)


def gt(left: Any, right: Any) -> Relation:
    """Return left > right."""
    return Relation(left, ">", right)


def ge(left: Any, right: Any) -> Relation:
    """Return left >= right."""
    return Relation(left, ">=", right)


def lt(left: Any, right: Any) -> Relation:
    """Return left < right."""
    return Relation(left, "<", right)


def le(left: Any, right: Any) -> Relation:
    """Return left <= right."""
    return Relation(left, "<=", right)
