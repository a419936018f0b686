"""The remodel of paper I's reference [6], and the best single-round split for given releases.

In [6] a node that is free early is taken for a slower one that is free with the others: node i
computes a unit in chi_i = chi E/(E + r_n - r_i). The paper's text does not repeat it; the engine
runs it. The best split is ours: no paper has it, and notebooks compare policies with it.
"""

from typing import Any

import sympy as sp

from dlsim.theory.relations import Every, Iff, eq, ge, le, lt
from dlsim.theory.statements import lemma, statement
from dlsim.theory.steps import (
    Line,
    add_up,
    assume,
    extreme,
    generalise,
    identity,
    iff,
    induction,
    positive,
    sums,
    take,
)
from dlsim.theory.symbols import Delta, alpha, beta, chi, j, m, n, r, s, sigma, tau, total, w

E = sp.Symbol("E", positive=True)
early = sp.Function("p", nonnegative=True)
P = sp.Function("P", positive=True)
_c = sp.Function("chi", positive=True)
_r_n = sp.Symbol("r_n", real=True)


def cost_of(node: Any) -> sp.Expr:
    """Return chi_i of the remodel, for a node that is free p_i = r_n - r_i before the last."""
    return chi * E / (E + early(node))


def beta_of(node: Any) -> sp.Expr:
    """Return beta_i = chi_i/(tau + chi_i)."""
    return cost_of(node) / (tau + cost_of(node))


#: P_i is the product of the first i betas.
EMPTY = eq(P(0), 1)
PRODUCT = Every(eq(P(j), P(j - 1) * beta_of(j)), j, 1, n)
ESTIMATE = sigma * tau / (1 - P(n))
_TIME = sp.Rational(24, 7)


def _product_at(count: Any) -> sp.Expr:
    """Return P_i for releases 2, 1 and 0 before the last, beta = 1/2 and E = 24/7."""
    return sp.prod([_TIME / (2 * _TIME + 3 - node) for node in range(1, int(count) + 1)])


_point = {early: lambda node: sp.Integer(3) - node, P: _product_at, E: _TIME}


def share_of(node: Any) -> sp.Expr:
    """Return the share of a node by the closed form."""
    return (1 - beta_of(node)) * P(node - 1) / (1 - P(n))


def product_below_one(empty: Any, product: Any) -> tuple[Line, Line]:
    """Show 1 - P_j > 0 for j = 1..n, and 1 - P_n > 0."""
    room = assume(ge(n, j + 1), "a node follows")
    factors = assume(product, "P_j is the product of the first j betas")
    base_rule = assume(empty, "P_0 = 1")
    first, after = take(factors, 1, "the first"), take(factors, j + 1, "one more", [room])
    claim = lt(P(j), 1)
    base = positive(claim.subs({j: 1}), "beta_1 < 1", {first: -1, base_rule: -beta_of(1)})
    assumed = assume(claim, "assume it")
    by = {assumed: beta_of(j + 1), after: -1}
    step = positive(claim.subs({j: j + 1}), "one beta more", by)
    each = generalise(induction(claim, j, base, step, "by induction"), j, 1, n, "for all nodes")
    return each, take(each, n, "for all of them together")


def _take_product(product: Any, inside: list[Line]) -> Line:
    return take(assume(product, "P_j is the product of the first j betas"), j, "of node j", inside)


@statement(
    "6.rec",
    "I, reference [6]: the remodel",
    goals=[
        Iff(
            eq(
                sigma * tau * total(alpha, j) + sigma * _c(j) * alpha(j),
                sigma * tau * total(alpha, j + 1) + sigma * _c(j + 1) * alpha(j + 1),
            ),
            eq(alpha(j + 1), alpha(j) * _c(j) / (tau + _c(j + 1))),
        )
    ],
    status="ours",
)
def remodel_recurrence(both: Any) -> list[Line]:
    """Nodes of different speed end together iff alpha_(i+1) (tau + chi_(i+1)) = alpha_i chi_i."""
    times = -1 / (sigma * (tau + _c(j + 1)))
    return [iff(both.first, both.second, "line i less line i+1", times)]


