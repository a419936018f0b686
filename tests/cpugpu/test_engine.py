"""The CPU-GPU engine against its twin, brute force, linear programs and what can be proved."""

import math
import random
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from dlsim.cpugpu import (
    POLICIES,
    Decision,
    History,
    Machine,
    Policy,
    Reading,
    learn,
    simulate,
    workload,
)
from dlsim.cpugpu.ideal import lb_fractional
from dlsim.cpugpu.scheduler import decider
from dlsim.validate import child_seed
from tests.helpers.cpugpu_queues import ONLINE, knowing, queue, queues, run_queue, runnable
from tests.helpers.scale import scale_count
from tests.twins import cpugpu as twin

ROUNDING = 1e-9
#: Of sums of a few times.
LITTLE = 1e-13
#: Switches of the reading and beside the rules, as the engine and as the twin take them.
SWITCHES = [
    {},
    {"both_free": "best"},
    {"unknown_remaining": "zero"},
    {"unknown_remaining": "inf"},
    {"deviations": 1},
    {"deviations": Fraction(5, 2)},
    {"min_samples": 2},
    {"re_explore": 2},
    {"bound": Fraction(1, 4)},
    {"estimate": "median"},
    {"estimate": "ewma"},
    {"steal": True},
    {"steal": True, "both_free": "best", "re_explore": 3, "unknown_remaining": "zero"},
    {"steal": True, "unknown_remaining": "inf"},
    {"bound": Fraction(1, 10)},
    {"bound": Fraction(1, 3), "unknown_remaining": "inf"},
]


def warmed(q):
    """What a warm scheduler knows: the time of every application on every class."""
    return [
        (app, cls, time)
        for app, (cpu, gpu) in q.apps.items()
        for cls, time in (("gpu", gpu), ("cpu", cpu))
        if time is not None
    ]


def learned(rng, q):
    """Runs and assignments of all applications and of another; a time of None was not measured."""
    return [
        (app, cls, None if rng.random() < 0.1 else Fraction(rng.randint(1, 48), 2))
        for app in [*q.apps, "Y"]
        for cls in rng.choices(["gpu", "cpu"], k=rng.choice([0, 1, 2, 5, 12]))
    ]


def by_engine(q, name, switches=None, known=(), share=Fraction(0), rule=None):
    """The schedule of the engine; with `rule`, a function decides."""
    switches, history = dict(switches or {}), History()
    for app, cls, time in known:
        history.assign(app, cls)
        if time is not None:
            history.measure(app, cls, float(time))
    own = {f.name for f in fields(Reading)}
    given = {k: float(v) if isinstance(v, Fraction) else v for k, v in switches.items()}
    reading = Reading(**{k: v for k, v in given.items() if k in own}, gpu_cpu_share=float(share))
    beside = {k: v for k, v in given.items() if k not in own}
    policy = replace(POLICIES[name], name="varied", **beside)
    policy = rule(policy) if rule else policy
    return simulate(q.table, Machine(q.cpus, q.gpus), policy, reading, history=history)


def by_twin(q, name, switches=None, known=(), share=Fraction(0)):
    """The twin after its run, with its jobs."""
    runs, assigned = {}, {}
    for app, cls, time in known:
        assigned.setdefault(app, []).append(cls)
        if time is not None:
            runs.setdefault((app, cls), []).append(time)
    given = {"share": share, "runs": runs, "assigned": assigned, **(switches or {})}
    exact = twin.Twin(q.cpus, q.gpus, name, **given)
    exact.run(q.jobs)
    return exact


def both(*given, **more):
    """The schedule of the engine, and the twin."""
    return by_engine(*given, **more), by_twin(*given, **more)


def agree(r, exact, rel=0.0):
    """Decisions, predictions on every device, what was learned; instants are the same bits."""
    devices = list(r.machine.devices)
    for row, told, job in zip(
        r.jobs.itertuples(), r.predictions.to_numpy(), exact.jobs, strict=True
    ):
        assert (row.device, row.rule) == (job.device, job.rule)
        ours = [row.decided, row.start, row.completion]
        assert ours == pytest.approx(
            [float(t) for t in (job.decided, job.start, job.end)], rel=rel, abs=rel
        )
        wanted = [float(job.ends.get(device, np.nan)) for device in devices]
        np.testing.assert_allclose(told, wanted, rtol=max(rel, LITTLE))
    for app in exact.assigned:
        for cls in ("gpu", "cpu"):
            row, classes = r.history.record(app, cls), exact.assigned[app]
            assert row.assigned == classes.count(cls)
            times = [float(time) for time in exact.runs.get((app, cls), [])]
            in_order = sorted if rel else list  # rounded ends at one instant have an order
            assert in_order(row.times) == pytest.approx(in_order(times), rel=rel, abs=0)
    r.check()


