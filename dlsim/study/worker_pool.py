"""Worker processes of this machine, which end when the process that uses them ends.

They are spawned once and serve every sweep of the process. Each holds one end of a pipe whose other
end only their parent has: when it closes, by `close` or by death of whatever kind, they exit.
"""

import multiprocessing
import os
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

from dlsim import processes
from dlsim.validate import whole

#: Environment variable that says how many worker processes a sweep gets.
JOBS_VARIABLE = "DLSIM_JOBS"
#: How long workers are waited for that end: a stopped one would never.
END_SECONDS = 3.0


def count_workers(jobs: int = 0) -> int:
    """Return the number of workers, 0 for ``$DLSIM_JOBS`` or all cores; it is 1 inside a worker."""
    rule = "a whole number, 0 for all cores"
    number = whole("jobs", jobs, 0, rule=rule)
    if not number and (text := os.environ.get(JOBS_VARIABLE)):
        number = whole(JOBS_VARIABLE, int(text) if text.isdecimal() else text, 0, rule=rule)
    if multiprocessing.parent_process() is not None:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return number or len(os.sched_getaffinity(0))
    return number or os.cpu_count() or 1


class WorkerPool(ProcessPoolExecutor):
    """Worker processes, ended by a pipe."""

    def __init__(self, jobs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.jobs, (self.reader, self.lifeline) = jobs, context.Pipe(duplex=False)
        super().__init__(jobs, context, processes.start_worker, (self.reader, os.getpid()))

    def submit(self, /, *call: Any) -> Future[Any]:  # type: ignore[override]
        """Submit a call; new workers are started here, and need not run the caller's script."""
        main = vars(sys.modules["__main__"])
        kept: dict[str, Any] = {n: main[n] for n in ("__file__", "__spec__") if n in main}
        main["__spec__"] = None
        main.pop("__file__", None)
        try:
            with processes.defer_interrupts():
                return super().submit(*call)
        finally:
            main.update(kept)

    def close(self) -> None:
        """End the workers at once, in the midst of what they do."""
        self.lifeline.close()
        self.reader.close()
        manager: Any = self._executor_manager_thread
        self.shutdown(wait=False, cancel_futures=True)
        if manager:  # at exit Python would write to the pipe that this thread is about to close
            manager.join(END_SECONDS)


_OPEN: list[WorkerPool] = []


def open_pool(jobs: int) -> WorkerPool:
    """Return the open pool, or a new one where it has another size."""
    if not _OPEN or _OPEN[0].jobs != jobs:
        close_pool()
        _OPEN.append(WorkerPool(jobs))
    return _OPEN[0]


def close_pool() -> None:
    """End the workers at once, if there are any."""
    while _OPEN:
        _OPEN.pop().close()
