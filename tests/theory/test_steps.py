"""Each step of a derivation shows what it says; `test_false_claims` tries what does not follow."""

import itertools
import random
import re
from fractions import Fraction

import pytest
import sympy as sp

from dlsim.errors import InputError
from dlsim.theory import steps
from dlsim.theory.algebra import flatten, is_real, is_zero, sign
from dlsim.theory.defined import require_defined
from dlsim.theory.relations import Every, Iff, ProofError, Relation, eq, ge, gt, to_text
from dlsim.theory.steps import assume, isolate_zero, positive, shows
from dlsim.theory.symbols import Ratio, alpha, at_point, beta, i, j, k, n, r, total
from tests.helpers.theory_points import holds_at
from tests.theory.rows import CALLED, N, a, b, both, c, p, q, read, rows, tried, x, z

WHY = "a reason"

# ------------------------------------------------------------------ algebra


@pytest.mark.parametrize(
    ("expected", "expressions"),
    [
        (">", (1 - beta, 1 - beta**n, beta**n - beta ** (n + 1), n, a**2 + 1, p / (1 - beta),
               1 - sp.Rational(2, 3)**n, 2**n - 1)),
        (">=", (beta - beta**n, n - 1, N, a**2, z, (a - b) ** 2)),
        ("=", (z - z,)),
        ("<=", (beta**N - 1, sp.Rational(2, 3)**N - 1)),
        ("<", (sp.log(beta), -p * q)),
        ("", (p - q, 2**n - 2, a * b, (a - b) * (z + 1))),
    ],
)  # fmt: skip
def test_signs(expected, expressions):
    assert [sign(one) for one in expressions] == [expected] * len(expressions)


def random_expression(draw, depth):
    """A random expression in symbols of every kind."""
    if depth == 0:
        symbols = [beta, beta**n, beta**N, n, N, p, z, a, 2**n]
        return draw.choice([*symbols, sp.Integer(1), sp.Integer(-2)])
    one, two = (random_expression(draw, depth - 1) for _ in range(2))
    return draw.choice([one + two, one - two, one * two, one * two, one**2, one / (1 + p)])


#: Values of beta, n, N, p, z and a.
POINTS = [
    (Fraction(ratio), count, none, Fraction(positive), z, Fraction(any_))
    for ratio, count, none, positive, z, any_ in itertools.product(
        ("1/9", "8/9"), (1, 4), (0, 3), ("1/7", 5), (0, 2), (-3, 0, "5/2")
    )
]
ALLOWED = {">": {1}, ">=": {0, 1}, "=": {0}, "<=": {-1, 0}, "<": {-1}, "": {-1, 0, 1}}


def test_signs_of_random_expressions_hold_at_points_of_the_boundary():
    for seed in range(40):
        expression = random_expression(random.Random(seed), 3)
        found = sign(expression)
        value_at = sp.lambdify((beta, n, N, p, z, a), expression, modules="math")
        signs = {(value > 0) - (value < 0) for value in itertools.starmap(value_at, POINTS)}
        assert signs <= ALLOWED[found], expression
        assert is_zero(expression) == (found == "="), expression
        assert is_zero(sp.expand(expression) - sp.together(expression)), expression
        assert signs == {0} or not is_zero(expression), expression


def test_a_fact_gives_the_sign_of_a_factor():
    assert sign(p * (a - b), [gt(a, b)]) == ">"
    assert sign(p / (b - a), [gt(a, b)]) == "<"
    assert sign((a - b) * c, [gt(a, b)]) == ""
    assert sign((a - b) * p, [ge(a, b)]) == ">="
    assert sign((a - b) * p, [eq(a, b)]) == ""


def test_zero_is_decided_by_algebra_alone():
    assert is_zero(beta ** (n + 2) - beta**2 * beta**n)
    assert is_zero((1 - beta**2) / (1 - beta) - 1 - beta)
    assert is_zero(sp.exp(a * sp.log(p)) - p**a)
    assert not is_zero(sp.sin(a) ** 2 + sp.cos(a) ** 2 - 1)  # true, but not shown
    assert not is_zero(beta**n - beta)
    for words, refused in (("rounded", sp.Float(0.1) * a), ("rounded", beta ** (0.5 * a)),
                           ("real", sp.Symbol("anything") - 1)):  # fmt: skip
        with pytest.raises(ProofError, match=words):
            is_zero(refused)


def double(low, high):
    return sp.Sum(r(k) * sp.Sum(alpha(j), (j, low, high)), (k, 1, n))


