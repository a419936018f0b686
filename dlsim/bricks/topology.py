"""Networks of LAN and WAN links, and the path of links that a transfer takes.

The nodes of a domain are below one leaf of a tree. Every vertex but the root has two links to its
parent, one up and one down, each with a trace of its own. A transfer goes up to the first vertex
above both ends, over at least one link, and then down: within a domain it takes LAN up, LAN down;
between domains in the tree of `two_level` it takes LAN up, WAN up, WAN down, LAN down.

Source: paper B, section 2 and Figure 2 (which is lost); Table 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    random_generator,
    require_table,
    to_floats,
    whole,
)

#: Links of one domain in the two-level tree, in the order of its traces.
TWO_LEVEL = ("LAN up", "LAN down", "WAN up", "WAN down")
#: Most hops of all pairs of domains together: 2 GiB.
MOST_HOPS = 2**28


@dataclass(frozen=True, eq=False)
class Topology:
    """The links of a network and the path between every two domains.

    Attributes
    ----------
    links : DataFrame
        One row per link, in the order of the traces: ``name``, and for a tree ``kind``
        (lan or wan), ``direction`` (up or down) and ``vertex`` (its lower end).
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

    @property
    def paths(self) -> pd.DataFrame:
        """Every hop of every path: source, target, hop (from 0), link."""
        length = np.diff(self.first)
        pair = np.repeat(np.arange(len(length)), length)
        source, target = divmod(pair, self.domains)
        hop = np.arange(len(pair)) - self.first[pair]
        columns = {"source": source, "target": target, "hop": hop, "link": self.hops}
        return pd.DataFrame(columns)


def _check_hops(domains: int, hops: int) -> None:
    if hops > MOST_HOPS:
        raise InputError(f"{domains} domains have more than {MOST_HOPS} hops; use fewer")


def _whole_numbers(name: str, values: Any, low: int, high: float) -> list[int]:
    """Return whole numbers from low to below high; raise InputError for anything else."""
    found = to_floats(values)
    if found.ndim != 1 or not found.size:
        raise InputError(f"{name} must be a list of whole numbers, got {values!r}")
    numbers: list[int] = column(name, values, low, min(high, MAX_COUNT) - 1, is_whole=True).tolist()
    return numbers


def _climb(parents: Sequence[int], leaf: int) -> list[int]:
    """Return the vertices from a leaf to just below the root."""
    climbed = []
    while parents[leaf] >= 0:
        climbed.append(leaf)
        leaf = parents[leaf]
        if len(climbed) > len(parents):
            raise InputError("parents must not form a cycle; every vertex must lead to the root")
    return climbed


def _join_climbs(up: list[int], down: list[int], row: dict[int, int]) -> list[int]:
    """Return the links up one climb and down another, below the first vertex of both."""
    shared = 0
    while shared < min(len(up), len(down)) - 1 and up[-1 - shared] == down[-1 - shared]:
        shared += 1
    up, down = up[: len(up) - shared], down[: len(down) - shared]
    return [2 * row[v] for v in up] + [2 * row[v] + 1 for v in reversed(down)]


