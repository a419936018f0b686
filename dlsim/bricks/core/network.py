"""Links and their traces: how long a transfer takes, and what other users' data leave.

Source: paper B, section 2.1. A trace is a row of `rates` (Mbit/s), one entry per `step`
seconds; the last entry is held for ever. A path is ``hops[first:last]``.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import compiled, latest_finish

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

#: What other users' data leave of a link at least.
LEAST_LEFT = 0.01
#: Jobs between two marks of `marked`, and between two that `absorb_background` jumps to.
APART, FAR_APART = 8, 64


class Stream(NamedTuple):
    """Arrivals at a set of queues, one queue after another."""

    first: Whole
    times: Floats
    sizes: Floats

    def of(self, queue: int) -> Floats:
        """Return the arrivals at a queue."""
        return self.times[self.first[queue] : self.first[queue + 1]]

    def sizes_of(self, queue: int) -> Floats:
        """Return their sizes, or the one of all."""
        if len(self.sizes) == 1:
            return self.sizes
        return self.sizes[self.first[queue] : self.first[queue + 1]]


def packed(lists: list[Floats], sizes: Floats) -> Stream:
    """Join arrivals at several queues."""
    first = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return Stream(first, np.concatenate([np.empty(0), *lists]), sizes)


@compiled(inline=True)
def entry_at(time, step, steps):
    """Return the entry of a trace that holds at a time from its begin on."""
    return int(min(time / step, steps - 1.0))  # a far time would not fit into an int


@compiled(inline=True)
def entry_seen(time, step, steps):
    """Return the entry that an observer sees: the next one where that begins at the instant."""
    return entry_at(latest_finish(time, step), step, steps)


@compiled(inline=True)
def bottleneck(k, rates, hops, first, last):
    """Return the smallest throughput on a path in entry k; inf without a hop."""
    least = np.inf
    for h in range(first, last):
        least = min(least, rates[hops[h], k])
    return least


@compiled(inline=True)
def least_on_path(a, b, values, w):
    """Return the smallest value on the path from domain a to b; inf for an empty path."""
    least, pair = np.inf, a * w.domains + b
    for h in range(w.first[pair], w.first[pair + 1]):
        least = min(least, values[w.hops[h]])
    return least


@compiled(inline=True)
def finish_transfer(start, data, rates, origin, step, hops, first, last):
    """Return when data that flow at the smallest throughput of a path have all arrived."""
    if data <= 0 or first == last:
        return start
    steps, now, left = rates.shape[1], start, data
    k = entry_at(origin + start, step, steps)
    while k < steps - 1:
        rate, until = bottleneck(k, rates, hops, first, last), (k + 1) * step - origin
        room = rate * (until - now)
        if left <= room:
            return now + left / rate
        left -= room
        now, k = until, k + 1
    return now + left / bottleneck(k, rates, hops, first, last)


@compiled
def _spread(busy, rates, step, every, first, times, sizes):
    """Write the seconds per step in which other users' data occupy each link."""
    steps, unit = busy.shape[1], 1 if sizes.shape[0] > 1 else 0
    for link in range(busy.shape[0]):
        free = 0.0
        for j in range(first[link], first[link + 1]):
            start = max(free, times[j])
            size = sizes[j * unit]
            free = finish_transfer(start, size, rates, 0.0, step, every, link, link + 1)
            k = entry_at(start, step, steps + 1)
            while k < steps and start < free:
                until = min(free, (k + 1) * step)
                busy[link, k] += until - start
                start, k = until, k + 1


@compiled
def _mark(marks, speed, first, times, size):
    """Write when everything before every job of a round number is done."""
    for queue in range(speed.shape[0]):
        free, span = -np.inf, size / speed[queue]
        for j in range(first[queue], first[queue + 1]):
            if j % APART == 0:
                marks[j // APART] = free
            free = max(free, times[j]) + span


def marked(jobs: Stream, speed: Floats) -> Floats:
    """Return when servers that have nothing else to do have done other users' jobs."""
    marks = np.full(-(-len(jobs.times) // APART), -np.inf)
    _mark(marks, speed, jobs.first, jobs.times, jobs.sizes[0])
    return marks


def left_over(rates: Floats, step: float, data: Stream) -> Floats:
    """Return what other users' data leave of the throughput of links."""
    steps = max(rates.shape[1], int(data.times.max(initial=0.0) / step) + 1)
    longer = np.pad(rates, ((0, 0), (0, steps + 1 - rates.shape[1])), mode="edge")
    busy = np.zeros((len(rates), steps))
    _spread(busy, rates, step, np.arange(len(rates)), *data)
    longer[:, :-1] *= np.maximum(LEAST_LEFT, 1 - busy / step)
    return np.ascontiguousarray(longer)
