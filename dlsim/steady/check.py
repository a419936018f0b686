"""Check an allocation against program (6) and the limits, in floats or exactly.

The check is written from the definition and uses only the fields of the platform, its routes among
them. It uses none of the tables that the programs and heuristics use.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.errors import ScheduleError
from dlsim.steady.model import Platform
from dlsim.steady.routes import Pair, Share

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
    origin, clusters = platform.origin, np.arange(platform.clusters)
    site = platform.site_names or range(platform.clusters)
    cost = work * number(platform.work)[:, None]
    size = work * number(platform.data)[:, None]
    speed = number(platform.speed)
    is_away = clusters != origin[:, None]

    def name_by_site(text: str) -> Callable[[int], str]:
        return lambda cluster: text.format(site[cluster])

    def computed_at(cluster: int) -> list[Pair]:
        return [(application, cluster) for application in range(len(origin))]

    def sent_or_received_by(cluster: int) -> list[Pair]:
        return _nonzero_cells(is_away & ((origin == cluster)[:, None] | (clusters == cluster)))

    def unrouted_from(cluster: int) -> list[Pair]:
        return _nonzero_cells(is_unrouted & (origin == cluster)[:, None])

    name = name_by_site("(6b) speed of cluster {}")
    yield Constraints(name, cost.sum(axis=0), speed, computed_at, is_sending=False)
    sent = np.where(is_away, size, 0)
    busy = sent.sum(axis=0) + _add_up(origin, sent.sum(axis=1), platform.clusters)
    name = name_by_site("(6c) gateway of cluster {}")
    yield Constraints(name, busy, number(platform.gateway), sent_or_received_by)
    has_route = np.zeros((platform.clusters, platform.clusters), dtype=bool)
    for pair in platform.routes:
        has_route[pair] = True
    is_unrouted = is_away & ~has_route[origin]
    unrouted = _add_up(origin, np.where(is_unrouted, work, 0).sum(axis=1), platform.clusters)
    name = name_by_site("work of cluster {} without a route")
    yield Constraints(name, unrouted, 0 * unrouted, unrouted_from)
    for cap in platform.limits.shares:
        yield _share_constraint(cap, origin, cost, number([cap.share]) * speed[[cap.cluster]], site)


def _share_constraint(
    cap: Share, origin: Any, cost: Any, limit: Any, site: Sequence[Any]
) -> Constraints:
    """Return the constraint of one share cap; `cost` is the work per application and cluster."""
    capped = np.flatnonzero(np.isin(origin, cap.origins))
    used = cost[capped, [cap.cluster]].sum(keepdims=True)
    cells = [(application, cap.cluster) for application in capped.tolist()]
    origins = tuple(site[cluster] for cluster in cap.origins)
    name = f"share of {origins} in cluster {site[cap.cluster]}"
    return Constraints(lambda _: name, used, limit, lambda _: cells, is_sending=False)


def _network_constraints(
    platform: Platform, work: Any, opened: Any, number: Callable[[Any], Any]
) -> Iterator[Constraints]:
    """Yield (6d), (6e), the limits of pairs, and connections where no route has a link."""
    clusters, links = platform.clusters, platform.links
    site = platform.site_names or range(clusters)
    sent = np.zeros((clusters, clusters), dtype=work.dtype)
    np.add.at(sent, platform.origin, work * number(platform.data)[:, None])
    used = [
        (pair, way)
        for pair, way in sorted(platform.routes.items())
        if way and (sent[pair] != 0 or opened[pair] != 0)
    ]
    source, target = np.array([pair for pair, _ in used], dtype=int).reshape(-1, 2).T
    link_bandwidth = links["bandwidth"].to_dict()
    bandwidth = number([min(link_bandwidth[label] for label in way) for _, way in used])

    def carried_by(place: int) -> list[Pair]:
        held = np.flatnonzero(platform.origin == source[place])
        return [(application, target[place]) for application in held.tolist()]

    def name_by_pair(text: str, source: Any, target: Any) -> Callable[[int], str]:
        return lambda place: text.format(site[source[place]], site[target[place]])

    name = name_by_pair("(6e) route {} -> {}", source, target)
    most = opened[source, target] * bandwidth
    yield Constraints(name, sent[source, target], most, carried_by)
    on_links = np.zeros_like(opened)
    on_links[source, target] = opened[source, target]
    if platform.limits.pairs is not None:
        both_ways = on_links[source, target] + on_links[target, source]
        ends = zip(source, target, strict=True)
        limits = np.array([platform.limits.pair_limit(*pair) for pair in ends])
        name = name_by_pair("connections between {} and {}", source, target)
        yield Constraints(name, both_ways, limits)
    yield _link_constraint(links, used, opened)
    without_link = opened.copy()
    without_link[source, target] = 0
    k, to = np.nonzero(without_link)
    name = name_by_pair("connections {} -> {} without a link", k, to)
    yield Constraints(name, without_link[k, to], 0 * without_link[k, to])


def _link_constraint(
    links: pd.DataFrame, used: Sequence[tuple[Pair, Sequence[Any]]], opened: Any
) -> Constraints:
    """Return the constraint (6d) of all links; `used` holds pairs and the links of their routes."""
    link_number = {label: place for place, label in enumerate(links.index)}
    total = np.zeros(len(links), dtype=opened.dtype)
    for pair, way in used:
        total[[link_number[label] for label in way]] += opened[pair]
    capacity = links["max_connect"].to_numpy()
    return Constraints(lambda link: f"(6d) link {links.index[link]}", total, capacity)


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
    platform : Platform
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
