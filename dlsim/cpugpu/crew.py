"""Who runs the kernels: one worker per device, as threads here or as Dask processes.

A crew never queues: the desk hands a device one job at a time, so that the sub-queues of the
policy are the only ones (Dask would run what waits at one worker nearly in reverse).
"""

import platform
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, Self

from dlsim.errors import InputError


class LostWorkerError(RuntimeError):
    """The worker of a device died while it ran a job."""


class Crew(Protocol):
    """One worker for each device."""

    host: str

    def submit(self, device: int, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a function on the worker of a device."""

    def was_lost(self, error: BaseException) -> bool:
        """Tell whether an error means that the worker died, rather than the job."""

    def __enter__(self) -> Self:
        """Start the workers."""

    def __exit__(self, *_: object) -> None:
        """Stop them."""


class _Pools:
    """A crew of one executor per device."""

    _pools: Sequence[Any] = ()

    def submit(self, device: int, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Start a function on the worker of a device; as `Crew.submit`."""
        return self._pools[device].submit(function, *args)


class Threads(_Pools):
    """One thread of this process per device: no isolation, nothing to install."""

    def __init__(self, devices: Sequence[str]) -> None:
        self.host = platform.node()
        self._devices = tuple(devices)

    def __enter__(self) -> Self:
        """Start the threads."""
        self._pools = [ThreadPoolExecutor(1, f"dlsim-{name}") for name in self._devices]
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the threads to end."""
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)

    def was_lost(self, error: BaseException) -> bool:
        """Tell whether a job asked to be run again by raising `LostWorkerError`."""
        return isinstance(error, LostWorkerError)


class Dask(_Pools):
    """One single-threaded Dask process per device, started anew if it dies (extra cluster)."""

    def __init__(self, devices: Sequence[str]) -> None:
        try:
            import dask
            import distributed
        except ImportError as error:
            raise InputError(
                f"this crew needs the extra cluster ({error}): pip install 'dlsim[cluster]', or "
                "use --crew threads"
            ) from error
        self.host = platform.node()
        self._devices, self._dask, self._distributed = tuple(devices), dask, distributed
        self._cluster: Any = None
        self._client: Any = None

    def __enter__(self) -> Self:
        """Start scheduler and workers."""
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
        """Stop workers and scheduler."""
        self._client.close()
        self._cluster.close()

    def was_lost(self, error: BaseException) -> bool:
        """Tell whether Dask reports that the worker died."""
        return isinstance(error, (self._distributed.KilledWorker, LostWorkerError))


#: The crews by name.
CREWS: dict[str, Callable[[Sequence[str]], Crew]] = {"threads": Threads, "dask": Dask}
