"""Every rule of `Schedule.check` refuses a schedule that breaks it, and no other."""

import dataclasses
import itertools
import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

from dlsim.compiled import CORES
from dlsim.errors import ScheduleError
from dlsim.realtime import (
    POLICIES,
    Cluster,
    Policy,
    Reading,
    Schedule,
    check,
    check_chunks,
    execution_time,
    simulate,
    workload,
)
from dlsim.realtime.core import check_chunks as rules
from dlsim.realtime.model import SPLIT_KINDS
from tests.helpers.scale import TRIES_ALL, scale_count
from tests.helpers.strategies import ALL_ROWS, BARE, PAPER_M, ROWS_I

#: N=2, Cms=Cps=1: E(1) = 2 sigma, E(2) = 4/3 sigma.
TWO = Cluster(nodes=2, cms=1, cps=1)
#: ST = 3: N* is 3 for sigma = 21.
COSTLY = Cluster(4, 1, 1, 3, 2)
#: N=2, Cms=1, Cps=3: the hand cases of paper I.
SLOW = Cluster(nodes=2, cms=1, cps=3)
TIMES_OF_CHUNKS = ["send_start", "send_end", "compute_end"]


def ran(
    policy: str | Policy,
    rows: list[list[float]],
    cluster: Cluster = TWO,
    negotiate: float = 0.0,
    **reading: str,
) -> Schedule:
    """Simulate rows of (arrival, sigma, deadline), each for two nodes if the user is asked."""
    table = pd.DataFrame(rows, columns=["arrival", "sigma", "deadline"], dtype=float)
    table, known = table.assign(user_nodes=2), Reading.from_switches(reading)
    s = simulate(table, cluster, policy, known, negotiate=negotiate)
    s.check()
    return s


# --- schedules that break a rule ------------------------------------------------------------------


def forged(s: Schedule, chunks: pd.DataFrame | None = None, **fields: object) -> Schedule:
    """Return the schedule with other fields, and the chunks that it had or others."""
    other = dataclasses.replace(s, **fields)
    other.__dict__["chunks"] = s.chunks if chunks is None else chunks
    return other


def changed(s: Schedule, rows: object, **values: object) -> Schedule:
    """Return the schedule with other entries in some rows."""
    tasks = s.tasks.copy()
    for name, value in values.items():
        tasks.loc[tasks.index[rows], name] = value
    return forged(s, tasks=tasks)


def moved(s: Schedule, task: int, by: float) -> Schedule:
    """Return the schedule with a task that runs earlier or later."""
    row = s.tasks.loc[task]
    end = row["completion"] + by
    return changed(s, task, start=row["start"] + by, completion=end, estimate=end)


def swapped(s: Schedule, one: int, other: int) -> Schedule:
    """Return the schedule with the times of two tasks exchanged."""
    times = ["start", "estimate", "completion"]
    values = s.tasks.loc[[other, one], times].to_numpy()
    return changed(s, [one, other], **dict(zip(times, values.T, strict=True)))


def idle(s: Schedule, rows: object = slice(None), **verdict: bool) -> Schedule:
    """Return the schedule with tasks that do not run."""
    never = dict.fromkeys(("start", "estimate", "completion"), np.nan)
    return changed(s, rows, **never, nodes=0, **verdict)


def refused(s: Schedule, rows: object = slice(None)) -> Schedule:
    """Return the schedule with tasks sent away."""
    return idle(s, rows, admitted=False, missed=False)


def untold(s: Schedule, **values: object) -> Schedule:
    """Return the schedule with other entries for its last task, and no table to compare with."""
    return forged(changed(s, -1, **values), submitted=None)


def shifted(s: Schedule, row: int, **by: float) -> Schedule:
    """Return the schedule with something added to a chunk."""
    chunks = s.chunks.copy()
    for name, value in by.items():
        chunks.loc[chunks.index[row], name] += value
    return forged(s, chunks)


def delayed(s: Schedule, by: float, row: int = -1) -> Schedule:
    """Return the schedule with a chunk (its last one) sent at another instant."""
    return shifted(s, row, send_start=by, send_end=by, compute_end=by)


