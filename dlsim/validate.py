"""Argument validation: each function returns the converted value or raises InputError.

A number is any value that Python and NumPy call real; a bool, a text and a Decimal are refused
(write ``float(x)``, or ``Fraction(x)`` for an exact value). A number is returned as int, float or
Fraction; a Fraction stays exact. Every number is 0 or has a magnitude from `MIN_MAGNITUDE` to
`MAX_MAGNITUDE`. A product or ratio of any three then lies in 1e-300..1e300, so that terms of
times, data and speeds, such as sigma cps / (D - sigma cms), neither overflow nor lose digits as
denormal numbers do.
"""

import importlib
import importlib.util
import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from fractions import Fraction
from functools import partial
from numbers import Integral, Rational, Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import SeedSequence
from numpy.typing import NDArray

from dlsim.errors import InputError

Seed = int | SeedSequence
Floats = NDArray[np.float64]

#: Range of the magnitude of a number that is not 0 (module docstring).
MIN_MAGNITUDE, MAX_MAGNITUDE = 1e-100, 1e100
#: Largest count without a limit of its own: floats hold every whole number up to here.
MAX_COUNT = 2**53

#: Bytes of memory below which `require_memory` refuses nothing.
SMALL_BYTES = 2**28

_PLAIN = (float, int, Fraction)

#: Seconds of a unit of time.
_SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"([\d.eE+-]+)\s*(|s|m|min|h|d)")


def to_builtin(value: Any) -> Any:
    """Return a real number as int, float or Fraction, and any other value as NaN."""
    if type(value) in _PLAIN:
        return value
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    if isinstance(value, Integral):
        return int(value)
    return Fraction(value) if isinstance(value, Rational) else float(value)


def unwrap_scalar(value: Any) -> Any:
    """Return a scalar of numpy as the Python value, and any other value as it is."""
    return value.item() if isinstance(value, np.generic) else value


def format_value(value: Any) -> str:
    """Return an option or a coordinate of a point as text: 10.0 as 10."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def number(
    name: str,
    value: Any,
    low: float = 0,
    high: float = MAX_MAGNITUDE,
    *,
    above: bool = False,
    below: bool = False,
    rule: str = "",
) -> Any:
    """Return a number in a range; `above` and `below` exclude its ends, an end of inf is allowed.

    `rule` replaces the range in the message, in the words of the model.
    """
    x = to_builtin(value)
    inside = (low < x if above else low <= x) and (x < high if below else x <= high)
    size = abs(x)
    if inside and (MIN_MAGNITUDE <= size <= MAX_MAGNITUDE or x == 0 or size == math.inf):
        return x
    is_far = (size > MAX_MAGNITUDE and high >= MAX_MAGNITUDE) or 0 < size < MIN_MAGNITUDE
    if is_far and size <= sys.float_info.max and x >= low:
        zero = "" if above and low == 0 else "0 or "
        rule = f"{zero}between {MIN_MAGNITUDE:g} and {MAX_MAGNITUDE:g}"
        unit = "choose another unit of time or data"
        raise InputError(f"{name} must be {rule}, got {value!r}; {unit}")
    if not rule:
        ends = [f"above {low:g}" if above else f"of at least {low:g}"] * (low > -MAX_MAGNITUDE)
        ends += [f"below {high:g}" if below else f"at most {high:g}"] * (high < MAX_MAGNITUDE)
        rule = f"a {'finite ' * (high == MAX_MAGNITUDE)}number {' and '.join(ends)}".strip()
    raise InputError(f"{name} must be {rule}, got {value!r}")


def require_positive(**values: Any) -> list[float]:
    """Return finite numbers above 0 as floats, in the order of their names."""
    return [float(number(name, value, above=True)) for name, value in values.items()]


def whole(name: str, value: Any, low: int = 1, high: float = MAX_COUNT, rule: str = "") -> int:
    """Return a whole number in a range: 3, numpy's 3 or 3.0."""
    x = to_builtin(value)
    if low <= x <= high and x % 1 == 0:
        return int(x)
    least = f"of at least {low}" if high >= MAX_COUNT and not x > high else f"in {low}..{high}"
    raise InputError(f"{name} must be {rule or f'a whole number {least}'}, got {value!r}")


