"""Proofs that a prover must refuse, each by its name and for its own reason."""

import numpy as np
import pytest
import sympy as sp

from dlsim.theory import ProofError
from dlsim.theory.book import STATED, cited, statement
from dlsim.theory.claim import (
    Iff,
    Relation,
    computed,
    differ,
    eq,
    ge,
    gt,
    le,
    lt,
    recursive,
    sequence,
    total,
    under,
)
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import chi, tau
from dlsim.theory.remodel import Past

x, y, u, p, q, b, root = sp.symbols("x y u p q b xi", positive=True)
r, s = sp.symbols("r s", real=True)
v, z = sp.symbols("v z", nonnegative=True)
n, j, k = sp.symbols("n j k", integer=True, positive=True)
i = sp.Symbol("i", integer=True, nonnegative=True)
a = sequence("a", real=True)
below = lt(b, 1)
other, index = sp.Symbol("eta", positive=True), sp.Symbol("l", integer=True, positive=True)
b1, b2 = sp.symbols("_0 _1", integer=True, positive=True)
below_0, not_0 = sp.Symbol("o", negative=True), sp.Symbol("o", nonzero=True, real=True)
odd_root, any_ = sp.Symbol("w", positive=True, irrational=True), sp.Symbol("c")
real_x = sp.Symbol("x", real=True)
curve = sp.exp(u) - 1 - u - x
h = sequence("h", real=True)
no_order = sequence("f")
above = sequence("a", positive=True)
counted, later = (
    recursive("R", first, lambda k, before: before + 1) for first in (lambda: 1, lambda: 2)
)
multiplied = recursive("Q", lambda: 1, lambda k, before: before * x, 0, positive=True)
each_over = sp.Sum(1 / (x - index), (index, 1, n))
stepped = sp.Max(x - 1, 0) / (x - 1)


def half_a_case(d):
    d.assume(gt(r, 0))
    d.show(ge(r**2, 0), "only where r > 0", p**2, {p: r})
    d.either(0, gt(r, 0), "both cases")


def an_assumption_outlives_its_induction(d):
    before, grows = d.assume(gt(a(j), 0)), d.assume(gt(a(j + 1) - a(j), 0))
    d.positive(a(j + 1), p + q, "it grows", {p: before, q: grows})


def a_fixed_term_is_any_term(d):
    d.assume(d.goals[0].given[0])
    d.at(eq(a(j), 0), {j: k})


def a_root_moves_with_its_curve(d, point):
    grown = d.climbs(sp.exp(u) - 1, u, sp.exp(u), "rises")
    for high in (1 + x, x):
        d.assume(gt(curve.subs(u, high), 0))
    d.crosses(curve, u, (0, 1 + x), root, p, "crosses", {p: grown})
    d.at(eq(curve.subs(u, root), 0), point)


def a_hidden_root(d):
    grown = d.climbs(sp.exp(u) - 1, u, sp.exp(u), "rises")
    d.given(0)
    d.crosses(curve, u, (0, 1 + x), root, p, "crosses", {p: grown})


def nothing_added_up_is_positive(d):
    d.adds(gt(x, 0), j, i, "terms above 0")


def a_bound_that_depends_on_the_point(d):
    below = d.assume(gt(1 - x, 0))
    line, high = u * (1 - x) - 1, 2 / (1 - x)
    d.show(gt(high, 0), "high", 2 / p, {p: below})
    d.show(gt(line.subs(u, high), 0), "1", sp.Integer(1))
    d.crosses(line, u, (0, high), root, p, "1/(1-x)", {p: below})
    by = {eq(line.subs(u, root), 0): 2}
    d.nonnegative(2 * root * (1 - x) + x - 2, x, "within 2", by=by)
    d.nonnegative(2 * root * (1 - x) - x + 2, p + 3, "within 2", {p: below}, by=by)
    d.squeeze(0, 2 * root, "so")


def a_limit_from_outside(d):
    below = d.assume(gt(-x, 0))
    for sign, form in ((1, (10 + 5 / x) * p + x), (-1, 10 * p + p + 5)):
        d.nonnegative(10 * (-x) + sign * (x - 5), form, "where x < 0", {p: below})
    d.squeeze(0, 10, "so")


def a_root_of_a_root(d):
    d.crosses(u - x, u, (0, 2 * x), root, sp.S.One, "x")
    d.crosses(u - root, u, (0, 2 * root), other, sp.S.One, "x again")
    by = {eq(other - root, 0): 1, eq(root - x, 0): 1}
    here = d.show(eq(other, x), "so", by=by)
    d.show(0, "2x = x", by={here: 1, d.at(here, {x: 2 * x}): -1})


def all_or_not_this_one(d):
    every, most = gt(a(j), 0, over=j), sp.Max(a(k), -a(j))
    given = d.at(d.assume(every), {j: k})
    part = d.extreme(ge(most, a(k)), "a part")
    d.show(0, "so", z + p, {z: part, p: given})
    given, part = d.assume(le(a(j), 0)), d.extreme(ge(most, -a(j)), "a part")
    d.show(0, "so", z + v, {z: part, v: given})
    d.either(0, every, "both")


