"""The model of steady-state scheduling: reading, methods and platform.

Source: paper S (steady-state), L. Marchal, Y. Yang, H. Casanova, Y. Robert, "Steady-State
Scheduling of Multiple Divisible Load Applications on Wide-Area Distributed Computing Platforms".
The paper's alpha[k, l] is `work` here and its beta[k, l] is `connections`.
"""

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import networkx as nx
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.reading import BaseReading, switch
from dlsim.record import NamedRecord
from dlsim.steady.graphs import check_graph, shortest_routes
from dlsim.steady.routes import (
    Ints,
    Limits,
    Tables,
    check_link_columns,
    check_routes,
    require_pair_memory,
    round_counts_down,
    to_list,
)
from dlsim.user_code import resolve_user_code
from dlsim.validate import Floats, Seed, column, instance, number, one_of

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

    local_amount: str = switch(
        ("printed", "prose"),
        label="greedy, work on the own cluster: by the formula, or by the text",
        reads="greedy:run_greedy",
        touches=lambda method: method.name in ("G", "LPRG", "MILP"),
    )
    stuck: str = switch(
        ("prose", "rest"),
        label="greedy, if the formula gives 0: the text's amount, or all the rest",
        reads="greedy:run_greedy",
        touches=lambda method: method.name in ("G", "LPRG", "MILP"),
    )
    vertex: str = switch(
        ("solver", "least_connections"),
        label="of equal optima, round: the solver's, or the one with fewest connections",
        reads="model:SolveOptions.needs_least_connections",
        touches=lambda method: method.name in ("LP", "LPR", "LPRG", "LPRR", "MILP"),
    )
    lprg_start: str = switch(
        ("lpr", "zero"),
        label="LPRG: greedy starts from the shares of LPR, or from nothing",
        reads="greedy:run_greedy",
        touches=lambda method: method.name in ("LPRG", "MILP"),
    )


#: Every switch of `Reading` with its options, the default first.
SWITCHES = Reading.switches()
#: Least bytes of memory that a method takes per application and cluster.
BYTES_PER_CELL = 150


@dataclass(frozen=True)
class SolveOptions:
    """The checked arguments of `solve` beside platform and method."""

    seed: Seed
    reading: Reading
    most_nodes: int
    engine: str

    @property
    def needs_least_connections(self) -> bool:
        """Return whether the reading asks for a relaxed optimum with the fewest connections."""
        return self.reading.vertex == "least_connections"


@dataclass(frozen=True)
class Method(NamedRecord):
    """How an allocation is found, as data.

    Parameters
    ----------
    find : callable or str
        A function of a `Platform` that returns work, shape (A, K), and connections, shape (K, K),
        or an `Allocation` of the platform; or its name as ``FILE.py:name``. Where it has a
        parameter ``options``, it gets the `SolveOptions` of the run.
    suffixes : tuple of str
        The suffixes that follow it, in the order of `allowed_suffixes`.
    allowed_suffixes : tuple of str
        Which of `dlsim.steady.solve.SUFFIXES` may follow it.
    is_relaxed : bool
        Whether its connections may be broken numbers, so that it is no schedule.
    bytes_per_cell : int
        Memory that it takes at least per application and cluster.
    name, text : str, optional
        The name in legends and tables, and one sentence that says what the method does; derived
        from the function where they are not given.

    Raises
    ------
    InputError
        For what is no function, a suffix that is not allowed, or a blank name or text.
    """

    find: Callable[..., Any]
    suffixes: tuple[str, ...] = ()
    allowed_suffixes: tuple[str, ...] = ("polish", "fair")
    is_relaxed: bool = False
    bytes_per_cell: int = BYTES_PER_CELL

    def __post_init__(self) -> None:
        find = resolve_user_code("find", self.find)
        if not callable(find):
            rule = "find of a Method must be a function of a platform"
            raise InputError(f"{rule} that returns work and connections, got {find!r}")
        function = getattr(find, "__name__", type(find).__name__)
        vars(self).update(find=find)
        self.settle_words(
            lambda: "+".join([function, *self.suffixes]),
            lambda: f"allocates by the function {function}",
        )
        for suffix in to_list("suffixes", self.suffixes):
            one_of(f"suffix of {self.base_name}", suffix, self.allowed_suffixes)

    @property
    def base_name(self) -> str:
        """Return the name without suffixes."""
        return self.name.partition("+")[0]

    def followed_by(self, *suffixes: str) -> Self:
        """Return the method with further suffixes: ``followed_by("polish")``."""
        for suffix in suffixes:
            one_of(f"suffix of {self.base_name}", suffix, self.allowed_suffixes)
        both = [one for one in self.allowed_suffixes if one in (*self.suffixes, *suffixes)]
        return replace(self, suffixes=tuple(both), name="+".join([self.base_name, *both]))


