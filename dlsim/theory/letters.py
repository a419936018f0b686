"""The letters of the derivations, with the signs that SymPy may use."""

from typing import Any

import sympy as sp


def positive(names: str) -> Any:
    """Return positive real symbols."""
    return sp.symbols(names, positive=True)


def counts(names: str) -> Any:
    """Return symbols for positive integers."""
    return sp.symbols(names, integer=True, positive=True)


b, w, sigma, tau, chi, Delta = positive("beta w sigma tau chi Delta")
L, u, t = positive("L u t")
ST, SC, phi = sp.symbols("ST SC phi", nonnegative=True)
n, j, k, m, i = counts("n j k m i")
#: Letters of certificates: p, q, r, s are positive, y and z non-negative.
p, q, r, s = positive("p q r s")
x, y, z = sp.symbols("x y z", nonnegative=True)
