"""Reading and writing of files: shared data, atomic writes, text, JSON, CSV and TOML.

A file is written completely or not at all. Files that are read are not trusted: only a regular
file is opened, at most a limit of bytes is read or decompressed, and the declared sizes are
checked before memory is allocated. Every invalid file raises `InputError`, which names file, line
and field. Compressed files and UTF-16 are recognised by their first bytes.
"""

import bz2
import csv
import errno
import gzip
import importlib
import io
import json
import lzma
import math
import os
import re
import secrets
import stat
import sys
import tempfile
import tomllib
import zipfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import MISSING, fields
from functools import partial
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from dlsim.errors import DlsimError, InputError, StudyError
from dlsim.validate import did_you_mean, one_of, text, unchecked

StrPath = str | os.PathLike[str]

#: Largest number of bytes read from one file, after decompression. A job log takes up to 4 times
#: as much memory; a table 4 times for numbers and 25 times for texts; a JSON document 25 times; a
#: TOML file 100 times, and 2 s per MiB.
MAX_LOG_BYTES, MAX_TABLE_BYTES, MAX_DOCUMENT_BYTES, MAX_TOML_BYTES = 2**30, 2**28, 2**25, 2**23
#: Longest line in bytes; a job or a row of a table is far shorter.
MAX_LINE_BYTES = 2**20
#: Largest number of columns of a table, and of nested levels of a document.
MAX_COLUMNS, MAX_DEPTH = 1000, 100
#: A compressed file may grow to the first number of bytes, and beyond it at most by the factor.
FREE_GROWTH_BYTES, MAX_GROWTH_FACTOR = 16 * 2**20, 200

#: Name of a file while it is written; such a file is left over if the process is killed.
PART_FILE = re.compile(r"\.dlsim-[0-9a-f]{16}\.part")

#: Error numbers of a disk that is full or fails.
DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_PACKAGE = Path(__file__).parent
_SHARED = ("data", "notebooks")
#: Environment variable that names the folder in which notebooks leave their results.
RESULTS_VARIABLE = "DLSIM_RESULTS"


def project_root() -> Path | None:
    """Return the project folder of a checkout."""
    root = _PACKAGE.parent
    checkout = (root / "pyproject.toml").is_file() and not (_PACKAGE / "_share").exists()
    return root if checkout else None


def shared_folder(name: str) -> Path:
    """Return ``data`` or ``notebooks`` of the checkout or of the installed package."""
    folder = (project_root() or _PACKAGE / "_share") / one_of("shared folder", name, _SHARED)
    if not folder.is_dir():
        raise InputError(f"{folder}: missing from this installation; install dlsim again")
    return folder


def shared_file(name: str) -> Path:
    """Return a file of the shared folders ``data`` and ``notebooks``."""
    first, *rest = Path(name).parts or ("",)
    path = shared_folder(first).joinpath(*rest)
    if ".." in rest or "\0" in name or not path.is_file():
        raise InputError(f"{name}: no such file among {' and '.join(_SHARED)} of dlsim")
    return path


def suite_notebooks() -> dict[str, Path]:
    """Return the notebooks of dlsim by name, in reading order."""
    return {path.stem: path for path in sorted(shared_folder("notebooks").glob("*.ipynb"))}


def results_folder(name: str) -> Path:
    """Return the default folder of results of a name.

    It lies in the folder that the environment variable `RESULTS_VARIABLE` names; without one in
    ``results`` of the current folder, or of the checkout if the current folder is inside it.
    """
    if base := os.environ.get(RESULTS_VARIABLE):
        return Path(base) / name
    root, here = project_root(), Path.cwd()
    is_inside = root is not None and here.is_relative_to(root)
    return (root if root and is_inside else here) / "results" / name


def write_error(path: StrPath, error: Exception) -> DlsimError:
    """Return the error for a path that could not be written."""
    message = f"{os.fspath(path)}: not written ({getattr(error, 'strerror', None) or error})"
    if getattr(error, "errno", None) in DISK_FULL_ERRORS:
        return StudyError(f"{message}; free some space on the disk and run again")
    return InputError(f"{message}; choose a folder that you may write to")


