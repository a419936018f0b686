"""Paper M: one load on n equal nodes, the theorems on its time and cost, and what is misprinted.

Lin, Lu, Deogun and Goddard, "Real-Time Divisible Load Scheduling for Cluster Computing"
(UNL-CSE-2005-0014).
"""

from fractions import Fraction
from typing import Any

import sympy as sp

from dlsim.theory import steps
from dlsim.theory.relations import Every, Iff, Relation, eq, ge, gt, le, lt
from dlsim.theory.statements import lemma, one_step_statement, statement
from dlsim.theory.steps import Line, add_up, assume, chain, compute, identity, iff, positive
from dlsim.theory.symbols import (
    SC,
    ST,
    Cms,
    Cps,
    Delta,
    alpha,
    alpha_1,
    at_point,
    beta,
    cost,
    first_share,
    geometric,
    j,
    k,
    m,
    n,
    phi,
    share,
    sigma,
    time_formula,
    total,
    w,
    x,
)

_cms, _cps = sp.symbols("Cms Cps", positive=True)


def finish(index: Any, sends: Any, setup: Any = 0, start: Any = 0) -> sp.Expr:
    """Return when node `index` ends, if `sends` set-ups of a send come before (4.1)-(4.10)."""
    sent = sends * setup + sigma * Cms * total(alpha, index)
    return sent + start + sigma * Cps * alpha(index)


WHOLE_LOAD = eq(total(alpha, n), 1)
LOAD = assume(WHOLE_LOAD, "the shares are the whole load")


def recurrence(setup: Any) -> Every:
    """Return that each share is beta times the one before, less `setup`."""
    return Every(eq(alpha(j + 1), beta * alpha(j) - setup), j, 1, n - 1)


NEXT_SHARE, NEXT_SHARE_WITH_SETUP = (
    assume(recurrence(setup), "each share follows from the one before") for setup in (0, phi)
)


def sum_of_shares(count: sp.Symbol, first: Any, setup: Any) -> Line:
    """Show the sum of so many shares, by the first one."""
    closed = first * geometric(count) - setup * (count - geometric(count)) / (1 - beta)
    terms = total(lambda index: share(index, first, setup), count)
    return steps.show_inductively(eq(terms, closed), count, "the sum of the shares")


def sum_to_1(claim: Relation, why: str, shares: Line, setup: Any) -> Line:
    """Show the first share by all shares added, which are the load."""
    scale = 1 / geometric(n)
    added, closed = add_up(shares, "all shares added"), sum_of_shares(n, alpha(1), setup)
    return identity(claim, why, {LOAD: scale, added: -scale, closed: -scale})


_WHY = "line j less line j+1 is sigma w (alpha_(j+1) - beta alpha_j) with the sign changed"
_EQUAL_FINISH = (_WHY, -1 / (sigma * w))
_RATIO = at_point(_cps / (_cms + _cps), {_cms: Cms, _cps: Cps})
one_step_statement(
    "4.5",
    "Two nodes end together if and only if the later share is beta times the one before.",
    {
        eq(_RATIO, beta): "Cps/(Cms + Cps), with w = Cms + Cps",
        Iff(eq(finish(1, 0), finish(2, 0)), eq(alpha(2), beta * alpha(1))): _EQUAL_FINISH,
        Iff(eq(finish(j, 0), finish(j + 1, 0)), eq(alpha(j + 1), beta * alpha(j))): _EQUAL_FINISH,
    },
)


@statement("4.1-4.4", [NEXT_SHARE, LOAD])
def show_shares_without_setup(
    solved: Any = Every(eq(alpha(j), beta ** (j - 1) * alpha(1)), j, 1, n),
    first: Any = eq(alpha(1), (1 - beta) / (1 - beta**n)),
    most: Any = le(alpha(1), 1),
) -> list[Line]:
    """The shares are alpha_j = beta^(j-1) alpha_1 and alpha_1 = (1 - beta)/(1 - beta^n)."""
    shares = steps.show_inductively(solved, j, "by induction", {NEXT_SHARE: 1}, times=beta)
    first_of_n = sum_to_1(first, "their sum is 1", shares, 0)
    why = "where n = 1 a single node takes all"
    return [shares, first_of_n, positive(most, why, {first_of_n: -1})]


