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
class Load:
    """What a head can divide.

    `size` is the length in units (bytes of a file, items of a sequence, parts of a collection), and
    `boundary` returns the first end of a record at or after a position. A worker calls what
    `piece(start, stop)` returns. Parts, which differ in size, are computed one by one.
    """

    size: int
    piece: Callable[[int, int], Callable[[], Any]]
    boundary: Callable[[int], int] = lambda position: position
    is_parts: bool = False


def lines(path: StrPath) -> Load:
    """Divide a text file at the ends of its lines.

    Parameters
    ----------
    path : path
        A UTF-8 file that all workers can read. A function gets the text of whole lines, a str.

    Returns
    -------
    Load
        A load whose unit is a byte.

    Raises
    ------
    InputError
        For a file that cannot be read, is compressed, or is encoded in UTF-16.
    """
    path, size = _open_plain(path, "cut at lines", COMPRESSED | UTF_16)

    def end_of_line(position: int) -> int:
        if position <= 0:
            return 0
        with open_regular(path) as stream:
            stream.seek(position - 1)
            stream.readline()
            return min(stream.tell(), size)

    return Load(size, partial(partial, _read_text, path), end_of_line)


def records(path: StrPath, record_bytes: int, allow_compressed: bool = False) -> Load:
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
    Load
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
    return Load(
        size,
        partial(partial, _read_bytes, path),
        lambda position: -(-position // record_bytes) * record_bytes,
    )


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


def _read_bytes(path: str, start: int, stop: int) -> bytes:
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


def _read_text(path: str, start: int, stop: int) -> str:
    """Read the text between two bytes of a file."""
    return _read_bytes(path, start, stop).decode("utf-8", "surrogateescape")


def _identity(data: Any) -> Any:
    return data


def _parts(parts: Sequence[Any]) -> Load:
    """Divide into parts of a Dask collection, each computed without the graph of the others."""
    dask = import_extra("a Dask collection", "cluster", "dask")

    def piece(start: int, stop: int) -> Callable[[], Any]:
        return partial(dask.optimize(parts[start])[0].compute, scheduler="synchronous")

    return Load(len(parts), piece, is_parts=True)


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
        return _parts(list(parts.ravel() if hasattr(parts, "ravel") else parts))
    try:
        sliced = getattr(data, "iloc", data)  # an array by its first axis, a table by its rows
        size, _ = len(data), sliced[:0]
    except Exception as error:
        raise InputError(
            "a load must be lines(path), records(path, record_bytes), a Dask collection or a "
            f"sequence with a length and slices, got {data!r:.60} ({error})"
        ) from error
    if size and isinstance(data, list | tuple) and all(hasattr(x, "dask") for x in data):
        return _parts(data)
    return Load(size, lambda start, stop: partial(_identity, sliced[start:stop]))
