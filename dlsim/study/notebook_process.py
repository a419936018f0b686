"""The process of one notebook: execute it with papermill, and leave the result or an error.

`dlsim.study.notebooks` starts it with a request in a file, and puts the result into place. pandas
is not imported, since each notebook of a batch has such a process: `dlsim.files` is imported late.
"""

import contextlib
import json
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dlsim import processes
from dlsim.errors import DlsimError, InputError, StudyError

#: Seconds that a kernel may take to start, and between two saves of a notebook that runs.
START_SECONDS, SAVE_SECONDS = 120, 30.0
#: The name of papermill's engine that saves seldom.
ENGINE = "dlsim"


def main(request_file: str) -> int:
    """Run the notebook that the batch asks for, and leave its result or an error beside it."""
    request = json.loads(Path(request_file).read_text())
    work = Path(request_file).parent
    threading.Thread(target=_end_with_parent, args=[request["mark"]], daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the batch decides
    try:
        _execute(request, work)
    except DlsimError as error:
        (work / "error").write_text(str(error))
        return 1
    return 0


def _end_with_parent(mark: str) -> None:
    """End this process and all that it started when the batch is gone."""
    while os.read(0, 4096):
        pass
    processes.kill_run(mark)
    os._exit(1)


def _execute(request: Mapping[str, Any], work: Path) -> None:
    """Execute a notebook with papermill; refuse to take half of it for the whole."""
    _make_kernel(work / "jupyter" / "kernels" / "python3", request["folder"])
    os.environ["JUPYTER_PATH"] = str(work / "jupyter")
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # takes a second to import
    import nbformat
    import papermill
    from nbclient.exceptions import CellTimeoutError
    from traitlets.config import Config

    executed = work / "executed.ipynb"
    _register_engine()
    try:
        papermill.execute_notebook(
            _plain_path(request["notebook"]),
            _plain_path(executed),
            request["values"],
            engine_name=ENGINE,
            kernel_name="python3",
            progress_bar=False,
            cwd=request["folder"],
            start_timeout=START_SECONDS,
            execution_timeout=math.ceil(request["cell_seconds"]) or None,  # nbclient takes an int
            config=Config({"KernelManager": {"transport_encryption": "auto"}}),
        )
    except papermill.PapermillExecutionError:
        pass  # the executed notebook holds the error
    except CellTimeoutError as error:
        seconds = f"{request['cell_seconds']:g} s (--cell-seconds)"
        what = f"code cell {_cells_begun(executed)} ran longer than its limit of {seconds}"
        raise StudyError(what) from error
    except OSError as error:
        from dlsim.files import write_error

        raise write_error(executed, error) from error
    except Exception as error:  # a kernel that dies raises what its transport raises
        where = f"code cell {_cells_begun(executed)}: " if executed.exists() else ""
        raise StudyError(f"{where}{type(error).__name__}: {error}") from error
    book = nbformat.read(executed, as_version=4)
    name = Path(request["notebook"]).name
    book.metadata["papermill"] |= {"input_path": name, "output_path": name}
    nbformat.write(book, executed)
    if problem := first_problem(book):
        raise StudyError(problem)


def _register_engine() -> None:
    """Register papermill's engine with fewer saves, under the name `ENGINE`.

    papermill saves the notebook before and after every cell, which takes as long as all else that
    it does. This engine saves it when it ends, with or without an error, and now and then before.
    """
    from papermill.engines import NBClientEngine, papermill_engines

    class SparingEngine(NBClientEngine):
        @classmethod
        def execute_managed_notebook(cls, nb_man: Any, kernel_name: str, **options: Any) -> Any:
            save, saved_at = nb_man.save, time.monotonic()

            def save_sometimes(**_: Any) -> None:
                nonlocal saved_at
                if time.monotonic() - saved_at > SAVE_SECONDS:
                    save()
                    saved_at = time.monotonic()

            nb_man.save = save_sometimes
            try:
                return super().execute_managed_notebook(nb_man, kernel_name, **options)
            finally:
                nb_man.save = save  # by which papermill saves what there is at the end

    papermill_engines.register(ENGINE, SparingEngine)


def kernel_of_this_python(*options: str) -> bytes:
    """Return the file kernel.json of a kernel that runs this very Python with this very dlsim.

    Its folder has to be called python3 and to come first on JUPYTER_PATH. The kernel of another
    Python that has the same name is then not started.
    """
    line = f"--IPKernelApp.exec_lines=exec({processes.code_to_import_dlsim()!r}, {{}})"
    words = ["-m", "ipykernel_launcher", "-f", "{connection_file}", line, *options]
    names = {"display_name": "Python 3", "language": "python"}
    return json.dumps({"argv": [sys.executable, "-P", *words], **names}).encode()


def _make_kernel(folder: Path, imports_from: str) -> None:
    """Describe a kernel that imports from a folder after all packages.

    A file called random.py in that folder then changes nothing.
    """
    append = f"__import__('sys').path.append({imports_from!r})"
    options = "--IPKernelApp.ignore_cwd=True", f"--IPKernelApp.exec_lines={append}"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_bytes(kernel_of_this_python(*options))


def _plain_path(path: str | os.PathLike[str]) -> str:
    """Return a path in which papermill finds no placeholder to fill in."""
    return os.fspath(path).replace("{", "{{").replace("}", "}}")


def _cells_begun(executed: Path) -> int:
    """Return the number of the code cell that was the last to begin."""
    from dlsim.files import MAX_TABLE_BYTES, read_json

    with contextlib.suppress(InputError, KeyError, TypeError):
        cells = [
            c for c in read_json(executed, MAX_TABLE_BYTES)["cells"] if c["cell_type"] == "code"
        ]
        begun = [cell["metadata"].get("papermill", {}).get("start_time") for cell in cells]
        return sum(bool(time) for time in begun)
    return 0


def first_problem(book: Any) -> str:
    """Return why an executed notebook is not whole: an error, or a cell that did not run.

    papermill does not notice an error inside the callback of a widget.
    """
    number = 0
    for cell in book.cells:
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        number += 1
        for output in cell.outputs:
            if output.output_type == "error":
                return f"code cell {number}: {output.ename}: {output.evalue}"
        if cell.execution_count is None:
            return f"code cell {number} did not run to its end"
    states = book.metadata.get("widgets", {}).values()
    widgets = [one for kind in states for one in kind.get("state", {}).values()]
    for widget in widgets:
        for output in widget.get("state", {}).get("outputs", ()):
            if output.get("output_type") == "error":
                return f"inside a widget: {output.get('ename')}: {output.get('evalue')}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
