"""Links and their traces: how long a transfer takes, and what other users' data leave.

Source: paper B, section 2.1. A trace is a row of throughputs (Mbit/s), one entry per `step`
seconds; the last entry is held for ever. A path is an array of links.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import compiled, latest_finish

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

#: What other users' data leave of a link at least.
LEAST_LEFT = 0.01


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


def pack_arrivals(lists: list[Floats], sizes: Floats) -> Stream:
    """Join arrivals at several queues."""
    first = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return Stream(first, np.concatenate([np.empty(0), *lists]), sizes)


@compiled(inline=True)
def size_of(arrival, sizes):
    """Return the size of an arrival of a stream, whose sizes are one for all or one for each."""
    return sizes[arrival if sizes.shape[0] > 1 else 0]


@compiled(inline=True)
def entry_at(time, step, steps):
    """Return the entry of a trace that holds at a time from its begin on."""
    return int(min(time / step, steps - 1.0))  # a far time would not fit into an int


@compiled(inline=True)
def entry_seen(time, step, steps):
    """Return the entry that an observer sees: the next one where that begins at the instant."""
    return entry_at(latest_finish(time, step), step, steps)


@compiled(inline=True)
def bottleneck(entry, rates, path):
    """Return the smallest throughput on a path in an entry of the traces; inf without a link."""
    smallest = np.inf
    for link in path:
        smallest = min(smallest, rates[link, entry])
    return smallest


@compiled(inline=True)
def finish_transfer(start, data, rates, path, origin, step):
    """Return when data that flow at the smallest throughput of a path have all arrived."""
    if data <= 0 or path.shape[0] == 0:
        return start
    steps, now, left = rates.shape[1], start, data
    entry = entry_at(origin + start, step, steps)
    while entry < steps - 1:
        rate, until = bottleneck(entry, rates, path), (entry + 1) * step - origin
        room = rate * (until - now)
        if left <= room:
            return now + left / rate
        left -= room
        now, entry = until, entry + 1
    return now + left / bottleneck(entry, rates, path)


@compiled(inline=True)
def path_between(source, target, env):
    """Return where in ``env.path_links`` the path from a domain to another begins and ends."""
    pair = source * env.domains + target
    return env.path_start[pair], env.path_start[pair + 1]


@compiled(inline=True)
def smallest_on_path(source, target, values, env):
    """Return the smallest value of the links between two domains; inf without a link."""
    first, last = path_between(source, target, env)
    smallest = np.inf
    for hop in range(first, last):
        smallest = min(smallest, values[env.path_links[hop]])
    return smallest


@compiled(inline=True)
def finish_on_link(link, start, data, env):
    """Return when data that have a link to themselves from a time on have left it."""
    path = env.link_rows[link : link + 1]
    return finish_transfer(start, data, env.capacity, path, env.origin, env.step)


@compiled(inline=True)
def absorb_link_background(link, time, env, state):
    """Let other users' data arrive at a link up to a time."""
    record, last = state.links[link], env.link_background.first[link + 1]
    while record.next_background < last:
        data = size_of(record.next_background, env.link_background.sizes)
        arrival = env.link_background.times[record.next_background]
        if arrival > latest_finish(time, data / env.capacity[link, -1]):
            break
        record.free = finish_on_link(link, max(record.free, arrival), data, env)
        record.next_background += 1


@compiled
def _add_busy_time(busy, rates, step, link_rows, first, times, sizes):
    """Add the seconds per step in which other users' data occupy each link."""
    steps = busy.shape[1]
    for link in range(busy.shape[0]):
        free, path = 0.0, link_rows[link : link + 1]
        for arrival in range(first[link], first[link + 1]):
            start = max(free, times[arrival])
            free = finish_transfer(start, size_of(arrival, sizes), rates, path, 0.0, step)
            entry = entry_at(start, step, steps + 1)
            while entry < steps and start < free:
                until = min(free, (entry + 1) * step)
                busy[link, entry] += until - start
                start, entry = until, entry + 1


def left_over(rates: Floats, step: float, data: Stream) -> Floats:
    """Return what other users' data leave of the throughput of links."""
    steps = max(rates.shape[1], int(data.times.max(initial=0.0) / step) + 1)
    longer = np.pad(rates, ((0, 0), (0, steps + 1 - rates.shape[1])), mode="edge")
    busy = np.zeros((len(rates), steps))
    _add_busy_time(busy, rates, step, np.arange(len(rates)), *data)
    longer[:, :-1] *= np.maximum(LEAST_LEFT, 1 - busy / step)
    return np.ascontiguousarray(longer)
