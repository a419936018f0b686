"""Applications for tests of the live run: cheap, breaking, killing; importable by workers."""

import math
import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from dlsim.cpugpu.live import LostWorkerError
from dlsim.cpugpu.live.kernels import KERNELS, Kernel, Problem

#: The folder in which a kernel that breaks once leaves a mark; set for workers, too.
MARKS = "DLSIM_TEST_MARKS"


def first_time(name):
    """Whether this is the first call of that name, in any process."""
    try:
        (Path(os.environ[MARKS]) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def make(size, rng):
    return Problem(size, rng.random(size).astype(np.float32), np.zeros(1, np.float32), 2.0, 0.0)


def element(i, a, b, x, y):
    return x * a[i]


def double(p):
    return p.x * p.a


def double_but_lost_once(p):
    if p.n > 4 and first_time("lost"):
        raise LostWorkerError("gone")
    return double(p)


def double_but_always_lost(p):
    if p.n > 4:
        raise LostWorkerError("gone again")
    return double(p)


def double_but_killed_once(p):
    if p.n > 4 and first_time("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    return double(p)


def fail(p):
    if p.n > 4:
        raise ArithmeticError("no such number")
    return double(p)


def wrong_once(p):
    return double(p) * (2.0 if p.n > 4 and first_time("wrong") else 1.0)


def never(i, a, b, x, y):
    return math.nan


DOUBLE = Kernel("double", 64, 4, make, element, "return x * a[i];", double)
TREBLE = replace(DOUBLE, name="treble")
LOST_ONCE = replace(DOUBLE, name="lost-once", vectorised=double_but_lost_once)
ALWAYS_LOST = replace(DOUBLE, name="always-lost", vectorised=double_but_always_lost)
KILLED_ONCE = replace(DOUBLE, name="killed-once", vectorised=double_but_killed_once)
FAILS = replace(DOUBLE, name="fails", vectorised=fail)
WRONG_ONCE = replace(DOUBLE, name="wrong-once", vectorised=wrong_once)
SAXPY = KERNELS["saxpy"]


def prints(size):
    print("printed", size, flush=True)
    subprocess.run(["echo", "by a child"], check=True)


def hangs(size):
    time.sleep(1000)


def dies_once(size):
    if first_time("dies"):
        os.kill(os.getpid(), signal.SIGKILL)


def until_a_worker_died(size):
    while not (Path(os.environ[MARKS]) / "ready").exists():
        time.sleep(0.01)


def cores_here():
    return sorted(os.sched_getaffinity(0))
