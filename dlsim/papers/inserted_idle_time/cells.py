"""What paper I runs (section 5), one function per experiment, each a cell of a sweep."""

import math
from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlsim.compiled import latest_finish
from dlsim.realtime import Cluster, Policy, Reading, Schedule, simulate, workload
from dlsim.realtime import own as brought
from dlsim.realtime.bound import clairvoyant_bound
from dlsim.realtime.engine import split_load
from dlsim.realtime.partition import execution_time
from dlsim.study.cells import verified

#: How plannings are counted (`Schedule.counts`); the first is the default.
RULES = ("admitted", "arrival", "replanned", "dispatched", "rtgrid")
COUNTS = ("s_iits", "opt_iits", "opt_iits_ii", "non_positive")
#: Generators of `dlsim.realtime.workload` whose switches a reading may name.
GENERATORS = ("dcratio", "user_split")
#: Switches of the engine that matter here (batches, set-up costs, overtaking and no admission
#: do not occur), then of the workload, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = Reading.switches("I") | {
    k: v for name in GENERATORS for k, v in workload.SWITCHES[name].items()
}
#: Suffixes of the policies, FIFO and EDF alike, in the order of the paper and beyond.
ROLES = (
    "DLT", "I", "II", "EXACT", "EXACT-N", "UMR-IIT", "OPR-MN", "OPR-FRAG", "EQ-MN", "UMR-MN",
    "US", "AN",
)  # fmt: skip
#: Those that start on a node before all nodes of the task are free, and their partitions.
EARLY = ("DLT", "I", "II", "EXACT", "EXACT-N", "UMR-IIT")
EARLY_PARTITIONS = ("dlt", "I", "II", "exact", "exact-n", "umr-iit", "pieces")
#: Those whose use of idle time is measured: OPR-MN, which leaves it unused, comes first.
USED = ("OPR-MN", *EARLY)
#: Partitions of one load on given release times: legend, partition, and what is compared.
PARTITIONS = {
    "no idle time used": ("opr", "completion"),
    "remodel, estimate": ("dlt", "estimate"),
    "remodel, actual": ("dlt", "completion"),
    "constraint 2": ("II", "completion"),
    "optimum": ("exact", "completion"),
}
#: Of all policies those that refuse least, each somewhere.
BEST = ("FIFOAN", "EDFAN", "FIFO-EXACT-N", "EDF-EXACT-N")
Row = dict[str, Any]
#: No policies of one's own.
NOBODY: Mapping[str, Policy] = {}
Switches = Mapping[str, str]


def named(order: str, role: str) -> str:
    """Return the legend name of a policy.

    >>> [named("EDF", role) for role in ("DLT", "II", "AN")]
    ['EDF-DLT', 'EDDO-II', 'EDFAN']
    """
    if role in ("I", "II"):
        return {"FIFO": "FIDO", "EDF": "EDDO"}[order] + f"-{role}"
    return f"{order}{role}" if role == "AN" else f"{order}-{role}"


def both(roles: Sequence[str]) -> tuple[str, ...]:
    """Return the FIFO and the EDF policy of every role."""
    return tuple(named(order, role) for order in ("FIFO", "EDF") for role in roles)


def order_of(name: str, policy: Policy) -> str:
    """Return with which of the paper's orders a policy is compared: its name's, else its own."""
    is_fifo = name.startswith("FI") if name in both(ROLES) else policy.order == "fifo"
    return "FIFO" if is_fifo else "EDF"


#: What all workloads of a study have in common.
Setting = namedtuple("Setting", "nodes cps mean dc_ratio horizon")


