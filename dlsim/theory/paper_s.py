"""Paper S: the reduction of its appendix, its linear program, heuristics and period.

Marchal, Yang, Casanova and Robert, "Steady-State Scheduling of Multiple Divisible Load
Applications on Wide-Area Distributed Computing Platforms".
"""

from typing import Any

import sympy as sp

from dlsim.theory.relations import Every, eq, ge, gt, le, lt
from dlsim.theory.statements import statement
from dlsim.theory.steps import (
    Line,
    add_up,
    assume,
    cases,
    ceiling,
    compute,
    exact_function,
    extreme,
    floor_bounds,
    follows,
    generalise,
    identity,
    positive,
    squeeze,
    sums,
    take,
    whole,
)
from dlsim.theory.symbols import i, j, k, m, n, total

# ------------------------------------------------------------------ the reduction

#: The ends of edge k; work and connections from cluster 0 to cluster i; a set of vertices as 0, 1.
tail, head = (sp.Function(name, integer=True, positive=True) for name in "uv")
work = sp.Function("alpha", nonnegative=True)
connections, chosen = (sp.Function(name, integer=True, nonnegative=True) for name in ("beta", "x"))
a, b, one, two = sp.symbols("a b i_1 i_2", integer=True, positive=True)
bound = sp.Symbol("B", real=True)

_ON_LINK = [eq((one - a) * (one - b), 0), eq((two - a) * (two - b), 0), gt(one, two)]
_COMMON_LINK = Every(le(connections(tail(k)) + connections(head(k)), 1), k, 1, m)
_OWN_LINK = Every(le(connections(i), 1), i, 1, n)
_BANDWIDTH = Every(le(work(i), connections(i)), i, 1, n)
_THROUGHPUT = ge(total(work, n), bound)
_VERTICES = [Every(ge(n, tail(k)), k, 1, m), Every(ge(n, head(k)), k, 1, m)]
_INDEPENDENT = Every(eq(chosen(tail(k)) * chosen(head(k)), 0), k, 1, m)
_ONCE = Every(le(chosen(i), 1), i, 1, n)


@statement(
    "S.L1",
    "S Lemma 1, Theorem 1 and the appendix",
    goals=[
        eq(one + two, a + b),
        eq(one * two, a * b),
        Every(eq(connections(tail(k)) * connections(head(k)), 0), k, 1, m),
        Every(eq(connections(i) * (1 - connections(i)), 0), i, 1, n),
        ge(total(connections, n), bound),
        Every(le(chosen(tail(k)) + chosen(head(k)), 1), k, 1, m),
        ge(n, total(chosen, n)),
    ],
    hypotheses=[
        *_ON_LINK,
        _COMMON_LINK,
        _OWN_LINK,
        _BANDWIDTH,
        _THROUGHPUT,
        *_VERTICES,
        _INDEPENDENT,
        _ONCE,
    ],
    witness={
        a: 1,
        b: 2,
        one: 2,
        two: 1,
        bound: 2,
        tail: lambda edge: sp.Integer(edge),
        head: lambda edge: sp.Integer(edge) + 1,
        **dict.fromkeys((work, connections, chosen), lambda node: sp.Integer(node) % 2),
    },
    status="corrected",
    gap="indices of the links, isolated vertices and priorities of 0 are corrected",
    errata=[24, 25, 26, 27],
)
def reduction(*claims: Any) -> list[Line]:
    """In any graph an allocation of throughput B exists iff B vertices are independent."""
    sum_, product, apart, zero_one, size, link, gateway, *hypotheses = claims
    first, second, other, common, own, bandwidth, throughput, tails, heads, free, once = hypotheses
    on_first, on_second = (
        assume(first, "link k is on the route of i_1"),
        assume(second, "and on that of i_2"),
    )
    differ = assume(other, "another vertex")
    scale = 1 / (one - two)
    ends = identity(
        sum_,
        "so i_1 and i_2 are the ends of edge k",
        {on_first: scale, on_second: -scale},
        [differ],
    )
    same = identity(product, "with the same product", {ends: one, on_first: -1})
    return [
        ends,
        same,
        _allocation_to_set(apart, assume(common, "(3) on the common link of an edge")),
        _zero_or_one(zero_one, assume(own, "(3) on a link of its own")),
        positive(
            size,
            "so the set is no smaller than the throughput",
            {
                add_up(assume(bandwidth, "(4) with delta = g = 1"), "added"): 1,
                assume(throughput, "at least B"): 1,
            },
        ),
        _set_to_allocation(link, free, once, tails, heads),
        positive(
            gateway, "(2) at cluster 0", {add_up(assume(once, "each vertex once"), "added"): 1}
        ),
    ]


