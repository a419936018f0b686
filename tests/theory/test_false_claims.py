"""False statements, each with the call that a careless checker would prove it by.

A row of an attack says which step is tried and why the statement is false: a point at which it does
not hold, or has no value. It is refused, or what the step returns rests on a hypothesis that is
false, and says so.
"""

import inspect
import re
from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import pytest
import sympy as sp

from dlsim.errors import InputError
from dlsim.theory import steps
from dlsim.theory.algebra import is_zero, sign
from dlsim.theory.defined import require_defined
from dlsim.theory.relations import Every, Iff, ProofError, Relation, eq, ge, gt, le, lt, to_text
from dlsim.theory.statements import Statement
from dlsim.theory.steps import Line, assume, positive
from dlsim.theory.symbols import at_point, beta, i, j, k, m, n, r, total

a, b, c = sp.symbols("a b c", real=True)
p, q = sp.symbols("p q", positive=True)
z = sp.Symbol("z", nonnegative=True)
count = sp.Symbol("N", integer=True, nonnegative=True)
whole = sp.Symbol("I", integer=True)
f, g = sp.Function("f", real=True), sp.Function("g", positive=True)
WHY = "a reason"
HALF = sp.Rational(1, 2)


class Attack(NamedTuple):
    """A call that would show what is false, under hypotheses that can hold."""

    step: str
    kind: str
    why: str
    call: object
    under: tuple = ()


def accepted(attack):
    """Whether the false statement is shown."""
    try:
        shown = attack.call()
    except (ProofError, InputError):
        return False
    if isinstance(shown, bool):
        return shown
    lines = shown if isinstance(shown, tuple) else (shown,)
    return any(line.given <= set(attack.under) for line in lines)


# ------------------------------------------------------------------ what has no value at some point


def exact(function):
    return steps.exact_function("g", function)(1)


def unevaluated(kind, *arguments):
    return kind(*arguments, evaluate=False)


anything, infinite = sp.Symbol("c"), sp.Symbol("c", extended_real=True)
#: An expression, and a point at which it is no real number.
WITHOUT_VALUE = {
    "1/z, z = 0": lambda: 1 / z,
    "1/a, a = 0": lambda: 1 / a,
    "1/(p - q), p = q": lambda: 1 / (p - q),
    "1/(n - 1), n = 1": lambda: 1 / (n - 1),
    "n/(n - 1) - 1/(n - 1), n = 1": lambda: n / (n - 1) - 1 / (n - 1),
    "(a^2 - b^2)/(a - b), a = b": lambda: (a**2 - b**2) / (a - b),
    "1/(1/z), z = 0": lambda: unevaluated(sp.Pow, 1 / z, -1),
    "z/z, z = 0": lambda: unevaluated(sp.Mul, z, 1 / z),
    "0/z, z = 0": lambda: unevaluated(sp.Mul, 0, 1 / z),
    "z^0 by z^(1 - 1)": lambda: unevaluated(sp.Mul, z, unevaluated(sp.Pow, z, -1)),
    "1/0": lambda: unevaluated(sp.Pow, 0, -1),
    "0/0": lambda: unevaluated(sp.Mul, 0, unevaluated(sp.Pow, 0, -1)),
    "log(z), z = 0": lambda: sp.log(z),
    "log(a), a = -1": lambda: sp.log(a),
    "log(-p)": lambda: sp.log(-p),
    "log(0)": lambda: unevaluated(sp.log, 0),
    "log(a^2), a = 0": lambda: sp.log(a**2),
    "log(1 - p), p = 1": lambda: sp.log(1 - p),
    "root of -p": lambda: sp.sqrt(-p),
    "root of a, a = -1": lambda: sp.sqrt(a),
    "root of -1": lambda: unevaluated(sp.Pow, -1, HALF),
    "a^p, a = -1, p = 1/2": lambda: a**p,
    "z^a, z = 0, a = -1": lambda: z**a,
    "a^(n - 2), a = 0, n = 1": lambda: a ** (n - 2),
    "exp(i p)": lambda: sp.exp(sp.I * p),
    "oo": lambda: sp.oo,
    "-oo": lambda: -sp.oo,
    "oo + a": lambda: unevaluated(sp.Add, sp.oo, a),
    "zoo": lambda: sp.zoo,
    "nan": lambda: sp.nan,
    "I": lambda: sp.I,
    "a + I b": lambda: a + sp.I * b,
    "a symbol for any number": lambda: anything,
    "a symbol that may be infinite": lambda: infinite,
    "sum of 1/k from 0": lambda: sp.Sum(1 / count, (count, 0, n)),
    "sum of 1/k from 0, k positive": lambda: sp.Sum(1 / k, (k, 0, n)),
    "sum of 1/(k - 3)": lambda: sp.Sum(1 / (k - 3), (k, 1, n)),
    "sum of log(k - 1)": lambda: sp.Sum(sp.log(k - 1), (k, 1, n)),
    "sum of roots of 2 - k": lambda: sp.Sum(sp.sqrt(2 - k), (k, 1, n)),
    "sum of -4 terms": lambda: sp.Sum(1, (k, 1, n - 5)),
    "sum from n to 1": lambda: sp.Sum(r(k), (k, n, 1)),
    "sum to a half": lambda: sp.Sum(r(k), (k, 1, p)),
    "sum from a half": lambda: sp.Sum(r(k), (k, HALF, 3)),
    "infinite sum": lambda: sp.Sum(r(k), (k, 1, sp.oo)),
    "sum to 1/z": lambda: sp.Sum(r(k), (k, 1, sp.ceiling(1 / z))),
    "inner sum of -4 terms": lambda: sp.Sum(sp.Sum(r(m), (m, 1, k - 5)), (k, 1, n)),
    "sum over even numbers": lambda: sp.Sum(1, (sp.Symbol("e", even=True), 1, n)),
    "1/p at 0": lambda: at_point(1 / p, {p: 0}),
    "1/p at z": lambda: at_point(1 / p, {p: z}),
    "log(p) at -1": lambda: at_point(sp.log(p), {p: -1}),
    "1/p - 1/p at 0": lambda: at_point(unevaluated(sp.Add, 1 / p, -1 / p), {p: 0}),
    "1/(p - q) at p = q": lambda: at_point(1 / (p - q), {p: q}),
    "d/da |a|, a = 0": lambda: sp.Derivative(sp.Abs(a), a),
    "d/da |a| at 0": lambda: at_point(sp.Derivative(sp.Abs(a), a), {a: 0}),
    "d/da sign(a) at 0": lambda: at_point(sp.Derivative(sp.sign(a), a), {a: 0}),
    "d/da max(a, 0), a = 0": lambda: sp.Derivative(sp.Max(a, 0), a),
    "d/da max(a, 0) at 0": lambda: at_point(sp.Derivative(sp.Max(a, 0), a), {a: 0}),
    "d/da min(a, b), a = b": lambda: sp.Derivative(sp.Min(a, b), a),
    "d/da max(a, 0)^2/a, a = 0": lambda: sp.Derivative(sp.Max(a, 0) ** 2, a) / a,
    "d/da floor(a), a = 1": lambda: sp.Derivative(sp.floor(a), a),
    "d/da ceiling(a) at 1": lambda: at_point(sp.Derivative(sp.ceiling(a), a), {a: 1}),
    "d/da f(a)": lambda: sp.Derivative(f(a), a),
    "d/da f(a) at 0": lambda: at_point(sp.Derivative(f(a), a), {a: 0}),
    "d/da of a root at 0": lambda: sp.Derivative(sp.sqrt(z), z),
    "d/dn of a sum to n": lambda: sp.Derivative(sp.Sum(1, (k, 1, n)), n),
    "d/dn n^2 for whole n": lambda: sp.Derivative(n**2, n),
    "d/da of 1/a": lambda: sp.Derivative(1 / a, a),
    "second d/da of max(a, 0)^2": lambda: sp.Derivative(sp.Max(a, 0) ** 2, a, 2),
    "floor(1/z)": lambda: sp.floor(1 / z),
    "ceiling(log(z))": lambda: sp.ceiling(sp.log(z)),
    "max(1/z, 1)": lambda: sp.Max(1 / z, 1),
    "min(root of a, 1)": lambda: unevaluated(sp.Min, sp.sqrt(a), 1),
    "f(1/z)": lambda: f(1 / z),
    "f(I)": lambda: f(sp.I),
    "a piece that is missing, a = 0": lambda: sp.Piecewise((1, a > 0)),
    "product with 1/(k - 3)": lambda: sp.Product(1 / (k - 3), (k, 1, n)),
    "product of -4 factors": lambda: sp.Product(2, (k, 1, n - 5)),
    "integral of 1/a over 0": lambda: sp.Integral(1 / a, (a, -1, 1)),
    "limit of 1/a at 0": lambda: sp.Limit(1 / a, a, 0),
    "limit of sin(a) at oo": lambda: sp.Limit(sp.sin(a), a, sp.oo),
    "asin(p), p = 2": lambda: sp.asin(p),
    "acosh(p), p = 1/2": lambda: sp.acosh(p),
    "tan(a), a = pi/2": lambda: sp.tan(a),
    "gamma(-z), z = 0": lambda: sp.gamma(-z),
    "binomial(a, b)": lambda: sp.binomial(a, b),
    "factorial(whole), -1": lambda: sp.factorial(whole),
    "a mod z, z = 0": lambda: sp.Mod(a, z),
    "Dirac's delta at 0": lambda: sp.DiracDelta(a),
    "LambertW(-p), p = 1": lambda: sp.LambertW(-p),
    "a function of Python without a value": lambda: exact(lambda value: 1 / (value - 1)),
    "a function of Python that is I": lambda: exact(lambda _: sp.I),
    "a function of Python that is oo": lambda: exact(lambda _: sp.oo),
    "a function of Python that is nan": lambda: exact(lambda _: float("nan")),
    "a function of Python that is None": lambda: exact(lambda _: None),
    "a function of Python that is text": lambda: exact(lambda _: "1"),
    "a function of Python that fails": lambda: exact(lambda value: value.missing),
    "a function of Python of a symbol": lambda: steps.exact_function("g", lambda value: 1)(n),
}  # fmt: skip
ONE = positive(gt(1, 0), WHY)
SAME = positive(ge(0, 0), WHY)
#: Calls that would show something of an expression without a value.
REFLEXIVE = {
    "identity": lambda u: steps.identity(eq(u, u), WHY),
    "positive": lambda u: steps.positive(gt(u + 1, u), WHY),
    "show": lambda u: steps.show(eq(u, u), WHY),
    "compute": lambda u: steps.compute(ge(u, u), WHY),
    "iff": lambda u: steps.iff(Iff(ge(u, 0), ge(2 * u, 0)), WHY, 2),
    "solves": lambda u: steps.solves(eq(p * b, p * u), b, u, WHY),
    "logarithm": lambda u: steps.logarithm(gt(1 + unevaluated(sp.Pow, u, 2), HALF), WHY),
    "exponential": lambda u: steps.exponential(unevaluated(sp.exp, unevaluated(sp.Pow, u, 2))),
    "extreme": lambda u: steps.extreme(ge(unevaluated(sp.Max, u, b), u), WHY),
    "ceiling": lambda u: steps.ceiling(n, u, WHY),
    "ceiling, count": lambda u: steps.ceiling(unevaluated(sp.floor, u), p, WHY),
    "rounding": lambda u: steps.rounding(unevaluated(sp.ceiling, u)),
    "squeeze": lambda u: steps.squeeze(eq(u, u), SAME, SAME, WHY),
    "sharpen": lambda u: steps.sharpen(
        ge(unevaluated(sp.floor, u), unevaluated(sp.floor, u)), WHY, ONE
    ),
    "absurd": lambda u: steps.absurd(ge(u, u), assume(lt(u, u), WHY), WHY),
    "discharge": lambda u: steps.discharge(assume(ge(u, u), WHY), SAME, WHY),
    "substitute": lambda u: steps.substitute(positive(gt(b + 1, b), WHY), {b: u}, WHY),
    "induction": lambda u: steps.induction(eq(u, u), m, steps.identity(eq(0, 0), WHY),
                                           steps.identity(eq(0, 0), WHY), WHY),
    "show_inductively": lambda u: steps.show_inductively(ge(u, u), m, WHY),
    "generalise": lambda u: steps.generalise(ONE, m, u, u, WHY),
    "take": lambda u: steps.take(steps.show(Every(gt(m, 0), m, 1, n), WHY), u, WHY, [ONE]),
    "add_up": lambda u: steps.add_up(steps.show(Every(gt(1, 0), m, 1, n), WHY), WHY, 1, u, [ONE]),
    "add_up, weight": lambda u: steps.add_up(
        steps.show(Every(ge(0, 0), m, 1, n), WHY), WHY, weight=u
    ),
    "shows": lambda u: steps.shows(eq(1, 1), eq(u, u)),
}  # fmt: skip


