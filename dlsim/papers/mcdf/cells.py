"""What paper M runs (section 6), one function per experiment, each a cell of a sweep."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlsim.given import generator
from dlsim.realtime import Cluster, Policy, Reading, own, simulate, workload
from dlsim.realtime.bound import clairvoyant_bound
from dlsim.realtime.model import SWITCHES_M
from dlsim.realtime.partition import least_times, table_of
from dlsim.study.cells import verified

#: Switches of the engine, then of the workload, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {**SWITCHES_M, **workload.SWITCHES["mcdf"]}
#: Legend order of the paper; the last two refuse nobody and are judged by missed deadlines.
WITH_ADMISSION = ("MCDF", "FIFOMN", "EDFMN", "FIFOAN", "EDFAN")
WITHOUT_ADMISSION = ("FIFOANNA", "EDFANNA")
#: What a bound counts.
UNITS = ("tasks", "work")
Row = dict[str, Any]
Switches = Mapping[str, str]
#: Policies of one's own by their labels, a label of the paper's or a new one; none.
Own = Mapping[str, Policy]
NOBODY: Own = {}


def tasks_and_reading(
    cluster: Cluster, load: float, horizon: float, seed: Any, switches: Switches,
    drawn_by: Any = None, **law: Any,
) -> tuple[pd.DataFrame, Reading]:  # fmt: skip
    """Draw a workload of section 6.1, or one's own, under a mixed mapping of switches."""
    reading, drawn = workload.split_reading(switches, "mcdf")
    if drawn_by:
        return own.drawn_by(drawn_by, cluster, load, horizon, seed, **law), Reading.of(reading)
    tasks = workload.mcdf(cluster, load, horizon, seed, **{**drawn, **law})
    # pandas copies attrs whenever a column is taken
    tasks.attrs = {"realised_load": tasks.attrs["realised_load"]}
    return tasks, Reading.of(reading)


