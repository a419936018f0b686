"""The remodel of paper I's reference [6], and the best single-round split for given releases.

In [6] a node that is free early is taken for a slower one that is free with the others: node i
computes a unit in chi_i = chi E/(E + r_n - r_i). The paper's text does not repeat it; the engine
runs it. The best split is ours: no paper has it, and notebooks compare policies with it.
"""

from typing import Any

import sympy as sp

from dlsim.theory import steps
from dlsim.theory.paper_i import START_RULE
from dlsim.theory.relations import Every, Iff, eq, ge, gt, le, lt
from dlsim.theory.statements import lemma, one_step_statement, statement
from dlsim.theory.steps import Line, add_up, assume, identity, positive, show, take
from dlsim.theory.symbols import (
    alpha,
    at_point,
    beta,
    chi,
    j,
    m,
    n,
    r,
    s,
    sigma,
    tau,
    time_formula,
    total,
    w,
    x,
)

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


EMPTY = assume(eq(P(0), 1), "P_0 = 1, the product of no beta")
PRODUCT = assume(Every(eq(P(j), P(j - 1) * beta_of(j)), j, 1, n), "P_j = beta_1 ... beta_j")
ESTIMATE = sigma * tau / (1 - P(n))


def share_of(node: Any) -> sp.Expr:
    """Return the share of a node by the closed form."""
    return (1 - beta_of(node)) * P(node - 1) / (1 - P(n))


def bound_product(bound: Any, why: str) -> Line:
    """Show P_j < 1, or P_j <= beta^j, for j = 1..n by induction; `why` is the step."""
    first = {take(PRODUCT, 1, "the first product"): -1, EMPTY: -beta_of(1)}
    by = {take(PRODUCT, j + 1, "one beta more"): -1}
    return steps.show_inductively(Every(bound, j, 1, n), j, why, by, beta_of(j + 1), first)


def show_product_below_1() -> tuple[Line, Line]:
    """Show 1 - P_j > 0 for j = 1..n, and 1 - P_n > 0."""
    each = bound_product(lt(P(j), 1), "every beta is less than 1")
    return each, take(each, n, "for all nodes together")


_SENT = sigma * tau * total(alpha, j)
_END = _SENT + sigma * _c(j) * alpha(j)
_NEXT_SHARE = eq(alpha(j + 1), alpha(j) * _c(j) / (tau + _c(j + 1)))
_TIMES = -1 / (sigma * (tau + _c(j + 1)))
one_step_statement(
    "6.rec",
    "Nodes of different speed end together iff alpha_(i+1) (tau + chi_(i+1)) = alpha_i chi_i.",
    {Iff(eq(_END, _END.subs(j, j + 1)), _NEXT_SHARE): ("line i less line i+1", _TIMES)},
)


@statement("6.closed", [EMPTY, PRODUCT])
def show_remodel_closed(
    recurrence: Any = Every(
        eq(share_of(j + 1) * (tau + cost_of(j + 1)), share_of(j) * cost_of(j)), j, 1, n - 1
    ),
    whole: Any = eq(total(share_of, n), 1),
    first: Any = eq(sigma * (tau + cost_of(1)) * share_of(sp.Integer(1)), ESTIMATE),
) -> list[Line]:
    """The estimate is sigma tau/(1 - P), P = beta_1 ... beta_n, with shares in closed form."""
    _, below = show_product_below_1()
    scale = 1 / (1 - P(n))
    factor = take(PRODUCT, j, "", [assume(ge(n - 1, j), "a node follows")])
    by = {factor: (1 - beta_of(j + 1)) * (tau + cost_of(j + 1)) * scale}
    lost = Every(eq((1 - beta_of(j)) * P(j - 1), P(j - 1) - P(j)), j, 1, n)
    each = show(lost, "what the product loses at node j", {PRODUCT: 1})
    losses = add_up(each, "added over all nodes")
    differences = eq(total(lambda i: P(i - 1) - P(i), n), P(0) - P(n))
    telescope = steps.show_inductively(differences, n, "neighbours cancel")
    added = {losses: scale, telescope: scale, EMPTY: scale}
    times = sigma * (tau + cost_of(1)) * (1 - beta_of(1)) * scale
    return [
        show(recurrence, "the shares satisfy the recurrence", by, [below]),
        identity(whole, "so the shares add up to 1", added, [below]),
        identity(first, "the end of the first node", {EMPTY: times}, [below]),
    ]


