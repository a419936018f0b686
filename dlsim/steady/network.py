"""The sites of a virtual organisation and the network between them (paper S, section 7)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import networkx as nx
import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.steady.graphs import shortest_routes
from dlsim.steady.model import Floats, Platform, check_names
from dlsim.steady.routes import Limits, Routes, to_list
from dlsim.validate import instance, one_of_many, require_table

_LINK_NUMBERS, _ENDS = ["bandwidth", "max_connect"], ["start", "end"]
#: Origin, priority, work and data of an application.
ApplicationFields = tuple[int, float | Floats, float, float]


def routes_from_links(
    links: pd.DataFrame, routers: Sequence[Any], failed_links: Collection[Any] = ()
) -> tuple[pd.DataFrame, Routes]:
    """Return the links that have not failed, in the order of their graph, and shortest routes."""
    ends = [require_table("links", links, _LINK_NUMBERS + _ENDS)[end].tolist() for end in _ENDS]
    graph = nx.Graph()
    for name, start, end in zip(links.index, *ends, strict=True):
        if pd.isna(start) or pd.isna(end):
            raise InputError(f"link {name!r} needs start and end, as no routes are given")
        if graph.has_edge(start, end):
            what = "joins two routers that a link joins already; merge them"
            raise InputError(f"link {name!r} {what}")
        graph.add_edge(start, end, name=name)
    graph.add_nodes_from(to_list("router", routers))
    # failed links are removed afterwards, so that the order of nodes does not depend on them
    graph.remove_edges_from(
        [(u, v) for u, v, name in graph.edges(data="name") if name in failed_links]
    )
    u, v, names = ([edge[i] for edge in graph.edges(data="name")] for i in range(3))
    ordered = links.loc[names].assign(start=u, end=v)
    return ordered, shortest_routes(graph, routers, ordered.index)


@dataclass(frozen=True, eq=False)
class Network:
    """The sites of a virtual organisation and the network between them (section 7).

    Speeds and applications are not part of it: `platform` adds those of a moment.

    Parameters
    ----------
    sites : sequence of str
        Names.
    gateway, links, routes, limits
        As in `Platform`, a cluster for each site. Without routes (None) they are those of
        fewest links between the sites' routers, which the links' columns start and end name.
    router : sequence, optional
        Of each site; without routes the sites' names by default.
    failed_links : collection
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
    failed_links: frozenset[Any] = frozenset()
    _usable: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the fields, copy them, and round the links' connections down once."""
        sites = check_names("sites", self.sites) or []
        for link in to_list("failed_links", self.failed_links):
            one_of_many("link", link, require_table("links", self.links, _LINK_NUMBERS).index)
        router = None if self.router is None else tuple(to_list("router", self.router))
        links, routes, failed_links = self.links, self.routes, frozenset(self.failed_links)
        if isinstance(routes, Mapping):
            routes = {pair: tuple(to_list(f"route {pair}", way)) for pair, way in routes.items()}
        vars(self).update(sites=sites, router=router, routes=routes, failed_links=failed_links)
        if routes is None:
            links, routes = routes_from_links(
                links, sites if router is None else router, failed_links
            )
        elif failed_links and isinstance(routes, Mapping):  # else refused below
            links = links.drop(index=list(failed_links))
            routes = {pair: way for pair, way in routes.items() if failed_links.isdisjoint(way)}
        vars(self).update(_usable=(links, routes))
        there = self.platform(np.ones(len(self.sites)), [(0, 1.0, 1.0, 1.0)])
        rounded = (
            there.links[_LINK_NUMBERS].reindex(self.links.index).fillna(self.links[_LINK_NUMBERS])
        )
        links = self.links.assign(**rounded)
        vars(self).update(_usable=(there.links, there.routes), gateway=there.gateway, links=links)

    @classmethod
    def from_platform(cls, platform: Platform) -> Self:
        """Return the network of a platform; sites without names are called site 0, site 1, ..."""
        instance("platform", platform, Platform)
        names = platform.site_names or [f"site {k}" for k in range(platform.clusters)]
        return cls(names, platform.gateway, platform.links, platform.routes, platform.limits)

    @property
    def fields(self) -> dict[str, Any]:
        """Return the fields of a platform on the links that have not failed."""
        return {
            "gateway": self.gateway,
            "links": self._usable[0],
            "routes": self._usable[1],
            "limits": self.limits,
            "router": self.router,
            "site_names": self.sites,
        }

    def platform(
        self,
        speed: Floats,
        applications: Sequence[ApplicationFields],
        names: Sequence[str] | None = None,
    ) -> Platform:
        """Return the platform with the speeds and applications of a moment."""
        origin, priority, work, data = (list(part) for part in zip(*applications, strict=True))
        if any(map(np.ndim, priority)):
            priority = [np.broadcast_to(pi, len(self.sites)) for pi in priority]
        return Platform(
            speed,
            priority=priority,
            work=work,
            data=data,
            origin=origin,
            application_names=names,
            **self.fields,
        )

    def with_link(self, link: Any, **numbers: Any) -> Self:
        """Return the network with other numbers of a link."""
        is_this = self.links.index == link
        columns = {name: self.links[name].mask(is_this, value) for name, value in numbers.items()}
        return replace(self, links=self.links.assign(**columns))
