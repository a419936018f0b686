"""The best schedule of a few tasks, and where the gap of a policy to it goes.

A search over who is admitted, in which order, and on how many nodes: depth first, the earliest
deadline first, cut by the bound of `dlsim.realtime.bound`. Of the states that serve the same tasks
those are kept in which no other has all nodes free as early; and nobody is served next where
another could be first without being in anybody's way.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.given import flag, instance, option
from dlsim.kernel import clock_origin
from dlsim.realtime.bound import SLACK, clairvoyant_bound
from dlsim.realtime.engine import simulate
from dlsim.realtime.model import Cluster, check_partition, task_columns
from dlsim.realtime.partition import best_counts, table_of

#: Most tasks that are scheduled in the best way, and most nodes: the search is exponential.
MOST_TASKS, MOST_OF_NODES = 10, 4
#: States after which a search gives up, and says so.
MOST_STATES = 20_000
#: Nodes for a task: whatever number is best, the fewest by which it is in time, all that help.
COUNTS = ("best", "min", "all")
PARTITIONS = ("opr", "exact")

Free = tuple[float, ...]
Task = tuple[float, float, float]


class Way(NamedTuple):
    """One way to serve a task: when it starts and ends, and when nodes are free then."""

    start: float
    end: float
    free: Free


class Optimum(NamedTuple):
    """What the best schedule admits: tasks or data, and whether none can be better."""

    value: float
    is_proved: bool


def least_end(release: Sequence[float], sigma: float, cms: float, cps: float) -> float:
    """Return when one round ends at best on nodes released at these sorted times.

    Nodes serve that are released before those released earlier are done. What all of them carry
    is concave in the end, so that Newton's steps from below find it.
    """
    w, part, end = cms + cps, cms / (cms + cps), 0.0
    for m in range(1, len(release) + 1):
        if m > 1 and end <= release[m - 1]:
            break
        some = release[:m]
        end = max(some[-1], (sigma * w + sum(some)) / m)
        while True:  # the link is free at link + rate end
            data, slope, link, rate = sigma, 0.0, some[0], 0.0
            for time in some:
                begin, k = (time, 0.0) if time >= link + rate * end else (link, rate)
                data, slope = data - (end - begin - k * end) / w, slope + (1 - k) / w
                link, rate = begin * (1 - part), k * (1 - part) + part
            if data <= SLACK * sigma or end + data / slope == end:
                break
            end += data / slope
    return end


class _Server:
    """In which ways a cluster can serve a task."""

    def __init__(self, cluster: Cluster, partition: str, nodes: str) -> None:
        self.c, self.partition, self.nodes = cluster, partition, nodes
        self.known = table_of(cluster)
        self.unit, self.fixed = self.known.unit.tolist(), self.known.fixed.tolist()

    def ways(self, free: Free, task: Task, now: float = 0.0) -> list[Way]:
        """Return all that meet the deadline; of nodes that are free too those idle longest rest."""
        arrival, sigma, due = task
        begin, limit = max(arrival, now), due + SLACK * (due - arrival)
        top, found = int(best_counts(sigma, self.known)), list[Way]()
        for n in range(top if self.nodes == "all" else 1, top + 1):
            of_n = self._together if self.partition == "opr" else self._as_released
            found += (way for way in of_n(n, free, begin, sigma) if way.end <= limit)
            if found and self.nodes == "min":
                break
        return found

    def waits(
        self, i: int, way: Way, starts: list[tuple[float, int]], ends: list[tuple[float, int]]
    ) -> bool:
        """Tell whether another could be served first without being in anybody's way.

        Nodes that start together are taken in the order of starts, so that all who come later
        start later; else the other must end before anyone can start.
        """
        for end, k in ends[:2]:
            first = next((start for start, other in starts if other != k), np.inf)
            if k != i and end <= (way.start if self.partition == "opr" else first):
                return True
        return False

    def _together(self, n: int, free: Free, begin: float, sigma: float) -> Iterator[Way]:
        start = max(begin, free[n - 1])
        end, k = start + self.fixed[n] + sigma * self.unit[n], sum(time <= start for time in free)
        yield Way(start, end, tuple(sorted((*free[: k - n], *free[k:], *(end,) * n))))

    def _as_released(self, n: int, free: Free, begin: float, sigma: float) -> Iterator[Way]:
        any_n = itertools.combinations(range(len(free)), n)
        some = any_n if self.nodes == "best" else [tuple(range(n))]
        # nodes that are free at one time are one and the same
        for taken, who in {tuple(free[k] for k in who): who for who in some}.items():
            release = [max(begin, time) for time in taken]
            end = least_end(release, sigma, self.c.cms, self.c.cps)
            if release[-1] < end:
                rest = (time for k, time in enumerate(free) if k not in who)
                yield Way(release[0], end, tuple(sorted((*rest, *(end,) * n))))


def _is_new(front: list[Free], free: Free) -> bool:
    """Enter a state among those of the same tasks, unless another has all nodes as early."""
    if any(all(a <= b for a, b in zip(old, free, strict=True)) for old in front):
        return False
    front[:] = [old for old in front if not all(a <= b for a, b in zip(free, old, strict=True))]
    front.append(free)
    return True


def _search(
    tasks: Sequence[Task], worth: Sequence[float], server: _Server, free: Free, most: float,
    now: float = 0.0, in_order: bool = False, plan: str = "soonest",
) -> tuple[float, tuple[tuple[int, Way], ...], bool]:  # fmt: skip
    """Return the worth of the best tasks found, how they are served, and whether none are better.

    With `in_order` tasks are served in theirs, without leaving one out.
    """
    best, found, count = 0.0, (), 0
    fronts: dict[int, list[Free]] = {}
    todo: list[Any] = [(0, 0.0, free, ())]
    while todo and best < most and count < MOST_STATES:
        served, got, free, how = todo.pop()
        count += 1
        if got > best:
            best, found = got, how
        left = [i for i in range(len(tasks)) if not served >> i & 1]
        some = {i: server.ways(free, tasks[i], now) for i in left[: 1 if in_order else None]}
        if got + sum(worth[i] for i in left if in_order or some[i]) <= best:
            continue
        ends = sorted((min(way.end for way in ways), i) for i, ways in some.items() if ways)
        starts = sorted((min(way.start for way in ways), i) for i, ways in some.items() if ways)
        more = []
        for i, ways in some.items():
            front = fronts.setdefault(served | 1 << i, [])
            for way in ways:
                if not server.waits(i, way, starts, ends) and _is_new(front, way.free):
                    after = (served | 1 << i, got + worth[i], way.free, (*how, (i, way)))
                    first = way.end if plan == "soonest" else sum(way.free)
                    more.append((tasks[i][2], first, after))
        more.sort(key=lambda state: state[:2], reverse=True)
        todo += [after for *_, after in more]
    return best, found, not todo or best >= most


def _taken(
    tasks: pd.DataFrame, cluster: Cluster, partition: str, nodes: str
) -> tuple[list[Task], _Server]:
    """Return the tasks as they are searched, or refuse what is too large."""
    instance("cluster", cluster, Cluster)
    option("partition", partition, PARTITIONS)
    option("nodes", nodes, COUNTS)
    check_partition(partition, 1, cluster)
    arrival, sigma, deadline = task_columns(tasks)
    if len(tasks) > MOST_TASKS or cluster.nodes > MOST_OF_NODES:
        raise InputError(
            f"a search serves at most {MOST_TASKS} tasks on {MOST_OF_NODES} nodes, got "
            f"{len(tasks)} on {cluster.nodes}: use clairvoyant_bound, which bounds any number"
        )
    arrival = arrival - clock_origin(arrival)
    rows = zip(arrival.tolist(), sigma.tolist(), (arrival + deadline).tolist(), strict=True)
    return list(rows), _Server(cluster, partition, nodes)


def offline_optimum(
    tasks: pd.DataFrame, cluster: Cluster, partition: str = "opr", work: bool = False,
    nodes: str = "best",
) -> Optimum:  # fmt: skip
    """Find what the best planner admits, in tasks or data (`work`), who knows all tasks beforehand.

    One round, nobody is interrupted, nodes are given back at the end of a task. They start together
    ("opr"), or as any are released, split so that all end first ("exact"); a task runs on any
    number of them, on the fewest in time, or on all that help (`COUNTS`). First come, first served
    would admit the first alone:

    >>> tasks = pd.DataFrame({"arrival": [0, 1, 1], "sigma": [6, 2, 2], "deadline": [12, 6, 9]})
    >>> offline_optimum(tasks, Cluster(nodes=2, cms=1, cps=1)).value
    3.0
    """
    rows, server = _taken(tasks, cluster, partition, nodes)
    bound = clairvoyant_bound(tasks, cluster, partition, flag("work", work))
    worth = [sigma if work else 1.0 for _, sigma, _ in rows]
    most = bound.value if work else float(np.floor(bound.value))
    value, _, ended = _search(rows, worth, server, (0.0,) * cluster.nodes, most)
    return Optimum(value, ended)


def online_best(
    tasks: pd.DataFrame, cluster: Cluster, partition: str = "opr", order: str = "any",
    nodes: str = "best", plan: str = "soonest",
) -> int:  # fmt: skip
    """Count the tasks that are admitted without the future, but with all plans for the present.

    A newcomer is admitted if any plan serves it and all who wait, in any order (or the earliest
    deadline first, or as they came), on any number of nodes. Of all such plans one is put in force
    that serves the earliest deadlines first, each the soonest or with the least node time.
    Parameters as of `offline_optimum`; `order` is any, edf or fifo, `plan` soonest or cheapest.
    """
    option("order", order, ("any", "edf", "fifo"))
    option("plan", plan, ("soonest", "cheapest"))
    rows, server = _taken(tasks, cluster, partition, nodes)
    free, planned, count = (0.0,) * cluster.nodes, list[tuple[int, Way]](), 0
    for newcomer, (now, *_) in enumerate(rows):
        while any(way.start <= now for _, way in planned):
            free = planned.pop(0)[1].free
        some = [*(i for i, _ in planned), newcomer]
        if order == "edf":
            some.sort(key=lambda i: (rows[i][2], i))
        chosen = [rows[i] for i in some]
        ones = [1.0] * len(some)
        in_order = order != "any"
        got, found, _ = _search(chosen, ones, server, free, len(some), now, in_order, plan)
        if got == len(some):
            planned, count = [(some[k], way) for k, way in found], count + 1
    return count


#: Rungs of the ladder below the bound: partition of the optimum, order and plan of who tries all
#: plans, or the engine's policy.
LADDER: dict[str, Any] = {
    "optimum, EXACT": "exact", "optimum, OPR": "opr",
    "all orders, all n, soonest": ("any", "soonest"),
    "all orders, all n, cheapest": ("any", "cheapest"),
    "EDF, all n, soonest": ("edf", "soonest"), "EDF, all n, cheapest": ("edf", "cheapest"),
    "EDF-OPR-MN": "EDF-OPR-MN", "EDFAN": "EDFAN", "FIFO-OPR-MN": "FIFO-OPR-MN", "MCDF": "MCDF",
    "EDF-DLT": "EDF-DLT", "EDF-EXACT": "EDF-EXACT", "EDF-EXACT-N": "EDF-EXACT-N",
}  # fmt: skip


def ladder(tasks: pd.DataFrame, cluster: Cluster) -> dict[str, float]:
    """Return the share of tasks refused on every rung of `LADDER`, from what none can beat down.

    What an optimum is where the search gave up is the bound. Of no tasks no share is known (NaN).
    """
    count = len(tasks) or np.nan
    refused = {"bound": clairvoyant_bound(tasks, cluster, "exact").ratio}
    for rung, how in LADDER.items():
        if how in PARTITIONS:
            found = offline_optimum(tasks, cluster, how)
            bound = clairvoyant_bound(tasks, cluster, how).ratio
            refused[rung] = 1 - found.value / count if found.is_proved else bound
            continue
        if isinstance(how, tuple):
            served = online_best(tasks, cluster, "opr", how[0], plan=how[1])
        else:
            served = int(simulate(tasks, cluster, how).tasks["admitted"].sum())
        refused[rung] = 1 - served / count
    return refused


def prices(plan: str) -> dict[str, tuple[str, str]]:
    """Return what each restriction costs, as two rungs of the ladder: the first minus the second.

    Who plans without the future does so by one of the plans of `online_best`.
    """
    free, edf = f"all orders, all n, {plan}", f"EDF, all n, {plan}"
    return {
        "gap of the bound": ("optimum, EXACT", "bound"),
        "nodes start together": ("optimum, OPR", "optimum, EXACT"),
        "future unknown": (free, "optimum, OPR"),
        "order: EDF": (edf, free),
        "n: the fewest": ("EDF-OPR-MN", edf),
        "n: all": ("EDFAN", edf),
        "order: FIFO for EDF": ("FIFO-OPR-MN", "EDF-OPR-MN"),
        "order: MCDF for EDF": ("MCDF", "EDF-OPR-MN"),
        "split: DLT": ("EDF-DLT", "EDF-OPR-MN"),
        "split: EXACT": ("EDF-EXACT", "EDF-OPR-MN"),
        "split and n: EXACT-N": ("EDF-EXACT-N", "EDF-OPR-MN"),
    }
