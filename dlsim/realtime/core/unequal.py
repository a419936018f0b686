r"""One load on nodes of different speed and link: who serves, who is sent to first, when it ends.

Nodes are numbered by link, the fastest first. If all are free at once, that is the best order, and
what a set of them takes per unit of time is, from its last node to its first,

.. math:: R = \frac{1 + \chi_j R'}{\tau_j + \chi_j} ,

where R' is that of those behind: it rises with R', so that the best n of all nodes follow from the
best n and n - 1 of those behind (`fill_rates`). As nodes are released, what those behind can take
is concave in when the link is free, and straight between a few instants; so a send ends where the
link is worth more to them than to its own node, or when its node has all it can do (`carried`).
"""

from typing import Any, NamedTuple

import numpy as np

from dlsim.kernel import kernel, same_instant

#: Of so many nodes all sets in all orders are tried.
FEW = 5
#: By how much more data a set must take to be better, as a part of the load.
BETTER = 1e-12


class Room(NamedTuple):
    """The nodes, and room to work in."""

    cms: Any
    cps: Any
    most: Any  # what the best 1..N nodes take per unit of time, free together
    orders: Any  # all sequences of FEW places, the short ones first; the rest is -1
    first: Any  # the first of each length
    release: Any
    who: Any  # nodes that serve, as they are sent to
    load: Any
    begin: Any
    done: Any
    rate: Any  # [k, m]: as `most`, of at most m of the nodes from place k on
    stop: Any  # per place, when a send must end
    at: Any  # two lists of instants, and what can be taken if the link is free then
    value: Any
    line: Any  # nodes chosen by link and by release, and two orders under trial
    taken: Any
    turn: Any  # all nodes, those released first first


@kernel
def fill_rates(count, c):
    """Find what the best of `who`, which are free at once and in order of link, take per time."""
    for m in range(count + 1):
        c.rate[count, m] = 0.0
    for k in range(count - 1, -1, -1):
        i, c.rate[k, 0] = c.who[k], 0.0
        for m in range(1, count + 1):
            served = (1 + c.cps[i] * c.rate[k + 1, m - 1]) / (c.cms[i] + c.cps[i])
            c.rate[k, m] = max(c.rate[k + 1, m], served)


@kernel
def start_together(sigma, limit, t, span, c):
    """Serve by the fewest nodes at the first instant when those that are free are in time.

    Return how many, start, end, when the last send ends, and how many are needed: none fewer.
    """
    while True:
        count, later = 0, np.inf
        for k in range(len(c.cms)):
            if c.release[k] <= t or same_instant(c.release[k], t, span):
                c.who[count] = k
                count += 1
            else:
                later = min(later, c.release[k])
        if t + sigma / c.most[len(c.cms)] > limit:
            return 0, t, t, t, 0
        if count > 0:
            fill_rates(count, c)
            for n in range(1, count + 1):
                end = t + sigma / c.rate[0, n]
                if end <= limit:
                    return n, t, end, spread(n, count, t, end, c), n
        t = later


@kernel
def spread(n, count, t, end, c):
    """Send to the best n of `who`, each all that it computes by the end; return when that is sent.

    So all end together, and each share is the one before times Cps over the own Cms + Cps.
    """
    kept = 0
    for k in range(count):
        if c.rate[k, n - kept] > c.rate[k + 1, n - kept]:
            i = c.who[k]
            c.who[kept], c.begin[kept], c.done[kept] = i, t, end
            c.load[kept] = (end - t) / (c.cms[i] + c.cps[i])
            t += c.load[kept] * c.cms[i]
            kept += 1
    return t


@kernel
def between(t, points, at, value):
    """Return what a list of instants says of one: constant before its first, else straight."""
    if t <= at[0]:
        return value[0]
    k = 1
    while k < points - 1 and at[k] < t:
        k += 1
    part = (t - at[k - 1]) / (at[k] - at[k - 1])
    return value[k - 1] + part * (value[k] - value[k - 1])


