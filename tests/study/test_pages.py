"""Pages: they need nothing but the folder, run nothing, and say what went wrong."""

import html
import json
import os
import re
import shutil
import subprocess
from collections import Counter

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from dlsim.errors import InputError
from dlsim.output_folder import OutputFolder
from dlsim.study import pages
from dlsim.study.claims import VERDICTS, load_claims, read_scorecard, reference_of
from dlsim.study.pages import PageFrame, RunPages, set_formulas, write_page, write_results_page
from dlsim.study.results import Results, load_figures
from dlsim.study.verdict import describe_comparisons
from tests.helpers.made_up_run import META, ended, make_run, write_scorecard_notebook
from tests.study.test_report import verdicts


class Page:
    """What a browser would fetch, run or show."""

    def __init__(self, path):
        self.whole = path.read_text("utf-8")
        page = BeautifulSoup(self.whole, "html.parser")
        self.tags, self.text = [one.name for one in page(True)], page.get_text()
        self.ids, self.links, self.sources = (
            [one[name] for one in page(attrs={name: True})] for name in ("id", "href", "src")
        )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of results without pages."""
    return make_run(tmp_path_factory.mktemp("made") / "latest")


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "results" / "latest")


@pytest.fixture(scope="module")
def whole(made, tmp_path_factory):
    """The pages of a run for tests that only look at them: its folder and its results page."""
    folder = shutil.copytree(made, tmp_path_factory.mktemp("pages") / "latest")
    return folder, pages_of(folder)


def pages_of(folder, *results):
    """Write the pages of a run, and return the results page."""
    results = results or (ended(folder), ended(folder, "90-scorecard"))
    write_results_page(folder, results, META)
    return Page(folder / "report.html")


# ------------------------------------------------------------------- alone in the world


def test_the_pages_need_nothing_but_the_folder(whole):
    folder, page = whole
    notebook = folder / "notebooks" / "20-mcdf.html"
    for place, shown in ((folder, page), (notebook.parent, Page(notebook))):
        assert not re.search(r'(src|href)="(https?:)?//|@import|url\(', shown.whole)
        assert not {"script", "link", "iframe", "object", "form"} & set(shown.tags)
        assert "default-src 'none'" in shown.whole
        assert len(set(shown.ids)) == len(shown.ids)
        assert shown.sources
        for address in shown.sources + shown.links:
            if address.startswith("#"):
                assert address[1:] in shown.ids
            elif not address.startswith("data:image/png;base64,"):
                assert (place / address).is_file(), address


def test_formulas_links_and_pictures_of_a_notebook(whole):
    folder, _ = whole
    page = Page(folder / "notebooks" / "20-mcdf.html")
    assert page.tags.count("math") == 3  # in the text, in a table of the text, in an output
    assert re.search(r"<msup>\s*<mi>β</mi>", html.unescape(page.whole))
    assert "# $y$" in page.text  # code is left alone, and so is what a cell prints
    assert "costs $1 or $2" in page.text
    assert "1 < 2" in page.text
    assert "\x1b" not in page.whole
    assert page.whole.count("data:image/png;base64,") == 2  # one drawn, one linked
    assert page.links[1:3] == ["../report.html", "20-mcdf.html"]
    assert not [link for link in page.links if "theory" in link]  # it did not run here


def test_formulas_are_set_in_text_only():
    kept = '<pre>$a$</pre><code>$b$</code><i title="$c$">x</i><style>$d$</style>'
    assert set_formulas(kept) == kept
    assert "<msup>" in set_formulas("<p>$a^2$</p>")
    assert "<mo>&#x0003C;</mo>" in set_formulas("<p>$a &lt; b$</p>")
    assert 'display="block"' in set_formulas("$$a$$")
    assert set_formulas("$\\begin{nothing$") == "<code>\\begin{nothing</code>"


def page_of(tmp_path, *cells, metadata=None, alarms=()):
    """Write the page of a notebook of these cells."""
    book = new_notebook(cells=list(cells), metadata=metadata or {})
    home = OutputFolder(tmp_path / "out").acquire()
    path = home.write("notebooks/own.ipynb", nbformat.writes(book).encode())
    return Page(write_page(home, path, "own.html", PageFrame(alarms, source=tmp_path)))


ACTS = (
    "<script>alert(1)</script>",
    "<iframe src='https://example.org'></iframe>",
    "<meta http-equiv=refresh content='0; url=https://example.org'>",
    "<base href='https://example.org'>",
    "<form action='https://example.org'><input></form>",
    "<link rel=stylesheet href='https://example.org/a.css'>",
    "<OBJECT data='x'></OBJECT>",
)


def test_a_notebook_of_others_does_nothing(tmp_path):
    """Tags that act become text; scripts and files of this machine are left out."""
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "a"}, "text/plain": "VBox"}
    outputs = [
        new_output("display_data", {"text/html": "".join(ACTS)}),
        new_output("display_data", {"application/javascript": "alert(2)"}),
        new_output("display_data", widget),
        new_output("display_data", {"text/markdown": "".join(ACTS)}),
    ]
    text = "![x](/etc/passwd) ![y](../../../../etc/passwd) [z](../../../etc/passwd)\n\n"
    cells = [new_markdown_cell(text + "\n\n".join(ACTS)), new_code_cell("1", outputs=outputs)]
    page = page_of(tmp_path, *cells)
    acting = {"script", "iframe", "form", "link", "object", "base"}
    assert not acting & set(page.tags)
    assert page.tags.count("meta") == 4  # of the template itself
    assert page.text.count("alert(1)") == 3  # shown as text
    assert "alert(2)" not in page.whole
    assert "dlsim lab" in page.text
    assert "passwd" not in page.whole


def test_parameters_of_a_run_and_cells_that_ask_for_it_are_folded(tmp_path):
    tags = ([], ["parameters"], ["injected-parameters"], ["parameters", "hide-input"])
    cells = [new_code_cell("1", metadata={"tags": each}) for each in tags]
    cells += [new_code_cell("1"), new_code_cell("1\n" * 40)]
    page = page_of(tmp_path, *cells)
    folds = re.findall('<details class="code"([^>]*)>', page.whole)
    assert ["open" in fold for fold in folds] == [True, True, False, False, True, False]


def test_a_failed_notebook_says_why_in_one_box_above_its_title(tmp_path):
    """papermill puts a banner before the cells and a mark before the one that failed."""
    tagged = {"metadata": {"tags": ["papermill-error-cell-tag"]}}
    error = new_output("error", ename="ValueError", evalue="no", traceback=["line 7", "no"])
    cells = [
        new_markdown_cell("An Exception was encountered", **tagged),
        new_markdown_cell("# Own"),
        new_markdown_cell("encountered an exception here", **tagged),
        new_code_cell("1 / 0", outputs=[error]),
    ]
    page = page_of(tmp_path, *cells, alarms=["own failed: no"])
    assert "An Exception was encountered" not in page.text
    assert "encountered an exception here" in page.text
    assert page.whole.index("own failed: no") < page.whole.index("<h1")
    assert "<title>Own</title>" in page.whole
    assert re.search("<details.*?traceback</summary>.*?line 7.*?</details>", page.whole, re.S)


def test_of_a_widget_a_page_shows_the_pictures_that_it_holds(tmp_path):
    """A panel brings its picture along; what `interact` draws is kept by a child of its widget."""

    def view(model, **more):
        data = {"application/vnd.jupyter.widget-view+json": {"model_id": model}, **more}
        return new_output("display_data", {"text/plain": "VBox(...)", **data})

    drawn = new_output("display_data", {"image/png": "ZHJhd24="})
    said = new_output("stream", text="7")
    state = {
        "box": {"state": {"children": ["IPY_MODEL_slider", "IPY_MODEL_out", "IPY_MODEL_box"]}},
        "slider": {"state": {"value": 3}},
        "out": {"state": {"outputs": [drawn, said, view("box")]}},
    }
    script = new_output("display_data", {"application/javascript": "1", "text/plain": "<Script>"})
    cells = [
        new_code_cell("panel()", outputs=[script, view("other", **{"image/png": "cGFuZWw="})]),
        new_code_cell("interact(f)", outputs=[view("box")]),
    ]
    kind = "application/vnd.jupyter.widget-state+json"
    page = page_of(tmp_path, *cells, metadata={"widgets": {kind: {"state": state}}})
    pictures = [source.partition(",")[2] for source in page.sources]
    assert pictures == ["cGFuZWw=", "ZHJhd24="]
    assert page.text.count("dlsim lab") == 3
    assert re.search(r"^7$", page.text, re.M)
    assert "VBox" not in page.text
    assert "Script" not in page.text


# --------------------------------------------------------------------- the results page


def test_the_first_screen_says_what_was_found(whole):
    _, page = whole
    first = page.text[: page.text.index("Verdict at full scale")]
    papers = [about for about in load_figures().papers.values() if "claims" in about]
    assert re.findall(r"Paper (\w): ", first)[:5] == [about["letter"] for about in papers]
    for about in papers:
        assert set(about["claims"]) <= {claim.id for claim in load_claims()}
        assert about["found"] in first
        assert about["terms"] in first
    assert all(one.meaning in first for one in VERDICTS.values())


def test_bars_count_every_verdict(whole):
    """The first bar counts the verdicts at full scale, the next those of the run."""
    _, page = whole
    shipped = read_scorecard(reference_of("mcdf"))
    bars = re.findall(r'<div class="bar">.*?</div>', page.whole, re.S)
    for bar, card in zip(bars[:2], (shipped, verdicts()), strict=True):
        shown = {word: int(n) for n, word in re.findall(r'title="(\d+) ([a-z ]+)"', bar)}
        assert shown == Counter(card["verdict"])


def test_the_page_shows_every_claim_and_figure(whole):
    _, page = whole
    assert page.whole.count("<table") == 1
    table = page.text[page.text.index("What the paper says, in our words") :]
    texts = Counter(claim.text for claim in load_claims())
    assert all(table.count(text) >= count for text, count in texts.items())
    for row in verdicts().to_dict("records"):
        assert f"claim-{row['id']}" in page.ids
        assert describe_comparisons(row) in table
    for row in load_figures().figures:
        assert row.title in page.text
        assert (row.id in page.ids) == (row.notebook == "20-mcdf"), row.id
    row = page.whole[page.whole.index('id="claim-mcdf-1"') :].partition("</tr>")[0]
    files = ["figures/mcdf-fig4.png", "data/mcdf-fig4.csv", "notebooks/20-mcdf.html"]
    assert re.findall('href="(.+?)">', row) == files
    for fact in ("quick", "link=shared", "12 s", "as the scale says"):
        assert fact in page.text[page.text.index("Where these results come from") :]


def test_a_failed_notebook_has_a_page_and_its_pictures_are_doubted(folder):
    source = folder / "notebooks" / "20-mcdf.ipynb"
    failed_path = source.rename(source.with_name("20-mcdf.failed.ipynb"))
    write_scorecard_notebook(folder)
    error = "20-mcdf.ipynb failed: code cell 3: ValueError: <script>alert(1)</script>"
    failed = ended(folder, path=failed_path, status="failed", error=error)
    line = write_results_page(folder, [failed, ended(folder, "90-scorecard")], META)
    assert "; 1 notebook failed - " in line
    page = Page(folder / "report.html")
    assert error in page.text
    assert "<b> & co" in page.text  # of a table of results
    assert "script" not in page.tags
    assert "what is shown here may be from an earlier run" in page.text
    assert error in Page(folder / "notebooks" / "20-mcdf.html").text


def test_without_a_scorecard_there_is_still_a_page_but_not_of_an_interrupted_run(tmp_path):
    stopped = ended(tmp_path, path=None, status="interrupted")
    write_results_page(tmp_path / "out", [stopped], META)
    assert (tmp_path / "out" / "run.json").is_file()
    assert not (tmp_path / "out" / "report.html").exists()
    failed = ended(tmp_path, "90-scorecard", path=None, status="failed", error="no kernel")
    page = pages_of(tmp_path / "out", failed)
    assert "no kernel" in page.text
    assert "There is no scorecard of this run" in page.text


def test_what_is_no_notebook_and_a_broken_scorecard_are_said(folder):
    (folder / "notebooks" / "20-mcdf.ipynb").write_text("{}")
    (folder / "data" / "mcdf-claims.csv").write_text("a,b\n1,2\n")
    page = pages_of(folder)
    assert "20-mcdf could not be made a page" in page.text
    assert "mcdf-claims.csv could not be read" in page.text
    assert json.loads((folder / "run.json").read_text())["claims"] == []


def test_the_page_of_an_unchanged_notebook_is_kept(tmp_path):
    """The results page is not written here: there is no scorecard."""
    folder = tmp_path / "out"
    home = OutputFolder(folder).acquire()
    book = new_notebook(cells=[new_markdown_cell("# One")])
    path = home.write("notebooks/20-mcdf.ipynb", nbformat.writes(book).encode())
    page = folder / "notebooks" / "20-mcdf.html"
    times = []
    for reused in (False, True, False):
        RunPages(folder, ["20-mcdf"]).write(ended(folder, path=path, reused=reused))
        times.append(page.stat().st_mtime_ns)
    assert times[0] == times[1] < times[2]


def test_run_json_holds_the_record(whole):
    folder, _ = whole
    record = json.loads((folder / "run.json").read_text())
    assert record["schema_version"] == 1
    assert record["parameters"] == META
    assert re.fullmatch(r"[0-9a-f]{16}", record["software"]["sources"])
    assert {"numpy", "numba", "papermill"} <= set(record["environment"]["packages"])
    assert record["environment"]["cores"] >= 1
    about = {"name": "20-mcdf", "path": "notebooks/20-mcdf.ipynb", "status": "ok", "seconds": 3.2}
    assert record["notebooks"][0] == about | {"error": "", "reused": False}
    assert [row["verdict"] for row in record["claims"]] == list(verdicts()["verdict"])
    drawn = {row["id"] for row in record["figures"] if row["drawn"]}
    assert drawn == {"mcdf-fig4", "mcdf-gantt"}
    assert record["problems"] == []


def test_verdicts_are_counted_once_and_those_of_another_run_are_not(folder, monkeypatch):
    """A paper may have two notebooks, and results of another run may lie in the folder."""
    monkeypatch.chdir(folder.parent.parent)
    Results(folder).table("bricks-claims", read_scorecard(reference_of("bricks")))
    beyond = ended(folder, "21-mcdf-beyond", path=None)
    line = write_results_page(folder, [ended(folder), beyond], META)
    words = list(verdicts()["verdict"])
    assert line.startswith(f"{len(words)} claims: {words.count('supported')} supported")
    assert line.endswith(", 1 not checkable - results/latest/report.html")
    record = json.loads((folder / "run.json").read_text())
    assert {row["paper"] for row in record["claims"]} == {"mcdf"}


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written to"):
        write_results_page(tmp_path / "file", [], {})


def test_verdicts_are_shown_where_nothing_was_run(tmp_path, monkeypatch):
    """In JupyterLab, before any run, the shipped verdicts are shown without links."""
    monkeypatch.chdir(tmp_path)
    card = pages.read_scorecards(tmp_path)
    found = pages.show_findings(card, tmp_path).data
    assert found.count("<img") == found.count("data:image/png;base64,") == 5
    assert "in this run" not in found
    shown = pages.show_figures(card, tmp_path).data
    assert f"{len(load_figures().figures)} figures and tables are not part" in shown


def test_asking_for_the_commit_writes_nothing_into_the_checkout(tmp_path, monkeypatch):
    """A killed report must leave no lock behind: git is not to write its index at all."""
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    (tmp_path / "file").write_text("1")
    for words in (("init", "-q"), ("add", "file"), (*author, "commit", "-q", "-m", "one")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(pages.files, "project_root", lambda: tmp_path)
    index = tmp_path / ".git" / "index"
    os.utime(tmp_path / "file", (1, 1))  # git would note the new time
    before = index.read_bytes(), index.stat().st_ino
    commit = pages._commit()
    assert re.fullmatch(r"[0-9a-f]{12}", commit)
    assert (index.read_bytes(), index.stat().st_ino) == before
    (tmp_path / "file").write_text("2")
    assert pages._commit() == f"{commit}-dirty"

    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", missing)  # without git
    assert pages._commit() == ""