@statement(
    "6.closed",
    "I, reference [6]: closed form",
    goals=[
        Every(eq(share_of(j + 1) * (tau + cost_of(j + 1)), share_of(j) * cost_of(j)), j, 1, n - 1),
        eq(total(share_of, n), 1),
        eq(sigma * (tau + cost_of(1)) * share_of(sp.Integer(1)), ESTIMATE),
    ],
    hypotheses=[EMPTY, PRODUCT],
    witness=_point,
    status="ours",
)
def remodel_closed(recurrence: Any, whole: Any, first: Any, empty: Any, product: Any) -> list[Line]:
    """The estimate is sigma tau/(1 - P), P = beta_1 ... beta_n, with shares in closed form."""
    _, below = product_below_one(empty, product)
    room = assume(ge(n - 1, j), "a node follows")
    factor = _take_product(product, [room])
    by = {factor: (1 - beta_of(j + 1)) * (tau + cost_of(j + 1)) / (1 - P(n))}
    one = identity(recurrence.relation, "it satisfies the recurrence", by, [below])
    inside = [assume(ge(n, j), "node j is one of them")]
    falls = eq((1 - beta_of(j)) * P(j - 1), P(j - 1) - P(j))
    lost = identity(falls, "what the product loses", {_take_product(product, inside): 1})
    added = add_up(generalise(lost, j, 1, n, "by each node"), "added up")
    telescope = sums(eq(total(lambda i: P(i - 1) - P(i), n), P(0) - P(n)), n, "neighbours cancel")
    scale = 1 / (1 - P(n))
    base_rule = assume(empty, "P_0 = 1")
    by = {added: scale, telescope: scale, base_rule: scale}
    times = sigma * (tau + cost_of(1)) * (1 - beta_of(1)) * scale
    return [
        generalise(one, j, 1, n - 1, "for all nodes but the last"),
        identity(whole, "so the shares add up to 1", by, [below]),
        identity(first, "the end of the first node", {base_rule: times}, [below]),
    ]


@statement(
    "6.EhatE",
    "I, reference [6]: the estimate",
    goals=[le(P(n), beta**n), le(ESTIMATE, sigma * tau / (1 - beta**n))],
    hypotheses=[EMPTY, PRODUCT],
    witness=_point,
    status="ours",
)
def estimate_is_shorter(powers: Any, time: Any, empty: Any, product: Any) -> list[Line]:
    """The estimate of [6] is no longer than paper M's time on nodes that are free together."""
    _, below = product_below_one(empty, product)
    room = assume(ge(n, j + 1), "a node follows")
    factors, base_rule = assume(product, "the product"), assume(empty, "P_0 = 1")
    claim = le(P(j), beta**j)
    first, after = take(factors, 1, "the first"), take(factors, j + 1, "one more", [room])
    base = positive(claim.subs({j: 1}), "beta_1 <= beta", {first: -1, base_rule: -beta_of(1)})
    by = {assume(claim, "assume it"): beta_of(j + 1), after: -1}
    step = positive(claim.subs({j: j + 1}), "beta_i <= beta, as chi_i <= chi", by)
    each = generalise(induction(claim, j, base, step, "by induction"), j, 1, n, "for all nodes")
    less = take(each, n, "for all of them together")
    scale = sigma * tau / ((1 - beta**n) * (1 - P(n)))
    return [less, positive(time, "so the estimate is shorter", {less: scale}, [below])]


@statement(
    "6.same",
    "I, reference [6]: equal releases",
    goals=[eq(P(n), beta**n)],
    hypotheses=[EMPTY, PRODUCT, Every(eq(early(j), 0), j, 1, n)],
    witness={early: lambda _: sp.S.Zero, P: lambda index: sp.Rational(1, 2 ** int(index))},
    status="ours",
)
def remodel_of_equal_releases(claim: Any, empty: Any, product: Any, gone: Any) -> list[Line]:
    """If all nodes are free together, the remodel is paper M's split."""
    room = assume(ge(n, j + 1), "a node follows")
    factors, together = assume(product, "the product"), assume(gone, "all are free together")
    base_rule = assume(empty, "P_0 = 1")
    here = eq(P(j), beta**j)
    waits = E + (1 - beta) * early(j + 1)
    rule, none = take(factors, j + 1, "one more", [room]), take(together, j + 1, "one more", [room])
    by = {
        rule: 1,
        assume(here, "assume it"): beta_of(j + 1),
        none: -(beta ** (j + 1)) * (1 - beta) / waits,
    }
    step = identity(here.subs({j: j + 1}), "one more", by)
    waits = E + (1 - beta) * early(1)
    rule, none = take(factors, 1, "the first"), take(together, 1, "the first")
    by = {rule: 1, base_rule: beta_of(1), none: -beta * (1 - beta) / waits}
    base = identity(here.subs({j: 1}), "the first", by)
    each = generalise(induction(here, j, base, step, "by induction"), j, 1, n, "for all nodes")
    return [take(each, n, "for all of them together")]


_SORTED = Every(ge(early(j), early(j + 1)), j, 1, n - 1)
_FIRST = eq(s(1), _r_n - early(1))
_STARTS = Every(
    le(s(j + 1), sp.Max(_r_n - early(j + 1), s(j) + sigma * tau * share_of(j))), j, 1, n - 1
)


