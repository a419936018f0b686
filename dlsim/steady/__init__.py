"""Steady state of many divisible loads on a wide-area platform (paper S)."""

from dlsim.steady.allocation import Allocation
from dlsim.steady.model import SWITCHES, Limits, Platform, Reading, Share
from dlsim.steady.program import polish, solve_program
from dlsim.steady.relaxation import ReducedProgram, bound

__all__ = [
    "SWITCHES",
    "Allocation",
    "Limits",
    "Platform",
    "Reading",
    "ReducedProgram",
    "Share",
    "bound",
    "polish",
    "solve_program",
]
