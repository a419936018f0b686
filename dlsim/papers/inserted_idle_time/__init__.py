"""Paper I, "Enhancing Real-time Scheduling of Divisible Loads by Utilizing Inserted Idle Time".

A `Study` runs the paper's experiments at one scale; each ``fig...`` and ``table...`` function
draws from it, keeps the numbers behind the picture, and returns the Axes or the table.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlsim.papers.inserted_idle_time.diagrams import (
        fig1a,
        fig1b,
        fig2,
        fig_gantt,
        fig_partitions,
    )
    from dlsim.papers.inserted_idle_time.figures import (
        fig3a,
        fig3b,
        fig4,
        fig_paired,
        fig_readings,
        fig_rivals,
        fig_table1,
        fig_use,
        table1,
        verdicts,
    )
    from dlsim.papers.inserted_idle_time.maps import (
        fig_admission,
        fig_excess,
        fig_feasible,
        fig_gain,
    )
    from dlsim.papers.inserted_idle_time.study import SCALES, Study

_ROOMS = {
    "diagrams": ("fig1a", "fig1b", "fig2", "fig_gantt", "fig_partitions"),
    "figures": (
        "fig3a", "fig3b", "fig4", "fig_paired", "fig_readings", "fig_rivals", "fig_table1",
        "fig_use", "table1", "verdicts",
    ),
    "maps": ("fig_admission", "fig_excess", "fig_feasible", "fig_gain"),
    "study": ("SCALES", "Study"),
}  # fmt: skip

__all__ = [
    "SCALES",
    "Study",
    "fig1a",
    "fig1b",
    "fig2",
    "fig3a",
    "fig3b",
    "fig4",
    "fig_admission",
    "fig_excess",
    "fig_feasible",
    "fig_gain",
    "fig_gantt",
    "fig_paired",
    "fig_partitions",
    "fig_readings",
    "fig_rivals",
    "fig_table1",
    "fig_use",
    "table1",
    "verdicts",
]


def __getattr__(name: str) -> Any:
    """Import on first use: a worker process that only runs cells needs no pictures."""
    import importlib

    room = next((room for room, names in _ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{room}"), name)
