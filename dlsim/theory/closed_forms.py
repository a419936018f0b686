"""Closed forms by Lambert's W: the fastest n, the fewest n, and the last positive share.

W is the letter of a root of W e^W = z, so that a closed form is checked by putting the
defining equation back; which branch is meant follows from the signs of W e^W's slope.
"""

from typing import Any

import sympy as sp

from dlsim.theory.book import statement
from dlsim.theory.derivation import Derivation
from dlsim.theory.letters import Delta, L, b, n, p, positive, q, r, sigma, t, u, w, y
from dlsim.theory.words import B, share

W = sp.Symbol("W", real=True)
f, real, kap = positive("phi n kappa")
one = sp.exp(-L)
h = sp.Symbol("h", real=True)


def _lower_branch(d: Derivation) -> None:
    """Show that W e^W falls for W < -1, where branch -1 lives."""
    slope = sp.diff(W * sp.exp(W), W).subs(W, -1 - t)
    why = r"$We^W$ falls where $W = -1-t < -1$: there lies branch $-1$; branch 0 has $W \ge -1$"
    d.positive(-slope, t * sp.exp(-1 - t), why, show=r"-(We^W)'")


@statement("5.2c", {"sign of W": {"sign": -1}, "C_1 without phi": {"c1": (1 - one) * L}})
def _(d: Derivation, sign: int = 1, c1: Any = f + (1 - one) * L) -> None:
    d.assume(1 - one, r"$\beta = e^{-L} < 1$")
    c = 1 + (1 - one) * L / f
    d.lemma("5.2a", r"the sign of $\mathcal{B}'$ is that of $C_3-C_1\beta^n-C_2n\beta^n$")
    why = r"that numerator, $u = nL$"
    d.equal(f - c1 * sp.exp(-u) - f * u * sp.exp(-u), f * sp.exp(-u) * (sp.exp(u) - u - c), why)
    d.climbs(sp.exp(u) - 1, u, sp.exp(u), r"$e^u > 1$")
    d.climbs(sp.exp(u) - 1 - u, u, p, r"$e^u-u-1$ rises from 0", {p: sp.exp(u) - 1})
    why = r"above $u^2/2$, hence without bound"
    d.climbs(sp.exp(u) - 1 - u - u**2 / 2, u, p, why, {p: sp.exp(u) - 1 - u})
    d.positive(c - 1, p * L / f, r"so it meets $c-1 > 0$ exactly once, from below", {p: 1 - one})
    root = -sp.Symbol("c") - sign * W
    put = sp.exp(-W) * (-W * sp.exp(W)) - root - sp.Symbol("c")
    d.equal(put, 0, r"$u = -c-W$ with $We^W = -e^{-c}$ put into $e^u-u-c$", "e^u - u - c")
    _lower_branch(d)
    cc = 1 + t
    why = r"at $W=-c$ the value is below $z$, so $W_{-1}(z) < -c$ and $u > 0$ ($c = 1+t$)"
    d.positive(-sp.exp(-cc) + cc * sp.exp(-cc), t * sp.exp(-cc), why, show=r"-e^{-c}-(-c\,e^{-c})")
    d.positive(cc + (-1 + y), t + y, r"on branch 0, $W = -1+y$, $u = -c-W < 0$", show="-u")
    d.argue("Continuous, from 0 and without bound, e^u - u - 1 takes the value c - 1.")


@statement(
    "nminW",
    {"h = kappa": {"shift": 0}, "sign of z": {"sign": 1}, "a budget that suffices": {"part": 1}},
)
def _(d: Derivation, shift: int = 1, sign: int = -1, part: int = 0) -> None:
    b0 = sp.Symbol("b_0", real=True)
    k_ = b0 + f / (1 - b)
    h_ = k_ - shift * (1 - b)
    why = r"$b_0-\mathcal{B}(n)$ and $h-(\kappa\beta^n+n\phi)$ have one sign: $1-\beta^n > 0$"
    right = h_ - (k_ * b**real + real * f)
    d.equal((b0 - B(real, f)) * (1 - b**real), right, why, r"(b_0-\mathcal{B}(n))(1-\beta^n)")
    left = kap * sp.exp(-L * real) + real * f
    why = r"$\kappa\beta^n+n\phi$ is convex ($\kappa > 0$): two roots at most, feasible between"
    d.positive(
        sp.diff(left, real, 2), kap * L**2 * sp.exp(-L * real), why, show=r"(\kappa\beta^n+n\phi)''"
    )
    root = h / f + W / L
    decay = -sign * f / (kap * L) * -W * sp.exp(W)
    put = kap * decay * sp.exp(-W) + root * f
    why = r"put in, with $e^{-hL/\phi} = -\phi We^W/(\kappa L)$"
    d.equal(put, h, why, r"\kappa\beta^n + n\phi")
    d.positive((y - 1) - (-1 - t), y + t, r"$W_{-1} < -1 \le W_0$: branch $-1$ is lower")
    values = [
        B(sp.Rational(m, 4), sp.Rational(1, 100)).subs(b, sp.Rational(1, 2)) for m in (20, 21, 24)
    ]
    budget = (values[1] + min(values[0], values[2])) / 2 + part
    why = r"$\beta=1/2$, $\phi=1/100$: a budget met at a real $n$ but not at 5 or 6"
    holds = bool(values[1] < budget < min(values[0], values[2]))
    d.exact(holds, r"\mathcal{B}(5\tfrac14) < b_0 < \mathcal{B}(5),\ \mathcal{B}(6)", why)
    d.lemma("disc", r"nor at any other integer: $\mathcal{B}$ falls while the next share is > 0")
    d.lemma("last", r"and that share, once it is not positive, stays so")


