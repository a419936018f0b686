"""Which paper knows which switch: what ``--reading`` means to several notebooks at once."""

import importlib
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dlsim.errors import InputError
from dlsim.given import option

Switches = dict[str, tuple[Any, ...]]


def word(option: object) -> str:
    """Return an option as it is written on the command line."""
    return f"{option:g}" if isinstance(option, float) else str(option)


def switches_of(notebook: str) -> Switches:
    """Return the switches of a notebook's paper, without loading its study."""
    package = f"dlsim.papers.{notebook[3:].replace('-', '_')}"
    spec = find_spec(package)
    rooms = spec.submodule_search_locations if spec else None
    if not any((Path(room) / "cells.py").exists() for room in rooms or ()):
        return {}
    return dict(importlib.import_module(f"{package}.cells").SWITCHES)


def by_notebook(reading: Mapping[str, str], notebooks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Give every notebook the switches that its paper knows."""
    tables = {name: switches_of(name) if reading else {} for name in notebooks}
    for switch, value in reading.items():
        known = [word(v) for table in tables.values() for v in table.get(switch, ())]
        if not known:
            each = "; ".join(f"{name}: {', '.join(one)}" for name, one in tables.items() if one)
            raise InputError(
                f"no paper asked for ({', '.join(tables)}) knows the switch {switch!r}; "
                f"they know: {each or 'none'}"
            )
        option(switch, value, dict.fromkeys(known))
    return {
        name: {
            switch: value
            for switch, asked in reading.items()
            for value in table.get(switch, ())
            if word(value) == asked
        }
        for name, table in tables.items()
    }
