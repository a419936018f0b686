"""Check an allocation against program (6) and the limits, in floats or exactly.

The check is written from the definition and uses only the fields of the platform, its routes among
them. It uses none of the tables that the programs and heuristics use.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dlsim.errors import ScheduleError
from dlsim.steady.model import Platform
from dlsim.steady.routes import Pair

#: Slack of every row, relative to its limit.
ROW_SLACK = 1e-9


class Constraints(NamedTuple):
    """Constraints of one kind: name, used amount, limit and summed cells of number i.

    `is_sending` tells whether they limit what is sent, or what is computed.
    """

    name: Callable[[int], str]
    used: Any
    limit: Any
    cells: Callable[[int], list[Pair]] = lambda _: []
    is_sending: bool = True


class Violation(NamedTuple):
    """A constraint that does not hold."""

    name: str
    used: Any
    limit: Any
    cells: list[Pair]
    is_sending: bool


def to_fraction(value: Any) -> Fraction:
    """Return a finite number as the fraction of its shortest decimal text: 0.1 is 1/10."""
    return value if isinstance(value, Fraction) else Fraction(str(value))


_to_fractions = np.frompyfunc(to_fraction, 1, 1)


def _add_up(where: Any, values: Any, size: int) -> Any:
    total = np.zeros(size, dtype=values.dtype)
    np.add.at(total, where, values)
    return total


def _nonzero_cells(mask: Any) -> list[Pair]:
    return list(zip(*np.nonzero(mask), strict=True))


def _compute_constraints(
    platform: Platform, work: Any, number: Callable[[Any], Any]
) -> Iterator[Constraints]:
    """Yield (6b), (6c), the share caps, and work where no route leads."""
    origin, every_cluster, site = (
        platform.origin,
        np.arange(platform.clusters),
        platform.site_names or range(platform.clusters),
    )
    cost, size = work * number(platform.work)[:, None], work * number(platform.data)[:, None]
    speed, away = number(platform.speed), every_cluster != origin[:, None]

    def done(k: int) -> list[Pair]:
        return [(a, k) for a in range(len(origin))]

    def sent_or_received(k: int) -> list[Pair]:
        return _nonzero_cells(away & ((origin == k)[:, None] | (every_cluster == k)))

    def name_by_site(text: str) -> Callable[[int], str]:
        return lambda k: text.format(site[k])

    yield Constraints(
        name_by_site("(6b) speed of cluster {}"), cost.sum(axis=0), speed, done, False
    )
    sent = np.where(away, size, 0)
    busy = sent.sum(axis=0) + _add_up(origin, sent.sum(axis=1), platform.clusters)
    yield Constraints(
        name_by_site("(6c) gateway of cluster {}"), busy, number(platform.gateway), sent_or_received
    )
    stray = away & (platform.routes.number < 0)[origin]
    lost = _add_up(origin, np.where(stray, work, 0).sum(axis=1), platform.clusters)
    unrouted = name_by_site("work of cluster {} without a route")
    yield Constraints(
        unrouted, lost, 0 * lost, lambda k: _nonzero_cells(stray & (origin == k)[:, None])
    )
    for cap in platform.limits.shares:
        held = np.flatnonzero(np.isin(origin, cap.origins))
        origins = tuple(site[k] for k in cap.origins)
        name = f"share of {origins} in cluster {site[cap.cluster]}"
        used = cost[held, [cap.cluster]].sum(keepdims=True)
        cells = [(a, cap.cluster) for a in held.tolist()]
        most = number([cap.share]) * speed[[cap.cluster]]
        yield Constraints(lambda _, x=name: x, used, most, lambda _, x=cells: x, False)  # type: ignore[misc]


def _network_constraints(
    platform: Platform, work: Any, opened: Any, number: Callable[[Any], Any]
) -> Iterator[Constraints]:
    """Yield (6d), (6e), the limits of pairs, and connections where no route has a link."""
    ways, clusters, site = (
        platform.routes,
        platform.clusters,
        platform.site_names or range(platform.clusters),
    )
    sent = np.zeros((clusters, clusters), dtype=work.dtype)
    np.add.at(sent, platform.origin, work * number(platform.data)[:, None])
    ends = tuple(ways.pairs.T)
    busy = (sent[ends] != 0) | (opened[ends] != 0)
    used = np.flatnonzero(busy & (np.diff(ways.start) > 0))
    k, to = ways.pairs[used].T
    links = [ways.link[ways.start[r] : ways.start[r + 1]] for r in used.tolist()]
    wide = platform.links["bandwidth"].to_numpy()
    one = [wide[way].min() for way in links]

    def carried(i: int) -> list[Pair]:
        return [(a, to[i]) for a in np.flatnonzero(platform.origin == k[i]).tolist()]

    def name_by_ends(text: str, k: Any, to: Any) -> Callable[[int], str]:
        return lambda i: text.format(site[k[i]], site[to[i]])

    most = opened[k, to] * number(one)
    yield Constraints(name_by_ends("(6e) route {} -> {}", k, to), sent[k, to], most, carried)
    if platform.limits.pairs is not None:
        back = np.zeros_like(opened)
        back[k, to] = opened[k, to]
        both = back[k, to] + back[to, k]
        caps = np.array([platform.limits.pair_limit(*pair) for pair in zip(k, to, strict=True)])
        yield Constraints(name_by_ends("connections between {} and {}", k, to), both, caps)
    counts = np.repeat(opened[k, to], [len(way) for way in links])
    total = _add_up(np.concatenate([[], *links]).astype(int), counts, len(platform.links))
    capacity = platform.links["max_connect"].to_numpy()
    yield Constraints(lambda i: f"(6d) link {platform.links.index[i]}", total, capacity)
    idle = opened.copy()
    idle[k, to] = 0
    u, v = np.nonzero(idle)
    yield Constraints(
        name_by_ends("connections {} -> {} without a link", u, v), idle[u, v], 0 * idle[u, v]
    )


def find_violations(
    platform: Platform, work: Any, connections: Any, is_exact: bool
) -> Iterator[Violation]:
    """Yield every constraint that does not hold, with a slack where numbers are floats."""
    number = _to_fractions if is_exact else partial(np.asarray, dtype=float)
    done, opened = number(work), number(connections)
    for rows in (
        *_compute_constraints(platform, done, number),
        *_network_constraints(platform, done, opened, number),
    ):
        slack = 0 if is_exact else ROW_SLACK * rows.limit
        for i in np.flatnonzero(rows.used > rows.limit + slack).tolist():
            yield Violation(
                rows.name(i), rows.used[i], rows.limit[i], rows.cells(i), rows.is_sending
            )


def check_allocation(
    platform: Platform, work: Any, connections: Any, is_relaxed: bool = False
) -> None:
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
    if shapes != (
        (platform.applications, platform.clusters),
        (platform.clusters, platform.clusters),
    ):
        raise ScheduleError(f"work, connections must be (A, K), (K, K); got {shapes}")
    amounts, opened = np.asarray(work), np.asarray(connections)
    if not ((amounts >= 0).all() and (opened >= 0).all()):
        raise ScheduleError("(6f), (6g): work and connections must be at least 0")
    if not is_relaxed and (opened != np.floor(opened)).any():
        raise ScheduleError("(6g): connections must be whole numbers")
    for row in find_violations(platform, amounts, opened, amounts.dtype == object):
        raise ScheduleError(f"{row.name}: {float(row.used):g} exceeds {float(row.limit):g}")
