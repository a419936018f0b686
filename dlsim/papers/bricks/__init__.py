"""Paper B, "A Study of Deadline Scheduling for Client-Server Systems on the Computational Grid"."""

from dlsim.papers import rooms

__all__ = ["SCALES", "Study", "fig1", "fig2", "table1", "table_readings", "verdicts"]

__getattr__ = rooms(__name__, __all__)
