"""Run a batch of notebooks: a process each, progress bars, nothing done twice.

Every notebook runs in a process group of its own that ends when this process does. A
notebook that ended well leaves a stamp beside its result; as long as its bytes, its
parameters and the sources of dlsim stay the same, it is not run again.

A notebook is arbitrary code: running one that somebody else wrote means running their
program with your rights. Nothing here is a sandbox.
"""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dlsim.errors import DlsimError, InputError
from dlsim.files import StrPath, shared_folder, write_text
from dlsim.kernel import source_digest
from dlsim.study import clusters, workers
from dlsim.study.execution import PROGRESS_VARIABLE, first_problem, run_notebook
from dlsim.study.parameters import Parameter, check_parameters, parameters_of

__all__ = [
    "NotebookResult",
    "Parameter",
    "check_parameters",
    "find_notebook",
    "first_problem",
    "parameters_of",
    "run_all",
    "run_notebook",
]

#: Environment variable that tells a notebook's sweeps how many workers they get.
JOBS_VARIABLE = "DLSIM_JOBS"
#: How often a batch looks after its notebooks, and tells of them where there are no bars.
POLL_SECONDS, TELL_SECONDS = 0.2, 30.0


def find_notebook(name: StrPath) -> Path:
    """Find a notebook by path, by full name or by name without its number.

    Parameters
    ----------
    name : str or path
        ``"20-mcdf"``, ``"mcdf"`` or a path that ends in .ipynb.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        For a name that is none of them; the known names are listed.
    """
    if str(name).endswith(".ipynb"):
        if Path(name).is_file():
            return Path(name).absolute()
        raise InputError(f"{name}: no such notebook; check the path")
    known = {path.stem: path for path in sorted(shared_folder("notebooks").glob("*.ipynb"))}
    short = {stem.partition("-")[2]: path for stem, path in known.items()}
    path = known.get(str(name)) or short.get(str(name))
    if path is None:
        raise InputError(f"notebook must be one of {', '.join(known)}; got {str(name)!r}")
    return path


@dataclass(frozen=True)
class NotebookResult:
    """What became of one notebook of a batch.

    Parameters
    ----------
    name : str
        Its name, without the ending.
    path : Path or None
        The executed notebook, or the failed one; None where there is neither.
    status : {"ok", "failed", "interrupted"}
        How it ended.
    seconds : float
        How long it ran.
    error : str
        What went wrong, or "".
    reused : bool
        Whether an earlier, unchanged result was taken.
    """

    name: str
    path: Path | None
    status: str
    seconds: float
    error: str = ""
    reused: bool = False


@dataclass
class _Job:
    """One notebook of a batch, before, while and after it runs."""

    path: Path
    target: Path
    values: dict[str, Any]
    stamp: dict[str, Any]
    process: "subprocess.Popen[str] | None" = None
    folder: Path = Path()
    started: float = 0.0
    label: str = ""
    told: float = 0.0
    dask: str = ""

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def stamp_path(self) -> Path:
        return self.target.with_name(f".{self.name}.stamp.json")

    def variant(self, word: str) -> Path:
        """Return the name of the notebook while it is not done."""
        return self.target.with_suffix(f".{word}.ipynb")


# Results do not depend on these, so a rerun with others may take them over.
_NOT_STAMPED = ("jobs", "out")
_RESULT_FOLDERS = ("data", "figures")


def _plan(
    path: Path, out: Path, common: dict[str, Any], extra: dict[str, Any], dask: str = ""
) -> _Job:
    known = parameters_of(path)
    values = {name: value for name, value in common.items() if name in known}
    values |= {name: value for name, value in extra.items() if name in known}
    values = check_parameters(path, values)
    stamp = {
        "notebook": hashlib.sha256(path.read_bytes()).hexdigest(),
        "sources": source_digest(),
        "parameters": {k: v for k, v in values.items() if k not in _NOT_STAMPED},
    }
    return _Job(path, out / "notebooks" / path.name, values, stamp, dask=dask)


