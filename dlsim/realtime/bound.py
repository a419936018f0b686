r"""What no schedule can beat: the tasks, or the work, that any planner could admit.

Offline, all tasks known: a task keeps nodes busy for at least `P` node time between arrival and
deadline, on N nodes. Admitting tasks in part as well makes that a linear program over the
intervals between all arrivals and deadlines. Whatever price :math:`u \ge 0` a unit of node time has
in each of them,

.. math:: \sum_i v_i a_i \le N \int u + \sum_i \bigl(v_i - P_i \min_{A_i \le t \le A_i + D_i}
          u(t)\bigr)^+

for every schedule (statements Y.price and Y.floor of `dlsim.theory`). The least right side is the
program's optimum; its prices fall out of maximum flows without an LP solver: at threshold
:math:`\theta` those tasks are served whose worth per node time is at least :math:`\theta`, as many
as fit (the earliest deadline first), and where others cannot be served for lack of room, room costs
at least :math:`\theta`. Thresholds are halved, and tasks and intervals with them: 10,000 tasks take
half a second.
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
from dlsim.realtime.model import IN_ROUNDS, Cluster
from dlsim.realtime.partition import best_counts, table_for
from dlsim.validate import Floats, flag, instance, one_of

#: By how much, relatively, a task may miss its deadline or its node time: 16 times what the engine
#: lets pass, and what a float rounds off.
SLACK, ROUNDED = 16 * TOL, 1e-9
#: How often the share of the link in the resource that is bounded is narrowed down.
STEPS = 14

Rows = NDArray[np.int64]


class Bound(NamedTuple):
    """What no schedule can beat, with the prices that prove it.

    Attributes
    ----------
    value : float
        No schedule admits more: tasks, or data.
    ratio : float
        No schedule refuses less: 1 minus its share of all tasks (a whole number of them), or of
        all data.
    prices : DataFrame
        begin end node link: what a unit of node time and of the link's time is worth when; times
        since the first arrival.
    """

    value: float
    ratio: float
    prices: pd.DataFrame


def clairvoyant_bound(
    tasks: pd.DataFrame, cluster: Cluster, partition: str = "exact", work: bool = False,
    link: str = "per_task",
) -> Bound:  # fmt: skip
    """Bound what any planner could admit that knows all tasks beforehand.

    Parameters
    ----------
    tasks : DataFrame
        Columns arrival, sigma, deadline (relative), in any order.
    cluster : Cluster
        Nodes and costs.
    partition : str
        How loads may be split, one of `dlsim.realtime.model.PARTITIONS`. With ``opr`` a task keeps
        n nodes from one start to one end and costs n E(n), at the least n in time. Else it keeps a
        node busy while that receives and computes: sigma (Cms + Cps) and set-ups in one round
        (also ``equal``, ``dlt``, ``I``, ``II``, ``exact``, ``exact-n``, and ``pieces``, which no
        link makes wait); in several (``umr``, ``umr-iit``) it may receive while it computes.
    work : bool
        Whether data are counted, not tasks.
    link : {"per_task", "shared"}
        Whether the head node's link serves one task at a time too: the best bound on one mixture of
        node time and the link's time.

    Returns
    -------
    Bound
        The value is checked in exact arithmetic: no solver has to be believed.

    Raises
    ------
    InputError
        For tasks, a cluster or an option that cannot be used.

    Examples
    --------
    Three tasks that need both nodes all the time; two could be served.

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
    spare = SLACK * (deadline + arrival.max(initial=0.0) / 1024)
    nodes, busy, sent = least_needs(sigma, deadline + 2 * spare, cluster, partition)
    can = nodes > 0
    first, due = (arrival - spare)[can], (arrival + deadline + spare)[can]
    clock = np.unique(np.concatenate([first, due]))
    begin, end = np.searchsorted(clock, first), np.searchsorted(clock, due)
    worth = sigma[can] if work else np.ones(can.sum())
    busy, sent = (1 - ROUNDED) * busy[can] / cluster.nodes, (1 - ROUNDED) * sent[can]

    def mixed(part: float) -> tuple[Floats, Floats, float]:
        """Return needs and prices of one mixture of node time and link time, of capacity 1."""
        need = (1 - part) * busy + part * sent
        price = _prices(begin, end, need, worth, np.diff(clock))
        rest = worth - need * _least(price, begin, end)
        return need, price, float(price @ np.diff(clock) + rest.clip(0).sum())

    part = _lowest(lambda part: mixed(part)[2]) if link == "shared" and len(clock) else 0.0
    need, price, _ = mixed(part)
    value = _certified(need, worth, price, _least(price, begin, end), clock)
    best = value if work else math.floor(value)
    prices = {"begin": clock[:-1], "end": clock[1:], "node": (1 - part) / cluster.nodes * price,
              "link": part * price}  # fmt: skip
    ratio = max(0.0, 1 - best / total) if total else math.nan
    return Bound(value, ratio, pd.DataFrame(prices))


