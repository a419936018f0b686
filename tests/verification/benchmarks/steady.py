"""How fast the steady-state methods are beside their peers, and what time buys.

Ratios within one run count, not wall times: the machine is named with every table.
"""

import functools
import tracemalloc

import numpy as np

from dlsim.steady import Reading, ReducedProgram, bound, solve, topology
from dlsim.steady.greedy import run_greedy
from dlsim.steady.rounding import round_randomly
from tests.verification.benchmarks import steady_peers
from tests.verification.benchmarks.parts import Part, at_least, timed

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


def lprr_race(seed=0, tasks=10_000, sizes=(20, 50, 90), sample=SAMPLE, whole=WHOLE):
    """LPRR against a cold scipy.optimize.linprog after every route.

    The peer solves program (6) in full. Beyond `whole` clusters it stops after `sample`
    programs, and its time is that of one program times one more than the routes that our
    run by the paper's rule fixed. `ratio` is its time over ours; `value` and `peer_value`
    are parts of the bound.
    """
    for name, build in NETWORKS.items():
        for clusters in sizes:
            p = build(clusters, seed)
            top, limit = bound(p), None if clusters <= whole else sample
            routes = len(round_randomly(p, np.random.default_rng(seed)).order)
            built, program = timed(functools.partial(steady_peers.Program, p), 1)
            peer, (value, programs, ended) = timed(
                functools.partial(steady_peers.lprr, p, seed, limit, program), 1
            )
            peer = built + peer * (1 if ended else (1 + routes) / programs)
            ours, found = timed(lambda p=p: solve(p, "LPRR", seed=seed), repeats=3)
            yield {
                "network": name, "K": clusters, "seconds": ours, "ratio": peer / ours,
                "value": found.objective / top, "peer_value": value / top if ended else np.nan,
            }  # fmt: skip


def greedy_race(seed=0, tasks=10_000, sizes=(20, 50, 90), repeats=3):
    """Heuristic G compiled against plain Python, to the same allocation."""
    for name, build in NETWORKS.items():
        for clusters in sizes:
            p = build(clusters, seed)
            run_greedy(p, Reading(), engine="compiled")
            ours, served = timed(lambda p=p: run_greedy(p, Reading(), engine="compiled"), repeats)
            peer, (work, steps) = timed(lambda p=p: steady_peers.greedy(p))
            apart = np.abs(work - served.work).max() / work.max()
            yield {
                "network": name, "K": clusters, "steps": served.steps, "milliseconds": 1e3 * ours,
                "ratio": peer / ours, "steps_differ": abs(steps - served.steps),
                "max_difference": apart,
            }  # fmt: skip


#: Wide networks: clusters, and what draws them.
WIDE = {
    "tiers 400": lambda seed: topology.tiers(400, seed=seed),
    "random 200": lambda seed: random_graph(200, seed),
}
#: The same of a real network, which the extra `topologies` holds.
BACKBONE = {"backbone/europe": lambda seed: topology.hub("backbone/europe", seed=seed)}


def wide(seed=0, tasks=10_000, networks=WIDE):
    """Seconds to build a wide platform and its reduced program, to solve, to check.

    `held_MB` is what platform and program take, `peak_MB` the most while they are built.
    """
    for name, build in networks.items():
        platform, p = timed(functools.partial(build, seed), 1)
        made, program = timed(lambda p=p: (p.tables, ReducedProgram(p))[1], 1)
        solved, _ = timed(program.solve, 1)
        proved, top = timed(lambda p=p: bound(p), 1)
        found = solve(p, "LP")
        checked = timed(found.check, 1)[0]
        tracemalloc.start()
        again = build(seed)
        kept = again.tables, ReducedProgram(again)
        held, peak = (size / 2**20 for size in tracemalloc.get_traced_memory())
        tracemalloc.stop()
        del again, kept
        yield {
            "network": name, "K": p.clusters, "links": len(p.links), "platform": platform,
            "program": made, "held_MB": held, "peak_MB": peak, "solve": solved, "bound": proved,
            "check": checked,
            "part_of_bound": found.objective / top,
        }  # fmt: skip


def ready(rows):
    """Rows of a part whose kernels are compiled before anything is timed."""

    @functools.wraps(rows)
    def later(*given, **named):
        run_greedy(tiers_like(5), Reading(), engine="compiled")
        yield from rows(*given, **named)

    return later


PARTS = {
    "lprr": Part(
        "LPRR beside a cold scipy.optimize.linprog after every route, of which 2 are timed",
        functools.partial(ready(lprr_race), sizes=(50, 90), whole=0, sample=2),
        floors=(
            at_least("ratio", 100, network="random", K=50),
            at_least("ratio", 250, network="random", K=90),
        ),
    ),
    "wide": Part("seconds on wide networks, and memory of platform and program", ready(wide)),
    "backbone": Part(
        "the same on Europe's backbone",
        functools.partial(ready(wide), networks=BACKBONE),
        extra="topologies",
    ),
    "greedy": Part("heuristic G compiled, beside plain Python", ready(greedy_race)),
}
