"""Folders that dlsim writes into: it renews the files that it wrote there, and no others.

The file `RECORD_FILE` makes a folder an output folder of dlsim. Its first line names the command
that made the folder. Every further line holds the name and the digest of a file, written before the
file appears. A file whose digest is not on record was made or changed by a person: dlsim neither
overwrites nor removes it. No link below the folder is followed.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Self

from dlsim import files
from dlsim.errors import InputError
from dlsim.files import (
    PART_FILE,
    StrPath,
    numbered_lines,
    open_regular,
    parse_json,
    write_bytes,
    write_error,
)

#: The file that makes a folder an output folder, and the version of its lines.
RECORD_FILE, RECORD_VERSION = ".dlsim-record.jsonl", 1
#: Environment variable that names a file in which this process also lists the files it writes.
WRITTEN_FILES_VARIABLE = "DLSIM_WRITTEN_FILES"
#: What a user of a command can do about a folder of results that cannot be used.
OTHER_FOLDER_REMEDY = "choose a new or empty folder with --out"
#: What an output folder may hold, as an error message says it.
FOLDER_KINDS = {
    "results": "results of dlsim reproduce or of a notebook",
    "lab": "the copy of the notebooks that dlsim lab made, with your changes",
}


def content_digest(data: bytes) -> str:
    """Return the SHA-256 digest of a file's content, in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file that are JSON objects; skip damaged lines."""
    if not os.path.exists(path):
        return
    for number, line in numbered_lines(path):
        with contextlib.suppress(InputError, UnicodeDecodeError):
            if isinstance(row := parse_json(path, line.decode(), number), dict):
                yield row


