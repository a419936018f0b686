"""Tasks from files: CSV tables and job logs in the Standard Workload Format."""

import os
import re

import numpy as np
import pandas as pd

from dlsim import files, joblog
from dlsim.errors import InputError
from dlsim.given import LEAST, Seed, in_range, positive, seed_record, streams, whole
from dlsim.realtime.laws import PURPOSES, frame, realised_load, signed
from dlsim.realtime.model import Cluster
from dlsim.realtime.partition import least_times


def from_csv(path: files.StrPath) -> pd.DataFrame:
    """Read tasks from a CSV file with the columns arrival, sigma and deadline."""
    wanted = {"arrival": "nonnegative", "sigma": "positive", "deadline": "positive"}
    tasks = files.read_csv(path, wanted, {"task": "text"}, ascending="arrival", unique="task")
    if tasks.empty:
        raise InputError(f"{os.fspath(path)}: holds no task; give one line per task")
    ids = tasks.pop("task") if "task" in tasks else range(len(tasks))
    whole = all(re.fullmatch("0|[1-9][0-9]{0,14}", str(name)) for name in ids)
    tasks.index = pd.Index(ids, dtype=np.int64 if whole else object, name="task")
    tasks = tasks[[*wanted, *(name for name in tasks if name not in wanted)]]
    return signed(tasks, path, horizon=float(tasks["arrival"].iloc[-1]), skipped={})


def _job_index(numbers: pd.Series, notes: list[str]) -> pd.Index:
    if numbers.is_unique and ((numbers % 1 == 0) & (numbers.abs() < 2**53)).all():
        return pd.Index(numbers.astype(np.int64), name="task")
    notes.append("job numbers are not different whole numbers; tasks are counted from 0")
    return pd.RangeIndex(len(numbers), name="task")


def from_swf(
    path: files.StrPath, cluster: Cluster, *, work_per_unit: float | None = None,
    dc_ratio: float = 2.0, time_scale: float = 1.0, max_jobs: int | None = None, seed: Seed = 0,
    limit: int = files.LOG,
) -> pd.DataFrame:  # fmt: skip
    """Make divisible tasks of the jobs of a log in the Standard Workload Format.

    A log knows neither data sizes nor deadlines; how a job becomes a task is this rule:

    - arrival = (submit time - that of the first usable job) * `time_scale`;
    - sigma = processors * run time / `work_per_unit`, with the allocated processors,
      or the requested ones where those are unknown;
    - deadline = U[0.5, 1.5] * `dc_ratio` * E, but never below E, the minimum execution
      time E(sigma, min(N, N*)) on `cluster`: around the task's own least time, as in the later
      simulator of the authors of paper I, whose section 5.1 takes one mean for all tasks.

    Jobs without run time, processors or submit time, lines for a part of a job (status
    2, 3, 4) and numbers outside the range of `dlsim.given` are skipped and counted. Log and
    cluster are not matched otherwise: the realised load is what follows.
    """
    unit = cluster.cps if work_per_unit is None else work_per_unit
    rule = {"work_per_unit": unit, "dc_ratio": dc_ratio, "time_scale": time_scale}
    unit, dc_ratio, time_scale = positive(**rule)
    max_jobs = None if max_jobs is None else whole("max_jobs", max_jobs)
    jobs, _, notes = joblog.read_swf(path, limit)
    draws = 0.5 + streams(seed, PURPOSES)["deadlines"].random(len(jobs))
    processors = jobs["processors"].where(jobs["processors"] > 0, jobs["processors_requested"])
    with np.errstate(over="ignore"):
        sigma = processors * jobs["run_time"] / unit
        least = least_times(sigma, cluster)
        deadline = least * np.maximum(1.0, dc_ratio * draws)
        tasks = frame(jobs["submit"] * time_scale, sigma, deadline)
    fits = in_range(tasks).all(axis=1) & (tasks["sigma"] != 0)
    order, skipped = joblog.usable_jobs(path, jobs, processors, fits, max_jobs, "task")
    tasks = tasks.loc[order]
    tasks["arrival"] -= tasks["arrival"].iloc[0]
    tasks.index = _job_index(jobs["job"][tasks.index], notes)
    horizon = float(tasks["arrival"].iloc[-1])
    lasts = horizon >= LEAST
    return signed(
        tasks,
        path,
        realised_load=realised_load(tasks, cluster, horizon) if lasts else None,
        horizon=horizon,
        seed=seed_record(seed),
        reading={**{name: float(value) for name, value in rule.items()}, "max_jobs": max_jobs},
        skipped=skipped,
        notes=notes,
    )
