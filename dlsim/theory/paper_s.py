"""Paper S's reduction, and small corrections to papers S and B.

Graphs are lists of edges over vertices 1..n. `dlsim.steady.reduction` solves the
instance as a mixed program; here its rows are derived and enumerated without a solver.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import ceil
from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import computed, differ, eq, ge, gt, le, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import j, n, positive, y, z

Edges = tuple[tuple[int, int], ...]


def graphs(vertices: int) -> Iterator[Edges]:
    """Yield every labelled graph on vertices 1..n."""
    pairs = list(combinations(range(1, vertices + 1), 2))
    for chosen in product((False, True), repeat=len(pairs)):
        yield tuple(pair for pair, take in zip(pairs, chosen, strict=True) if take)


def route(vertex: int, edges: Edges, shift: int = 1) -> list[tuple[Any, Any]]:
    """Return the links from cluster 0 to a cluster, by the routers they join."""
    common = [k for k, edge in enumerate(edges) if vertex in edge]
    if not common:
        return [("C", f"C{vertex}")]
    own: dict[int, tuple[Any, Any]] = {1: ("C", (common[0], "a"))}
    for index in range(1, len(common)):
        own[index + shift] = ((common[index - 1], "b"), (common[index], "a"))
    own[len(common) + 1] = ((common[-1], "b"), f"C{vertex}")
    links: list[tuple[Any, Any]] = []
    for index, k in enumerate(common, start=1):
        links += [own.get(index, ("?", "?")), ((k, "a"), (k, "b"))]
    return [*links, own[len(common) + 1]]


def is_path(links: list[tuple[Any, Any]], vertex: int) -> bool:
    """Tell whether links lead from cluster 0 to a cluster without a break."""
    joined = all(a[1] == c[0] for a, c in pairwise(links))
    return joined and links[0][0] == "C" and links[-1][1] == f"C{vertex}"


def independence_number(vertices: int, edges: Iterable[tuple[int, int]]) -> int:
    """Return the size of a largest set of vertices without an edge, by enumeration."""
    taken = [set(edge) for edge in edges]
    sizes = range(vertices, -1, -1)
    everyone = range(1, vertices + 1)
    return next(
        size
        for size in sizes
        if any(not any(e <= set(c) for e in taken) for c in combinations(everyone, size))
    )


def best_connections(vertices: int, edges: Edges) -> int:
    """Return the most connections from cluster 0 that no link refuses (max-connect 1)."""
    links = {v: {(v, link) if link[0] == "C" else link for link in route(v, edges)} for v in
             range(1, vertices + 1)}  # fmt: skip
    return max(
        sum(beta)
        for beta in product((0, 1), repeat=vertices)
        if all(
            not links[i] & links[j]
            for i, j in combinations(links, 2)
            if beta[i - 1] and beta[j - 1]
        )
    )


def _coincidences(names: int) -> Iterator[tuple[int, ...]]:
    """Yield every pattern of equalities among a number of names."""
    for pattern in product(range(names), repeat=names):
        if all(value <= max(pattern[:at], default=-1) + 1 for at, value in enumerate(pattern)):
            yield pattern


def _shares_a_link() -> int:
    """Count the coincidences of a, b (ends of e_k), u, v in which the lemma would fail."""
    cases = [(a, c, u, v) for a, c, u, v in _coincidences(4) if a != c and u != v]
    return sum(({u, v} <= {a, c}) != ({a, c} == {u, v}) for a, c, u, v in cases)


def _over_all(size: int, fails: Any) -> int:
    return sum(fails(graph) for graph in graphs(size))


broken = computed("broken", lambda size: _over_all(
    size, lambda g: any(not is_path(route(v, g), v) for v in range(1, size + 1))))  # fmt: skip
disagree = computed("disagree", lambda size: _over_all(
    size, lambda g: best_connections(size, g) != independence_number(size, g)))  # fmt: skip
printed_ = computed("printed", lambda vertex: is_path(route(vertex, ((1, 2), (2, 3)), 0), vertex))
exceptions = computed("exceptions", lambda names: _shares_a_link())
excluded = computed("excluded", lambda u, v: (u + v <= 1) != (not (u and v)))
Qa, Qb, tail, head, wrong = map(sequence, ("Q^a", "Q^b", "tail", "head", "tail'"))
work, conns = sequence("alpha", nonnegative=True), sequence("beta", nonnegative=True)


@statement(
    "S.L1",
    {"indices as printed": {tail(j): Qb(j)},
     "two connections a link": {13: le(total(conns, n), total(work, n))}},
    [eq(tail(j + 1), Qb(j)), eq(head(j), Qa(j)), differ(wrong(j + 1), Qb(j)), eq(exceptions(4), 0),
     *(eq(excluded(u, v), 0) for u in (0, 1) for v in (0, 1)), eq(printed_(2), 0),
     *(claim for size in (1, 2, 3, 4) for claim in (eq(broken(size), 0), eq(disagree(size), 0))),
     under(le(total(work, n), total(conns, n)), le(work(j), conns(j), over=j)),
     under(ge(n, total(conns, n)), ge(1, conns(j), over=j))],
    where={tail(j): Qb(j - 1), head(j): Qa(j), wrong(j): Qb(j)},
    witness={work: lambda i: sp.S.Zero, conns: lambda i: sp.S.Zero},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "own link $j+1$ begins where shared link $k_j$ ends, $(Q^a_{k_j}, Q^b_{k_j})$")
    d.show(1, "and own link $j$ ends where shared link $k_j$ begins: a path, for any degree")
    d.show(2, "with the printed index it would begin elsewhere")
    why = (
        r"$k \in Route(u)\cap Route(v) \iff e_k = \{u,v\}$ for any graph: all coincidences of names"
    )
    d.compute(3, why)
    for goal in (4, 5, 6, 7):
        d.compute(goal, r"so row (3), $\beta_u+\beta_v \le 1$, excludes just both ends of an edge")
    d.compute(8, "printed, no path to vertex 2 of the path graph 1-2-3")
    for goal in range(9, 17):
        d.compute(goal, "counted over all labelled graphs of up to 4 vertices")
    limit = d.given(0, r"(4) with $\delta = g_{0,i} = 1$", goal=17)
    d.adds(limit, j, n, "so no schedule carries more than the connections allow")
    single = d.given(0, r"an independent set $V'$, $\alpha = \beta = 1$ on it, is allowed", goal=18)
    d.adds(single, j, n, r"(2) at $C^0$ reads $|V'| \le n$; (1) and (2) elsewhere $1 \le 1$")


byte, unit, effort, time = positive("byte unit work time")
alpha, delta, price, speed = sp.symbols("alpha delta w s", positive=True)


@statement(
    "S.period", {"units are bytes": {delta: unit / byte}},
    [eq(alpha * time, unit), eq(alpha * delta * time, byte), differ(alpha * delta * time, unit),
     eq(alpha * price / speed, 1), differ(alpha * delta / speed, 1)],
    where={alpha: unit / time, delta: byte / unit, price: effort / unit, speed: effort / time},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "dimension of load units")
    d.show(1, "bytes: the terms of (2)")
    d.show(2, "the text calls it load units")
    d.show(3, "both sides of Equation 1 have one dimension")
    d.show(4, r"the left side of Equation 2 and $s_k$ have not")


alloc = computed("alloc", lambda gateway: min(20, 3, gateway, 5))
local, best = sp.Symbol("benefit_k", nonnegative=True), sp.Symbol("alloc", nonnegative=True)


@statement(
    "S.G5", {"a reachable neighbour": {0: eq(alloc(1), 0)}},
    [eq(alloc(0), 0), lt(alloc(0), 10), under(le(best, local), ge(local, best))],
)  # fmt: skip
def _(d: Derivation) -> None:
    d.compute(0, "no gateway left: the local cluster is given nothing")
    d.compute(1, "though its benefit, 10, is the largest: the state repeats for ever")
    d.given(0, "local is chosen only if its benefit is maximal, so alloc is no larger", goal=2)


spare, fixed = (sp.Symbol(name, integer=True, nonnegative=True) for name in "kv")
part = sp.Symbol("x", nonnegative=True)
up = computed("up", ceil)
chosen = computed("chosen", lambda routes: len([value for value in [0] * routes if value != 0]))


@statement(
    "S.LPRR", {"cap 2.5 is feasible": {2: le(up(sp.Rational(5, 2)), sp.Rational(5, 2))}},
    [le(fixed + sp.ceiling(spare - part), fixed + spare), le(up(3), 3),
     gt(up(sp.Rational(5, 2)), sp.Rational(5, 2)), eq(chosen(2), 0)],
)  # fmt: skip
def _(d: Derivation) -> None:
    why = r"an integer cap leaves an integer $k$ to $\tilde\beta = k-x$"
    d.show(0, why, -sp.ceiling(-part))
    d.compute(1, "a link used to its limit")
    d.compute(2, "a real cap, as Table 2 draws it, must be floored first")
    d.compute(3, "routes are left and none may be chosen: stop, and set the rest to 0")


def fallbacks(limit: int, printed: bool) -> int:
    """Return how often a request that is always late may fall back (paper B, eq. 7)."""
    done = 0
    while done <= limit if printed else done < limit:
        done += 1
    return done


strict, printed = (computed(name, lambda limit, flag=flag: fallbacks(limit, flag))
                   for name, flag in (("strict", False), ("printed rule", True)))  # fmt: skip


@statement(
    "B.7",
    {"as printed": {0: eq(printed(0), 0)}},
    [*(eq(strict(limit), limit) for limit in range(6)), eq(printed(0), 1)],
)
def _(d: Derivation) -> None:
    for goal in range(6):
        d.compute(goal, f"{goal} fallbacks with the strict rule")
    d.compute(6, "the printed rule allows one")


seconds = computed("seconds", lambda gops: Fraction(1000) * gops / 300)


@statement(
    "B.Gops",
    {"5 minutes": {0: eq(seconds(sp.Rational(3, 2)), 300)}},
    [eq(seconds(sp.Rational(3, 2)), 5), eq(seconds(90), 5 * 60), eq(seconds(1080), 60 * 60)],
)
def _(d: Derivation) -> None:
    d.compute(0, "the printed lower end")
    d.compute(1, "what 5 minutes need")
    d.compute(2, "the upper end")


def by_difference(times: tuple[int, ...], target: int) -> int:
    """Return the server chosen by rule (4) of paper B, lowest index first."""
    met = [i for i, time in enumerate(times) if target - time >= 0]
    pool = met or range(len(times))
    return min(pool, key=lambda i: abs(target - times[i]))


def slowest_in_time(times: tuple[int, ...], target: int, fallback: Any = min) -> int:
    """Return the slowest server that is in time, otherwise the fastest of all."""
    met = [time for time in times if time <= target]
    return times.index(max(met) if met else fallback(times))


differences = computed("differences", lambda most: sum(
    by_difference(times, limit) != slowest_in_time(times, limit)
    for times in product(range(1, most + 1), repeat=4) for limit in range(most + 2)))  # fmt: skip
target, wider, fast, slow = sp.symbols("T_target T_target' T_1 T_2", real=True)


@statement(
    "B.4",
    {"slowest when none is in time": {1: le((slow - target) ** 2, (fast - target) ** 2)}},
    [under(le((target - slow) ** 2, (target - fast) ** 2), ge(target, slow)),
     under(le((fast - target) ** 2, (slow - target) ** 2), ge(fast, target)),
     under(ge(wider, slow), ge(wider, target), ge(target, slow)), eq(differences(4), 0)],
    [ge(slow, fast)], witness=dict.fromkeys((target, wider, fast, slow), 1),
)  # fmt: skip
def _(d: Derivation) -> None:
    order = d.given(0, r"$T_2 \ge T_1$")
    in_time, late = d.given(1, "both in time"), d.given(1, "none in time", goal=1)
    given = {y: order, z: in_time}
    d.show(0, "the slower has the smaller Diff, here squared", y * (2 * z + y), given)
    given = {y: order, z: late}
    d.show(1, r"the faster has the smaller $|Diff|$", y * (2 * z + y), given)
    more = d.given(1, r"a larger Opt raises $T_{target}$", goal=2)
    d.show(2, "so it stays in time: the chosen time does not fall", y + z, {y: more, z: in_time})
    d.compute(
        3, "all times 1 to 4 on four servers, all targets 0 to 5: the rule against its reading"
    )


release, duration = positive("r w")


@statement(
    "M.names",
    {"a duration": {0: eq((n * release + duration) / n, duration / n)}},
    [
        eq((n * release + duration) / n, release + duration / n),
        differ((n * release + duration) / n, duration / n),
    ],
)
def _(d: Derivation) -> None:
    d.show(0, "I (3) with equal releases $r$")
    d.show(1, "the duration from $r$ on is another number")