def as_policy(s: Schedule, policy: str, kind: str | None = None) -> Schedule:
    """Return the schedule as if another policy had made it, every task split as `kind`."""
    runs = s.runs if kind is None else s.runs.assign(kind=SPLIT_KINDS.index(kind))
    return forged(s, policy=POLICIES[policy], runs=runs)


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
        chunks.loc[row, ["alpha", *TIMES_OF_CHUNKS]] = alpha, start, link, end
    return forged(s, chunks)


#: Three tasks of E(2) = 4 in one line; the last of four is refused.
LINE = ran("FIFOAN", [[0, 3, 9], [1, 3, 20], [2, 3, 30], [2, 3, 5]])
#: 0 on two nodes till 4, then 1 and 2 on one node each till 10.
SPREAD = ran("FIFOMN", [[0, 3, 4], [1, 3, 20], [2, 3, 30], [2, 3, 3]])
LATE = ran("FIFOANNA", [[0, 3, 9], [0, 3, 5], [0, 3, 30]])
LOOSE = ran("FIFOANNA", [[0, 3, 90], [0, 3, 90], [0, 3, 90]])
DROPS = ran("FIFOANNA", [[0, 3, 9], [0, 3, 5], [0, 3, 30]], late="drop")
EDF = ran("EDFAN", [[0, 3, 4], [1, 3, 30], [2, 3, 20]])
USER = ran(Policy(lambda tasks: -tasks.index, "all"), [[0, 3, 4], [1, 3, 30], [2, 3, 30]])
WANTS = ran("FIFOMN", [[0, 3, 3]], negotiate=2.0)
TALKS = ran("FIFOAN", [[0, 3, 4], [0, 3, 5]], negotiate=2.0)
#: Per task two may send at once, on a shared link they may not.
APART, SHARED = (ran("FIFOMN", [[0, 3, 60], [0, 3, 60]], link=to) for to in ("per_task", "shared"))
#: Both run on 3 of 4 nodes; the fourth may not serve the other meanwhile.
BEST = ran("FIFOAN", [[0, 21, 90], [0, 21, 200]], COSTLY, an_nodes="best")
MANY, FOUR = ran("FIFOMN", [[0, 21, 200]], COSTLY), execution_time(21, 4, COSTLY)
FIRST_CHUNK = LINE.chunks.iloc[[0]].assign(alpha=LINE.chunks["alpha"][0] / 2)
IN_HALVES = pd.concat([FIRST_CHUNK, FIRST_CHUNK, LINE.chunks.iloc[1:]], ignore_index=True)

#: A node free at 21 for a task of 14 units: Constraint 1 and 2 hold. Another is the last.
WIDE = [[0, 5.25, 21], [0, 14, 54]]
#: A node free at 12: Constraint 1 fails, Constraint 2 holds.
NARROW = [[0, 3, 12], [0, 14, 50]]
#: A node free at 4 for a task of 40 units: both constraints fail.
CLOSE = [[0, 1, 4], [0, 40, 110]]
DLT, FIRST = ran("FIFO-DLT", WIDE, SLOW), ran("FIDO-I", WIDE, SLOW)
WEAK, SECOND = ran("FIFO-DLT", NARROW, SLOW), ran("FIDO-II", NARROW, SLOW)
OPTIMUM = ran("FIFO-EXACT", CLOSE, SLOW)
EVEN = ran("FIFO-EQ-MN", [[0, 14, 45]], SLOW)
ROUNDS = ran("FIFO-UMR-MN", [[0, 14, 40]], Cluster(2, 1, 3, 0.5, 0.25))
EVENLY = [1 / len(ROUNDS.chunks)] * (len(ROUNDS.chunks) - 1)
EARLY = ran("FIFO-UMR-IIT", [[0, 14, 60], [0, 14, 90]], SLOW)
PIECES = ran("FIFO-US", [[0, 3, 60], [0, 14, 90]], SLOW)
PARTS = ran("FIFO-US", [[0, 3, 60], [0, 14, 90]], SLOW, split="piece")
ASKED = PIECES.submitted._replace(requested=PIECES.submitted.requested - 1)

