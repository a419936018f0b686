"""Batches of notebooks: what is around them, what changes meanwhile, limits and interrupts."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.output_folder import OutputFolder
from dlsim.study import notebooks
from dlsim.study.notebooks import run_all
from dlsim.study.results import Results
from tests.helpers.children import alive, marked, none_left, spawn, until
from tests.helpers.small_notebooks import write_notebook
from tests.study.test_notebooks import ENDLESS

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_reproduce_is_interrupted_in_words(tmp_path, number):
    words = [sys.executable, "-m", "dlsim", "reproduce", "theory", "--force", "--out", "out"]
    with open(tmp_path / "log", "w") as log:
        environment = marked(str(tmp_path), PYTHONPATH=str(ROOT))
        process = spawn(words, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    kernel = "ipykernel_launcher"
    until(lambda: any(kernel in " ".join(one.cmdline()) for one in alive(str(tmp_path))), process)
    process.send_signal(number)
    assert process.wait(60) == 130
    said = (tmp_path / "log").read_text()
    assert "interrupted; the same command resumes" in said
    assert "Traceback" not in said
    assert none_left(str(tmp_path)) == []


#: What a user may have in a folder, and what Python itself imports by the same name.
SHADOWS = ("random", "email", "numbers", "types", "enum", "select", "signal", "dlsim")


def test_the_scorecard_runs_again_where_a_result_that_it_reads_changed(tmp_path, monkeypatch):
    book = write_notebook(tmp_path / "90-scorecard.ipynb", "1 + 1")
    out, waves, run_wave = tmp_path / "out", [], notebooks._run_wave

    def note(wave, *more):
        waves.extend(job.name for job in wave)
        run_wave(wave, *more)

    monkeypatch.setattr(notebooks, "_run_wave", note)
    for change, runs in (
        (lambda: None, 1),
        (lambda: None, 0),
        (lambda: Results(out).table("mcdf-claims", pd.DataFrame({"a": [1]})), 1),
        (lambda: Results(out).table("mcdf-fig4", pd.DataFrame({"a": [1]})), 0),
        (lambda: Results(out).picture("mcdf-fig4", b"a picture"), 1),
        (lambda: (out / "notebooks" / "20-mcdf.failed.ipynb").write_text("{}"), 1),
        (lambda: None, 0),
    ):
        change()
        waves.clear()
        (result,) = run_all([book], out=out)
        assert (result.status, result.reused) == ("ok", not runs)
        assert len(waves) == runs


def test_files_of_the_user_and_foreign_kernels_change_nothing(tmp_path, monkeypatch):
    """The kernel is this Python's, and imports from the user's folder after all packages."""
    here = tmp_path / "here"
    here.mkdir()
    for name in SHADOWS:
        (here / f"{name}.py").write_text("raise SystemExit('the file of the user')")
    (here / "helper.py").write_text("answer = 42")
    foreign = tmp_path / "jupyter" / "kernels" / "python3"
    foreign.mkdir(parents=True)
    kernel = {"argv": ["/nowhere/python", "{connection_file}"], "display_name": "Python 3"}
    (foreign / "kernel.json").write_text(json.dumps(kernel | {"language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.chdir(here)
    imports = "import sys, helper\nfrom dlsim.realtime import Cluster\nimport random, email, select"
    source = write_notebook(here / "one.ipynb", imports, "print(sys.executable, helper.answer)")
    (result,) = run_all([source], out=tmp_path / "out", folder=here)
    assert result.status == "ok", result.error
    assert f"{sys.executable} 42" in result.path.read_text()


def test_a_notebook_that_changes_while_it_runs_runs_as_it_was(tmp_path):
    source = tmp_path / "one.ipynb"
    spoil = f"import pathlib; pathlib.Path({str(source)!r}).write_text('spoilt')"
    write_notebook(source, spoil, "print('as it was')")
    (result,) = run_all([source], out=tmp_path / "out")
    assert result.status == "ok", result.error
    assert "as it was" in result.path.read_text()


def test_what_stands_in_the_way_of_a_batch_is_refused_and_stays(tmp_path, monkeypatch):
    source = write_notebook(tmp_path / "one.ipynb", "1")
    out, mine = tmp_path / "out", tmp_path / "mine"
    mine.mkdir()
    (mine / "a").touch()
    OutputFolder(out).acquire()
    (out / notebooks.RUNNING_FOLDER).symlink_to(mine)
    with pytest.raises(InputError, match=f"{notebooks.RUNNING_FOLDER}: not as dlsim wrote it"):
        run_all([source], out=out)
    assert (out / notebooks.RUNNING_FOLDER).readlink() == mine
    assert (mine / "a").exists()
    (out / notebooks.RUNNING_FOLDER).unlink()
    monkeypatch.setattr("sys.stderr", None)  # as where it is closed
    (done,) = run_all([source], out=out)
    assert done.status == "ok", done.error


def test_a_cell_that_never_ends_is_ended_with_all_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setenv("DLSIM_TEST_RUN", str(tmp_path))
    (tmp_path / "out").mkdir()
    source = write_notebook(tmp_path / "endless.ipynb", "1", ENDLESS)
    (result,) = run_all([source], out=tmp_path / "out", cell_seconds=4)
    said = r"endless\.ipynb failed: code cell 4 ran longer than its limit of 4 s \(--cell-seconds\)"
    assert re.match(said, result.error), result.error
    assert result.path.name == "endless.failed.ipynb"
    monkeypatch.delenv("DLSIM_TEST_RUN")
    assert none_left(str(tmp_path)) == []


def test_pictures_of_another_format_lie_beside_the_png(tmp_path):
    draw = (
        "from matplotlib.figure import Figure\n"
        "from dlsim.study import plots\n"
        "from dlsim.study.results import Results\n"
        "plots.use_style()\n"
        "figure = Figure()\n"
        "figure.subplots().plot([1, 2])\n"
        "Results(out, 'theory').figure('mcdf-fig2', figure)"
    )
    book, out = write_notebook(tmp_path / "10-theory.ipynb", draw), tmp_path / "out"
    with pytest.raises(InputError, match="figures must be one of svg, pdf, png; got 'gif'"):
        run_all([book], out=out, figures="gif")
    (result,) = run_all([book], out=out, figures="svg")
    assert (result.status, result.reused) == ("ok", False)
    data = (out / "figures" / "mcdf-fig2.svg").read_bytes()
    assert data.startswith(b"<?xml")
    assert not re.search(rb"20\d\d-?\d\d-?\d\d", data)
    assert (out / "figures" / "mcdf-fig2.png").exists()
    assert run_all([book], out=out, figures="svg")[0].reused
