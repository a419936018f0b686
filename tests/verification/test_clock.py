"""No decision depends on when the clock began or on the unit of time: exact twins decide.

Every instance is told on shifted clocks and in other units; arrivals stay exact floats, or the
clock is left out. The twins work on Fractions, so that a tie is a tie on every clock.
``pytest -s`` prints the counts; DLSIM_TEST_SCALE multiplies them.
"""

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.bricks import Environment, Policy
from dlsim.bricks import Reading as GridReading
from dlsim.bricks import simulate as simulate_grid
from dlsim.compiled import time_offset
from dlsim.cpugpu import (
    MOLDABLE_POLICIES,
    Costs,
    Faults,
    Gpu,
    NodeGroup,
    NodePool,
    run_chunks,
    run_mapreduce,
    run_moldable,
    split_text,
    word_count,
)
from dlsim.errors import ScheduleError
from dlsim.realtime import Cluster, simulate
from dlsim.steady import solve
from tests.cpugpu.test_engine import SWITCHES, by_engine, by_twin
from tests.helpers.bricks_environments import environments, policies, readings
from tests.helpers.cpugpu_queues import ONLINE, queue, runnable
from tests.helpers.scale import LONG, scale_count
from tests.helpers.steady_platforms import draw_platform
from tests.helpers.strategies import ROWS, ROWS_I, Instance, any_reading, seeded, seeded_for
from tests.twins import cpugpu_slots
from tests.verification.notebook_code import function_in

#: (shift, unit): where the clock begins, and one second in the new unit.
CLOCKS = [
    (0, 1), (1e6, 1), (2**30, 1), (1e12, 1), (0, 1e-9), (0, 2**-10), (0, 1e9), (2**30, 2**-10),
]  # fmt: skip


# --- real-time loads ----------------------------------------------------------------------


def told_anew(instance: Instance, shift, unit) -> Instance | None:
    """The same instance on another clock; None where a float cannot hold an arrival there."""
    shift, unit = Fraction(shift), Fraction(unit)
    rows = [(a * unit + shift, sigma, d * unit) for a, sigma, d in instance.rows]
    if shift and any(Fraction(float(a)) != a for a, _, _ in rows):
        return None
    cms, cps, st, sc = (x * unit for x in instance[1:5])
    return instance._replace(rows=rows, cms=cms, cps=cps, st=st, sc=sc)


def is_close(exact, value, shift, unit, roundings=4):
    """Whether an instant is the twin's, but for what another clock and unit must round."""
    there = Fraction(exact) * Fraction(unit)
    loss = there / 10**9 + roundings * Fraction(float(np.spacing(value)))
    return abs(Fraction(value) - Fraction(shift) - there) <= loss


def wrong(records, s, shift, unit):
    """The tasks that the engine decides or times unlike the twin of the first clock."""
    found = []
    for task, row in zip(records, s.tasks.itertuples(), strict=True):
        same = (task.admitted, task.nodes, task.missed) == (row.admitted, row.nodes, row.missed)
        for name in ("start", "completion"):
            exact, value = getattr(task, name), getattr(row, name)
            if exact is None or math.isnan(value):
                same = same and exact is None and math.isnan(value)
            else:
                same = same and is_close(exact, value, shift, unit, roundings=2)
        if not same:
            found.append((task, row))
    return found


@pytest.mark.parametrize("policy", [*ROWS, *ROWS_I])
def test_real_time_decisions_do_not_depend_on_the_clock(policy):
    count, runs = scale_count(5, LONG), 0
    for k in range(count):
        if policy in ROWS:
            source, instance = seeded(("clock", policy, k))
            reading = any_reading(source.choice)
        else:
            _, instance, reading = seeded_for(policy, ("clock", k))
        records = instance.exact(policy, reading)
        for shift, unit in CLOCKS:
            other = told_anew(instance, shift, unit)
            if other is None:
                continue
            s = other.simulate(policy, reading)
            assert wrong(records, s, shift, unit) == [], (k, shift, unit, reading, instance)
            arrival = [float(a) for a, _, _ in other.rows]
            assert s.tasks["arrival"].tolist() == arrival
            s.check()
            runs += 1
    print(f"{policy}: {count} instances, {runs} clocks")
    assert runs > 4 * count


