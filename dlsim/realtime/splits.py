"""One load on nodes with given release times: which share goes where, and when it is done.

The friendly face of `dlsim.realtime.core.releases`, for experiments without an admission test.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dlsim.errors import InputError
from dlsim.given import MOST, column, floats, instance, number, option
from dlsim.kernel import clock_origin, records
from dlsim.realtime.core.demand import divide, fill_releases, lay
from dlsim.realtime.core.state import TASK, fresh_state
from dlsim.realtime.model import (
    KINDS,
    MOST_ROUNDS,
    PARTITIONS,
    Cluster,
    Policy,
    Reading,
    check_partition,
    check_rounds,
)
from dlsim.realtime.partition import Floats, table_for
from dlsim.realtime.run import rules_of


class Split(NamedTuple):
    """How one load is split.

    Attributes
    ----------
    kind : str
        What it was split by, one of `dlsim.realtime.model.KINDS`: under partitions I
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
    nodes = "user" if partition == "pieces" else "min"
    rules = rules_of(cluster, Policy("fifo", nodes, partition, rounds), Reading())
    q, s = records(1, TASK), fresh_state(len(times), rules, 0.0)
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
