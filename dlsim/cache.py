"""The folder of compiled kernels and finished sweep cells, and what it is named by."""

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
def source_digest() -> str:
    """Return a short digest of every Python source of the package."""
    shared = PACKAGE_ROOT / "_share"  # examples for users, in an installed package alone
    return sources_digest(path for path in PACKAGE_ROOT.rglob("*.py") if shared not in path.parents)


def sources_digest(paths: Iterable[Path]) -> str:
    """Return a short digest of some sources of the package."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(PACKAGE_ROOT).as_posix().encode() + b"\0")
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
            _refuse_other_owners(folder)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        variable = "DLSIM_CACHE" if base == cache_folder() else "NUMBA_CACHE_DIR"
        raise InputError(
            f"cache folder {folder} cannot be used: {error.strerror}; what is read from there is"
            " trusted as compiled code and as results, so it must be yours alone: set the"
            f" environment variable {variable} to a folder of your own"
        ) from error
    return folder


def _refuse_other_owners(folder: Path) -> None:
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
