"""Beyond the tables of paper S: bandwidths drift, runs end, sites come and go (cells of sweeps)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dlsim.errors import StudyError
from dlsim.papers.steady_state.platforms import of_kind, rounding
from dlsim.papers.steady_state.runs import Row, Switches, share, split_switches
from dlsim.steady import Allocation, Platform, bound, polish, solve
from dlsim.steady.allocation import trim
from dlsim.steady.model import Floats
from dlsim.steady.organisation import day

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
    noise = rng.standard_normal((periods, size))
    walk = np.empty((periods, size))
    walk[0] = noise[0]
    for t in range(1, periods):
        walk[t] = MEMORY * walk[t - 1] + np.sqrt(1 - MEMORY**2) * noise[t]
    return DECADES * walk


def drifted(p: Platform, decades: Floats) -> Platform:
    """Change the bandwidths of a platform."""
    factor, links = 10.0**decades, len(p.links)
    backbone = p.links.assign(bandwidth=p.links["bandwidth"] * factor[:links])
    return replace(p, links=backbone, gateway=p.gateway * factor[links:])


def delivered(p: Platform, planned: Allocation) -> float:
    """Return what a schedule achieves where bandwidths are not those it was made for."""
    cut = trim(p, planned.work, planned.connections)
    real = Allocation(p, cut, planned.connections)
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
        used = {
            "frozen": plans[0],
            "new work only": polish(state, plans[0].connections),
            "last period's": plans[max(t - 1, 0)],
            "this period's": plans[t],
        }
        top = bound(state)
        for name in INFORMED:
            ratio = share(delivered(state, used[name]), top)
            rows.append({"period": t + 1, "policy": name, "ratio": ratio})
    return rows


def start_up(
    kind: str, clusters: int, *, lengths: Sequence[int], counts: Sequence[int], method: str,
    switches: Switches, seed: Any,
) -> list[Row]:  # fmt: skip
    """Measure what whole load units, the first and the last period cost (claim 14)."""
    reading, drawn = split_switches(switches)
    a = solve(of_kind(kind, clusters, seed, **drawn), method, rounding(seed), reading)
    rows = []
    for length in lengths:
        period = a.periodic(length)
        units = period.simulate(SIMULATED).groupby("application")["computed"].sum()
        counted = units.reindex(range(len(a.work)), fill_value=0).to_numpy()
        if (counted != period.completed(SIMULATED)).any():
            raise StudyError(f"period {length}: the simulation completes {counted}")
        for count in counts:
            rows.append(_ends(a, period, count, length))
    return rows


def _ends(a: Allocation, period: Any, count: int, length: int) -> Row:
    p, done = a.platform, period.completed(count).astype(float)
    planned = period.units.sum(axis=1).astype(float) * count
    served = planned > 0
    lost = 1 - done[served] / planned[served]
    value = float((done * p.worth.max(axis=1))[p.counted].min()) / (count * length)
    return {
        "length": length, "count": count, "ends": float(lost.max(initial=0.0)),
        "kept": share(value, a.objective),
    }  # fmt: skip


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
