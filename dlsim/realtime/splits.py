"""One load on nodes with given release times: which share goes where, and when it is done.

The friendly face of `dlsim.realtime.releases`, for experiments without an admission test.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dlsim.errors import InputError
from dlsim.given import MOST, column, floats, instance, number, option
from dlsim.kernel import clock_origin
from dlsim.realtime.model import (
    IN_ROUNDS,
    MOST_ROUNDS,
    PARTITIONS,
    WITHOUT_SETUP,
    Cluster,
    check_rounds,
)
from dlsim.realtime.partition import Floats, Table, table_of
from dlsim.realtime.releases import KINDS
from dlsim.realtime.settle import divide, fill_releases, lay
from dlsim.realtime.state import (
    CAPACITY,
    FEWEST,
    FRAGMENT,
    SCAN,
    TASK,
    Rules,
    fresh_state,
)


class Split(NamedTuple):
    """How one load is split.

    Attributes
    ----------
    kind : str
        What it was split by, one of `dlsim.realtime.releases.KINDS`: under partitions I
        and II "equal finish" where the constraint holds, else "remodel".
    release : ndarray of float, shape (n,)
        Release times of the nodes that serve, ascending.
    alpha, send_start, send_end, compute_end : ndarray of float, shape (n,) or (rounds, n)
        Shares and times as they really happen.
    estimate, completion : float
        Completion as planned, and the last `compute_end`; never after it.
    """

    kind: str
    release: Floats
    alpha: Floats
    send_start: Floats
    send_end: Floats
    compute_end: Floats
    estimate: float
    completion: float


@functools.lru_cache(maxsize=256)
def table_for(cluster: Cluster, partition: str) -> Table:
    r"""Tabulate the execution time on nodes that start together, for one partition.

    .. math:: \mathcal{E}_{eq} = n ST + SC + \sigma C_{ms} + \sigma C_{ps}/n, \qquad
              \mathcal{E}_{piece} = ST + SC + \sigma (C_{ms} + C_{ps})/n
    """
    table = table_of(cluster)
    if partition not in ("equal", "pieces"):
        return table
    n = np.maximum(1, np.arange(cluster.nodes + 2, dtype=float))
    blank = np.zeros(len(n))
    if partition == "pieces":
        unit, fixed, least = (cluster.cms + cluster.cps) / n, blank + cluster.st + cluster.sc, blank
    else:
        unit, fixed = cluster.cms + cluster.cps / n, n * cluster.st + cluster.sc
        gain = n * (n - 1) * cluster.st
        with np.errstate(divide="ignore", over="ignore"):
            least = np.where(gain > 0, gain / cluster.cps if cluster.cps > 0 else np.inf, 0.0)
    table = Table(unit, fixed, least, blank, blank, blank)
    for array in table:
        array.flags.writeable = False
    return table


def check_partition(partition: str, rounds: int | str, cluster: Cluster) -> None:
    """Refuse a partition on a cluster for which it is not defined."""
    if partition in WITHOUT_SETUP and (cluster.st > 0 or cluster.sc > 0):
        raise InputError(
            f"partition {partition!r} knows no set-up times (paper I, section 3); got "
            f"st={cluster.st}, sc={cluster.sc}: use st=0, sc=0, or partition 'opr'"
        )
    if partition in IN_ROUNDS and cluster.cms == 0:
        raise InputError(
            f"partition {partition!r} needs cms > 0, got 0: without transmission one round does"
        )
    if partition in IN_ROUNDS and rounds == "best" and cluster.st == 0 and cluster.sc == 0:
        raise InputError(
            "rounds='best' needs set-up times: with st = sc = 0 more rounds are always faster; "
            "give a number of rounds"
        )


def rules_of(cluster: Cluster, partition: str, rounds: int | str = 1, nodes: str = "min") -> Rules:
    """Return the planner's switches for a partition under the default reading, FIFO."""
    method = {"umr": SCAN, "umr-iit": SCAN, "exact-n": CAPACITY}.get(partition, FEWEST)
    flags: dict[str, Any] = dict.fromkeys(Rules._fields, False)
    flags |= {
        "nodes": int(cluster.nodes), "cms": float(cluster.cms), "cps": float(cluster.cps),
        "st": float(cluster.st), "sc": float(cluster.sc), "negotiate": 0.0, "strict": True,
        "in_line": True, "part": PARTITIONS.index(partition),
        "method": FRAGMENT if nodes == "fragment" else method, "all_nodes": nodes == "all",
        "rounds": 0 if rounds == "best" else int(rounds),
    }  # fmt: skip
    return Rules(**flags)


