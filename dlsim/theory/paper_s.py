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
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import n, positive, y, z

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


@statement("S.L1", {"indices as printed": {"shift": 0}, "two connections a link": {"cap": 2}})
def _(d: Derivation, shift: int = 1, cap: int = 1) -> None:
    for size in (1, 2, 3, 4):
        every = list(graphs(size))
        why = f"every route of all {len(every)} graphs is a path (an empty one is a direct link)"
        holds = all(is_path(route(v, g, shift), v) for g in every for v in range(1, size + 1))
        d.exact(holds, rf"L_{{0,i}}: C^0 \to C^i,\ n = {size}", why)
    path = ((1, 2), (2, 3))
    why = "printed, $l_1$ is defined twice and $l_2$ not at all: no path already for 3 vertices"
    holds = not is_path(route(2, path, 0), 2) and ("?", "?") not in route(2, path, 1)
    d.exact(holds, r"l^i_1 = (C^0, Q^a_{k_1}) \ne (Q^b_{k_1}, Q^a_{k_2}) = l^i_1", why)
    shared = [
        (u in (a, c)) and (v in (a, c)) for a, c, u, v in _coincidences(4) if a != c and u != v
    ]
    edge = [{a, c} == {u, v} for a, c, u, v in _coincidences(4) if a != c and u != v]
    d.exact(
        shared == edge and True in edge and False in edge,
        r"k \in Route(u)\cap Route(v) \iff e_k = \{u,v\}",
        "for any graph: all coincidences of the four names a, b (ends of e_k), u, v with "
        r"$a \ne b$, $u \ne v$",
    )
    ends = sp.symbols("beta_u beta_v", nonnegative=True)
    why = (
        r"so the row (3) of $l_k^{common}$, $e_k=(V_u,V_v)$, is $\beta_u+\beta_v \le 1$; "
        r"an own link gives $\beta_i \le 1$: the integer program of independent sets"
    )
    d.equal(cap - sum(ends), 1 - ends[0] - ends[1], why, r"\text{cap}-\sum\beta")
    work, slack = sp.symbols("alpha_i beta_i", nonnegative=True)
    d.assume(slack - work, r"(4) with $\delta = g_{0,i} = 1$", strict=False)
    why = (
        r"hence $t = \sum\alpha_{0,i} \le \sum\beta_{0,i} \le$ the size of an independent set, "
        r"as $s_0 = 0$ leaves nothing to $C^0$; only $t\pi_k \le \alpha_k$ with $\pi_k > 0$ binds"
    )
    d.nonnegative(slack - work, y, why, {y: slack - work})
    count = positive("|V'|")
    why = (
        r"and $\alpha=\beta=1$ on an independent set $V'$ is valid: (1) and (2) at $C^i$ read "
        r"$1 \le 1$, (2) at $C^0$ reads $|V'| \le n$"
    )
    d.nonnegative((count + z) - count, z, why, show="n - |V'|")
    for size in (1, 2, 3, 4):
        every = list(graphs(size))
        why = f"all {len(every)} labelled graphs enumerated"
        holds = all(best_connections(size, g) == independence_number(size, g) for g in every)
        d.exact(holds, rf"\max\sum\beta_{{0,i}} = \text{{independence number}},\ n = {size}", why)


@statement("S.period", {"units are bytes": {"size": 2}})
def _(d: Derivation, size: int = 1) -> None:
    byte, unit, work, time = positive("byte unit work time")
    alpha, delta, cost, speed = unit / time, byte / unit, work / unit, work / time
    d.equal(alpha * time * delta ** (size - 1), unit, r"dimension of load units", r"[\alpha T_p]")
    d.equal(alpha * delta * time, byte, r"bytes: the terms of (2)", r"[\alpha\delta T_p]")
    d.correct(alpha * delta * time, unit, "the text calls it load units")
    why = r"both sides of Equation 1 have one dimension"
    d.equal(alpha * cost / speed, 1, why, r"[\alpha w/s]")
    d.correct(alpha * delta / speed, 1, r"the left side of Equation 2 and $s_k$ have not")


@statement("S.G5", {"a reachable neighbour": {"gateway": 1}})
def _(d: Derivation, gateway: int = 0) -> None:
    local, remote = Fraction(10), min(Fraction(20), Fraction(3), Fraction(gateway), Fraction(5))
    why = "the local cluster is selected and given nothing: the state repeats for ever"
    holds = local > remote and remote == 0
    d.exact(holds, r"\text{benefit}_k = 10,\ \text{alloc} = \max_{m\ne k}\min(\dots) = 0", why)
    best = sp.Symbol("benefit_m", nonnegative=True)
    chosen = best + z
    why = (
        r"local is chosen only if its benefit is maximal, so alloc, the largest remote "
        r"benefit, is no larger"
    )
    d.nonnegative(chosen - best, z, why, show=r"\text{benefit}_k-\text{alloc}")


