"""The base class of every Reading: how the ambiguous sentences of a paper are understood.

A Reading is a frozen dataclass of which fields are made by `switch`: an engine has one for its
rules, and every function that draws inputs has one for what the paper leaves open about them. Other
fields are what the paper states.
"""

import dis
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import reduce
from types import CodeType
from typing import Any, Self, TypeVar

from dlsim.user_code import resolve_user_code
from dlsim.validate import mapping, number, number_range, one_of

_Name = TypeVar("_Name")


def switch(
    options: Sequence[Any],
    *,
    label: str,
    reads: str | Sequence[str],
    number: Mapping[str, Any] | None = None,
    is_range: bool = False,
    is_open: bool = False,
    rule: str = "",
    papers: str = "",
    touches: Callable[[Any], bool] | None = None,
) -> Any:
    """Return the dataclass field of a switch.

    Parameters
    ----------
    options : sequence
        Values of the switch, the default first; of a number, some values worth trying.
    label : str
        What the switch decides, in words that panels and lists show.
    reads : str or sequence of str
        The function that acts on the switch, or several, as ``module:name`` below the package of
        the reading, such as ``core.orders:mcdf_rank``, or from ``dlsim`` on; `require_readers`
        refuses a switch that they do not read. A function of a notebook is written as
        ``50-cpu-gpu.ipynb:name``; a test looks into the notebook.
    number : mapping, optional
        The switch is a number with these limits, arguments of `dlsim.validate.number`.
    is_range : bool
        Whether the switch is a range of numbers, its two ends of at least 0.
    is_open : bool
        Whether the value may also be a function of a user, or its name as ``FILE.py:name``.
    rule : str
        Name under which `BaseReading.rules` tells whether the second option is chosen.
    papers : str
        Letters of the papers whose notebooks compare claims under this switch.
    touches : callable, optional
        Whether the switch can change the result of a policy or method, from its record, such as
        ``lambda policy: policy.order == "dc"``; default: it can change every result.
    """
    about: dict[str, Any] = {
        "options": tuple(options),
        "label": label,
        "reads": (reads,) if isinstance(reads, str) else tuple(reads),
        "number": number,
        "is_range": is_range,
        "is_open": is_open,
        "rule": rule,
        "papers": papers,
        "touches": touches,
    }
    return field(default=about["options"][0], metadata=about)


@dataclass(frozen=True)
class BaseReading:
    """Switches with options, the default first; a subclass makes them by `switch`."""

    def __post_init__(self) -> None:
        for name, about in self._switches().items():
            value = getattr(self, name)
            if about["is_open"]:
                value = resolve_user_code(name, value)
            if about["number"] is not None:
                value = number(name, value, **about["number"])
            elif about["is_range"]:
                value = number_range(name, value)
            elif not (about["is_open"] and callable(value)):
                value = one_of(name, value, about["options"])
            object.__setattr__(self, name, value)

    @classmethod
    def _switches(cls) -> dict[str, Mapping[str, Any]]:
        """Return what every switch is made of."""
        return {one.name: one.metadata for one in fields(cls) if "options" in one.metadata}

    @classmethod
    def switches(cls, paper: str = "") -> dict[str, tuple[Any, ...]]:
        """Return the options of every switch, or of those of a paper, the default first."""
        own = cls._switches().items()
        return {name: about["options"] for name, about in own if paper in about["papers"]}

    @classmethod
    def labels(cls) -> dict[str, str]:
        """Return what every switch decides, in words."""
        return {name: about["label"] for name, about in cls._switches().items()}

    @classmethod
    def readers(cls) -> dict[str, tuple[str, ...]]:
        """Return the functions that act on every switch, as ``package.module:name``."""
        package = cls.__module__.rpartition(".")[0]

        def whole_place(place: str) -> str:
            """Return a place with the package that it lies in."""
            is_whole = place.startswith("dlsim.") or ".ipynb:" in place
            return place if is_whole else f"{package}.{place}"

        return {
            name: tuple(map(whole_place, about["reads"])) for name, about in cls._switches().items()
        }

    @classmethod
    def from_switches(cls, switches: Mapping[str, Any]) -> Self:
        """Return a reading from the switches that are not default; a number may be a text."""
        known, values = cls._switches(), {}
        for name, value in mapping("switches", switches).items():
            values[one_of("reading switch", name, known)] = value
            if known[name]["number"] is not None and isinstance(value, str):
                with suppress(ValueError):  # the constructor refuses a text that is no number
                    values[name] = float(value)
        return cls(**values)

    def rules(self) -> dict[str, bool]:
        """Return whether the second option is chosen, by the rule name of each switch."""
        return {
            about["rule"]: getattr(self, name) == about["options"][1]
            for name, about in self._switches().items()
            if about["rule"]
        }

    def changes(self) -> dict[str, Any]:
        """Return the switches that differ from the default."""
        values = {name: getattr(self, name) for name in self._switches()}
        default = type(self)()
        return {name: one for name, one in values.items() if one != getattr(default, name)}


def find_touched(
    switch: str, records: Mapping[_Name, Any], *readings: type[BaseReading]
) -> list[_Name]:
    """Return the names of the policies or methods whose results a switch can change.

    Parameters
    ----------
    switch : str
        Name of a switch; one that none of the readings has can change every result.
    records : mapping
        The records by name.
    *readings : type
        Readings of the engine and of its inputs.
    """
    abouts = [one._switches()[switch] for one in readings if switch in one._switches()]
    tests = [about["touches"] for about in abouts] or [None]
    return [name for name, one in records.items() if any(not test or test(one) for test in tests)]


def _loaded_names(code: CodeType) -> Iterator[Any]:
    """Yield the names and texts that a function or its inner functions load."""
    for step in dis.get_instructions(code):
        if step.opname.startswith("LOAD"):
            yield step.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _loaded_names(inner)


def _find_function(place: str) -> Callable[..., Any]:
    """Return the plain function that ``package.module:name`` names."""
    module, _, name = place.partition(":")
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    found = reduce(getattr, name.split("."), found)
    for wrapped in ("fget", "func", "py_func", "__func__"):  # properties, kernels, class methods
        found = getattr(found, wrapped, found)
    return found


def require_readers(*readings: type[BaseReading]) -> None:
    """Raise TypeError for a switch that a function named for it does not load, nor its rule."""
    for reading in readings:
        rules = {name: about["rule"] for name, about in reading._switches().items()}
        for name, places in reading.readers().items():
            what = f"switch {name!r} of {reading.__module__}.{reading.__qualname__}"
            if not places:
                raise TypeError(f"{what} names no function that reads it; say which (reads=...)")
            for place in (place for place in places if ".ipynb:" not in place):
                try:
                    code = _find_function(place).__code__
                except (ImportError, AttributeError) as error:
                    raise TypeError(f"{what} is read by {place!r}, which is not there") from error
                if {name, rules[name] or name}.isdisjoint(_loaded_names(code)):
                    raise TypeError(f"{what} is not read by {place!r}; name the function that does")
