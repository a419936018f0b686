"""Closed forms by Lambert's W: the fastest n, the fewest n, and the last positive share.

V is a root of V e^V = z. Roots are named by `crosses`; that one lies on branch -1 follows from
V < -1, where V e^V falls.
"""

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.claim import Iff, eq, ge, gt, le, lt, sequence, under
from dlsim.theory.derivation import Derivation
from dlsim.theory.lemmas import smooth_powers
from dlsim.theory.letters import L, b, m, p, positive, q, r, s, t, u, y, z
from dlsim.theory.words import B, share

f, real, nu = positive("phi n nu")
one, bn = sp.exp(-L), sp.exp(-L * real)
V, h, b0, kap = sp.symbols("V h b_0 kappa", real=True)
c, d_, v, eps, zeta = positive("c d v epsilon zeta")
root, upper = positive("xi eta")
with_setup, without = sequence("F"), sequence("F^{0}")
Bs, last, fall = map(sequence, (r"\mathcal{B}", r"\alpha^{(n)}", "w"))

#: On branch -1, V = -1 - t, the product V e^V falls as V does, that is it rises with t.
_falls = gt(sp.Derivative(fall(t), t), 0)
_branch = {fall(t): (-1 - t) * sp.exp(-1 - t)}


def _growth(d: Derivation) -> None:
    r"""Show that e^u exceeds 1, 1 + u and 1 + u + u^2/2."""
    parts = [sp.exp(u) - 1, sp.exp(u) - 1 - u, sp.exp(u) - 1 - u - u**2 / 2]
    d.climbs(parts[0], u, sp.exp(u), r"$e^u > 1$")
    d.climbs(parts[1], u, p, r"$e^u > 1 + u$", {p: parts[0]})
    d.climbs(parts[2], u, p, r"$e^u > 1 + u + u^2/2$", {p: parts[1]})


@statement(
    "5.2c", {"no L in c": {c: 1 + (1 - one) / f}, "the other branch": {4: gt(V, -1)}},
    [Iff(gt(sp.Derivative(Bs(real), real), 0), gt(real * L, root)),
     Iff(eq(sp.Derivative(Bs(real), real), 0), eq(real * L, root)), eq(sp.exp(root) - root, c),
     eq(V * sp.exp(V), -sp.exp(-c)), lt(V, -1), _falls],
    where={Bs(real): B(real, f).subs(b, one), **_branch, V: -c - root, c: 1 + (1 - one) * L / f},
    exists={root: (L, f)},
)  # fmt: skip
def _(d: Derivation) -> None:
    smooth_powers(d, 1, real)
    there = d[2].right
    height = sp.exp(u) - u - there
    _growth(d)
    d.positive(there - 1, p * L / f, "$c > 1$", {p: 1 - one})
    high = d.positive(there, 1 + p, "above 0", {p: there - 1})
    d.at(sp.exp(u) - 1 - u - u**2 / 2, {u: high})
    why = r"at $u = c$: $e^c - 2c > (1 + (c-1)^2)/2$"
    given = {p: (sp.exp(u) - 1 - u - u**2 / 2).subs(u, high), q: there - 1}
    d.positive(height.subs(u, high), p + (1 + q**2) / 2, why, given)
    why = r"$e^u - u - c$ rises from $1 - c < 0$ at 0 and is positive at $c$: it crosses 0 once"
    above = d.crosses(height, u, (0, high), root, p, why, {p: sp.exp(u) - 1})
    point, here = {u: real * L}, real * L
    factor, given = f * sp.exp(-here) / q**2, {q: 1 - bn}
    why = r"$\mathcal{B}'$ has the sign of $e^u - u - c$, $u = nL$"
    slope = d[0].left
    moved = d.at(above, point)
    d.chain(d.show(Iff(slope, moved.left), why, factor, given), moved, "positive above the root")
    only = d.at(Iff(eq(height, 0), eq(u, root)), point)
    zero = d.show(Iff(d[1].left, only.left), "and zero", factor, given)
    d.chain(zero, only, "at the root alone: the one minimum")
    d.show(3, r"put in, $c + \xi = e^\xi$", by={eq(height.subs(u, root), 0): sp.exp(-there - root)})
    d.show(4, r"and $V < -1$", p + root, {p: there - 1})
    d.show(5, r"where $Ve^V$ falls: branch $-1$", t * sp.exp(-1 - t))


