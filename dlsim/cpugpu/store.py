"""The history on disk: every measured run in one SQLite file.

A file is read only after it has been found to be a history, whole and of this version;
anything else is refused and left as it is. Each run carries a digest of its values and
of the run before it, so that a changed, missing or inserted run is noticed. Each run is
one transaction: other processes may read, and write, at the same time, and a kill loses
at most the run being written.
"""

import hashlib
import json
import math
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from dlsim.cpugpu.history import History
from dlsim.errors import InputError, StudyError
from dlsim.files import StrPath
from dlsim.given import option, plain

if TYPE_CHECKING:
    from dlsim.cpugpu.outcome import Schedule

#: Marks an SQLite file as a history of dlsim, and the version of its table.
APPLICATION, VERSION = 0x646C7369, 2
#: The first SQLite with strict tables.
OLDEST = (3, 37)
#: Most characters of a text, and bytes SQLite may take for a run, whatever length a file states.
LONGEST, MOST_BYTES = 2**20, 2**26
#: How long a writer waits for another, seconds.
PATIENCE = 30.0
CLASSES = ("gpu", "cpu")
#: What can become of a run: only the first has a time that counts.
OUTCOMES = ("done", "failed", "lost")


def _is_text(value: object) -> bool:
    """Whether UTF-8 holds it: not so a lone surrogate, which damaged bytes are read as."""
    if not isinstance(value, str) or len(value) > LONGEST:
        return False
    return value == value.encode(errors="replace").decode()


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


_TEXT = ("TEXT NOT NULL", _is_text, f"a text of at most {LONGEST} characters")
#: Of each column: its SQL, which values it may hold, and how a message says so.
COLUMNS: dict[str, tuple[str, Callable[[Any], bool], str]] = {
    "app": _TEXT,
    "size": _TEXT,
    "class": (f"TEXT NOT NULL CHECK (class IN {CLASSES})", CLASSES.__contains__, "gpu or cpu"),
    "host": _TEXT,
    "device": _TEXT,
    "seconds": (
        "REAL CHECK (seconds > 0 AND seconds < 9e999)",
        lambda value: value is None or (_is_finite(value) and value > 0),
        "positive and finite, or NULL",
    ),
    "transfer": (
        "REAL NOT NULL CHECK (transfer >= 0 AND transfer <= ifnull(seconds, 0))",
        lambda value: _is_finite(value) and value >= 0,
        "finite and at least 0",
    ),
    "outcome": (
        f"TEXT NOT NULL CHECK (outcome IN {OUTCOMES} AND (outcome = 'done') = "
        "(seconds IS NOT NULL))",
        OUTCOMES.__contains__,
        f"one of {', '.join(OUTCOMES)}",
    ),
    "note": _TEXT,
    "at": ("REAL NOT NULL CHECK (abs(at) < 9e999)", _is_finite, "finite"),
}
_FIELDS = ", ".join(f"{name} {sql}" for name, (sql, _, _) in COLUMNS.items())
_ALL = ("id", *COLUMNS, "digest")
INSERT = f"INSERT INTO runs ({', '.join(_ALL)}) VALUES ({', '.join('?' * len(_ALL))})"
SELECT = f"SELECT {', '.join(_ALL)} FROM runs ORDER BY id"
TABLE = (
    f"CREATE TABLE runs (id INTEGER PRIMARY KEY AUTOINCREMENT, {_FIELDS}, "
    "digest TEXT NOT NULL) STRICT"
)
#: All that the file may hold; the second is SQLite's own, and tells how many runs were written.
SCHEMA = [
    ("table", "runs", TABLE),
    ("table", "sqlite_sequence", "CREATE TABLE sqlite_sequence(name,seq)"),
]


def key(app: str, size: str = "") -> str:
    """Return the name under which a history knows an application of a size."""
    return f"{app}[{size}]" if size else app


def _refused(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: {why}; it was left as it is: name another file, or move this one away"
    )


def _fault(row: Mapping[str, Any]) -> str:
    """Say which column of a run cannot be, and why; "" where all can."""
    for name, (_, fits, rule) in COLUMNS.items():
        if not fits(row[name]):
            return f"column {name}: {repr(row[name])[:60]} is not {rule}"
    seconds, transfer, outcome = row["seconds"], row["transfer"], row["outcome"]
    if (seconds is None) == (outcome == "done"):
        return f"column seconds: {seconds} is no time of a run that is {outcome}"
    if transfer > (seconds or 0.0):
        return f"column transfer: {transfer} is more than the seconds of the run, {seconds}"
    return ""


