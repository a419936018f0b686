"""The one compile decorator and the one tolerance of dlsim.

``@kernel`` compiles with numba and caches on disk, in a folder named by a digest of the
sources of that engine's core: numba alone does not notice that a helper in another file
changed under a cached caller. The same source runs uncompiled with
``NUMBA_DISABLE_JIT=1``, and on Fractions or SymPy symbols through ``py_func``.
"""

import contextlib
import errno
import functools
import hashlib
import math
import os
import stat
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numba
import numba.extending
import numpy as np
import platformdirs
from llvmlite import ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.sigutils import normalize_signature
from numpy.typing import NDArray

from dlsim.errors import InputError

#: Slack of every comparison of two instants, as a part of the duration at hand (exact types
#: pass ``tol=0``). The clock itself is given TOL / CLOCK: 4.4 units in its last place.
TOL = 1e-12
CLOCK = 1024
#: Numba has one setting for the folder of every function.
_CACHING = threading.Lock()
#: Most seconds that a process waits for another one that compiles the same.
PATIENCE = 120.0


ROOT = Path(__file__).parent


@functools.cache
def source_digest() -> str:
    """Return a short digest of every Python source of the package."""
    shared = ROOT / "_share"  # examples for users, in an installed package alone
    return _digest(path for path in ROOT.rglob("*.py") if shared not in path.parents)


