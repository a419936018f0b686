"""Every process of a command imports the dlsim that the command itself imported.

Another dlsim is installed for the same Python; that of the command is a copy in some folder.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.scale import TRIES_ALL
from tests.helpers.small_notebooks import write_notebook

ROOT = Path(__file__).parents[1]
CODE = "import sys; from dlsim.cli import main; sys.exit(main(sys.argv[1:]))"
#: A notebook that says where its dlsim is, where that of its sweep's workers is, that neither its
#: own folder nor that of the package shadows a module of Python, and what it finds in its folder.
SAY = """
import helper, random, time
import dlsim, pandas as pd
from dlsim.study import save, start, sweep, sweeps

def place(k, seed):
    import importlib.util, random, sys
    time.sleep(0.1)
    engine = importlib.util.find_spec("dlsim.realtime")  # what would be imported
    package = sys.modules["dlsim"]
    return {"place": package.__file__, "engine": engine.origin, "random": random.__file__}

sweeps.SECONDS_BEFORE_WORKERS = 0.0
table = sweep(place, {"k": [0, 1, 2]}, 1, jobs=2)
engines = {file.rpartition("/realtime")[0] for file in table["engine"]}
found = {dlsim.__file__, *table["place"], *engines}
print("found", sorted(found), {random.__file__, *table["random"]})
print(open("numbers.csv").read(), helper.answer, runs)
start("mcdf", out, scale, seed, runs, jobs, reading)
save("mcdf-mine", pd.DataFrame({"a": [1]}))
"""
TEXT = "# Mine\n\n![p](p.png) ![s](../secret.png)"


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A checkout of the same sources in another folder, beside a file named like a module."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "dlsim", folder / "dlsim")  # with what Python has compiled of it
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name in ("data", "notebooks"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def run(words, folder, **environment):
    """Run a command of this Python in a folder, without the search paths of this process."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=kept | environment, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip


#: How a command may come by its dlsim: its words, and the search path of its Python.
WAYS = [(["-P", "-c", CODE], "."), (["-P", "-c", CODE], "FOLDER"), (["-m", "dlsim"], "")]


@pytest.fixture(scope="module", params=WAYS if TRIES_ALL else WAYS[:1])
def ran(request, clone, tmp_path_factory):
    """The run of a notebook of the user in the clone: its results, and what the command said."""
    folder = tmp_path_factory.mktemp("user")
    mine = folder / "mine"
    mine.mkdir()
    (mine / "numbers.csv").write_text("a\n1\n")
    (mine / "helper.py").write_text("answer = 42")
    (mine / "random.py").write_text("raise SystemExit")
    for picture in (mine / "p.png", folder / "secret.png"):
        shutil.copy(ROOT / "data" / "figures" / "mcdf-fig5.png", picture)
    source = write_notebook(mine / "own.ipynb", SAY, text=TEXT)
    words, path = request.param[0], request.param[1].replace("FOLDER", str(clone))
    words = [*words, "run", str(source), "-p", "runs", "7"]
    done = run(words, clone, PYTHONPATH=path, DLSIM_CACHE=str(folder / "cache"))
    assert done.returncode == 0, done.stderr
    return clone / "results" / "own", done.stdout


def test_a_notebook_and_its_workers_run_the_clone(clone, ran):
    said = (ran[0] / "notebooks" / "own.ipynb").read_text()
    (found,) = re.findall(r"found \[.*\}", said)
    assert set(re.findall(r"'([^']+dlsim[^']*)'", found)) == {
        str(clone / "dlsim" / "__init__.py"),
        str(clone / "dlsim"),
    }
    assert found.count("random.py") == 1


def test_the_page_of_a_notebook_shows_what_lies_in_its_folder_and_nothing_else(ran):
    out, said = ran
    assert said == f"open {out / 'own.html'}\n"
    page = (out / "own.html").read_text()
    assert re.search(r"a\s+1\s+42 7", page)
    assert page.count("data:image/png;base64,") == 1
    # no table in LaTeX unless it is asked for
    assert {path.name for path in (out / "data").iterdir()} == {"mcdf-mine.csv"}


@pytest.mark.parametrize(("words", "path"), [(["-P"], "."), (["-P"], "FOLDER"), ([], "")])
def test_every_process_begins_with_the_folder_of_the_command(clone, words, path):
    code = "from dlsim.processes import code_to_import_dlsim as code; print(code())"
    done = run([*words, "-c", code], clone, PYTHONPATH=path.replace("FOLDER", str(clone)))
    assert f"root = {str(clone)!r}" in done.stdout.splitlines(), done.stderr


def test_a_kernel_of_lab_runs_the_clone(clone, tmp_path):
    pytest.importorskip("jupyter_client")
    code = "import dlsim.study.notebook_process as p; print(p.kernel_of_this_python().decode())"
    done = run(["-P", "-c", code], clone, PYTHONPATH=".")
    spec = json.loads(done.stdout)
    prefix = next(word for word in spec["argv"] if word.startswith("--IPKernelApp.exec_lines="))
    line = prefix.partition("=")[2]
    say = "import dlsim; print(dlsim.__file__)"
    for folder in (tmp_path, clone):
        done = run(["-P", "-c", f"{line}\n{say}"], folder, PYTHONPATH=".")
        assert done.stdout.strip() == str(clone / "dlsim" / "__init__.py"), done.stderr


def test_the_folder_of_the_package_comes_before_no_other_place(monkeypatch):
    """Only another dlsim is put behind it; where there is none, every path stays as it is."""
    from dlsim.processes import code_to_import_dlsim

    before = list(sys.path)
    monkeypatch.setattr(sys, "path", before.copy())
    exec(code_to_import_dlsim(), {})
    added = [place for place in sys.path if place not in before]
    assert [place for place in sys.path if place not in added] == before
    assert len(sys.path) == len(before)
