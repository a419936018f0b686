"""Each step of a derivation does what it says, and refuses what does not follow."""

import itertools
import random

import pytest
import sympy as sp

from dlsim.theory.algebra import flatten, is_real, is_zero, sign
from dlsim.theory.defined import require_defined
from dlsim.theory.relations import Every, Iff, ProofError, eq, ge, gt, le, lt
from dlsim.theory.steps import (
    absurd,
    add_up,
    assume,
    ceiling,
    chain,
    compute,
    discharge,
    exact_function,
    exponential,
    extreme,
    follows,
    generalise,
    identity,
    iff,
    induction,
    isolate_zero,
    logarithm,
    positive,
    rounding,
    sharpen,
    show,
    show_inductively,
    shows,
    solves,
    squeeze,
    substitute,
    take,
)
from dlsim.theory.symbols import Ratio, alpha, at_point, beta, geometric, j, k, m, n, r, total
from tests.helpers.theory_points import holds_at

a, b, c = sp.symbols("a b c", real=True)
p, q = sp.symbols("p q", positive=True)
z = sp.Symbol("z", nonnegative=True)
count = sp.Symbol("N", integer=True, nonnegative=True)
WHY = "a reason"


def refuses(step, *args, **kwargs):
    with pytest.raises(ProofError):
        step(*args, **kwargs)


# ------------------------------------------------------------------ algebra


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (1 - beta, ">"), (1 - beta**n, ">"), (beta - beta**n, ">="),
        (beta**n - beta ** (n + 1), ">"),
        (beta**count - 1, "<="), (sp.log(beta), "<"), (n - 1, ">="), (n, ">"), (count, ">="),
        (p - q, ""), (a**2, ">="), (a**2 + 1, ">"), (-p * q, "<"), (z, ">="), (z - z, "="),
        (1 - sp.Rational(2, 3)**n, ">"), (sp.Rational(2, 3)**count - 1, "<="),
        (p / (1 - beta), ">"), (2**n - 1, ">"), (2**n - 2, ""), ((a - b) ** 2, ">="), (a * b, ""),
    ],
)  # fmt: skip
def test_signs(expression, expected):
    assert sign(expression) == expected


def random_expression(draw, depth):
    """A random expression in symbols of every kind."""
    if depth == 0:
        symbols = [beta, beta**n, beta**count, n, count, p, z, a, 2**n]
        return draw.choice([*symbols, sp.Integer(1), sp.Integer(-2)])
    one, two = (random_expression(draw, depth - 1) for _ in range(2))
    return draw.choice([one + two, one - two, one * two, one * two, one**2, one / (1 + p)])


POINTS = [
    dict(zip((beta, n, count, p, z, a), map(sp.Rational, values), strict=True))
    for values in itertools.product(
        ("1/9", "8/9"), (1, 4), (0, 3), ("1/7", 5), (0, 2), (-3, 0, "5/2")
    )
]


@pytest.mark.parametrize("seed", range(60))
def test_signs_of_random_expressions_hold_at_points_of_the_boundary(seed):
    expression = random_expression(random.Random(seed), 3)
    found = sign(expression)
    allowed = {">": {1}, ">=": {0, 1}, "=": {0}, "<=": {-1, 0}, "<": {-1}, "": {-1, 0, 1}}
    values = [expression.xreplace(point) for point in POINTS]
    assert {sp.sign(value) for value in values} <= allowed[found]
    assert is_zero(expression) == (found == "=")
    assert is_zero(sp.expand(expression) - sp.together(expression))
    if any(values):
        assert not is_zero(expression)


def test_a_fact_gives_the_sign_of_a_factor():
    assert sign(p * (a - b)) == ""
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
    with pytest.raises(ProofError, match="rounded"):
        is_zero(sp.Float(0.1) * a)
    with pytest.raises(ProofError, match="rounded"):
        is_zero(beta ** (0.5 * a))
    with pytest.raises(ProofError, match="real"):
        is_zero(sp.Symbol("anything") - 1)


def test_sums_lose_their_last_terms_and_constant_factors():
    assert is_zero(total(r, n + 2) - total(r, n) - r(n + 1) - r(n + 2))
    assert is_zero(total(lambda i: 2 * r(i) + 3, n) - 2 * total(r, n) - 3 * n)
    assert is_zero(sp.Sum(r(j), (j, 1, n)) - total(r, n))
    assert is_zero(sp.Sum(r(j), (j, k, n)) - total(r, n) + total(r, k - 1))
    assert is_zero(total(r, 2) - r(1) - r(2))
    with pytest.raises(ProofError, match="two meanings"):
        flatten(sp.Sum(r(k) * sp.Sum(r(j), (j, 1, k)), (k, 1, j)))


