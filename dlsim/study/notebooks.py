"""Run a batch of notebooks: a process each, progress bars, nothing done twice.

Every notebook runs in a process of its own that ends when this one does, with its kernel and
all that the kernel started. A notebook that ended well leaves a stamp beside its result with
the digests of what went in and of what came out; as long as they hold, it is not run again.

A notebook is arbitrary code: running one that somebody else wrote means running their
program with your rights. Nothing here is a sandbox.
"""

import contextlib
import functools
import json
import math
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dlsim import files, processes, progress
from dlsim.cache import source_digest
from dlsim.errors import DlsimError, InputError
from dlsim.files import LIMIT, StrPath, read_bytes, read_json, read_text
from dlsim.given import number, option
from dlsim.owned import WROTE_VARIABLE, Owned, digest, objects
from dlsim.study import warm, workers
from dlsim.study.execution import check_parameters, first_problem, parameters_of, run_notebook
from dlsim.study.figures import KIND_VARIABLE, KINDS, paper_of

#: How often a batch looks after its notebooks, and tells of them where there are no bars.
POLL_SECONDS, TELL_SECONDS = 0.2, 30.0
#: How long a notebook's process may show no sign of life, and take to end when asked to.
SILENT_SECONDS, POLITE_SECONDS = 120.0, 5.0
#: Seconds that a cell, and a notebook, may run, by scale: some twenty times what they take.
LIMITS = {"quick": (1800.0, 7200.0), "paper": (6 * 3600.0, 48 * 3600.0)}


def find_notebook(name: StrPath) -> Path:
    """Find a notebook by path, by full name (``20-mcdf``) or by name without its number."""
    if str(name).endswith(".ipynb"):
        if Path(name).is_file():
            return Path(name).absolute()
        raise InputError(f"{name}: no such notebook; check the path")
    known = files.suite_notebooks()
    full = {paper_of(stem): stem for stem in reversed(known)}.get(str(name), str(name))
    return known[option("notebook", full, known)]


@dataclass(frozen=True)
class NotebookResult:
    """What became of one notebook of a batch: status is ok, failed or interrupted."""

    name: str
    path: Path | None  # of the executed notebook, or the failed one
    status: str
    seconds: float
    error: str = ""
    reused: bool = False  # whether an earlier, unchanged result was taken


@dataclass
class _Job:
    """One notebook of a batch, before, while and after it runs."""

    path: Path
    target: Path
    values: dict[str, Any]
    stamp: dict[str, Any]
    home: Owned
    process: Any = None
    forks: warm.Warm | None = None
    folder: Path = Path()
    started: float = 0.0
    label: str = ""
    told: float = 0.0
    dask: str = ""
    limits: tuple[float, float] = (math.inf, math.inf)
    figures: str = "png"
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    sign: tuple[bytes, float] = (b"", math.inf)
    cause: str = ""

    @property
    def name(self) -> str:
        return self.path.stem

    def place(self, ending: str = ".ipynb") -> str:
        """Return the name of the result below the folder of results."""
        return f"{_FOLDER}/{self.name}{ending}"

    @property
    def stamp_name(self) -> str:
        return f"{_FOLDER}/.{self.name}.stamp.json"

    def look(self) -> None:
        """End the notebook's process where it takes too long, or shows no sign of life."""
        now, alive = time.monotonic(), self.folder / "alive.json"
        with contextlib.suppress(OSError):
            text = alive.read_bytes()
            if text != self.sign[0] or self.sign[1] == math.inf:
                self.sign = (text, now)
        seconds, silent = time.time() - self.started, now - self.sign[1]
        if seconds > self.limits[1]:
            limit = f"longer than its limit of {self.limits[1]:g} s (--limit)"
            self.cause = f"ran {seconds:.0f} s, {limit}"
        elif silent > SILENT_SECONDS:
            self.cause = f"its process has shown no sign of life for {silent:.0f} s"
        if self.cause:
            with contextlib.suppress(ValueError, TypeError):
                cell, ran = json.loads(self.sign[0])
                self.cause += f", in code cell {cell} for {ran:.0f} s" if cell else ""
            processes.end_run(self.mark)


