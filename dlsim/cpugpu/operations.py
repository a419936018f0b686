"""Copies and kernels of a GPU as operations: who waits for whom, and who runs when.

The GPU of paper C, section 3 (DMA engines, pinned memory) and of its contributions in
section 2 (two copy directions and Hyper-Q on Kepler, one queue on Fermi).
"""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pandas as pd

from dlsim.cpugpu.given import MOST_COUNT, near, time_column
from dlsim.errors import InputError
from dlsim.given import flag, instance, option, table, whole

#: What a chunk passes through; read and write are the disk's, where the table has them.
STAGES = ("read", "h2d", "map", "d2h", "write")
ON_GPU = ("h2d", "map", "d2h")

#: The switches of `Gpu`, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {
    "queues": ("hyper-q", "per-engine", "single"),
    "first": ("d2h", "h2d", "chunk"),
}
#: Which of two waiting operations an engine takes, by stage; then the earlier chunk.
_RANK: dict[str, dict[str, int]] = {
    "d2h": {"write": 0, "d2h": 1, "map": 2, "h2d": 3, "read": 4},
    "h2d": {"read": 0, "h2d": 1, "map": 2, "d2h": 3, "write": 4},
    "chunk": dict.fromkeys(STAGES, 0),
}

#: An operation of a GPU's issue order: (chunk, stage).
Operation = tuple[int, str]


@dataclass(frozen=True)
class Gpu:
    """A GPU as its copies and kernels see it (paper C, sections 2 and 3).

    Parameters
    ----------
    streams : int
        Chunks k that may be on the GPU at once; chunk i follows chunk i - k.
    copy_engines : {1, 2}
        One engine for both directions, or one each ("dual-channel data transfer").
    queues : {"hyper-q", "per-engine", "single"}
        Whoever is ready is served (Kepler's Hyper-Q); or operations start in the order of
        issue, within each engine (Fermi) or over all of them.
    first : {"d2h", "h2d", "chunk"}
        Under Hyper-Q, whom an engine serves first: copies out, copies in, or the earlier
        chunk whatever the direction.
    pinned : bool
        Copies from pageable memory (False) overlap with nothing on the GPU.
    """

    streams: int = 3
    copy_engines: int = 2
    queues: str = "hyper-q"
    first: str = "d2h"
    pinned: bool = True

    def __post_init__(self) -> None:
        whole("streams", self.streams, 1, MOST_COUNT)
        whole("copy_engines", self.copy_engines, 1, 2)
        for name, options in SWITCHES.items():
            option(name, getattr(self, name), options)
        flag("pinned", self.pinned)

    def engine(self, stage: str) -> str:
        """Name the engine that serves a stage.

        "disk", "map", "h2d", "d2h"; "copy" for one copy engine; "gpu" for all of a GPU that
        copies from pageable memory.
        """
        if stage not in ON_GPU:
            return "disk"
        if not self.pinned:
            return "gpu"
        return "copy" if self.copy_engines == 1 and stage != "map" else stage


