r"""One divisible load on a star of unequal nodes: a head node that sends one chunk at a time.

Every node has its own costs of sending and computing, its own start-up times, and a time from
which it may be sent to. The load is sent in a single round, and all nodes that get a share finish
together at T. With :math:`s_i` the time at which node i is sent to, which is when the link and the
node are free, its load is

.. math:: \sigma_i = \frac{T - s_i - ST_i - SC_i}{C_{ms,i} + C_{ps,i}} ,
          \qquad s_{i+1} = \max(r_{i+1}, s_i + ST_i + \sigma_i C_{ms,i}) .

The sum of all loads is concave and piecewise linear in T, so that Newton's method finds where it
equals the load to be sent.
"""

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.realtime.formulas import SIZE
from dlsim.validate import MAX_MAGNITUDE, Floats, column, number, one_of, require_table

#: Most nodes of which all orders are tried: there are 109,600 sequences of some of 8 nodes.
MOST_SEARCHED_NODES = 8
#: A smaller share of the load is a rounding error of zero.
SMALLEST_SHARE = 1e-12


class StarSplit(NamedTuple):
    """How one load is split over the nodes that get a share, in the order of sending.

    Attributes
    ----------
    order : ndarray of int, shape (n,)
        Row numbers of the nodes.
    share : ndarray of float, shape (n,)
        Part of the load that each node gets; the sum is 1.
    send_start, send_end, compute_end : ndarray of float, shape (n,)
        When each node is sent to, has its data, and has computed them.
    finish : float
        When all nodes have finished.
    """

    order: NDArray[np.int64]
    share: Floats
    send_start: Floats
    send_end: Floats
    compute_end: Floats
    finish: float


def split_unequal(
    sigma: float, nodes: pd.DataFrame, order: Sequence[int] | str | None = None
) -> StarSplit:
    """Split one load over nodes that differ in speed, link, start-up times or release time.

    Parameters
    ----------
    sigma : float
        Data size.
    nodes : DataFrame
        A row per node: cms and cps, the time to send it and to compute one unit of data; and, where
        given, st and sc, the start-up times of a transmission and of a computation, and release,
        the time from which the node may be sent to (each 0 by default).
    order : sequence of int, "best" or None
        Row numbers of the nodes that serve, in the order in which they are sent to; None for all
        nodes in the order of the table. While a node would get no positive share, the node with
        the smallest one is left out; all others serve, even if fewer would finish sooner. With
        "best" the nodes and the order with the earliest finish are searched for among all orders
        of at most `MOST_SEARCHED_NODES` nodes.

    Returns
    -------
    StarSplit
        Order, shares and times.

    Raises
    ------
    InputError
        For a size, nodes or an order that cannot be used.

    Notes
    -----
    If all nodes are free at once and have no start-up times, the best order is that of the links,
    the fastest link first, however fast the nodes compute.

    Examples
    --------
    The node with the fast link is worth waiting for: it is sent to before a node that is free.

    >>> nodes = pd.DataFrame({"cms": [4, 1], "cps": [4, 4], "release": [0, 2]})
    >>> for order in ([0, 1], "best"):
    ...     found = split_unequal(4, nodes, order)
    ...     print(found.order.tolist(), found.share.round(3).tolist(), round(found.finish, 3))
    [0, 1] [0.556, 0.444] 17.778
    [1, 0] [0.667, 0.333] 15.333
    """
    sigma = float(number("sigma", sigma, above=True, rule=SIZE))
    costs = _node_costs(nodes)
    if isinstance(order, str):
        one_of("order", order, ("best",))
        return _schedule(sigma, costs, _best_order(sigma, costs))
    chosen = _checked_order(range(len(nodes)) if order is None else order, len(nodes))
    while True:
        _, load = _finish_and_loads(sigma, costs, chosen[np.newaxis])
        worst = int(np.argmin(load[0]))
        if load[0, worst] > SMALLEST_SHARE * sigma:
            return _schedule(sigma, costs, chosen)
        chosen = np.delete(chosen, worst)


