"""The cache folder of compiled kernels and finished sweep cells, and the digests in its names."""

import contextlib
import errno
import functools
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from dlsim.errors import InputError

PACKAGE_ROOT = Path(__file__).parent


@functools.cache
def package_digest() -> str:
    """Return a short digest of every Python source of the package."""
    shared = PACKAGE_ROOT / "_share"  # notebooks and data of an installed package
    return digest_sources(path for path in PACKAGE_ROOT.rglob("*.py") if shared not in path.parents)


def digest_sources(paths: Iterable[Path]) -> str:
    """Return a short digest of the names and contents of sources of the package."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(PACKAGE_ROOT).as_posix().encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Return the folder of compiled kernels and finished sweep cells."""
    try:
        named = os.environ.get("DLSIM_CACHE") or platformdirs.user_cache_dir("dlsim")
    except RuntimeError:  # the user has no home folder; `private_folder` raises the error
        named = "~"
    return Path(os.path.expanduser(named))


def private_folder(base: Path, *names: str) -> Path:
    """Return a folder below the base of the cache that only this user can write; create it.

    Its files are executed (compiled code) or used as results (sweep cells), so they must not come
    from another user. An existing base folder keeps its permissions. An InputError refuses a
    folder that belongs to another user, holds files of another user, is a link or a file, cannot be
    written, or could be replaced by others.
    """
    folder = base
    try:
        if base.parts[:1] == ("~",):
            raise FileNotFoundError(errno.ENOENT, "you have no home folder")
        base.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            base.mkdir(mode=0o700)
        _refuse_shared_base(base)
        for name in names:
            folder /= name
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            _refuse_other_owners(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, ValueError) as error:  # a ValueError: the name of the folder holds a NUL
        variable = "DLSIM_CACHE" if base == cache_folder() else "NUMBA_CACHE_DIR"
        reason = getattr(error, "strerror", error)
        is_full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        alone = "compiled code and results are read from there, so it must be yours alone:"
        advice = "free some space on the disk, or" if is_full else alone
        raise InputError(
            f"cache folder {folder} cannot be used: {reason}; {advice} set the environment"
            f" variable {variable} to a folder of your own"
        ) from error
    return folder


def _refuse_shared_base(base: Path) -> None:
    """Raise OSError if another user could put a folder of their own in the place of ours.

    The base may belong to root, and others may write to it if its sticky bit is set, such as /tmp.
    """
    if not hasattr(os, "geteuid"):
        return
    found, user = base.stat(), os.geteuid()
    if found.st_uid not in (user, 0):
        message = f"it belongs to user {found.st_uid}, you are user {user}"
        raise PermissionError(errno.EPERM, message)
    if found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
        message = "other users can write to it (remedy: chmod go-w)"
        raise PermissionError(errno.EPERM, message)


def read_own_file(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes that no other user owns."""
    flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    with open(os.open(path, os.O_RDONLY | sum(flags)), "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
            raise OSError(errno.EINVAL, f"not a file of at most {limit} bytes")
        if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, f"it belongs to user {found.st_uid}")
        return stream.read(limit)


def _refuse_other_owners(folder: Path) -> None:
    """Raise OSError if another user could have written the folder; make it private otherwise."""
    if not hasattr(os, "geteuid"):  # Windows: the profile of a user is private
        return
    found, user = folder.lstat(), os.geteuid()
    if not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.ENOTDIR, "it is a link or a file, where dlsim makes a folder")
    if found.st_uid != user:
        message = f"it belongs to user {found.st_uid}, you are user {user}"
        raise PermissionError(errno.EPERM, message)
    if found.st_mode & 0o077:
        folder.chmod(0o700)
    for path in folder.rglob("*") if found.st_mode & 0o022 else ():
        with contextlib.suppress(FileNotFoundError):
            if (owner := path.lstat().st_uid) != user:
                folder.chmod(stat.S_IMODE(found.st_mode))  # the next run must find it as it was
                raise PermissionError(errno.EPERM, f"user {owner} put {path.name} there")