def late_task(deadline, arrival):
    table = pd.DataFrame({"arrival": [arrival], "sigma": [1.0], "deadline": [deadline]})
    return simulate(table, Cluster(1, 0.0, 100.0), "MCDF")


@pytest.mark.parametrize("arrival", [0.0, 1.7e12])
def test_the_check_sees_an_admitted_task_that_ends_late(arrival):
    s = late_task(100.0, arrival)
    forged = replace(
        s,
        tasks=s.tasks.assign(deadline=99.0),
        submitted=s.submitted._replace(deadline=np.array([99.0])),
    )
    with pytest.raises(ScheduleError, match=r"missed means|meets its deadline"):
        forged.check()
    with pytest.raises(ScheduleError, match="meets its deadline"):
        replace(forged, tasks=forged.tasks.assign(missed=True)).check()


def test_the_check_knows_a_missed_deadline_without_admission_on_a_late_clock():
    table = pd.DataFrame({"arrival": [1.7e12] * 2, "sigma": [1.0] * 2, "deadline": [100.0, 199.0]})
    s = simulate(table, Cluster(1, 0.0, 100.0), "FIFOANNA")
    assert s.tasks["missed"].tolist() == [False, True]
    s.check()
    with pytest.raises(ScheduleError, match="missed means completion after the deadline"):
        replace(s, tasks=s.tasks.assign(missed=False)).check()


# --- CPUs and GPUs ------------------------------------------------------------------------


def queue_anew(q, shift, unit):
    """The same queue on another clock; None where a float cannot hold an arrival there."""
    shift, unit = Fraction(shift), Fraction(unit)

    def scaled(times):
        return [None if t is None else t * unit for t in times]

    rows = [(app, a * unit + shift, *scaled(times)) for app, a, *times in q.rows]
    if shift and any(Fraction(float(row[1])) != row[1] for row in rows):
        return None
    return q._replace(apps={app: scaled(times) for app, times in q.apps.items()}, rows=rows)


@pytest.mark.parametrize("case", [*ONLINE, *range(1, len(SWITCHES))])
def test_cpu_gpu_decisions_do_not_depend_on_the_clock(case):
    name, switches = (case, {}) if case in ONLINE else ("history", SWITCHES[case])
    runs, rng = 0, random.Random(f"clock {case}")
    for k in range(scale_count(8, LONG)):
        q = queue(rng)
        while not runnable(q, name):
            q = queue(rng)
        share = Fraction(1, 4) if k % 4 == 3 and q.cpus > q.gpus else Fraction(0)
        records = by_twin(q, name, switches, share=share).jobs
        for shift, unit in CLOCKS:
            other = queue_anew(q, shift, unit)
            if other is None:
                continue
            r = by_engine(other, name, switches, share=share)
            for job, row in zip(records, r.jobs.itertuples(), strict=True):
                assert (job.device, job.rule) == (row.device, row.rule), (k, shift, unit)
                for exact, value in ((job.start, row.start), (job.end, row.completion)):
                    assert is_close(exact, value, shift, unit), (k, shift, unit)
            assert r.jobs["arrival"].tolist() == other.table["arrival"].tolist()
            r.check()
            r.fairness()
            runs += 1
    print(f"{case}: {runs} clocks")
    assert runs > 30 * LONG


@pytest.mark.parametrize("scheduler", ["fifo", "fair", "capacity"])
def test_slots_do_not_depend_on_the_clock(scheduler):
    source = np.random.default_rng(7)
    columns = ["arrival", "tasks", "task_time", "queue", "share", "weight"]
    for _ in range(scale_count(15, LONG)):
        shares = {"p": int(source.integers(1, 4)), "q": int(source.integers(1, 4))}
        rows = [
            (int(a), int(n), int(t), queue, shares[queue], int(w))
            for a, n, t, queue, w in zip(
                source.integers(0, 9, 5), source.integers(1, 6, 5), source.integers(1, 5, 5),
                source.choice(["p", "q"], 5), source.integers(1, 4, 5), strict=True,
            )
        ]  # fmt: skip
        slots = int(source.integers(1, 5))
        ends = cpugpu_slots.run(rows, slots, scheduler)
        for shift, unit in CLOCKS:
            table = pd.DataFrame(rows, columns=columns)
            table["arrival"] = table["arrival"] * float(unit) + shift
            table["task_time"] = table["task_time"] * float(unit)
            tasks = function_in("50-cpu-gpu", "run_slots")(table, slots, scheduler)
            found = tasks.groupby("job")["end"].max()
            assert tasks.groupby("job")["task"].nunique().tolist() == table["tasks"].tolist()
            assert len(tasks) == table["tasks"].sum()
            for exact, value in zip(ends, found, strict=True):
                assert is_close(exact, value, shift, unit)


