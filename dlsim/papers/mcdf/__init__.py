"""Paper M, "Real-Time Divisible Load Scheduling for Cluster Computing" (mcdf.txt).

A `Study` runs the paper's experiments at one scale; each ``fig...`` function draws one
figure from it, keeps the numbers behind it, and returns the Axes.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlsim.papers.mcdf.figures import (
        fig1,
        fig4,
        fig5,
        fig10,
        fig_gantt,
        fig_negotiation,
        fig_overload,
        fig_readings,
        fig_setup,
        fig_stability,
        fig_weighted,
        table_sensitivities,
        verdicts,
    )
    from dlsim.papers.mcdf.study import SCALES, Study

__all__ = [
    "SCALES",
    "Study",
    "fig1",
    "fig4",
    "fig5",
    "fig10",
    "fig_gantt",
    "fig_negotiation",
    "fig_overload",
    "fig_readings",
    "fig_setup",
    "fig_stability",
    "fig_weighted",
    "table_sensitivities",
    "verdicts",
]


def __getattr__(name: str) -> Any:
    """Import on first use: a worker process that only runs cells needs no pictures."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dlsim.papers.mcdf import figures, study

    return getattr(study if name in ("SCALES", "Study") else figures, name)
