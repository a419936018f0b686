"""The rules of nodes released one by one, each refused by a schedule that breaks it alone."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from dlsim.errors import ScheduleError
from dlsim.realtime import POLICIES, Cluster, Reading, Schedule, simulate
from dlsim.realtime.model import SPLIT_KINDS
from tests.helpers.scale import ENOUGH, scale_count
from tests.helpers.strategies import IN_LINE, ROWS_I, seeded_for
from tests.realtime.test_check import late_tasks

#: N=2, Cms=1, Cps=3: the specification's hand cases of paper I.
TWO = Cluster(nodes=2, cms=1, cps=3)
#: A node free at 21 for a task of 14 units: Constraint 1 and 2 hold. Another is the last.
WIDE = [[0, 5.25, 21], [0, 14, 54]]
#: A node free at 12: Constraint 1 fails, Constraint 2 holds.
NARROW = [[0, 3, 12], [0, 14, 50]]
#: A node free at 4 for a task of 40 units: both constraints fail.
CLOSE = [[0, 1, 4], [0, 40, 110]]


def ran(policy: str, rows: list[list[float]], cluster: Cluster = TWO, **reading: str) -> Schedule:
    """Simulate rows of (arrival, sigma, deadline), each for two nodes if the user is asked."""
    table = pd.DataFrame(rows, columns=["arrival", "sigma", "deadline"], dtype=float)
    s = simulate(table.assign(user_nodes=2), cluster, policy, Reading.from_switches(reading))
    s.check()
    return s


def as_policy(s: Schedule, policy: str, kind: str | None = None) -> Schedule:
    """Return the schedule as if another policy had made it, every task split as `kind`."""
    runs = s.runs if kind is None else s.runs.assign(kind=SPLIT_KINDS.index(kind))
    chunks = s.chunks
    other = dataclasses.replace(s, policy=POLICIES[policy], runs=runs)
    other.__dict__["chunks"] = chunks
    return other


def shared_out(s: Schedule, *alphas: float) -> Schedule:
    """Return the schedule with other shares of its last task, sent in turn as before.

    The last of `alphas` is what the others leave.
    """
    chunks, sigma = s.chunks.copy(), s.tasks["sigma"].iloc[-1]
    rows = chunks.index[chunks["task"] == s.tasks.index[-1]]
    first = chunks.loc[rows].drop_duplicates("node")["send_start"].to_numpy()
    busy: dict[int, float] = {}
    link = -np.inf
    for k, (row, alpha) in enumerate(zip(rows, [*alphas, 1 - sum(alphas)], strict=True)):
        node = int(chunks.loc[row, "node"])
        start = max(link, first[k] if k < len(first) and s.policy.partition != "equal" else -np.inf)
        start = chunks.loc[row, "send_start"] if k == 0 else start
        link = start + s.cluster.st + alpha * sigma * s.cluster.cms
        end = max(link, busy.get(node, link)) + s.cluster.sc + alpha * sigma * s.cluster.cps
        busy[node] = end
        chunks.loc[row, ["alpha", "send_start", "send_end", "compute_end"]] = (
            alpha,
            start,
            link,
            end,
        )
    other = dataclasses.replace(s)
    other.__dict__["chunks"] = chunks
    return other


def delayed(s: Schedule, by: float, row: int = -1) -> Schedule:
    """Return the schedule with a chunk (its last one) sent at another instant."""
    chunks = s.chunks.copy()
    chunks.loc[chunks.index[row], ["send_start", "send_end", "compute_end"]] += by
    other = dataclasses.replace(s)
    other.__dict__["chunks"] = chunks
    return other


def told(s: Schedule, given: bool = False, **values: float) -> Schedule:
    """Return the schedule with other entries for its last task, and the chunks it had."""
    tasks, chunks = s.tasks.copy(), s.chunks
    for name, value in values.items():
        tasks.loc[tasks.index[-1], name] = value
    other = dataclasses.replace(s, tasks=tasks, submitted=s.submitted if given else None)
    other.__dict__["chunks"] = chunks
    return other


DLT, FIRST, SECOND = ran("FIFO-DLT", WIDE), ran("FIDO-I", WIDE), ran("FIDO-II", NARROW)
BEST, EVEN = ran("FIFO-EXACT", CLOSE), ran("FIFO-EQ-MN", [[0, 14, 45]])
ROUNDS = ran("FIFO-UMR-MN", [[0, 14, 40]], Cluster(2, 1, 3, 0.5, 0.25))
PIECES = ran("FIFO-US", [[0, 3, 60], [0, 14, 90]])
EVENLY = [1 / len(ROUNDS.chunks)] * (len(ROUNDS.chunks) - 1)
WEAK = ran("FIFO-DLT", NARROW)
PARTS = ran("FIFO-US", [[0, 3, 60], [0, 14, 90]], split="piece")

EARLY = ran("FIFO-UMR-IIT", [[0, 14, 60], [0, 14, 90]])
TOLD = (PIECES, 80.0), (EARLY, 89.0)
ASKED = PIECES.submitted._replace(requested=PIECES.submitted.requested - 1)
ONCE, ENDLESS = PARTS.tasks.assign(nodes=1), PARTS.tasks.assign(completion=99.0)

BREAKS = [
    ("a node is sent its share when it is released, not before", delayed(DLT, -0.5)),
    ("a share is sent as soon as node and link are free", delayed(PIECES, 0.5)),
    ("a share is sent as soon as node and link are free", delayed(DLT, 0.5)),
    ("a task is split by its policy's partition", as_policy(DLT, "FIFO-EXACT")),
    ("a task is split by its policy's partition", as_policy(DLT, "FIFO-DLT", "equal finish")),
    ("every share is positive", shared_out(DLT, 1.25)),
    ("equal shares are equal", shared_out(EVEN, 0.75)),
    ("all nodes of an optimally split task finish together", shared_out(FIRST, 0.75)),
    ("equal finish leaves no inserted idle time", as_policy(BEST, "FIDO-I", "equal finish")),
    ("shares are those of the heterogeneous remodel", shared_out(DLT, 0.75)),
    ("the estimate is r_n + sigma Cms + alpha_n sigma Cps", told(DLT, estimate=49.0)),
    ("equal finish is used only where the constraint holds", as_policy(SECOND, "FIDO-I")),
    ("equal finish is used wherever the constraint holds", as_policy(DLT, "FIDO-I")),
    ("equal finish is used wherever the constraint holds", as_policy(WEAK, "FIDO-II")),
    ("rounds grow so that no node waits", shared_out(ROUNDS, *EVENLY)),
    ("no fewer nodes could have met the deadline",
     told(as_policy(BEST, "FIFO-EXACT-N"), deadline=1e3)),
    ("no fewer nodes would have met the deadline", told(DLT, deadline=1e3)),
    ("no fewer nodes would have met the deadline", told(BEST, deadline=1e3)),
    ("a task is complete when its last node is", told(DLT, completion=38.0)),
    ("a user's task runs on the nodes asked for", dataclasses.replace(PIECES, submitted=ASKED)),
    ("a task's pieces are those that were admitted", dataclasses.replace(PARTS, tasks=ONCE)),
    ("a task is complete when its last piece is", dataclasses.replace(PARTS, tasks=ENDLESS)),
    *[("estimate is the completion", told(s, estimate=end)) for s, end in TOLD],
    ("a task starts with its first piece", told(PARTS, given=True, start=0.5)),
    ("a task's estimate is that of its last piece", told(PARTS, given=True, estimate=80.0)),
    ("a task is admitted if one of its pieces is", told(PARTS, given=True, admitted=False)),
    ("a task misses its deadline if one of its pieces does",
     told(PARTS, given=True, missed=True)),
    *[("a task's chunks are those of its pieces", delayed(PARTS, by, row))
      for by in (0.5, -0.5) for row in (0, -1)],
]  # fmt: skip


@pytest.mark.parametrize(("rule", "s"), BREAKS, ids=[f"{i}-{b[0]}" for i, b in enumerate(BREAKS)])
def test_a_broken_rule_is_named(rule, s):
    with pytest.raises(ScheduleError, match="^" + re.escape(rule) + ": broken by task "):
        s.check()


@pytest.mark.parametrize("policy", IN_LINE)
def test_correct_schedules_pass(policy):
    """Long queues under any reading, many nodes released one by one among them."""
    uneven = 0
    for k in range(scale_count(8, ENOUGH)):
        _, instance, reading = seeded_for(policy, ("check", k), most=(6, 14)[k % 2])
        s = instance.simulate(policy, reading)
        s.check()
        uneven += s.chunks.groupby("task")["send_start"].nunique().gt(1).any()
    assert uneven > 0


@pytest.mark.parametrize(
    ("cluster", "at"),
    [
        *[(Cluster(1024, 1e-3, 1e4), at) for at in (0.0, 1e6)],  # 4e-5 a send: later, no time
        *[(Cluster(64, 100, 0.01), at) for at in (0.0, 1e6, 1e9)],
        *[(Cluster(16, 1, 100), at) for at in (1e6, 1e9)],
    ],
)
def test_many_nodes_and_late_clocks_pass(cluster, at):
    for policy in ROWS_I:
        if policy in POLICIES and "UMR" not in policy:
            for switches in ({}, {"link": "shared", "release": "finish"}):
                tasks, reading = late_tasks(cluster, at), Reading.from_switches(switches)
                simulate(tasks, cluster, policy, reading).check()


@pytest.mark.parametrize("at", [0.0, 1.7e12, 1.7e15])
def test_short_tasks_on_a_late_clock_have_the_shares_they_were_promised(at):
    # the second hand case of paper I in units of 1/32: r = (0, 21), so alpha = (11/16, 5/16)
    rows = [[at, 21 / 128, 21 / 32], [at, 14 / 32, 54 / 32]]
    s = ran("FIFO-EXACT", rows, Cluster(2, 1, 3))
    assert s.chunks["alpha"].tolist() == pytest.approx([1, 11 / 16, 5 / 16])
    s.check(strict=True)
