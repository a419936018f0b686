"""Paper M, section 4: shares, execution time and n_min, without and with set-up costs."""

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import Iff, differ, eq, ge, gt, le, sequence, total, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.lemmas import bernoulli, powers_below_one
from dlsim.theory.letters import SC, ST, Delta, b, j, n, p, phi, positive, q, sigma, w, y, z
from dlsim.theory.words import B, Cms, Cps, G, T, a1, a2, alpha, below_one, finishes, share

_ms, _ps, gamma = positive("C_ms C_ps gamma")
_E, _phi = sp.Symbol(r"\mathcal{E}"), sp.Symbol("phi")
Bs, Gs = sequence(r"\mathcal{B}"), sequence("G")
_T1 = a1 * sigma * _ms + a1 * sigma * _ps
_T2 = (a1 + a2) * sigma * _ms + a2 * sigma * _ps


@statement(
    "4.5",
    {"ratio of the other cost": {b: _ms / (_ms + _ps)},
     "sign": {0: Iff(eq(_T2 - 2 * a2 * sigma * _ps, _T1), eq(a2, b * a1))}},
    [Iff(eq(_T2, _T1), eq(a2, b * a1)), eq((1 - b) * w, _ms), eq(b * w, _ps)],
    where={b: _ps / (_ms + _ps), w: _ms + _ps},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, r"(4.2)-(4.1); $\sigma(C_{ms}+C_{ps})$ is positive", sigma * (_ms + _ps))
    d.show(1, r"hence $C_{ms} = (1-\beta) w$")
    d.show(2, r"and $C_{ps} = \beta w$")


#: Hypotheses: all nodes finish together; the shares of n nodes add up to 1.
_together, _whole = eq(T(j + 1), T(j), over=j), eq(total(alpha, n), 1)
_line = finishes(j, st=0, sc=0)


