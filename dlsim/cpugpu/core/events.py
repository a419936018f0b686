"""The event loop: completions, arrivals, then decisions, instant by instant."""

import numpy as np

from dlsim.cpugpu.core import state
from dlsim.cpugpu.core.queues import assign, change_main, expect, join, leave, measure
from dlsim.cpugpu.core.rules import decide
from dlsim.cpugpu.core.state import NOBODY
from dlsim.cpugpu.core.sums import drop, put
from dlsim.kernel import kernel, latest_finish


@kernel(inline=True)
def _start(d, w, r, s):
    """Rule 1: a free device takes the next job of its sub-queue."""
    j, now, slow = s.lines[d].head, s.head[0].now, d >= w.gpus and r.share > 0
    s.devices[d].job = j
    leave(j, d, w, r, s)
    time = w.times[j, w.column[d]]
    s.jobs[j].start = now
    s.devices[d].end = now + (time / s.head[0].rate if slow else time)
    if r.rule == state.SHARE:
        s.busy[w.pool[w.app[j]]] += 1


@kernel(inline=True)
def _complete(d, w, r, s):
    """Take a finished job off its device; its time enters the history (rule 5)."""
    head, device = s.head[0], s.devices[d]
    j, head.now = device.job, device.end
    job = s.jobs[j]
    job.end = head.now
    job.seconds = head.now - job.start if r.share > 0 else w.times[j, w.column[d]]
    s.done[head.done] = j
    head.done += 1
    head.left -= 1
    device.job, device.end = NOBODY, np.inf
    if s.lines[d].count == 0:
        put(s.free, d)
    measure(w.app[j], int(d >= w.gpus), job.seconds, w, r, s)
    if r.rule == state.SHARE:
        s.busy[w.pool[w.app[j]]] -= 1


@kernel(inline=True)
def _settle(w, r, s):
    """Let the CPUs go on at the speed that the running GPU jobs leave them."""
    devices, head = w.column.shape[0], s.head[0]
    if r.share == 0 or devices == w.gpus:
        return
    running = 0
    for d in range(w.gpus):
        running += s.devices[d].job >= 0
    rate = 1.0 - r.share * running / (devices - w.gpus)
    if rate != head.rate:
        for d in range(w.gpus, devices):
            s.devices[d].end = head.now + (s.devices[d].end - head.now) * head.rate / rate
        head.rate = rate


@kernel(inline=True)
def _advance(w, r, s):
    """Go to the next instant: what ends there ends, what arrives waits; False if nothing does."""
    head, first, n = s.head[0], np.inf, w.arrival.shape[0]
    for d in range(w.column.shape[0]):
        first = min(first, s.devices[d].end)
    if head.coming < n:
        first = min(first, w.arrival[head.coming])
    if first == np.inf:
        return False
    limit, ending = latest_finish(first, w.span), 0
    head.now = first
    for d in range(w.column.shape[0]):
        if s.devices[d].end <= limit:
            k = ending
            while k > 0 and s.devices[s.due[k - 1]].end > s.devices[d].end:
                s.due[k] = s.due[k - 1]
                k -= 1
            s.due[k] = d
            ending += 1
    for k in range(ending):
        _complete(s.due[k], w, r, s)
    while head.coming < n and w.arrival[head.coming] <= limit:
        head.now = max(head.now, w.arrival[head.coming])
        change_main(head.coming, 1, w, r, s)
        head.coming += 1
    _settle(w, r, s)
    for k in range(ending):
        if s.lines[s.due[k]].count > 0:
            _start(s.due[k], w, r, s)
    return True


@kernel(inline=True)
def _act(w, r, s):
    """Move the job that was decided into the sub-queue of its device; a free one starts it."""
    head = s.head[0]
    j, d, job = head.job, head.on, s.jobs[head.job]
    if head.line < 0:
        change_main(j, -1, w, r, s)
    else:
        leave(j, head.line, w, r, s)
    job.on, job.word, job.turn, job.decided = d, head.word, head.turns, head.now
    head.turns += 1
    assign(w.app[j], int(d >= w.gpus), s)
    join(j, d, w, r, s)
    if s.devices[d].job < 0:
        _start(d, w, r, s)


@kernel
def act(w, r, s):
    """Do what was decided elsewhere."""
    _act(w, r, s)


@kernel
def run(w, r, s):
    """Run until all is done, nothing happens any more, or a user's policy has to decide."""
    head = s.head[0]
    while True:
        if head.phase == state.BEFORE:
            if head.left == 0:
                return state.DONE
            if not _advance(w, r, s):
                return state.STUCK
            head.phase = state.DECIDING
        if head.phase == state.DECIDING and r.rule == state.USER:
            return state.CHOOSE
        while head.phase == state.DECIDING and decide(w, r, s):
            _act(w, r, s)
        _settle(w, r, s)
        head.phase = state.BEFORE


@kernel
def begin(w, r, s):
    """Let all devices be free, and expect what the history knows."""
    for d in range(w.column.shape[0]):
        put(s.free, d)
    if r.rule == state.FIVE:
        for a in range(s.known.shape[0]):
            for c in range(2):
                if s.known[a, c].count > 0:
                    expect(a, c, w, r, s)


@kernel(inline=True)
def _note(event, w, r, s):
    """Let one thing happen that a desk tells of."""
    head, d = s.head[0], event.on
    head.now = event.now
    if event.what == state.MOVED:
        head.job, head.on, head.line = event.job, d, event.line
        _act(w, r, s)
    elif event.what == state.TAKEN_UP:
        if s.devices[d].job < 0:  # what was moved to a free device began at once
            _start(d, w, r, s)
    elif event.what == state.ENDED:
        s.devices[d].end, w.times[s.devices[d].job, w.column[d]] = event.now, event.seconds
        _complete(d, w, r, s)
    else:
        j, device = s.devices[d].job, s.devices[d]
        device.job, device.end = NOBODY, np.inf
        if s.lines[d].count == 0:
            put(s.free, d)
        known = s.known[w.app[j], int(d >= w.gpus)]
        known.assigned = max(0, known.assigned - 1)
        change_main(j, 2, w, r, s)


@kernel
def decide_from(places, events, w, r, s):
    """Decide where jobs are at places, and events have happened since.

    A job of the main queue is at -1, one that runs on device d at d, one that waits there at D + d.
    """
    devices = w.column.shape[0]
    if places.shape[0] > 0:
        begin(w, r, s)
    for j in range(places.shape[0]):
        if places[j] < 0:
            change_main(j, 1, w, r, s)
        elif places[j] < devices:
            s.devices[places[j]].job = j
            drop(s.free, places[j])
        else:
            join(j, places[j] - devices, w, r, s)
    for k in range(events.shape[0]):
        _note(events[k], w, r, s)
    return decide(w, r, s)
