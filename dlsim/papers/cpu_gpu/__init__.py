"""Paper C, on scheduling for CPU-GPU clusters with MapReduce, by S. Goyat and A. K. Sahoo.

A `Study` runs the experiments at one scale; each ``fig...`` function and each table draws from
it, keeps the numbers behind the picture, and returns the Axes or the table.
"""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "audited", "break_even", "fig1", "fig2", "fig3", "fig_amdahl",
    "fig_assumption", "fig_even", "fig_fairness", "fig_gantt", "fig_ideal", "fig_issue",
    "fig_learning", "fig_live", "fig_mapreduce", "fig_memory", "fig_moulding", "fig_nodes",
    "fig_optimiser", "fig_overlap", "fig_poison", "fig_readings", "fig_savings", "fig_slots",
    "fig_tradeoff", "inventory", "learned", "record", "tradeoff", "variants", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