def undefined_attacks():
    for why, make in WITHOUT_VALUE.items():
        for step, call in REFLEXIVE.items():
            yield Attack(step, "no value", why, lambda make=make, call=call: call(make()))


# ------------------------------------------------------------------ false equations, inequalities


def at(expression, values):
    return at_point(expression, values)


other_n = sp.Symbol("n", real=True)
prime = sp.Symbol("i'", integer=True, positive=True)
#: False equations, each with a point at which it fails.
FALSE_EQUATIONS = {
    "root of a^2 = a, a = -1": lambda: (sp.sqrt(a**2), a),
    "log(a^2) = 2 log(a), a = -1": lambda: (sp.log(1 + a**2), 2 * sp.log(1 + a)),
    "|a| = a, a = -1": lambda: (sp.Abs(a), a),
    "floor(a + b) = floor(a) + floor(b), 1/2": lambda: (sp.floor(a + b), sp.floor(a) + sp.floor(b)),
    "ceiling(a) = floor(a) + 1, a = 0": lambda: (sp.ceiling(a), sp.floor(a) + 1),
    "floor(a) = a, a = 1/2": lambda: (sp.floor(a), a),
    "floor(-a) = -floor(a), a = 1/2": lambda: (sp.floor(-a), -sp.floor(a)),
    "floor(n/2) = n/2, n = 1": lambda: (sp.floor(n / 2), n / 2),
    "max(a, b) = a, b = a + 1": lambda: (sp.Max(a, b), a),
    "max(a, b) = (a + b)/2": lambda: (sp.Max(a, b), (a + b) / 2),
    "min(p, 1) = p, p = 2": lambda: (sp.Min(p, 1), p),
    "a mod 1 = a, a = 1": lambda: (sp.Mod(a, 1), a),
    "n mod 2 = 1, n = 2": lambda: (sp.Mod(n, 2), 1),
    "0^z = 0, z = 0": lambda: (sp.Integer(0) ** z, 0),
    "0^z = 1, z = 1": lambda: (sp.Integer(0) ** z, 1),
    "0^N = 0, N = 0": lambda: (sp.Integer(0) ** count, 0),
    "(-1)^n = 1, n = 1": lambda: ((-1) ** n, 1),
    "(-1)^(n + 1) = (-1)^n": lambda: ((-1) ** (n + 1), (-1) ** n),
    "beta^n = beta, n = 2": lambda: (beta**n, beta),
    "beta^(2 n) = 2 beta^n": lambda: (beta ** (2 * n), 2 * beta**n),
    "(p + q)^a = p^a + q^a": lambda: ((p + q) ** a, p**a + q**a),
    "root of p + q": lambda: (sp.sqrt(p + q), sp.sqrt(p) + sp.sqrt(q)),
    "log(p + q) = log(p) + log(q)": lambda: (sp.log(p + q), sp.log(p) + sp.log(q)),
    "log(p) log(q) = log(p + q)": lambda: (sp.log(p) * sp.log(q), sp.log(p + q)),
    "exp(a + b) = exp(a) + exp(b)": lambda: (sp.exp(a + b), sp.exp(a) + sp.exp(b)),
    "exp(a log(2)) = a^2": lambda: (sp.exp(a * sp.log(2)), a**2),
    "a piece at a tie, a = 0": lambda: (sp.Piecewise((1, a >= 0), (2, True)),
                                        sp.Piecewise((1, a > 0), (2, True))),
    "a first piece, a = 0": lambda: (sp.Piecewise((1, a > 0), (2, True)), 1),
    "r(0) = 0": lambda: (r(0), 0),
    "r(n) = r(n + 1)": lambda: (r(n), r(n + 1)),
    "f(a) = f(-a)": lambda: (f(a), f(-a)),
    "n = another symbol n": lambda: (n, other_n),
    "beta = another symbol beta": lambda: (beta, sp.Symbol("beta", positive=True)),
    "p = a Dummy p": lambda: (p, sp.Dummy("p", positive=True)),
    "a sum of one more term": lambda: (total(r, n + 1), total(r, n)),
    "a sum from 0 and from 1": lambda: (total(r, n, 0), total(r, n)),
    "a sum of equal terms": lambda: (total(r, n), n * r(1)),
    "a sum of squares": lambda: (total(lambda h: h**2, n), total(lambda h: h, n) ** 2),
    "a sum that captures i": lambda: (total(lambda h: h * i, n), total(lambda h: h * h, n)),
    "a sum that captures i'": lambda: (sp.Sum(k * prime, (k, 1, n)), sp.Sum(k * k, (k, 1, n))),
    "a sum that captures i' again": lambda: (
        sp.Sum(r(k) * prime, (k, 1, n)), sp.Sum(r(k) * k, (k, 1, n))),
    "a sum in a sum": lambda: (
        total(lambda h: total(lambda e: r(h) * r(e), n), n), n * total(lambda h: r(h) ** 2, n)),
    "a sum of |i| and of i below 0": lambda: (
        sp.Sum(sp.Abs(whole), (whole, -n, 0)), sp.Sum(whole, (whole, -n, 0))),
    "a sum of max(i, 0) below 0": lambda: (
        sp.Sum(sp.Max(whole, 1), (whole, -n, 0)), sp.Sum(whole, (whole, -n, 0))),
    "a sum of -4 terms is n - 5": lambda: (sp.Sum(1, (k, 1, n - 5)), n - 5),
    "a sum of -4 numbers": lambda: (sp.Sum(k, (k, 1, n - 5)), (n - 5) * (n - 4) / 2),
    "a sum from n to 1 is 2 - n": lambda: (sp.Sum(1, (k, n, 1)), 2 - n),
    "a sum from m to n": lambda: (sp.Sum(1, (k, m, n)), n - m + 1),
    "two sums for one": lambda: (
        sp.Sum(r(k), (k, 1, m)) + sp.Sum(r(k), (k, m + 1, n)), sp.Sum(r(k), (k, 1, n))),
    "a sum from 3 to 1 is -1": lambda: (sp.Sum(1, (k, 3, 1)), -1),
    "a sum from 5 to 1": lambda: (sp.Sum(k, (k, 5, 1)), -9),
    "a sum of p terms": lambda: (sp.Sum(1, (k, 1, p)), p),
    "a sum to n/2": lambda: (sp.Sum(1, (k, 1, n / 2)), n / 2),
    "an index that cannot be 0": lambda: (sp.Sum(sp.Max(k, 1), (k, 0, n)), sp.Sum(k, (k, 0, n))),
    "an inner sum of k - 5": lambda: (
        sp.Sum(sp.Sum(1, (m, 1, k - 5)), (k, 1, n)), sp.Sum(k - 5, (k, 1, n))),
    "a product of equal factors": lambda: (sp.Product(r(k), (k, 1, n)), r(1) ** n),
    "a product of -4 factors": lambda: (sp.Product(2, (k, 1, n - 5)), 2 ** (n - 5)),
    "put in under a sum": lambda: (
        at(sp.Sum(k * a, (k, 1, n)), {a: k}), sp.Sum(k * k, (k, 1, n))),
    "max(p, 0) at -1": lambda: (at(unevaluated(sp.Max, p, 0), {p: -1}), -1),
    "|p| at -1": lambda: (at(unevaluated(sp.Abs, p), {p: -1}), -1),
    "ceiling(n) at 1/2": lambda: (at(unevaluated(sp.ceiling, n), {n: HALF}), HALF),
    "root of p^2 at -1": lambda: (at(unevaluated(sp.Pow, p**2, HALF), {p: -1}), -1),
    "values put in, the wrong way": lambda: (at(a - b, {a: b, b: a}), a - b),
    "d/da (a b) with b = a": lambda: (at(sp.Derivative(a * b, a), {b: a}), 2 * a),
    "d/da |a| = 1, a = -1": lambda: (sp.Derivative(sp.Abs(a), a), 1),
    "d/da |a| at 0 is 0": lambda: (at(sp.Derivative(sp.Abs(a), a), {a: 0}), 0),
    "d/da sign(a) at 0 is 0": lambda: (at(sp.Derivative(sp.sign(a), a), {a: 0}), 0),
    "d/da max(a, 0) at 0 is 1/2": lambda: (at(sp.Derivative(sp.Max(a, 0), a), {a: 0}), HALF),
    "d/da min(a, 0) at 0 is 1": lambda: (at(sp.Derivative(sp.Min(a, 0), a), {a: 0}), 1),
    "d/da floor(a) = 0, a = 1": lambda: (sp.Derivative(sp.floor(a), a), 0),
    "d/da ceiling(a) at 1 is 0": lambda: (at(sp.Derivative(sp.ceiling(a), a), {a: 1}), 0),
    "d/dn n^2 = n^2 - (n - 1)^2": lambda: (sp.Derivative(n**2, n), n**2 - (n - 1) ** 2),
    "d/da a^2 = a": lambda: (sp.Derivative(a**2, a), a),
    "d/dp of p^p": lambda: (sp.Derivative(p**p, p), p * p ** (p - 1)),
    "d/da f(a) = 0": lambda: (sp.Derivative(f(a), a), 0),
    "d/da f(b a) with f(a) = a": lambda: (sp.Derivative(f(a * b), a), b),
    "mixed d/da d/db of max": lambda: (sp.Derivative(sp.Max(a, b), a, b), 0),
    "1 = 2": lambda: (1, 2),
    "1/3 = .333": lambda: (sp.Rational(1, 3), sp.Rational(333, 1000)),
    "pi = 22/7": lambda: (sp.pi, sp.Rational(22, 7)),
    "e = 2718/1000": lambda: (sp.E, sp.Rational(2718, 1000)),
    "root of 2 = 99/70": lambda: (sp.sqrt(2), sp.Rational(99, 70)),
    "log(2) = 7/10": lambda: (sp.log(2), sp.Rational(7, 10)),
    "root of 2 + root of 3 = root of 10": lambda: (sp.sqrt(2) + sp.sqrt(3), sp.sqrt(10)),
    "Ramanujan's almost whole number": lambda: (
        sp.exp(sp.pi * sp.sqrt(163)), 640320**3 + 744),
    "10^40 + 1 = 10^40": lambda: (sp.Integer(10) ** 40 + 1, sp.Integer(10) ** 40),
    ".1 + .2 = .3": lambda: (sp.Float(0.1) + sp.Float(0.2), sp.Float(0.3)),
    ".1 = 1/10": lambda: (sp.Float(0.1), sp.Rational(1, 10)),
    "a rounded factor": lambda: (sp.Float(0.1) * 3 * a, sp.Rational(3, 10) * a),
    "2^53 + 1 as a rounded number": lambda: (sp.Float(2.0**53) + 1, sp.Integer(2) ** 53),
    "true = 1": lambda: (True, 1),
    "a text": lambda: ("1", 1),
    "a relation as a number": lambda: (sp.Eq(a, a, evaluate=False), 1),
    "a set": lambda: (sp.FiniteSet(1), 1),
    "a matrix": lambda: (sp.Matrix([[1]]), 1),
    "a tuple": lambda: (sp.Tuple(1), sp.Tuple(2)),
    "what does not commute": lambda: (
        sp.Symbol("A", commutative=False) * sp.Symbol("B", commutative=False),
        sp.Symbol("B", commutative=False) * sp.Symbol("A", commutative=False)),
    "limits in another order": lambda: (
        sp.Limit(sp.Limit(p / (p + q), p, 0), q, 0), sp.Limit(sp.Limit(p / (p + q), q, 0), p, 0)),
    "a limit from the other side": lambda: (
        sp.Limit(sp.Abs(a) / a, a, 0, "+"), sp.Limit(sp.Abs(a) / a, a, 0, "-")),
    "an integral of another variable": lambda: (
        sp.Integral(a, (a, 0, b)), sp.Integral(b, (b, 0, a))),
    "a divided difference at 0": lambda: ((a**2 - b**2) / (a - b), a + b),
    "n/(n - 1) - 1/(n - 1) = 1, n = 1": lambda: (n / (n - 1) - 1 / (n - 1), 1),
    "z/z = 1": lambda: (unevaluated(sp.Mul, z, 1 / z), 1),
    "0/z = 0": lambda: (unevaluated(sp.Mul, 0, 1 / z), 0),
    "root of a times root of b": lambda: (sp.sqrt(a * b), sp.sqrt(a) * sp.sqrt(b)),
    "(a^2)^(1/2) unevaluated": lambda: (unevaluated(sp.Pow, unevaluated(sp.Pow, a, 2), HALF), a),
    "((-1)^2)^(1/2) = -1": lambda: (
        unevaluated(sp.Pow, unevaluated(sp.Pow, -1, 2), HALF), -1),
    "log(exp(I))": lambda: (unevaluated(sp.log, sp.exp(sp.I * p)), sp.I * p),
    "LambertW on its other branch": lambda: (
        sp.LambertW(-sp.Rational(1, 10)), sp.LambertW(-sp.Rational(1, 10), -1)),
}  # fmt: skip
#: False inequalities `left > right`, each with a point at which it fails.
FALSE_INEQUALITIES = {
    "a^2 > 0, a = 0": lambda: (a**2, 0),
    "z > 0, z = 0": lambda: (z, 0),
    "n > 1, n = 1": lambda: (n, 1),
    "N > 0, N = 0": lambda: (count, 0),
    "1 > beta^N, N = 0": lambda: (1, beta**count),
    "beta > beta^n, n = 1": lambda: (beta, beta**n),
    "beta > 1/2": lambda: (beta, HALF),
    "2 beta > 1": lambda: (2 * beta, 1),
    "1 > 2 beta^n": lambda: (1, 2 * beta**n),
    "2^n > 2, n = 1": lambda: (2**n, 2),
    "2^n > n^2, n = 2": lambda: (2**n, n**2),
    "n^2 > n, n = 1": lambda: (n**2, n),
    "n + m > 2": lambda: (n + m, 2),
    "p > 1/p": lambda: (p, 1 / p),
    "p^2 > p": lambda: (p**2, p),
    "p > q": lambda: (p, q),
    "p + 1/p > 2, p = 1": lambda: (p + 1 / p, 2),
    "a^3 > -1": lambda: (a**3, -1),
    "(a - b)^3 + 1 > 0": lambda: ((a - b) ** 3 + 1, 0),
    "a b > 0": lambda: (a * b, 0),
    "a^2 + b^2 > 2 a b, a = b": lambda: (a**2 + b**2, 2 * a * b),
    "a^2 - a + 1/4 > 0, a = 1/2": lambda: (a**2 - a + sp.Rational(1, 4), 0),
    "1/(1 + a^2) > 1, a = 0": lambda: (1 / (1 + a**2), 1),
    "exp(a) > 1": lambda: (sp.exp(a), 1),
    "exp(z) > 1": lambda: (sp.exp(z), 1),
    "log(p) > 0": lambda: (sp.log(p), 0),
    "log(n) > 0, n = 1": lambda: (sp.log(n), 0),
    "log(beta) > -1": lambda: (sp.log(beta), -1),
    "root of p > p, p = 4": lambda: (sp.sqrt(p), p),
    "ceiling(a) > a, a = 0": lambda: (sp.ceiling(a), a),
    "a > floor(a), a = 0": lambda: (a, sp.floor(a)),
    "floor(p) > 0, p = 1/2": lambda: (sp.floor(p), 0),
    "ceiling(a) > 0": lambda: (sp.ceiling(a), 0),
    "max(a, b) > a": lambda: (sp.Max(a, b), a),
    "max(a, 0) > 0": lambda: (sp.Max(a, 0), 0),
    "min(p, q) > 1": lambda: (sp.Min(p, q), 1),
    "a > min(a, b)": lambda: (a, sp.Min(a, b)),
    "|a| > 0": lambda: (sp.Abs(a), 0),
    "|a| > -|a|": lambda: (sp.Abs(a), -sp.Abs(a)),
    "|a| > a": lambda: (sp.Abs(a), a),
    "sign(a) > -1": lambda: (sp.sign(a), -1),
    "a mod 1 > 0": lambda: (sp.Mod(a, 1), 0),
    "a piece > 0": lambda: (sp.Piecewise((1, a > 0), (0, True)), 0),
    "r(n) > 0": lambda: (r(n), 0),
    "g(1) > 1": lambda: (g(1), 1),
    "a sum of any numbers > 0": lambda: (total(r, n), 0),
    "an empty sum > 0": lambda: (total(g, count), 0),
    "an empty sum of ones > 0": lambda: (total(lambda _: 1, n - 1), 0),
    "max of an empty sum > 0": lambda: (sp.Max(total(g, count), 0), 0),
    "ceiling of an empty sum > 0": lambda: (sp.ceiling(total(g, count)), 0),
    "2^(empty sum) > 1": lambda: (2 ** total(g, count), 1),
    "a sum of -4 ones > -5": lambda: (0, sp.Sum(1, (k, 1, n - 5)) + 1),
    "1 > 2": lambda: (1, 2),
    "1 > 1": lambda: (1, 1),
    "0 > 1": lambda: (0, 1),
    "a > a": lambda: (a, a),
    "22/7 < pi": lambda: (sp.pi, sp.Rational(22, 7)),
    "root of 2 > 99/70": lambda: (sp.sqrt(2), sp.Rational(99, 70)),
    "2^10 > 10^4": lambda: (2**10, 10**4),
    "Ramanujan's number is larger": lambda: (sp.exp(sp.pi * sp.sqrt(163)), 640320**3 + 744),
    "1 + 10^-60 > 1 + 10^-60": lambda: (
        1 + sp.Rational(1, 10**60), unevaluated(sp.Add, 1, sp.Rational(1, 10**60))),
    "exp(-10^4) < 0": lambda: (0, sp.exp(-(10**4))),
    "oo > oo": lambda: (sp.oo, sp.oo),
    "oo + 1 > oo": lambda: (sp.oo + 1, sp.oo),
    "x + 1 > x, x infinite": lambda: (infinite + 1, infinite),
    "x + 1 > x, x = I": lambda: (anything + 1, anything),
    "I + 1 > I": lambda: (sp.I + 1, sp.I),
    "nan > 0": lambda: (sp.nan, 0),
    "1/z > -1, z = 0": lambda: (1 / z, -1),
    "p/z > 0, z = 0": lambda: (p / z, 0),
    "1/a^2 > 0, a = 0": lambda: (1 / a**2, 0),
    "d/da of max(a, 0) > -1": lambda: (sp.Derivative(sp.Max(a, 0), a), -1),
    "d/dp p^2 > 2 p": lambda: (sp.Derivative(p**2, p), 2 * p),
    "p at -1 > 0": lambda: (at(p, {p: -1}), 0),
    "n at 1/2 > 1/2": lambda: (at(n, {n: HALF}), HALF),
    "beta at 2 < 1": lambda: (1, at(beta, {beta: 2})),
    ".3 > .1 + .2": lambda: (sp.Float(0.3), sp.Float(0.1) + sp.Float(0.2)),
}  # fmt: skip


