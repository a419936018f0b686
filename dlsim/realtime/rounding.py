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


def equal(a: Any, b: Any, span: Any, ulps: int = ULPS, slack: Any = 0.0) -> NDArray[np.bool_]:
    """Tell whether two instants (or durations) are equal but for rounding.

    Parameters
    ----------
    a, b : array_like of float
        Instants.
    span : array_like of float
        Duration behind them.
    ulps : int
        Roundings of the clock allowed.
    slack : array_like of float
        What else is allowed: `instant` where releases that count as one come in.

    Returns
    -------
    ndarray of bool
        Per pair.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    clock = ulps * np.finfo(float).eps * np.maximum(np.abs(a), np.abs(b))
    return np.asarray(
        np.abs(a - b) <= clock + slack + ROUNDING * np.abs(np.asarray(span, dtype=float))
    )


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
    return np.asarray(a <= b + instant(a, b))


def instant(*at: Any) -> NDArray[np.float64]:
    """Return how far apart two instants may be and still be one: twice the tolerance.

    Parameters
    ----------
    *at : array_like of float
        Instants.

    Returns
    -------
    ndarray of float
        2 TOL max(1, abs(t)), t the one that is furthest from 0.
    """
    furthest = np.max(np.abs(np.broadcast_arrays(1.0, *at)), axis=0)
    return np.asarray(2 * TOL * furthest)
