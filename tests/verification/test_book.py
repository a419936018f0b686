"""The book of a run: whole, read from a folder, and of the notebooks of the suite only."""

import functools
import re
from html import unescape
from urllib.parse import unquote

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from dlsim.errors import InputError
from dlsim.output_folder import OutputFolder
from dlsim.study.book import write_book
from tests.helpers.made_up_run import make_run

for name in ("sphinx", "furo", "myst_nb", "numpydoc"):
    pytest.importorskip(name, reason="needs the extra 'docs'")

LINK = re.compile(r"<(\w+)[^>]*? (?:src|href)=\"([^\"]+)\"")
SECRET = "a line of a file that no book shows"


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = make_run(tmp_path_factory.mktemp("book") / "latest")
    secret = folder.parent / "secret.txt"
    secret.write_text(SECRET)
    including = new_markdown_cell(f"```{{literalinclude}} {secret}\n```")
    nbformat.write(new_notebook(cells=[including]), folder / "notebooks" / "95-hostile.ipynb")
    assert write_book(OutputFolder(folder)) == folder / "book" / "index.html"
    return folder / "book"


@functools.cache
def names_in(page):
    """What a link may lead to in a page."""
    return {unescape(name) for name in re.findall(r' id="([^"]+)"', page.read_text("utf-8"))}


def test_the_book_is_whole_and_asks_no_server(book):
    pages = {path.relative_to(book).as_posix(): path for path in book.rglob("*.html")}
    assert {"index.html", "api.html", "search.html", "notebooks/20-mcdf.html"} <= set(pages)
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
    chapter = (book / "notebooks" / "20-mcdf.html").read_text("utf-8")
    assert chapter.count("<math") == 3
    assert "dlsim.realtime.simulate" in (book / "api.html").read_text("utf-8")


def test_a_notebook_that_is_not_of_the_suite_is_left_out(book):
    assert not (book / "notebooks" / "95-hostile.html").exists()
    for path in book.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_without_a_run_there_is_no_book(tmp_path):
    with pytest.raises(InputError, match="no executed notebooks; run dlsim reproduce"):
        write_book(OutputFolder(tmp_path))
