"""Admission to a cluster whose nodes differ in speed and link (both papers' future work).

The papers' test, one task at a time: a newcomer is admitted if it and all who wait meet their
deadlines when they are planned in order, each on the fewest nodes that are in time. What changes
is who these are, and who is sent to first (`dlsim.realtime.core.unequal`). There are no set-ups.
"""

from bisect import bisect
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.given import Floats, option
from dlsim.kernel import clock_origin, latest_finish
from dlsim.realtime.check_unequal import check_unequal
from dlsim.realtime.core import unequal as core
from dlsim.realtime.model import SWITCHES, node_columns, sorted_columns
from dlsim.realtime.run import places

#: What a policy may be made of here.
ORDERS, PARTITIONS = ("edf", "fifo"), ("opr", "exact")


@dataclass(frozen=True)
class UnequalSchedule:
    """What became of tasks on unequal nodes; plain tables.

    Attributes
    ----------
    tasks : DataFrame
        arrival sigma deadline admitted start nodes completion least, indexed as the input; NaN, 0
        and False where a task was refused. `least`: fewer nodes than these could not have met the
        deadline on what the tasks before it left (proved); what `nodes` has more is the search's.
    chunks : DataFrame
        task node alpha send_start send_end compute_end, in order of dispatch and transmission.
    nodes : DataFrame
        The cluster: cms and cps of every node.
    order, partition, link : str
        As given to `simulate_unequal`.
    given : DataFrame, optional
        The tasks as they came, which `check` compares with.
    """

    tasks: pd.DataFrame
    chunks: pd.DataFrame
    nodes: pd.DataFrame
    order: str
    partition: str
    link: str
    given: pd.DataFrame | None = field(default=None, repr=False)

    @property
    def reject_ratio(self) -> float:
        """Refused tasks per arrived task (paper M, section 6)."""
        return float((~self.tasks["admitted"]).mean())

    def check(self) -> None:
        """Verify the schedule from the model's definition alone, or raise ScheduleError."""
        check_unequal(self)


class _Served(NamedTuple):
    """How a task is served: by which nodes, how much of it from when until when."""

    task: int
    start: float
    end: float
    least: int
    who: NDArray[np.int64]
    load: Floats
    begin: Floats
    done: Floats
    release: Floats  # what it leaves to those behind, of all nodes,
    link: float  # and of the link


class _Nodes:
    """The nodes by link, and how a load is served by them."""

    def __init__(self, cms: Floats, cps: Floats, partition: str, span: float) -> None:
        n, few = len(cms), core.FEW
        short = [row for k in range(1, few + 1) for row in permutations(range(few), k)]
        rows = [[*row, *[-1] * (few - len(row))] for row in short]
        first = np.searchsorted([len(row) for row in short], np.arange(few + 2))
        room = {"cms": cms, "cps": cps, "orders": np.array(rows), "first": first}
        room |= {name: np.zeros(n) for name in ("release", "load", "begin", "done", "stop")}
        room |= {name: np.zeros(n, dtype=np.int64) for name in ("who", "taken", "turn")}
        room |= {"most": np.zeros(n + 1), "rate": np.zeros((n + 1, n + 1))}
        room |= {name: np.zeros((2, 2 * n + 2)) for name in ("at", "value")}
        self.room = core.Room(**room, line=np.zeros((4, n), dtype=np.int64))
        self.room.who[:] = np.arange(n)
        core.fill_rates(n, self.room)
        self.room.most[:] = self.room.rate[0]
        self.is_together, self.span = partition == "opr", span

    def serve(
        self, i: int, sigma: float, limit: float, floor: float, release: Floats,
        link: float = -np.inf,
    ) -> _Served | None:  # fmt: skip
        """Serve a task on nodes that are released, from `floor` on; None if it would be late."""
        c = self.room
        np.maximum(release, floor, out=c.release)
        if self.is_together:
            now = 0.0
            n, start, end, sent, least = core.start_together(sigma, limit, floor, self.span, c)
        else:  # on a clock that begins now: there are more roundings
            now = floor
            c.release[:] -= now
            c.turn[:] = np.argsort(c.release, kind="stable")
            n, start, end, sent, least = core.as_released(sigma, limit - now, c)
        if n == 0:
            return None
        who, load, begin, done = (x[:n].copy() for x in (c.who, c.load, c.begin, c.done))
        begin, done, free = now + begin, now + done, release.copy()
        free[who], link = done, max(link, now + sent)
        return _Served(i, now + start, now + end, least, who, load, begin, done, free, link)


