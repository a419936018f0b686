"""Other users' arrivals: Poisson streams, kept where they fit, else drawn as time advances."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from dlsim.bricks.core.network import Stream, marked, packed
from dlsim.bricks.core.servers import absorb_all
from dlsim.bricks.core.state import (
    BEFORE,
    BUSY,
    GONE,
    PERFECT,
    QUEUE,
    SEEN,
    UTIL,
    Rules,
    State,
    World,
)  # fmt: skip
from dlsim.given import Floats, Seed, generator
from dlsim.kernel import TOL

#: Arrivals that are held at a time, of all queues together.
WINDOW = 2**24


def _drawn(rate: float, begun: float, end: float, stream: Generator) -> tuple[Floats, float]:
    """Draw arrivals after a sum of unit gaps up to a time, seldom too few at once; and the sum."""
    parts = []
    while rate > 0 and begun / rate < end:
        expected = rate * end - begun
        gaps = stream.standard_exponential(math.ceil(expected + 6 * math.sqrt(expected)) + 8)
        gaps[0] += begun
        sums = np.cumsum(gaps, out=gaps)
        begun = float(sums[-1])
        sums /= rate
        parts.append(sums)
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts]), begun


def arrivals(rate: float, end: float, stream: Generator) -> Floats:
    """Draw Poisson arrivals, `rate` per second, rising from 0 to below `end`."""
    times, _ = _drawn(rate, 0.0, end, stream)
    return times[: np.searchsorted(times, end)]


@dataclass(frozen=True, eq=False)
class Poisson:
    """Arrivals at several queues that are too many to be kept; those of `arrivals`."""

    rates: Floats
    end: float
    sizes: Floats
    seed: Seed
    purpose: int

    @property
    def times(self) -> Floats:
        """Between which times they lie."""
        return np.array([0.0, self.end])

    def of(self, queue: int) -> Floats:
        """Draw all arrivals at a queue."""
        return arrivals(self.rates[queue], self.end, generator(self.seed, self.purpose, queue))

    def sizes_of(self, _queue: int) -> Floats:
        """Return the one size of all."""
        return self.sizes

    def none_yet(self) -> Stream:
        """Return the arrivals before the first ones are drawn."""
        return packed([np.empty(0)] * len(self.rates), self.sizes)


class Ahead:
    """What has been drawn of a `Poisson` in one run: from what somebody still looks at on."""

    def __init__(self, source: Poisson) -> None:
        """Begin at 0, with nothing drawn."""
        self.source, queues = source, len(source.rates)
        self.streams = [generator(source.seed, source.purpose, k) for k in range(queues)]
        self.sums, self.held = np.zeros(queues), [np.empty(0)] * queues

    def move(self, w: World, r: Rules, s: State) -> World:
        """Leave out what nobody looks at any more, and draw what comes after now."""
        now, rates = float(s.head[0]["now"]), self.source.rates
        absorb_all(now, w, s)
        busy = (BUSY, BEFORE)[: 1 + (r.predictor == PERFECT)]
        followed = {QUEUE: (SEEN, GONE), UTIL: busy}.get(r.load, ())
        low = np.min([s.servers.at, *(s.cursors.at[:, c] for c in followed)], axis=0)
        until = now + WINDOW / float(rates.sum())
        for k, gone in enumerate(low - w.jobs.first[:-1]):
            begun, end, stream = float(self.sums[k]), min(until, self.source.end), self.streams[k]
            more, self.sums[k] = _drawn(float(rates[k]), begun, end, stream)
            more = more[: np.searchsorted(more, self.source.end)]
            self.held[k] = np.concatenate([self.held[k][gone:], more])
        jobs = packed(self.held, self.source.sizes)
        s.servers.at += jobs.first[:-1] - low
        s.cursors.at += (jobs.first[:-1] - low)[:, None]
        span = float(jobs.sizes[0] / w.performance.min())
        known: Any = min(until, self.source.end) - 4 * TOL * (until + span + r.probe)
        new = w._replace(jobs=jobs, until=np.inf if until >= self.source.end else float(known))
        if len(w.loads[0]) == 0:
            new = new._replace(marks=marked(jobs, w.performance))
        for one in (*new.jobs, new.marks):
            one.flags.writeable = False
        return new