def test_sums_lose_their_last_terms_and_constant_factors():
    one_more = double(1, k) + total(lambda i: r(i) * alpha(i + 1), n)
    for zero in (
        total(r, n + 2) - total(r, n) - r(n + 1) - r(n + 2),
        total(lambda i: 2 * r(i) + 3, n) - 2 * total(r, n) - 3 * n,
        sp.Sum(r(j), (j, 1, n)) - total(r, n),
        sp.Sum(r(j), (j, k, n)) - total(r, n) + total(r, k - 1),
        sp.Sum(r(j), (j, k, k + 2)) - r(k) - r(k + 1) - r(k + 2),
        total(r, 13) - sum(map(r, range(1, 14))),
        total(lambda i: 2, sp.ceiling(p)) - 2 * sp.ceiling(p),
        total(r, 0),
        double(1, k + 1) - one_more,
    ):
        assert is_zero(zero), zero
    for other in (double(2, k + 1) - one_more, double(1, k + 2) - one_more,
                  double(1, k - 1) - double(1, k),
                  double(1, k + sp.Rational(1, 2)) - double(1, k)):  # fmt: skip
        assert not is_zero(other), other
    with pytest.raises(ProofError, match="two meanings"):
        flatten(sp.Sum(r(k) * sp.Sum(r(j), (j, 1, k)), (k, 1, j)))


def test_the_index_of_a_sum_is_no_symbol_of_the_caller():
    assert total(lambda h: i * h, n).free_symbols == {i, n}
    assert to_text(total(r, n)) == "Sum(r(i), (i, 1, n))"
    nested = total(lambda h: total(lambda e: r(h) * r(e), n), n)
    assert sp.expand(nested.subs({n: 2}).doit() - (r(1) + r(2)) ** 2) == 0


def test_a_sum_or_product_is_real_if_all_of_its_parts_are():
    whatever = sp.Symbol("w")
    assert is_real(a * sp.log(p) + z)
    assert not is_real(a + whatever)
    assert not is_real(a * whatever)


def test_nothing_is_divided_by_what_may_be_zero():
    require_defined([1 / p, 1 / (1 - beta**n), sp.log(p), at_point(1 / p, {p: q + 1})])
    require_defined([1 / (a - b)], [gt(a, b)])
    for undefined in (1 / N, z ** (n - k), z ** (k - n), (a**2) ** (N - 1)):  # the exponents: -1
        with pytest.raises(ProofError):
            require_defined([undefined])


# ------------------------------------------------------------------ what the steps show

