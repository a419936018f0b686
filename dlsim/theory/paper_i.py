"""Paper I: equal finish from unequal release times, its constraints, and their gaps."""

import itertools
from fractions import Fraction
from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import Iff, computed, differ, eq, ge, gt, le, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import chi, j, m, n, p, positive, sigma, tau, y, z
from dlsim.theory.words import alpha

r, P, s, x = (
    sequence("r", real=True),
    sequence("p"),
    sequence("s", real=True),
    sequence("x", real=True),
)
end, after, lead = sp.symbols("e e' r", real=True)
work = sigma * (tau + chi)
finish = (total(r, n) + work) / n
_end = eq(r(j) + alpha(j) * work, end, over=j)
_whole = eq(total(alpha, n), 1)


def equal_finish(release: list[Fraction], size: Any, send: Any, compute: Any) -> list[Fraction]:
    """Return the shares (3)-(4) of paper I, whatever their sign."""
    total = Fraction(size) * (Fraction(send) + Fraction(compute))
    end = (sum(release, Fraction(0)) + total) / len(release)
    return [(end - r) / total for r in release]


def constraint_one(release: list[Fraction], size: Any, send: Any) -> bool:
    """Tell whether consecutive releases are at least sigma tau apart (Constraint 1)."""
    pairs = itertools.pairwise(release)
    return all(after - before >= Fraction(size) * Fraction(send) for before, after in pairs)


def constraint_two(release: list[Fraction], alpha: list[Fraction], size: Any, send: Any) -> bool:
    """Tell whether no send runs into the next release (Constraint 2)."""
    pairs = zip(release, release[1:], alpha, strict=False)
    return all(x * Fraction(size) * Fraction(send) <= after - before for before, after, x in pairs)


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
    first, following = d.at(each, {j: 1}), d.at(each, {j: m + 1})
    sums = eq(total(r, m) + work * total(alpha, m), m * end)
    d.recur(sums, m, "all lines added", by={following: 1}, base={first: 1})
    everyone = d.at(sums, {m: n})
    e = d.show(0, "the shares sum to 1", by={everyone: -1 / n, whole: work / n})
    d.show(1, "each line solved", by={each: 1 / work})
    d.show(2, "(3)", by={first: 1 / work, e: 1 / work})
    d.show(3, "(4)", by={each: 1 / work, first: -1 / work})


_last = (finish - r(n)) / work


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


def _case(compute: Any, mark: str = "") -> tuple[Any, ...]:
    """Return share, room under Constraint 1 and 2, and end as functions of releases."""

    def shares(release: Any) -> list[Fraction]:
        return equal_finish([Fraction(v) for v in release], 1, 1, compute)

    def rooms(release: Any, used: list[Fraction]) -> Fraction:
        return min(b - a - u for (a, b), u in zip(itertools.pairwise(release), used, strict=False))

    return (
        computed("alpha" + mark, lambda release, i: shares(release)[i - 1]),
        computed("room_1" + mark, lambda release: rooms(release, [Fraction(1)] * len(release))),
        computed("room_2" + mark, lambda release: rooms(release, shares(release))),
        computed("e" + mark, lambda release: (sum(release) + 1 + Fraction(compute)) / len(release)),
    )


share, room_1, room_2, ends = _case(1)


@statement(
    "1.T3cex", {"another share": {2: eq(share((0, 5), 1), 1)}},
    [ge(room_1((0, 5)), 0), ge(room_2((0, 5)), 0), eq(share((0, 5), 1), sp.Rational(7, 4)),
     lt(ends((0, 5)), 5)], refutes=gt(share((0, 5), 2), 0),
)  # fmt: skip
def _(d: Derivation) -> None:
    d.compute(0, r"Constraint 1 holds: $r_2-r_1-\sigma\tau \ge 0$")
    d.compute(1, r"Constraint 2 holds: $r_2-r_1-\alpha_1\sigma\tau \ge 0$")
    d.compute(2, "the first share")
    d.compute(3, "the task would end before node 2 is free")
    d.compute(4, "the second share is negative")


share_, gap_1, gap_2, _ = _case(Fraction(1, 10), "'")


@statement(
    "1.C1C2cex", {"another share": {1: eq(share_((0, 1, 9), 1), 3)}},
    [ge(gap_1((0, 1, 9)), 0), eq(share_((0, 1, 9), 1), sp.Rational(37, 11)),
     lt(share_((0, 1, 9), 3), 0)], refutes=ge(gap_2((0, 1, 9)), 0),
)  # fmt: skip
def _(d: Derivation) -> None:
    d.compute(0, "Constraint 1 holds")
    d.compute(1, r"$\alpha_1 > 1$")
    d.compute(2, r"because $\alpha_3 < 0$")
    d.compute(3, "Constraint 2 does not hold")


