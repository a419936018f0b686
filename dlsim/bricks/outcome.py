"""What a run of the Grid simulator leaves: plain tables, and what the figures show of them."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from dlsim.bricks.check import check_outcome
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import Reading, Scheduler


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
    environment : Environment
        Where it ran.
    scheduler : Scheduler
        Who decided.
    reading : Reading
        How the paper was understood.
    """

    requests: pd.DataFrame
    attempts: pd.DataFrame = field(repr=False)
    environment: Environment = field(repr=False)
    scheduler: Scheduler
    reading: Reading

    @property
    def failure_rate(self) -> float:
        """Requests that missed their deadline per request (section 4.2); NaN without requests."""
        return float(self.requests["missed"].mean())

    @property
    def mean_cost(self) -> float:
        """Mean Mops/s of the servers over all requests, missed ones included; NaN without any."""
        return float(self.requests["cost"].mean())

    @property
    def work_weighted_cost(self) -> float:
        """The same, weighted by work; NaN where there is none."""
        work = self.environment.requests["work"].to_numpy()
        total = work.sum()
        return float((self.requests["cost"] * work).sum() / total) if total else np.nan

    @property
    def cost(self) -> float:
        """Average resource cost (Figures 4 and 6), by ``Reading.cost``."""
        return self.mean_cost if self.reading.cost == "mean" else self.work_weighted_cost

    @property
    def lateness(self) -> float:
        """Mean seconds past the deadline of those that missed it; NaN where none did."""
        late = self.requests["completion"] - self.environment.requests["deadline"]
        return float(late[self.requests["missed"]].mean())

    @property
    def drain(self) -> float:
        """Seconds from the horizon until the last result is in, at least 0."""
        assert self.environment.horizon is not None
        return max(0.0, float(self.requests["completion"].max()) - self.environment.horizon)

    @property
    def beyond_traces(self) -> float:
        """Share of the requests that were under way after the links' traces; NaN without any."""
        return float((self.requests["completion"] > self.environment.trace_end).mean())

    def check(self) -> None:
        """Verify the outcome from the model's definition alone; a ScheduleError names the rule."""
        check_outcome(self)
