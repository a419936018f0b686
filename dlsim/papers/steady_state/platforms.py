"""The platforms of paper S, section 6.1: which one stands at which place of a sample.

The paper's platforms form strata (K, and for random graphs connectivity). A replicate is
one platform of each stratum; replicate r takes the r-th of a fixed order, so that more
replicates extend a sample and enough of them visit everything.
"""

import functools
import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.random import SeedSequence

from dlsim.files import read_csv, shared_file
from dlsim.steady import Platform, from_graph, topology
from dlsim.steady.graphs import prune

#: Platforms in the paper, and configurations per topology and per combination of Table 2.
PRINTED = {"Tiers": 29_298, "random": 269_835}
TOPOLOGIES = 100
#: Redundancies of networks like those of Tiers, from trees to richly connected ones.
REDUNDANCY = {
    "trees": {"RW": 1, "RM": 1, "RMW": 1},
    "Tiers-like": {"RW": 4, "RM": 3, "RMW": 2},
    "Tiers-like, rich": {"RW": 8, "RM": 6, "RMW": 4},
}
#: Random graphs by their connectivity.
CONNECTIVITY = {"random 0.1": 0.1, "random 0.4": 0.4, "random 0.8": 0.8}
STRUCTURES = (*REDUNDANCY, *CONNECTIVITY)
#: Where in the middle of Table 2 its numbers are set beside another table's.
MIDDLE = {"gateway": 450.0, "bandwidth": 50.0, "max_connect": 25.0, "heterogeneity": 0.6}
# Spawn keys that no replicate reaches.
_TOPOLOGY, _NUMBERS, _ORDER, _ROUNDING = range(10**6, 10**6 + 4)


def printed_table(number: int) -> pd.DataFrame:
    """Return Table 1 or 2 as printed."""
    path = shared_file(f"data/papers/steady-state-table{number}.csv")
    return read_csv(path, {"parameter": "text", "law": "text", "first": "positive"})


@functools.cache
def steps(number: int, parameter: str) -> tuple[float, ...]:
    """Return the values that a table prints as steps.

    >>> steps(2, "gateway")
    (50.0, 250.0, 450.0, 650.0, 850.0)
    """
    row = printed_table(number).set_index("parameter").loc[parameter]
    first, last, step = map(float, row[["first", "second", "step"]])
    count = math.floor((last - first) / step + 1e-9) + 1
    return tuple(round(first + step * k, 9) for k in range(count))


def _of_replicate(seed: SeedSequence, purpose: int) -> SeedSequence:
    return SeedSequence(seed.entropy, spawn_key=(purpose, int(seed.spawn_key[-1])))


def rounding(seed: SeedSequence) -> SeedSequence:
    """Return the randomness of LPRR on a replicate's platform, apart from the platform's."""
    return _of_replicate(seed, _ROUNDING)


def tiers_network(clusters: int, seed: SeedSequence) -> tuple[nx.Graph, list[Any]]:
    """Return a network of the Tiers-like sample and its clusters' routers."""
    place = SeedSequence(seed.entropy, spawn_key=(_TOPOLOGY, int(seed.spawn_key[-1]) % TOPOLOGIES))
    graph = topology.tiers_graph(place)
    return graph, some_nodes(graph, clusters, place)


def on_tiers(clusters: int, seed: SeedSequence) -> Platform:
    """Return a platform of the Tiers-like sample."""
    graph, routers = tiers_network(clusters, seed)
    return topology.table1(prune(graph, routers), routers, _of_replicate(seed, _NUMBERS))


def some_nodes(graph: nx.Graph, clusters: int, seed: SeedSequence) -> list[Any]:
    """Draw different nodes, in the order of the graph; more clusters contain fewer."""
    nodes = list(graph)
    key = (*seed.spawn_key, _ORDER)
    rng = np.random.default_rng(SeedSequence(seed.entropy, spawn_key=key))
    return [nodes[i] for i in sorted(rng.permutation(len(nodes))[:clusters].tolist())]


def combination(connectivity: float, seed: SeedSequence) -> dict[str, float]:
    """Return the means of Table 2 that a replicate takes at one connectivity."""
    names = ("gateway", "bandwidth", "max_connect", "heterogeneity")
    every = list(itertools.product(*(steps(2, name) for name in names)))
    key = SeedSequence(seed.entropy, spawn_key=(_ORDER,))
    order = np.random.default_rng(key).permutation(len(every))
    stride = len(steps(2, "connectivity"))
    place = stride * int(seed.spawn_key[-1]) + round(10 * connectivity)
    return dict(zip(names, every[order[place % len(every)]], strict=True))


def on_random(
    clusters: int, connectivity: float, seed: SeedSequence, table2: str = "one", **change: float
) -> Platform:
    """Return a platform of the random sample."""
    means: dict[str, Any] = {**combination(connectivity, seed), **change}
    return topology.random(clusters, connectivity, seed=seed, table2=table2, **means)


def of_kind(
    kind: str, clusters: int, seed: SeedSequence, connectivity: float = 0.4, **drawn: Any
) -> Platform:
    """Return a platform of either sample."""
    if kind == "Tiers":
        return on_tiers(clusters, seed)
    return on_random(clusters, connectivity, seed, **drawn)


def crossed(structure: str, numbers: str, clusters: int, seed: SeedSequence) -> Platform:
    """Put the numbers of either table on either kind of network."""
    if structure in REDUNDANCY:
        graph = topology.tiers_graph(seed, **REDUNDANCY[structure])
        routers = some_nodes(graph, clusters, seed)
        graph = prune(graph, routers)
    else:
        drawn = topology.random(clusters, CONNECTIVITY[structure], seed=seed)
        routers, graph = list(range(clusters)), nx.empty_graph(clusters)
        graph.add_edges_from(drawn.links[["start", "end"]].itertuples(index=False))
    if numbers == "Table 1":
        return topology.table1(graph, routers, seed)
    # those of Table 2 for any network (reading "one")
    rng = np.random.default_rng(_of_replicate(seed, _NUMBERS))

    def spread(mean: float, size: int) -> Any:
        return mean * (1 + MIDDLE["heterogeneity"] * rng.uniform(-1.0, 1.0, size))

    edges = graph.number_of_edges()
    speed, gateway = spread(100.0, clusters), spread(MIDDLE["gateway"], clusters)
    wide, most = spread(MIDDLE["bandwidth"], edges), spread(MIDDLE["max_connect"], edges)
    for (_, _, edge), one, count in zip(graph.edges(data=True), wide, most, strict=True):
        edge.update(bandwidth=float(one), max_connect=int(count))
    one_each = {name: np.ones(clusters) for name in ("priority", "work", "data")}
    return from_graph(graph, routers, speed=speed, gateway=gateway, **one_each)


def features(p: Platform) -> dict[str, float]:
    """Describe the network between the clusters."""
    graph = nx.Graph(p.links[["start", "end"]].to_numpy().tolist())
    lengths, links = np.diff(p.tables.start), max(len(p.links), 1)
    trees = len(graph) - nx.number_connected_components(graph) if len(graph) else 0
    return {
        "treeness": trees / links,
        "degree": 2 * links / max(len(graph), 1),
        "hops": float(lengths.mean()) if len(lengths) else 0.0,
        "shared": float(lengths.sum()) / links,
    }
