"""What a user's scheduler and predictor are shown (paper B, Figure 1: the Scheduling Unit)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core.events import gather
from dlsim.bricks.core.schedulers import all_moves
from dlsim.bricks.core.state import Floats, Rules, State, Whole, World
from dlsim.given import instance, number
from dlsim.kernel import latest_finish


@dataclass(frozen=True)
class Wait:
    """A scheduler's answer: ask again at a time on the clock of its view, or at the next probe."""

    until: float | None = None


class Refuse:
    """A scheduler's answer: nobody shall run this request. Say `REFUSE`."""


#: The one of its kind; in the answer of a `Batch`, and that it shall be asked again next time.
REFUSE = Refuse()
REFUSED, LATER = -1, -2


@dataclass(frozen=True)
class Batch:
    """A scheduler that decides on many requests at once.

    Parameters
    ----------
    choose : callable
        A function of a `BatchView` that returns an array of the rows of servers, one per
        request; -1 refuses a request, -2 leaves it to the next round.
    every : float
        Seconds between two rounds, at multiples of which requests that have come, or fallen back,
        since the last one are decided upon; 0 for at once, together with those of the same instant.

    Examples
    --------
    The server with the smallest estimate for every request:

    >>> greedy = Batch(lambda view: view.estimates.argmin(axis=1), every=60)
    """

    choose: Callable[[Any], Any]
    every: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        instance("choose", self.choose, Callable)  # type: ignore[arg-type]
        vars(self)["every"] = float(number("every", self.every))

    @property
    def __name__(self) -> str:
        """What the legend calls it."""
        return str(getattr(self.choose, "__name__", "batch"))

    def __call__(self, view: Any) -> Any:
        """Decide."""
        return self.choose(view)


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
        (the right side of eq. 6, on the clock); NaN for a request that is new, or was lost there.
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
    asked : int
        How often it has put this request off.
    copies : int
        How many copies it has asked for so far; each is asked about again where it falls back.
    slots : ndarray of int, shape (servers,)
        Jobs that each server runs at once.
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
    asked: int
    copies: int
    slots: Whole


#: A scheduler of a user's that picks one server: its row.
Algorithm = Callable[[View], int]


class BatchView(NamedTuple):
    """What a `Batch` is shown: as `View`, with one entry, or row, per request to decide upon."""

    row: Whole
    now: float
    send: Floats
    recv: Floats
    work: Floats
    deadline: Floats
    fallbacks: Whole
    opt: float
    estimates: Floats
    sending: Floats
    receiving: Floats
    performance: Floats
    load: Floats
    ours: Whole
    submitted: Floats
    server: Whole
    returned: Whole
    completion: Floats
    tasks: Tasks
    memory: dict[str, Any]
    slots: Whole


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

    def __init__(self, w: World, r: Rules, s: State) -> None:
        """Begin with nothing seen."""
        self.come = self.tried = self.done = 0
        self.columns = {name: np.empty(0, getattr(w, name).dtype) for name in Tasks._fields}
        self.columns |= {name: np.full(0, blank) for name, blank in BLANKS.items()}
        self.opt, self.memory = r.opt, dict[str, Any]()
        self.performance = _read_only(w.performance.copy())
        self.slots = _read_only(w.slots.astype(int))

    def _see(self, row: int, w: World, s: State) -> dict[str, Any]:
        """Take over what has happened since the last decision; return all columns so far."""
        head, of, c = s.head[0], np.asarray(s.copies["of"]), self.columns
        old, new, tried, done = self.come, max(int(head["new"]), row + 1), self.tried, self.done
        if new > len(c["time"]):
            for name, column in c.items():
                c[name] = np.full(2 * new, BLANKS.get(name, 0), column.dtype)
                c[name][: len(column)] = column
        for name in Tasks._fields:
            c[name][old:new] = getattr(w, name)[old:new]
        self.come, self.tried, self.done = new, int(head["attempts"]), int(head["done"])
        fresh = s.attempts[tried : self.tried]
        rows = of[fresh["row"]]
        c["server"][rows], c["submitted"][rows] = fresh["server"], fresh["submitted"]
        rows = c["returned"][done : self.done] = s.returned[done : self.done]
        c["completion"][rows] = s.jobs["completion"][s.copies["winner"][rows]]
        seen = {k: _read_only(one[: self.done if k == "returned" else new]) for k, one in c.items()}
        return {
            "tasks": Tasks(*map(seen.pop, Tasks._fields)), **seen, "memory": self.memory,
            "now": float(head["now"]), "opt": self.opt, "performance": self.performance,
            "slots": self.slots, "load": _read_only(s.predicted[len(w.rates) :].copy()),
            "ours": _read_only(np.array(s.servers["ours"])),
        }  # fmt: skip

    def view(self, w: World, s: State) -> View:
        """Show a user's scheduler what it may know."""
        terms, copy = s.moving[:, w.server_domain], int(s.head[0]["row"])
        job, one = s.jobs[copy], s.copies[copy]
        row, fallbacks, last = int(one["of"]), int(job["fallbacks"]), s.attempts[job["attempt"]]
        promised = float(last["promised"]) if fallbacks and not last["accepted"] else np.nan
        return View(
            row=row, send=float(w.send[row]), recv=float(w.recv[row]), work=float(w.work[row]),
            deadline=float(w.deadline[row]), fallbacks=fallbacks, promised=promised,
            estimates=terms[0] + terms[1] + w.work[row] * s.slowness, sending=terms[0],
            receiving=terms[1], barred=_read_only(s.barred.copy()), asked=int(one["asked"]),
            copies=int(s.copies[row]["asked_for"]), **self._see(row, w, s),
        )  # fmt: skip

    def batch(self, w: World, r: Rules, s: State) -> tuple[BatchView, Whole]:
        """Show a `Batch` what it may know; return its copies, too."""
        copies = np.empty(len(s.copies), dtype=np.int64)
        copies = np.sort(copies[: gather(copies, w, r, s)])
        sending, receiving = np.zeros((2, len(copies), w.domains))
        all_moves(copies, sending, receiving, w, s)
        sending, receiving = sending[:, w.server_domain], receiving[:, w.server_domain]
        rows = np.array(s.copies["of"][copies])
        work = w.work[rows]
        view = BatchView(
            row=rows, send=w.send[rows], recv=w.recv[rows], work=work, deadline=w.deadline[rows],
            fallbacks=np.array(s.jobs["fallbacks"][copies]), sending=sending, receiving=receiving,
            estimates=sending + receiving + work[:, None] * s.slowness,
            **self._see(int(rows.max()), w, s),
        )  # fmt: skip
        return view, copies
