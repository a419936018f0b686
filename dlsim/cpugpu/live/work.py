"""What a live run runs: kernels with their versions, and any function or command per device class.

A worker gets one `Task` at a time. What it starts is a session of its own, and is ended with
its job: at its end, at its limit, and with the run.
"""

import functools
import inspect
import math
import multiprocessing
import os
import pickle
import pkgutil
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dlsim import files
from dlsim.cpugpu.live.devices import Part, Slot, compiler, execute, pin
from dlsim.cpugpu.live.kernels import Kernel, Problem, kernel_named, signature
from dlsim.cpugpu.store import key
from dlsim.errors import InputError
from dlsim.given import number, text

#: A callable; ``module:function``; or a command: its words, or a text with the words.
Version = Callable[..., Any] | str | Sequence[str]
#: Columns of a file of jobs, beside app.
COLUMNS = {
    "arrival": "nonnegative", "command": "any", "cpu": "any", "gpu": "any",
    "size": "positive or blank", "args": "any", "limit": "positive or blank",
}  # fmt: skip
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_function = functools.cache(pkgutil.resolve_name)


class FailedError(RuntimeError):
    """A job ended without what it was for: an exit code, a limit passed, a check failed."""


def _version(where: str, given: Version | None) -> Any:
    """Return a callable or ``module:function`` as it is, a command as its words, or refuse."""
    if given is None or callable(given):
        return given
    if isinstance(given, str) and _FUNCTION.fullmatch(given):
        try:
            if callable(_function(given)):
                return given
            why = "it is no function; name one"
        except ModuleNotFoundError as error:
            here = os.getcwd()
            why = f"no module {error.name!r} is found from {here}; start there, or install it"
        except Exception as error:  # whatever an import raises
            what = f"{type(error).__name__}: {error}"
            why = f"it cannot be imported ({what}); correct the name, or the module"
        raise InputError(f"{where}: {given!r}: {why}")
    words = _words(where, given)
    if not words or not all(isinstance(word, str) for word in words):
        raise InputError(f"{where} must be a function or the words of a command, got {given!r}")
    if shutil.which(words[0]) is None:
        raise InputError(f"{where}: no program {words[0]!r} is found; install it, or name its path")
    return words


def _words(where: str, given: Any) -> tuple[Any, ...]:
    try:
        return tuple(shlex.split(given) if isinstance(given, str) else given)
    except (ValueError, TypeError) as error:
        raise InputError(f"{where}: not the words of a command ({error}): {given!r}") from error


@dataclass(frozen=True)
class App:
    """Any application with a version for the CPU, the GPU, or both.

    Parameters
    ----------
    name : str
        The history knows it by this name.
    cpu, gpu : callable or str or sequence of str, optional
        A function, called with the size (where a job has one) and the arguments of the job;
        ``module:function``, imported here and by the worker; or a command, started without a shell:
        ``{size}``, ``{device}`` and ``{index}`` stand for those of the job, and its arguments
        follow. A function with a parameter ``device`` is told the device's name, a command
        finds it as DLSIM_DEVICE. One command for both that names neither ``{device}``,
        ``{index}`` nor DLSIM_DEVICE is tried once; what else fails on one, on the other too.
    check : callable, optional
        Gets what the function returned, or what the command printed; false or an exception
        makes the job a failed one.
    limit : float
        Seconds that a job may run.

    Raises
    ------
    InputError
        For a version that is no function and no program, and for an application without any.

    Examples
    --------
    >>> App("listing", cpu="ls -l", gpu=["ls", "-l"]).classes
    ('gpu', 'cpu')
    """

    name: str
    cpu: Version | None = None
    gpu: Version | None = None
    check: Callable[[Any], Any] | None = None
    limit: float = math.inf

    def __post_init__(self) -> None:
        text("the name of an application", self.name, blank=False)
        for cls in ("cpu", "gpu"):
            version = _version(f"{cls} version of {self.name}", getattr(self, cls))
            object.__setattr__(self, cls, version)
        if not self.classes:
            raise InputError(f"{self.name} has no version; give cpu, gpu, or both")
        number(f"limit of {self.name}", self.limit, high=math.inf, above=True)

    @property
    def classes(self) -> tuple[str, ...]:
        """Device classes that it has a version for."""
        return tuple(cls for cls in ("gpu", "cpu") if getattr(self, cls) is not None)

    @property
    def has_function(self) -> bool:
        """Whether a version is a function, whose output and limit need a process of its own."""
        return any(not isinstance(getattr(self, cls), tuple) for cls in self.classes)

    @property
    def is_one(self) -> bool:
        """Whether both versions are one command that does not ask for its device."""
        words = self.cpu if isinstance(self.cpu, tuple) and self.cpu == self.gpu else ("{device}",)
        asked = ("{device}", "{index}", "DLSIM_DEVICE")
        return not any(name in word for word in words for name in asked)


