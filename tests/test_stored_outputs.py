"""The notebooks hold outputs of the full-scale run, of their present cells, or none."""

import base64
import hashlib
import importlib.util
import io
import json
import re
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from PIL import Image

from dlsim.output_folder import OutputFolder
from dlsim.study import notebooks
from dlsim.study.notebooks import run_all, without_outputs
from tests.helpers.refusals import require_refusals
from tests.helpers.small_notebooks import write_notebook

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: Places of a machine, and HTML that acts.
PLACE = re.compile(r"(?<![\w.:/])/(?:home|root|work|tmp|Users|usr|var|opt)/|file://|\b[A-Z]:\\")
ACTS = re.compile(
    r"<\s*(?:script|iframe|object|embed|link|meta|base|form)\b|<\w[^<>]*\son\w+=['\"]|javascript:",
    re.I,
)


def script():
    """The script .ci/store_outputs as a module."""
    sys.path.insert(0, str(ROOT / ".ci"))
    try:
        loader = SourceFileLoader("store_outputs", str(ROOT / ".ci" / "store_outputs"))
        spec = importlib.util.spec_from_loader("store_outputs", loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(ROOT / ".ci"))


STORE = script()


def code_cells(book):
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


# --------------------------------------------------------------------- what the suite holds


def test_stored_outputs_are_those_of_the_present_cells():  # else .ci/store_outputs --clear-changed
    for path in NOTEBOOKS:
        book = json.loads(path.read_text("utf-8"))
        shown = [cell for cell in code_cells(book) if cell["outputs"]]
        changed = [
            cell["id"]
            for cell in shown
            if cell["metadata"].get("dlsim") != {"source": STORE.source_digest(cell)}
        ]
        assert changed == [], path.stem
        assert ("dlsim" in book["metadata"]) == bool(shown), path.stem
        if shown:
            about = book["metadata"]["dlsim"]
            assert about.keys() == {"date", "scale", "version"}
            assert about["scale"] == "full"
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", about["date"])


def test_stored_outputs_hold_nothing_of_a_machine_or_a_run():
    for path in NOTEBOOKS:
        book = json.loads(path.read_text("utf-8"))
        assert path.stat().st_size <= STORE.MAX_NOTEBOOK
        assert not {"widgets", "papermill"} & book["metadata"].keys(), path.stem
        for cell in code_cells(book):
            assert cell["execution_count"] is None, path.stem
            assert cell["metadata"].keys() <= {"tags", "jupyter", "dlsim"}
            for output in cell["outputs"]:
                require_plain(output, path)


def require_plain(output, path):
    """Fail unless an output of a notebook is small, harmless, and names no place of a machine."""
    assert output["output_type"] != "error", path.stem
    assert output.get("execution_count") is None
    assert output.get("name", "stdout") == "stdout"
    data = dict(output.get("data", {}))
    if png := data.pop("image/png", ""):
        with Image.open(io.BytesIO(base64.b64decode(png))) as image:
            assert image.info.get("dpi", (0,))[0] < 111, path.stem
    text = "".join("".join(part) for part in [*data.values(), output.get("text", "")])
    assert PLACE.search(text) is None, path.stem
    assert re.search(r" at 0x|^\[?Text\(", text) is None  # what a drawing call returns
    assert data.keys() <= {"text/html", "text/markdown", "text/latex", "text/plain"}
    for kind in {"text/html", "text/markdown"} & data.keys():
        assert ACTS.search("".join(data[kind])) is None, path.stem
    for link in re.findall(r'(?:src|href)="([^"#:]+)"', "".join(data.get("text/html", ""))):
        assert (path.parent / link).exists(), link


def test_stored_outputs_are_small():
    assert sum(path.stat().st_size for path in NOTEBOOKS) <= STORE.MAX_SUITE
    assert sum(one.stat().st_size for one in ROOT.glob("data/figures/gallery/*")) <= 1_500_000


def test_the_gallery_shows_what_is_stored():  # else run .ci/store_outputs --clear-changed
    gallery = sys.modules["gallery"]
    books = gallery.read_notebooks(ROOT)
    page = (ROOT / "notebooks" / "README.md").read_text("utf-8")
    assert gallery.page_of(books) == page
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (ROOT / "notebooks" / link).is_file(), link
    assert {path.name for path in NOTEBOOKS} <= set(re.findall(r"\]\(([\w-]+\.ipynb)\)", page))
    groups = [one for book in books.values() for one in gallery.groups_of(book)]
    there = {path.stem: path for path in (ROOT / gallery.THUMBNAILS).glob("*")}
    assert sorted(one.name for one in groups) == sorted(there)
    for one in groups:
        with Image.open(there[one.name]) as image:
            assert image.text["Source"] == hashlib.sha256(one.png).hexdigest()
            assert image.width <= 300


