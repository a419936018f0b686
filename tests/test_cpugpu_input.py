"""What the CPU-GPU engine cannot use is refused: value, rule, remedy; and what jobs are drawn."""

import math

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
from dlsim.cpugpu.jobs import device_class
from dlsim.cpugpu.model import NUMBERS, find_job_policy
from dlsim.cpugpu.rules import Decision
from dlsim.errors import InputError

JOBS = pd.DataFrame(
    {"app": ["A", "B"], "arrival": [0.0, 1.0], "cpu_time": [4.0, 2.0], "gpu_time": [1.0, 9.0]},
    index=["x", "y"],
)


def refused(match, function, *args, **options):
    with pytest.raises(InputError, match=match):
        function(*args, **options)


# --- machine, policy, reading ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "counts", [(0, 0), (-1, 1), (1.5, 1), (True, 1), ("1", 1), (math.nan, 1), (10**9, 1), (1, None)]
)
def test_what_is_no_machine(counts):
    refused("cpus|gpus", Machine, *counts)


def test_devices_are_named_gpus_first():
    assert Machine(2, 1).devices == ("gpu0", "cpu0", "cpu1")
    assert Machine(2.0, np.int64(1)) == Machine(2, 1)
    assert device_class("cpu12") == "cpu"


@pytest.mark.parametrize("name", ["tpu0", "gpu", "gpux", "", "cpu-1"])
def test_an_unknown_device_is_refused(name):
    refused("a device is called gpu0.*; use a name of Machine.devices", device_class, name)


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "six"}, {"target": "tpu"}, {"cross_class": "some"}, {"objective": "max"},
        {"estimate": "mode"}, {"min_samples": 0}, {"re_explore": -1}, {"bound": 1.5},
        {"bound": math.nan}, {"steal": "yes"},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_policy(options):
    refused(next(iter(options)), Policy, **options)


def test_a_policy_by_name():
    refused("policy must be one of history, .*'hist'", simulate, JOBS, Machine(), "hist")
    assert find_job_policy("mct") == ("mct", POLICIES["mct"])
    assert find_job_policy(Policy("mct"))[0] == "mct"
    assert find_job_policy(Policy(steal=True))[0] == "history"


@pytest.mark.parametrize("name", SWITCHES)
def test_every_switch_of_the_reading_has_its_options(name):
    for k, option in enumerate(SWITCHES[name]):
        reading = Reading.from_switches({name: option})
        assert reading.changes() == ({name: option} if k else {})
    refused(name, Reading.from_switches, {name: "neither"})
    if name in NUMBERS:
        refused(name, Reading.from_switches, {name: "-1"})


def test_a_reading_is_a_mapping_of_known_switches():
    refused("reading switch must be one of both_free", Reading.from_switches, {"sides": "both"})
    refused("mapping", Reading.from_switches, "best")
    refused("Reading.from_switches", simulate, JOBS, reading={"both_free": "best"})


def test_gpu_threads_must_leave_something_of_the_cpus():
    refused("must be below 0.5", simulate, JOBS, Machine(1, 2), reading=Reading(gpu_cpu_share=0.5))
    refused("gpu_cpu_share=0", simulate, JOBS, policy="ideal", reading=Reading(gpu_cpu_share=0.1))


# --- jobs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["cpu_time", "gpu_time"])
@pytest.mark.parametrize("value", [0.0, -3.0, math.inf, "fast"])
def test_times_are_positive_and_finite(column, value):
    jobs = JOBS.astype({column: object})
    jobs.loc["y", column] = value
    refused(f"{column} of row 'y' must be a finite positive time", simulate, jobs)


def test_declared_times_are_needed_where_there_is_a_version():
    refused("cpu_estimate must be given where cpu_time is; job 'x'", simulate,
            JOBS.assign(cpu_estimate=[math.nan, 1.0]))  # fmt: skip
    refused("gpu_estimate of row 'y' must be", simulate, JOBS.assign(gpu_estimate=[1.0, 0.0]))


def test_a_job_needs_a_version_for_a_device_of_the_machine():
    only_gpu = JOBS.assign(cpu_time=[math.nan, 2.0])
    refused("job 'x' .A. has a version for gpu device only, and the machine has 0 GPUs",
            simulate, only_gpu, Machine(1, 0))  # fmt: skip
    refused("has a version for no", simulate, only_gpu.assign(gpu_time=math.nan))
    refused(
        "cpu-only runs everything on a cpu, and job 'x'", simulate, only_gpu, Machine(), "cpu-only"
    )
    table = pd.DataFrame({"cpu_time": [math.nan], "gpu_time": 1.0}, index=["A"])
    refused("cpu-only runs everything on a cpu, and job 0", learn, policies=["cpu-only"],
            table=table, batches=2, jobs=1)  # fmt: skip


