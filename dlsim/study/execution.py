"""Run one notebook through papermill's API, and never take half of one for the whole.

A notebook is arbitrary code: running one that somebody else wrote means running their
program with your rights. Nothing here is a sandbox. What is guarded is the way in (a parameter
reaches the notebook as code, and papermill only warns of a name that it does not know: names,
types and finiteness are checked before anything runs) and the way out: a notebook appears under
its name only after every cell ran without an error, one hidden in a widget included; after a
failure it is called ``NAME.failed.ipynb``. What it replaces is what dlsim wrote, never anything
else.
"""

import ast
import io
import itertools
import json
import math
import os
import re
import sys
import tempfile
import time
import tokenize
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from dlsim import files
from dlsim.errors import InputError, StudyError
from dlsim.files import FULL, LIMIT, StrPath, read_bytes, read_json, read_text
from dlsim.given import MOST, MOST_WHOLE, flag, instance, number, text, whole
from dlsim.owned import Owned
from dlsim.study.warm import Kernel, without_grammars

#: Is told the number of the code cell that runs and its seconds.
Tell = Callable[[int, float], object]

#: How often a kernel is started that dies before the first cell (ports can race).
STARTS = 3
_START_SECONDS = 120


class Parameter(NamedTuple):
    """One parameter of a notebook, as its parameters cell declares it."""

    name: str
    kind: str
    default: Any
    help: str


