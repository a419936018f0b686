"""`solve` runs every method of paper S: ``solve(platform, "LPRG+polish")``.

Methods are records of `METHODS`, and the suffixes that may follow their names are records of
`SUFFIXES`. Lists, error messages and help are made from the records.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dlsim.compiled import ENGINES
from dlsim.errors import InputError
from dlsim.steady.allocation import Allocation, least_connections, scale_to_feasible
from dlsim.steady.heuristics import fill_greedily, round_down, round_randomly
from dlsim.steady.model import Platform, Reading
from dlsim.steady.program import MOST_SEARCH_NODES, max_min_fair, polish, solve_program
from dlsim.steady.relaxation import bound, relaxed_program
from dlsim.validate import (
    Seed,
    instance,
    one_of,
    or_default,
    random_generator,
    require_memory,
    whole,
)

#: Least bytes of memory that a method takes per application and cluster.
BYTES_PER_CELL, BYTES_PER_MIXED_CELL = 150, 500
#: Routes that LPRR fixes between two solutions when it computes a start for MILP.
START_BATCH = 8


@dataclass(frozen=True)
class SolveOptions:
    """The checked arguments of `solve` beside platform and method."""

    seed: Seed
    reading: Reading
    most_nodes: int
    engine: str

    @property
    def needs_least_connections(self) -> bool:
        """Return whether the reading asks for a relaxed optimum with the fewest connections."""
        return self.reading.vertex == "least_connections"


@dataclass(frozen=True)
class Suffix:
    """A suffix that may follow the name of a method: it changes the reading or improves.

    Parameters
    ----------
    text : str
        Its meaning.
    change_reading : callable, optional
        Returns the reading under which the method is run.
    improve : callable, optional
        Returns a better allocation than the one found.
    """

    text: str
    change_reading: Callable[[Reading], Reading] | None = None
    improve: Callable[[Allocation], Allocation] | None = None


@dataclass(frozen=True)
class Method:
    """A method of `solve`.

    Parameters
    ----------
    text : str
        What it does.
    find : callable
        Returns the allocation of a platform under options.
    suffixes : tuple of str
        Which of `SUFFIXES` may follow the name.
    is_relaxed : bool
        Whether its connections may be broken numbers, so that it is no schedule.
    bytes_per_cell : int
        Memory that it takes at least per application and cluster.
    """

    text: str
    find: Callable[[Platform, SolveOptions], Allocation]
    suffixes: tuple[str, ...]
    is_relaxed: bool = False
    bytes_per_cell: int = BYTES_PER_CELL


def _take_least_connections(reading: Reading) -> Reading:
    return replace(reading, vertex="least_connections")


def _polish(found: Allocation) -> Allocation:
    polished = polish(found.platform, found.connections)
    return polished if polished.objective > found.objective else found


def _make_fair(found: Allocation) -> Allocation:
    return max_min_fair(found.platform, None if found.is_relaxed else found.connections)


#: The suffixes that may follow the name of a method, in the order in which they are applied.
SUFFIXES = {
    "least": Suffix(
        "round a relaxed optimum with the fewest connections",
        change_reading=_take_least_connections,
    ),
    "polish": Suffix("keep the whole connections and solve for the best work", improve=_polish),
    "fair": Suffix(
        "as polish, then raise the others above the least, one level after another",
        improve=_make_fair,
    ),
}


def find_lp(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the optimum of the relaxed program."""
    program = relaxed_program(platform, options.needs_least_connections)
    work = scale_to_feasible(platform, program.work)
    opened = least_connections(platform, work)
    return Allocation(platform, work, opened, is_relaxed=True, upper=bound(platform))


