"""Paper I: equal finish from unequal release times, its constraints, and their gaps."""

import itertools
from fractions import Fraction
from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import R, chi, i, n, p, positive, sigma, tau, y, z

r1, rn, ri = sp.symbols("r_1 r_n r_i", real=True)
work = sigma * (tau + chi)
finish = (R + work) / n


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


@statement("1.3-4", {"n-1 nodes": {"nodes": n - 1}, "sign of p": {"sign": -1}})
def _(d: Derivation, nodes: Any = n, sign: int = 1) -> None:
    end = sp.Symbol("e", real=True)
    plain = (n * end - R) / work
    following = ((n + 1) * end - (R + ri)) / work
    d.equal(plain.subs({n: 1, R: r1}), (end - r1) / work, "the sum of one share", r"\alpha_1")
    why = r"and with one node more: $\sum_{i\le n}\alpha_i = (ne-R)/w$, $w=\sigma(\tau+\chi)$"
    d.equal(following - plain, (end - ri) / work, why)
    solved = sp.solve(plain - 1, end)[0]
    e_ = d.equal(solved, (R + work) / nodes, "the shares sum to 1", "e")
    rest = (n - 1) * rn - (R - r1)
    first = sp.Rational(1) / n + sign * ((n - 1) * (rn - r1) - rest) / (n * work)
    d.equal((e_ - r1) / work, first, r"(3), with $\sum_{i\ge2}p_i = (n-1)r_n-(R-r_1)$", r"\alpha_1")
    fourth = first - ((rn - r1) - (rn - ri)) / work
    d.equal((e_ - ri) / work, fourth, "(4)", r"\alpha_i")


@statement("1.pos", {"p_n counted twice": {"extra": rn}, "largest share": {"sign": -1}})
def _(d: Derivation, extra: Any = 0, sign: int = 1) -> None:
    sum_p = n * rn - R
    why = r"the share of the last node, $\sum p_i = n r_n - R$"
    d.equal((finish - rn) / work, (work - sum_p - extra) / (n * work), why, r"\alpha_n")
    d.assume(rn - ri, r"releases are sorted", strict=False)
    gap = (finish - ri) / work - (finish - rn) / work
    d.nonnegative(sign * gap, y / work, "no share is smaller", {y: rn - ri}, r"\alpha_i-\alpha_n")


@statement("1.T3cex", {"an earlier r_2": {"late": 2}})
def _(d: Derivation, late: int = 5) -> None:
    release = [Fraction(0), Fraction(late)]
    alpha = equal_finish(release, 1, 1, 1)
    why = "both constraints hold"
    holds = constraint_one(release, 1, 1) and constraint_two(release, alpha, 1, 1)
    d.exact(holds, r"r_2-r_1 = 5 \ge \sigma\tau,\ \alpha_1\sigma\tau = \tfrac74 \le 5", why)
    why = "the second share is negative: the task would end before node 2 is free"
    holds = alpha == [Fraction(7, 4), Fraction(-3, 4)] and sum(release) + 2 < 2 * release[1]
    d.refute(holds, r"\alpha = (\tfrac74, -\tfrac34),\ e = \tfrac72 < r_2", why)


@statement("1.T3", {"send longer than the gap": {"sign": -1}})
def _(d: Derivation, sign: int = 1) -> None:
    now, after, share = sp.symbols(r"r_{i-1} r_i \alpha_{i-1}", real=True)
    gap = after - now - share * sigma * tau
    d.assume(gap, "Constraint 2, for i = 2..n (r_0 does not exist)", strict=False)
    why = (
        r"by induction $s_{i-1} = r_{i-1}$, so $s_i = \max(r_i, s_{i-1}+\alpha_{i-1}\sigma\tau) "
        r"= r_i$"
    )
    left = after - (now + sign * share * sigma * tau)
    d.nonnegative(left, y, why, {y: gap}, r"r_i - (s_{i-1}+\alpha_{i-1}\sigma\tau)")
    d.lemma("1.pos", r"every share is positive iff $\sum p_i < \sigma(\tau+\chi)$")
    d.lemma("1.C1C2", r"with positive shares Constraint 1 implies Constraint 2")
    d.lemma("1.opt", r"and then no schedule ends earlier")


