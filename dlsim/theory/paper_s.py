"""Paper S's reduction, small corrections to papers S and B, and herding in paper B.

A graph is two sequences, the ends u_k and v_k of edge k. `dlsim.steady.reduction` solves the
instance as a mixed program; here its rows are derived without a solver.
"""

from itertools import product
from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import computed, differ, eq, ge, gt, le, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import counts, j, k, n, positive, t, u, x, y, z

Qa, Qb, tail, head, wrong = map(sequence, ("Q^a", "Q^b", "tail", "head", "tail'"))
#: Work and connections from cluster 0 to the clusters, and a set of vertices as zeros and ones.
work, conns, chosen = (sequence(name, nonnegative=True) for name in ("alpha", "beta", "x"))
#: The ends of edge k, that is the clusters whose routes hold its link.
one_end, other_end = (sequence(name, integer=True, positive=True) for name in "uv")
a, b, vertex, other = sp.symbols("a b u v", integer=True, positive=True)
_shared = (
    eq((vertex - a) * (vertex - b), 0), eq((other - a) * (other - b), 0), gt(vertex, other),
)  # fmt: skip
_row = le(conns(one_end(k)) + conns(other_end(k)), 1, over=k)
_free = eq(chosen(one_end(k)) * chosen(other_end(k)), 0, over=k)


def _whole(what: Any) -> Any:
    return eq(what(j) * (1 - what(j)), 0, over=j)


@statement(
    "S.L1",
    {"indices as printed": {tail(j): Qb(j)},
     "two connections a link": {7: le(chosen(one_end(k)) + chosen(other_end(k)), 0)}},
    [eq(tail(j + 1), Qb(j)), eq(head(j), Qa(j)), differ(wrong(j + 1), Qb(j)),
     under(eq(vertex + other, a + b), *_shared), under(eq(vertex * other, a * b), *_shared),
     under(eq(conns(one_end(k)) * conns(other_end(k)), 0), _row, _whole(conns)),
     under(le(total(work, n), total(conns, n)), le(work(j), conns(j), over=j)),
     under(le(chosen(one_end(k)) + chosen(other_end(k)), 1), _free, _whole(chosen)),
     under(ge(n, total(chosen, n)), _whole(chosen)),
     under(eq(total(work, n), total(chosen, n)), le(work(j), conns(j), over=j),
         ge(total(chosen, n), total(conns, n)), ge(total(work, n), total(chosen, n)))],
    where={tail(j): Qb(j - 1), head(j): Qa(j), wrong(j): Qb(j)},
    witness={a: 1, b: 2, vertex: 2, other: 1,
     **dict.fromkeys((work, conns, chosen), lambda i: sp.S.Zero)},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "own link $j+1$ begins where shared link $k_j$ ends, $(Q^a_{k_j}, Q^b_{k_j})$")
    d.show(1, "and own link $j$ ends where shared link $k_j$ begins: a path, for any degree")
    d.show(2, "with the printed index it would begin elsewhere")
    first, second, _ = d.hypotheses({
        0: r"Lemma 1: if $k \in Route(u)$, $u$ is one of the ends $a$, $b$ of $e_k$",
        1: r"and if $k \in Route(v)$, so is $v$", 2: "another vertex",
    }, goal=3)  # fmt: skip
    by = {first: 1 / (vertex - other), second: -1 / (vertex - other)}
    d.show(3, "then $u$, $v$ are these ends: the same sum", by=by)
    d.show(4, "and the same product", by={d[3]: vertex, first: -1})
    whys = {0: "(3) for the link of edge $k$, by Lemma 1", 1: "whole connections, one a link"}
    row, whole = d.hypotheses(whys, goal=5)
    ends_ = one_end(k), other_end(k)
    here, there = map(conns, ends_)
    open_1, open_2 = (d.at(whole, {j: end}) for end in ends_)
    form, by = here * there * y, {open_1: -there, open_2: -here}
    d.show(le(here * there, 0), "if both were opened", form, {y: row}, by)
    d.meet(5, "so the connections that are opened lead to an independent set, in any graph")
    limit = d.given(0, r"(4) with $\delta = g_{0,i} = 1$", goal=6)
    d.adds(limit, j, n, "and no schedule carries more than the size of that set")
    free, whole = d.hypotheses({0: "conversely, an independent set", 1: "as 0 and 1"}, goal=7)
    single = d.show(ge(1, chosen(j)), "each at most once", (1 - chosen(j)) ** 2, by={whole: 1})
    either = dict(zip((y, z), (d.at(single, {j: end}) for end in ends_), strict=True))
    d.show(7, r"with $\alpha = \beta = 1$ on it, (3) holds", y * z, either, {free: -1})
    d.adds(single, j, n, r"and (2) at $C^0$, $|V'| \le n$; (1) and (2) elsewhere are $1 \le 1$")
    d.given(1, "the largest independent set is no smaller than that of the best schedule", 9)
    d.given(2, "the best schedule carries no less than that of the largest set", 9)
    least = {y: total(conns, n) - total(work, n), z: total(chosen, n) - total(conns, n)}
    d.show(le(total(work, n), total(chosen, n)), "so neither is larger", y + z, least)
    d.meet(9, "the optimum is the independence number, of any finite graph")


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


