"""How fast the CPU-GPU engine is, beside a SimPy model of the same queues.

Ratios within one run count, not wall times: the machine is named with every table.
"""

import functools
import time

import numpy as np
import simpy

from dlsim.cpugpu import Machine, learning_study, simulate, workload
from dlsim.cpugpu.learning import ONLINE
from tests.benchmarks.parts import Part, timed

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


def race(seed=0, tasks=10_000, repeats=3, policies=POLICIES):
    """Race both engines on one queue; a row per engine, with what differs from dlsim."""
    jobs = first_jobs(max(20, tasks // 5), seed)
    for policy in policies:
        ours, best = dlsim_engine(jobs, policy), None
        for name, engine in ENGINES.items():
            seconds, theirs = timed(functools.partial(engine, jobs, policy), repeats)
            best = seconds if best is None else best
            pairs = zip(ours[1:], theirs[1:], strict=True)
            yield {
                "policy": policy, "engine": name, "jobs_per_second": len(jobs) / seconds,
                "ratio": seconds / best, "devices_differ": int((ours[0] != theirs[0]).sum()),
                "max_time_difference": max(float(np.abs(a - b).max()) for a, b in pairs),
            }  # fmt: skip


def study(seed=0, tasks=10_000, replicates=30, **options):
    """Seconds of the learning study: 8 batches x 24 jobs x replicates x every policy."""
    begin = time.perf_counter()
    rows = len(learning_study(replicates=replicates, **options))
    yield {
        "policies": len(ONLINE), "replicates": replicates, "batches_run": rows,
        "wall_seconds": time.perf_counter() - begin,
    }  # fmt: skip


PARTS = {
    "race": Part("queues of 2,000 jobs, beside SimPy", race),
    "study": Part("the learning study, mix lee, 8 batches x 24 jobs", study, True),
}
