"""Rows in SQLite files that are added and never changed: a history of runs, a log of events.

A file is read only after it has been found to be one of its kind, whole and of this version;
anything else is refused and left as it is. Each row carries a digest of its values and of the
row before it, so that a changed, missing or inserted row is noticed. Each addition is one
transaction: other processes may read, and write, at the same time, and a kill loses at most
what was being written.
"""

import hashlib
import json
import math
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from dlsim.errors import InputError, StudyError
from dlsim.files import StrPath, locked, opened, parse_json

#: The first SQLite with strict tables.
OLDEST = (3, 37)
#: Most characters of a text, and bytes SQLite may take for a row, whatever length a file states.
LONGEST, MOST_BYTES = 2**20, 2**26
#: How long a writer waits for another, seconds.
PATIENCE = 30.0


def is_text(value: object) -> bool:
    """Whether UTF-8 holds it: not so a lone surrogate, which damaged bytes are read as."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return False
    return value == value.encode(errors="replace").decode()


def is_finite(value: object) -> bool:
    """Whether a value is a finite float, as every REAL of a file should be."""
    return isinstance(value, float) and math.isfinite(value)


#: SQL of a column, which values it may hold, and how a message says so.
Column = tuple[str, Callable[[Any], bool], str]
TEXT: Column = ("TEXT NOT NULL", is_text, f"a text of at most {LONGEST} characters")
TIME: Column = ("REAL NOT NULL CHECK (abs(at) < 9e999)", is_finite, "finite")


class Kind(NamedTuple):
    """What a ledger holds: marks of the file, words for it, table, columns."""

    application: int
    version: int
    what: str  # "a history"
    row: str  # "run"
    missing: str  # what to do where there is no such file
    older: str  # what to do with a file of an earlier version
    columns: Mapping[str, Column]

    @property
    def table(self) -> str:
        """The SQL of the table, to the letter."""
        fields = ", ".join(f"{name} {sql}" for name, (sql, _, _) in self.columns.items())
        return (
            f"CREATE TABLE {self.row}s (id INTEGER PRIMARY KEY AUTOINCREMENT, {fields}, "
            "digest TEXT NOT NULL) STRICT"
        )


def _digest(before: str, number: int, values: Sequence[Any]) -> str:
    """Return the checksum of a row: over the one before it, its number and its exact values."""
    exact = [value.hex() if isinstance(value, float) else value for value in values]
    return hashlib.sha256(json.dumps([before, number, *exact]).encode()).hexdigest()


class Ledger:
    """An SQLite file of one kind, open to be read and added to."""

    KIND: Kind

    def __init__(self, path: StrPath, create: bool = True) -> None:
        self.path = Path(os.path.abspath(path))
        if sqlite3.sqlite_version_info < OLDEST:
            raise InputError(
                f"{self.KIND.what} needs SQLite {'.'.join(map(str, OLDEST))} or later, this Python "
                f"has {sqlite3.sqlite_version}: use another Python"
            )
        if not os.path.lexists(self.path):
            if not create:
                raise InputError(f"{path}: no such {self.KIND.what[2:]}; {self.KIND.missing}")
            self._make()
        with self._guard():
            self._need_marks()
            # what a killed writer left half done is rolled back here
            self._connection = self._connect("mode=rw")
            try:
                self.rows()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the rows are on disk already."""
        self._connection.close()

    def alone(self) -> AbstractContextManager[None]:
        """Keep other writers out, where files can be locked."""
        why = f"{self.path}: another run writes to it; wait for its end, or name another file"
        return locked(self.path, InputError(why))

    def _fault(self, row: Mapping[str, Any]) -> str:
        """Say which column of a row cannot be, and why; "" where all can."""
        for name, (_, fits, rule) in self.KIND.columns.items():
            if not fits(row[name]):
                return f"column {name}: {repr(row[name])[:60]} is not {rule}"
        return ""

    def _refused(self, why: str) -> InputError:
        remedy = "it was left as it is: name another file, or move this one away"
        return InputError(f"{self.path}: {why}; {remedy}")

    def _make(self) -> None:
        """Create an empty file that appears whole under its name, or not at all."""
        temporary = self.path.with_name(f".dlsim-{secrets.token_hex(8)}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(temporary)) as made:
                made.execute(self.KIND.table)
                made.execute("INSERT INTO sqlite_sequence VALUES (?, 0)", [f"{self.KIND.row}s"])
                made.execute(f"PRAGMA application_id = {self.KIND.application}")
                made.execute(f"PRAGMA user_version = {self.KIND.version}")
                made.commit()
            with suppress(FileExistsError):  # another process was first: its file is opened
                os.link(temporary, self.path)
        except (OSError, sqlite3.Error) as error:
            why = f"{self.path}: not written ({error}); choose another folder"
            raise InputError(why) from error
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _connect(self, how: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?{how}", uri=True, timeout=PATIENCE, isolation_level=None,
            check_same_thread=False,  # who has several threads lets one at a time write
        )  # fmt: skip
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        connection.text_factory = lambda data: data.decode(errors="surrogateescape")
        return connection

    def _need_marks(self) -> None:
        """Refuse the file of another program before SQLite locks, recovers or writes anything."""
        opened(self.path).close()
        with closing(self._connect("mode=ro&immutable=1")) as glance:
            try:
                application, version = (
                    glance.execute(f"PRAGMA {name}").fetchone()[0]
                    for name in ("application_id", "user_version")
                )
            except sqlite3.DatabaseError as error:
                if "malformed" in str(error):
                    return  # perhaps half written just now: who waits for the lock will tell
                raise
        wanted = f"not {self.KIND.what} of version {self.KIND.version}"
        if application != self.KIND.application:
            raise self._refused(f"{wanted}, nor of any other")
        if version != self.KIND.version:
            why = self.KIND.older if version < self.KIND.version else ""
            raise self._refused(f"{wanted}, but of version {version}{why}")

    def _need_schema(self) -> None:
        """Refuse a table that is not ours to the letter, and whatever else acts on it."""
        ours = [  # the second is SQLite's own, and counts what was written
            ("table", f"{self.KIND.row}s", self.KIND.table),
            ("table", "sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"),
        ]
        found = self._connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        for kind, name, sql in found:
            if (kind, name, sql) not in ours:
                raise self._refused(f"its {kind} {name} is not of dlsim ({str(sql)[:200]})")
        if len(found) != len(ours):
            raise self._refused(f"holds the tables {[row[1] for row in found]}")

    def _need_count(self, count: int) -> None:
        """Refuse a file whose last rows are gone: SQLite counts what was ever written."""
        row = self.KIND.row
        found = self._connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
        if found != [(f"{row}s", count)]:
            raise self._refused(
                f"{row} {count + 1} is missing, or was not counted: there are {count} {row}s, and "
                f"sqlite_sequence says {found}"
            )

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the values of every row, as one moment knew them, each verified."""
        row, columns = self.KIND.row, self.KIND.columns
        with self._guard(), self._connection as connection:
            connection.execute("BEGIN")
            self._need_schema()
            found = " ".join(connection.execute("PRAGMA quick_check").fetchone()[0].split())[:200]
            if found.startswith("***"):  # its pages, which to read on would be rash
                raise self._refused(f"damaged ({found})")
            rows, before = [], ""
            names = ", ".join(["id", *columns, "digest"])
            found_rows = connection.execute(f"SELECT {names} FROM {row}s ORDER BY id")
            for expected, (number, *values, digest) in enumerate(found_rows, 1):
                if number != expected:
                    raise self._refused(f"{row} {expected} is missing, {number!r} follows")
                if fault := self._fault(dict(zip(columns, values, strict=True))):
                    raise self._refused(f"{row} {number}, {fault}")
                before = _digest(before, number, values)
                if digest != before:
                    raise self._refused(
                        f"{row} {number}, column digest: it does not fit the values of the {row} "
                        "and of those before it, so that one was changed or is missing"
                    )
                rows.append(tuple(values))
            if found != "ok":
                raise self._refused(f"damaged ({found})")
            self._need_count(len(rows))
        return rows

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            busy = "locked" in str(error) or "busy" in str(error)
            if busy or "full" in str(error):
                raise StudyError(f"{self.path}: {error}; run again") from error
            raise self._refused(f"cannot be used ({error})") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # the latter comes of an error of SQLite that quotes damaged text
            raise self._refused(f"damaged ({error})") from error

    def append(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows behind the last one, all or none; who comes meanwhile waits."""
        row, columns = self.KIND.row, self.KIND.columns
        for values in rows:
            if fault := self._fault(dict(zip(columns, values, strict=True))):
                raise InputError(f"a {row} of {values[0]!r} cannot be kept: {fault}")
        with self._guard(), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._need_schema()
            last = f"SELECT id, digest FROM {row}s ORDER BY id DESC LIMIT 1"
            count, before = connection.execute(last).fetchone() or (0, "")
            self._need_count(count)
            names, marks = ", ".join(["id", *columns, "digest"]), ", ".join("?" * len(columns))
            for number, values in enumerate(rows, count + 1):
                before = _digest(before, number, values)
                insert = f"INSERT INTO {row}s ({names}) VALUES (?, {marks}, ?)"
                connection.execute(insert, (number, *values, before))


#: What taking in a row raises that is not as it was written.
BROKEN = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError,
    StopIteration,
)  # fmt: skip