@statement(
    "NmaxW", {"first power in d": {d_: 1 + (1 - one) / f}, "the other branch": {3: gt(V, -1)}},
    [Iff(gt(last(real + 1), 0), lt(real, root)), eq(sp.exp(root * L), d_ + root * (1 - one)),
     eq(V * sp.exp(V), -L / (1 - one) * sp.exp(-L * d_ / (1 - one))), lt(V, -1), _falls],
    where={last(real): share(real, B(real, f), f).subs(b, one), **_branch,
     V: -L * (root + d_ / (1 - one)), d_: 1 + (1 - one) ** 2 / f}, exists={root: (L, f)},
)  # fmt: skip
def _(d: Derivation) -> None:
    smooth_powers(d, 1, real + 1)
    rate = 1 - one
    dd = d[1].right.subs(root, 0)
    curve = sp.exp(u * L) - dd - u * rate
    _growth(d)
    d.climbs(u - 1 + sp.exp(-u), u, q, r"$u > 1-e^{-u}$", {q: 1 - sp.exp(-u)})
    faster = d.at(u - 1 + sp.exp(-u), {u: L})
    d.at(sp.exp(u) - 1, {u: u * L})
    d.positive(dd - 1, p**2 / f, "$d > 1$", {p: rate})
    tail = d.at(sp.exp(u) - 1 - u - u**2 / 2, {u: dd})
    high = dd / L
    why = r"at $m = d/L$: $e^d > 1 + d + d^2/2$ and $1-\beta < L$"
    form = p + (1 + q**2) / 2 + dd * s / L
    d.positive(curve.subs(u, high), form, why, {p: tail, q: dd - 1, s: faster})
    why = r"$e^{mL} - d - m(1-\beta)$ rises from $1-d < 0$ at 0: it crosses 0 once"
    d.crosses(curve, u, (0, high), root, L * p + s, why, {p: sp.exp(u * L) - 1, s: faster})
    below = d.at(Iff(gt(-curve, 0), gt(root, u)), {u: real})
    parts = {p: rate, q: 1 - sp.exp(-L * (real + 1))}
    why = r"times $(1-\beta^{m+1})(1-\beta)e^{mL}/\phi > 0$"
    share_ = d.show(Iff(d[0].left, below.left), why, f * sp.exp(-real * L) / (p * q), parts)
    d.chain(share_, below, "the last share is positive below the root: $N^*$ is the last such $n$")
    by = {eq(curve.subs(u, root), 0): L / rate * sp.exp(-root * L - L * dd / rate)}
    d.show(2, r"put in, $d + m(1-\beta) = e^{mL}$", by=by)
    form = L * root + (L * r + s) / p
    d.show(3, r"and $V < -1$, as $d > 1$ and $L > 1-\beta$", form, {r: dd - 1, s: faster, p: rate})
    d.show(4, r"where $Ve^V$ falls: branch $-1$", t * sp.exp(-1 - t))


_any, _half, _budget = sp.Symbol("X", real=True), sp.Rational(1, 2), sp.Rational(219, 400)


