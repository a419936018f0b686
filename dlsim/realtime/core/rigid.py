"""Rigid jobs, each on the processors it asks for: first come first served, EASY backfilling."""

import numpy as np

from dlsim.kernel import kernel
from dlsim.realtime.core.state import pop, push


@kernel
def begin(i, t, places, job, w):
    """Start a job: note when it ends, and where its estimated end stands among the others."""
    end, k = t + w.estimate[i], places
    while k > 0 and w.promised[k - 1] > end:
        w.promised[k], w.who[k] = w.promised[k - 1], w.who[k - 1]
        k -= 1
    w.promised[k], w.who[k] = end, i
    w.start[i] = t
    push(w.heap, places, t + w.run[i], i)
    if w.before[i] >= 0:
        w.after[w.before[i]] = w.after[i]
    if w.after[i] >= 0:
        w.before[w.after[i]] = w.before[i]
    return w.after[i] if job == i else job


@kernel
def reservation(head, free, places, w):
    """Return when the first in line can start by the estimates, and the processors it leaves."""
    t, k = -np.inf, 0
    while k < places and (free < w.processors[head] or w.promised[k] == t):
        t, free = w.promised[k], free + w.processors[w.who[k]]
        k += 1
    return t, free - w.processors[head]


@kernel
def serve(backfill, free, w):
    """Start every job in the order of submission, or earlier where that delays nobody ahead.

    EASY: whoever fits now may pass if by his estimate he ends before the first in line could
    start, or takes processors that it leaves (D. Lifka, "The ANL/IBM SP scheduling system", 1995).
    """
    size, i, places, head, tail = len(w.submit), 0, 0, -1, -1
    while i < size or places > 0:
        t = w.submit[i] if i < size else np.inf
        if places > 0:
            t = min(t, w.heap[0].time)
        while places > 0 and w.heap[0].time <= t:
            done, k = w.heap[0].nodes, 0
            pop(w.heap, places)
            while w.who[k] != done:
                k += 1
            places -= 1
            free += w.processors[done]
            for j in range(k, places):
                w.promised[j], w.who[j] = w.promised[j + 1], w.who[j + 1]
        while i < size and w.submit[i] <= t:
            w.before[i], w.after[i] = tail, -1
            if tail >= 0 and head >= 0:
                w.after[tail] = i
            else:
                head, w.before[i] = i, -1
            tail = i
            i += 1
        while head >= 0 and w.processors[head] <= free:
            one = head
            head = begin(one, t, places, head, w)
            places, free = places + 1, free - w.processors[one]
        if backfill and head >= 0 and free > 0:
            until, extra = reservation(head, free, places, w)
            one = w.after[head]
            while one >= 0 and free > 0:
                later, needs = w.after[one], w.processors[one]
                ends = t + w.estimate[one] <= until
                if needs <= free and (ends or needs <= extra):
                    if tail == one:
                        tail = w.before[one]
                    begin(one, t, places, head, w)
                    places, free = places + 1, free - needs
                    extra -= 0 if ends else needs
                one = later
