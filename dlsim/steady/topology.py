"""Draw platforms: Tiers-like networks, random graphs, real networks.

What draws a network or a platform takes a seed. The draws for one purpose (graph, clusters, links,
sites, applications) do not depend on those for another.

Source: paper S, section 6.1, Tables 1 and 2. Tiers: M. B. Doar, "A better model for generating test
networks", Globecom 1996; the program itself is not used, and its redundancies are not in the paper.
"""

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields

import networkx as nx
import numpy as np
from numpy.random import Generator
from scipy.sparse.csgraph import minimum_spanning_tree

from dlsim.errors import InputError
from dlsim.reading import BaseReading, switch
from dlsim.steady.graphs import prune
from dlsim.steady.model import Floats, Platform
from dlsim.steady.routes import require_pair_memory
from dlsim.validate import Seed, import_extra, number, one_of, random_streams, require_memory, whole


@dataclass(frozen=True)
class PlatformDraw(BaseReading):
    """What paper S leaves open about its random platforms: an argument of `random`."""

    table2: str = switch(
        ("one", "het"),
        label="priority, work and data of the applications: 1, or random",
        reads="topology:random",
    )


@dataclass(frozen=True)
class Table2:
    """Means of Table 2, and how far the numbers of a platform lie from them (section 6.1).

    Parameters
    ----------
    gateway, bandwidth, max_connect, speed : float
        Means; each value is drawn uniformly within mean * (1 -+ heterogeneity), and
        max-connect is then rounded down.
    heterogeneity : float
        0 to 1.
    """

    gateway: float = 450.0
    bandwidth: float = 50.0
    max_connect: float = 15.0
    speed: float = 100.0
    heterogeneity: float = 0.6

    def __post_init__(self) -> None:
        rule = "a finite number from 0 to 1"
        spread = float(number("heterogeneity", self.heterogeneity, high=1, rule=rule))
        means = {name: float(number(name, value)) for name, value in vars(self).items()}
        vars(self).update(means | {"heterogeneity": spread})


#: Every switch of this module with its options, the default first.
SWITCHES = PlatformDraw.switches()

#: Least bytes of memory for drawing a network: per pair of nodes of one part, per node.
BYTES_PER_NODE_PAIR, BYTES_PER_NODE = 40, 200

_PURPOSES = ("graph", "clusters", "links", "sites", "applications")

#: Table 1: median of bandwidths in kbit/s, their deviation in decades, further ranges.
BANDWIDTH_MEDIAN, BANDWIDTH_DECADES = 2000.0, 1.0
SPEED_RANGE, SIZE_RANGE, MAX_CONNECT_RANGE = (1000.0, 10_000.0), (1.0, 10.0), (1, 10)


def _join_nearest(places: Floats, redundancy: int) -> set[tuple[int, int]]:
    """Join nodes by a minimum spanning tree, then to their nearest nodes up to a degree."""
    far = np.linalg.norm(places[:, None] - places[None], axis=2)
    u, v = minimum_spanning_tree(np.triu(far)).nonzero()
    edges = set(zip(u.tolist(), v.tolist(), strict=True))
    degree = np.bincount(np.append(u, v), minlength=len(places))
    for u in range(len(places)):
        for v in map(int, np.argsort(far[u], kind="stable")):
            if degree[u] >= redundancy:
                break
            edge = (min(u, v), max(u, v))
            if u != v and edge not in edges:
                edges.add(edge)
                degree[[u, v]] += 1
    return edges