def test_sums_inside_sums_lose_their_last_terms():
    def double(low, high):
        return sp.Sum(r(k) * sp.Sum(alpha(j), (j, low, high)), (k, 1, n))

    one_more = double(1, k) + total(lambda i: r(i) * alpha(i + 1), n)
    assert is_zero(double(1, k + 1) - one_more)
    assert not is_zero(double(2, k + 1) - one_more)
    assert not is_zero(double(1, k + 2) - one_more)
    for less in (k - 1, k + sp.Rational(1, 2)):  # other sums than that to k
        assert not is_zero(double(1, less) - double(1, k))


def test_a_sum_or_product_is_real_if_all_of_its_parts_are():
    whatever = sp.Symbol("w")
    assert is_real(a * sp.log(p) + z)
    assert not is_real(a + whatever)
    assert not is_real(a * whatever)


def test_sums_of_a_number_are_its_multiples():
    assert is_zero(total(lambda i: 2, sp.ceiling(p)) - 2 * sp.ceiling(p))
    assert is_zero(total(r, 13) - sum(r(i) for i in range(1, 14)))
    assert is_zero(sp.Sum(r(j), (j, k, k + 2)) - r(k) - r(k + 1) - r(k + 2))
    assert is_zero(total(r, 0))


def test_nothing_is_divided_by_what_may_be_zero():
    require_defined([1 / p, 1 / (1 - beta**n), sp.log(p)])
    require_defined([1 / (a - b)], [gt(a, b)])
    maybe = (z ** (n - k), z ** (k - n), (a**2) ** (count - 1), z**a)  # the exponent may be -1
    for undefined in (1 / z, 1 / a, 1 / (p - q), sp.log(z), 1 / count, 1 / (1 - p), *maybe):
        with pytest.raises(ProofError):
            require_defined([undefined])
    require_defined([at_point(1 / p, {p: q + 1})])
    for point in (at_point(1 / p, {p: z}), at_point(sp.log(p), {p: a}), at_point(1 / p, {p: 0})):
        with pytest.raises(ProofError):
            require_defined([point])
    refuses(identity, eq(z * at_point(1 / p, {p: z}), 1), WHY)  # z may be 0


def test_nothing_is_infinite():
    refuses(substitute, positive(gt(1 / (1 + a**2), 0), WHY), {a: sp.oo}, WHY)
    refuses(substitute, positive(gt(p, 0), WHY), {p: sp.oo}, WHY)
    refuses(identity, eq(sp.oo, sp.oo), WHY)
    refuses(positive, gt(sp.oo, p), WHY)
    refuses(compute, gt(sp.oo, 1), WHY)


# ------------------------------------------------------------------ equality and sign


def test_identity():
    assert identity(eq((a + b) ** 2, a**2 + 2 * a * b + b**2), WHY).given == frozenset()
    known = assume(eq(a, b), WHY)
    assert identity(eq(2 * a, 2 * b), WHY, {known: 2}).given == {eq(a, b)}
    refuses(identity, eq(2 * a, 2 * b), WHY, {known: 3})
    refuses(identity, eq(a, b), WHY)
    refuses(identity, gt(a + 1, a), WHY)
    refuses(identity, eq(a, b), WHY, {assume(ge(a, b), WHY): 1})
    product = assume(eq(z * a, z * b), WHY)
    refuses(identity, eq(a, b), WHY, {product: 1 / z})  # z may be 0
    identity(eq(a, b), WHY, {product: 1 / z}, [assume(gt(z, 0), WHY)])


def test_positive():
    known, weak = assume(gt(a, b), WHY), assume(ge(a, b), WHY)
    assert positive(gt(p * a, p * b), WHY, {known: p}).given == {gt(a, b)}
    positive(ge(z * a, z * b), WHY, {known: z})
    refuses(positive, gt(z * a, z * b), WHY, {known: z})  # z may be 0
    refuses(positive, gt(a, b), WHY, {weak: 1})
    positive(gt(a + 1, b), WHY, {weak: 1})
    refuses(positive, gt(-a, -b), WHY, {known: -1})
    refuses(positive, gt(c * a, c * b), WHY, {known: c})
    refuses(positive, gt(p, q), WHY)
    refuses(positive, eq(a, a), WHY)
    refuses(positive, gt(r(1), 0), WHY)
    positive(gt(a * c, b * c), WHY, {known: c}, [assume(gt(c, 0), WHY)])
    refuses(positive, gt(a * c, b * c), WHY, {known: c}, [assume(ge(c, 0), WHY)])


def test_equations_and_inequalities_together():
    same, more = assume(eq(b, c), WHY), assume(gt(a, 0), WHY)
    line = positive(gt(a + b, c), WHY, {same: 1, more: 1})
    assert line.given == {eq(b, c), gt(a, 0)}
    positive(gt(a - b, -c), WHY, {same: -1, more: 1})  # an equation times anything
    refuses(positive, gt(b - a, c), WHY, {same: 1, more: -1})
    refuses(positive, gt(b, c), WHY, {same: 1})


