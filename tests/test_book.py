"""The book of a run, and the executed edition: whole, read from a folder, refused without a run."""

import base64
import functools
import io
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from dlsim.cli import main
from dlsim.errors import InputError
from dlsim.owned import Owned
from dlsim.study.edition import write_edition
from dlsim.study.report import Results, write_report
from tests.scale import deep
from tests.test_report import drawing, ran, verdicts, write_notebook

pytest.importorskip("sphinx", reason="needs the extra 'docs'")
for name in ("furo", "myst_nb", "numpydoc"):
    pytest.importorskip(name, reason="needs the extra 'docs'")

PAGES = {"index", "how-to", "gallery", "claims", "readings", "commands", "api", "search"}


#: The book with one panel of two stops: to draw all takes a minute.
SOME = """import sys
from dlsim.cli import main
from dlsim.explore.pages import TOURS
TOURS["timing"] = {"st": (40.0, 0.0)}
sys.exit(main(["book", "--from", *sys.argv[1:]]))"""
#: A table as pandas styles it, its name drawn at random.
TABLE = (
    '<style>#T_8abf0_row0_col0 {color: #d55e00}</style><table id="T_8abf0">'
    '<td id="T_8abf0_row0_col0" class="data row0 col0" >1</td>'
    '<td id="T_8abf0_row0_col1" class="data row0 col1" >2</td></table>'
)