@pytest.mark.parametrize("name", ONLINE)
def test_every_policy_is_its_twin(name):
    rng, seen = random.Random(name), 0
    while seen < scale_count(100):
        q = queue(rng, jobs=(12, 30)[seen % 2])
        if runnable(q, name):
            seen += 1
            agree(*both(q, name))


def test_a_function_that_asks_a_rule_decides_as_the_rule():
    """MapReduce and a user's function ask the same core as a queue does."""

    def asking(policy):
        return Policy(lambda state, _, reading: decider(policy)(state, policy, reading))

    for name in ONLINE:
        rng, seen = random.Random(f"asked {name}"), 0
        while seen < (3 if name == "history" else 1):
            q = queue(rng)
            if runnable(q, name):
                seen += 1
                agree(by_engine(q, name, rule=asking), by_twin(q, name))


def test_every_switch_of_the_five_rules_is_its_twins():
    for switches in SWITCHES:
        rng = random.Random(str(switches))
        for k in range(scale_count(10)):
            q = queue(rng, jobs=16)
            agree(*both(q, "history", switches, warmed(q) if k % 3 == 0 else ()))


def in_tenths(q):
    """Return a queue whose times are tenths of its times: the floats of equal sums differ."""

    def tenths(times):
        return [None if time is None else Fraction(time) / 10 for time in times]

    apps = {app: tenths(times) for app, times in q.apps.items()}
    return q._replace(apps=apps, rows=[(app, *tenths(times)) for app, *times in q.rows])


@pytest.mark.parametrize("rel", [0.0, ROUNDING], ids=["exact floats", "rounded floats"])
def test_switches_together_are_the_twins_after_any_runs(rel):
    rng, words = random.Random(8), set()
    for _ in range(scale_count(200)):
        q, pick = queue(rng, jobs=40), rng.choice
        q = in_tenths(q) if rel else q
        switches = {
            "both_free": pick(["explore", "best"]), "deviations": pick([0, 0, 1, Fraction(5, 2)]),
            "unknown_remaining": pick(["avg", "zero", "inf"]), "min_samples": pick([1, 1, 2, 3]),
            "re_explore": pick([0, 0, 1, 2, 5]), "bound": Fraction(pick([0, 0, 1, 2, 8]), 8),
            "estimate": pick(["mean", "median"] if rel else ["mean", "median", "ewma"]),
            "steal": pick([True, False]),
        }  # fmt: skip
        known = learned(rng, q) if rng.random() < 0.5 else ()
        r, exact = both(q, "history", switches, known)
        agree(r, exact, rel)
        words |= set(r.jobs["rule"])
    assert words == {"R2", "R2*", "R3", "R3*", "R4", "R4q", "R0", "steal"}


@pytest.mark.parametrize("name", ["history", "mct", "preferred", "rsc", "asjf"])
def test_cpus_slow_down_beside_gpu_jobs(name):
    rng, slower = random.Random(name), 0
    for _ in range(scale_count(10)):
        r, exact = both(queue(rng), name, share=Fraction(1, 4))
        agree(r, exact, ROUNDING)
        places = r.jobs["device"].map(r.machine.devices.index)
        time_there = r.job_table.times[np.arange(len(places)), places]
        slower += (r.jobs["completion"] - r.jobs["start"] > 1.01 * time_there).any()
    assert slower


# --- what can be proved -----------------------------------------------------------------------


def exact_pair(q):
    """The five rules with exact history, and MCT."""
    known = History.exact(q.applications)
    machine = Machine(q.cpus, q.gpus)
    return [simulate(q.table, machine, name, history=known) for name in ("history", "mct")]


@settings(max_examples=scale_count(20), deadline=None)
@given(queues(jobs=24, exact=True))
def test_p1_and_p2_the_five_rules_with_exact_history_are_mct_and_fair_at_each_decision(q):
    ours, mct = exact_pair(q)
    names = ["device", "start", "completion"]
    pd.testing.assert_frame_equal(ours.jobs[names], mct.jobs[names])
    assert ours.explored.sum() == 0
    assert not ours.fairness()["late"].any()


