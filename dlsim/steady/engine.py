"""`solve` runs every method of paper S: ``solve(platform, "LPRG+polish")``.

Methods are records of `METHODS`, and the suffixes that may follow their names are records of
`SUFFIXES`. A new method is a new record; lists, error messages and help are made from the records.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlsim.compiled import ENGINES
from dlsim.errors import InputError
from dlsim.steady.allocation import Allocation, least_connections, scale_to_feasible
from dlsim.steady.heuristics import WorkAndConnections, fill_greedily, round_down, round_randomly
from dlsim.steady.model import Platform, Reading
from dlsim.steady.program import (
    MOST_SEARCH_NODES,
    check_seconds,
    max_min_fair,
    polish,
    solve_program,
)
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
    batch: int
    runs: int
    most_nodes: int
    most_seconds: float
    engine: str

    @property
    def needs_least_connections(self) -> bool:
        """Return whether the reading asks for a relaxed optimum with the fewest connections."""
        return self.reading.vertex == "least_connections"


@dataclass(frozen=True)
class Suffix:
    """A suffix that may follow the name of a method.

    Parameters
    ----------
    name, text : str
        As written after the plus, and its meaning.
    change_reading : callable, optional
        Returns the reading under which the method is run.
    improve : callable, optional
        Returns a better allocation than the one found.
    """

    name: str
    text: str
    change_reading: Callable[[Reading], Reading] | None = None
    improve: Callable[[Allocation], Allocation] | None = None

    def __post_init__(self) -> None:
        if not (callable(self.change_reading) or callable(self.improve)):
            raise InputError(
                f"suffix {self.name!r} must change the reading or improve, got neither"
            )


@dataclass(frozen=True)
class Method:
    """A method of `solve`.

    Parameters
    ----------
    name, text : str
        As written, and what it does.
    find : callable
        Returns the allocation of a platform under options.
    suffixes : tuple of str
        Which of `SUFFIXES` may follow the name.
    switches : tuple of str
        The switches of `Reading` on which it depends.
    is_relaxed : bool
        Whether its connections may be broken numbers, so that it is no schedule.
    bytes_per_cell : int
        Memory that it takes at least per application and cluster.
    """

    name: str
    text: str
    find: Callable[[Platform, SolveOptions], Allocation]
    suffixes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    is_relaxed: bool = False
    bytes_per_cell: int = BYTES_PER_CELL

    def __post_init__(self) -> None:
        if not callable(self.find):
            raise InputError(f"method {self.name!r} must have a function, got {self.find!r}")
        for suffix in self.suffixes:
            one_of(f"suffix of {self.name}", suffix, tuple(SUFFIXES))
        for switch in self.switches:
            one_of(f"switch of {self.name}", switch, tuple(Reading.switches()))


def index_records(kind: str, records: Iterable[Any]) -> dict[str, Any]:
    """Return records by their names; raise InputError for two of one name."""
    by_name: dict[str, Any] = {}
    for record in records:
        if not record.name or "+" in record.name or not record.text:
            raise InputError(f"a {kind} must have a name without a plus and a text, got {record}")
        if record.name in by_name:
            raise InputError(f"{kind} {record.name!r} must be defined once, got two")
        by_name[record.name] = record
    return by_name


def _take_least_connections(reading: Reading) -> Reading:
    return replace(reading, vertex="least_connections")


def _polish(found: Allocation) -> Allocation:
    polished = polish(found.platform, found.connections)
    return polished if polished.objective > found.objective else found


def _make_fair(found: Allocation) -> Allocation:
    return max_min_fair(found.platform, None if found.is_relaxed else found.connections)


#: The suffixes that may follow the name of a method, in the order in which they are applied.
SUFFIXES: dict[str, Suffix] = index_records(
    "suffix",
    (
        Suffix(
            "least",
            "round a relaxed optimum with the fewest connections",
            change_reading=_take_least_connections,
        ),
        Suffix("polish", "keep the whole connections and solve for the best work", improve=_polish),
        Suffix(
            "fair",
            "as polish, then raise the others above the least, one level after another",
            improve=_make_fair,
        ),
    ),
)


def find_relaxed(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the optimum of the relaxed program."""
    work = scale_to_feasible(
        platform, relaxed_program(platform, options.needs_least_connections).work
    )
    opened = least_connections(platform, work)
    return Allocation(platform, work, opened, is_relaxed=True, upper=bound(platform))


