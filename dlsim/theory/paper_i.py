"""Paper I: equal finish from unequal release times, its constraints, and their gaps."""

from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import Iff, differ, eq, ge, gt, le, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.lemmas import no_more_than_all
from dlsim.theory.letters import chi, j, n, p, positive, sigma, tau, y, z
from dlsim.theory.words import alpha

P, (r, s, x) = sequence("p"), (sequence(name, real=True) for name in "rsx")
end, after = sp.symbols("e e'", real=True)
work = sigma * (tau + chi)
finish = (total(r, n) + work) / n
_end = eq(r(j) + alpha(j) * work, end, over=j)
_whole = eq(total(alpha, n), 1)


@statement(
    "1.3-4",
    {"n-1 nodes": {0: eq(end, (total(r, n) + work) / (n + 1))}, "sign of p": {P(j): r(j) - r(n)}},
    [eq(end, finish), eq(alpha(j), (end - r(j)) / work),
     eq(alpha(1), 1 / n + ((n - 1) * P(1) - (total(P, n) - P(1))) / (n * work)),
     eq(alpha(j), alpha(1) - (P(1) - P(j)) / work)], [_end, _whole], {P(j): r(n) - r(j)},
    witness={n: 1, r: lambda k: sp.S.Zero, alpha: lambda k: sp.S.One, end: work},
)  # fmt: skip
def _(d: Derivation) -> None:
    each = d.given(0, "every node starts when it is free, and all finish at $e$")
    whole = d.given(1, "the whole load")
    first, following = d.at(each, {j: 1}), d.at(each, {j: n + 1})
    sums = eq(total(r, n) + work * total(alpha, n), n * end)
    d.recur(sums, n, "all lines added", by={following: 1}, base={first: 1})
    e = d.show(0, "the shares sum to 1", by={sums: -1 / n, whole: work / n})
    d.show(1, "each line solved", by={each: 1 / work})
    d.show(2, "(3)", by={first: 1 / work, e: 1 / work})
    d.show(3, "(4)", by={each: 1 / work, first: -1 / work})


@statement(
    "1.pos",
    {"p_n counted twice": {0: eq(alpha(n), (work - total(P, n) - r(n)) / (n * work))},
     "largest share": {3: le(alpha(j), alpha(n))}},
    [eq(alpha(n), (work - total(P, n)) / (n * work)), Iff(gt(alpha(n), 0), lt(total(P, n), work)),
     Iff(gt(alpha(n), 0), lt(r(n), finish)), under(ge(alpha(j), alpha(n)), ge(r(n), r(j)))],
    where={alpha(j): (finish - r(j)) / work, P(j): r(n) - r(j)}, witness={r: lambda k: sp.S.Zero},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "the share of the last node")
    d.show(1, "so it is positive", 1 / (n * work))
    d.show(2, "which is that the last node is free before the end", 1 / work)
    later = d.given(0, "releases are sorted", goal=3)
    d.show(3, "no share is smaller", y / work, {y: later})


#: Releases, shares and end of an example; the shares are (4), the end is (3).
rs, shares, ends = sp.symbols("r_1:4"), sp.symbols("alpha_1:4"), sp.Symbol("e")


def _example(releases: tuple[int, ...], compute: Any) -> dict[Any, Any]:
    """Return what the letters of an example stand for, with unit size and sending cost."""
    parts = {a: (ends - r) / (1 + compute) for a, r in zip(shares, rs, strict=False)}
    count = len(releases)
    whole = {ends: (sum(rs[:count]) + 1 + compute) / sp.Integer(count)}
    return dict(list(parts.items())[:count]) | whole | dict(zip(rs, releases, strict=False))


@statement(
    "1.T3cex", {"another share": {2: eq(shares[0], 1)}},
    [ge(rs[1] - rs[0], 1), ge(rs[1] - rs[0], shares[0]), eq(shares[0], sp.Rational(7, 4)),
     lt(ends, rs[1])], refutes=gt(shares[1], 0), where=_example((0, 5), 1),
)  # fmt: skip
def _(d: Derivation) -> None:
    d.compute(0, r"Constraint 1 holds: $r_2-r_1 \ge \sigma\tau$")
    d.compute(1, r"Constraint 2 holds: $r_2-r_1 \ge \alpha_1\sigma\tau$")
    d.compute(2, "the first share")
    d.compute(3, "the task would end before node 2 is free")
    d.compute(4, "the second share is negative")


