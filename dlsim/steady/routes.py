"""Routes and links of a platform, and the policies of its owners (paper S, section 7).

`Platform.routes` is a dict for users, `Tables` holds the same as arrays for programs and kernels.
"""

import math
import operator
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.validate import Floats, instance, number, require_memory, require_table, whole

Ints = NDArray[np.int64]
Pair = tuple[int, int]
#: Labels of the links from cluster k to cluster l, in order.
Routes = dict[Pair, tuple[Any, ...]]

#: Least bytes of memory that a platform takes: per pair of clusters, per cluster and router.
BYTES_PER_PAIR, BYTES_PER_ROUTER = 250, 60
#: Columns that a table of links needs, and that it may have.
LINK_NUMBERS, LINK_ENDS = ("bandwidth", "max_connect"), ("start", "end")


def require_pair_memory(clusters: int, routers: int = 0) -> None:
    """Raise InputError for a platform that does not fit into memory."""
    what = f"a platform of {clusters:,} clusters" + f" on {routers:,} routers" * (routers > 0)
    size = clusters * max(BYTES_PER_PAIR * clusters, BYTES_PER_ROUTER * routers)
    require_memory(what, size, "take fewer clusters")


def check_link_columns(links: Any, ignore: Collection[str] = ()) -> pd.DataFrame:
    """Return a table of links without the columns to ignore; other unknown ones are refused."""
    table = require_table("links", links, LINK_NUMBERS, optional=LINK_ENDS, ignore=ignore)
    return table[[name for name in table if name in LINK_NUMBERS + LINK_ENDS]]


def round_counts_down(name: str, values: Floats) -> Floats:
    """Round counts down to whole numbers, with a warning where that changes one."""
    down = np.floor(values)
    if (down != values).any():
        some = values[down != values][0]
        text = f"{name} is rounded down to whole numbers, e.g. {some:g}"
        warnings.warn(text, stacklevel=_outside())
    return down


def _outside() -> int:
    """Return the stacklevel at which a warning names the line that called dlsim."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] == "dlsim":
        frame, level = frame.f_back, level + 1
    return level


def _check_pair(name: str, pair: Any) -> Pair:
    if isinstance(pair, tuple) and len(pair) == 2:
        with suppress(TypeError):
            return int(operator.index(pair[0])), int(operator.index(pair[1]))
    raise InputError(f"{name} must be named by pairs of clusters, got {pair!r}; write (0, 1)")


def _check_limit(most: Any) -> float:
    rule = "a number of at least 0"
    most = float(number("limits.pairs", most, high=math.inf, rule=rule))
    down = round_counts_down("limits.pairs", np.array([most]))[0]
    return int(down) if math.isfinite(down) else math.inf


@dataclass(frozen=True)
class Share:
    """A cap on how much of a cluster some origins may use (section 7).

    Parameters
    ----------
    cluster : int
        Where the work is done.
    origins : tuple of int
        Clusters whose applications, taken together, are capped.
    share : float
        Largest part of the cluster's speed, 0 to 1.
    """

    cluster: int
    origins: tuple[int, ...]
    share: float

    def __post_init__(self) -> None:
        rule = "a whole number, as it names a cluster"
        name = "origins of a share cap"
        origins = tuple(whole(name, k, 0, rule=rule) for k in to_list(name, self.origins))
        cluster = whole("cluster of a share cap", self.cluster, 0, rule=rule)
        share = number("share", self.share, high=1, rule="a number from 0 to 1")
        vars(self).update(cluster=cluster, origins=origins, share=share)
        if not origins:
            raise InputError("a share cap must name at least one origin, got none")


@dataclass(frozen=True)
class Limits:
    """Policies of the platform's owners beside (6) (section 7).

    Parameters
    ----------
    shares : tuple of Share
        Caps on parts of clusters.
    pairs : int, mapping of (int, int) to int, or None
        Most connections between two clusters, both directions together: one number for
        every pair, or one for each pair named; a broken number is rounded down with a
        warning, and an empty mapping is None. An empty route opens no connection.

    Examples
    --------
    No more than 10 % of cluster 2 for applications from clusters 0 and 1, at most four
    connections between any two clusters:

    >>> Limits((Share(2, (0, 1), 0.1),), 4).pairs
    4
    """

    shares: tuple[Share, ...] = ()
    pairs: int | Mapping[tuple[int, int], int] | None = None

    def __post_init__(self) -> None:
        several = self.shares if isinstance(self.shares, Iterable) else [self.shares]
        shares = tuple(instance("limits.shares", cap, Share) for cap in several)
        pairs: Any = self.pairs
        if isinstance(pairs, Mapping):
            pairs = {
                _check_pair("limits.pairs", pair): _check_limit(n) for pair, n in pairs.items()
            } or None
        elif pairs is not None:
            pairs = _check_limit(pairs)
        vars(self).update(shares=shares, pairs=pairs)

    def require_clusters(self, clusters: int) -> None:
        """Raise InputError for limits that name other clusters than 0 to `clusters` - 1."""
        known = set(range(clusters))
        for cap in self.shares:
            if not {cap.cluster, *cap.origins} <= known:
                raise InputError(f"{cap} must name clusters 0 to {clusters - 1}")
        for pair in self.pairs if isinstance(self.pairs, Mapping) else ():
            if not set(pair) <= known:
                raise InputError(f"limits.pairs must name two clusters, got {pair}")

    def pair_limit(self, k: int, to: int) -> float:
        """Return the most connections between two clusters, infinite where not limited."""
        if not isinstance(self.pairs, Mapping):
            return math.inf if self.pairs is None else float(self.pairs)
        return float(min(self.pairs.get(p, math.inf) for p in ((k, to), (to, k))))


def to_list(name: str, values: Any) -> list[Any]:
    """Return the items of a collection; a text is not a collection here."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, got {values!r}")
    return list(values)


