"""What came of a pipeline: its operations, what they hid, and whether they are valid."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.cpugpu.given import hold, near
from dlsim.cpugpu.operations import STAGES, Gpu, Operation

_COPIES = ("h2d", "d2h")
_DISK = ("read", "write")

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


@dataclass(frozen=True, eq=False)
class Timeline:
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

    @property
    def busy(self) -> pd.Series:
        """Return the busy time of every engine, as a share of the makespan."""
        spans = (self.ops["end"] - self.ops["start"]).astype(float)
        total = spans.groupby(self.ops["engine"]).sum()
        return (total / float(self.makespan)).fillna(0.0).rename("busy")

    @property
    def lower_bound(self) -> Any:
        """Return what no order can beat: the fullest engine, the longest chunk."""
        spans = self.ops["end"] - self.ops["start"]
        return max(
            spans.groupby(self.ops["engine"]).sum().max(),
            spans.groupby(self.ops["chunk"]).sum().max(),
        )

    @property
    def hidden(self) -> float:
        """Return the share of copy time during which the same GPU computes (NaN: no copies)."""
        shared = total = 0.0
        for _, ops in self.ops.groupby("gpu"):
            kernels = _spans(ops[ops["stage"] == "map"])
            for begin, end in _spans(ops[ops["stage"].isin(_COPIES)]):
                inside = np.minimum(kernels[:, 1], end) - np.maximum(kernels[:, 0], begin)
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
        waits = [list(self._waits(op, stages)) for op in ops]
        for rule in dict.fromkeys(rule for found in waits for rule, _ in found):
            keys = [[key for name, key in found if name == rule] for found in waits]
            over = [
                all(_by(at[key].end, op.start, self._span) for key in mine)
                for op, mine in zip(ops, keys, strict=True)
            ]
            yield rule, over
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
        """What cannot overlap on the disk and on a GPU."""
        disk = [op for op in ops if op.stage in _DISK]
        kernels = [op for op in ops if op.stage == "map"]
        copies = [op for op in ops if op.stage in _COPIES]
        yield "the disk serves one chunk at a time", _apart(disk, lambda op: "disk", self._span)
        yield "a GPU computes one chunk at a time", _apart(kernels, lambda op: op.gpu, self._span)
        rule = "a direction carries one copy at a time"
        yield rule, _apart(copies, lambda op: (op.gpu, op.stage), self._span)
        if self.gpu.copy_engines == 1:
            yield (
                "one copy engine carries one copy at a time",
                _apart(copies, lambda op: op.gpu, self._span),
            )
        if not self.gpu.pinned:
            rule = "pageable copies overlap with nothing on the GPU"
            yield rule, _apart([*copies, *kernels], lambda op: op.gpu, self._span)

    def _in_order(self, at: dict[Operation, Op]) -> list[bool]:
        last: dict[Any, Any] = {}
        good = []
        for key in self.issue:
            op = at[key]
            lane = op.engine if self.gpu.queues == "per-engine" else op.gpu
            good.append(_by(last.get(lane, 0), op.start, self._span))
            last[lane] = op.start
        return good

    def _prompt(self, ops: list[Op], waits: list[Any], at: dict[Operation, Op]) -> list[bool]:
        """Tell whether operations start as soon as what they wait for is over."""
        free: dict[str, Any] = {}
        queued: dict[int, Any] = {}
        good = []
        for op, found in zip(ops, waits, strict=True):
            due = max([free.get(op.engine, 0), *(at[key].end for _, key in found)])
            if self.gpu.queues == "single" and op.stage not in _DISK:
                due = max(due, queued.get(op.gpu, 0))
                queued[op.gpu] = op.start
            free[op.engine] = op.end
            good.append(_by(op.start, due, self._span))
        return good


def _apart(ops: list[Op], group: Callable[[Op], Any], span: Any) -> list[bool]:
    """Tell whether the operations of each group follow one another."""
    last: dict[Any, Any] = {}
    good = []
    for op in sorted(ops, key=lambda op: (op.start, op.end)):
        key = group(op)
        good.append(_by(last.get(key, 0), op.start, span))
        last[key] = max(op.end, last.get(key, 0))
    return good


def _by(a: Any, b: Any, span: Any) -> bool:
    return bool(a <= b or near(a, b, span))


def _spans(ops: pd.DataFrame) -> "np.ndarray[Any, Any]":
    return ops[["start", "end"]].to_numpy(dtype=float)
