"""A steady state executed: its periods in paper B's packet engine, to test the connection model.

Program (6) promises a throughput if every connection has its bandwidth and a cluster's link is
shared without loss. Here a period's chunks are requests: at the begin of each period every cluster
sends, packet by packet, first come, first served; a chunk is computed once all of it has arrived.
Paper B's engine has no latencies; data enter the network so much later instead.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.bricks import Environment, Outcome, Reading, Scheduler, simulate
from dlsim.bricks.topology import Topology
from dlsim.given import option
from dlsim.steady import Period

#: What joins two clusters beside their own links: all connections of the pair as one link of their
#: joint bandwidth, which is the paper's model; or the backbone's links, of which each carries as
#: much as its open connections together, whosever they are.
NETWORKS = ("connections", "backbone")


class Executed(NamedTuple):
    """What became of a schedule."""

    #: Throughput over what was promised, of the worst application that counts, over the second
    #: half of the periods.
    reached: float
    longest: float  # periods from the begin of a chunk's to its end; the schedule says two
    outcome: Outcome


def _network(period: Period, network: str) -> tuple[Topology, Any]:
    """Lay out the links of the clusters and what joins them; return their bandwidths too."""
    p, opened = period.platform, np.asarray(period.connections, dtype=float)
    count, labels = p.clusters, list(p.links.index)
    rates = p.gateway.tolist()
    place = {label: count + k for k, label in enumerate(labels)}
    first, hops = [0], list[int]()
    if network == "backbone":
        rates += [0.0] * len(labels)
    for k, to in np.ndindex(count, count):
        if k != to and (k, to) in p.routes:
            route = list(p.routes[k, to])
            between = [place[label] for label in route]
            bandwidth = opened[k, to] * p.connection_bandwidth(k, to) if route else np.inf
            if network == "connections":
                between = [len(rates)] * bool(0 < bandwidth < np.inf)
                rates += [bandwidth] * len(between)
            else:
                for link in between:
                    rates[link] += bandwidth
            hops += [k, *between, to]
        first.append(len(hops))
    wide = np.maximum(rates, 1e-9)  # nothing is sent over what is closed
    names = pd.DataFrame({"name": [f"link {k}" for k in range(len(wide))]})
    return Topology(names, count, np.array(first), np.array(hops, dtype=np.int64)), wide


def execute(
    period: Period, periods: int, network: str = NETWORKS[0], packets: int = 20,
    latency: float = 0.0,
) -> Executed:  # fmt: skip
    """Run periods of a schedule in paper B's packet engine, over one of the `NETWORKS`.

    The largest chunk is cut into so many packets, all of one size; latencies are those of every
    link of the backbone on a route, in periods.
    """
    option("network", network, NETWORKS)
    p, length = period.platform, float(period.length)
    topology, wide = _network(period, network)
    app, to = np.nonzero(period.units > 0)
    units, home = period.units[app, to].astype(float), p.origin[app]
    links = [len(p.routes[k, j]) if k != j else 0 for k, j in zip(home, to, strict=True)]
    data = np.where(home == to, 0.0, units * p.data[app])
    late = latency * length * np.array(links)
    rounds = np.arange(periods)[:, None] * length
    table = pd.DataFrame({
        "time": (rounds + late).ravel(), "client": np.tile(home, periods), "recv": 0.0,
        "send": np.tile(data, periods), "work": np.tile(units * p.work[app], periods),
        "deadline": (rounds + length * np.ones(len(app))).ravel(), "server": np.tile(to, periods),
        "app": np.tile(app, periods), "units": np.tile(units, periods),
        "begin": np.repeat(rounds.ravel(), len(app)),
    }).sort_values("time", kind="stable", ignore_index=True)  # fmt: skip
    place = pd.DataFrame({"domain": np.arange(p.clusters)})
    env = Environment(
        place.assign(performance=p.speed), place, wide[:, None], length, table, paths=topology,
        packet=max(float(data.max(initial=0.0)) / packets, 1e-9),
    )  # fmt: skip
    servers = table["server"].tolist()
    plan = Scheduler(lambda view: int(servers[view.row]))
    outcome = simulate(env, plan, Reading(network="packet", probe=periods * length))
    done, half = outcome.requests["completion"].to_numpy(), periods // 2 * length
    reached = table[(done > half) & (done <= periods * length)].groupby("app")["units"].sum()
    promised = table.groupby("app")["units"].sum() * (periods - periods // 2) / periods
    share = (reached.reindex(promised.index, fill_value=0.0) / promised)[p.counted[promised.index]]
    waits = (done - table["begin"]) / length
    return Executed(float(share.min()), float(waits.max()), outcome)
