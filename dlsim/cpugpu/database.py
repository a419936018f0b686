"""The history database of paper C (section 5): measured run times in an SQLite file.

Every run is a row, and its checksum covers the row before, so that a row that was changed or moved
is found, and one that is missing before others, but not that the last rows are missing. Several
processes may read and write one file at the same time, and a process that is killed loses at most
the run that it was writing.
"""

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Self

import pandas as pd

from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import CLASSES
from dlsim.errors import InputError, StudyError
from dlsim.files import StrPath, open_regular
from dlsim.validate import instance, mapping, number, one_of

#: Marks of a history database in the header of its file.
APPLICATION_ID, VERSION = 0x646C7369, 5
#: How long a writer waits for another one, in seconds.
LOCK_TIMEOUT = 30.0
#: What is known of a run beside its time.
KEY = ("app", "size", "class", "host", "device")
TABLE = (
    f"CREATE TABLE runs ({', '.join(f'{name} TEXT NOT NULL' for name in KEY)}, "
    "seconds REAL NOT NULL CHECK (seconds > 0 AND seconds < 9e999), checksum TEXT NOT NULL, "
    f"CHECK (class IN {CLASSES})) STRICT"
)


def sized_name(app: str, size: str = "") -> str:
    """Return the name under which a history knows an application with a problem size."""
    return f"{app}[{size}]" if size else app


def checksum_of(before: str, *row: str | float) -> str:
    """Return the checksum of a row behind one with the checksum `before`."""
    return hashlib.sha256(repr((before, *row)).encode()).hexdigest()[:16]


class HistoryDatabase:
    """Measured runs in an SQLite file.

    Parameters
    ----------
    path : path
        The file; created if it is missing.

    Raises
    ------
    InputError
        If the file is damaged, is not a history database of this version, or cannot be created.
    StudyError
        If other processes keep the file locked for `LOCK_TIMEOUT` seconds.

    References
    ----------
    Paper C, section 5, rule 5: "update the historical database with the runtime information".

    Examples
    --------
    >>> import tempfile
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     HistoryDatabase(f"{folder}/history.sqlite") as database,
    ... ):
    ...     database.add("matmul", "gpu", 2.5, size="4096", host="node7", device="gpu0")
    ...     print(database.history(host="node7").table()[["app", "class", "count", "mean"]])
                app class  count  mean
    0  matmul[4096]   gpu      1   2.5
    """

    def __init__(self, path: StrPath) -> None:
        self.path = Path(os.path.abspath(path))
        if not os.path.lexists(self.path):
            self._create()
        self._require_marks()
        self._connection = self._connect(self.path, "rw")
        try:
            self._require_schema()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; every run that was added is on disk already."""
        self._connection.close()

    def add(
        self,
        app: str,
        cls: str,
        seconds: float,
        *,
        size: str = "",
        host: str = "",
        device: str = "",
    ) -> None:
        """Add one measured run of an application on a device class, "cpu" or "gpu"."""
        texts = (app, size, cls, host, device)
        for name, text in zip(KEY, texts, strict=True):
            instance(name, text, str, rule="a text")
        one_of("device class", cls, CLASSES)
        taken = number(f"run time of {app!r}", seconds, above=True, rule="positive and finite")
        row = (*texts, float(taken))
        try:
            "".join(texts).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"a run cannot be kept, its text is not Unicode: {error}") from None
        with self._explain_errors(), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            last = connection.execute("SELECT checksum FROM runs ORDER BY rowid DESC LIMIT 1")
            before = (last.fetchone() or [""])[0]
            values = (*row, checksum_of(before, *row))
            connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def runs(self) -> pd.DataFrame:
        """Return every run in the order in which they were added: `KEY` and seconds."""
        with self._explain_errors():
            query = f"SELECT {', '.join(KEY)}, seconds, checksum FROM runs ORDER BY rowid"
            rows = self._connection.execute(query).fetchall()
        before = ""
        for place, (*row, checksum) in enumerate(rows, start=1):
            if checksum != checksum_of(before, *row):
                raise self._refusal(f"row {place} was changed, or one before it is missing")
            before = checksum
        table = pd.DataFrame(rows, columns=[*KEY, "seconds", "checksum"])
        return table.drop(columns="checksum").astype({"seconds": float})

    def history(self, host: str | None = None, devices: Mapping[str, str] | None = None) -> History:
        """Return the history of the runs; an application is called `sized_name` in it.

        Only runs on this `host` count, and, for each class in `devices`, such as
        {"gpu": "gpu0"}, only those on that device.
        """
        wanted = mapping("devices", devices or {})
        runs = self.runs()
        if host is not None:
            runs = runs[runs["host"] == host]
        if wanted:
            runs = runs[runs["class"].map(wanted) == runs["device"]]
        history, columns = History(), runs[["app", "size", "class", "seconds"]]
        for app, size, cls, seconds in columns.itertuples(index=False):
            history.add(sized_name(app, size), cls, seconds)
        return history

    def _create(self) -> None:
        """Create an empty database that appears whole under its name, or not at all."""
        temporary = self.path.with_name(f".dlsim-{secrets.token_hex(8)}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect(temporary, "rwc")) as connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.execute(TABLE)
            with suppress(FileExistsError):  # another process was faster: its file is opened
                os.link(temporary, self.path)
        except (OSError, ValueError, sqlite3.Error) as error:  # a ValueError: a NUL in the name
            what = f"{self.path}: not created ({error}); choose another folder"
            raise InputError(what) from error
        finally:
            with suppress(OSError, ValueError):
                temporary.unlink(missing_ok=True)

    @staticmethod
    def _connect(path: Path, mode: str) -> sqlite3.Connection:
        """Open a file; transactions begin where the code says so."""
        address = f"{path.as_uri()}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=LOCK_TIMEOUT, isolation_level=None)

    def _require_marks(self) -> None:
        """Refuse the file of another program before SQLite locks, recovers or writes anything."""
        with open_regular(self.path) as file:
            header = file.read(100)
        version, application = (int.from_bytes(header[at : at + 4]) for at in (60, 68))
        if not header.startswith(b"SQLite format 3\0") or application != APPLICATION_ID:
            raise self._refusal("not a history database")
        if version != VERSION:
            raise self._refusal(f"of version {version}, and this dlsim reads version {VERSION}")

    def _require_schema(self) -> None:
        """Refuse a file whose tables or values are not as this class makes them."""
        with self._explain_errors():
            query = "SELECT type, name, sql FROM sqlite_master"
            found = self._connection.execute(query).fetchall()
            if found != [("table", "runs", TABLE)]:
                names = ", ".join(f"{kind} {name}" for kind, name, _ in found) or "nothing"
                raise self._refusal(f"the table of runs was changed; the file holds: {names}")
            (result,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
            if result != "ok":
                raise self._refusal(f"damaged ({' '.join(result.split())})")

    def _refusal(self, why: str) -> InputError:
        remedy = "it was left as it is: name another file, or move this one away"
        return InputError(f"{self.path}: {why}; {remedy}")

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into a refusal, or into a request to run again."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if any(word in str(error) for word in ("locked", "busy", "full")):
                raise StudyError(f"{self.path}: {error}; run again") from error
            raise self._refusal(f"damaged ({error})") from error
