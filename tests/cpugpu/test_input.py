"""What the CPU-GPU engine cannot use is refused: value, rule, remedy; and what jobs are drawn.

``tests/test_validate.py`` gives every number of every public function all kinds of values.
"""

import math
import re

import numpy as np
import pandas as pd
import pytest
from numpy.random import SeedSequence
from scipy import stats

from dlsim.cpugpu import (
    POLICIES,
    SWITCHES,
    History,
    Machine,
    NodeGroup,
    NodePool,
    Noise,
    Policy,
    Reading,
    learn,
    run_mapreduce,
    run_moldable,
    scheduler,
    simulate,
    word_count,
    workload,
)
from dlsim.cpugpu.model import device_class, read_policy
from dlsim.cpugpu.rules import Decision
from dlsim.errors import InputError
from tests.helpers.cpugpu_queues import ONE_EACH
from tests.helpers.refusals import refuses_each, require_refusals

JOBS = pd.DataFrame(
    {"app": ["A", "B"], "arrival": [0.0, 1.0], "cpu_time": [4.0, 2.0], "gpu_time": [1.0, 9.0]},
    index=["x", "y"],
)


def simulated(jobs=JOBS, machine=ONE_EACH, policy="history", reading=None, **options):
    return simulate(jobs, machine, policy, reading, **options)


def learned(jobs=JOBS, machine=ONE_EACH, policies=("history",), **options):
    jobs = jobs.assign(batch=0) if isinstance(jobs, pd.DataFrame) else jobs
    return learn(jobs, machine, policies, **options)


def changed(**columns):
    return simulated(JOBS.assign(**columns))


def decide(answer):
    """Simulate with a policy that answers so for the first job in the queue."""
    rule = answer if callable(answer) else lambda job: answer
    own = Policy(lambda state, policy, reading: rule(state.main[0].job))
    return simulated(policy=own)


def ruled(rule):
    return simulated(policy=Policy(rule))


def only_first(state, policy, reading):
    return Decision(0, 0, "x") if state.main and not state.main[0].job else None


def always_to_a_cpu(state, policy, reading):
    return Decision(0, 1, "x") if state.main else None


NAN, APPS = math.nan, workload.applications("lee", 2)
ONLY_GPU = JOBS.assign(cpu_time=[NAN, 2.0])
NO_VERSION = JOBS.assign(cpu_time=NAN, gpu_time=NAN)
NUMBERED = JOBS.set_axis(np.array([3, 7]))
ON_GPU = pd.DataFrame({"cpu_time": [NAN], "gpu_time": 1.0}, index=["A"])
TWICE = pd.DataFrame({"cpu_time": [1.0, 2.0], "gpu_time": 1.0}, index=["A", "A"])
QUEUE = pd.concat([JOBS.assign(arrival=0.0)] * 7, ignore_index=True)

