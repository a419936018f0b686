"""A pipeline of chunks through GPUs: copy in, map, copy out, several chunks at a time.

Source: the pipelined multi-GPU MapReduce of `dlsim.cpugpu.gpu.chunks`. The issue order is our
reading of its "GPU operation scheduler", to "stabilize performance when GPU operations are issued
from multiple CPU threads": Fermi serves its queue in the order of issue, so that a bad order blocks
operations that are ready; the scheduler issues in the order in which a GPU with many queues
(Hyper-Q) would start them.
"""

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dlsim.compiled import deadline_with_tolerance
from dlsim.cpugpu.check import do_not_overlap, previous_in_lane, require, table_times_equal
from dlsim.cpugpu.gpu.chunks import COPIES, ON_GPU, STAGES, Gpu
from dlsim.cpugpu.model import MOST_COUNT
from dlsim.cpugpu.workload import time_column
from dlsim.errors import InputError
from dlsim.rounding import not_after
from dlsim.validate import one_of, or_default, require_table, whole

#: A stage of a chunk; one that ran, as a number, its start and its end.
Operation = tuple[int, str]
Ran = tuple[int, Any, Any]
#: Orders of issue: chunk by chunk; stage by stage over waves of k chunks a GPU (more would wait
#: for their streams); calls of several threads, interleaved at random; as Hyper-Q would start.
ISSUE_ORDERS = ("depth", "breadth", "threads", "scheduled")
#: Which of two waiting operations an engine takes, by `Gpu.first`: that of the later stage, of the
#: earlier one, or either; then the earlier chunk.
_RANK = {"d2h": -1, "h2d": 1, "chunk": 0}


def run_chunks(
    chunks: pd.DataFrame,
    gpu: Gpu | None = None,
    issue: str | Sequence[Operation] = "depth",
    *,
    gpus: int = 1,
    buffers: int = 0,
    threads: int = 0,
    seed: int = 0,
) -> "PipelineResult":
    r"""Run chunks through copy in, map and copy out, on one or several equal GPUs.

    Parameters
    ----------
    chunks : DataFrame
        Columns h2d, map, d2h: the times of each chunk; read and write where it passes a
        disk. Chunk i goes to GPU i mod `gpus`.
    gpu : Gpu, optional
        Each of the GPUs.
    issue : str or sequence of (chunk, stage)
        Order in which the host issues operations, for in-order queues: one of
        `dlsim.cpugpu.gpu.pipeline.ISSUE_ORDERS`, or every operation of the GPUs once.
    gpus : int
        Number of GPUs.
    buffers : int
        Chunks that fit in host memory at once, 0 for any number: chunk i is read only
        when chunk i - buffers has passed its last stage.
    threads : int
        Issuing threads of ``issue="threads"``, 0 for one per stream.
    seed : int
        Of ``issue="threads"``.

    Returns
    -------
    PipelineResult
        Table of operations; its `check` tests the model's rules.

    Raises
    ------
    InputError
        For chunks without a time, an unknown order, or an order that blocks itself.

    Examples
    --------
    >>> from dlsim.cpugpu import equal_chunks
    >>> chunks = equal_chunks(5, h2d=3, map=1, d2h=2)
    >>> [run_chunks(chunks, Gpu(streams=k)).makespan for k in (1, 2, 3)]
    [30, 18, 18]
    >>> run_chunks(chunks, gpus=2).makespan
    12
    """
    gpu = or_default("gpu", gpu, Gpu)
    work = work_of(chunks, gpu, gpus, buffers)
    order = issue_order(work, issue, threads, seed)
    ops, start, end = zip(*OperationRun(work, order).run(), strict=True)
    chunk, place = np.divmod(np.array(ops), len(work.stages))
    engines = [engine for engine, _ in work.servers()]
    table = pd.DataFrame(
        {
            "chunk": chunk,
            "stage": [work.stages[at] for at in place.tolist()],
            "gpu": chunk % work.gpus,
            "stream": chunk // work.gpus % gpu.streams,
            "engine": [engines[op % len(engines)] for op in ops],
            "start": start,
            "end": end,
        }
    )
    return PipelineResult(table, gpu, work.gpus, work.buffers, chunks.copy(), order)


