"""Paper M, theorems 5.1 to 5.3 and their lemmas, and the theorem on integers behind them."""

from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import SC, L, b, k, n, p, phi, positive, q, r, s, sigma, u, w, y, z
from dlsim.theory.words import B, G, powers_below_one, share

#: A real number of nodes, for the derivatives.
real = positive("n")
_C1 = phi + (1 - sp.exp(-L)) * L


def _smooth(d: Derivation) -> None:
    r"""Assume 0 < beta < 1 and show 1 - e^{-nL} > 0 for real n."""
    d.assume(1 - sp.exp(-L), r"$\beta = e^{-L} < 1$")
    d.climbs(1 - sp.exp(-u), u, sp.exp(-u), r"$e^{-u} < 1$ for $u > 0$: its slope is $e^{-u}$")
    d.at(1 - sp.exp(-u), {u: real * L})


@statement("5.1", {"sign of the log": {"log": L}, "no square": {"power": 1}})
def _(d: Derivation, log: Any = -L, power: int = 2) -> None:
    _smooth(d)
    x = sp.exp(-L * real)
    E = (1 - sp.exp(-L)) / (1 - x) * sigma * w
    printed = x * log / (1 - x) ** power * (1 - sp.exp(-L)) * sigma * w
    slope = d.equal(sp.diff(E, real), printed, "differentiated", r"\mathcal{E}'(n)")
    given = {p: 1 - sp.exp(-L), q: 1 - x}
    d.positive(-slope, x * L * p * sigma * w / q**power, r"$\mathcal{E}$ decreases", given)
    powers_below_one(d, n + 1)
    fall = (1 - b) / (1 - b**n) - (1 - b) / (1 - b ** (n + 1))
    parts = {p: 1 - b, q: 1 - b**n, r: 1 - b ** (n + 1)}
    d.positive(fall, p**2 * b**n / (q * r), "and from integer to integer", parts)


@statement("5.2a", {"C_1 + ": {"c1": phi - (1 - sp.exp(-L)) * L}, "C_3 = 0": {"c3": 0}})
def _(d: Derivation, c1: Any = _C1, c3: Any = phi) -> None:
    x = sp.exp(-L * real)
    slope = sp.diff(B(real).subs(b, sp.exp(-L)), real)
    why = r"(4.12) differentiated, $\ln\beta = -L$"
    d.equal(slope, (c3 - c1 * x - phi * L * real * x) / (1 - x) ** 2, why, r"\mathcal{B}'(n)")
    X, Y = sp.symbols("X Y", real=True)
    why = (
        r"$\beta^n = C_3/(C_1+C_2n)$ in logarithms, $X = \ln C_3$, $Y = \ln(C_1+C_2n)$: "
        r"$C_4 = \ln C_3/\ln\beta$, $C_5 = -1/\ln\beta$"
    )
    d.equal(sp.solve(-L * real - (X - Y), real)[0], X / -L + Y / L, why, "n")


@statement("5.2b", {"the printed sign is right": {"sign": -1}, "C_1 is dropped": {"c1": 0}})
def _(d: Derivation, sign: int = 1, c1: Any = None) -> None:
    C1, C4, kk = sp.symbols("C_1 C_4 k", real=True)
    f = positive("phi")
    C2, C5 = f * L, 1 / L
    nodes = C4 + C5 * kk
    true = (C1 if c1 is None else c1) + C2 * C4 + sign * f * kk
    d.equal(C1 + C2 * nodes, true, r"$e^k = C_1 + C_2 n$ with $n = C_4 + C_5 k$", "e^k")
    d.differ(C2 * C4 - f * kk, true, "the printed right side is another function of $k$")
    c, ln2 = sp.Rational(1, 100), sp.log(2)

    def slope(nodes: int) -> Any:
        return c - (c + ln2 / 2 + c * ln2 * nodes) / 2**nodes

    why = r"$\beta=1/2$, $\phi=1/100$: the minimum lies between 5 and 6 nodes"
    d.exact(slope(5) < 0 and slope(6) > 0, r"\mathcal{B}'(5) < 0 < \mathcal{B}'(6)", why)
    why = r"there, $k > -2$ for every $n \ge 1$: the printed equation has no root $n \ge 1$"
    holds = sp.log(c + ln2 / 2 + c * ln2) > -2 and -c * sp.log(c) + 2 * c < c + ln2 / 2 + c * ln2
    d.exact(holds, r"n \ge 1 \Rightarrow e^k = C_1 + C_2 n > C_6 + 2\phi \ge C_6 - \phi k", why)