@statement(
    "6.safe",
    "I, reference [6]: the real end against the estimate",
    goals=[Every(le(s(j) + share_of(j) * sigma * w, _r_n + ESTIMATE), j, 1, n)],
    hypotheses=[EMPTY, PRODUCT, _SORTED, _FIRST, _STARTS, eq(E, sigma * tau / (1 - beta**n))],
    witness={**_point, _r_n: 5, s: lambda index: sp.Integer(2 + index)},
    status="ours",
)
def estimate_is_safe(goal: Any, *hypotheses: Any) -> list[Line]:
    """No node ends after the estimate, each computing at full speed from its own start."""
    empty, product, sorted_, begin, starts, time = hypotheses
    each_below, below = product_below_one(empty, product)
    room, inside = assume(ge(n, j + 1), "a node follows"), assume(ge(n, j), "node j is one of them")
    bound = _r_n - early(j) + sigma * tau * (1 - P(j - 1)) / (1 - P(n))
    claim = le(s(j), bound)
    scale = sigma * tau / (1 - P(n))
    base_rule = assume(empty, "P_0 = 1")
    first = {assume(begin, "the first node starts when it is free"): -1, base_rule: -scale}
    base = positive(claim.subs({j: 1}), "at the first node", first, [below])
    follows_ = take(each_below, j, "P_j < 1", [room])
    factor = _take_product(product, [room])
    next_bound = bound.subs(j, j + 1)
    free, linked = _r_n - early(j + 1), s(j) + sigma * tau * share_of(j)
    one = positive(ge(next_bound, free), "the next is free", {follows_: scale}, [below])
    order = take(assume(sorted_, "releases are sorted"), j, "of the next", [room])
    by = {assume(claim, "assume it of a node"): 1, order: 1, factor: -scale}
    two = positive(ge(next_bound, linked), "and the link is", by, [below])
    latest = extreme(le(sp.Max(free, linked), next_bound), "so it starts no later", [one, two])
    start = take(
        assume(starts, "a node starts when it is free and the link is"), j, "the next", [room]
    )
    step = positive(claim.subs({j: j + 1}), "than this", {latest: 1, start: 1}, [below])
    starts_by = induction(claim, j, base, step, "for every node")
    here = take(each_below, j, "P_j < 1", [inside])
    equal = assume(time, "E is paper M's time")
    _, shorter = lemma("6.EhatE")
    part = le(share_of(j) * sigma * cost_of(j), E)
    by = {shorter: 1, here: scale, equal: 1, _take_product(product, [inside]): scale}
    fits = positive(
        part, "a node's computing is part of the estimate, which is at most E", by, [below]
    )
    by = {starts_by: 1, fits: early(j) / E}
    end = positive(goal.relation, "so no node ends later", by, [below])
    return [generalise(end, j, 1, n, "for all nodes")]


_p = sp.Symbol("P", positive=True)


@statement(
    "6.nmin",
    "I, reference [6]: admission",
    goals=[Iff(le(sigma * tau / (1 - _p), Delta), le(_p, 1 - sigma * tau / Delta))],
    hypotheses=[lt(_p, 1)],
    witness={_p: sp.Rational(1, 3)},
    status="ours",
)
def remodel_admission(both: Any, product: Any) -> list[Line]:
    """A deadline is met by the estimate iff P <= gamma = 1 - sigma tau/(A + D - r_n)."""
    below = assume(product, "P is a product of betas")
    return [iff(both.first, both.second, "times (1 - P)/Delta", (1 - _p) / Delta, signs=[below])]


# ------------------------------------------------------------------ the best split

_end, _head = sp.symbols("e' rho", real=True)
_load = sp.Function("x", real=True)
_capacity = (_end - _head) * (1 - beta**m) / tau
_LATE = Every(ge(_end, _head + tau * total(_load, j) + chi * _load(j)), j, 1, m)