@statement(
    "nminW",
    {"a lower budget": {Bs(real): 1 + B(real, f).subs(b, one)},
     "sign of z": {z: kap * L / f * sp.exp(-h * L / f)},
     "a budget that suffices": {5: lt(_budget, fall(sp.Rational(21, 4)))}},
    [under(Iff(le(Bs(real), b0), le(kap * bn + real * f, h)), eq(kap, b0 + f / (1 - one)),
         eq(h, kap - (1 - one))), Iff(le(kap * bn + real * f, h), le(V * sp.exp(V), z)),
     ge(_any * sp.exp(_any), -sp.exp(-1)),
     under(Iff(le((-1 - t) * sp.exp(-1 - t), -zeta), le(t, root)), lt(zeta, sp.exp(-1))),
     under(Iff(le((-1 + t) * sp.exp(-1 + t), -zeta), le(t, upper)), lt(zeta, sp.exp(-1))),
     lt(fall(sp.Rational(21, 4)), _budget), *(gt(fall(k), _budget) for k in range(1, 7)),
     gt(fall(m + 6), _budget)],
    where={V: L * (real - h / f), z: -kap * L / f * sp.exp(-h * L / f),
     Bs(real): B(real, f).subs(b, one), fall(nu): B(nu, sp.Rational(1, 100)).subs(b, _half)},
    exists={root: [zeta], upper: [zeta]},
    witness={zeta: sp.Rational(1, 3), kap: b0 + f / (1 - one), h: b0 + f / (1 - one) - (1 - one)},
)  # fmt: skip
def _(d: Derivation) -> None:
    smooth_powers(d, 1, real)
    slope, shift = d.given(0, r"with $\kappa$"), d.given(1, "and $h$")
    by = {slope: -sp.S.One, shift: -1 / (1 - bn)}
    d.show(0, r"times $1-\beta^n > 0$", 1 / q, {q: 1 - bn}, by)
    d.show(1, r"with $n = h/\phi + V/L$", f / L * sp.exp(h * L / f - L * real))
    rise, drop = 1 - (1 - y) * sp.exp(y), 1 - (1 + y) * sp.exp(-y)
    d.climbs(rise, y, y * sp.exp(y), r"$Xe^X$ is least at $X = -1$: to the right of it")
    d.climbs(drop, y, y * sp.exp(-y), "and to the left")
    right = ge(_any, -1)
    for case, branch, place in ((right, rise, _any + 1), (right.negated, drop, -1 - _any)):
        d.assume(case, "one of two cases")
        there = d.at(ge(branch, 0), {y: place})
    d.either(there, right, "in both cases")
    d.show(2, r"so the roots are real only if $z \ge -1/e$", z * sp.exp(-1), {z: there})
    d.given(0, r"$-1/e < z = -\zeta < 0$", goal=3)
    _growth(d)
    far = 1 + 2 / zeta
    tail = d.at(sp.exp(u) - 1 - u - u**2 / 2, {u: far})
    low, high = (-1 - t) * sp.exp(-1 - t) + zeta, (-1 + t) * sp.exp(-1 + t) + zeta
    why = r"branch $-1$, $V = -1-t$: at $t = 2/\zeta$ the product is above $z$"
    form = sp.exp(-far) * zeta * (p + 1 + 3 * far / 2)
    d.positive(low.subs(t, 2 / zeta), form, why, {p: tail})
    why = r"it rises from $-1/e$: one root $\xi$, and $\le z$ below it"
    d.crosses(low, t, (0, 2 / zeta), root, t * sp.exp(-1 - t), why)
    why = r"branch 0, $V = -1+t$, rises from $-1/e$ to 0: one root $\eta$; feasible between the two"
    d.crosses(high, t, (0, 1), upper, t * sp.exp(-1 + t), why)
    why = r"$\beta=1/2$, $\phi=1/100$: a budget met at a real $n$"
    d.compute(5, why)
    for goal in range(6, 12):
        d.compute(goal, "but not at an integer")
    k = m + 6
    d.grows(1 - _half**m, m, _half, _half * _half**m, r"$2^{-m} < 1$")
    less = d.at(1 - _half**m, {m: k})
    form = y / 100 + sp.Rational(1, 400) + (_half + k / sp.Integer(100)) * _half**k / q
    d.show(12, "not even beyond", form, {q: less, y: m - 1})


