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
from dlsim.bricks.environment import ON_FAILURE, Environment
from dlsim.bricks.model import ALGORITHMS, MOST_PACKETS, SWITCHES, Reading, Scheduler
from dlsim.bricks.outcome import Outcome
from dlsim.bricks.predictors import Predictor
from dlsim.bricks.view import LATER, REFUSE, REFUSED, Batch, Tasks, Wait, Witness
from dlsim.bricks.workload import Ahead
from dlsim.errors import InputError
from dlsim.given import instance, number, theirs, usual
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
        requests=len(env.requests), edf=env.is_edf, slot=np.append(0, np.cumsum(env.slots)),
        slots=env.slots.astype(float), down=since(env.downtimes),
    )  # fmt: skip
    return World(*map(_fixed, parts))


def _rules(scheduler: Scheduler, reading: Reading, env: Environment) -> Rules:
    """Return a scheduler and a reading as numbers, the same where no run can differ."""

    def code(value: object, options: tuple[object, ...]) -> int:
        return state.USER if callable(value) else options.index(value)

    most = int(scheduler.max_fallbacks)
    algorithm = code(scheduler.algorithm, ALGORITHMS)
    predictor = code(reading.predictor, SWITCHES["predictor"])
    correct, links = scheduler.load_correction, scheduler.correct_links
    cancel = algorithm == state.USER and scheduler.copies == "cancel"
    general = cancel or env.has_queues
    every = scheduler.algorithm.every if isinstance(scheduler.algorithm, Batch) else 0.0
    if general and (reading.load, reading.predictor) == ("util", "perfect"):
        raise InputError(
            'load "util" looks back over a probe period, which predictor "perfect" has none of on '
            'servers with slots, failures or cancelled copies; use load "queue" or predictor "last"'
        )
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
        general=general, tracked=general or algorithm == state.USER, cancel=cancel,
        failed=ON_FAILURE.index(env.on_failure) if general else 0, every=every,
    )  # fmt: skip


#: How often one request may be put off, and copied.
MOST_WAITS, MOST_COPIES = 100_000, 10_000


def _grown(values: NDArray[Any], size: int) -> Any:
    """Return records with room for more."""
    room = np.zeros((size, *values.shape[1:]), values.dtype)
    room[: len(values)] = values
    return room.view(np.recarray) if values.dtype.names else room


def _room(s: State) -> State:
    """Make room for the events and submissions that a run asks for."""
    if int(s.head[0].wanted) > len(s.heap):
        s = s._replace(heap=_grown(s.heap, 2 * int(s.head[0].wanted)))
    if int(s.head[0].attempts) == len(s.attempts):
        s = s._replace(attempts=_grown(s.attempts, 2 * len(s.attempts) + 1))
    return s


def _copied(servers: list[int], w: World, s: State) -> tuple[World, State]:
    """Add a row per further server of a request, and say where each copy goes."""
    row, rows = int(s.head[0].row), len(s.copies)
    of, more = int(s.copies[row].of), len(servers) - 1
    used = int(max(w.requests, s.head[0].rows))
    if used + more > rows:
        size = 2 * (used + more)
        w = w._replace(**{k: _fixed(_grown(getattr(w, k), size)) for k in Tasks._fields})
        s = s._replace(**{k: _grown(getattr(s, k), size) for k in ("jobs", "copies", "refused")
                          if len(getattr(s, k))})  # fmt: skip
    new = np.arange(used, used + more)
    for name in Tasks._fields:
        column = getattr(w, name).view()
        column.flags.writeable = True
        column[new] = column[of]
    s.jobs.next[new] = s.jobs.server[new] = -1
    s.jobs.completion[new], s.jobs.fallbacks[new] = np.nan, s.jobs.fallbacks[row]
    s.copies.of[new], s.copies.winner[new], s.copies.state[new] = of, -1, state.NEW
    s.copies.until[new], s.copies.choice[new] = np.nan, servers[1:]
    s.copies.sibling[new] = [*new[1:], s.copies[of].sibling]
    if len(s.refused):
        s.refused[new] = s.refused[row]
    s.copies[of].sibling = used
    s.head[0].rows = used + more
    total = int(s.copies[of].asked_for) + more
    if total > MOST_COPIES:
        rule = f"a request must have at most {MOST_COPIES} copies"
        raise InputError(f"{rule}, got {total} of request {of}; send it to fewer servers")
    s.copies[of].asked_for, s.head[0].copies = total, max(int(s.head[0].copies), total + 1)
    return w, s


