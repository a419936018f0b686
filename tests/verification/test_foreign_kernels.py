"""Compiled code in a cache that is not the user's alone is never read, whatever starts."""

import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_trust import LEAF, give_away, posix

ROOT = Path(__file__).parents[2]


#: Simulates so many tasks that the engine is compiled; a refusal ends with exit code 2.
SIMULATE = """
import sys
from dlsim.errors import InputError
from dlsim.realtime import Cluster, simulate, workload
cluster = Cluster(10, 10.0, 10.0)
try:
    simulate(workload.mcdf(cluster, 0.5, 1e6, 0), cluster, "MCDF", engine="compiled")
except InputError as error:
    sys.exit(print(f"dlsim: {error}", file=sys.stderr) or 2)
"""


MAIN = "import sys; from dlsim.cli import main; sys.exit(main(sys.argv[1:]))"


USE = """
import numpy as np
from dlsim.realtime.core.formulas import time_on_nodes
time_on_nodes(1.0, 2, np.ones(4), np.ones(4))
print(time_on_nodes.stats.cache_path)
"""


def run(code, *words, **environment):
    """Run code in a process with this environment and little else."""
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    return subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=300,
        env=kept | environment, check=False,
    )  # fmt: skip


class Bomb:
    """What leaves a mark where it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@posix
def test_a_planted_file_of_compiled_code_is_not_read_from_a_strangers_folder(tmp_path):
    folder, mark = tmp_path / "cache", tmp_path / "mark"
    done = run(USE, DLSIM_CACHE=str(folder))
    assert done.stdout.startswith(str(folder / LEAF)), done.stderr
    planted = list(folder.rglob("*.kernel"))
    assert planted
    for path in planted:
        content = pickle.dumps(Bomb(mark))
        path.write_bytes(hashlib.sha256(content).digest() + content)
    run(USE, DLSIM_CACHE=str(folder))
    assert mark.exists()  # a kernel's file is a pickle: what is written there runs
    mark.rmdir()
    pretend = give_away(folder / LEAF)
    for code in (USE, SIMULATE):
        done = run(pretend + code, DLSIM_CACHE=str(folder))
        assert not mark.exists()
        # where this user only pretends to be another one, the base folder is foreign, too
        refused = folder if pretend else folder / LEAF
        assert f"{refused} cannot be used: it belongs to user " in done.stderr
        assert "set the environment variable DLSIM_CACHE to a folder of your own" in done.stderr
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@posix
def test_the_folder_that_numba_is_given_is_held_to_the_same(tmp_path):
    (tmp_path / LEAF).mkdir()
    pretend = give_away(tmp_path / LEAF)
    done = run(pretend + SIMULATE, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 2
    assert f"{tmp_path / LEAF} cannot be used: it belongs to user" in done.stderr
    assert "NUMBA_CACHE_DIR to a folder of your own" in done.stderr


@posix
@pytest.mark.parametrize("leaf", [LEAF, "cells"], ids=["kernels", "cells"])
def test_a_batch_is_refused_before_anything_runs(tmp_path, leaf):
    (tmp_path / "cache" / leaf).mkdir(parents=True)
    pretend = give_away(tmp_path / "cache" / leaf)
    out = tmp_path / "out"
    words = ("reproduce", "theory", "--out", str(out))
    done = run(pretend + MAIN, *words, DLSIM_CACHE=str(tmp_path / "cache"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"dlsim: cache folder {tmp_path / 'cache'}")
    assert done.stderr.count("\n") == 1
    assert not out.exists()


NO_HOME = """import os, pwd
def unknown(*_):
    raise KeyError("no such user")
pwd.getpwuid = pwd.getpwnam = unknown
"""


@posix
@pytest.mark.parametrize(
    ("program", "words", "environment", "code", "said"),
    [
        (SIMULATE, (), {}, 2, "you have no home folder"),
        (SIMULATE, (), {"DLSIM_CACHE": "/dev/null"}, 2, "cache folder /dev/null cannot be used"),
        (MAIN, ("claims", "mcdf"), {}, 0, ""),
        (MAIN, ("list",), {"DLSIM_CACHE": "/dev/null"}, 0, ""),
    ],
)
def test_without_a_home_or_a_cache_only_compiling_ends_in_words(
    program, words, environment, code, said
):
    done = run(NO_HOME + program, *words, **environment)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