def check_writable(path: Path) -> None:
    """Raise OSError if a file or folder cannot be created at a path; create nothing."""
    existing = next(one for one in (path, *path.parents) if os.path.lexists(one))
    try:
        for name in path.relative_to(existing).parts:  # refused if the system allows no such name
            with suppress(FileNotFoundError):
                os.lstat(existing / name)
        with suppress(FileNotFoundError):
            os.lstat(path)
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise OSError(errno.EINVAL, str(error)) from error
    tempfile.TemporaryFile(dir=existing).close()


def write_bytes(
    path: StrPath,
    data: bytes | Iterable[bytes],
    sync: bool = True,
    ready: Callable[[], object] = bool,
) -> None:
    """Write a file completely or not at all.

    Missing folders are created and a symbolic link is followed. `data` may be an iterable of
    parts. `ready` is called when all parts are written, before the file appears under its name.
    An InputError says that the path cannot be written, a StudyError that the disk is full or fails.
    """
    try:
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".dlsim-{secrets.token_hex(8)}.part")
        try:
            with open(temporary, "xb") as stream:
                stream.writelines([data] if isinstance(data, bytes) else data)
                stream.flush()
                if sync:
                    os.fsync(stream.fileno())
            ready()
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except DlsimError:  # raised by the iterable of parts
        raise
    except (OSError, ValueError) as error:
        raise write_error(path, error) from error


def write_text(path: StrPath, text: str) -> None:
    """Write a text as UTF-8, completely or not at all; line ends stay unchanged."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def csv_text(frame: pd.DataFrame) -> str:
    """Return a table as CSV: equal values give equal text, and floats are read back exactly."""
    has_named_index = any(name is not None for name in frame.index.names)
    return frame.to_csv(index=has_named_index, lineterminator="\n")


@contextmanager
def exclusive_lock(path: StrPath, busy: InputError) -> Iterator[None]:
    """Lock a file or folder for this process; raise `busy` if another process holds the lock.

    The lock ends with the process. Systems without ``fcntl`` (Windows) do not lock.
    """
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # no fcntl on Windows, or no such folder
            import fcntl

            handle = os.open(path, os.O_RDONLY)
            stack.callback(os.close, handle)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise busy from error
        yield


def line_error(path: StrPath, line: int, message: str, field: str = "") -> InputError:
    """Return the error for a line of a file, and for a field of it if given."""
    place = f", field {field}" if field else ""
    return InputError(f"{os.fspath(path)}, line {line}{place}: {message}")


_FILE_TYPES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
#: Without O_NONBLOCK, opening a pipe waits for a writer; O_BINARY exists on Windows only.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: StrPath) -> BufferedReader:
    """Open a regular file for reading; a device or a pipe is refused, since it may not end."""
    try:
        # checked before (opening a device may act on it) and after (the path may have changed)
        kind = stat.S_IFMT(os.stat(path).st_mode)
        if kind == stat.S_IFREG:
            handle = os.open(path, _OPEN_FLAGS)
            if (kind := stat.S_IFMT(os.fstat(handle).st_mode)) == stat.S_IFREG:
                return open(handle, "rb")
            os.close(handle)
        reason = f"{_FILE_TYPES.get(kind, 'something')}, not a regular file"
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
    raise InputError(f"{os.fspath(path)}: cannot be read ({reason}); check the name")


def read_bytes(path: StrPath, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes."""
    with open_regular(path) as stream:
        try:
            size = os.fstat(stream.fileno()).st_size
            data = stream.read(limit + 1) if size <= limit else b""
        except OSError as error:
            what = f"{os.fspath(path)}: cannot be read ({error.strerror}); fetch the file again"
            raise InputError(what) from error
    if max(size, len(data)) > limit:
        raise InputError(f"{os.fspath(path)}: more than {limit} bytes: split it or raise limit")
    return data


def read_text(path: StrPath, limit: int = MAX_DOCUMENT_BYTES) -> str:
    """Return the text of a UTF-8 file of at most `limit` bytes; the error names the line."""
    data = read_bytes(path, limit)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = "not UTF-8 text; save the file as UTF-8"
        raise line_error(path, data.count(b"\n", 0, error.start) + 1, what) from error


