"""The event loop of paper C: completions, arrivals, then decisions, instant by instant."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import TOL, deadline_with_tolerance, time_offset
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import ideal_plan, make_plan_rule
from dlsim.cpugpu.job_table import JobTable
from dlsim.cpugpu.model import Machine, Policy, Reading, find_job_policy
from dlsim.cpugpu.scheduler import OnlineScheduler
from dlsim.errors import InputError
from dlsim.validate import Floats


class Trace(NamedTuple):
    """The arrays of a run, jobs in queue order; times count from `time_offset`.

    Attributes
    ----------
    time_offset : float
        Where the engine's clock begins.
    device, decision_no : ndarray of int
        The device, and the place of the last move among all decisions.
    decided, start, end : ndarray of float
        When the job was moved last, began and ended.
    rules : list of str
        Why it was moved.
    predicted_finish : ndarray of float, shape (jobs, devices)
        Predicted finish on every device, NaN where none was predicted.
    """

    time_offset: float
    device: NDArray[np.int64]
    decision_no: NDArray[np.int64]
    decided: Floats
    start: Floats
    end: Floats
    rules: list[str]
    predicted_finish: Floats


def shift_clock(job_table: JobTable) -> tuple[float, JobTable]:
    """Return where the engine's clock begins, by the first arrival, and the jobs on it."""
    offset = time_offset(job_table.arrival)
    return offset, replace(job_table, arrival=job_table.arrival - offset)


def simulate_jobs(
    job_table: JobTable, machine: Machine, policy: Policy, reading: Reading, history: History
) -> Trace:
    """Simulate the jobs event by event, and add every run to the history.

    Beside running GPU jobs the CPUs run at a lower rate (`Reading.gpu_cpu_share`).
    """
    share, gpus = reading.gpu_cpu_share, machine.gpus
    if policy.is_planned and share:
        raise InputError("an exhaustive schedule needs times of its own: use gpu_cpu_share=0")
    if machine.cpus and share * gpus >= machine.cpus * (1 - TOL):
        raise InputError(
            f"gpu_cpu_share={share:g} would leave no CPU to {machine.cpus} CPUs beside "
            f"{gpus} GPUs; it must be below {machine.cpus / max(1, gpus):g}"
        )
    offset, job_table = shift_clock(job_table)
    arrival, times = job_table.arrival.tolist(), job_table.times
    plan = None
    if policy.is_planned:
        plan = make_plan_rule(ideal_plan(arrival, times, policy.objective))
    scheduler = OnlineScheduler(machine, policy, reading, history, plan)
    count, devices = times.shape
    times_on, shortest = [column.tolist() for column in times.T], float(np.nanmin(times))
    start, end = [math.nan] * count, [math.nan] * count
    device_of, rules, finishes = [-1] * count, [""] * count, [(math.nan,) * devices] * count
    running, ends = [-1] * devices, [math.inf] * devices
    arrival.append(math.inf)
    coming, ended, cpu_rate, views = 0, 0, 1.0, job_table.job_views()
    while ended < count:
        now = min(*ends, arrival[coming])
        if now == math.inf:
            waiting = next(iter(scheduler.state.main), None)
            label = None if waiting is None else job_table.labels[waiting.job]
            name = find_job_policy(policy)[0]
            raise InputError(
                f"policy {name} leaves job {label!r} waiting for ever; its rule returned None "
                "while a device was free"
            )
        limit = deadline_with_tolerance(now, shortest)  # until here instants are equal
        for now, device in sorted([(at, device) for device, at in enumerate(ends) if at <= limit]):
            job = running[device]
            ends[device], end[job] = math.inf, now
            seconds = now - start[job] if share else times_on[device][job]
            scheduler.complete(now, device, seconds)
            ended += 1
        if arrival[coming] <= limit:
            arriving = []
            while arrival[coming] <= limit:
                now = max(now, arrival[coming])
                arriving.append(next(views))
                coming += 1
            scheduler.arrive(now, arriving)
        if share:
            cpu_rate = change_cpu_rate(ends, machine, share, now, cpu_rate)
        for device, view in scheduler.dispatch(now):
            job = running[device] = view.job
            time = times_on[device][job]
            start[job], ends[device] = now, now + (time if device < gpus else time / cpu_rate)
            decision = scheduler.decisions.pop(job)
            device_of[job], rules[job] = device, decision.rule
            if decision.predicted_finish:
                finishes[job] = decision.predicted_finish
        if share:
            cpu_rate = change_cpu_rate(ends, machine, share, now, cpu_rate)
    return Trace(
        offset,
        np.array(device_of),
        np.array([scheduler.decision_no[job] for job in range(count)]),
        np.array([scheduler.decided[job] for job in range(count)]),
        np.array(start),
        np.array(end),
        rules,
        np.array(finishes),
    )


def change_cpu_rate(
    ends: list[float], machine: Machine, share: float, now: float, old_rate: float
) -> float:
    """Return the rate of the CPUs beside the running GPU jobs, and move the ends of CPU jobs."""
    if machine.cpus == 0:
        return old_rate
    busy = sum(end < math.inf for end in ends[: machine.gpus])
    rate = 1.0 - share * busy / machine.cpus
    if rate != old_rate:
        for device in range(machine.gpus, len(ends)):
            ends[device] = now + (ends[device] - now) * old_rate / rate
    return rate
