"""What a run leaves: what became of every request, with the figures' measures."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.bricks.check import COLUMNS, check_outcome
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import Reading, Scheduler
from dlsim.compiled import latest_finish


def _mean(values: NDArray[Any]) -> float:
    """Return the mean of what is known: a request that was refused has no server."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else np.nan


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of every request; plain tables.

    Attributes
    ----------
    requests : DataFrame
        Indexed as ``environment.requests``: server (that finally ran it), fallbacks,
        completion (s), missed, cost (Mops/s of that server); and of the latest submission:
        submitted, arrived (all of its input), start and end (of service).
    attempts : DataFrame
        One row per submission, in order: request, server, submitted, estimate (T_Si of that
        server, eq. 2), arrived, promised (the clock plus the right side of eq. (6), as
        estimated by the server on arrival), accepted.
    environment, scheduler, reading
        What was simulated.

    Notes
    -----
    Of a request that a scheduler of a user's refused the server is -1, and the cost NaN; it is
    missed, and its completion is inf.
    """

    requests: pd.DataFrame
    attempts: pd.DataFrame = field(repr=False)
    environment: Environment = field(repr=False)
    scheduler: Scheduler
    reading: Reading

    @classmethod
    def of(cls, jobs: np.recarray, attempts: np.recarray, *about: Any) -> Self:
        """Keep the records of a run, of which tables are made when they are asked for."""
        new = object.__new__(cls)
        names = ("environment", "scheduler", "reading")
        new.__dict__.update(zip(names, about, strict=True))
        new.__dict__.update(_jobs=jobs, _attempts=attempts)
        return new

    def __getattr__(self, name: str) -> Any:
        """Make a table of a run's records."""
        if name not in COLUMNS or "_jobs" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        index = self.environment.requests.index
        if name == "requests":
            table = pd.DataFrame({k: self.column(k) for k in COLUMNS[name]}, index=index)
        else:
            done, origin = self._attempts, self.environment.origin
            found = {"request": index.to_numpy()[done.row], "server": done.server}
            found |= {k: origin + done[k] for k in ("submitted", "arrived", "promised")}
            found |= {"estimate": done.estimate, "accepted": done.accepted.astype(bool)}
            table = pd.DataFrame({k: found[k] for k in COLUMNS[name]})
        self.__dict__[name] = table
        return table

    def column(self, name: str) -> NDArray[Any]:
        """Return a column of `requests`, without making a table of all of them."""
        if "requests" in self.__dict__:
            return self.requests[name].to_numpy()
        kept = self.__dict__.setdefault("_columns", {})
        if name not in kept:
            kept[name] = self._column(name)
        return kept[name]

    def _column(self, name: str) -> NDArray[Any]:
        """Make a column of the records of a run."""
        env = self.environment
        if name == "cost":
            performance = env.servers["performance"].to_numpy()
            server = self._jobs.server
            return np.where(server < 0, np.nan, performance[server])
        if name == "missed":
            due, time = (env.requests[k].to_numpy() for k in ("deadline", "time"))
            latest = latest_finish(due - env.origin, np.abs(due - time))
            return np.asarray(self._jobs.completion > latest)
        values = np.array(self._jobs[name])
        return values if values.dtype.kind == "i" else env.origin + values

    @property
    def fate(self) -> pd.Series:
        """What became of every request: returned, or refused by a user's scheduler."""
        found = np.where(self.column("server") < 0, "refused", "returned")
        return pd.Series(found, self.environment.requests.index, name="fate")

    @property
    def failure_rate(self) -> float:
        """Requests that missed their deadline per request (section 4.2); NaN without requests."""
        return _mean(self.column("missed"))

    @property
    def mean_cost(self) -> float:
        """Mean Mops/s of the servers over all requests, missed ones included; NaN without any."""
        return _mean(self.column("cost"))

    @property
    def work_weighted_cost(self) -> float:
        """The same, weighted by work; NaN where there is none."""
        known = np.isfinite(self.column("cost"))
        work, cost = self.environment.requests["work"].to_numpy()[known], self.column("cost")[known]
        return float((cost * work).sum() / work.sum()) if work.any() else np.nan

    @property
    def cost(self) -> float:
        """Average resource cost (Figures 4 and 6), by ``Reading.cost``."""
        return self.mean_cost if self.reading.cost == "mean" else self.work_weighted_cost

    @property
    def lateness(self) -> float:
        """Mean seconds past the deadline of results that missed it; NaN where none did."""
        late = self.column("completion") - self.environment.requests["deadline"].to_numpy()
        return _mean(late[self.column("missed")])

    @property
    def drain(self) -> float:
        """Seconds from the horizon until the last result is in, at least 0."""
        assert self.environment.horizon is not None
        done = self.column("completion")
        last = float(done[np.isfinite(done)].max(initial=-np.inf))
        return max(0.0, last - self.environment.horizon)

    @property
    def beyond_traces(self) -> float:
        """Share of the requests that came back after the links' traces; NaN without any."""
        done = self.column("completion")
        return _mean(np.isfinite(done) & (done > self.environment.trace_end))

    def check(self) -> None:
        """Verify the outcome from the model's definition alone; a ScheduleError names the rule."""
        check_outcome(self)
