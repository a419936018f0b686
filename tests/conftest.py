"""Keep every cache of the tests in a temporary folder, before numba is imported."""

import os
import tempfile

_CACHE = tempfile.mkdtemp(prefix="dlsim-tests-")
os.environ.setdefault("DLSIM_CACHE", _CACHE)
os.environ.setdefault("MPLBACKEND", "agg")
