"""The pictures of 10-theory are drawn from numbers that obey the statements."""

import itertools

import nbformat
import networkx as nx
import numpy as np
import pandas as pd
import pytest

from dlsim.files import suite_notebooks
from dlsim.realtime import Cluster
from tests.verification.executed import in_one_space
from tests.verification.notebook_code import defined_in

NOTEBOOK = "10-theory"
theory = defined_in(NOTEBOOK)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Run the notebook without its proofs, which tests of the statements cover."""
    folder = tmp_path_factory.mktemp("theory")
    book = nbformat.read(suite_notebooks()[NOTEBOOK], as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    book.cells = [cell for cell in code if not cell.source.startswith("theory.")]
    nbformat.write(book, folder / "pictures.ipynb")
    out = folder / "results"
    names, shown = in_one_space(folder / "pictures.ipynb", folder, {"out": str(out)})
    return names, shown, out


@pytest.mark.parametrize("setup", [0.0, 20.0])
def test_a_timing_diagram_obeys_the_rule_it_shows(setup):
    cluster = Cluster(4, 10.0, 10.0, setup, setup)
    chunks = theory.timing_diagram(100.0, 3, cluster)
    assert chunks["alpha"].sum() == pytest.approx(1)
    assert np.ptp(chunks["compute_end"]) < 1e-9
    assert list(chunks["send_start"][1:]) == list(chunks["send_end"][:-1])
    sending = chunks["send_end"] - chunks["send_start"]
    assert list(sending) == pytest.approx(list(setup + 1000 * chunks["alpha"]))


def test_the_curves_have_the_exact_values_of_the_statements(pictures):
    names, shown, out = pictures
    curves = pd.read_csv(out / "data" / "theory-time.csv")
    # statement N*: 5 nodes are fastest at ST = 20, alpha_6 < 0
    assert curves["E"].idxmin() + 1 == 5
    assert (curves["last_share"] > 0).sum() == 5
    assert (np.diff(curves["W"]) > 0).all()
    assert "fastest on 5 nodes" in shown["theory-14b said"]
    assert (names["fastest"], names["fewest"]) == (5, 4)
    # without set-up, 12 equal rates: E = (1 - b)/(1 - b^12) sigma (Cms + Cps) with b = 1/2
    assert curves["E_without"].iloc[-1] == pytest.approx(1000 / (1 - 0.5**12))


def test_too_little_time_for_any_number_of_nodes_is_drawn(tmp_path):
    book = nbformat.read(suite_notebooks()[NOTEBOOK], as_version=4)
    chosen = ("theory-01", "theory-02", "theory-02b", "theory-14", "theory-14a", "theory-14b")
    book.cells = [cell for cell in book.cells if cell.id in chosen]
    nbformat.write(book, tmp_path / "curves.ipynb")
    given = {"out": str(tmp_path / "results"), "budget": 900.0, "nodes": 3}
    names, shown = in_one_space(tmp_path / "curves.ipynb", tmp_path, given)
    assert names["fewest"] == 0  # to send the load takes 1000
    assert "meet the budget: none" in shown["theory-14b said"]
    assert names["fastest"] == 3


@pytest.mark.parametrize(("plan", "cost"), [("decreasing DC", 32), ("in the order 1, 2, 3", 30)])
def test_the_drawn_counterexample_costs_what_its_title_says(pictures, plan, cost):
    names, shown, _ = pictures
    chunks = theory.place_tasks(names["plans"][plan])
    start = chunks["task"].map({name: begin for name, _, begin, _ in names["plans"][plan]})
    assert (chunks["compute_end"] - start).sum() == pytest.approx(cost)
    assert theory.total_cost_of(chunks) == pytest.approx(cost)
    due = chunks["task"].map({"1": 17, "2": 32, "3": 19})
    assert (chunks["compute_end"] <= due + 1e-9).all()
    assert shown["theory-28c"].loc[plan, "late chunks"] == 0


def test_equations_3_and_4_promise_an_end_before_the_node_is_free(pictures):
    names, _, _ = pictures
    share, end = names["second_share"], names["promised_end"]
    # both nodes end together: node 1 after 2 (1 - share), node 2 after 5 + 2 share
    assert 2 * (1 - share) == 5 + 2 * share == end
    assert share < 0
    assert end < 5


def test_the_independent_set_of_figure_6_is_largest(pictures):
    names, _, _ = pictures
    graph, independent = names["graph"], names["independent"]
    assert nx.number_of_isolates(graph) == 1
    assert sum(nx.triangles(graph).values()) == 3
    assert not any(graph.has_edge(*pair) for pair in itertools.combinations(independent, 2))
    larger = itertools.combinations(graph, len(independent) + 1)
    assert all(graph.subgraph(vertices).number_of_edges() for vertices in larger)
    assert names["best"].objective == pytest.approx(len(independent))
    # a link of an open route belongs to no other: every link admits one connection
    used = list(itertools.chain(*names["open_routes"]))
    assert len(used) == len(set(used)) == len(names["links_in_use"])


def test_accuracy_of_engine_and_print():
    errors = theory.errors_of_time(8, 1.0)
    assert errors["engine"].max() <= 6 * 2.0**-52
    assert errors["printed"].max() > 0.1


def test_tables(pictures):
    _, shown, _ = pictures
    deadlines = shown["theory-54"]
    assert deadlines.loc["scan with one tolerance", "n"] == 1
    assert 0.4 < deadlines.loc["ceil(ln gamma / ln beta)", "n + 1"] < 0.6
    reduction = shown["theory-46"]
    assert list(reduction["graphs"]) == [1, 2, 4, 11]
    assert list(reduction["agree"]) == list(reduction["graphs"])
    assert reduction["worst_ratio"].max() == pytest.approx(2)  # K4: 4/2 over 1
