"""Draw environments as in Table 1 of paper B (section 4.1).

Every purpose has a seed of its own: servers, links, traces and background are the same for
every interval, and data sizes, work and deadline factors come from the same uniform numbers
for all ranges.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

from dlsim import validate
from dlsim.bricks import traces
from dlsim.bricks.core.network import Stream, pack_arrivals
from dlsim.bricks.topology import Topology, alternate_nodes, draw_means, two_level
from dlsim.errors import InputError
from dlsim.reading import BaseReading, switch
from dlsim.validate import Floats, Seed, child_seed, number, number_range, random_generator, whole

Range = tuple[float, float]

#: Spawn keys of the seeds, one per purpose.
NODES_SEED, SPEEDS_SEED, MEANS_SEED, TRACES_SEED, TIMES_SEED = range(5)
SIZES_SEED, JOBS_SEED, LOADS_SEED, DATA_SEED = range(5, 9)
#: Most requests, and most nodes.
MOST_REQUESTS, MOST_NODES = 10**8, 10**7
#: Share of the horizon by which traces and background go on after it.
EXTRA_HORIZON = 0.5
#: Standard deviation of load traces over their mean.
LOAD_STD = 0.5


@dataclass(frozen=True)
class NetworkLaw(BaseReading):
    """The nodes and links of a drawn environment; the defaults are Table 1.

    Parameters
    ----------
    domains : int
        Number of local domains; with a `topology` its own.
    nodes : tuple of int
        Fewest and most nodes of a domain; through all of them, clients and servers alternate.
    performance : tuple of float
        Ends of the servers' uniform distribution, Mops/s.
    lan, wan : tuple of float
        Ends of the uniform distribution of the links' average throughput, Mbit/s.
    packet : float
        Logical packet size, Mbit.
    topology : Topology, optional
        A general network; default `two_level`.
    H : float
        Hurst parameter of the traces: 0.5 forgets at once, the nearer 1 the longer it remembers.
    trace_step : float
        Seconds per step of the traces.
    trace_std : float
        Standard deviation of the traces over their mean (load traces: `LOAD_STD`).
    trace_method : str
        How the traces are made; see `dlsim.bricks.traces`.

    Raises
    ------
    InputError
        For an empty range, too many nodes, or a value out of range.
    """

    domains: int = 10
    nodes: tuple[int, int] = (5, 10)
    performance: Range = (100.0, 500.0)
    lan: Range = (50.0, 100.0)
    wan: Range = (500.0, 1000.0)
    packet: float = 10.0
    topology: Topology | None = None
    H: float = switch(
        (0.8, 0.5, 0.9),
        label="Hurst parameter of the traces: how long they remember",
        reads="workload:_trace_drawer",
        number={"high": 1, "below": True, "above": True},
    )
    trace_step: float = switch(
        (10.0, 1.0, 60.0, 900.0),
        label="seconds between two values of a trace",
        reads="workload:random_environment",
        number={"above": True},
    )
    trace_std: float = switch(
        (0.1, 0.0, 0.5),
        label="standard deviation of the traces over their mean",
        reads="workload:_draw_links",
        number={},
    )
    trace_method: str = switch(
        ("davies-harte", "paxson"),
        label="method that draws the traces",
        reads="workload:_trace_drawer",
    )

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        for name in ("performance", "lan", "wan"):
            vars(self)[name] = number_range(name, getattr(self, name), 1e-9)
        fewest, most = (whole("nodes", end, 0) for end in number_range("nodes", self.nodes))
        vars(self)["nodes"] = fewest, most
        if self.topology is None:
            count = float(most) * whole("domains", self.domains)
            _check_size("nodes", count, MOST_NODES, "fewer domains, fewer nodes in each,")
        else:
            validate.instance("topology", self.topology, Topology, "; see two_level(10)")


@dataclass(frozen=True)
class RequestLaw(BaseReading):
    """The requests of a drawn environment; the defaults are Table 1.

    Parameters
    ----------
    interval : float
        Int: mean minutes between two requests (Poisson arrivals).
    horizon : float
        Seconds during which requests come. Traces, and background, last half as long again; from
        there on links keep their last throughput, and servers their last load or no other users.
    data_range, work_range : tuple of float
        Data sent and received (Mbit) and work (Mops), uniform.
    deadline_factor : tuple of float
        DF, uniform: a request is due DF times the time to completion on an average unloaded server
        after its arrival; that server has the mean of `NetworkLaw.performance`.
    interval_scope : {"client", "system"}
        Whether `interval` is that of every client or of all together.
    deadline_communication : bool
        Whether the time to completion includes both transfers at the mean of `NetworkLaw.lan`.

    Raises
    ------
    InputError
        For an empty range, or a value out of range.
    """

    interval: float = 60.0
    horizon: float = 86_400.0
    data_range: Range = (100.0, 5000.0)
    deadline_factor: Range = (1.0, 3.0)
    work_range: Range = switch(
        ((1_500.0, 1_080_000.0), (90_000.0, 1_080_000.0)),
        label="work of a request, Mops: from 1500, or from 90000",
        reads="workload:_draw_requests",
        is_range=True,
    )
    interval_scope: str = switch(
        ("client", "system"),
        label="Int is the mean time between requests: of each client, or of all",
        reads=("workload:_draw_arrivals", "workload:_check_sizes"),
    )
    deadline_communication: bool = switch(
        (True, False), label="deadlines allow for the transfers", reads="workload:_draw_requests"
    )

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        for name in ("interval", "horizon"):
            vars(self)[name] = float(number(name, getattr(self, name), above=True))
        for name in ("data_range", "deadline_factor"):
            vars(self)[name] = number_range(name, getattr(self, name))


@dataclass(frozen=True)
class BackgroundLaw(BaseReading):
    """Other users of servers and links of a drawn environment; the defaults are Table 1.

    Parameters
    ----------
    background_work : float
        Work of a job of other users, Mops.
    link_load, link_data : float
        With ``link_background="data"``: the share of the time for which their data occupy every
        link, and the Mbit of each.
    server_load : float
        Average load of the servers by other users.
    server_background : {"jobs", "trace"}
        Poisson arrivals of jobs that keep a server busy for that share of time; or a
        self-similar trace of CPU load of that mean (section 2.1).
    link_background : {"trace", "data"}
        Self-similar traces of throughput; or constant throughput, and Poisson arrivals of
        other users' data, such that the drawn average is what they leave (section 2.1).

    Raises
    ------
    InputError
        For a load of 1 or more, or a value out of range.
    """

    background_work: float = 50.0
    link_load: float = 0.1
    link_data: float = 10.0
    server_load: float = switch(
        (0.1, 0.0, 0.3),
        label="load of the servers by other users",
        reads="workload:_draw_server_load",
        number={"high": 1, "below": True},
    )
    server_background: str = switch(
        ("jobs", "trace"),
        label="other users' load of servers: single jobs, or a trace",
        reads="workload:_draw_server_load",
    )
    link_background: str = switch(
        ("trace", "data"),
        label="other users' load of links: part of the trace, or data of their own",
        reads="workload:_draw_links",
    )

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        for name in ("background_work", "link_data"):
            vars(self)[name] = float(number(name, getattr(self, name), above=True))
        vars(self)["link_load"] = float(number("link_load", self.link_load, 0, 1, below=True))


#: What an environment is drawn by.
LAWS = (RequestLaw, BackgroundLaw, NetworkLaw)
#: The switches of the laws with their options, the default first.
INPUT_SWITCHES = {name: options for law in LAWS for name, options in law.switches().items()}


def sort_options(options: dict[str, Any]) -> tuple[RequestLaw, BackgroundLaw, NetworkLaw]:
    """Return the laws in which some options of `Environment.random` are not the default.

    Raises
    ------
    InputError
        For an option that no law has, or a value that its law refuses.
    """
    law_of = {one.name: law for law in LAWS for one in fields(law)}
    for name in options:
        validate.one_of("option of Environment.random", name, sorted(law_of))
    request, background, network = (
        {name: value for name, value in options.items() if law_of[name] is law} for law in LAWS
    )
    return RequestLaw(**request), BackgroundLaw(**background), NetworkLaw(**network)


def poisson_arrivals(rate: float, end: float, stream: Generator) -> Floats:
    """Draw the times of Poisson arrivals, `rate` per second, from 0 to below `end`, in order."""
    parts, sum_of_gaps = [np.empty(0)], 0.0
    while rate > 0 and sum_of_gaps / rate < end:
        expected = rate * end - sum_of_gaps
        gaps = stream.standard_exponential(math.ceil(expected + 6 * math.sqrt(expected)) + 8)
        gaps[0] += sum_of_gaps
        sums = np.cumsum(gaps, out=gaps)
        sum_of_gaps = float(sums[-1])
        sums /= rate
        parts.append(sums)
    times = parts[1] if len(parts) == 2 else np.concatenate(parts)
    return times[: np.searchsorted(times, end)]


def _scale_units(limits: Range, unit: Floats) -> Floats:
    """Map numbers of [0, 1) to a range."""
    low, high = map(float, limits)
    return np.asarray(low + (high - low) * unit)


def _random_stream(seed: Seed, rates: Floats, end: float, size: float, purpose: int) -> Stream:
    """Draw Poisson arrivals at several queues."""
    count = float(rates.sum()) * end
    what = f"{count:.3g} background arrivals"
    remedy = "use larger background jobs, a shorter horizon or the trace model"
    if purpose == DATA_SEED and count > traces.MOST_VALUES:
        raise InputError(f"{what} are more than {traces.MOST_VALUES}; {remedy}")
    validate.require_memory(what, 16 * count, remedy)
    queues = enumerate(rates)
    lists = [poisson_arrivals(rate, end, random_generator(seed, purpose, k)) for k, rate in queues]
    return pack_arrivals(lists, np.array([float(size)]))


def _draw_arrivals(seed: Seed, law: RequestLaw, clients: int) -> tuple[Floats, NDArray[np.int64]]:
    """Draw the arrivals of requests, sorted, and the client of each."""
    rate = 1 / (60 * law.interval)
    if law.interval_scope == "system":
        stream = random_generator(seed, TIMES_SEED)
        times = poisson_arrivals(rate, law.horizon, stream)
        return times, stream.integers(0, clients, len(times))
    lists = [
        poisson_arrivals(rate, law.horizon, random_generator(seed, TIMES_SEED, k))
        for k in range(clients)
    ]
    times = np.concatenate([np.empty(0), *lists])
    client = np.repeat(np.arange(clients), [len(one) for one in lists])
    order = np.argsort(times, kind="stable")
    return times[order], client[order]


def _draw_requests(seed: Seed, law: RequestLaw, clients: int, network: NetworkLaw) -> pd.DataFrame:
    """Draw the table of requests."""
    arrival, client = _draw_arrivals(seed, law, clients)
    ranges = (law.data_range, law.data_range, law.work_range, law.deadline_factor)
    units = random_generator(seed, SIZES_SEED).random((len(arrival), len(ranges))).T
    send, recv, work, factor = map(_scale_units, ranges, units)
    # transfers at an infinite throughput take no time
    throughput = np.mean(network.lan) if law.deadline_communication else math.inf
    due = arrival + factor * (work / np.mean(network.performance) + (send + recv) / throughput)
    columns = {"arrival": arrival, "client": client, "send": send, "recv": recv, "work": work}
    return pd.DataFrame(columns | {"due": due})


def _trace_drawer(network: NetworkLaw, steps: float) -> Callable[..., Floats]:
    """Return the function that draws traces of some steps from means, a seed and a deviation."""
    return partial(
        traces.random_traces, steps=math.ceil(steps), H=network.H, method=network.trace_method
    )


def _draw_links(
    seed: Seed, network: NetworkLaw, law: BackgroundLaw, means: Floats, end: float
) -> dict[str, Any]:
    """Draw the traces of the links, or other users' data that occupy them for a share of time."""
    if law.link_background == "trace":
        draw = _trace_drawer(network, end / network.trace_step)
        seed = child_seed(seed, TRACES_SEED)
        return {"traces": draw(means, seed=seed, std=network.trace_std)}
    capacity = means / (1 - law.link_load)
    rates = law.link_load * capacity / law.link_data
    stream = _random_stream(seed, rates, end, law.link_data, DATA_SEED)
    return {"traces": capacity[:, None], "link_background": stream}