@dataclass(frozen=True)
class Work:
    """Operations as numbers: chunk times stages + place of the stage."""

    stages: list[str]
    times: list[Any]
    gpu: Gpu
    gpus: int = 1
    buffers: int = 0

    @property
    def count(self) -> int:
        """Number of chunks."""
        return len(self.times) // len(self.stages)

    @property
    def stream_slots(self) -> int:
        """Chunks that may be on all GPUs at once."""
        return self.gpu.streams * self.gpus

    def name(self, op: int) -> Operation:
        """Return the chunk and the stage of an operation."""
        return op // len(self.stages), self.stages[op % len(self.stages)]

    def servers(self) -> list[tuple[str, object]]:
        """Return the engine of each stage on each GPU, and the queue of what is issued in order."""
        found = list[tuple[str, object]]()
        for j, stage in product(range(min(self.gpus, self.count)), self.stages):
            engine = self.gpu.engine(stage)
            name = f"gpu{j}.{engine}" if stage in ON_GPU else engine
            is_single = stage in ON_GPU and self.gpu.queues == "single"
            found.append((name, j if is_single else name))
        return found

    def following_steps(self) -> list[list[int]]:
        """Return how far behind an operation those are that wait for its end, by its stage.

        Stage follows stage, a chunk the one before in its stream and in its host buffer.
        """
        stages = len(self.stages)
        steps = [[1] for _ in self.stages]
        steps[-1].clear()
        loaded, out = map(self.stages.index, COPIES)
        steps[out].append(self.stream_slots * stages + loaded - out)
        if self.buffers:
            steps[-1].append(self.buffers * stages + 1 - stages)
        return steps


def work_of(chunks: pd.DataFrame, gpu: Gpu, gpus: int = 1, buffers: int = 0) -> Work:
    """Turn a table of chunks into operations."""
    gpus = whole("gpus", gpus, 1, MOST_COUNT)
    buffers = whole("buffers", buffers, 0, MOST_COUNT)
    require_table("chunks", chunks, ON_GPU, optional=STAGES, empty=False)
    stages = [stage for stage in STAGES if stage in chunks.columns]
    for stage in stages:
        time_column("chunks", chunks, stage)
    rows = zip(*(chunks[stage].tolist() for stage in stages), strict=True)
    return Work(stages, [time for row in rows for time in row], gpu, gpus, buffers)


class OperationRun:
    """A run of all operations; at one instant ends come before starts.

    An operation in the order of issue waits for the start of the one before it in its queue. Of
    those that are ready an engine serves the first by issue, or else the first by rank.
    """

    def __init__(self, work: Work, issue: Sequence[Operation] = ()) -> None:
        self.work, self.issue = work, issue
        self.engines, self.queues = zip(*work.servers(), strict=True)
        self.count, self.period = len(work.times), len(self.engines)
        self.span = min((time for time in work.times if time > 0), default=0)
        self.now: Any = 0
        self.ready: dict[str, list[tuple[int, int]]] = {engine: [] for engine in self.engines}
        self.busy, self.running, self.ran = set[str](), list[tuple[Any, int]](), list[Ran]()
        self.steps, self.waits = work.following_steps(), [0] * self.count
        for stage, steps in enumerate(self.steps):
            for step in steps:
                for op in range(stage + step, self.count, len(work.stages)):
                    self.waits[op] += 1
        self.key, self.behind = self.rank_operations(), dict[int, int]()
        self.queue_turns = self.line_up()

    def rank_operations(self) -> list[int]:
        """Return the key by which an engine chooses among ready operations, the least first."""
        rank, stages = _RANK[self.work.gpu.first], len(self.work.stages)
        return [rank * (op % stages) * self.count + op for op in range(self.count)]

    def line_up(self) -> dict[object, int]:
        """Put the operations into their queues in the order of issue; number the queues."""
        last = dict[object, int]()
        for turn, (chunk, stage) in enumerate(self.issue):
            op = chunk * len(self.work.stages) + self.work.stages.index(stage)
            queue = self.queues[op % self.period]
            self.key[op] = turn
            if queue in last:
                self.behind[last[queue]] = op
                self.waits[op] += 1
            last[queue] = op
        return {queue: turn for turn, queue in enumerate(dict.fromkeys([*last, *self.queues]))}

    def run(self) -> list[Ran]:
        """Run every operation; return them in the order in which they started."""
        for op in range(self.count):
            if not self.waits[op]:
                heapq.heappush(self.ready[self.engine_of(op)], (self.key[op], op))
        touched = set(self.engines)
        while touched:
            self.start_ready(touched)
            touched = self.end_due()
        if len(self.ran) < self.count:
            self.refuse_to_block()
        return self.ran

    def engine_of(self, op: int) -> str:
        """Return the engine of an operation."""
        return str(self.engines[op % self.period])

    def start_ready(self, engines: set[str]) -> None:
        """Start on each free engine the first of the operations that are ready."""
        front, begun = [self.ready[engine][0] for engine in engines if self.ready[engine]], []
        heapq.heapify(front)
        while front:
            _, op = heapq.heappop(front)
            engine = self.engine_of(op)
            if engine in self.busy:
                continue
            heapq.heappop(self.ready[engine])
            self.busy.add(engine)
            end = self.now + self.work.times[op]
            heapq.heappush(self.running, (end, op))
            begun.append((op, self.now, end))
            behind = self.behind.get(op)
            if behind is not None and self.stop_waiting(behind):
                heapq.heappush(front, (self.key[behind], behind))
        self.ran += sorted(
            begun, key=lambda ran: self.queue_turns[self.queues[ran[0] % self.period]]
        )

    def end_due(self) -> set[str]:
        """End the operations that are due first; return the engines that may start one."""
        touched = set[str]()
        limit = self.running[0][0] if self.running else self.now
        while self.running and self.running[0][0] <= limit:
            self.now, op = heapq.heappop(self.running)
            limit = deadline_with_tolerance(self.now, self.span)
            self.busy.remove(self.engine_of(op))
            touched.add(self.engine_of(op))
            touched |= self.release_followers(op)
        return touched

    def release_followers(self, op: int) -> set[str]:
        """Tell those that wait for an operation that it ended; return the engines of the ready."""
        followers = (op + step for step in self.steps[op % len(self.work.stages)])
        return {
            self.engine_of(then)
            for then in followers
            if then < self.count and self.stop_waiting(then)
        }

    def stop_waiting(self, op: int) -> bool:
        """Note that an operation waits for one less; tell whether it is ready now."""
        self.waits[op] -= 1
        if self.waits[op]:
            return False
        heapq.heappush(self.ready[self.engine_of(op)], (self.key[op], op))
        return True

    def refuse_to_block(self) -> None:
        """Raise InputError: the order of issue lets an operation wait for one behind it."""
        started = {self.work.name(op) for op, *_ in self.ran}
        chunk, stage = next(op for op in self.issue if op not in started)
        raise InputError(
            f"the issue order must not block its own queue: {stage} of chunk {chunk} waits for an "
            "operation behind it; issue chunk i after the copy out of chunk "
            f"i - {self.work.stream_slots}, or use queues='hyper-q'"
        )