_second = ge(r(j + 1) - r(j), alpha(j) * sigma * tau, over=j)


@statement(
    "1.T3", {"send longer than the gap": {0: gt(s(j), r(j))}}, [eq(s(j), r(j))],
    [_second, eq(s(1), r(1)),
     eq(s(j + 1), sp.Max(r(j + 1), s(j) + alpha(j) * sigma * tau), over=j)],
    witness={r: lambda k: k, s: lambda k: k, alpha: lambda k: sp.S.Zero},
)  # fmt: skip
def _(d: Derivation) -> None:
    room = d.given(0, "Constraint 2, for i = 2..n ($r_0$ does not exist)")
    d.given(1, "the first node starts when it is free")
    start = d.given(2, "the others when free and the link is")
    before = d.assume(eq(s(j), r(j)), "assume it of the node before")
    ready = s(j) + alpha(j) * sigma * tau
    d.nonnegative(r(j + 1) - ready, y, "then the link is free first", {y: room}, by={before: -1})
    latest = d.extreme(eq(sp.Max(r(j + 1), ready), r(j + 1)), "so the release decides")
    why = "and the next node starts when it is free"
    d.equal(s(j + 1), r(j + 1), why, by={start: 1, latest: 1})
    d.inductive(0, j, "no inserted idle time, by induction")


most = computed(
    "most", lambda send: max(c for c in range(1, 40) if c * (c - 1) * send < 2 * (send + 100))
)
_first = ge(r(j + 1), r(j) + sigma * tau, over=j)


@statement(
    "1.C1C2",
    {"n(n+1)/2": {1: gt(tau + chi, n * (n + 1) * tau / 2)}, "n <= 15": {2: eq(most(1), 15)}},
    [under(ge(r(j + 1) - r(j), alpha(j) * sigma * tau), _first, ge(1, alpha(j))),
     under(gt(tau + chi, n * (n - 1) * tau / 2), _first, lt(total(P, n), work)),
     *(eq(most(send), count) for send, count in ((1, 14), (2, 10), (4, 7), (8, 5)))],
    where={P(j): r(n) - r(j)},
    witness={r: lambda k: k, alpha: lambda k: sp.S.One, sigma: 1, tau: 1, chi: 100, n: 2},
)  # fmt: skip
def _(d: Derivation) -> None:
    apart = d.given(0, "Constraint 1")
    part = d.given(1, "no share exceeds 1, as the others are positive")
    d.show(0, "so Constraint 2", y + z * sigma * tau, {y: apart, z: part})
    waits = total(lambda i: r(n) - r(i), n)
    gaps = waits - sigma * tau * n * (n - 1) / 2
    later = d.at(apart, {j: n})
    why = r"each gap is at least $\sigma\tau$; their sum, by induction"
    d.grows(gaps, n, 0, n * y, why, {y: later}, strict=False)
    fits = d.given(1, r"$\alpha_n > 0$", goal=1)
    d.show(1, "together", (p + z) / sigma, {p: fits, z: gaps})
    for goal in (2, 3, 4, 5):
        d.compute(goal, r"$\chi = 100$, $\tau = 1, 2, 4, 8$")


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


r1, r2, a_1, s2 = sp.symbols("r_1 r_2 alpha_1 s_2", real=True)
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
print_ = computed("load", lambda nodes: round(100 * 2 / (1 - Fraction(100, 101) ** nodes)))


@statement(
    "SysLoad", {"the misprint": {load: E / chi}, "other number": {4: eq(print_(16), 1360)}},
    [eq(load, rate * E), eq(1 / rate, E / load), differ(1 / rate, load / E), differ(load, E / chi),
     eq(print_(16), 1359)], where={load: tasks * E / time, tasks: rate * time},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "the second formula, total tasks times their mean time over the time")
    d.show(1, "solved for the mean interval")
    d.show(2, r"the printed $1/\lambda = \text{SystemLoad}/\mathcal{E}$")
    d.show(3, r"the printed $\mathcal{E}/\chi$ does not depend on $\lambda$")
    d.compute(4, r"$100\,\mathcal{E}/\chi$, N=16, tau=1, chi=100, size 200")
