"""Simulate deadline scheduling for client-server systems on the Grid (paper B).

The policy and the reading are converted to the configuration of the event loop, which then runs on
the arrays of the environment.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from dlsim.bricks.core.schedulers import GREEDY
from dlsim.bricks.core.state import (
    ADAPTIVE,
    CHOOSE,
    DONE,
    HEAP_FULL,
    MOST_PROBES,
    PAUSE,
    PREDICT,
    QUEUE,
    REFUSED,
    TOO_MANY_PROBES,
    USER,
    UTILISATION,
    WINDOW_PROBES,
    Config,
    EnvironmentArrays,
    GridState,
)
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import (
    ALGORITHMS,
    LOADS,
    MOST_PACKETS,
    PREDICTORS,
    Policy,
    Reading,
    find_policy,
)
from dlsim.bricks.result import GridResult, requests_table
from dlsim.bricks.view import REFUSE, UserPredictor, View, ViewBuilder
from dlsim.compiled import CORES
from dlsim.errors import InputError
from dlsim.progress import progress_bar
from dlsim.user_code import calling_user_code
from dlsim.validate import instance, or_default

#: Microseconds that the uncompiled core takes, measured on an Intel Xeon.
MICROSECONDS = {
    "estimate": 25,  # of one server for a request
    "measurement": 20,  # of a link or a server
    "service": 20,  # of a background job, unless all are alike and only their end is needed
    "packet": 270,  # that passes a link
    "link data": 10,  # of another user, that pass a link
    "entry": 3,  # of a trace, passed by a transfer or a service
}


def configure(policy: Policy, reading: Reading) -> Config:
    """Return a policy under a reading as numbers."""
    most = int(policy.max_fallbacks)
    algorithm = USER if callable(policy.algorithm) else ALGORITHMS[policy.algorithm].code
    predictor = reading.predictor
    uses_scheduled = policy.load_correction or algorithm == USER
    return Config(
        algorithm=algorithm,
        load=LOADS[reading.load],
        predictor=USER if callable(predictor) else PREDICTORS[predictor],
        opt=1.0 if algorithm == GREEDY else float(policy.opt),
        pload=float(policy.pload),
        fallback_slack=float(policy.fallback_slack) if most else 0.0,
        probe=float(reading.probe),
        max_fallbacks=most + (most > 0 and not reading.fallback_strict),
        load_correction=policy.load_correction,
        correct_links=policy.correct_links,
        exclude_rejecting=most > 0 and policy.exclude_rejecting,
        send_counts_twice=reading.fallback_time == "at_arrival",
        packets=reading.network == "packet",
        corrected_until_served=uses_scheduled and reading.corrected_until == "served",
    )


def count_trace_entries(env: EnvironmentArrays) -> float:
    """Return about how many entries of traces transfers and services pass."""
    sample = env.rates[:, :: 1 + env.rates.shape[1] // 100]
    transfers = (env.send.sum() + env.recv.sum()) / sample.mean() if sample.any() else 0.0
    services = env.work.sum() / env.performance.mean() if env.load_traces.size else 0.0
    return float(transfers + services) / env.step


def uncompiled_microseconds(env: EnvironmentArrays, cfg: Config) -> int:
    """Return about how many microseconds a run takes uncompiled, mostly more than it does."""
    servers, submissions = len(env.performance), len(env.arrival) * (cfg.max_fallbacks + 1)
    probes = env.arrival.max(initial=0.0) / cfg.probe
    if cfg.predictor not in (ADAPTIVE, USER):  # the others skip probes before the last ten
        probes = min(probes, WINDOW_PROBES * submissions)
    are_alike = len(env.background.sizes) == 1 and not env.load_traces.size
    total = MICROSECONDS["estimate"] * submissions * servers
    total += MICROSECONDS["measurement"] * probes * (len(env.rates) + servers)
    if cfg.load in (UTILISATION, QUEUE) or not are_alike:
        total += MICROSECONDS["service"] * len(env.background.times)
    total += MICROSECONDS["entry"] * count_trace_entries(env)
    if cfg.packets:
        packets, hops = (env.send + env.recv).sum() / env.packet, np.diff(env.path_start)
        total += MICROSECONDS["packet"] * packets * hops.max(initial=0)
        total += MICROSECONDS["link data"] * len(env.link_background.times)
    return int(total)


def _ask_policy(policy: Policy, state: GridState, views: ViewBuilder) -> None:
    """Call a user's policy for the request to schedule, and store its choice."""
    servers, view = len(state.servers), views.view(state)
    rule = f"policy {policy.name} must return REFUSE or the row of a server, "
    rule += f"one of 0..{servers - 1}"
    with calling_user_code(rule):
        choice = policy.algorithm(view)  # type: ignore[operator]
        if choice is REFUSE:
            state.counters[0].choice = REFUSED
            return
        is_row = np.ndim(choice) == 0 and int(choice) == choice and 0 <= choice < servers
    if not is_row:
        raise InputError(f"{rule}; got {choice!r}")
    state.counters[0].choice = int(choice)