def relation_attacks():
    for why, sides in FALSE_EQUATIONS.items():
        for step in (steps.identity, steps.show, steps.compute):
            yield Attack(step.__name__, "false equation", why,
                         lambda step=step, sides=sides: step(eq(*sides()), WHY))  # fmt: skip
        yield Attack("show_inductively", "false equation", why,
                     lambda sides=sides: steps.show_inductively(eq(*sides()), n, WHY))  # fmt: skip
        yield Attack("iff", "false equation", why,
                     lambda sides=sides: steps.iff(
                         Iff(eq(sides()[0], 0), eq(sides()[1], 0)), WHY))  # fmt: skip
        yield Attack("shows", "false equation", why,
                     lambda sides=sides: steps.shows(eq(0, 0), eq(*sides())))  # fmt: skip
    for why, sides in FALSE_INEQUALITIES.items():
        for step in (steps.positive, steps.show, steps.compute, steps.extreme):
            yield Attack(step.__name__, "false inequality", why,
                         lambda step=step, sides=sides: step(gt(*sides()), WHY))  # fmt: skip
        yield Attack("show_inductively", "false inequality", why,
                     lambda sides=sides: steps.show_inductively(gt(*sides()), n, WHY))  # fmt: skip
        yield Attack("absurd", "false inequality", why,
                     lambda sides=sides: steps.absurd(
                         gt(*sides()), steps.positive(ge(0, 0), WHY), WHY))  # fmt: skip


# ------------------------------------------------------------------ induction

WITHOUT_INDEX = {
    "0 > 1": gt(0, 1), "1 = 2": eq(1, 2), "a > a + 1": gt(a, a + 1), "a = b": eq(a, b),
    "p >= q": ge(p, q), "r(1) > r(1)": gt(r(1), r(1)), "a sum": gt(0, total(r, m) ** 2),
    "of another count": eq(m, 1), "log": gt(0, sp.log(1 + p)),
}  # fmt: skip


def inductions():
    for why, claim in WITHOUT_INDEX.items():
        line = assume(claim, WHY)
        yield why, lambda claim=claim, line=line: steps.induction(claim, n, line, line, WHY)
        yield why, lambda claim=claim, line=line: steps.show_inductively(
            claim, n, WHY, first={line: 1})  # fmt: skip
        every = Every(claim, k, 1, 9)
        yield (
            why + " for each k",
            lambda every=every, line=line: steps.induction(every, k, line, line, WHY),
        )
        weaker = steps.substitute(line, {k: k}, WHY)
        yield why, lambda claim=claim, one=weaker: steps.induction(claim, n, one, one, WHY)
    even = sp.Symbol("e", integer=True, positive=True, even=True)
    odd_claim, late = eq(r(n), r(1)), gt(n, 2)
    step = assume(odd_claim, WHY)
    good = steps.identity(eq(r(1), r(1)), WHY)
    yield "the step takes two", lambda: steps.induction(
        odd_claim, n, good, steps.substitute(step, {n: n + 2}, WHY), WHY)  # fmt: skip
    yield "the step is the claim", lambda: steps.induction(odd_claim, n, good, step, WHY)
    yield "the step assumes the next", lambda: steps.induction(
        odd_claim, n, good, assume(odd_claim.subs({n: n + 1}), WHY), WHY)  # fmt: skip
    yield "the step assumes a later one", lambda: steps.induction(
        odd_claim, n, good, positive_of(odd_claim.subs({n: n + 1}), n + 2), WHY)  # fmt: skip
    yield (
        "no first case",
        lambda: steps.induction(
            late,
            n,
            positive(gt(4, 2), WHY),
            positive(gt(n + 1, 2), WHY, {assume(late, WHY): 1}),
            WHY,
        ),
    )
    yield "a first case for 0", lambda: steps.induction(
        eq(r(n), 0), n, assume(eq(r(0), 0), WHY), step_of(eq(r(n), 0)), WHY)  # fmt: skip
    yield "a first case for 1", lambda: steps.show_inductively(gt(count, 0), count, WHY)
    yield "a count from 0 that starts at 1", lambda: steps.induction(
        gt(count, 0), count, positive(gt(1, 0), WHY),
        positive(gt(count + 1, 0), WHY, {assume(gt(count, 0), WHY): 1}), WHY)  # fmt: skip
    yield (
        "a real number",
        lambda: steps.induction(
            eq(sp.floor(p), p),
            p,
            steps.identity(eq(1, 1), WHY),
            steps.identity(eq(sp.floor(p) + 1, p + 1), WHY, {assume(eq(sp.floor(p), p), WHY): 1}),
            WHY,
        ),
    )
    yield "any whole number", lambda: steps.show_inductively(ge(whole, 0), whole, WHY)
    yield "a ratio", lambda: steps.show_inductively(ge(beta, 1), beta, WHY)
    yield "an even number", lambda: steps.show_inductively(eq((-1) ** even, 1), even, WHY)
    yield "a bound index", lambda: steps.induction(
        eq(sp.Sum(n, (n, 1, 3)), 1), n, good, good, WHY)  # fmt: skip
    yield "an index of Subs", lambda: steps.show_inductively(eq(at(n, {n: 1}), n), n, WHY)
    yield "a hypothesis about the index", lambda: steps.induction(
        lt(n, 2), n, positive(lt(1, 2), WHY), assume(lt(n + 1, 2), WHY), WHY)  # fmt: skip
    yield (
        "a first case under a hypothesis about the index",
        lambda: steps.induction(
            ge(r(n), 0), n, assume_with(ge(r(1), 0), ge(r(n), 5)), step_of(ge(r(n), 0)), WHY
        ),
    )
    yield "a step that holds up to a bound only", lambda: steps.generalise(
        steps.induction(ge(r(n), r(1)), n, positive(ge(r(1), r(1)), WHY), steps.take(
            rises(), n, WHY, [assume(ge(m, n + 1), WHY)]), WHY), n, 1, m + 5, WHY)  # fmt: skip
    yield (
        "all horses have one colour",
        lambda: steps.show_inductively(
            Every(eq(r(k), r(1)), k, 1, n), k, WHY, {assume(eq(r(k), r(k + 1)), WHY): 1}
        ),
    )
    shifted = eq(unevaluated(sp.Mul, n - 2, 1 / (n - 2)), 1)
    yield "a claim without a value at 2", lambda: steps.induction(
        shifted, n, steps.identity(eq(1, 1), WHY), steps.identity(eq(1, 1), WHY), WHY)  # fmt: skip
    yield "a claim without a value at 1", lambda: steps.induction(
        eq(n / (n - 1) - 1 / (n - 1), 1), n,
        steps.identity(eq(1, 1), WHY), steps.identity(eq(1, 1), WHY), WHY)  # fmt: skip
    inner = ge(r(n) + r(m), 0)
    yield "in another induction", lambda: steps.induction(
        inner, m, steps.induction(inner.subs({m: 1}), n, assume(inner.subs({m: 1}), WHY),
                                  assume(inner.subs({m: 1}), WHY), WHY),
        step_of(inner), WHY)  # fmt: skip


