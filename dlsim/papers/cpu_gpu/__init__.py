"""Paper C, on scheduling for CPU-GPU clusters with MapReduce, by S. Goyat and A. K. Sahoo.

A `Study` runs the experiments at one scale; each ``fig...`` function and each table draws from
it, keeps the numbers behind the picture, and returns the Axes or the table.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlsim.papers.cpu_gpu.diagrams import fig1, fig2, fig3, fig_gantt, fig_nodes, fig_slots
    from dlsim.papers.cpu_gpu.figures import (
        break_even,
        fig_assumption,
        fig_even,
        fig_fairness,
        fig_ideal,
        fig_learning,
        fig_moulding,
        fig_poison,
        fig_readings,
        fig_savings,
        fig_tradeoff,
        tradeoff,
        variants,
        verdicts,
    )
    from dlsim.papers.cpu_gpu.flows import (
        fig_amdahl,
        fig_issue,
        fig_mapreduce,
        fig_memory,
        fig_optimiser,
        fig_overlap,
    )
    from dlsim.papers.cpu_gpu.mechanisms import inventory
    from dlsim.papers.cpu_gpu.session import audited, fig_live, learned, record
    from dlsim.papers.cpu_gpu.study import SCALES, Study

_ROOMS = {
    "diagrams": ("fig1", "fig2", "fig3", "fig_gantt", "fig_nodes", "fig_slots"),
    "figures": (
        "break_even", "fig_assumption", "fig_even", "fig_fairness", "fig_ideal", "fig_learning",
        "fig_moulding", "fig_poison", "fig_readings", "fig_savings", "fig_tradeoff", "tradeoff",
        "variants", "verdicts",
    ),
    "flows": (
        "fig_amdahl", "fig_issue", "fig_mapreduce", "fig_memory", "fig_optimiser", "fig_overlap",
    ),
    "mechanisms": ("inventory",),
    "session": ("audited", "fig_live", "learned", "record"),
    "study": ("SCALES", "Study"),
}  # fmt: skip

__all__ = [
    "SCALES",
    "Study",
    "audited",
    "break_even",
    "fig1",
    "fig2",
    "fig3",
    "fig_amdahl",
    "fig_assumption",
    "fig_even",
    "fig_fairness",
    "fig_gantt",
    "fig_ideal",
    "fig_issue",
    "fig_learning",
    "fig_live",
    "fig_mapreduce",
    "fig_memory",
    "fig_moulding",
    "fig_nodes",
    "fig_optimiser",
    "fig_overlap",
    "fig_poison",
    "fig_readings",
    "fig_savings",
    "fig_slots",
    "fig_tradeoff",
    "inventory",
    "learned",
    "record",
    "tradeoff",
    "variants",
    "verdicts",
]


def __getattr__(name: str) -> Any:
    """Import on first use: a worker process that only runs cells needs no pictures."""
    import importlib

    room = next((room for room, names in _ROOMS.items() if name in names), None)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{room}"), name)
