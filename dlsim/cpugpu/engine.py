"""Simulate jobs on CPUs and GPUs under one policy: intake, run, outcome (paper C, section 5)."""

from collections.abc import Sequence

import pandas as pd
from numpy.typing import ArrayLike

from dlsim.cpugpu.history import History
from dlsim.cpugpu.intake import check_targets, checked, need_known
from dlsim.cpugpu.model import Machine, Policy, Reading, policy_named
from dlsim.cpugpu.outcome import Schedule
from dlsim.cpugpu.run import plan_for, play


def simulate(
    jobs: pd.DataFrame,
    machine: Machine | None = None,
    policy: str | Policy = "history",
    history: History | None = None,
    reading: Reading | None = None,
    extra: ArrayLike | Sequence[Sequence[float]] | None = None,
) -> Schedule:
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
    extra : array_like of float, shape (n, devices), optional
        Time added to each job's run on each device, unknown to the policies.

    Returns
    -------
    Schedule
        Tables of what was decided; `Schedule.check` verifies them.

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
    machine = Machine() if machine is None else machine
    reading, known = need_known(reading, history)
    name, policy = policy_named(policy)
    given = checked(jobs, machine, extra)
    check_targets(given, policy, name)
    trace = play(given, machine, policy, reading, known, plan_for(given, policy, reading))
    return Schedule.of(trace, given, machine, policy, name, reading, known)
