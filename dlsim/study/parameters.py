"""The parameters of a notebook: what its tagged cell assigns, and values that fit.

papermill only warns of a name that it does not know, and takes a value of any type.
"""

import ast
import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlsim.errors import InputError
from dlsim.files import StrPath, read_json

_TYPES: dict[str, Any] = {
    "int": int,
    "float": (int, float),
    "bool": bool,
    "str": str,
    "list": (list, tuple),
    "dict": dict,
}
#: What Python raises for an expression that is nested too deeply.
_TOO_DEEP = (MemoryError, RecursionError)


def parameters_of(path: StrPath) -> dict[str, str]:
    """Return the type of each parameter of a notebook: of each name that its tagged cell assigns.

    This is not `papermill.inspect_notebook`, which loses a parameter whose comment holds a "=".
    """
    found: dict[str, str] = {}
    try:
        cells = read_json(path)["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
        source = "".join(tagged[0]["source"]) if tagged else ""
        for node in ast.parse(source).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                if isinstance(node, ast.AnnAssign):
                    found[target.id] = ast.unparse(node.annotation)
                else:
                    found[target.id] = type(_literal(ast.unparse(node.value))).__name__
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError, *_TOO_DEEP) as error:
        is_deep = isinstance(error, _TOO_DEEP)
        said = str(error).partition("; use sys.")[0]  # without Python's own remedy
        why = "an expression is nested too deeply" if is_deep else f"{type(error).__name__}: {said}"
        what = f"{os.fspath(path)}: not a notebook that can be run ({why})"
        raise InputError(f"{what}; open it in JupyterLab, or fetch it again") from error
    return found


def _literal(text: str) -> Any:
    """Read a value that is written in Python or JSON; any other text stays a text."""
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, *_TOO_DEEP):
            return read(text)
    return text


def check_parameters(path: StrPath, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as the notebook declares them: texts of a command line become values."""
    known, checked = parameters_of(path), {}
    for name, value in given.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise InputError(f"{Path(path).name}: no parameter {name!r}; it has: {names}")
        kind = known[name].partition("[")[0]
        checked[name] = _value_of_text(value, kind) if isinstance(value, str) else value
        if not _is_of_kind(checked[name], kind):
            what = f"parameter {name} must be a finite {known[name]}, got {value!r}"
            raise InputError(f"{Path(path).name}: {what}")
    return checked


def _value_of_text(text: str, kind: str) -> Any:
    """Read a parameter from the command line: a dict also as ``link=shared,late=drop``."""
    if kind == "str":
        return text
    if kind == "bool" and text.lower() in ("true", "yes", "false", "no"):
        return text.lower() in ("true", "yes")
    if kind == "dict" and "=" in text and "{" not in text:
        pairs = (pair.partition("=") for pair in text.split(","))
        return {name.strip(): _literal(value.strip()) for name, _, value in pairs}
    return _literal(text)


def _is_of_kind(value: Any, kind: str) -> bool:
    """Tell whether a value is of a type and made of plain, finite data."""
    if kind in _TYPES and not isinstance(value, _TYPES[kind]):
        return False
    if kind in ("int", "float") and isinstance(value, bool):
        return False
    try:
        json.dumps(value, allow_nan=False)
        return kind != "float" or abs(float(value)) < float("inf")
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False
