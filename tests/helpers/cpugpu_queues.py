"""Random queues of CPU-GPU jobs, for seeded and for Hypothesis tests.

Times are small whole numbers or quarters, so that ties are met often and floats are exact.
"""

import math
import random
from fractions import Fraction
from typing import NamedTuple

import pandas as pd
from hypothesis import strategies as st

from dlsim.cpugpu import POLICIES, History, Machine, simulate
from tests.twins.cpugpu import Job

NAN = math.nan
#: The policies that a queue of any length can have: they plan nothing beforehand.
ONLINE = tuple(name for name, policy in POLICIES.items() if not policy.is_planned)
ONE_EACH = Machine(cpus=1, gpus=1)
#: A machine of each shape: both classes, several of one, only one.
MACHINES = ((1, 1), (1, 1), (2, 1), (4, 1), (1, 2), (2, 3), (5, 6), (0, 2), (3, 0), (1, 0))


class Queue(NamedTuple):
    """cpus, gpus; applications as (cpu, gpu) base times; jobs as (app, arrival, cpu, gpu)."""

    cpus: int
    gpus: int
    apps: dict
    rows: list

    @property
    def table(self):
        """The jobs as dlsim takes them."""
        names = ["app", "arrival", "cpu_time", "gpu_time", "cpu_estimate", "gpu_estimate"]
        rows = [
            (app, float(a), *(NAN if t is None else float(t) for t in (c, g, *self.apps[app])))
            for app, a, c, g in self.rows
        ]
        return pd.DataFrame(rows, columns=names)

    @property
    def applications(self):
        """The applications as dlsim takes them."""
        rows = {
            app: [NAN if t is None else float(t) for t in times] for app, times in self.apps.items()
        }
        names = ["cpu_time", "gpu_time"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=names)

    @property
    def jobs(self):
        """The jobs as the twin takes them."""
        here = [("cpu", self.cpus), ("gpu", self.gpus)]

        def by_class(pair):
            both = zip(here, pair, strict=True)
            return {c: Fraction(t) for (c, n), t in both if n and t is not None}

        return [
            Job(i, app, Fraction(a), by_class((c, g)), by_class(self.apps[app]))
            for i, (app, a, c, g) in enumerate(self.rows)
        ]


def queue(rng: random.Random, jobs: int = 12, exact: bool = False) -> Queue:
    """Draw a queue; with `exact`, a run takes what is declared."""
    cpus, gpus = rng.choice(MACHINES)
    apps = {}
    for name in "ABCDE"[: rng.randint(1, 5)]:
        pair = [Fraction(rng.randint(1, 24), rng.choice((1, 1, 2))) for _ in "cg"]
        if cpus and gpus and rng.random() < 0.2:
            pair[rng.randrange(2)] = None
        apps[name] = pair
    rows, arrival = [], Fraction(0)
    for _ in range(rng.randint(1, jobs)):
        arrival += rng.choice((0, 0, 0, rng.randint(0, 8)))
        app = rng.choice(sorted(apps))
        noise = [1 if exact else Fraction(rng.randint(2, 12), 4) for _ in "cg"]
        times = [None if t is None else t * f for t, f in zip(apps[app], noise, strict=True)]
        rows.append((app, arrival, *times))
    return Queue(cpus, gpus, apps, rows)


def runnable(q, name):
    """Whether a policy can run a queue: every job has a version where one class takes all."""
    target = POLICIES[name].target
    if target == "preferred":
        return True
    place = 2 if target == "cpu" else 3
    return bool({2: q.cpus, 3: q.gpus}[place]) and all(row[place] is not None for row in q.rows)


def run_queue(jobs, machine=ONE_EACH, policy="history", reading=None, **more):
    """Simulate on one device of each class by the paper's rules, unless told otherwise."""
    return simulate(jobs, machine, policy, reading, **more)


def knowing(*runs):
    """Return a history of runs (application, class, time)."""
    history = History()
    for run in runs:
        history.add(*run)
    return history


@st.composite
def queues(draw, jobs=12, exact=False):
    """The same as a strategy."""
    return queue(random.Random(draw(st.integers(0, 2**32))), jobs, exact)
