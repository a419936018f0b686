"""Simulate real-time divisible loads on one cluster: intake, run, outcome (papers M and I)."""

from dataclasses import replace

import pandas as pd

from dlsim.errors import InputError
from dlsim.given import instance, number, usual
from dlsim.realtime.intake import checked, cut
from dlsim.realtime.model import Cluster, Policy, Reading, check_partition, policy_named
from dlsim.realtime.outcome import Schedule
from dlsim.realtime.run import run_policy


def simulate(
    tasks: pd.DataFrame,
    cluster: Cluster,
    policy: str | Policy,
    reading: Reading | None = None,
    negotiate: float = 0.0,
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
        A name of `POLICIES` or a row of one's own.
    reading : Reading, optional
        How ambiguous sentences are understood; default `Reading()`.
    negotiate : float
        0 for no negotiation; x >= 1: a refused task accepts the smallest admissible
        deadline if it is at most x times its own.

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
    reading = usual("reading", reading, Reading, "; see Reading.of(mapping)")
    rule = "0 (off) or a factor of at least 1"
    if number("negotiate", negotiate, rule=rule):
        number("negotiate", negotiate, 1, rule=rule)
    name, policy = policy_named(policy)
    check_partition(policy.partition, policy.rounds, cluster)
    given = checked(tasks, policy, cluster)
    if policy.partition == "pieces" and reading.split == "piece":
        if negotiate > 0:
            raise InputError("negotiate needs whole tasks; use the reading split='all'")
        inner = simulate(cut(tasks, given), cluster, policy, replace(reading, split="all"))
        return Schedule.of_pieces(inner, given, cluster, policy, name, reading, 0.0)
    run = run_policy(given, cluster, policy, reading, negotiate)
    return Schedule.of(run, given, cluster, policy, name, reading, float(negotiate))
