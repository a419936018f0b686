"""A picture is drawn once, for its file and for the notebook; no figure is saved by mistake."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure
from PIL import Image

from dlsim.cli import main
from dlsim.study import results
from dlsim.study.notebooks import NotebookResult
from dlsim.study.results import Results
from tests.helpers.small_notebooks import write_notebook


@pytest.mark.parametrize("layout", ["constrained", "none"])
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
    one, _ = plt.subplots()
    one.patch.set_alpha(0)
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


#: Cells that draw, also of the notebooks that tests/study/test_notebooks.py runs.
START = """import matplotlib.pyplot as plt
from dlsim.study import save, start
plt.plot([9, 1])
start("theory", out);"""
DRAW = """_, ax = plt.subplots()
ax.plot([1, 2])
save("theory-one")"""
FOR_A_PAPER = """import pandas as pd
plt.plot([1, 2])
rows = {"load": 0.5, "policy": ["MCDF", "a_b"], "estimate": [0.25, 0.35]}
ends = {"low": [0.2, 0.3], "high": [0.3, 0.4], "n": 10}
save("theory-mine", pd.DataFrame(rows | ends));"""
TABLE = 'import pandas as pd\nsave("theory-two", pd.DataFrame({"a": [1]}))'


def test_the_command_asks_for_pictures_and_tables_for_a_paper(monkeypatch, tmp_path):
    asked, book = {}, str(write_notebook(tmp_path / "one.ipynb"))

    def ask(names, **options):
        asked.update(options)
        return [NotebookResult("one", None, "failed", 1.0, "no")]

    monkeypatch.setattr("dlsim.study.notebooks.run_all", ask)
    main(["run", book, "--out", str(tmp_path / "out"), "--figures", "pdf", "--latex"])
    assert (asked["figures"], asked["latex"]) == ("pdf", True)


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
    assert "theory-one" in drawn
    assert "theory-two" not in drawn
    assert (tmp_path / "out" / "data" / "theory-two.csv").is_file()