def ends_of_nodes(setup: Any, start: Any) -> Relation:
    """Return that node j of n ends at E, with the shares written out."""
    first = first_share(n, setup)
    sent = total(lambda index: share(index, first, setup), j)
    time = setup * sigma * w
    end = j * time + start + sigma * Cms * sent + sigma * Cps * share(j, first, setup)
    return eq(end, time_formula(n, setup, start))


def show_ends(claim: Relation, setup: Any) -> Line:
    """Show that node j of n ends at E: the sends by induction, then one identity."""
    sent = sum_of_shares(j, first_share(n, setup), setup)
    return identity(claim, "every node ends at E", {sent: sigma * Cms})


@statement("E(n)")
def show_ends_without_setup(claim: Any = ends_of_nodes(0, 0)) -> list[Line]:
    """Without set-up cost every node ends at E = (1 - beta)/(1 - beta^n) sigma (Cms + Cps)."""
    return [show_ends(claim, 0)]


BARE = time_formula(n, 0, 0)
GAMMA = 1 - sigma * Cms / Delta
MEETS = Iff(le(BARE, Delta), le(beta**n, GAMMA))

one_step_statement(
    "4.6g",
    "E(n) <= Delta = A + D - s if and only if beta^n <= gamma = 1 - sigma Cms/Delta.",
    {
        eq((1 - beta) * sigma * (Cms + Cps), sigma * Cms): "with beta = Cps/(Cms + Cps)",
        MEETS: ("times (1 - beta^n)/Delta, which is positive", (1 - beta**n) / Delta),
    },
)

REAL_N_MIN = sp.log(GAMMA) / sp.log(beta)
POSSIBLE = assume(gt(GAMMA, 0), "gamma > 0: the load can be sent before the deadline")


@statement("n_min", [POSSIBLE])
def show_fewest_nodes(
    meets: Any = Iff(le(BARE, Delta), ge(n, sp.ceiling(REAL_N_MIN))),
    least: Any = ge(sp.ceiling(REAL_N_MIN), 1),
) -> list[Line]:
    """The fewest nodes that meet a deadline are n_min = ceiling(ln gamma/ln beta), at least 1."""
    _, powers = lemma("4.6g")
    facts, by_log = [POSSIBLE], -1 / sp.log(beta)
    logs = steps.logarithm(le(beta**n, GAMMA), "the logarithm increases", facts)
    solved = Iff(logs.claim.second, ge(n, REAL_N_MIN))
    divided = iff(solved, "divided by ln beta < 0", by_log, facts)
    counts = steps.ceiling(n, REAL_N_MIN, "n is a whole number", facts)
    below = positive(lt(GAMMA, 1), "gamma < 1, since it takes time to send")
    same = steps.logarithm(below.claim, "the logarithm increases", facts)
    negative = steps.follows(same, below, "so ln gamma < 0")
    ratio = positive(gt(REAL_N_MIN, 0), "a quotient of negatives", {negative: by_log}, facts)
    up, _ = steps.rounding(sp.ceiling(REAL_N_MIN), facts)
    above = gt(sp.ceiling(REAL_N_MIN), 0)
    above_zero = positive(above, "so the ceiling is positive", {up: 1, ratio: 1}, facts)
    why = "so n_min is the least whole number that meets the deadline"
    return [
        chain(why, powers, logs, divided, counts),
        steps.sharpen(least, "and at least 1", above_zero),
    ]


IMPOSSIBLE = assume(le(GAMMA, 0), "gamma is not positive")

one_step_statement(
    "4.6inf",
    "No number of nodes is faster than sending; if gamma <= 0 none meets the deadline.",
    {
        gt(BARE, sigma * Cms): "beta^n > 0",
        gt(BARE, Delta): ("so the load cannot even be sent in time", {IMPOSSIBLE: Delta}),
    },
    [IMPOSSIBLE],
)

_LINES = eq(finish(j, j, ST, SC), finish(j + 1, j + 1, ST, SC))
_LAST_LINE = eq(finish(n, n, ST, SC), finish(n + 1, n, ST, SC))
_TIMES = -1 / (sigma * w)
one_step_statement(
    "4.7-4.10",
    "With set-up cost two nodes end together if and only if alpha_(j+1) = beta alpha_j - phi.",
    {
        Iff(_LINES, eq(alpha(j + 1), beta * alpha(j) - phi)): ("line j less line j+1", _TIMES),
        Iff(_LAST_LINE, eq(alpha(n + 1), beta * alpha(n))): ("with the printed last line", _TIMES),
    },
)


