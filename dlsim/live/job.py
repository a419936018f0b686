"""What a head node is asked to do, and what becomes of it: loads, their chunks, the workers."""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.errors import DlsimError, InputError
from dlsim.live.costs import Costs
from dlsim.live.loads import Load, Piece


class LoadFailedError(DlsimError):
    """A load that cannot be done, such as one whose function raised; its own error is the cause."""


class Promise(NamedTuple):
    """What a load was told when it came.

    Attributes
    ----------
    admitted : bool
        Whether it will be done by its deadline.
    nodes : int
        On how many workers, as planned then.
    finish : float
        When it will be done with the stated probability, in seconds since it came.
    margin : float
        By what factor the fitted times were stretched to that end.
    offer : float
        The smallest deadline that could be promised where it was refused, in seconds; NaN where
        none could.
    """

    admitted: bool = False
    nodes: int = 0
    finish: float = math.nan
    margin: float = 1.0
    offer: float = math.nan


@dataclass(eq=False)
class Chunk:
    """A piece of a load on its way; times are seconds since the epoch, planned and real."""

    key: tuple[int, ...]
    piece: Piece = field(repr=False)
    worker: "Worker"
    planned: tuple[float, float, float]
    sent_from: float = math.nan
    sent: float = math.nan
    computed: float = math.nan
    limit: float = math.inf  # seconds of computing beyond which it straggles
    is_straggler: bool = False
    tries: int = 0
    is_over: bool = False

    def close(self) -> None:
        """Be over, and hold no data any more."""
        self.is_over, self.piece = True, self.piece._replace(data=None, load=None)


@dataclass(eq=False)
class Worker:
    """A node: one chunk at a time, and those that are planned for it."""

    address: str
    free: float = 0.0
    chunk: Chunk | None = None


@dataclass(eq=False)
class Task:
    """What is planned as one: a load, or what was lost of it with a worker."""

    job: "Job"
    load: Load
    due: float
    key: tuple[int, ...] = ()
    start: float = math.inf
    tries: int = 0

    def __post_init__(self) -> None:
        self.size = self.load.size


@dataclass(eq=False)
class Job:
    """A load that was submitted.

    Attributes
    ----------
    number : int
        The how manieth of its head.
    promise : Promise
        What it was told when it came.
    arrival, deadline : float
        When it came, in seconds since the epoch; its deadline from then on.
    broken : list of (float, float)
        When a promise turned out not to be kept, and the deadline that is kept instead.
    expected, end : float
        When it was expected to be done as it was sent off, and when it was.
    unit : tuple of float
        Seconds to send and to compute a unit, as they were fitted when it came.
    """

    number: int
    function: Callable[[Any], Any]
    combine: Callable[[Any, Any], Any] | None
    load: Load
    costs: Costs = field(repr=False)
    arrival: float
    deadline: float
    name: str = ""
    promise: Promise = field(default_factory=Promise)
    begun: float = math.nan
    expected: float = math.nan
    end: float = math.nan
    unit: tuple[float, float] = (math.nan, math.nan)
    broken: list[tuple[float, float]] = field(default_factory=list)
    done: dict[tuple[int, ...], Any] = field(default_factory=dict, repr=False)
    sent: list[Chunk] = field(default_factory=list, repr=False)
    open: int = field(default=1, repr=False)
    future: "Future[Any]" = field(default_factory=Future, repr=False)

    @property
    def due(self) -> float:
        """Its deadline, in seconds since the epoch."""
        return self.arrival + self.deadline

    @property
    def told(self) -> float:
        """The deadline that was told last: another one where the promise is broken."""
        return self.broken[-1][1] if self.broken else self.due

    def result(self, timeout: float | None = None) -> Any:
        """Wait until it is computed, and return what its chunks' results combine to.

        Raises
        ------
        InputError
            Where it was refused.
        LoadFailedError
            Where its function or its combination raised, or the head cannot go on.
        """
        if not self.promise.admitted:
            raise InputError(
                f"load {self.number} was refused, so there is no result; the smallest deadline "
                f"that could have been promised is {self.promise.offer:.3g} s"
            )
        return self.future.result(timeout)

    @property
    def chunks(self) -> pd.DataFrame:
        """Return a row per chunk: worker, units, planned and real times since it came."""
        names = ["worker", "units", "planned_send_start", "planned_send_end", "planned_compute_end",
                 "send_start", "send_end", "compute_end", "straggler", "tries"]  # fmt: skip
        rows = [
            (c.worker.address, c.piece.units, *(at - self.arrival for at in c.planned),
             c.sent_from - self.arrival, c.sent - self.arrival, c.computed - self.arrival,
             c.is_straggler, c.tries)
            for c in self.sent
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=names)

    def gantt(self, ax: Any = None) -> Any:
        """Draw its chunks, planned above real, on axes of matplotlib; return them."""
        from dlsim.live.draw import draw_chunks_of

        return draw_chunks_of(self.chunks, self.deadline, self.promise.finish, ax)


@dataclass(frozen=True)
class _Whole:
    """A piece that its load does not know how to cut again."""

    piece: Piece

    @property
    def size(self) -> float:
        return self.piece.units

    def cut(self, shares: Sequence[float]) -> list[Piece | None]:
        largest = int(np.argmax(shares))
        return [self.piece if k == largest else None for k in range(len(shares))]


def load_of(piece: Piece) -> Load:
    """Return a piece as a load."""
    return piece.load or _Whole(piece)
