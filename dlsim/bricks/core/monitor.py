"""The resource monitor, its database, and the predictors: what the scheduler is told.

Source: paper B, section 2 (Figure 1) and section 3.1.
"""

import numpy as np

from dlsim.bricks.core.network import entry_seen
from dlsim.bricks.core.servers import count_gone, count_seen, external_load, follow
from dlsim.bricks.core.state import (
    ADAPTIVE,
    BEFORE,
    BUSY,
    CLIENTS,
    DONE,
    EXT,
    FAR,
    GONE,
    LAST,
    MEAN,
    MOST_PROBES,
    PERFECT,
    PREDICT,
    QUEUE,
    USER,
    WINDOW,
)  # fmt: skip
from dlsim.kernel import CLOCK, TOL, kernel, latest_finish, same_instant

# Shares that the last value has in the smoothed forecasts; see FORECASTERS.
_SHARES = (0.1, 0.5)


@kernel(inline=True)
def measured_load(server, time, bound, w, r, s):
    """Return what the monitor reports as Load of a server.

    What has happened by `bound` counts: a little before `time` for a probe, `time` itself
    for a perfect observer.
    """
    external = external_load(server, time, w)
    if w.loads.shape[1] == 0 and (r.load == CLIENTS or r.load == EXT):
        external = w.server_load
    if r.load == EXT:
        return external
    if r.load == CLIENTS:
        return count_seen(server, bound, False, w, s) - count_gone(server, bound, s) + external
    if r.load == QUEUE:
        seen, gone = count_seen(server, bound, True, w, s), s.cursors[server, GONE]
        follow(server, gone, bound, time, w, s)
        return seen - gone.count + external
    until = follow(server, s.cursors[server, BUSY], bound, time, w, s)
    then = max(-w.origin, time - r.probe)
    since = follow(server, s.cursors[server, BEFORE], bound - r.probe, then, w, s)
    return (until - since) / r.probe + external


@kernel
def _predict(series, r, s):
    """Write the prediction of a series after a probe, number ``head.probes``."""
    k = s.head[0].probes
    value, count, mean = s.ring[k % WINDOW, series], min(k + 1, WINDOW), 0.0
    for j in range(count):
        mean += s.ring[(k - j) % WINDOW, series]
    mean /= count
    if r.predictor == MEAN:
        s.predicted[series] = mean
    else:
        best, least, f = 0, np.inf, s.forecasts
        for j in range(f.shape[0]):
            if k > 0:
                s.errors[j, series] += abs(f[j, series] - value)
            least = min(least, s.errors[j, series])
        while not same_instant(s.errors[best, series], least, abs(value)):
            best += 1
        f[0, series], f[1, series] = value, mean
        f[2, series] += (value - f[2, series]) / (k + 1)
        for j in range(3, f.shape[0]):
            share = 1.0 if k == 0 else _SHARES[j - 3]
            f[j, series] += share * (value - f[j, series])
        s.predicted[series] = f[best, series]


@kernel
def take_probe(w, r, s):
    """Measure every link and server at the next probe, and predict."""
    head, links = s.head[0], w.rates.shape[0]
    time, steps = head.probes * r.probe - w.origin, w.rates.shape[1]
    row, k = head.probes % WINDOW, entry_seen(head.probes * r.probe, w.step, steps)
    bound, found = time - TOL * (r.probe + abs(time) / CLOCK), s.ring[row]
    if r.predictor == LAST:
        found = s.predicted
    for link in range(links):
        found[link] = w.rates[link, k]
    for server in range(w.performance.shape[0]):
        found[links + server] = measured_load(server, time, bound, w, r, s)
    if r.predictor == MEAN or r.predictor == ADAPTIVE:
        for series in range(s.ring.shape[1]):
            _predict(series, r, s)
    head.probes += 1
    head.stale = 1


@kernel
def observe(time, w, r, s):
    """Bring the database up to a time; probes that no prediction depends on are left out."""
    head, links = s.head[0], w.rates.shape[0]
    if r.predictor == PERFECT:
        k = entry_seen(w.origin + time, w.step, w.rates.shape[1])
        for link in range(links):
            s.predicted[link] = w.rates[link, k]
        for server in range(w.performance.shape[0]):
            load = measured_load(server, time, latest_finish(time, r.probe), w, r, s)
            s.predicted[links + server] = load
        head.stale = 1
        return DONE
    if w.origin + time > MOST_PROBES * r.probe:
        return FAR
    if r.predictor == LAST or r.predictor == MEAN:
        needed = 1 if r.predictor == LAST else WINDOW
        head.probes = max(head.probes, int((w.origin + time) / r.probe) - needed)
    while head.probes * r.probe - w.origin <= latest_finish(time, r.probe):
        take_probe(w, r, s)
        if r.predictor == USER:
            return PREDICT
    return DONE


@kernel
def show_link(link, w, r, s):
    """Write a link's predicted throughput after Load Correction for links."""
    ours = s.links[link].ours if r.correct_links else 0
    s.shown[link] = s.predicted[link] / (1 + r.pload * ours)
    if w.two_level:
        d = link // 4
        for way in range(2):  # LAN and WAN up, LAN and WAN down
            s.edges[way, d] = min(s.shown[4 * d + way], s.shown[4 * d + way + 2])


@kernel
def show_server(server, w, r, s):
    """Write 1 / P_serv, eq. (5) included."""
    load = s.predicted[w.rates.shape[0] + server]
    if r.correct:
        load += s.servers[server].ours * r.pload
    s.slowness[server] = (1 + load) / w.performance[server]


@kernel
def show_all(w, r, s):
    """Write what the scheduler is shown, where something new has been predicted."""
    if s.head[0].stale:
        for link in range(w.rates.shape[0]):
            show_link(link, w, r, s)
        for server in range(w.performance.shape[0]):
            show_server(server, w, r, s)
        s.head[0].stale = 0
