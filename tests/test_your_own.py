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
    """Everything that the notebook's cells leave, and what each shows."""
    names, shown = {}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("elsewhere"))
        for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
            body = ast.parse(cell.source).body if cell.cell_type == "code" else []
            last = [body.pop().value] if body and isinstance(body[-1], ast.Expr) else []
            exec(compile(ast.Module(body, []), cell.id, "exec"), names)
            shown += [
                eval(compile(ast.Expression(value), cell.id, "eval"), names) for value in last
            ]
    return names, [table for table in shown if table is not None]


def same(table, rows):
    """Compare with rows in which None stands for no value."""
    flat = list(itertools.chain.from_iterable(table.astype(float).to_numpy().tolist()))
    flat = [None if math.isnan(value) else value for value in flat]
    assert flat == [value for row in rows for value in row]


def test_three_tasks_worked_by_hand(seen):
    _, shown = seen
    same(shown[0], [[1, 0, 2, 8], [1, 8, 1, 44], [0, None, 0, None]])
    assert shown[1].deadline == 20
    assert shown[2].tolist() == [0, 0, pytest.approx(1 / 3)]
    same(shown[3], [[0, 0], [0, 6], [0, None]])
    same(shown[4], [[21, 21, 21], [53, 48.09, 38.5], [None, None, 54.5]])


def test_two_connections_carry_twenty_of_twenty_one_units(seen):
    best = seen[0]["best"]
    assert best.objective == pytest.approx(21)
    assert best.connections.tolist() == [[0, 2], [0, 0]]


def test_an_earlier_deadline_costs_more_and_fails_less(seen):
    same(seen[1][5].round({"mean cost": 0}), [[0.24, 263], [0.042, 372], [0.104, 241]])


def test_history_is_done_first_and_every_device_agrees(seen):
    assert seen[1][6].round().tolist() == [216, 177, 133]
    assert seen[1][7].tolist() == [True] * 4
