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
    SWITCHES,
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
from dlsim.realtime.model import SWITCHES_M
from tests.helpers.scale import LONG, TRIES_ALL, scale_count
from tests.helpers.strategies import ALL_ROWS, BARE, PAPER_M, ROWS, any_reading, seeded

#: N=2, Cms=Cps=1: E(1) = 2 sigma, E(2) = 4/3 sigma.
TWO = Cluster(nodes=2, cms=1, cps=1)


def ran(policy: str | Policy, rows: list[list[float]], cluster: Cluster = TWO, **kwargs: object):
    """Simulate rows of (arrival, sigma, deadline)."""
    table = pd.DataFrame(rows, columns=["arrival", "sigma", "deadline"], dtype=float)
    reading = Reading.from_switches(kwargs.pop("reading", {}))
    s = simulate(table, cluster, policy, reading, **kwargs)
    s.check()
    return s


def changed(s: Schedule, task: int, **values: object) -> Schedule:
    """Return the schedule with other entries in one row."""
    tasks = s.tasks.copy()
    for name, value in values.items():
        tasks.loc[task, name] = value
    return dataclasses.replace(s, tasks=tasks)


def moved(s: Schedule, task: int, by: float) -> Schedule:
    """Return the schedule with a task that runs earlier or later."""
    row = s.tasks.loc[task]
    end = row["completion"] + by
    return changed(s, task, start=row["start"] + by, completion=end, estimate=end)


def refused(s: Schedule, *rows: int) -> Schedule:
    """Return the schedule with tasks sent away."""
    tasks = s.tasks.copy()
    tasks.loc[list(rows), ["start", "estimate", "completion"]] = np.nan
    tasks.loc[list(rows), "nodes"] = 0
    tasks.loc[list(rows), ["admitted", "missed"]] = False
    return dataclasses.replace(s, tasks=tasks)


def shifted(s: Schedule, row: int, **by: float) -> Schedule:
    """Return the schedule with something added to a chunk."""
    chunks = s.chunks.copy()
    for name, value in by.items():
        chunks.loc[row, name] += value
    other = dataclasses.replace(s)
    other.__dict__["chunks"] = chunks
    return other


#: Three tasks of E(2) = 4 in one line; the last of four is refused.
ROWS_IN_LINE = [[0, 3, 9], [1, 3, 20], [2, 3, 30], [2, 3, 5]]
LINE = ran("FIFOAN", ROWS_IN_LINE)
#: 0 on two nodes till 4, then 1 and 2 on one node each till 10.
SPREAD = ran("FIFOMN", [[0, 3, 4], [1, 3, 20], [2, 3, 30], [2, 3, 3]])
LATE = ran("FIFOANNA", [[0, 3, 9], [0, 3, 5], [0, 3, 30]])
LOOSE = ran("FIFOANNA", [[0, 3, 90], [0, 3, 90], [0, 3, 90]])
DROPS = ran("FIFOANNA", [[0, 3, 9], [0, 3, 5], [0, 3, 30]], reading={"late": "drop"})
EDF = ran("EDFAN", [[0, 3, 4], [1, 3, 30], [2, 3, 20]])
USER = ran(Policy(lambda tasks: -tasks.index, "all"), [[0, 3, 4], [1, 3, 30], [2, 3, 30]])
WANTS = ran("FIFOMN", [[0, 3, 3]], negotiate=2.0)
TALKS = ran("FIFOAN", [[0, 3, 4], [0, 3, 5]], negotiate=2.0)
SHARED = ran("FIFOMN", [[0, 3, 60], [0, 3, 60]], reading={"link": "shared"})
COSTLY = Cluster(4, 1, 1, 3, 2)  # ST = 3: N* is 3 for sigma = 21
FOUR = execution_time(21, 4, COSTLY)
BEST = ran("FIFOAN", [[0, 21, 90]], COSTLY, reading={"an_nodes": "best"})


def swapped(s: Schedule, one: int, other: int) -> Schedule:
    """Return the schedule with the times of two tasks exchanged."""
    tasks, times = s.tasks.copy(), ["start", "estimate", "completion"]
    tasks.loc[[one, other], times] = s.tasks.loc[[other, one], times].to_numpy()
    return dataclasses.replace(s, tasks=tasks)


def with_tasks(s: Schedule, tasks: pd.DataFrame) -> Schedule:
    return dataclasses.replace(s, tasks=tasks)