@statement("disc", {"share of n": {"count": n}, "factor": {"factor": (1 - b) / (1 - b ** (n + 1))}})
def _(d: Derivation, count: Any = n + 1, factor: Any = (1 - b) / (1 - b**n)) -> None:
    powers_below_one(d)
    last = share(count, B(count))
    show = r"\mathcal{B}(n)-\mathcal{B}(n+1)"
    d.equal(B(n) - B(n + 1), last * factor, "(4.12) and the share below (4.11)", show)
    parts = {p: 1 - b, q: 1 - b**n}
    d.positive(factor, p / q, "the factor is positive: both sides have one sign", parts)
    before, now, bound = sp.symbols("B_{n-1} B_n c", real=True)
    ratio = positive("f_{n-1}")
    d.assume(before - bound, r"$n-1$ nodes miss the bound $c$")
    d.assume(bound - now, r"$n$ nodes meet it", strict=False)
    why = r"so $\alpha^{(n)}_n > 0$, $f$ the factor ($n = 1$: the share is 1)"
    form, met = (p + z) / ratio, {p: before - bound, z: bound - now}
    d.positive((before - now) / ratio, form, why, met, r"\alpha^{(n)}_n")
    d.lemma("ajmono", r"and with the last share all are positive")


@statement("last", {"n for n-1": {"lag": 0}, "first power": {"power": 1}})
def _(d: Derivation, lag: int = 1, power: int = 2) -> None:
    powers_below_one(d)

    def bracket(count: Any) -> Any:
        return b ** (lag - count) - 1 - (count - lag) * (1 - b)

    d.equal(
        share(n, B(n)) * (1 - b**n) * (1 - b) / b ** (n - 1),
        (1 - b) ** power - phi * bracket(n),
        r"the factor $(1-\beta^n)(1-\beta)/\beta^{n-1}$ is positive",
        r"\alpha^{(n)}_n \cdot (1-\beta^n)(1-\beta)/\beta^{n-1}",
    )
    d.equal(bracket(1), 0, "one node always has a positive share", r"\text{bracket}(1)")
    parts = {p: 1 - b, q: 1 - b**n}
    step = bracket(n + 1) - bracket(n)
    why = "the bracket increases"
    d.positive(step, p * q / b**n, why, parts, r"\text{bracket}(n+1)-\text{bracket}(n)")
    why = r"each time by at least $(1-\beta)^2/\beta$, so it exceeds every bound"
    d.grows(step - (1 - b) ** 2 / b, n, 0, p**2 / b ** (n + 1), why, {p: 1 - b}, strict=False)


@statement("ajmono", {"sign of phi": {"sign": -1}})
def _(d: Derivation, sign: int = 1) -> None:
    d.assume(1 - b, r"$0 < \beta < 1$")
    now = positive("a_j")
    after = b * now - sign * phi
    why = r"from $\alpha_j > 0$"
    d.positive(now - after, p * now + phi, why, {p: 1 - b}, r"\alpha_j-\alpha_{j+1}")
    later = positive("a_{j+1}")
    back = sp.solve(b * sp.Symbol("x") - sign * phi - later, sp.Symbol("x"))[0]
    d.positive(back, (later + phi) / b, r"and backwards, from $\alpha_{j+1} > 0$", show=r"\alpha_j")


@statement("5.2ST", {"ST matters not": {"setup": phi}, "other numbers": {"sc": 6}})
def _(d: Derivation, setup: Any = 0, sc: int = 5) -> None:
    powers_below_one(d, n + 1)
    fall = (SC + sigma * w * B(n, setup)) - (SC + sigma * w * B(n + 1, setup))
    parts = {p: 1 - b, q: 1 - b**n, r: 1 - b ** (n + 1)}
    form = sigma * w * p**2 * b**n / (q * r)
    why = r"$\phi = 0$: SC is the same for all $n$"
    d.positive(fall, form, why, parts, r"\mathcal{E}(n)-\mathcal{E}(n+1)")
    times = [sc + 10 * 2 * B(sp.Integer(m), 0).subs(b, sp.Rational(1, 2)) for m in range(1, 5)]
    why = r"$\sigma = 10$, $C_{ms}=C_{ps}=1$, $ST = 0$, $SC = 5$, $n = 1..4$"
    holds = times == [25, sp.Rational(55, 3), sp.Rational(115, 7), sp.Rational(47, 3)]
    d.exact(holds, r"\mathcal{E} = 25,\ \tfrac{55}{3},\ \tfrac{115}{7},\ \tfrac{47}{3}", why)
    last = share(n + 1, B(n + 1))
    why = r"$ST > 0$: the sign of the share $\alpha^{(n+1)}_{n+1}$ decides"
    d.equal(B(n) - B(n + 1), last * (1 - b) / (1 - b**n), why, r"\mathcal{B}(n)-\mathcal{B}(n+1)")
    d.lemma("last", r"it is positive up to $N^*$ and not beyond, for every $\phi > 0$")


