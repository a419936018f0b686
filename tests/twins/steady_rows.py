"""Program (6) and the limits row by row in plain Python: the twin of `dlsim.steady.check`."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dlsim.steady import to_fraction

Number = Callable[[Any], Any]


class Row(NamedTuple):
    """One constraint: what it is, how much is used and allowed, whose work it adds up.

    `is_sending` tells what is moved or opened from what is computed.
    """

    name: str
    used: Any
    limit: Any
    cells: list[tuple[int, int]]
    is_sending: bool = True


def _flows(p: Any, work: Any, number: Number) -> Iterator[Row]:
    """Yield (6b), (6c), the share caps, and work where no route leads."""
    home, clusters = p.origin.tolist(), range(p.clusters)
    cost, size = ([number(x) for x in xs.tolist()] for xs in (p.work, p.data))
    for k in clusters:
        here = [(a, k) for a in range(len(home))]
        used = sum(work[a][k] * cost[a] for a, _ in here)
        yield Row(f"(6b) speed of cluster {k}", used, number(p.speed[k].item()), here, False)
        out = [(a, to) for a, at in enumerate(home) if at == k for to in clusters if to != k]
        away = out + [(a, k) for a, at in enumerate(home) if at != k]
        used = sum(work[a][to] * size[a] for a, to in away)
        yield Row(f"(6c) gateway of cluster {k}", used, number(p.gateway[k].item()), away)
        lost = [(a, to) for a, to in out if (k, to) not in p.routes]
        used = sum(work[a][to] for a, to in lost)
        yield Row(f"work of cluster {k} without a route", used, 0, lost)
    for cap in p.limits.shares:
        held = [(a, cap.cluster) for a, at in enumerate(home) if at in cap.origins]
        used = sum(work[a][to] * cost[a] for a, to in held)
        most = number(cap.share) * number(p.speed[cap.cluster].item())
        yield Row(f"share of {cap.origins} in cluster {cap.cluster}", used, most, held, False)


def _network(p: Any, work: Any, opened: Any, number: Number) -> Iterator[Row]:
    """Yield (6d), (6e), the limits of pairs, and connections that nothing carries."""
    size = [number(x) for x in p.data.tolist()]
    wide = {link: number(x) for link, x in p.links["bandwidth"].items()}
    total = dict.fromkeys(p.links.index, number(0))
    mine: list[list[int]] = [[] for _ in range(p.clusters)]
    for a, k in enumerate(p.origin.tolist()):
        mine[k].append(a)
    for (k, to), route in p.routes.items():
        if not route:
            continue
        for link in route:
            total[link] += opened[k][to]
        cells = [(a, to) for a in mine[k]]
        used = sum(work[a][to] * size[a] for a in mine[k])
        one = min(wide[link] for link in route)
        yield Row(f"(6e) route {k} -> {to}", used, opened[k][to] * one, cells)
        both = opened[k][to] + (opened[to][k] if p.routes.get((to, k)) else 0)
        yield Row(f"connections between {k} and {to}", both, p.limits.pair_limit(k, to), [])
    for link, most in p.links["max_connect"].items():
        yield Row(f"(6d) link {link}", total[link], most, [])
    for k, row in enumerate(opened):
        for to, count in enumerate(row):
            if count and not p.routes.get((k, to)):
                yield Row(f"connections {k} -> {to} without a link", count, 0, [])


def rows_of(p: Any, work: Any, connections: Any, is_exact: bool) -> Iterator[Row]:
    """Yield every constraint that an allocation must meet."""
    number: Number = to_fraction if is_exact else float
    done, opened = (
        [[number(x) for x in row] for row in np.asarray(table).tolist()]
        for table in (work, connections)
    )
    yield from _flows(p, done, number)
    yield from _network(p, done, opened, number)
