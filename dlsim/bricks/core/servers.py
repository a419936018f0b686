"""Servers: queues of client and background jobs, first come, first served.

Background jobs are not events. A queue is followed job by job (the recursion of Lindley:
a job starts when it has arrived and the one before has ended) as far as somebody looks.
Source: paper B, sections 2.1 and 3.3.
"""

import numpy as np

from dlsim.bricks.core.network import APART, FAR_APART, entry_at
from dlsim.compiled import compiled, latest_finish


@compiled(inline=True)
def finish_service(server, start, work, w):
    """Return when a server ends work that it starts at a time."""
    steps, speed = w.loads.shape[1], w.performance[server]
    if steps == 0 or work <= 0:
        return start + work / speed
    k, now, left = entry_at(w.origin + start, w.step, steps), start, work
    while k < steps - 1:
        until = (k + 1) * w.step - w.origin
        room = speed / (1 + w.loads[server, k]) * (until - now)
        if left <= room:
            break
        left -= room
        now, k = until, k + 1
    return now + left * (1 + w.loads[server, k]) / speed


@compiled(inline=True)
def first_after(limit, at, last, times):
    """Return the first of some sorted arrivals that comes after a time; `last` for none.

    It is looked for around the place where it would be if they came evenly: few of many are read.
    """
    if at == last:
        return last
    span, step, low, high = times[last - 1] - times[at], APART, at, last
    share = (limit - times[at]) / span if span > 0 else 0.0
    guess = at + int(max(0.0, min(1.0, share)) * (last - 1 - at))
    if times[guess] <= limit:
        low = guess + 1
        while low + step < last and times[low + step] <= limit:
            low += step
            step *= 2
        high = min(last, low + step)
    else:
        high = guess
        while high - step > at and times[high - step] > limit:
            high -= step
            step *= 2
        low = max(at, high - step)
    while low < high:
        middle = (low + high) // 2
        if times[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return low


@compiled(inline=True)
def comes_by(time, server, at, w):
    """Tell whether a background job arrives by a time; its span is the duration at hand."""
    if w.jobs.times[at] <= time:
        return True
    size = w.jobs.sizes[at if w.jobs.sizes.shape[0] > 1 else 0]
    return w.jobs.times[at] <= latest_finish(time, size / w.performance[server])


@compiled(inline=True)
def absorb_background(server, time, w, s):
    r"""Let the background jobs of a server arrive up to a time.

    Jobs of one span p are not walked one by one: what a server that has other work too has
    done with n more of them is :math:`\max(V, F + n p)`, V when it would be done without
    that work (`dlsim.bricks.core.network.marked`) and F when it was before.
    """
    one = s.servers[server]
    at, last, free = one.at, w.jobs.first[server + 1], one.free
    if w.marks.shape[0]:
        span = w.jobs.sizes[0] / w.performance[server]
        limit = latest_finish(time, span)
        if at + 2 * FAR_APART < last and w.jobs.times[at + 2 * FAR_APART] <= limit:
            jump = first_after(limit, at + 2 * FAR_APART, last, w.jobs.times) // FAR_APART
            jump -= jump * FAR_APART == last
            jump *= FAR_APART
            free = max(w.marks[jump // APART], free + (jump - at) * span)
            at = jump
        while at < last and w.jobs.times[at] <= limit:
            free = max(free, w.jobs.times[at]) + span
            at += 1
    else:
        unit = 1 if w.jobs.sizes.shape[0] > 1 else 0
        while at < last and comes_by(time, server, at, w):
            start = max(free, w.jobs.times[at])
            free = finish_service(server, start, w.jobs.sizes[at * unit], w)
            at += 1
    one.at, one.free = at, free


@compiled
def absorb_all(time, w, s):
    """Let the background jobs of all servers arrive up to a time, as far as they are known."""
    for server in range(w.performance.shape[0]):
        absorb_background(server, time, w, s)


@compiled(inline=True)
def accept(server, row, time, w, s):
    """Put a request at the end of a queue whose background has been absorbed."""
    one, job = s.servers[server], s.jobs[row]
    job.start = max(one.free, time)
    job.end = finish_service(server, job.start, w.work[row], w)
    one.free = job.end
    if one.tail < 0:
        one.head = row
    else:
        s.jobs[one.tail].next = row
    one.tail = row


@compiled(inline=True)
def touch(server, time, s):
    """Note that a client job has joined or left a server."""
    one, head = s.servers[server], s.head[0]
    one.touched = time
    if not one.listed:
        one.listed = 1
        s.changed[head.changed] = server
        head.changed += 1


@compiled(inline=True)
def following(server, job, s):
    """Return the client job after one on its server, after -1 the first; -1 for none."""
    return s.servers[server].head if job < 0 else s.jobs[job].next


@compiled(inline=True)
def count_clients(c, server, bound, are_gone, s):
    """Return how many client jobs have arrived, or ended, by an instant; move their cursor."""
    job = following(server, c.job, s)
    while job >= 0 and (s.jobs[job].end if are_gone else s.jobs[job].arrived) <= bound:
        c.job = job
        c.count += 1
        job = s.jobs[job].next
    return c.count


@compiled(inline=True)
def leap(c, ours, bound, last, span, w):
    """Move a cursor past background jobs that have ended by an instant and came before ours.

    See `absorb_background`; the ends rise, so that steps are doubled, and halved from the first
    one that is too long.
    """
    at, free, step, is_longer = c.at, c.free, APART, True
    goal = c.at // APART * APART
    while step >= APART:
        new = goal + step
        good = new < last and free + (new - at) * span <= bound and w.marks[new // APART] <= bound
        if good and w.jobs.times[new - 1] <= ours:
            goal = new
        else:
            is_longer = False
        step = 2 * step if is_longer else step // 2
    if goal > at:
        c.count += goal - at
        c.busy += (goal - at) * span
        c.at, c.free = goal, max(w.marks[goal // APART], free + (goal - at) * span)


@compiled(inline=True)
def follow(server, c, bound, time, w, s):
    """Move a cursor past every job of a queue, of whomever, that has ended by an instant."""
    last, unit = w.jobs.first[server + 1], 1 if w.jobs.sizes.shape[0] > 1 else 0
    while True:
        job = following(server, c.job, s)
        ours = s.jobs[job].arrived if job >= 0 else np.inf
        if w.marks.shape[0]:
            leap(c, ours, bound, last, w.jobs.sizes[0] / w.performance[server], w)
        at = c.at
        theirs = w.jobs.times[at] if at < last else np.inf
        if ours == np.inf and theirs == np.inf:
            return c.busy
        theirs_first = at < last and comes_by(ours, server, at, w)
        if theirs_first:
            start = max(c.free, theirs)
            end = finish_service(server, start, w.jobs.sizes[at * unit], w)
        else:
            start, end = s.jobs[job].start, s.jobs[job].end
        if end > bound:
            return c.busy + max(0.0, time - start)
        c.busy += end - start
        c.free = end
        c.count += 1
        if theirs_first:
            c.at += 1
        else:
            c.job = job
