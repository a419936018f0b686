"""Paper S, "Steady-State Scheduling of Multiple Divisible Load Applications"."""

from dlsim.papers import rooms

__all__ = [
    "SCALES", "Study", "drawn", "fig1", "fig2", "fig3", "fig_flows", "fig_wan", "flows",
    "notation", "parameters", "verdicts",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
