"""What a notebook defines, without the runs and the pictures of its cells."""

import ast
import functools
from contextlib import suppress
from types import SimpleNamespace

import nbformat

from dlsim.files import suite_notebooks


def _is_constant(statement):
    """Whether a statement gives a name to a literal, or to a table of lambdas."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if not all(isinstance(target, ast.Name | ast.Tuple) for target in targets):
        return False
    value = statement.value
    if isinstance(value, ast.Dict) and all(isinstance(one, ast.Lambda) for one in value.values):
        return True
    try:
        ast.literal_eval(value)
    except ValueError:
        return False
    return True


@functools.cache
def function_in(notebook, name):
    """Return a function of a notebook that uses nothing but what the cells import."""
    names = {"__name__": notebook}
    for cell in nbformat.read(suite_notebooks()[notebook], as_version=4).cells:
        for statement in ast.parse(cell.source).body if cell.cell_type == "code" else []:
            is_wanted = isinstance(statement, ast.FunctionDef) and statement.name == name
            if is_wanted or isinstance(statement, ast.Import | ast.ImportFrom):
                exec(compile(ast.Module([statement], []), notebook, "exec"), names)
    return names[name]


def defined_in(notebook):
    """Return a namespace of what the code cells of a notebook define."""
    names = {"__name__": notebook}
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    for cell in nbformat.read(suite_notebooks()[notebook], as_version=4).cells:
        statements = ast.parse(cell.source).body if cell.cell_type == "code" else []
        kept = [one for one in statements if isinstance(one, kinds) or _is_constant(one)]
        exec(compile(ast.Module(kept, []), notebook, "exec"), names)
    return SimpleNamespace(**{key: value for key, value in names.items() if key != "__name__"})


#: What marks an assignment that runs something, or that uses what was run.
RUNS = ("sweep(", "simulate(", "run_chunks(", "run_slots(", "run_moldable(", "plt.", "sns.")


def functions_of(name, **values):
    """Return what a notebook's cells define; `values` stand for constants of the same name.

    Imports, functions and assignments of constants are executed; an assignment that runs an
    experiment, or that needs the result of one, is left out.
    """
    names = {"__name__": "notebook"}
    for cell in nbformat.read(suite_notebooks()[name], as_version=4).cells:
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