@kernel
def carried(who, n, end, c):
    """Return the most data that nodes sent to in this order can receive and compute by `end`.

    From the last to the first: lists of what it and those behind take, by when the link is free.
    """
    new, points = 0, 1
    c.at[0, 0], c.value[0, 0] = end, 0.0
    for j in range(n - 1, -1, -1):
        i = who[j]
        cms, w, release = c.cms[i], c.cms[i] + c.cps[i], c.release[i]
        at, value, new = c.at[new], c.value[new], 1 - new
        fresh, level = c.at[new], c.value[new]
        if not release < end:  # the others are sent to after it
            fresh[0], level[0], points, c.stop[j] = end, 0.0, 1, release
            continue
        k = 0
        while k + 1 < points and (value[k] - value[k + 1]) * cms <= at[k + 1] - at[k]:
            k += 1
        stop, full = at[k], release + (end - release) * cms / w
        c.stop[j], fresh[0], m = stop, release, 1
        if release >= stop:
            level[0] = between(release, points, at, value)
        elif full > stop:
            level[0] = (stop - release) / cms + value[k]
        else:
            level[0] = (end - release) / w + between(full, points, at, value)
        for h in range(points):
            if h <= k and c.cps[i] > 0:  # the node is given all it can do, so much earlier
                t = end - (end - at[h]) * w / c.cps[i]
                if release < t and t < stop:
                    fresh[m], level[m] = t, (end - t) / w + value[h]
                    m += 1
            if h >= k and release < at[h]:
                fresh[m], level[m] = at[h], value[h]
                m += 1
        points = m
    return c.value[new, 0]


@kernel
def lay_out(n, end, c):
    """Send to `who` until the stops that `carried` found; return how many get data, and the end."""
    t, kept = -np.inf, 0
    for j in range(n):
        i = c.who[j]
        t, w = max(t, c.release[i]), c.cms[i] + c.cps[i]
        full = t + (end - t) * c.cms[i] / w
        if t < c.stop[j]:
            c.who[kept], c.begin[kept], c.done[kept] = i, t, end
            c.load[kept] = (end - t) / w
            if full > c.stop[j]:
                c.load[kept] = (c.stop[j] - t) / c.cms[i]
                c.done[kept] = c.stop[j] + c.load[kept] * c.cps[i]
            t = min(full, c.stop[j])
            kept += 1
    return kept, t


@kernel
def soonest(n, sigma, c):
    """Return when a load sent to `who` ends, and how many serve: nobody released later does.

    What they carry is concave in the end, so that chords from below never lead beyond it.
    """
    while True:
        low, total = -np.inf, 0.0
        for j in range(n):
            low = max(low, c.release[c.who[j]])
            total += 1 / (c.cms[c.who[j]] + c.cps[c.who[j]])
        data = carried(c.who, n, low, c)
        if data < sigma or n == 1:
            break
        kept = 0
        for j in range(n):
            if c.release[c.who[j]] < low:
                c.who[kept] = c.who[j]
                kept += 1
        n = kept
    end = low + (sigma - data) / total
    while low < end:
        more = carried(c.who, n, end, c)
        if not (data < more and more < sigma):
            break
        low, data, end = end, more, end + (sigma - more) * (end - low) / (more - data)
    return end, n


@kernel
def fewest_bound(sigma, end, c):
    """Return a number of nodes below which no set carries a load by `end`; 0 if none does.

    As if each node had a link of its own, and as if all were free from the first release on.
    """
    low, data = np.inf, 0.0
    for k in range(len(c.cms)):
        low, c.taken[k] = min(low, c.release[k]), 0
    for m in range(1, len(c.cms) + 1):
        top, best = 0.0, 0
        for k in range(len(c.cms)):
            alone = (end - c.release[k]) / (c.cms[k] + c.cps[k])
            if c.taken[k] == 0 and alone > top:
                top, best = alone, k
        data, c.taken[best] = data + top, 1
        if data >= sigma and (end - low) * c.most[m] >= sigma:
            return m
    return 0