#: A rule, and a schedule that breaks it before any other.
BREAKS = [
    ("every task that arrived is in the table, once", forged(LINE, tasks=LINE.tasks.drop(index=3))),
    ("every task that arrived is in the table, once",
     forged(LINE, tasks=LINE.tasks.iloc[[0, 1, 1, 2, 3]])),
    ("the table keeps the tasks in their order", forged(LINE, tasks=LINE.tasks.iloc[::-1])),
    ("the table keeps the tasks in their order",
     forged(LINE, tasks=LINE.tasks.reindex([0, 1, 2, 3, 9]))),
    ("a task keeps its arrival", changed(LINE, 2, arrival=1.5)),
    ("a task keeps its size", changed(LINE, 3, sigma=4.0)),
    *[("a deadline is the one asked for", changed(s, 0, deadline=18.0)) for s in (LINE, TALKS)],
    ("a deadline is the one asked for", changed(TALKS, 1, deadline=10.5)),
    ("a deadline is the one asked for", changed(LINE, 3, deadline=6.0)),
    ("a task that does not run has no start", changed(LINE, 3, estimate=7.0)),
    ("a task that does not run has no start", changed(LINE, 3, nodes=1)),
    *[("a task's times are finite", changed(s, 2, completion=np.inf, estimate=end))
      for s in (LINE, LOOSE) for end in (np.inf, 12.0)],
    ("a refused task does not run", changed(LINE, 2, admitted=False)),
    ("a refused task does not miss", changed(LINE, 3, missed=True)),
    ("an admitted task runs", changed(LINE, 3, admitted=True)),
    ("without admission control no task is refused", refused(LATE, 2)),
    ("a task runs on 1..N nodes", changed(LINE, 0, nodes=3)),
    ("no task starts before it arrives", moved(LINE, 0, -1.0)),
    ("missed means completion after the deadline", changed(LATE, 1, missed=False)),
    ("missed means completion after the deadline", changed(LATE, 0, missed=True)),
    ("a guaranteed task meets its deadline", changed(moved(LINE, 0, 50.0), 0, missed=True)),
    ("completion is start + E(sigma, n)", changed(LINE, 0, completion=4.1, estimate=4.1)),
    ("estimate is the completion", changed(LINE, 1, estimate=8.5)),
    *[("estimate is the completion", untold(s, estimate=end))
      for s, end in ((PIECES, 80.0), (EARLY, 89.0))],
    ("every share is positive", changed(MANY, 0, nodes=4, completion=FOUR, estimate=FOUR)),
    ("a user's task runs on the nodes asked for", forged(PIECES, submitted=ASKED)),
    ("an all-nodes task runs on all nodes", changed(LINE, 0, nodes=1, completion=6, estimate=6)),
    ("an all-nodes task runs on all nodes", changed(BEST, 0, nodes=1, completion=47, estimate=47)),
    ("no fewer nodes would have met the deadline",
     changed(SPREAD, 1, nodes=2, completion=8, estimate=8)),
    *[("a task that finds the cluster idle", refused(s)) for s in (LINE, SPREAD, SHARED, BEST)],
    ("a task that finds the cluster idle", changed(refused(WANTS), 0, deadline=3.0)),
    ("a task that finds the cluster idle", idle(DROPS, missed=True)),
    ("all-nodes tasks run one after another", moved(LINE, 1, -1.0)),
    ("all-nodes tasks run one after another", moved(BEST, 1, -BEST.tasks["start"][1])),
    *[("the cluster does not idle while a task waits", moved(s, 2, 2.0)) for s in (LINE, LATE)],
    ("a task starts on arrival or when nodes or the link get free", moved(SPREAD, 1, 1.0)),
    ("tasks start in the order of arrival", swapped(LINE, 1, 2)),
    ("tasks start in the order of arrival", swapped(LOOSE, 0, 2)),
    *[("no task passes a waiting task of smaller rank", swapped(s, 1, 2)) for s in (EDF, USER)],
    ("a task starts on idle nodes",
     dataclasses.replace(
         changed(moved(SPREAD, 1, -3.0), 2, start=2.0, estimate=8.0, completion=8.0))),
    # --- chunks
    ("every chunk is one of a task in the table", shifted(LINE, 0, task=9)),
    *[("every chunk is on a node of the cluster, 0..N-1", shifted(LINE, 1, node=by))
      for by in (-2, 1)],
    *[("a chunk's share and times are finite", shifted(LINE, 5, **{name: np.inf}))
      for name in ("alpha", *TIMES_OF_CHUNKS)],
    ("the shares of a task sum to 1", shifted(LINE, 0, alpha=0.1)),
    ("a task has one chunk per node", forged(LINE, IN_HALVES)),
    ("a task that runs has chunks", forged(LINE, LINE.chunks.iloc[2:])),
    ("a task's chunks go to distinct nodes", shifted(LINE, 1, node=-1)),
    ("a send takes ST + alpha sigma Cms", shifted(LINE, 0, send_end=0.1)),
    ("a node computes SC + alpha sigma Cps", shifted(LINE, 1, compute_end=0.1)),
    ("the first send starts with the task", delayed(LINE, 0.1, 0)),
    ("all nodes of a task finish together", delayed(LINE, 0.1, 1)),
    ("no node serves two chunks at once", forged(SPREAD, SPREAD.chunks.assign(node=[0, 1, 0, 0]))),
    ("the head node sends one chunk at a time", forged(APART, reading=SHARED.reading)),
    # --- nodes that are released one by one
    ("a node is sent its share when it is released, not before", delayed(DLT, -0.5)),
    *[("a share is sent as soon as node and link are free", delayed(s, 0.5))
      for s in (PIECES, DLT)],
    ("a task is split by its policy's partition", as_policy(DLT, "FIFO-EXACT")),
    ("a task is split by its policy's partition", as_policy(DLT, "FIFO-DLT", "equal finish")),
    ("every share is positive", shared_out(DLT, 1.25)),
    ("equal shares are equal", shared_out(EVEN, 0.75)),
    ("all nodes of an optimally split task finish together", shared_out(FIRST, 0.75)),
    ("equal finish leaves no inserted idle time", as_policy(OPTIMUM, "FIDO-I", "equal finish")),
    ("shares are those of the heterogeneous remodel", shared_out(DLT, 0.75)),
    ("the estimate is r_n + sigma Cms + alpha_n sigma Cps", untold(DLT, estimate=49.0)),
    ("equal finish is used only where the constraint holds", as_policy(SECOND, "FIDO-I")),
    ("equal finish is used wherever the constraint holds", as_policy(DLT, "FIDO-I")),
    ("equal finish is used wherever the constraint holds", as_policy(WEAK, "FIDO-II")),
    ("rounds grow so that no node waits", shared_out(ROUNDS, *EVENLY)),
    ("no fewer nodes could have met the deadline",
     untold(as_policy(OPTIMUM, "FIFO-EXACT-N"), deadline=1e3)),
    *[("no fewer nodes would have met the deadline", untold(s, deadline=1e3))
      for s in (DLT, OPTIMUM)],
    ("a task is complete when its last node is", untold(DLT, completion=38.0)),
    # --- pieces that are admitted one by one
    ("a task's pieces are those that were admitted", changed(PARTS, slice(None), nodes=1)),
    ("a task is complete when its last piece is", changed(PARTS, slice(None), completion=99.0)),
    ("a task starts with its first piece", changed(PARTS, -1, start=0.5)),
    ("a task's estimate is that of its last piece", changed(PARTS, -1, estimate=80.0)),
    ("a task is admitted if one of its pieces is", changed(PARTS, -1, admitted=False)),
    ("a task misses its deadline if one of its pieces does", changed(PARTS, -1, missed=True)),
    *[("a task's chunks are those of its pieces", delayed(PARTS, by, row))
      for by in (0.5, -0.5) for row in (0, -1)],
]  # fmt: skip


