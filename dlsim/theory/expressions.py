"""What expressions of a derivation may be made of, and what their parts come to.

Only parts whose rules the steps know may stand in a claim: numbers, real symbols, sequences, sums,
products, powers, exponentials, logarithms, maxima, minima, roundings, sums over an index, values
put in, derivatives, and functions of exact numbers. Everything else is refused, and so is a class
derived from one of these parts, since it could answer SymPy's questions as it likes.
"""

import functools
from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.core.assumptions import _assume_defined
from sympy.core.function import AppliedUndef, UndefinedFunction

from dlsim.errors import InputError
from dlsim.theory.symbols import Ratio


class ProofError(Exception):
    """A step of a derivation that does not hold, or that could not be decided."""


#: Sums with more terms are not written out.
MOST_TERMS = 10_000
#: Powers of numbers with a larger exponent are not computed.
LARGEST_EXPONENT = 10_000

_SYMBOLS = (sp.Symbol, sp.Dummy, Ratio)
_KNOWN = {
    *_SYMBOLS, sp.Integer, sp.Rational, *(type(one) for one in (
        sp.S.Zero, sp.S.One, sp.S.NegativeOne, sp.S.Half, sp.E, sp.pi)),
    sp.Add, sp.Mul, sp.Pow, sp.exp, sp.log, sp.Max, sp.Min, sp.floor, sp.ceiling,
    sp.Sum, sp.Subs, sp.Derivative, sp.Tuple,
}  # fmt: skip
#: The questions that SymPy asks of a sequence.
_ANSWERS = ("_kwargs", "nargs", *(f"is_{name}" for name in sorted(_assume_defined)))
#: What Python computes, by the SymPy function that stands for it.
_EXACT: dict[type, Callable[..., sp.Expr]] = {}


def expression_of(value: Any) -> sp.Expr:
    """Return a number or SymPy expression as an expression; text is never read as one."""
    try:
        expression = sp.sympify(value, strict=True)
    except (sp.SympifyError, TypeError, ValueError, AttributeError, RecursionError):
        expression = None
    if not isinstance(expression, sp.Expr):
        raise InputError(f"{value!r} is no expression: give a number or a SymPy expression")
    return expression


def is_symbol(value: Any) -> bool:
    """Return whether a value is a symbol, and of no class that is unknown here."""
    return type(value) in _SYMBOLS


def require_known(expression: sp.Expr) -> None:
    """Refuse an expression with a part whose rules are unknown, or an index with two meanings."""
    if not _is_known(expression):
        raise ProofError(f"no step knows the rules of {type(expression).__name__}: {expression}")
    if isinstance(expression, sp.Symbol | AppliedUndef) and not expression.is_real:
        raise ProofError(f"{expression} may not be a real number")
    if isinstance(expression, sp.Pow):
        base, exponent = expression.args
        if base.is_number and exponent.is_number and abs(exponent) > LARGEST_EXPONENT:
            raise ProofError(f"the exponent of {expression} is beyond {LARGEST_EXPONENT}")
    for part in expression.args:
        require_known(part)
    if isinstance(expression, sp.Sum | sp.Subs):
        _require_one_meaning(expression)


def _is_known(part: sp.Basic) -> bool:
    if type(part) in _KNOWN or type(part) in _EXACT:
        return True
    kind = type(part)
    return type(kind) is UndefinedFunction and _is_sequence(kind)


def _is_sequence(kind: Any) -> bool:
    """Return whether a class is what `sympy.Function` makes of assumptions that can hold."""
    declared = (item for item in kind._kwargs.items() if item[0] in _assume_defined)
    plain = _sequence(kind.__name__, frozenset(declared))
    return plain is not None and _answers(kind) == _answers(plain)


@functools.cache
def _sequence(name: str, declared: frozenset[tuple[str, Any]]) -> Any:
    """Return a sequence of that name, or None if its assumptions contradict each other."""
    try:
        sp.Symbol(name, **dict(declared))
    except ValueError:
        return None
    return sp.Function(name, **dict(declared))


def _answers(kind: Any) -> tuple[Any, ...]:
    """Return what a sequence answers to SymPy's questions, and what else it holds."""
    return *(getattr(kind, name) for name in _ANSWERS), kind.__mro__[1:], set(vars(kind))


def _require_one_meaning(part: Any) -> None:
    """Refuse a sum or a `Subs` whose index is also bound inside, or stands in its own limits."""
    if isinstance(part, sp.Sum):
        if len(part.limits) != 1 or len(part.limits[0]) != 3:
            raise ProofError(f"{part} has not one index with a first and a last value")
        ((index, low, high),) = part.limits
        inside, bound, ends = part.function, {index}, {*low.free_symbols, *high.free_symbols}
    else:
        inside, bound, ends = part.expr, {*part.variables}, part.point.free_symbols
    inner = inside.atoms(sp.Sum, sp.Subs)
    again = {symbol for one in inner for symbol in one.variables} & (bound | ends)
    if again or bound & ends:
        raise ProofError(f"an index has two meanings in {part}")


