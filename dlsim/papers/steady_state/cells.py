"""What paper S runs (section 6), one function per experiment, each a cell of a sweep.

Beyond it, bandwidths drift, runs end, sites come and go. The paper's platforms form strata (K,
and for random graphs connectivity). A replicate is one platform of each stratum; replicate r
takes the r-th of a fixed order, so that more replicates extend a sample and enough of them
visit everything.
"""

import functools
import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from numpy.random import SeedSequence

from dlsim.errors import StudyError
from dlsim.files import read_csv, shared_file
from dlsim.given import generator
from dlsim.papers.steady_state.executed import execute
from dlsim.steady import SWITCHES as OF_ENGINE
from dlsim.steady import Allocation, Limits, Platform, Reading, Share, bound, solve, topology
from dlsim.steady.broker import day
from dlsim.steady.graphs import prune
from dlsim.steady.heuristics import SNAP, fill_greedily, round_down, round_randomly
from dlsim.steady.model import Floats
from dlsim.steady.outcome import trim
from dlsim.steady.program import polish, solve_program
from dlsim.steady.relaxation import ReducedProgram
from dlsim.study.cells import verified

#: Platforms in the paper, and configurations per topology and per combination of Table 2.
PRINTED = {"Tiers": 29_298, "random": 269_835}
TOPOLOGIES = 100
#: Redundancies of networks like those of Tiers, from trees to richly connected ones.
REDUNDANCY = {
    "trees": {"RW": 1, "RM": 1, "RMW": 1},
    "Tiers-like": {"RW": 4, "RM": 3, "RMW": 2},
    "Tiers-like, rich": {"RW": 8, "RM": 6, "RMW": 4},
}
#: Random graphs by their connectivity.
CONNECTIVITY = {"random 0.1": 0.1, "random 0.4": 0.4, "random 0.8": 0.8}
STRUCTURES = (*REDUNDANCY, *CONNECTIVITY)
#: Where in the middle of Table 2 its numbers are set beside another table's.
MIDDLE = {"gateway": 450.0, "bandwidth": 50.0, "max_connect": 25.0, "heterogeneity": 0.6}
# Spawn keys that no replicate reaches.
_TOPOLOGY, _NUMBERS, _ORDER, _ROUNDING = range(10**6, 10**6 + 4)
#: Switches of the engine, then of the platforms, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {**OF_ENGINE, **topology.SWITCHES}
#: The paper's heuristics in the order of its legends, and those run on every platform: LPRR takes
#: a program for every route.
HEURISTICS = ("G", "LPR", "LPRG", "LPRR")
CHEAP = ("G", "LPR", "LPRG")
#: What a second stage and a last linear program add.
IMPROVED = (
    "G", "G+polish", "LPR", "LPR+least", "LPR+polish", "LPRG", "LPRG+least", "LPRG+polish",
    "LPRG+least+polish", "LPRR", "LPRR+least", "LPRR+polish",
)  # fmt: skip
#: Objectives within this of each other, relative, are equal.
TIE = 1e-6
#: Where the exact search ends; what is not proved by then is left out.
MOST_NODES = 200
Row = dict[str, Any]
Switches = Mapping[str, str]


def printed_table(number: int) -> pd.DataFrame:
    """Return Table 1 or 2 as printed."""
    path = shared_file(f"data/papers/steady-state-table{number}.csv")
    return read_csv(path, {"parameter": "text", "law": "text", "first": "positive"})


@functools.cache
def steps(number: int, parameter: str) -> tuple[float, ...]:
    """Return the values that a table prints as steps.

    >>> steps(2, "gateway")
    (50.0, 250.0, 450.0, 650.0, 850.0)
    """
    row = printed_table(number).set_index("parameter").loc[parameter]
    first, last, step = map(float, row[["first", "second", "step"]])
    count = math.floor((last - first) / step + 1e-9) + 1
    return tuple(round(first + step * k, 9) for k in range(count))


def _of_replicate(seed: SeedSequence, purpose: int) -> SeedSequence:
    return SeedSequence(seed.entropy, spawn_key=(purpose, int(seed.spawn_key[-1])))


def rounding(seed: SeedSequence) -> SeedSequence:
    """Return the randomness of LPRR on a replicate's platform, apart from the platform's."""
    return _of_replicate(seed, _ROUNDING)