def _run(
    core: SimpleNamespace,
    env: EnvironmentArrays,
    cfg: Config,
    policy: Policy,
    reading: Reading,
    show_done: Callable[[int], None],
) -> tuple[np.recarray, Any]:
    """Run one policy; return the records of its requests and of their submissions."""
    state = core.state.initial_state(env, cfg)
    views = ViewBuilder(env, cfg.opt) if cfg.algorithm == USER else None
    predictor = UserPredictor(reading.predictor, cfg.probe) if callable(reading.predictor) else None
    while (reason := core.loop.run_events(env, cfg, state)) != DONE:
        counters = state.counters[0]
        if reason == HEAP_FULL:
            state = core.state.grow_heaps(state)
        elif reason == PAUSE:
            show_done(int(counters.done))
        elif reason == CHOOSE and views is not None:
            _ask_policy(policy, state, views)
        elif reason == PREDICT and predictor is not None:
            predictor.predict(env, state)
        elif reason == TOO_MANY_PROBES:
            raise InputError(
                f"probe must be at least the time of every event over {MOST_PROBES}, got "
                f"{reading.probe!r} and an event at {env.origin + counters.now:g} s; use a longer "
                "probe interval, or smaller data and earlier requests"
            )
        else:
            raise AssertionError(f"the event loop stopped for an unknown reason: {reason}")
    return state.requests, state.attempts[: int(state.counters[0].attempts)].copy()


def simulate(
    env: Environment,
    policy: str | Policy | Callable[[View], Any],
    reading: Reading | None = None,
    engine: str = "auto",
) -> GridResult:
    """Run all requests of an environment by a policy, under one reading.

    Parameters
    ----------
    env : Environment
        Clients, network, servers, requests and other users.
    policy : str, Policy or callable
        Rule that picks servers: a legend of the paper such as ``"D-0.7 L/F"`` (`read_legend`), a
        record, a function of a `View`, or ``"FILE.py:name"`` of one of the last two.
    reading : Reading, optional
        Switches for the ambiguous sentences; default `Reading()`.
    engine : {"auto", "compiled", "python"}
        Compiled (the first run of a version compiles for some 20 s) or uncompiled, with the same
        decisions; "auto" takes the uncompiled engine for small work, up to about a second and a
        half in a process.

    Returns
    -------
    GridResult
        Tables of what happened; `GridResult.check` verifies them.

    Raises
    ------
    InputError
        For an argument of another type, an unknown policy or engine, or a user's function that
        raises or returns a value that cannot be used.

    Notes
    -----
    A user's policy or predictor is a plain function. The event loop stops once per submission
    or probe and the function is called directly, with both engines.

    Examples
    --------
    Servers of 200 and 100 Mops/s, three jobs of 20 Gops (section 3.2), and a monitor that
    sees no load:

    >>> import numpy as np
    >>> import pandas as pd
    >>> env = Environment(
    ...     servers=pd.DataFrame({"domain": 0, "performance": [200, 100]}),
    ...     clients=pd.DataFrame({"domain": [0]}), traces=np.full((1, 4, 1), 100.0), step=10,
    ...     requests=pd.DataFrame({"arrival": [0, 1, 2], "client": 0, "send": 0, "recv": 0,
    ...                            "work": 20_000, "due": 250}))
    >>> blind = Reading(load="ext")
    >>> simulate(env, "Greedy", blind).requests["completion"].tolist()
    [100.0, 200.0, 300.0]
    >>> o = simulate(env, "Greedy L/x", blind)
    >>> o.requests[["server", "completion"]].values.tolist()
    [[0.0, 100.0], [0.0, 200.0], [1.0, 202.0]]
    >>> o.failure_rate, o.cost
    (0.0, 166.66666666666666)
    """
    instance("env", env, Environment)
    policy = find_policy(policy)
    reading = or_default("reading", reading, Reading)
    data = env.requests[["send", "recv"]].to_numpy().sum()
    if reading.network == "packet" and data / env.packet > MOST_PACKETS:
        raise InputError(
            f"packets must be at most {MOST_PACKETS}, got {data:g} Mbit in packets of "
            f'{env.packet:g}; use larger packets or network="fluid"'
        )
    arrays, cfg = env.arrays, configure(policy, reading)
    with (
        progress_bar("simulating", len(arrays.arrival)) as show_done,
        CORES["bricks"].at_speed(engine, uncompiled_microseconds(arrays, cfg)) as core,
    ):
        requests, attempts = _run(core, arrays, cfg, policy, reading, show_done)
    return GridResult(requests_table(requests, env), attempts, env, policy, reading)