def did_you_mean(value: Any, known: Iterable[Any]) -> str:
    """Return a hint such as " (did you mean EDF?)" for a misspelt name, or "" if none is close."""
    words = {str(one).casefold(): str(one) for one in known}
    found = get_close_matches(value.casefold(), words, 1) if isinstance(value, str) else []
    return f" (did you mean {words[found[0]]}?)" if found else ""


def one_of_many(what: str, name: Any, known: Collection[Any]) -> Any:
    """Return a name that is known; the message does not list the known names."""
    try:
        if name in known:
            return name
    except TypeError:  # it cannot be hashed
        pass
    raise InputError(f"no {what} is called {name!r}{did_you_mean(name, known)}")


def one_of(name: str, value: Any, options: Iterable[Any]) -> Any:
    """Return the option that equals a value; True is not 1. The message lists the options."""
    known = tuple(options)
    if type(value) is str and value in known:
        return value
    kind = str if isinstance(value, str) else type(value)
    for one in known:
        if type(one) is kind and value == one:
            return one
    near = did_you_mean(value, known)
    raise InputError(f"{name} must be one of {', '.join(map(str, known))}; got {value!r}{near}")


def list_of(
    name: str,
    values: Any,
    check: Callable[..., Any],
    *,
    least: int = 1,
    unique: bool = True,
    **rule: Any,
) -> list[Any]:
    """Return a list of values, each as ``check(name, value, **rule)`` returns it.

    A tuple or an array is taken, too. A list of fewer than `least` values is refused, and, if
    `unique`, one that holds a value twice: two points would have the same name.

    >>> list_of("loads", [0.5, 1], number, above=True)
    [0.5, 1]
    """
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, list | tuple):
        example = [values] if isinstance(values, int | float) else "[...]"
        raise InputError(f"{name} must be a list, got {values!r}; write {name} = {example}")
    if len(values) < least:
        count = "one value" if least == 1 else f"{least} values"
        raise InputError(f"{name} must hold at least {count}, got {values!r}")
    found = list[Any]()
    for place, value in enumerate(values):
        checked = check(f"{name}[{place}]", value, **rule)
        if unique and checked in found:
            raise InputError(f"{name} holds {value!r} twice; give every value once")
        found.append(checked)
    return found


def lists_of_one_length(**lists: Any) -> dict[str, list[Any]]:
    """Return lists of numbers by their names, for the columns of a table.

    >>> lists_of_one_length(arrivals=[0, 0], sizes=[8, 4])
    {'arrivals': [0, 0], 'sizes': [8, 4]}
    """
    found = {name: list_of(name, values, number, unique=False) for name, values in lists.items()}
    lengths = [len(values) for values in found.values()]
    if len(set(lengths)) > 1:
        got = ", ".join(map(str, lengths))
        raise InputError(f"{', '.join(found)} must be equally long lists, got {got} values")
    return found


def any_number(name: str, value: Any) -> float:
    """Return any number, including infinity, as a float."""
    return float(number(name, value, -math.inf, math.inf, rule="a number"))


def duration(name: str, value: Any) -> float:
    """Return a time above 0 in seconds, from a number or a text with a unit.

    >>> duration("deadline", "1.5 min")
    90.0
    """
    if isinstance(value, str) and (found := _DURATION.fullmatch(value.strip())):
        with suppress(ValueError):
            value = float(found[1]) * _SECONDS[found[2]]
    rule = "a time above 0: seconds, or such as 90s, 5 min or 2h"
    return float(number(name, value, above=True, rule=rule))


def text(name: str, value: Any, *, blank: bool = True) -> str:
    """Return a text; `blank` allows the empty one."""
    if isinstance(value, str) and (blank or value):
        return value
    rule = "a text" if blank else "a text that is not blank"
    raise InputError(f"{name} must be {rule}, got {value!r}")


def unchecked(name: str, value: Any) -> Any:
    """Return a value as it is; the function that reads it next validates it."""
    return value


def instance(name: str, value: Any, kind: type, remedy: str = "", rule: str = "") -> Any:
    """Return a value of a class; `rule` replaces the name of the class in the message."""
    if isinstance(value, kind):
        return value
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    rule = rule or f"{article} {kind.__name__}"
    raise InputError(f"{name} must be {rule}, got {value!r}{remedy}")


