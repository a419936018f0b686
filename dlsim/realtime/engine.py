"""Simulate real-time divisible loads on one cluster, and split one load (papers M and I).

`simulate` checks its input, `dlsim.realtime.policy_run` runs the policy, and
`dlsim.realtime.outcome` holds the result. `split_load` splits one load by
`dlsim.realtime.core.splits`, without an admission test.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.compiled import time_offset, zero_recarray
from dlsim.errors import InputError
from dlsim.realtime import model
from dlsim.realtime.core_versions import core_for
from dlsim.realtime.execution_times import SIZE, time_table
from dlsim.realtime.model import MOST_ROUNDS, SPLIT_KINDS, Cluster, Policy, Reading
from dlsim.realtime.outcome import Schedule
from dlsim.realtime.policy_run import make_rules, run_policy
from dlsim.realtime.schedule_arrays import TaskTable
from dlsim.user_code import calling_user_code
from dlsim.validate import Floats, column, instance, number, or_default, require_table


def simulate(
    tasks: pd.DataFrame,
    cluster: Cluster,
    policy: str | Policy,
    reading: Reading | None = None,
    negotiate: float = 0.0,
    engine: str = "auto",
) -> Schedule:
    """Schedule divisible tasks as they arrive, under one policy and one reading.

    Parameters
    ----------
    tasks : DataFrame
        Columns arrival, sigma, deadline (relative), and user_nodes for User Split; index
        = task id. Sorted by arrival; tasks with one arrival time are one batch.
    cluster : Cluster
        Nodes and costs.
    policy : str or Policy
        A name of `POLICIES`, a `Policy` of your own, or its name as ``FILE.py:name`` or
        ``module:name``.
    reading : Reading, optional
        How ambiguous sentences are understood; default `Reading()`.
    negotiate : float
        0 for no negotiation; x >= 1: a refused task accepts the smallest admissible
        deadline if it is at most x times its own.
    engine : {"auto", "compiled", "python"}
        The same decisions at two speeds: compiled, which takes some 20 s once per version, or
        uncompiled, as "auto" takes small work and functions of a user.

    Returns
    -------
    Schedule
        Tables of what was decided; `Schedule.check` verifies them.

    Raises
    ------
    InputError
        For tasks, a policy, a reading or a factor that cannot be used.

    References
    ----------
    Paper M, section 5 (MCDF and its schedulability test) and section 6.2 (rivals);
    paper I, section 4 (Figure 2), and its references [5], [6], [9].

    Examples
    --------
    >>> tasks = pd.DataFrame({"arrival": [0, 0, 0], "sigma": [6, 18, 6],
    ...                       "deadline": [10, 64, 16]})
    >>> s = simulate(tasks, Cluster(nodes=2, cms=1, cps=1), "FIFOMN")
    >>> s.tasks[["admitted", "start", "nodes", "completion"]].values.tolist()
    [[True, 0.0, 2, 8.0], [True, 8.0, 1, 44.0], [False, nan, 0, nan]]
    >>> s.offer(2).deadline
    20.0
    """
    instance("cluster", cluster, Cluster)
    reading = or_default("reading", reading, Reading, "; see Reading.from_switches(mapping)")
    rule = "0 (off) or a factor of at least 1"
    if number("negotiate", negotiate, rule=rule):
        number("negotiate", negotiate, 1, rule=rule)
    name, policy = model.find_policy(policy)
    model.check_partition(policy.partition, policy.rounds, cluster)
    given = _read_tasks(tasks, policy, cluster)
    about: dict[str, Any] = {"cluster": cluster, "policy": policy, "name": name, "reading": reading}
    if policy.partition == "pieces" and reading.split == "piece":
        if negotiate > 0:
            raise InputError("negotiate needs whole tasks; use the reading split='all'")
        pieces = tasks.iloc[given.owners].reset_index(drop=True)
        pieces = pieces.assign(sigma=pieces["sigma"] / pieces["user_nodes"], user_nodes=1)
        inner = simulate(pieces, cluster, policy, replace(reading, split="all"), engine=engine)
        return Schedule.merge_pieces(inner, given, **about)
    run = run_policy(given, cluster, policy, reading, negotiate, engine=engine)
    about.update(negotiate=float(negotiate), engine=engine)
    return Schedule.from_run(run, given, **about)


def _read_tasks(tasks: pd.DataFrame, policy: Policy, cluster: Cluster) -> TaskTable:
    """Return the columns that are simulated, or refuse the table."""
    arrival, sigma, deadline = model.sorted_columns(tasks)
    wanted = np.zeros(len(tasks), dtype=np.int64)
    if policy.nodes == "user":
        if "user_nodes" not in tasks.columns:
            raise InputError(
                "nodes='user' (User Split) needs a column user_nodes; "
                "workload.user_split(tasks, cluster) draws one"
            )
        known: Any = {"is_whole": True, "row": "task", "labels": tasks.index}
        counts = require_table("tasks", tasks, ["user_nodes"])["user_nodes"]
        wanted = column("user_nodes", counts, 1, cluster.nodes, **known)
    return TaskTable(arrival, sigma, deadline, _static_ranks(tasks, policy), wanted, tasks.index)


def _static_ranks(tasks: pd.DataFrame, policy: Policy) -> Floats:
    """Return the rank of every task in a static order; without one, its arrival."""
    if policy.order_key is None or policy.is_timed:
        return tasks["arrival"].to_numpy(dtype=np.float64)
    rule = (
        f"order function {getattr(policy.order_key, '__name__', 'order')} must return one number "
        f"per task, shape ({len(tasks)},) without NaN"
    )
    with calling_user_code(rule):
        keys = np.array(policy.order_key(tasks))
        keys = keys if keys.dtype.kind in "cmMSU" else keys.astype(np.float64)
    if keys.dtype != np.float64 or keys.shape != (len(tasks),) or np.isnan(keys).any():
        raise InputError(f"{rule}; got {keys.dtype} of shape {keys.shape}")
    # compared exactly: two infinite keys are a tie
    return np.unique(keys, return_inverse=True)[1].astype(np.float64)


class LoadSplit(NamedTuple):
    """How one load is split.

    Attributes
    ----------
    kind : str
        What it was split by, one of `dlsim.realtime.model.SPLIT_KINDS`: under partitions I
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


