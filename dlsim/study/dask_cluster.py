"""A Dask cluster on which sweeps run: found by its address, refused where it does not fit.

Workers, the scheduler and this process may end at any moment; this process keeps finished cells.
"""

import functools
import multiprocessing
import os
from concurrent.futures import Executor
from typing import Any

from dlsim.errors import InputError
from dlsim.files import read_json
from dlsim.validate import import_extra

#: Environment variable that names the scheduler of a Dask cluster.
DASK_VARIABLE = "DLSIM_DASK"
#: How long a scheduler may take to answer, and a worker to come (a batch queue may be slow).
ANSWER_SECONDS, WORKER_SECONDS = 10, 300


def address_of_file(path: str) -> str:
    """Return the address in the file that a scheduler wrote."""
    if not os.path.isfile(path):
        raise InputError(f"{path}: no such scheduler file; has the scheduler started?")
    try:
        return str(read_json(path)["address"])
    except (InputError, KeyError, TypeError) as error:
        what = f"{path}: not the file of a scheduler ({error})"
        raise InputError(f"{what}; start the scheduler again") from error


def connect(place: str) -> Any:
    """Connect to a scheduler, by its address or by the file FILE.json that it left."""
    distributed = import_extra("a Dask cluster", "cluster", "distributed")
    address = address_of_file(place) if place.endswith(".json") else place
    try:
        return distributed.Client(address, timeout=ANSWER_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, KeyError) as error:
        what = f"no Dask scheduler answers at {place!r} ({error or type(error).__name__})"
        remedy = "give the address that dask scheduler prints, such as tcp://127.0.0.1:8786"
        raise InputError(f"{what}; {remedy}") from error


def check_cluster(place: str) -> str:
    """Refuse a cluster that could not run the sweeps of this dlsim; return one line about it."""

    def describe_dlsim() -> str:
        # sent by value, since it is local: the worker may have no dlsim
        try:
            import dlsim
            from dlsim.cache import package_digest
        except Exception as error:
            return f"no dlsim ({type(error).__name__}: {error})"
        return f"dlsim {dlsim.__version__} from sources {package_digest()}"

    client = connect(place)
    try:
        client.submit(describe_dlsim, pure=False).result(timeout=WORKER_SECONDS)
        found = client.run(describe_dlsim)
        threads = sum(client.nthreads().values())
    except TimeoutError as error:
        remedy = f"start some: dask worker {place} --nworkers 4 --nthreads 1"
        what = f"no worker of {place} took work within {WORKER_SECONDS} s"
        raise InputError(f"{what}; {remedy}") from error
    except Exception as error:
        # a worker of another Python or Dask fails in its own way
        what = f"the workers of {place} cannot run a function of dlsim ({error})"
        raise InputError(f"{what}; give them the same Python and packages") from error
    finally:
        client.close()
    here = describe_dlsim()
    for worker, there in found.items():
        if there != here:
            what = f"worker {worker} of {place} has {there}, where this is {here}"
            raise InputError(f"{what}; install this dlsim there and start the workers again")
    return f"{len(found)} workers with {threads} threads at {place}"


_connect_once = functools.cache(connect)


def cluster_executor() -> Executor | None:
    """Return the executor of the cluster that the environment names; None in a worker."""
    place = os.environ.get(DASK_VARIABLE)
    if not place or multiprocessing.parent_process() is not None:
        return None
    if _connect_once(place).status == "closed":
        _connect_once.cache_clear()
    executor: Executor = _connect_once(place).get_executor(pure=False)
    return executor