def _node_costs(nodes: pd.DataFrame) -> dict[str, Floats]:
    """Return the columns of a table of nodes, or refuse it."""
    labels = require_table("nodes", nodes, ("cms", "cps"), empty=False).index
    costs = {name: np.zeros(len(nodes)) for name in ("st", "sc", "release")}
    for name in ("cms", "cps", *(name for name in costs if name in nodes)):
        values = require_table("nodes", nodes, [name])[name]
        low = -MAX_MAGNITUDE if name == "release" else 0.0
        costs[name] = column(name, values, low, row="node", labels=labels)
    if not (costs["cms"] + costs["cps"] > 0).all():
        raise InputError("nodes must each have cms + cps above 0: give the unit load a cost")
    return costs


def _checked_order(order: Sequence[int], count: int) -> NDArray[np.int64]:
    """Return row numbers of nodes as an array, or refuse them."""
    rows = column("node of the order", order, 0, count - 1, is_whole=True)
    if rows.ndim != 1 or not 0 < len(rows) == len(np.unique(rows)):
        raise InputError(f"order must name each node at most once, and one at least; got {order!r}")
    return rows.astype(np.int64)


def _best_order(sigma: float, costs: dict[str, Floats]) -> NDArray[np.int64]:
    """Return the order of some nodes with the earliest finish, of equal ones the shortest."""
    count = len(costs["cms"])
    if count > MOST_SEARCHED_NODES:
        raise InputError(
            f"all orders of at most {MOST_SEARCHED_NODES} nodes are tried, got {count} nodes: give "
            "an order, such as nodes['cms'].argsort(), which is the best one for nodes that are "
            "free at once and have no start-up times"
        )
    best, earliest = np.arange(1), np.inf
    for size in range(1, count + 1):
        orders = np.array(list(permutations(range(count), size)))
        finish, load = _finish_and_loads(sigma, costs, orders)
        finish[load.min(axis=1) <= SMALLEST_SHARE * sigma] = np.inf
        first = int(np.argmin(finish))
        if finish[first] < earliest:
            best, earliest = orders[first], finish[first]
    return best


def _finish_and_loads(
    sigma: float, costs: dict[str, Floats], orders: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Return for each row, an order of nodes, when they finish together, and their loads.

    The finish counts from the first release of all nodes. A load that is not positive means that
    the nodes of the row cannot all take part.
    """
    cms, cps, st, sc = (costs[name][orders] for name in ("cms", "cps", "st", "sc"))
    release = (costs["release"] - costs["release"].min())[orders]
    load = np.empty(orders.shape)
    finish = release.max(axis=1)
    # one step for each node's line of the sum of loads, and one for what the steps have rounded
    for _ in range(orders.shape[1] + 2):
        link, link_slope = release[:, 0], np.zeros(len(orders))
        total, slope = np.zeros((2, len(orders)))
        for k in range(orders.shape[1]):
            waits_for_link = link > release[:, k]
            start = np.where(waits_for_link, link, release[:, k])
            start_slope = np.where(waits_for_link, link_slope, 0.0)
            unit = cms[:, k] + cps[:, k]
            load[:, k] = (finish - start - st[:, k] - sc[:, k]) / unit
            load_slope = (1 - start_slope) / unit
            link = start + st[:, k] + load[:, k] * cms[:, k]
            link_slope = start_slope + load_slope * cms[:, k]
            total, slope = total + load[:, k], slope + load_slope
        finish = finish + (sigma - total) / slope
    return finish, load


def _schedule(sigma: float, costs: dict[str, Floats], order: NDArray[np.int64]) -> StarSplit:
    """Return the split of a load over nodes that all get a share, sent to in this order."""
    origin = costs["release"].min()
    finish, loads = _finish_and_loads(sigma, costs, order[np.newaxis])
    load = loads[0]
    start, sent, link = np.empty(len(order)), np.empty(len(order)), -np.inf
    for k, node in enumerate(order):
        start[k] = max(link, costs["release"][node] - origin)
        link = sent[k] = start[k] + costs["st"][node] + load[k] * costs["cms"][node]
    done = sent + costs["sc"][order] + load * costs["cps"][order]
    times = origin + start, origin + sent, origin + done
    return StarSplit(order, load / load.sum(), *times, float(origin + finish[0]))
