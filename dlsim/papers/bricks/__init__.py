"""Paper B, "A Study of Deadline Scheduling for Client-Server Systems on the Computational Grid".

A `Study` runs the paper's experiments at one scale. What is plotted from its frames is
written in the notebook; drawings and tables that need code are functions here.
"""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "fig1", "fig2", "table1", "table_readings", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
