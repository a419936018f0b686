"""What the engines of paper C refuse: numbers, names and columns that cannot be used."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError, ScheduleError
from dlsim.kernel import TOL

Floats = NDArray[np.float64]


def need_option(what: str, value: object, options: Sequence[str]) -> None:
    """Refuse a value that is not one of the known options.

    Parameters
    ----------
    what : str
        Name of the field, for the message.
    value : object
        What was asked for.
    options : sequence of str
        What is known.

    Raises
    ------
    InputError
        If `value` is not among `options`.
    """
    if not isinstance(value, str) or value not in options:
        raise InputError(f"{what} must be one of {', '.join(options)}; got {value!r}")


def _is_number(value: object) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return not math.isnan(value)
    except OverflowError:
        return False


def need_whole(what: str, value: object, least: int = 1, most: int = 10**7) -> int:
    """Return a whole number in a range, refusing anything else.

    Parameters
    ----------
    what : str
        Name of the field, for the message.
    value : object
        3, numpy's 3 or 3.0, but not True.
    least, most : int
        The range, both ends allowed.

    Returns
    -------
    int
        The number.

    Raises
    ------
    InputError
        For anything that is not a whole number of the range.
    """
    if _is_number(value) and least <= value <= most and float(value).is_integer():  # type: ignore[operator, arg-type]
        return int(value)  # type: ignore[call-overload]
    raise InputError(f"{what} must be a whole number in {least}..{most}, got {value!r}")


def need_number(
    what: str,
    value: object,
    least: float = 0.0,
    most: float = math.inf,
    positive: bool = False,
    endless: bool = False,
) -> Any:
    """Return a number of a range as it is, so that Fractions stay exact.

    Parameters
    ----------
    what : str
        Name of the field, for the message.
    value : object
        Any real number.
    least, most : float
        The range, both ends allowed.
    positive : bool
        Whether 0 is refused.
    endless : bool
        Whether infinity is allowed.

    Returns
    -------
    float or Fraction
        The number.

    Raises
    ------
    InputError
        For anything that is not a number of the range.
    """
    if (
        _is_number(value)
        and (endless or value != math.inf)
        and least <= value <= most  # type: ignore[operator]
        and not (positive and value == 0)
    ):
        return value
    rule = f"a number of at least {least:g}" if most == math.inf else f"in {least:g}..{most:g}"
    rule += ", and not 0" if positive else ""
    raise InputError(f"{what} must be {rule}{'' if endless else ', finite'}; got {value!r}")


def need_columns(what: str, table: object, names: Sequence[str]) -> pd.DataFrame:
    """Return a table that has the columns asked for, at least one row and no row twice.

    Parameters
    ----------
    what : str
        What the table holds, for the message.
    table : object
        Anything.
    names : sequence of str
        Columns that must be there.

    Returns
    -------
    DataFrame
        The table.

    Raises
    ------
    InputError
        For what is no table, a missing column, no rows, or a label that occurs twice.
    """
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"{what} must be a DataFrame, got {type(table).__name__}")
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(
            f"{what} must have the columns {', '.join(names)}; {missing[0]} is missing among "
            + (", ".join(map(str, table.columns)) or "none")
        )
    if table.empty:
        raise InputError(f"{what} must have at least one row, got none")
    if not table.index.is_unique:
        twice = table.index[table.index.duplicated()].tolist()[0]
        raise InputError(f"{what} must have unique labels; {twice!r} occurs twice")
    return table


def _float(value: object) -> float:
    try:
        return float(value) if _is_number(value) else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return math.inf


def need_times(
    what: str, table: pd.DataFrame, name: str, positive: bool = False, absent: bool = False
) -> Floats:
    """Return a column of times as floats.

    Parameters
    ----------
    what : str
        What the table holds, for the message.
    table : DataFrame
        The table.
    name : str
        The column.
    positive : bool
        Whether 0 is refused.
    absent : bool
        Whether NaN is allowed (no such version).

    Returns
    -------
    ndarray of float
        A copy.

    Raises
    ------
    InputError
        Naming the first row whose value is no such time.
    """
    column = np.array([_float(value) for value in table[name].tolist()])
    given = table[name].isna().to_numpy()
    good = (np.isfinite(column) & ((column > 0) if positive else (column >= 0))) | (given & absent)
    if not good.all():
        row = int(np.argmin(good))
        rule = "finite positive time" if positive else "finite time of at least 0"
        other = ", or empty where there is no such version" if absent else ""
        raise InputError(
            f"{what}: {name} must be a {rule}{other}; row {table.index[row]!r} has "
            f"{table[name].tolist()[row]!r}"
        )
    return np.asarray(column, dtype=np.float64)


def near(a: Any, b: Any) -> Any:
    """Tell whether two times are one instant, up to the one tolerance; also on Fractions.

    Parameters
    ----------
    a, b : float or Fraction
        Absolute times.

    Returns
    -------
    bool
        ``|a - b| <= TOL * max(1, |a|, |b|)``.
    """
    return abs(a - b) <= TOL * max(1, abs(a), abs(b))


def not_after(a: Any, b: Any) -> Any:
    """Tell elementwise whether times lie at or before others, up to the one tolerance.

    Parameters
    ----------
    a, b : array_like of float
        Absolute times.

    Returns
    -------
    ndarray of bool
        True where ``a <= b`` but for rounding.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return a <= b + 4 * TOL * np.maximum(1, np.abs(b))


def together(a: Any, b: Any) -> Any:
    """Tell elementwise whether times are one instant, up to the one tolerance.

    Parameters
    ----------
    a, b : array_like of float
        Absolute times.

    Returns
    -------
    ndarray of bool
        True where they differ by rounding at most.
    """
    return not_after(a, b) & not_after(b, a)


def hold(rule: str, good: Any, labels: Sequence[Any] | pd.Index | None = None) -> None:
    """Refuse a schedule that breaks a rule.

    Parameters
    ----------
    rule : str
        What must hold, in the words of the model.
    good : array_like of bool
        Where it holds.
    labels : sequence, optional
        What each entry of `good` is about.

    Raises
    ------
    ScheduleError
        Naming the rule and the first entry that breaks it.
    """
    flags = np.atleast_1d(np.asarray(good, dtype=bool)).tolist()
    if not all(flags):
        first = flags.index(False)
        who = "" if labels is None else f": broken by {labels[first]!r}"
        raise ScheduleError(f"{rule}{who}")
