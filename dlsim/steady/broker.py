"""A broker that serves a virtual organisation with steady-state schedules (paper S, section 7).

Sites register and withdraw their resources, users submit divisible applications, and links change.
The broker solves the steady state again after each such event, when an application is done, and at
the end of a period in which an estimate changed. Its estimates of the sites' speeds start at the
declared ones and are corrected by the observed ones.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from dlsim import validate
from dlsim.errors import InputError
from dlsim.rounding import add_in_order
from dlsim.steady.graphs import routes_from_links
from dlsim.steady.lp_rows import most_work
from dlsim.steady.model import Floats, Platform, Reading, check_names
from dlsim.steady.relaxation import bound
from dlsim.steady.result import Allocation
from dlsim.steady.routes import LINK_NUMBERS, Limits, check_link_columns, to_list
from dlsim.steady.solve import AnyMethod, find_method, solve
from dlsim.validate import Seed, instance, number, one_of, one_of_many

#: Origin, priority, work and data of an application.
ApplicationFields = tuple[int, float | Floats, float, float]
#: An application is done if no more than this part of its load is left; an estimate that differs
#: from the observed rate by no more than this part of the declared rate is set to the observed one.
DONE_TOLERANCE = 1e-9
#: Columns of the tables that a broker leaves; all but those of `_TEXTS` hold numbers.
_COLUMNS = {
    "applications": "name origin priority load done arrival completion response state".split(),
    "schedules": "time reason served waiting objective ratio connections".split(),
    "rates": "start end application planned delivered".split(),
    "sites": "time site declared real estimate".split(),
    "links": "time link bandwidth max_connect".split(),
}
_TEXTS = {"name", "origin", "state", "reason", "application", "site", "link"}
#: No estimate falls below this part of the declared speed, so that a site that recovers gets work
#: and is observed.
LEAST_ESTIMATE_PART = 0.01


@dataclass(frozen=True, eq=False)
class Network:
    """The sites of a virtual organisation and the network between them (section 7).

    Speeds and applications are not part of it: `platform` adds those of a moment.

    Parameters
    ----------
    sites : sequence of str
        Names.
    gateway, links, routes, limits
        As in `Platform`, a cluster for each site. Without routes (None) they are those of
        fewest links between the sites' routers, which the links' columns start and end name.
    router : sequence, optional
        Of each site; without routes the sites' names by default.
    failed_links : collection
        Links that carry nothing now: a route over one cannot be used, and shortest routes
        lead over the others.
    ignore : collection of str
        Further columns of `links`, which are dropped.

    Raises
    ------
    InputError
        For a site named twice, a column that is not known, or what is no platform.
    """

    sites: Sequence[str]
    gateway: Any
    links: pd.DataFrame
    routes: Mapping[tuple[int, int], Sequence[Any]] | None = None
    limits: Limits = field(default_factory=Limits)
    router: Any = None
    failed_links: frozenset[Any] = frozenset()
    _usable: Any = field(init=False, repr=False)
    ignore: InitVar[Collection[str]] = ()

    def __post_init__(self, ignore: Collection[str]) -> None:
        """Check the fields, copy them, and round the links' connections down once."""
        sites = check_names("sites", self.sites) or []
        known = links = check_link_columns(self.links, ignore)
        for link in to_list("failed_links", self.failed_links):
            one_of_many("link", link, known.index)
        router = None if self.router is None else tuple(to_list("router", self.router))
        routes, failed_links = self.routes, frozenset(self.failed_links)
        if isinstance(routes, Mapping):
            routes = {pair: tuple(to_list(f"route {pair}", way)) for pair, way in routes.items()}
        vars(self).update(sites=sites, router=router, routes=routes, failed_links=failed_links)
        if routes is None:
            links, routes = routes_from_links(
                links, sites if router is None else router, failed_links
            )
        elif failed_links and isinstance(routes, Mapping):  # else refused below
            links = links.drop(index=list(failed_links))
            routes = {pair: way for pair, way in routes.items() if failed_links.isdisjoint(way)}
        vars(self).update(_usable=(links, routes))
        there = self.platform(np.ones(len(self.sites)), [(0, 1.0, 1.0, 1.0)])
        numbers = list(LINK_NUMBERS)
        rounded = there.links[numbers].reindex(known.index).fillna(known[numbers])
        vars(self).update(
            _usable=(there.links, there.routes),
            gateway=there.gateway,
            links=known.assign(**rounded),
        )

    @classmethod
    def from_platform(cls, platform: Platform) -> Self:
        """Return the network of a platform; sites without names are called site 0, site 1, ..."""
        instance("platform", platform, Platform)
        names = platform.site_names or [f"site {k}" for k in range(platform.clusters)]
        return cls(names, platform.gateway, platform.links, platform.routes, platform.limits)

    def platform(
        self,
        speed: Floats,
        applications: Sequence[ApplicationFields],
        names: Sequence[str] | None = None,
    ) -> Platform:
        """Return the platform of a moment, on the links that have not failed."""
        links, routes = self._usable
        origin, priority, work, data = (list(part) for part in zip(*applications, strict=True))
        if any(map(np.ndim, priority)):
            priority = [np.broadcast_to(pi, len(self.sites)) for pi in priority]
        return Platform(
            speed,
            self.gateway,
            links,
            routes,
            priority=priority,
            work=work,
            data=data,
            origin=origin,
            limits=self.limits,
            router=self.router,
            site_names=self.sites,
            application_names=names,
        )

    def with_link(self, link: Any, **numbers: Any) -> Self:
        """Return the network with other numbers of a link."""
        is_this = self.links.index == link
        columns = {name: self.links[name].mask(is_this, value) for name, value in numbers.items()}
        return replace(self, links=self.links.assign(**columns))


