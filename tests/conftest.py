"""Keep the tests' finished cells apart, and compiled kernels where the next run finds them.

Both settings must stand before numba is imported. A fresh DLSIM_CACHE compiles anew, once for
all processes that the tests start.
"""

import atexit
import gc
import os
import shutil
import subprocess
import sys
import tempfile

import platformdirs
import pytest
from hypothesis import HealthCheck, settings

from tests.helpers.scale import TRIES_ALL, scale_count

if "NUMBA_CACHE_DIR" not in os.environ:
    kept = os.environ.get("DLSIM_CACHE") or platformdirs.user_cache_dir("dlsim")
    os.environ["NUMBA_CACHE_DIR"] = os.path.abspath(kept)
if "DLSIM_CACHE" not in os.environ:
    os.environ["DLSIM_CACHE"] = tempfile.mkdtemp(prefix="dlsim-tests-")
    atexit.register(shutil.rmtree, os.environ["DLSIM_CACHE"], ignore_errors=True)
os.environ.setdefault("MPLBACKEND", "agg")
# gmpy2 makes the exact twins fast; SymPy and mpmath run as they do without it
os.environ |= {"SYMPY_GROUND_TYPES": "python", "MPMATH_NOGMPY": "1"}

# jsonschema, which nbformat imports, would build 38 grammars of IRIs with it, a second a process
sys.modules.setdefault("rfc3987_syntax", None)

# how long an example takes says how busy the machine is
settings.register_profile(
    "dlsim",
    max_examples=scale_count(100),
    deadline=None,
    derandomize=not TRIES_ALL,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("dlsim")

#: What compiles the kernels of an engine into a fresh cache, by the worker that has it done.
COMPILING = {
    "gw0": """
from dlsim import bricks
few = bricks.Environment.random(seed=0, interval=10.0, horizon=2000.0, domains=1)
bricks.simulate(few, "Greedy", engine="compiled").check()
""",
    "gw1": """
import pandas as pd
from dlsim.realtime import Cluster, simulate
tasks = pd.DataFrame({"arrival": [0.0], "sigma": [1.0], "deadline": [9.0]})
for policy in ("MCDF", "FIFO-DLT"):  # with overtaking, and in line
    simulate(tasks, Cluster(2, 1, 1), policy, engine="compiled").check()
""",
}


def pytest_xdist_auto_num_workers(config):
    """Work with as many processes as there are cores that this one may use."""
    return len(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage in what is imported and collected: it stays to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path, config):
    """Collect ``tests/verification`` only if it is named, or all random instances are tried."""
    is_asked = TRIES_ALL or "verification" in " ".join(config.args)
    return True if collection_path.name == "verification" and not is_asked else None


def pytest_collection_finish(session):
    """Compile an engine in each worker before all tests run, in a process of its own.

    Without this both workers meet the kernels of the same engine at once, and one waits while the
    other compiles them. A test is told nothing: small work is still done uncompiled.
    """
    compiling = COMPILING.get(os.environ.get("PYTEST_XDIST_WORKER", ""))
    if compiling and len(session.items) > 2000:
        subprocess.run([sys.executable, "-c", compiling], check=True)
