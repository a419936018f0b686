"""One warm process: it imports once what notebooks need, and forks a process for each of them.

The process that runs a notebook was forked with its kernel, before either had threads or
sockets: the kernel waits for the connection that the notebook's client makes, and is from then
on what ``python -m ipykernel_launcher`` starts. Where a forked process cannot be told by a mark
of its own (all systems but Linux), notebooks and kernels are started afresh.
"""

import gc
import importlib
import json
import os
import pkgutil
import re
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partialmethod
from pathlib import Path
from typing import Any

from dlsim import processes

#: How long the warm process may take to import and to fork, and how often it looks for ends.
START_SECONDS, LOOK_SECONDS = 120.0, 0.1
#: What a notebook's process and its kernel need, whatever the notebook is; and one that draws.
_STACK = ("papermill", "ipykernel.kernelapp", "ipykernel.ipkernel", "dlsim.study.notebooks",
          "dlsim.study.watch")  # fmt: skip
_DRAWING = ("dlsim.study.plot", "dlsim.study.report", "dlsim.study.pictures")
_INLINE = "module://matplotlib_inline.backend_inline"
_COMMAND = [sys.executable, "-c", "from dlsim.study.warm import serve; found = serve()\n"
            "from dlsim.study.notebooks import run; run(*found)"]  # fmt: skip
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Child:
    """A process that this one forked, as `subprocess` shows one that it started."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return how it ended, if it has."""
        if self.returncode is None:
            self.returncode = self._ended()
        return self.returncode

    def _ended(self) -> int | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def wait(self, timeout: float = float("inf")) -> int:
        """Wait for its end."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            time.sleep(0.02)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    terminate = partialmethod(send_signal, signal.SIGTERM)
    kill = partialmethod(send_signal, signal.SIGKILL)


class _Forked(Child):
    """A process that the warm one forked, and reaps."""

    def __init__(self, warm: "Warm", pid: int) -> None:
        super().__init__(pid)
        self.warm, self.source = warm, warm.process

    def _ended(self) -> int | None:
        gone = self.source.poll()  # asked first, so that all it told before is heard
        if self.source is self.warm.process:
            self.warm.hear()
        return self.warm.codes.get(self.pid, gone)


class Warm:
    """The warm process of a batch, started when it is first needed; it ends with the batch."""

    def __init__(self, notebooks: Iterable[Path], folder: Path) -> None:
        self.modules, self.log = modules(notebooks), folder / "warm"
        self.process: Any = None
        self.codes: dict[int, int] = {}
        self.forked, self.rest = 0, b""

    def hear(self, seconds: float = 0.0) -> bool:
        """Take in what the warm process tells; False where it tells nothing."""
        told = self.process.stdout
        text = os.read(told.fileno(), 65536) if select.select([told], [], [], seconds)[0] else b""
        *lines, self.rest = (self.rest + text).split(b"\n")
        for pid, code in map(json.loads, lines):
            if code is None:
                self.forked = pid
                self.codes.pop(pid, None)
            else:
                self.codes[pid] = code
        return bool(text)

    def fork(self, request: Mapping[str, Any]) -> Child | None:
        """Let a process be forked for a notebook; None where the warm one does not answer."""
        if self.process is None or self.process.poll() is not None:
            self.close()
            room = f"{processes.ROOM}:{processes.ROOM}"
            environment = processes.marked(room) | {"MPLBACKEND": _INLINE}
            self.process = start(self.log, environment, self.modules, subprocess.PIPE)
            self.codes, self.rest = {}, b""
        self.forked = 0
        _write(self.process.stdin, request)
        deadline = time.monotonic() + START_SECONDS
        while not self.forked:
            if not self.hear(max(0.0, deadline - time.monotonic())):
                self.close()
                return None
        return _Forked(self, self.forked)

    def close(self) -> None:
        """End the warm process, not those that it forked."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


def start(
    log: Path, environment: Mapping[str, str], first: Any, out: int = 0
) -> "subprocess.Popen[bytes]":
    """Start a process afresh, which serves what it is told first."""
    with log.open("w") as stream:
        process = subprocess.Popen(
            _COMMAND, stdin=subprocess.PIPE, stderr=stream, bufsize=0, env=environment,
            stdout=out or stream, start_new_session=True,
        )  # fmt: skip
    _write(process.stdin, first)
    return process


def _write(stream: Any, what: Any) -> None:
    with suppress(BrokenPipeError):  # who is gone is seen to be gone
        stream.write(json.dumps(what).encode() + b"\n")


