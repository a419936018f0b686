r"""The best sizes of a fixed number of rounds, each in order of release, without set-up times.

Nodes 1..n are sent to in order of release, R times over; the sizes are a linear program. Seen from
the end e, back in time, it is one of collecting: all nodes begin to compute at 0, the link visits
n, ..., 1 again and again, takes at a visit no more than has been computed, :math:`z \leq y` in
units of time, y being when the visit begins, and leaves a node for good by :math:`e - r_i`. A visit
takes :math:`\theta (z - z')` with :math:`\theta = \tau/\chi` and z' what the node gave before.

Who takes all there is at each visit has :math:`y' = y + \theta (y - y_{-n})` until the last visits,
which end by the next one or by :math:`e - r_i`, whichever is first: one parameter, and a load that
is concave in e, so that Newton's steps from below end at the root. That is the optimum where the
last visits follow one another. Else the nodes behind the gap may leave the link to the others at
earlier visits: simplex steps from there, few or none, on a tableau whose columns are the same
recursion, find it. Every result is an optimum of its order alone: from round 2 on all nodes wait
for the last release, and what other orders gain is at most what `dlsim.realtime.sends.rounds_limit`
leaves.
"""

import numpy as np

from dlsim.kernel import TOL, kernel

#: A reduced cost, or an entry of a column, that is not below 0 by more than that is 0.
EPS = 1e-11


@kernel
def fill_visits(n, rounds, theta, starts):
    """Fill when visits begin that take all there is, the first at 1; return the rounds of use.

    Rounds whose sends would be roundings of the load are of no use.
    """
    starts[0] = 1.0
    for m in range(n * rounds):
        taken = starts[m] - (starts[m - n] if m >= n else 0.0)
        if m % n == 0 and m > 0 and min(taken, 1.0) < TOL * starts[m]:
            return m // n
        starts[m + 1] = starts[m] + theta * taken
    return rounds


@kernel
def take_all(since, n, rounds, theta, load, starts, cut):
    """Return when a load ends if each visit takes all there is, and the visits of the first run.

    `load` is chi sigma; `cut` says of the last visits, in their order, which end at a release.
    The first run ends with the visit of that place; -1 where the node released last has no time.
    """
    last = n * (rounds - 1)
    end, steps = since[n - 1] + load * (1 + theta), 0
    while True:
        first, scale, rate = 0, np.inf, 0.0
        for k in range(n):
            fits = (end - since[n - 1 - k]) / starts[last + k + 1]
            if fits < scale:
                first, scale, rate = k, fits, 1.0 / starts[last + k + 1]
        total, slope, begin, gain = 0.0, 0.0, np.inf, 0.0
        for k in range(n - 1, -1, -1):
            cut[k] = 0.0
            if k <= first:
                total, slope = total + scale * starts[last + k], slope + rate * starts[last + k]
                continue
            if end - since[n - 1 - k] <= begin:
                begin, gain, cut[k] = end - since[n - 1 - k], 1.0, 1.0
            before = starts[last + k - n] if rounds > 1 else 0.0
            begin = (begin + theta * scale * before) / (1 + theta)
            gain = (gain + theta * rate * before) / (1 + theta)
            total, slope = total + begin, slope + gain
        cut[first] = 1.0
        move = (load - total) / slope
        end, steps = end + move, steps + 1
        if steps > 1 and (not move > 4e-16 * end or steps > 4 * n):
            return end, first if scale > 0 else -1


@kernel
def respond(end, part, kind, at, first, since, n, rounds, theta, starts, cut, out):
    """Write what all visits have taken and the slack of the last ones, under one pattern.

    Releases since the first count `part` times; of `kind` 1 the visit `at` takes 1 less than there
    is, of `kind` 2 the last visit `at` ends by 1 earlier than it must.
    """
    size, last, y = n * rounds, n * (rounds - 1), 0.0
    for m in range(last + first + 1):  # the first run, had it begun at 0
        out[m] = y - (kind == 1 and m == at)
        y += theta * (out[m] - (out[m - n] if m >= n else 0.0))
        if m >= last and m < last + first and kind == 2 and m - last == at:
            y += 1.0
    due = end - part * since[n - 1 - first] - (kind == 2 and at == first)
    scale = (due - y) / starts[last + first + 1]
    for m in range(last + first + 1):
        out[m] += scale * starts[m]
    begin = 0.0
    for k in range(n - 1, first, -1):
        stop = end - part * since[n - 1 - k] if cut[k] > 0 else begin
        stop -= kind == 2 and at == k
        less = 1.0 if kind == 1 and at == last + k else 0.0
        before = out[last + k - n] if rounds > 1 else 0.0
        begin = (stop + theta * (less + before)) / (1 + theta)
        out[last + k] = begin - less
    for k in range(n - 1):
        less = 1.0 if kind == 1 and at == last + k else 0.0
        after = out[last + k + 1] + (1.0 if kind == 1 and at == last + k + 1 else 0.0)
        before = out[last + k - n] if rounds > 1 else 0.0
        stop = out[last + k] + less + theta * (out[last + k] - before)
        due = end - part * since[n - 1 - k]
        out[size + k] = after - stop if cut[k] > 0 else due - stop


