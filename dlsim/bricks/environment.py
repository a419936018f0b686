"""The Grid computing environment of paper B: servers, clients, links, requests, other users.

Source: paper B (bricks), section 2 (Figures 1 and 2) and section 4.1 (Table 1).
"""

import functools
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from dlsim import validate
from dlsim.bricks.core.network import Stream, pack_arrivals
from dlsim.bricks.speeds import network_for
from dlsim.bricks.topology import TWO_LEVEL, Topology, from_paths, two_level
from dlsim.bricks.traces import MOST_VALUES, Seed, curves, numbers, refuse_end
from dlsim.bricks.workload import draw
from dlsim.compiled import clock_origin
from dlsim.errors import InputError
from dlsim.validate import MAX_COUNT, MAX_MAGNITUDE, Floats, column, number, positive, require_table

#: Columns of the tables, each with whether it may be negative.
COLUMNS: dict[str, dict[str, float]] = {
    "servers": {"domain": 0, "performance": 0},
    "clients": {"domain": 0},
    "requests": {"time": 0, "client": 0, "send": 0, "recv": 0, "work": 0}
    | {"deadline": -MAX_MAGNITUDE},
}  # fmt: skip


def _column(name: str, rows: pd.DataFrame, key: str, *ends: float, **how: Any) -> Any:
    """Return a column of a table as numbers of a range; a refusal names the row."""
    return column(f"{name}: {key}", rows[key], *ends, row="row", labels=rows.index, **how)


def _refuse_strangers(name: str, rows: pd.DataFrame, key: str, count: int, what: str) -> None:
    """Refuse a table that names what is not there, but for the first so many."""
    rule = f"a whole number below {count}, the number of {what}"
    _column(name, rows, key, 0, count - 1, is_whole=True, rule=rule)


def _table(name: str, given: Any) -> pd.DataFrame:
    """Return a copy of a table with checked columns of numbers."""
    found = require_table(name, given, list(COLUMNS[name]), empty=name != "servers").copy()
    for key, low in COLUMNS[name].items():
        above, is_whole = key == "performance", key in ("domain", "client")
        most = MAX_COUNT if is_whole else MAX_MAGNITUDE
        found[key] = _column(name, found, key, low, most, above=above, is_whole=is_whole)
    return found


def _lists(name: str, what: str, lists: Any) -> list[Floats]:
    if isinstance(lists, str) or not np.iterable(lists):
        raise InputError(f"{name} needs {what} as one list per queue; got {lists!r}")
    return [numbers(f"{name}: {what} of queue {k}", one) for k, one in enumerate(lists)]


def _stream(name: str, queues: int, times: Any, sizes: Any) -> Stream:
    """Pack arrivals, one sorted list per queue, and their sizes."""
    lists: list[Floats]
    if isinstance(times, Stream):  # of an environment of which this is a variant
        got = len(times.first) - 1
        if got == queues:
            return times
        lists = [times.times] * got if len(times.times) else []
    else:
        lists = _lists(name, "arrival times", () if times is None else times)
    lists = lists or [np.empty(0)] * queues
    if (got := len(lists)) != queues:
        raise InputError(f"{name} needs one list of arrival times per queue, {queues}; got {got}")
    for k, one in enumerate(lists):
        if one.ndim != 1:
            raise InputError(f"{name} needs a list of arrival times for queue {k}; got {one!r}")
        if (np.diff(one) < 0).any():
            raise InputError(f"{name} arrival times of queue {k} must not decrease; sort them")
    if np.isscalar(sizes):
        return pack_arrivals(lists, np.array([float(number(f"size of {name}", sizes))]))
    own = _lists(name, "sizes", sizes)
    if [one.shape for one in own] != [one.shape for one in lists]:
        raise InputError(f"{name} needs one finite size of at least 0 per arrival, in lists alike")
    return pack_arrivals(lists, np.concatenate([np.empty(0), *own]))