@statement("S.LPRR", {"cap 2.5 is feasible": {"cap": Fraction(5, 2)}})
def _(d: Derivation, cap: Fraction = Fraction(3)) -> None:
    fixed = sp.Symbol("v", integer=True, nonnegative=True)
    spare = sp.Symbol("k", integer=True, nonnegative=True)
    part = sp.Symbol("x", nonnegative=True)
    why = r"an integer cap leaves an integer $k$ to $\tilde\beta$"
    d.equal((fixed + spare) - fixed, spare, why, r"\text{cap}-v")
    why = r"for integer $k$ and $\tilde\beta = k-x$, $x \ge 0$"
    holds = sp.ceiling(spare) == spare and sp.ceiling(spare - part) == spare + sp.ceiling(-part)
    d.exact(holds, r"\lceil k-x\rceil = k+\lceil -x\rceil", why)
    why = r"hence $\lceil\tilde\beta\rceil \le k$"
    d.exact(sp.ceiling(-part).is_nonpositive, r"\lceil -x\rceil \le 0", why)
    why = "a link used to its limit"
    d.exact(ceil(cap) <= cap, r"\tilde\beta = \text{cap} = 3:\ \lceil 3\rceil \le 3", why)
    why = "a real cap, as Table 2 draws it, must be floored first"
    holds = ceil(Fraction(5, 2)) > Fraction(5, 2)
    d.exact(holds, r"\tilde\beta = \text{cap} = 5/2:\ \lceil 5/2\rceil = 3 > 5/2", why)
    left = [Fraction(0), Fraction(0)]
    why = "routes are left and none may be chosen: stop, and set the rest to 0"
    d.exact(
        not [value for value in left if value != 0], r"\{\tilde\beta_{k,l} \ne 0\} = \emptyset", why
    )


def fallbacks(limit: int, printed: bool) -> int:
    """Return how often a request that is always late may fall back (paper B, eq. 7)."""
    done = 0
    while done <= limit if printed else done < limit:
        done += 1
    return done


@statement("B.7", {"as printed": {"printed": True}})
def _(d: Derivation, printed: bool = False) -> None:
    for limit in range(6):
        why = f"{limit} fallbacks with the strict rule"
        d.exact(fallbacks(limit, printed) == limit, rf"N_{{max}} = {limit}", why)
    d.exact(fallbacks(0, True) == 1, "N_{max} = 0", "the printed rule allows one fallback")


@statement("B.Gops", {"5 minutes": {"least": Fraction(300)}})
def _(d: Derivation, least: Fraction = Fraction(5)) -> None:
    rate = Fraction(300)
    d.exact(Fraction(1500) / rate == least, r"1500/300 = 5\,\text{s}", "the printed lower end")
    d.exact(90_000 / rate == 5 * 60, r"90\,000/300 = 300\,\text{s}", "what 5 minutes need")
    d.exact(1_080_000 / rate == 60 * 60, r"1\,080\,000/300 = 3600\,\text{s}", "the upper end")


def by_difference(times: tuple[int, ...], target: int) -> int:
    """Return the server chosen by rule (4) of paper B, lowest index first."""
    met = [i for i, time in enumerate(times) if target - time >= 0]
    pool = met or range(len(times))
    return min(pool, key=lambda i: abs(target - times[i]))


def slowest_in_time(times: tuple[int, ...], target: int, fallback: Any = min) -> int:
    """Return the slowest server that is in time, otherwise the fastest of all."""
    met = [time for time in times if time <= target]
    return times.index(max(met) if met else fallback(times))


@statement("B.4", {"slowest when none is in time": {"fallback": max}})
def _(d: Derivation, fallback: Any = min) -> None:
    target, fast = sp.symbols("T_target T_S", real=True)
    slow = fast + z
    why = "in time, a slower server has the smaller Diff"
    d.nonnegative((target - fast) - (target - slow), z, why)
    why = r"none in time: $|Diff| = T_S-T_{target}$ is smaller for the faster"
    d.nonnegative((slow - target) - (fast - target), z, why)
    wider = sp.Symbol("T_target'", real=True)
    why = (
        r"a larger Opt raises $T_{target}$, so servers in time stay in time: the chosen $T_S$ "
        "does not fall"
    )
    d.nonnegative((target + y) - target, y, why, show=f"{wider}-T_{{target}}")
    cases = list(product(range(1, 5), repeat=4))
    d.exact(
        all(
            by_difference(times, limit) == slowest_in_time(times, limit, fallback)
            for times in cases
            for limit in range(6)
        ),
        rf"{len(cases) * 6}\ \text{{cases}}",
        "all times 1 to 4 on four servers, all targets 0 to 5",
    )


@statement("M.names", {"a duration": {"start": 0}})
def _(d: Derivation, start: Any = 1) -> None:
    release, work = positive("r w")
    instant = (n * release + work) / n
    d.equal(instant, start * release + work / n, r"I (3) with equal releases $r$", "e")
    d.correct(instant, work / n, "the duration from $r$ on is another number")
