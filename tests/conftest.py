"""Keep every cache of the tests in a temporary folder, before numba is imported."""

import atexit
import os
import shutil
import tempfile

if "DLSIM_CACHE" not in os.environ:
    os.environ["DLSIM_CACHE"] = tempfile.mkdtemp(prefix="dlsim-tests-")
    atexit.register(shutil.rmtree, os.environ["DLSIM_CACHE"], ignore_errors=True)
os.environ.setdefault("MPLBACKEND", "agg")