@statement(
    "opt.run",
    "the best single-round split: what a run of nodes can carry",
    goals=[ge(_capacity, total(_load, m))],
    hypotheses=[_LATE],
    witness={_end: 20, _head: 1, _load: lambda _: sp.Integer(2)},
    status="ours",
)
def run_capacity(goal: Any, late: Any) -> list[Line]:
    """From rho to e' a run of m nodes carries at most (e' - rho)(1 - beta^m)/tau, in any shares."""
    inside = [assume(ge(m, j), "node j is one of them")]
    each = take(
        assume(late, "sends follow each other from the release of the first on"),
        j,
        "of node j",
        inside,
    )
    scale = beta**-j
    ends = _head + tau * total(_load, j) + chi * _load(j)
    weighed = positive(ge(scale * _end, scale * ends), "times beta^-j", {each: scale})
    added = add_up(generalise(weighed, j, 1, m, "for all nodes"), "all nodes added")
    power = beta**-m
    weights = sums(
        eq(total(lambda i: beta**-i, m), (power - 1) / (1 - beta)), m, "the weights added"
    )
    loads = sp.Sum(scale * (tau * total(_load, j) + chi * _load(j)), (j, 1, m))
    mean = sums(eq(loads, w * power * total(_load, m)), m, "every load has the same coefficient")
    times = beta**m / w
    by = {added: times, weights: -times * (_end - _head), mean: times}
    return [positive(goal, "so together", by)]


_runs = sp.Function("m", integer=True, positive=True)
_carried = sp.Function("x", real=True)


def _weight(run: Any) -> sp.Expr:
    """Return w_h = 1 - beta^m_h of a run of m_h nodes."""
    return 1 - beta ** _runs(run)


_CAPACITIES = Every(ge((_end - r(j)) * _weight(j) / tau, _carried(j)), j, 1, n)
_ALL = eq(total(_carried, n), sigma)


@statement(
    "opt.blk",
    "the best single-round split: a lower bound from every cut into runs",
    goals=[ge(_end * total(_weight, n), sigma * tau + total(lambda run: r(run) * _weight(run), n))],
    hypotheses=[_CAPACITIES, _ALL],
    witness={
        _end: 20,
        r: lambda run: sp.Integer(run),
        _runs: lambda _: sp.Integer(2),
        _carried: lambda _: sp.Integer(1),
    },
    status="ours",
)
def lower_bound_of_runs(goal: Any, capacities: Any, load: Any) -> list[Line]:
    """No schedule ends before (sigma tau + sum r_h w_h)/sum w_h, for any cut into runs."""
    added = add_up(assume(capacities, "each run carries at most this (opt.run)"), "all runs added")
    carried = assume(load, "which carry the load")
    return [positive(goal, "times tau", {added: tau, carried: tau})]


_room = sp.Function("x", real=True)
_fill = Every(eq(_room(j + 1), beta * _room(j)), j, 1, m - 1)


@statement(
    "opt.fill",
    "the best single-round split: the bound is reached",
    goals=[
        eq(total(lambda node: _room(node) / w, m), _room(1) * (1 - beta**m) / tau),
        eq((1 - beta**1) / tau, 1 / w),
    ],
    hypotheses=[_fill],
    witness={_room: lambda node: sp.Rational(8, 2 ** int(node))},
    status="ours",
)
def filled_run(goal: Any, one: Any, fill: Any) -> list[Line]:
    """A run whose nodes are filled up to e as soon as they can be carries its capacity."""
    room = assume(ge(m, j + 1), "a node follows")
    here = eq(_room(j), beta ** (j - 1) * _room(1))
    after = take(assume(fill, "the link decides when the next node starts"), j, "the next", [room])
    step = identity(here.subs({j: j + 1}), "the next", {after: 1, assume(here, "assume it"): beta})
    base = identity(here.subs({j: 1}), "the first")
    each = generalise(
        induction(here, j, base, step, "by induction"), j, 1, m, "for all nodes of the run"
    )
    added = add_up(each, "all of them added")
    closed = eq(
        total(lambda node: beta ** (node - 1) * _room(1), m), _room(1) * (1 - beta**m) / (1 - beta)
    )
    powers = sums(closed, m, "a geometric sum")
    return [
        identity(goal, "so the run carries what opt.run allows", {added: 1 / w, powers: 1 / w}),
        identity(one, "and runs of one node give (3) of paper I"),
    ]


_two = sp.symbols("s_1 s_2 r_a r_b", real=True)


@statement(
    "opt.order",
    "the best single-round split: nodes by release",
    goals=[ge(_two[0], _two[2]), ge(_two[1], _two[3])],
    hypotheses=[ge(_two[0], _two[3]), ge(_two[3], _two[2]), ge(_two[1], _two[0])],
    witness=dict(zip(_two, (3, 4, 1, 2), strict=True)),
    status="ours",
)
def nodes_by_release(first: Any, second: Any, served: Any, order: Any, later: Any) -> list[Line]:
    """A schedule that serves a later node first stays one when the two nodes change places."""
    ready = assume(served, "node b starts first, when it is free")
    sooner = assume(order, "though node a is free sooner")
    other = assume(later, "and a starts after it")
    return [
        positive(first, "so a may start in b's place", {ready: 1, sooner: 1}),
        positive(second, "and b in a's", {ready: 1, other: 1}),
    ]
