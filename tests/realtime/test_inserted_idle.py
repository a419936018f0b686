"""Paper I's policies: by hand, against the exact twin, and every reading alone."""

import dataclasses
import random
from fractions import Fraction as Q

import pandas as pd
import pytest

from dlsim.compiled import CLOCK_DIVISOR, TOL
from dlsim.errors import InputError
from dlsim.realtime import POLICIES, SWITCHES, Reading, Schedule, fastest_nodes
from tests.helpers.scale import LONG, scale_count, some_of
from tests.helpers.strategies import (
    ALL_ROWS,
    IN_LINE,
    ROWS_I,
    Instance,
    any_reading,
    chunk_differences,
    differences,
    seeded_for,
    simulate_with_keys,
)
from tests.twins import inserted

COUNTS = ["s_iits", "opt_iits", "opt_iits_ii", "non_positive"]


def count_differences(records: inserted.Records, s: Schedule) -> list[str]:
    """List the counting rules whose numbers differ; no number where the twin has none."""
    if records.counts is None:
        with pytest.raises(InputError):
            s.counts  # noqa: B018
        return []
    counts = s.counts
    assert list(counts.columns) == COUNTS
    assert sorted(counts.index) == sorted(inserted.RULES)
    assert counts.index.name == "rule"
    assert [str(t) for t in counts.dtypes] == ["Int64"] * len(COUNTS)
    columns = [counts[name].tolist() for name in COUNTS]
    rows = {rule: row for rule, *row in zip(counts.index, *columns, strict=True)}
    found = []
    for rule, wanted in records.counts.items():
        row = [None if pd.isna(x) else int(x) for x in rows[rule]]
        if row != wanted:
            found.append(f"counts of {rule}: twin {wanted}, engine {row}")
    return found


def disagreements(
    instance: Instance, policy: str, reading: dict[str, str], records: inserted.Records
) -> list[str]:
    """List whatever the engine does otherwise than the twin."""
    s = instance.simulate(policy, reading)
    found = differences(records, s)
    if not found:
        pieces = reading.get("split") == "piece" and ALL_ROWS[policy].nodes == "user"
        found = ([] if pieces else chunk_differences(records, s)) + count_differences(records, s)
        s.check()
    return found


def rows_of(records: inserted.Records) -> list[tuple]:
    """Return what a table shows."""
    return [(r.start, r.nodes, r.estimate, r.completion) if r.admitted else () for r in records]


# --- by hand ---------------------------------------------------------------------------------
# Exact figures worked out by hand; (start, nodes, estimate, completion) or None.


def cluster(nodes: int, cms: int, cps: int, rows: list[tuple], keys: list[int] | None = None):
    """Build a cluster without set-up times and its tasks."""
    fractions = [tuple(Q(x) for x in row) for row in rows]
    return Instance(nodes, Q(cms), Q(cps), Q(0), Q(0), fractions, keys or [0] * len(rows))


GAMMA = cluster(2, 1, 2, [(0, 5, 9)])
THREE = cluster(2, 1, 3, [(0, Q(21, 4), 21), (0, 14, 54), (1, 7, 60)])
WEAKER = cluster(2, 1, 3, [(0, 3, 12), (0, 14, 50)])
#: Two nodes free at 0 and 10 for a task of one unit that insists on both.
NEGATIVE = cluster(2, 1, 3, [(0, Q(5, 2), 10), (0, 1, 20)], [0, 0])
#: Nodes that are released at 1, 31, 41, 48 and 48. By r_n + E(n) the sixth task needs all five, but
#: three compute its 60 units by (60 + 1 + 31 + 41) / 3 = 133/3, before the others are released.
UNUSED = cluster(
    5, 0, 1,
    [*((0, x, x) for x in (1, 31, 41, 48, 48)), (0, 60, 60), (0, 45, 58), (45, 1, 100)],
)  # fmt: skip
#: Nodes that are released at 5, 6 and 10. The fifth task is refused at 7, while the fourth waits.
LAST = cluster(
    3, 0, 1, [(0, 5, 9), (0, 6, 9), (0, 10, 15), (0, 60, 60), (7, 9, 1), (12, 4, 40)],
    [0, 2, 1, 2, 2, 2],
)  # fmt: skip

