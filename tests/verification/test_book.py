"""The book of a run: whole, read from a folder, and nothing of a notebook acts in it."""

import functools
import re
from html import unescape
from urllib.parse import unquote

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from dlsim.errors import InputError
from dlsim.output_folder import OutputFolder
from dlsim.study.book import as_text, markdown_as_text, write_book
from tests.made_up_run import make_run

for name in ("sphinx", "furo", "myst_nb", "numpydoc"):
    pytest.importorskip(name, reason="needs the extra 'docs'")

LINK = re.compile(r"<(\w+)[^>]*? (?:src|href)=\"([^\"]+)\"")
SECRET = "a line of a file that no book shows"


def hostile(secret):
    """A notebook with every way in which MyST reads files or imports modules."""
    acts = [
        f"```{{literalinclude}} {secret}\n```",
        f":::{{include}} {secret}\n:::",
        f"> ```{{include}} {secret}\n> ```",
        "```{eval-rst}\n.. automodule:: antigravity\n```",
        "```{autodata} os.environ\n```",
        f"{{download}}`x <{secret}>`",
        f"[x]({secret})",
        f"![x]({secret})",
        f"[y]: {secret}\n\n[see][y]",
        "<script>alert(1)</script>",
    ]
    outputs = [new_output("display_data", {"text/markdown": "\n\n".join(acts)})]
    cells = [new_markdown_cell(act) for act in acts]
    cells.append(new_code_cell("1", outputs=outputs))
    return new_notebook(cells=[new_markdown_cell("---\nmyst: {}\n---\n# Hostile"), *cells])


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = make_run(tmp_path_factory.mktemp("book") / "latest")
    secret = folder.parent / "secret.txt"
    secret.write_text(SECRET)
    nbformat.write(hostile(secret), folder / "notebooks" / "95-hostile.ipynb")
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


def test_nothing_of_a_notebook_acts_when_the_book_is_made(book):
    page = (book / "notebooks" / "95-hostile.html").read_text("utf-8")
    text = re.sub(r"<[^>]+>", "", page)
    assert "alert(1)" in text
    assert "<script>alert(1)" not in page
    assert "automodule:: antigravity" in text  # shown, not done
    assert 'id="module-antigravity"' not in page
    assert "PATH" not in text
    for path in book.rglob("*"):
        if path.is_file():
            assert SECRET.encode() not in path.read_bytes(), path


def test_the_shapes_of_directives():
    for mark in ("```", "~~~~", ":::"):
        assert "{" not in markdown_as_text(f"{mark}{{name}} a\n{mark}", [])
    assert markdown_as_text("$x_{a}$ and {a, b}", []) == "$x_{a}$ and {a, b}"
    link = "[20](20-mcdf.ipynb#a) [web](https://example.org) [here](#x)"
    assert markdown_as_text(link, ["20-mcdf.ipynb"]) == link
    assert markdown_as_text(link, []) == "20 [web](https://example.org) [here](#x)"
    picture = "![p](../data/figures/mcdf-fig5.png)"
    assert markdown_as_text(picture, []) == picture
    assert markdown_as_text("![p](../data/../../x.png)", []) == "p"


def test_cells_that_are_neither_code_nor_text_are_left_out():
    raw = nbformat.v4.new_raw_cell("<script>", metadata={"raw_mimetype": "text/html"})
    assert as_text(new_notebook(cells=[raw]), []).cells == []


def test_without_a_run_there_is_no_book(tmp_path):
    with pytest.raises(InputError, match="no executed notebooks; run dlsim reproduce"):
        write_book(OutputFolder(tmp_path))
