"""The compile decorator, the two speeds of an engine, and the one tolerance of dlsim.

``@compiled`` compiles a function of arrays and floats with numba and keeps the machine code in a
folder named by a digest of the sources of that engine's core. The same source runs uncompiled with
``NUMBA_DISABLE_JIT=1``, and on Fractions or SymPy symbols through ``py_func``.

A `Core` is an engine's core at two speeds: compiled, and imported a second time with the decorator
left out. Small work takes the second one, so that the first answer does not wait for the compiler.
"""

import contextlib
import functools
import importlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numba.extending
import numpy as np
from numpy.typing import NDArray

from dlsim.cache import PACKAGE_ROOT, cache_folder, private_folder, source_digest, sources_digest
from dlsim.validate import one_of

#: Slack of every comparison of two instants, as a part of the duration at hand (exact types
#: pass ``tol=0``). The clock itself is given TOL / CLOCK: 4.4 units in its last place.
TOL = 1e-12
CLOCK = 1024
#: The packages that have kernels.
CORES = ("dlsim.realtime.core", "dlsim.bricks.core", "dlsim.steady.core")
#: What a user may ask for.
ENGINES = ("auto", "compiled", "python")
#: Whether a core is being imported uncompiled, and the lock of that import.
_uncompiled_import = False
_IMPORTING = threading.RLock()


def core_sources(module: str) -> list[Path]:
    """Return the sources that a kernel of this module is compiled from.

    A kernel of an engine's core calls kernels of that core and functions of this file, and no
    others.
    """
    engine = PACKAGE_ROOT / module.split(".")[1]
    return [Path(__file__), PACKAGE_ROOT / "kernel_files.py", *engine.glob("core/*.py")]


@functools.cache
def core_digest(module: str) -> str:
    """Return a short digest of the sources that a kernel of this module is compiled from."""
    return sources_digest(core_sources(module)) if module.startswith("dlsim.") else source_digest()


def kernel_place(module: str) -> tuple[Path, str]:
    """Return the base and the name of the folder of a module's kernels."""
    base = numba.config.CACHE_DIR
    return Path(base) if base else cache_folder(), f"kernels-{core_digest(module)}"


#: The cores of this process, by their packages.
_CORES: dict[str, "Core"] = {}


def say_compiling(module: str) -> None:
    """Say that kernels of a core are being compiled, once per run of the engine."""
    core = _CORES.get(module.rpartition(".")[0])
    if core is not None and core.compiling_since is None:
        core.compiling_since = time.perf_counter()
        name = core.package.removesuffix(".core")
        _say(f"compiling {name}, once per version: about {core.seconds} s ...")


def require_cache() -> None:
    """Refuse a cache that a notebook could not use, before anything runs."""
    private_folder(cache_folder(), "cells", source_digest())
    for core in () if numba.config.DISABLE_JIT else CORES:
        private_folder(*kernel_place(core))


def compiled(
    function: Callable[..., Any] | None = None, *, inline: bool = False
) -> Callable[..., Any]:
    """Compile a function of arrays and floats; the cache follows the sources.

    Kernels neither allocate nor keep arrays, so numba's reference counting is off: it
    costs several times what a short event loop does itself. With `inline` the compiler copies
    the body into its callers, which are kernels too: worth it where a function has many
    arguments and is called once per task. Under ``NUMBA_DISABLE_JIT=1``, and in a core that is
    imported uncompiled, the function itself is returned.
    """
    if function is None:
        return functools.partial(compiled, inline=inline)
    if _uncompiled_import or numba.config.DISABLE_JIT:
        return function
    place = kernel_place(function.__module__)
    try:
        from dlsim import kernel_files
    except (ImportError, AttributeError):  # a numba whose private parts are others
        return _plainly_compiled(function, place)
    return kernel_files.compile_kernel(function, place, inline, say_compiling)


def _plainly_compiled(function: Callable[..., Any], place: tuple[Path, str]) -> Callable[..., Any]:
    """Compile with what numba promises: slower to compile, and always right."""
    kernel = numba.njit(error_model="numpy", nogil=True)(function)
    compile_it = kernel.compile

    def compile_or_load(signature: Any) -> Any:
        say_compiling(function.__module__)  # or loading: numba does not tell before
        return compile_it(signature)

    kernel.compile = compile_or_load
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(private_folder(*place))
    try:
        kernel.enable_caching()
    finally:
        numba.config.CACHE_DIR = before
    return kernel


