"""The schedulers of paper B, section 3: Greedy and Deadline."""

import numpy as np

from dlsim.bricks.core.network import least_on_path
from dlsim.bricks.core.state import DEADLINE, USER
from dlsim.compiled import CLOCK, TOL, compiled, latest_finish


@compiled(inline=True)
def seconds(data, throughput):
    """Return how long a transfer takes: no time for no data, for ever at throughput 0."""
    return data / throughput if data > 0 else 0.0


@compiled(inline=True)
def bar(row, s):
    """Mark the servers that a request fell back from, unless these are all there are."""
    different = 0
    for k in range(s.jobs[row].fallbacks):
        server = s.refused[row, k]
        different += not s.barred[server]
        s.barred[server] = True
    if different == s.barred.shape[0]:
        unbar(row, s)


@compiled(inline=True)
def unbar(row, s):
    """Unmark them."""
    for k in range(s.jobs[row].fallbacks):
        s.barred[s.refused[row, k]] = False


@compiled(inline=True)
def moves(row, there, w, s):
    """Return the first two terms of eq. (2) for servers of a domain."""
    if not w.two_level:
        return s.moving[0, there] + s.moving[1, there]
    home, send, recv = w.client_domain[w.client[row]], w.send[row], w.recv[row]
    if there == home:
        inside = min(s.shown[4 * home], s.shown[4 * home + 1])  # LAN up, LAN down
        return seconds(send, inside) + seconds(recv, inside)
    on_way = seconds(send, min(s.edges[0, home], s.edges[1, there]))
    return on_way + seconds(recv, min(s.edges[0, there], s.edges[1, home]))


@compiled(inline=True)
def bound_moves(row, w, r, s):
    """Return bounds of the first two terms of eq. (2), or write these themselves."""
    home, send, recv = w.client_domain[w.client[row]], w.send[row], w.recv[row]
    if w.two_level and r.algorithm != USER:
        up, down, near = s.edges[0, home], s.edges[1, home], moves(row, home, w, s)
        least = seconds(send, min(up, s.reach[1, 1])) + seconds(recv, min(s.reach[0, 1], down))
        most = seconds(send, min(up, s.reach[1, 0])) + seconds(recv, min(s.reach[0, 0], down))
        return min(least, near), max(most, near)
    least, most = np.inf, 0.0
    for k in range(w.places.shape[0]):
        there = w.places[k]
        s.moving[0, there] = seconds(send, least_on_path(home, there, s.shown, w))
        s.moving[1, there] = seconds(recv, least_on_path(there, home, s.shown, w))
        total = s.moving[0, there] + s.moving[1, there]
        least, most = min(least, total), max(most, total)
    return least, most


@compiled(inline=True)
def estimate(row, server, w, s):
    """Return T_Si of eq. (2), in seconds."""
    return moves(row, w.server_domain[server], w, s) + w.work[row] * s.slowness[server]


@compiled(inline=True)
def _bounded(transfers, row, rank, w, s):
    """Return a bound of T_Si for the server of a rank: its transfers are no less, or no more."""
    return transfers + w.work[row] * s.slowness[s.order[rank]]


@compiled(inline=True)
def _nearest(row, now, limit, least, most, w, s):
    """Return the server nearest below a limit of the clock, -1 for none.

    Servers are looked at from the slowest that may be in time down to where none can be as
    near. The first of those that are as near as the nearest is taken; there are several only
    where one was `tied` when it was looked at.
    """
    low, top = 0, s.order.shape[0]
    while low < top:
        middle = (low + top) // 2
        if now + _bounded(least, row, middle, w, s) <= limit:
            low = middle + 1
        else:
            top = middle
    i, nearest, near, found, tied = top, -np.inf, -np.inf, -1, False
    while i > 0 and now + _bounded(most, row, i - 1, w, s) >= near:
        i -= 1
        k = s.order[i]
        t = estimate(row, k, w, s)
        if t > nearest and now + t <= limit and not s.barred[k]:
            best, last, found = now + t, now + nearest, k
            near = best - TOL * (t + abs(best) / CLOCK)
            nearest, tied = t, tied or last >= near
        elif near <= now + t <= limit:
            tied = True
    i = top
    while tied and i > 0 and now + _bounded(most, row, i - 1, w, s) >= near:
        i -= 1
        k = s.order[i]
        if k < found and not s.barred[k] and near <= now + estimate(row, k, w, s) <= limit:
            found = k
    return found


@compiled(inline=True)
def _fastest(row, now, least, w, s):
    """Return the server with the smallest T_Si, the first of equal ones.

    Servers are looked at from the fastest on, up to where none can be as fast.
    """
    size, i, fastest = s.order.shape[0], 0, np.inf
    while i < size and _bounded(least, row, i, w, s) < fastest:
        if not s.barred[s.order[i]]:
            fastest = min(fastest, estimate(row, s.order[i], w, s))
        i += 1
    i, found, limit = 0, size, latest_finish(now + fastest, fastest)
    while i < size and now + _bounded(least, row, i, w, s) <= limit:
        k = s.order[i]
        if k < found and not s.barred[k] and now + estimate(row, k, w, s) <= limit:
            found = k
        i += 1
    return found


@compiled(inline=True)
def choose_server(row, now, least, most, w, r, s):
    """Return the server of step 4: nearest below the target, else the fastest.

    All transfers of the request take from `least` to `most` seconds.
    """
    found = -1
    if r.algorithm == DEADLINE:
        target = (w.deadline[row] - now) * r.opt  # eq. (1), (3)
        limit = latest_finish(now + target, abs(target))
        found = _nearest(row, now, limit, least, most, w, s)
    return found if found >= 0 else _fastest(row, now, least, w, s)
