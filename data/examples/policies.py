"""A policy and a workload of one's own: dlsim knows neither this file nor what it is called."""

import numpy as np
import pandas as pd

from dlsim.realtime import Policy


def laxity(task, n, t, state):
    """Return how long a task could still wait: an order that changes with time."""
    return task.due - t - (state.setup_time[n] + task.sigma * state.time_per_unit[n])


least_laxity = Policy(laxity, "min", overtake=True)


def bursts(cluster, load, horizon, seed):
    """Draw five tasks at a time, half of them small, with time for three to eight on all nodes."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, horizon, int(load * horizon / 10_000) + 1)
    arrival = np.repeat(np.sort(points), 5)
    sigma = rng.choice([20.0, 200.0], len(arrival))
    alone = sigma * (cluster.cms + cluster.cps)
    deadline = rng.uniform(3, 8, len(arrival)) * alone / cluster.nodes + alone
    return pd.DataFrame({"arrival": arrival, "sigma": sigma, "deadline": deadline})
