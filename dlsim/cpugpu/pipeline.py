"""A pipeline of chunks through GPUs: copy in, map, copy out, several chunks at a time.

Source: the pipelined multi-GPU MapReduce of `dlsim.cpugpu.gpu`. The issue order is our reading of
its "GPU operation scheduler", to "stabilize performance when GPU operations are issued from
multiple CPU threads": Fermi serves its queue in the order of issue, so that a bad order blocks
operations that are ready; the scheduler issues in the order in which a GPU with many queues
(Hyper-Q) would start them.
"""

import heapq
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from dlsim.compiled import deadline_with_tolerance
from dlsim.cpugpu.gpu import COPIES, ON_GPU, STAGES, Gpu, equal_chunks
from dlsim.cpugpu.job_table import (
    do_not_overlap,
    previous_in_lane,
    require,
    table_times_equal,
    time_column,
)
from dlsim.cpugpu.model import MOST_COUNT
from dlsim.errors import InputError
from dlsim.rounding import not_after
from dlsim.validate import one_of, or_default, require_table, whole

__all__ = ["Gpu", "PipelineResult", "equal_chunks", "run_chunks"]

#: A stage of a chunk; one that ran, as a number, its start and its end.
Operation = tuple[int, str]
Ran = tuple[int, Any, Any]
#: Orders of issue: chunk by chunk; stage by stage over waves of k chunks a GPU (more would wait
#: for their streams); calls of several threads, interleaved at random; as Hyper-Q would start.
ISSUE_ORDERS = ("depth", "breadth", "threads", "scheduled")
#: Which of two waiting operations an engine takes, by `Gpu.first`: that of the later stage, of the
#: earlier one, or either; then the earlier chunk.
_RANK = {"d2h": -1, "h2d": 1, "chunk": 0}


def _link_of(gpu: int, per_link: int, stage: str) -> str:
    """Name the direction of a shared link that carries a GPU's copies."""
    return f"link{gpu // per_link}.{stage}"


