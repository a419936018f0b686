"""Panels to explore the papers with sliders, in a notebook.

>>> from dlsim import explore
>>> explore.timing.link(nodes=8)
'explore.timing(nodes=8)'

Calling a panel shows it; its line at the bottom is the call that brings it back.
"""

import importlib
from typing import Any

#: Every panel by name, with the module that makes it.
PANELS = {
    "timing": "diagrams",
    "schedules": "rivals",
    "idle_times": "gaps",
    "wan": "flows",
    "grid": "deadlines",
    "queue": "devices",
    "pipeline": "overlap",
}

__all__ = ["PANELS", *PANELS]


def __getattr__(name: str) -> Any:
    """Import a panel when it is first asked for: each needs an engine."""
    if name not in PANELS:
        raise AttributeError(f"dlsim.explore has no panel {name!r}; it has {', '.join(PANELS)}")
    return importlib.import_module(f"dlsim.explore.{PANELS[name]}").PANEL
