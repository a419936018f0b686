"""``dlsim lab``: a copy that follows the suite and never loses what its user wrote."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.sign import NotebookNotary

from dlsim import cli, files, output_folder
from dlsim.cli import copy_notebooks, main
from dlsim.errors import InputError
from dlsim.files import shared_folder
from dlsim.output_folder import RECORD_FILE
from tests.helpers.small_notebooks import write_notebook

NOTEBOOKS = shared_folder("notebooks")
START = NOTEBOOKS / "00-start-here.ipynb"
#: The notebooks of a small suite, and the pictures that they show.
SHOWN = {
    "00-start-here.ipynb": "![x](../data/figures/a.png)",
    "20-mcdf.ipynb": '<img src="../data/figures/b.png">',
}


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A small suite of two notebooks that show pictures, beside a picture that none shows."""
    root = tmp_path / "suite"
    (root / "notebooks").mkdir(parents=True)
    (root / "data" / "figures").mkdir(parents=True)
    for name, text in SHOWN.items():
        write_notebook(root / "notebooks" / name, "1", text=text)
    for name in "abc":
        (root / "data" / "figures" / f"{name}.png").write_text(name)
    monkeypatch.setattr(cli.files, "shared_folder", lambda name: root / name)
    return root


def tree(folder):
    names = (path for path in folder.rglob("*") if path.is_file() and path.name != RECORD_FILE)
    return {path.relative_to(folder).as_posix(): path.read_text() for path in names}


def test_notebooks_and_the_pictures_they_link_to_are_copied(suite, tmp_path):
    copy = tmp_path / "copy"
    pictures = {f"data/figures/{name}.png" for name in "ab"}
    notebooks = {"notebooks/00-start-here.ipynb", "notebooks/20-mcdf.ipynb"}
    assert set(copy_notebooks(copy)["copied"]) == notebooks | pictures == set(tree(copy))
    before = {p: p.stat().st_mtime_ns for p in copy.rglob("*")}
    assert copy_notebooks(copy) == {"copied": [], "updated": [], "kept": []}
    assert {p: p.stat().st_mtime_ns for p in copy.rglob("*")} == before


def test_every_picture_of_the_real_notebooks_is_reachable(tmp_path):
    copy_notebooks(tmp_path)
    for path in (tmp_path / "notebooks").glob("*.ipynb"):
        for link in re.findall(r"\.\./data/[\w./-]+\.png", path.read_text("utf-8")):
            assert (path.parent / link).is_file(), (path.name, link)


def test_what_the_user_changed_stays_and_the_rest_follows(suite, tmp_path):
    copy = tmp_path / "copy"
    copy_notebooks(copy)
    mine, theirs = (copy / "notebooks" / f"{n}.ipynb" for n in ("00-start-here", "20-mcdf"))
    mine.write_text("mine")
    (copy / "notebooks" / "own.ipynb").write_text("own")
    (copy / "data" / "figures" / "a.png").unlink()
    for path in (suite / "notebooks").iterdir():
        path.write_text(path.read_text() + " newer")
    done = copy_notebooks(copy)
    assert done == {
        "copied": ["data/figures/a.png"],
        "updated": ["notebooks/20-mcdf.ipynb"],
        "kept": ["notebooks/00-start-here.ipynb"],
    }
    assert mine.read_text() == "mine"
    assert theirs.read_text().endswith(" newer")
    assert (copy / "notebooks" / "own.ipynb").read_text() == "own"
    assert copy_notebooks(copy)["kept"] == ["notebooks/00-start-here.ipynb"]  # and again
    mine.unlink()
    assert copy_notebooks(copy)["copied"] == ["notebooks/00-start-here.ipynb"]


def test_without_a_record_nothing_is_overwritten(suite, tmp_path):
    copy = tmp_path / "copy"
    copy_notebooks(copy)
    (copy / "notebooks" / "20-mcdf.ipynb").write_text("mine")
    before = tree(copy)
    for record, said in [
        (None, "not empty, and this dlsim did not make it"),
        *((text, "damaged") for text in ("", "{", "[]", '{"notebooks/20-mcdf.ipynb": 3}')),
        ('{"dlsim": "lab", "format": 2}', "another version"),
        ('{"dlsim": "results", "format": 1}', "holds results of dlsim reproduce"),
    ]:
        (copy / RECORD_FILE).unlink(missing_ok=True)
        if record is not None:
            (copy / RECORD_FILE).write_text(record)
        with pytest.raises(InputError, match=rf"{said}.*choose another folder with --dir"):
            copy_notebooks(copy)
        assert tree(copy) == before


