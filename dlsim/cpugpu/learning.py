"""How the schedule changes as the history fills: batch after batch, policy by policy."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from dlsim.cpugpu import workload
from dlsim.cpugpu.history import History
from dlsim.cpugpu.intake import check_targets, checked, need_known
from dlsim.cpugpu.model import POLICIES, Machine, Policy, Reading, policy_named
from dlsim.cpugpu.run import lower_bound, plan_for, play

#: Every policy that a queue of any length can have.
ONLINE = tuple(name for name, policy in POLICIES.items() if policy.rule != "ideal")


def learn(
    mix: str = "lee", policies: Sequence[str | Policy] = ONLINE, *, batches: int = 8,
    jobs: int = 24, apps: int = 12, machine: Machine | None = None, reading: Reading | None = None,
    cv: float = 0.1, outliers: float = 0.02, factor: float = 5.0, error: float = 0.0,
    table: pd.DataFrame | None = None, history: History | None = None, seed: workload.Seed = 0,
) -> pd.DataFrame:  # fmt: skip
    """Run batches one after another, the history of each policy handed on.

    Every batch finds the machine idle; every policy meets the same jobs and the same
    noise. One replicate: a sweep over seeds gives the study.

    Parameters
    ----------
    mix : str
        A name of `workload.MIXES`; not used where `table` is given.
    policies : sequence of str or Policy
        What is compared.
    batches, jobs, apps : int
        Number of batches, jobs of each, and applications they are drawn from.
    machine : Machine, optional
        Default one CPU and one GPU.
    reading : Reading, optional
        Default `Reading()`.
    cv, outliers, factor, error : float
        Noise, as of `workload.draw`.
    table : DataFrame, optional
        Applications instead of a drawn mix.
    history : History, optional
        What every policy knows at the start; default nothing.
    seed : int or SeedSequence
        Root of the random numbers.

    Returns
    -------
    DataFrame
        Columns policy, batch, makespan, mean_wait, mean_completion, explored (jobs placed
        by rule 2) and bound (lower bound of the makespan), a row per policy and batch.

    Raises
    ------
    InputError
        For anything that `workload.draw` or `simulate` refuses.
    """
    machine, (reading, start) = machine or Machine(), need_known(reading, history)
    if table is None:
        table = workload.applications(mix, apps, seed)
    drawn = workload.draw(table, jobs, seed, cv, outliers, factor, error, batches)
    parts = [checked(part, machine) for _, part in drawn.groupby("batch", sort=False)]
    bounds = [lower_bound(part, machine) for part in parts]
    rows = []
    for one in policies:
        name, policy = policy_named(one)
        known = start.copy()
        for batch, given in enumerate(parts):
            check_targets(given, policy, name)
            plan = plan_for(given, policy, reading)
            trace = play(given, machine, policy, reading, known, plan)
            explored = int(np.isin(trace.rules, ("R2", "R2*")).sum())
            starts, ends = trace.jobs["start"], trace.jobs["end"]
            means = math.fsum(starts) / jobs, math.fsum(ends) / jobs
            rows.append((name, batch, ends.max(), *means, explored, bounds[batch]))
    names = ["policy", "batch", "makespan", "mean_wait", "mean_completion", "explored", "bound"]
    return pd.DataFrame(rows, columns=names)
