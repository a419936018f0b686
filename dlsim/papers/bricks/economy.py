"""Beyond the paper: what users pay in other economies, and a job log replayed.

The paper prices a resource by its speed alone (section 1), and names better economies as
future work (section 6).
"""

import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.bricks import Environment, Outcome, Scheduler, View, best_server, simulate, workload
from dlsim.files import opened, write_text
from dlsim.papers.bricks.runs import Kind, Row, run_all, scheduler_of, split_switches

Floats = NDArray[np.float64]

#: Speed at which all prices per second are those of the paper, Mops/s.
USUAL = 300.0
#: Day of the synthetic log: jobs at its busiest and at its quietest hour, per mean.
BUSY, QUIET = 1.8, 0.2
#: Median and spread of its run times (log-normal): 20 minutes; mean half an hour.
MEDIAN, SIGMA = 1200.0, 0.9


def _speed(performance: Floats, load: Floats) -> Floats:
    return performance


def _premium(performance: Floats, load: Floats) -> Floats:
    return performance * np.sqrt(performance / USUAL)


def _spot(performance: Floats, load: Floats) -> Floats:
    return performance * (1 + load)


#: Price per second of a server as a function of its Mops/s, and of the client jobs there
#: when the request arrives.
ECONOMIES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "per second, as speed": _speed,
    "per second, premium": _premium,
    "per second, spot": _spot,
}


def cheapest(economy: str, opt: float) -> Callable[[View], int]:
    """Make the scheduler of a user who pays: the cheapest server that is in time."""
    price = ECONOMIES[economy]

    def choose(view: View) -> int:
        limit = (view.deadline - view.now) * opt
        fits = (view.estimates <= limit) & ~view.barred
        if not fits.any():
            return best_server(view, view.estimates, -np.inf)
        bill = price(view.performance, view.load) / view.performance
        return int(np.argmin(np.where(fits, bill, np.inf)))

    choose.__name__ = f"cheapest-{economy.rpartition(' ')[2]}"
    return choose


#: Schedulers that are billed: legend, and how to make them with a number of fallbacks.
BUYERS: dict[str, Callable[[int], Scheduler]] = {
    **{
        name: (lambda n, name=name: scheduler_of(Kind(name, 0, n)))  # type: ignore[misc]
        for name in ("Greedy", "D-0.5", "D-0.7", "D-0.9")
    },
    "cheapest, premium": lambda n: Scheduler(cheapest("per second, premium", 0.7), max_fallbacks=n),
    "cheapest, spot": lambda n: Scheduler(cheapest("per second, spot", 0.7), max_fallbacks=n),
}


def waiting(o: Outcome) -> Floats:
    """Count the client jobs on its server when each request arrived there."""
    r = o.requests
    count = np.zeros(len(r))
    for rows in r.groupby("server").indices.values():
        here = r.iloc[rows]
        arrived, end = (here[name].to_numpy() for name in ("arrived", "end"))
        before = np.searchsorted(np.sort(arrived), arrived, side="left")
        count[rows] = before - np.searchsorted(np.sort(end), arrived, side="right")
    return np.maximum(count, 0.0)


def bills(o: Outcome) -> dict[str, float]:
    """Price a run in every economy."""
    work = o.environment.requests["work"].to_numpy(dtype=float)
    performance, load = o.requests["cost"].to_numpy(dtype=float), waiting(o)
    paid = {
        name: float((price(performance, load) * work / performance).sum() / work.sum())
        for name, price in ECONOMIES.items()
    }
    return {"speed of the server": o.mean_cost / USUAL, **paid}


def priced(
    interval: float, *, fallbacks: int, options: Mapping[str, Any], switches: Mapping[str, Any],
    seed: Any,
) -> list[Row]:  # fmt: skip
    """Bill `BUYERS` in one environment."""
    s = split_switches(switches)
    env = Environment.random(seed, interval, **{**options, **s.drawn})
    rows = []
    for name, make in BUYERS.items():
        o = simulate(env, make(fallbacks), s.reading)
        rows += [
            {"policy": name, "economy": economy, "bill": bill, "failure": o.failure_rate}
            for economy, bill in bills(o).items()
        ]
    return rows


def log_text(seed: Any, hours: float = 24.0, jobs: int = 900, users: int = 40) -> str:
    """Write a synthetic job log in the Standard Workload Format."""
    rng = np.random.default_rng(seed)
    hour = (np.arange(1000) + 0.5) * hours / 1000
    rate = QUIET + (BUSY - QUIET) * np.sin(np.pi * (hour % 24) / 24) ** 2
    submit = np.sort(np.interp(rng.random(jobs), np.cumsum(rate) / rate.sum(), hour)) * 3600
    run = np.exp(np.log(MEDIAN) + SIGMA * rng.standard_normal(jobs)).clip(1)
    user = rng.integers(1, users + 1, jobs)
    unknown = " ".join(["-1"] * 6)
    lines = [
        f"{k + 1} {submit[k]:.0f} -1 {run[k]:.0f} 1 -1 -1 1 -1 -1 1 {user[k]} {unknown}"
        for k in range(jobs)
    ]
    head = ["; Version: 2.2", "; Computer: none, a synthetic log", f"; MaxJobs: {jobs}"]
    return "\n".join([*head, f"; MaxRecords: {jobs}", *lines]) + "\n"


def fingerprint(path: str) -> str:
    """Return a digest of a log, so that another file under its name is run anew."""
    if not path:
        return ""
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def replay_of(path: str, seed: Any, **options: Any) -> tuple[Environment, Environment]:
    """Draw an environment, and put the requests of a log in the place of its own."""
    parts = workload.draw(seed, **options)
    clients = len(parts["clients"])
    if path:
        requests = workload.from_log(path, clients, seed=seed)
    else:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "synthetic.swf"
            write_text(log, log_text(seed, options["horizon"] / 3600))
            requests = workload.from_swf(log, clients, seed=seed)
    drawn = Environment(**parts)
    return Environment(**{**parts, "requests": requests, "horizon": None}), drawn


def replayed(
    interval: float, *, path: str, digest: str, schedulers: Sequence[Sequence[Any]],
    options: Mapping[str, Any], switches: Mapping[str, Any], seed: Any,
) -> list[Row]:  # fmt: skip
    """Run schedulers on the requests of a log and on drawn ones."""
    s = split_switches(switches)
    log, drawn = replay_of(path, seed, interval=interval, **{**options, **s.drawn})
    return [
        {"workload": name, **row}
        for name, env in (("drawn", drawn), ("log", log))
        for row in run_all(env, schedulers, s, seed)
    ]


def by_hour(requests: pd.DataFrame) -> pd.Series:
    """Count requests per hour."""
    count = pd.Series(np.bincount((requests["time"] // 3600).astype(int)))
    return count.rename_axis("hour")
