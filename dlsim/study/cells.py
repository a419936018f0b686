"""One cell of a sweep: its name, its random numbers, its result as text, its file.

A cell is (function, point, replicate). Its file is named by a hash of everything that
decides the result, and holds three lines: that name in full, the result, a checksum.
Numbers are text that reads back exactly; nothing is ever unpickled from disk.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.util
import itertools
import json
import sysconfig
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.errors import DlsimError, InputError, StudyError
from dlsim.files import LIMIT, read_bytes, write_bytes
from dlsim.given import label, mapping

Point = dict[str, Any]
Table = dict[str, list[Any]]


class Cell(NamedTuple):
    """One unit of work."""

    point: Point
    replicate: int
    spawn_key: tuple[int, ...]
    identity: str


def points(grid: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Point]:
    """Return the points of a grid, in order; refuse none at all, or points that differ in kind."""
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, str | Mapping) or not hasattr(values, "__iter__"):
                what = f"grid[{name!r}] must be a list of values, got {values!r}:"
                raise InputError(f"{what} write [value], or give a constant in fixed")
        rows = [dict(zip(grid, row, strict=True)) for row in itertools.product(*grid.values())]
    elif isinstance(grid, str) or not hasattr(grid, "__iter__"):
        raise InputError(f"grid must be a mapping of lists, or a list of points; got {grid!r}")
    else:
        rows = [dict(mapping(f"point {k} of the grid", row)) for k, row in enumerate(grid)]
    if not rows:
        raise InputError("the grid has no points: give every parameter at least one value")
    for number, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            what = f"point {number} of the grid has parameters {sorted(row)}, point 0 has"
            raise InputError(f"{what} {sorted(rows[0])}: give all points the same ones")
    return [{name: label(value) for name, value in row.items()} for row in rows]


def qualified(thing: Any) -> str:
    """Return the name by which another process imports a function or class."""
    try:
        module, name = thing.__module__, thing.__qualname__
        found = functools.reduce(getattr, name.split("."), importlib.import_module(module))
        spec = importlib.util.find_spec(module)
        source = Path(spec.origin).read_bytes()  # type: ignore[union-attr, arg-type]
    except (AttributeError, ImportError, OSError, TypeError, ValueError):
        found = None
    if found is not thing or module == "__main__":
        raise LookupError(f"{thing!r} cannot be imported from an installed module")
    if module.partition(".")[0] == "dlsim":
        return f"{module}:{name}"
    return f"{module}:{name}@{hashlib.sha256(source).hexdigest()[:16]}"


def doing(thing: Any, inside: tuple[Any, ...] = ()) -> str:
    """Return a digest of what a function does now: its code, and all that its code refers to."""
    function = getattr(thing, "py_func", thing)
    if any(function is one for one in inside):
        return "itself"
    if not isinstance(function, types.FunctionType):
        raise LookupError(f"{thing!r} is no function whose code can be told")
    inside, codes, names = (*inside, function), [function.__code__], set[str]()
    for code in codes:  # grows
        codes += [const for const in code.co_consts if isinstance(const, types.CodeType)]
        names.update(code.co_names)
    said = [
        [code.co_code.hex(), code.co_names, code.co_varnames, code.co_argcount, code.co_freevars,
         [repr(const) for const in code.co_consts if not isinstance(const, types.CodeType)]]
        for code in codes
    ]  # fmt: skip
    used = {name: function.__globals__[name] for name in sorted(names & {*function.__globals__})}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    used |= {f"{name} around it": cell.cell_contents for name, cell in cells}
    used |= {"defaults": function.__defaults__, "more": function.__kwdefaults__}
    used["options"] = str(getattr(thing, "targetoptions", ""))
    parts = [said, {name: _meaning(value, inside) for name, value in used.items()}]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _meaning(value: Any, inside: tuple[Any, ...]) -> Any:
    """Return what a name in a function's code stands for, as JSON."""
    if isinstance(value, types.ModuleType):
        place = getattr(value, "__file__", None) or ""
        if not place or value.__name__.partition(".")[0] == "dlsim" or _is_installed(place):
            return [value.__name__, str(getattr(value, "__version__", ""))]
        if any(value is one for one in inside):
            return value.__name__
        theirs, inside = [], (*inside, value)
        for name, one in sorted(vars(value).items()):
            if not name.startswith("__") and not isinstance(one, type):
                with contextlib.suppress(LookupError):  # its file tells
                    theirs.append([name, _meaning(one, inside)])
        return [value.__name__, theirs, hashlib.sha256(Path(place).read_bytes()).hexdigest()]
    own = getattr(value, "py_func", value)
    if isinstance(own, types.FunctionType) and not _is_installed(own.__code__.co_filename):
        return doing(value, inside)
    return canonical(value)


def _is_installed(place: str) -> bool:
    """Tell whether a file belongs to Python or to an installed package."""
    roots = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    return place.startswith((*roots, "<frozen"))


def rules_in(value: Any) -> Iterator[Any]:
    """Yield the functions outside dlsim among parameters."""
    if isinstance(value, Mapping):
        value = [*value.values()]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, list | tuple):
        for one in value:
            yield from rules_in(one)
    elif isinstance(getattr(value, "py_func", value), types.FunctionType):
        if value.__module__.partition(".")[0] != "dlsim":
            yield value


def mark_of(value: Any) -> str:
    """Return a digest of what the functions among parameters do; "" without any, or if unknown."""
    try:
        return " ".join(doing(rule) for rule in rules_in(value))
    except LookupError:
        return ""