@dataclass
class Work:
    """Operations as numbers: chunk times stages + position of the stage."""

    stages: list[str]
    times: list[list[Any]]
    gpu: Gpu
    gpus: int
    buffers: int
    after: list[list[int]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Lay the dependencies: stage after stage, stream after stream, buffer by buffer."""
        count, last = len(self.times), len(self.stages) - 1
        self.after = [[] for _ in range(count * (last + 1))]
        self.waits = [0] * len(self.after)
        for chunk in range(count):
            for k in range(last):
                self._order(self.op(chunk, k), self.op(chunk, k + 1))
            self._follow(chunk, self.gpu.streams * self.gpus, "d2h", "h2d")
            if self.buffers:
                self._follow(chunk, self.buffers, self.stages[-1], self.stages[0])

    def op(self, chunk: int, position: int) -> int:
        """Return the number of an operation."""
        return chunk * len(self.stages) + position

    def number(self, operation: Operation) -> int:
        """Return the number of an operation by its name."""
        return self.op(operation[0], self.stages.index(operation[1]))

    def _order(self, before: int, then: int) -> None:
        self.after[before].append(then)
        self.waits[then] += 1

    def _follow(self, chunk: int, distance: int, end: str, start: str) -> None:
        if chunk >= distance:
            self._order(self.number((chunk - distance, end)), self.number((chunk, start)))

    def stage(self, op: int) -> str:
        """Return the stage of an operation."""
        return self.stages[op % len(self.stages)]

    def time(self, op: int) -> Any:
        """Return how long an operation takes."""
        return self.times[op // len(self.stages)][op % len(self.stages)]

    @cached_property
    def span(self) -> Any:
        """Return the scale at which two instants are one: the shortest time."""
        return min((t for row in self.times for t in row if t > 0), default=0)

    @cached_property
    def engines(self) -> list[str]:
        """The engine of every operation."""
        names = [self.gpu.engine(stage) for stage in self.stages]
        return [
            name if name == "disk" else f"gpu{chunk % self.gpus}.{name}"
            for chunk in range(len(self.times))
            for name in names
        ]

    def lanes(self, issue: Sequence[Operation]) -> list[deque[int]]:
        """Return the in-order queues of the GPUs, none under Hyper-Q."""
        lanes: dict[object, deque[int]] = {}
        for op in map(self.number, issue if self.gpu.queues != "hyper-q" else ()):
            per_engine = self.gpu.queues == "per-engine"
            key = self.engines[op] if per_engine else self.engines[op].split(".")[0]
            lanes.setdefault(key, deque()).append(op)
        return list(lanes.values())


def run_operations(work: Work, issue: Sequence[Operation]) -> pd.DataFrame:
    """Run all operations; at one instant completions come before starts."""
    run = _Run(work, issue)
    run.dispatch(0)
    while run.running:
        now, done = _completions(run.running, work.span)
        for op in done:
            run.finish(op)
        run.dispatch(now)
    _refuse_deadlock(work, run.lanes, len(run.rows))
    columns = ["chunk", "stage", "gpu", "stream", "engine", "start", "end"]
    return pd.DataFrame(run.rows, columns=columns)


class _Run:
    """The state of a pipeline: what is ready, what runs, what ran."""

    def __init__(self, work: Work, issue: Sequence[Operation]) -> None:
        self.work, self.rank = work, _RANK[work.gpu.first]
        self.waits = list(work.waits)
        self.lanes = work.lanes(issue)
        self.queued = {op for lane in self.lanes for op in lane}
        self.ready: dict[str, list[tuple[int, int, int]]] = {e: [] for e in work.engines}
        self.busy: set[str] = set()
        self.running: list[tuple[Any, int]] = []
        self.rows: list[tuple[Any, ...]] = []
        for op in (op for op, count in enumerate(self.waits) if not count):
            self.admit(op)

    def admit(self, op: int) -> None:
        if op not in self.queued:
            key = (self.rank[self.work.stage(op)], op // len(self.work.stages), op)
            heapq.heappush(self.ready[self.work.engines[op]], key)

    def begin(self, op: int, now: Any) -> None:
        work, chunk = self.work, op // len(self.work.stages)
        end = now + work.time(op)
        self.busy.add(work.engines[op])
        heapq.heappush(self.running, (end, op))
        place = (chunk % work.gpus, chunk // work.gpus % work.gpu.streams, work.engines[op])
        self.rows.append((chunk, work.stage(op), *place, now, end))

    def dispatch(self, now: Any) -> None:
        engines = self.work.engines
        for lane in self.lanes:
            while lane and not self.waits[lane[0]] and engines[lane[0]] not in self.busy:
                self.begin(lane.popleft(), now)
        for engine, heap in self.ready.items():
            if heap and engine not in self.busy:
                self.begin(heapq.heappop(heap)[-1], now)

    def finish(self, op: int) -> None:
        self.busy.remove(self.work.engines[op])
        for then in self.work.after[op]:
            self.waits[then] -= 1
            if not self.waits[then]:
                self.admit(then)


def _completions(running: list[tuple[Any, int]], span: Any) -> tuple[Any, list[int]]:
    now, op = heapq.heappop(running)
    done = [op]
    while running and near(running[0][0], now, span):
        now, op = heapq.heappop(running)
        done.append(op)
    return now, done


def _refuse_deadlock(work: Work, lanes: list[deque[int]], started: int) -> None:
    if started == len(work.waits):
        return
    op = next(lane[0] for lane in lanes if lane)
    raise InputError(
        f"the issue order must not block its own queue: {work.stage(op)} of chunk "
        f"{op // len(work.stages)} waits for an operation behind it; issue chunk i after the "
        f"copy out of chunk i - {work.gpu.streams * work.gpus}, or use queues='hyper-q'"
    )


def stage_times(chunks: pd.DataFrame) -> tuple[list[str], list[list[Any]]]:
    """Return the stages of a table of chunks and their times as given."""
    table("chunks", chunks, ON_GPU, empty=False)
    stages = [stage for stage in STAGES if stage in chunks.columns]
    for stage in stages:
        time_column("chunks", chunks, stage)
    columns = [chunks[stage].tolist() for stage in stages]
    return stages, [list(row) for row in zip(*columns, strict=True)]


def work_of(chunks: pd.DataFrame, gpu: Gpu, gpus: int = 1, buffers: int = 0) -> Work:
    """Turn a table of chunks into operations."""
    instance("gpu", gpu, Gpu)
    gpus = whole("gpus", gpus, 1, MOST_COUNT)
    return Work(*stage_times(chunks), gpu, gpus, whole("buffers", buffers, 0, MOST_COUNT))
