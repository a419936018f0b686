"""Run notebooks with papermill: each in a process of its own, several at once.

A notebook is arbitrary code: running the notebook of another person means running a program of that
person with your rights. Nothing here is a sandbox. An executed notebook appears under its name when
every cell has run without an error; otherwise the part that was executed appears as
``NAME.failed.ipynb``. A notebook that ended well is not run again as long as its
bytes, its parameters, the package and its results are the same.

Parameters are what the tagged cell of a notebook assigns. Values are checked here, since papermill
only warns of a name that it does not know, and takes a value of any type.
"""

import ast
import contextlib
import functools
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dlsim import files, processes, progress
from dlsim.cache import package_digest
from dlsim.errors import InputError
from dlsim.files import MAX_TABLE_BYTES, StrPath, read_bytes, read_json, read_text
from dlsim.output_folder import (
    WRITTEN_FILES_VARIABLE,
    OutputFolder,
    content_digest,
    read_json_lines,
)
from dlsim.study import dask_cluster, sweeps
from dlsim.study.results import FORMAT_VARIABLE, LATEX_VARIABLE, PICTURE_FORMATS, paper_of
from dlsim.validate import number, one_of

#: Seconds that a cell may run, by scale.
CELL_SECONDS = {"quick": 1800.0, "full": 6 * 3600.0}
#: Seconds between two looks at a running notebook, and between two reports of what it computes.
POLL_SECONDS, REPORT_SECONDS = 0.1, 30.0
#: The folder of executed notebooks in a folder of results, and that of running ones.
NOTEBOOKS, RUNNING_FOLDER = "notebooks", ".dlsim-running"
#: How the name of a notebook ends that did not run to its end.
FAILED = ".failed.ipynb"
#: The notebooks of the suite that take longest begin first, so that no core is idle at the end.
#: Those that stand side by side compile different engines: one would wait for the other.
LONGEST_FIRST = (
    "40-steady-state",
    "60-bricks",
    "30-inserted-idle-time",
    "50-cpu-gpu",
    "20-mcdf",
    "41-steady-state-beyond",
    "31-inserted-idle-time-beyond",
    "61-bricks-beyond",
    "51-cpu-gpu-beyond",
    "21-mcdf-beyond",
    "10-theory",
    "80-your-own",
    "00-start-here",
    "85-validation",
    "66-your-platform",
    "70-explore",
    "75-lesson",
    "65-your-log",
)
#: Results do not depend on these parameters.
_WITHOUT_EFFECT = ("jobs", "out")


@dataclass(frozen=True)
class NotebookResult:
    """What became of one notebook of a batch."""

    name: str  # without its ending
    path: Path | None  # the executed notebook, or the failed one
    status: str  # "ok", "failed" or "interrupted"
    seconds: float  # how long it ran
    error: str = ""  # what went wrong
    reused: bool = False  # whether an earlier, unchanged result was taken


def find_notebook(name: StrPath) -> Path:
    """Find a notebook by path, by full name (``20-mcdf``) or by name without its number."""
    if str(name).endswith(".ipynb"):
        if os.path.isfile(name):
            return Path(name).absolute()
        raise InputError(f"{name}: no such notebook; check the path")
    known = files.suite_notebooks()
    full_name = {paper_of(stem): stem for stem in reversed(known)}.get(str(name), str(name))
    return known[one_of("notebook", full_name, known)]


# ------------------------------------------------------------ one notebook, seen from outside