# Results do not depend on these, so a rerun with others may take them over.
_NOT_STAMPED = ("jobs", "out")
_FOLDER, _RESULT_FOLDERS = "notebooks", ("data", "figures")
#: Where a run keeps what is not done; gone when it ends, or else when the next one begins.
_WORK = ".dlsim-running"


def _plan(
    path: Path, out: Path, given: dict[str, Any], dask: str = "",
    limits: tuple[float, float] = (math.inf, math.inf), figures: str = "png",
) -> _Job:  # fmt: skip
    known = parameters_of(path)
    values = check_parameters(path, {name: given[name] for name in given if name in known})
    home = Owned(out, remedy="choose a new or empty folder with --out")
    stamp = {
        "notebook": digest(read_bytes(path)),
        "sources": source_digest(),
        "material": _material_digest(),
        "parameters": {k: v for k, v in values.items() if k not in _NOT_STAMPED},
    } | ({} if figures == "png" else {"figures": figures})
    return _Job(path, home.folder / _FOLDER / path.name, values, stamp, home, dask=dask,
                limits=limits, figures=figures)  # fmt: skip


@functools.cache
def _material_digest() -> str:
    """Return a digest of the data of the suite that notebooks read."""
    data = files.shared_folder("data")
    paths = sorted(path for path in data.rglob("*") if path.suffix in (".csv", ".toml"))
    parts = [f"{path.relative_to(data).as_posix()} {digest(read_bytes(path))}" for path in paths]
    return digest("\n".join(parts).encode())


