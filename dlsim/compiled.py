"""The compile decorator, compiled and uncompiled engine cores, and the tolerance of times.

``@compiled`` compiles a function of arrays and floats with numba and stores the machine code in a
folder named by a digest of the sources of that engine's core. The same source runs uncompiled with
``NUMBA_DISABLE_JIT=1``, and on Fractions or SymPy symbols through ``py_func``.

A `Core` is the core of an engine in two versions: compiled, and imported a second time without the
decorator. Small work uses the uncompiled version, so that the first result does not wait for the
compiler.
"""

import contextlib
import functools
import importlib
import math
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numba.extending
import numpy as np
from numpy.typing import NDArray

from dlsim.cache import PACKAGE_ROOT, cache_folder, digest_sources, package_digest, private_folder
from dlsim.errors import InputError
from dlsim.progress import timed_bar
from dlsim.validate import one_of

#: Tolerance of every comparison of two times, relative to the duration involved (exact types pass
#: ``tol=0``). Relative to the time itself it is TOL / CLOCK_DIVISOR: 4.4 units in the last place.
TOL = 1e-12
CLOCK_DIVISOR = 1024
#: The values of the argument `engine` of an engine's `simulate`.
ENGINES = ("auto", "compiled", "python")
#: Whether a core is being imported uncompiled, and the lock of that import.
_uncompiled_import = False
_IMPORTING = threading.RLock()


def core_sources(module: str) -> list[Path]:
    """Return the sources that determine the machine code of a module's kernels.

    Kernels of an engine's core call only kernels of that core and functions of this file.
    """
    engine = PACKAGE_ROOT / module.split(".")[1]
    return [Path(__file__), PACKAGE_ROOT / "kernel_files.py", *engine.glob("core/*.py")]


@functools.cache
def core_digest(module: str) -> str:
    """Return a short digest of the sources that determine a module's kernels."""
    return digest_sources(core_sources(module)) if module.startswith("dlsim.") else package_digest()


def kernel_place(module: str) -> tuple[Path, str]:
    """Return the base folder and the name of the folder of a module's kernels."""
    base = numba.config.CACHE_DIR
    return Path(base) if base else cache_folder(), f"kernels-{core_digest(module)}"


def say_compiling(module: str) -> None:
    """Show until the run of the engine ends that kernels of its core are being compiled."""
    core = CORES.get(module.removeprefix("dlsim.").partition(".")[0])
    if core is not None and core.at_end is not None:
        name = core.package.removesuffix(".core")
        core.at_end.enter_context(timed_bar(f"compiling {name}, once per version", core.seconds))
        core.at_end = None


def require_cache() -> None:
    """Raise InputError if the folders of kernels and of sweep cells cannot be used."""
    private_folder(cache_folder(), "cells", package_digest())
    for core in () if numba.config.DISABLE_JIT else CORES.values():
        private_folder(*kernel_place(core.package))


def compiled(
    function: Callable[..., Any] | None = None, *, inline: bool = False
) -> Callable[..., Any]:
    """Compile a function of arrays and floats, and cache its machine code.

    Kernels neither allocate nor keep arrays, so numba's reference counting is off; it costs several
    times as much as a short event loop. With `inline` the compiler copies the body into the kernels
    that call it, which pays off for functions with many arguments that are called once per task.
    Under ``NUMBA_DISABLE_JIT=1``, and in a core that is imported uncompiled, the function itself is
    returned.
    """
    if function is None:
        return functools.partial(compiled, inline=inline)
    if not is_compiling():
        return function
    place = kernel_place(function.__module__)
    try:
        from dlsim import kernel_files
    except (ImportError, AttributeError):  # this numba has other private parts
        return _compile_plainly(function, place)
    return kernel_files.compile_kernel(function, place, inline, say_compiling)


def _compile_plainly(function: Callable[..., Any], place: tuple[Path, str]) -> Callable[..., Any]:
    """Compile with numba's public interface only: compiling takes 2 to 4 times as long."""
    kernel = numba.njit(error_model="numpy", nogil=True)(function)
    compile_signature = kernel.compile

    def compile_or_load(signature: Any) -> Any:
        say_compiling(function.__module__)  # or loading, which cannot be distinguished in advance
        return compile_signature(signature)

    kernel.compile = compile_or_load
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(private_folder(*place))
    try:
        kernel.enable_caching()
    finally:
        numba.config.CACHE_DIR = before
    return kernel


def zero_recarray(shape: int | tuple[int, int], dtype: np.dtype) -> Any:
    """Return new records whose fields are 0, and attributes in uncompiled Python."""
    return np.zeros(shape, dtype).view(np.recarray)


def is_compiling() -> bool:
    """Tell whether the decorator compiles the functions of the core that is being imported."""
    return not (_uncompiled_import or numba.config.DISABLE_JIT)


