"""Automatic tuning of Opt from what the scheduler has observed (paper B, 3.1: future work).

Plain functions of a `dlsim.bricks.View`, for ``Scheduler(algorithm=...)``: each makes one,
and keeps what it learns in ``view.memory``, which is empty at the start of every run.
"""

from collections.abc import Collection
from typing import Any

import numpy as np

from dlsim.bricks.view import Algorithm, View, best_server
from dlsim.compiled import latest_finish
from dlsim.given import Floats, number, option, positive

#: Shares of a new observation in a running mean and in a running mean deviation.
SHARE, SPREAD_SHARE = 0.125, 0.25
#: Smallest Opt that a tuner sets.
LEAST_OPT = 0.05
#: Seconds that an estimate counts at least.
LEAST_ESTIMATE = 1e-9
RATE = "a failure rate in (0, 1)"
#: What `server_errors` knows that the paper's schedulers do not.
KNOWS = ("commitments", "results", "rejections")


def _news(view: View) -> list[int]:
    """Return the requests that have come back since the last decision, in order."""
    first = view.memory.get("seen", 0)
    view.memory["seen"] = len(view.returned)
    return [int(row) for row in view.returned[first:]]


def _is_missed(view: View, row: int) -> bool:
    due = view.tasks.deadline[row]
    return bool(view.completion[row] > latest_finish(due, abs(due - view.tasks.time[row])))


def target_failure(target: float = 0.05, gain: float = 0.02, start: float = 0.7) -> Algorithm:
    """Deadline whose Opt (``view.memory["opt"]``) is driven by the failures it sees.

    After every result Opt moves by ``gain * (target - missed)``, missed 1 or 0, within
    `LEAST_OPT` and 1: where it settles inside, the failure rate is the target.

    Parameters
    ----------
    target : float
        Failure rate asked for, in (0, 1).
    gain : float
        How far one result moves Opt at most, above 0.
    start : float
        The first Opt, from `LEAST_OPT` to 1.
    """
    target = number("target", target, 0, 1, above=True, below=True, rule=RATE)
    (gain,) = positive(gain=gain)
    start = number("start", start, LEAST_OPT, 1, rule=f"in [{LEAST_OPT}, 1]")

    def choose(view: View) -> int:
        opt = view.memory.setdefault("opt", float(start))
        for row in _news(view):
            opt = min(1.0, max(LEAST_OPT, opt + gain * (target - _is_missed(view, row))))
        view.memory["opt"] = opt
        return best_server(view, view.estimates, (view.deadline - view.now) * opt)

    choose.__name__ = f"target-{target:g}"
    return choose


def _compare(memory: dict[str, Any], server: int, time: float, estimate: float) -> None:
    """Enter the ratio of a time to its estimate, if finite, into a server's running means."""
    if estimate == np.inf:
        return
    error = time / max(estimate, LEAST_ESTIMATE) - memory["mean"][server]
    memory["mean"][server] += SHARE * error
    memory["deviation"][server] += SPREAD_SHARE * (abs(error) - memory["deviation"][server])


def _learn_rejected(view: View, learns: bool) -> None:
    """Take over what the server said from which the request at hand has fallen back, if it may.

    When it would have been done says how far the estimate was off, as a result would, and
    less its own work and way back it says when the server will have done what has arrived.
    """
    m = view.memory
    server, estimate, back = m["sent"].pop(view.row, (-1, 0.0, 0.0))
    if server < 0:
        return
    own = m["pending"][server].pop(view.row, (0.0, 0.0))[1]
    if not learns or not np.isfinite(view.promised):  # over a link at rest
        return
    here = {row: job for row, job in m["pending"][server].items() if job[0] > view.now}
    m["pending"][server] = here
    m["free"][server] = view.promised - back - own
    _compare(m, server, view.promised - view.submitted[view.row], estimate)


def _backlogs(view: View) -> Floats:
    """Return when every server will have done what was committed to it, not before now."""
    free = view.memory["free"].tolist()
    for server, pending in enumerate(view.memory["pending"]):
        if pending:
            end = free[server]
            for arrival, span in sorted(pending.values()):
                end = max(end, arrival) + span
            free[server] = max(end, view.now)
    return np.array(free)


def server_errors(
    spread: float = 1.0, target: float | None = None, knows: Collection[str] = KNOWS
) -> Algorithm:
    r"""Deadline on commitments, with an Opt of its own for every server.

    The monitor is asked for the network alone. What a server has to do is what was committed to it
    and has not come back: each job starts when its input was to arrive and the one before is done,
    and takes work / performance. The estimate of a request is then in error by a factor that is
    learnt per server, as TCP learns its time-outs: a running mean :math:`m_i` and mean deviation
    :math:`d_i` of time over estimate, so that :math:`Opt_i = 1 / (m_i + s\, d_i)` and step 4 of
    section 3.1 is applied to :math:`T_i / Opt_i` with the whole time until the deadline. A server
    that lets a request fall back has said when it would have been done: that counts as a result of
    that time, and corrects what the server is believed to have to do.

    Parameters
    ----------
    spread : float
        s, at least 0.
    target : float, optional
        A failure rate that s is driven to, as `target_failure` drives Opt, by 0.1 a miss.
    knows : collection of {"commitments", "results", "rejections"}
        What it uses; without commitments the estimates are those of equation (2), without
        results and rejections the errors are not learnt from these.
    """
    for name in knows:
        option("knows", name, KNOWS)
    spread = float(number("spread", spread))
    if target is not None:
        target = number("target", target, 0, 1, above=True, below=True, rule=RATE)

    def choose(view: View) -> int:
        m = view.memory
        if not m:
            n = len(view.performance)
            m.update(
                mean=np.ones(n), deviation=np.zeros(n), free=np.zeros(n), spread=spread,
                sent={}, pending=[{} for _ in range(n)],
            )  # fmt: skip
        for row in _news(view):  # compare what has come back with what was estimated
            server, estimate, back = m["sent"].pop(row)
            m["pending"][server].pop(row, None)
            m["free"][server] = max(m["free"][server], view.completion[row] - back)
            if "results" in knows:
                _compare(m, server, view.completion[row] - view.submitted[row], estimate)
            if target is not None:
                m["spread"] = max(0.0, m["spread"] + 0.1 * (_is_missed(view, row) - target))
        _learn_rejected(view, "rejections" in knows)
        span = view.work / view.performance
        arrival = view.now + view.sending
        estimates = np.maximum(arrival, _backlogs(view)) + span + view.receiving - view.now
        if "commitments" not in knows:
            estimates = view.estimates
        safe = np.maximum(m["mean"] + m["spread"] * m["deviation"], 1e-3) * estimates
        server = best_server(view, safe, view.deadline - view.now)
        m["sent"][view.row] = server, float(estimates[server]), float(view.receiving[server])
        m["pending"][server][view.row] = float(arrival[server]), float(span[server])
        return server

    choose.__name__ = f"errors-{spread:g}" + (f"-{target:g}" if target is not None else "")
    return choose
