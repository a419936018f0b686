"""Validity of a schedule from the model's definition alone, independent of the engine.

The model is paper C's section 5: non-preemptive devices, one job at a time, a sub-queue per
device that is served in the order it was filled.
"""

from typing import Protocol

import numpy as np
import pandas as pd

from dlsim.cpugpu.given import hold, together
from dlsim.cpugpu.intake import Given
from dlsim.cpugpu.model import Machine, Reading
from dlsim.given import Floats
from dlsim.rounding import ROUNDING, ULPS, not_after


class Result(Protocol):
    """What a check may read; the meanings stand in `dlsim.cpugpu.Schedule`."""

    @property
    def jobs(self) -> pd.DataFrame: ...
    @property
    def given(self) -> Given: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def reading(self) -> Reading: ...


def check_schedule(schedule: Result) -> None:
    """Verify that a machine could have done what a schedule says."""
    jobs, given, machine = schedule.jobs, schedule.given, schedule.machine
    labels = jobs.index
    hold("every job is in the table once, in queue order", [labels.equals(given.labels)])
    hold("a job keeps its arrival", jobs["arrival"].to_numpy() == given.arrival, labels)
    hold("a job runs on a device of the machine", jobs["device"].isin(machine.devices), labels)
    places = pd.Index(machine.devices).get_indexer(pd.Index(jobs["device"]))
    times = given.times[np.arange(len(jobs)), places]
    hold("a job runs where it has a version", ~np.isnan(times), labels)
    for name in ("decided", "start", "end"):
        hold(f"a job has a {name} instant", np.isfinite(jobs[name].to_numpy()), labels)
    span = float(np.nanmin(given.times))  # tells two instants apart
    decided = jobs["decided"].to_numpy()
    hold("no job is decided before it arrives", not_after(given.arrival, decided, span), labels)
    work, clock = _work_done(schedule), ULPS * np.spacing(np.abs(jobs["end"].to_numpy()))
    hold("a job runs for its time, without a break", abs(work - times) <= clock + ROUNDING * times,
         labels)  # fmt: skip
    for device, mine in jobs.sort_values("turn").groupby("device", sort=False):
        before = mine["end"].shift(fill_value=-np.inf).to_numpy()
        ready = np.maximum(before, mine["decided"].to_numpy())
        rule = f"{device} serves its sub-queue in order, one job at a time, and idles only without"
        hold(rule, together(mine["start"].to_numpy(), ready, span), mine.index)


def _work_done(schedule: Result) -> Floats:
    """Return the work of each run: its length, less what GPU jobs took from the CPUs."""
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
