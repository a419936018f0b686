"""Paper M, "Real-Time Divisible Load Scheduling for Cluster Computing" (mcdf.txt).

A `Study` runs the paper's experiments at one scale. What is plotted from its frames is
written in the notebook; drawings that need code are functions here.
"""

from dlsim.papers import rooms

__all__ = ["LOADS", "SCALES", "Study", "fig1", "fig_gantt", "verdicts"]

__getattr__ = rooms(__name__, __all__)
