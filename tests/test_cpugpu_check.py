"""What is wrong in a schedule is found, and fairness is what paper C's section 5 says."""

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from dlsim.cpugpu import History, Machine, Reading, simulate, workload
from dlsim.cpugpu.engine import ONLINE
from dlsim.errors import InputError, ScheduleError
from tests.cpugpu_queues import queue, queues
from tests.scale import scale_count

JOBS = workload.random_jobs(
    workload.applications("lee", 5, seed=1), 12, seed=1, batches=2, interval=40.0
)
MACHINE = Machine(cpus=1, gpus=2)


def broken(change, policy="history", reading=None):
    """A schedule with one change to its table."""
    r = simulate(JOBS, MACHINE, policy, reading=reading)
    r.check()
    jobs = r.jobs.copy()
    change(jobs)
    return replace(r, jobs=jobs)


def second_on(jobs, device):
    return jobs[jobs["device"] == device].sort_values("start").index[1]


def move(jobs, column, by):
    jobs.loc[second_on(jobs, "gpu0"), column] += by


CHANGES = {
    "serves its sub-queue in order": lambda j: (move(j, "start", -0.1), move(j, "end", -0.1)),
    "idles only without": lambda j: (move(j, "start", 0.1), move(j, "end", 0.1)),
    "runs for its time": lambda j: move(j, "end", -1e-6),
    "keeps its arrival": lambda j: move(j, "arrival", 1.0),
    "on a device of the machine": lambda j: j.update(j["device"].replace("cpu0", "cpu1")),
    "decided before it arrives": lambda j: j.__setitem__("decided", j["decided"] - 1e-3),
    "start instant": lambda j: j.__setitem__("start", np.nan),
}  # fmt: skip


@pytest.mark.parametrize("rule", CHANGES)
def test_a_broken_rule_is_named(rule):
    with pytest.raises(ScheduleError, match=rule):
        broken(CHANGES[rule]).check()


def test_swapped_or_missing_jobs_are_found():
    r = simulate(JOBS, MACHINE)
    for jobs in (r.jobs.iloc[1:], r.jobs.iloc[::-1], pd.concat([r.jobs, r.jobs.iloc[:1]])):
        with pytest.raises(ScheduleError, match="once, in queue order"):
            replace(r, jobs=jobs).check()


def test_a_run_without_a_version_is_found():
    jobs = JOBS.assign(gpu_time=JOBS["gpu_time"].where(JOBS.index != 3))
    r = simulate(jobs, MACHINE)
    table = r.jobs.copy()
    table.loc[3, "device"] = "gpu1"
    with pytest.raises(ScheduleError, match="where it has a version"):
        replace(r, jobs=table).check()


def test_work_beside_gpu_jobs_is_counted():
    r = simulate(JOBS, MACHINE, "mct", reading=Reading(gpu_cpu_share=0.2))
    r.check()
    with pytest.raises(ScheduleError, match="runs for its time"):
        replace(r, reading=Reading()).check()


@settings(max_examples=scale_count(15), deadline=None)
@given(queues(jobs=16))
def test_every_schedule_passes(q):
    share = 0.25 if q.cpus else 0.0
    for name in ONLINE:
        if name not in ("cpu-only", "gpu-only"):
            simulate(q.table, Machine(q.cpus, q.gpus), name).check()
            reading = Reading(gpu_cpu_share=share)
            simulate(q.table, Machine(q.cpus, q.gpus), name, reading=reading).check()


# --- fairness ---------------------------------------------------------------------------------


def plain_local(r):
    """F1, from its definition: behind what had been assigned to the preferred class."""
    bounds, jobs, views = [], r.jobs, list(r.job_table.job_views())
    for j, row in enumerate(jobs.itertuples()):
        ends = []
        for d, device in enumerate(r.machine.devices):
            if device.startswith(views[j].preferred):
                ahead = jobs[(jobs["device"] == device) & (jobs["turn"] < row.turn)]["end"]
                ends.append(max([row.decided, *ahead]) + r.job_table.times[j, d])
        bounds.append(min(ends))
    return bounds


@pytest.mark.parametrize("policy", ["history", "round-robin", "rsa", "cpu-only"])
def test_both_readings_are_their_definitions(policy):
    r = simulate(JOBS, MACHINE, policy)
    local, whole = r.fairness("local"), r.fairness("global")
    assert local["fair_end"].tolist() == pytest.approx(plain_local(r))
    fifo = simulate(JOBS, MACHINE, "preferred")
    assert whole["fair_end"].tolist() == pytest.approx(fifo.jobs["end"].tolist())
    for jobs in (local, whole):
        assert (jobs["lateness"] == r.jobs["end"] - jobs["fair_end"]).all()
        assert (jobs["late"] == (jobs["lateness"] > 1e-9)).all()


def test_the_preferred_schedule_is_fair_to_itself():
    fifo = simulate(JOBS, MACHINE, "preferred")
    for reading in ("local", "global"):
        assert not fifo.fairness(reading)["late"].any()


def test_first_exception_an_application_met_for_the_first_time():
    jobs = pd.DataFrame({"app": "A", "arrival": [0.0, 0.0], "cpu_time": 400.0, "gpu_time": 10.0})
    fair = simulate(jobs).fairness()
    assert fair["late"].tolist() == [False, True]
    assert fair["excuse"].tolist() == ["explored", "explored"]
    assert fair["lateness"][1] == 380


def test_second_exception_a_prediction_that_was_wrong():
    history = History()
    for cls, time in (("gpu", 10.0), ("cpu", 5.0)):
        history.add("A", cls, time)
    jobs = pd.DataFrame({"app": "A", "arrival": [0.0], "cpu_time": 30.0, "gpu_time": 10.0})
    r = simulate(jobs.assign(cpu_estimate=30.0, gpu_estimate=10.0), history=history)
    fair = r.fairness()
    assert fair["lateness"].tolist() == [20]
    assert fair["excuse"].tolist() == ["mispredicted"]
    assert r.fairness(significant=9.0)["excuse"].tolist() == [""]


def test_an_error_of_exactly_the_allowed_part_is_no_excuse():
    # A is measured as t on the CPU, and takes 1.1 t there: an error of one eleventh of its run.
    for time in (1.0, 0.1, 0.3, 3.0, 7.0):
        history = History()
        for cls, known in (("gpu", 0.5 * time), ("cpu", time)):
            history.add("A", cls, known)
        jobs = pd.DataFrame({"app": "A", "arrival": [0.0], "cpu_time": 1.1 * time})
        r = simulate(jobs.assign(gpu_time=np.nan), history=history)
        assert r.fairness(significant=1 / 11)["excuse"].tolist() == [""]
        assert r.fairness(significant=0.09)["excuse"].tolist() == ["mispredicted"]
        exact = simulate(jobs.assign(cpu_time=time, gpu_time=np.nan), history=history)
        assert exact.fairness(significant=0)["excuse"].tolist() == [""]


def test_lateness_grows_with_noise():
    late = []
    for cv in (0.0, 0.5):
        table = workload.applications("balanced", 6, seed=2)
        rates = []
        for seed in range(8):
            jobs = workload.random_jobs(table, 24, seed, cv=cv, outliers=0.0)
            warm = simulate(jobs, history=History.exact(table))
            rates.append(warm.fairness()["late"].mean())
        late.append(np.mean(rates))
    assert late[0] == 0 < late[1]


def test_an_unknown_reading_is_refused():
    r = simulate(queue(random.Random(1)).table, Machine(3, 3))
    with pytest.raises(InputError, match=r"reading must be one of local, global; got 'F1'"):
        r.fairness("F1")
