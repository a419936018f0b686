"""All schedules of a few moldable jobs, one by one: orders, types, numbers of nodes, nodes."""

import itertools
import math


def run_time(cpu, gpu, kind, count, exponent, both):
    """Return the time of a job on count nodes; None without a version."""
    if (kind != "gpu" and math.isnan(cpu)) or (kind != "cpu" and math.isnan(gpu)):
        return None
    rate = {"cpu": 1 / cpu, "gpu": 1 / gpu, "both": both * (1 / cpu + 1 / gpu)}[kind]
    return 1 / rate / count**exponent


def best(jobs, nodes, counts, exponent, both):
    """Return the least makespan; jobs are (arrival, cpu, gpu)."""
    ways = []
    for arrival, cpu, gpu in jobs:
        own = []
        for kind, count in itertools.product(("cpu", "gpu", "both"), counts):
            time = run_time(cpu, gpu, kind, count, exponent, both)
            if time is not None:
                devices = ("cpu", "gpu") if kind == "both" else (kind,)
                for places in itertools.combinations(range(nodes), count):
                    own.append((arrival, time, [(n, d) for n in places for d in devices]))
        ways.append(own)
    least = math.inf
    for order in itertools.permutations(range(len(jobs))):
        for chosen in itertools.product(*(ways[i] for i in order)):
            free = {}
            for arrival, time, held in chosen:
                end = max([arrival, *(free.get(device, 0.0) for device in held)]) + time
                for device in held:
                    free[device] = end
            least = min(least, max(free.values()))
    return least - min(arrival for arrival, *_ in jobs)
