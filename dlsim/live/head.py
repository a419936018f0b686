"""The head of a Dask cluster: it measures, promises, divides and combines loads (papers M and I).

Dask runs the pieces and moves their data; the planner decides which load gets which workers. Three
threads change the plan, under one lock: the caller's, Dask's for results, and one that watches the
cluster.
"""

import os
import secrets
import socket
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, Self

import pandas as pd

from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.live.calibration import (
    FIRST_LOADS,
    MeasuredCosts,
    Measurement,
    function_key,
    read_costs,
    write_costs,
)
from dlsim.live.job import Job, LoadFailedError, Piece, Promise, first_line, format_seconds
from dlsim.live.loads import as_load
from dlsim.live.planner import (
    PULL,
    SAMPLE_SHARES,
    Planner,
    join_ranges,
    sample_piece,
    sample_places,
)
from dlsim.realtime import Policy
from dlsim.validate import duration, import_extra, instance, number, whole

#: Seconds between two checks of the cluster.
WATCH_SECONDS = 0.5
#: Most seconds that closing a head waits for the last check of the cluster.
CLOSE_SECONDS = 10.0
#: Least seconds of a piece; a clock may not resolve less.
MIN_SECONDS = 1e-6


def run_piece(function: Callable[[Any], Any], read: Callable[[], Any]) -> Any:
    """Compute a piece on a worker; return the worker's identity, the seconds and the result."""
    begun = time.perf_counter()
    result = function(read())
    worker = socket.gethostname(), os.getpid(), threading.get_ident()
    return worker, time.perf_counter() - begun, result


def print_error(text: str) -> None:
    """Print a sentence on standard error."""
    print(text, file=sys.stderr, flush=True)


