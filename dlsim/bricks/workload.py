"""Draw environments as in Table 1 of paper B (section 4.1).

Every purpose has a seed of its own: servers, links, traces and background are the same for
every interval, and data sizes, work and deadline factors come from the same uniform numbers
for all ranges.
"""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator
from numpy.typing import NDArray

from dlsim import validate
from dlsim.bricks import traces
from dlsim.bricks.core.network import Stream, pack_arrivals
from dlsim.bricks.model import INPUT_SWITCHES
from dlsim.bricks.topology import Topology, alternate_nodes, draw_means, two_level
from dlsim.errors import InputError
from dlsim.validate import (
    Floats,
    Seed,
    child_seed,
    number,
    number_range,
    one_of,
    random_generator,
    whole,
)

__all__ = ["poisson_arrivals", "random_environment"]

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

#: Ranges that `random_environment` takes, with their least bounds.
SMALLEST_ENDS = {
    "performance": 1e-9,
    "lan": 1e-9,
    "wan": 1e-9,
    "data_range": 0.0,
    "work_range": 0.0,
    "deadline_factor": 0.0,
    "nodes": 0.0,
}


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


def _request_times(
    interval: float, scope: str, clients: int, horizon: float, seed: Seed
) -> tuple[Floats, NDArray[np.int64]]:
    """Draw the times of requests, sorted, and the client of each."""
    rate = 1 / (60 * interval)
    if scope == "system":
        stream = random_generator(seed, TIMES_SEED)
        times = poisson_arrivals(rate, horizon, stream)
        return times, stream.integers(0, clients, len(times))
    lists = [
        poisson_arrivals(rate, horizon, random_generator(seed, TIMES_SEED, k))
        for k in range(clients)
    ]
    times = np.concatenate([np.empty(0), *lists])
    client = np.repeat(np.arange(clients), [len(one) for one in lists])
    order = np.argsort(times, kind="stable")
    return times[order], client[order]


def _requests(
    seed: Seed, times: Floats, client: Any, ranges: tuple[Range, ...], speed: Any, throughput: Any
) -> pd.DataFrame:
    """Draw the table of requests; transfers at an infinite throughput take no time."""
    units = random_generator(seed, SIZES_SEED).random((len(times), len(ranges))).T
    send, recv, work, factor = map(_scale_units, ranges, units)
    due = times + factor * (work / speed + (send + recv) / throughput)
    columns = {"time": times, "client": client, "send": send, "recv": recv, "work": work}
    return pd.DataFrame(columns | {"deadline": due})


