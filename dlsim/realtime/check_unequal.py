"""Validity of a schedule on unequal nodes from the model's definition alone.

The model is that of papers M and I with a speed and a link of its own for every node; nothing here
asks how the planner came to its decisions.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.given import Floats
from dlsim.realtime.check import in_line
from dlsim.realtime.evidence import Chunks, Rule, floats_of, verify
from dlsim.rounding import ROUNDING, ULPS, equal, instant, not_after, overrun


class _Evidence:
    """What a schedule says, as arrays."""

    def __init__(self, s: Any) -> None:
        tasks: pd.DataFrame = s.tasks
        self.tasks, self.given, self.index = tasks, s.given, tasks.index
        self.order, self.partition, self.link = s.order, s.partition, s.link
        self.k = Chunks(s.chunks, tasks.index)
        self.cms, self.cps = floats_of(s.nodes, "cms", "cps")
        self.arrival, self.sigma, self.deadline = floats_of(tasks, "arrival", "sigma", "deadline")
        self.start, self.completion = floats_of(tasks, "start", "completion")
        self.n, self.least, self.admitted = (
            tasks[name].to_numpy() for name in ("nodes", "least", "admitted")
        )
        #: The duration that tells two instants apart.
        self.scale = float(self.sigma.min() * (self.cms + self.cps).min()) if len(tasks) else 0.0


def _task_rules(e: _Evidence) -> Iterator[Rule]:
    index, admitted, given = e.index, e.admitted, e.given
    if given is not None:
        both = given.index.append(index)
        same = np.full(len(both), index.equals(given.index))
        yield "every task that arrived is in the table, once and in its place", both, same
        kept = (e.tasks[list(given)] == given).all(axis=1)
        yield "a task keeps its arrival, size and deadline", index, kept
    blank = np.isnan(e.start) & np.isnan(e.completion) & (e.n == 0)
    yield "a refused task has no start, nodes or completion", index, admitted | blank
    runs = np.isfinite(e.start) & np.isfinite(e.completion) & (e.n >= 1)
    yield "an admitted task runs", index, ~admitted | runs
    in_time = not_after(e.arrival, e.start, e.scale)
    yield "no task starts before it arrives", index, ~admitted | in_time
    late = overrun(e.completion, e.arrival, e.deadline)
    doubt = instant(e.deadline, e.completion)
    yield "a guaranteed task meets its deadline", index, ~admitted | (late <= doubt)
    enough = (e.least >= 1) & (e.least <= e.n)
    yield "a task runs on no fewer nodes than it needs", index, ~admitted | enough
    busy = np.maximum.accumulate(np.where(admitted, e.completion, -np.inf))
    taken = np.concatenate([[-np.inf], busy])[:-1] > e.arrival
    possible = e.sigma <= e.deadline * _rate(e)
    served = "a task that finds the cluster idle and can meet its deadline is served"
    yield served, index, admitted | taken | ~possible
    yield from _order_rules(e)


def _rate(e: _Evidence) -> float:
    """Return what all nodes take per unit of time if they are free together."""
    rate = 0.0
    for i in np.argsort(-e.cms, kind="stable"):
        rate = (1 + e.cps[i] * rate) / (e.cms[i] + e.cps[i])
    return rate


def _order_rules(e: _Evidence) -> Iterator[Rule]:
    """Who starts when."""
    line = np.flatnonzero(e.admitted)
    line = line[np.argsort(e.start[line], kind="stable")]
    start, index = e.start[line], e.index[line]
    passed = "nobody passes a waiting task of an earlier deadline"
    yield from in_line(e.order, passed, e, line)
    sent = np.where(e.link == "shared", e.k.send_end, -np.inf)
    free = np.sort(np.concatenate([[-np.inf], e.arrival, e.k.compute_end, sent]))
    last = free[np.searchsorted(free, start + instant(e.scale, start), side="right") - 1]
    words = "a task starts on an arrival or when nodes or the link get free"
    yield words, index, not_after(start, last, e.scale)


def _chunk_rules(e: _Evidence) -> Iterator[Rule]:
    k, index, task = e.k, e.k.labels, e.k.task
    yield from k.rules(len(e.cms))
    yield "a task has one chunk per node", e.index, k.total() == e.n
    yield "a task's chunks go to distinct nodes", index, k.by_node.place == 0
    yield "every share is positive", index, k.alpha > 0
    yield "the shares of a task sum to 1", k.names, equal(k.total(k.alpha), 1.0, 1.0)[k.tasks]
    load = k.alpha * e.sigma[task]
    send, compute = load * e.cms[k.node], load * e.cps[k.node]
    span, clock = (e.completion - e.start)[task], ULPS + len(e.cms)
    yield "a send takes alpha sigma Cms", index, equal(k.send_start + send, k.send_end, span)
    done = equal(k.send_end + compute, k.compute_end, span)
    yield "a node computes alpha sigma Cps once it has received", index, done
    first = equal(k.over(np.fmin, k.send_start), e.start, 0.0)
    yield "the first send starts with the task", k.names, first[k.tasks]
    last = equal(k.over(np.fmax, k.compute_end), e.completion, e.completion - e.start, clock)
    yield "a task is complete when its last node is", k.names, last[k.tasks]
    yield from _send_rules(e, span)


def _send_rules(e: _Evidence, span: Floats) -> Iterator[Rule]:
    """Which node and which link serve whom when."""
    k, index, task = e.k, e.k.labels, e.k.task
    slack = ROUNDING * span + instant(e.scale, k.compute_end)
    order = np.lexsort((k.send_start, k.node))
    release, same = np.full(len(order), -np.inf), k.node[order][1:] == k.node[order][:-1]
    release[order[1:]] = np.where(same, k.compute_end[order][:-1], -np.inf)
    yield "no node serves two chunks at once", index, release - slack <= k.send_start
    sent = np.where(k.by_task.place > 0, k.send_end[k.by_task.before], e.start[task])
    prompt = np.abs(k.send_start - np.maximum(sent, release)) <= slack
    yield "a share is sent as soon as node and link are free", index, prompt
    if e.link == "shared":
        order = np.argsort(k.send_start, kind="stable")
        free = (k.send_end - slack)[order][:-1] <= k.send_start[order][1:]
        yield "the head node sends one chunk at a time", index[order][1:], free
    if e.partition == "opr":
        there = release - slack <= e.start[task]
        yield "all nodes of a task are free when it starts", index, there
        together = np.abs(k.compute_end - e.completion[task]) <= slack
        yield "all nodes of a task finish together", index, together
        behind = e.cms[k.node] >= e.cms[k.node[k.by_task.before]]
        yield "the fastest link is sent to first", index, behind
        yield "no node of a task could have been left out", index, _is_needed(e, slack)


def _is_needed(e: _Evidence, slack: Floats) -> NDArray[np.bool_]:
    """Tell of every chunk whether the other nodes of its task, free together, would be late.

    Without its node those behind take (Cms + Cps) / Cps times what they do in the same time.
    """
    k, task = e.k, e.k.task
    sums = np.cumsum(k.alpha)
    ahead = sums - k.alpha - (sums - k.alpha)[k.by_task.first]
    behind = np.maximum(0, 1 - ahead - k.alpha)
    cms, cps = e.cms[k.node], e.cps[k.node]
    rest = ahead + np.where(cps > 0, behind * (cms + cps) / np.where(cps > 0, cps, 1), 0)
    late = overrun(e.start, e.arrival, e.deadline)[task] + (e.completion - e.start)[task] / rest
    return np.asarray((k.total()[task] == 1) | (late > -slack))


def check_unequal(schedule: Any) -> None:
    """Raise at the first rule that a `dlsim.realtime.UnequalSchedule` breaks."""
    e = _Evidence(schedule)
    verify(chain(_task_rules(e), _chunk_rules(e)), f"{e.order}, {e.partition}, link {e.link}")
