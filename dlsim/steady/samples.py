"""The platforms of paper S: its samples of Tiers-like networks and of random graphs.

The paper's platforms form strata: the number of clusters K and, for random graphs, the
connectivity. A replicate is one platform of each stratum. Replicate r takes the r-th combination of
a fixed order, so that more replicates extend a sample, and enough of them visit every combination.

Source: paper S, section 6.1, Tables 1 and 2.
"""

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.random import SeedSequence

from dlsim.files import read_csv, shared_file
from dlsim.steady import topology
from dlsim.steady.graphs import prune
from dlsim.steady.model import Platform, Reading
from dlsim.validate import one_of, random_generator

#: The two kinds of networks.
NETWORK_KINDS = ("Tiers", "random")
#: Platforms in the paper, by kind.
PRINTED_SIZES = {"Tiers": 29_298, "random": 269_835}
#: Tiers-like topologies in the paper.
TOPOLOGIES = 100
#: Means of Table 2 that are combined in every way.
COMBINED = ("gateway", "bandwidth", "max_connect", "heterogeneity")
#: Redundancies of networks like those of Tiers, from trees to richly connected ones.
REDUNDANCY = {
    "trees": {"RW": 1, "RM": 1, "RMW": 1},
    "Tiers-like": {"RW": 4, "RM": 3, "RMW": 2},
    "Tiers-like, rich": {"RW": 8, "RM": 6, "RMW": 4},
}
#: Random graphs by their connectivity.
CONNECTIVITY = {"random 0.1": 0.1, "random 0.4": 0.4, "random 0.8": 0.8}
STRUCTURES = (*REDUNDANCY, *CONNECTIVITY)
#: Means in the middle of Table 2, which are compared with the numbers of Table 1.
MIDDLE = {"gateway": 450.0, "bandwidth": 50.0, "max_connect": 25.0, "heterogeneity": 0.6}
# Spawn keys above those of all replicates.
_TOPOLOGY, _NUMBERS, _ORDER, _ROUNDING = range(10**6, 10**6 + 4)


def printed_table(number: int) -> pd.DataFrame:
    """Return Table 1 or 2 of paper S as printed.

    Parameters
    ----------
    number : {1, 2}
        Which table.

    Returns
    -------
    DataFrame
        One row per parameter: its law, and the two or three numbers of the law.
    """
    path = shared_file(f"data/papers/steady-state-table{number}.csv")
    return read_csv(path, {"parameter": "text", "law": "text", "first": "positive"})


@functools.cache
def table_steps(number: int, parameter: str) -> tuple[float, ...]:
    """Return the values that a table prints as steps.

    >>> table_steps(2, "gateway")
    (50.0, 250.0, 450.0, 650.0, 850.0)
    """
    row = printed_table(number).set_index("parameter").loc[parameter]
    first, last, step = map(float, row[["first", "second", "step"]])
    count = math.floor((last - first) / step + 1e-9) + 1
    return tuple(round(first + step * k, 9) for k in range(count))


def split_switches(reading: Mapping[str, str]) -> tuple[Reading, dict[str, str]]:
    """Split the switches of a reading into those of the engine and those that draw platforms.

    >>> split_switches({"stuck": "rest", "table2": "het"})[1]
    {'table2': 'het'}
    """
    drawing = {name: value for name, value in reading.items() if name in topology.SWITCHES}
    rules = {name: value for name, value in reading.items() if name not in drawing}
    return Reading.from_switches(rules), drawing


def _seed_for(purpose: int, seed: SeedSequence) -> SeedSequence:
    """Return the seed of one purpose in the replicate of a seed."""
    return SeedSequence(seed.entropy, spawn_key=(purpose, int(seed.spawn_key[-1])))


def rounding_seed(seed: SeedSequence) -> SeedSequence:
    """Return the seed of LPRR on a replicate's platform, which differs from the platform's own."""
    return _seed_for(_ROUNDING, seed)


