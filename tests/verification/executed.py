"""Notebooks that tests execute, and what an executed one shows."""

import ast
import builtins
import contextlib
import io

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest

from dlsim import files
from dlsim.study import session
from dlsim.study.claims import reference_of

#: A policy and a workload of one's own.
FILE = files.shared_file("data/examples/policies.py")


def names_of_cell(path, name):
    """Return the names that the imports, constants and functions of a notebook's cell define."""
    cells = nbformat.read(path, as_version=4).cells
    source = next(cell.source for cell in cells if cell.id == name)
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    body = [
        node
        for node in ast.parse(source).body
        if isinstance(node, kinds)
        or (isinstance(node, ast.Assign) and node.targets[0].id.isupper())
    ]
    names = {}
    exec(compile(ast.Module(body, []), name, "exec"), names)
    return names


def in_one_space(path, folder, given=()):
    """Run a notebook's cells in a folder; return what they leave, and what each shows, by its id.

    Parameters `given` stand for those of the notebook.
    """
    names, shown = {"__name__": "__main__"}, {}  # as in a kernel
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for cell in nbformat.read(path, as_version=4).cells:
            body = ast.parse(cell.source).body if cell.cell_type == "code" else []
            last = [body.pop().value] if body and isinstance(body[-1], ast.Expr) else []
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(ast.Module(body, []), cell.id, "exec"), names)
                for value in last:
                    shown[cell.id] = eval(compile(ast.Expression(value), cell.id, "eval"), names)
            shown[f"{cell.id} said"] = printed.getvalue()
            plt.close("all")  # as a kernel does at the end of a cell
            if "parameters" in cell.metadata.get("tags", ()):
                names.update(given)
    return names, shown


def run_small(name, folder, sizes, **given):
    """Run a notebook of the suite as `in_one_space` does, with its paper's sizes replaced.

    Return also the folder of its results.
    """
    out = folder / "results"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "read_scales", lambda paper: {"quick": sizes, "full": sizes})
        patch.setattr(builtins, "display", lambda *things: None, raising=False)
        given = {"jobs": 1, **given, "out": str(out)}
        names, shown = in_one_space(files.suite_notebooks()[name], folder, given)
    return names, shown, out


def map_of_verdicts(out, paper, reading):
    """Return the map of a run, after its first column: this run's own verdicts under a reading."""
    table = pd.read_csv(out / "data" / f"{paper}-readings.csv", index_col="claim")
    card = pd.read_csv(out / "data" / f"{paper}-claims.csv", index_col="id")["verdict"]
    own, *others = table
    assert own == f"this run: {reading}"
    numbers = pd.read_csv(out / "data" / f"{paper}-readings-intervals.csv", index_col="id")
    words = numbers.loc[numbers["reading"] == own, "verdict"]
    assert words.to_dict() == card[table.index].to_dict()
    return table, own, others


def shown_beside_the_shipped(out, paper, reading):
    """Whether the map has this run's own verdicts before the shipped ones, and they differ."""
    table, own, others = map_of_verdicts(out, paper, reading)
    shipped = reference_of(paper).parent / f"{paper}-readings.csv"
    assert table[others].to_dict() == pd.read_csv(shipped, index_col="claim").to_dict()
    return bool((table[own] != table["default"]).any())
