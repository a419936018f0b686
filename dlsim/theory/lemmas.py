"""What several derivations show on their way."""

from typing import Any

import sympy as sp

from dlsim.theory.claim import ge, total
from dlsim.theory.letters import L, b, n, p, u, y, z
from dlsim.theory.words import below_one


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
