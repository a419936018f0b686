"""Keep the tests' finished cells apart, and compiled kernels where the next run finds them.

Both settings must stand before numba is imported. A fresh DLSIM_CACHE compiles anew, once for
all processes that the tests start.
"""

import atexit
import gc
import os
import shutil
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
