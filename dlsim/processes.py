"""Processes that a run starts: they import the dlsim of the run, and end with it.

A kernel has a session of its own, and outlives its parent if the parent is killed. Every process of
a run therefore has the tag of the run in its environment, whatever its parent is by then.

Another dlsim may be installed for the same Python, and the folders of ``PYTHONPATH`` mean something
else in another current folder. A process therefore begins with `code_to_import_dlsim`.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import psutil

#: Environment variable that holds the tags of the runs that a process works for.
RUN_VARIABLE = "DLSIM_RUN"
#: Seconds that killed processes may take to end.
KILL_SECONDS = 5.0
_HAS_MASKS = hasattr(signal, "pthread_sigmask")  # Windows has none
#: Put the folder `root` before the first place of imports that holds a dlsim; before no other one.
_DLSIM_FIRST = """
import os, sys
root = {root!r}
places = [os.path.abspath(place) for place in sys.path]
holds_dlsim = [os.path.isfile(os.path.join(place, "dlsim", "__init__.py")) for place in places]
first = holds_dlsim.index(True) if any(holds_dlsim) else len(places)
if places[first : first + 1] != [root]:
    sys.path.insert(first, root)
"""
_RUN_MODULE = """
import runpy, sys
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def code_to_import_dlsim() -> str:
    """Return code with which another process of this Python imports the dlsim of this process."""
    return _DLSIM_FIRST.format(root=str(Path(__file__).parents[1]))


def module_command(module: str, *words: str) -> list[str]:
    """Return a command that runs a module, which imports the dlsim of this process."""
    return [sys.executable, "-P", "-c", code_to_import_dlsim() + _RUN_MODULE, module, *words]


def tagged_env(tag: str) -> dict[str, str]:
    """Return the environment of a process that works for a run."""
    outer = os.environ.get(RUN_VARIABLE, "")
    return {**os.environ, RUN_VARIABLE: f"{outer}:{tag}".strip(":")}


def processes_of(tag: str) -> "list[psutil.Process]":
    """Return the processes that work for a run, without this one."""
    import psutil  # here, since the command line reports an interrupt only after its own imports

    tagged = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            tags = process.environ().get(RUN_VARIABLE, "").split(":")
            if tag in tags and process.pid != os.getpid():
                tagged.append(process)
    return tagged


def _is_alive(process: "psutil.Process") -> bool:
    """Tell whether a process still runs; a zombie only waits for its parent to read its status."""
    import psutil

    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def kill_run(tag: str) -> None:
    """Kill the processes of a run, stopped ones too, and wait until they have ended.

    Three passes also find processes that start meanwhile.
    """
    import psutil

    for _ in range(3):
        if not (doomed := processes_of(tag)):
            return
        for process in doomed:
            with contextlib.suppress(psutil.Error):
                process.kill()
        deadline = time.monotonic() + KILL_SECONDS
        while any(map(_is_alive, doomed)) and time.monotonic() < deadline:
            time.sleep(0.02)


@contextlib.contextmanager
def defer_interrupts() -> Iterator[None]:
    """Defer interrupts to the end of this block; processes that it starts ignore Ctrl-C.

    A terminal sends Ctrl-C to worker processes, too. A worker that still imports would print a
    traceback after the last message of its parent. `ignore_interrupts` begins such a worker.
    """
    deferred: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = {getattr(signal, name, signal.SIGINT) for name in ("SIGINT", "SIGTERM", "SIGHUP")}
        known: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
        handlers = {number: handler for number, handler in known.items() if callable(handler)}
    for number in handlers:  # a mask alone is not enough: another thread may take the signal
        signal.signal(number, lambda number, frame: deferred.append((number, frame)))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if _HAS_MASKS else ()
    try:
        yield
    finally:
        if _HAS_MASKS:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if deferred:
            number, frame = deferred[0]
            handlers[number](number, frame)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C in a worker that was started in `defer_interrupts`; its parent handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def start_worker(reader: "Connection", parent: int) -> None:
    """Initialize a worker process: ignore Ctrl-C, and exit when the parent process has ended.

    This module imports no compiler, so that a worker does so before all else.
    """

    def exit_with_parent() -> None:
        with contextlib.suppress(OSError):
            while not reader.poll(1) and os.getppid() == parent:
                pass
        os._exit(1)

    ignore_interrupts()
    threading.Thread(target=exit_with_parent, daemon=True).start()


@contextlib.contextmanager
def interrupt_on_termination() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGTERM, and at SIGHUP when the terminal closes."""

    def interrupt(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt(f"ended by {signal.Signals(number).name}")

    before = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