def run_chunks(
    chunks: pd.DataFrame,
    gpu: Gpu | None = None,
    issue: str | Sequence[Operation] = "depth",
    *,
    gpus: int = 1,
    per_link: int = 1,
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
        `dlsim.cpugpu.pipeline.ISSUE_ORDERS`, or every operation of the GPUs once.
    gpus : int
        Number of GPUs.
    per_link : int
        GPUs that share a link to the host (PCIe), which carries one copy a direction at a
        time: GPU j hangs on link j // `per_link`. Of several that could start a copy the
        link takes the one that an engine would (`Gpu.first`); of in-order queues the one
        that was issued first.
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
    >>> chunks = equal_chunks(5, h2d=3, map=1, d2h=2)
    >>> [run_chunks(chunks, Gpu(streams=k)).makespan for k in (1, 2, 3)]
    [30, 18, 18]
    >>> [run_chunks(chunks, gpus=2, per_link=n).makespan for n in (1, 2)]
    [12, 18]
    """
    gpu = or_default("gpu", gpu, Gpu)
    work = work_of(chunks, gpu, gpus, buffers, per_link)
    order = issue_order(work, issue, threads, seed)
    ops, start, end = zip(*run_operations(work, order), strict=True)
    chunk, place = np.divmod(np.array(ops), len(work.stages))
    engines = [occupied[0] for occupied, _ in work.servers()]
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
    return PipelineResult(table, gpu, work.gpus, work.buffers, chunks.copy(), order, work.per_link)


@dataclass(frozen=True)
class Work:
    """Operations as numbers: chunk times stages + place of the stage."""

    stages: list[str]
    times: list[Any]
    gpu: Gpu
    gpus: int = 1
    buffers: int = 0
    per_link: int = 1

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

    def servers(self) -> list[tuple[tuple[str, ...], object]]:
        """What each stage holds on each GPU, its engine and its direction of a shared link.

        With it the queue of all that is served in one order of issue.
        """
        found = list[tuple[tuple[str, ...], object]]()
        for j, stage in product(range(min(self.gpus, self.count)), self.stages):
            engine, is_shared = self.gpu.engine(stage), self.per_link > 1 and stage in COPIES
            link = [_link_of(j, self.per_link, stage)] * is_shared
            occupied = f"gpu{j}.{engine}" if stage in ON_GPU else engine, *link
            in_order = {"per-engine": occupied[0], "single": j} if stage in ON_GPU else {}
            found.append((occupied, in_order.get(self.gpu.queues, occupied)))
        return found


def work_of(
    chunks: pd.DataFrame, gpu: Gpu, gpus: int = 1, buffers: int = 0, per_link: int = 1
) -> Work:
    """Turn a table of chunks into operations."""
    gpus = whole("gpus", gpus, 1, MOST_COUNT)
    buffers = whole("buffers", buffers, 0, MOST_COUNT)
    per_link = whole("per_link", per_link, 1, gpus, rule=f"a number of GPUs in 1..{gpus}")
    require_table("chunks", chunks, ON_GPU, empty=False)
    stages = [stage for stage in STAGES if stage in chunks.columns]
    for stage in stages:
        time_column("chunks", chunks, stage)
    rows = zip(*(chunks[stage].tolist() for stage in stages), strict=True)
    return Work(stages, [time for row in rows for time in row], gpu, gpus, buffers, per_link)


def run_operations(work: Work, issue: Sequence[Operation] = ()) -> list[Ran]:
    """Run all operations; at one instant completions come before starts.

    One in the order of issue waits for the start of the one before. Of those that are ready and
    compete for a server the first by issue is served, or else the first by rank.
    """
    stages, times, rank = len(work.stages), work.times, _RANK[work.gpu.first]
    servers, queues = zip(*work.servers(), strict=True)
    count, period, waits = len(times), len(servers), [0] * len(times)
    span = min((t for t in times if t > 0), default=0)
    # How far behind an operation those are that wait for its end, by the place of its stage:
    # stage after stage, stream after stream, buffer by buffer.
    followers, (loaded, out) = [[1] for _ in work.stages], map(work.stages.index, COPIES)
    followers[-1].clear()
    followers[out].append(work.stream_slots * stages + loaded - out)
    if work.buffers:
        followers[-1].append(work.buffers * stages + 1 - stages)
    for place, steps in enumerate(followers):
        for step in steps:
            for op in range(place + step, count, stages):
                waits[op] += 1
    key = [rank * (op % stages) * count + op for op in range(count)]
    last, behind = dict[object, int](), dict[int, int]()
    for turn, (chunk, stage) in enumerate(issue):
        op = chunk * stages + work.stages.index(stage)
        key[op], queue = turn, queues[op % period]
        if queue in last:
            behind[last[queue]] = op
            waits[op] += 1
        last[queue] = op
    turns = {queue: turn for turn, queue in enumerate(dict.fromkeys([*last, *queues]))}
    turn_of = [turns[queue] for queue in queues]
    users = defaultdict[str, set[tuple[str, ...]]](set)
    for occupied in servers:
        for one in occupied:
            users[one].add(occupied)
    ready: dict[tuple[str, ...], list[tuple[int, int]]] = {occupied: [] for occupied in servers}
    busy, running, ran, now = set[str](), list[tuple[Any, int]](), list[Ran](), 0
    for op in (op for op in range(count) if not waits[op]):
        heapq.heappush(ready[servers[op % period]], (key[op], op))
    touched = set(servers)
    while touched:
        front, begun = [ready[occupied][0] for occupied in touched if ready[occupied]], []
        heapq.heapify(front)
        while front:
            _, op = heapq.heappop(front)
            occupied = servers[op % period]
            if not busy.isdisjoint(occupied):
                continue
            heapq.heappop(ready[occupied])
            busy.update(occupied)
            heapq.heappush(running, (now + times[op], op))
            begun.append((turn_of[op % period], op, now, now + times[op]))
            if (then := behind.get(op, -1)) >= 0:
                waits[then] -= 1
                if not waits[then]:
                    heapq.heappush(ready[servers[then % period]], (key[then], then))
                    heapq.heappush(front, (key[then], then))
        ran += [row[1:] for row in sorted(begun, key=itemgetter(0))]
        touched = set()
        limit = running[0][0] if running else now
        while running and running[0][0] <= limit:
            now, op = heapq.heappop(running)
            limit = deadline_with_tolerance(now, span)
            for one in servers[op % period]:
                busy.remove(one)
                touched |= users[one]
            for then in (op + step for step in followers[op % stages] if op + step < count):
                waits[then] -= 1
                if not waits[then]:
                    heapq.heappush(ready[servers[then % period]], (key[then], then))
                    touched.add(servers[then % period])
    if len(ran) < count:
        started = {work.name(op) for op, *_ in ran}
        chunk, stage = next(op for op in issue if op not in started)
        raise InputError(
            f"the issue order must not block its own queue: {stage} of chunk {chunk} waits for an "
            "operation behind it; issue chunk i after the copy out of chunk "
            f"i - {work.stream_slots}, or use queues='hyper-q'"
        )
    return ran


def makespan(times: list[Any], gpu: Gpu) -> Any:
    """Return the end of chunks by the times of their copies in, kernels and copies out."""
    work = Work(list(ON_GPU), times, gpu)
    return max(end for *_, end in run_operations(work, issue_order(work)))


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
        left = set(order)
        try:
            order = [(whole("chunk", chunk, 0), str(stage)) for chunk, stage in issue]
        except (TypeError, ValueError):
            raise InputError(
                f"issue must be one of {', '.join(ISSUE_ORDERS)} or a list of (chunk, stage); "
                f"got {issue!r}"
            ) from None
        for op in order:
            if op not in left:
                raise InputError(
                    f"issue must name chunks 0..{work.count - 1} and stages {', '.join(ON_GPU)}, "
                    f"each operation once; got {op!r} unknown or twice"
                )
            left.remove(op)
        if left:
            raise InputError(f"issue must name every operation once; {min(left)!r} is missing")
    elif one_of("issue", issue, ISSUE_ORDERS) == "breadth":
        order.sort(key=lambda op: (op[0] // work.stream_slots, ON_GPU.index(op[1]), op[0]))
    elif issue == "threads":
        order = _interleaved(work, order, threads, seed)
    elif issue == "scheduled":
        ran = run_operations(replace(work, gpu=replace(work.gpu, queues="hyper-q")))
        order = [op for op in (work.name(op) for op, *_ in ran) if op[1] in ON_GPU]
    return [] if work.gpu.queues == "hyper-q" else order


def _interleaved(work: Work, depth: list[Operation], threads: int, seed: int) -> list[Operation]:
    """Merge the calls of several threads at random; a call waits until its chunk has memory."""
    threads = whole("threads", threads, 0, work.stream_slots) or work.stream_slots
    calls: list[list[Operation]] = [[] for _ in range(threads)]
    for chunk, stage in reversed(depth):
        calls[chunk % work.stream_slots % threads].append((chunk, stage))
    source = random.Random(whole("seed", seed, 0, 2**63))
    order, room, out = list[Operation](), work.buffers or work.count, set[int]()
    while any(calls):
        tops = [(own, *own[-1]) for own in calls if own]
        ready = [own for own, i, op in tops if op != "h2d" or i < room or i - room in out]
        op = source.choice(ready).pop()
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
    per_link: int = 1

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
        ways, link = on * count + place, on // self.per_link * count + place
        engine = np.unique(ops["engine"], return_inverse=True)[1]
        for rule, some, lane in (
            ("the disk serves one chunk at a time", ~on_gpu, 0 * on),
            ("a GPU computes one chunk at a time", on_gpu & ~copies, on),
            ("a direction carries one copy at a time", copies, ways),
            ("one copy engine carries one copy at a time", copies & (gpu.copy_engines == 1), on),
            ("pageable copies overlap with nothing on the GPU", on_gpu & (not gpu.pinned), on),
            ("a link carries one copy a direction at a time", copies, link),
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
        for some, lane, until in (
            (on >= 0, engine, end),
            (copies, link, end),
            (is_single, on, start),
        ):
            due[some] = np.maximum(due[some], previous_in_lane(lane[some], until[some], 0.0))
        require("nothing idles that could work", not_after(start, due, span), operations)