def tiers_network(clusters: int, seed: SeedSequence) -> tuple[nx.Graph, list[Any]]:
    """Return a network of the Tiers-like sample and its clusters' routers."""
    place = SeedSequence(seed.entropy, spawn_key=(_TOPOLOGY, int(seed.spawn_key[-1]) % TOPOLOGIES))
    graph = topology.tiers_graph(place)
    return graph, topology.some_nodes(graph, clusters, generator(place, _ORDER))


def combination(connectivity: float, seed: SeedSequence) -> dict[str, float]:
    """Return the means of Table 2 that a replicate takes at one connectivity."""
    names = ("gateway", "bandwidth", "max_connect", "heterogeneity")
    every = list(itertools.product(*(steps(2, name) for name in names)))
    order = generator(seed.entropy, _ORDER).permutation(len(every))
    place = len(steps(2, "connectivity")) * int(seed.spawn_key[-1]) + round(10 * connectivity)
    return dict(zip(names, every[order[place % len(every)]], strict=True))


def of_kind(
    kind: str, clusters: int, seed: SeedSequence, connectivity: float = 0.4, **drawn: Any
) -> Platform:
    """Return a platform of either sample; of the random one with other means where given."""
    if kind == "Tiers":
        graph, routers = tiers_network(clusters, seed)
        return topology.table1(prune(graph, routers), routers, _of_replicate(seed, _NUMBERS))
    means: dict[str, Any] = {**combination(connectivity, seed), **drawn}
    return topology.random(clusters, connectivity, seed=seed, **means)


def crossed(structure: str, numbers: str, clusters: int, seed: SeedSequence) -> Platform:
    """Put the numbers of either table on either kind of network."""
    if structure in REDUNDANCY:
        graph = topology.tiers_graph(seed, **REDUNDANCY[structure])
        routers = topology.some_nodes(graph, clusters, generator(seed, _ORDER))
        graph = prune(graph, routers)
    else:
        drawn = topology.random(clusters, CONNECTIVITY[structure], seed=seed)
        routers, graph = list(range(clusters)), nx.empty_graph(clusters)
        graph.add_edges_from(drawn.links[["start", "end"]].itertuples(index=False))
    if numbers == "Table 1":
        return topology.table1(graph, routers, seed)
    # those of Table 2 for any network (reading "one")
    rng = np.random.default_rng(_of_replicate(seed, _NUMBERS))

    def spread(mean: float, size: int) -> Any:
        return mean * (1 + MIDDLE["heterogeneity"] * rng.uniform(-1.0, 1.0, size))

    edges = graph.number_of_edges()
    speed, gateway = spread(100.0, clusters), spread(MIDDLE["gateway"], clusters)
    wide, most = spread(MIDDLE["bandwidth"], edges), spread(MIDDLE["max_connect"], edges)
    for (_, _, edge), one, count in zip(graph.edges(data=True), wide, most, strict=True):
        edge.update(bandwidth=float(one), max_connect=int(count))
    one_each = {name: np.ones(clusters) for name in ("priority", "work", "data")}
    return Platform.from_graph(graph, routers, speed=speed, gateway=gateway, **one_each)


def features(p: Platform) -> dict[str, float]:
    """Describe the network between the clusters."""
    graph = nx.Graph(p.links[["start", "end"]].to_numpy().tolist())
    lengths, links = np.diff(p.tables.start), max(len(p.links), 1)
    trees = len(graph) - nx.number_connected_components(graph) if len(graph) else 0
    return {
        "treeness": trees / links,
        "degree": 2 * links / max(len(graph), 1),
        "hops": float(lengths.mean()) if len(lengths) else 0.0,
        "shared": float(lengths.sum()) / links,
    }


def split_switches(switches: Switches) -> tuple[Reading, dict[str, Any]]:
    """Split a reading into the engine's part and the generator's."""
    drawn: dict[str, Any] = {k: v for k, v in switches.items() if k in topology.SWITCHES}
    return Reading.of({k: v for k, v in switches.items() if k not in drawn}), drawn


def share(value: float, top: float) -> float:
    """Return an objective over a bound, to six decimals: rounding error is no difference."""
    return round(value / top, 6) if top > 0 else 1.0


