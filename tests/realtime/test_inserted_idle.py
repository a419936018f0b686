"""Paper I's policies: by hand, against the exact twin, and every reading alone."""

import dataclasses
import random
from fractions import Fraction as Q

import pandas as pd
import pytest

from dlsim.compiled import CLOCK_DIVISOR, TOL
from dlsim.errors import InputError
from dlsim.realtime import POLICIES, SWITCHES, Policy, Reading, Schedule, fastest_nodes
from tests.helpers.scale import LONG, scale_count
from tests.helpers.strategies import (
    ALL_ROWS,
    IN_LINE,
    ROWS_I,
    Instance,
    any_reading,
    chunk_differences,
    close,
    differences,
    seeded,
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

FIRST, WHOLE = (0, 1, 21, 21), (0, 2, Q(77, 2), Q(77, 2))
REMODELLED = (0, 2, Q(529, 11), Q(424, 11))
THIRD = (Q(77, 2), 2, Q(109, 2), Q(109, 2))
BY_HAND = [
    *[(GAMMA, p, {}, [(0, 2, 9, 9)]) for p in ROWS_I if p.split("-")[-1] in
      ("MN", "DLT", "I", "II", "EXACT", "N") and not any(x in p for x in ("EQ", "UMR"))],
    *[(THREE, p, {}, [FIRST, (21, 2, 53, 53), None]) for p in ("FIFO-OPR-MN", "EDF-OPR-MN")],
    *[(THREE, p, {}, [FIRST, REMODELLED, None]) for p in ("FIFO-DLT", "EDF-DLT")],
    *[(THREE, p, {}, [FIRST, WHOLE, THIRD])
      for p in ("FIDO-I", "FIDO-II", "EDDO-I", "EDDO-II", "FIFO-EXACT", "EDF-EXACT-N")],
    *[(THREE, p, {"release": "finish"},
       [FIRST, REMODELLED, (Q(423, 11), 2, Q(61767, 1133), Q(61741, 1133))])
      for p in ("FIFO-DLT", "EDF-DLT")],
    *[(WEAKER, p, {}, [(0, 1, 12, 12), (0, 2, Q(694, 17), Q(616, 17))])
      for p in ("FIFO-DLT", "FIDO-I", "EDDO-I")],
    *[(WEAKER, p, {}, [(0, 1, 12, 12), (0, 2, 34, 34)]) for p in ("FIDO-II", "EDDO-II")],
    (NEGATIVE, "FIFO-US", {}, [(0, 1, 10, 10), (0, 2, 12, 12)]),
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


# --- a gap that is far shorter than any task -----------------------------------------------------
# EDF-DLT on six nodes, sending costs nothing. A random run of generic numbers.

SHORT_GAP_CPS = 8.700471508458723
#: Arrival, sigma, deadline, and a number of nodes that this policy does not use.
SHORT_GAP_TASKS = [
    (0.9787573792655768, 1.2048836375234757, 8.611828664907414, 3),
    (1.2306148825480232, 2.8391369826235975, 5.416943454056645, 2),
    (3.8448237309837934, 5.846270714139819, 43.71934424431372, 2),
    (4.874516832774501, 5.401266738753645, 11.679377557094556, 2),
    (12.468755503945294, 2.7816515019752055, 18.204320500903908, 3),
    (28.133516992088154, 7.946195571634896, 54.627720354124094, 2),
    (31.425852929752466, 6.473046575721028, 50.683102147648015, 5),
    (31.50450899138307, 8.246979733235353, 45.57174084225217, 5),
    (32.85117483866165, 9.851589803059124, 53.9924248672941, 2),
    (44.46568890984042, 3.0069760490641873, 26.10150531604818, 3),
    (45.19479584739596, 1.5868819403925993, 8.355918380512197, 2),
    (48.02037950778042, 8.427714687689535, 55.1161272325111, 6),
    (53.55891579925238, 1.6759874361676468, 13.627458615621801, 3),
    (53.816559232527226, 3.487910249220262, 29.224363586569265, 6),
    (54.02190251181565, 3.2674621386429674, 15.269736326873678, 2),
    (54.614170672710586, 8.346282888227815, 52.17311248749478, 6),
    (55.77214058588416, 3.0022089870236277, 22.793843146380706, 5),
    (58.43727733651825, 6.26364466447873, 26.718939677907386, 2),
    (62.74041468344025, 5.325113352218688, 10.700816223458306, 2),
    (63.029083601588006, 2.093158970410588, 17.79648068459048, 6),
    (67.76853820422374, 1.6993279731392716, 2.9578627589151734, 3),
    (71.93990268637579, 9.123079797425264, 64.10832997945654, 6),
    (74.3317248208971, 1.5832221022040898, 11.098388258445906, 5),
    (79.22088244225456, 1.2503130620494782, 7.444735283181509, 5),
    (79.46914170148564, 7.7720173430618615, 39.369747171364175, 3),
    (81.05134372958919, 2.8967565349127717, 7.7116964155362195, 4),
    (86.97992980969698, 4.559579209612309, 22.08296794114537, 5),
    (94.7926946438628, 6.144332365979823, 24.200255447543803, 6),
    (98.27868147724053, 5.568012900655438, 28.72923520735291, 4),
    (104.8867700334615, 6.280022465080961, 37.05443659742679, 4),
    (106.23063306790326, 9.261127823601193, 19.333520837900128, 6),
    (137.53775509284475, 9.68572266436616, 24.22070960182935, 6),
    (156.48823055233677, 8.435373413417544, 13.065379752011616, 3),
    (164.73270262203354, 5.537003540915383, 7.735311679963246, 3),
    (166.7719449940332, 4.358614231856236, 13.27983670100008, 4),
    (169.20267465940114, 6.95375756909117, 52.57383673536468, 5),
    (171.24019574175875, 9.756780289688564, 81.87978747503777, 3),
    (171.70499374713197, 6.0948420512651555, 31.27989048759406, 6),
    (172.53663571988233, 6.794345487052769, 35.31535709249517, 4),
    (172.76848288231722, 5.226581771177899, 8.991127045233279, 2),
]  # fmt: skip


def test_a_gap_that_exceeds_the_tolerance_is_an_inserted_idle_time():
    """Two of 36 gaps are 1.6e-11 long: a tie for whoever takes 1e-12 of the instant, 86.4."""
    rows = [tuple(map(Q, row[:3])) for row in SHORT_GAP_TASKS]
    instance = Instance(6, Q(0), Q(SHORT_GAP_CPS), Q(0), Q(0), rows, [0] * len(rows))
    reading = {"release": "finish", "commit": "last"}
    planner = instance.planner("EDF-DLT", reading)
    records = planner.run(inserted.table(instance.rows, instance.keys, instance.user_nodes))
    assert disagreements(instance, "EDF-DLT", reading, records) == []
    assert instance.simulate("EDF-DLT", reading).counts.loc["replanned"].tolist() == [36, 36, 36, 0]

    seen = [(p.task.index, *p.seen) for p in planner.counted["replanned"]]
    gaps = [(task, r[0], r[n - 1] - r[0]) for task, n, r in seen if r[n - 1] > r[0]]
    assert len(gaps) == 36
    short = [(task, float(at), float(gap)) for task, at, gap in gaps if gap < 1e-6]
    assert short == [pytest.approx((11, 86.40299255915797, 1.5600870585557208e-11))] * 2
    least = min(sigma for _, sigma, _ in rows) * Q(SHORT_GAP_CPS)
    _, at, gap = short[0]
    assert TOL * (least + at / CLOCK_DIVISOR) < gap < TOL * at


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
        for k in range(scale_count(100, LONG)):
            source = random.Random(repr((policy, "ties", k)))
            instance = draw_whole_numbers(source, policy)
            reading = any_reading(source.choice, SWITCHES) | kept
            records, s = instance.exact(policy, reading), instance.simulate(policy, reading)
            found = differences(records, s) + count_differences(records, s)
            assert found == [], (k, policy, reading, instance)
            counted += records.counts["replanned"][0]
    print(f"{counted} inserted idle times")
    assert counted > 100


# --- the exact twin ----------------------------------------------------------------------------


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
    print(f"{policy}: {count} instances, {uneven} tasks on several nodes, {refused} refused")
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
    print(f"{policy}: up to {waited} in line")
    assert waited > 8


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
    moved = count = 0
    for policy in ACTS_ON.get(switch, IN_LINE):
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
                count += 1
    print(f"{switch}: {count} instances, moved {moved}")
    assert moved > 0


@pytest.mark.parametrize("policy", IN_LINE)
def test_two_switches_at_once_are_the_twins(policy):
    """Readings that reach deep into the planner, together."""
    pairs = [
        ("release", "finish"),
        ("commit", "last"),
        ("link", "shared"),
        ("backfill", "on"),
        ("mn_count", "frozen"),
        ("same_time", "test"),
    ]
    for k in range(scale_count(1, least=0)):
        for i, one in enumerate(pairs):
            for two in pairs[:i]:
                reading = dict([one, two])
                _, instance, _ = seeded_for(policy, (k, *one, *two), reading)
                records = instance.exact(policy, reading)
                found = disagreements(instance, policy, reading, records)
                assert found == [], (k, policy, reading, instance)


@pytest.mark.parametrize("order", ["FIFO", "EDF"])
def test_backfilling_opr_is_paper_m(order):
    """FIFO-OPR-MN whose tasks may be passed is FIFOMN, exactly; EDF likewise."""
    moved = 0
    for k in range(scale_count(60, LONG)):
        name = f"{order}-OPR-MN"
        _, instance, _ = seeded_for(name, ("backfill", k), {})
        records = instance.exact(f"{order}MN")
        line = instance.exact(name, {"backfill": "on"})
        for one, other in zip(records, line, strict=True):
            assert (one.start, one.nodes, one.completion) == (
                other.start,
                other.nodes,
                other.completion,
            )
        whole = instance.simulate(f"{order}MN").tasks
        pd.testing.assert_frame_equal(whole, instance.simulate(name, {"backfill": "on"}).tasks)
        moved += instance.exact(name) != line
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


def test_opr_in_line_is_paper_m_without_overtaking():
    for k in range(scale_count(60, LONG)):
        _, instance, _ = seeded_for("EDF-OPR-MN", ("strict", k), {})
        for order in ("FIFO", "EDF"):
            strict = instance.simulate(f"{order}MN", {"mn_order": "strict"}).tasks
            pd.testing.assert_frame_equal(strict, instance.simulate(f"{order}-OPR-MN").tasks)


def test_no_completion_is_after_its_estimate():
    """The safety theorem of the remodel, and what every other partition promises."""
    early = 0
    for policy in ROWS_I:
        for k in range(scale_count(10, LONG)):
            _, instance, reading = seeded_for(policy, ("safe", k))
            tasks = instance.simulate(policy, reading).tasks.dropna(subset="completion")
            late = tasks["completion"] > tasks["estimate"] * (1 + 1e-9)
            assert not late.any(), (k, policy, reading, instance)
            assert not tasks["missed"].any()
            early += int((tasks["completion"] < tasks["estimate"] * (1 - 1e-9)).sum())
    assert early > 0


# --- the optimum on all nodes ----------------------------------------------------------------

BEYOND = {
    f"{order} {nodes}": Policy(order, nodes, "exact")
    for order in ("fifo", "edf")
    for nodes in ("all", "fragment")
}


@pytest.mark.parametrize("name", BEYOND)
def test_all_nodes_and_fragments_are_split_by_the_optimum(name, monkeypatch):
    """Under every reading; what they leave is checked from the model's definition."""
    monkeypatch.setitem(ALL_ROWS, name, BEYOND[name])
    for seed in range(scale_count(30)):
        source, instance = seeded((name, seed))
        instance.fit(name).simulate(name, any_reading(source.choice, SWITCHES)).check()


# --- user splits ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("policy", USERS)
def test_rejected_fractions_are_the_twins(policy):
    halves = 0
    for k in range(scale_count(25, LONG)):
        reading = {"split": "piece"}
        _, instance, _ = seeded_for(policy, ("fraction", k), reading)
        records = instance.exact(policy, reading)
        s = instance.simulate(policy, reading)
        assert differences(records, s) == [], (k, instance)
        served = [Q(r.pieces, n) for r, n in zip(records, instance.user_nodes, strict=True)]
        assert close(1 - sum(served) / Q(len(served)), s.reject_ratio)
        halves += any(0 < x < 1 for x in served)
    assert halves > 0