#: What is called, and the words of its refusal.
REFUSED = [
    # --- machines, policies, readings
    (lambda: Machine(0, 0), "cpus|gpus"),
    *[(lambda n=name: device_class(n), "a device is called gpu0.*; use a name of Machine.devices")
      for name in ("tpu0", "gpu", "gpux", "", "cpu-1")],
    *[(lambda o=options: Policy(**o), next(iter(options)))
      for options in ({"rule": "six"}, {"target": "tpu"}, {"cross_class": "some"},
                      {"objective": "max"}, {"estimate": "mode"}, {"re_explore": -1},
                      {"steal": "yes"})],
    (lambda: simulated(policy="hist"), "policy must be one of history, .*'hist'"),
    *[(lambda n=name: Reading.from_switches({n: "neither"}), name) for name in SWITCHES],
    (lambda: Reading.from_switches({"sides": "both"}), "reading switch must be one of both_free"),
    (lambda: Reading.from_switches("best"), "mapping"),
    (lambda: simulated(reading={"both_free": "best"}), "Reading.from_switches"),
    (lambda: simulated(machine=Machine(1, 2), reading=Reading(gpu_cpu_share=0.5)),
     "must be below 0.5"),
    # .29 of a CPU for each of 100 GPUs are all 29 CPUs, though .29 * 100 < 29 in floats
    (lambda: simulated(machine=Machine(29, 100), reading=Reading(gpu_cpu_share=0.29)),
     "must be below 0.29"),
    (lambda: simulated(policy="ideal", reading=Reading(gpu_cpu_share=0.1)), "gpu_cpu_share=0"),
    # --- jobs
    (lambda: changed(gpu_time=[1.0, 0.0]), "gpu_time of row 'y' must be a finite positive time"),
    (lambda: changed(cpu_estimate=[NAN, 1.0]),
     "cpu_estimate must be given where cpu_time is; job 'x'"),
    (lambda: changed(gpu_estimate=[1.0, 0.0]), "gpu_estimate of row 'y' must be"),
    (lambda: simulated(ONLY_GPU, Machine(1, 0)),
     "job 'x' .A. has a version for gpu device only, and the machine has 0 GPUs"),
    (lambda: simulated(NO_VERSION), "has a version for no"),
    (lambda: simulated(ONLY_GPU, policy="cpu-only"),
     "cpu-only runs everything on a cpu, and job 'x'"),
    (lambda: learned(workload.random_jobs(ON_GPU, 1), policies=["cpu-only"]),
     "cpu-only runs everything on a cpu, and job 0"),
    (lambda: simulated(machine=Machine(1, 0), policy="gpu-only"), "gpu-only"),
    *[(lambda a=app: changed(app=[a, "B"]), "app must be the name") for app in ("  ", None, ["A"])],
    (lambda: changed(arrival=[1.0, 0.0]), "sorted by arrival; job 'y'"),
    (lambda: simulated(NO_VERSION.set_axis(NUMBERED.index)), "job 3 .A. has a version for no"),
    (lambda: run_moldable(NUMBERED.assign(nodes=[1, 3]), NodePool(), "mct"),
     "nodes of job 7 must be one"),
    (lambda: simulated(JOBS.drop(columns="gpu_time")), "gpu_time not found among"),
    (lambda: simulated(JOBS.iloc[:0]), "at least one row"),
    (lambda: simulated(JOBS.set_axis(["x", "x"])), "label 'x' of jobs appears twice"),
    (lambda: simulated([1, 2]), "DataFrame"),
    (lambda: simulated(engine="compiled"), "no compiled core; leave engine out"),
    (lambda: simulated(JOBS, 2), "machine must be a Machine"),
    (lambda: simulated(QUEUE, policy="ideal"),
     "at most 12 jobs .* got 14 jobs on 2 devices; .*lb_fractional"),
    # (5 - 1) 3**12 pairs of sets are 2,125,764
    (lambda: simulated(QUEUE.iloc[:12], Machine(3, 2), policy="ideal"),
     "2000000 pairs of sets, got 12 jobs on 5 devices"),
    # --- studies, histories
    *[(lambda c=call, g=given, n=name, v=value: c(**g, **{n: v}), f"{name} must be a {kind}, got")
      for call, given in ((simulated, {}), (learned, {}))
      for name, kind, value in (("reading", "Reading", "best"), ("history", "History", "new"))],
    (lambda: learned(policies="mct"), "must be a list of names or of Policy, got 'mct'"),
    (lambda: learned(machine=0), "machine must be a Machine, got 0"),
    (lambda: learn(JOBS, ONE_EACH, ["mct"]), "jobs need the column batch"),
    (lambda: changed(cpu_tim=1.0), "column 'cpu_tim' .*did you mean cpu_time"),
    (lambda: simulated(JOBS).fairness(significant=NAN), "significant"),
    (lambda: History().assign("A", "tpu"), "device class must be one of gpu, cpu"),
    (lambda: History().withdraw("A", "tpu"), "device class must be one of gpu, cpu"),
    (lambda: History().add(3, "gpu", 1.0), "app must be the name of an application, got 3"),
    *[(lambda t=time: History().add("A", "gpu", t), f"positive and finite.*{time!r}")
      for time in (0.0, -1.0, NAN, math.inf)],
    (lambda: History().measure("A", "tpu", 1.0), "'tpu'"),
    (lambda: History.exact(TWICE), "label 'A' of applications appears twice"),
    # --- rules of a user
    (lambda: ruled(lambda s, p, r: None), "'x' waiting for ever; its rule returned None"),
    (lambda: ruled(only_first), "'y' waiting for ever"),
    (lambda: simulated(ONLY_GPU, policy=Policy(always_to_a_cpu)),
     "job 0 .A. has no version for a cpu, chosen by policy always_to_a_cpu; return"),
    (lambda: decide(0), "what policy <lambda> returns must be a Decision, got 0"),
    (lambda: decide(lambda job: (job, 0, "x")), r"must be a Decision, got \(0, 0, 'x'\)"),
    (lambda: decide(lambda job: 1 / 0),
     "policy <lambda> must return None or a Decision; got ZeroDivisionError"),
    (lambda: decide(lambda job: Decision([job], 0, "x")),
     r"job of policy <lambda> must be .*, got \[0\]"),
    (lambda: decide(lambda job: Decision(99, 0, "x")),
     "policy <lambda> moved job 99, .* wait; return a job of state.main"),
    *[(lambda d=device: decide(lambda job: Decision(job, d, "x")),
       rf"device of policy <lambda> must be .*, got {device!r}") for device in (2, -1, "gpu0")],
    *[(lambda f=finish: decide(lambda job: Decision(job, 0, "x", f)),
       rf"predicted_finish .* each of 2 devices, got {re.escape(repr(finish))}")
      for finish in ((1.0,), None)],
    (lambda: run_mapreduce(word_count(), ["a b"], NodeGroup(1, 1, 1), lambda s, p, r: 0),
     "what policy <lambda> returns must be a Decision, got 0"),
    # --- what is drawn
    (lambda: workload.random_jobs(workload.applications(), 10**7, batches=10**7),
     "the jobs cannot fit in memory"),
    *[(lambda a=apps: workload.jobs_in_order(APPS, a), "apps must be a list of names")
      for apps in (5, [["a00"]])],
    (lambda: workload.jobs_in_order(APPS, ["a00", "z"]),
     "unknown application 'z'; the table has a00, a01"),
    (lambda: workload.random_jobs(APPS, noise=0.1), "noise"),
    (lambda: Machine(1, 10_001), "in 0..10000, got 10001"),
    (lambda: workload.applications("rodinia"), "mix must be one of lee"),
]  # fmt: skip