@dataclass(frozen=True)
class _Job:
    """One notebook of a batch and what it runs with."""

    source: Path
    home: OutputFolder
    values: dict[str, Any]
    cell_seconds: float
    environment: dict[str, str]
    folder: Path | None  # the current folder of the kernel; None: that of the executed notebook

    @property
    def name(self) -> str:
        return self.source.stem

    @property
    def work(self) -> Path:
        """The folder in which it runs, gone when it has ended."""
        return self.home.folder / RUNNING_FOLDER / self.name

    @property
    def target(self) -> Path:
        return self.home.folder / NOTEBOOKS / self.source.name

    @property
    def is_scorecard(self) -> bool:
        """Whether it reads the results of the other notebooks, and runs after them."""
        return self.name.startswith("90-")

    def key(self) -> dict[str, Any]:
        """Return all that its results depend on."""
        results = {"results": _results_digest(self)} if self.is_scorecard else {}
        return results | {
            "notebook": content_digest(without_outputs(read_bytes(self.source))),
            "sources": package_digest(),
            "material": _material_digest(),
            "figures": self.environment.get(FORMAT_VARIABLE, "png"),
            "latex": LATEX_VARIABLE in self.environment,
            "parameters": {k: v for k, v in self.values.items() if k not in _WITHOUT_EFFECT},
        }


def without_outputs(data: bytes) -> bytes:
    """Return a notebook without stored outputs and what is recorded of them.

    A run begins with it: a cell that it does not reach has no output of an earlier one.
    """
    try:
        book = json.loads(data)
        for cell in book["cells"]:
            cell["metadata"].pop("dlsim", None)
            if cell["cell_type"] == "code":
                cell["outputs"], cell["execution_count"] = [], None
        for name in ("dlsim", "widgets"):
            book["metadata"].pop(name, None)
        return json.dumps(book).encode()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return data  # no notebook: it fails with its own words when it is run


@functools.cache
def _material_digest() -> str:
    """Return a digest of the data that notebooks of the suite read."""
    data = files.shared_folder("data")
    paths = sorted(path for path in data.rglob("*") if path.suffix in (".csv", ".toml"))
    lines = [
        f"{path.relative_to(data).as_posix()} {content_digest(read_bytes(path))}" for path in paths
    ]
    return content_digest("\n".join(lines).encode())


def _results_digest(job: _Job) -> str:
    """Return a digest of the results that a scorecard reads: verdicts, and the names of files."""
    root, own = job.home.folder, (_stamp_name(job), f"{NOTEBOOKS}/{job.source.name}")

    def names_of(*patterns: str) -> list[str]:
        paths = (path for pattern in patterns for path in root.glob(pattern))
        names = (path.relative_to(root).as_posix() for path in paths)
        return sorted(name for name in names if name not in own)

    lines = names_of(f"{NOTEBOOKS}/*.ipynb", "figures/*")
    for name in names_of("data/*-claims.csv", f"{NOTEBOOKS}/.*.stamp.json"):
        lines.append(f"{name} {job.home.file_digest(name)}")
    return content_digest("\n".join(lines).encode())


def run_notebook(job: _Job, stop: threading.Event) -> NotebookResult:
    """Run a notebook in a process of its own, and put the result into place when it is whole."""
    begun, mark = time.time(), secrets.token_hex(8)
    if stop.is_set():
        return NotebookResult(job.name, None, "interrupted", 0.0)
    try:
        job.work.mkdir(parents=True)
        process = _start(job, mark)
        try:
            while process.poll() is None and not stop.wait(POLL_SECONDS):
                pass
        finally:
            processes.kill_run(mark)  # the process, its kernel, and what the kernel started
            process.wait()
            assert process.stdin
            process.stdin.close()
        seconds = time.time() - begun
        if stop.is_set():
            return NotebookResult(job.name, None, "interrupted", seconds)
        try:
            return _put_into_place(job, process.returncode, seconds)
        except InputError as error:  # a person changed a result while the notebook ran
            what = f"{job.source.name} failed: {error}"
            return NotebookResult(job.name, None, "failed", seconds, what)
    except OSError as error:
        raise files.write_error(job.target, error) from error
    finally:
        shutil.rmtree(job.work, ignore_errors=True)


