r"""Herding: what one stale load table costs all who read it (batch arrivals at one queue).

Between two probes everybody sees the same loads. A *herd* begins with the first request that
chooses a server after a probe. It is seen at the first probe after its input has arrived; until
then all who would choose as it does follow it. With requests at rate :math:`\lambda`, of which a
share q chooses alike, the first comes X after the probe, X exponential of rate
:math:`\lambda q`, is seen at :math:`V = P \lceil (X + s)/P \rceil`, s the time of its input on
the way and P the probe interval, and the number of its followers, :math:`M - 1`, is Poisson of
mean :math:`\lambda q (V - X)`. The herd meets one queue, first come, first served, and whoever
waits longer there than his slack fails. The interval enters through V alone; Load Correction
counts whom it has sent, so that nobody follows. (Statements H of `dlsim.theory`.)
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from dlsim.bricks.outcome import Outcome
from dlsim.errors import InputError
from dlsim.given import column, generator, instance, number

__all__ = ["expected_failure"]

#: Herds that are drawn, and others that show how alike all choose.
DRAWS, OTHERS = 400, 32
#: Instants after a probe at which each could begin.
PHASES = 16


def expected_failure(
    fresh: Outcome, probes: Sequence[float], opt: float = 0.0, seed: int = 0
) -> pd.DataFrame:
    """Compute the failure rate without Load Correction and Fallback from a run with the former.

    Nothing is simulated and nothing fitted: the run says which queues a probe finds, Table 1 who
    comes, equations (2) to (4) where they go, under the default reading of Load.

    Parameters
    ----------
    fresh : Outcome
        A run with Load Correction.
    probes : sequence of float
        Probe intervals, seconds.
    opt : float
        Opt of Deadline; 0 for Greedy.
    seed : int
        Of the herds that are drawn.

    Returns
    -------
    DataFrame
        Per probe interval: probe, expected (failure rate), alike (the share q of the requests
        that choose as another one does), ahead (mean number of its herd before a request).

    Raises
    ------
    InputError
        For what is no run, or one without requests, and a number out of its range.

    Notes
    -----
    Off by more where herds are not alone to blame (six draws of 12 hours): at twice Table 1's
    rate, where most requests fail even with Load Correction, up to 18 points too high (Opt 0.5,
    900 s), for it takes the queues of the corrected run; for Opt 0.9 up to 18 too low (2700 s).
    """
    instance("fresh", fresh, Outcome)
    intervals = np.ravel(column("probes", probes, above=True))
    opt = number("opt", opt, 0, 1)
    env, r = fresh.environment, fresh.environment.requests
    if r.empty:
        raise InputError("fresh must be a run with requests, got none; take another seed")
    time, send, recv, work, due = r[["time", "send", "recv", "work", "deadline"]].to_numpy().T
    speed, place = (env.servers[name].to_numpy() for name in ("performance", "domain"))
    home = env.clients["domain"].to_numpy()[r["client"]]
    top, mean = env.topology, env.open_rates.mean(axis=1)
    least = [mean[top.of(pair)].min(initial=np.inf) for pair in range(top.domains**2)]
    rate = np.reshape(least, (top.domains, top.domains))
    names = ("arrived", "end", "server")
    arrived, end, server = (fresh.requests[name].to_numpy() for name in names)
    everyone, real = len(r) / float(env.horizon or 1.0), speed * (1 - env.server_load)
    rng, rows = generator(seed), []
    who = rng.integers(len(r), size=(DRAWS, 1 + OTHERS))  # the first of a herd, and others
    inward = send[who][:, :, None] / rate[home[who]][:, :, place]
    back = recv[who][:, :, None] / rate[place].T[home[who]]
    limit = np.asarray(opt * (due - time))[who][:, :, None]
    for probe in intervals:
        seen = time[who[:, 0]] - rng.random(DRAWS) * probe
        at, job = np.nonzero((arrived <= seen[:, None]) & (end > seen[:, None]))
        load, free = np.zeros((DRAWS, len(speed))), np.repeat(seen[:, None], len(speed), axis=1)
        np.add.at(load, (at, server[job]), 1.0)
        np.maximum.at(free, (at, server[job]), end[job])
        slow = (1 + load + env.server_load) / speed
        takes = inward + back + work[who][:, :, None] * slow[:, None]
        nearest = np.where(takes <= limit, takes, -np.inf)
        chosen = np.where(np.isfinite(nearest).any(axis=2), nearest.argmax(2), takes.argmin(2))
        draws, own = np.arange(DRAWS), chosen[:, 0]
        same = chosen == own[:, None]
        alike = same[:, 1:].mean(axis=1)
        queue = free[draws, own] - seen  # what the probe saw there, in seconds
        sent, returned = inward[draws[:, None], np.arange(1 + OTHERS), chosen], back[draws, :, own]
        gap = everyone * np.maximum(alike, 1 / OTHERS)
        begin = (rng.exponential(1.0, (PHASES, DRAWS)) / gap) % probe
        lasts = probe * np.ceil((begin + sent[:, 0]) / probe) - begin
        members = 1 + everyone * alike * lasts.mean(axis=0)
        count = rng.poisson(everyone * alike * lasts[0])
        after = rng.random((DRAWS, int(count.max()) + 1))
        after[np.arange(after.shape[1]) > count[:, None]] = np.inf
        after[:, 0] = 0.0
        after = begin[0][:, None] + lasts[0][:, None] * np.sort(after, axis=1)
        failed, ahead, done = 0.0, 0.0, queue
        for k in range(after.shape[1]):
            # the first itself, then any of those who choose alike
            one = np.argmax(same[:, 1:] * rng.random((DRAWS, OTHERS)), axis=1) + 1 if k else 0 * own
            there, row = k <= count, who[draws, one]
            start = np.maximum(done, after[:, k] + sent[draws, one])
            done = np.where(there, start + work[row] / real[own], done)
            late = done + returned[draws, one] - after[:, k] > (due - time)[row]
            failed += float((late & there) @ (1 / members)) / DRAWS
            ahead += k * float(there @ (1 / members)) / DRAWS
        whole = float((count + 1) @ (1 / members)) / DRAWS
        found = {"probe": probe, "expected": failed / whole, "alike": float(alike.mean())}
        rows.append({**found, "ahead": ahead / whole})
    return pd.DataFrame(rows)