@statement("6.EhatE", [EMPTY, PRODUCT])
def show_estimate_is_shorter(
    powers: Any = le(P(n), beta**n), time: Any = le(ESTIMATE, sigma * tau / (1 - beta**n))
) -> list[Line]:
    """The estimate of [6] is no longer than paper M's time on nodes that are free together."""
    _, below = show_product_below_1()
    less = take(bound_product(le(P(j), beta**j), "beta_i <= beta, as chi_i <= chi"), n)
    scale = sigma * tau / ((1 - beta**n) * (1 - P(n)))
    return [less, positive(time, "so the estimate is shorter", {less: scale}, [below])]


_SORTED = assume(Every(ge(early(j), early(j + 1)), j, 1, n - 1), "releases are sorted")
_FIRST = assume(eq(s(1), _r_n - early(1)), "the first node starts when it is free")
_FREE, _LINK_FREE = _r_n - early(j + 1), s(j) + sigma * tau * share_of(j)
_NEXT_START = sp.Max(_FREE, _LINK_FREE)
_STARTS = assume(Every(le(s(j + 1), _NEXT_START), j, 1, n - 1), START_RULE)
_EQUAL_TIME = assume(eq(E, sigma * tau / (1 - beta**n)), "E is paper M's time")


@statement("6.safe", [EMPTY, PRODUCT, _SORTED, _FIRST, _STARTS, _EQUAL_TIME])
def show_estimate_is_safe(
    goal: Any = Every(le(s(j) + share_of(j) * sigma * w, _r_n + ESTIMATE), j, 1, n),
) -> list[Line]:
    """No node ends after the estimate, each computing at full speed from its own start."""
    each_below, below = show_product_below_1()
    scale = sigma * tau / (1 - P(n))
    room = [assume(ge(n, j + 1), "a node follows")]
    bound = _r_n - early(j) + sigma * tau * (1 - P(j - 1)) / (1 - P(n))
    next_bound, here = bound.subs(j, j + 1), le(s(j), bound)
    by = {take(each_below, j, "P_j < 1", room): scale}
    free = positive(ge(next_bound, _FREE), "the next node is free by then", by, [below])
    order = take(_SORTED, j, "for the next node", room)
    factor = take(PRODUCT, j, "for node j", room)
    by = {assume(here, "assume it of a node"): 1, order: 1, factor: -scale}
    linked = positive(ge(next_bound, _LINK_FREE), "and so is the link", by, [below])
    both = steps.extreme(le(_NEXT_START, next_bound), "so both are", [free, linked, below])
    by = {both: 1, take(_STARTS, j, "for the next node", room): 1}
    step = positive(here.subs({j: j + 1}), "so the next node starts by then", by, [below])
    base = positive(here.subs({j: 1}), "at the first node", {_FIRST: -1, EMPTY: -scale}, [below])
    starts_by = steps.induction(here, j, base, step, "for every node")
    _, shorter = lemma("6.EhatE")
    by = {shorter: 1, each_below: scale, _EQUAL_TIME: 1, PRODUCT: scale}
    why = "a node's computing is part of the estimate, which is at most E"
    fits = positive(le(share_of(j) * sigma * cost_of(j), E), why, by, [below])
    return [show(goal, "so no node ends later", {starts_by: 1, fits: early(j) / E}, [below])]


# --------------------------------------------------------- the remodel against equations (3), (4)

