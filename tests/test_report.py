"""The report: self-contained, complete, honest about failures; results with equal bytes."""

import base64
import functools
import json
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from dlsim.errors import InputError
from dlsim.study import report
from dlsim.study.claims import (
    load_claims,
    read_scorecard,
    reference_of,
    scorecard,
    verdict_of,
)  # fmt: skip
from dlsim.study.notebooks import NotebookResult
from dlsim.study.pages import duration
from dlsim.study.report import Results, load_figures, read_headline, write_report

#: Typed from the five papers' captions (letters where a caption has parts of its own).
PRINTED = {
    "mcdf": [f"fig{i}" for i in range(1, 11)],
    "inserted-idle-time": ["fig1a", "fig1b", "fig2", "fig3a", "fig3b", "fig4", "table1"],
    "steady-state": [*(f"fig{i}" for i in (1, 2, 3, "4a", "4b", 5, 6, 7)), "table1", "table2"],
    "cpu-gpu": ["fig1", "fig2", "fig3", "table1"],
    "bricks": [*(f"fig{i}" for i in range(1, 7)), "table1"],
}
NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
META = {"scale": "quick", "seed": 7, "runs": 0, "seconds": 12.34, "reading": {"link": "shared"}}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def drawing():
    figure, ax = plt.subplots(figsize=(1, 1))
    ax.plot([0, 1])
    return figure, ax


@functools.cache
def judged():
    row = {"estimate": 0.1, "low": 0.09, "high": 0.11}
    points = pd.DataFrame([{"point": name, **row} for name in ("<b> & co", "other")])
    claims = load_claims("mcdf")
    return scorecard(
        [verdict_of(claim, points) for claim in claims[:-1]] + [verdict_of(claims[-1])]
    )


def verdicts():
    """A scorecard with all four verdicts and text that must be escaped."""
    return judged().copy()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "results" / "latest"
    results = Results(folder)
    results.figure("mcdf-fig4", drawing()[1])
    results.figure("mcdf-gantt", drawing()[0])
    results.table("mcdf-fig4", pd.DataFrame({"load": [0.1], "ratio": [1 / 3]}))
    results.verdicts("mcdf", verdicts())
    write_notebook(folder / "notebooks" / "20-mcdf.ipynb", folder / "figures" / "mcdf-fig4.png")
    return folder


def write_notebook(path, picture):
    """An executed notebook with a formula, a link, a picture that is in the run, and text."""
    png = base64.b64encode(picture.read_bytes()).decode()
    outputs = [
        new_output("display_data", {"image/png": png}, metadata={"image/png": {"width": 90}}),
        new_output("display_data", {"text/html": "<table><tr><td>$n_{min}$</td></tr></table>"}),
        new_output("stream", text="\x1b[31m1 < 2\x1b[0m"),
    ]
    text = "# Paper M\n\nAs $\\beta^{n}$, see [theory](10-theory.ipynb). "
    text += "![f](../data/figures/mcdf-fig5.png)"
    cells = [new_markdown_cell(text), new_code_cell("x = 1", outputs=outputs)]
    path.parent.mkdir(exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)


def ran(folder, **change):
    path = folder / "notebooks" / "20-mcdf.ipynb"
    fields = {"name": "20-mcdf", "path": path, "status": "ok", "seconds": 3.2}
    return NotebookResult(**(fields | change))