def an_index_bound_twice(d):
    given = d.assume(gt(a(j), 0))
    both = d.show(Iff(gt(a(j), 0, over=j), gt(a(j) * x, 0)), "times x", 1 / x)
    d.show(gt(a(j) * x, 0), "so", p * x, {p: given})
    d.apply(both, "so all")


def a_summand_is_its_index(d):
    d.at(d.recur(eq(sp.Sum(x, (index, 1, n)), x * n), n, "a constant"), {x: index})


def a_factor_is_the_variable(d):
    d.at(d.show(eq(sp.Derivative(u * x, u), x), "linear"), {x: u})


def one_number_is_every_index(d):
    """Nothing equals every j, though to each j there is a root that equals it."""
    every = d.assume(eq(x, j, over=j))
    one, two = d.at(every, {j: 1}), d.at(every, {j: 2})
    d.show(0, "so", by={one: -1, two: 1})
    d.crosses(u - j, u, (0, 2 * j), root, sp.S.One, "j")
    d.show(eq(root, j), "so", by={eq(root - j, 0): 1})
    d.at(d[0], {x: root})


def two_equations_that_cancel(d):
    for number in (0, 1):
        d.given(number)
    d.show(0, "so", by={eq(r, s): 1, eq(2 * r, 2 * s): -sp.S.Half})


def a_slope_between_ends_that_are_none(d):
    """From 3 to 2 nothing rises: that 3 < 2 is known only of an u between them."""
    low, high = d.assume(gt(u, 3)), d.assume(gt(2, u))
    d.show(gt(2, 3), "so", p + q, {p: low, q: high})
    d.crosses(5 - 2 * u, u, (3, 2), root, 2 * p + 2 * q, "rises", {p: low, q: high})


def a_root_beyond_its_ends(d):
    """Of u(3 - u) - 1 the slope is certified below 1; it is negative again above 3."""
    below = d.assume(gt(1, u))
    d.crosses(u * (3 - u) - 1, u, (0, 1), root, 1 + 2 * p, "rises to 1", {p: below})
    d.at(Iff(gt(u * (3 - u) - 1, 0), gt(u, root)), {u: x})


def a_limit_that_is_its_variable(d):
    below = d.assume(gt(1 - x, 0))
    d.nonnegative(2 * (1 - x), 2 * p, "near 1", {p: below})
    d.squeeze(0, 2, "so x is its own limit")


def an_equation_times_nothing(d, factor):
    idle = d.show(eq((y + 1) ** 2, y**2 + 2 * y + 1), "idle")
    d.show(0, "so", by={idle: factor})


def a_letter_that_is_not_in_the_form(d):
    idle = d.show(gt(x * y + 1, 0), "idle", x * y + 1)
    d.show(0, "so", x + 1, {p: idle})


def a_place_that_is_not_reached(d, fact, bound):
    """A function of any place, h, that is -1 at 0 and 1 at 1."""
    curve = h(u)
    for claim in (eq(h(0), -1), eq(h(1), 1)):
        d.assume(claim)
    d.show(gt(-h(0), 0), "below", 1, by={eq(h(0), -1): -1})
    d.show(gt(h(1), 0), "above", 1, by={eq(h(1), 1): 1})
    for claim in fact:
        d.assume(claim)
    d.nonnegative(bound * (y - u) - (h(y) - h(u)), v, "slow", {v: bound * (y - u) - h(y) + h(u)})
    d.reaches(curve, u, (0, 1), root, y, bound, "so it is 0 in between")


def both_cases_of_a_square(d, number):
    """Its square is >= 0 where it is > 0 and where it is <= 0; a complex number is neither."""
    d.assume(gt(number, 0))
    d.show(0, "so", p**2, {p: number})
    d.assume(ge(0, number))
    d.show(0, "so", v**2, {v: -number})
    d.either(0, gt(number, 0), "both")


def what_is_real_where_its_root_is(d):
    d.assume(gt(sp.sqrt(r), 0))
    d.show(0, "so", p**2, {p: sp.sqrt(r)})


def a_case_that_divides(d):
    """That 1/(r - s) is above 0 or not leaves out r = s."""
    split = gt(1 / (r - s), 0)
    for case in (split, split.negated):
        d.assume(case)
        d.show(gt(x + 1, 0), "so", x + 1)
    d.either(0, split, "both")


def a_premise_moves_with_its_root(d):
    """Above xi = x, so above any x/2: what is known where xi > y is not known at x/2."""
    d.crosses(u - x, u, (0, 2 * x), root, sp.S.One, "x")
    case, most = d.assume(gt(root, y)), sp.Max(x / 2 - y, y - x)
    low = d.show(gt(x, y), "so", p, {p: case}, {eq(root - x, 0): -1})
    half = d.at(low, {x: x / 2})
    d.show(0, "so", z + p, {z: d.extreme(ge(most, x / 2 - y), "a part"), p: half})


