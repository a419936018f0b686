"""The head node of a real cluster: promises, sends, computes, combines (papers M and I).

Dask moves the data and runs the functions; who gets what, and when, the planner decides. One
thread plans, one sends, a chunk at a time (the papers' one-port model), one hears of workers that
come and go.
"""

import functools
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import InvalidStateError
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from typing import Any, Self

import pandas as pd

from dlsim.errors import InputError
from dlsim.given import duration, extra, instance, number, whole
from dlsim.live.costs import Costs, Sample
from dlsim.live.job import Chunk, Job, LoadFailedError, Promise, Task, Worker
from dlsim.live.journal import Journal, function_named, name_of
from dlsim.live.loads import File, Load, Piece
from dlsim.live.planner import MOST_TRIES, SOON, CutError, Planner
from dlsim.realtime import Cluster, Policy, Reading
from dlsim.realtime.model import policy_named
from dlsim.realtime.run import need_online
from dlsim.study.workers import connect

#: Seconds the scheduler may take to notice that a worker is gone, and between looks after it.
PATIENCE = 10.0
#: Shares of the whole load that `calibrate` sends by default, and how often to each worker.
SHARES, REPEATS = (0.02, 0.05, 0.1), 3
#: What is done with a piece of a load.
Function = Callable[[Any], Any]
_GONE = "the scheduler is gone; start it again, and this head: with a log it goes on"


def _run(function: Function, read: Function, data: Any) -> Any:
    """What a worker does with a chunk."""
    return function(read(data))


def _measured_as(function: Function, load: Load | None) -> str:
    """Return under which name a function is measured: reading a shared file has other costs."""
    return name_of(function) + " of a shared file" * (getattr(load, "where", "head") == "shared")


