"""The event loop of paper C: completions, arrivals, then decisions, instant by instant."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import deadline_with_tolerance, time_offset
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import follow_plan, ideal_plan
from dlsim.cpugpu.job_table import JobTable
from dlsim.cpugpu.model import Machine, Policy, Reading, find_job_policy
from dlsim.cpugpu.scheduler import OnlineScheduler
from dlsim.errors import InputError
from dlsim.validate import Floats


class Trace(NamedTuple):
    """The arrays of a run, jobs in queue order; times count from `origin`.

    Attributes
    ----------
    origin : float
        Where the engine's clock begins.
    device, turn : ndarray of int
        The device, and the place of the last move among all decisions.
    decided, start, end, seconds : ndarray of float
        When the job was moved last, began and ended, and its measured time.
    rules : list of str
        Why it was moved.
    predicted_finish : ndarray of float, shape (jobs, devices)
        Predicted finish on every device, NaN where none was predicted.
    """

    origin: float
    device: NDArray[np.int64]
    turn: NDArray[np.int64]
    decided: Floats
    start: Floats
    end: Floats
    seconds: Floats
    rules: list[str]
    predicted_finish: Floats


def shift_clock(job_table: JobTable) -> tuple[float, JobTable]:
    """Return where the engine's clock begins, by the first arrival, and the jobs on it."""
    origin = time_offset(job_table.arrival)
    return origin, replace(job_table, arrival=job_table.arrival - origin)


class DeviceClock:
    """The ends of the running jobs; CPUs slow down beside GPU jobs (`Reading.gpu_cpu_share`)."""

    def __init__(self, machine: Machine, share: float) -> None:
        self.gpus, self.cpus, self.share = machine.gpus, machine.cpus, share
        self.ends = [math.inf] * (machine.gpus + machine.cpus)
        self.rate = 1.0

    def begin(self, device: int, now: float, time: float) -> None:
        """Start a job of this time on a device."""
        is_slowed = device >= self.gpus and self.share > 0
        self.ends[device] = now + (time / self.rate if is_slowed else time)

    def change_speed(self, now: float) -> None:
        """Set the speed of the CPUs by the number of running GPU jobs."""
        if self.cpus == 0:
            return
        busy = sum(end < math.inf for end in self.ends[: self.gpus])
        rate = 1.0 - self.share * busy / self.cpus
        if rate != self.rate:
            for device in range(self.gpus, len(self.ends)):
                left = self.ends[device] - now
                self.ends[device] = now + left * self.rate / rate
            self.rate = rate

    def end_until(self, limit: float) -> list[tuple[float, int]]:
        """Take off the jobs that end by an instant, in order of their ends."""
        ended = [(end, device) for device, end in enumerate(self.ends) if end <= limit]
        ended.sort()
        for _, device in ended:
            self.ends[device] = math.inf
        return ended


def simulate_jobs(
    job_table: JobTable, machine: Machine, policy: Policy, reading: Reading, history: History
) -> Trace:
    """Simulate the jobs event by event, and add every run to the history."""
    share, gpus = reading.gpu_cpu_share, machine.gpus
    if policy.rule == "ideal" and share:
        raise InputError("an exhaustive schedule needs times of its own: use gpu_cpu_share=0")
    if machine.cpus and share * gpus >= machine.cpus:
        raise InputError(
            f"gpu_cpu_share={share:g} would leave no CPU to {machine.cpus} CPUs beside "
            f"{gpus} GPUs; it must be below {machine.cpus / max(1, gpus):g}"
        )
    origin, job_table = shift_clock(job_table)
    plan = None
    if policy.rule == "ideal":
        plan = follow_plan(
            ideal_plan(job_table.arrival.tolist(), job_table.times, policy.objective)
        )
    scheduler = OnlineScheduler(machine, policy, reading, history, plan)
    clock = DeviceClock(machine, share)
    arrival, times, jobs = job_table.arrival.tolist(), job_table.times.tolist(), job_table.job_views
    count, coming, ended = len(jobs), 0, 0
    shortest = float(np.nanmin(job_table.times))  # tells two instants apart
    start, end, seconds = [math.nan] * count, [math.nan] * count, [math.nan] * count
    while ended < count:
        now = min(clock.ends)
        if coming < count:
            now = min(now, arrival[coming])
        if now == math.inf:
            waiting = next(iter(scheduler.state.main), None)
            label = None if waiting is None else job_table.labels[waiting.job]
            name = find_job_policy(policy)[0]
            raise InputError(f"policy {name} leaves job {label!r} waiting for ever")
        limit = deadline_with_tolerance(now, shortest)
        for now, device in clock.end_until(limit):
            running = scheduler.state.running[device]
            assert running is not None
            number = running.job.job
            end[number] = now
            seconds[number] = now - start[number] if share else times[number][device]
            scheduler.complete(now, device, seconds[number])
            ended += 1
        if coming < count and arrival[coming] <= limit:
            first = coming
            while coming < count and arrival[coming] <= limit:
                now = max(now, arrival[coming])
                coming += 1
            scheduler.arrive(now, jobs[first:coming])
        if share:
            clock.change_speed(now)
        for device, job in scheduler.dispatch(now):
            start[job.job] = now
            clock.begin(device, now, times[job.job][device])
        if share:
            clock.change_speed(now)
    moves = [scheduler.moves[job] for job in range(count)]
    blank = (math.nan,) * len(clock.ends)
    return Trace(
        origin,
        np.array([move.decision.device for move in moves]),
        np.array([move.turn for move in moves]),
        np.array([move.when for move in moves]),
        np.array(start),
        np.array(end),
        np.array(seconds),
        [move.decision.rule for move in moves],
        np.array([move.decision.predicted_finish or blank for move in moves]),
    )
