"""The schedulers of paper B, section 3: Greedy and Deadline."""

import numpy as np

from dlsim.bricks.core.network import least_on_path
from dlsim.bricks.core.state import DEADLINE
from dlsim.kernel import CLOCK, TOL, kernel, latest_finish


@kernel
def seconds(data, throughput):
    """Return how long a transfer takes: no time for no data, for ever at throughput 0."""
    return data / throughput if data > 0 else 0.0


@kernel
def bar(row, r, s):
    """Mark the servers that a request fell back from, unless these are all there are."""
    different = 0
    for k in range(s.jobs[row].fallbacks):
        server = s.refused[row, k]
        different += not s.barred[server]
        s.barred[server] = True
    if different == s.barred.shape[0]:
        unbar(row, r, s)


@kernel
def unbar(row, r, s):
    """Unmark them."""
    for k in range(s.jobs[row].fallbacks):
        s.barred[s.refused[row, k]] = False


@kernel
def estimate_moves(row, w, s):
    """Write, per domain that holds servers, the first two terms of eq. (2)."""
    home, send, recv = w.client_domain[w.client[row]], w.send[row], w.recv[row]
    if not w.two_level:
        for k in range(w.places.shape[0]):
            there = w.places[k]
            on_way = seconds(send, least_on_path(home, there, s.shown, w))
            s.moving[there] = on_way + seconds(recv, least_on_path(there, home, s.shown, w))
        return
    up, down = s.edges[0, home], s.edges[1, home]
    for k in range(w.places.shape[0]):
        there = w.places[k]
        on_way = seconds(send, min(up, s.edges[1, there]))
        s.moving[there] = on_way + seconds(recv, min(s.edges[0, there], down))
    inside = min(s.shown[4 * home], s.shown[4 * home + 1])  # LAN up, LAN down
    s.moving[home] = seconds(send, inside) + seconds(recv, inside)


@kernel
def split_moves(row, terms, w, s):
    """Write, per server, the first two terms of eq. (2), each for itself."""
    home = w.client_domain[w.client[row]]
    for k in range(w.server_domain.shape[0]):
        there = w.server_domain[k]
        terms[0, k] = seconds(w.send[row], least_on_path(home, there, s.shown, w))
        terms[1, k] = seconds(w.recv[row], least_on_path(there, home, s.shown, w))


@kernel
def estimate(row, server, w, s):
    """Return T_Si of eq. (2), in seconds."""
    return s.moving[w.server_domain[server]] + w.work[row] * s.slowness[server]


@kernel
def choose_server(row, now, w, r, s):
    """Return the server of step 4: nearest below the target, else the fastest."""
    limit = -np.inf
    if r.algorithm == DEADLINE:
        target = (w.deadline[row] - now) * r.opt  # eq. (1), (3)
        limit = latest_finish(now + target, abs(target))
    nearest, fastest = -np.inf, np.inf
    for k in range(w.performance.shape[0]):
        t = np.inf if s.barred[k] else estimate(row, k, w, s)
        fits = t if now + t <= limit else -np.inf
        nearest = fits if fits > nearest else nearest
        fastest = t if t < fastest else fastest
    k = 0
    if nearest > -np.inf:
        best = now + nearest
        near = best - TOL * (nearest + abs(best) / CLOCK)
        while s.barred[k] or not near <= now + estimate(row, k, w, s) <= limit:
            k += 1
        return k
    limit = latest_finish(now + fastest, fastest)
    while s.barred[k] or not now + estimate(row, k, w, s) <= limit:
        k += 1
    return k
