"""A broker that serves a virtual organisation with steady-state schedules (paper S, section 7).

Sites register and withdraw their resources, users submit divisible applications, and the
broker solves the steady state anew in every period and whenever an application comes or
ends. What it knows of a site is the speed declared, corrected by the speeds observed. `day`
draws such an organisation's day at random.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from dlsim import given
from dlsim.errors import InputError
from dlsim.given import Seed, child, instance, number, option, positive, streams, usual, whole
from dlsim.steady.engine import solve, split_method
from dlsim.steady.model import Floats, Network, Platform, Reading
from dlsim.steady.outcome import Allocation
from dlsim.steady.rows import most_work

#: An application with this part of its load left is done; a nearer estimate is exact.
DONE = 1e-9
#: Priorities that users of a random day may have, equally likely.
PRIORITIES = (1.0, 2.0, 4.0)
#: Hours between changes of what a site delivers, and the least part of what it declares.
SHIFT, SLOWEST = 2.0, 0.5
#: Hours that a site may be away, once a day with probability one half.
AWAY = (1.0, 4.0)
_PURPOSES = ("arrivals", "sizes", "choices", "speeds", "absences")
#: Columns of the tables that a broker leaves.
_COLUMNS = {
    "schedules": ("time", "reason", "served", "waiting", "objective", "ratio", "connections"),
    "rates": ("start", "end", "application", "planned", "delivered"),
    "sites": ("time", "site", "declared", "real", "estimate"),
}
#: No estimate falls below this part of the speed declared, so that a site that recovers is
#: given work and noticed.
LEAST = 0.01


@dataclass
class _Site:
    declared: float = 0.0
    estimate: float = 0.0
    real: float = 0.0
    busy: float = 0.0  # time at work since the last period began
    seen: float = 0.0  # speed delivered, times that time

    def corrected(self, observed: float, trust: float) -> float:
        """Return the estimate after a period with this speed."""
        new = self.estimate + trust * (observed - self.estimate)
        new = observed if abs(new - observed) <= DONE * self.declared else new
        return max(new, LEAST * self.declared) if trust else self.estimate

    def is_settled(self, trust: float) -> bool:
        """Return whether going on like this would leave the estimate as it is."""
        speeds = [self.real, self.seen / self.busy if self.busy else self.real]
        return all(self.corrected(speed, trust) == self.estimate for speed in speeds)


@dataclass
class _Application:
    name: str
    origin: int
    load: float
    priority: float | Floats
    work: float
    data: float
    arrival: float
    done: float = 0.0
    completion: float = math.nan


class Broker:
    """A broker and the world it works in, moved through time by `advance`.

    Parameters
    ----------
    network : Network
        Sites, links, routes and policies.
    method : str
        How each schedule is found; any method of `dlsim.steady.solve` with whole
        connections. The paper suggests G.
    period : float
        Time between corrections of the estimates.
    trust : float
        Weight of a period's observed speed against the estimate so far, 0 to 1; the
        estimate begins with the speed declared.
    seed, reading
        As in `dlsim.steady.solve`; every schedule draws anew.

    Attributes
    ----------
    now : float
        Time.

    Notes
    -----
    Work flows at constant rates between two schedules; the first and last period of an
    application, which the paper calls negligible, are not modelled. A site slower than
    estimated gives all its applications the same part of what was planned. An
    application that no resource can serve waits, and does not hold the others back. One
    that a heuristic gives nothing (LPR opens no connection where the relaxed program uses
    less than one) gets its next chance with the next change.
    """

    def __init__(
        self, network: Network, method: str = "G", period: float = 1.0, trust: float = 0.5,
        seed: Seed = 0, reading: Reading | None = None,
    ) -> None:  # fmt: skip
        self.network, self.method, self.seed = network, method, seed
        self.reading = usual("reading", reading, Reading)
        instance("network", network, Network)
        self.period = number("period", period, above=True)
        self.trust = number("trust", trust, high=1, rule="a number from 0 to 1")
        split_method(method)
        given.sequence(seed)
        if method.partition("+")[0] == "LP":
            raise InputError("a broker needs whole connections; use another method than LP")
        self.now = 0.0
        self._allocation: Allocation | None = None
        self._sites = {name: _Site() for name in network.sites}
        self._all: dict[str, _Application] = {}
        self._running: list[_Application] = []
        self._reasons: list[str] = []
        self._log: dict[str, list[tuple[object, ...]]] = {name: [] for name in _COLUMNS}

    def register(self, site: str, speed: float) -> None:
        """Declare a site's speed, which it also delivers until `deliver` says otherwise."""
        self._site(site)
        speed = number("speed", speed, above=True)
        self._sites[site] = _Site(speed, speed, speed)
        self._reasons.append("register")
        self._record_site(site)

    def withdraw(self, site: str) -> None:
        """Take a site's resources away; what it holds can still be sent elsewhere."""
        here = self._site(site)
        if not here.declared:
            raise InputError(f"site {site!r} cannot withdraw: it is not registered at {self.now:g}")
        self._sites[site] = _Site()
        self._reasons.append("withdraw")
        self._record_site(site)

    def deliver(self, site: str, speed: float) -> None:
        """Set what a site really delivers; the broker notices by observing it."""
        here = self._site(site)
        if not here.declared:
            raise InputError(f"site {site!r} delivers nothing: it is not registered")
        here.real = number("speed", speed)
        self._record_site(site)

    def submit(
        self, name: str, origin: str, load: float, priority: float | Mapping[str, float] = 1.0,
        work: float = 1.0, data: float = 1.0,
    ) -> None:  # fmt: skip
        r"""Submit an application that `origin` holds, under a name not used before.

        Parameters
        ----------
        load : float
            Load units, above 0.
        priority : float or mapping of str to float
            Above 0; or that of each site where its work counts (the paper's
            :math:`\pi_{k,l}`), at least 0 and one above 0. At a site that is not named
            none of it is done.
        work, data : float
            Work per load unit, above 0; data per load unit, at least 0.
        """
        self._site(origin)
        if not isinstance(name, str):
            raise InputError(f"an application must be named by text, got {name!r}")
        if name in self._all:
            raise InputError(f"application {name!r} was submitted before; choose another name")
        pi: float | Floats
        if isinstance(priority, Mapping):
            for site in priority:
                self._site(site)
            pi = np.array([number("priority", priority.get(site, 0.0)) for site in self._sites])
            if not pi.any():
                raise InputError(f"priority must be above 0 at a site at least, got {priority!r}")
        else:
            pi = number("priority", priority, above=True)
        values = {what: number(what, v, above=True) for what, v in (("load", load), ("work", work))}
        home, size = list(self.network.sites).index(origin), number("data", data)
        app = _Application(name, home, **values, priority=pi, data=size, arrival=self.now)
        self._all[name] = app
        self._reasons.append("arrival")

    def _site(self, name: str) -> _Site:
        return self._sites[option("site", name, self._sites)]

    def _record_site(self, name: str) -> None:
        site = self._sites[name]
        self._log["sites"].append((self.now, name, site.declared, site.real, site.estimate))

    def advance(self, until: float = math.inf) -> None:
        """Let time pass, by default until nothing more can happen."""
        rule = f"at least the present time {self.now:g}"
        until = number("until", until, self.now, math.inf, rule=rule)
        while self.now < until:
            self._settle()
            rates = self._rates()
            pairs = zip(self._running, rates.sum(axis=1).tolist(), strict=True)
            left = [(app.load - app.done) / rate for app, rate in pairs if rate > 0]
            then = min(until, self._next_tick(), self.now + min(left, default=math.inf))
            if math.isinf(then):
                return
            self._pass(then, rates)

    def _settle(self) -> None:
        """Solve the steady state of what is there now, if that has changed."""
        if not self._reasons:
            return
        active = [app for app in self._all.values() if math.isnan(app.completion)]
        speed = np.array([site.estimate for site in self._sites.values()])
        able, self._allocation = list[_Application](), None
        if active and speed.any():  # whom some resource could serve
            can = most_work(self._platform(active, speed)).max(axis=1) > 0
            able = [app for app, does in zip(active, can.tolist(), strict=True) if does]
        if able:
            p = self._platform(able, speed)
            seed = child(self.seed, len(self._log["schedules"]))
            self._allocation = solve(p, self.method, seed, self.reading)
        self._running, found = able, self._allocation
        reason = ", ".join(dict.fromkeys(self._reasons))
        worth = (math.nan, math.nan, 0)
        if found:
            worth = (found.objective, found.ratio, int(np.sum(found.connections)))
        waiting = len(active) - len(able)
        self._log["schedules"].append((self.now, reason, len(able), waiting, *worth))
        self._reasons = []

    def _platform(self, apps: list[_Application], speed: Floats) -> Platform:
        there = [(app.origin, app.priority, app.work, app.data) for app in apps]
        return self.network.platform(speed, there)

    def _rates(self) -> Floats:
        """Return what each running application gets of each site, shape (A, K)."""
        planned = self._planned()
        load = np.array([app.work for app in self._running]) @ planned
        real = np.array([site.real for site in self._sites.values()])
        return planned * np.divide(real, load, out=np.ones(len(load)), where=load > real)

    def _next_tick(self) -> float:
        """Return the next end of a period at which an estimate would change."""
        at_work = zip(self._sites.values(), self._busy(), strict=True)
        if all(site.is_settled(self.trust) for site, is_busy in at_work if is_busy):
            return math.inf
        tick = (math.floor(self.now / self.period + DONE) + 1) * self.period
        later = math.nextafter(self.now, math.inf)  # what floats can tell from now
        return tick if tick > self.now else max(self.now + self.period, later)

    def _planned(self) -> Floats:
        """Return the work in force of each running application on each site, shape (A, K)."""
        if self._allocation is None:
            return np.zeros((0, len(self._sites)))
        return np.asarray(self._allocation.work)

    def _busy(self) -> list[bool]:
        return np.asarray((self._planned() > 0).any(axis=0)).tolist()

    def _pass(self, then: float, rates: Floats) -> None:
        """Move to a time until which nothing changes, and see what has changed then."""
        tick, lasted = self._next_tick(), then - self.now
        begun = math.floor(then / self.period + DONE) * self.period
        for site, at_work in zip(self._sites.values(), self._busy(), strict=True):
            if then < tick and begun > self.now:  # a period passed that changed nothing
                site.busy = site.seen = 0.0
            worked = at_work * min(lasted, max(then - begun, 0.0) if then < tick else lasted)
            site.busy, site.seen = site.busy + worked, site.seen + worked * site.real
        each = rates.sum(axis=1).tolist(), self._planned().sum(axis=1)
        for app, rate, planned in zip(self._running, *each, strict=True):
            # the instant of completion counts: what is left may take less than one rounding
            is_done = rate > 0 and self.now + (app.load - app.done) / rate <= then
            self._log["rates"].append((self.now, then, app.name, planned, rate))
            app.done += rate * lasted
            if math.isnan(app.completion) and (is_done or app.load - app.done <= DONE * app.load):
                app.done, app.completion = app.load, then
                self._reasons.append("completion")
        self.now = then
        for name, site in self._sites.items() if then >= tick else ():
            if not site.busy:
                continue
            new = site.corrected(site.seen / site.busy, self.trust)
            if new != site.estimate:
                site.estimate = new
                self._record_site(name)
                self._reasons.append("period")
            site.busy = site.seen = 0.0

    @property
    def allocation(self) -> Allocation | None:
        """Return the schedule in force, None without; `served` names its applications."""
        self._settle()
        return self._allocation

    @property
    def served(self) -> list[str]:
        """Return the applications of the schedule in force, in its order."""
        self._settle()
        return [app.name for app in self._running]

    @property
    def applications(self) -> pd.DataFrame:
        """Return the applications submitted; of several priorities, the least above 0."""
        names = ("name", "origin", "priority", "load", "done", "arrival", "completion")
        rows = [{name: getattr(app, name) for name in names} for app in self._all.values()]
        frame = pd.DataFrame(rows, columns=names).set_index("name")
        each = (np.atleast_1d(app.priority) for app in self._all.values())
        frame["priority"] = [float(pi[pi > 0].min()) for pi in each]
        frame["origin"] = [self.network.sites[k] for k in frame["origin"]]
        return frame.assign(response=frame["completion"] - frame["arrival"])

    @property
    def schedules(self) -> pd.DataFrame:
        """Return every schedule: when, why, for how many, objective, ratio, connections."""
        self._settle()
        return pd.DataFrame(self._log["schedules"], columns=_COLUMNS["schedules"])

    @property
    def rates(self) -> pd.DataFrame:
        """Return what each application was planned to get and got, stretch by stretch."""
        return pd.DataFrame(self._log["rates"], columns=_COLUMNS["rates"])

    @property
    def sites(self) -> pd.DataFrame:
        """Return each change of a site: speed declared, delivered and estimated."""
        return pd.DataFrame(self._log["sites"], columns=_COLUMNS["sites"])

    def summary(self) -> dict[str, float]:
        """Return the numbers that sum a run up.

        Slowdown is response time times priority over load; the ratio of the schedules to their
        bounds is weighted by time.
        """
        apps, plans = self.applications, self.schedules
        lasted = np.diff([*plans["time"], self.now])
        known = plans["ratio"].notna().to_numpy() & (lasted > 0)
        weight = lasted[known]
        ratio = np.average(plans["ratio"][known], weights=weight) if len(weight) else math.nan
        slowdown = apps["response"] * apps["priority"] / apps["load"]
        found = {
            "submitted": len(apps), "completed": apps["completion"].notna().sum(),
            "response": apps["response"].mean(), "slowdown": slowdown.mean(), "ratio": ratio,
            "schedules": len(plans),
        }  # fmt: skip
        return {name: float(value) for name, value in found.items()}


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
    events: list[tuple[float, Callable[[], None]]] = []

    times = np.sort(rng["arrivals"].uniform(0, hours, applications))
    # lognormal of mean 1 and deviation 1 of its logarithm
    sizes = np.exp(rng["sizes"].standard_normal(applications) - 0.5)
    kinds = rng["choices"].integers(p.applications, size=applications)
    priorities = rng["choices"].choice(PRIORITIES, applications)
    each = load * p.speed.sum() * hours / applications
    for i, (when, a) in enumerate(zip(times, kinds.tolist(), strict=True)):
        origin, units = f"site {p.origin[a]}", float(sizes[i] * each / p.work[a])
        numbers = units, float(priorities[i]), float(p.work[a]), float(p.data[a])
        events.append((float(when), partial(broker.submit, f"application {i}", origin, *numbers)))

    shifts = np.arange(0.0, hours, SHIFT)
    parts = rng["speeds"].uniform(SLOWEST, 1.0, (p.clusters, len(shifts)))
    away = rng["absences"].uniform(*AWAY, p.clusters)
    leaves = rng["absences"].uniform(0, np.maximum(hours - away, 0.0))
    leave = rng["absences"].random(p.clusters) < 0.5
    for k in map(int, np.flatnonzero(p.speed)):
        site, speed = f"site {k}", float(p.speed[k])
        broker.register(site, speed)
        back = leaves[k] + away[k] if leave[k] else 0.0
        present = (shifts < leaves[k]) | (shifts > back) if leave[k] else shifts >= 0
        for when, part in zip(shifts[present], parts[k][present], strict=True):
            events.append((float(when), partial(broker.deliver, site, speed * part)))
        if leave[k]:
            events.append((float(leaves[k]), partial(broker.withdraw, site)))
            events.append((float(back), partial(broker.register, site, speed)))

    for when, act in sorted(events, key=lambda event: event[0]):
        broker.advance(when)
        act()
    broker.advance()
    return broker
