"""How an input is cut for a GPU whose memory, or whose host's memory, it exceeds.

Source: paper C, section 2: "A job scheduler is employed to manage memory and data-flow.
Input size is no longer bounded by GPU memory and even CPU memory"; the modes are those of
its source (Chen et al. 2013): one round, several rounds beyond the GPU's memory, and the
disk beyond the host's.
"""

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import pandas as pd

from dlsim.cpugpu.given import MOST_COUNT
from dlsim.cpugpu.pipeline import equal_chunks
from dlsim.errors import InputError
from dlsim.given import number, usual, whole

MODES = ("in-core", "out-of-core", "disk")


@dataclass(frozen=True)
class Rates:
    """Times per unit of data, and per operation.

    Parameters
    ----------
    h2d, map, d2h : float
        Time to copy in and map one unit of input, and to copy out one unit of output.
    read, write : float
        The same for the disk.
    setup : float
        Fixed time of every operation (a copy's or a kernel's start).
    """

    h2d: float = 1.0
    map: float = 1.0
    d2h: float = 1.0
    read: float = 0.0
    write: float = 0.0
    setup: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            rate = number(field.name, getattr(self, field.name))
            object.__setattr__(self, field.name, rate)


class Cut(NamedTuple):
    """An input cut into chunks, ready for `dlsim.cpugpu.pipeline.run_chunks`."""

    chunks: pd.DataFrame
    mode: str
    buffers: int
    chunk: float


def cut_input(
    size: float, rates: Rates | None = None, *, gpu_memory: float = math.inf,
    host_memory: float = math.inf, streams: int = 3, gpus: int = 1, output: float = 1.0,
    chunk: float = 0.0,
) -> Cut:  # fmt: skip
    """Cut an input into equal chunks, one buffer per stream, as large as memory allows.

    A chunk of c units takes c (1 + output) units of memory, on the GPU and on the host.

    Parameters
    ----------
    size : float
        Units of input.
    rates : Rates, optional
        Times per unit.
    gpu_memory, host_memory : float
        Units of memory of one GPU and of the host.
    streams, gpus : int
        Chunks on a GPU at once, and number of GPUs; each stream gets a chunk at least.
    output : float
        Units of output per unit of input.
    chunk : float
        Most units in a chunk, 0 for what fits.

    Returns
    -------
    Cut
        Chunks and mode.

    Raises
    ------
    InputError
        For a value that is not allowed, or a chunk that does not fit.

    Examples
    --------
    >>> cut_input(100, gpu_memory=30, host_memory=1000, streams=3, output=1.0).mode
    'out-of-core'
    """
    rates = usual("rates", rates, Rates)
    number("size", size, above=True)
    number("output", output)
    number("chunk", chunk)
    for name, value in (("gpu_memory", gpu_memory), ("host_memory", host_memory)):
        number(name, value, above=True, high=math.inf)
    lanes = whole("streams", streams, 1, MOST_COUNT) * whole("gpus", gpus, 1, MOST_COUNT)
    fits = min(gpu_memory / (streams * (1 + output)), host_memory / (1 + output))
    if chunk > fits:
        raise InputError(
            f"chunk must be at most {fits:g} units, got {chunk:g}: {streams} streams hold one "
            "each on the GPU, and the host holds one; use fewer streams or smaller chunks"
        )
    count = max(lanes, math.ceil(size / min(chunk or fits, fits)))
    part = size / count
    total = size * (1 + output)
    mode = "in-core" if total <= gpu_memory * gpus else "out-of-core"
    mode = "disk" if total > host_memory else mode
    chunks = equal_chunks(count, **_stage_times(part, rates, output, mode))
    buffers = int(host_memory // (part * (1 + output))) if mode == "disk" else 0
    return Cut(chunks, mode, buffers, part)


def _stage_times(part: float, rates: Rates, output: float, mode: str) -> dict[str, float]:
    times = {
        "h2d": rates.setup + part * rates.h2d,
        "map": rates.setup + part * rates.map,
        "d2h": rates.setup + part * output * rates.d2h,
    }
    if mode != "disk":
        return times
    if rates.read <= 0:
        raise InputError(
            "rates.read must be positive, got 0: the input exceeds the host's memory, so it "
            "comes from the disk"
        )
    return times | {
        "read": rates.setup + part * rates.read,
        "write": rates.setup + part * output * rates.write,
    }
