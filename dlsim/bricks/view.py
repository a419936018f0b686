"""What a user's scheduler and predictor are shown (paper B, Figure 1: the Scheduling Unit)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core.state import Floats, Rules, State, Whole, World
from dlsim.compiled import latest_finish


class Refuse:
    """A scheduler's answer: nobody shall run this request. Say `REFUSE`."""


#: The one of its kind.
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
    barred : ndarray of bool, shape (servers,)
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
    barred: NDArray[np.bool_]
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
    clock = view.now + np.where(view.barred, np.inf, estimates)
    fits = clock <= latest_finish(view.now + target, abs(target))
    if not fits.any():
        best = float(clock.min())
        return int(np.argmax((clock <= latest_finish(best, best - view.now)) & ~view.barred))
    best = float(clock[fits].max())
    return int(np.argmax(fits & (best <= latest_finish(clock, best - view.now))))


def _read_only(values: Any) -> Any:
    values.flags.writeable = False
    return values


#: What a `Witness` has beside `Tasks`, and what stands there for what is not known yet.
BLANKS = {"submitted": 0.0, "server": -1, "returned": 0, "completion": np.nan}


class Witness:
    """What a user's scheduler has seen of a run: copies, so that nothing leads to the rest."""

    def __init__(self, w: World, r: Rules) -> None:
        """Begin with nothing seen."""
        self.come = self.tried = self.done = 0
        self.columns = {name: np.empty(0, getattr(w, name).dtype) for name in Tasks._fields}
        self.columns |= {name: np.full(0, blank) for name, blank in BLANKS.items()}
        self.opt, self.memory = r.opt, dict[str, Any]()
        self.performance = _read_only(w.performance.copy())

    def _see(self, row: int, w: World, s: State) -> dict[str, Any]:
        """Take over what has happened since the last decision; return all columns so far."""
        head, c = s.head[0], self.columns
        old, new, tried, done = self.come, max(int(head["new"]), row + 1), self.tried, self.done
        if new > len(c["time"]):
            for name, column in c.items():
                c[name] = np.full(2 * new, BLANKS.get(name, 0), column.dtype)
                c[name][: len(column)] = column
        for name in Tasks._fields:
            c[name][old:new] = getattr(w, name)[old:new]
        self.come, self.tried, self.done = new, int(head["attempts"]), int(head["done"])
        fresh = s.attempts[tried : self.tried]
        rows = fresh["row"]
        c["server"][rows], c["submitted"][rows] = fresh["server"], fresh["submitted"]
        rows = c["returned"][done : self.done] = s.returned[done : self.done]
        c["completion"][rows] = s.jobs["completion"][rows]
        seen = {k: _read_only(one[: self.done if k == "returned" else new]) for k, one in c.items()}
        return {
            "tasks": Tasks(*map(seen.pop, Tasks._fields)), **seen, "memory": self.memory,
            "now": float(head["now"]), "opt": self.opt, "performance": self.performance,
            "load": _read_only(s.predicted[len(w.rates) :].copy()),
            "ours": _read_only(np.array(s.servers["ours"])),
        }  # fmt: skip

    def view(self, w: World, s: State) -> View:
        """Show a user's scheduler what it may know."""
        terms, row = s.moving[:, w.server_domain], int(s.head[0]["row"])
        job = s.jobs[row]
        fallbacks = int(job["fallbacks"])
        promised = float(s.attempts[job["attempt"]]["promised"]) if fallbacks else np.nan
        return View(
            row=row, send=float(w.send[row]), recv=float(w.recv[row]), work=float(w.work[row]),
            deadline=float(w.deadline[row]), fallbacks=fallbacks, promised=promised,
            estimates=terms[0] + terms[1] + w.work[row] * s.slowness, sending=terms[0],
            receiving=terms[1], barred=_read_only(s.barred.copy()), **self._see(row, w, s),
        )  # fmt: skip