#: Calls, the claims that they show (else what they are given first), and what those rest on.
SHOWN = """
    identity(eq((a + b)**2, a**2 + 2*a*b + b**2))
    identity(eq(2*a, 2*b), {same: 2}) rests on eq(a, b)
    identity(eq(a, b), {assume(eq(z*a, z*b)): 1/z}, [assume(gt(z, 0))])
        rests on gt(z, 0), eq(z*a, z*b)
    positive(gt(p*a, p*b), {more: p}) rests on gt(a, b)
    positive(ge(z*a, z*b), {more: z}) rests on gt(a, b)
    positive(gt(a + 1, b), {weak: 1}) rests on ge(a, b)
    positive(gt(a*c, b*c), {more: c}, [assume(gt(c, 0))]) rests on gt(a, b), gt(c, 0)
    positive(gt(b + c, a), {same: -1, assume(gt(c, 0)): 1}) rests on eq(a, b), gt(c, 0)
    positive(gt(a - b, -c), {assume(eq(b, c)): -1, assume(gt(a, 0)): 1})
        rests on eq(b, c), gt(a, 0)
    positive(gt(r(k), 0), {above: 1}) rests on above.claim, ge(n, k)
    show(gt(3, 2))
    show(eq(at(p**2, {p: 3}), 9))
    show(eq(p*(a + b), p*a + p*b))
    show(gt(p + 1, 1))
    show(Every(gt(2*r(k), 0), k, 1, n), {above: 2}) shows Every(gt(2*r(k), 0), k, 1, n)
        rests on above.claim
    iff(Iff(le(a, p*b), le(a/p, b)), 1/p)
    iff(Iff(eq(a, b), eq(-a, -b)), -1)
    solves(eq(p*y, a), y, a/p) shows Iff(eq(p*y, a), eq(y, a/p))
    follows(both, more) shows gt(2*a, 2*b) rests on gt(a, b)
    follows(both, assume(le(2*a, 2*b))) shows le(a, b) rests on le(2*a, 2*b)
    chain(both, iff(Iff(gt(2*a, 2*b), gt(2*a + 1, 2*b + 1)))) shows
        Iff(gt(a, b), gt(2*a + 1, 2*b + 1))
    chain(both, iff(Iff(gt(2*a, 2*b), gt(a, b)), HALF)) shows Iff(gt(a, b), gt(a, b))
    induction(power, n, first_power, next_power)
    induction(ge(r(k), r(1)), k, first_climb, next_climb) rests on ge(m, k), climbs.claim
    generalise(induction(ge(r(k), r(1)), k, first_climb, next_climb), k, 1, m)
        shows Every(ge(r(k), r(1)), k, 1, m) rests on climbs.claim
    induction(Every(ge(r(k), r(1)), k, 1, m), k, first_climb, next_climb)
        shows Every(ge(r(k), r(1)), k, 1, m) rests on climbs.claim
    show_inductively(eq(total(lambda h: h, n), n*(n + 1)/2), n)
    show_inductively(eq(Sum(k, (k, 1, N)), N*(N + 1)/2), N)
    show_inductively(gt(n + 1, geometric(n + 1)), n)
    show_inductively(powers, k, {take(doubles, k): 1}, p, {start: 1})
        shows powers rests on doubles.claim, start.claim
    show_inductively(Every(le(r(k), r(1)), k, 1, n), k, {take(falls, k): 1/c},
        signs=[assume(gt(c, 0))]) shows Every(le(r(k), r(1)), k, 1, n)
        rests on falls.claim, gt(c, 0)
    take(climbs, k) shows ge(r(k + 1), r(k)) rests on climbs.claim, ge(m - 1, k)
    take(climbs, k, [assume(ge(m - 1, k))]) shows ge(r(k + 1), r(k))
        rests on climbs.claim, ge(m - 1, k)
    generalise(take(climbs, k), k, 1, m - 1) shows climbs.claim rests on climbs.claim
    generalise(positive(ge(k - 1, 1), {assume(ge(k, 2)): 1}), k, 2, n)
        shows Every(ge(k - 1, 1), k, 2, n)
    add_up(above) shows gt(Sum(r(k), (k, 1, n)), Sum(0, (k, 1, n))) rests on above.claim
    add_up(above, 1, k - 1, [assume(ge(n, k))])
        shows ge(Sum(r(h), (h, 1, k - 1)), Sum(0, (h, 1, k - 1))) rests on above.claim, ge(n, k)
    add_up(above_zero(f, N)) shows ge(Sum(f(k), (k, 1, N)), Sum(0, (k, 1, N)))
        rests on Every(gt(f(k), 0), k, 1, N)
    add_up(above, weight=beta**k) shows gt(Sum(beta**k*r(k), (k, 1, n)), Sum(0, (k, 1, n)))
        rests on above.claim
    add_up(assume(Every(ge(r(k), p), k, 1, n)), weight=z)
        shows ge(Sum(z*r(k), (k, 1, n)), Sum(z*p, (k, 1, n))) rests on Every(ge(r(k), p), k, 1, n)
    add_up(assume(Every(eq(r(k), p), k, 1, n)))
        shows eq(Sum(r(k), (k, 1, n)), Sum(p, (k, 1, n))) rests on Every(eq(r(k), p), k, 1, n)
    add_up(assume(Every(le(r(k), p), k, 1, n)))
        shows le(Sum(r(k), (k, 1, n)), Sum(p, (k, 1, n))) rests on Every(le(r(k), p), k, 1, n)
    round_up(n, p) shows Iff(ge(n, p), ge(n, ceiling(p)))
    rounding(ceiling(a)) shows ge(ceiling(a), a), lt(ceiling(a), a + 1)
    rounding(floor(a)) shows le(floor(a), a), gt(floor(a), a - 1)
    sharpen(ge(n, k), assume(gt(n, k - 1))) rests on gt(n, k - 1)
    substitute(positive(gt(n, 0)), {n: k + 1}) shows gt(k + 1, 0)
    substitute(positive(lt(beta, 1)), {beta: p/(p + q)}) shows lt(p/(p + q), 1)
    substitute(more, {a: c}) shows gt(c, b) rests on gt(c, b)
    substitute(identity(eq(Derivative(a*b, a), b)), {b: c}) shows eq(Derivative(a*c, a), c)
    substitute(identity(eq(at(a + b, {a: 1}), 1 + b)), {b: c}) shows eq(at(a + c, {a: 1}), 1 + c)
    discharge(positive(gt(2*a, 2*b), {more: 2}), positive(gt(a, b), {assume(gt(a, b + 1)): 1}))
        shows gt(2*a, 2*b) rests on gt(a, b + 1)
    extreme(ge(Max(a, b), a))
    extreme(le(Min(a, b), b))
    extreme(eq(Max(a, b), a), [weak]) rests on ge(a, b)
    extreme(eq(Min(a, b), b), [weak]) rests on ge(a, b)
    extreme(le(Max(a, b), c), [assume(ge(c, a)), assume(ge(c, b))]) rests on ge(c, a), ge(c, b)
    extreme(gt(Max(a, b), c), [assume(gt(a, c))]) rests on gt(a, c)
    extreme(gt(Max(a, b), Min(b, c)), [assume(gt(a, c))]) rests on gt(a, c)
    absurd(le(a, b), positive(gt(0, 0), {more: 1, assume(gt(b, a)): 1})) rests on gt(b, a)
    squeeze(eq(a, b), weak, assume(le(a, b))) rests on ge(a, b), le(a, b)
    logarithm(le(beta**n, p)) shows Iff(le(beta**n, p), le(n*log(beta), log(p)))
    exponential(exp(z)) shows ge(exp(z), 1 + z + z**2/2)
    exponential(beta**-z) shows ge(beta**-z, 1 - z*log(beta) + z**2*log(beta)**2/2)
    isolate_zero(p*x - q, x, x0, [positive(gt(p, 0)), assume(eq(p*x0 - q, 0))]) shows
        Iff(gt(p*x - q, 0), gt(x, x0)), Iff(eq(p*x - q, 0), eq(x, x0)) rests on eq(p*x0 - q, 0)
    compute(gt(sqrt(2), Rational(14142, 10000)))
    compute(eq(at(p**2, {p: 3}), 9))
    compute(eq(square(3), 9))
"""