def find_g(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation of heuristic G (5.1)."""
    return Allocation(platform, *fill_greedily(platform, options.reading, engine=options.engine))


def find_lpr(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation of heuristic LPR (5.2.1)."""
    program = relaxed_program(platform, options.needs_least_connections)
    return Allocation(platform, *round_down(platform, program))


def find_lprg(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation of heuristic LPRG (5.2.2)."""
    lpr = find_lpr(platform, options)
    start = lpr.work, lpr.connections
    return Allocation(platform, *fill_greedily(platform, options.reading, start, options.engine))


def find_lprr(platform: Platform, options: SolveOptions, batch: int = 1) -> Allocation:
    """Return the allocation of heuristic LPRR (5.2.3); `batch` is that of `round_randomly`."""
    rng = random_generator(options.seed, 0)
    rounding = round_randomly(platform, rng, batch, options.needs_least_connections)
    work = scale_to_feasible(platform, rounding.work, rounding.connections)
    return Allocation(platform, work, rounding.connections)


def find_milp(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the best allocation of the mixed program, searched from the best of the heuristics.

    LPRR is run as in the paper, and once with `START_BATCH` routes between two solutions.
    """
    starts = [
        find_lprr(platform, options, START_BATCH),
        find_lprr(platform, options),
        find_lprg(platform, options),
        find_g(platform, options),
    ]
    both = [one for start in starts for one in (polish(platform, start.connections), start)]
    start = max(both, key=lambda allocation: allocation.objective)
    return solve_program(platform, True, start, options.most_nodes)


#: The methods by name.
METHODS = {
    "LP": Method(
        "the relaxed program, an upper bound with broken connections",
        find_lp,
        suffixes=("least", "fair"),
        is_relaxed=True,
    ),
    "MILP": Method(
        "the optimum, or the best that is found, never below a heuristic",
        find_milp,
        suffixes=("polish", "fair"),
        bytes_per_cell=BYTES_PER_MIXED_CELL,
    ),
    "G": Method("greedy steps from nothing (5.1)", find_g, suffixes=("polish", "fair")),
    "LPR": Method(
        "the relaxed program, its connections rounded down (5.2.1)",
        find_lpr,
        suffixes=("least", "polish", "fair"),
    ),
    "LPRG": Method(
        "LPR, and what it leaves by greedy steps (5.2.2)",
        find_lprg,
        suffixes=("least", "polish", "fair"),
    ),
    "LPRR": Method(
        "the relaxed program, rounded at random route by route (5.2.3)",
        find_lprr,
        suffixes=("least", "polish", "fair"),
    ),
}


def split_method(method: str) -> tuple[str, list[Suffix]]:
    """Return the name of a method and the records of its suffixes, in the order of `SUFFIXES`."""
    if not isinstance(method, str):
        raise InputError(f"method must be a name such as 'LPRG+polish', got {method!r}")
    name, *suffixes = method.split("+")
    one_of("method", name, tuple(METHODS))
    for suffix in suffixes:
        one_of(f"suffix of {name}", suffix, METHODS[name].suffixes)
    return name, [record for suffix, record in SUFFIXES.items() if suffix in suffixes]


def solve(
    platform: Platform,
    method: str = "LPRG",
    seed: Seed = 0,
    reading: Reading | None = None,
    *,
    most_nodes: int = MOST_SEARCH_NODES,
    engine: str = "auto",
) -> Allocation:
    """Find a steady state by one of the paper's methods.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    method : str
        One of `METHODS`, then any suffixes of `SUFFIXES` that it takes: LP (the relaxed program,
        an upper bound with broken connections), MILP (the optimum, or the best that is found,
        never below a heuristic), G, LPR, LPRG or LPRR; ``+least`` (not G, MILP), ``+polish``
        (not LP), ``+fair``.
    seed : int or SeedSequence
        Of LPRR's draws, also where MILP starts from it; the others draw nothing.
    reading : Reading, optional
        How the paper is understood; the default reading if None.
    most_nodes : int
        Where the search of MILP ends, as in `solve_program`.
    engine : {"auto", "compiled", "python"}
        The same greedy steps (in G, LPRG and MILP) at two speeds: compiled, which takes some 3 s
        once per version, or uncompiled, as "auto" takes small platforms: at most .34 s for 20
        clusters, about a second in a process.

    Returns
    -------
    Allocation
        Checked against (6) and the limits.

    Raises
    ------
    InputError
        For an unknown method or suffix, or another argument that cannot be used.
    StudyError
        If a program is not solved.

    Examples
    --------
    Two clusters of speed 10 and 2 behind one link of two connections of bandwidth 3:

    >>> import pandas as pd
    >>> link = pd.DataFrame({"bandwidth": [3.0], "max_connect": [2]})
    >>> routes = {(0, 1): [0], (1, 0): [0]}
    >>> p = Platform((10, 2), (20, 20), link, routes, (1, 1), (1, 1), (1, 1))
    >>> [round(solve(p, method).objective, 6) for method in ("LP", "G", "LPR", "LPRG")]
    [6.0, 4.0, 5.0, 6.0]
    """
    name, suffixes = split_method(method)
    reading = or_default("reading", reading, Reading)
    instance("platform", platform, Platform)
    if not isinstance(seed, np.random.SeedSequence):
        seed = whole("seed", seed, 0, np.inf)
    for suffix in suffixes:
        if suffix.change_reading:
            reading = suffix.change_reading(reading)
    options = SolveOptions(
        seed=seed,
        reading=reading,
        most_nodes=whole("most_nodes", most_nodes, 0),
        engine=one_of("engine", engine, ENGINES),
    )
    cells = platform.applications * platform.clusters
    what = f"{name} for {platform.applications:,} applications on {platform.clusters:,} clusters"
    require_memory(what, METHODS[name].bytes_per_cell * cells, "solve a smaller platform")
    found = METHODS[name].find(platform, options)
    for suffix in suffixes:
        if suffix.improve:
            found = replace(suffix.improve(found), upper=found.upper)
    found = replace(found, method=method, seed=seed, reading=reading)
    found.check()
    return found
