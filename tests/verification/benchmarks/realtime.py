"""How fast the real-time engine is, beside its peers, and how its cost grows.

Ratios within one run count, not wall times: the machine is named with every table.
"""

import functools
import math

import numpy as np

from dlsim.live.planner import Planner
from dlsim.realtime import Cluster, Policy, Reading, execution_time, simulate, workload
from tests.helpers import live_work
from tests.verification.benchmarks.parts import Part, at_least, at_most, timed
from tests.verification.benchmarks.peers import PEERS

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
    table = simulate(tasks, cluster, rule, reading=reading, engine="compiled").tasks
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


def race(seed=0, tasks=10_000, repeats=5, policies=RULES):
    """Race every engine that knows a policy on one task list.

    A row per engine: tasks_per_second, ratio (how many times faster dlsim is),
    decisions_differ and max_time_difference (relative) against dlsim.
    """
    table = first_tasks(tasks, seed)
    for policy in policies:
        ours, best = dlsim_engine(table, BASELINE, policy), None
        for name, engine in ENGINES[policy].items():
            engine(table.head(10), BASELINE)
            fast = name in ("dlsim", "C++ -O3")
            seconds, theirs = timed(
                functools.partial(engine, table, BASELINE), 10 * repeats if fast else 1
            )
            best = seconds if best is None else best
            differ, apart = difference(ours, theirs)
            yield {
                "policy": policy, "engine": name, "tasks_per_second": tasks / seconds,
                "ratio": seconds / best, "decisions_differ": differ, "max_time_difference": apart,
            }  # fmt: skip


def cost(tasks, cluster, policy="EDF-OPR-MN", reading=None, repeats=3):
    """Microseconds per task of the engine, and what it had to do."""
    rule, reading = RULES[policy] if reading is None else (policy, reading)
    simulate(tasks.head(10), cluster, rule, reading, engine="compiled")
    seconds, table = timed(
        lambda: simulate(tasks, cluster, rule, reading, engine="compiled").tasks, repeats
    )
    nodes, start, end = (table[name].to_numpy() for name in ("nodes", "start", "completion"))
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


def long_queues(seed=0, tasks=10_000):
    """A line in order of arrival, and one by deadline: the ratio is to the shortest line."""
    for policy, ratios in {"FIFO-DLT": (2, 20, 200, 20_000), "EDFMN": (2, 100)}.items():
        first = None
        for ratio in ratios:
            long = 2 * tasks if ratio == 20_000 else tasks
            table = first_tasks(long, seed, load=2.0, dc_ratio=ratio)
            row = cost(table, BASELINE, policy, Reading())
            first = first or row["us_per_task"]
            yield {
                "policy": policy, "dc_ratio": ratio, **row,
                "million_per_s": 1 / row["us_per_task"], "ratio": row["us_per_task"] / first,
            }  # fmt: skip


def many_nodes(seed=0, tasks=3_000):
    """FIFO-DLT for wide clusters (Cps = 100 N / 16): the ratio is to the narrowest one."""
    for release, sizes in {"estimate": (16, 1024, 65_536), "finish": (16, 1024, 16_384)}.items():
        first = None
        for n in sizes:
            cluster = Cluster(n, 1.0, 100.0 * n / 16)
            table = first_tasks(min(tasks, 3_000), seed, cluster, load=1.0)
            row = cost(table, cluster, "FIFO-DLT", Reading(release=release))
            first = first or row["us_per_task"]
            yield {"release": release, "N": n, **row, "ratio": row["us_per_task"] / first}


def promises(seed=0, tasks=10_000, repeats=5):
    """CPU time of a promise of a live cluster's head, behind so many loads that wait."""
    source = np.random.default_rng(seed)
    for policy in ("pull", "EDF-OPR-MN", "EDF-DLT"):
        planner = Planner(policy, 0.95)
        planner.workers = 8
        for waiting in (0, 10, 100):
            while len(planner.waiting) < waiting + 1:
                units = int(source.integers(100, 1000))
                planner.waiting.append(live_work.new_job(planner, units, 1e6))
            newcomer = planner.waiting.pop()
            seconds, promise = timed(lambda: planner.promise(newcomer, 0.0), repeats)  # noqa: B023
            yield {
                "policy": policy, "waiting": waiting, "promised": promise.admitted,
                "milliseconds": 1e3 * seconds,
            }  # fmt: skip


PARTS = {
    "race": Part(
        "paper I's baseline, beside plain Python, SimPy and C++",
        race,
        floors=(
            at_least("ratio", 0.35, policy="EDF-OPR-MN", engine="C++ -O3"),
            at_least("ratio", 95, policy="EDF-OPR-MN", engine="SimPy"),
        ),
    ),
    "queue": Part(
        "N = 16, load 2, ever longer lines; beside the shortest",
        long_queues,
        floors=(
            at_most("ratio", 1.5, policy="FIFO-DLT", dc_ratio=20_000),
            at_most("ratio", 13, policy="EDFMN", dc_ratio=100),
        ),
    ),
    "nodes": Part("FIFO-DLT, ever more nodes; beside the fewest", many_nodes),
    "promise": Part("a promise of a live cluster, behind loads that wait", promises),
}  # fmt: skip
