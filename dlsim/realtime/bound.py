r"""An upper bound on the tasks, or the work, that any planner could admit.

On N nodes, a task keeps nodes busy for at least :math:`P_i` of node time between its arrival
:math:`A_i` and its deadline :math:`A_i + D_i`. For a planner that knows all tasks beforehand, and
may admit a part :math:`a_i` of a task of value :math:`v_i` (1, or its data), the best plan is the
optimum of a linear program over the intervals between all arrivals and deadlines. The dual
variables are prices :math:`u \ge 0` of a unit of node time in each interval. For any prices

.. math:: \sum_i v_i a_i \le N \int u + \sum_i \bigl(v_i - P_i \min_{A_i \le t \le A_i + D_i}
          u(t)\bigr)^+

holds for every schedule (statements Y.price and Y.floor of `dlsim.theory`). The least right side is
the optimum of the program.

The prices are found by maximum flows. At a threshold :math:`\theta`, the algorithm serves as much
as possible of the tasks that are worth at least :math:`\theta` per unit of node time, the earliest
deadline first. The price is at least :math:`\theta` in the intervals that are too full to serve
such a task completely, and at most :math:`\theta` elsewhere. Each step therefore divides the
tasks, the intervals and the thresholds in two; 10,000 tasks take one or two seconds.
`scipy.optimize.linprog` finds the same optimum in 2 to 10 times the time, but with fewer correct
digits: some intervals are as short as a tolerance of the engine, below those of the solver.
"""

import heapq
import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.compiled import TOL
from dlsim.realtime import model
from dlsim.realtime.formulas import fastest_counts, time_table
from dlsim.realtime.model import IN_ROUNDS, Cluster, Indices
from dlsim.validate import Floats, flag, instance, one_of

#: How late a task may end, relative to its deadline, and still count as admitted: 16 times the
#: tolerance of the engine.
DEADLINE_SLACK = 16 * TOL
#: The part of a need that is subtracted to cover rounding errors.
NEED_SLACK = 1e-9
#: Steps of the search for the link's share of the resource that mixes node and link time.
GOLDEN_SECTION_STEPS = 14


class Bound(NamedTuple):
    """A bound for all schedules, with the prices that prove it.

    Attributes
    ----------
    value : float
        An upper bound on the admitted tasks, or data.
    ratio : float
        A lower bound on the refused share of the tasks (for which `value` is rounded down to a
        whole number), or of the data.
    prices : DataFrame
        Columns begin, end, node, link: the price of a unit of node time and of a unit of the
        link's time in each interval. Times count from the first arrival.
    """

    value: float
    ratio: float
    prices: pd.DataFrame


def clairvoyant_bound(
    tasks: pd.DataFrame,
    cluster: Cluster,
    partition: str = "exact",
    work: bool = False,
    link: str = "per_task",
) -> Bound:
    """Bound the tasks, or the data, that a planner could admit that knows all tasks beforehand.

    Parameters
    ----------
    tasks : DataFrame
        Columns arrival, sigma, deadline (relative), in any order.
    cluster : Cluster
        Nodes and costs.
    partition : str
        How loads may be split, one of `dlsim.realtime.model.PARTITIONS`. With ``opr`` a task
        occupies n nodes from a common start to a common end and needs n E(n) of node time, n being
        the fewest nodes that meet its deadline. With the other partitions in one round (``equal``,
        ``dlt``, ``I``, ``II``, ``exact``, ``exact-n``, ``pieces``) a node is busy while it receives
        and computes: a task needs sigma (Cms + Cps) and the set-ups. In several rounds (``umr``,
        ``umr-iit``) a node may receive while it computes: a task needs sigma Cps and the set-ups.
    work : bool
        Whether to count data instead of tasks.
    link : {"per_task", "shared"}
        With "shared", the head node's link, too, serves one task at a time.

    Returns
    -------
    Bound
        The bound; its value is computed from the prices in exact arithmetic.

    Raises
    ------
    InputError
        For tasks, a cluster or an option that cannot be used.

    Notes
    -----
    With a shared link the bound is the lowest one on a single resource that mixes node time and the
    link's time. It may lie above the optimum of the program that has both resources.

    Examples
    --------
    Each of three tasks needs both nodes from its arrival to its deadline; two can be admitted.

    >>> tasks = pd.DataFrame({"arrival": [0, 0, 4], "sigma": [3, 3, 3], "deadline": [4, 4, 4]})
    >>> round(clairvoyant_bound(tasks, Cluster(nodes=2, cms=1, cps=1), "opr").ratio, 9)
    0.333333333
    """
    instance("cluster", cluster, Cluster)
    one_of("partition", partition, model.PARTITIONS)
    model.check_partition(partition, 1, cluster)
    flag("work", work)
    one_of("link", link, model.SWITCHES["link"])
    arrival, sigma, deadline = model.task_columns(tasks)
    total = math.fsum(sigma) if work else float(len(sigma))
    arrival = arrival - arrival.min(initial=np.inf)
    slack = DEADLINE_SLACK * (deadline + arrival.max(initial=0.0) / 1024)
    nodes, busy, sent = compute_needs(sigma, deadline + 2 * slack, cluster, partition)
    possible = nodes > 0
    first, due = (arrival - slack)[possible], (arrival + deadline + slack)[possible]
    clock = np.unique(np.concatenate([first, due]))
    begin, end = np.searchsorted(clock, first), np.searchsorted(clock, due)
    worth = sigma[possible] if work else np.ones(possible.sum())
    busy = (1 - NEED_SLACK) * busy[possible] / cluster.nodes
    sent = (1 - NEED_SLACK) * sent[possible]

    def price_mixture(link_share: float) -> tuple[Floats, Floats, float]:
        """Return needs, prices and bound of a mixture of node and link time, of capacity 1."""
        need = (1 - link_share) * busy + link_share * sent
        price = find_prices(begin, end, need, worth, np.diff(clock))
        gain = worth - need * lowest_prices(price, begin, end)
        return need, price, float(price @ np.diff(clock) + gain.clip(0).sum())

    link_share = 0.0
    if link == "shared" and len(clock):
        link_share = minimize_on_unit_interval(lambda share: price_mixture(share)[2])
    need, price, _ = price_mixture(link_share)
    value = exact_bound(need, worth, price, lowest_prices(price, begin, end), clock)
    best = value if work else math.floor(value)
    prices = {
        "begin": clock[:-1],
        "end": clock[1:],
        "node": (1 - link_share) / cluster.nodes * price,
        "link": link_share * price,
    }
    ratio = max(0.0, 1 - best / total) if total else math.nan
    return Bound(value, ratio, pd.DataFrame(prices))


