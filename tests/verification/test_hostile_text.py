"""Notebooks 25, 65, 66 and 80 on inputs whose texts are markup, formulas and scripts.

They run in a kernel, as in JupyterLab, and every output that a browser takes for more than plain
text is parsed: nothing in it may come from the input but text.
"""

import html
import json
import re

import nbformat
import pytest
from nbclient import NotebookClient

from dlsim.files import suite_notebooks
from dlsim.study.claims import read_scorecard, reference_of
from dlsim.study.pages import PageFrame, page_of
from tests.helpers.hostile_text import HOSTILE, UNSEEN, Outline, outlines, seen, words_of
from tests.verification.hostile_inputs import (
    NAME,
    THIRDS,
    hostile_csv,
    hostile_sacct,
    hostile_swf,
    hostile_toml,
)

#: The code of a picture that dlsim ships may hold any three letters.
OWN_PICTURE = r"data:image/png;base64,[\w+/=]+"


def executed(name, folder, change=(), **values):
    """Execute a copy of a notebook with other parameters in a folder; return it."""
    book = nbformat.read(suite_notebooks()[name], as_version=4)
    for cell in book.cells:
        if "parameters" in cell.metadata.get("tags", ()):
            given = {"out": str(folder / "results"), **values}
            cell.source += "".join(f"\n{key} = {value!r}" for key, value in given.items())
            cell.source += "\nimport pandas\npandas.set_option('display.max_colwidth', None)"
        elif cell.cell_type == "code":
            for before, after in dict(change).items():
                cell.source = cell.source.replace(before, after)
    NotebookClient(book, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return book


def words_shown(book):
    """What the outputs of a notebook say; none of them may hold anything else.

    Left out is the claim of one's own in 80-your-own, whose sentence is Markdown.
    """
    words = ""
    for cell in book.cells:
        if cell.id == "own-20c":
            continue
        for outline in outlines(cell.get("outputs", ())):
            assert outline.faults == [], cell.id
            words += " " + words_of(outline)
    return words


def is_harmless_as_a_page(book, folder):
    """Whether the page of a notebook has no more formulas than its own text, and nothing acts."""
    formulas = []
    for path in (folder / "executed.ipynb", folder / "without.ipynb"):
        nbformat.write(book, path)
        page = page_of(folder, path, path.with_suffix(".html"), PageFrame(with_code=False))
        formulas.append(page.count("<math"))
        assert not re.search(r"<(script|svg|img src=.?x|a [^>]*PWN)|<[^>]*=\W*window\.PWN", page)
        book = nbformat.from_dict(book)
        for cell in book.cells:
            cell.pop("outputs", None)
            cell.update({"outputs": []} if cell.cell_type == "code" else {})
    return formulas[0] == formulas[1]


#: sacct does not quote: a text with a bar in it makes a line that is left out.
BARLESS = [text for text in HOSTILE if "|" not in text]
LOGS = {
    "alone": (NAME + ".csv", hostile_csv(HOSTILE[:12]), HOSTILE[:12]),
    "thirds": ("log.csv", hostile_csv(THIRDS), THIRDS),
    "header": (NAME + ".swf", hostile_swf(), HOSTILE[:1]),
    "accounting": (NAME + ".txt", hostile_sacct(BARLESS[:12]), BARLESS[:12]),
}


@pytest.mark.parametrize("case", LOGS)
def test_a_log_of_any_texts_is_shown_as_text(tmp_path, case):
    name, text, said = LOGS[case]
    (tmp_path / name).write_text(text)
    ignore = [HOSTILE[0]] if name.endswith("csv") else []
    book = executed(
        "65-your-log", tmp_path, log=str(tmp_path / name), ignore=ignore, factors=[1, 2]
    )
    words = words_shown(book)
    assert name in words.replace("\u00a0", " ")
    for one in said:
        assert seen(one) in words
    if case == "thirds":  # the conclusions name the users that are refused most
        top = words[: words.index("this log")]
        assert all(f"user {seen(one)} (" in top for one in THIRDS)
    assert is_harmless_as_a_page(book, tmp_path)


@pytest.mark.parametrize("texts", [THIRDS, (*HOSTILE[8:10], *UNSEEN)])
def test_a_platform_of_any_names_is_shown_as_text(tmp_path, texts):
    (tmp_path / "my.toml").write_text(hostile_toml(texts))
    book = executed("66-your-platform", tmp_path, platform=str(tmp_path / "my.toml"), hours=2.0)
    words = words_shown(book)
    for one in texts:
        if one not in UNSEEN:  # tables of pandas show them as they are
            assert seen(one) in words
    assert is_harmless_as_a_page(book, tmp_path)


def own_texts(text, folder):
    """What stands for the examples of 80-your-own, if every text in them is this one."""
    field = '"' + text.replace('"', '""') + '"'
    word, key = re.sub(r"[ #\"]", "", text), json.dumps(text)[1:-1]
    (folder / "applications.csv").write_text(f"app,cpu_time,gpu_time\n{field},1,2\nb,2,1\n")
    return {
        "io.StringIO(gwf)": f"io.StringIO(gwf.replace('U1', {word!r}))",
        "io.StringIO(helios)": f"io.StringIO(helios.replace('vcA', {field!r}))",
        "io.StringIO(pai_jobs)": f"io.StringIO(pai_jobs.replace('u1', {field!r}))",
        "io.StringIO(philly)": f"io.StringIO(philly.replace('u1', {key!r}))",
        "io.StringIO(alibaba)": f"io.StringIO(alibaba.replace('LS', {field!r}))",
        "graphml.encode()": f"graphml.replace('Athens', {html.escape(text)!r}).encode()",
        "parse_gml(gml)": f"parse_gml(gml.replace('Athens', {html.escape(text)!r}))",
        "json.loads(node_link)": f"json.loads(node_link.replace('Athens', {key!r}))",
        'shared_file("data/examples/applications.csv")': repr(str(folder / "applications.csv")),
        **{f'"{name}"': repr(text) for name in ("north", "render", "MCDF reversed", "one link")},
    }


@pytest.mark.parametrize("text", THIRDS)
def test_logs_and_graphs_of_ones_own_are_shown_as_text(tmp_path, text):
    book = executed("80-your-own", tmp_path, own_texts(text, tmp_path))
    words = words_shown(book)
    assert words.count(seen(text)) >= 8
    assert is_harmless_as_a_page(book, tmp_path)


def test_loads_of_any_names_are_shown_as_text(tmp_path):
    pytest.importorskip("distributed")
    begin = "    head = Head(client)\n"
    functions = "(count_words, find_smallest_hash, blur)"
    named = f"    for one, one.__name__ in zip({functions}, {THIRDS!r}):\n        pass\n"
    change = {begin: begin + named, "job.result()": "(job.result(), display(job))"}
    book = executed("25-live-cluster", tmp_path, change, runs=1)
    words = words_shown(book)
    for text in THIRDS:
        assert words.count(seen(text)) >= 2  # two tables; a load itself is shown as plain text
    assert is_harmless_as_a_page(book, tmp_path)


def test_the_results_of_another_run_are_shown_as_text(tmp_path):
    """90-scorecard reads a folder that another person may have written."""
    data, notes = tmp_path / "results" / "data", tmp_path / "results" / "notebooks"
    data.mkdir(parents=True)
    notes.mkdir()
    card = read_scorecard(reference_of("mcdf"))
    for number, column in enumerate(("what", "outlier_at", "sample", "reason")):
        card[column] = [HOSTILE[(k + number) % len(HOSTILE)] for k in range(len(card))]
    card.to_csv(data / "mcdf-claims.csv", index=False)
    change = {'Results(folder, "scorecard").figure': "print"}
    book = executed("90-scorecard", tmp_path, change)
    words = ""
    for cell in book.cells:
        for output in cell.get("outputs", ()):
            if "text/html" in output.get("data", {}):
                text = re.sub(OWN_PICTURE, "", output["data"]["text/html"])
                outline = Outline(text)
                words += words_of(outline)
                assert outline.formulas == []
                acts = [one for one in outline.elements if "PWN" in one or 'src="x' in one]
                assert acts == [], cell.id
    assert words.count(seen(HOSTILE[0])) >= 3
