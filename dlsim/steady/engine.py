"""One verb for every method of paper S: ``solve(platform, "LPRG+polish")``."""

import math
from dataclasses import replace

import numpy as np

from dlsim.errors import InputError
from dlsim.given import Seed, instance, need_memory, option, usual, whole
from dlsim.steady.heuristics import HEURISTICS, heuristic
from dlsim.steady.model import Platform, Reading
from dlsim.steady.outcome import Allocation, least_connections, trim
from dlsim.steady.program import MOST_NODES, fair, polish, seconds, solve_program
from dlsim.steady.relaxation import bound, relaxed

#: The methods by name.
METHODS: tuple[str, ...] = ("LP", "MILP", *HEURISTICS)
#: What may follow a name, with its meaning.
SUFFIXES: dict[str, str] = {
    "least": "round a relaxed optimum with the fewest connections",
    "polish": "keep the whole connections and solve for the best work",
    "fair": "as polish, then raise the others above the least, one level after another",
}
#: Bytes that a method takes at least per application and cluster.
CELL, MIXED_CELL = 150, 500
#: The suffixes that a method does not take.
_WITHOUT = {"LP": {"polish"}, "MILP": {"least"}, "G": {"least"}}


def split_method(method: str) -> tuple[str, set[str]]:
    """Return a method's name and suffixes."""
    if not isinstance(method, str):
        raise InputError(f"method must be a name such as 'LPRG+polish', got {method!r}")
    name, *suffixes = method.split("+")
    option("method", name, METHODS)
    taken = tuple(s for s in SUFFIXES if s not in _WITHOUT.get(name, ()))
    for suffix in suffixes:
        option(f"suffix of {name}", suffix, taken)
    return name, set(suffixes)


def solve(
    platform: Platform, method: str = "LPRG", seed: Seed = 0, reading: Reading | None = None, *,
    batch: int = 1, runs: int = 1, most_nodes: int = MOST_NODES, most_seconds: float = math.inf,
) -> Allocation:  # fmt: skip
    """Find a steady state by one of the paper's methods.

    Parameters
    ----------
    platform : Platform
        What to schedule on.
    method : str
        LP (the relaxed program, an upper bound with broken connections), MILP (the
        optimum), G, LPR, LPRG or LPRR, then any suffixes: ``+least`` (not G, MILP),
        ``+polish`` (not LP), ``+fair`` (see `SUFFIXES`).
    seed : int or SeedSequence
        Of LPRR's draws; the others draw nothing.
    reading : Reading, optional
        How the paper is understood; the default reading if None.
    batch : int
        Routes that LPRR rounds between two solutions; 1 in the paper.
    runs : int
        Runs of LPRR, the best of which is kept; 1 in the paper.
    most_nodes, most_seconds
        Where the search of MILP ends, as in `solve_program`.

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
    reading = usual("reading", reading, Reading)
    instance("platform", platform, Platform)
    if not isinstance(seed, np.random.SeedSequence):
        seed = whole("seed", seed, 0, np.inf)
    batch, runs = whole("batch", batch), whole("runs", runs)
    most_nodes, most_seconds = whole("most_nodes", most_nodes, 0), seconds(most_seconds)
    apps, clusters = platform.applications, platform.clusters
    size = (MIXED_CELL if name == "MILP" else CELL) * apps * clusters
    what = f"{name} for {apps:,} applications on {clusters:,} clusters"
    need_memory(what, size, "solve a smaller platform")
    if "least" in suffixes:
        reading = replace(reading, vertex="least_connections")
    if name == "LP":
        work = trim(platform, relaxed(platform, reading.vertex == "least_connections").work)
        least = least_connections(platform, work)
        found = Allocation(platform, work, least, is_relaxed=True, upper=bound(platform))
    elif name == "MILP":
        start = polish(platform, heuristic("LPRR", platform, seed, reading, batch=8)[1])
        found = solve_program(platform, True, start, most_nodes, most_seconds)
    else:
        found = Allocation(platform, *heuristic(name, platform, seed, reading, batch, runs))
    if suffixes & {"fair", "polish"}:  # better work for the same connections, where there is one
        better = fair if "fair" in suffixes else polish
        other = better(platform, None if found.is_relaxed else found.connections)
        if better is fair or other.objective > found.objective:
            found = replace(other, upper=found.upper)
    found = replace(found, method=method, seed=seed, reading=reading)
    found.check()
    return found
