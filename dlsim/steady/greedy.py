"""Heuristic G of paper S, section 5.1: a platform as arrays, and what came of it."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.steady.core.greedy import DUST, Left, Network, Trace, serve
from dlsim.steady.model import Floats, Ints, Platform, Reading


def _speed_rows(p: Platform) -> tuple[Ints, NDArray[np.bool_], Floats]:
    """Return the first row of each cluster, who is in each row, and its speed."""
    starts, members, speeds = [0], [], []
    for k in range(p.clusters):
        members.append(np.ones(p.applications, dtype=bool))
        speeds.append(p.speed[k])
        for cap in (cap for cap in p.limits.shares if cap.cluster == k):
            members.append(np.isin(p.origin, cap.origins))
            speeds.append(cap.share * p.speed[k])
        starts.append(len(speeds))
    return np.array(starts, dtype=np.int64), np.array(members), np.array(speeds)


def network(p: Platform) -> Network:
    """Lay a platform out for the kernel."""
    t = p.tables
    rows_of, member, speeds = _speed_rows(p)
    route_of_place = np.repeat(np.arange(len(t.pairs)), np.diff(t.start))
    order = np.argsort(t.link, kind="stable")
    link_of = np.searchsorted(t.link[order], np.arange(len(t.capacity) + 1))
    return Network(
        p.origin, np.array(p.priorities), p.priorities.max(axis=1),
        np.array(p.work), np.array(p.data), rows_of, member, t.bandwidth, t.route, t.start,
        t.link, link_of, route_of_place[order], speeds, np.array(p.gateway),
    )  # fmt: skip


def _unused(net: Network, capacity: Floats, work: Floats, connections: Ints) -> Left:
    away = np.arange(len(net.route)) != net.origin[:, None]
    sent = work * net.data[:, None] * away
    gateway = net.gateway_first - sent.sum(axis=0)
    np.subtract.at(gateway, net.origin, sent.sum(axis=1))
    cluster = np.repeat(np.arange(len(net.route)), np.diff(net.rows_of))
    row = net.row_first - (net.member * (work.T * net.weight)[cluster]).sum(axis=1)
    k, to = np.nonzero(net.route >= 0)
    opened = np.zeros(len(net.start) - 1)
    opened[net.route[k, to]] = connections[k, to]
    route_of_place = np.repeat(np.arange(len(opened)), np.diff(net.start))
    link = capacity - np.bincount(net.link, opened[route_of_place], len(capacity))
    full = np.bincount(route_of_place, link[net.link] < 1, len(opened)).astype(np.int64)
    row[row <= DUST * net.row_first] = 0.0
    gateway[gateway <= DUST * net.gateway_first] = 0.0
    apps, rows = len(net.origin), len(row)
    return Left(
        row, gateway, link, full, work.copy(), connections.astype(np.int64),
        np.zeros(apps), net.highest > 0, np.zeros(len(net.route)),
        np.zeros(apps), np.zeros(rows), np.zeros(rows), np.zeros(rows),
    )  # fmt: skip


class Served(NamedTuple):
    """What heuristic G did."""

    work: Floats
    connections: Ints
    steps: int
    trace: pd.DataFrame


def run_greedy(
    p: Platform, reading: Reading, start: "tuple[Floats, Ints] | None" = None, traced: int = 0
) -> Served:
    """Allocate step by step (section 5.1), from nothing or from an allocation."""
    net, clusters = network(p), p.clusters
    work, connections = start or (
        np.zeros((p.applications, clusters)),
        np.zeros((clusters, clusters), dtype=np.int64),
    )
    left = _unused(net, p.tables.capacity, work, connections)
    if reading.lprg_start == "lpr":
        left.share[:] = (work * p.worth).sum(axis=1)
    whole = np.zeros(traced, dtype=np.int64)
    trace = Trace(whole, whole.copy(), np.zeros(traced))
    prose, rest = reading.local_amount == "prose", reading.stuck == "rest"
    steps = int(serve(net, left, trace, prose, rest))
    frame = pd.DataFrame(trace._asdict()).head(steps)
    return Served(left.work, left.connections, steps, frame)
