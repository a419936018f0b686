"""What a check may read of a schedule, and how close numbers of different routes must be.

Instants come from a table, that is rounded to the clock of its reader, so they are compared
after a subtraction that loses nothing. What is left may differ by TOL of the duration at hand
and `PLACES` units in the last place (4 that an engine may take for one instant, the rest for
the table); what is recomputed by another route, by `ROUNDING` of the duration involved and by
`ULPS` roundings of the clock.
"""

from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.kernel import TOL
from dlsim.realtime.model import Cluster, Policy, Reading
from dlsim.realtime.partition import span_of, table_for

ROUNDING = 1e-9
ULPS = 64
PLACES = 8
_EPS = np.finfo(float).eps

Rule = tuple[str, pd.Index, Any]


class Tasks(Protocol):
    """Tasks as they came: columns, the rank of a static order, nodes asked for, labels."""

    @property
    def arrival(self) -> NDArray[np.float64]: ...
    @property
    def sigma(self) -> NDArray[np.float64]: ...
    @property
    def deadline(self) -> NDArray[np.float64]: ...
    @property
    def key(self) -> NDArray[np.float64]: ...
    @property
    def wanted(self) -> NDArray[np.int64]: ...
    @property
    def labels(self) -> pd.Index: ...


class Result(Protocol):
    """What a check may read of a schedule; the meanings stand in `dlsim.realtime.Schedule`."""

    @property
    def tasks(self) -> pd.DataFrame: ...
    @property
    def chunks(self) -> pd.DataFrame: ...
    @property
    def kinds(self) -> pd.Series: ...
    @property
    def runs(self) -> pd.DataFrame | None: ...
    @property
    def given(self) -> Tasks | None: ...
    @property
    def parts(self) -> "Result | None": ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def name(self) -> str: ...
    @property
    def reading(self) -> Reading: ...
    @property
    def negotiate(self) -> float: ...
    @property
    def is_physical(self) -> bool: ...


def scale_of(s: Result) -> float:
    """Return the duration that tells two instants of a schedule apart."""
    return span_of(s.tasks["sigma"].to_numpy(), table_for(s.cluster, s.policy.partition))


def equal(a: Any, b: Any, span: Any, ulps: int = ULPS, slack: Any = 0.0) -> NDArray[np.bool_]:
    """Tell whether two instants (or durations) are equal but for rounding.

    `span` is the duration behind them, `ulps` the roundings of the clock allowed, `slack` what
    else is: `instant` where releases that count as one come in.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    clock = ulps * _EPS * np.maximum(np.abs(a), np.abs(b))
    return np.asarray(
        np.abs(a - b) <= clock + slack + ROUNDING * np.abs(np.asarray(span, dtype=float))
    )


def not_after(a: Any, b: Any, span: Any) -> NDArray[np.bool_]:
    """Tell whether instant a comes before b or is the same, for a duration at hand."""
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.asarray(a <= b + instant(span, a, b))


def instant(span: Any, *at: Any) -> NDArray[np.float64]:
    """Return how far apart two instants may be and still be one, for a duration at hand."""
    furthest = np.max(np.abs(np.broadcast_arrays(*at)), axis=0)
    return np.asarray(TOL * np.asarray(span) + PLACES * _EPS * furthest)


def overrun(end: Any, begin: Any, allowed: Any) -> NDArray[np.float64]:
    """Return ``end - (begin + allowed)`` without the rounding of the sum (Knuth's TwoSum)."""
    end, begin, allowed = (np.asarray(x, dtype=float) for x in (end, begin, allowed))
    due = begin + allowed
    back = due - begin
    lost = (begin - (due - back)) + (allowed - back)
    return np.asarray((end - due) - lost)