class OutputFolder:
    """A folder that dlsim writes into.

    Its `kind` is a key of `FOLDER_KINDS`. An error message tells the user to do the `remedy`.
    """

    def __init__(
        self, folder: StrPath, kind: str = "results", remedy: str = OTHER_FOLDER_REMEDY
    ) -> None:
        if not isinstance(folder, str | os.PathLike):
            raise InputError(f"the folder of {kind} must be a path, got out={folder!r}")
        self.name, self.folder, self.kind = os.fspath(folder), Path(os.path.abspath(folder)), kind
        self.remedy = remedy
        self.is_acquired = False
        self.written: list[str] = []

    def _error(self, what: str, first: str = "") -> InputError:
        return InputError(f"{self.name}: {what}; nothing was written there: {first}{self.remedy}")

    def check(self) -> Self:
        """Refuse a folder that dlsim did not make or cannot write to; create nothing."""
        record = self.folder / RECORD_FILE
        try:
            names = os.listdir(self.folder) if os.path.lexists(self.folder) else []
            present = sorted(name for name in names if not PART_FILE.fullmatch(name))
            files.check_writable(self.folder)
        except OSError as error:
            raise self._error(f"cannot be written to ({error.strerror})") from error
        if not present:
            return self
        if RECORD_FILE not in present:
            some = ", ".join(present[:3]) + ", ..." * (len(present) > 3)
            raise self._error(f"not empty, and this dlsim did not make it (it holds {some})")
        head = {} if record.is_symlink() else next(read_json_lines(record), {})
        if head.get("format") != RECORD_VERSION or head.get("dlsim") not in FOLDER_KINDS:
            raise self._error(f"its {RECORD_FILE} is damaged, or of another version of dlsim")
        if head["dlsim"] != self.kind:
            raise self._error(f"holds {FOLDER_KINDS[head['dlsim']]}")
        return self

    def acquire(self) -> Self:
        """Make a new or empty folder an output folder; refuse others as `check` does."""
        if not self.is_acquired:
            record = self.check().folder / RECORD_FILE
            if not os.path.exists(record):
                first = json.dumps({"dlsim": self.kind, "format": RECORD_VERSION})
                write_bytes(record, f"{first}\n".encode())
            self.is_acquired = True
        return self

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other runs out of the folder; the lock ends with the process."""
        try:
            self.check().folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(self.folder, error) from error
        # Lock the folder, not the record: a run that begins at once may replace the record.
        busy = self._error("another dlsim is at work there", "wait for it, or ")
        with files.exclusive_lock(self.folder, busy):
            self.acquire()
            yield

    def recorded(self) -> set[tuple[str, str]]:
        """Return the name and digest of every file that dlsim ever wrote here."""
        rows = read_json_lines(self.folder / RECORD_FILE)
        pairs = ((row.get("file"), row.get("sha256")) for row in rows)
        return {
            (name, sha) for name, sha in pairs if isinstance(name, str) and isinstance(sha, str)
        }

    def _path_of(self, name: str) -> Path:
        """Return the path of a name below the folder; refuse a name that leads out of it."""
        parts = PurePosixPath(name).parts
        if not parts or ".." in parts or name.startswith("/") or (os.name == "nt" and ":" in name):
            what = f"{self.name}: a file name must lead to a place below the folder, got {name!r}"
            raise InputError(f"{what}; use a relative name without '..'")
        return self.folder.joinpath(*parts)

    def _is_below_link(self, name: str) -> bool:
        """Tell whether a folder that a name lies in is a link or a file."""
        parents = list(self._path_of(name).relative_to(self.folder).parents)[:-1]
        places = [self.folder / parent for parent in parents]
        return any(path.is_symlink() or (path.exists() and not path.is_dir()) for path in places)

    def file_digest(self, name: str) -> str | None:
        """Return the digest of a file below the folder.

        It is None where nothing is, and "" for what is not a plain file of this folder: a folder, a
        link, or any name below a link or a file.
        """
        path, is_apart = self._path_of(name), self._is_below_link(name)
        if not is_apart and not os.path.lexists(path):
            return None
        if is_apart or path.is_symlink() or not path.is_file():
            return ""
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def record(self, name: str, sha256: str) -> None:
        """Put the digest of a file on record, before the file appears."""
        line = (json.dumps({"file": name, "sha256": sha256}) + "\n").encode()
        is_new = (name, sha256) not in self.acquire().recorded()
        places = [str(self.folder / RECORD_FILE)] * is_new
        places += filter(None, [os.environ.get(WRITTEN_FILES_VARIABLE)])
        for place in places:
            with open(place, "a+b") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - 1))
                is_whole = size == 0 or stream.read(1) == b"\n"  # a full disk may have cut a line
                stream.write(line if is_whole else b"\n" + line)

    def require_unchanged(self, *names: str) -> None:
        """Refuse to go on if one of the files of these names is not as dlsim wrote it."""
        recorded, digests = self.recorded(), {name: self.file_digest(name) for name in names}
        changed = [
            str(self.folder / name)
            for name, sha256 in digests.items()
            if sha256 is not None and (name, sha256) not in recorded
        ]
        if changed:
            shown = ", ".join(changed[:3]) + f", and {len(changed) - 3} more" * (len(changed) > 3)
            rule = "dlsim overwrites only what it wrote itself"
            remedy = f"move away what you want to keep, or {self.remedy}"
            raise InputError(f"{shown}: not as dlsim wrote it; {rule}: {remedy}")

    def remove(self, name: str) -> None:
        """Remove a file that dlsim wrote; leave one that it did not write, or that was changed."""
        sha256 = self.acquire().file_digest(name)
        if sha256 and (name, sha256) in self.recorded():
            self._path_of(name).unlink()

    def write(self, name: str, data: bytes | Iterable[bytes]) -> Path:
        """Write a file completely or not at all; overwrite only files that dlsim wrote.

        The name, such as "data/mcdf-fig4.csv", leads to a place below the folder. Data that come
        in parts are not kept in memory.

        Raises
        ------
        InputError
            If a person made or changed the file that is there, or if a link or a folder is there.
        """
        path, digest = self._path_of(name), hashlib.sha256()
        self.acquire()

        def parts() -> Iterator[bytes]:
            for part in [data] if isinstance(data, bytes) else data:
                digest.update(part)
                yield part

        def record() -> None:
            if self.file_digest(name) != digest.hexdigest():
                self.require_unchanged(name)
            self.record(name, digest.hexdigest())

        if self.file_digest(name) == "":  # `write_bytes` would follow a link
            self.require_unchanged(name)
        write_bytes(path, parts(), ready=record)
        self.written.append(name)
        return path