def modules(notebooks: Iterable[Path]) -> list[str]:
    """Return the modules of dlsim, or what may be one, that notebooks import."""
    from dlsim.files import read_text  # not at the top: the warm process hears of it soon

    found = dict.fromkeys(_STACK)
    for path in notebooks:
        for module, names in re.findall(r"from (dlsim[.\w]*) import ([\w, ]+)", read_text(path)):
            if module.startswith(("dlsim.papers", "dlsim.explore")):
                found |= dict.fromkeys(_DRAWING)
            found |= dict.fromkeys([module, *(f"{module}.{n.strip()}" for n in names.split(","))])
    return list(found)


@contextmanager
def without_grammars() -> Iterator[None]:
    """Keep what nbformat imports from building grammars of IRIs, a second and more a process."""
    name = "rfc3987_syntax"  # jsonschema does without it where it is not installed
    hide = name not in sys.modules
    if hide:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hide:
            del sys.modules[name]


def _load(names: Iterable[str]) -> None:
    """Import modules, and the ones in them where they are packages with rooms of their own."""
    for name in names:
        with suppress(Exception), without_grammars():  # whoever needs it is told why
            module = importlib.import_module(name)
            for found in pkgutil.iter_modules(getattr(module, "__path__", ())):
                if name.count(".") == 2:
                    importlib.import_module(f"{name}.{found.name}")


# ------------------------------------------------------------------ in the warm process


def serve() -> tuple[dict[str, Any], "Kernel | None"]:
    """Return each request in a process forked for it, with a kernel; a single one as it is."""
    stream = os.fdopen(0, "rb", buffering=0, closefd=False)
    first = json.loads(stream.readline() or "[]")
    if isinstance(first, dict):
        return first, None
    import ctypes

    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)  # while it imports, it hears nothing
    pipe = select.poll()
    pipe.register(0, 0)
    if pipe.poll(0):
        os._exit(0)
    told, there = os.fdopen(os.dup(1), "wb", buffering=0), set[int]()
    os.dup2(2, 1)  # whatever an import prints
    _load(first)
    gc.freeze()  # what is imported need not be looked through in every child
    while True:
        if select.select([0], [], [], LOOK_SECONDS)[0]:
            if not (line := stream.readline()):
                os._exit(0)
            if not (pid := os.fork()):
                told.close()
                return _begin(json.loads(line))
            there.add(pid)
            _write(told, [pid, None])
        for pid in list(there):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                there.remove(pid)
                _write(told, [pid, os.waitstatus_to_exitcode(status)])


def wait_for_end() -> None:
    """Wait, in the process of a notebook, until the batch is gone."""
    if hasattr(select, "poll"):  # what is asked there is not for this process
        pipe = select.poll()
        pipe.register(0, 0)
        pipe.poll()
    else:
        while os.read(0, 4096):
            pass


def _become(environment: Mapping[str, str], mark: str, title: str) -> None:
    """Make a forked process what a new one would be."""
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    processes.claim(mark, title)
    tempfile.tempdir = None
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed()


def _begin(request: dict[str, Any]) -> tuple[dict[str, Any], "Kernel"]:
    """Become the process of a notebook, and fork its kernel."""
    log = Path(request["folder"], "log")
    log.touch(0o600)
    with log.open("ab") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    _become(request["environment"], request["mark"], f"dlsim notebook {Path(request['path']).stem}")
    return request, Kernel()


class Kernel(Child):
    """A kernel before it has a connection."""

    def __init__(self) -> None:
        self.mark = secrets.token_hex(8)
        reader, self.writer = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(self.writer)
            _kernel(reader, self.mark)
        os.close(reader)
        super().__init__(pid)

    def begin(self, command: list[str], environment: Mapping[str, str], cwd: str) -> None:
        """Let it do what a command would do that starts a kernel."""
        with os.fdopen(self.writer, "wb", buffering=0) as stream:
            _write(stream, [command, {**environment, "JPY_PARENT_PID": str(os.getpid())}, cwd])


def _kernel(reader: int, mark: str) -> None:
    """Wait for a connection, then be the kernel, to the end of this process."""
    from ipykernel.kernelapp import IPKernelApp

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # as kernels do, outside a cell
    parent = os.getppid()
    _become(os.environ.copy(), mark, "ipykernel_launcher")
    with os.fdopen(reader, "rb") as stream, Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        if not (line := stream.readline()):
            os._exit(0)
    sys.argv, environment, cwd = json.loads(line)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    os.chdir(cwd)
    sys.path.remove("")  # as the launcher does; the kernel puts it where it belongs
    IPKernelApp.launch_instance(sys.argv[1:], parent_handle=parent)
    sys.exit(0)