@settings(max_examples=scale_count(20), deadline=None)
@given(queues(jobs=24))
def test_p3_a_class_is_explored_at_most_once(q):
    r = run_queue(q.table, Machine(q.cpus, q.gpus))
    explored = r.jobs[r.explored]
    pairs = list(zip(explored["app"], explored["device"].str[:3], strict=True))
    assert len(pairs) == len(set(pairs))
    again = run_queue(q.table, Machine(q.cpus, q.gpus), history=r.history)
    more = again.jobs[again.explored]
    assert not set(zip(more["app"], more["device"].str[:3], strict=True)) & set(pairs)


@settings(max_examples=scale_count(20), deadline=None)
@given(queues(jobs=16))
def test_every_late_job_of_a_warm_scheduler_met_a_wrong_prediction(q):
    r = run_queue(q.table, Machine(q.cpus, q.gpus), history=History.exact(q.applications))
    fair = r.fairness(significant=0.0)
    assert (fair["excuse"][fair["late"]] != "").all()
    r.check()


# --- the ideal and its bound ------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["makespan", "completion"])
def test_the_ideal_is_the_best_of_all_schedules(objective):
    rng = random.Random(objective)
    for _ in range(scale_count(10)):
        q = queue(rng, jobs=5)
        if (q.cpus + q.gpus) ** len(q.rows) > 1000:
            continue
        r = simulate(q.table, Machine(q.cpus, q.gpus), Policy("ideal", objective=objective))
        r.check()
        best = twin.best_of_all(q.jobs, q.cpus, q.gpus, objective)
        ours = r.jobs["completion"].max() if objective == "makespan" else r.mean_completion
        assert ours == pytest.approx(float(best), rel=1e-12)


def by_linear_program(jobs, machine):
    """Least T such that every job is cut up among the classes and none has more than T."""
    n, c, rows = len(jobs), [], []
    c = np.zeros(2 * n + 1)
    c[-1] = 1
    bounds = [(0, 1)] * (2 * n) + [(0, None)]
    for place, cls in enumerate(("gpu", "cpu")):
        row = np.zeros(2 * n + 1)
        for j, (_, times) in enumerate(jobs):
            row[2 * j + place] = times.get(cls, 0)
            if cls not in times:
                bounds[2 * j + place] = (0, 0)
        row[-1] = -machine.count(cls)
        rows.append(row)
    whole = np.zeros((n, 2 * n + 1))
    for j in range(n):
        whole[j, 2 * j : 2 * j + 2] = 1
    return linprog(c, np.array(rows), np.zeros(2), whole, np.ones(n), bounds).fun


def test_the_fractional_bound_is_the_linear_program():
    rng = random.Random(7)
    for _ in range(scale_count(10)):
        q = queue(rng)
        machine = Machine(q.cpus, q.gpus)
        jobs = [(float(j.arrival), {c: float(t) for c, t in j.time.items()}) for j in q.jobs]
        best = max(a + min(times.values()) for a, times in jobs)
        for since in {a for a, _ in jobs}:
            late = [job for job in jobs if job[0] >= since]
            best = max(best, since + by_linear_program(late, machine))
        times = [[times.get(d[:3], np.nan) for d in machine.devices] for _, times in jobs]
        bound = lb_fractional(np.array([a for a, _ in jobs]), np.array(times), machine.gpus)
        assert bound == pytest.approx(best, rel=1e-9)


@settings(max_examples=scale_count(20), deadline=None)
@given(queues(jobs=7))
def test_no_schedule_beats_the_ideal_nor_the_ideal_its_bound(q):
    machine = Machine(q.cpus, q.gpus)
    ideal = simulate(q.table, machine, "ideal")
    mean = simulate(q.table, machine, "ideal-mean")
    assert ideal.makespan >= ideal.bound * (1 - ROUNDING)
    for name in ("history", "mct", "preferred", "rsa", "asjf", "round-robin"):
        r = simulate(q.table, machine, name)
        assert r.makespan >= ideal.makespan * (1 - ROUNDING)
        assert r.mean_completion >= mean.mean_completion * (1 - ROUNDING)


def test_the_ideal_begins_with_the_clock():
    """With the long job first the jobs wait for 0 + 1 s, with the short one first for 0 + 1.5 s."""
    jobs = pd.DataFrame({"app": ["long", "short"], "arrival": [0.0, 1], "cpu_time": [2.0, 0.5]})
    jobs = jobs.assign(gpu_time=math.nan)
    r = simulate(jobs, Machine(1, 0), Policy("ideal", objective="completion"))
    assert r.jobs["start"].tolist() == [0, 2]