def _earlier(job: _Job) -> float | None:
    """Return the seconds of an earlier run whose result still stands, else None."""
    try:
        stamp = json.loads(job.stamp_path.read_text(encoding="utf-8"))
        same = all(stamp[key] == value for key, value in job.stamp.items())
        out = job.target.parent.parent
        whole = same and all((out / name).is_file() for name in stamp["files"])
        seconds = float(stamp["seconds"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return seconds if whole and first_problem(job.target) is None else None


def _stamp(job: _Job, seconds: float) -> None:
    """Record what was run, and which results were written meanwhile."""
    out = job.target.parent.parent
    files = [path for name in _RESULT_FOLDERS for path in (out / name).glob("*")]
    fresh = [p.relative_to(out).as_posix() for p in files if p.stat().st_mtime >= job.started - 1]
    stamp = job.stamp | {"seconds": round(seconds, 3), "files": sorted(fresh)}
    write_text(job.stamp_path, json.dumps(stamp, indent=1, sort_keys=True) + "\n")


def _start(job: _Job, jobs: int, folder: Path) -> None:
    """Start the notebook in a process group of its own; its stdin ends when we do."""
    job.folder, job.started = folder, time.time()
    folder.mkdir()
    if "jobs" in job.values:
        job.values["jobs"] = 0 if job.dask else jobs
    environment = os.environ | {JOBS_VARIABLE: str(jobs), clusters.VARIABLE: job.dask}
    environment[PROGRESS_VARIABLE] = str(folder / "progress.json")
    environment.pop("MPLBACKEND", None)  # the kernel's own draws into the notebook
    request = {"path": str(job.path), "out": str(job.target), "parameters": job.values}
    with open(folder / "log", "w") as log:
        job.process = subprocess.Popen(
            [sys.executable, "-c", "from dlsim.study.notebooks import main; main()", str(folder)],
            stdin=subprocess.PIPE, stdout=log, stderr=log, text=True, env=environment,
            start_new_session=True,
        )  # fmt: skip
    assert job.process.stdin
    with contextlib.suppress(BrokenPipeError):
        job.process.stdin.write(json.dumps(request) + "\n")
        job.process.stdin.flush()


def main() -> None:
    """Run the notebook that the parent process asks for on standard input."""
    folder, request = Path(sys.argv[1]), json.loads(sys.stdin.readline())

    def watch() -> None:
        sys.stdin.read()
        os._exit(1)  # the parent is gone: the kernel notices that we are, and ends too

    threading.Thread(target=watch, daemon=True).start()
    try:
        run_notebook(request["path"], request["out"], request["parameters"])
    except DlsimError as error:
        write_text(folder / "error", str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _hang_up(job: _Job) -> None:
    """Close the pipe whose end tells the notebook's process that we are gone."""
    if job.process and job.process.stdin:
        with contextlib.suppress(BrokenPipeError):
            job.process.stdin.close()


def _result(job: _Job) -> NotebookResult:
    """Turn an ended process into a result, and stamp it if all went well."""
    assert job.process
    _hang_up(job)
    seconds, code = time.time() - job.started, job.process.returncode
    if code == 0:
        _stamp(job, seconds)
        return NotebookResult(job.name, job.target, "ok", seconds)
    error_file, log = job.folder / "error", (job.folder / "log").read_text(errors="replace")
    if error_file.exists():
        error = error_file.read_text(encoding="utf-8")
    elif code < 0:
        error = f"{job.path.name} was killed by signal {-code}"
    else:
        error = f"{job.path.name} ended with code {code}: {log.strip()[-500:]}"
    failed = job.variant("failed")
    return NotebookResult(job.name, failed if failed.exists() else None, "failed", seconds, error)


def _interrupt(jobs: Sequence[_Job]) -> None:
    """End the notebooks under way: politely, then by force, kernels included."""
    running = [job.process for job in jobs if job.process and job.process.poll() is None]
    for process in running:
        process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + 5
    for process in running:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class _Display:
    """One progress bar per notebook on a terminal, plain lines elsewhere."""

    def __init__(self, names: Sequence[str]) -> None:
        self.bars: dict[str, Any] = {}
        if sys.stderr.isatty():
            look = "{desc:<42.42} {percentage:3.0f}%|{bar}| {elapsed}"
            for row, name in enumerate(names):
                self.bars[name] = tqdm(total=1, desc=name, position=row, bar_format=look)

    def show(self, name: str, text: str, done: float = 0, total: float = 0) -> None:
        """Show where a notebook is; a line only when its text changes."""
        bar = self.bars.get(name)
        if bar is None:
            print(f"{name}: {text}", file=sys.stderr, flush=True)
            return
        bar.set_description_str(f"{name}: {text}", refresh=False)
        bar.total, bar.n = max(1, total), done
        bar.refresh()

    def close(self) -> None:
        """Leave the bars where they are."""
        for bar in self.bars.values():
            bar.close()

    def poll(self, job: _Job) -> None:
        """Show what the notebook's sweeps wrote last."""
        try:
            lines = (job.folder / "progress.json").read_text(encoding="utf-8").split("\n")
            news = json.loads(next(line for line in reversed(lines) if line.strip()))
            label, done, total = str(news["label"]), float(news["done"]), float(news["total"])
        except (OSError, ValueError, TypeError, KeyError, StopIteration):
            return
        if self.bars:
            self.show(job.name, label, done, total)
        elif label != job.label or time.monotonic() - job.told >= TELL_SECONDS:
            same = label == job.label
            self.show(job.name, f"{label}, {done:.0f} of {total:.0f}" if same else label)
            job.told = time.monotonic()
        job.label = label


def _run_wave(
    waiting: list[_Job], jobs: int, folder: Path, display: _Display, results: dict[str, Any]
) -> None:
    """Run notebooks, at most `jobs` at once, until all have ended."""
    share = jobs if len(waiting) == 1 else 1
    running: list[_Job] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(job := waiting.pop(0))
                display.show(job.name, "starting")
                _start(job, share, folder / job.name)
            time.sleep(POLL_SECONDS)
            for job in list(running):
                display.poll(job)
                if job.process and job.process.poll() is not None:
                    running.remove(job)
                    result = results[job.name] = _result(job)
                    text = f"{result.status} in {result.seconds:.0f} s {result.error}".strip()
                    display.show(job.name, text, 1, 1)
    finally:
        _interrupt(running)
        for job in running + waiting:
            _hang_up(job)
            job.variant("partial").unlink(missing_ok=True)
            seconds = time.time() - job.started if job.process else 0.0
            results[job.name] = NotebookResult(job.name, None, "interrupted", seconds)


def run_all(
    names: Sequence[StrPath],
    *,
    scale: str = "quick",
    out: StrPath = "results/latest",
    jobs: int = 0,
    seed: int = 0,
    runs: int = 0,
    reading: Mapping[str, Any] | None = None,
    readings: Mapping[str, Mapping[str, Any]] | None = None,
    extra: Mapping[str, Any] | None = None,
    force: bool = False,
    dask: str = "",
) -> list[NotebookResult]:
    """Run a batch of notebooks, each in a process of its own, several at once.

    A notebook whose bytes, parameters and sources did not change since it last ended
    well in this folder is not run again. An interrupt ends the kernels, keeps what is
    done and returns.

    Parameters
    ----------
    names : sequence of str or path
        As for `find_notebook`; those whose name starts with 90 run last, always.
    scale, seed, runs, reading
        Parameters of every notebook that has them.
    readings : mapping of str to mapping, optional
        Readings of single notebooks, by name, in place of `reading`.
    out : path
        Folder of the results; notebooks go to its folder ``notebooks``.
    jobs : int
        How many processes at once, 0 for all cores: so many notebooks, or so many
        workers of a single notebook's sweeps.
    extra : mapping, optional
        Further parameters; each must be known to at least one of the notebooks.
    force : bool
        Whether to run unchanged notebooks too.
    dask : str
        Scheduler of the Dask cluster where the sweeps of all notebooks run, as for
        `dlsim.study.clusters.connect`; "" for ``$DLSIM_DASK``, or this machine.

    Returns
    -------
    list of NotebookResult
        In the order of the names.

    Raises
    ------
    InputError
        For an unknown notebook, a refused parameter or an unwritable folder, before
        anything runs.
    """
    folder, extra = Path(out).absolute(), dict(extra or {})
    count = workers.count(jobs)
    common = {"scale": scale, "seed": seed, "runs": runs, "jobs": count, "out": str(folder)}
    common["reading"] = dict(reading or {})
    paths = list(dict.fromkeys(find_notebook(name) for name in names))
    asked = extra | ({"reading": reading} if reading else {})
    known = {name for path in paths for name in parameters_of(path)}
    if strangers := [name for name in asked if name not in known]:
        raise InputError(
            f"no notebook has a parameter {strangers[0]!r}; they have: {', '.join(sorted(known))}"
        )
    own = {name: {"reading": dict(one)} for name, one in (readings or {}).items()}
    dask = dask or os.environ.get(clusters.VARIABLE, "")
    plan = [_plan(path, folder, common | own.get(path.stem, {}), extra, dask) for path in paths]
    _need_folder(folder / "notebooks")
    results: dict[str, NotebookResult] = {}
    for job in plan:
        seconds = None if force or _is_last(job) else _earlier(job)
        if seconds is not None:
            results[job.name] = NotebookResult(job.name, job.target, "ok", seconds, reused=True)
    todo = [job for job in plan if job.name not in results]
    _run_waves(todo, count, results)
    return [results[job.name] for job in plan]


def _need_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        raise InputError(f"{folder}: cannot be written to; choose another folder with --out")


def _is_last(job: _Job) -> bool:
    return job.name.startswith("90-")


def _pictures(job: _Job) -> int:
    """Count what a notebook draws from its study, which is about how long it takes."""
    return job.path.read_text("utf-8").count("(study")


def _run_waves(todo: list[_Job], jobs: int, results: dict[str, NotebookResult]) -> None:
    """Run the notebooks, those that only read results after the others."""
    display = _Display([job.name for job in todo])
    todo = sorted(todo, key=_pictures, reverse=True)  # short ones fill the gaps of the long
    waves = [[job for job in todo if _is_last(job) == last] for last in (False, True)]
    with tempfile.TemporaryDirectory(prefix="dlsim-") as folder:
        try:
            for wave in waves:
                _run_wave(wave, jobs, Path(folder), display, results)
        except KeyboardInterrupt:
            rest = (job for job in todo if job.name not in results)
            results |= {job.name: NotebookResult(job.name, None, "interrupted", 0) for job in rest}
        finally:
            display.close()
