"""Lay a schedule out as chunks: which node receives which share, and when."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dlsim.errors import ScheduleError
from dlsim.given import label
from dlsim.kernel import CLOCK, clock_origin, kernel, same_instant
from dlsim.realtime.model import Cluster, Policy, Reading
from dlsim.realtime.partition import Table, table_of
from dlsim.realtime.releases import EQUAL, OPR, PIECES, ROUNDS, spread
from dlsim.realtime.splits import table_for

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def choose_nodes(start, n, early, span, free, chosen, release):  # type: ignore[no-untyped-def]
    """Find n nodes for a task: the lowest idle ones, then those that are released first."""
    found = 0
    for node in range(len(free)):
        if found < n and (free[node] <= start or same_instant(free[node], start, span)):
            chosen[found], release[found] = node, start
            found += 1
    if found < n and not early:
        return False
    after, last = start, -1  # in order of (free, node)
    while found < n:
        best = -1
        for node in range(len(free)):
            time = free[node]
            if time <= start or same_instant(time, start, span):
                continue
            passed = time < after or (time == after and node <= last)
            if not passed and (best < 0 or time < free[best]):
                best = node
        if best < 0:
            return False
        after, last = free[best], best
        chosen[found], release[found] = best, free[best]
        found += 1
    return True


@kernel
def fill_chunks(runs, first, times, costs, unit, lead, own, span, free, chosen, release, ints, out):  # type: ignore[no-untyped-def]
    r"""Fill one row per chunk, task by task in order of dispatch."""
    shared, finish = own
    for task in range(len(runs)):
        n, kind, rounds = runs[task, 0], runs[task, 1], runs[task, 2]
        size, start, end = times[task, 0], times[task, 1], times[task, 2]
        early = kind != OPR and kind != EQUAL and kind != ROUNDS
        if not choose_nodes(start, n, early, span, free, chosen, release):
            return task
        base = first[task]
        spread(kind, release, n, size, rounds, end, costs, unit, lead, shared, out, base)
        for row in range(base, base + n * rounds):
            ints[row, 0], ints[row, 1] = task, chosen[(row - base) % n]
        for k in range(n):
            single = kind == PIECES or (finish and kind != OPR)
            free[chosen[k]] = out[base + (rounds - 1) * n + k, 3] if single else end
    return -1


def told(name: str, reading: Reading) -> str:
    """Say under what a rule was broken, for the message."""
    return f"{name}, reading {reading.changes()}"


def lay_out(
    tasks: pd.DataFrame, runs: pd.DataFrame, cluster: Cluster, policy: Policy, reading: Reading,
    under: str,
) -> pd.DataFrame:  # fmt: skip
    """Return the chunks of every task that ran."""
    ran = tasks[tasks["start"].notna()].join(runs)
    by = ["turn"] if policy.partition != "opr" else ["start"]
    ran = ran.sort_values(by, kind="stable")
    how = ran[["nodes", "kind", "rounds"]].to_numpy(dtype=np.int64)
    counts = how[:, 0] * how[:, 2]
    first = np.concatenate([[0], np.cumsum(counts)[:-1]]) if len(ran) else counts
    ints: NDArray[np.int64] = np.empty((int(counts.sum()), 2), dtype=np.int64)
    out, free = np.empty((len(ints), 4)), np.full(cluster.nodes, -np.inf)
    times = ran[["sigma", "start", "estimate"]].to_numpy(dtype=float, copy=True)
    origin = clock_origin(tasks["arrival"].to_numpy(dtype=float))
    finer = ran[["began", "until"]].to_numpy(dtype=float)  # unless the table says otherwise
    times[:, 1:] = np.where(origin + finer == times[:, 1:], finer, times[:, 1:] - origin)
    costs = (float(cluster.cms), float(cluster.cps), float(cluster.st), float(cluster.sc))
    table = table_for(cluster, policy.partition)
    own = reading.link == "shared", reading.release == "finish"
    # a table holds no instant more exactly than its clock
    span = span_of(tasks["sigma"].to_numpy(dtype=float), table) + origin / CLOCK
    work = np.empty(cluster.nodes, dtype=np.int64), np.empty(cluster.nodes)
    given = (times, costs, table.unit, table.lead, own, span, free)
    bad = fill_chunks(how, first, *given, *work, ints, out)
    if bad >= 0:
        raise ScheduleError(
            f"a task starts on idle nodes: broken by task {label(ran.index[bad])!r} ({under}), "
            f"which starts on {how[bad, 0]} nodes at {origin + times[bad, 1]} when fewer are idle"
        )
    out[:, 1:] += origin
    chunks = pd.DataFrame(out, columns=["alpha", "send_start", "send_end", "compute_end"])
    chunks.insert(0, "node", ints[:, 1])
    chunks.insert(0, "task", ran.index.to_numpy()[ints[:, 0]])
    return chunks


def span_of(sigma: "NDArray[np.float64]", table: Table) -> float:
    """Return the scale at which two instants are one: the time of the least load on one node."""
    return float(table.fixed[1] + sigma.min() * table.unit[1]) if len(sigma) else 0.0


def has_positive_shares(tasks: pd.DataFrame, cluster: Cluster) -> "NDArray[np.bool_]":
    """Tell per task that ran whether the optimal partitioning rule gives it positive shares."""
    least = table_of(cluster).least[tasks["nodes"].to_numpy()]
    return np.asarray((tasks["sigma"].to_numpy() > least) | (tasks["nodes"].to_numpy() == 0))
