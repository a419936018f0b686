"""Tolerances of the checks: how far numbers may differ that were computed by different routes.

Times in a table are rounded to its clock. They may differ by TOL of the duration involved plus
`TABLE_ULPS` units in the last place (4 for times that an engine takes as equal, the rest for the
table). Recomputed values may differ by `RELATIVE_ROUNDING` of the duration involved and by
`MAX_ULPS` roundings of the clock.
"""

import functools
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import TOL

#: Relative error of a value that is computed by another route.
RELATIVE_ROUNDING = 1e-9
#: Roundings of the clock, in units in the last place: of a recomputed time, of a time in a table.
MAX_ULPS = 64
TABLE_ULPS = 8
_EPS = np.finfo(float).eps


def add_in_order(values: Iterable[Any]) -> Any:
    """Return a sum of which every step is rounded: from Python 3.12 on, `sum` does it otherwise."""
    return functools.reduce(operator.add, values, 0)


def times_equal(
    first: Any, second: Any, span: Any, ulps: Any = MAX_ULPS, slack: Any = 0.0
) -> NDArray[np.bool_]:
    """Tell whether two times (or durations) are equal up to rounding.

    Parameters
    ----------
    first, second : float or array
        The times.
    span : float or array
        The duration from which they were computed.
    ulps : int or array
        Allowed roundings of the clock.
    slack : float or array
        A further allowance, such as the rounding of the clock times a speed.
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    clock = ulps * _EPS * np.maximum(np.abs(first), np.abs(second))
    return np.asarray(
        np.abs(first - second)
        <= clock + slack + RELATIVE_ROUNDING * np.abs(np.asarray(span, dtype=float))
    )


def not_after(first: Any, second: Any, span: Any) -> NDArray[np.bool_]:
    """Tell whether the first time is at most the second, up to the tolerance for `span`."""
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    nearer = np.minimum(np.abs(first), np.abs(second))  # one may be infinite
    return np.asarray(first <= second + time_tolerance(span, nearer))


def time_tolerance(span: Any, *at: Any) -> NDArray[np.float64]:
    """Return the largest difference of two times that count as equal, for a duration `span`."""
    furthest = functools.reduce(np.maximum, map(np.abs, at))
    return np.asarray(TOL * np.asarray(span) + TABLE_ULPS * _EPS * furthest)