def _release_times(release: Sequence[float], cluster: Cluster) -> Floats:
    times = floats(release)
    if times.ndim != 1 or not 1 <= len(times) <= cluster.nodes or not np.isfinite(times).all():
        raise InputError(
            f"release must hold 1..{cluster.nodes} finite times, one per node; got {release!r}"
        )
    return np.sort(column("release", times, -MOST))


def split_load(
    sigma: float,
    release: Sequence[float],
    cluster: Cluster,
    partition: str = "exact",
    rounds: int | str = 1,
) -> Split:
    """Split one load over nodes that become free at given times.

    Parameters
    ----------
    sigma : float
        Data size.
    release : sequence of float, shape (n,)
        When each node is released, in any order; 1 <= n <= N.
    cluster : Cluster
        Costs of the cluster.
    partition : str
        One of `PARTITIONS`; ``exact-n`` is ``exact`` here, the nodes being given.
    rounds : int or "best"
        Of the multi-round partitions.

    Returns
    -------
    Split
        Shares and times by node, in order of release.

    Raises
    ------
    InputError
        For a size that is not positive, times that are not finite, more nodes than N, a
        partition that the cluster has no use for, or one that gives a share that is not
        positive.

    References
    ----------
    Paper I, eqs. (2)-(4) and Constraints 1, 2; [6] for the remodel.

    Examples
    --------
    Two of three nodes are enough: the third would be released after the load is done.

    >>> s = split_load(14, [0, 21, 90], Cluster(nodes=3, cms=1, cps=3), "exact")
    >>> s.alpha.round(9).tolist(), round(s.completion, 9)
    ([0.6875, 0.3125], 38.5)
    """
    instance("cluster", cluster, Cluster)
    option("partition", partition, PARTITIONS)
    sigma = number("sigma", sigma, above=True, rule="a finite size above 0")
    check_rounds(partition, rounds)
    check_partition(partition, rounds, cluster)
    times = _release_times(release, cluster)
    rules = rules_of(cluster, partition, rounds)
    q, s = np.zeros(1, TASK).view(np.recarray), fresh_state(len(times), rules, 0.0)
    s = s._replace(release=np.empty(len(times)), rows=np.empty((len(times) * MOST_ROUNDS, 4)))
    q["sigma"], q["top"] = float(sigma), len(times)
    if cluster.cps == 0 and partition in ("exact", "exact-n"):  # computing is free
        times = times[:1]
    origin = clock_origin(times)
    groups, sizes = np.unique(times - origin, return_counts=True)
    s.pool["time"][: len(groups)], s.pool["nodes"][: len(groups)] = groups, sizes
    table = table_for(cluster, partition)
    kind, m, _, end, n, filled = divide(0, len(times), len(groups), q, rules, s, table)
    fill_releases(filled, s)
    completion, _ = lay(0, kind, m, n, end, q, rules, s, table)
    rows = s.rows[: m * n].reshape((m, n, 4) if m > 1 else (n, 4))
    estimate = completion if KINDS[kind] == "rounds from releases" else end
    share = rows[..., 0].copy()
    sent, received, done = (origin + rows[..., k] for k in (1, 2, 3))
    if share.min() <= 0:
        raise InputError(
            f"partition {partition!r} gives a node the share {share.min():.3g}, and shares must be "
            "positive: give fewer release times, or use partition 'exact', which leaves nodes out"
        )
    return Split(
        KINDS[kind], origin + s.release[:n], share, sent, received, done,
        float(origin + estimate), float(origin + completion),
    )  # fmt: skip
