"""`solve` runs every method of paper S: ``solve(platform, "LPRG+polish")``.

Methods are records of `METHODS`, and the suffixes that may follow their names are records of
`SUFFIXES`. Lists, error messages and help are made from the records.
"""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlsim.compiled import ENGINES
from dlsim.errors import InputError
from dlsim.record import find_record, require_names
from dlsim.steady.greedy import find_g
from dlsim.steady.model import Method, Platform, Reading, SolveOptions, to_nonnegative_array
from dlsim.steady.program import MOST_SEARCH_NODES, max_min_fair, polish, solve_program
from dlsim.steady.relaxation import bound, relaxed_program
from dlsim.steady.result import Allocation, least_connections, scale_to_feasible
from dlsim.steady.rounding import find_lpr, find_lprg, find_lprr
from dlsim.user_code import calling_user_code, load_user_code
from dlsim.validate import Seed, instance, one_of, or_default, require_memory, whole

#: Least bytes of memory that the mixed program takes per application and cluster.
BYTES_PER_MIXED_CELL = 500
#: Routes that LPRR fixes between two solutions when it computes a start for MILP.
START_BATCH = 8


@dataclass(frozen=True)
class Suffix:
    """A suffix of the name of a method: it changes the reading or improves what is found."""

    text: str
    change_reading: Callable[[Reading], Reading] | None = None
    improve: Callable[[Allocation], Allocation] | None = None


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
    method.name: method
    for method in (
        Method(
            find_lp,
            name="LP",
            text="the relaxed program, an upper bound with broken connections",
            allowed_suffixes=("least", "fair"),
            is_relaxed=True,
        ),
        Method(
            find_milp,
            name="MILP",
            text="the optimum, or the best that is found, never below a heuristic",
            bytes_per_cell=BYTES_PER_MIXED_CELL,
        ),
        Method(find_g, name="G", text="greedy steps from nothing (5.1)"),
        Method(
            find_lpr,
            name="LPR",
            text="the relaxed program, its connections rounded down (5.2.1)",
            allowed_suffixes=("least", "polish", "fair"),
        ),
        Method(
            find_lprg,
            name="LPRG",
            text="LPR, and what it leaves by greedy steps (5.2.2)",
            allowed_suffixes=("least", "polish", "fair"),
        ),
        Method(
            find_lprr,
            name="LPRR",
            text="the relaxed program, rounded at random route by route (5.2.3)",
            allowed_suffixes=("least", "polish", "fair"),
        ),
    )
}
require_names(METHODS)

#: What stands for a method: a name with suffixes, a record, or a function of a platform.
AnyMethod = str | Method | Callable[..., Any]


def find_method(method: AnyMethod) -> Method:
    """Return the record of a method.

    Parameters
    ----------
    method : str, Method or callable
        A name of `METHODS` or ``FILE.py:name`` of a user's function or record, then any suffixes,
        such as ``+polish``; a record; or a function, as in `Method`.

    Raises
    ------
    InputError
        For what is no method, or a suffix that the method does not take.
    """
    found, suffixes, file_name = method, list[str](), ""
    if isinstance(method, str):
        place, colon, words = method.rpartition(":")
        base, *suffixes = words.split("+")
        found = f"{place}{colon}{base}"
        if colon:
            found, file_name = load_user_code("method", found), base
    if callable(found):
        found = Method(found)
    if file_name:
        found = replace(instance(f"method {method!r}", found, Method), name=file_name)
    record: Method = find_record("method", found, METHODS)[1]
    return record.followed_by(*suffixes) if suffixes else record