def test_every_line_carries_the_hypotheses_of_its_sources_and_of_its_signs():
    known, factor = assume(gt(a, b), WHY), assume(gt(c, 0), WHY)
    line = positive(gt(a * c, b * c), WHY, {known: c}, [factor])
    assert line.given == {gt(a, b), gt(c, 0)}
    assert dict(line.sources) == {known: c, factor: "sign"}


def test_equivalences():
    both = iff(Iff(le(a, p * b), le(a / p, b)), WHY, 1 / p)
    refuses(iff, Iff(le(a, c * b), le(a / c, b)), WHY, 1 / c)
    refuses(iff, Iff(le(a, z * b), le(a / z, b)), WHY, 1 / z)
    refuses(iff, Iff(le(a, b), ge(a, b)), WHY, -1)
    refuses(iff, Iff(le(a, b), lt(a, b)), WHY)
    iff(Iff(eq(a, b), eq(-a, -b)), WHY, -1)
    refuses(iff, Iff(eq(z * a, z * b), eq(a, b)), WHY, 1 / z)
    assert follows(both, assume(le(a, p * b), WHY), WHY).claim == le(a / p, b)
    assert follows(both, assume(gt(a / p, b), WHY), WHY).claim == gt(a, p * b)
    refuses(follows, both, assume(ge(a, p * b), WHY), WHY)
    other = iff(Iff(le(a / p, b), le(a / p + 1, b + 1)), WHY)
    joined = Iff(le(a, p * b), le(a / p + 1, b + 1))
    assert chain(WHY, both, other).claim == joined
    back = iff(Iff(joined.second, both.claim.first), WHY, p)
    assert chain(WHY, both, other, back).claim == Iff(both.claim.first, both.claim.first)
    refuses(chain, WHY, other, both)
    refuses(chain, WHY, both, other, both)
    for lines in ((both, assume(joined.second, WHY)), ()):
        with pytest.raises(ProofError, match="only equivalences can be joined"):
            chain(WHY, *lines)
    strict = assume(Iff(lt(a / p, b), lt(a, c)), WHY)
    refuses(chain, WHY, both, strict)
    falling = assume(Iff(ge(a, b), gt(c, b)), WHY)
    refuses(chain, WHY, falling, assume(Iff(ge(c, b), ge(c, a)), WHY))


def test_what_a_line_shows():
    both, every = Iff(gt(a, 0), gt(2 * a, 0)), Every(gt(r(j), 0), j, 1, n)
    assert shows(gt(a, 0), ge(a, 0))
    assert shows(eq(a, b), ge(b, a))
    assert not shows(ge(a, 0), gt(a, 0))
    assert not shows(gt(a, 0), gt(b, 0))
    assert not shows(ge(a, b), eq(a, b))
    assert shows(both, Iff(gt(a, 0), gt(2 * a, 0)))
    assert not shows(both, Iff(ge(a, 0), gt(2 * a, 0)))
    assert not shows(both, Iff(gt(a, 0), ge(2 * a, 0)))
    assert not shows(Iff(ge(a, 0), gt(2 * a, 0)), both)
    divided = gt((z**2 + z) / z, 0)  # z + 1 where z is not 0, and nothing where it is
    assert not shows(Iff(gt(z + 1, 0), gt(a, 0)), Iff(divided, gt(a, 0)))
    assert shows(every, Every(ge(r(k), 0), k, 1, n))  # the index has another name
    assert not shows(every, Every(gt(r(j), 0), j, 1, n + 1))
    assert not shows(every, Every(gt(r(j), 0), j, 2, n))
    for one, two in itertools.permutations([gt(a, 0), both, every], 2):
        assert not shows(one, two)


def test_a_relation_for_every_index_is_shown_for_one():
    above = assume(Every(gt(r(j), a), j, 1, n), WHY)
    line = show(Every(gt(2 * r(j), 2 * a), j, 1, n), WHY, {above: 2})
    assert line.claim == Every(gt(2 * r(j), 2 * a), j, 1, n)
    assert line.given == {above.claim}
    assert positive(gt(r(j), a), WHY, {above: 1}).given == {above.claim, ge(n, j)}
    refuses(show, Every(gt(r(j), a), j, 1, n + 1), WHY, {above: 1})
    refuses(show, Every(gt(r(k), a), k, 1, n), WHY, {above: 1})  # its index is j
    refuses(show, Every(gt(r(j), r(1)), j, 1, n), WHY, {above: 1, assume(gt(a, r(j)), WHY): 1})


