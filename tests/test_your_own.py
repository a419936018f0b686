"""What 80-your-own shows: its cells, run in one namespace, against numbers worked elsewhere."""

import ast
import itertools
import math
from pathlib import Path

import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "80-your-own.ipynb"


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Everything that the notebook's cells leave, and what each shows, by its id."""
    names, shown = {}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
            body = ast.parse(cell.source).body if cell.cell_type == "code" else []
            last = [body.pop().value] if body and isinstance(body[-1], ast.Expr) else []
            exec(compile(ast.Module(body, []), cell.id, "exec"), names)
            for value in last:
                shown[cell.id] = eval(compile(ast.Expression(value), cell.id, "eval"), names)
    return names, shown


def same(table, rows):
    """Compare with rows in which None stands for no value."""
    flat = list(itertools.chain.from_iterable(table.astype(float).to_numpy().tolist()))
    flat = [None if math.isnan(value) else value for value in flat]
    assert flat == [value for row in rows for value in row]


def test_three_tasks_worked_by_hand(seen):
    _, shown = seen
    same(shown["own-04"], [[1, 0, 2, 8], [1, 8, 1, 44], [0, None, 0, None]])
    assert shown["own-05"].deadline == 20
    assert shown["own-07"].tolist() == [0, 0, pytest.approx(1 / 3)]
    same(shown["own-09"], [[0, 0], [0, 6], [0, None]])
    same(shown["own-11"], [[21, 21, 21], [53, 48.09, 38.5], [None, None, 54.5]])


def test_two_connections_carry_twenty_of_twenty_one_units(seen):
    best = seen[0]["best"]
    assert best.objective == pytest.approx(21)
    assert best.connections.tolist() == [[0, 2], [0, 0]]


def test_an_earlier_deadline_costs_more_and_fails_less(seen):
    same(seen[1]["own-15"].round({"mean cost": 0}), [[0.24, 263], [0.042, 372], [0.104, 241]])


def test_history_is_done_first_and_every_device_agrees(seen):
    assert seen[1]["own-17"].round().tolist() == [216, 177, 133]
    assert seen[1]["own-19"].tolist() == [True] * 4


def test_what_an_operator_reads_is_said_and_drawn(seen):
    advice = seen[0]["advice"]
    refused = advice.refused
    assert len(seen[1]["own-12c"].axes) == 1
    assert len(seen[1]["own-12d"].axes) == 3
    assert len(refused) > 10
    assert (refused["promise"] != refused["deadline"]).all()
    assert seen[1]["own-12e"].index.isin(refused.index).all()
    # the example's waits were made by EASY on the same machine
    assert (advice.jobs["log"] == advice.jobs["easy"]).all()
