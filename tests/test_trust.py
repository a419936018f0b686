"""What dlsim trusts: a cache that is the user's alone."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import platformdirs
import pytest

from dlsim import cache, compiled, kernel_files
from dlsim.errors import InputError
from dlsim.study import sweep
from tests.helpers import sweep_functions as functions
from tests.helpers.refusals import require_refusals

STRANGER = 65534
US = os.geteuid() if hasattr(os, "geteuid") else -1
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes of POSIX")
LEAF = f"kernels-{compiled.core_digest('dlsim.realtime.core')}"
#: Makes a process of this user see its own files as a stranger's.
AS_ANOTHER = "import os; us = os.geteuid() + 1; os.geteuid = lambda: us\n"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def give_away(folder):
    """Make a folder another user's: really so as root; else return code that pretends it."""
    if US != 0:
        return AS_ANOTHER
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, STRANGER, STRANGER)
    return ""


# ------------------------------------------------------------------ compiled code


def test_an_older_platformdirs_returns_a_home_that_it_did_not_find(monkeypatch):
    monkeypatch.delenv("DLSIM_CACHE", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda name: f"~/.cache/{name}")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(InputError, match="you have no home folder"):
        cache.private_folder(cache.cache_folder(), "cells")
    assert not Path("~").exists()


# ------------------------------------------------------------------ the folders


def made(folder, mode=0o777):
    folder.mkdir()
    folder.chmod(mode)
    return folder


def make_foreign(folder, patch):
    if give_away(folder):
        patch.setattr(os, "geteuid", lambda: US + 1)


def plant(folder, patch):
    if US != 0:
        pytest.skip("only root can give a file away")
    (folder / "planted").touch()
    os.chown(folder / "planted", STRANGER, STRANGER)


def move_behind_a_link(base, patch):
    base.rename(base.with_name("elsewhere"))
    base.symlink_to("elsewhere")
    base.chmod(0o777)


def refuse_files(number):
    """Return what lets no file be created, as on a disk that is read-only or full."""

    def spoil(base, patch):
        def refuse(**_):
            raise OSError(number, os.strerror(number))

        patch.setattr(tempfile, "TemporaryFile", refuse)

    return spoil


FOREIGN, OPEN = r"it belongs to user \d+, you are user \d+", "other users can write .*chmod go-w"
LINK = "it is a link or a file"
FULL = "No space left on device; free some space on the disk, or set"
#: What is wrong with a folder, made from its base, and how it is refused.
SPOILT = [
    (lambda base, patch: make_foreign(made(base / "cells"), patch), f"base(/cells)?: {FOREIGN}"),
    (make_foreign, f"base: {FOREIGN}"),
    (lambda base, patch: base.chmod(0o777), f"base: {OPEN}"),
    (lambda base, patch: base.chmod(0o775), f"base: {OPEN}"),
    (move_behind_a_link, f"base: {OPEN}"),
    (lambda base, patch: (base / "cells").symlink_to(base.parent), f"base/cells: {LINK}"),
    (lambda base, patch: (made(base / "cells") / "digest").symlink_to(base),
     f"base/cells/digest: {LINK}"),
    (lambda base, patch: (base / "cells").touch(), f"base/cells: {LINK}"),
    (lambda base, patch: plant(made(base / "cells", 0o775), patch),
     f"base/cells: user {STRANGER} put planted there"),
    (refuse_files(errno.EROFS), "base/cells/digest: Read-only file system; compiled code"),
    (refuse_files(errno.ENOSPC), f"base/cells/digest: {FULL}"),
]  # fmt: skip


@posix
@pytest.mark.parametrize(("spoil", "said"), SPOILT)
def test_a_folder_that_is_not_ours_alone_is_refused_every_time(tmp_path, monkeypatch, spoil, said):
    base = tmp_path / "base"
    base.mkdir()
    monkeypatch.setenv("DLSIM_CACHE", str(base))
    spoil(base, monkeypatch)
    words = said.replace(": ", " cannot be used: ", 1) + ".*DLSIM_CACHE to a folder of your own"
    require_refusals([(lambda: cache.private_folder(base, "cells", "digest"), words)] * 2)


@posix
def test_a_folder_of_ours_that_is_open_to_others_is_closed_and_kept(tmp_path):
    leaf = tmp_path / "cells"
    leaf.mkdir()
    (leaf / "kept").write_text("kept")
    for open_to in (0o755, 0o775, 0o777, 0o710):
        leaf.chmod(open_to)
        assert cache.private_folder(tmp_path, "cells") == leaf
        assert mode(leaf) == 0o700
    assert (leaf / "kept").read_text() == "kept"