def ratios(p: Platform, methods: Sequence[str], seed: Any, reading: Reading) -> dict[str, float]:
    """Solve a platform by several methods."""
    top, draws = bound(p), rounding(seed)
    return {name: share(solve(p, name, draws, reading).objective, top) for name in methods}


def optimum(p: Platform, found: Sequence[Allocation], rng: np.random.Generator) -> Allocation:
    """Search for the exact optimum from the best of some allocations.

    Mostly it is the bound. Where the best work on the connections of one of them, or of one
    more rounding, attains that, a search would only find another such.
    """
    top = bound(p)

    def starts() -> Iterator[Allocation]:
        for one in sorted(found, key=lambda a: a.objective, reverse=True):
            yield polish(p, one.connections)
        yield polish(p, round_randomly(p, rng).connections)

    better = starts()
    best = next(better)
    while share(best.objective, top) < 1 and (other := next(better, None)):
        best = max(best, other, key=lambda a: a.objective)
    return solve_program(p, start=best, most_nodes=MOST_NODES)


def _below(usage: Floats) -> float:
    """Return which part of the relaxed connections in use are less than one."""
    used = usage[usage > SNAP]
    return float((used < 1 - SNAP).mean()) if len(used) else np.nan


def network_use(p: Platform, usage: Floats, rounded: Allocation) -> Row:
    """Measure what rounding down does to relaxed connections (claims 9 and 10)."""
    hops, kept = np.diff(p.tables.start), rounded.connections[tuple(p.tables.pairs.T)]
    filled, opened = float((usage * hops).sum()), float((kept * hops).sum())
    return {"lost": 1 - opened / filled if filled > SNAP else np.nan, "below": _below(usage)}


def own_use(p: Platform, rounded: Allocation, refined: Allocation) -> float:
    """Measure how much of what LPR leaves free its better-off owners take (claim 10)."""
    added = np.clip(np.diag(refined.work) - np.diag(rounded.work), 0, None) * p.work
    better_off = rounded.values > refined.objective * (1 + TIE)
    free = float(np.clip(p.speed - rounded.work.T @ p.work, 0, None).sum())
    return float(added[better_off].sum()) / free if free > SNAP * p.speed.sum() else np.nan


def compare(
    clusters: int, connectivity: float = 0.4, *, kind: str, costly_to: int, costly_every: int,
    switches: Switches, seed: Any,
) -> Row:  # fmt: skip
    """Compare the heuristics (Figure 4).

    On every n-th platform, each connectivity in its turn, also the exact search and, up
    to a size, LPRR: with the programs it solves in the paper, one after every route it fixes.
    """
    reading, drawn = split_switches(switches)
    p = of_kind(kind, clusters, seed, connectivity, **drawn)
    costly = (int(seed.spawn_key[-1]) + round(10 * connectivity)) % costly_every == 0
    top, found = bound(p), {name: solve(p, name, reading=reading) for name in CHEAP}
    row: Row = dict.fromkeys((*HEURISTICS, "MILP", "programs"), np.nan)
    if costly and clusters <= costly_to:
        rng, least = generator(rounding(seed), 0), reading.vertex == "least_connections"
        done = round_randomly(p, rng, least_connections=least)
        found["LPRR"] = Allocation(p, trim(p, done.work, done.connections), done.connections)
        found["LPRR"].check()
        row["programs"] = 1 + sum(used > SNAP for _, used, _ in done.order)
    row |= {name: share(a.objective, top) for name, a in found.items()}
    if costly:
        best = optimum(p, list(found.values()), generator(rounding(seed), 1))
        row["MILP"] = share(best.objective, top) if best.is_proved else np.nan
    return row


