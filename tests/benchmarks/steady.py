"""How fast the steady-state methods are beside their peers, and what time buys.

Ratios within one run count, not wall times: the machine is named with every table.
"""

import time
from importlib.metadata import version

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.steady import Reading, ReducedProgram, bound, solve, topology
from dlsim.steady.greedy import run_greedy
from dlsim.steady.heuristics import randomised_rounding
from tests.benchmarks import steady_peers
from tests.benchmarks.realtime import machine

#: Cold programs that are timed where LPRR by scipy would take too long to wait for.
SAMPLE = 8
#: Clusters up to which the peer runs to the end.
WHOLE = 20


def tiers_like(clusters, seed=0):
    """Paper S, Table 1, on a Tiers-like network."""
    return topology.tiers(clusters, seed=seed)


def random_graph(clusters, seed=0):
    """Paper S, Table 2: connectivity 0.4, few narrow connections, speeds that differ."""
    return topology.random(clusters, 0.4, gateway=250.0, bandwidth=10.0, max_connect=5.0, seed=seed)


NETWORKS = {"tiers": tiers_like, "random": random_graph}


def timed(function, repeats=1):
    """Best wall time in seconds of some calls, and the last answer."""
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        answer = function()
        best = min(best, time.perf_counter() - begin)
    return best, answer


#: How LPRR runs in the race: routes between two solutions, runs of which the best is kept.
WAYS = ((1, 1), (8, 1), (8, 5))


def lprr_race(sizes=(20, 50, 90), seed=0, ways=WAYS, sample=SAMPLE, whole=WHOLE):
    """LPRR against a cold scipy.optimize.linprog after every route.

    The peer solves program (6) in full. Beyond `whole` clusters it stops after `sample`
    programs, and its time is that of one program times one more than the routes that our
    run by the paper's rule fixed. `ratio` is its time over ours; `value` and `peer_value`
    are parts of the bound.
    """
    rows = []
    for name, build in NETWORKS.items():
        for clusters in sizes:
            p = build(clusters, seed)
            top, limit = bound(p), None if clusters <= whole else sample
            routes = len(randomised_rounding(p, np.random.default_rng(seed)).order)
            peer, (value, programs, ended) = timed(
                lambda p=p, limit=limit: steady_peers.lprr(p, seed, most=limit)
            )
            peer *= 1 if ended else (1 + routes) / programs
            for batch, runs in ways:
                ours, found = timed(
                    lambda p=p, b=batch, r=runs: solve(p, "LPRR", seed, batch=b, runs=r)
                )
                rows.append({
                    "network": name, "K": clusters, "batch": batch, "runs": runs,
                    "seconds": ours, "ratio": peer / ours, "value": found.objective / top,
                    "peer_value": value / top if ended else np.nan,
                })  # fmt: skip
    return pd.DataFrame(rows)


def greedy_race(sizes=(20, 50, 90), seed=0, repeats=3):
    """Heuristic G compiled against plain Python, to the same allocation."""
    rows = []
    for name, build in NETWORKS.items():
        for clusters in sizes:
            p = build(clusters, seed)
            run_greedy(p, Reading())
            ours, served = timed(lambda p=p: run_greedy(p, Reading()), repeats)
            peer, (work, steps) = timed(lambda p=p: steady_peers.greedy(p))
            apart = np.abs(work - served.work).max() / work.max()
            rows.append({
                "network": name, "K": clusters, "steps": served.steps, "milliseconds": 1e3 * ours,
                "ratio": peer / ours, "steps_differ": abs(steps - served.steps),
                "max_difference": apart,
            })  # fmt: skip
    return pd.DataFrame(rows)


#: What the table of qualities runs: method, batch, runs.
QUALITY = (
    ("G", 1, 1), ("G+polish", 1, 1), ("LPR", 1, 1), ("LPRG", 1, 1), ("LPRG+least", 1, 1),
    ("LPRG+polish", 1, 1), ("LPRR", 1, 1), ("LPRR", 8, 1), ("LPRR", 8, 5), ("LPRR+polish", 8, 5),
    ("LPRR+least", 8, 1),
)  # fmt: skip


def quality(clusters=30, seeds=5):
    """Part of the bound and seconds of each method: means over platforms of one size."""
    rows = []
    for name, build in NETWORKS.items():
        platforms = [build(clusters, seed) for seed in range(seeds)]
        for p in platforms:
            bound(p)
        for method, batch, runs in QUALITY:
            made = [
                timed(lambda p=p, m=method, b=batch, r=runs: solve(p, m, batch=b, runs=r))
                for p in platforms
            ]
            rows.append({
                "network": name, "method": method, "batch": batch, "runs": runs,
                "part_of_bound": np.mean([a.ratio for _, a in made]),
                "worst": min(a.ratio for _, a in made),
                "seconds": np.mean([seconds for seconds, _ in made]),
            })  # fmt: skip
    return pd.DataFrame(rows)


def mixed(sizes=(10, 20, 30), seeds=3):
    """Seconds until the mixed program is proved optimal, LPRR to begin with included."""
    rows = []
    for name, build in NETWORKS.items():
        for clusters in sizes:
            platforms = [build(clusters, seed) for seed in range(seeds)]
            made = [timed(lambda p=p: solve(p, "MILP")) for p in platforms]
            seconds = [taken for taken, _ in made]
            rows.append({
                "network": name, "K": clusters, "proved": sum(a.is_proved for _, a in made),
                "of": seeds, "median_seconds": np.median(seconds), "most_seconds": max(seconds),
                "part_of_bound": np.mean([a.ratio for _, a in made]),
            })  # fmt: skip
    return pd.DataFrame(rows)


#: Wide networks: clusters, and what draws them.
WIDE = {
    "tiers 400": lambda seed: topology.tiers(400, seed=seed),
    "random 200": lambda seed: random_graph(200, seed),
    "backbone/europe": lambda seed: topology.hub("backbone/europe", seed=seed),
}


def wide(seed=0, networks=WIDE):
    """Seconds to build a wide platform and its reduced program, to solve, to check."""
    rows = []
    for name, build in networks.items():
        try:
            platform, p = timed(lambda build=build: build(seed))
        except InputError:  # without topohub
            continue
        made, program = timed(lambda p=p: (p.tables, ReducedProgram(p))[1])
        solved, _ = timed(program.solve)
        proved, top = timed(lambda p=p: bound(p))
        found = solve(p, "LP")
        rows.append({
            "network": name, "K": p.clusters, "links": len(p.links), "platform": platform,
            "program": made, "solve": solved, "bound": proved, "check": timed(found.check)[0],
            "columns": len(program.cells), "of": len(program.rows.app),
            "part_of_bound": found.objective / top,
        })  # fmt: skip
    return pd.DataFrame(rows)


def report(sizes=(20, 50, 90), seed=0, seeds=3, clusters=30, proved=(10, 20, 30)):
    """Every table as text, with the machine's name above."""
    run_greedy(tiers_like(5), Reading())  # compiled before anything is timed
    tables = {
        "LPRR against a cold scipy.optimize.linprog after every route": lprr_race(sizes, seed),
        "Heuristic G compiled against plain Python": greedy_race(sizes, seed),
        "Seconds on wide networks": wide(seed),
        f"Quality and time, K = {clusters}": quality(clusters, seeds),
        "The mixed program to proved optimality": mixed(proved, seeds),
    }
    parts = [f"{machine()}, highspy {version('highspy')}, scipy {version('scipy')}"]
    for title, table in tables.items():
        parts.append(f"{title}\n{table.to_string(index=False, float_format='{:.4g}'.format)}")
    return "\n\n".join(parts)