def positive_of(claim, _):
    return steps.identity(claim, WHY, {assume(claim.subs({n: n + 1}), WHY): 1})


def step_of(claim):
    """The next case under the claim, and under a hypothesis about every step that is false."""
    after = claim.subs({n: n + 1})
    return assume_with(after, claim, ge(0, 1))


def assume_with(claim, *more):
    """A claim that rests on itself and on other hypotheses."""
    by = {assume(one, WHY): 0 for one in more}
    show = steps.identity if claim.sign == "=" else steps.positive
    return show(claim, WHY, {assume(claim, WHY): 1, **by})


def rises():
    return assume(Every(ge(r(k + 1), r(k)), k, 1, m - 1), WHY)


# ------------------------------------------------------------------ what hides a hypothesis


def passing(values):
    """An iterator that can be read once."""
    return iter(list(values))


class Twice(dict):
    """A mapping that shows its lines once and then hides them."""

    shown = False

    def items(self):
        if self.shown:
            return {}.items()
        self.shown = True
        return super().items()


class Hiding(list):
    """A list that shows its lines once and then hides them."""

    shown = False

    def __iter__(self):
        if self.shown:
            return iter(())
        self.shown = True
        return super().__iter__()


class LyingRelation(Relation):
    """A relation that claims one thing and prints another."""

    @property
    def gap(self):
        return sp.Integer(1)

    @property
    def kind(self):
        return ">"

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class LyingLine(Line):
    """A line whose relation is not its claim."""

    @property
    def relation(self):
        return gt(0, 1)


class LyingSign(str):
    """A sign that is any other one."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("=")


class LyingSymbol(sp.Symbol):
    """A symbol that says that it is positive."""

    is_positive = True
    is_nonnegative = True
    is_extended_real = True
    is_real = True


class LyingNumber(sp.Integer):
    """A number that is positive whatever it is."""

    is_positive = True


class LyingSum(sp.Sum):
    """A sum that is another one when computed."""

    def doit(self, **_):
        return sp.Integer(5)


class LyingExpression(sp.Expr):
    """An expression that is any number."""

    is_positive = True
    is_real = True
    is_extended_real = True
    is_number = True

    def doit(self, **_):
        return sp.Integer(5)


class LyingFunction(sp.Function):
    """A function that says that it is positive."""

    is_positive = True
    is_extended_real = True
    is_real = True

    @classmethod
    def eval(cls, value):
        return None


def hiding():
    """Hypotheses that are read once, in every argument that takes several lines."""
    for name, hide in {"an iterator": passing, "a list": Hiding}.items():
        sure, big = assume(gt(c, 0), WHY), assume(gt(a, b), WHY)
        in_range = assume(ge(n, k + 5), WHY)
        every = steps.show(Every(ge(j, 1), j, 1, n), WHY)
        calls = {
            "identity": lambda hide=hide, sure=sure: steps.identity(
                eq(c / c + 1 / c, 1 + 1 / c), WHY, None, hide([sure])),
            "positive": lambda hide=hide, sure=sure: steps.positive(
                gt(c, 0), WHY, {}, hide([sure])),
            "show": lambda hide=hide, sure=sure: steps.show(gt(c, 0), WHY, {}, hide([sure])),
            "iff": lambda hide=hide, sure=sure: steps.iff(
                Iff(gt(a, 0), gt(a * c, 0)), WHY, c, hide([sure])),
            "logarithm": lambda hide=hide, sure=sure: steps.logarithm(gt(c, p), WHY, hide([sure])),
            "ceiling": lambda hide=hide, sure=sure: steps.ceiling(n, 1 / c, WHY, hide([sure])),
            "rounding": lambda hide=hide, sure=sure: steps.rounding(
                sp.ceiling(1 / c), hide([sure])),
            "substitute": lambda hide=hide, sure=sure: steps.substitute(
                positive(gt(p, 0), WHY), {p: c}, WHY, hide([sure])),
            "extreme": lambda hide=hide, big=big: steps.extreme(
                gt(sp.Max(a, c), b), WHY, hide([big])),
            "take": lambda hide=hide, r_=in_range, every=every: steps.take(
                every, k + 5, WHY, hide([r_])),
            "add_up": lambda hide=hide, r_=in_range, every=every: steps.add_up(
                every, WHY, 1, k + 5, hide([r_])),
            "show_inductively": lambda hide=hide, sure=sure: steps.show_inductively(
                gt(c * n, 0), n, WHY, signs=hide([sure])),
        }  # fmt: skip
        for step, call in calls.items():
            yield Attack(step, "hidden hypothesis", f"{name} that is read once", call)
    known = assume(gt(a, b), WHY)
    same = assume(eq(a, b), WHY)
    mappings = {
        "positive": lambda: steps.positive(gt(a, b), WHY, Twice({known: 1})),
        "identity": lambda: steps.identity(eq(a, b), WHY, Twice({same: 1})),
        "show": lambda: steps.show(gt(a, b), WHY, Twice({known: 1})),
    }
    for step, call in mappings.items():
        yield Attack(step, "hidden hypothesis", "a mapping that is read once", call)


def lies():
    """Objects whose class answers as it likes."""
    symbol, number, expression = LyingSymbol("y"), LyingNumber(-1), LyingExpression()
    lying_sum = LyingSum(k, (k, 1, 2))
    evil = {
        "a symbol that is positive": lambda: symbol - 0,
        "a function that is positive": lambda: LyingFunction(n),
        "an expression that is positive": lambda: expression,
        "a sequence that is positive": lambda: -sp.Function("f", positive=True)(1),
        "a sequence that is computed": lambda: sp.Function(
            "f", real=True, doit=lambda self, **_: sp.Integer(5))(1),
        "a sequence that is a number": lambda: sp.Function(
            "f", real=True, is_Rational=True, is_number=True)(1),
        "a number that is positive": lambda: number,
        "a wild symbol": lambda: sp.Wild("w", properties=[]),
    }  # fmt: skip
    for why, make in evil.items():
        yield Attack("positive", "lying class", why, lambda make=make: positive(gt(make(), 0), WHY))
        yield Attack("compute", "lying class", why,
                     lambda make=make: steps.compute(eq(make(), 5), WHY))  # fmt: skip
        yield Attack("logarithm", "lying class", why,
                     lambda make=make: steps.logarithm(gt(make(), 1), WHY))  # fmt: skip
        yield Attack("substitute", "lying class", why, lambda make=make: steps.substitute(
            positive(gt(p, 0), WHY), {p: make()}, WHY))  # fmt: skip
    lying = LyingRelation(0, ">", 1)
    relations = {
        "identity": lambda: steps.identity(LyingRelation(0, "=", 1), WHY),
        "positive": lambda: steps.positive(lying, WHY),
        "positive, by": lambda: positive(gt(a, a + 1), WHY, {Line(lying, WHY): 1}),
        "show": lambda: steps.show(lying, WHY),
        "compute": lambda: steps.compute(lying, WHY),
        "discharge": lambda: steps.discharge(assume(gt(0, 1), WHY), assume_line(lying), WHY),
        "shows": lambda: steps.shows(lying, gt(0, 1)),
        "shows, wanted": lambda: steps.shows(gt(1, 0), lying),
        "induction": lambda: steps.induction(gt(0, n), n, Line(lying, WHY), Line(lying, WHY), WHY),
        "squeeze": lambda: steps.squeeze(eq(1, 2), Line(lying, WHY), Line(lying, WHY), WHY),
        "absurd": lambda: steps.absurd(gt(0, 1), Line(lying, WHY), WHY),
        "follows": lambda: steps.follows(
            steps.iff(Iff(gt(a, 0), gt(2 * a, 0)), WHY, 2), Line(lying, WHY), WHY
        ),
        "iff": lambda: steps.iff(Iff(lying, gt(5, 0)), WHY),
        "generalise": lambda: steps.generalise(Line(lying, WHY), n, 1, 2, WHY),
        "substitute": lambda: steps.substitute(Line(lying, WHY), {n: 1}, WHY),
        "extreme": lambda: steps.extreme(gt(sp.Max(a, b), c), WHY, [Line(lying, WHY)]),
        "sharpen": lambda: steps.sharpen(ge(0, 1), WHY, Line(lying, WHY)),
    }
    for step, call in relations.items():
        yield Attack(step, "lying class", "a relation that lies", call)
    false = LyingLine(gt(1, 0), WHY)
    lines = {
        "positive": lambda: positive(gt(0, 1), WHY, {false: 1}),
        "absurd": lambda: steps.absurd(gt(0, 1), false, WHY),
        "sharpen": lambda: steps.sharpen(ge(0, 2), WHY, false),
        "extreme": lambda: steps.extreme(gt(sp.Max(0, b), 1), WHY, [false]),
        "logarithm": lambda: steps.logarithm(gt(-p, 1), WHY, [false]),
        "take": lambda: steps.take(assume(Every(gt(k, 5), k, 6, 9), WHY), 5, WHY, [false]),
    }
    for step, call in lines.items():
        yield Attack(step, "lying class", "a line whose relation is another one", call)
    for name in (LyingSign(">"), "!=", "==", "", None, 5, "=>", "<>"):
        left, right = (1, 2) if isinstance(name, LyingSign) else (2, 1)
        for step in (steps.identity, steps.positive, steps.show, steps.compute):
            yield Attack(step.__name__, "lying class", f"the sign {name!r}",
                         lambda name=name, step=step, left=left, right=right: step(
                             Relation(left, name, right), WHY))  # fmt: skip
    yield Attack("compute", "lying class", "a sum that is computed otherwise",
                 lambda: steps.compute(eq(lying_sum, 5), WHY))  # fmt: skip


def assume_line(claim):
    return Line(claim, WHY)


# ------------------------------------------------------------------ functions of Python


def changing(*values):
    """A function of Python that returns other values when asked again."""
    waiting = [sp.sympify(one) for one in values]
    return steps.exact_function("h", lambda _: waiting.pop(0) if waiting[1:] else waiting[0])(1)


class FalseEqual(Fraction):
    """A fraction that equals any number."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def python_functions():
    parity = steps.exact_function("h", lambda value: 1 if value == n else 0)
    small = steps.exact_function("h", lambda value: sp.Float(1) / 3)
    named = steps.exact_function("pi", lambda value: 3)
    twice = (steps.exact_function("h", lambda _: 1), steps.exact_function("h", lambda _: 2))
    order = []

    def counted(value):
        order.append(value)
        return len(order)

    return {
        "another value each time": lambda: steps.compute(gt(changing(1, 2), changing(2, 1)), WHY),
        "1, and then 2": lambda: steps.compute(eq(changing(1, 2, 2), 2), WHY),
        "1, 2, 3": lambda: steps.compute(eq(changing(1, 2, 3, 4), 1), WHY),
        "a counter": lambda: steps.compute(eq(steps.exact_function("h", counted)(1), 2), WHY),
        "larger than itself": lambda: steps.compute(
            gt(changing(5, 1, 5, 1), 4), WHY),
        "asked of a symbol": lambda: steps.compute(eq(at(parity(n), {n: 3}), 1), WHY),
        "asked of a symbol, in a sum": lambda: steps.compute(
            eq(sp.Sum(parity(n), (n, 1, 3)), 3), WHY),
        "asked of a symbol, by identity": lambda: steps.identity(eq(parity(n), parity(n)), WHY),
        "a rounded third": lambda: steps.compute(eq(3 * small(1), 1), WHY),
        "pi of the same name": lambda: steps.compute(eq(sp.pi, named(1)), WHY),
        "two of one name": lambda: steps.compute(eq(twice[0](1), twice[1](1)), WHY),
        "two of one name, by identity": lambda: steps.identity(eq(twice[0](1), twice[1](1)), WHY),
        "ceiling of I": lambda: steps.ceiling(n, steps.exact_function("h", lambda _: sp.I)(1), WHY),
        "rounding of oo": lambda: steps.rounding(
            unevaluated(sp.ceiling, steps.exact_function("h", lambda _: sp.oo)(1))),
        "I squared": lambda: steps.positive(
            ge(steps.exact_function("h", lambda _: sp.I)(1) ** 2, 0), WHY),
        "I times I": lambda: steps.compute(
            eq(steps.exact_function("h", lambda _: sp.I)(1) ** 2, -1), WHY),
        "a symbol": lambda: steps.compute(
            eq(steps.exact_function("h", lambda _: p)(1), p), WHY),
        "a text of code": lambda: steps.compute(
            eq(steps.exact_function("h", lambda _: "1 + 1")(1), 2), WHY),
        "true": lambda: steps.compute(eq(steps.exact_function("h", lambda _: True)(1), 1), WHY),
        "a list": lambda: steps.compute(eq(steps.exact_function("h", lambda _: [1])(1), 1), WHY),
        "a function that recurs for ever": lambda: steps.compute(
            eq(steps.exact_function("h", endless)(1), 1), WHY),
        "a lying symbol": lambda: steps.compute(
            gt(steps.exact_function("h", lambda _: LyingNumber(-1))(1), 0), WHY),
        "no function": lambda: steps.compute(eq(steps.exact_function("h", 5)(1), 5), WHY),
        "a name that is no text": lambda: steps.compute(
            eq(steps.exact_function(5, lambda _: 1)(1), 2), WHY),
        "a division by 0 that is hidden": lambda: steps.identity(
            eq(p / exact(lambda _: 0), p / exact(lambda _: 0)), WHY),
    }  # fmt: skip