def makespan(times: list[Any], gpu: Gpu) -> Any:
    """Return the end of chunks by the times of their copies in, kernels and copies out."""
    work = Work(list(ON_GPU), times, gpu)
    return max(end for *_, end in OperationRun(work, issue_order(work)).run())


def issue_order(
    work: Work, issue: str | Sequence[Operation] = "depth", threads: int = 0, seed: int = 0
) -> list[Operation]:
    """Return the order in which all copies and kernels are issued; none under Hyper-Q.

    >>> chunks = pd.DataFrame({"h2d": [3, 3], "map": [1, 1], "d2h": [2, 2]})
    >>> issue_order(work_of(chunks, Gpu(streams=2, queues="single")), "breadth")[:3]
    [(0, 'h2d'), (1, 'h2d'), (0, 'map')]
    """
    order = list(product(range(work.count), ON_GPU))
    if not isinstance(issue, str):
        order = _read_issue(issue, order)
    elif one_of("issue", issue, ISSUE_ORDERS) == "breadth":
        order.sort(key=lambda op: (op[0] // work.stream_slots, ON_GPU.index(op[1]), op[0]))
    elif issue == "threads":
        order = _interleaved(work, order, threads, seed)
    elif issue == "scheduled":
        ran = OperationRun(replace(work, gpu=replace(work.gpu, queues="hyper-q"))).run()
        order = [op for op in (work.name(op) for op, *_ in ran) if op[1] in ON_GPU]
    return [] if work.gpu.queues == "hyper-q" else order


def _read_issue(issue: Any, known: list[Operation]) -> list[Operation]:
    """Read a user's order of issue, which must name each known operation once."""
    try:
        order = [(whole("chunk", chunk, 0), str(stage)) for chunk, stage in issue]
    except (TypeError, ValueError):
        raise InputError(
            f"issue must be one of {', '.join(ISSUE_ORDERS)} or a list of (chunk, stage); "
            f"got {issue!r}"
        ) from None
    left = set(known)
    for op in order:
        if op not in left:
            raise InputError(
                f"issue must name chunks 0..{known[-1][0]} and stages {', '.join(ON_GPU)}, "
                f"each operation once; got {op!r} unknown or twice"
            )
        left.remove(op)
    if left:
        raise InputError(f"issue must name every operation once; {min(left)!r} is missing")
    return order


def _interleaved(work: Work, depth: list[Operation], threads: int, seed: int) -> list[Operation]:
    """Merge the calls of several threads at random; a call waits until its chunk has memory."""
    threads = whole("threads", threads, 0, work.stream_slots) or work.stream_slots
    calls: list[list[Operation]] = [[] for _ in range(threads)]
    for chunk, stage in reversed(depth):
        calls[chunk % work.stream_slots % threads].append((chunk, stage))
    source = random.Random(whole("seed", seed, 0, 2**63))
    order, room, out = list[Operation](), work.buffers or work.count, set[int]()

    def has_memory(chunk: int, stage: str) -> bool:
        """Tell whether a chunk has memory, or gets it now."""
        return stage != "h2d" or chunk < room or chunk - room in out

    while left := [own for own in calls if own]:
        op = source.choice([own for own in left if has_memory(*own[-1])]).pop()
        order.append(op)
        if op[1] == "d2h":
            out.add(op[0])
    return order


@dataclass(frozen=True, eq=False)
class PipelineResult:
    """The operations of a pipeline, in the order in which they started."""

    ops: pd.DataFrame
    gpu: Gpu
    gpus: int
    buffers: int
    chunks: pd.DataFrame
    issue: list[Operation] = field(default_factory=list)

    @property
    def makespan(self) -> Any:
        """Return the end of the last operation."""
        return max(self.ops["end"])

    def check(self) -> None:
        """Check the operations against the model, independently of the engine."""
        ops, gpu = self.ops, self.gpu
        stages = [stage for stage in STAGES if stage in self.chunks.columns]
        count, times = len(stages), self.chunks[stages].to_numpy(dtype=float)
        span = min(times[times > 0].tolist(), default=0.0)
        chunk, on, names = ops["chunk"].to_numpy(), ops["gpu"].to_numpy(), ops["stage"].tolist()
        start, end = (ops[name].to_numpy(dtype=float) for name in ("start", "end"))
        place = np.array([stages.index(name) if name in stages else -1 for name in names])
        number = chunk * count + place
        passed = np.array_equal(np.sort(number), np.arange(times.size))
        require("every chunk passes every stage once", passed)
        operations, row = list(zip(chunk.tolist(), names, strict=True)), np.argsort(number)
        took = table_times_equal(start + times.ravel()[number], end, span)
        require("an operation takes the time given", took, operations)
        require("nothing starts before 0", start >= 0, operations)
        require("chunk i is on GPU i mod m", on == chunk % self.gpus, operations)
        turn = chunk // self.gpus % gpu.streams
        require("chunks take the streams in turn", ops["stream"] == turn, operations)

        stream_slots, loaded, out = gpu.streams * self.gpus, *map(stages.index, COPIES)
        is_full = (place == 0) & (chunk >= self.buffers) & (self.buffers > 0)
        due = np.zeros(len(ops))
        for rule, waits, awaited in (
            ("a chunk's stages follow one another", place > 0, number - 1),
            (
                "a stream holds one chunk at a time",
                (place == loaded) & (chunk >= stream_slots),
                (chunk - stream_slots) * count + out,
            ),
            (
                "a host buffer holds one chunk at a time",
                is_full,
                (chunk - self.buffers + 1) * count - 1,
            ),
        ):
            over = np.where(waits, end[row[np.where(waits, awaited, 0)]], 0.0)
            require(rule, not_after(over, start, span), operations)
            due = np.maximum(due, over)

        on_gpu, copies = np.isin(names, ON_GPU), np.isin(names, COPIES)
        ways = on * count + place
        engine = np.unique(ops["engine"], return_inverse=True)[1]
        for rule, some, lane in (
            ("the disk serves one chunk at a time", ~on_gpu, 0 * on),
            ("a GPU computes one chunk at a time", on_gpu & ~copies, on),
            ("a direction carries one copy at a time", copies, ways),
            ("one copy engine carries one copy at a time", copies & (gpu.copy_engines == 1), on),
            ("pageable copies overlap with nothing on the GPU", on_gpu & (not gpu.pinned), on),
        ):
            require(rule, do_not_overlap(lane[some], start[some], end[some], span))
        if gpu.queues != "hyper-q":
            issued = row[[c * count + stages.index(stage) for c, stage in self.issue]]
            lane = engine if gpu.queues == "per-engine" else on
            in_order = not_after(
                previous_in_lane(lane[issued], start[issued], 0.0), start[issued], span
            )
            require("an in-order queue is served in order", in_order, self.issue)
        is_single = on_gpu & (gpu.queues == "single")
        for some, lane, until in ((on >= 0, engine, end), (is_single, on, start)):
            due[some] = np.maximum(due[some], previous_in_lane(lane[some], until[some], 0.0))
        require("nothing idles that could work", not_after(start, due, span), operations)