def read_all(text):
    """The claims that a part of a row lists."""
    return read(f"({text},)", {}) if text else ()


def test_a_step_shows_a_claim_on_its_hypotheses():
    for row in rows(SHOWN):
        rest, _, hypotheses = row.partition(" rests on ")
        call, _, claims = rest.partition(" shows ")
        shown, given = tried(call)
        assert shown, row
        assert given == set(read_all(hypotheses)), row
        lines = shown if isinstance(shown, tuple) else (shown,)
        claims = read_all(claims) or CALLED[-1][1][:1]
        assert [to_text(line.claim) for line in lines] == [to_text(claim) for claim in claims], row


def test_a_line_names_its_sources_and_what_gives_their_signs():
    known, factor = assume(gt(a, b), WHY), assume(gt(c, 0), WHY)
    line = positive(gt(a * c, b * c), WHY, {known: c}, [factor])
    assert dict(line.sources) == {known: c, factor: "sign"}


def test_what_a_line_shows():
    every = Every(gt(r(j), 0), j, 1, n)
    assert shows(gt(a, 0), ge(a, 0))
    assert shows(eq(a, b), ge(b, a))
    assert shows(both.claim, both.claim)
    assert shows(every, Every(ge(r(k), 0), k, 1, n))  # the index has another name
    assert shows(Every(eq(r(k), alpha(n)), k, 1, j), Every(eq(r(i), alpha(n)), i, 1, j))


def test_every_symbol_of_the_papers_can_be_replaced():
    for symbol in (n, j, k, N, p, z, a, beta):
        steps.substitute(assume(ge(symbol, symbol), WHY), {symbol: symbol}, WHY)


def test_a_function_that_rises_is_differentiable():
    for function in (sp.floor(x) - 1, sp.Max(x, 2) - 3, 1 / x - 1):
        slope, level = assume(gt(a, 0), WHY), assume(eq(function.subs(x, p), 0), WHY)
        with pytest.raises(ProofError, match="is not differentiable for every x > 0"):
            isolate_zero(function, x, p, [slope, level], WHY)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: steps.identity(eq(1 / z, 1 / z), WHY), "z may be 0"),
        (lambda: steps.identity(eq(*[sp.Sum(1, (k, 1, n - 5))] * 2), WHY), "n - 5"),
        (lambda: steps.identity(eq(sp.Derivative(sp.floor(a), a), 0), WHY), "no derivative by a"),
        (lambda: steps.positive(gt(sp.sin(a), -2), WHY), "sin"),
        (lambda: steps.positive("0 < 1", WHY), "make one by eq, gt"),
        (lambda: eq("1", 1), "no expression"),
        (lambda: Relation(1, "!=", 2), "'!=' is no sign"),
        (lambda: steps.substitute(positive(gt(1, 0), WHY), [n], WHY), "no mapping"),
        (lambda: steps.chain(WHY, "1"), "no line"),
        (lambda: steps.chain(WHY), "only equivalences can be joined"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_value_and_the_rule(call, words):
    with pytest.raises((ProofError, InputError), match=re.escape(words)):
        call()


# ------------------------------------------------------------------ claims at points


def test_values_of_relations():
    rises = Every(ge(r(j + 1), r(j)), j, 1, n - 1)
    assert holds_at(rises, {n: 3, r: lambda i: i})
    assert not holds_at(rises, {n: 3, r: lambda i: -i})
    assert holds_at(eq(total(r, n), 6), {n: 3, r: lambda i: i})
    assert holds_at(Iff(gt(a, 0), gt(2 * a, 0)), {a: -1})
    assert holds_at(gt(sp.Max(r(1), r(2)), 1), {r: lambda i: i})


def test_a_ratio_is_a_symbol_of_its_own():
    assert Ratio("beta") == beta
    assert sp.Symbol("beta", positive=True) != beta