def _allocation_to_set(claim: Every, links: Line) -> Line:
    """Show that connections that share a link are not both opened."""
    row = take(links, k, "of edge k", [assume(ge(m, k), "one of the edges")])
    here, there = connections(tail(k)), connections(head(k))
    goal = le(here * there, 0)
    opened = assume(ge(here, 1), "if the first is opened")
    first = positive(goal, "the second is not", {row: here, opened: here})
    closed = assume(opened.claim.negated, "if it is not")
    none = whole(ge(0, here), "it has no connection", closed)
    second = positive(goal, "there is nothing to show", {none: there})
    both = cases(goal, first, second, opened.claim, "so at most one of them is opened")
    least = positive(ge(here * there, 0), "numbers of connections are not negative")
    product = squeeze(claim.relation, both, least, "so the opened ones are independent")
    return generalise(product, k, 1, m, "for all edges")


def _zero_or_one(claim: Every, links: Line) -> Line:
    """Show that a route has no connection or one."""
    row = take(links, i, "of route i", [assume(ge(n, i), "one of the routes")])
    count = connections(i)
    goal = le(count * (1 - count), 0)
    opened = assume(ge(count, 1), "if it is opened")
    first = positive(goal, "it has at least one", {opened: count})
    none = whole(ge(0, count), "it has none", assume(opened.claim.negated, "if it is not"))
    second = positive(goal, "there is nothing to show", {none: 1 - count}, [row])
    both = cases(goal, first, second, opened.claim, "in both cases")
    least = positive(ge(count * (1 - count), 0), "and it has at most one", {row: count})
    return generalise(
        squeeze(claim.relation, both, least, "so none or one"), i, 1, n, "for all routes"
    )


def _set_to_allocation(claim: Every, free: Any, once: Any, tails: Any, heads: Any) -> Line:
    """Show that alpha = beta = 1 on an independent set is a valid allocation."""
    inside = [assume(ge(m, k), "one of the edges")]
    apart = take(assume(free, "an independent set"), k, "of edge k", inside)
    single = assume(once, "each vertex at most once")
    ends = [
        take(assume(one_, "an end is a vertex"), k, "of edge k", inside) for one_ in (tails, heads)
    ]
    first, second = (
        take(single, end(k), "an end", [in_range])
        for end, in_range in zip((tail, head), ends, strict=True)
    )
    by = {first: 1 - chosen(head(k)), apart: -1}
    link = positive(claim.relation, "(1 - x_u)(1 - x_v) >= 0, so (3) holds", by, [second])
    return generalise(link, k, 1, m, "on all common links")


# ------------------------------------------------------------------ the linear program

#: What application k has done elsewhere per unit of time, over relaxed connections, and the data.
load, routes = (
    sp.Function(name, nonnegative=True) for name in (r"\tilde{\alpha}", r"\tilde{\beta}")
)
size, speed, band = sp.symbols("delta s g", positive=True)
price_of_work = sp.Function("w", positive=True)
capacity = sp.Symbol("C", integer=True, nonnegative=True)


def rounded(index: Any) -> sp.Expr:
    """Return the load of a route by LPR: what the connections rounded down can carry."""
    return sp.Min(load(index), sp.floor(routes(index)) * band / size)