def split_load(
    sigma: float,
    release: Sequence[float],
    cluster: Cluster,
    partition: str | Callable[..., Any] = "exact",
    rounds: int | str = 1,
) -> LoadSplit:
    """Split one load over nodes that become free at given times.

    Parameters
    ----------
    sigma : float
        Data size.
    release : sequence of float, shape (n,)
        When each node is released, in any order; 1 <= n <= N.
    cluster : Cluster
        Costs of the cluster.
    partition : str or callable
        One of `PARTITIONS`; ``exact-n`` is ``exact`` here, the nodes being given. Or a function, as
        for a `Policy`.
    rounds : int or "best"
        Of the multi-round partitions.

    Returns
    -------
    LoadSplit
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
    nodes = "user" if partition == "pieces" else "min"
    policy = Policy("fifo", nodes, partition, rounds)
    sigma = number("sigma", sigma, above=True, rule=SIZE)
    model.check_partition(partition, rounds, cluster)
    times = model.release_times(release, cluster)
    rules = make_rules(cluster, policy, Reading(), labels=["the load"])
    with core_for(policy, "auto", 1) as core:
        task = zero_recarray(1, core.state.TASK)
        entry = zero_recarray(1, core.state.ENTRY)[0]
        table = time_table(cluster, partition)
        s = core.state.fresh_state(task, rules, table, 0.0, len(times))
        chunks = np.empty((len(times) * MOST_ROUNDS, 4))
        s = s._replace(release=np.empty(len(times)), chunks=chunks)
        task["sigma"], task["n_star"] = float(sigma), len(times)
        if cluster.cps == 0 and partition in ("exact", "exact-n"):  # computing is free
            times = times[:1]
        origin = time_offset(times)
        releases, sizes = np.unique(times - origin, return_counts=True)
        groups, pool = len(releases), s.chosen.releases
        pool["time"][:groups], pool["nodes"][:groups] = releases, sizes
        s.chosen.size.groups = groups
        kind, m, _, end, n, s.chosen.size.groups = core.splits.choose_split(
            0, len(times), s.chosen, s
        )
        core.nodes.fill_releases(s.chosen, s.release)
        entry.nodes, entry.kind, entry.rounds, entry.end = n, kind, m, end
        completion, _ = core.chunks.compute_chunks(entry, chunks, s)
    rows = chunks[: m * n].reshape((m, n, 4) if m > 1 else (n, 4))
    estimate = completion if SPLIT_KINDS[kind] in ("rounds from releases", "own") else end
    share = rows[..., 0].copy()
    if share.min() <= 0:
        raise InputError(
            f"partition {partition!r} gives a node the share {share.min():.3g}, and shares must be "
            "positive: give fewer release times, or use partition 'exact', which leaves nodes out"
        )
    sent, received, done = (origin + rows[..., k] for k in (1, 2, 3))
    ends = float(origin + estimate), float(origin + completion)
    return LoadSplit(SPLIT_KINDS[kind], origin + s.release[:n], share, sent, received, done, *ends)
