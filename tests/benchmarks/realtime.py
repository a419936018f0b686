"""How fast the real-time engine is, beside its peers, and how its cost grows.

Ratios within one run count, not wall times: the machine is named with every table.
"""

import functools
import math
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from dlsim.realtime import Cluster, Policy, Reading, execution_time, simulate, workload
from tests.benchmarks.peers import PEERS

#: Paper I, section 5: the baseline cluster.
BASELINE = Cluster(nodes=16, cms=1.0, cps=100.0)
#: The policies that race, each with its reading.
RULES = {
    "EDF-OPR-MN": (Policy("edf", "min", admission=True, overtake=False), Reading(link="shared")),
    "EDF-DLT": ("EDF-DLT", Reading()),
}


def first_tasks(count=10_000, seed=0, cluster=BASELINE, load=0.8, dc_ratio=2.0):
    """So many tasks of paper I's workload (section 5.1)."""
    interval = execution_time(200.0, cluster.nodes, cluster) / load
    enough = count + 10 * math.sqrt(count) + 20  # ten standard deviations
    tasks = workload.dcratio(cluster, load, enough * interval, seed, dc_ratio=dc_ratio)
    return tasks.head(count)


def dlsim_engine(tasks, cluster, policy="EDF-OPR-MN"):
    """The engine under test, in the peers' words."""
    rule, reading = RULES[policy]
    table = simulate(tasks, cluster, rule, reading=reading).tasks
    return tuple(table[name].to_numpy() for name in ("nodes", "start", "completion"))


ENGINES = {
    policy: {"dlsim": functools.partial(dlsim_engine, policy=policy), **peers}
    for policy, peers in PEERS.items()
}


def difference(ours, theirs):
    """Number of decisions that differ, and the largest relative difference in time."""
    differ = int((ours[0] != theirs[0]).sum())
    both = (ours[0] > 0) & (theirs[0] > 0)
    a, b = (np.concatenate([times[both] for times in run[1:]]) for run in (ours, theirs))
    return differ, float((np.abs(a - b) / np.maximum(1.0, np.abs(a))).max(initial=0.0))


def timed(engine, tasks, cluster, repeats):
    """Best wall time in seconds of some runs, and the last answer."""
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        answer = engine(tasks, cluster)
        best = min(best, time.perf_counter() - begin)
    return best, answer


def machine():
    """Processor, cores, and the versions that matter, on one line."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = [*models, platform.processor() or platform.machine()][0]
    packages = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy", "simpy"))
    return f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}, {packages}"


def run(tasks=10_000, seed=0, repeats=3, policy="EDF-OPR-MN"):
    """Race every engine that knows a policy on one task list.

    Returns a row per engine: tasks_per_second, ratio (how many times faster dlsim is),
    decisions_differ and max_time_difference (relative) against dlsim.
    """
    table = first_tasks(tasks, seed)
    rows, ours = [], dlsim_engine(table, BASELINE, policy)
    for name, engine in ENGINES[policy].items():
        engine(table.head(10), BASELINE)
        seconds, theirs = timed(engine, table, BASELINE, repeats)
        rows.append((name, tasks / seconds, *difference(ours, theirs)))
    names = ["engine", "tasks_per_second", "decisions_differ", "max_time_difference"]
    frame = pd.DataFrame(rows, columns=names)
    frame.insert(2, "ratio", frame["tasks_per_second"][0] / frame["tasks_per_second"])
    return frame


def cost(tasks, cluster, repeats):
    """Microseconds per task of the engine, and what it had to do."""
    dlsim_engine(tasks.head(10), cluster)
    seconds, (nodes, start, end) = timed(dlsim_engine, tasks, cluster, repeats)
    ran, arrival = nodes > 0, tasks["arrival"].to_numpy()
    return {
        "us_per_task": 1e6 * seconds / len(tasks),
        "reject_ratio": 1 - ran.mean(),
        "nodes_per_task": nodes[ran].mean(),
        "running": present(arrival, start[ran], end[ran]),
        "waiting": present(arrival, arrival[ran], start[ran]),
    }


def present(instants, since, until):
    """Mean number of intervals [since, until) that cover an instant."""
    entered = np.searchsorted(np.sort(since), instants, side="right")
    left = np.searchsorted(np.sort(until), instants, side="right")
    return (entered - left).mean()


def cost_against_nodes(tasks=10_000, seed=0, repeats=3, same_tasks=True):
    """Cost per task for 16 .. 16384 nodes.

    With `same_tasks` the nodes get slower as they get more (Cps = 100 N / 16), so that
    times, node shares and numbers of tasks in flight stay comparable; otherwise Cps stays
    and only N grows.
    """
    rows = []
    for n in 16 * 4 ** np.arange(6):
        cluster = Cluster(int(n), 1.0, 100.0 * n / 16 if same_tasks else 100.0)
        rows.append({"N": n, **cost(first_tasks(tasks, seed, cluster), cluster, repeats)})
    return pd.DataFrame(rows)


def cost_against_queue(tasks=10_000, seed=0, repeats=3, load=2.0):
    """Cost per task in overload with deadlines of 2 .. 200 times the minimum time.

    `exponent` is the slope between a row and the one above it, log cost over log queue:
    below 2 the cost grows less than quadratically with the queue.
    """
    ratios = [2, 6, 20, 60, 200]
    rows = []
    for ratio in ratios:
        table = first_tasks(tasks, seed, load=load, dc_ratio=ratio)
        rows.append({"dc_ratio": ratio, **cost(table, BASELINE, repeats)})
    frame = pd.DataFrame(rows)
    slopes = np.diff(np.log(frame["us_per_task"])) / np.diff(np.log(frame["waiting"]))
    frame["exponent"] = np.concatenate([[np.nan], slopes])
    return frame


def report(tasks=10_000, seed=0, repeats=3):
    """Every table as text, with the machine's name above."""
    tables = {
        f"Paper I baseline, {policy}, {reading.link} link, {tasks} tasks, seed {seed}": run(
            tasks, seed, repeats, policy
        )
        for policy, (_, reading) in RULES.items()
    }
    tables |= {
        "Cost against N, tasks in flight comparable (Cps = 100 N / 16)": cost_against_nodes(
            tasks, seed, repeats
        ),
        "Cost against N, nothing else changed": cost_against_nodes(
            tasks, seed, repeats, same_tasks=False
        ),
        "Cost against queue length, load 2": cost_against_queue(tasks, seed, repeats),
    }
    parts = [machine()]
    for title, table in tables.items():
        parts.append(f"{title}\n{table.to_string(index=False, float_format='{:.4g}'.format)}")
    return "\n\n".join(parts)
