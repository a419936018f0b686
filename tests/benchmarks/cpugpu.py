"""How fast the CPU-GPU engine is, beside a SimPy model of the same queues.

Ratios within one run count, not wall times: the machine is named with every table.
"""

import functools
import time

import numpy as np
import pandas as pd
import simpy

from dlsim.cpugpu import Machine, learning_study, simulate, workload
from dlsim.cpugpu.learning import ONLINE
from tests.benchmarks.realtime import machine, timed

#: What races: the machine, and the policies whose SimPy model there is.
BASELINE = Machine(cpus=2, gpus=2)
POLICIES = ("preferred", "mct")


def first_jobs(count=2000, seed=0):
    """So many jobs of the mix lee, in batches of 20 that nearly fill the machine."""
    table = workload.applications("lee", 12, seed)
    return workload.draw(table, 20, seed, batches=max(1, count // 20), interval=60.0)


def dlsim_engine(jobs, policy):
    """The engine under test: device, start and end of each job."""
    table = simulate(jobs, BASELINE, policy).jobs
    places = table["device"].map(list(BASELINE.devices).index)
    return places.to_numpy(), table["start"].to_numpy(), table["end"].to_numpy()


def with_simpy(jobs, policy):
    """Discrete-event simulation with SimPy: a process per job, resources for devices."""
    env, rows = simpy.Environment(), jobs.to_dict("records")
    device, start, end = np.zeros(len(rows), int), np.zeros(len(rows)), np.zeros(len(rows))
    classes = ["gpu"] * BASELINE.gpus + ["cpu"] * BASELINE.cpus
    idle = {cls: simpy.PriorityStore(env) for cls in ("gpu", "cpu")}
    for d, cls in enumerate(classes):
        idle[cls].put(d)
    queues = [simpy.Resource(env) for _ in classes]
    queued = [{} for _ in classes]  # job -> declared time of what waits or runs
    since = [0.0] * len(classes)

    def preferred(j):
        return "gpu" if rows[j]["gpu_estimate"] <= rows[j]["cpu_estimate"] else "cpu"

    def run_preferred(j):
        d = yield idle[preferred(j)].get()
        yield from run(j, d)
        idle[preferred(j)].put(d)

    def ready(d):
        instant = env.now
        for place, told in enumerate(queued[d].values()):
            instant = max(env.now, since[d] + told) if place == 0 else instant + told
        return instant

    def run_mct(j):
        told = [rows[j][f"{cls}_estimate"] for cls in classes]
        ends = [ready(d) + told[d] for d in range(len(classes))]
        d = min(range(len(classes)), key=lambda d: (ends[d], told[d], d))
        if not queued[d]:
            since[d] = env.now
        queued[d][j] = told[d]
        with queues[d].request() as turn:
            yield turn
            since[d] = env.now
            yield from run(j, d)
            del queued[d][j]

    def run(j, d):
        device[j], start[j] = d, env.now
        yield env.timeout(rows[j][f"{classes[d]}_time"])
        end[j] = env.now

    def arrivals():
        for j, row in enumerate(rows):
            if row["arrival"] > env.now:
                yield env.timeout(row["arrival"] - env.now)
            env.process({"preferred": run_preferred, "mct": run_mct}[policy](j))

    env.process(arrivals())
    env.run()
    return device, start, end


ENGINES = {"dlsim": dlsim_engine, "SimPy": with_simpy}


def run(jobs=2000, seed=0, repeats=3, policy="mct"):
    """Race both engines on one queue; a row per engine, with what differs from dlsim."""
    table, rows = first_jobs(jobs, seed), []
    ours = dlsim_engine(table, policy)
    for name, engine in ENGINES.items():
        run_it = functools.partial(call, engine, policy)
        seconds, theirs = timed(run_it, table, BASELINE, repeats)
        apart = max(float(np.abs(a - b).max()) for a, b in zip(ours[1:], theirs[1:], strict=True))
        rows.append((name, len(table) / seconds, int((ours[0] != theirs[0]).sum()), apart))
    names = ["engine", "jobs_per_second", "devices_differ", "max_time_difference"]
    frame = pd.DataFrame(rows, columns=names)
    frame.insert(2, "ratio", frame["jobs_per_second"][0] / frame["jobs_per_second"])
    return frame


def call(engine, policy, table, _):
    """An engine as `timed` calls it."""
    return engine(table, policy)


def study(replicates=30, **options):
    """Seconds of the learning study: 8 batches x 24 jobs x replicates x every policy."""
    begin = time.perf_counter()
    rows = len(learning_study(replicates=replicates, **options))
    seconds = time.perf_counter() - begin
    return pd.DataFrame(
        [(len(ONLINE), replicates, rows, seconds)],
        columns=["policies", "replicates", "batches_run", "seconds"],
    )


def report(jobs=2000, seed=0, repeats=3):
    """Every table as text, with the machine's name above."""
    tables = {
        f"CPU-GPU queues, {policy}, {jobs} jobs, seed {seed}": run(jobs, seed, repeats, policy)
        for policy in POLICIES
    }
    tables["Learning study, mix lee, 8 batches x 24 jobs"] = study()
    parts = [machine()]
    for title, table in tables.items():
        parts.append(f"{title}\n{table.to_string(index=False, float_format='{:.4g}'.format)}")
    return "\n\n".join(parts)