@kernel
def fill_tableau(end, first, since, n, rounds, theta, starts, cut, slope, out, t):
    """Write sizes, slacks and the end, the rows, by what visits leave or end earlier, the columns.

    Return how many of both there are. The last column is the solution that takes all.
    """
    size, wide = n * rounds, n * rounds + n
    known = first, since, n, rounds, theta, starts, cut
    respond(1.0, 0.0, 0, 0, *known, slope)
    rise = 0.0
    for m in range(size - n, size):
        rise += slope[m]
    for j in range(wide + 1):
        if j == wide:
            respond(end, 1.0, 0, 0, *known, out)
            move = 0.0
        else:
            respond(0.0, 0.0, 1 if j < size else 2, j if j < size else j - size, *known, out)
            move = 0.0
            for m in range(size - n, size):
                move -= out[m] / rise
            for m in range(wide - 1):
                out[m] += move * slope[m]
        for m in range(wide - 1):
            t[m, j] = out[m] - (out[m - n] if n <= m < size else 0.0)
        t[wide - 1, j] = end if j == wide else move
    return wide


@kernel
def pivot(i, j, wide, t):
    """Let row i and column j of a tableau change places."""
    entry = t[i, j]
    for k in range(wide + 1):
        t[i, k] = -t[i, k] / entry
    t[i, j] = 1 / entry
    for row in range(wide):
        part = t[row, j]
        if row != i and part != 0:
            t[row, j] = 0.0
            for k in range(wide + 1):
                t[row, k] += part * t[i, k]


@kernel
def descend(wide, rows, columns, t):
    """Take simplex steps until the last row has no way down; return what is left in it.

    `rows` and `columns` say which size or slack each is.
    """
    for k in range(wide):
        rows[k], columns[k] = k, wide + k
    for step in range(50 * wide):
        j, least = -1, -EPS
        for k in range(wide):
            if t[wide - 1, k] < least and (j < 0 or step < 10 * wide):
                j, least = k, t[wide - 1, k]
        i, ratio = -1, np.inf
        for k in range(wide - 1 if j >= 0 else 0):
            if t[k, j] < -EPS and max(0.0, t[k, wide]) < -t[k, j] * ratio:
                i, ratio = k, max(0.0, t[k, wide]) / -t[k, j]
        if i < 0:
            break
        pivot(i, j, wide, t)
        rows[i], columns[j] = columns[j], rows[i]
    return t[wide - 1, wide]


@kernel
def soonest(release, n, rounds, theta, load, work):
    """Return when a load ends at the soonest on nodes 1..n and the rounds of use; inf if n is idle.

    `load` is chi sigma. The sizes stand in the first row of `work`, as they are sent.
    """
    sizes, starts, cut, out, since, t = work[0], work[1], work[2], work[3], work[6], work[7:]
    for k in range(n):
        since[k] = release[k] - release[0]
    rounds = fill_visits(n, rounds, theta, starts)
    end, first = take_all(since, n, rounds, theta, load, starts, cut)
    if first < 0:
        return np.inf, rounds
    size, wide, known = n * rounds, 0, (first, since, n, rounds, theta, starts, cut)
    if rounds > 1 and first < n - 1:
        wide = fill_tableau(end, *known, sizes, out, t)
        end = descend(wide, work[4], work[5], t)
        for m in range(size):
            out[m] = 0.0
        for k in range(wide):
            if work[4, k] < size:
                out[int(work[4, k])] = t[k, wide]
    else:
        respond(end, 1.0, 0, 0, *known, out)
        for m in range(size - 1, n - 1, -1):
            out[m] -= out[m - n]
    for m in range(size):
        sizes[size - 1 - m] = out[m] if m >= size - n or out[m] > TOL * load else 0.0
    return release[0] + end, rounds


@kernel
def fill_sizes(sigma, release, n, rounds, cms, cps, work, out, base):
    """Write the shares by which a load ends at the soonest."""
    soonest(release, n, rounds, cms / cps, sigma * cps, work)
    total = 0.0
    for k in range(n * rounds):
        total += work[0, k]
    for k in range(n * rounds):
        out[base + k, 0] = work[0, k] / total