@statement(
    "S.LPR",
    "S 5.2.1, LPR",
    goals=[
        Every(le(sp.floor(routes(j)), routes(j)), j, 1, n),
        Every(ge(sp.floor(routes(j)), 0), j, 1, n),
        Every(le(rounded(j), load(j)), j, 1, n),
        Every(ge(rounded(j), 0), j, 1, n),
        Every(le(rounded(j) * size, sp.floor(routes(j)) * band), j, 1, n),
        le(total(lambda index: rounded(index) * price_of_work(index), n), speed),
        le(total(lambda index: sp.floor(routes(index)), n), capacity),
    ],
    hypotheses=[
        le(total(lambda index: load(index) * price_of_work(index), n), speed),
        le(total(routes, n), capacity),
    ],
    witness={
        load: lambda _: sp.Rational(1, 2),
        routes: lambda _: sp.Rational(3, 2),
        speed: 4,
        capacity: 5,
        price_of_work: lambda _: sp.Integer(1),
    },
)
def rounding_down(*claims: Any) -> list[Line]:
    """Connections rounded down, with the load that they carry, satisfy (6): no row grows."""
    _, some, less, rest, carried, work_row, link_row, work_, links = claims
    down, above = floor_bounds(routes(j), "the definition of the floor")
    least = whole(
        some.relation, "and whole", positive(gt(sp.floor(routes(j)), -1), "above -1", {above: 1})
    )
    smaller = extreme(less.relation, "a minimum is at most its parts")
    fits = sp.floor(routes(j)) * band / size
    link = extreme(le(rounded(j), fits), "and at most the other")
    not_negative = positive(ge(fits, 0), "not negative", {least: band / size})
    nothing = extreme(rest.relation, "neither part is negative", [not_negative])
    bounded = positive(carried.relation, "times delta: (6e)", {link: size})
    scaled = positive(
        le(rounded(j) * price_of_work(j), load(j) * price_of_work(j)),
        "times w",
        {smaller: price_of_work(j)},
    )
    row = add_up(generalise(scaled, j, 1, n, "for all routes"), "added")
    fewer_ = generalise(down, j, 1, n, "for all routes")
    return [
        fewer_,
        generalise(least, j, 1, n, "for all routes"),
        generalise(smaller, j, 1, n, "for all routes"),
        generalise(nothing, j, 1, n, "for all routes"),
        generalise(bounded, j, 1, n, "for all routes"),
        positive(
            work_row,
            "(6b), and (6c) in the same way",
            {row: 1, assume(work_, "(6b) of the relaxed program"): 1},
        ),
        positive(
            link_row,
            "(6d)",
            {add_up(fewer_, "added"): 1, assume(links, "(6d) of the relaxed program"): 1},
        ),
    ]


coefficient = sp.Function("A", real=True)
variable, price = sp.Function("z", nonnegative=True), sp.Function("y", nonnegative=True)
right, objective = sp.Function("b", real=True), sp.Function("c", real=True)
_row = sp.Symbol("k", integer=True, positive=True)
_ROWS = Every(
    le(total(lambda index: coefficient(k, index) * variable(index), n), right(k)), k, 1, m
)
_columns = sp.Sum(price(k) * coefficient(k, j), (k, 1, m))
_DUAL = Every(ge(_columns, objective(j)), j, 1, n)


@statement(
    "S.bound",
    "S 5.2, the rational program bounds the mixed one",
    goals=[
        le(
            total(lambda index: objective(index) * variable(index), n),
            sp.Sum(price(k) * right(k), (k, 1, m)),
        )
    ],
    hypotheses=[_ROWS, _DUAL],
    witness={
        n: 3,
        m: 2,
        coefficient: lambda row, column: sp.Integer(1),
        variable: lambda _: sp.Integer(1),
        price: lambda _: sp.Integer(2),
        right: lambda _: sp.Integer(4),
        objective: lambda _: sp.Integer(3),
    },
)
def relaxation_bounds(goal: Any, rows: Any, dual: Any) -> list[Line]:
    """Prices that are feasible in the rational program bound every allocation, whole or not."""
    in_rows, in_columns = (
        assume(ge(m, k), "one of the rows"),
        assume(ge(n, j), "one of the columns"),
    )
    row = take(assume(rows, "an allocation satisfies every row of (6)"), k, "of row k", [in_rows])
    inner = total(lambda index: coefficient(k, index) * variable(index), n)
    paid = positive(le(price(k) * inner, price(k) * right(k)), "times its price", {row: price(k)})
    all_rows = add_up(generalise(paid, k, 1, m, "for all rows"), "all rows added")
    column = take(assume(dual, "prices that no column beats"), j, "of column j", [in_columns])
    value = positive(
        ge(_columns * variable(j), objective(j) * variable(j)),
        "times the variable, whole or not",
        {column: variable(j)},
    )
    all_columns = add_up(generalise(value, j, 1, n, "for all columns"), "all columns added")
    by_rows = sp.Sum(price(k) * inner, (k, 1, m))
    by_columns = sp.Sum(_columns * variable(j), (j, 1, n))
    swapped = sums(eq(by_columns, by_rows), n, "the order of the two sums is changed")
    return [positive(goal, "so no allocation has more", {all_rows: 1, all_columns: 1, swapped: -1})]


# ------------------------------------------------------------------ heuristics

fixed = sp.Symbol("v", integer=True, nonnegative=True)
relaxed, cap = sp.symbols(r"\tilde{\beta} C", real=True)
whole_cap = sp.Symbol("C", integer=True, nonnegative=True)
_left_over = exact_function(
    "choices", lambda routes_: sum(value != 0 for value in [0] * int(routes_))
)


