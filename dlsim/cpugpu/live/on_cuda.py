"""Kernels on a CUDA device, compiled by numba; imported only where it is asked for.

The simulator of numba (``NUMBA_ENABLE_CUDASIM=1``) runs the same code without a device; it
looks for `cuda` among the names of this module.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda

from dlsim.cpugpu.live.kernels import Kernel, Problem

#: Threads of a block.
BLOCK = 128


@functools.cache
def _compiled(element: Callable[..., Any]) -> Any:
    inner = cuda.jit(device=True)(element)

    def grid(first, out, a, b, x, y):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < out.size:
            out[i] = inner(first + i, a, b, x, y)

    return cuda.jit(grid)


def run(
    kernel: Kernel, p: Problem, part: tuple[int, int], index: int
) -> tuple[Any, float, float, float]:
    """Run a part of a kernel on a CUDA device; what `devices.Run` holds."""
    cuda.select_device(index)
    grid, count = _compiled(kernel.element), part[1] - part[0]
    known = len(getattr(grid, "overloads", ()))  # the simulator compiles nothing
    begun = time.perf_counter()
    a, b = cuda.to_device(p.a), cuda.to_device(p.b)
    out = cuda.device_array(count, np.float32)
    cuda.synchronize()
    sent = time.perf_counter()
    grid[-(-count // BLOCK), BLOCK](part[0], out, a, b, p.x, p.y)
    cuda.synchronize()
    done = time.perf_counter()
    result = out.copy_to_host()
    end = time.perf_counter()
    compiled = done - sent if len(getattr(grid, "overloads", ())) > known else 0.0
    return result, end - begun, sent - begun + end - done, compiled


def models(index: int) -> list[str]:
    """Name every CUDA device, once this one has run a kernel of one element."""

    def one(out):  # type: ignore[no-untyped-def]
        out[0] = 1.0

    names = ["numba's simulator, no GPU"]
    if not numba.config.ENABLE_CUDASIM:
        found = [device.name for device in cuda.gpus] if cuda.is_available() else []
        names = [name.decode() if isinstance(name, bytes) else str(name) for name in found]
    if index >= len(names):
        raise RuntimeError("no CUDA device, or no CUDA toolkit that numba finds")
    cuda.select_device(index)
    there = cuda.device_array(1, np.float32)
    cuda.jit(one)[1, 1](there)  # a toolkit that the driver does not know fails only here
    cuda.synchronize()
    if there.copy_to_host()[0] != 1.0:
        raise RuntimeError("a kernel of one element gave another result")
    return names
