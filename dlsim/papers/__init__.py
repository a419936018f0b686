"""One module per reproduced paper; each knows its figures by name and loads them when asked.

A paper's `Study` (study.py) runs its experiments at one scale. Each experiment is a function of
cells.py that draws one workload, environment or platform and runs all policies on it, so that
they are compared on the same one; the study tells it what its parameters name. What is plotted
from the frames is written in the notebook; drawings and tables that need code are in draw.py.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any


def rooms(package: str, names: Sequence[str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a paper: its names are found in its rooms on first use."""

    def find(name: str) -> Any:
        if name in names:
            for room in (f"{package}.study", "dlsim.study.study", f"{package}.draw"):
                found = importlib.import_module(room)
                if hasattr(found, name):
                    return getattr(found, name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