class LiveJob(NamedTuple):
    """A kernel or `App`, its size, arrival (seconds after the start) and further arguments."""

    kernel: Kernel | App
    size: Any = None
    arrival: float = 0.0
    args: tuple[str, ...] = ()

    @property
    def app(self) -> str:
        """The name under which the history knows it."""
        return key(self.kernel.name, "" if self.size is None else str(self.size))


def jobs_from_csv(path: files.StrPath, limit: float = math.inf) -> list[LiveJob]:
    """Read jobs, sorted by arrival, from a CSV file.

    Columns app; arrival; command, or cpu and gpu, each a command or ``module:function`` (where
    all are blank, app is a kernel of dlsim); size; args; limit. All but app may be missing.
    """
    table = files.read_csv(path, {"app": "text"}, COLUMNS, numbered=True)
    if table.empty:
        raise InputError(f"{os.fspath(path)}: holds no job; give one line per job")
    if strange := [name for name in table if name not in ("app", *COLUMNS)]:
        raise InputError(f"{os.fspath(path)}: no column is called {strange[0]!r}; known: app, "
                         f"{', '.join(COLUMNS)}")  # fmt: skip
    apps: dict[tuple[Any, ...], Kernel | App] = {}
    jobs = []
    for line, row in zip(table.index, table.to_dict("records"), strict=True):
        where = f"{os.fspath(path)}, line {line}"
        versions = [row.get(cls) or row.get("command") or None for cls in ("cpu", "gpu")]
        size, most = (row.get(name, math.nan) for name in ("size", "limit"))
        known = (row["app"], *versions, None, most if most == most else limit)
        if known not in apps:
            make = (App, *known) if any(versions) else (kernel_named, row["app"])
            apps[known] = files.placed(where, *make)
        work = apps[known]
        size = getattr(work, "size", None) if size != size else float(size)
        size = int(size) if size is not None and size % 1 == 0 else size
        if isinstance(work, Kernel):
            size = files.placed(f"{where}, field size", work.problem_size, size)
        args = _words(f"{where}, field args", row.get("args", ""))
        jobs.append(LiveJob(work, size, row.get("arrival", 0.0), args))
    return sorted(jobs, key=lambda job: job.arrival)


class Outcome(NamedTuple):
    """What a worker reports of a run, and how long a compiler took; not clean: in its seconds."""

    seconds: float
    transfer: float
    signature: list[float]
    compiled: float = 0.0
    is_clean: bool = True


class Task(NamedTuple):
    """What a worker is told: what to run, where, on what, where its output goes, which part."""

    work: Any  # a kernel or App, or one in bytes
    slot: Slot
    size: Any
    args: tuple[str, ...] = ()
    output: str = ""
    part: Part | None = None


@functools.lru_cache(maxsize=256)
def _unpacked(work: bytes) -> Kernel | App:
    """Return a kernel or App of the session that started this process."""
    return pickle.loads(work)


@functools.lru_cache(maxsize=256)
def packed(work: Kernel | App) -> bytes:
    """Return the bytes in which a worker gets a kernel or App, compiled there only once."""
    try:
        from cloudpickle import dumps  # comes with Dask; knows functions of notebooks
    except ImportError:
        from pickle import dumps
    try:
        return bytes(dumps(work))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(f"{work.name} cannot be sent to another process ({error}); put its "
                         "functions into a module, or use --crew threads") from error  # fmt: skip