def to_nonnegative_array(name: str, values: object, *shapes: tuple[int, ...]) -> Floats:
    """Return a read-only copy of finite numbers of at least 0, in one of the shapes if any."""
    array = column(name, values, rule="a finite number of at least 0")
    if shapes and array.shape not in shapes:
        got, *wanted = (" x ".join(map(str, shape)) for shape in (array.shape, *shapes))
        raise InputError(f"{name} must have {' or '.join(wanted)} entries, got {got or 1}")
    if array.ndim == 0:
        raise InputError(f"{name} must be a list of numbers, got {values!r}")
    array.flags.writeable = False
    return array


def check_names(what: str, names: Any, count: int | None = None) -> list[str] | None:
    """Return a checked list of `count` different names; None for None."""
    if names is None:
        return None
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must be a list of names, got {names!r}")
    if count is not None and len(names) != count:
        raise InputError(f"{what} must name each of {count}, got {list(names)}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise InputError(f"{what} must have different names, got {twice!r} twice")
    return list(names)


def _number_at(graph: nx.Graph, node: Hashable, name: str) -> float:
    """Return a number of a cluster or its application that a node of a graph carries."""
    data = graph.nodes[node]
    if name in ("speed", "gateway") and name not in data:
        raise InputError(f"node {node!r} must carry speed and gateway, got {data}")
    return float(number(f"{name} of node {node!r}", data.get(name, 1.0)))


def _check_edges(graph: nx.Graph) -> None:
    """Raise InputError for an edge without usable bandwidth and max_connect."""
    edges = list(graph.edges)
    for edge in edges:
        if not {"bandwidth", "max_connect"} <= set(graph.edges[edge]):
            what = "must carry bandwidth and max_connect"
            raise InputError(f"edge {edge[0]!r} - {edge[1]!r} {what}; got {graph.edges[edge]}")
    numbers = {
        name: [graph.edges[edge][name] for edge in edges] for name in ("bandwidth", "max_connect")
    }
    _check_link_numbers(numbers, row="edge", labels=edges)


def _check_link_numbers(
    numbers: Mapping[str, Any] | pd.DataFrame, **place: Any
) -> tuple[Floats, Floats]:
    """Return bandwidth and max_connect of all links; messages name the `row` by its label."""
    bandwidth = column("bandwidth", numbers["bandwidth"], **place)
    rule = "a number of at least 0 (inf for no limit)"
    max_connect = column("max_connect", numbers["max_connect"], high=math.inf, rule=rule, **place)
    return bandwidth, max_connect


@dataclass(frozen=True, eq=False)
class Platform:
    r"""Clusters behind routers, backbone links between them, and the applications they hold.

    Parameters
    ----------
    speed, gateway : array_like of float, shape (K,)
        Speed :math:`s_k` of each cluster (work per time) and bandwidth :math:`g_k` of its
        own link (data per time).
    links : DataFrame
        One row per backbone link: bandwidth of one connection (data per time) and max_connect, the
        most connections in both directions, infinite where there is no limit; a broken number is
        rounded down with a warning. Columns start and end may name the routers it joins.
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
    site_names, application_names : sequence of str, optional
        Names of the clusters and the applications in outputs, files and messages.
    ignore : collection of str
        Further columns of `links`, which are dropped.

    Raises
    ------
    InputError
        For a wrong shape, a column that is not known, a negative number, a route over an unknown
        cluster or link, or no application of positive priority.
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
    site_names: Any = None
    application_names: Any = None
    ignore: InitVar[Collection[str]] = ()

    def __post_init__(self, ignore: Collection[str]) -> None:
        speed = to_nonnegative_array("speed", self.speed)
        if speed.ndim != 1 or not len(speed):
            raise InputError(f"speed must list at least one cluster, got {speed.tolist()}")
        named = ("priority", "work", "data")
        # the length that two of the three have, so that the message names the third
        apps = sorted(len(to_nonnegative_array(name, getattr(self, name))) for name in named)[1]
        clusters = len(speed)
        vars(self).update(
            speed=speed,
            gateway=to_nonnegative_array("gateway", self.gateway, (clusters,)),
            priority=to_nonnegative_array("priority", self.priority, (apps,), (apps, clusters)),
            work=to_nonnegative_array("work", self.work, (apps,)),
            data=to_nonnegative_array("data", self.data, (apps,)),
            origin=self._check_origins(apps, clusters),
        )
        self._require_load()
        vars(self).update(
            links=self._check_links(ignore),
            router=self._check_routers(clusters),
            site_names=check_names("site_names", self.site_names, clusters),
            application_names=check_names("application_names", self.application_names, apps),
        )
        require_pair_memory(clusters)
        routes = check_routes(self.routes, self.links.index, clusters, self.site_names)
        vars(self).update(routes=routes)
        instance("limits", self.limits, Limits).require_clusters(clusters)

    def _require_load(self) -> None:
        """Raise InputError where an application has no work, or none has a priority."""
        if (self.work <= 0).any():
            raise InputError(f"work must be above 0 for each application, got {self.work}")
        if not (self.priority > 0).any():
            rule = "priority must be above 0 for at least one application"
            raise InputError(f"{rule}, got {self.priority}; its payoff is what is maximised")

    def _check_links(self, ignore: Collection[str]) -> pd.DataFrame:
        links = check_link_columns(self.links, ignore)
        bandwidth, most = _check_link_numbers(links, row="link", labels=links.index)
        return links.assign(bandwidth=bandwidth, max_connect=round_counts_down("max_connect", most))

    def _check_routers(self, clusters: int) -> tuple[Any, ...] | None:
        router = None if self.router is None else tuple(to_list("router", self.router))
        if router is not None and len(router) != clusters:
            raise InputError(f"router must name {clusters} routers, got {self.router!r}")
        return router

    def _check_origins(self, apps: int, clusters: int) -> Ints:
        given = to_list("origin", range(apps) if self.origin is None else self.origin)
        if len(given) == apps:
            with suppress(InputError):
                return column("origin", given, 0, clusters - 1, is_whole=True)
        rule = f"one of {clusters} clusters for each of {apps} applications"
        raise InputError(f"origin must name {rule}, got {given}")

    @classmethod
    def from_graph(
        cls, graph: nx.Graph, routers: Sequence[Hashable] | None = None, **fields: Any
    ) -> Self:
        """Build a platform on a graph of routers, joined by `shortest_routes`.

        networkx reads such graphs from GraphML, GML, JSON, tables of pandas and other files.

        Parameters
        ----------
        graph : networkx.Graph
            Simple and undirected. Every edge is a backbone link and carries bandwidth (of one
            connection) and max_connect.
        routers : sequence of nodes, optional
            Of each cluster. By default every node that carries a speed is the router of one
            cluster and names it, in the order of the graph.
        **fields
            Of `Platform`. Where speed, gateway, priority, work or data are not given, the
            clusters' routers carry them; priority, work and data are 1 where a node carries none.

        Returns
        -------
        Platform
            Links are numbered in the order of the edges; columns start and end name their
            nodes.

        Raises
        ------
        InputError
            For a node or an edge without its numbers, and as `shortest_routes` and `Platform`.

        Examples
        --------
        >>> g = nx.Graph()
        >>> g.add_node("lyon", speed=10, gateway=20)
        >>> g.add_node("nice", speed=2, gateway=20)
        >>> g.add_edge("lyon", "alps", bandwidth=3, max_connect=2)
        >>> g.add_edge("alps", "nice", bandwidth=10, max_connect=9)
        >>> p = Platform.from_graph(g)
        >>> p.site_names, p.routes[1, 0], p.connection_bandwidth(1, 0)
        (['lyon', 'nice'], (1, 0), 3.0)
        """
        check_graph(graph, () if routers is None else routers)
        if routers is None:
            routers = [node for node, data in graph.nodes(data=True) if "speed" in data]
            if not routers:
                what = "give every cluster's node speed and gateway, or name the routers"
                raise InputError(f"no node of {graph} carries a speed; {what}")
            fields.setdefault("site_names", [str(node) for node in routers])
        for name in ("speed", "gateway", "priority", "work", "data"):
            if name not in fields:
                fields[name] = [_number_at(graph, node, name) for node in routers]
        _check_edges(graph)
        rows = []
        for start, end, edge in graph.edges(data=True):
            rows.append((start, end, edge["bandwidth"], edge["max_connect"]))
        links = pd.DataFrame(rows, columns=["start", "end", "bandwidth", "max_connect"])
        routes = shortest_routes(graph, routers, links.index)
        return cls(links=links, routes=routes, router=tuple(routers), **fields)

    def to_graph(self) -> nx.Graph:
        """Return the graph of the routers.

        Returns
        -------
        networkx.Graph
            Edges carry bandwidth, max_connect and link (the label); nodes that clusters sit
            on carry clusters, a list of their numbers.

        Raises
        ------
        InputError
            For links without ends, clusters without routers, or two links between the same.
        """
        links, router = self.links, self.router
        if not {"start", "end"} <= set(links.columns) or router is None:
            has = f"got links with {', '.join(map(str, links))}, router {router}"
            what = "a graph needs links with the columns start and end, and router"
            raise InputError(f"{what}; {has}")
        graph = nx.Graph()
        rows = links[["start", "end", "bandwidth", "max_connect"]]
        for label, u, v, bandwidth, most in rows.itertuples():
            if graph.has_edge(u, v):
                raise InputError(f"two links join {u!r} and {v!r}; a graph holds one, merge them")
            graph.add_edge(u, v, bandwidth=bandwidth, max_connect=most, link=label)
        for k, node in enumerate(router):
            graph.add_node(node)
            graph.nodes[node].setdefault("clusters", []).append(k)
        return graph

    @property
    def clusters(self) -> int:
        """Return the number of clusters K."""
        return len(self.speed)

    @property
    def applications(self) -> int:
        """Return the number of applications A."""
        return len(self.data)

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """Return the names of clusters and applications in outputs, or their numbers."""
        sites = self.site_names or [f"cluster {k}" for k in range(self.clusters)]
        return sites, self.application_names or [f"application {a}" for a in range(len(self.data))]

    def connection_bandwidth(self, k: int, to: int) -> float:
        """Return :math:`g_{k,l}`, the least bandwidth on the route; inf if empty, 0 without one."""
        return float(self.tables.bandwidth[k, to]) if (k, to) in self.routes else 0.0

    @cached_property
    def priorities(self) -> Floats:
        """Return the priority of every application on every cluster, shape (A, K)."""
        pi = self.priority if self.priority.ndim == 2 else self.priority[:, None]
        return np.broadcast_to(pi, (self.applications, self.clusters))

    @cached_property
    def inverse_priority(self) -> Floats:
        """Return 1 / priority, 0 where the priority is 0 and work does not count, shape (A, K)."""
        pi = self.priorities
        return np.divide(1.0, pi, out=np.zeros(pi.shape), where=pi > 0)

    @cached_property
    def is_counted(self) -> Flags:
        """Return which applications count in the objective, shape (A,)."""
        return np.asarray((self.priorities > 0).any(axis=1), dtype=bool)

    @cached_property
    def tables(self) -> Tables:
        """Return routes and links as arrays, for programs and kernels."""
        return Tables.from_routes(self.routes, self.links, self.limits, self.clusters)
