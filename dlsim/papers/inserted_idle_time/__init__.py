"""Paper I, "Enhancing Real-time Scheduling of Divisible Loads by Utilizing Inserted Idle Time"."""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "fig1", "fig2", "fig_partitions", "fit", "flow", "longest_waits",
    "mark_waits", "one_legend", "table1", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
