"""Paper I, "Enhancing Real-time Scheduling of Divisible Loads by Utilizing Inserted Idle Time"."""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "fig1a", "fig1b", "fig2", "fig_gantt", "fig_partitions", "fit",
    "table1", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
