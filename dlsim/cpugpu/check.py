"""Validity and fairness of a schedule from the model alone, independent of the engine.

The model is paper C's section 5: non-preemptive devices, one job at a time, a sub-queue per
device that serves its jobs in the order in which they joined; no job ends later than on its
preferred device.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.cpugpu.model import CLASSES, Machine, Policy, Reading, device_class
from dlsim.cpugpu.workload import JobTable, first_label
from dlsim.errors import ScheduleError
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
    def policy(self) -> Policy: ...
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
    for name in ("decided", "start", "completion"):
        require(f"a job has a {name} instant", np.isfinite(jobs[name].to_numpy()), labels)
    span = float(np.nanmin(job_table.times))  # tells two instants apart
    decided = jobs["decided"].to_numpy()
    require(
        "no job is decided before it arrives", not_after(job_table.arrival, decided, span), labels
    )
    work, clock = _work_done(schedule), MAX_ULPS * np.spacing(jobs["completion"].abs().to_numpy())
    is_whole = abs(work - times) <= clock + RELATIVE_ROUNDING * times
    require("a job runs for its time, without a break", is_whole, labels)
    for device, mine in jobs.sort_values("turn").groupby("device", sort=False):
        previous_end = mine["completion"].shift(fill_value=-np.inf).to_numpy()
        ready = np.maximum(previous_end, mine["decided"].to_numpy())
        rule = f"{device} serves its sub-queue in order, one job at a time, and idles only without"
        require(rule, table_times_equal(mine["start"].to_numpy(), ready, span), mine.index)
    _check_words(schedule)


def _check_words(schedule: Result) -> None:
    """Check that jobs left the main queue as the record of the policy's rule says."""
    rule, jobs = schedule.policy.record, schedule.jobs
    if rule is None:
        return
    require("a job leaves by a word of the rule", jobs["rule"].isin(rule.words), jobs.index)
    told = jobs["predicted"].notna() == jobs["rule"].isin(rule.predicts)
    require("a finish is predicted where the rule predicts", told, jobs.index)
    if rule.looks_at_head:
        once = jobs[jobs["rule"] != "steal"]  # a job that moves on later has the later turn
        in_order = once["turn"].diff().fillna(1) > 0
        require("jobs leave the main queue in its order", in_order, once.index)


def _work_done(schedule: Result) -> Floats:
    """Return the work of each run: its length, minus the CPU time that GPU jobs took."""
    jobs, machine = schedule.jobs, schedule.machine
    start, end = jobs["start"].to_numpy(), jobs["completion"].to_numpy()
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
    """Return when each job had ended behind the work that was assigned to its class (F1)."""
    job_table, jobs = schedule.job_table, schedule.jobs
    turn, end, device = (jobs[name].to_numpy() for name in ("turn", "completion", "device"))
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
    """Compare completions with the latest fair ones and look for the paper's exceptions.

    A prediction is wrong if its relative error exceeds `significant`: of the finish on the device
    taken, or of the finish on the preferred class, over the time since the decision. A prediction
    that a device never ends is wrong.
    """
    jobs = schedule.jobs
    preferred = np.array(CLASSES)[schedule.job_table.preferred]
    end, decided = jobs["completion"].to_numpy(), jobs["decided"].to_numpy()
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
    columns = {
        "preferred": preferred,
        "fair_completion": bounds,
        "lateness": end - bounds,
        "late": late,
        "excuse": excuse,
    }
    return pd.DataFrame(columns, index=jobs.index)


# --- what every check of paper C uses -----------------------------------------------------------


def table_times_equal(first: Any, second: Any, span: Any) -> Any:
    """Tell elementwise whether two instants are equal at the time scale `span`.

    Checks use this rule; it is independent of the engine's tolerance.
    """
    return not_after(first, second, span) & not_after(second, first, span)


def previous_in_lane(lanes: Any, values: Any, first: float) -> Floats:
    """Return for each row the value of the row before it in its lane, or `first` without one."""
    own = pd.Series(np.asarray(values, dtype=float)).groupby(np.asarray(lanes))
    return own.shift(fill_value=first).to_numpy()


def do_not_overlap(lanes: Any, start: Any, end: Any, span: Any) -> NDArray[np.bool_]:
    """Tell for each run whether the run before it in its lane has ended when it starts."""
    start, end = np.asarray(start, dtype=float), np.asarray(end, dtype=float)
    order = np.lexsort((end, start))
    good = np.ones(len(order), dtype=bool)
    over = previous_in_lane(np.asarray(lanes)[order], end[order], -np.inf)
    good[order] = not_after(over, start[order], span)
    return good


def require(rule: str, good: Any, labels: Sequence[Any] | pd.Index | None = None) -> None:
    """Refuse a schedule that breaks a rule, naming the first of `labels` where it is not `good`."""
    broken = ~np.atleast_1d(np.asarray(good, dtype=bool))
    if broken.any():
        where = "" if labels is None else f": broken by {first_label(labels, broken)!r}"
        raise ScheduleError(f"{rule}{where}")