def a_jump_at_the_start(d):
    """A function that is -1 at 0 and 1 above it rises slowly wherever u > 0."""
    at_0, at_1, slow = d.given(0), d.given(1), d.given(2)
    d.show(gt(-h(0), 0), "below", 1, by={at_0: -1})
    d.show(gt(h(1), 0), "above", 1, by={at_1: 1})
    d.assume(gt(y, u))
    part = d.extreme(eq(sp.Max(y - u, 0), y - u), "later")
    d.nonnegative(2 * (y - u) - (h(y) - h(u)), v, "slow", {v: slow}, by={part: -2})
    d.reaches(h(u), u, (0, 1), root, y, sp.Integer(2), "so")


def one_side_of_a_limit(d):
    d.assume(gt(x, 1))
    part = d.extreme(eq(sp.Max(x - 1, 0), x - 1), "above 1")
    one = d.show(eq(stepped, 1), "so", by={part: 1 / (x - 1)})
    for sign in (1, -1):
        d.nonnegative(x - 1 + sign * (stepped - 1), p, "near", {p: x - 1}, by={one: sign})
    d.squeeze(0, 1, "so")


def one_step_for_all(d):
    """The step is known of n alone, for which it is assumed."""
    step = d.given(1)
    before = d.assume(d[0])
    d.show(gt(a(n + 1), 0), "so", p + z, {p: before, z: step})
    d.given(0)
    d.inductive(0, n, "so of all")


def terms_above_a_count(d):
    above = d.assume(ge(j, k))
    d.adds(ge(j - k, 0), j, n, "all")
    return above


def a_slope_that_falls_again(d):
    start = sp.Rational(3, 2)
    above = d.assume(gt(u, start))
    d.crosses(u**2 - 3 * u + 2, u, (start, 3), root, 2 * p, "rises", {p: above})


