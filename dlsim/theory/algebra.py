"""Whether an expression is zero, and what sign it has.

Both take it for granted that the expression is defined (`dlsim.theory.defined`).

`is_zero` writes the expression as a fraction of polynomials in *generators* (symbols, powers with a
symbolic exponent, values of sequences, sums) and asks SymPy whether the numerator vanishes.

`sign` puts in a form in which every generator is a positive number, or at least not negative:
beta = 1/(1+t), beta^n = 1/(1+s), n = 1+m, log(beta) = -l. If no coefficient of the polynomial is
negative, neither is the expression. Facts that were shown before give the signs of other factors.
"""

import functools
from collections.abc import Iterable, Sequence

import sympy as sp

from dlsim.theory import expressions
from dlsim.theory.expressions import ProofError
from dlsim.theory.relations import Relation
from dlsim.theory.symbols import Ratio

#: The signs of a gap, as `sign` returns them, that show a relation of each kind.
SHOWN_BY = {">": (">",), ">=": (">", ">=", "="), "=": ("=",)}

# ------------------------------------------------------------------ generators


@functools.cache
def _generator(kernel: sp.Basic) -> sp.Dummy:
    """Return the symbol that stands for a power, a sum or a value of a function."""
    if not is_real(kernel):
        raise ProofError(f"{kernel} may not be a real number")
    generator = sp.Dummy(f"[{kernel}]")
    _KERNELS[generator] = kernel
    return generator


_KERNELS: dict[sp.Dummy, sp.Basic] = {}


@functools.cache
def flatten(expression: sp.Expr) -> sp.Expr:
    """Write an expression as a rational function of symbols and generators."""
    if expression.is_Rational or (expression.is_Symbol and expression.is_extended_real):
        return expression
    if expression.is_Add or expression.is_Mul:
        return expression.func(*map(flatten, expression.args))
    if isinstance(expression, sp.Sum):
        return _flat_sum(expression)
    if isinstance(expression, sp.Derivative | sp.Subs):
        return flatten(expressions.put_in(expression))
    if expressions.is_exact_function(expression) and expression.is_number:
        return flatten(expressions.exact_value(expression))
    if isinstance(expression, sp.log):
        expanded = sp.expand_log(expression)
        return flatten(expanded) if expanded != expression else _generator(expression)
    if isinstance(expression, sp.Pow | sp.exp):
        base, exponent = expression.as_base_exp()
        if exponent.is_Integer:
            return flatten(base) ** exponent
        if base.is_positive:
            return _flat_power(base, exponent)
    if expression.is_Float:
        raise ProofError(f"{expression} is a rounded number")
    return _generator(expression)


