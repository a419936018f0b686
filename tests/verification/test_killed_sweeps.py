"""Sweeps that are killed or interrupted lose no finished cell, and leave no worker."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from dlsim.errors import StudyError
from dlsim.study.sweeps import sweep
from tests.helpers import sweep_functions as functions
from tests.helpers.children import spawn, until
from tests.helpers.scale import scale_count
from tests.study.test_sweeps import (
    ROOT,
    _pool,
    alive_elsewhere,
    cache,
    contents,
    eager,
    files,
    marks,
)

__all__ = ["_pool", "cache", "eager", "marks"]  # fixtures


SCRIPT = """
import sys
from dlsim.study import sweeps
from tests.helpers.sweep_functions import marked
sweeps.SECONDS_BEFORE_WORKERS = 0
fixed = {"marks": sys.argv[1], "wait": 0.02}
sweeps.sweep(marked, {"load": range(int(sys.argv[2]))}, replicates=8, jobs=2, fixed=fixed)
"""


def start_script(marks, loads):
    return spawn(
        [sys.executable, "-c", SCRIPT, str(marks), str(loads)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def sweep_of_script(marks, loads):
    fixed = {"marks": str(marks), "wait": 0.02}
    return sweep(functions.marked, {"load": range(loads)}, replicates=8, fixed=fixed, jobs=2)


def test_a_killed_sweep_loses_no_finished_cell_and_leaves_no_worker(eager, marks, cache):
    chance, kills = random.Random(time.time_ns()), scale_count(3, least=1)
    kept = {}
    for _ in range(kills):
        process = start_script(marks, 8 * kills)
        wanted = len(kept) + chance.randrange(60)
        while len(files(cache)) < wanted and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.random() / 20)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        until(lambda: not alive_elsewhere(cache), within=10.0)
        assert kept.items() <= contents(cache).items()
        kept = contents(cache)
    for mark in set(marks.iterdir()):
        mark.unlink()
    frame = sweep_of_script(marks, 8 * kills)
    assert kept.items() <= contents(cache).items()
    assert len(list(marks.iterdir())) == 64 * kills - len(kept)
    draws = [
        np.random.default_rng(np.random.SeedSequence(0, spawn_key=(k,))).random() for k in range(8)
    ]
    assert frame["value"].tolist() == [load + draw for load in range(8 * kills) for draw in draws]


def test_an_interrupt_keeps_what_is_done_and_says_so(eager, marks, cache):
    process = start_script(marks, 24)
    until(lambda: len(files(cache)) >= 30, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: workers receive it too
    _output, errors = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    done = len(files(cache))
    assert 30 <= done < 192
    last = errors.strip().splitlines()[-1]
    assert last.startswith("KeyboardInterrupt: marked: ")
    assert last.endswith(" of 192 cells are done; a rerun resumes there")
    assert abs(int(last.split()[2]) - done) <= 2
    assert errors.count("Traceback") == 1, errors
    until(lambda: not alive_elsewhere(cache), within=10.0)


def test_workers_that_die_again_and_again_are_an_error(eager, cache):
    points, fixed = {"load": range(48, 60)}, {"flag": "", "wait": 0.01}
    with pytest.raises(StudyError, match=r"died 3 times.* of 12 cells are done; a rerun resumes"):
        sweep(functions.deadly, points, 1, fixed=fixed, jobs=2)
    assert len(sweep(functions.deadly, points, 1, fixed=fixed, jobs=1)) == 12