test_what_cannot_be_used_is_refused = refuses_each(REFUSED)


def test_a_policy_of_ones_own_must_come_to_an_end(monkeypatch):
    def to_and_fro(state, policy, reading):
        for device, queue in enumerate(state.queues):
            if queue:
                return Decision(queue[0].job, 1 - device, "x")
        return Decision(state.main[0].job, 0, "x") if state.main else None

    monkeypatch.setattr(scheduler, "MOST_MOVES", 50)
    jobs = workload.jobs_in_order(APPS, ["a00"] * 5)
    message = "policy to_and_fro moved job 2 .* 51 times .* return None"
    with pytest.raises(InputError, match=message):
        simulated(jobs, policy=Policy(to_and_fro))


# --- what is taken --------------------------------------------------------------------------------


def test_devices_are_named_gpus_first():
    assert Machine(2, 1).devices == ("gpu0", "cpu0", "cpu1")
    assert Machine(2.0, np.int64(1)) == Machine(2, 1)
    assert device_class("cpu12") == "cpu"


def test_a_policy_by_name():
    assert read_policy("mct") == ("mct", POLICIES["mct"])
    assert read_policy(Policy("fifo", target="gpu"))[0] == "gpu-only"
    assert read_policy(Policy(steal=True))[0] == "history, steal=True"
    with pytest.raises(InputError, match="differs from the policy of that name"):
        read_policy(Policy("mct", name="rsc"))