def test_solves_shows_that_there_is_no_other_solution():
    unknown = sp.Symbol("x", real=True)
    assert solves(eq(p * unknown, a), unknown, a / p, WHY).claim.second == eq(unknown, a / p)
    refuses(solves, eq(z * unknown, a), unknown, a / z, WHY)
    refuses(solves, eq(unknown**2, p), unknown, p, WHY)
    refuses(solves, eq(p * unknown, a), unknown, a, WHY)


# ------------------------------------------------------------------ whole numbers and sums


def test_induction():
    claim = gt(geometric(n), n * beta**n)
    base = positive(claim.subs({n: 1}), WHY)
    step = positive(claim.subs({n: n + 1}), WHY, {assume(claim, WHY): 1})
    assert induction(claim, n, base, step, WHY).given == frozenset()
    refuses(induction, claim, n, step, step, WHY)
    refuses(induction, claim, n, base, base, WHY)
    refuses(induction, gt(geometric(n), (n + 1) * beta**n), n, base, step, WHY)
    refuses(induction, claim.subs({n: count}), count, base, step, WHY)  # it starts at 0
    # a hypothesis about the index is no assumption of the induction
    false = lt(n, 2)
    refuses(induction, false, n, positive(lt(1, 2), WHY), assume(lt(n + 1, 2), WHY), WHY)


def test_the_first_case_may_not_rest_on_the_index():
    claim = ge(r(n), 0)
    base = assume(ge(r(1), 0), WHY)
    step = positive(
        claim.subs({n: n + 1}), WHY, {assume(claim, WHY): 1, assume(ge(r(n + 1), r(n)), WHY): 1}
    )
    refuses(induction, claim, n, base, step, WHY)  # the step holds for one n only
    late = positive(ge(r(1), 0), WHY, {base: 1, assume(ge(m, n + 1), WHY): 0})
    by = {assume(claim, WHY): 1, assume(ge(m, n + 1), WHY): 0}
    by |= {assume(ge(r(n + 1), r(n)), WHY): 1}
    good = positive(claim.subs({n: n + 1}), WHY, by)
    refuses(induction, claim, n, late, good, WHY)


def test_induction_up_to_a_bound_takes_the_bound_along():
    rises = Every(ge(r(j + 1), r(j)), j, 1, n - 1)
    room = assume(ge(n, j + 1), WHY)
    step = take(assume(rises, WHY), j, WHY, [room])
    claim = ge(r(j), r(1))
    after = positive(claim.subs({j: j + 1}), WHY, {step: 1, assume(claim, WHY): 1})
    line = induction(claim, j, positive(ge(r(1), r(1)), WHY), after, WHY)
    assert line.given == {ge(n, j), rises}
    assert generalise(line, j, 1, n, WHY).given == {rises}
    refuses(generalise, line, j, 1, n + 1, WHY)


def test_ranges_are_explicit():
    rises = assume(Every(ge(r(j + 1), r(j)), j, 1, n - 1), WHY)
    refuses(take, rises, n, WHY)  # beyond the last
    refuses(take, rises, 0, WHY)
    assert take(rises, j, WHY).given == {ge(n - 1, j), rises.claim}  # assumed to be in range
    refuses(take, rises, j, WHY, [assume(ge(n, j), WHY)])  # one too many
    take(rises, j, WHY, [assume(ge(n - 1, j), WHY)])
    refuses(take, rises, n / 2, WHY)


def test_what_holds_for_one_index_does_not_hold_for_all():
    refuses(generalise, assume(ge(r(j), 0), WHY), j, 1, n, WHY)
    refuses(generalise, positive(gt(n, 0), WHY), n, 0, 5, WHY)  # n stands for 1, 2, ...
    above = positive(ge(j - 1, 1), WHY, {assume(ge(j, 2), WHY): 1})
    assert generalise(above, j, 2, n, WHY).given == frozenset()
    refuses(generalise, above, j, 1, n, WHY)
    refuses(generalise, positive(gt(p, 0), WHY), p, 1, 5, WHY)  # p need not be whole


def test_an_index_in_range_is_an_assumption_that_the_range_discharges():
    rises = assume(Every(ge(r(j + 1), r(j)), j, 1, n - 1), WHY)
    line = take(rises, j)
    assert (line.claim, line.given) == (ge(r(j + 1), r(j)), {ge(n - 1, j), rises.claim})
    assert generalise(line, j, 1, n - 1, WHY).given == {rises.claim}
    refuses(generalise, line, j, 1, n, WHY)
    refuses(generalise, line, j, 0, n - 1, WHY)  # j is positive
    refuses(take, rises, 0, WHY)  # below the first
    refuses(take, assume(ge(r(j), 0), WHY), j, WHY)


