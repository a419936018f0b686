"""A strict test for "this expression is identically zero": no number decides it.

An expression is brought to a rational function of independent generators (symbols,
powers with symbolic exponents, exponentials, opaque functions and sums), which
`sympy.cancel` decides. "Not zero" needs a witness: an exact point, in rational numbers,
at which the expression has a value that is not zero. Where neither is found the answer
is an `UndecidedError` error, never a guess.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, count
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from dlsim.errors import DlsimError


class ProofError(DlsimError, AssertionError):
    """A step that does not hold: the message names the step and what was found."""


class UndecidedError(ProofError):
    """A step that could be neither shown nor refuted."""


#: Rational points at which a witness of "not zero" is looked for.
_POINTS = (Fraction(2, 7), Fraction(5, 3), Fraction(11, 13))
_COUNTS = (5, 3, 4)


#: What stands for itself: nothing is known of its values.
_OPAQUE = (sp.Indexed, AppliedUndef)


def _normal(opaque: Any) -> Any:
    """Rewrite the arguments of an opaque piece so that equal ones look alike."""
    return opaque.func(
        *(arg if arg.is_Atom or not isinstance(arg, sp.Expr) else sp.cancel(sp.expand(arg))
          for arg in opaque.args)
    )  # fmt: skip


def _last_apart(function: Any, *limits: Any) -> Any:
    """Write the last terms of a sum up to n + 1, n + 2 and so on apart, also of sums within."""
    *within, (index, start, end) = limits
    function = _last_apart(function, *within) if within else function
    over, rest = end.as_coeff_Add()
    if not end.is_integer:
        raise UndecidedError(f"cannot decide a sum up to {end}, which is no whole number")
    if start != 1 or over < 0:
        over, rest = sp.S.Zero, end
    last = (function.subs(index, rest + number) for number in range(1, int(over) + 1))
    apart = (term.replace(sp.Sum, _last_apart) for term in last)
    return sp.Add(sp.Sum(function, (index, start, rest)) if rest != 0 else 0, *apart)


def _rational_sum(expr: Any, names: dict[Any, Any]) -> Any:
    """Write a sum term by term, constants taken out."""
    *within, (index, start, end) = expr.limits
    function, result = sp.Sum(expr.function, *within) if within else expr.function, sp.S.Zero
    if start != 1 or end.as_coeff_Add()[0] < 0:
        return names.setdefault(expr, sp.Dummy())
    kept = {
        power: sp.Dummy()
        for power in function.atoms(sp.Pow)
        if power.base.is_Add and not power.has(index)
    }
    back = {letter: power for power, letter in kept.items()}
    terms = sp.expand(sp.expand_power_exp(function.xreplace(kept)), log=False)
    for term in (each.xreplace(back) for each in sp.Add.make_args(terms)):
        constant, inner = term.as_independent(index, as_Add=False)
        if not term.has(index):
            result += _rational_form(term * end, names)
            continue
        called = (sp.Symbol(f"_{depth}", integer=True, positive=True) for depth in count())
        bound = next(name for name in called if not inner.has(name))
        left = sp.Sum(inner.subs(index, bound), (bound, 1, end))
        result += _rational_form(constant, names) * names.setdefault(left, sp.Dummy())
    return result


def _rational_form(expr: Any, names: dict[Any, Any]) -> Any:
    """Replace every transcendental piece by a generator, exponents added up apart."""
    if expr.is_Atom:
        return expr
    if isinstance(expr, _OPAQUE):
        return names.setdefault(_normal(expr), sp.Dummy())
    if isinstance(expr, sp.Sum):
        return _rational_sum(expr, names)
    if isinstance(expr, sp.exp) or (expr.is_Pow and not expr.exp.is_Integer):
        base, power = expr.as_base_exp()
        inner, result = _rational_form(base, names), sp.S.One
        for term in sp.Add.make_args(sp.expand(power)):
            if term.is_Integer:
                result *= inner**term
                continue
            count, rest = term.as_coeff_Mul()
            if not count.is_Integer:
                count, rest = sp.S.One, term
            result *= names.setdefault(base**rest, sp.Dummy()) ** count
        return result
    if expr.is_Add or expr.is_Mul or expr.is_Pow:
        return expr.func(*(_rational_form(arg, names) for arg in expr.args))
    return names.setdefault(expr, sp.Dummy())


def _constant_is_nonzero(value: Any) -> bool:
    """Tell whether a sum of rational multiples of powers of e is certainly not 0.

    Distinct rational powers of e are linearly independent over the rationals
    (Lindemann-Weierstrass), so such a sum vanishes only if it has no terms.
    """
    value = sp.expand(value)
    factors = chain.from_iterable(map(sp.Mul.make_args, sp.Add.make_args(value)))
    return value != 0 and all(
        each.args[0].is_Rational if isinstance(each, sp.exp) else each.is_Rational or each == sp.E
        for each in factors
    )


def _points(letters: set[Any]) -> Iterator[dict[Any, Any]]:
    """Yield points at which every value is one that its letter may take."""
    symbols = sorted(letters, key=lambda s: (s.name, s.sort_key()))
    for shift in range(len(_POINTS)):
        point = {
            s: sp.Integer(_COUNTS[(i + shift) % 3] + i)
            if s.is_integer
            else sp.Rational(_POINTS[(i + shift) % 3] / (i // 3 + 1))
            for i, s in enumerate(symbols)
        }
        if all(
            getattr(value, f"is_{name}", None) == holds
            for symbol, value in point.items()
            for name, holds in symbol.assumptions0.items()
        ):
            yield point


def _distinct(pieces: list[Any], point: dict[Any, Any]) -> bool:
    """Tell whether opaque pieces of one kind have different arguments at a point.

    Terms of sequences that stand in an argument may be any numbers, so different ones are.
    """
    inner: dict[Any, Any] = {}

    def spread(value: Any) -> Any:
        terms = value.atoms(AppliedUndef)
        return value.xreplace({t: inner.setdefault(t, sp.Integer(len(inner) + 11)) for t in terms})

    return all(
        any(
            _constant_is_nonzero(spread((x - y).subs(point)))
            for x, y in zip(a.args, b.args, strict=False)
            if x != y and not isinstance(x, sp.IndexedBase)
        )
        for a, b in combinations(pieces, 2)
        if (a.args[0] if isinstance(a, sp.Indexed) else a.func)
        == (b.args[0] if isinstance(b, sp.Indexed) else b.func)
    )


def _valued(value: Any) -> Any:
    """Add up the sums of a value; terms of sequences, also where a sum ends, are any numbers."""
    if not value.has(sp.Sum):
        return value
    value = value.doit()
    ends = {term: sp.Integer(2) for term in value.atoms(AppliedUndef) if term.is_integer}
    value = value.xreplace(ends).doit() if ends else value
    terms = sorted(value.atoms(AppliedUndef), key=lambda term: term.sort_key())
    return value.xreplace({term: sp.Rational(i + 2, 2 * i + 3) for i, term in enumerate(terms)})


def _witness(numerator: Any, names: dict[Any, Any]) -> dict[Any, Any] | None:
    """Find an exact point at which a numerator is certainly not zero."""
    whole = numerator.xreplace({g: e for e, g in names.items() if not isinstance(e, _OPAQUE)})
    pieces = [e for e, g in names.items() if isinstance(e, _OPAQUE) and whole.has(g)]
    inner = {s for e in pieces for s in e.free_symbols if not isinstance(s, sp.Indexed)}
    for point in _points(whole.free_symbols | inner):
        if _distinct(pieces, point) and _constant_is_nonzero(_valued(whole.subs(point))):
            return point
    return None


def _check_denominators(expr: Any) -> None:
    """Refuse an expression that divides by what may be identically zero."""
    for power in expr.atoms(sp.Pow):
        base = power.base
        if power.exp.is_nonnegative or base.is_nonzero:
            continue
        values = (base.subs(point) for point in _points(base.free_symbols))
        if not any(value.is_positive or value.is_negative for value in values) and is_zero(base):
            raise UndecidedError(f"cannot decide {expr}: its denominator {base} is zero")


@cache
def is_zero(expr: Any) -> bool:
    """Tell whether an expression is identically zero.

    Parameters
    ----------
    expr : sympy expression
        Rational in its symbols, in powers with symbolic exponents and exponentials.

    Returns
    -------
    bool
        True: it reduces to 0. False: an exact point gives a value that is not 0.

    Raises
    ------
    UndecidedError
        If it does not reduce to 0 and no exact witness of the contrary is found, or if
        a denominator is not certainly other than 0.

    Examples
    --------
    >>> b, n = sp.Symbol("b", positive=True), sp.Symbol("n", integer=True, positive=True)
    >>> is_zero((1 - b ** (n + 1)) - (1 - b**n) - b**n * (1 - b))
    True
    >>> is_zero(b ** (n + 1) - b**n)
    False
    """
    names: dict[Any, Any] = {}
    expr = sp.sympify(expr)
    expr = expr.replace(sp.Derivative, lambda *args: sp.Derivative(*args).doit())
    bound = {index for whole in expr.atoms(sp.Sum) for index in whole.variables}
    if bound & expr.free_symbols:
        raise UndecidedError(f"cannot decide {expr}: a letter is bound by a sum and free too")
    _check_denominators(expr)
    expr = expr.replace(sp.Sum, _last_apart)
    form = _rational_form(sp.expand_power_base(sp.expand_power_exp(expr)), names)
    numerator = sp.fraction(sp.cancel(sp.together(form)))[0]
    if numerator == 0:
        return True
    if _witness(numerator, names) is None:
        raise UndecidedError(f"cannot decide whether {expr} is zero: write it in simpler terms")
    return False