def tree(parents: Sequence[int], leaves: Sequence[int]) -> Topology:
    """Make a topology of any tree: the links up and down of each vertex but the root, in order.

    Parameters
    ----------
    parents : sequence of int
        The vertex above each vertex; -1 for the root.
    leaves : sequence of int
        The vertex below which the nodes of each domain hang: different leaves. The
        links of a leaf are LAN, the others WAN.

    Raises
    ------
    InputError
        For a cycle, several roots, an unknown vertex, or a leaf that has children, is the root
        or is listed twice.

    Examples
    --------
    Two domains below one regional vertex 2, a third directly below the root 4:

    >>> t = tree([2, 2, 4, 4, -1], leaves=[0, 1, 3])
    >>> list(t.links["name"][list(t.path(0, 1))]), len(t.path(0, 2))
    (['up 0', 'down 1'], 3)
    """
    parents = _whole_numbers("parents", parents, -1, np.size(parents))
    leaves = _whole_numbers("leaves", leaves, 0, len(parents))
    if parents.count(-1) != 1:
        raise InputError(f"parents must name one root by -1, got {parents.count(-1)}")
    inner = set(parents)
    for leaf in leaves:
        if leaf in inner or parents[leaf] < 0 or leaves.count(leaf) > 1:
            raise InputError(f"leaf {leaf} must be a vertex below the root, without children, once")
    below = [vertex for vertex, parent in enumerate(parents) if parent >= 0]
    for vertex in below:
        _climb(parents, vertex)
    climbs = [_climb(parents, leaf) for leaf in leaves]
    row = {vertex: number for number, vertex in enumerate(below)}
    leaf_set = set(leaves)
    kinds = [(v, "lan" if v in leaf_set else "wan") for v in below]
    rows = [(f"{way} {v}", kind, way, v) for v, kind in kinds for way in ("up", "down")]
    links = pd.DataFrame(rows, columns=["name", "kind", "direction", "vertex"])
    first, hops = [0], list[int]()
    for path in (_join_climbs(a, b, row) for a in climbs for b in climbs):
        hops.extend(path)
        first.append(len(hops))
        _check_hops(len(leaves), len(hops))
    return Topology(links, len(leaves), np.array(first, np.int64), np.array(hops, np.int64))


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
    d, e = np.indices((domains, domains))
    way = np.stack([4 * d, 4 * d + 2, 4 * e + 3, 4 * e + 1], axis=-1)
    crossed = np.ones(way.shape, dtype=bool)
    crossed[np.diag_indices(domains)] = True, False, False, True
    first = np.append(0, np.cumsum(crossed.sum(axis=-1)))
    return Topology(pd.DataFrame(columns), domains, first, way[crossed].astype(np.int64))


def from_paths(links: pd.DataFrame, paths: pd.DataFrame) -> Topology:
    """Make a topology of any shape from tables.

    Parameters
    ----------
    links : DataFrame
        As `Topology.links`; ``kind`` is needed where means shall be drawn.
    paths : DataFrame
        As `Topology.paths`: domains from 0 on, hops rising; every pair of domains has one.

    Raises
    ------
    InputError
        For a missing column, an unknown link or domain, a hop that is given twice, or a pair
        of domains without a path.
    """
    wanted = ["source", "target", "hop", "link"]
    require_table("links", links, ["name"], unique=False)
    rows = require_table("paths", paths, wanted, unique=False)[wanted]
    rows = rows.sort_values(wanted[:3], kind="stable")
    _whole_numbers("link", rows["link"], 0, len(links))
    ends = _whole_numbers(
        "source and target", rows[["source", "target"]].to_numpy().ravel(), 0, 2**15
    )
    for source, target, hop, _ in rows[rows.duplicated(wanted[:3])].itertuples(index=False):
        raise InputError(f"hop {hop} of the path from {source} to {target} is given twice")
    domains = max(ends) + 1
    pair = (rows["source"] * domains + rows["target"]).to_numpy()
    seen, length = np.unique(pair, return_counts=True)
    if len(seen) < domains * domains:
        gaps = np.flatnonzero(seen != np.arange(len(seen)))
        source, target = divmod(int(gaps[0]) if gaps.size else len(seen), domains)
        raise InputError(f"no path from domain {source} to {target}; every pair needs one")
    first = np.append(0, np.cumsum(length))
    hops = rows["link"].to_numpy(dtype=np.int64)
    return Topology(links.reset_index(drop=True), domains, first, hops)


def draw_means(
    topology: Topology,
    seed: Seed = 0,
    *,
    lan: tuple[float, float] = (50.0, 100.0),
    wan: tuple[float, float] = (500.0, 1000.0),
) -> Floats:
    """Draw the average throughput of every link, in Mbit/s.

    Parameters
    ----------
    topology : Topology
        Its links have a ``kind``, lan or wan.
    seed : int or numpy.random.SeedSequence
        Seed; the draw of a link depends on its row alone.
    lan, wan : tuple of float
        Ends of the uniform distribution, Mbit/s (defaults: Table 1).
    """
    instance("topology", topology, Topology, "; see two_level(10)")
    kinds = {k: number_range(k, ends, above=True) for k, ends in (("lan", lan), ("wan", wan))}
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
    counts = _whole_numbers("counts", counts, 0, np.inf)
    nodes = np.repeat(np.arange(len(counts)), counts)
    return nodes[1::2].astype(np.int64), nodes[::2].astype(np.int64)
