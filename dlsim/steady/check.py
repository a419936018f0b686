"""Program (6) and the limits in the definition's own words, in floats or exactly.

Written from the platform's plain fields alone: none of the arrays that the programs and
heuristics use appear here.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dlsim.errors import ScheduleError
from dlsim.steady.model import Platform
from dlsim.steady.routes import Pair

#: Slack of every row, relative to its limit.
SLACK = 1e-9

Number = Callable[[Any], Any]


class Row(NamedTuple):
    """One constraint: what it is, how much is used and allowed, whose work it adds up.

    `is_sending` tells what is moved or opened from what is computed.
    """

    name: str
    used: Any
    limit: Any
    cells: list[Pair]
    is_sending: bool = True


def exact(value: Any) -> Fraction:
    """Return a finite number as the fraction that its shortest decimal text says: 0.1 is 1/10."""
    return value if isinstance(value, Fraction) else Fraction(str(value))


def _flows(p: Platform, work: Any, number: Number) -> Iterator[Row]:
    """Yield (6b), (6c), the share caps, and work where no route leads."""
    home, clusters = p.origin.tolist(), range(p.clusters)
    cost, size = ([number(x) for x in xs.tolist()] for xs in (p.work, p.data))
    for k in clusters:
        here = [(a, k) for a in range(len(home))]
        used = sum(work[a][k] * cost[a] for a, _ in here)
        yield Row(f"(6b) speed of cluster {k}", used, number(p.speed[k].item()), here, False)
        out = [(a, to) for a, at in enumerate(home) if at == k for to in clusters if to != k]
        away = out + [(a, k) for a, at in enumerate(home) if at != k]
        used = sum(work[a][to] * size[a] for a, to in away)
        yield Row(f"(6c) gateway of cluster {k}", used, number(p.gateway[k].item()), away)
        lost = [(a, to) for a, to in out if (k, to) not in p.routes]
        used = sum(work[a][to] for a, to in lost)
        yield Row(f"work of cluster {k} without a route", used, 0, lost)
    for cap in p.limits.shares:
        held = [(a, cap.cluster) for a, at in enumerate(home) if at in cap.origins]
        used = sum(work[a][to] * cost[a] for a, to in held)
        most = number(cap.share) * number(p.speed[cap.cluster].item())
        yield Row(f"share of {cap.origins} in cluster {cap.cluster}", used, most, held, False)


def _network(p: Platform, work: Any, opened: Any, number: Number) -> Iterator[Row]:
    """Yield (6d), (6e), the limits of pairs, and connections that nothing carries."""
    size = [number(x) for x in p.data.tolist()]
    wide = {link: number(x) for link, x in p.links["bandwidth"].items()}
    total = dict.fromkeys(p.links.index, number(0))
    mine: list[list[int]] = [[] for _ in range(p.clusters)]
    for a, k in enumerate(p.origin.tolist()):
        mine[k].append(a)
    for (k, to), route in p.routes.items():
        if not route:
            continue
        for link in route:
            total[link] += opened[k][to]
        cells = [(a, to) for a in mine[k]]
        used = sum(work[a][to] * size[a] for a in mine[k])
        one = min(wide[link] for link in route)
        yield Row(f"(6e) route {k} -> {to}", used, opened[k][to] * one, cells)
        both = opened[k][to] + (opened[to][k] if p.routes.get((to, k)) else 0)
        yield Row(f"connections between {k} and {to}", both, p.limits.between(k, to), [])
    for link, most in p.links["max_connect"].items():
        yield Row(f"(6d) link {link}", total[link], most, [])
    for k, row in enumerate(opened):
        for to, count in enumerate(row):
            if count and not p.routes.get((k, to)):
                yield Row(f"connections {k} -> {to} without a link", count, 0, [])


def rows_of(p: Platform, work: Any, connections: Any, is_exact: bool) -> Iterator[Row]:
    """Yield every constraint that an allocation must meet."""
    number: Number = exact if is_exact else float
    done, opened = (
        [[number(x) for x in row] for row in np.asarray(table).tolist()]
        for table in (work, connections)
    )
    yield from _flows(p, done, number)
    yield from _network(p, done, opened, number)


def verify(p: Platform, work: Any, connections: Any, is_relaxed: bool = False) -> None:
    """Check (6) and the limits; exactly where the work is in Fractions.

    Parameters
    ----------
    p : Platform
        Of the allocation.
    work : ndarray, shape (A, K)
        Load units per time.
    connections : ndarray, shape (K, K)
        Opened from k to l.
    is_relaxed : bool
        Whether connections may be real numbers.

    Raises
    ------
    ScheduleError
        Naming the first constraint that does not hold.
    """
    shapes = (np.shape(work), np.shape(connections))
    if shapes != ((p.applications, p.clusters), (p.clusters, p.clusters)):
        raise ScheduleError(f"work, connections must be (A, K), (K, K); got {shapes}")
    amounts, opened = np.asarray(work), np.asarray(connections)
    if not ((amounts >= 0).all() and (opened >= 0).all()):
        raise ScheduleError("(6f), (6g): work and connections must be at least 0")
    if not is_relaxed and (opened != np.floor(opened)).any():
        raise ScheduleError("(6g): connections must be whole numbers")
    is_exact = amounts.dtype == object
    for row in rows_of(p, amounts, opened, is_exact):
        if row.used > row.limit + (0 if is_exact else SLACK * row.limit):
            raise ScheduleError(f"{row.name}: {float(row.used):g} exceeds {float(row.limit):g}")