_booked, _equal = sp.symbols("T e", real=True)
_NODE_TIME = assume(eq(n * E, sigma * chi), "E is the time on n nodes if sending takes none")
_MODELLED = eq(total(lambda node: _booked / cost_of(node), n), sigma)
_AT_THEIR_SPEEDS = assume(_MODELLED, "in T the nodes compute the load at the speeds of the remodel")
_FROM_RELEASES = eq(total(lambda node: (_equal + early(node)) / chi, n), sigma)
_ALL_TO_ONE_END = assume(_FROM_RELEASES, "all nodes compute from their releases until r_n + e")
_MEAN_WAIT = assume(eq(n * x, total(early, n)), "x is the mean wait for the last node")


@statement("6.second", [_NODE_TIME, _AT_THEIR_SPEEDS, _ALL_TO_ONE_END, _MEAN_WAIT])
def show_gain_is_of_second_order(
    remodel: Any = eq(_booked, E**2 / (E + x)),
    equal: Any = eq(_equal, E - x),
    gain: Any = eq(_booked - _equal, x**2 / (E + x)),
) -> list[Line]:
    """If sending takes no time, the remodel books x^2/(E + x) longer than (3) and (4)."""
    scale = 1 / (n * (E + x))
    by = {_AT_THEIR_SPEEDS: chi * E * scale, _MEAN_WAIT: _booked * scale, _NODE_TIME: -E * scale}
    by_equal = {_ALL_TO_ONE_END: chi / n, _MEAN_WAIT: 1 / n, _NODE_TIME: -1 / n}
    first = identity(remodel, "the modelled speeds added", by)
    second = identity(equal, "the node time from the releases on", by_equal)
    return [first, second, identity(gain, "the difference", {first: 1, second: -1})]


_free, _busy = sp.symbols("r_1 r_2", real=True)
_wait = sp.Symbol("p", positive=True)
_slower = cost_of(j).subs(early(j), _wait)
_ESTIMATE_OF_TWO = sigma * tau / (1 - beta * _slower / (tau + _slower))
_ON_TWO, _RELEASE = sp.Rational(169, 230), sp.Rational(13, 25)
#: Two nodes, tau = 3/10 and chi = 1; a load of 1, node 1 free at 0 and node 2 at 13/25.
_COSTS = {beta: sp.Rational(10, 13), w: sp.Rational(13, 10), sigma: 1}
_TWO: dict[sp.Symbol, object] = {**_COSTS, _free: 0, _busy: _RELEASE, E: _ON_TWO, _wait: _RELEASE}
_EQUAL_END = (_free + _busy + sigma * w) / 2
one_step_statement(
    "1.DLTcex",
    "FIDO-I and FIDO-II do not decide as FIFO-DLT does: two nodes, sizes 2/5, 1 and 1.",
    {
        eq(at_point(sigma * w, {**_COSTS, sigma: sp.Rational(2, 5)}), _RELEASE): (
            "the first task, due at 13/25, takes one node until then"
        ),
        eq(at_point(time_formula(n, 0, 0), {**_COSTS, n: 2}), _ON_TWO): "E of size 1 on two nodes",
        gt(at_point(sigma * w, _TWO), at_point(_busy + E, _TWO)): (
            "the second task, due at r_2 + E, is late on one node alone, so it takes both"
        ),
        gt(at_point(_busy - _free, _TWO), at_point(sigma * tau, _TWO)): "and Constraint 1 holds",
        gt(at_point(_busy + _ESTIMATE_OF_TWO, _TWO), 1): "the remodel books both nodes beyond 1",
        lt(at_point(_EQUAL_END, _TWO), 1): "with (3) and (4) they are free before 1",
        gt(at_point(_EQUAL_END + sigma * w, _TWO), at_point(1 + E, _TWO)): (
            "so the third task, due at 1 + E, needs both nodes by 1: only FIDO admits it"
        ),
    },
)

# ------------------------------------------------------------------ the best split

_end, _head = sp.symbols("e' rho", real=True)
_load = sp.Function("x", real=True)
_end_of_load = _head + tau * total(_load, j) + chi * _load(j)
_IN_TIME = Every(ge(_end, _end_of_load), j, 1, m)
_NOT_LATE = assume(_IN_TIME, "from rho on one send follows another; no node is late")


