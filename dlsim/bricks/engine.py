"""Simulate deadline scheduling for client-server systems on the Grid (paper B).

An environment becomes arrays, a scheduler under a reading the kernel's rules; then the loop.
"""

import copy
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core import events, state
from dlsim.bricks.core.network import Stream
from dlsim.bricks.core.state import Rules, State, World, fresh_state
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import ALGORITHMS, MOST_PACKETS, SWITCHES, Reading, Scheduler
from dlsim.bricks.outcome import Outcome
from dlsim.bricks.view import Witness, window_of
from dlsim.bricks.workload import Ahead
from dlsim.errors import InputError
from dlsim.given import instance, usual
from dlsim.progress import shown


def _fixed(values: NDArray[Any], dtype: type = np.float64) -> NDArray[Any]:
    """Return a view that cannot be written: one type for the compiler, whoever made it."""
    view: NDArray[Any] = np.ascontiguousarray(values, dtype=dtype).view()
    view.flags.writeable = False
    return view


def _fixed_stream(one: Stream) -> Stream:
    return Stream(_fixed(one.first, np.int64), _fixed(one.times), _fixed(one.sizes))


def _world(env: Environment) -> World:
    """Return an environment as arrays, without copying what is large."""
    servers, topology = env.servers, env.topology
    requests = {k: env.requests[k].to_numpy() for k in ("time", "send", "recv", "work", "deadline")}
    requests |= {k: requests[k] - env.origin for k in ("time", "deadline")}
    loads = env.load_traces if env.load_traces is not None else np.empty((len(servers), 0))
    domain, is_kept = servers["domain"].to_numpy(), isinstance(env.background, Stream)
    jobs = env.since_origin(env.background) if is_kept else env.background.none_yet()
    return World(
        origin=env.origin, step=float(env.step), packet=float(env.packet),
        performance=_fixed(servers["performance"].to_numpy()),
        server_domain=_fixed(domain, np.int64), places=_fixed(np.unique(domain), np.int64),
        client_domain=_fixed(env.clients["domain"].to_numpy(), np.int64),
        jobs=_fixed_stream(jobs), marks=_fixed(env.marks), until=np.inf if is_kept else 0.0,
        server_load=float(env.server_load), loads=_fixed(loads),
        rates=_fixed(env.open_rates), raw=_fixed(env.rates),
        every=_fixed(np.arange(len(env.rates)), np.int64),
        data=_fixed_stream(env.since_origin(env.link_background)),
        first=_fixed(topology.first, np.int64), hops=_fixed(topology.hops, np.int64),
        domains=int(topology.domains), two_level=env.is_two_level,
        client=_fixed(env.requests["client"].to_numpy(), np.int64),
        **{name: _fixed(values) for name, values in requests.items()},
    )  # fmt: skip


def _rules(scheduler: Scheduler, reading: Reading) -> Rules:
    """Return a scheduler and a reading as numbers, the same where no run can differ."""

    def code(value: object, options: tuple[object, ...]) -> int:
        return state.USER if callable(value) else options.index(value)

    most = int(scheduler.max_fallbacks)
    algorithm = code(scheduler.algorithm, ALGORITHMS)
    predictor = code(reading.predictor, SWITCHES["predictor"])
    correct, links = scheduler.load_correction, scheduler.correct_links
    return Rules(
        algorithm=algorithm, predictor=predictor, load=code(reading.load, SWITCHES["load"]),
        in_place=predictor in (state.LAST, state.PERFECT),
        opt=1.0 if algorithm == state.GREEDY else float(scheduler.opt),
        pload=float(scheduler.pload) if correct or links else 1.0,
        slack=float(scheduler.fallback_slack) if most else 0.0, probe=float(reading.probe),
        most=most + (most > 0 and not reading.fallback_strict),
        correct=correct, correct_links=links,
        exclude=most > 0 and scheduler.exclude_rejecting,
        at_arrival=most > 0 and reading.fallback_time == "at_arrival",
        packets=reading.network == "packet",
        until_served=(correct or algorithm == state.USER) and reading.corrected_until == "served",
    )  # fmt: skip


def _ask(scheduler: Scheduler, w: World, s: State, witness: Witness) -> None:
    """Let a user's scheduler choose for the request at hand."""
    servers, view = len(w.performance), witness.view(w, s)
    rule = f"algorithm {scheduler.name} must return the row of a server, one of 0..{servers - 1}"
    try:
        choice = scheduler.algorithm(view)  # type: ignore[operator]
        good = int(choice) == choice and 0 <= choice < servers
    except Exception as error:  # whatever a user's function raises
        raise InputError(f"{rule}; got {type(error).__name__}: {error}") from error
    if not good:
        raise InputError(f"{rule}; got {choice!r}")
    s.head[0].choice = int(choice)