def _start(job: _Job, mark: str) -> "subprocess.Popen[bytes]":
    """Start the process of a notebook; its standard input closes when this process is gone."""
    copy = job.work / job.source.name
    copy.write_bytes(without_outputs(read_bytes(job.source, MAX_TABLE_BYTES)))
    request = {
        "notebook": str(copy),
        "values": job.values,
        "cell_seconds": job.cell_seconds,
        "folder": str(job.folder or job.target.parent),
        "mark": mark,
    }
    (job.work / "request.json").write_text(json.dumps(request))
    job.target.parent.mkdir(parents=True, exist_ok=True)
    environment = processes.tagged_env(mark) | job.environment
    environment |= {
        progress.PROGRESS_VARIABLE: str(job.work / "progress.json"),
        WRITTEN_FILES_VARIABLE: str(job.work / "wrote"),
        "TMPDIR": str(job.work),
    }
    environment.pop("MPLBACKEND", None)  # pictures belong into the notebook
    request_file = str(job.work / "request.json")
    command = processes.module_command("dlsim.study.notebook_process", request_file)
    with (job.work / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )


def _put_into_place(job: _Job, code: int, seconds: float) -> NotebookResult:
    """Move what the process left to where it belongs, and record it."""
    executed, error_file = job.work / "executed.ipynb", job.work / "error"
    target, failed = (f"{NOTEBOOKS}/{job.name}{end}" for end in (".ipynb", FAILED))
    if code == 0:
        job.home.write(target, read_bytes(executed, MAX_TABLE_BYTES))
        job.home.remove(failed)
        _copy_linked_pictures(job)
        _write_stamp(job, seconds)
        return NotebookResult(job.name, job.target, "ok", seconds)
    if error_file.exists():
        error = read_text(error_file)
    else:
        log = (job.work / "log").read_text("utf-8", "replace").strip()
        error = f"its process was killed by signal {-code}" if code < 0 else log[-500:]
    path = None
    if executed.exists():
        path = job.home.write(failed, read_bytes(executed, MAX_TABLE_BYTES))
        job.home.remove(target)
    return NotebookResult(job.name, path, "failed", seconds, f"{job.source.name} failed: {error}")


def _copy_linked_pictures(job: _Job) -> None:
    """Copy the pictures of the suite that the text links to, so that its links still hold."""
    for link in set(re.findall(r"]\(\.\./(data/figures/[\w.-]+)\)", read_text(job.source))):
        picture = job.source.parent.parent / link
        if picture.is_file():
            job.home.write(link, read_bytes(picture))


def _stamp_name(job: _Job) -> str:
    return f"{NOTEBOOKS}/.{job.name}.stamp.json"


def _write_stamp(job: _Job, seconds: float) -> None:
    """Record the inputs of a notebook's run, and the digests of all results that it wrote."""
    wrote = {row["file"] for row in read_json_lines(job.work / "wrote") if "file" in row}
    names = sorted(wrote | {f"{NOTEBOOKS}/{job.source.name}"})
    contents = {name: job.home.file_digest(name) for name in names}
    stamp = job.key() | {"seconds": round(seconds, 3), "files": contents}
    text = json.dumps(stamp, indent=1, sort_keys=True) + "\n"
    job.home.write(_stamp_name(job), text.encode())


def _reusable(job: _Job) -> NotebookResult | None:
    """Return the result of an earlier run if all that went in and came out is the same."""
    try:
        stamp = read_json(job.home.folder / _stamp_name(job))
        if any(stamp[name] != value for name, value in job.key().items()):
            return None
        seconds, contents = float(stamp["seconds"]), stamp["files"].items()
        changed = [name for name, sha256 in contents if job.home.file_digest(name) != sha256]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if changed:
        what = f"{changed[0]} is not as it was left; run again"
        print(f"{job.name}: {what}", file=sys.stderr, flush=True)
        return None
    return NotebookResult(job.name, job.target, "ok", seconds, reused=True)


# ------------------------------------------------------------------------------- a batch