@functools.cache
def core_digest(module: str) -> str:
    """Return a short digest of the sources that a kernel of this module is compiled from.

    A kernel of an engine's core calls kernels of that core and of this file, and no others.
    """
    if not module.startswith("dlsim."):
        return source_digest()
    engine = ROOT / module.split(".")[1]
    return _digest([Path(__file__), *engine.glob("core/*.py")])


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Return the folder of compiled kernels and finished sweep cells."""
    try:
        named = os.environ.get("DLSIM_CACHE") or platformdirs.user_cache_dir("dlsim")
    except RuntimeError:  # a user without a home; `private_folder` says so where it matters
        named = "~"
    return Path(os.path.expanduser(named))


def private_folder(base: Path, *names: str) -> Path:
    """Make a folder of dlsim's below the cache's base, or take the one that is there on trust.

    What lies in it is run (compiled code) or stands for results (cells). The base itself is
    the user's: it keeps its rights where it was there before.
    """
    folder = base
    try:
        if base.parts[:1] == ("~",):
            raise FileNotFoundError(errno.ENOENT, "you have no home folder")
        base.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            base.mkdir(mode=0o700)
        for name in names:
            folder /= name
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            _refuse_strangers(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        variable = "DLSIM_CACHE" if base == cache_folder() else "NUMBA_CACHE_DIR"
        raise InputError(
            f"cache folder {folder} cannot be used: {error.strerror}; what is read from there is"
            " trusted as compiled code and as results, so it must be yours alone: set the"
            f" environment variable {variable} to a folder of your own"
        ) from error
    return folder


def _refuse_strangers(folder: Path) -> None:
    """Refuse what another user could have filled, and close to others what is ours."""
    if not hasattr(os, "geteuid"):  # Windows: folders of a profile are closed to others
        return
    found, us = folder.lstat(), os.geteuid()
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.ENOTDIR, "it is a link or a file, where dlsim makes a folder")
    if found.st_uid != us:
        raise PermissionError(errno.EPERM, f"it belongs to user {found.st_uid}, you are user {us}")
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    for path in folder.rglob("*") if found.st_mode & 0o022 else ():
        with contextlib.suppress(FileNotFoundError):
            if (owner := path.lstat().st_uid) != us:
                folder.chmod(stat.S_IMODE(found.st_mode))  # so that the next run refuses too
                raise PermissionError(errno.EPERM, f"user {owner} put {path.name} there")


def need_cache() -> None:
    """Refuse a cache that a notebook could not use, before anything runs."""
    private_folder(cache_folder(), "cells", source_digest())
    if not numba.config.DISABLE_JIT:
        private_folder(*_kernel_place(__name__))


def _kernel_place(module: str) -> tuple[Path, str]:
    base = numba.config.CACHE_DIR
    return Path(base) if base else cache_folder(), f"kernels-{core_digest(module)}"


def is_compiled(engine: str) -> bool:
    """Tell whether kernels of an engine, `dlsim.realtime` say, were compiled before."""
    return any(Path(*_kernel_place(f"{engine}.core")).rglob("*.nbi"))


def records(shape: int | tuple[int, int], dtype: np.dtype, *, blank: bool = True) -> Any:
    """Return fresh records, all 0 if `blank`; uncompiled code needs a slower class of them."""
    fresh = np.zeros(shape, dtype) if blank else np.empty(shape, dtype)
    return fresh.view(np.recarray) if numba.config.DISABLE_JIT else fresh


def kernel(
    function: Callable[..., Any] | None = None, *, inline: bool = False
) -> Callable[..., Any]:
    """Compile a function of arrays and floats; the cache follows the sources.

    Kernels neither allocate nor keep arrays, so numba's reference counting is off: it
    costs several times what a short event loop does itself. With `inline` the compiler copies
    the body into its callers, which are kernels too: worth it where a function has many
    arguments and is called once per task. Under ``NUMBA_DISABLE_JIT=1`` the function itself is
    returned.
    """
    if function is None:
        return functools.partial(kernel, inline=inline)
    if numba.config.DISABLE_JIT:
        return function
    options: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "forceinline": inline}
    options["nogil"] = True  # other threads run meanwhile
    options["no_cfunc_wrapper"] = True  # nobody calls a kernel from C
    place = _kernel_place(function.__module__)
    called = _cached(numba.njit(**options)(function), *place)
    options |= {"no_cpython_wrapper": True, "pipeline_class": _ForKernels}
    return _taken_in(called, _cached(numba.njit(**options)(function), *place, "parts"))


@functools.cache
def _lock_file(folder: Path) -> int:
    """Open the file of locks for good: closing it would end those of others in this process."""
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)


@contextlib.contextmanager
def _in_turn(folder: Path, what: str) -> Iterator[None]:
    """Let one process compile a kernel, and who wants it meanwhile find it in the cache then.

    Each kernel is a byte of one file. The system ends a lock with its process; who has waited
    long compiles too.
    """
    try:
        import fcntl
    except ImportError:  # Windows: each compiles for itself
        yield
        return
    handle, byte = _lock_file(folder), zlib.crc32(what.encode())
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            break
        except (BlockingIOError, PermissionError):
            time.sleep(0.02)
        except OSError:  # a file system without locks
            break
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.lockf(handle, fcntl.LOCK_UN, 1, byte)


def _cached(compiled: Any, *place: Any) -> Any:
    """Give a kernel its cache where it is first used: who only reads claims needs no folder."""
    compile_it, name = compiled.compile, f"{compiled.__module__}.{compiled.__qualname__}"

    def compile_or_load(signature: Any) -> Any:
        with _CACHING:
            if compiled.stats.cache_path is None:
                before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(private_folder(*place))
                try:
                    compiled.enable_caching()
                finally:
                    numba.config.CACHE_DIR = before
        with _in_turn(Path(*place), f"{name}{signature}"):
            way_in = compile_it(signature)
        made = compiled.overloads[normalize_signature(signature)[0]]  # with what it took in
        for environment in made._find_referenced_environments():
            made.library.codegen.set_env(environment.env_name, environment)
        return way_in

    compiled.compile = compile_or_load
    return compiled


class _Part(JITCodeLibrary):
    """What only other kernels call: optimised by half, it becomes machine code with them alone.

    Numba would optimise and translate each with all that it calls: more than half of its time.
    """

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Leave it to who takes it in."""

    def _optimize_final_module(self) -> None:
        little = {"cost": "cheap", "opt": 0, "loop_vectorize": False, "slp_vectorize": False}
        half = self._codegen._module_pass_manager(**little)
        passes, *builder = half if isinstance(half, tuple) else (half,)
        passes.run(self._final_module, *builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # with any of them nothing may be cached
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return that there is none, once it can be taken in."""
        self._ensure_finalized()
        return 0

    serialize_using_object_code = JITCodeLibrary.serialize_using_bitcode


class _ForKernels(Compiler):
    """Compile a kernel for other kernels."""

    def define_pipelines(self) -> Any:
        """Return what numba does, for a library of ours."""
        state = self.state
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


def _taken_in(called: Any, taken: Any) -> Any:
    """Let kernels take in, of a kernel, what Python cannot call: the way in from there costs most.

    It is compiled once for an int, not once more for each literal that is passed to it.
    """

    def plain_template(args: Any, kws: Any) -> Any:
        unliteral = numba.types.unliteral
        return taken.get_call_template(
            tuple(map(unliteral, args)), {k: unliteral(v) for k, v in kws.items()}
        )

    called.get_call_template, called.get_overload = plain_template, taken.get_overload
    return called


if numba.config.DISABLE_JIT:

    def call_at(function: Any, given: Any) -> Any:
        """Call a function that returns a number."""
        return function(*given)

else:

    @numba.extending.intrinsic
    def call_at(typing: Any, address: Any, given: Any) -> Any:
        """Call what `numba.cfunc` has compiled for arguments of these types, to a float.

        Kernels are compiled once for all such functions, where a typed pointer among their
        arguments would have them compiled once more.
        """

        def call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kinds = [context.get_value_type(kind) for kind in given.types]
            pointer = ir.FunctionType(ir.DoubleType(), kinds).as_pointer()
            whole = range(len(kinds))
            found = [builder.extract_value(values[1], k) for k in whole]
            return builder.call(builder.inttoptr(values[0], pointer), found)

        return numba.float64(numba.int64, given), call


@numba.extending.register_jitable  # plain in Python, so that `meets` too runs on Fractions
def latest_finish(due: Any, budget: Any, tol: Any = TOL) -> Any:
    """Return the latest finish that still meets a deadline.

    The slack is a part of the time that was given, and what the clock itself rounds: it is in
    the unit of time that the caller has, and does not grow with the hour at which he calls.
    """
    return due + tol * (budget + abs(due) / CLOCK)


@kernel
def meets(finish: Any, due: Any, budget: Any, tol: Any = TOL) -> Any:
    """Tell whether a finish meets a deadline, up to the one tolerance."""
    return finish <= latest_finish(due, budget, tol)


@kernel
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