@statement(
    "1.C1C2cex", {"another share": {2: eq(shares[0], 3)}},
    [ge(rs[1] - rs[0], 1), ge(rs[2] - rs[1], 1), eq(shares[0], sp.Rational(37, 11)),
     lt(shares[2], 0)], refutes=ge(rs[1] - rs[0], shares[0]),
    where=_example((0, 1, 9), sp.Rational(1, 10)),
)  # fmt: skip
def _(d: Derivation) -> None:
    d.compute(0, "Constraint 1 holds")
    d.compute(1, "also here")
    d.compute(2, r"$\alpha_1 > 1$")
    d.compute(3, r"because $\alpha_3 < 0$")
    d.compute(4, "Constraint 2 does not hold")


_second = ge(r(j + 1) - r(j), alpha(j) * sigma * tau, over=j)


need = sequence("w")
_first = ge(r(j + 1), r(j) + sigma * tau, over=j)


@statement(
    "1.C1C2",
    {"n(n+1)/2": {1: gt(tau + chi, n * (n + 1) * tau / 2)}, "n <= 15": {2: lt(need(15, 1), 1)}},
    [under(ge(r(j + 1) - r(j), alpha(j) * sigma * tau), _first, gt(alpha(j), 0, over=j),
         eq(total(alpha, n), 1), ge(n, j)),
     under(gt(tau + chi, n * (n - 1) * tau / 2), _first, lt(total(P, n), work)),
     *(claim for send, count in ((1, 14), (2, 10), (4, 7), (8, 5))
       for claim in (lt(need(count, send), 1), ge(need(count + 1, send), 1)))],
    where={P(j): r(n) - r(j), need(n, tau): n * (n - 1) * tau / (2 * (tau + 100))},
    witness={r: lambda k: k, alpha: lambda k: sp.S.One, sigma: 1, tau: 1, chi: 100, n: 1, j: 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    apart, part, whole, _ = d.hypotheses({
        0: "Constraint 1", 1: "all shares are positive", 2: "they add up to 1",
        3: "share $j$ is one of them",
    })  # fmt: skip
    no_more_than_all(d, alpha, part, j, j, n)
    most = ge(1, alpha(j))
    d.show(most, "so no share exceeds 1", y, {y: total(alpha, n) - alpha(j)}, {whole: -1})
    d.show(0, "hence Constraint 2", y + z * sigma * tau, {y: apart, z: most})
    waits = total(lambda i: r(n) - r(i), n)
    gaps = waits - sigma * tau * n * (n - 1) / 2
    later = d.at(apart, {j: n})
    why = r"each gap is at least $\sigma\tau$; their sum, by induction"
    d.grows(gaps, n, 0, n * y, why, {y: later}, strict=False)
    fits = d.given(1, r"$\alpha_n > 0$", goal=1)
    d.show(1, "together", (p + z) / sigma, {p: fits, z: gaps})
    for goal in range(2, 10):
        d.compute(goal, r"$\chi = 100$, $\tau = 1, 2, 4, 8$: enough for one more node, or not")


_fits = ge(sp.Max(after - r(j), 0), x(j) * work, over=j)


@statement(
    "1.opt", {"a later end": {0: ge(after, finish + 1)}}, [ge(after, finish)],
    [eq(total(x, n), 1), _fits, gt(finish, r(j), over=j)],
    witness={n: 1, r: lambda k: sp.S.Zero, x: lambda k: sp.S.One, after: work},
)  # fmt: skip
def _(d: Derivation) -> None:
    whole = d.given(0, "the whole load, in any shares $x_i$")
    fits = d.given(1, r"a node that ends by $e'$ takes at most $(e'-r_i)^+/(\tau+\chi)$ units")
    later = d.given(2, r"$e > r_n \ge r_i$, because $\alpha_n > 0$")
    early = d.assume(gt(finish, after), "suppose it ended earlier")
    free, case = sp.Max(after - r(j), 0), ge(after - r(j), 0)
    d.assume(case, "a node free before $e'$")
    at = d.extreme(eq(free, after - r(j)), "works until $e'$")
    lost = gt(finish - r(j), free)
    d.show(lost, r"and loses $e-e'$", p, {p: early}, {at: -1})
    d.assume(case.negated, "any other node")
    none = d.extreme(eq(free, 0), "does not work")
    d.show(lost, r"and loses $e-r_i$", p, {p: later}, {none: -1})
    d.either(lost, case, "every node does less than by $e$")
    short = d.positive(finish - r(j) - x(j) * work, p + z, "so", {p: lost, z: fits})
    sums = d.adds(short, j, n, "and all of them less than the load")
    d.absurd(0, sums.left, "which they carry", {whole: -work})


_starts = (_second, eq(s(1), r(1)),
           eq(s(j + 1), sp.Max(r(j + 1), s(j) + alpha(j) * sigma * tau), over=j))  # fmt: skip


@statement(
    "1.T3",
    {"send longer than the gap": {0: gt(s(j), r(j))}, "any later end": {1: gt(after, finish)}},
    [under(eq(s(j), r(j)), *_starts),
     under(ge(after, finish), lt(total(P, n), work), ge(r(n), r(j), over=j), eq(total(x, n), 1),
         _fits)],
    where={alpha(j): (finish - r(j)) / work, P(j): r(n) - r(j)},
    witness=({n: 1, r: lambda k: k, s: lambda k: k},
     {n: 1, r: lambda k: sp.S.Zero, x: lambda k: sp.S.One, after: work}),
)  # fmt: skip
def _(d: Derivation) -> None:
    room = d.given(0, "Constraint 2, for i = 2..n ($r_0$ does not exist)")
    d.given(1, "the first node starts when it is free")
    start = d.given(2, "the others when free and the link is")
    before = d.assume(eq(s(j), r(j)), "assume it of the node before")
    ready = next(part for part in start.right.args if part != r(j + 1))
    d.nonnegative(r(j + 1) - ready, y, "then the link is free first", {y: room}, by={before: -1})
    latest = d.extreme(eq(sp.Max(r(j + 1), ready), r(j + 1)), "so the release decides")
    why = "and the next node starts when it is free"
    d.equal(s(j + 1), r(j + 1), why, by={start: 1, latest: 1})
    d.inductive(0, j, "no inserted idle time, so all end at $e$")
    waits, sorted_, _, _ = d.hypotheses({
        0: r"the waits add up to less, that is $\alpha_n > 0$", 1: "releases are sorted",
        2: "any other shares", 3: r"of a schedule that ends by $e'$",
    }, goal=1)  # fmt: skip
    last = d.show(gt(finish, r(n)), "no node is free after the end", p / n, {p: waits})
    d.show(gt(finish, r(j)), "and so", p + z, {p: last, z: sorted_})
    d.lemma("1.opt", "the schedule is optimal")


r1, r2, s2 = sp.symbols("r_1 r_2 s_2", real=True)
_share = positive("alpha_1")


@statement(
    "1.T2", {"no transmission time": {0: gt(s2, r2 + _share * sigma * tau)}}, [gt(s2, r2)],
    [eq(r1, r2), eq(s2, sp.Max(r2, r1 + _share * sigma * tau))],
    witness={r1: 0, r2: 0, s2: sp.Rational(1, 8)},
)  # fmt: skip
def _(d: Derivation) -> None:
    same = d.given(0, "equal releases")
    start = d.given(1, "node 2 waits for the first send")
    sent = r1 + _share * sigma * tau
    d.nonnegative(sent - r2, _share * sigma * tau, "which ends after the release", by={same: 1})
    latest = d.extreme(eq(sp.Max(r2, sent), sent), "so the send decides")
    why = "and any share takes time to send"
    d.show(0, why, _share * sigma * tau, by={start: 1, latest: 1, same: 1})


rate, E, time, load, tasks = positive("lambda E T SystemLoad TotalTasks")
print_ = sequence("load")


@statement(
    "SysLoad", {"the misprint": {load: E / chi}, "other number": {4: gt(print_(16), 1360)}},
    [eq(load, rate * E), eq(1 / rate, E / load), differ(1 / rate, load / E), differ(load, E / chi),
     gt(print_(16), 1359 - sp.S.Half), lt(print_(16), 1359 + sp.S.Half)],
    where={load: tasks * E / time, tasks: rate * time,
           print_(n): 200 / (1 - sp.Rational(100, 101) ** n)},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "the second formula, total tasks times their mean time over the time")
    d.show(1, "solved for the mean interval")
    d.show(2, r"the printed $1/\lambda = \text{SystemLoad}/\mathcal{E}$")
    d.show(3, r"the printed $\mathcal{E}/\chi$ does not depend on $\lambda$")
    for goal in (4, 5):
        d.compute(goal, r"$100\,\mathcal{E}/\chi$, N=16, tau=1, chi=100, size 200")