def least_needs(
    sigma: Floats, budget: Floats, cluster: Cluster, partition: str
) -> tuple[Rows, Floats, Floats]:
    """Return the fewest nodes by which each task can be in time (0: none), node and link time.

    W(n) = n E(n) rises with n, so that with ``opr`` the fewest nodes cost least.
    """
    c, count = cluster, np.arange(1, cluster.nodes + 1)
    known = table_for(c, "pieces" if partition == "pieces" else "opr")
    unit, fixed, top = known.unit, known.fixed, np.full(len(sigma), c.nodes)
    if partition in IN_ROUNDS:  # sending and computing may overlap, but for the first chunk
        unit = np.append(np.inf, np.maximum(c.cms, c.cps / count))
        fixed = np.full(len(unit), c.st + c.sc)
    elif partition != "pieces":
        top = best_counts(sigma, known)
    low, high = np.zeros(len(sigma), dtype=np.int64), top.astype(np.int64)
    while (high - low > 1).any():  # E falls up to `top`
        middle = (low + high + 1) // 2
        fits = fixed[middle] + sigma * unit[middle] <= budget
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    nodes = np.where(fixed[top] + sigma * unit[top] <= budget, high, 0)
    busy = sigma * (c.cps if partition in IN_ROUNDS else c.cms + c.cps) + nodes * (c.st + c.sc)
    if partition == "opr":
        busy = nodes * (fixed[nodes] + sigma * unit[nodes])
    return nodes, busy, sigma * c.cms + nodes * c.st


def _served(
    begin: list[int], end: list[int], need: list[float], room: list[float]
) -> tuple[list[list[int]], list[int]]:
    """Serve whose deadline is first in every interval; return who uses it, and who falls short."""
    left, comes = list(need), sorted(range(len(begin)), key=begin.__getitem__, reverse=True)
    users: list[list[int]] = [[] for _ in room]
    waiting: list[tuple[int, int]] = []
    for k, free in enumerate(room):
        while comes and begin[comes[-1]] == k:
            i = comes.pop()
            heapq.heappush(waiting, (end[i], i))
        while waiting and free > 0:
            last, i = waiting[0]
            if last <= k or left[i] <= free:
                heapq.heappop(waiting)
            if last > k:
                users[k].append(i)
                free, left[i] = max(0.0, free - left[i]), max(0.0, left[i] - free)
    return users, [i for i, rest in enumerate(left) if rest > ROUNDED * need[i]]


def _tight(begin: Rows, end: Rows, need: Floats, room: Floats) -> NDArray[np.bool_]:
    """Tell which intervals those who fall short, and those in their way, use up.

    Who is served there has no later deadline than who falls short, so that one pass to the left
    finds all whose windows are used up too.
    """
    first = begin.tolist()
    users, short = _served(first, end.tolist(), need.tolist(), room.tolist())
    wanted = [len(room)] * (len(room) + 1)
    for i in short:
        wanted[end[i]] = min(wanted[end[i]], first[i])
    tight, reach = np.zeros(len(room), dtype=bool), len(room)
    for k in range(len(room) - 1, -1, -1):
        reach = min(reach, wanted[k + 1])
        tight[k] = k >= reach
        if tight[k]:
            reach = min([reach, *(first[i] for i in users[k])])
    return tight


def _prices(begin: Rows, end: Rows, need: Floats, worth: Floats, room: Floats) -> Floats:
    """Return the price of each interval by which the bound is least.

    Who is cut off by the intervals that are used up at a threshold decides what they cost beyond
    it, in them alone; all others share the other intervals, and decide what those cost.
    """
    with np.errstate(divide="ignore"):  # who needs nothing is served at every price
        levels, level = np.unique(-worth / need, return_inverse=True)
    price = np.zeros(len(room))
    todo = [(np.arange(len(begin)), begin, end, np.arange(len(room)), 0, len(levels) - 1)]
    while todo:
        who, a, b, where, low, high = todo.pop()
        if low > high or not len(who):
            continue
        middle = (low + high) // 2
        above = level[who] <= middle
        tight = _tight(a[above], b[above], need[who[above]], room[where])
        price[where[tight]] = -levels[middle]
        past = np.append(0, np.cumsum(tight))
        inside = above & (past[b] - past[a] == b - a)
        parts = (
            (inside, tight, past, low, middle - 1),
            (~inside, ~tight, np.arange(len(past)) - past, middle + 1, high),
        )
        for some, region, place, least, most in parts:
            x, y = place[a[some]], place[b[some]]
            has = y > x
            todo.append((who[some][has], x[has], y[has], where[region], least, most))
    return price


def _least(price: Floats, begin: Rows, end: Rows) -> Floats:
    """Return the least price between two intervals, by the least of ever longer runs."""
    found, power = np.empty(len(begin)), np.frexp(end - begin)[1] - 1
    least, width = price, 1
    for k in range(power.max(initial=-1) + 1):
        here = power == k
        found[here] = np.minimum(least[begin[here]], least[end[here] - width])
        least, width = np.minimum(least[:-width], least[width:]), 2 * width
    return found


def _certified(need: Floats, worth: Floats, price: Floats, least: Floats, clock: Floats) -> float:
    """Return the bound that prices prove, computed exactly and rounded up."""

    def products(a: Floats, b: Floats) -> list[Fraction]:
        return [Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]

    dear = price > 0
    ends = products(price[dear], clock[1:][dear]), products(price[dear], clock[:-1][dear])
    beyond = (Fraction(v) - paid for v, paid in zip(worth.tolist(), products(need, least),
        strict=True))  # fmt: skip
    exact = sum(ends[0]) - sum(ends[1]) + sum(rest for rest in beyond if rest > 0)
    value = float(exact)
    return value if value >= exact else math.nextafter(value, math.inf)


def _lowest(function: Callable[[float], float]) -> float:
    """Return where in [0, 1] a function with one valley is lowest, by golden sections."""
    low, high, ratio = 0.0, 1.0, (math.sqrt(5) - 1) / 2
    known = {0.0: function(0.0)}
    for _ in range(STEPS):
        inner = [high - ratio * (high - low), low + ratio * (high - low)]
        known |= {x: function(x) for x in inner if x not in known}
        if known[inner[0]] <= known[inner[1]]:
            high = inner[1]
        else:
            low = inner[0]
    return min(known, key=known.__getitem__)
