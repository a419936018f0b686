"""`dlsim reproduce` itself under kills and faults: nothing lost, same bytes, no process left.

The command runs in a checkout of its own, which is this one but for its notebooks: three small
ones, one of which sweeps. DLSIM_TEST_SCALE multiplies the number of kills (50 gives 100).
"""

import hashlib
import os
import resource
import shutil
import signal
import sys
import time
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest

from dlsim import compiled
from dlsim.files import csv_text, write_text
from dlsim.study import sweep
from dlsim.study.notebook_process import first_problem
from dlsim.study.notebooks import RUNNING_FOLDER
from dlsim.study.results import round_floats
from tests.helpers import sweep_functions as functions
from tests.helpers.children import alive, marked, none_left, spawn, until
from tests.helpers.scale import scale_count

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals, sets limits")

ROOT = Path(__file__).parents[2]
KILLS = scale_count(2)
#: So many kills are followed by one undisturbed run.
ROUND = 4
VICTIMS = ("parent", "child", "kernel", "group")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
#: What a kill waits for, and the longest it waits after that, in seconds.
MOMENTS = {"start": 6.0, "kernel": 3.0, "cells": 0.2, "end": 0.6}
LOADS, REPLICATES, WORKERS, WAIT = 15, 4, 2, 0.05
CELLS = LOADS * REPLICATES
PARAMETERS = 'seed: int = 0\njobs: int = 0\nout: str = ""'
SWEEP = f"""import os
from dlsim.study import sweep
from dlsim.study.results import Results
from tests.helpers import sweep_functions as functions
table = sweep(functions.marked, {{"load": range({LOADS})}}, {REPLICATES}, seed, jobs=jobs,
              fixed={{"marks": os.environ["MARKS"], "wait": {WAIT}}})
Results(out).table("result", table)"""
#: What a run of the small notebook leaves beside its stamps.
SMALL_RUN = {"01-small.ipynb", "01-small.html", "90-scorecard.ipynb"}
LARGE = "print('x' * 400_000)"


def write_notebook(path, text):
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(one) for one in (PARAMETERS, text)]
    book.cells[0].metadata["tags"] = ["parameters"]
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "3", "language": "python"}
    nbformat.write(book, path)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout with this package and this material, and two notebooks of the tests."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("dlsim", "data", "pyproject.toml", "README.md"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "notebooks").mkdir()
    write_notebook(folder / "notebooks" / "01-small.ipynb", SWEEP)
    write_notebook(folder / "notebooks" / "02-large.ipynb", LARGE)
    write_notebook(folder / "notebooks" / "90-scorecard.ipynb", "print('no verdicts')")
    return folder


class Run:
    """One ``dlsim reproduce`` with an output, marks and a temporary folder."""

    def __init__(self, checkout, place, cache, *words, env=None, number=0, **options):
        self.place, self.out = place, place / "out"
        self.mark, self.log = f"{place}-{number}", place / f"log-{number}"
        self.temporary = place / "tmp"
        for folder in (place / "marks", self.temporary):
            folder.mkdir(parents=True, exist_ok=True)
        environment = marked(
            self.mark, DLSIM_CACHE=str(cache), MARKS=str(place / "marks"),
            TMPDIR=str(self.temporary),
            PYTHONPATH=os.pathsep.join([str(checkout), str(ROOT), *filter(None, sys.path)]),
        )  # fmt: skip
        environment = {k: v for k, v in (environment | (env or {})).items() if v is not None}
        self.begun = time.time()
        command = [sys.executable, "-m", "dlsim", "reproduce", *(words or ("small",)), "--force"]
        with open(self.log, "w") as log:
            self.process = spawn(
                [*command, "--jobs", str(WORKERS), "--out", str(self.out)], env=environment,
                stdout=log, stderr=log, stdin=-3, start_new_session=True, cwd=place, **options,
            )  # fmt: skip

    def ends(self, within=180):
        """Wait for the end; return the exit code, what was said, and what processes are left."""
        code = self.process.wait(within)
        return code, self.log.read_text(), none_left(self.mark)

    def victim(self, kind):
        """Find a process of this run; the command itself where that one is not there yet."""
        for process in alive(self.mark):
            try:
                words = " ".join(process.cmdline())
            except psutil.Error:
                continue
            kinds = {
                "kernel": "ipykernel" in words,
                "child": "dlsim.study.notebook_process" in words,
            }
            if kinds.get(kind):
                return process.pid
        return self.process.pid

    def kill(self, kind, number):
        """Send the signal; return whether it came before the end, and the kind of process hit."""
        if self.process.poll() is not None:
            return False, "none"
        pid = self.victim(kind)
        try:
            (os.killpg if kind == "group" else os.kill)(pid, number)
        except ProcessLookupError:
            return False, "none"
        return True, "parent" if kind != "group" and pid == self.process.pid else kind


def done(place):
    return len(list((place / "marks").iterdir()))


def wait_for(run, moment, rng):
    """Wait for a moment of a run; return its name."""
    before = done(run.place)
    more = int(rng.integers(0, max(1, CELLS - before)))
    events = {
        "start": lambda: True,
        "kernel": lambda: run.victim("kernel") != run.process.pid,
        "cells": lambda: done(run.place) >= before + more,
        "end": lambda: ": ok in" in run.log.read_text(),
    }
    if moment == "cells" and before >= CELLS:
        moment = "kernel"
    until(events[moment], run.process)
    time.sleep(rng.uniform(0, MOMENTS[moment]))
    return f"{moment} {before + more}" if moment == "cells" else moment