def test_every_switch_of_the_reading_has_its_options():
    for name, options in SWITCHES.items():
        for k, option in enumerate(options):
            reading = Reading.from_switches({name: option})
            assert reading.changes() == ({name: option} if k else {})


def test_a_makespan_that_the_clock_does_not_show():
    assert simulated(JOBS.assign(arrival=1e20)).throughput == math.inf


def test_jobs_may_be_named_in_any_order():
    jobs = workload.jobs_in_order(APPS, ["a01", "a01"])
    assert jobs["arrival"].tolist() == [0, 0]
    assert simulated(jobs, Machine(1, 0), "preferred").jobs["app"].tolist() == ["a01", "a01"]


# --- applications and jobs that are drawn ---------------------------------------------------------

LOG_UNIFORM = {"wide": (0.5, 50), "gpuheavy": (5, 50), "balanced": (1 / 3, 3)}


def follows(values, law):
    return stats.kstest(values, law.cdf).pvalue > 1e-3


def log_uniform(low, high):
    """The law of the logarithms."""
    return stats.uniform(math.log(low), math.log(high / low))


def log_normal_cut(mean, variance, low, high):
    """The law of the logarithms of a log-normal of this mean, between its ends."""
    middle, deviation = math.log(mean) - variance / 2, math.sqrt(variance)
    ends = ((math.log(x) - middle) / deviation for x in (low, high))
    return stats.truncnorm(*ends, middle, deviation)


@pytest.mark.parametrize("mix", workload.MIXES)
def test_mixes_follow_their_laws(mix):
    table = workload.applications(mix, 20_000, seed=3)
    assert follows(np.log(table["cpu_time"]), log_uniform(2, 60))
    gain = table["cpu_time"] / table["gpu_time"]
    if mix in LOG_UNIFORM:
        assert follows(np.log(gain), log_uniform(*LOG_UNIFORM[mix]))
    elif mix == "lee":
        assert gain.between(0.5 - 1e-12, 15 + 1e-12).all()
        inner = gain[(gain > 0.5 + 1e-12) & (gain < 15 - 1e-12)]
        assert follows(np.log(inner), log_normal_cut(2.5, 0.5, 0.5, 15))
        assert gain.mean() == pytest.approx(2.5, rel=0.03)
    else:
        assert gain.between(2 / 20, 50).all()
        middle = (math.log(2) + math.log(50) - math.log(20)) / 2
        assert np.log(gain).mean() == pytest.approx(middle, abs=0.03)


def test_noise_has_mean_one_and_its_deviation_and_outliers():
    table = pd.DataFrame({"cpu_time": [8.0], "gpu_time": [2.0]}, index=["A"])
    jobs = workload.random_jobs(table, 50_000, 1, Noise(outliers=0.0))
    for cls, time in (("cpu", 8.0), ("gpu", 2.0)):
        noise = jobs[f"{cls}_time"] / time
        assert noise.mean() == pytest.approx(1, abs=0.003)
        assert noise.std() == pytest.approx(0.1, rel=0.03)
        assert (jobs[f"{cls}_estimate"] == time).all()
    wild = workload.random_jobs(table, 50_000, 1, Noise(cv=0.0))
    assert sorted(set(wild["cpu_time"])) == [8.0, 40.0]
    assert (wild["cpu_time"] == 40).mean() == pytest.approx(0.02, abs=0.004)
    told = workload.random_jobs(table, 50_000, 1, Noise(error=0.2))["gpu_estimate"] / 2
    assert follows(told, stats.uniform(0.8, 0.4))


