"""How close numbers must be that were computed by different routes: the checks' own rule.

Instants come from a table, that is rounded to the clock of its reader, so they are compared
after a subtraction that loses nothing. What is left may differ by TOL of the duration at hand
and `TABLE_ULPS` units in the last place (4 that an engine may take for one instant, the rest
for the table); what is recomputed by another route, by `RELATIVE_ROUNDING` of the duration
involved and by `MAX_ULPS` roundings of the clock.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import TOL

RELATIVE_ROUNDING = 1e-9
MAX_ULPS = 64
TABLE_ULPS = 8
_EPS = np.finfo(float).eps


def times_equal(
    a: Any, b: Any, span: Any, ulps: int = MAX_ULPS, slack: Any = 0.0
) -> NDArray[np.bool_]:
    """Tell whether two instants (or durations) are equal but for rounding.

    `span` is the duration behind them, `ulps` the roundings of the clock allowed, `slack` what
    else is: `time_tolerance` where releases that count as one come in.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    clock = ulps * _EPS * np.maximum(np.abs(a), np.abs(b))
    return np.asarray(
        np.abs(a - b) <= clock + slack + RELATIVE_ROUNDING * np.abs(np.asarray(span, dtype=float))
    )


def not_after(a: Any, b: Any, span: Any) -> NDArray[np.bool_]:
    """Tell whether instant a comes before b or is the same, for a duration at hand."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    nearer = np.minimum(np.abs(a), np.abs(b))  # either may be infinite
    return np.asarray(a <= b + time_tolerance(span, nearer))


def time_tolerance(span: Any, *at: Any) -> NDArray[np.float64]:
    """Return how far apart two instants may be and still be one, for a duration at hand."""
    furthest = functools.reduce(np.maximum, map(np.abs, at))
    return np.asarray(TOL * np.asarray(span) + TABLE_ULPS * _EPS * furthest)


def overrun(end: Any, begin: Any, allowed: Any) -> NDArray[np.float64]:
    """Return ``end - (begin + allowed)`` without the rounding of the sum (Knuth's TwoSum)."""
    end, begin, allowed = (np.asarray(x, dtype=float) for x in (end, begin, allowed))
    due = begin + allowed
    back = due - begin
    lost = (begin - (due - back)) + (allowed - back)
    return np.asarray((end - due) - lost)
