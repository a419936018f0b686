"""Worker processes of this machine: started once, ended with the process that uses them."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Any

from dlsim.given import whole


def count(jobs: int = 0) -> int:
    """Return the number of workers, 0 for ``$DLSIM_JOBS`` or all cores; it is 1 inside a worker."""
    rule = "a whole number, 0 for all cores"
    number = whole("jobs", jobs, 0, rule=rule)
    if not number and (text := os.environ.get("DLSIM_JOBS")):
        number = whole("jobs", int(text) if text.isdecimal() else text, 0, rule=rule)
    if multiprocessing.parent_process() is not None:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return number or len(os.sched_getaffinity(0))
    return number or os.cpu_count() or 1


class Pool:
    """Worker processes that serve every sweep of this process.

    They hold one end of a pipe whose other end only this process has: when it closes, by
    `close` or by death of whatever kind, they exit at once.
    """

    def __init__(self, jobs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.jobs = jobs
        self.reader, self.lifeline = context.Pipe(duplex=False)
        start = (self.reader, os.getpid())
        self.executor = ProcessPoolExecutor(jobs, context, _start, start)

    def submit(self, *call: Any) -> Future[Any]:
        """Submit a call; new workers are started here."""
        with _main_hidden():
            return self.executor.submit(*call)

    def close(self) -> None:
        """End the workers at once, in the midst of what they do."""
        self.lifeline.close()
        self.reader.close()
        self.executor.shutdown(wait=False, cancel_futures=True)


_OPEN: list[Pool] = []


def is_open() -> bool:
    """Tell whether workers are there already."""
    return bool(_OPEN)


def pool(jobs: int) -> Pool:
    """Return the open pool, or a new one where it has another size."""
    if not _OPEN or _OPEN[0].jobs != jobs:
        close()
        _OPEN.append(Pool(jobs))
    return _OPEN[0]


def close() -> None:
    """End the workers at once, if there are any."""
    while _OPEN:
        _OPEN.pop().close()


def _start(reader: Connection, parent: int) -> None:
    """Leave interrupts to the parent, and exit when it is gone."""

    def watch() -> None:
        with suppress(OSError):
            while not reader.poll(1) and os.getppid() == parent:
                pass
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Keep new workers from running the caller's script again: they need none of it."""
    main = vars(sys.modules["__main__"])
    kept: dict[str, Any] = {n: main[n] for n in ("__file__", "__spec__") if n in main}
    main["__spec__"] = None
    main.pop("__file__", None)
    try:
        yield
    finally:
        main.update(kept)
