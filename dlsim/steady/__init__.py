"""Steady state of many divisible loads on a wide-area platform (paper S)."""

from dlsim.steady.model import Allocation, Platform
from dlsim.steady.program import solve_program

__all__ = ["Allocation", "Platform", "solve_program"]