def tiers_graph(
    seed: Seed = 0,
    wan: int = 40,
    mans: int = 30,
    man: int = 20,
    RW: int = 4,
    RM: int = 3,
    RMW: int = 2,
) -> nx.Graph:
    """Draw a Tiers-like two-level network, connected; its first nodes are the wide-area network.

    The nodes of each network are points of a square. A minimum spanning tree joins them; then
    each node in turn is joined to its nearest nodes until it has as many edges as the redundancy
    (RW or RM). Each metropolitan network is connected to the wide-area nodes nearest to it.

    Parameters
    ----------
    seed : int or SeedSequence
        Seed of the random numbers.
    wan, mans, man : int
        Nodes of the wide-area network, number of metropolitan networks, nodes of each of these.
    RW, RM, RMW : int
        Redundancies: edges per wide-area node, per metropolitan node, and between a metropolitan
        network and the wide-area network (at least 1; from different nodes). The paper
        says "high" and gives no numbers.
    """
    wan, mans, man = whole("wan", wan), whole("mans", mans, 0), whole("man", man, 0)
    RW, RM, RMW = whole("RW", RW, 0), whole("RM", RM, 0), whole("RMW", RMW, 0)
    what, remedy = f"a network of {wan:,} and {mans:,} times {man:,} nodes", "draw a smaller one"
    require_memory(
        what, BYTES_PER_NODE_PAIR * max(wan, man) ** 2 + BYTES_PER_NODE * (wan + mans * man), remedy
    )
    rng = random_streams(seed, _PURPOSES)["graph"]
    core = rng.random((wan, 2))
    graph = nx.Graph()
    graph.add_nodes_from(range(wan + mans * man))
    graph.add_edges_from(sorted(_join_nearest(core, RW)))
    for network in range(mans if man else 0):
        first = wan + network * man
        inner = sorted(_join_nearest(rng.random((man, 2)), RM))
        graph.add_edges_from((first + u, first + v) for u, v in inner)
        nearest = np.argsort(np.linalg.norm(core - rng.random(2), axis=1), kind="stable")
        doors = rng.permutation(man)
        links = min(max(RMW, 1), man, wan)
        for u, v in zip(doors[:links], nearest[:links], strict=True):
            graph.add_edge(first + int(u), int(v))
    return graph


def _bandwidths(stream: Generator, size: int) -> Floats:
    return 10 ** (math.log10(BANDWIDTH_MEDIAN) + BANDWIDTH_DECADES * stream.standard_normal(size))


def table1(graph: nx.Graph, routers: Sequence[Hashable], seed: Seed = 0) -> Platform:
    r"""Draw the numbers of Table 1 for a network of routers, one application per cluster.

    :math:`\log_{10} bw, \log_{10} g \sim N(\log_{10} 2000, 1)`; speeds uniform in
    1000..10000; max-connect a whole number of 1..10; data, work and priority uniform
    in 1..10. The paper gives no unit for the data: we take that of the bandwidth.

    Parameters
    ----------
    graph, routers
        As in `Platform.from_graph`.
    seed : int or SeedSequence
        Seed of the random numbers.
    """
    draws, clusters = random_streams(seed, _PURPOSES), len(routers)
    links, sites, apps = (draws[name] for name in _PURPOSES[2:])
    graph = graph.copy()
    bandwidths = _bandwidths(links, graph.number_of_edges())
    most = links.integers(*MAX_CONNECT_RANGE, size=graph.number_of_edges(), endpoint=True)
    for (_, _, edge), wide, count in zip(graph.edges(data=True), bandwidths, most, strict=True):
        edge.update(bandwidth=float(wide), max_connect=int(count))
    return Platform.from_graph(
        graph,
        routers,
        speed=sites.uniform(*SPEED_RANGE, clusters),
        gateway=_bandwidths(sites, clusters),
        **{name: apps.uniform(*SIZE_RANGE, clusters) for name in ("data", "work", "priority")},
    )


def some_nodes(graph: nx.Graph, count: int, rng: Generator) -> list[Hashable]:
    """Draw distinct nodes, in the order of the graph; a larger draw contains a smaller one."""
    nodes = list(graph)
    return [nodes[i] for i in sorted(rng.permutation(len(nodes))[:count].tolist())]


def _platform_on_nodes(graph: nx.Graph, clusters: int | None, seed: Seed) -> Platform:
    """Draw a platform with clusters on random nodes, or on all nodes if `clusters` is None."""
    routers = list(graph)
    if clusters is not None:
        clusters = whole("clusters", clusters, 1, len(routers))
        routers = some_nodes(graph, clusters, random_streams(seed, _PURPOSES)["clusters"])
    return table1(prune(graph, routers), routers, seed)


