"""A site of many processors as one: the equivalent speed of a star or a tree.

Source: paper S, section 2, which cites C. Banino et al., "Scheduling strategies for
master-slave tasking on heterogeneous processor platforms", IEEE TPDS 15(4), 2004: in
steady state a node feeds its children in the order of their links, fastest first,
whatever their speeds (bandwidth-centric).
"""

import math
from collections.abc import Hashable

import networkx as nx

from dlsim.errors import InputError
from dlsim.given import number, option

PORTS = ("one", "many")


def equivalent_speed(
    tree: nx.Graph, master: Hashable, data: float = 1.0, work: float = 1.0, ports: str = "one"
) -> float:
    r"""Return the speed of the one processor that does what a tree of processors does.

    With one port a node spends :math:`\sum_j x_j \delta / b_j \le 1` of its time on
    sending; the best :math:`\sum_j x_j` fills the fastest links first:

    .. math:: S = s + w \max \{\textstyle\sum_j x_j : \sum_j x_j \delta / b_j \le 1,\;
        0 \le x_j \le S_j / w\}

    Parameters
    ----------
    tree : networkx.Graph
        Nodes carry speed (work per time), edges carry bandwidth (data per time). A star is
        a tree of depth 1.
    master : node
        The root, which holds all data (the front-end processor).
    data, work : float
        Of one load unit: the equivalent speed depends on their ratio.
    ports : {"one", "many"}
        Whether a node sends to one child at a time, or to all at once, each as fast as
        its link allows.

    Returns
    -------
    float
        Work per time, for `Platform.speed`.

    Raises
    ------
    InputError
        For a graph that is not a tree, an unknown master, a missing or negative number.

    Examples
    --------
    A master of speed 1 whose link of bandwidth 3 keeps a worker of speed 2 busy for two
    thirds of its time; the third left feeds a worker on a link of bandwidth 1.5:

    >>> star = nx.Graph()
    >>> star.add_nodes_from(["m", "a", "b"], speed=1)
    >>> star.nodes["a"]["speed"] = 2
    >>> star.add_edge("m", "a", bandwidth=3)
    >>> star.add_edge("m", "b", bandwidth=1.5)
    >>> equivalent_speed(star, "m")
    3.5
    """
    option("ports", ports, PORTS)
    is_plain = isinstance(tree, nx.Graph) and not tree.is_directed() and len(tree)
    if not is_plain or not nx.is_tree(tree):
        raise InputError(f"the site must be a tree, got {tree}")
    if master not in tree:
        raise InputError(f"master {master!r} is no node of the tree")
    data = float(number("data", data))
    work = float(number("work", work, above=True))
    speed = {v: float(number(f"speed of node {v!r}", tree.nodes[v].get("speed"))) for v in tree}
    children = nx.dfs_successors(tree, master)
    for node in nx.dfs_postorder_nodes(tree, master):
        offers = sorted(
            (data / b if b else math.inf if data else 0.0, speed[child] / work)
            for child in children.get(node, ())
            for edge in [f"bandwidth of edge {node!r} - {child!r}"]
            for b in [float(number(edge, tree[node][child].get("bandwidth")))]
        )
        speed[node] += work * _fed(offers, ports)
    return speed[master]


def _fed(offers: list[tuple[float, float]], ports: str) -> float:
    """Return the load units per time that children, (time per unit, most), receive."""
    left, total = 1.0, 0.0
    for cost, most in offers:
        units = min(most, left / cost) if cost else most
        total += units
        if ports == "one" and units:
            left = max(0.0, left - units * cost)
    return total
