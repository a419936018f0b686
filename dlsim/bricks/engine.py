"""Simulate deadline scheduling for client-server systems on the Grid (paper B).

An environment becomes arrays, a scheduler under a reading the kernel's rules; then the loop.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core import events, state
from dlsim.bricks.core.network import Stream, packed
from dlsim.bricks.core.state import Rules, State, World, fresh_state
from dlsim.bricks.environment import Environment
from dlsim.bricks.model import ALGORITHMS, MOST_PACKETS, SWITCHES, Reading, Scheduler
from dlsim.bricks.outcome import Outcome
from dlsim.bricks.predictors import Predictor
from dlsim.bricks.view import REFUSE, Tasks, Witness
from dlsim.bricks.workload import Ahead
from dlsim.errors import InputError
from dlsim.given import instance, theirs, usual
from dlsim.progress import shown


def _fixed(value: Any) -> Any:
    """Return arrays as views that cannot be written: one type for the compiler, whoever made it."""
    if isinstance(value, Stream):
        return Stream(*map(_fixed, value))
    if not isinstance(value, np.ndarray):
        return value
    kinds = {"f": np.float64, "i": np.int64, "b": np.bool_}
    view: NDArray[Any] = np.ascontiguousarray(value, kinds[value.dtype.kind]).view()
    view.flags.writeable = False
    return view


def _world(env: Environment) -> World:
    """Return an environment as arrays, without copying what is large."""
    servers, topology, since = env.servers, env.topology, env.since_origin
    loads = env.load_traces if env.load_traces is not None else np.empty((len(servers), 0))
    domain, is_kept = servers["domain"].to_numpy(), isinstance(env.background, Stream)
    none_yet = packed([np.empty(0)] * len(servers), env.background.sizes[:1])
    requests = {name: env.requests[name].to_numpy() for name in Tasks._fields}
    requests |= {k: requests[k] - env.origin for k in ("time", "deadline")}
    parts = World(
        origin=env.origin, step=float(env.step), packet=float(env.packet),
        performance=servers["performance"].to_numpy(), server_domain=domain,
        places=np.unique(domain), client_domain=env.clients["domain"].to_numpy(),
        jobs=since(env.background) if is_kept else none_yet, marks=env.marks,
        until=np.inf if is_kept else 0.0,
        server_load=float(env.server_load), loads=loads, rates=env.open_rates, raw=env.rates,
        every=np.arange(len(env.rates)), data=since(env.link_background), first=topology.first,
        hops=topology.hops, domains=int(topology.domains), two_level=env.is_two_level, **requests,
    )  # fmt: skip
    return World(*map(_fixed, parts))


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


def _with_room(s: State) -> State:
    """Make room for the events that a run asks for."""
    heap = np.zeros(2 * int(s.head[0].wanted), s.heap.dtype)
    heap[: len(s.heap)] = s.heap
    return s._replace(heap=heap.view(np.recarray))


def _ask(scheduler: Scheduler, w: World, s: State, witness: Witness) -> None:
    """Let a user's scheduler choose for the request at hand."""
    servers = len(w.performance)
    view = witness.view(w, s)
    rule = f"algorithm {scheduler.name} must return REFUSE or the row of a server, "
    rule += f"one of 0..{servers - 1}"
    with theirs(rule):
        choice = scheduler.algorithm(view)  # type: ignore[operator]
        if choice is REFUSE:
            s.head[0].choice = state.REFUSE
            return
        good = np.ndim(choice) == 0 and int(choice) == choice and 0 <= choice < servers
    if not good:
        raise InputError(f"{rule}; got {choice!r}")
    s.head[0].choice = int(choice)


def _run(
    env: Environment, w: World, r: Rules, scheduler: Scheduler, reading: Reading,
    tell: Callable[[int], None],
) -> tuple[np.recarray, Any]:  # fmt: skip
    """Run one case; `tell` is told how many requests are done, every now and then."""
    s = fresh_state(w, r)
    ahead = Ahead(env.background) if w.until == 0 else None
    witness = Witness(w, r)
    predictor = Predictor(reading.predictor, r.probe) if callable(reading.predictor) else None
    while (why := events.run(w, r, s)) != state.DONE:
        if why == state.GROW:
            s = _with_room(s)
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
        elif predictor:
            predictor.predict(w, s)
    return s.jobs, s.attempts[: int(s.head[0].attempts)].copy()


def _run_all(env: Environment, cases: list[tuple[Rules, Scheduler]], reading: Reading) -> list[Any]:
    """Run cases one after another, and show how far they are."""
    w, found = _world(env), []
    count = len(w.time)
    with shown("simulating", count * len(cases)) as show:
        for number, case in enumerate(cases):

            def tell(done: int, before: int = count * number) -> None:
                show(before + done)

            found.append(_run(env, w, *case, reading, tell))
    return found


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

    Tables are made when they are first asked for, and what cannot differ is run once.

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
    reading, known = usual("reading", reading, Reading), {} if known is None else known
    many = instance("schedulers", schedulers, Iterable, rule="a list of schedulers")
    schedulers = [instance("scheduler", one, Scheduler) for one in many]
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