def endless(value):
    return endless(value)


# ------------------------------------------------------------------ each step, misused


def hyp(claim):
    return assume(claim, WHY)


def misuses():
    more, weak, same = hyp(gt(a, b)), hyp(ge(a, b)), hyp(eq(a, b))
    falling = hyp(Every(ge(r(k), r(k + 1)), k, 1, n))
    above = hyp(Every(gt(r(k), 0), k, 1, n))
    none = hyp(Every(gt(1 / a, 0), k, 1, n - 1))
    to_p = hyp(Every(gt(r(k), 0), k, 1, p))
    both = steps.iff(Iff(gt(a, b), gt(2 * a, 2 * b)), WHY, 2)
    weakly = steps.iff(Iff(ge(a, b), ge(2 * a, 2 * b)), WHY, 2)
    x = sp.Symbol("x", positive=True)
    zero = sp.Symbol("x0", positive=True)
    level, slope = hyp(eq(p * zero - q, 0)), positive(gt(p, 0), WHY)
    h = sp.Symbol("h", integer=True, positive=True)
    return {
        ("positive", "division by a negative factor"): lambda: positive(
            gt(-a, -b), WHY, {more: -1}
        ),
        ("positive", "times what may be negative"): lambda: positive(
            gt(c * a, c * b), WHY, {more: c}
        ),
        ("positive", "times what may be 0"): lambda: positive(gt(z * a, z * b), WHY, {more: z}),
        ("positive", "divided by what may be 0"): lambda: positive(
            gt(a / z, b / z), WHY, {more: 1 / z}
        ),
        ("positive", "squared"): lambda: positive(gt(a**2, b**2), WHY, {more: a + b}),
        ("positive", "squared, weakly"): lambda: positive(ge(a**2, b**2), WHY, {weak: a + b}),
        ("positive", "inverted"): lambda: positive(lt(1 / a, 1 / b), WHY, {more: 1 / (a * b)}),
        ("positive", "strict from weak"): lambda: positive(gt(a, b), WHY, {weak: 1}),
        ("positive", "strict from weak by a product"): lambda: positive(
            gt(p * a, p * b), WHY, {weak: p}
        ),
        ("positive", "weak and weak are strict"): lambda: positive(
            gt(a, c), WHY, {weak: 1, hyp(ge(b, c)): 1}
        ),
        ("positive", "the other way"): lambda: positive(gt(b, a), WHY, {more: 1}),
        ("positive", "minus a gap"): lambda: positive(
            gt(a - c, b), WHY, {more: 1, hyp(gt(c, 0)): -1}
        ),
        ("positive", "strict times 0"): lambda: positive(gt(0, 0), WHY, {more: 0}),
        ("positive", "a sign that is a product of facts"): lambda: positive(
            gt(a * b, 0), WHY, None, [hyp(gt(a, 0))]
        ),
        ("positive", "a weak fact taken as strict"): lambda: positive(
            gt(a * c, b * c), WHY, {more: c}, [hyp(ge(c, 0))]
        ),
        ("positive", "an equation as a fact"): lambda: positive(
            gt(a, 0), WHY, None, [hyp(eq(a, 0))]
        ),
        ("positive", "a fact with the sign of its inverse"): lambda: positive(
            gt(z, 0), WHY, None, [hyp(ge(1 / p + z, 0))]
        ),
        ("positive", "a power of an odd fact"): lambda: positive(
            gt(a**3, 0), WHY, None, [hyp(ge(a, 0))]
        ),
        ("identity", "from an inequality"): lambda: steps.identity(eq(a, b), WHY, {weak: 1}),
        ("identity", "divided by what may be 0"): lambda: steps.identity(
            eq(a, b), WHY, {hyp(eq(z * a, z * b)): 1 / z}
        ),
        ("identity", "a wrong factor"): lambda: steps.identity(eq(2 * a, b), WHY, {same: 1}),
        ("identity", "an inequality as its claim"): lambda: steps.identity(gt(a, a), WHY),
        ("identity", "an equivalence as its claim"): lambda: steps.identity(both.claim, WHY),
        ("identity", "an index beyond the range"): lambda: steps.identity(
            eq(r(n + 1), 0), WHY, {hyp(Every(eq(r(k), 0), k, 1, n)): 1}
        ),
        ("iff", "times what may be 0"): lambda: steps.iff(Iff(gt(a, b), gt(z * a, z * b)), WHY, z),
        ("iff", "times what is negative"): lambda: steps.iff(Iff(gt(a, b), gt(-a, -b)), WHY, -1),
        ("iff", "times a square"): lambda: steps.iff(Iff(eq(b, 0), eq(a**2 * b, 0)), WHY, a**2),
        ("iff", "an equation and an inequality"): lambda: steps.iff(Iff(eq(a, b), ge(a, b)), WHY),
        ("iff", "strict and weak"): lambda: steps.iff(Iff(gt(a, b), ge(a, b)), WHY),
        ("iff", "squares"): lambda: steps.iff(Iff(eq(a, b), eq(a**2, b**2)), WHY, a + b),
        ("iff", "opposite sides"): lambda: steps.iff(Iff(ge(a, b), le(a, b)), WHY, -1),
        ("iff", "divided by what is 0 at a point"): lambda: steps.iff(
            Iff(eq((n - 1) * a, 0), eq(a, 0)), WHY, 1 / (n - 1)
        ),
        ("iff", "one relation"): lambda: steps.iff(gt(a, a), WHY),
        ("solves", "a slope that may be 0"): lambda: steps.solves(eq(z * a, b), a, b / z, WHY),
        ("solves", "a square"): lambda: steps.solves(eq(a**2, 1), a, 1, WHY),
        ("solves", "no solution"): lambda: steps.solves(eq(0 * a, 1), a, 1, WHY),
        ("solves", "any number"): lambda: steps.solves(eq(a, a), a, 1, WHY),
        ("solves", "a rounding"): lambda: steps.solves(eq(sp.floor(a), 1), a, 1, WHY),
        ("solves", "a maximum"): lambda: steps.solves(eq(sp.Max(a, 0), 0), a, 0, WHY),
        ("solves", "an absolute value"): lambda: steps.solves(eq(sp.Abs(a), 1), a, 1, WHY),
        ("solves", "a sequence of it"): lambda: steps.solves(eq(f(a), 0), a, 0, WHY),
        ("solves", "a sum to it"): lambda: steps.solves(eq(sp.Sum(1, (k, 1, n)), 3), n, 2, WHY),
        ("solves", "an inequality"): lambda: steps.solves(gt(2 * a, 4), a, 1, WHY),
        ("follows", "the converse of a negation"): lambda: (
            steps.follows(both, hyp(le(a, b - 1)), WHY)
            and steps.follows(both, positive(le(0, 0), WHY), WHY)
        ),
        ("follows", "weak for strict"): lambda: steps.follows(both, weak, WHY),
        ("follows", "an equation's negation"): lambda: steps.follows(
            steps.iff(Iff(eq(a, b), eq(2 * a, 2 * b)), WHY, 2), more, WHY
        ),
        ("follows", "no equivalence"): lambda: steps.follows(more, more, WHY),
        ("follows", "another relation"): lambda: steps.follows(both, positive(gt(1, 0), WHY), WHY),
        ("chain", "strict to weak"): lambda: steps.chain(WHY, both, weakly),
        ("chain", "no line at all"): lambda: steps.chain(WHY),
        ("chain", "one relation"): lambda: steps.chain(WHY, more),
        ("chain", "no shared side"): lambda: steps.chain(
            WHY, both, steps.iff(Iff(gt(c, b), gt(2 * c, 2 * b)), WHY, 2)
        ),
        ("chain", "an equation and an inequality"): lambda: steps.chain(
            WHY, steps.iff(Iff(eq(a, a), eq(b, b)), WHY), both
        ),
        ("squeeze", "twice the same side"): lambda: steps.squeeze(eq(a, b), weak, weak, WHY),
        ("squeeze", "strict sides"): lambda: steps.squeeze(
            eq(a, b), positive(ge(p, 0), WHY), positive(le(p, p + 1), WHY), WHY
        ),
        ("squeeze", "about something else"): lambda: steps.squeeze(eq(a, c), SAME, SAME, WHY),
        ("squeeze", "equations"): lambda: steps.squeeze(
            eq(1, 2), steps.identity(eq(0, 0), WHY), steps.identity(eq(0, 0), WHY), WHY
        ),
        ("squeeze", "an inequality"): lambda: steps.squeeze(gt(0, 0), SAME, SAME, WHY),
        ("sharpen", "real numbers"): lambda: steps.sharpen(
            ge(a, b), WHY, positive(gt(a, a - 1), WHY)
        ),
        ("sharpen", "by two"): lambda: steps.sharpen(ge(n, 2), WHY, positive(gt(n, 0), WHY)),
        ("sharpen", "from a weak one"): lambda: steps.sharpen(
            ge(n, 2), WHY, positive(ge(n, 1), WHY)
        ),
        ("sharpen", "to a strict one"): lambda: steps.sharpen(
            gt(n, 1), WHY, positive(gt(n, 0), WHY)
        ),
        ("sharpen", "a half"): lambda: steps.sharpen(
            ge(n / 2, 1), WHY, positive(gt(n / 2, 0), WHY)
        ),
        ("sharpen", "a function of Python"): lambda: steps.sharpen(
            ge(steps.exact_function("h", lambda _: HALF)(1), 1),
            WHY,
            steps.compute(gt(steps.exact_function("h", lambda _: HALF)(1), 0), WHY),
        ),
        ("absurd", "what is true"): lambda: steps.absurd(gt(0, 1), positive(ge(0, 0), WHY), WHY),
        ("absurd", "what is not known"): lambda: steps.absurd(gt(0, 1), hyp(gt(r(1), 0)), WHY),
        ("absurd", "what is weakly true"): lambda: steps.absurd(gt(0, 1), hyp(le(z, 0)), WHY),
        ("absurd", "an equation"): lambda: steps.absurd(eq(a, b), hyp(gt(0, 0)), WHY),
        ("absurd", "another hypothesis"): lambda: steps.absurd(gt(a, b), hyp(gt(a, a)), WHY),
        ("absurd", "the claim for its negation"): lambda: steps.absurd(
            gt(0, 1), positive(gt(0, 1), WHY, {hyp(gt(0, 1)): 1}), WHY
        ),
        ("absurd", "the empty sum"): lambda: steps.absurd(
            gt(0, 1), steps.add_up(positive_every(g, count), WHY), WHY
        ),
        ("discharge", "a weaker line"): lambda: steps.discharge(
            positive(gt(2 * a, 2 * b), WHY, {hyp(gt(a, b)): 2}), positive(ge(0, 0), WHY), WHY
        ),
        ("discharge", "a hypothesis that is not there"): lambda: steps.discharge(more, ONE, WHY),
        ("discharge", "by itself"): lambda: steps.discharge(hyp(gt(0, 1)), hyp(gt(0, 1)), WHY),
        ("discharge", "one for every"): lambda: steps.discharge(
            above, positive(gt(p, 0), WHY), WHY
        ),
        ("discharge", "a smaller range"): lambda: steps.discharge(
            hyp(Every(gt(g(k), 0), k, 0, n)), positive_every(g, n), WHY
        ),
        ("discharge", "a renamed index that is caught"): lambda: steps.discharge(
            hyp(Every(eq(f(n) - f(n), f(n) - f(1)), n, 1, m)),
            steps.show(Every(eq(f(k) - f(k), 0), k, 1, m), WHY),
            WHY,
        ),
        ("substitute", "0 for a positive number"): lambda: steps.substitute(
            positive(gt(p, 0), WHY), {p: 0}, WHY
        ),
        ("substitute", "0 for a ratio"): lambda: steps.substitute(
            positive(gt(beta, 0), WHY), {beta: 0}, WHY
        ),
        ("substitute", "1 for a ratio"): lambda: steps.substitute(
            positive(lt(beta, 1), WHY), {beta: 1}, WHY
        ),
        ("substitute", "2 for a ratio"): lambda: steps.substitute(
            positive(lt(beta**n, 1), WHY), {beta: 2}, WHY
        ),
        ("substitute", "1/2 for a count"): lambda: steps.substitute(
            positive(ge(n, 1), WHY), {n: HALF}, WHY
        ),
        ("substitute", "0 for a count"): lambda: steps.substitute(
            positive(ge(n, 1), WHY), {n: 0}, WHY
        ),
        ("substitute", "a rounded number"): lambda: steps.substitute(
            positive(ge(n, 1), WHY), {n: sp.Float(0.5)}, WHY
        ),
        ("substitute", "I for a real number"): lambda: steps.substitute(
            positive(ge(a**2, 0), WHY), {a: sp.I}, WHY
        ),
        ("substitute", "a root for a real number"): lambda: steps.substitute(
            positive(ge(a**2, 0), WHY), {a: sp.sqrt(-p)}, WHY
        ),
        ("substitute", "oo for a real number"): lambda: steps.substitute(
            positive(gt(a + 1, a), WHY), {a: sp.oo}, WHY
        ),
        ("substitute", "a count less one"): lambda: steps.substitute(
            positive(ge(n, 1), WHY), {n: m - 1}, WHY
        ),
        ("substitute", "a negative sum"): lambda: steps.substitute(
            positive(ge(n, 1), WHY), {n: sp.Sum(1, (k, 1, m - 1))}, WHY
        ),
        ("substitute", "a bound index"): lambda: steps.substitute(
            steps.identity(eq(sp.Sum(a, (k, 1, n)), n * a), WHY), {a: k}, WHY
        ),
        ("substitute", "a bound index by two steps"): lambda: steps.substitute(
            steps.identity(eq(sp.Sum(a, (k, 1, n)), n * a), WHY), {a: b, b: k}, WHY
        ),
        ("substitute", "what is differentiated by"): lambda: steps.substitute(
            steps.identity(eq(sp.Derivative(a * b, a), b), WHY), {b: a}, WHY
        ),
        ("substitute", "what is put in"): lambda: steps.substitute(
            steps.identity(eq(at(a + b, {a: 1}), 1 + b), WHY), {b: a}, WHY
        ),
        ("substitute", "a sequence"): lambda: steps.substitute(
            positive(gt(g(1), 0), WHY), {g(1): -1}, WHY
        ),
        ("substitute", "an expression"): lambda: steps.substitute(
            positive(ge(a**2, 0), WHY), {a**2: -1}, WHY
        ),
        ("substitute", "a function"): lambda: steps.substitute(
            positive(gt(g(1), 0), WHY), {g: -1}, WHY
        ),
        ("substitute", "odd for even"): lambda: steps.substitute(
            steps.identity(eq((-1) ** sp.Symbol("e", even=True), 1), WHY),
            {sp.Symbol("e", even=True): 1},
            WHY,
        ),
        ("substitute", "1 for what is 0"): lambda: steps.substitute(
            hyp_free_zero(), {sp.Symbol("o", zero=True): 1}, WHY
        ),
        ("substitute", "a text"): lambda: steps.substitute(
            positive(ge(a**2, 0), WHY), {a: "I"}, WHY
        ),
        ("substitute", "by a hypothesis about itself"): lambda: steps.substitute(
            positive(gt(p, 0), WHY), {p: a}, WHY, [hyp(ge(a, 0))]
        ),
        ("take", "beyond the last"): lambda: steps.take(positive_every(f, n, 1), n + 1, WHY),
        ("take", "before the first"): lambda: steps.take(above, 0, WHY),
        ("take", "a half"): lambda: steps.take(above, HALF, WHY),
        ("take", "between"): lambda: steps.take(above, n / 2 + HALF, WHY, [hyp(ge(n, 1))]),
        ("take", "by an unrelated line"): lambda: steps.take(above, n + 1, WHY, [ONE]),
        ("take", "by a line about the first only"): lambda: steps.take(
            above, n + 3, WHY, [positive(ge(n, 1), WHY)]
        ),
        ("take", "an index that is bound"): lambda: steps.take(
            steps.show(Every(eq(sp.Sum(k, (m, 1, 2)), 2 * k), k, 1, n), WHY),
            m,
            WHY,
            [known_range(n, m)],
        ),
        ("take", "one relation"): lambda: steps.take(ONE, 1, WHY),
        ("take", "true"): lambda: steps.take(above, True, WHY),
        ("take", "from a range to p"): lambda: steps.take(to_p, 1, WHY, [positive(ge(p, 0), WHY)]),
        ("generalise", "a hypothesis about the index"): lambda: (
            steps.generalise(hyp(gt(r(n), 0)), n, 1, 5, WHY) and ONE
        ),
        ("generalise", "an index that cannot be 0"): lambda: steps.generalise(
            positive(gt(n, 0), WHY), n, 0, 5, WHY
        ),
        ("generalise", "a negative first"): lambda: steps.generalise(
            positive(ge(count, 0), WHY), count, -3, 5, WHY
        ),
        ("generalise", "a real index"): lambda: steps.generalise(
            positive(gt(p, 0), WHY), p, 1, 5, WHY
        ),
        ("generalise", "a ratio as the index"): lambda: steps.generalise(
            positive(lt(beta, 1), WHY), beta, 1, 5, WHY
        ),
        ("generalise", "a range with its own index"): lambda: steps.generalise(
            positive(gt(n, 0), WHY), n, 1, n, WHY
        ),
        ("generalise", "a bound index"): lambda: steps.generalise(
            steps.identity(eq(sp.Sum(k, (k, 1, 2)), 3), WHY), k, 1, 5, WHY
        ),
        ("generalise", "a range that is larger"): lambda: steps.generalise(
            steps.take(above, k, WHY), k, 1, n + 1, WHY
        ),
        ("generalise", "a range to p"): lambda: steps.generalise(
            positive(gt(k, 0), WHY), k, 1, p, WHY
        ),
        ("generalise", "an even index"): lambda: steps.generalise(
            steps.identity(eq((-1) ** sp.Symbol("e", even=True, positive=True), 1), WHY),
            sp.Symbol("e", even=True, positive=True),
            1,
            5,
            WHY,
        ),
        ("generalise", "an index that is no symbol"): lambda: steps.generalise(
            ONE, n + 1, 1, 5, WHY
        ),
        ("add_up", "an empty sum is strict"): lambda: strict(
            steps.add_up(positive_every(g, count), WHY)
        ),
        ("add_up", "a sum to p is strict"): lambda: strict(steps.add_up(to_p, WHY), to_p),
        ("add_up", "beyond the last"): lambda: steps.add_up(positive_every(g, n), WHY, 1, n + 1),
        ("add_up", "from 0"): lambda: steps.add_up(positive_every(g, n), WHY, 0, n),
        ("add_up", "backwards"): lambda: steps.add_up(positive_every(g, n), WHY, n, 1),
        ("add_up", "to a half"): lambda: steps.add_up(positive_every(g, n), WHY, HALF, 1),
        ("add_up", "a negative weight"): lambda: steps.add_up(positive_every(g, n), WHY, weight=-1),
        ("add_up", "a weight that may be negative"): lambda: steps.add_up(
            positive_every(g, n), WHY, weight=r(k)
        ),
        ("add_up", "a weight that may be 0"): lambda: steps.add_up(
            positive_every(g, n), WHY, weight=z
        ),
        ("add_up", "one relation"): lambda: steps.add_up(ONE, WHY),
        ("add_up", "the name of its own index"): lambda: caught_counter(h),
        ("add_up", "not shorter than empty"): lambda: (
            steps.add_up(positive_every(g, n), WHY, 1, m - 5, [hyp(ge(n, m))]) and strict(ONE_UNDER)
        ),
        ("ceiling", "a count that is not whole"): lambda: steps.ceiling(p, a, WHY),
        ("ceiling", "half a count"): lambda: steps.ceiling(n / 2, a, WHY),
        ("ceiling", "a number that is not real"): lambda: steps.ceiling(n, sp.sqrt(a), WHY),
        ("rounding", "a number"): lambda: steps.rounding(a),
        ("rounding", "a sum of roundings"): lambda: steps.rounding(sp.ceiling(a) + 1),
        ("rounding", "what is not real"): lambda: steps.rounding(sp.ceiling(sp.sqrt(a))),
        ("rounding", "a fraction"): lambda: steps.rounding(sp.frac(a)),
        ("extreme", "a maximum is a smaller part"): lambda: (
            steps.extreme(eq(sp.Max(a, b), b), WHY, [weak]) and ONE
        ),
        ("extreme", "a maximum is at most a part"): lambda: steps.extreme(le(sp.Max(a, b), a), WHY),
        ("extreme", "a minimum is at least a part"): lambda: steps.extreme(
            ge(sp.Min(a, b), a), WHY
        ),
        ("extreme", "a strict maximum"): lambda: steps.extreme(gt(sp.Max(a, b), a), WHY),
        ("extreme", "no part of it"): lambda: steps.extreme(eq(sp.Max(a, b), c), WHY),
        ("extreme", "no maximum"): lambda: steps.extreme(eq(a + b, a), WHY),
        ("extreme", "strictly below all parts, weakly"): lambda: steps.extreme(
            lt(sp.Max(p, 2 * p), 2 * p), WHY
        ),
        ("extreme", "a minimum above"): lambda: steps.extreme(gt(sp.Min(p, -p), -p), WHY),
        ("logarithm", "a negative side"): lambda: steps.logarithm(gt(p, -q), WHY),
        ("logarithm", "a side that may be 0"): lambda: steps.logarithm(ge(z, p), WHY),
        ("logarithm", "a fact that is weak"): lambda: steps.logarithm(
            gt(a, p), WHY, [hyp(ge(a, 0))]
        ),
        ("logarithm", "a side without a value"): lambda: steps.logarithm(
            gt(n / (n - 1) - 1 / (n - 1), HALF), WHY
        ),
        ("logarithm", "an equivalence"): lambda: steps.logarithm(both.claim, WHY),
        ("exponential", "a negative exponent"): lambda: steps.exponential(sp.exp(-p)),
        ("exponential", "any exponent"): lambda: steps.exponential(2**a),
        ("exponential", "a ratio"): lambda: steps.exponential(beta**p),
        ("exponential", "any base"): lambda: steps.exponential(p**p),
        ("exponential", "a negative base"): lambda: steps.exponential((-2) ** n),
        ("exponential", "a base that is 0"): lambda: steps.exponential(z**n),
        ("exponential", "a third"): lambda: steps.exponential(sp.Rational(1, 3) ** n),
        ("isolate_zero", "a function that falls"): lambda: steps.isolate_zero(
            q - p * x, x, zero, [hyp(lt(-p, 0)), hyp(eq(q - p * zero, 0))], WHY
        ),
        ("isolate_zero", "a floor"): lambda: isolate(sp.floor(x) - 1, x, zero),
        ("isolate_zero", "a maximum"): lambda: isolate(sp.Max(x, 2) - 2, x, zero),
        ("isolate_zero", "an absolute value"): lambda: isolate(sp.Abs(x - 2) - 1, x, zero),
        ("isolate_zero", "a pole"): lambda: isolate(1 - 1 / (x - 2), x, zero),
        ("isolate_zero", "a sequence"): lambda: isolate(f(x), x, zero),
        ("isolate_zero", "a sum to it"): lambda: isolate(sp.Sum(1, (k, 1, x)) - 1, x, zero),
        ("isolate_zero", "a count"): lambda: steps.isolate_zero(
            n - m, n, m, [positive(gt(1, 0), WHY), steps.identity(eq(m - m, 0), WHY)], WHY
        ),
        ("isolate_zero", "another zero"): lambda: steps.isolate_zero(
            p * x - q, x, zero, [slope, hyp(eq(p * zero, 0))], WHY
        ),
        ("isolate_zero", "a slope at one point"): lambda: (
            steps.isolate_zero(
                x**2 - 2 * x,
                x,
                sp.Integer(2),
                [
                    positive(gt(2 * x - 2, 0), WHY, {hyp(gt(x, 1)): 2}),
                    steps.identity(eq(0, 0), WHY),
                ],
                WHY,
            )
            and ONE
        ),
        ("isolate_zero", "no lines"): lambda: steps.isolate_zero(p * x - q, x, zero, [], WHY),
        ("isolate_zero", "one line"): lambda: steps.isolate_zero(p * x - q, x, zero, [slope], WHY),
        ("isolate_zero", "without a value"): lambda: steps.isolate_zero(
            x - 1 + 1 / z - 1 / z * sp.Symbol("u", positive=True),
            x,
            zero,
            [positive(gt(1, 0), WHY), level],
            WHY,
        ),
        ("show", "a fact about a bound index"): lambda: show_with_bound_fact(),
        ("identity", "a fact about a bound index"): lambda: steps.identity(
            eq(sp.Sum(1 / (k - m), (k, 1, 9)), sp.Sum(1 / (k - m), (k, 1, 9))),
            WHY,
            None,
            [hyp(gt(k, m))],
        ),
        ("identity", "a fact about a bound index, log"): lambda: steps.identity(
            eq(sp.Sum(sp.log(a - k), (k, 1, 9)), sp.Sum(sp.log(a - k), (k, 1, 9))),
            WHY,
            None,
            [hyp(gt(a - k, 0))],
        ),
        ("shows", "weak for strict"): lambda: steps.shows(ge(a, b), gt(a, b)),
        ("shows", "an inequality for an equation"): lambda: steps.shows(ge(a, b), eq(a, b)),
        ("shows", "the other direction"): lambda: steps.shows(gt(a, b), lt(a, b)),
        ("shows", "a longer range"): lambda: steps.shows(
            Every(gt(r(k), 0), k, 1, n), Every(gt(r(k), 0), k, 1, n + 1)
        ),
        ("shows", "an earlier first"): lambda: steps.shows(
            Every(gt(r(k), 0), k, 2, n), Every(gt(r(k), 0), k, 1, n)
        ),
        ("shows", "an index that is caught"): lambda: (
            steps.shows(Every(eq(r(k), r(n)), k, 1, m), Every(eq(r(n), r(n)), n, 1, m))
            and not steps.shows(eq(1, 1), eq(r(n), r(n)))
        ),
        ("shows", "an index that is caught, the other way"): lambda: steps.shows(
            Every(ge(r(n) - r(n), 0), k, 1, m), Every(ge(r(n) - r(k), 0), k, 1, m)
        ),
        ("shows", "an equivalence of strict and weak"): lambda: steps.shows(
            Iff(gt(a, 0), gt(b, 0)), Iff(gt(a, 0), ge(b, 0))
        ),
        ("shows", "half an equivalence"): lambda: steps.shows(Iff(gt(a, 0), gt(b, 0)), gt(b, 0)),
        ("shows", "what an empty range says"): lambda: steps.shows(
            none.claim, Every(gt(unevaluated(sp.Add, 1 / a, 1 - 1), 0), k, 1, n)
        ),
        ("compute", "an equivalence"): lambda: steps.compute(both.claim, WHY),
        ("compute", "for every index"): lambda: steps.compute(falling.claim, WHY),
        ("compute", "a symbol"): lambda: steps.compute(gt(p, 0), WHY),
        ("compute", "a power that is too large"): lambda: steps.compute(
            gt(0, unevaluated(sp.Pow, 10, 10**9)), WHY
        ),
        ("compute", "a sum that is too long"): lambda: steps.compute(
            gt(0, sp.Sum(1 / k, (k, 1, 10**9))), WHY
        ),
        ("identity", "a sum that is too long"): lambda: steps.identity(
            eq(sp.Sum(1 / k, (k, 1, 10**9)), 1), WHY
        ),
        ("identity", "a deep expression"): lambda: steps.identity(eq(nested(400), a), WHY),
        ("positive", "a deep expression"): lambda: steps.positive(gt(nested(400), 0), WHY),
        ("compute", "a deep expression"): lambda: steps.compute(gt(nested(400, 1), 0), WHY),
        ("positive", "no line"): lambda: steps.positive(gt(a, 0), WHY, {gt(a, 0): 1}),
        ("positive", "a text for a line"): lambda: steps.positive(gt(a, 0), WHY, {"a > 0": 1}),
        ("positive", "a list of lines"): lambda: steps.positive(gt(a, b), WHY, [more]) and ONE,
        ("positive", "no claim"): lambda: steps.positive("1 > 0", WHY),
        ("positive", "true"): lambda: steps.positive(True, WHY),
        ("positive", "a relation of SymPy"): lambda: steps.positive(sp.Gt(a, b), WHY),
        ("positive", "no reason"): lambda: steps.positive(gt(1, 0), None),
        ("substitute", "that 1/z is not below itself"): lambda: steps.substitute(
            hyp(ge(1 / z, 1 / z)), {a: a}, WHY
        ),
        ("positive", "a sequence that is told to be positive"): lambda: positive(
            gt(told("is_positive", True)(1), 0), WHY
        ),
        ("compute", "a sequence that is told its value"): lambda: steps.compute(
            eq(told("doit", lambda self, **_: sp.Integer(5))(1), 5), WHY
        ),
        ("positive", "a sequence that is told to be a number"): lambda: positive(
            gt(told("is_number", True)(1), -1), WHY
        ),
        ("identity", "the logarithm of a number that lies"): lambda: steps.identity(
            eq(*[unevaluated(sp.log, LyingNumber(-1))] * 2), WHY
        ),
        ("shows", "an index that cannot be -5"): lambda: steps.shows(
            Every(eq(f(whole), sp.Max(whole, 0)), whole, -5, 5), Every(eq(f(k), k), k, -5, 5)
        ),
        ("shows", "an expression that equals any"): lambda: steps.shows(
            eq(1, 1), Relation(EqualToAll(), "=", 1)
        ),
        ("shows", "a claim that equals any"): lambda: steps.shows(EqualClaim(), gt(0, 1)),
        ("identity", "a hypothesis about a sum of -4 terms"): lambda: steps.identity(
            eq(n, 5), WHY, {hyp(eq(sp.Sum(1, (k, 1, n - 5)), 0)): 1}
        ),
        ("positive", "a ratio as the index"): lambda: positive(
            lt(sp.Sum(beta, (beta, 1, 2)), 2), WHY
        ),
        ("prove", "a goal without a value"): lambda: a_statement(
            eq(n / (n - 1) - 1 / (n - 1), 1), steps.identity(eq(1, 1), WHY)
        ),
        ("prove", "a goal that is assumed"): lambda: a_statement(gt(0, 1), hyp(gt(0, 1))),
        ("prove", "another goal"): lambda: a_statement(gt(0, 1), ONE),
        ("prove", "a relation that lies"): lambda: a_statement(
            gt(0, 1), ONE, [LyingRelation(0, ">", 1)]
        ),
        ("prove", "an induction on nothing"): lambda: a_statement(
            gt(0, 1), steps.induction(gt(0, 1), n, hyp(gt(0, 1)), hyp(gt(0, 1)), WHY)
        ),
        ("prove", "what an empty sum says"): lambda: a_statement(
            gt(total(g, count), 0), steps.add_up(positive_every(g, count), WHY)
        ),
        ("assume", "no claim"): lambda: steps.assume("0 > 1", WHY),
        ("assume", "no part that is known"): lambda: steps.assume(gt(sp.sin(a), 2), WHY),
    }


