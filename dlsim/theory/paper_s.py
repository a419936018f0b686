"""Paper S: the reduction of its appendix, its linear program, heuristics and period.

Marchal, Yang, Casanova and Robert, "Steady-State Scheduling of Multiple Divisible Load
Applications on Wide-Area Distributed Computing Platforms".
"""

from typing import Any

import sympy as sp

from dlsim.theory import steps
from dlsim.theory.relations import Every, Relation, eq, ge, gt, le, lt
from dlsim.theory.statements import one_step_statement, statement
from dlsim.theory.steps import Line, add_up, assume, generalise, identity, positive, show, take
from dlsim.theory.symbols import at_point, i, j, k, m, n, total

# ------------------------------------------------------------------ the reduction

#: The ends of edge k; work and connections from cluster 0 to cluster i; a set of vertices as 0, 1.
tail, head = (sp.Function(name, integer=True, positive=True) for name in "uv")
work_done = sp.Function("alpha", nonnegative=True)
connections, chosen = (sp.Function(name, integer=True, nonnegative=True) for name in ("beta", "x"))
_a, _b, one, two = sp.symbols("a b i_1 i_2", integer=True, positive=True)
least_throughput = sp.Symbol("B", real=True)

_ON_ROUTES = [
    assume(eq((one - _a) * (one - _b), 0), "link k is on the route of i_1"),
    assume(eq((two - _a) * (two - _b), 0), "and on that of i_2"),
]
_DIFFER = assume(gt(one, two), "i_1 and i_2 are different vertices")
_BOTH = connections(tail(k)) + connections(head(k))
_COMMON_LINK = assume(Every(le(_BOTH, 1), k, 1, m), "(3) on the common link of an edge")
_OWN_LINK = assume(Every(le(connections(i), 1), i, 1, n), "(3) on a link of its own")
_BANDWIDTH = assume(Every(le(work_done(i), connections(i)), i, 1, n), "(4) with delta = g = 1")
_THROUGHPUT = assume(ge(total(work_done, n), least_throughput), "the throughput is at least B")
_VERTICES = [
    assume(Every(ge(n, end(k)), k, 1, m), "an end of an edge is a vertex") for end in (tail, head)
]
_APART = eq(chosen(tail(k)) * chosen(head(k)), 0)
_INDEPENDENT = assume(Every(_APART, k, 1, m), "the set is independent")
_ONCE = assume(Every(le(chosen(i), 1), i, 1, n), "each vertex is in the set at most once")


_ALLOCATION = [*_ON_ROUTES, _DIFFER, _COMMON_LINK, _OWN_LINK, _BANDWIDTH, _THROUGHPUT]


@statement("S.L1", [*_ALLOCATION, *_VERTICES, _INDEPENDENT, _ONCE])
def show_reduction(
    sum_: Any = eq(one + two, _a + _b),
    product: Any = eq(one * two, _a * _b),
    apart: Any = Every(eq(connections(tail(k)) * connections(head(k)), 0), k, 1, m),
    zero_one: Any = Every(eq(connections(i) * (1 - connections(i)), 0), i, 1, n),
    size: Any = ge(total(connections, n), least_throughput),
    link: Any = Every(le(chosen(tail(k)) + chosen(head(k)), 1), k, 1, m),
    gateway: Any = ge(n, total(chosen, n)),
) -> list[Line]:
    """In any graph an allocation of throughput B exists iff B vertices are independent."""
    on_first, on_second = _ON_ROUTES
    scale = 1 / (one - two)
    by = {on_first: scale, on_second: -scale}
    ends = identity(sum_, "so i_1 and i_2 are the ends of edge k", by, [_DIFFER])
    by = {add_up(_BANDWIDTH, "added over all routes"): 1, _THROUGHPUT: 1}
    return [
        ends,
        identity(product, "with the same product", {ends: one, on_first: -1}),
        _allocation_to_set(apart),
        _zero_or_one(zero_one),
        positive(size, "so the set is no smaller than the throughput", by),
        _set_to_allocation(link),
        positive(gateway, "(2) at cluster 0", {add_up(_ONCE, "added over all vertices"): 1}),
    ]


_count = sp.Symbol("N", integer=True, nonnegative=True)
_SQUARE = steps.show_inductively(ge(_count**2, _count), _count, "a whole number and its square")


def _allocation_to_set(claim: Every) -> Line:
    """Show that connections that share a link are not both opened."""
    here, there = connections(tail(k)), connections(head(k))
    least = positive(ge(here * there, 0), "numbers of connections are not negative")
    squares = [steps.substitute(_SQUARE, {_count: end}, "for an end") for end in (here, there)]
    by = {_COMMON_LINK: (here + there) / 2, **dict.fromkeys(squares, sp.Rational(1, 2))}
    most = positive(le(here * there, 0), "there is at most one on the common link", by)
    return generalise(
        steps.squeeze(claim.relation, most, least, "so the product is 0"), *claim.span
    )