def _wait(until: float | None, s: State) -> int:
    """Put the request at hand off."""
    one, now = s.copies[int(s.head[0].row)], float(s.head[0].now)
    if until is not None:
        rule = f"a finite time after now, which is {now!r}, or None: the next probe"
        one.until = float(number("Wait(until)", until, now, above=True, rule=rule))
    if one.asked >= MOST_WAITS:
        what = f"request {int(one.of)} has been put off {MOST_WAITS} times"
        raise InputError(f"{what}; choose a server, or REFUSE")
    return state.WAIT


def _ask(scheduler: Scheduler, w: World, s: State, witness: Witness) -> tuple[World, State]:
    """Let a user's scheduler choose for the request at hand."""
    servers, head = len(w.performance), s.head[0]
    view = witness.view(w, s)
    rule = f"algorithm {scheduler.name} must return Wait(until), REFUSE, a list of different rows "
    rule += f"of servers, or the row of one, one of 0..{servers - 1}"
    with theirs(rule):
        choice = scheduler.algorithm(view)  # type: ignore[operator]
        if isinstance(choice, Wait):
            head.choice = _wait(choice.until, s)
            return w, s
        if choice is REFUSE:
            head.choice = state.REFUSE
            return w, s
        is_list = isinstance(choice, list | tuple) or np.ndim(choice) == 1
        several: list[Any] = [*choice] if is_list else [choice]  # type: ignore[misc]
        good = bool(several) and all(int(k) == k and 0 <= k < servers for k in several)
    if not good or len(set(map(int, several))) < len(several):
        raise InputError(f"{rule}; got {choice!r}")
    head.choice = int(several[0])
    return _copied([int(one) for one in several], w, s) if len(several) > 1 else (w, s)


def _ask_batch(scheduler: Scheduler, w: World, r: Rules, s: State, witness: Witness) -> None:
    """Let a user's scheduler choose for all requests of an instant."""
    view, copies = witness.batch(w, r, s)
    rule = f"algorithm {scheduler.name} must return an array of shape ({len(copies)},), each entry "
    rule += f"the row of a server, 0..{len(w.performance) - 1}, -1 to refuse or -2 to wait"
    with theirs(rule):
        found = np.asarray(scheduler.algorithm(view))  # type: ignore[operator]
        choices = found.astype(np.int64)
        good = found.shape == copies.shape and bool((choices == found).all())
        good = good and bool(((choices >= LATER) & (choices < len(w.performance))).all())
    if not good:
        raise InputError(f"{rule}; got {found!r}")
    head, row, waits = s.head[0], int(s.head[0].row), copies[choices == LATER]
    if r.every > 0:
        s.copies.until[waits] = float(head.now) + r.every / 2
    for later in waits[s.copies.asked[waits] >= MOST_WAITS]:
        raise InputError(f"request {later} has been put off {MOST_WAITS} times; refuse it")
    coded = np.where(choices == REFUSED, state.REFUSE, choices)
    s.copies.choice[copies] = np.where(choices == LATER, state.WAIT, coded)
    head.choice, s.copies[row].choice = s.copies[row].choice, -1


def _run(
    env: Environment, w: World, r: Rules, scheduler: Scheduler, reading: Reading,
    tell: Callable[[int], None],
) -> tuple[Any, ...]:  # fmt: skip
    """Run one case; `tell` is told how many requests are done, every now and then."""
    s = fresh_state(w, r)
    ahead = Ahead(env.background) if w.until == 0 else None
    witness = Witness(w, r, s)
    predictor = Predictor(reading.predictor, r.probe) if r.predictor == state.USER else None
    while (why := events.run(w, r, s)) != state.DONE:
        if why == state.GROW:
            s = _room(s)
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
        elif why == state.CHOOSE and isinstance(scheduler.algorithm, Batch):
            _ask_batch(scheduler, w, r, s, witness)
        elif why == state.CHOOSE:
            w, s = _ask(scheduler, w, s, witness)
        elif predictor:
            predictor.predict(w, s)
    rows = max(w.requests, int(s.head[0].rows))
    copies = s.copies[:rows] if r.tracked else None
    return s.jobs[:rows], s.attempts[: int(s.head[0].attempts)].copy(), copies


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
    rules = [_rules(scheduler, reading, env) for scheduler in schedulers]
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
