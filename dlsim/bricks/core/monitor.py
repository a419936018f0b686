"""The resource monitor, its database, and the predictors: what the scheduler is told.

Source: paper B, section 2 (Figure 1) and section 3.1.
"""

import numpy as np

from dlsim.bricks.core import state
from dlsim.bricks.core.network import entry_seen
from dlsim.bricks.core.servers import count_clients, first_after, follow
from dlsim.compiled import CLOCK, TOL, compiled, latest_finish, same_instant

# Shares that the last value has in the smoothed forecasts; see FORECASTERS.
_SHARES = (0.1, 0.5)


@compiled(inline=True)
def measured_load(server, time, bound, w, r, s):
    """Return what the monitor reports as Load of a server; what has happened by `bound` counts."""
    steps, external = w.loads.shape[1], 0.0
    if steps:
        external = w.loads[server, entry_seen(w.origin + time, w.step, steps)]
    elif r.load == state.CLIENTS or r.load == state.EXT:
        external = w.server_load
    if r.load == state.EXT:
        return external
    seen, gone = s.cursors[server, state.SEEN], s.cursors[server, state.GONE]
    if r.load == state.CLIENTS:
        arrived = count_clients(seen, server, bound, False, s)
        return arrived - count_clients(gone, server, bound, True, s) + external
    if r.load == state.QUEUE:
        count_clients(seen, server, bound, False, s)
        at = first_after(bound, seen.at, w.jobs.first[server + 1], w.jobs.times)
        seen.count += at - seen.at
        seen.at = at
        follow(server, gone, bound, time, w, s)
        return seen.count - gone.count + external
    is_perfect = r.predictor == state.PERFECT
    before = s.cursors[server, state.BEFORE if is_perfect else state.BUSY]
    since = follow(server, before, bound - r.probe, max(-w.origin, time - r.probe), w, s)
    until = follow(server, s.cursors[server, state.BUSY], bound, time, w, s)
    return max(0.0, until - since) / r.probe + external


@compiled(inline=True)
def _predict(series, r, s):
    """Write the prediction of a series after a probe, number ``head.probes``."""
    k = s.head[0].probes
    value, count, mean = s.ring[k % state.WINDOW, series], min(k + 1, state.WINDOW), 0.0
    for j in range(count):
        mean += s.ring[(k - j) % state.WINDOW, series]
    mean /= count
    if r.predictor == state.MEAN:
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


@compiled(inline=True)
def _measure(clock, time, bound, w, r, s):
    """Measure links and servers and predict; in place, only what can have changed."""
    head, links = s.head[0], w.rates.shape[0]
    found = s.predicted if r.in_place else s.ring[head.probes % state.WINDOW]
    k = entry_seen(clock, w.step, w.rates.shape[1])
    if k != head.entry or not r.in_place:
        for link in range(links):
            found[link] = w.rates[link, k]
        head.entry = k
        head.stale = 1
    counted = r.load == state.CLIENTS or r.load == state.EXT
    few = r.predictor == state.LAST and counted and w.loads.shape[1] == 0
    count = head.changed if few else w.performance.shape[0]
    if few:
        head.changed = 0
    else:
        head.stale = 1
    for i in range(count):
        server = s.changed[i] if few else i
        found[links + server] = measured_load(server, time, bound, w, r, s)
        if few:
            show_server(server, w, r, s)
            s.servers[server].listed = s.servers[server].touched > bound
            s.changed[head.changed] = server
            head.changed += s.servers[server].listed
    if r.predictor == state.MEAN or r.predictor == state.ADAPTIVE:
        for series in range(s.ring.shape[1]):
            _predict(series, r, s)


@compiled(inline=True)
def _is_due(probe, time, w, r):
    """Tell whether a probe has been taken by a time."""
    return probe * r.probe - w.origin <= latest_finish(time, r.probe)