@functools.lru_cache(maxsize=8)
def problem_of(kernel: Kernel, size: int) -> Problem:
    """Return the input of a kernel, made once."""
    return kernel.problem(size)


def perform(task: Task) -> Outcome:
    """Run a job; compiling, making the input and checking the result are not part of its time.

    Of a part of a kernel's result, the outcome holds the sum.
    """
    work = _unpacked(task.work) if isinstance(task.work, bytes) else task.work
    if isinstance(work, App):
        return _call(work, task)
    run = execute(work, problem_of(work, task.size), task.slot, task.part)
    told = [float(run.result.sum(dtype=float))] if task.part else signature(run.result)
    return Outcome(run.seconds, run.transfer, told, run.compiled)


def _call(app: App, task: Task) -> Outcome:
    """Run the version of an application for this device class."""
    pin(task.slot.cores)
    version, took = getattr(app, task.slot.name[:3]), 0.0
    with _kept(task.output) as stream:
        if isinstance(version, tuple):
            begun = time.perf_counter()
            result: Any = _command(version, task, stream, app.limit)
            seconds = time.perf_counter() - begun
        else:
            function = _function(version) if isinstance(version, str) else version
            given = [*([] if task.size is None else [task.size]), *task.args]
            with suppress(TypeError, ValueError):  # some built-in functions tell nothing
                if "device" in inspect.signature(function).parameters:
                    function = functools.partial(function, device=task.slot.name)
            with compiler() as seen, _printing_to(stream):
                begun = time.perf_counter()
                result = function(*given)
                seconds = time.perf_counter() - begun
            took = seen[-1][0] - seen[0][0] if seen else 0.0
    if app.check is not None and not app.check(result):
        raise FailedError(f"its result fails the check: {repr(result)[:100]}")
    return Outcome(seconds, 0.0, [], took, not took)


def _kept(output: str) -> Any:
    """Open the file that keeps a job's output, behind that of an earlier try."""
    if not output:
        return tempfile.TemporaryFile()
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    return open(output, "a+b")


@contextmanager
def _printing_to(stream: BinaryIO) -> Iterator[None]:
    """Let what this process prints go to a file, where the process is a worker's own."""
    if multiprocessing.parent_process() is None:
        yield
        return
    before = [os.dup(handle) for handle in (1, 2)]
    try:
        for handle in (1, 2):
            os.dup2(stream.fileno(), handle)
        yield
    finally:
        for channel, handle, old in zip((sys.stdout, sys.stderr), (1, 2), before, strict=True):
            channel.flush()
            os.dup2(old, handle)
            os.close(old)


@functools.cache
def _with_us() -> tuple[str, ...]:
    """Return the words before a command that end it with us, however we end (util-linux)."""
    setter = shutil.which("setpriv") if sys.platform == "linux" else None
    words = (setter, "--pdeathsig", "KILL", "--") if setter else ()
    works = words and not subprocess.run([*words, "true"], capture_output=True).returncode
    return words if works else ()


def _command(words: Sequence[str], task: Task, stream: BinaryIO, limit: float) -> str:
    """Run a command to its end, or to its limit; return what it printed."""
    start, slot = stream.seek(0, os.SEEK_END), task.slot
    told = {"{size}": task.size, "{device}": slot.name, "{index}": slot.number}
    for name, value in told.items():
        words = [word.replace(name, "" if value is None else str(value)) for word in words]
    process = subprocess.Popen(
        [*_with_us(), *words, *task.args], stdin=subprocess.DEVNULL, stdout=stream,
        stderr=subprocess.STDOUT, env=os.environ | {"DLSIM_DEVICE": slot.name},
        start_new_session=True,
    )  # fmt: skip
    try:
        code = process.wait(None if limit == math.inf else limit)
    except subprocess.TimeoutExpired:
        raise FailedError(f"ran longer than its limit of {limit:g} s") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):  # what it left behind, too
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    stream.seek(start)
    printed = stream.read(files.DOCUMENT).decode(errors="replace")
    if code:
        how = f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"
        last = (printed.strip().splitlines() or ["nothing printed"])[-1]
        raise FailedError(f"{how}: {last[:200]}")
    return printed