@statement(
    "S.LPRR",
    "S 5.2.3, LPRR",
    goals=[
        ge(whole_cap, fixed + sp.ceiling(relaxed)),
        gt(sp.ceiling(sp.Rational(5, 2)), sp.Rational(5, 2)),
        eq(_left_over(2), 0),
    ],
    hypotheses=[ge(whole_cap - fixed, relaxed)],
    witness={fixed: 1, relaxed: sp.Rational(3, 2), whole_cap: 3},
    status="corrected",
    gap="rounding up is feasible for whole max-connect; steps 2 to 5 do not end once the rest is 0",
    errata=[29, 30],
)
def rounding_up(fits: Any, real: Any, none: Any, row: Any) -> list[Line]:
    """Rounding a relaxed number of connections up keeps a link feasible if its limit is whole."""
    room = assume(row, "the relaxed program leaves room for it")
    both = ceiling(whole_cap - fixed, relaxed, "whole numbers are left")
    up = follows(both, room, "so there is room for the ceiling")
    return [
        positive(fits, "on the link", {up: 1}),
        compute(real, "a limit of 5/2, as Table 2 draws it, must be floored first"),
        compute(none, "two routes are left, and none may be chosen"),
    ]


_gateway = sp.Symbol("g_m", nonnegative=True)
_alloc = exact_function("alloc", lambda gateway: min(20, 3, int(gateway), 5))
_benefit, _amount = sp.symbols("benefit_k alloc", nonnegative=True)


@statement(
    "S.G5",
    "S 5.1, heuristic G, step 5",
    goals=[eq(_alloc(0), 0), lt(_alloc(0), 10)],
    status="corrected",
    gap="the amount may be 0 although the local benefit is not; then G repeats for ever",
    errata=[28],
)
def greedy_step(none: Any, less: Any) -> list[Line]:
    """If no neighbour can be reached, the printed step 5 gives the local cluster nothing."""
    return [
        compute(none, "the neighbour's gateway is used up: max of min(20, 3, 0, 5)"),
        compute(less, "though the local benefit is 10"),
    ]


# ------------------------------------------------------------------ the period

numerator = sp.Function("u", integer=True, nonnegative=True)
denominator, multiple = (sp.Function(name, integer=True, positive=True) for name in ("v", "q"))
rate = sp.Function("alpha", nonnegative=True)
T = sp.Symbol("T_p", integer=True, positive=True)
_lcm = exact_function("lcm", lambda *values: sp.ilcm(*values))
byte, unit, effort, time = sp.symbols("byte unit work time", positive=True)


@statement(
    "S.Tp",
    "S 3.2, the period T_p",
    goals=[
        Every(eq(rate(j) * T, numerator(j) * multiple(j)), j, 1, n),
        eq(
            total(lambda index: rate(index) * price_of_work(index) * T, n) / T,
            total(lambda index: rate(index) * price_of_work(index), n),
        ),
        eq(_lcm(4, 6, 10), 60),
    ],
    hypotheses=[
        Every(eq(rate(j), numerator(j) / denominator(j)), j, 1, n),
        Every(eq(T, denominator(j) * multiple(j)), j, 1, n),
    ],
    witness={
        T: 6,
        numerator: lambda index: sp.Integer(index),
        denominator: lambda index: sp.Integer(index),
        multiple: lambda index: 6 / sp.Integer(index),
        rate: lambda _: sp.Integer(1),
    },
)
def period(counts: Any, row: Any, example: Any, rational: Any, common: Any) -> list[Line]:
    """With T_p = lcm of the denominators every route has a whole number alpha T_p of load units."""
    inside = [assume(ge(n, j), "one of the routes")]
    fraction = take(assume(rational, "alpha = u/v"), j, "of route j", inside)
    multiple_ = take(assume(common, "T_p is a multiple of every v"), j, "of route j", inside)
    units = identity(
        counts.relation, "u q is whole", {fraction: T, multiple_: numerator(j) / denominator(j)}
    )
    return [
        generalise(units, j, 1, n, "for all routes"),
        identity(row, "and the period changes no row of (1)-(4)"),
        compute(example, "such as this one"),
    ]


@statement(
    "S.period",
    "S 2 and 3.2, dimensions",
    goals=[
        eq(unit / time * time, unit),
        eq(unit / time * (byte / unit) * time, byte),
        eq(unit / time * (effort / unit) / (effort / time), 1),
    ],
    status="notation",
    gap="Equation 1, not 2, bounds the work; alpha delta T_p are bytes, not load units",
    errata=[20, 21, 22, 23],
)
def dimensions(units: Any, data: Any, load_: Any) -> list[Line]:
    """In a period there are alpha T_p load units and alpha delta T_p bytes; (1) bounds the work."""
    return [
        identity(units, "alpha: units per time"),
        identity(data, "delta: bytes per unit, so these are the terms of (2)"),
        identity(load_, "w: work per unit, s: work per time"),
    ]
