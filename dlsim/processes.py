"""Processes that a run starts: found by a mark, ended with everything below them.

A kernel lives in a session of its own, and outlives whoever started it if it is stopped at
that moment. What a run starts therefore carries the run's mark in its environment, by which
it is found whoever its parent is by then.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import psutil

#: Environment variable that holds the marks of the runs that a process works for.
VARIABLE = "DLSIM_RUN"
#: How long a process that was killed may take to be gone.
GONE_SECONDS = 5.0
_HAS_MASKS = hasattr(signal, "pthread_sigmask")  # Windows has none


def marked(mark: str) -> dict[str, str]:
    """Return the environment of a process that works for a run."""
    outer = os.environ.get(VARIABLE, "")
    return {**os.environ, VARIABLE: f"{outer}:{mark}".strip(":")}


def of_run(mark: str) -> "list[psutil.Process]":
    """Return the processes that work for a run, this one left out."""
    import psutil  # not at the top: the command line cannot yet be interrupted in words

    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            marks = process.environ().get(VARIABLE, "").split(":")
            if mark in marks and process.pid != os.getpid():
                found.append(process)
    return found


def _runs(process: "psutil.Process") -> bool:
    """Tell whether a process is there and not only waits to be asked how it ended."""
    import psutil

    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def end_run(mark: str) -> None:
    """Kill a run's processes, stopped ones and late ones too, and wait until they are gone."""
    import psutil

    for _ in range(3):
        if not (doomed := of_run(mark)):
            return
        for process in doomed:
            with contextlib.suppress(psutil.Error):
                process.kill()
        deadline = time.monotonic() + GONE_SECONDS
        while any(map(_runs, doomed)) and time.monotonic() < deadline:
            time.sleep(0.02)


@contextlib.contextmanager
def interrupts_wait() -> Iterator[None]:
    """Hold interrupts back here, and Ctrl-C from the processes that are started meanwhile.

    A terminal interrupts workers too: one that still imports, or that is told only half of what
    it needs, would say so after our last word. Such a worker begins with `leave_interrupts`.
    """
    held: list[tuple[int, FrameType | None]] = []
    is_main = threading.current_thread() is threading.main_thread()
    named = {getattr(signal, name, signal.SIGINT) for name in ("SIGINT", "SIGTERM", "SIGHUP")}
    handlers: Any = {n: signal.getsignal(n) for n in named if is_main}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in handlers:  # a mask alone is not enough: another thread may take the signal
        signal.signal(number, lambda *told: held.append(told))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if _HAS_MASKS else ()
    try:
        yield
    finally:
        if _HAS_MASKS:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if held:
            handlers[held[0][0]](*held[0])


def leave_interrupts() -> None:
    """Leave interrupts to the parent, in a worker that was started while they waited."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _HAS_MASKS:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def begin(reader: "Connection", parent: int) -> None:
    """Begin as a worker: leave interrupts to the parent, and exit when it is gone.

    This stands here, where no compiler is imported, so that a worker knows it from the first.
    """

    def watch() -> None:
        with contextlib.suppress(OSError):
            while not reader.poll(1) and os.getppid() == parent:
                pass
        os._exit(1)

    leave_interrupts()
    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def termination_interrupts() -> Iterator[None]:
    """Let SIGTERM, and a terminal that goes away, do what Ctrl-C does."""

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
