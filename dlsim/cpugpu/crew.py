"""Who runs the kernels: one worker per device, as threads here or as Dask processes.

A crew never queues: the desk hands a device one job at a time, so that the sub-queues of the
policy are the only ones (Dask would run what waits at one worker nearly in reverse).
"""

import platform
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from dlsim.given import extra


class LostWorkerError(RuntimeError):
    """The worker of a device died while it ran a job."""


class Crew:
    """One worker for each device, started and stopped with the crew as a context."""

    _pools: Sequence[Any] = ()

    def __init__(self, devices: Sequence[str]) -> None:
        self.host, self._devices = platform.node(), tuple(devices)

    def submit(self, device: int, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a function on the worker of a device."""
        return self._pools[device].submit(function, *args)

    def was_lost(self, error: BaseException) -> bool:
        """Tell whether an error means that the worker died, or asked to run the job again."""
        return isinstance(error, LostWorkerError)

    def __enter__(self) -> Self:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError


class Threads(Crew):
    """One thread of this process per device: no isolation, nothing to install."""

    def __enter__(self) -> Self:
        self._pools = [ThreadPoolExecutor(1, f"dlsim-{name}") for name in self._devices]
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)


class Dask(Crew):
    """One single-threaded Dask process per device, started anew if it dies (extra cluster)."""

    def __init__(self, devices: Sequence[str]) -> None:
        self._dask, self._distributed = (
            extra("this crew", "cluster", name, ", or use --crew threads")
            for name in ("dask", "distributed")
        )
        super().__init__(devices)
        self._cluster: Any = None
        self._client: Any = None

    def __enter__(self) -> Self:
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
            self._cluster = distributed.SpecCluster(
                workers=workers, scheduler=scheduler, silence_logs="CRITICAL"
            )
            self._client = distributed.Client(self._cluster)
            self._client.wait_for_workers(len(workers))
        # nothing is looked up by name or kept: each submission is a run of its own
        self._pools = [
            self._client.get_executor(workers=[name], allow_other_workers=False, pure=False)
            for name in self._devices
        ]
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._cluster.close()

    def was_lost(self, error: BaseException) -> bool:
        """Tell whether Dask reports that the worker died, too."""
        return super().was_lost(error) or isinstance(error, self._distributed.KilledWorker)


#: The crews by name.
CREWS: dict[str, Callable[[Sequence[str]], Crew]] = {"threads": Threads, "dask": Dask}
