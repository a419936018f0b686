"""Paper I, "Enhancing Real-time Scheduling of Divisible Loads by Utilizing Inserted Idle Time".

A `Study` runs the paper's experiments at one scale; each ``fig...`` and ``table...`` function
draws from it, keeps the numbers behind the picture, and returns the Axes or the table.
"""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "fig1a", "fig1b", "fig2", "fig3a", "fig3b", "fig4", "fig_admission",
    "fig_excess", "fig_feasible", "fig_gain", "fig_gantt", "fig_paired", "fig_partitions",
    "fig_readings", "fig_rivals", "fig_table1", "fig_use", "table1", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