BREAKS = [
    ("every task that arrived is in the table, once", with_tasks(LINE, LINE.tasks.drop(index=1))),
    ("every task that arrived is in the table, once", with_tasks(LINE, LINE.tasks.drop(index=3))),
    ("every task that arrived is in the table, once",
     with_tasks(LINE, LINE.tasks.iloc[[0, 1, 1, 2, 3]])),
    ("the table keeps the tasks in their order", with_tasks(LINE, LINE.tasks.iloc[::-1])),
    ("the table keeps the tasks in their order",
     with_tasks(LINE, LINE.tasks.reindex([0, 1, 2, 3, 9]))),
    ("a task keeps its arrival", changed(LINE, 2, arrival=1.5)),
    ("a task keeps its size", changed(LINE, 3, sigma=4.0)),
    *[("a deadline is the one asked for", changed(s, 0, deadline=18.0))
      for s in (LINE, LATE, EDF, SPREAD, TALKS)],
    ("a deadline is the one asked for", changed(TALKS, 1, deadline=10.5)),
    ("a deadline is the one asked for", changed(LINE, 3, deadline=6.0)),
    ("a task that does not run has no start", changed(LINE, 3, estimate=7.0)),
    ("a task that does not run has no start", changed(LINE, 3, nodes=1)),
    ("a refused task does not run", changed(LINE, 2, admitted=False)),
    ("a refused task does not miss", changed(LINE, 3, missed=True)),
    ("an admitted task runs", changed(LINE, 3, admitted=True)),
    ("without admission control no task is refused", refused(LATE, 2)),
    ("a task runs on 1..N nodes", changed(LINE, 0, nodes=3)),
    ("no task starts before it arrives", moved(LINE, 0, -1.0)),
    ("missed means completion after the deadline", changed(LATE, 1, missed=False)),
    ("missed means completion after the deadline", changed(LATE, 0, missed=True)),
    ("a guaranteed task meets its deadline",
     changed(moved(LINE, 0, 50.0), 0, missed=True)),
    ("completion is start + E(sigma, n)", changed(LINE, 0, completion=4.1, estimate=4.1)),
    ("estimate is the completion", changed(LINE, 1, estimate=8.5)),
    ("every share is positive",
     changed(ran("FIFOMN", [[0, 21, 200]], COSTLY), 0, nodes=4, completion=FOUR, estimate=FOUR)),
    ("an all-nodes task runs on all nodes", changed(LINE, 0, nodes=1, completion=6, estimate=6)),
    ("an all-nodes task runs on all nodes",
     changed(BEST, 0, nodes=1, completion=47, estimate=47)),
    ("no fewer nodes would have met the deadline",
     changed(SPREAD, 1, nodes=2, completion=8, estimate=8)),
    *[("a task that finds the cluster idle", refused(s, *s.tasks.index))
      for s in (LINE, SPREAD, EDF, USER, SHARED, BEST)],
    ("a task that finds the cluster idle", changed(refused(WANTS, 0), 0, deadline=3.0)),
    ("all-nodes tasks run one after another", moved(LINE, 1, -1.0)),
    ("the cluster does not idle while a task waits", moved(LINE, 2, 2.0)),
    ("the cluster does not idle while a task waits", moved(LATE, 2, 2.0)),
    ("a task starts on arrival or when nodes or the link get free", moved(SPREAD, 1, 1.0)),
    ("tasks start in the order of arrival", swapped(LINE, 1, 2)),
    ("tasks start in the order of arrival", swapped(LOOSE, 0, 2)),
    ("no task passes a waiting task of smaller rank", swapped(EDF, 1, 2)),
    ("no task passes a waiting task of smaller rank", swapped(USER, 1, 2)),
    ("a task starts on idle nodes",
     changed(moved(SPREAD, 1, -3.0), 2, start=1.0 + 1.0, estimate=8.0, completion=8.0)),
    ("every chunk is one of a task in the table", shifted(LINE, 0, task=9)),
    *[("every chunk is on a node of the cluster, 0..N-1", shifted(LINE, 1, node=by))
      for by in (-2, 1)],
    *[("a chunk's share and times are finite", shifted(LINE, 5, **{name: np.inf}))
      for name in ("alpha", "send_start", "send_end", "compute_end")],
    *[("a task's times are finite", changed(s, 2, completion=np.inf, estimate=end))
      for s in (LINE, SPREAD, LOOSE) for end in (np.inf, 12.0)],
    ("the shares of a task sum to 1", shifted(LINE, 0, alpha=0.1)),
    ("a task's chunks go to distinct nodes", shifted(LINE, 1, node=-1)),
    ("a send takes ST + alpha sigma Cms", shifted(LINE, 0, send_end=0.1)),
    ("a node computes SC + alpha sigma Cps", shifted(LINE, 1, compute_end=0.1)),
    ("the first send starts with the task",
     shifted(LINE, 0, send_start=0.1, send_end=0.1, compute_end=0.1)),
    ("all nodes of a task finish together",
     shifted(LINE, 1, send_start=0.1, send_end=0.1, compute_end=0.1)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "s"), BREAKS, ids=[f"{i}-{b[0]}" for i, b in enumerate(BREAKS)])
