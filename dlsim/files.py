"""What dlsim reads and writes: its own material, atomic files, CSV and TOML in.

A file that is written appears whole under its name or not at all. A file that is
read is hostile until shown otherwise: every refusal is an `InputError` that names
file, line and field. Plain and gzip files are told apart by their first bytes.
"""

import csv
import errno
import gzip
import math
import os
import re
import secrets
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from dlsim.errors import DlsimError, InputError, StudyError

StrPath = str | os.PathLike[str]

#: Most bytes read from one file, counted after decompression.
LIMIT = 2 * 2**30
#: Longest line: a job or a row of a table is far shorter.
LONGEST_LINE = 2**20
#: A gzip file may always grow to the first, and beyond it at most by the second factor.
FREE_GROWTH, MOST_GROWTH = 16 * 2**20, 200

_PACKAGE = Path(__file__).parent
_SHARED = ("data", "notebooks")


def project_root() -> Path | None:
    """Return the project folder of a checkout.

    Returns
    -------
    Path or None
        The folder beside the package that holds pyproject.toml; None where dlsim was
        installed from a wheel, which carries its material inside the package.
    """
    root = _PACKAGE.parent
    checkout = (root / "pyproject.toml").is_file() and not (_PACKAGE / "_share").exists()
    return root if checkout else None


def shared_folder(name: str) -> Path:
    """Return one of the folders that travel with the suite.

    Parameters
    ----------
    name : {"data", "notebooks"}
        Which one.

    Returns
    -------
    Path
        Beside the package in a checkout, inside it in an installed wheel.

    Raises
    ------
    InputError
        For another name, or where the folder is missing.
    """
    if name not in _SHARED:
        raise InputError(f"shared folder must be one of {', '.join(_SHARED)}; got {name!r}")
    folder = (project_root() or _PACKAGE / "_share") / name
    if not folder.is_dir():
        raise InputError(f"{folder}: missing from this installation; install dlsim again")
    return folder


def shared_file(name: str) -> Path:
    """Return a file that travels with the suite.

    Parameters
    ----------
    name : str
        Path below the project, such as ``"notebooks/20-mcdf.ipynb"``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        For a path outside the shared folders, or a file that is not there.
    """
    first, *rest = Path(name).parts or ("",)
    path = shared_folder(first).joinpath(*rest)
    if ".." in rest or "\0" in name or not path.is_file():
        raise InputError(f"{name}: no such file among the suite's {' and '.join(_SHARED)}")
    return path


def _unwritable(path: StrPath, error: Exception) -> DlsimError:
    what = f"{os.fspath(path)}: not written ({getattr(error, 'strerror', None) or error})"
    if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        return StudyError(f"{what}; free some space on the disk and run again")
    return InputError(f"{what}; choose a folder that you may write to")


