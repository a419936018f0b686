"""Random runs of paper B: every policy, mechanism and reading, plug-ins of users."""

import numpy as np
import pandas as pd

from dlsim.bricks import REFUSE, SWITCHES, Environment, Policy, Reading, simulate
from dlsim.bricks.simulate import configure, uncompiled_microseconds
from tests.golden.blocks import cell, lines

#: Runs that take longer uncompiled are compiled.
MOST_MICROSECONDS = 300_000
DECIDED = ["server", "fallbacks", "submitted", "arrived", "start", "end", "completion", "missed"]


def shortest_backlog(view):
    """Pick the server with the least predicted time; refuse a request that none serves in time."""
    best = int(np.argmin(view.estimates))
    return best if view.now + view.estimates[best] <= view.due else REFUSE


def mean_of_two(values):
    """Predict the mean of the last two values of every series."""
    return values[:, -2:].mean(axis=1)


def draw_tables(rng: np.random.Generator, domains: int) -> tuple[pd.DataFrame, ...]:
    """Draw servers, clients and requests."""
    servers = pd.DataFrame(
        {
            "domain": rng.integers(0, domains, count := int(rng.integers(1, 6))),
            "performance": rng.choice([50, 100, 100, 250], count),
        }
    )
    clients = pd.DataFrame({"domain": rng.integers(0, domains, int(rng.integers(1, 4)))})
    count = int(rng.integers(2, 16))
    time = np.cumsum(rng.integers(0, 9, count) / 2)
    send, recv, work = (rng.integers(0, most, count) for most in (120, 120, 2000))
    factor = rng.choice([0, 1, 1.5, 2, 4], count)
    due = time + factor * ((send + recv) / 40 + work / 100)
    if rng.random() < 0.5:
        work = work * rng.uniform(0.8, 1.2, count)
    columns = {"arrival": time, "client": rng.integers(0, len(clients), count), "send": send}
    return servers, clients, pd.DataFrame(columns | {"recv": recv, "work": work, "due": due})


def draw_environment(rng: np.random.Generator) -> Environment:
    """Draw servers, requests, traces and, often, other users of servers and links."""
    if rng.random() < 0.1:
        return Environment.random(
            seed=int(rng.integers(1000)),
            interval=60.0,
            horizon=1200.0,
            server_background=str(rng.choice(["jobs", "trace"])),
            link_background=str(rng.choice(["trace", "data"])),
        )
    domains, steps = int(rng.integers(1, 4)), int(rng.integers(1, 13))
    servers, clients, requests = draw_tables(rng, domains)
    traces = rng.choice([0.0, 20.0, 40.0, 55.5], (domains, 4, steps), p=[0.1, 0.3, 0.3, 0.3])
    traces[..., -1] = 40.0
    more = {}
    if rng.random() < 0.5:
        more["background"] = [np.sort(rng.random(20) * 40).round(1) for _ in servers.index]
    if rng.random() < 0.4:
        more["link_background"] = [np.sort(rng.random(9) * 40) for _ in range(4 * domains)]
    if rng.random() < 0.4:
        more["load_traces"] = rng.choice([0.0, 0.5, 1.0], (len(servers), steps))
    return Environment(
        servers,
        clients,
        traces,
        float(rng.choice([0.5, 4.0])),
        requests,
        server_load=float(rng.choice([0.0, 0.1])),
        **more,
    )


def draw_policy(rng: np.random.Generator) -> Policy:
    """Draw a policy with any of the mechanisms."""
    algorithms = ["greedy", "deadline", "greedy", "deadline", shortest_backlog]
    return Policy(
        algorithms[int(rng.integers(5))],
        opt=float(rng.choice([0.25, 0.5, 0.9, 1.0])),
        load_correction=bool(rng.random() < 0.5),
        pload=float(rng.choice([1.0, 0.5])),
        max_fallbacks=int(rng.integers(0, 4)),
        exclude_rejecting=bool(rng.random() < 0.3),
        correct_links=bool(rng.random() < 0.3),
        fallback_slack=float(rng.choice([0.0, 5.0])),
    )


def draw_reading(rng: np.random.Generator) -> Reading:
    """Draw a reading, with probes from twice a second to never again."""
    words = {name: values for name, values in SWITCHES.items() if name != "probe"}
    options = {name: values[int(rng.integers(len(values)))] for name, values in words.items()}
    if rng.random() < 0.1:
        options["predictor"] = mean_of_two
    return Reading(probe=float(rng.choice([60.0, 0.5, 7.0, 1e6])), **options)


def run(number: int, engine: str = "auto") -> str:
    """Return the block of a run; one that takes seconds uncompiled is always compiled."""
    rng = np.random.default_rng([2, number])
    env, policy, reading = draw_environment(rng), draw_policy(rng), draw_reading(rng)
    work = uncompiled_microseconds(env.arrays, configure(policy, reading))
    engine = "compiled" if work > MOST_MICROSECONDS else engine
    o = simulate(env, policy, reading, engine)
    head = f"{policy.name} {reading.network} {reading.load} probe {reading.probe:g}"
    summary = [cell(x) for x in (o.failure_rate, o.cost, o.lateness)]
    return "\n".join([head, lines(o.requests, DECIDED), " ".join(summary)])