def test_a_broken_rule_is_named(rule, s):
    with pytest.raises(ScheduleError, match="^" + re.escape(rule)) as caught:
        s.check()
    said = str(caught.value)
    assert ": broken by task " in said
    assert f"({s.name}, reading {{" in said
    assert "np." not in said


@pytest.mark.parametrize(("rule", "s"), BREAKS, ids=[f"{i}-{b[0]}" for i, b in enumerate(BREAKS)])
def test_a_broken_rule_is_named_at_both_speeds(rule, s, monkeypatch):
    said = []
    both = CORES["realtime"].compiled, CORES["realtime"].python
    for core in both:
        monkeypatch.setattr(CORES["realtime"], "at_speed", lambda *_, core=core: nullcontext(core))
        with pytest.raises(ScheduleError) as caught:
            s.check()
        said.append(str(caught.value))
    assert said[0] == said[1]


def test_a_task_has_one_chunk_per_node():
    s = dataclasses.replace(LINE)
    chunks = LINE.chunks.copy()
    half = chunks.iloc[[0]].assign(alpha=chunks["alpha"][0] / 2)
    s.__dict__["chunks"] = pd.concat([half, half, chunks.iloc[1:]], ignore_index=True)
    with pytest.raises(ScheduleError, match=r"^a task has one chunk per node.*task 0"):
        s.check()


def test_a_task_that_runs_has_chunks():
    s = dataclasses.replace(LINE)
    s.__dict__["chunks"] = LINE.chunks[LINE.chunks["task"] != LINE.chunks["task"].iloc[0]]
    with pytest.raises(ScheduleError, match=r"^a task that runs has chunks: broken by task"):
        s.check()


def test_no_node_serves_two_chunks_at_once():
    s = dataclasses.replace(SPREAD)
    chunks = SPREAD.chunks.copy()
    chunks.loc[chunks["task"] == 2, "node"] = chunks.loc[chunks["task"] == 1, "node"].iloc[0]
    s.__dict__["chunks"] = chunks
    with pytest.raises(ScheduleError, match=r"^no node serves two chunks at once"):
        s.check()


def test_the_head_node_sends_one_chunk_at_a_time():
    # the second may not send while the first does: per task it may, on a shared link not
    apart = ran("FIFOMN", [[0, 3, 60], [0, 3, 60]])
    with pytest.raises(ScheduleError, match=r"^the head node sends one chunk at a time"):
        dataclasses.replace(apart, reading=SHARED.reading).check()


def test_all_nodes_of_best_are_reserved():
    # sigma 21 runs on 3 of 4 nodes; the fourth may not serve another task meanwhile
    s = ran("FIFOAN", [[0, 21, 90], [0, 21, 200]], COSTLY, reading={"an_nodes": "best"})
    with pytest.raises(ScheduleError, match=r"^all-nodes tasks run one after another"):
        moved(s, 1, -s.tasks["start"][1]).check()


def test_dropped_tasks_are_late_ones():
    assert DROPS.tasks["start"].isna().tolist() == [False, True, False]
    tasks = DROPS.tasks.copy()
    tasks[["start", "estimate", "completion"]] = np.nan
    tasks[["nodes", "missed"]] = [0, True]
    with pytest.raises(ScheduleError, match=r"^a task that finds the cluster idle"):
        with_tasks(DROPS, tasks).check()


@pytest.mark.parametrize("policy", ["FIFOANNA", "EDFANNA"])
def test_without_admission_a_factor_of_negotiation_changes_no_deadline(policy):
    """A late task is dropped, and a deadline twice as long would have been met: E(2) = 4."""
    s = ran(policy, [[0, 3, 3]], reading={"late": "drop"}, negotiate=2.0)
    assert s.tasks["start"].isna().all()


def test_strict_refuses_shares_that_are_not_positive():
    with pytest.raises(ScheduleError, match=r"^every share is positive: broken by task 0 \(FIFOAN"):
        ran("FIFOAN", [[0, 21, 40]], COSTLY).check(strict=True)


