"""Simulate jobs on CPUs and GPUs under a policy, once or batch after batch (paper C, section 5)."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from dlsim.cpugpu import workload
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import lb_fractional
from dlsim.cpugpu.job_table import (
    read_job_table,
    require_reading_and_history,
    require_target_versions,
)
from dlsim.cpugpu.loop import simulate_jobs
from dlsim.cpugpu.model import POLICIES, Machine, Policy, Reading, find_job_policy
from dlsim.cpugpu.outcome import ScheduleResult
from dlsim.errors import InputError
from dlsim.validate import or_default

#: Every policy that a queue of any length can have.
ONLINE = tuple(name for name, policy in POLICIES.items() if not policy.is_planned)


def simulate(
    jobs: pd.DataFrame,
    machine: Machine | None = None,
    policy: str | Policy = "history",
    history: History | None = None,
    reading: Reading | None = None,
) -> ScheduleResult:
    """Schedule jobs on CPUs and GPUs as they arrive, under one policy and one reading.

    Parameters
    ----------
    jobs : DataFrame
        Columns app, arrival, cpu_time, gpu_time (realised; NaN: no version), and
        cpu_estimate, gpu_estimate (declared; default: the realised ones). Sorted by
        arrival, which with the table order is the queue order; index = job id.
    machine : Machine, optional
        The devices; default one CPU and one GPU.
    policy : str or Policy
        A name of `POLICIES` or a row of one's own.
    history : History, optional
        What is known at the start; default nothing. It is not changed.
    reading : Reading, optional
        How the gaps of the paper are filled; default `Reading()`.

    Returns
    -------
    ScheduleResult
        Tables of what was decided; `ScheduleResult.check` verifies them.

    Raises
    ------
    InputError
        For jobs, a machine, a policy, a history or a reading that cannot be used.

    References
    ----------
    Paper C, section 5 (the five rules), sections 6 and 7 (rivals).

    Examples
    --------
    >>> jobs = pd.DataFrame({"app": "A", "arrival": [0.0] * 4, "cpu_time": 40.0,
    ...                      "gpu_time": 10.0})
    >>> r = simulate(jobs, Machine(cpus=1, gpus=1), "history")
    >>> r.jobs[["device", "start", "end", "rule"]].values.tolist()  # doctest: +NORMALIZE_WHITESPACE
    [['gpu0', 0.0, 10.0, 'R2*'], ['cpu0', 0.0, 40.0, 'R2'],
     ['gpu0', 10.0, 20.0, 'R3'], ['gpu0', 20.0, 30.0, 'R3']]
    """
    machine = or_default("machine", machine, Machine)
    reading, known = require_reading_and_history(reading, history)
    name, policy = find_job_policy(policy)
    job_table = read_job_table(jobs, machine)
    require_target_versions(job_table, policy, name)
    trace = simulate_jobs(job_table, machine, policy, reading, known)
    places = np.arange(len(job_table.labels))
    columns = {
        "app": job_table.app_names.array.take(job_table.app),
        "arrival": job_table.arrival.copy(),
        "decided": trace.time_offset + trace.decided,
        "turn": trace.decision_no,
        "device": pd.Series(machine.devices).array.take(trace.device),
        "start": trace.time_offset + trace.start,
        "end": trace.time_offset + trace.end,
        "rule": trace.rules,
        "predicted": trace.time_offset + trace.predicted_finish[places, trace.device],
    }
    table = pd.DataFrame(columns, index=job_table.labels, copy=False)
    return ScheduleResult(table, machine, policy, name, reading, known, job_table, trace)


def learn(
    mix: str = "lee",
    policies: Sequence[str | Policy] = ONLINE,
    *,
    batches: int = 8,
    jobs: int = 24,
    apps: int = 12,
    machine: Machine | None = None,
    reading: Reading | None = None,
    cv: float = 0.1,
    outliers: float = 0.02,
    factor: float = 5.0,
    error: float = 0.0,
    table: pd.DataFrame | None = None,
    history: History | None = None,
    seed: workload.Seed = 0,
) -> pd.DataFrame:
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
        Noise, as of `workload.random_jobs`.
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
        For anything that `workload.random_jobs` or `simulate` refuses.
    """
    machine = or_default("machine", machine, Machine)
    reading, start = require_reading_and_history(reading, history)
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise InputError(f"policies must be a list of names or of Policy, got {policies!r}")
    if table is None:
        table = workload.applications(mix, apps, seed)
    drawn = workload.random_jobs(table, jobs, seed, cv, outliers, factor, error, batches)
    parts = [read_job_table(part, machine) for _, part in drawn.groupby("batch", sort=False)]
    bounds = [lb_fractional(part.arrival, part.times, machine.gpus) for part in parts]
    rows = []
    for one in policies:
        name, policy = find_job_policy(one)
        known = start.copy()
        for batch, job_table in enumerate(parts):
            require_target_versions(job_table, policy, name)
            trace = simulate_jobs(job_table, machine, policy, reading, known)
            explored = sum(rule in ("R2", "R2*") for rule in trace.rules)
            means = math.fsum(trace.start) / jobs, math.fsum(trace.end) / jobs
            rows.append((name, batch, trace.end.max(), *means, explored, bounds[batch]))
    names = ["policy", "batch", "makespan", "mean_wait", "mean_completion", "explored", "bound"]
    return pd.DataFrame(rows, columns=names)
