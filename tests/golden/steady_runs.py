"""Random runs of paper S: every method with its suffixes, every switch, policies of owners."""

import numpy as np
import pandas as pd

from dlsim.steady import Limits, Platform, Reading, Share, bound, solve, topology
from tests.golden.blocks import cell, lines

#: Methods and switches of the frozen runs, in the order in which they were drawn: a run keeps its
#: draws when a method or a switch is added.
METHODS = (
    "LP", "LP+least", "MILP", "MILP+polish", "MILP+fair", "G", "G+polish", "G+fair", "LPR",
    "LPR+least", "LPR+polish", "LPRG", "LPRG+least", "LPRG+polish", "LPRG+fair", "LPRR",
    "LPRR+least", "LPRR+polish",
)  # fmt: skip
SWITCHES = {
    "local_amount": ("printed", "prose"),
    "stuck": ("prose", "rest"),
    "vertex": ("solver", "least_connections"),
    "lprg_start": ("lpr", "zero"),
}


def draw_dyadic(rng: np.random.Generator) -> Platform:
    """Draw a small platform of numbers that floats hold exactly: ties are met."""
    clusters = int(rng.integers(2, 6))
    pairs = [(k, to) for k in range(clusters) for to in range(k + 1, clusters)]
    pairs = [pair for pair in pairs if rng.random() < 0.7]
    links = pd.DataFrame(
        {
            "bandwidth": rng.choice([0.5, 1, 3, 8, 20], len(pairs)),
            "max_connect": rng.choice([0, 1, 2, 3, 8], len(pairs)).astype(float),
        }
    )
    routes = {}
    for link, (k, to) in enumerate(pairs):
        routes[k, to] = routes[to, k] = [link]
    for k, middle, to in [(0, 1, 2), (0, 2, 3), (1, 2, 3)]:  # some routes over two links
        if max(k, middle, to) < clusters and (k, to) not in routes:
            path = [routes.get((k, middle)), routes.get((middle, to))]
            if all(path):
                routes[k, to] = [*path[0], *path[1]]
                routes[to, k] = routes[k, to][::-1]
    apps = clusters if rng.random() < 0.7 else int(rng.integers(1, 2 * clusters))
    shape = (apps, clusters) if rng.random() < 0.2 else apps
    limits = Limits()
    if rng.random() < 0.3:
        cap = Share(int(rng.integers(clusters)), (0, clusters - 1), float(rng.choice([0, 0.5, 1])))
        limits = Limits((cap,), int(rng.integers(0, 4)))
    return Platform(
        rng.choice([0, 1, 5, 10, 16, 40], clusters),
        rng.choice([2, 7, 20, 64], clusters),
        links,
        routes,
        rng.choice([0.5, 1, 1, 1, 2, 4], shape),
        rng.choice([0.5, 1, 2, 4], apps),
        rng.choice([0.5, 1, 2, 4], apps),
        origin=rng.integers(clusters, size=apps) if apps != clusters else None,
        limits=limits,
    )


def draw_platform(rng: np.random.Generator) -> Platform:
    """Draw a platform: dyadic, of a random graph, or Tiers-like."""
    kind, seed = rng.random(), int(rng.integers(10**6))
    if kind < 0.5:
        return draw_dyadic(rng)
    if kind < 0.75:
        size, connectivity = int(rng.integers(3, 9)), float(rng.choice([0.2, 0.4, 0.8]))
        return topology.random(size, connectivity, gateway=float(seed))
    return topology.tiers(int(rng.integers(3, 9)), seed=seed, wan=8, mans=3, man=5)


def run(number: int, engine: str = "auto") -> str:
    """Return the block of a run."""
    rng = np.random.default_rng([3, number])
    method, p = METHODS[number % len(METHODS)], draw_platform(rng)
    changes = {k: str(rng.choice(v)) for k, v in SWITCHES.items() if rng.random() < 0.3}
    a = solve(p, method, Reading.from_switches(changes), engine, seed=number)
    text = [f"{method} {changes}", f"{cell(a.objective)} of {cell(bound(p))}"]
    work = pd.DataFrame(np.asarray(a.work, dtype=float))
    return "\n".join([*text, lines(work), lines(pd.DataFrame(np.asarray(a.connections)))])
