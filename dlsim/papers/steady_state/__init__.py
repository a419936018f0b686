"""Paper S, "Steady-State Scheduling of Multiple Divisible Load Applications".

A `Study` runs the paper's experiments at one scale; each ``fig...`` and ``table...`` function
draws from it, keeps the numbers behind the picture, and returns the Axes or the table.
"""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "fig1", "fig2", "fig3", "fig4a", "fig4b", "fig5", "fig_adaptation",
    "fig_churn", "fig_flows", "fig_gap", "fig_limits", "fig_polish", "fig_quantiles",
    "fig_readings", "fig_spread", "fig_startup", "fig_structure", "fig_table1", "fig_table2",
    "fig_wan", "table1", "table2", "table_duels", "table_outlier", "table_sample",
    "table_structure", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
