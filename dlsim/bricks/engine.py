"""Simulate deadline scheduling for client-server systems on the Grid (paper B).

The environment is converted to arrays, the scheduler and the reading to the configuration of the
event loop; then the loop runs.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core.network import Stream
from dlsim.bricks.core.state import (
    CHOOSE,
    DONE,
    GREEDY,
    HEAP_FULL,
    MOST_PROBES,
    PAUSE,
    PREDICT,
    REFUSED,
    TOO_MANY_PROBES,
    USER,
    Config,
    EnvironmentArrays,
    GridState,
)
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import ALGORITHMS, LOADS, MOST_PACKETS, PREDICTORS, Reading, Scheduler
from dlsim.bricks.outcome import GridResult, attempts_table, requests_table
from dlsim.bricks.speeds import uncompiled_microseconds
from dlsim.bricks.user_predictor import UserPredictor
from dlsim.bricks.view import REFUSE, RequestColumns, ViewBuilder
from dlsim.compiled import CORES
from dlsim.errors import InputError
from dlsim.progress import progress_bar
from dlsim.user_code import calling_user_code
from dlsim.validate import instance, or_default


def _read_only(value: Any) -> Any:
    """Return an array as a read-only view, so that the compiler sees one type of array."""
    if isinstance(value, Stream):
        return Stream(*map(_read_only, value))
    if not isinstance(value, np.ndarray):
        return value
    kinds = {"f": np.float64, "i": np.int64, "b": np.bool_}
    view: NDArray[Any] = np.ascontiguousarray(value, kinds[value.dtype.kind]).view()
    view.flags.writeable = False
    return view


def environment_arrays(env: Environment) -> EnvironmentArrays:
    """Return an environment as arrays; large arrays are not copied."""
    loads = env.load_traces if env.load_traces is not None else np.empty((len(env.servers), 0))
    requests = {name: env.requests[name].to_numpy() for name in RequestColumns._fields}
    requests |= {name: requests[name] - env.origin for name in ("time", "deadline")}
    arrays = EnvironmentArrays(
        origin=env.origin,
        performance=env.servers["performance"].to_numpy(),
        server_domain=env.servers["domain"].to_numpy(),
        client_domain=env.clients["domain"].to_numpy(),
        background=env.shift_to_origin(env.background),
        server_load=float(env.server_load),
        load_traces=loads,
        rates=env.available_rates,
        capacity=env.rates,
        link_background=env.shift_to_origin(env.link_background),
        step=float(env.step),
        packet=float(env.packet),
        path_start=env.topology.first,
        path_links=env.topology.hops,
        domains=int(env.topology.domains),
        **requests,
    )
    return EnvironmentArrays(*map(_read_only, arrays))


def configure(scheduler: Scheduler, reading: Reading) -> Config:
    """Return a scheduler under a reading as numbers; raise InputError for an unknown name."""
    most = int(scheduler.max_fallbacks)
    algorithm = ALGORITHMS.code_of(scheduler.algorithm)
    uses_scheduled = scheduler.load_correction or algorithm == USER
    return Config(
        algorithm=algorithm,
        load=LOADS.code_of(reading.load),
        predictor=PREDICTORS.code_of(reading.predictor),
        opt=1.0 if algorithm == GREEDY else float(scheduler.opt),
        pload=float(scheduler.pload),
        fallback_slack=float(scheduler.fallback_slack) if most else 0.0,
        probe=float(reading.probe),
        max_fallbacks=most + (most > 0 and not reading.fallback_strict),
        load_correction=scheduler.load_correction,
        correct_links=scheduler.correct_links,
        exclude_rejecting=most > 0 and scheduler.exclude_rejecting,
        send_counts_twice=reading.fallback_time == "at_arrival",
        packets=reading.network == "packet",
        corrected_until_served=uses_scheduled and reading.corrected_until == "served",
    )


def _ask_scheduler(scheduler: Scheduler, state: GridState, views: ViewBuilder) -> None:
    """Call a user's scheduler for the request to schedule, and store its choice."""
    servers, view = len(state.servers), views.view(state)
    rule = f"algorithm {scheduler.name} must return REFUSE or the row of a server, "
    rule += f"one of 0..{servers - 1}"
    with calling_user_code(rule):
        choice = scheduler.algorithm(view)  # type: ignore[operator]
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
    scheduler: Scheduler,
    reading: Reading,
    show_done: Callable[[int], None],
) -> tuple[np.recarray, Any]:
    """Run one scheduler; return the records of its requests and of their submissions."""
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
            _ask_scheduler(scheduler, state, views)
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
    scheduler: Scheduler | None = None,
    reading: Reading | None = None,
    engine: str = "auto",
) -> GridResult:
    """Run all requests of an environment through a scheduler, under one reading.

    Parameters
    ----------
    env : Environment
        Clients, network, servers, requests and other users.
    scheduler : Scheduler, optional
        Rule that picks servers; default `Scheduler()`, Greedy.
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
        For an argument of another type, an unknown engine, or a user's function that raises or
        returns a value that cannot be used.

    Notes
    -----
    A user's scheduler or predictor is a plain function. The event loop stops once per submission
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
    instance("env", env, Environment)
    scheduler = or_default("scheduler", scheduler, Scheduler)
    reading = or_default("reading", reading, Reading)
    data = env.requests[["send", "recv"]].to_numpy().sum()
    if reading.network == "packet" and data / env.packet > MOST_PACKETS:
        raise InputError(
            f"packets must be at most {MOST_PACKETS}, got {data:g} Mbit in packets of "
            f'{env.packet:g}; use larger packets or network="fluid"'
        )
    arrays, cfg = environment_arrays(env), configure(scheduler, reading)
    with (
        progress_bar("simulating", len(arrays.time)) as show_done,
        CORES["bricks"].at_speed(engine, uncompiled_microseconds(arrays, cfg)) as core,
    ):
        requests, attempts = _run(core, arrays, cfg, scheduler, reading, show_done)
    tables = requests_table(requests, env), attempts_table(attempts, env)
    return GridResult(*tables, env, scheduler, reading)
