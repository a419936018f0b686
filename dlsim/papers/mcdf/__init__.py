"""Paper M, "Real-Time Divisible Load Scheduling for Cluster Computing" (mcdf.txt)."""

from dlsim.papers import rooms
from dlsim.papers.mcdf.measures import POLICIES, SWITCHES

__all__ = ["LOADS", "POLICIES", "SCALES", "SWITCHES", "Study", "fig1", "verdicts"]

__getattr__ = rooms(__name__, ("LOADS", "SCALES", "Study", "fig1", "verdicts"))
