"""Pictures are drawn once: the same bytes from the cache, to the notebook, and no stale ones."""

import base64
import io
import struct

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from matplotlib.figure import Figure
from PIL import Image

from dlsim.study import pictures
from dlsim.study.notebooks import run_all
from dlsim.study.plot import axes_of
from tests.small_notebooks import write_notebook


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    plt.close("all")


@pytest.fixture
def drawn(monkeypatch):
    """The number of times that anything is drawn."""
    calls, savefig = [], Figure.savefig

    def counted(self, *words, **options):
        calls.append(self)
        return savefig(self, *words, **options)

    monkeypatch.setattr(Figure, "savefig", counted)
    return calls


def figure(label="x", color="C0"):
    _, ax = plt.subplots()
    ax.plot([1, 2, 3], [2, 1, 3], color=color, label=label)
    ax.set(xlabel=label, xscale="log")
    ax.legend()
    return ax.get_figure()


def test_an_equal_figure_is_not_drawn_again(drawn):
    first = pictures.picture_of(figure())
    assert pictures.picture_of(figure()) == first
    assert len(drawn) == 1


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
    with Image.open(buffer) as saved, Image.open(io.BytesIO(pictures.picture_of(made()))) as few:
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
    with Image.open(io.BytesIO(pictures.picture_of(one))) as few:
        assert few.convert("RGBA").getpixel((0, 0))[3] == 0


@pytest.mark.parametrize("change", [{"label": "y"}, {"color": "C1"}])
def test_another_figure_is_another_picture(drawn, change):
    assert pictures.picture_of(figure()) != pictures.picture_of(figure(**change))
    assert len(drawn) == 2


def test_settings_belong_to_a_picture(drawn):
    first = pictures.picture_of(figure())
    with plt.rc_context({"text.antialiased": False}):
        assert pictures.picture_of(figure()) != first
    assert len(drawn) == 2


@pytest.mark.parametrize(
    "spoil", [lambda b: b[:-1], lambda b: b[:40] + b"x" + b[41:], lambda b: b""]
)
def test_a_damaged_picture_is_drawn_again(cache, drawn, spoil):
    first = pictures.picture_of(figure())
    (path,) = (cache / "pictures").glob("*/*")
    path.write_bytes(spoil(path.read_bytes()))
    assert pictures.picture_of(figure()) == first
    assert len(drawn) == 2
    assert pictures.picture_of(figure()) == first
    assert len(drawn) == 2


def test_what_runs_somebodys_own_code_is_drawn_each_time(drawn):
    def own(suffix):
        return lambda value, _: f"{value:g} {suffix}"

    pngs = []
    for suffix in ("a", "b", "b"):
        one = figure()
        one.axes[0].yaxis.set_major_formatter(own(suffix))
        pngs.append(pictures.picture_of(one))
    assert pngs[0] != pngs[1] == pngs[2]
    assert len(drawn) == 3


def test_a_cache_that_cannot_be_used_costs_only_time(cache, drawn):
    cache.write_text("a file")
    assert pictures.picture_of(figure()) == pictures.picture_of(figure())
    assert len(drawn) == 2


def test_every_picture_of_the_house_style_is_known_again(drawn, tmp_path):
    from dlsim.study import policy_style, style
    from dlsim.study.report import Results

    style.use()
    table = pd.DataFrame({"policy": ["MCDF", "EDFMN"] * 2, "load": [1, 1, 2, 2], "estimate": 0.5})
    for place in "ab":
        ax = axes_of(None, (5, 4))
        sns.lineplot(table, x="load", y="estimate", ax=ax, **policy_style(table["policy"]))
        Results(tmp_path / place).figure("lines", ax)
    one, other = ((tmp_path / place / "figures").glob("*.png") for place in "ab")
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in other]
    assert len(drawn) == 1


SHOW = """import matplotlib.pyplot as plt
from dlsim.study.report import Results
_, ax = plt.subplots()
ax.plot([1, 2])
Results(out).figure("one", ax);"""


def test_a_notebook_shows_the_picture_that_was_written(tmp_path, monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)
    changed = f"{SHOW}\nax.set_xlabel('changed since');"
    source = write_notebook(tmp_path / "one.ipynb", SHOW, changed)
    (result,) = run_all([source], out=tmp_path / "out")
    done = result.path
    shown = [
        output for cell in nbformat.read(done, 4).cells for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]  # fmt: skip
    written = (tmp_path / "out" / "figures" / "one.png").read_bytes()
    pngs = [base64.b64decode(output.data["image/png"]) for output in shown]
    assert pngs[0] == written
    assert pngs[1] != written
    (width, height), told = struct.unpack(">ii", written[16:24]), shown[0].metadata["image/png"]
    assert told["width"] / width == pytest.approx(told["height"] / height, rel=0.01)
    assert told["width"] < width
