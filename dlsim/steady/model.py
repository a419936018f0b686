"""The words of steady-state scheduling: platform and reading.

Source: paper S (steady-state), L. Marchal, Y. Yang, H. Casanova, Y. Robert,
"Steady-State Scheduling of Multiple Divisible Load Applications on Wide-Area
Distributed Computing Platforms". The paper's alpha[k, l] is `work` here and its
beta[k, l] is `connections`.
"""

import math
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.given import column, instance, table
from dlsim.reading import BaseReading
from dlsim.steady.limits import Limits, floored

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Pair = tuple[int, int]

#: Every switch of `Reading` with its options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {
    "local_amount": ("printed", "prose"),
    "stuck": ("prose", "rest"),
    "vertex": ("solver", "least_connections"),
    "lprg_start": ("lpr", "zero"),
}


@dataclass(frozen=True)
class Reading(BaseReading):
    """How the ambiguous sentences of paper S are understood; every default is named.

    Parameters
    ----------
    local_amount : {"printed", "prose"}
        What the greedy heuristic gives to its own cluster (5.1, step 5): the formula as
        printed, or the sentence after it, "the largest amount that could have been
        executed on C^k for another application". They contradict each other.
    stuck : {"prose", "rest"}
        When the printed formula gives 0: the amount of the sentence, or all that is left.
    vertex : {"solver", "least_connections"}
        Which optimum of the degenerate relaxed program LPR, LPRG and LPRR round: the one
        the solver returns (reduced form, dual simplex, no presolve), or one with the
        fewest connections.
    lprg_start : {"lpr", "zero"}
        What the greedy step of LPRG takes an application to have: its share by LPR, or
        nothing.
    """

    local_amount: str = "printed"
    stuck: str = "prose"
    vertex: str = "solver"
    lprg_start: str = "lpr"

    OPTIONS = SWITCHES


def numbers(name: str, values: object, *shapes: tuple[int, ...]) -> Floats:
    """Return a read-only copy of finite numbers of at least 0, in one of the shapes if any."""
    array = column(name, values, rule="a finite number of at least 0")
    if shapes and array.shape not in shapes:
        wanted, got = (
            " or ".join(" x ".join(map(str, shape)) for shape in some)
            for some in (shapes, [array.shape])
        )
        raise InputError(f"{name} must have {wanted} entries, got {got or 1}")
    if array.ndim == 0:
        raise InputError(f"{name} must be a list of numbers, got {values!r}")
    array.flags.writeable = False
    return array


