"""Repeat a function over a grid and replicates, on any executor, losing nothing that is done.

The unit of work is one cell: (function, point, replicate). Each finished cell is one small
file in the cache folder, so that a sweep killed at any moment resumes with the cells that
are missing; no executor is trusted with state.
"""

import itertools
import json
import math
import os
import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim import progress
from dlsim.cache import cache_folder, private_folder, source_digest
from dlsim.errors import DlsimError, InputError, StudyError
from dlsim.files import write_text
from dlsim.given import mapping, whole
from dlsim.study import cells, workers

#: A worker hands back what it has after this time; many small cells make one batch.
BATCH_SECONDS = 0.2
BATCH_CELLS = 256
#: Estimated work above which starting worker processes pays, and using open ones.
START_SECONDS, USE_SECONDS = 2.0, 0.5
#: A first cell that takes longer than this is not mainly compilation.
COLD_SECONDS = 10.0
#: How often a sweep goes on with fresh workers after some have died.
RETRIES = 2
#: Workers assumed behind an executor when it is not said how many it has.
MANY = 128


class Job(NamedTuple):
    """What all cells of a sweep share."""

    function: Callable[..., Any]
    fixed: dict[str, Any]
    seed: int
    digest: str
    folder: Path | None
    mark: str = ""  # what functions among `fixed` do


def work(job: Job, batch: Sequence[cells.Cell], seconds: float) -> list[str]:
    """Run cells one after another, for a while; return the results of those run, at least one.

    A cell that fails after others ends the batch: as the first of its next batch it fails
    again, and its error then travels the executor's own way.
    """
    differs = "differs between the processes, as after its"
    remedy = "restart this kernel or process, and the workers of a cluster"
    if source_digest() != job.digest:
        raise StudyError(f"dlsim {differs} files were changed: {remedy}")
    if job.mark and cells.mark_of(job.fixed) != job.mark:
        what = "a function that is passed to the sweep"
        raise StudyError(f"{what} {differs} file was changed: {remedy}")
    stop = time.perf_counter() + seconds
    texts: list[str] = []
    for cell in batch:
        try:
            seed = np.random.SeedSequence(job.seed, spawn_key=cell.spawn_key)
            result = job.function(**cell.point, **job.fixed, seed=seed)
            text = cells.encode(result, {*cell.point, "replicate"})
            if job.folder:
                cells.keep(job.folder, cell.identity, text)
        except Exception:
            if not texts:
                raise
            break
        texts.append(text)
        if time.perf_counter() >= stop:
            break
    return texts


def away(job: Job, batch: Sequence[cells.Cell], seconds: float) -> list[str]:
    """As `work`, in another process: an error that cannot be sent back is told in words."""
    try:
        return work(job, batch, seconds)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            raise StudyError(f"{type(error).__name__}: {error}") from error
        raise


