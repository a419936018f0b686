"""The core of paper B at two speeds: compiled, or as plain Python for small work."""

from typing import Any

import numpy as np

from dlsim.bricks.core.state import (
    ADAPTIVE,
    QUEUE,
    USER,
    UTILISATION,
    WINDOW_PROBES,
    Config,
    EnvironmentArrays,
)
from dlsim.compiled import CORES

#: Microseconds that the uncompiled core takes, measured on an Intel Xeon.
MICROSECONDS = {
    "estimate": 25,  # of one server for a request
    "measurement": 20,  # of a link or a server
    "service": 20,  # of a background job, unless all are alike and only their end is needed
    "packet": 270,  # that passes a link
    "link data": 10,  # of another user, that pass a link
    "entry": 3,  # of a trace, passed by a transfer or a service
}

#: Most arrivals of other users' data that the uncompiled core puts on links.
MAX_UNCOMPILED_ARRIVALS = 50_000


def count_trace_entries(env: EnvironmentArrays) -> float:
    """Return about how many entries of traces transfers and services pass."""
    sample = env.rates[:, :: 1 + env.rates.shape[1] // 100]
    transfers = (env.send.sum() + env.recv.sum()) / sample.mean() if sample.any() else 0.0
    services = env.work.sum() / env.performance.mean() if env.load_traces.size else 0.0
    return float(transfers + services) / env.step


def uncompiled_microseconds(env: EnvironmentArrays, cfg: Config) -> int:
    """Return about how many microseconds a run takes uncompiled, mostly more than it does."""
    servers, submissions = len(env.performance), len(env.time) * (cfg.max_fallbacks + 1)
    probes = env.time.max(initial=0.0) / cfg.probe
    if cfg.predictor not in (ADAPTIVE, USER):  # the others skip probes before the last ten
        probes = min(probes, WINDOW_PROBES * submissions)
    are_alike = len(env.background.sizes) == 1 and not env.load_traces.size
    total = MICROSECONDS["estimate"] * submissions * servers
    total += MICROSECONDS["measurement"] * probes * (len(env.rates) + servers)
    if cfg.load in (UTILISATION, QUEUE) or not are_alike:
        total += MICROSECONDS["service"] * len(env.background.times)
    total += MICROSECONDS["entry"] * count_trace_entries(env)
    if cfg.packets:
        packets, hops = (env.send + env.recv).sum() / env.packet, np.diff(env.path_start)
        total += MICROSECONDS["packet"] * packets * hops.max(initial=0)
        total += MICROSECONDS["link data"] * len(env.link_background.times)
    return int(total)


def network_for(arrivals: int) -> Any:
    """Return the network module of the core for a number of other users' data."""
    core = CORES["bricks"]
    return (core.python if arrivals <= MAX_UNCOMPILED_ARRIVALS else core.compiled).network
