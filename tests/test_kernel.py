"""What becomes of kernels that others take in: compiled by whoever calls, now or from the cache."""

import os
import subprocess
import sys

PARTS = """
from dlsim.kernel import kernel

@kernel
def inner(x):
    if x < 0:
        raise ValueError("a text of the innermost")
    return 2 * x

@kernel(inline=True)
def middle(x):
    return inner(x) + 1

@kernel
def outer(x):
    return middle(x) + inner(1)
"""
ASK = """
import parts

print(parts.outer(3), parts.inner(3), parts.outer(3.5))
for function in (parts.outer, parts.inner):
    try:
        function(-1)
    except ValueError as error:
        print(error)
"""


def test_who_takes_kernels_in_has_their_results_and_their_errors(tmp_path):
    """Compiled, and then from the cache."""
    (tmp_path / "parts.py").write_text(PARTS)
    where = {"DLSIM_CACHE": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": ""}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", ASK], cwd=tmp_path, env=os.environ | where,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        told = "a text of the innermost"
        assert done.stdout.splitlines() == ["9 6 10.0", told, told]