@pytest.mark.parametrize(("rule", "s"), BREAKS, ids=[f"{i}-{b[0]}" for i, b in enumerate(BREAKS)])
def test_a_broken_rule_is_named_at_both_speeds(rule, s, monkeypatch):
    core = CORES["realtime"]
    for each in (core.compiled, core.python):
        monkeypatch.setattr(core, "at_speed", lambda *_, each=each: nullcontext(each))
        with pytest.raises(ScheduleError, match="^" + re.escape(rule)) as caught:
            s.check()
        said = str(caught.value)
        assert ": broken by task " in said
        assert f"({s.name}, reading {{" in said
        assert "np." not in said


def test_the_first_task_that_keeps_a_node_or_the_link_too_long_is_named():
    """From 4 to 10 tasks 1 and 2 compute, here on one node; tasks 0 and 1 are sent from 0 on."""
    kept = forged(SPREAD, SPREAD.chunks.assign(node=[0, 1, 0, 0]))
    for s, task in ((kept, 1), (forged(APART, reading=SHARED.reading), 0)):
        with pytest.raises(ScheduleError, match=rf"at (once|a time): broken by task {task} "):
            s.check()


def test_strict_refuses_shares_that_are_not_positive():
    with pytest.raises(ScheduleError, match=r"^every share is positive: broken by task 0 \(FIFOAN"):
        ran("FIFOAN", [[0, 21, 40]], COSTLY).check(strict=True)
    ran("FIFOAN", [[0, 21, 40]], COSTLY, an_nodes="best").check(strict=True)