@statement("nmin0", {"beta gamma": {"factor": b}, "upper root": {"sign": -1}})
def _(d: Derivation, factor: Any = 1, sign: int = 1) -> None:
    b0 = Delta / (sigma * w)
    gamma = 1 - sigma * (1 - b) * w / Delta
    why = r"at $\phi = 0$: $\kappa=b_0$, and the equation is $\beta^n = \gamma$"
    d.equal((b0 * b**n - (b0 - (1 - b))) / b0, b**n - factor * gamma, why)
    slope = sp.diff(b0 * sp.exp(-L * real), real)
    why = r"there $\kappa\beta^n+n\phi-h$ falls in $n$ with a slope that is not 0"
    d.positive(-sign * slope, b0 * L * sp.exp(-L * real), why)
    log = sp.expand_log(sp.log(sp.exp(-L) ** real), force=True)
    g = sp.Symbol(r"\ln\gamma", real=True)
    d.equal(sp.solve(log - g, real)[0], g / -L, r"with $\ln\beta=-L$", "n")
    d.argue(
        "As that slope is not 0, the root is continuous in phi at 0 (implicit function "
        "theorem), and the root on a falling side is the lower one."
    )


@statement("NmaxW", {"first power in d": {"power": 1}, "sign of W": {"sign": -1}})
def _(d: Derivation, power: int = 2, sign: int = 1) -> None:
    d.assume(1 - one, r"$\beta = e^{-L} < 1$")
    m = real
    dd = 1 + (1 - one) ** power / f
    last = share(n, B(n, f), f).subs(n, m + 1).subs(b, one)
    d.equal(
        last * (1 - one ** (m + 1)) * (1 - one) * sp.exp(m * L) / f,
        dd + m * (1 - one) - sp.exp(m * L),
        r"times a positive factor",
        r"\alpha^{(m+1)}_{m+1}(1-\beta^{m+1})(1-\beta)e^{mL}/\phi",
    )
    D, x = positive("d x")
    root = -D / x - sign * W / L
    put = sp.exp(-W) * (-x / L * W * sp.exp(W)) - D - root * x
    why = r"put in, $x=1-\beta$, with $e^{-Ld/x} = -(x/L)We^W$"
    d.equal(put, 0, why, r"e^{mL}-d-mx")
    below = d.climbs(1 - sp.exp(-u), u, sp.exp(-u), r"$e^{-u} < 1$")
    d.climbs(u - 1 + sp.exp(-u), u, q, r"$u > 1-e^{-u}$", {q: below})
    over = d.at(u - 1 + sp.exp(-u), {u: L})
    d.positive(L / (1 - one) - 1, q / p, r"so $L/(1-\beta) > 1$", {p: 1 - one, q: over})
    _lower_branch(d)
    v = (1 + r) * (1 + t)
    why = (
        r"with $L/x = 1+r$ and $d = 1+t$: at $W = -Ld/x < -1$ the value is below $z$, so "
        r"$W_{-1} < -Ld/x$ and $m > 0$; branch 0 has $W \ge -1 > -Ld/x$ and $m < 0$"
    )
    d.positive(-(1 + r) * sp.exp(-v) + v * sp.exp(-v), (1 + r) * t * sp.exp(-v), why)
    d.positive(sp.diff(sp.exp(u), u, 2), sp.exp(u), r"$e^{mL}$ is convex")
    d.argue(
        "Below the line d + m(1 - beta) at m = 0, as 1 < d, and without bound above it, a "
        "convex curve crosses it once for m > 0: the n-th share is positive iff n is below the "
        "root, so N* is the largest integer strictly below m + 1."
    )
