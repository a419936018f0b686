"""What paper S runs (section 6), one function per experiment, each a cell of a sweep.

Beyond it, bandwidths drift, runs end, sites come and go.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dlsim.errors import StudyError
from dlsim.given import generator
from dlsim.papers.steady_state.platforms import crossed, features, of_kind, rounding
from dlsim.steady import SWITCHES as OF_ENGINE
from dlsim.steady import Allocation, Limits, Platform, Reading, Share, bound, solve, topology
from dlsim.steady.heuristics import SNAP, randomised_rounding, rounded, served
from dlsim.steady.model import Floats
from dlsim.steady.organisation import day
from dlsim.steady.outcome import trim
from dlsim.steady.program import polish, solve_program
from dlsim.steady.relaxation import unfixed

#: Switches of the engine, then of the platforms, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {**OF_ENGINE, **topology.SWITCHES}
#: The paper's four heuristics in the order of the legends, the cheap ones first.
HEURISTICS = ("G", "LPR", "LPRG", "LPRR")
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
        yield polish(p, randomised_rounding(p, rng).connections)

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
    spare = p.speed - rounded.work.T @ p.work
    added = np.clip(np.diag(refined.work) - np.diag(rounded.work), 0, None) * p.work
    better_off = rounded.values > refined.objective * (1 + TIE)
    free = float(np.clip(spare, 0, None).sum())
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
    top, found = bound(p), {name: solve(p, name, reading=reading) for name in HEURISTICS[:3]}
    row: Row = dict.fromkeys((*HEURISTICS, "MILP", "programs"), np.nan)
    if costly and clusters <= costly_to:
        rng, least = generator(rounding(seed), 0), reading.vertex == "least_connections"
        done = randomised_rounding(p, rng, least=least)
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
    top, program, rng = bound(p), unfixed(p, named), np.random.default_rng(rounding(seed))
    greedy, rows = share(solve(p, "G", reading=reading).objective, top), []
    for vertex in range(1 if named else count):
        if not named:
            program.draw(rng)
        start = rounded(p, program)
        lpr, lprg = (Allocation(p, *one) for one in (start, served(p, reading, start)))
        row: Row = {"vertex": vertex, "G": greedy}
        row |= {"LPR": share(lpr.objective, top), "LPRG": share(lprg.objective, top)}
        use = network_use(p, program.usage, lpr)
        rows.append({**row, **use, "own_use": own_use(p, lpr, lprg)})
    return rows


def across(structure: str, numbers: str, clusters: int, *, switches: Switches, seed: Any) -> Row:
    """Compare the heuristics where one table's numbers meet another's network (claim 12)."""
    reading, p = split_switches(switches)[0], crossed(structure, numbers, clusters, seed)
    usage = solve(p, "LP", reading=reading).connections[tuple(p.tables.pairs.T)]
    below = {"below": _below(usage)}
    return {**ratios(p, ("G", "LPRG", "LPRR"), seed, reading), **below, **features(p)}


def improve(
    kind: str, clusters: int, connectivity: float = 0.4, heterogeneity: float = 0.0, *,
    methods: Sequence[str], switches: Switches, seed: Any,
) -> Row:  # fmt: skip
    """Run methods, and what may follow them, at a spread of the numbers (claim 5) if given."""
    reading, drawn = split_switches(switches)
    if heterogeneity:
        drawn["heterogeneity"] = heterogeneity
    p = of_kind(kind, clusters, seed, connectivity, **drawn)
    return dict(ratios(p, methods, seed, reading))


def timed(clusters: int, *, methods: Sequence[str], switches: Switches, seed: Any) -> list[Row]:
    """Time the methods on a Tiers-like platform (Figure 5)."""
    reading, _ = split_switches(switches)
    small, p = topology.tiers(3), of_kind("Tiers", clusters, seed)
    rows = []
    for name in methods:
        solve(small, name, reading=reading)  # whatever is loaded or compiled once
        search = {"most_nodes": MOST_NODES} if name == "MILP" else {}
        fresh, begun = replace(p), time.process_time()
        found = solve(fresh, name, rounding(seed), reading, **search)
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


def under_policy(kind: str, rule: str, clusters: int, *, switches: Switches, seed: Any) -> Row:
    """Compare the heuristics on a platform whose owners set limits (section 7)."""
    reading, drawn = split_switches(switches)
    free = of_kind(kind, clusters, seed, **drawn)
    p = replace(free, limits=limits_of(rule, clusters))
    return {**ratios(p, HEURISTICS, seed, reading), "allowed": share(bound(p), bound(free))}


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


def under_churn(
    kind: str, clusters: int, *, methods: Sequence[str], hours: float, switches: Switches,
    seed: Any,
) -> list[Row]:  # fmt: skip
    """Serve a virtual organisation whose sites and applications come and go (section 7)."""
    reading, drawn = split_switches(switches)
    p, count = of_kind(kind, clusters, seed, **drawn), max(1, round(PER_HOUR * hours))
    rows = []
    for name in methods:
        done = day(p, name, rounding(seed), hours=hours, applications=count, reading=reading)
        some = {k: v for k, v in done.summary().items() if k != "slowdown"}
        rows.append({"policy": name, **some, "ratio": round(some["ratio"], 6)})
    return rows
