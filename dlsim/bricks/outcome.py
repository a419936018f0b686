"""The result of a simulation: tables of requests and submissions, and the paper's measures."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.bricks.check import check_result
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import Reading, Scheduler
from dlsim.compiled import deadline_with_tolerance


def _mean(values: NDArray[Any]) -> float:
    """Return the mean of the finite values; NaN if there are none."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else np.nan


def requests_table(records: np.recarray, env: Environment) -> pd.DataFrame:
    """Return the table `GridResult.requests` from the records of a run."""
    due, time = (env.requests[name].to_numpy() for name in ("deadline", "time"))
    latest = deadline_with_tolerance(due - env.origin, np.abs(due - time))
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
    """Return the table `GridResult.attempts` from the records of a run."""
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
class GridResult:
    """The result of a simulation as plain tables.

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
        The arguments of the simulation.

    Notes
    -----
    A request that a user's scheduler refused has server -1, cost NaN and completion inf, and
    counts as missed.
    """

    requests: pd.DataFrame
    attempts: pd.DataFrame = field(repr=False)
    environment: Environment = field(repr=False)
    scheduler: Scheduler
    reading: Reading

    @property
    def failure_rate(self) -> float:
        """Share of the requests that missed their deadline (section 4.2); NaN without requests."""
        return _mean(self.requests["missed"].to_numpy())

    @property
    def mean_cost(self) -> float:
        """Mean Mops/s of the servers that ran the requests, late ones too; NaN without any."""
        return _mean(self.requests["cost"].to_numpy())

    @property
    def work_weighted_cost(self) -> float:
        """Mean Mops/s of the servers that ran the requests, weighted by work; NaN without work."""
        was_run = np.isfinite(self.requests["cost"].to_numpy())
        work = self.environment.requests["work"].to_numpy()[was_run]
        cost = self.requests["cost"].to_numpy()[was_run]
        return float((cost * work).sum() / work.sum()) if work.any() else np.nan

    @property
    def cost(self) -> float:
        """Average resource cost in Mops/s (Figures 4 and 6), by ``Reading.cost``."""
        return self.mean_cost if self.reading.cost == "mean" else self.work_weighted_cost

    @property
    def lateness(self) -> float:
        """Mean lateness in seconds of the results that missed their deadline; NaN without any."""
        deadline = self.environment.requests["deadline"].to_numpy()
        lateness = self.requests["completion"].to_numpy() - deadline
        return _mean(lateness[self.requests["missed"].to_numpy()])

    @property
    def drain_time(self) -> float:
        """Seconds from the horizon until the last result is returned, at least 0."""
        assert self.environment.horizon is not None
        completion = self.requests["completion"].to_numpy()
        last = float(completion[np.isfinite(completion)].max(initial=-np.inf))
        return max(0.0, last - self.environment.horizon)

    def check(self) -> None:
        """Verify the result from the model's definition; a ScheduleError names the broken rule."""
        check_result(self)