# --- tables and the learning study --------------------------------------------------------------


def test_metrics_of_a_case_by_hand():
    jobs = pd.DataFrame(
        [("A", 0.0, 100.0, 10.0), ("B", 0.0, 15.0, 10.0), ("C", 4.0, 5.0, 50.0)],
        columns=["app", "arrival", "cpu_time", "gpu_time"],
    )
    r = simulate(jobs, Machine(), "mct")  # A gpu 0-10, B cpu 0-15, C cpu 15-20
    assert r.utilisation.to_dict() == {"gpu0": 0.5, "cpu0": 1.0}
    assert r.summary().to_dict() == pytest.approx({
        "makespan": 20, "throughput": 3 / 20, "mean_wait": 11 / 3, "mean_completion": 41 / 3,
        "utilisation": 0.75, "explored": 0, "late": 0,
    })  # fmt: skip
    assert simulate(jobs, Machine(), "history").summary()["explored"] == 3
    idle = simulate(jobs.iloc[:1], Machine(gpus=2), "mct")
    assert idle.utilisation.to_dict() == {"gpu0": 1.0, "gpu1": 0.0, "cpu0": 0.0}
    late = simulate(jobs.assign(arrival=jobs["arrival"] + 7), Machine(), "mct")
    assert (late.makespan, late.bound) == (20, r.bound)


def test_the_given_history_stays_as_it_was():
    known = knowing(("A", "gpu", 4.0))
    before = known.table()
    jobs = pd.DataFrame({"app": ["A"] * 5, "arrival": 0.0, "cpu_time": 8.0, "gpu_time": 4.0})
    r = run_queue(jobs, history=known)
    pd.testing.assert_frame_equal(known.table(), before)
    assert r.history.table()["count"].sum() == 6


def test_a_policy_of_ones_own_is_a_function():
    def last_come_first_served(state, policy, reading):
        free = state.free()
        return Decision(state.main[-1].job, free[0], "lifo") if free and state.main else None

    jobs = pd.DataFrame({"app": ["A"] * 3, "arrival": 0.0, "cpu_time": 1.0, "gpu_time": 1.0})
    for policy in (Policy(last_come_first_served), last_come_first_served):
        r = simulate(jobs, Machine(0, 1), policy)
        assert r.jobs["start"].tolist() == [2.0, 1.0, 0.0]
        assert r.name == "last_come_first_served"
        r.check()
    study = learn(jobs.assign(batch=0), Machine(), [last_come_first_served])
    assert study["policy"].tolist() == ["last_come_first_served"]


def study_of(policies, replicates=2):
    """`learn` over seeds, one replicate after another."""
    frames = []
    for replicate in range(replicates):
        seed = child_seed(5, replicate)
        jobs = workload.random_jobs(workload.applications("wide", 12, seed), 8, seed, batches=3)
        frames.append(learn(jobs, Machine(1, 1), policies))
    return pd.concat(frames, keys=range(replicates), names=["replicate", None]).reset_index(0)


def test_the_study_runs_every_policy_on_the_same_jobs():
    study = study_of(ONLINE)
    assert len(study) == 2 * 3 * len(ONLINE)
    assert (study["makespan"] >= study["bound"] * (1 - ROUNDING)).all()
    assert (study.groupby(["replicate", "batch"])["bound"].nunique() == 1).all()
    alone = study_of(["asjf"])
    rows = study[study["policy"] == "asjf"].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows, alone.reset_index(drop=True))
    pd.testing.assert_frame_equal(study, study_of(ONLINE))


def test_a_study_is_one_run_per_batch():
    """Batches that arrive later are each counted from their own arrival."""
    table = workload.applications("lee", 4, seed=2)
    jobs = workload.random_jobs(table, 6, seed=2, batches=5, interval=30.0)
    study, history = learn(jobs, Machine(1, 2), ["history"]), None
    for row, (_, part) in zip(study.itertuples(), jobs.groupby("batch"), strict=True):
        r = run_queue(part, Machine(1, 2), history=history)
        history = r.history
        assert row.explored == r.explored.sum()
        ours = [row.makespan, row.mean_wait, row.mean_completion, row.bound]
        theirs = [r.makespan, r.mean_wait, r.mean_completion, r.bound]
        assert ours == pytest.approx(theirs, rel=1e-12, abs=1e-9)
