"""The solver with which results were frozen: another one may return another optimal vertex."""

from importlib.metadata import version

from tests.golden.blocks import FOLDER

PATH = FOLDER / "highspy-version.txt"


def freeze() -> None:
    """Keep the version of the solver."""
    PATH.write_text(version("highspy") + "\n")


def is_frozen_solver() -> bool:
    """Tell whether the installed solver is the one with which results were frozen."""
    return version("highspy") == PATH.read_text().strip()