def test_a_study_takes_a_reading_and_a_history_as_a_simulation_does():
    for function, given in ((simulate, {"jobs": JOBS}), (learn, {"batches": 1, "jobs": 1})):
        refused("reading must be a Reading, got 'best'", function, **given, reading="best")
        refused("history must be a History, got 'new'", function, **given, history="new")
    refused("gpu-only", simulate, JOBS, Machine(1, 0), "gpu-only")
    r = simulate(JOBS, Machine(1, 0), "preferred")
    assert set(r.jobs["device"]) == {"cpu0"}


def test_what_else_is_refused_by_its_rule():
    refused("must be a list of names or of Policy, got 'mct'", learn, policies="mct")
    refused("policies must be a list", learn, policies=3)
    refused("machine must be a Machine, got 0", learn, machine=0)
    refused(
        "the jobs cannot fit in memory",
        workload.random_jobs,
        workload.applications(),
        10**7,
        batches=10**7,
    )
    refused("apps must be a list of names", workload.jobs_in_order, workload.applications(), 5)
    refused(
        "apps must be a list of names", workload.jobs_in_order, workload.applications(), [["a00"]]
    )
    refused("significant", simulate(JOBS).fairness, significant=math.nan)
    refused("device class must be one of gpu, cpu", History().assign, "A", "tpu")
    refused("device class must be one of gpu, cpu", History().withdraw, "A", "tpu")
    refused("app must be the name of an application, got 3", History().add, 3, "gpu", 1.0)
    refused("label 'A' of applications appears twice", History.exact,
            pd.DataFrame({"cpu_time": [1.0, 2.0], "gpu_time": 1.0}, index=["A", "A"]))  # fmt: skip
    known = History()
    refused("positive and finite", known.add, "A", "gpu", -1.0)
    assert known.table().empty


def test_a_label_is_named_as_it_prints_best():
    jobs = JOBS.set_axis(np.array([3, 7]))
    refused("sorted by arrival; job 7 comes", simulate, jobs.assign(arrival=[1.0, 0.0]))
    refused(
        "job 3 .A. has a version for no",
        simulate,
        jobs.assign(cpu_time=math.nan, gpu_time=math.nan),
    )
    refused("nodes of job 7 must be one", run_moldable, jobs.assign(nodes=[1, 3]))


def test_a_makespan_that_the_clock_does_not_show():
    assert simulate(JOBS.assign(arrival=1e20)).throughput == math.inf


@pytest.mark.parametrize("app", ["", "  ", None, 3, ["A"], {"A": 1}])
def test_an_application_has_a_name(app):
    refused("app must be the name", simulate, JOBS.assign(app=[app, "B"]))


def test_tables_are_sorted_whole_and_labelled_once():
    refused("sorted by arrival; job 'y'", simulate, JOBS.assign(arrival=[1.0, 0.0]))
    refused("arrival", simulate, JOBS.assign(arrival=[-1.0, 0.0]))
    refused("gpu_time not found among", simulate, JOBS.drop(columns="gpu_time"))
    refused("at least one row", simulate, JOBS.iloc[:0])
    refused("label 'x' of jobs appears twice", simulate, JOBS.set_axis(["x", "x"]))
    refused("DataFrame", simulate, [1, 2])
    refused("machine must be a Machine", simulate, JOBS, 2)
    refused("history must be a History", simulate, JOBS, history="h.sqlite")


def test_long_queues_have_no_exhaustive_schedule():
    jobs = pd.concat([JOBS.assign(arrival=0.0)] * 7, ignore_index=True)
    refused("at most 12 jobs .* got 14 jobs on 2 devices; .*lb_fractional", simulate, jobs,
            policy="ideal")  # fmt: skip


