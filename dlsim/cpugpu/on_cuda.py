"""Kernels on a CUDA device, compiled by numba; imported only where it is asked for.

The simulator of numba (``NUMBA_ENABLE_CUDASIM=1``) runs the same code without a device.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import cuda

from dlsim.cpugpu.kernels import Kernel, Problem

#: Threads of a block.
BLOCK = 128


@functools.cache
def _compiled(element: Callable[..., Any]) -> Any:
    inner = cuda.jit(device=True)(element)

    def grid(out, a, b, x, y):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < out.size:
            out[i] = inner(i, a, b, x, y)

    return cuda.jit(grid)


def run(kernel: Kernel, p: Problem) -> tuple[Any, float, float]:
    """Run a kernel on the current CUDA device; seconds and transfer as of `backends.Run`."""
    grid = _compiled(kernel.element)
    begun = time.perf_counter()
    a, b = cuda.to_device(p.a), cuda.to_device(p.b)
    out = cuda.device_array(p.n, np.float32)
    cuda.synchronize()
    sent = time.perf_counter()
    grid[(p.n + BLOCK - 1) // BLOCK, BLOCK](out, a, b, p.x, p.y)
    cuda.synchronize()
    done = time.perf_counter()
    result = out.copy_to_host()
    end = time.perf_counter()
    return result, end - begun, sent - begun + end - done


@functools.cache
def describe() -> str:
    """Say which device there is, once it has run a kernel of one element."""
    if not cuda.is_available():
        return ""
    _try_one()
    if numba.config.ENABLE_CUDASIM:
        return "numba's simulator"
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def _try_one() -> None:
    """Compile and run a kernel: a toolkit that the driver does not know fails only here."""

    def one(out):  # type: ignore[no-untyped-def]
        out[0] = 1.0

    there = cuda.device_array(1, np.float32)
    cuda.jit(one)[1, 1](there)
    cuda.synchronize()
    if there.copy_to_host()[0] != 1.0:
        raise RuntimeError("a kernel of one element gave another result")
