"""Paper C, on scheduling for CPU-GPU clusters with MapReduce, by S. Goyat and A. K. Sahoo."""

from dlsim.papers import rooms

__all__ = ["SCALES", "Study", "fig3", "inventory", "verdicts"]

__getattr__ = rooms(__name__, __all__)