def half_written(run, cache, expected):
    """Yield every file under a final name that is not whole."""
    for path in run.out.rglob("*") if run.out.exists() else ():
        words = path.name.split(".")
        unfinished = RUNNING_FOLDER in path.parts or "failed" in words
        if not path.is_file() or path.name.startswith(".") or unfinished:
            continue
        if path.name == "result.csv" and path.read_bytes() != expected:
            yield path
        if path.suffix == ".ipynb" and first_problem(nbformat.read(path, 4)):
            yield path
        if path.suffix == ".html" and "</html>" not in path.read_text("utf-8")[-20:]:
            yield path
        if path.suffix == ".json" and not path.read_text("utf-8").rstrip().endswith("}"):
            yield path
    for path in cache.rglob("cells/*/*.txt"):
        body, seal = path.read_bytes()[:-65], path.read_bytes()[-65:-1]
        if hashlib.sha256(body[:-1]).hexdigest().encode() != seal:
            yield path


def expected_bytes(folder):
    """What the sweep of the small notebook gives undisturbed."""
    (folder / "once").mkdir()
    table = sweep(functions.marked, {"load": range(LOADS)}, REPLICATES, 0, jobs=1,
                  fixed={"marks": str(folder / "once")})  # fmt: skip
    write_text(folder / "expected.csv", csv_text(round_floats(table)))
    return (folder / "expected.csv").read_bytes()


def test_kills_of_the_command_lose_nothing_and_leave_no_process(checkout, tmp_path, capsys):
    rng, expected, told = np.random.default_rng(11), expected_bytes(tmp_path), []
    plan = rng.permutation([(victim, number) for number in SIGNALS for victim in VICTIMS])
    order = ["cells", "kernel", "start", "cells", "end"]
    twice, late, bad = 0, 0, []

    def judge(run, what, own_end):
        code, said, left = run.ends()
        if "Traceback" in said:
            bad.append(f"{what}: a traceback: {said[-500:]}")
        bad.extend(f"{what}: half a file: {path}" for path in half_written(run, cache, expected))
        bad.extend(f"{what}: still there after 10 s: {words}" for words in left)
        if own_end:  # a process that was killed outright cannot tidy up
            halves = [p for p in run.out.rglob(RUNNING_FOLDER) if p.stat().st_mtime > run.begun]
            left = [path.name for path in (*run.temporary.iterdir(), *halves)]
            bad.extend(f"{what}: left behind: {name}" for name in left)
        told.append(f"{what}: exit {code}")
        return code, said

    for begin in range(0, KILLS, ROUND):
        place, cache = tmp_path / f"round-{begin}", tmp_path / f"cache-{begin}"
        for kill in range(begin, min(begin + ROUND, KILLS)):
            run = Run(checkout, place, cache, number=kill)
            moment = wait_for(run, order[kill % len(order)], rng)
            victim, number = plan[kill % len(plan)]
            number = signal.Signals(int(number))
            hit, whom = run.kill(victim, number)
            late += not hit
            outright = number == signal.SIGKILL and whom in ("parent", "group")
            judge(run, f"{number.name} to {whom} at {moment}", not outright)
            shutil.rmtree(run.temporary)
        run = Run(checkout, place, cache, number="last")
        code, said = judge(run, "undisturbed", True)
        assert code == 0, said
        assert (run.out / "data" / "result.csv").read_bytes() == expected, said
        twice += done(place) - CELLS
        names = {path.name for path in (run.out / "notebooks").iterdir()}
        assert {n for n in names if not n.startswith(".")} == SMALL_RUN
    with capsys.disabled():
        left = sum("still there" in line for line in bad)
        print(f"\n{KILLS} kills, {late} too late: {twice} cells run twice, {left} processes left")
        print("\n".join(told))
    assert not bad, "\n".join(bad)
    assert 0 <= twice <= KILLS * WORKERS


def test_two_runs_at_once_on_one_cache_give_the_same_bytes(checkout, tmp_path):
    expected, cache = expected_bytes(tmp_path), tmp_path / "cache"
    no_home = {"HOME": None, "XDG_CACHE_HOME": None}
    both = [Run(checkout, tmp_path / "a", cache), Run(checkout, tmp_path / "b", cache, env=no_home)]
    for run in both:
        code, said, left = run.ends()
        assert (code, left) == (0, []), said
        assert "Traceback" not in said
        assert (run.out / "data" / "result.csv").read_bytes() == expected
        assert list(half_written(run, cache, expected)) == []


# ------------------------------------------------------------------ faults


def full_disk():
    """Let no file grow beyond what the small notebook needs, as a full disk would."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))


def test_a_full_disk_ends_in_words_and_leaves_nothing(checkout, tmp_path):
    run = Run(checkout, tmp_path, tmp_path / "cache", "large", preexec_fn=full_disk)
    code, said, left = run.ends()
    assert (code, left) == (1, []), said
    assert "free some space on the disk and run again" in said
    assert "Traceback" not in said
    assert list(run.temporary.iterdir()) == []
    assert not (run.out / "notebooks" / "02-large.ipynb").exists()


def test_the_checkout_of_the_tests_runs_this_package(checkout):
    assert (checkout / "dlsim" / "compiled.py").samefile(compiled.__file__)
