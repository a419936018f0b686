"""Networks of LAN and WAN links, and the path of links that a transfer takes.

The nodes of a domain are below one vertex with a single edge, their LAN. Every edge stands for two
links, one in each direction, each with a trace of its own. A transfer within a domain takes LAN up,
LAN down; between domains in the tree of `two_level` it takes LAN up, WAN up, WAN down, LAN down.

Source: paper B, section 2 and Figure 2 (which is lost); Table 1.
"""

import functools
import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from dlsim.bricks.core.network import IntArray
from dlsim.bricks.traces import Floats
from dlsim.errors import InputError
from dlsim.validate import (
    MAX_COUNT,
    Seed,
    column,
    instance,
    number_range,
    one_of,
    random_generator,
    to_floats,
    whole,
)

#: Links of one domain in the two-level tree, in the order of its traces.
TWO_LEVEL = ("LAN up", "LAN down", "WAN up", "WAN down")
#: Kinds of links, as Table 1 gives them throughputs.
LINK_KINDS = ("lan", "wan")
#: Most hops of all pairs of domains together: 2 GiB.
MOST_HOPS = 2**28


@dataclass(frozen=True, eq=False)
class Topology:
    """The links of a network and the path between every two domains.

    Attributes
    ----------
    links : DataFrame
        One row per link, in the order of the traces: ``name``; if it is made here also ``kind``
        (lan or wan), ``start`` and ``end`` (vertices); and by `two_level` also ``direction`` (up or
        down) and ``vertex`` (its lower end).
    domains : int
        Number of domains.
    first, hops : ndarray of int
        The path from domain d to e is ``hops[first[pair]:first[pair + 1]]`` with pair =
        d * domains + e.
    """

    links: pd.DataFrame
    domains: int
    first: IntArray
    hops: IntArray

    def links_of(self, pair: int) -> IntArray:
        """Return the links (rows) of a pair, source * domains + target, in order."""
        return self.hops[self.first[pair] : self.first[pair + 1]]

    def path(self, source: int, target: int) -> tuple[int, ...]:
        """Return the links (rows) from one domain to another or the same, in order."""
        return tuple(self.links_of(source * self.domains + target).tolist())

    @functools.cached_property
    def by_target(self) -> tuple[IntArray, IntArray]:
        """The fields `first` and `hops` with the paths sorted by target, then by source."""
        pairs = np.arange(self.domains**2).reshape(-1, self.domains).T.ravel()
        length = np.diff(self.first)[pairs]
        first = np.append(0, np.cumsum(length))
        shift = np.repeat(self.first[pairs] - first[:-1], length)
        return first, self.hops[np.arange(len(self.hops)) + shift]

    def to_graph(self) -> nx.DiGraph:
        """Return the network as a graph: an edge for each link, with its row as ``link``.

        Raises
        ------
        InputError
            For links without the columns start and end.
        """
        if missing := [name for name in ("start", "end") if name not in self.links]:
            has = ", ".join(map(str, self.links))
            raise InputError(f"a graph needs links with {' and '.join(missing)}; they have {has}")
        graph = nx.DiGraph()
        for row, (start, end) in enumerate(
            zip(self.links["start"], self.links["end"], strict=True)
        ):
            graph.add_edge(start, end, link=row)
        return graph


def _check_hops(domains: int, hops: int) -> None:
    if hops > MOST_HOPS:
        raise InputError(f"{domains} domains have more than {MOST_HOPS} hops; use fewer")


def two_level(domains: int) -> Topology:
    """Make the default tree: every domain's LAN on a WAN link to one core.

    Link 4 d + k of domain d, k in the order of `TWO_LEVEL`: a table of traces of shape
    (domains, 4, steps), its first two axes joined.

    Examples
    --------
    >>> t = two_level(2)
    >>> t.links["name"][list(t.path(0, 1))].tolist()
    ['0 LAN up', '0 WAN up', '1 WAN down', '1 LAN down']
    >>> t.path(1, 1)
    (4, 5)
    """
    domains = whole("domains", domains)
    _check_hops(domains, 4 * domains**2)
    names = [f"{d} {name}" for d in range(domains) for name in TWO_LEVEL]
    columns = {
        "name": names,
        "kind": ["lan", "lan", "wan", "wan"] * domains,
        "direction": ["up", "down"] * (2 * domains),
        "vertex": np.repeat(np.arange(2 * domains), 2),
    }
    links = pd.DataFrame(columns)
    parents = np.where(links["kind"] == "lan", links["vertex"] + 1, 2 * domains)
    is_up = links["direction"] == "up"
    start = np.where(is_up, links["vertex"], parents)
    links = links.assign(start=start, end=np.where(is_up, parents, links["vertex"]))
    d, e = np.indices((domains, domains))
    way = np.stack([4 * d, 4 * d + 2, 4 * e + 3, 4 * e + 1], axis=-1)
    crossed = np.ones(way.shape, dtype=bool)
    crossed[np.diag_indices(domains)] = True, False, False, True
    first = np.append(0, np.cumsum(crossed.sum(axis=-1)))
    return Topology(links, domains, first, way[crossed].astype(np.int64))


