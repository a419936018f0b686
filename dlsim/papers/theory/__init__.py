"""What the statements of `dlsim.theory` say, in numbers and pictures (notebook 10-theory)."""

from dlsim.papers import rooms

__all__ = [
    "Study", "accuracy", "curves", "deadlines", "fig6", "fig7", "graph", "placed", "reduction",
    "split",
]  # fmt: skip

__getattr__ = rooms(__name__, __all__)
