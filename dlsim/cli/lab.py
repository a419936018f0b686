"""``dlsim lab``: JupyterLab on a copy of the notebooks that belongs to the user.

A file that is still as it was copied follows the suite; one that was changed is never touched
again.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from dlsim import files
from dlsim.errors import InputError
from dlsim.owned import Owned, digest

#: The notebook that opens first.
FIRST = "notebooks/00-start-here.ipynb"
_LINK = re.compile(r"""(?:]\(|src=\\?["'])\.\./(data/[\w./-]+)""")


def material() -> Iterator[tuple[str, Path]]:
    """Yield the notebooks and the files that their text links to."""
    linked: set[str] = set()
    for path in files.suite_notebooks().values():
        yield f"notebooks/{path.name}", path
        linked.update(_LINK.findall(files.read_text(path)))
    for name in sorted(linked):
        source = files.shared_folder("notebooks").parent / name
        if source.is_file() and ".." not in source.parts:
            yield name, source


def copy(folder: Path) -> dict[str, list[str]]:
    """Copy what the user did not change; return the names copied, updated, and kept as they are."""
    if folder.resolve() == files.shared_folder("notebooks").parent.resolve():
        raise InputError(f"{folder}: holds the notebooks of dlsim itself; choose another --dir")
    home = Owned(folder, "lab", "choose another folder with --dir").claim()
    done: dict[str, list[str]] = {"copied": [], "updated": [], "kept": []}
    known = home.known()
    for name, source in material():
        ours = files.read_bytes(source)
        try:
            theirs = home.content(name)
        except OSError as error:
            raise InputError(f"{folder / name}: cannot be read ({error.strerror}); choose another "
                             "--dir") from error  # fmt: skip
        if theirs == digest(ours):
            continue
        what = "copied" if theirs is None else "updated" if (name, theirs) in known else "kept"
        if what != "kept":
            home.write(name, ours)
        done[what].append(name)
    return done


def command(args: argparse.Namespace, folder: Path) -> list[str]:
    """Return the words that start JupyterLab on a copy; what the user gave comes last."""
    words = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder.absolute()}"]
    if (folder / FIRST).is_file():
        words.append(f"--LabApp.default_url=/lab/tree/{quote(FIRST)}")
    words += ["--no-browser"] * args.no_browser
    words += [f"--ServerApp.port={args.port}"] if args.port is not None else []
    return words + [word for word in args.extra if word != "--"]


def environment() -> dict[str, str]:
    """Return what JupyterLab runs in: it asks nobody for news, and keeps panels with a notebook.

    What the user has set otherwise stays; a panel whose state is not kept is not found again
    when its notebook is opened the next time.
    """
    places = str(files.shared_folder("data") / "lab"), os.environ.get("JUPYTER_CONFIG_PATH", "")
    return os.environ | {"JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, places))}


def main(args: argparse.Namespace) -> int:
    """Copy the notebooks and serve them until JupyterLab ends."""
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
        os.execve(words[0], words, environment())
    return subprocess.call(words, env=environment())