def run_all(
    names: Sequence[StrPath],
    *,
    out: StrPath = "results/latest",
    parameters: Mapping[str, Any] | None = None,
    common: Mapping[str, Any] | None = None,
    readings: Mapping[str, Mapping[str, Any]] | None = None,
    jobs: int = 0,
    force: bool = False,
    cell_seconds: float | None = None,
    figures: str = "png",
    latex: bool = False,
    dask: str = "",
    folder: Path | None = None,
    on_end: Callable[[NotebookResult], object] | None = None,
) -> list[NotebookResult]:
    """Run notebooks, several at once; those whose name starts with 90 run after the others.

    Parameters
    ----------
    names : sequence of str or path
        Notebooks as `find_notebook` takes them.
    out : path
        Folder of results, as `dlsim.output_folder.OutputFolder` takes it.
    parameters, common : mapping, optional
        Parameters by name. Every notebook must know those of `parameters`.
    readings : mapping, optional
        The parameter ``reading`` of single notebooks, by their names.
    jobs : int
        Notebooks at once, or workers of a single notebook's sweeps; 0 for all cores.
    force : bool
        Whether notebooks run again if nothing changed.
    cell_seconds : float, optional
        Seconds that a cell may run, 0 for no limit; by default `CELL_SECONDS` of the scale.
    figures : {"png", "svg", "pdf"}
        A format in which every picture is written, beside PNG.
    latex : bool
        Whether every table is written as LaTeX, too.
    dask : str
        A scheduler of Dask, as `dlsim.study.dask_cluster.connect` takes it, on which sweeps run.
    folder : path, optional
        Current folder of the kernels; by default that of the executed notebooks.
    on_end : callable, optional
        Called with each result as soon as it is there, while others run.

    Returns
    -------
    list of NotebookResult
        In the order of the names. An interrupt ends the kernels and returns what there is.

    Raises
    ------
    InputError
        For a name, a parameter or a folder that cannot be used, or if a person changed a file that
        dlsim wrote there; nothing has run then.
    """
    count = sweeps.count_workers(jobs)
    paths = list(dict.fromkeys(find_notebook(name) for name in names))
    home = OutputFolder(out)
    given = {"out": str(home.folder), "jobs": 1, **(common or {})}
    asked = dict(parameters or {})
    limit = _cell_limit(str((given | asked).get("scale", "quick")), cell_seconds)
    picture_format = one_of("figures", figures, PICTURE_FORMATS)
    environment = {FORMAT_VARIABLE: picture_format, sweeps.JOBS_VARIABLE: "1"}
    environment |= {LATEX_VARIABLE: "1"} if latex else {}
    environment |= {dask_cluster.DASK_VARIABLE: dask} if dask else {}
    plan = []
    for path in paths:
        own = {"reading": readings[path.stem]} if readings and path.stem in readings else {}
        values = _values_of(path, given | own, asked)
        plan.append(_Job(path, home, values, limit, environment, folder))
    if not plan:
        return []
    with home.lock():
        return _run_plan(plan, count, force, on_end or bool)


def _cell_limit(scale: str, cell_seconds: float | None) -> float:
    """Return the seconds that a cell may run: those that are asked for, or those of the scale."""
    if cell_seconds is None:
        return CELL_SECONDS.get(scale, CELL_SECONDS["full"])
    return number("cell_seconds", cell_seconds, 0, rule="seconds, at least 0 (0: no limit)")