@statement("opt.run", [_NOT_LATE])
def show_run_capacity(
    goal: Any = ge((_end - _head) * (1 - beta**m) / tau, total(_load, m)),
) -> list[Line]:
    """From rho to e' a run of m nodes carries at most (e' - rho)(1 - beta^m)/tau, in any shares."""
    times = beta**m / w
    added = add_up(_NOT_LATE, "times beta^-j", weight=beta**-j)
    powers = eq(total(lambda i: beta**-i, m), (beta**-m - 1) / (1 - beta))
    weights = steps.show_inductively(powers, m, "the weights added")
    loads = sp.Sum(beta**-j * (tau * total(_load, j) + chi * _load(j)), (j, 1, m))
    mean = eq(loads, w * beta**-m * total(_load, m))
    same = steps.show_inductively(mean, m, "every load has the same coefficient")
    by = {added: times, weights: -times * (_end - _head), same: times}
    return [positive(goal, "so the run carries no more", by)]


_runs = sp.Function("m", integer=True, positive=True)
_carried = sp.Function("x", real=True)


def _weight(run: Any) -> sp.Expr:
    """Return w_h = 1 - beta^m_h of a run of m_h nodes."""
    return 1 - beta ** _runs(run)


_MOST = (_end - r(j)) * _weight(j) / tau
_CAPACITIES = assume(
    Every(ge(_MOST, _carried(j)), j, 1, n), "each run carries at most this (opt.run)"
)
_ALL = assume(eq(total(_carried, n), sigma), "all runs carry the load")

_BLOCKS = ge(_end * total(_weight, n), sigma * tau + total(lambda run: r(run) * _weight(run), n))
_ADDED = add_up(_CAPACITIES, "added over all runs")
one_step_statement(
    "opt.blk",
    "No schedule ends before (sigma tau + sum r_h w_h)/sum w_h, for any cut into runs.",
    {_BLOCKS: ("times tau", {_ADDED: tau, _ALL: tau})},
    [_CAPACITIES, _ALL],
)

_room = sp.Function("x", real=True)
_NEXT_ROOM = Every(eq(_room(j + 1), beta * _room(j)), j, 1, m - 1)
_FILLED = assume(_NEXT_ROOM, "the link decides when the next node starts")


@statement("opt.fill", [_FILLED])
def show_filled_run(
    goal: Any = eq(total(lambda node: _room(node) / w, m), _room(1) * (1 - beta**m) / tau),
    one: Any = eq(at_point((1 - beta**m) / tau, {m: 1}), 1 / w),
) -> list[Line]:
    """A run whose nodes are filled up to e as soon as they can be carries its capacity."""
    here = Every(eq(_room(j), beta ** (j - 1) * _room(1)), j, 1, m)
    each = steps.show_inductively(here, j, "by induction", {_FILLED: 1}, times=beta)
    terms = total(lambda node: beta ** (node - 1) * _room(1), m)
    geometric_sum = eq(terms, _room(1) * (1 - beta**m) / (1 - beta))
    powers = steps.show_inductively(geometric_sum, m, "a geometric sum")
    by = {add_up(each, "added over all nodes"): 1 / w, powers: 1 / w}
    return [
        identity(goal, "so the run carries what opt.run allows", by),
        identity(one, "and runs of one node give (3) of paper I"),
    ]


s_1, s_2, r_a, r_b = sp.symbols("s_1 s_2 r_a r_b", real=True)
_READY = assume(ge(s_1, r_b), "node b starts first, when it is free")
_SOONER = assume(ge(r_b, r_a), "though node a is free sooner")
_AFTER = assume(ge(s_2, s_1), "and node a starts after it")

one_step_statement(
    "opt.order",
    "A schedule that serves a later node first stays one when the two nodes change places.",
    {
        ge(s_1, r_a): ("so node a may start in b's place", {_READY: 1, _SOONER: 1}),
        ge(s_2, r_b): ("and node b in a's", {_READY: 1, _AFTER: 1}),
    },
    [_READY, _SOONER, _AFTER],
)
