r"""What the derivations write in the letters of `dlsim.theory.letters`.

The cost of a unit is written as :math:`w = C_{ms} + C_{ps}`, so that
:math:`C_{ms} = (1-\beta) w` and :math:`C_{ps} = \beta w`; statement 4.5 shows that this
is the paper's beta. Where n is real, :math:`\beta = e^{-L}`.
"""

from typing import Any

import sympy as sp

from dlsim.theory.claim import ge, lt, sequence, total
from dlsim.theory.letters import SC, ST, L, b, n, p, phi, sigma, u, w, y, z

Cms, Cps = (1 - b) * w, b * w
#: The shares, and the time at which a node finishes, where both are sequences.
alpha, T = sequence("alpha", real=True), sequence("T", real=True)
below_one = lt(b, 1)


def finishes(j: Any, shares: Any = alpha, st: Any = ST, sc: Any = SC) -> Any:
    """Return when node j finishes: after j sends one after the other, it computes its share."""
    return j * st + sc + sigma * Cms * total(shares, j, "i") + sigma * Cps * shares(j)


def G(count: Any) -> Any:
    r"""Return :math:`G_n = 1 + \beta + \dots + \beta^{n-1} = (1-\beta^n)/(1-\beta)`."""
    return (1 - b**count) / (1 - b)


def B(count: Any, setup: Any = phi) -> Any:
    r"""Return the first share :math:`\mathcal{B}(n)` as printed in (4.12)."""
    return (1 - b) / (1 - b**count) + count * setup / (1 - b**count) - setup / (1 - b)


def cost(count: Any) -> Any:
    r"""Return :math:`W(n) = n\mathcal{E}(n)`, the node time of a task, of (5.16)."""
    return count * (phi * sigma * w + SC + sigma * w * B(count))


def share(index: Any, first: Any, setup: Any = phi) -> Any:
    r"""Share j, :math:`\alpha_1 \beta^{j-1} - \phi (1-\beta^{j-1})/(1-\beta)`, below (4.11)."""
    return first * b ** (index - 1) - setup * (1 - b ** (index - 1)) / (1 - b)


def powers_below_one(d: Any, *exponents: Any) -> None:
    r"""Give a derivation :math:`0<\beta<1` and :math:`1-\beta^n>0`, by induction."""
    d.assume(below_one, r"$0 < \beta < 1$, because $C_{ms} > 0$")
    d.grows(1 - b**n, n, p, b**n * p, r"$\beta^n < 1$ for every $n \ge 1$", {p: 1 - b})
    for exponent in exponents:
        d.at(1 - b**n, {n: exponent})


def bernoulli(d: Any, why: str = "Bernoulli's inequality, by induction", ratio: Any = b) -> Any:
    r"""Give a derivation, for x < 1, :math:`1 - x^n \ge n x^{n-1} (1-x)`."""
    slow = 1 - ratio**n - n * ratio ** (n - 1) * (1 - ratio)
    return d.grows(slow, n, 0, p**2 * n * ratio ** (n - 1), why, {p: 1 - ratio}, strict=False)


def no_more_than_all(d: Any, term: Any, known: Any, index: Any, number: Any, of: Any) -> None:
    """Give a derivation that one of several terms, none negative, is at most their sum."""
    before, beyond = sp.symbols("before beyond", integer=True, nonnegative=True)
    for place in (before + 1, before + beyond + 2):
        d.at(known, {index: place})
    why = "no term is negative, nor is a sum of them"
    few = d.grows(total(term, before), before, 0, y, why, {y: term(before + 1)}, strict=False)
    others = total(term, before + 1 + beyond) - term(before + 1)
    following = {y: few, z: term(before + beyond + 2)}
    d.grows(others, beyond, y, z, "nor without one of them", following, strict=False)
    d.at(ge(others, 0), {before: number - 1, beyond: of - number})


def smooth_powers(d: Any, *counts: Any) -> None:
    r"""Give a derivation :math:`\beta = e^{-L} < 1` and :math:`1-\beta^n > 0` for real n."""
    d.climbs(1 - sp.exp(-u), u, sp.exp(-u), r"$e^{-u} < 1$ for $u > 0$: its slope is $e^{-u}$")
    for count in counts:
        d.at(1 - sp.exp(-u), {u: count * L})
