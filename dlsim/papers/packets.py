"""A steady state of paper S executed in the packet engine of paper B.

Program (6) of paper S promises a throughput if every connection has its bandwidth and a cluster's
link is shared without loss. Here the chunks of a period are requests of paper B: at the beginning
of each period every cluster sends its chunks packet by packet, first come, first served; a chunk is
computed when all of it has arrived. Paper B's engine has no latencies: the data enter the network
later by the latency of their route.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.bricks import Environment, GridResult, Policy, Reading, simulate
from dlsim.bricks.topology import Topology
from dlsim.steady import Period
from dlsim.validate import one_of

#: What joins two clusters beside their own links: one link per pair with the bandwidth of all its
#: connections, which is the paper's model; or the links of the backbone, each with the bandwidth of
#: all connections that are open on it, shared by all pairs.
NETWORK_MODELS = ("connections", "backbone")


class ExecutedPeriods(NamedTuple):
    """What a schedule delivers when paper B's engine executes it.

    `reached` is the throughput over the promised one, of the worst application that counts, over
    the second half of the periods. `longest` is the number of periods from the beginning of a
    chunk's period to its end; the schedule promises two.
    """

    outcome: GridResult
    reached: float
    longest: float


def lay_out_links(period: Period, network: str) -> tuple[Topology, Any]:
    """Return the topology of gateways and of backbone links or connections, and all bandwidths."""
    platform, opened = period.platform, np.asarray(period.connections, dtype=float)
    count, labels = platform.clusters, list(platform.links.index)
    rates = platform.gateway.tolist()
    place = {label: count + number for number, label in enumerate(labels)}
    if network == "backbone":
        rates += [0.0] * len(labels)
    first, hops = [0], list[int]()
    for source, target in np.ndindex(count, count):
        if source != target and (source, target) in platform.routes:
            route = list(platform.routes[source, target])
            between = [place[label] for label in route]
            one = platform.connection_bandwidth(source, target)
            bandwidth = opened[source, target] * one if route else np.inf
            if network == "connections":
                between = [len(rates)] * bool(0 < bandwidth < np.inf)
                rates += [bandwidth] * len(between)
            else:
                for link in between:
                    rates[link] += bandwidth
            hops += [source, *between, target]
        first.append(len(hops))
    names = pd.DataFrame({"name": [f"link {number}" for number in range(len(rates))]})
    paths = Topology(names, count, np.array(first), np.array(hops, dtype=np.int64))
    return paths, np.maximum(rates, 1e-9)  # nothing is sent over a link of rate 0


def execute_periods(
    period: Period,
    periods: int,
    network: str = NETWORK_MODELS[0],
    packets: int = 20,
    latency: float = 0.0,
) -> ExecutedPeriods:
    """Run periods of a schedule in paper B's packet engine.

    Parameters
    ----------
    period : Period
        The schedule (`dlsim.steady.Allocation.periodic`).
    periods : int
        How many periods are run.
    network : {"connections", "backbone"}
        What joins two clusters beside their own links (`NETWORK_MODELS`).
    packets : int
        Number of packets that the largest chunk is cut into; all packets have one size.
    latency : float
        Latency of every link of the backbone on a route, in periods.

    Raises
    ------
    InputError
        For an unknown network.
    """
    one_of("network", network, NETWORK_MODELS)
    platform, length = period.platform, float(period.length)
    paths, rates = lay_out_links(period, network)
    app, target = np.nonzero(period.units > 0)
    units, home = period.units[app, target].astype(float), platform.origin[app]
    links = [
        len(platform.routes[source, at]) if source != at else 0
        for source, at in zip(home, target, strict=True)
    ]
    data = np.where(home == target, 0.0, units * platform.data[app])
    begins = np.arange(periods)[:, None] * length
    requests = pd.DataFrame(
        {
            "arrival": (begins + latency * length * np.array(links)).ravel(),
            "client": np.tile(home, periods),
            "recv": 0.0,
            "send": np.tile(data, periods),
            "work": np.tile(units * platform.work[app], periods),
            "due": (begins + length * np.ones(len(app))).ravel(),
            "server": np.tile(target, periods),
            "app": np.tile(app, periods),
            "units": np.tile(units, periods),
            "begin": np.repeat(begins.ravel(), len(app)),
        }
    ).sort_values("arrival", kind="stable", ignore_index=True)
    sites = pd.DataFrame({"domain": np.arange(platform.clusters)})
    environment = Environment(
        sites.assign(performance=platform.speed),
        sites,
        rates[:, None],
        length,
        requests,
        paths=paths,
        ignore=("server", "app", "units", "begin"),
        packet=max(float(data.max(initial=0.0)) / packets, 1e-9),
    )
    servers = requests["server"].tolist()
    as_planned = Policy(lambda view: servers[view.row], name="as planned")
    outcome = simulate(environment, as_planned, Reading(network="packet", probe=periods * length))
    done, half = outcome.requests["completion"].to_numpy(), periods // 2 * length
    counted = requests[(done > half) & (done <= periods * length)]
    reached = counted.groupby("app")["units"].sum()
    promised = requests.groupby("app")["units"].sum() * (periods - periods // 2) / periods
    part = reached.reindex(promised.index, fill_value=0.0) / promised
    worst = part[platform.is_counted[promised.index]].min()
    longest = ((done - requests["begin"]) / length).max()
    return ExecutedPeriods(outcome, float(worst), float(longest))
