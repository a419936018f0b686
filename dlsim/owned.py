"""Folders that dlsim writes into: what it wrote there it may renew, and nothing else.

The file `RECORD` makes a folder dlsim's: its first line says by which command, every other
one holds the digest of a file's content, noted before the file appears. A file whose content
is not noted is somebody else's, or was changed: it is moved aside, never overwritten.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
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

#: The file that makes a folder dlsim's, and the version of its lines.
RECORD, FORMAT = ".dlsim-record.jsonl", 1
#: Where files that were changed since dlsim wrote them are moved to.
ASIDE = "changed"
#: Environment variable that names the file where what this process writes is listed, too.
WROTE_VARIABLE = "DLSIM_WROTE"
#: What a record may be of, in the words of a refusal.
KINDS = {
    "results": "results of dlsim reproduce or of a notebook",
    "lab": "the copy of the notebooks that dlsim lab made, with your changes",
}


def digest(data: bytes) -> str:
    """Return the digest by which a content is known."""
    return hashlib.sha256(data).hexdigest()


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file that are JSON objects; a damaged line vouches for nothing."""
    if not path.exists():
        return
    for number, line in numbered_lines(path):
        with contextlib.suppress(InputError, UnicodeDecodeError):
            if isinstance(found := parse_json(path, line.decode(), number), dict):
                yield found


class Owned:
    """A folder of dlsim's."""

    def __init__(self, folder: StrPath, kind: str = "results", remedy: str = "") -> None:
        self.name, self.folder, self.kind = os.fspath(folder), Path(os.path.abspath(folder)), kind
        self.remedy = remedy or "choose another folder"
        self.claimed = False
        self.written: list[str] = []

    def _refusal(self, what: str, first: str = "") -> InputError:
        return InputError(f"{self.name}: {what}; nothing was written there: {first}{self.remedy}")

    def check(self) -> Self:
        """Refuse a folder that is somebody else's, or cannot be written to; make nothing."""
        try:
            names = os.listdir(self.folder) if os.path.lexists(self.folder) else []
            there = sorted(name for name in names if not PART_FILE.fullmatch(name))
            files.check_writable(self.folder)
        except OSError as error:
            raise self._refusal(f"cannot be written to ({error.strerror})") from error
        if there and RECORD not in there:
            some = ", ".join(there[:3]) + ", ..." * (len(there) > 3)
            raise self._refusal(f"not empty, and this dlsim did not make it (it holds {some})")
        if there:
            head = next(objects(self.folder / RECORD), {})
            if head.get("format") != FORMAT or head.get("dlsim") not in KINDS:
                raise self._refusal(f"its {RECORD} is damaged, or of another version of dlsim")
            if head["dlsim"] != self.kind:
                raise self._refusal(f"holds {KINDS[head['dlsim']]}")
        return self

    def claim(self) -> Self:
        """Make the folder dlsim's if it is new or empty; refuse it as `check` does."""
        if not self.claimed:
            record = self.check().folder / RECORD
            if not record.exists():
                first = json.dumps({"dlsim": self.kind, "format": FORMAT})
                write_bytes(record, f"{first}\n".encode())
            self.claimed = True
        return self

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out of the folder; the system ends this with the process."""
        try:
            self.check().folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(self.folder, error) from error
        # the folder, not the record: of two who make a record one would lock a lost one
        busy = self._refusal("another dlsim is at work there", "wait for it, or ")
        with files.exclusive_lock(self.folder, busy):
            self.claim()
            yield

    def known(self) -> set[tuple[str, str]]:
        """Return name and digest of everything that dlsim ever wrote here."""
        rows = objects(self.folder / RECORD)
        return {(row["file"], row["sha256"]) for row in rows if row.keys() >= {"file", "sha256"}}

    def content(self, name: str) -> str | None:
        """Return the digest of what lies under a name; None for nothing, "" for no plain file."""
        path = self.folder / name
        if not os.path.lexists(path):
            return None
        if path.is_symlink() or not path.is_file():
            return ""
        with open_regular(path) as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    def note(self, name: str, sha256: str) -> None:
        """Put a content on record before it appears."""
        line = json.dumps({"file": name, "sha256": sha256}) + "\n"
        fresh = (name, sha256) not in self.claim().known()
        places = [str(self.folder / RECORD)] * fresh + [os.environ.get(WROTE_VARIABLE, "")]
        for place in filter(None, places):
            with open(place, "a+b") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - 1))
                whole = size == 0 or stream.read(1) == b"\n"  # a full disk may have cut a line
                stream.write(line.encode() if whole else b"\n" + line.encode())

    def _aside(self, name: str) -> None:
        """Move what lies under a name out of the way, and say so."""
        source, target, number = self.folder / name, self.folder / ASIDE / name, 1
        while os.path.lexists(target):
            number += 1
            target = target.with_name(f"{source.stem}-{number}{source.suffix}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(source, target)
        except OSError as error:
            raise write_error(target, error) from error
        what = f"dlsim: {source} is not as dlsim wrote it: kept as {target}"
        print(what, file=sys.stderr, flush=True)

    def clear(self, name: str) -> None:
        """Leave nothing under a name: remove what dlsim wrote, move aside what it did not."""
        there = self.claim().content(name)
        if there and (name, there) in self.known():
            (self.folder / name).unlink()
        elif there is not None:
            self._aside(name)

    def write(self, name: str, data: bytes | Iterable[bytes]) -> Path:
        """Write a file whole or not at all, over nothing but what dlsim wrote.

        Data may come in parts, which are not kept in memory.
        """
        path, summed = self.claim().folder / name, hashlib.sha256()

        def parts() -> Iterator[bytes]:
            for part in [data] if isinstance(data, bytes) else data:
                summed.update(part)
                yield part

        def take_the_name() -> None:
            there, sha256 = self.content(name), summed.hexdigest()
            if there is not None and there != sha256 and (name, there) not in self.known():
                self._aside(name)
            self.note(name, sha256)

        if path.is_symlink():  # would be followed
            self._aside(name)
        write_bytes(path, parts(), ready=take_the_name)
        self.written.append(name)
        return path
