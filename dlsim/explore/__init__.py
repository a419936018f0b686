"""Panels to explore the papers with sliders, in a notebook.

>>> from dlsim import explore
>>> explore.timing.link(nodes=8)
'explore.timing(nodes=8)'

Calling a panel shows it; its line at the bottom is the call that brings it back.
"""

import importlib
from pathlib import Path
from typing import Any

#: Every panel by name, with the module that makes it.
PANELS = {
    "timing": "loads",
    "schedules": "rivals",
    "idle_times": "loads",
    "wan": "flows",
    "grid": "deadlines",
    "queue": "devices",
    "pipeline": "devices",
}

__all__ = ["PANELS", "save_pictures", *PANELS]


def __getattr__(name: str) -> Any:
    """Import a panel when it is first asked for: each needs an engine."""
    if (home := PANELS.get(name)) is None:
        raise AttributeError(f"dlsim.explore has no panel {name!r}; it has {', '.join(PANELS)}")
    return getattr(importlib.import_module(f"dlsim.explore.{home}"), name)


def save_pictures(folder: str | Path) -> list[Path]:
    """Write every panel as it opens as figures/explore-<name>.png; equal pictures, equal bytes.

    Parameters
    ----------
    folder : path
        Of results, as of `dlsim.study.report.Results`; made if need be.

    Returns
    -------
    list of Path
        One file per panel.

    Raises
    ------
    InputError
        For a folder that cannot be written to, or that holds something else.
    """
    from dlsim.study.report import Results

    results = Results(folder, "explore")
    return [
        results.picture(f"explore-{name.replace('_', '-')}", __getattr__(name).saved("png"))
        for name in PANELS
    ]
