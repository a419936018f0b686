"""The result of a simulation: tables of requests and submissions, and the paper's measures."""

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.bricks.check import check_result
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import Policy, Reading
from dlsim.compiled import deadline_with_tolerance


def _mean(values: NDArray[Any]) -> float:
    """Return the mean of the finite values; NaN if there are none."""
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else np.nan


def requests_table(records: np.recarray, env: Environment) -> pd.DataFrame:
    """Return the table `GridResult.requests` from the records of a run."""
    due, arrival = (env.requests[name].to_numpy() for name in ("due", "arrival"))
    latest = deadline_with_tolerance(due - env.origin, np.abs(due - arrival))
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


@dataclass(frozen=True, eq=False)
class GridResult:
    """The result of a simulation as plain tables `requests` and `attempts`.

    Attributes
    ----------
    requests : DataFrame
        Indexed as ``environment.requests``: server (that finally ran it), fallbacks,
        completion (s), missed, cost (Mops/s of that server); and of the latest submission:
        submitted, arrived (all of its input), start and end (of service).
    submissions : ndarray
        The records of which `attempts` is made.
    environment, policy, reading
        The arguments of the simulation.

    Notes
    -----
    A request that a user's policy refused has server -1, cost NaN and completion inf, and
    counts as missed.
    """

    requests: pd.DataFrame
    submissions: np.recarray = field(repr=False)
    environment: Environment = field(repr=False)
    policy: Policy
    reading: Reading

    @functools.cached_property
    def attempts(self) -> pd.DataFrame:
        """The submissions in order.

        Columns: request, server, submitted, estimate (T_Si of that server, eq. 2), arrived,
        promised (the clock plus the right side of eq. (6), as estimated by the server on arrival),
        accepted.
        """
        env, records = self.environment, self.submissions
        columns = {
            "request": env.requests.index.to_numpy()[records["row"]],
            "server": records["server"].copy(),
            "submitted": env.origin + records["submitted"],
            "estimate": records["estimate"].copy(),
            "arrived": env.origin + records["arrived"],
            "promised": env.origin + records["promised"],
            "accepted": records["accepted"].astype(bool),
        }
        return pd.DataFrame(columns)

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.policy.name

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
        due = self.environment.requests["due"].to_numpy()
        lateness = self.requests["completion"].to_numpy() - due
        return _mean(lateness[self.requests["missed"].to_numpy()])

    @property
    def drain_time(self) -> float:
        """Seconds from the horizon until the last result is returned, at least 0."""
        assert self.environment.horizon is not None
        completion = self.requests["completion"].to_numpy()
        last = float(completion[np.isfinite(completion)].max(initial=-np.inf))
        return max(0.0, last - self.environment.horizon)

    def summary(self) -> "pd.Series[float]":
        """Return the measures of the run, with the name of the policy for its name.

        Returns
        -------
        Series
            ``requests``
                Number of requests.
            ``failure_rate``
                Share of them whose result came too late or never, 0 to 1; less is better (Figures 3
                and 5).
            ``cost``
                Average resource cost in Mops/s by ``Reading.cost``; less is better (Figures 4, 6).
            ``mean_cost``, ``work_weighted_cost``
                The cost under either value of ``Reading.cost``.
            ``lateness``
                Mean lateness of the late results, seconds; less is better.
            ``fallbacks``
                Mean number of fallbacks per request; less is better (section 3.3).
            ``refused``
                Share of the requests that a user's policy refused, 0 to 1; less is better.
            ``drain_time``
                Seconds from the horizon until the last result is back; less is better.
        """
        requests = self.requests
        measures = {
            "requests": len(requests),
            "failure_rate": self.failure_rate,
            "cost": self.cost,
            "mean_cost": self.mean_cost,
            "work_weighted_cost": self.work_weighted_cost,
            "lateness": self.lateness,
            "fallbacks": _mean(requests["fallbacks"].to_numpy()),
            "refused": _mean((requests["server"] < 0).to_numpy()),
            "drain_time": self.drain_time,
        }
        return pd.Series(measures, name=self.name, dtype=float)

    def check(self) -> None:
        """Verify the result from the model's definition; a ScheduleError names the broken rule."""
        check_result(self)
