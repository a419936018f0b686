"""Paper C's second problem: policies of moldable jobs against all schedules, and by hand."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.cpugpu import MOLDABLE_POLICIES, MoldablePolicy, NodePool, run_moldable
from dlsim.errors import ScheduleError
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import scale_count
from tests.twins import cpugpu_moldable as twin


def table(*rows, columns=("cpu_time", "gpu_time")):
    return pd.DataFrame(rows, columns=list(columns), dtype=float)


def ran(jobs, pool, policy):
    s = run_moldable(jobs, pool, policy)
    s.check()
    return s


def drawn(seed, most_jobs, nodes, arrivals=True, one_version=True):
    """Draw jobs: times log-uniform, some with one version, some arriving later."""
    source = np.random.default_rng(np.random.SeedSequence(seed))
    n = int(source.integers(1, most_jobs + 1))
    cpu = np.exp(source.uniform(0, 4, n))
    gpu = cpu / np.exp(source.uniform(-1, 2.5, n))
    version = source.random(n) if one_version else np.ones(n)
    cpu, gpu = np.where(version < 0.1, np.nan, cpu), np.where(version > 0.95, np.nan, gpu)
    arrival = source.choice([0.0, 0.0, 1.0, 5.0], n) if arrivals else np.zeros(n)
    counts = [c for c in (1, 2, 4) if c <= nodes]
    asked = source.choice(counts, n)
    columns = {"arrival": arrival, "cpu_time": cpu, "gpu_time": gpu, "nodes": asked}
    return source, pd.DataFrame(columns)


# ------------------------------------------------------------------ by hand


def test_times_by_hand():
    pool = NodePool(4)
    assert pool.time(8, 4, "cpu", 1) == 8
    assert pool.time(8, 4, "gpu", 4) == 4 / 4**0.9
    assert pool.time(8, 4, "both", 1) == pytest.approx(1 / (0.95 * (1 / 8 + 1 / 4)))
    assert math.isnan(pool.time(8, math.nan, "both", 2))
    assert NodePool(3).counts == (1, 2)


@pytest.mark.parametrize(
    ("policy", "rows"),
    [
        ("torque", [("gpu", 0, 4), ("gpu", 4, 8), ("cpu", 0, 3)]),
        ("torque-strict", [("gpu", 0, 4), ("gpu", 4, 8), ("cpu", 4, 7)]),
        ("mct", [("gpu", 0, 4), ("cpu", 0, 7), ("cpu", 7, 10)]),
    ],
)
def test_one_node_by_hand(policy, rows):
    """CPU/GPU 9/4, 7/4, 3/9. Strictly in line the CPU job waits for job 2; MCT ends job 2 on
    the CPU at 7 (GPU: 8), and job 3 there at 10 (GPU: 13)."""
    s = ran(table((9, 4), (7, 4), (3, 9)), NodePool(1), policy)
    found = s.jobs[["type", "start", "completion"]].itertuples(index=False, name=None)
    assert list(found) == rows


def test_torque_waits_for_its_nodes_and_its_type():
    """Two nodes: job 1 holds one GPU until 4; job 2 wants both GPUs, so job 3 waits as well."""
    jobs = table((9, 4, 1), (9, 4, 2), (9, 1, 1), columns=("cpu_time", "gpu_time", "nodes"))
    s = ran(jobs, NodePool(2, exponent=1.0), "torque")
    assert s.jobs["start"].tolist() == [0, 4, 6]
    s = ran(jobs, NodePool(2, exponent=1.0), "mct")
    assert s.jobs["start"].tolist() == [0, 0, 0]
    assert s.jobs["type"].tolist() == ["gpu", "cpu", "gpu"]


def test_flexible_moulds_where_it_pays():
    """Perfect speed-up, 2 nodes: one job of 12/4 takes both devices of both nodes: 1/(2 (1/12
    + 1/4)) = 1.5; with the penalty for joint use at 0.5 it takes the two GPUs: 2."""
    jobs = table((12, 4))
    s = ran(jobs, NodePool(2, exponent=1.0, both=1.0), "flexible")
    assert s.jobs[["type", "nodes", "completion"]].to_numpy().tolist() == [["both", 2, 1.5]]
    s = ran(jobs, NodePool(2, exponent=1.0, both=0.5), "flexible")
    assert s.jobs[["type", "nodes", "completion"]].to_numpy().tolist() == [["gpu", 2, 2.0]]


def test_area_keeps_jobs_narrow_where_nodes_are_many_jobs_few():
    """Poor speed-up, two GPU jobs of 4 on 2 nodes: greedy gives the first both nodes, 3.5, and
    the second waits, 7; narrow, both end at 4."""
    jobs = table((math.nan, 4), (math.nan, 4))
    pool = NodePool(2, exponent=math.log2(4 / 3.5))
    assert ran(jobs, pool, "flexible").makespan == pytest.approx(7)
    assert ran(jobs, pool, "area").makespan == 4
    assert ran(jobs, pool, "exhaustive").makespan == 4


GPU_ALONE = math.nan
#: Arrival, times, declared times of jobs on one node; type, end and expected end of each.
OVERDUE = {
    # declared 4, really 8: job 2 is expected to start at 4 on the GPU, and starts at 8
    "a wrong estimate moves what follows": (
        [(0, 20, 8, 20, 4), (0, 9, 4, 9, 4)], [("gpu", 8, 4), ("gpu", 12, 8)]),
    # at 6 the job declared to end at 4 still runs: the GPU is expected at once, 6 + 4 = 10, which
    # beats the CPU's 6 + 5
    "an overdue job is expected to end now": (
        [(0, 20, 8, 20, 4), (6, 5, 4, 5, 4)], [("gpu", 8, 4), ("gpu", 12, 10)]),
    # job 1, declared 4, runs on; job 2, 4 on the GPU, waits behind. Job 3 at 6 expects the GPU at
    # 6 + 4, to end there at 14, and on the CPU at 13
    "a job behind an overdue one is expected to start now": (
        [(0, GPU_ALONE, 20, GPU_ALONE, 4), (1, GPU_ALONE, 4, GPU_ALONE, 4), (6, 7, 4, 7, 4)],
        [("gpu", 20, 4), ("gpu", 24, 8), ("cpu", 13, 13)]),
}  # fmt: skip


@pytest.mark.parametrize("case", OVERDUE)
def test_estimates_that_are_wrong(case):
    rows, wanted = OVERDUE[case]
    columns = ("arrival", "cpu_time", "gpu_time", "cpu_estimate", "gpu_estimate")
    jobs = ran(table(*rows, columns=columns), NodePool(1), "mct").jobs
    found = jobs[["type", "completion", "predicted"]].itertuples(index=False, name=None)
    assert list(found) == wanted


def test_the_gpu_is_preferred_on_a_tie():
    for name in ("torque", "torque-strict", "mct", "mct-any"):
        assert ran(table((4, 4)), NodePool(1, both=0.5), name).jobs["type"].tolist() == ["gpu"]


# ------------------------------------------------------------------ against all schedules


def test_search_finds_the_least_makespan_of_all_policies():
    for seed in range(scale_count(40)):
        source, jobs = drawn(seed, 3, 2)
        pool = NodePool(2, exponent=float(source.choice([0.5, 0.9, 1.0])))
        rows = jobs[["arrival", "cpu_time", "gpu_time"]].itertuples(index=False, name=None)
        least = twin.best(list(rows), pool.nodes, pool.counts, pool.exponent, pool.both)
        assert ran(jobs, pool, "exhaustive").makespan == pytest.approx(least), seed
        for name in MOLDABLE_POLICIES:
            assert ran(jobs, pool, name).makespan >= least * (1 - 1e-9), (seed, name)


def test_no_policy_beats_the_search_on_four_nodes():
    for seed in range(scale_count(6)):
        _, jobs = drawn([seed, 4], 4, 4)
        least = ran(jobs, NodePool(4), "exhaustive").makespan
        for name in MOLDABLE_POLICIES:
            assert ran(jobs, NodePool(4), name).makespan >= least * (1 - 1e-9), (seed, name)


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=scale_count(15), deadline=None)
def test_every_schedule_is_valid_and_expected_as_it_comes(seed, nodes):
    source, jobs = drawn(seed, 12, nodes)
    for name, row in MOLDABLE_POLICIES.items():
        if row.search:
            continue
        s = ran(jobs, NodePool(nodes), name)
        if row.queue == "none":
            assert np.allclose(s.jobs["predicted"], s.jobs["completion"])
    wrong = jobs.assign(
        cpu_estimate=jobs["cpu_time"] * source.uniform(0.5, 2, len(jobs)),
        gpu_estimate=jobs["gpu_time"] * source.uniform(0.5, 2, len(jobs)),
    )
    for name in ("torque", "torque-strict", "mct", "flexible", "area"):
        ran(wrong, NodePool(nodes), name)


@given(st.integers(0, 10**6))
@settings(max_examples=scale_count(20), deadline=None)
def test_area_is_never_worse_than_flexible_in_one_batch(seed):
    _, jobs = drawn(seed, 10, 4, arrivals=False)
    area, flexible = (ran(jobs, NodePool(4), name).makespan for name in ("area", "flexible"))
    assert area <= flexible


def test_a_row_of_ones_own():
    own = MoldablePolicy("any", "requested", weights=(1.0,), orders=("longest",))
    _, jobs = drawn(1, 6, 4)
    s = ran(jobs, NodePool(4), own)
    assert s.name == "flexible, counts=requested, weights=(1.0,), orders=('longest',)"
    assert s.jobs["nodes"].tolist() == jobs["nodes"].tolist()
    assert ran(jobs, NodePool(4), dataclasses.replace(own, name="own")).name == "own"
    assert run_moldable(jobs, NodePool(4), MoldablePolicy()).name == "flexible"


def test_a_summary_by_hand():
    summary = ran(table((9, 4), (7, 4), (3, 9)), NodePool(1), "mct").summary()
    assert summary.name == "mct"
    assert summary.to_dict() == {
        "makespan": 10, "throughput": 0.3, "mean_wait": 7 / 3, "mean_completion": 7
    }  # fmt: skip


def test_a_missing_version_is_missing_in_any_column():
    for dtype in ("Int64", object):
        jobs = table((8, 4), (None, 4)).astype({"cpu_time": "Int64"}).astype({"cpu_time": dtype})
        assert ran(jobs, NodePool(1), "torque").jobs["type"].tolist() == ["gpu", "gpu"]


# ------------------------------------------------------------------ check refuses


def edited(s, jobs=(), uses=()):
    """Return the schedule with other entries: (row, column, value)."""
    tables = s.jobs.copy(), s.uses.copy()
    for one, changes in zip(tables, (jobs, uses), strict=True):
        for row, column, value in changes:
            one.loc[row, column] = value
    return dataclasses.replace(s, jobs=tables[0], uses=tables[1])


def moved(row, start, end):
    """Change when a job runs, in both tables."""
    words = {"jobs": "completion", "uses": "end"}
    return {key: [(row, "start", start), (row, word, end)] for key, word in words.items()}


EARLIER, LATER = moved(1, 3.0, 7.0), moved(0, 1.0, 5.0)


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("where it has a version", {"jobs": [(2, "gpu_time", math.nan), (2, "type", "gpu")]}),
        ("takes its time", {"jobs": [(0, "completion", 5.0)]}),
        ("before it arrives", {"jobs": [(0, "arrival", 1.0)]}),
        ("the nodes asked for", {"jobs": [(0, "requested", 2)]}),
        ("distinct nodes", {"uses": [(0, "node", 7)]}),
        ("distinct nodes", {"uses": [(0, "device", "cpu")]}),
        ("while it runs", {"uses": [(0, "end", 5.0)]}),
        ("one job at a time", EARLIER),
        ("that its user names", {"jobs": [(0, "gpu_estimate", 99.0)]}),
        ("arrives or another ends", LATER),
    ],
)  # fmt: skip
def test_check_names_the_broken_rule(rule, changes):
    """Both on the GPU, 0-4 and 4-8, then 3 on the CPU, 0-3."""
    s = ran(table((9, 4), (7, 4), (3, 9)), NodePool(1), "torque")
    if changes is LATER:
        s = ran(table((9, 4)), NodePool(1), "torque")
    with pytest.raises(ScheduleError, match=rule):
        edited(s, **changes).check()


def test_check_knows_a_line():
    s = ran(table((9, 4), (7, 4), (3, 9)), NodePool(1), "torque")
    strict = dataclasses.replace(s, policy=MOLDABLE_POLICIES["torque-strict"])
    with pytest.raises(ScheduleError, match="queue is served in order"):
        strict.check()


# ------------------------------------------------------------------ bad input

JOBS = table((9, 4), (7, 4))


def run(jobs=JOBS, pool=None, policy="flexible"):
    return run_moldable(jobs, pool or NodePool(), policy)


REFUSED = [
    (lambda: run(JOBS, 5), "pool must be a NodePool, got 5"),
    (lambda: NodePool().time(20, 8, "tpu", 2), "kind must be one of gpu, cpu, both; got 'tpu'"),
    (lambda: NodePool().time(20, 8, "gpu", 0), "count .* got 0"),
    (lambda: run(JOBS.set_axis([math.nan, 1])), "must have one label per row"),
    (lambda: NodePool(0), "nodes .* got 0"),
    (lambda: NodePool(2, counts=(4,)), "at most 2 nodes"),
    (lambda: NodePool(2, counts="12"), "counts must be a list"),
    (lambda: NodePool(exponent=2), "exponent .* got 2"),
    (lambda: NodePool(both=0), "both .* got 0"),
    (lambda: MoldablePolicy(types="all"), "types .* got 'all'"),
    (lambda: MoldablePolicy(queue="class"), "a job in a queue has no choice"),
    (lambda: MoldablePolicy(weights=()), "weights must be a tuple"),
    (lambda: MoldablePolicy(weights=(-1,)), "weights .* got -1"),
    (lambda: MoldablePolicy(orders=("best",)), "orders .* got 'best'"),
    (lambda: MoldablePolicy(search="yes"), "search .* got 'yes'"),
    (lambda: run(JOBS, policy="slurm"), "policy .* got 'slurm'"),
    (lambda: run(JOBS.iloc[:0]), "at least one row"),
    (lambda: run(JOBS.drop(columns="gpu_time")), "gpu_time not found among"),
    (lambda: run(JOBS * 0), "cpu_time of row .* must be a finite positive time"),
    (lambda: run(JOBS * math.nan), "row 0 must have a cpu_time or a gpu_time"),
    (lambda: run(JOBS.assign(arrival=-1)), "arrival of row .* got -1"),
    (lambda: run(JOBS.assign(nodes=3)), "one of the pool's counts, 1, 2, 4; got 3"),
    (lambda: run(JOBS.assign(cpu_estimate=math.nan)), "cpu_estimate must be given"),
    (lambda: run(table(*[(9, 4)] * 6), policy="exhaustive"), "at most 5 jobs on 4 nodes, got 6"),
    (lambda: run(JOBS.assign(cpu_tim=1)), "column 'cpu_tim' .*did you mean cpu_time"),
    (lambda: run(pd.concat([JOBS] * 2)), "label .*0.* appears twice"),
    (lambda: NodePool().time(20, 0, "both", 2), "time on a gpu must be a finite number above 0"),
]

test_what_cannot_be_used_is_refused = refuses_each(REFUSED)