def test_induction_in_a_range():
    rises = assume(Every(ge(r(j + 1), r(j)), j, 1, n - 1), WHY)
    claim = ge(r(j), r(1))
    by = {take(rises, j, WHY): 1, assume(claim, WHY): 1}
    after, base = positive(claim.subs({j: j + 1}), WHY, by), positive(ge(r(1), r(1)), WHY)
    line = induction(Every(claim, j, 1, n), j, base, after, WHY)
    assert (line.claim, line.given) == (Every(claim, j, 1, n), {rises.claim})
    refuses(induction, Every(claim, j, 1, n + 1), j, base, after, WHY)
    refuses(induction, Every(gt(r(j), r(1)), j, 1, n), j, base, after, WHY)
    # an assumption that is stronger than the range is no range
    late = positive(after.claim, WHY, {after: 1, assume(gt(n, j + 1), WHY): 0})
    refuses(induction, claim, j, base, late, WHY)
    twice = positive(after.claim, WHY, {after: 1, assume(ge(n, 2 * j), WHY): 0})
    refuses(induction, claim, j, base, twice, WHY)


def test_weighted_sums_of_inequalities():
    each = assume(Every(gt(r(j), alpha(j)), j, 1, n), WHY)
    line = add_up(each, WHY, weight=beta**j)
    assert line.claim.sign == ">"
    assert line.given == {each.claim}
    assert is_zero(line.claim.gap - total(lambda i: beta**i * (r(i) - alpha(i)), n))
    refuses(add_up, each, WHY, weight=z)  # strict, but z may be 0
    refuses(add_up, each, WHY, weight=-p)
    refuses(add_up, each, WHY, weight=r(j))
    refuses(add_up, assume(gt(r(1), 0), WHY), WHY, weight=p)
    weak = assume(Every(ge(r(j), alpha(j)), j, 1, n), WHY)
    assert add_up(weak, WHY, weight=z).claim.sign == ">="


def test_sums_of_signs():
    each = assume(Every(gt(r(j), 0), j, 1, n), WHY)
    assert add_up(each, WHY).claim.sign == ">"
    maybe_none = assume(Every(gt(r(j), 0), j, 1, count), WHY)
    assert add_up(maybe_none, WHY).claim.sign == ">="  # count may be 0
    assert add_up(each, WHY, 1, j - 1, [assume(ge(n, j), WHY)]).claim.sign == ">="
    refuses(add_up, each, WHY, 1, j - 1)  # j - 1 may be beyond n
    refuses(add_up, each, WHY, 2, 1 + n)
    refuses(add_up, each, WHY, n, 1)  # from n down to 1 there is no sum
    for kind in (eq, ge, le):  # their sums are of the same kind
        relation = kind(r(j), p)
        assert add_up(assume(Every(relation, j, 1, n), WHY), WHY).claim.sign == relation.sign
    refuses(add_up, assume(Every(gt(r(j), 0), j, 1, count - 2), WHY), WHY)


def test_an_empty_sum_is_not_positive():
    """The former checker proved r > r + 1: a sum without terms counted as positive."""
    one = assume(Every(gt(r(j), 0), j, 1, count), WHY)
    added = add_up(one, WHY)
    nothing = substitute(added, {count: 0}, WHY)
    refuses(positive, gt(0, 0), WHY, {nothing: 1})
    refuses(absurd, gt(a, a + 1), nothing, WHY)
    some = sp.Function("s", positive=True)
    assert sign(sp.Sum(some(j), (j, 1, count))) == ""
    refuses(positive, gt(sp.Sum(some(j), (j, 1, count)), 0), WHY)
    refuses(positive, gt(total(lambda i: 1, count), 0), WHY)


def test_sums_by_induction():
    assert show_inductively(eq(total(lambda i: i, n), n * (n + 1) / 2), n, WHY).given == frozenset()
    refuses(show_inductively, eq(total(lambda i: i, n), n * (n + 1) / 2 + 1), n, WHY)
    refuses(show_inductively, eq(total(lambda i: i, n), n**2), n, WHY)
    refuses(show_inductively, eq(total(r, n), n * r(1)), n, WHY)
    show_inductively(
        eq(sp.Sum(k, (k, 1, count)), count * (count + 1) / 2), count, WHY
    )  # from no term on
    refuses(show_inductively, eq(sp.Sum(k, (k, 1, count)), count * (count + 1) / 2 + 1), count, WHY)


def test_inequalities_by_induction():
    more = gt(n + 1, geometric(n + 1))
    assert show_inductively(more, n, WHY).claim == more
    refuses(show_inductively, gt(n, geometric(n)), n, WHY)  # equal for n = 1
    refuses(show_inductively, gt(n + 1, geometric(n + 2)), n, WHY)
    refuses(show_inductively, gt(2, n), n, WHY)  # true for n = 1 only
    refuses(show_inductively, more, n, WHY, times=-1)