def write_bytes(path: StrPath, data: bytes, sync: bool = True) -> None:
    """Write a file whole or not at all.

    The bytes go to a temporary name in the same folder, are synchronised to the disk
    and then renamed, so that a reader sees the old file or the new one. Missing
    folders are made; a symbolic link is followed.

    Parameters
    ----------
    path : path
        Where to.
    data : bytes
        The content.
    sync : bool
        Whether to wait for the disk. Without, a power failure may damage the file: only
        for content that carries a checksum and can be computed anew.

    Raises
    ------
    InputError
        Where the place cannot be written to.
    StudyError
        Where the disk is full or fails.
    """
    try:
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".dlsim-{secrets.token_hex(8)}.part")
        try:
            with open(temporary, "xb") as stream:
                stream.write(data)
                stream.flush()
                if sync:
                    os.fsync(stream.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error


def write_text(path: StrPath, text: str) -> None:
    """Write a text as UTF-8, whole or not at all; line ends stay as they are.

    Parameters
    ----------
    path : path
        Where to.
    text : str
        The content.

    Raises
    ------
    InputError, StudyError
        As `write_bytes`.
    """
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_csv(path: StrPath, frame: pd.DataFrame) -> None:
    r"""Write a table so that the same values give the same bytes.

    Lines end in ``\n``, a float is the shortest text that reads back exactly, and an
    index is written where it has a name.

    Parameters
    ----------
    path : path
        Where to.
    frame : DataFrame
        The table.

    Raises
    ------
    InputError, StudyError
        As `write_bytes`.
    """
    named = any(name is not None for name in frame.index.names)
    write_text(path, frame.to_csv(index=named, lineterminator="\n"))


def refusal(path: StrPath, line: int, what: str, field: str = "") -> InputError:
    """Make the error for one place of a file.

    Parameters
    ----------
    path : path
        The file.
    line : int
        Number of the line, from 1.
    what : str
        What is wrong, or the rule that is broken.
    field : str
        Name of the field; "" for the whole line.

    Returns
    -------
    InputError
        To be raised.
    """
    place = f", field {field}" if field else ""
    return InputError(f"{os.fspath(path)}, line {line}{place}: {what}")


def _open(path: StrPath) -> IO[bytes]:
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        what = f"{os.fspath(path)}: cannot be read ({reason}); check the name"
        raise InputError(what) from error


def numbered_lines(path: StrPath, limit: int = LIMIT) -> Iterator[tuple[int, bytes]]:
    """Read a plain or gzip file line by line.

    Parameters
    ----------
    path : path
        The file.
    limit : int
        Most bytes, after decompression.

    Yields
    ------
    number : int
        From 1.
    line : bytes
        With its line break.

    Raises
    ------
    InputError
        For a file that cannot be read, is longer than `limit`, has a line longer than
        `LONGEST_LINE`, or grows like a gzip bomb; names file and line.
    """
    number = total = 0
    try:
        with _open(path) as raw:
            size, growth = os.fstat(raw.fileno()).st_size, math.inf
            stream: IO[bytes] | gzip.GzipFile = raw
            if raw.peek(2)[:2] == b"\x1f\x8b":  # type: ignore[attr-defined]
                stream = gzip.GzipFile(fileobj=raw)
                growth = max(FREE_GROWTH, MOST_GROWTH * size)
            while line := stream.readline(LONGEST_LINE + 1):
                number, total = number + 1, total + len(line)
                if len(line) > LONGEST_LINE:
                    raise refusal(path, number, f"longer than {LONGEST_LINE} bytes: not a table")
                if total > limit:
                    raise refusal(path, number, f"more than {limit} bytes: split it or raise limit")
                if total > growth:
                    what = f"grows over {MOST_GROWTH}-fold like a gzip bomb; decompress it first"
                    raise refusal(path, number, what)
                yield number, line
    except (OSError, EOFError, zlib.error) as error:
        what = f"cannot be read on ({error}); fetch the file again"
        raise refusal(path, number + 1, what) from error


def _text_lines(path: StrPath, limit: int) -> Iterator[str]:
    for number, line in numbered_lines(path, limit):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            what = f"not UTF-8 text (byte {error.start + 1}); save the file as UTF-8"
            raise refusal(path, number, what) from error


def read_toml(path: StrPath, limit: int = LIMIT) -> dict[str, Any]:
    """Read a TOML file.

    Parameters
    ----------
    path : path
        Plain or gzip, UTF-8.
    limit : int
        Most bytes, after decompression.

    Returns
    -------
    dict
        The document.

    Raises
    ------
    InputError
        For a file that cannot be read or is not TOML; names file and line.
    """
    text = "".join(_text_lines(path, limit))
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = re.search(r"\(at line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise refusal(path, line, f"not valid TOML: {error}") from error


def _number(text: str) -> float:
    value = float(text)
    if "_" in text or not math.isfinite(value):
        raise ValueError(text)
    return value


def _number_or_blank(text: str) -> float:
    return _number(text) if text else math.nan


def _whole(text: str) -> int:
    value = int(text)
    if "_" in text or abs(value) > 2**53:
        raise ValueError(text)
    return value


#: What a field may be: its parser, a further condition, how a message says it.
RULES: dict[str, tuple[Callable[[str], Any], Callable[[Any], bool], str]] = {
    "number": (_number, lambda value: True, "a finite number"),
    "nonnegative": (_number, lambda value: value >= 0, "a finite number of at least 0"),
    "positive": (_number, lambda value: value > 0, "a finite number above 0"),
    "positive or blank": (
        _number_or_blank,
        lambda value: not value <= 0,
        "a finite number above 0, or blank",
    ),
    "whole": (_whole, lambda value: True, "a whole number"),
    "text": (str, bool, "a text that is not blank"),
}


def field_value(path: StrPath, line: int, name: str, text: str, rule: str) -> Any:
    """Read one field by a rule of `RULES`.

    Parameters
    ----------
    path : path
        The file.
    line : int
        Its line, from 1.
    name : str
        The field.
    text : str
        What stands there.
    rule : str
        A key of `RULES`.

    Returns
    -------
    object
        The value.

    Raises
    ------
    InputError
        Naming file, line and field, for a text that does not fit.
    """
    parse, fits, wanted = RULES[rule]
    try:
        value = parse(text.strip())
        if fits(value):
            return value
    except ValueError:
        pass
    raise refusal(path, line, f"must be {wanted}, got {text[:40]!r}", name)


def _header(path: StrPath, row: list[str], required: Mapping[str, str]) -> list[str]:
    names = [name.strip() for name in row]
    missing = [name for name in required if name not in names]
    if missing:
        what = f"no such column; the first line names {', '.join(names)[:200] or 'none'}"
        raise refusal(path, 1, what, missing[0])
    for name in names:
        if not name or names.count(name) > 1:
            what = "a column without a name" if not name else "two columns of this name"
            raise refusal(path, 1, f"{what}; rename or remove it", name)
    return names


def _column(values: list[Any], rule: str | None) -> Any:
    """Give a column its type; a free one is numbers where all of it is numbers or blank."""
    if rule == "text":
        return values
    if rule:
        return np.array(values, dtype=np.int64 if rule == "whole" else float)
    try:
        return np.array([_number(text) if text.strip() else np.nan for text in values])
    except ValueError:
        return values


def read_csv(
    path: StrPath,
    required: Mapping[str, str],
    optional: Mapping[str, str] | None = None,
    *,
    ascending: str = "",
    unique: str = "",
    limit: int = LIMIT,
) -> pd.DataFrame:
    r"""Read a table whose columns obey rules.

    Parameters
    ----------
    path : path
        Comma-separated UTF-8, plain or gzip, ``\n`` or ``\r\n``; the first line names
        the columns, in any order.
    required, optional : mapping of str to str
        Column name to one of `RULES`. Further columns are kept, as numbers (blank =
        NaN) or as text.
    ascending, unique : str
        A column that must not fall, and one whose values must differ; "" for none.
    limit : int
        Most bytes, after decompression.

    Returns
    -------
    DataFrame
        One row per line, columns in the order of the file; empty where only the first
        line is there.

    Raises
    ------
    InputError
        For a file that cannot be read or a field that breaks its rule; names file,
        line and field.
    """
    rules = {**required, **(optional or {})}
    reader = csv.reader(_text_lines(path, limit), strict=True)
    lines: list[int] = []
    try:
        names = _header(path, next(reader, []), required)
        table: dict[str, list[Any]] = {name: [] for name in names}
        for row in filter(None, reader):
            lines.append(reader.line_num)
            if len(row) != len(names):
                what = f"{len(row)} fields instead of {len(names)} ({', '.join(names)})"
                raise refusal(path, lines[-1], what)
            for name, text in zip(names, row, strict=True):
                rule = rules.get(name)
                value = field_value(path, lines[-1], name, text, rule) if rule else text
                table[name].append(value)
    except csv.Error as error:
        raise refusal(path, reader.line_num, f"not a CSV line: {error}") from error
    frame = pd.DataFrame({name: _column(table[name], rules.get(name)) for name in names})
    _check_order(path, frame, lines, ascending, unique)
    return frame


def _check_order(
    path: StrPath, frame: pd.DataFrame, lines: list[int], ascending: str, unique: str
) -> None:
    for at in np.flatnonzero(np.diff(frame[ascending]) < 0) if ascending in frame else ():
        before, value = frame[ascending].iloc[at : at + 2]
        what = f"{value} comes after {before}; sort the lines by {ascending}"
        raise refusal(path, lines[at + 1], what, ascending)
    for at in np.flatnonzero(frame[unique].duplicated()) if unique in frame else ():
        what = f"{frame[unique].iloc[at]!r} is used twice; every line needs its own"
        raise refusal(path, lines[at], what, unique)