@statement("4.11r", [NEXT_SHARE_WITH_SETUP])
def show_shares_with_setup(
    solved: Any = Every(eq(alpha(j), share(j, alpha(1))), j, 1, n),
    powers: Any = eq(total(lambda power: beta**power * phi, j - 2, 0), geometric(j - 1) * phi),
) -> list[Line]:
    """The shares are alpha_j = alpha_1 beta^(j-1) - phi (1 - beta^(j-1))/(1 - beta)."""
    by = {NEXT_SHARE_WITH_SETUP: 1}
    shares = steps.show_inductively(solved, j, "by induction", by, times=beta)
    return [shares, steps.show_inductively(powers, j, "the printed sum of powers")]


CLOSED = alpha_1 * geometric(n) - phi * (n - geometric(n)) / (1 - beta)


@statement("4.12", [NEXT_SHARE_WITH_SETUP, LOAD])
def show_first_share_with_setup(
    first: Any = eq(alpha(1), first_share(n)),
    only: Any = Iff(eq(CLOSED, 1), eq(alpha_1, first_share(n))),
) -> list[Line]:
    """The shares add up to 1 for alpha_1 = B(n), and for no other first share."""
    shares, _ = lemma("4.11r")
    why = "the sum is linear in alpha_1 with slope G_n > 0"
    return [
        sum_to_1(first, "solved for the first share", shares, phi),
        steps.solves(only.first, alpha_1, first_share(n), why),
    ]


@statement("4.12G")
def show_first_share_by_sums(
    claim: Any = eq(first_share(n), (1 + phi * total(geometric, n - 1)) / geometric(n)),
) -> list[Line]:
    """B(n) = (1 + phi (G_1 + ... + G_(n-1)))/G_n, in which no digits cancel."""
    added = eq(total(geometric, n - 1), (n - geometric(n)) / (1 - beta))
    closed = steps.show_inductively(added, n, "the sum of the G_i")
    return [identity(claim, "this sum put into (4.12)", {closed: -phi / geometric(n)})]


@statement("4.12fin")
def show_ends_with_setup(claim: Any = ends_of_nodes(phi, SC)) -> list[Line]:
    """With set-up cost every node ends at E = ST + SC + sigma (Cms + Cps) B(n)."""
    return [show_ends(claim, phi)]


_WITHOUT_SETUP = at_point(time_formula(n), {phi: 0, SC: 0})
_SHARE_WITHOUT = at_point(share(j, alpha_1), {phi: 0})
one_step_statement(
    "4.13->4.6",
    "With ST = SC = 0, and so phi = 0, constraint (4.13) is constraint (4.6).",
    {
        eq(_WITHOUT_SETUP, sigma * w * (1 - beta) / (1 - beta**n)): "(4.13) without set-up costs",
        eq(_SHARE_WITHOUT, beta ** (j - 1) * alpha_1): "and the shares of 4.2 are those of 4.1",
    },
)

_BUDGET = sp.Rational(219, 400)


def _example(count: Any) -> sp.Expr:
    return at_point(first_share(x), {x: count, beta: sp.Rational(1, 2), phi: sp.Rational(1, 100)})


_POWERS = steps.show_inductively(ge(n, geometric(n)), n, "n >= 1 + beta + ... + beta^(n-1)")
_WHY = "B(n) > 1 - beta, so no number of nodes gets below this"
one_step_statement(
    "4.13",
    "A real number of nodes may meet a deadline that no whole one meets.",
    {
        gt(time_formula(n), ST + SC + sigma * Cms): (_WHY, {_POWERS: ST / (1 - beta**n)}),
        lt(_example(sp.Rational(21, 4)), _BUDGET): "21/4 nodes would meet the budget",
        **{gt(_example(count), _BUDGET): "but this whole number does not" for count in range(1, 7)},
        gt(_example(m + 6), _BUDGET): "nor does any larger one",
    },
)

# ------------------------------------------------------------------ theorems

