"""The head of a Dask cluster: it measures, promises, divides and combines loads (papers M and I).

Dask runs the pieces and moves their data; the planner decides which load gets which workers.
Several threads change the plan, under one lock: the caller's, Dask's for results, one for each load
that combines its results, and one that watches the cluster.
"""

import math
import os
import secrets
import socket
import threading
import time
import warnings
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
from dlsim.live.job import PROBABILITY, Job, LoadFailedError, Piece, Promise, first_line
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
from dlsim.validate import duration, import_extra, instance

#: Seconds between two checks of the cluster.
WATCH_SECONDS = 0.5
#: Most seconds that closing a head waits for the last check of the cluster.
CLOSE_SECONDS = 10.0
#: Least seconds of a piece; a clock may not resolve less.
MIN_SECONDS = 1e-6
#: A refusal is doubted, and its function measured again, if the offer is this many deadlines away.
DOUBTFUL_OFFER = 10.0
#: Dask's topic of events of the whole cluster, told before the end of a piece that was moved.
EVENTS = "all"


def run_piece(function: Callable[[Any], Any], read: Callable[[], Any]) -> Any:
    """Compute a piece on a worker; return the worker's identity, the seconds and the result."""
    begun = time.perf_counter()
    result = function(read())
    worker = socket.gethostname(), os.getpid(), threading.get_ident()
    return worker, time.perf_counter() - begun, result


def measure_piece(
    piece: Piece, computing: float, now: float, last_end: float | None, losses: int
) -> Measurement | None:
    """Return what a piece that ends now teaches about costs, or None if it teaches nothing."""
    may_have_waited = piece.losses != losses  # for another worker, when one was lost
    loads_code = last_end is None  # as the first piece of its worker
    if may_have_waited or (loads_code and not piece.is_warm_up):
        return None
    begun = piece.sent if last_end is None else max(piece.sent, last_end)
    return Measurement(piece.units, max(now - begun, computing, MIN_SECONDS), computing)


