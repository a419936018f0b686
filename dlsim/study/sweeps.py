"""Call a function at many points and replicates, on any executor, and keep every finished cell.

A cell is one call: (function, point, replicate). Its result is a small text file in the
cache folder, named by a digest of everything that decides it (`dlsim.study.fingerprint`). A sweep
that was killed resumes with the cells that have no file; nothing is ever unpickled from disk.

Worker processes of this machine are spawned once and serve every sweep of the process. Each holds
one end of a pipe whose other end only their parent has: when it closes, by `close` or by death of
whatever kind, they exit.
"""

import functools
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import queue
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import pandas as pd

from dlsim import processes, progress
from dlsim.cache import cache_folder, private_folder, read_own_file
from dlsim.errors import DlsimError, InputError, StudyError
from dlsim.files import MAX_TABLE_BYTES, write_bytes
from dlsim.study import session
from dlsim.study.dask_cluster import cluster_executor
from dlsim.study.fingerprint import (
    Used,
    digest_used,
    find_used,
    fingerprint,
    note_experiment,
    ship_by_value,
)
from dlsim.validate import mapping, unwrap_scalar, whole

#: Cells run in this process for so long before worker processes are worth their start.
SECONDS_BEFORE_WORKERS = 1.0
#: Cells that an executor has at first; a quarter of a cell more with each result, and twice as many
#: after a second without one. Dask learns that a result is kept only after it has taken in all that
#: was sent before: until then, the death of a worker has the cell computed again.
FIRST_CALLS, SECONDS_FOR_A_RESULT = 32, 1.0
#: How often a sweep continues with new workers after some have died.
RETRIES = 2

Point = dict[str, Any]


class Cell(NamedTuple):
    """One call of a sweep: where it stands in the result, and the file that keeps it."""

    point: Point
    replicate: int
    file: Path | None


# ------------------------------------------------------------------ the points


def points_of(given: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Point]:
    """Return the points of a sweep, in order; refuse none, or points that differ in kind."""
    rows = _combinations(given) if isinstance(given, Mapping) else _listed_points(given)
    if not rows:
        raise InputError("the sweep has no points: give every parameter at least one value")
    for number, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            what = f"point {number} has parameters {sorted(row)}, point 0 has"
            raise InputError(f"{what} {sorted(rows[0])}: give all points the same ones")
    return [{name: unwrap_scalar(value) for name, value in row.items()} for row in rows]


def _combinations(given: Mapping[str, Any]) -> list[Point]:
    """Return all combinations of the values of each parameter, the last one varying fastest."""
    for name, values in given.items():
        if isinstance(values, str | Mapping) or not hasattr(values, "__iter__"):
            what = f"points[{name!r}] must be a list of values, got {values!r}:"
            raise InputError(f"{what} write [value], or give a constant in fixed")
    return [dict(zip(given, row, strict=True)) for row in itertools.product(*given.values())]


def _listed_points(given: Sequence[Mapping[str, Any]]) -> list[Point]:
    """Return the points of a list; refuse anything else."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        what = "points must be a mapping of lists, or a list of mappings"
        raise InputError(f"{what}; got {given!r}")
    return [dict(mapping(f"point {k}", row)) for k, row in enumerate(given)]


def _cells(points: list[Point], replicates: int, seed: int, folder: Path | None) -> list[Cell]:
    """Return the cells point by point, each with all its replicates."""
    result = []
    for point in points:
        known = fingerprint(point)[0] if folder else ""
        for replicate in range(replicates):
            name = hashlib.sha256(f"{known} {seed} {replicate}".encode()).hexdigest()
            file = folder / f"{name[:32]}.txt" if folder else None
            result.append(Cell(point, replicate, file))
    return result


def _cell_folder(function: Callable[..., Any], fixed: Point, points: list[Point]) -> Path:
    """Return the folder of the cells of a function with these fixed arguments."""
    known, modules = fingerprint((function, sorted(fixed.items())))
    modules |= fingerprint(points)[1]
    key = hashlib.sha256(f"{known} {digest_used(find_used(modules))}".encode()).hexdigest()
    return private_folder(cache_folder(), "cells", key[:32])


# ------------------------------------------------------------------ results as text


def encode(result: Any, taken: set[str]) -> str:
    """Return the result of a function as one line of JSON, column by column."""
    table = _columns_of(result)
    if clash := taken & table.keys():
        raise StudyError(f"the result has columns {sorted(clash)} that the points have too: rename")
    table = {name: [_plain(name, value) for value in values] for name, values in table.items()}
    return json.dumps(table, separators=(",", ":"))


def _columns_of(result: Any) -> dict[str, list[Any]]:
    """Return the columns of a DataFrame, a dict or a list of dicts; refuse anything else."""
    if isinstance(result, pd.DataFrame):
        return {str(name): column.tolist() for name, column in result.items()}
    rows = [result] if isinstance(result, Mapping) else result
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        what = "the function of a sweep must return a dict, a list of dicts or a DataFrame"
        raise StudyError(f"{what}, got {type(result).__name__}")
    names = dict.fromkeys(name for row in rows for name in row)
    return {str(name): [row.get(name) for row in rows] for name in names}


def _plain(name: str, value: Any) -> Any:
    """Return a value of a column as Python's own number or text; refuse anything else."""
    plain = unwrap_scalar(value)
    if plain is not None and not isinstance(plain, bool | int | float | str):
        raise StudyError(f"column {name!r} must hold numbers or text, got {plain!r}")
    return plain


