"""``dlsim lab``: JupyterLab on a copy of the notebooks that belongs to the user.

The copy holds what was copied when, by digest, in a hidden file. A file that is still as it
was copied follows the suite; one that was changed is never touched again.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from dlsim.errors import InputError
from dlsim.files import shared_folder, write_bytes, write_text

#: Where the copy keeps the digests of what was copied.
RECORD = ".dlsim-copied.json"
#: The notebook that opens first.
FIRST = "notebooks/00-start-here.ipynb"
_LINK = re.compile(r"""(?:]\(|src=\\?["'])\.\./(data/[\w./-]+)""")


def material() -> Iterator[tuple[str, Path]]:
    """Yield the notebooks and the files that their text links to.

    Yields
    ------
    name : str
        Path below the copy.
    source : Path
        The file of the suite.
    """
    notebooks = shared_folder("notebooks")
    linked: set[str] = set()
    for path in sorted(notebooks.glob("*.ipynb")):
        yield f"notebooks/{path.name}", path
        linked.update(_LINK.findall(path.read_text(encoding="utf-8")))
    for name in sorted(linked):
        source = notebooks.parent / name
        if source.is_file() and ".." not in source.parts:
            yield name, source


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _record(folder: Path) -> dict[str, str]:
    """Return what was copied when; a record that cannot be read protects every file."""
    try:
        found = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _content(target: Path) -> bytes | None:
    """Return what lies at a place of the copy: None for nothing, b"" for what is no file."""
    if not os.path.lexists(target):
        return None
    return target.read_bytes() if target.is_file() and not target.is_symlink() else b""


def copy(folder: Path) -> dict[str, list[str]]:
    """Copy the notebooks and their pictures, and leave alone what the user changed.

    Parameters
    ----------
    folder : Path
        Of the copy; made if missing.

    Returns
    -------
    dict of str to list of str
        Names of the files that were copied, updated or kept (changed by the user).

    Raises
    ------
    InputError
        For a folder that cannot be written to, or the suite's own.
    """
    known, done = _record(folder), {"copied": [], "updated": [], "kept": []}  # type: ignore[var-annotated]
    if folder.resolve() == shared_folder("notebooks").parent.resolve():
        raise InputError(f"{folder}: holds the notebooks of dlsim itself; choose another --dir")
    fresh = dict(known)
    for name, source in material():
        ours, target = source.read_bytes(), folder / name
        try:
            theirs = _content(target)
        except OSError as error:
            raise InputError(f"{target}: cannot be read ({error.strerror}); choose another --dir"
                             ) from error  # fmt: skip
        fresh[name] = _digest(ours)
        if theirs == ours:
            continue
        if theirs is not None and known.get(name) != _digest(theirs):
            done["kept"].append(name)
            fresh[name] = known.get(name, "")
            continue
        write_bytes(target, ours)
        done["copied" if theirs is None else "updated"].append(name)
    if fresh != known:
        write_text(folder / RECORD, json.dumps(fresh, indent=1, sort_keys=True) + "\n")
    return done


def command(args: argparse.Namespace, folder: Path) -> list[str]:
    """Return the words that start JupyterLab on a copy.

    Parameters
    ----------
    args : Namespace
        no_browser, port, extra.
    folder : Path
        The copy.

    Returns
    -------
    list of str
        This Python, its module jupyterlab, and options; what the user gave comes last.
    """
    words = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder.absolute()}"]
    if (folder / FIRST).is_file():
        words.append(f"--LabApp.default_url=/lab/tree/{quote(FIRST)}")
    words += ["--no-browser"] * args.no_browser
    words += [f"--ServerApp.port={args.port}"] if args.port is not None else []
    return words + [word for word in args.extra if word != "--"]


def main(args: argparse.Namespace) -> int:
    """Copy the notebooks and serve them until JupyterLab ends.

    Parameters
    ----------
    args : Namespace
        dir, no_browser, port, extra.

    Returns
    -------
    int
        That of JupyterLab; on POSIX this process becomes JupyterLab.

    Raises
    ------
    InputError
        Where JupyterLab is missing, the port is none, or the folder cannot be written to.
    """
    if find_spec("jupyterlab") is None:
        raise InputError("JupyterLab is not installed; pip install jupyterlab, then again")
    if args.port is not None and not 0 < args.port < 65536:
        raise InputError(f"--port must be from 1 to 65535, got {args.port}")
    folder = Path(args.dir).expanduser()
    done = copy(folder)
    counts = ", ".join(f"{len(names)} {word}" for word, names in done.items() if names)
    print(f"notebooks in {folder}: {counts or 'all there, none changed'}")
    for name in done["kept"]:
        print(f"  {name} was changed, or run and saved, there and stays; "
              "move it away to get the suite's own")  # fmt: skip
    sys.stdout.flush()
    words = command(args, folder)
    if os.name == "posix":
        os.execv(words[0], words)
    return subprocess.call(words)
