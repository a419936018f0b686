r"""What the derivations write in the letters of `dlsim.theory.letters`.

The cost of a unit is written as :math:`w = C_{ms} + C_{ps}`, so that
:math:`C_{ms} = (1-\beta) w` and :math:`C_{ps} = \beta w`; statement 4.5 shows that this
is the paper's beta. Where n is real, :math:`\beta = e^{-L}`.
"""

from typing import Any

from dlsim.theory.letters import b, n, p, phi, w

Cms, Cps = (1 - b) * w, b * w


def G(count: Any) -> Any:
    r"""Return :math:`G_n = 1 + \beta + \dots + \beta^{n-1} = (1-\beta^n)/(1-\beta)`."""
    return (1 - b**count) / (1 - b)


def B(count: Any, setup: Any = phi) -> Any:
    r"""Return the first share :math:`\mathcal{B}(n)` as printed in (4.12)."""
    return (1 - b) / (1 - b**count) + count * setup / (1 - b**count) - setup / (1 - b)


def share(index: Any, first: Any, setup: Any = phi) -> Any:
    r"""Share j, :math:`\alpha_1 \beta^{j-1} - \phi (1-\beta^{j-1})/(1-\beta)`, below (4.11)."""
    return first * b ** (index - 1) - setup * (1 - b ** (index - 1)) / (1 - b)


def powers_below_one(d: Any, *exponents: Any) -> None:
    r"""Give a derivation :math:`0<\beta<1` and :math:`1-\beta^n>0`, by induction."""
    d.assume(1 - b, r"$0 < \beta < 1$, because $C_{ms} > 0$")
    d.grows(1 - b**n, n, p, b**n * p, r"$\beta^n < 1$ for every $n \ge 1$", {p: 1 - b})
    for exponent in exponents:
        d.at(1 - b**n, {n: exponent})
