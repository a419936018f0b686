"""What must hold where the nodes of a task are released one by one (paper I), or in rounds.

When a node is released follows from the chunks alone: when the task before it on that node
gives it back, but no earlier than the task's own start.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dlsim.realtime.evidence import Chunks, Evidence, Rule, grouped
from dlsim.realtime.model import IN_ROUNDS, KINDS
from dlsim.realtime.partition import Floats, table_for
from dlsim.rounding import ROUNDING, ULPS, equal, instant

#: Kinds that each partition may end in.
ENDS_IN = {
    "opr": ("opr",), "equal": ("equal",), "pieces": ("pieces",), "dlt": ("remodel",),
    "I": ("remodel", "equal finish"), "II": ("remodel", "equal finish"),
    "exact": ("optimum",), "exact-n": ("optimum",), "umr": ("rounds",),
    "umr-iit": ("rounds from releases",),
}  # fmt: skip


class Shares:
    """What its task and its node say about every chunk."""

    def __init__(self, s: Evidence, k: Chunks, released: Floats) -> None:
        task = k.task
        self.n, self.sigma, self.start, self.estimate, self.kind = (
            x[task] for x in (s.nodes, s.sigma, s.start, s.estimate, s.runs.kind)
        )
        self.load, self.due = k.alpha * self.sigma, (s.arrival + s.deadline)[task]
        self.is_later = k.by_task.place > 0  # a chunk of its task was sent before
        self.is_final = k.by_task.place == self.n - 1
        self.release = np.maximum(_held(s, k, released), self.start)
        self.slack_of_task = ROUNDING * (s.estimate - s.start) + instant(s.scale, s.estimate)
        self.slack = self.slack_of_task[task]

    def split_by(self, *kinds: str) -> NDArray[np.bool_]:
        """Tell which chunks are of a task that was split in one of these ways."""
        return np.isin(self.kind, [KINDS.index(kind) for kind in kinds])


def _held(s: Evidence, k: Chunks, released: Floats) -> Floats:
    """When the task before gives back the node of each chunk; -inf where there is none.

    `released` says it of the chunks before these, and is brought up to date.
    """
    ends = s.estimate[k.task]
    if s.reading.release == "finish" or s.policy.partition == "pieces":
        ends = np.full(len(ends), -np.inf)
        np.maximum.at(ends, k.by_node.first, k.compute_end)
    visit, held = np.flatnonzero(k.by_node.place == 0), np.full(len(ends), -np.inf)
    on_node = grouped(k.node[visit])
    earlier = np.full(len(visit), -np.inf)
    if s.is_large:
        earlier = released[k.node[visit]]
        np.maximum.at(released, k.node[visit], ends[visit])
    held[visit] = np.where(on_node.place > 0, ends[visit][on_node.before], earlier)
    return held[k.by_node.first]


def _sends(s: Evidence, k: Chunks, x: Shares) -> Iterator[Rule]:
    free = x.release - x.slack <= k.send_start
    yield "a node is sent its share when it is released, not before", k.labels, free
    before = np.where(x.is_later, k.send_end[k.by_task.before], x.start)
    waits = np.where(x.split_by("equal", "rounds"), before, np.maximum(before, x.release))
    if s.policy.partition == "pieces" and s.reading.link == "per_task":
        waits = x.release
    prompt = equal(k.send_start, waits, 0.0, slack=x.slack)
    yield "a share is sent as soon as node and link are free", k.labels, prompt


def _shares(s: Evidence, k: Chunks, x: Shares) -> Iterator[Rule]:
    c, index = s.cluster, k.labels
    fits = x.split_by(*ENDS_IN[s.policy.partition])
    yield "a task is split by its policy's partition", index, fits
    yield "every share is positive", index, k.alpha > 0
    even = equal(x.load * x.n, x.sigma, x.sigma)
    yield "equal shares are equal", index, ~x.split_by("equal", "pieces") | even
    ends = equal(k.compute_end, x.estimate, 0.0, ULPS + c.nodes, x.slack)
    optimal = x.split_by("equal finish", "optimum")
    yield "all nodes of an optimally split task finish together", index, ~optimal | ends
    prompt = equal(k.send_start, x.release, 0.0, slack=x.slack)
    idle = x.split_by("equal finish") & ~prompt
    yield "equal finish leaves no inserted idle time", index, ~idle
    if s.policy.partition in ("dlt", "I", "II"):
        yield from _remodelled(s, k, x)
    if s.policy.partition in IN_ROUNDS:
        first = k.by_task.place < x.n
        before = k.alpha[k.by_node.before] * x.sigma
        ahead = before * c.cps / (x.n * c.cms) + (c.sc / x.n - c.st) / c.cms
        grown = equal(x.load, ahead, x.sigma)
        yield "rounds grow so that no node waits", index, first | grown


def _remodelled(s: Evidence, k: Chunks, x: Shares) -> Iterator[Rule]:
    """The remodel's shares and estimate, eqs. of [6]; who is remodelled under I and II."""
    c, index, task = s.cluster, k.labels, k.task
    last = k.last(x.release)[task]
    send, time = x.sigma * c.cms, x.sigma * table_for(c, "opr").unit[x.n]
    chi = c.cps * time / (time + (last - x.release))
    remodelled, before = x.split_by("remodel"), k.by_task.before
    chained = equal(x.load * (c.cms + chi), (x.load * chi)[before], time, slack=x.slack)
    holds = ~remodelled | ~x.is_later | chained
    yield "shares are those of the heterogeneous remodel", index, holds
    planned = equal(last + send + x.load * c.cps, x.estimate, 0.0, slack=x.slack)
    holds = ~remodelled | ~x.is_final | planned
    yield "the estimate is r_n + sigma Cms + alpha_n sigma Cps", index, holds
    if s.policy.partition == "dlt":
        return
    end = last + (x.sigma * (c.cms + c.cps) - k.total(last - x.release)[task]) / x.n
    if s.policy.partition == "II":
        send = (end - x.release) * c.cms / (c.cms + c.cps)
    # released this long after the node before has all its data
    gap = x.release - x.release[before] - send[before]
    short, wide = (
        k.total(x.is_later & holds)[task] > 0 for holds in (gap < -x.slack, ~(gap >= x.slack))
    )
    misused = x.split_by("equal finish") & short
    yield "equal finish is used only where the constraint holds", index, ~misused
    unused = remodelled & (x.n > 1) & (end > last + x.slack) & ~wide
    yield "equal finish is used wherever the constraint holds", index, ~unused