_low, _high = v - eps, v + eps
#: Three bounds on phi, positive numbers of L, v and epsilon, that keep the root near v.
_small = (lt(f / (1 - one), without(_low)), lt(f * _high, -without(_high)),
          lt(f, L * b0 * sp.exp(-L * _high)))  # fmt: skip
_near = (lt(eps, v), *_small)


@statement(
    "nmin0", {"twice the budget": {b0: 2 * (1 - one) / (1 - sp.exp(-L * v))}},
    [under(gt(with_setup(nu), 0), le(nu, _low), _small[0]),
     *(under(claim, *_near) for claim in (
         eq(with_setup(root), 0), gt(root, _low), lt(root, _high))),
     under(Iff(gt(with_setup(nu), 0), gt(root, nu)), *_near, lt(nu, _high)),
     gt(without(_low), 0), gt(-without(_high), 0), gt(L * b0 * sp.exp(-L * _high), 0)],
    where={
     with_setup(nu): (b0 + f / (1 - one)) * sp.exp(-L * nu) + nu * f
                     - (b0 + f / (1 - one) - (1 - one)),
     without(nu): b0 * sp.exp(-L * nu) - b0 + (1 - one), b0: (1 - one) / (1 - sp.exp(-L * v))},
    exists={root: (L, v, eps, f)},
    witness={L: 1, v: 2, eps: 1, nu: sp.Rational(1, 2), f: sp.Rational(1, 100)},
)  # fmt: skip
def _(d: Derivation) -> None:
    smooth_powers(d, 1, v, eps, v + eps)
    parts = {p: 1 - one, q: 1 - sp.exp(-L * v)}
    d.climbs(1 - sp.exp(-y * L), y, L * sp.exp(-y * L), r"$e^{-yL} \le 1$")
    apart = ge(1 - sp.exp(-y * L), 0)
    d.given(0, r"left of the root without set-up, $v = \ln\gamma/\ln\beta$")
    small = d.given(1, r"by more than $\phi$ moves it")
    near = d.at(apart, {y: _low - nu})
    form = r + p * sp.exp(-L * nu) * y / q + f * nu + f * sp.exp(-L * nu) / p
    why = r"$\kappa\beta^\nu+\nu\phi-h > 0$: the budget is missed"
    missed = d.show(0, why, form, {**parts, r: small, y: near})
    _, right, flat = d.hypotheses({
        0: r"$\epsilon$ small enough", 2: r"right of it by more than $\phi$ moves it",
        3: r"$\phi$ flatter than the power there",
    }, goal=1)  # fmt: skip
    d.at(missed, {nu: _low})
    curve = d[1].left.subs(root, u)
    why = r"$\kappa\beta^\nu+\nu\phi-h < 0$: the budget is met"
    form, given = r + f * s / p, {p: 1 - one, r: right, s: 1 - sp.exp(-L * _high)}
    d.positive(-curve.subs(u, _high), form, why, given)
    d.assume(gt(_high, u), "between the two")
    near = d.at(apart, {y: _high - u})
    form = sp.exp(-L * u) * L * (f / p + p * y / q) + r
    why = "it falls from one to the other and crosses 0 once"
    d.crosses(-curve, u, (_low, _high), root, form, why, {**parts, y: near, r: flat})
    d.given(4, r"so $\xi$ is the lower root, within $\epsilon$ of $v$", goal=4)
    d.at(Iff(gt(curve, 0), gt(root, u)), {u: nu})
    d.climbs(sp.exp(u) - 1, u, sp.exp(u), r"$e^u > 1$")
    up = d.at(sp.exp(u) - 1, {u: eps * L})
    why = "such $\\phi$ there are, as without set-up the sign changes at $v$ alone"
    d.show(5, why, p * sp.exp(-L * v) * r / q, {**parts, r: up})
    d.show(6, "on both sides", p * sp.exp(-L * v) * r / q, {**parts, r: 1 - sp.exp(-L * eps)})
    d.show(7, "and the power is steep there", L * p * sp.exp(-L * _high) / q, parts)
