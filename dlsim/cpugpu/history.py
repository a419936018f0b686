"""The history of run times by application and device class (paper C, rule 5).

`History` lives in memory and is what a policy reads; `HistoryDatabase` keeps every measured run
in an SQLite file, from which a history is built.
"""

import math
from bisect import insort
from dataclasses import dataclass, field, replace
from typing import Self

import pandas as pd

from dlsim.cpugpu.model import CLASSES, OTHER_CLASS
from dlsim.validate import instance, number, one_of, require_table

#: Weight of the newest run in the moving average.
NEWEST = 0.3


@dataclass(slots=True)
class Record:
    """Statistics of the measured runs of one application on one device class."""

    assigned: int = 0  # jobs assigned to this class
    elsewhere: int = 0  # jobs assigned to the other class since the last of them
    count: int = 0
    mean: float = math.nan  # of the measured times
    recent: float = math.nan  # their moving average
    spread: float = 0.0  # sum of the squared deviations from the mean
    times: list[float] = field(default_factory=list)  # oldest first
    ranked: list[float] = field(default_factory=list)  # sorted, once a median was asked for

    @property
    def std(self) -> float:
        """Population standard deviation of the measured runs; NaN without any."""
        return math.sqrt(self.spread / self.count) if self.count else math.nan

    def add(self, seconds: float) -> None:
        """Take one more run into account."""
        self.times.append(seconds)
        self.count += 1
        if self.count == 1:
            self.mean = self.recent = seconds
            return
        deviation = seconds - self.mean
        self.mean += deviation / self.count
        self.spread += deviation * (seconds - self.mean)
        self.recent += NEWEST * (seconds - self.recent)
        if self.ranked:
            insort(self.ranked, seconds)

    def expected(self, estimate: str = "mean") -> float:
        """Return a statistic of the measured runs, NaN without any."""
        if estimate == "mean" or not self.count:
            return self.mean
        if estimate == "ewma":
            return self.recent
        if not self.ranked:
            self.ranked = sorted(self.times)
        low, high = self.ranked[(self.count - 1) // 2], self.ranked[self.count // 2]
        return low if low == high else (low + high) / 2

    def copy(self) -> "Record":
        """Return an independent copy."""
        return replace(self, times=self.times.copy(), ranked=self.ranked.copy())


#: What a pair that was never seen looks like.
UNSEEN = Record()


class History:
    """Run times per application and device class, in memory.

    Examples
    --------
    >>> history = History()
    >>> history.add("A", "gpu", 8.0)
    >>> history.add("A", "gpu", 12.0)
    >>> history.table()
      app class  assigned  count  mean  std
    0   A   gpu         2      2  10.0  2.0
    """

    def __init__(self) -> None:
        self._records: dict[str, dict[str, Record]] = {cls: {} for cls in CLASSES}

    @classmethod
    def exact(cls, applications: pd.DataFrame) -> Self:
        """Return the history of a scheduler that ran every version once, without noise.

        `applications` has the columns cpu_time and gpu_time, NaN for no version.
        """
        history, names = cls(), [f"{kind}_time" for kind in CLASSES]
        table = require_table("applications", applications, names)[names]
        for app, *times in table.itertuples():
            for kind, seconds in zip(CLASSES, times, strict=True):
                if seconds == seconds:
                    history.add(app, kind, seconds)
        return history

    def record(self, app: str, cls: str) -> Record:
        """Return the record of an application on a class; callers must not change it."""
        return self._records[cls].get(app, UNSEEN)

    def expected(
        self, app: str, cls: str, estimate: str = "mean", deviations: float = 0.0
    ) -> float:
        """Return a statistic of the runs, plus `deviations` standard deviations; NaN if none."""
        record = self._records[cls].get(app, UNSEEN)
        time = record.mean if estimate == "mean" else record.expected(estimate)
        return time + deviations * record.std if deviations else time

    def assign(self, app: str, cls: str) -> None:
        """Note that a job was assigned to a class (rule 2)."""
        own = self.entry(app, cls)
        own.assigned += 1
        own.elsewhere = 0
        other = self._records[OTHER_CLASS[cls]].get(app)
        if other is not None:
            other.elsewhere += 1

    def withdraw(self, app: str, cls: str) -> None:
        """Take an assignment back: its device broke before the job was done."""
        own = self.entry(app, cls)
        own.assigned = max(0, own.assigned - 1)

    def measure(self, app: str, cls: str, seconds: float) -> None:
        """Note the time of a run that was assigned before (rule 5): positive and finite."""
        what = f"run time of {app!r} on {cls}"
        taken = number(what, seconds, above=True, rule="positive and finite")
        self.entry(app, cls).add(float(taken))

    def add(self, app: str, cls: str, seconds: float) -> None:
        """Note a whole run: assigned and measured."""
        self.measure(app, cls, seconds)
        self.assign(app, cls)

    def average(self, cls: str, estimate: str = "mean") -> float:
        """Return the mean expected time of a class's measured applications, NaN without any."""
        known = [r.expected(estimate) for r in self._records[cls].values() if r.count]
        return math.fsum(known) / len(known) if known else math.nan

    def copy(self) -> "History":
        """Return an independent copy."""
        other = History()
        for cls, records in self._records.items():
            other._records[cls] = {app: record.copy() for app, record in records.items()}
        return other

    def table(self) -> pd.DataFrame:
        """Return app, class, assigned, count, mean and (population) std, a sorted row per pair."""
        rows = [
            (app, cls, r.assigned, r.count, r.mean, r.std)
            for cls, records in self._records.items()
            for app, r in records.items()
        ]
        columns = ["app", "class", "assigned", "count", "mean", "std"]
        return pd.DataFrame(sorted(rows), columns=columns)

    def entry(self, app: str, cls: str) -> Record:
        """Return the record of an application on a class, to be changed."""
        record = self._records.get(cls, {}).get(app)
        if record is None:
            instance("app", app, str, rule="the name of an application")
            one_of("device class", cls, CLASSES)
            record = self._records[cls][app] = Record()
        return record