def test_a_policy_of_ones_own_must_move_what_waits():
    refused("moved job 7", simulate, JOBS, policy=Policy(lambda s, p, r: Decision(7, 0, "x")))
    refused(
        "'x' waiting for ever; its rule returned None",
        simulate,
        JOBS,
        policy=Policy(lambda s, p, r: None),
    )
    first = Policy(lambda s, p, r: Decision(0, 0, "x") if s.main and not s.main[0].job else None)
    refused("'y' waiting for ever", simulate, JOBS, policy=first)
    only_gpu = JOBS.assign(cpu_time=[math.nan, 2.0])
    refused("job 0 .A. has no version for a cpu, chosen by policy <lambda>; return", simulate,
            only_gpu,
            policy=Policy(lambda s, p, r: Decision(0, 1, "x") if s.main else None))  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (0, "what policy <lambda> returns must be a Decision, got 0"),
        (lambda job: (job, 0, "x"), r"must be a Decision, got \(0, 0, 'x'\)"),
        (
            lambda job: 1 / 0,
            "policy <lambda> must return None or a Decision; got ZeroDivisionError",
        ),
        (lambda job: Decision([job], 0, "x"), r"job of policy <lambda> must be .*, got \[0\]"),
        (
            lambda job: Decision(99, 0, "x"),
            "policy <lambda> moved job 99, .* wait; return a job of state.main",
        ),
        (
            lambda job: Decision(job, 2, "x"),
            r"device of policy <lambda> must be .* in 0\.\.1, got 2",
        ),
        (lambda job: Decision(job, -1, "x"), "device of policy <lambda> must be .*, got -1"),
        (
            lambda job: Decision(job, "gpu0", "x"),
            "device of policy <lambda> must be .*, got 'gpu0'",
        ),
        (
            lambda job: Decision(job, 0, "x", (1.0,)),
            r"predicted_finish .* each of 2 devices, got \(1.0,\)",
        ),
        (
            lambda job: Decision(job, 0, "x", None),
            "predicted_finish .* each of 2 devices, got None",
        ),
    ],
)
def test_a_policy_of_ones_own_must_return_a_decision(answer, match):
    own = Policy(lambda s, p, r: answer(s.main[0].job) if callable(answer) else answer)
    refused(match, simulate, JOBS, policy=own)
    refused(match, run_mapreduce, word_count(), ["a b"], NodeGroup(1, 1, 1), own)


def test_a_policy_of_ones_own_must_come_to_an_end(monkeypatch):
    def to_and_fro(state, policy, reading):
        for device, queue in enumerate(state.queues):
            if queue:
                return Decision(queue[0].job, 1 - device, "x")
        return Decision(state.main[0].job, 0, "x") if state.main else None

    monkeypatch.setattr(scheduler, "MOST_MOVES", 50)
    jobs = workload.jobs_in_order(workload.applications("lee", 2), ["a00"] * 5)
    refused(
        "policy to_and_fro moved job 2 .* 51 times .* return None",
        simulate,
        jobs,
        policy=Policy(to_and_fro),
    )


# --- applications and jobs that are drawn ---------------------------------------------------------

LOG_UNIFORM = {"wide": (0.5, 50), "gpuheavy": (5, 50), "balanced": (1 / 3, 3)}


@pytest.mark.parametrize("mix", workload.MIXES)
def test_mixes_follow_their_laws(mix):
    table = workload.applications(mix, 20_000, seed=3)
    assert stats.kstest(np.log(table["cpu_time"]), stats.uniform(
        math.log(2), math.log(30)).cdf).pvalue > 1e-3  # fmt: skip
    gain = table["cpu_time"] / table["gpu_time"]
    if mix in LOG_UNIFORM:
        low, high = LOG_UNIFORM[mix]
        law = stats.uniform(math.log(low), math.log(high / low))
        assert stats.kstest(np.log(gain), law.cdf).pvalue > 1e-3
    elif mix == "lee":
        assert gain.between(0.5 - 1e-12, 15 + 1e-12).all()
        inner = gain[(gain > 0.5 + 1e-12) & (gain < 15 - 1e-12)]
        law = stats.truncnorm(
            *((math.log(x) - math.log(2.5) + 0.25) / math.sqrt(0.5) for x in (0.5, 15)),
            math.log(2.5) - 0.25, math.sqrt(0.5),
        )  # fmt: skip
        assert stats.kstest(np.log(inner), law.cdf).pvalue > 1e-3
        assert gain.mean() == pytest.approx(2.5, rel=0.03)
    else:
        assert gain.between(2 / 20, 50).all()
        assert np.log(gain).mean() == pytest.approx(
            (math.log(2) + math.log(50) - math.log(20)) / 2, abs=0.03
        )


def test_noise_has_mean_one_and_its_deviation_and_outliers():
    table = pd.DataFrame({"cpu_time": [8.0], "gpu_time": [2.0]}, index=["A"])
    jobs = workload.random_jobs(table, 50_000, seed=1, cv=0.1, outliers=0.0)
    for cls, time in (("cpu", 8.0), ("gpu", 2.0)):
        noise = jobs[f"{cls}_time"] / time
        assert noise.mean() == pytest.approx(1, abs=0.003)
        assert noise.std() == pytest.approx(0.1, rel=0.03)
        assert (jobs[f"{cls}_estimate"] == time).all()
    wild = workload.random_jobs(table, 50_000, seed=1, cv=0.0, outliers=0.02, factor=5.0)
    assert sorted(set(wild["cpu_time"])) == [8.0, 40.0]
    assert (wild["cpu_time"] == 40).mean() == pytest.approx(0.02, abs=0.004)
    told = workload.random_jobs(table, 50_000, seed=1, error=0.2)["gpu_estimate"] / 2
    assert stats.kstest(told, stats.uniform(0.8, 0.4).cdf).pvalue > 1e-3


