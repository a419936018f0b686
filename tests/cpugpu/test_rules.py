"""The five rules and their rivals on cases by hand; expected values are the specification's
and, where marked, worked out here on paper."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from dlsim.cpugpu import POLICIES, History, JobView, Machine, Policy, Reading, SchedulerState
from dlsim.cpugpu.model import EXPLORING, POLICY_RULES
from dlsim.cpugpu.queues import SubQueue
from dlsim.cpugpu.scheduler import decider
from tests.helpers.cpugpu_queues import ONLINE, knowing, queues, run_queue, runnable
from tests.helpers.scale import scale_count


def table(*rows):
    """Jobs at time 0 from (app, cpu, gpu)."""
    names = ["app", "cpu_time", "gpu_time"]
    return pd.DataFrame(rows, columns=names).assign(arrival=0.0)


def warm(jobs):
    return History.exact(jobs.drop_duplicates("app").set_index("app"))


def placed(r):
    return [(row.device, row.start, row.completion) for row in r.jobs.itertuples()]


COLD = table(*[("A", 40.0, 10.0)] * 4)
THREE = table(("A", 100.0, 10.0), ("B", 15.0, 10.0), ("C", 5.0, 50.0))
TIE = table(("A", 100.0, 10.0), ("B", 20.0, 10.0))


# --- the cases of the specification -------------------------------------------------------------


def test_case_1_a_cold_start_explores_both_classes_once():
    r = run_queue(COLD)
    assert placed(r) == [("gpu0", 0, 10), ("cpu0", 0, 40), ("gpu0", 10, 20), ("gpu0", 20, 30)]
    assert r.jobs["rule"].tolist() == ["R2*", "R2", "R3", "R3"]
    assert r.makespan == 40
    known = r.history.table().set_index("class")
    assert known.loc["cpu", ["count", "mean", "std"]].tolist() == [1, 40, 0]
    assert known.loc["gpu", ["count", "mean", "std"]].tolist() == [3, 10, 0]


def test_case_2_a_warm_queue_and_both_readings_of_fairness():
    r = run_queue(THREE, history=warm(THREE))
    assert placed(r) == [("gpu0", 0, 10), ("cpu0", 0, 15), ("cpu0", 15, 20)]
    assert r.jobs["rule"].tolist() == ["R3*", "R4", "R4q"]
    assert r.jobs["decided"].tolist() == [0, 0, 10]
    assert r.predictions.loc[2].tolist() == [60, 20]
    fifo = run_queue(THREE, policy="preferred")
    assert placed(fifo) == [("gpu0", 0, 10), ("gpu0", 10, 20), ("cpu0", 0, 5)]
    assert not r.fairness()["late"].any()
    late = r.fairness("preferred")
    assert late["late"].tolist() == [False, False, True]
    assert late["lateness"].tolist() == [0, -5, 15]


def test_case_3_a_tie_waits_for_the_preferred_device():
    r = run_queue(TIE, history=warm(TIE))
    assert placed(r) == [("gpu0", 0, 10), ("gpu0", 10, 20)]
    assert r.jobs["rule"].tolist() == ["R3*", "R4q"]


# --- each rule alone ----------------------------------------------------------------------------


def state_of(main=(), cpus=1, gpus=1, now=0.0, history=None):
    state = SchedulerState(Machine(cpus, gpus).devices, history or History())
    for job in main:
        state.main.put(job)
    state.now = now
    return state


def fill(queue, *jobs):
    for job in jobs:
        queue.put(job)


def item(job, app="A", classes=("gpu", "cpu")):
    return JobView(job, app, dict.fromkeys(classes, 1.0))


def decided(state, policy=None, reading=None):
    policy = policy or Policy()
    return decider(policy)(state, policy, reading or Reading())


def test_rule_2_asks_what_was_assigned_not_what_has_finished():
    state = state_of([item(1)])
    state.running[0] = item(0)
    assert decided(state)[:3] == (1, 1, "R2")
    state.history.assign("A", "cpu")
    assert decided(state).rule == "R0"  # not rule 2


def test_rule_2_skips_a_class_without_a_version():
    state = state_of([item(0, classes=("cpu",))])
    assert decided(state)[:3] == (0, 1, "R2*")
    state.running[1] = item(1)
    assert decided(state).rule == "R0"


def readiness(state, reading=None):
    """When gpu0 is ready: the finish there that is predicted for a job of 8, by the free CPU."""
    for cls, time in (("gpu", 8.0), ("cpu", 5000.0)):
        state.history.add("Q", cls, time)
    if state.main:
        state.main.take(state.main.head.job)
    state.main.put(item(99, "Q"))
    return decided(state, reading=reading).predicted_finish[0] - 8


def test_rule_3_counts_the_sub_queue_and_takes_the_elapsed_part_off_once():
    history = knowing(("A", "gpu", 10.0), ("B", "gpu", 7.0))
    history.assign("B", "cpu")
    state = state_of([item(3, "B")], now=4.0, history=history)
    state.running[0] = item(0, "A")
    fill(state.queues[0], item(1, "B"), item(2, "A"))
    predicted_finish = decided(state).predicted_finish
    assert predicted_finish[0] == 34
    assert math.isnan(predicted_finish[1])
    assert readiness(state) == 4 + 6 + 7 + 10
    state.now = 12.0  # overdue: clipped at 0
    assert readiness(state) == 12 + 7 + 10


def test_rule_3_and_a_running_job_that_was_never_measured():
    for word, expected in {"avg": 8 - 3, "zero": 0, "inf": math.inf}.items():
        state = state_of(now=3.0, history=knowing(("B", "gpu", 6.0), ("C", "gpu", 10.0)))
        state.running[0] = item(0, "A")
        assert readiness(state, Reading(unknown_remaining=word)) - 3 == expected, word


@pytest.mark.parametrize(
    ("cpu", "wait", "rule", "device"),
    [(15, 10, "R4", 1), (20, 10, "R4q", 0), (21, 10, "R4q", 0), (9, 10, "R3", 1), (10, 0, "R3", 1)],
)
def test_rule_4_the_slower_device_only_if_strictly_sooner(cpu, wait, rule, device):
    history = knowing(("A", "gpu", 10.0), ("A", "cpu", float(cpu)), ("W", "gpu", 50.0))
    state = state_of([item(1)], now=100.0, history=history)
    state.running[0], state.started[0] = item(0, "W"), 50.0 + wait
    assert decided(state)[:3] == (1, device, rule)


def test_classes_with_equal_times_are_equally_fast_whatever_the_rounding():
    # .1, .2 and .6 take .3 on average, as the other class does; the GPU is busy.
    for times in itertools.permutations((0.1, 0.2, 0.6)):
        for own, other in (("gpu", "cpu"), ("cpu", "gpu")):
            runs = [("A", other, 0.3), ("W", "gpu", 50.0), *(("A", own, time) for time in times)]
            state = state_of([item(1)], history=knowing(*runs))
            state.running[0] = item(0, "W")
            assert decided(state)[:3] == (1, 1, "R3")


# --- readings, and the switches beside the rules --------------------------------------------------


APART = table(*[("A", 4.0, 1.0)] * 6).assign(arrival=[0, 10, 20, 30, 40, 50])
SLOW_GPU = table(*[("A", 4.0, 9.0)] * 2).assign(arrival=[0.0, 50])
#: Jobs of an application that is not known, a policy and a reading; device and rule of each job.
EXPLORED = {
    "both classes are explored": (SLOW_GPU, {}, {}, "gpu0 R2*, cpu0 R2*"),
    "the GPU is taken without exploring": (
        SLOW_GPU, {}, {"both_free": "best"}, "gpu0 R0, gpu0 R3*"),
    "each class is tried more than once": (
        COLD, {"min_samples": 2}, {}, "gpu0 R2*, cpu0 R2, gpu0 R2, gpu0 R3"),
    "a class that was left aside is tried again": (
        APART, {"re_explore": 3}, {},
        "gpu0 R2*, cpu0 R2*, gpu0 R3*, gpu0 R3*, gpu0 R3*, cpu0 R2*"),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPLORED)
def test_exploring_by_hand(case):
    jobs, policy, reading, wanted = EXPLORED[case]
    found = run_queue(jobs, policy=Policy(**policy), reading=Reading(**reading)).jobs
    assert ", ".join(found["device"] + " " + found["rule"]) == wanted


def test_a_job_of_exactly_the_bound_is_no_trifle():
    # one of so many equal jobs is exactly this part of the work: the CPU is tried, as without bound
    bounds = ((10, 0.1), (3, 1 / 3), (5, 0.2), (7, 1 / 7))
    for time, (count, bound) in itertools.product((1.0, 0.1, 0.3, 7.0), bounds):
        history = knowing(("A", "gpu", time))
        for jobs, rule in ((count, "R2*"), (count + 1, "R3*")):  # 1 of 11 is less than .1
            r = run_queue(
                table(*[("A", 2 * time, time)] * jobs), policy=Policy(bound=bound), history=history
            )
            assert r.jobs["rule"][0] == rule, (time, jobs, bound)


def test_stealing_takes_the_last_of_a_sub_queue_at_the_end():
    # by hand: b1 and b2 wait for the GPU (20, 30 < 35), b3 takes the CPU (35 < 40). b0 takes
    # 100 instead of 10: the mean of B becomes 55, b1 starts, and b2 would end at 210 there,
    # at 135 here.
    history = warm(table(("B", 35.0, 10.0)))
    jobs = table(("B", 35.0, 100.0), *[("B", 35.0, 10.0)] * 3)
    plain = run_queue(jobs, history=history)
    assert placed(plain) == [
        ("gpu0", 0, 100),
        ("gpu0", 100, 110),
        ("gpu0", 110, 120),
        ("cpu0", 0, 35),
    ]
    r = run_queue(jobs, policy=Policy(steal=True), history=history)
    assert placed(r)[2] == ("cpu0", 100, 135)
    assert r.jobs.loc[2, ["rule", "decided", "predicted"]].tolist() == ["steal", 100, 135]
    r.check()


#: Applications, CPUs and GPUs, what runs and what waits on a device; whose job goes where, and
#: when it should end on each device. What an application U takes was never measured.
STEALS = {
    # on gpu2 either would be sooner by an infinite time
    "of jobs behind runs without end the first": (
        [("A", 9.0, 5.0), ("B", 9.0, 1.0)], (1, 3), {0: "UA", 1: "UB"}, (0, 2),
        (math.inf, math.inf, 5, 9)),
    # B, behind cpu0, saves 1000 - 1 on gpu1; A, behind gpu0, is sooner there by an infinite time
    "an infinite gain is larger than any other": (
        [("A", 900.0, 5.0), ("B", 9.0, 1.0), ("V", 991.0, 991.0)], (1, 2), {0: "UA", 2: "VB"},
        (0, 1), (math.inf, 5, 991 + 9 + 900)),
    # gpu0 and cpu1 are busy until 10, and what waits there would end at 17. A, behind gpu0, saves
    # 10 on gpu1 and 12 on cpu0; B, behind cpu1, saves 12 on gpu1 and 10 on cpu0
    "a tie goes to the first device": (
        [("W", 10.0, 10.0), ("A", 5.0, 7.0), ("B", 7.0, 5.0)], (2, 2), {0: "WA", 3: "WB"}, (3, 1),
        (10 + 7 + 5, 5, 7, 10 + 7 + 7)),
    # gpu0 is busy until 100, and no job waits there. B, behind cpu1, saves 12 on gpu1
    "nothing is stolen from where nothing waits": (
        [("V", 100.0, 100.0), ("W", 10.0, 10.0), ("B", 7.0, 5.0)], (2, 2), {0: "V", 3: "WB"},
        (3, 1), (105, 5, 7, 10 + 7 + 7)),
}  # fmt: skip


@pytest.mark.parametrize("case", STEALS)
def test_what_is_stolen_and_by_which_device(case):
    times, machine, places, found, finishes = STEALS[case]
    state = state_of((), *machine, history=warm(table(*times)))
    for device, (running, *waiting) in places.items():
        state.running[device] = item(10 + device, running)
        fill(state.queues[device], *(item(device, app) for app in waiting))
    decision = decided(state, Policy(steal=True), Reading(unknown_remaining="inf"))
    assert decision[:3] == (*found, "steal")
    assert decision.predicted_finish == finishes


def test_what_stealing_gains_is_a_tie_whatever_the_order_of_the_sums():
    # Both GPUs will have done .1 + .2 + .3 and B, in some order; B takes .25 on the free CPU.
    times = [("X", math.nan, 0.1), ("Y", math.nan, 0.2), ("Z", math.nan, 0.3), ("B", 0.25, 0.7)]
    history = warm(table(*times))
    for orders in itertools.product(itertools.permutations("XYZ"), repeat=2):
        state = state_of(cpus=1, gpus=2, history=history)
        for device, order in enumerate(orders):
            first, *others = (item(4 * device + k, app) for k, app in enumerate([*order, "B"]))
            state.running[device] = first
            fill(state.queues[device], *others)
        assert decided(state, Policy(steal=True))[:3] == (3, 2, "steal")


# --- rivals ---------------------------------------------------------------------------------------


SPEEDY = table(("A", 30.0, 10.0), ("B", 20.0, 10.0), ("C", 80.0, 10.0), ("D", 12.0, 10.0))
ONE_VERSION = table(("A", 1.0, 2.0), ("A", 1.0, 2.0), *[("B", math.nan, 2.0)] * 2)
#: A policy, jobs, CPUs and GPUs; device, start and completion of each job.
RIVALS = {
    "no job passes the head": (
        "torque-strict", THREE, (1, 1), [("gpu0", 0, 10), ("gpu0", 10, 20), ("cpu0", 10, 15)]),
    "devices in turn that have a version": (
        "round-robin", ONE_VERSION, (1, 2),
        [("gpu0", 0, 2), ("gpu1", 0, 2), ("gpu0", 2, 4), ("gpu0", 4, 6)]),
    "all devices of the class": (
        "cpu-only", COLD, (2, 1),
        [("cpu0", 0, 40), ("cpu1", 0, 40), ("cpu0", 40, 80), ("cpu1", 40, 80)]),
    # the GPU serves C (8), A (3), B (2), D (1.2). The idle CPU looks at the tail when C has left:
    # D, s = 1.2 <= q = 3, taken (0-12). At 10 the GPU takes A. At 12 only B waits: s = 2 > q = 1,
    # left; the GPU takes it at 20
    "the tail is taken if the queue is longer than its speed-up": (
        "rsc", SPEEDY, (1, 1),
        [("gpu0", 10, 20), ("gpu0", 20, 30), ("gpu0", 0, 10), ("cpu0", 0, 12)]),
    "the tail is taken always": (
        "rsa", SPEEDY, (1, 1),
        [("gpu0", 10, 20), ("cpu0", 12, 32), ("gpu0", 0, 10), ("cpu0", 0, 12)]),
    "the tail is taken never": (
        "rsc-strict", SPEEDY, (1, 1),
        [("gpu0", 10, 20), ("gpu0", 20, 30), ("gpu0", 0, 10), ("gpu0", 30, 40)]),
    # m = 2: D, s = 1.2 <= 2/2 fails once C and A have left
    "with two GPUs less is taken": (
        "rsc", SPEEDY, (1, 2),
        [("gpu1", 0, 10), ("gpu0", 10, 20), ("gpu0", 0, 10), ("gpu1", 10, 20)]),
    # the GPU's queue, shortest first: all 10, in order. A runs 0-10; the CPU scans by its own
    # time: D 12 < 10 + 20 + 10 = 40, taken (0-12). At 10 the GPU takes B. At 12 only C waits:
    # 80 < 8 + 10? no
    "what ends sooner here is taken": (
        "asjf", SPEEDY, (1, 1),
        [("gpu0", 0, 10), ("gpu0", 10, 20), ("gpu0", 20, 30), ("cpu0", 0, 12)]),
    # 20 = 10 + 10
    "what ends here as soon is not": (
        "asjf", table(("A", 99.0, 10.0), ("B", 20.0, 10.0)), (1, 1),
        [("gpu0", 0, 10), ("gpu0", 10, 20)]),
}  # fmt: skip


@pytest.mark.parametrize("case", RIVALS)
def test_rivals_by_hand(case):
    policy, jobs, machine, wanted = RIVALS[case]
    r = run_queue(jobs, Machine(*machine), policy)
    assert placed(r) == wanted
    if policy.startswith("rs"):
        assert (r.jobs["rule"] == "taken").tolist() == [place[0] == "cpu0" for place in wanted]


def test_declared_times_decide_and_realised_ones_run():
    jobs = table(("A", 1.0, 50.0)).assign(cpu_estimate=9.0, gpu_estimate=2.0)
    for name in ("mct", "preferred", "rsc", "asjf", "torque-strict"):
        assert placed(run_queue(jobs, policy=name)) == [("gpu0", 0, 50)]
    assert placed(run_queue(jobs, policy="ideal")) == [("cpu0", 0, 1)]


# --- records ------------------------------------------------------------------------------------


@settings(max_examples=scale_count(25), deadline=None)
@given(q=queues(jobs=7))
def test_a_policy_does_what_the_record_of_its_rule_says(q):
    """Words, predictions, the order of the main queue, and no decision while all are busy."""
    for name in filter(lambda name: runnable(q, name), POLICIES):
        rule, machine = POLICY_RULES[POLICIES[name].rule], Machine(q.cpus, q.gpus)
        jobs = run_queue(q.table, machine, name).jobs
        assert set(jobs["rule"]) <= set(rule.words), name
        assert (jobs["predicted"].notna() == jobs["rule"].isin(rule.predicts)).all(), name
        if rule.looks_at_head:
            assert jobs["turn"].tolist() == sorted(jobs["turn"]), name
        if not rule.works_while_busy:
            for job in jobs.itertuples():
                others = jobs[(jobs["start"] <= job.decided) & (job.decided < jobs["completion"])]
                before = others[others["turn"] < job.turn]
                assert len(before) < len(machine.devices), name


def test_each_statement_of_a_record_tells_rules_apart():
    """Each of the flags is met and missed by some run, so that the test above can fail."""
    jobs = table(*[("A", 9.0, 2.0)] * 3, ("B", 2.0, 9.0), *[("A", 9.0, 2.0)] * 2)
    turns = {name: run_queue(jobs, policy=name).jobs["turn"].tolist() for name in ONLINE}
    assert turns["preferred"] != sorted(turns["preferred"])
    assert turns["history"] == sorted(turns["history"])
    decided = {name: run_queue(jobs, policy=name).jobs["decided"].max() for name in ONLINE}
    assert decided["mct"] == decided["round-robin"] == 0 < decided["history"]
    assert set(EXPLORING) < set(POLICY_RULES["history"].words)


def test_a_policy_without_a_name_is_called_by_what_it_is():
    assert Policy().name == "history"
    assert Policy(steal=True, bound=0.5).name == "history, bound=0.5, steal=True"
    assert Policy("fifo", target="cpu").name == "fifo, target=cpu"
    assert Policy(only_first).name == "only_first"
    assert "only_first" in Policy(only_first).text
    assert all(policy.text and policy.name == name for name, policy in POLICIES.items())


def only_first(state, policy, reading):
    """A rule of a user."""


def test_a_job_is_taken_out_by_its_number_wherever_it_waits():
    queue = SubQueue("gpu")
    for number in (5, 3, 4):
        queue.put(JobView(number, "A", {"gpu": 2.0}))
    assert queue.take(3).job == 3
    assert [job.job for job in queue] == [5, 4]
    assert queue.declared_work == 4


def test_the_work_of_a_sub_queue_does_not_drift():
    queue, times = SubQueue("gpu"), np.random.default_rng(1).random(5000) * 1e6
    for number, time in enumerate(times):
        queue.put(JobView(number, "A", {"gpu": float(time)}))
    assert queue.declared_work == math.fsum(times)
    for _ in times[1:]:
        queue.take()
    assert queue.declared_work == times[-1]