def _earlier(job: _Job) -> float | None:
    """Return the seconds of an earlier run whose result still stands, else None."""
    home = job.home
    try:
        stamp = read_json(home.folder / job.stamp_name)
        if any(stamp[key] != value for key, value in job.stamp.items()):
            return None
        changed = [name for name, sha256 in stamp["files"].items() if home.content(name) != sha256]
        seconds = float(stamp["seconds"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    problem = f"{changed[0]} is not as it was left" if changed else first_problem(job.target)
    if not problem:
        return seconds
    print(f"{job.name}: {problem}; run again", file=sys.stderr, flush=True)
    for name in changed:
        home.clear(name)
    return None


def _stamp(job: _Job, seconds: float) -> None:
    """Record what was run, and which results were written meanwhile."""
    home = job.home
    wrote = {row["file"] for row in objects(job.folder / "wrote") if "file" in row}
    known = {name for name, _ in home.known()}
    for path in (path for name in _RESULT_FOLDERS for path in (home.folder / name).glob("*")):
        name = path.relative_to(home.folder).as_posix()
        if name not in known and path.lstat().st_mtime >= job.started - 1:
            wrote.add(name)  # by the notebook's own code
    contents = {name: home.content(name) for name in sorted(wrote - {job.place(".failed.ipynb")})}
    stamp = job.stamp | {"seconds": round(seconds, 3), "files": contents}
    home.write(job.stamp_name, (json.dumps(stamp, indent=1, sort_keys=True) + "\n").encode())


def _start(job: _Job, jobs: int, folder: Path) -> None:
    """Start the notebook in a process group of its own; its stdin ends when we do."""
    job.folder, job.started = folder, time.time()
    folder.mkdir()
    if "jobs" in job.values:
        job.values["jobs"] = 0 if job.dask else jobs
    environment = processes.marked(job.mark)
    environment |= {workers.JOBS: str(jobs), workers.DASK: job.dask, KIND_VARIABLE: job.figures}
    environment[progress.VARIABLE] = str(folder / "progress.json")
    environment[WROTE_VARIABLE] = str(folder / "wrote")
    environment["TMPDIR"] = str(folder)  # what a kernel that is killed leaves goes with it
    environment.pop("MPLBACKEND", None)  # the kernel's own draws into the notebook
    request = {
        "path": str(job.path), "out": str(job.target), "root": str(job.home.folder),
        "cell_limit": job.limits[0], "parameters": job.values, "folder": str(folder),
        "environment": environment, "mark": job.mark,
    }  # fmt: skip
    job.process = job.forks.fork(request) if job.forks else None
    job.process = job.process or warm.start(folder / "log", environment, request)
    job.sign = (b"", time.monotonic())


def run(request: Mapping[str, Any], kernel: warm.Kernel | None) -> None:
    """Run the notebook that the batch asks for, in the process started for it."""
    folder = Path(request["folder"])

    def watch() -> None:
        warm.wait_for_end()
        processes.end_run(request["mark"])  # the parent is gone
        os._exit(1)

    def tell(cell: int, seconds: float) -> None:
        with contextlib.suppress(OSError):  # a full disk does not end the watch
            (folder / "alive.json").write_text(json.dumps([cell, seconds]))

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    try:
        with processes.termination_interrupts():
            run_notebook(
                request["path"], request["out"], request["parameters"], root=request["root"],
                work=folder, cell_limit=request["cell_limit"], tell=tell, kernel=kernel,
            )  # fmt: skip
    except DlsimError as error:
        files.write_text(folder / "error", str(error))
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
    log = (job.folder / "log").read_text(errors="replace")
    for line in log.splitlines():
        if line.startswith("dlsim: "):
            print(line, file=sys.stderr, flush=True)
    if code == 0:
        _stamp(job, seconds)
        return NotebookResult(job.name, job.target, "ok", seconds)
    processes.end_run(job.mark)
    error_file, half = job.folder / "error", job.folder / job.path.name
    if not error_file.exists() and half.exists():  # it could not keep what there is itself
        job.home.write(job.place(".failed.ipynb"), read_bytes(half, LIMIT))
        job.home.clear(job.place())
    if job.cause:
        error = f"{job.path.name} failed: {job.cause}"
    elif error_file.exists():
        error = read_text(error_file)
    elif code < 0:
        error = f"{job.path.name} was killed by signal {-code}"
    else:
        error = f"{job.path.name} ended with code {code}: {log.strip()[-500:]}"
    failed = job.home.folder / job.place(".failed.ipynb")
    return NotebookResult(job.name, failed if failed.exists() else None, "failed", seconds, error)


def _interrupt(jobs: Sequence[_Job]) -> None:
    """End the notebooks under way: politely, then by force, kernels included."""
    running = [job.process for job in jobs if job.process and job.process.poll() is None]
    try:
        for process in running:
            process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + POLITE_SECONDS
        for process in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
    finally:
        for job in jobs:
            processes.end_run(job.mark)
        for process in running:
            process.wait()


class _Display:
    """One progress bar per notebook on a terminal, plain lines elsewhere."""

    def __init__(self, names: Sequence[str]) -> None:
        self.bars: dict[str, Any] = {}
        self.total, self.ended = len(names), 0
        if sys.stderr and sys.stderr.isatty():  # none where it is closed
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

    def end(self, result: NotebookResult) -> None:
        """Say what became of a notebook, and how many have ended."""
        self.ended += 1
        text = f"{result.status} in {result.seconds:.0f} s, {self.ended} of {self.total} done"
        self.show(result.name, f"{text}: {result.error}" if result.error else text, 1, 1)

    def close(self) -> None:
        for bar in self.bars.values():
            bar.close()

    def poll(self, job: _Job) -> None:
        """Show what the notebook's sweeps wrote last."""
        try:
            news = read_json(job.folder / "progress.json")
            label, done, total = str(news["label"]), float(news["done"]), float(news["total"])
        except (ValueError, TypeError, KeyError):  # an InputError is a ValueError
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
                job.look()
                if job.process and job.process.poll() is not None:
                    running.remove(job)
                    result = results[job.name] = _result(job)
                    display.end(result)
    finally:
        _interrupt(running)
        for job in running:
            _hang_up(job)
            seconds = time.time() - job.started if job.process else 0.0
            results[job.name] = NotebookResult(job.name, None, "interrupted", seconds)


def run_all(
    names: Sequence[StrPath], *, scale: str = "quick", out: StrPath = "results/latest",
    jobs: int = 0, seed: int = 0, runs: int = 0, extra: Mapping[str, Any] | None = None,
    readings: Mapping[str, Mapping[str, Any]] | None = None, force: bool = False, dask: str = "",
    cell_limit: float | None = None, limit: float | None = None, figures: str = "png",
) -> list[NotebookResult]:  # fmt: skip
    """Run a batch of notebooks, each in a process of its own, several at once.

    A notebook whose bytes, parameters and sources did not change since it last ended
    well in this folder is not run again. An interrupt ends the kernels, keeps what is
    done and returns. Whatever cannot be used is refused before anything runs.

    Names are those of `find_notebook`; the ones that start with 90 run last. `jobs` processes
    (0 for all cores) are so many notebooks, or so many workers of a single notebook's sweeps.
    `readings` are those of single notebooks, by name; each of the `extra` parameters must be known
    to at least one notebook; `dask` is a scheduler as for `dlsim.study.workers.connect`.
    `cell_limit` and `limit` are the seconds that a cell, and a notebook, may run: 0 for no limit,
    by default `LIMITS`. With `figures` "svg" or "pdf" every picture is written in that format, too,
    beside the PNG that the report shows.
    """
    folder, extra, readings = Path(out).absolute(), dict(extra or {}), readings or {}
    count = workers.count(jobs)
    common = {"scale": scale, "seed": seed, "runs": runs, "jobs": count, "out": str(folder)}
    paths = list(dict.fromkeys(find_notebook(name) for name in names))
    known = {name for path in paths for name in parameters_of(path)}
    if strangers := [name for name in extra if name not in known]:
        what = f"no notebook has a parameter {strangers[0]!r}"
        raise InputError(f"{what}; they have: {', '.join(sorted(known))}")
    dask = dask or os.environ.get(workers.DASK, "")
    usual = LIMITS.get(scale, LIMITS["paper"])
    limits = _limit("cell_limit", cell_limit, usual[0]), _limit("limit", limit, usual[1])
    own = {path: {"reading": dict(readings.get(path.stem, {}))} for path in paths}
    kind = option("figures", figures, KINDS)
    given = {path: common | one | extra for path, one in own.items()}
    plan = [_plan(path, Path(out), one, dask, limits, kind) for path, one in given.items()]
    if not plan:
        return []
    results: dict[str, NotebookResult] = {}
    with plan[0].home.locked():
        for job in plan:
            seconds = None if force or _is_last(job) else _earlier(job)
            if seconds is not None:
                results[job.name] = NotebookResult(job.name, job.target, "ok", seconds, reused=True)
        todo = [job for job in plan if job.name not in results]
        _run_waves(todo, count, results)
    never = (NotebookResult(job.name, None, "interrupted", 0.0) for job in plan)
    return [results.get(one.name, one) for one in never]


def _limit(name: str, value: float | None, usual: float) -> float:
    rule = "seconds, at least 0 (0 = no limit)"
    return usual if value is None else number(name, value, 0, math.inf, rule=rule) or math.inf


def _is_last(job: _Job) -> bool:
    return job.name.startswith("90-")


def _run_waves(todo: list[_Job], jobs: int, results: dict[str, NotebookResult]) -> None:
    """Run the notebooks, those that only read results after the others."""
    display = _Display([job.name for job in todo])
    # what a notebook takes from its study tells how long it takes; short ones fill the gaps
    todo = sorted(todo, key=lambda job: -len(re.findall(r"\bstudy\b", read_text(job.path))))
    waves = [[job for job in todo if _is_last(job) == last] for last in (False, True)]
    if todo:
        folder = todo[0].home.folder / _WORK
        shutil.rmtree(folder, ignore_errors=True)  # what a run that was killed has left
        todo[0].home.clear(_WORK)  # what stands there though dlsim makes it a folder
        forks = warm.Warm((job.path for job in todo), folder) if processes.can_claim() else None
        for job in todo:
            job.forks = forks
        try:
            folder.mkdir()
            for wave in waves:
                _run_wave(wave, jobs, folder, display, results)
        except OSError as error:
            raise files.unwritable(folder, error) from error
        except KeyboardInterrupt:  # those that never began follow from the plan
            pass
        finally:
            try:
                display.close()
                if forks:
                    forks.close()
            finally:  # an interrupt may come while they are closed
                shutil.rmtree(folder, ignore_errors=True)