def test_batches_arrive_at_random_and_jobs_are_chosen_uniformly():
    table = workload.applications("lee", 4, seed=1)
    jobs = workload.random_jobs(table, 6, seed=1, batches=4000, interval=30.0)
    first = jobs.groupby("batch")["arrival"].agg(["min", "max"])
    assert (first["min"] == first["max"]).all()
    assert first["min"].iloc[0] == 0
    gaps = np.diff(first["min"])
    assert stats.kstest(gaps, stats.expon(scale=30).cdf).pvalue > 1e-3
    assert stats.chisquare(jobs["app"].value_counts()).pvalue > 1e-3


def test_what_is_drawn_depends_on_the_seed_alone():
    table = workload.applications("wide", 12, SeedSequence(5, spawn_key=(2,)))
    pd.testing.assert_frame_equal(
        table, workload.applications("wide", 12, SeedSequence(5, spawn_key=(2,)))
    )
    calm, wild = (workload.random_jobs(table, seed=4, cv=cv) for cv in (0.0, 0.3))
    assert calm["app"].tolist() == wild["app"].tolist()
    assert workload.random_jobs(table, seed=5)["app"].tolist() != calm["app"].tolist()


def test_single_versions():
    table = workload.applications("lee", 2000, seed=1, single=0.5)
    lost = table.isna()
    assert not lost.all(axis=1).any()
    assert lost.any(axis=1).mean() == pytest.approx(0.5, abs=0.05)
    assert lost["cpu_time"].sum() == pytest.approx(500, abs=80)
    jobs = workload.random_jobs(table, 30, seed=2)
    simulate(jobs, Machine(2, 2)).check()


@pytest.mark.parametrize(
    "options",
    [{"jobs": 0}, {"cv": -1}, {"outliers": 2}, {"factor": 0}, {"error": 1}, {"batches": 0},
     {"interval": math.inf}, {"seed": -1}, {"seed": "x"}],
    ids=str,
)  # fmt: skip
def test_a_draw_out_of_range(options):
    refused(next(iter(options)), workload.random_jobs, workload.applications(), **options)


def test_an_unknown_mix_or_application():
    refused("mix must be one of lee", workload.applications, "rodinia")
    refused("count", workload.applications, "lee", 0)
    refused("single", workload.applications, "lee", 2, single=2)
    refused("unknown application 'z'; the table has a00, a01", workload.jobs_in_order,
            workload.applications("lee", 2), ["a00", "z"])  # fmt: skip
    jobs = workload.jobs_in_order(workload.applications("lee", 2), ["a01", "a01"])
    assert simulate(jobs).jobs["app"].tolist() == ["a01", "a01"]


# --- CSV ------------------------------------------------------------------------------------------


def test_applications_go_through_a_csv_unchanged(tmp_path):
    table = workload.applications("transfer", 30, seed=1, single=0.3)
    table.to_csv(tmp_path / "a.csv")
    again = workload.read_applications(tmp_path / "a.csv")
    pd.testing.assert_frame_equal(again, table)
    measured = History.exact(again).table().pivot(index="app", columns="class", values="mean")
    for cls in ("cpu", "gpu"):
        assert measured[cls].equals(table[f"{cls}_time"].sort_index())


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("app,cpu_time,gpu_time\nA,1,0\n", "line 2, field gpu_time: .*'0'"),
        ("app,cpu_time,gpu_time\nA,1,-2\n", "line 2, field gpu_time: .*'-2'"),
        ("app,cpu_time,gpu_time\nA,1,fast\n", "line 2, field gpu_time: .*'fast'"),
        ("app,cpu_time,gpu_time\nA,1,2\nB,,nan\n", "line 3, field gpu_time: .*'nan'"),
        ("app,cpu_time,gpu_time\nA,,\nB,1,2\n", "application 'A' has no version"),
        ("app,cpu_time,gpu_time\nA,1,2\nA,1,2\n", "line 3, field app: 'A' is used twice"),
        ("app,cpu_time\nA,1\n", "field gpu_time: no such column"),
        ("app,cpu_time,gpu_time\n", "holds no application"),
        ("app,cpu_time,gpu_time\n ,1,2\n", "field app"),
        ("name,cpu_time,gpu_time\nA,1,2\n", "field app: no such column"),
    ],
)
def test_a_broken_csv_is_refused(tmp_path, text, match):
    (tmp_path / "a.csv").write_text(text)
    refused(rf"a\.csv.*{match}", workload.read_applications, tmp_path / "a.csv")


def test_measured_times_replace_a_mix(tmp_path):
    (tmp_path / "a.csv").write_text("app,gpu_time,cpu_time,source\nA,1,2,x\nB,,3,y\n")
    table = workload.read_applications(tmp_path / "a.csv")
    assert table.loc["B"].tolist()[1] == 3
    assert math.isnan(table.loc["B", "gpu_time"])
    simulate(workload.random_jobs(table, 8, seed=1)).check()