def _write(file: Path, text: str) -> None:
    """Write a finished cell whole or not at all, with a checksum.

    The file is not synchronised to the disk, which would take longer than most cells: what
    a power failure damages fails its checksum and is computed anew.
    """
    body = f"{text}\n{hashlib.sha256(text.encode()).hexdigest()}\n"
    try:
        write_bytes(file, body.encode("ascii"), sync=False)
    except DlsimError as error:
        raise StudyError(
            f"cannot keep finished cells: {error}, or name another folder in the environment"
            " variable DLSIM_CACHE"
        ) from error


def _read(file: Path | None) -> dict[str, list[Any]] | None:
    """Return the result in a finished cell's file; None if it is missing, damaged or foreign."""
    if file is None:
        return None
    try:
        text, checksum, end = read_own_file(file, MAX_TABLE_BYTES).decode("ascii").split("\n")
        if end or checksum != hashlib.sha256(text.encode()).hexdigest():
            return None
        return dict(json.loads(text))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _frame(cells: list[Cell], tables: Sequence[dict[str, list[Any]]]) -> pd.DataFrame:
    """Return the tidy frame of a sweep."""
    names = list(dict.fromkeys(name for table in tables for name in table))
    columns: dict[str, list[Any]] = {name: [] for name in (*cells[0].point, "replicate", *names)}
    for cell, table in zip(cells, tables, strict=True):
        rows = len(next(iter(table.values()), ()))
        for name, value in (*cell.point.items(), ("replicate", cell.replicate)):
            columns[name].extend([value] * rows)
        for name in names:
            columns[name].extend(table.get(name, [None] * rows))
    return pd.DataFrame(columns)


# ------------------------------------------------------------------ one call, here or in a worker


def _call(
    function: Callable[..., Any], fixed: Point, point: Point, seed: int, replicate: int
) -> str:
    """Call the function for one cell, and return its result as text."""
    stream = np.random.SeedSequence(seed, spawn_key=(replicate,))
    result = function(**point, **fixed, seed=stream)
    return encode(result, {*point, "replicate"})


@functools.lru_cache(maxsize=8)
def _unpack(shipped: bytes) -> Any:
    return cloudpickle.loads(shipped)


def call_in_worker(
    shipped: bytes, point: bytes, seed: int, replicate: int, used: Used, here: str
) -> str:
    """Call a function that was sent to this worker; every error travels back as a StudyError."""
    if digest_used(used) != here:
        what = "dlsim or a package it computes with differs between this worker and the notebook"
        raise StudyError(f"{what}: restart the kernel, and the workers of a cluster")
    try:
        function, fixed = _unpack(shipped)
        return _call(function, fixed, cloudpickle.loads(point), seed, replicate)
    except Exception as error:
        raise StudyError(f"{type(error).__name__}: {error}") from error


# ------------------------------------------------------------------ worker processes

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


_OPEN_POOLS: list[WorkerPool] = []


def open_pool(jobs: int) -> WorkerPool:
    """Return the open pool, or a new one where it has another size."""
    if not _OPEN_POOLS or _OPEN_POOLS[0].jobs != jobs:
        close_pool()
        _OPEN_POOLS.append(WorkerPool(jobs))
    return _OPEN_POOLS[0]


def close_pool() -> None:
    """End the workers at once, if there are any."""
    while _OPEN_POOLS:
        _OPEN_POOLS.pop().close()


# ------------------------------------------------------------------ the sweep


