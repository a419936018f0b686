"""A day of a virtual organisation, drawn at random (paper S, section 7)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from dlsim.given import Seed, positive, streams, whole
from dlsim.steady.broker import Broker
from dlsim.steady.model import Network, Platform, Reading

_PURPOSES = ("arrivals", "sizes", "choices", "speeds", "absences")
#: Priorities that users may have, equally likely.
PRIORITIES = (1.0, 2.0, 4.0)
#: Hours between changes of what a site delivers, and the least part of what it declares.
SHIFT, SLOWEST = 2.0, 0.5
#: Hours that a site may be away, once a day with probability one half.
AWAY = (1.0, 4.0)


def day(
    p: Platform, method: str = "G", seed: Seed = 0, *, hours: float = 24.0, applications: int = 40,
    load: float = 0.5, period: float = 0.25, trust: float = 0.5, reading: Reading | None = None,
) -> Broker:  # fmt: skip
    """Let a broker serve a day of random applications on sites that come, go and slow down.

    Applications arrive at uniform instants; each has the origin, work and data of a random
    application of the platform, a priority of `PRIORITIES` and a lognormal size. Every two
    hours each site delivers a new part, 50 to 100 %, of what it declares; half of the
    sites are away once for one to four hours. After the last hour everything that can
    still be completed is.

    Parameters
    ----------
    p : Platform
        Sites, links, routes, limits, and speeds declared (work per hour).
    seed : int or SeedSequence
        Of everything drawn; the same day for every method.
    hours : float
        Length of the day, above 0.
    applications : int
        Number of applications, at least 1.
    load : float
        Expected work submitted over the work the sites could do in the time, above 0.
    method, period, trust, reading
        As in `Broker`; times are hours.

    Returns
    -------
    Broker
        At the end; `Broker.summary` sums it up.
    """
    applications = whole("applications", applications)
    hours, load = positive(hours=hours, load=load)
    rng = streams(seed, _PURPOSES)
    broker = Broker(Network.of(p), method, period, trust, seed, reading)
    events = _arrivals(p, broker, rng, hours, applications, load)
    events += _changes(p, broker, rng, hours)
    for k in np.flatnonzero(p.speed):
        broker.register(f"site {k}", float(p.speed[k]))
    for when, act in sorted(events, key=lambda event: event[0]):
        broker.advance(when)
        act()
    broker.advance()
    return broker


_Events = list[tuple[float, Callable[[], None]]]


def _arrivals(
    p: Platform, broker: Broker, rng: dict[str, np.random.Generator],
    hours: float, applications: int, load: float,
) -> _Events:  # fmt: skip
    times = np.sort(rng["arrivals"].uniform(0, hours, applications))
    # lognormal of mean 1 and deviation 1 of its logarithm
    sizes = np.exp(rng["sizes"].standard_normal(applications) - 0.5)
    kinds = rng["choices"].integers(p.applications, size=applications)
    priorities = rng["choices"].choice(PRIORITIES, applications)
    each = load * p.speed.sum() * hours / applications

    events: _Events = []
    for i, (when, a) in enumerate(zip(times, kinds.tolist(), strict=True)):
        origin, units = f"site {p.origin[a]}", float(sizes[i] * each / p.work[a])
        numbers = units, float(priorities[i]), float(p.work[a]), float(p.data[a])
        events.append((float(when), partial(broker.submit, f"application {i}", origin, *numbers)))
    return events


def _changes(
    p: Platform, broker: Broker, rng: dict[str, np.random.Generator], hours: float
) -> _Events:
    """Return when sites deliver another speed, leave and come back."""
    events: _Events = []
    shifts = np.arange(0.0, hours, SHIFT)
    parts = rng["speeds"].uniform(SLOWEST, 1.0, (p.clusters, len(shifts)))
    away = rng["absences"].uniform(*AWAY, p.clusters)
    leaves = rng["absences"].uniform(0, np.maximum(hours - away, 0.0))
    leave = rng["absences"].random(p.clusters) < 0.5

    for k in map(int, np.flatnonzero(p.speed)):
        site, speed = f"site {k}", float(p.speed[k])
        back = leaves[k] + away[k] if leave[k] else 0.0
        present = (shifts < leaves[k]) | (shifts > back) if leave[k] else shifts >= 0
        for when, part in zip(shifts[present], parts[k][present], strict=True):
            events.append((float(when), partial(broker.deliver, site, speed * part)))
        if leave[k]:
            events.append((float(leaves[k]), partial(broker.withdraw, site)))
            events.append((float(back), partial(broker.register, site, speed)))
    return events
