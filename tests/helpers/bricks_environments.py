"""Random environments of the Grid simulator for Hypothesis: one to five servers."""

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


def tables(draw, domains, requests):
    """Servers, clients and requests; numbers are short, so that ties happen."""
    domain = WHOLE(0, domains - 1)
    speeds = draw(st.lists(st.sampled_from([50, 100, 100, 250]), min_size=1, max_size=5))
    servers = pd.DataFrame({"domain": [draw(domain) for _ in speeds], "performance": speeds})
    clients = pd.DataFrame({"domain": draw(st.lists(domain, min_size=1, max_size=3))})
    now, rows = 0.0, []
    for _ in range(requests):
        now += draw(WHOLE(0, 8)) / 2
        send, recv, work = draw(WHOLE(0, 120)), draw(WHOLE(0, 120)), draw(WHOLE(0, 2000))
        factor = draw(st.sampled_from([0, 1, 1.5, 2, 4]))
        due = now + factor * ((send + recv) / 40 + work / 100)
        rows.append((now, draw(WHOLE(0, len(clients) - 1)), send, recv, work, due))
    columns = ["arrival", "client", "send", "recv", "work", "due"]
    return servers, clients, pd.DataFrame(rows, columns=columns).astype({"client": int})


@st.composite
def environments(draw, most=12):
    """An `Environment` with a few requests, often with other users on servers and links."""
    domains, steps = draw(WHOLE(1, 3)), draw(WHOLE(1, 12))
    servers, clients, requests = tables(draw, domains, draw(WHOLE(1, most)))
    seed = draw(WHOLE(0, 2**16))
    stream = np.random.default_rng(seed)
    traces = stream.choice(
        [0.0, 20.0, 40.0, 55.5], size=(domains, 4, steps), p=[0.1, 0.3, 0.3, 0.3]
    )
    traces[..., -1] = 40.0
    more = {}
    if draw(st.booleans()):
        more["background"] = [np.sort(stream.random(20) * 40).round(1) for _ in servers.index]
    if draw(st.booleans()):
        more["link_background"] = [np.sort(stream.random(9) * 40) for _ in range(4 * domains)]
    if draw(st.booleans()):
        more["load_traces"] = stream.choice([0.0, 0.5, 1.0], size=(len(servers), steps))
    step, load = draw(st.sampled_from([0.5, 4.0])), draw(st.sampled_from([0.0, 0.1]))
    return Environment(servers, clients, traces, step, requests, server_load=load, **more)


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