#: Return True or False; a list; a mapping such as the switches of a reading. Others are refused.
flag = partial(instance, kind=bool, rule="True or False")
items = partial(instance, kind=list)
mapping = partial(instance, kind=Mapping, rule="a mapping such as a dict")


def import_extra(what: str, name: str, module: str) -> Any:
    """Import a module that an extra of dlsim installs; the error says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        why = f"{what} needs the extra {name} ({error}): pip install 'dlsim[{name}]'"
        raise InputError(why) from error


def require_extra(what: str, name: str, *modules: str) -> None:
    """Raise InputError if a module that an extra of dlsim installs is missing; import nothing."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            why = f"{what} needs the extra {name} ({module} is not installed)"
            raise InputError(f"{why}: pip install 'dlsim[{name}]'")


def or_default(name: str, value: Any, kind: type, remedy: str = "") -> Any:
    """Return a value of a class; None stands for the class's default instance."""
    return kind() if value is None else instance(name, value, kind, remedy)


def in_range(x: Any) -> Any:
    """Tell elementwise which numbers are 0 or have a magnitude in the allowed range."""
    return ((abs(x) >= MIN_MAGNITUDE) & (abs(x) <= MAX_MAGNITUDE)) | (x == 0)


def _float(value: Any) -> float:
    try:
        return float(to_builtin(value))
    except OverflowError:
        return math.inf


def to_floats(values: Any) -> NDArray[np.float64]:
    """Return values as a new array of floats, with NaN for every value that is not a number."""
    if isinstance(values, pd.Series | pd.Index):
        if values.dtype.kind not in "iuf":
            values = values.to_numpy(object)
        elif isinstance(values.dtype, np.dtype):
            values = values.to_numpy()
        else:  # a pandas dtype with its own missing value
            values = values.to_numpy(np.float64, na_value=math.nan)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufmM":
        if values.dtype.kind in "mM":  # a conversion to object would yield whole numbers
            return np.full(values.shape, math.nan)
        if values.dtype.itemsize <= 8:
            return values.astype(np.float64)
        with np.errstate(over="ignore"):  # a long double
            return values.astype(np.float64)
    array = np.array(values, dtype=object)
    flat = array.ravel().tolist()
    if set(map(type, flat)) == {float}:
        return np.array(flat).reshape(array.shape)
    return np.array([_float(value) for value in flat], dtype=np.float64).reshape(array.shape)


def column(
    name: str,
    values: Any,
    low: float = 0,
    high: float = MAX_MAGNITUDE,
    *,
    above: bool = False,
    below: bool = False,
    absent: bool = False,
    is_whole: bool = False,
    rule: str = "",
    row: str = "",
    labels: Sequence[Any] | pd.Index | None = None,
) -> Any:
    """Return a new array of numbers in a range, by the rules of `number` and `whole`.

    The message names the first invalid value by `row` and its label (``task 'a'``), or by its
    position. `absent` allows missing values, which are returned as NaN.
    """
    x = to_floats(values)
    good = ((x > low) if above else (x >= low)) & ((x < high) if below else (x <= high))
    good &= in_range(x) | np.isinf(x)
    if absent:
        good |= np.isnan(x) & np.asarray(pd.isna(values))
    if is_whole:
        good &= x == np.floor(x)
    if good.all():
        return x.astype(np.int64) if is_whole else x
    at = tuple(np.argwhere(~good)[0].tolist())
    one = np.asarray(values, dtype=object)[at]
    place = f"[{', '.join(map(str, at))}]" if at else ""
    if labels is not None:
        place = f" of {row} {unwrap_scalar(labels[at[0]])!r}"
    one = unwrap_scalar(one)
    if is_whole:
        whole(name + place, one, int(low), high, rule)
    number(name + place, one, low, high, above=above, below=below, rule=rule)
    raise InputError(f"{name}{place} must be a number, got {values[at[0]]!r}")  # a date


