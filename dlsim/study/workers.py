"""Names by which the earlier sweeps (`dlsim.study.sweeps`) call workers; they go with these."""

from concurrent.futures import Executor

from dlsim.study import worker_pool
from dlsim.study.dask_cluster import cluster_executor
from dlsim.study.worker_pool import WorkerPool as Pool
from dlsim.study.worker_pool import close_pool as close
from dlsim.study.worker_pool import count_workers as count
from dlsim.study.worker_pool import open_pool as pool

__all__ = ["Pool", "close", "cluster", "count", "is_open", "pool"]
#: Workers that a cluster is assumed to have.
_ASSUMED = 128


def is_open() -> bool:
    """Tell whether workers are there already."""
    return bool(worker_pool._OPEN)


def cluster() -> tuple[Executor, int] | None:
    """Return the cluster that the environment names, and how many batches it gets."""
    found = cluster_executor()
    return (found, _ASSUMED) if found else None