def _open_zip(raw: BufferedReader) -> IO[bytes] | None:
    """Open the only file of an archive, or return None if it holds several."""
    archive = zipfile.ZipFile(raw)
    names = [entry for entry in archive.infolist() if not entry.is_dir()]
    return archive.open(names[0]) if len(names) == 1 else None


def _open_zst(raw: BufferedReader) -> IO[bytes] | None:
    """Open a Zstandard file, or return None if this Python cannot."""
    for module in ("compression.zstd", "backports.zstd"):  # since Python 3.14; before
        with suppress(ImportError):
            return importlib.import_module(module).ZstdFile(raw)
    return None  # the package zstandard takes a file that is cut off for a whole one


#: Name and opener of compressed files, by their first bytes; None if nothing here can read them.
COMPRESSIONS: dict[bytes, tuple[str, Callable[[BufferedReader], Any] | None]] = {
    b"\x1f\x8b": ("gzip", lambda raw: gzip.GzipFile(fileobj=raw)),
    b"BZh": ("bz2", bz2.BZ2File),
    b"\xfd7zXZ\0": ("xz", lzma.LZMAFile),
    b"\x28\xb5\x2f\xfd": ("zst", _open_zst),
    b"PK\3\4": ("zip", _open_zip),
    b"7z\xbc\xaf\x27\x1c": ("7z", None),
    b"\x1f\x9d": ("Z", None),
    b"\4\x22\x4d\x18": ("lz4", None),
}
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def _unpacked(path: StrPath, raw: BufferedReader) -> tuple[IO[bytes], str]:
    """Return the stream of a file's own bytes, and the name of its compression or ""."""
    head = raw.peek(6)
    for magic, (name, opener) in COMPRESSIONS.items():
        if head.startswith(magic):
            stream = opener(raw) if opener else None
            if stream is None:
                raise InputError(f"{os.fspath(path)}: compressed ({name}); unpack it")
            return stream, name
    return raw, ""


def numbered_lines(path: StrPath, limit: int = MAX_TABLE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of each line of a plain or compressed file; UTF-16 becomes UTF-8."""
    number = total = 0
    try:
        with open_regular(path) as raw:
            stream, packed = _unpacked(path, raw)
            size = os.fstat(raw.fileno()).st_size
            growth = max(FREE_GROWTH_BYTES, MAX_GROWTH_FACTOR * size) if packed else math.inf
            read_line: Callable[[int], bytes] = stream.readline
            if stream.peek(2).startswith(_UTF16_MARKS):  # type: ignore[attr-defined]
                texts = io.TextIOWrapper(stream, "utf-16", newline="\n")
                read_line = lambda most: texts.readline(most).encode()  # noqa: E731
            while line := read_line(MAX_LINE_BYTES + 1):
                number, total = number + 1, total + len(line)
                if len(line) > MAX_LINE_BYTES:
                    what = f"longer than {MAX_LINE_BYTES} bytes: not a table; check the file"
                    raise line_error(path, number, what)
                if total > limit:
                    raise line_error(
                        path, number, f"more than {limit} bytes: split it or raise limit"
                    )
                if total > growth:
                    what = f"grows over {MAX_GROWTH_FACTOR}-fold like a {packed} bomb"
                    raise line_error(path, number, f"{what}; decompress it first")
                yield number, line
    except UnicodeDecodeError as error:
        what = "not UTF-16 text, as its first bytes say; save the file as UTF-8"
        raise line_error(path, number + 1, what) from error
    except DlsimError:
        raise
    except Exception as error:  # each library has its own for a damaged or locked file
        what = f"cannot be read on ({error}); fetch the file again"
        raise line_error(path, number + 1, what) from error


def _text_lines(path: StrPath, limit: int) -> Iterator[str]:
    for number, line in numbered_lines(path, limit):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            what = f"not UTF-8 text (byte {error.start + 1}); save the file as UTF-8"
            raise line_error(path, number, what) from error


def _check_document(path: StrPath, document: Any) -> Any:
    """Return a document whose depth and whole numbers are within the limits."""
    layer, depth = [document], 0
    while layer:
        depth += 1
        below: list[Any] = []
        for node in layer:
            if isinstance(node, list | dict):
                below.extend(node.values() if isinstance(node, dict) else node)
            elif isinstance(node, int) and abs(node) > sys.float_info.max:
                what = "holds a whole number beyond 1.8e308, the largest of floats; shorten it"
                raise InputError(f"{os.fspath(path)}: {what}")
        if depth > MAX_DEPTH:
            raise InputError(f"{os.fspath(path)}: nested more than {MAX_DEPTH} deep; flatten it")
        layer = below
    return document


def _parser_message(error: Exception) -> str:
    """Return the message of a parser without Python's own remedy."""
    deep = isinstance(error, RecursionError)
    return f"nested more than {MAX_DEPTH} deep" if deep else str(error).partition("; use sys.")[0]


def parse_json(path: StrPath, text: str, line: int = 1) -> Any:
    """Parse JSON text that begins at `line` of a file."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        at = line + getattr(error, "lineno", 1) - 1
        raise line_error(path, at, f"not valid JSON: {_parser_message(error)}") from error
    return _check_document(path, document)


def read_json(path: StrPath, limit: int = MAX_DOCUMENT_BYTES) -> Any:
    """Read a JSON file."""
    return parse_json(path, read_text(path, limit))


#: Comments and quoted texts of TOML, whose dots do not separate parts of a key. A text without a
#: closing quote reaches to the end.
_QUOTED = re.compile(
    r"""\#[^\n]*+
    |\"{3}(?:[^"\\]|\\.|"(?!""))*+(?:\"{3}|\Z)
    |'{3}(?:[^']|'(?!''))*+(?:'{3}|\Z)
    |"(?:[^"\\\n]|\\[^\n])*+"?
    |'[^'\n]*+'?""",
    re.DOTALL | re.VERBOSE,
)
#: A dotted key of more parts than `MAX_DEPTH`, quoted parts written as q. The parser takes time and
#: memory that grow with the square of the parts: 64 kB of them take 4 GB.
_DOTTED = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{MAX_DEPTH}}}")


