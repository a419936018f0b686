"""What a head wrote down as it happened: measurements, promises, chunks, results, ends.

After a kill it tells which loads were promised and not finished, and which of their chunks are:
a chunk's result counts once, and one that was not written is computed again. Results are written
as data, never as code: numbers, texts, lists, dicts and arrays; another kind is computed again.
"""

import base64
import io
import json
import os
import pkgutil
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlsim.errors import InputError
from dlsim.files import DEPTH, StrPath, opened
from dlsim.ledger import LONGEST, EventLog, kind_of_log, said
from dlsim.live.costs import Sample
from dlsim.live.loads import File, Load

EVENTS = ("sample", "job", "chunks", "result", "end")
#: A chunk's place: the cuts that led to it.
Key = tuple[int, ...]


def function_named(name: str) -> Callable[..., Any]:
    """Import ``module:function``, or refuse it."""
    try:
        found = pkgutil.resolve_name(name if ":" in name else f"{name}:")
    except (Exception, SystemExit) as error:  # whatever an import raises; a script may end itself
        raise InputError(
            f"{name}: cannot be imported ({type(error).__name__}: {error}); name it as "
            "module:function, from a folder where Python finds the module"
        ) from error
    if not callable(found):
        raise InputError(f"{name}: is no function; name one")
    return found


def name_of(function: Callable[..., Any]) -> str:
    """Return ``module:function`` where it can be imported under that name, else one of its own."""
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
    with suppress(InputError):
        if not name.startswith("__main__") and function_named(name) is function:
            return name
    return f"{name}#{id(function)}"


def _encoded(value: Any) -> Any:
    """Return a value as JSON gives it back exactly; None where it would not."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        stream = io.BytesIO()
        np.save(stream, value, allow_pickle=False)
        return {"npy": base64.b64encode(stream.getvalue()).decode()}
    return {"json": value} if _is_plain(value) else None


def _is_plain(value: Any, depth: int = 1) -> bool:
    if type(value) in (list, dict):
        inner = value.values() if type(value) is dict else value
        keys = value if type(value) is dict else ()
        within = depth < DEPTH // 2 and all(type(key) is str for key in keys)
        return within and all(_is_plain(one, depth + 1) for one in inner)
    if type(value) in (int, float):
        return bool(abs(value) <= sys.float_info.max)
    return type(value) in (str, bool, type(None))


def _decoded(code: dict[str, Any]) -> Any:
    if "npy" in code:
        return np.load(io.BytesIO(base64.b64decode(code["npy"])), allow_pickle=False)
    return code["json"]


def _mark(path: str) -> list[int]:
    """Return what changes with a file's content."""
    with opened(path) as stream:
        found = os.fstat(stream.fileno())
    return [found.st_size, found.st_mtime_ns]


def _part(row: dict[str, Any], span: list[int]) -> File:
    first, last = span
    return File(row["path"], row["where"], row["is_table"], (first, last))


@dataclass
class Unfinished:
    """A load that was promised and has no end: its row, its chunks, and their results."""

    row: dict[str, Any]
    cut: dict[Key, Load]
    done: dict[Key, Any] = field(default_factory=dict)

    @property
    def left(self) -> list[tuple[Key, Load]]:
        """The chunks that are to be computed yet."""
        return [(key, load) for key, load in self.cut.items() if key not in self.done]


class Journal(EventLog):
    """The log of a head in an SQLite file; one head at a time writes to it."""

    KIND = kind_of_log(0x646C7368, "a log of a head", "make one with Head(log=path)", EVENTS)

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        self.samples: dict[str, list[Sample]] = {}
        self.unfinished: dict[int, Unfinished] = {}
        self._last = -1
        with ExitStack() as stack:
            stack.callback(super().close)
            stack.enter_context(self.alone())
            self.tell(self._take)
            for number, one in self.unfinished.items():
                if _mark(one.row["path"]) != one.row["mark"]:
                    raise InputError(
                        f"{one.row['path']} was changed since load {number} was promised: put it "
                        "back, or use another log"
                    )
            self._open = stack.pop_all()

    def close(self) -> None:
        """Let others write."""
        self._open.close()

    def _take(self, kind: str, row: dict[str, Any]) -> None:
        """Let what is known be what an event makes it."""
        if kind == "sample":
            self.samples.setdefault(row["function"], []).append(Sample(*row["sample"]))
        elif kind == "job":
            self._last = max(self._last, row["job"])
            if row["promise"][0]:
                self.unfinished[row["job"]] = Unfinished(row, {(): _part(row, row["span"])})
        elif kind == "end":
            self.unfinished.pop(row["job"], None)
        elif one := self.unfinished.get(row["job"]):
            if kind == "result":
                one.done[tuple(row["key"])] = _decoded(row["result"])
            else:
                parts = {tuple(key): _part(one.row, span) for key, span in row["chunks"]}
                for key in {key[:-1] for key in parts}:
                    one.cut.pop(key, None)
                one.cut |= parts

    def next(self) -> int:
        """Return the number of the next load."""
        self._last += 1
        return self._last

    def _add(self, kind: str, **body: Any) -> None:
        self.write([(kind, body)])

    def need(self, job: Any) -> None:
        """Refuse a load that could not be found again after a kill."""
        for what, function in (("function", job.function), ("combine", job.combine)):
            if function is not None and "#" in name_of(function):
                raise InputError(
                    f"{what} {name_of(function).partition('#')[0]} cannot be found again after a "
                    "kill: define it in a module, or use a head without a log"
                )
        if not isinstance(job.load, File):
            raise InputError(
                f"a load of kind {type(job.load).__name__} cannot be found again after a kill: "
                "put it into a file and use loads.lines or loads.rows, or a head without a log"
            )

    def add_sample(self, function: str, sample: Sample) -> None:
        """Keep a measurement of a function that has a name."""
        if "#" not in function:
            self._add("sample", function=function, sample=list(sample))

    def add_job(self, job: Any) -> None:
        """Keep a load and what it was told, before anything of it starts."""
        load, combine = job.load, job.combine
        self._add(
            "job", job=job.number, name=job.name, function=name_of(job.function),
            combine=combine and name_of(combine), arrival=job.arrival, deadline=job.deadline,
            promise=[None if x != x else x for x in job.promise], path=load.path,
            where=load.where, is_table=load.is_table, span=list(load.span), mark=_mark(load.path),
        )  # fmt: skip

    def add_chunks(self, job: Any, chunks: list[Any]) -> None:
        """Keep into what a load, or a lost part of it, was divided: all of it at once."""
        cut = [[list(chunk.key), list(chunk.piece.load.span)] for chunk in chunks]
        self._add("chunks", job=job.number, chunks=cut)

    def add_result(self, job: Any, key: Key, result: Any) -> None:
        """Keep that a chunk is computed, with its result where that can be data."""
        code = _encoded(result)
        if code is not None and len(json.dumps(code)) < LONGEST // 2:
            self._add("result", job=job.number, key=list(key), result=code)

    def add_end(self, job: Any, error: BaseException | None) -> None:
        """Keep that a load is over."""
        self._add("end", job=job.number, error="" if error is None else said(error))