def _zero_or_one(claim: Every) -> Line:
    """Show that a route has no connection or one."""
    count = connections(i)
    square = steps.substitute(_SQUARE, {_count: count}, "for route i")
    most = positive(le(count * (1 - count), 0), "the number is whole", {square: 1})
    least = positive(ge(count * (1 - count), 0), "and at most one", {_OWN_LINK: count})
    return generalise(steps.squeeze(claim.relation, most, least, "so it is 0 or 1"), *claim.span)


def _set_to_allocation(claim: Every) -> Line:
    """Show that alpha = beta = 1 on an independent set is a valid allocation."""
    first, second = (
        take(_ONCE, end(k), "for an end of edge k", [take(vertex, k, "for edge k")])
        for end, vertex in zip((tail, head), _VERTICES, strict=True)
    )
    by = {first: 1 - chosen(head(k)), _INDEPENDENT: -1}
    return show(claim, "(1 - x_u)(1 - x_v) >= 0, so (3) holds", by, [second])


# ------------------------------------------------------------------ the linear program

#: What application k has done elsewhere per unit of time, over relaxed connections, and the data.
load, routes = (
    sp.Function(name, nonnegative=True) for name in (r"\tilde{\alpha}", r"\tilde{\beta}")
)
size, cluster_speed, band = sp.symbols("delta s g", positive=True)
price_of_work = sp.Function("w", positive=True)
capacity = sp.Symbol("C", integer=True, nonnegative=True)


def rounded_load(index: Any) -> sp.Expr:
    """Return the load of a route by LPR: what the connections rounded down can carry."""
    return sp.Min(load(index), sp.floor(routes(index)) * band / size)


def work_row_of(done: Any) -> Relation:
    """Return (6b): a cluster does no more work per unit of time than its speed."""
    return le(sp.Sum(done(i) * price_of_work(i), (i, 1, n)), cluster_speed)


_WORK_ROW = assume(work_row_of(load), "(6b) of the relaxed program")
_LINK_ROW = assume(le(total(routes, n), capacity), "(6d) of the relaxed program")


@statement("S.LPR", [_WORK_ROW, _LINK_ROW])
def show_rounding_down(
    fewer: Any = Every(le(sp.floor(routes(j)), routes(j)), j, 1, n),
    some: Any = Every(ge(sp.floor(routes(j)), 0), j, 1, n),
    less: Any = Every(le(rounded_load(j), load(j)), j, 1, n),
    rest: Any = Every(ge(rounded_load(j), 0), j, 1, n),
    carried: Any = Every(le(rounded_load(j) * size, sp.floor(routes(j)) * band), j, 1, n),
    work_row: Any = work_row_of(rounded_load),
    link_row: Any = le(sp.Sum(sp.floor(routes(i)), (i, 1, n)), capacity),
) -> list[Line]:
    """Connections rounded down, with the load that they carry, satisfy (6): no row grows."""
    down, _ = steps.rounding(sp.floor(routes(j)))
    smaller = steps.extreme(less.relation, "a minimum is at most its parts")
    fits = sp.floor(routes(j)) * band / size
    link = steps.extreme(le(rounded_load(j), fits), "also the second part")
    nothing = steps.extreme(rest.relation, "neither part is negative")
    least = positive(some.relation, "the floor of what is not negative")
    bounded = positive(carried.relation, "times delta: (6e)", {link: size})
    rows = [generalise(line, j, 1, n) for line in (down, least, smaller, nothing, bounded)]
    by_work = {add_up(rows[2], "times w", weight=price_of_work(j)): 1, _WORK_ROW: 1}
    by_link = {add_up(rows[0], "added over all routes"): 1, _LINK_ROW: 1}
    return [
        *rows,
        positive(work_row, "(6b), and (6c) in the same way", by_work),
        positive(link_row, "(6d)", by_link),
    ]


coefficient = sp.Function("A", real=True)
variable, row_price = sp.Function("z", nonnegative=True), sp.Function("y", nonnegative=True)
right, objective = sp.Function("b", real=True), sp.Function("c", real=True)
_inner = sp.Sum(coefficient(k, i) * variable(i), (i, 1, n))
_columns = sp.Sum(row_price(k) * coefficient(k, j), (k, 1, m))
_ROWS = assume(Every(le(_inner, right(k)), k, 1, m), "any allocation satisfies all rows of (6)")
_DUAL = assume(Every(ge(_columns, objective(j)), j, 1, n), "no column is worth more than its price")


