"""What came of a pipeline: its operations, what they hid, and whether they are valid."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dlsim.cpugpu.given import apart, before, hold, together
from dlsim.cpugpu.gpu import COPIES, ON_GPU, STAGES, Gpu
from dlsim.rounding import not_after

#: A stage of a chunk.
Operation = tuple[int, str]


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

    def check(self) -> None:
        """Check the operations against the model, independently of the engine."""
        ops, gpu = self.ops, self.gpu
        stages = [stage for stage in STAGES if stage in self.chunks.columns]
        count, times = len(stages), self.chunks[stages].to_numpy(dtype=float)
        span = times.min(initial=np.inf, where=times > 0)
        span = span if span < np.inf else 0.0
        chunk, on, names = ops["chunk"].to_numpy(), ops["gpu"].to_numpy(), ops["stage"].tolist()
        start, end = (ops[name].to_numpy(dtype=float) for name in ("start", "end"))
        place = np.array([stages.index(name) if name in stages else -1 for name in names])
        number = chunk * count + place
        passed = np.array_equal(np.sort(number), np.arange(times.size))
        hold("every chunk passes every stage once", passed)
        who, row = list(zip(chunk.tolist(), names, strict=True)), np.argsort(number)
        took = together(start + times.ravel()[number], end, span)
        hold("an operation takes the time given", took, who)
        hold("nothing starts before 0", start >= 0, who)
        hold("chunk i is on GPU i mod m", on == chunk % self.gpus, who)
        turn = chunk // self.gpus % gpu.streams
        hold("chunks take the streams in turn", ops["stream"] == turn, who)

        lanes, loaded, out = gpu.streams * self.gpus, *map(stages.index, COPIES)
        is_full = (place == 0) & (chunk >= self.buffers) & (self.buffers > 0)
        due = np.zeros(len(ops))
        for rule, waits, awaited in (
            ("a chunk's stages follow one another", place > 0, number - 1),
            ("a stream holds one chunk at a time", (place == loaded) & (chunk >= lanes),
             (chunk - lanes) * count + out),
            ("a host buffer holds one chunk at a time", is_full,
             (chunk - self.buffers + 1) * count - 1),
        ):  # fmt: skip
            over = np.where(waits, end[row[np.where(waits, awaited, 0)]], 0.0)
            hold(rule, not_after(over, start, span), who)
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
            hold(rule, apart(lane[some], start[some], end[some], span))
        if gpu.queues != "hyper-q":
            issued = row[[c * count + stages.index(stage) for c, stage in self.issue]]
            lane = engine if gpu.queues == "per-engine" else on
            in_order = not_after(before(lane[issued], start[issued], 0.0), start[issued], span)
            hold("an in-order queue is served in order", in_order, self.issue)
        is_single = on_gpu & (gpu.queues == "single")
        for some, lane, until in (
            (on >= 0, engine, end),
            (copies, link, end),
            (is_single, on, start),
        ):
            due[some] = np.maximum(due[some], before(lane[some], until[some], 0.0))
        hold("nothing idles that could work", not_after(start, due, span), who)
