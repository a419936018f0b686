"""What one task asks for: its rank, how many nodes, for how long, how long the link.

Shared by the planners; arguments as in `dlsim.realtime.planner`. What depends on a paper
is in `dlsim.realtime.partition` and `dlsim.realtime.releases`.
"""

import numpy as np

from dlsim.kernel import kernel, latest_finish
from dlsim.realtime.partition import cost_derivative, duration, fastest, fewest
from dlsim.realtime.releases import fewest_in_rounds, rounds_time
from dlsim.realtime.state import SCAN


@kernel
def rank_of(i, n, q, r, c):  # type: ignore[no-untyped-def]
    """Return the rank of a task that would run on n nodes, smallest first."""
    if r.dc:
        return -cost_derivative(q[i].sigma, n, r.nodes, r.infinite_top, c.slope, c.rise)
    return q[i].due if r.edf else q[i].key


@kernel
def runs_on(i, n, q, r):  # type: ignore[no-untyped-def]
    """Return how many nodes receive a chunk of a task that reserves n."""
    return q[i].top if r.all_nodes and r.best else n


@kernel
def sent_by(i, n, t, q, r):  # type: ignore[no-untyped-def]
    """Return when the last send of a task ends, had it nothing to wait for."""
    return t + q[i].sigma * r.cms + runs_on(i, n, q, r) * r.st


@kernel
def update_count(i, t, n, time, q, r, c):  # type: ignore[no-untyped-def]
    """Return a task's count and duration if it started at t; count 0 if none (l.8-10)."""
    if t + time <= q[i].limit:
        return n, time
    if r.all_nodes or r.frozen:
        return 0, time
    n = fewest(t, q[i].limit, q[i].sigma, n, q[i].top, c.unit, c.fixed)
    return n, duration(q[i].sigma, n, c.unit, c.fixed)


@kernel
def next_due(i, t, n, time, q, r, c):  # type: ignore[no-untyped-def]
    """Return the smallest later deadline at which the count at t would change."""
    if n == 0:
        if r.all_nodes or r.frozen:
            return t + time
        return t + duration(q[i].sigma, q[i].top, c.unit, c.fixed)
    if n == 1 or r.all_nodes or r.frozen:
        return np.inf
    return t + duration(q[i].sigma, n - 1, c.unit, c.fixed)


@kernel
def has_fixed_count(i, q, r):  # type: ignore[no-untyped-def]
    """Tell whether a task's nodes are not searched at its start."""
    return r.all_nodes or r.frozen or q[i].wanted > 0


@kernel
def longest(i, n, q, r, c):  # type: ignore[no-untyped-def]
    """Return how long a task occupies n nodes that start together."""
    if r.method == SCAN:
        return rounds_time(q[i].sigma, n, r.rounds, r.cms, r.cps, r.st, r.sc)[0]
    return duration(q[i].sigma, runs_on(i, n, q, r), c.unit, c.fixed)


@kernel(inline=True)
def prepare(x, now, due, q, r, c):  # type: ignore[no-untyped-def]
    """Set a newcomer's deadline and its count at the instant of its test."""
    one = q[x]
    one.due, one.limit = due, latest_finish(due, due - now)
    one.top = fastest(one.sigma, c.least, r.nodes)
    if r.all_nodes or one.wanted > 0:
        one.low = r.nodes if r.all_nodes else one.wanted
        one.length = longest(x, one.low, q, r, c)
        return now + one.length <= one.limit
    if r.method == SCAN:
        one.low, _ = fewest_in_rounds(
            now, one.limit, one.sigma, 1, r.nodes, r.rounds, r.cms, r.cps, r.st, r.sc
        )
    else:
        one.low = fewest(now, one.limit, one.sigma, 1, one.top, c.unit, c.fixed)
    one.length = longest(x, max(1, one.low), q, r, c)
    return one.low > 0


@kernel
def earliest(x, now, q, r, c):  # type: ignore[no-untyped-def]
    """Return the smallest absolute deadline that a task could meet if started at once."""
    if r.method == SCAN:
        _, least = fewest_in_rounds(
            now, -np.inf, q[x].sigma, 1, r.nodes, r.rounds, r.cms, r.cps, r.st, r.sc
        )
        return now + least
    n = fastest(q[x].sigma, c.least, r.nodes)
    if r.all_nodes and not r.best:
        n = r.nodes
    elif q[x].wanted > 0:
        n = q[x].wanted
    return now + duration(q[x].sigma, n, c.unit, c.fixed)