@statement("S.bound", [_ROWS, _DUAL])
def show_relaxation_bounds(
    goal: Any = le(
        sp.Sum(objective(i) * variable(i), (i, 1, n)), sp.Sum(row_price(k) * right(k), (k, 1, m))
    ),
) -> list[Line]:
    """Prices that are feasible in the rational program bound every allocation, whole or not."""
    all_rows = add_up(_ROWS, "times the price of the row", weight=row_price(k))
    all_columns = add_up(_DUAL, "times the variable of the column", weight=variable(j))
    by_rows = sp.Sum(row_price(k) * _inner, (k, 1, m))
    by_columns = sp.Sum(_columns * variable(j), (j, 1, n))
    order = eq(by_columns, by_rows)
    swapped = steps.show_inductively(order, n, "the order of the two sums is changed")
    by = {all_rows: 1, all_columns: 1, swapped: -1}
    return [positive(goal, "so no allocation is worth more", by)]


# ------------------------------------------------------------------ heuristics

fixed = sp.Symbol("v", integer=True, nonnegative=True)
relaxed, cap = sp.symbols(r"\tilde{\beta} C", real=True)
whole_cap = sp.Symbol("C", integer=True, nonnegative=True)
_left_over = steps.exact_function(
    "choices", lambda routes_: sum(value != 0 for value in [0] * int(routes_))
)
_ROOM = assume(ge(whole_cap - fixed, relaxed), "the relaxed program leaves room for it")


@statement("S.LPRR", [_ROOM])
def show_rounding_up(
    fits: Any = ge(whole_cap, fixed + sp.ceiling(relaxed)),
    real: Any = gt(at_point(sp.ceiling(cap), {cap: sp.Rational(5, 2)}), sp.Rational(5, 2)),
    none: Any = eq(_left_over(2), 0),
) -> list[Line]:
    """Rounding a relaxed number of connections up keeps a link feasible if its limit is whole."""
    both = steps.ceiling(whole_cap - fixed, relaxed, "the number that is left is whole")
    up = steps.follows(both, _ROOM, "so there is room for the ceiling")
    return [
        positive(fits, "on the link", {up: 1}),
        steps.compute(real, "a limit of 5/2, as Table 2 draws it, must be floored first"),
        steps.compute(none, "two routes are left, and none may be chosen"),
    ]


_alloc = steps.exact_function("alloc", lambda gateway: min(20, 3, int(gateway), 5))

one_step_statement(
    "S.G5",
    "If no neighbour can be reached, the printed step 5 gives the local cluster nothing.",
    {
        eq(_alloc(0), 0): "the gateway of the neighbour is used up: the minimum of 20, 3, 0 and 5",
        lt(_alloc(0), 10): "though the local benefit is 10",
    },
)

# ------------------------------------------------------------------ the period

numerator = sp.Function("u", integer=True, nonnegative=True)
denominator, multiple = (sp.Function(name, integer=True, positive=True) for name in ("v", "q"))
rate = sp.Function("alpha", nonnegative=True)
T = sp.Symbol("T_p", integer=True, positive=True)
_lcm = steps.exact_function("lcm", lambda *values: sp.ilcm(*values))
_RATIONAL = assume(Every(eq(rate(j), numerator(j) / denominator(j)), j, 1, n), "alpha = u/v")
_COMMON = assume(Every(eq(T, denominator(j) * multiple(j)), j, 1, n), "T_p is a multiple of all v")


@statement("S.Tp", [_RATIONAL, _COMMON])
def show_period(
    counts: Any = Every(eq(rate(j) * T, numerator(j) * multiple(j)), j, 1, n),
    row: Any = eq(
        sp.Sum(rate(i) * price_of_work(i) * T, (i, 1, n)) / T,
        sp.Sum(rate(i) * price_of_work(i), (i, 1, n)),
    ),
    example: Any = eq(_lcm(4, 6, 10), 60),
) -> list[Line]:
    """With T_p = lcm of the denominators every route has a whole number alpha T_p of load units."""
    return [
        show(counts, "u q is whole", {_RATIONAL: T, _COMMON: numerator(j) / denominator(j)}),
        identity(row, "and the period changes no row of (1)-(4)"),
        steps.compute(example, "an example"),
    ]


byte, unit, effort, time = sp.symbols("byte unit work time", positive=True)
_alpha, _delta, _w, _s, _period = sp.symbols("alpha delta w s T_p", positive=True)
_DIMENSIONS = {_alpha: unit / time, _delta: byte / unit, _w: effort / unit, _s: effort / time}
_DIMENSIONS[_period] = time


def _dimension_of(expression: sp.Expr) -> sp.Expr:
    letters = sorted(expression.free_symbols, key=str)
    return at_point(expression, {letter: _DIMENSIONS[letter] for letter in letters})


one_step_statement(
    "S.period",
    "In a period there are alpha T_p load units and alpha delta T_p bytes; (1) bounds the work.",
    {
        eq(_dimension_of(_alpha * _period), unit): "alpha: units per time",
        eq(_dimension_of(_alpha * _delta * _period), byte): "delta: bytes per unit, as in (2)",
        eq(_dimension_of(_alpha * _w / _s), 1): "w: work per unit, s: work per time",
    },
)
