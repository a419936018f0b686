"""What must hold where the nodes of a task are released one by one (paper I), or in rounds.

When a node is released follows from the chunks alone: when the task before it on that node
gives it back, but no earlier than the task's own start.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dlsim.realtime.evidence import Result, Rule, scale_of
from dlsim.realtime.model import IN_ROUNDS
from dlsim.realtime.partition import Floats, table_for
from dlsim.rounding import ROUNDING, ULPS, equal, instant

#: Kinds that each partition may end in.
ENDS_IN = {
    "opr": ("opr",), "equal": ("equal",), "pieces": ("pieces",), "dlt": ("remodel",),
    "I": ("remodel", "equal finish"), "II": ("remodel", "equal finish"),
    "exact": ("optimum",), "exact-n": ("optimum",), "umr": ("rounds",),
    "umr-iit": ("rounds from releases",),
}  # fmt: skip


def with_releases(s: Result, chunks: pd.DataFrame) -> pd.DataFrame:
    """Add to every chunk what its task and its node say about it."""
    tasks = s.tasks.assign(kind=s.kinds)
    facts = tasks[["kind", "nodes", "sigma", "start", "estimate"]].rename(columns={"nodes": "n"})
    facts = facts.assign(due=tasks["arrival"] + tasks["deadline"])
    k = chunks.reset_index(drop=True)
    k = pd.concat([k, facts.reindex(k["task"]).reset_index(drop=True)], axis=1)
    by = k.groupby("task", sort=False)
    k = k.assign(place=by.cumcount(), span=k["estimate"] - k["start"])
    k = k.assign(round=k["place"] // k["n"].astype(int))
    k["before"] = k.groupby("task", sort=False)["send_end"].shift().fillna(k["start"])
    own = s.reading.release == "finish" or s.policy.partition == "pieces"
    visits = k.groupby(["task", "node"], sort=False)
    ends = visits["compute_end"].max() if own else visits["estimate"].first()
    held = ends.groupby("node").shift().fillna(-np.inf)
    keys = pd.MultiIndex.from_frame(k[["task", "node"]])
    release = np.maximum(held.reindex(keys).to_numpy(), k["start"])
    slack = ROUNDING * k["span"] + instant(scale_of(s), k["estimate"])
    return k.assign(release=release, slack=slack)


def _sends(s: Result, k: pd.DataFrame, index: pd.Index) -> Iterator[Rule]:
    together = k["kind"].isin(["equal", "rounds"]).to_numpy()
    free = k["release"] - k["slack"] <= k["send_start"]
    yield "a node is sent its share when it is released, not before", index, free
    waits = np.where(together, k["before"], np.maximum(k["before"], k["release"]))
    if s.policy.partition == "pieces" and s.reading.link == "per_task":
        waits = k["release"].to_numpy()
    prompt = equal(k["send_start"], waits, 0.0, slack=k["slack"])
    yield "a share is sent as soon as node and link are free", index, prompt


def _shares(s: Result, k: pd.DataFrame, index: pd.Index) -> Iterator[Rule]:
    c, kind = s.cluster, k["kind"].to_numpy(dtype=str)
    fits = np.isin(kind, ENDS_IN[s.policy.partition])
    yield "a task is split by its policy's partition", index, fits
    yield "every share is positive", index, k["alpha"] > 0
    load = (k["alpha"] * k["sigma"]).to_numpy()
    even = ~np.isin(kind, ["equal", "pieces"]) | equal(load * k["n"], k["sigma"], k["sigma"])
    yield "equal shares are equal", index, even
    ends = equal(k["compute_end"], k["estimate"], 0.0, ULPS + c.nodes, k["slack"])
    yield (
        "all nodes of an optimally split task finish together",
        index,
        ~np.isin(kind, ["equal finish", "optimum"]) | ends,
    )
    idle = ~(kind == "equal finish") | equal(k["send_start"], k["release"], 0.0, slack=k["slack"])
    yield "equal finish leaves no inserted idle time", index, idle
    if s.policy.partition in ("dlt", "I", "II"):
        yield from _remodelled(s, k, index)
    if s.policy.partition in IN_ROUNDS:
        first = k["place"] < k["n"]
        before = k.groupby(["task", "node"], sort=False)["alpha"].shift() * k["sigma"]
        ahead = before * c.cps / (k["n"] * c.cms) + (c.sc / k["n"] - c.st) / c.cms
        yield "rounds grow so that no node waits", index, first | equal(load, ahead, k["sigma"])


def _remodelled(s: Result, k: pd.DataFrame, index: pd.Index) -> Iterator[Rule]:
    """The remodel's shares and estimate, eqs. of [6]; who is remodelled under I and II."""
    c, by = s.cluster, k.groupby("task", sort=False)
    last, w = by["release"].transform("max"), k["sigma"] * (c.cms + c.cps)
    unit = table_for(c, "opr").unit
    time = k["sigma"] * unit[k["n"].to_numpy(dtype=int)]
    chi = c.cps * time / (time + (last - k["release"]))
    load = k["alpha"] * k["sigma"]
    earlier = (load * chi).groupby(k["task"], sort=False).shift()
    chained = (k["place"] == 0) | equal(load * (c.cms + chi), earlier, time, slack=k["slack"])
    remodelled = (k["kind"] == "remodel").to_numpy()
    yield "shares are those of the heterogeneous remodel", index, ~remodelled | chained
    final = (k["place"] == k["n"] - 1).to_numpy()
    planned = last + k["sigma"] * c.cms + load * c.cps
    good = ~remodelled | ~final | equal(planned, k["estimate"], 0.0, slack=k["slack"])
    yield "the estimate is r_n + sigma Cms + alpha_n sigma Cps", index, good
    if s.policy.partition == "dlt":
        return
    waits = (last - k["release"]).groupby(k["task"], sort=False).transform("sum")
    end = last + (w - waits) / k["n"]
    send = k["sigma"] * c.cms
    if s.policy.partition == "II":
        send = (end - k["release"]) * c.cms / (c.cms + c.cps)
    slack = k["slack"]
    gap = k.groupby("task", sort=False)["release"].shift(-1) - k["release"] - send
    for holds, rule in (
        (gap < -slack, "equal finish is used only where the constraint holds"),
        (~(gap >= slack), "equal finish is used wherever the constraint holds"),
    ):
        broken = (holds & ~final).groupby(k["task"], sort=False).transform("any")
        if rule.startswith("equal finish is used only"):
            yield rule, index, ~((k["kind"] == "equal finish") & broken)
        else:
            several = (k["n"] > 1) & (end > last + slack)
            yield rule, index, ~((k["kind"] == "remodel") & several & ~broken)