def at_vertices(
    clusters: int, connectivity: float = 0.4, *, kind: str, count: int, switches: Switches,
    seed: Any,
) -> list[Row]:  # fmt: skip
    """Round random optimal vertices of the relaxed program, or the one that the reading names."""
    reading, drawn = split_switches(switches)
    p = of_kind(kind, clusters, seed, connectivity, **drawn)
    named = reading.vertex == "least_connections"
    top, program, rng = bound(p), ReducedProgram(p), np.random.default_rng(rounding(seed))
    program.solve(named)
    greedy, rows = share(solve(p, "G", reading=reading).objective, top), []
    for vertex in range(1 if named else count):
        if not named:
            program.draw(rng)
        start = round_down(p, program)
        lpr, lprg = (Allocation(p, *one) for one in (start, fill_greedily(p, reading, start)))
        row: Row = {"vertex": vertex, "G": greedy}
        row |= {"LPR": share(lpr.objective, top), "LPRG": share(lprg.objective, top)}
        rows.append(
            {
                **row,
                **network_use(p, program.connections_used, lpr),
                "own_use": own_use(p, lpr, lprg),
            }
        )
    return rows


def across(structure: str, numbers: str, clusters: int, *, switches: Switches, seed: Any) -> Row:
    """Compare the heuristics where one table's numbers meet another's network (claim 12)."""
    reading, p = split_switches(switches)[0], crossed(structure, numbers, clusters, seed)
    usage = solve(p, "LP", reading=reading).connections[tuple(p.tables.pairs.T)]
    found = ratios(p, ("G", "LPRG", "LPRR"), seed, reading)
    return {**found, "below": _below(usage), **features(p)}


def improve(
    kind: str, clusters: int, connectivity: float = 0.4, heterogeneity: float = 0.0,
    rule: str = "none", *, methods: Sequence[str], switches: Switches, seed: Any,
) -> Row:  # fmt: skip
    """Run methods at a spread of the numbers (claim 5), owners' limits by one of `POLICIES`."""
    reading, drawn = split_switches(switches)
    if heterogeneity:
        drawn["heterogeneity"] = heterogeneity
    p = free = of_kind(kind, clusters, seed, connectivity, **drawn)
    if rule != "none":
        p = replace(free, limits=limits_of(rule, clusters))
    return {**ratios(p, methods, seed, reading), "allowed": share(bound(p), bound(free))}


def timed(clusters: int, *, methods: Sequence[str], switches: Switches, seed: Any) -> list[Row]:
    """Time the methods on a Tiers-like platform (Figure 5)."""
    reading, _ = split_switches(switches)
    small, p = topology.tiers(3), of_kind("Tiers", clusters, seed)
    rows = []
    for name in methods:
        # what is loaded or compiled once
        solve(small, name, reading=reading, engine="compiled")
        search = {"most_nodes": MOST_NODES} if name == "MILP" else {}
        fresh, begun = replace(p), time.process_time()
        found = solve(fresh, name, rounding(seed), reading, engine="compiled", **search)
        row: Row = {"policy": name, "seconds": time.process_time() - begun}
        rows.append({**row, "proved": float(found.is_proved) if search else np.nan})
    return rows


#: Policies of a virtual organisation, loosest first (section 7).
POLICIES = ("none", "4 per pair", "1 per pair", "10 % for others", "both")


def limits_of(policy: str, clusters: int) -> Limits:
    """Return the limits that a policy of section 7 sets."""
    everyone = range(clusters) if policy in ("10 % for others", "both") and clusters > 1 else ()
    others = [Share(k, tuple(j for j in everyone if j != k), 0.1) for k in everyone]
    return Limits(tuple(others), {"4 per pair": 4, "1 per pair": 1, "both": 1}.get(policy))


#: Who knows which bandwidths when a period's schedule is made, best informed last.
INFORMED = ("frozen", "new work only", "last period's", "this period's")
#: Decades by which a bandwidth departs from its mean, and what is left of it a period later.
DECADES, MEMORY = 0.3, 0.9
#: Periods whose simulation must complete what the formula says.
SIMULATED = 4
#: What serves a virtual organisation whose sites come and go, and applications per hour.
SERVING, PER_HOUR = ("G", "LPRG", "LPRR"), 5 / 3


def drifts(size: int, periods: int, rng: np.random.Generator) -> Floats:
    """Draw how bandwidths depart from their means, in decades."""
    walk = rng.standard_normal((periods, size))
    for t in range(1, periods):
        walk[t] = MEMORY * walk[t - 1] + np.sqrt(1 - MEMORY**2) * walk[t]
    return DECADES * walk


def drifted(p: Platform, decades: Floats) -> Platform:
    """Change the bandwidths of a platform."""
    factor, links = 10.0**decades, len(p.links)
    backbone = p.links.assign(bandwidth=p.links["bandwidth"] * factor[:links])
    return replace(p, links=backbone, gateway=p.gateway * factor[links:])


