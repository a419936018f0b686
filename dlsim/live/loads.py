"""Divisible loads: data that can be cut into pieces at the ends of records."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlsim.errors import InputError
from dlsim.files import StrPath, open_regular
from dlsim.validate import flag, import_extra, whole

#: Patterns of the first bytes of compressed files: what they are, and what makes them plain.
COMPRESSED = {
    rb"\x1f\x8b\x08": ("compressed with gzip", "gunzip -k"),
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": ("compressed with bzip2", "bunzip2 -k"),
    rb"\xfd7zXZ\x00": ("compressed with xz", "unxz -k"),
    rb"\x5d.{4}\xff{8}": ("compressed with lzma", "unlzma -k"),
    rb"[\x25-\x28]\xb5\x2f\xfd": ("compressed with zstd", "unzstd"),
    rb"\x04\x22\x4d\x18|\x02\x21\x4c\x18": ("compressed with lz4", "unlz4"),
    rb"\xff\x06\x00\x00sNaPpY": ("compressed with snappy", "snzip -dk"),
    rb"\x1f\x9d[\x89-\x90]": ("compressed with compress", "uncompress -k"),
    rb"PK(\x03\x04|\x05\x06|\x07\x08)": ("a zip archive", "unzip"),
    rb"7z\xbc\xaf\x27\x1c": ("a 7z archive", "7z x"),
}
#: The same of text whose line ends cannot be found byte by byte.
UTF_16 = {rb"\xff\xfe|\xfe\xff": ("text in UTF-16", "iconv -f UTF-16 -t UTF-8")}
#: Number of first bytes by which these files are known.
FIRST_BYTES = 16


@dataclass(frozen=True)
class Lines:
    """The lines of a text file; the unit is a byte. A piece is read on its worker."""

    path: str
    size: int

    def boundary(self, position: int) -> int:
        """Return the end of the line to which the byte before the position belongs."""
        if position <= 0:
            return 0
        with open_regular(self.path) as stream:
            stream.seek(position - 1)
            stream.readline()
            return min(stream.tell(), self.size)

    def piece(self, start: int, stop: int) -> Callable[[], str]:
        """Return a function that reads whole lines."""
        return partial(read_text_range, self.path, start, stop)


@dataclass(frozen=True)
class Records:
    """The records of equal length of a binary file; the unit is a byte."""

    path: str
    size: int
    record_bytes: int

    def boundary(self, position: int) -> int:
        """Round a position up to a multiple of the record's length."""
        return -(-position // self.record_bytes) * self.record_bytes

    def piece(self, start: int, stop: int) -> Callable[[], bytes]:
        """Return a function that reads whole records."""
        return partial(read_byte_range, self.path, start, stop)


@dataclass(frozen=True)
class Items:
    """A list, an array (cut along its first axis) or a table (cut by rows); the unit is an item."""

    data: Any
    size: int

    def boundary(self, position: int) -> int:
        """Return the position: an item is a record."""
        return position

    def piece(self, start: int, stop: int) -> Callable[[], Any]:
        """Return a function that holds a slice, which the head sends to the worker."""
        return partial(_identity, getattr(self.data, "iloc", self.data)[start:stop])


@dataclass(frozen=True)
class Parts:
    """Parts of a Dask collection, or delayed values; a piece is one part."""

    parts: Sequence[Any]

    @property
    def size(self) -> int:
        """Number of parts."""
        return len(self.parts)

    def boundary(self, position: int) -> int:
        """Return the position: a part is a record."""
        return position

    def piece(self, start: int, stop: int) -> Callable[[], Any]:
        """Return a function that computes one part, without the graph of the other parts."""
        dask = import_extra("a Dask collection", "cluster", "dask")
        return partial(dask.optimize(self.parts[start])[0].compute, scheduler="synchronous")


#: What a head can divide. `size` is the length in units; `boundary` returns the first end of a
#: record at or after a position; a worker calls what `piece` returns.
Load = Lines | Records | Items | Parts


def read_byte_range(path: str, start: int, stop: int) -> bytes:
    """Read the bytes of a file from start to stop; raise InputError if it ends before."""
    with open_regular(path) as stream:
        stream.seek(start)
        data = stream.read(stop - start)
    if len(data) != stop - start:
        raise InputError(
            f"{path} was changed: it ends at byte {start + len(data)} instead of {stop}; restore "
            "the file, or submit the load again"
        )
    return data


def read_text_range(path: str, start: int, stop: int) -> str:
    """Read the text between two bytes of a file."""
    return read_byte_range(path, start, stop).decode("utf-8", "surrogateescape")


def _identity(data: Any) -> Any:
    return data


def lines(path: StrPath) -> Lines:
    """Divide a text file at the ends of its lines.

    Parameters
    ----------
    path : path
        A UTF-8 file that all workers can read. A function gets the text of whole lines, a str.

    Returns
    -------
    Lines
        A load whose unit is a byte.

    Raises
    ------
    InputError
        For a file that cannot be read, is compressed, or is encoded in UTF-16.
    """
    path, size = _open_plain(path, "cut at lines", COMPRESSED | UTF_16)
    return Lines(path, size)


def _open_plain(
    path: StrPath, purpose: str, refused: dict[bytes, tuple[str, str]], switch: str = ""
) -> tuple[str, int]:
    """Return the absolute path and the size of a file; refuse it by its first bytes."""
    path = os.path.abspath(os.fspath(path))
    with open_regular(path) as stream:
        first = stream.read(FIRST_BYTES)
        size = stream.seek(0, os.SEEK_END)
    for pattern, (what, command) in refused.items():
        if re.match(pattern, first, re.DOTALL):
            raise InputError(
                f"{path} is {what} and cannot be {purpose}; convert it first: {command} {path}"
                f"{switch}"
            )
    return path, size


def records(path: StrPath, record_bytes: int, allow_compressed: bool = False) -> Records:
    """Divide a binary file into records of one length.

    Parameters
    ----------
    path : path
        A file that all workers can read. A function gets the bytes of whole records; see
        `numpy.frombuffer`.
    record_bytes : int
        Length of a record in bytes.
    allow_compressed : bool
        Whether to accept a file that begins like a compressed one, because its records do.

    Returns
    -------
    Records
        A load whose unit is a byte.

    Raises
    ------
    InputError
        For a file that cannot be read, is compressed, or does not consist of whole records.
    """
    whole("record_bytes", record_bytes)
    refused = {} if flag("allow_compressed", allow_compressed) else COMPRESSED
    switch = ", or pass allow_compressed=True if its records begin so"
    path, size = _open_plain(path, "cut into records", refused, switch)
    if size % record_bytes:
        raise InputError(
            f"{path} has {size} bytes, which is no multiple of record_bytes={record_bytes}"
        )
    return Records(path, size, record_bytes)


def as_load(data: Any) -> Load:
    """Return data as a load: a load, a Dask collection, delayed values, or a sequence."""
    if isinstance(data, Load):
        return data
    if isinstance(data, str | os.PathLike):
        raise InputError(
            f"a load must be lines(path), records(path, record_bytes) or a sequence, got "
            f"{data!r:.60}; of a file use lines({os.fspath(data)!r:.60})"
        )
    if hasattr(data, "to_delayed"):
        distributed = import_extra("a Dask collection", "cluster", "distributed")
        if distributed.futures_of(data):
            raise InputError("the parts of this collection are computed; give it without persist()")
        parts = data.to_delayed()
        return Parts(list(parts.ravel() if hasattr(parts, "ravel") else parts))
    try:
        size, _ = len(data), getattr(data, "iloc", data)[:0]
    except Exception as error:
        raise InputError(
            "a load must be lines(path), records(path, record_bytes), a Dask collection or a "
            f"sequence with a length and slices, got {data!r:.60} ({error})"
        ) from error
    if size and isinstance(data, list | tuple) and all(hasattr(x, "dask") for x in data):
        return Parts(data)
    return Items(data, size)
