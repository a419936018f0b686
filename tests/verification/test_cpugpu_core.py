"""The engine of paper C against a second one, which searches and sums everything anew."""

import math
import random

import numpy as np
import pandas as pd
import pytest

from dlsim.cpugpu import (
    POLICIES,
    SWITCHES,
    Faults,
    History,
    JobView,
    Machine,
    NodeGroup,
    Policy,
    Reading,
    Storage,
    simulate,
    split_text,
    word_count,
)
from dlsim.cpugpu.queues import SubQueue
from dlsim.cpugpu.scheduler import decider
from dlsim.cpugpu.workload import read_job_table
from dlsim.errors import InputError
from tests.cpugpu.test_mapreduce import ran
from tests.helpers.cpugpu_queues import ONLINE
from tests.helpers.scale import LONG, scale_count
from tests.verification import cpugpu_desk as twin

#: The policies whose rules the second engine has.
KNOWN = [name for name in ONLINE if POLICIES[name].rule in twin.DECIDE]
#: What each policy may be varied by; all combinations are drawn.
MACHINES = [(1, 1), (2, 2), (1, 3), (4, 1), (0, 3), (3, 0), (1, 0), (5, 6)]
SAMPLES, AGAIN, BOUNDS = (1, 1, 2, 3), (0, 0, 1, 2, 5), (0.0, 0.0, 0.1, 0.25, 1.0)


def drawn_policy(rng, name):
    if name != "history":
        return POLICIES[name]
    return Policy(
        min_samples=rng.choice(SAMPLES), re_explore=rng.choice(AGAIN), bound=rng.choice(BOUNDS),
        steal=rng.random() < 0.4, estimate=rng.choice(["mean", "median", "ewma"]),
    )  # fmt: skip


def drawn_reading(rng, machine):
    share = rng.choice([0, 0, 0, 0.05, 0.4])
    return Reading(
        both_free=rng.choice(["explore", "best"]),
        unknown_remaining=rng.choice(["avg", "zero", "inf"]),
        deviations=rng.choice([0.0, 0.0, 1.0, 2.5]),
        gpu_cpu_share=share if share * machine.gpus < machine.cpus else 0.0,
    )


def drawn_time(rng, coarse):
    return float(rng.randint(1, 9)) if coarse else math.exp(rng.uniform(-3, 4))


def drawn_jobs(rng, machine, jobs, coarse):
    """A table of jobs: ties of times and arrivals where it is coarse, versions missing."""
    apps = {}
    for app in "ABCDEFG"[: rng.randint(1, 7)]:
        pair = [drawn_time(rng, coarse), drawn_time(rng, coarse)]
        if rng.random() < 0.3:
            pair[rng.randrange(2)] = math.nan
        here = [t for t, n in zip(pair, (machine.cpus, machine.gpus), strict=True) if n]
        apps[app] = pair if any(t == t for t in here) else [drawn_time(rng, coarse)] * 2
    arrival, rows = 0.0, []
    for _ in range(jobs):
        arrival += 0.0 if rng.random() < 0.6 else (rng.randint(0, 6) if coarse else rng.random())
        app = rng.choice(sorted(apps))
        real = [t * (rng.choice([0.5, 1, 2]) if coarse else rng.uniform(0.3, 3)) for t in apps[app]]
        lost = rng.randrange(2) if rng.random() < 0.1 else None  # a version of this job alone
        if (
            lost is not None
            and real[1 - lost] == real[1 - lost]
            and (machine.gpus, machine.cpus)[lost]
        ):
            real[lost] = math.nan
        rows.append((app, arrival, *real, *apps[app]))
    names = ["app", "arrival", "cpu_time", "gpu_time", "cpu_estimate", "gpu_estimate"]
    return pd.DataFrame(rows, columns=names)


def taught(rng, jobs, coarse):
    """One and the same history for both: some runs, some assignments without one."""
    ours, theirs = History(), twin.History()
    for app in [*sorted(set(jobs["app"])), "Y", "Z"]:
        for cls in ("gpu", "cpu"):
            for _ in range(rng.choice([0, 0, 1, 2, 5, 12])):
                time, done = drawn_time(rng, coarse), rng.random() < 0.9
                for history in (ours, theirs):
                    history.assign(app, cls)
                    if done:
                        history.measure(app, cls, time)
    return ours, theirs


def instance(rng, name):
    """Jobs, a machine, a policy and a reading that go together."""
    while True:
        machine, coarse = Machine(*rng.choice(MACHINES)), rng.random() < 0.6
        jobs = drawn_jobs(rng, machine, rng.randint(1, 40), coarse)
        policy, reading = drawn_policy(rng, name), drawn_reading(rng, machine)
        known = taught(rng, jobs, coarse) if rng.random() < 0.5 else (History(), twin.History())
        try:
            r = simulate(jobs, machine, policy, reading, history=known[0])
        except InputError as error:
            assert "version" in str(error)  # noqa: PT017
            continue
        trace = twin.play(read_job_table(jobs, machine), machine, policy, reading, known[1])
        return r, trace, known, (jobs, machine, policy, reading)