@pytest.mark.parametrize("policy", sorted(MOLDABLE_POLICIES))
def test_moldable_jobs_do_not_depend_on_the_clock(policy):
    source, pool = np.random.default_rng(11), NodePool(4, exponent=1.0, both=1.0)
    for _ in range(scale_count(12, LONG)):
        n = int(source.integers(1, 5))
        jobs = pd.DataFrame({
            "arrival": np.sort(source.integers(0, 6, n)), "nodes": source.choice([1, 2, 4], n),
            "cpu_time": source.integers(1, 9, n) * 4, "gpu_time": source.integers(1, 9, n) * 4,
        })  # fmt: skip
        first = run_moldable(jobs.astype({"arrival": float}), pool, policy)
        for shift, unit in CLOCKS:
            times = {c: jobs[c] * float(unit) for c in ("arrival", "cpu_time", "gpu_time")}
            times["arrival"] += shift
            s = run_moldable(jobs.assign(**times), pool, policy)
            s.check()
            if policy != "exhaustive":  # of several best schedules any
                assert s.jobs[["type", "nodes"]].equals(first.jobs[["type", "nodes"]])
                place = ["job", "node", "device"]
                assert s.uses[place].equals(first.uses[place])
                whole = first.jobs["response"].sum()
                assert s.jobs["response"].sum() == pytest.approx(unit * whole, rel=1e-9)
            loss = float(np.spacing(s.jobs["completion"].max())) * 4
            assert s.makespan == pytest.approx(unit * first.makespan, rel=1e-9, abs=loss)


@pytest.mark.parametrize("unit", [1e-9, 2.0**-10, 1e9])
@pytest.mark.parametrize("queues", ["hyper-q", "per-engine", "single"])
def test_pipelines_do_not_depend_on_the_unit_of_time(queues, unit):
    source = np.random.default_rng(5)
    for _ in range(scale_count(25, LONG)):
        gpu = Gpu(int(source.integers(1, 4)), int(source.integers(1, 3)), queues=queues)
        parts = source.integers(0, 10, (int(source.integers(1, 9)), 3))
        names = ["h2d", "map", "d2h"]
        exact = run_chunks(
            pd.DataFrame([[Fraction(int(x), 4) for x in row] for row in parts], columns=names), gpu
        )
        scaled = run_chunks(pd.DataFrame(parts * (unit / 4), columns=names), gpu)
        scaled.check()
        key = ["chunk", "stage"]
        ours, theirs = (t.ops.set_index(key).sort_index() for t in (scaled, exact))
        for name in ("start", "end"):
            wanted = [float(x) * unit for x in theirs[name]]
            assert ours[name].tolist() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 2.0**-10, 1e9])
def test_mapreduce_does_not_depend_on_the_unit_of_time(unit):
    text = "the quick fox jumps over the dog and the fox runs " * 40
    usual = Costs()
    times = ("cpu_map", "gpu_map", "cpu_reduce", "gpu_reduce", "copy", "remote", "setup")
    scaled = replace(usual, **{name: unit * getattr(usual, name) for name in times})
    for policy in ("history", "mct", "rsc"):
        blocks = split_text(text, 9)
        group, faults = NodeGroup(2, 2, 2), Faults({("map", 1): 1})
        first = run_mapreduce(word_count(), blocks, group, policy, faults=faults)
        other = run_mapreduce(word_count(), blocks, group, policy, faults=faults, costs=scaled)
        other.check()
        same = ["kind", "number", "device", "outcome", "rule"]
        assert other.attempts[same].equals(first.attempts[same])
        wanted = unit * first.attempts["end"]
        assert other.attempts["end"].to_numpy() == pytest.approx(wanted, rel=1e-9)


# --- the Grid -----------------------------------------------------------------------------


