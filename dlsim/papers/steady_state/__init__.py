"""Paper S, "Steady-State Scheduling of Multiple Divisible Load Applications".

A `Study` runs the paper's experiments at one scale; each ``fig...`` and ``table...`` function
draws from it, keeps the numbers behind the picture, and returns the Axes or the table.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlsim.papers.steady_state.diagrams import fig1, fig2, fig3, fig_flows, fig_wan
    from dlsim.papers.steady_state.extras import (
        fig_adaptation,
        fig_churn,
        fig_limits,
        fig_polish,
        fig_startup,
        fig_structure,
        table_structure,
    )
    from dlsim.papers.steady_state.figures import (
        fig4a,
        fig4b,
        fig5,
        fig_gap,
        fig_quantiles,
        fig_readings,
        fig_spread,
        fig_table1,
        fig_table2,
        table1,
        table2,
        table_duels,
        table_outlier,
        table_sample,
        verdicts,
    )
    from dlsim.papers.steady_state.study import SCALES, Study

_ROOMS = {
    "diagrams": ("fig1", "fig2", "fig3", "fig_flows", "fig_wan"),
    "extras": (
        "fig_adaptation", "fig_churn", "fig_limits", "fig_polish", "fig_startup",
        "fig_structure", "table_structure",
    ),
    "figures": (
        "fig4a", "fig4b", "fig5", "fig_gap", "fig_quantiles", "fig_readings", "fig_spread",
        "fig_table1", "fig_table2", "table1", "table2", "table_duels", "table_outlier",
        "table_sample", "verdicts",
    ),
    "study": ("SCALES", "Study"),
}  # fmt: skip

__all__ = [
    "SCALES",
    "Study",
    "fig1",
    "fig2",
    "fig3",
    "fig4a",
    "fig4b",
    "fig5",
    "fig_adaptation",
    "fig_churn",
    "fig_flows",
    "fig_gap",
    "fig_limits",
    "fig_polish",
    "fig_quantiles",
    "fig_readings",
    "fig_spread",
    "fig_startup",
    "fig_structure",
    "fig_table1",
    "fig_table2",
    "fig_wan",
    "table1",
    "table2",
    "table_duels",
    "table_outlier",
    "table_sample",
    "table_structure",
    "verdicts",
]


def __getattr__(name: str) -> Any:
    """Import on first use: a worker process that only runs cells needs no pictures."""
    import importlib

    room = next((room for room, names in _ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{room}"), name)