#: A set-up cost of sending that is not 0.
setup = sp.Symbol("phi", positive=True)
HALF, CENT = sp.Rational(1, 2), sp.Rational(1, 100)

_BARE_SLOPE = sp.Derivative(time_formula(x, 0, 0), x)
_SLOPE_VALUE = beta**x * sp.log(beta) / (1 - beta**x) ** 2 * (1 - beta) * sigma * w
one_step_statement(
    "5.1",
    "Without set-up cost the execution time decreases with every node.",
    {
        eq(_BARE_SLOPE, _SLOPE_VALUE): "differentiated by a real number of nodes",
        lt(_BARE_SLOPE, 0): "ln beta < 0, and every other factor is positive",
        gt(time_formula(n, 0, 0), time_formula(n + 1, 0, 0)): "and from whole number to whole one",
    },
)


C1, C2, C3 = phi - (1 - beta) * sp.log(beta), -phi * sp.log(beta), phi


def weight(count: Any, cost_of_setup: Any) -> sp.Expr:
    """Return C1 + C2 n."""
    return (C1 + C2 * count).subs(phi, cost_of_setup)


_LEVEL = eq(sp.Derivative(time_formula(x, setup), x), 0)
_SLOPE_VALUE = sigma * w * (C3 - C1 * beta**x - C2 * x * beta**x) / (1 - beta**x) ** 2
_SOLUTION = (sp.log(setup) - sp.log(weight(x, setup))) / sp.log(beta)


@statement("5.2a")
def show_slope_with_setup(
    slope: Any = eq(sp.Derivative(time_formula(x), x), _SLOPE_VALUE),
    power: Any = Iff(_LEVEL, eq(beta**x, setup / weight(x, setup))),
    solved: Any = Iff(_LEVEL, eq(x, _SOLUTION)),
) -> list[Line]:
    """E' is as printed; E' = 0 if and only if beta^n = C3/(C1 + C2 n), and so on for logarithms."""
    weight_ = weight(x, setup)
    times = -((1 - beta**x) ** 2) / (sigma * w * weight_)
    level = iff(power, "times -(1 - beta^n)^2/(sigma w (C1 + C2 n)) < 0", times)
    equation = Iff(power.second, eq(weight_ * beta**x, setup))
    product = iff(equation, "times C1 + C2 n > 0", weight_)
    facts = [positive(gt(weight_, 0), "C1 + C2 n > 0")]
    logs = steps.logarithm(equation.second, "the logarithm increases", facts)
    last = Iff(logs.claim.second, solved.second)
    divided = iff(last, "C4 = ln C3/ln beta, C5 = -1/ln beta", 1 / sp.log(beta))
    root = chain("solved for n", level, product, logs, divided)
    return [identity(slope, "(4.12) differentiated"), level, root]


_count, _k = sp.symbols("n k", real=True)
_C4, _C5 = sp.log(setup) / sp.log(beta), -1 / sp.log(beta)
_PUT_IN = at_point(weight(_count, setup), {_count: _C4 + _C5 * _k})
_PRINTED = at_point(weight(_C4, setup) - weight(0, setup), {beta: HALF, setup: CENT})
_WEIGHT = weight(x, CENT).subs(beta, HALF)
_C6 = sp.log(100) / 100


def _slope_at(count: int) -> sp.Expr:
    return at_point(sp.Derivative(first_share(x), x), {beta: HALF, phi: CENT, x: count})


@statement("5.2b")
def show_misprinted_chain(
    right: Any = eq(_PUT_IN, weight(_C4, setup) + setup * _k),
    printed: Any = eq(_PRINTED, _C6),
    before: Any = lt(_slope_at(5), 0),
    after: Any = gt(_slope_at(6), 0),
    apart: Any = gt(_WEIGHT, _C6 - CENT * sp.log(_WEIGHT)),
) -> list[Line]:
    """The printed e^k = C6 - C7 k has no root at the minimum of E (beta = 1/2, phi = 1/100)."""
    start = _WEIGHT.subs(x, 0)
    small = compute(gt(start, sp.exp(-2)), "C1 > e^-2")
    above = positive(gt(_WEIGHT, sp.exp(-2)), "so e^k = C1 + C2 n > e^-2", {small: 1})
    logs = steps.logarithm(above.claim, "in logarithms")
    large = steps.follows(logs, above, "so k > -2")
    at_0 = compute(gt(start, _C6 + 2 * CENT), "C1 > C6 + 2 phi")
    why = "but the printed sides, e^k and C6 - phi k, differ for every n"
    return [
        identity(right, "n = C4 + C5 k put into e^k = C1 + C2 n"),
        identity(printed, "the printed C6 is C2 C4, without C1"),
        compute(before, "E still falls at 5 nodes"),
        compute(after, "and rises at 6, so the minimum lies between"),
        positive(apart, why, {large: CENT, at_0: 1}),
    ]