@pytest.mark.parametrize("at", [0.0, 1e6, 1e9])
def test_late_clocks_hide_nothing(at):
    s = ran("FIFOAN", [[at, 3, 40], [at + 1, 3, 40]])
    for off in (0.8, -0.8, 1e-3):
        end = s.tasks["completion"][1] + off
        with pytest.raises(ScheduleError, match=r"^completion is start \+ E"):
            changed(s, 1, completion=end, estimate=end).check()
        with pytest.raises(ScheduleError, match=r"^a node computes"):
            shifted(s, -1, compute_end=off).check()


@pytest.mark.parametrize("policy", ["FIFO-EXACT", "EDF-EXACT-N"])
def test_an_optimums_shares_are_as_exact_as_the_clock(policy):
    """Loads of a tenth of a second, days after the first one, as in a log."""
    rows = [[at, 0.01, 0.07] for at in (0.0, 1e5, 1e6, 1e6 + 0.01)]
    s = ran(policy, rows, Cluster(nodes=4, cms=1, cps=10))
    assert (np.abs(s.chunks.groupby("task")["alpha"].sum() - 1) > 1e-10).any()
    for factor in (1 + 1e-6, 1 - 1e-6):
        with pytest.raises(ScheduleError, match=r"^the shares of a task sum to 1"):
            forged(s, s.chunks.assign(alpha=s.chunks["alpha"] * factor)).check()


def test_a_start_is_compared_with_all_tasks_that_wait_then():
    """Against the rule in its own words, on small whole numbers with many ties."""
    rng, broken = np.random.default_rng(4), 0
    for _ in range(scale_count(400)):
        count = int(rng.integers(0, 12))
        arrival, rank = rng.integers(0, 9, (2, count)).astype(float)
        start = arrival + rng.integers(0, 6, count)
        slack = rng.choice([0.0, 0.0, 0.5, 1.0], count)
        line = np.argsort(start, kind="stable")
        given = (column[line] for column in (start, arrival, rank, slack))
        found = check._keeps_rank_order(*given, line, 1.0)
        wanted = [
            not any(
                arrival[k] < start[j] < start[k]
                and (rank[k], k) < ((rank[j], j) if slack[j] == 0 else (rank[j] - slack[j], -1))
                for k in range(count)
            )
            for j in line
        ]
        assert found.tolist() == wanted
        broken += wanted.count(False)
    assert broken > 100


# --- schedules that break none: `test_engine`, `test_inserted_idle` check what the twins agree to -


def test_a_schedule_of_unknown_origin_is_held_to_its_own_table():
    for s in (LINE, USER):
        dataclasses.replace(s, submitted=None).check()
    with pytest.raises(ScheduleError, match=r"^completion"):
        forged(changed(LINE, 0, sigma=2.0), submitted=None).check()


def test_short_tasks_on_a_late_clock_have_the_shares_they_were_promised():
    # the second hand case of paper I in units of 1/32: r = (0, 21), so alpha = (11/16, 5/16)
    for at in (0.0, 1.7e12, 1.7e15):
        s = ran("FIFO-EXACT", [[at, 21 / 128, 21 / 32], [at, 14 / 32, 54 / 32]], SLOW)
        assert s.chunks["alpha"].tolist() == pytest.approx([1, 11 / 16, 5 / 16])


@pytest.mark.parametrize("policy", ["FIFOANNA", "EDFANNA"])
def test_without_admission_a_factor_of_negotiation_changes_no_deadline(policy):
    """A late task is dropped, and a deadline twice as long would have been met: E(2) = 4."""
    s = ran(policy, [[0, 3, 3]], negotiate=2.0, late="drop")
    assert s.tasks["start"].isna().all()


