"""Values of an expression at a random point, in the integers modulo a prime.

Plain integers, no SymPy simplification: two forms of one expression have one value, and forms of
different expressions have the same value with probability at most their degree over the prime
(Schwartz and Zippel). Whole symbols are small numbers, other symbols random residues; of what is
not rational, each power e^m, x^m of another monomial m, logarithm, maximum and term of an
unknown sequence is a random residue of its own. None where an expression has no such value.
"""

import hashlib
from functools import cache
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

#: A Mersenne prime.
PRIME = 2**61 - 1
#: Exponents that are fractions with this denominator are whole ones of a root.
_ROOT = 400


def _random(*what: Any) -> int:
    digest = hashlib.sha256(repr(what).encode()).digest()
    return int.from_bytes(digest[:8], "big") % (PRIME - 2) + 2


def _name(symbol: Any) -> str:
    """Return a name that tells symbols of different ranges apart."""
    return f"{symbol.name}{sorted(k for k, v in symbol.assumptions0.items() if v)}"


def _inverse(value: int) -> int:
    if value % PRIME == 0:
        raise ZeroDivisionError
    return pow(value, -1, PRIME)


class _Point:
    """One random point; `bound` holds the values of the indices of sums."""

    def __init__(self, trial: int) -> None:
        self.trial = trial
        self.bound: dict[Any, int] = {}

    def whole(self, expr: Any) -> int | None:
        """Return the value of an integer expression as an integer."""
        if expr.is_Integer:
            return int(expr)
        if expr.is_Symbol and expr.is_integer:
            return self.bound.get(expr, 2 + _random("n", _name(expr), self.trial) % 7)
        if expr.is_Add or expr.is_Mul:
            parts = [self.whole(arg) for arg in expr.args]
            if None in parts:
                return None
            result = 0 if expr.is_Add else 1
            for part in parts:
                result = result + part if expr.is_Add else result * part  # type: ignore[operator]
            return result
        return None

    def value(self, expr: Any) -> int:
        """Return the value of an expression, or raise ValueError."""
        if expr.is_Rational:
            return int(expr.p) * _inverse(int(expr.q)) % PRIME
        if expr.is_Symbol:
            number = self.whole(expr)
            return _random("s", _name(expr), self.trial) if number is None else number
        if expr.is_Add:
            return sum(map(self.value, expr.args)) % PRIME
        if expr.is_Mul:
            result = 1
            for arg in expr.args:
                result = result * self.value(arg) % PRIME
            return result
        if isinstance(expr, sp.exp) or expr == sp.E:
            return self._power(sp.E, expr.args[0] if expr.args else sp.S.One)
        if expr.is_Pow:
            return self._power(expr.base, expr.exp)
        if isinstance(expr, sp.Sum):
            return self._sum(expr)
        if isinstance(expr, sp.Derivative):
            return self.value(expr.doit())
        if hasattr(expr.func, "unfolded"):
            count = self.whole(expr.args[0])
            if count is None or count < 0:
                raise ValueError(expr)
            return self.value(expr.func.unfolded(count))
        if isinstance(expr, AppliedUndef | sp.log | sp.Max | sp.Min | sp.ceiling):
            values = [self.value(arg) for arg in expr.args]
            if isinstance(expr, sp.Max | sp.Min):
                values.sort()
            return _random("f", expr.func.__name__, values, self.trial)
        raise ValueError(expr)

    def _sum(self, expr: Any) -> int:
        index, start, end = expr.limits[0]
        last = self.whole(end)
        if len(expr.limits) > 1 or last is None or start != 1:
            raise ValueError(expr)
        kept, result = self.bound.get(index), 0
        for number in range(1, last + 1):
            self.bound[index] = number
            result += self.value(expr.function)
        self.bound.pop(index, None)
        if kept is not None:
            self.bound[index] = kept
        return result % PRIME

    def _power(self, base: Any, power: Any) -> int:
        number = self.whole(power)
        if number is not None and base is not sp.E:
            value = self.value(base)
            return pow(_inverse(value) if number < 0 else value, abs(number), PRIME)
        result = 1
        for term in sp.Add.make_args(sp.expand(power)):
            count, letters = sp.S.One, []
            for factor in sp.Mul.make_args(term):
                whole = self.whole(factor)
                if whole is None and not factor.is_Rational:
                    letters.append(factor)
                else:
                    count *= factor if whole is None else whole
            if _ROOT % count.q:
                raise ValueError(power)
            result = result * self._generator(base, letters, int(count * _ROOT)) % PRIME
        return result

    def _generator(self, base: Any, letters: list[Any], count: int) -> int:
        keys = sorted(self.value(letter) for letter in letters)
        what = "e" if base is sp.E else self.value(base)
        root = _random("g", what, keys, self.trial)
        return pow(_inverse(root) if count < 0 else root, abs(count), PRIME)


@cache
def residue(expr: Any, trial: int = 0) -> int | None:
    """Return the value of an expression at one of the random points, None if it has none."""
    try:
        return _Point(trial).value(expr)
    except (ValueError, ZeroDivisionError):
        return None
