"""The parameters of a notebook: what its tagged cell assigns, and values that fit.

papermill only warns of a name that it does not know, and takes a value of any type.
"""

import ast
import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Parameter:
    """One parameter of a notebook, as its parameters cell declares it."""

    name: str
    kind: str
    default: Any


def parameters_of(path: StrPath) -> dict[str, Parameter]:
    """Return the parameters of a notebook by name: what its tagged cell assigns.

    This is not `papermill.inspect_notebook`, which loses a parameter whose comment holds a "=".

    Raises
    ------
    InputError
        If the file is not a notebook, or its parameters cell is not Python.
    """
    found: dict[str, Parameter] = {}
    try:
        cells = read_json(path)["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
        source = "".join(tagged[0]["source"]) if tagged else ""
        for node in ast.parse(source).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name):
                default = _literal(ast.unparse(node.value)) if node.value else None
                kind = type(default).__name__
                if isinstance(node, ast.AnnAssign):
                    kind = ast.unparse(node.annotation)
                found[target.id] = Parameter(target.id, kind, default)
    except (ValueError, KeyError, TypeError, AttributeError, SyntaxError) as error:
        raise _not_a_notebook(path, f"{type(error).__name__}: {error}") from error
    except (MemoryError, RecursionError) as error:
        raise _not_a_notebook(path, "an expression is nested too deeply") from error
    return found


def _not_a_notebook(path: StrPath, why: str) -> InputError:
    remedy = "open it in JupyterLab, or fetch it again"
    return InputError(f"{os.fspath(path)}: not a notebook that can be run ({why}); {remedy}")


def _literal(text: str) -> Any:
    """Read a value that is written in Python or JSON; any other text stays a text."""
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return read(text)
    return text


def check_parameters(path: StrPath, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as the notebook declares them: texts of a command line become values.

    Raises
    ------
    InputError
        If the notebook has no parameter of a name, or a value is of another type or not finite.
    """
    known, checked = parameters_of(path), {}
    for name, value in given.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise InputError(f"{Path(path).name}: no parameter {name!r}; it has: {names}")
        kind = known[name].kind.partition("[")[0]
        checked[name] = _value_of_text(value, kind) if isinstance(value, str) else value
        if not _is_of_kind(checked[name], kind):
            what = f"parameter {name} must be a finite {known[name].kind}, got {value!r}"
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