def made(run, out):
    words = [sys.executable, "-c", SOME, str(run), "--out", str(out)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def write_panel(folder):
    """An executed notebook that opens a panel."""
    panel = new_code_cell("from dlsim import explore\nexplore.timing()")
    cells = [new_markdown_cell("# Explore"), panel]
    nbformat.write(new_notebook(cells=cells), folder / "70-explore.ipynb")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book") / "latest"
    results = Results(folder)
    picture = results.figure("mcdf-fig4", drawing()[1])
    results.verdicts("mcdf", verdicts())
    path = folder / "notebooks" / "20-mcdf.ipynb"
    write_notebook(path, picture)
    ended = nbformat.read(path, 4)
    ended.metadata = {"papermill": {"parameters": {"out": str(folder)}, "duration": 3.25}}
    told = {"text/html": TABLE, "text/plain": "<Styler at 0x7fa440682210>"}
    source = f'scale = "quick"\njobs = 7\nout = "{folder}"'
    tags = {"tags": ["injected-parameters"], "execution": {"iopub.status.busy": "03:01:58"}}
    ended.cells.insert(1, new_code_cell(source, metadata=tags))
    ended.cells[2].outputs.append(new_output("execute_result", told))
    nbformat.write(ended, path)
    write_panel(path.parent)
    write_report(folder, [ran(folder)], {"scale": "quick", "seconds": 3.5})
    return folder


@pytest.fixture(scope="module")
def edition(run):
    folder = run.parent / "edition"
    assert main(["book", "--edition", "--from", str(run), "--out", str(folder)]) == 0
    return folder


def pictures(path):
    """Every picture of a notebook with what is said about it."""
    found = [one for cell in nbformat.read(path, 4).cells for one in cell.get("outputs", [])]
    found = [one for one in found if "image/png" in one.get("data", {})]
    return [(Image.open(io.BytesIO(base64.b64decode(one.data["image/png"]))), one.metadata)
            for one in found]  # fmt: skip


def test_the_edition_says_what_was_run_and_nothing_of_the_machine(run, edition):
    notebook, source = (one / "notebooks" / "20-mcdf.ipynb" for one in (edition, run))
    nbformat.validate(nbformat.read(notebook, 4))
    text = notebook.read_text("utf-8")
    assert str(run.parent) not in text
    for less in ("papermill", "iopub", "3.25", "0x7f", "jobs = 7", "8abf0", "col1"):
        assert less not in text
    for more in ("jobs = 0", "results/latest", "#T_2_row0_col0", "](../../figures/mcdf-fig5.png)"):
        assert more in text
    (few, said), (whole, _) = pictures(notebook)[0], pictures(source)[0]
    assert said["figure"] == "mcdf-fig4"
    assert few.mode == "P"
    assert few.size == (said["image/png"]["width"], round(90 * whole.height / whole.width))
    shrunk = np.asarray(whole.convert("RGB").resize(few.size, Image.Resampling.BOX), float)
    assert np.abs(np.asarray(few.convert("RGB")) - shrunk).max() <= 24
    record = (edition / "run.json").read_text("utf-8")
    assert '"scale": "quick"' in record
    assert "seconds" not in record
    assert (edition / "data" / "mcdf-claims.csv").is_file()


def test_equal_results_are_an_equal_edition(run, edition, tmp_path):
    again = tmp_path / "elsewhere"
    shutil.copytree(run, again)
    for path in (again / "notebooks").glob("*.ipynb"):
        text = path.read_text("utf-8").replace(str(run), str(again)).replace("8abf0", "41cc7")
        path.write_text(text.replace("03:01", "04:17").replace("jobs = 7", "jobs = 3"))
    write_edition(again, Owned(tmp_path / "edition", "edition"))
    for path in sorted(path for path in edition.rglob("*") if path.is_file()):
        twin = tmp_path / "edition" / path.relative_to(edition)
        assert path.read_bytes() == twin.read_bytes(), path.name


def test_an_edition_that_names_a_place_is_refused(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    path = tmp_path / "run" / "notebooks" / "70-explore.ipynb"
    path.write_text(path.read_text().replace("# Explore", f"# See {Path.home()}/mine"))
    with pytest.raises(InputError, match=r"tells of this machine: .*/mine; let the notebook not"):
        write_edition(tmp_path / "run", Owned(tmp_path / "edition", "edition"))
    assert not (tmp_path / "edition").exists()


@pytest.fixture(scope="module")
def book(run, edition):
    done = made(edition, run.parent / "book")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"open {run.parent / 'book' / 'index.html'}"
    return run.parent / "book"


LINK = re.compile(r"<(\w+)[^>]*? (?:src|href)=\"([^\"]+)\"")


@functools.cache
def names_in(page):
    """What a link may lead to in a page."""
    return {unescape(name) for name in re.findall(r' id="([^"]+)"', page.read_text("utf-8"))}


def test_the_book_is_whole_and_asks_nobody(book):
    pages = {path.relative_to(book).as_posix(): path for path in book.rglob("*.html")}
    assert {f"{name}.html" for name in PAGES} <= set(pages)
    assert "notebooks/20-mcdf.html" in pages
    dead = []
    for name, path in pages.items():
        for tag, place in LINK.findall(path.read_text("utf-8")):
            if re.match(r"https?:", place):
                assert tag == "a", (name, place)  # nothing is fetched unless it is asked for
            elif not place.startswith(("data:", "mailto:")):
                way, _, part = unquote(unescape(place)).partition("#")
                there = path.parent / way.partition("?")[0] if way else path
                if not there.exists() or (part and part not in names_in(there)):
                    dead.append((name, place))
    assert dead == []
    assert (book / "searchindex.js").is_file()


def test_the_book_says_what_the_run_found(book):
    text = {name: (book / f"{name}.html").read_text("utf-8") for name in PAGES}
    first = verdicts().iloc[0]
    assert first["claim"] in text["index"]
    assert first["reason"].split(".")[0] in text["claims"]
    assert 'id="mcdf-fig4"' in text["gallery"]
    assert "dlsim.realtime.simulate" in text["api"]
    assert "--scale" in text["commands"]
    assert "per_task" in text["readings"]
    assert "<math" in text["api"]
    chapter = (book / "notebooks" / "20-mcdf.html").read_text("utf-8")
    assert chapter.count("<math") == 2
    assert "_images/mcdf-fig4.png" in text["gallery"]
    assert ":::" not in text["gallery"]  # every picture and its caption are closed
    assert (book / "figures" / "mcdf-fig4.png").is_file()
    assert "panels/timing.html" in text["index"]
    assert "../panels/timing.html" in (book / "notebooks" / "70-explore.html").read_text("utf-8")
    page = (book / "panels" / "timing.html").read_text("utf-8")
    shown = re.findall(r'"(timing/\d+\.png)"', page)
    assert len(set(shown)) == 2
    assert all((book / "panels" / place).is_file() for place in shown)


@deep
def test_what_sphinx_warns_of_is_no_book(run, tmp_path):
    path = run / "notebooks" / "20-mcdf.ipynb"
    kept = path.read_text()
    path.write_text(kept.replace("10-theory.ipynb", "nowhere.ipynb"))
    try:
        done = made(run, tmp_path / "book")
    finally:
        path.write_text(kept)
    assert done.returncode == 1
    assert "the book has faults" in done.stderr
    assert "nowhere" in done.stderr
    assert not (tmp_path / "book").exists()


def test_without_a_run_there_is_no_book(tmp_path, capsys):
    assert main(["book", "--from", str(tmp_path), "--out", str(tmp_path / "book")]) == 2
    assert "no executed notebooks; run dlsim reproduce first" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "text", "message"), [
    ("run.json", "{}", r"run\.json: no record of a run \('parameters'\); run dlsim reproduce"),
    ("run.json", "[]", r"run\.json: no record of a run"),
    ("notebooks/20-mcdf.ipynb", "x", r"20-mcdf\.ipynb: not a notebook \(.*'x'\); run dlsim"),
    ("notebooks/20-mcdf.ipynb", "{}", r"20-mcdf\.ipynb: not a notebook"),
    ("notebooks/20-mcdf.ipynb", '{"nbformat": 4, "nbformat_minor": 5, "cells": ["x"]}',
     r"20-mcdf\.ipynb: not a notebook"),
])  # fmt: skip
def test_a_damaged_run_has_no_edition(run, tmp_path, name, text, message):
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / name).write_text(text)
    with pytest.raises(InputError, match=message):
        write_edition(tmp_path / "run", Owned(tmp_path / "edition", "edition"))