def require_plain(symbol: sp.Symbol) -> None:
    """Refuse a symbol with assumptions, such as being even, that no step checks."""
    checked = ("real", "nonnegative", "positive", "integer")
    kinds = {name: True for name in checked if getattr(symbol, f"is_{name}")}
    if symbol.assumptions0 != sp.Symbol("plain", **kinds).assumptions0:
        raise ProofError(f"more is assumed of {symbol} than the steps check")


# ------------------------------------------------------------------ derivatives and values put in


def is_smooth(expression: sp.Expr, variable: sp.Symbol, everywhere: bool = False) -> bool:
    """Return whether an expression is built so that it has a derivative wherever it is defined.

    Or, if asked for, for every real number `everywhere`: then nothing is divided by.
    """
    if variable not in expression.free_symbols or expression == variable:
        return True
    smooth = functools.partial(is_smooth, variable=variable, everywhere=everywhere)
    if expression.is_Add or expression.is_Mul:
        return all(map(smooth, expression.args))
    if isinstance(expression, sp.Pow | sp.exp):
        base, exponent = expression.as_base_exp()
        if variable in exponent.free_symbols:
            return bool(base.is_positive) and smooth(base) and smooth(exponent)
        if exponent.is_Integer and (exponent > 0 or not everywhere):
            return smooth(base)
        return not everywhere and bool(base.is_positive) and smooth(base)
    return not everywhere and isinstance(expression, sp.log) and smooth(expression.args[0])


@functools.cache
def put_in(expression: sp.Expr) -> sp.Expr:
    """Return an expression with all derivatives taken and all values put in."""
    if not expression.has(sp.Subs, sp.Derivative):
        return expression
    parts = [put_in(part) for part in expression.args]
    if isinstance(expression, sp.Derivative):
        inside, variables = parts[0], expression.variables
        for variable in variables:
            if not is_symbol(variable) or variable.is_integer or not variable.is_real:
                raise ProofError(f"{expression}: {variable} is no real number that can vary")
            if not is_smooth(inside, variable):
                raise ProofError(f"{inside} may have no derivative by {variable}")
        return sp.diff(inside, *variables)
    if isinstance(expression, sp.Subs):
        _require_one_meaning(expression)
        values = dict(zip(expression.variables, parts[2].args, strict=True))
        return parts[0].subs(values, simultaneous=True)
    return expression.func(*parts)


# ------------------------------------------------------------------ exact numbers


def exact_function(name: str, function: Any) -> Any:
    """Return a SymPy function of exact numbers that is shown by its name and computed by Python.

    Where Python has no value, such as a share of node 0, a claim about it is refused; so is one
    about a value that is not a real and exact number, or that is another one when asked again.
    """
    if type(name) is not str or not callable(function):
        raise InputError(f"exact_function({name!r}, {function!r}): give a name and a function")

    def doit(self: Any, **_: Any) -> sp.Expr:
        return exact_value(self) if all(part.is_number for part in self.args) else self

    shown = type(name, (sp.Function,), {"doit": doit, "is_extended_real": True})
    _EXACT[shown] = function
    return shown


def is_exact_function(part: sp.Basic) -> bool:
    """Return whether Python computes a part."""
    return type(part) in _EXACT


def exact_value(part: sp.Expr) -> sp.Expr:
    """Return the number that Python computes for a function of exact numbers."""
    value = _asked_twice(part)
    if isinstance(value, str):
        raise ProofError(value)
    return value


@functools.cache
def _asked_twice(part: sp.Expr) -> sp.Expr | str:
    """Return the one value of a function of exact numbers, for good, or why it has none."""
    arguments = [number_of(argument) for argument in part.args]
    try:
        value, again = (expression_of(_EXACT[type(part)](*arguments)) for _ in range(2))
        require_known(value)
    except Exception as error:  # whatever a function of the caller raises
        return f"{part} has no value: {error!r}"
    if value != again:
        return f"{part} has no one value: it is {value} and, asked again, {again}"
    if not (value.is_number and value.is_real):
        return f"{part} is no real number: {value}"
    return value


def number_of(expression: sp.Expr) -> sp.Expr:
    """Return an expression without symbols with everything in it computed."""
    return _computed(put_in(expression))


def _computed(expression: sp.Expr) -> sp.Expr:
    if is_exact_function(expression):
        return exact_value(expression)
    if isinstance(expression, sp.Sum):
        ((index, low, high),) = expression.limits
        counts = term_numbers(_computed(low), _computed(high))
        terms = (expression.function.xreplace({index: sp.Integer(count)}) for count in counts)
        return sp.Add(*map(_computed, terms))
    parts = [_computed(part) for part in expression.args]
    return expression.func(*parts) if parts else expression


def term_numbers(low: sp.Expr, high: sp.Expr) -> range:
    """Return the whole numbers from `low` to `high`, if they are not too many."""
    if not (low.is_Integer and high.is_Integer and -1 <= high - low < MOST_TERMS):
        raise ProofError(f"a sum from {low} to {high} is not written out")
    return range(int(low), int(high) + 1)
