"""What came of a pipeline: its operations, what they hid, and whether they are valid."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.cpugpu.given import hold, near
from dlsim.cpugpu.gpu import COPIES, STAGES, Gpu

_DISK = ("read", "write")

#: A stage of a chunk.
Operation = tuple[int, str]
Rule = tuple[str, list[bool]]


class Op(NamedTuple):
    """A row of `Timeline.ops`."""

    chunk: int
    stage: str
    gpu: int
    stream: int
    engine: str
    start: Any
    end: Any


def link_of(gpu: int, per_link: int, stage: str) -> str:
    """Name the direction of a shared link that carries a GPU's copies."""
    return f"link{gpu // per_link}.{stage}"


@dataclass(frozen=True, eq=False)
class Timeline:
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

    @property
    def busy(self) -> pd.Series:
        """Return the busy time of every engine and shared link, as a share of the makespan."""
        total = self._loads((self.ops["end"] - self.ops["start"]).astype(float))
        return (total / float(self.makespan)).fillna(0.0).rename("busy")

    @property
    def lower_bound(self) -> Any:
        """Return what no order can beat: the fullest engine or link, the longest chunk."""
        spans = self.ops["end"] - self.ops["start"]
        return max(self._loads(spans).max(), spans.groupby(self.ops["chunk"]).sum().max())

    def _loads(self, spans: pd.Series) -> pd.Series:
        loads = spans.groupby(self.ops["engine"]).sum()
        if self.per_link == 1:
            return loads
        copies = self.ops[self.ops["stage"].isin(COPIES)]
        pairs = zip(copies["gpu"], copies["stage"], strict=True)
        links = [link_of(gpu, self.per_link, stage) for gpu, stage in pairs]
        return pd.concat([loads, spans[copies.index].groupby(links).sum()])

    @property
    def hidden(self) -> float:
        """Return the share of copy time during which the same GPU computes (NaN: no copies)."""
        shared = total = 0.0
        for _, ops in self.ops.groupby("gpu"):
            kernels, copies = (
                ops.loc[ops["stage"].isin(some), ["start", "end"]].to_numpy(dtype=float)
                for some in (("map",), COPIES)
            )
            first = np.searchsorted(kernels[:, 1], copies[:, 0], "right")
            last = np.searchsorted(kernels[:, 0], copies[:, 1])
            for (begin, end), i, j in zip(copies.tolist(), first, last, strict=True):
                inside = np.minimum(kernels[i:j, 1], end) - np.maximum(kernels[i:j, 0], begin)
                shared += np.maximum(inside, 0.0).sum()
                total += end - begin
        return float(shared / total) if total else float("nan")

    @functools.cached_property
    def _span(self) -> Any:
        """The scale at which two instants are one: the shortest time."""
        stages = [stage for stage in STAGES if stage in self.chunks.columns]
        return min((t for stage in stages for t in self.chunks[stage] if t > 0), default=0)

    def check(self) -> None:
        """Check the operations against the model, independently of the engine."""
        ops = [Op(*row) for row in zip(*(self.ops[c].tolist() for c in Op._fields), strict=True)]
        names = [(op.chunk, op.stage) for op in ops]
        for rule, good in self._rules(ops):
            hold(rule, good, names if len(good) == len(ops) else None)

    def _rules(self, ops: list[Op]) -> Iterator[Rule]:
        stages = [stage for stage in STAGES if stage in self.chunks.columns]
        wanted = {(chunk, stage) for chunk in range(len(self.chunks)) for stage in stages}
        at = {(op.chunk, op.stage): op for op in ops}
        yield "every chunk passes every stage once", [at.keys() == wanted and len(at) == len(ops)]
        times = {stage: self.chunks[stage].tolist() for stage in stages}
        took = [near(op.start + times[op.stage][op.chunk], op.end, self._span) for op in ops]
        yield "an operation takes the time given", took
        yield "nothing starts before 0", [op.start >= 0 for op in ops]
        yield "chunk i is on GPU i mod m", [op.gpu == op.chunk % self.gpus for op in ops]
        turn = [op.stream == op.chunk // self.gpus % self.gpu.streams for op in ops]
        yield "chunks take the streams in turn", turn
        waits = [dict(self._waits(op, stages)) for op in ops]
        for rule in dict.fromkeys(rule for found in waits for rule in found):
            yield (
                rule,
                [
                    rule not in found or self._by(at[found[rule]].end, op.start)
                    for op, found in zip(ops, waits, strict=True)
                ],
            )
        yield from self._alone(ops)
        if self.gpu.queues != "hyper-q":
            yield "an in-order queue is served in order", self._in_order(at)
        yield "nothing idles that could work", self._prompt(ops, waits, at)

    def _waits(self, op: Op, stages: list[str]) -> Iterator[tuple[str, Operation]]:
        """Which operations must be over before one may start, and why."""
        position = stages.index(op.stage)
        if position:
            yield "a chunk's stages follow one another", (op.chunk, stages[position - 1])
        before = op.chunk - self.gpu.streams * self.gpus
        if op.stage == "h2d" and before >= 0:
            yield "a stream holds one chunk at a time", (before, "d2h")
        before = op.chunk - self.buffers
        if self.buffers and not position and before >= 0:
            yield "a host buffer holds one chunk at a time", (before, stages[-1])

    def _alone(self, ops: list[Op]) -> Iterator[Rule]:
        """What cannot overlap on the disk, on a GPU and on a link."""
        disk = [op for op in ops if op.stage in _DISK]
        kernels = [op for op in ops if op.stage == "map"]
        copies = [op for op in ops if op.stage in COPIES]
        yield "the disk serves one chunk at a time", self._apart(disk, lambda op: "disk")
        yield "a GPU computes one chunk at a time", self._apart(kernels, lambda op: op.gpu)
        rule = "a direction carries one copy at a time"
        yield rule, self._apart(copies, lambda op: (op.gpu, op.stage))
        if self.gpu.copy_engines == 1:
            rule = "one copy engine carries one copy at a time"
            yield rule, self._apart(copies, lambda op: op.gpu)
        if not self.gpu.pinned:
            rule = "pageable copies overlap with nothing on the GPU"
            yield rule, self._apart([*copies, *kernels], lambda op: op.gpu)
        rule = "a link carries one copy a direction at a time"
        yield rule, self._apart(copies, lambda op: (op.gpu // self.per_link, op.stage))

    def _in_order(self, at: dict[Operation, Op]) -> list[bool]:
        last: dict[Any, Any] = {}
        good = []
        for key in self.issue:
            op = at[key]
            lane = op.engine if self.gpu.queues == "per-engine" else op.gpu
            good.append(self._by(last.get(lane, 0), op.start))
            last[lane] = op.start
        return good

    def _prompt(
        self, ops: list[Op], waits: list[dict[str, Operation]], at: dict[Operation, Op]
    ) -> list[bool]:
        """Tell whether operations start as soon as what they wait for is over."""
        free: dict[str, Any] = {}
        queued: dict[int, Any] = {}
        good = []
        for op, found in zip(ops, waits, strict=True):
            held = [op.engine]
            if op.stage in COPIES:
                held.append(link_of(op.gpu, self.per_link, op.stage))
            due = max([free.get(one, 0) for one in held] + [at[key].end for key in found.values()])
            if self.gpu.queues == "single" and op.stage not in _DISK:
                due = max(due, queued.get(op.gpu, 0))
                queued[op.gpu] = op.start
            free.update(dict.fromkeys(held, op.end))
            good.append(self._by(op.start, due))
        return good

    def _apart(self, ops: list[Op], group: Callable[[Op], Any]) -> list[bool]:
        """Tell whether the operations of each group follow one another."""
        last: dict[Any, Any] = {}
        good = []
        for op in sorted(ops, key=lambda op: (op.start, op.end)):
            key = group(op)
            good.append(self._by(last.get(key, 0), op.start))
            last[key] = max(op.end, last.get(key, 0))
        return good

    def _by(self, a: Any, b: Any) -> bool:
        return bool(a <= b or near(a, b, self._span))
