"""Paper B, "A Study of Deadline Scheduling for Client-Server Systems on the Computational Grid".

A `Study` runs the paper's experiments at one scale; each ``fig...`` and ``table...`` function
draws from it, keeps the numbers behind the picture, and returns the Axes or the table.
"""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig_background",
    "fig_correction", "fig_drivers", "fig_economy", "fig_magnitude", "fig_mechanisms",
    "fig_paired", "fig_pareto", "fig_readings", "fig_replay", "table1", "table_readings",
    "table_tuning", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