def last_share(count: Any) -> sp.Expr:
    """Return the last of `count` shares."""
    return share(count, first_share(count))


_TIMES = (1 - beta**n) / (1 - beta)
_FASTER = Iff(gt(first_share(n), first_share(n + 1)), gt(last_share(n + 1), 0))
one_step_statement(
    "disc",
    "One more node makes a task faster if and only if its share would be positive.",
    {
        eq(first_share(n) - first_share(n + 1), last_share(n + 1) / _TIMES): "by (4.12)",
        _FASTER: ("times (1 - beta^n)/(1 - beta) > 0", _TIMES),
    },
)

_LATER = assume(gt(share(j + k, alpha_1), 0), "a later share is positive")
_SHARE, _NEXT = share(j, alpha_1), share(j + 1, alpha_1)
_WHY = "backwards: alpha_j = (alpha_(j+k) + phi G_k)/beta^k"
_ABOVE = ("both together: so it is above the next", {_LATER: (1 - beta) * beta**-k})
one_step_statement(
    "ajmono",
    "If a share is positive, all before it are, and they decrease.",
    {
        eq(_SHARE - _NEXT, (1 - beta) * _SHARE + phi): "the recurrence",
        gt(_SHARE, 0): (_WHY, {_LATER: beta**-k}),
        gt(_SHARE, _NEXT): _ABOVE,
    },
    [_LATER],
)


def bracket(count: Any) -> sp.Expr:
    """Return what decides the sign of the last share."""
    return beta ** (1 - count) - 1 - (count - 1) * (1 - beta)


@statement("last")
def show_sign_of_last_share(
    sign: Any = Iff(gt(last_share(n), 0), gt((1 - beta) ** 2, phi * bracket(n))),
    rises: Any = gt(bracket(n + 1), bracket(n)),
    bound: Any = ge(bracket(n), (n - 1) * (1 - beta) ** 2 / beta),
    one: Any = eq(at_point(bracket(n), {n: 1}), 0),
    weak: Any = Iff(ge(last_share(n), 0), ge((1 - beta) ** 2, phi * bracket(n))),
) -> list[Line]:
    """The last share is positive up to a number N* of nodes, and for no larger number."""
    times = (1 - beta) * (1 - beta**n) / beta ** (n - 1)
    why = "times (1 - beta)(1 - beta^n)/beta^(n-1) > 0"
    return [
        iff(sign, why, times),
        positive(rises, "the bracket rises"),
        steps.show_inductively(bound, n, "it rises by at least (1-beta)^2/beta each time"),
        identity(one, "one node always has a positive share"),
        iff(weak, why, times),
    ]


_MANY = sp.ceiling(beta / setup) + 1


@statement("5.2")
def show_time_does_not_fall(
    rises: Any = gt(time_formula(_MANY + 1, setup), time_formula(_MANY, setup)),
) -> list[Line]:
    """If ST > 0 the execution time rises from n = ceiling(beta/phi) + 1 to n + 1."""
    here = {n: _MANY, phi: setup}

    def at_this_number(line: Line) -> Line:
        one_more = steps.substitute(line, {n: n + 1}, "for one node more")
        return steps.substitute(one_more, here, "at this n")

    up, _ = steps.rounding(sp.ceiling(beta / setup))
    enough = positive(gt(_MANY * setup, beta), "n > beta/phi", {up: setup})
    _, _, height, _, sign = lemma("last")
    by = {at_this_number(height): setup, enough: (1 - beta) ** 2 / beta}
    wide = gt(setup * bracket(_MANY + 1), (1 - beta) ** 2)
    large = positive(wide, "so the bracket times phi exceeds (1-beta)^2", by)
    none = steps.follows(at_this_number(sign), large, "so one more node has a negative share")
    difference = steps.substitute(lemma("disc")[0], here, "and E changes by that share")
    factor = sigma * w * (1 - beta) / (1 - beta**_MANY)
    return [positive(rises, "so E rises", {none: factor, difference: -sigma * w})]