@posix
def test_a_base_that_was_there_keeps_its_rights_and_a_new_one_is_private(tmp_path):
    old, new = tmp_path / "old", tmp_path / "above" / "new"
    old.mkdir()
    old.chmod(0o1777)  # such as /tmp
    for base in (old, new):
        leaf = cache.private_folder(base, "cells", "digest")
        assert [mode(leaf), mode(leaf.parent)] == [0o700, 0o700]
    assert mode(old) == 0o777 | stat.S_ISVTX
    assert mode(new) == 0o700
    assert mode(new.parent) == mode(tmp_path / "above")


def test_where_there_are_no_owners_the_folder_is_made(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "geteuid", raising=False)  # Windows
    assert cache.private_folder(tmp_path / "base", "cells").is_dir()


@posix
def test_sweeps_keep_cells_in_a_private_folder_or_refuse(tmp_path, monkeypatch):
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path))
    sweep(functions.echo, {"load": [1]}, replicates=1, jobs=1)
    cells = tmp_path / "cells"
    assert {mode(cells), *map(mode, cells.iterdir())} == {0o700}
    monkeypatch.setattr(os, "geteuid", lambda: US + 1)
    with pytest.raises(InputError, match="belongs to user"):
        sweep(functions.echo, {"load": [1]}, replicates=1, jobs=1)


@posix
@pytest.mark.skipif(US != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_not_read(tmp_path, monkeypatch, capsys):
    """A finished cell and a compiled kernel that lie in our folder, but belong to a stranger."""
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path))
    frame = sweep(functions.echo, {"load": [1]}, replicates=1, jobs=1)
    (cell,) = tmp_path.glob("cells/*/*.txt")
    text, line = cell.read_text(), cell.read_text().partition("\n")[0]
    forged = line.replace("1", "2")
    assert forged != line
    cell.write_text(f"{forged}\n{hashlib.sha256(forged.encode()).hexdigest()}\n")
    assert not sweep(functions.echo, {"load": [1]}, replicates=1, jobs=1).equals(frame)
    os.chown(cell, STRANGER, STRANGER)
    assert sweep(functions.echo, {"load": [1]}, replicates=1, jobs=1).equals(frame)
    assert (cell.read_text(), cell.stat().st_uid) == (text, US)

    kernels = kernel_files.KernelFiles(tmp_path, "kernel", None)
    kernels.save("key", "form")
    assert kernels.load("key") == "form"
    (path,) = tmp_path.glob("*.kernel")
    os.chown(path, STRANGER, STRANGER)
    assert kernels.load("key") is None
    assert f"it belongs to user {STRANGER}" in capsys.readouterr().err
    kernels.save("key", "ours")
    assert kernels.load("key") == "ours"


@posix
@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: os.mkfifo(path),
                                  lambda path: path.symlink_to(__file__)])  # fmt: skip
def test_only_a_regular_file_of_the_cache_is_read(tmp_path, make):
    make(tmp_path / "file")
    with pytest.raises(OSError, match=r"not a file of|symbolic link|directory"):
        cache.read_own_file(tmp_path / "file", 2**20)


HOLDER = """import sys, time
from pathlib import Path
from dlsim import cache, compiled, kernel_files
with kernel_files._one_at_a_time(Path(sys.argv[1]), sys.argv[2]):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(os.name != "posix", reason="each compiles for itself")
def test_a_compiling_process_is_waited_for_unless_it_was_killed(tmp_path, monkeypatch):
    words = [sys.executable, "-c", HOLDER, str(tmp_path), "a kernel"]
    monkeypatch.setattr(kernel_files, "MAX_WAIT_SECONDS", 600.0)
    with subprocess.Popen(words, stdout=subprocess.PIPE) as holder:
        try:
            assert holder.stdout.readline() == b"held\n"
            begin = time.monotonic()
            for _ in range(2):
                with kernel_files._one_at_a_time(tmp_path, "another"):
                    assert time.monotonic() - begin < 60
            monkeypatch.setattr(kernel_files, "MAX_WAIT_SECONDS", 0.5)
            begin = time.monotonic()
            with kernel_files._one_at_a_time(tmp_path, "a kernel"):
                assert time.monotonic() - begin >= 0.5
        finally:
            holder.kill()
            holder.wait()
    monkeypatch.setattr(kernel_files, "MAX_WAIT_SECONDS", 600.0)
    with kernel_files._one_at_a_time(tmp_path, "a kernel"):
        pass
