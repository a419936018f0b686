"""The functions that a notebook defines, without the runs and the pictures of its cells."""

import ast
from contextlib import suppress
from pathlib import Path

import nbformat

FOLDER = Path(__file__).parents[1] / "notebooks"
#: What marks an assignment that runs something, or that uses what was run.
RUNS = ("sweep(", "simulate(", "run_chunks(", "run_slots(", "run_moldable(", "plt.", "sns.")


def functions_of(name, **values):
    """Return what a notebook's cells define; `values` stand for constants of the same name.

    Imports, functions and assignments of constants are executed; an assignment that runs an
    experiment, or that needs the result of one, is left out.
    """
    names = {"__name__": "notebook"}
    for cell in nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells:
        if cell.cell_type != "code":
            continue
        for statement in ast.parse(cell.source).body:
            text = ast.unparse(statement)
            if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef):
                exec(text, names)
            elif isinstance(statement, ast.Assign | ast.AnnAssign):
                if any(word in text for word in RUNS):
                    continue
                with suppress(Exception):  # it needs what was left out
                    exec(text, names)
                names.update({key: values[key] for key in values if key in names})
    return names
