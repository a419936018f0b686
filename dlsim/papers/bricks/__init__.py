"""Paper B, "A Study of Deadline Scheduling for Client-Server Systems on the Computational Grid".

A `Study` runs the paper's experiments at one scale; each ``fig...`` and ``table...`` function
draws from it, keeps the numbers behind the picture, and returns the Axes or the table.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlsim.papers.bricks.beyond import (
        fig_background,
        fig_economy,
        fig_mechanisms,
        fig_pareto,
        fig_replay,
        table_tuning,
    )
    from dlsim.papers.bricks.diagrams import fig1, fig2, table1
    from dlsim.papers.bricks.figures import (
        fig3,
        fig4,
        fig5,
        fig6,
        fig_correction,
        fig_drivers,
        fig_magnitude,
        fig_paired,
        fig_readings,
        table_readings,
        verdicts,
    )
    from dlsim.papers.bricks.study import SCALES, Study

_ROOMS = {
    "beyond": (
        "fig_background", "fig_economy", "fig_mechanisms", "fig_pareto", "fig_replay",
        "table_tuning",
    ),
    "diagrams": ("fig1", "fig2", "table1"),
    "figures": (
        "fig3", "fig4", "fig5", "fig6", "fig_correction", "fig_drivers", "fig_magnitude",
        "fig_paired", "fig_readings", "table_readings", "verdicts",
    ),
    "study": ("SCALES", "Study"),
}  # fmt: skip

__all__ = [
    "SCALES",
    "Study",
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "fig5",
    "fig6",
    "fig_background",
    "fig_correction",
    "fig_drivers",
    "fig_economy",
    "fig_magnitude",
    "fig_mechanisms",
    "fig_paired",
    "fig_pareto",
    "fig_readings",
    "fig_replay",
    "table1",
    "table_readings",
    "table_tuning",
    "verdicts",
]


def __getattr__(name: str) -> Any:
    """Import on first use: a worker process that only runs cells needs no pictures."""
    import importlib

    room = next((room for room, names in _ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{room}"), name)