def known_range(high, index):
    return Line(ge(high, index), WHY)


def hyp_free_zero():
    return steps.identity(eq(sp.Symbol("o", zero=True) * a, 0), WHY)


def positive_every(function, last, less=0):
    """A line that says that a positive sequence is positive; for another one it is assumed."""
    every = Every(gt(function(k), 0), k, 1, last - less)
    return steps.show(every, WHY) if function is g else hyp(every)


def strict(line, *known):
    """The line, if it is strict on nothing but what is known."""
    if line.claim.sign != ">":
        raise ProofError("it is not strict")
    return Line(line.claim, WHY, (), line.given - {one.claim for one in known})


ONE_UNDER = hyp(ge(0, 0))


def caught_counter(h):
    """Add up f(k) f(h) for k from 1 to k: the sum is over another index than h."""
    every = hyp(Every(eq(f(k), f(k)), k, 1, n))
    line = steps.add_up(every, WHY, 1, k + h, [hyp(ge(n, k + h))])
    ((index, _, high),) = line.claim.left.limits
    if index in high.free_symbols:
        return ONE
    raise ProofError("the index is another one")


def show_with_bound_fact():
    terms = sp.Sum(1 / (k - m), (k, 1, 9))
    return steps.show(ge(terms, terms), WHY, None, [hyp(gt(k - m, 0))])


