"""The parameters of a notebook: which there are, and what they may be.

Parameters reach a notebook as code, and papermill only warns of a name that it does not
know. So names, types and finiteness are checked here, before anything runs.
"""

import ast
import contextlib
import io
import json
import os
import tokenize
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dlsim.errors import InputError
from dlsim.files import StrPath, read_json
from dlsim.given import MOST, MOST_WHOLE, flag, instance, number, text, whole


class Parameter(NamedTuple):
    """One parameter of a notebook, as its parameters cell declares it."""

    name: str
    kind: str
    default: Any
    help: str


def _literal(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return parse(text)
    return text


def parameters_of(path: StrPath) -> dict[str, Parameter]:
    """List the parameters of a notebook."""
    # not papermill.inspect_notebook: it loses a parameter whose comment holds a "="
    try:
        cells = read_json(path)["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
        return _declared("".join(tagged[0]["source"])) if tagged else {}
    except (
        ValueError, KeyError, TypeError, AttributeError, SyntaxError, RecursionError,
        tokenize.TokenError,
    ) as error:  # fmt: skip
        what = f"not a notebook that can be run ({type(error).__name__}: {error})"
        raise InputError(f"{os.fspath(path)}: {what}") from error


def _declared(source: str) -> dict[str, Parameter]:
    """List the assignments of a cell with the comments on their lines."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    notes = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    found = {}
    try:
        body = ast.parse(source).body
    except MemoryError:  # of the parser's own stack
        raise ValueError("an expression is nested too deeply") from None
    for node in body:
        target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign):
            target = node.targets[0]
        if not isinstance(target, ast.Name) or not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        default = _literal(ast.unparse(node.value)) if node.value else None
        kind = type(default).__name__
        if isinstance(node, ast.AnnAssign):
            kind = ast.unparse(node.annotation)
        note = notes.get(node.end_lineno or node.lineno, "")
        found[target.id] = Parameter(target.id, kind, default, note)
    return found


def plain_path(path: StrPath) -> str:
    """Return a path in which papermill finds no placeholder to fill in."""
    return os.fspath(path).replace("{", "{{").replace("}", "}}")


def _number(name: str, value: Any) -> float:
    return float(number(name, value, -MOST))


_whole = partial(whole, low=-MOST_WHOLE)
_CHECKS: dict[str, Any] = {"int": _whole, "float": _number, "bool": flag, "str": text}


def _any(value: Any) -> Any:
    """Return a value made of None, bools, finite numbers, texts, lists and dicts."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, list | tuple):
        return [_any(item) for item in value]
    if isinstance(value, Mapping):
        return {text("a key", key): _any(item) for key, item in value.items()}
    return (_whole if hasattr(value, "__index__") else _number)("it", value)


def _typed(value: Any, kind: ast.expr) -> Any:
    """Return a value as the annotation wants it, or raise ValueError or TypeError."""
    name = kind.value if isinstance(kind, ast.Subscript) else kind
    word = name.id if isinstance(name, ast.Name) else ""
    if word in _CHECKS:
        return _CHECKS[word]("it", value)
    if word not in ("list", "dict"):
        return _any(value)
    value = instance("it", _any(value), list if word == "list" else dict)
    if not isinstance(kind, ast.Subscript):
        return value
    inner = kind.slice.elts[-1] if isinstance(kind.slice, ast.Tuple) else kind.slice
    if word == "list":
        return [_typed(item, inner) for item in value]
    return {key: _typed(item, inner) for key, item in value.items()}


def _from_text(text: str, kind: str) -> Any:
    """Parse what a command line gives for anything but a text."""
    words = {"true": True, "yes": True, "false": False, "no": False}
    if kind == "bool" and text.lower() in words:
        return words[text.lower()]
    if kind.startswith("dict") and "=" in text and "{" not in text:
        pairs = (pair.partition("=") for pair in text.split(","))
        return {key.strip(): _literal(value.strip()) for key, _, value in pairs}
    return _literal(text)


def check_parameters(path: StrPath, given: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse parameters that a notebook does not know or that have the wrong type."""
    known, checked = parameters_of(path), {}
    for name, value in given.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise InputError(f"{Path(path).name}: no parameter {name!r}; it has: {names}")
        kind = known[name].kind
        try:
            parsed = _from_text(value, kind) if isinstance(value, str) and kind != "str" else value
            checked[name] = _typed(parsed, ast.parse(kind, mode="eval").body)
        except (ValueError, TypeError, SyntaxError, OverflowError) as error:
            what = f"parameter {name} must be a finite {kind}, got {value!r}"
            raise InputError(f"{Path(path).name}: {what}") from error
    return checked
