"""The sites of a virtual organisation and what joins them, all of which may change (section 7)."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import networkx as nx
import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.given import column, instance, member, number, table, whole
from dlsim.steady.check import exact
from dlsim.steady.graphs import lightest_routes, shortest_routes
from dlsim.steady.model import Floats, Platform, called
from dlsim.steady.routes import Limits, listed

_NUMBERS, _ENDS = ["bandwidth", "max_connect"], ["start", "end"]
#: What an application of a moment is: origin, priority, work, data.
Wanted = tuple[int, float | Floats, float, float]


def per_connection(
    capacity: float, bandwidth: float | None = None, connections: float | None = None
) -> tuple[float, float]:
    """Return bandwidth and number of the connections that a link's capacity holds.

    One of the two has to be given: what one connection gets (the window of TCP over the round
    trip, for instance), or how many share the link.

    >>> per_connection(1000, bandwidth=64)
    (64.0, 15)
    """
    capacity = float(number("capacity", capacity))
    if (bandwidth is None) == (connections is None):
        rule = "a capacity needs the bandwidth of one connection, or their number, and not both"
        raise InputError(f"{rule}; got bandwidth {bandwidth}, connections {connections}")
    if bandwidth is None:
        return capacity / (count := whole("connections", connections)), count
    one = float(number("bandwidth", bandwidth, above=True))
    return one, math.floor(exact(capacity) / exact(one))


def held(link: Mapping[str, Any]) -> tuple[float, float]:
    """Return bandwidth and most connections of a link, which may tell its capacity instead."""
    one, most = link.get("bandwidth"), link.get("max_connect", link.get("connections"))
    if {"max_connect", "connections"} <= set(link):
        both = f"{link['max_connect']} and {link['connections']}"
        raise InputError(f"max_connect and connections are the same, got {both}; give one")
    if "capacity" in link:
        return per_connection(link["capacity"], one, most)
    if one is None:
        raise InputError("bandwidth is missing; it is that of one connection")
    return one, math.inf if most is None else most


def _column(links: pd.DataFrame, name: str, missing: Any) -> list[Any]:
    """Return a column of the links; what is missing is told."""
    found = links[name].tolist() if name in links else [None] * len(links)
    return [missing if pd.isna(value) else value for value in found]


def joined(
    links: pd.DataFrame, routers: Sequence[Any], lost: Collection[Any] = ()
) -> tuple[pd.DataFrame, Any]:
    """Return the links that are not lost, in the order of their graph, and its shortest routes.

    Routes are lightest where a link has a weight (1 where missing) or is used one_way.
    """
    one_way = _column(table("links", links, _NUMBERS + _ENDS), "one_way", False)
    ends = list(zip(*(_column(links, end, None) for end in _ENDS), strict=True))
    graph: Any = nx.DiGraph() if any(one_way) else nx.Graph()
    weights = column("weight", _column(links, "weight", 1.0), row="link", labels=links.index)
    rows = zip(links.index, ends, one_way, weights.tolist(), strict=True)
    for name, way, is_one_way, weight in rows:
        if None in way:
            raise InputError(f"link {name!r} needs start and end, as no routes are given")
        both = any(one_way) and not is_one_way
        for u, v in (way, way[::-1])[: 1 + both]:
            if graph.has_edge(u, v):
                what = "joins two routers that a link joins already; merge them"
                raise InputError(f"link {name!r} {what}")
            graph.add_edge(u, v, name=name, weight=weight)
    graph.add_nodes_from(listed("router", routers))
    # taken out again, not left out: of equal routes the order of all nodes chooses one
    graph.remove_edges_from([(u, v) for u, v, name in graph.edges(data="name") if name in lost])
    if any(one_way) or "weight" in links:
        return links.drop(index=list(lost)), lightest_routes(graph, routers)
    u, v, names = ([edge[i] for edge in graph.edges(data="name")] for i in range(3))
    ordered = links.loc[names].assign(start=u, end=v)
    return ordered, shortest_routes(graph, routers, ordered.index)


@dataclass(frozen=True, eq=False)
class Network:
    """The sites of a virtual organisation and what joins them (section 7).

    Speeds and applications come and go.

    Parameters
    ----------
    sites : sequence of str
        Names.
    gateway, links, routes, limits
        As in `Platform`, a cluster for each site. Without routes (None) they are those of
        fewest links between the sites' routers, which the links' columns start and end name;
        of least weight where a link has one or is used one_way.
    router : sequence, optional
        Of each site; without routes the sites' names by default.
    lost : collection
        Links that carry nothing now: a route over one cannot be used, and shortest routes
        lead over the others.

    Raises
    ------
    InputError
        For a site named twice, or what is no platform.
    """

    sites: Sequence[str]
    gateway: Any
    links: pd.DataFrame
    routes: Mapping[tuple[int, int], Sequence[Any]] | None = None
    limits: Limits = field(default_factory=Limits)
    router: Any = None
    lost: frozenset[Any] = frozenset()
    _there: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse what is no network; round the links' connections down once."""
        sites = called("sites", self.sites) or []
        for link in listed("lost", self.lost):
            member("link", link, table("links", self.links, _NUMBERS).index)
        links, routes, lost = self.links, self.routes, frozenset(self.lost)
        if routes is None:
            links, routes = joined(links, sites if self.router is None else self.router, lost)
        elif lost and isinstance(routes, Mapping):  # else refused below
            links = links.drop(index=list(lost))
            routes = {pair: way for pair, way in routes.items() if lost.isdisjoint(way)}
        vars(self).update(sites=sites, lost=lost, _there=(links, routes))
        there = self.platform(np.ones(len(self.sites)), [(0, 1.0, 1.0, 1.0)])
        rounded = there.links[_NUMBERS].reindex(self.links.index).fillna(self.links[_NUMBERS])
        links = self.links.assign(**rounded)
        vars(self).update(_there=(there.links, there.routes), links=links)

    @classmethod
    def of(cls, p: Platform) -> Self:
        """Take the network of a platform; sites without names are called site 0, site 1, ..."""
        instance("platform", p, Platform)
        names = p.site_names or [f"site {k}" for k in range(p.clusters)]
        return cls(names, p.gateway, p.links, p.routes, p.limits)

    @property
    def fields(self) -> dict[str, Any]:
        """Return what a platform on what is there now takes."""
        return {
            "gateway": self.gateway, "links": self._there[0], "routes": self._there[1],
            "limits": self.limits, "router": self.router, "site_names": self.sites,
        }  # fmt: skip

    def platform(
        self, speed: Floats, applications: Sequence[Wanted], names: Sequence[str] | None = None,
        bandwidth: Mapping[Any, float] | None = None,
    ) -> Platform:  # fmt: skip
        """Return the platform of a moment: speeds, (origin, priority, work, data) of each.

        A bandwidth per link stands for that of the table.
        """
        origin, priority, work, data = (list(part) for part in zip(*applications, strict=True))
        if any(map(np.ndim, priority)):
            priority = [np.broadcast_to(pi, len(self.sites)) for pi in priority]
        known = self.fields
        if bandwidth is not None:
            wide = [bandwidth[label] for label in known["links"].index]
            known["links"] = known["links"].assign(bandwidth=wide)
        return Platform(
            speed, priority=priority, work=work, data=data, origin=origin,
            application_names=names, **known,
        )  # fmt: skip

    def with_link(self, link: Any, **numbers: Any) -> Self:
        """Return the network with one more link, or with other numbers of one."""
        links = self.links.reindex(list(dict.fromkeys([*self.links.index, link])))
        for name, value in numbers.items():
            rows = zip(links.index, _column(links, name, None), strict=True)
            links[name] = [value if label == link else old for label, old in rows]
        return replace(self, links=links)

    def with_site(self, name: str, gateway: float, router: Any = None) -> Self:
        """Return the network with one more site, on a router that by default has its name."""
        routers = self.router
        if routers is not None or self.routes is None:
            others = self.sites if routers is None else routers
            routers = [*others, name if router is None else router]
        gateways = [*np.asarray(self.gateway, dtype=float), gateway]
        return replace(self, sites=[*self.sites, name], gateway=gateways, router=routers)

    def with_route(self, k: int, to: int, way: Sequence[Any], one_way: bool = False) -> Self:
        """Return the network with another route from k to l and, unless one_way, back."""
        if self.routes is None:
            rule = "are the shortest over the links; add or change a link"
            raise InputError(f"no route can be given where routes {rule}")
        ways = {(k, to): listed("route", way)}
        if not one_way:
            ways[to, k] = ways[k, to][::-1]
        return replace(self, routes=dict(self.routes) | ways)