def simulate_unequal(
    tasks: pd.DataFrame,
    nodes: pd.DataFrame,
    order: str = "edf",
    partition: str = "opr",
    link: str = "per_task",
) -> UnequalSchedule:
    """Schedule divisible tasks as they arrive on nodes of different speed and link.

    Parameters
    ----------
    tasks : DataFrame
        Columns arrival, sigma, deadline (relative); index = task id. Sorted by arrival.
    nodes : DataFrame
        A row per node: cms and cps, the time to send it and to compute one unit of data.
    order : {"edf", "fifo"}
        Who is planned first; nobody starts before those ahead of it.
    partition : {"opr", "exact"}
        Nodes of a task start together, at the first instant at which those that are free can meet
        its deadline: the fewest of them, and of so many those that end soonest, the fastest link
        first. Or each as it is released: the fewest that can meet the deadline, in the order that
        ends soonest, each sent what ends the load soonest.
    link : {"per_task", "shared"}
        The head node's link is serial within a task, or across all tasks.

    Returns
    -------
    UnequalSchedule
        Tables of what was decided; `UnequalSchedule.check` verifies them.

    Raises
    ------
    InputError
        For tasks, nodes or words that cannot be used.

    Notes
    -----
    On equal nodes these are EDF-OPR-MN and EDF-EXACT-N (or FIFO-...). "opr" is decided exactly,
    and so is "exact" for up to five nodes, of which all sets in all orders are tried. Of more, one
    node after another is chosen, with which most is carried in the order of links or of releases;
    `least` says how many nodes are proved to be needed.

    References
    ----------
    Papers M and I, their future work; paper M, section 5 (the test).

    Examples
    --------
    The slow node alone would be late, the fast one is not.

    >>> nodes = pd.DataFrame({"cms": [1, 2], "cps": [9, 2]})
    >>> tasks = pd.DataFrame({"arrival": [0, 1], "sigma": [3, 3], "deadline": [12, 40]})
    >>> s = simulate_unequal(tasks, nodes)
    >>> s.tasks[["admitted", "start", "nodes", "completion"]].values.tolist()
    [[True, 0.0, 1, 12.0], [True, 1.0, 1, 31.0]]
    >>> s.chunks["node"].tolist()
    [1, 0]
    """
    cms, cps = node_columns(nodes)
    option("order", order, ORDERS)
    option("partition", partition, PARTITIONS)
    option("link", link, SWITCHES["link"])
    arrival, sigma, deadline = sorted_columns(tasks)
    origin, by_link = clock_origin(arrival), np.lexsort((cps, cms))
    span = float(sigma.min() * (cms + cps).min()) if len(sigma) else 0.0
    server = _Nodes(cms[by_link], cps[by_link], partition, span)
    served = _admit(arrival - origin, sigma, deadline, server, order == "edf", link == "shared")
    given = pd.DataFrame({"arrival": arrival, "sigma": sigma, "deadline": deadline}, tasks.index)
    tables = _of_tasks(given, served, origin), _of_chunks(given, served, by_link, origin, cms)
    return UnequalSchedule(*tables, nodes, order, partition, link, given)


def _admit(
    arrival: Floats, sigma: Floats, deadline: Floats, server: _Nodes, edf: bool, shared: bool
) -> list[_Served]:
    """Return how those are served who are admitted, in order of dispatch (paper M, section 5).

    Those ahead of a newcomer keep the plan in force, which is what planning them anew gives.
    """
    due = arrival + deadline
    limit, sizes = latest_finish(due, deadline).tolist(), sigma.tolist()
    by_due = places(due, server.span).tolist() if edf else [0.0] * len(due)
    rank = [(place, i) for i, place in enumerate(by_due)]
    ran, plan, now = list[_Served](), list[_Served](), -np.inf
    none, idle = np.empty(0), np.full(len(server.room.cms), -np.inf)
    last = _Served(-1, -np.inf, -np.inf, 0, none.astype(int), none, none, none, idle, -np.inf)
    for x, at in enumerate(arrival.tolist()):
        while plan and at > now and plan[0].start <= latest_finish(at, server.span):
            last = plan.pop(0)
            ran.append(last._replace(release=none))
        now, made = at, list[_Served]()
        place = bisect(plan, rank[x], key=lambda one: rank[one.task])
        before = plan[place - 1] if place else last
        for i in (x, *(one.task for one in plan[place:])):
            floor = max(now, before.start, before.link if shared else -np.inf)
            found = server.serve(i, sizes[i], limit[i], floor, before.release, before.link)
            if found is None:
                break
            made.append(found)
            before = found
        else:
            plan[place:] = made
    return ran + plan


def _of_tasks(given: pd.DataFrame, served: list[_Served], origin: float) -> pd.DataFrame:
    """Return what became of every task."""
    start, end = np.full((2, len(given)), np.nan)
    nodes, least = np.zeros((2, len(given)), dtype=np.int64)
    for one in served:
        start[one.task], end[one.task] = origin + one.start, origin + one.end
        nodes[one.task], least[one.task] = len(one.who), one.least
    columns = {"admitted": nodes > 0, "start": start, "nodes": nodes, "completion": end}
    return given.assign(**columns, least=least)


def _of_chunks(
    given: pd.DataFrame, served: list[_Served], by_link: NDArray[np.int64], origin: float,
    cms: Floats,
) -> pd.DataFrame:  # fmt: skip
    """Return the chunks of all tasks that are served."""
    rows = np.repeat([one.task for one in served], [len(one.who) for one in served]).astype(int)
    who, load, begin, done = (
        np.concatenate([np.empty(0), *(getattr(one, name) for one in served)])
        for name in ("who", "load", "begin", "done")
    )
    node, alpha = by_link[who.astype(int)], load / np.bincount(rows, load, len(given))[rows]
    times = {"send_start": begin, "send_end": begin + load * cms[node], "compute_end": done}
    columns = {"task": given.index[rows], "node": node, "alpha": alpha}
    return pd.DataFrame(columns | {name: origin + at for name, at in times.items()})
