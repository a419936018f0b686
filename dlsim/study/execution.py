"""Run one notebook through papermill's API, and never take half of one for the whole.

A notebook is arbitrary code: running one that somebody else wrote means running their
program with your rights. Nothing here is a sandbox. What is guarded is the way in (an
unknown or ill-typed parameter is refused, since parameters reach the notebook as code)
and the way out: a notebook appears under its name only after every cell ran without
an error, one hidden in a widget included. Until then it is called
``NAME.partial.ipynb``, and after a failure ``NAME.failed.ipynb``.
"""

import contextlib
import errno
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dlsim.errors import InputError, StudyError
from dlsim.files import StrPath, write_bytes, write_text
from dlsim.study.parameters import check_parameters, plain_path

#: Environment variable that names the file in which a notebook's sweeps report.
PROGRESS_VARIABLE = "DLSIM_PROGRESS"
#: How often a kernel is started that dies before the first cell (ports can race).
STARTS = 3
_START_SECONDS = 120
#: What the system says where the disk is full or fails.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _errors(node: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every error output below a node of a notebook."""
    if isinstance(node, Mapping):
        if node.get("output_type") == "error":
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _errors(child)


def first_problem(path: StrPath) -> str | None:
    """Tell why an executed notebook must not be taken for done.

    Parameters
    ----------
    path : path
        The executed notebook.

    Returns
    -------
    str or None
        What went wrong: unreadable, a cell with an error or that did not run, an
        error inside a widget, which papermill itself does not see. None if nothing.
    """
    import nbformat

    try:
        book = nbformat.read(os.fspath(path), as_version=4)
        cells = [cell for cell in book.cells if cell.cell_type == "code" and cell.source.strip()]
    except Exception as error:
        # whatever a parser of half-written JSON may raise
        return f"unreadable ({error})"
    for number, cell in enumerate(cells, start=1):
        for output in _errors(cell.outputs):
            return f"code cell {number}: {output.get('ename')}: {output.get('evalue')}"
        if cell.execution_count is None:
            return f"code cell {number} did not run to its end"
    for output in _errors(book.metadata.get("widgets", {})):
        return f"inside a widget: {output.get('ename')}: {output.get('evalue')}"
    return None


def _began(path: Path) -> bool:
    """Tell whether any cell of a notebook under way was started."""
    import nbformat

    try:
        book = nbformat.read(path, as_version=4)
    except Exception:
        return False
    status = [cell.metadata.get("papermill", {}).get("status") for cell in book.cells]
    return any(word not in (None, "pending") for word in status)


def _execute(path: Path, partial: Path, values: dict[str, Any]) -> str | None:
    """Run all cells; return what broke outside the cells, if anything did."""
    import papermill
    from traitlets.config import Config

    quiet = Config({"KernelManager": {"transport_encryption": "auto"}})
    for start in range(1, STARTS + 1):
        try:
            papermill.execute_notebook(
                plain_path(path), plain_path(partial), values, kernel_name="python3", config=quiet,
                progress_bar=False, start_timeout=_START_SECONDS, cwd=str(partial.parent),
            )  # fmt: skip
        except papermill.PapermillExecutionError:
            return None
        except Exception as error:
            # a kernel that dies raises whatever its transport raises
            if isinstance(error, OSError) and error.errno in _FULL:
                raise
            if start == STARTS or _began(partial):
                return f"{type(error).__name__}: {error}"
            time.sleep(start)
        else:
            return None
    return None


@contextlib.contextmanager
def _told(progress: StrPath | None) -> Iterator[None]:
    """Tell the kernel, through the environment, where sweeps report."""
    before = os.environ.get(PROGRESS_VARIABLE)
    if progress is not None:
        os.environ[PROGRESS_VARIABLE] = os.fspath(progress)
    try:
        yield
    finally:
        if before is not None:
            os.environ[PROGRESS_VARIABLE] = before
        elif progress is not None:
            del os.environ[PROGRESS_VARIABLE]


def _forget_places(partial: Path, name: str) -> None:
    """Leave names where papermill wrote the folders of this machine."""
    import nbformat

    book = nbformat.read(partial, as_version=4)
    about = book.metadata.get("papermill", {})
    about |= {"input_path": Path(about.get("input_path", name)).name, "output_path": name}
    write_text(partial, nbformat.writes(book) + "\n")


def _bring_pictures(path: Path, target: Path) -> None:
    """Copy the pictures that a notebook's text links to, so that the links still hold."""
    for link in re.findall(r"]\((\.\./data/figures/[\w.-]+)\)", path.read_text(encoding="utf-8")):
        source, copy = path.parent / link, target.parent / link
        if source.is_file() and not copy.exists():
            write_bytes(copy, source.read_bytes())


def run_notebook(
    path: StrPath,
    out_path: StrPath,
    parameters: Mapping[str, Any] | None = None,
    progress: StrPath | None = None,
) -> Path:
    """Run one notebook; its result appears whole under its name or not at all.

    The kernel works in the folder of the result. Running a notebook is running
    somebody's code with your rights.

    Parameters
    ----------
    path : path
        The notebook, which stays as it is.
    out_path : path
        The executed notebook, ending in .ipynb.
    parameters : mapping, optional
        As for `check_parameters`.
    progress : path, optional
        File in which the notebook's sweeps report how far they are.

    Returns
    -------
    Path
        The executed notebook.

    Raises
    ------
    InputError
        For a parameter that is refused, or a folder that cannot be written to.
    StudyError
        For a notebook that failed, which is kept as ``NAME.failed.ipynb``, or a full disk.
    """
    values = check_parameters(path, parameters or {})
    target = Path(out_path).absolute()
    partial, failed = (target.with_suffix(f".{word}.ipynb") for word in ("partial", "failed"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.unlink(missing_ok=True)
        with _told(progress):
            problem = _execute(Path(path).absolute(), partial, values)
        problem = problem or first_problem(partial)
        if problem is None:
            _forget_places(partial, target.name)
            os.replace(partial, target)
            failed.unlink(missing_ok=True)
            _bring_pictures(Path(path).absolute(), target)
            return target
        if partial.exists():
            os.replace(partial, failed)
            target.unlink(missing_ok=True)
    except OSError as error:
        what = f"{target}: cannot be written ({error.strerror})"
        if error.errno in _FULL:
            raise StudyError(f"{what}; free some space on the disk and run again") from error
        raise InputError(f"{what}; choose another folder") from error
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
    raise StudyError(f"{Path(path).name} failed: {problem}")
