"""How long the whole suite takes; minutes each, so only by name."""

import os
import subprocess
import sys
import tempfile
import time

from tests.benchmarks.parts import Part


def reproduce(folder, *words):
    """Wall and CPU seconds of one run of ``dlsim reproduce``, with caches in the folder."""
    where = {"DLSIM_CACHE": f"{folder}/cache", "NUMBA_CACHE_DIR": f"{folder}/cache/numba"}
    command = [sys.executable, "-m", "dlsim", "reproduce", "--out", f"{folder}/out", *words]
    begin = time.perf_counter()
    child = subprocess.Popen(command, env={**os.environ, **where}, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return {
        "wall_seconds": time.perf_counter() - begin,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "exit": child.returncode,
    }


def quick(seed=0, tasks=10_000):
    """The quick scale from nothing, and once more with everything cached but the notebooks."""
    with tempfile.TemporaryDirectory() as folder:
        for name, words in {"cold": (), "cached": ("--force",)}.items():
            yield {"run": name, **reproduce(folder, f"--seed={seed}", *words)}


def paper(seed=0, tasks=10_000):
    """The papers' own sizes from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        yield {"run": "paper", **reproduce(folder, f"--seed={seed}", "--scale=paper")}


PARTS = {
    "reproduce": Part("dlsim reproduce, cold and cached", quick, True),
    "paper": Part("dlsim reproduce --scale paper, cold", paper, True),
}
