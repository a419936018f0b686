"""The Grid computing environment of paper B: servers, clients, links, requests, other users.

Source: paper B (bricks), section 2 (Figures 1 and 2) and section 4.1 (Table 1).
"""

import functools
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim import validate
from dlsim.bricks.core.network import Stream, pack_arrivals
from dlsim.bricks.core.state import EnvironmentArrays
from dlsim.bricks.topology import TWO_LEVEL, Topology, two_level
from dlsim.bricks.traces import (
    MOST_VALUES,
    Seed,
    nonnegative_numbers,
    refuse_dead_links,
    trace_array,
)
from dlsim.bricks.workload import random_environment, sort_options
from dlsim.compiled import CORES, time_offset
from dlsim.errors import InputError
from dlsim.validate import (
    MAX_COUNT,
    MAX_MAGNITUDE,
    Floats,
    column,
    number,
    require_positive,
    require_table,
)

#: Columns of the input tables, each with its smallest value.
INPUT_COLUMNS: dict[str, dict[str, float]] = {
    "servers": {"domain": 0, "performance": 0},
    "clients": {"domain": 0},
    "requests": {"arrival": 0, "client": 0, "send": 0, "recv": 0, "work": 0, "due": -MAX_MAGNITUDE},
}
#: Most arrivals of other users' data that the uncompiled core puts on links.
MAX_UNCOMPILED_ARRIVALS = 50_000


def _read_only(value: Any) -> Any:
    """Return an array as a read-only view, so that the compiler sees one type of array."""
    if isinstance(value, Stream):
        return Stream(*map(_read_only, value))
    if not isinstance(value, np.ndarray):
        return value
    kinds = {"f": np.float64, "i": np.int64, "b": np.bool_}
    view: NDArray[Any] = np.ascontiguousarray(value, kinds[value.dtype.kind]).view()
    view.flags.writeable = False
    return view


def _check_column(name: str, rows: pd.DataFrame, key: str, *ends: float, **how: Any) -> Any:
    """Return a column of a table as numbers between two ends; an InputError names the row."""
    return column(f"{name}: {key}", rows[key], *ends, row="row", labels=rows.index, **how)


def _check_row_numbers(name: str, rows: pd.DataFrame, key: str, count: int, what: str) -> None:
    """Raise InputError unless a column holds row numbers of a table with `count` rows."""
    rule = f"a whole number below {count}, the number of {what}"
    _check_column(name, rows, key, 0, count - 1, is_whole=True, rule=rule)


def _check_table(name: str, rows: Any, ignore: Collection[str]) -> pd.DataFrame:
    """Return a copy of an input table; raise InputError for a column that cannot be used."""
    how: dict[str, Any] = {"optional": (), "ignore": ignore, "empty": name != "servers"}
    found = require_table(name, rows, list(INPUT_COLUMNS[name]), **how).copy()
    for key, low in INPUT_COLUMNS[name].items():
        above, is_whole = key == "performance", key in ("domain", "client")
        most = MAX_COUNT if is_whole else MAX_MAGNITUDE
        found[key] = _check_column(name, found, key, low, most, above=above, is_whole=is_whole)
    return found


def _to_lists(name: str, what: str, lists: Any) -> list[Floats]:
    """Return one array of numbers per queue."""
    if isinstance(lists, str) or not np.iterable(lists):
        raise InputError(f"{name} needs {what} as one list per queue; got {lists!r}")
    return [nonnegative_numbers(f"{name}: {what} of queue {k}", one) for k, one in enumerate(lists)]


def _arrival_lists(name: str, queues: int, times: Any) -> list[Floats]:
    """Return the arrivals at every queue; raise InputError for lists that are not sorted."""
    lists = _to_lists(name, "arrival times", times) or [np.empty(0)] * queues
    if (got := len(lists)) != queues:
        raise InputError(f"{name} needs one list of arrival times per queue, {queues}; got {got}")
    for k, one in enumerate(lists):
        if one.ndim != 1:
            raise InputError(f"{name} needs a list of arrival times for queue {k}; got {one!r}")
        if (np.diff(one) < 0).any():
            raise InputError(f"{name} arrival times of queue {k} must not decrease; sort them")
    return lists


def _pack_stream(name: str, queues: int, times: Any, sizes: Any) -> Stream:
    """Join arrivals, one sorted list per queue, and their sizes into a stream."""
    if isinstance(times, Stream):  # of another environment, by dataclasses.replace
        if len(times.first) - 1 == queues:
            return times
        times = [times.times_of(k) for k in range(len(times.first) - 1)] if len(times.times) else ()
    lists = _arrival_lists(name, queues, () if times is None else times)
    if np.isscalar(sizes):
        return pack_arrivals(lists, np.array([float(number(f"size of {name}", sizes))]))
    size_lists = _to_lists(name, "sizes", sizes)
    if [one.shape for one in size_lists] != [one.shape for one in lists]:
        raise InputError(f"{name} needs one finite size of at least 0 per arrival, in lists alike")
    return pack_arrivals(lists, np.concatenate([np.empty(0), *size_lists]))


