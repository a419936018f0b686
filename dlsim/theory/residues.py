"""Values of an expression at a random point, in the integers modulo a prime.

Plain integers, no SymPy simplification: two forms of one expression have one value, and forms of
different expressions have the same value with probability at most their degree over the prime
(Schwartz and Zippel). Whole symbols are small numbers, other symbols random residues; of what is
not rational, each power e^m, x^m of another monomial m, logarithm, maximum and term of an
unknown sequence is a random residue of its own. None where an expression has no such value.
"""

import hashlib
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

#: A Mersenne prime.
PRIME = 2**61 - 1
#: Exponents that are fractions with this denominator are whole ones of a root.
_ROOT = 400


def exact(value: Any) -> Any:
    """Return an exact number of SymPy's as one of Python's."""
    if isinstance(value, sp.Tuple):
        return tuple(map(exact, value))
    return int(value) if value.is_Integer else Fraction(int(value.p), int(value.q))


class Reader:
    """Reads the value of SymPy's trees without its arithmetic; a subclass says in what numbers.

    It gives the value of a fraction, of an integer letter or term (count), of a power, e's among
    them, and of any other letter, term or function.
    """

    fraction: Callable[[int, int], Any]
    count: Callable[[Any], int]
    power: Callable[[Any, Any], Any]
    other: Callable[[Any], Any]

    def __init__(self) -> None:
        #: What the indices of sums stand for.
        self.bound: dict[Any, int] = {}

    def whole(self, expr: Any) -> int | None:
        """Return the value of an integer expression as an integer."""
        if expr.is_Integer:
            return int(expr)
        if expr.is_Symbol and expr.is_integer:
            return self.bound[expr] if expr in self.bound else self.count(expr)
        if isinstance(expr, AppliedUndef) and expr.is_integer:
            return self.count(expr)
        if expr.is_Add or expr.is_Mul:
            parts = [part for arg in expr.args if (part := self.whole(arg)) is not None]
            whole = sum(parts) if expr.is_Add else prod(parts)
            return whole if len(parts) == len(expr.args) else None
        return None

    def value(self, expr: Any) -> Any:
        """Return the value of an expression, or raise ValueError."""
        if expr.is_Rational:
            return self.fraction(int(expr.p), int(expr.q))
        if expr.is_Add:
            return self.plain(sum(map(self.value, expr.args)))
        if expr.is_Mul:
            result: Any = 1
            for arg in expr.args:
                result = self.plain(result * self.value(arg))
            return result
        if isinstance(expr, sp.exp) or expr == sp.E:
            return self.power(sp.E, expr.args[0] if expr.args else sp.S.One)
        if expr.is_Pow:
            return self.power(expr.base, expr.exp)
        if isinstance(expr, sp.Sum):
            return self.plain(self._sum(expr.function, expr.limits))
        if isinstance(expr, sp.Derivative):
            return self.value(expr.doit())
        if hasattr(expr.func, "unfolded"):
            count = self.whole(expr.args[0])
            if count is None:
                raise ValueError(expr)
            return self.value(expr.func.unfolded(sp.Integer(count), *expr.args[1:]))
        number = self.whole(expr)
        return self.other(expr) if number is None else number

    def _sum(self, term: Any, limits: Any) -> Any:
        """Add up the terms; the last limits are the outermost."""
        *within, (index, start, end) = limits
        last, outside, result = self.whole(end), self.bound, 0
        if last is None or not start.is_Integer:
            raise ValueError(end)
        for number in range(int(start), last + 1):
            self.bound = {**outside, index: number}
            result += self._sum(term, within) if within else self.value(term)
        self.bound = outside
        return result

    def plain(self, number: Any) -> Any:
        """Return a sum or product as it is kept."""
        return number


def _random(*what: Any) -> int:
    digest = hashlib.sha256(repr(what).encode()).digest()
    return int.from_bytes(digest[:8], "big") % (PRIME - 2) + 2


def _name(symbol: Any) -> str:
    """Return a name that tells symbols of different ranges apart."""
    return f"{symbol.name}{sorted(k for k, v in symbol.assumptions0.items() if v)}"


def inverse(value: int) -> int:
    """Return one over a residue."""
    if value % PRIME == 0:
        raise ZeroDivisionError
    return pow(value, -1, PRIME)


class Point(Reader):
    """One random point."""

    def __init__(self, trial: int) -> None:
        super().__init__()
        self.trial = trial

    def plain(self, number: int) -> int:
        """Return a number modulo the prime."""
        return number % PRIME

    def fraction(self, over: int, under: int) -> int:
        """Return the value of a fraction."""
        return over * inverse(under) % PRIME

    def key(self, what: Any) -> Any:
        """Return what tells a letter, or a term at its index, from others."""
        if what.is_Symbol:
            return _name(what)
        values = [self.value(arg) for arg in what.args]
        kept = sorted(values) if isinstance(what, sp.Max | sp.Min) else values
        return (what.func.__name__, *kept)

    def count(self, what: Any) -> int:
        """Return a small number."""
        return 2 + _random("n", self.key(what), self.trial) % 7

    def other(self, expr: Any) -> int:
        """Return a random residue of a letter, term, logarithm, maximum or the like."""
        if not isinstance(expr, sp.Symbol | AppliedUndef | sp.log | sp.Max | sp.Min | sp.ceiling):
            raise ValueError(expr)
        return _random("f", self.key(expr), self.trial)

    def power(self, base: Any, exponent: Any) -> int:
        """Return a whole power, or the random residues of what is not rational."""
        number = self.whole(exponent)
        if base is sp.E and exponent.has(sp.log):
            raise ValueError(exponent)
        if number is not None and base is not sp.E:
            value = self.value(base)
            return pow(inverse(value) if number < 0 else value, abs(number), PRIME)
        result = 1
        for term in sp.Add.make_args(sp.expand(exponent)):
            count, letters = sp.S.One, []
            for factor in sp.Mul.make_args(term):
                whole = self.whole(factor)
                if whole is None and not factor.is_Rational:
                    letters.append(factor)
                else:
                    count *= factor if whole is None else whole
            if _ROOT % count.q:
                raise ValueError(exponent)
            result = result * self._generator(base, letters, int(count * _ROOT)) % PRIME
        return result

    def _generator(self, base: Any, letters: list[Any], count: int) -> int:
        keys = sorted(self.value(letter) for letter in letters)
        what = "e" if base is sp.E else self.value(base)
        root = _random("g", what, keys, self.trial)
        return pow(inverse(root) if count < 0 else root, abs(count), PRIME)


@cache
def residue(expr: Any, trial: int = 0) -> int | None:
    """Return the value of an expression at one of the random points, None if it has none."""
    try:
        return Point(trial).value(expr) % PRIME
    except (ValueError, ZeroDivisionError):
        return None