_EXAMPLES = [
    (
        at_point(time_formula(n, 0), {n: count, beta: HALF, w: 2, sigma: 10, SC: 5}),
        sp.Rational(time),
    )
    for count, time in enumerate(("25", "55/3", "115/7", "47/3"), start=1)
]
one_step_statement(
    "5.2ST",
    "With ST = 0 and any SC the execution time decreases with every node.",
    {
        gt(time_formula(n, 0), time_formula(n + 1, 0)): "SC is the same for all n",
        **{eq(*pair): "sigma = 10, Cms = Cps = 1, SC = 5" for pair in _EXAMPLES},
    },
)

_c = 1 - (1 - beta) * sp.log(beta) / setup
_CURVE = beta**-x + x * sp.log(beta) - _c
_MINIMUM = sp.Symbol("n^*", positive=True)
_HIGH = -_c / sp.log(beta)
_SLOPE = sp.Derivative(first_share(x, setup), x)
_V = -_c + _MINIMUM * sp.log(beta)
_WHY = "n* is a zero of beta^-n + n ln beta - c, c = 1 - (1 - beta) ln beta/phi"
_ZERO = assume(eq(_CURVE.subs(x, _MINIMUM), 0), _WHY)


@statement("5.2c", [_ZERO])
def show_minimiser(
    low: Any = lt(_CURVE.subs(x, 0), 0),
    high: Any = gt(_CURVE.subs(x, _HIGH), 0),
    rises: Any = Iff(gt(_SLOPE, 0), gt(x, _MINIMUM)),
    level: Any = Iff(eq(_SLOPE, 0), eq(x, _MINIMUM)),
    lambert: Any = eq(_V * sp.exp(_V), -sp.exp(-_c)),
    branch: Any = lt(_V, -1),
) -> list[Line]:
    """With ST > 0 the time has one minimum, with a closed form by Lambert's function."""
    series = steps.exponential(beta**-_HIGH)
    slope = positive(gt(sp.diff(_CURVE, x), 0), "and it rises")
    above, only = steps.isolate_zero(_CURVE, x, _MINIMUM, [slope, _ZERO], "and has no other zero")
    times = (1 - beta**x) ** 2 / (setup * beta**x)
    why = "B' has the sign of that function"
    return [
        positive(low, "the function is negative at n = 0"),
        positive(high, "and positive at n = -c/ln beta, so it has a zero", {series: 1}),
        chain("so B rises above n*", iff(Iff(rises.first, above.claim.first), why, times), above),
        chain("and is level there", iff(Iff(level.first, only.claim.first), why, times), only),
        identity(lambert, "V = -c + n* ln beta", {_ZERO: sp.exp(_V)}),
        positive(branch, "c > 1, so this is branch -1"),
    ]


@statement("L5.1")
def show_lemma_1(
    powers: Any = gt(geometric(k), k * beta**k),
    ratio: Any = gt((k + 1) * (1 - beta) / (1 - beta ** (k + 1)), k * (1 - beta) / (1 - beta**k)),
) -> list[Line]:
    """(k+1)/G_(k+1) > k/G_k, as 1 + beta + ... + beta^(k-1) > k beta^k."""
    more = steps.show_inductively(powers, k, "by induction")
    by = {more: 1 / (geometric(k) * geometric(k + 1))}
    return [more, positive(ratio, "divided by G_k G_(k+1)", by)]


def _side(count: Any, factor: Any = 1 - beta) -> sp.Expr:
    """Return a side of Lemma 5.2 for the factor phi, and of (5.14) without."""
    return count * (count * factor / (1 - beta**count) - factor / (1 - beta))