class Page(HTMLParser):
    """Checks that tags are balanced, and collects what a browser would fetch or show."""

    VOID = ("meta", "br", "img")

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.links, self.sources, self.tags = [], [], [], [], []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        self.sources += [values["src"]] if "src" in values else []
        assert not [name for name in values if name.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data if "style" not in self.open else ""


def page_of(folder, *results, **meta):
    path = write_report(folder, results or [ran(folder)], META | meta)
    return path.read_text(encoding="utf-8"), Page(path.read_text(encoding="utf-8"))


# ------------------------------------------------------------------ the figures


def test_every_figure_of_ours_is_drawn_by_its_notebook():
    for row in load_figures()[1]:
        if row.status == "beyond":
            name = row.id.removeprefix(f"{row.paper}-").replace("-", "_")
            cells = json.loads((NOTEBOOKS / f"{row.notebook}.ipynb").read_text())["cells"]
            source = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
            assert name in source, row.id


def test_every_figure_and_table_of_the_papers_has_a_row():
    papers, figures = load_figures()
    ids = [row.id for row in figures]
    wanted = [f"{paper}-{name}" for paper, names in PRINTED.items() for name in names]
    assert len(set(ids)) == len(ids)
    assert set(wanted) <= set(ids)
    ours = set(ids) - set(wanted)
    assert set(papers) == {*PRINTED, "theory", "suite"}
    for row in figures:
        assert (row.status == "beyond") == (row.id in ours)
        assert (row.status == "cannot be reproduced") == bool(row.why)
        if row.paper in ("mcdf", "inserted-idle-time", "bricks"):
            assert row.caption
            assert row.expect
    status = {row.id: row.status for row in figures}
    assert status["mcdf-fig1"] == "redrawn"
    assert {status[f"mcdf-fig{i}"] for i in range(4, 11)} == {"reproduced"}
    drawn = {status[f"inserted-idle-time-{name}"] for name in ("fig1a", "fig1b", "fig2")}
    assert drawn == {"redrawn"}
    run = {status[f"inserted-idle-time-{name}"] for name in ("fig3a", "fig3b", "fig4", "table1")}
    assert run == {"reproduced"}
    assert [status[f"bricks-fig{i}"] for i in range(1, 7)] == ["redrawn"] * 2 + ["reproduced"] * 4


ROW = """
[papers.p]
title = "t"
source = "s"
[[figure]]
id = "p-fig1"
paper = "p"
printed = "Figure 1"
title = "t"
notebook = "n"
status = "planned"
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('status = "planned"', 'status = "done"', "status must be one of reproduced"),
        ('paper = "p"', 'paper = "q"', "paper must be one of p; got 'q'"),
        ('notebook = "n"', "", "'p-fig1': notebook is missing; it needs id"),
        ('notebook = "n"', "notebook = 3", "notebook must be a text .*, got 3"),
        ('notebook = "n"', 'notebook = "n"\nbook = "n"', "no field is called 'book'"),
        ('title = "t"\nnotebook', "title = t\nnotebook", "line 9"),
    ],
)
def test_a_bad_row_is_refused(tmp_path, old, new, message):
    path = tmp_path / "figures.toml"
    path.write_text(ROW)
    assert load_figures(path)[1][0].id == "p-fig1"
    path.write_text(ROW.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_figures(path)


# ------------------------------------------------------------------ the results


def test_equal_results_have_equal_bytes_and_no_metadata(tmp_path):
    one, other = (Results(tmp_path / name) for name in "ab")
    frame = pd.DataFrame({"x": [1 / 3, 1e-300], "policy": ["MCDF", "a,b\n"]})
    assert one.table("t", frame).read_bytes() == other.table("t", frame.copy()).read_bytes()
    png = one.figure("f", drawing()[1])
    assert png == tmp_path / "a" / "figures" / "f.png"
    assert png.read_bytes() == other.figure("f", drawing()[0]).read_bytes()
    with Image.open(png) as image:
        assert set(image.info) <= {"dpi"}
    assert b"matplotlib" not in png.read_bytes().lower()


@pytest.mark.parametrize("name", ["", "../x", "a/b", "A b", "-x", ".x", "x" + chr(0)])
def test_names_stay_in_the_folder(tmp_path, name):
    with pytest.raises(InputError, match="name of a result"):
        Results(tmp_path).table(name, pd.DataFrame())


def test_the_default_folder_is_results_of_the_paper(tmp_path, monkeypatch):
    monkeypatch.setattr("dlsim.files.project_root", lambda: tmp_path)
    assert Results("", "mcdf").folder == tmp_path / "results" / "mcdf"
    monkeypatch.setattr("dlsim.files.project_root", lambda: None)
    monkeypatch.chdir(tmp_path)
    assert Results("", "mcdf").folder == tmp_path / "results" / "mcdf"
    assert Results("here").folder == tmp_path / "here"


def test_a_scorecard_is_checked(tmp_path):
    with pytest.raises(InputError, match="reason not found"):
        Results(tmp_path).verdicts("p", verdicts().drop(columns="reason"))
    with pytest.raises(InputError, match="got 'maybe'"):
        Results(tmp_path).verdicts("p", verdicts().assign(verdict="maybe"))


# --------------------------------------------------------------------- the page


def test_the_pages_need_nothing_but_the_folder(folder):
    text, page = page_of(folder)
    notebook = folder / "notebooks" / "20-mcdf.html"
    other = notebook.read_text("utf-8")
    for place, shown, found in ((folder, text, page), (notebook.parent, other, Page(other))):
        assert not re.search(r"https?:|//[a-z]|@import|url\(", shown)
        assert not {"script", "link", "iframe", "object", "form"} & set(found.tags)
        assert len(set(found.ids)) == len(found.ids)
        assert found.sources
        for source in found.sources:
            assert (place / source).read_bytes().startswith(b"\x89PNG"), source
        for link in found.links:
            if link.startswith("#"):
                assert link[1:] in found.ids
            else:
                assert (place / link).is_file(), link
    assert len(text.encode()) < 300_000


def test_a_notebook_can_be_read_without_jupyter(folder):
    page_of(folder)
    text = (folder / "notebooks" / "20-mcdf.html").read_text("utf-8")
    page = Page(text)
    assert page.tags.count("math") == 2  # in the prose and in the table
    assert "<msup><mi>β</mi><mi>n</mi></msup>" in text
    first, second = page.sources
    assert first == "mcdf-fig5.png"
    assert second.startswith("../figures/mcdf-")  # no second copy
    assert (folder / "notebooks" / "mcdf-fig5.png").is_file()
    assert "see theory." in page.text  # a notebook that did not run here: no link
    assert "1 < 2" in page.text
    assert "\x1b" not in text


def test_what_is_no_notebook_is_said_and_linked_as_it_is(folder):
    (folder / "notebooks" / "20-mcdf.ipynb").write_text("{}")
    _, page = page_of(folder)
    assert "20-mcdf.ipynb could not be made a page" in page.text
    assert "notebooks/20-mcdf.ipynb" in page.links


def test_a_computed_sentence_stands_by_its_picture(folder):
    path = folder / "notebooks" / "20-mcdf.ipynb"
    write_notebook(path, folder / "figures" / "mcdf-gantt.png")
    book = nbformat.read(path, 4)
    said = {"text/markdown": "**1 < 2** in <i>all</i> cases", "text/plain": "'quoted'"}
    book.cells[1].outputs.insert(0, new_output("display_data", said))  # as Jupyter has it
    nbformat.write(book, path)
    text, _ = page_of(folder)
    shown = "<strong>1 &lt; 2</strong> in &lt;i&gt;all&lt;/i&gt; cases"
    assert shown in text[text.index('id="mcdf-gantt"') :].split("</section>")[0]
    assert text.count(shown) == 1
    page = path.with_suffix(".html").read_text()
    assert shown in page
    assert "quoted" not in page


def test_the_page_of_an_unchanged_notebook_is_kept(folder):
    page_of(folder)
    place = folder / "notebooks" / "20-mcdf.html"
    place.write_text("kept")
    page_of(folder, ran(folder, reused=True))
    assert place.read_text() == "kept"
    page_of(folder)
    assert "Paper M" in place.read_text()


def test_findings_are_those_that_the_table_of_papers_names(folder):
    _, page = page_of(folder)
    told = {row["id"]: row for row in verdicts().to_dict("records")}
    first = page.text[: page.text.index("Claim, in our words")]
    for claim in ("mcdf-1", "mcdf-15"):
        assert told[claim]["claim"] in first
    assert page.text.index("It claims:") < page.text.rindex("Provenance")
    papers, known = load_figures()[0], {claim.id for claim in load_claims()}
    named = {
        about[name] for about in papers.values() for name in ("claim", "news") if name in about
    }
    assert len(named) == 10
    assert named <= known


def test_beside_a_quick_verdict_stands_that_of_the_papers_size(folder):
    frame = verdicts().assign(reference="contrary", agreement="CONTRADICTS")
    Results(folder).verdicts("mcdf", frame)
    text, page = page_of(folder)
    size = "at the paper's own size"
    known = read_scorecard(reference_of("mcdf")).set_index("id")["measured"]["mcdf-1"]
    assert known.split(";")[0] in page.text[: page.text.index("Claim, in our words")]
    assert f'title="{len(frame)} contrary"' in text
    assert page.text.count(size) >= 3


def test_the_page_shows_everything(folder):
    text, page = page_of(folder, command="dlsim reproduce mcdf")
    _, figures = load_figures()
    for row in figures:
        assert row.id in (page.ids if row.notebook == "20-mcdf" else page.text), row.id
        assert row.title in page.text
    for row in verdicts().to_dict("records"):
        assert row["id"] in page.text
        assert row["claim"] in page.text
        assert row["reason"] in page.text
    for fact in (
        "quick",
        "7",
        "link=shared",
        "12.3 s",
        "dlsim reproduce mcdf",
        "as the scale says",
    ):
        assert fact in page.text
    assert "dlsim reproduce mcdf-fig4 --scale quick" in page.text
    assert {"data/mcdf-fig4.csv", "notebooks/20-mcdf.html"} <= set(page.links)
    assert text.count('loading="lazy"') == 2
    assert "market survey of 63 vendors" in page.text  # why something cannot be reproduced
    assert page.ids.index("claims") < page.ids.index("figures")  # scorecard first


def test_the_overview_counts_every_verdict_before_the_tables(folder):
    text, page = page_of(folder)
    words = list(verdicts()["verdict"])
    shown = {word: int(n) for n, word in re.findall(r'title="(\d+) ([a-z ]+)"', text)}
    assert shown == {word: words.count(word) for word in dict.fromkeys(words)}
    assert "#claims-mcdf" in page.links
    assert "claims-mcdf" in page.ids
    assert page.text.index("What holds") < page.text.index("Claim, in our words")


def test_a_duration_is_written_for_people():
    assert [duration(s) for s in (0, 12.34, 517.4, 3600)] == [
        "0.0 s", "12.3 s", "8 min 37 s", "60 min 0 s",
    ]  # fmt: skip


def test_what_comes_from_outside_is_escaped(folder):
    text, page = page_of(folder, ran(folder, status="failed", error="<script>alert(1)</script>"))
    assert "<b> & co" in page.text
    assert "<script>" not in text
    assert "<script>alert(1)</script>" in page.text


def test_the_first_line_is_the_headline(folder, monkeypatch):
    monkeypatch.chdir(folder.parent.parent)
    _, page = page_of(folder)
    line = read_headline(folder)
    words = list(verdicts()["verdict"])
    assert line.startswith(f"{len(words)} claims: {words.count('holds')} hold")
    assert line.endswith(", 1 cannot be checked - results/latest/report.html")
    body = re.sub(r"\s+", " ", page.text).strip().removeprefix("dlsim report").strip()
    body = body.removeprefix("Skip to the content").strip()
    assert body.startswith(line)
    monkeypatch.chdir("/")
    page_of(folder)
    assert str(folder / "report.html")[1:] in read_headline(folder)


def test_a_failed_notebook_is_shown_and_its_pictures_are_doubted(folder):
    failed = ran(folder, status="failed", error="20-mcdf.ipynb failed: code cell 3: ValueError: no")
    _, page = page_of(folder, failed)
    assert "code cell 3: ValueError: no" in page.text
    assert "a picture here may be from an earlier run" in page.text
    assert "may be from an earlier run: 20-mcdf did not finish" in page.text
    assert "; 1 notebook failed - " in read_headline(folder)


def test_with_nothing_at_all_there_is_still_a_report(tmp_path):
    results = [NotebookResult("20-mcdf", None, "interrupted", 0.0), ran(tmp_path, status="failed")]
    _, page = page_of(tmp_path, *results)
    assert "This run judged no claims." in page.text
    assert "No picture was drawn in this run." in page.text
    assert read_headline(tmp_path).startswith("0 claims")
    write_report(tmp_path / "new", [], {})
    assert read_headline(tmp_path / "new").startswith("0 claims: 0 hold, 0 in part, 0 mixed")


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "\0\0", 'id,"\n', "verdict\nmaybe\n"])
def test_a_broken_scorecard_is_said_not_hidden(folder, text):
    (folder / "data" / "mcdf-claims.csv").write_text(text)
    _, page = page_of(folder)
    assert "mcdf-claims.csv could not be read" in page.text
    assert read_headline(folder).startswith("0 claims")


def test_results_of_another_run_in_the_folder_are_left_out(folder):
    other = verdicts().assign(paper="bricks", claim="OTHER")
    Results(folder).table("bricks-claims", other)
    _, page = page_of(folder)
    assert "OTHER" not in page.text
    _, page = page_of(folder, ran(folder), ran(folder, name="60-bricks"))
    assert "OTHER" in page.text


def test_only_a_quick_run_warns_about_its_numbers(folder):
    assert "This is a quick run" in page_of(folder)[1].text
    assert "This is a quick run" not in page_of(folder, scale="paper")[1].text


def test_run_json_holds_the_record(folder):
    page_of(folder)
    record = json.loads((folder / "run.json").read_text())
    assert record["schema_version"] == 1
    assert record["parameters"] == META
    assert record["software"]["name"] == "dlsim"
    assert re.fullmatch(r"[0-9a-f]{16}", record["software"]["sources"])
    assert {"numpy", "numba", "papermill"} <= set(record["environment"]["packages"])
    assert record["environment"]["cores"] >= 1
    assert record["notebooks"] == [
        {"name": "20-mcdf", "path": "notebooks/20-mcdf.ipynb", "status": "ok", "seconds": 3.2,
         "error": "", "reused": False},
    ]  # fmt: skip
    assert [row["verdict"] for row in record["claims"]] == list(verdicts()["verdict"])
    drawn = {row["id"] for row in record["figures"] if row["drawn"]}
    assert drawn == {"mcdf-fig4", "mcdf-gantt"}


def test_asking_for_the_commit_writes_nothing_into_the_checkout(tmp_path, monkeypatch):
    """A killed report must leave no lock behind: git is not to write its index at all."""
    author = ("-c", "user.name=a", "-c", "user.email=a@b")
    (tmp_path / "file").write_text("1")
    for words in (("init", "-q"), ("add", "file"), (*author, "commit", "-q", "-m", "one")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(report.files, "project_root", lambda: tmp_path)
    index = tmp_path / ".git" / "index"
    os.utime(tmp_path / "file", (1, 1))  # git would note the new time
    before = index.read_bytes(), index.stat().st_ino
    commit = report._commit()
    assert re.fullmatch(r"[0-9a-f]{12}", commit)
    assert (index.read_bytes(), index.stat().st_ino) == before
    (tmp_path / "file").write_text("2")
    assert report._commit() == f"{commit}-dirty"


def test_without_git_the_commit_is_left_out(folder, monkeypatch):
    def missing(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", missing)
    _, page = page_of(folder)
    assert "Commit" not in page.text


def test_a_headline_needs_a_record(tmp_path):
    with pytest.raises(InputError, match="no record of a run"):
        read_headline(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be written to"):
        write_report(tmp_path / "file", [], {})


def test_a_notebook_that_judges_no_claims_is_no_problem(tmp_path):
    page = write_report(tmp_path, [ran(tmp_path, name="00-start-here")], {})
    assert json.loads((tmp_path / "run.json").read_text())["problems"] == []
    assert "could not be read" not in page.read_text()
