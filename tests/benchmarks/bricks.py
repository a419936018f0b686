"""How fast the Grid simulator is, beside its peers, under its readings, and for many nodes.

Ratios within one run count; seconds are those of one CPU, and the machine is named with every
table. Inputs (traces and background jobs) are drawn beforehand and shared by all.
"""

import time

import numpy as np
import pandas as pd

from dlsim.bricks import Environment, Reading, Scheduler, simulate
from dlsim.papers.bricks import cells
from tests.benchmarks.bricks_peers import PEERS
from tests.benchmarks.realtime import machine

DAY = 86_400.0
#: What races: Deadline with everything that takes time.
SCHEDULER = Scheduler("deadline", opt=0.7, load_correction=True, max_fallbacks=2)


def dlsim_engine(env, scheduler):
    """The engine under test, in the peers' words."""
    table = simulate(env, scheduler).requests
    return tuple(table[name].to_numpy() for name in ("server", "fallbacks", "completion"))


ENGINES = {"dlsim": dlsim_engine, **PEERS}


def difference(ours, theirs):
    """Number of requests that went elsewhere, and the largest relative difference in time."""
    differ = int(((ours[0] != theirs[0]) | (ours[1] != theirs[1])).sum())
    apart = np.abs(ours[2] - theirs[2]) / np.maximum(1.0, ours[2])
    return differ, float(apart.max(initial=0.0))


def timed(function, repeats):
    """Best CPU time in seconds of some runs, and the last answer."""
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        answer = function()
        best = min(best, time.process_time() - begin)
    return best, answer


def run(hours=2.0, seed=0, repeats=3, scheduler=SCHEDULER):
    """Race the engine and its peers: Table 1's Grid, 75 nodes, Int = 60 min.

    Returns a row per engine: seconds, ratio (how many times faster dlsim is),
    decisions_differ and max_time_difference (relative) against dlsim.
    """
    env = Environment.random(seed, 60, horizon=3600 * hours)
    ours = dlsim_engine(env, scheduler)
    rows = []
    for name, engine in ENGINES.items():
        again = repeats if name == "dlsim" else 1
        seconds, theirs = timed(lambda engine=engine: engine(env, scheduler), again)
        rows.append((name, seconds, *difference(ours, theirs)))
    names = ["engine", "seconds", "decisions_differ", "max_time_difference"]
    frame = pd.DataFrame(rows, columns=names)
    frame.insert(2, "ratio", frame["seconds"] / frame["seconds"][0])
    return frame


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


def cost_of_readings(hours=24.0, seed=0, repeats=3):
    """Milliseconds to draw an environment and to run a day on 75 nodes, case by case."""
    rows = []
    for name, (reading, options) in CASES.items():
        drawing, env = timed(
            lambda options=options: Environment.random(seed, 60, horizon=3600 * hours, **options),
            1,
        )
        case = env, SCHEDULER, Reading(**reading)
        simulate(*case)
        seconds, out = timed(lambda case=case: simulate(*case), repeats)
        rows.append((name, 1e3 * drawing, 1e3 * seconds, len(out.attempts)))
    return pd.DataFrame(rows, columns=["case", "draw_ms", "run_ms", "submissions"])


def cost_against_nodes(domains=(1, 10, 100), hours=24.0, seed=0, repeats=1):
    """Seconds for a day and for a submission; background jobs of 500 Mops spare memory."""
    rows = []
    for count in domains:
        drawing, env = timed(
            lambda count=count: Environment.random(
                seed, 60, domains=count, horizon=3600 * hours, background_work=500.0
            ),
            1,
        )
        seconds, out = timed(lambda env=env: simulate(env, SCHEDULER), repeats)
        nodes = len(env.servers) + len(env.clients)
        rows.append((nodes, drawing, seconds, len(out.attempts), 1e6 * seconds / len(out.attempts)))
    columns = ["nodes", "draw_s", "run_s", "submissions", "us_per_submission"]
    return pd.DataFrame(rows, columns=columns)


def cost_of_a_sweep(hours=24.0, seed=0):
    """Milliseconds a run of the paper's sweep: 48 schedulers, three replicates, three readings.

    All of a row is in it: drawing the environments, tables of none of the runs.
    """
    versions = [*cells.VERSIONS.values(), *((0, n) for n in range(2, 6))]
    names = ["Greedy", *map(cells.deadline, (0.5, 0.6, 0.7, 0.8, 0.9))]
    how = {"schedulers": [cells.Kind(name, *v) for name in names for v in versions]}
    how["options"] = {"horizon": 3600 * hours}
    seeds = [np.random.SeedSequence(seed, spawn_key=(1 + k,)) for k in range(3)]
    rows = []
    for switches in ({}, {"cost": "work_weighted"}, {"fallback_time": "at_arrival"}):
        begin = time.process_time()
        done = [cells.compare(60.0, switches=switches, seed=one, **how) for one in seeds]
        seconds = time.process_time() - begin
        rows.append((str(switches), len(seeds) * len(done[0]), seconds))
    table = pd.DataFrame(rows, columns=["reading", "runs", "seconds"])
    return table.assign(ms_a_run=1e3 * table["seconds"] / table["runs"])


def report(tasks=10_000, seed=0, repeats=3):
    """Every table as text, with the machine's name above.

    At 10,000 tasks (the default of ``dlsim bench``) that is a race over 2 hours, a day under
    every reading, a sweep, and a day on up to 10,000 nodes; less for fewer tasks.
    """
    share = min(1.0, tasks / 10_000)
    hours, domains = 24 * share, (1, 10, 100, 1333) if share == 1 else (1, 10)
    title = f"The Grid of paper B (Table 1), {SCHEDULER.name}"
    tables = {
        f"{title}, {2 * share:g} h, every engine on the same inputs": run(2 * share, seed, repeats),
        f"{title}, {hours:g} h, one thing changed": cost_of_readings(hours, seed, repeats),
        f"Sweep of paper B, {hours:g} h": cost_of_a_sweep(hours, seed),
        f"{title}, {hours:g} h, more nodes": cost_against_nodes(domains, hours, seed),
    }
    parts = [machine()]
    for title, table in tables.items():
        parts.append(f"{title}\n{table.to_string(index=False, float_format='{:.4g}'.format)}")
    return "\n\n".join(parts)