def tiers(clusters: int = 20, seed: Seed = 0, **network: int) -> Platform:
    """Draw a platform on a pruned Tiers-like network (6.1, Table 1).

    Parameters
    ----------
    clusters : int
        K, the number of random nodes that have a cluster, each with one application.
    seed
        As in `table1`.
    **network
        Arguments of `tiers_graph`: wan, mans, man, RW, RM, RMW.

    Examples
    --------
    >>> p = tiers(5, seed=1)
    >>> p.clusters, len(p.routes)
    (5, 20)
    """
    for name in network:
        one_of("parameter of tiers", name, ("wan", "mans", "man", "RW", "RM", "RMW"))
    return _platform_on_nodes(tiers_graph(seed, **network), clusters, seed)


def random(
    clusters: int = 15,
    connectivity: float = 0.4,
    seed: Seed = 0,
    table2: str = "one",
    **means: float,
) -> Platform:
    """Draw a platform on a random graph (6.1, Table 2); every node is a cluster.

    Parameters
    ----------
    clusters : int
        K, at least 1.
    connectivity : float
        Probability that two nodes are joined; pairs that no path joins have no route.
    seed
        As in `table1`.
    table2 : {"one", "het"}
        Priority, work and data, which the table does not give: all are 1, or drawn like the other
        numbers with mean 1. The speeds vary in both cases; if they were equal, too, every
        application would run on its own cluster only.
    **means
        Fields of `Table2`: gateway, bandwidth, max_connect, speed, heterogeneity.

    Examples
    --------
    >>> random(5, connectivity=1.0).links.shape[0]
    10
    """
    one_of("table2", table2, SWITCHES["table2"])
    clusters = whole("clusters", clusters)
    rule = "a finite number from 0 to 1"
    connectivity = float(number("connectivity", connectivity, high=1, rule=rule))
    for name in means:
        one_of("mean of Table 2", name, [one.name for one in fields(Table2)])
    mean = Table2(**means)
    draws = random_streams(seed, _PURPOSES)

    def draw_around(purpose: str, around: float, size: int) -> Floats:
        return around * (1 + mean.heterogeneity * draws[purpose].uniform(-1.0, 1.0, size))

    require_pair_memory(clusters, clusters)
    u, v = np.triu_indices(clusters, 1)
    joined = draws["graph"].random(len(u)) < connectivity
    graph = nx.Graph()
    graph.add_nodes_from(range(clusters))
    graph.add_edges_from(zip(u[joined].tolist(), v[joined].tolist(), strict=True))
    edges = graph.number_of_edges()
    wide = draw_around("links", mean.bandwidth, edges)
    most = draw_around("links", mean.max_connect, edges)
    for (_, _, edge), one, count in zip(graph.edges(data=True), wide, most, strict=True):
        edge.update(bandwidth=float(one), max_connect=math.floor(count))
    sizes = {name: np.ones(clusters) for name in ("priority", "work", "data")}
    if table2 == "het":
        sizes = {name: draw_around("applications", 1.0, clusters) for name in sizes}
    speed = draw_around("sites", mean.speed, clusters)
    gateway = draw_around("sites", mean.gateway, clusters)
    return Platform.from_graph(graph, range(clusters), speed=speed, gateway=gateway, **sizes)


def hub(name: str, clusters: int | None = None, seed: Seed = 0) -> Platform:
    """Draw a platform on a real network of the package topohub, such as "topozoo/Abilene".

    The networks of topohub (Topology Zoo, SNDlib, CAIDA, backbones) have no capacities: the
    numbers are drawn as for `tiers`, on the pruned network.

    Parameters
    ----------
    name : str
        Name of the network, with upper and lower case as in topohub.
    clusters : int, optional
        K, the number of random nodes that have a cluster; all nodes by default.
    seed
        As in `table1`.

    Raises
    ------
    InputError
        For an unknown network, too many clusters, or if topohub is not installed.
    """
    topohub = import_extra(f"network {name!r}", "topologies", "topohub")
    try:
        with warnings.catch_warnings():  # topohub does not close its file
            warnings.simplefilter("ignore", ResourceWarning)
            data = topohub.get(name)
    except (KeyError, OSError, TypeError, AttributeError) as error:
        reason = f" ({error})" if str(error) else ""
        raise InputError(
            f"topohub has no network {name!r}{reason}; names look like 'topozoo/Abilene' "
            "or 'sndlib/germany50', case as in its documentation"
        ) from None
    graph = nx.Graph(nx.node_link_graph(data, edges="edges"))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return _platform_on_nodes(graph, clusters, seed)
