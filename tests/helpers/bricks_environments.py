"""Random environments of the Grid simulator, for seeded and for Hypothesis tests."""

import random

import networkx as nx
import numpy as np
import pandas as pd
from hypothesis import strategies as st

from dlsim.bricks import SWITCHES, Environment, Policy, Reading, topology
from dlsim.bricks.model import ALGORITHMS

#: Two regions (1, 2) below the root, two routers in each, and below every router a domain.
TWO_REGIONS = topology.from_graph(
    nx.Graph(enumerate([0, 0, 1, 1, 2, 2, 3, 4, 5, 6], start=1)), range(7, 11)
)
WHOLE = st.integers


def draw_environment(source, data=False, loads=False, most=14):
    """A small environment: equal servers, equal times and exact fits are frequent."""
    pick, whole = source.choice, source.randint
    domains = whole(1, 3)
    general = source.random() < 0.3
    routers = whole(1, 3)
    parents = [whole(0, router - 1) for router in range(1, routers)]
    parents += [whole(0, routers - 1) for _ in range(domains)]
    tree = nx.Graph(enumerate(parents, start=1))
    made = topology.from_graph(tree, range(routers, routers + domains)) if general else None
    step, steps = pick([0.1, 1.0, 2.5, 10.0]), whole(1, 40)
    levels = pick([[50], [10, 20, 50], [5, 50, 51.3], [0, 10, 100]])
    shape = (len(made.links), steps) if general else (domains, 4, steps)
    traces = np.array([pick(levels) for _ in range(int(np.prod(shape)))], float).reshape(shape)
    traces[..., -1] = np.maximum(traces[..., -1], 10)
    servers = [(whole(0, domains - 1), pick([50, 100, 100, 200, 300])) for _ in range(whole(1, 5))]
    clients = [whole(0, domains - 1) for _ in range(whole(1, 3))]
    now, rows = 0.0, []
    for _ in range(whole(1, most)):
        now += pick([0, 0, whole(0, 40) / 4, source.random() * 5])
        send, recv = (pick([0, 10, 100, 25.5, whole(0, 400) / 4]) for _ in range(2))
        work = pick([0, 100, 1000, 1000, whole(1, 4000)])
        best = (send + recv) / 50 + work / pick(servers)[1]
        deadline = now + best * pick([0.5, 1, 1.25, 2, 3, 5])
        rows.append((now, whole(0, len(clients) - 1), send, recv, work, deadline))
    columns = ["arrival", "client", "send", "recv", "work", "due"]
    background, background_work = arrivals_of(source, len(servers), 50)
    more = {}
    if data:
        more["link_background"], more["link_data"] = arrivals_of(source, traces.size // steps, 10)
    if loads:
        more["load_traces"] = np.array(
            [[pick([0, 0.1, 1, 0.25]) for _ in range(steps)] for _ in servers]
        )
    return Environment(
        servers=pd.DataFrame(servers, columns=["domain", "performance"]),
        clients=pd.DataFrame({"domain": clients}),
        traces=traces,
        step=step,
        requests=pd.DataFrame(rows, columns=columns),
        background=background,
        background_work=background_work,
        server_load=pick([0.0, 0.1, 0.3]),
        paths=made,
        packet=pick([1.0, 10.0, 7.5, 64.0]),
        **more,
    )


def arrivals_of(source, queues, size):
    """Arrival times per queue, many of them at whole seconds, and sizes."""
    horizon, gap = source.choice([0, 10, 100]), source.choice([0.5, 2, 10])
    count = int(horizon / gap)
    grid = source.random() < 0.5
    draws = [[source.random() * horizon for _ in range(count)] for _ in range(queues)]
    times = [sorted(float(round(t)) if grid else t for t in row) for row in draws]
    if source.random() < 0.5:
        return times, float(size)
    return times, [[float(source.randint(0, 2 * size)) for _ in row] for row in times]


def environments(most=12):
    """The same for Hypothesis, often with other users' data and loads of servers."""

    def seeded(seed):
        source = random.Random(seed)
        more = (source.random() < 0.5 for _ in range(2))
        return draw_environment(source, *more, most=most)

    return WHOLE(0, 2**32 - 1).map(seeded)


def choose_by_name(seed, options):
    """Choose a value for every name, by the seed and the name: one more name moves no other."""
    return {name: random.Random(repr((seed, name))).choice(some) for name, some in options.items()}


def drawn_by_name(kind, options):
    """Records of a kind whose fields are chosen by their names."""
    return WHOLE(0, 2**32 - 1).map(lambda seed: kind(**choose_by_name(seed, options)))


def policies():
    """Every built-in algorithm with every mechanism."""
    options = {
        "algorithm": tuple(ALGORITHMS),
        "opt": (0.25, 0.5, 0.9, 1.0),
        "load_correction": (False, True),
        "pload": (1.0, 0.5),
        "max_fallbacks": (0, 1, 2, 3),
        "exclude_rejecting": (False, True),
        "correct_links": (False, True),
        "fallback_slack": (0.0, 5.0),
    }
    return drawn_by_name(Policy, options)


def readings():
    """Every reading, and probes from twice a second to never again."""
    return drawn_by_name(Reading, {**SWITCHES, "probe": (60.0, 0.5, 7.0, 1e6)})


def grid(performance, requests, traces=75.0, step=10.0, **more):
    """One domain, one client, all servers there; `traces` for each link."""
    columns = ["arrival", "send", "recv", "work", "due"]
    row = np.atleast_1d(np.asarray(traces, dtype=float))
    return Environment(
        servers=pd.DataFrame({"domain": 0, "performance": performance}),
        clients=pd.DataFrame({"domain": [0]}),
        traces=np.broadcast_to(row, (1, 4, len(row))),
        step=step,
        requests=pd.DataFrame(requests, columns=columns, dtype=float).assign(client=0),
        **more,
    )