class _SpeedEstimates:
    """Declared, real and estimated speeds of all sites."""

    def __init__(self, sites: int) -> None:
        self.declared, self.estimate, self.real = np.zeros((3, sites))
        self.active: Any = np.zeros(sites, dtype=bool)
        # since the period began: the active time, and the integral of the real speed over it
        self.active_time, self.delivered = np.zeros((2, sites))

    def declare(self, site: int, speed: float) -> None:
        """Set declared, real and estimated speed, and forget the observations."""
        for speeds in (self.declared, self.estimate, self.real):
            speeds[site] = speed
        self.active_time[site] = self.delivered[site] = 0.0
        self.active[site] = False

    def correct_towards(self, observed: Floats, trust: float) -> Floats:
        """Return the estimates after a period with these observed speeds."""
        if not trust:
            return self.estimate
        new = self.estimate + trust * (observed - self.estimate)
        new = np.where(abs(new - observed) <= DONE_TOLERANCE * self.declared, observed, new)
        return np.maximum(new, LEAST_ESTIMATE_PART * self.declared)

    def mean(self) -> Floats:
        """Return the mean speeds observed since the period began, the real ones where inactive."""
        return np.divide(
            self.delivered, self.active_time, out=self.real.copy(), where=self.active_time > 0
        )

    def is_settled(self, trust: float) -> bool:
        """Return whether no estimate would change at the end of this period and of later ones."""
        new = (self.correct_towards(observed, trust) for observed in (self.real, self.mean()))
        return all((one == self.estimate)[self.active].all() for one in new)

    def observe(self, time: float) -> None:
        """Add an interval to the observations of the period."""
        self.active_time += self.active * time
        self.delivered += self.active * time * self.real

    def correct(self, trust: float) -> list[int]:
        """End a period: correct the estimates; return the numbers of those that change."""
        new = np.where(
            self.active_time > 0, self.correct_towards(self.mean(), trust), self.estimate
        )
        changed = np.flatnonzero(new != self.estimate).tolist()
        self.estimate = new
        self.forget()
        return changed

    def forget(self) -> None:
        """Begin a period without observations."""
        self.active_time, self.delivered = np.zeros((2, len(self.declared)))


@dataclass
class _Application:
    name: str
    origin: int
    load: float
    priority: float | dict[str, float]
    work: float
    data: float
    arrival: float
    done: float = 0.0
    completion: float = math.nan
    cancelled: bool = False


