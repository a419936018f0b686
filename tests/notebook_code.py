"""What a notebook defines: its imports, functions and literal constants; nothing else is run."""

import ast
from types import SimpleNamespace

import nbformat

from dlsim.files import suite_notebooks


def _is_constant(statement):
    if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if not all(isinstance(target, ast.Name) for target in targets):
        return False
    try:
        ast.literal_eval(statement.value)
    except ValueError:
        return False
    return True


def defined_in(notebook):
    """Return a namespace of what the code cells of a notebook define."""
    names = {"__name__": notebook}
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    for cell in nbformat.read(suite_notebooks()[notebook], as_version=4).cells:
        statements = ast.parse(cell.source).body if cell.cell_type == "code" else []
        kept = [one for one in statements if isinstance(one, kinds) or _is_constant(one)]
        exec(compile(ast.Module(kept, []), notebook, "exec"), names)
    return SimpleNamespace(**{key: value for key, value in names.items() if key != "__name__"})