@pytest.mark.parametrize(
    "labels", [["b", "a"], [("a", 1), (2,)], [None, 1], [1, "a"], [frozenset(), 0.5]], ids=str
)
def test_labels_may_be_anything_hashable(labels):
    index = pd.Index(labels, dtype=object, tupleize_cols=False)
    table = pd.DataFrame({"arrival": [0.0, 1.0], "sigma": 3.0, "deadline": 90.0}, index=index)
    for policy, split in (("FIFOMN", "all"), ("FIDO-II", "all"), ("EDF-US", "piece")):
        s = simulate(table.assign(user_nodes=2), TWO, policy, Reading(split=split))
        s.check()
        assert s.chunks["task"].unique().tolist() == labels


def late_tasks(cluster: Cluster, at: float) -> pd.DataFrame:
    """Draw tasks that arrive when the clock is at some time, with numbers of nodes for users."""
    rng = np.random.default_rng(5)
    least = cluster.cms * 40 + cluster.cps * 40 / cluster.nodes
    arrival = at + np.sort(rng.uniform(0, 8 * least, 24)).round(3)
    table = pd.DataFrame({"arrival": arrival, "sigma": rng.uniform(1, 80, 24)})
    table["deadline"] = rng.uniform(1, 12, 24) * least
    return table.assign(user_nodes=rng.integers(1, cluster.nodes + 1, 24))


#: Paper I's policies whose tasks are sent in one round.
ONE_ROUND = [name for name in ROWS_I if name in POLICIES and "UMR" not in name]


@pytest.mark.parametrize(
    ("policies", "cluster", "clocks"),
    [
        (PAPER_M, Cluster(1024, 1e-3, 1e4), (0.0, 1e12)),
        (PAPER_M, Cluster(64, 100, 0.01), (0.0, 1e12)),
        (PAPER_M, Cluster(40, 1, 1e3, 5, 5), (0.0, 1e12)),
        (ONE_ROUND, Cluster(1024, 1e-3, 1e4), (1e6,)),  # 4e-5 a send: later, no time
        (ONE_ROUND, Cluster(64, 100, 0.01), (1e9,)),
        (ONE_ROUND, Cluster(16, 1, 100), (1e9,)),
    ],
)
def test_many_nodes_and_late_clocks_pass(policies, cluster, clocks):
    others = Reading(link="shared", release="finish", an_nodes="best")
    for policy, at, reading in itertools.product(policies, clocks, (Reading(), others)):
        simulate(late_tasks(cluster, at), cluster, policy, reading).check()


#: Each policy on each late clock; every fourth pair unless all are tried.
LATE_CLOCKS = list(itertools.product(ALL_ROWS, (1e6, 1e9, 1e12)))


@pytest.mark.parametrize(("policy", "at"), LATE_CLOCKS[:: 1 if TRIES_ALL else 4])
def test_tasks_that_are_short_beside_the_clock_pass(policy, at):
    """The clock runs from a task at 0; deadlines are those that were met, so roundings decide."""
    row, sizes = ALL_ROWS[policy], 10 ** np.random.default_rng(6).uniform(-2, 2, 25)
    set_up = 0.0 if row.partition in BARE else 0.01
    costs = (64, 10, 0.5, set_up, set_up), (256, 1, 1e3, set_up, set_up)
    for cost, switches in itertools.product(costs, ({}, {"link": "shared"}, {"release": "finish"})):
        cluster, reading = Cluster(*cost), Reading.from_switches(switches)
        late = late_tasks(cluster, at)
        table = pd.concat([late.head(1).assign(arrival=0.0), late], ignore_index=True)
        table = table.assign(sigma=sizes, user_key=sizes)
        s = simulate(table, cluster, row, reading, ignore="user_key")
        s.check()
        met = s.tasks["estimate"] - s.tasks["arrival"]
        table["deadline"] = met.fillna(table["deadline"])
        tight = simulate(table, cluster, row, reading, ignore="user_key")
        tight.check()
        assert not tight.tasks["missed"].any() or not row.admission