#: name: (goals, proof, part of the reason for which it is refused)
BAD = {
    "a number that has no order": (
        [ge(any_**2, 0)], lambda d: both_cases_of_a_square(d, any_), "need not be real",
    ),
    "a term that has no order": (
        [ge(no_order(1) ** 2, 0)], lambda d: both_cases_of_a_square(d, no_order(1)),
        "need not be real",
    ),
    "a root that has no order": ([ge(r, 0)], what_is_real_where_its_root_is, "need not be real"),
    "the larger of what has no order": (
        [ge(sp.Max(any_, -any_), 0)],
        lambda d: d.show(0, "so", (v + z) / 2, {
            v: d.extreme(ge(sp.Max(any_, -any_), any_), "a part"),
            z: d.extreme(ge(sp.Max(any_, -any_), -any_), "a part")}), "need not be real",
    ),
    "a case that divides": ([gt(x + 1, 0)], a_case_that_divides, "divides by"),
    "a goal that divides": (
        [under(gt((r**2 - s**2) / (r - s), 0), gt(r + s, 0))], lambda d: d.given(0),
        "the goal: divides by",
    ),
    "a sum that divides": (
        [under(eq((each_over + 1) ** 2, each_over**2 + 2 * each_over + 1), gt(x, index))],
        lambda d: (d.given(0), d.show(0, "expanded")), "divides by",
    ),
    "a slope that divides": (
        [ge(v * sp.Derivative(sp.sqrt(v), v), 0)],
        lambda d: d.show(0, "so", sp.sqrt(v) / 2), "divides by",
    ),
    "a premise moves with its root": (
        [ge(sp.Max(x / 2 - y, y - x), 0)], a_premise_moves_with_its_root, "depends on what",
    ),
    "a jump at the start": (
        [under(eq(h(root), 0), eq(h(0), -1), eq(h(1), 1),
             ge(2 * sp.Max(y - u, 0) + h(u) - h(y), 0, over=(u, y)))],
        a_jump_at_the_start, "0 is outside the range",
    ),
    "one side of a limit": (
        [eq(sp.Limit(stepped, x, 1, "+-"), 1)], one_side_of_a_limit, "none is near",
    ),
    "different somewhere else": (
        [under(differ(sp.Max(1 - b, 0) / (1 - b), 1), below)],
        lambda d: (d.given(0), d.show(0, "at b = 5/3")), "nothing differs where",
    ),
    "one term is every term": (
        [under(gt(total(a, n), 0), gt(a(index), 0))],
        lambda d: d.show(0, "so", sp.Sum(p, (index, 1, n)), {p: d.given(0)}), "would bind",
    ),
    "an index below its range": (
        [gt(sp.Sum(index, (index, -5, -1)), 0)],
        lambda d: d.show(0, "positive", sp.Sum(index, (index, -5, -1))), "no rule reads",
    ),
    "fewer terms than none": (
        [eq(sp.Sum(x, (index, 1, i - j)), x * (i - j))], lambda d: d.show(0, "a constant"),
        "no rule reads",
    ),
    "the last of no terms": (
        [eq(sp.Sum(a(index), (index, 1, i - j + 1)),
            sp.Sum(a(index), (index, 1, i - j)) + a(i - j + 1))],
        lambda d: d.show(0, "apart"), "no rule reads",
    ),
    "a slope at a corner": (
        [eq(sp.Derivative(sp.Abs(r), r), sp.sign(r))], lambda d: d.show(0, "so"), "no rule reads",
    ),
    "a slope of steps": (
        [eq(sp.Derivative(n**2, n), 2 * n)], lambda d: d.show(0, "so"), "no rule reads",
    ),
    "a sine": (
        [eq(2 * sp.sin(x) * x, x * (sp.sin(x) + sp.sin(x)))], lambda d: d.show(0, "so"),
        "no rule reads",
    ),
    "two sequences of one name": (
        [under(gt(above(1) + a(1), 0), ge(a(1), 0))],
        lambda d: d.show(0, "so", z + above(1), {z: d.given(0)}), "two letters",
    ),
    "a sequence redefined": (
        [gt(later(n), counted(n))],
        lambda d: d.grows(later(n) - counted(n), n, 1, 0, "so"), "two letters",
    ),
    "a term before the first": (
        [gt(multiplied(i - 1), 0)], lambda d: d.show(0, "so", multiplied(i - 1)), "no such term",
    ),
    "a number that a library rounds": (
        [gt(computed("f", lambda k: np.float32(k) / 10)(3), 0)], lambda d: d.compute(0, "so"),
        "rounded",
    ),
    "one step for all": (
        [under(gt(a(n), 0), gt(a(1), 0), ge(a(n + 1), a(n)))], one_step_for_all, "n is not free",
    ),
    "terms above a count": (
        [ge(total(lambda m: m - k, n), 0)], terms_above_a_count, "j is not free",
    ),
    "a slope that falls again": (
        [Iff(gt(u**2 - 3 * u + 2, 0), gt(u, root))], a_slope_that_falls_again, "rests on",
    ),
    "a sign lost in a square": (
        [under(gt(r**2, s**2), gt(r, s))],
        lambda d: d.show(0, "so", p * z, {p: d.given(0), z: r + s}), "not known yet|not made of",
    ),
    "one of two roots": ([Iff(eq(r**2, 1), eq(r, 1))], lambda d: d.show(0, "so", r + 1),
        "not made of positive"),
    "a logarithm of a square": ([eq(sp.log(r**2), 2 * sp.log(r))], lambda d: d.show(0, "so"),
        "divides by"),
    "a power of nothing": ([ge(v ** (-x), 0)], lambda d: d.show(0, "so", v ** (-x)),
        "not made of positive|divides by"),
    "logarithms of the wrong sign": (
        [Iff(ge(b**n, sp.Rational(1, 2)), ge(n, sp.log(sp.Rational(1, 2)) / sp.log(b)))],
        lambda d: d.chain(
            d.exponentials(n * sp.log(b), -sp.log(2), "increases"),
            d.show(Iff(ge(n * sp.log(b), -sp.log(2)), d[0].right), "over ln b", x, {x: sp.log(b)}),
            "so"), "not known yet",
    ),
    "finitely many numbers": (
        [gt(x**2 - x + sp.Rational(1, 5), 0)],
        lambda d: d.compute(gt(4 - 2 + sp.Rational(1, 5), 0), "at 2"), "not among the facts",
    ),
    "a hidden 0": (
        [gt(1 / (sp.sqrt(3 + 2 * sp.sqrt(2)) - 1 - sp.sqrt(2)), 5)], lambda d: d.compute(0, "so"),
        "does not hold",
    ),
    "equal is not above": (
        [gt(sp.sqrt(2 + sp.sqrt(3)), (sp.sqrt(6) + sp.sqrt(2)) / 2)], lambda d: d.compute(0, "so"),
        "does not hold",
    ),
    "a step that is rounded up": (
        [gt(sp.ceiling(v), 0)], lambda d: d.show(0, "so", sp.ceiling(v)), "not made of positive",
    ),
    "a bound that is not met": (
        [gt(sp.Max(r, s), r)], lambda d: d.extreme(d[0], "so"), "not about a part",
    ),
    "the first of all from 0 on": (
        [under(gt(a(i), 0), gt(a(j), 0, over=j))], lambda d: d.at(d.given(0), {j: i}),
        "outside the range",
    ),
    "empty": ([gt(x - y, 0)], lambda d: None, "not among the facts"),
    "another claim": (
        [gt(x - y, 0)], lambda d: d.positive(x + y, x + y, "true"), "not among the facts",
    ),
    "an idle step": (
        [eq((x + 1) ** 2, x**2 + 2 * x + 1)],
        lambda d: (d.show(0, "expanded"), d.equal(x * (x + 1), x**2 + x, "idle")), "is not used",
    ),
    "the conclusion assumed": ([gt(x - y, 0)], lambda d: d.assume(x - y), "rests on"),
    "more assumed than the goal says": (
        [under(gt(1 - b**2, 0), below)],
        lambda d: (d.assume(gt(1 - 2 * b, 0)),
                   d.show(0, "so", p + 2 * b - b**2 + 0 * q, {p: 1 - 2 * b})),
        "not made of positive parts",
    ),
    "a stronger hypothesis": (
        [under(gt(1 - b, 0), ge(1, b))], lambda d: d.assume(1 - b), "rests on",
    ),
    "at least 0 is above 0": (
        [under(gt(r, 0), ge(r, 0))], lambda d: (d.given(0), d.show(0, "so", z, {z: r})),
        "not made of positive parts",
    ),
    "a jump": (
        [gt(u / (1 - u), 0)],
        lambda d: d.climbs(u / (1 - u), u, u / u, "slope"), "jump",
    ),
    "a step function": (
        [gt(u + sp.floor(-u), 0)],
        lambda d: d.climbs(u + sp.floor(-u), u, sp.S.One, "slope 1 almost everywhere"), "jump",
    ),
    "no slope at 0": (
        [gt(sp.sqrt(u), 0)], lambda d: d.climbs(sp.sqrt(u), u, 1 / sp.sqrt(u) / 2, "root"), "jump",
    ),
    "calculus over all reals": (
        [ge(sp.exp(r) - 1, 0)], lambda d: d.climbs(sp.exp(r) - 1, r, sp.exp(r), "r < 0 too"),
        "does not run",
    ),
    "division by zero": (
        [under(eq(r, s), eq(r * (r - s), s * (r - s)))],
        lambda d: (d.given(0), d.show(0, "cancelled", by={d.goals[0].given[0]: 1 / (r - s)})),
        "divides by",
    ),
    "nothing over nothing": (
        [eq(x / ((r + s) ** 2 - r**2 - 2 * r * s - s**2), 1)], lambda d: d.show(0, "why not"),
        "divides by",
    ),
    "a denominator of any sign": (
        [Iff(gt(x / (1 - b), 0), gt(x, 0))],
        lambda d: d.show(0, "times 1 - b", 1 / p, {p: 1 - b}), "not known yet",
    ),
    "sign of a branch": ([eq(sp.sqrt(r**2), r)], lambda d: d.show(0, "the root"), "decide"),
    "logarithm of a negative": (
        [Iff(ge(1 - x, sp.exp(r)), ge(sp.log(1 - x), r))],
        lambda d: d.exponentials(sp.log(1 - x), r, "increasing"), "divides by|not known",
    ),
    "outside the domain": (
        [under(gt(1 - b ** (n - 1), 0), below)],
        lambda d: (d.assume(below), d.grows(1 - b**n, n, p, b**n * p, "powers", {p: 1 - b}),
                   d.at(1 - b**n, {n: n - 1})), "outside the range",
    ),
    "a real for a count": (
        [under(gt(1 - b**x, 0), below)],
        lambda d: (d.assume(below), d.grows(1 - b**n, n, p, b**n * p, "powers", {p: 1 - b}),
                   d.at(1 - b**n, {n: x})), "outside the range",
    ),
    "a hypothesis about another": (
        [under(gt(1 - x, 0), below)], lambda d: (d.given(0), d.at(1 - b, {b: x})),
        "is assumed: show",
    ),
    "induction on what is restricted": (
        [under(gt(n - 4, 0), gt(n - 5, 0))],
        lambda d: (d.given(0), d.grows(n**2 - 10 * n + 10, n, 1, 2 * p + 1, "no", {p: n - 5})),
        "n is not free",
    ),
    "induction over the reals": (
        [ge(x, 1)], lambda d: d.grows(x - 1, x, 0, 1, "steps of 1", strict=False), "does not count",
    ),
    "induction without a base": (
        [eq(total(a, n), total(a, n) + 1)], lambda d: d.recur(0, n, "steps agree"),
        "wrong at n = 1",
    ),
    "induction without a step": (
        [eq(total(lambda m: m, n), n**2)], lambda d: d.recur(0, n, "true at 1"), "does not pass",
    ),
    "half of the cases": ([ge(r**2, 0)], half_a_case, "not shown where"),
    "a fixed term is any term": (
        [under(eq(a(k), 0), eq(a(j), 0))], a_fixed_term_is_any_term, "is assumed: show",
    ),
    "an assumption that is none": ([gt(a(j + 1), 0)], an_assumption_outlives_its_induction,
        "rests on"),
    "a root of another curve": (
        [gt(root, 0)], lambda d: a_root_moves_with_its_curve(d, {x: 2 * x}),
        "depends on|is assumed",
    ),
    "a root at will": (
        [gt(root, 0)], lambda d: a_root_moves_with_its_curve(d, {root: 5}), "depends on",
    ),
    "a hidden root": (
        [under(eq(curve.subs(u, root), 0), gt(curve.subs(u, 1 + x), 0))], a_hidden_root,
        "does not say that a root is meant",
    ),
    "a limit without a bound": (
        [eq(sp.Limit(x**2, x, 1, "-"), 2)], lambda d: d.squeeze(0, 1, "close"), "not known yet",
    ),
    "a sum of nothing": ([gt(i * x, 0)], nothing_added_up_is_positive, "no terms"),
    "a maximum is any part": (
        [eq(sp.Max(r, s), r)], lambda d: d.extreme(d[0], "the larger"), "not known yet",
    ),
    "not what was computed": (
        [lt(sp.Rational(1, 3), sp.Rational(333, 1000))], lambda d: d.compute(0, "no"),
        "does not hold",
    ),
    "identical after all": (
        [differ(x * (x + 1), x**2 + x)], lambda d: d.show(0, "different"), "is identical",
    ),
    "a contradiction that is none": (
        [ge(r, s)], lambda d: (d.assume(gt(s, r)), d.absurd(0, s - r, "no")), "is not zero",
    ),
    "a refuted lemma": ([gt(x, 0)], lambda d: d.lemma("5.2b", "cited"), "may be cited"),
    "an unknown lemma": ([gt(x, 0)], lambda d: d.lemma("9.9", "cited"), "no statement"),
    "a goal that a lemma has not": ([gt(x, 0)], lambda d: d.lemma("5.1", "cited", 9),
        "may be cited"),
    "a bound that depends on the point": (
        [eq(sp.Limit(x, x, 1, "-"), 2)], a_bound_that_depends_on_the_point, "depends on",
    ),
    "a limit from outside": (
        [eq(sp.Limit(x, x, 0, "-"), 5)], a_limit_from_outside, "none is near",
    ),
    "a root of a root": ([eq(x, 0)], a_root_of_a_root, "depends on what"),
    "all, or not this one": (
        [ge(sp.Max(a(k), -a(j)), 0)], all_or_not_this_one, "no opposite",
    ),
    "an index bound twice": (
        [under(gt(a(j), 0, over=j), gt(a(j), 0))], an_index_bound_twice, "binds an index",
    ),
    "a summand is its index": (
        [eq(sp.Sum(index, (index, 1, n)), index * n)], a_summand_is_its_index, "what is bound",
    ),
    "a factor is the variable": (
        [eq(sp.Derivative(u**2, u), u)], a_factor_is_the_variable, "what is bound",
    ),
    "not identical, so nowhere equal": (
        [differ(y, y)], lambda d: d.at(d.show(differ(x, y), "two"), {x: y}), "only somewhere",
    ),
    "a sum of what is not identically 0": (
        [differ(sp.Sum(2 * index - n - 1, (index, 1, n)), 0)],
        lambda d: d.adds(d.show(differ(2 * j - n - 1, 0), "not"), j, n, "added up"), "one sign",
    ),
    "a term is no letter": (
        [under(eq(5, 3), eq(a(1), 3))], lambda d: d.at(d.given(0), {a(1): 5}), "no letter",
    ),
    "a range that no rule checks": (
        [gt(-5, 0)], lambda d: d.at(gt(-below_0, 0), {below_0: 5}), "range that no rule",
    ),
    "a square of what is not 0": (
        [gt(r**2, 0)], lambda d: d.at(gt(not_0**2, 0), {not_0: r}), "range that no rule",
    ),
    "a root that is no fraction": (
        [gt(odd_root, 0)], lambda d: d.crosses(u - x, u, (0, 2 * x), odd_root, sp.S.One, "x"),
        "range that no rule",
    ),
    "any number, even one over nothing": (
        [eq(1, r / (r - s) - s / (r - s))],
        lambda d: d.at(d.show(eq(any_ * (r - s), any_ * r - any_ * s), "expanded"),
                       {any_: 1 / (r - s)}), "divides by",
    ),
    "a rounded number": ([gt(sp.Float(0.1) + 0.2, 0.3)], lambda d: d.compute(0, "so"), "no exact"),
    "a sum up to a half": (
        [eq(total(a, x + 1), total(a, x) + a(x + 1))], lambda d: d.show(0, "so"), "cannot decide",
    ),
    "two letters of one name": (
        [under(gt(real_x + x, 0), gt(real_x, 0))],
        lambda d: (d.given(0), d.show(0, "so", p + x, {p: real_x})), "two letters",
    ),
    "indices that look like bound ones": (
        [eq(sp.Sum(a(index, b1, b2), (index, 1, n)), sp.Sum(a(index, b1, index), (index, 1, n)))],
        lambda d: d.show(0, "so"), "not identical|cannot decide",
    ),
    "an equation times 0": (
        [eq((x + 1) ** 2, x**2 + 2 * x + 1)], lambda d: an_equation_times_nothing(d, 0), "not used",
    ),
    "an identity as an equation": (
        [eq((x + 1) ** 2, x**2 + 2 * x + 1)], lambda d: an_equation_times_nothing(d, 1), "not used",
    ),
    "a letter that is not in the form": (
        [gt(x + 1, 0)], a_letter_that_is_not_in_the_form, "step 1 is not used",
    ),
    "an identity makes one side larger": (
        [gt(total(lambda m: m, n), n * (n + 1) / 2)], lambda d: d.recur(0, n, "true of ="),
        "no equation",
    ),
    "met from both sides, so apart": ([gt(x, x)], lambda d: d.meet(0, "both"), "no equation"),
    "a limit above itself": (
        [gt(sp.Limit(x, x, 1, "-"), 1)], lambda d: d.squeeze(0, 1, "so"), "no equation",
    ),
    "a function that looks like a limit": (
        [eq(sp.Function("g")(x, x, 1, sp.Symbol("-")), 1)], lambda d: d.squeeze(0, 1, "so"),
        "no limit",
    ),
    "a function that rounds": (
        [gt(computed("f", lambda k: k / 10)(3), 0)], lambda d: d.compute(0, "so"), "rounded",
    ),
    "one number is every index": ([eq(1, 2)], one_number_is_every_index, "bound in"),
    "equations that cancel": (
        [under(eq((x + 1) ** 2, x**2 + 2 * x + 1), eq(r, s), eq(2 * r, 2 * s))],
        two_equations_that_cancel, "adds nothing, it is not used",
    ),
    "a letter for nothing": (
        [gt(x + 1, 0)],
        lambda d: d.show(0, "so", x + 1 + v, {v: d.show(ge((x + 1) * y, x * y + y), "0", v - v)}),
        "adds nothing, it is not used",
    ),
    "a limit that is its variable": (
        [eq(sp.Limit(x, x, 1, "-"), x)], a_limit_that_is_its_variable, "depends on x",
    ),
    "ends that move": (
        [gt(root, u / 4)], lambda d: d.crosses(u - x, u, (u / 4, x + u), root, sp.S.One, "x"),
        "the ends move",
    ),
    "a number put where a limit goes": (
        [eq(sp.Limit(x * y, x, 1, "-"), 2)],
        lambda d: d.at(d.assume(eq(sp.Limit(x * y, x, 1, "-"), y)), {x: 2}), "what is bound",
    ),
    "a slope between ends that are none": (
        [gt(root, 0)], a_slope_between_ends_that_are_none, "u is not free",
    ),
    "a root beyond its ends": (
        [Iff(gt(x * (3 - x) - 1, 0), gt(x, root))], a_root_beyond_its_ends, "is assumed: show",
    ),
    "a sum's index is a letter too": (
        [eq(sp.Sum(a(k, index), (index, 1, n), (k, 1, index + 1)),
            sp.Sum(a(k, index), (index, 1, n), (k, 1, index))
            + sp.Sum(a(index + 1, index), (index, 1, n)))],
        lambda d: d.show(0, "the last apart"), "bound by a sum and free",
    ),
    "a letter that a product hides": (
        [ge((chi / (chi + x)) ** n, Past(n))],
        lambda d: d.lemma("6.EhatE", "at another tau", 0, {tau: x}), "not among the facts",
    ),
    "a jump is no crossing": (
        [under(eq(h(root), 0), eq(h(0), -1), eq(h(1), 1))],
        lambda d: (d.given(0), d.given(1), d.reaches(h(u), u, (0, 1), root, y, 1, "so")),
        "not known yet",
    ),
    "a slope at one place only": (
        [under(eq(h(root), 0), eq(h(0), -1), eq(h(1), 1))],
        lambda d: a_place_that_is_not_reached(d, [ge(2 * (y - u) - h(y) + h(u), 0)], 2),
        "u is not free",
    ),
    "as steep as it likes": (
        [under(eq(h(root), 0), eq(h(0), -1), eq(h(1), 1))],
        lambda d: a_place_that_is_not_reached(d, [ge(u * (y - u) - h(y) + h(u), 0)], u),
        "any two places",
    ),
    "an idle hypothesis": (
        [under(gt(x + 1, 0), gt(y, 2))], lambda d: d.show(0, "so", x + 1), "hypothesis .* not used",
    ),
    "a lemma beyond its hypotheses": (
        [gt(x, 0)], lambda d: d.lemma("L5.1", "cited"), "is assumed: show",
    ),
}  # fmt: skip