@statement(
    "4.1-4.4",
    {"n+1 for n": {1: eq(alpha(1), (1 - b) / (1 - b ** (n + 1)))},
     "growing shares": {0: eq(alpha(j), b ** (1 - j) * alpha(1))},
     "no computing": {T(j): sigma * Cms * total(alpha, j)}},
    [eq(alpha(j), b ** (j - 1) * alpha(1)), eq(alpha(1), (1 - b) / (1 - b**n))],
    [below_one, _together, _whole], {T(j): _line},
    witness={b: sp.Rational(1, 2), n: 1, alpha: lambda k: 2 ** (1 - k)},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    together, whole = d.given(1, "all nodes finish together"), d.given(2, "the whole load")
    ratio = eq(alpha(j + 1), b * alpha(j))
    d.show(ratio, r"line $j+1$ minus line $j$, over $\sigma w$", by={together: 1 / (sigma * w)})
    shares = d.recur(0, j, "the recurrence solved", by={ratio: 1}, factor=b)
    following = d.at(shares, {j: n + 1})
    sums = eq(total(alpha, n), alpha(1) * G(n))
    d.recur(sums, n, r"sum of the first $n$ shares", by={following: 1})
    d.show(1, "the shares sum to 1", by={whole: 1 / G(n), sums: -1 / G(n)})


_first = (1 - b) / (1 - b**n)


@statement(
    "E(n)",
    {"1 + beta^n": {_E: sigma * Cms / (1 + b**n)}, "C_ps for C_ms": {_E: sigma * Cps / (1 - b**n)}},
    [eq(_first * sigma * w, _E), eq(T(j), _E)], [below_one],
    {T(j): _line, alpha(j): _first * b ** (j - 1), _E: sigma * Cms / (1 - b**n)},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    d.show(0, r"by $C_{ms} = (1-\beta) w$")
    why = "data sent to the first $j$ nodes, in shares"
    sent = d.induct(_first * G(j), _first * b ** (j - 1), j, why)
    d.show(1, "node $j$ has its data after $j$ sends, then computes", by={sent: sigma * Cms})


_meets = Iff(le(_E, Delta), le(b**n, gamma))


@statement(
    "4.6g",
    {"C_ps for C_ms": {gamma: 1 - sigma * Cps / Delta},
     "1 + ...": {gamma: 1 + sigma * Cms / Delta}},
    [_meets, under(Iff(le(_E, Delta), ge(n, sp.log(gamma) / sp.log(b))), gt(gamma, 0))],
    [below_one], {_E: sigma * Cms / (1 - b**n), gamma: 1 - sigma * Cms / Delta},
    witness={sigma: 1, w: 1, Delta: 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    power = d.show(0, r"times $(1-\beta^n)/\Delta > 0$", Delta / q, {q: 1 - b**n})
    room = power.right.right
    d.given(1, "a budget that some number of nodes meets", goal=1)
    below = d.exponentials(sp.log(b), 0, r"$\ln$ increases")
    falls = d.apply(below, r"$\ln\beta < 0$")
    logs = d.exponentials(sp.log(room), n * sp.log(b), r"$\ln$ increases")
    both = d.chain(power, logs, "so, in logarithms")
    nodes = Iff(logs.right, d[1].right)
    d.show(nodes, r"dividing by $\ln\beta < 0$ turns the inequality", p, {p: falls.gap})
    d.chain(both, nodes, "together")


@statement(
    "4.6inf", {"twice the floor": {z: 2 * sigma * Cms}, "a floor of 0": {z: 0}},
    [gt(_E, z), ge(z + sigma * b * w / n, _E), under(gt(_E, Delta), le(Delta, z))], [below_one],
    {_E: sigma * Cms / (1 - b**n), z: sigma * Cms}, witness={sigma: 1, w: 2, Delta: 1},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    given = {p: 1 - b, q: 1 - b**n}
    d.show(0, r"above $\sigma C_{ms}$ for every $n$", sigma * p * w * b**n / q, given)
    slow = bernoulli(d, r"$\beta^{-n} \ge 1 + n(1/\beta - 1)$ (Bernoulli), times $\beta^n$")
    why = "and no higher bound holds: the excess falls like $1/n$"
    d.show(1, why, sigma * w * b * y / (n * q), {y: slow, q: 1 - b**n})
    short = d.given(1, r"$\gamma \le 0$", goal=2)
    why = r"no number of nodes meets it, though $\Delta > 0$"
    d.show(2, why, p + y, {p: d[0], y: short})


_late = finishes(j) - ST + sigma * Cms * alpha(j + 1) + sigma * Cps * (alpha(j + 1) - alpha(j))
_printed = _late + ST


@statement(
    "4.7-4.10",
    {"the misprint": {0: Iff(eq(_printed, T(j)), eq(alpha(j + 1), b * alpha(j) - _phi))},
     "SC in phi": {_phi: SC / (sigma * w)}},
    [Iff(eq(T(j + 1), T(j)), eq(alpha(j + 1), b * alpha(j) - _phi)),
     Iff(eq(_printed, T(j)), eq(alpha(j + 1), b * alpha(j))),
     differ(b * alpha(j) - _phi, b * alpha(j))], where={T(j): finishes(j), _phi: ST / (sigma * w)},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.show(0, "line $j+1$ minus line $j$", sigma * w)
    d.show(1, "the printed last line, with one $ST$ too few, would give", sigma * w)
    d.show(2, "which contradicts (4.11)")


_recurs = eq(alpha(j + 1), b * alpha(j) - phi, over=j)
_shares = eq(alpha(j), share(j, alpha(1)))


@statement(
    "4.11r",
    {"sign": {0: eq(alpha(j), share(j, alpha(1), -phi))},
     "j for j-1": {0: eq(alpha(j), share(j + 1, alpha(1)))}}, [_shares], [below_one, _recurs],
    witness={alpha: lambda k: -2 * phi},
)  # fmt: skip
def _(d: Derivation) -> None:
    d.given(0, r"$0 < \beta < 1$")
    ratio = d.given(1, "the recurrence")
    d.recur(0, j, "the recurrence solved, and its first value", by={ratio: 1}, factor=b)


@statement(
    "4.12",
    {"n-1 for n": {0: eq(alpha(1), B(n) - phi / (1 - b**n))},
     "no last term": {0: eq(alpha(1), B(n) + phi / (1 - b))}}, [eq(alpha(1), B(n))],
    [below_one, _recurs, _whole], witness={n: 1, phi: 0, alpha: lambda k: 2 ** (1 - k)},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    d.given(1, "equal finish")
    whole = d.given(2, "the whole load")
    following = d.lemma("4.11r", "the shares", at={j: n + 1})
    sums = eq(total(alpha, n), alpha(1) * G(n) - phi * (n - G(n)) / (1 - b))
    d.recur(sums, n, "sum of the first $n$ shares", by={following: 1})
    d.show(0, "the sum of all $n$ set to 1", by={whole: 1 / G(n), sums: -1 / G(n)})


@statement(
    "4.12G", {"another growth": {Gs(n): G(n + 1)}, "no set-up": {Bs(n): B(n, 0)}},
    [eq(Gs(1), 1), eq(Gs(n + 1), 1 + b * Gs(n)), eq(1 + b * Gs(n), Gs(n) + (1 - (1 - b) * Gs(n))),
     eq(Bs(n + 1), (1 + phi * total(Gs, n)) / Gs(n + 1))], [below_one], {Bs(n): B(n), Gs(n): G(n)},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d, n + 1)
    d.show(0, "the first")
    d.show(1, "the recursion of the engine")
    d.show(2, r"in the form that does not round $\beta$")
    sums = d.induct((n + 1 - G(n + 1)) / (1 - b), G(n), n, r"sum of the first $n$")
    d.show(3, "put together", by={sums: -phi / G(n + 1)})


@statement(
    "4.12fin",
    {"(n-1)ST": {T(j): finishes(j, st=phi * sigma * w) - phi * sigma * w},
     "SC twice": {T(j): finishes(j) + SC}}, [eq(T(j), ST + SC + sigma * w * B(n))], [below_one],
    {T(j): finishes(j), alpha(j): share(j, B(n)), ST: phi * sigma * w},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    sums = B(n) * G(j) - phi * (j - G(j)) / (1 - b)
    sent = d.induct(sums, share(j, B(n)), j, "data sent to the first $j$ nodes, in shares")
    d.show(0, "node $j$, for all $j$ and $n$", by={sent: sigma * Cms})


@statement(
    "4.13->4.6", {"phi stays": {_phi: ST / sigma + 1}}, [eq(_E, sigma * Cms / (1 - b**n))],
    [below_one, eq(ST, 0), eq(SC, 0)],
    {_E: ST + SC + sigma * w * B(n, _phi), _phi: ST / (sigma * w)}, witness={ST: 0, SC: 0},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d)
    no_send, no_start = d.given(1, "no set-up of a send"), d.given(2, "nor of computing")
    d.show(0, r"so $\phi = 0$", by={no_send: 1 + n / (1 - b**n) - 1 / (1 - b), no_start: 1})


_ell = sp.Symbol("ell")
_near, _far = 1 / n + phi * (n - 1) / 2, 1 + n * phi


@statement(
    "b->1",
    {"n for n-1": {_ell: phi * n / 2 + 1 / n}, "limits exchanged": {_ell: 1 + (n - 1) * phi}},
    [eq(sp.Limit(Bs(n), b, 1, "-"), _ell), eq(Bs(1), 1), eq(sp.Limit(Bs(n + 1), b, 0, "+"), _far)],
    where={Bs(n): B(n), _ell: _near},
)  # fmt: skip
def _(d: Derivation) -> None:
    powers_below_one(d, n + 1)
    d.show(1, "one node")
    below = {p: 1 - b, q: 1 - b**n}
    more = n - 1
    lack, rest = n - G(n), (1 - b) * n * (n - 1) / 2 - (n - G(n))
    third = n * (n - 1) * (n - 2) / sp.Integer(6)
    d.grows(lack, n, 0, q, r"$n \ge G_n$", below, strict=False)
    why = r"$n - G_n \le (1-\beta)n(n-1)/2$"
    d.grows(rest, n, 0, p * y, why, {p: 1 - b, y: lack}, strict=False)
    why = r"which is short by at most $(1-\beta)^2n(n-1)(n-2)/6$"
    short = (1 - b) ** 2 * third - rest
    d.grows(short, n, 0, p * y, why, {p: 1 - b, y: rest}, strict=False)
    d.grows(G(n) - 1, n, 0, b**n, r"$G_n \ge 1$", below, strict=False)
    d.grows(third, n, 0, n * more / 2, "counting", strict=False)
    bound = more / 2 + phi * (third + n * more**2 / 4)
    parts = {**below, y: rest, z: G(n) - 1}
    g = q / p
    upper = (y + p * n * more / 2 * z) * (1 / (n * g) + phi * more / (2 * g))
    c, s = sp.symbols("c s", nonnegative=True)
    rise, why = B(n) - _near, r"$\mathcal{B}(n)$ minus its limit, from both sides"
    form = upper + phi * (y / (p * g) + p * c)
    d.nonnegative(bound * (1 - b) - rise, form, why, {**parts, c: third})
    form = p * more / 2 + phi * p * n * more**2 / 4 + s / (n * g) + phi * more * s / (2 * g)
    form += phi * (y + c * p**2 * z) / (p * g)
    given = {**below, y: short, z: G(n) - 1, s: lack, c: third}
    d.nonnegative(bound * (1 - b) + rise, form, why, given)
    d.squeeze(0, bound, r"the bound is a constant times $1-\beta$")
    top = phi * n * more / 2 + _far * n
    rise, why = B(n + 1) - _far, r"the same at $\beta = 0$: a constant times $\beta$"
    x, f = positive("x f")
    whole = {p: 1 - b, x: G(n), f: G(n + 1)}
    d.positive(G(n), q / p, "G_n is positive", below)
    d.at(G(n), {n: n + 1})
    form = b * (phi * y / p + _far * n + top * b * x + _far * x) / f
    d.nonnegative(top * b - rise, form, why, {**whole, y: rest})
    form = b * (phi * n * more / 2 + _far * y + top * b * x + phi * y / p) / f
    d.nonnegative(top * b + rise, form, why, {**whole, y: lack})
    d.squeeze(2, top, r"the bound is a constant times $\beta$")