@pytest.mark.parametrize("policy", ["FIFO-UMR-MN", "FIFO-EQ-MN"])
def test_a_task_may_overrun_by_the_roundings_of_its_sends_and_no_more(policy):
    """Half a unit in the last place for each of the n x rounds sends, which were added up."""
    rows = [[0, 1.0, 1e6], [1e9, 0.03, 0.302]]
    s = ran(policy, rows, Cluster(64, 10, 0.5))
    sends = len(s.chunks.query("task == 1"))
    assert sends > 1
    ulp, due = np.spacing(1e9), 1e9 + 0.302
    late = changed(s, 1, estimate=due, completion=due + sends / 2 * ulp, missed=True)
    with pytest.raises(ScheduleError, match=r"^(?!a guaranteed task|no task is complete after)"):
        late.check()
    later = changed(s, 1, estimate=due, completion=due + (3 * sends + 40) * ulp, missed=True)
    with pytest.raises(ScheduleError, match=r"^a guaranteed task meets its deadline: broken by"):
        later.check()


@pytest.mark.parametrize(
    "policy", ["EDFMN", "FIFO-DLT", *["EDDO-II", "FIFO-EXACT-N", "EDF-UMR-IIT"][: 3 * TRIES_ALL]]
)
@pytest.mark.parametrize("reading", [{}, {"link": "shared"}, {"release": "finish"}])
def test_windows_of_chunks_are_checked_as_all_of_them_are(policy, reading, monkeypatch):
    """Whole tasks, a few at a time: the same schedules pass, and the same are refused."""
    cluster, rng, refused = Cluster(4, 1.0, 10.0), np.random.default_rng(5), 0
    tasks = workload.dcratio(cluster, 0.9, 1e5, 3, dc_ratio=5.0).head(40)
    s = simulate(tasks, cluster, policy, Reading(**reading))
    parts = list(s.chunk_batches(7))
    assert max(part["task"].nunique() for part in parts) < 8
    whole = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(whole, s.chunks)

    def verdict(table, rows):
        monkeypatch.setattr(check_chunks, "CHUNKS_PER_BATCH", rows)
        forged = dataclasses.replace(s, tasks=table)
        try:
            forged.check()
        except ScheduleError:
            return False
        assert ("chunks" in vars(forged)) == (rows > len(whole))
        return True

    assert verdict(s.tasks, 7)
    for _ in range(20):
        table, at = s.tasks.copy(), rng.choice(np.flatnonzero(s.tasks["admitted"]))
        early = float(rng.choice([1e-15, 1e-3, 1.0, 30.0]))
        columns = [table.columns.get_loc(name) for name in ("start", "estimate", "completion")]
        table.iloc[at, columns] -= early
        answers = {verdict(table, rows) for rows in (7, 10**6)}
        assert len(answers) == 1
        refused += answers == {False}
    assert 0 < refused


@pytest.mark.parametrize("policy", ["FIFO-DLT", "EDFMN"])
def test_a_node_and_the_link_are_not_used_again_before_the_next_window(policy, monkeypatch):
    """Chunks that overlap across windows only."""
    cluster = Cluster(2, 1.0, 10.0)
    rows = {"arrival": [0.0, 100.0], "sigma": [5.0, 5.0], "deadline": [900.0, 900.0]}
    for reading, rule in (({}, "no node serves two"), ({"link": "shared"}, "the head node sends")):
        s = simulate(pd.DataFrame(rows), cluster, policy, Reading(**reading))
        first, second = s.chunk_batches(1)
        nodes, notes = check_chunks.fresh_node_notes(2), check_chunks.fresh_chunk_notes(2)
        monkeypatch.setattr(check_chunks, "CHUNKS_PER_BATCH", 1)
        e = check_chunks.ScheduleArrays(s)
        assert e.is_large
        seen = []
        for table in (first, first.assign(node=1 - first["node"]) if reading else first, second):
            chunks = check_chunks.Chunks.from_table(table, s.tasks.index)
            broken = check_chunks.first_broken(e, chunks, nodes, notes)
            across = (rules.NODE_FREE_BEFORE, rules.LINK_FREE_BEFORE)
            seen.append([rules.CHUNK_RULES[k] for k in across if broken[k] != rules.UNBROKEN])
        assert seen[0] == seen[2] == []
        assert any(word.startswith(rule) for word in seen[1])