@statement("1.C1C2cex", {"slower nodes": {"compute": 8}})
def _(d: Derivation, compute: Any = Fraction(1, 10)) -> None:
    release = [Fraction(0), Fraction(1), Fraction(9)]
    alpha = equal_finish(release, 1, 1, compute)
    d.refute(
        constraint_one(release, 1, 1)
        and not constraint_two(release, alpha, 1, 1)
        and alpha[0] == Fraction(37, 11),
        r"r_2-r_1 = 1 \ge \sigma\tau,\ \alpha_1\sigma\tau = \tfrac{37}{11} > 1",
        r"Constraint 1 holds, Constraint 2 does not: $\alpha_1 > 1$ because $\alpha_3 < 0$",
    )


@statement("1.C1C2", {"n(n-1)/2 for n(n+1)/2": {"lag": -1}, "n <= 15": {"most": (15, 10, 7, 5)}})
def _(d: Derivation, lag: int = 1, most: tuple[int, ...] = (14, 10, 7, 5)) -> None:
    now, after = sp.symbols("r_{i-1} r_i", real=True)
    first = after - now - sigma * tau
    d.assume(first, "Constraint 1", strict=False)
    why = r"Constraint 2: $\alpha_{i-1} = 1-z$, $z \ge 0$ the sum of the other shares"
    d.nonnegative(after - now - (1 - z) * sigma * tau, y + z * sigma * tau, why, {y: first})
    why = r"$p_{n-i} \ge i\sigma\tau$: each gap is at least $\sigma\tau$; their sum"
    total = d.induct(sigma * tau * i * (i + lag) / 2, i * sigma * tau, i, why)
    why = r"$\sum_{i<n}$ of them must stay below $\sigma(\tau+\chi)$, so this is positive"
    d.equal(
        (sigma * (tau + chi) - total.subs(i, n - 1)) / sigma, tau + chi - tau * n * (n - 1) / 2, why
    )
    d.lemma("1.pos", r"$\alpha_n > 0$ iff $\sum p_i < \sigma(\tau+\chi)$")
    found = tuple(
        max(c for c in range(1, 40) if c * (c - 1) * send < 2 * (send + 100))
        for send in (1, 2, 4, 8)
    )
    d.exact(found == most, r"n \le 14, 10, 7, 5", r"$\chi = 100$, $\tau = 1, 2, 4, 8$")


@statement("1.opt", {"a later end": {"sign": -1}})
def _(d: Derivation, sign: int = 1) -> None:
    why = (
        r"a node that ends by $e'$ takes at most $(e'-r_i)^+/(\tau+\chi)$ units; at $e$ this "
        r"bound adds up to the whole load"
    )
    d.equal(n * finish - R, work, why, r"\sum_i (e-r_i)")
    end = sp.Symbol("e", real=True)
    late = positive("delta")
    d.assume(end - ri, r"$e > r_n \ge r_i$, because $\alpha_n > 0$")
    parts = {p: end - ri}
    left = end - sign * late - ri
    why = r"an end at $e' = e-\delta$ loses $\delta$ at a node with $e' > r_i$"
    d.positive((end - ri) - left, late, why, show=r"(e-r_i)-(e'-r_i)")
    d.positive((end - ri) - 0, p, r"and $e-r_i$ at any other: less than the load fits", parts)


@statement("1.T2", {"no transmission time": {"send": 0}})
def _(d: Derivation, send: Any = tau) -> None:
    share = positive("alpha_1")
    why = r"node 2 waits for the first send: $s_2 = \max(r, r+\alpha_1\sigma\tau)$"
    d.positive((ri + share * sigma * send) - ri, share * sigma * send, why, show="s_2-r_2")


@statement(
    "SysLoad", {"the misprint": {"load": lambda rate, E: E / chi}, "other number": {"printed": 136}}
)
def _(d: Derivation, load: Any = lambda rate, E: rate * E, printed: int = 1359) -> None:
    rate, E, T = positive("lambda E T")
    why = "the second formula"
    right = d.equal(rate * T * E / T, load(rate, E), why, r"\lambda T\,\mathcal{E}/T")
    d.equal(E / right, 1 / rate, "solved for the mean interval", r"\mathcal{E}/\text{SystemLoad}")
    d.correct(right / E, 1 / rate, r"the printed $1/\lambda = \text{SystemLoad}/\mathcal{E}$")
    d.correct(E / chi, rate * E, r"the printed $\mathcal{E}/\chi$ does not depend on $\lambda$")
    base = Fraction(100, 101)
    value = Fraction(200) / (1 - base**16) / 100
    why = "N=16, tau=1, chi=100, size 200"
    d.exact(round(100 * value) == printed, r"\mathcal{E}/\chi = 13.59", why)