@compiled(inline=True)
def observe(time, row, kind, w, r, s):
    """Bring the database up to a time.

    Probes that no prediction depends on are left out, and what a server does not look at when
    an input arrives: there only the way back matters.
    """
    head = s.head[0]
    if r.predictor != state.PERFECT and w.origin + time > state.MOST_PROBES * r.probe:
        return state.FAR
    if r.predictor == state.LAST or r.predictor == state.MEAN:
        needed = 1 if r.predictor == state.LAST else state.WINDOW
        head.probes = max(head.probes, int((w.origin + time) / r.probe) - needed)
    while r.predictor == state.LAST and _is_due(head.probes + 1, time, w, r):
        head.probes += 1
    if kind == state.INPUT and r.in_place:
        clock = (head.probes - 1 + _is_due(head.probes, time, w, r)) * r.probe
        clock = w.origin + time if r.predictor == state.PERFECT else clock
        k = entry_seen(clock, w.step, w.rates.shape[1])
        there, home = w.server_domain[s.jobs[row].server], w.client_domain[w.client[row]]
        pair = there * w.domains + home
        for h in range(w.first[pair], w.first[pair + 1]):
            s.predicted[w.hops[h]] = w.rates[w.hops[h], k]
        return state.DONE
    while r.predictor == state.PERFECT or _is_due(head.probes, time, w, r):
        clock = head.probes * r.probe
        at = clock - w.origin
        bound = at - TOL * (r.probe + abs(at) / CLOCK)
        if r.predictor == state.PERFECT:
            clock, at, bound = w.origin + time, time, latest_finish(time, r.probe)
        _measure(clock, at, bound, w, r, s)
        if r.predictor == state.PERFECT:
            return state.DONE
        head.probes += 1
        if r.predictor == state.USER:
            return state.PREDICT
    return state.DONE


@compiled(inline=True)
def _show_edges(domain, s):
    """Write the smaller of LAN and WAN of a domain, up and down, and widen their bounds."""
    for way in range(2):
        edge = min(s.shown[4 * domain + way], s.shown[4 * domain + way + 2])
        s.edges[way, domain] = edge
        s.reach[way, 0] = min(s.reach[way, 0], edge)
        s.reach[way, 1] = max(s.reach[way, 1], edge)


@compiled(inline=True)
def _shown(link, r, s):
    """Return a link's predicted throughput after Load Correction for links."""
    return s.predicted[link] / (1 + r.pload * (s.links[link].ours if r.correct_links else 0))


@compiled(inline=True)
def show_link(link, w, r, s):
    """Write what the scheduler is shown of a link."""
    s.shown[link] = _shown(link, r, s)
    if w.two_level:
        _show_edges(link // 4, s)


@compiled(inline=True)
def _slowness(server, w, r, s):
    """Return 1 / P_serv, eq. (5) included."""
    load = s.predicted[w.rates.shape[0] + server]
    if r.correct:
        load += s.servers[server].ours * r.pload
    return (1 + load) / w.performance[server]


@compiled(inline=True)
def _rank(value, server, s):
    """Return how many servers come before one of some slowness."""
    low, high = 0, s.order.shape[0]
    while low < high:
        middle = (low + high) // 2
        k = s.order[middle]
        if s.slowness[k] < value or (s.slowness[k] == value and k < server):
            low = middle + 1
        else:
            high = middle
    return low


@compiled(inline=True)
def _move(old, new, order):
    """Move what stands at a place to before another one, and what is between by one.

    Places are unsigned: none counts from the end, and the processor moves several at once.
    """
    a, b, one, server = np.uint64(old), np.uint64(new), np.uint64(1), order[old]
    if b > a:
        b -= one
        for i in range(a, b):
            order[i] = order[i + one]
    else:
        for i in range(b, a):
            order[a + b - i] = order[a + b - i - one]
    order[b] = server


@compiled(inline=True)
def show_server(server, w, r, s):
    """Write 1 / P_serv of a server, and move it to its place in the order."""
    value = _slowness(server, w, r, s)
    if value == s.slowness[server]:
        return
    old, new = _rank(s.slowness[server], server, s), _rank(value, server, s)
    _move(old, new, s.order)
    s.slowness[server] = value


@compiled(inline=True)
def _sort(s):
    """Sort all servers by slowness (Shell sort: quick where they almost are, and in place)."""
    gap, size = 1, s.order.shape[0]
    while 9 * gap < 4 * size:
        gap = 9 * gap // 4 + 1
    while gap:
        for i in range(gap, size):
            server = s.order[i]
            value = s.slowness[server]
            while i >= gap:
                k = s.order[i - gap]
                if s.slowness[k] < value or (s.slowness[k] == value and k < server):
                    break
                s.order[i] = k
                i -= gap
            s.order[i] = server
        gap = 4 * gap // 9


@compiled(inline=True)
def show_all(w, r, s):
    """Write what the scheduler is shown, where something new has been predicted."""
    if not s.head[0].stale:
        return
    s.head[0].stale = 0
    for link in range(w.rates.shape[0]):
        s.shown[link] = _shown(link, r, s)
    if w.two_level:
        s.reach[:, 0], s.reach[:, 1] = np.inf, 0.0
        for domain in range(w.domains):
            _show_edges(domain, s)
    servers, new = w.performance.shape[0], 0
    for server in range(servers):
        new += _slowness(server, w, r, s) != s.slowness[server]
    few = 16 * new < servers
    for server in range(servers):
        if few:
            show_server(server, w, r, s)
        else:
            s.slowness[server] = _slowness(server, w, r, s)
    if not few:
        _sort(s)