def assert_same(r, trace):
    """Decisions, words and instants bit for bit; predictions but for the rounding of sums."""
    moves = [trace.moves[j] for j in range(len(r.jobs))]
    names = list(r.machine.devices)
    assert r.jobs["device"].tolist() == [names[d] for d in trace.device]
    assert r.jobs["rule"].tolist() == [move.decision.rule for move in moves]
    assert r.jobs["turn"].tolist() == [move.turn for move in moves]
    for column, own in (
        ("decided", [move.when for move in moves]), ("start", trace.start),
        ("completion", trace.end),
    ):  # fmt: skip
        assert r.jobs[column].tolist() == [trace.time_offset + t for t in own]
    blank = (math.nan,) * len(names)
    told = np.array([move.decision.predicted_finish or blank for move in moves]) + trace.time_offset
    np.testing.assert_allclose(r.predictions, told, rtol=1e-13, atol=0)


def assert_learned(ours, theirs):
    """What the history knows, bit for bit."""
    assert set(map(tuple, ours.table()[["app", "class"]].to_numpy())) == set(theirs._records)
    for key, record in theirs._records.items():
        own = ours.record(*key)
        assert (own.assigned, own.elsewhere, own.times, own.count, own.spread) == (
            record.assigned, record.elsewhere, record.times, record.count, record.spread
        )  # fmt: skip
        for estimate in ("mean", "median", "ewma"):
            a, b = own.expected(estimate), record.expected(estimate)
            assert a == b or (math.isnan(a) and math.isnan(b))


@pytest.mark.parametrize("name", KNOWN)
def test_the_engine_is_the_one_that_sums_anew(name):
    rng, words = random.Random(f"core {name}"), set()
    for _ in range(scale_count(1200 if name == "history" else 150, LONG)):
        r, trace, known, _ = instance(rng, name)
        assert_same(r, trace)
        assert_learned(r.history, known[1])
        words |= set(r.jobs["rule"])
    if name == "history":
        assert words == {"R2", "R2*", "R3", "R3*", "R4", "R4q", "R0", "steal"}


@pytest.mark.parametrize("name", KNOWN)
def test_a_function_that_asks_a_rule_decides_as_the_rule(name):
    """MapReduce and a user's function ask the same core as a queue does."""
    rng = random.Random(f"desk {name}")
    for _ in range(scale_count(60 if name == "history" else 8, LONG)):
        _r, trace, known, (jobs, machine, policy, reading) = instance(rng, name)

        def asked(state, _, reading, policy=policy):
            return decider(policy)(state, policy, reading)

        again = simulate(jobs, machine, asked, reading, history=known[0])
        assert_same(again, trace)
        assert_learned(again.history, known[1])


def test_the_medians_of_a_history_and_its_copy_are_those_of_their_runs():
    known, rng = History(), np.random.default_rng(3)
    for time in rng.random(500) + 0.5:
        known.add("A", "gpu", float(time))
        assert known.expected("A", "gpu", "median") == np.median(known.record("A", "gpu").times)
    copy = known.copy()
    copy.add("A", "gpu", 1.0)
    known.add("A", "gpu", 2.0)
    assert copy.record("A", "gpu").times == [*known.record("A", "gpu").times[:-1], 1.0]
    for one in (known, copy):
        record = one.record("A", "gpu")
        assert record.expected("median") == np.median(record.times)


def test_the_work_of_a_sub_queue_does_not_drift():
    queue, times = SubQueue("gpu"), np.random.default_rng(1).random(5000) * 1e6
    for number, time in enumerate(times):
        queue.put(JobView(number, "A", {"gpu": float(time)}))
    assert queue.declared_work == math.fsum(times)
    for _ in times[1:]:
        queue.take()
    assert queue.declared_work == times[-1]


# --- MapReduce, whose tasks are decided by the same rules ---------------------------------------


def by_the_twin(policy):
    """The same policy as a function of the twin's, which searches and sums everything anew."""

    def rule(state, _, reading):
        plain = twin.SchedulerState(state.devices, state.history)
        plain.now, plain.main = state.now, list(state.main)
        plain.queues = [list(queue) for queue in state.queues]
        runs = zip(state.running, state.started, strict=True)
        plain.running = [job and twin.Running(job, start) for job, start in runs]
        return twin.DECIDE[policy.rule](plain, policy, reading)

    return Policy(rule)


@pytest.mark.parametrize("seed", range(scale_count(60)))
def test_tasks_are_decided_as_the_twin_decides_them(seed):
    source = random.Random(seed)
    pick, nodes = source.choice, source.randint(1, 5)
    text = " ".join(pick("abcdefgh") * source.randint(1, 6) for _ in range(source.randint(9, 400)))
    policy = POLICIES[pick(KNOWN)]
    if seed % 2:
        policy = Policy(
            min_samples=pick([1, 2]), re_explore=pick([0, 3]), bound=pick([0.0, 0.1]),
            estimate=pick(["mean", "median", "ewma"]), steal=pick([False, True]),
        )  # fmt: skip
    words = {name: pick(options) for name, options in SWITCHES.items()}
    loss_rate = pick([0, 0.2, 0.5])
    storage = Storage(nodes, prefer_local=pick([False, False, True]), seed=seed)
    dead = {node: source.uniform(0, 2) for node in range(nodes) if node and source.random() < 0.4}
    ours, theirs = (
        ran(
            word_count(3), split_text(text, 1 + seed // 2), NodeGroup(nodes, nodes, nodes), one,
            Reading.from_switches(words), storage=storage,
            faults=Faults(dead=dead, loss_rate=loss_rate, seed=seed),
        )
        for one in (policy, by_the_twin(policy))
    )  # fmt: skip
    pd.testing.assert_frame_equal(ours.attempts, theirs.attempts, rtol=1e-12)
    assert repr(ours.history.table()) == repr(theirs.history.table())
