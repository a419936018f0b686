"""Fairness: nobody ends later than on the preferred device (paper C, section 5)."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from dlsim.cpugpu.check import Result
from dlsim.cpugpu.model import CLASSES, class_of
from dlsim.given import Floats
from dlsim.rounding import not_after


class Predicted(Result, Protocol):
    """What is read beyond that: the finishes that were predicted, and who filled the history."""

    @property
    def predictions(self) -> pd.DataFrame:
        """Predicted finish of each job on every device when it was decided."""

    @property
    def explored(self) -> pd.Series:
        """Which jobs were placed to fill the history (rule 2)."""


@dataclass(frozen=True)
class Fairness:
    """How late each job ended against its preferred device."""

    jobs: pd.DataFrame

    @property
    def is_fair(self) -> bool:
        """Whether no job is late: the definition, without exceptions."""
        return not self.jobs["late"].any()

    @property
    def is_fair_but_for_exceptions(self) -> bool:
        """Whether every late job falls under one of the paper's two exceptions."""
        return bool((~self.jobs["late"] | (self.jobs["excuse"] != "")).all())

    @property
    def late_ratio(self) -> float:
        """Part of the jobs that is late."""
        return float(self.jobs["late"].mean())

    @property
    def lateness(self) -> pd.Series:
        """How much later each job ended than is fair; 0 where it did not."""
        return self.jobs["lateness"].where(self.jobs["late"], 0.0)


def local_bounds(schedule: Result) -> Floats:
    """Return the end of each job, had it gone behind the work then assigned to its class (F1)."""
    given, jobs = schedule.given, schedule.jobs
    turn, bounds = jobs["turn"].to_numpy(), np.full(len(jobs), np.inf)
    for d, name in enumerate(schedule.machine.devices):
        mine = jobs[jobs["device"] == name].sort_values("turn")
        ends = np.concatenate([[-np.inf], mine["end"]])
        ready = np.maximum(jobs["decided"], ends[np.searchsorted(mine["turn"], turn)])
        own = given.preferred == CLASSES.index(class_of(name))
        bounds[own] = np.minimum(bounds, ready + given.times[:, d])[own]
    return bounds


def judged(schedule: Predicted, bounds: Floats, significant: float) -> Fairness:
    """Compare ends with the latest fair ends and look for the paper's exceptions.

    A prediction is wrong from the relative error `significant` on: of the finish on the device
    taken, or of the finish on the preferred class, over the time since the decision.
    """
    jobs = schedule.jobs
    preferred = np.array(CLASSES)[schedule.given.preferred]
    end, decided = jobs["end"].to_numpy(), jobs["decided"].to_numpy()
    told = schedule.predictions.to_numpy()
    classes = np.array([class_of(name) for name in schedule.machine.devices])
    there = preferred[:, None] == classes
    least = np.where(there & ~np.isnan(told), told, np.inf).min(axis=1)
    here = np.abs(jobs["predicted"].to_numpy() - end) > significant * (end - decided)
    local = local_bounds(schedule)
    other = np.isfinite(least) & (np.abs(least - local) > significant * (local - decided))
    excuse = np.where(schedule.explored, "explored", np.where(here | other, "mispredicted", ""))
    columns = {
        "preferred": preferred,
        "fair_end": bounds,
        "lateness": end - bounds,
        "late": ~not_after(end, bounds, end - decided),
        "excuse": excuse,
    }
    return Fairness(pd.DataFrame(columns, index=jobs.index))