@statement("L5.2")
def show_lemma_2(
    ratio: Any = gt((k + 1) * (1 - beta) / (1 - beta ** (k + 1)) - (k + 1), -k),
    both: Any = gt(_side(k + 1), _side(k)),
    weak: Any = ge(_side(k + 1, phi), _side(k, phi)),
    strict: Any = gt(_side(k + 1, setup), _side(k, setup)),
) -> list[Line]:
    """The part of k B(k) that belongs to phi does not fall with k; it rises for phi > 0."""
    _, first = lemma("L5.1")
    why = "k + 1 > 1 + beta + ... + beta^k, by induction"
    more = steps.show_inductively(gt(k + 1, geometric(k + 1)), k, why)
    above = positive(ratio, "divided by G_(k+1): (5.15)", {more: 1 / geometric(k + 1)})
    sum_ = positive(both, "(5.14): k times Lemma 5.1, and (5.15)", {first: k, above: 1})
    scale = 1 / (1 - beta)
    return [
        above,
        sum_,
        positive(weak, "times phi/(1 - beta) >= 0", {sum_: phi * scale}),
        positive(strict, "times phi/(1 - beta) > 0", {sum_: setup * scale}),
    ]


@statement("5.3")
def show_cost_rises(rises: Any = gt(cost(k + 1), cost(k))) -> list[Line]:
    """The cost W(n) = n E(n) increases with every node, also where E(n) is no schedule."""
    _, first = lemma("L5.1")
    _, _, second, _ = lemma("L5.2")
    why = "ST + SC >= 0, Lemma 5.1 and Lemma 5.2"
    return [positive(rises, why, {first: sigma * w, second: sigma * w})]


_other_size = sp.Symbol("sigma'", positive=True)
#: What one node more adds to the cost, per unit of data, without set-up costs.
_SLOPE_PER_UNIT = w * (
    (k + 1) * (1 - beta) / (1 - beta ** (k + 1)) - k * (1 - beta) / (1 - beta**k)
)


def _slope(size: Any) -> sp.Expr:
    """Return the cost derivative W(n+1) - W(n) of a task of this size without set-up costs."""
    one_more, now = ((count * time_formula(count, 0, 0)).subs(sigma, size) for count in (k + 1, k))
    return one_more - now


@statement("5.order")
def show_order_is_by_size(
    slope: Any = eq(_slope(sigma), sigma * _SLOPE_PER_UNIT),
    order: Any = Iff(gt(_slope(_other_size), _slope(sigma)), gt(_other_size, sigma)),
) -> list[Line]:
    """Without set-up costs MCDF serves tasks on equally many nodes in order of size."""
    _, first = lemma("L5.1")
    rises = positive(gt(_SLOPE_PER_UNIT, 0), "Lemma 5.1", {first: w})
    return [
        identity(slope, "the size is a factor of every time"),
        iff(order, "divided by the slope of one unit", 1 / _SLOPE_PER_UNIT, [rises]),
    ]


_end = sp.Symbol("M", real=True)
_EARLY = assume(Every(ge(_end, finish(j, j, ST, SC)), j, 1, n), "no node ends after M")


@statement("OPR", [LOAD, _EARLY])
def show_equal_finish_is_optimal(latest: Any = ge(_end, time_formula(n))) -> list[Line]:
    """No split of the load ends before E, at which all nodes end together."""
    power, scaled = beta**-n, beta**-j
    added = add_up(_EARLY, "times beta^-j", weight=scaled)
    weights = (power - 1) / (1 - beta)
    powers = eq(total(lambda index: beta**-index, n), weights)
    level = steps.show_inductively(powers, n, "the weights added")
    delays = phi * sigma * w * (n * power - beta * weights) / (1 - beta) + SC * weights
    times = sp.Sum(scaled * finish(j, j, ST, SC), (j, 1, n))
    mean = eq(times, delays + sigma * w * power * total(alpha, n))
    same = steps.show_inductively(mean, n, "every share has the same coefficient in this sum")
    scale = beta**n * (1 - beta) / (1 - beta**n)
    by = {added: scale, same: scale, level: -scale * _end, LOAD: sigma * Cms / (1 - beta**n)}
    return [positive(latest, "so the weighted mean of the ends is E, for every split", by)]


#: Size and deadline of each task of the counterexample.
_TASKS = {1: (3, 17), 2: (6, 32), 3: (6, 19)}