def compare(
    load: float, setup: float = 0.0, mode: str = "", value: float = 1.0, *,
    policies: Sequence[str], without: Sequence[str] = (), nodes: int, cms: float, cps: float,
    horizon: float, switches: Switches, check_at: float, seed: Any, mine: Own = NOBODY,
    drawn_by: Any = None,
) -> list[Row]:  # fmt: skip
    """Run all policies on one workload (Figures 4 to 9), at a ratio of the costs (Figure 10)."""
    costs = {"": (cms, cps), "vary_cms": (cps * value, cps), "vary_cps": (cms, cms / value)}[mode]
    cluster = Cluster(nodes, *costs, setup, setup)
    tasks, reading = tasks_and_reading(cluster, load, horizon, seed, switches, drawn_by)
    fewer = float((tasks["sigma"] <= table_of(cluster).least[nodes]).mean())
    load_of = tasks.attrs["realised_load"]
    common, rows = {"realised_load": load_of, "tasks": len(tasks), "fewer": fewer}, []
    for name in (*policies, *(without if setup == 0 else ())):
        s = simulate(tasks, cluster, mine.get(name, name), reading)
        if load == check_at:
            verified(s, seed)
        row = {"ratio": s.reject_ratio, "work_ratio": s.work_reject_ratio, "delay_growth": np.nan}
        if not s.policy.admission:
            delay = s.tasks["start"] - s.tasks["arrival"]
            quarter = max(1, len(delay) // 4)
            grown = delay.iloc[-quarter:].mean() - delay.iloc[:quarter].mean()
            row = {"ratio": s.miss_ratio, "work_ratio": np.nan, "delay_growth": grown}
        rows.append({"policy": name, **row, **common})
    return rows


def bounded(
    load: float, *, nodes: int, cms: float, cps: float, horizon: float, switches: Switches,
    seed: Any, drawn_by: Any = None,
) -> list[Row]:  # fmt: skip
    """Bound what any planner must refuse of the workload of Figure 4."""
    cluster = Cluster(nodes, cms, cps)
    tasks, reading = tasks_and_reading(cluster, load, horizon, seed, switches, drawn_by)
    ratios = {
        name: clairvoyant_bound(tasks, cluster, "opr", work=name == "work", link=reading.link).ratio
        for name in UNITS
    }
    return [{"what": name, "ratio": ratio} for name, ratio in ratios.items()]


def negotiated(
    load: float, factor: float, *, policies: Sequence[str], nodes: int, cms: float, cps: float,
    horizon: float, switches: Switches, check_at: float, seed: Any, mine: Own = NOBODY,
    drawn_by: Any = None,
) -> list[Row]:  # fmt: skip
    """Run policies whose refused clients accept a later deadline (section 5)."""
    cluster = Cluster(nodes, cms, cps)
    tasks, reading = tasks_and_reading(cluster, load, horizon, seed, switches, drawn_by)
    rows = []
    for name in policies:
        policy = mine.get(name, name)
        if factor > 1 and not isinstance(policy, str) and policy.is_own:
            continue  # no offers are made by functions
        s = simulate(tasks, cluster, policy, reading, negotiate=factor if factor > 1 else 0.0)
        if load == check_at:
            verified(s, seed)
        stretch, changed = s.stretch, s.stretch != 1
        rows.append({
            "policy": name, "ratio": s.reject_ratio, "agreed": float(changed.mean()),
            "stretch": float(stretch[changed].mean()) if changed.any() else 1.0,
            "realised_load": tasks.attrs["realised_load"],
        })  # fmt: skip
    return rows


#: One-at-a-time sensitivities: the parameters of the system and their base values.
BASE = {"Cms": 10.0, "Cps": 10.0, "N": 10, "ST": 5.0, "SC": 5.0, "mean size": 100.0}


def doubled(
    parameter: str, load: float, *, policies: Sequence[str], horizon: float,
    switches: Switches, seed: Any, mine: Own = NOBODY, drawn_by: Any = None,
) -> list[Row]:  # fmt: skip
    """Run policies with one parameter of `BASE` doubled (section 6.4)."""
    v = {name: value * (2 if name == parameter else 1) for name, value in BASE.items()}
    cluster = Cluster(int(v["N"]), v["Cms"], v["Cps"], v["ST"], v["SC"])
    tasks, reading = tasks_and_reading(
        cluster, load, horizon, seed, switches, drawn_by, mean=v["mean size"]
    )
    runs = {name: simulate(tasks, cluster, mine.get(name, name), reading) for name in policies}
    return [{"policy": name, "ratio": s.reject_ratio} for name, s in runs.items()]


def _pools(
    count: int, size: int, load: float, spread: float, cluster: Cluster, seed: Any
) -> Iterator[pd.DataFrame]:
    """Draw queues at time 0, each with one newcomer after an exponential interval.

    Deadlines reach from a task's minimum time to `spread` times what the whole queue takes
    on all nodes one by one: under the paper's own, few queues of three can all be admitted
    and have a choice of plans.
    """
    for child in range(count):
        rng = generator(seed, size, child)
        draws = 100.0 + 100.0 * rng.standard_normal(20 * (size + 1))
        sigma = draws[draws > 0][: size + 1]
        least = least_times(sigma, cluster)
        deadline = least + (spread * least[:size].sum() - least).clip(0) * rng.random(size + 1)
        arrival = np.append(np.zeros(size), rng.exponential(float(least.mean()) / load))
        yield pd.DataFrame({"arrival": arrival, "sigma": sigma, "deadline": deadline})


def order_costs(
    queue: int, *, pools: int, spread: float, nodes: int, cms: float, cps: float,
    switches: Switches, seed: Any, mine: Own = NOBODY,
) -> list[Row]:  # fmt: skip
    """Compare the cost of MCDF's order with all orders of random queues (section 5)."""
    cluster, excess = Cluster(nodes, cms, cps), []
    reading = Reading.of(workload.split_reading(switches, "mcdf")[0])
    for both in _pools(pools, queue, 1.0, spread, cluster, seed):
        pool = both.iloc[:queue]
        s = simulate(pool, cluster, mine.get("MCDF", "MCDF"), reading)
        if s.reject_ratio == 0:
            more = s.total_cost / _costs(pool, cluster, reading)["cost"].min() - 1
            excess.append(more if more > 1e-9 else 0.0)  # equal but for the order of a sum
    worse = np.array(excess) > 0
    mean, beaten = (float(np.mean(x)) if len(excess) else np.nan for x in (excess, worse))
    return [{"excess": mean, "beaten": beaten, "pools": len(excess)}]


def _costs(pool: pd.DataFrame, cluster: Cluster, reading: Reading) -> pd.DataFrame:
    """Cost of every order that admits the whole queue, and whether the newcomer gets in."""
    waiting = pool["arrival"].to_numpy() == 0
    # one copy of the pool per order of its queue, far apart
    count, size = int(waiting.sum()), len(pool)
    orders = np.array(list(itertools.permutations(range(count))))
    gap = float((pool["arrival"] + pool["deadline"]).max() + 1)
    copies = pd.concat([pool] * len(orders), ignore_index=True)
    copies["arrival"] += np.repeat(np.arange(len(orders)), size) * gap
    copies["place"] = np.pad(orders, ((0, 0), (0, size - count)), constant_values=count).ravel()
    policy = Policy(lambda tasks: tasks["place"], "min", overtake=True)
    done = simulate(copies, cluster, policy, reading).tasks
    took = (done["completion"] - done["start"]) * done["nodes"]
    queue = np.flatnonzero(np.tile(waiting, len(orders)))
    cost = took.iloc[queue].groupby(queue // size).sum()
    admitted = done["admitted"].to_numpy().reshape(-1, size)
    table = pd.DataFrame({"cost": cost, "newcomer": admitted[:, -1]})
    return table.iloc[np.flatnonzero(admitted[:, waiting].all(axis=1))]


def newcomers(
    load: float, *, queue: int, pools: int, spread: float, nodes: int, cms: float,
    cps: float, switches: Switches, seed: Any,
) -> list[Row]:  # fmt: skip
    """Admit a newcomer behind the cheapest and behind the dearest plan of a queue."""
    cluster, cheap, dear = Cluster(nodes, cms, cps), [], []
    reading = Reading.of(workload.split_reading(switches, "mcdf")[0])
    for pool in _pools(pools, queue, load, spread, cluster, seed):
        plans = _costs(pool, cluster, reading).sort_values("cost", kind="stable")
        if len(plans) > 1 and plans["cost"].iloc[-1] > plans["cost"].iloc[0] * (1 + 1e-9):
            first, *_, last = plans["newcomer"].astype(bool)
            cheap.append(first)
            dear.append(last)
    shares = {"cheap": cheap, "dear": dear}
    means = {name: float(np.mean(x)) if x else np.nan for name, x in shares.items()}
    return [means | {"pools": len(cheap)}]
