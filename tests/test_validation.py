"""85-validation: other people's simulators end as the engine does, and would show a difference."""

from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def shown():
    book = nbformat.read(ROOT / "notebooks" / "85-validation.ipynb", 4)
    names = {}
    for cell in book.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, cell.id, "exec"), names)
    return names


def test_simpy_ends_when_the_engine_says(shown):
    table = shown["table"]
    of_simpy = table[table["simulator"].str.startswith("SimPy")]
    assert set(of_simpy["case"]) == set(shown["cases"])
    assert (of_simpy["apart"] < 1e-9).all()


def test_what_simgrid_said_is_of_these_cases(shown):
    shipped = pd.read_csv(ROOT / "data/reference/suite/suite-validation.csv").set_index("case")
    for name, (rows, ours) in shown["cases"].items():
        assert shipped.at[name, "sends"] == len(rows)
        assert shipped.at[name, "last"] == pytest.approx(ours.max(), rel=1e-12)
        assert shipped.at[name, "apart"] < 1e-9


def test_a_node_that_is_not_free_is_noticed(shown):
    rows, ours = shown["cases"]["M: FIFOAN"]
    line, node, after, waits, send, work = rows[0]
    slow = [(line, node, after, waits, send, work * 1.01), *rows[1:]]
    assert np.abs(shown["by_simpy"](slow) - ours).max() > 0.009 * work