def derived(goals, proof):
    """Run a proof and check its end."""
    every = [under(goal) if isinstance(goal, Relation | Iff) else goal for goal in goals]
    d = Derivation(every, cite=cited)
    proof(d)
    d.finish()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_proof_is_refused(name):
    goals, proof, reason = BAD[name]
    with pytest.raises(ProofError, match=reason):
        derived(goals, proof)


@pytest.fixture
def book(monkeypatch):
    """An empty book, to which a test adds statements."""
    entries = {}
    monkeypatch.setattr("dlsim.theory.book._BOOK", entries)
    monkeypatch.setattr("dlsim.theory.book._SOUND", set())
    for key in ("t.1", "t.2"):
        monkeypatch.setitem(STATED, key, {"source": "test"})
    return entries


def test_a_statement_that_cites_itself_is_refused(book):
    statement("t.1", {"none": {}}, [gt(1 - x, 0)])(lambda d: d.lemma("t.1", "itself"))
    with pytest.raises(ProofError, match=r"rests on itself: t\.1 -> t\.1"):
        book["t.1"].prove()


def test_two_statements_that_cite_each_other_are_refused(book):
    statement("t.1", {"none": {}}, [gt(1 - x, 0)])(lambda d: d.lemma("t.2", "the other"))
    statement("t.2", {"none": {}}, [gt(1 - x, 0)])(lambda d: d.lemma("t.1", "the other"))
    for key in book:
        with pytest.raises(ProofError, match="rests on itself"):
            book[key].prove()


