"""Schedulers of the literature on stale load information, for ``Scheduler(algorithm=...)``.

They know that everybody sees the same old news, and answer by chance; none counts what it has sent.

References
----------
M. Mitzenmacher, "How useful is old information?", IEEE TPDS 11(1), 2000 (best of d);
M. Dahlin, "Interpreting stale load information", IEEE TPDS 11(10), 2000 (load interpretation).
"""

from typing import Any

import numpy as np

from dlsim.bricks.view import Algorithm, View, best_server
from dlsim.given import Floats, number, positive, whole

__all__ = ["best_of", "filled", "interpreted", "random_feasible"]


def _chance(view: View, seed: int) -> np.random.Generator:
    """Return the run's own random numbers."""
    made: np.random.Generator = view.memory.setdefault("chance", np.random.default_rng(seed))
    return made


def in_time(view: View, opt: float) -> Any:
    """Return the servers that are estimated to be in time at Opt."""
    fits = ~view.excluded & (view.estimates <= (view.deadline - view.now) * opt)
    return np.flatnonzero(fits)


def random_feasible(opt: float = 1.0, seed: int = 0) -> Algorithm:
    """Any server that is estimated to be in time at Opt, all alike; for none, the fastest.

    Parameters
    ----------
    opt : float
        Opt of equation (3), in (0, 1].
    seed : int
        Of the draws.
    """
    opt, seed = number("opt", opt, 0, 1, above=True), whole("seed", seed, 0)

    def choose(view: View) -> int:
        some = in_time(view, opt)
        if not some.size:
            return best_server(view, view.estimates, -np.inf)
        return int(_chance(view, seed).choice(some))

    choose.__name__ = f"random-{opt:g}"
    return choose


def best_of(d: int = 2, seed: int = 0) -> Algorithm:
    """The one that is estimated to be done first among d servers drawn at random.

    Parameters
    ----------
    d : int
        Servers that are compared, at least 1.
    seed : int
        Of the draws.
    """
    d, seed = whole("d", d, 1), whole("seed", seed, 0)

    def choose(view: View) -> int:
        free = np.flatnonzero(~view.excluded)
        drawn = _chance(view, seed).choice(free, min(d, len(free)), replace=False)
        estimates = np.full(len(view.estimates), np.inf)
        estimates[drawn] = view.estimates[drawn]
        return best_server(view, estimates, -np.inf)

    choose.__name__ = f"best-of-{d}"
    return choose


def filled(jobs: Floats, speed: Floats, more: float) -> Floats:
    r"""Share out jobs so that those served longest wait least: the levels of all are equal.

    The shares :math:`p_i \ge 0` with :math:`\sum p_i = 1` for which :math:`(jobs_i + more
    \cdot p_i) / speed_i` is one level wherever :math:`p_i > 0`, and no server lies below it.

    Parameters
    ----------
    jobs, speed : ndarray of float, shape (servers,)
        What every server has, and how fast it is.
    more : float
        Jobs to come, above 0.
    """
    order = np.argsort(jobs / speed, kind="stable")
    level = (more + np.cumsum(jobs[order])) / np.cumsum(speed[order])
    used = int(np.flatnonzero(level > (jobs / speed)[order]).max()) + 1
    shares = np.zeros(len(jobs))
    first = order[:used]
    shares[first] = (level[used - 1] * speed[first] - jobs[first]) / more
    return shares / shares.sum()


def interpreted(period: float, opt: float = 1.0, seed: int = 0) -> Algorithm:
    """Load interpretation: servers in time at Opt by chance, so that queues end the period even.

    Everybody who asks between two probes sees the same loads; as many requests come in a period
    as came on average so far. They are shared out by `filled`, and one of these shares is drawn.

    Parameters
    ----------
    period : float
        Seconds between two probes, above 0.
    opt : float
        Opt of equation (3), in (0, 1].
    seed : int
        Of the draws.
    """
    (period,) = positive(period=period)
    opt, seed = number("opt", opt, 0, 1, above=True), whole("seed", seed, 0)

    def choose(view: View) -> int:
        more = period * len(view.tasks.time) / max(view.now, period)
        some = in_time(view, opt)
        some = some if some.size else np.flatnonzero(~view.excluded)
        shares = filled(view.load[some], view.performance[some], more)
        return int(_chance(view, seed).choice(some, p=shares))

    choose.__name__ = f"interpreted-{opt:g}"
    return choose