@pytest.mark.parametrize("at", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("off", [0.8, -0.8, 1e-3])
def test_late_clocks_hide_nothing(at, off):
    s = ran("FIFOAN", [[at, 3, 40], [at + 1, 3, 40]])
    end = s.tasks["completion"][1] + off
    with pytest.raises(ScheduleError, match=r"^completion is start \+ E"):
        changed(s, 1, completion=end, estimate=end).check()
    row = len(s.chunks) - 1
    with pytest.raises(ScheduleError, match=r"^a node computes"):
        shifted(s, row, compute_end=off).check()


@pytest.mark.parametrize("policy", ["FIFO-EXACT", "EDF-EXACT-N"])
def test_an_optimums_shares_are_as_exact_as_the_clock(policy):
    """Loads of a tenth of a second, days after the first one, as in a log."""
    rows = [[at, 0.01, 0.07] for at in (0.0, 1e5, 1e6, 1e6 + 0.01)]
    s = ran(policy, rows, Cluster(nodes=4, cms=1, cps=10))
    assert (np.abs(s.chunks.groupby("task")["alpha"].sum() - 1) > 1e-10).any()
    for factor in (1 + 1e-6, 1 - 1e-6):
        other = dataclasses.replace(s)
        other.__dict__["chunks"] = s.chunks.assign(alpha=s.chunks["alpha"] * factor)
        with pytest.raises(ScheduleError, match=r"^the shares of a task sum to 1"):
            other.check()


def test_a_schedule_of_unknown_origin_is_held_to_its_own_table():
    dataclasses.replace(LINE, submitted=None).check()
    dataclasses.replace(USER, submitted=None).check()
    with pytest.raises(ScheduleError, match=r"^completion"):
        dataclasses.replace(changed(LINE, 0, sigma=2.0), submitted=None).check()


@pytest.mark.parametrize(
    "labels", [["b", "a"], [("a", 1), (2,)], [None, 1], [1, "a"], [frozenset(), 0.5]], ids=str
)
def test_labels_may_be_anything_hashable(labels):
    index = pd.Index(labels, dtype=object, tupleize_cols=False)
    table = pd.DataFrame({"arrival": [0.0, 1.0], "sigma": 3.0, "deadline": 90.0}, index=index)
    for policy in ("FIFOMN", "EDFAN", "FIDO-II", "EDF-US"):
        for split in ("all", "piece"):
            s = simulate(
                table.assign(user_nodes=2), TWO, policy, Reading.from_switches({"split": split})
            )
            s.check()
            assert s.chunks["task"].unique().tolist() == labels


@pytest.mark.parametrize("policy", ROWS)
def test_correct_schedules_pass(policy):
    for k in range(scale_count(60, LONG)):
        source, instance = seeded(("check", policy, k), most=source_size(k))
        negotiate = source.choice([0.0, 1.0, 1.5, 4.0]) if ROWS[policy].admission else 0.0
        instance.simulate(policy, any_reading(source.choice), negotiate).check()


def source_size(k: int) -> int:
    """Short, usual and long queues."""
    return (6, 12, 30)[k % 3]


@pytest.mark.parametrize("switch", SWITCHES_M)
def test_correct_schedules_pass_under_every_switch(switch):
    for policy in PAPER_M:
        for value in SWITCHES[switch]:
            for k in range(scale_count(6, LONG)):
                _, instance = seeded(("check", switch, k))
                instance.simulate(policy, {switch: value}).check()


def late_tasks(cluster: Cluster, at: float) -> pd.DataFrame:
    """Draw tasks that arrive when the clock is at some time, with numbers of nodes for users."""
    rng = np.random.default_rng(5)
    least = cluster.cms * 40 + cluster.cps * 40 / cluster.nodes
    arrival = at + np.sort(rng.uniform(0, 8 * least, 24)).round(3)
    table = pd.DataFrame({"arrival": arrival, "sigma": rng.uniform(1, 80, 24)})
    table["deadline"] = rng.uniform(1, 12, 24) * least
    return table.assign(user_nodes=rng.integers(1, cluster.nodes + 1, 24))


@pytest.mark.parametrize("at", [0.0, 1e6, 1e9, 1e12])
@pytest.mark.parametrize(
    "cluster", [Cluster(1024, 1e-3, 1e4), Cluster(64, 100, 0.01), Cluster(40, 1, 1e3, 5, 5)]
)
def test_many_nodes_and_late_clocks_pass(cluster, at):
    for policy in PAPER_M:
        for switches in ({}, {"link": "shared", "an_nodes": "best"}):
            simulate(
                late_tasks(cluster, at), cluster, policy, Reading.from_switches(switches)
            ).check()


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
    for _ in range(40):
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