def test_what_rests_on_an_unproved_statement_is_refused(book):
    statement("t.1", {"none": {}}, [gt(1 - x, 0)])(lambda d: d.lemma("t.2", "the other"))
    statement("t.2", {"none": {}}, [gt(1 - x, 0)])(lambda d: None)
    with pytest.raises(ProofError, match=r"t\.2: the goal .* is not among"):
        book["t.1"].prove()


def test_hypotheses_that_exclude_each_other_are_refused(book):
    given = [gt(r, 1), lt(r, 0)]
    prove = statement("t.1", {"none": {}}, [gt(r, s)], given, witness={r: 2})
    prove(lambda d: (d.given(0), d.given(1), d.show(0, "so", p, {p: r - s})))
    prove = statement("t.2", {"none": {}}, given, given, witness={r: 2})
    prove(lambda d: (d.given(0), d.given(1)))
    with pytest.raises(ProofError, match="not known yet"):
        book["t.1"].prove()
    with pytest.raises(ProofError, match="no witness point"):
        book["t.2"].prove()


def test_a_witness_outside_its_range_is_none(book):
    """That x > 0 is below 0 holds at no point, though -1 is below 0."""
    prove = statement("t.1", {"none": {}}, [gt(-y, 0)], [lt(x, 0)], witness={x: -1})
    prove(lambda d: (d.given(0), d.show(0, "so", y * p / x, {p: -x})))
    with pytest.raises(ProofError, match="no witness point"):
        book["t.1"].prove()


