"""Validity and fairness of a schedule from the model alone, independent of the engine.

The model is paper C's section 5: non-preemptive devices, one job at a time, a sub-queue per
device that serves its jobs in the order in which they joined; no job ends later than on its
preferred device.
"""

from typing import Any, Protocol

import numpy as np
import pandas as pd

from dlsim.cpugpu.job_table import JobTable, require, table_times_equal
from dlsim.cpugpu.jobs import CLASSES, device_class
from dlsim.cpugpu.model import Machine, Reading
from dlsim.rounding import MAX_ULPS, RELATIVE_ROUNDING, not_after, time_tolerance
from dlsim.validate import Floats


class Result(Protocol):
    """What a check may read; the meanings stand in `dlsim.cpugpu.ScheduleResult`."""

    @property
    def jobs(self) -> pd.DataFrame: ...
    @property
    def job_table(self) -> JobTable: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def reading(self) -> Reading: ...
    @property
    def predictions(self) -> pd.DataFrame: ...
    @property
    def explored(self) -> pd.Series: ...


def check_job_schedule(schedule: Result) -> None:
    """Check that a machine can execute a schedule as its table says."""
    jobs, job_table, machine = schedule.jobs, schedule.job_table, schedule.machine
    labels = jobs.index
    require("every job is in the table once, in queue order", [labels.equals(job_table.labels)])
    require("a job keeps its arrival", jobs["arrival"].to_numpy() == job_table.arrival, labels)
    require("a job runs on a device of the machine", jobs["device"].isin(machine.devices), labels)
    places = pd.Index(machine.devices).get_indexer(pd.Index(jobs["device"]))
    times = job_table.times[np.arange(len(jobs)), places]
    require("a job runs where it has a version", ~np.isnan(times), labels)
    for name in ("decided", "start", "end"):
        require(f"a job has a {name} instant", np.isfinite(jobs[name].to_numpy()), labels)
    span = float(np.nanmin(job_table.times))  # tells two instants apart
    decided = jobs["decided"].to_numpy()
    require(
        "no job is decided before it arrives", not_after(job_table.arrival, decided, span), labels
    )
    work, clock = _work_done(schedule), MAX_ULPS * np.spacing(np.abs(jobs["end"].to_numpy()))
    is_whole = abs(work - times) <= clock + RELATIVE_ROUNDING * times
    require("a job runs for its time, without a break", is_whole, labels)
    for device, mine in jobs.sort_values("turn").groupby("device", sort=False):
        previous_end = mine["end"].shift(fill_value=-np.inf).to_numpy()
        ready = np.maximum(previous_end, mine["decided"].to_numpy())
        rule = f"{device} serves its sub-queue in order, one job at a time, and idles only without"
        require(rule, table_times_equal(mine["start"].to_numpy(), ready, span), mine.index)


def _work_done(schedule: Result) -> Floats:
    """Return the work of each run: its length, minus the CPU time that GPU jobs took."""
    jobs, machine = schedule.jobs, schedule.machine
    start, end = jobs["start"].to_numpy(), jobs["end"].to_numpy()
    work: Floats = end - start
    share = schedule.reading.gpu_cpu_share
    if share == 0 or machine.cpus == 0:
        return work
    on_gpu = jobs["device"].str.startswith("gpu").to_numpy()
    for s, e in zip(start[on_gpu], end[on_gpu], strict=True):
        beside = np.clip(np.minimum(end, e) - np.maximum(start, s), 0, None)
        work = work - np.where(on_gpu, 0.0, beside * share / machine.cpus)
    return work


def local_bounds(schedule: Result) -> Floats:
    """Return the end of each job if it had queued behind the work assigned to its class (F1)."""
    job_table, jobs = schedule.job_table, schedule.jobs
    turn, end, device = (jobs[name].to_numpy() for name in ("turn", "end", "device"))
    bounds = np.full(len(jobs), np.inf)
    for d, name in enumerate(schedule.machine.devices):
        mine = np.flatnonzero(device == name)
        mine = mine[np.argsort(turn[mine], kind="stable")]
        ends = np.concatenate([[-np.inf], end[mine]])
        ready = np.maximum(jobs["decided"].to_numpy(), ends[np.searchsorted(turn[mine], turn)])
        own = job_table.preferred == CLASSES.index(device_class(name))
        bounds[own] = np.minimum(bounds, ready + job_table.times[:, d])[own]
    return bounds


def judge_fairness(schedule: Result, bounds: Floats, significant: float) -> pd.DataFrame:
    """Compare ends with the latest fair ends and look for the paper's exceptions.

    A prediction is wrong if its relative error exceeds `significant`: of the finish on the device
    taken, or of the finish on the preferred class, over the time since the decision. A prediction
    that a device never ends is wrong.
    """
    jobs = schedule.jobs
    preferred = np.array(CLASSES)[schedule.job_table.preferred]
    end, decided = jobs["end"].to_numpy(), jobs["decided"].to_numpy()
    predicted = schedule.predictions.to_numpy()
    classes = np.array([device_class(name) for name in schedule.machine.devices])
    told = (preferred[:, None] == classes) & ~np.isnan(predicted)
    least = np.where(told, predicted, np.inf).min(axis=1)

    def is_wrong(prediction: Floats, finish: Floats) -> Any:
        """Tell whether a prediction misses a finish by more than rounding and the allowed part."""
        since = finish - decided
        allowed = significant * since + time_tolerance(since, finish)
        return np.abs(prediction - finish) > allowed

    here = is_wrong(jobs["predicted"].to_numpy(), end)
    other = told.any(axis=1) & is_wrong(least, local_bounds(schedule))
    excuse = np.where(schedule.explored, "explored", np.where(here | other, "mispredicted", ""))
    late = ~not_after(end, bounds, end - decided)
    columns = {"preferred": preferred, "fair_end": bounds, "lateness": end - bounds, "late": late}
    return pd.DataFrame({**columns, "excuse": excuse}, index=jobs.index)
