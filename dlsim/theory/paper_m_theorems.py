"""Paper M, theorems 5.1 to 5.3 and their lemmas, and the theorem on integers behind them."""

from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import Iff, eq, ge, gt, le, lt, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.lemmas import no_more_than_all, powers_below_one, smooth_powers
from dlsim.theory.letters import SC, L, b, j, k, m, n, p, phi, positive, q, r, s, sigma, u, w, y, z
from dlsim.theory.words import B, G, T, a1, alpha, below_one, cost, finishes, share

#: A real number of nodes, for the derivatives; f is a set-up that is not 0.
real, f = positive("n phi")
one, bn = sp.exp(-L), sp.exp(-L * real)
E, W, last, bracket = map(sequence, (r"\mathcal{E}", "W", r"\alpha^{(n)}", "h"))
C1, C2, C3, C4, C5, kk, c = sp.symbols("C_1 C_2 C_3 C_4 C_5 k c", real=True)


@statement(
    "5.1",
    {"no square": {0: eq(sp.Derivative(E(real), real), -bn * L / (1 - bn) * (1 - one) * sigma * w)},
     "sign of the log": {
         0: eq(sp.Derivative(E(real), real), bn * L / (1 - bn) ** 2 * (1 - one) * sigma * w)}},
    [eq(sp.Derivative(E(real), real), -bn * L / (1 - bn) ** 2 * (1 - one) * sigma * w),
     lt(sp.Derivative(E(real), real), 0),
     under(gt((1 - b) / (1 - b**k), (1 - b) / (1 - b ** (k + 1))), below_one)],
    where={E(real): (1 - one) / (1 - bn) * sigma * w},
)  # fmt: skip
def _(d: Derivation) -> None:
    smooth_powers(d, 1, real)
    d.show(0, r"differentiated, $\ln\beta = -L$")
    d.show(1, r"$\mathcal{E}$ decreases", bn * L * p * sigma * w / q**2, {p: 1 - one, q: 1 - bn})
    powers_below_one(d, k, k + 1)
    parts = {p: 1 - b, q: 1 - b**k, r: 1 - b ** (k + 1)}
    d.show(2, "and from integer to integer", p**2 * b**k / (q * r), parts)


@statement(
    "5.2a", {"C_1 + ": {C1: f - (1 - one) * L}, "C_3 = 0": {C3: 0}},
    [eq(sp.Derivative(E(real), real), sigma * w * (C3 - C1 * bn - C2 * real * bn) / (1 - bn) ** 2),
     Iff(eq(sp.log(C3) - kk, -L * real), eq(real, C4 + C5 * kk))],
    where={E(real): f * sigma * w + SC + sigma * w * B(real, f).subs(b, one), C1: f + (1 - one) * L,
     C2: f * L, C4: -sp.log(C3) / L, C5: 1 / L, C3: f},
)  # fmt: skip
def _(d: Derivation) -> None:
    smooth_powers(d, 1, real)
    d.show(0, r"(4.12) differentiated, $\ln\beta = -L$")
    d.show(1, r"$\beta^n = C_3/(C_1+C_2n)$ in logarithms, $k = \ln(C_1+C_2n)$", L)


_cent, _ln2 = sp.Rational(1, 100), sp.log(2)
slope = sequence("D")


@statement(
    "5.2b",
    {"the printed sign is right": {0: eq(C1 + C2 * (C4 + C5 * kk), C1 + C2 * C4 - f * kk)},
     "no phi": {C2: L}},
    [eq(C1 + C2 * (C4 + C5 * kk), C1 + C2 * C4 + f * kk), lt(slope(5), 0), gt(slope(6), 0),
     gt(sp.log(_cent + _ln2 / 2 + _cent * _ln2), -2),
     gt(_cent + _ln2 / 2 + _cent * _ln2, -_cent * sp.log(_cent) + 2 * _cent)],
    where={C2: f * L, C5: 1 / L, slope(n): _cent - (_cent + _ln2 / 2 + _cent * _ln2 * n) / 2**n},
    refutes=eq(C1 + C2 * (C4 + C5 * kk), C2 * C4 - f * kk),
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, r"$e^k = C_1 + C_2 n$ with $n = C_4 + C_5 k$")
    why = r"$\beta=1/2$, $\phi=1/100$: $\mathcal{B}'$ changes its sign between 5 and 6 nodes"
    d.compute(1, why)
    d.compute(2, why)
    d.compute(3, r"there, $k > -2$ for every $n \ge 1$")
    d.compute(4, r"so $e^k = C_1+C_2n > C_6+2\phi \ge C_6-\phi k$: the printed one has no root")
    d.show(5, "the printed right side is another function of $k$")