def test_a_sequence_outside_its_range_is_no_witness(book):
    above = sequence("c", nonnegative=True)
    prove = statement("t.1", {"none": {}}, [gt(0, above(1))], [lt(above(1), 0)],
                      witness={above: lambda i: -sp.S.One})  # fmt: skip
    prove(lambda d: d.given(0))
    with pytest.raises(ProofError, match="no witness point"):
        book["t.1"].prove()


def test_three_statements_in_a_circle_are_refused(book, monkeypatch):
    monkeypatch.setitem(STATED, "t.3", {"source": "test"})
    for key, following in (("t.1", "t.2"), ("t.2", "t.3"), ("t.3", "t.1")):
        statement(key, {"none": {}}, [gt(1 - x, 0)])(lambda d, to=following: d.lemma(to, "next"))
    for key in book:
        with pytest.raises(ProofError, match="rests on itself"):
            book[key].prove()


def test_a_root_says_on_what_it_depends(book):
    """There is no xi above every x, though there is one for each."""

    def proof(d):
        d.crosses(u - 2 * x, u, (0, 3 * x), root, sp.S.One, "2x")
        d.show(0, "so", x, by={eq(root - 2 * x, 0): 1})

    statement("t.1", {"none": {}}, [gt(root, x)], exists={root: []})(proof)
    statement("t.2", {"none": {}}, [gt(root, x)], exists={root: [x]})(proof)
    with pytest.raises(ProofError, match="depends on more"):
        book["t.1"].prove()
    assert book["t.2"].prove().statement.claim.startswith(r"There is $\xi > 0$ (of $x$ alone)")