class _Run:
    """The state of one sweep: what is pending, what is done, whom to tell."""

    def __init__(self, job: Job, everything: list[cells.Cell], label: str) -> None:
        self.job, self.cells, self.label = job, everything, label
        self.tables: dict[int, cells.Table] = {}
        self.pending: deque[int] = deque()
        self.tell: Callable[[int], object] = abs
        self.reload()

    def reload(self) -> None:
        """Take over what lies finished in the cache folder; the rest is pending."""
        folder = self.job.folder
        for number in sorted(set(range(len(self.cells))) - self.tables.keys()):
            table = cells.load(folder, self.cells[number].identity) if folder else None
            if table is not None:
                self.tables[number] = table
        self.pending = deque(n for n in range(len(self.cells)) if n not in self.tables)
        self.tell(len(self.tables))

    def take(self, share: int) -> list[int]:
        """Return the next batch, about one `share`-th of what is pending."""
        size = min(BATCH_CELLS, math.ceil(len(self.pending) / share))
        return [self.pending.popleft() for _ in range(size)]

    def settle(self, batch: list[int], texts: list[str], keep: bool = False) -> None:
        """Enter a batch's results, and put back the cells it did not get to."""
        for number, text in zip(batch, texts, strict=False):
            if keep and self.job.folder:
                cells.keep(self.job.folder, self.cells[number].identity, text)
            self.tables[number] = json.loads(text)
        self.pending.extendleft(reversed(batch[len(texts) :]))
        self.tell(len(self.tables))

    @contextmanager
    def blame(self, batch: list[int]) -> Iterator[None]:
        """Name the cell whose error this is: the first of its batch."""
        try:
            yield
        except (BrokenExecutor, CancelledError):
            raise
        except Exception as error:
            cell = self.cells[batch[0]]
            point = ", ".join(f"{name}={value!r}" for name, value in cell.point.items())
            where = f"{point or 'its only point'}, replicate {cell.replicate}"
            what = f"{self.label} failed at {where}: {type(error).__name__}: {error}"
            raise StudyError(what) from error

    def serially(self, jobs: int = 1) -> None:
        """Work in this process, until all is done or `jobs` processes are worth their start.

        The first slice may be mostly compilation, so that the second one tells.
        """
        enough = USE_SECONDS if workers.is_open() else START_SECONDS
        for slices in itertools.count():
            if not self.pending:
                return
            begun, batch = time.perf_counter(), self.take(1)
            with self.blame(batch):
                texts = work(self.job, [self.cells[number] for number in batch], BATCH_SECONDS)
            self.settle(batch, texts)
            took = time.perf_counter() - begun
            warm = slices > 0 or took > COLD_SECONDS
            if jobs > 1 and warm and took / len(texts) * len(self.pending) > enough:
                return

    def spread(self, submit: Callable[..., Future[list[str]]], jobs: int, keep: bool) -> None:
        """Keep `jobs` workers busy, two batches each, until all is done."""
        running: dict[Future[list[str]], list[int]] = {}
        job = self.job._replace(folder=None) if keep else self.job
        try:
            while self.pending or running:
                while self.pending and len(running) < 2 * jobs:
                    batch = self.take(2 * jobs)
                    some = [self.cells[number] for number in batch]
                    running[submit(away, job, some, BATCH_SECONDS)] = batch
                for future in futures.wait(running, return_when=futures.FIRST_COMPLETED).done:
                    batch = running.pop(future)
                    with self.blame(batch):
                        texts = future.result()
                    self.settle(batch, texts, keep)
        finally:
            # a pool of ours is ended instead, and fails where it finds what was cancelled
            for future in running if keep else ():
                future.cancel()

    def pooled(self, jobs: int) -> None:
        """Work here first, then in worker processes, in fresh ones where some died."""
        self.serially(jobs)
        for deaths in itertools.count(1):
            if not self.pending:
                return
            try:
                self.spread(workers.pool(jobs).submit, jobs, keep=False)
            except (BrokenExecutor, CancelledError) as error:
                workers.close()
                self.reload()
                if deaths > RETRIES:
                    why = f"worker processes died {deaths} times, killed or out of memory"
                    remedy = "Try fewer jobs, or jobs=1 to see the cause"
                    raise StudyError(f"{self.label}: {why}; {self.status}. {remedy}") from error
            except BaseException:
                workers.close()
                raise

    def handed_over(self, executor: Executor, jobs: int) -> None:
        """Work on the caller's executor; finished cells are kept here."""
        try:
            self.spread(executor.submit, jobs, keep=True)
        except (BrokenExecutor, CancelledError) as error:
            what = f"{self.label}: the executor gave up ({type(error).__name__}); {self.status}"
            raise StudyError(what) from error

    @property
    def status(self) -> str:
        """How far it came, and what a rerun does."""
        kept = "; a rerun resumes there" if self.job.folder else ""
        return f"{len(self.tables)} of {len(self.cells)} cells are done{kept}"


