"""A GPU as copies and kernels see it, and how an input is cut for its memory.

Sources: paper C, section 3 (DMA engines, pinned memory) and its contributions in section 2: two
copy directions and Hyper-Q on Kepler, one queue on Fermi; "A job scheduler is employed to
manage memory and data-flow. Input size is no longer bounded by GPU memory and even CPU memory".
The modes are those of its source, Y. Chen, Z. Qiao, S. Davis, H. Jiang, K.-C. Li, "Pipelined
Multi-GPU MapReduce for Big-Data Processing" (2013): one round, several rounds beyond the GPU's
memory, and the disk beyond the host's.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import pandas as pd

from dlsim.compiled import TOL
from dlsim.cpugpu.model import MOST_COUNT
from dlsim.errors import InputError
from dlsim.reading import switch
from dlsim.validate import flag, number, one_of, or_default, whole

#: What a chunk passes through; read and write are the disk's, where the table has them.
STAGES = ("read", "h2d", "map", "d2h", "write")
ON_GPU, COPIES = ("h2d", "map", "d2h"), ("h2d", "d2h")

#: Most chunks of a table.
MOST_CHUNKS = 10**6


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
        An engine serves any operation that is ready (Kepler's Hyper-Q), or operations start in
        the order of issue, within each engine (Fermi) or over all of them.
    first : {"d2h", "h2d", "chunk"}
        Under Hyper-Q, what an engine serves first: copies out, copies in, or the earlier
        chunk whatever the direction.
    pinned : bool
        Copies from pageable memory (False) overlap with nothing on the GPU.
    """

    streams: int = 3
    copy_engines: int = 2
    queues: str = switch(
        ("hyper-q", "per-engine", "single"),
        label="operations start: when an engine is free, in order by engine, or in one order",
        reads=("gpu.pipeline:Work.servers", "gpu.pipeline:issue_order"),
    )
    first: str = switch(
        ("d2h", "h2d", "chunk"),
        label="a free engine serves first: copies out, copies in, or the earlier chunk",
        reads="gpu.pipeline:OperationRun.rank_operations",
    )
    pinned: bool = True

    def __post_init__(self) -> None:
        vars(self).update(
            streams=whole("streams", self.streams, 1, MOST_COUNT),
            copy_engines=whole("copy_engines", self.copy_engines, 1, 2),
        )
        for one in fields(self):
            if one.metadata:
                one_of(one.name, getattr(self, one.name), one.metadata["options"])
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


def equal_chunks(count: int, h2d: Any, map: Any, d2h: Any, **disk: Any) -> pd.DataFrame:  # noqa: A002
    """Return a table of equal chunks by the times of their stages; read and write with a disk."""
    times = {"h2d": h2d, "map": map, "d2h": d2h, **disk}
    for name, value in times.items():
        one_of("stage", name, STAGES)
        number(name, value)
    rows = pd.RangeIndex(whole("count", count, 1, MOST_CHUNKS), name="chunk")
    equal = {stage: [times[stage]] * len(rows) for stage in STAGES if stage in times}
    return pd.DataFrame(equal, index=rows)


@dataclass(frozen=True)
class Rates:
    """Times per unit of data, and per operation; and how much output there is.

    Parameters
    ----------
    h2d, map, d2h : float
        Time to copy in and map one unit of input, and to copy out one unit of output.
    read, write : float
        The same for the disk.
    setup : float
        Fixed time of every operation (a copy's or a kernel's start).
    output : float
        Units of output per unit of input.
    """

    h2d: float = 1.0
    map: float = 1.0
    d2h: float = 1.0
    read: float = 0.0
    write: float = 0.0
    setup: float = 0.0
    output: float = 1.0

    def __post_init__(self) -> None:
        vars(self).update({name: number(name, rate) for name, rate in vars(self).items()})


class Chunking(NamedTuple):
    """The chunks of an input, ready for `dlsim.cpugpu.run_chunks`."""

    chunks: pd.DataFrame
    mode: str
    buffers: int
    chunk: float


def chunk_input(
    size: float,
    rates: Rates | None = None,
    *,
    gpu_memory: float = math.inf,
    host_memory: float = math.inf,
    streams: int = 3,
    gpus: int = 1,
    chunk: float = 0.0,
) -> Chunking:
    """Cut an input into equal chunks, one buffer per stream, as large as memory allows.

    A chunk of c units takes c (1 + `Rates.output`) units of memory, on the GPU and on the host.

    Parameters
    ----------
    size : float
        Units of input.
    rates : Rates, optional
        Times per unit, and units of output.
    gpu_memory, host_memory : float
        Units of memory of one GPU and of the host.
    streams, gpus : int
        Chunks on a GPU at once, and number of GPUs; each stream gets a chunk at least.
    chunk : float
        Most units in a chunk, 0 for what fits.

    Returns
    -------
    Chunking
        Chunks and mode.

    Raises
    ------
    InputError
        For a value that is not allowed, or a chunk that does not fit.

    Examples
    --------
    >>> chunk_input(100, gpu_memory=30, host_memory=1000, streams=3).mode
    'out-of-core'
    """
    rates = or_default("rates", rates, Rates)
    output = rates.output
    number("size", size, above=True)
    number("chunk", chunk)
    for name, value in (("gpu_memory", gpu_memory), ("host_memory", host_memory)):
        number(name, value, above=True, high=math.inf)
    stream_slots = whole("streams", streams, 1, MOST_COUNT) * whole("gpus", gpus, 1, MOST_COUNT)
    fits = min(gpu_memory / (streams * (1 + output)), host_memory / (1 + output))
    if chunk > fits * (1 + TOL):
        raise InputError(
            f"chunk must be at most {fits:g} units, got {chunk:g}: {streams} streams hold one "
            "each on the GPU, and the host holds one; use fewer streams or smaller chunks"
        )
    most = chunk or fits
    count = max(stream_slots, math.ceil(size / most * (1 - TOL)))
    if count > MOST_CHUNKS:
        raise InputError(
            f"size must make at most {MOST_CHUNKS} chunks, got {size!r} in parts of at most "
            f"{most:g}; use larger chunks, or fewer streams and GPUs"
        )
    part = size / count
    total = size * (1 + output)
    is_in_core = total <= gpu_memory * gpus * (1 + TOL)
    mode, buffers = "in-core" if is_in_core else "out-of-core", 0
    units = {"h2d": part, "map": part, "d2h": part * output}
    if total > host_memory * (1 + TOL):
        # One fits, whatever rounding says: 0 would be any number.
        mode, buffers = "disk", max(1, int(host_memory / (part * (1 + output)) * (1 + TOL)))
        units |= {"read": part, "write": part * output}
        if rates.read <= 0:
            raise InputError(
                "rates.read must be positive, got 0: the input exceeds the host's memory, so it "
                "comes from the disk"
            )
    times = {stage: rates.setup + units[stage] * getattr(rates, stage) for stage in units}
    return Chunking(equal_chunks(count, **times), mode, buffers, part)
