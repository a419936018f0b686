"""Chunks on their way through GPUs: copy in, map, copy out, several at a time.

Source: the pipelined multi-GPU MapReduce that paper C describes as its contributions
(section 2), from Y. Chen, Z. Qiao, S. Davis, H. Jiang, K.-C. Li, "Pipelined Multi-GPU
MapReduce for Big-Data Processing" (2013). The issue order is our reading of its "GPU operation
scheduler", to "stabilize performance when GPU operations are issued from multiple CPU threads":
Fermi serves its queue in the order of issue, so that a bad order blocks whoever is ready; the
scheduler issues in the order in which a GPU with many queues (Hyper-Q) would start.
"""

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from dlsim.cpugpu.given import MOST_COUNT, time_column
from dlsim.cpugpu.gpu import COPIES, ON_GPU, STAGES, Gpu, equal_chunks, equal_chunks_time
from dlsim.cpugpu.timeline import Operation, Timeline, link_of
from dlsim.errors import InputError
from dlsim.given import instance, option, table, whole
from dlsim.kernel import latest_finish

__all__ = ["Gpu", "equal_chunks", "equal_chunks_time", "run_chunks"]

#: Which of two waiting operations an engine takes, by stage; then the earlier chunk.
_RANK: dict[str, dict[str, int]] = {
    "d2h": {"write": 0, "d2h": 1, "map": 2, "h2d": 3, "read": 4},
    "h2d": {"read": 0, "h2d": 1, "map": 2, "d2h": 3, "write": 4},
    "chunk": dict.fromkeys(STAGES, 0),
}