def _enough(s: Evidence, k: Chunks, x: Shares) -> Iterator[Rule]:
    """No fewer nodes would have done, in order of release."""
    plain = s.reading.mn_count == "at_start" and s.reading.backfill == "off"
    if s.policy.nodes != "min" or not plain or s.policy.partition in IN_ROUNDS:
        return
    c = s.cluster
    if s.policy.partition == "exact-n":
        fewer = [list[float]() for _ in s.index]
        for task, release, final in zip(k.task, x.release.tolist(), x.is_final, strict=True):
            if not final:
                fewer[task].append(release)
        due = (s.arrival + s.deadline).tolist()
        carried = np.array([_carried(fewer[i], due[i], c.cms, c.cps) for i in k.tasks])
        needed = s.sigma * (1 + ROUNDING) + k.total(x.slack) / (c.cms + c.cps)
        rule = "no fewer nodes could have met the deadline"
        yield rule, k.names, carried < needed[k.tasks]
        return
    m = k.by_task.place + 1
    ends = x.release + s.table.fixed[m] + x.sigma * s.table.unit[m]
    early = (m < x.n) & (ends <= x.due - x.slack)
    yield "no fewer nodes would have met the deadline", k.labels, ~early


def _carried(release: list[float], end: float, cms: float, cps: float) -> float:
    """Data that nodes can take by `end`, each all it can (theory: the greedy fill)."""
    data, link = 0.0, -np.inf
    for time in release:
        start = max(time, link)
        load = max(0.0, end - start) / (cms + cps)
        data, link = data + load, start + load * cms
    return data


def release_rules(s: Evidence, k: Chunks, released: Floats) -> Iterator[Rule]:
    """Yield the rules of nodes released one by one, and of several rounds."""
    x = Shares(s, k, released)
    yield from _sends(s, k, x)
    yield from _shares(s, k, x)
    yield from _enough(s, k, x)
    ulps, slack = ULPS + s.cluster.nodes, x.slack_of_task
    together = equal(k.last(k.compute_end), s.completion, 0.0, ulps, slack)
    yield "a task is complete when its last node is", k.names, together[k.tasks]
