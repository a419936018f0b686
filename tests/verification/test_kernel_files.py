"""Kernels as files, in processes of their own: what becomes of damaged ones, and what is said."""

import os
import subprocess
import sys

import pytest

from dlsim import kernel_files
from tests.helpers.scale import some_of
from tests.test_compiled import jit

#: Kernels that call kernels, one of which raises.
PARTS = """
from dlsim.compiled import compiled

@compiled
def inner(x):
    if x < 0:
        raise ValueError("a text of the innermost")
    return 2 * x

@compiled(inline=True)
def middle(x):
    return inner(x) + 1

@compiled
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


ANSWER = ["9 6 10.0", "a text of the innermost", "a text of the innermost"]


@pytest.fixture
def ask(tmp_path):
    """Run the kernels above in a process of its own, with a cache of its own."""
    (tmp_path / "parts.py").write_text(PARTS)
    where = {"DLSIM_CACHE": str(tmp_path / "cache"), "NUMBA_CACHE_DIR": ""}

    def run(before=""):
        done = subprocess.run(
            [sys.executable, "-c", before + ASK],
            cwd=tmp_path,
            env=os.environ | where,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        assert done.stdout.splitlines() == ANSWER
        return done.stderr

    return run


def kernels_in(folder):
    return sorted((folder / "cache").rglob("*.kernel"))


def test_kernels_that_call_kernels_have_their_results_and_errors(ask, tmp_path):
    """Compiled, and then from the files."""
    assert ask() == ""
    kept = [path.stat().st_mtime_ns for path in kernels_in(tmp_path)]
    assert kept
    assert ask() == ""
    assert [path.stat().st_mtime_ns for path in kernels_in(tmp_path)] == kept


@pytest.mark.parametrize("size", [0, 60, 100])
def test_a_file_that_was_cut_short_is_dropped_and_compiled_anew(ask, tmp_path, size):
    ask()
    for path in kernels_in(tmp_path):
        os.truncate(path, size)
    said = ask().splitlines()
    assert said
    assert all(line.startswith("a compiled kernel was damaged and is compiled") for line in said)
    assert ask() == ""


def test_a_file_that_cannot_be_written_is_left_out(ask, tmp_path):
    before = "from pathlib import Path\n"
    before += "def refuse(self, data):\n    raise OSError(28, 'No space left on device')\n"
    assert ask(before + "Path.write_bytes = refuse\n") == ""
    assert kernels_in(tmp_path) == []


PRIVATE = [(owner, name) for owner, names in kernel_files._NEEDED.items() for name in names]


@pytest.mark.parametrize(
    ("owner", "name"), some_of(PRIVATE), ids=[f"{o.__name__}.{n}" for o, n in some_of(PRIVATE)]
)
def test_without_a_private_name_of_numba_kernels_are_plainly_compiled(ask, owner, name):
    """The name is hidden from the file that looks for it, not from numba itself."""
    hide = f"""
import builtins, numba
import dlsim.compiled
has = builtins.hasattr
builtins.hasattr = lambda one, name: name != {name!r} and has(one, name)
try:
    import dlsim.kernel_files
except ImportError as error:
    assert {name!r} in str(error)
else:
    raise SystemExit("nothing was missed")
"""
    assert (
        ask(hide + "builtins.hasattr = has\nimport sys\nsys.modules['dlsim.kernel_files'] = None\n")
        == ""
    )


def test_a_numba_that_was_not_tried_compiles_plainly(ask, tmp_path):
    later = "import numba, types\nnumba.version_info = types.SimpleNamespace(short=(9, 9))\n"
    assert ask(later) == ""
    assert kernels_in(tmp_path) == []
    assert list((tmp_path / "cache").rglob("*.nbi"))


COMPILES_TWICE = """
import pandas as pd
from dlsim.realtime import Cluster, simulate
tasks = pd.DataFrame({"arrival": [0.0], "sigma": [6.0], "deadline": [10.0]})
for policy in ("FIFOMN", "FIFOMN", "FIFO-OPR-MN"):
    simulate(tasks, Cluster(nodes=2, cms=1, cps=1), policy, engine="compiled")
"""


@jit
def test_compiling_is_said_once(tmp_path):
    environment = {**os.environ, "DLSIM_CACHE": str(tmp_path), "NUMBA_CACHE_DIR": ""}

    def said():
        words = [sys.executable, "-c", COMPILES_TWICE]
        run = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600)
        assert (run.returncode, run.stdout) == (0, ""), run.stderr
        return run.stderr.splitlines()

    # the second call compiles nothing, the third another loop
    assert said() == ["compiling dlsim.realtime, once per version: about 20 s ..."]
    assert said() == []