def records(shape: int | tuple[int, int], dtype: np.dtype, *, blank: bool = True) -> Any:
    """Return fresh records, all 0 if `blank`."""
    fresh = np.zeros(shape, dtype) if blank else np.empty(shape, dtype)
    return fresh.view(np.recarray) if numba.config.DISABLE_JIT else fresh


def record_arrays(shape: int | tuple[int, int], dtype: np.dtype, *, blank: bool = True) -> Any:
    """Return fresh records of a slower class, whose fields plain Python can name."""
    return (np.zeros(shape, dtype) if blank else np.empty(shape, dtype)).view(np.recarray)


def _say(line: str) -> None:
    """Print a line on standard error, unless it is closed."""
    if sys.stderr is not None:
        print(line, file=sys.stderr)


class Core:
    """An engine's core at two speeds.

    Parameters
    ----------
    package : str
        The package of the core, such as ``dlsim.realtime.core``.
    work : int
        How much work a process does uncompiled before ``engine="auto"`` compiles.
    seconds : int
        What compiling takes, for the message.
    """

    def __init__(self, package: str, work: int, seconds: int) -> None:
        self.package, self.work, self.seconds = package, work, seconds
        self.done, self._is_used = 0, False
        #: When kernels began to be compiled in a run of the engine.
        self.compiling_since: float | None = None
        _CORES[package] = self

    @functools.cached_property
    def compiled(self) -> SimpleNamespace:
        """The modules of the core, compiled when they are called."""
        names = sorted(path.stem for path in self._folder.glob("*.py") if path.stem != "__init__")
        modules = {name: importlib.import_module(f"{self.package}.{name}") for name in names}
        return SimpleNamespace(**modules)

    @functools.cached_property
    def python(self) -> SimpleNamespace:
        """The modules of the core, imported a second time without the compiler."""
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
        plain = {"records": record_arrays, "call_rule": _call}
        for names_of_module in map(vars, modules.values()):
            shared = plain.keys() & names_of_module.keys()
            names_of_module.update({name: plain[name] for name in shared})
        return SimpleNamespace(**modules)

    @property
    def _folder(self) -> Path:
        return PACKAGE_ROOT.joinpath(*self.package.split(".")[1:])

    @contextlib.contextmanager
    def at_speed(self, engine: str, work: int) -> Iterator[SimpleNamespace]:
        """Give the modules of the core at the speed that is asked for.

        Parameters
        ----------
        engine : {"auto", "compiled", "python"}
            With "auto" the compiled core is taken once it is in use, and before that for work
            beyond what this process does uncompiled.
        work : int
            How much there is to do, in the unit of `Core.work`.
        """
        one_of("engine", engine, ENGINES)
        is_small = not self._is_used and self.done + work <= self.work
        if engine == "python" or (engine == "auto" and is_small):
            self.done += work
            yield self.python
            return
        self._is_used, self.compiling_since = True, None
        yield self.compiled
        if self.compiling_since is not None:
            took = time.perf_counter() - self.compiling_since
            _say(f"compiled and run in {took:.0f} s")


def _call(function: Any, given: Any) -> Any:
    """Call a user's function, which returns a number."""
    return function(*given)


if numba.config.DISABLE_JIT:
    call_rule = _call
else:

    @numba.extending.register_jitable
    def call_rule(function: Any, given: Any) -> Any:
        """Stand in a compiled core for a user's function, which only an uncompiled one calls."""
        return np.nan


@numba.extending.register_jitable  # plain in Python: it runs on Fractions, and in both cores
def latest_finish(due: Any, budget: Any, tol: Any = TOL) -> Any:
    """Return the latest finish that still meets a deadline.

    The slack is a part of the time that was given, and what the clock itself rounds: it is in
    the unit of time that the caller has, and does not grow with the hour at which he calls.
    """
    return due + tol * (budget + abs(due) / CLOCK)


@numba.extending.register_jitable
def meets(finish: Any, due: Any, budget: Any, tol: Any = TOL) -> Any:
    """Tell whether a finish meets a deadline, up to the one tolerance."""
    return finish <= latest_finish(due, budget, tol)


@numba.extending.register_jitable
def same_instant(a: Any, b: Any, span: Any, tol: Any = TOL) -> Any:
    """Tell whether two times are one instant, up to the one tolerance."""
    return abs(a - b) <= tol * (span + max(abs(a), abs(b)) / CLOCK)


def clock_origin(arrivals: NDArray[np.float64]) -> float:
    """Return where an engine's clock begins: by the first arrival, in sorted arrivals.

    It is rounded down to a multiple of a power of two above their span (and above the last
    place of the last one). So every difference is exact, adding the origin again gives back
    every arrival bit for bit, and a log that begins near 0 keeps the clock it has.
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
