"""Kernels as files, and shortcuts through numba that make compiling two to three times faster.

Everything here rests on names that numba does not promise. They are looked for when this file is
imported: where one is missing, or numba is outside the versions that were tried, the import fails
and `dlsim.compiled` does without.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature

from dlsim.cache import private_folder

#: Versions of numba that were tried, the first and the last.
TRIED = (0, 61), (0, 68)
#: Numba has one setting for the folder of every function.
_SETTING = threading.Lock()
#: Most seconds that a process waits for another one that compiles the same.
PATIENCE = 120.0
#: Bytes of the checksum at the beginning of a file.
SEAL = 32

_NEEDED: dict[Any, tuple[str, ...]] = {
    JITCodeLibrary: (
        "_optimize_final_module",
        "_finalize_final_module",
        "_finalize_dynamic_globals",
        "_ensure_finalized",
        "serialize_using_bitcode",
        "serialize_using_object_code",
        "get_pointer_to_function",
    ),
    Compiler: ("define_pipelines",),
    numba.core.dispatcher.Dispatcher: ("enable_caching", "get_call_template", "get_overload"),
    numba.core.caching.FunctionCache: ("load_overload", "save_overload", "_index_key"),
    numba.core.compiler.CompileResult: ("_find_referenced_environments",),
    numba.core.codegen.JITCPUCodegen: ("set_env", "_module_pass_manager"),
}
for owner, names in _NEEDED.items():
    for needed in names:
        if not hasattr(owner, needed):
            raise ImportError(f"numba {numba.__version__} has no {owner.__name__}.{needed}")
if not TRIED[0] <= numba.version_info.short <= TRIED[1]:
    raise ImportError(f"numba {numba.__version__} was not tried")


def compile_kernel(
    function: Callable[..., Any],
    place: tuple[Path, str],
    inline: bool,
    say_compiling: Callable[[str], None],
) -> Callable[..., Any]:
    """Return a kernel that Python and other kernels can call, each in the way that is cheapest.

    `say_compiling` is called with the kernel's module where it has to be compiled for Python.

    Kernels called by kernels are linked without their Python entry point, the dearest part to
    compile. They are compiled once for an int, not once more for each literal that is passed.
    """
    options: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "forceinline": inline}
    options["nogil"] = True  # other threads run meanwhile
    options["no_cfunc_wrapper"] = True  # no kernel is called from C
    say = functools.partial(say_compiling, function.__module__)
    called = _keep_on_disk(numba.njit(**options)(function), say, *place)
    options |= {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
    part = _keep_on_disk(numba.njit(**options)(function), None, *place, "parts")

    def template_without_literals(args: Any, kws: Any) -> Any:
        unliteral = numba.types.unliteral
        return part.get_call_template(
            tuple(map(unliteral, args)), {k: unliteral(v) for k, v in kws.items()}
        )

    called.get_call_template, called.get_overload = template_without_literals, part.get_overload
    return called


class KernelFiles:
    """The compiled forms of one kernel: a file for each, which begins with its checksum.

    It takes the place of numba's own files, whose index is keyed by the time of the source, and
    of which a damaged one ends the process. A file that cannot be written is left out.
    """

    def __init__(self, folder: Path, name: str, when_missing: Callable[[], None] | None) -> None:
        self.folder, self.name, self.when_missing = folder, name, when_missing

    def _path(self, key: Any) -> Path:
        """Return the file of a form: its types, its bytecode, the processor, the versions."""
        text = repr((key, numba.__version__, sys.version))
        return self.folder / f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.kernel"

    def load(self, key: Any) -> Any:
        """Return a compiled form, None where there is none; a damaged file is dropped."""
        form = self._read(self._path(key))
        if form is None and self.when_missing is not None:
            self.when_missing()
        return form

    @staticmethod
    def _read(path: Path) -> Any:
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if hashlib.sha256(content[SEAL:]).digest() != content[:SEAL]:
            print(f"a compiled kernel was damaged and is compiled anew: {path}", file=sys.stderr)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        return pickle.loads(content[SEAL:])

    def save(self, key: Any, form: Any) -> None:
        """Keep a compiled form."""
        content, path = dumps(form), self._path(key)
        partial = path.with_suffix(f".{os.getpid()}")
        try:
            partial.write_bytes(hashlib.sha256(content).digest() + content)
            partial.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()


def _keep_on_disk(kernel: Any, when_missing: Callable[[], None] | None, *place: Any) -> Any:
    """Give a kernel its files where it is first compiled: importing it needs no folder."""
    compile_it, name = kernel.compile, f"{kernel.__module__}.{kernel.__qualname__}"

    def compile_or_load(signature: Any) -> Any:
        if kernel.stats.cache_path is None:
            folder = private_folder(*place)
            with _SETTING:
                before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
                try:
                    kernel.enable_caching()
                finally:
                    numba.config.CACHE_DIR = before
            kernel._cache._cache_file = KernelFiles(folder, name, when_missing)
        with _one_at_a_time(Path(*place), f"{name}{signature}"):
            entry = compile_it(signature)
        made = kernel.overloads[normalize_signature(signature)[0]]  # with the kernels it calls
        for environment in made._find_referenced_environments():
            made.library.codegen.set_env(environment.env_name, environment)
        return entry

    kernel.compile = compile_or_load
    return kernel


@functools.cache
def _lock_file(folder: Path) -> int:
    """Open the file of locks for good: closing it would end those of others in this process."""
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)


@contextlib.contextmanager
def _one_at_a_time(folder: Path, what: str) -> Iterator[None]:
    """Let one process compile a kernel; another that wants it waits and finds its file then.

    Each kernel is a byte of one file. The system ends a lock with its process; a process that
    has waited long compiles too.
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


class _Part(JITCodeLibrary):
    """A kernel that only other kernels call: optimised by half, it becomes machine code in them.

    Numba would optimise and translate each with all that it calls: more than half of its time.
    """

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Leave it to the kernel that calls this one."""

    def _optimize_final_module(self) -> None:
        little = {"cost": "cheap", "opt": 0, "loop_vectorize": False, "slp_vectorize": False}
        half = self._codegen._module_pass_manager(**little)
        passes, *builder = half if isinstance(half, tuple) else (half,)
        passes.run(self._final_module, *builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # with any of them nothing may be cached
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return that there is none, once it can be linked."""
        self._ensure_finalized()
        return 0

    serialize_using_object_code = JITCodeLibrary.serialize_using_bitcode


class _PartCompiler(Compiler):
    """Compile a kernel for other kernels."""

    def define_pipelines(self) -> Any:
        """Return what numba does, for a library of ours."""
        state = self.state
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
