"""Divisible loads: what can be cut into pieces of about any size, never inside a record.

A load says how long it is, in units, and cuts itself by shares; a piece of it is fetched where it
is computed: its data travel with it from the head, or, of a file that workers can read too, only
the place in it does (``where="shared"``).
"""

import io
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import StrPath, opened
from dlsim.given import column, option, theirs

#: Where a piece's data come from: sent by the head, or read by the worker from a shared file.
WHERE = ("head", "shared")
#: Bytes that are read at once where a file is searched for the end of a record.
_BLOCK = 1 << 16


class Piece(NamedTuple):
    """A part of a load.

    Attributes
    ----------
    units : float
        How long it is.
    read : callable
        What the worker makes of `data`, before the function gets it.
    data : object
        What is sent.
    load : Load, optional
        The same part as a load, to be cut again where its worker is lost; None: it runs as one.
    """

    units: float
    read: Callable[[Any], Any]
    data: Any
    load: "Load | None" = None


class Load(Protocol):
    """What a head node can divide: arrays, lists, bytes, lines and rows of files, or your own."""

    @property
    def size(self) -> float:
        """Its length in units, positive."""

    def cut(self, shares: Sequence[float]) -> list[Piece | None]:
        """Cut it all into consecutive pieces, each within a record of its share; None: nothing."""


def counts(total: int, shares: Sequence[float]) -> list[int]:
    """Round shares of a total to whole numbers that sum to it, by largest remainder.

    >>> counts(10, [0.5, 0.25, 0.25])
    [5, 3, 2]
    """
    wanted = column("shares", np.array(shares, dtype=float))
    if not len(wanted) or not wanted.sum() > 0:
        raise InputError(f"shares must be at least one, with a positive sum; got {shares!r}")
    wanted = wanted / wanted.sum() * total
    found = np.floor(wanted).astype(np.int64)
    order = np.argsort(found - wanted, kind="stable")
    found[order[: total - int(found.sum())]] += 1
    return [int(n) for n in found]


def _bounds(total: int, shares: Sequence[float]) -> list[tuple[int, int]]:
    return list(pairwise(np.cumsum([0, *counts(total, shares)]).tolist()))


def _itself(data: Any) -> Any:
    return data


@dataclass(frozen=True)
class Items:
    """A sequence that can be sliced: a list, an array by its first axis, bytes; a unit is an item.

    Every function gets what a slice of it is.
    """

    data: Any

    def __post_init__(self) -> None:
        with theirs(f"a load must have a length and slices, as {self.data!r:.60} has not"):
            count = len(self.data) and len(self.data[:1])
        if not count:
            raise InputError("a load must hold at least one item, got none")

    @property
    def size(self) -> float:
        """Number of items."""
        return float(len(self.data))

    def cut(self, shares: Sequence[float]) -> list[Piece | None]:
        """Cut at items."""
        places = _bounds(len(self.data), shares)
        parts = [(end - start, self.data[start:end]) for start, end in places]
        return [Piece(float(n), _itself, part, Items(part)) if n else None for n, part in parts]


def _bytes_of(place: tuple[str, int, int]) -> bytes:
    path, start, end = place
    with opened(path) as stream:
        stream.seek(start)
        data = stream.read(end - start)
    if len(data) != end - start:
        raise InputError(
            f"{path}: ends at byte {start + len(data)}, not at {end}: it was changed; put it back"
        )
    return data


def _text(places: Sequence[Any]) -> str:
    """Return the text of bytes, or of places in a file."""
    return b"".join(one if isinstance(one, bytes) else _bytes_of(one) for one in places).decode(
        "utf-8", "surrogateescape"
    )


def _table(places: Sequence[Any]) -> pd.DataFrame:
    """Return the table of a header and its rows."""
    return pd.read_csv(io.StringIO(_text(places)))


@dataclass(frozen=True)
class File:
    """A text file of lines; a unit is a byte, and no piece ends inside a line.

    A function gets the text of its lines; of a table (`is_table`) whose first line is its header,
    a DataFrame of its rows. A value of a table may hold no line break. `span` is the part of the
    file that is meant, from the first line (below the header) to its end where nothing is said.
    """

    path: str
    where: str = "head"
    is_table: bool = False
    span: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", os.path.abspath(os.fspath(self.path)))
        option("where", self.where, WHERE)
        if self.span == (0, 0):
            with opened(self.path) as stream:
                first = len(stream.readline()) if self.is_table else 0
                object.__setattr__(self, "span", (first, stream.seek(0, os.SEEK_END)))
        if not self.size > 0:
            what = "a row below its header" if self.is_table else "a line"
            raise InputError(f"{self.path}: a load must hold at least {what}, got none")

    @property
    def size(self) -> float:
        """Number of bytes."""
        return float(self.span[1] - self.span[0])

    def cut(self, shares: Sequence[float]) -> list[Piece | None]:
        """Cut at the nearer end of the line into which a cut would fall."""
        first, last = self.span
        with opened(self.path) as stream:
            header = (self.path, 0, len(stream.readline()))
            inner = (_line_end(stream, first + at) for _, at in _bounds(last - first, shares)[:-1])
            ends = np.maximum.accumulate([first, *inner, last]).tolist()
        pieces: list[Piece | None] = []
        for span in pairwise(ends):
            places: list[Any] = [header] * self.is_table + [(self.path, *span)]
            data = places if self.where == "shared" else [_bytes_of(place) for place in places]
            read, units = _table if self.is_table else _text, float(span[1] - span[0])
            part = replace(self, span=span) if units else None
            pieces.append(Piece(units, read, data, part) if part else None)
        return pieces


def _line_end(stream: Any, at: int) -> int:
    """Return the end of a line that is nearest to a place, the earlier one of two."""
    before, found = at, -1
    while before > 0 and found < 0:
        start = max(0, before - _BLOCK)
        stream.seek(start)
        found = stream.read(before - start).rfind(b"\n")
        found, before = (start + found if found >= 0 else -1), start
    stream.seek(at)
    after = at + len(stream.readline())
    return int(found + 1 if at - (found + 1) <= after - at else after)


def items(data: Any) -> Items:
    """Divide a list, an array (by its first axis), bytes, or a DataFrame (by its rows)."""
    return Items(data)


def lines(path: StrPath, where: str = "head") -> File:
    """Divide a text file at the ends of its lines; ``where="shared"``: workers read it too."""
    return File(os.fspath(path), where)


def rows(path: StrPath, where: str = "head") -> File:
    """Divide a CSV file at its rows; of Parquet, divide ``items(pandas.read_parquet(path))``."""
    return File(os.fspath(path), where, is_table=True)