rest = sp.Symbol("i", integer=True, nonnegative=True)


@statement(
    "ajmono", {"sign of phi": {alpha(j): share(j, a1, -phi)}},
    [eq(alpha(j) - alpha(j + 1), (1 - b) * alpha(j) + phi),
     under(gt(alpha(j), alpha(j + 1)), gt(alpha(j), 0)),
     under(gt(alpha(j), 0), gt(alpha(j + k), 0))], [below_one], {alpha(j): share(j, a1)},
    witness={a1: 100, b: sp.Rational(1, 2), phi: 1, j: 1, k: 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d, k)
    d.show(0, "the recurrence")
    now = d.given(1, "a positive share", goal=1)
    d.show(1, "is above the next", p * q + phi, {p: 1 - b, q: now})
    later = d.given(1, "a later share is positive", goal=2)
    why = r"backwards, $\alpha_j = (\alpha_{j+k} + \phi G_k)/\beta^k$"
    d.show(2, why, (r + phi * q / p) / b**k, {r: later, p: 1 - b, q: 1 - b**k})


@statement(
    "disc",
    {"share of n": {last(n): share(n, B(n + 1))},
     "another factor": {0: eq(B(n) - B(n + 1), last(n + 1) * (1 - b) / (1 - b ** (n + 1)))}},
    [eq(B(n) - B(n + 1), last(n + 1) * (1 - b) / (1 - b**n)),
     Iff(gt(B(n), B(n + 1)), gt(last(n + 1), 0)),
     under(gt(share(j, B(j + rest + 1)), 0), gt(B(j + rest), c), ge(c, B(j + rest + 1)))],
    [below_one], {last(n): share(n, B(n))},
    witness={b: sp.Rational(1, 2), phi: 0, j: 1, rest: 0, c: sp.Rational(3, 4)},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d, n + 1)
    d.show(0, "(4.12) and the share below (4.11)")
    parts = {p: 1 - b, q: 1 - b**n}
    helps = d.show(1, "so one more node helps iff its share would be positive", p / q, parts)
    here, point = j + rest, {n: j + rest}
    missed = d.given(1, "one node less misses the bound $c$", goal=2)
    met = d.given(2, "these nodes meet it", goal=2)
    helped = d.at(helps, point)
    d.at(1 - b**n, point)
    d.at(1 - b**n, {n: here + 1})
    d.positive(B(here) - B(here + 1), p + z, "the last one helped", {p: missed, z: met})
    d.apply(helped, "so its share is positive")
    d.lemma("ajmono", "and with it all shares before", 2, {a1: B(here + 1), k: rest + 1})


_step = (1 - b) ** 2 / b
_time = sp.Symbol(r"\mathcal{E}")
end = sp.Symbol("M", real=True)


@statement(
    "last",
    {"n for n-1": {bracket(n): b**-n - 1 - n * (1 - b)},
     "first power": {0: Iff(gt(last(n), 0), gt(1 - b, phi * bracket(n)))}},
    [Iff(gt(last(n), 0), gt((1 - b) ** 2, phi * bracket(n))), gt(bracket(n + 1), bracket(n)),
     ge(bracket(n), (n - 1) * _step), eq(bracket(1), 0),
     under(eq(alpha(n), last(n)), eq(total(alpha, n), 1), ge(_time, T(j), over=j)),
     under(gt(share(j, B(n)), 0), gt(last(n), 0), gt(n, j))], [below_one],
    {last(n): share(n, B(n)), bracket(n): b ** (1 - n) - 1 - (n - 1) * (1 - b),
     T(j): finishes(j, st=phi * sigma * w), _time: phi * sigma * w + SC + sigma * w * B(n)},
    witness=({n: 1, b: sp.Rational(1, 2), phi: 0, alpha: lambda k: 2 ** (1 - k)},
     {n: 2, j: 1, b: sp.Rational(1, 2), phi: 0}),
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    below, parts = {p: 1 - b}, {p: 1 - b, q: 1 - b**n}
    d.show(0, r"times $\beta^{n-1}/((1-\beta)(1-\beta^n)) > 0$", b ** (n - 1) / (q * p), parts)
    d.show(1, "the bracket increases", p * q / b**n, parts)
    rises = d[1].gap - _step
    why = r"each time by at least $(1-\beta)^2/\beta$"
    d.grows(rises, n, 0, p**2 / b ** (n + 1), why, below, strict=False)
    d.grows(d[2].gap, n, 0, y, "so it exceeds every bound", {y: rises}, strict=False)
    d.show(3, "one node always has a positive share")
    whole = d.given(1, "the whole load, in any shares", goal=4)
    early = d.given(2, r"which end at $\mathcal{E}$, the least time", goal=4)
    time = early.left
    mean = d.lemma("OPR", "the mean of the ends", 1, {end: time})

    def lead(i: Any) -> Any:
        return (b ** (n - j) * (1 - b) / (1 - b**n) * early.gap).subs(j, i)

    d.nonnegative(lead(j), p * b ** (n - j) / q * y, "no node leads it", {**parts, y: early})
    no_more_than_all(d, lead, ge(lead(j), 0), j, n, n)
    d.at(ge(lead(j), 0), {j: n})
    rest, none = total(lead, n) - lead(n), eq(lead(n), 0)
    d.show(ge(-lead(n), 0), "nor lags behind it", y, {y: rest}, {mean: 1})
    d.meet(none, "so the last node too ends then")
    by = {none: -(1 - b**n) / ((1 - b) * sigma * b * w), whole: -(1 - b) / b}
    d.show(4, r"with the share $\alpha_n$ of (4.12), which a schedule needs to be positive", by=by)
    d.given(1, r"$\alpha_n > 0$", goal=5)
    d.given(2, "a node before", goal=5)
    d.lemma("ajmono", "and with it a schedule", 2, {a1: B(n), k: n - j})


times, _half = sequence("E'"), sp.Rational(1, 2)


@statement(
    "5.2ST",
    {"ST matters not": {0: gt(E(n), E(n + 1) + phi)}, "other numbers": {1: eq(times(2), 18)}},
    [gt(E(n), E(n + 1)),
     *(eq(times(m + 1), sp.Rational(v)) for m, v in enumerate(("25", "55/3", "115/7", "47/3"))),
     Iff(gt(B(n), B(n + 1)), gt(last(n + 1), 0)), under(le(last(n + 1), 0), le(last(n), 0)),
     under(le(last(m), 0), ge((m - 1) * phi, b))], [below_one],
    {E(n): SC + sigma * w * B(n, 0), last(n): share(n, B(n)), times(n): 5 + 10 / (1 - _half**n)},
    witness={b: sp.Rational(1, 2), phi: 5, n: 4, m: 4},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d, n + 1, m)
    parts = {p: 1 - b, q: 1 - b**n, r: 1 - b ** (n + 1)}
    d.show(0, r"$ST = 0$: SC is the same for all $n$", sigma * w * p**2 * b**n / (q * r), parts)
    for goal in (1, 2, 3, 4):
        d.compute(goal, r"$\sigma = 10$, $C_{ms}=C_{ps}=1$, $ST = 0$, $SC = 5$")
    d.lemma("disc", r"$ST > 0$: the share of the last node decides", 1)
    sign = d.lemma("last", "its sign")
    height = d.lemma("last", "the bracket exceeds every bound", 2)
    more = d.lemma("last", "and rises", 1)
    d.given(1, "one share is not positive", goal=6)
    large = sign.right.negated
    gap = d.apply(sign, "so its bracket is large", large).gap
    following = d.at(sign, {n: n + 1})
    d.show(following.right.negated, "and the next larger", z + phi * p, {z: gap, p: more})
    d.apply(following, "so the next share is not positive either", following.left.negated)
    enough = d.given(1, r"$(n-1)\phi \ge \beta$", goal=7)
    there = d.at(sign, {n: m})
    form, parts = y * p**2 / b + phi * z, {y: enough, z: d.at(height, {n: m}), p: 1 - b}
    d.show(there.right.negated, r"then $\phi h_m \ge (1-\beta)^2$", form, parts)
    d.apply(there, r"and $N^*$ is finite", there.left.negated)


@statement(
    "L5.1",
    {"k for k+1": {0: gt(1 / G(k + 1), 1 / G(k))},
     "reversed": {0: lt((k + 1) / G(k + 1), k / G(k))}},
    [gt((k + 1) * (1 - b) / (1 - b ** (k + 1)), k * (1 - b) / (1 - b**k))], [below_one],
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d, k, k + 1)
    why = r"$1+\beta+\dots+\beta^{k-1} > k\beta^k$, by induction"
    gap = d.grows(G(k) - k * b**k, k, p, (k + 1) * b**k * p, why, {p: 1 - b})
    parts = {p: 1 - b, q: 1 - b**k, r: 1 - b ** (k + 1), s: gap}
    d.show(0, r"$(G_k - k\beta^k)/(G_k G_{k+1})$", s * p**2 / (q * r), parts)


def _part(count: Any, setup: Any) -> Any:
    """Return a side of Lemma 5.2."""
    return count * (count * setup / (1 - b**count) - setup / (1 - b))


@statement(
    "L5.2", {"k for k+1": {0: gt(_part(k, phi), _part(k + 1, phi))}},
    [under(gt(_part(k + 1, phi), _part(k, phi)), gt(phi, 0)),
     ge(_part(k + 1, phi), _part(k, phi))], [below_one],
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d, k, k + 1)
    first = d.lemma("L5.1", "Lemma 5.1")
    why = r"$k+1 > 1+\beta+\dots+\beta^k$, by induction"
    excess = d.grows(k + 1 - G(k + 1), k, p, r, why, {p: 1 - b, r: 1 - b ** (k + 1)})
    parts = {p: 1 - b, r: 1 - b ** (k + 1), s: excess}
    ratio = d.positive((k + 1) / G(k + 1) - 1, s * p / r, "(5.15)", parts)
    difference = (k + 1) * ((k + 1) / G(k + 1) - 1) - k * (k / G(k) - 1)
    why = "(5.14): $k$ times Lemma 5.1 plus (5.15)"
    second = d.positive(difference, k * q + r, why, {q: first, r: ratio})
    parts = {p: 1 - b, r: second}
    setup = d.given(1, "a set-up that takes time")
    why = r"times $\phi/(1-\beta)$: strict for $\phi > 0$"
    d.show(0, why, s * r / p, {**parts, s: setup})
    d.show(1, r"and as printed for $\phi \ge 0$", phi * r / p, parts)


@statement(
    "5.3", {"E for W": {W(k): cost(k) / k}, "reversed": {0: lt(W(k + 1), W(k))}},
    [gt(W(k + 1), W(k))], [below_one], {W(k): cost(k)},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d, k, k + 1)
    first, second = d.lemma("L5.1", "Lemma 5.1"), d.lemma("L5.2", "and Lemma 5.2", 1)
    why = r"$ST+SC$ and the two, with $ST = \phi\sigma w$"
    d.show(0, why, phi * sigma * w + SC + sigma * w * (q + y), {q: first, y: second})


@statement(
    "5.3r", {"E for W": {W(real): cost(real).subs(b, one) / real}},
    [under(gt(sp.Derivative(W(real), real), 0), ge(real, 1))],
    where={W(real): cost(real).subs(b, one)}, witness={real: 2},
)  # fmt: skip
def _(d: Derivation) -> None:
    x = 1 + y
    smooth_powers(d, 1, real, x)
    d.climbs(sp.exp(u) - 1, u, sp.exp(u), r"$e^u > 1$")
    d.climbs(sp.exp(u) - 1 - u, u, p, r"$e^u > 1 + u$", {p: sp.exp(u) - 1})
    parts = {q: 1 - bn, r: sp.exp(L * real) - 1, s: sp.exp(L * real) - 1 - L * real}
    for letter in (r, s):
        d.at(parts[letter].subs(real, u / L), {u: real * L})
    h = real / (1 - bn)
    rises = d.positive(sp.diff(h, real), s / (q * r), r"$h(n) = n/(1-\beta^n)$ increases", parts)
    there = d.at(rises, {real: x})
    above = (h - h.subs(real, 1)).subs(real, x)
    d.climbs(above, y, q, r"so $h(n) \ge h(1)$ for $n = 1 + y \ge 1$", {q: there})
    slope = sp.diff(cost(real).subs(b, one), real).subs(real, x)
    form = phi * sigma * w + SC + sigma * w * (p * q + phi * (z + x * q))
    d.positive(slope, form, "part by part", {p: 1 - one, q: there, z: above})
    d.given(0, r"$n \ge 1$")
    d.at(slope, {y: real - 1})
