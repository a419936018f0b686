"""Study machinery that knows no paper: sweeps, statistics, claims, notebooks, report."""

from dlsim.study.sweeps import sweep

__all__ = ["sweep"]