def test_a_root_says_on_which_sequence_it_depends(book):
    """There is no xi above every c_1."""
    terms = sequence("c", positive=True)

    def proof(d):
        d.crosses(u - 2 * terms(1), u, (0, 3 * terms(1)), root, sp.S.One, "2c")
        d.show(0, "so", terms(1), by={eq(root - 2 * terms(1), 0): 1})

    statement("t.1", {"none": {}}, [gt(root, terms(1))], exists={root: []})(proof)
    statement("t.2", {"none": {}}, [gt(root, terms(1))], exists={root: [terms]})(proof)
    with pytest.raises(ProofError, match="depends on more"):
        book["t.1"].prove()
    assert r"of $c$ alone" in book["t.2"].prove().statement.claim


def test_a_range_of_terms_is_shown_where_they_are_defined():
    """Terms 1, -1, 1, ... are not all positive, whatever their letter says."""
    with pytest.raises(ProofError, match="not known to be positive"):
        recursive("N", lambda: 1, lambda k, before: -before, positive=True)
    with pytest.raises(ProofError, match="not known to be positive"):
        recursive("N", lambda: 0, lambda k, before: before + 1, positive=True)


def test_a_name_is_defined_after_all_that_use_it(book):
    """With r for x first, 1 + x > 0 is said of x > 0 but printed of any x."""
    named = {x: r, y: 1 + x}
    statement("t.1", {"none": {}}, [gt(y, 0)], where=named)(lambda d: d.show(0, "so", 1 + x))
    with pytest.raises(ProofError, match="x is defined before"):
        book["t.1"].prove()


def test_what_is_computed_is_no_letter(book):
    """Its values are real, but it is not quantified over."""
    statement("t.1", {"none": {}}, [gt(computed("f", lambda k: k + 1)(3), 0)])(lambda d: None)
    assert "for all" not in book["t.1"].claim


def test_two_functions_of_one_name_are_two():
    one, two = (computed("f", lambda k, more=more: k + more) for more in (0, 1))
    assert one(3) != two(3)
    assert one(3) == one(3)


def test_what_is_printed_tells_letters_apart(book):
    with pytest.raises(ProofError, match="two letters"):
        statement("t.1", {"none": {}}, [gt(x, 0)], where={y: real_x})(lambda d: None)
    statement("t.2", {"none": {}}, [ge(v + r**2 + i, 0), eq(a(n), a(n))])(lambda d: None)
    assert book["t.2"].claim.endswith(
        r"for all $n \in \{1, 2, \dots\}$, $i \in \{0, 1, \dots\}$, $v \ge 0$, "
        r"$a, r \in \mathbb{R}$"
    )