def _flat_power(base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
    """Split a power by the terms of its exponent: b^(2n+1) = (b^n)^2 b."""
    result = sp.S.One
    for term in sp.Add.make_args(sp.expand(exponent)):
        logs = [part for part in sp.Mul.make_args(term) if isinstance(part, sp.log)]
        if base == sp.E and len(logs) == 1 and logs[0].args[0].is_positive:
            result *= _flat_power(logs[0].args[0], term / logs[0])  # e^(c ln b) = b^c
            continue
        number, rest = term.as_coeff_Mul()
        if rest == 1 and number.is_Integer:
            result *= flatten(base) ** number
        elif number.is_Rational:
            result *= _generator(base ** (rest / number.q)) ** number.p
        else:
            raise ProofError(f"{term} holds a rounded number")
    return result


def _flat_sum(expression: sp.Sum) -> sp.Expr:
    """Write a sum by sums from 1 to a bound without a constant, of terms without factors."""
    if len(expression.limits) != 1:
        return _generator(expression)
    index, low, high = expression.limits[0]
    inner = {limits[0] for sum_ in expression.function.atoms(sp.Sum) for limits in sum_.limits}
    if inner & (low.free_symbols | high.free_symbols | {index}):
        raise ProofError(f"an index has two meanings in {expression}")
    result = sp.S.Zero
    outside, inside = _peel_inside(expressions.put_in(expression.function)).as_independent(
        index, as_Add=False
    )
    for term in sp.Add.make_args(sp.expand(inside)):
        factor, rest = term.as_independent(index, as_Add=False)
        part = flatten(sp.expand(high - low + 1))
        if rest != 1:
            part = _sum_from_one(rest, index, high) - _sum_from_one(rest, index, low - 1)
        result += flatten(factor * outside) * part
    return result


def _peel_inside(summand: sp.Expr) -> sp.Expr:
    """Take the last terms out of sums inside a summand: up to s + 1 is up to s, and one more."""

    def peel(inner: sp.Sum) -> sp.Expr:
        index, low, high = inner.limits[0]
        constant, symbolic = sp.expand(high).as_coeff_Add()
        if low != 1 or not (constant.is_Integer and 0 < constant <= expressions.MOST_TERMS):
            return inner
        more = (inner.function.subs(index, symbolic + step) for step in range(1, int(constant) + 1))
        rest = sp.Sum(inner.function, (index, 1, symbolic)) if symbolic != 0 else sp.S.Zero
        return sp.Add(rest, *more)

    return summand.replace(lambda part: isinstance(part, sp.Sum) and len(part.limits) == 1, peel)


#: The index of every sum in a generator; it is no symbol of anybody else.
_INDEX = sp.Dummy("i", integer=True)


def _sum_from_one(term: sp.Expr, index: sp.Symbol, high: sp.Expr) -> sp.Expr:
    """Return the sum of a term from 1 to `high`, which may be negative as in F(high) - F(0)."""
    constant, symbolic = sp.expand(high).as_coeff_Add()
    if not constant.is_Integer or abs(constant) > expressions.MOST_TERMS:
        return _generator(sp.Sum(term.subs(index, _INDEX), (_INDEX, 1, high)))
    more, less = range(1, int(constant) + 1), range(0, int(constant), -1)
    parts = [flatten(term.subs(index, symbolic + step)) for step in more]
    parts += [-flatten(term.subs(index, symbolic + step)) for step in less]
    if symbolic != 0:
        parts.append(_generator(sp.Sum(term.subs(index, _INDEX), (_INDEX, 1, symbolic))))
    return sp.Add(*parts)


@functools.cache
def _fraction(expression: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """Return numerator and denominator of an expression in generators."""
    top, bottom = sp.fraction(sp.together(expression))
    return sp.expand(top), bottom


@functools.cache
def is_zero(expression: sp.Expr) -> bool:
    """Return whether an expression reduces to 0; False where this could not be decided."""
    return bool(_fraction(flatten(expressions.expression_of(expression)))[0] == 0)


def is_real(expression: sp.Expr) -> bool:
    """Return whether an expression is real, given that it is defined (`require_defined`)."""
    if expression.is_extended_real:
        return True
    real_parts = (sp.Add, sp.Mul, sp.Max, sp.Min, sp.ceiling, sp.floor, sp.log, sp.exp)
    if isinstance(expression, real_parts):
        return all(map(is_real, expression.args))
    if isinstance(expression, sp.Pow):
        return bool(expression.exp.is_Integer) and is_real(expression.base)
    return isinstance(expression, sp.Sum) and is_real(expression.function)


# ------------------------------------------------------------------ signs


def _product(first: str, second: str) -> str:
    """Return the sign of a product from the signs of its factors."""
    if "" in (first, second):
        return ""
    if "=" in (first, second):
        return "="
    weak = "=" if len(first + second) > 2 else ""
    return (">" if first[0] == second[0] else "<") + weak


@functools.cache
def _form(generator: sp.Symbol) -> tuple[sp.Expr, dict[sp.Symbol, str]]:
    """Return a form of a generator, and the signs of the symbols in it."""
    kernel = _KERNELS.get(generator, generator)
    free = sp.Dummy(str(generator))
    if isinstance(kernel, Ratio):
        return 1 / (1 + free), {free: ">"}
    if isinstance(kernel, sp.log) and isinstance(kernel.args[0], Ratio):
        return -free, {free: ">"}
    if isinstance(kernel, sp.Pow | sp.exp) and kernel.as_base_exp()[1].is_nonnegative:
        base, exponent = kernel.as_base_exp()
        growth = ">" if exponent.is_positive else ">="
        if growth == ">" and isinstance(base, Ratio) and exponent.is_integer:
            first, signs = _form(base)  # beta^n = beta beta^(n-1)
            return first / (1 + free), {**signs, free: ">="}
        if isinstance(base, Ratio) or (base.is_Rational and 0 < base < 1):
            return 1 / (1 + free), {free: growth}
        if base == sp.E or (base.is_Rational and base > 1):
            return 1 + free, {free: growth}
    if isinstance(kernel, sp.Sum):  # it may have no term
        return free, {free: ""}
    if kernel.is_integer and kernel.is_positive:
        return 1 + free, {free: ">="}
    if kernel.is_positive:
        return free, {free: ">"}
    return free, {free: ">=" if kernel.is_nonnegative else ""}


def _coefficient_sign(expression: sp.Expr) -> str:
    """Return the sign that the coefficients of an expression in generators show."""
    signs: dict[sp.Symbol, str] = {}
    values = {}
    for generator in expression.free_symbols:
        values[generator], known = _form(generator)
        signs |= known
    top, bottom = sp.fraction(sp.together(expression.xreplace(values)))
    return _product(_polynomial_sign(top, signs), _polynomial_sign(bottom, signs))


def _polynomial_sign(expression: sp.Expr, signs: dict[sp.Symbol, str]) -> str:
    """Return the sign of a polynomial whose symbols have the given signs ("" for any)."""
    expression = sp.expand(expression)
    if expression == 0:
        return "="
    symbols = sorted(expression.free_symbols, key=str)
    if not expression.is_polynomial(*symbols):
        return ""
    strict, found = False, set()
    for powers, coefficient in sp.Poly(expression, *symbols, sp.Dummy()).terms():
        factors = [
            (signs[one], power) for one, power in zip(symbols, powers, strict=False) if power
        ]
        unknown = any(known == "" and power % 2 for known, power in factors)
        if unknown or not coefficient.is_Rational:
            return ""
        found.add(">" if coefficient > 0 else "<")
        strict = strict or all(known == ">" for known, _ in factors)
    if len(found) == 2:
        return ""
    return found.pop() + ("" if strict else "=")


def sign(expression: sp.Expr, facts: Iterable[Relation] = ()) -> str:
    """Return the sign of an expression, one of ``> >= = <= <``, or "" if it is not known.

    A factor of the expression may be the gap of one of the `facts`, inequalities that hold.
    """
    return _sign(flatten(expressions.expression_of(expression)), tuple(facts))


@functools.cache
def _sign(flat: sp.Expr, facts: tuple[Relation, ...]) -> str:
    found = _coefficient_sign(flat)
    if found in (">", "<", "=") or (found and not facts):
        return found
    top, bottom = _fraction(flat)
    return _product(_factored_sign(top, facts), _factored_sign(bottom, facts)) or found


def _factored_sign(expression: sp.Expr, facts: Sequence[Relation]) -> str:
    """Return the sign of a polynomial from those of its factors."""
    number, factors = sp.factor_list(expression)
    result = _polynomial_sign(number, {})
    for factor, power in factors:
        found = _coefficient_sign(factor)
        if found not in (">", "<"):
            found = _fact_sign(factor, facts) or found
        if power % 2 == 0:
            found = ">" if found in (">", "<") else ">="
        result = _product(result, found)
    return result


def _fact_sign(factor: sp.Expr, facts: Sequence[Relation]) -> str:
    """Return the sign of a factor that is part of a fact, if the rest of the fact has one."""
    for fact in facts:
        if fact.kind == "=":
            continue
        rest = _coefficient_sign(sp.cancel(flatten(fact.gap) / factor))
        if rest in (">", "<"):
            return _product(fact.kind, rest)
    return ""
