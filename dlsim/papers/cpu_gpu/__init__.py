"""Paper C, on scheduling for CPU-GPU clusters with MapReduce, by S. Goyat and A. K. Sahoo."""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "audited", "fig3", "fig_live", "inventory", "learned", "record", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
