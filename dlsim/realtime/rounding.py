"""How close two numbers must be that were computed by different routes.

Two instants within TOL are one, for the engine and for `Schedule.check`. What is recomputed
by another route may differ by `ROUNDING` of the duration involved, and by `ULPS` roundings
of the clock.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlsim.kernel import TOL

ROUNDING = 1e-9
ULPS = 64


def equal(a: Any, b: Any, span: Any, ulps: int = ULPS) -> NDArray[np.bool_]:
    """Tell whether two instants (or durations) are equal but for rounding.

    Parameters
    ----------
    a, b : array_like of float
        Instants.
    span : array_like of float
        Duration behind them.
    ulps : int
        Roundings of the clock allowed.

    Returns
    -------
    ndarray of bool
        Per pair.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    clock = ulps * np.finfo(float).eps * np.maximum(np.abs(a), np.abs(b))
    return np.asarray(np.abs(a - b) <= clock + ROUNDING * np.abs(np.asarray(span, dtype=float)))


def not_after(a: Any, b: Any) -> NDArray[np.bool_]:
    """Tell whether instant a comes before b or is the same, by the engine's tolerance.

    Parameters
    ----------
    a, b : array_like of float
        Instants.

    Returns
    -------
    ndarray of bool
        Per pair.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.asarray(a <= b + 2 * TOL * np.maximum(1, np.maximum(np.abs(a), np.abs(b))))
