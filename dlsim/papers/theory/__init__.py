"""What the statements of `dlsim.theory` say, in numbers and pictures (notebook 10-theory)."""

from dlsim.papers import rooms

__all__ = [
    "Study", "accuracy", "curves", "deadlines", "fig2", "fig3", "fig6", "fig7", "fig_order",
    "fig_release", "graph", "reduction",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