def random_environment(
    seed: Seed,
    interval: float = 60.0,
    *,
    domains: int = 10,
    nodes: tuple[int, int] = (5, 10),
    horizon: float = 86_400.0,
    interval_scope: str = "client",
    performance: Range = (100.0, 500.0),
    lan: Range = (50.0, 100.0),
    wan: Range = (500.0, 1000.0),
    data_range: Range = (100.0, 5000.0),
    work_range: Range = (1_500.0, 1_080_000.0),
    deadline_factor: Range = (1.0, 3.0),
    deadline_communication: bool = True,
    server_load: float = 0.1,
    server_background: str = "jobs",
    background_work: float = 50.0,
    link_background: str = "trace",
    link_load: float = 0.1,
    link_data: float = 10.0,
    packet: float = 10.0,
    H: float = 0.8,
    trace_step: float = 10.0,
    trace_std: float = 0.1,
    trace_method: str = "davies-harte",
    topology: Topology | None = None,
) -> dict[str, Any]:
    """Draw the parts of an `Environment`; the defaults are Table 1.

    Parameters
    ----------
    seed : int or SeedSequence
        Root of all randomness.
    interval : float
        Int: mean minutes between two requests (Poisson arrivals).
    domains : int
        Number of local domains; with a `topology` its own.
    nodes : tuple of int
        Fewest and most nodes of a domain; through all of them, clients and servers alternate.
    horizon : float
        Seconds during which requests come. Traces, and background, last half as long again;
        from there on links keep their last throughput and servers have no other users.
    interval_scope : {"client", "system"}
        Whether `interval` is that of every client or of all together.
    performance : tuple of float
        Ends of the servers' uniform distribution, Mops/s.
    lan, wan : tuple of float
        Ends of the uniform distribution of the links' average throughput, Mbit/s.
    data_range, work_range : tuple of float
        Data sent and received (Mbit) and work (Mops), uniform.
    deadline_factor : tuple of float
        DF, uniform: the deadline is DF times the time to completion on an average unloaded
        server, the mean of `performance`.
    deadline_communication : bool
        Whether that includes both transfers at the mean of `lan`.
    server_load : float
        Average load of the servers by other users.
    server_background : {"jobs", "trace"}
        Poisson arrivals of jobs that keep a server busy for that share of time; or a
        self-similar trace of CPU load of that mean (section 2.1).
    background_work : float
        Work of such a job, Mops.
    link_background : {"trace", "data"}
        Self-similar traces of throughput; or constant throughput, and Poisson arrivals of
        other users' data that occupy every link for the share `link_load`, such that the
        drawn average is what they leave (section 2.1).
    link_load, link_data : float
        That share, and the Mbit of each.
    packet : float
        Logical packet size, Mbit.
    H : float
        Hurst parameter of the traces: 0.5 forgets at once, the nearer 1 the longer it remembers.
    trace_step : float
        Seconds per step of the traces.
    trace_std : float
        Standard deviation of the traces over their mean (load traces: `LOAD_STD`).
    trace_method : str
        How the traces are made; see `dlsim.bricks.traces`.
    topology : Topology, optional
        A general network; default `two_level`.

    Returns
    -------
    dict
        Arguments of `Environment`.

    Raises
    ------
    InputError
        For an unknown option, an empty range, a load of 1 or more, or data that would not fit
        in memory.
    """
    _check_options(locals())
    interval, horizon, trace_step, background_work, link_data = validate.require_positive(
        interval=interval,
        horizon=horizon,
        trace_step=trace_step,
        background_work=background_work,
        link_data=link_data,
    )
    server_load = float(number("server_load", server_load, 0, 1, below=True))
    link_load = float(number("link_load", link_load, 0, 1, below=True))
    topology = two_level(domains) if topology is None else topology
    validate.instance("topology", topology, Topology, "; see two_level(10)")
    fewest, most = (whole("nodes", end, 0) for end in nodes)
    counts = random_generator(seed, NODES_SEED).integers(fewest, most + 1, topology.domains)
    servers, clients = alternate_nodes(counts.tolist())
    speeds = _scale_units(performance, random_generator(seed, SPEEDS_SEED).random(len(servers)))
    end = (1 + EXTRA_HORIZON) * horizon
    steps = end / trace_step
    sources = len(clients) if interval_scope == "client" else 1
    expected_requests = sources * horizon / (60 * interval)
    rows_of_traces = len(topology.links) + len(servers) * (server_background == "trace")
    _check_size("requests", expected_requests, MOST_REQUESTS, "a longer interval")
    _check_size(
        "trace entries", steps * len(topology.links), traces.MOST_VALUES, "a longer trace_step"
    )
    jobs = end * server_load * float(speeds.sum()) / background_work
    validate.require_memory(
        "traces, background jobs and requests together",
        8 * steps * rows_of_traces + 16 * jobs + 48 * expected_requests,
        "choose a longer trace_step, larger background jobs or a shorter horizon",
    )
    parts: dict[str, Any] = {
        "servers": pd.DataFrame({"domain": servers, "performance": speeds}),
        "clients": pd.DataFrame({"domain": clients}),
        "step": trace_step,
        "packet": packet,
        "paths": topology,
        "horizon": horizon,
        "server_load": server_load,
    }
    trace_rows = partial(traces.random_traces, steps=math.ceil(steps), H=H, method=trace_method)
    means = draw_means(topology, child_seed(seed, MEANS_SEED), lan=lan, wan=wan)
    if link_background == "trace":
        parts["traces"] = trace_rows(means, seed=child_seed(seed, TRACES_SEED), std=trace_std)
    else:
        parts |= _draw_link_data(seed, means, link_load, link_data, end)
    if server_background == "jobs":
        rates = server_load * speeds / background_work
        parts["background"] = _random_stream(seed, rates, end, background_work, JOBS_SEED)
    elif server_load > 0:
        loads = np.full(len(servers), server_load)
        parts["load_traces"] = trace_rows(loads, seed=child_seed(seed, LOADS_SEED), std=LOAD_STD)
    times_and_clients = _request_times(interval, interval_scope, len(clients), horizon, seed)
    ranges = (data_range, data_range, work_range, deadline_factor)
    throughput = np.mean(lan) if deadline_communication else math.inf
    parts["requests"] = _requests(
        seed, *times_and_clients, ranges, np.mean(performance), throughput
    )
    return parts


def _draw_link_data(
    seed: Seed, means: Floats, load: float, data: float, end: float
) -> dict[str, Any]:
    """Draw other users' data on links that they occupy for a share of the time."""
    capacity = means / (1 - load)
    stream = _random_stream(seed, load * capacity / data, end, data, DATA_SEED)
    return {"traces": capacity[:, None], "link_background": stream}


def _check_options(chosen: dict[str, Any]) -> None:
    """Raise InputError for an unknown option, an empty range, or too many nodes."""
    for name, options in INPUT_SWITCHES.items():
        if isinstance(options[0], str | bool):
            one_of(name, chosen[name], options)
    for name, least in SMALLEST_ENDS.items():
        number_range(name, chosen[name], least)
    if chosen["topology"] is None:
        count = float(chosen["nodes"][1]) * whole("domains", chosen["domains"])
        _check_size("nodes", count, MOST_NODES, "fewer domains, fewer nodes in each,")


def _check_size(what: str, expected: float, most: int, remedy: str) -> None:
    """Raise InputError for a size that would not fit in memory."""
    if not expected <= most:
        remedy = f"use {remedy} or a shorter horizon"
        raise InputError(f"{what} must be at most {most}, got about {expected:.3g}; {remedy}")
