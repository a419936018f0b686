"""Notebooks: refused parameters, hidden failures, kills and interrupts, nothing done twice."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.errors import InputError, StudyError
from dlsim.owned import RECORD, Owned
from dlsim.study import execution
from dlsim.study.notebooks import (
    _Display,
    _earlier,
    _plan,
    check_parameters,
    find_notebook,
    first_problem,
    parameters_of,
    run_all,
    run_notebook,
)
from dlsim.study.report import write_report
from tests.children import marked, none_left, spawn, until
from tests.scale import deep

pytestmark = pytest.mark.usefixtures("one_warm_process")

PARAMETERS = """scale: str = "quick"  # quick or paper
seed: int = 0
runs: int = 0  # 0 = what the scale says
jobs: int = 0
out: str = ""
reading: dict = {}  # switches
width: float = 1.5
wide: bool = False
loads: list[float] = [0.5, 1.0]
names: dict[str, int] = {"a": 1}
bare = 3
"""
WIDGET = """import ipywidgets as widgets
def redraw(x):
    raise ValueError("inside")
slider = widgets.IntSlider()
display(slider, widgets.interactive_output(redraw, {"x": slider}))"""
RESULT = """import os, pathlib
folder = pathlib.Path(out) / "data"
folder.mkdir(exist_ok=True)
(folder / "good.csv").write_text(f"{runs},{loads},{reading},{os.environ['DLSIM_JOBS']}")
print(os.getcwd())"""
# tells how far it is, then waits until it may go on
SLOW = """import json, os, pathlib, time
progress = pathlib.Path(os.environ["DLSIM_PROGRESS"])
here = pathlib.Path(out)
progress.write_text(json.dumps({"label": "halfway", "done": 1, "total": 2}))
(here / f"pid-{os.getpid()}").touch()
while not (here / "go").exists():
    time.sleep(0.05)"""


def write(path, *cells, parameters=PARAMETERS):
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(text) for text in (parameters, *cells)]
    book.cells[0].metadata["tags"] = ["parameters"]
    book.metadata["kernelspec"] = {"name": "gone", "display_name": "Gone", "language": "python"}
    nbformat.write(book, path)
    return path


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return write(tmp_path_factory.mktemp("books") / "good.ipynb", RESULT)


# ----------------------------------------------------------------- parameters


def test_parameters_are_listed_with_types_defaults_and_help(book):
    known = parameters_of(book)
    assert list(known) == [line.split(":")[0].split(" ")[0] for line in PARAMETERS.splitlines()]
    assert tuple(known["scale"]) == ("scale", "str", "quick", "quick or paper")
    assert known["loads"].kind == "list[float]"
    assert known["loads"].default == [0.5, 1.0]
    assert known["bare"].kind == "int"


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ({"runs": 3}, 3),
        ({"runs": "3"}, 3),
        ({"scale": "3"}, "3"),  # a text stays one
        ({"scale": "'); import os"}, "'); import os"),
        ({"width": 2}, 2.0),
        ({"width": "1e-3"}, 0.001),
        ({"wide": True}, True),
        ({"wide": "yes"}, True),
        ({"wide": "False"}, False),
        ({"loads": "[0.25, 1]"}, [0.25, 1.0]),
        ({"loads": (0.25,)}, [0.25]),
        ({"reading": "link=shared,late=drop"}, {"link": "shared", "late": "drop"}),
        ({"reading": '{"link": "shared"}'}, {"link": "shared"}),
        ({"reading": {"a": [1, None, True, {"b": 0.5}]}}, {"a": [1, None, True, {"b": 0.5}]}),
        ({"names": "b=2"}, {"b": 2}),
    ],
)
def test_good_parameters(book, given, value):
    (checked,) = check_parameters(book, given).values()
    assert checked == value
    assert type(checked) is type(value)


@pytest.mark.parametrize(
    "given",
    [
        {"runs": 1.5}, {"runs": "1.5"}, {"runs": True}, {"runs": None}, {"runs": "three"},
        {"runs": float("nan")}, {"runs": "__import__('os')"},
        {"width": float("inf")}, {"width": "nan"}, {"width": "1e999"}, {"width": "Infinity"},
        {"width": False}, {"width": 10**400},
        {"wide": 1}, {"wide": "1"}, {"scale": 3}, {"scale": None},
        {"loads": 0.5}, {"loads": "0.5"}, {"loads": [0.5, "x"]}, {"loads": [float("nan")]},
        {"loads": {"a": 1}}, {"reading": [1]}, {"reading": {1: 2}}, {"reading": {"a": object()}},
        {"reading": {"a": float("inf")}}, {"reading": "link"}, {"names": {"a": "x"}},
        {"names": "a=x"}, {"bare": "x y"},
    ],
)  # fmt: skip
def test_ill_typed_parameters_are_refused_by_name(book, given):
    ((name, _),) = given.items()
    with pytest.raises(InputError, match=rf"good\.ipynb: parameter {name} must be a finite"):
        check_parameters(book, given)


def test_unknown_parameters_are_refused_naming_the_known(book):
    with pytest.raises(InputError, match="no parameter 'run'; it has: scale, seed, runs"):
        check_parameters(book, {"run": 3})


def test_a_notebook_without_parameters_takes_none(tmp_path):
    plain = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")])
    nbformat.write(plain, tmp_path / "plain.ipynb")
    assert parameters_of(tmp_path / "plain.ipynb") == {}
    with pytest.raises(InputError, match="it has: none"):
        check_parameters(tmp_path / "plain.ipynb", {"runs": 1})


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"cells": 3}', "\0", '{"nbformat": 4}'])
def test_what_is_no_notebook_is_refused(tmp_path, text):
    path = tmp_path / "broken {x}.ipynb"
    path.write_text(text)
    with pytest.raises(InputError, match="not a notebook that can be run"):
        parameters_of(path)
    assert "unreadable" in first_problem(path)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_mutated_notebooks_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "mutated.ipynb"
    source = write(path, "1").read_bytes()
    at = data.draw(st.integers(0, len(source) - 1))
    cut = data.draw(st.integers(0, 40))
    path.write_bytes(source[:at] + data.draw(st.binary(max_size=4)) + source[at + cut :])
    try:
        known = parameters_of(path)
    except InputError:
        return
    assert isinstance(known, dict)


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
    """A good notebook, and three that fail in their own ways, run once."""
    folder = tmp_path_factory.mktemp("batch {with} braces")
    books = [
        write(folder / "good.ipynb", RESULT),
        write(folder / "bad.ipynb", "1 / 0", "print('never')"),
        write(folder / "widget.ipynb", WIDGET, "1 + 1"),
        write(folder / "dies.ipynb", "import os; os._exit(1)", "2"),
    ]
    out = folder / "out"
    extra = {"loads": "[0.25]", "reading": {"link": "shared"}}
    common = {"out": out, "runs": 3, "extra": extra}
    return books, common, run_all(books, jobs=2, **common)


def test_a_good_notebook_appears_under_its_name(batch):
    _, common, results = batch
    good = results[0]
    assert (good.name, good.status, good.error, good.reused) == ("good", "ok", "", False)
    assert good.path == common["out"] / "notebooks" / "good.ipynb"
    assert first_problem(good.path) is None
    # one worker: several notebooks ran at once
    said = (common["out"] / "data" / "good.csv").read_text()
    assert said == "3,[0.25],{'link': 'shared'},1"
    assert str(good.path.parent) in good.path.read_text()  # the kernel's folder


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (1, r"bad\.ipynb failed: code cell 3: ZeroDivisionError"),
        (2, r"widget\.ipynb failed: inside a widget: ValueError"),
        (3, r"dies\.ipynb failed: code cell 3, after \d+ s: DeadKernelError"),
    ],
)
def test_a_failed_notebook_is_kept_under_a_name_that_says_so(batch, place, message):
    _, common, results = batch
    result = results[place]
    assert result.status == "failed"
    assert re.match(message, result.error)
    assert result.path.name == f"{result.name}.failed.ipynb"
    assert result.path.exists()
    assert not (common["out"] / "notebooks" / f"{result.name}.ipynb").exists()


def test_nothing_half_done_is_left(batch):
    _, common, _ = batch
    names = {path.name for path in (common["out"] / "notebooks").iterdir()}
    failed = {f"{name}.failed.ipynb" for name in ("bad", "widget", "dies")}
    assert names == {"good.ipynb", ".good.stamp.json"} | failed


def test_a_finished_notebook_is_not_run_again_until_something_changes(batch):
    books, common, results = batch
    out, good = common["out"], books[0]
    stamp = out / "notebooks" / ".good.stamp.json"

    def reused(**change):
        (result,) = run_all([good], **(common | change))
        assert result.status == "ok"
        return result.reused

    before = results[0].path.stat().st_mtime_ns
    assert reused()
    assert reused(jobs=1)  # results do not depend on it
    extra = dict(common["extra"])
    assert reused(readings={"good": extra.pop("reading"), "bad": {}}, extra=extra)
    assert results[0].path.stat().st_mtime_ns == before
    (out / "data" / "good.csv").unlink()
    assert not reused()  # a result of it is gone
    # a single notebook's sweeps get all the workers
    assert (out / "data" / "good.csv").read_text().endswith(",2") or os.cpu_count() == 1
    for spoil in (
        lambda: stamp.write_text("{"),
        lambda: stamp.write_text(stamp.read_text().replace('"sources": "', '"sources": "x')),
        lambda: results[0].path.write_text(results[0].path.read_text()[:-20]),
    ):
        kept = stamp.read_text(), results[0].path.read_text()
        spoil()
        values = {"scale": "quick", "seed": 0, "runs": 3, **common["extra"]}
        plan = _plan(good, out, values)
        assert _earlier(plan) is None
        stamp.write_text(kept[0])
        results[0].path.write_text(kept[1])
        assert _earlier(plan) is not None


def test_parameters_are_refused_before_anything_runs(batch, tmp_path):
    books, common, _ = batch
    for change, message in (
        ({"extra": {"lods": [1]}}, "no notebook has a parameter 'lods'; they have: bare"),
        ({"runs": 1.5}, "parameter runs must be"),
        ({"extra": {"reading": {"link": float("nan")}}}, "parameter reading must be"),
    ):
        with pytest.raises(InputError, match=message):
            run_all(books, **(common | {"out": tmp_path / "out"} | change))
    assert not (tmp_path / "out").exists()


# --------------------------------------------------------------- one notebook


def test_one_notebook_failing_and_then_not(tmp_path, monkeypatch):
    source, target = tmp_path / "one.ipynb", tmp_path / "out" / "one.ipynb"
    write(source, "import os; assert os.environ['DLSIM_PROGRESS'] == '/p'; assert runs == 2")
    monkeypatch.setenv("DLSIM_PROGRESS", "/p")
    with pytest.raises(StudyError, match=r"one\.ipynb failed: code cell 3: AssertionError"):
        run_notebook(source, target, {"runs": 1})
    assert {path.name for path in target.parent.iterdir()} == {RECORD, "one.failed.ipynb"}
    assert run_notebook(source, target, {"runs": 2}) == target
    assert {path.name for path in target.parent.iterdir()} == {RECORD, "one.ipynb"}


def test_a_start_that_fails_is_tried_again(tmp_path, monkeypatch):
    import papermill

    calls = []

    def fail_twice(source, target, values, **options):
        calls.append(options["kernel_name"])
        if len(calls) < 3:
            raise RuntimeError("Kernel died before replying to kernel_info")
        done = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", execution_count=1)])
        nbformat.write(done, target)

    monkeypatch.setattr(papermill, "execute_notebook", fail_twice)
    monkeypatch.setattr(execution.time, "sleep", lambda seconds: None)
    source = write(tmp_path / "late.ipynb", "1")
    assert run_notebook(source, tmp_path / "out" / "late.ipynb").exists()
    assert calls == ["python3"] * 3


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    source = write(tmp_path / "one.ipynb", "1")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="choose another folder"):
        run_notebook(source, tmp_path / "file" / "one.ipynb")
    with pytest.raises(InputError, match=r"file: cannot be written to.*with --out"):
        run_all([source], out=tmp_path / "file")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cell: None, None),
        (lambda cell: cell.update(execution_count=None), "code cell 1 did not run to its end"),
        (lambda cell: cell.update(source="  \n", execution_count=None), None),
    ],
)
def test_existence_is_not_success(tmp_path, change, message):
    done = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", execution_count=1)])
    change(done.cells[0])
    nbformat.write(done, tmp_path / "done.ipynb")
    assert first_problem(tmp_path / "done.ipynb") == message


# ------------------------------------------------------------ kill, interrupt


def start(source, out):
    """Run the slow notebook in another process."""
    code = (
        "import sys; from dlsim.study.notebooks import run_all\n"
        "for r in run_all(sys.argv[1:2], out=sys.argv[2]): print(r.name, r.status)"
    )
    with open(f"{out}.said", "w") as said, open(f"{out}.told", "w") as told:
        return spawn(
            [sys.executable, "-c", code, str(source), str(out)], stdout=said, stderr=told,
            env=marked(str(out)),
        )  # fmt: skip


@deep
def test_stopped_half_way_is_not_taken_for_done(tmp_path):
    outs = {kind: tmp_path / kind.name for kind in (signal.SIGKILL, signal.SIGINT)}
    parents = {}
    for kind, out in outs.items():
        out.mkdir()
        parents[kind] = start(write(tmp_path / f"{kind.name}.ipynb", SLOW), out)
    for kind, parent in parents.items():
        told, out = tmp_path / f"{kind.name}.told", outs[kind]
        assert until(lambda told=told: ": halfway" in told.read_text(), parent), told.read_text()
        assert until(lambda out=out: list(out.glob("pid-*")), parent), told.read_text()
        parent.send_signal(kind)
        parent.wait(60)
        assert none_left(str(outs[kind])) == []
    left = {kind: {p.name for p in (out / "notebooks").iterdir()} for kind, out in outs.items()}
    assert (tmp_path / "SIGINT.said").read_text().split() == ["SIGINT", "interrupted"]
    assert left == {signal.SIGKILL: set(), signal.SIGINT: set()}
    out = outs[signal.SIGKILL]
    (out / "go").touch()
    (result,) = run_all([tmp_path / "SIGKILL.ipynb"], out=out)
    assert (result.status, result.reused) == ("ok", False)
    names = {path.name for path in (out / "notebooks").iterdir()}
    assert names == {"SIGKILL.ipynb", ".SIGKILL.stamp.json"}


def test_progress_that_is_not_what_was_agreed_is_ignored(tmp_path, capsys):
    job = _plan(write(tmp_path / "a.ipynb", "1"), tmp_path, {})
    job.folder = tmp_path
    display = _Display(["a"])
    for text in (
        "",
        "{",
        "[]",
        "null",
        '{"label": "x"}',
        '{"label": "x", "done": "?", "total": 1}',
    ):
        (tmp_path / "progress.json").write_text(text)
        display.poll(job)
    assert capsys.readouterr().err == ""
    (tmp_path / "progress.json").write_text(json.dumps({"label": "x", "done": 1, "total": 2}))
    display.poll(job)
    display.poll(job)
    assert capsys.readouterr().err == "a: x\n"


def test_a_module_says_that_a_notebook_is_code():
    for module in ("notebooks", "execution"):
        text = (Path(execution.__file__).parent / f"{module}.py").read_text()
        assert "arbitrary code" in text


def test_what_stands_in_the_way_of_a_batch_is_said_or_kept(tmp_path, monkeypatch, capsys):
    source = write(tmp_path / "big.ipynb", "print('x' * 34_000_000)")
    out, mine = tmp_path / "out", tmp_path / "mine"
    (out / "data").mkdir(parents=True)
    mine.mkdir()
    (mine / "a").touch()
    Owned(mine.parent / "new").claim()  # so that the folder is dlsim's from the beginning
    os.replace(mine.parent / "new" / RECORD, out / RECORD)
    (out / "data" / "mine.csv").symlink_to(tmp_path / "nowhere")
    (out / ".dlsim-running").symlink_to(mine)
    monkeypatch.setattr("sys.stderr", None)  # as where it is closed
    (done,) = run_all([source], out=out)
    assert done.status == "ok", done.error
    assert done.path.stat().st_size > 34_000_000
    assert (out / "changed" / ".dlsim-running").readlink() == mine
    assert (mine / "a").exists()
    assert (out / "data" / "mine.csv").is_symlink()
    (again,) = run_all([source], out=out)
    assert again.reused


def test_pictures_of_another_format_lie_beside_those_of_the_page(tmp_path):
    """The page shows the PNG and names the other; what was run for one serves the PNG alone."""
    draw = (
        "from matplotlib.figure import Figure\n"
        "from dlsim.study import style\n"
        "from dlsim.study.report import Results\n"
        "style.use()\n"
        "figure = Figure()\n"
        "figure.subplots().plot([1, 2])\n"
        "Results(out, 'theory').figure('mcdf-fig2', figure)"
    )
    book, out = write(tmp_path / "10-theory.ipynb", draw), tmp_path / "out"
    with pytest.raises(InputError, match="figures must be one of svg, pdf, png; got 'gif'"):
        run_all([book], out=out, figures="gif")
    for kind, begin, reused in (("svg", b"<?xml", False), ("pdf", b"%PDF", False)):
        results = run_all([book], out=out, figures=kind)
        assert [(one.status, one.reused) for one in results] == [("ok", reused)]
        data = (out / "figures" / f"mcdf-fig2.{kind}").read_bytes()
        assert data.startswith(begin)
        assert not re.search(rb"20\d\d-?\d\d-?\d\d", data)
        assert run_all([book], out=out, figures=kind)[0].reused
    assert run_all([book], out=out)[0].reused
    page = write_report(out, results, {}).read_text()
    assert 'src="figures/mcdf-fig2.png' in page
    assert all(f'href="figures/mcdf-fig2.{kind}"' in page for kind in ("svg", "pdf"))