alloc, gateway = sequence("alloc"), sp.Symbol("g", nonnegative=True)
local, best = sp.Symbol("benefit_k", nonnegative=True), sp.Symbol("alloc", nonnegative=True)


@statement(
    "S.G5", {"a reachable neighbour": {0: eq(alloc(1), 0)}},
    [eq(alloc(0), 0), lt(alloc(0), 10), under(le(best, local), ge(local, best))],
    where={alloc(gateway): sp.Min(20, 3, gateway, 5)},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.compute(0, "no gateway left: the local cluster is given nothing")
    d.compute(1, "though its benefit, 10, is the largest: the state repeats for ever")
    d.given(0, "local is chosen only if its benefit is maximal, so alloc is no larger", goal=2)


spare, fixed = (sp.Symbol(name, integer=True, nonnegative=True) for name in "kv")
part = sp.Symbol("x", nonnegative=True)
cap = sp.Symbol("cap")
left_over = computed("choices", lambda routes: sum(value != 0 for value in [0] * routes))


@statement(
    "S.LPRR", {"cap 2.5 is feasible": {1: le(sp.ceiling(cap), cap)}},
    [le(fixed + sp.ceiling(spare - part), fixed + spare), gt(sp.ceiling(cap), cap),
     eq(left_over(2), 0)], where={cap: sp.Rational(5, 2)},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, r"an integer cap leaves an integer $k$ to $\tilde\beta = k-x$", -sp.ceiling(-part))
    d.compute(1, "a real cap, as Table 2 draws it, must be floored first")
    d.compute(2, "routes are left and none may be chosen: stop, and set the rest to 0")


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


seconds, gops = sequence("seconds"), positive("Gops")


@statement(
    "B.Gops",
    {"5 minutes": {0: eq(seconds(sp.Rational(3, 2)), 300)}},
    [eq(seconds(sp.Rational(3, 2)), 5), eq(seconds(90), 5 * 60), eq(seconds(1080), 60 * 60)],
    where={seconds(gops): 1000 * gops / 300},
)
def _(d: Derivation) -> None:
    d.compute(0, "the printed lower end")
    d.compute(1, "what 5 minutes need")
    d.compute(2, "the upper end")


def by_difference(times: tuple[int, ...], target: int) -> int:
    """Return the server chosen by rule (4) of paper B, lowest index first."""
    pool = [i for i, time in enumerate(times) if target - time >= 0] or range(len(times))
    return min(pool, key=lambda i: abs(target - times[i]))


def slowest_in_time(times: tuple[int, ...], target: int) -> int:
    """Return the slowest server that is in time, otherwise the fastest of all."""
    met = [time for time in times if time <= target]
    return times.index(max(met) if met else min(times))


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
    form = y * (2 * z + y)
    d.show(0, "the slower has the smaller Diff, here squared", form, {y: order, z: in_time})
    d.show(1, r"the faster has the smaller $|Diff|$", form, {y: order, z: late})
    more = d.given(1, r"a larger Opt raises $T_{target}$", goal=2)
    d.show(2, "so it stays in time: the chosen time does not fall", y + z, {y: more, z: in_time})
    why = "all times 1 to 4 on four servers, all targets 0 to 5: the rule against its reading"
    d.compute(3, why)


release, duration = positive("r w")
_ends = (n * release + duration) / n


@statement(
    "M.names", {"a duration": {0: eq(_ends, duration / n)}},
    [eq(_ends, release + duration / n), differ(_ends, duration / n)],
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "I (3) with equal releases $r$")
    d.show(1, "the duration from $r$ on is another number")


# ------------------------------------------------------------------ herding under stale loads

#: Who waits for whom between two probes of paper B, which only observes that Load Correction gains
#: little.
rnd = sp.Symbol("j", integer=True, nonnegative=True)
N, R = counts("N R")
free, follow = sequence("d", nonnegative=True), sequence("A")
age, seen, way, often, mean = sp.symbols("X V s lambda F", nonnegative=True)
_ahead = {follow(t): (t**2 + 2 * t) / (2 * (1 + t))}


def _waits(jobs: object) -> sp.Expr:
    """Return what jobs that come together to one queue wait in all, each of length x."""
    return total(lambda i: (i - 1) * x, jobs)


@statement(
    "H.wait",
    {"the first waits too": {1: eq(_waits(n), n * (n + 1) * x / 2)}},
    [under(eq(free(rnd), free(0) + rnd * x), eq(free(rnd + 1), free(rnd) + x, over=rnd)),
     eq(_waits(n), n * (n - 1) * x / 2)],
    witness={free: lambda k: k, x: 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    step = d.given(0, "one queue, jobs of one length, all there when the first begins")
    d.recur(0, rnd, "the queue is free again after one job more", by={step: 1})
    d.leave(step)
    d.recur(1, n, "number k waits for k - 1 others: quadratic in the size of the herd")


@statement(
    "H.herd",
    {"the first waits too": {follow(t): (t**2 + 4 * t) / (2 * (1 + t))},
     "no window": {3: ge(often * way, mean)}},
    [gt(follow(t + u), follow(t)), gt(t, follow(t)), gt(follow(t), t / 2),
     under(ge(mean, often * way), ge(seen, age + way), eq(mean, often * (seen - age)))],
    where=_ahead, witness={seen: 2, age: 1, way: 1, often: 1, mean: 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    why = "more followers, more ahead: of $1+K$, $K$ Poisson of mean $t$, $E M(M-1) = t^2+2t$"
    d.show(0, why, u / 2 + u / (2 * (1 + t) * (1 + t + u)))
    d.show(1, "fewer than follow the first", t**2 / (2 * (1 + t)))
    d.show(2, "more than half of them", t / (2 * (1 + t)))
    late, many = d.hypotheses({0: "seen once its input is there", 1: "mean followers"}, goal=3)
    d.show(3, "even where the monitor never sleeps", often * z, {z: late}, {many: 1})


@statement(
    "H.corr",
    {"a server less": {0: eq((N - 1) * _waits(R), N * R * (R - 1) * x / 2)}},
    [eq(N * _waits(R), N * R * (R - 1) * x / 2),
     eq(N * R * (N * R - 1) * x / 2 - N * R * (R - 1) * x / 2, N * R**2 * (N - 1) * x / 2)],
)  # fmt: skip
def _(d: Derivation) -> None:
    here = d.lemma("H.wait", "what jobs at one queue wait", 1, {n: R})
    d.show(0, "who counts whom he has sent takes N equal servers in turn, R each", by={here: N})
    d.show(1, "and saves this much of what the herd waits, whenever the probe comes")