def _cost_of_order(*order: Any) -> Fraction:
    """Return the cost of paper M's schedulability test on two nodes with Cms = Cps = 1.

    Tasks start in the given order at the earliest time at which their fewest nodes are idle. It
    is an error if a deadline is missed.
    """
    waiting, idle_from, now, total_cost = list(order), [Fraction(0)] * 2, Fraction(0), Fraction(0)
    while waiting:
        for task in list(waiting):
            size, deadline = _TASKS[task]
            times = {1: Fraction(2 * size), 2: Fraction(4 * size, 3)}
            enough = min(count for count in times if now + times[count] <= deadline)
            idle = [node for node in (0, 1) if idle_from[node] <= now]
            if len(idle) >= enough:
                waiting.remove(task)
                total_cost += enough * times[enough]
                for node in idle[:enough]:
                    idle_from[node] = now + times[enough]
        now = min((end for end in idle_from if end > now), default=now)
    return total_cost


_cost_of = steps.exact_function("cost", _cost_of_order)
_rise = steps.exact_function("DC", lambda size: Fraction(8, 3) * size - 2 * size)
one_step_statement(
    "5.sum",
    "Serving by decreasing DC does not minimise the cost. On two nodes with Cms = Cps = 1, tasks "
    "(sigma, D) = (3, 17), (6, 32), (6, 19).",
    {
        lt(_rise(3), _rise(6)): "MCDF serves task 2, then 3, then 1: DC = W(2) - W(1)",
        eq(_cost_of(2, 3, 1), 32): "the cost of that order, in exact arithmetic",
        eq(_cost_of(1, 2, 3), 30): "the cost of the order 1, 2, 3, which meets all deadlines, too",
        lt(_cost_of(1, 2, 3), _cost_of(2, 3, 1)): "the order by DC costs more",
    },
)


def _first_exact(count: Any, send: Any) -> Any:
    """Return B(n) for sigma = 100, Cms = Cps = 10."""
    return first_share(count, send / 2000).subs(beta, HALF)


_last = steps.exact_function(
    "alpha_last",
    lambda count, send: share(count, _first_exact(count, send), send / 2000).subs(beta, HALF),
)
_time = steps.exact_function("E", lambda count, send: 2 * send + 2000 * _first_exact(count, send))
_size = steps.exact_function("size", lambda send: send / 20 * (2**9 - 1 - sp.Rational(9, 2)) * 4)
_TABLE = ((5, 7, 8, 507), (10, 6, 23, 1014), (15, 6, 40, 1520), (20, 5, 58, 2027))


def _claims_of_row(send: int, nodes: int, tenths: int, size: int) -> dict[Relation, str]:
    """Return what holds for one set-up cost of section 6.3."""
    excess = _time(10, send) / _time(nodes, send) - 1
    return {
        gt(_last(nodes, send), 0): "alpha_last(n, ST): the last share is positive on N* nodes",
        le(_last(nodes + 1, send), 0): "but not on one node more",
        lt(_last(10, send), 0): "on all ten nodes the formula is no schedule",
        gt(excess, (tenths - HALF) / 1000): "its E(n, ST) exceeds the least time by more than this",
        lt(excess, (tenths + HALF) / 1000): "and by less than this",
        lt(_size(send), size): "size(ST): ten nodes need a load of this size, rounded up",
        ge(_size(send), size - 1): "and no smaller one",
    }


one_step_statement(
    "N*",
    "In the paper's experiments with set-up cost 7, 6, 6 and 5 nodes are fastest, not 10.",
    {claim: why for row in _TABLE for claim, why in _claims_of_row(*row).items()},
)

_load, _least_time, _batch, _interval = sp.symbols("L E batch interval", positive=True)
_MEAN_BATCH = {_batch: total(lambda size: size, 10) / 10, _interval: _least_time / _load}
_OFFERED_LOAD = at_point(_batch * _least_time / _interval, _MEAN_BATCH)
_real_cost = x * first_share(x, 0)
_derivative_at_1 = at_point(sp.Derivative(_real_cost, x), {beta: HALF, x: 1})
_step_at_1 = at_point(_real_cost.subs(x, 2) - _real_cost.subs(x, 1), {beta: HALF})
one_step_statement(
    "M.n+1",
    "The offered load is 5.5 L, and DC_i is a forward difference.",
    {
        eq(_OFFERED_LOAD, 11 * _load / 2): "the mean batch is (1 + ... + 10)/10",
        lt(_derivative_at_1, _step_at_1): "the derivative at one node is less than the step to two",
    },
)
