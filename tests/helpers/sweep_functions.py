"""Functions that sweeps of the tests repeat: importable by name, so that workers find them."""

import math
import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd

from dlsim.study.sweeps import count_workers


def draw(load, policy="MCDF", seed=None):
    """Return numbers that must survive the way through text, from common random numbers."""
    rng = np.random.default_rng(seed)
    return {
        "value": load * rng.standard_normal(),
        "third": np.float64(1) / 3,
        "odd": [math.nan, math.inf, -math.inf, -0.0, 5e-324][int(rng.integers(5))],
        "count": np.int64(rng.integers(1 << 62)),
        "name": policy.lower() + " é\n\u2028",
        "flag": np.bool_(load > 1),
    }


def several(load, seed):
    """Return a frame of as many rows as the load says, and no rows at 0."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"row": range(load), "value": rng.random(load)})


def uneven(load, seed):
    """Return rows that do not all have the same columns."""
    return [{"a": load}, {"a": load, "b": "x"}] if load else [{"c": True}]


def echo(seed, **point):
    """Return which random numbers came, and the point as text."""
    return {"key": str(seed.spawn_key), "entropy": seed.entropy, "point": repr(point)}


def marked(load, marks, wait=0.0, seed=None):
    """Leave a mark per completed call: a unique file in the folder `marks`."""
    time.sleep(wait)
    value = float(np.random.default_rng(seed).random())
    Path(marks, f"{load}-{seed.spawn_key[0]}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return {"value": load + value}


def whose(load, wait=0.0, seed=None):
    """Return the process that ran the cell, and how many workers it would use itself."""
    time.sleep(wait)
    return {"process": os.getpid(), "jobs": count_workers(0)}


def fails(load, seed):
    """Fail at one cell, with an error that cannot travel between processes."""
    time.sleep(0.02)
    if load == 3 and seed.spawn_key[0] == 1:
        raise UntransportableError(7, 8)
    return {"value": load}


def deadly(load, flag, wait=0.0, seed=None):
    """Kill the worker it runs in at load 50: once if `flag` is a path, always if empty."""
    time.sleep(wait)
    worker = multiprocessing.parent_process() is not None
    if load == 50 and worker and not (flag and Path(flag).exists()):
        if flag:
            Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"value": load, "draw": float(np.random.default_rng(seed).random())}


def orphaned(load, marks, pid, seed=None):
    """Kill another process, such as the scheduler, at load 20."""
    time.sleep(0.05)
    Path(marks, str(load)).touch()
    if load == 20:
        os.kill(pid, signal.SIGKILL)
    return {"value": load}


def wrong(load, what, seed):
    """Return something that is not a table of numbers and text."""
    kinds = {"number": 3, "list": {"a": [1]}, "time": {"a": np.datetime64(0, "s")}}
    return {"load": 1} if what == "clash" else kinds[what]


class UntransportableError(Exception):
    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")
        self.lock = threading.Lock()  # not even Dask's way of pickling errors takes it


def asked(load, rule, seed):
    """Ask a function that is a parameter."""
    return {"said": float(rule(load))}
