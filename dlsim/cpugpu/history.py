"""The history of run times by application and device class (paper C, rule 5).

`History` lives in memory and is what a policy reads; `HistoryDatabase` keeps every measured run
in an SQLite file, from which a history is built.
"""

import math
from array import array
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

import pandas as pd

from dlsim.cpugpu.jobs import CLASSES, OTHER_CLASS
from dlsim.validate import instance, number, one_of, require_table

#: Weight of the newest run in the moving average.
NEWEST = 0.3


class Runs:
    """Measured times in their order; copies of a record share them, each up to its count."""

    def __init__(self, times: Iterable[float] = ()) -> None:
        self.times = array("d", times)
        self._ranked: list[float] = []

    def ranked(self, count: int) -> list[float]:
        """Return the first `count` times, sorted."""
        if len(self._ranked) != count:
            self._ranked = sorted(self.times[:count])
        return self._ranked

    def append(self, seconds: float) -> None:
        """Add a time, also among those that are sorted."""
        if self._ranked and len(self._ranked) == len(self.times):
            insort(self._ranked, seconds)
        self.times.append(seconds)


@dataclass
class Record:
    """Statistics of the measured runs of one application on one device class."""

    assigned: int = 0
    elsewhere: int = 0
    count: int = 0
    mean: float = 0.0
    spread: float = 0.0
    recent: float = math.nan
    runs: Runs = field(default_factory=Runs)

    @property
    def std(self) -> float:
        """Population standard deviation of the measured runs; NaN without any."""
        return math.sqrt(self.spread / self.count) if self.count else math.nan

    @property
    def times(self) -> list[float]:
        """The measured times, oldest first."""
        return self.runs.times[: self.count].tolist()

    def add(self, seconds: float) -> None:
        """Take one more run into account."""
        if len(self.runs.times) != self.count:  # another record went on from here
            self.runs = Runs(self.runs.times[: self.count])
        self.runs.append(seconds)
        self.count += 1
        deviation = seconds - self.mean
        self.mean += deviation / self.count
        self.spread += deviation * (seconds - self.mean)
        is_first = self.count == 1
        self.recent = seconds if is_first else self.recent + NEWEST * (seconds - self.recent)

    def expected(self, estimate: str = "mean") -> float:
        """Return a statistic of the measured runs."""
        if not self.count:
            return math.nan
        if estimate == "median":
            ranked = self.runs.ranked(self.count)
            low, high = ranked[(self.count - 1) // 2], ranked[self.count // 2]
            return low if low == high else (low + high) / 2
        return self.recent if estimate == "ewma" else self.mean


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
        self._records: dict[tuple[str, str], Record] = {}

    @classmethod
    def exact(cls, applications: pd.DataFrame) -> Self:
        """Return the history of a scheduler that ran every version once, without noise.

        `applications` has the columns cpu_time and gpu_time, NaN for no version.
        """
        history, names = cls(), ("gpu_time", "cpu_time")
        for app, *times in require_table("applications", applications, names)[
            [*names]
        ].itertuples():
            for kind, seconds in zip(("gpu", "cpu"), times, strict=True):
                if seconds == seconds:
                    history.add(app, kind, seconds)
        return history

    def record(self, app: str, cls: str) -> Record:
        """Return the record of an application on a class; callers must not change it."""
        return self._records.get((app, cls), UNSEEN)

    def expected(
        self, app: str, cls: str, estimate: str = "mean", deviations: float = 0.0
    ) -> float:
        """Return a statistic of the runs, plus `deviations` standard deviations; NaN if none."""
        record = self._records.get((app, cls))
        if record is None or not record.count:
            return math.nan
        time = record.mean if estimate == "mean" else record.expected(estimate)
        return time + deviations * record.std if deviations else time

    def assign(self, app: str, cls: str) -> None:
        """Note that a job was assigned to a class (rule 2)."""
        own = self.entry(app, cls)
        own.assigned, own.elsewhere = own.assigned + 1, 0
        other = self._records.get((app, OTHER_CLASS[cls]))
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
        known = [r for (_, kind), r in self._records.items() if kind == cls and r.count]
        return math.fsum(r.expected(estimate) for r in known) / len(known) if known else math.nan

    def copy(self) -> "History":
        """Return an independent copy."""
        other = History()
        other._records = {key: replace(record) for key, record in self._records.items()}
        return other

    def table(self) -> pd.DataFrame:
        """Return app, class, assigned, count, mean and (population) std, a sorted row per pair."""
        rows = [
            (app, cls, r.assigned, r.count, r.expected(), r.std)
            for (app, cls), r in sorted(self._records.items())
        ]
        return pd.DataFrame(rows, columns=["app", "class", "assigned", "count", "mean", "std"])

    def records(self) -> dict[tuple[str, str], Record]:
        """Return every record by application and class, not to be changed."""
        return dict(self._records)

    def entry(self, app: str, cls: str) -> Record:
        """Return the record of an application on a class, to be changed."""
        record = self._records.get((app, cls))
        if record is None:
            instance("app", app, str, rule="the name of an application")
            one_of("device class", cls, CLASSES)
            record = self._records[app, cls] = Record()
        return record
