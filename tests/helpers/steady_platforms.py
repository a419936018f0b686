"""Small platforms for the tests of the steady-state heuristics, seeded and by Hypothesis."""

import copy
import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
from hypothesis import strategies as st

from dlsim.steady import Limits, Platform, Share, topology
from tests.twins.steady_heuristics import Instance

#: Numbers that floats hold exactly, so that equal shares are equal in the kernel too.
DYADIC = {
    "speed": (0, 1, 5, 10, 16, 40),
    "gateway": (0, 2, 7, 20, 64),
    "bandwidth": (0.5, 1, 3, 8, 20),
    "max_connect": (0, 1, 2, 3, 8),
    "unit": (0.5, 1, 2, 4),
    "priority": (0.5, 1, 1, 1, 2, 4),
    "share": (0, 0.125, 0.5, 1),
}


def pair(speed=(10, 2), gateway=20, bandwidth=3, most=2, priority=(1, 1)):
    """Two clusters behind one link, all work and data 1."""
    links = pd.DataFrame({"bandwidth": [float(bandwidth)], "max_connect": [most]})
    one = [1, 1]
    return Platform(
        speed, [gateway] * 2, links, {(0, 1): [0], (1, 0): [0]}, list(priority), one, one
    )


def alone():
    """One cluster of speed 7 with an application of work 7/2 and priority 2."""
    links = pd.DataFrame({"bandwidth": [], "max_connect": []})
    return Platform([7], [1], links, {}, [2], [3.5], [1])


def shared_link():
    """Two clusters without speed that reach a third over one connection."""
    links = pd.DataFrame({"bandwidth": [4.0], "max_connect": [1]})
    routes = {(0, 2): [0], (1, 2): [0]}
    return Platform([0, 0, 10], [20] * 3, links, routes, [1, 1, 0], [1] * 3, [1] * 3)


def light_data():
    """A load of 1e12 work and 1 data per unit on a slow site, one fat link from a fast site."""
    links = pd.DataFrame({"bandwidth": [1e9], "max_connect": [10]})
    routes = {(0, 1): [0], (1, 0): [0]}
    return Platform([1e9, 1e12], [1e9, 1e9], links, routes, [1], [1e12], [1], origin=[0])


def draw_extreme(seed):
    """A platform whose data reach down to 1e-10 and whose priorities span six decades."""
    rng = np.random.default_rng(seed)
    clusters = int(rng.integers(2, 7))
    if rng.random() < 0.5:
        connectivity, most = (float(rng.choice(some)) for some in ((0.3, 0.6, 0.9), (1, 3, 10)))
        p = topology.random(clusters, connectivity, max_connect=most, seed=seed)
    else:
        p = topology.tiers(clusters, seed=seed, wan=8, mans=3, man=5)
    ranges = {"data": (-10, 1), "priority": (-3, 3), "work": (-2, 2)}
    drawn = {name: 10 ** rng.uniform(*ends, p.applications) for name, ends in ranges.items()}
    return replace(p, **drawn)


def _routes(graph, number, rng, missing, empty):
    routes = {}
    for k, to in ((k, to) for k in graph for to in graph if k < to):
        if not nx.has_path(graph, k, to) or rng.random() < missing:
            continue
        path = nx.shortest_path(graph, k, to)
        links = [number[tuple(sorted(edge))] for edge in pairwise(path)]
        links = [] if rng.random() < empty else links
        routes[k, to], routes[to, k] = links, links[::-1]
    return routes


def draw_platform(seed, exact=True, clusters=4, apps=None, limited=True, odd=0.1):
    """A random platform; with `exact` every number is dyadic, else continuous."""
    rng = np.random.default_rng(seed)
    apps = clusters if apps is None else apps
    graph = nx.gnp_random_graph(clusters, 0.6, seed=int(rng.integers(2**31)))
    number = {tuple(sorted(edge)): i for i, edge in enumerate(graph.edges)}

    def some(name, size):
        values = rng.choice(DYADIC[name], size)
        return values if exact or name == "max_connect" else values * rng.uniform(0.5, 2, size)

    links = pd.DataFrame({name: some(name, len(number)) for name in ("bandwidth", "max_connect")})
    priority = some("priority", (apps, clusters) if rng.random() < odd * 2 else apps)
    if rng.random() < odd:
        priority[0] = 0 if apps > 1 else priority[0]
    limits = Limits()
    if limited and rng.random() < 0.4:
        caps = [
            Share(int(rng.integers(clusters)), tuple(rng.choice(clusters, 2)), float(share))
            for share in rng.choice(DYADIC["share"], 2)
        ]
        limits = Limits(tuple(caps), int(rng.integers(0, 4)))
    speed, gateway = some("speed", clusters), some("gateway", clusters)
    routes = _routes(graph, number, rng, odd, odd)
    work, data = some("unit", apps), some("unit", apps)
    origin = rng.integers(clusters, size=apps) if apps != clusters else None
    given = (speed, gateway, links, routes, priority, work, data)
    return Platform(*given, origin=origin, limits=limits)