def grid_anew(env, scheduler, reading, shift, unit):
    """The same environment, scheduler and reading on another clock; a shift needs one entry."""
    times = {name: env.requests[name] * unit + shift for name in ("arrival", "due")}
    loads = env.load_traces
    jobs, data = env.background, env.link_background
    other = Environment(
        env.servers.assign(performance=env.servers["performance"] / unit),
        env.clients, env.traces / unit, env.step * unit, env.requests.assign(**times),
        background=jobs._replace(times=jobs.times * unit + shift),
        link_background=data._replace(times=data.times * unit + shift),
        server_load=env.server_load, load_traces=loads, paths=env.paths, packet=env.packet,
    )  # fmt: skip
    late = replace(scheduler, fallback_slack=scheduler.fallback_slack * unit)
    return other, late, replace(reading, probe=reading.probe * unit)


DECIDED = ["server", "fallbacks", "missed"]


def agree_on_grid(first, other, shift, unit):
    assert other.requests[DECIDED].equals(first.requests[DECIDED])
    assert other.attempts[["request", "server"]].equals(first.attempts[["request", "server"]])
    at, there = first.requests["completion"] * unit, other.requests["completion"]
    loss = 64 * float(np.spacing(shift + at.max()))  # a transfer and a queue round on that clock
    assert there.to_numpy() - shift == pytest.approx(at.to_numpy(), rel=1e-9, abs=loss)


@given(environments(), policies(), readings(), st.sampled_from([2.0**-30, 2.0**-7, 2.0**30]))
@settings(max_examples=scale_count(60, LONG), deadline=None)
def test_the_grid_does_not_depend_on_a_unit_that_is_exact(env, scheduler, reading, unit):
    other = simulate_grid(*grid_anew(env, scheduler, reading, 0, unit))
    agree_on_grid(simulate_grid(env, scheduler, reading), other, 0, unit)
    other.check()


@pytest.mark.parametrize("load", ["clients", "queue"])
@pytest.mark.parametrize("shift", [60.0 * 2**14, 60.0 * 2**24, 1e12])
def test_the_grid_does_not_depend_on_when_its_clock_began(shift, load):
    """On constant links, probes at the same instants; none further than MOST_PROBES."""
    for seed in range(scale_count(4, LONG)):
        env = Environment.random(seed=seed, interval=20, horizon=2 * 3600)
        env = replace(env, traces=env.rates[:, :1], paths=env.topology)
        reading = GridReading(load=load, probe=60.0 if shift < 1e12 else 1e5)
        scheduler = Policy("deadline", opt=0.7, load_correction=True, max_fallbacks=1)
        first = simulate_grid(env, scheduler, reading)
        other = simulate_grid(*grid_anew(env, scheduler, reading, shift, 1.0))
        agree_on_grid(first, other, shift, 1.0)
        other.check()


# --- steady states: speeds and bandwidths in other units -----------------------------------


@pytest.mark.parametrize("method", ["LP", "G", "LPR", "LPRG", "LPRR", "MILP", "LPRG+polish"])
def test_steady_states_do_not_depend_on_the_unit_of_time(method):
    for seed in range(scale_count(8, LONG)):
        p = draw_platform(seed, False, odd=0.02)
        first = solve(p, method, seed=0)
        for unit in (1e-9, 1e-3, 1e9):
            links = p.links.assign(bandwidth=p.links["bandwidth"] / unit)
            speed, gateway = p.speed / unit, p.gateway / unit
            other = solve(replace(p, speed=speed, gateway=gateway, links=links), method, seed=0)
            other.check()
            assert other.objective == pytest.approx(first.objective / unit, rel=1e-7, abs=0)
            if method not in ("LP", "MILP"):  # of several best ones any
                assert other.connections.tolist() == first.connections.tolist()


# --- the origin ---------------------------------------------------------------------------


def test_the_origin_loses_nothing():
    rng = np.random.default_rng(0)
    for _ in range(scale_count(500)):
        span, first = 10 ** rng.uniform(-9, 9), 10 ** rng.uniform(-9, 13)
        arrival = np.sort(first + span * rng.random(rng.integers(1, 20)))
        origin = time_offset(arrival)
        after = arrival - origin
        assert 0 <= origin <= arrival[0]
        assert (origin + after == arrival).all()
        exact = [Fraction(a) - Fraction(origin) for a in arrival.tolist()]
        assert [Fraction(a) for a in after.tolist()] == exact
        assert after[-1] <= 4 * (arrival[-1] - arrival[0]) + np.spacing(arrival[-1])