def compute_needs(
    sigma: Floats, budget: Floats, cluster: Cluster, partition: str
) -> tuple[Indices, Floats, Floats]:
    """Return for each task the fewest nodes that meet its deadline, its node time and link time.

    The number of nodes is 0 if no number is enough. W(n) = n E(n) rises with n, so that with
    ``opr`` the fewest nodes need the least node time.
    """
    c, count = cluster, np.arange(1, cluster.nodes + 1)
    table = time_table(c, "pieces" if partition == "pieces" else "opr")
    unit, fixed, top = table.time_per_unit, table.setup_time, np.full(len(sigma), c.nodes)
    if partition in IN_ROUNDS:  # sending and computing overlap, except the first chunk
        unit = np.append(np.inf, np.maximum(c.cms, c.cps / count))
        fixed = np.full(len(unit), c.st + c.sc)
    elif partition != "pieces":
        top = fastest_counts(sigma, table)
    low, high = np.zeros(len(sigma), dtype=np.int64), top.astype(np.int64)
    while (high - low > 1).any():  # E(n) falls as n rises to `top`
        middle = (low + high + 1) // 2
        fits = fixed[middle] + sigma * unit[middle] <= budget
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    nodes = np.where(fixed[top] + sigma * unit[top] <= budget, high, 0)
    busy = sigma * (c.cps if partition in IN_ROUNDS else c.cms + c.cps) + nodes * (c.st + c.sc)
    if partition == "opr":
        busy = nodes * (fixed[nodes] + sigma * unit[nodes])
    return nodes, busy, sigma * c.cms + nodes * c.st


def serve_by_deadline(
    begin: list[int], end: list[int], need: list[float], room: list[float]
) -> tuple[list[list[int]], list[int]]:
    """Serve the earliest deadline first; return each interval's tasks, and the tasks cut short.

    Task i may use the intervals begin[i] to end[i] - 1; interval k has the capacity room[k]. A
    task is cut short if it gets less than its need.
    """
    left = list(need)
    coming = sorted(range(len(begin)), key=begin.__getitem__, reverse=True)
    users: list[list[int]] = [[] for _ in room]
    waiting: list[tuple[int, int]] = []
    for k, free in enumerate(room):
        while coming and begin[coming[-1]] == k:
            i = coming.pop()
            heapq.heappush(waiting, (end[i], i))
        while waiting and free > 0:
            last, i = waiting[0]
            if last <= k or left[i] <= free:
                heapq.heappop(waiting)
            if last > k:
                users[k].append(i)
                free, left[i] = max(0.0, free - left[i]), max(0.0, left[i] - free)
    return users, [i for i, rest in enumerate(left) if rest > NEED_SLACK * need[i]]


