"""Files of compiled kernels, and shortcuts through numba that make compiling 2 to 4 times faster.

This module uses private names of numba. The import fails if one of them is missing, or if numba is
outside the tested versions; `dlsim.compiled` then compiles with numba's public interface.
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

from dlsim.cache import private_folder, read_own_file

#: The oldest and the newest version of numba that were tested.
TESTED_VERSIONS = (0, 61), (0, 68)
#: Lock of numba's setting of the cache folder, which all functions share.
_FOLDER_SETTING = threading.Lock()
#: Longest time, in seconds, that a process waits for another that compiles the same kernel.
MAX_WAIT_SECONDS = 120.0
#: Length in bytes of the checksum at the beginning of a file.
CHECKSUM_BYTES = 32
#: Largest file of a compiled kernel in bytes; the largest one of dlsim takes some 4 MB.
MAX_KERNEL_BYTES = 2**28

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
if not TESTED_VERSIONS[0] <= numba.version_info.short <= TESTED_VERSIONS[1]:
    raise ImportError(f"numba {numba.__version__} was not tested")


def compile_kernel(
    function: Callable[..., Any],
    place: tuple[Path, str],
    inline: bool,
    say_compiling: Callable[[str], None],
) -> Callable[..., Any]:
    """Return a kernel that Python and other kernels can call.

    Kernels called by kernels are linked without their Python entry point, the most expensive part
    to compile. They are compiled once for an int, not again for each literal that is passed.
    `place` is the base folder and the name of the folder of compiled kernels; `inline` copies the
    body into calling kernels; `say_compiling` is called with the name of the kernel's module when
    it is compiled for Python.
    """
    options: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "forceinline": inline}
    options["nogil"] = True  # other threads can run
    options["no_cfunc_wrapper"] = True  # no kernel is called from C
    say = functools.partial(say_compiling, function.__module__)
    for_python = cache_in_files(numba.njit(**options)(function), say, *place)
    options |= {"no_cpython_wrapper": True, "pipeline_class": InnerKernelCompiler}
    for_kernels = cache_in_files(numba.njit(**options)(function), None, *place, "parts")

    def template_without_literals(args: Any, kws: Any) -> Any:
        unliteral = numba.types.unliteral
        return for_kernels.get_call_template(
            tuple(map(unliteral, args)), {k: unliteral(v) for k, v in kws.items()}
        )

    for_python.get_call_template = template_without_literals
    for_python.get_overload = for_kernels.get_overload
    return for_python


class KernelFiles:
    """The compiled forms of one kernel, each in a file that begins with its checksum.

    It replaces numba's own cache files, whose index depends on the time of the source, and of which
    a damaged one crashes the process. A file that cannot be written is skipped.
    """

    def __init__(self, folder: Path, name: str, when_missing: Callable[[], None] | None) -> None:
        self.folder, self.name, self.when_missing = folder, name, when_missing

    def _path(self, key: Any) -> Path:
        """Return the file of a compiled form; its key has types, bytecode and processor."""
        text = repr((key, numba.__version__, sys.version))
        return self.folder / f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.kernel"

    def load(self, key: Any) -> Any:
        """Return a compiled form, or None if there is no intact file."""
        form = self._read(self._path(key))
        if form is None and self.when_missing is not None:
            self.when_missing()
        return form

    @staticmethod
    def _read(path: Path) -> Any:
        try:
            content = read_own_file(path, MAX_KERNEL_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            why = f"could not be read ({error.strerror})"
            print(f"a compiled kernel {why} and is compiled again: {path}", file=sys.stderr)
            return None
        if hashlib.sha256(content[CHECKSUM_BYTES:]).digest() != content[:CHECKSUM_BYTES]:
            print(f"a compiled kernel was damaged and is compiled again: {path}", file=sys.stderr)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        return pickle.loads(content[CHECKSUM_BYTES:])

    def save(self, key: Any, form: Any) -> None:
        """Write a compiled form."""
        content, path = dumps(form), self._path(key)
        partial = path.with_suffix(f".{os.getpid()}")
        try:
            partial.write_bytes(hashlib.sha256(content).digest() + content)
            partial.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()


def cache_in_files(kernel: Any, when_missing: Callable[[], None] | None, *place: Any) -> Any:
    """Cache a kernel in files; the folder is created at the first compilation."""
    compile_signature, name = kernel.compile, f"{kernel.__module__}.{kernel.__qualname__}"

    def compile_or_load(signature: Any) -> Any:
        if kernel.stats.cache_path is None:
            folder = private_folder(*place)
            with _FOLDER_SETTING:
                before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder)
                try:
                    kernel.enable_caching()
                finally:
                    numba.config.CACHE_DIR = before
            kernel._cache._cache_file = KernelFiles(folder, name, when_missing)
        with _one_at_a_time(Path(*place), f"{name}{signature}"):
            entry = compile_signature(signature)
        overload = kernel.overloads[normalize_signature(signature)[0]]
        # the kernels that it calls have environments, too
        for environment in overload._find_referenced_environments():
            overload.library.codegen.set_env(environment.env_name, environment)
        return entry

    kernel.compile = compile_or_load
    return kernel


@functools.cache
def _lock_file(folder: Path) -> int:
    """Open the lock file once: closing it would release all locks of this process."""
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)


@contextlib.contextmanager
def _one_at_a_time(folder: Path, what: str) -> Iterator[None]:
    """Let one process at a time compile a kernel; the others wait and then read its file.

    Each kernel locks its own byte of one file. The system releases a lock when its process ends. A
    process that has waited `MAX_WAIT_SECONDS` compiles the kernel itself.
    """
    try:
        import fcntl
    except ImportError:  # Windows: every process compiles for itself
        yield
        return
    handle, byte = _lock_file(folder), zlib.crc32(what.encode())
    until = time.monotonic() + MAX_WAIT_SECONDS
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


class InnerKernelLibrary(JITCodeLibrary):
    """Library of a kernel that only kernels call: lightly optimised, and not translated alone.

    Numba would optimise and translate every kernel together with all kernels that it calls, which
    takes more than half of the compile time.
    """

    @property
    def codegen(self) -> Any:
        """Return this library in place of its code generator, for `set_env`."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: the calling kernel sets the environment."""

    def _optimize_final_module(self) -> None:
        light = {"cost": "cheap", "opt": 0, "loop_vectorize": False, "slp_vectorize": False}
        found = self._codegen._module_pass_manager(**light)
        passes, *builder = found if isinstance(found, tuple) else (found,)
        passes.run(self._final_module, *builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # a kernel with dynamic globals cannot be cached
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: such a kernel has no address of its own."""
        self._ensure_finalized()
        return 0

    serialize_using_object_code = JITCodeLibrary.serialize_using_bitcode


class InnerKernelCompiler(Compiler):
    """Compile a kernel for other kernels."""

    def define_pipelines(self) -> Any:
        """Return numba's pipelines with an `InnerKernelLibrary` as the library."""
        state = self.state
        state.library = InnerKernelLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()