def draw_wide(seed):
    """A random network with priorities from 1/100 to 1000, several applications, limits."""
    rng = np.random.default_rng(seed)
    clusters = int(rng.integers(4, 10))
    apps = int(rng.integers(2, 2 * clusters))
    priority = rng.choice([0, 0.01, 1, 5, 1000], (apps, clusters))
    priority[0, 0] = 1
    cap = Share(int(rng.integers(clusters)), tuple(rng.choice(clusters, 3).tolist()), rng.random())
    return replace(
        topology.tiers(clusters, seed=seed, wan=8, mans=3, man=5),
        priority=priority,
        work=rng.choice([0.1, 1, 10], apps),
        data=rng.choice([0, 0.01, 1, 10], apps),
        origin=rng.integers(0, clusters, apps),
        limits=Limits((cap,), int(rng.integers(0, 4)) if rng.random() < 0.5 else None),
    )


def as_instance(p):
    """The platform in the twin's plain lists of Fractions."""

    def plain(values):
        return [Fraction(float(value)) for value in values]

    between = {tuple(sorted(route)) for route, links in p.routes.items() if links}
    limited = [(a, b) for a, b in between if p.limits.pair_limit(a, b) < np.inf]
    return Instance(
        s=plain(p.speed),
        g=plain(p.gateway),
        bw={link: Fraction(float(x)) for link, x in p.links["bandwidth"].items()},
        max_connect={link: int(x) for link, x in p.links["max_connect"].items()},
        L=dict(p.routes),
        pi=[plain(row) for row in p.priorities],
        w=plain(p.work),
        delta=plain(p.data),
        origin=[int(k) for k in p.origin],
        caps=[(c.cluster, c.origins, Fraction(float(c.share))) for c in p.limits.shares],
        pairs=[({(a, b), (b, a)}, int(p.limits.pair_limit(a, b))) for a, b in limited],
    )


def platforms(most=4):
    """Hypothesis platforms, degenerate ones among them."""
    number = st.sampled_from([0.0, 1e-3, 0.3, 1.0, 2.5, 7.0, 1e4])
    whole = st.integers(0, 4)

    @st.composite
    def build(draw):
        clusters = draw(st.integers(1, most))
        apps = draw(st.integers(1, most))
        count = draw(st.integers(0, 4))
        bandwidth = [draw(number) for _ in range(count)]
        most_of_each = [float(draw(whole)) for _ in range(count)]
        links = pd.DataFrame({"bandwidth": bandwidth, "max_connect": most_of_each})
        ends = st.tuples(st.integers(0, clusters - 1), st.integers(0, clusters - 1))
        path = st.lists(st.integers(0, count - 1), unique=True, max_size=3)
        paths = path if count else st.just([])
        chosen = draw(st.dictionaries(ends, paths, max_size=8))
        routes = {(k, to): links for (k, to), links in chosen.items() if k != to}
        numbers = [[draw(number) for _ in range(size)] for size in (clusters, clusters, apps, apps)]
        numbers[2][0] = numbers[2][0] or 1.0
        work = [draw(number.filter(bool)) for _ in range(apps)]
        caps = ()
        if draw(st.booleans()):
            share = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
            caps = (Share(draw(st.integers(0, clusters - 1)), (0, clusters - 1), share),)
        speed, gateway, priority, data = numbers
        origin = [draw(st.integers(0, clusters - 1)) for _ in range(apps)]
        limits = Limits(caps, draw(st.none() | st.integers(0, 3)))
        given = (speed, gateway, links, routes, priority, work, data)
        return Platform(*given, origin=origin, limits=limits)

    return build()


def document_of(p):
    """Return the tables of a file that holds a platform; the routes in their order."""

    def rows(**columns):
        known = {name: column for name, column in columns.items() if column is not None}
        return [dict(zip(known, row, strict=True)) for row in zip(*known.values(), strict=True)]

    joins = [name for name in ("start", "end") if name in p.links]
    columns = {name: p.links[name].tolist() for name in ("bandwidth", "max_connect", *joins)}
    sizes = {name: getattr(p, name).tolist() for name in ("priority", "work", "data")}
    ways = [{"from": k, "to": to, "links": list(way)} for (k, to), way in p.routes.items()]
    document = {
        "cluster": rows(
            name=p.site_names, speed=p.speed.tolist(), gateway=p.gateway.tolist(), router=p.router
        ),
        "application": rows(name=p.application_names, origin=p.origin.tolist(), **sizes),
        "link": rows(name=p.links.index.tolist(), **columns),
        "route": ways,
    }
    limits = {"share": [vars(cap) | {"origins": list(cap.origins)} for cap in p.limits.shares]}
    if isinstance(p.limits.pairs, dict):
        named = p.limits.pairs.items()
        limits["pair"] = [{"from": k, "to": to, "most": most} for (k, to), most in named]
    elif p.limits.pairs is not None:
        limits["pairs"] = p.limits.pairs
    return document | {"limits": limits}


def toml(value):
    """Return any value as TOML on one line; what TOML cannot say becomes not a number."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, str | bool):
        return json.dumps(value)
    return "nan" if value is None else repr(value)


def write_toml(path, document):
    path.write_text("".join(f"{name} = {toml(value)}\n" for name, value in document.items()))


#: What a careless or hostile file may hold in the place of anything.
ODD = (
    None, True, -1, 0, 1, 0.5, 1e308, 1e-308, float("nan"), float("inf"), 10**30, "", "x",
    [], [1], ["a"], [[]], {}, {"a": 1},
)  # fmt: skip


def _places(document, path=()):
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in inside:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from _places(value, (*path, key))


@st.composite
def mutated(draw, document):
    """The document with one or two places deleted or replaced by something odd."""
    document = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from(list(_places(document))))
        parent = document
        for key in path:
            parent = parent[key]
        if draw(st.integers(0, 5)) == 0:
            del parent[last]
        else:
            parent[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return document
