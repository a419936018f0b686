"""Servers of several slots, queues by deadline, and failures: followed job by job.

What a server of one slot that never fails does first come, first served is known when a job
arrives (`dlsim.bricks.core.servers`); here later arrivals, failures and cancellations still change
it. A server is followed as far as somebody looks, and wakes the event loop where a client job
ends, begins or is hit. Background jobs that wait are a range of their stream.
"""

import numpy as np

from dlsim.bricks.core import state
from dlsim.bricks.core.servers import absorb_background, comes_by, finish_service, first_after
from dlsim.bricks.core.state import foresee, push
from dlsim.kernel import CLOCK, TOL, kernel, latest_finish


@kernel(inline=True)
def is_down(server, w, s):
    """Tell whether a server has failed and is not yet up again."""
    return (s.queues[server].edge - w.down.first[server]) % 2 == 1


@kernel(inline=True)
def _size(at, w):
    """Return the work of a background job."""
    return w.jobs.sizes[at if w.jobs.sizes.shape[0] > 1 else 0]


@kernel(inline=True)
def _is_theirs(client, at, now, server, w, s):
    """Tell whether a background job is the next in line, before the first client that waits."""
    if at >= w.jobs.first[server + 1] or not comes_by(now, server, at, w):
        return False
    return client < 0 or (not w.edf[server] and comes_by(s.jobs[client].arrived, server, at, w))


@kernel
def fill(server, now, w, s):
    """Let waiting jobs begin where slots are idle."""
    one = s.servers[server]
    if is_down(server, w, s):
        return
    for k in range(w.slot[server], w.slot[server + 1]):
        slot, row = s.slots[k], one.head
        if slot.who != state.IDLE:
            continue
        slot.start = now
        if _is_theirs(row, one.at, now, server, w, s):
            slot.who, slot.work = state.OTHERS, _size(one.at, w)
            slot.start = max(now, w.jobs.times[one.at])
            one.at += 1
        elif row >= 0:
            slot.who, slot.work = row, w.work[row]
            one.head = s.jobs[row].next
            if one.head < 0:
                one.tail = -1
            s.jobs[row].start = now
            s.copies[row].state = state.RUNNING
        else:
            return
        slot.end = finish_service(server, slot.start, slot.work, w)


@kernel(inline=True)
def _leave(slot, now, q, s):
    """Let a job leave its slot for good, served."""
    q.busy += now - slot.start
    if slot.who >= 0:
        s.jobs[slot.who].end = now
        s.copies[slot.who].state = state.OUT
        q.clients -= 1
        foresee(now, state.SERVED, slot.who, s)
    slot.who = state.IDLE


@kernel(inline=True)
def _hit(row, now, q, s):
    """Note that a client job was on a server that failed."""
    q.clients -= 1
    s.copies[row].state = state.AWAY
    foresee(now, state.LOST, row, s)


@kernel
def _fail(server, now, w, r, s):
    """Let a server fail: what runs begins again later, or all that is there is lost."""
    q, one = s.queues[server], s.servers[server]
    for k in range(w.slot[server], w.slot[server + 1]):
        slot = s.slots[k]
        if slot.who == state.IDLE:
            continue
        if slot.end <= latest_finish(now, slot.end - slot.start):
            _leave(slot, slot.end, q, s)
            continue
        q.busy += now - slot.start
        slot.end = slot.start = np.inf
        if slot.who >= 0 and r.failed != state.RESTART:
            _hit(slot.who, now, q, s)
            slot.who = state.IDLE
        elif r.failed == state.LOSE:
            slot.who = state.IDLE
    while one.head >= 0 and r.failed != state.RESTART:
        s.jobs[one.head].start = np.nan
        _hit(one.head, now, q, s)
        one.head = s.jobs[one.head].next
        one.tail = one.head


@kernel
def _repair(server, now, w, r, s):
    """Let a server begin again with what it keeps; what came meanwhile may be lost."""
    one, last = s.servers[server], w.jobs.first[server + 1]
    for k in range(w.slot[server], w.slot[server + 1]):
        slot = s.slots[k]
        if slot.who != state.IDLE:
            slot.start, slot.end = now, finish_service(server, now, slot.work, w)
            if slot.who >= 0:
                s.jobs[slot.who].start = now
    if r.failed == state.LOSE:
        one.at = first_after(now, one.at, last, w.jobs.times)


@kernel
def advance(server, limit, w, r, s):
    """Follow a server up to a time."""
    q, one = s.queues[server], s.servers[server]
    last, edges = w.jobs.first[server + 1], w.down.first[server + 1]
    while True:
        when, ends, is_idle, kind = np.inf, -1, False, 0
        for k in range(w.slot[server], w.slot[server + 1]):
            slot = s.slots[k]
            is_idle = is_idle or slot.who == state.IDLE
            if slot.who != state.IDLE and slot.end < when:
                when, ends = slot.end, k
        if is_idle and one.at < last and not is_down(server, w, s):
            if w.jobs.times[one.at] <= when:
                when, kind = w.jobs.times[one.at], 1
        if q.edge < edges and w.down.times[q.edge] < when:
            when, kind = w.down.times[q.edge], 2
        if not when <= limit or when == np.inf:
            return
        if kind == 0:
            _leave(s.slots[ends], when, q, s)
        elif kind == 2:
            q.edge += 1
            if is_down(server, w, s):
                _fail(server, when, w, r, s)
            else:
                _repair(server, when, w, r, s)
        fill(server, when, w, s)


