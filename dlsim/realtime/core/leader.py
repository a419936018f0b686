"""Serve each task as that of several rules would which has refused fewest of those who came so far.

All nodes refuse least where deadlines are short, the fewest where sending is dear or deadlines are
long, and the fewest with all that are idle in between. First come first served a plan is final when
it is made, so that every rule can be followed along on releases of its own.
"""

import numpy as np

from dlsim.kernel import kernel
from dlsim.realtime.core.line import fewest_carrying
from dlsim.realtime.core.partition import optimum

#: The fewest nodes in time, all, and the fewest with all that are idle.
RULES = 3


@kernel
def serve(rule, release, most, now, sigma, limit, part, unit, pool):
    """Split a load over the nodes that a rule takes; return its end and nodes, 0 if none."""
    idle = 0
    for k in range(most):
        pool[k].time, pool[k].nodes = max(release[k], now), 1
        idle += release[k] <= now
    n, _, _ = fewest_carrying(pool, most, limit, sigma, part, unit)
    if n == 0:
        return np.inf, 0
    n = n if rule == 0 else most if rule == 1 else max(n, idle)
    end, n, _ = optimum(pool, n, sigma, part, unit)
    return end, n


@kernel
def occupy(release, n, end):
    """Take the n nodes released first until `end`; keep the releases in order."""
    count = len(release)
    for k in range(n, count):
        if release[k] >= end:
            count = k
            break
        release[k - n] = release[k]
    for k in range(count - n, count):
        release[k] = end


@kernel
def follow_leader(
    arrival, sigma, limit, most, first, part, unit, release, pool, refused, start, end, n
):
    """Serve all tasks; `release` has the nodes of every rule by itself, and then the real ones.

    The rule `first` wins ties, then those in their order.
    """
    for i in range(len(arrival)):
        now, lead = arrival[i], first
        for rule in range(RULES):
            if refused[rule] < refused[lead]:
                lead = rule
        for rule in range(RULES + 1):
            one = lead if rule == RULES else rule
            then, count = serve(one, release[rule], most, now, sigma[i], limit[i], part, unit, pool)
            if count == 0:
                refused[rule] += 1
                continue
            if rule == RULES:
                start[i], end[i], n[i] = max(release[rule, 0], now), then, count
            occupy(release[rule], count, then)
