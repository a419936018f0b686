"""What a line of a derivation claims: a relation, an equivalence, or a relation for every index."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import sympy as sp
from sympy.core.function import AppliedUndef
from sympy.printing.latex import LatexPrinter
from sympy.printing.printer import Printer
from sympy.printing.str import StrPrinter


class _Printer(LatexPrinter):
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


def latex(expression: sp.Expr) -> str:
    """Return an expression as LaTeX."""
    return str(_Printer({"ln_notation": True}).doprint(expression))


def _values_put_in(printer: Printer, expr: sp.Subs) -> str:
    pairs = zip(expr.variables, expr.point, strict=True)
    return ", ".join(f"{printer._print(old)} = {printer._print(new)}" for old, new in pairs)


class _TextPrinter(StrPrinter):
    """SymPy's plain text, with derivatives and values put in as they are read aloud."""

    def _print_Subs(self, expr: sp.Subs) -> str:
        return f"[{self._print(expr.expr)} at {_values_put_in(self, expr)}]"

    def _print_Derivative(self, expr: sp.Derivative) -> str:
        return f"d/d{self._print(expr.variables[0])} [{self._print(expr.expr)}]"


def to_text(value: Any) -> str:
    """Return an expression or a claim as plain text."""
    return str(_TextPrinter().doprint(value)) if isinstance(value, sp.Basic) else str(value)


class ProofError(Exception):
    """A step of a derivation that does not hold, or that could not be decided."""


_LATEX = {"=": "=", ">": ">", ">=": r"\ge", "<": "<", "<=": r"\le"}
_NEGATED = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}


class Proposition(ABC):
    """What a line can claim; it prints itself in text and in LaTeX."""

    @property
    @abstractmethod
    def sides(self) -> tuple[sp.Expr, ...]:
        """All expressions in it."""

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """The symbols that neither a sum nor a range binds."""
        return set().union(*(side.free_symbols for side in self.sides))

    @property
    def bound_symbols(self) -> set[sp.Symbol]:
        """The indices of sums and of a range, and what is put in or differentiated by."""
        bound: set[sp.Symbol] = set()
        for part in set().union(
            *(side.atoms(sp.Sum, sp.Subs, sp.Derivative) for side in self.sides)
        ):
            bound |= set(part.variables)
        return bound

    @property
    def symbols(self) -> set[sp.Symbol]:
        """All symbols, free or bound."""
        return self.free_symbols | self.bound_symbols

    @abstractmethod
    def subs(self, values: Mapping[Any, Any]) -> Self:
        """Replace symbols, all at once, but not the index of a range."""

    @abstractmethod
    def latex(self) -> str:
        """Return it as LaTeX."""

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"


@dataclass(frozen=True)
class Relation(Proposition):
    """``left sign right``, with the sign ``=``, ``>``, ``>=``, ``<`` or ``<=``."""

    left: sp.Expr
    sign: str
    right: sp.Expr

    def __post_init__(self) -> None:
        """Turn plain numbers into SymPy's."""
        object.__setattr__(self, "left", sp.sympify(self.left))
        object.__setattr__(self, "right", sp.sympify(self.right))

    @property
    def gap(self) -> sp.Expr:
        """The difference that is 0, positive or not negative."""
        difference = self.left - self.right
        return -difference if self.sign in ("<", "<=") else difference

    @property
    def kind(self) -> str:
        """What the gap is: ``=``, ``>`` or ``>=`` zero."""
        return {"<": ">", "<=": ">="}.get(self.sign, self.sign)

    @property
    def negated(self) -> "Relation":
        """The relation that holds exactly where this inequality does not."""
        if self.sign == "=":
            raise ProofError(f"the negation of {self} is no single relation")
        return Relation(self.left, _NEGATED[self.sign], self.right)

    @property
    def sides(self) -> tuple[sp.Expr, ...]:
        """Left and right."""
        return self.left, self.right

    def subs(self, values: Mapping[Any, Any]) -> "Relation":
        """Replace symbols, all at once."""
        return Relation(
            self.left.subs(values, simultaneous=True),
            self.sign,
            self.right.subs(values, simultaneous=True),
        )

    def latex(self) -> str:
        """Return it as LaTeX."""
        return f"{latex(self.left)} {_LATEX[self.sign]} {latex(self.right)}"

    def __str__(self) -> str:
        return f"{to_text(self.left)} {self.sign} {to_text(self.right)}"


@dataclass(frozen=True)
class Iff(Proposition):
    """Two relations of which both hold or neither."""

    first: Relation
    second: Relation

    @property
    def sides(self) -> tuple[sp.Expr, ...]:
        """The sides of both."""
        return self.first.sides + self.second.sides

    def subs(self, values: Mapping[Any, Any]) -> "Iff":
        """Replace symbols in both."""
        return Iff(self.first.subs(values), self.second.subs(values))

    def latex(self) -> str:
        """Return it as LaTeX."""
        return rf"{self.first.latex()} \quad\Leftrightarrow\quad {self.second.latex()}"

    def __str__(self) -> str:
        return f"{self.first}  iff  {self.second}"


@dataclass(frozen=True)
class Every(Proposition):
    """A relation for each whole `index` from `low` to `high`, both included."""

    relation: Relation
    index: sp.Symbol
    low: sp.Expr
    high: sp.Expr

    def __post_init__(self) -> None:
        """Turn plain numbers into SymPy's."""
        object.__setattr__(self, "low", sp.sympify(self.low))
        object.__setattr__(self, "high", sp.sympify(self.high))

    @property
    def free_symbols(self) -> set[sp.Symbol]:
        """The symbols but for the index."""
        inside: set[sp.Symbol] = self.relation.free_symbols - {self.index}
        return inside | self.low.free_symbols | self.high.free_symbols

    @property
    def bound_symbols(self) -> set[sp.Symbol]:
        """The index, and what is bound in the relation."""
        return super().bound_symbols | {self.index}

    @property
    def sides(self) -> tuple[sp.Expr, ...]:
        """The sides of the relation, and the ends of the range."""
        return (*self.relation.sides, self.low, self.high)

    def subs(self, values: Mapping[Any, Any]) -> "Every":
        """Replace symbols, but not the index."""
        values = {old: new for old, new in values.items() if old != self.index}
        low, high = (end.subs(values, simultaneous=True) for end in (self.low, self.high))
        return Every(self.relation.subs(values), self.index, low, high)

    def latex(self) -> str:
        """Return it as LaTeX."""
        low, high = latex(self.low), latex(self.high)
        return rf"{self.relation.latex()} \quad ({latex(self.index)} = {low}, \dots, {high})"

    def __str__(self) -> str:
        return f"{self.relation}  ({self.index} = {self.low}, ..., {self.high})"


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
