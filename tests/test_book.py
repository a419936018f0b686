"""The book of a run: whole, read from a folder, refused without a run."""

import functools
import re
import shutil
import subprocess
import sys
from html import unescape
from urllib.parse import unquote

import pytest

from dlsim.cli import main
from dlsim.study.report import Results, write_report
from tests.scale import deep
from tests.test_report import drawing, ran, verdicts, write_notebook

pytest.importorskip("sphinx", reason="needs the extra 'docs'")
for name in ("furo", "myst_nb", "numpydoc"):
    pytest.importorskip(name, reason="needs the extra 'docs'")

PAGES = {"index", "how-to", "gallery", "claims", "readings", "commands", "api", "search"}


def made(run, out):
    words = [sys.executable, "-m", "dlsim", "book", "--from", str(run), "--out", str(out)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book") / "latest"
    results = Results(folder)
    picture = results.figure("mcdf-fig4", drawing()[1])
    results.verdicts("mcdf", verdicts())
    write_notebook(folder / "notebooks" / "20-mcdf.ipynb", picture)
    write_report(folder, [ran(folder)], {"scale": "quick", "seconds": 3.5})
    return folder


@pytest.fixture(scope="module")
def book(run):
    done = made(run, run.parent / "book")
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


@pytest.mark.parametrize("text", [
    "x", "{}", '{"nbformat": 4, "nbformat_minor": 5, "cells": ["x"]}',
])  # fmt: skip
def test_a_damaged_run_has_no_book(run, tmp_path, capsys, text):
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / "notebooks" / "20-mcdf.ipynb").write_text(text)
    words = ["book", "--from", str(tmp_path / "run"), "--out", str(tmp_path / "book")]
    assert main(words) == 2
    assert re.search(r"20-mcdf\.ipynb: not a notebook \(.*\); run dlsim", capsys.readouterr().err)
    assert not (tmp_path / "book").exists()
