"""What is wrong in a schedule is found, and fairness is what paper C's section 5 says."""

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlsim.cpugpu import History, Machine, Reading, workload
from dlsim.cpugpu.check import do_not_overlap
from dlsim.errors import InputError, ScheduleError
from tests.helpers.cpugpu_queues import knowing, queue, run_queue

JOBS = workload.random_jobs(
    workload.applications("lee", 5, seed=1), 12, seed=1, batches=2, interval=40.0
)
MACHINE = Machine(cpus=1, gpus=2)


def broken(change, policy="history", reading=None):
    """A schedule with one change to its table."""
    r = run_queue(JOBS, MACHINE, policy, reading=reading)
    r.check()
    jobs = r.jobs.copy()
    change(jobs)
    return replace(r, jobs=jobs)


def second_on(jobs, device):
    return jobs[jobs["device"] == device].sort_values("start").index[1]


def move(jobs, by, *columns):
    for column in columns or ("start", "completion"):
        jobs.loc[second_on(jobs, "gpu0"), column] += by


CHANGES = {
    "serves its sub-queue in order": lambda j: move(j, -0.1),
    "idles only without": lambda j: move(j, 0.1),
    "runs for its time": lambda j: move(j, -1e-6, "completion"),
    "keeps its arrival": lambda j: move(j, 1.0, "arrival"),
    "on a device of the machine": lambda j: j.update(j["device"].replace("cpu0", "cpu1")),
    "decided before it arrives": lambda j: j.__setitem__("decided", j["decided"] - 1e-3),
    "leaves by a word": lambda j: j.__setitem__("rule", j["rule"].replace("R2", "own")),
    "where the rule predicts": lambda j: j.__setitem__("predicted", j["predicted"].fillna(1.0)),
    "start instant": lambda j: j.__setitem__("start", np.nan),
    "completion instant": lambda j: j.__setitem__("completion", np.inf),
}  # fmt: skip


@pytest.mark.parametrize("rule", CHANGES)
def test_a_broken_rule_is_named(rule):
    with pytest.raises(ScheduleError, match=rule):
        broken(CHANGES[rule]).check()


def test_swapped_or_missing_jobs_are_found():
    r = run_queue(JOBS, MACHINE)
    for jobs in (r.jobs.iloc[1:], r.jobs.iloc[::-1], pd.concat([r.jobs, r.jobs.iloc[:1]])):
        with pytest.raises(ScheduleError, match="once, in queue order"):
            replace(r, jobs=jobs).check()


def test_a_run_without_a_version_or_beside_gpu_jobs_is_found():
    r = run_queue(JOBS.assign(gpu_time=JOBS["gpu_time"].where(JOBS.index != 3)), MACHINE)
    table = r.jobs.copy()
    table.loc[3, "device"] = "gpu1"
    slowed = run_queue(JOBS, MACHINE, "mct", reading=Reading(gpu_cpu_share=0.2))
    slowed.check()
    for rule, wrong in {
        "where it has a version": replace(r, jobs=table),
        "runs for its time": replace(slowed, reading=Reading()),
    }.items():
        with pytest.raises(ScheduleError, match=rule):
            wrong.check()


def test_a_job_that_passes_the_head_is_found():
    # mct takes the head of the main queue; the two jobs are on two devices
    jobs = pd.DataFrame({"app": "A", "arrival": [0.0, 0.0], "cpu_time": 4.0, "gpu_time": 3.0})
    r = run_queue(jobs, policy="mct")
    assert r.jobs["device"].tolist() == ["gpu0", "cpu0"]
    for turn in ([1, 0], [0, 0]):
        with pytest.raises(ScheduleError, match="leave the main queue in its order"):
            replace(r, jobs=r.jobs.assign(turn=turn)).check()


def test_the_shortest_job_says_which_instants_differ():
    """1e-8 s before its arrival is too early, however long the other job takes."""
    jobs = pd.DataFrame({"app": ["A", "B"], "arrival": [1.0, 1.0], "cpu_time": [1.0, 1e6]})
    r = run_queue(jobs.assign(gpu_time=np.nan), Machine(2, 1))
    r.check()
    with pytest.raises(ScheduleError, match="decided before it arrives"):
        replace(r, jobs=r.jobs.assign(decided=1 - 1e-8)).check()


def test_gpu_jobs_take_nothing_of_cpus_that_are_not_there():
    r = run_queue(JOBS, Machine(0, 2), reading=Reading(gpu_cpu_share=0.25))
    with np.errstate(all="raise"):
        r.check()


def test_runs_in_one_lane_overlap_but_for_a_rounding():
    lanes, start = ["a", "a", "b"], [0.0, 2.0, 1.0]
    assert do_not_overlap(lanes, start, [10.0, 3.0, 9.0], 1.0).tolist() == [True, False, True]
    assert do_not_overlap(["a", "a"], [0.3, 0.0], [1.0, 0.1 + 0.1 + 0.1], 0.1).all()