def tiers_network(clusters: int, seed: SeedSequence) -> tuple[nx.Graph, list[Any]]:
    """Return a network of the Tiers-like sample, and the routers of its clusters.

    Parameters
    ----------
    clusters : int
        How many of its nodes are routers of clusters.
    seed : SeedSequence
        Its last spawn key is the number of the replicate, which takes the topologies in turn.
    """
    topology_seed = SeedSequence(
        seed.entropy, spawn_key=(_TOPOLOGY, int(seed.spawn_key[-1]) % TOPOLOGIES)
    )
    graph = topology.tiers_graph(topology_seed)
    return graph, topology.some_nodes(graph, clusters, random_generator(topology_seed, _ORDER))


def _combination(connectivity: float, seed: SeedSequence) -> dict[str, float]:
    """Return the means of Table 2 that a replicate takes at one connectivity."""
    every = list(itertools.product(*(table_steps(2, name) for name in COMBINED)))
    order = random_generator(seed.entropy, _ORDER).permutation(len(every))
    place = len(table_steps(2, "connectivity")) * int(seed.spawn_key[-1]) + round(10 * connectivity)
    return dict(zip(COMBINED, every[order[place % len(every)]], strict=True))


def sample_platform(
    kind: str, clusters: int, seed: SeedSequence, connectivity: float = 0.4, **drawn: Any
) -> Platform:
    """Return the platform of one stratum and replicate of the paper's samples.

    Parameters
    ----------
    kind : {"Tiers", "random"}
        A network like those of Tiers with the numbers of Table 1, or a random graph with those of
        Table 2.
    clusters : int
        K, the number of clusters.
    seed : SeedSequence
        Its last spawn key is the number of the replicate.
    connectivity : float
        Probability that two clusters of a random graph are joined.
    **drawn
        Means or readings of Table 2 in place of the replicate's own, such as ``heterogeneity``.
    """
    if one_of("kind", kind, NETWORK_KINDS) == "Tiers":
        graph, routers = tiers_network(clusters, seed)
        return topology.table1(prune(graph, routers), routers, _seed_for(_NUMBERS, seed))
    means: dict[str, Any] = {**_combination(connectivity, seed), **drawn}
    return topology.random(clusters, connectivity, seed=seed, **means)


def crossed_platform(structure: str, numbers: str, clusters: int, seed: SeedSequence) -> Platform:
    """Return a platform with the network of one kind and the numbers of either table.

    Parameters
    ----------
    structure : str
        One of `STRUCTURES`.
    numbers : {"Table 1", "Table 2"}
        The table that gives the numbers of links and clusters; of Table 2 the middle values.
    """
    if structure in REDUNDANCY:
        graph = topology.tiers_graph(seed, **REDUNDANCY[structure])
        routers = topology.some_nodes(graph, clusters, random_generator(seed, _ORDER))
        graph = prune(graph, routers)
    else:
        drawn = topology.random(clusters, CONNECTIVITY[structure], seed=seed)
        routers, graph = list(range(clusters)), nx.empty_graph(clusters)
        graph.add_edges_from(drawn.links[["start", "end"]].itertuples(index=False))
    if one_of("numbers", numbers, ("Table 1", "Table 2")) == "Table 1":
        return topology.table1(graph, routers, seed)
    rng = np.random.default_rng(_seed_for(_NUMBERS, seed))

    def draw_around(mean: float, size: int) -> Any:
        return mean * (1 + MIDDLE["heterogeneity"] * rng.uniform(-1.0, 1.0, size))

    edges = graph.number_of_edges()
    speed, gateway = draw_around(100.0, clusters), draw_around(MIDDLE["gateway"], clusters)
    bandwidths, limits = (
        draw_around(MIDDLE["bandwidth"], edges),
        draw_around(MIDDLE["max_connect"], edges),
    )
    for (_, _, edge), one, most in zip(graph.edges(data=True), bandwidths, limits, strict=True):
        edge.update(bandwidth=float(one), max_connect=int(most))
    one_each = {name: np.ones(clusters) for name in ("priority", "work", "data")}
    return Platform.from_graph(graph, routers, speed=speed, gateway=gateway, **one_each)