def drawn(
    setting: Setting, load: float, tau: float, switches: Switches, seed: Any,
    drawn_by: Any = None,
) -> tuple[pd.DataFrame, Cluster, Reading, str]:  # fmt: skip
    """Draw a workload of section 5.1, or one's own, under a mixed mapping of switches."""
    cluster = Cluster(setting.nodes, tau, setting.cps)
    rest = {name: value for name, value in switches.items() if name != "counting"}
    reading, law, users = workload.split_reading(rest, *GENERATORS)
    options: dict[str, Any] = {**law, "mean": setting.mean, "dc_ratio": setting.dc_ratio}
    if drawn_by:
        tasks = brought.drawn_by(drawn_by, cluster, load, setting.horizon, seed, **options)
    else:
        tasks = workload.dcratio(cluster, load, setting.horizon, seed, **options)
    if "user_nodes" not in tasks:
        tasks = workload.user_split(tasks, cluster, seed, **users)
    return tasks, cluster, Reading.of(reading), switches.get("counting", RULES[0])


def waits(s: Schedule) -> pd.DataFrame:
    """Return when each node of each task became free, and how much of its wait was used.

    A node is free for a task from its release by the one before, but not before the task
    arrived (for policies that start early: not before it started). It waits until the last
    node of the task is free. Of this wait the time is *used* in which it receives or
    computes.
    """
    chunks, partition = s.chunks, s.policy.partition
    early = callable(partition) or partition in EARLY_PARTITIONS
    code, tasks = pd.factorize(chunks["task"])
    order = np.lexsort((chunks["node"], code))  # stable: rounds stay in their order
    code, node = code[order], chunks["node"].to_numpy()[order]
    sent, end = (chunks[name].to_numpy()[order] for name in ("send_start", "compute_end"))
    same = (code[1:] == code[:-1]) & (node[1:] == node[:-1])
    busy_from = sent.copy()
    busy_from[1:][same] = np.maximum(sent[1:], end[:-1])[same]  # rounds may overlap
    first = np.flatnonzero(np.r_[True, ~same])
    size = np.diff(np.r_[first, len(order)])
    code, node, done = code[first], node[first], np.maximum.reduceat(end, first)
    ran = s.tasks.loc[tasks]
    at_once = s.reading.release == "finish" or partition == "pieces"
    released = done if at_once else ran["estimate"].to_numpy()[code]
    floor = ran["start" if early else "arrival"].to_numpy()[code]
    before = pd.Series(released).groupby(node).shift(fill_value=-np.inf)
    release = np.maximum(floor, before.to_numpy())
    each = np.flatnonzero(np.r_[True, code[1:] != code[:-1]])
    last = np.maximum.reduceat(release, each)[code]
    used = np.add.reduceat((np.minimum(end, np.repeat(last, size)) - busy_from).clip(0), first)
    columns = {"task": tasks[code], "node": node, "release": release, "last": last, "used": used}
    return pd.DataFrame(columns | {"send_start": sent[first], "compute_end": done})


def idle_use(s: Schedule) -> Row:
    """Sum the inserted idle node time of a schedule, and what of it was used."""
    table = waits(s)
    wait = table["last"] - table["release"]
    real = table["last"] > latest_finish(table["release"], table["compute_end"] - table["release"])
    return {"idle": float(wait[real].sum()), "used": float(table["used"][real].sum())}


def _counts(s: Schedule, rule: str) -> Any:
    """Return a row of `Schedule.counts` as floats, NaN where the rule has no such count."""
    return s.counts.astype(float).loc[rule, list(COUNTS)].to_dict()


