"""Where a kernel can run: NumPy, numba on one thread or all, OpenCL, CUDA.

Nothing is imported before it is asked for. A back end that cannot run here says why.
"""

import functools
import itertools
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.cpugpu.kernels import Kernel, Problem, signature
from dlsim.errors import InputError
from dlsim.given import extra


class Run(NamedTuple):
    """One run of a kernel on a device."""

    result: NDArray[Any]
    seconds: float
    transfer: float


class Outcome(NamedTuple):
    """What a worker reports of a run."""

    seconds: float
    transfer: float
    signature: list[float]


def _numpy(kernel: Kernel, p: Problem) -> Run:
    begun = time.perf_counter()
    result = np.asarray(kernel.vectorised(p), dtype=np.float32)
    return Run(result, time.perf_counter() - begun, 0.0)


@functools.cache
def _loop(element: Callable[..., Any]) -> Callable[..., None]:
    """Compile a loop over elements; it lets other threads run."""
    import numba

    inner = numba.njit(nogil=True, error_model="numpy")(element)

    def loop(first, last, out, a, b, x, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            out[i] = inner(i, a, b, x, y)

    return numba.njit(nogil=True, error_model="numpy")(loop)


def _numba(kernel: Kernel, p: Problem) -> Run:
    begun, out = time.perf_counter(), np.empty(p.n, np.float32)
    _loop(kernel.element)(0, p.n, out, p.a, p.b, p.x, p.y)
    return Run(out, time.perf_counter() - begun, 0.0)


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, "dlsim-kernel")


def _threads(kernel: Kernel, p: Problem) -> Run:
    begun, out = time.perf_counter(), np.empty(p.n, np.float32)
    cuts = np.linspace(0, p.n, 4 * (os.cpu_count() or 1) + 1).astype(int).tolist()
    loop = _loop(kernel.element)
    parts = [
        _pool().submit(loop, first, last, out, p.a, p.b, p.x, p.y)
        for first, last in itertools.pairwise(cuts)
    ]
    for part in parts:
        part.result()
    return Run(out, time.perf_counter() - begun, 0.0)


def _cuda(kernel: Kernel, p: Problem) -> Run:
    from dlsim.cpugpu import on_cuda

    return Run(*on_cuda.run(kernel, p))


#: A kernel in OpenCL C around the body of an element function.
OPENCL = """
float element(int i, __global const {kind} *a, __global const {kind} *b, float x, float y) {{
{body}
}}
__kernel void run(int n, __global float *out, __global const {kind} *a,
                  __global const {kind} *b, float x, float y) {{
    int i = get_global_id(0);
    if (i < n) out[i] = element(i, a, b, x, y);
}}
"""


def opencl_source(kernel: Kernel, p: Problem) -> str:
    """Return the OpenCL C program of a kernel."""
    kind = "uchar" if p.a.dtype == np.uint8 else "float"
    return OPENCL.format(kind=kind, body=kernel.source)


def _opencl_devices() -> list[Any]:
    """Return the OpenCL devices of every platform, GPUs first."""
    cl = extra("OpenCL", "opencl", "pyopencl")
    try:
        found = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise InputError(
            f"no OpenCL platform ({error}): install a driver, or pip install 'dlsim[opencl]', "
            "which brings PoCL"
        ) from error
    if not found:
        raise InputError("OpenCL has a platform and no device: install a driver")
    return sorted(found, key=lambda device: not device.type & cl.device_type.GPU)


@functools.cache
def _opencl_queue() -> Any:
    """Return a queue on the first device that builds a kernel; refuse one that does not."""
    import pyopencl as cl

    device = _opencl_devices()[0]
    queue = cl.CommandQueue(cl.Context([device]))
    try:
        cl.Program(queue.context, "__kernel void f(__global float *o) { o[0] = 1; }").build()
    except cl.Error as error:
        reason = [line for line in str(error).splitlines() if line.startswith("error")]
        raise InputError(
            f"OpenCL device {device.name.strip()!r} cannot build kernels "
            f"({reason[0] if reason else str(error)[:200]}); PoCL as installed by pip does not "
            "know every processor: install another driver, or use --gpu threads"
        ) from error
    return queue


@functools.cache
def _opencl_program(source: str) -> Any:
    import pyopencl as cl

    return cl.Kernel(cl.Program(_opencl_queue().context, source).build(), "run")


def _opencl(kernel: Kernel, p: Problem) -> Run:
    import pyopencl as cl

    queue, run = _opencl_queue(), _opencl_program(opencl_source(kernel, p))
    begun, flags, out = time.perf_counter(), cl.mem_flags, np.empty(p.n, np.float32)
    a, b = (
        cl.Buffer(queue.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array)
        for array in (p.a, p.b)
    )
    there = cl.Buffer(queue.context, flags.WRITE_ONLY, out.nbytes)
    queue.finish()
    sent = time.perf_counter()
    run(queue, (p.n,), None, np.int32(p.n), there, a, b, np.float32(p.x), np.float32(p.y))
    queue.finish()
    done = time.perf_counter()
    cl.enqueue_copy(queue, out, there)
    queue.finish()
    end = time.perf_counter()
    return Run(out, end - begun, sent - begun + end - done)


#: How each back end runs a kernel.
BACKENDS: dict[str, Callable[[Kernel, Problem], Run]] = {
    "numpy": _numpy, "numba": _numba, "threads": _threads, "opencl": _opencl, "cuda": _cuda,
}  # fmt: skip


def describe(backend: str) -> str:
    """Say what a back end runs on; refuse one that cannot run here."""
    if backend not in BACKENDS:
        raise InputError(f"unknown device {backend!r}; known: {', '.join(BACKENDS)}")
    if backend == "cuda":
        return _describe_cuda()
    if backend == "opencl":
        device = _opencl_devices()[0]
        _opencl_queue()
        return f"OpenCL on {device.name.strip()} ({device.platform.name.strip()})"
    cores = os.cpu_count() or 1
    return {
        "numpy": "NumPy on the CPU",
        "numba": "numba on one CPU thread",
        "threads": f"numba on {cores} CPU threads, in the place of a GPU",
    }[backend]


def _describe_cuda() -> str:
    try:
        from dlsim.cpugpu import on_cuda

        if name := on_cuda.describe():
            return f"CUDA on {name}"
        why = "no CUDA device, or no CUDA toolkit that numba finds"
    except Exception as error:  # a broken driver raises what it likes
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    raise InputError(f"CUDA cannot be used here ({why}); use --gpu opencl or --gpu threads")


def best_gpu() -> str:
    """Return the back end that plays the GPU here: CUDA, OpenCL, or all CPU threads."""
    for backend in ("cuda", "opencl"):
        try:
            describe(backend)
        except InputError:
            continue
        return backend
    return "threads"


@functools.lru_cache(maxsize=8)
def _problem(kernel: Kernel, size: int, seed: int) -> Problem:
    return kernel.problem(size, seed)


@functools.cache
def warm_up(kernel: Kernel, backend: str) -> None:
    """Compile a version and run it once on a tiny input, once per process."""
    BACKENDS[backend](kernel, kernel.problem(kernel.tiny))


def perform(kernel: Kernel, backend: str, size: int, seed: int = 0) -> Outcome:
    """Run a kernel; compiling and making the input are not part of its time."""
    warm_up(kernel, backend)
    run = BACKENDS[backend](kernel, _problem(kernel, size, seed))
    return Outcome(run.seconds, run.transfer, signature(run.result))