def check_routes(
    routes: Any, labels: pd.Index, clusters: int, names: Sequence[str] | None = None
) -> Routes:
    """Return checked routes in the order given; `names` of clusters are for messages."""
    if not isinstance(routes, Mapping):
        raise InputError(f"routes must map pairs of clusters to links, got {routes!r}")
    known, numbers, checked = set(labels), range(clusters), Routes()
    for pair, links in routes.items():
        k, to = _check_pair("routes", pair)
        way = tuple(to_list(f"route {pair}", links))
        try:
            is_known = known.issuperset(way)
        except TypeError:  # a label that cannot be hashed
            is_known = False
        if not is_known or k == to or k not in numbers or to not in numbers:
            rule = "must join two clusters over known links"
            got = next((label for label in way if label not in list(known)), (k, to))
            raise InputError(f"{_title_route(k, to, names)} {rule}; got {got!r}")
        if len(set(way)) < len(way):
            raise InputError(f"{_title_route(k, to, names)} must pass each link once, got {way}")
        checked[k, to] = way
    return checked


def _title_route(k: int, to: int, names: Sequence[str] | None) -> str:
    ends = [names[n] if names and 0 <= n < len(names) else str(n) for n in (k, to)]
    return f"route {ends[0]} -> {ends[1]}"


@dataclass(frozen=True, eq=False)
class Tables:
    """Routes and links as arrays; a pair limit is one more link of its routes.

    Routes over no link have no number here; `route` is -1 there and where no route is.
    """

    capacity: Floats
    bandwidth: Floats
    route: Any
    pairs: Any
    start: Ints
    link: Any

    @classmethod
    def from_routes(
        cls, routes: Routes, links: pd.DataFrame, limits: Limits, clusters: int
    ) -> Self:
        """Return the arrays of the routes and links of a platform."""
        place = {label: number for number, label in enumerate(links.index)}
        ways = {pair: [place[label] for label in routes[pair]] for pair in sorted(routes)}
        pair_limits = _add_pair_limits(ways, limits, len(links))
        capacity = [*links["max_connect"], *pair_limits]
        bandwidth = np.where(np.eye(clusters, dtype=bool), np.inf, 0.0)
        for pair, way in ways.items():
            if not way:
                bandwidth[pair] = np.inf
        over_links = {pair: way for pair, way in ways.items() if way}
        pairs = np.array(list(over_links), dtype=np.int32).reshape(-1, 2)
        start = np.cumsum([0, *map(len, over_links.values())])
        link = np.array([number for way in over_links.values() for number in way], dtype=np.int32)
        route = np.full((clusters, clusters), -1, dtype=np.int32)
        route[tuple(pairs.T)] = np.arange(len(pairs))
        of_link = np.append(links["bandwidth"].to_numpy(), np.full(len(pair_limits), np.inf))
        bandwidth[tuple(pairs.T)] = _reduce_links(np.minimum, of_link, start, link)
        return cls(np.array(capacity, dtype=float), bandwidth, route, pairs, start, link)

    def to_matrix(self, values: Any) -> Any:
        """Return a number of every route as a matrix of pairs, shape (K, K), 0 without a route."""
        matrix = np.zeros(self.route.shape, dtype=np.asarray(values).dtype)
        matrix[tuple(self.pairs.T)] = values
        return matrix

    def links_of(self, route: int) -> Any:
        """Return the numbers of the links of one route."""
        return self.link[self.start[route] : self.start[route + 1]]

    def links_on_routes(self, routes: Any) -> tuple[Any, Any]:
        """Return (position in `routes`, link) for every link of each of some routes."""
        hops = self.start[routes + 1] - self.start[routes]
        begin = np.repeat(self.start[routes] - (np.cumsum(hops) - hops), hops)
        return np.repeat(np.arange(len(routes)), hops), self.link[begin + np.arange(hops.sum())]

    def min_over_links(self, values: Floats) -> Floats:
        """Return for each route the minimum of some numbers of its links."""
        return _reduce_links(np.minimum, values, self.start, self.link)

    def sum_over_links(self, values: Floats) -> Floats:
        """Return for each route the sum of some numbers of its links."""
        return _reduce_links(np.add, values, self.start, self.link)

    def load_on_links(self, filled: Floats) -> Floats:
        """Return for each link the sum of some numbers of the routes through it."""
        some = np.flatnonzero(filled)
        at, link = self.links_on_routes(some)
        return np.bincount(link, filled[some][at], len(self.capacity)).astype(float)


def _add_pair_limits(ways: dict[Pair, list[int]], limits: Limits, links: int) -> list[float]:
    """Add a link to the routes of every limited pair; return the limits of these links.

    `ways` holds the numbers of the links on every route; those of the added links begin at `links`.
    """
    numbers: dict[frozenset[int], int] = {}
    pair_limits: list[float] = []
    for pair, way in ways.items():
        most = limits.pair_limit(*pair)
        if way and most < math.inf:
            number_of_link = numbers.setdefault(frozenset(pair), links + len(numbers))
            if number_of_link == links + len(pair_limits):
                pair_limits.append(most)
            way.append(number_of_link)
    return pair_limits


def _reduce_links(reduction: np.ufunc, values: Floats, start: Ints, link: Any) -> Floats:
    """Reduce the values of the links of each route; every route must have a link."""
    return reduction.reduceat(values[link], start[:-1]) if len(start) > 1 else np.zeros(0)
