"""Links and their traces: how long a transfer takes, and what other users' data leave.

Source: paper B, section 2.1. A trace is a row of throughputs (Mbit/s), one entry per `step`
seconds; the last entry is held for ever. A path is an array of links.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import compiled, deadline_with_tolerance

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Smallest share of its throughput that a link keeps beside other users' data.
MIN_AVAILABLE_SHARE = 0.01


class Stream(NamedTuple):
    """Arrivals at a set of queues, one queue after another.

    The arrivals at queue k are entries ``first[k]`` to ``first[k + 1]`` of `times` and `sizes`;
    one size stands for that of all arrivals.
    """

    first: IntArray
    times: FloatArray
    sizes: FloatArray

    def times_of(self, queue: int) -> FloatArray:
        """Return the times of the arrivals at a queue."""
        return self.times[self.first[queue] : self.first[queue + 1]]

    def sizes_of(self, queue: int) -> FloatArray:
        """Return the sizes of the arrivals at a queue, or the one size of all arrivals."""
        if len(self.sizes) == 1:
            return self.sizes
        return self.sizes[self.first[queue] : self.first[queue + 1]]


def pack_arrivals(lists: list[FloatArray], sizes: FloatArray) -> Stream:
    """Join the arrivals at several queues, one list of times per queue, into a stream."""
    first = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return Stream(first, np.concatenate([np.empty(0), *lists]), sizes)


@compiled(inline=True)
def size_of(arrival, sizes):
    """Return the size of an arrival of a stream, which has one size for all or one for each."""
    return sizes[arrival if sizes.shape[0] > 1 else 0]


@compiled(inline=True)
def entry_at(time, step, steps):
    """Return the entry of a trace that holds at a time, counted from the begin of the trace."""
    return int(min(time / step, steps - 1.0))  # a far time would not fit into an int


@compiled(inline=True)
def visible_entry(time, step, steps):
    """Return the entry that a monitor sees; where two entries meet, the later one."""
    return entry_at(deadline_with_tolerance(time, step), step, steps)


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
    steps, now, data_left = rates.shape[1], start, data
    entry = entry_at(origin + start, step, steps)
    while entry < steps - 1:
        rate, entry_end = bottleneck(entry, rates, path), (entry + 1) * step - origin
        data_of_entry = rate * (entry_end - now)
        if data_left <= data_of_entry:
            return now + data_left / rate
        data_left -= data_of_entry
        now, entry = entry_end, entry + 1
    return now + data_left / bottleneck(entry, rates, path)


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
def finish_on_link(start, data, rates, origin, step):
    """Return when data have passed a link of these rates that they use alone from a time on."""
    if data <= 0:
        return start
    steps, now, data_left = rates.shape[0], start, data
    entry = entry_at(origin + start, step, steps)
    while entry < steps - 1:
        entry_end = (entry + 1) * step - origin
        data_of_entry = rates[entry] * (entry_end - now)
        if data_left <= data_of_entry:
            break
        data_left -= data_of_entry
        now, entry = entry_end, entry + 1
    return now + data_left / rates[entry]


@compiled(inline=True)
def absorb_link_background(link, time, env, state):
    """Queue the data of other users that arrive at a link up to a time."""
    record, last = state.links[link], env.link_background.first[link + 1]
    while record.next_background < last:
        data = size_of(record.next_background, env.link_background.sizes)
        arrival = env.link_background.times[record.next_background]
        if arrival > deadline_with_tolerance(time, data / env.capacity[link, -1]):
            break
        start, rates = max(record.free, arrival), env.capacity[link]
        record.free = finish_on_link(start, data, rates, env.origin, env.step)
        record.next_background += 1


@compiled
def _add_busy_time(busy, rates, step, first, times, sizes):
    """Add the seconds per step in which other users' data occupy each link."""
    steps = busy.shape[1]
    for link in range(busy.shape[0]):
        free = 0.0
        for arrival in range(first[link], first[link + 1]):
            start = max(free, times[arrival])
            free = finish_on_link(start, size_of(arrival, sizes), rates[link], 0.0, step)
            entry = entry_at(start, step, steps + 1)
            while entry < steps and start < free:
                until = min(free, (entry + 1) * step)
                busy[link, entry] += until - start
                start, entry = until, entry + 1


def available_throughput(rates: FloatArray, step: float, data: Stream) -> FloatArray:
    """Return the throughput of links that other users' data leave, shape (links, steps)."""
    steps = max(rates.shape[1], int(data.times.max(initial=0.0) / step) + 1)
    available = np.pad(rates, ((0, 0), (0, steps + 1 - rates.shape[1])), mode="edge")
    busy = np.zeros((len(rates), steps))
    _add_busy_time(busy, rates, step, *data)
    available[:, :-1] *= np.maximum(MIN_AVAILABLE_SHARE, 1 - busy / step)
    return np.ascontiguousarray(available)