def test_batches_arrive_at_random_and_jobs_are_chosen_uniformly():
    table = workload.applications("lee", 4, seed=1)
    jobs = workload.random_jobs(table, 6, seed=1, batches=4000, interval=30.0)
    first = jobs.groupby("batch")["arrival"].agg(["min", "max"])
    assert (first["min"] == first["max"]).all()
    assert first["min"].iloc[0] == 0
    gaps = np.diff(first["min"])
    assert follows(gaps, stats.expon(scale=30))
    assert stats.chisquare(jobs["app"].value_counts()).pvalue > 1e-3


def test_what_is_drawn_depends_on_the_seed_alone():
    table = workload.applications("wide", 12, SeedSequence(5, spawn_key=(2,)))
    pd.testing.assert_frame_equal(
        table, workload.applications("wide", 12, SeedSequence(5, spawn_key=(2,)))
    )
    calm, wild = (workload.random_jobs(table, seed=4, noise=Noise(cv)) for cv in (0.0, 0.3))
    assert calm["app"].tolist() == wild["app"].tolist()
    assert workload.random_jobs(table, seed=5)["app"].tolist() != calm["app"].tolist()


def test_single_versions():
    table = workload.applications("lee", 2000, seed=1, single=0.5)
    lost = table.isna()
    assert not lost.all(axis=1).any()
    assert lost.any(axis=1).mean() == pytest.approx(0.5, abs=0.05)
    assert lost["cpu_time"].sum() == pytest.approx(500, abs=80)
    jobs = workload.random_jobs(table, 30, seed=2)
    simulated(jobs, Machine(2, 2)).check()


# --- CSV ------------------------------------------------------------------------------------------


def test_applications_go_through_a_csv_unchanged(tmp_path):
    table = workload.applications("transfer", 30, seed=1, single=0.3)
    table.to_csv(tmp_path / "a.csv")
    again = workload.read_applications(tmp_path / "a.csv")
    pd.testing.assert_frame_equal(again, table)
    measured = History.exact(again).table().pivot(index="app", columns="class", values="mean")
    for cls in ("cpu", "gpu"):
        assert measured[cls].equals(table[f"{cls}_time"].sort_index())


HEAD = "app,cpu_time,gpu_time\n"
BROKEN = [
    (HEAD + "A,1,0\n", "line 2, field gpu_time: .*'0'"),
    (HEAD + "A,1,-2\n", "line 2, field gpu_time: .*'-2'"),
    (HEAD + "A,1,fast\n", "line 2, field gpu_time: .*'fast'"),
    (HEAD + "A,1,2\nB,,nan\n", "line 3, field gpu_time: .*'nan'"),
    (HEAD + "A,,\nB,1,2\n", "application 'A' has no version"),
    (HEAD + "A,1,2\nA,1,2\n", "line 3, field app: 'A' is used twice"),
    (HEAD, "holds no application"),
    (HEAD + " ,1,2\n", "field app"),
    ("app,cpu_time\nA,1\n", "field gpu_time: no such column"),
    ("name,cpu_time,gpu_time\nA,1,2\n", "field app: no such column"),
]


def test_a_broken_csv_is_refused(tmp_path):
    def read(text):
        (tmp_path / "a.csv").write_text(text)
        return workload.read_applications(tmp_path / "a.csv")

    require_refusals([(lambda t=text: read(t), rf"a\.csv.*{words}") for text, words in BROKEN])


def test_measured_times_replace_a_mix(tmp_path):
    (tmp_path / "a.csv").write_text("app,gpu_time,cpu_time,source\nA,1,2,x\nB,,3,y\n")
    table = workload.read_applications(tmp_path / "a.csv")
    assert table.loc["B"].tolist()[1] == 3
    assert math.isnan(table.loc["B", "gpu_time"])
    simulated(workload.random_jobs(table, 8, seed=1)).check()