def _run_method(method: Method, platform: Platform, options: SolveOptions) -> Allocation:
    """Return the allocation that a method finds; refuse what is none in words."""
    what = f"method {method.name!r}"
    is_own = any(method.find is row.find for row in METHODS.values())
    rule = f"{what} must return work and connections, or an Allocation of the platform"
    with nullcontext() if is_own else calling_user_code(rule):
        takes_options = "options" in inspect.signature(method.find).parameters
        found = method.find(platform, **({"options": options} if takes_options else {}))
        if not isinstance(found, Allocation):
            work, connections = found
            found = _read_answer(method, platform, work, connections)
    if found.platform is not platform:
        raise InputError(f"{rule}; got an Allocation of another platform")
    if found.is_relaxed and not method.is_relaxed:
        remedy = "make it Method(..., is_relaxed=True), or round them"
        raise InputError(f"connections of {what} must be whole numbers; {remedy}")
    return found


def _read_answer(
    method: Method, platform: Platform, work: object, connections: object
) -> Allocation:
    """Return the allocation of a user's work and connections, checked as arrays."""
    of_method, clusters = f"of method {method.name!r}", platform.clusters
    work = to_nonnegative_array(f"work {of_method}", work, (platform.applications, clusters))
    opened = to_nonnegative_array(f"connections {of_method}", connections, (clusters, clusters))
    if method.is_relaxed:
        return Allocation(platform, work, opened, is_relaxed=True)
    broken = np.argwhere(opened != np.floor(opened))
    if len(broken):
        k, to = broken[0]
        got = f"got {opened[k, to]:g} from cluster {k} to {to}"
        raise InputError(f"connections {of_method} must be whole numbers, {got}; round them down")
    return Allocation(platform, work, opened.astype(np.int64))


def solve(
    platform: Platform,
    method: AnyMethod,
    reading: Reading | None = None,
    engine: str = "auto",
    *,
    seed: Seed = 0,
    most_nodes: int = MOST_SEARCH_NODES,
) -> Allocation:
    """Find a steady state by one of the paper's methods, or by a method of one's own.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    method : str, Method or callable
        One of `METHODS`, then any suffixes of `SUFFIXES` that it takes: LP (the relaxed program,
        an upper bound with broken connections), MILP (the optimum, or the best that is found,
        never below a heuristic), G, LPR, LPRG or LPRR; ``+least`` (not G, MILP), ``+polish``
        (not LP), ``+fair``. Or a method of one's own: a function of a platform that returns work
        and connections, its name as ``FILE.py:name`` (``+polish`` and ``+fair`` may follow), or a
        `Method`.
    reading : Reading, optional
        How the paper is understood; the default reading if None.
    engine : {"auto", "compiled", "python"}
        The same greedy steps (in G, LPRG and MILP) at two speeds: compiled, which takes some 3 s
        once per version, or uncompiled. "auto" takes small platforms uncompiled, for about a second
        in a process, and goes on compiled where G needs many steps.
    seed : int or SeedSequence
        Of LPRR's draws, also where MILP starts from it; the others draw nothing.
    most_nodes : int
        Where the search of MILP ends, as in `solve_program`.

    Returns
    -------
    Allocation
        Checked against (6) and the limits.

    Raises
    ------
    InputError
        For an unknown method or suffix, an answer of a user's method that is no allocation, or
        another argument that cannot be used.
    ScheduleError
        For an answer of a user's method that breaks (6) or a limit; names the first.
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
    record = find_method(method)
    reading = or_default("reading", reading, Reading)
    instance("platform", platform, Platform)
    if not isinstance(seed, np.random.SeedSequence):
        seed = whole("seed", seed, 0, np.inf)
    suffixes = [SUFFIXES[name] for name in record.suffixes]
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
    size = f"{platform.applications:,} applications on {platform.clusters:,} clusters"
    needed = record.bytes_per_cell * cells
    require_memory(f"{record.base_name} for {size}", needed, "solve a smaller platform")
    found = _run_method(record, platform, options)
    for suffix in suffixes:
        if suffix.improve:
            found = replace(suffix.improve(found), upper=found.upper)
    found = replace(found, method=record, seed=seed, reading=reading)
    found.check()
    return found
