"""What a run leaves: what became of every request, with the figures' measures."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.bricks.check import check_outcome
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import Reading, Scheduler
from dlsim.compiled import latest_finish


def _mean(values: NDArray[Any]) -> float:
    """Return the mean of what is known: a request that was refused has no server."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else np.nan


def requests_table(records: np.recarray, env: Environment) -> pd.DataFrame:
    """Return what became of every request, from the records of a run."""
    due, time = (env.requests[name].to_numpy() for name in ("deadline", "time"))
    latest = latest_finish(due - env.origin, np.abs(due - time))
    performance = env.servers["performance"].to_numpy()
    columns = {
        "server": records["server"].copy(),
        "fallbacks": records["fallbacks"].copy(),
        "completion": env.origin + records["completion"],
        "missed": records["completion"] > latest,
        "cost": np.where(records["server"] < 0, np.nan, performance[records["server"]]),
    }
    for name in ("submitted", "arrived", "start", "end"):
        columns[name] = env.origin + records[name]
    return pd.DataFrame(columns, index=env.requests.index)


def attempts_table(records: Any, env: Environment) -> pd.DataFrame:
    """Return every submission, in order, from the records of a run."""
    return pd.DataFrame(
        {
            "request": env.requests.index.to_numpy()[records["row"]],
            "server": records["server"].copy(),
            "submitted": env.origin + records["submitted"],
            "estimate": records["estimate"].copy(),
            "arrived": env.origin + records["arrived"],
            "promised": env.origin + records["promised"],
            "accepted": records["accepted"].astype(bool),
        }
    )


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
    def from_records(
        cls,
        requests: np.recarray,
        attempts: Any,
        env: Environment,
        scheduler: Scheduler,
        reading: Reading,
    ) -> Self:
        """Make the tables of a run's records, on the clock of the environment."""
        tables = requests_table(requests, env), attempts_table(attempts, env)
        return cls(*tables, env, scheduler, reading)

    @property
    def fate(self) -> pd.Series:
        """What became of every request: returned, or refused by a user's scheduler."""
        found = np.where(self.requests["server"].to_numpy() < 0, "refused", "returned")
        return pd.Series(found, self.environment.requests.index, name="fate")

    @property
    def failure_rate(self) -> float:
        """Requests that missed their deadline per request (section 4.2); NaN without requests."""
        return _mean(self.requests["missed"].to_numpy())

    @property
    def mean_cost(self) -> float:
        """Mean Mops/s of the servers over all requests, missed ones included; NaN without any."""
        return _mean(self.requests["cost"].to_numpy())

    @property
    def work_weighted_cost(self) -> float:
        """The same, weighted by work; NaN where there is none."""
        known = np.isfinite(self.requests["cost"].to_numpy())
        work, cost = (
            self.environment.requests["work"].to_numpy()[known],
            self.requests["cost"].to_numpy()[known],
        )
        return float((cost * work).sum() / work.sum()) if work.any() else np.nan

    @property
    def cost(self) -> float:
        """Average resource cost (Figures 4 and 6), by ``Reading.cost``."""
        return self.mean_cost if self.reading.cost == "mean" else self.work_weighted_cost

    @property
    def lateness(self) -> float:
        """Mean seconds past the deadline of results that missed it; NaN where none did."""
        late = (
            self.requests["completion"].to_numpy()
            - self.environment.requests["deadline"].to_numpy()
        )
        return _mean(late[self.requests["missed"].to_numpy()])

    @property
    def drain(self) -> float:
        """Seconds from the horizon until the last result is in, at least 0."""
        assert self.environment.horizon is not None
        done = self.requests["completion"].to_numpy()
        last = float(done[np.isfinite(done)].max(initial=-np.inf))
        return max(0.0, last - self.environment.horizon)

    @property
    def beyond_traces(self) -> float:
        """Share of the requests that came back after the links' traces; NaN without any."""
        done = self.requests["completion"].to_numpy()
        return _mean(np.isfinite(done) & (done > self.environment.trace_end))

    def check(self) -> None:
        """Verify the outcome from the model's definition alone; a ScheduleError names the rule."""
        check_outcome(self)
