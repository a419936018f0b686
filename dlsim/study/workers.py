"""Where the cells of a sweep run: in worker processes here, or on a Dask cluster.

Processes are started once, and end with the one that uses them. A cluster is somebody else's: a
sweep that was not told how many processes to use sends its cells there, and keeps here what comes
back, so that workers, the scheduler and this process may die at any moment.
"""

import functools
import multiprocessing
import os
import sys
from collections import defaultdict
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import dlsim
from dlsim import processes
from dlsim.cache import source_digest
from dlsim.errors import InputError
from dlsim.files import read_json
from dlsim.given import extra, whole

#: Environment variables: the scheduler of a Dask cluster, and how many workers a sweep gets.
DASK, JOBS = "DLSIM_DASK", "DLSIM_JOBS"
#: How long a scheduler may take to answer, and a worker to come (a batch queue may be slow).
ANSWER_SECONDS, WORKER_SECONDS = 10, 300
#: How long workers are waited for that end: a stopped one would never.
END_SECONDS = 3.0
#: How many of the workers that do not fit are named.
_NAMED = 3


def count(jobs: int = 0) -> int:
    """Return the number of workers, 0 for ``$DLSIM_JOBS`` or all cores; it is 1 inside a worker."""
    rule = "a whole number, 0 for all cores"
    number = whole("jobs", jobs, 0, rule=rule)
    if not number and (text := os.environ.get(JOBS)):
        number = whole(JOBS, int(text) if text.isdecimal() else text, 0, rule=rule)
    if multiprocessing.parent_process() is not None:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return number or len(os.sched_getaffinity(0))
    return number or os.cpu_count() or 1


class Pool(ProcessPoolExecutor):
    """Worker processes that serve every sweep of this process.

    They hold one end of a pipe whose other end only this process has: when it closes, by
    `close` or by death of whatever kind, they exit at once.
    """

    def __init__(self, jobs: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.jobs, (self.reader, self.lifeline) = jobs, context.Pipe(duplex=False)
        super().__init__(jobs, context, processes.begin, (self.reader, os.getpid()))

    def submit(self, /, *call: Any) -> Future[Any]:  # type: ignore[override]
        """Submit a call; new workers are started here, and need not run the caller's script."""
        main = vars(sys.modules["__main__"])
        kept: dict[str, Any] = {n: main[n] for n in ("__file__", "__spec__") if n in main}
        main["__spec__"] = None
        main.pop("__file__", None)
        try:
            with processes.interrupts_wait():
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


# ------------------------------------------------------------------ a Dask cluster


def _address(path: str) -> str:
    try:
        return str(read_json(path)["address"])
    except (InputError, KeyError, TypeError) as error:
        what = f"{path}: not the file of a scheduler ({error})"
        raise InputError(f"{what}; start the scheduler again") from error


def connect(place: str, security: Any = None) -> Any:
    """Connect to a scheduler, by its address or by the file FILE.json that it left."""
    distributed = extra("a Dask cluster", "cluster", "distributed")
    is_file = place.endswith(".json")
    if is_file and not Path(place).is_file():
        raise InputError(f"{place}: no such scheduler file; has the scheduler started?")
    address = _address(place) if is_file else place
    try:
        return distributed.Client(
            address, timeout=ANSWER_SECONDS, set_as_default=False, security=security
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        what = f"no Dask scheduler answers at {place!r} ({error or type(error).__name__})"
        remedy = "give the address that dask scheduler prints, such as tcp://127.0.0.1:8786"
        raise InputError(f"{what}; {remedy}") from error


def check(place: str) -> str:
    """Refuse a cluster that could not run the sweeps of this dlsim; return one line about it."""

    def probe() -> tuple[str, str]:
        # sent by value, since it is local: the worker may have no dlsim
        try:
            import dlsim
            from dlsim.cache import source_digest
        except Exception as error:
            return "", f"{type(error).__name__}: {error}"
        return dlsim.__version__, source_digest()

    client = connect(place)
    try:
        client.submit(probe, pure=False).result(timeout=WORKER_SECONDS)
        found = client.run(probe)
        threads = sum(client.nthreads().values())
    except TimeoutError as error:
        remedy = f"start some: dask worker {place} --nworkers 4 --nthreads 1"
        what = f"no worker of {place} took work within {WORKER_SECONDS} s"
        raise InputError(f"{what}; {remedy}") from error
    except Exception as error:
        # a worker of another Python or Dask fails in its own way
        what = f"the workers of {place} cannot run a function of ours ({error})"
        raise InputError(f"{what}; give them the same Python and packages") from error
    finally:
        client.close()
    _need_same(place, found)
    return f"{len(found)} workers with {threads} threads at {place}"


def _need_same(place: str, found: dict[str, tuple[str, str]]) -> None:
    """Refuse workers with another dlsim than ours, or with none."""
    wrong = defaultdict(list)
    for worker, (version, digest) in found.items():
        if not version:
            wrong[f"cannot import dlsim ({digest})"].append(worker)
        elif digest != source_digest():
            wrong[f"runs dlsim {version} from sources {digest}"].append(worker)
    for what, workers in wrong.items():
        named = ", ".join(workers[:_NAMED]) + ", ..." * (len(workers) > _NAMED)
        raise InputError(
            f"{place}: of {len(found)} workers {len(workers)} {what}, where this is dlsim"
            f" {dlsim.__version__} from sources {source_digest()}: {named}; install this dlsim"
            " there and start the workers again"
        )


@functools.cache
def _client(place: str) -> Any:
    return connect(place)


def cluster() -> tuple[Executor, int] | None:
    """Return the cluster that the environment names, and its threads; None in a worker."""
    place = os.environ.get(DASK)
    if not place or multiprocessing.parent_process() is not None:
        return None
    client = _client(place)
    if client.status == "closed":
        _client.cache_clear()
        client = _client(place)
    return client.get_executor(pure=False), sum(client.nthreads().values())
