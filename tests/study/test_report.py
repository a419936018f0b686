"""The table of figures is complete; results have equal bytes."""

import functools
import json
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from PIL import Image

from dlsim.errors import InputError
from dlsim.files import suite_notebooks
from dlsim.study.claims import judge_claim, load_claims, tabulate
from dlsim.study.results import Results, load_figures

#: Typed from the five papers' captions (letters where a caption has parts of its own).
PRINTED = {
    "mcdf": [f"fig{i}" for i in range(1, 11)],
    "inserted-idle-time": ["fig1a", "fig1b", "fig2", "fig3a", "fig3b", "fig4", "table1"],
    "steady-state": [*(f"fig{i}" for i in (1, 2, 3, "4a", "4b", 5, 6, 7)), "table1", "table2"],
    "cpu-gpu": ["fig1", "fig2", "fig3", "table1"],
    "bricks": [*(f"fig{i}" for i in range(1, 7)), "table1"],
}
#: Figures of the papers that show no results.
REDRAWN = {
    "mcdf": ["fig1", "fig2", "fig3"],
    "inserted-idle-time": ["fig1a", "fig1b", "fig2"],
    "steady-state": ["fig1", "fig2", "fig6", "fig7"],
    "cpu-gpu": ["fig1", "fig2", "fig3"],
    "bricks": ["fig1", "fig2"],
}
NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def drawing():
    figure, ax = plt.subplots(figsize=(1, 1))
    ax.plot([0, 1])
    return figure, ax


@functools.cache
def judged():
    row = {"estimate": 0.1, "low": 0.09, "high": 0.11}
    points = pd.DataFrame([{"point": name, **row} for name in ("<b> & co", "other")])
    claims = load_claims("mcdf")
    judged = [judge_claim(claim, points) for claim in claims[:-1]] + [judge_claim(claims[-1])]
    return tabulate(judged, scale="full", sample="full scale, seed 7", experiment="as shipped")


def verdicts():
    """A scorecard with all four verdicts and text that must be escaped."""
    return judged().copy()


# ------------------------------------------------------------------ the figures


def test_every_figure_of_ours_is_drawn_by_its_notebook():
    for row in load_figures().figures:
        if row.status == "beyond":
            cells = json.loads((NOTEBOOKS / f"{row.notebook}.ipynb").read_text())["cells"]
            source = "".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
            is_map = row.id.endswith("-readings") and "map_of_readings(" in source
            assert f'"{row.id}"' in source or is_map, row.id


def test_every_figure_and_table_of_the_papers_has_a_row():
    papers, figures = load_figures()
    ids = [row.id for row in figures]
    wanted, redrawn = (
        [f"{paper}-{name}" for paper, names in table.items() for name in names]
        for table in (PRINTED, REDRAWN)
    )
    assert len(set(ids)) == len(ids)
    assert set(wanted) <= set(ids)
    ours = set(ids) - set(wanted)
    assert set(papers) == {*PRINTED, "theory", "suite"}
    assert {row.notebook for row in figures} <= suite_notebooks().keys()
    for row in figures:
        assert (row.status == "beyond") == (row.id in ours)
        assert (row.status == "redrawn") == (row.id in redrawn)
        assert (row.status == "cannot be reproduced") == bool(row.why)
        if row.paper in ("mcdf", "inserted-idle-time", "bricks"):
            assert row.caption
            assert row.expect


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
status = "beyond"
"""


WRONG_ROWS = [
    ('status = "beyond"', 'status = "done"', "status must be one of reproduced"),
    ('paper = "p"', 'paper = "q"', "paper must be one of p; got 'q'"),
    ('notebook = "n"', "", "'p-fig1': notebook is missing; it needs id"),
    ('notebook = "n"', "notebook = 3", "notebook must be a text .*, got 3"),
    ('notebook = "n"', 'notebook = "n"\nbook = "n"', "no field is called 'book'"),
    ('title = "t"\nnotebook', "title = t\nnotebook", "line 9"),
]


def test_a_bad_row_is_refused(tmp_path):
    path = tmp_path / "figures.toml"
    path.write_text(ROW)
    assert load_figures(path)[1][0].id == "p-fig1"
    for old, new, message in WRONG_ROWS:
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


def test_names_stay_in_the_folder(tmp_path):
    for name in ("", "../x", "a/b", "A b", "-x", ".x", "x" + chr(0)):
        with pytest.raises(InputError, match="name of a result"):
            Results(tmp_path).table(name, pd.DataFrame())


def test_the_default_folder_is_results_of_the_paper(tmp_path, monkeypatch):
    """That of the checkout if the current folder is inside it, never one from elsewhere."""
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    (checkout / "notebooks").mkdir(parents=True)
    elsewhere.mkdir()
    monkeypatch.setattr("dlsim.files.project_root", lambda: checkout)
    monkeypatch.chdir(checkout / "notebooks")
    assert Results("", "mcdf").folder == checkout / "results" / "mcdf"
    monkeypatch.chdir(elsewhere)
    assert Results("", "mcdf").folder == elsewhere / "results" / "mcdf"
    assert Results("here").folder == elsewhere / "here"
    monkeypatch.setenv("DLSIM_RESULTS", str(tmp_path / "copy"))
    assert Results("", "mcdf").folder == tmp_path / "copy" / "mcdf"
