"""Simulate deadline scheduling for client-server systems on the Grid (paper B)."""

from collections.abc import Iterable
from typing import Any

from dlsim.bricks.core.state import USER, Rules
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import MOST_PACKETS, Reading, Scheduler
from dlsim.bricks.outcome import Outcome
from dlsim.bricks.run import rules_of, run_each
from dlsim.errors import InputError
from dlsim.given import instance, usual


def simulate(
    env: Environment, scheduler: Scheduler | None = None, reading: Reading | None = None
) -> Outcome:
    """Run all requests of an environment through a scheduler, under one reading.

    Parameters
    ----------
    env : Environment
        Clients, network, servers, requests and other users.
    scheduler : Scheduler, optional
        How servers are picked; default `Scheduler()`, Greedy.
    reading : Reading, optional
        How ambiguous sentences are understood; default `Reading()`.

    Returns
    -------
    Outcome
        Tables of what happened; `Outcome.check` verifies them.

    Raises
    ------
    InputError
        For what is no environment, scheduler or reading, or a user's function that returns
        what cannot be used.

    Notes
    -----
    The event loop is compiled; a user's scheduler or predictor is a plain function that is
    called back from it, once per submission or probe.

    Examples
    --------
    Servers of 200 and 100 Mops/s, three jobs of 20 Gops (section 3.2), and a monitor that
    sees no load:

    >>> import numpy as np
    >>> import pandas as pd
    >>> env = Environment(
    ...     servers=pd.DataFrame({"domain": 0, "performance": [200, 100]}),
    ...     clients=pd.DataFrame({"domain": [0]}), traces=np.full((1, 4, 1), 100.0), step=10,
    ...     requests=pd.DataFrame({"time": [0, 1, 2], "client": 0, "send": 0, "recv": 0,
    ...                            "work": 20_000, "deadline": 250}))
    >>> blind = Reading(load="ext")
    >>> simulate(env, Scheduler("greedy"), blind).requests["completion"].tolist()
    [100.0, 200.0, 300.0]
    >>> o = simulate(env, Scheduler("greedy", load_correction=True), blind)
    >>> o.requests[["server", "completion"]].values.tolist()
    [[0.0, 100.0], [0.0, 200.0], [1.0, 202.0]]
    >>> o.failure_rate, o.cost
    (0.0, 166.66666666666666)
    """
    return run_many(env, [Scheduler() if scheduler is None else scheduler], reading)[0]


def run_many(
    env: Environment,
    schedulers: Iterable[Scheduler],
    reading: Reading | None = None,
    known: dict[Rules, Any] | None = None,
) -> list[Outcome]:
    """Run several schedulers in one environment, each as `simulate` does.

    Tables are made when they are first asked for, what cannot differ is run once, and as many
    at once as there are cores (one by one where a function of the user's has to speak).

    Parameters
    ----------
    env : Environment
        Clients, network, servers, requests and other users.
    schedulers : iterable of Scheduler
        How servers are picked.
    reading : Reading, optional
        How ambiguous sentences are understood; default `Reading()`.
    known : dict, optional
        What has been run in this very environment, to which is added; empty at first.

    Returns
    -------
    list of Outcome
        One per scheduler, in order.

    Raises
    ------
    InputError
        As `simulate`.
    """
    instance("env", env, Environment)
    reading = usual("reading", reading, Reading)
    known, schedulers = {} if known is None else known, list(schedulers)
    for scheduler in schedulers:
        instance("scheduler", scheduler, Scheduler)
    data = env.requests[["send", "recv"]].to_numpy().sum()
    if reading.network == "packet" and data / env.packet > MOST_PACKETS:
        raise InputError(
            f"packets must be at most {MOST_PACKETS}, got {data:g} Mbit in packets of "
            f'{env.packet:g}; use larger packets or network="fluid"'
        )
    rules = [rules_of(scheduler, reading) for scheduler in schedulers]
    own = [USER in (r.algorithm, r.predictor) for r in rules]
    first = {r: k for k, r in reversed(list(enumerate(rules)))}
    todo = [k for k, r in enumerate(rules) if own[k] or (r not in known and first[r] == k)]
    found = run_each(env, [(rules[k], schedulers[k]) for k in todo], reading)
    ran = dict(zip(todo, found, strict=True))
    known |= {rules[k]: records for k, records in ran.items() if not own[k]}
    return [
        Outcome.of(*(ran[k] if own[k] else known[r]), env, scheduler, reading)
        for k, (r, scheduler) in enumerate(zip(rules, schedulers, strict=True))
    ]
