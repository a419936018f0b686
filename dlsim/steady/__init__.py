"""Steady state of many divisible loads on a wide-area platform (paper S).

>>> from dlsim.steady import bound, solve, topology
>>> p = topology.random(clusters=8, connectivity=0.4, seed=1)
>>> a = solve(p, "LPRG")
>>> a.check()
>>> a.objective <= bound(p)
True
"""

from dlsim.reading import require_readers
from dlsim.steady import topology
from dlsim.steady.broker import Broker, Network
from dlsim.steady.check import check_allocation, to_fraction
from dlsim.steady.model import SWITCHES, Method, Platform, Reading, SolveOptions
from dlsim.steady.platform_io import read_platform
from dlsim.steady.program import max_min_fair, polish, solve_program
from dlsim.steady.relaxation import ReducedProgram, bound
from dlsim.steady.result import Allocation, Period
from dlsim.steady.routes import Limits, Share
from dlsim.steady.solve import METHODS, SUFFIXES, solve

__all__ = [
    "METHODS",
    "SUFFIXES",
    "SWITCHES",
    "Allocation",
    "Broker",
    "Limits",
    "Method",
    "Network",
    "Period",
    "Platform",
    "Reading",
    "ReducedProgram",
    "Share",
    "SolveOptions",
    "bound",
    "check_allocation",
    "max_min_fair",
    "polish",
    "read_platform",
    "solve",
    "solve_program",
    "to_fraction",
    "topology",
]

require_readers(Reading, topology.PlatformDraw)
