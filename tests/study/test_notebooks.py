"""Notebooks in batch: refused parameters, hidden failures, limits, interrupts, reuse."""

import base64
import json
import re
import struct
import threading
from pathlib import Path

import nbformat
import pytest

from dlsim.errors import InputError
from dlsim.output_folder import OutputFolder
from dlsim.study import notebooks
from dlsim.study.notebook_process import first_problem
from dlsim.study.notebooks import check_parameters, find_notebook, parameters_of, run_all
from tests.helpers.small_notebooks import PARAMETERS, write_notebook
from tests.study.test_pictures import DRAW, FOR_A_PAPER, START

ROOT = Path(__file__).parents[2]
WIDGET = """import ipywidgets as widgets
def redraw(x):
    raise ValueError("inside")
slider = widgets.IntSlider()
display(slider, widgets.interactive_output(redraw, {"x": slider}))"""
RESULT = """import os, pandas as pd
from dlsim.study.results import Results
values = {"runs": runs, "loads": str(loads), "reading": str(reading)}
values["workers"] = os.environ["DLSIM_JOBS"]
Results(out).table("good", pd.DataFrame([values]))
print(os.getcwd())"""
SPOIL = """import pathlib
pathlib.Path(out, "notebooks", "spoilt.ipynb").write_text("mine")"""
#: A child that ignores its parent's end, then a cell that never ends.
ENDLESS = """import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(out, "started").touch()
while True:
    pass"""


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return write_notebook(tmp_path_factory.mktemp("books") / "good.ipynb", RESULT)


# ----------------------------------------------------------------- parameters


def test_parameters_are_listed_with_their_types(book):
    known = parameters_of(book)
    assert list(known) == [re.match(r"\w+", line)[0] for line in PARAMETERS.splitlines()]
    assert (known["scale"], known["loads"], known["bare"]) == ("str", "list[float]", "int")


GOOD = [
    ({"runs": "3"}, 3),
    ({"scale": "3"}, "3"),  # a text stays one
    ({"scale": "'); import os"}, "'); import os"),
    ({"width": 2}, 2),
    ({"width": "1e-3"}, 0.001),
    ({"wide": "yes"}, True),
    ({"wide": "False"}, False),
    ({"loads": "[0.25, 1]"}, [0.25, 1]),
    ({"loads": (0.25,)}, (0.25,)),
    ({"reading": "link=shared,late=drop"}, {"link": "shared", "late": "drop"}),
    ({"reading": '{"link": "shared"}'}, {"link": "shared"}),
    ({"reading": {"a": [1, None, True, {"b": 0.5}]}}, {"a": [1, None, True, {"b": 0.5}]}),
]


def test_good_parameters(book):
    for given, value in GOOD:
        (checked,) = check_parameters(book, given).values()
        assert (checked, type(checked)) == (value, type(value)), given


