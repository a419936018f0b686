"""How fast the Grid simulator is, beside its peers, under its readings, and for many nodes.

Ratios within one run count; seconds are those of one CPU, and the machine is named with every
table. Inputs (traces and background jobs) are drawn beforehand and shared by all.
"""

import functools

import numpy as np

from dlsim.bricks import Environment, Policy, Reading, simulate
from tests.verification.benchmarks.bricks_peers import PEERS
from tests.verification.benchmarks.parts import Part, at_most, timed

DAY = 86_400.0
#: What races: Deadline with everything that takes time.
SCHEDULER = Policy("deadline", opt=0.7, load_correction=True, max_fallbacks=2)


def dlsim_engine(env, policy):
    """The engine under test, in the peers' words."""
    table = simulate(env, policy, engine="compiled").requests
    return tuple(table[name].to_numpy() for name in ("server", "fallbacks", "completion"))


ENGINES = {"dlsim": dlsim_engine, **PEERS}


def difference(ours, theirs):
    """Number of requests that went elsewhere, and the largest relative difference in time."""
    differ = int(((ours[0] != theirs[0]) | (ours[1] != theirs[1])).sum())
    apart = np.abs(ours[2] - theirs[2]) / np.maximum(1.0, ours[2])
    return differ, float(apart.max(initial=0.0))


def race(seed=0, tasks=10_000, hours=1.0, repeats=3, policy=SCHEDULER):
    """Race the engine and its peers: Table 1's Grid, 75 nodes, Int = 60 min.

    A row per engine: seconds, ratio (how many times faster dlsim is), decisions_differ and
    max_time_difference (relative) against dlsim.
    """
    env = Environment.random(seed, 60, horizon=3600 * hours * share(tasks))
    ours, best = dlsim_engine(env, policy), None
    for name, engine in ENGINES.items():
        seconds, theirs = timed(
            functools.partial(engine, env, policy), repeats if name == "dlsim" else 1
        )
        best = seconds if best is None else best
        differ, apart = difference(ours, theirs)
        yield {
            "engine": name, "seconds": seconds, "ratio": seconds / best,
            "decisions_differ": differ, "max_time_difference": apart,
        }  # fmt: skip


def share(tasks):
    """Part of the full size that a number of tasks stands for."""
    return min(1.0, tasks / 10_000)


#: A change of the default reading, or of the inputs, each.
CASES = {
    "default": ({}, {}),
    "load util": ({"load": "util"}, {}),
    "load queue": ({"load": "queue"}, {}),
    "predictor adaptive": ({"predictor": "adaptive"}, {}),
    "predictor perfect": ({"predictor": "perfect"}, {}),
    "network packet": ({"network": "packet"}, {}),
    "server loads by trace": ({}, {"server_background": "trace"}),
    "links: others' data": ({}, {"link_background": "data", "link_data": 100.0}),
}


def cost_of_readings(seed=0, tasks=10_000, hours=24.0, repeats=3, cases=CASES):
    """Milliseconds to draw an environment and to run a day on 75 nodes, case by case.

    `ratio` is the time over that of the first case.
    """
    first, horizon = None, 3600 * hours * share(tasks)
    for name, (reading, options) in cases.items():
        drawing, env = timed(
            functools.partial(Environment.random, seed, 60, horizon=horizon, **options), 1
        )
        call = functools.partial(simulate, env, SCHEDULER, Reading(**reading), engine="compiled")
        call()
        seconds, out = timed(call, repeats)
        first = first or seconds
        yield {
            "case": name, "draw_ms": 1e3 * drawing, "run_ms": 1e3 * seconds,
            "submissions": len(out.attempts), "ratio": seconds / first,
        }  # fmt: skip


def cost_against_nodes(seed=0, tasks=10_000, domains=(1, 10, 1333), hours=24.0, repeats=1):
    """Seconds for a day and for a submission; background jobs of 500 Mops spare memory."""
    for count in domains if share(tasks) == 1 else domains[:2]:
        draw = functools.partial(
            Environment.random, seed, 60, domains=count, horizon=3600 * hours * share(tasks),
            background_work=500.0,
        )  # fmt: skip
        drawing, env = timed(draw, 1)
        seconds, out = timed(
            functools.partial(simulate, env, SCHEDULER, engine="compiled"), repeats
        )
        asked = len(out.attempts)
        yield {
            "domains": count, "nodes": len(env.servers) + len(env.clients),
            "draw_s": drawing, "run_s": seconds, "submissions": asked,
            "us_per_submission": 1e6 * seconds / asked,
        }  # fmt: skip


PARTS = {
    "race": Part(f"Table 1's Grid, 1 h, {SCHEDULER.name}, every engine on the same inputs", race),
    "day": Part(
        "a day on 75 nodes, one thing changed; beside the default",
        cost_of_readings,
        floors=(at_most("run_ms", 4, case="default"), at_most("run_ms", 40, case="network packet")),
    ),
    "nodes": Part(
        "a day, ever more nodes", cost_against_nodes, floors=(at_most("run_s", 8, domains=1333),)
    ),
}