def read_toml(path: StrPath) -> dict[str, Any]:
    """Read a TOML file."""
    return _parse_toml(path, MAX_TOML_BYTES)[0]


def _parse_toml(path: StrPath, limit: int) -> tuple[dict[str, Any], str]:
    text = "".join(_text_lines(path, limit))
    # line breaks are kept, so that line numbers stay right
    unquoted = _QUOTED.sub(lambda quoted: "q" + "\n" * quoted[0].count("\n"), text)
    if found := _DOTTED.search(unquoted):
        line = unquoted.count("\n", 0, found.start()) + 1
        raise line_error(path, line, f"a key of more than {MAX_DEPTH} parts; flatten it")
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        at = re.search(r"\(at line (\d+)", str(error))
        line = int(at[1]) if at else text.count("\n") + 1
        raise line_error(path, line, f"not valid TOML: {_parser_message(error)}") from error
    return _check_document(path, document), text


#: A line that looks like the head of a list of tables.
_TABLE_HEAD = re.compile(r"[ \t]*\[\[[ \t]*([\w-]+)[ \t]*\]\]")


#: Rule of a field: a function of name and value as in `dlsim.validate`, which returns the value.
FieldRule = Callable[[str, Any], Any]
#: Rule by name of a field; a name that ends in ? is optional.
Fields = Mapping[str, FieldRule]
#: Fields of the rows, by name of the list of tables.
Schema = Mapping[str, Fields]


class Row(dict[str, Any]):
    """The fields of one table of a file; `where` is its place in the file."""

    where = ""


