"""The words of steady-state scheduling: reading, platform, sites of an organisation.

Source: paper S (steady-state), L. Marchal, Y. Yang, H. Casanova, Y. Robert,
"Steady-State Scheduling of Multiple Divisible Load Applications on Wide-Area
Distributed Computing Platforms". The paper's alpha[k, l] is `work` here and its
beta[k, l] is `connections`.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.given import Floats, column, instance, table
from dlsim.reading import BaseReading, switch
from dlsim.steady.routes import Ints, Limits, Routes, Tables, floored, listed, need_pairs

Flags = NDArray[np.bool_]


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

    local_amount: str = switch("printed", "prose")
    stuck: str = switch("prose", "rest")
    vertex: str = switch("solver", "least_connections")
    lprg_start: str = switch("lpr", "zero")


#: Every switch of `Reading` with its options, the default first.
SWITCHES = Reading.switches()


def numbers(name: str, values: object, *shapes: tuple[int, ...]) -> Floats:
    """Return a read-only copy of finite numbers of at least 0, in one of the shapes if any."""
    array = column(name, values, rule="a finite number of at least 0")
    if shapes and array.shape not in shapes:
        got, *wanted = (" x ".join(map(str, shape)) for shape in (array.shape, *shapes))
        raise InputError(f"{name} must have {' or '.join(wanted)} entries, got {got or 1}")
    if array.ndim == 0:
        raise InputError(f"{name} must be a list of numbers, got {values!r}")
    array.flags.writeable = False
    return array


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
    routes: Any
    priority: Any
    work: Any
    data: Any
    origin: Any = None
    limits: Limits = field(default_factory=Limits)
    router: Any = None

    def __post_init__(self) -> None:
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
            "origin": self._homes(apps, clusters),
        }
        for name, value in sized.items():
            object.__setattr__(self, name, value)
        if (self.work <= 0).any():
            raise InputError(f"work must be above 0 for each application, got {self.work}")
        if not (self.priority > 0).any():
            raise InputError("priority must be above 0 for at least one application")
        labels = table("links", self.links, ("bandwidth", "max_connect")).index
        rule = "a number of at least 0 (inf for no limit)"
        of: dict[str, Any] = {"row": "link", "labels": labels}
        most = column("max_connect", self.links["max_connect"], high=math.inf, rule=rule, **of)
        bandwidth = column("bandwidth", self.links["bandwidth"], **of)
        links = self.links.assign(bandwidth=bandwidth, max_connect=floored("max_connect", most))
        object.__setattr__(self, "links", links)
        if self.router is not None and len(listed("router", self.router)) != clusters:
            raise InputError(f"router must name {clusters} routers, got {self.router!r}")
        need_pairs(clusters)
        routes = Routes.of(self.routes, self.links.index, clusters)
        object.__setattr__(self, "routes", routes)
        limits, known = instance("limits", self.limits, Limits), set(range(clusters))
        for cap in limits.shares:
            if not {cap.cluster, *cap.origins} <= known:
                raise InputError(f"{cap} must name clusters 0 to {clusters - 1}")
        for pair in limits.pairs if isinstance(limits.pairs, Mapping) else ():
            if not set(pair) <= known:
                raise InputError(f"limits.pairs must name two clusters, got {pair}")

    def _homes(self, apps: int, clusters: int) -> Ints:
        given = listed("origin", range(apps) if self.origin is None else self.origin)
        if len(given) == apps:
            with suppress(InputError):
                return column("origin", given, 0, clusters - 1, is_whole=True)
        rule = f"one of {clusters} clusters for each of {apps} applications"
        raise InputError(f"origin must name {rule}, got {given}")

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
    def tables(self) -> Tables:
        """Return routes and links as arrays, for programs and kernels."""
        return Tables.of(self.routes, self.links, self.limits)


@dataclass(frozen=True, eq=False)
class Network:
    """The sites of a virtual organisation and what joins them (section 7).

    Speeds and applications come and go.

    Parameters
    ----------
    sites : sequence of str
        Names.
    gateway, links, routes, limits
        As in `Platform`, a cluster for each site.

    Raises
    ------
    InputError
        For a site named twice, or what is no platform.
    """

    sites: Sequence[str]
    gateway: Any
    links: pd.DataFrame
    routes: Mapping[tuple[int, int], Sequence[Any]]
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse what is no network; round the links' connections down once."""
        is_list = isinstance(self.sites, Sequence) and not isinstance(self.sites, str)
        if not is_list or not all(isinstance(site, str) for site in self.sites):
            raise InputError(f"sites must be a list of names, got {self.sites!r}")
        if len(set(self.sites)) < len(self.sites):
            raise InputError(f"sites must have different names, got {list(self.sites)}")
        whole = self.platform(np.ones(len(self.sites)), [(0, 1.0, 1.0, 1.0)]).links
        object.__setattr__(self, "links", whole)

    @classmethod
    def of(cls, p: Platform) -> Self:
        """Take the network of a platform, whose sites are called site 0, site 1, ..."""
        names = [f"site {k}" for k in range(p.clusters)]
        return cls(names, p.gateway, p.links, p.routes, p.limits)

    def platform(
        self, speed: Floats, applications: Sequence[tuple[int, float | Floats, float, float]]
    ) -> Platform:
        """Return the platform of a moment: speeds, (origin, priority, work, data) of each."""
        origin, priority, work, data = (list(part) for part in zip(*applications, strict=True))
        if any(map(np.ndim, priority)):
            priority = [np.broadcast_to(pi, len(self.sites)) for pi in priority]
        return Platform(
            speed, self.gateway, self.links, self.routes, priority, work, data,
            origin=origin, limits=self.limits,
        )  # fmt: skip