class _Sweep:
    """The cells of a sweep that are done, and those still to do."""

    def __init__(self, function: Callable[..., Any], fixed: Point, seed: int, label: str) -> None:
        self.function, self.fixed, self.seed, self.label = function, fixed, seed, label
        self.cells: list[Cell] = []
        self.results: dict[int, dict[str, list[Any]]] = {}
        self.show: Callable[[int], object] = abs

    @property
    def pending(self) -> list[int]:
        """Numbers of the cells that have no result yet."""
        return [k for k in range(len(self.cells)) if k not in self.results]

    def load(self) -> None:
        """Take over the cells that were finished earlier."""
        for number, cell in enumerate(self.cells):
            if (found := _read(cell.file)) is not None:
                self.results[number] = found

    def finish(self, number: int, text: str) -> None:
        """Keep the result of a cell."""
        file = self.cells[number].file
        if file is not None:
            _write(file, text)
        self.results[number] = json.loads(text)
        self.show(len(self.results))

    @contextmanager
    def name_error(self, number: int) -> Iterator[None]:
        """Name the cell whose error this is."""
        try:
            yield
        except (BrokenExecutor, CancelledError):
            raise
        except Exception as error:
            cell = self.cells[number]
            point = ", ".join(f"{name}={value!r}" for name, value in cell.point.items())
            where = f"{point or 'its only point'}, replicate {cell.replicate}"
            kind = "" if isinstance(error, StudyError) else f"{type(error).__name__}: "
            raise StudyError(f"{self.label} failed at {where}: {kind}{error}") from error

    def run_here(self, seconds: float = math.inf) -> None:
        """Call cells in this process, for a while."""
        begun = time.perf_counter()
        for number in self.pending:
            point, replicate, _ = self.cells[number]
            with self.name_error(number):
                text = _call(self.function, self.fixed, point, self.seed, replicate)
            self.finish(number, text)
            if time.perf_counter() - begun > seconds:
                return

    def run_on(self, executor: Executor) -> None:
        """Call the pending cells on an executor, and keep each result here as it comes."""
        shipped = cloudpickle.dumps((self.function, self.fixed))
        used = find_used(fingerprint((self.function, self.fixed))[1])
        here = digest_used(used)
        futures: dict[Future[str], int] = {}
        ended: queue.SimpleQueue[Future[str]] = queue.SimpleQueue()

        def keep_one() -> bool:
            """Keep one result; return whether one came in time."""
            try:
                future = ended.get(timeout=SECONDS_FOR_A_RESULT)
            except queue.Empty:
                return False
            # a result on a worker that dies is made again as long as its future is held
            number = futures.pop(future)
            with self.name_error(number):
                text = future.result()
            self.finish(number, text)
            return True

        try:
            most: float = FIRST_CALLS
            for number in self.pending:
                while len(futures) >= most:
                    most = most + 0.25 if keep_one() else 2 * most
                point, replicate, _ = self.cells[number]
                sent = cloudpickle.dumps(point)
                call = shipped, sent, self.seed, replicate, used, here
                future = executor.submit(call_in_worker, *call)
                futures[future] = number
                future.add_done_callback(ended.put)
                del future
            while futures:
                keep_one()
        finally:
            # a `WorkerPool` is closed instead; it fails at cancelled futures
            for future in () if isinstance(executor, WorkerPool) else futures:
                future.cancel()

    def run_on_pool(self, jobs: int) -> None:
        """Call the pending cells in worker processes, in fresh ones where some died."""
        for deaths in itertools.count(1):
            try:
                return self.run_on(open_pool(jobs))
            except (BrokenExecutor, CancelledError) as error:
                close_pool()
                if deaths > RETRIES:
                    why = f"worker processes died {deaths} times, killed or out of memory"
                    remedy = "Try fewer jobs, or jobs=1 to see the cause"
                    raise StudyError(f"{self.label}: {why}; {self.status}. {remedy}") from error
            except BaseException:
                close_pool()
                raise

    def complete(self, executor: Executor | None, workers: int) -> None:
        """Call the pending cells on an executor, or else here and then in worker processes."""
        label, total = self.label, len(self.cells)
        report = progress.reporter(label, total)
        bar = progress.progress_bar(label, total, len(self.results), report)
        try:
            with bar as self.show:
                if executor is not None and self.pending:
                    self.run_on(executor)
                else:
                    self.run_here(SECONDS_BEFORE_WORKERS if workers > 1 else math.inf)
                    if self.pending:
                        self.run_on_pool(workers)
        except (BrokenExecutor, CancelledError) as error:
            what = f"{label}: the executor failed ({type(error).__name__}); {self.status}"
            raise StudyError(what) from error
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"{label}: {self.status}") from None

    @property
    def status(self) -> str:
        """The progress of the sweep, and whether a rerun resumes there."""
        kept = "; a rerun resumes there" if self.cells[0].file else ""
        return f"{len(self.results)} of {len(self.cells)} cells are done{kept}"


