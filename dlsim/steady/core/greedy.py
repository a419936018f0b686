"""Heuristic G of paper S, section 5.1, step by step.

Every step serves the application with the smallest share: it opens one connection to the
cluster that pays most, or computes at home an amount of local work.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import TOL, compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


#: Below this part of what there was at first, nothing is left of a resource.
DUST = 1e-9
#: Turns of `serve` after which steps double, and again after each MORE: it always ends, also
#: where a step is less than a rounding of what is left.
MANY, MORE = 2**20, 2**16


class Network(NamedTuple):
    """What does not change: applications, speed rows (or caps on parts of a speed), routes."""

    origin: Ints  # (A,)
    priority: Floats  # (A, K); 0: work there does not count, so none is sent
    highest: Floats  # (A,) largest priority
    weight: Floats  # (A,) work per unit
    data: Floats  # (A,) data per unit
    rows_of: Ints  # (K + 1,) first speed row of each cluster
    member: NDArray[np.bool_]  # (S, A) whose work a speed row bounds
    bandwidth: Floats  # (K, K) of one connection; infinite on empty routes, 0 without a route
    route: Ints  # (K, K) number of the route, -1 for none and for empty ones
    start: Ints  # (R + 1,) offsets into `link`
    link: Ints
    link_of: Ints  # (L + 1,) offsets into `link_routes`
    link_routes: Ints  # numbers of the routes over each link
    row_first: Floats  # (S,)
    gateway_first: Floats  # (K,)


class Left(NamedTuple):
    """What every step changes."""

    row: Floats  # (S,) speed left
    gateway: Floats  # (K,)
    link: Floats  # (L,) connections left
    full: Ints  # (R,) links of each route with less than one connection left
    work: Floats  # (A, K)
    connections: Ints  # (K, K)
    share: Floats  # (A,) sum of work / priority
    active: NDArray[np.bool_]  # (A,) the list L
    benefit: Floats  # (K,) scratch: units the selected application could place
    amount: Floats  # (A,) scratch of `_leap`: units of its repeated local step
    need: Floats  # (S,) scratch of `_leap`: speed that keeps every choice as it is
    use: Floats  # (S,) scratch of `_leap`: speed that one step of each takes
    pace: Floats  # (S,) scratch of `_leap`: speed per unit of share


class Trace(NamedTuple):
    """The steps taken, as far as there is room for them."""

    application: Ints
    cluster: Ints
    amount: Floats


@compiled
def _exceeds(a, b):
    return a > b + TOL * abs(b)


@compiled
def _room(net, left, a, m):
    """Units of application a that the speed rows of cluster m still allow."""
    least = np.inf
    for r in range(net.rows_of[m], net.rows_of[m + 1]):
        if net.member[r, a]:
            least = min(least, left.row[r])
    return least / net.weight[a] if least > 0 else 0.0


@compiled
def _carry(net, left, a, m):
    """Units of application a that one more connection can take to cluster m."""
    k = net.origin[a]
    if net.route[k, m] >= 0 and left.full[net.route[k, m]]:
        return 0.0
    least = min(left.gateway[k], net.bandwidth[k, m], left.gateway[m])
    return least / net.data[a] if least > 0 else 0.0


@compiled
def _select(net, left):
    """Application of the smallest share; ties: the largest priority, then the first."""
    least, found = np.inf, -1
    for a in range(len(left.active)):
        if left.active[a] and left.share[a] < least:
            least, found = left.share[a], a
    for a in range(len(left.active)):
        tied = left.active[a] and not _exceeds(left.share[a], least)
        if tied and a != found:
            mine, other = net.highest[a], net.highest[found]
            if mine > other or (mine == other and a < found):
                found = a
    return found


@compiled
def _choose(net, left, a):
    """Cluster of the best pay-off benefit / priority; ties: home, then the first.

    Also the best pay-off elsewhere, and the cluster where most units could go.
    """
    k, clusters = net.origin[a], len(net.route)
    best = most = 0.0
    to = widest = -1
    for m in range(clusters):
        left.benefit[m] = 0.0
        if net.priority[a, m] > 0:
            left.benefit[m] = _room(net, left, a, m)
            if m != k:
                left.benefit[m] = min(left.benefit[m], _carry(net, left, a, m))
                if _exceeds(left.benefit[m], most):
                    most, widest = left.benefit[m], m
                if _exceeds(left.benefit[m] / net.priority[a, m], best):
                    best, to = left.benefit[m] / net.priority[a, m], m
    if left.benefit[k] > 0 and not _exceeds(best, left.benefit[k] / net.priority[a, k]):
        to = k
    return to, best, widest


@compiled
def _guests(net, left, a):
    """Most work of another application that its home could place on the home of a."""
    k, most, guest = net.origin[a], 0.0, -1
    for b in range(len(net.origin)):
        if net.origin[b] != k:
            work = min(_carry(net, left, b, k), _room(net, left, b, k)) * net.weight[b]
            if _exceeds(work, most):
                most, guest = work, b
    return most / net.weight[a], guest


@compiled
def _fair_rest(net, left, a):
    """Units of a that bring all applications of its home to one share of what is left there."""
    k, level, lower = net.origin[a], np.inf, np.inf
    while lower < level or level == np.inf:
        level, weight, filled = lower, 0.0, left.benefit[k] * net.weight[a]
        for b in range(len(net.origin)):
            if net.origin[b] == k and left.active[b] and left.share[b] < level:
                weight += net.weight[b] * net.priority[b, k]
                filled += net.weight[b] * net.priority[b, k] * left.share[b]
        if weight == 0:  # what is left is nothing beside the shares
            return left.benefit[k]
        lower = filled / weight
    amount = (level - left.share[a]) * net.priority[a, k]
    return min(left.benefit[k], amount) if amount > 0 else left.benefit[k]


@compiled
def _local(net, left, a, widest, prose, rest):
    """Step 5 at home: units, and the cluster or guest that sets them (-1: all that is left).

    As printed, the most that one connection could take away; or, `prose`, the most that
    another application could bring. Where the printed amount is 0: the prose amount
    unless `rest`, then the application's part of all that is left.
    """
    k = net.origin[a]
    if not prose and widest >= 0:
        return min(left.benefit[widest], left.benefit[k]), widest, -1
    if prose or not rest:
        amount, guest = _guests(net, left, a)
        if guest >= 0:
            return min(amount, left.benefit[k]), -1, guest
    return _fair_rest(net, left, a), -1, -1


@compiled
def _take(values, first, i, amount):
    values[i] -= amount
    if values[i] <= DUST * first[i]:
        values[i] = 0.0


@compiled
def _connect(net, left, k, m, count):
    """Open connections from k to m, and close the routes over links that are full then."""
    r = net.route[k, m]
    if r < 0:
        return
    left.connections[k, m] += count
    for i in range(net.start[r], net.start[r + 1]):
        link = net.link[i]
        left.link[link] -= count
        if left.link[link] < 1:
            for j in range(net.link_of[link], net.link_of[link + 1]):
                left.full[net.link_routes[j]] += 1


@compiled
def _bundle(net, left, a, m, times):
    """Units of a on m over several connections, as many as there are and are of use."""
    k, r, count = net.origin[a], net.route[net.origin[a], m], times
    if r < 0:
        return left.benefit[m], 1
    for i in range(net.start[r], net.start[r + 1]):
        count = min(count, np.floor(left.link[net.link[i]]))
    least = min(left.gateway[k], count * net.bandwidth[k, m], left.gateway[m])
    amount = min(_room(net, left, a, m), least / net.data[a])
    return amount, int(min(count, np.ceil(amount * net.data[a] / net.bandwidth[k, m])))


@compiled
def _spend(net, left, a, m, amount):
    """Step 6: book some units of application a on cluster m."""
    k = net.origin[a]
    for r in range(net.rows_of[m], net.rows_of[m + 1]):
        if net.member[r, a]:
            _take(left.row, net.row_first, r, amount * net.weight[a])
    if m != k:
        _take(left.gateway, net.gateway_first, k, amount * net.data[a])
        _take(left.gateway, net.gateway_first, m, amount * net.data[a])
    left.work[a, m] += amount
    if net.priority[a, m] > 0:
        left.share[a] += amount / net.priority[a, m]


@compiled
def _require(net, left, a, m, speed):
    for r in range(net.rows_of[m], net.rows_of[m + 1]):
        if net.member[r, a]:
            left.need[r] = max(left.need[r], speed)


@compiled
def _prepare(net, left, prose, rest):
    """Gather the local steps that applications would repeat; return where others act.

    Shares below the number returned grow by equal local steps only, as long as every
    speed row keeps its `need`.
    """
    for scratch in (left.need, left.use, left.pace):
        scratch[:] = 0.0
    until = np.inf
    for a in range(len(left.active)):
        left.amount[a] = 0.0
        if not left.active[a]:
            continue
        k = net.origin[a]
        to, best, widest = _choose(net, left, a)
        amount, source, guest = 0.0, -1, -1
        if to == k:
            amount, source, guest = _local(net, left, a, widest, prose, rest)
        if source < 0 and guest < 0:
            until = min(until, left.share[a])
            continue
        left.amount[a], speed = amount, amount * net.weight[a]
        _require(net, left, a, k, max(speed, best * net.priority[a, k] * net.weight[a]))
        if source >= 0:
            _require(net, left, a, source, speed)
        if guest >= 0:
            _require(net, left, guest, k, speed)
        for r in range(net.rows_of[k], net.rows_of[k + 1]):
            if net.member[r, a]:
                left.use[r] += speed
                left.pace[r] += net.weight[a] * net.priority[a, k]
    return until


@compiled
def _leap(net, left, prose, rest):
    """Take many equal local steps at once; return their number.

    While every application repeats one local step, the steps taken before all shares have
    reached a level are those that start below it, in whatever order.
    """
    until = _prepare(net, left, prose, rest)
    least = np.inf
    for a in range(len(left.active)):
        if left.active[a]:
            least = min(least, left.share[a])
    for r in range(len(left.row)):
        if left.pace[r] > 0:
            until = min(until, least + (left.row[r] - left.need[r] - left.use[r]) / left.pace[r])
    taken = 0
    for a in range(len(left.active)):
        k = net.origin[a]
        if left.amount[a] > 0 and left.share[a] < until and until < np.inf:
            step = left.amount[a] / net.priority[a, k]
            times = np.ceil((until - left.share[a]) / step - DUST)
            _spend(net, left, a, k, times * left.amount[a])
            taken += int(min(times, 2.0**52))
    return taken


@compiled
def serve(net, left, trace, prose, rest):
    """Run steps 2 to 7 until the list is empty."""
    steps, streak, patience, turns, times = 0, 0, 8 * len(left.active), 0, 1.0
    while True:
        turns += 1
        if turns > MANY and turns % MORE == 0:
            times *= 2
        a = _select(net, left)
        if a < 0:
            return steps
        to, _, widest = _choose(net, left, a)
        if to < 0:
            left.active[a] = False
            continue
        k, amount, count = net.origin[a], left.benefit[to], 1
        if to == k:
            amount, _, _ = _local(net, left, a, widest, prose, rest)
            streak += 1
        else:
            streak = 0
        if times > 1 and to == k:
            amount = min(left.benefit[k], times * amount)
        elif times > 1:
            amount, count = _bundle(net, left, a, to, times)
        if to != k:
            _connect(net, left, k, to, count)
        _spend(net, left, a, to, amount)
        if steps < len(trace.amount):
            trace.application[steps], trace.cluster[steps] = a, to
            trace.amount[steps] = amount
        steps += 1
        if streak > patience and len(trace.amount) == 0:
            more = _leap(net, left, prose, rest)
            # no more than a whole number holds: an overflow would write before `trace`
            steps, streak = min(steps + more, 2**60), 0
            patience = 8 * len(left.active) if more > patience else 2 * patience