def require_table(
    name: str,
    value: Any,
    columns: Sequence[str],
    *,
    optional: Collection[str] | None = None,
    ignore: Collection[str] = (),
    empty: bool = True,
    unique: bool = True,
) -> pd.DataFrame:
    """Return a table that has each of the columns once, and unique labels if `unique`.

    With `optional`, the columns that a table may have beside those that it needs, a column that is
    neither is refused unless it is in `ignore`.
    """
    if not isinstance(value, pd.DataFrame):
        what = f"{name} must be a pandas DataFrame with the columns {', '.join(columns)}"
        raise InputError(f"{what}; got {type(value).__name__}")
    if missing := [one for one in columns if one not in value.columns]:
        known = ", ".join(map(str, value.columns)) or "none"
        what = f"{name} need the columns {', '.join(columns)}"
        raise InputError(f"{what}; {', '.join(missing)} not found among {known}")
    if optional is not None:
        refuse_unknown_columns(name, value.columns, (*columns, *optional), ignore)
    if not value.columns.is_unique:
        for twice in set(columns) & set(value.columns[value.columns.duplicated()]):
            raise InputError(f"column {twice} appears twice; give every column its own name")
    if unique and not value.index.is_unique:
        twice = value.index[value.index.duplicated()].tolist()[0]
        raise InputError(f"label {twice!r} of {name} appears twice; give every row its own")
    if value.empty and not empty:
        raise InputError(f"{name} must have at least one row, got none")
    return value


def refuse_unknown_columns(
    name: str, columns: Iterable[Any], known: Collection[str], ignore: Collection[str] = ()
) -> None:
    """Raise InputError for columns that are neither known nor to be ignored."""
    for unknown in (one for one in columns if one not in known and one not in ignore):
        near = did_you_mean(unknown, known)
        raise InputError(
            f"{name} have a column {unknown!r} that is not known{near}; the known columns are "
            f"{', '.join(known)}; drop it, or name it in ignore"
        )


def number_range(
    name: str, value: Any, low: float = 0, *, above: bool = False
) -> tuple[float, float]:
    """Return the ends of a range of numbers, the lower one first."""
    ends = to_floats(value)
    least = f"above {low:g}" if above else f"of at least {low:g}"
    if ends.shape != (2,) or not low <= ends[0] <= ends[1] < math.inf or (above and ends[0] == low):
        rule = f"a range (low, high) of finite numbers {least}"
        raise InputError(f"{name} must be {rule}, got {value!r}")
    first, last = column(name, ends, low, above=above).tolist()
    return first, last


def memory_limit() -> float:
    """Return the bytes of memory that the machine, container and shell allow a process."""
    import psutil  # imported late: rarely needed

    found = [float(psutil.virtual_memory().total + psutil.swap_memory().total)]
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # no container, or no limit ("max")
            found.append(float(Path("/sys/fs/cgroup", name).read_text("ascii")))
    with suppress(ImportError):  # Windows has no such limits
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [float(limit)] * (limit != resource.RLIM_INFINITY)
    return min(found)


def require_memory(what: str, size: float, remedy: str) -> None:
    """Raise InputError if a computation needs at least `size` bytes and memory is smaller."""
    if size > SMALL_BYTES and size > (most := memory_limit()):
        sizes = f"at least {size / 2**30:.3g} GiB are needed, of {most / 2**30:.3g} GiB in all"
        raise InputError(f"{what} cannot fit in memory: {sizes}; {remedy}")


def seed_sequence(seed: Any) -> SeedSequence:
    """Return a SeedSequence: the given one, or that of a whole number."""
    if isinstance(seed, SeedSequence):
        return seed
    return SeedSequence(whole("seed", seed, 0, math.inf))


def child_seed(seed: Any, *key: int) -> SeedSequence:
    """Return the SeedSequence of a key below a seed; unlike `spawn` it does not count calls."""
    root = seed_sequence(seed)
    return SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key), pool_size=root.pool_size)


def random_generator(seed: Any, *key: int) -> np.random.Generator:
    """Return the random generator of a key below a seed, independent of other keys."""
    return np.random.default_rng(child_seed(seed, *key))


def random_streams(seed: Any, purposes: Iterable[str]) -> dict[str, np.random.Generator]:
    """Return one generator per purpose; a new purpose must be added at the end."""
    return {purpose: random_generator(seed, k) for k, purpose in enumerate(purposes)}


def seed_record(seed: Any) -> int | dict[str, Any]:
    """Return a seed in a form that DataFrame attrs and JSON can hold."""
    if isinstance(seed, SeedSequence):
        return {"entropy": seed.entropy, "spawn_key": list(seed.spawn_key)}
    return whole("seed", seed, 0, math.inf)
