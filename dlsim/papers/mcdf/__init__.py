"""Paper M, "Real-Time Divisible Load Scheduling for Cluster Computing" (mcdf.txt)."""

from dlsim.papers import rooms

__all__ = ["LOADS", "SCALES", "Study", "fig1", "verdicts"]

__getattr__ = rooms(__name__, __all__)