def _own_predictor(reading: Reading) -> Any:
    """Return the predictor of one run, which remembers nothing of another."""
    try:
        if isinstance(reading.predictor, type):
            return reading.predictor()
        return copy.deepcopy(reading.predictor)
    except Exception as error:  # whatever a user's class raises
        rule = "predictor must be a function, a class made without arguments, or can be copied"
        raise InputError(f"{rule}; got {type(error).__name__}: {error}") from error


def _foretell(predictor: Any, r: Rules, s: State) -> None:
    """Let a user's predictor speak after a probe."""
    rule = "predictor must return one finite number of at least 0 per series, shape "
    rule += str(s.predicted.shape)
    try:
        found: Any = predictor(window_of(r, s))
        values = np.asarray(found, dtype=np.float64)
    except Exception as error:  # whatever a user's function raises
        raise InputError(f"{rule}; got {type(error).__name__}: {error}") from error
    if values.shape != s.predicted.shape or not ((values >= 0) & (values < np.inf)).all():
        least, most = values.min(initial=0), values.max(initial=0)
        raise InputError(f"{rule}; got shape {values.shape}, from {least} to {most}")
    s.predicted[:] = values


def _run(
    env: Environment, w: World, r: Rules, scheduler: Scheduler, reading: Reading,
    tell: Callable[[int], None],
) -> tuple[np.recarray, Any]:  # fmt: skip
    """Run one case; `tell` is told how many requests are done, every now and then."""
    s = fresh_state(w, r)
    ahead = Ahead(env.background) if w.until == 0 else None
    witness, predictor = Witness(w, r, s), _own_predictor(reading)
    while (why := events.run(w, r, s)) != state.DONE:
        if why == state.GROW:
            room = np.zeros(2 * int(s.head[0].wanted), s.heap.dtype)
            room[: len(s.heap)] = s.heap
            s = s._replace(heap=room.view(np.recarray))
        elif why == state.PAUSE:
            tell(int(s.head[0].done))
        elif why == state.MORE and ahead:
            w = ahead.move(w, r, s)
            tell(int(s.head[0].done))
        elif why == state.FAR:
            raise InputError(
                f"probe must be at least the time of every event over {state.MOST_PROBES}, got "
                f"{reading.probe!r} and an event at {w.origin + s.head[0].now:g} s; use a longer "
                "probe interval, or smaller data and earlier requests"
            )
        elif why == state.CHOOSE:
            _ask(scheduler, w, s, witness)
        else:
            _foretell(predictor, r, s)
    return s.jobs, s.attempts[: int(s.head[0].attempts)].copy()


def _threads() -> int:
    """Return how many cases run at once; one in a worker, whose siblings keep the cores busy."""
    if multiprocessing.parent_process() is not None:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run_all(env: Environment, cases: list[tuple[Rules, Scheduler]], reading: Reading) -> list[Any]:
    """Run cases, as many at once as there are cores: compiled code leaves Python to others."""
    w = _world(env)
    done, stopped, lock = [0] * len(cases), threading.Event(), threading.Lock()
    with shown("simulating", len(w.time) * len(cases)) as show:

        def run(number: int) -> Any:
            def tell(count: int) -> None:
                done[number] = count
                if stopped.is_set():
                    raise InterruptedError
                with lock:
                    show(sum(done))

            return _run(env, w, *cases[number], reading, tell)

        users = any(state.USER in (r.algorithm, r.predictor) for r, _ in cases)
        if users or len(cases) == 1 or _threads() == 1:
            return [run(number) for number in range(len(cases))]
        pool = ThreadPoolExecutor(_threads())
        try:
            return list(pool.map(run, range(len(cases))))
        finally:
            stopped.set()
            pool.shutdown(cancel_futures=True)


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
    env: Environment, schedulers: Iterable[Scheduler], reading: Reading | None = None,
    known: dict[Rules, Any] | None = None,
) -> list[Outcome]:  # fmt: skip
    """Run several schedulers in one environment, each as `simulate` does.

    Tables are made when they are first asked for, what cannot differ is run once, and as many
    at once as there are cores (one by one where a function of the user's has to speak).

    Parameters
    ----------
    env, reading
        As in `simulate`.
    schedulers : iterable of Scheduler
        How servers are picked.
    known : dict, optional
        What has been run in this very environment, to which is added; empty at first.

    Returns
    -------
    list of Outcome
        One per scheduler, in order.
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
    rules = [_rules(scheduler, reading) for scheduler in schedulers]
    own = [state.USER in (r.algorithm, r.predictor) for r in rules]
    first = {r: k for k, r in reversed(list(enumerate(rules)))}
    todo = [k for k, r in enumerate(rules) if own[k] or (r not in known and first[r] == k)]
    found = _run_all(env, [(rules[k], schedulers[k]) for k in todo], reading)
    ran = dict(zip(todo, found, strict=True))
    known |= {rules[k]: records for k, records in ran.items() if not own[k]}
    return [
        Outcome.of(*(ran[k] if own[k] else known[r]), env, scheduler, reading)
        for k, (r, scheduler) in enumerate(zip(rules, schedulers, strict=True))
    ]
