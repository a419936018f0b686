"""Divisible loads: data that can be cut into pieces at the ends of records."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dlsim.errors import InputError
from dlsim.files import StrPath, open_regular
from dlsim.validate import import_extra, whole

#: By the first bytes of files that are not plain text: their format, and how to convert them.
NOT_PLAIN = {
    b"\x1f\x8b": ("compressed with gzip", "decompress it first: gunzip -k {path}"),
    b"BZh": ("compressed with bzip2", "decompress it first: bunzip2 -k {path}"),
    b"\xfd7zXZ\x00": ("compressed with xz", "decompress it first: unxz -k {path}"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "decompress it first: unzstd {path}"),
    b"PK\x03\x04": ("a zip archive", "unpack it first: unzip {path}"),
    b"\xff\xfe": ("text in UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8 {path}"),
    b"\xfe\xff": ("text in UTF-16", "convert it first: iconv -f UTF-16 -t UTF-8 {path}"),
}


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
    path = os.path.abspath(os.fspath(path))
    with open_regular(path) as stream:
        head = stream.read(max(map(len, NOT_PLAIN)))
        size = stream.seek(0, os.SEEK_END)
    for magic, (what, remedy) in NOT_PLAIN.items():
        if head.startswith(magic):
            raise InputError(
                f"{path} is {what} and cannot be cut at lines; {remedy.format(path=path)}"
            )
    return Lines(path, size)


def records(path: StrPath, record_bytes: int) -> Records:
    """Divide a binary file into records of one length.

    Parameters
    ----------
    path : path
        A file that all workers can read. A function gets the bytes of whole records; see
        `numpy.frombuffer`.
    record_bytes : int
        Length of a record in bytes.

    Returns
    -------
    Records
        A load whose unit is a byte.

    Raises
    ------
    InputError
        For a file that cannot be read, or that does not consist of whole records.
    """
    whole("record_bytes", record_bytes)
    path = os.path.abspath(os.fspath(path))
    with open_regular(path) as stream:
        size = stream.seek(0, os.SEEK_END)
    if size % record_bytes:
        raise InputError(
            f"{path} has {size} bytes, which is no multiple of record_bytes={record_bytes}"
        )
    return Records(path, size, record_bytes)


def as_load(data: Any) -> Load:
    """Return data as a load: a load, a Dask collection, delayed values, or a sequence."""
    if isinstance(data, Load):
        return data
    if isinstance(data, str):
        raise InputError(
            f"a load must be lines(path), records(path, record_bytes) or a sequence, got the text "
            f"{data!r:.60}; of a file use lines({data!r:.60})"
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
