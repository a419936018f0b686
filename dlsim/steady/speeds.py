"""The core of paper S, heuristic G, at two speeds."""

from contextlib import AbstractContextManager
from types import SimpleNamespace

from dlsim.compiled import Core
from dlsim.steady.core.greedy import ALL_TURNS
from dlsim.steady.model import Platform

#: Applications times clusters that a process serves uncompiled, in about a second: G takes at most
#: .05 s on 5 clusters, .34 s on 20. Compiling takes some 3 s.
GREEDY_CORE = Core("dlsim.steady.core", work=1_000, seconds=3)

#: Turns of G times clusters that "auto" takes uncompiled, in about a second; the platforms drawn by
#: Table 1 need at most 150,000 on 20 clusters, one with thin connections may need a million turns.
UNCOMPILED_TURNS = 200_000


def greedy_core(platform: Platform, engine: str) -> AbstractContextManager[SimpleNamespace]:
    """Return a context that gives the modules of the core, compiled or not."""
    return GREEDY_CORE.at_speed(engine, platform.applications * platform.clusters)


def first_turns(platform: Platform, engine: str) -> int:
    """Return the number of turns after which "auto" continues with the compiled core."""
    return UNCOMPILED_TURNS // platform.clusters if engine == "auto" else ALL_TURNS
