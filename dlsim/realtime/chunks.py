"""Lay a schedule out as chunks: which node receives which share, and when."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dlsim.errors import ScheduleError
from dlsim.kernel import kernel, same_instant
from dlsim.realtime.model import Cluster, Reading
from dlsim.realtime.partition import table_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def fill_chunks(order, first, start, sigma, nodes, end, costs, unit, lead, free, ints, times):  # type: ignore[no-untyped-def]
    r"""Fill one row per chunk, sends in sequence from the task's start.

    Shares by the recurrence of paper M, :math:`\alpha_{j+1} = \beta\alpha_j - \phi`.

    Parameters
    ----------
    order, first : ndarray of int
        Tasks by start, and the first row of each.
    start, sigma, nodes, end : ndarray, shape (m,)
        The schedule.
    costs : tuple of float
        Cms, Cps, ST, SC.
    unit, lead : ndarray
        Coefficients of a `Table`; a difference of absolute times would lose digits.
    free : ndarray of float, shape (N,)
        When each node becomes idle; updated.
    ints : ndarray of int, shape (rows, 2)
        Output: task position and node.
    times : ndarray of float, shape (rows, 4)
        Output: alpha, send_start, send_end, compute_end.

    Returns
    -------
    int
        -1, or the first task that found too few idle nodes.
    """
    cms, cps, st, sc = costs
    w = cms + cps
    for task in order:
        row, stop, clock = first[task], first[task] + nodes[task], start[task]
        size, n = sigma[task], nodes[task]
        alpha, phi = (lead[n] + size * unit[n]) / (size * w), st / (size * w)
        for node in range(len(free)):
            if row == stop:
                break
            if not (free[node] <= start[task] or same_instant(free[node], start[task])):
                continue
            free[node] = end[task]
            ints[row, 0], ints[row, 1] = task, node
            times[row, 0], times[row, 1] = alpha, clock
            clock = clock + (st + alpha * size * cms)
            times[row, 2], times[row, 3] = clock, clock + (sc + alpha * size * cps)
            alpha = alpha * (cps / w) - phi
            row += 1
        if row < stop:
            return task
    return -1


def plain(label: object) -> object:
    """Return an index label as it prints best: numpy's 48 as 48.

    Parameters
    ----------
    label : object
        Any label.

    Returns
    -------
    object
        The same value.
    """
    return label.item() if isinstance(label, np.generic) else label


def told(name: str, reading: Reading) -> str:
    """Say under what a rule was broken, for the message.

    Parameters
    ----------
    name : str
        Legend name of the policy.
    reading : Reading
        How the paper was understood.

    Returns
    -------
    str
        Policy and the switches that differ from the default.
    """
    return f"{name}, reading {reading.changes()}"


def lay_out(tasks: pd.DataFrame, cluster: Cluster, under: str) -> pd.DataFrame:
    """Return the chunks of every task that ran.

    Parameters
    ----------
    tasks : DataFrame
        `Schedule.tasks`.
    cluster : Cluster
        Nodes and costs.
    under : str
        Policy and reading for the message, as of `told`.

    Returns
    -------
    DataFrame
        task node alpha send_start send_end compute_end, in order of dispatch and
        transmission; nodes numbered from 0, the lowest idle ones serve.

    Raises
    ------
    ScheduleError
        If a task starts when too few nodes are idle.
    """
    ran = tasks[tasks["start"].notna()].sort_values("start", kind="stable")
    counts = ran["nodes"].to_numpy()
    first = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(ran) else counts
    ints: NDArray[np.int64] = np.empty((int(counts.sum()), 2), dtype=np.int64)
    times = np.empty((len(ints), 4))
    columns = (ran[name].to_numpy(dtype=float) for name in ("start", "sigma", "completion"))
    start, sigma, end = columns
    costs = (float(cluster.cms), float(cluster.cps), float(cluster.st), float(cluster.sc))
    free = np.full(cluster.nodes, -np.inf)
    table = table_of(cluster)
    bad = fill_chunks(
        np.arange(len(ran)), first, start, sigma, counts, end, costs, table.unit, table.lead,
        free, ints, times,
    )  # fmt: skip
    if bad >= 0:
        raise ScheduleError(
            f"a task starts on idle nodes: broken by task {plain(ran.index[bad])!r} ({under}), "
            f"which starts on {counts[bad]} nodes at {start[bad]} when fewer are idle"
        )
    chunks = pd.DataFrame(times, columns=["alpha", "send_start", "send_end", "compute_end"])
    chunks.insert(0, "node", ints[:, 1])
    chunks.insert(0, "task", ran.index.to_numpy()[ints[:, 0]])
    return chunks


def has_positive_shares(tasks: pd.DataFrame, cluster: Cluster) -> "NDArray[np.bool_]":
    """Tell per task that ran whether all its shares are positive (n <= N*).

    Parameters
    ----------
    tasks : DataFrame
        `Schedule.tasks`.
    cluster : Cluster
        Nodes and costs.

    Returns
    -------
    ndarray of bool
        True for tasks that did not run.
    """
    least = table_of(cluster).least[tasks["nodes"].to_numpy()]
    return np.asarray((tasks["sigma"].to_numpy() > least) | (tasks["nodes"].to_numpy() == 0))
