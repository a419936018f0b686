"""Who runs the jobs: one worker per device, as threads, as processes, or as Dask processes.

A crew never queues: the desk hands a device one job at a time, so that the sub-queues of the
policy are the only ones (Dask would run what waits at one worker nearly in reverse). Whatever
a crew starts carries its mark, and is ended with it. Where this process is killed, the system
ends workers and commands at once (Linux: prctl, setpriv); what these started, and all of it
elsewhere, is ended by a watcher, a process of its own. What is left if that was killed too is
ended when the same run goes on from its log.
"""

import multiprocessing
import os
import platform
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from multiprocessing import resource_tracker
from typing import Any, Self

from dlsim import processes
from dlsim.cpugpu.live.kernels import Kernel
from dlsim.cpugpu.live.work import App, packed
from dlsim.given import extra

#: Waits until the process that started it is gone, however it ended.
WATCHER = """
import sys, psutil
from dlsim.processes import end_run
sys.stdin.read()
end_run(sys.argv[1])
"""


class LostWorkerError(RuntimeError):
    """The worker of a device died while it ran a job."""


class Crew:
    """One worker for each device, started and stopped with the crew as a context."""

    #: Whether a worker is a process, which can be ended on its own.
    HAS_PROCESSES = False
    #: What says that a worker died, or asks to run the job again.
    lost: tuple[type[BaseException], ...] = (LostWorkerError,)
    _pools: Any = ()
    _pids: list[int]

    def __init__(self, devices: Sequence[str]) -> None:
        self.host, self.mark, self._devices = platform.node(), secrets.token_hex(8), tuple(devices)

    def submit(self, device: int, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a function on the worker of a device."""
        with processes.interrupts_wait():  # the worker may be started here
            return self._pools[device].submit(function, *args)

    def pack(self, work: Kernel | App) -> Any:
        """Return what workers are sent for a kernel or App: to processes, the same bytes always."""
        return packed(work) if self.HAS_PROCESSES else work

    def ready(self, device: int) -> Future[int]:
        """Return what is done once the worker of a device, started anew if it died, is there."""

        def here(future: Future[int]) -> None:
            if not future.cancelled() and not future.exception():
                self._pids[device] = future.result()

        ready = self.submit(device, os.getpid)
        ready.add_done_callback(here)
        return ready

    def end(self, device: int) -> None:
        """Kill the worker of a device, where it is a process."""
        import psutil

        with suppress(psutil.Error):
            if self.HAS_PROCESSES:
                psutil.Process(self._pids[device]).kill()

    def __enter__(self) -> Self:
        if self.HAS_PROCESSES:
            resource_tracker.ensure_running()  # Python's own, which outlives the crew
        nowhere = subprocess.DEVNULL
        self._watcher = subprocess.Popen(
            [sys.executable, "-c", WATCHER, self.mark], stdin=subprocess.PIPE, stdout=nowhere,
            stderr=nowhere, start_new_session=True,
        )  # fmt: skip
        self._outer = os.environ.get(processes.VARIABLE)
        os.environ |= processes.marked(self.mark)  # what is started from here on inherits it
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            processes.end_run(self.mark)
            self._stop()
        finally:
            self._watcher.kill()
            self._watcher.communicate()
            os.environ.pop(processes.VARIABLE, None)
            if self._outer is not None:
                os.environ[processes.VARIABLE] = self._outer

    def _pool(self, device: str) -> Any:
        raise NotImplementedError

    def _start(self) -> None:
        self._pools = [self._pool(name) for name in self._devices]
        there = [Crew.submit(self, k, os.getpid) for k in range(len(self._pools))]
        self._pids = [ready.result() for ready in there]

    def _stop(self) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)


class Threads(Crew):
    """One thread of this process per device: no isolation, nothing to install."""

    def _pool(self, device: str) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, f"dlsim-{device}")


def _begin() -> None:
    """Begin as a worker: an interrupt is for the session, and its end ends the worker."""
    processes.leave_interrupts()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Processes(Crew):
    """One process per device, started anew if it dies: own interpreter, own output, own cores."""

    HAS_PROCESSES, lost = True, (LostWorkerError, BrokenExecutor)

    def _pool(self, device: str) -> ProcessPoolExecutor:
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(1, spawn, initializer=_begin)

    def submit(self, device: int, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a function on the worker of a device, a new worker if the last one died."""
        with suppress(BrokenExecutor):
            return super().submit(device, function, *args)
        self._pools[device] = self._pool(self._devices[device])
        self.ready(device)
        return super().submit(device, function, *args)


class Dask(Crew):
    """One single-threaded Dask process per device, started anew if it dies (extra cluster)."""

    HAS_PROCESSES = True

    def __init__(self, devices: Sequence[str]) -> None:
        self._dask, self._distributed = (
            extra("this crew", "cluster", name, ", or use --crew threads")
            for name in ("dask", "distributed")
        )
        super().__init__(devices)
        self.lost = (LostWorkerError, self._distributed.KilledWorker)
        self._parts = ExitStack()

    def _start(self) -> None:
        distributed = self._distributed
        options = {"nthreads": 1, "dashboard_address": None, "silence_logs": "CRITICAL"}
        workers = {
            name: {"cls": distributed.Nanny, "options": {**options, "name": name}}
            for name in self._devices
        }
        scheduler = {"cls": distributed.Scheduler, "options": {"dashboard_address": None}}
        # a job whose worker died comes back to the desk, which decides anew
        rules = {"distributed.scheduler.allowed-failures": 0}
        with self._dask.config.set(rules):
            cluster = self._parts.enter_context(distributed.SpecCluster(
                workers=workers, scheduler=scheduler, silence_logs="CRITICAL"
            ))  # fmt: skip
            self._client = self._parts.enter_context(distributed.Client(cluster))
            self._client.wait_for_workers(len(workers))
        super()._start()

    def _pool(self, device: str) -> Any:
        # nothing is looked up by name or kept: each submission is a run of its own
        return self._client.get_executor(workers=[device], allow_other_workers=False, pure=False)

    def _stop(self) -> None:
        self._parts.close()

    def __exit__(self, *_: object) -> None:
        """Let Dask end its own processes first; it would start killed ones anew."""
        self._stop()
        super().__exit__()


#: The crews by name.
CREWS: dict[str, Callable[[Sequence[str]], Crew]] = {
    "threads": Threads, "processes": Processes, "dask": Dask,
}  # fmt: skip
