"""The pictures of the theory are drawn from numbers that obey the statements."""

from pathlib import Path

import nbformat
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.papers import theory as pictures
from dlsim.papers.theory import placed, split
from dlsim.realtime import Cluster
from tests.executed import execute

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return pictures.Study(out=str(tmp_path_factory.mktemp("theory")))


@pytest.mark.parametrize("st", [0.0, 20.0])
def test_a_timing_diagram_obeys_the_rule_it_shows(st):
    cluster = Cluster(4, 10.0, 10.0, st, st)
    chunks = split(100.0, 3, cluster)
    assert chunks["alpha"].sum() == pytest.approx(1)
    assert np.ptp(chunks["compute_end"]) < 1e-9
    assert list(chunks["send_start"][1:]) == list(chunks["send_end"][:-1])
    sending = chunks["send_end"] - chunks["send_start"]
    assert list(sending) == pytest.approx(list(st + 1000 * chunks["alpha"]))


def test_the_notebook_leaves_every_picture(tmp_path):
    """Its proofs are left out: they are tested where statements are."""
    book = nbformat.read(ROOT / "notebooks" / "10-theory.ipynb", as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    book.cells = [cell for cell in code if not cell.source.startswith("theory.")]
    assert len(book.cells) > 10
    nbformat.write(book, tmp_path / "pictures.ipynb")
    out = tmp_path / "results"
    execute(tmp_path / "pictures.ipynb", out)
    names = {path.stem for path in (out / "figures").glob("*.png")}
    assert names == {
        "mcdf-fig2", "mcdf-fig3", "steady-state-fig6", "steady-state-fig7", "theory-time",
        "theory-cost", "theory-share", "theory-order", "theory-release", "theory-accuracy",
    }  # fmt: skip
    curve = pd.read_csv(out / "data" / "theory-time.csv")
    # exact values of statement N*: 5 nodes are fastest at ST = 20, alpha_6 < 0
    assert curve["E"].idxmin() + 1 == 5
    assert (curve["last_share"] > 0).sum() == 5
    assert (np.diff(curve["W"] if "W" in curve else curve["n"] * curve["E"]) > 0).all()


@pytest.mark.parametrize(
    ("plan", "cost"),
    [
        ([("2", 6, 0, [1]), ("3", 6, 0, [2]), ("1", 3, 12, [1, 2])], 32),
        ([("1", 3, 0, [1]), ("2", 6, 0, [2]), ("3", 6, 6, [1])], 30),
    ],
)
def test_the_drawn_counterexample_costs_what_its_title_says(plan, cost):
    chunks = placed(plan)
    start = chunks["task"].map({name: at for name, _, at, _ in plan})
    assert (chunks["compute_end"] - start).sum() == pytest.approx(cost)
    due = chunks["task"].map({"1": 17, "2": 32, "3": 19})
    assert (chunks["compute_end"] <= due + 1e-9).all()


def test_the_platform_of_figure_7_has_the_graph_of_figure_6(study):
    assert nx.number_of_isolates(pictures.graph()) == 1
    assert sum(nx.triangles(pictures.graph()).values()) == 3


def test_accuracy_of_engine_and_print():
    frame = pictures.accuracy(8, 1.0)
    assert frame["engine"].max() <= 6 * 2.0**-52
    assert frame["printed"].max() > 0.1


def test_tables(study):
    deadlines = pictures.deadlines(study)
    assert deadlines.loc["scan with one tolerance", "n"] == 1
    assert 0.4 < deadlines.loc["ceil(ln gamma / ln beta)", "n + 1"] < 0.6
    reduction = pictures.reduction(study)
    assert list(reduction["graphs"]) == [1, 2, 4, 11]
    assert list(reduction["agree"]) == list(reduction["graphs"])
    assert reduction["worst_ratio"].max() == pytest.approx(2)  # K4: 4/2 over 1


@pytest.mark.parametrize("wrong", [{"scale": "huge"}, {"runs": -1}, {"sigma": 0.0}, {"cms": -1.0}])
def test_what_cannot_be_drawn_is_refused(wrong):
    with pytest.raises(InputError):
        pictures.Study(**wrong)