class Head:
    """The head of a Dask cluster, which promises by when loads will be done (paper M, section 5).

    Parameters
    ----------
    client : dask.distributed.Client
        A client of any Dask cluster (extra ``cluster``): ``Client()`` starts workers on this
        machine. The workers need the same version of dlsim. No other work may run on the cluster.
    policy : str or Policy
        "pull": a load is cut into about ten pieces per worker, fewer where their start-ups would
        take more than a tenth of the time, and idle workers pull the next piece. A policy of papers
        M and I, such as "EDF-DLT", cuts one piece per worker.
    costs : path, optional
        A JSON file in which measured costs are kept from one session to the next.

    Raises
    ------
    InputError
        If the client is not connected to a running cluster, the policy has no admission test, or
        the file holds no costs.
    """

    def __init__(
        self, client: Any, *, policy: str | Policy = PULL, costs: StrPath | None = None
    ) -> None:
        distributed = import_extra("a live cluster", "cluster", "distributed")
        self._dask = import_extra("a live cluster", "cluster", "dask")
        instance("client", client, distributed.Client, "; see dask.distributed.Client")
        if client.asynchronous or client.status != "running":
            raise InputError(f"client must be connected and not asynchronous, got {client!r}")
        self.client, self.costs_path = client, costs
        self.jobs: list[Job] = []
        self._planner = Planner(policy, PROBABILITY)
        self.costs = defaultdict(MeasuredCosts)
        if costs is not None and os.path.exists(costs):
            self.costs = read_costs(costs)
        self._key = secrets.token_hex(4)
        self._futures: dict[Piece, Any] = {}
        self._last_end: dict[Any, float] = {}
        self._losses = 0
        self._changed = threading.Condition(threading.RLock())
        self._submitting = threading.Lock()
        self._is_closed = threading.Event()
        self._planner.workers = sum(client.nthreads().values())
        self._require_open()
        client.subscribe_topic(EVENTS, self._on_event)
        self._watcher = threading.Thread(target=self._watch, name="dlsim-head", daemon=True)
        self._watcher.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        open_loads = len(self._planner.waiting) + len(self._planner.running)
        return f"head of {self._planner.workers} workers: {open_loads} open loads"

    def close(self) -> None:
        """Cancel open loads and stop watching the cluster; the client stays open."""
        self._is_closed.set()
        for job in self.jobs:
            job.cancel()
        with suppress(Exception):  # the cluster may be gone
            self.client.unsubscribe_topic(EVENTS)
        self._watcher.join(CLOSE_SECONDS)

    # --- submitting loads -------------------------------------------------------------------------

    def submit(
        self,
        function: Callable[[Any], Any],
        load: Any,
        *,
        deadline: float | str,
        combine: Callable[[list[Any]], Any] = list,
    ) -> Job:
        """Submit a load with a deadline; it is promised or refused.

        A function that is not known on this cluster is measured first, when the promised loads are
        done: every worker computes some pieces of the load, at most a tenth of it but at least one
        record. So is, once, a known function whose load would be refused by far.

        Parameters
        ----------
        function : callable
            Function of a piece of the load: the text of lines, bytes of records, a slice of a
            sequence, or a part of a Dask collection.
        load : Load, sequence or Dask collection
            `lines`, `records`, a list, an array, a table, a Dask bag, a list of delayed values.
        deadline : float or str
            Seconds from now on, or such as "90s", "5 min", "2h".
        combine : callable
            Function of the list of the pieces' results in the order of the load.

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
        for what, one in {"function": function, "combine": combine}.items():
            if not callable(one):
                raise InputError(f"{what} must be a function, got {one!r}")
        load = as_load(load)
        name = getattr(function, "__name__", type(function).__name__)
        with self._submitting:
            self._require_open()
            costs = self.costs[function_key(function)]
            is_known = bool(costs.pieces)
            ratios = costs.ratios if is_known else self.costs[FIRST_LOADS].ratios
            index = len(self.jobs)
            job = Job(self, index, name, function, combine, load, costs, ratios, seconds)
            job.arrival, job.due, job.losses = arrival, arrival + seconds, self._losses
            self.jobs.append(job)
            must_measure = load.size and not is_known
            self._decide(job, self._measure(job) if must_measure else [(0, load.size)])
            if is_known and self._is_doubtful(job):
                costs.forget_first(len(costs.pieces))
                job.promise = None
                self._decide(job, self._measure(job))
                costs.is_confirmed = job.status == "refused"
        return job

    def _is_doubtful(self, job: Job) -> bool:
        """Return whether a refusal may come from spoiled costs, and no load would be held up."""
        is_idle = not (self._planner.waiting or self._planner.running)
        is_far = job.promise is not None and job.promise.offer > DOUBTFUL_OFFER * job.deadline
        return job.status == "refused" and is_far and is_idle and not job.costs.is_confirmed

    def _require_open(self) -> None:
        if self._is_closed.is_set() or self.client.status != "running":
            raise InputError("the head is closed or its cluster is gone; make a new Head(client)")
        if not self._planner.workers:
            raise InputError("the cluster has no worker; start some, such as cluster.scale(2)")

    def _decide(self, job: Job, ranges: list[tuple[int, int]]) -> None:
        """Promise or refuse the part of a load that is not yet computed."""
        with self._changed:
            now, planner = time.monotonic(), self._planner
            if not any(start < stop for start, stop in ranges):  # empty, or sampled as a whole
                elapsed = now - job.arrival
                if elapsed > job.deadline:
                    job.promise = Promise(False, offer=elapsed)
                    return
                job.promise = Promise(True, elapsed, elapsed, planner.workers)
                job.started = elapsed
                self._finish(job)
                return
            planner.cut_into_pieces(job, ranges)
            job.promise = planner.promise(job, now)
            if not job.promise.admitted and job.units_done:
                # the offer is for the load as it would come again, without its sample
                planner.cut_into_pieces(job, [(0, job.load.size)])
                job.promise = Promise(False, offer=planner.promise(job, now).offer)
            if job.promise.admitted:
                planner.admit(job, job.promise)
                self._feed()

    def table(self) -> pd.DataFrame:
        """Return a row per load: its promise and its outcome.

        Returns
        -------
        DataFrame
            Index `load`; columns name, units, deadline, admitted, promised, expected, workers,
            offer, started, ended (seconds since the load was submitted), status and kept (whether
            it ended by its promised end).
        """
        given, outcome = ("name", "units", "deadline"), ("started", "ended", "status", "kept")
        rows = [
            (job.name, job.load.size, job.deadline)
            + (job.promise or Promise(False))
            + (job.started, job.ended, job.status, job.is_kept)
            for job in self.jobs
        ]
        table = pd.DataFrame(rows, columns=[*given, *Promise._fields, *outcome])
        return table.rename(columns={"end": "promised"}).rename_axis("load")

    # --- measuring --------------------------------------------------------------------------------

    def _measure(self, job: Job) -> list[tuple[int, int]]:
        """Compute a sample of a load on all workers at once; return the ranges that are left."""
        planner = self._planner
        with self._changed:  # measuring delays no promised load
            self._changed.wait_for(
                lambda: not (planner.waiting or planner.running) or self._is_closed.is_set()
            )
        self._require_open()
        costs, rest, warming_up = job.costs, [], 0
        for round_, places in enumerate(sample_places(job.load, max(1, planner.workers))):
            left = self._measure_round(job, round_, places)
            while left and not costs.pieces:  # a worker was lost, so that nothing was learned
                left = self._measure_round(job, round_, left)
            rest += left
            if round_ == 0:
                warming_up = len(costs.pieces)
        if len(costs.pieces) > warming_up:
            costs.forget_first(warming_up)
        return join_ranges(rest)

    def _measure_round(
        self, job: Job, round_: int, places: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Compute a piece of each place, on whichever worker is idle; return what is left."""
        workers = max(1, self._planner.workers)
        pieces = [sample_piece(job.load, place, round_, workers, job.costs) for place in places]
        sampled = job.units_done + sum(piece.units for piece in pieces)
        if job.costs.pieces and sampled > sum(SAMPLE_SHARES) * job.load.size:
            return places
        with self._changed:
            job.on_cluster += pieces
            for piece in pieces:  # not bound to a worker: one that is lost would never run it
                self._send(job, piece)
            self._changed.wait_for(lambda: not job.on_cluster or job.future.done())
        if job.future.done():  # it failed or was cancelled, so that this raises an error
            job.promise = Promise(False)
            job.future.result()
        stops = [piece.stop for piece in pieces]
        return [(stop, end) for stop, (_, end) in zip(stops, places, strict=True) if stop < end]

    # --- sending and receiving --------------------------------------------------------------------

    def _feed(self) -> None:
        """Send pieces while workers can take more; called under the lock."""
        while not self._is_closed.is_set():
            found = self._planner.next_piece(time.monotonic())
            if found is None:
                return
            job, piece = found
            try:
                self._send(job, piece)
            except Exception as error:  # raised by the load's class or by pickle
                self._fail(job, error)

    def _send(self, job: Job, piece: Piece) -> None:
        """Send a piece to the cluster."""
        piece.sent, piece.losses = time.monotonic(), self._losses
        read = job.load.piece(piece.start, piece.stop)
        key = f"{job.name}-{self._key}-{job.number}-{piece.start}"
        with self._dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
            future = self.client.submit(run_piece, job.function, read, key=key, pure=False)
        self._futures[piece] = future
        future.add_done_callback(partial(self._on_done, job, piece))

    def _on_done(self, job: Job, piece: Piece, future: Any) -> None:
        """Record the result of a piece, or the error that it raised."""
        now, failure = time.monotonic(), None
        try:
            if future.status in ("cancelled", "lost"):
                raise ConnectionError("the cluster is gone")
            worker, computing, result = future.result()
        except BaseException as error:
            failure = error
        with self._changed:
            is_wanted = self._futures.pop(piece, None) is not None and not job.future.done()
            if is_wanted and failure:
                self._fail(job, failure)
            elif is_wanted:
                last_end = self._last_end.get(worker)
                self._last_end[worker] = now
                measured = measure_piece(piece, computing, now, last_end, self._losses)
                self._record(job, piece, measured, result)
            self._feed()
            self._changed.notify_all()

    def _record(self, job: Job, piece: Piece, measured: Measurement | None, result: Any) -> None:
        """Record a computed piece; the last one of a load ends it."""
        if measured:
            job.costs.add_piece(measured, max(1, self._planner.workers))
        job.pieces.append(piece)
        job.results[piece.start] = result
        job.units_done += piece.units
        job.on_cluster.remove(piece)
        if not (piece.is_sample or job.on_cluster or job.to_send):
            self._planner.remove(job)
            threading.Thread(target=self._finish, args=(job,), daemon=True).start()

    def _finish(self, job: Job) -> None:
        """Combine the results of a load in its order, and release waiting callers."""
        try:
            result = job.combine([job.results[start] for start in sorted(job.results)])
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
        if job.planned_seconds > 0 and job.losses == self._losses:
            job.ratios.append(max(job.ended - job.started, MIN_SECONDS) / job.planned_seconds)
        job.costs.is_confirmed = False
        if self.costs_path is not None:
            try:
                write_costs(self.costs_path, self.costs)
            except Exception as error:
                warnings.warn(f"measured costs were not saved: {error}", stacklevel=1)

    def _fail(self, job: Job, error: BaseException) -> None:
        """Mark a load as failed; called under the lock."""
        self._drop(job)
        failure = LoadFailedError(f"load {job.number} ({job.name}) failed: {first_line(error)}")
        failure.__cause__ = error
        with suppress(InvalidStateError):
            job.future.set_exception(failure)
        self._changed.notify_all()

    def _cancel(self, job: Job) -> bool:
        """Cancel a load, if it is not at an end."""
        with self._changed:
            if job.status == "refused" or job.future.done() or not job.future.cancel():
                return False
            self._drop(job)
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

    def _on_event(self, event: tuple[float, Any]) -> None:
        """Count lost workers, without a lock: Dask's thread must not wait."""
        _, message = event
        if isinstance(message, dict) and message.get("action") == "remove-worker":
            self._losses += 1

    def _watch(self) -> None:
        """Check for new and lost workers, until the head is closed or its cluster gone."""
        while not self._is_closed.wait(WATCH_SECONDS):
            try:
                workers = sum(self.client.nthreads().values())
            except Exception:
                workers = 0
            with self._changed:
                if self.client.status != "running":
                    self._is_closed.set()
                    for job in self.jobs:
                        if job.status in ("measuring", "waiting", "running"):
                            self._fail(job, ConnectionError("the cluster is gone"))
                    return
                if workers != self._planner.workers:
                    for job in self._planner.running:  # they teach nothing about their plan
                        job.planned_seconds = math.nan
                self._planner.workers = workers
                self._feed()
