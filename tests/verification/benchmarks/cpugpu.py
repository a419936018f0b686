"""How fast the CPU-GPU engine is, beside plain Python and SimPy models of the same queues.

Ratios within one run count, not wall times: the machine is named with every table.
"""

import functools
import math
from collections import deque

import numpy as np
import simpy

from dlsim.cpugpu import Machine, Policy, simulate, workload
from tests.helpers.cpugpu_queues import ONLINE
from tests.verification.benchmarks.parts import Part, at_least, timed

#: What races: the machine, and the policies of which there is a model by others.
BASELINE = Machine(cpus=2, gpus=2)
POLICIES = ("history", "preferred", "mct")
CLASSES = ["gpu"] * BASELINE.gpus + ["cpu"] * BASELINE.cpus
#: Jobs of the longest queue that SimPy is given: its model of MCT looks at all that wait.
MOST_IN_SIMPY = 10_000


def first_jobs(count=2000, seed=0):
    """So many jobs of the mix lee, in batches of 20 that nearly fill the machine."""
    table = workload.applications("lee", 12, seed)
    return workload.random_jobs(table, 20, seed, batches=max(1, count // 20), interval=60.0)


def dlsim_engine(jobs, policy):
    """The engine under test: device, start and end of each job."""
    table = simulate(jobs, BASELINE, policy).jobs
    places = table["device"].map(list(BASELINE.devices).index)
    return places.to_numpy(), table["start"].to_numpy(), table["completion"].to_numpy()


def with_simpy(jobs, policy):
    """Discrete-event simulation with SimPy: a process per job, resources for devices."""
    env, rows = simpy.Environment(), jobs.to_dict("records")
    device, start, end = np.zeros(len(rows), int), np.zeros(len(rows)), np.zeros(len(rows))
    classes = CLASSES
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


def plain_sums(jobs, policy):
    """Plain Python, a floor: MCT and the preferred class are sums, where times are as declared."""
    columns = [jobs[f"{cls}_{kind}"].tolist() for kind in ("time", "estimate") for cls in CLASSES]
    arrival, free, told = jobs["arrival"].tolist(), [0.0] * 4, [0.0] * 4
    device, start, end = [], [], []
    for j, now in enumerate(arrival):
        real, said = [c[j] for c in columns[:4]], [c[j] for c in columns[4:]]
        if policy == "mct":
            d = min(range(4), key=lambda d: (max(now, told[d]) + said[d], said[d]))
            told[d] = max(now, told[d]) + said[d]
        else:
            d = min((0, 1) if said[0] <= said[2] else (2, 3), key=lambda d: max(now, free[d]))
        begin = max(now, free[d])
        free[d] = begin + real[d]
        device.append(d)
        start.append(begin)
        end.append(free[d])
    return np.array(device), np.array(start), np.array(end)


def plain_history(jobs, policy="history"):
    """The five rules in plain Python: what a reader would write."""
    apps, arrival = jobs["app"].tolist(), jobs["arrival"].tolist()
    times = [jobs[f"{cls}_time"].tolist() for cls in CLASSES]
    known, tried, places, n = {}, set(), range(len(CLASSES)), len(apps)
    main, queues, running = deque(), [deque() for _ in places], [None] * len(CLASSES)
    device, start, end = [0] * n, [0.0] * n, [math.inf] * n
    ends, coming, left = [math.inf] * len(CLASSES), 0, n

    def mean(j, d):
        total, count = known.get((apps[j], CLASSES[d]), (0.0, 0))
        if count:
            return total / count
        means = [t / k for (_, cls), (t, k) in known.items() if cls == CLASSES[d]]
        return sum(means) / len(means) if means else 0.0

    def ready(d):
        instant = now
        if running[d] is not None:
            instant = max(now, start[running[d]] + mean(running[d], d))
        return instant + sum(mean(j, d) for j in queues[d])

    def begin(d, j):
        running[d], start[j], device[j] = j, now, d
        ends[d] = end[j] = now + times[d][j]

    while left:
        now = min(*ends, arrival[coming] if coming < n else math.inf)
        for d in places:
            if ends[d] <= now:
                j, running[d], ends[d] = running[d], None, math.inf
                total, count = known.get((apps[j], CLASSES[d]), (0.0, 0))
                known[apps[j], CLASSES[d]] = (total + times[d][j], count + 1)
                left -= 1
                if queues[d]:
                    begin(d, queues[d].popleft())
        while coming < n and arrival[coming] <= now:
            main.append(coming)
            coming += 1
        while main and None in running:
            j, free = main.popleft(), [d for d in places if running[d] is None]
            fresh = [d for d in free if (apps[j], CLASSES[d]) not in tried]
            has = [d for d in places if (apps[j], CLASSES[d]) in known]
            if fresh:
                d = fresh[0]
            elif not has:
                d = free[0]
            else:
                best = min(mean(j, d) for d in has)
                fast = [d for d in free if d in has and mean(j, d) == best]
                d = fast[0] if fast else min(has, key=lambda d: (ready(d) + mean(j, d), mean(j, d)))
            tried.add((apps[j], CLASSES[d]))
            if running[d] is None:
                begin(d, j)
            else:
                queues[d].append(j)
    return np.array(device), np.array(start), np.array(end)


#: Peers, and the policies that they run.
PEERS = {
    "plain Python": {"history": plain_history, "preferred": plain_sums, "mct": plain_sums},
    "SimPy": {"preferred": with_simpy, "mct": with_simpy},
}


def race(seed=0, tasks=10_000, repeats=3, policies=POLICIES):
    """Race all engines on one queue; a row per engine, with what differs from dlsim."""
    jobs = first_jobs(max(20, tasks // 5), seed)
    for policy in policies:
        ours, best = dlsim_engine(jobs, policy), None
        peers = {name: own[policy] for name, own in PEERS.items() if policy in own}
        for name, engine in {"dlsim": dlsim_engine, **peers}.items():
            seconds, theirs = timed(functools.partial(engine, jobs, policy), repeats)
            best = seconds if best is None else best
            pairs = zip(ours[1:], theirs[1:], strict=True)
            yield {
                "policy": policy, "engine": name, "jobs_per_second": len(jobs) / seconds,
                "ratio": seconds / best, "devices_differ": int((ours[0] != theirs[0]).sum()),
                "max_time_difference": max(float(np.abs(a - b).max()) for a, b in pairs),
            }  # fmt: skip


#: Beside the policies by name: what costs the history rule most.
SWITCHED = {
    "history, median": Policy(estimate="median"),
    "history, bounded": Policy(bound=0.1),
    "history, steal": Policy(steal=True, re_explore=8),
}


def speed(seed=0, tasks=10_000, sizes=(0.1, 1, 10)):
    """Jobs per second of every policy and its peers, on queues of different lengths."""
    queues = [first_jobs(max(20, int(size * tasks)), seed) for size in sizes]
    for policy in [*ONLINE, *SWITCHED]:
        own = {"dlsim": lambda jobs, policy: simulate(jobs, BASELINE, policy)}
        own |= {name: peer[policy] for name, peer in PEERS.items() if policy in peer}
        for name, engine in own.items():
            row = {"policy": policy, "engine": name}
            for jobs in queues:
                rule, rate = SWITCHED.get(policy, policy), math.nan
                if name != "SimPy" or len(jobs) <= MOST_IN_SIMPY:
                    call = functools.partial(engine, jobs, rule)
                    rate = len(jobs) / timed(call, max(1, min(5, 10**5 // len(jobs))))[0]
                row[f"{len(jobs)} jobs"] = rate
            yield row


PARTS = {
    "race": Part(
        "queues of 2,000 jobs, beside plain Python and SimPy, and whether they decide alike",
        race,
        floors=(
            at_least("ratio", 1.4, engine="SimPy"),
            at_least("ratio", 0.4, engine="plain Python"),
        ),
        why_slower="it knows one policy and no rivals, checks no input, and gives the rules no"
        " views of the queue, as dlsim does for those of users",
    ),
    "speed": Part("jobs per second of every policy, beside plain Python and SimPy", speed),
}