def test_sequences_by_induction():
    doubles = assume(Every(eq(r(j + 1), p * r(j)), j, 1, n - 1), WHY)
    start = assume(eq(r(1), a), WHY)
    by, first = {take(doubles, j): 1}, {start: 1}
    claim = Every(eq(r(j), p ** (j - 1) * a), j, 1, n)
    line = show_inductively(claim, j, WHY, by, times=p, first=first)
    assert line.claim == claim
    assert line.given == {doubles.claim, start.claim}
    refuses(show_inductively, claim, j, WHY, by, times=p)
    refuses(show_inductively, claim, j, WHY, by, first=first)
    refuses(show_inductively, claim, j, WHY, times=p, first=first)
    longer = Every(claim.relation, j, 1, n + 1)
    refuses(show_inductively, longer, j, WHY, by, times=p, first=first)
    falls = assume(Every(le(c * r(j + 1), c * r(j)), j, 1, n - 1), WHY)
    lower = Every(le(r(j), r(1)), j, 1, n)
    refuses(show_inductively, lower, j, WHY, {take(falls, j): 1 / c})
    below = {take(falls, j): 1 / c}
    shown = show_inductively(lower, j, WHY, below, signs=[assume(gt(c, 0), WHY)])
    assert shown.given == {falls.claim, gt(c, 0)}


def test_whole_numbers():
    assert ceiling(n, p, WHY).claim == Iff(ge(n, p), ge(n, sp.ceiling(p)))
    refuses(ceiling, a, p, WHY)
    refuses(ceiling, n, sp.log(a), WHY)
    up, below = rounding(sp.ceiling(a))
    assert (up.claim, below.claim) == (ge(sp.ceiling(a), a), lt(sp.ceiling(a), a + 1))
    down, above = rounding(sp.floor(a))
    assert (down.claim, above.claim) == (le(sp.floor(a), a), gt(sp.floor(a), a - 1))
    assert sharpen(ge(n, k), WHY, assume(gt(n, k - 1), WHY)).claim == ge(n, k)
    refuses(sharpen, ge(a, b), WHY, assume(gt(a, b - 1), WHY))
    refuses(sharpen, ge(n, k), WHY, assume(ge(n, k - 1), WHY))
    refuses(sharpen, ge(n, k + 1), WHY, assume(gt(n, k - 1), WHY))


# ------------------------------------------------------------------ putting in, cases, maxima


def test_values_must_be_what_a_symbol_stands_for():
    line = positive(gt(n, 0), WHY)
    assert substitute(line, {n: k + 1}, WHY).claim == gt(k + 1, 0)
    for wrong in (0, -1, sp.Rational(1, 2), p, k - 1, a):
        refuses(substitute, line, {n: wrong}, WHY)
    below = positive(lt(beta, 1), WHY)
    substitute(below, {beta: p / (p + q)}, WHY)
    for wrong in (1, 0, 2, p, -beta):
        refuses(substitute, below, {beta: wrong}, WHY)
    refuses(substitute, positive(gt(p, 0), WHY), {p: z}, WHY)
    shown = substitute(assume(gt(a, b), WHY), {a: c}, WHY)
    assert shown.given == {gt(c, b)}  # the hypothesis changes too


def test_a_value_may_not_be_caught_by_an_index():
    line = assume(Every(eq(r(j), a), j, 1, n), WHY)
    refuses(substitute, line, {a: r(j)}, WHY)
    multiple = identity(eq(sp.Sum(a, (k, 1, n)), n * a), WHY)
    refuses(substitute, multiple, {a: b, b: k}, WHY)


def test_what_is_put_in_or_differentiated_by_is_bound():
    derivative = identity(eq(sp.Derivative(a * b, a), b), WHY)
    refuses(substitute, derivative, {b: a}, WHY)  # d/da (a a) is not a
    refuses(substitute, derivative, {b: a + 1}, WHY)
    assert substitute(derivative, {b: c}, WHY).claim == eq(sp.Derivative(a * c, a), c)
    put_in = identity(eq(at_point(a + b, {a: 1}), 1 + b), WHY)
    refuses(substitute, put_in, {b: a}, WHY)
    assert substitute(put_in, {b: c}, WHY).claim.right == 1 + c
    every = generalise(identity(eq(at_point(n + k, {n: 1}), 1 + k), WHY), k, 1, n, WHY)
    refuses(take, every, n, WHY)
    refuses(take, every, n + 1, WHY)
    refuses(generalise, identity(eq(at_point(n, {n: 1}), 1), WHY), n, 1, k, WHY)


