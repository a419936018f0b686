"""Paper S: the reduction of its appendix, its linear program, heuristics and period.

Marchal, Yang, Casanova and Robert, "Steady-State Scheduling of Multiple Divisible Load
Applications on Wide-Area Distributed Computing Platforms".
"""

from typing import Any

import sympy as sp

from dlsim.theory import steps
from dlsim.theory.relations import Every, Relation, eq, ge, gt, le, lt
from dlsim.theory.statements import statement
from dlsim.theory.steps import Line, add_up, assume, generalise, identity, positive, show, take
from dlsim.theory.symbols import at_point, i, j, k, m, n, total

# ------------------------------------------------------------------ the reduction

#: The number of edges of a graph, which may be 0.
edges = sp.Symbol("m", integer=True, nonnegative=True)
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
_COMMON_LINK = assume(Every(le(_BOTH, 1), k, 1, edges), "(3) on the common link of an edge")
_OWN_LINK = assume(Every(le(connections(i), 1), i, 1, n), "(3) on a link of its own")
_BANDWIDTH = assume(Every(le(work_done(i), connections(i)), i, 1, n), "(4) with delta = g = 1")
_THROUGHPUT = assume(ge(total(work_done, n), least_throughput), "the throughput is at least B")
_VERTICES = [
    assume(Every(ge(n, end(k)), k, 1, edges), "an end of an edge is a vertex")
    for end in (tail, head)
]
_APART = eq(chosen(tail(k)) * chosen(head(k)), 0)
_INDEPENDENT = assume(Every(_APART, k, 1, edges), "the set is independent")
_ONCE = assume(Every(le(chosen(i), 1), i, 1, n), "each vertex is in the set at most once")


_ALLOCATION = [*_ON_ROUTES, _DIFFER, _COMMON_LINK, _OWN_LINK, _BANDWIDTH, _THROUGHPUT]


