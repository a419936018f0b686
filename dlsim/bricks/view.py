"""What a user's scheduler and predictor are shown (paper B, Figure 1: the Scheduling Unit)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core.state import Floats, Rules, State, Whole, World
from dlsim.kernel import latest_finish


class View(NamedTuple):
    """The state of affairs when a scheduler has to choose, without what it cannot know.

    Times count from ``Environment.origin``, which is 0 unless everything arrives late.
    All arrays over servers have one entry per row of ``Environment.servers``. Arrays are
    the engine's own: they cannot be written, and change as the run goes on.

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
        When the server that has just let it fall back would have had it done, by its own
        estimate (the right side of eq. 6, on the clock); NaN for a request that is new.
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
    submitted, server : ndarray, shape (requests,)
        Latest submission of every request so far and the server it went to; -1 for those
        that are not submitted yet.
    returned : ndarray of int
        Requests that are done, in order of their return.
    completion : ndarray of float, shape (requests,)
        Of those; NaN for the others.
    tasks : World
        The columns time, client, send, recv, work and deadline of the requests; look no
        further than those that were submitted.
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
    tasks: World
    memory: dict[str, Any]


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
    shown = values.view()
    shown.flags.writeable = False
    return shown


def outlook_of(w: World, r: Rules, s: State) -> View:
    """Return a view of no request: what stays the same, or changes by itself, during a run."""
    none = np.empty(0)
    return View(
        row=-1, now=0.0, send=0.0, recv=0.0, work=0.0, deadline=0.0, fallbacks=0,
        promised=np.nan, opt=r.opt, estimates=none, sending=none, receiving=none,
        performance=w.performance, load=_read_only(s.predicted[len(w.rates) :]),
        ours=_read_only(s.servers.ours), barred=_read_only(s.barred),
        submitted=_read_only(s.jobs.submitted), server=_read_only(s.jobs.server),
        returned=_read_only(s.returned), completion=_read_only(s.jobs.completion),
        tasks=w, memory={},
    )  # fmt: skip


def view_of(outlook: View, w: World, s: State) -> View:
    """Show a user's scheduler what it may know."""
    head, terms = s.head[0], s.moving[:, w.server_domain]
    row = int(head["row"])
    job = s.jobs[row]
    fallbacks = int(job["fallbacks"])
    promised = float(s.attempts[job["attempt"]]["promised"]) if fallbacks else np.nan
    return outlook._replace(
        row=row, now=float(head["now"]), send=float(w.send[row]), recv=float(w.recv[row]),
        work=float(w.work[row]), deadline=float(w.deadline[row]), fallbacks=fallbacks,
        promised=promised, estimates=terms[0] + terms[1] + w.work[row] * s.slowness,
        sending=terms[0], receiving=terms[1], returned=outlook.returned[: head["done"]],
    )  # fmt: skip


def window_of(r: Rules, s: State) -> Floats:
    """Return what was measured at the latest probes."""
    k, size = int(s.head[0].probes), len(s.ring)
    rows = np.arange(max(0, k - size), k) % size
    return np.ascontiguousarray(s.ring[rows].T)
