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
from dlsim.steady.allocation import Allocation, Period
from dlsim.steady.broker import Broker, simulate_day
from dlsim.steady.check import check_allocation, to_fraction
from dlsim.steady.engine import METHODS, solve
from dlsim.steady.graphs import equivalent_speed
from dlsim.steady.model import SWITCHES, Platform, Reading
from dlsim.steady.network import Network
from dlsim.steady.platform_io import read_platform
from dlsim.steady.program import max_min_fair, polish, solve_program
from dlsim.steady.relaxation import ReducedProgram, bound
from dlsim.steady.routes import Limits, Share

__all__ = [
    "METHODS",
    "SWITCHES",
    "Allocation",
    "Broker",
    "Limits",
    "Network",
    "Period",
    "Platform",
    "Reading",
    "ReducedProgram",
    "Share",
    "bound",
    "check_allocation",
    "equivalent_speed",
    "max_min_fair",
    "polish",
    "read_platform",
    "simulate_day",
    "solve",
    "solve_program",
    "to_fraction",
    "topology",
]

require_readers(Reading, topology.PlatformDraw)