def located(where: str, build: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function with values of a file; an InputError then names the place in the file."""
    try:
        return build(*args, **kwargs)
    except InputError as error:
        if str(error).startswith((f"{where}:", f"{where},")):  # the place is already named
            raise
        raise InputError(f"{where}: {error}") from error


def field_rules(kind: type, **kinds: FieldRule) -> dict[str, FieldRule]:
    """Return the rules of a dataclass's fields: `text` or the rule given; ? if it has a default."""
    optional = {f.name: "?" * (f.default is not MISSING) for f in fields(kind)}
    return {name + mark: kinds.get(name, text) for name, mark in optional.items()}


def parse_row(where: str, given: Any, wanted: Fields) -> Row:
    """Return one table of a file, with each field validated by its rule."""
    if not isinstance(given, dict):
        raise InputError(f"{where}: must be a table of fields, got {given!r}")
    kinds = {name.removesuffix("?"): kind for name, kind in wanted.items()}
    needed = [name for name in wanted if not name.endswith("?")]
    for name in needed:
        if name not in given:
            raise InputError(f"{where}: {name} is missing; it needs {', '.join(needed)}")
    for name in given:
        if name not in kinds:
            raise InputError(f"{where}: no field is called {name!r}; known: {', '.join(kinds)}")
    row = Row({name: kinds[name](f"{where}: {name}", value) for name, value in given.items()})
    row.where = where
    return row


def parse_tables(
    path: StrPath, document: Any, schema: Schema, top: Fields | None, first: int, text: str = ""
) -> Row:
    """Return the lists of tables of a document and its `top` fields, all validated.

    Messages name a row by its field id, or by its number counted from `first`, and by its line if
    `text` (the TOML text) shows it.
    """
    where, heads = os.fspath(path), dict[str, list[int]]()
    for number, line in enumerate(text.split("\n"), 1):
        if head := _TABLE_HEAD.match(line):
            heads.setdefault(head[1], []).append(number)
    found = parse_row(
        where, document, {**{f"{name}?": unchecked for name in schema}, **(top or {})}
    )
    for table in (table for table in schema if table in found):
        rows, found[table] = found[table], []
        if not isinstance(rows, list):
            rule = f"{table} must be written as [[{table}]], a list of tables"
            raise InputError(f"{where}: {rule}; got {rows!r}")
        for number, given in enumerate(rows, first):
            name = given.get("id") if isinstance(given, dict) else None
            has_lines = len(heads.get(table, ())) == len(rows)
            place = f"{where}, line {heads[table][number - first]}" if has_lines else where
            at = f"{place}, {table} {repr(name) if isinstance(name, str) else number}"
            found[table].append(parse_row(at, given, schema[table]))
    return found


def read_tables(
    path: StrPath,
    schema: Schema,
    top: Fields | None = None,
    first: int = 1,
    limit: int = MAX_TOML_BYTES,
) -> Row:
    """Return the lists of tables of a TOML file, validated as by `parse_tables`."""
    document, text = _parse_toml(path, limit)
    return parse_tables(path, document, schema, top, first, text)


def _number(text: str, low: float = -math.inf, above: bool = False, blank: bool = False) -> float:
    if blank and not text:
        return math.nan
    value = float(text)
    if "_" in text or not math.isfinite(value) or value < low or (above and value == low):
        raise ValueError(text)
    return value


def _whole(text: str) -> int:
    value: float
    try:
        value = int(text)
    except ValueError:  # 2.0 is whole too: pandas writes so where a column lacks a value
        value = float(text)
    if "_" in text or abs(value) > 2**53 or value % 1:
        raise ValueError(text)
    return int(value)


_POSITIVE = partial(_number, low=0, above=True)
#: Rules of a CSV field: its parser, the words of a message (a remedy follows after ;), and the type
#: code of the array that stores it ("": a list).
COLUMN_RULES: dict[str, tuple[Callable[[str], Any], str, str]] = {
    "number": (_number, "a finite number", "d"),
    "known or -1": (_number, "a finite number; write -1 for what is unknown", "d"),
    "known, -1 or blank": (
        partial(_number, blank=True),
        "a finite number; write -1, or nothing, for what is unknown",
        "d",
    ),
    "nonnegative": (partial(_number, low=0), "a finite number of at least 0", "d"),
    "number or blank": (partial(_number, blank=True), "a finite number, or blank", "d"),
    "positive": (_POSITIVE, "a finite number above 0", "d"),
    "positive or blank": (partial(_POSITIVE, blank=True), "a finite number above 0, or blank", "d"),
    "whole": (_whole, "a whole number", "q"),
    "text": (partial(text, "it", blank=False), "a text that is not blank", ""),
    "any": (str, "a text", ""),
}


def field_value(path: StrPath, line: int, name: str, text: str, rule: str) -> Any:
    """Return the value of one field, parsed by a rule of `COLUMN_RULES`."""
    parse, wanted, _ = COLUMN_RULES[rule]
    try:
        return parse(text.strip())
    except ValueError:
        rule, sign, remedy = wanted.partition("; ")
        what = f"must be {rule}, got {text[:40]!r}{sign}{remedy}"
        raise line_error(path, line, what, name) from None


def _header_remedy(names: list[str]) -> str:
    """Return a remedy if the first line is a comment or separated by tabs or bars, or ""."""
    if names and names[0].startswith("#"):
        return "; it is a comment: remove it"
    for separator, called in (("\t", "tabs"), ("|", "bars")):
        if any(separator in name for name in names):
            return f"; they are separated by {called}: save the file with commas"
    return ""


def _header(path: StrPath, row: list[str], required: Mapping[str, str]) -> list[str]:
    names = [name.strip() for name in row]
    if missing := [name for name in required if name not in names]:
        near = did_you_mean(missing[0], names)
        what = f"no such column{near}; the first line names {', '.join(names)[:200] or 'none'}"
        raise line_error(path, 1, what + _header_remedy(names), missing[0])
    if len(names) > MAX_COLUMNS:
        raise line_error(path, 1, f"{len(names)} columns, more than {MAX_COLUMNS}; leave some out")
    for name, count in Counter(names).items():
        if not name or count > 1:
            what = "a column without a name" if not name else "two columns of this name"
            raise line_error(path, 1, f"{what}; rename or remove it", name)
    return names


def _column(values: Any, rule: str | None) -> Any:
    """Return a column as an array; without a rule, as numbers if all fields allow it."""
    if rule:
        return np.array(values) if isinstance(values, array) else values
    try:
        return np.array([_number(text.strip(), blank=True) for text in values])
    except ValueError:
        return values


def read_csv(
    path: StrPath,
    required: Mapping[str, str],
    optional: Mapping[str, str] | None = None,
    *,
    ascending: str = "",
    unique: str = "",
    limit: int = MAX_TABLE_BYTES,
) -> pd.DataFrame:
    """Read a CSV table, plain or compressed, separated by commas or semicolons.

    Parameters
    ----------
    path : path
        The file; its first line names the columns.
    required, optional : mapping of str to str
        Rule of `COLUMN_RULES` by name of a column. Other columns are read as numbers if all their
        fields are numbers or blank, and else as texts.
    ascending, unique : str
        A column that must be sorted; one whose values must differ.
    limit : int
        Largest number of bytes.

    Raises
    ------
    InputError
        For a file that is no such table, with line and field.
    """
    rules = {**required, **(optional or {})}
    text_lines = _text_lines(path, limit)
    first = next(text_lines, "")
    comma = ";" if first.count(";") > first.count(",") else ","  # some locales' spreadsheets
    reader = csv.reader(chain([first], text_lines), strict=True, delimiter=comma)
    lines = array("q")
    try:
        names = _header(path, next(reader, []), required)
        # an array takes 8 bytes per number
        kinds = {name: COLUMN_RULES[rules.get(name, "any")][2] for name in names}
        table: dict[str, Any] = {name: array(kinds[name]) if kinds[name] else [] for name in names}
        for row in filter(None, reader):
            lines.append(reader.line_num)
            if len(row) != len(names):
                what = f"{len(row)} fields instead of {len(names)} ({', '.join(names)})"
                what += f"; write quotes around a text with {comma!r}"
                raise line_error(path, lines[-1], what)
            for name, text in zip(names, row, strict=True):
                rule = rules.get(name)
                if rule and comma == ";" and COLUMN_RULES[rule][2]:
                    text = text.replace(",", ".", 1)
                value = field_value(path, lines[-1], name, text, rule) if rule else text
                table[name].append(value)
    except csv.Error as error:
        raise line_error(path, reader.line_num, f"not a CSV line: {error}") from error
    frame = pd.DataFrame({name: _column(table[name], rules.get(name)) for name in names})
    for at in np.flatnonzero(np.diff(frame[ascending]) < 0) if ascending in frame else ():
        before, value = frame[ascending].iloc[at : at + 2]
        what = f"{value} comes after {before}; sort the lines by {ascending}"
        raise line_error(path, lines[at + 1], what, ascending)
    for at in np.flatnonzero(frame[unique].duplicated()) if unique in frame else ():
        what = f"{frame[unique].iloc[at]!r} is used twice; every line needs its own"
        raise line_error(path, lines[at], what, unique)
    return frame