def sweep(
    function: Callable[..., Any], grid: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    replicates: int = 10, seed: int = 0, executor: Executor | None = None, jobs: int = 0,
    cache: bool = True, *, fixed: Mapping[str, Any] | None = None,
    independent: Sequence[str] = (), label: str | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Call a function at every point of a grid, several times, and return one tidy frame.

    The result depends on the arguments alone: the same bytes for any executor and any
    number of jobs. Finished cells are kept on disk, so that a sweep which was killed,
    interrupted or failed goes on where it stopped, and a repeated one is read back.

    Parameters
    ----------
    function : callable
        Called as ``function(**point, **fixed, seed=SeedSequence)``; returns a dict, a list
        of dicts or a DataFrame of numbers and text: one row, or several.
    grid : mapping of str to list, or list of mapping
        The values of each parameter (all combinations are visited, the last parameter
        varies fastest), or the points themselves.
    replicates : int
        Number of calls per point.
    seed : int
        Root of all randomness. Replicate r receives ``SeedSequence(seed, spawn_key=(r,))`` at
        every point: differences between points are differences of pairs.
    executor : concurrent.futures.Executor, optional
        Where to run, for instance the ``get_executor()`` of a Dask client; by default
        worker processes of this machine, as soon as they are worth their start.
    jobs : int
        Number of worker processes; 1 for none, 0 for the Dask cluster that ``$DLSIM_DASK``
        names, or else ``$DLSIM_JOBS`` or all cores.
        With `executor`: how many workers it has, to bound what waits there.
    cache : bool
        Whether to read and keep finished cells in the cache folder.
    fixed : mapping, optional
        Further arguments, the same for all points; they make no columns.
    independent : sequence of str
        Parameters whose values change the random numbers too, such as ``["load"]`` for a
        curve whose points do not err together.
    label : str, optional
        What the progress bar and messages call the sweep; default: the function's name.

    Returns
    -------
    DataFrame
        The grid's columns, ``replicate``, the result's columns; in grid order, then by
        replicate. A column that a cell did not return is empty there.

    Raises
    ------
    InputError
        For a grid or a number that cannot be, or a cache folder that is not this user's alone.
    StudyError
        If a cell fails (the message names its point and replicate) or returns something else than
        a table of numbers and text, if the cache is full, or if workers die again and again.

    Notes
    -----
    A cell is known by the function's qualified name, the sources of dlsim, the parameters
    and the seed; outside dlsim the function's own file counts, other files it uses do not.
    A parameter that is a function is known by what it does: its code, and the values and
    functions that its code refers to. A function that cannot be imported by name (defined in a
    notebook, a lambda) runs serially and uncached, as a parameter serially, and one line says so.

    Examples
    --------
    >>> def diagonal(a, b, seed):
    ...     return {"c": (a * a + b * b) ** 0.5}
    >>> sweep(diagonal, {"a": [3, 6], "b": [4, 8]}, replicates=1)  # doctest: +ELLIPSIS
    diagonal: ... the sweep runs serially and uncached
       a  b  replicate          c
    0  3  4          0   5.000000
    1  3  8          0   8.544004
    2  6  4          0   7.211103
    3  6  8          0  10.000000
    """
    points, constants = cells.points(grid), dict(mapping("fixed", fixed or {}))
    names = points[0].keys()
    for name in {"seed", "replicate"} & (names | constants) | names & constants:
        raise InputError(f"{name!r} is reserved, or both in grid and fixed: rename it")
    if missing := set(independent) - names:
        raise InputError(f"independent names {sorted(missing)}, which the grid does not have")
    replicates, seed = whole("replicates", replicates), whole("seed", seed, 0, math.inf)
    processes = workers.count(jobs)
    label = label or str(getattr(function, "__name__", "sweep"))
    digest = source_digest()
    try:
        key = [cells.qualified(function), digest, constants]
        everything = cells.cells(points, replicates, seed, independent, key)
        folder = private_folder(cache_folder(), "cells", digest) if cache else None
        try:
            for rule in cells.rules_in([constants, points]):
                cells.qualified(rule)
        except LookupError as error:  # of a notebook: other processes do not know it
            print(f"{label}: {error}; the sweep runs serially")
            jobs, processes, executor = 1, 1, None
    except LookupError as error:
        print(f"{label}: {error}; the sweep runs serially and uncached")
        everything = cells.cells(points, replicates, seed, independent)
        jobs, processes, executor, folder = 1, 1, None, None
    mark = cells.mark_of(constants)
    run = _Run(Job(function, constants, seed, digest, folder, mark), everything, label)
    if executor is None and jobs == 0 and run.pending:
        executor, jobs = workers.cluster() or (None, 0)
    news, total = os.environ.get(progress.VARIABLE, ""), len(everything)

    def report(done: int) -> None:
        with suppress(DlsimError):
            write_text(news, json.dumps({"label": label, "done": done, "total": total}))

    try:
        with progress.shown(label, total, len(run.tables), report if news else None) as run.tell:
            if executor is not None:
                run.handed_over(executor, jobs or MANY)
            elif processes > 1:
                run.pooled(processes)
            else:
                run.serially()
    except KeyboardInterrupt:
        run.tell = abs
        run.reload()
        raise KeyboardInterrupt(f"{label}: {run.status}") from None
    return cells.frame(everything, [run.tables[number] for number in range(len(everything))])
