"""A picture is drawn once, for its file and for the notebook; no figure is saved by mistake."""

import base64
import io
import struct

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure
from PIL import Image

from dlsim.cli import main
from dlsim.study import results, save, session, start
from dlsim.study.results import Results
from tests.helpers.small_notebooks import write_notebook


@pytest.fixture(autouse=True)
def no_figures():
    yield
    plt.close("all")
    session._OPEN.clear()


@pytest.mark.parametrize("layout", ["constrained", "tight", "none"])
def test_a_picture_is_what_matplotlib_saves(layout):
    def made():
        one, (left, right) = plt.subplots(1, 2, layout=layout)
        left.imshow([[1, 2], [3, 4], [5, 6]])
        right.plot([1, 2], label="beside")
        right.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        right.set_aspect("equal")
        return one

    buffer, bare = io.BytesIO(), {"Software": None}
    made().savefig(buffer, format="png", dpi=150, metadata=bare, bbox_inches="tight")
    drawn = io.BytesIO(results.draw_picture(made()))
    with Image.open(buffer) as saved, Image.open(drawn) as few:
        assert few.mode == "P"
        assert few.info["dpi"] == saved.info["dpi"]
        wanted, got = (np.asarray(one.convert("RGB")).astype(int) for one in (saved, few))
    assert got.shape == wanted.shape
    off = np.abs(got - wanted).max(axis=2)  # a palette keeps areas, and edges nearly
    assert off.max() < 64
    assert (off > 16).mean() < 0.002


def test_what_can_be_seen_through_stays_so():
    one, ax = plt.subplots()
    one.patch.set_alpha(0)
    ax.plot([1, 2])
    with Image.open(io.BytesIO(results.draw_picture(one))) as few:
        assert few.convert("RGBA").getpixel((0, 0))[3] == 0


def test_a_written_figure_is_drawn_once_closed_and_can_be_written_again(tmp_path, monkeypatch):
    calls, savefig = [], Figure.savefig

    def counted(self, *words, **options):
        calls.append(self)
        return savefig(self, *words, **options)

    monkeypatch.setattr(Figure, "savefig", counted)
    one, ax = plt.subplots()
    ax.plot([1, 2])
    first = Results(tmp_path).figure("one", ax).read_bytes()
    assert calls == [one]
    assert plt.get_fignums() == []
    ax.set_xlabel("changed since")
    assert Results(tmp_path).figure("one", ax).read_bytes() != first


def test_a_table_saved_after_a_picture_gets_no_picture(tmp_path):
    start("mcdf", out=str(tmp_path / "out"))
    plt.plot([1, 2])
    save("mcdf-one", pd.DataFrame({"a": [1]}))
    save("mcdf-two", pd.DataFrame({"a": [1]}))
    assert [path.stem for path in (tmp_path / "out" / "figures").glob("mcdf-[ot]*")] == ["mcdf-one"]


START = """import matplotlib.pyplot as plt
from dlsim.study import save, start
plt.plot([9, 1])
start("mcdf", out);"""
DRAW = """_, ax = plt.subplots()
ax.plot([1, 2])
save("mcdf-one")"""
FOR_A_PAPER = """import pandas as pd
plt.plot([1, 2])
rows = {"load": 0.5, "policy": ["MCDF", "a_b"], "estimate": [0.25, 0.35]}
ends = {"low": [0.2, 0.3], "high": [0.3, 0.4], "n": 10}
save("mcdf-mine", pd.DataFrame(rows | ends));"""
TABLE = 'import pandas as pd\nsave("mcdf-two", pd.DataFrame({"a": [1]}))'


def pictures_of(book):
    """The pictures of an executed notebook: one list of outputs per cell."""
    return [
        [out for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
        for cell in book.cells
    ]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The results of a notebook that draws, by the command that also asks for PDF and LaTeX."""
    folder = tmp_path_factory.mktemp("drawn")
    again = f"{DRAW.replace('1, 2', '2, 1')};"
    source = write_notebook(folder / "one.ipynb", START, FOR_A_PAPER, DRAW, again)
    words = ["run", str(source), "--out", str(folder / "out"), "--figures", "pdf", "--latex"]
    assert main(words) == 0
    return folder / "out"


def test_pictures_and_tables_for_a_paper_are_written_if_asked_for(drawn):
    assert (drawn / "figures" / "mcdf-mine.pdf").read_bytes().startswith(b"%PDF")
    assert r"a\_b & $0.350 \pm 0.050$ \\" in (drawn / "data" / "mcdf-mine.tex").read_text()


def test_a_notebook_shows_the_picture_that_was_written(drawn):
    shown = [one for one in pictures_of(nbformat.read(drawn / "notebooks" / "one.ipynb", 4)) if one]
    assert [len(one) for one in shown[-2:]] == [1, 1]  # shown once
    written = (drawn / "figures" / "mcdf-one.png").read_bytes()
    first, second = (base64.b64decode(one[0].data["image/png"]) for one in shown[-2:])
    assert first != second == written
    (width, height), told = struct.unpack(">ii", written[16:24]), shown[-1][0].metadata["image/png"]
    assert told["width"] / width == pytest.approx(told["height"] / height, rel=0.01)
    assert told["width"] < width


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """The shell of a kernel, in this process."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def test_save_takes_no_figure_that_an_earlier_cell_left_open(shell, tmp_path):
    """The backend agg, unlike that of notebooks, leaves figures open."""
    agg = 'import matplotlib; matplotlib.use("agg")\n'
    for cell in (f"out = {str(tmp_path / 'out')!r}\n{agg}{START}", "plt.plot([3, 1])", TABLE, DRAW):
        shell.run_cell(cell, silent=False).raise_error()
    drawn = {path.stem for path in (tmp_path / "out" / "figures").glob("*.png")}
    assert "mcdf-one" in drawn
    assert "mcdf-two" not in drawn
    assert (tmp_path / "out" / "data" / "mcdf-two.csv").is_file()