class Head:
    """The head node of a Dask cluster (extra ``cluster``), as a context.

    Parameters
    ----------
    address : str, optional
        Of a Dask scheduler, such as ``tcp://127.0.0.1:8786``, or the file FILE.json it left;
        default a cluster of processes here.
    workers : int
        How many of these, where no address is given; 0 for one per core.
    policy : str or Policy
        Who is served first, on how many nodes, split how: one that promises.
    reading : Reading, optional
        Default: the link is shared by all loads, as the head's is.
    quantile : float
        With which probability a promise is to hold.
    log : path, optional
        An SQLite file: what was admitted is finished after a kill, by the same command. Functions
        must then be importable, and loads be files. Without one, what is not done when the
        context ends is given up.
    security : optional
        `distributed.Security`, passed through: TLS. Functions travel as Dask sends them, by
        cloudpickle.
    tell : callable, optional
        Gets a sentence whenever a worker is lost, straggles, or a promise cannot be kept.

    Raises
    ------
    InputError
        For a policy that makes no promise, a cluster that does not answer or has no worker, a
        log that another head writes to.
    """

    def __init__(
        self, address: str = "", *, workers: int = 0, policy: str | Policy = "EDF-OPR-MN",
        reading: Reading | None = None, quantile: float = 0.95, log: Any = None,
        security: Any = None, tell: Callable[[str], object] = lambda text: None,
    ) -> None:  # fmt: skip
        self.name, self.policy = policy_named(policy)
        need_online(self.policy, Cluster())
        self.reading = Reading(link="shared") if reading is None else reading
        instance("reading", self.reading, Reading)
        self.quantile = number("quantile", quantile, 0.5, 1, above=True)
        self._distributed = extra("a live cluster", "cluster", "distributed")
        self.address, self._count = address, whole("workers", workers, 0, 10_000)
        self._security, self._log, self.tell = security, log, tell
        self.jobs: list[Job] = []
        self._plan = Planner(self.policy, self.reading, self.quantile, self._say, self._keep)
        self.costs = self._plan.costs
        self._journal: Journal | None = None
        self._closed, self._why = True, ""
        self._changed, self._asking = threading.Condition(), threading.Lock()
        self._news: SimpleQueue[Any] = SimpleQueue()

    # -------------------------------------------------------------- coming and going

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self._log is not None:
                self._journal = stack.enter_context(Journal(self._log))
            place = self.address
            if not place:
                local = self._distributed.LocalCluster(
                    n_workers=self._count or None, threads_per_worker=1, dashboard_address=":0",
                    silence_logs="ERROR", security=self._security,
                )  # fmt: skip
                place = stack.enter_context(local).scheduler_address
            self._client = stack.enter_context(connect(place, self._security))
            # its thread must never wait for ours
            self._client.subscribe_topic("all", self._news.put)
            for address in self._client.scheduler_info(n_workers=-1)["workers"]:
                self._plan.join(address)
            if not self._plan.workers:
                raise InputError(f"{place}: no worker is there; start some: dask worker {place}")
            self._plan.warm()
            if self._journal:
                self._resume(self._journal)
            self._closed = False
            stack.callback(self._stop, [
                self._thread(loop) for loop in (self._plan_on, self._send_on, self._hear_on)
            ])  # fmt: skip
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _thread(self, loop: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._guard, args=(loop,), daemon=True)
        thread.start()
        return thread

    def _stop(self, threads: Sequence[threading.Thread]) -> None:
        """Let the threads end; what is not done is nobody's any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._client.status == "running":
            self._client.unsubscribe_topic("all")
        self._news.put(None)
        for thread in threads:
            thread.join(timeout=PATIENCE)
        for job in self.jobs:
            job.future.cancel()

    def wait(self) -> None:
        """Wait until all that was admitted is done."""
        for job in self.jobs:
            if job.promise.admitted:
                job.future.exception()

    def _guard(self, call: Callable[..., None], *args: Any) -> None:
        """Do what must not fail unheard: where it does, every load ends, and nobody waits."""
        try:
            call(*args)
        except BaseException as error:
            with self._changed:
                if self._closed:
                    return
                self._closed, self._why = True, f" ({error})"
                self._changed.notify_all()
            for job in self.jobs:  # the log knows of no end: the next head goes on
                if job.promise.admitted:
                    _settle(job, error)

    def _say(self, text: str) -> None:
        with suppress(Exception):  # a load does not fail because nobody could be told
            self.tell(text)

    def _keep(self, job: Job, chunks: list[Chunk]) -> None:
        if self._journal:
            self._journal.add_chunks(job, chunks)

    def _hear_on(self) -> None:
        """Hear of workers that come and go, until the head is closed."""
        while (event := self._news.get()) is not None:
            _, what = event
            if not isinstance(what, dict):
                continue
            given_up: list[Job] = []
            with self._changed:
                if self._closed:
                    return
                if what.get("action") == "add-worker":
                    self._plan.join(what["worker"])
                elif what.get("action") == "remove-worker":
                    given_up = self._plan.lose(what["worker"])
                self._changed.notify_all()
            for job in given_up:
                why = f"a chunk of it was on {MOST_TRIES} workers that went; does it end them?"
                self._fail(job, RuntimeError(why))

    def _is_gone(self, worker: Worker) -> bool:
        """Tell whether a worker is gone; if it went just now, that is heard of."""
        with self._changed:
            workers = self._plan.workers
            return self._changed.wait_for(
                lambda: workers.get(worker.address) is not worker or self._closed, PATIENCE
            )

    # -------------------------------------------------------------- what is asked

    def _need_open(self) -> None:
        if self._closed:
            remedy = "use it as a context: with Head(...) as head"
            raise InputError(f"the head is closed{self._why}; {remedy}")

    def calibrate(
        self, function: Function, load: Load, shares: Sequence[float] = SHARES,
        repeats: int = REPEATS,
    ) -> pd.DataFrame:  # fmt: skip
        """Measure what a function costs here, with pieces of several sizes on every worker.

        Parameters
        ----------
        function : callable
            Of a piece.
        load : Load
            Pieces of it are sent.
        shares : sequence of float
            How large they are, as parts of the load.
        repeats : int
            How often each is sent to every worker; the first round warms up and is not counted.

        Returns
        -------
        DataFrame
            ST, Cms, SC and Cps with 95 % intervals, and quantiles of measured over fitted times.

        Raises
        ------
        InputError
            While loads wait or run.
        LoadFailedError
            Where the function raises.
        """
        whole("repeats", repeats, 1, 1000)
        shares = [number("share", share, 0, 1, above=True) for share in shares]
        _need_work(function, load)
        with self._asking:
            with self._changed:
                self._need_open()
                if self._plan.waiting or self._plan.running:
                    raise InputError("calibrate while nothing waits or runs; see Head.wait()")
                workers = list(self._plan.workers.values())
            costs = self.measured(function, load)
            pieces = [load.cut([share, 1 - share])[0] for share in shares]
            # of a load of a few records, too short for such shares, all is sent
            sizes = [piece for piece in pieces if piece] or [p for p in load.cut([1.0]) if p]
            for turn in range(repeats + 1):
                for piece in sizes:
                    for worker in workers:
                        sample = self._measured(function, piece, worker)
                        if turn and sample:
                            with self._changed:
                                self._learn(costs, _measured_as(function, load), sample)
            if not costs.samples:
                raise LoadFailedError(
                    f"{name_of(function)} was not measured: every worker that got a piece went; "
                    "does it end them, or need more memory than they have?"
                )
            return costs.summary()

    def _measured(self, function: Function, piece: Piece, worker: Worker) -> Sample | None:
        """Send a piece to a worker and wait for it; None where the worker is gone."""
        if self._plan.workers.get(worker.address) is not worker:
            return None  # to send to it would wait for it
        start = time.time()
        try:
            sent, running = self._sent(piece, worker, function)
            while not running.done() and self._plan.workers.get(worker.address) is worker:
                with suppress(TimeoutError):
                    running.result(PATIENCE)
            if not running.done():
                return None
            running.result()
        except Exception as error:
            if self._is_gone(worker):
                return None
            raise LoadFailedError(f"{name_of(function)} failed: {error}") from error
        return Sample(worker.address, piece.units, sent - start, time.time() - sent)

    def submit(
        self, function: Function, load: Load, deadline: float | str,
        combine: Callable[[Any, Any], Any] | None = None, name: str = "",
    ) -> Job:  # fmt: skip
        """Ask for a load to be done within so many seconds; it is promised, or refused.

        Parameters
        ----------
        function : callable
            Of a piece of the load, as its kind says; runs on the workers.
        load : Load
            See `dlsim.live.loads`.
        deadline : float or str
            Seconds from now, or such as "90 s", "1.5 min".
        combine : callable, optional
            Of two results, in the order of the load; default: a list of all.
        name : str
            A word for tables and pictures.

        Returns
        -------
        Job
            Its `promise` stands; `result` waits for it.

        Raises
        ------
        InputError
            For a deadline that is not positive, a function that was not calibrated, a head that
            is closed, and, with a log, for what cannot be found again after a kill.
        """
        limit = duration("deadline", deadline)
        _need_work(function, load, combine)
        if not self.knows(function, load):
            raise InputError(f"{name_of(function)} was not measured here; Head.calibrate it first")
        with self._asking, self._changed:
            self._need_open()
            if not self._plan.workers:
                raise InputError("no worker is left; start some: dask worker ADDRESS")
            now, costs = time.time(), self.measured(function, load)
            number_ = self._journal.next() if self._journal else len(self.jobs)
            job = Job(number_, function, combine, load, costs, now, limit, name)
            if self._journal:
                self._journal.need(job)
            task = Task(job, load, job.due)
            job.promise = self._plan.promise(task, now)
            job.unit = costs.fits()[0].unit, costs.fits()[1].unit
            if self._journal:
                self._journal.add_job(job)
            self.jobs.append(job)
            if job.promise.admitted:
                self._plan.waiting.append(task)
                self._changed.notify_all()
            return job

    def measured(self, function: Function, load: Load | None = None) -> Costs:
        """Return what was measured of a function here, on such a load."""
        return self.costs[_measured_as(function, load)]

    def knows(self, function: Function, load: Load | None = None) -> bool:
        """Tell whether a function was measured here, on such a load."""
        return bool(self.measured(function, load).samples)

    def cluster(
        self, function: Function, with_margin: bool = True, load: Load | None = None
    ) -> Cluster:
        """Return what was measured of a function as a cluster for `dlsim.realtime.simulate`."""
        costs = self.measured(function, load)
        return self._plan.cluster(costs, self._plan.margin(costs) if with_margin else 1.0)

    def table(self) -> pd.DataFrame:
        """Return a row per load: what it was told, what became of it, and on which fit.

        Times are seconds; Cms and Cps, to send and to compute a unit, drift from load to load, as
        each chunk that is done is one more measurement.
        """
        rows = [
            (j.number, j.name, j.load.size, j.arrival, j.deadline, *j.promise,
             j.expected - j.arrival, j.end - j.arrival, j.end <= j.due, len(j.broken), *j.unit)
            for j in self.jobs
        ]  # fmt: skip
        names = ["load", "name", "units", "arrival", "deadline", *Promise._fields, "expected",
                 "completion", "kept", "broken", "Cms", "Cps"]  # fmt: skip
        return pd.DataFrame(rows, columns=names).set_index("load")

    # -------------------------------------------------------------- planning, sending, computing

    def _plan_on(self) -> None:
        """Plan whenever something changed or a start has come, until the head is closed."""
        with self._changed:
            while not self._closed:
                if self._client.status == "closed":
                    raise ConnectionError(_GONE)
                try:
                    wake = self._plan.step(time.time())
                except CutError as error:
                    self._fail(error.args[0], error.__cause__ or error)
                    continue
                if self._plan.to_send:
                    self._changed.notify_all()
                self._changed.wait(min(max(wake, SOON / 2), PATIENCE))

    def _sent(self, piece: Piece, worker: Worker, function: Any) -> tuple[float, Any]:
        """Send a piece to a worker; return when it is there, and its computation."""
        to = [worker.address]
        data = self._client.scatter([piece.data], workers=to, direct=True, hash=False)[0]
        there = time.time()
        return there, self._client.submit(
            _run, function, piece.read, data, workers=to, allow_other_workers=False, pure=False
        )

    def _send_on(self) -> None:
        """Send the chunks that are queued, one after another, until the head is closed."""
        while True:
            with self._changed:
                found = self._plan.next(time.time())
                while not (found or self._closed):
                    self._changed.wait()
                    found = self._plan.next(time.time())
                if self._closed or not found:
                    return
                (chunk, job), piece = found, found[0].piece
            try:
                sent, running = self._sent(piece, chunk.worker, job.function)
            except Exception as error:
                if not self._is_gone(chunk.worker):
                    self._fail(job, error)
                continue
            with self._changed:
                chunk.sent = sent
            running.add_done_callback(functools.partial(self._guard, self._computed, chunk, job))

    def _computed(self, chunk: Chunk, job: Job, running: Any) -> None:
        """Take a result in, the first one of its chunk."""
        now, result, error = time.time(), None, None
        if self._closed:
            return
        try:
            if running.status in ("cancelled", "lost"):
                raise ConnectionError("Dask let go of it")
            result = running.result()
        except Exception as raised:  # by the function, or of a result that cannot be sent
            error, killed = raised, self._distributed.KilledWorker
            dask_errors = {"error": killed, "finished": OSError}.get(running.status, Exception)
            if isinstance(error, dask_errors):
                if self._client.status != "running":
                    raise ConnectionError(_GONE) from error
                if self._is_gone(chunk.worker):
                    return
        with self._changed:
            if self._closed:
                return
            is_first = self._plan.free(chunk, job, now)
            if error is None:
                took = chunk.sent - chunk.sent_from, now - chunk.sent
                sample = Sample(chunk.worker.address, chunk.piece.units, *took)
                self._learn(job.costs, _measured_as(job.function, job.load), sample)
            self._changed.notify_all()
            if not is_first:
                return
            if error is None:
                job.done[chunk.key] = result
                if self._journal:
                    self._journal.add_result(job, chunk.key, result)
                job.open -= 1
                if job.open:
                    return
        self._fail(job, error) if error else self._finish(job)

    def _fail(self, job: Job, error: BaseException) -> None:
        """End a load that cannot be computed."""
        with self._changed:
            self._plan.forget(job)
        self._finish(job, error)

    def _finish(self, job: Job, error: BaseException | None = None) -> None:
        """Combine the results in the order of the load."""
        result: Any = None
        if error is None:
            try:
                parts = [job.done[key] for key in sorted(job.done)]
                result = functools.reduce(job.combine, parts) if job.combine else parts
            except Exception as raised:
                error = raised
        with self._changed:
            if job.future.done():
                return
            job.done.clear()
            if self._journal:
                self._journal.add_end(job, error)
            if error is None:
                job.end = time.time()
            else:
                self._say(f"load {job.number} failed: {error}")
            if error is None and not math.isnan(job.begun):
                job.costs.ratios.append((job.end - job.begun) / (job.expected - job.begun))
        _settle(job, error, result)

    def _learn(self, costs: Costs, name: str, sample: Sample) -> None:
        """Remember how long a chunk took."""
        costs.add(sample)
        if self._journal:
            self._journal.add_sample(name, sample)

    # -------------------------------------------------------------- after a kill

    def _resume(self, journal: Journal) -> None:
        """Take up what a journal tells: measurements, and loads without an end."""
        for name, samples in journal.samples.items():
            for sample in samples:
                self.costs[name].add(sample)
        for one in list(journal.unfinished.values()):
            row, left = one.row, one.left
            told: Any = [math.nan if x is None else x for x in row["promise"]]
            function = function_named(row["function"])
            combine = row["combine"] and function_named(row["combine"])
            load = File(row["path"], row["where"], row["is_table"], tuple(row["span"]))
            job = Job(
                row["job"], function, combine, load, self.measured(function, load),
                row["arrival"], row["deadline"], row["name"],
                Promise(*told),
            )  # fmt: skip
            job.open, job.done = len(left), one.done
            self.jobs.append(job)
            self._plan.waiting += [Task(job, rest, job.due, key, -math.inf) for key, rest in left]
            if not left:
                self._finish(job)


def _settle(job: Job, error: BaseException | None, result: Any = None) -> None:
    """Tell who waits; a load that was settled or cancelled before stays so."""
    with suppress(InvalidStateError):
        if error is None:
            job.future.set_result(result)
        else:
            failed = LoadFailedError(f"load {job.number} failed: {error}")
            failed.__cause__ = error
            job.future.set_exception(failed)


def _need_work(function: Any, load: Any, combine: Any = None) -> None:
    """Refuse what could only fail later."""
    for name, one in (("function", function), ("combine", combine)):
        if not (callable(one) or (name == "combine" and one is None)):
            raise InputError(f"{name} must be a function, got {one!r}")
    if not (hasattr(load, "size") and hasattr(load, "cut")):
        raise InputError(f"load must be one such as loads.items(...), got {load!r:.60}")
    number("size of the load", load.size, above=True)
