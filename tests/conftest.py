"""Keep the tests' finished cells apart, and compiled kernels where the next run finds them.

Both settings must stand before numba is imported. A fresh DLSIM_CACHE compiles anew, once for
all processes that the tests start.
"""

import atexit
import os
import shutil
import tempfile

import platformdirs
from hypothesis import HealthCheck, settings

if "NUMBA_CACHE_DIR" not in os.environ:
    kept = os.environ.get("DLSIM_CACHE") or platformdirs.user_cache_dir("dlsim")
    os.environ["NUMBA_CACHE_DIR"] = os.path.abspath(kept)
if "DLSIM_CACHE" not in os.environ:
    os.environ["DLSIM_CACHE"] = tempfile.mkdtemp(prefix="dlsim-tests-")
    atexit.register(shutil.rmtree, os.environ["DLSIM_CACHE"], ignore_errors=True)
os.environ.setdefault("MPLBACKEND", "agg")
# gmpy2 makes the exact twins fast; SymPy and mpmath run as they do for those who lack it
os.environ |= {"SYMPY_GROUND_TYPES": "python", "MPMATH_NOGMPY": "1"}

# how long an example takes says how busy the machine is
settings.register_profile("dlsim", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dlsim")
