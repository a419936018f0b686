"""What the engines of paper C refuse: columns of times, and schedules that break a rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError, ScheduleError
from dlsim.given import Floats, column
from dlsim.kernel import latest_finish
from dlsim.rounding import not_after

#: Most of what is counted one by one.
MOST_COUNT = 10**7


def time_column(
    what: str, table: pd.DataFrame, name: str, positive: bool = False, absent: bool = False
) -> Floats:
    """Return a column of times as floats; NaN where `absent` allows it (no such version)."""
    rule = "a finite positive time" if positive else "a finite time of at least 0"
    rule += ", or empty where there is no such version" if absent else ""
    place = f"{what}: {name}"
    return column(
        place, table[name], above=positive, absent=absent, rule=rule, row="row", labels=table.index
    )


def estimates_of(jobs: pd.DataFrame, cls: str, real: Floats, only: bool = False) -> Floats:
    """Return the declared times of a class; the realised ones where there is no column."""
    name = f"{cls}_estimate"
    if name not in jobs:
        return real
    told = time_column("jobs", jobs, name, positive=True, absent=True)
    odd = np.isnan(told) & ~np.isnan(real) | only & ~np.isnan(told) & np.isnan(real)
    if odd.any():
        where, has = (", and only there", "one of them") if only else ("", "none")
        label = jobs.index[int(np.argmax(odd))]
        what = f"must be given where {cls}_time is{where}; job {label!r} has {has}"
        raise InputError(f"jobs: {name} {what}")
    return told


def near(a: Any, b: Any, span: Any) -> bool:
    """Tell whether two times are one instant, for a duration at hand; also on Fractions."""
    return bool(max(a, b) <= latest_finish(min(a, b), span))


def together(a: Any, b: Any, span: Any) -> Any:
    """Tell elementwise whether instants are one, for a duration at hand: a check's own rule."""
    return not_after(a, b, span) & not_after(b, a, span)


def first_least(found: Sequence[Any], finishes: Sequence[float], now: float) -> Any:
    """Return the first of those with the least finish, up to the one tolerance; NaN is none."""
    least = min(at for at in finishes if at == at)
    limit = latest_finish(least, least - now)
    return next(one for one, at in zip(found, finishes, strict=True) if at <= limit)


def before(lanes: Any, values: Any, first: float) -> Floats:
    """Return for each row the value of the one before in its lane; `first` where there is none."""
    lanes, values = np.asarray(lanes), np.asarray(values, dtype=float)
    order = np.argsort(lanes, kind="stable")
    same = lanes[order[1:]] == lanes[order[:-1]]
    found = np.full(len(values), first)
    found[order[1:][same]] = values[order[:-1][same]]
    return found


def apart(lanes: Any, start: Any, end: Any, span: Any) -> NDArray[np.bool_]:
    """Tell of each run whether the one before in its lane is over when it starts."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    order = np.lexsort((end, start))
    good = np.ones(len(order), dtype=bool)
    over = before(np.asarray(lanes)[order], end[order], -np.inf)
    good[order] = not_after(over, start[order], span)
    return good


def hold(rule: str, good: Any, labels: Sequence[Any] | pd.Index | None = None) -> None:
    """Refuse a schedule that breaks a rule, naming the first of `labels` where it is not `good`."""
    flags = np.atleast_1d(np.asarray(good, dtype=bool)).tolist()
    if not all(flags):
        first = flags.index(False)
        who = "" if labels is None else f": broken by {labels[first]!r}"
        raise ScheduleError(f"{rule}{who}")