def delivered(p: Platform, planned: Allocation) -> float:
    """Return what a schedule achieves where bandwidths are not those it was made for."""
    real = Allocation(p, trim(p, planned.work, planned.connections), planned.connections)
    real.check()
    return real.objective


def adapt(clusters: int, *, periods: int, method: str, switches: Switches, seed: Any) -> list[Row]:
    """Follow schedules on a Tiers-like platform whose bandwidths drift (sections 1 and 7)."""
    reading, _ = split_switches(switches)
    p, draws = of_kind("Tiers", clusters, seed), rounding(seed)
    decades = drifts(len(p.links) + p.clusters, periods, np.random.default_rng(draws))
    states = [drifted(p, row) for row in decades]
    plans = [solve(state, method, draws, reading) for state in states]
    rows = []
    for t, state in enumerate(states):
        new_work, top = polish(state, plans[0].connections), bound(state)
        used = (plans[0], new_work, plans[max(t - 1, 0)], plans[t])
        rows += [
            {"period": t + 1, "policy": name, "ratio": share(delivered(state, plan), top)}
            for name, plan in zip(INFORMED, used, strict=True)
        ]
    return rows


def start_up(
    kind: str, clusters: int, *, lengths: Sequence[int], counts: Sequence[int], method: str,
    switches: Switches, seed: Any,
) -> list[Row]:  # fmt: skip
    """Measure what whole load units, the first and the last period cost (claim 14)."""
    reading, drawn = split_switches(switches)
    p = of_kind(kind, clusters, seed, **drawn)
    a, rows = solve(p, method, rounding(seed), reading), []
    for length in lengths:
        period = a.periodic(length)
        units = period.simulate(SIMULATED).groupby("application")["computed"].sum()
        counted = units.reindex(range(len(a.work)), fill_value=0).to_numpy()
        if (counted != period.completed(SIMULATED)).any():
            raise StudyError(f"period {length}: the simulation completes {counted}")
        for count in counts:
            done = period.completed(count).astype(float)
            planned = period.units.sum(axis=1).astype(float) * count
            lost = 1 - done[planned > 0] / planned[planned > 0]
            value = float((done * p.worth.max(axis=1))[p.counted].min()) / (count * length)
            row = {"length": length, "count": count, "ends": float(lost.max(initial=0.0))}
            rows.append({**row, "kept": share(value, a.objective)})
    return rows


#: How a schedule is executed: network, packets of the largest chunk, latency of a link in periods.
EXECUTIONS = {
    "connections, 100 packets": ("connections", 100, 0.0),
    "connections, 5 packets": ("connections", 5, 0.0),
    "connections, latency": ("connections", 100, 0.1),
    "backbone, 100 packets": ("backbone", 100, 0.0),
    "backbone, 5 packets": ("backbone", 5, 0.0),
}


def executed(
    kind: str, clusters: int, *, length: int, periods: int, method: str, switches: Switches,
    seed: Any,
) -> list[Row]:  # fmt: skip
    """Run a steady state period by period in paper B's packet engine."""
    reading, drawn = split_switches(switches)
    p = of_kind(kind, clusters, seed, **drawn)
    period = solve(p, method, rounding(seed), reading).periodic(length)
    rows: list[Row] = []
    for name, how in EXECUTIONS.items():
        done = execute(period, periods, *how)
        if not rows:
            verified(done.outcome, seed)
        rows.append({"how": name, "reached": done.reached, "longest": done.longest})
    return rows


def under_churn(
    kind: str, clusters: int, *, methods: Sequence[str], hours: float, switches: Switches, seed: Any
) -> list[Row]:
    """Serve a virtual organisation whose sites and applications come and go (section 7)."""
    reading, drawn = split_switches(switches)
    p, count = of_kind(kind, clusters, seed, **drawn), max(1, round(PER_HOUR * hours))
    rows = []
    for name in methods:
        done = day(p, name, rounding(seed), hours=hours, applications=count, reading=reading)
        some = {k: v for k, v in done.summary().items() if k != "slowdown"}
        rows.append({"policy": name, **some, "ratio": round(some["ratio"], 6)})
    return rows