@statement("S.L1", [*_ALLOCATION, *_VERTICES, _INDEPENDENT, _ONCE])
def show_reduction(
    sum_: Any = eq(one + two, _a + _b),
    product: Any = eq(one * two, _a * _b),
    apart: Any = Every(eq(connections(tail(k)) * connections(head(k)), 0), k, 1, edges),
    zero_one: Any = Every(eq(connections(i) * (1 - connections(i)), 0), i, 1, n),
    size: Any = ge(total(connections, n), least_throughput),
    link: Any = Every(le(chosen(tail(k)) + chosen(head(k)), 1), k, 1, edges),
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


#: 1 where an edge ends at a vertex, else 0; links on a route.
ends_at = sp.Function("a", integer=True, nonnegative=True)
route_length = sp.Function("L", integer=True, nonnegative=True)
clusters, backbones = sp.symbols("K b", integer=True, positive=True)
max_connect, digits = sp.symbols("C d", integer=True, nonnegative=True)


def own_links(vertex: Any) -> sp.Expr:
    """Return one more than the number of edges of a vertex: the links of its route alone."""
    return sp.Sum(ends_at(k, vertex), (k, 1, edges)) + 1


_ENDS_BUT_TWO = sp.Sum(ends_at(k, i), (i, 1, n)) - 2
_TWO_ENDS = assume(Every(eq(_ENDS_BUT_TWO, 0), k, 1, edges), "an edge has two ends")
_SIMPLE = assume(Every(le(own_links(j), n), j, 1, n), "a vertex has at most n - 1 neighbours")
_OWN_LINKS = sp.Sum(own_links(j), (j, 1, n))


@statement("S.L1size", [_TWO_ENDS, _SIMPLE])
def show_size_of_reduction(
    links: Any = eq(edges + _OWN_LINKS, 3 * edges + n),
    table: Any = eq(sp.Sum(2 * own_links(j) - 1, (j, 1, n)), 4 * edges + n),
    few: Any = le(3 * edges + n, (3 * n**2 - n) / 2),
    short: Any = le(4 * edges + n, 2 * n**2 - n),
) -> list[Line]:
    """A graph gives a platform of n + 1 clusters, 3 m + n links and a table of 4 m + n entries."""
    both = eq(_OWN_LINKS - n, sp.Sum(_ENDS_BUT_TWO, (k, 1, edges)) + 2 * edges)
    swapped = steps.show_inductively(both, n, "the order of the two sums is changed")
    by = {swapped: 1, add_up(_TWO_ENDS, "added over all edges"): 1}
    ends = identity(eq(_OWN_LINKS, 2 * edges + n), "each edge is counted at both ends", by)
    most = {add_up(_SIMPLE, "added over all vertices"): 1, ends: 1}
    few_edges = positive(le(2 * edges, n * (n - 1)), "so there are at most n (n - 1)/2 edges", most)
    return [
        identity(links, "a common link per edge, and those of a route alone", {ends: 1}),
        identity(table, "(7): on a route the two kinds alternate", {ends: 2}),
        positive(few, "a polynomial in n", {few_edges: sp.Rational(3, 2)}),
        positive(short, "so is this", {few_edges: 2}),
    ]


_LINK = assume(le(total(connections, n), max_connect), "(3) on a link of n routes")
_DIGITS = assume(lt(max_connect, 2**digits), "max-connect has d binary digits")
_LENGTHS = assume(
    Every(le(route_length(j), backbones), j, 1, clusters**2), "a route uses each link once"
)


@statement("S.L1NP", [_LINK, _DIGITS, _LENGTHS])
def show_certificate(
    few: Any = Every(le(connections(j), max_connect), j, 1, n),
    short: Any = Every(lt(connections(j), 2**digits), j, 1, n),
    entries: Any = le(
        sp.Sum(6 + route_length(j), (j, 1, clusters**2)), clusters**2 * (6 + backbones)
    ),
) -> list[Line]:
    """The K^2 numbers of connections are a certificate: they are as short as max-connect."""
    counts = show(Every(ge(connections(j), 0), j, 1, n), "no number of connections is negative")
    room = [assume(ge(n, j), "j is one of the routes")]
    others = [
        add_up(counts, "nor is the sum of those before", 1, j - 1, room),
        add_up(counts, "nor that of those after", j + 1, n, room),
    ]
    most = show(few, "so none exceeds max-connect", {**dict.fromkeys(others, 1), _LINK: 1})
    why = "(6a) to (6e) hold alpha five times, beta once and once per link of the route"
    return [
        most,
        show(short, "and none has more digits", {most: 1, _DIGITS: 1}),
        positive(entries, why, {add_up(_LENGTHS, "added over all pairs of clusters"): 1}),
    ]


# ------------------------------------------------------------------ the linear program

#: Work and connections by route in the relaxed program; size of a unit and bandwidth there.
load, routes = (
    sp.Function(name, nonnegative=True) for name in (r"\tilde{\alpha}", r"\tilde{\beta}")
)
size, band = (sp.Function(name, positive=True) for name in ("delta", "g"))
cluster_speed, gateway = sp.symbols("s_k g_k", nonnegative=True)
#: Work and data of a unit at a cluster: 0 on routes that do not end there, or touch it.
work_at, data_at = (sp.Function(name, nonnegative=True) for name in "wd")
capacity = sp.Symbol("C", integer=True, nonnegative=True)


def rounded_load(index: Any) -> sp.Expr:
    """Return the load of a route by LPR: what the connections rounded down can carry."""
    return sp.Min(load(index), sp.floor(routes(index)) * band(index) / size(index))


def cluster_row(done: Any, of_a_unit: Any, most: Any) -> Relation:
    """Return (6b) or (6c): no more work than the speed, no more data than the gateway carries."""
    return le(sp.Sum(done(i) * of_a_unit(i), (i, 1, n)), most)


_WORK_ROW = assume(cluster_row(load, work_at, cluster_speed), "(6b) of the relaxed program")
_DATA_ROW = assume(cluster_row(load, data_at, gateway), "(6c) of the relaxed program")
_LINK_ROW = assume(le(total(routes, n), capacity), "(6d) of the relaxed program")


@statement("S.LPR", [_WORK_ROW, _DATA_ROW, _LINK_ROW])
def show_rounding_down(
    fewer: Any = Every(le(sp.floor(routes(j)), routes(j)), j, 1, n),
    some: Any = Every(ge(sp.floor(routes(j)), 0), j, 1, n),
    less: Any = Every(le(rounded_load(j), load(j)), j, 1, n),
    rest: Any = Every(ge(rounded_load(j), 0), j, 1, n),
    carried: Any = Every(le(rounded_load(j) * size(j), sp.floor(routes(j)) * band(j)), j, 1, n),
    work_row: Any = cluster_row(rounded_load, work_at, cluster_speed),
    data_row: Any = cluster_row(rounded_load, data_at, gateway),
    link_row: Any = le(sp.Sum(sp.floor(routes(i)), (i, 1, n)), capacity),
) -> list[Line]:
    """Connections rounded down, with the load that they carry, satisfy (6): no row grows."""
    down, _ = steps.rounding(sp.floor(routes(j)))
    smaller = steps.extreme(less.relation, "a minimum is at most its parts")
    fits = sp.floor(routes(j)) * band(j) / size(j)
    link = steps.extreme(le(rounded_load(j), fits), "also the second part")
    nothing = steps.extreme(rest.relation, "neither part is negative")
    least = positive(some.relation, "the floor of what is not negative")
    bounded = positive(carried.relation, "times delta: (6e)", {link: size(j)})
    rows = [generalise(line, j, 1, n) for line in (down, least, smaller, nothing, bounded)]
    by_work = {add_up(rows[2], "times the work", weight=work_at(j)): 1, _WORK_ROW: 1}
    by_data = {add_up(rows[2], "times the data", weight=data_at(j)): 1, _DATA_ROW: 1}
    by_link = {add_up(rows[0], "added over all routes"): 1, _LINK_ROW: 1}
    return [
        *rows,
        positive(work_row, "(6b)", by_work),
        positive(data_row, "(6c): what is sent and received", by_data),
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
_ROOM = assume(ge(whole_cap - fixed, relaxed), "the relaxed program leaves room for it")


@statement("S.LPRR", [_ROOM])
def show_rounding_up(
    fits: Any = ge(whole_cap, fixed + sp.ceiling(relaxed)),
    real: Any = gt(at_point(sp.ceiling(cap), {cap: sp.Rational(5, 2)}), sp.Rational(5, 2)),
    none: Any = eq(at_point(relaxed - sp.floor(relaxed), {relaxed: 0}), 0),
) -> list[Line]:
    """Rounding a relaxed number of connections up keeps a link feasible if its limit is whole."""
    both = steps.ceiling(whole_cap - fixed, relaxed, "the number that is left is whole")
    up = steps.follows(both, _ROOM, "so there is room for the ceiling")
    return [
        positive(fits, "on the link", {up: 1}),
        steps.compute(real, "a limit of 5/2, as Table 2 draws it, must be floored first"),
        steps.compute(none, "a rest of 0 is rounded up with probability 0, so it is set to 0"),
    ]


#: Bandwidth to a neighbour of cluster k, its gateway and speed; size and work of a load unit.
way, other_gateway, other_speed = (sp.Function(name, nonnegative=True) for name in ("bw", "g", "s"))
unit_size, unit_work = sp.symbols("delta w", positive=True)
chosen_peer = sp.Symbol("p", integer=True, positive=True)
amount = sp.Symbol("alloc", real=True)


def benefit(peer: Any) -> sp.Expr:
    """Return what one connection to a neighbour brings (step 4 of G)."""
    by_link = (gateway, way(peer), other_gateway(peer))
    return sp.Min(*(part / unit_size for part in by_link), other_speed(peer) / unit_work)


_LOCAL = cluster_speed / unit_work
_LOCAL_IS_BEST = assume(Every(ge(_LOCAL, benefit(j)), j, 1, n), "step 4 selects the own cluster")
_LARGEST = assume(eq(amount, benefit(chosen_peer)), "step 5: the largest benefit, of neighbour p")
_IS_PEER = assume(ge(n, chosen_peer), "p is one of the neighbours")
_USED_UP = assume(eq(gateway, 0), "the own gateway is used up")
_HERE, _THERE, _BETWEEN, _OWN, _OTHER = sp.symbols("g_k g_m g_km s_k s_m", nonnegative=True)
_FULL: dict[sp.Symbol, object] = {_HERE: 1, _THERE: 1, _BETWEEN: 1, _OWN: 1, _OTHER: 0}


@statement("S.G5", [_LOCAL_IS_BEST, _LARGEST, _IS_PEER, _USED_UP])
def show_step_5(
    fits: Any = le(amount, _LOCAL),
    nothing: Any = eq(amount, 0),
    unchanged: Any = eq(cluster_speed - amount * unit_work, cluster_speed),
    meant: Any = gt(
        at_point(sp.Min(_THERE, _BETWEEN, _HERE, _OWN), _FULL),
        at_point(sp.Min(_HERE, _BETWEEN, _THERE, _OTHER), _FULL),
    ),
) -> list[Line]:
    """The printed step 5 allocates what fits, and nothing once no neighbour can be reached."""
    best = take(_LOCAL_IS_BEST, chosen_peer, "for this neighbour", [_IS_PEER])
    first_part = le(benefit(chosen_peer), gateway / unit_size)
    bound = steps.extreme(first_part, "a minimum is at most its parts")
    below = positive(
        le(amount, 0), "so it is 0", {_LARGEST: -1, bound: 1, _USED_UP: -1 / unit_size}
    )
    part = steps.extreme(ge(benefit(chosen_peer), 0), "no part is negative")
    above = positive(ge(amount, 0), "so the amount is not", {_LARGEST: 1, part: 1})
    zero = steps.squeeze(nothing, below, above, "so nothing is allocated")
    why = "step 6 changes nothing, so G repeats steps 2 to 7 for ever"
    return [
        positive(fits, "the own benefit is the largest", {_LARGEST: -1, best: 1}),
        zero,
        identity(unchanged, why, {zero: -unit_work}),
        steps.compute(meant, "the work of others on C^k, as the prose says, may be more"),
    ]


# ------------------------------------------------------------------ the period

numerator = sp.Function("u", integer=True, nonnegative=True)
denominator, multiple = (sp.Function(name, integer=True, positive=True) for name in ("v", "q"))
rate = sp.Function("alpha", nonnegative=True)
T = sp.Symbol("T_p", integer=True, positive=True)
_RATIONAL = assume(Every(eq(rate(j), numerator(j) / denominator(j)), j, 1, n), "alpha = u/v")
_COMMON = assume(Every(eq(T, denominator(j) * multiple(j)), j, 1, n), "T_p is a multiple of all v")
_WORK = assume(cluster_row(rate, work_at, cluster_speed), "(1) of a cluster")
_DATA = assume(cluster_row(rate, data_at, gateway), "(2) of a cluster")


def whole_units(index: Any) -> sp.Expr:
    """Return the load units of a route in a period, a whole number."""
    return numerator(index) * multiple(index)


@statement("S.Tp", [_RATIONAL, _COMMON, _WORK, _DATA])
def show_period(
    counts: Any = Every(eq(rate(j) * T, whole_units(j)), j, 1, n),
    work: Any = cluster_row(whole_units, work_at, cluster_speed * T),
    data: Any = cluster_row(whole_units, data_at, gateway * T),
) -> list[Line]:
    """In T_p = lcm of the denominators a route has a whole number alpha T_p of load units."""
    units = show(counts, "u q is whole", {_RATIONAL: T, _COMMON: numerator(j) / denominator(j)})
    by_work = {add_up(units, "times the work", weight=work_at(j)): 1, _WORK: T}
    by_data = {add_up(units, "times the data", weight=data_at(j)): 1, _DATA: T}
    return [
        units,
        positive(work, "(1) times T_p bounds the work of a period", by_work),
        positive(data, "(2) times T_p bounds its bytes, delta for each unit", by_data),
    ]