FIRST, WHOLE = (0, 1, 21, 21), (0, 2, Q(77, 2), Q(77, 2))
REMODELLED = (0, 2, Q(529, 11), Q(424, 11))
THIRD = (Q(77, 2), 2, Q(109, 2), Q(109, 2))
BY_HAND = [
    *[(GAMMA, p, {}, [(0, 2, 9, 9)])
      for p in ("FIFO-OPR-MN", "EDF-DLT", "FIDO-I", "EDDO-II", "FIFO-EXACT", "EDF-EXACT-N")],
    (THREE, "FIFO-OPR-MN", {}, [FIRST, (21, 2, 53, 53), None]),
    (THREE, "EDF-DLT", {}, [FIRST, REMODELLED, None]),
    *[(THREE, p, {}, [FIRST, WHOLE, THIRD])
      for p in ("FIDO-I", "EDDO-II", "FIFO-EXACT", "EDF-EXACT-N")],
    (THREE, "FIFO-DLT", {"release": "finish"},
     [FIRST, REMODELLED, (Q(423, 11), 2, Q(61767, 1133), Q(61741, 1133))]),
    *[(WEAKER, p, {}, [(0, 1, 12, 12), (0, 2, Q(694, 17), Q(616, 17))])
      for p in ("FIFO-DLT", "EDDO-I")],
    (WEAKER, "FIDO-II", {}, [(0, 1, 12, 12), (0, 2, 34, 34)]),
    (NEGATIVE, "FIFO-US", {}, [(0, 1, 10, 10), (0, 2, 12, 12)]),
    *[(UNUSED, "FIFO-EXACT", {"commit": commit},
       [*((0, 1, x, x) for x in (1, 31, 41, 48, 48)), (1, 3, Q(133, 3), Q(133, 3)), *rest])
      for commit, *rest in [
          ("first", (Q(133, 3), 5, Q(274, 5), Q(274, 5)), (Q(274, 5), 1, Q(279, 5), Q(279, 5))),
          ("last", (45, 5, Q(276, 5), Q(276, 5)), (Q(276, 5), 1, Q(281, 5), Q(281, 5)))]],
    (LAST, "FIFO-US", {"commit": "last"}, [
        (0, 1, 5, 5), (0, 1, 6, 6), (0, 1, 10, 10), (5, 3, 30, 30), None, (25, 2, 28, 28),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("instance", "policy", "reading", "wanted"), BY_HAND)
def test_hand_cases(instance, policy, reading, wanted):
    records = instance.exact(policy, reading)
    assert rows_of(records) == [row or () for row in wanted]
    assert disagreements(instance, policy, reading, records) == []


@pytest.mark.parametrize(
    ("instance", "policy", "shares"),
    [
        (GAMMA, "FIFO-DLT", [[Q(3, 5), Q(2, 5)]]),
        (THREE, "FIFO-DLT", [[1], [Q(53, 77), Q(24, 77)]]),
        (THREE, "FIDO-I", [[1], [Q(11, 16), Q(5, 16)], [Q(4, 7), Q(3, 7)]]),
        (WEAKER, "FIDO-I", [[1], [Q(11, 17), Q(6, 17)]]),
        (WEAKER, "EDDO-II", [[1], [Q(17, 28), Q(11, 28)]]),
    ],
)
def test_hand_shares(instance, policy, shares):
    records = [r for r in instance.exact(policy) if r.admitted]
    assert [[c.alpha for c in r.chunks] for r in records] == shares
    chunks = instance.simulate(policy).chunks
    found = [rows.tolist() for _, rows in chunks.groupby("task")["alpha"]]
    assert found == [pytest.approx([float(x) for x in row]) for row in shares]


@pytest.mark.parametrize(
    ("instance", "policy", "row"),
    [
        (WEAKER, "FIFO-DLT", [1, 0, 1, 0]),
        (WEAKER, "EDF-DLT", [1, 0, 1, 0]),
        (THREE, "FIFO-DLT", [1, 1, 1, 0]),
        (NEGATIVE, "FIFO-US", [1, 0, 0, 1]),
    ],
)
def test_hand_counts(instance, policy, row):
    # case 4: with r = (0, 10) Constraint 1 holds and yet (3)-(4) = (7/4, -3/4)
    for rule in ("arrival", "admitted", "dispatched"):
        assert instance.exact(policy).counts[rule] == row
        assert instance.simulate(policy).counts.loc[rule].tolist() == row


def test_rounds_by_hand_need_more_nodes_than_one_round_would():
    """N* = 3 of E(n) is no bound on rounds: the fourth node, released last, is tried too."""
    # four nodes: 4 (2 + 1 x 2/4) + 4 + 5 x 2/4 = 33/2; one node: 2 + 2 + 4 + 10 = 18
    rows = [(Q(0), Q(1), Q(100)), (Q(11), Q(2), Q(141, 8))]
    instance = Instance(4, Q(1), Q(5), Q(2), Q(4), rows, [0, 0])
    assert fastest_nodes(2.0, instance.cluster) == 3
    for policy in ("FIFO-UMR-MN", "EDF-UMR-MN"):
        # the first task keeps one node until 2 + 1 + 4 + 5 = 12
        row = instance.simulate(policy).tasks.loc[1]
        assert (row["admitted"], row["nodes"]) == (True, 4)
        assert (row["start"], row["completion"]) == (12.0, 28.5)
        assert differences(instance.exact(policy), instance.simulate(policy)) == []


@pytest.mark.parametrize(("gap", "counted"), [(Q(1, 2**36), 1), (Q(1, 2**41), 0)])
def test_a_gap_that_exceeds_the_tolerance_is_an_inserted_idle_time(gap, counted):
    """On a clock of 64; the tolerance is 1e-12 of the least task, which takes 1, not of 64."""
    instance = cluster(2, 0, 1, [(0, 64, 100), (0, 64 + gap, 100), (1, 1, Q("63.75"))])
    records, s = instance.exact("EDF-DLT"), instance.simulate("EDF-DLT")
    assert differences(records, s) == []
    assert s.tasks["nodes"].tolist() == [1, 1, 2]
    assert s.counts.loc["replanned"].tolist() == [counted] * 3 + [0]
    assert (gap > TOL * (1 + 64 / CLOCK_DIVISOR)) == bool(counted)
    assert TOL * 64 / CLOCK_DIVISOR < gap < TOL * 64


@pytest.mark.parametrize(
    ("policy", "reading"),
    [("FIFO-US", {}), ("FIFO-UMR-IIT", {}), ("FIFO-UMR-IIT", {"release": "finish"})],
)
def test_one_task_may_take_many_nodes(policy, reading):
    """Each of its 64 nodes may end by itself; uncompiled, since no compiled array has bounds."""
    instance = cluster(64, 1, 1000, [(0, 64, 1)], [63])
    deadline = instance.planner(policy).time(Q(64), 64)
    instance = instance._replace(rows=[(Q(0), Q(64), deadline)])
    given = instance.table, instance.cluster, ALL_ROWS[policy], Reading.from_switches(reading)
    s = simulate_with_keys(*given, engine="python")
    assert s.tasks["nodes"].tolist() == [64]
    assert differences(instance.exact(policy, reading), s) == []


# --- the exact twin ----------------------------------------------------------------------------


def draw_whole_numbers(source: random.Random, policy: str) -> Instance:
    """Draw an instance whose releases, arrivals and deadlines coincide again and again."""
    cps, now, rows = source.choice([1, 2, 3, 4, 6, 12]), 0, []
    for _ in range(source.randint(3, 14)):
        now += source.choice([0, 0, 1, 2, 3, 6, 12])
        sigma = source.randint(1, 12)
        unit = source.choice([1, cps, sigma, sigma * cps])
        deadline = unit * source.choice([1, 2, 3, 4, 6]) * source.choice([1, 2, 3])
        rows.append((Q(now), Q(sigma), Q(deadline)))
    costs = Q(source.choice([0, 0, 0, 1, 2])), Q(cps), Q(0), Q(0)
    keys = [source.randint(0, 4) for _ in rows]
    return Instance(source.randint(2, 6), *costs, rows, keys).fit(policy)


def test_counts_of_whole_numbers_with_many_ties_are_the_twins():
    """Under every policy that serves in line and every reading; sending often costs nothing."""
    counted, kept = 0, {"backfill": "off", "split": "all"}
    for policy in IN_LINE:
        for k in range(scale_count(100, LONG / 2)):
            source = random.Random(repr((policy, "ties", k)))
            instance = draw_whole_numbers(source, policy)
            reading = any_reading(source.choice, SWITCHES) | kept
            records, s = instance.exact(policy, reading), instance.simulate(policy, reading)
            found = differences(records, s) + count_differences(records, s)
            assert found == [], (k, policy, reading, instance)
            counted += records.counts["replanned"][0]
    assert counted > 100


@pytest.mark.parametrize("policy", IN_LINE)
def test_every_decision_is_the_twins(policy):
    count, uneven, refused = 0, 0, 0
    while count < scale_count(13, LONG) or (count < 25 and not (uneven and refused)):
        k, count = count, count + 1
        _, instance, reading = seeded_for(policy, k)
        records = instance.exact(policy, reading)
        found = disagreements(instance, policy, reading, records)
        assert found == [], (k, policy, reading, instance)
        uneven += sum(r.nodes > 1 and r.start < r.chunks[-1].send_start for r in records)
        refused += sum(not r.admitted for r in records)
    assert uneven > 0
    assert refused > 0


@pytest.mark.parametrize("policy", IN_LINE)
def test_a_long_line_is_the_twins(policy):
    """The last of nine or more tasks is planned on what the others leave over."""
    waited = 0
    for k in range(scale_count(2, LONG, least=1)):
        source, instance, reading = seeded_for(policy, ("line", k))
        reading = {name: to for name, to in reading.items() if name not in ("backfill", "commit")}
        now, rows = Q(0), []
        for _ in range(30):
            sigma = Q(source.randint(4, 40), 4)
            least = instance.costs.E(sigma, instance.nodes)
            rows.append((now, sigma, Q(max(1, int(4 * least)) * source.choice([2, 20, 30]), 4)))
            now += source.choice([0, 0, Q(source.randint(0, 8), 4)])
        keys = [source.randint(0, 4) for _ in rows]
        instance = instance._replace(rows=rows, keys=keys).fit(policy)
        records = instance.exact(policy, reading)
        found = disagreements(instance, policy, reading, records)
        assert found == [], (k, policy, reading, instance)
        ran = [(rows[i][0], r.start) for i, r in enumerate(records) if r.admitted]
        waited = max(waited, *(sum(a <= t < s for a, s in ran) for t, _ in ran), 0)
    assert waited > 8


def test_a_plan_in_force_is_counted_from_when_the_link_is_free():
    """Thirteen tasks in line on four nodes, found by search; times and sizes in quarters."""
    quarters = [
        (3, 9, 300), (3, 19, 630), (3, 12, 260), (17, 11, 240), (20, 24, 540), (27, 17, 38),
        (28, 7, 240), (34, 31, 1050), (36, 5, 100), (40, 23, 780), (41, 35, 1200), (41, 34, 78),
        (41, 35, 1200),
    ]  # fmt: skip
    rows = [tuple(Q(x, 4) for x in row) for row in quarters]
    instance, reading = cluster(4, 1, Q(3, 2), rows), {"link": "shared"}
    records = instance.exact("EDDO-II", reading)
    assert records.counts["dispatched"] == [0, 0, 0, 0]
    assert disagreements(instance, "EDDO-II", reading, records) == []


USERS = [name for name, row in ROWS_I.items() if row.nodes == "user"]
#: The policies on which a switch acts, where these are not all that plan in line.
ACTS_ON = {
    "mn_count": [n for n in IN_LINE if ALL_ROWS[n].nodes != "user"],
    "release": [n for n in ROWS_I if ALL_ROWS[n].partition not in ("opr", "pieces", "exact")],
    "commit": [n for n in ROWS_I if ALL_ROWS[n].partition not in ("opr", "equal", "umr")],
    "batch_order": [n for n in IN_LINE if ALL_ROWS[n].order != "fifo"],
    "batch_commit": [n for n in IN_LINE if ALL_ROWS[n].order != "fifo"],
    "same_time": [n for n in IN_LINE if ALL_ROWS[n].order != "fifo"],
    "split": USERS,
}  # fmt: skip
#: What a switch needs beside it: one node is an inserted idle time only among all N.
BESIDE = {"count_single": {"scope": "all"}, "mn_order": {"backfill": "on"}}


@pytest.mark.parametrize("switch", inserted.DEFAULTS)
def test_every_switch_alone_is_the_twins(switch):
    """One switch changed on the same instances: it agrees, and it matters somewhere."""
    moved = 0
    for policy in some_of(ACTS_ON.get(switch, IN_LINE), 0.5 * max(1, LONG)):
        for k in range(scale_count(6, LONG, least=1)):
            base = BESIDE.get(switch, {})
            _, instance, _ = seeded_for(policy, (switch, k), base)
            default = instance.exact(policy, base)
            for value in SWITCHES[switch][1:]:
                reading = base | {switch: value}
                records = instance.exact(policy, reading)
                found = disagreements(instance, policy, reading, records)
                assert found == [], (k, policy, reading, instance)
                counted = records.counts is not None and records.counts != default.counts
                moved += counted or rows_of(records) != rows_of(default)
    assert moved > 0


def test_overtaking_is_backfilling():
    """The twin answers for ``backfill="on"``; a policy that lets others pass is the same."""
    moved = set()
    for policy in [name for name in POLICIES if name in ROWS_I]:
        passing = dataclasses.replace(POLICIES[policy], overtake=True, name="passing")
        for k in range(scale_count(8, LONG)):
            _, instance, reading = seeded_for(policy, ("overtake", k), most=10)
            reading = reading | {"backfill": "off", "mn_order": "skip"}
            given = instance.table, instance.cluster, passing, Reading.from_switches(reading)
            s = simulate_with_keys(*given)
            s.check()
            on = instance.simulate(policy, reading | {"backfill": "on"})
            pd.testing.assert_frame_equal(s.tasks, on.tasks)
            if not s.tasks.equals(instance.simulate(policy, reading).tasks):
                moved.add(policy)
    assert len(moved) > 3


# --- user splits ---------------------------------------------------------------------------------


def test_pieces_wait_for_a_shared_link():
    # two pieces of 2 units: the second is sent from 2 to 4 and computed by 10, on idle nodes by 8
    instance, reading = cluster(2, 1, 3, [(0, 4, 9)], [1]), {"link": "shared"}
    assert instance.user_nodes == [2]
    assert rows_of(instance.exact("FIFO-US")) == [(0, 2, 8, 8)]
    assert rows_of(instance.exact("FIFO-US", reading)) == [()]
    assert not instance.simulate("FIFO-US", reading).tasks["admitted"].any()
    assert instance.simulate("FIFO-US", reading).offer(0).deadline == 10


def test_pieces_are_admitted_one_by_one():
    # two nodes, two pieces of 2 units each: the second task's pieces end at 8 and 16
    rows = [(0, 2, 9), (0, 4, 12)]
    instance = cluster(2, 1, 3, rows, [0, 0])
    assert instance.user_nodes == [1, 2]
    whole = instance.simulate("FIFO-US")
    assert whole.tasks["admitted"].tolist() == [True, False]
    assert whole.reject_ratio == 1 / 2
    for policy in ("FIFO-US", "EDF-US"):
        records = instance.exact(policy, {"split": "piece"})
        s = instance.simulate(policy, {"split": "piece"})
        assert differences(records, s) == []
        assert s.tasks["nodes"].tolist() == [1, 1]
        assert s.reject_ratio == pytest.approx(1 / 4)
        s.check()
