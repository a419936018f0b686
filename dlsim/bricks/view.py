"""What a user's functions are given: the view of a policy, the measurements of a predictor.

Source: paper B, Figure 1 (the Scheduling Unit and its Predictor).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core.state import EnvironmentArrays, GridState, IntArray
from dlsim.compiled import deadline_with_tolerance
from dlsim.errors import InputError
from dlsim.user_code import calling_user_code, count_required
from dlsim.validate import Floats, require_memory


class Refuse:
    """Type of the sentinel `REFUSE`, which a policy returns to reject a request."""


#: What a policy returns to reject a request.
REFUSE = Refuse()


class RequestColumns(NamedTuple):
    """Columns of ``Environment.requests``, of the requests that have arrived so far."""

    arrival: Floats
    client: IntArray
    send: Floats
    recv: Floats
    work: Floats
    due: Floats


class View(NamedTuple):
    """The state of the Grid at a decision, as far as a policy can know it.

    Times count from ``Environment.origin``, which is 0 unless all arrivals are at large times.
    Arrays of shape (servers,) have one entry per row of ``Environment.servers``; arrays of shape
    (requests so far,) have one per request that has arrived, the current one included. Arrays are
    copies of the engine's; all but `estimates`, `sending` and `receiving` are read-only.

    Attributes
    ----------
    row : int
        The request to schedule, a row of ``Environment.requests``.
    now : float
        The current time.
    send, recv, work, due : float
        Input and result (Mbit), work (Mops) and due instant of the request.
    fallbacks : int
        Number of fallbacks of the request so far.
    promised : float
        Completion time that the server estimated when it refused the request (the right side of
        eq. 6, plus the time then); NaN for a new request.
    opt : float
        ``Policy.opt``.
    estimates : ndarray of float, shape (servers,)
        T_Si of eq. (2).
    sending, receiving : ndarray of float, shape (servers,)
        The first two terms of `estimates`: transfer times of input and result.
    performance, load : ndarray of float, shape (servers,)
        Performance in Mops/s; predicted Load, without Load Correction.
    scheduled : ndarray of int, shape (servers,)
        numjobs of eq. (5): client jobs that are scheduled on the server and not completed.
    excluded : ndarray of bool, shape (servers,)
        Servers that the request fell back from, if ``Policy.exclude_rejecting``.
    submitted, server : ndarray, shape (requests so far,)
        Time and server of the latest submission of every request so far; server is -1 for a
        request that is not submitted yet.
    returned : ndarray of int
        Rows of the requests whose result has returned, in order of the returns.
    completion : ndarray of float, shape (requests so far,)
        Completion times; NaN for requests that have not returned.
    requests : RequestColumns
        The columns arrival, client, send, recv, work and due of the requests so far.
    memory : dict
        A dict for the function's own use, empty at the start of a run.
    """

    row: int
    now: float
    send: float
    recv: float
    work: float
    due: float
    fallbacks: int
    promised: float
    opt: float
    estimates: Floats
    sending: Floats
    receiving: Floats
    performance: Floats
    load: Floats
    scheduled: IntArray
    excluded: NDArray[np.bool_]
    submitted: Floats
    server: IntArray
    returned: IntArray
    completion: Floats
    requests: RequestColumns
    memory: dict[str, Any]


def best_server(view: View, estimates: Floats, target: float) -> int:
    """Choose a server from given estimates, by step 4 of section 3.1.

    Parameters
    ----------
    view : View
        The view of the request to schedule.
    estimates : ndarray of float, shape (servers,)
        Seconds that each server would take.
    target : float
        T_target in seconds; -inf for Greedy.

    Returns
    -------
    int
        The server with the largest estimate that does not exceed the target; if there is none,
        the server with the smallest estimate. Of equal estimates the first is taken.
    """
    clock = view.now + np.where(view.excluded, np.inf, estimates)
    fits = clock <= deadline_with_tolerance(view.now + target, abs(target))
    if not fits.any():
        best = float(clock.min())
        return int(
            np.argmax((clock <= deadline_with_tolerance(best, best - view.now)) & ~view.excluded)
        )
    best = float(clock[fits].max())
    return int(np.argmax(fits & (best <= deadline_with_tolerance(clock, best - view.now))))


def _read_only(values: Any) -> Any:
    values.flags.writeable = False
    return values


class ViewBuilder:
    """Build the views of one run, from copies in which no later request can be found."""

    def __init__(self, env: EnvironmentArrays, opt: float) -> None:
        """Start without requests."""
        rows = len(env.arrival)
        self.env, self.opt, self.memory = env, opt, dict[str, Any]()
        self.performance = _read_only(env.performance.copy())
        self.requests = RequestColumns(
            *(np.zeros_like(getattr(env, name)) for name in RequestColumns._fields)
        )
        self.submitted, self.server = np.zeros(rows), np.full(rows, -1)
        self.returned, self.completion = np.zeros(rows, dtype=np.int64), np.full(rows, np.nan)
        self.seen = self.attempts = self.done = 0

    def _update_columns(self, seen: int, state: GridState) -> None:
        """Copy the requests, submissions and results since the last decision."""
        for name, column in self.requests._asdict().items():
            column[self.seen : seen] = getattr(self.env, name)[self.seen : seen]
        counters = state.counters[0]
        attempts = state.attempts[self.attempts : int(counters["attempts"])]
        self.server[attempts["row"]] = attempts["server"]
        self.submitted[attempts["row"]] = attempts["submitted"]
        returned = state.returned[self.done : int(counters["done"])]
        self.returned[self.done : int(counters["done"])] = returned
        self.completion[returned] = state.requests["completion"][returned]
        self.seen, self.attempts = seen, int(counters["attempts"])
        self.done = int(counters["done"])

    def view(self, state: GridState) -> View:
        """Return the view of the request that has to be scheduled."""
        env, counters = self.env, state.counters[0]
        row = int(counters["row"])
        seen = max(int(counters["new"]), row + 1)
        self._update_columns(seen, state)
        request = state.requests[row]
        fallbacks = int(request["fallbacks"])
        promised = float(state.attempts[request["attempt"]]["promised"]) if fallbacks else np.nan
        return View(
            row=row,
            now=float(counters["now"]),
            send=float(env.send[row]),
            recv=float(env.recv[row]),
            work=float(env.work[row]),
            due=float(env.due[row]),
            fallbacks=fallbacks,
            promised=promised,
            opt=self.opt,
            estimates=state.estimates.copy(),
            sending=state.send_time.copy(),
            receiving=state.recv_time.copy(),
            performance=self.performance,
            load=_read_only(state.predicted[len(env.rates) :].copy()),
            scheduled=_read_only(state.scheduled.copy()),
            excluded=_read_only(state.excluded.copy()),
            submitted=_read_only(self.submitted[:seen]),
            server=_read_only(self.server[:seen]),
            returned=_read_only(self.returned[: self.done]),
            completion=_read_only(self.completion[:seen]),
            requests=RequestColumns(*(_read_only(column[:seen]) for column in self.requests)),
            memory=self.memory,
        )


class UserPredictor:
    """A user's predictor in one run, with the measurements that it is given."""

    def __init__(self, function: Callable[..., Any], probe: float) -> None:
        """Begin without measurements."""
        self.function, self.probe, self.count = function, probe, 0
        self.past: Floats | None = np.empty((0, 0)) if count_required(function) == 2 else None

    def _arguments(self, env: EnvironmentArrays, state: GridState) -> tuple[Floats, ...]:
        """Return the last ten measurements, or all measurements and their times."""
        k, size = int(state.counters[0].probes), len(state.measured)
        if self.past is None:
            rows = np.arange(max(0, k - size), k) % size
            return (np.ascontiguousarray(state.measured[rows].T),)
        if k > len(self.past):
            capacity = max(64, 2 * len(self.past))
            remedy = "use a longer probe interval, or a predictor of the last ten values alone"
            require_memory(
                "the past of all series", 8.0 * capacity * state.measured.shape[1], remedy
            )
            longer = np.empty((capacity, state.measured.shape[1]))
            if self.count:
                longer[: self.count] = self.past[: self.count]
            self.past = longer
        self.past[k - 1] = state.measured[(k - 1) % size]
        self.count = k
        values = self.past[:k].T
        values.flags.writeable = False
        return values, np.asarray(self.probe * np.arange(k) - env.origin)

    def predict(self, env: EnvironmentArrays, state: GridState) -> None:
        """Call the function after a probe, and store what it predicts."""
        rule = "predictor must return one finite number of at least 0 per series, shape "
        rule += str(state.predicted.shape)
        with calling_user_code(rule):
            values = np.asarray(self.function(*self._arguments(env, state)), dtype=np.float64)
        if values.shape != state.predicted.shape or not ((values >= 0) & (values < np.inf)).all():
            least, most = values.min(initial=0), values.max(initial=0)
            raise InputError(f"{rule}; got shape {values.shape}, from {least} to {most}")
        state.predicted[:] = values