def sweep(
    function: Callable[..., Any],
    points: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    replicates: int | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    fixed: Mapping[str, Any] | None = None,
    label: str = "",
) -> pd.DataFrame:
    """Call a function at every point, several times, and return one tidy frame.

    The result depends on function, points, replicates, seed and fixed alone: it is the same for any
    executor and any number of jobs. Finished cells are kept on disk, so that a sweep that was
    killed, interrupted or failed goes on where it stopped, and a repeated one is read back.

    Parameters
    ----------
    function : callable
        Called as ``function(**point, **fixed, seed=SeedSequence)``; returns a dict, a list
        of dicts or a DataFrame of numbers and text: one row, or several. A function of a notebook
        works, with the helpers and values that it uses.
    points : mapping of str to list, or list of mapping
        The values of each parameter (all combinations are visited, the last parameter
        varies fastest), or the points themselves.
    replicates : int, optional
        Number of calls per point; by default what `dlsim.study.start` says, or else 10.
    seed : int, optional
        Root of all randomness. Replicate r receives ``SeedSequence(seed, spawn_key=(r,))`` at
        every point: differences between points are differences of pairs.
        By default what `start` says, or else 0.
    jobs : int, optional
        Number of worker processes; 1 for none, 0 for ``$DLSIM_JOBS`` or all cores.
        By default what `start` says, or else 0.
    executor : concurrent.futures.Executor, optional
        Where to run instead, for instance the ``get_executor(pure=False)`` of a Dask client.
    fixed : mapping, optional
        Further arguments, the same for all points; they make no columns.
    label : str
        What the progress bar and messages call the sweep; default: the function's name.

    Returns
    -------
    DataFrame
        The points' columns, ``replicate``, the result's columns; in the order of the points, then
        by replicate. A column that a cell did not return is empty there.

    Raises
    ------
    InputError
        For points or a number that cannot be, or a cache folder that is not this user's alone.
    StudyError
        If a cell fails (the message names its point and replicate) or returns something else than
        a table of numbers and text, if the cache is full, or if workers die again and again.

    Notes
    -----
    A cell is known by what its function does: its code, and the values and functions that the code
    uses, also those of other files of the user; by the sources of the parts of dlsim that it
    uses; by the arguments and the seed. A change of one of these computes the cell anew.

    Examples
    --------
    >>> def diagonal(a, b, seed):
    ...     return {"c": (a * a + b * b) ** 0.5}
    >>> sweep(diagonal, {"a": [3, 6], "b": [4, 8]}, replicates=1)
       a  b  replicate          c
    0  3  4          0   5.000000
    1  3  8          0   8.544004
    2  6  4          0   7.211103
    3  6  8          0  10.000000
    """
    places, constants = points_of(points), dict(mapping("fixed", fixed or {}))
    names = places[0].keys()
    for name in {"seed", "replicate"} & (names | constants) | names & constants:
        raise InputError(f"{name!r} is reserved, or both in points and fixed: rename it")
    defaults = session.sweep_defaults()
    replicates = whole("replicates", defaults.replicates if replicates is None else replicates)
    seed = whole("seed", defaults.seed if seed is None else seed, 0, math.inf)
    workers = count_workers(defaults.jobs if jobs is None else jobs)
    if executor is None and jobs is None:
        executor = cluster_executor()
    label = label or str(getattr(function, "__name__", "sweep"))
    run = _Sweep(function, constants, seed, label)
    folder = _folder_or_none(function, constants, places, label)
    if folder is None:
        workers, executor = 1, None
    run.cells = _cells(places, replicates, seed, folder)
    run.load()
    run.complete(executor, workers)
    frame = _frame(run.cells, [run.results[number] for number in range(len(run.cells))])
    if defaults.paper and folder is not None:
        note_experiment(frame, function, constants, places)
    return frame


def one_bar(label: str, total: int) -> AbstractContextManager[None]:
    """Show one progress bar for all sweeps within, of `total` cells at most, with the time left.

    Cells that are kept from an earlier run are not counted.
    """
    return progress.shared_bar(label, total, progress.reporter(label, total))


def _folder_or_none(
    function: Callable[..., Any], fixed: Point, points: list[Point], label: str
) -> Path | None:
    """Return the folder of the cells; say why there is none if the function cannot be sent."""
    ship_by_value()
    try:
        return _cell_folder(function, fixed, points)
    except InputError:
        raise
    except Exception as error:  # whatever pickling raises
        print(f"{label}: cannot be sent to workers ({error}); it runs here, and nothing is kept")
        return None