def said(error: BaseException) -> str:
    """Say an error in words for which a row has room."""
    return f"{type(error).__name__}: {error}"[: LONGEST // 8]


def kind_of_log(application: int, what: str, missing: str, events: Sequence[str]) -> Kind:
    """Return the kind of a ledger of such events."""
    one = f"TEXT NOT NULL CHECK (kind IN {tuple(events)})", f"one of {', '.join(events)}"
    columns = {"kind": (one[0], events.__contains__, one[1]), "body": TEXT, "at": TIME}
    return Kind(application, 1, what, "event", missing, "", columns)


class EventLog(Ledger):
    """A ledger of events: what kind of, what happened as JSON, and when."""

    def write(self, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Add events, all or none."""
        now = time.time()
        self.append([(kind, json.dumps(body, allow_nan=False), now) for kind, body in rows])

    def tell(self, take: Callable[[str, dict[str, Any]], object]) -> None:
        """Hand over every event in order; refuse one that cannot be taken in."""
        for number, (kind, body, _) in enumerate(self.rows(), 1):
            try:
                take(kind, parse_json(self.path, body, number))
            except BROKEN as error:
                why = str(error) if isinstance(error, InputError) else said(error)
                what = f"{self.path}, event {number}: not of the {self.KIND.what[2:]} ({why})"
                raise InputError(f"{what}; it was left as it is") from error
