"""Paper M, "Real-Time Divisible Load Scheduling for Cluster Computing" (mcdf.txt).

A `Study` runs the paper's experiments at one scale; each ``fig...`` function draws one
figure from it, keeps the numbers behind it, and returns the Axes.
"""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "fig1", "fig4", "fig5", "fig10", "fig_gantt", "fig_negotiation",
    "fig_overload", "fig_readings", "fig_setup", "fig_stability", "fig_weighted",
    "table_sensitivities", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