def from_graph(graph: nx.Graph, domains: Sequence[Hashable] | None = None) -> Topology:
    """Make a topology of any connected graph; paths are the shortest in hops.

    Every edge stands for two links, one in each direction, with a trace of its own: rows 2 k and
    2 k + 1 are edge k of ``graph.edges``, first as the graph has it, then reversed. The nodes of a
    domain hang below one vertex with a single edge, which is their LAN: a transfer within a domain
    takes it up and down. Among equally short paths the first is taken in the order of the graph.

    Parameters
    ----------
    graph : networkx.Graph
        Simple, undirected and connected. An edge may carry ``kind``, lan or wan; by default an edge
        of a domain is lan, any other wan.
    domains : sequence of nodes, optional
        The vertex of each domain; by default every vertex with a single edge, in the order of the
        graph.

    Returns
    -------
    Topology
        Its links have the columns name, kind, start and end.

    Raises
    ------
    InputError
        For a graph that is directed, empty, not connected or has an edge from a vertex to itself; a
        domain that is no vertex, is named twice or has several edges; no domain; or another kind.

    Examples
    --------
    Three domains, two of them behind one router:

    >>> g = nx.Graph([("a", "west"), ("b", "west"), ("west", "east"), ("east", "c")])
    >>> t = from_graph(g)
    >>> t.domains, t.links["name"][list(t.path(0, 2))].tolist()
    (3, ['a - west', 'west - east', 'east - c'])
    >>> t.links["name"][list(t.path(1, 1))].tolist()
    ['b - west', 'west - b']
    """
    _check_graph(graph)
    if domains is None:
        domains = [node for node, degree in graph.degree if degree == 1]
    domains = _check_domains(graph, domains)
    links = _edges_as_links(graph, domains)
    row_of = {pair: row for row, pair in enumerate(zip(links["start"], links["end"], strict=True))}
    first, hops = [0], list[int]()
    for source in domains:
        ways = nx.single_source_shortest_path(graph, source)
        for target in domains:
            router = next(iter(graph[source]))
            way = ways[target] if target != source else [source, router, source]
            hops.extend(row_of[pair] for pair in itertools.pairwise(way))
            first.append(len(hops))
            _check_hops(len(domains), len(hops))
    return Topology(links, len(domains), np.array(first, np.int64), np.array(hops, np.int64))


def _check_domains(graph: nx.Graph, domains: Sequence[Hashable]) -> list[Hashable]:
    """Return the vertices of the domains as a list, or refuse them."""
    nodes = list(domains)
    if not nodes:
        raise InputError("the graph needs a domain: a vertex with a single edge, its LAN")
    for place, node in enumerate(nodes):
        if node not in graph or node in nodes[:place] or graph.degree[node] != 1:
            rule = "a vertex of the graph with a single edge, its LAN, and named once"
            raise InputError(f"domain {node!r} must be {rule}; put a router before it")
    return nodes


def _edges_as_links(graph: nx.Graph, domains: Sequence[Hashable]) -> pd.DataFrame:
    """Return two links per edge, one in each direction, with the columns of `Topology.links`."""
    rows = list[tuple[str, str, Hashable, Hashable]]()
    for start, end, given in graph.edges(data="kind"):
        kind = given or ("lan" if start in domains or end in domains else "wan")
        one_of(f"kind of edge {start!r} - {end!r}", kind, LINK_KINDS)
        rows += [(f"{a} - {b}", kind, a, b) for a, b in ((start, end), (end, start))]
    return pd.DataFrame(rows, columns=["name", "kind", "start", "end"])


def _check_graph(graph: Any) -> None:
    """Refuse what is no simple, undirected, connected graph with an edge."""
    instance("graph", graph, nx.Graph)
    if graph.is_directed() or graph.is_multigraph():
        raise InputError("graph must be undirected and simple: use nx.Graph(graph)")
    if not graph.number_of_edges():
        raise InputError("graph must have an edge, got none")
    if loops := list(nx.selfloop_edges(graph)):
        raise InputError(f"vertex {loops[0][0]!r} must not be joined to itself; remove that edge")
    if not nx.is_connected(graph):
        parts = sorted(nx.connected_components(graph), key=len)
        lost = next(iter(parts[0]))
        raise InputError(f"graph must be connected, but no path leads to {lost!r}; add an edge")


def draw_means(
    topology: Topology, seed: Seed, *, lan: tuple[float, float], wan: tuple[float, float]
) -> Floats:
    """Draw the average throughput of every link, in Mbit/s.

    Parameters
    ----------
    topology : Topology
        Its links have a ``kind``, lan or wan.
    seed : int or numpy.random.SeedSequence
        Seed; the draw of a link depends on its row alone.
    lan, wan : tuple of float
        Ends of the uniform distribution, Mbit/s.
    """
    instance("topology", topology, Topology, "; see two_level(10)")
    ends_of = zip(LINK_KINDS, (lan, wan), strict=True)
    kinds = {kind: number_range(kind, ends, above=True) for kind, ends in ends_of}
    if "kind" not in topology.links or not topology.links["kind"].isin(list(kinds)).all():
        raise InputError("links must have a kind, lan or wan, for their means to be drawn")
    low, high = np.array([kinds[kind] for kind in topology.links["kind"]]).T
    return np.asarray(low + (high - low) * random_generator(seed).random(len(low)))


def alternate_nodes(counts: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Make the nodes of all domains alternately client and server.

    Returns the domain of every server and of every client. There are as many clients as servers,
    or one more.

    Examples
    --------
    >>> servers, clients = alternate_nodes([3, 2])
    >>> servers.tolist(), clients.tolist()
    ([0, 1], [0, 0, 1])
    """
    if to_floats(counts).ndim != 1 or not len(counts):
        raise InputError(f"counts must be a list of whole numbers, got {counts!r}")
    numbers = column("counts", counts, 0, MAX_COUNT - 1, is_whole=True)
    nodes = np.repeat(np.arange(len(numbers)), numbers)
    return nodes[1::2].astype(np.int64), nodes[::2].astype(np.int64)