def _items(name: str, values: Any) -> list[Any]:
    """Return the items of a sequence or other collection; text is none."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list, got {values!r}")
    return list(values)


def _pair(pair: Any) -> Pair:
    """Return the two clusters of a route as whole numbers."""
    if isinstance(pair, tuple) and len(pair) == 2:
        with suppress(TypeError):
            return int(operator.index(pair[0])), int(operator.index(pair[1]))
    raise InputError(f"routes must be named by pairs of clusters, got {pair!r}; write (0, 1)")


@dataclass(frozen=True, eq=False)
class Platform:
    r"""Clusters behind routers, backbone links, and the applications they hold.

    Parameters
    ----------
    speed, gateway : array_like of float, shape (K,)
        Speed :math:`s_k` of each cluster (work per time) and bandwidth :math:`g_k` of its
        own link (data per time).
    links : DataFrame
        One row per backbone link: bandwidth of one connection (data per time) and
        max_connect, the most connections in both directions, infinite where there is no
        limit; a broken number is rounded down with a warning. Columns start and end may
        name the routers it joins.
    routes : mapping of (int, int) to sequence
        Labels of the links from cluster k to cluster l, in order; an empty route joins two
        clusters on one router and needs no connection, a missing one cannot be used.
    priority : array_like of float, shape (A,) or (A, K)
        :math:`\pi_k`, or :math:`\pi_{k,l}` per application and cluster. An application of
        priority 0 does not count in the objective; nor does work at a pair of priority 0.
    work, data : array_like of float, shape (A,)
        :math:`w` (work per load unit, above 0) and :math:`\delta` (data per load unit).
    origin : sequence of int, optional
        The cluster that holds each application; 0..K-1 by default.
    limits : Limits, optional
        Policies beside (6).
    router : sequence, optional
        The name of each cluster's router, for graphs and files.

    Raises
    ------
    InputError
        For a wrong shape, a negative number, a route over an unknown cluster or link, or
        no application of positive priority.
    """

    speed: Any
    gateway: Any
    links: pd.DataFrame
    routes: Mapping[Pair, Sequence[Any]]
    priority: Any
    work: Any
    data: Any
    origin: Any = None
    limits: Limits = field(default_factory=Limits)
    router: Any = None

    def __post_init__(self) -> None:
        """Refuse what is not a platform."""
        speed = numbers("speed", self.speed)
        if speed.ndim != 1 or not len(speed):
            raise InputError(f"speed must list at least one cluster, got {self.speed!r}")
        named = ("priority", "work", "data")
        # the length that two of the three have, so that the odd one is blamed
        apps = sorted(len(numbers(name, getattr(self, name))) for name in named)[1]
        clusters = len(speed)
        sized = {
            "speed": speed,
            "gateway": numbers("gateway", self.gateway, (clusters,)),
            "priority": numbers("priority", self.priority, (apps,), (apps, clusters)),
            "work": numbers("work", self.work, (apps,)),
            "data": numbers("data", self.data, (apps,)),
            "origin": self._homes(apps),
            "links": self._backbone(),
            "routes": self._ways(),
        }
        for name, value in sized.items():
            object.__setattr__(self, name, value)
        self._check_applications()
        self._check_routes()
        self._check_limits()

    def _homes(self, apps: int) -> Ints:
        given = _items("origin", range(apps) if self.origin is None else self.origin)
        clusters = range(len(np.atleast_1d(self.speed)))
        if len(given) == apps:
            with suppress(InputError):
                return column("origin", given, 0, len(clusters) - 1, is_whole=True)
        raise InputError(
            f"origin must name one of {len(clusters)} clusters for each of {apps} "
            f"applications, got {given}"
        )

    def _ways(self) -> dict[Pair, tuple[Any, ...]]:
        if not isinstance(self.routes, Mapping):
            raise InputError(f"routes must map pairs of clusters to links, got {self.routes!r}")
        return {
            _pair(pair): tuple(_items(f"route {pair}", way)) for pair, way in self.routes.items()
        }

    def _backbone(self) -> pd.DataFrame:
        labels = table("links", self.links, ("bandwidth", "max_connect")).index
        rule = "a number of at least 0 (inf for no limit)"
        most = column(
            "max_connect", self.links["max_connect"], high=math.inf, rule=rule,
            row="link", labels=labels,
        )  # fmt: skip
        bandwidth = column("bandwidth", self.links["bandwidth"], row="link", labels=labels)
        return self.links.assign(bandwidth=bandwidth, max_connect=floored("max_connect", most))

    def _check_applications(self) -> None:
        if (self.work <= 0).any():
            raise InputError(f"work must be above 0 for each application, got {self.work}")
        if not (self.priority > 0).any():
            raise InputError("priority must be above 0 for at least one application")
        if self.router is not None and len(_items("router", self.router)) != self.clusters:
            raise InputError(f"router must name {self.clusters} routers, got {self.router!r}")

    def _check_routes(self) -> None:
        clusters, known = range(self.clusters), set(self.links.index)
        for pair, route in self.routes.items():
            k, to = pair
            unknown = [x for x in route if not isinstance(x, Hashable) or x not in known]
            if k not in clusters or to not in clusters or k == to or unknown:
                raise InputError(
                    f"route {k} -> {to} must join two clusters over known links; "
                    f"got {unknown[0] if unknown else (k, to)!r}"
                )
            if len(set(route)) < len(route):
                raise InputError(f"route {k} -> {to} must pass each link once, got {route}")

    def _check_limits(self) -> None:
        instance("limits", self.limits, Limits)
        clusters = range(self.clusters)
        for cap in self.limits.shares:
            if not {cap.cluster, *cap.origins} <= set(clusters):
                raise InputError(f"{cap} must name clusters 0 to {self.clusters - 1}")
        pairs = self.limits.pairs
        for k, to in pairs if isinstance(pairs, Mapping) else ():
            if k not in clusters or to not in clusters:
                raise InputError(f"limits.pairs must name two clusters, got {(k, to)}")

    @property
    def clusters(self) -> int:
        """Return the number of clusters K."""
        return len(self.speed)

    @property
    def applications(self) -> int:
        """Return the number of applications A."""
        return len(self.data)

    def connection_bandwidth(self, k: int, to: int) -> float:
        """The least bandwidth of a route, :math:`g_{k,l}`; inf on an empty one, 0 without one."""
        if (k, to) not in self.routes:
            return 0.0
        route = list(self.routes[k, to])
        return float(self.links.loc[route, "bandwidth"].min()) if route else np.inf

    @cached_property
    def priorities(self) -> Floats:
        """Return the priority of every application on every cluster, shape (A, K)."""
        pi = self.priority if self.priority.ndim == 2 else self.priority[:, None]
        return np.broadcast_to(pi, (self.applications, self.clusters))

    @cached_property
    def worth(self) -> Floats:
        """Return what a load unit counts in the objective, 1 / priority or 0, shape (A, K)."""
        pi = self.priorities
        return np.divide(1.0, pi, out=np.zeros(pi.shape), where=pi > 0)

    @cached_property
    def counted(self) -> Flags:
        """Return which applications count in the objective, shape (A,)."""
        return np.asarray((self.priorities > 0).any(axis=1), dtype=bool)

    @cached_property
    def tables(self) -> "Tables":
        """Return routes and links as arrays, for programs and kernels."""
        return Tables.of(self)


@dataclass(frozen=True, eq=False)
class Tables:
    """Routes and links of a platform as arrays; a pair limit is one more link of its routes."""

    capacity: Floats
    bandwidth: Floats
    route: Ints
    pairs: Ints
    start: Ints
    link: Ints

    @classmethod
    def of(cls, p: Platform) -> Self:
        """Lay a platform out as arrays."""
        number = {label: i for i, label in enumerate(p.links.index)}
        speeds = p.links["bandwidth"].to_numpy()
        capacity = p.links["max_connect"].tolist()
        bandwidth = np.where(np.eye(p.clusters, dtype=bool), np.inf, 0.0)
        route = np.full((p.clusters, p.clusters), -1)
        pairs: list[Pair] = []
        rows: list[list[int]] = []
        extra: dict[Pair, int] = {}
        for (k, to), labels in sorted(p.routes.items()):
            row = [number[label] for label in labels]
            bandwidth[k, to] = speeds[row].min(initial=np.inf)
            if not row:
                continue
            both, most = (min(k, to), max(k, to)), p.limits.between(k, to)
            if both in extra:
                row.append(extra[both])
            elif most < math.inf:
                extra[both] = len(capacity)
                row.append(len(capacity))
                capacity.append(most)
            route[k, to] = len(pairs)
            pairs.append((k, to))
            rows.append(row)
        start = np.cumsum([0, *map(len, rows)])
        link = np.array([i for row in rows for i in row], dtype=np.int64)
        shaped = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return cls(np.array(capacity, dtype=float), bandwidth, route, shaped, start, link)

    def spread(self, values: Any) -> Any:
        """Return numbers of the routes as those from k to l, shape (K, K), else 0."""
        spread = np.zeros_like(self.route, dtype=np.asarray(values).dtype)
        spread[tuple(self.pairs.T)] = values
        return spread

    def links_of(self, r: int) -> Ints:
        """Return the numbers of the links of one route."""
        return self.link[self.start[r] : self.start[r + 1]]
