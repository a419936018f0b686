"""What came of a pipeline: its operations, what they hid, and whether they are valid."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dlsim.cpugpu.given import hold, not_after, together

if TYPE_CHECKING:
    from dlsim.cpugpu.operations import Gpu, Operation

_COPIES = ("h2d", "d2h")


@dataclass(frozen=True, eq=False)
class Timeline:
    """The operations of a pipeline, in the order in which they started.

    Parameters
    ----------
    ops : DataFrame
        Columns chunk (position in the table given), stage, gpu, stream, engine, start, end.
    gpu : Gpu
        Each GPU.
    gpus, buffers : int
        Number of GPUs, and of chunks that fit in host memory (0: any).
    chunks : DataFrame
        The times given.
    issue : list of (chunk, stage)
        Order of the in-order queues; empty under Hyper-Q.
    """

    ops: pd.DataFrame
    gpu: "Gpu"
    gpus: int
    buffers: int
    chunks: pd.DataFrame
    issue: "list[Operation]" = field(default_factory=list)

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

    def check(self) -> None:
        """Check the operations against the model, independently of the engine.

        Raises
        ------
        ScheduleError
            Naming the first rule that does not hold and an operation that breaks it.
        """
        ops = self.ops.assign(
            start=self.ops["start"].astype(float), end=self.ops["end"].astype(float)
        )
        self._check_chunks(ops)
        self._check_engines(ops)
        self._check_order(ops)
        self._check_prompt(ops)

    def _grid(self, ops: pd.DataFrame, column: str) -> pd.DataFrame:
        """Return chunk by stage, in the order of the stages."""
        stages = [s for s in ("read", "h2d", "map", "d2h", "write") if s in self.chunks.columns]
        return ops.pivot(index="chunk", columns="stage", values=column)[stages]

    def _check_chunks(self, ops: pd.DataFrame) -> None:
        names = _names(ops)
        wanted = len(self.chunks) * len([s for s in self.chunks.columns if s in set(ops["stage"])])
        once = ~ops.duplicated(["chunk", "stage"]).to_numpy()
        hold("a chunk passes every stage once", once, names)
        hold("no operation is left out", len(ops) == wanted)
        hold("chunk i is on GPU i mod m", ops["gpu"] == ops["chunk"] % self.gpus, names)
        stream = ops["chunk"] // self.gpus % self.gpu.streams
        hold("chunks take the streams in turn", ops["stream"] == stream, names)
        start, end = self._grid(ops, "start"), self._grid(ops, "end")
        given = self.chunks[start.columns].to_numpy(dtype=float)
        hold("nothing starts before 0", start.to_numpy().min(axis=1) >= 0, list(start.index))
        took = together(start + given, end).all(axis=1)
        hold("an operation takes the time given", took, list(start.index))
        staged = not_after(end.iloc[:, :-1], start.iloc[:, 1:]).all(axis=1)
        hold("a chunk's stages follow one another", staged, list(start.index))
        for distance, last, first in self._distances(list(start.columns)):
            free = not_after(end[last].to_numpy()[:-distance], start[first].to_numpy()[distance:])
            rule = f"{first} of a chunk waits for {last} of the chunk {distance} before"
            hold(rule, free, list(start.index[distance:]))

    def _distances(self, stages: list[str]) -> list[tuple[int, str, str]]:
        """Which earlier chunk must be out of the way: by stream, by host buffer."""
        found = [(self.gpu.streams * self.gpus, "d2h", "h2d")]
        if self.buffers:
            found.append((self.buffers, stages[-1], stages[0]))
        return [row for row in found if row[0] < len(self.chunks)]

    def _check_engines(self, ops: pd.DataFrame) -> None:
        """Nothing overlaps on a disk, a kernel engine, a copy engine, or behind pageable memory."""
        copies = ops["stage"].isin(_COPIES)
        disk = ops["stage"].isin(("read", "write"))
        alone = {
            "the disk serves one chunk at a time": (ops[disk], []),
            "a GPU computes one chunk at a time": (ops[ops["stage"] == "map"], ["gpu"]),
            "a direction carries one copy at a time": (ops[copies], ["gpu", "stage"]),
        }
        if self.gpu.copy_engines == 1:
            alone["one copy engine carries one copy at a time"] = (ops[copies], ["gpu"])
        if not self.gpu.pinned:
            alone["pageable copies overlap with nothing on the GPU"] = (ops[~disk], ["gpu"])
        for rule, (rows, by) in alone.items():
            for _, group in rows.groupby(by) if by else [((), rows)]:
                line = group.sort_values(["start", "end"])
                ends, starts = line["end"].to_numpy()[:-1], line["start"].to_numpy()[1:]
                hold(rule, not_after(ends, starts), _names(line)[1:])

    def _check_order(self, ops: pd.DataFrame) -> None:
        """In-order queues start their operations in the order of issue."""
        if self.gpu.queues == "hyper-q":
            return
        place = {operation: i for i, operation in enumerate(self.issue)}
        mine = ops[ops["stage"].isin(("h2d", "map", "d2h"))]
        mine = mine.assign(place=[place[pair] for pair in _names(mine)]).sort_values("place")
        by = "engine" if self.gpu.queues == "per-engine" else "gpu"
        for _, line in mine.groupby(by):
            starts = line["start"].to_numpy()
            hold("a queue is served in order", not_after(starts[:-1], starts[1:]), _names(line)[1:])

    def _check_prompt(self, ops: pd.DataFrame) -> None:
        """No operation starts later than the last thing that it waits for."""
        start, end = self._grid(ops, "start"), self._grid(ops, "end")
        due = end.shift(axis=1).fillna(0.0)
        for distance, last, first in self._distances(list(start.columns)):
            due[first] = np.fmax(due[first], end[last].shift(distance, fill_value=0.0))
        flat = due.stack()
        waits = flat.loc[pd.MultiIndex.from_frame(ops[["chunk", "stage"]])].to_numpy()
        waits = np.fmax(waits, ops.groupby("engine", sort=False)["end"].shift(fill_value=0.0))
        if self.gpu.queues == "single":
            queued = ops["stage"].isin(("h2d", "map", "d2h"))
            before = ops[queued].groupby("gpu")["start"].shift(fill_value=0.0)
            waits = np.fmax(waits, before.reindex(ops.index, fill_value=0.0))
        prompt = not_after(ops["start"], waits)
        hold("nothing idles that could work", prompt, _names(ops))


def _names(ops: pd.DataFrame) -> "list[Operation]":
    return list(zip(ops["chunk"].tolist(), ops["stage"].tolist(), strict=True))


def _spans(ops: pd.DataFrame) -> "np.ndarray[Any, Any]":
    return ops[["start", "end"]].to_numpy(dtype=float)
