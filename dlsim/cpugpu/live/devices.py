"""Devices, and how a kernel runs on one: NumPy, numba on some cores, OpenCL, CUDA.

Nothing is imported before it is asked for. A back end that cannot run here says why.
"""

import functools
import itertools
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.cpugpu.live.kernels import Kernel, Problem
from dlsim.errors import InputError
from dlsim.given import extra, option

#: Work items of an OpenCL group: PoCL compiles anew for every other number.
GROUP = 64
#: An OpenCL command that waits so much longer than it runs was compiled meanwhile, seconds.
COMPILED = 0.02


class Slot(NamedTuple):
    """A device of the live machine: its name, its back end, which one of those, its cores."""

    name: str
    backend: str
    note: str
    number: int = 0
    cores: tuple[int, ...] = ()
    model: str = ""

    @property
    def kind(self) -> str:
        """What the history knows it as: devices of one kind take the same time."""
        count = f"/{len(self.cores)} cores" if self.cores else ""
        return self.backend + count + (f" {self.model}" if self.model else "")


class Run(NamedTuple):
    """One run of a kernel on a device: `compiled` is how long it waited for a compiler."""

    result: NDArray[Any]
    seconds: float
    transfer: float
    compiled: float = 0.0


class Part(NamedTuple):
    """Elements of a result, from first to before last."""

    first: int
    last: int


def _numpy(kernel: Kernel, p: Problem, part: Part, slot: Slot) -> Run:
    if part != (0, p.n):
        raise InputError(f"{kernel.name}: NumPy computes a whole result only; use --cpu numba")
    begun = time.perf_counter()
    result = np.asarray(kernel.vectorised(p), dtype=np.float32)
    return Run(result, time.perf_counter() - begun, 0.0)


@functools.cache
def _loop(element: Callable[..., Any]) -> Callable[..., None]:
    """Compile a loop over elements; it lets other threads run."""
    import numba

    inner = numba.njit(nogil=True, error_model="numpy")(element)

    def loop(first, last, start, out, a, b, x, y):  # type: ignore[no-untyped-def]
        for i in range(first, last):
            out[i - start] = inner(i, a, b, x, y)

    return numba.njit(nogil=True, error_model="numpy")(loop)


def _count(cores: Sequence[int]) -> int:
    return len(cores) or os.cpu_count() or 1


@functools.cache
def _pool(cores: tuple[int, ...]) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_count(cores), "dlsim-kernel", initializer=pin, initargs=(cores,))


def _numba(kernel: Kernel, p: Problem, part: Part, slot: Slot) -> Run:
    """Run on this thread, or in small pieces on all threads."""
    loop, begun = _loop(kernel.element), time.perf_counter()
    out = np.empty(part.last - part.first, np.float32)
    given = (part.first, out, p.a, p.b, p.x, p.y)
    if slot.backend == "numba":
        loop(*part, *given)
    else:
        cuts = np.linspace(*part, 4 * _count(slot.cores) + 1).astype(int).tolist()
        pool = _pool(slot.cores)
        for piece in [pool.submit(loop, *ends, *given) for ends in itertools.pairwise(cuts)]:
            piece.result()
    return Run(out, time.perf_counter() - begun, 0.0)


def _cuda(kernel: Kernel, p: Problem, part: Part, slot: Slot) -> Run:
    from dlsim.cpugpu.live import on_cuda

    return Run(*on_cuda.run(kernel, p, part, slot.number))


@functools.cache
def _cuda_models(index: int) -> list[str]:
    """Name every CUDA device, once this one has run a kernel of one element; or refuse."""
    try:
        from dlsim.cpugpu.live import on_cuda

        return on_cuda.models(index)
    except Exception as error:  # a broken driver raises what it likes
        why = next(iter(str(error).strip().splitlines()), type(error).__name__)
        what = f"CUDA cannot be used here ({why}); use --gpu opencl or --gpu threads"
        raise InputError(what) from error


