"""Study machinery that knows no paper: sweeps, statistics, claims, notebooks, report."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dlsim.study.sweeps import sweep

__all__ = ["sweep"]


def __getattr__(name: str) -> Any:
    """Load what sweeps need where one is asked for: who lists figures needs no compiler."""
    if name == "sweep":
        from dlsim.study.sweeps import sweep

        return sweep
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