def _make_table(name: str, rows: Sequence[tuple[object, ...]]) -> pd.DataFrame:
    """Return a table of a broker, whose columns of numbers hold floats where it has no row."""
    table = pd.DataFrame(rows, columns=_COLUMNS[name])
    return table if rows else table.astype(dict.fromkeys(set(table) - _TEXTS, float))


def _log_table(name: str, doc: str) -> Any:
    return property(lambda broker: _make_table(name, broker._log[name]), doc=doc)


class Broker:
    """A broker, and the sites, links and applications of its organisation.

    `advance` simulates until a given time; each of the other methods but `summary` is an event at
    the present time. These return the broker, so that calls can be chained.

    Parameters
    ----------
    network : Network
        Sites, links, routes and policies.
    method : str, Method or callable
        How each schedule is found; any method of `dlsim.steady.solve` with whole
        connections. The paper suggests G, which raises the least payoff and leaves other
        resources idle; with ``+fair`` the other applications use them.
    reading : Reading, optional
        As in `dlsim.steady.solve`.
    period : float
        Time T_p of a period of the schedules, and between corrections of the estimates.
    trust : float
        Weight of a period's observed speed against the estimate so far, 0 to 1; the
        estimate begins with what is declared.
    seed : int or SeedSequence
        As in `dlsim.steady.solve`; every schedule has random numbers of its own.

    Attributes
    ----------
    now : float
        The present time.

    Notes
    -----
    Work flows at constant rates between two schedules; the first and last period of an application,
    which the paper calls negligible, are not modelled. On a site slower than estimated all
    applications get the same part of their planned rates. The broker observes the speeds of active
    sites. An application that no resource can serve waits without delaying the others.
    If a heuristic assigns nothing to an application (LPR opens no connection where the relaxed
    program uses less than one), the next event considers it again.

    Examples
    --------
    >>> links = pd.DataFrame(columns=["bandwidth", "max_connect"], dtype=float)
    >>> broker = Broker(Network(["north"], [1.0], links, {}), "G").register("north", speed=5.0)
    >>> broker.submit("x", origin="north", load=20.0).advance().now
    4.0
    """

    def __init__(
        self,
        network: Network,
        method: AnyMethod,
        reading: Reading | None = None,
        *,
        period: float = 1.0,
        trust: float = 0.5,
        seed: Seed = 0,
    ) -> None:
        self.network, self.method, self.seed = network, find_method(method), seed
        self.reading = validate.or_default("reading", reading, Reading)
        instance("network", network, Network)
        self.period = number("period", period, above=True)
        self.trust = number("trust", trust, high=1, rule="a number from 0 to 1")
        validate.seed_sequence(seed)
        if self.method.is_relaxed:
            what = f"use another method than {self.method.base_name}"
            raise InputError(f"a broker needs whole connections; {what}")
        self.now = 0.0
        self._allocation: Allocation | None = None
        self._speed = _SpeedEstimates(len(network.sites))
        self._largest_speed = np.zeros(len(network.sites))
        self._submitted: dict[str, _Application] = {}
        self._running: list[_Application] = []
        self._reasons: list[str] = []
        self._log = defaultdict[str, list[tuple[object, ...]]](list)

    def register(self, site: str, speed: float) -> Self:
        """Declare a site's speed, which is also its real speed until `deliver` changes that."""
        k = self._site_number(site)
        self._speed.declare(k, number("speed", speed, above=True))
        self._largest_speed[k] = max(self._largest_speed[k], speed)
        return self._record_change("register", site=k)

    def withdraw(self, site: str) -> Self:
        """Withdraw a site's speed; the data that it holds can still be sent to other sites."""
        k = self._site_number(site)
        if not self._speed.declared[k]:
            what = f"cannot withdraw: it is not registered at {self.now:g}"
            raise InputError(f"site {site!r} {what}; register it first")
        self._speed.declare(k, 0.0)
        return self._record_change("withdraw", site=k)

    def deliver(self, site: str, speed: float) -> Self:
        """Set a site's real speed, which the broker learns by observation."""
        k = self._site_number(site)
        if not self._speed.declared[k]:
            raise InputError(
                f"site {site!r} delivers nothing: it is not registered; register it first"
            )
        self._speed.real[k] = number("speed", speed)
        return self._record_change(site=k)

    def change_link(
        self, link: Any, bandwidth: float | None = None, connections: float | None = None
    ) -> Self:
        """Declare a link's bandwidth per connection, its largest number of connections, or both."""
        self._check_link(link)
        declared = {"bandwidth": bandwidth, "max_connect": connections}
        numbers = {name: value for name, value in declared.items() if value is not None}
        if not numbers:
            raise InputError("change_link needs bandwidth or connections, or both; got neither")
        self.network = self.network.with_link(link, **numbers)
        return self._record_link_change("change_link", link)

    def lose_link(self, link: Any) -> Self:
        """Fail a link: no route may use it until `restore_link`."""
        return self._set_failed("lose_link", link, True)

    def restore_link(self, link: Any) -> Self:
        """Restore a failed link."""
        return self._set_failed("restore_link", link, False)

    def _set_failed(self, reason: str, link: Any, is_lost: bool) -> Self:
        self._check_link(link)
        if (link in self.network.failed_links) == is_lost:
            rule, first = ("lost already", "restore") if is_lost else ("not lost", "lose")
            raise InputError(f"link {link!r} is {rule} at {self.now:g}; {first} it first")
        self.network = replace(self.network, failed_links=self.network.failed_links ^ {link})
        return self._record_link_change(reason, link)

    def submit(
        self,
        name: str,
        origin: str,
        load: float,
        priority: float | Mapping[str, float] = 1.0,
        work: float = 1.0,
        data: float = 1.0,
    ) -> Self:
        r"""Submit an application that `origin` holds, under a name not used before.

        Parameters
        ----------
        load : float
            Load units, above 0.
        priority : float or mapping of str to float
            Above 0; or by site (the paper's :math:`\pi_{k,l}`), each at least 0 and one above 0.
            Sites that are not named do no work of the application.
        work, data : float
            Work per load unit, above 0; data per load unit, at least 0.
        """
        home = self._site_number(origin)
        if not isinstance(name, str):
            raise InputError(f"an application must be named by text, got {name!r}")
        if name in self._submitted:
            raise InputError(f"application {name!r} was submitted before; choose another name")
        pi = self._check_priority(priority)
        load, work = (number(n, one, above=True) for n, one in (("load", load), ("work", work)))
        size = number("data", data)
        self._submitted[name] = _Application(name, home, load, pi, work, size, self.now)
        return self._record_change("arrival")

    def cancel(self, name: str) -> Self:
        """Cancel an application that is not done; the work done so far stays counted."""
        self._find_unfinished(name).cancelled = True
        return self._record_change("cancel")

    def set_priority(self, name: str, priority: float | Mapping[str, float]) -> Self:
        """Give an application another priority, as in `submit`."""
        self._find_unfinished(name).priority = self._check_priority(priority)
        return self._record_change("set_priority")

    def _check_priority(self, priority: Any) -> float | dict[str, float]:
        if not isinstance(priority, Mapping):
            return float(number("priority", priority, above=True))
        for site in priority:
            self._site_number(site)
        pi = {site: float(number("priority", one)) for site, one in priority.items()}
        if not any(pi.values()):
            raise InputError(f"priority must be above 0 at one site or more, got {priority!r}")
        return pi

    def _find_unfinished(self, name: str) -> _Application:
        app = self._submitted[one_of_many("application", name, self._submitted)]
        if app.cancelled or not math.isnan(app.completion):
            why = "was cancelled" if app.cancelled else f"was done at {app.completion:g}"
            raise InputError(f"application {name!r} {why}; name one that still runs")
        return app

    def _site_number(self, name: str) -> int:
        sites = list(self.network.sites)
        return sites.index(one_of("site", name, sites))

    def _check_link(self, label: Any) -> None:
        one_of_many("link", label, self.network.links.index.tolist())

    def _record_change(self, reason: str = "", site: int | None = None) -> Self:
        """Log a change of a site if any; a change with a reason requires a new schedule."""
        if site is not None:
            speeds = self._speed.declared, self._speed.real, self._speed.estimate
            row = (speed[site].item() for speed in speeds)
            self._log["sites"].append((self.now, self.network.sites[site], *row))
        self._reasons += [reason] * bool(reason)
        return self

    def _record_link_change(self, reason: str, label: Any) -> Self:
        links = self.network.links
        numbers = links[["bandwidth", "max_connect"]].to_numpy()
        bandwidth, most = numbers[links.index.tolist().index(label)].tolist()
        most = 0.0 if label in self.network.failed_links else most
        self._log["links"].append((self.now, label, bandwidth, most))
        return self._record_change(reason)

    def advance(self, until: float = math.inf) -> Self:
        """Simulate until a time, by default until nothing changes any more."""
        rule = f"at least the present time {self.now:g}"
        until = number("until", until, self.now, math.inf, rule=rule)
        while self.now < until:
            self._update_schedule()
            rates = self._delivered_rates()
            pairs = zip(self._running, rates.sum(axis=1).tolist(), strict=True)
            left = [(app.load - app.done) / rate for app, rate in pairs if rate > 0]
            then = min(until, self._next_tick(), self.now + min(left, default=math.inf))
            if math.isinf(then):
                break
            self._pass_time(then, rates)
        return self

    def _update_schedule(self) -> None:
        """Solve the steady state of the present platform, if that has changed."""
        if not self._reasons:
            return
        active = [
            a for a in self._submitted.values() if math.isnan(a.completion) and not a.cancelled
        ]
        servable, self._allocation = list[_Application](), None
        if active and self._speed.estimate.any():
            can_run = most_work(self._platform(active)).max(axis=1) > 0
            servable = [app for app, can in zip(active, can_run.tolist(), strict=True) if can]
        if servable:
            platform = self._platform(servable)
            seed = validate.child_seed(self.seed, len(self._log["schedules"]))
            self._allocation = solve(platform, self.method, self.reading, seed=seed)
        self._running, found = servable, self._allocation
        reason = ", ".join(dict.fromkeys(self._reasons))
        measures = (math.nan, math.nan, 0)
        if found:
            measures = (found.objective, found.ratio, int(np.sum(found.connections)))
        waiting = len(active) - len(servable)
        self._log["schedules"].append((self.now, reason, len(servable), waiting, *measures))
        self._reasons = []
        self._speed.active = (self._planned_rates() > 0).any(axis=0)

    def _platform(self, apps: list[_Application]) -> Platform:
        """Return the platform of some applications at the estimated speeds."""
        there = [(app.origin, self._priority_weights(app), app.work, app.data) for app in apps]
        return self.network.platform(self._speed.estimate, there, [app.name for app in apps])

    def _priority_weights(self, app: _Application) -> float | Floats:
        if isinstance(app.priority, float):
            return app.priority
        return np.array([app.priority.get(site, 0.0) for site in self.network.sites])

    def _delivered_rates(self) -> Floats:
        """Return the real rate of each running application on each site, shape (A, K)."""
        planned = self._planned_rates()
        load = np.array([app.work for app in self._running]) @ planned
        real = self._speed.real
        return planned * np.divide(real, load, out=np.ones(len(load)), where=load > real)

    def _next_tick(self) -> float:
        """Return the next end of a period at which an estimate would change."""
        if self._speed.is_settled(self.trust):
            return math.inf
        tick = (math.floor(self.now / self.period + DONE_TOLERANCE) + 1) * self.period
        later = math.nextafter(self.now, math.inf)  # a float later than now
        return tick if tick > self.now else max(self.now + self.period, later)

    def _planned_rates(self) -> Floats:
        """Return the planned rate of each running application on each site, shape (A, K)."""
        if self._allocation is None:
            return np.zeros((0, len(self.network.sites)))
        return self._allocation.work

    def _pass_time(self, then: float, rates: Floats) -> None:
        """Move to a time until which no rate changes, and record the events at that time."""
        tick, lasted = self._next_tick(), then - self.now
        begun = math.floor(then / self.period + DONE_TOLERANCE) * self.period
        if then < tick and begun > self.now:  # a period passed that changed nothing
            self._speed.forget()
        since = max(then - begun, 0.0) if then < tick else lasted
        self._speed.observe(min(lasted, since))
        each = rates.sum(axis=1).tolist(), self._planned_rates().sum(axis=1)
        for app, rate, planned in zip(self._running, *each, strict=True):
            # compare times, not loads: the load left may be below the rounding error of the load
            is_done = rate > 0 and self.now + (app.load - app.done) / rate <= then
            self._log["rates"].append((self.now, then, app.name, planned, rate))
            app.done += rate * lasted
            if math.isnan(app.completion) and (
                is_done or app.load - app.done <= DONE_TOLERANCE * app.load
            ):
                app.done, app.completion = app.load, then
                self._reasons.append("completion")
        self.now = then
        if then >= tick:
            for k in self._speed.correct(self.trust):
                self._record_change("period", site=k)

    @property
    def allocation(self) -> Allocation | None:
        """Return the present schedule, None without one; its platform names the applications."""
        self._update_schedule()
        return self._allocation

    @property
    def applications(self) -> pd.DataFrame:
        """Return one row per submitted application, with the least priority above 0 if several."""
        rows = []
        for app in self._submitted.values():
            origin, weights = self.network.sites[app.origin], self._priority_weights(app)
            priority = float(np.min(weights, initial=math.inf, where=np.greater(weights, 0)))
            times = app.arrival, app.completion, app.completion - app.arrival
            state = self._application_state(app)
            rows.append((app.name, origin, priority, app.load, app.done, *times, state))
        return _make_table("applications", rows).set_index("name")

    def _application_state(self, app: _Application) -> str:
        if app.cancelled:
            return "cancelled"
        served = "served" if app in self._running else "waiting"
        return served if math.isnan(app.completion) else "done"

    @property
    def schedules(self) -> pd.DataFrame:
        """Return one row per schedule: time, reason, applications, objective, ratio, ..."""
        self._update_schedule()
        return _make_table("schedules", self._log["schedules"])

    rates = _log_table("rates", "Planned and real rate of each application in each interval.")
    sites = _log_table("sites", "Each change of a site: declared, real and estimated speed.")
    links = _log_table(
        "links", "Each change of a link: bandwidth, and max_connect (0 if it failed)."
    )

    def _slowdowns(self) -> list[float]:
        """Return the slowdown of each application that is done (see `summary`)."""
        network, rates = replace(self.network, failed_links=frozenset()), dict[Any, float]()
        slowdowns = []
        for app in self._submitted.values():
            if math.isnan(app.completion):
                continue
            weights = np.broadcast_to(self._priority_weights(app), len(network.sites))
            may_run = (weights > 0).astype(float)
            kind = (app.origin, app.work, app.data, *may_run.tolist())
            if kind not in rates:
                alone = (app.origin, may_run, app.work, app.data)
                rates[kind] = bound(network.platform(self._largest_speed, [alone]))
            slowdowns.append((app.completion - app.arrival) * rates[kind] / app.load)
        return slowdowns

    def summary(self) -> dict[str, float]:
        """Return counts, and means over applications or time.

        The response of an application is the time from its submission to its completion. Its
        slowdown is the response over the time that the application would take alone, at the bound
        of the relaxed program: every site has the largest speed that it ever declared, every link
        its present declaration, and no link has failed. The mean ratio of the schedules to their
        bounds is weighted by time.
        """
        apps, plans = self.applications, self.schedules
        lasted = np.diff([*plans["time"], self.now])
        known = plans["ratio"].notna().to_numpy() & (lasted > 0)
        weight = lasted[known]
        ratio = np.average(plans["ratio"][known], weights=weight) if len(weight) else math.nan
        slowdowns = self._slowdowns()
        found = {
            "submitted": len(apps),
            "completed": apps["completion"].notna().sum(),
            "response": apps["response"].mean(),
            "slowdown": add_in_order(slowdowns) / len(slowdowns) if slowdowns else math.nan,
            "ratio": ratio,
            "schedules": len(plans),
        }
        return {name: float(value) for name, value in found.items()}