@statement("L5.1", {"k-1 for k": {"power": k + 1}, "reversed": {"sign": -1}})
def _(d: Derivation, power: Any = k, sign: int = 1) -> None:
    lemma_one(d, power, sign)


def lemma_one(d: Derivation, power: Any = k, sign: int = 1) -> Any:
    """Show Lemma 5.1 in a derivation."""
    powers_below_one(d)
    powers, parts = {n: k}, {p: 1 - b}
    d.at(1 - b**n, powers)
    d.at(1 - b**n, {n: k + 1})
    why = r"$1+\beta+\dots+\beta^{k-1} > k\beta^k$, by induction"
    gap = d.grows(G(k) - k * b**power, k, p, (k + 1) * b**k * p, why, parts)
    difference = (k + 1) / G(k + 1) - k / G(k)
    all_parts = {p: 1 - b, q: 1 - b**k, r: 1 - b ** (k + 1), s: gap}
    form = s * p**2 / (q * r)
    why = r"$(G_k - k\beta^k)/(G_k G_{k+1})$"
    return d.positive(sign * difference, form, why, all_parts, r"(k+1)/G_{k+1} - k/G_k")


@statement("L5.2", {"equality": {"slack": 0}, "k for k+1": {"shift": 0}})
def _(d: Derivation, slack: int = 1, shift: int = 1) -> None:
    first = lemma_one(d)
    lemma_two(d, first, slack, shift)


def lemma_two(d: Derivation, first: Any, slack: int = 1, shift: int = 1) -> Any:
    """Show Lemma 5.2 in a derivation that has Lemma 5.1."""
    why = r"$k+1 > 1+\beta+\dots+\beta^k$, by induction"
    excess = d.grows(k + 1 - G(k + 1), k, p, r, why, {p: 1 - b, r: 1 - b ** (k + 1)})
    ratio = (k + 1) / G(k + 1) - 1
    parts = {p: 1 - b, r: 1 - b ** (k + 1), s: excess}
    d.positive(ratio, s * p / r, "(5.15)", parts)
    difference = (k + shift) * ((k + 1) / G(k + 1) - 1) - k * (k / G(k) - 1)
    form = k * q + slack * r
    why = r"(5.14): $k$ times Lemma 5.1 plus (5.15); times $\phi/(1-\beta)$ it is the lemma"
    return d.positive(difference, form, why, {q: first, r: ratio}, r"(5.14)")


@statement("5.3", {"E for W": {"weight": 1}, "no set-up of sends": {"setup": 0}})
def _(d: Derivation, weight: Any = None, setup: Any = phi) -> None:
    first = lemma_one(d)
    second = lemma_two(d, first)

    def cost(nodes: Any) -> Any:
        times = nodes if weight is None else weight
        return times * (phi * sigma * w + SC + sigma * w * B(nodes, setup))

    form = phi * sigma * w + SC + sigma * w * (q + phi * r / p)
    why = r"$ST+SC$, Lemma 5.1 and $\phi/(1-\beta)$ times Lemma 5.2, with $ST = \phi\sigma w$"
    d.positive(cost(k + 1) - cost(k), form, why, {p: 1 - b, q: first, r: second}, "W(k+1) - W(k)")


@statement("5.3r", {"slope of n/E": {"weight": 0}, "wrong start": {"start": 2}})
def _(d: Derivation, weight: int = 1, start: int = 1) -> None:
    _smooth(d)
    d.climbs(sp.exp(u) - 1, u, sp.exp(u), r"$e^u > 1$")
    d.climbs(sp.exp(u) - 1 - u, u, p, r"$e^u > 1 + u$", {p: sp.exp(u) - 1})
    x = 1 + y
    one, bn = sp.exp(-L), sp.exp(-L * real)
    parts = {q: 1 - bn, r: sp.exp(L * real) - 1, s: sp.exp(L * real) - 1 - L * real}
    for letter in (r, s):
        d.at(parts[letter].subs(real, u / L), {u: real * L})
    h = real**weight / (1 - bn)
    form, why = s / (q * r), r"$h(n) = n/(1-\beta^n)$ increases"
    slope = d.positive(sp.diff(h, real), form, why, parts, "h'(n)")
    d.equal(h.subs(real, 1), start / (1 - one), r"its value at $n = 1$", "h(1)")
    above = (h - h.subs(real, 1)).subs(real, x)
    given = {q: d.at(slope, {real: x})}
    d.climbs(above, y, q, r"so $h(n) \ge h(1)$ for $n = 1 + y \ge 1$", given)
    W = real * (phi * sigma * w + SC + sigma * w * B(real).subs(b, one))
    given = {p: 1 - one, q: slope.subs(real, x), z: above}
    form = phi * sigma * w + SC + sigma * w * (p * q + phi * (z + x * q))
    d.positive(sp.diff(W, real).subs(real, x), form, "part by part", given, "W'(n)")
