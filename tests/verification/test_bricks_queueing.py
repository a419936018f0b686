"""The servers against queueing theory, and against a queue written in one line.

A background of Poisson jobs of one size is an M/D/1 queue; client requests without work see in it
what monitors show.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

from dlsim.bricks import Environment, Reading, simulate
from dlsim.bricks.workload import poisson_arrivals
from tests.helpers.scale import scale_count

HORIZON = 200_000.0
RUNS = scale_count(12, least=10)


def server(seed, rate, work, background_rate, background_work=50.0):
    """One server of 100 Mops/s, no data; work is drawn by a function of a generator."""
    stream = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
    times = poisson_arrivals(rate, HORIZON, stream)
    requests = pd.DataFrame(
        {"arrival": times, "client": 0, "send": 0.0, "recv": 0.0, "work": work(stream, len(times)),
         "due": times}
    )  # fmt: skip
    return Environment(
        servers=pd.DataFrame({"domain": [0], "performance": 100.0}),
        clients=pd.DataFrame({"domain": [0]}), traces=np.ones((1, 4, 1)), step=10.0,
        requests=requests, background=[poisson_arrivals(background_rate, HORIZON, stream)],
        background_work=background_work,
    )  # fmt: skip


def interval(means):
    """99.9 % interval of the mean of independent runs."""
    half = t.ppf(0.9995, len(means) - 1) * np.std(means, ddof=1) / np.sqrt(len(means))
    return np.mean(means) - half, np.mean(means) + half


def test_what_monitors_see_is_what_theory_says():
    # busy rho of the time; rho + rho^2 / (2 (1 - rho)) background jobs (M/D/1); and, of the
    # clients' jobs without work, those that wait: rate times wait (Little)
    rho, rate = 0.5, 0.01
    waiting = rate * rho * 0.5 / (2 * (1 - rho))
    theory = {"util": rho, "queue": rho + rho**2 / (2 * (1 - rho)) + waiting, "clients": waiting}
    # a probe sees all the time since the last one as "util", else one moment: the rarer a value,
    # the more of them
    probes = {"util": 200.0, "queue": 100.0, "clients": 50.0, "ext": 200.0}
    seen = {load: [] for load in probes}
    for seed in range(RUNS):
        env = server(seed, rate, lambda stream, n: np.zeros(n), 2 * rho)
        for load, means in seen.items():
            shown = []
            reading = Reading(load, probes[load], lambda window, shown=shown: watch(window, shown))
            simulate(env, "Greedy", reading)
            means.append(np.mean(shown))
    for load, value in theory.items():
        low, high = interval(seen[load])
        assert low < value < high
        assert high - low < (0.1 if load != "clients" else 1.0) * value
    assert not any(seen["ext"])


def watch(window, shown):
    shown.append(window[-1, -1])
    return window[:, -1]


def test_a_loaded_queue_is_that_of_lindley():
    """Waits of all jobs, background first at ties, by W' = max(0, W + S - A)."""
    env = server(3, 0.05, lambda stream, n: stream.uniform(0, 2000, n), 0.6)
    table = simulate(env, "Greedy").requests
    mine = np.column_stack([table["arrived"], np.ones(len(table)), env.requests["work"] / 100])
    theirs = env.background.times
    theirs = np.column_stack([theirs, np.zeros(len(theirs)), np.full(len(theirs), 0.5)])
    jobs = np.concatenate([mine, theirs])
    jobs = jobs[np.lexsort((jobs[:, 1], jobs[:, 0]))]
    wait, waits = 0.0, []
    for k, (time, _, service) in enumerate(jobs):
        waits.append(wait)
        if k + 1 < len(jobs):
            wait = max(0.0, wait + service - (jobs[k + 1, 0] - time))
    ours = np.array(waits)[jobs[:, 1] == 1]
    assert (table["start"] - table["arrived"]).to_numpy() == pytest.approx(ours, abs=1e-6)
