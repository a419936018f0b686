"""Run one notebook through papermill's API, and never take half of one for the whole.

A notebook is arbitrary code: running one that somebody else wrote means running their
program with your rights. Nothing here is a sandbox. What is guarded is the way in (an
unknown or ill-typed parameter is refused, since parameters reach the notebook as code)
and the way out: a notebook appears under its name only after every cell ran without
an error, one hidden in a widget included; after a failure it is called
``NAME.failed.ipynb``. What it replaces is what dlsim wrote, never anything else.
"""

import itertools
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from dlsim import files
from dlsim.errors import InputError, StudyError
from dlsim.files import FULL, LIMIT, StrPath, read_bytes, read_json, read_text
from dlsim.owned import Owned
from dlsim.study.parameters import check_parameters, plain_path
from dlsim.study.warm import Kernel, without_grammars

#: Is told the number of the code cell that runs and its seconds.
Tell = Callable[[int, float], object]

#: Environment variable that names the file in which a notebook's sweeps report.
PROGRESS_VARIABLE = "DLSIM_PROGRESS"
#: How often a kernel is started that dies before the first cell (ports can race).
STARTS = 3
_START_SECONDS = 120


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
    import nbformat

    try:
        book = nbformat.reads(read_text(path, LIMIT), as_version=4)
    except Exception:
        return False
    status = [cell.metadata.get("papermill", {}).get("status") for cell in book.cells]
    return any(word not in (None, "pending") for word in status)


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
    """Return a notebook with names where papermill wrote the folders of this machine."""
    import nbformat

    book = nbformat.reads(read_text(partial, LIMIT), as_version=4)
    about = book.metadata.get("papermill", {})
    about |= {"input_path": Path(about.get("input_path", name)).name, "output_path": name}
    return (nbformat.writes(book) + "\n").encode()


def _bring_pictures(path: Path, place: PurePosixPath, home: Owned) -> None:
    """Copy the pictures that a notebook's text links to, so that the links still hold."""
    for link in re.findall(r"]\(\.\./(data/figures/[\w.-]+)\)", read_text(path)):
        source = path.parent.parent / link
        if source.is_file() and len(place.parts) > 1:
            home.write(str(place.parent.parent / link), read_bytes(source))


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
                _bring_pictures(source, place, home)
                return target
            if partial.exists():
                home.write(failed, read_bytes(partial, LIMIT))
                home.clear(str(place))
        except OSError as error:
            raise files.unwritable(target, error) from error
    raise StudyError(f"{source.name} failed: {problem}")