def test_a_copy_that_stopped_half_way_goes_on(suite, tmp_path, monkeypatch):
    copy, written, real = tmp_path / "copy", [], output_folder.write_bytes

    def full(path, data, **more):
        if len(written) == 3:  # the record, and two files
            raise InputError("disk full")
        written.append(path)
        real(path, data, **more)

    monkeypatch.setattr(output_folder, "write_bytes", full)
    with pytest.raises(InputError):
        copy_notebooks(copy)
    monkeypatch.setattr(output_folder, "write_bytes", real)
    done = copy_notebooks(copy)
    assert (len(done["copied"]), done["kept"]) == (2, [])
    (suite / "notebooks" / "00-start-here.ipynb").write_text("newer")
    assert copy_notebooks(copy)["updated"] == ["notebooks/00-start-here.ipynb"]


def test_links_and_folders_of_the_user_are_left_alone(suite, tmp_path):
    copy, elsewhere = tmp_path / "copy", tmp_path / "elsewhere.ipynb"
    copy_notebooks(copy)
    target = copy / "notebooks" / "20-mcdf.ipynb"
    elsewhere.write_bytes(target.read_bytes())
    target.unlink()
    target.symlink_to(elsewhere)
    (copy / "data" / "figures" / "a.png").unlink()
    (copy / "data" / "figures" / "a.png").mkdir()
    (suite / "notebooks" / "20-mcdf.ipynb").write_text("newer")
    assert copy_notebooks(copy)["kept"] == ["notebooks/20-mcdf.ipynb", "data/figures/a.png"]
    assert elsewhere.read_text() != "newer"


def test_jupyter_trusts_what_is_copied_and_nothing_else(suite, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(os, "execve", lambda *_: None)
    monkeypatch.setattr(subprocess, "call", lambda *_, **__: 0)
    assert main(["lab", "--dir", str(tmp_path / "copy")]) == 0
    mine = write_notebook(tmp_path / "copy" / "notebooks" / "mine.ipynb", "1")
    kept = write_notebook(tmp_path / "copy" / "notebooks" / "20-mcdf.ipynb", "2")
    assert main(["lab", "--dir", str(tmp_path / "copy")]) == 0  # both are kept as they are
    notary = NotebookNotary()
    trusted = {
        path.name: notary.check_signature(nbformat.read(path, as_version=4))
        for path in mine.parent.glob("*.ipynb")
    }
    assert trusted == {"00-start-here.ipynb": True, mine.name: False, kept.name: False}
    (tmp_path / "unwritable").touch()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "unwritable"))
    assert main(["lab", "--dir", str(tmp_path / "another")]) == 0


def test_what_cannot_be_is_refused_in_words(suite, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("started"))
    (tmp_path / "file").touch()
    copy = str(tmp_path / "copy")
    for words, said in [
        ([str(tmp_path / "file")], "cannot be written to"),
        ([str(suite)], "choose another --dir"),
        ([copy, "--port", "70000"], "--port must be from 1 to 65535"),
        ([copy], "pip install jupyterlab"),
    ]:
        if words == [copy]:
            monkeypatch.setattr(cli.importlib.util, "find_spec", lambda name: None)
        assert main(["lab", "--dir", *words]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


def test_further_words_go_to_jupyter_lab(suite, tmp_path, monkeypatch, capsys):
    seen = []

    def become(path, words, env):
        assert env["JUPYTER_CONFIG_PATH"] == os.pathsep.join([str(suite / "data" / "lab"), "mine"])
        kernels = Path(env["JUPYTER_PATH"].split(os.pathsep)[0]) / "kernels"
        kernel = json.loads((kernels / "python3" / "kernel.json").read_text())
        assert kernel["argv"][0] == sys.executable
        assert env[files.RESULTS_VARIABLE] == str(tmp_path / "c" / "results")
        seen.append(words)
        raise SystemExit(0)

    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "mine")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(os, "execve", become)
    monkeypatch.setattr(subprocess, "call", lambda words, env: become("", words, env))
    for words in (["--no-browser", "--port", "8901", "--ip=0.0.0.0"], ["--", "--debug"]):
        with pytest.raises(SystemExit):
            main(["lab", "--dir", str(tmp_path / "c"), *words])
    assert seen[0][:4] == [sys.executable, "-P", "-m", "jupyterlab"]
    assert seen[0][4:] == [
        f"--ServerApp.root_dir={tmp_path / 'c'}",
        "--LabApp.default_url=/lab/tree/notebooks/00-start-here.ipynb",
        "--no-browser",
        "--ServerApp.port=8901",
        "--ip=0.0.0.0",
    ]
    assert seen[1][-1] == "--debug"
    with pytest.raises(SystemExit) as stop:
        main(["list", "--ip=0.0.0.0"])
    assert stop.value.code == 2
    assert "unrecognized arguments: --ip=0.0.0.0" in capsys.readouterr().err


def test_the_first_notebook_leads_to_all_others():
    linked = set(re.findall(r"\((\d\d-[a-z-]+\.ipynb)\)", START.read_text("utf-8")))
    assert {path.name for path in NOTEBOOKS.glob("*.ipynb")} <= linked | {START.name}
