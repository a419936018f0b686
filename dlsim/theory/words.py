r"""What the derivations write in the letters of `dlsim.theory.letters`.

The cost of a unit is written as :math:`w = C_{ms} + C_{ps}`, so that
:math:`C_{ms} = (1-\beta) w` and :math:`C_{ps} = \beta w`; statement 4.5 shows that this
is the paper's beta. Where n is real, :math:`\beta = e^{-L}`.
"""

from typing import Any

import sympy as sp

from dlsim.theory.claim import lt, sequence, total
from dlsim.theory.letters import SC, ST, b, phi, sigma, w

Cms, Cps = (1 - b) * w, b * w
#: The shares, and the time at which a node finishes, where both are sequences.
alpha, T = sequence("alpha", real=True), sequence("T", real=True)
#: The first two shares where they are any real numbers.
a1, a2 = sp.symbols("alpha_1 alpha_2", real=True)
below_one = lt(b, 1)


def finishes(j: Any, st: Any = ST, sc: Any = SC) -> Any:
    """Return when node j finishes: after j sends one after the other, it computes its share."""
    return j * st + sc + sigma * Cms * total(alpha, j, "i") + sigma * Cps * alpha(j)


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