def run_chunks(
    chunks: pd.DataFrame, gpu: Gpu | None = None, issue: str | Sequence[Operation] = "depth", *,
    gpus: int = 1, per_link: int = 1, buffers: int = 0, threads: int = 0, seed: int = 0,
) -> Timeline:  # fmt: skip
    r"""Run chunks through copy in, map and copy out, on one or several equal GPUs.

    How long equal chunks take has a closed form, `equal_chunks_time`.

    Parameters
    ----------
    chunks : DataFrame
        Columns h2d, map, d2h: the times of each chunk; read and write where it passes a
        disk. Chunk i goes to GPU i mod `gpus`.
    gpu : Gpu, optional
        Each of the GPUs.
    issue : str or sequence of (chunk, stage)
        Order in which the host issues operations, for in-order queues: one of
        `dlsim.cpugpu.pipeline.ORDERS`, or every operation of the GPUs once.
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
    Timeline
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
    gpu = Gpu() if gpu is None else gpu
    work = work_of(chunks, gpu, gpus, buffers, per_link)
    order = issue_order(work, issue, threads, seed)
    return Timeline(_table(work, run_operations(work, order)), gpu, gpus, buffers, chunks, order,
                    per_link)  # fmt: skip


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
    def lanes(self) -> int:
        """Chunks that may be on all GPUs at once."""
        return self.gpu.streams * self.gpus

    def name(self, op: int) -> Operation:
        """Return the chunk and the stage of an operation."""
        return op // len(self.stages), self.stages[op % len(self.stages)]

    def followers(self) -> list[list[int]]:
        """How far behind an operation those are that wait for its end, by the place of its stage.

        Stage after stage, stream after stream, buffer by buffer.
        """
        stages = len(self.stages)
        found = [[1] for _ in self.stages[1:]] + [list[int]()]
        loaded, out = map(self.stages.index, COPIES)
        found[out].append(self.lanes * stages + loaded - out)
        if self.buffers:
            found[-1].append(self.buffers * stages + 1 - stages)
        return found

    def servers(self) -> list[tuple[str, ...]]:
        """What each stage holds on each GPU: its engine, and its direction of a shared link."""
        found = list[tuple[str, ...]]()
        for j, stage in product(range(min(self.gpus, self.count)), self.stages):
            engine, is_shared = self.gpu.engine(stage), self.per_link > 1 and stage in COPIES
            link = [link_of(j, self.per_link, stage)] * is_shared
            found.append((f"gpu{j}.{engine}" if stage in ON_GPU else engine, *link))
        return found

    def queue(self, servers: tuple[str, ...]) -> object:
        """Name the queue of all that holds these servers, on Fermi in the order of issue."""
        if self.gpu.queues == "hyper-q" or servers[0] == "disk":
            return servers
        return servers[0] if self.gpu.queues == "per-engine" else servers[0].partition(".")[0]


def work_of(
    chunks: pd.DataFrame, gpu: Gpu, gpus: int = 1, buffers: int = 0, per_link: int = 1
) -> Work:
    """Turn a table of chunks into operations."""
    instance("gpu", gpu, Gpu)
    gpus = whole("gpus", gpus, 1, MOST_COUNT)
    whole("buffers", buffers, 0, MOST_COUNT)
    whole("per_link", per_link, 1, gpus, rule=f"a number of GPUs in 1..{gpus}")
    table("chunks", chunks, ON_GPU, empty=False)
    stages = [stage for stage in STAGES if stage in chunks.columns]
    for stage in stages:
        time_column("chunks", chunks, stage)
    rows = zip(*(chunks[stage].tolist() for stage in stages), strict=True)
    return Work(stages, [time for row in rows for time in row], gpu, gpus, buffers, per_link)


#: An operation that ran, its start and its end.
Ran = tuple[int, Any, Any]


def run_operations(work: Work, issue: Sequence[Operation] = ()) -> list[Ran]:
    """Run all operations; at one instant completions come before starts.

    One in the order of issue waits for the start of the one before. Of those that are ready and
    compete for a server the first by issue is served, or else the first by rank.
    """
    stages, times, servers = len(work.stages), work.times, work.servers()
    count, period, followers = len(times), len(servers), work.followers()
    queues, span = list(map(work.queue, servers)), min((t for t in times if t > 0), default=0)
    waits, rank = [0] * count, _RANK[work.gpu.first]
    for place, steps in enumerate(followers):
        for step in steps:
            for op in range(place + step, count, stages):
                waits[op] += 1
    keys = [rank[stage] * count + place for place, stage in enumerate(work.stages)]
    key = [keys[op % stages] + op // stages * stages for op in range(count)]
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
    users: dict[str, set[tuple[str, ...]]] = {one: set() for held in servers for one in held}
    for held in servers:
        for one in held:
            users[one].add(held)
    ready: dict[tuple[str, ...], list[tuple[int, int]]] = {held: [] for held in servers}
    busy, running, ran, now = set[str](), list[tuple[Any, int]](), list[Ran](), 0
    for op in (op for op in range(count) if not waits[op]):
        heapq.heappush(ready[servers[op % period]], (key[op], op))
    touched = set(servers)
    while touched:
        front, begun = [ready[held][0] for held in touched if ready[held]], []
        heapq.heapify(front)
        while front:
            _, op = heapq.heappop(front)
            held = servers[op % period]
            if not busy.isdisjoint(held):
                continue
            heapq.heappop(ready[held])
            busy.update(held)
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
            limit = latest_finish(now, span)
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
            f"operation behind it; issue chunk i after the copy out of chunk i - {work.lanes}, or "
            "use queues='hyper-q'"
        )
    return ran


def makespan(times: list[Any], gpu: Gpu) -> Any:
    """Return the end of chunks by the times of their copies in, kernels and copies out."""
    work = Work(list(ON_GPU), times, gpu)
    return max(end for *_, end in run_operations(work, issue_order(work)))


def _table(work: Work, ran: list[Ran]) -> pd.DataFrame:
    ops, start, end = zip(*ran, strict=True)
    chunk, place = np.divmod(np.array(ops), len(work.stages))
    engines = [held[0] for held in work.servers()]
    return pd.DataFrame({
        "chunk": chunk, "stage": [work.stages[at] for at in place.tolist()],
        "gpu": chunk % work.gpus, "stream": chunk // work.gpus % work.gpu.streams,
        "engine": [engines[op % len(engines)] for op in ops], "start": start, "end": end,
    })  # fmt: skip


def issue_order(
    work: Work, issue: str | Sequence[Operation] = "depth", threads: int = 0, seed: int = 0
) -> list[Operation]:
    """Return the order in which all copies and kernels are issued; none under Hyper-Q.

    >>> chunks = pd.DataFrame({"h2d": [3, 3], "map": [1, 1], "d2h": [2, 2]})
    >>> issue_order(work_of(chunks, Gpu(streams=2, queues="single")), "breadth")[:3]
    [(0, 'h2d'), (1, 'h2d'), (0, 'map')]
    """
    if isinstance(issue, str):
        option("issue", issue, ORDERS)
        order = _NAMED[issue](work, threads, seed)
    else:
        order = _each_once(work.count, issue)
    return [] if work.gpu.queues == "hyper-q" else order


def in_depth(work: Work, threads: int = 0, seed: int = 0) -> list[Operation]:
    """Issue chunk after chunk."""
    return [(chunk, stage) for chunk in range(work.count) for stage in ON_GPU]


def _in_breadth(work: Work, threads: int, seed: int) -> list[Operation]:
    """Stage by stage over waves of k chunks a GPU: more would wait for their streams."""
    return sorted(in_depth(work), key=lambda op: (op[0] // work.lanes, ON_GPU.index(op[1]), op[0]))


def _scheduled(work: Work, threads: int, seed: int) -> list[Operation]:
    ran = run_operations(replace(work, gpu=replace(work.gpu, queues="hyper-q")))
    return [op for op in (work.name(op) for op, *_ in ran) if op[1] in ON_GPU]


def _each_once(count: int, issue: Sequence[Operation]) -> list[Operation]:
    try:
        order = [(int(chunk), str(stage)) for chunk, stage in issue]
    except (TypeError, ValueError):
        raise InputError(
            f"issue must be one of {', '.join(ORDERS)} or a list of (chunk, stage); got {issue!r}"
        ) from None
    left = {(chunk, stage) for chunk in range(count) for stage in ON_GPU}
    for op in order:
        if op not in left:
            raise InputError(
                f"issue must name chunks 0..{count - 1} and stages {', '.join(ON_GPU)}, each "
                f"operation once; got {op!r} unknown or twice"
            )
        left.remove(op)
    if left:
        raise InputError(f"issue must name every operation once; {min(left)!r} is missing")
    return order


def _interleave(work: Work, threads: int, seed: int) -> list[Operation]:
    """Merge the calls of several threads at random; one whose chunk has no host memory waits."""
    threads = whole("threads", threads, 0, work.lanes) or work.lanes
    calls: list[list[Operation]] = [[] for _ in range(threads)]
    for chunk, stage in reversed(in_depth(work)):
        calls[chunk % work.lanes % threads].append((chunk, stage))
    source = random.Random(whole("seed", seed, 0, 2**63))
    order, out = list[Operation](), set[int]()
    while any(calls):
        ready = [own for own in calls if own and _fits(own[-1], work.buffers, out)]
        op = source.choice(ready).pop()
        order.append(op)
        out |= {op[0]} if op[1] == "d2h" else set()
    return order


def _fits(op: Operation, buffers: int, out: set[int]) -> bool:
    return op[1] != "h2d" or not buffers or op[0] < buffers or op[0] - buffers in out


#: The orders by name: chunk by chunk; stage by stage over k chunks; several threads whose
#: calls interleave at random; as the operation scheduler would.
_NAMED = {
    "depth": in_depth, "breadth": _in_breadth, "threads": _interleave, "scheduled": _scheduled,
}  # fmt: skip
ORDERS = tuple(_NAMED)