#: A kernel in OpenCL C around the body of an element function.
OPENCL = """
float element(int i, __global const {kind} *a, __global const {kind} *b, float x, float y) {{
{body}
}}
__kernel void run(int n, __global float *out, __global const {kind} *a,
                  __global const {kind} *b, float x, float y, int first) {{
    int i = get_global_id(0) + first;
    if (i < n) out[i - first] = element(i, a, b, x, y);
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
            f"no OpenCL platform ({error}): install a driver, such as Debian's pocl-opencl-icd, or "
            "pip install 'dlsim[opencl]', which brings PoCL"
        ) from error
    if not found:
        raise InputError("OpenCL has a platform and no device: install a driver")
    return sorted(found, key=_is_gpu, reverse=True)


def _is_gpu(device: Any) -> bool:
    import pyopencl as cl

    return bool(device.type & cl.device_type.GPU)


@functools.cache
def _opencl_queue(index: int) -> Any:
    """Return a queue on a device that builds a kernel; refuse one that does not."""
    import pyopencl as cl

    device = _opencl_devices()[index]
    measured = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(cl.Context([device]), properties=measured)
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
def _opencl_program(source: str, queue: Any) -> Any:
    import pyopencl as cl

    return cl.Kernel(cl.Program(queue.context, source).build(), "run")


def _opencl(kernel: Kernel, p: Problem, part: Part, slot: Slot) -> Run:
    import pyopencl as cl

    queue = _opencl_queue(slot.number)
    program = _opencl_program(opencl_source(kernel, p), queue)
    count = part.last - part.first
    group = min(GROUP, queue.device.max_work_group_size)
    begun, flags, out = time.perf_counter(), cl.mem_flags, np.empty(count, np.float32)
    a, b = (
        cl.Buffer(queue.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array)
        for array in (p.a, p.b)
    )
    there = cl.Buffer(queue.context, flags.WRITE_ONLY, out.nbytes)
    queue.finish()
    sent = time.perf_counter()
    done = program(
        queue, (-(-count // group) * group,), (group,), np.int32(part.last), there, a, b,
        np.float32(p.x), np.float32(p.y), np.int32(part.first),
    )  # fmt: skip
    queue.finish()
    computed = time.perf_counter()
    cl.enqueue_copy(queue, out, there)
    queue.finish()
    end, times = time.perf_counter(), done.profile
    waited, ran = ((to - at) * 1e-9 for at, to in (
        (times.submit, times.start), (times.start, times.end)))  # fmt: skip
    compiled = waited if waited > max(COMPILED, ran / 2) else 0.0
    return Run(out, end - begun, sent - begun + end - computed, compiled)


#: How each back end runs a part of a kernel, and what it is called; GPUs have names of their own.
_BACKENDS: dict[str, tuple[Callable[[Kernel, Problem, Part, Slot], Run], str]] = {
    "numpy": (_numpy, "NumPy on the CPU"),
    "numba": (_numba, "numba on one CPU thread"),
    "threads": (_numba, "numba on {} CPU threads, in the place of a GPU"),
    "opencl": (_opencl, ""),
    "cuda": (_cuda, ""),
}


def pin(cores: Sequence[int]) -> None:
    """Keep this worker to its cores: its process where it has one of its own, or its thread."""
    if cores and os.sched_getaffinity(0) != set(cores):
        own = multiprocessing.parent_process() is not None
        for thread in map(int, os.listdir("/proc/self/task")) if own else (0,):
            os.sched_setaffinity(thread, cores)


@contextmanager
def compiler() -> Iterator[list[Any]]:
    """Note when numba compiles meanwhile: empty where it does not."""
    if "numba" not in sys.modules:
        yield []
        return
    from numba.core import event

    with event.install_recorder("numba:compile") as recorder:
        yield recorder.buffer


def execute(kernel: Kernel, p: Problem, slot: Slot, part: Part | None = None) -> Run:
    """Run a kernel, or a part of it, on a device; once more where it had to be compiled first.

    What it reports is then clean, and `compiled` tells how long the compiler took.
    """
    pin(slot.cores)
    run, given = _BACKENDS[slot.backend][0], (kernel, p, part or Part(0, p.n), slot)
    with compiler() as seen:
        first = run(*given)
    took = first.compiled + (seen[-1][0] - seen[0][0] if seen else 0.0)
    return run(*given)._replace(compiled=took) if took else first


# --- which devices there are ----------------------------------------------------------------------


def describe(backend: str, index: int = 0, cores: tuple[int, ...] = ()) -> str:
    """Say what a back end runs on; refuse one that cannot run here."""
    option("device", backend, _BACKENDS)
    if backend == "cuda":
        return f"CUDA on {_cuda_models(index)[index]}"
    if backend == "opencl":
        device = _opencl_devices()[index]
        _opencl_queue(index)
        shares = "" if _is_gpu(device) else ", which is this machine's CPU"
        return f"OpenCL on {device.name.strip()} ({device.platform.name.strip()}){shares}"
    where = f", cores {','.join(map(str, cores))}" if cores else ""
    return _BACKENDS[backend][1].format(_count(cores)) + where


def _cores_of(slot: Slot) -> set[int]:
    """Return the cores that a device computes on; none of a GPU that is one."""
    has_own = slot.backend == "cuda" and "simulator" not in slot.note
    if has_own or (slot.backend == "opencl" and _is_gpu(_opencl_devices()[slot.number])):
        return set()
    affinity = getattr(os, "sched_getaffinity", lambda _: range(_count(())))
    return set(slot.cores or affinity(0))


def shared_cores(devices: Sequence[Slot]) -> str:
    """Say which devices compute on the same cores; "" where each has its own."""
    for one, other in itertools.combinations(devices, 2):
        if both := sorted(_cores_of(one) & _cores_of(other)):
            return (f"{one.name} and {other.name} share the cores {','.join(map(str, both))}: one "
                    "slows the other down, so that the ideal cannot be reached; keep each to its "
                    "own, such as --gpu threads:1 --cpu numba:0")  # fmt: skip
    return ""


def best_gpu() -> str:
    """Return the back end that plays the GPU here: CUDA, OpenCL, or all CPU threads."""
    for backend in ("cuda", "opencl"):
        try:
            describe(backend)
        except InputError:
            continue
        return backend
    return "threads"


_ONE = re.compile(r"(?P<backend>[a-z]+)(?::(?P<first>\d+)(?:-(?P<last>\d+))?|/(?P<parts>\d+))?")


def _found(text: str) -> list[Slot]:
    """Read one device, or one word for several, which have no names yet."""
    one = _ONE.fullmatch(text)
    backend, *rest = one.group(*_ONE.groupindex) if one else (text, None, None, None)
    first, last, parts = (None if number is None else int(number) for number in rest)
    note = describe(backend)
    if backend in ("opencl", "cuda"):
        every = _opencl_devices() if backend == "opencl" else _cuda_models(0)
        models = [one if isinstance(one, str) else one.name.strip() for one in every]
        # GPUs come first; without one, OpenCL's first device plays one
        gpus = (sum(map(_is_gpu, every)) or 1) if backend == "opencl" else len(every)
        wanted = range(gpus) if first is None else [first]
        if (last, parts) != (None, None) or max(wanted) >= len(every):
            raise InputError(f"device {text!r}: {backend} has the devices 0 to {len(every) - 1}; "
                             f"write {backend}, or {backend}:NUMBER")  # fmt: skip
        unlike = [
            f"device {i}" if i >= gpus else models[i] if models[i] != models[0] else ""
            for i in wanted
        ]
        return [Slot("", backend, describe(backend, i), i, (), model)
                for i, model in zip(wanted, unlike, strict=True)]  # fmt: skip
    if first is None and parts is None:
        return [Slot("", backend, note)]
    if not hasattr(os, "sched_getaffinity"):
        raise InputError(f"device {text!r}: this system cannot keep a device to cores; leave them")
    usable = sorted(os.sched_getaffinity(0))
    if parts is not None:  # of sets without a core, and of cores beyond ours, one is enough
        sets = [tuple(usable[k::parts]) for k in range(min(parts, len(usable) + 1))]
    else:
        end = first if last is None else last
        sets = [tuple(range(first or 0, min(end or 0, usable[-1] + 1) + 1))]
    if not sets or not all(sets) or not set().union(*sets) <= set(usable):
        raise InputError(f"device {text!r}: this process may use the cores {usable}; write "
                         f"{backend}:FIRST-LAST, or {backend}/SETS to share them out")  # fmt: skip
    return [Slot("", backend, describe(backend, cores=cores), 0, cores) for cores in sets]


def slots(gpu: str = "auto", cpu: str = "numpy") -> tuple[Slot, ...]:
    """Return the devices of this machine: gpu0, gpu1, .., cpu0, ..

    Parameters
    ----------
    gpu : str
        ``cuda`` or ``opencl``: every GPU it finds (without one, OpenCL's first device);
        ``opencl:1``: that one; ``threads``: all CPU threads in the place of a GPU; ``auto``:
        the first of these that runs here; ``none``. Several are separated by commas.
    cpu : str
        ``numpy`` or ``numba``; ``numba:0-3``: on these cores only; ``numba/2``: two devices,
        which share the cores out; ``none``.

    Returns
    -------
    tuple of Slot
        GPUs first. All of one class are of one kind, as they share a history.

    Raises
    ------
    InputError
        For a device that is unknown or cannot run here, and for a mixed class.
    """
    devices: list[Slot] = []
    for cls, text in (("gpu", best_gpu() if gpu == "auto" else gpu), ("cpu", cpu)):
        words = [] if text == "none" else text.split(",")
        found = [slot for word in words for slot in _found(word.strip())]
        mine = [slot._replace(name=f"{cls}{n}") for n, slot in enumerate(found)]
        kinds = sorted({slot.kind for slot in mine})
        if len(kinds) > 1:
            why = f"a class shares a history, and these are {' and '.join(kinds)}"
            raise InputError(f"--{cls} {text}: {why}; name devices of one kind")
        devices += mine
    if not devices:
        raise InputError("--gpu none --cpu none leaves no device; name one")
    return tuple(devices)
