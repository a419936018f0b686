"""The one compile decorator and the one tolerance of dlsim.

``@kernel`` compiles with numba and caches on disk, in a folder named by a digest
of the package's sources: numba alone does not notice that a helper in another file
changed under a cached caller. The same source runs uncompiled with
``NUMBA_DISABLE_JIT=1``, and on Fractions or SymPy symbols through ``py_func``.
"""

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numba.extending
import platformdirs

#: Relative slack of every comparison of two instants (exact types pass ``tol=0``).
TOL = 1e-12


@functools.cache
def source_digest() -> str:
    """Return a short digest of every Python source of the package.

    Returns
    -------
    str
        Sixteen hexadecimal digits; any edit to any module changes them.
    """
    root = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Return the folder of compiled kernels and finished sweep cells.

    Returns
    -------
    Path
        ``$DLSIM_CACHE`` where set, otherwise the user's cache folder for dlsim.
    """
    return Path(os.environ.get("DLSIM_CACHE") or platformdirs.user_cache_dir("dlsim"))


def _kernel_folder() -> Path:
    base = numba.config.CACHE_DIR
    return (Path(base) if base else cache_folder()) / f"kernels-{source_digest()}"


def is_compiled() -> bool:
    """Tell whether this version's kernels were compiled before, at least in part.

    Returns
    -------
    bool
        False on the first use of a version, which takes some seconds longer.
    """
    return any(_kernel_folder().rglob("*.nbi"))


def kernel(
    function: Callable[..., Any] | None = None, *, inline: bool = False
) -> Callable[..., Any]:
    """Compile a function of arrays and floats; the cache follows the sources.

    Kernels neither allocate nor keep arrays, so numba's reference counting is off: it
    costs several times what a short event loop does itself.

    Parameters
    ----------
    function : callable
        Plain Python over numbers and arrays, without globals that change.
    inline : bool
        Have the compiler copy the body into its callers: worth it where a function has many
        arguments and is called once per task.

    Returns
    -------
    callable
        The numba dispatcher, or the function itself under ``NUMBA_DISABLE_JIT=1``; a
        decorator where only options are given.
    """
    if function is None:
        return functools.partial(kernel, inline=inline)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(_kernel_folder())
    options = {"error_model": "numpy", "_nrt": False, "forceinline": inline}
    options["no_cfunc_wrapper"] = True  # nobody calls a kernel from C
    try:
        return _without_literals(numba.njit(cache=True, **options)(function))
    finally:
        numba.config.CACHE_DIR = before


def _without_literals(compiled: Any) -> Any:
    """Compile a kernel once for an int, not once more for each literal that is passed to it."""
    if not hasattr(compiled, "get_call_template"):  # JIT is off
        return compiled
    template = compiled.get_call_template

    def plain_template(args: Any, kws: Any) -> Any:
        unliteral = numba.types.unliteral
        return template(tuple(map(unliteral, args)), {k: unliteral(v) for k, v in kws.items()})

    compiled.get_call_template = plain_template
    return compiled


@numba.extending.register_jitable  # plain in Python, so that `meets` too runs on Fractions
def latest_finish(due, tol=TOL):  # type: ignore[no-untyped-def]
    """Return the latest finish that still meets an absolute deadline.

    Parameters
    ----------
    due : float
        Absolute deadline.
    tol : float
        Relative slack; 0 for exact types.

    Returns
    -------
    float
        ``due + tol * max(1, |due|)``.
    """
    return due + tol * max(1, abs(due))


@kernel
def meets(finish, due, tol=TOL):  # type: ignore[no-untyped-def]
    """Tell whether a finish meets an absolute deadline, up to the one tolerance.

    Parameters
    ----------
    finish, due : float
        Absolute times.
    tol : float
        Relative slack; 0 for exact types.

    Returns
    -------
    bool
        ``finish <= due + tol * max(1, |due|)``.
    """
    return finish <= latest_finish(due, tol)


@kernel
def same_instant(a, b, tol=TOL):  # type: ignore[no-untyped-def]
    """Tell whether two times are one instant, up to the one tolerance.

    Parameters
    ----------
    a, b : float
        Absolute times.
    tol : float
        Relative slack; 0 for exact types.

    Returns
    -------
    bool
        ``|a - b| <= tol * max(1, |a|, |b|)``.
    """
    return abs(a - b) <= tol * max(1, abs(a), abs(b))