def _digest(before: str, number: int, values: Sequence[Any]) -> str:
    """Return the checksum of a run: over the one before it, its number and its exact values."""
    exact = [value.hex() if isinstance(value, float) else value for value in values]
    return hashlib.sha256(json.dumps([before, number, *exact]).encode()).hexdigest()


def _plain(value: object) -> float:
    """Return a time as the file will give it back, which knows no -0.0; NaN if it is none."""
    try:
        return float(plain(value)) + 0.0
    except OverflowError:
        return math.inf


def _make(path: Path) -> None:
    """Create an empty history that appears whole under its name, or not at all."""
    temporary = path.with_name(f".dlsim-{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(temporary)) as made:
            made.execute(TABLE)
            made.execute("INSERT INTO sqlite_sequence VALUES ('runs', 0)")
            made.execute(f"PRAGMA application_id = {APPLICATION}")
            made.execute(f"PRAGMA user_version = {VERSION}")
            made.commit()
        with suppress(FileExistsError):  # another process was first: its file is opened
            os.link(temporary, path)
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"{path}: not written ({error}); choose another folder") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


class Store:
    """Measured runs in an SQLite file.

    Parameters
    ----------
    path : path
        The file; made where it is missing.
    create : bool
        Whether a missing file is made, or refused.

    Raises
    ------
    InputError
        For a file that is no history, is damaged or of another version, or a place that
        cannot be written to.
    """

    def __init__(self, path: StrPath, create: bool = True) -> None:
        self.path = Path(os.path.abspath(path))
        if sqlite3.sqlite_version_info < OLDEST:
            raise InputError(
                f"a history needs SQLite {'.'.join(map(str, OLDEST))} or later, this Python has "
                f"{sqlite3.sqlite_version}: use another Python"
            )
        if not self.path.exists():
            if not create:
                raise InputError(f"{self.path}: no such history; first: dlsim live calibrate")
            _make(self.path)
        with self._guard():
            self._need_marks()
            # what a killed writer left half done is rolled back here
            self._connection = self._connect("mode=rw")
            try:
                self._rows()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the runs are on disk already."""
        self._connection.close()

    def _connect(self, how: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?{how}", uri=True, timeout=PATIENCE, isolation_level=None
        )
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        connection.text_factory = lambda data: data.decode(errors="surrogateescape")
        return connection

    def _need_marks(self) -> None:
        """Refuse the file of another program before SQLite locks, recovers or writes anything."""
        if not self.path.is_file():
            raise _refused(self.path, "not a file")
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
        if application != APPLICATION:
            raise _refused(self.path, f"not a history of version {VERSION}, nor of any other")
        if version != VERSION:
            why = ", whose runs carry no checksum: measure anew" if version == 1 else ""
            raise _refused(
                self.path, f"not a history of version {VERSION}, but of version {version}{why}"
            )

    def _need_schema(self) -> None:
        """Refuse a table that is not ours to the letter, and whatever else acts on it."""
        query = "SELECT type, name, sql FROM sqlite_master"
        found = self._connection.execute(query).fetchall()
        for kind, name, sql in found:
            if (kind, name, sql) not in SCHEMA:
                raise _refused(self.path, f"its {kind} {name} is not of dlsim ({str(sql)[:200]})")
        if len(found) != len(SCHEMA):
            raise _refused(self.path, f"holds the tables {[row[1] for row in found]}")

    def _need_count(self, count: int) -> None:
        """Refuse a file whose last runs are gone: SQLite counts what was ever written."""
        found = self._connection.execute("SELECT name, seq FROM sqlite_sequence").fetchall()
        if found != [("runs", count)]:
            raise _refused(
                self.path, f"run {count + 1} is missing, or was not counted: there are {count} "
                f"runs, and sqlite_sequence says {found}"
            )  # fmt: skip

    def _rows(self) -> list[tuple[Any, ...]]:
        """Return every run, as one moment knew them, each verified."""
        with self._guard(), self._connection as connection:
            connection.execute("BEGIN")
            self._need_schema()
            found = " ".join(connection.execute("PRAGMA quick_check").fetchone()[0].split())[:200]
            if found.startswith("***"):  # its pages, which to read on would be rash
                raise _refused(self.path, f"damaged ({found})")
            rows, before = [], ""
            for expected, (number, *values, digest) in enumerate(connection.execute(SELECT), 1):
                if number != expected:
                    raise _refused(self.path, f"run {expected} is missing, {number!r} follows")
                if fault := _fault(dict(zip(COLUMNS, values, strict=True))):
                    raise _refused(self.path, f"run {number}, {fault}")
                before = _digest(before, number, values)
                if digest != before:
                    raise _refused(
                        self.path, f"run {number}, column digest: it does not fit the values of "
                        "the run and of those before it, so that one was changed or is missing"
                    )  # fmt: skip
                rows.append(tuple(values))
            if found != "ok":
                raise _refused(self.path, f"damaged ({found})")
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
            raise _refused(self.path, f"cannot be used ({error})") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # the latter comes of an error of SQLite that quotes damaged text
            raise _refused(self.path, f"damaged ({error})") from error

    def add(
        self, app: str, cls: str, seconds: float, *, size: str = "", host: str = "",
        device: str = "", transfer: float = 0.0,
    ) -> None:  # fmt: skip
        """Keep one measured run; `transfer` is the part of `seconds` that moved data."""
        taken, moved = _plain(seconds), _plain(transfer)
        if not (0 < taken < math.inf and 0 <= moved <= taken):
            raise InputError(
                f"run time of {app!r} on {cls} must be positive and finite and hold its "
                f"transfer, got {seconds!r} and {transfer!r}"
            )
        self._insert([(app, size, cls, host, device, taken, moved, "done", "", time.time())])

    def note(
        self, app: str, cls: str, outcome: str, reason: str, *, size: str = "", host: str = "",
        device: str = "",
    ) -> None:  # fmt: skip
        """Keep a run that gave no time: its kernel "failed", or what ran it died ("lost")."""
        option("outcome", outcome, OUTCOMES[1:])
        said = reason[: LONGEST // 8].encode(errors="backslashreplace").decode()
        self._insert([(app, size, cls, host, device, None, 0.0, outcome, said, time.time())])

    def keep(self, schedule: "Schedule", host: str = "simulated") -> None:
        """Keep all runs of a simulated schedule or none; `host` tells them from measured ones."""
        jobs, now = schedule.jobs, time.time()
        rows = [
            (app, "", device[:3], host, device, seconds, 0.0, "done", "", now)
            for app, device, seconds in zip(
                jobs["app"], jobs["device"], schedule.run_times.tolist(), strict=True
            )
        ]
        order = jobs["end"].argsort(kind="stable")
        self._insert([rows[place] for place in order])

    def _insert(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add runs behind the last one, all or none; who comes meanwhile waits."""
        for values in rows:
            row = dict(zip(COLUMNS, values, strict=True))
            option("device class", row["class"], CLASSES)
            if fault := _fault(row):
                raise InputError(f"a run of {row['app']!r} cannot be kept: {fault}")
        with self._guard(), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            self._need_schema()
            last = connection.execute(f"{SELECT} DESC LIMIT 1").fetchone()
            count, before = (last[0], last[-1]) if last else (0, "")
            self._need_count(count)
            for number, values in enumerate(rows, count + 1):
                before = _digest(before, number, values)
                connection.execute(INSERT, (number, *values, before))

    def table(self) -> pd.DataFrame:
        """Return every run, oldest first; seconds is NaN where the run gave no time."""
        return pd.DataFrame(self._rows(), columns=list(COLUMNS)).astype({"seconds": float})

    def history(self, host: str | None = None, devices: Mapping[str, str] | None = None) -> History:
        """Return what is known, as a policy reads it; applications are named by `key`.

        Only runs of this `host`, and on this device of each class, such as {"gpu": "cuda"}: what
        CUDA took says nothing of OpenCL. A failed run counts as assigned, without a time, so that
        rule 2 does not try it for ever; a lost one does not count.
        """
        history, table = History(), self.table()
        for row in table.to_dict("records"):
            wanted = devices.get(row["class"]) if devices else row["device"]
            if (host is not None and row["host"] != host) or row["device"] != wanted:
                continue
            name = key(row["app"], row["size"])
            if row["outcome"] != "lost":
                history.assign(name, row["class"])
            if row["outcome"] == "done":
                history.measure(name, row["class"], row["seconds"])
        return history
