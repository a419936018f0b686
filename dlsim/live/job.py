"""A submitted load: its pieces, its promise and its result."""

import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dlsim.errors import DlsimError, InputError
from dlsim.live.calibration import MeasuredCosts
from dlsim.live.loads import Load
from dlsim.progress import progress_bar

#: Probability with which a promised end should be kept.
PROBABILITY = 0.95
#: Seconds between two updates of a progress bar.
PROGRESS_SECONDS = 0.2


class LoadFailedError(DlsimError):
    """A load that cannot be computed; ``__cause__`` is the error of a function or the cluster."""


class Promise(NamedTuple):
    """The promise of a load; times are seconds since it was submitted.

    Attributes
    ----------
    admitted : bool
        Whether the load is promised to be done by its deadline.
    end : float
        By when it is done with 95 %; NaN if it was refused.
    expected : float
        When it is expected to be done; NaN if it was refused.
    workers : int
        Number of workers for which it was planned. A worker is a thread of a Dask worker.
    offer : float
        For a refused load, the earliest deadline that could be promised; else NaN.
    """

    admitted: bool
    end: float = math.nan
    expected: float = math.nan
    workers: int = 0
    offer: float = math.nan


@dataclass(eq=False)
class Piece:
    """The units of a load from start to stop; `losses` counts workers lost before it was sent."""

    start: int
    stop: int
    is_sample: bool = False
    is_warm_up: bool = False
    sent: float = math.nan
    losses: int = 0

    @property
    def units(self) -> int:
        """Number of units."""
        return self.stop - self.start


@dataclass(eq=False, repr=False)
class Job:
    """A submitted load.

    Attributes
    ----------
    name : str
        The name of its function.
    deadline : float
        Seconds since it was submitted.
    promise : Promise or None
        The promise; None while its function is measured.
    started, ended : float
        Seconds since it was submitted; NaN before. Its sample is computed before its start.
    pieces : list of Piece
        The pieces that were computed, in the order of completion.
    """

    head: Any
    number: int
    name: str
    function: Callable[[Any], Any]
    combine: Callable[[list[Any]], Any]
    load: Load
    costs: MeasuredCosts
    ratios: deque[float]
    deadline: float
    promise: Promise | None = None
    started: float = math.nan
    ended: float = math.nan
    pieces: list[Piece] = field(default_factory=list)
    future: "Future[Any]" = field(default_factory=Future)
    results: dict[int, Any] = field(default_factory=dict)
    units_done: int = 0
    losses: int = 0
    # state of the planner; times are those of time.monotonic(), work is in seconds of one worker
    arrival: float = field(default_factory=time.monotonic)
    due: float = math.inf
    began: float = math.inf
    workers: int = 0
    work: float = math.nan
    imbalance: float = 1.0
    planned_seconds: float = math.nan
    to_send: list[Piece] = field(default_factory=list)
    on_cluster: list[Piece] = field(default_factory=list)

    @property
    def status(self) -> str:
        """Measuring, refused, waiting, running, done, failed or cancelled."""
        if self.future.cancelled():
            return "cancelled"
        if self.future.done():
            return "failed" if self.future.exception() else "done"
        if self.promise is None:
            return "measuring"
        if not self.promise.admitted:
            return "refused"
        return "waiting" if math.isnan(self.started) else "running"

    @property
    def is_kept(self) -> bool:
        """Whether the load was done by its promised end."""
        return bool(self.promise and self.ended <= self.promise.end)

    def result(self, timeout: float | None = None, progress: bool = False) -> Any:
        """Wait until the load is computed.

        Parameters
        ----------
        timeout : float, optional
            Largest number of seconds to wait.
        progress : bool
            Whether a bar shows the computed share.

        Returns
        -------
        object
            The combined results of the pieces.

        Raises
        ------
        InputError
            For a load that was refused.
        LoadFailedError
            If the function or `combine` raised (see ``__cause__``), or the cluster is gone.
        concurrent.futures.CancelledError
            For a load that was cancelled.
        TimeoutError
            If the load is not done after `timeout` seconds.
        """
        if self.status == "refused":
            raise InputError(f"{self!r}: submit it again with a later deadline")
        until = time.monotonic() + (math.inf if timeout is None else timeout)
        if progress:
            with progress_bar(self.name, self.load.size) as set_done:
                while not self.future.done() and time.monotonic() < until:
                    set_done(self.units_done)
                    time.sleep(PROGRESS_SECONDS)
        return self.future.result(None if timeout is None else max(0.0, until - time.monotonic()))

    def cancel(self) -> bool:
        """Cancel the load; running pieces end, no further piece begins.

        Returns
        -------
        bool
            False for a load that was already done, failed, cancelled or refused.
        """
        return self.head._cancel(self)

    def _state(self) -> str:
        """Return the promise or the outcome of the load in words."""
        status, promise = self.status, self.promise
        if status == "failed":
            error = self.future.exception()
            return f"failed: {first_line(error.__cause__ if error else error)}"
        if promise is None or status == "cancelled":
            return status
        if not promise.admitted:
            if math.isnan(promise.offer):
                return "refused; no deadline could be promised"
            return f"refused; could be promised by {format_seconds(promise.offer)}"
        end = format_seconds(promise.end)
        workers = f"{promise.workers} worker{'s' * (promise.workers != 1)}"
        if status == "done":
            return f"done after {format_seconds(self.ended)}; promised by {end}"
        return f"promised: done by {end} ({100 * PROBABILITY:.0f} %), {workers}"

    def __repr__(self) -> str:
        return f"load {self.number} ({self.name}): {self._state()}"


def first_line(error: BaseException | None) -> str:
    """Return the kind of an error and the first line of its message."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


def format_seconds(seconds: float) -> str:
    """Return a time in seconds as text, with three digits or all whole seconds.

    >>> format_seconds(0.12345), format_seconds(71.4), format_seconds(4321)
    ('0.123 s', '71.4 s', '4321 s')
    """
    return f"{seconds:.0f} s" if seconds >= 1000 else f"{seconds:.3g} s"