@kernel
def copy(n, line, to):
    """Write an order of nodes over another."""
    for j in range(n):
        to[j] = line[j]


@kernel
def try_orders(some, count, n, end, c):
    """Write the best n of a few nodes, in the best of all orders, as `line[2]`; return the data.

    Of those that are as good the first: where a send waits for the link anyway, it is all one when
    its node is released.
    """
    most = 0.0
    for row in range(c.first[n], c.first[n + 1]):
        is_there = True
        for j in range(n):
            place = c.orders[row, j]
            is_there = is_there and place < count
            if is_there:
                c.line[3, j] = some[place]
        data = carried(c.line[3], n, end, c) if is_there else 0.0
        if data > most * (1 + BETTER):
            most = data
            copy(n, c.line[3], c.line[2])
    return most


@kernel
def filled(who, n, end, c):
    """Return what nodes sent to in this order compute by `end` if each is given all it can do."""
    t, data = -np.inf, 0.0
    for j in range(n):
        i = who[j]
        t = max(t, c.release[i])
        if t < end:
            load = (end - t) / (c.cms[i] + c.cps[i])
            t, data = t + load * c.cms[i], data + load
    return data


@kernel
def insert(k, size, by, c):
    """Write those chosen and one more as `line[3]`, by link (0) or by release (1)."""
    place = 0
    for j in range(size):
        other = c.line[by, j]
        tied = by == 0 or c.release[other] == c.release[k]
        place += other < k if tied else c.release[other] < c.release[k]
    for j in range(size):
        c.line[3, j + (j >= place)] = c.line[by, j]
    c.line[3, place] = k


@kernel
def search(sigma, end, low, high, c):
    """Write the fewest nodes that carry a load by `end`, in order, as `line[2]`; 0 if none do.

    Of a few nodes all sets are tried. Else one node after another is chosen, that with which most
    is done if each does all it can, sent to by link or by release; of a few all orders are tried.
    """
    size = len(c.cms)
    if size <= FEW:
        for n in range(low, high + 1):
            if try_orders(c.turn, size, n, end, c) >= sigma:
                return n
        return 0
    for k in range(size):
        c.taken[k] = 0
    for n in range(1, high + 1):
        most, best = 0.0, -1
        for k in c.turn:
            for by in range(2):
                if c.taken[k] == 0 and c.release[k] < end:
                    insert(k, n - 1, by, c)
                    data = filled(c.line[3], n, end, c)
                    if data > most * (1 + BETTER):
                        most, best = data, k
        if best < 0:
            return 0
        c.taken[best], most = 1, 0.0
        for by in range(2):
            insert(best, n - 1, by, c)
            copy(n, c.line[3], c.line[by])
        if low <= n <= FEW:
            most = try_orders(c.line[1], n, n, end, c)
        elif low <= n:
            for by in range(2):
                data = carried(c.line[1 - by], n, end, c)
                if data > most * (1 + BETTER):
                    most = data
                    copy(n, c.line[1 - by], c.line[2])
        if low <= n and most >= sigma:
            return n
    return 0


@kernel
def as_released(sigma, limit, c):
    """Serve by the fewest nodes that are in time, of so many by those that end soonest.

    Return how many, start, end, when the last send ends, and fewer than how many cannot be enough.
    """
    least = fewest_bound(sigma, limit, c)
    n = search(sigma, limit, least, len(c.cms), c) if least > 0 else 0
    if n == 0:
        return 0, 0.0, 0.0, 0.0, least
    if len(c.cms) <= FEW:
        least = n
    end, before, more = limit, np.inf, n
    while more > 0 and end < before:  # else it would be a rounding
        copy(more, c.line[2], c.who)
        before = end
        end, n = soonest(more, sigma, c)
        more = search(sigma * (1 + BETTER), end, n, n, c)
    carried(c.who, n, end, c)
    n, sent = lay_out(n, end, c)
    return n, c.begin[0], end, sent, least