def canonical(value: Any) -> Any:
    """Return a parameter as JSON that is equal where the parameter is.

    A function outside dlsim is what it does, not what it is called.
    """
    value = label(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    if isinstance(value, Mapping):
        pairs = [[canonical(key), canonical(item)] for key, item in value.items()]
        return {"mapping": sorted(pairs, key=json.dumps)}
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            return {"array": [value.shape, canonical(value.ravel().tolist())]}
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return {"array": [value.shape, value.dtype.str, content]}
    if isinstance(value, pd.DataFrame | pd.Series):
        frame = value.to_frame() if isinstance(value, pd.Series) else value
        columns = [(None, frame.index), *frame.items()]
        return {"table": [[canonical(name), canonical(c.to_numpy())] for name, c in columns]}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        fields = {name: canonical(getattr(value, name)) for name in names}
        return {"record": [qualified(type(value)), fields]}
    own: Any = getattr(value, "py_func", value)
    if isinstance(own, types.FunctionType) and own.__module__.partition(".")[0] != "dlsim":
        return {"function": [own.__qualname__, doing(value)]}
    return {"name": qualified(value)}


def _line(value: Any) -> str:
    return json.dumps(canonical(value), separators=(",", ":"), sort_keys=True)


def cells(
    grid: Sequence[Point], replicates: int, seed: int, independent: Sequence[str] = (),
    key: Sequence[Any] | None = None,
) -> list[Cell]:  # fmt: skip
    """Return the cells point by point, each with all its replicates.

    `key` is what all have in common; without it the cells have no identity. A parameter without a
    name outside this process is a LookupError.
    """
    result = []
    for point in grid:
        try:
            own = _line({name: point[name] for name in independent})
        except LookupError as error:
            raise InputError(f"independent: {error}; describe it by a number or a text") from error
        # seed words that belong to these values wherever they stand in a grid
        digest = hashlib.sha256(own.encode()).digest()[: 16 * bool(independent)]
        words = np.frombuffer(digest, "<u4").tolist()
        head = "" if key is None else _line([*key, point])[:-1]
        for replicate in range(replicates):
            spawn_key = (replicate, *words)
            identity = f"{head},{json.dumps([seed, *spawn_key])}]" if head else ""
            result.append(Cell(point, replicate, spawn_key, identity))
    return result


def encode(result: Any, taken: set[str]) -> str:
    """Return what a function returned as one line of JSON, column by column."""
    if isinstance(result, pd.DataFrame):
        table = {str(name): column.tolist() for name, column in result.items()}
    else:
        rows = [result] if isinstance(result, Mapping) else result
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            what = "the function of a sweep must return a dict, a list of dicts or a DataFrame"
            raise StudyError(f"{what}, got {type(result).__name__}")
        names = dict.fromkeys(name for row in rows for name in row)
        table = {str(name): [row.get(name) for row in rows] for name in names}
    if clash := taken & table.keys():
        raise StudyError(f"the result has columns {sorted(clash)} that the grid has too: rename")
    for name, values in table.items():
        table[name] = [label(value) for value in values]
        for value in table[name]:
            if value is not None and not isinstance(value, bool | int | float | str):
                raise StudyError(f"column {name!r} must hold numbers or text, got {value!r}")
    return json.dumps(table, separators=(",", ":"))


def frame(done: Sequence[Cell], tables: Sequence[Table]) -> pd.DataFrame:
    """Return the tidy frame of a sweep."""
    names = list(dict.fromkeys(name for table in tables for name in table))
    columns: Table = {name: [] for name in (*done[0].point, "replicate", *names)}
    for cell, table in zip(done, tables, strict=True):
        rows = len(next(iter(table.values()), ()))
        for name, value in (*cell.point.items(), ("replicate", cell.replicate)):
            columns[name].extend([value] * rows)
        for name in names:
            columns[name].extend(table.get(name, [None] * rows))
    return pd.DataFrame(columns)


def verified(result: Any, seed: Any) -> Any:
    """Check a result in the first replicate, a sample of every sweep; return it."""
    if seed.spawn_key[-1:] == (0,):
        result.check()
    return result


def _path(folder: Path, identity: str) -> Path:
    return folder / f"{hashlib.sha256(identity.encode()).hexdigest()}.txt"


def _sealed(identity: str, text: str) -> str:
    body = f"{identity}\n{text}\n"
    return f"{body}{hashlib.sha256(body.encode()).hexdigest()}\n"


def keep(folder: Path, identity: str, text: str) -> None:
    """Write a finished cell whole or not at all.

    The file is not synchronised to the disk, which would take longer than most cells: what
    a power failure damages fails its checksum and is computed anew.
    """
    try:
        write_bytes(_path(folder, identity), _sealed(identity, text).encode("ascii"), sync=False)
    except DlsimError as error:
        raise StudyError(
            f"cannot keep finished cells in {folder} ({error}): free some space, name"
            " another folder in the environment variable DLSIM_CACHE, or pass cache=False"
        ) from error


def load(folder: Path, identity: str) -> Table | None:
    """Return what a finished cell returned; None where its file is missing or damaged."""
    try:
        content = read_bytes(_path(folder, identity), LIMIT).decode("ascii")
        lines = content.split("\n")
        if len(lines) != 4 or content != _sealed(identity, lines[1]):
            return None
        table = json.loads(lines[1])
    except (ValueError, RecursionError):  # an InputError is a ValueError
        return None
    return table if isinstance(table, dict) else None