def find_greedy(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation of heuristic G (5.1)."""
    return Allocation(platform, *fill_greedily(platform, options.reading, engine=options.engine))


def _round_down(platform: Platform, options: SolveOptions) -> WorkAndConnections:
    return round_down(platform, relaxed_program(platform, options.needs_least_connections))


def find_rounded_down(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation of heuristic LPR (5.2.1)."""
    return Allocation(platform, *_round_down(platform, options))


def find_rounded_and_filled(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation of heuristic LPRG (5.2.2)."""
    start = _round_down(platform, options)
    return Allocation(platform, *fill_greedily(platform, options.reading, start, options.engine))


def find_rounded_randomly(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the best allocation of some runs of heuristic LPRR (5.2.3).

    One run, with the rounding, is `dlsim.steady.heuristics.round_randomly`.
    """
    best = None
    for run in range(options.runs):
        rng = random_generator(options.seed, run)
        rounding = round_randomly(platform, rng, options.batch, options.needs_least_connections)
        work = scale_to_feasible(platform, rounding.work, rounding.connections)
        found = Allocation(platform, work, rounding.connections)
        if best is None or found.objective > best.objective:
            best = found
    assert best is not None  # one run at least
    return best


def find_start(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the best allocation of LPRR, LPRG and G, each as found and with its best work.

    LPRR is run as asked for, and once with `START_BATCH` routes between two solutions.
    """
    fast = replace(options, batch=START_BATCH, runs=1)
    starts = [
        find_rounded_randomly(platform, fast),
        find_rounded_randomly(platform, options),
        find_rounded_and_filled(platform, options),
        find_greedy(platform, options),
    ]
    both = [one for start in starts for one in (polish(platform, start.connections), start)]
    return max(both, key=lambda allocation: allocation.objective)


def find_by_search(platform: Platform, options: SolveOptions) -> Allocation:
    """Return the best allocation of MILP, searched from the best of the heuristics."""
    start = find_start(platform, options)
    return solve_program(platform, True, start, options.most_nodes, options.most_seconds)


_GREEDY_SWITCHES = ("local_amount", "stuck")

#: The methods by name.
METHODS: dict[str, Method] = index_records(
    "method",
    (
        Method(
            "LP",
            "the relaxed program, an upper bound with broken connections",
            find_relaxed,
            suffixes=("least", "fair"),
            switches=("vertex",),
            is_relaxed=True,
        ),
        Method(
            "MILP",
            "the optimum, or the best that is found, never below a heuristic",
            find_by_search,
            suffixes=("polish", "fair"),
            switches=("vertex", *_GREEDY_SWITCHES, "lprg_start"),
            bytes_per_cell=BYTES_PER_MIXED_CELL,
        ),
        Method(
            "G",
            "greedy steps from nothing (5.1)",
            find_greedy,
            suffixes=("polish", "fair"),
            switches=_GREEDY_SWITCHES,
        ),
        Method(
            "LPR",
            "the relaxed program, its connections rounded down (5.2.1)",
            find_rounded_down,
            suffixes=("least", "polish", "fair"),
            switches=("vertex",),
        ),
        Method(
            "LPRG",
            "LPR, and what it leaves by greedy steps (5.2.2)",
            find_rounded_and_filled,
            suffixes=("least", "polish", "fair"),
            switches=("vertex", *_GREEDY_SWITCHES, "lprg_start"),
        ),
        Method(
            "LPRR",
            "the relaxed program, rounded at random route by route (5.2.3)",
            find_rounded_randomly,
            suffixes=("least", "polish", "fair"),
            switches=("vertex",),
        ),
    ),
)


def split_method(method: str) -> tuple[Method, list[Suffix]]:
    """Return the record of a method and those of its suffixes, in the order of `SUFFIXES`."""
    if not isinstance(method, str):
        raise InputError(f"method must be a name such as 'LPRG+polish', got {method!r}")
    name, *suffixes = method.split("+")
    one_of("method", name, tuple(METHODS))
    record = METHODS[name]
    for suffix in suffixes:
        one_of(f"suffix of {name}", suffix, record.suffixes)
    return record, [suffix for suffix in SUFFIXES.values() if suffix.name in suffixes]


def solve(
    platform: Platform,
    method: str = "LPRG",
    seed: Seed = 0,
    reading: Reading | None = None,
    *,
    batch: int = 1,
    runs: int = 1,
    most_nodes: int = MOST_SEARCH_NODES,
    most_seconds: float = math.inf,
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
    batch : int
        Routes that LPRR rounds between two solutions; 1 in the paper.
    runs : int
        Runs of LPRR, the best of which is kept; 1 in the paper.
    most_nodes, most_seconds
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
    record, suffixes = split_method(method)
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
        batch=whole("batch", batch),
        runs=whole("runs", runs),
        most_nodes=whole("most_nodes", most_nodes, 0),
        most_seconds=check_seconds(most_seconds),
        engine=one_of("engine", engine, ENGINES),
    )
    cells = platform.applications * platform.clusters
    what = f"{record.name} for {platform.applications:,} applications on"
    what = f"{what} {platform.clusters:,} clusters"
    require_memory(what, record.bytes_per_cell * cells, "solve a smaller platform")
    found = record.find(platform, options)
    for suffix in suffixes:
        if suffix.improve:
            found = replace(suffix.improve(found), upper=found.upper)
    found = replace(found, method=method, seed=seed, reading=reading)
    found.check()
    return found