@kernel
def follow_all(time, w, r, s):
    """Let the background jobs of all servers arrive up to a time, as far as they are known.

    What a probe is still to look at stays as it is.
    """
    if r.general:
        if r.predictor != state.PERFECT:
            probe = s.head[0].probes * r.probe - w.origin
            time = min(time, probe - TOL * (r.probe + abs(probe) / CLOCK))
        time -= TOL * (r.probe + abs(time) / CLOCK)
    for server in range(w.performance.shape[0]):
        if r.general:
            advance(server, time, w, r, s)
        else:
            absorb_background(server, time, w, s)


@kernel
def arm(server, w, s):
    """Foresee when something happens to a client job on a server."""
    q, one, when = s.queues[server], s.servers[server], np.inf
    if q.clients > 0:
        for k in range(w.slot[server], w.slot[server + 1]):
            slot = s.slots[k]
            if slot.who >= 0 or (slot.who != state.IDLE and one.head >= 0):
                when = min(when, slot.end)
        if q.edge < w.down.first[server + 1]:
            when = min(when, w.down.times[q.edge])
    if when != q.wake:
        q.wake = when
        q.turn += 1
        if when < np.inf:
            push(when, state.WAKE, server, 0, q.turn, s)


@kernel
def wake(server, now, w, r, s):
    """Carry on a server that has foreseen this instant."""
    s.queues[server].wake = np.nan
    advance(server, now, w, r, s)
    arm(server, w, s)


@kernel
def join(server, row, now, w, s):
    """Put a client job in its place in a queue that has been followed up to now."""
    one, due = s.servers[server], w.deadline[row]
    before = one.tail
    if w.edf[server] and before >= 0 and due < w.deadline[before]:
        before, after = -1, one.head
        while w.deadline[after] <= due:
            before, after = after, s.jobs[after].next
    s.queues[server].clients += 1
    s.copies[row].state = state.WAITING
    s.jobs[row].start = np.nan
    if before < 0:
        after, one.head = one.head, row
    else:
        after, s.jobs[before].next = s.jobs[before].next, row
    s.jobs[row].next = after
    if after < 0:
        one.tail = row
    fill(server, now, w, s)
    arm(server, w, s)


@kernel
def remove(server, row, now, w, s):
    """Take a client job that waits or runs out of a server."""
    q, one = s.queues[server], s.servers[server]
    q.clients -= 1
    if s.copies[row].state == state.WAITING:
        before, at = -1, one.head
        while at != row:
            before, at = at, s.jobs[at].next
        if before < 0:
            one.head = s.jobs[row].next
        else:
            s.jobs[before].next = s.jobs[row].next
        if one.tail == row:
            one.tail = before
    else:
        for k in range(w.slot[server], w.slot[server + 1]):
            slot = s.slots[k]
            if slot.who == row:
                slot.who = state.IDLE
                if slot.start < np.inf:
                    q.busy += now - slot.start
                # what leaves as soon as another cancelled copy lets it begin has never begun
                again = q.edge > w.down.first[server] and w.down.times[q.edge - 1] == now
                if slot.start == now and not again:
                    s.jobs[row].start = np.nan
        fill(server, now, w, s)
    arm(server, w, s)


@kernel
def backlog(server, row, now, w, s):
    """Return when a job that has just arrived would begin, if none came and nothing failed."""
    q, one, free, begin = s.queues[server], s.servers[server], s.scratch, w.slot[server]
    down, count = is_down(server, w, s), w.slot[server + 1] - begin
    base = w.down.times[q.edge] if down else now
    for k in range(count):
        slot = s.slots[begin + k]
        free[k] = base if slot.who == state.IDLE else slot.end
        if down and slot.who != state.IDLE:
            free[k] = finish_service(server, base, slot.work, w)
    client, at = one.head, one.at
    while True:
        if w.edf[server] and client >= 0 and w.deadline[client] > w.deadline[row]:
            client = -1
        theirs = not w.edf[server] and _is_theirs(client, at, now, server, w, s)
        soonest = 0
        for k in range(1, count):
            soonest = k if free[k] < free[soonest] else soonest
        if client < 0 and not theirs:
            return free[soonest]
        work = _size(at, w) if theirs else w.work[client]
        free[soonest] = finish_service(server, free[soonest], work, w)
        if theirs:
            at += 1
        else:
            client = s.jobs[client].next


@kernel
def load_of(server, time, bound, external, w, r, s):
    """Return what the monitor reports as Load of a server, per slot; `DOWN` of one that failed."""
    q, one = s.queues[server], s.servers[server]
    clients, others, busy = float(q.clients), 0, q.busy
    for k in range(w.slot[server], w.slot[server + 1]):
        slot = s.slots[k]
        if slot.who != state.IDLE and slot.start < np.inf:
            busy += max(0.0, time - slot.start)
        if slot.who == state.OTHERS:
            others += slot.end > bound
        elif slot.who >= 0 and slot.end <= bound:
            clients -= 1
    since, q.seen = q.seen, busy
    if is_down(server, w, s):
        return state.DOWN
    if r.load == state.EXT:
        return external
    if r.load == state.UTIL:
        return max(0.0, busy - since) / (r.probe * w.slots[server]) + external
    if r.load == state.QUEUE:
        waiting = first_after(bound, one.at, w.jobs.first[server + 1], w.jobs.times)
        clients += others + waiting - one.at
    return clients / w.slots[server] + external
