"""Every path that a user gives is used, or refused in words; what is refused leaves nothing."""

import os
import sys
from pathlib import Path

import pytest

from dlsim import realtime
from dlsim.cache import private_folder
from dlsim.cli import main
from dlsim.cpugpu.database import HistoryDatabase
from dlsim.errors import DlsimError, InputError
from dlsim.files import read_text, write_text
from dlsim.live.calibration import write_costs
from dlsim.live.loads import lines, records
from dlsim.output_folder import OutputFolder
from dlsim.study.results import Results
from dlsim.user_code import load_user_code
from tests.helpers.readers import READERS
from tests.helpers.small_notebooks import write_notebook

#: Paths at which there is nothing to read, and no folder to make; seen from the folder `odd`.
ODD = {
    "a name of 300 letters": "x" * 300,
    "a name of 300 letters below a new folder": "new/" + "x" * 300,
    "a path of 6,000 letters": "/".join(["y" * 200] * 30),
    "a NUL": "a\0b",
    "half of a surrogate pair": "\ud800x",
    "below a file": "file/below",
    "a link that is broken": "broken",
    "a link to itself": "loop",
    "below a link to itself": "loop/x",
    "a folder without permission": "/proc/1/x",
    "below a device": "/dev/null/x",
}
posix = pytest.mark.skipif(os.name != "posix", reason="names and links of POSIX")


@pytest.fixture
def odd(tmp_path, monkeypatch):
    """A folder with a file and links that lead nowhere, in which the test runs."""
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "file").write_text("x")
    (folder / "broken").symlink_to("gone/away")
    (folder / "loop").symlink_to("loop")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("JupyterLab was started"))
    monkeypatch.setattr("dlsim.study.notebooks._run_plan", lambda *_: pytest.fail("it ran"))
    return folder


def everything(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


#: Words of commands, in which PATH is a path, and which would run if it could be used.
COMMANDS = [
    "run own.ipynb --out PATH",
    "run PATH.ipynb",
    "run PATH/own.ipynb",
    "run PATH",
    "lab --no-browser --dir PATH",
    "reproduce theory --out PATH",
    "reproduce theory --dask PATH.json",
    "claims mcdf --results PATH",
]


@posix
def test_a_command_refuses_a_path_that_cannot_be_used(odd, tmp_path, capsys):
    write_notebook(odd / "own.ipynb", "1")
    before = everything(tmp_path)
    for words in COMMANDS:
        for path in [*ODD.values(), "file", ""]:
            line = [word.replace("PATH", path) for word in words.split()]
            answer, said = main(line), capsys.readouterr()
            assert (answer, said.out) == (2, ""), line
            assert said.err.startswith("dlsim: "), line
            assert everything(tmp_path) == before, line


@posix
def test_a_cache_that_cannot_be_used_is_refused(odd, monkeypatch, capsys):
    for what, path in {**ODD, "a file": "file"}.items():
        if what not in ("a NUL", "half of a surrogate pair"):  # no value of a variable
            monkeypatch.setenv("DLSIM_CACHE", path)
            assert main(["reproduce", "theory", "--out", "fresh"]) == 2, what
            assert "DLSIM_CACHE to a folder of your own" in capsys.readouterr().err, what
        with pytest.raises(InputError, match="cannot be used"):
            private_folder(Path(path), "cells")
    assert not (odd / "fresh").exists()


#: What takes a path from a notebook: files to read, and files and folders to write.
READ = {name: read for name, (read, _, _) in READERS.items() if not name.endswith("txt")} | {
    "text": read_text, "lines": lines, "records": lambda path: records(path, 8),
    "policy": lambda path: realtime.simulate(
        realtime.workload.mcdf(realtime.Cluster(4, 1.0, 9.0), 0.5, 100.0),
        realtime.Cluster(4, 1.0, 9.0), f"{path}.py:rule"),
    "rule": lambda path: load_user_code("rule", f"{path}.py:rule"),
    "module": lambda path: load_user_code("rule", f"{path}:rule"),
}  # fmt: skip
WRITE = {
    "database": HistoryDatabase, "text": lambda path: write_text(path, "x"),
    "costs": lambda path: write_costs(path, {}), "results": lambda path: Results(path),
    "folder": lambda path: OutputFolder(path).acquire(),
}  # fmt: skip


def is_refused(function, path):
    try:
        function(path)
    except DlsimError:
        return True
    return False


@posix
def test_what_reads_a_path_refuses_it(odd):
    before = everything(odd)
    taken = [(name, what) for name in READ for what in ODD if not is_refused(READ[name], ODD[what])]
    assert taken == []
    assert everything(odd) == before


@posix
def test_what_writes_to_a_path_refuses_it(odd):
    links = {"a link that is broken", "a link to itself"}  # the file appears there, or behind it
    for name, write in WRITE.items():
        for what in ODD.keys() - (links if name in ("text", "costs") else set()):
            assert is_refused(write, ODD[what]), (name, what)


def test_a_folder_of_a_user_that_is_not_there_is_a_name(odd, monkeypatch, capsys):
    """The shell leaves ~name as it is where there is no such user."""
    monkeypatch.setattr(os, "execve", lambda *_: sys.exit(0))
    with pytest.raises(SystemExit):
        main(["lab", "--dir", "~nobody-of-this-name/x", "--no-browser"])
    assert "notebooks in ~nobody-of-this-name/x: " in capsys.readouterr().out


@posix
def test_a_current_folder_that_was_removed_is_said(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for words in ("list", "claims mcdf", "reproduce theory", "lab", "run x.ipynb"):
        assert main(words.split()) == 2
        assert "dlsim: the current folder cannot be used" in capsys.readouterr().err, words