class Head:
    """The head of a Dask cluster, which promises by when loads will be done.

    Parameters
    ----------
    client : dask.distributed.Client
        A client of any Dask cluster (extra ``cluster``): ``Client()`` starts workers on this
        machine. The workers need the same version of dlsim. No other work may run on the cluster.
    policy : str or Policy
        "pull": a load is cut into about ten pieces per worker, and idle workers pull the next
        piece. A policy of papers M and I, such as "EDF-DLT", cuts one piece per worker.
    quantile : float
        Probability with which a promised end should be kept.
    costs : path, optional
        A JSON file in which measured costs are kept from one session to the next.
    tell : callable
        Called with a sentence when a promise is withdrawn or workers are lost; default: print on
        standard error.

    Raises
    ------
    InputError
        If the client is not connected to a running cluster, the policy has no admission test, or
        the file holds no costs.

    References
    ----------
    Paper M, section 5 (the admission test); paper I, section 4.
    """

    def __init__(
        self,
        client: Any,
        *,
        policy: str | Policy = PULL,
        quantile: float = 0.95,
        costs: StrPath | None = None,
        tell: Callable[[str], object] = print_error,
    ) -> None:
        distributed = import_extra("a live cluster", "cluster", "distributed")
        self._dask = import_extra("a live cluster", "cluster", "dask")
        instance("client", client, distributed.Client, "; see dask.distributed.Client")
        if client.asynchronous or client.status != "running":
            raise InputError(f"client must be connected and not asynchronous, got {client!r}")
        self.client, self.tell, self.costs_path = client, tell, costs
        self.quantile = number("quantile", quantile, 0.5, 0.999)
        self.jobs: list[Job] = []
        self._planner = Planner(policy, self.quantile)
        is_known = costs is not None and os.path.exists(costs)
        self.costs = (
            read_costs(costs) if costs is not None and is_known else defaultdict(MeasuredCosts)
        )
        self._key = secrets.token_hex(4)
        self._futures: dict[Piece, Any] = {}
        self._last_end: dict[Any, float] = {}
        self._changed = threading.Condition(threading.RLock())
        self._submitting = threading.Lock()
        self._is_closed = threading.Event()
        self._set_workers(client.nthreads())
        if not self._planner.workers:
            raise InputError("the cluster has no worker; start some, such as cluster.scale(2)")
        self._watcher = threading.Thread(target=self._watch, name="dlsim-head", daemon=True)
        self._watcher.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        open_jobs = sum(not job.future.done() for job in self._admitted())
        return f"head of {self._planner.workers} workers: {open_jobs} open loads"

    def close(self) -> None:
        """Cancel open loads and stop watching the cluster; the client stays open."""
        self._is_closed.set()
        for job in self._admitted():
            job.cancel()
        if threading.current_thread() is not self._watcher:
            self._watcher.join(CLOSE_SECONDS)

    def _admitted(self) -> list[Job]:
        return [job for job in self.jobs if job.promise and job.promise.admitted]

    # --- submitting loads -------------------------------------------------------------------------

    def submit(
        self,
        function: Callable[[Any], Any],
        load: Any,
        *,
        deadline: float | str,
        combine: Callable[[list[Any]], Any] | None = None,
        name: str = "",
        retries: int = 0,
    ) -> Job:
        """Submit a load with a deadline; it is promised or refused.

        A function that was not yet measured on this cluster is measured first, when the promised
        loads are done: every worker computes some pieces of the load, at most a tenth of the load
        but at least one record. Their results are used.

        Parameters
        ----------
        function : callable
            Function of a piece of the load: the text of lines, bytes of records, a slice of a
            sequence, or a part of a Dask collection.
        load : Load, sequence or Dask collection
            `lines`, `records`, a list, an array, a table, a Dask bag, a list of delayed values.
        deadline : float or str
            Seconds from now on, or such as "90s", "5 min", "2h".
        combine : callable, optional
            Function of the list of the pieces' results in the order of the load; default: the list.
        name : str
            A name for messages and tables; default: the function's.
        retries : int
            How often a piece is computed again if the function raises. Pieces of a worker that dies
            are always computed again.

        Returns
        -------
        Job
            `Job.promise` holds the answer; `Job.result` waits for the load.

        Raises
        ------
        InputError
            For a load that cannot be cut, a deadline that is not positive, a head that is closed.
        LoadFailedError
            If the function raises while it is measured.
        """
        arrival, seconds = time.monotonic(), duration("deadline", deadline)
        whole("retries", retries, 0)
        for what, one in (("function", function), ("combine", combine)):
            if not (callable(one) or (what == "combine" and one is None)):
                raise InputError(f"{what} must be a function, got {one!r}")
        load = as_load(load)
        key = function_key(function)
        name = name or getattr(function, "__name__", type(function).__name__)
        with self._submitting:
            self._require_open()
            number_, costs = len(self.jobs), self.costs[key]
            ratios = costs.ratios if costs.pieces else self.costs[FIRST_LOADS].ratios
            job = Job(self, number_, name, function, combine, load, costs, ratios, seconds, retries)
            job.arrival, job.due = arrival, arrival + seconds
            self.jobs.append(job)
            gaps = [(0, load.size)] if load.size else []
            if gaps and not job.costs.pieces:
                gaps = self._measure(job)
            with self._changed:
                self._decide(job, gaps)
        return job

    def _require_open(self) -> None:
        if self._is_closed.is_set() or self.client.status != "running":
            raise InputError("the head is closed or its cluster is gone; make a new Head(client)")
        if not self._planner.workers:
            raise InputError("no worker is left; start some, such as cluster.scale(2)")

    def _decide(self, job: Job, gaps: list[tuple[int, int]]) -> None:
        """Promise or refuse the part of a load that is not yet computed."""
        now, planner = time.monotonic(), self._planner
        if not gaps:  # the load is empty, or the sample was all of it
            elapsed = now - job.arrival
            is_in_time = elapsed <= job.deadline
            job.promise = Promise(is_in_time, elapsed, elapsed, planner.workers, offer=elapsed)
            if is_in_time:
                job.started = elapsed
                self._finish(job)
            return
        planner.cut_into_pieces(job, gaps)
        job.promise = planner.promise(job, now)
        if job.promise.admitted:
            planner.admit(job, job.promise)
            self._feed()

    def table(self) -> pd.DataFrame:
        """Return a row per load: its promise and its outcome.

        Returns
        -------
        DataFrame
            Index `load`; columns name, units, deadline, admitted, promised, expected, workers,
            offer, started, ended (seconds since the load was submitted), status, kept (whether it
            ended by its promised end) and withdrawn.
        """
        rows = []
        for job in self.jobs:
            promise = job.promise or Promise(False)
            rows.append(
                {
                    "load": job.number,
                    "name": job.name,
                    "units": job.load.size,
                    "deadline": job.deadline,
                    "admitted": promise.admitted,
                    "promised": promise.end,
                    "expected": promise.expected,
                    "workers": promise.workers,
                    "offer": promise.offer,
                    "started": job.started,
                    "ended": job.ended,
                    "status": job.status,
                    "kept": job.is_kept,
                    "withdrawn": job.withdrawn,
                }
            )
        return pd.DataFrame(rows).set_index("load") if rows else pd.DataFrame()

    # --- measuring --------------------------------------------------------------------------------

    def _measure(self, job: Job) -> list[tuple[int, int]]:
        """Compute a sample of a load on all workers at once; return the ranges that are left."""
        self._wait_until_idle()
        slots = [
            worker for worker, threads in self.client.nthreads().items() for _ in range(threads)
        ]
        rest, first = [], 0
        for round_, places in enumerate(sample_places(job.load, len(slots))):
            pieces = [
                sample_piece(job.load, place, round_, len(slots), job.costs) for place in places
            ]
            sampled = job.units_done + sum(piece.units for piece in pieces)
            if job.costs.pieces and sampled > sum(SAMPLE_SHARES) * job.load.size:
                rest += places
                continue
            if round_ == 1:  # the first round had to warm the workers up
                first = len(job.costs.pieces)
            with self._changed:
                for piece, worker in zip(pieces, slots, strict=False):
                    job.on_cluster.append(piece)
                    self._send(job, piece, worker)
                self._changed.wait_for(lambda: not job.on_cluster or job.future.done())
            if job.future.done():  # it failed or was cancelled, so that this raises an error
                job.promise = Promise(False)
                job.future.result()
            rest += [
                (piece.stop, end)
                for piece, (_, end) in zip(pieces, places, strict=True)
                if piece.stop < end
            ]
        if first and len(job.costs.pieces) > first:
            job.costs.forget_first(first)
        return join_ranges(rest)

    def _wait_until_idle(self) -> None:
        """Wait until no promised load waits or runs, so that measuring delays none of them."""
        planner = self._planner
        with self._changed:
            self._changed.wait_for(
                lambda: not (planner.waiting or planner.running) or self._is_closed.is_set()
            )
        self._require_open()

    # --- sending and receiving --------------------------------------------------------------------

    def _feed(self) -> None:
        """Send pieces while workers can take more; called under the lock."""
        while found := self._planner.next_piece(time.monotonic()):
            job, piece = found
            try:
                self._send(job, piece)
            except Exception as error:  # raised by the load's class or by pickle
                self._fail(job, error)

    def _send(self, job: Job, piece: Piece, worker: str = "") -> None:
        """Send a piece to the cluster, and to a given worker if it belongs to a sample."""
        piece.sent = time.monotonic()
        place = {"workers": [worker], "allow_other_workers": True} if worker else {}
        read = job.load.piece(piece.start, piece.stop)
        key = f"{job.name}-{self._key}-{job.number}-{piece.start}"
        with self._dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            future = self.client.submit(
                run_piece, job.function, read, key=key, pure=False, retries=job.retries, **place
            )
        self._futures[piece] = future
        future.add_done_callback(partial(self._on_done, job, piece))

    def _on_done(self, job: Job, piece: Piece, future: Any) -> None:
        """Record the result of a piece."""
        now = time.monotonic()
        try:
            if future.status in ("cancelled", "lost"):
                raise ConnectionError("the cluster is gone")
            worker, computing, result = future.result()
        except BaseException as error:
            with self._changed:
                if self._futures.pop(piece, None) is not None:
                    self._fail(job, error)
                    self._feed()
            return
        with self._changed:
            if self._futures.pop(piece, None) is None or job.future.done():
                self._feed()
                return
            begun = max(piece.sent, self._last_end.get(worker, piece.sent))
            self._last_end[worker] = now
            occupied = max(now - begun, computing, MIN_SECONDS)
            measurement = Measurement(piece.units, occupied, computing)
            job.costs.add_piece(measurement, self._planner.workers)
            job.pieces.append(piece)
            job.results[piece.start] = result
            job.units_done += piece.units
            job.on_cluster.remove(piece)
            job.last_event = now
            if not (piece.is_sample or job.on_cluster or job.to_send):
                self._planner.remove(job)
                threading.Thread(target=self._finish, args=(job,), daemon=True).start()
            self._feed()
            self._changed.notify_all()

    def _finish(self, job: Job) -> None:
        """Combine the results of a load in its order, and release waiting callers."""
        parts = [job.results[start] for start in sorted(job.results)]
        try:
            result = job.combine(parts) if job.combine else parts
        except BaseException as error:
            with self._changed:
                self._fail(job, error)
            return
        job.ended = time.monotonic() - job.arrival
        with self._changed:
            job.results.clear()
            self._learn(job)
        with suppress(InvalidStateError):  # the load was cancelled
            job.future.set_result(result)
        with self._changed:
            self._changed.notify_all()

    def _learn(self, job: Job) -> None:
        """Record the ratio of real to expected time of a load, and save the costs."""
        if job.planned_seconds > 0 and (job.is_undisturbed or not job.is_kept):
            seconds = max(job.ended - job.started, MIN_SECONDS)
            job.ratios.append(seconds / job.planned_seconds)
        if self.costs_path is not None:
            try:
                write_costs(self.costs_path, self.costs)
            except Exception as error:
                self._say(f"measured costs were not saved: {error}")

    def _fail(self, job: Job, error: BaseException) -> None:
        """Mark a load as failed; called under the lock."""
        self._drop(job)
        failure = LoadFailedError(f"load {job.number} ({job.name}) failed: {first_line(error)}")
        failure.__cause__ = error
        with suppress(InvalidStateError):
            job.future.set_exception(failure)
        self._changed.notify_all()

    def _cancel(self, job: Job) -> bool:
        """Cancel a load; see `Job.cancel`."""
        with self._changed:
            if job.status == "refused" or not job.future.cancel():
                return False
            self._drop(job)
            if not self._is_closed.is_set():
                self._feed()
            self._changed.notify_all()
        return True

    def _drop(self, job: Job) -> None:
        """Remove a load from the plan, and its pieces from the cluster."""
        self._planner.remove(job)
        futures = [self._futures.pop(piece, None) for piece in job.on_cluster]
        job.on_cluster.clear()
        job.results.clear()
        with suppress(Exception):  # the cluster may be gone
            self.client.cancel([future for future in futures if future is not None])

    # --- watching the cluster ---------------------------------------------------------------------

    def _watch(self) -> None:
        """Check for new and lost workers and for promises that cannot be kept, until closed."""
        while not self._is_closed.wait(WATCH_SECONDS):
            try:
                workers = self.client.nthreads()
            except Exception:
                workers = {}
            with self._changed:
                if self.client.status != "running":
                    self._is_closed.set()
                    for job in self.jobs:
                        if job.status in ("measuring", "waiting", "running"):
                            self._fail(job, ConnectionError("the cluster is gone"))
                    return
                self._set_workers(workers)
                self._withdraw(time.monotonic())
                self._feed()

    def _set_workers(self, workers: dict[str, int]) -> None:
        count = sum(workers.values())
        before = self._planner.workers
        self._planner.set_workers(count)
        if count < before:
            self._say(f"{before - count} of {before} workers are gone")

    def _withdraw(self, now: float) -> None:
        """Withdraw promises that cannot be kept any more, each once."""
        for job, end in self._planner.late_jobs(now):
            job.withdrawn = end - job.arrival
            promised = job.promise.end if job.promise else job.deadline
            self._say(
                f"load {job.number} ({job.name}): the promised end of {format_seconds(promised)} "
                f"cannot be kept; it is expected by {format_seconds(job.withdrawn)}"
            )

    def _say(self, text: str) -> None:
        with suppress(Exception):  # a message that cannot be shown must not fail a load
            self.tell(text)