def _enough(s: Result, k: pd.DataFrame) -> Iterator[Rule]:
    """No fewer nodes would have done, in order of release."""
    plain = s.reading.mn_count == "at_start" and s.reading.backfill == "off"
    if s.policy.nodes != "min" or not plain or s.policy.partition in IN_ROUNDS:
        return
    c = s.cluster
    if s.policy.partition == "exact-n":
        few = [
            _carried(rows["release"].to_numpy()[:-1], rows["due"].iloc[0], c.cms, c.cps)
            < rows["sigma"].iloc[0] * (1 + ROUNDING) + rows["slack"].sum() / (c.cms + c.cps)
            for _, rows in k.groupby("task", sort=False)
        ]
        yield "no fewer nodes could have met the deadline", pd.Index(k["task"].unique()), few
        return
    table = table_for(c, s.policy.partition)
    m = k["place"].to_numpy() + 1
    ends = k["release"] + table.fixed[m] + k["sigma"] * table.unit[m]
    early = (m < k["n"]) & (ends <= k["due"] - k["slack"])
    yield "no fewer nodes would have met the deadline", pd.Index(k["task"]), ~early


def _carried(release: Floats, end: float, cms: float, cps: float) -> float:
    """Data that nodes can take by `end`, each all it can (theory: the greedy fill)."""
    data, link = 0.0, -np.inf
    for time in release:
        start = max(time, link)
        load = max(0.0, end - start) / (cms + cps)
        data, link = data + load, start + load * cms
    return data


def release_rules(s: Result, chunks: pd.DataFrame) -> Iterator[Rule]:
    """Yield the rules of nodes released one by one, and of several rounds."""
    k = with_releases(s, chunks)
    index = pd.Index(k["task"])
    yield from _sends(s, k, index)
    yield from _shares(s, k, index)
    yield from _enough(s, k)
    last = k.groupby("task", sort=False)["compute_end"].max()
    done = s.tasks["completion"].reindex(last.index)
    slack = k.groupby("task", sort=False)["slack"].first()
    together = equal(last, done, 0.0, ULPS + s.cluster.nodes, slack)
    yield "a task is complete when its last node is", last.index, together