def compare(
    load: float, tau: float, nodes: int = 0, dc_ratio: float = 0.0, *, policies: Sequence[str],
    use: Sequence[str] = (), setting: Setting, switches: Switches,
    check_at: float = math.nan, seed: Any, mine: Mapping[str, Policy] = NOBODY,
    drawn_by: Any = None,
) -> list[Row]:  # fmt: skip
    """Run all policies on one workload (Figures 2 to 4, Table 1); 0 = as the setting says.

    ``discordant`` counts the tasks that a policy decides otherwise than the remodel in its
    order (`order_of`), which has to come before it (else NaN).
    """
    own = {"nodes": nodes or setting.nodes, "dc_ratio": dc_ratio or setting.dc_ratio}
    here = setting._replace(**own)
    tasks, cluster, reading, counting = drawn(here, load, tau, switches, seed, drawn_by)
    rows, decided = [], {}
    for name in policies:
        s = simulate(tasks, cluster, mine.get(name, name), reading)
        if load == check_at:
            verified(s, seed)
        admitted = decided[name] = s.tasks["admitted"]
        row = {
            "policy": name, "ratio": s.reject_ratio,
            "realised_load": tasks.attrs["realised_load"], "tasks": len(tasks),
            "admitted": int(admitted.sum()),
        }  # fmt: skip
        in_line = s.reading.backfill == "off" and not (s.policy.overtake or s.policy.is_own)
        if s.policy.partition in ("dlt", "I", "II") and in_line:
            row |= _counts(s, counting)
        row |= idle_use(s) if name in use else {}
        remodel = decided.get(named(order_of(name, s.policy), "DLT"))
        other = math.nan if remodel is None else float((admitted != remodel).sum())
        rows.append(row | {"discordant": other})
    return rows


def bounded(
    load: float, tau: float, dc_ratio: float, *, setting: Setting, switches: Switches, seed: Any,
    mine: Mapping[str, Policy] = NOBODY, drawn_by: Any = None,
) -> Row:  # fmt: skip
    """Bound what any planner must refuse, in one round on nodes as they are released."""
    here = setting._replace(dc_ratio=dc_ratio)
    tasks, cluster, reading, _ = drawn(here, load, tau, switches, seed, drawn_by)
    who: dict[str, str | Policy] = {**{name: name for name in BEST}, **mine}
    best = min(simulate(tasks, cluster, one).reject_ratio for one in who.values())
    return {"bound": clairvoyant_bound(tasks, cluster, link=reading.link).ratio, "best": best}


def count(
    load: float, reading: str, *, tau: float, setting: Setting, switches: Switches, seed: Any,
    drawn_by: Any = None,
) -> list[Row]:  # fmt: skip
    """Count plannings with idle time under FIFO-DLT by every rule (Table 1)."""
    changed = {**switches, **dict(pair.split("=") for pair in reading.split(", ") if pair)}
    tasks, cluster, engine, _ = drawn(setting, load, tau, changed, seed, drawn_by)
    s = simulate(tasks, cluster, "FIFO-DLT", engine)
    return [{"rule": rule, **_counts(s, rule)} for rule in RULES]


def _size(mean: float, rng: np.random.Generator) -> float:
    """Draw a size of section 5.1: the first that is positive."""
    draws = mean + mean * rng.standard_normal(64)
    return float(draws[draws > 0][0])


def pools(tau: float, *, count: int, setting: Setting, seed: Any) -> list[Row]:
    """Split single loads over random release times by every partition (theory)."""
    here, rng = setting, np.random.default_rng(seed)
    cluster = Cluster(here.nodes, tau, here.cps)
    finish, due = np.empty((len(PARTITIONS), here.nodes, count)), np.empty(count)
    least = execution_time(here.mean, here.nodes, cluster)
    for k in range(count):
        sigma = _size(here.mean, rng)
        releases = np.sort(rng.random(here.nodes)) * least
        due[k] = (0.5 + rng.random()) * here.dc_ratio * least
        for n in range(1, here.nodes + 1):
            times, four = (releases[:n] - releases[0]).tolist(), ("opr", "dlt", "II", "exact")
            splits = {m: split_load(sigma, times, cluster, m) for m in four}
            finish[:, n - 1, k] = [getattr(splits[m], what) for m, what in PARTITIONS.values()]
    excess = finish / finish[-1] - 1
    met = np.minimum.accumulate(finish, axis=1) <= latest_finish(due, due)
    return [
        {"partition": name, "nodes": n + 1, "excess": float(excess[i, n].mean()),
         "admitted": float(met[i, n].mean())}
        for i, name in enumerate(PARTITIONS) for n in range(here.nodes)
    ]  # fmt: skip
