"""What a user's scheduler and predictor are shown (paper B, Figure 1: the Scheduling Unit)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core.state import Config, EnvironmentArrays, Floats, State, Whole
from dlsim.compiled import latest_finish


class Refuse:
    """Type of the sentinel `REFUSE`, which a scheduler returns to reject a request."""


#: What a scheduler returns to reject a request.
REFUSE = Refuse()


class Tasks(NamedTuple):
    """The requests that have come so far: columns of ``Environment.requests``."""

    time: Floats
    client: Whole
    send: Floats
    recv: Floats
    work: Floats
    deadline: Floats


class View(NamedTuple):
    """The state of affairs when a scheduler has to choose, without what it cannot know.

    Times count from ``Environment.origin``, which is 0 unless everything arrives late.
    All arrays over servers have one entry per row of ``Environment.servers``, those over
    requests one per request that has come so far, the one at hand included. Arrays are copies
    of what the engine works on, and cannot be written.

    Attributes
    ----------
    row : int
        The request, a row of ``Environment.requests``.
    now : float
        The clock.
    send, recv, work, deadline : float
        Of the request; the deadline is absolute.
    fallbacks : int
        How often it has fallen back.
    promised : float
        When the server that has just let it fall back would have had it done, by its own estimate
        (the right side of eq. 6, on the clock); NaN for a request that is new.
    opt : float
        ``Scheduler.opt``.
    estimates : ndarray of float, shape (servers,)
        T_Si of eq. (2).
    sending, receiving : ndarray of float, shape (servers,)
        Its first two terms.
    performance, load : ndarray of float, shape (servers,)
        Mops/s; the predicted Load, without Load Correction.
    ours : ndarray of int, shape (servers,)
        numjobs of eq. (5).
    excluded : ndarray of bool, shape (servers,)
        Excluded servers.
    submitted, server : ndarray, shape (requests so far,)
        Latest submission of every request so far and the server it went to; -1 for those
        that are not submitted yet.
    returned : ndarray of int
        Requests that are done, in order of their return.
    completion : ndarray of float, shape (requests so far,)
        Of those; NaN for the others.
    tasks : Tasks
        The columns time, client, send, recv, work and deadline of the requests so far.
    memory : dict
        Empty at the start of a run, and the scheduler's own.
    """

    row: int
    now: float
    send: float
    recv: float
    work: float
    deadline: float
    fallbacks: int
    promised: float
    opt: float
    estimates: Floats
    sending: Floats
    receiving: Floats
    performance: Floats
    load: Floats
    ours: Whole
    excluded: NDArray[np.bool_]
    submitted: Floats
    server: Whole
    returned: Whole
    completion: Floats
    tasks: Tasks
    memory: dict[str, Any]


#: A scheduler of a user's that picks one server: its row.
Algorithm = Callable[[View], int]


def best_server(view: View, estimates: Floats, target: float) -> int:
    """Apply step 4 of section 3.1 to estimates of one's own.

    Parameters
    ----------
    view : View
        The request at hand.
    estimates : ndarray of float, shape (servers,)
        Seconds that each server would take.
    target : float
        T_target in seconds; -inf for Greedy.

    Returns
    -------
    int
        The server whose estimate is not over the target and nearest to it, else the one with
        the smallest; of several within the tolerance the first.
    """
    clock = view.now + np.where(view.excluded, np.inf, estimates)
    fits = clock <= latest_finish(view.now + target, abs(target))
    if not fits.any():
        best = float(clock.min())
        return int(np.argmax((clock <= latest_finish(best, best - view.now)) & ~view.excluded))
    best = float(clock[fits].max())
    return int(np.argmax(fits & (best <= latest_finish(clock, best - view.now))))


def _read_only(values: Any) -> Any:
    values.flags.writeable = False
    return values


#: Columns of a `ViewBuilder` beside `Tasks`, with what stands for a value that is not known yet.
BLANKS = {"submitted": 0.0, "server": -1, "returned": 0, "completion": np.nan}


class ViewBuilder:
    """Builds the views of one run: copies, so that a user's scheduler reaches nothing else."""

    def __init__(self, env: EnvironmentArrays, cfg: Config) -> None:
        """Begin with nothing seen."""
        self.seen = self.attempts = self.done = 0
        self.columns = {name: np.empty(0, getattr(env, name).dtype) for name in Tasks._fields}
        self.columns |= {name: np.full(0, blank) for name, blank in BLANKS.items()}
        self.opt, self.memory = cfg.opt, dict[str, Any]()
        self.performance = _read_only(env.performance.copy())

    def _make_room(self, rows: int) -> None:
        """Lengthen the columns where they are shorter than so many rows."""
        if rows <= len(self.columns["time"]):
            return
        for name, column in self.columns.items():
            longer = np.full(2 * rows, BLANKS.get(name, 0), column.dtype)
            longer[: len(column)] = column
            self.columns[name] = longer

    def _update_columns(self, row: int, env: EnvironmentArrays, state: State) -> None:
        """Take over what has happened since the last decision."""
        counters, columns = state.counters[0], self.columns
        seen = max(int(counters["new"]), row + 1)
        self._make_room(seen)
        for name in Tasks._fields:
            columns[name][self.seen : seen] = getattr(env, name)[self.seen : seen]
        attempts = state.attempts[self.attempts : int(counters["attempts"])]
        columns["server"][attempts["row"]] = attempts["server"]
        columns["submitted"][attempts["row"]] = attempts["submitted"]
        returned = state.returned[self.done : int(counters["done"])]
        columns["returned"][self.done : int(counters["done"])] = returned
        columns["completion"][returned] = state.requests["completion"][returned]
        self.seen, self.attempts = seen, int(counters["attempts"])
        self.done = int(counters["done"])

    def view(self, env: EnvironmentArrays, state: State) -> View:
        """Show a user's scheduler what it may know of the request at hand."""
        counters = state.counters[0]
        row = int(counters["row"])
        self._update_columns(row, env, state)
        columns = {name: _read_only(column[: self.seen]) for name, column in self.columns.items()}
        request = state.requests[row]
        fallbacks = int(request["fallbacks"])
        promised = float(state.attempts[request["attempt"]]["promised"]) if fallbacks else np.nan
        return View(
            row=row,
            now=float(counters["now"]),
            send=float(env.send[row]),
            recv=float(env.recv[row]),
            work=float(env.work[row]),
            deadline=float(env.deadline[row]),
            fallbacks=fallbacks,
            promised=promised,
            opt=self.opt,
            estimates=state.estimates.copy(),
            sending=state.send_time.copy(),
            receiving=state.recv_time.copy(),
            performance=self.performance,
            load=_read_only(state.predicted[len(env.rates) :].copy()),
            ours=_read_only(np.array(state.servers["scheduled"])),
            excluded=_read_only(state.excluded.copy()),
            submitted=columns["submitted"],
            server=columns["server"],
            returned=_read_only(self.columns["returned"][: self.done]),
            completion=columns["completion"],
            tasks=Tasks(*(columns[name] for name in Tasks._fields)),
            memory=self.memory,
        )