def isolate(function, x, zero):
    slope = hyp(gt(sp.Derivative(function, x).doit(), 0))
    return steps.isolate_zero(function, x, zero, [slope, hyp(eq(function.subs(x, zero), 0))], WHY)


def nested(depth, start=a):
    """f(f(...f(a)...)), which is deeper than Python's stack."""
    for _ in range(depth):
        start = f(start)
    return start


def told(name, answer):
    """A sequence that is told what to answer after it was made."""
    function = sp.Function("f", real=True)
    setattr(function, name, answer)
    return function


class EqualToAll(sp.Expr):
    """An expression that equals any other one."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


class EqualClaim:
    """A claim that equals any other one."""

    sides = (sp.Integer(1),)

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def a_statement(goal, line, goals=None):
    """Prove a statement whose derivation is one line."""
    one = Statement("key", "words", (goal,), (), lambda _: [line], "ours", "", "M 1", (), "")
    return one.prove(goals).shown[0]


#: What an attack may rest on, where the statement is false although that can hold.
UNDER = {
    "a fact about a bound index": (gt(k, m), gt(k - m, 0)),
    "a fact about a bound index, log": (gt(a - k, 0),),
    "a hypothesis about a sum of -4 terms": (eq(sp.Sum(1, (k, 1, n - 5)), 0),),
    "no part that is known": (gt(sp.sin(a), 2),),
    "times what may be negative": (gt(a, b),), "times what may be 0": (gt(a, b),),
    "divided by what may be 0": (gt(a, b),), "squared": (gt(a, b),),
    "squared, weakly": (ge(a, b),), "inverted": (gt(a, b),),
    "strict from weak": (ge(a, b),), "strict from weak by a product": (ge(a, b),),
    "weak and weak are strict": (ge(a, b), ge(b, c)), "the other way": (gt(a, b),),
    "division by a negative factor": (gt(a, b),), "minus a gap": (gt(a, b), gt(c, 0)),
    "strict times 0": (gt(a, b),), "a sign that is a product of facts": (gt(a, 0),),
    "a weak fact taken as strict": (gt(a, b), ge(c, 0)), "an equation as a fact": (eq(a, 0),),
    "a power of an odd fact": (ge(a, 0),), "from an inequality": (ge(a, b),),
    "a wrong factor": (eq(a, b),), "weak for strict": (ge(a, b),),
    "an equation's negation": (gt(a, b),), "another hypothesis": (),
    "what is weakly true": (le(z, 0),), "what is not known": (gt(r(1), 0),),
    "a fact that is weak": (ge(a, 0),), "by a hypothesis about itself": (ge(a, 0),),
    "a range that is larger": (Every(gt(r(k), 0), k, 1, n),),
    "beyond the last": (Every(gt(f(k), 0), k, 1, n - 1), Every(gt(r(k), 0), k, 1, n)),
    "before the first": (Every(gt(r(k), 0), k, 1, n),), "a half": (Every(gt(r(k), 0), k, 1, n),),
    "by an unrelated line": (Every(gt(r(k), 0), k, 1, n),),
    "by a line about the first only": (Every(gt(r(k), 0), k, 1, n),),
}  # fmt: skip


# ------------------------------------------------------------------ factors and functions

#: What may be 0 or negative.
FACTORS = {
    "c": c, "z": z, "-p": -p, "a - b": a - b, "n - 1": n - 1, "beta - 1": beta - 1,
    "log(beta)": sp.log(beta), "max(c, 0)": sp.Max(c, 0), "floor(p)": sp.floor(p), "r(1)": r(1),
    "an empty sum": total(g, count), "n - 1 ones": total(lambda _: 1, n - 1), "c^2": c**2,
    "c^3": c**3, "1 - p": 1 - p, "0": sp.Integer(0), "-1": sp.Integer(-1), "1 - beta^N":
    1 - beta**count, "log(p)": sp.log(p), "exp(a) - 1": sp.exp(a) - 1, "ceiling(c)": sp.ceiling(c),
    "(-1)^n": (-1) ** n, "2 - 2^n": 2 - 2**n, "root of z": sp.sqrt(z),
}  # fmt: skip
#: Functions of a positive number that do not rise everywhere.
NOT_RISING = {
    "floor": sp.floor, "ceiling": sp.ceiling, "1/x": lambda x: 1 / x, "-x": lambda x: -x,
    "max(x, 5)": lambda x: sp.Max(x, 5), "min(x, 1/2)": lambda x: sp.Min(x, HALF),
    "x^a": lambda x: x**a, "beta^x": lambda x: beta**x, "f": f, "g": g,
    "x - x^2": lambda x: x - x**2,
    "(x - 1)^2": lambda x: (x - 1) ** 2, "x mod 1": lambda x: sp.Mod(x, 1), "cos": sp.cos,
    "c x": lambda x: c * x, "z x": lambda x: z * x, "x^-2": lambda x: x**-2, "0": lambda x: 0 * x,
    "|x - 1|": lambda x: sp.Abs(x - 1), "exp(-x)": lambda x: sp.exp(-x), "x^x": lambda x: x**x,
    "log(x)^2": lambda x: sp.log(x) ** 2, "x + 1/x": lambda x: x + 1 / x,
}  # fmt: skip


def factor_attacks():
    more, larger = hyp(gt(a, b)), hyp(gt(p, q))
    each = hyp(Every(gt(f(k), 0), k, 1, n))
    for why, factor in FACTORS.items():
        calls = {
            "positive": lambda factor=factor: positive(
                gt(factor * a, factor * b), WHY, {more: factor}),
            "positive, divided": lambda factor=factor: positive(
                gt(a / factor, b / factor), WHY, {more: 1 / factor}),
            "show": lambda factor=factor: steps.show(
                gt(factor * a, factor * b), WHY, {more: factor}),
            "iff": lambda factor=factor: steps.iff(
                Iff(gt(a, b), gt(factor * a, factor * b)), WHY, factor),
            "iff, weak": lambda factor=factor: steps.iff(
                Iff(ge(a, b), ge(factor * a, factor * b)), WHY, factor),
            "logarithm": lambda factor=factor: steps.logarithm(gt(factor, HALF), WHY),
            "add_up": lambda factor=factor: strict(steps.add_up(each, WHY, weight=factor)),
        }  # fmt: skip
        if why not in ("-p", "beta - 1", "log(beta)", "-1"):  # these are never 0
            calls["solves"] = lambda factor=factor: steps.solves(
                eq(factor * x_real, b), x_real, b / factor, WHY
            )
        for step, call in calls.items():
            yield Attack(step, "factor", why, call, (gt(a, b), each.claim))
    for why, function in NOT_RISING.items():
        for times in (1, p + q, 1 / (p * q)):
            claim = gt(function(p), function(q))
            for step in (steps.positive, steps.show):
                yield Attack(step.__name__, "monotone", f"{why}, times {times}",
                             lambda step=step, claim=claim, times=times: step(
                                 claim, WHY, {larger: times}), (gt(p, q),))  # fmt: skip
            yield Attack("iff", "monotone", f"{why}, times {times}",
                         lambda claim=claim, times=times: steps.iff(
                             Iff(gt(p, q), claim), WHY, times))  # fmt: skip


x_real = sp.Symbol("x", real=True)


def algebra_attacks():
    """What `is_zero` and `sign`, which take it that an expression is defined, say of it."""
    for why, sides in FALSE_EQUATIONS.items():
        yield Attack("is_zero", "false equation", why, lambda sides=sides: is_false_zero(*sides()))
    for why, sides in FALSE_INEQUALITIES.items():
        yield Attack("sign", "false inequality", why, lambda sides=sides: is_false_sign(*sides()))


def is_false_zero(left, right):
    claim = eq(left, right)
    require_defined(claim.sides)
    return is_zero(claim.gap)


def is_false_sign(left, right):
    claim = gt(left, right)
    require_defined(claim.sides)
    return sign(claim.gap) == ">"


def all_attacks():
    """Every attack of this file."""
    yield from factor_attacks()
    yield from algebra_attacks()
    yield from undefined_attacks()
    yield from relation_attacks()
    for why, call in inductions():
        yield Attack("induction", "induction", why, call)
    yield from hiding()
    yield from lies()
    for why, call in python_functions().items():
        yield Attack("exact_function", "function of Python", why, call)
    for (step, why), call in misuses().items():
        yield Attack(step, "misuse", why, call, UNDER.get(why, ()))


ATTACKS = list(all_attacks())


# ------------------------------------------------------------------ the tests

#: Steps that are attacked, by the names in the table.
ATTACKED = {one.step.split(",")[0] for one in ATTACKS}


@pytest.mark.parametrize("kind", sorted({one.kind for one in ATTACKS}))
def test_what_is_false_is_refused(kind):
    found = [one for one in ATTACKS if one.kind == kind and accepted(one)]
    assert [(one.step, one.why) for one in found] == []


def test_every_step_is_attacked():
    names = {
        name
        for name, step in inspect.getmembers(steps, inspect.isfunction)
        if step.__module__ == steps.__name__ and name[0] != "_"
    }
    assert names | {"exact_function", "is_zero", "sign", "prove"} == ATTACKED
    assert min(Counter(one.step.split(",")[0] for one in ATTACKS).values()) >= 2
    assert len(ATTACKS) > 4000


@pytest.mark.parametrize("step", REFLEXIVE)
def test_what_has_a_value_is_not_refused(step):
    """The calls that are tried with what has no value show something of a whole number."""
    number = sp.Integer(2) if step == "compute" else n
    assert accepted(Attack(step, "control", "a whole number", lambda: REFLEXIVE[step](number)))


@pytest.mark.parametrize(
    ("claim", "why"),
    [(claim, why) for why, claim in WITHOUT_INDEX.items()],
    ids=list(WITHOUT_INDEX),
)
def test_a_claim_without_the_index_stays_a_hypothesis(claim, why):
    """`induction` once took the claim from what its own first case rests on."""
    line = assume(claim, why)
    assert steps.induction(claim, n, line, line, why).given == {claim}
    assert steps.show_inductively(claim, n, why, first={line: 1}).given == {claim}


def test_a_function_of_python_is_asked_once_and_for_all():
    asked = []
    table = steps.exact_function("h", lambda value: asked.append(value) or sp.Integer(3))
    for _ in range(3):
        steps.compute(eq(table(1), 3), WHY)
    assert asked == [1, 1]
    unsure = changing(1, 2, 2, 2)
    for _ in range(3):  # it is not asked until it agrees
        with pytest.raises(ProofError, match="no one value"):
            steps.compute(eq(unsure, 2), WHY)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: steps.identity(eq(1 / z, 1 / z), WHY), "z may be 0"),
        (lambda: steps.identity(eq(*[sp.Sum(1, (k, 1, n - 5))] * 2), WHY), "n - 5"),
        (lambda: steps.compute(eq(at(sp.Derivative(sp.Abs(a), a), {a: 0}), 0), WHY), "Abs"),
        (lambda: steps.identity(eq(sp.Derivative(sp.floor(a), a), 0), WHY), "no derivative by a"),
        (lambda: steps.positive(gt(sp.sin(a), -2), WHY), "sin"),
        (lambda: steps.ceiling(n, steps.exact_function("h", lambda _: sp.I)(1), WHY), "I"),
        (lambda: steps.positive("0 < 1", WHY), "make one by eq, gt"),
        (lambda: eq("1", 1), "no expression"),
        (lambda: Relation(1, "!=", 2), "'!=' is no sign"),
        (lambda: steps.substitute(ONE, [n], WHY), "no mapping"),
        (lambda: steps.chain(WHY, "1"), "no line"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_value_and_the_rule(call, words):
    with pytest.raises((ProofError, InputError), match=re.escape(words)):
        call()


def test_the_index_of_a_sum_is_no_symbol_of_the_caller():
    assert total(lambda h: i * h, n).free_symbols == {i, n}
    assert str(total(r, n)) == str(sp.Sum(r(i), (i, 1, n))).replace("i", "_i")
    assert to_text(total(r, n)) == "Sum(r(i), (i, 1, n))"
    assert total(r, n) == total(r, n)
    nested = total(lambda h: total(lambda e: r(h) * r(e), n), n)
    assert sp.expand(nested.subs({n: 2}).doit() - (r(1) + r(2)) ** 2) == 0