def _literal(text: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return parse(text)
    return text


def parameters_of(path: StrPath) -> dict[str, Parameter]:
    """List the parameters of a notebook: what its cell assigns, with the comments on the lines."""
    # not papermill.inspect_notebook: it loses a parameter whose comment holds a "="
    found: dict[str, Parameter] = {}
    try:
        cells = read_json(path)["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
        source = "".join(tagged[0]["source"]) if tagged else ""
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        notes = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
        for node in ast.parse(source).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if not isinstance(target, ast.Name):
                continue
            default = _literal(ast.unparse(node.value)) if node.value else None
            kind = type(default).__name__
            if isinstance(node, ast.AnnAssign):
                kind = ast.unparse(node.annotation)
            note = notes.get(node.end_lineno or node.lineno, "")
            found[target.id] = Parameter(target.id, kind, default, note)
    except (
        ValueError, KeyError, TypeError, AttributeError, SyntaxError, RecursionError,
        tokenize.TokenError, MemoryError,
    ) as error:  # fmt: skip
        deep = isinstance(error, MemoryError)  # of the parser's own stack
        why = "an expression is nested too deeply" if deep else f"{type(error).__name__}: {error}"
        what = f"not a notebook that can be run ({why}); open it in JupyterLab, or fetch it again"
        raise InputError(f"{os.fspath(path)}: {what}") from error
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


def _errors(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every error output below a node of a notebook."""
    if isinstance(node, Mapping):
        if node.get("output_type") == "error":
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _errors(child)


def _lacking(cell: Any) -> str:
    """Name the field that a cell of a notebook lacks or that is of another type; "" for none."""
    if not isinstance(cell, dict):
        return "fields"
    source = cell.get("source")
    lines = source if isinstance(source, list) else [source]
    types = {"cell_type": str, "metadata": dict}
    if cell.get("cell_type") == "code":
        types |= {"outputs": list}
    wrong = [name for name, kind in types.items() if not isinstance(cell.get(name), kind)]
    if not wrong and cell["cell_type"] not in ("code", "markdown", "raw"):
        return "cell_type"
    return wrong[0] if wrong else "" if all(isinstance(text, str) for text in lines) else "source"


def first_problem(path: StrPath) -> str | None:
    """Tell why an executed notebook must not be taken for done."""
    try:
        book = read_json(path, LIMIT)
    except InputError as error:
        return f"unreadable ({error})"
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list) or not isinstance(book.get("metadata", {}), dict):
        return "unreadable (no list of cells, or metadata that is no table)"
    number = 0
    for place, cell in enumerate(cells, start=1):
        lacking = _lacking(cell)
        if lacking:
            return f"unreadable (cell {place} has no usable {lacking})"
        if cell["cell_type"] != "code":
            continue
        number += bool("".join(cell["source"]).strip())
        for output in _errors(cell["outputs"]):
            return f"code cell {number}: {output.get('ename')}: {output.get('evalue')}"
        if cell.get("execution_count") is None and "".join(cell["source"]).strip():
            return f"code cell {number} did not run to its end"
    for output in _errors(book.get("metadata", {}).get("widgets")):
        return f"inside a widget: {output.get('ename')}: {output.get('evalue')}"
    return None


def _began(path: Path) -> bool:
    """Tell whether any cell of a notebook under way was started."""
    with suppress(InputError, KeyError):
        about = [cell["metadata"].get("papermill", {}) for cell in read_json(path, LIMIT)["cells"]]
        return any(one.get("status") not in (None, "pending") for one in about)
    return False


def _is_ours(path: Path) -> bool:
    """Tell whether a notebook is of the suite: it may be begun again, whatever its cells did."""
    with suppress(InputError):
        return path.parent.samefile(files.shared_folder("notebooks"))
    return False


def _execute(
    path: Path, partial: Path, folder: Path, values: dict[str, Any], limit: float, tell: Tell,
    kernel: Kernel | None,
) -> str | None:  # fmt: skip
    """Run all cells; return what broke outside the cells, if anything did."""
    with without_grammars():
        import papermill
    from traitlets.config import Config

    from dlsim.study.watch import ENGINE, Watch

    quiet, again = Config({"KernelManager": {"transport_encryption": "auto"}}), False
    for start in itertools.count(1):
        with Watch(limit, tell, kernel) as watch:
            try:
                papermill.execute_notebook(
                    plain_path(path), plain_path(partial), values, kernel_name="python3",
                    config=quiet, progress_bar=False, start_timeout=_START_SECONDS,
                    cwd=str(folder), engine_name=ENGINE, watch=watch,
                )  # fmt: skip
                return None
            except papermill.PapermillExecutionError:
                return None
            except Exception as error:
                # a kernel that dies raises whatever its transport raises
                if isinstance(error, OSError) and error.errno in FULL:
                    raise
                problem = watch.died(error)
        begun, kernel = _began(partial), None
        if begun and (again or not problem.again or not _is_ours(path)):
            return problem.text
        if not begun and start >= STARTS:
            return problem.text
        again |= begun
        print(f"dlsim: {path.name}: {problem.text}; tried again", file=sys.stderr, flush=True)
        time.sleep(start)
    return None


def _forget_places(partial: Path, name: str) -> bytes:
    """Return a notebook with names where papermill wrote the folders of this machine.

    A sentence that a cell computes comes after the pictures of the cell.
    """
    import nbformat

    book = nbformat.reads(read_text(partial, LIMIT), as_version=4)
    about = book.metadata.get("papermill", {})
    about |= {"input_path": Path(about.get("input_path", name)).name, "output_path": name}
    for cell in book.cells:
        cell.get("outputs", []).sort(key=lambda one: "text/markdown" in one.get("data", {}))
    return (nbformat.writes(book) + "\n").encode()


def run_notebook(
    path: StrPath, out_path: StrPath, parameters: Mapping[str, Any] | None = None, *,
    root: StrPath | None = None, work: StrPath | None = None, cell_limit: float = math.inf,
    tell: Tell = lambda cell, seconds: None, kernel: Kernel | None = None,
) -> Path:  # fmt: skip
    """Run a notebook, somebody else's code with your rights: it appears whole or not at all."""
    source, target = Path(path).absolute(), Path(os.path.abspath(out_path))
    values = check_parameters(source, parameters or {})
    home = Owned(target.parent if root is None else root).claim()
    if not target.is_relative_to(home.folder):
        raise InputError(f"{target}: must lie in {home.folder}, the folder of results")
    place = PurePosixPath(target.relative_to(home.folder).as_posix())
    failed = str(place.with_suffix(".failed.ipynb"))
    own = tempfile.TemporaryDirectory(prefix="dlsim-") if work is None else nullcontext(work)
    with own as folder:
        partial = Path(folder) / target.name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            problem = _execute(source, partial, target.parent, values, cell_limit, tell, kernel)
            problem = problem or first_problem(partial)
            if problem is None:
                home.write(str(place), _forget_places(partial, target.name))
                home.clear(failed)
                for link in re.findall(r"]\(\.\./(data/figures/[\w.-]+)\)", read_text(source)):
                    picture = source.parent.parent / link  # so that links in its text still hold
                    if picture.is_file() and len(place.parts) > 1:
                        home.write(str(place.parent.parent / link), read_bytes(picture))
                return target
            if partial.exists():
                home.write(failed, read_bytes(partial, LIMIT))
                home.clear(str(place))
        except OSError as error:
            raise files.unwritable(target, error) from error
    raise StudyError(f"{source.name} failed: {problem}")
