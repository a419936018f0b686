"""A batch of notebooks that is killed, or runs out of disk, loses nothing and pretends nothing."""

import json
import os
import resource
import subprocess
import sys
import time

import nbformat
import numpy as np
import psutil
import pytest

from dlsim.files import write_csv
from dlsim.owned import RECORD, Owned
from dlsim.study import notebooks, sweep
from tests import sweep_functions as functions
from tests.scale import SCALE, deep

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals, sets limits")

KILLS = max(2, round(3 * SCALE))
LOADS, REPLICATES, WORKERS = 15, 4, 2
SWEEP = """from dlsim.study.sweeps import sweep
from dlsim.study.report import Results
from tests import sweep_functions as functions
table = sweep(functions.marked, {"load": range(LOADS)}, REPLICATES, seed, jobs=jobs,
              fixed={"marks": marks, "wait": 0.05})
Results(out).table("result", table)"""


def notebook(path, *cells):
    parameters = 'seed: int = 0\njobs: int = 0\nout: str = ""\nmarks: str = ""'
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(text) for text in (parameters, *cells)]
    book.cells[0].metadata["tags"] = ["parameters"]
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "3", "language": "python"}
    nbformat.write(book, path)
    return path


def batch(source, out, marks, cache, **options):
    """Start a batch in a process of its own, in a session of its own."""
    code = (
        "import sys; from dlsim.study.notebooks import run_all\n"
        "source, out, marks = sys.argv[1:]\n"
        "for r in run_all([source], out=out, jobs=2, extra={'marks': marks}):\n"
        "    print(r.status, r.error)"
    )
    paths = os.pathsep.join(filter(None, sys.path))
    environment = os.environ | {"DLSIM_CACHE": str(cache), "PYTHONPATH": paths}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(source), str(out), str(marks)], env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        **options,
    )  # fmt: skip


def until(moment, marks, process):
    """Wait for a moment: seconds after the start if negative, else a number of done cells."""
    deadline = time.monotonic() + (-moment / 10 if moment < 0 else 120)
    while time.monotonic() < deadline and process.poll() is None:
        if 0 <= moment <= len(list(marks.iterdir())):
            return
        time.sleep(0.01)


def family(process):
    try:
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


@deep
def test_kills_at_random_moments_lose_no_cell_and_change_no_byte(tmp_path, capsys):
    text = SWEEP.replace("LOADS", str(LOADS)).replace("REPLICATES", str(REPLICATES))
    source, out, marks, once = (tmp_path / n for n in ("one.ipynb", "out", "marks", "once"))
    notebook(source, text)
    marks.mkdir()
    once.mkdir()
    rng, cells, orphans, moments = np.random.default_rng(8), LOADS * REPLICATES, 0, []
    for kill in range(KILLS):
        # while it starts, and while it sweeps
        moments.append(int(rng.integers(0, cells) if kill % 2 else -rng.integers(1, 40)))
        process = batch(source, out, marks, tmp_path / "cache")
        until(moments[-1], marks, process)
        time.sleep(rng.uniform(0, 0.1))
        there = family(process)
        # the parent alone, or every process at once
        for one in there if kill // 2 % 2 else there[:1]:
            one.kill()
        orphans += len(psutil.wait_procs(there, timeout=10)[1])
        process.communicate()
        for path in out.glob("data/*") if out.exists() else ():
            assert path.name == "result.csv" or path.name.startswith("."), path
    said, errors = batch(source, out, marks, tmp_path / "cache").communicate(timeout=120)
    assert said.split() == ["ok"], errors
    expected = sweep(functions.marked, {"load": range(LOADS)}, REPLICATES, 0, jobs=1, cache=False,
                     fixed={"marks": str(once)})  # fmt: skip
    write_csv(tmp_path / "expected.csv", expected)
    again = len(list(marks.iterdir())) - cells
    with capsys.disabled():
        print(
            f"\n{KILLS} kills at {moments}: {again} of {cells} cells run twice, {orphans} orphans"
        )
    assert (out / "data" / "result.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert 0 <= again <= KILLS * WORKERS
    assert orphans == 0
    names = {path.name for path in (out / "notebooks").iterdir()}
    assert names == {"one.ipynb", ".one.stamp.json"}


def small(size):
    """Let no file grow over `size` bytes, as a full disk would."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@deep
def test_a_full_disk_is_an_error_and_leaves_no_half_result(tmp_path):
    text = "print('x' * 40_000)"
    source = notebook(tmp_path / "one.ipynb", text)
    out = tmp_path / "out"
    full = batch(source, out, tmp_path, tmp_path / "cache", preexec_fn=small(20_000))
    said, errors = full.communicate(timeout=120)
    assert said.startswith("failed "), said + errors
    assert "one.ipynb: not written" in said
    assert "free some space on the disk and run again" in said
    assert not (out / "notebooks" / "one.ipynb").exists()
    assert not (out / "notebooks" / ".one.stamp.json").exists()
    (again,) = notebooks.run_all([source], out=out, jobs=2, extra={"marks": str(tmp_path)})
    assert again.status == "ok", again.error


def test_a_report_that_finds_no_room_is_an_error_in_words(tmp_path):
    out = tmp_path / "out"
    Owned(out).claim().write("report.html", b"old")
    code = (
        "import sys\nfrom dlsim.cli import main, reproduce\nfrom dlsim.study import notebooks\n"
        "notebooks.run_all = lambda names, **_: []\n"
        "sys.exit(main(['reproduce', 'theory', '--out', sys.argv[1]]))"
    )
    words = [sys.executable, "-c", code, str(out)]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=small(2_000))
    assert done.returncode == 1, done.stderr
    assert "free some space on the disk and run again" in done.stderr
    assert "Traceback" not in done.stderr
    assert (out / "report.html").read_text() == "old"
    assert {path.name for path in out.iterdir()} <= {RECORD, "report.html", "run.json"}
    if (out / "run.json").exists():
        json.loads((out / "run.json").read_text())


def test_the_scorecard_waits_for_the_others_to_end(tmp_path, monkeypatch):
    waves = []

    def pretend(waiting, jobs, folder, display, results):
        waves.append([job.name for job in waiting])
        for job in waiting:
            results[job.name] = notebooks.NotebookResult(job.name, None, "ok", 1.0)

    monkeypatch.setattr(notebooks, "_run_wave", pretend)
    done = notebooks.run_all(["90-scorecard", "20-mcdf", "10-theory"], out=tmp_path)
    assert waves == [["20-mcdf", "10-theory"], ["90-scorecard"]]
    assert [result.name for result in done] == ["90-scorecard", "20-mcdf", "10-theory"]
