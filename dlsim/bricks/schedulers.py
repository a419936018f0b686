"""The schedulers of paper B, section 3: Greedy and Deadline.

Arguments as in `dlsim.bricks.state`.
"""

import numpy as np

from dlsim.bricks.monitor import predicted_on_path
from dlsim.bricks.state import DEADLINE
from dlsim.kernel import kernel, meets, same_instant


@kernel
def seconds(data, throughput):  # type: ignore[no-untyped-def]
    """Return how long a transfer takes; none for no data.

    Returns
    -------
    float
        inf at throughput 0.
    """
    return data / throughput if data > 0 else 0.0


@kernel
def bar(row, r, s):  # type: ignore[no-untyped-def]
    """Mark the servers that a request fell back from, unless these are all there are."""
    different = 0
    for k in range(s.jobs[row].fallbacks):
        server = s.refused[row, k]
        different += not s.barred[server]
        s.barred[server] = True
    if different == s.barred.shape[0]:
        unbar(row, r, s)


@kernel
def unbar(row, r, s):  # type: ignore[no-untyped-def]
    """Unmark them."""
    for k in range(s.jobs[row].fallbacks):
        s.barred[s.refused[row, k]] = False


@kernel
def estimate_moves(row, w, s):  # type: ignore[no-untyped-def]
    """Write, per domain that holds servers, the first two terms of eq. (2)."""
    home = w.client_domain[w.client[row]]
    for k in range(w.places.shape[0]):
        there = w.places[k]
        send = seconds(w.send[row], predicted_on_path(home, there, s.shown, w))
        recv = seconds(w.recv[row], predicted_on_path(there, home, s.shown, w))
        s.moving[there] = send + recv


@kernel
def split_moves(row, terms, w, s):  # type: ignore[no-untyped-def]
    """Write, per server, the first two terms of eq. (2), each for itself."""
    home = w.client_domain[w.client[row]]
    for k in range(w.server_domain.shape[0]):
        there = w.server_domain[k]
        terms[0, k] = seconds(w.send[row], predicted_on_path(home, there, s.shown, w))
        terms[1, k] = seconds(w.recv[row], predicted_on_path(there, home, s.shown, w))


@kernel
def estimate(row, server, w, s):  # type: ignore[no-untyped-def]
    """Return T_Si of eq. (2).

    Returns
    -------
    float
        Seconds.
    """
    return s.moving[w.server_domain[server]] + w.work[row] * s.slowness[server]


@kernel
def choose_server(row, now, w, r, s):  # type: ignore[no-untyped-def]
    """Return the server of step 4: nearest below the target, else the fastest.

    Returns
    -------
    int
        Its row; the lowest of several that are the same within the tolerance.
    """
    due = now
    if r.algorithm == DEADLINE:
        due = now + (w.deadline[row] - now) * r.opt  # eq. (1), (3)
    fitting, fastest, where, quickest = -np.inf, np.inf, -1, -1
    for k in range(w.performance.shape[0]):
        if not s.barred[k]:
            t = estimate(row, k, w, s)
            if t < fastest or quickest < 0:
                fastest, quickest = t, k
            if t > fitting and r.algorithm == DEADLINE and meets(now + t, due):
                fitting, where = t, k
    best = fitting if where >= 0 else fastest
    last = where if where >= 0 else quickest
    for k in range(last):
        if not s.barred[k]:
            t = estimate(row, k, w, s)
            if same_instant(now + t, now + best) and (where < 0 or meets(now + t, due)):
                return k
    return last