def test_an_index_is_not_renamed_to_a_symbol_that_is_used():
    every = Every(eq(r(k), alpha(n)), k, 1, m)
    assert shows(every, Every(eq(r(j), alpha(n)), j, 1, m))
    assert not shows(every, Every(eq(r(n), alpha(n)), n, 1, m))
    inside = Every(eq(at_point(n + k, {n: 1}), 1 + k), k, 1, m)
    assert not shows(inside, Every(eq(at_point(2 * n, {n: 1}), 1 + n), n, 1, m))
    known = assume(every, WHY)
    line = identity(
        eq(r(1), alpha(1)), WHY, {take(assume(Every(eq(r(n), alpha(n)), n, 1, m), WHY), 1, WHY): 1}
    )
    refuses(discharge, line, known, WHY)


def test_only_symbols_are_replaced():
    square = exact_function("square", lambda value: value**2)
    refuses(substitute, compute(eq(square(3), 9), WHY), {square: 1}, WHY)
    refuses(substitute, assume(ge(r(1), 0), WHY), {r(1): 1}, WHY)
    refuses(substitute, assume(ge(a + b, 0), WHY), {a + b: 1}, WHY)


def test_symbols_may_be_assumed_to_be_no_more_than_the_steps_check():
    even = sp.Symbol("e", integer=True, positive=True, even=True)
    negative = sp.Symbol("e", negative=True)
    line = identity(eq((-1) ** even, 1), WHY)
    refuses(substitute, line, {even: 1}, WHY)
    refuses(generalise, line, even, 1, n, WHY)
    refuses(induction, line.claim, even, line, line, WHY)
    refuses(substitute, assume(ge(negative, a), WHY), {negative: b}, WHY)
    for symbol in (n, j, k, count, p, z, a, beta):
        substitute(assume(ge(symbol, symbol), WHY), {symbol: symbol}, WHY)


def test_maxima_and_minima():
    maximum, minimum = sp.Max(a, b), sp.Min(a, b)
    extreme(ge(maximum, a), WHY)
    extreme(le(minimum, b), WHY)
    refuses(extreme, gt(maximum, a), WHY)
    refuses(extreme, le(maximum, a), WHY)
    known = assume(ge(a, b), WHY)
    assert extreme(eq(maximum, a), WHY, [known]).given == {ge(a, b)}
    assert extreme(eq(minimum, b), WHY, [known]).claim == eq(minimum, b)
    refuses(extreme, eq(maximum, b), WHY, [known])
    refuses(extreme, eq(maximum, a), WHY)
    both = [assume(ge(c, a), WHY), assume(ge(c, b), WHY)]
    extreme(le(maximum, c), WHY, both)
    refuses(extreme, le(maximum, c), WHY, both[:1])
    refuses(extreme, lt(maximum, c), WHY, both)
    above = assume(gt(a, c), WHY)
    extreme(gt(maximum, c), WHY, [above])
    extreme(gt(maximum, sp.Min(b, c)), WHY, [above])
    refuses(extreme, gt(minimum, c), WHY, [above])
    refuses(extreme, gt(maximum, sp.Max(b, c)), WHY, [above])
    refuses(extreme, eq(a + b, b), WHY, [assume(le(a, 0), WHY)])  # no maximum
    refuses(extreme, eq(maximum, c), WHY, both)  # no part of it


def test_contradictions_and_both_sides():
    false = positive(gt(0, 0), WHY, {assume(gt(a, b), WHY): 1, assume(gt(b, a), WHY): 1})
    assert absurd(le(a, b), false, WHY).given == {gt(b, a)}
    refuses(absurd, le(a, b), positive(ge(0, 0), WHY), WHY)
    up, down = assume(ge(a, b), WHY), assume(le(a, b), WHY)
    assert squeeze(eq(a, b), up, down, WHY).given == {ge(a, b), le(a, b)}
    refuses(squeeze, eq(a, b), up, up, WHY)
    refuses(squeeze, eq(a, c), up, down, WHY)


def test_a_hypothesis_is_replaced_by_what_shows_it():
    line = positive(gt(2 * a, 2 * b), WHY, {assume(gt(a, b), WHY): 2})
    known = positive(gt(a, b), WHY, {assume(gt(a, b + 1), WHY): 1})
    assert discharge(line, known, WHY).given == {gt(a, b + 1)}
    refuses(discharge, line, assume(gt(a, c), WHY), WHY)
    refuses(discharge, line, assume(ge(a, b), WHY), WHY)  # too weak


# ------------------------------------------------------------------ real numbers, exact numbers


def test_logarithms_compare_as_their_arguments():
    shown = logarithm(le(beta**n, p), WHY).claim
    assert shown == Iff(le(beta**n, p), le(n * sp.log(beta), sp.log(p)))
    refuses(logarithm, le(beta**n, a), WHY)
    refuses(logarithm, le(z, p), WHY)