def find_exhausted(begin: Indices, end: Indices, need: Floats, room: Floats) -> NDArray[np.bool_]:
    """Tell which intervals have no room for the tasks that are not served in full.

    These are all intervals in the windows of such tasks, and in the windows of the tasks that are
    served there: with room elsewhere in its window, such a task could move and make room. A task
    that is served in an exhausted interval has no later deadline than the task that lacks room
    there, so one pass from the last interval to the first finds all.
    """
    first = begin.tolist()
    users, unserved = serve_by_deadline(first, end.tolist(), need.tolist(), room.tolist())
    # for each end of a window, the earliest begin of an unserved task
    earliest = [len(room)] * (len(room) + 1)
    for i in unserved:
        earliest[end[i]] = min(earliest[end[i]], first[i])
    exhausted, back_to = np.zeros(len(room), dtype=bool), len(room)
    for k in range(len(room) - 1, -1, -1):
        back_to = min(back_to, earliest[k + 1])
        exhausted[k] = k >= back_to
        if exhausted[k]:
            back_to = min([back_to, *(first[i] for i in users[k])])
    return exhausted


def find_prices(begin: Indices, end: Indices, need: Floats, worth: Floats, room: Floats) -> Floats:
    """Return the prices of the intervals for which the bound is least.

    Each step divides the tasks at a threshold. The tasks that are worth at least the threshold, and
    whose whole windows are exhausted, decide the prices of the exhausted intervals, which lie above
    the threshold. All other tasks decide the prices of the other intervals, which lie below it.
    """
    with np.errstate(divide="ignore"):  # a task that needs nothing is served at every price
        thresholds, level = np.unique(-worth / need, return_inverse=True)
    price = np.zeros(len(room))
    every_task, every_interval = np.arange(len(begin)), np.arange(len(room))
    parts = [(every_task, begin, end, every_interval, 0, len(thresholds) - 1)]
    while parts:
        tasks, first, last, intervals, low, high = parts.pop()
        if low > high or not len(tasks):
            continue
        middle = (low + high) // 2
        above = level[tasks] <= middle
        exhausted = find_exhausted(first[above], last[above], need[tasks[above]], room[intervals])
        price[intervals[exhausted]] = -thresholds[middle]
        exhausted_before = np.append(0, np.cumsum(exhausted))
        others_before = np.arange(len(exhausted_before)) - exhausted_before
        inside = above & (exhausted_before[last] - exhausted_before[first] == last - first)
        halves = (
            (inside, exhausted, exhausted_before, low, middle - 1),
            (~inside, ~exhausted, others_before, middle + 1, high),
        )
        for chosen, region, new_place, lowest, highest in halves:
            new_first, new_last = new_place[first[chosen]], new_place[last[chosen]]
            kept = new_last > new_first
            windows = new_first[kept], new_last[kept]
            parts.append((tasks[chosen][kept], *windows, intervals[region], lowest, highest))
    return price


def lowest_prices(price: Floats, begin: Indices, end: Indices) -> Floats:
    """Return the lowest price of each window, from minima of 1, 2, 4, ... adjacent intervals."""
    found, power = np.empty(len(begin)), np.frexp(end - begin)[1] - 1
    minima, width = price, 1
    for k in range(power.max(initial=-1) + 1):
        rows = power == k
        found[rows] = np.minimum(minima[begin[rows]], minima[end[rows] - width])
        minima, width = np.minimum(minima[:-width], minima[width:]), 2 * width
    return found


def exact_bound(need: Floats, worth: Floats, price: Floats, lowest: Floats, clock: Floats) -> float:
    """Return the bound that prices prove, computed exactly and rounded up."""

    def products(left: Floats, right: Floats) -> list[Fraction]:
        return [
            Fraction(x) * Fraction(y) for x, y in zip(left.tolist(), right.tolist(), strict=True)
        ]

    priced = price > 0
    exact = sum(products(price[priced], clock[1:][priced]), start=Fraction(0))
    exact -= sum(products(price[priced], clock[:-1][priced]))
    gains = (
        Fraction(one) - paid
        for one, paid in zip(worth.tolist(), products(need, lowest), strict=True)
    )
    exact += sum(gain for gain in gains if gain > 0)
    value = float(exact)
    return value if value >= exact else math.nextafter(value, math.inf)


def minimize_on_unit_interval(function: Callable[[float], float]) -> float:
    """Return the place in [0, 1] of the only minimum of a function, by golden-section search."""
    low, high, ratio = 0.0, 1.0, (math.sqrt(5) - 1) / 2
    values = {0.0: function(0.0)}
    for _ in range(GOLDEN_SECTION_STEPS):
        inner = [high - ratio * (high - low), low + ratio * (high - low)]
        values |= {x: function(x) for x in inner if x not in values}
        if values[inner[0]] <= values[inner[1]]:
            high = inner[1]
        else:
            low = inner[0]
    return min(values, key=values.__getitem__)
