"""How long the whole suite takes, minutes each, so only by name; what a first call waits for."""

import os
import subprocess
import sys
import tempfile

from dlsim import processes
from tests.verification.benchmarks.parts import Part, run_dlsim

_REALTIME = "realtime import Cluster, simulate, workload"
_LOADS = "simulate(workload.mcdf(Cluster(4, 1, 9), 0.5, 1e4), Cluster(4, 1, 9), {!r}, engine={!r})"
_JOBS = "workload.random_jobs(workload.applications('lee', seed=1), jobs=24, seed=1)"
#: A first call of every engine, compiled; and one of the size of the README's example as it comes.
FIRST = {
    "paper I's baseline": (_REALTIME, _LOADS.format("EDF-OPR-MN", "compiled")),
    "papers M and I": (_REALTIME, _LOADS.format("FIFOMN", "compiled")),
    "papers M and I, auto": (_REALTIME, _LOADS.format("FIFOMN", "auto")),
    "paper S": (
        "steady import solve, topology",
        "solve(topology.random(8, 0.4, seed=1), 'LPRG', engine='compiled')",
    ),
    "paper B": (
        "bricks import Environment, Policy, simulate",
        "simulate(Environment.random(1, horizon=3600.0), Policy('greedy'), engine='compiled')",
    ),
    "paper C": (
        "cpugpu import Machine, simulate, workload", f"simulate({_JOBS}, Machine(1, 1), 'history')",
    ),
}  # fmt: skip
CLOCKED = """import time
from dlsim.{}
begun = time.process_time()
{}
print(time.process_time() - begun)"""


def reproduce(folder, *words):
    """One run of ``dlsim reproduce``, with caches in the folder."""
    where = {"DLSIM_CACHE": f"{folder}/cache", "NUMBA_CACHE_DIR": f"{folder}/cache/numba"}
    return run_dlsim("reproduce", "--out", f"{folder}/out", *words, **where)


def quick(seed=0, tasks=10_000):
    """The quick scale from nothing, and once more with everything cached but the notebooks."""
    with tempfile.TemporaryDirectory() as folder:
        for name, words in {"cold": (), "cached": ("--force",)}.items():
            yield {"run": name, **reproduce(folder, f"--seed={seed}", *words)}


def first(seed=0, tasks=10_000):
    """CPU seconds of a first call from an empty cache, and of the first one in a later process."""
    for engine, lines in FIRST.items():
        with tempfile.TemporaryDirectory() as folder:
            where = os.environ | {"DLSIM_CACHE": folder, "NUMBA_CACHE_DIR": ""}
            code = processes.code_to_import_dlsim() + CLOCKED.format(*lines)
            command = [sys.executable, "-c", code]
            runs = [
                subprocess.run(command, env=where, capture_output=True, text=True, check=True)
                for _ in range(2)
            ]
        cold, later = (float(run.stdout) for run in runs)
        yield {"engine": engine, "cold_seconds": cold, "later_seconds": later}


PARTS = {
    "first": Part("first calls from an empty cache: what the compiler takes", first),
    "reproduce": Part("dlsim reproduce, cold and cached", quick, True),
}