def test_the_first_terms_of_the_exponential_series():
    line = exponential(beta**-z)
    size = -z * sp.log(beta)
    assert line.claim == ge(beta**-z, 1 + size + size**2 / 2)
    assert line.given == frozenset()
    assert exponential(sp.exp(z)).claim == ge(sp.exp(z), 1 + z + z**2 / 2)
    for power in (beta**z, sp.exp(a), sp.exp(-p), a**z, z**p, p**p):
        refuses(exponential, power)


def test_a_function_that_rises_is_positive_above_its_zero():
    x = sp.Symbol("x", positive=True)
    zero = sp.Symbol("n^*", positive=True)
    slope = positive(gt(sp.diff(p * x - q, x), 0), WHY)
    level = assume(eq(p * zero - q, 0), WHY)
    above, only = isolate_zero(p * x - q, x, zero, [slope, level], WHY)
    assert above.claim == Iff(gt(p * x - q, 0), gt(x, zero))
    assert only.claim == Iff(eq(p * x - q, 0), eq(x, zero))
    assert above.given == only.given == {level.claim}
    refuses(isolate_zero, p * x - q, x, z, [slope, assume(eq(p * z - q, 0), WHY)], WHY)
    refuses(isolate_zero, p * x - q, x, zero, [slope, assume(eq(p * zero, 0), WHY)], WHY)
    refuses(isolate_zero, q - p * x, x, zero, [slope, assume(eq(q - p * zero, 0), WHY)], WHY)
    flat = positive(ge(p, 0), WHY)  # it may be 0 for all that this line says
    refuses(isolate_zero, p * x - q, x, zero, [flat, level], WHY)
    somewhere = positive(gt(p, 0), WHY, {assume(ge(5, x), WHY): 0})
    refuses(isolate_zero, p * x - q, x, zero, [somewhere, level], WHY)


def test_a_function_that_rises_is_differentiable():
    x = sp.Symbol("x", positive=True)
    for function in (sp.floor(x) - 1, sp.Max(x, 2) - 3, 1 / x - 1):
        slope, level = (assume(gt(a, 0), WHY), assume(eq(function.subs(x, p), 0), WHY))
        with pytest.raises(ProofError, match="is not differentiable for every x > 0"):
            isolate_zero(function, x, p, [slope, level], WHY)
    for variable in (n, z, a):  # a count, what may be 0, what may be negative
        level = assume(eq(variable - p, 0).subs({variable: n}), WHY)
        refuses(isolate_zero, variable - p, variable, n, [positive(gt(1, 0), WHY), level], WHY)


def test_exact_numbers():
    compute(gt(sp.sqrt(2), sp.Rational(14142, 10000)), WHY)
    refuses(compute, gt(sp.Rational(14142, 10000), sp.sqrt(2)), WHY)
    refuses(compute, eq(sp.Float(0.5), sp.Rational(1, 2)), WHY)
    refuses(compute, gt(p, 0), WHY)
    for undefined in (1 / z, sp.zoo, sp.I, sp.sqrt(-p), a):
        refuses(compute, eq(undefined, undefined), WHY)
    refuses(show, eq(1 / z, 1 / z), WHY)  # z may be 0
    compute(eq(at_point(p**2, {p: 3}), 9), WHY)
    refuses(compute, eq(at_point(p**2, {p: 3}), 6), WHY)
    assert show(gt(3, 2), WHY).claim == gt(3, 2)
    show(eq(at_point(p**2, {p: 3}), 9), WHY)
    show(eq(p * (a + b), p * a + p * b), WHY)
    show(gt(p + 1, 1), WHY)
    for wrong in (gt(2, 3), eq(a, b), gt(a, b), ge(a, 0)):
        refuses(show, wrong, WHY)
    square = exact_function("square", lambda value: value**2)
    compute(eq(square(3), 9), WHY)
    refuses(compute, eq(square(3), 8), WHY)
    table = exact_function("table", {1: 2, 2: sp.zoo}.__getitem__)
    compute(eq(table(1), 2), WHY)
    for nothing in (table(0), table(2), exact_function("half", lambda value: 1 / 0)(1)):
        refuses(compute, eq(nothing, nothing), WHY)
        refuses(compute, ge(nothing, nothing - 1), WHY)


def test_values_of_relations():
    assert holds_at(Every(ge(r(j + 1), r(j)), j, 1, n - 1), {n: 3, r: lambda i: i})
    assert not holds_at(Every(ge(r(j + 1), r(j)), j, 1, n - 1), {n: 3, r: lambda i: -i})
    assert holds_at(eq(total(r, n), 6), {n: 3, r: lambda i: i})
    assert holds_at(Iff(gt(a, 0), gt(2 * a, 0)), {a: -1})
    assert holds_at(gt(sp.Max(r(1), r(2)), 1), {r: lambda i: i})


def test_a_ratio_is_a_symbol_of_its_own():
    assert Ratio("beta") == beta
    assert sp.Symbol("beta", positive=True) != beta