def _draw_server_load(
    seed: Seed, network: NetworkLaw, law: BackgroundLaw, speeds: Floats, end: float
) -> dict[str, Any]:
    """Draw other users' jobs on the servers, or traces of their load."""
    parts: dict[str, Any] = {"server_load": law.server_load}
    if law.server_background == "jobs":
        rates = law.server_load * speeds / law.background_work
        parts["background"] = _random_stream(seed, rates, end, law.background_work, JOBS_SEED)
    elif law.server_load > 0:
        loads, draw = (
            np.full(len(speeds), law.server_load),
            _trace_drawer(network, end / network.trace_step),
        )
        parts["load_traces"] = draw(loads, seed=child_seed(seed, LOADS_SEED), std=LOAD_STD)
    return parts


def random_environment(
    seed: Seed, requests: RequestLaw, background: BackgroundLaw, network: NetworkLaw
) -> dict[str, Any]:
    """Draw the parts of an `Environment`.

    Parameters
    ----------
    seed : int or SeedSequence
        Root of all randomness.
    requests, background, network
        What is drawn.

    Returns
    -------
    dict
        Arguments of `Environment`.

    Raises
    ------
    InputError
        For data that would not fit in memory.
    """
    topology = two_level(network.domains) if network.topology is None else network.topology
    fewest, most = network.nodes
    counts = random_generator(seed, NODES_SEED).integers(fewest, most + 1, topology.domains)
    servers, clients = alternate_nodes(counts.tolist())
    units = random_generator(seed, SPEEDS_SEED).random(len(servers))
    speeds = _scale_units(network.performance, units)
    end = (1 + EXTRA_HORIZON) * requests.horizon
    counted = len(topology.links), len(clients), speeds
    _check_sizes(requests, background, *counted, steps=end / network.trace_step)
    means = draw_means(topology, child_seed(seed, MEANS_SEED), lan=network.lan, wan=network.wan)
    return {
        "servers": pd.DataFrame({"domain": servers, "performance": speeds}),
        "clients": pd.DataFrame({"domain": clients}),
        "requests": _draw_requests(seed, requests, len(clients), network),
        "step": network.trace_step,
        "packet": network.packet,
        "paths": topology,
        "horizon": requests.horizon,
        **_draw_links(seed, network, background, means, end),
        **_draw_server_load(seed, network, background, speeds, end),
    }


def _check_sizes(
    requests: RequestLaw,
    background: BackgroundLaw,
    links: int,
    clients: int,
    speeds: Floats,
    steps: float,
) -> None:
    """Raise InputError for parts of an environment that would not fit in memory."""
    sources = clients if requests.interval_scope == "client" else 1
    expected = sources * requests.horizon / (60 * requests.interval)
    rows_of_traces = links + len(speeds) * (background.server_background == "trace")
    _check_size("requests", expected, MOST_REQUESTS, "a longer interval")
    _check_size("trace entries", steps * links, traces.MOST_VALUES, "a longer trace_step")
    end = (1 + EXTRA_HORIZON) * requests.horizon
    jobs = end * background.server_load * float(speeds.sum()) / background.background_work
    validate.require_memory(
        "traces, background jobs and requests together",
        8 * steps * rows_of_traces + 16 * jobs + 48 * expected,
        "choose a longer trace_step, larger background jobs or a shorter horizon",
    )


def _check_size(what: str, expected: float, most: int, remedy: str) -> None:
    """Raise InputError for a size that would not fit in memory."""
    if not expected <= most:
        remedy = f"use {remedy} or a shorter horizon"
        raise InputError(f"{what} must be at most {most}, got about {expected:.3g}; {remedy}")