def _values_of(path: Path, given: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a notebook: what it knows of the given ones, all that are asked."""
    known = parameters_of(path)
    values = {name: value for name, value in given.items() if name in known}
    return check_parameters(path, {**values, **asked})


def _require_unchanged(plan: Sequence[_Job]) -> None:
    """Refuse results that a person changed, before anything runs."""
    home = plan[0].home
    planned = {f"{NOTEBOOKS}/{job.name}{end}" for job in plan for end in (".ipynb", FAILED)}
    home.require_unchanged(*sorted(planned | {name for name, _ in home.recorded()}))
    running = home.folder / RUNNING_FOLDER
    if running.is_symlink() or running.is_file():
        home.require_unchanged(RUNNING_FOLDER)


def _run_plan(
    plan: Sequence[_Job], count: int, force: bool, on_end: Callable[[NotebookResult], object]
) -> list[NotebookResult]:
    """Take over the results that are there, and run the rest; scorecards wait for the others."""
    results: dict[str, NotebookResult] = {}
    display, running = _Display(len(plan)), plan[0].home.folder / RUNNING_FOLDER
    _require_unchanged(plan)
    shutil.rmtree(running, ignore_errors=True)  # of a run that was killed

    def end(result: NotebookResult) -> None:
        results[result.name] = result
        display.end(result)
        on_end(result)

    try:
        for of_scorecards in (False, True):
            wave = [job for job in plan if job.is_scorecard == of_scorecards]
            todo = _take_over(wave, force, end)
            if "interrupted" not in {result.status for result in results.values()}:
                _run_wave(todo, count, display, end)
    finally:
        shutil.rmtree(running, ignore_errors=True)
    never = (NotebookResult(job.name, None, "interrupted", 0.0) for job in plan)
    return [results.get(result.name, result) for result in never]


def _take_over(
    wave: Sequence[_Job], force: bool, end: Callable[[NotebookResult], None]
) -> list[_Job]:
    """Report the results that are there already; return the other notebooks, the longest first."""
    found = {job.name: None if force else _reusable(job) for job in wave}
    for result in filter(None, found.values()):
        end(result)
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    todo = [job for job in wave if not found[job.name]]
    return sorted(todo, key=lambda job: rank.get(job.name, len(rank)))


def _run_wave(
    wave: Sequence[_Job], count: int, display: "_Display", end: Callable[[NotebookResult], None]
) -> None:
    """Run notebooks at the same time, each in a thread that waits for its process."""
    if len(wave) == 1:
        wave = [_with_workers(wave[0], count)]
    stop, tasks = threading.Event(), dict[Future[NotebookResult], _Job]()
    ended: set[Future[NotebookResult]] = set()

    def collect() -> None:
        for task in tasks:
            if task.done() and task not in ended:
                ended.add(task)
                end(task.result())

    with ThreadPoolExecutor(count) as pool:
        try:
            for job in wave:
                tasks[pool.submit(run_notebook, job, stop)] = job
            while not all(task.done() for task in tasks):
                wait(tasks, timeout=2 * POLL_SECONDS)
                for task, job in tasks.items():
                    if task.running():
                        display.show(job)
                collect()
        except BaseException as error:
            stop.set()
            if not isinstance(error, KeyboardInterrupt):
                raise
            wait(tasks)
        collect()


def _with_workers(job: _Job, count: int) -> _Job:
    """Return a notebook that runs alone: its sweeps get all workers, or all of the cluster."""
    values = dict(job.values)
    if "jobs" in values:
        values["jobs"] = 0 if dask_cluster.DASK_VARIABLE in job.environment else count
    return replace(
        job, values=values, environment=job.environment | {sweeps.JOBS_VARIABLE: str(count)}
    )


class _Display:
    """Lines on standard error about the notebooks that run, not about those that are reused."""

    def __init__(self, total: int) -> None:
        self.total, self.ended = total, 0
        self.due: dict[str, float] = {}

    def show(self, job: _Job) -> None:
        """Say that a notebook has begun, and now and then what its sweeps reported last."""
        now = time.monotonic()
        if job.name not in self.due:
            _say(f"{job.name}: begins")
        elif now < self.due[job.name]:
            return
        else:
            _say(f"{job.name}: {_reported(job)}")
        self.due[job.name] = now + REPORT_SECONDS

    def end(self, result: NotebookResult) -> None:
        """Say what became of a notebook, and how many have ended."""
        if result.reused:
            self.total -= 1
            return
        self.ended += 1
        seconds, count = f"{result.seconds:.0f} s", f"{self.ended} of {self.total} done"
        error = f": {result.error}" if result.error else ""
        _say(f"{result.name}: {result.status} in {seconds}, {count}{error}")


def _say(line: str) -> None:
    if sys.stderr:  # None where it is closed
        print(line, file=sys.stderr, flush=True)


def _reported(job: _Job) -> str:
    """Return what the sweeps of a running notebook reported last."""
    try:
        news = read_json(job.work / "progress.json")
        return f"{news['label']}, {news['done']:.0f} of {news['total']:.0f}"
    except (OSError, ValueError, TypeError, KeyError):
        return "running"


# ------------------------------------------------------------------ parameters of a notebook

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