@dataclass(frozen=True, eq=False)
class Environment:
    """Everything that is simulated, but for the scheduling unit (paper B, Figure 1).

    Parameters
    ----------
    servers : DataFrame
        Columns domain and performance (Mops/s), one row per server.
    clients : DataFrame
        Column domain, one row per client.
    traces : array_like of float, shape (domains, 4, steps) or (links, steps)
        Throughput of the links in Mbit/s: LAN up, LAN down, WAN up, WAN down of every
        domain; or of the links of a general network, with `paths`. Of a table of measured
        values `dlsim.bricks.traces.from_frame` makes the latter.
    step : float
        Seconds per entry of a trace; the last entry is held for ever.
    requests : DataFrame
        Columns time (s), client (row of `clients`), send and recv (Mbit), work (Mops),
        deadline (absolute, s), sorted by time; index = request id.
    background : sequence of array_like, optional
        Arrival times of other users' jobs, one sorted list per server.
    background_work : float or sequence of array_like
        Their work in Mops: one for all, or one list per server.
    server_load : float
        External load that a monitor reports without looking: 0.1 in Table 1.
    load_traces : array_like of float, shape (servers, steps), optional
        External CPU load of the servers (the trace model of section 2.1), with the same
        `step`: a server then works at performance / (1 + load), and that load is what the
        monitor sees instead of `server_load`.
    paths : Topology or DataFrame, optional
        With traces of shape (links, steps): a `dlsim.bricks.topology.Topology`, or its
        table source, target (domains), hop, link.
    link_background : sequence of array_like, optional
        Arrival times of other users' data, one sorted list per link (the extraneous data
        model of section 2.1): each occupies its link for data / throughput, first come,
        first served. In a fluid network, and for the monitor, a link has what they leave:
        per step its throughput times its idle fraction, at least 1 %, until the trace or
        their arrivals end, whichever is later, and all of it from then on.
    link_data : float or sequence of array_like
        Their size in Mbit.
    packet : float
        Logical packet size in Mbit.
    horizon : float, optional
        When requests stop arriving, by default with the last one.

    Raises
    ------
    InputError
        Naming the table, the column and the row that cannot be used; also for no servers, and for a
        link that ends with throughput zero, over which a transfer might never end.
    """

    servers: pd.DataFrame
    clients: pd.DataFrame
    traces: Any
    step: float
    requests: pd.DataFrame
    background: Any = None
    background_work: Any = 50.0
    server_load: float = 0.0
    load_traces: Any = None
    paths: Topology | pd.DataFrame | None = None
    link_background: Any = None
    link_data: Any = 10.0
    packet: float = 10.0
    horizon: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is not an environment."""
        step, packet = positive(step=self.step, packet=self.packet)
        vars(self).update(step=step, packet=packet)
        vars(self)["server_load"] = float(number("server_load", self.server_load))
        for name in COLUMNS:
            vars(self)[name] = _table(name, getattr(self, name))
        vars(self)["traces"] = curves("traces", self.traces, (2, 3))
        servers, links = len(self.servers), len(self.rates)
        if self.load_traces is not None:
            loads = curves("load_traces", self.load_traces, (2,))
            if len(loads) != servers:
                raise InputError(f"load_traces needs a row per server, {servers}; got {len(loads)}")
            vars(self)["load_traces"] = loads
        jobs = _stream("background", servers, self.background, self.background_work)
        data = _stream("link_background", links, self.link_background, self.link_data)
        vars(self).update(background=jobs, link_background=data)
        last = float(data.times.max(initial=0.0))
        if last / self.step * links > MOST_VALUES:  # what they leave would not fit in memory
            raise InputError(
                f"link_background must end before {MOST_VALUES * self.step / links:.3g} s, where "
                f"{links} links have {MOST_VALUES} entries of {self.step:g} s; got an arrival at "
                f"{last:g}; use a longer step, or leave out what comes after the requests"
            )
        self._check_links()
        self._check_requests()

    def _check_links(self) -> None:
        if not (self.paths is None or isinstance(self.paths, Topology | pd.DataFrame)):
            raise InputError(
                "paths must be a Topology or a DataFrame with the columns source, target, hop, "
                f"link; got {type(self.paths).__name__}"
            )
        if (self.traces.ndim == 2) != (self.paths is not None):
            raise InputError(
                "traces of shape (links, steps) need paths, and those of shape "
                f"(domains, 4, steps) take none; got shape {self.traces.shape}"
            )
        if self.traces.ndim == 3 and self.traces.shape[1] != len(TWO_LEVEL):
            rule = f"{', '.join(TWO_LEVEL)} per domain, shape (domains, 4, steps)"
            raise InputError(f"traces must hold {rule}; got shape {self.traces.shape}")
        refuse_end(self.rates)
        topology = self.topology
        if topology.hops.max(initial=-1) >= len(self.rates):
            raise InputError(
                f"paths use link {topology.hops.max()}, but traces hold {len(self.rates)} links; "
                "give every link a trace"
            )
        for name in ("servers", "clients"):
            _refuse_strangers(name, getattr(self, name), "domain", topology.domains, "domains")

    def _check_requests(self) -> None:
        r = self.requests
        _refuse_strangers("requests", r, "client", len(self.clients), "clients")
        back = np.diff(r["time"]) < 0
        if back.any():
            row = validate.unwrap_scalar(r.index[int(np.argmax(back)) + 1])
            raise InputError(
                f"requests must be sorted by time, but row {row!r} comes before the one above; "
                "use requests.sort_values('time', kind='stable')"
            )
        last = float(r["time"].max()) if len(r) else 0.0
        until = last if self.horizon is None else self.horizon
        rule = f"at least {last:g}, the last request"
        vars(self)["horizon"] = float(number("horizon", until, last, rule=rule))

    @property
    def rates(self) -> Floats:
        """Traces of all links, shape (links, steps): a view."""
        return np.asarray(self.traces.reshape(-1, self.traces.shape[-1]))

    @functools.cached_property
    def topology(self) -> Topology:
        """Which links lead from domain to domain."""
        if isinstance(self.paths, Topology):
            return self.paths
        if self.paths is None:
            return two_level(len(self.traces))
        names = {"name": [f"link {k}" for k in range(len(self.rates))]}
        return from_paths(pd.DataFrame(names), self.paths)

    @functools.cached_property
    def is_two_level(self) -> bool:
        """Whether every domain hangs below one core by a LAN and a WAN link each way."""
        if self.paths is None:
            return True
        mine = self.topology
        if len(self.rates) != len(TWO_LEVEL) * mine.domains:
            return False
        usual = two_level(mine.domains)
        return np.array_equal(usual.first, mine.first) and np.array_equal(usual.hops, mine.hops)

    @functools.cached_property
    def open_rates(self) -> Floats:
        """What other users' data leave of the links, shape (links, steps); else `rates`."""
        if not len(self.link_background.times):
            return self.rates
        network = network_for(len(self.link_background.times))
        left: Floats = network.left_over(self.rates, self.step, self.link_background)
        return left

    @functools.cached_property
    def origin(self) -> float:
        """Where the clock of a run begins: by what arrives first; 0 unless all of it is late."""
        streams = (self.background.times, self.link_background.times)
        times = [self.requests["time"].to_numpy(), *(x for x in streams if len(x))]
        if not len(self.requests):
            return 0.0
        first, last = min(float(x.min()) for x in times), max(float(x.max()) for x in times)
        return clock_origin(np.array([first, last]))

    def since_origin(self, arrivals: Stream) -> Stream:
        """Return arrivals on the clock of a run."""
        if self.origin == 0:
            return arrivals
        return arrivals._replace(times=arrivals.times - self.origin)

    @property
    def trace_end(self) -> float:
        """When the traces of the links end and their last values are held from then on."""
        return float(self.rates.shape[1] * self.step)

    @classmethod
    def random(cls, seed: Seed, interval: float = 60.0, **options: Any) -> Self:
        """Draw an environment as in Table 1 of the paper, the same for the same arguments.

        `interval` is Int, the mean minutes between two requests; for the options see
        `dlsim.bricks.workload.draw`.
        """
        for name in options:
            validate.one_of("option of Environment.random", name, sorted(draw.__kwdefaults__ or {}))
        return cls(**draw(seed, interval, **options))