# --- fairness ---------------------------------------------------------------------------------


def plain_local(r):
    """F1, from its definition: behind what had been assigned to the preferred class."""
    bounds, jobs, views = [], r.jobs, list(r.job_table.job_views())
    for j, row in enumerate(jobs.itertuples()):
        ends = []
        for d, device in enumerate(r.machine.devices):
            if device.startswith(views[j].preferred):
                ahead = jobs[(jobs["device"] == device) & (jobs["turn"] < row.turn)]["completion"]
                ends.append(max([row.decided, *ahead]) + r.job_table.times[j, d])
        bounds.append(min(ends))
    return bounds


@pytest.mark.parametrize("policy", ["history", "round-robin", "rsa", "cpu-only"])
def test_both_readings_are_their_definitions(policy):
    r = run_queue(JOBS, MACHINE, policy)
    local, whole = r.fairness("assigned"), r.fairness("preferred")
    assert local["fair_completion"].tolist() == pytest.approx(plain_local(r))
    fifo = run_queue(JOBS, MACHINE, "preferred")
    assert whole["fair_completion"].tolist() == pytest.approx(fifo.jobs["completion"].tolist())
    for jobs in (local, whole):
        assert (jobs["lateness"] == r.jobs["completion"] - jobs["fair_completion"]).all()
        assert (jobs["late"] == (jobs["lateness"] > 1e-9)).all()


def test_the_preferred_schedule_is_fair_to_itself():
    fifo = run_queue(JOBS, MACHINE, "preferred")
    for against in ("assigned", "preferred"):
        assert not fifo.fairness(against)["late"].any()


def test_first_exception_an_application_met_for_the_first_time():
    jobs = pd.DataFrame({"app": "A", "arrival": [0.0, 0.0], "cpu_time": 400.0, "gpu_time": 10.0})
    fair = run_queue(jobs).fairness()
    assert fair["late"].tolist() == [False, True]
    assert fair["excuse"].tolist() == ["explored", "explored"]
    assert fair["lateness"][1] == 380


def test_second_exception_a_prediction_that_was_wrong():
    history = knowing(("A", "gpu", 10.0), ("A", "cpu", 5.0))
    jobs = pd.DataFrame({"app": "A", "arrival": [0.0], "cpu_time": 30.0, "gpu_time": 10.0})
    r = run_queue(jobs.assign(cpu_estimate=30.0, gpu_estimate=10.0), history=history)
    fair = r.fairness()
    assert fair["lateness"].tolist() == [20]
    assert fair["excuse"].tolist() == ["mispredicted"]
    assert r.fairness(significant=9.0)["excuse"].tolist() == [""]


def test_without_a_wrong_prediction_there_is_no_excuse():
    """On two GPUs, to 10 and to 20 s: the third is told that it ends on the first, at 20 s."""
    fair = run_queue(JOBS, MACHINE, "round-robin").fairness()
    assert fair["late"].any()
    assert set(fair["excuse"]) == {""}  # that policy predicts nothing
    history = History()
    for app, time in (("A", 10.0), ("B", 20.0)):
        history.add(app, "gpu", time)
        history.add(app, "cpu", 400.0)
    times = {"gpu_time": [10.0, 20.0, 10.0], "cpu_time": 400.0}
    jobs = pd.DataFrame({"app": ["A", "B", "A"], "arrival": 0.0} | times)
    r = run_queue(jobs, MACHINE, history=history)
    assert r.predictions.loc[2, ["gpu0", "gpu1"]].tolist() == [20.0, 30.0]
    assert r.fairness(significant=0)["excuse"].tolist() == ["", "", ""]


def test_an_error_of_exactly_the_allowed_part_is_no_excuse():
    # A is measured as t on the CPU, and takes 1.1 t there: an error of one eleventh of its run.
    for time in (1.0, 0.1, 0.3, 3.0, 7.0):
        history = knowing(("A", "gpu", 0.5 * time), ("A", "cpu", time))
        jobs = pd.DataFrame({"app": "A", "arrival": [0.0], "cpu_time": 1.1 * time})
        r = run_queue(jobs.assign(gpu_time=np.nan), history=history)
        assert r.fairness(significant=1 / 11)["excuse"].tolist() == [""]
        assert r.fairness(significant=0.09)["excuse"].tolist() == ["mispredicted"]
        exact = run_queue(jobs.assign(cpu_time=time, gpu_time=np.nan), history=history)
        assert exact.fairness(significant=0)["excuse"].tolist() == [""]


def test_an_unknown_comparison_is_refused():
    r = run_queue(queue(random.Random(1)).table, Machine(3, 3))
    with pytest.raises(InputError, match=r"against must be one of assigned, preferred; got 'F1'"):
        r.fairness("F1")