# ---------------------------------------------------------------------- how they are stored

SHOWS = """import sys, base64, io
import pandas as pd
from IPython.display import display, HTML, Javascript
from PIL import Image
print("one")
print("not stored", file=sys.stderr)
stream = io.BytesIO()
Image.new("RGB", (300, 150), "white").save(stream, format="png", dpi=(150, 150))
data = {"image/png": stream.getvalue(), "text/plain": "<a picture>"}
display(data, metadata={"image/png": {"width": 220, "height": 110}}, raw=True)
display(Javascript("1"))
display(HTML('<a href="../data/gone.csv">x</a><img src="../figures/one.png">'))
pd.DataFrame({"a": [1]})
"""
TEXT = "## A picture\n\nIt is [white](20-mcdf.ipynb). It has no line."


def with_old_outputs(path):
    """Give every code cell of a notebook an output and what is recorded of it."""
    book = json.loads(path.read_text())
    for cell in code_cells(book):
        old = {"output_type": "stream", "name": "stdout", "text": ["stale\n"]}
        cell.update(outputs=[old], execution_count=7)
        cell["metadata"]["dlsim"] = {"source": "0" * 16}
    book["metadata"]["dlsim"] = {"version": "1.2.3"}
    path.write_text(json.dumps(book))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A project of one notebook, and the folder of a run of it."""
    root = tmp_path_factory.mktemp("project")
    (root / "notebooks").mkdir()
    (root / "data" / "figures").mkdir(parents=True)
    (root / "data" / "figures" / "one.png").write_bytes(b"")
    path = write_notebook(root / "notebooks" / "20-mcdf.ipynb", SHOWS)
    book = nbformat.read(path, as_version=4)
    book.cells.insert(0, nbformat.v4.new_markdown_cell("# Title\n\nIts *first* sentence. Another."))
    book.cells.insert(2, nbformat.v4.new_markdown_cell(TEXT))
    nbformat.write(book, path)
    before, out = path.read_bytes(), root / "out"
    with_old_outputs(path)
    (done,) = run_all([path], out=out, parameters={"scale": "full"})
    path.write_bytes(before)
    assert done.status == "ok", done.error
    (out / "run.json").write_text('{"software": {"version": "1.2.3"}}')
    return root, path, out


@pytest.fixture
def restored(run):
    """The same; the notebook and the run are afterwards as they were before."""
    files = [run[1], run[2] / "notebooks" / "20-mcdf.ipynb", run[2] / "run.json"]
    before = [path.read_bytes() for path in files]
    yield run
    for path, data in zip(files, before, strict=True):
        path.write_bytes(data)


def test_a_run_begins_without_the_outputs_that_its_notebook_held(run):
    executed = (run[2] / "notebooks" / "20-mcdf.ipynb").read_text()
    assert "stale" not in executed
    assert '"dlsim"' not in executed


def test_a_notebook_is_the_same_input_with_and_without_outputs(tmp_path):
    path = write_notebook(tmp_path / "same.ipynb", "1")
    job = notebooks._Job(path, OutputFolder(tmp_path / "out"), {}, 1.0, {}, None)
    before = job.key()
    with_old_outputs(path)
    assert job.key() == before
    path.write_text(path.read_text().replace('"1"', '"2"'))
    assert job.key() != before


def test_outputs_are_stored_without_what_a_reader_does_not_need(restored):
    root, path, out = restored
    before = path.read_bytes()
    assert STORE.main([str(out)], root) == 0
    first = path.read_bytes()
    assert STORE.main([str(out)], root) == 0
    assert path.read_bytes() == first  # the same run, the same bytes
    book = json.loads(first)
    about = book["metadata"]["dlsim"]
    assert about.items() >= {"version": "1.2.3", "scale": "full"}.items()
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", about["date"])
    parameters, cell = code_cells(book)
    assert 'scale: str = "quick"' in "".join(parameters["source"])
    assert "dlsim" not in parameters["metadata"]
    digest = hashlib.sha256("".join(cell["source"]).encode()).hexdigest()[:16]
    assert cell["metadata"] == {"dlsim": {"source": digest}}
    assert cell["execution_count"] is None
    printed, picture, links, table = cell["outputs"]
    assert printed["text"] == ["one\n"]
    assert picture["metadata"]["image/png"] == {
        "width": 220, "height": 110, "alt": "Picture: A picture"
    }  # fmt: skip
    assert list(picture["data"]) == ["image/png"]
    with Image.open(io.BytesIO(base64.b64decode(picture["data"]["image/png"]))) as image:
        assert image.size == (200, 100)
    assert links["data"] == {"text/html": ['<a>x</a><img src="../data/figures/one.png">']}
    assert list(table["data"]) == ["text/html"]
    assert without_outputs(first) == without_outputs(before)
    nbformat.validate(nbformat.reads(first.decode(), 4))


def test_the_gallery_has_a_picture_and_a_sentence_of_each_section(restored):
    root, path, out = restored
    assert STORE.main([str(out)], root) == 0
    cell = code_cells(json.loads(path.read_text()))[1]
    assert (root / "notebooks" / "README.md").read_text().partition("\n## ")[2] == (
        "[Title](20-mcdf.ipynb)\n\nMCDF does not refuse the fewest tasks.\n\n"
        '<table>\n<tr>\n<td width="33%" valign="top">\n\n'
        f"[![A picture](../data/figures/gallery/{cell['id']}.png)](20-mcdf.ipynb)\n\n"
        "It is white.\n\n</td>\n</tr>\n</table>\n"
    )


def test_a_run_of_another_source_is_refused(restored, capsys):
    root, path, out = restored
    book = json.loads(path.read_text())
    changed = code_cells(book)[1]
    changed["source"] = ["print(2)"]
    book["cells"].append(changed | {"id": "new-cell"})
    path.write_text(json.dumps(book))
    before = path.read_bytes()
    assert STORE.main([str(out)], root) == 2
    said = capsys.readouterr().err.strip()
    names = ", ".join(sorted([changed["id"], "new-cell"]))
    assert said == f"20-mcdf: these cells are not as they were run: {names}"
    assert path.read_bytes() == before


def test_a_run_that_is_not_whole_or_not_full_is_refused(restored, capsys):
    root, path, out = restored
    before, executed = path.read_bytes(), out / "notebooks" / "20-mcdf.ipynb"
    book = json.loads(executed.read_text())
    book["metadata"]["papermill"]["parameters"]["scale"] = "quick"
    executed.write_text(json.dumps(book))
    assert STORE.main([str(out)], root) == 2
    assert "run at scale 'quick'; only a run at full scale" in capsys.readouterr().err
    book["metadata"]["papermill"]["parameters"]["scale"] = "full"
    code_cells(book)[-1]["execution_count"] = None
    executed.write_text(json.dumps(book))
    assert STORE.main([str(out)], root) == 2
    assert "did not run to its end; only a whole run" in capsys.readouterr().err
    (out / "run.json").unlink()
    assert STORE.main([str(out)], root) == 2
    assert "run.json: there is none" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_what_names_a_place_of_a_machine_is_refused():
    places = ("see /home/ann/x.csv", "C:\\x", "/root/x", 'href="file:///x"', "/tmp/tmp1/x")
    words = "names a place of this machine"
    require_refusals([(lambda text=text: STORE.lines_of(text), words) for text in places])
    for text in ("if 1 < 2", "a/b/c\nd", "12 h / 3", "https://x.y/home/z"):
        assert "".join(STORE.lines_of(text)) == text


def test_a_styled_table_has_the_same_id_after_every_run():
    table = pd.DataFrame({"load": [0.1, 0.5]})
    runs = [table.style.highlight_max().to_html() for _ in range(2)]
    assert runs[0] != runs[1]
    stored = [STORE.with_lasting_ids(run) for run in runs]
    assert stored[0] == stored[1]
    name = re.search(r'<table id="(T_\w+)"', stored[0])[1]
    assert f"#{name}_row1_col0" in stored[0]
    assert f'id="{name}_row1_col0"' in stored[0]


def test_notebooks_that_are_too_large_are_refused(restored, monkeypatch, capsys):
    root, path, out = restored
    before = path.read_bytes()
    for limit in ("MAX_NOTEBOOK", "MAX_SUITE"):
        with monkeypatch.context() as patch:
            patch.setattr(STORE, limit, 2000)
            assert STORE.main([str(out)], root) == 2
        assert "bytes with its outputs, at most 2,000 are stored" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_outputs_of_changed_cells_are_cleared(restored):
    root, path, out = restored
    assert STORE.main([str(out)], root) == 0
    stored = path.read_bytes()
    assert STORE.main(["--clear-changed"], root) == 0
    assert path.read_bytes() == stored
    book = json.loads(stored)
    code_cells(book)[1]["source"] = ["2"]
    path.write_text(json.dumps(book))
    assert STORE.main(["--clear-changed"], root) == 0
    cleared = json.loads(path.read_bytes())
    assert [cell["outputs"] for cell in code_cells(cleared)] == [[], []]
    assert [cell["metadata"] for cell in code_cells(cleared)] == [{"tags": ["parameters"]}, {}]
    assert "dlsim" not in cleared["metadata"]
    assert list((root / "data" / "figures" / "gallery").iterdir()) == []


def test_what_is_no_notebook_stays_as_it_is():
    for data in (b"", b"{", b"[]", b'{"cells": 3}', b"\xff"):
        assert without_outputs(data) == data