@dataclass(frozen=True, eq=False)
class Environment:
    """The simulated Grid: servers, clients, links, requests and other users (paper B, Figure 1).

    Parameters
    ----------
    servers : DataFrame
        Columns domain and performance (Mops/s), one row per server.
    clients : DataFrame
        Column domain, one row per client.
    traces : array_like of float, shape (domains, 4, steps) or (links, steps)
        Throughput of the links in Mbit/s: LAN up, LAN down, WAN up, WAN down of every
        domain; or of the links of a general network, with `paths`. The second shape is made
        from a table of measured values by `dlsim.bricks.traces.from_frame`.
    step : float
        Seconds per entry of a trace; the last entry is held for ever.
    requests : DataFrame
        Columns arrival (s), client (row of `clients`), send and recv (Mbit), work (Mops),
        due (the instant at which the result has to be back, s), sorted by arrival; index = request
        id.
    background : sequence of array_like, optional
        Arrival times of other users' jobs, one sorted list per server.
    background_work : float or sequence of array_like
        Their work in Mops: one for all, or one list per server.
    server_load : float
        External load that the monitor reports for every server: 0.1 in Table 1.
    load_traces : array_like of float, shape (servers, steps), optional
        External CPU load of the servers (the trace model of section 2.1), with the same
        `step`: a server then works at performance / (1 + load), and that load is what the
        monitor sees instead of `server_load`.
    paths : Topology, optional
        With traces of shape (links, steps): the links between every two domains.
    link_background : sequence of array_like, optional
        Arrival times of other users' data, one sorted list per link (the extraneous data
        model of section 2.1): each occupies its link for data / throughput, first come,
        first served. In a fluid network, and for the monitor, a link keeps per step its
        throughput times its idle fraction, at least 1 %, until the trace or their arrivals
        end, whichever is later; from then on it keeps all of it.
    link_data : float or sequence of array_like
        Their size in Mbit.
    packet : float
        Logical packet size in Mbit.
    horizon : float, optional
        When requests stop arriving, by default with the last one.
    ignore : sequence of str
        Columns of the tables that may be there and are not read; any other one is refused.

    Raises
    ------
    InputError
        Naming the table, the column and the row that cannot be used; also for no servers, and for a
        link that ends with throughput zero, over which a transfer might never end.

    Notes
    -----
    An environment stays as it is made: the arrays that runs read are made once. Another one is made
    by `dataclasses.replace`.
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
    paths: Topology | None = None
    link_background: Any = None
    link_data: Any = 10.0
    packet: float = 10.0
    horizon: float | None = None
    ignore: Collection[str] = ()

    def __post_init__(self) -> None:
        """Check and convert the fields."""
        step, packet = require_positive(step=self.step, packet=self.packet)
        vars(self).update(step=step, packet=packet)
        vars(self)["server_load"] = float(number("server_load", self.server_load))
        for name in INPUT_COLUMNS:
            vars(self)[name] = _check_table(name, getattr(self, name), self.ignore)
        vars(self)["traces"] = trace_array("traces", self.traces, (2, 3))
        servers, links = len(self.servers), len(self.rates)
        if self.load_traces is not None:
            loads = trace_array("load_traces", self.load_traces, (2,))
            if len(loads) != servers:
                raise InputError(f"load_traces needs a row per server, {servers}; got {len(loads)}")
            vars(self)["load_traces"] = loads
        jobs = _pack_stream("background", servers, self.background, self.background_work)
        data = _pack_stream("link_background", links, self.link_background, self.link_data)
        vars(self).update(background=jobs, link_background=data)
        last = float(data.times.max(initial=0.0))
        if last / self.step * links > MOST_VALUES:  # `available_rates` would not fit in memory
            raise InputError(
                f"link_background must end before {MOST_VALUES * self.step / links:.3g} s, where "
                f"{links} links have {MOST_VALUES} entries of {self.step:g} s; got an arrival at "
                f"{last:g}; use a longer step, or leave out what comes after the requests"
            )
        self._check_links()
        self._check_requests()

    def _check_links(self) -> None:
        if self.paths is not None:
            validate.instance(
                "paths", self.paths, Topology, "; see dlsim.bricks.topology.from_graph"
            )
        if (self.traces.ndim == 2) != (self.paths is not None):
            raise InputError(
                "traces of shape (links, steps) need paths, and those of shape "
                f"(domains, 4, steps) take none; got shape {self.traces.shape}"
            )
        if self.traces.ndim == 3 and self.traces.shape[1] != len(TWO_LEVEL):
            rule = f"{', '.join(TWO_LEVEL)} per domain, shape (domains, 4, steps)"
            raise InputError(f"traces must hold {rule}; got shape {self.traces.shape}")
        refuse_dead_links(self.rates)
        topology = self.topology
        if topology.hops.max(initial=-1) >= len(self.rates):
            raise InputError(
                f"paths use link {topology.hops.max()}, but traces hold {len(self.rates)} links; "
                "give every link a trace"
            )
        for name in ("servers", "clients"):
            _check_row_numbers(name, getattr(self, name), "domain", topology.domains, "domains")

    def _check_requests(self) -> None:
        requests = self.requests
        _check_row_numbers("requests", requests, "client", len(self.clients), "clients")
        is_earlier = np.diff(requests["arrival"]) < 0
        if is_earlier.any():
            row = validate.unwrap_scalar(requests.index[int(np.argmax(is_earlier)) + 1])
            raise InputError(
                f"requests must be sorted by arrival, but row {row!r} comes before the one above; "
                "use requests.sort_values('arrival', kind='stable')"
            )
        last = float(requests["arrival"].max()) if len(requests) else 0.0
        until = last if self.horizon is None else self.horizon
        rule = f"at least {last:g}, the last request"
        vars(self)["horizon"] = float(number("horizon", until, last, rule=rule))

    @property
    def rates(self) -> Floats:
        """Throughput of all links, Mbit/s, shape (links, steps): a view of `traces`."""
        return np.asarray(self.traces.reshape(-1, self.traces.shape[-1]))

    @functools.cached_property
    def topology(self) -> Topology:
        """The links between every two domains."""
        return two_level(len(self.traces)) if self.paths is None else self.paths

    @functools.cached_property
    def available_rates(self) -> Floats:
        """Throughput of all links that other users' data leave, Mbit/s, shape (links, steps)."""
        if not len(self.link_background.times):
            return self.rates
        core, arrivals = CORES["bricks"], len(self.link_background.times)
        modules = core.python if arrivals <= MAX_UNCOMPILED_ARRIVALS else core.compiled
        rates: Floats = modules.network.available_throughput(
            self.rates, self.step, self.link_background
        )
        return rates

    @functools.cached_property
    def origin(self) -> float:
        """Begin of a run's clock: 0, or near the first arrival if all arrivals are late."""
        streams = (self.background.times, self.link_background.times)
        arrivals = [
            self.requests["arrival"].to_numpy(),
            *(times for times in streams if len(times)),
        ]
        if not len(self.requests):
            return 0.0
        first = min(float(times.min()) for times in arrivals)
        last = max(float(times.max()) for times in arrivals)
        return time_offset(np.array([first, last]))

    def _shift_to_origin(self, arrivals: Stream) -> Stream:
        """Return arrivals on the clock of a run."""
        if self.origin == 0:
            return arrivals
        return arrivals._replace(times=arrivals.times - self.origin)

    @functools.cached_property
    def arrays(self) -> EnvironmentArrays:
        """What a run reads: read-only arrays on its clock, of which large ones are not copied."""
        servers, topology = self.servers, self.topology
        loads = np.empty((len(servers), 0)) if self.load_traces is None else self.load_traces
        requests = {name: self.requests[name].to_numpy() for name in INPUT_COLUMNS["requests"]}
        requests |= {name: requests[name] - self.origin for name in ("arrival", "due")}
        arrays = EnvironmentArrays(
            origin=self.origin,
            performance=servers["performance"].to_numpy(),
            server_domain=servers["domain"].to_numpy(),
            client_domain=self.clients["domain"].to_numpy(),
            background=self._shift_to_origin(self.background),
            server_load=float(self.server_load),
            load_traces=loads,
            rates=self.available_rates,
            capacity=self.rates,
            link_background=self._shift_to_origin(self.link_background),
            step=float(self.step),
            packet=float(self.packet),
            path_start=topology.first,
            path_links=topology.hops,
            return_start=topology.by_target[0],
            return_links=topology.by_target[1],
            domains=int(topology.domains),
            **requests,
        )
        return EnvironmentArrays(*map(_read_only, arrays))

    @classmethod
    def random(cls, seed: Seed = 0, interval: float = 60.0, **options: Any) -> Self:
        """Draw an environment as in Table 1 of the paper, the same for the same arguments.

        Parameters
        ----------
        seed : int or SeedSequence
            Root of all randomness.
        interval : float
            Int, the mean minutes between two requests.
        **options
            Fields of `dlsim.bricks.workload.RequestLaw`, `BackgroundLaw` and `NetworkLaw`.

        Raises
        ------
        InputError
            For an unknown option, or a value that cannot be used.
        """
        return cls(**random_environment(seed, *sort_options({"interval": interval, **options})))