BAD = {
    "runs": (1.5, "1.5", True, None, "three", "__import__('os')"),
    "width": (float("inf"), "nan", "1e999", "Infinity", False, 10**400),
    "wide": (1, "1"),
    "scale": (3, None),
    "loads": (0.5, "0.5", [float("nan")], {"a": 1}),
    "reading": ([1], {"a": object()}, {"a": float("inf")}, "link"),
    "bare": ("x y",),
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_ill_typed_parameters_are_refused_by_name(book, name, value):
    with pytest.raises(InputError, match=rf"good\.ipynb: parameter {name} must be a finite"):
        check_parameters(book, {name: value})


def test_a_notebook_without_parameters_takes_none(tmp_path):
    plain = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    nbformat.write(plain, tmp_path / "plain.ipynb")
    assert parameters_of(tmp_path / "plain.ipynb") == {}
    with pytest.raises(InputError, match="it has: none"):
        check_parameters(tmp_path / "plain.ipynb", {"runs": 1})


def test_what_is_no_notebook_is_refused(tmp_path):
    path = tmp_path / "broken {x}.ipynb"
    for text in ("", "{", "[]", "3", '{"cells": 3}', "\0", '{"nbformat": 4}'):
        path.write_text(text)
        with pytest.raises(InputError, match="not a notebook that can be run"):
            parameters_of(path)


def test_notebooks_are_found_by_name_or_refused(tmp_path, monkeypatch):
    (tmp_path / "20-mcdf.ipynb").touch()
    monkeypatch.setattr("dlsim.files.shared_folder", lambda name: tmp_path)
    assert find_notebook("mcdf") == find_notebook("20-mcdf") == tmp_path / "20-mcdf.ipynb"
    assert find_notebook(tmp_path / "20-mcdf.ipynb") == tmp_path / "20-mcdf.ipynb"
    with pytest.raises(InputError, match="one of 20-mcdf; got 'mdcf'"):
        find_notebook("mdcf")
    with pytest.raises(InputError, match="no such notebook"):
        find_notebook(tmp_path / "gone.ipynb")


# ---------------------------------------------------------------------- a batch


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """A good notebook, and some that fail in their own ways, run once."""
    folder = tmp_path_factory.mktemp("batch {with} braces")
    cells = {
        "good": [RESULT, START, FOR_A_PAPER, DRAW, f"{DRAW.replace('1, 2', '2, 1')};"],
        "bad": ["1 / 0", "print('never')"],
        "widget": [WIDGET, "1 + 1"],
        "dies": ["import os; os._exit(1)", "2"],
        "leaves": ["raise SystemExit", "2"],
        "spoilt": [SPOIL],
    }
    books = [write_notebook(folder / f"{name}.ipynb", *some) for name, some in cells.items()]
    parameters = {"runs": 3, "loads": "[0.25]", "reading": {"link": "shared"}}
    common = {"out": folder / "out", "parameters": parameters, "figures": "pdf", "latex": True}
    results = run_all(books, jobs=2, **common)
    return books[:-1], common, results  # the last one left a file of a person


def test_a_good_notebook_appears_under_its_name(batch):
    _, common, results = batch
    good = results[0]
    assert (good.name, good.status, good.error, good.reused) == ("good", "ok", "", False)
    assert good.path == common["out"] / "notebooks" / "good.ipynb"
    said = (common["out"] / "data" / "good.csv").read_text()
    # one worker, because several notebooks ran at once
    assert said.splitlines()[1] == "3,[0.25],{'link': 'shared'},1"
    text = good.path.read_text()
    assert str(good.path.parent) in text  # the kernel's folder
    about = json.loads(text)["metadata"]["papermill"]
    assert (about["input_path"], about["output_path"]) == ("good.ipynb",) * 2


def test_a_notebook_shows_the_pictures_that_were_written_and_leaves_those_for_a_paper(batch):
    _, common, results = batch
    figures = common["out"] / "figures"
    assert (figures / "theory-mine.pdf").read_bytes().startswith(b"%PDF")
    table = (common["out"] / "data" / "theory-mine.tex").read_text()
    assert r"a\_b & $0.350 \pm 0.050$ \\" in table
    shown = [
        [out for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
        for cell in nbformat.read(results[0].path, 4).cells
    ][-2:]
    assert [len(one) for one in shown] == [1, 1]  # shown once
    written = (figures / "theory-one.png").read_bytes()
    first, second = (base64.b64decode(one[0].data["image/png"]) for one in shown)
    assert first != second == written
    (width, height), told = struct.unpack(">ii", written[16:24]), shown[1][0].metadata["image/png"]
    assert told["width"] / width == pytest.approx(told["height"] / height, rel=0.01)
    assert told["width"] < width


def test_a_failed_notebook_is_kept_under_a_name_that_says_so(batch):
    _, common, results = batch
    messages = [
        r"bad\.ipynb failed: code cell 3: ZeroDivisionError",
        r"widget\.ipynb failed: inside a widget: ValueError",
        r"dies\.ipynb failed: code cell 3: DeadKernelError",
        r"leaves\.ipynb failed: code cell 3: SystemExit",
    ]
    for result, message in zip(results[1:-1], messages, strict=True):
        assert result.status == "failed"
        assert re.match(message, result.error), result.error
        assert result.path == common["out"] / "notebooks" / f"{result.name}.failed.ipynb"
    names = {path.name for path in (common["out"] / "notebooks").iterdir()}
    left = {one.path.name for one in results[:-1]}
    assert names == {".good.stamp.json", "spoilt.ipynb", *left}
    assert not (common["out"] / notebooks.RUNNING_FOLDER).exists()


def test_a_finished_notebook_is_not_run_again_until_something_changes(batch, monkeypatch):
    books, common, results = batch
    out, good = common["out"], books[0]
    stamp, table = out / "notebooks" / ".good.stamp.json", out / "data" / "good.csv"
    before = results[0].path.stat().st_mtime_ns
    for change in ({}, {"jobs": 1}):  # results do not depend on the number of workers
        (result,) = run_all([good], **common, **change)
        assert (result.status, result.reused) == ("ok", True)
    assert results[0].path.stat().st_mtime_ns == before
    run = []
    pretended = notebooks.NotebookResult("good", None, "ok", 1.0)
    monkeypatch.setattr(notebooks, "run_notebook", lambda *job: run.append(job) or pretended)
    home = OutputFolder(out)
    for file, spoil in (
        (stamp, lambda text: "{"),
        (stamp, lambda text: text.replace('"sources": "', '"sources": "x')),
        (stamp, lambda text: text.replace('"runs": 3', '"runs": 4')),
        (table, lambda text: text.replace("0.25", "0.5")),  # of another run of dlsim
        (results[0].path, lambda text: text[:-20]),
    ):
        kept, name = file.read_text(), file.relative_to(out).as_posix()
        home.write(name, spoil(kept).encode())
        run_all([good], **common)
        assert len(run) == 1, file
        file.unlink()
        run_all([good], **common)
        home.write(name, kept.encode())
        assert len(run) == 2, file
        run.clear()
    run_all([good], **common, force=True)
    assert len(run) == 1


MINE = (
    "notebooks/good.ipynb",
    "notebooks/bad.failed.ipynb",
    "notebooks/.good.stamp.json",
    "data/good.csv",
    "notebooks/dies.ipynb",  # of a person, where dlsim would write
    notebooks.RUNNING_FOLDER,
)


@pytest.mark.parametrize("name", MINE)
def test_results_that_a_person_changed_are_refused_before_anything_runs(batch, monkeypatch, name):
    books, common, _ = batch
    file = common["out"] / name
    kept = file.read_bytes() if file.exists() else None
    monkeypatch.setattr(notebooks, "run_notebook", lambda *job: pytest.fail("it ran"))
    file.write_text("mine")
    said = f"{re.escape(str(file))}: not as dlsim wrote it; .*choose a new or empty folder"
    for force in (True, False):
        with pytest.raises(InputError, match=said):
            run_all(books, **common, force=force)
    assert file.read_text() == "mine"
    file.unlink()
    if kept is not None:
        file.write_bytes(kept)


def test_a_result_that_a_person_changes_meanwhile_stays_and_the_notebook_fails(batch):
    _, common, results = batch
    spoilt = results[-1]
    assert (spoilt.status, spoilt.path) == ("failed", None)
    assert re.match(r"spoilt\.ipynb failed: .*notebooks/spoilt\.ipynb: not as dlsim", spoilt.error)
    assert (common["out"] / "notebooks" / "spoilt.ipynb").read_text() == "mine"


def test_parameters_are_refused_before_anything_runs(batch, tmp_path):
    books, _, _ = batch
    for parameters, message in (
        ({"lods": [1]}, "no parameter 'lods'; it has: scale"),
        ({"runs": 1.5}, "parameter runs must be"),
        ({"reading": {"link": float("nan")}}, "parameter reading must be"),
    ):
        with pytest.raises(InputError, match=message):
            run_all(books, out=tmp_path / "out", parameters=parameters)
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"file: cannot be written to.*with --out"):
        run_all(books[:1], out=tmp_path / "file")


def test_the_scorecard_waits_for_the_others_to_end(tmp_path, monkeypatch):
    waves = []

    def pretend(wave, count, display, end):
        waves.append([job.name for job in wave])
        for job in wave:
            end(notebooks.NotebookResult(job.name, None, "ok", 1.0))

    monkeypatch.setattr(notebooks, "_run_wave", pretend)
    ended = []
    names = ["90-scorecard", "10-theory", "20-mcdf"]
    done = run_all(names, out=tmp_path, on_end=lambda result: ended.append(result.name))
    assert waves == [["20-mcdf", "10-theory"], ["90-scorecard"]]  # the longest first
    assert ended == ["20-mcdf", "10-theory", "90-scorecard"]
    assert [result.name for result in done] == names


# ---------------------------------------------------------------- limits and interrupts


def test_progress_that_is_not_what_was_agreed_is_ignored(tmp_path, capsys):
    home = OutputFolder(tmp_path)
    job = notebooks._Job(tmp_path / "a.ipynb", home, {}, 1.0, {}, None)
    job.work.mkdir(parents=True)
    display = notebooks._Display(1)
    display.show(job)
    display.show(job)  # too soon to say more
    assert capsys.readouterr().err == "a: begins\n"
    for text in ("", "{", "[]", "null", '{"label": "x"}', '{"label": 1, "done": "?", "total": 1}'):
        (job.work / "progress.json").write_text(text)
        assert notebooks._reported(job) == "running"
    (job.work / "progress.json").write_text('{"label": "x", "done": 1, "total": 2}')
    assert notebooks._reported(job) == "x, 1 of 2"


def test_nothing_is_started_after_an_interrupt(tmp_path):
    stop = threading.Event()
    stop.set()
    job = notebooks._Job(tmp_path / "a.ipynb", OutputFolder(tmp_path / "out"), {}, 1.0, {}, None)
    assert notebooks.run_notebook(job, stop).status == "interrupted"
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------ whole or not


def test_existence_is_not_success():
    done = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", execution_count=1)])
    assert first_problem(done) == ""
    done.cells[0].execution_count = None
    assert first_problem(done) == "code cell 1 did not run to its end"
    done.cells[0].source = "  \n"
    assert first_problem(done) == ""