class Core:
    """The core of an engine, a package, compiled and uncompiled.

    A process does so much `work` uncompiled before ``engine="auto"`` compiles, which typically
    takes the `seconds` that the bar says.
    """

    def __init__(self, package: str, work: int, seconds: int) -> None:
        self.package, self.work, self.seconds = package, work, seconds
        self.done, self._is_used = 0, False
        #: What the current run of the engine closes at its end; None once compiling is shown.
        self.at_end: contextlib.ExitStack | None = None

    @functools.cached_property
    def compiled(self) -> SimpleNamespace:
        """The modules of the core; their functions are compiled when they are called."""
        names = sorted(path.stem for path in self._folder.glob("*.py") if path.stem != "__init__")
        modules = {name: importlib.import_module(f"{self.package}.{name}") for name in names}
        return SimpleNamespace(**modules)

    @functools.cached_property
    def python(self) -> SimpleNamespace:
        """The modules of the core, imported a second time without the decorator."""
        global _uncompiled_import
        if numba.config.DISABLE_JIT:
            return self.compiled
        with _IMPORTING:
            names = list(vars(self.compiled))
            own = [name for name in sys.modules if f"{name}.".startswith(f"{self.package}.")]
            kept = {name: sys.modules.pop(name) for name in own}
            _uncompiled_import = True
            try:
                modules = {n: importlib.import_module(f"{self.package}.{n}") for n in names}
            finally:
                _uncompiled_import = False
                for name in [n for n in sys.modules if f"{n}.".startswith(f"{self.package}.")]:
                    del sys.modules[name]
                sys.modules.update(kept)
                for name, module in kept.items():
                    parent, _, child = name.rpartition(".")
                    setattr(sys.modules[parent], child, module)
        return SimpleNamespace(**modules)

    @property
    def _folder(self) -> Path:
        return PACKAGE_ROOT.joinpath(*self.package.split(".")[1:])

    @contextlib.contextmanager
    def at_speed(
        self, engine: str, work: int, has_user_functions: bool = False
    ) -> Iterator[SimpleNamespace]:
        """Yield the modules of the core, compiled or uncompiled.

        "auto" chooses the compiled core if it is already in use, or if this process has done more
        uncompiled work than `Core.work`. Only the uncompiled core can call functions of a user.
        """
        one_of("engine", engine, ENGINES)
        if has_user_functions and engine == "compiled":
            raise InputError(
                "engine must be 'auto' or 'python' for functions of a user, which are called"
                " uncompiled; got 'compiled'"
            )
        engine = "python" if has_user_functions else engine
        is_small = not self._is_used and self.done + work <= self.work
        if engine == "python" or (engine == "auto" and is_small):
            self.done += work
            yield self.python
            return
        self._is_used = True
        with contextlib.ExitStack() as self.at_end:
            try:
                yield self.compiled
            finally:
                self.at_end = None


#: The cores of the engines, with the work that a process does uncompiled, in a second or two.
CORES = {
    # 1,000 tasks uncompiled take about as long as loading the compiled core
    "realtime": Core("dlsim.realtime.core", work=1_000, seconds=20),
    # applications times clusters: G mostly takes less than .05 s on 5 clusters, .4 s on 20
    "steady": Core("dlsim.steady.core", work=1_000, seconds=3),
    # microseconds: an hour of the paper's 40 servers takes .2 s, a day 3 s
    "bricks": Core("dlsim.bricks.core", work=1_500_000, seconds=20),
}


@numba.extending.register_jitable  # plain in Python: it runs on Fractions, and in both cores
def deadline_with_tolerance(due: Any, budget: Any, tol: Any = TOL) -> Any:
    """Return the latest completion time that still meets a deadline.

    The tolerance is relative to the available time `budget`, plus the rounding of the clock. It
    therefore scales with the unit of time and does not grow with the time since the clock began.
    """
    return due + tol * (budget + abs(due) / CLOCK_DIVISOR)


@numba.extending.register_jitable
def meets_deadline(finish: Any, due: Any, budget: Any, tol: Any = TOL) -> Any:
    """Tell whether a completion time meets a deadline, up to the tolerance."""
    return finish <= deadline_with_tolerance(due, budget, tol)


@numba.extending.register_jitable
def times_tie(first: Any, second: Any, span: Any, tol: Any = TOL) -> Any:
    """Tell whether two times are equal, up to the tolerance for a duration `span`."""
    return abs(first - second) <= tol * (span + max(abs(first), abs(second)) / CLOCK_DIVISOR)


def time_offset(arrivals: NDArray[np.float64]) -> float:
    """Return the time that an engine subtracts from sorted arrivals, near the first arrival.

    It is the first arrival rounded down to a multiple of a power of two that exceeds the span of
    the arrivals and the last place of the last one. Every difference is then exact, adding the
    offset again restores every arrival bit for bit, and the offset of a log that begins near 0
    is 0.
    """
    if not len(arrivals):
        return 0.0
    first, last = float(arrivals[0]), float(arrivals[-1])
    step, span = float(np.spacing(last)), last - first
    if first < span:
        return 0.0
    if span > 0:
        step = max(step, math.ldexp(1.0, math.frexp(span)[1]))
    return first - math.fmod(first, step)
