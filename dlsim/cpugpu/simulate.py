"""Simulate jobs on CPUs and GPUs under a policy, once or batch after batch (paper C, section 5)."""

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pandas as pd

from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import lb_fractional
from dlsim.cpugpu.model import CLASSES, EXPLORING, AnyPolicy, Machine, Policy, Reading, read_policy
from dlsim.cpugpu.result import ScheduleResult
from dlsim.cpugpu.scheduler import require_reading_and_history, simulate_jobs
from dlsim.cpugpu.workload import JobTable, read_job_table
from dlsim.errors import InputError
from dlsim.validate import instance, one_of, unwrap_scalar


def simulate(
    jobs: pd.DataFrame,
    machine: Machine,
    policy: AnyPolicy,
    reading: Reading | None = None,
    engine: str = "auto",
    *,
    history: History | None = None,
    ignore: Collection[str] = (),
) -> ScheduleResult:
    """Schedule jobs on CPUs and GPUs as they arrive, under one policy and one reading.

    Parameters
    ----------
    jobs : DataFrame
        Columns app, arrival, cpu_time, gpu_time (realised; NaN: no version), and
        cpu_estimate, gpu_estimate (declared; default: the realised ones). Sorted by
        arrival, which with the table order is the queue order; index = job id.
    machine : Machine
        The devices.
    policy : str or Policy or callable
        A name of `POLICIES`, a record, a rule of one's own (see `Policy`), or ``FILE.py:name``.
    reading : Reading, optional
        How the gaps of the paper are filled; default `Reading()`.
    engine : {"auto", "python"}
        As of the other engines; this one has no compiled version.
    history : History, optional
        What is known at the start; default nothing. It is not changed.
    ignore : collection of str
        Further columns of `jobs`, which are not read.

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
    >>> shown = r.jobs[["device", "start", "completion", "rule"]]
    >>> shown.to_numpy().tolist()  # doctest: +NORMALIZE_WHITESPACE
    [['gpu0', 0.0, 10.0, 'R2*'], ['cpu0', 0.0, 40.0, 'R2'],
     ['gpu0', 10.0, 20.0, 'R3'], ['gpu0', 20.0, 30.0, 'R3']]
    """
    instance("machine", machine, Machine)
    if engine == "compiled":
        what = (
            "engine must be auto or python, got 'compiled': paper C's engine has no compiled core"
        )
        raise InputError(f"{what}; leave engine out")
    one_of("engine", engine, ("auto", "python"))
    reading, known = require_reading_and_history(reading, history)
    name, policy = read_policy(policy)
    job_table = read_job_table(jobs, machine, ignore)
    require_target_versions(job_table, policy, name)
    trace = simulate_jobs(job_table, machine, policy, reading, known)
    places = np.arange(len(job_table.labels))
    columns = {
        "app": job_table.app_names.array.take(job_table.app),
        "arrival": job_table.arrival.copy(),
        "decided": trace.time_offset + trace.decided,
        "turn": trace.turn,
        "device": pd.Series(machine.devices).array.take(trace.device),
        "start": trace.time_offset + trace.start,
        "completion": trace.time_offset + trace.completion,
        "rule": trace.rules,
        "predicted": trace.time_offset + trace.predicted_finish[places, trace.device],
    }
    table = pd.DataFrame(columns, index=job_table.labels, copy=False)
    return ScheduleResult(table, machine, policy, name, reading, known, job_table, trace)


def require_target_versions(table: JobTable, policy: Policy, name: str) -> None:
    """Refuse jobs without a version for the one class that a policy uses."""
    has_target = policy.record is not None and "target" in policy.record.options
    if has_target and policy.target != "preferred":
        has_version = table.has_version[:, CLASSES.index(policy.target)]
        if not has_version.all():
            j = int(np.argmin(has_version))
            job = unwrap_scalar(table.labels[j])
            raise InputError(
                f"policy {name} runs everything on a {policy.target}, and job "
                f"{job!r} ({table.app_names[table.app[j]]}) has no version for one "
                "on this machine; use preferred"
            )


def learn(
    jobs: pd.DataFrame,
    machine: Machine,
    policies: Sequence[AnyPolicy],
    reading: Reading | None = None,
    *,
    history: History | None = None,
) -> pd.DataFrame:
    """Run batches of jobs one after another, the history of each policy handed on.

    Every batch finds the machine idle.

    Parameters
    ----------
    jobs : DataFrame
        As of `simulate`, with a column batch, as `workload.random_jobs` draws them.
    machine : Machine
        The devices.
    policies : sequence of str or Policy or callable
        What is compared.
    reading : Reading, optional
        Default `Reading()`.
    history : History, optional
        What every policy knows at the start; default nothing.

    Returns
    -------
    DataFrame
        Columns policy, batch (its number, from 0), makespan, mean_wait, mean_completion, explored
        (jobs placed by rule 2) and bound (lower bound of the makespan), a row per policy and batch.

    Raises
    ------
    InputError
        For anything that `simulate` refuses, or jobs without batches.
    """
    instance("machine", machine, Machine)
    reading, start = require_reading_and_history(reading, history)
    if isinstance(policies, str) or not isinstance(policies, Iterable):
        raise InputError(f"policies must be a list of names or of Policy, got {policies!r}")
    whole_table = read_job_table(jobs, machine)
    if "batch" not in jobs:
        raise InputError("jobs need the column batch, which says what is scheduled together")
    batch_of_job = pd.factorize(jobs["batch"])[0]
    batches = np.split(np.argsort(batch_of_job, kind="stable"), np.bincount(batch_of_job).cumsum())
    parts = [whole_table.select(places) for places in batches[:-1]]
    bounds = [lb_fractional(part.arrival, part.times, machine.gpus) for part in parts]
    rows = []
    for one in policies:
        name, policy = read_policy(one)
        require_target_versions(whole_table, policy, name)
        known = start.copy()
        for batch, job_table in enumerate(parts):
            trace = simulate_jobs(job_table, machine, policy, reading, known)
            count, arrival = len(job_table.arrival), job_table.arrival - trace.time_offset
            explored = sum(rule in EXPLORING for rule in trace.rules)
            waits, responses = trace.start - arrival, trace.completion - arrival
            means = math.fsum(waits) / count, math.fsum(responses) / count
            makespan = trace.completion.max() - arrival[0]
            bound = bounds[batch] - job_table.arrival[0]
            rows.append((name, batch, makespan, *means, explored, bound))
    names = ["policy", "batch", "makespan", "mean_wait", "mean_completion", "explored", "bound"]
    return pd.DataFrame(rows, columns=names)
